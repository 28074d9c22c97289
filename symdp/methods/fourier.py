"""The Fourier accountant: the density of the privacy loss on a grid, convolved by FFT."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from symdp.capacity import afford
from symdp.errors import InputError
from symdp.method_options import POINTS as SHARED_POINTS
from symdp.method_options import REACH, check_options
from symdp.methods.loss_mesh import (
    GridSum,
    Lumps,
    grid_sum,
    has_smooth_density,
    kept_few,
    log_beyond,
    loss_cells,
    loss_density,
    loss_span,
    reach,
    step_beyond,
)
from symdp.methods.moments import Moments, log_of, proved_instead
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.loss import LossLaw
from symdp.numeric.total import SumLaw

if TYPE_CHECKING:
    from symdp.numeric.step import Array

_WANTED = 1e-6  # relative, by the method's own estimate
_FIRST_POINTS = 1 << 13  # doubled until two grids agree
_MOST_POINTS = 1 << 22  # 32 MB a transform
POINTS = replace(SHARED_POINTS, least=2, most=_MOST_POINTS)
_HOPELESS = 1.0  # e-folds of mass that the steps' grids gained or lost
_KEPT = 8  # grids that are remembered with a law
_FOR_POINT = 26.0  # numbers held for a point of the grid, remembered ones included; measured
_LEFT_OUT = 20.0  # e^-20 of δ lies beyond an automatic grid
_LOG_ROUND = 5.0  # so that nearby ε share a grid
_LEAST_SHARE = -45.0  # log: a tail of e^−45 is below the rounding of any δ that a grid can give


def halving_error(law: SumLaw, epsilon: float, reach: float, points: int) -> float:
    """Return err(L, n) = 2|I_n − I_2n| of the grid of n points of [−L, L) [FA (7.4)]."""
    window = _Window(0.0, reach)
    coarse, finer = (_riemann_sum(law, epsilon, window, n) for n in (points, 2 * points))
    return 2.0 * abs(coarse.value - finer.value)


@dataclass(frozen=True)
class Fourier(FloatAccountant):
    """δ(ε) ≈ Δx Σ_{s>ε} (1 − e^{ε−s}) C_s, C the periodic k-fold convolution [FA Alg. 1].

    The density of the loss of each step is taken at the n points −L + iΔx, Δx = 2L/n. Where the
    loss is not one-to-one, has atoms, or its density jumps, each cell's probability is split
    between the cell's ends so that its mean stays. The error is estimated by 2|I_n − I_2n|
    [FA (7.4)]; what lies beyond the grid is bounded by Chernoff's inequality [FA 7.2].

    Parameters
    ----------
    reach
        L > 0, the grid covers [−L, L); None takes it from the moments.
    points
        n, even; None doubles it until the estimate is 1e-6 of δ.

    Raises
    ------
    InputError
        If one of them is out of range.

    Examples
    --------
    >>> Fourier(reach=12, points=50_000).name
    'fourier'
    """

    reach: float | None = None
    points: int | None = None
    name: str = "fourier"
    citations: tuple[str, ...] = ("FA",)

    def __post_init__(self) -> None:
        check_options(self, REACH, POINTS)
        if self.points is not None and self.points % 2:
            raise InputError(f"method 'fourier': points = {self.points} must be even")

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the estimate at one ε with its own error in the bounds, of kind "estimate"."""
        window = _automatic(law, epsilon) if self.reach is None else _Window(0.0, self.reach)
        if self.points is not None:
            coarse = _riemann_sum(law, epsilon, window, self.points)
            finer = _riemann_sum(law, epsilon, window, 2 * self.points)
            error = max(2.0 * abs(coarse.value - finer.value), coarse.defect)
            return _answer_on_grid(law, epsilon, window, coarse, error)
        points = _FIRST_POINTS
        coarse = _riemann_sum(law, epsilon, window, points)
        earlier = math.inf
        while True:
            points *= 2
            finer = _riemann_sum(law, epsilon, window, points)
            change = abs(finer.value - coarse.value)
            # Two grids may agree by chance; three that do so are to be believed.
            error = max(2.0 * change, 0.5 * earlier, finer.defect)
            coarse = finer
            earlier = change
            aim = max(0.5 * _WANTED * abs(coarse.value), 0.1 * coarse.floor)
            if error <= aim or points >= _MOST_POINTS:
                return _answer_on_grid(law, epsilon, window, coarse, error)


@dataclass(frozen=True)
class _Window:
    """The grid's middle and half its length."""

    centre: float
    reach: float


@dataclass(frozen=True)
class _Found:
    """I_n of the finite loss, the part of it that lost mass explains, and the rounding floor."""

    value: float
    defect: float
    floor: float


def _automatic(law: SumLaw, epsilon: float) -> _Window:
    """Return a grid that leaves out next to nothing of δ, and every step fits into [−L, L]."""
    log_size = Moments().log_delta(law, epsilon).log_delta - _LEFT_OUT
    rounded = _LOG_ROUND * math.floor(log_size / _LOG_ROUND)
    share = max(rounded, _LEAST_SHARE)
    low = reach(law, 0.0, share, False)
    high = reach(law, 0.0, share, True)
    spans = [loss_span(part, 0.0) for part, _ in law.parts]
    longest = max(abs(end) for end in chain.from_iterable(spans))
    half_width = max(0.5 * (high - low), longest)
    return _Window(0.5 * (low + high), half_width * 1.001)


def _riemann_sum(law: SumLaw, epsilon: float, window: _Window, points: int) -> _Found:
    """Return I_n, from a grid that is kept for further ε."""
    total, lost = kept_few(law, _grid, _KEPT, window, points)
    if total is None:
        return _Found(0.0, 1.0, 0.0)
    value = total.payoff(epsilon, 0.0, 0.0)
    defect = abs(value * math.expm1(min(abs(lost), 700.0)))
    return _Found(value, defect, total.floor)


def _grid(law: SumLaw, window: _Window, points: int) -> tuple[GridSum | None, float]:
    """Return the sum of the steps, and the log of the mass that their grids gained or lost."""
    spacing = 2.0 * window.reach / points
    afford(
        (_FOR_POINT + len(law.parts)) * points,
        f"fourier: grids of {points} points for {len(law.parts)} distinct steps",
        "use fewer points, or the method moments or contour",
    )
    steps = [(_lumps(part, spacing, points), count) for part, count in law.parts]
    lost = math.fsum(
        count * _log_kept(lumps, part)
        for (part, _), (lumps, count) in zip(law.parts, steps, strict=True)
    )
    if not abs(lost) < _HOPELESS:  # the k-th power would only overflow, or vanish
        return None, lost
    return grid_sum(steps, spacing, points, window.centre - window.reach), lost


def _log_kept(lumps: Lumps, part: LossLaw) -> float:
    """Return the log of the share of one step's finite mass that its grid holds."""
    mass = float(lumps.mass.sum())
    return log_of(mass) - math.log1p(-part.mass_at_infinity)


def _lumps(part: LossLaw, spacing: float, points: int) -> Lumps:
    """Return one step's masses on the grid from −L up."""
    first = -(points // 2)
    if has_smooth_density(part):
        values: Array = np.arange(first, first + points, dtype=np.float64) * spacing
        return Lumps(spacing * loss_density(part, values), first, 0.0)
    cells = loss_cells(part, 0.0, spacing, first, points)
    above = cells.moment / spacing
    mass: Array = np.append(cells.mass - above, 0.0)
    mass[1:] += above
    return Lumps(mass * (1.0 - part.mass_at_infinity), first, 0.0)


def _answer_on_grid(
    law: SumLaw, epsilon: float, window: _Window, riemann_sum: _Found, error: float
) -> Answer:
    """Return the answer with its estimated error, and advice where that is not small."""
    beyond = _beyond(law, window)
    total = error + beyond + riemann_sum.floor
    value = min(riemann_sum.value + law.mass_at_infinity, 1.0)
    if not value > riemann_sum.floor:
        return proved_instead(
            law,
            epsilon,
            f"the grid's sum drowns in errors of about {total:.0e}, rounding included; "
            "use the method contour or tilted-prv",
        )
    advice = ""
    if not total <= _WANTED * value:
        largest = max(error, beyond, riemann_sum.floor)
        if largest == riemann_sum.floor:
            cause = "rounding of the transform"
            remedy = ""
        elif largest == beyond:
            cause = "the loss beyond the grid"
            remedy = " or a longer grid"
        else:
            cause = "the grid's spacing"
            remedy = " or a finer grid"
        advice = f"{cause} may have changed δ by {total:.1e}; use the method contour{remedy}"
    return Answer(
        math.log(value),
        log_of(value - total),
        min(math.log(value + total), 0.0),
        "estimate",
        advice,
    )


def _beyond(law: SumLaw, window: _Window) -> float:
    """Return a bound on the mass outside the grid, where it folds back or is cut off."""
    low = window.centre - window.reach
    high = window.centre + window.reach
    above = log_beyond(law, 0.0, high, True)
    below = log_beyond(law, 0.0, low, False)
    steps = math.fsum(count * step_beyond(part, window.reach) for part, count in law.parts)
    sums = math.fsum([math.exp(above), math.exp(below)])
    return min(steps + sums, 1.0)
