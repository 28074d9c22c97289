"""How far a loss reaches, for grids to be cut: Chernoff's bound for sums, quadrature for steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.law.loss import LossLaw
    from symdp.law.total import SumLaw

_INSIDE = 0.98  # of the way to the end of the domain
_FIRST = 1.0 / 64.0  # of the tilt that is best for a Gaussian loss: far tilts cost new nodes
_NEAR = 0.25  # a tilt that every law with moments can be asked for
_GROWTH, _REFINED = 2.0, (0.6, 0.75, 0.87, 1.15, 1.3, 1.6)
_TRIALS = 40  # tilts, a factor apart: enough for 12 orders of magnitude


def reach(law: SumLaw, tilt: float, log_share: float, upper: bool) -> float:
    """Return b with P_t(L > b) ≤ e^log_share, or P_t(L < b) where `upper` is false.

    b = min_s (K(t + s) − K(t) − log_share)/s over a few s > 0, every one of which is proved
    [FA 7.2]; the range of the loss bounds it too.

    Raises
    ------
    AccuracyError
        If neither moments nor a range bound the loss on that side.
    """
    sign = 1.0 if upper else -1.0
    base = law.cgf(tilt)
    best = _least(
        law, tilt, log_share, sign, lambda s: (law.cgf(tilt + sign * s) - base - log_share) / s
    )
    best = min(best, sign * law.loss_bounds[1 if upper else 0])
    if not math.isfinite(best):
        raise AccuracyError(
            "no moment that bounds the tail of the privacy loss was found, so no grid is chosen; "
            "use the method contour"
        )
    return sign * best


def log_beyond(law: SumLaw, tilt: float, place: float, upper: bool) -> float:
    """Return a bound on log P_t(L > place), or log P_t(L < place), by Chernoff's inequality."""
    sign = 1.0 if upper else -1.0
    if sign * place >= sign * law.loss_bounds[1 if upper else 0]:
        return -math.inf
    base = law.cgf(tilt)
    mean, variance = (float(v) for v in law.cumulants(tilt, 2))
    gap = sign * (place - mean)
    if gap <= 0 or variance <= 0:
        return 0.0
    likely = -0.5 * gap * gap / variance
    return min(
        _least(
            law,
            tilt,
            likely,
            sign,
            lambda s: law.cgf(tilt + sign * s) - base - s * sign * place,
        ),
        0.0,
    )


def step_beyond(part: LossLaw, place: float) -> float:
    """Return P(|L| > place) of one step's finite loss."""
    nodes = part.base
    return float(nodes.weight[np.abs(nodes.loss) > place].sum())


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
    best, place = math.inf, s
    for _ in range(_TRIALS):
        try:
            value = bound(s)
        except AccuracyError:
            break  # farther tilts have even fewer moments
        if value >= best:
            break
        best, place = value, s
        if s >= _INSIDE * end:
            break
        s = min(_GROWTH * s, _INSIDE * end)
    for factor in _REFINED:
        if factor * place < _INSIDE * end:
            try:
                best = min(best, bound(factor * place))
            except AccuracyError:
                break
    return best
