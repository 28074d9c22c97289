"""Proved bounds around the tilted central limit: Berry-Esseen's inequality at the best tilt."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from symdp.errors import AccuracyError, InputError
from symdp.method_options import TILT
from symdp.methods.central_limit import payoff_integrals
from symdp.methods.interval import proved_answer
from symdp.methods.standard_moments import summands
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.elementary import log_payoff
from symdp.numeric.saddle_point import Strip, delta_from_strip, saddle_point

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

_GOLDEN = 0.5 * (3.0 - math.sqrt(5.0))  # section of the search
_FIRST_STEP = 0.4  # in the logarithm of the tilt
_WIDENINGS = 4  # of a bracket that does not hold the optimum yet
_REFINEMENTS = 6  # sections: any tilt gives a bound, the best is flat
_FAR = 1e3  # a tilt that is large for any loss
_NEAR = 0.05  # standard deviations: the place of the saddle point is only a start
_SLACK = 1e-9  # far above rounding in the Gaussian integral, far below any Berry-Esseen error


@dataclass(frozen=True)
class SpaBounds(FloatAccountant):
    """|δ − δ_CLT(t)| ≤ 2 C e^{K(t)−εt} t^t/(1+t)^{1+t} P_t/K″(t)^{3/2} for every t > 0 [SPA Thm 5].

    P_t = Σ E_t|Lᵢ − E_t Lᵢ|³, taken never too small; C = 0.4690 for identical steps and 0.56 for
    others. t^t/(1+t)^{1+t} is the largest value of the payoff (1 − e^{−x})⁺e^{−tx}; the same
    argument with the other strips' payoffs, whose largest values are 1 and s^s/(1+s)^{1+s} at
    s = −1 − t, bounds 1 − δ and 1 − e^ε's distance from it, which serves δ near one. Every tilt
    proves an interval. The one of least error is searched for in each strip, and all intervals met
    on the way are intersected, with the moments bound [SPA (43)] and with δ ≥ 0.

    Parameters
    ----------
    tilt
        t > 0, below the end t₊ of the domain of K: the interval of this tilt alone. None searches.

    Raises
    ------
    InputError
        If the tilt is out of range.

    Examples
    --------
    >>> SpaBounds(tilt=2).name
    'spa-bounds'
    """

    tilt: float | None = None
    name: str = "spa-bounds"
    citations: tuple[str, ...] = ("SPA Thm 5", "SPA (43)", "Shevtsova2010")

    def __post_init__(self) -> None:
        """Check the tilt."""
        if self.tilt is not None:
            TILT.read(self.name, self.tilt)

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the proved interval at one ε; its value is the upper end."""
        if self.tilt is not None:
            return self._of_tilt(law, epsilon, self.tilt)
        low, high = -math.inf, 0.0
        for strip in (Strip.RIGHT, Strip.MIDDLE, Strip.LEFT):
            if strip is Strip.LEFT and epsilon >= 0:
                continue  # there δ ≥ 1 − e^ε says nothing, and neither does what adds to it
            least, most = _best_interval(law, epsilon, strip)
            if strip is Strip.MIDDLE:
                least, most = most, least
            found = delta_from_strip(law, epsilon, strip, least)
            low = max(low, found[0] if found is not None else -math.inf)
            found = delta_from_strip(law, epsilon, strip, most)
            high = min(high, found[0] if found is not None else 0.0)
        return proved_answer(law, epsilon, low, high, self.name)

    def _of_tilt(self, law: SumLaw, epsilon: float, tilt: float) -> Answer:
        if not tilt < law.domain[1]:
            raise InputError(
                f"method '{self.name}': tilt = {tilt:g} must lie below {law.domain[1]:.6g}, where "
                "the moments of the loss end"
            )
        least, most, _ = log_interval(law, epsilon, Strip.RIGHT, tilt)
        ends = (delta_from_strip(law, epsilon, Strip.RIGHT, end) for end in (least, most))
        low, high = (found[0] if found is not None else 0.0 for found in ends)
        return proved_answer(law, epsilon, low, high, self.name)


def log_interval(
    law: SumLaw, epsilon: float, strip: Strip, distance: float
) -> tuple[float, float, float]:
    """Return (lower, upper, half-width), as logarithms, of a strip's integral I by one tilt.

    Parameters
    ----------
    law, epsilon
        the total loss and ε.
    strip, distance
        the strip, and how far from its pole the tilt lies.
    """
    tilt, tilt_plus_one = strip.position(distance)
    steps = summands(law, tilt)
    if not steps.is_spread:
        return -math.inf, math.inf, math.inf
    log_factor, integrals = payoff_integrals(
        strip,
        tilt,
        tilt_plus_one,
        gap=law.drift(epsilon) + steps.shift,
        variance=steps.variance,
        count=1,
    )
    front = float(law.log_transform(np.asarray([tilt]), epsilon)[0])
    largest = 0.0 if strip is Strip.MIDDLE else float(log_payoff(distance))
    log_error = math.log(2.0 * steps.berry_esseen) + largest
    log_centre = log_factor + math.log(integrals[0]) if integrals[0] > 0 else -math.inf
    top = max(log_centre, log_error)
    centre, error = math.exp(log_centre - top), math.exp(log_error - top)
    slack = _SLACK + 1e-12 * abs(front)
    upper = front + top + math.log(centre + error) + slack
    least = centre - error
    lower = front + top + math.log(least) - slack if least > _SLACK * centre else -math.inf
    return lower, upper, front + log_error


def _best_interval(law: SumLaw, epsilon: float, strip: Strip) -> tuple[float, float]:
    """Return bounds on log I of a strip from the tilts around the one of least error."""
    end = strip.width(law)
    if not end > 0:
        return -math.inf, math.inf
    best = [-math.inf, math.inf]

    def half_width(u: float) -> float:
        # u is the logarithm of s, or of s/(end − s), which keeps s inside
        s = math.exp(u) if math.isinf(end) else end / (1.0 + math.exp(-u))
        try:
            lower, upper, error = log_interval(law, epsilon, strip, s)
        except AccuracyError:
            return math.inf  # too far out to be evaluated: as good as outside
        best[:] = max(best[0], lower), min(best[1], upper)
        return error

    saddle = saddle_point(law, epsilon, strip, settled=_NEAR)
    if saddle is None:
        s = min(0.9 * end, _FAR)
    else:
        s = abs(saddle.tilt_plus_one if strip is Strip.LEFT else saddle.tilt)
    _descend(half_width, math.log(s) if math.isinf(end) else math.log(s / (end - s)))
    return best[0], best[1]


def _descend(function: Callable[[float], float], start: float) -> None:
    """Evaluate a function of one valley at places that close in on its least value."""
    step = _FIRST_STEP
    middle, here = start, function(start)
    right, there = start + step, function(start + step)
    if there < here:
        left = middle
        middle, here = right, there
    else:
        left, step = right, -step
        right = middle + step
        there = function(right)
    for _ in range(_WIDENINGS):
        if there >= here:
            break
        step *= 2.0
        left, middle, here = middle, right, there
        right = middle + step
        there = function(right)
    for _ in range(_REFINEMENTS):
        # into the wider half, at the golden section
        wide, narrow = (right, left) if abs(right - middle) > abs(middle - left) else (left, right)
        place = middle + _GOLDEN * (wide - middle)
        value = function(place)
        if value < here:
            left, middle, right, here = middle, place, wide, value
        else:
            left, right = narrow, place
