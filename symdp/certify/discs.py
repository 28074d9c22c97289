"""The variation of high derivatives of the loss's density, from discs in which it is holomorphic.

In a disc |s| ≤ S around a place, let ℓ be holomorphic and ℓ − ℓ₀ have no zero but the simple one at
s = 0, with |ℓ − ℓ₀| ≥ R on the circle.  By Rouché's theorem s is holomorphic in v = ℓ − ℓ₀ up to R,
and so is the density g of the loss; by Cauchy's formula with the density w of s, where |v| ≤ c,

    |g⁽ᴶ⁾| ≤ J! S max |w| / (R − c)^{J+1}.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from flint import acb, arb, ctx

from symdp.certify.work import spend
from symdp.emit.enclose import between
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.balls.variation import LossPart
    from symdp.certify.moments import Stretch

_BITS = 64  # of what only bounds
_ARCS, _SQUARES = 64, 6
_MOST_CELLS = 2000
_DISC_COST = 200.0  # in values of a log-density
_AROUND, _CELL_SHARE = 2.5, 0.6  # a disc beside half a cell, the part of R that a cell may take
_WORTH = 1.1  # what halving a cell should take off the J-th root


class Chart:
    """Loss and tilted density as functions of the distance s from a place.

    Parameters
    ----------
    stretch : Stretch
    part : LossPart
        The same piece, tilted.
    tilt, place : arb
    """

    def __init__(self, stretch: Stretch, part: LossPart, tilt: arb, place: arb) -> None:
        self._stretch, self._part, self._tilt, self._place = stretch, part, tilt, place
        self.level = part.loss(place, 1)[0]

    def loss(self, s: Any, *, analytic: bool = False) -> Any:
        """Return ℓ."""
        return self._stretch.loss(self._place + s, analytic=analytic)

    def slope(self, s: acb) -> arb:
        """Bound |dℓ/ds|."""
        spend(1.0)
        return arb(self._stretch.log_slope(self._place + s).real.exp().upper())

    def density(self, s: Any, *, analytic: bool = False) -> Any:
        """Return the tilted density."""
        place = self._place + s
        if analytic and not self._stretch.base(place, analytic=True).is_finite():
            return place * arb.nan()
        return (self._stretch.exponent(place, self._tilt) - self._part.log_moment).exp()

    def lift(self, place: arb) -> arb:
        """Enclose |ℓ − ℓ₀| at a place."""
        return arb(abs(self._stretch.loss(place) - self.level))


@dataclass(frozen=True)
class _Disc:
    """S, R and the largest density on the circle."""

    radius: arb
    lift: arb
    height: arb


def bound_between(
    chart_at: Callable[[arb], Chart], low: arb, high: arb, order: int, spare: int
) -> arb:
    """Bound ∫ |dᴶg/dℓᴶ| |dℓ| over what lies between two ends, from discs on the way.

    Parameters
    ----------
    chart_at : callable
        The chart around a place.
    low, high : arb
    order : int
        J.
    spare : int
        Bits that it takes to tell places close to an end from it.

    Raises
    ------
    AccuracyError
        If the work limit is reached.
    """
    number = itertools.count()  # so that no balls are compared
    settled = arb(0)
    with ctx.workprec(_BITS + spare):
        waiting = [(-math.inf, next(number), arb.pos_inf(), low, high)]
        for _ in range(_MOST_CELLS):
            rest = sum((size for _, _, size, *_ in waiting), arb(0))
            if rest <= settled:
                return arb((settled + rest).upper())
            _, _, size, left, right = heapq.heappop(waiting)
            middle = ((left + right) / 2).mid()
            halves = [(left, middle), (middle, right)]
            sizes = [_on_cell(chart_at, *half, order) for half in halves]
            if size.is_finite() and not sizes[0] + sizes[1] < size * _WORTH**-order:
                settled += size
                continue
            for part, half in zip(sizes, halves, strict=True):
                heapq.heappush(waiting, (-_log(part), next(number), part, *half))
    raise AccuracyError("the variation of the loss's density was not bounded in time")


def _on_cell(chart_at: Callable[[arb], Chart], left: arb, right: arb, order: int) -> arb:
    """Bound ∫ |dᴶg/dℓᴶ| |dℓ| over a cell, ∞ where nothing is proved."""
    chart = chart_at(((left + right) / 2).mid())
    reached = chart.lift(left).max(chart.lift(right)).upper()
    radius = (_AROUND * (right - left) / 2).mid()
    best = arb.pos_inf()
    while True:
        disc = _disc(chart, radius)
        if disc is None or not reached < disc.lift * _CELL_SHARE:
            return best
        steep = disc.radius * disc.height / (disc.lift - reached) ** (order + 1)
        bound = (2 * reached * math.factorial(order) * steep).upper()
        if not bound < best:
            return best
        best, radius = arb(bound), 2 * radius


def _disc(chart: Chart, radius: arb) -> _Disc | None:
    """Return what is proved in one disc, if anything is."""
    spend(_DISC_COST)
    steps = [radius * (arb(2 * k) / _SQUARES - 1) for k in range(_SQUARES + 1)]
    for low, high in pairwise(steps):
        for left, right in pairwise(steps):
            square = acb(between(left, right), between(low, high))
            if abs(square) > radius:
                continue
            for function in (chart.loss, chart.density):
                if not function(square, analytic=True).is_finite():
                    return None
    lift, height = arb.pos_inf(), arb(0)
    rises: list[Any] = []
    for index in range(_ARCS):
        angles = [arb(k) * 2 * arb.pi() / _ARCS for k in (index, index + 1)]
        arc = radius * acb(0, between(*angles)).exp()
        rises.append(chart.loss(radius * acb(0, angles[0]).exp()) - chart.level)
        away = chart.slope(arc) * radius * 2 * arb.pi() / _ARCS
        lift = lift.min((abs(rises[-1]) - away).lower())
        height = height.max(abs(chart.density(arc)).upper())
        if not (lift > 0 and height.is_finite()):
            return None
    # On an arc the rise stays in a ball without zero around that at its start.
    turned = sum(((b / a).arg() for a, b in pairwise([*rises, rises[0]])), arb(0))
    winding = (turned / (2 * arb.pi())).unique_fmpz()
    if winding is None or int(winding) != 1:
        return None
    return _Disc(radius, arb(lift.lower()), arb(height.upper()))


def _log(value: arb) -> float:
    """Return about log of a bound, which may be 0 or infinite."""
    if not value.is_finite():
        return math.inf
    return float(value.log().mid()) if value > 0 else -math.inf
