r"""A proved upper end of δ(ε) of shuffled answers: every pair of inputs, every rounding.

What is proved: ω lies below the laws of all inputs (of densities f(y − x) with one mode the ends
of the interval suffice); the laws have mass 1; and for each ordered pair of inputs the sum of
`symdp.prove.blanket`. Of inputs of an interval the two ends are proved, in both orders: all that is
needed where `symdp.questions.shuffled.worst` has them as the worst pair.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby, pairwise, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from flint import arb, ctx

from symdp.balls.proper import with_mass_one
from symdp.decimal_text import scientific
from symdp.density.breakpoints import Stretch, smooth_stretches
from symdp.density.normal_form import log_form
from symdp.density.shapes import centre_of
from symdp.density.signs import interior_point
from symdp.emit.arb import compile_arb, compile_arb_together
from symdp.emit.enclose import between
from symdp.emit.exact import fraction_ball, middle_of, real_ball
from symdp.errors import AccuracyError, InputError
from symdp.model.local import Local
from symdp.numeric.shuffled.blanket import part_law, splits_of_all, whole_estimate
from symdp.prove.blanket import (
    Law,
    Line,
    ListedPart,
    Single,
    Smooth,
    SmoothPart,
    placed,
    simple_end,
    upper_end,
)
from symdp.questions.certificate import Certificate, log_double
from symdp.questions.shuffled.outputs import randomizer
from symdp.questions.shuffled.plan import MOST_DIGITS, SLACK, is_above, sized, working_bits
from symdp.questions.shuffled.worst import as_noise

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.numeric.shuffled.blanket import Estimate
    from symdp.numeric.shuffled.law import PartLaw
    from symdp.questions.shuffled.outputs import Randomizer

_LEAST_SHARE = 45.0  # e-folds below δ: panels with less mass are counted apart
_THINNED = 4  # panels of doubles that are one of a proof


@dataclass(frozen=True)
class ProvedBound:
    """A proved upper end of δ, and to how many digits it is that of the sum itself."""

    upper: arb
    digits: int


@dataclass(frozen=True)
class _Question:
    """Whose δ is proved, where."""

    mechanism: Mechanism
    laws: Randomizer
    epsilon: Fraction
    digits: int

    @property
    def people(self) -> int:
        source = self.mechanism.source
        assert isinstance(source, Local)
        assert source.people is not None
        return int(source.people)


def proved_bound(mechanism: Mechanism, epsilon: Fraction, digits: int) -> ProvedBound:
    """Return an upper end of δ(ε) of one round of shuffled answers."""
    question = _Question(mechanism, randomizer(mechanism), epsilon, digits)
    is_list = question.laws.outputs.is_list
    parts: Iterable[tuple[Estimate, Any, PartLaw]]
    parts = _listed(question) if is_list else _smooth(question)
    best = ProvedBound(arb(0), digits)
    for estimate, part, law in parts:
        if not float(law.values.max(initial=0.0)) > 0.0:
            # no output speaks for the first input: all of it is counted apart
            with ctx.workprec(working_bits(question.people, digits)):
                apart = part.apart(-80.0)
            best = ProvedBound(apart.max(best.upper), best.digits)
            continue
        best = _larger(best, part, sized(part, law, question.people, digits), estimate)
    return ProvedBound(best.upper.min(arb(1)), best.digits)


def _larger(
    best: ProvedBound, part: Any, where: tuple[Line, Law], estimate: Estimate
) -> ProvedBound:
    """Return the larger of a bound and that of a pair, of which a simple one may suffice."""
    line, law = where
    with ctx.workprec(working_bits(line.people, line.digits)):
        apart = part.apart(min(estimate.log_delta, 0.0) - 20.0)
        if simple_end(law, line) + apart <= best.upper:
            return best
        end, digits = upper_end(law, line)
        upper = end + apart
    return ProvedBound(upper.max(best.upper), min(digits, best.digits))


# ---- Lists


def _listed(question: _Question) -> Iterator[tuple[Estimate, ListedPart, PartLaw]]:
    """Yield a part for each kind of ordered pairs of a list, with its law in doubles."""
    outputs = question.laws.outputs
    parts = listed_parts(question.mechanism, question.laws, question.people, question.epsilon)
    for estimate, part in parts:
        kept = outputs.only(estimate.split.kept)
        yield estimate, part, part_law(kept, estimate.pair, float(question.epsilon))


def listed_parts(
    mechanism: Mechanism, laws: Randomizer, people: int, epsilon: Fraction
) -> list[tuple[Estimate, ListedPart]]:
    """Return a part for each kind of ordered pairs of a list, those of the largest δ first."""
    source = mechanism.source
    assert isinstance(source, Local)
    count = len(source.inputs)
    table = [source.law(index, mechanism.variable, mechanism.support) for index in range(count)]
    for number, law in enumerate(table, start=1):
        _require_mass_one(mechanism, number, law)
    least = _least_masses(mechanism, table)
    numbers = {mass: index for index, mass in enumerate({m for law in table for m in law})}
    codes = np.array([[numbers[mass] for mass in law] for law in table])
    floor = np.array([numbers[mass] for mass in least])
    kinds: dict[bytes, tuple[int, int]] = {}
    for first, second in permutations(range(count), 2):
        triples = (codes[first] * len(numbers) + codes[second]) * len(numbers) + floor
        kinds.setdefault(np.sort(triples).tobytes(), (first, second))
    parts = []
    for pair in kinds.values():
        estimate = whole_estimate(laws.outputs, pair, people, float(epsilon))
        outcomes = zip(table[pair[0]], table[pair[1]], least, strict=True)
        parts.append((estimate, ListedPart(tuple(outcomes), epsilon)))
    return sorted(parts, key=lambda part: -part[0].log_delta)


def _require_mass_one(mechanism: Mechanism, number: int, law: tuple[sp.Expr, ...]) -> None:
    total = sp.Add(*law)
    if not total.is_Rational:
        total = sp.simplify(total)
    if total != 1:
        raise AccuracyError(
            f"{mechanism.summary}: law {number} was not proved to have mass 1; give its masses as "
            "ratios"
        )


def _least_masses(mechanism: Mechanism, table: list[tuple[sp.Expr, ...]]) -> tuple[sp.Expr, ...]:
    """Return the least mass of every outcome, proved."""
    least = []
    for masses in zip(*table, strict=True):
        distinct = sorted(set(masses), key=float)
        smallest = distinct[0]
        for other in distinct[1:]:
            if not real_ball(other) > real_ball(smallest):
                raise AccuracyError(
                    f"{mechanism.summary}: it was not shown which of two masses is the smaller "
                    "one; give masses as ratios"
                )
        least.append(smallest)
    return tuple(least)


# ---- Densities


def _smooth(question: _Question) -> Iterator[tuple[Estimate, SmoothPart, PartLaw]]:
    """Yield a part for the ordered pairs of inputs, those of the largest δ first, with its law."""
    mechanism = question.mechanism
    laws = question.laws
    _require_proved_masses(mechanism, laws)
    if laws.outputs.densities.shape[0] > len(laws.inputs):
        raise AccuracyError(
            f"{mechanism.summary}: of inputs in an interval a proof is known where an end has the "
            f"least law; {laws.least.reason}; list the inputs, or leave the proof out"
        )
    inputs = laws.inputs
    pairs: Iterable[tuple[int, int]] = laws.pairs
    if laws.is_interval:
        # of one mode: the ends decide
        last = len(inputs) - 1
        inputs = (inputs[0], inputs[last])
        pairs = ((0, last), (last, 0))
    if len(inputs) == 2 and _is_even(mechanism):
        # y → a + b + 2c − y exchanges both laws
        pairs = tuple(pairs)[:1]
    epsilon = float(question.epsilon)
    outputs, estimates = splits_of_all(laws.outputs, tuple(pairs), question.people, epsilon)
    question = replace(question, laws=replace(laws, outputs=outputs))
    estimates.sort(key=lambda estimate: -estimate.log_delta)
    stretches = _stretches(mechanism, question.laws, inputs, min(estimates[0].log_delta, 0.0))
    unproved = _unproved(mechanism, inputs, stretches)
    for estimate in estimates:
        part = _part(question, stretches, estimate, unproved)
        kept = outputs.only(estimate.split.kept)
        yield estimate, part, part_law(kept, estimate.pair, epsilon)


@dataclass(frozen=True)
class _Run:
    """Neighbouring panels of one stretch on which one law is the smallest."""

    stretch: Stretch
    y: sp.Symbol
    # the logs of all laws there; None where one is 0
    logs: tuple[sp.Expr | None, ...]
    smallest: int
    panels: tuple[int, ...]
    edges: tuple[float, ...]

    @property
    def ends(self) -> tuple[sp.Expr, sp.Expr]:
        """The exact ends of the stretch."""
        return self.stretch.lower, self.stretch.upper

    def rises(self, inputs: tuple[sp.Expr, ...], slope: Any) -> list[_Rise]:
        """Return by how much all other laws exceed the smallest one, as functions of balls."""
        smallest = self.logs[self.smallest]
        if smallest is None:
            return []
        others = [k for k, log in enumerate(self.logs) if log not in (smallest, None)]
        return [_Rise(self, index, inputs, slope) for index in others]

    def parts(self, is_kept: Mapping[int, bool]) -> Iterator[tuple[bool, tuple[float, ...]]]:
        """Yield the edges of panels in a row that are kept, and of those that are not."""
        numbers = range(len(self.panels))
        for kept, run in groupby(numbers, lambda k: is_kept[self.panels[k]]):
            row = list(run)
            edges = self.edges[row[0] : row[-1] + 2]
            # nodes of a proof are many on each panel: fewer panels do
            thinned = edges[:-1:_THINNED]
            yield kept, (*thinned, edges[-1])


def _require_proved_masses(mechanism: Mechanism, laws: Randomizer) -> None:
    from symdp.model.mechanism import Mechanism as Any_mechanism

    noise = as_noise(mechanism)
    steps = [noise] if noise is not None else []
    if noise is None:
        source = mechanism.source
        assert isinstance(source, Local)
        densities = [source.density.subs(source.input, value) for value in laws.inputs]  # type: ignore[union-attr]
        steps = [
            Any_mechanism.from_pair(
                P, Q, mechanism.variable, mechanism.support, mechanism.name, parameters={}
            )
            for P, Q in pairwise(densities)
        ]
    proved = with_mass_one(dict.fromkeys(steps, 1), for_proof=True)
    if set(proved) != set(steps):
        raise AccuracyError(
            f"{mechanism.summary}: its mass is not exactly 1; a proof needs a density without "
            "rounded constants"
        )


def _is_even(mechanism: Mechanism) -> bool:
    """Whether the laws are f(y − x) with an f that is even around some point."""
    noise = as_noise(mechanism)
    if noise is None:
        return False
    density: Any = noise.source.density  # type: ignore[union-attr]
    return centre_of(density, noise.variable, noise.support) is not None


def _stretches(
    mechanism: Mechanism, laws: Randomizer, inputs: tuple[sp.Expr, ...], log_delta: float
) -> list[_Run]:
    """Return the panels of all outputs in runs."""
    source = mechanism.source
    assert isinstance(source, Local)
    y = mechanism.variable
    support = mechanism.support
    densities = tuple(source.density.subs(source.input, value) for value in inputs)  # type: ignore[union-attr]
    exact = smooth_stretches(densities, y, support.lower, support.upper)
    outputs = laws.outputs
    middles = outputs.low + 0.5 * (outputs.high - outputs.low)
    smallest = np.zeros(middles.size, dtype=int)
    masses = (outputs.densities.max(axis=0) * outputs.weights).sum(axis=1)
    is_counted = masses > math.exp(max(log_delta, -600.0) - _LEAST_SHARE)
    runs = []
    for stretch in exact:
        inside = (outputs.low >= float(stretch.lower)) & (outputs.high <= float(stretch.upper))
        inside &= is_counted
        numbers = np.flatnonzero(inside)
        logs = tuple(_log(density, y, stretch) for density in stretch.expressions)
        smallest[numbers] = [_smallest(logs, y, middle) for middle in middles[numbers].tolist()]
        start = 0
        for k in range(1, numbers.size + 1):
            if k < numbers.size and _are_joined(outputs, smallest, numbers[k - 1], numbers[k]):
                continue
            row = tuple(numbers[start:k].tolist())
            edges = (*outputs.low[list(row)].tolist(), float(outputs.high[row[-1]]))
            runs.append(_Run(stretch, y, logs, int(smallest[row[0]]), row, edges))
            start = k
    return runs


def _smallest(logs: tuple[sp.Expr | None, ...], y: sp.Symbol, output: float) -> int:
    """Return which law seems to be the smallest at an output, one that is 0 before all others."""
    if None in logs:
        return logs.index(None)
    heights = compile_arb_together(logs, [y])(arb(output))
    return min(range(len(logs)), key=lambda index: float(heights[index].real.mid()))


def _are_joined(outputs: Any, smallest: Any, left: int, right: int) -> bool:
    return bool(outputs.high[left] == outputs.low[right] and smallest[left] == smallest[right])


def _log(density: sp.Expr, y: sp.Symbol, stretch: Stretch) -> sp.Expr | None:
    if density == 0:
        return None
    return log_form(density, y, interior_point(stretch.lower, stretch.upper)).to_expression()


def _unproved(
    mechanism: Mechanism, inputs: tuple[sp.Expr, ...], runs: list[_Run]
) -> frozenset[int]:
    """Return panels on which the smallest law was not proved to lie below all others.

    They are counted apart. Proved is so much as the slack allows.
    """
    slope = _slope(mechanism)
    unproved: set[int] = set()
    floor = -fraction_ball(SLACK)
    with ctx.workprec(working_bits(2, 6)):
        for run in runs:
            rises = run.rises(inputs, slope)
            edges = [placed(edge, run.ends) for edge in run.edges]
            for panel, sides in zip(run.panels, pairwise(edges), strict=True):
                if not all(is_above(rise, sides, floor) for rise in rises):
                    unproved.add(panel)
    return frozenset(unproved)


def _slope(mechanism: Mechanism) -> Any:
    """Return the derivative of log R_x(y) by x as a function of balls, None where R jumps."""
    source = mechanism.source
    assert isinstance(source, Local)
    density: Any = source.density
    if density.has(sp.Piecewise, sp.Heaviside, sp.sign):
        return None
    logarithm = sp.expand_log(sp.log(density), force=True)
    return compile_arb(sp.diff(logarithm, source.input), [mechanism.variable, source.input])


class _Rise:
    """By how much the log of a law exceeds that of the smallest one, from below, over balls.

    The difference itself, or the derivative by the input times the distance of both inputs.
    """

    def __init__(self, run: _Run, index: int, inputs: tuple[sp.Expr, ...], slope: Any) -> None:
        smallest, other = run.smallest, run.logs[index]
        assert other is not None
        logs = (other, run.logs[smallest])
        self._both = compile_arb_together(logs, [run.y])
        self._slope = slope
        low = real_ball(inputs[smallest])
        high = real_ball(inputs[index])
        self._between = between(low, high)
        self._distance = high - low

    def __call__(self, y: Any) -> arb:
        first, second = self._both(y)
        difference = arb((first - second).real)
        if self._slope is None or difference > 0:
            return difference
        by_slope = arb(self._slope(y, self._between).real) * self._distance
        if not by_slope.is_finite():
            return difference
        if not difference.is_finite():
            return by_slope
        return difference.lower().max(by_slope.lower())


def _part(
    question: _Question, runs: list[_Run], estimate: Estimate, unproved: frozenset[int]
) -> SmoothPart:
    """Return X of a pair on the panels that are kept, and what is needed of the others."""
    first, second = estimate.pair
    kept = enumerate(estimate.split.kept.tolist())
    kept_panels = {panel: is_kept and panel not in unproved for panel, is_kept in kept}
    smooth: list[tuple[Smooth, tuple[float, ...]]] = []
    firsts: list[tuple[Single, tuple[float, ...]]] = []
    seconds: list[tuple[Single, tuple[float, ...]]] = []
    for run in runs:
        if question.laws.is_interval:
            # of each run only the laws of the two ends are there
            first = min(first, 1)
            second = min(second, 1)
        log_first = run.logs[first]
        log_second = run.logs[second]
        least = run.logs[run.smallest]
        for is_kept, edges in run.parts(kept_panels):
            if is_kept and least is not None:
                assert log_first is not None
                assert log_second is not None
                logs = (log_first, log_second, least)
                smooth.append((Smooth(run.ends, logs, run.y, question.epsilon, SLACK), edges))
                firsts.append((Single(run.ends, log_first, run.y), edges))
            elif log_first is not None and log_second is not None:
                if _is_gain(question, run, edges, (log_first, log_second)):
                    seconds.append((Single(run.ends, log_second, run.y), edges))
            elif log_first is None and log_second is not None:
                continue
    return SmoothPart(tuple(smooth), tuple(firsts), tuple(seconds), question.epsilon)


def _is_gain(
    question: _Question, run: _Run, edges: tuple[float, ...], logs: tuple[sp.Expr, sp.Expr]
) -> bool:
    """Whether the first law is proved to lie above e^ε times the second one between edges."""
    both = compile_arb_together(logs, [run.y])

    def difference(y: Any) -> arb:
        first, second = both(y)
        return arb((first - second).real) - fraction_ball(question.epsilon)

    with ctx.workprec(working_bits(2, 6)):
        return is_above(difference, [placed(edge, run.ends) for edge in edges])


# ---- Certificates

_SPARE = (2.0, 20.0, 200.0)  # widths by which ε is raised above the root until it is proved
CITATIONS = ("Balle2019",)


def certify_delta_of_round(
    mechanism: Mechanism, epsilon: float | Fraction, digits: int
) -> Certificate:
    """Return an upper end of δ(ε) of one round of shuffled answers, proved, as a certificate."""
    start = time.perf_counter()
    exact = Fraction(epsilon)
    if exact < 0:
        raise InputError(
            f"epsilon = {float(exact):g}: shuffled answers are bounded from epsilon = 0 on"
        )
    bound = proved_bound(mechanism, exact, digits)
    high = min(middle_of(bound.upper.upper()), Fraction(1))
    return Certificate(
        float(exact),
        log_double(bound.upper, 1),
        direction="both",
        n=1,
        quantity="delta",
        log_upper=log_double(bound.upper, 1),
        seconds=time.perf_counter() - start,
        **_told(high, min(digits, bound.digits), digits),
    )


def certify_epsilon_of_round(
    mechanism: Mechanism, about: Callable[[float], float], delta: float | Fraction, digits: int
) -> Certificate:
    """Return an ε of which δ(ε) ≤ δ is proved, next to the least that `about` finds for a δ."""
    start = time.perf_counter()
    exact = Fraction(delta)
    width = 10.0 ** -min(digits, MOST_DIGITS)
    for spare in _SPARE:
        root = about(float(exact) * (1.0 - min(spare * width, 0.5)))
        epsilon = Fraction(scientific(Fraction(root), 15, up=True))
        bound = proved_bound(mechanism, epsilon, digits)
        if middle_of(bound.upper.upper()) <= exact:
            return Certificate(
                math.nextafter(float(epsilon), math.inf),
                math.log(float(exact)),
                direction="both",
                n=1,
                quantity="epsilon",
                epsilon_upper=math.nextafter(float(epsilon), math.inf),
                seconds=time.perf_counter() - start,
                target_delta=float(exact),
                **_told(epsilon, min(digits, bound.digits), digits),
            )
        width = max(width, 10.0**-bound.digits)
    raise AccuracyError(
        f"{mechanism.summary}: no ε was found of which δ(ε) ≤ {float(exact):.6g} is proved; ask "
        "fewer digits"
    )


def _told(high: Fraction, digits: int, digits_asked: int) -> dict[str, Any]:
    """Return what both kinds of certificates say of an upper end alone."""
    shown = digits + 3
    upper = scientific(high, shown, up=True)
    return {
        "kind": "bound",
        "method": "certified",
        "citations": CITATIONS,
        "lower_decimal": "0",
        "upper_decimal": upper,
        "value_decimal": upper,
        "digits_asked": digits_asked,
        "sum_digits": digits,
    }
