"""Tables of a section: ε by every accountant, and their errors against truth."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import mpmath

from symdp.decimal_text import rounded, rounded_exponential
from symdp.page.blocks import Block, Folded, Listing, Paragraph, Plot, Table
from symdp.page.plot import Series
from symdp.page.verification import Check, Truth

if TYPE_CHECKING:
    from symdp.page.analysis import EpsilonTruth, Results
    from symdp.questions.guarantee import Guarantee

_MORE = 5  # digits of a number that is rounded to one side
_SMALLEST_ERROR = 1e-16  # that a picture shows
_MARKED = "* marks a number that its method warns of."


def epsilon_table(results: Results) -> list[Block]:
    """Return ε at the report's δ by truth and by every accountant."""
    rows: list[list[str]] = []
    truth = results.truth
    known = truth is not None and truth.exact is not None
    if truth is not None and known:
        value = truth_text(truth)
        name = "certified" if truth.certified else "truth"
        rows.append([name, value, "", "", f"{truth.digits} digits"])
    elif truth is not None:
        rows.append(["truth", "", "", "", "not reached"])
    notes = [f"truth: {truth.reason}"] if truth is not None and not known else []
    for answer in results.answers:
        gap = ""
        if truth is not None and known and truth.exact > 0:
            with mpmath.workdps(30):
                gap = f"{float(mpmath.mpf(answer.epsilon) / truth.exact - 1):+.1e}"
        value = answer.epsilon_text() + _mark(answer)
        rows.append([answer.method, value, gap, f"{answer.seconds:.2g}", answer.kind])
        if answer.advice:
            notes.append(_note(answer.method, answer.advice))
    rows += [[name, "", "", "", "none"] for name, _ in results.failures]
    notes += _grouped(results.failures)
    head = ["method", "ε", "relative error", "seconds", "kind"]
    caption = f"ε of every accountant. {_MARKED}" if notes else ""
    table = Table(
        head, rows, caption, numbers_from=1, numbers_to=4, strong=frozenset({0} if known else ())
    )
    return [table, *_listing(notes)]


def truth_text(truth: EpsilonTruth) -> str:
    """Return the true ε to the digits that it has, 17 at most, rounded up."""
    return rounded(
        Decimal(mpmath.nstr(truth.exact, truth.digits + _MORE)), min(17, truth.digits), "up"
    )


def check_blocks(results: Results, name: str) -> list[Block]:
    """Return relative errors of δ: a figure, a table, and the values that they come from.

    Parameters
    ----------
    results
        With the checks.
    name
        Distinguishes this section's figures from others on the page.
    """
    by_place: dict[float, list[Check]] = {}
    for one in results.checks:
        by_place.setdefault(one.truth.epsilon, []).append(one)
    columns = list(by_place.values())
    if not columns:
        return [Paragraph("No place of the profile could be checked.")]
    truths = [checks[0].truth for checks in columns]
    by_method = list(zip(*columns, strict=True))
    errors = [_row(own, [_error(c) for c in own]) for own in by_method]
    values = [_row(own, [_answer(c) for c in own]) for own in by_method]
    bad = frozenset(place + 1 for place, own in enumerate(by_method) if any(c.broken for c in own))
    digits = min((t.digits for t in truths if t.value is not None), default=0)
    proved = " or certified" if any(t.certified for t in truths) else ""
    what = f"{digits} digits{proved}" if digits else "not reached"
    first = ["truth", what, *map(_value, truths)]
    head = ["method", "kind", *(f"ε = {t.epsilon:g}" for t in truths)]
    caption = f"Relative error of δ against a truth of many digits; {_MARKED}"
    table = Table(head, [first, *errors], caption, 2, strong=frozenset({0}), bad=bad)
    blocks: list[Block] = [*_figure(by_method, name), table]
    if bad:
        blocks.append(Paragraph("A method's own bounds were violated: this is a bug.", "warning"))
    reasons = _grouped([(f"truth at ε = {t.epsilon:g}", t.reason) for t in truths if t.reason])
    reasons += _grouped([(c.method, c.reason) for c in results.checks if c.reason])
    caption = f"δ by every method. {_MARKED}"
    everything = Table(head, [first, *values], caption, 2, strong=frozenset({0}))
    if not digits:
        return [everything, *_listing(reasons)]
    return [*blocks, *_listing(reasons), Folded("δ by every method", [everything])]


def _figure(by_method: list[tuple[Check, ...]], name: str) -> list[Block]:
    """|relative error| of each method at every ε."""
    curves = []
    for own in by_method:
        known = [
            (c.truth.epsilon, math.log(max(abs(c.error), _SMALLEST_ERROR)))
            for c in own
            if c.error is not None
        ]
        if known:
            epsilons, logs = zip(*known, strict=True)
            curves.append(Series(own[0].method, epsilons, logs))
    caption = (
        "How far every accountant's δ is from the truth: the absolute relative error, on a "
        "logarithmic axis. What lies below 1e-16 is drawn there."
    )
    return [Plot(curves, caption, f"{name}-errors", of_errors=True)] if curves else []


def _row(checks: tuple[Check, ...], cells: list[str]) -> list[str]:
    kinds = dict.fromkeys(c.answer.kind for c in checks if c.answer)
    return [checks[0].method, ", ".join(kinds), *cells]


def _mark(answer: Guarantee) -> str:
    """Return the mark of an answer that left its method's regime."""
    return "*" if answer.advice else ""


def _error(one: Check) -> str:
    if one.answer is None:
        return "none"
    mark = _mark(one.answer)
    if one.broken:
        mark += " violated"
    return ("" if one.error is None else f"{one.error:+.1e}") + mark


def _answer(one: Check) -> str:
    return "none" if one.answer is None else one.answer.delta_text(8) + _mark(one.answer)


def _value(truth: Truth) -> str:
    return "not reached" if truth.value is None else _decimal(truth.log)


def _decimal(log: float) -> str:
    return rounded_exponential(log, 8, "up")


def _note(name: str, text: str) -> str:
    return text if text.startswith(name) else f"{name}: {text}"


def _grouped(pairs: list[tuple[str, str]]) -> list[str]:
    """One line for each reason, with the names of all who gave it."""
    names: dict[str, dict[str, None]] = {}
    for name, reason in pairs:
        names.setdefault(reason, {})[name] = None
    return [_note(", ".join(own), reason) for reason, own in names.items()]


def _listing(lines: list[str]) -> list[Block]:
    return [Listing(list(dict.fromkeys(lines)))] if lines else []
