"""One step's privacy loss on a mesh: what lies in each cell, and its density at single values.

The loss is cut where it turns, so that it need not be one-to-one; values of positive probability
are counted as they are.

**The sum** of steps is their convolution on that mesh, as far as a loss reaches.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.numeric.beyond.turns import monotone_grid, value_and_slope
from symdp.numeric.elementary import Complex, distinct
from symdp.numeric.loss import LossLaw
from symdp.numeric.outline import Outline, tilted_log_density
from symdp.numeric.step import Array, SmoothPiece
from symdp.numeric.total import SumLaw
from symdp.tolerances import UNIT

T = TypeVar("T")
_ROOTS = 80  # steps of a bisection: down to neighbouring doubles
_BLOCK = 1 << 17  # cells at a time


# On a panel that 16 nodes resolve, a part r times as narrow is resolved by m with r^(2m) > 1e18.
def _rule(share: float, order: int) -> tuple[float, Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return share, nodes.astype(np.float64), weights.astype(np.float64)


_RULES = tuple(
    _rule(share, m) for share, m in ((1.0 / 16.0, 16), (1.0 / 64.0, 8), (1e-3, 5), (0.0, 3))
)
_VANISHED = 30.0  # e-folds below its largest value, at which a density has vanished at an end


@dataclass(frozen=True)
class Cells:
    """What lies in each of the cells [(first + j)h, (first + j + 1)h) under the tilted law."""

    mass: Array
    moment: Array  # the expectation of ℓ less the cell's lower end there
    below: float  # the probability of what lies beyond all cells
    above: float


def loss_cells(law: LossLaw, tilt: float, spacing: float, first: int, count: int) -> Cells:
    """Return the masses and first moments of `count` cells under P_t ∝ e^{tL}P, L finite."""
    mass = np.zeros(count)
    moment = np.zeros(count)
    beyond: Array = np.zeros(2)
    log_total = SumLaw([(law, 1)]).cgf(tilt)

    def add(position: Array, loss: Array, weight: Array) -> None:
        # clipped, for a loss may be larger than every whole number of cells
        index = np.clip(np.floor(position / spacing) - first, -1.0, count).astype(np.int64)
        inside = (index >= 0) & (index < count)
        beyond[:] += weight[index < 0].sum(), weight[index == count].sum()
        index = index[inside]
        weight = weight[inside]
        past = loss[inside] - (index + first) * spacing
        mass[:] += np.bincount(index, weight, count)
        moment[:] += np.bincount(index, weight * past, count)

    nodes = law.nodes(tilt, 0.0)
    atoms = nodes.loss[nodes.atomic]
    log_weight = nodes.log_weight[nodes.atomic]
    add(atoms, atoms, np.exp(log_weight + tilt * atoms - log_total))
    for stretch in _monotone_stretches(law, tilt):
        for lower, upper, share in stretch.parts(spacing, first, count):
            widest = np.inf
            for least, nodes_, weights_ in _RULES:
                is_sized = (share <= widest) & (share > least)
                if is_sized.any():
                    panel_index, loss, weight = stretch.integrate(
                        lower[is_sized], upper[is_sized], nodes_, weights_, tilt, log_total
                    )
                    # All nodes of a part belong to the cell its middle lies in.
                    index = np.broadcast_to(panel_index[:, None], loss.shape).ravel()
                    add(index, loss.ravel(), weight.ravel())
                widest = least
    return Cells(mass, moment, float(beyond[0]), float(beyond[1]))


def loss_span(law: LossLaw, tilt: float) -> tuple[float, float]:
    """Return the losses between which all but e^−44 of P_t lies: every cell outside is empty."""
    stretches = _monotone_stretches(law, tilt)
    nodes = law.nodes(tilt, 0.0)
    ends = [end for stretch in stretches for end in stretch.range]
    ends += nodes.loss[nodes.atomic].tolist()
    return min(ends), max(ends)


def loss_density(law: LossLaw, values: Array) -> Array:
    """Return Σ P(x)/|ℓ′(x)| over the x with ℓ(x) = s, for every value s [FA Def. 4]."""
    density = np.zeros(values.size)
    for stretch in _monotone_stretches(law, 0.0):
        inside = (values > stretch.range[0]) & (values < stretch.range[1])
        density[inside] += np.exp(stretch.log_density(values[inside]))
    return density


def has_smooth_density(law: LossLaw) -> bool:
    """Return whether a sum over equidistant values of the loss's density is accurate.

    ℓ is then one-to-one, without atoms, and its density vanishes at both ends.
    """
    if law.has_atoms:
        return False
    stretches = _monotone_stretches(law, 0.0)
    if len(stretches) != 1:
        return False
    sample = np.linspace(*stretches[0].range, 514)[1:-1]
    inner = stretches[0].log_density(sample)
    ends = stretches[0].log_density(stretches[0].ends())
    top = inner[np.isfinite(inner)].max()
    return bool((ends < top - _VANISHED).all())


class _Stretch:
    """A part of a piece on which the loss is monotone, with the panels that resolve its density."""

    def __init__(self, piece: SmoothPiece, x: Array, loss: Array, panels: Array) -> None:
        self.piece = piece
        self.panels = panels
        self.sign = 1.0 if loss[-1] >= loss[0] else -1.0
        order = np.maximum.accumulate(loss * self.sign)
        keep = np.diff(order, prepend=-np.inf) > 0
        self.ends_x = (float(x[0]), float(x[-1]))
        self.x = x[keep]
        self.order = order[keep]
        ends = sorted((float(loss[0]), float(loss[-1])))
        self.range = (ends[0], ends[1])

    def ends(self) -> Array:
        """Two values of the loss next to the ends of its range."""
        return np.asarray(sorted((self.sign * self.order[1], self.sign * self.order[-2])))

    def inverse(self, values: Array) -> Array:
        """Return the x with ℓ(x) = s for values s inside the range."""
        target = values * self.sign
        index = np.clip(np.searchsorted(self.order, target), 1, self.order.size - 1)
        low = self.x[index - 1].copy()
        high = self.x[index].copy()
        value_at_low = self.order[index - 1]
        share = (target - value_at_low) / (self.order[index] - value_at_low)
        x = low + np.clip(share, 0.0, 1.0) * (high - low)
        settled = 2e-15 * np.maximum(np.abs(x), high - low)
        active = np.arange(x.size)
        for _ in range(_ROOTS):
            trial = x[active]
            value, slope = value_and_slope(self.piece, trial)
            gap = value * self.sign - target[active]
            is_above = gap > 0
            above = np.where(is_above, trial, high[active])
            below = np.where(is_above, low[active], trial)
            high[active] = above
            low[active] = below
            with np.errstate(all="ignore"):
                newton = trial - gap / (slope * self.sign)
            within = (newton >= below) & (newton <= above)
            fresh = np.where(within, newton, 0.5 * (below + above))
            x[active] = fresh
            has_moved = np.abs(fresh - trial) > settled[active]
            active = active[has_moved]
            if active.size == 0:
                break
        return np.asarray(x)

    def log_density(self, values: Array) -> Array:
        """Return log of P(x)/|ℓ′(x)| at the x with ℓ(x) = s."""
        x = self.inverse(values)
        _, slope = value_and_slope(self.piece, x)
        with np.errstate(all="ignore"):
            log_density = self.piece.log_p(x) - np.log(np.abs(slope))
        return np.asarray(np.where(np.isnan(log_density), -np.inf, log_density))

    def parts(self, spacing: float, first: int, count: int) -> list[tuple[Array, Array, Array]]:
        """Return intervals of x inside one cell and one panel: lower, upper, share of the panel."""
        x = self._cuts(spacing, first, count)
        lower = x[:-1]
        upper = x[1:]
        middle = 0.5 * (lower + upper)
        panel = np.searchsorted(self.panels, middle) - 1
        panel = np.clip(panel, 0, self.panels.size - 2)
        width = self.panels[panel + 1] - self.panels[panel]
        share = (upper - lower) / width
        blocks = []
        for start in range(0, lower.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            blocks.append((lower[block], upper[block], share[block]))
        return blocks

    def _cuts(self, spacing: float, first: int, count: int) -> Array:
        """Return the x, in rising order, at which a panel ends or the loss enters another cell."""
        (least, most) = self.range
        lowest = max(int(np.ceil(least / spacing)), first)
        highest = min(int(np.floor(most / spacing)), first + count)
        cuts = [np.asarray(self.ends_x), self.panels]
        if highest >= lowest:
            edges: Array = np.arange(lowest, highest + 1, dtype=np.float64) * spacing
            inside = (edges > least) & (edges < most)
            cuts.append(self.inverse(edges[inside]))
        return distinct(np.clip(np.concatenate(cuts), *self.ends_x))

    def integrate(
        self,
        lower: Array,
        upper: Array,
        nodes: Array,
        weights: Array,
        tilt: float,
        log_total: float,
    ) -> tuple[Array, Array, Array]:
        """Return the loss in the middle of each interval, and at its nodes with their masses."""
        half = 0.5 * (upper - lower)
        middle = 0.5 * (upper + lower)
        x = (middle[:, None] + half[:, None] * nodes).ravel()
        loss = np.real(self.piece.loss(x)).reshape(lower.size, -1)
        log_mass = tilted_log_density(self.piece, x, [tilt])[0].reshape(loss.shape)
        weight = np.exp(log_mass - log_total) * half[:, None] * weights
        return np.real(self.piece.loss(middle)), loss, weight


_known: WeakKeyDictionary[LossLaw, dict[float, list[_Stretch]]] = WeakKeyDictionary()


def _monotone_stretches(law: LossLaw, tilt: float) -> list[_Stretch]:
    """Return the monotone stretches on which the tilted density is not negligible, kept."""
    by_tilt = _known.setdefault(law, {})
    if tilt in by_tilt:
        return by_tilt[tilt]
    stretches: list[_Stretch] = []
    log_total = SumLaw([(law, 1)]).cgf(tilt)
    for outline in law.outlines:
        piece = outline.piece
        if not (piece.flat or piece.integer):
            stretches += _monotone(outline, tilt, log_total)
    by_tilt[tilt] = stretches  # all of them, or none where this is interrupted
    return stretches


def _monotone(outline: Outline, tilt: float, log_total: float) -> list[_Stretch]:
    piece = outline.piece
    monotone = monotone_grid(outline, {tilt: log_total})
    if monotone is None:
        return []
    if monotone.x.size < 3:
        raise AccuracyError("a piece of the density is too narrow to put on a mesh")
    x = monotone.x
    edges = monotone.edges
    cuts = [float(x[0]), *monotone.turns.tolist(), float(x[-1])]
    stretches = []
    for low, high in itertools.pairwise(cuts):
        inner = x[(x > low) & (x < high)]
        grid = np.concatenate([[low], inner, [high]])
        with np.errstate(all="ignore"):
            values = np.real(piece.loss(grid))
        inside = edges[(edges > low) & (edges < high)]
        stretches.append(_Stretch(piece, grid, values, np.concatenate([[low], inside, [high]])))
    return stretches


_ROUNDED = 1e-6  # of a spacing: a point that lies on the end but for rounding is counted in
_STAGES = 16.0  # roundings of a mass and of a power, beside the log₂ N stages of the transform
_WEIGHTS = 4.0  # roundings of a weight at most 1
_INSIDE = 0.98  # of the way to the end of the domain
_FIRST = 1.0 / 64.0  # of the tilt that is best for a Gaussian loss: far tilts cost new nodes
_NEAR = 0.25  # a tilt that every law with moments can be asked for
# of tilts tried, and of the best
_GROWTH = 2.0
_REFINED = (0.6, 0.75, 0.87, 1.15, 1.3, 1.6)
_TRIALS = 40  # tilts, a factor apart: enough for 12 orders of magnitude


@dataclass(frozen=True)
class Lumps:
    """One step's loss on a mesh: mass[j] at (first + j)·spacing + offset."""

    mass: Array
    first: int
    offset: float


@dataclass(frozen=True)
class GridSum:
    """The total loss: mass[j] at start + j·spacing.

    `floor` bounds what rounding can have changed in any sum of masses with weights at most 1.
    """

    mass: Array
    start: float
    spacing: float
    floor: float
    _kept: dict[float, Array] = field(default_factory=dict, repr=False, compare=False)

    def payoff(self, epsilon: float, tilt: float, shift: float) -> float:
        """Return Σ c(s) e^{−t(s−ε)} (1 − e^{ε+shift−s})⁺ over the grid.

        The powers of e^{−h} are kept, so that a weight is rounded like 1: `floor` covers it.
        """
        first = max(math.ceil((epsilon + shift - self.start) / self.spacing), 0)
        count = self.mass.size - first
        if count <= 0:
            return 0.0
        gap = self.start + self.spacing * first - epsilon
        weight = 1.0 - math.exp(min(shift - gap, 0.0)) * self._powers(1.0)[:count]
        np.maximum(weight, 0.0, out=weight)
        if tilt:
            weight *= math.exp(-tilt * gap) * self._powers(tilt)[:count]
        return float(self.mass[first:] @ weight)

    def _powers(self, tilt: float) -> Array:
        if tilt not in self._kept:
            self._kept[tilt] = np.exp(-tilt * self.spacing * np.arange(self.mass.size))
        return self._kept[tilt]


def grid_sum(
    steps: Sequence[tuple[Lumps, int]], spacing: float, points: int, lowest: float
) -> GridSum:
    """Return the convolution power modulo points·spacing, read from `lowest` upwards.

    The transform only knows values modulo the grid's length, so that the grid may lie anywhere;
    what falls outside of it appears inside, on the other end.
    """
    product: Complex | None = None
    shift = 0.0
    count = 0
    for lumps, copies in steps:
        index = (lumps.first + np.arange(lumps.mass.size)) % points
        folded = np.bincount(index, lumps.mass, points)
        power = _elementwise_power(np.fft.rfft(folded), copies)
        product = power if product is None else product * power
        shift += copies * lumps.offset
        count += copies
    assert product is not None
    mass = np.fft.irfft(product, points)
    # A grid that is meant to begin at `lowest` must not miss it by rounding.
    first = math.ceil((lowest - shift) / spacing - _ROUNDED)
    mass = np.roll(mass, -(first % points))
    # |error of F^k| ≤ k|F|^{k−1}·rounding at every frequency; Parseval and Cauchy sum it up.
    size = math.sqrt(points * float(mass @ mass))
    floor = UNIT * ((_STAGES + math.log2(points)) * (count + 1.0) + _WEIGHTS) * size
    return GridSum(mass, shift + first * spacing, spacing, floor)


def _elementwise_power(base: NDArray[np.complex128], exponent: int) -> Complex:
    """Return the elementwise power by squaring, whose rounding grows like the exponent."""
    result: Complex | None = None
    while True:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        base = base * base


def kept_few(law: SumLaw, make: Callable[..., T], most: int, *arguments: object) -> T:
    """Return make(law, *given), the last few of which are kept with the law: each may be 32 MB."""
    kept = law.kept.setdefault(make, {})
    if arguments not in kept:
        result = make(law, *arguments)
        while len(kept) >= most:
            kept.pop(next(iter(kept)))
        kept[arguments] = result
    value: T = kept[arguments]
    return value


def reach(law: SumLaw, tilt: float, log_share: float, upper: bool) -> float:
    """Return b with P_t(L > b) ≤ e^log_share, or P_t(L < b) where `upper` is false.

    b = min_s (K(t + s) − K(t) − log_share)/s over a few s > 0, every one of which is proved
    [FA 7.2]; the range of the loss bounds it too.
    """
    sign = 1.0 if upper else -1.0
    base = law.cgf(tilt)
    best = _least(
        law, tilt, log_share, sign, lambda s: (_cgf(law, tilt + sign * s) - base - log_share) / s
    )
    best = min(best, sign * law.loss_bounds[1 if upper else 0])
    if not math.isfinite(best):
        raise AccuracyError(
            "no moment that bounds the tail of the privacy loss was found, so no grid is chosen; "
            "use the method contour"
        )
    return sign * best


def log_beyond(law: SumLaw, tilt: float, threshold: float, upper: bool) -> float:
    """Return a bound on log P_t(L > place), or log P_t(L < place), by Chernoff's inequality."""
    sign = 1.0 if upper else -1.0
    if sign * threshold >= sign * law.loss_bounds[1 if upper else 0]:
        return -math.inf
    base = law.cgf(tilt)
    mean, variance = (float(v) for v in law.cumulants(tilt, 2))
    gap = sign * (threshold - mean)
    if gap <= 0 or variance <= 0:
        return 0.0
    likely = -0.5 * gap * gap / variance
    return min(
        _least(
            law,
            tilt,
            likely,
            sign,
            lambda s: _cgf(law, tilt + sign * s) - base - s * sign * threshold,
        ),
        0.0,
    )


def step_beyond(part: LossLaw, threshold: float) -> float:
    """Return P(|L| > place) of one step's finite loss."""
    nodes = part.base
    return float(nodes.weight[np.abs(nodes.loss) > threshold].sum())


def _cgf(law: SumLaw, tilt: float) -> float:
    """Return K(t), ∞ where it cannot be evaluated: farther tilts have even fewer moments."""
    try:
        return law.cgf(tilt)
    except AccuracyError:
        return math.inf


def _least(
    law: SumLaw, tilt: float, log_share: float, sign: float, bound: Callable[[float], float]
) -> float:
    """Return the least value of a bound that falls and then rises with the tilt's distance."""
    variance = float(law.cumulants(tilt, 2)[1])
    if variance <= 0:
        return math.inf
    end = law.domain[1] - tilt if sign > 0 else tilt - law.domain[0]
    if not end > 0:
        return math.inf
    s = min(_FIRST * math.sqrt(-2.0 * log_share / variance), 0.01 * end, _NEAR)
    best = math.inf
    best_s = s
    for _ in range(_TRIALS):
        value = bound(s)
        if value >= best:
            break
        best = value
        best_s = s
        if s >= _INSIDE * end:
            break
        s = min(_GROWTH * s, _INSIDE * end)
    tilts = (factor * best_s for factor in _REFINED)
    return min([best, *(bound(s) for s in tilts if s < _INSIDE * end)])
