"""Quadrature nodes of one step's tilted loss that serve every frequency up to a reach.

On an interval c ± h the Gauss–Legendre rule with N nodes is exact for polynomials of degree 2N − 1,
and the k-th Chebyshev coefficient of a function that is holomorphic in the ellipse of radius ρ and
at most M there is at most 2M/ρᵏ, so that the rule errs by at most

    h Σ_{k ≥ 2N, even} (2M/ρᵏ)(2 + 2/3) ≤ (16/3) h M ρ^{−2N}/(1 − ρ^{−2}).

M is enclosed on the ellipse for every y between two frequencies at once, since |e^{iyℓ}| =
e^{−y Im ℓ} is largest at one of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from flint import acb, acb_mat, arb, ctx

from symdp.certify.piece_integrand import Cut, Part, whole_ends
from symdp.emit.enclose import between, enclose_sum
from symdp.errors import AccuracyError
from symdp.prove.work import COARSE_BITS

RADIUS = 3  # of the ellipse
_ARCS = 8  # of its upper half
_FINE, _LEAST_RATE = 0.5, 1e-30  # radians
_SPREAD = 64  # intervals that the error is shared out among
_MOST_INTERVALS = 20_000  # that a piece is halved into
_MOST_NODES = 20_000  # of a step: each frequency costs as many exponentials
_BLOCK = 32  # frequencies taken by one product of matrices
CHAIN = 16  # products in a row, after which e^{iyℓ} is computed anew: each adds a rounding
_WIDE = 3000  # nodes from which on blocks are smaller
_ORDER_STEP = 6  # orders of quadrature rules come in steps, so that few are made
_ROUNDED = 2.0**-50  # of a room, relative: its doubles are rounded down
# What is said where too many nodes would be needed.
_TOO_MANY = (
    "the characteristic function of the loss needs too many nodes to certify so many digits; ask "
    "for fewer digits, or compose more steps"
)


@dataclass(frozen=True)
class Scope:
    """What nodes serve beside e^g: products with e^{(d + iy)ℓ}, 0 ≤ y ≤ reach, shift ≤ d ≤ 0."""

    reach: float = 0.0
    shift: arb = arb(0)  # noqa: RUF009  (an exact number)

    def largest(self, log_size: arb, loss: Any, rise: arb | None = None) -> arb:
        """Bound all products from log|e^g|, ℓ and what |e^{iyℓ}| falls by with y, if it does."""
        fall = arb(0) if rise is None else (self.reach * rise).min(arb(0))
        size = log_size - fall + (self.shift * loss.real).max(arb(0))
        largest = size.exp().upper()
        return arb(largest) if largest.is_finite() else arb.pos_inf()


PLAIN = Scope()  # y = 0 at one tilt


@dataclass(frozen=True)
class Local:
    """What bounds |φ| around a y, up to a largest distance.

    Value and slope of ψ(y) = Σ weight·e^{iy(loss − c)}, and a bound of |ψ″|:

        |φ(y + s)| ≤ |ψ(y) + sψ′(y)| + s² max |ψ″|/2 + error.
    """

    value: acb
    slope: acb
    second: arb
    error: arb
    room: float

    def bound(self, distance: arb) -> arb:
        """Bound the modulus within a distance, by Taylor's theorem; the linear part is convex."""
        step = distance * self.slope
        ends = abs(self.value + step).max(abs(self.value - step))
        return arb((ends + self.second * distance**2 / 2 + self.error).upper())


@dataclass(frozen=True)
class Nodes:
    """Σ weight·e^{iy·loss} within `error` of e^{−scale} M(t + iy) for 0 ≤ y ≤ reach."""

    weights: tuple[Any, ...]
    losses: tuple[Any, ...]
    error: arb
    reach: float
    places: tuple[Any, ...] = ()

    def total(self) -> arb:
        """Enclose the value at y = 0."""
        return sum(self.weights, arb(0, self.error))

    def middle(self) -> tuple[arb, arb]:
        """Return about the mean and the deviation of the loss, exact numbers that prove nothing."""
        pairs = list(zip(self.weights, self.losses, strict=True))
        powers = ([w for w, _ in pairs], [w * x for w, x in pairs], [w * x * x for w, x in pairs])
        total, first, second = (sum(terms, arb(0)).mid() for terms in powers)
        mean = (first / total).mid()
        variance = (second / total).mid() - mean**2
        return mean, variance.mid().sqrt().mid() if variance > 0 else arb(1)

    def at(self, y: arb) -> acb:
        """Enclose e^{−scale} M(t + iy)."""
        total = acb(self._ball())
        for weight, loss in zip(self.weights, self.losses, strict=True):
            total += weight * (acb(0, y) * loss).exp()
        return total

    def around(self, y: arb) -> Local:
        """Return what bounds the modulus around a y from 0 to reach."""
        centre, second = self.spread
        value, slope = acb(0), acb(0)
        for weight, loss in zip(self.weights, self.losses, strict=True):
            away = loss - centre
            term = weight * (acb(0, y) * away).exp()
            value += term
            slope += term * away
        room = min(float(y.lower()), self.reach - float(y.upper()))
        room -= _ROUNDED * self.reach  # of doubles
        return Local(value, acb(0, 1) * slope, second, self.error, max(room, 0.0))

    @cached_property
    def spread(self) -> tuple[arb, arb]:
        """Return c and a bound of Σ |weight·e^{iy·loss}||loss − c|² for every y it serves."""
        total = sum(self.weights, acb(0)).real.mid()
        centre = sum((w * x for w, x in zip(self.weights, self.losses, strict=True)), acb(0))
        mean = (centre.real / total).mid()
        mean = mean if mean.is_finite() else arb(0)
        second = arb(0)
        for weight, loss in zip(self.weights, self.losses, strict=True):
            second += abs(weight) * abs(loss - mean) ** 2
        return mean, arb(second.upper())

    def walk(self, start: int, spacing: arb) -> Iterator[acb]:
        """Yield the values at y = start·spacing, (start + 1)·spacing, … while they are in reach.

        A product of complex balls may be √2 times as wide as its factors, so chains are short.
        """
        ball = self._ball()
        block_size = _BLOCK if len(self.losses) < _WIDE else _BLOCK // 4
        turns = [(acb(0, spacing) * loss).exp() for loss in self.losses]
        rows = [[acb(1)] * len(turns), turns]
        for k in range(2, block_size + 1):
            halves = rows[k // 2], rows[k - k // 2]
            rows.append([a * b for a, b in zip(*halves, strict=True)])
        leap = rows.pop()
        block = acb_mat(rows)
        current: list[acb] = []
        for number, index in enumerate(itertools.count(start, block_size)):
            if number % CHAIN == 0:
                current = [
                    weight * (acb(0, index * spacing) * loss).exp()
                    for weight, loss in zip(self.weights, self.losses, strict=True)
                ]
            else:
                current = [a * b for a, b in zip(current, leap, strict=True)]
            values = block * acb_mat([[value] for value in current])
            for row in range(block_size):
                if float(((index + row) * spacing).mid()) > self.reach:
                    return
                yield values[row, 0] + ball

    def _ball(self) -> acb:
        return acb(arb(0, self.error), arb(0, self.error))


def nodes_between(
    part: Part, cut: Cut, tilt: arb, scale: arb, *, tolerance: arb, scope: Scope = PLAIN
) -> Nodes:
    """Return nodes of one stretch between its cuts; what lies beyond them is not in the error.

    Integers are their own nodes, those of one loss together one.

    Raises
    ------
    AccuracyError
        If too many nodes would be needed.
    """
    if part.x.is_integer:
        return _whole_nodes(part, cut, tilt, scale, scope)
    integrand = _Integrand(part, tilt, scale, scope)
    spare = part.spare(cut.lower, cut.upper)
    rule = _Rule(integrand, tolerance / _SPREAD, spare)
    rule.add(cut.lower.mid(), cut.upper.mid())
    for end in (cut.lower, cut.upper):
        if end.rad() > 0:  # between the middle of the ball and the true end
            with ctx.workprec(ctx.prec + spare):
                exponent, loss = part.terms(end, tilt)
                size = scope.largest(exponent - scale, loss)
            rule.error += 2 * end.rad() * size
    return rule.nodes()


def _whole_nodes(part: Part, cut: Cut, tilt: arb, scale: arb, scope: Scope) -> Nodes:
    if part.is_flat:

        def weight(place: Any, analytic: bool = False) -> Any:
            base, loss = part.logarithms(place, analytic=analytic)
            return (base + (tilt + part.shift) * loss - scale).exp()

        total = enclose_sum(weight, cut.lower, cut.upper)
        return Nodes((total,), (part.loss(cut.lower),), arb(0), scope.reach, (cut.lower,))
    first, last = whole_ends(cut)
    places = tuple(arb(k) for k in range(first, last + 1))
    found = [part.terms(place, tilt) for place in places]
    weights = tuple((exponent - scale).exp() for exponent, _ in found)
    return Nodes(weights, tuple(loss for _, loss in found), arb(0), scope.reach, places)


@dataclass(frozen=True)
class _Integrand:
    """e^g and what it is multiplied with."""

    part: Part
    tilt: arb
    scale: arb
    scope: Scope

    def at(self, place: Any) -> tuple[Any, Any]:
        """Return e^g, and ℓ."""
        exponent, loss = self.part.terms(place, self.tilt)
        return (exponent - self.scale).exp(), loss

    @cached_property
    def _fine(self) -> float:
        """How well ℓ should be known."""
        return _FINE / max(self.scope.reach, abs(float(self.tilt)), _LEAST_RATE)

    def on_ellipse(self, centre: arb, half: arb) -> arb:
        """Bound h times the products around an interval, ∞ where they are not analytic.

        The upper half says all.
        """
        wide = (arb(RADIUS) + arb(1) / RADIUS) / 2
        tall = (arb(RADIUS) - arb(1) / RADIUS) / 2
        around = centre + half * acb(between(-wide, wide), between(-tall, tall))
        if not self.part.is_analytic(around):
            return arb.pos_inf()
        largest = arb(0)
        for turn in ellipse_arcs():
            exponent, loss = self.part.values(centre + half * turn, self.tilt, self._fine)
            rise = -abs(loss.imag)
            largest = largest.max(self.scope.largest(exponent.real - self.scale, loss, rise))
            if not largest.is_finite():
                return arb.pos_inf()
        return arb((abs(half) * largest).upper())

    def on_line(self, left: arb, right: arb) -> arb:
        """Bound the integral between two places from a ball around the integrand."""
        exponent, loss = self.part.values(between(left, right), self.tilt, self._fine)
        size = abs(right - left) * self.scope.largest(exponent.real - self.scale, loss, None)
        return arb(size.upper()) if size.is_finite() else arb.pos_inf()


class _Rule:
    """Gauss–Legendre nodes of a range, in intervals as short as the bounds ask for."""

    def __init__(self, integrand: _Integrand, share: arb, spare: int) -> None:
        self._integrand, self._share, self._spare = integrand, share, spare
        self.error = arb(0)
        self._weights: list[Any] = []
        self._losses: list[Any] = []
        self._places: list[Any] = []

    def nodes(self) -> Nodes:
        """Return what was added."""
        lists = (tuple(values) for values in (self._weights, self._losses, self._places))
        weights, losses, places = lists
        reach = self._integrand.scope.reach
        return Nodes(weights, losses, arb(self.error.upper()), reach, places)

    def add(self, start: arb, end: arb) -> None:
        """Add the range between two exact places."""
        with ctx.workprec(ctx.prec + self._spare):
            self._add(start, end)

    def _add(self, start: arb, end: arb) -> None:
        integrand, share = self._integrand, self._share
        waiting = [(start, end)]
        for tries in itertools.count():
            if not waiting:
                break
            left, right = waiting.pop()
            centre, half = (left + right) / 2, (right - left) / 2
            if tries > _MOST_INTERVALS or len(self._weights) > _MOST_NODES:
                raise AccuracyError(_TOO_MANY)
            with ctx.workprec(COARSE_BITS + self._spare):
                size = integrand.on_line(left, right)
                if size < share:  # as beside an end where it vanishes and is not analytic
                    self.error += size
                    continue
                bound = integrand.on_ellipse(centre, half)
                order = _order(bound, share)
            if order is None:
                middle = centre.mid()
                if middle in (left, right):
                    raise AccuracyError(_TOO_MANY)
                waiting += [(middle, right), (left, middle)]
                continue
            if order == 0:
                self.error += 2 * bound
                continue
            self.error += _rule_error(bound, order)
            for root, weight in _gauss(order, ctx.prec):
                place = centre + half * root
                size, loss = integrand.at(place)
                self._weights.append(half * weight * size)
                self._losses.append(loss)
                self._places.append(place.mid())


@lru_cache(maxsize=1)
def ellipse_arcs() -> tuple[acb, ...]:
    """Balls that cover the upper half of the ellipse (ρe^{iθ} + e^{−iθ}/ρ)/2."""
    balls = []
    with ctx.workprec(COARSE_BITS):
        step = arb.pi() / _ARCS
        for index in range(_ARCS):
            angle = between(index * step, (index + 1) * step)
            wide, tall = arb(RADIUS) + arb(1) / RADIUS, arb(RADIUS) - arb(1) / RADIUS
            balls.append(acb(wide / 2 * angle.cos(), tall / 2 * angle.sin()))
    return tuple(balls)


def _order(bound: arb, share: arb) -> int | None:
    """Return how many nodes an interval needs, 0 where it does not count, None if too many."""
    if not bound.is_finite():
        return None
    if 2 * bound < share:
        return 0
    excess = float((bound / share).log().mid()) + 2.0
    order = math.ceil(excess / (2 * math.log(RADIUS)))
    order = max(_ORDER_STEP, _ORDER_STEP * math.ceil(order / _ORDER_STEP))
    # Where the integrand is far larger on the ellipse than inside, halves are cheaper.
    least = math.ceil(-float(share.log().mid()) / (2 * math.log(RADIUS)))
    return order if order <= 2 * least + 2 * _ORDER_STEP else None


def _rule_error(bound: arb, order: int) -> arb:
    square = arb(RADIUS) ** 2
    return arb((arb(16) / 3 * bound / square**order / (1 - 1 / square)).upper())


@lru_cache(maxsize=64)
def _gauss(order: int, precision: int) -> tuple[tuple[arb, arb], ...]:
    """Gauss–Legendre nodes and weights on [−1, 1]."""
    with ctx.workprec(precision):
        return tuple(arb.legendre_p_root(order, k, weight=True) for k in range(order))
