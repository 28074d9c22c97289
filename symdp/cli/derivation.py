"""`symdp derive`: the derivation in the form that is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from symdp.cli.display import one_line
from symdp.cli.job import Job, direction
from symdp.cli.supervise import end_after_work
from symdp.cli.working import working
from symdp.cli.wrapping import wrapped
from symdp.errors import InputError, suggestion
from symdp.model.allocation import has_no_single_pair

if TYPE_CHECKING:
    from symdp.derive import Derivation, EpochDerivation
    from symdp.model.mechanism import Mechanism

_PROGRAMS = ("python", "c")
FORMATS = ("text", "latex", "mathml", "python", "c", "json")
_LONGEST = 1e6  # seconds
_GRACE = 5.0  # seconds for what no limit of its own ends, and for writing the result
_TABLE = 40.0  # seconds more for a program, which may hold a table of the loss


def print_derivation(
    job: Job, side: str, order: int, form: str, time_limit: float, *, exact: bool = False
) -> None:
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
    if exact and form not in _PROGRAMS:
        raise InputError(f"--exact needs --format {' or '.join(_PROGRAMS)}, not {form}")
    if not 0 <= time_limit <= _LONGEST:
        raise InputError(f"--time-limit {time_limit:g}: it must be from 0 to {_LONGEST:g} seconds")
    with working(f"derivation of {job.subject}"):
        mechanism = job.build_mechanism()
        seconds = time_limit + _GRACE + (_TABLE if form in _PROGRAMS else 0.0)
        end_after_work(seconds)
        text = _derived(mechanism, side, order, form, time_limit, exact)
    print(text, end="")


def _derived(
    mechanism: Mechanism, side: str, order: int, form: str, time_limit: float, exact: bool
) -> str:
    from symdp.derive import derive, derive_epoch

    if has_no_single_pair(mechanism):
        if form in _PROGRAMS:
            raise InputError(
                f"--format {form}: an epoch of random allocation has no density in closed form, "
                "and no program; text, latex, mathml and json show what it is made of"
            )
        return _WRITERS[form](derive_epoch(mechanism, side, time_limit), order)
    derivation = derive(mechanism, side, time_limit)
    if form in _PROGRAMS:
        from symdp.law.standalone import to_c, to_python

        return (to_c if form == "c" else to_python)(derivation, order, exact=exact)
    return _WRITERS[form](derivation, order)


def _text(derivation: Derivation | EpochDerivation, order: int) -> str:
    lines = derivation.to_text(order).splitlines()
    shown = (f"{'  ' * line.startswith('  ')}{one_line(line)}" for line in lines)
    return "".join(f"{wrapped(line)}\n" for line in shown)


def _json(derivation: Derivation | EpochDerivation, order: int) -> str:
    return json.dumps(derivation.to_json(order), allow_nan=False, ensure_ascii=False) + "\n"


_WRITERS: dict[str, Callable[[Derivation | EpochDerivation, int], str]] = {
    "text": _text,
    "latex": lambda d, order: d.to_latex(order) + "\n",
    "mathml": lambda d, order: d.to_mathml(order) + "\n",
    "json": _json,
}
