"""The law of a composition's loss on a mesh, each step cut to a range that needs no moments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from symdp.capacity import afford
from symdp.errors import AccuracyError
from symdp.exact.grid_sum import GridSum, Lumps, grid_sum, reach
from symdp.law.cells import loss_cells, loss_span
from symdp.law.loss import LossLaw
from symdp.law.total import SumLaw
from symdp.method_options import POINTS

_FINEST = 1e-12  # mesh, of the largest loss
_LOSS_ROUNDING = 1e-15  # of the largest loss, for each step
_KEPT = 4  # laws on grids that are kept, 32 MB each
_FOR_SUM, _FOR_STEP = 10.0, 25.0  # numbers held for a point, and for a cell of a step; measured
_LOG_SIXTH = math.log(6.0)  # of the missed probability, for each of its parts
_NEGLIGIBLE = 40.0  # nats of a loss above ε beyond which e^{ε−L} is below rounding
_LEAST_CUT = 64.0  # nats: losses above are cut off where ε is small
_COARSE = 1 << 12  # cells of one step, from which the range of the cut sum follows
_EXPONENTS = np.geomspace(1e-5, 30.0, 120)  # of Chernoff's bound: every one is proved


@dataclass(frozen=True)
class Mesh:
    """The sum of the cut steps on its mesh: within e of L there, but for probability e^share.

    `log_kept` is the log of the probability that no step is cut, `above` the probability that the
    loss of a step lies above its range under P and `log_above_q` the log of a bound on it under Q;
    `below` is the probability that the loss of a step lies below its range. With every step rounded
    down to its cell, the sum is `rounded_down` from that on the mesh, and `all_up` less than
    rounded up.
    """

    tilt: float
    share: float
    distance: float
    total: GridSum
    log_kept: float
    above: float
    log_above_q: float
    below: float
    rounded_down: float
    all_up: float

    def jump(self, epsilon: float) -> float:
        """Return the least that P(J) − e^ε Q(J) can be, J = {a loss lies above its range}."""
        return max(self.above - math.exp(min(epsilon + self.log_above_q, 0.0)), 0.0)


_meshes: WeakKeyDictionary[SumLaw, dict[tuple[float, ...], Mesh]] = WeakKeyDictionary()


def largest_loss(law: SumLaw, epsilon: float) -> float:
    """Return a loss of one step above which 1 − e^{ε−L} is 1 but for rounding, shared by many ε.

    >>> from symdp import compose, mechanisms
    >>> largest_loss(compose(mechanisms.laplace(b=1), 10).law("remove"), 1.0)
    64.0
    """
    wanted = max(epsilon, 0.0) + _NEGLIGIBLE + math.log(law.count)
    return max(_LEAST_CUT, 2.0 ** math.ceil(math.log2(wanted)))


def mesh_of(
    law: SumLaw, tilt: float, share: float, top: float, *, points: int, distance: float
) -> Mesh:
    """Return the composition's law on a mesh, kept for further ε.

    A step's range reaches down to a with n P_t(ℓ < a) ≤ e^share/6, which needs no moment:
    P_t(ℓ < a) ≤ e^{(1+t)a − K(t)}, for P ≤ e^a Q there. Untilted it ends at `top`: what lies above
    is counted apart. A sixth of the share each goes to the sum beyond either end, two to
    Hoeffding's inequality.

    Parameters
    ----------
    law, tilt
        the total loss and the tilt t ≥ 0.
    share
        the log of the probability that may be missed.
    top
        the largest loss of one step that is kept on the mesh.
    points, distance
        the number of points; or zero, for as many as a distance e between the sums needs.

    Raises
    ------
    AccuracyError
        If no mesh of so many points serves.
    """
    kept = _meshes.setdefault(law, {})
    key = (tilt, share, top, points, distance)
    if key in kept:
        return kept[key]
    low, high, ranges = _ends(law, tilt, share - _LOG_SIXTH, top)
    # e = factor · h, and the window must be wider than the sum's range by e on either side.
    factor = math.sqrt(0.5 * law.count * (_LOG_SIXTH - share))
    if not points:
        wanted = (high - low) * factor / distance + 2.0 * factor + 4.0
        points = 1 << max(math.ceil(math.log2(wanted)), 10)
        if points > POINTS.most:
            raise AccuracyError(
                f"eps_error = {distance:g} needs {points} points, and {POINTS.most:.0f} are the "
                "most; take a larger eps_error"
            )
    if not points > 4.0 * (factor + 2.0):
        raise AccuracyError(
            f"{points} points are too few for {law.count} steps; use more points or contour"
        )
    spacing = max((high - low) / (points - 2.0 * factor - 4.0), _FINEST * max(abs(low), abs(high)))
    # A loss of no spread is on any mesh, in a whole number of cells; so is the range of each step.
    spacing = max(spacing, *((end - start) / points for start, end in ranges)) or _FINEST
    steps: list[tuple[Lumps, int]] = []
    held, scale = _FOR_SUM * points, 0.0
    log_kept = log_below_top = below = offset = 0.0
    log_above_q = -math.inf
    for (part, count), ends in zip(law.parts, ranges, strict=True):
        one = _discretised(part, tilt, spacing, points, ends, held)
        steps.append((one.lumps, count))
        held += one.lumps.mass.size
        scale = max(scale, *map(abs, ends))
        offset += count * one.lumps.offset
        log_below_top += count * math.log1p(-one.above) if one.above < 1.0 else -math.inf
        log_kept += count * math.log(one.inside) if one.inside > 0 else -math.inf
        if one.above > 0:
            one_above_q = math.log(count * one.above) - one.end
            log_above_q = float(np.logaddexp(log_above_q, one_above_q))
        below += count * one.below
    unsure = _LOSS_ROUNDING * law.count * scale
    e = factor * spacing + unsure
    total = grid_sum(steps, spacing, points, low - factor * spacing - spacing)
    while len(kept) >= _KEPT:
        kept.pop(next(iter(kept)))
    above = -math.expm1(log_below_top)
    down, up = -offset - unsure, law.count * spacing + 2.0 * unsure
    log_kept = min(log_kept, 0.0)
    kept[key] = Mesh(tilt, share, e, total, log_kept, above, log_above_q, below, down, up)
    return kept[key]


def _ends(
    law: SumLaw, tilt: float, log_share: float, top: float
) -> tuple[float, float, list[tuple[float, float]]]:
    """Return the ends of the sum of the cut steps, each missed by e^log_share, and the ranges."""
    ranges, is_cut = [], False
    each = log_share - math.log(law.count)
    for part, _ in law.parts:
        low, high = loss_span(part, tilt)
        low = min(max(low, (each + SumLaw([(part, 1)]).cgf(tilt)) / (1.0 + tilt)), high)
        if tilt == 0.0 and high > top:
            is_cut, high = True, top
            low = min(low, top - 1.0)
        ranges.append((low, high))
    lowest = (log_share + law.cgf(tilt) + law.log_finite_mass) / (1.0 + tilt)
    if not is_cut:
        low, high = (reach(law, tilt, log_share, upper) for upper in (False, True))
        return min(max(low, lowest), high), high, ranges
    logs = np.zeros((2, _EXPONENTS.size))  # of the moments of the cut sum, both signs
    for (part, count), (low, high) in zip(law.parts, ranges, strict=True):
        width = (high - low) / (_COARSE - 2)
        first = math.floor(low / width)
        mass = loss_cells(part, 0.0, width, first, _COARSE).mass
        if not mass.sum() > 0:
            continue
        place = (first + np.arange(_COARSE)) * width
        with np.errstate(all="ignore"):
            log_mass = np.log(mass / mass.sum())
        for side, ends in enumerate((-place, place + width)):
            terms = log_mass + np.multiply.outer(_EXPONENTS, ends)
            most = terms.max(axis=1)
            logs[side] += count * (most + np.log(np.exp(terms - most[:, None]).sum(axis=1)))
    lower, upper = ((logs - log_share) / _EXPONENTS).min(axis=1)
    low = min(max(-float(lower), lowest), float(upper))
    return low, float(upper), ranges


@dataclass(frozen=True)
class _Cut:
    """One step on the mesh, what lies in its range and beyond either end, and the upper end."""

    lumps: Lumps
    inside: float
    below: float
    above: float
    end: float


def _discretised(
    part: LossLaw, tilt: float, spacing: float, points: int, ends: tuple[float, float], held: float
) -> _Cut:
    """Return one step cut to a range, rounded to the mesh and shifted to its mean.

    So many numbers are held for the sum and for other steps.
    """
    low, high = ends
    first = math.floor(low / spacing)
    count = math.floor(high / spacing) + 1 - first
    if count > 4 * points:
        raise AccuracyError("one step reaches farther than the mesh; use more points or contour")
    name = "tilted-prv" if tilt else "prv"
    afford(
        held + _FOR_STEP * count,
        f"{name}: a mesh of {points} points with {count} cells for one step",
        "use fewer points, or the method moments or contour",
    )
    cells = loss_cells(part, tilt, spacing, first, count)
    end = (first + count) * spacing
    inside = float(cells.mass.sum())
    if not inside > 0:
        return _Cut(Lumps(np.ones(1), 0, 0.0), 0.0, cells.below, min(cells.above, 1.0), end)
    lumps = Lumps(cells.mass / inside, first, float(cells.moment.sum()) / inside)
    whole = inside + cells.below + cells.above
    return _Cut(lumps, inside / whole, cells.below / whole, cells.above / whole, end)
