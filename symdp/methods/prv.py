"""Privacy loss random variables on a mesh: two-sided proved bounds on δ(ε), plain and tilted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from symdp.capacity import afford
from symdp.errors import AccuracyError, InputError
from symdp.exact.answer import Answer
from symdp.exact.base import FloatAccountant
from symdp.law.cells import loss_cells, loss_span
from symdp.law.loss import LossLaw
from symdp.law.saddle_point import saddle_point
from symdp.law.tilts import Strip, far_tilt
from symdp.law.total import SumLaw
from symdp.methods.grid_sum import GridSum, Lumps, grid_sum, reach
from symdp.methods.moments import Moments, proved_instead

_FEW_POINTS, _POINTS = 1 << 20, 1 << 22  # the second where bounds from the first are wide
_NARROW = 0.05  # wider intervals are worth four times the points
_FEWEST, _MOST = 1 << 10, 1 << 23  # 0.2 GB
_MISSED = math.log(1e-5)  # of the answer: what the coupling's failure may cost
_LOG_ROUND = 3.0  # so that nearby ε share a mesh
_LEAST_SHARE, _LARGEST_SHARE = -36.0, -9.0  # below the first, rounding is larger
_FINEST = 1e-12  # mesh, of the largest loss
_SLACK = 1e-12  # of the terms of a logarithm, as far as K is relied on
_LOSS_ROUNDING = 1e-15  # of the largest loss, for each step
_WIDE = 2.0  # ratio of the bounds at which a finer grid is tried
_KEPT = 4  # laws on grids that are kept, 32 MB each
_FOR_SUM, _FOR_STEP = 10.0, 25.0  # numbers held for a point, and for a cell of a step; measured


@dataclass(frozen=True)
class Prv(FloatAccountant):
    """δ(ε + e) − η ≤ δ̃(ε) ≤ δ(ε − e) + η from losses rounded to a mesh [PRV Thm 5.5].

    Each step is cut to a range, rounded to the mesh, and shifted so that its mean stays; the sum
    then differs by at most e = h√(k/2 · log(2/η₀)) with probability 1 − η₀ (Hoeffding), for the
    rounding of one step has mean zero and a range of h. Ranges follow from Chernoff's bound, and h
    from them and the number of points. η is what lies beyond the ranges, η₀, and a bound on the
    rounding of the transform: for small δ that floor is all that is left.

    `tilted` does the same under P_t ∝ e^{tL}P at the saddle point t. With g(s) = e^{−t(s−ε)} ·
    (1 − e^{ε−s})⁺, δ = e^{K(t)−tε} E_t g(L), and every error is relative to that, however small
    it is: rounding moves g by e^{±te} and (1 − e^{ε±e−s})⁺, and a failed coupling costs at most
    max g = t^t/(1+t)^{1+t}.

    Parameters
    ----------
    tilted
        convolve the tilted law.
    points
        the number N of points, a power of two is fastest; None takes 2^20, or 2^22
        where the interval is wider than 5 %.

    Raises
    ------
    InputError
        If the number of points is out of range.

    Examples
    --------
    >>> Prv().name, Prv(tilted=True).name
    ('prv', 'tilted-prv')
    """

    tilted: bool = False
    points: int | None = None

    def __post_init__(self) -> None:
        """Check the number of points."""
        if self.points is not None and not _FEWEST <= self.points <= _MOST:
            raise InputError(f"prv: points = {self.points!r} must lie in [{_FEWEST}, {_MOST}]")

    @property
    def name(self) -> str:
        """The method's name."""
        return "tilted-prv" if self.tilted else "prv"

    @property
    def citations(self) -> tuple[str, ...]:
        """What the method rests on."""
        return ("PRV", "SPA") if self.tilted else ("PRV",)

    @property
    def least_log_delta(self) -> float:
        """The log of what the coupling's failure may cost at least, where nothing is tilted."""
        return -math.inf if self.tilted else _LEAST_SHARE

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the interval at one ε, of kind "bound"; the value is its upper end.

        Where no mesh of so many points serves, it is the one from 0 to the moments bound.
        """
        tilt, share = self._tilt_and_share(law, epsilon)
        found, refusal = None, ""
        for points in (_FEW_POINTS, _POINTS) if self.points is None else (self.points,):
            try:
                found = _bounds(law, epsilon, _mesh(law, tilt, share, points))
            except AccuracyError as error:
                refusal = str(error)
                continue
            lower, upper, floor = found
            if upper - lower <= _NARROW or floor >= upper - 3.0:
                break
        if found is None:
            return proved_instead(law, epsilon, refusal)
        lower, upper, floor = found
        advice = ""
        if not upper - lower <= math.log(_WIDE):
            if floor > upper - 3.0:
                advice = (
                    f"the floating-point floor of this convolution, {math.exp(floor):.0e}, is "
                    "most of the bound; use the method tilted-prv or contour"
                )
            else:
                advice = "the interval is wider than a factor of two; use more points or contour"
        return Answer(upper, lower, upper, "bound", advice)

    def _tilt_and_share(self, law: SumLaw, epsilon: float) -> tuple[float, float]:
        """Return the tilt, and the log of the probability that may be missed."""
        moments = Moments().log_delta(law, epsilon).log_delta
        tilt = 0.0
        if self.tilted and law.domain[1] > 0:
            saddle = saddle_point(law, epsilon, Strip.RIGHT, settled=0.1)
            if saddle is None:
                tilt = far_tilt(law, Strip.RIGHT)
            else:
                farthest = 0.9 * min(law.domain[1], 1e3)
                tilt = min(2.0 ** (round(8.0 * math.log2(saddle.tilt)) / 8.0), farthest)
                moments = saddle.log_leading
            moments -= law.cgf(tilt) - tilt * epsilon + _log_largest(tilt)
        share = _LOG_ROUND * math.floor((min(moments, 0.0) + _MISSED) / _LOG_ROUND)
        return tilt, min(max(share, _LEAST_SHARE), _LARGEST_SHARE)


@dataclass(frozen=True)
class _Mesh:
    """The sum on its mesh: it and L are within e of each other, but for probability e^share."""

    tilt: float
    share: float
    distance: float
    total: GridSum


_meshes: WeakKeyDictionary[SumLaw, dict[tuple[float, float, int], _Mesh]] = WeakKeyDictionary()


def _mesh(law: SumLaw, tilt: float, share: float, points: int) -> _Mesh:
    """Return the composition's law on a mesh, kept for further ε.

    A sixth of the share each goes to the sum beyond either end, and to Hoeffding's inequality; what
    lies outside the range of a step is below rounding.
    """
    kept = _meshes.setdefault(law, {})
    key = (tilt, share, points)
    if key in kept:
        return kept[key]
    low, high = (reach(law, tilt, share - math.log(6.0), upper) for upper in (False, True))
    # e = factor · h, and the window must be wider than the sum's range by e on either side.
    factor = math.sqrt(0.5 * law.count * (math.log(6.0) - share))
    if not points > 4.0 * (factor + 2.0):
        raise AccuracyError(
            f"{points} points are too few for {law.count} steps; use more points or contour"
        )
    # A loss of no spread is on any mesh; its place must remain a whole number of cells.
    spacing = max((high - low) / (points - 2.0 * factor - 4.0), _FINEST * max(abs(low), abs(high)))
    spacing = spacing or _FINEST
    steps: list[tuple[Lumps, int]] = []
    scale, held = 0.0, _FOR_SUM * points
    for part, count in law.parts:
        lumps, size = _discretised(part, tilt, spacing, points, held)
        steps.append((lumps, count))
        held += lumps.mass.size
        scale = max(scale, size)
    distance = factor * spacing + _LOSS_ROUNDING * law.count * scale
    total = grid_sum(steps, spacing, points, low - factor * spacing - spacing)
    while len(kept) >= _KEPT:
        kept.pop(next(iter(kept)))
    kept[key] = _Mesh(tilt, share, distance, total)
    return kept[key]


def _discretised(
    part: LossLaw, tilt: float, spacing: float, points: int, held: float
) -> tuple[Lumps, float]:
    """Return one step cut, rounded to the mesh and shifted to its mean, and its largest |ℓ|.

    So many numbers are held for the sum and for other steps.
    """
    low, high = loss_span(part, tilt)
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
    total = float(cells.mass.sum())
    lumps = Lumps(cells.mass / total, first, float(cells.moment.sum()) / total)
    return lumps, max(abs(low), abs(high))


def _log_largest(tilt: float) -> float:
    """Return log max_x (1 − e^{−x})e^{−tx} = t log t − (1+t) log(1+t)."""
    if tilt == 0.0:
        return 0.0
    return -tilt * math.log1p(1.0 / tilt) - math.log1p(tilt)


def _bounds(law: SumLaw, epsilon: float, mesh: _Mesh) -> tuple[float, float, float]:
    """Return log lower, log upper, and log of the rounding floor, of δ."""
    tilt, distance = mesh.tilt, mesh.distance
    largest = math.exp(_log_largest(tilt))
    missed = math.exp(mesh.share) * largest
    moved = math.exp(min(tilt * distance, 300.0))
    floor = mesh.total.floor * largest
    above = mesh.total.payoff(epsilon, tilt, -distance) * moved
    below = mesh.total.payoff(epsilon, tilt, distance) / moved
    upper = min(max(above, 0.0) + missed + floor * moved * moved, largest)
    lower = below - missed - floor
    terms = (law.cgf(tilt), -tilt * epsilon)
    scale, slack = sum(terms), _SLACK * (1.0 + abs(terms[0]) + abs(terms[1]))
    escaped = law.mass_at_infinity

    def logarithm(value: float, error: float) -> float:
        finite = math.log(value) + scale + error if value > 0 else -math.inf
        if escaped > 0:
            # The mass at infinity has been rounded too.
            finite = math.log(escaped + math.exp(min(finite, 0.0))) + error
        return min(finite, 0.0)

    return logarithm(lower, -slack), logarithm(upper, slack), scale + math.log(floor)
