"""The open interval of tilts on which a step's moment generating function is finite."""

from __future__ import annotations

import math

import numpy as np

from symdp.law.step import SmoothPiece, Step

_FAR = np.exp2(np.arange(1.0, 500.0))  # places that show how a density falls towards infinity
_NEAR = np.exp2(-np.arange(1.0, 500.0))  # and towards a finite end

_SMALL, _FALLS = 0.1, 0.8  # of a critical tilt, and of it beside that of nearer shells


def _end_slopes(piece: SmoothPiece, upper: bool) -> tuple[float, float]:
    """Return the (lower, upper) tilts at which the integral stops converging at one end.

    With u the logarithm of the distance, the mass of a shell at that end is e^{log P + tℓ ± u}; it
    dies out exactly while the slope of log P + tℓ ± u stays negative, so the critical tilt is a
    ratio of differences between two far shells, in which constants cancel.
    """
    end = piece.upper if upper else piece.lower
    side = 1.0 if upper else -1.0
    if np.isfinite(end):
        x = end - side * _NEAR * max(1.0, abs(end))
        x = x[(x > piece.lower) & (x < piece.upper)]
        distance = np.abs(end - x)
        shell = np.log(distance)
    else:
        start = piece.lower if upper else piece.upper
        x = (start if np.isfinite(start) else 0.0) + side * _FAR
        shell = np.log(_FAR)
    with np.errstate(all="ignore"):
        log_p, _, loss = piece.values(x)
        mass = log_p + shell[: x.size]
    usable = np.flatnonzero(np.isfinite(mass) & np.isfinite(loss) & (np.abs(loss) < 1e300))
    if usable.size < 2:
        return -np.inf, np.inf
    last = usable[-1]
    middle = usable[usable.size // 2] if usable.size > 4 else usable[0]
    rise = loss[last] - loss[middle]
    if abs(rise) <= 1e-9 * max(1.0, abs(loss[last])):
        return -np.inf, np.inf  # the loss has a limit here: every tilt converges
    critical = -(mass[last] - mass[middle]) / rise
    if not np.isfinite(critical):
        return -np.inf, np.inf
    # A loss that grows faster than the logarithm of the distance leaves no tilt at all: what shells
    # twice as far out (in logarithms) still allow falls towards 0, or −1.
    inner = usable[usable.size // 4]
    with np.errstate(all="ignore"):
        nearer = -(mass[middle] - mass[inner]) / (loss[middle] - loss[inner])
    edge = 0.0 if rise > 0 else -1.0
    if abs(critical - edge) < min(_SMALL, _FALLS * abs(nearer - edge)):
        critical = edge
    return (-np.inf, critical) if rise > 0 else (critical, np.inf)


def is_heavy(piece: SmoothPiece, upper: bool) -> bool:
    """Return whether one end of a piece leaves no tilt t > 0 with E e^{tL} < ∞."""
    return tilt_domain(Step("", (piece,)), (upper,))[1] == 0.0


def tilt_domain(step: Step, ends: tuple[bool, ...] = (False, True)) -> tuple[float, float]:
    """Return (t₋, t₊), the interior of {t : E e^{tL} < ∞}; it contains (−1, 0).

    Examples
    --------
    >>> from symdp.law.step import Step
    >>> tilt_domain(Step("finite list"))
    (-inf, inf)
    """
    low, high = -np.inf, np.inf
    for piece in step.pieces:
        if piece.flat:
            continue
        for upper in ends:
            below, above = _end_slopes(piece, upper)
            low, high = max(low, below), min(high, above)
    # A slope that stays finite but very large belongs to a density lighter than every e^{tℓ}, and
    # one next to −1 or 0 to a tail that ends there.
    low = -math.inf if low < -1e6 else (-1.0 if low > -1.0 - 1e-9 else float(low))
    high = math.inf if high > 1e6 else (0.0 if high < 1e-9 else float(high))
    return low, high
