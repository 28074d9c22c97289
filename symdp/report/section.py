"""One composition as a section of a report: what it is, what was derived, what it comes to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import mpmath

from symdp.errors import AccuracyError, InputError
from symdp.guarantee import decimal_exponential
from symdp.report import formulas
from symdp.report.blocks import (
    Block,
    Formulas,
    Heading,
    Listing,
    Paragraph,
    Plot,
    Table,
)
from symdp.report.plot import Series
from symdp.report.profile import default_range, evenly, sample
from symdp.report.references import full
from symdp.report.verification import Check, Truth, check, places, truth_at

if TYPE_CHECKING:
    from symdp.composition import Composition
    from symdp.guarantee import Guarantee
    from symdp.mechanism import Mechanism

DRAWN = ("contour", "msd:1", "clt", "moments")
_POINTS = 60
_TARGETS = (1e-2, 1e-5, 1e-10)
_NEWTON_STEPS = 4


@dataclass(frozen=True)
class EpsilonTruth:
    """The true ε at δ: where the many-digit profile, in its larger direction, meets δ."""

    epsilon: float
    exact: Any
    digits: int
    direction: str
    reason: str = ""


@dataclass
class Results:
    """The numbers of a section, for those who print them too."""

    answers: list[Guarantee] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    truth: EpsilonTruth | None = None
    checks: list[Check] = field(default_factory=list)

    @property
    def violated(self) -> bool:
        """Whether some proved bound is on the wrong side of the truth."""
        return any(c.broken for c in self.checks)


def analyse(
    composition: Composition,
    delta: float,
    digits: int = 30,
    targets: Sequence[float] = _TARGETS,
    advance: Callable[[str], None] = lambda _: None,
) -> Results:
    """Compute ε at δ by every accountant and by truth, and check the profile at a few places.

    Parameters
    ----------
    composition, delta
        What is accounted for, and the δ at which ε is compared.
    digits
        Digits of the truth.
    targets
        Where on the profile accountants are checked: δ there.
    advance
        Told what comes next.
    """
    from symdp.accountant import names

    results = Results()
    for name in names():
        advance(f"ε by {name}")
        try:
            results.answers.append(composition.epsilon(delta, name))
        except (AccuracyError, InputError) as error:
            if name == "contour":
                raise
            results.failures.append((name, str(error)))
    advance(f"ε to {digits} digits")
    results.truth = epsilon_truth(composition, delta, results.answers[0], digits)
    for epsilon in places(composition, "both", targets):
        advance(f"truth at ε = {epsilon:g}")
        truth = truth_at(composition, epsilon, "both", digits)
        results.checks += [check(composition, name, "both", truth) for name in names()]
    return results


def epsilon_truth(
    composition: Composition, delta: float, start: Guarantee, digits: int
) -> EpsilonTruth:
    """Return the ε at which the true profile equals δ, by Newton steps from a near guess.

    The slope of log δ comes from the contour; it only sets how fast the steps settle.
    """
    epsilon = start.epsilon
    exact = mpmath.mpf(epsilon)
    for _ in range(_NEWTON_STEPS):
        truth = truth_at(composition, epsilon, "both", digits)
        if truth.value is None:
            return EpsilonTruth(epsilon, None, digits, "", truth.reason)
        with mpmath.workdps(truth.digits + 5):
            gap = mpmath.log(truth.value) - mpmath.log(mpmath.mpf(delta))
            correction = -gap / _slope(composition, epsilon, truth)
            exact = mpmath.mpf(epsilon) + correction
            if abs(correction) <= 1e-9 * max(1.0, abs(epsilon)):
                # The next step would change it by about the square of this one.
                return EpsilonTruth(float(exact), exact, truth.digits, truth.direction)
            epsilon = float(exact)
    return EpsilonTruth(epsilon, None, digits, "", "Newton's method did not settle")


def _slope(composition: Composition, epsilon: float, truth: Truth) -> float:
    step = 1e-4 * max(1.0, abs(epsilon))
    high, low = (
        composition.delta(at, direction=truth.direction).log_delta
        for at in (epsilon + step, epsilon - step)
    )
    slope = float(high - low) / (2 * step)
    if not slope < 0:
        raise AccuracyError(f"the privacy profile is flat at ε = {epsilon:.6g}")
    return slope


def section(
    title: str,
    composition: Composition,
    delta: float,
    results: Results,
    *,
    name: str = "profile",
    order: int = 2,
    advance: Callable[[str], None] = lambda _: None,
) -> list[Block]:
    """Return the blocks of one composition.

    Parameters
    ----------
    title
        The section's heading.
    composition, delta, results
        What was analysed; see `analyse`.
    name
        Distinguishes this section's figure from others on the page.
    order
        Highest order of the series shown.
    advance
        Told what comes next.
    """
    blocks: list[Block] = [Heading(2, title), Paragraph(_summary(delta, results))]
    for mechanism, count in composition.steps:
        advance(f"derivation of {mechanism.name}")
        blocks += _derivation(mechanism, count, order)
    blocks += [Heading(3, f"ε at δ = {delta:g}"), *_epsilons(results)]
    advance("privacy profile")
    epsilons = evenly(default_range(composition), _POINTS)
    curves = [
        Series.of(name_, answers)
        for name_ in DRAWN
        if (answers := sample(composition, epsilons, name_))
    ]
    caption = "The privacy profile by the exact contour, two estimates, and the moments bound."
    blocks += [Heading(3, "Privacy profile"), Plot(curves, caption, name)]
    blocks += [Heading(3, "Checked against truth"), *_checks(results)]
    sources = [m.citation for m, _ in composition.steps]
    sources += [c for answer in results.answers for c in answer.citations]
    return [*blocks, Heading(3, "Sources"), Listing(full(sources))]


def _summary(delta: float, results: Results) -> str:
    by_name = {answer.method: answer for answer in results.answers}
    best = by_name["contour"]
    text = f"At δ = {delta:g}: ε = {best.epsilon:.12g}, the exact formula in floating point"
    if "moments" in by_name:
        text += f"; the tightened moments bound gives {by_name['moments'].epsilon:.12g}"
    return f"{text}."


def _derivation(mechanism: Mechanism, count: int, order: int) -> list[Block]:
    from symdp.derive import derive

    derivation = derive(mechanism)
    cgf = derivation.cgf
    values = ", ".join(f"{name} = {value}" for name, value in mechanism.values.items())
    steps = "1 step" if count == 1 else f"{count} steps"
    what = f"{mechanism.title or mechanism.name}, {steps}" + (f", {values}" if values else "")
    if mechanism.sampling:
        scheme = mechanism.sampling.scheme.replace("_", " ").replace("poisson", "Poisson")
        what += f", {scheme} sampling at rate {mechanism.sampling.rate}"
    blocks: list[Block] = [Paragraph(f"{what}.")]
    if mechanism.description:
        blocks.append(Paragraph(mechanism.description))
    blocks += [
        Heading(3, "Densities: Q without the record, P with it"),
        Formulas(formulas.densities(derivation)),
        Heading(3, "Privacy loss, derived"),
        Formulas(formulas.loss(derivation)),
        Heading(3, "Cumulant generating function"),
    ]
    if cgf.expression is None:
        blocks.append(Paragraph(f"Evaluated numerically: {cgf.reason}."))
    else:
        tilts = ", ".join(str(tilt).replace("*I", "i") for tilt in cgf.checked_at)
        blocks.append(
            Paragraph(f"In closed form, compared with numerical integrals at t = {tilts}.")
        )
        blocks.append(Formulas(formulas.transform(derivation)))
    if ends := formulas.domain(derivation):
        blocks += [Paragraph("K is finite between"), Formulas(ends)]
    text = (
        "The saddle-point and Edgeworth series in the derivatives F_j of n K(t) − ε t − log t − "
        "log(1 + t) and in the standardised cumulants λ_j."
    )
    return [
        *blocks,
        Heading(3, "Series"),
        Paragraph(text),
        Formulas(formulas.series(derivation, order)),
    ]


def _epsilons(results: Results) -> list[Block]:
    rows: list[list[str]] = []
    truth = results.truth
    known = truth is not None and truth.exact is not None
    if truth is not None and known:
        value = str(mpmath.nstr(truth.exact, 17))
        rows.append(["truth", f"{truth.digits} digits", value, "", ""])
    elif truth is not None:
        rows.append(["truth", "not reached", "", "", ""])
    notes = [f"truth: {truth.reason}"] if truth is not None and not known else []
    for answer in results.answers:
        gap = ""
        if truth is not None and known:
            with mpmath.workdps(30):
                gap = f"{float(mpmath.mpf(answer.epsilon) / truth.exact - 1):+.1e}"
        row = [answer.method, answer.kind, f"{answer.epsilon:.12g}", gap, f"{answer.seconds:.2g}"]
        rows.append(row)
        if answer.advice:
            notes.append(_note(answer.method, answer.advice))
    notes += [f"{name} has no answer: {reason}" for name, reason in results.failures]
    head = ["method", "kind", "ε", "relative difference", "seconds"]
    table = Table(head, rows, numbers_from=2, strong=frozenset({1} if known else ()))
    return [table, *([Listing(notes)] if notes else [])]


def _checks(results: Results) -> list[Block]:
    by_place: dict[float, list[Check]] = {}
    for one in results.checks:
        by_place.setdefault(one.truth.epsilon, []).append(one)
    methods = [c.method for c in next(iter(by_place.values()), [])]
    rows, bad = [], set()
    for place, method in enumerate(methods):
        own = [checks[place] for checks in by_place.values()]
        kind = own[0].answer.kind if own[0].answer else ""
        rows.append([method, kind, *(_cell(c) for c in own)])
        if any(c.broken for c in own):
            bad.add(place)
    truths = [checks[0].truth for checks in by_place.values()]
    head = ["method", "kind", *(f"ε = {t.epsilon:g}" for t in truths)]
    rows.insert(0, ["truth", f"{min((t.digits for t in truths), default=0)} digits"])
    rows[0] += [_value(t) for t in truths]
    caption = "Relative error of δ against an independent quadrature; * marks a method's advice."
    blocks: list[Block] = [
        Table(head, rows, caption, 2, strong=frozenset({0}), bad=frozenset(p + 1 for p in bad))
    ]
    if bad:
        blocks.append(Paragraph("A method's own bounds were violated: this is a bug.", "warning"))
    reasons = dict.fromkeys(_note(c.method, c.reason) for c in results.checks if c.reason)
    reasons |= dict.fromkeys(_note("truth", t.reason) for t in truths if t.reason)
    return [*blocks, *([Listing(list(reasons))] if reasons else [])]


def _cell(one: Check) -> str:
    if one.answer is None:
        return "none"
    mark = "*" if one.answer.advice else ""
    if one.broken:
        mark += " violated"
    return ("" if one.error is None else f"{one.error:+.1e}") + mark


def _note(name: str, text: str) -> str:
    return text if text.startswith(name) else f"{name}: {text}"


def _value(truth: Truth) -> str:
    if truth.value is None:
        return "not reached"
    if not math.isfinite(truth.log):
        return "0"
    shown = decimal_exponential(truth.log)
    return shown if isinstance(shown, str) else f"{shown:.6g}"
