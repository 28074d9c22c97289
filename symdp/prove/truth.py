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
    return _profile(pairs, epsilon, (digits,), None).value


def profile(
    pairs: Iterable[tuple[OneStep, int]], epsilon: float | Fraction | sp.Rational, digits: int = 30
) -> Profile:
    """Return δ(ε) to so many digits, or to as many as can be had, at the least those of a mesh."""
    digit_counts = tuple(dict.fromkeys((digits, min(digits, FEWER_DIGITS))))
    return _profile(pairs, epsilon, digit_counts, digits)


def _profile(
    pairs: Iterable[tuple[OneStep, int]], epsilon: Any, asked: Sequence[int], mesh: int | None
) -> Profile:
    steps = tuple(counted_pairs(pairs, "pair"))
    if isinstance(epsilon, sp.Basic) and not epsilon.is_Rational:
        raise InputError(f"epsilon = {epsilon}: give a rational number, or a double close by")
    exact = (
        Fraction(int(epsilon.p), int(epsilon.q)) if isinstance(epsilon, sp.Rational) else epsilon
    )
    sharp = tuple(way for way in WAYS if way.is_sharp)
    refusal = AccuracyError("the plan proves fewer digits, and more steps are too many to add")
    for digits in asked:
        try:
            way, ball = enclose_by(sharp, steps, exact, digits)
            return Profile(_to_mpf(ball, digits), _digits(ball, digits), True, way)
        except AccuracyError as own:
            refusal = own
        try:
            ball = _added(steps, Fraction(exact), digits)
            return Profile(_to_mpf(ball, digits), _digits(ball, digits), False, "convolution")
        except AccuracyError as own:
            refusal = own if own.args[0] else refusal
    if mesh is None:
        raise refusal
    way, ball = enclose_by(WAYS, steps, exact, mesh)
    return Profile(_to_mpf(ball, mesh), _digits(ball, mesh), True, way)


def _digits(ball: arb, digits: int) -> int:
    if 2 * ball.rad() <= abs(ball.mid()) * arb(10) ** -digits:
        return digits
    return max(int(ball.rel_accuracy_bits() * math.log10(2.0)), 0)


def _to_mpf(ball: arb, digits: int) -> Any:
    mantissa, exponent = ball.mid().man_exp()
    with mpmath.workdps(digits + 5):
        return mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))


def _added(steps: Sequence[tuple[OneStep, int]], epsilon: Fraction, digits: int) -> arb:
    """Return δ(ε) within what its two sums differ by, if that is little enough."""
    kinds = [(kind_of(pair), n) for pair, n in steps if not isinstance(pair, AllocatedPair)]
    dense = [(kind, count) for kind, count in kinds if not kind.is_discrete]
    if len(kinds) < len(steps) or sum(count for _, count in dense) > _MOST_STEPS:
        raise AccuracyError("")
    saddle = find_saddle(sum_law(tuple(kinds)), float(epsilon))
    # Without a moment a large loss is likely, and δ is not small.
    log_size = -4.0 if saddle is None else min(saddle.log_size, 0.0)
    log_error = log_size - (digits + _SPARE) * LN10
    bits = int(-log_error / math.log(2)) + 32
    with limited(digits, _WORK), ctx.workprec(2 * bits):
        step_laws = {kind: _Step(kind, log_error, bits) for kind, _ in kinds}
        sums = [(arb(1), arb(0))]
        for kind, count in kinds:
            for _ in range(count if kind.is_discrete else 0):
                sums = _merged(sums, step_laws[kind].atoms)
        ends = [fraction_ball(epsilon) - x for _, x in sums]
        g: Function = _payoff
        if dense:
            first, last = step_laws[dense[0][0]], step_laws[dense[-1][0]]
            is_single = dense == [(dense[0][0], 1)]
            g = first.tail if is_single else partial(last.expected, first)
        total = sum((mass * g(e) for (mass, _), e in zip(sums, ends, strict=True)), arb(0))
        missed = sum(  # of laws of mass 1
            (
                n * abs(1 - step_laws[kind_of(p)].mass - mass_at_infinity([(p, 1)], log_error))
                for p, n in steps
            ),
            arb(0),
        )
        ball = total.max(arb(0)) + mass_at_infinity(steps, log_error) + arb(0, missed.upper())
        if not (ball > 0 and _digits(ball, digits) >= digits):
            raise AccuracyError(
                f"two sums of δ agree on fewer than {digits} digits ({ball.str(10)}); ask for "
                "fewer digits"
            )
        return ball


def _payoff(e: arb) -> arb:
    return (-e.expm1()).max(arb(0))


def _apart(places: Sequence[arb]) -> list[arb]:
    """Return places in order, those once of which doubles hardly know that they differ."""
    distinct: list[arb] = []
    for point in sorted((p.mid() for p in places), key=arb.fmpq):
        if not distinct or point - distinct[-1] > 1e-12 * (1 + abs(point)):
            distinct.append(point)
    return distinct


def _merged(
    sums: Sequence[tuple[arb, arb]], atoms: Sequence[tuple[arb, arb]]
) -> list[tuple[arb, arb]]:
    """Return masses and losses of all sums of two, those of equal losses once."""
    merged: list[tuple[arb, arb]] = []
    both = [(p * q, x + y) for p, x in sums for q, y in atoms]
    for mass, loss in sorted(both, key=lambda atom: atom[1].mid().fmpq()):
        if merged and merged[-1][1].overlaps(loss):
            merged[-1] = merged[-1][0] + mass, merged[-1][1]
        else:
            merged.append((mass, loss))
    if len(merged) > _MOST_SUMS:
        raise AccuracyError("sums of atoms are too many to add; ask for fewer digits")
    return merged


@dataclass(frozen=True)
class _Part:
    """A part of a panel, in its u, on which the loss rises or falls, from `low` to `high`."""

    panel: Panel
    run: Run
    density: arb_poly
    slope: arb_poly
    low: float
    high: float

    def masses(self, left: arb, right: arb) -> tuple[arb, arb]:
        """Return P and Q between two places."""
        p, q = self.panel.p, self.panel.q
        return p(right) - p(left), q(right) - q(left)

    @cached_property
    def _known(self) -> tuple[Any, Any]:
        """Losses less the middle, rising, and places in doubles."""
        start, end, sign, _ = self.run
        places = (start + (end - start) * np.linspace(0, 1, _KNOWN))[::sign]
        return np.polynomial.chebyshev.chebval(places, self.panel.shape), places

    def place(self, e: arb) -> arb:
        """Return where the loss is e, an end where it is beyond all losses there."""
        low, high, sign = arb(self.run.start), arb(self.run.end), self.run.sign
        wanted, small = (e - self.panel.middle).mid(), arb(2) ** (-ctx.prec // 3)
        u = arb(float(np.interp(float(wanted), *self._known)))
        for _ in range(ctx.prec):
            miss = (sign * (self.panel.loss(u) - wanted)).mid()
            low, high = (u, high) if miss < 0 else (low, u)
            move = (miss / (sign * self.slope(u))).mid()
            if abs(move) < small or high - low < small:
                break
            u = (u - move).mid() if low < u - move < high else ((low + high) / 2).mid()
        return u


class _Step:
    """One step's law in parts and atoms, all its values within about an error."""

    def __init__(self, kind: Kind, log_error: float, bits: int) -> None:
        self._tolerance = arb(log_error).exp()
        panels = panels_of(kind, 0.0, 0.0, log_error)
        outcomes, _ = outcomes_of(kind, panels, bits, _STRAY_BITS, bits)
        atoms = [outcome for outcome in outcomes if isinstance(outcome, Atom)]
        self.atoms = [(atom.mass.mid(), atom.loss.mid()) for atom in atoms]
        parts = list[_Part]()
        kinks = [x for _, x in self.atoms]
        for panel in outcomes:
            if isinstance(panel, Panel):
                shapes = panel.p.derivative(), panel.loss.derivative()
                for run in panel.runs:
                    ends = [(panel.loss(arb(u)) + panel.middle).mid() for u in run[:2]]
                    kinks += ends
                    about = sorted(map(float, ends))
                    parts.append(_Part(panel, run, *shapes, *about))
        self.low, self.high = min(kinks, default=arb(0)), max(kinks, default=arb(0))
        self.kinks = _apart([*(x for _, x in self.atoms), self.low, self.high])
        self._parts = sorted(parts, key=lambda part: part.low)
        self._lows = np.asarray([part.low for part in self._parts])
        self._highs = np.asarray([part.high for part in self._parts])
        whole = [part.masses(arb(part.run.start), arb(part.run.end)) for part in self._parts]
        self._above = [(arb(0), arb(0))]  # P and Q of the last parts
        for p, q in whole[::-1]:
            self._above.append((self._above[-1][0] + p, self._above[-1][1] + q))
        self.mass = sum((mass for mass, _ in self.atoms), self._above[-1][0])
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
            u, (start, end, sign, _) = part.place(e), part.run
            beyond = (u, arb(end)) if sign > 0 else (arb(start), u)
            part_masses = part.masses(*beyond)
            p, q = p + part_masses[0], q + part_masses[1]
        total = sum((mass * _payoff(e - loss) for mass, loss in self.atoms), arb(0))
        return arb(total + p - e.exp() * q)

    def expected(self, other: _Step, e: arb) -> arb:
        """E g(e − ℓ), g being the tail of another step."""
        total = sum((mass * other.tail(e - loss) for mass, loss in self.atoms), arb(0))
        for part in self._parts:
            places = [arb(part.run.start), arb(part.run.end)]
            places += [
                part.place(x)
                for k in other.kinks
                if part.run.sign and part.low < (x := e - k) < part.high
            ]
            waiting = [
                (a, b, self._sum(other.tail, e, part, a, b), 0) for a, b in pairwise(_apart(places))
            ]
            while waiting:
                left, right, whole, depth = waiting.pop()
                middle = ((left + right) / 2).mid()
                ends = (left, middle), (middle, right)
                halves = [self._sum(other.tail, e, part, *both) for both in ends]
                miss = abs(halves[0] + halves[1] - whole).upper()
                if miss < self._tolerance or depth > _MOST_HALVINGS:
                    total += halves[0] + halves[1] + arb(0, miss)
                else:
                    waiting += [(*b, h, depth + 1) for b, h in zip(ends, halves, strict=True)]
        return total

    def _sum(self, g: Function, e: arb, one: _Part, left: arb, right: arb) -> arb:
        centre, half = (left + right) / 2, (right - left) / 2
        places = [(centre + half * x).mid() for x, _ in self._rule]
        losses = one.panel.loss.evaluate(places, "iter")
        masses = one.density.evaluate(places, "iter")
        away = e - one.panel.middle
        values = (
            w * p * g((away - x).mid())
            for (_, w), p, x in zip(self._rule, masses, losses, strict=True)
        )
        return half * sum(values, arb(0))
