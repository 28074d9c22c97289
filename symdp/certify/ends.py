"""What one end of a piece of the loss adds to φ_t(y), where all is holomorphic around it.

Let ℓ = ℓ₀ + σv^κ inside the end, σ = ±1, with κ = 2 or more where the loss turns and else 1, and
let h(v) be the tilted density of v ≥ 0.  With the operator D that takes v^k to (k + 1 − κ) v^{k−κ},
and to 0 for k < κ, integration by parts up to a v = c gives J times over

    ∫₀ᶜ h e^{iσyv^κ} dv = Σ_{k<κJ} h_k Γ((k + 1)/κ)/κ (−iσy)^{−(k+1)/κ} + (terms at c) + r,
    |r| ≤ (κy)^{−J} (∫₀ᶜ |D^J h| dv + X).

The terms at c are those of integration by parts in ℓ from the other side, and cancel them.  X is
what the integrals of v^r e^{iσyv^κ} from c on leave, r ≤ κ − 2, after j = J − m parts:

    X = Σ_r Σ_{m<J} Π_{i<m} (r + 1 + iκ) |h_{r+mκ}| Π_{i=1}^j (iκ − r − 1) c^{r+1−jκ}/(jκ − r − 1).

In a disc |s| ≤ S around the end in which all is holomorphic, and ℓ − ℓ₀ has no zero but the κ-fold
one at s = 0, let |v| ≥ R on the circle.  By Rouché's theorem s is holomorphic in v up to R, and
h_k = (1/2πi) ∮ w v^{−k−1} ds shows |h_k| ≤ S max |w| / R^{k+1} for the density w of s.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import acb, arb, arb_series, ctx

from symdp.certify.charts import Chart
from symdp.certify.work import spend
from symdp.emit.enclose import between
from symdp.errors import AccuracyError
from symdp.truth.jets import at_length

_BITS = 64  # of what only bounds
_ARCS, _SQUARES = 64, 6
_SHRINK, _TRIES = 0.85, 60
_DISCS = 4
_SEEN = 24  # coefficients that tell about a radius of convergence
_SHARES = (0.7, 0.5, 0.35)  # of R
_SMALL_RATIO = 0.95
_MOST_TERMS = 2000
_MOST_CELLS = 2000
_DISC_COST = 200.0  # in values of a log-density
_AROUND, _CELL_SHARE = 2.5, 0.6  # a disc beside half a cell, the part of R that a cell may take
_WORTH = 1.1  # what halving a cell should take off the J-th root


@dataclass(frozen=True)
class EndSeries:
    """Coefficients of powers of u = 1/(iy), a bound of r·yᴶ, and the place of c."""

    coefficients: dict[Fraction, acb]
    remainder: arb
    inside: arb


@dataclass(frozen=True)
class _Disc:
    """S, R and the largest density on the circle."""

    radius: arb
    lift: arb
    height: arb


def expand_end(chart: Chart, order: int, rises: bool) -> EndSeries:
    """Expand what lies between an end and a place inside.

    Parameters
    ----------
    chart : Chart
    order : int
        J.
    rises : bool
        Whether the loss is larger inside the piece.

    Raises
    ------
    AccuracyError
        If no remainder is bounded.
    """
    power = chart.power
    sign = 1 if rises else -1
    density, distances = _in_lift(chart, power * order, sign)
    if not all(c.is_finite() for c in (*density, *distances)):
        raise AccuracyError("the loss is too flat at an end of a piece")
    best: tuple[arb, arb] | None = None
    with ctx.workprec(_BITS):
        for disc in _discs(chart):
            for share in _SHARES:
                distance = _value(distances, share * float(disc.lift))
                if not 0 < distance < float(disc.radius.min(chart.room)):
                    continue
                place = chart.place(distance)
                bound = _remainder(chart, density, place, order, disc)
                if bound.is_finite() and (best is None or bound < best[0]):
                    best = bound, place
    if best is None:
        raise AccuracyError("what an end of a piece of the loss leaves out was not bounded")
    coefficients = {}
    for k, size in enumerate(density):
        part = arb(k + 1) / power
        turn = (acb(0, arb.pi()) * part).exp() if rises else acb(1)
        coefficients[Fraction(k + 1, power)] = turn * size * part.gamma() / power
    return EndSeries(coefficients, *best)


def bound_between(
    chart_at: Callable[[arb], Chart], low: arb, high: arb, order: int, spare: int
) -> arb:
    """Bound ∫ |dᴶg/dℓᴶ| |dℓ| over what lies between two ends, from discs on the way.

    Where |v| ≥ R on the circle and |v| ≤ c < R on a cell, |g⁽ᴶ⁾| ≤ J! S max |w| / (R − c)^{J+1}.

    Parameters
    ----------
    chart_at : callable
        The chart of the distance from a place, κ = 1.
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


def _in_lift(chart: Chart, count: int, sign: int) -> tuple[list[arb], list[arb]]:
    """Return the coefficients of h(v) and of the distance s(v)."""
    loss, density = chart.series(count + chart.power + 1)
    unknown = [arb.nan()]
    with at_length(count + 2):
        rise = arb_series([sign * c for c in loss[chart.power :]], count + 1)
        if not rise[0] > 0:
            return unknown, unknown
        lift = arb_series([0, 1], count + 1) * (rise.log() / chart.power).exp()
        back = lift.reversion()
        values = arb_series(density, count)(back) * back.derivative()
        return [values[k] for k in range(count)], [back[k] for k in range(count)]


def _discs(chart: Chart) -> list[_Disc]:
    """Return discs in which all is holomorphic, the largest found and some smaller ones."""
    found: list[_Disc] = []
    radius = arb(min(float(chart.room), *map(_radius, chart.series(_SEEN)))).mid()
    for _ in range(_TRIES):
        disc = _disc(chart, radius)
        if disc is not None:
            found.append(disc)
        if len(found) == _DISCS:
            break
        radius = (radius * _SHRINK).mid()
    return found


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
    if winding is None or int(winding) != chart.power:
        return None
    return _Disc(radius, lift.root(chart.power).lower(), arb(height.upper()))


def _remainder(chart: Chart, density: list[arb], place: arb, order: int, disc: _Disc) -> arb:
    """Bound r·yᴶ for the expansion up to a place."""
    power = chart.power
    lift = chart.lift(place).root(power)
    low, high = lift.lower(), lift.upper()
    ratio = (high / disc.lift).upper()
    if not ratio < _SMALL_RATIO:
        return arb.pos_inf()
    # (k + 1 − κ)(k + 1 − 2κ)…(k + 1 − Jκ) |h_k| c^{k − κJ + 1}/(k − κJ + 1), bounded by the circle.
    lowest = power * order
    term = disc.radius * disc.height * disc.lift ** (-lowest - 1) * high
    term *= math.prod(range(lowest + 1 - power, 0, -power))
    total = arb(0)
    for k in range(lowest, _MOST_TERMS):
        total += term / (k - lowest + 1)
        growth = ratio
        for factor in range(k + 1 - power, k + 1 - power * (order + 1), -power):
            growth = growth * (factor + 1) / factor
        term = (term * growth).upper()
        if growth < _SMALL_RATIO:  # and falls on
            total += term / (1 - growth)
            break
    else:
        return arb.pos_inf()
    for k in range(lowest):
        m, r = divmod(k, power)
        if r < power - 1:
            j = order - m
            inner = math.prod(r + 1 + i * power for i in range(m))
            outer = math.prod(i * power - r - 1 for i in range(1, j + 1))
            size = abs(density[k]) * inner * outer
            total += size * low ** (r + 1 - j * power) / (j * power - r - 1)
    return arb((total / arb(power) ** order).upper())


def _radius(coefficients: list[arb]) -> float:
    """Return about the radius of convergence of a power series, infinite for a polynomial."""
    half = len(coefficients) // 2
    sizes = [float(abs(c).mid()) for c in coefficients]
    base = max(sizes) or 1.0
    roots = [(size / base) ** (-1.0 / k) for k, size in enumerate(sizes) if k >= half and size > 0]
    return min(roots, default=math.inf)


def _value(coefficients: list[arb], at: float) -> float:
    """Return about the value of a polynomial."""
    total = 0.0
    for c in reversed(coefficients):
        total = total * at + float(c)
    return total


def _log(value: arb) -> float:
    """Return about log of a bound, which may be 0 or infinite."""
    if not value.is_finite():
        return math.inf
    return float(value.log().mid()) if value > 0 else -math.inf
