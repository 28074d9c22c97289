"""`symdp derive`: the derivation in the form that is asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from symdp.cli import job as words
from symdp.cli import options
from symdp.cli.display import columns, one_line
from symdp.cli.job import Job
from symdp.cli.supervise import end_after_work
from symdp.cli.working import working
from symdp.errors import InputError, suggestion

if TYPE_CHECKING:
    from symdp.derive import Derivation, EpochDerivation
    from symdp.model.mechanism import Mechanism

_PROGRAMS = ("python", "c")
FORMATS = ("text", "latex", "mathml", "python", "c", "json")
_LONGEST = 1e6  # seconds
_GRACE = 5.0  # seconds for what no limit of its own ends, and for writing the result
_TABLE = 40.0  # seconds more for a program, which may hold a table of the loss
WIDTH = 100  # columns of a text, which fit a terminal and a page
_INDENT = "      "  # of the lines that go on
_FIRST_BREAK = 0.4  # of the width: a line is not broken before, lest it be all indent
# Before a sum's next term or a factor, or after a comma.
_BREAKS = re.compile(r" (?=[+-] )|(?<!\*)(?=\*(?!\*))(?<=[\w)])|(?<=,) |(?= if )")


@options.of_steps("count", "composition")
def derive(
    *,
    job: Job,
    order: Annotated[
        str, typer.Option("--order", metavar="K", help="Show terms up to this order, 1 to 8.")
    ] = "2",
    form: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="text, latex, mathml, python, c or json."),
    ] = "text",
    time_limit: Annotated[
        str,
        typer.Option(
            "--time-limit", metavar="S", help="Seconds; what is not found by then stays numeric."
        ),
    ] = "20",
    direction: options.OneDirection = "remove",
    exact: Annotated[
        bool,
        typer.Option("--exact", help="With c or python: the exact accountant, not the estimate."),
    ] = False,
) -> None:
    """Derive the privacy loss, its range and CGF, and the expansions of a mechanism."""
    terms = words.whole(order, "--order", 1, 8)
    limit = words.real(time_limit, "--time-limit")
    side = words.direction(direction, ("remove", "add"))
    if form not in FORMATS:
        hint = suggestion(form, FORMATS) or f"; there are {', '.join(FORMATS)}"
        raise InputError(f"--format {form!r:.60} is unknown{hint}")
    if exact and form not in _PROGRAMS:
        raise InputError(f"--exact needs --format {' or '.join(_PROGRAMS)}, not {form}")
    if not 0 <= limit <= _LONGEST:
        raise InputError(f"--time-limit {limit:g}: it must be from 0 to {_LONGEST:g} seconds")
    with working(f"derivation of {job.subject}"):
        mechanism = job.build_mechanism()
        end_after_work(limit + _GRACE + (_TABLE if form in _PROGRAMS else 0.0))
        with job.of_its_file():
            text = _derived(mechanism, side, terms, form, limit, exact)
    print(text, end="")


def _derived(
    mechanism: Mechanism, side: str, order: int, form: str, time_limit: float, exact: bool
) -> str:
    from symdp.derive import derive, derive_cases, derive_epoch
    from symdp.model.allocation import has_no_single_pair

    if has_no_single_pair(mechanism):
        if form in _PROGRAMS:
            raise InputError(
                f"--format {form}: an epoch of random allocation has no density in closed form, "
                "and no program; text, latex, mathml and json show what it is made of"
            )
        return _WRITERS[form](derive_epoch(mechanism, side, time_limit), order)
    if form in _PROGRAMS:
        derivation = derive(mechanism, side, time_limit)
        from symdp.law.standalone import to_c, to_python

        return (to_c if form == "c" else to_python)(derivation, order, exact=exact)
    found = derive_cases(mechanism, side, time_limit)
    if len(found) == 1:
        return _WRITERS[form](found[0], order)
    end_after_work(len(found) * (time_limit / 2 + _GRACE))
    if form == "json":
        cases = {"name": mechanism.name, "cases": [d.to_json(order) for d in found]}
        return json.dumps(cases, allow_nan=False, ensure_ascii=False) + "\n"
    return "\n".join(_WRITERS[form](d, order) for d in found)


def _text(derivation: Derivation | EpochDerivation, order: int) -> str:
    lines = derivation.to_text(order).splitlines()
    shown = (f"{'  ' * line.startswith('  ')}{one_line(line)}" for line in lines)
    width = min(WIDTH, columns(WIDTH))
    return "".join(f"{wrapped(line, width)}\n" for line in shown)


def _json(derivation: Derivation | EpochDerivation, order: int) -> str:
    return json.dumps(derivation.to_json(order), allow_nan=False, ensure_ascii=False) + "\n"


_WRITERS: dict[str, Callable[[Derivation | EpochDerivation, int], str]] = {
    "text": _text,
    "latex": lambda d, order: d.to_latex(order) + "\n",
    "mathml": lambda d, order: d.to_mathml(order) + "\n",
    "json": _json,
}


def wrapped(line: str, width: int = WIDTH) -> str:
    """Return a line on as many lines as it needs; joined again it is the same formula.

    Examples
    --------
    >>> print(wrapped("  f = a*(b + c) + d*(e + f)", 18))
      f = a*(b + c)
          + d*(e + f)
    """
    found: list[str] = []
    rest = line
    while len(rest) > width:
        place = _best_break(rest, width)
        if place is None:
            break
        found.append(rest[:place].rstrip())
        rest = _INDENT + rest[place:].lstrip()
    return "\n".join([*found, rest])


def _best_break(line: str, width: int) -> int | None:
    """Return the last place within the width at which the fewest brackets are open."""
    depths, depth = [], 0
    for sign in line:
        depth += (sign == "(") - (sign == ")")
        depths.append(depth)
    least = max(int(_FIRST_BREAK * width), len(_INDENT) + 1)
    places = [m.start() for m in _BREAKS.finditer(line) if least <= m.start() <= width]
    if not places:  # of a sentence, between words
        words = [k for k in range(least, width + 1) if line[k] == " "]
        if words:
            return words[-1]
        after = (m.start() for m in _BREAKS.finditer(line) if m.start() > len(_INDENT) + 1)
        return next((p for p in after), None)
    return min(places, key=lambda place: (depths[place - 1], -place))
