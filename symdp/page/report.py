"""A report as a document: a promise, what was derived, ε by every accountant, and truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING

import mpmath
import sympy as sp

from symdp.citation import REFERENCES, bibtex, tag_of
from symdp.decimal_text import Side, given, rounded, rounded_exponential
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import Deadline, time_limit, worked
from symdp.model.relation import SUBSTITUTION, ZERO_OUT
from symdp.page.derivation import explained, symbols_of
from symdp.page.document import (
    Block,
    Command,
    Document,
    Figure,
    Folded,
    Formulas,
    Heading,
    Listing,
    Section,
    Sentence,
    Table,
)
from symdp.page.formula import finished
from symdp.page.plot import Series
from symdp.page.sections.loss import cgf_section, density_lines, loss_section
from symdp.page.sections.series import corrections, tails_section
from symdp.page.verification import (
    FAILURES,
    GUIDES,
    Check,
    Results,
    Truth,
    analysing,
    default_range,
    different_sides,
    evenly,
    reason_of,
    sample,
)
from symdp.tolerances import LARGEST_EXPONENT, MORE_TIME, SOME_TIME

if TYPE_CHECKING:
    from flint import arb

    from symdp.arguments import MethodName
    from symdp.derive import PairDerivation
    from symdp.derive.tails import TailConstant
    from symdp.model.mechanism import Mechanism
    from symdp.model.relation import Protection
    from symdp.questions.composition import Composition
    from symdp.questions.guarantee import Guarantee


_CUMULANTS = 4  # in numbers of all steps
_ORDER = 2  # of the series that are shown
_OTHER = {"remove": "P against Q", "add": "Q against P"}
_DENSITIES = {
    False: "Densities: Q without the record, P with it",
    True: "Densities: P with one value of the record, Q with another",
}


def mechanism_blocks(mechanism: Mechanism, count: int) -> list[Block]:
    """Return what one mechanism is, and its densities."""
    from symdp.derive.derivation import derive_pair

    blocks: list[Block] = [Heading(3, _headline(mechanism, count))]
    if mechanism.description:
        blocks.append(Sentence(mechanism.description))
    lines = density_lines(derive_pair(mechanism))
    densities = finished(Section("", "", tuple(lines)))
    blocks.append(Heading(4, _DENSITIES[mechanism.is_mirrored]))
    blocks.append(Formulas(densities.shown()))
    return blocks


def derivation_blocks(
    mechanism: Mechanism, count: int, epsilon: float | None
) -> Iterator[Sequence[Block]]:
    """Yield loss, law of the loss, CGF, cumulants and tails of one mechanism, as they come."""
    from symdp.derive.derivation import derive_pair

    derivation = derive_pair(mechanism)
    larger = derivation.dominating_direction
    yield [
        Heading(3, f"Derived from {_headline(mechanism, count)}"),
        Sentence(_which(larger.value, larger.proof)),
    ]
    if larger.value == "both":
        yield from _direction(derivation, count, epsilon, "")
        return
    for side in _OTHER:
        of_side = derivation
        if side != derivation.direction:
            of_side = derive_pair(mechanism, side)
        yield from _direction(of_side, count, epsilon, f", {side} direction")


def _headline(mechanism: Mechanism, count: int) -> str:
    values = ", ".join(f"{name} = {value}" for name, value in mechanism.values.items())
    steps = f"{count} steps"
    if count == 1:
        steps = "1 step"
    headline = f"{mechanism.title or mechanism.name}, {steps}"
    if values:
        headline += f", {values}"
    if mechanism.sampling:
        sampling = mechanism.sampling.describe().replace("_", " ")
        headline += f", {sampling}"
    return headline


def _which(value: str, proof: str) -> str:
    if value == "both":
        return f"Both directions have the same privacy profile: {proof}. One is shown."
    if value == "unknown":
        return f"Which direction is the worse one is not known in advance: {proof}. Both are shown."
    return f"For one step the {value} direction is the worse one: {proof}. Both are shown."


def _direction(
    d: PairDerivation, count: int, epsilon: float | None, suffix: str
) -> Iterator[Sequence[Block]]:
    """Yield the sections of one direction; `suffix` tells the headings of two directions apart."""
    notes: dict[str, str] = {"tails": "Numbers are ends of proved enclosures, shown to six digits"}
    if epsilon is not None:
        notes["tails"] += f"; bounds on tails are for n = {count} steps at ε = {epsilon:.6g}"
    makers: list[Callable[[], Section]] = [lambda: loss_section(d)]
    if not d.is_disjoint:
        makers.append(lambda: cgf_section(d, _ORDER))
        makers.append(lambda: tails_section(d, d.tails, _tail_values(d, count, epsilon)))
    for make in makers:
        for part in explained(d, [make()], symbols_of(d)):
            if d.atoms and part.key == "loss":
                notes["loss"] = (
                    "ω and F are those of the continuous part; the atoms above are apart."
                )
            if part.key == "cumulants" and d.cgf.expression is not None:
                tilts = ", ".join(str(tilt).replace("*I", "i") for tilt in d.cgf.checked_at)
                note = f"K(t) was compared with numerical integrals at t = {tilts}."
                notes["cumulants"] = note
            titled = replace(part, title=f"{part.title}{suffix}")
            blocks: list[Block] = [*titled.blocks(3)]
            if part.key in notes:
                blocks.append(Sentence(notes[part.key], "quiet"))
            yield blocks


def cumulant_table(composition: Composition, sides: tuple[str, ...]) -> list[Block]:
    """Return the cumulants of the whole composition in numbers, under both laws."""
    rows = []
    notes = []
    for side in sides:
        suffix = ""
        if len(sides) > 1:
            suffix = f" ({side})"
        for tilt, measure in ((0.0, "P"), (-1.0, "Q")):
            try:
                values = composition.law(side).cumulants(tilt, _CUMULANTS)
            except AccuracyError as error:
                notes.append(f"{measure}{suffix}: {error}")
                continue
            label = f"{measure}, t = {tilt:g}{suffix}".replace("-", "−")
            rows.append([label, *(_rounded_number(float(v)) for v in values)])
    head = ["the loss under", "mean κ₁", "variance κ₂", "κ₃", "κ₄"]
    caption = "Cumulants of the total finite loss of all steps."
    blocks: list[Block] = []
    if rows:
        blocks.append(Table(head, rows, caption, range(1, len(head))))
    if notes:
        blocks.append(Listing(notes))
    return blocks


def _tail_values(d: PairDerivation, count: int, epsilon: float | None) -> dict[str, str]:
    """The tail constants in numbers, by name."""
    deadline = Deadline(SOME_TIME, worked)
    # What has a formula is quick; a supremum over tilts is not, and comes last.
    order = sorted(d.tails, key=lambda c: (c.expression is None, not c.arguments))
    return {c.name: _value(c, count, epsilon, deadline) for c in order}


def _value(constant: TailConstant, count: int, epsilon: float | None, deadline: Deadline) -> str:
    """A constant in numbers, or why not; nothing where it needs what nobody chose."""
    places = {"epsilon": epsilon, "n": count, "t": 0}
    values = {name: places.get(name) for name in constant.arguments}
    if None in values.values() or constant.expression in (sp.oo, -sp.oo):
        return ""
    if deadline.is_past:
        return "not evaluated: the constants before it took the time"
    try:
        with deadline.within():
            ball = constant.value(**values)
    except (AccuracyError, InputError) as error:
        reason = str(error)
        if constant.reason and constant.reason in reason:
            return ""
        return f"no number: {reason}"
    number = _ball(ball)
    if "t" in values:
        return f"{number} at t = 0"
    return number


def _ball(ball: arb) -> str:
    """Return a proved number: its digits where all of its ball has them, else its upper end."""
    low = high = float(ball.mid())
    if not (ball.is_exact() and ball == low):
        low = math.nextafter(float(ball.lower()), -math.inf)
        high = math.nextafter(float(ball.upper()), math.inf)
    most = _rounded_number(high, "up")
    if most == _rounded_number(low, "down"):
        return f"proved: {most}"
    return f"proved: at most {most}"


def _rounded_number(value: float, side: Side = "nearest") -> str:
    if math.isinf(value):
        if value > 0:
            return "∞"
        return "−∞"
    return rounded(value, 6, side).replace("-", "−")


_MORE = 5  # digits of a number that is rounded to one side
_SMALLEST_ERROR = 1e-16  # that a picture shows
_MARKED = "* marks a number that its method warns of."


def epsilon_table(results: Results) -> list[Block]:
    """Return ε at the report's δ by truth and by every accountant."""
    if results.profile:
        return [Sentence("No method has a finite ε here; see δ by every method below.")]
    rows: list[list[str]] = []
    notes: list[str] = []
    truth = results.truth
    has_truth = truth is not None and truth.value is not None
    if truth is not None and has_truth:
        name = "truth"
        if truth.certified:
            name = "certified"
        rows.append([name, truth_text(truth), "", "", f"{truth.digits} digits"])
    elif truth is not None:
        rows.append(["truth", "", "", "", "not reached"])
        notes.append(f"truth: {truth.reason}")
    for answer in results.answers:
        gap = ""
        if truth is not None and has_truth and truth.value > 0:
            with mpmath.workdps(30):
                gap = f"{float(mpmath.mpf(answer.epsilon) / truth.value - 1):+.1e}"
        value = answer.epsilon_text() + _mark(answer)
        rows.append([answer.method, value, gap, f"{answer.seconds:.2g}", answer.kind])
        if answer.advice:
            notes.append(_note(answer.method, answer.advice))
    rows += [[name, "", "", "", "none"] for name, _ in results.failures]
    notes += _grouped(results.failures)
    head = ["method", "ε", "relative error", "seconds", "kind"]
    caption = ""
    if notes:
        caption = f"ε of every accountant. {_MARKED}"
    first_row: frozenset[int] = frozenset()
    if has_truth:
        first_row = frozenset({0})
    table = Table(head, rows, caption, range(1, 4), strong=first_row)
    return [table, *_listing(notes)]


def truth_text(truth: Truth) -> str:
    """Return the true ε to the digits that it has, 17 at most, rounded up."""
    return rounded(_decimal(truth), min(17, truth.digits), "up")


def _decimal(truth: Truth) -> Decimal:
    """Return the true ε with more digits than are known of it."""
    return Decimal(mpmath.nstr(truth.value, truth.digits + _MORE))


def check_blocks(results: Results, name: str) -> list[Block]:
    """Return relative errors of δ: a figure, a table, and the values that they come from."""
    by_place: dict[float, dict[str, Check]] = {}
    for result in results.checks:
        by_place.setdefault(result.truth.epsilon, {})[result.method] = result
    if not by_place:
        return [Sentence("No place of the profile could be checked.")]
    methods = dict.fromkeys(result.method for result in results.checks)
    truths = [next(iter(row.values())).truth for _, row in sorted(by_place.items())]
    by_method = []
    for method in methods:
        row = []
        for true_delta in truths:
            broken_off = Check(method, true_delta, None, reason=_BROKEN_OFF)
            checks_there = by_place[true_delta.epsilon]
            row.append(checks_there.get(method, broken_off))
        by_method.append(tuple(row))
    errors = [_row(row, _error) for row in by_method]
    values = [_row(row, _answer) for row in by_method]
    violated = [any(check.broken for check in row) for row in by_method]
    bad = frozenset(index for index, is_bad in enumerate(violated, start=1) if is_bad)
    digits = min((t.digits for t in truths if t.value is not None), default=0)
    what = "not reached"
    if digits:
        what = f"{digits} digits"
        if any(t.certified for t in truths):
            what += " or certified"
    first = ["truth", what, *map(_true_delta, truths)]
    head = ["method", "kind", *(f"ε = {t.epsilon:g}" for t in truths)]
    numbers = range(2, len(head))
    first_row = frozenset({0})
    caption = f"Relative error of δ against a truth of many digits; {_MARKED}"
    table = Table(head, [first, *errors], caption, numbers, first_row, bad)
    blocks: list[Block] = [*_figure(by_method, name), table]
    if bad:
        blocks.append(Sentence("A method's own bounds were violated: this is a bug.", "warning"))
    reasons = _grouped([(f"truth at ε = {t.epsilon:g}", t.reason) for t in truths if t.reason])
    reasons += _grouped([(c.method, c.reason) for c in results.checks if c.reason])
    caption = f"δ by every method. {_MARKED}"
    everything = Table(head, [first, *values], caption, numbers, first_row)
    if not digits:
        return [everything, *_listing(reasons)]
    return [*blocks, *_listing(reasons), Folded("δ by every method", [everything])]


def _true_delta(truth: Truth) -> str:
    if truth.value is None:
        return "not reached"
    return rounded_exponential(truth.log, 8, "up")


_BROKEN_OFF = "the work was broken off before it"


def _figure(by_method: list[tuple[Check, ...]], name: str) -> list[Block]:
    """|relative error| of each method at every ε."""
    curves = []
    for checks_of_method in by_method:
        points = [
            (c.truth.epsilon, math.log(max(abs(c.error), _SMALLEST_ERROR)))
            for c in checks_of_method
            if c.error is not None
        ]
        if points:
            epsilons, logs = zip(*points, strict=True)
            curves.append(Series(checks_of_method[0].method, epsilons, logs))
    caption = (
        "How far every accountant's δ is from the truth: the absolute relative error, on a "
        "logarithmic axis. What lies below 1e-16 is drawn there."
    )
    if curves:
        return [Figure(curves, caption, f"{name}-errors", of_errors=True)]
    return []


def _row(checks: tuple[Check, ...], cell: Callable[[Check], str]) -> list[str]:
    kinds = dict.fromkeys(c.answer.kind for c in checks if c.answer)
    return [checks[0].method, ", ".join(kinds), *map(cell, checks)]


def _mark(answer: Guarantee) -> str:
    """Return the mark of an answer that left its method's regime."""
    if answer.advice:
        return "*"
    return ""


def _error(result: Check) -> str:
    if result.answer is None:
        return "none"
    cell = _mark(result.answer)
    if result.error is not None:
        cell = f"{result.error:+.1e}{cell}"
    if result.broken:
        cell += " violated"
    return cell


def _answer(result: Check) -> str:
    if result.answer is None:
        return "none"
    return result.answer.delta_text(8) + _mark(result.answer)


def _note(name: str, text: str) -> str:
    if text.startswith(name):
        return text
    return f"{name}: {text}"


def _grouped(pairs: list[tuple[str, str]]) -> list[str]:
    """One line for each reason, with the names of all who gave it."""
    names: dict[str, dict[str, None]] = {}
    for name, reason in pairs:
        names.setdefault(reason, {})[name] = None
    return [_note(", ".join(methods), reason) for reason, methods in names.items()]


def _listing(lines: list[str]) -> list[Block]:
    if lines:
        return [Listing(list(dict.fromkeys(lines)))]
    return []


_FALSE_ALARMS = (0.01, 0.001)
_AGAIN = 8  # digits of the second look on the first screen


def head_blocks(
    composition: Composition, delta: float, results: Results, *, refined: bool = True
) -> list[Block]:
    """Return a table of answers: four digits of ε, what else bounds it, what an attack finds.

    Where no finite ε exists, δ at a few ε stands in its place.  Unless refined, what an attack
    finds is read off what is known, and marked.
    """
    rows = _epsilon_rows(delta, results)
    if not rows:
        return []
    for alpha in _FALSE_ALARMS:
        reached, mark = _hits(composition, alpha, results, refined)
        asked = f"attack, {100 * alpha:g} % false alarms"
        rows.append((asked, f"≤ {reached}", mark or "found"))
    explained = (
        f"The attack tells {_secret(composition.protection)}: of those of whom that is false it "
        "accuses so many, and of the others it finds so many at most."
    )
    if results.profile:
        explained = f"{_no_epsilon(delta, results, capital=True)}. {explained}"
    return [
        Table(("asked", "answer", "which is"), rows, "Answers", (1,), strong=frozenset({0})),
        Sentence(f"Protects {composition.protection.sentence}."),
        Sentence(f"{explained} {datetime.now(UTC):%Y-%m-%d}.", "quiet"),
    ]


def _epsilon_rows(delta: float, results: Results) -> list[tuple[str, str, str]]:
    """Return the rows of ε, or of δ where no ε is finite; none where nothing is known."""
    asked = f"ε at δ = {given(delta)}"
    if results.profile:
        rows = [(asked, "none", "no ε is finite")]
        for answer in results.profile:
            rows.append((f"δ at ε = {given(answer.epsilon)}", answer.delta_text(), answer.kind))
        return rows
    if results.best is None:
        return []
    rows = [(asked, rounded(results.best.epsilon, 4, side="up"), results.best.kind)]
    truth = results.truth
    if truth is not None and truth.value is not None:
        again = rounded(_decimal(truth), min(_AGAIN, truth.digits), "up")
        kind = "by quadrature"
        if truth.certified:
            kind = "proved"
        rows.append(("another way", again, kind))
    bound = next((answer for answer in results.answers if answer.method == "moments"), None)
    if bound is not None:
        rows.append(("by Rényi orders", rounded(bound.epsilon, 4, side="up"), "bound"))
    return rows


def _hits(
    composition: Composition, alpha: float, results: Results, refined: bool
) -> tuple[str, str]:
    """Return the most that an attack finds in percent, and a mark where no more than a line held.

    By each (ε, δ) it is at most δ + e^ε α and 1 − e^{−ε}(1 − δ − α): that is what is left where the
    best line is not found in the time for it.
    """
    from symdp.questions.tradeoff import trade_off

    mark = "coarse"
    seconds = 0.0
    if refined:
        seconds = MORE_TIME
    most = 1.0
    checked = (c.answer for c in results.checks if c.method == "contour")
    for answer in (*results.answers, *results.profile, *filter(None, checked)):
        if answer.kind == "estimate":
            continue
        epsilon = answer.epsilon
        delta = answer.at_most
        if answer.quantity == "epsilon":
            epsilon = answer.epsilon_upper or answer.epsilon
            delta = answer.delta
        if abs(epsilon) < LARGEST_EXPONENT:
            most = min(most, delta + math.exp(epsilon) * alpha)
            most = min(most, 1.0 - math.exp(-epsilon) * (1.0 - delta - alpha))
    with suppress(*FAILURES), time_limit(seconds):
        most = 1.0 - trade_off(composition, alpha)
        mark = ""
    return f"{rounded(100.0 * most, 3, side='up')} %", mark


def _no_epsilon(delta: float, results: Results, *, capital: bool = False) -> str:
    """Return why no finite ε has this δ, as a sentence of its own if asked."""
    first = "no"
    if capital:
        first = "No"
    escaped = rounded(results.escaped, 6)
    return (
        f"{first} finite ε exists at δ = {given(delta)}, as outputs that only one of the two data "
        f"sets can give have probability {escaped}, which δ(ε) never falls below"
    )


def _secret(whose: Protection) -> str:
    """Return what an attack wants to know."""
    who = f"{whose.group} records"
    verb = "were"
    if whose.group == 1:
        who, verb = "one record", "was"
    if whose.relation == SUBSTITUTION and whose.group == 1:
        return f"which value {who} had"
    if whose.relation == SUBSTITUTION:
        return f"which values {who} had"
    if whose.relation == ZERO_OUT:
        return f"whether {who} {verb} set to zero"
    return f"whether {who} {verb} in the data"


DRAWN: tuple[MethodName, ...] = ("contour", "msd:1", "clt", "moments")
_POINTS = 60


PROFILE = "privacy profile"
_FROM_RESULTS = ("summary", "ε by every accountant", "checks")
# What takes time, the slow last.
_SLOW = (PROFILE, "cumulants", "densities", "sources", "correction terms", "derivation")
_APPENDIX = "Appendix: the mathematics, every accountant, the checks"


def parts(
    title: str,
    composition: Composition,
    delta: float,
    results: Results,
    *,
    name: str = "profile",
    undrawn: str = "",
) -> dict[str, Callable[[], Iterable[Sequence[Block]]]]:
    """Return what makes each part of a page on one composition, in the order of the page.

    What stands in `_FROM_RESULTS` is there at once, what stands in `_SLOW` takes time.
    """

    def summary() -> Iterator[Sequence[Block]]:
        protects = Sentence(f"Protects {composition.protection.sentence}.")
        yield [Heading(2, title), Sentence(_summary(delta, results)), protects]

    def accountants() -> Iterator[Sequence[Block]]:
        yield [Heading(3, f"ε at δ = {given(delta)}"), *epsilon_table(results)]

    def profile() -> Iterator[Sequence[Block]]:
        yield [Heading(3, "Privacy profile"), *_profile(composition, results, name, undrawn)]

    def checks() -> Iterator[Sequence[Block]]:
        check_parts = check_blocks(results, name)
        shown = [block for block in check_parts if not (undrawn and isinstance(block, Figure))]
        yield [Heading(3, "Checked against truth"), *shown]

    def derived(
        make: Callable[[Mechanism, int], Iterable[Sequence[Block]]],
    ) -> Iterator[Sequence[Block]]:
        for mechanism, count in composition.steps:
            try:
                yield from make(mechanism, count)
            except FAILURES as error:
                yield [Sentence(f"{mechanism.name}: not derived: {reason_of(error)}", "warning")]

    def derivation(mechanism: Mechanism, count: int) -> Iterator[Sequence[Block]]:
        epsilon = None
        if results.best is not None and len(composition.steps) == 1:
            epsilon = results.best.epsilon
        yield from derivation_blocks(mechanism, count, epsilon)

    def cumulants() -> Iterator[Sequence[Block]]:
        yield [Heading(3, "Cumulants and correction terms")]
        yield cumulant_table(composition, different_sides(composition))

    def terms(mechanism: Mechanism, _: int) -> Iterator[Sequence[Block]]:
        from symdp.derive.derivation import derive_pair

        if mechanism != composition.steps[0][0]:
            return
        yield [Sentence(_CORRECTIONS)]
        first = derive_pair(mechanism)
        for part in explained(first, corrections(first, _ORDER), symbols_of(first)):
            yield part.blocks(4)

    def sources() -> Iterator[Sequence[Block]]:
        from symdp.derive.printed import citations

        sources_cited = [c for mechanism, _ in composition.steps for c in citations(mechanism)]
        sources_cited += [c for a in (*results.answers, *results.profile) for c in a.citations]
        listed: list[Block] = [
            Listing(full(sources_cited)),
            Folded("BibTeX", [Command(bibtex(sources_cited))]),
        ]
        yield [Heading(3, "Sources"), *listed]

    return {
        "summary": summary,
        "densities": lambda: derived(lambda m, n: [mechanism_blocks(m, n)]),
        "ε by every accountant": accountants,
        PROFILE: profile,
        "checks": checks,
        "derivation": lambda: derived(derivation),
        "cumulants": cumulants,
        "correction terms": lambda: derived(terms),
        "sources": sources,
    }


class Report:
    """A page that is made part by part, and is a document at every moment."""

    def __init__(
        self,
        head: tuple[str, str],
        composition: Composition,
        delta: float,
        *,
        undrawn: str = "",
        panel: Callable[[], list[Block]] | None = None,
    ) -> None:
        self.results = Results()
        self._asked = head[1]
        self._of = (composition, delta, self.results)
        self._parts = parts(head[0], *self._of, undrawn=undrawn)
        self._work: dict[str, Callable[[], Iterable[Sequence[Block]]]] = {
            "attacks": lambda: [head_blocks(*self._of)]
        }
        if panel is not None:
            self._work["sliders"] = lambda: [panel()]
        self._work |= {slow_part: self._parts[slow_part] for slow_part in _SLOW}
        self._told: dict[str, list[Block]] = {}

    def make(self, digits: int, patience: float | None) -> Iterator[tuple[str, list[str]]]:
        """Make the page; yield what comes next, and what is not there, nothing before numbers."""
        left_out: list[str] = []
        composition, delta, results = self._of
        for what in analysing(composition, delta, results, digits, patience=patience):
            if results.answers or results.profile:
                yield what, [what, *self._work]
            else:
                yield what, left_out
        for index, (part, make) in enumerate(self._work.items()):
            yield part, [*self._work][index:]
            for blocks in make():
                self._told.setdefault(part, []).extend(blocks)

    def document(self, title: str, mark: str = "") -> Document:
        """Return what is there, a mark above it where it is not all."""
        from_results = {part: [*chain.from_iterable(self._parts[part]())] for part in _FROM_RESULTS}
        heading, *summary = from_results["summary"]
        filled = self._told | from_results | {"summary": summary}
        head = filled.get("attacks") or head_blocks(*self._of, refined=False)
        blocks: list[Block] = [heading]
        if mark:
            blocks.append(Sentence(f"{mark[:1].upper()}{mark[1:]}.", "warning"))
        if self._asked:
            blocks.append(Sentence(f"Asked: {self._asked}", "quiet"))
        blocks += [*head, *filled.get("sliders", ())]
        appendix = chain.from_iterable(filled.get(part, ()) for part in self._parts)
        blocks.append(Folded(_APPENDIX, [*appendix]))
        failed = dict.fromkeys(method for method, _ in self.results.failures)
        left = ", ".join(failed) or "nothing"
        blocks.append(Sentence(f"Not evaluated: {left}.", "quiet"))
        return Document(title, blocks)


def section(
    title: str, composition: Composition, delta: float, results: Results, *, undrawn: str = ""
) -> list[Block]:
    """Return the blocks of one composition."""
    makers = parts(title, composition, delta, results, undrawn=undrawn)
    block_lists = chain.from_iterable(make() for make in makers.values())
    return [*chain.from_iterable(block_lists)]


_CORRECTIONS = (
    "The saddle-point and Edgeworth series in the derivatives F_j of n K(t) − ε t − log t − "
    "log(1 + t) and in the standardised cumulants λ_j: each order adds its correction terms. "
    "δ_∞ is the mass of an infinite loss, mostly 0; K and the cumulants are of finite losses."
)


def _summary(delta: float, results: Results) -> str:
    best = results.best
    if results.profile:
        values = ", ".join(f"δ({given(a.epsilon)}) = {a.delta_text()}" for a in results.profile)
        why = _no_epsilon(delta, results, capital=True)
        return f"{why}. Instead: {values}, the exact formula in floating point."
    if best is None:
        reason = dict(results.failures).get("contour", "no exact answer")
        text = f"At δ = {given(delta)} there is no exact ε: {reason}"
        bounds = [a.epsilon for a in results.answers if a.kind == "bound"]
        if not bounds:
            return f"{text}."
        return f"{text}; the least proved bound is {rounded(min(bounds), side='up')}."
    text = f"At δ = {given(delta)}: ε = {best.epsilon_text()}, the exact formula in floating point"
    bound = next((a for a in results.answers if a.method == "moments"), None)
    if bound is not None:
        text += f"; the tightened moments bound gives {bound.epsilon_text()}"
    truth = results.truth
    if truth is not None and truth.value is not None:
        shown = truth_text(truth)
        if truth.certified:
            text += f"; certified values of δ give {shown}"
        else:
            text += f"; the truth begins {shown}"
    return f"{text}."


def _profile(composition: Composition, results: Results, name: str, undrawn: str) -> list[Block]:
    """The profile by the main accountants with truth on it."""
    if undrawn:
        return [Sentence(f"The profile was not drawn: {undrawn}.", "warning")]
    reason = "no accountant has an answer"
    late: set[str] = set()
    if results.answers:
        late |= {method for method, _ in results.failures}
    ends = None
    for guide in GUIDES:
        if ends is None and guide not in late:
            try:
                with time_limit(SOME_TIME):
                    ends = default_range(composition, method=guide)
            except FAILURES as error:
                reason = reason_of(error)
                late.add(guide)
    if ends is None:
        return [Sentence(f"The profile was not drawn: {reason}.", "warning")]
    curves = []
    epsilons = evenly(ends, _POINTS)
    for method in DRAWN:
        if method in late:
            continue
        answers = sample(composition, epsilons, method, seconds=SOME_TIME)
        if answers:
            curves.append(Series.of(method, answers))
    truths = {
        c.truth.epsilon: c.truth.log
        for c in results.checks
        if c.truth.value is not None and c.truth.epsilon <= 1.01 * ends[1]
    }
    if truths:
        places = sorted(truths)
        logs = tuple(truths[epsilon] for epsilon in places)
        curves.append(Series("truth", tuple(places), logs, dots=True))
    drawn = ", ".join(curve.label for curve in curves)
    return [Figure(curves, f"The privacy profile by {drawn}.", name)]


def full(citations: Iterable[str]) -> list[str]:
    """Return the sources of citations such as "SPA (61)", each once, tags spelled out."""
    sources: dict[str, None] = {}
    for citation in citations:
        reference = REFERENCES.get(tag_of(citation))
        source = citation
        if reference:
            source = f"{reference.tag}: {reference.text()}"
        sources[source] = None
    return [text for text in sources if text]
