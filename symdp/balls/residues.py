"""δ(ε) of composed steps as a finite sum of residues, in balls.

Where M(z) of each step is a sum of rational functions times exponentials, Mⁿ is one too, and

    δ(ε) = δ∞ + (1/2πi) ∫ M(z)ⁿ e^{−εz}/(z(z+1)) dz        on a line Re z = c > 0   [SPA (28)]

is a sum over its terms R(z) e^{(b−ε)z}/(z(z+1)).  For b > ε an arc to the left closes the line:
the term counts its residues at all poles p < c.  For b < ε an arc to the right does: minus the
residues at p > c.  At b = ε both do.  A pole of M with p > 0 lies beyond the line, as M is finite
from 0 up to the first of them.

At a pole p of order N a residue is the coefficient of wᴺ⁻¹ in a product of power series in
w = z − p.  Terms cancel: about one bit is lost a step and more where δ is small, so that the
precision is doubled until the ball is narrow enough.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import sympy as sp
from flint import arb, arb_poly, ctx

from symdp.arguments import counted_pairs
from symdp.derive.exponential_sum import ExponentialSum, exponential_sum, same_number
from symdp.derive.signs import sign_of
from symdp.emit.exact import real_ball
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_MOST_TERMS = 50_000  # of Mⁿ
_MOST_STEPS, _MOST_PRODUCTS = 1_000, 5e5  # terms times orders of poles: a few seconds
_MOST_BITS = 2**15  # carried


def residues_of(steps: Sequence[tuple[Pair, int]]) -> ResidueSum | None:
    """Return the finite sum that is δ(ε), None where a step has none or the terms are too many.

    Parameters
    ----------
    steps : sequence of (Pair, count)
        All parameters bound.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> total = residues_of([(mechanisms.laplace(b=5).pair(), 100)])
    >>> total.excess(Fraction(3), lambda ball: ball.rel_accuracy_bits() > 99).str(25, radius=False)
    '0.1613379859761353997257292'
    """
    if sum(count for _, count in counted_pairs(steps, "pair")) > _MOST_STEPS:
        return None
    counts: dict[ExponentialSum, int] = {}
    for pair, count in steps:
        found = exponential_sum(pair)
        if found is None:
            return None
        counts[found] = counts.get(found, 0) + count
    places: dict[sp.Expr, int] = {sp.S.Zero: 1, sp.S.NegativeOne: 1}
    for moment, count in counts.items():
        for pole, order in moment.poles:
            at = same_number(pole, places)
            if at is None:
                return None
            places[at] = places.get(at, 0) + count * order
    terms = math.prod(math.comb(n + len(m.terms) - 1, n) for m, n in counts.items())
    if terms > _MOST_TERMS or terms * sum(places.values()) > _MOST_PRODUCTS:
        return None
    return ResidueSum(tuple(counts.items()), tuple(places.items()))


@dataclass(frozen=True)
class ResidueSum:
    """The product of powers of some M, each a sum of rational functions times exponentials.

    Attributes
    ----------
    steps
        The M, and how often each stands in the product.
    places
        The poles of the integrand, and their orders at most.
    """

    steps: tuple[tuple[ExponentialSum, int], ...]
    places: tuple[tuple[sp.Expr, int], ...]

    def excess(self, epsilon: Fraction | sp.Expr, is_tight: Callable[[arb], bool]) -> arb:
        """Enclose δ(ε) − δ∞, with as many bits as make the ball narrow enough.

        Parameters
        ----------
        epsilon
            Any real number, taken exactly.
        is_tight
            Whether a ball is as narrow as is wanted.

        Raises
        ------
        AccuracyError
            If that takes too many bits.
        """
        at = sp.sympify(epsilon, strict=True)
        bits = ctx.prec + 2 * sum(count for _, count in self.steps)
        while bits <= _MOST_BITS:
            with ctx.workprec(bits):
                ball = self._sum(at)
                if ball.is_zero() or (ball.is_finite() and is_tight(ball)):
                    return ball
            bits *= 2
        raise AccuracyError("the residues cancel in too many digits; ask for fewer digits")

    def _sum(self, epsilon: sp.Expr) -> arb:
        """Enclose the sum at the working precision."""
        sides = [not at.is_positive for at, _ in self.places]
        leaves = [leaf for leaf in self._leaves(epsilon) if leaf.sign > 0 or not all(sides)]
        total = arb(0)
        for (at, order), is_left in zip(self.places, sides, strict=True):
            own = [leaf for leaf in leaves if (leaf.sign > 0) == is_left]
            for leaf, series in self._series(at, order, own):
                residue = leaf.weight * _coefficient(series, order, at, leaf.excess)
                total += residue if is_left else -residue
        return total

    def _leaves(self, epsilon: sp.Expr) -> list[_Leaf]:
        """Return the terms of the product: the powers of each N, b − ε and its sign."""
        rates = [term.rate for moment, _ in self.steps for term in moment.terms]
        balls = [real_ball(rate) for rate in rates]
        found = []
        for shares in itertools.product(*(_shares(n, len(m.terms)) for m, n in self.steps)):
            powers = tuple(itertools.chain(*shares))
            excess = sum((k * b for k, b in zip(powers, balls, strict=True)), -real_ball(epsilon))
            if excess.contains(0):  # on whose side of the line, exact numbers say
                exact = sp.Add(*(k * b for k, b in zip(powers, rates, strict=True))) - epsilon
                sign = sign_of(exact)
                if sign is None:
                    raise AccuracyError("ε cannot be told from a kink of the privacy profile")
                excess = excess if sign else arb(0)
            else:
                sign = 1 if excess > 0 else -1
            weight = math.prod(_multinomial(own) for own in shares)
            found.append(_Leaf(powers, excess, sign, weight))
        return found

    def _series(
        self, at: sp.Expr, order: int, leaves: Sequence[_Leaf]
    ) -> Iterator[tuple[_Leaf, arb_poly]]:
        """Yield for each term its power series around a pole, but for the pole and e^{(b−ε)z}.

        Terms that begin with the same powers share what those make.
        """
        place = real_ball(at)
        others = arb_poly([1])
        for other, times in self.places:
            if other != at:
                others = (others * _inverse_power(place - real_ball(other), times, order)).truncate(
                    order
                )
        shifted = [
            arb_poly([real_ball(c) for c in term.polynomial])(arb_poly([place, 1])).truncate(order)
            for moment, _ in self.steps
            for term in moment.terms
        ]
        known: dict[tuple[int, int], arb_poly] = {}
        last: tuple[int, ...] = ()
        partial = [others]
        for leaf in leaves:
            shared = zip(last, leaf.powers, strict=False)
            same = sum(1 for _ in itertools.takewhile(_are_equal, shared))
            del partial[same + 1 :]
            for level in range(same, len(shifted)):
                power = level, leaf.powers[level]
                if power not in known:
                    known[power] = (shifted[level] ** power[1]).truncate(order)
                partial.append((partial[-1] * known[power]).truncate(order))
            last = leaf.powers
            yield leaf, partial[-1]


class _Leaf(NamedTuple):
    """A term of the product: the powers of each N, b − ε, its sign, and how often it stands."""

    powers: tuple[int, ...]
    excess: arb
    sign: int
    weight: int


def _shares(count: int, terms: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to deal a count out to terms, neighbours alike in front.

    >>> list(_shares(2, 2))
    [(0, 2), (1, 1), (2, 0)]
    """
    if terms == 1:
        yield (count,)
        return
    for first in range(count + 1):
        for rest in _shares(count - first, terms - 1):
            yield first, *rest


def _multinomial(powers: Sequence[int]) -> int:
    """Return (Σk)!/Πk!."""
    ways, total = 1, 0
    for k in powers:
        total += k
        ways *= math.comb(total, k)
    return ways


def _are_equal(pair: tuple[int, int]) -> bool:
    return pair[0] == pair[1]


def _inverse_power(distance: arb, times: int, length: int) -> arb_poly:
    """Return (d + w)^(−k) to so many coefficients."""
    coefficients = [distance**-times]
    for j in range(1, length):
        coefficients.append(-coefficients[-1] * (times + j - 1) / (j * distance))
    return arb_poly(coefficients)


def _coefficient(series: arb_poly, order: int, at: sp.Expr, rate: arb) -> arb:
    """Return the coefficient of w^(N − 1) of a series times e^{s(p + w)}."""
    found = arb(0)
    coefficients = series.coeffs()
    for j in range(order):
        found = found * rate / max(order - j, 1) if j else found
        found += coefficients[j] if j < len(coefficients) else 0
    return found * (rate * real_ball(at)).exp()
