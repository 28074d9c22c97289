"""Privacy loss random variables on a mesh: two-sided proved bounds on δ(ε), plain and tilted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from symdp.capacity import afford
from symdp.errors import AccuracyError, InputError
from symdp.method_options import DELTA_ERROR, EPS_ERROR, POINTS, check_options
from symdp.methods.loss_mesh import GridSum, Lumps, grid_sum, kept_few, loss_cells, loss_span, reach
from symdp.methods.moments import Moments, log_of, log_with_escaped, proved_instead
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.elementary import log_payoff
from symdp.numeric.loss import LossLaw
from symdp.numeric.saddle_point import Strip, far_tilt, log_moments_bound, saddle_point
from symdp.numeric.single import log_single
from symdp.numeric.total import SumLaw
from symdp.tolerances import NEGLIGIBLE, ROUNDED, SUMS_ROUNDED

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

# the second where bounds from the first are wide
_FEW_POINTS = 1 << 20
_POINTS = 1 << 22
_NARROW = 0.05  # wider intervals are worth four times the points
_MISSED = math.log(1e-5)  # of the answer: what the coupling's failure may cost
_LOG_ROUND = 3.0  # so that nearby ε share a mesh
# below the first, rounding is larger
_LEAST_SHARE = -36.0
_LARGEST_SHARE = -9.0
_WIDE = 2.0  # ratio of the bounds at which a finer grid is tried
_BUCKETS = 1 << 20
_FINEST = 1e-12  # mesh, of the largest loss
_KEPT = 4  # laws on grids that are kept, 32 MB each
# numbers held for a point, and for a cell of a step; measured
_FOR_SUM = 10.0
_FOR_STEP = 25.0
_LOG_SIXTH = math.log(6.0)  # of the missed probability, for each of its parts
_LEAST_CUT = 64.0  # nats: losses above are cut off where ε is small
_COARSE = 1 << 12  # cells of one step, from which the range of the cut sum follows
_EXPONENTS = np.geomspace(1e-5, 30.0, 120)  # of Chernoff's bound: every one is proved
_BEYOND = -30.0  # log of the probability beyond the ends of the grid


@dataclass(frozen=True)
class Prv(FloatAccountant):
    """δ(ε + e) − η ≤ δ̃(ε) ≤ δ(ε − e) + η from losses rounded to a mesh [PRV Thm 5.5].

    Each step is cut to a range, rounded to the mesh, and shifted so that its mean stays; the sum
    then differs by at most e = h√(k/2 · log(2/η₀)) with probability 1 − η₀ (Hoeffding), for the
    rounding of one step has mean zero and a range of h. η is what lies beyond the range of the sum,
    η₀, and a bound on the rounding of the transform: for small δ that floor is all that is left.

    No moments are needed: P(ℓ < a) ≤ e^a, and above a loss b > ε that is far enough the payoff is 1
    but for e^{ε−b}; with J = {the loss of some step is above b}, the part of J in δ lies between
    P(J) − e^ε Q(J) and P(J), and Q(J) ≤ e^{−b} Σ P(ℓᵢ > b).

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
    eps_error
        e in place of the number of points, which then follows [PRV Thm 5.5].
    delta_error
        the probability that may be missed, of the law that is convolved; None takes what is small
        beside δ.

    Raises
    ------
    InputError
        If an option is out of range, or points and eps_error are both given.

    Examples
    --------
    >>> Prv().name, Prv(tilted=True).name
    ('prv', 'tilted-prv')
    """

    tilted: bool = False
    points: int | None = None
    eps_error: float | None = None
    delta_error: float | None = None

    def __post_init__(self) -> None:
        check_options(self, POINTS, EPS_ERROR, DELTA_ERROR)
        if self.points is not None and self.eps_error is not None:
            raise InputError(f"method '{self.name}': eps_error chooses points; give one of them")

    @property
    def name(self) -> str:
        """The method's name."""
        if self.tilted:
            return "tilted-prv"
        return "prv"

    @property
    def citations(self) -> tuple[str, ...]:
        """What the method rests on."""
        if self.tilted:
            return ("PRV", "SPA")
        return ("PRV",)

    @property
    def least_log_delta(self) -> float:
        """The log of what the coupling's failure may cost at least, where nothing is tilted."""
        if self.tilted:
            return -math.inf
        return _LEAST_SHARE

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the interval at one ε, of kind "bound"; the value is its upper end.

        Where no mesh of so many points serves, it is the one from 0 to the moments bound.
        """
        tilt, share = self._tilt_and_share(law, epsilon)
        bounds = None
        refusal = ""
        top = largest_loss(law, epsilon)
        if self.eps_error is not None:
            tries = [0]
        else:
            tries = [_FEW_POINTS, _POINTS] if self.points is None else [self.points]
        for points in tries:
            try:
                mesh = kept_few(
                    law, mesh_of, _KEPT, tilt, share, top, points, self.eps_error or 0.0
                )
                bounds = _bounds(law, epsilon, mesh)
            except AccuracyError as error:
                refusal = str(error)
                continue
            lower, upper, floor = bounds
            if upper - lower <= _NARROW or floor >= upper - 3.0:
                break
        if bounds is None:
            upper = log_moments_bound(law, epsilon)
            advice = f"{refusal}; this is the moments bound"
            return Answer(upper, -math.inf, upper, "bound", advice)
        lower, upper, floor = bounds
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
        moments = log_moments_bound(law, epsilon)
        if not law.domain[1] > 0 and epsilon > law.mean:
            # No tilt bounds δ, which one step's large loss makes.
            moments = log_one_large(law, epsilon)
        tilt = 0.0
        if self.tilted and law.domain[1] > 0:
            saddle = saddle_point(law, epsilon, Strip.RIGHT, settled=0.1)
            if saddle is None:
                tilt = far_tilt(law, Strip.RIGHT)
            else:
                farthest = 0.9 * min(law.domain[1], 1e3)
                tilt = min(2.0 ** (round(8.0 * math.log2(saddle.tilt)) / 8.0), farthest)
                moments = saddle.log_leading
            moments -= law.cgf(tilt) - tilt * epsilon + float(log_payoff(tilt))
        if self.delta_error is not None:
            return tilt, math.log(self.delta_error)
        moments = min(max(moments, _LEAST_SHARE), 0.0)
        share = _LOG_ROUND * math.floor((moments + _MISSED) / _LOG_ROUND)
        return tilt, min(max(share, _LEAST_SHARE), _LARGEST_SHARE)


def log_one_large(law: SumLaw, epsilon: float) -> float:
    """Return about log δ(ε) where one step's large loss makes it and the others are usual."""
    log_delta = -math.inf
    for part, count in law.parts:
        remaining = epsilon - (law.mean - part.base.mean)
        if not part.domain[1] > 0 and part.loss_bounds[0] < remaining:
            log_delta = max(log_delta, math.log(count) + log_single(part, remaining))
    return log_delta


def _bounds(law: SumLaw, epsilon: float, mesh: Mesh) -> tuple[float, float, float]:
    """Return log lower, log upper, and log of the rounding floor, of δ."""
    tilt = mesh.tilt
    distance = mesh.distance
    largest = math.exp(float(log_payoff(tilt)))
    missed = math.exp(mesh.share) * largest
    moved = math.exp(min(tilt * distance, 300.0))
    floor = mesh.total.floor * largest
    above = mesh.total.payoff(epsilon, tilt, -distance) * moved
    below = mesh.total.payoff(epsilon, tilt, distance) / moved
    kept = math.exp(mesh.log_kept)
    upper = kept * (max(above, 0.0) + missed + floor * moved * moved)
    upper = upper + mesh.below * largest
    lower = max(kept * (below - missed - floor), 0.0)
    if tilt == 0.0:
        upper = upper + mesh.above
        lower = lower + mesh.jump(epsilon)
    upper = min(upper, largest)
    cgf = law.cgf(tilt)
    tilted_epsilon = -tilt * epsilon
    scale = cgf + tilted_epsilon
    slack = SUMS_ROUNDED * (1.0 + abs(cgf) + abs(tilted_epsilon))
    escaped = law.mass_at_infinity

    def logarithm(value: float, error: float) -> float:
        finite = log_of(value) + scale + error
        if escaped > 0:
            # The mass at infinity has been rounded too.
            finite = math.log(escaped + math.exp(min(finite, 0.0))) + error
        return min(finite, 0.0)

    return logarithm(lower, -slack), logarithm(upper, slack), scale + math.log(floor)


@dataclass(frozen=True)
class Mesh:
    """The sum of the cut steps on its mesh: within e of L there, but for probability e^share."""

    tilt: float
    share: float
    distance: float  # e
    total: GridSum
    log_kept: float  # log of the probability that no step is cut
    above: float  # probability that the loss of a step lies above its range under P
    log_above_q: float  # log of a bound on it under Q
    below: float  # probability that the loss of a step lies below its range
    rounded_down: float  # from the sum on the mesh to that with every step rounded down
    all_up: float  # from there to that with every step rounded up

    def jump(self, epsilon: float) -> float:
        """Return the least that P(J) − e^ε Q(J) can be, J = {a loss lies above its range}."""
        return max(self.above - math.exp(min(epsilon + self.log_above_q, 0.0)), 0.0)


def largest_loss(law: SumLaw, epsilon: float) -> float:
    """Return a loss of one step above which 1 − e^{ε−L} is 1 but for rounding, shared by many ε."""
    wanted = max(epsilon, 0.0) + NEGLIGIBLE + math.log(law.count)
    return max(_LEAST_CUT, 2.0 ** math.ceil(math.log2(wanted)))


def mesh_of(
    law: SumLaw, tilt: float, share: float, top: float, points: int, distance: float
) -> Mesh:
    """Return the composition's law on a mesh.

    A step's range reaches down to a with n P_t(ℓ < a) ≤ e^share/6, which needs no moment:
    P_t(ℓ < a) ≤ e^{(1+t)a − K(t)}, for P ≤ e^a Q there. Untilted it ends at `top`: what lies above
    is counted apart. A sixth of the share each goes to the sum beyond either end, two to
    Hoeffding's inequality.
    """
    low, high, ranges = _ends_of_sum(law, tilt, share - _LOG_SIXTH, top)
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
    size = _FOR_SUM * points
    scale = 0.0
    log_kept = log_below_top = below = offset = 0.0
    log_above_q = -math.inf
    for (part, count), ends in zip(law.parts, ranges, strict=True):
        cut = _discretised(part, tilt, spacing, points, ends, size)
        steps.append((cut.lumps, count))
        size += cut.lumps.mass.size
        scale = max(scale, *map(abs, ends))
        offset += count * cut.lumps.offset
        log_below_top += count * math.log1p(-cut.above) if cut.above < 1.0 else -math.inf
        log_kept += count * math.log(cut.inside) if cut.inside > 0 else -math.inf
        if cut.above > 0:
            one_above_q = math.log(count * cut.above) - cut.end
            log_above_q = float(np.logaddexp(log_above_q, one_above_q))
        below += count * cut.below
    unsure = ROUNDED * law.count * scale
    e = factor * spacing + unsure
    total = grid_sum(steps, spacing, points, low - factor * spacing - spacing)
    above = -math.expm1(log_below_top)
    down = -offset - unsure
    up = law.count * spacing + 2.0 * unsure
    log_kept = min(log_kept, 0.0)
    return Mesh(tilt, share, e, total, log_kept, above, log_above_q, below, down, up)


def _ends_of_sum(
    law: SumLaw, tilt: float, log_share: float, top: float
) -> tuple[float, float, list[tuple[float, float]]]:
    """Return the ends of the sum of the cut steps, each missed by e^log_share, and the ranges."""
    ranges = []
    is_cut = False
    log_share_each = log_share - math.log(law.count)
    for part, _ in law.parts:
        low, high = loss_span(part, tilt)
        low = min(max(low, (log_share_each + SumLaw([(part, 1)]).cgf(tilt)) / (1.0 + tilt)), high)
        if tilt == 0.0 and high > top:
            is_cut = True
            high = top
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
        edges = (first + np.arange(_COARSE)) * width
        with np.errstate(all="ignore"):
            log_mass = np.log(mass / mass.sum())
        for side, ends in enumerate((-edges, edges + width)):
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
    part: LossLaw, tilt: float, spacing: float, points: int, ends: tuple[float, float], size: float
) -> _Cut:
    """Return one step cut to a range, rounded to the mesh and shifted to its mean."""
    low, high = ends
    first = math.floor(low / spacing)
    count = math.floor(high / spacing) + 1 - first
    if count > 4 * points:
        raise AccuracyError("one step reaches farther than the mesh; use more points or contour")
    name = "tilted-prv" if tilt else "prv"
    afford(
        size + _FOR_STEP * count,
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


@dataclass(frozen=True)
class Buckets(FloatAccountant):
    """δ of the losses rounded down ≤ δ ≤ δ of the losses rounded up, in buckets of one width h.

    n steps move by up to nh, where `prv`, which keeps the mean of each step, moves by about h√n.
    Its authors (Meiser and Mohammadi, CCS 2018) take a part of the rounding back by counting
    virtual errors; this is the plain form, which Google's library has too.
    """

    points: int | None = None
    name: str = "buckets"
    citations: tuple[str, ...] = ("Meiser2018", "PRV")

    def __post_init__(self) -> None:
        check_options(self, POINTS)

    @property
    def least_log_delta(self) -> float:
        """The log of what the ends of the grid may miss."""
        return _BEYOND

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the interval at one ε, of kind "bound"; the value is its upper end."""
        top = largest_loss(law, epsilon)
        try:
            mesh = kept_few(law, mesh_of, _KEPT, 0.0, _BEYOND, top, self.points or _BUCKETS, 0.0)
        except AccuracyError as refused:
            return proved_instead(law, epsilon, str(refused))
        down = mesh.rounded_down
        # the ends of the sum, as a third of the probability that this mesh may miss
        error = math.exp(_BEYOND) + mesh.total.floor
        kept = math.exp(mesh.log_kept)
        above = mesh.total.payoff(epsilon, 0.0, -down - mesh.all_up)
        below = mesh.total.payoff(epsilon, 0.0, -down)
        upper = kept * (max(above, 0.0) + error) + mesh.above + mesh.below
        lower = kept * max(below - error, 0.0)
        lower += mesh.jump(epsilon)
        low, high = (log_with_escaped(law, end) for end in (lower, upper))
        most = Moments().log_delta(law, epsilon).log_delta
        high = min(high + 1e-12, most, 0.0)
        return Answer(high, min(low - 1e-12, high), high, "bound")
