"""δ(ε) of composed steps as a finite sum of residues, in balls.

Where M(z) of each step is a sum of rational functions times exponentials, Mⁿ is one too, and

    δ(ε) = δ∞ + (1/2πi) ∫ M(z)ⁿ e^{−εz}/(z(z+1)) dz        on a line Re z = c > 0   [SPA (28)]

is a sum over its terms R(z) e^{(b−ε)z}/(z(z+1)).  For b ≥ ε an arc to the left closes the line:
the term counts its residues at all poles p < c.  For b ≤ ε an arc to the right does: minus the
residues at p > c.  At b = ε both do, so that a ball of b − ε around 0 may be closed on either side.
A pole of M with p > 0 lies beyond the line, as M is finite from 0 up to the first of them.

At a pole p of order N a residue is the coefficient of wᴺ⁻¹ in a power series in w = z − p times
e^{s(p + w)}, s = b − ε.  The series has no ε: it is made once a precision, for every ε.  Terms
cancel: about one bit is lost a step and more where δ is small, so that the precision is doubled
until the ball is narrow enough.

**As a row of the table**, what was read of M is compared with the nodes of each law, at its own
values of the parameters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from flint import acb, arb, arb_poly, ctx

from symdp.arguments import counted_pairs
from symdp.emit.exact import fraction_ball
from symdp.errors import AccuracyError
from symdp.numeric.answer import (
    BALL_BITS,
    SETTLED,
    TOLERABLE,
    Answer,
    answer_in_balls,
    falling_answer,
    is_narrow,
)
from symdp.numeric.loss import LossLaw
from symdp.numeric.step import Exact, Moment, Numbers
from symdp.numeric.total import SumLaw, kept_with_law

if TYPE_CHECKING:
    import sympy as sp

    from symdp.density.exponential_sum import ExponentialSum
    from symdp.model.pair import Pair

_MOST_TERMS = 50_000  # of Mⁿ
_MOST_STEPS, _MOST_PRODUCTS = 1_000, 5e5  # terms times orders of poles: a few seconds
_MOST_BITS = 2**15  # carried
_APART_BITS = 256  # that tell two poles apart


@lru_cache(maxsize=128)
def moment_of(exponentials: ExponentialSum) -> Moment:
    """Return a sum that was read, its numbers at any precision."""
    from symdp.emit.exact import real_ball

    def numbers() -> Numbers:
        return Numbers(
            tuple(arb_poly([real_ball(c) for c in term.polynomial]) for term in exponentials.terms),
            tuple(real_ball(term.rate) for term in exponentials.terms),
            tuple(real_ball(pole) for pole, _ in exponentials.poles),
        )

    return Moment(
        numbers,
        tuple(order for _, order in exponentials.poles),
        tuple(_exact(term.rate) for term in exponentials.terms),
        tuple(_exact(pole) for pole, _ in exponentials.poles),
    )


def _exact(number: sp.Expr) -> Exact:
    return Fraction(int(number.p), int(number.q)) if number.is_Rational else number


def residues_of(steps: Sequence[tuple[Pair, int]]) -> ResidueSum | None:
    """Return the finite sum that is δ(ε) of pairs, None where there is none, or it is too long."""
    from symdp.density.exponential_sum import exponential_sum

    if sum(count for _, count in counted_pairs(steps, "pair")) > _MOST_STEPS:
        return None
    moments = []
    for pair, count in steps:
        exponentials = exponential_sum(pair)
        if exponentials is None:
            return None
        moments.append((moment_of(exponentials), count))
    total = residue_sum(moments)
    return None if total is None or total.products > _MOST_PRODUCTS else total


def residue_sum(moments: Sequence[tuple[Moment, int]]) -> ResidueSum | None:
    """Return the finite sum of powers of some M, None of too many terms or poles not told apart."""
    counts: dict[Moment, int] = {}
    for moment, count in moments:
        counts[moment] = counts.get(moment, 0) + count
    if sum(counts.values()) > _MOST_STEPS:
        return None
    if math.prod(math.comb(n + m.terms - 1, n) for m, n in counts.items()) > _MOST_TERMS:
        return None
    places = [_Pole(Fraction(0), None, 0, 1), _Pole(Fraction(-1), None, 0, 1)]
    for moment, count in counts.items():
        for number, (exact, order) in enumerate(zip(moment.exact, moment.orders, strict=True)):
            pole = _Pole(exact, moment, number, count * order)
            same = [pole.is_same(other) for other in places]
            if None in same:
                return None
            if True in same:
                at = same.index(True)
                places[at] = places[at]._replace(order=places[at].order + pole.order)
            else:
                places.append(pole)
    return ResidueSum(tuple(counts.items()), tuple(places))


class _Pole(NamedTuple):
    """A pole of the integrand: an exact number, or the n-th pole of an M, and its order at most."""

    exact: Exact | None
    moment: Moment | None
    number: int
    order: int

    def ball(self) -> arb:
        """Enclose its place."""
        if self.moment is not None:
            return self.moment.numbers().poles[self.number]
        assert isinstance(self.exact, Fraction)
        return fraction_ball(self.exact)

    def is_same(self, other: _Pole) -> bool | None:
        """Return whether two poles are one, None where that cannot be told."""
        if isinstance(self.exact, Fraction) and isinstance(other.exact, Fraction):
            return self.exact == other.exact
        with ctx.workprec(_APART_BITS):
            if not self.ball().overlaps(other.ball()):
                return False
        if self.exact is None or other.exact is None:
            return None
        from symdp.density.exponential_sum import same_number

        two = _expression(other.exact)
        is_equal = same_number(_expression(self.exact), [two])
        return None if is_equal is None else is_equal == two


def _ball(number: Exact) -> arb:
    """Enclose an exact number at the working precision."""
    if isinstance(number, Fraction | int):
        return fraction_ball(Fraction(number))
    from symdp.emit.exact import real_ball

    return real_ball(number)


@dataclass(frozen=True, eq=False)
class ResidueSum:
    """The product of powers of some M, each a sum of rational functions times exponentials."""

    steps: tuple[tuple[Moment, int], ...]  # the M, and how often each stands in the product
    places: tuple[_Pole, ...]  # the poles of the integrand, and their orders at most
    _expansions: dict[int, _Expansion] = field(default_factory=dict)

    @property
    def order(self) -> int:
        """The sum of the orders of all poles."""
        return sum(pole.order for pole in self.places)

    @property
    def products(self) -> int:
        """Terms times orders: the work."""
        return self.order * math.prod(math.comb(n + m.terms - 1, n) for m, n in self.steps)

    def products_above(self, epsilon: Fraction) -> int:
        """Return the work of one ε: all terms if M has poles on the right, else b > ε."""
        with ctx.workprec(_APART_BITS):
            expansion = self._at(ctx.prec)
            count = len(expansion.leaves)
            if all(expansion.sides):
                at = fraction_ball(epsilon)
                count = sum(1 for leaf in expansion.leaves if not leaf.rate < at)
        return count * self.order

    def excess(self, epsilon: Exact, is_tight: Callable[[arb], bool]) -> arb:
        """Enclose δ(ε) − δ∞, with as many bits as make the ball tight."""
        bits = ctx.prec + 2 * sum(count for _, count in self.steps)
        while bits <= _MOST_BITS:
            with ctx.workprec(bits):
                ball = self._at(bits).sum(epsilon)
                if ball.is_zero() or (ball.is_finite() and is_tight(ball)):
                    return ball
            bits *= 2
        raise AccuracyError("the residues cancel in too many digits; ask for fewer digits")

    def fall(self, epsilon: Exact) -> arb:
        """Enclose −dδ/dε, to about the bits of the working precision less those that cancel."""
        bits = max(self._expansions, default=ctx.prec)
        with ctx.workprec(bits):
            return self._at(bits).sum(epsilon, falling=True)

    def _at(self, bits: int) -> _Expansion:
        if bits not in self._expansions:
            self._expansions[bits] = _Expansion(self.steps, self.places)
        return self._expansions[bits]


def _expression(number: Exact) -> sp.Expr:
    import sympy as sp

    if isinstance(number, Fraction):
        return sp.Rational(number.numerator, number.denominator)
    return number


class _Leaf(NamedTuple):
    """A term of the product: the powers of each N, how often it stands, and b."""

    powers: tuple[int, ...]
    weight: int
    rate: arb

    def sign_beyond(self, epsilon: Exact, rates: Sequence[Exact | None]) -> int | None:
        """Return the sign of b − ε from exact numbers, None where they do not tell."""
        exact = -epsilon
        for power, rate in zip(self.powers, rates, strict=True):
            if power:
                if rate is None:
                    return None
                exact += power * rate
        if isinstance(exact, Fraction):
            return (exact > 0) - (exact < 0)
        from symdp.density.signs import sign_of

        return sign_of(exact)


class _Expansion:
    """The terms of the product at one precision; the power series of those that were asked for."""

    def __init__(self, steps: Sequence[tuple[Moment, int]], places: Sequence[_Pole]) -> None:
        numbers = [moment.numbers() for moment, _ in steps]
        self._polynomials = [p for step_numbers in numbers for p in step_numbers.polynomials]
        rates = [rate for step_numbers in numbers for rate in step_numbers.rates]
        self._rates = [rate for moment, _ in steps for rate in moment.rates]
        self._places, self._orders = [p.ball() for p in places], [p.order for p in places]
        self.sides = [not pole > 0 for pole in self._places]
        self.leaves: list[_Leaf] = []
        for shares in itertools.product(*(_shares(n, m.terms) for m, n in steps)):
            powers = tuple(itertools.chain(*shares))
            rate = sum((k * b for k, b in zip(powers, rates, strict=True)), arb(0))
            self.leaves.append(_Leaf(powers, math.prod(map(_multinomial, shares)), rate))
        self._powers: dict[tuple[int, int, int], arb_poly] = {}
        self._residues: dict[tuple[int, int], arb_poly] = {}

    def sum(self, epsilon: Exact, *, falling: bool = False) -> arb:
        """Enclose δ(ε) − δ∞, or −dδ/dε."""
        total, at = arb(0), _ball(epsilon)
        for number, leaf in enumerate(self.leaves):
            apart = leaf.rate - at
            sign = 1 if apart > 0 else -1 if apart < 0 else leaf.sign_beyond(epsilon, self._rates)
            if sign is None:  # continuous in b − ε, and closed on its own side at each
                right = -self._closed(number, apart, False, falling)
                total += self._closed(number, apart, True, falling).union(right)
            elif sign > 0:
                total += self._closed(number, apart, True, falling)
            else:
                total -= self._closed(number, apart if sign else arb(0), False, falling)
        return total

    def _closed(self, number: int, apart: arb, on_left: bool, falling: bool) -> arb:
        """Enclose the residues of a term on one side of the line, or their derivatives in b − ε."""
        total = arb(0)
        for at, pole in enumerate(self._places):
            if self.sides[at] is on_left:
                residue = self._residue(number, at)
                if falling:
                    residue = residue.derivative() + pole * residue
                total += residue(apart) * (apart * pole).exp()
        return total

    def _residue(self, number: int, at: int) -> arb_poly:
        """Return a residue but for e^{sp}, a polynomial in s = b − ε of degree N − 1."""
        polynomial = self._residues.get((number, at))
        if polynomial is None:
            leaf, order = self.leaves[number], self._orders[at]
            series = self._others[at] * leaf.weight
            for term, power in enumerate(leaf.powers):
                if power:
                    series = (series * self._power(at, term, power)).truncate(order)
            coefficients = series.coeffs()
            coefficients += [arb(0)] * (order - len(coefficients))
            polynomial = arb_poly(
                [coefficients[order - 1 - k] / arb(k).fac() for k in range(order)]
            )
            self._residues[number, at] = polynomial
        return polynomial

    def _power(self, at: int, term: int, power: int) -> arb_poly:
        """Return a power of an N around a place."""
        series_power = self._powers.get((at, term, power))
        if series_power is None:
            order = self._orders[at]
            shifted = self._polynomials[term](arb_poly([self._places[at], 1]))
            series_power = (shifted.truncate(order) ** power).truncate(order)
            self._powers[at, term, power] = series_power
        return series_power

    @cached_property
    def _others(self) -> list[arb_poly]:
        """For each place the power series of what all other poles divide by."""
        all_series = []
        for at, order in zip(self._places, self._orders, strict=True):
            series = arb_poly([1])
            for other, times in zip(self._places, self._orders, strict=True):
                if other is not at:
                    factor = _inverse_power(at - other, times, order)
                    series = (series * factor).truncate(order)
            all_series.append(series)
        return all_series


def _shares(count: int, terms: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to deal a count out to terms, neighbours alike in front."""
    if terms == 1:
        yield (count,)
        return
    for first in range(count + 1):
        for shares in _shares(count - first, terms - 1):
            yield first, *shares


def _multinomial(powers: Sequence[int]) -> int:
    """Return (Σk)!/Πk!."""
    ways, total = 1, 0
    for k in powers:
        total += k
        ways *= math.comb(total, k)
    return ways


def _inverse_power(distance: arb, times: int, length: int) -> arb_poly:
    """Return (d + w)^(−k) to so many coefficients."""
    coefficients = [distance**-times]
    for j in range(1, length):
        coefficients.append(-coefficients[-1] * (times + j - 1) / (j * distance))
    return arb_poly(coefficients)


_MOST_ABOVE = 1e5  # terms above ε times orders of poles: a tenth of a second
_MOST_KINDS = 16  # distinct steps: of more that have two terms each, the terms are too many
_TILT, _TURNS = -0.375, (0.0, 1.0)  # with y over the deviation: where M is compared with nodes


def residue_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε), None where M of a step is no such sum, or the terms are too many."""
    total = residues(law)
    at = Fraction(epsilon)
    if total is None or total.products_above(at) > _MOST_ABOVE:
        return None
    log_infinite = law.log_mass_at_infinity
    try:
        with ctx.workprec(BALL_BITS):
            finite = total.excess(at, lambda ball: is_narrow(ball, log_infinite))
            return falling_answer(answer_in_balls(finite, log_infinite), total.fall(at))
    except AccuracyError:
        return None


@kept_with_law
def residues(law: SumLaw) -> ResidueSum | None:
    """Return the finite sum that is δ, if there is one."""
    if not law.is_spread or len(law.terms) > _MOST_KINDS:
        return None
    moments = []
    for part, count in law.parts:
        moment = part.moment
        if moment is None or not (moment.is_checked or _is_of(part, moment)):
            return None
        moments.append((moment, count))
    return residue_sum(moments)


def _is_of(law: LossLaw, moment: Moment) -> bool:
    """Return whether M has the values of the nodes, and its mass is 1 less that at infinity."""
    base = law.base
    deviation = math.sqrt(float(base.weight @ (base.loss - base.mean) ** 2))
    with ctx.workprec(BALL_BITS):
        numbers = moment.numbers()
        for y in _TURNS:
            z = complex(_TILT, y / deviation if deviation > 0 else 0.0)
            value = numbers.at(acb(z.real, z.imag), moment.orders)
            seen = complex(np.exp(base.log_weight + z * base.loss).sum())
            size = float(np.exp(base.log_weight + _TILT * base.loss).sum())
            if not abs(value - acb(seen.real, seen.imag)) < TOLERABLE * size:
                return False
        mass = numbers.at(acb(0), moment.orders).real + law.mass_at_infinity
        return bool(abs(mass - 1) < SETTLED) or not mass.is_finite()
