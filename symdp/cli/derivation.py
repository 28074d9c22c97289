"""`symdp derive`: the derivation in the form that is asked for."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from symdp.cli import job as words
from symdp.cli.asking import LONGEST, seconds_of
from symdp.cli.display import check_output, columns, say
from symdp.cli.job import Job
from symdp.cli.supervise import end_after_work
from symdp.cli.working import working
from symdp.durable import replace_text
from symdp.errors import InputError, suggestion
from symdp.page.document import Block, Formulas, Sentence
from symdp.page.html import formula
from symdp.page.latex import latex_blocks
from symdp.page.node import GREEK_NAMES
from symdp.page.text import WIDTH, to_text

if TYPE_CHECKING:
    from symdp.derive import Derivation
    from symdp.model.mechanism import Mechanism
    from symdp.page.worked import Row

    _Numbers = tuple[list[tuple[str, list[Row]]], str]

_PROGRAMS = ("python", "c", "javascript")
_SECTIONED = ("text", "latex", "mathml")
_WITH_NUMBERS = ("text", "json")
_CHECKED = ("text", "latex")
_NEEDED = {  # by an option
    "--only": _SECTIONED, "--explain": _SECTIONED, "--exact": _PROGRAMS,
    "--check": _CHECKED, "--epsilon": _WITH_NUMBERS, "--delta": _WITH_NUMBERS, "--all": _SECTIONED,
    "--case": (*_SECTIONED, "json"),
}  # fmt: skip
FORMATS = ("text", "latex", "mathml", *_PROGRAMS, "json", "page")
_SECTIONS = (
    *("mechanism", "facts", "loss", "cumulants", "series", "asymptotics", "tails", "composed"),
    *("epoch", "steps"),
)
_LEAST_WORD = 4  # letters of what is no letter with an index
_GRACE = 5.0  # seconds for what no limit of its own ends, and for writing the result
_FOR_NUMBERS = 60.0  # seconds for the law in numbers and the tail constants
_MOST_CASES = 16
_LEAST_WIDTH = 40  # columns; narrower formulas are all indent
_SAMPLE = "ρ₃ K″ √ ≤ − ℓ"  # what a stream must be able to print for Unicode formulas


def derive(
    *,
    job: Job,
    order: str | None = None,
    form: str = "text",
    only: str | None = None,
    epsilon: str | None = None,
    delta: str | None = None,
    time_limit: str = "20",
    direction: str = "remove",
    explain: bool = False,
    whole: bool = False,
    exact: bool = False,
    check: bool = False,
    case: str | None = None,
    output: Path | None = None,
) -> None:
    """Derive the privacy loss, its range and CGF, and the expansions of a mechanism."""
    terms = words.whole(order or "2", "--order", 1, 8)
    seconds = seconds_of(time_limit)
    limit = LONGEST
    if seconds is not None:
        limit = seconds
    side = words.direction(direction, ("remove", "add"))
    if check_output(output, "tex") == "tex" and form == "text":
        form = "latex"
    if output is not None and form != "latex":
        raise InputError(f"-o writes a document of --format latex, not {form}")
    if form not in FORMATS:
        hint = suggestion(form, FORMATS) or f"; there are {', '.join(FORMATS)}"
        raise InputError(f"--format {form!r:.60} is unknown{hint}")
    keys: tuple[str, ...] = ()
    if only:
        keys = tuple(key.strip() for key in only.split(","))
    _refuse_unknown(keys)
    options = {"--only": keys, "--explain": explain, "--exact": exact, "--epsilon": epsilon,
             "--delta": delta, "--all": whole, "--check": check, "--case": case}  # fmt: skip
    for option, value in options.items():
        if value and form not in _NEEDED[option]:
            raise InputError(f"{option} needs --format {', '.join(_NEEDED[option])}, not {form}")
    number = words.optional(words.whole, case, "--case", 1, _MOST_CASES)
    shown = None
    if whole or order is not None:
        shown = terms  # of the series of every mechanism
    if epsilon is not None and delta is not None:
        raise InputError("give --epsilon E or --delta D, one of the two")
    at = words.optional(words.real, epsilon, "--epsilon")
    at_delta = words.optional(words.delta, delta)
    with_numbers = at is not None or at_delta is not None
    if not with_numbers and job.count is not None:
        raise InputError("-n puts numbers in: give --epsilon E or --delta D as well")
    with working(f"derivation of {job.subject}"):
        mechanism = job.build_mechanism()
        end_after_work(limit + _GRACE)
        with job.of_its_file():
            if form == "page":
                print(_page(job, side, terms, limit), end="")
                return
            if form in _PROGRAMS:
                print(_program(mechanism, side, form, limit), end="")
                return
            derivation = _derived(mechanism, side, limit)
            if number is not None:
                derivation = _of_number(derivation, number)
            numbers = None
            if with_numbers:
                numbers = _sheets(job, mechanism, side, terms, at, at_delta)
            if form == "json":
                print(_json(derivation, terms, numbers))
                return
            steps = []
            if explain:
                steps += _steps(mechanism, side, limit)
            if check:
                steps += _checks(derivation)
            if form == "text":
                text = _text(derivation, shown, keys, steps, numbers)
            elif form == "latex":
                parts = [derivation.to_latex(shown, keys)]
                if steps:
                    parts.append(latex_blocks(steps))
                text = "\n".join(parts)
            else:
                lines = (line for b in steps if isinstance(b, Formulas) for line in b.lines)
                elements = (formula(line) for line in lines if line.left is not None)
                text = "\n".join([derivation.to_mathml(shown, keys), *elements]) + "\n"
    if output is None:
        print(text, end="")
        return
    from symdp.page.derivation import to_document

    replace_text(output, to_document(text))
    say(f"written: {output}")


def _refuse_unknown(keys: Sequence[str]) -> None:
    """Refuse, before any work, a word that is neither a section nor begins a formula."""
    for key in keys:
        is_word = len(key) >= _LEAST_WORD and key.isalpha() and key.islower()
        if is_word and key not in (*_SECTIONS, *GREEK_NAMES.values()):
            hint = suggestion(key, _SECTIONS) or f"; there are {', '.join(_SECTIONS)}"
            raise InputError(f"no section or formula is called {key!r:.40}{hint}")


def _checks(derivation: Derivation) -> list[Block]:
    """Return the checks of each derivation of a pair on a line."""
    from symdp.derive import PairDerivation
    from symdp.derive.child import or_reason
    from symdp.page.derivation import check_blocks

    blocks: list[Block] = []
    for d in derivation.cases:
        if not isinstance(d, PairDerivation) or d.pair.alternatives or d.points:
            raise InputError("--check needs a pair of densities on a line or on the integers")
        blocks += or_reason(partial(check_blocks, d), lambda why: [Sentence(f"no checks: {why}")])
    return blocks


def _page(job: Job, side: str, order: int, time_limit: float) -> str:
    """Return an executable page; values that were given are those at which it checks."""
    from symdp.derive.child import or_reason
    from symdp.derive.derivation import derive_cases, derive_pair
    from symdp.mechanisms import names, resolve
    from symdp.model.dominating import is_on_vectors
    from symdp.model.relation import is_local
    from symdp.model.specification import read_text
    from symdp.page.derivation import to_page

    if any((job.sampling, job.sensitivity, job.relation, job.shift, job.group, job.released)):
        raise InputError(
            "--format page: sampling, sensitivity, relation, shift, group and what is released "
            "stand in the mechanism's own file"
        )
    name = str(job.mechanism)
    values = {key: str(value) for key, value in words.bindings(job.values).items()}
    is_built_in = name in names()
    loaded = resolve(name)
    if is_built_in:
        source = f"symdp.mechanisms.{name}"
    else:
        source = f"symdp.Mechanism.from_toml({read_text(name)!r})"
    if is_on_vectors(loaded) or is_local(loaded):
        raise InputError(
            "--format page: noise on vectors and local randomizers have text, latex, mathml and "
            "json"
        )
    derivation = or_reason(lambda: derive_pair(loaded, side, time_limit), lambda _: None)
    if (
        derivation is None
    ):  # values decide what symbols leave open, or the first of all orders is shown
        derivation = derive_cases(loaded(**values), side, time_limit)[0]
        source += f"(**{values!r}).assuming({list(derivation.mechanism.assumptions)!r})"
        values = {}
    return to_page(derivation, source, values, order)


def _program(mechanism: Mechanism, side: str, form: str, time_limit: float) -> str:
    from symdp.derive import derive
    from symdp.derive.without_pair.epoch import has_no_single_pair

    if has_no_single_pair(mechanism):
        raise InputError(
            f"--format {form}: an epoch of random allocation has no density in closed form, "
            "and no program; text, latex, mathml and json show what it is made of"
        )
    return derive(mechanism, side, time_limit).to_program(form)


def _derived(mechanism: Mechanism, side: str, time_limit: float) -> Derivation:
    """Return the derivation, with the time that each of several orders may take for its page."""
    from symdp.derive import derive

    derivation = derive(mechanism, side, time_limit)
    if len(derivation.cases) > 1:
        end_after_work(len(derivation.cases) * (time_limit / 2 + _GRACE))
    return derivation


def _steps(mechanism: Mechanism, side: str, time_limit: float) -> list[Block]:
    """Return the step log; that of one step where an epoch has none."""
    from symdp.derive.derivation import derive_cases
    from symdp.derive.without_pair.epoch import has_no_single_pair
    from symdp.page.sections.step_log import step_log

    if has_no_single_pair(mechanism):
        mechanism = replace(mechanism, sampling=None)
    end_after_work(time_limit + _GRACE)
    return [b for d in derive_cases(mechanism, side, time_limit) for b in step_log(d).blocks()]


def _sheets(
    job: Job,
    mechanism: Mechanism,
    side: str,
    order: int,
    epsilon: float | None,
    delta: float | None,
) -> _Numbers:
    """Return the calculation in numbers: titles with their rows, and what they are the numbers of.

    What computes them is loaded only then.
    """
    from symdp.derive.derivation import derive_pair
    from symdp.derive.without_pair.epoch import has_no_single_pair
    from symdp.page.worked import sheets

    composition = job.build()
    end_after_work(_FOR_NUMBERS)
    if epsilon is None:
        assert delta is not None
        epsilon = composition.epsilon(delta).at_most  # of both directions
    derivation = None
    if not has_no_single_pair(mechanism):
        derivation = derive_pair(mechanism, side)
    tables = sheets(composition, derivation, epsilon, order, words.direction(side))
    at = f" at ε = {epsilon:g}, n = {composition.n}"
    if len(composition.sides("both")) > 1:
        at += f", {side} direction"
    return tables, at


def _of_number(derivation: Derivation, number: int) -> Derivation:
    """Return one of the cases, counted from 1."""
    cases = derivation.cases
    if number > len(cases):
        count = f"{len(cases)} cases"
        if len(cases) == 1:
            count = "one case"
        raise InputError(f"--case {number}: this mechanism has {count}")
    return cases[number - 1]


def _text(
    derivation: Derivation,
    order: int | None,
    only: tuple[str, ...],
    steps: list[Block],
    numbers: _Numbers | None,
) -> str:
    width = max(_LEAST_WIDTH, min(WIDTH, columns(WIDTH)))
    ascii_only = not _prints_unicode()
    parts = [derivation.to_text(order, only, width, ascii_only)]
    if numbers is not None:
        from symdp.page.worked import sheet_blocks

        steps = [*steps, *sheet_blocks(*numbers)]
    if steps:
        parts.append(to_text(steps, width, ascii_only))
    return "\n".join(map(_printable, ("\n\n".join(parts) + "\n").split("\n")))


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


def _json(derivation: Derivation, order: int, numbers: _Numbers | None) -> str:
    document = derivation.to_json(order)
    if numbers is not None:
        document["values"] = [
            {"title": title, "rows": [list(row) for row in rows]} for title, rows in numbers[0]
        ]
    return json.dumps(document, allow_nan=False, ensure_ascii=False)
