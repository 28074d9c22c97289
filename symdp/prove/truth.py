"""δ(ε) to many digits: the plan in balls, else two steps added from the definition.

g(e) = P(ℓ > e) − e^e Q(ℓ > e) of one step comes from antiderivatives on panels (see `cells`), and δ
of two is E g(ε − L), by Gauss's rule on panels that are cut where g has kinks and halved until the
halves agree with the whole: that is the measure of error of what is not proved.  Further steps of
atoms alone are all the sums that they have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from flint import arb, arb_poly, ctx

from symdp.arguments import counted_pairs
from symdp.emit.exact import LN10, fraction_ball
from symdp.errors import AccuracyError, InputError
from symdp.model.allocation import AllocatedPair, OneStep
from symdp.prove.cells import Atom, Panel, Run, outcomes_of
from symdp.prove.enclosure import WAYS, enclose_by, mass_at_infinity
from symdp.prove.kind import Kind, kind_of, sum_law
from symdp.prove.measure import gauss
from symdp.prove.plan import find_saddle, panels_of
from symdp.prove.work import limited, spend

FEWER_DIGITS = 15  # asked for where more are out of reach
_SPARE = 4  # digits of each integral beyond those of the sum
_WORK = 2.0  # times what a proof may cost: the innermost function is asked for thousands of values
_MOST_SUMS = 5_000  # of atoms
_MOST_HALVINGS = 60  # of a panel
_MOST_STEPS = 2  # that have densities
_STRAY_BITS = 80  # of the loss where it may turn
_VALUE = 2.0  # of a value of a log-density, that one of a tail costs
_KNOWN = 65  # places of a part, between which a root is looked for

Function = Callable[[arb], arb]


@dataclass(frozen=True)
class Profile:
    """δ(ε), how many digits of it are known, and how: a row of `enclosure`, or a convolution."""

    value: Any
    digits: int
    is_proved: bool
    way: str

    @property
    def said(self) -> str:
        """How many digits are known, and by what."""
        how = f"proved by the row {self.way!r}" if self.is_proved else "two sums agree on them"
        return f"{self.digits} digits: {how}"


def privacy_profile(
    pairs: Iterable[tuple[OneStep, int]], epsilon: float | Fraction | sp.Rational, digits: int = 50
) -> Any:
    """Return δ(ε) of a composition to so many digits, or refuse; any rational ε is exact.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> steps = [(mechanisms.gaussian(sigma=2).pair(), 20)]
    >>> print(mpmath.nstr(privacy_profile(steps, Fraction(3, 2), digits=30), 30))
    0.507627661812330236985484988637
    """
    return _profile_by_digits(pairs, epsilon, (digits,), None).value


def profile(
    pairs: Iterable[tuple[OneStep, int]], epsilon: float | Fraction | sp.Rational, digits: int = 30
) -> Profile:
    """Return δ(ε) to so many digits, or to as many as can be had, at the least those of a mesh."""
    digit_counts = tuple(dict.fromkeys((digits, min(digits, FEWER_DIGITS))))
    return _profile_by_digits(pairs, epsilon, digit_counts, digits)


def _profile_by_digits(
    pairs: Iterable[tuple[OneStep, int]], epsilon: Any, asked: Sequence[int], mesh: int | None
) -> Profile:
    steps = tuple(counted_pairs(pairs, "pair"))
    if isinstance(epsilon, sp.Basic) and not epsilon.is_Rational:
        raise InputError(f"epsilon = {epsilon}: give a rational number, or a double close by")
    exact = epsilon
    if isinstance(epsilon, sp.Rational):
        exact = Fraction(int(epsilon.p), int(epsilon.q))
    sharp = tuple(way for way in WAYS if way.is_sharp)
    refusal = AccuracyError("the plan proves fewer digits, and more steps are too many to add")
    for digits in asked:
        try:
            way, ball = enclose_by(sharp, steps, exact, digits)
            return _profile_of_ball(ball, digits, True, way)
        except AccuracyError as reason:
            refusal = reason
        try:
            ball = _two_steps_added(steps, Fraction(exact), digits)
            return _profile_of_ball(ball, digits, False, "convolution")
        except AccuracyError as reason:
            if reason.args[0]:
                refusal = reason
    if mesh is None:
        raise refusal
    way, ball = enclose_by(WAYS, steps, exact, mesh)
    return _profile_of_ball(ball, mesh, True, way)


def _profile_of_ball(ball: arb, digits: int, is_proved: bool, way: str) -> Profile:
    value = _to_mpf(ball, digits)
    return Profile(value, _digits_of_ball(ball, digits), is_proved, way)


def _digits_of_ball(ball: arb, digits: int) -> int:
    allowed = abs(ball.mid()) * arb(10) ** -digits
    if 2 * ball.rad() <= allowed:
        return digits
    return max(int(ball.rel_accuracy_bits() * math.log10(2.0)), 0)


def _to_mpf(ball: arb, digits: int) -> Any:
    mantissa, exponent = ball.mid().man_exp()
    with mpmath.workdps(digits + 5):
        return mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))


def _two_steps_added(steps: Sequence[tuple[OneStep, int]], epsilon: Fraction, digits: int) -> arb:
    """Return δ(ε) within what its two sums differ by, if that is little enough."""
    pairs = [(pair, n) for pair, n in steps if not isinstance(pair, AllocatedPair)]
    kinds = [(kind_of(pair), n) for pair, n in pairs]
    dense = [(kind, count) for kind, count in kinds if not kind.is_discrete]
    dense_count = sum(count for _, count in dense)
    if len(kinds) < len(steps) or dense_count > _MOST_STEPS:
        raise AccuracyError("")
    saddle = find_saddle(sum_law(tuple(kinds)), float(epsilon))
    # Without a moment a large loss is likely, and δ is not small.
    log_size = -4.0
    if saddle is not None:
        log_size = min(saddle.log_size, 0.0)
    log_error = log_size - (digits + _SPARE) * LN10
    bits = int(-log_error / math.log(2)) + 32
    with limited(digits, _WORK), ctx.workprec(2 * bits):
        step_laws = {kind: _StepInParts(kind, log_error, bits) for kind, _ in kinds}
        sums = [(arb(1), arb(0))]
        for kind, count in kinds:
            if not kind.is_discrete:
                continue
            for _ in range(count):
                sums = _sums_with_atoms(sums, step_laws[kind].atoms)
        exact_epsilon = fraction_ball(epsilon)
        g = _payoff_of_dense_steps(dense, step_laws)
        total = arb(0)
        for mass, loss in sums:
            total = total + mass * g(exact_epsilon - loss)
        missed = arb(0)  # of laws of mass 1
        for pair, n in steps:
            infinite = mass_at_infinity([(pair, 1)], log_error)
            mass = step_laws[kind_of(pair)].mass
            missed = missed + n * abs(1 - mass - infinite)
        all_infinite = mass_at_infinity(steps, log_error)
        ball = total.max(arb(0)) + all_infinite + arb(0, missed.upper())
        if not (ball > 0 and _digits_of_ball(ball, digits) >= digits):
            raise AccuracyError(
                f"two sums of δ agree on fewer than {digits} digits ({ball.str(10)}); ask for "
                "fewer digits"
            )
        return ball


def _payoff_of_dense_steps(
    dense: Sequence[tuple[Kind, int]], step_laws: dict[Kind, _StepInParts]
) -> Function:
    """Return E (1 − e^{e − L})⁺ as a function of e, L the loss of at most two steps."""
    if not dense:
        return _hockey_stick
    first = step_laws[dense[0][0]]
    if len(dense) == 1 and dense[0][1] == 1:
        return first.tail
    last = step_laws[dense[-1][0]]
    return partial(last.expected, first)


def _hockey_stick(e: arb) -> arb:
    return (-e.expm1()).max(arb(0))


def _distinct_places(places: Sequence[arb]) -> list[arb]:
    """Return places in order, those once of which doubles hardly know that they differ."""
    distinct: list[arb] = []
    for point in sorted([ball.mid() for ball in places], key=arb.fmpq):
        if not distinct or point - distinct[-1] > 1e-12 * (1 + abs(point)):
            distinct.append(point)
    return distinct


def _sums_with_atoms(
    sums: Sequence[tuple[arb, arb]], atoms: Sequence[tuple[arb, arb]]
) -> list[tuple[arb, arb]]:
    """Return masses and losses of all sums of two, those of equal losses once."""
    pairs: list[tuple[arb, arb]] = []
    for p, x in sums:
        pairs += [(p * q, x + y) for q, y in atoms]
    pairs.sort(key=lambda atom: atom[1].mid().fmpq())
    merged: list[tuple[arb, arb]] = []
    for mass, loss in pairs:
        if merged and merged[-1][1].overlaps(loss):
            before_mass, before_loss = merged[-1]
            merged[-1] = (before_mass + mass, before_loss)
        else:
            merged.append((mass, loss))
    if len(merged) > _MOST_SUMS:
        raise AccuracyError("sums of atoms are too many to add; ask for fewer digits")
    return merged


@dataclass(frozen=True)
class _MonotonePart:
    """A part of a panel, in its u, on which the loss rises or falls, from `low` to `high`."""

    panel: Panel
    run: Run
    density: arb_poly
    slope: arb_poly
    low: float
    high: float

    def masses(self, left: arb, right: arb) -> tuple[arb, arb]:
        """Return P and Q between two places."""
        p = self.panel.p
        q = self.panel.q
        return p(right) - p(left), q(right) - q(left)

    @cached_property
    def _losses_and_places(self) -> tuple[Any, Any]:
        """Losses less the middle, rising, and places in doubles."""
        start, end, sign, _ = self.run
        shares = np.linspace(0, 1, _KNOWN)
        places = (start + (end - start) * shares)[::sign]
        losses = np.polynomial.chebyshev.chebval(places, self.panel.shape)
        return losses, places

    def place(self, e: arb) -> arb:
        """Return where the loss is e, an end where it is beyond all losses there."""
        sign = self.run.sign
        low = arb(self.run.start)
        high = arb(self.run.end)
        wanted = (e - self.panel.middle).mid()
        small = arb(2) ** (-ctx.prec // 3)
        losses, places = self._losses_and_places
        u = arb(float(np.interp(float(wanted), losses, places)))
        for _ in range(ctx.prec):
            miss = (sign * (self.panel.loss(u) - wanted)).mid()
            if miss < 0:
                low = u
            else:
                high = u
            move = (miss / (sign * self.slope(u))).mid()
            if abs(move) < small or high - low < small:
                break
            if low < u - move < high:
                u = (u - move).mid()
            else:
                u = ((low + high) / 2).mid()
        return u


class _StepInParts:
    """One step's law in parts and atoms, all its values within about an error."""

    def __init__(self, kind: Kind, log_error: float, bits: int) -> None:
        self._tolerance = arb(log_error).exp()
        panels = panels_of(kind, 0.0, 0.0, log_error)
        outcomes = outcomes_of(kind, panels, bits, _STRAY_BITS, bits).items
        atoms = [outcome for outcome in outcomes if isinstance(outcome, Atom)]
        self.atoms = [(atom.mass.mid(), atom.loss.mid()) for atom in atoms]
        parts = list[_MonotonePart]()
        kinks = [loss for _, loss in self.atoms]
        for panel in outcomes:
            if not isinstance(panel, Panel):
                continue
            density = panel.p.derivative()
            slope = panel.loss.derivative()
            for run in panel.runs:
                losses = [panel.loss(arb(end)) for end in run[:2]]
                ends = [(loss + panel.middle).mid() for loss in losses]
                kinks += ends
                low, high = sorted(map(float, ends))
                parts.append(_MonotonePart(panel, run, density, slope, low, high))
        self.low = min(kinks, default=arb(0))
        self.high = max(kinks, default=arb(0))
        atom_losses = [loss for _, loss in self.atoms]
        self.kinks = _distinct_places([*atom_losses, self.low, self.high])
        self._parts = sorted(parts, key=lambda part: part.low)
        self._lows = np.asarray([part.low for part in self._parts])
        self._highs = np.asarray([part.high for part in self._parts])
        self._above = [(arb(0), arb(0))]  # P and Q of the last parts
        for part in reversed(self._parts):
            start = arb(part.run.start)
            p, q = part.masses(start, arb(part.run.end))
            p_above, q_above = self._above[-1]
            self._above.append((p_above + p, q_above + q))
        p_of_parts, _ = self._above[-1]
        self.mass = sum((mass for mass, _ in self.atoms), p_of_parts)
        self._rule = gauss(int(bits / 3.0) + 8, ctx.prec)

    def tail(self, e: arb) -> arb:
        """P(ℓ > e) − e^e Q(ℓ > e)."""
        about = float(e)
        slack = 1e-12 * (1 + abs(about))
        first = int(np.searchsorted(self._lows, about + slack))
        p, q = self._above[len(self._parts) - first]
        inside = np.flatnonzero(self._highs[:first] > about - slack)
        spend(_VALUE * (1 + len(inside)))
        for index in inside.tolist():
            part = self._parts[index]
            if not part.run.sign:  # so small that its side does not count
                continue
            u = part.place(e)
            if part.run.sign > 0:
                part_p, part_q = part.masses(u, arb(part.run.end))
            else:
                part_p, part_q = part.masses(arb(part.run.start), u)
            p = p + part_p
            q = q + part_q
        total = arb(0)
        for mass, loss in self.atoms:
            total = total + mass * _hockey_stick(e - loss)
        return arb(total + p - e.exp() * q)

    def expected(self, other: _StepInParts, e: arb) -> arb:
        """E g(e − ℓ), g being the tail of another step."""
        total = arb(0)
        for mass, loss in self.atoms:
            total = total + mass * other.tail(e - loss)
        for part in self._parts:
            total = total + self._expected_on_part(other, e, part)
        return total

    def _expected_on_part(self, other: _StepInParts, e: arb, part: _MonotonePart) -> arb:
        """Return what a part adds, by panels that are halved until halves agree with the whole."""
        places = [arb(part.run.start), arb(part.run.end)]
        for kink in other.kinks:
            loss = e - kink
            if part.run.sign and part.low < loss < part.high:
                places.append(part.place(loss))
        waiting = []
        for left, right in pairwise(_distinct_places(places)):
            whole = self._gauss_sum(other.tail, e, part, left, right)
            waiting.append((left, right, whole, 0))
        total = arb(0)
        while waiting:
            left, right, whole, depth = waiting.pop()
            middle = ((left + right) / 2).mid()
            left_half = self._gauss_sum(other.tail, e, part, left, middle)
            right_half = self._gauss_sum(other.tail, e, part, middle, right)
            miss = abs(left_half + right_half - whole).upper()
            if miss < self._tolerance or depth > _MOST_HALVINGS:
                total += left_half + right_half + arb(0, miss)
            else:
                waiting.append((left, middle, left_half, depth + 1))
                waiting.append((middle, right, right_half, depth + 1))
        return total

    def _gauss_sum(self, g: Function, e: arb, part: _MonotonePart, left: arb, right: arb) -> arb:
        centre = (left + right) / 2
        half = (right - left) / 2
        places = [(centre + half * u).mid() for u, _ in self._rule]
        losses = part.panel.loss.evaluate(places, "iter")
        densities = part.density.evaluate(places, "iter")
        from_middle = e - part.panel.middle
        total = arb(0)
        weights = [weight for _, weight in self._rule]
        for weight, density, loss in zip(weights, densities, losses, strict=True):
            value = g((from_middle - loss).mid())
            total = total + weight * density * value
        return half * total
