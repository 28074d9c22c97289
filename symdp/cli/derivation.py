"""`symdp derive`: the derivation in the form that is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from symdp.cli.display import one_line
from symdp.cli.guard import guarded
from symdp.cli.job import Job, direction
from symdp.cli.working import working
from symdp.errors import InputError, suggestion

if TYPE_CHECKING:
    from symdp.derive import Derivation
    from symdp.model.mechanism import Mechanism

FORMATS = ("text", "latex", "mathml", "python", "c", "json")
_LONGEST = 1e6  # seconds
_GRACE = 5.0  # seconds for what no limit of its own ends, and for writing the result
_TABLE = 40.0  # seconds more for a program, which may hold a table of the loss


def print_derivation(job: Job, side: str, order: int, form: str, time_limit: float) -> None:
    """Derive and print.

    Raises
    ------
    InputError
        If an option breaks a rule.
    """
    direction(side, ("remove", "add"))
    if form not in FORMATS:
        hint = suggestion(form, FORMATS) or f"; there are {', '.join(FORMATS)}"
        raise InputError(f"--format {form!r:.60} is unknown{hint}")
    if not 0 <= time_limit <= _LONGEST:
        raise InputError(f"--time-limit {time_limit:g}: it must be from 0 to {_LONGEST:g} seconds")
    with working(f"derivation of {job.subject}"):
        mechanism = job.build_mechanism()
        seconds = time_limit + _GRACE + (_TABLE if form in ("python", "c") else 0.0)
        text = guarded(lambda: _derived(mechanism, side, order, form, time_limit), seconds)
    print(text, end="")


def _derived(mechanism: Mechanism, side: str, order: int, form: str, time_limit: float) -> str:
    from symdp.derive import derive

    return _WRITERS[form](derive(mechanism, side, time_limit), order)


def _text(derivation: Derivation, order: int) -> str:
    lines = derivation.to_text(order).splitlines()
    return "".join(f"{'  ' * line.startswith('  ')}{one_line(line)}\n" for line in lines)


def _json(derivation: Derivation, order: int) -> str:
    return json.dumps(derivation.to_json(order), allow_nan=False, ensure_ascii=False) + "\n"


def _python(derivation: Derivation, order: int) -> str:
    from symdp.law.standalone import to_python

    return to_python(derivation, order)


def _c(derivation: Derivation, order: int) -> str:
    from symdp.law.standalone import to_c

    return to_c(derivation, order)


_WRITERS: dict[str, Callable[[Derivation, int], str]] = {
    "text": _text,
    "latex": lambda d, order: d.to_latex(order) + "\n",
    "mathml": lambda d, order: d.to_mathml(order) + "\n",
    "python": _python,
    "c": _c,
    "json": _json,
}
