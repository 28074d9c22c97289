"""Quadrature nodes of one step's tilted loss that serve every frequency up to a reach.

On an interval c ± h the Gauss–Legendre rule with N nodes is exact for polynomials of degree 2N − 1,
and the k-th Chebyshev coefficient of a function that is holomorphic in the ellipse of radius ρ and
at most M there is at most 2M/ρᵏ, so that the rule errs by at most

    h Σ_{k ≥ 2N, even} (2M/ρᵏ)(2 + 2/3) ≤ (16/3) h M ρ^{−2N}/(1 − ρ^{−2}).

M is enclosed on the ellipse for every |y| ≤ reach at once, since |e^{iyℓ}| ≤ e^{|y||Im ℓ|}.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flint import acb, acb_mat, arb, ctx

from symdp.certify.work import spend
from symdp.emit.enclose import between
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.certify.moments import Cut, Stretch

_RADIUS = 3  # of the ellipse
_ARCS = 8  # of its upper half
_COARSE = 64  # bits of what only bounds
_SPREAD = 64  # intervals that the error is shared out among
_MOST_INTERVALS = 20_000
_MOST_NODES = 20_000
_PER_UNIT = 300.0  # products of balls that cost as much as one value of a density
_BLOCK = 32
_WIDE = 3000  # nodes from which on blocks are smaller
_FIRST = 40  # values that the first nodes serve
_ORDER_STEP = 6
_TOO_MANY = (
    "the characteristic function of the loss needs too many nodes to certify so many digits; ask "
    "for fewer digits, or compose more steps"
)


@dataclass(frozen=True)
class Nodes:
    """Σ weight·e^{iy·loss} within `error` of e^{−scale} M(t + iy) for every |y| ≤ reach."""

    weights: tuple[arb, ...]
    losses: tuple[arb, ...]
    error: arb
    reach: float
    places: tuple[arb, ...] = ()

    def total(self) -> arb:
        """Enclose the value at y = 0."""
        return sum(self.weights, arb(0, self.error))

    def at(self, y: arb) -> acb:
        """Enclose e^{−scale} M(t + iy)."""
        total = acb(self._ball())
        for weight, loss in zip(self.weights, self.losses, strict=True):
            total += weight * acb(0, y * loss).exp()
        return total

    def walk(self, start: int, spacing: arb) -> Iterator[acb]:
        """Yield the values at y = start·spacing, (start + 1)·spacing, … while they are in reach."""
        ball = self._ball()
        block_size = _BLOCK if len(self.losses) < _WIDE else _BLOCK // 4
        turns = [acb(0, spacing * loss).exp() for loss in self.losses]
        rows = [[acb(1)] * len(turns)]
        for _ in range(block_size - 1):
            rows.append([a * b for a, b in zip(rows[-1], turns, strict=True)])
        block = acb_mat(rows)
        leap = [a * b for a, b in zip(rows[-1], turns, strict=True)]
        current = [
            weight * acb(0, start * spacing * loss).exp()
            for weight, loss in zip(self.weights, self.losses, strict=True)
        ]
        index = start
        while True:
            values = block * acb_mat([[value] for value in current])
            for row in range(block_size):
                if float((index * spacing).mid()) > self.reach:
                    return
                yield values[row, 0] + ball
                index += 1
            current = [a * b for a, b in zip(current, leap, strict=True)]

    def _ball(self) -> acb:
        return acb(arb(0, self.error), arb(0, self.error))


class Walk:
    """Values at y = 0, h, 2h, …, each computed once, from nodes that reach ever further."""

    def __init__(self, nodes: Callable[[float], Nodes], spacing: arb) -> None:
        self._nodes, self._spacing = nodes, spacing
        self._values: list[acb] = []
        self._source: Iterator[acb] = iter(())
        self._width = 0

    def __getitem__(self, index: int) -> acb:
        while len(self._values) <= index:
            found = next(self._source, None)
            if found is None:
                have = len(self._values)
                last = max(2 * have, _FIRST)
                nodes = self._nodes(float(self._spacing) * last)
                self._source, self._width = nodes.walk(have, self._spacing), len(nodes.losses)
                found = next(self._source)
            spend(self._width / _PER_UNIT)
            self._values.append(found)
        return self._values[index]


def stretch_nodes(
    part: Stretch,
    cut: Cut,
    tilt: arb,
    scale: arb,
    *,
    reach: float,
    tolerance: arb,
    power: int = 0,
    centre: arb | None = None,
) -> Nodes:
    """Return nodes of one stretch between its cuts; what lies beyond them is not in the error.

    Parameters
    ----------
    power, centre
        Given, the weights carry the factor (ℓ − c)^d.

    Raises
    ------
    AccuracyError
        If too many nodes would be needed.
    """
    weights: list[arb] = []
    losses: list[arb] = []
    places: list[arb] = []
    error = arb(0)
    factor = _Factor(power, arb(0) if centre is None else centre)
    low, high = cut.lower.mid(), cut.upper.mid()
    for end in (cut.lower, cut.upper):
        if end.rad() > 0:  # between the middle of the ball and the true end
            size = factor(part.height(end, tilt, scale), part.loss(end))
            error += 2 * end.rad() * abs(size).upper()
    share = tolerance / _SPREAD
    waiting = [(low, high)]
    for tries in itertools.count():
        if not waiting:
            break
        left, right = waiting.pop()
        with ctx.workprec(_COARSE):
            bound = _bound(part, (left, right), tilt, scale, reach, factor)
            order = _order(bound, share)
        if tries > _MOST_INTERVALS or len(weights) > _MOST_NODES:
            raise AccuracyError(_TOO_MANY)
        if order is None:
            size = _real_bound(part, left, right, tilt, scale, factor)
            if size < share:  # as beside an end where the integrand vanishes and is not analytic
                error += size
                continue
            middle = ((left + right) / 2).mid()
            if not left < middle < right:
                raise AccuracyError(_TOO_MANY)
            waiting += [(middle, right), (left, middle)]
            continue
        if order == 0:
            error += 2 * bound
            continue
        error += _rule_error(bound, order)
        centre, half = (left + right) / 2, (right - left) / 2
        for root, weight in _rule(order, ctx.prec):
            place = centre + half * root
            loss = part.loss(place)
            size = factor((part.exponent(place, tilt) - scale).exp(), loss)
            weights.append(half * weight * size)
            losses.append(loss)
            places.append(place.mid())
    return Nodes(tuple(weights), tuple(losses), arb(error.upper()), reach, tuple(places))


@dataclass(frozen=True)
class _Factor:
    """The factor (ℓ − c)^d of a moment."""

    power: int
    centre: arb

    def __call__(self, value: Any, loss: Any) -> Any:
        return value * (loss - self.centre) ** self.power if self.power else value


def _bound(
    part: Stretch,
    interval: tuple[arb, arb],
    tilt: arb,
    scale: arb,
    reach: float,
    factor: _Factor,
) -> arb:
    """Bound h times the integrand on the ellipse around an interval, ∞ where it is not analytic."""
    left, right = interval
    centre, half = (left + right) / 2, (right - left) / 2
    wide = (arb(_RADIUS) + arb(1) / _RADIUS) / 2
    tall = (arb(_RADIUS) - arb(1) / _RADIUS) / 2
    around = acb(
        between(centre - half * wide, centre + half * wide), between(-half * tall, half * tall)
    )
    parts = (part.base(around, analytic=True), part.loss(around, analytic=True))
    if not all(value.is_finite() for value in parts):
        return arb.pos_inf()
    largest = arb(0)
    for middle in _ellipse():
        place = centre + half * middle
        loss = part.loss(place)
        log_size = part.exponent(place, tilt).real - scale + reach * abs(loss.imag)
        size = abs(factor(log_size.exp(), loss)).upper()
        if not size.is_finite():
            return arb.pos_inf()
        largest = largest.max(size)
    return arb((half * largest).upper())


def _real_bound(
    part: Stretch, left: arb, right: arb, tilt: arb, scale: arb, factor: _Factor
) -> arb:
    """Bound the integral over an interval from a ball around the integrand on it."""
    ball = between(left, right)
    log_size = part.exponent(ball, tilt) - scale
    size = abs(factor(log_size.exp(), part.loss(ball))).upper() * (right - left)
    return arb(size.upper()) if size.is_finite() else arb.pos_inf()


@lru_cache(maxsize=1)
def _ellipse() -> tuple[acb, ...]:
    """Balls that cover the upper half of the ellipse ((ρe^{iθ} + e^{−iθ}/ρ)/2)."""
    balls = []
    with ctx.workprec(_COARSE):
        step = arb.pi() / _ARCS
        for index in range(_ARCS):
            angle = between(index * step, (index + 1) * step)
            wide, tall = arb(_RADIUS) + arb(1) / _RADIUS, arb(_RADIUS) - arb(1) / _RADIUS
            balls.append(acb(wide / 2 * angle.cos(), tall / 2 * angle.sin()))
    return tuple(balls)


def _order(bound: arb, share: arb) -> int | None:
    """Return how many nodes an interval needs, 0 where it does not count, None if too many."""
    if not bound.is_finite():
        return None
    if 2 * bound < share:
        return 0
    excess = float((bound / share).log().mid()) + 2.0
    order = math.ceil(excess / (2 * math.log(_RADIUS)))
    order = max(_ORDER_STEP, _ORDER_STEP * math.ceil(order / _ORDER_STEP))
    # Where the integrand is far larger on the ellipse than inside, halves are cheaper.
    least = math.ceil(-float(share.log().mid()) / (2 * math.log(_RADIUS)))
    return order if order <= 2 * least + 2 * _ORDER_STEP else None


def _rule_error(bound: arb, order: int) -> arb:
    square = arb(_RADIUS) ** 2
    return arb((arb(16) / 3 * bound / square**order / (1 - 1 / square)).upper())


@lru_cache(maxsize=64)
def _rule(order: int, precision: int) -> tuple[tuple[arb, arb], ...]:
    """Gauss–Legendre nodes and weights on [−1, 1]."""
    with ctx.workprec(precision):
        return tuple(arb.legendre_p_root(order, k, weight=True) for k in range(order))
