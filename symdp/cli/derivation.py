"""`symdp derive`: the derivation in the form that is asked for."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from symdp.cli import job as words
from symdp.cli import options
from symdp.cli.display import columns
from symdp.cli.job import Job
from symdp.cli.supervise import end_after_work
from symdp.cli.working import working
from symdp.errors import InputError, suggestion
from symdp.page.plain_text import WIDTH, transliterated

if TYPE_CHECKING:
    from symdp.derive import Derivation, EpochDerivation
    from symdp.derive.printed import Printed
    from symdp.model.mechanism import Mechanism

_PROGRAMS = ("python", "c", "javascript")
_SECTIONED = ("text", "latex", "mathml")
FORMATS = ("text", "latex", "mathml", *_PROGRAMS, "json", "page")
_LONGEST = 1e6  # seconds
_GRACE = 5.0  # seconds for what no limit of its own ends, and for writing the result
_FOR_NUMBERS = 60.0  # seconds for the law in numbers and the tail constants
_LEAST_WIDTH = 40  # columns; narrower formulas are all indent
_SAMPLE = "ρ₃ K″ √ ≤ − ℓ"  # what a stream must be able to print for Unicode formulas


@options.of_steps("composition")
def derive(
    *,
    job: Job,
    order: Annotated[
        str, typer.Option("--order", metavar="K", help="Show terms up to this order, 1 to 8.")
    ] = "2",
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="text, latex, mathml, json, a page with asserts that MyST executes: page, or a "
            "program: python, c, javascript.",
        ),
    ] = "text",
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="KEYS",
            help="These sections alone: mechanism, loss, cumulants, series, asymptotics, tails, "
            "composed, several with commas.",
        ),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(
            "--epsilon",
            metavar="E",
            help="With -n and a value for every parameter: formula, numbers and result of each "
            "term, beside the exact δ.",
        ),
    ] = None,
    time_limit: Annotated[
        str,
        typer.Option(
            "--time-limit", metavar="S", help="Seconds; what is not found by then stays numeric."
        ),
    ] = "20",
    direction: options.OneDirection = "remove",
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Also the steps: which rule found what, and where it was checked."
        ),
    ] = False,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Accepted as before; every program is the exact accountant."),
    ] = False,
) -> None:
    """Derive the privacy loss, its range and CGF, and the expansions of a mechanism."""
    terms = words.whole(order, "--order", 1, 8)
    limit = words.real(time_limit, "--time-limit")
    side = words.direction(direction, ("remove", "add"))
    if form not in FORMATS:
        hint = suggestion(form, FORMATS) or f"; there are {', '.join(FORMATS)}"
        raise InputError(f"--format {form!r:.60} is unknown{hint}")
    keys = tuple(key.strip() for key in only.split(",")) if only else ()
    if keys and form not in _SECTIONED:
        raise InputError(f"--only needs --format {', '.join(_SECTIONED)}, not {form}")
    if explain and form not in _SECTIONED:
        raise InputError(f"--explain needs --format {', '.join(_SECTIONED)}, not {form}")
    if exact and form not in _PROGRAMS:
        raise InputError(f"--exact needs --format {', '.join(_PROGRAMS)}, not {form}")
    if not 0 <= limit <= _LONGEST:
        raise InputError(f"--time-limit {limit:g}: it must be from 0 to {_LONGEST:g} seconds")
    at = None if epsilon is None else words.real(epsilon, "--epsilon")
    if at is not None and form not in ("text", "json"):
        raise InputError(f"--epsilon needs --format text or json, not {form}")
    if at is None and job.count is not None:
        raise InputError("-n puts numbers in: give --epsilon E as well")
    with working(f"derivation of {job.subject}"):
        mechanism = job.build_mechanism()
        end_after_work(limit + _GRACE)
        with job.of_its_file():
            if form == "page":
                print(_page(job, side, terms, limit), end="")
                return
            text = _derived(mechanism, side, terms, form, keys, limit)
            if explain:
                text += _steps(mechanism, side, form, limit)
            if at is not None:
                text = _with_values(text, job, mechanism, side, terms, at, form)
    print(text, end="")


def _page(job: Job, side: str, order: int, time_limit: float) -> str:
    """Return an executable page; values that were given are those at which it checks."""
    from symdp import mechanisms
    from symdp.derive import derive
    from symdp.model.specification import read_text
    from symdp.page.derivation_page import derivation_page

    if any((job.sampling, job.sensitivity, job.relation, job.shift, job.group, job.released)):
        raise InputError(
            "--format page: sampling, sensitivity, relation, shift, group and what is released "
            "stand in the mechanism's own file"
        )
    name = str(job.mechanism)
    values = {key: str(value) for key, value in words.bindings(job.values).items()}
    source = f"symdp.mechanisms.{name}"
    if name not in mechanisms.names():
        source = f"symdp.loads({read_text(name)!r})"
    return derivation_page(
        derive(mechanisms.resolve(name), side, time_limit), source, values, order
    )


def _derived(
    mechanism: Mechanism, side: str, order: int, form: str, only: tuple[str, ...],
    time_limit: float,
) -> str:  # fmt: skip
    from symdp.derive import derive, derive_cases, derive_epoch

    if _has_no_single_pair(mechanism):
        if form in _PROGRAMS:
            raise InputError(
                f"--format {form}: an epoch of random allocation has no density in closed form, "
                "and no program; text, latex, mathml and json show what it is made of"
            )
        return _WRITERS[form](derive_epoch(mechanism, side, time_limit), order, only)
    if form in _PROGRAMS:
        derivation = derive(mechanism, side, time_limit)
        from symdp.questions.programs import to_program

        return to_program(derivation, form)
    found = derive_cases(mechanism, side, time_limit)
    if len(found) == 1:
        return _WRITERS[form](found[0], order, only)
    end_after_work(len(found) * (time_limit / 2 + _GRACE))
    if form == "json":
        cases = {"name": mechanism.name, "cases": [d.to_json(order) for d in found]}
        return json.dumps(cases, allow_nan=False, ensure_ascii=False) + "\n"
    return "\n".join(_WRITERS[form](d, order, only) for d in found)


def _has_no_single_pair(mechanism: Mechanism) -> bool:
    """Return whether an epoch of random allocation is no pair of one variable."""
    from dataclasses import replace

    from symdp.model.allocation import MOST_FORMULAS, allocated_steps, outcomes

    steps = allocated_steps(mechanism)
    if steps is None or steps == 1:
        return False
    pair = replace(mechanism, sampling=None).pair()
    return pair.support.kind != "points" or outcomes(pair, steps) > MOST_FORMULAS


def _steps(mechanism: Mechanism, side: str, form: str, time_limit: float) -> str:
    """Return the step log; that of one step where an epoch has none."""
    from dataclasses import replace

    from symdp.derive import derive_cases
    from symdp.page import present
    from symdp.page.step_log import step_log

    if _has_no_single_pair(mechanism):
        mechanism = replace(mechanism, sampling=None)
    end_after_work(time_limit + _GRACE)
    found = [step_log(d) for d in derive_cases(mechanism, side, time_limit)]
    if form == "latex":
        return "\n".join(present.latex_of(one) for one in found)
    if form == "mathml":
        return "".join(f"{line.mathml()}\n" for one in found for line in one.lines if line.left)
    width = max(_LEAST_WIDTH, min(WIDTH, columns(WIDTH)))
    parts = [present.text_of(one, width, not _prints_unicode()) for one in found]
    return "\n" + "\n".join(parts) + "\n"


def _with_values(
    text: str, job: Job, mechanism: Mechanism, side: str, order: int, epsilon: float, form: str
) -> str:
    """Append the calculation in numbers."""
    from symdp.derive import derive
    from symdp.page.worked import in_columns, sheets

    composition = job.build()
    end_after_work(_FOR_NUMBERS)
    derivation = None if _has_no_single_pair(mechanism) else derive(mechanism, side)
    found = sheets(composition, derivation, epsilon, order, words.direction(side))
    if form == "json":
        own = [{"title": title, "rows": [list(row) for row in rows]} for title, rows in found]
        document = json.loads(text) | {"values": own}
        return json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n"
    width = max(_LEAST_WIDTH, min(WIDTH, columns(WIDTH)))
    parts = [
        f"{title} at ε = {epsilon:g}, n = {composition.count}\n{in_columns(rows, width)}\n"
        for title, rows in found
    ]
    shown = "\n".join([text, *parts])
    return shown if _prints_unicode() else transliterated(shown)


def _text(derivation: Printed, order: int, only: tuple[str, ...]) -> str:
    width = max(_LEAST_WIDTH, min(WIDTH, columns(WIDTH)))
    lines = derivation.to_text(order, only, width, not _prints_unicode()).splitlines()
    return "".join(f"{_printable(line)}\n" for line in lines)


def _prints_unicode() -> bool:
    """Whether the output can print the signs of formulas."""
    try:
        _SAMPLE.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _printable(line: str) -> str:
    """Return a line without control characters, so that no terminal obeys it."""
    return "".join(c for c in line if unicodedata.category(c)[0] != "C")


def _json(derivation: Derivation | EpochDerivation, order: int) -> str:
    return json.dumps(derivation.to_json(order), allow_nan=False, ensure_ascii=False) + "\n"


_WRITERS: dict[str, Callable[[Derivation | EpochDerivation, int, tuple[str, ...]], str]] = {
    "text": _text,
    "latex": lambda d, order, only: d.to_latex(order, only) + "\n",
    "mathml": lambda d, order, only: d.to_mathml(order, only) + "\n",
    "json": lambda d, order, _: _json(d, order),
}
