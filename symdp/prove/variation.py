"""Proved constants V_k with |φ_t(y) − atoms| ≤ V_k/|y|^k, by integration by parts.

With u = log P + tℓ − K(t) and D = (1/ℓ′)d/dx the tilted density of the loss is f = e^u/|ℓ′|, and k
integrations by parts give, as in [SPA (48)] where D^j f vanishes at the ends for j < k − 1,

    V_k = Σ_ends |D^{k−1} f| + ∫ |d/dx D^{k−1} f| dx,  D^j f = ±e^{u − (j+1)b} ρ_j,  b = log|ℓ′|,

ρ_0 = 1 and ρ_{j+1} = ρ_j′ + (u′ − (j+1)b′) ρ_j.  On panels log P and ℓ are polynomials but for a
proved error (see `falling`).  Cells on which ρ_k has one sign contribute the difference of their
ends; others their width times the largest slope, and are halved until they hardly matter.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import sympy as sp
from flint import arb, arb_poly, arb_series, ctx

from symdp.emit.exact import real_ball
from symdp.errors import AccuracyError, InputError
from symdp.prove.falling import Falling, Model, local_derivatives, panel_model
from symdp.prove.kind import Kind, Stretch
from symdp.prove.measure import Asked, up
from symdp.prove.tilted_loss import LOG2, TiltedLoss, covered, log_moment

REACH = 40  # the constants hold for |y| up to 2 to this power
_SPARE = 30  # bits of the mass beyond panels, relative to that
_MOST_CELLS = 6000  # of a sum of variations: about a second
_SLACK = 2.0**-11  # of a variation that need not be resolved
_NEGLIGIBLE = 2.0**-30  # an edge's part in a bound, relative
_BITS = 60  # of the mass that the bound at one frequency leaves out
_POINTS = 64  # of the polynomials on a panel
_MOST_PANELS = 4000  # of a stretch
_HALVINGS = 12  # of a panel next to a place where ℓ turns
_GENTLE = 4  # of the slopes at the ends of a panel
_MORE = 6  # terms of a series on a cell
# Why there is no constant.
_DISCRETE = "the loss is discrete: its characteristic function does not decay"
# Why there is none with the loss turning at a place.
_TURNS = (
    "the loss turns at {}, where its density is infinite: no constant bounds |φ| times |y|; ask "
    "for the split bound at one frequency"
)


@lru_cache(maxsize=64)
def variation_constant(kind: Kind, order: int, tilt: sp.Rational) -> arb:
    """Return V_k for 0 < |y| ≤ 2⁴⁰."""
    if order < 1:
        raise InputError(f"the order must be 1 or more, not {order}")
    if kind.is_discrete:
        raise AccuracyError(_DISCRETE)
    scale = arb(0) if order == 1 else variation_constant(kind, 1, tilt)
    bits = REACH * order + _SPARE
    with ctx.workprec(2 * bits + 3 * _POINTS):  # whose powers cancel
        own = Asked(real_ball(tilt), log_moment(kind, tilt), -bits * LOG2)
        panels, (beyond,) = covered(kind, [own], bits)
        total = (own.scale - TiltedLoss(kind, tilt, tilt).cgf(tilt)).exp()
        rows, edges = [], [arb(0)] * order
        for one in panels:
            stretch = kind.stretches[one.stretch]
            if not stretch.has_density:
                continue
            row = _models(stretch, one.edges, order)
            for model, u in ((row[0], -1.0), (row[-1], 1.0)):
                found = _local(own, model, u, 1.0, order - 1)
                assert found is not None  # ℓ is steep at the ends of panels
                sizes = [abs(value) * total for value in found.derivatives()]
                edges = [e + size.upper() for e, size in zip(edges, sizes, strict=True)]
            rows.append(row)
        for j, edge in enumerate(edges[:-1]):
            if not edge < arb(_NEGLIGIBLE) * scale ** (j + 1):
                raise AccuracyError(
                    f"the loss's density, differentiated {j} times, does not vanish at an end "
                    f"of a monotone piece: boundary terms remain, and V_{order} does not exist"
                )
        reach = arb(2) ** REACH
        variation = sum((_variation(own, row, order) for row in rows), beyond * reach**order)
        lower = (e * reach ** (order - 1 - j) for j, e in enumerate(edges))
        return arb((variation * total + sum(lower, arb(0))).upper())


def split_bound(kind: Kind, tilt: sp.Rational, frequency: sp.Rational) -> arb:
    """Return a bound of |φ_t(y) − atoms| at one y > 0 that holds where the loss turns, too."""
    if kind.is_discrete:
        raise AccuracyError(_DISCRETE)
    loss = TiltedLoss(kind, tilt, tilt)
    own = loss.asked[0]
    total = loss.smooth_part(tilt) * (-arb(own.scale)).exp()
    falling = Falling(kind, loss.panels, own.tilt, own.scale, total, arb(0), 2.0**-_BITS, orders=3)
    bound = arb(falling.at(math.nextafter(float(frequency), 0.0))) + loss.tails[0]
    bound *= (own.scale - loss.cgf(tilt)).exp()
    with suppress(AccuracyError):
        bound = bound.min(variation_constant(kind, 1, tilt) / real_ball(frequency))
    return arb(bound.upper())


def _models(stretch: Stretch, edges: Sequence[float], order: int) -> list[Model]:
    """Return log P and ℓ on panels in a row, halved until ℓ is about as steep everywhere.

    At an end of the stretch where it is not steep at all the loss turns.
    """
    places = [stretch.place(edge) for edge in edges]
    waiting = [(left, right, 0) for left, right in itertools.pairwise(places)][::-1]
    ends = [str(end) for end in stretch.ends() if end is not None]
    found = list[Model]()
    while waiting:
        left, right, halvings = waiting.pop()
        model = panel_model(stretch, left, right, _POINTS, order + _MORE + 2)
        if model is not None and halvings >= _HALVINGS and _turns(model):
            raise AccuracyError(_TURNS.format(((left + right) / 2).mid().str(6, radius=False)))
        if model is not None and (halvings >= _HALVINGS or _is_gentle(model)):
            found.append(model)
            continue
        middle = ((left + right) / 2).mid()
        if halvings > 3 * _HALVINGS or len(found) > _MOST_PANELS:
            raise AccuracyError("the loss's density is not resolved by panels of its variable")
        if model is not None and halvings:
            for slope, place in zip(_slopes(model), (left, right), strict=True):
                if slope == 0 and str(place) in ends:
                    raise AccuracyError(_TURNS.format(place.str(6, radius=False)))
        waiting += [(middle, right, halvings + 1), (left, middle, halvings + 1)]
    return found


def _is_gentle(model: Model) -> bool:
    """Whether ℓ is known to be about as steep at one end of a panel as at the other."""
    first, last = _slopes(model)
    return bool(first < _GENTLE * last and last < _GENTLE * first)


def _turns(model: Model) -> bool:
    """Whether ℓ rises at one end of a panel and falls at the other."""
    slope = model.loss.derivative()
    return 0 in _slopes(model) or bool(slope(arb(-1)) * slope(arb(1)) < 0)


def _slopes(model: Model) -> list[arb]:
    """Return |ℓ′| at both ends of a panel, 0 where hardly more is known of it."""
    slope, error = model.loss.derivative(), arb(float(model.errors[1][1]))
    found = [abs(slope(arb(u))) for u in (-1, 1)]
    return [size if size * arb(_SLACK) ** 2 > error else arb(0) for size in found]


class _Local(NamedTuple):
    """Series of u, of b = log|ℓ′| and of ρ_0, …, ρ_k around a place, or on a cell around it."""

    exponent: arb_series
    rise: arb_series
    factors: list[arb_series]

    def derivatives(self) -> list[arb]:
        """Return f, Df, …, D^k f up to their signs."""
        height, steep = self.exponent[0], self.rise[0]
        return [(height - (j + 1) * steep).exp() * f[0] for j, f in enumerate(self.factors)]


def _local(
    own: Asked,
    model: Model,
    place: float,
    half: float,
    order: int,
    more: int = 0,
    *,
    around: bool = False,
) -> _Local | None:
    """Return the series at a place of a panel, or over the cell so far around it; ρ_k has more.

    None where ℓ′ may be 0.
    """
    at, count = arb_poly([place, half]), order + more + 1
    pair = []
    for shape, errors in ((model.log_p, model.errors[0]), (model.loss, model.errors[1])):
        moved = shape(at)
        if around:
            pair.append(local_derivatives(moved, errors, half, count)[0])
            continue
        known = [*moved.coeffs(), *[arb(0)] * (count + 1)]
        pair.append([known[k] + arb(0, float(errors[k]) * half**k) for k in range(count + 1)])
    log_p, loss = pair
    if not abs(loss[1]) > 0:
        return None
    total = [p + own.tilt * x for p, x in zip(log_p, loss, strict=True)]
    total[0] += own.tilt * model.middle - own.scale + (half * model.half).log()
    sign = 1 if loss[1] > 0 else -1
    exponent = arb_series(total, prec=count)
    rise = arb_series([sign * (k + 1) * c for k, c in enumerate(loss[1:])], prec=count).log()
    factors = [arb_series([1], prec=count)]
    for j in range(1, order + 1):
        rate = exponent.derivative() - j * rise.derivative()
        factors.append(factors[-1].derivative() + rate * factors[-1])
    return _Local(exponent, rise, factors)


def _variation(own: Asked, row: Sequence[Model], order: int) -> arb:
    """Bound ∫ |d/dx D^{k−1} f| dx over panels."""
    settled, number = arb(0), itertools.count()
    heap: list[tuple[float, int, Model, float, float]] = []
    waiting = [(model, 0.0, 1.0) for model in row]
    open_total = 0.0
    for cells in range(_MOST_CELLS + len(row)):
        if cells % 64 == 0 or open_total <= _SLACK * float(settled):
            open_total = -sum(entry[0] for entry in heap)  # ∞ − ∞ and roundings
        if not waiting:
            if open_total <= _SLACK * float(settled):
                break
            size, _, model, centre, half = heapq.heappop(heap)
            open_total += size
            waiting = [(model, centre + s * half / 2, half / 2) for s in (1, -1)]
        model, centre, half = waiting.pop()
        bound, known = _cell(own, model, centre, half, order)
        if known is not None:
            settled += known
        else:
            heapq.heappush(heap, (-bound, next(number), model, centre, half))
            open_total += bound
    rest = -sum(entry[0] for entry in heap)
    if waiting or not math.isfinite(rest):
        raise AccuracyError("the variation of the loss's density was not bounded in time")
    return arb((settled + rest * (1 + 2.0**-40)).upper())


def _cell(
    own: Asked, model: Model, centre: float, half: float, order: int
) -> tuple[float, arb | None]:
    """Return a bound of the variation over a cell, and the variation where that is known."""
    around = _local(own, model, centre, half, order, _MORE, around=True)
    middle = _local(own, model, centre, half, order, _MORE)
    if around is None or middle is None:
        return math.inf, None
    factor = _on_cell(middle.factors[-1], around.factors[-1])
    if not factor.contains(0):
        ends = [_local(own, model, centre + s * half, half, order - 1) for s in (-1, 1)]
        first, last = (end.derivatives()[-1] for end in ends if end is not None)
        return 0.0, abs(last - first)
    steep = [one.exponent - order * one.rise for one in (middle, around)]
    return up(2 * _on_cell(*steep).exp() * abs(factor)), None


def _on_cell(middle: arb_series, around: arb_series) -> arb:
    """Enclose a function on a cell by its series at the middle, the last term over all of it."""
    terms = [*(middle[k] for k in range(_MORE)), around[_MORE]]
    return sum((term * arb(0, 1) for term in terms[1:]), terms[0])
