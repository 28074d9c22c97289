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
from collections.abc import Callable, Iterable, Iterator, Sequence
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

    terms = exponentials.terms
    poles = [pole for pole, _ in exponentials.poles]

    def numbers() -> Numbers:
        polynomials = [[real_ball(c) for c in term.polynomial] for term in terms]
        return Numbers(
            tuple(map(arb_poly, polynomials)),
            rates=tuple(real_ball(term.rate) for term in terms),
            poles=tuple(map(real_ball, poles)),
        )

    return Moment(
        numbers,
        orders=tuple(order for _, order in exponentials.poles),
        rates=tuple(_exact_number(term.rate) for term in terms),
        exact=tuple(map(_exact_number, poles)),
    )


def _exact_number(number: sp.Expr) -> Exact:
    if number.is_Rational:
        return Fraction(int(number.p), int(number.q))
    return number


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
    if total is None or total.products > _MOST_PRODUCTS:
        return None
    return total


def residue_sum(moments: Sequence[tuple[Moment, int]]) -> ResidueSum | None:
    """Return the finite sum of powers of some M, None of too many terms or poles not told apart."""
    counts: dict[Moment, int] = {}
    for moment, count in moments:
        counts[moment] = counts.get(moment, 0) + count
    if sum(counts.values()) > _MOST_STEPS:
        return None
    if _term_count(counts.items()) > _MOST_TERMS:
        return None
    pole_at_0 = _Pole(Fraction(0), None, 0, 1)
    pole_at_minus_1 = _Pole(Fraction(-1), None, 0, 1)
    poles = [pole_at_0, pole_at_minus_1]
    for moment, count in counts.items():
        poles_of_moment = zip(moment.exact, moment.orders, strict=True)
        for number, (exact, order) in enumerate(poles_of_moment):
            pole = _Pole(exact, moment, number, count * order)
            is_same = [pole.is_same(other) for other in poles]
            if None in is_same:
                return None
            if True in is_same:
                index = is_same.index(True)
                other = poles[index]
                poles[index] = other._replace(order=other.order + pole.order)
            else:
                poles.append(pole)
    return ResidueSum(tuple(counts.items()), tuple(poles))


def _term_count(steps: Iterable[tuple[Moment, int]]) -> int:
    """Return how many terms a product of powers of some M has."""
    term_counts = [math.comb(n + moment.terms - 1, n) for moment, n in steps]
    return math.prod(term_counts)


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

        expression = _expression_of(other.exact)
        equal = same_number(_expression_of(self.exact), [expression])
        if equal is None:
            return None
        return bool(equal == expression)


def _ball_of_number(number: Exact) -> arb:
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
        return self.order * _term_count(self.steps)

    def products_above(self, epsilon: Fraction) -> int:
        """Return the work of one ε: all terms if M has poles on the right, else b > ε."""
        with ctx.workprec(_APART_BITS):
            expansion = self._expansion_at(ctx.prec)
            leaves = expansion.leaves
            if all(expansion.sides):
                epsilon_ball = fraction_ball(epsilon)
                leaves = [leaf for leaf in leaves if not leaf.rate < epsilon_ball]
        return len(leaves) * self.order

    def excess(self, epsilon: Exact, is_tight: Callable[[arb], bool]) -> arb:
        """Enclose δ(ε) − δ∞, with as many bits as make the ball tight."""
        step_count = sum(count for _, count in self.steps)
        bits = ctx.prec + 2 * step_count
        while bits <= _MOST_BITS:
            with ctx.workprec(bits):
                ball = self._expansion_at(bits).sum(epsilon)
                if ball.is_zero() or (ball.is_finite() and is_tight(ball)):
                    return ball
            bits *= 2
        raise AccuracyError("the residues cancel in too many digits; ask for fewer digits")

    def fall(self, epsilon: Exact) -> arb:
        """Enclose −dδ/dε, to about the bits of the working precision less those that cancel."""
        bits = max(self._expansions, default=ctx.prec)
        with ctx.workprec(bits):
            return self._expansion_at(bits).sum(epsilon, falling=True)

    def _expansion_at(self, bits: int) -> _Expansion:
        if bits not in self._expansions:
            self._expansions[bits] = _Expansion(self.steps, self.places)
        return self._expansions[bits]


def _expression_of(number: Exact) -> sp.Expr:
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
        difference = -epsilon
        for power, rate in zip(self.powers, rates, strict=True):
            if not power:
                continue
            if rate is None:
                return None
            difference += power * rate
        if isinstance(difference, Fraction):
            return (difference > 0) - (difference < 0)
        from symdp.density.signs import sign_of

        return sign_of(difference)


class _Expansion:
    """The terms of the product at one precision; the power series of those that were asked for."""

    def __init__(self, steps: Sequence[tuple[Moment, int]], places: Sequence[_Pole]) -> None:
        self._polynomials: list[arb_poly] = []
        self._rates: list[Exact | None] = []
        rates: list[arb] = []
        for moment, _ in steps:
            numbers = moment.numbers()
            self._polynomials += numbers.polynomials
            self._rates += moment.rates
            rates += numbers.rates
        self._places = [pole.ball() for pole in places]
        self._orders = [pole.order for pole in places]
        self.sides = [not pole > 0 for pole in self._places]
        self.leaves: list[_Leaf] = []
        shares_of_moments = [_shares(n, moment.terms) for moment, n in steps]
        for shares in itertools.product(*shares_of_moments):
            powers = tuple(itertools.chain(*shares))
            products = (power * rate for power, rate in zip(powers, rates, strict=True))
            weight = math.prod(map(_multinomial, shares))
            self.leaves.append(_Leaf(powers, weight, sum(products, arb(0))))
        self._powers: dict[tuple[int, int, int], arb_poly] = {}
        self._residues: dict[tuple[int, int], arb_poly] = {}

    def sum(self, epsilon: Exact, *, falling: bool = False) -> arb:
        """Enclose δ(ε) − δ∞, or −dδ/dε."""
        total = arb(0)
        epsilon_ball = _ball_of_number(epsilon)
        for number, leaf in enumerate(self.leaves):
            apart = leaf.rate - epsilon_ball
            if apart > 0:
                sign: int | None = 1
            elif apart < 0:
                sign = -1
            else:
                sign = leaf.sign_beyond(epsilon, self._rates)
            if sign is None:  # continuous in b − ε, and closed on its own side at each
                left = self._closed_on_side(number, apart, True, falling)
                right = self._closed_on_side(number, apart, False, falling)
                total += left.union(-right)
            elif sign > 0:
                total += self._closed_on_side(number, apart, True, falling)
            else:
                distance = apart if sign else arb(0)
                total -= self._closed_on_side(number, distance, False, falling)
        return total

    def _closed_on_side(self, number: int, apart: arb, on_left: bool, falling: bool) -> arb:
        """Enclose the residues of a term on one side of the line, or their derivatives in b − ε."""
        total = arb(0)
        for index, pole in enumerate(self._places):
            if self.sides[index] is not on_left:
                continue
            residue = self._residue(number, index)
            if falling:
                residue = residue.derivative() + pole * residue
            total += residue(apart) * (apart * pole).exp()
        return total

    def _residue(self, number: int, index: int) -> arb_poly:
        """Return a residue but for e^{sp}, a polynomial in s = b − ε of degree N − 1."""
        key = (number, index)
        if key in self._residues:
            return self._residues[key]
        leaf = self.leaves[number]
        order = self._orders[index]
        series = self._series_of_others[index] * leaf.weight
        for term, power in enumerate(leaf.powers):
            if power:
                factor = self._power_around(index, term, power)
                series = (series * factor).truncate(order)
        coefficients = series.coeffs()
        coefficients += [arb(0)] * (order - len(coefficients))
        falling = [coefficients[order - 1 - k] for k in range(order)]
        residue = [coefficient / arb(k).fac() for k, coefficient in enumerate(falling)]
        self._residues[key] = arb_poly(residue)
        return self._residues[key]

    def _power_around(self, index: int, term: int, power: int) -> arb_poly:
        """Return a power of an N around a pole."""
        key = (index, term, power)
        if key not in self._powers:
            order = self._orders[index]
            shifted = self._polynomials[term](arb_poly([self._places[index], 1]))
            series = shifted.truncate(order) ** power
            self._powers[key] = series.truncate(order)
        return self._powers[key]

    @cached_property
    def _series_of_others(self) -> list[arb_poly]:
        """For each pole the power series of what all other poles divide by."""
        all_series = []
        for pole, order in zip(self._places, self._orders, strict=True):
            series = arb_poly([1])
            for other, times in zip(self._places, self._orders, strict=True):
                if other is not pole:
                    factor = _inverse_power(pole - other, times, order)
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
    ways = 1
    total = 0
    for power in powers:
        total += power
        ways *= math.comb(total, power)
    return ways


def _inverse_power(distance: arb, times: int, length: int) -> arb_poly:
    """Return (d + w)^(−k) to so many coefficients."""
    coefficients = [distance**-times]
    for j in range(1, length):
        ratio_above = times + j - 1
        coefficients.append(-coefficients[-1] * ratio_above / (j * distance))
    return arb_poly(coefficients)


_MOST_ABOVE = 1e5  # terms above ε times orders of poles: a tenth of a second
_MOST_KINDS = 16  # distinct steps: of more that have two terms each, the terms are too many
_TILT, _TURNS = -0.375, (0.0, 1.0)  # with y over the deviation: where M is compared with nodes


def residue_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε), None where M of a step is no such sum, or the terms are too many."""
    total = residues(law)
    exact_epsilon = Fraction(epsilon)
    if total is None or total.products_above(exact_epsilon) > _MOST_ABOVE:
        return None
    log_infinite = law.log_mass_at_infinity
    try:
        with ctx.workprec(BALL_BITS):
            finite = total.excess(exact_epsilon, lambda ball: is_narrow(ball, log_infinite))
            answer = answer_in_balls(finite, log_infinite)
            return falling_answer(answer, total.fall(exact_epsilon))
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
        if moment is None or not (moment.is_checked or _agrees_with_nodes(part, moment)):
            return None
        moments.append((moment, count))
    return residue_sum(moments)


def _agrees_with_nodes(law: LossLaw, moment: Moment) -> bool:
    """Return whether M has the values of the nodes, and its mass is 1 less that at infinity."""
    base = law.base
    variance = float(base.weight @ (base.loss - base.mean) ** 2)
    deviation = math.sqrt(variance)
    terms_at_tilt = np.exp(base.log_weight + _TILT * base.loss)
    size = float(terms_at_tilt.sum())
    with ctx.workprec(BALL_BITS):
        numbers = moment.numbers()
        for y in _TURNS:
            frequency = y / deviation if deviation > 0 else 0.0
            z = complex(_TILT, frequency)
            value = numbers.at(acb(z.real, z.imag), moment.orders)
            terms = np.exp(base.log_weight + z * base.loss)
            node_sum = complex(terms.sum())
            gap = abs(value - acb(node_sum.real, node_sum.imag))
            if not gap < TOLERABLE * size:
                return False
        mass = numbers.at(acb(0), moment.orders).real + law.mass_at_infinity
        return bool(abs(mass - 1) < SETTLED) or not mass.is_finite()
