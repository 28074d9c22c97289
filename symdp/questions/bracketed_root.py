"""The root of a function between two places where its signs differ."""

from __future__ import annotations

import math
from collections.abc import Callable

from symdp.errors import AccuracyError

_MOST = 200  # evaluations, twice what halving alone takes


def bracketed_root(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    absolute: float = 0.0,
    relative: float = 4e-15,
) -> float:
    """Return a place where the function was computed, as close to a root as asked for.

    Brent's method [R. P. Brent, Algorithms for Minimization without Derivatives, 1973, ch. 4]:
    secants and inverse parabolas while they shorten the steps, else halving. SciPy has it too, and
    takes a third of a second to be imported.

    Parameters
    ----------
    function
        It needs no slope, and may jump.
    low, high
        The ends of the bracket.
    absolute, relative
        How wide the bracket of the root may be, and how wide relative to the root.

    Raises
    ------
    AccuracyError
        If the signs at the ends do not differ, or the function is no number somewhere.

    Examples
    --------
    >>> round(bracketed_root(lambda x: x**3 - 2, 0.0, 2.0), 14) == round(2 ** (1 / 3), 14)
    True
    """
    before, best = low, high
    at_before, at_best = function(low), function(high)
    if at_before * at_best > 0.0:
        raise AccuracyError(f"no root between {low:.6g} and {high:.6g}: the signs do not differ")
    other, at_other = before, at_before  # the end across the root
    step = earlier = best - before
    for _ in range(_MOST):
        if (at_best > 0.0) == (at_other > 0.0):
            other, at_other = before, at_before
            step = earlier = best - before
        if abs(at_other) < abs(at_best):
            before, best, other = best, other, best
            at_before, at_best, at_other = at_best, at_other, at_best
        least = 0.5 * (absolute + relative * abs(best))
        half = 0.5 * (other - best)
        if at_best == 0.0 or abs(half) <= least:
            return best
        tried = math.inf
        if abs(earlier) > least and abs(at_best) < abs(at_before):
            s = at_best / at_before
            if before == other:
                tried = s * 2.0 * half / (s - 1.0)
            elif at_before != at_other:
                q, r = at_before / at_other, at_best / at_other
                tried = s * ((best - before) * (r - 1.0) - 2.0 * half * q * (q - r))
                tried /= (q - 1.0) * (r - 1.0) * (s - 1.0)
        shortens = 2.0 * abs(tried) < min(abs(earlier), 3.0 * abs(half) - least)
        earlier, step = (step, tried) if shortens and tried * half > 0.0 else (half, half)
        before, at_before = best, at_best
        best += step if abs(step) > least else math.copysign(least, half)
        at_best = function(best)
        if math.isnan(at_best):
            raise AccuracyError(f"no number at {best:.6g}, where a root is sought")
    return best
