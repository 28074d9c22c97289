"""Proved constants V_k with |φ_t(y)| ≤ V_k/|y|^k, by integration by parts on monotone pieces."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import arb, ctx

from symdp.balls.cuts import cut_tails
from symdp.balls.jets import Jet
from symdp.derive.pieces import pieces
from symdp.derive.signs import interior_point, sign_of
from symdp.emit.enclose import between
from symdp.emit.exact import BITS, end_ball
from symdp.errors import AccuracyError, InputError

if TYPE_CHECKING:
    from symdp.derive.records import Piece
    from symdp.model.pair import Pair

REACH = arb(2) ** 40  # the constants hold for |y| up to here
_FLAT = arb(2) ** -60  # a derivative from which on down it may be 0
_MOST_CELLS = 6000  # of a sum of variations: about a second
_SLACK = 2.0**-10  # of a variation that need not be resolved
_NEGLIGIBLE = arb(2) ** -30  # an edge's part in a bound, relative
_OCTAVES = 8  # of the shortest first cell, 2^(−8)
_MOST_OCTAVES = 2048  # the doubles' own
_LONG = 300  # operations up to which ℓ′ is factored


@dataclass(frozen=True)
class Bound:
    """|φ_t(y)| ≤ removed + Σ_j edges[j]/|y|^{j+1} + variation/|y|^k."""

    variation: arb
    edges: tuple[arb, ...]
    removed: arb

    def at(self, frequency: arb) -> arb:
        """Return the bound at one y > 0."""
        total, power = self.removed, arb(1)
        for edge in self.edges:
            power = power * frequency
            total += edge / power
        return (total + self.variation / (power * frequency)).upper()

    def constant(self) -> arb:
        """Return V_k with |φ_t(y)| ≤ V_k/|y|^k for 0 < |y| ≤ REACH."""
        order = len(self.edges) + 1
        return (self.at(REACH) * REACH**order).upper()


class LossDensity:
    """The tilted density g of the loss on the monotone pieces, and its derivatives there.

    With w = e^A the tilted density of x and |ℓ′| = e^B, the density of the loss is g_0 = e^{A−B} in
    the variable s = ℓ(x), and its derivatives in s are g_j = ±e^{A−(j+1)B} ρ_j with ρ_0 = 1 and
    ρ_{j+1} = ρ_j′ + (A′ − (j+1)B′)ρ_j.  No division occurs, so that wide balls stay useful.

    Parameters
    ----------
    pair : Pair
        All parameters bound, continuous.
    tilt : sympy.Rational
    log_moment : arb
        K(t), enclosed.

    Raises
    ------
    AccuracyError
        For a discrete pair, whose φ does not decay.
    """

    def __init__(self, pair: Pair, tilt: sp.Rational, log_moment: arb) -> None:
        if pair.is_discrete:
            raise AccuracyError("the loss is discrete: its characteristic function does not decay")
        x = pair.variable
        self.parts = [
            LossPart(piece, x, tilt, log_moment)
            for piece in pieces(pair)
            if piece.log_p is not None and piece.log_q is not None and piece.slope != "constant"
        ]

    @classmethod
    def of(cls, parts: Sequence[LossPart]) -> LossDensity:
        """Return the density on the pieces given."""
        own = cls.__new__(cls)
        own.parts = list(parts)
        return own

    def bound(self, order: int, frequency: arb | None = None, scale: arb | None = None) -> Bound:
        """Bound |φ_t| on the continuous part of the loss.

        Parameters
        ----------
        order : int
            Integrations by parts, 1 or more.
        frequency : arb, optional
            Where the bound is wanted.  Given, neighbourhoods of turning points are left out, their
            mass bounded apart, so that the bound is of order |y|^{−1/2} there.
        scale : arb, optional
            V₁; given, boundary terms that are not negligible beside its powers are refused.

        Raises
        ------
        AccuracyError
            Where the loss turns and no frequency is given, where boundary terms remain though a
            scale is given, or where the work limit is reached.
        """
        variation, removed = arb(0), arb(0)
        edges = [arb(0)] * (order - 1)
        with ctx.workprec(BITS):
            tolerance = arb(2) ** (-40 * order - 60)
            spans = [part.span(tolerance, frequency) for part in self.parts]
            for part, (low, high, mass) in zip(self.parts, spans, strict=True):
                removed += mass
                for end in (low, high):
                    values = part.derivatives(end, order)
                    edges = [e + abs(v).upper() for e, v in zip(edges, values, strict=False)]
                    variation += abs(values[-1]).upper()
            for j, edge in enumerate(edges):
                if scale is not None and not edge < _NEGLIGIBLE * scale ** (j + 1):
                    raise AccuracyError(
                        f"the loss's density, differentiated {j} times, does not vanish at an end "
                        f"of a monotone piece: boundary terms remain, and V_{order} does not exist"
                    )
            for part, (low, high, _) in zip(self.parts, spans, strict=True):
                variation += part.variation(low, high, order)
        return Bound(variation.upper(), tuple(edge.upper() for edge in edges), removed.upper())


class LossPart:
    """One monotone piece at one tilt."""

    def __init__(self, piece: Piece, x: sp.Symbol, tilt: sp.Rational, log_moment: arb) -> None:
        assert piece.log_p is not None
        self.loss = Jet(piece.loss, x)
        self.steepness = Jet(log_slope(piece, x), x)
        self.log_density = piece.log_p + tilt * piece.loss
        self.exponent = Jet(self.log_density, x)
        self.x = x
        self.log_moment = log_moment
        with ctx.workprec(2 * BITS):
            self.ends = tuple(end_ball(end) for end in (piece.lower, piece.upper))

    def weight(self, x: arb) -> arb:
        """Return w(x), the tilted density."""
        return (self.exponent(x, 1)[0] - self.log_moment).exp()

    def derivatives(self, x: arb, count: int) -> list[arb]:
        """Return g_0, …, g_{count−1} at a point, up to their signs."""
        exponent, steepness, factors = self._parts_at(x, count, 0)
        total = exponent[0] - self.log_moment
        return [(total - (j + 1) * steepness[0]).exp() * factors[j][0] for j in range(count)]

    def _parts_at(
        self, x: arb, order: int, more: int
    ) -> tuple[list[arb], list[arb], list[list[arb]]]:
        """Return the series of A, of B and of ρ_0, …, ρ_order, the last with `more` + 1 terms."""
        length = order + more + 1
        exponent, steepness = self.exponent(x, length), self.steepness(x, length)
        growth, rise = _derivative(exponent), _derivative(steepness)
        factors = [[arb(1)] + [arb(0)] * (length - 1)]
        for j in range(order):
            slope = [a - (j + 1) * b for a, b in zip(growth, rise, strict=True)]
            last = factors[-1]
            factors.append(
                [a + b for a, b in zip(_derivative(last), _product(slope, last), strict=False)]
            )
        return exponent, steepness, factors

    def cut(self, tolerance: arb) -> tuple[list[arb], arb]:
        """Return finite ends, and a bound of the mass beyond them."""
        return cut_tails(self.log_density, self.weight, self.x, list(self.ends), tolerance)

    def span(self, tolerance: arb, frequency: arb | None) -> tuple[arb, arb, arb]:
        """Return ends between which everything is finite, and a bound of the mass beyond them."""
        inner: list[arb] = []
        cuts, tails = self.cut(tolerance)
        removed = tails
        for side, inwards in ((0, 1), (1, -1)):
            end, other = self.ends[side], self.ends[1 - side]
            if end is None:
                inner.append(cuts[side].mid())
                continue
            place, mass = self._before(end, other, inwards, tolerance, frequency)
            inner.append(place)
            removed += mass
        return inner[0], inner[1], removed

    def _before(
        self, end: arb, other: arb | None, inwards: int, tolerance: arb, frequency: arb | None
    ) -> tuple[arb, arb]:
        """Return an end, or a point inside it where the loss turns or a density is singular."""
        coefficients = self.loss(end, 3)
        finite = coefficients[1].is_finite() and self.exponent(end, 1)[0].is_finite()
        turns = finite and not abs(coefficients[1]) > _FLAT
        if finite and not turns:
            return end.mid(), (end.rad() * self.weight(end)).upper()
        if turns and frequency is None:
            raise AccuracyError(
                f"the loss turns at {end.str(6, radius=False)}, where its density is infinite: "
                "no constant bounds |φ| times |y|; ask for the split bound at one frequency"
            )
        room = arb(1) if other is None else abs(other - end) / 4
        radius = room
        if turns:
            curvature = abs(2 * coefficients[2])
            if curvature > _FLAT and frequency is not None:
                radius = (2 / (curvature * frequency)).sqrt().min(room)
            elif frequency is not None:
                radius = (1 / frequency).root(3).min(room)
        for _ in range(4 * BITS):
            radius = radius.mid()
            mass = radius * self.weight(between(end, end + inwards * radius)).upper()
            if mass.is_finite() and (turns or mass < tolerance):
                return (end + inwards * radius).mid(), mass.upper()
            radius = radius / 2
        raise AccuracyError("a density is too singular at an end of its support")

    def variation(self, low: arb, high: arb, order: int) -> arb:
        """Bound the total variation of g_{k−1} between two points.

        Cells on which ball arithmetic shows that g_{k−1} is monotone contribute the difference of
        its end values; the others their width times the largest slope, and are halved until they
        hardly matter.
        """
        settled = arb(0)
        heap: list[tuple[float, int, arb, arb, arb]] = []
        number = itertools.count()
        open_total = 0.0
        waiting = list(itertools.pairwise(marks(low, high)))
        for cells in range(_MOST_CELLS):
            if not waiting:
                if not heap or open_total <= _SLACK * float(settled):
                    break
                _, _, left, right, size = heapq.heappop(heap)
                open_total -= float(size)
                middle = ((left + right) / 2).mid()
                waiting = [(left, middle), (middle, right)]
            left, right = waiting.pop()
            size, monotone = self._cell(left, right, order)
            if monotone:
                settled += size
            else:
                heapq.heappush(heap, (-float(size), next(number), left, right, size))
                open_total += float(size)
            if cells % 64 == 0:
                open_total = sum(-entry[0] for entry in heap)  # ∞ − ∞ and roundings
        total = settled + sum((entry[4] for entry in heap), arb(0))
        total += sum((self._cell(*cell, order)[0] for cell in waiting), arb(0))
        if not total.is_finite():
            raise AccuracyError("the variation of the loss's density was not bounded in time")
        return total.upper()

    def _cell(self, left: arb, right: arb, order: int) -> tuple[arb, bool]:
        """Return a bound of the variation over a cell, and whether it is its true value."""
        ball = between(left, right)
        middle = ((left + right) / 2).mid()
        exponents, steeps, factors = self._parts_at(ball, order, 1)
        exponent, steepness, inner = self._parts_at(middle, order, 0)
        factor = _centred(factors[-1], inner[-1][0], ball - middle)
        if factor > 0 or factor < 0:
            ends = [self.derivatives(point, order)[-1] for point in (left, right)]
            return abs(ends[1] - ends[0]).upper(), True
        log_weight = _centred(exponents, exponent[0], ball - middle) - self.log_moment
        height = (log_weight - order * _centred(steeps, steepness[0], ball - middle)).exp()
        size = height * abs(factor).upper() * (right - left)
        return (size.upper() if size.is_finite() else arb.pos_inf()), False


def _centred(wide: list[arb], at_middle: arb, offset: arb) -> arb:
    """Return the better of a value over a ball and its mean value form."""
    value = at_middle + wide[1] * offset
    if not wide[0].is_finite():
        return value
    return wide[0].intersection(value) if value.is_finite() else wide[0]


def marks(low: arb, high: arb) -> list[arb]:
    """Points of a range: even ones, and such that close in on zero or on the ends."""
    width = high - low
    marks = [low + width * k / 32 for k in range(1, 32)]
    centre = arb(0) if low < 0 < high else (low if abs(low) < abs(high) else high)
    span = max(abs(low), abs(high), key=lambda end: float(end.log()) if end > 0 else -1e300)
    steps = 0
    while span > arb(2) ** -_OCTAVES and steps < _MOST_OCTAVES:
        marks += [centre + span, centre - span]
        span, steps = span / 2, steps + 1
    inside = sorted({float(m): m.mid() for m in marks if low < m < high}.items())
    return [low, *(mark for _, mark in inside), high]


def _derivative(series: list[arb]) -> list[arb]:
    return [k * series[k] for k in range(1, len(series))]


def _product(a: list[arb], b: list[arb]) -> list[arb]:
    length = min(len(a), len(b))
    return [sum((a[i] * b[k - i] for i in range(k + 1)), arb(0)) for k in range(length)]


def log_slope(piece: Piece, x: sp.Symbol) -> sp.Expr:
    """Return log|ℓ′| on a monotone piece, products taken apart so that wide balls stay useful.

    Examples
    --------
    >>> from symdp.derive.records import Piece
    >>> x = sp.Symbol("x", real=True)
    >>> log_slope(Piece(-sp.oo, sp.oo, x, x, -sp.exp(-x), "increasing"), x)
    -x
    """
    slope = sp.diff(piece.loss, x)
    if slope.is_rational_function(x):
        slope = sp.factor(slope)  # far out, terms of a sum would cancel
    elif isinstance(slope, sp.Add) and sp.count_ops(slope) < _LONG:
        factored = sp.factor_terms(sp.together(slope))
        # Where signs are mixed, the terms of the sum are each bounded far out, those of a common
        # numerator are not.
        if all(_one_signed(factor.as_base_exp()[0], x) for factor in sp.Mul.make_args(factored)):
            slope = factored
    at = interior_point(piece.lower, piece.upper)
    total = sp.S.Zero
    for factor in sp.Mul.make_args(slope):
        base, power = factor.as_base_exp()
        if isinstance(factor, sp.exp):
            total += factor.args[0]
        elif x in power.free_symbols:
            total += power * sp.log(base)
        else:
            negative = sign_of(base.subs(x, at)) == -1
            total += power * sp.log(-base if negative else base)
    return total


def _one_signed(base: sp.Expr, x: sp.Symbol) -> bool:
    """Whether the terms of a sum show one sign, so that no cancellation widens its balls."""
    signs = set()
    for term in sp.Add.make_args(sp.expand(base)):
        constant, moving = term.as_independent(x, as_Add=False)
        signs.add(sign_of(constant) if moving.is_positive else None)
    return not isinstance(base, sp.Add) or (len(signs) == 1 and None not in signs)


def van_der_corput(pair: Pair, order: int, tilt: sp.Rational, log_moment: arb) -> arb:
    """Return V_k: |φ_t(y) − atoms| ≤ V_k/|y|^k for 0 < |y| ≤ 2⁴⁰, floating point included.

    V_k = Σ_pieces [|g_{k−1}| at the ends + ∫ |g_{k−1}′| dx], where the g_j of lower order vanish
    at the ends, as in [SPA (48)] after k integrations by parts.

    Raises
    ------
    InputError
        For an order below 1, or a loss with a function that has no series.
    AccuracyError
        Where boundary terms remain or the loss turns, with the reason.
    """
    if order < 1:
        raise InputError(f"the order must be 1 or more, not {order}")
    density = LossDensity(pair, tilt, log_moment)
    scale = density.bound(1).variation
    return density.bound(order, scale=scale).constant()


def split_bound(pair: Pair, tilt: sp.Rational, frequency: Any, log_moment: arb) -> arb:
    """Return a bound of |φ_t(y) − atoms| at one y > 0 that holds where the loss turns.

    Neighbourhoods |x − x₀| < r of turning points are left out: at most their tilted mass is added
    to V₁/|y| of the rest, with r² = 2/(|ℓ″(x₀)| y).
    """
    return LossDensity(pair, tilt, log_moment).bound(1, arb(frequency)).at(arb(frequency))
