"""Proved bounds around the central limit by Berry-Esseen's inequality: tilted, and not, a baseline.

What tilting buys is told by rates. With m = K′(0), v = K″(0) and b = (ε − m)/√v, the saddle point
is t₀ ≈ x/√v, x = (b + √(b² + 4))/2, for x = b + 1/x balances K′(t) ≈ m + vt against ε + 1/t. There
e^{K(t) − εt} → e^{x²/2 − bx}, which is e^{1 − x²/2}, so that the error of Theorem 5 becomes 2C
(P/v^{3/2}) e^{1 − x²/2}; without a tilt it is C P/v^{3/2} at every b, P = Σ E|Lᵢ − E Lᵢ|³.
P/v^{3/2} falls like n^{−1/2}.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from symdp.errors import AccuracyError, InputError
from symdp.method_options import TILT, check_options
from symdp.methods.interval import proved_answer, summands
from symdp.methods.moments import log_of, log_with_escaped
from symdp.methods.series import payoff_integrals
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.elementary import log_payoff
from symdp.numeric.saddle_point import Strip, delta_from_strip, saddle_point
from symdp.tolerances import ABOVE_ROUNDING, SUMS_ROUNDED

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

_GOLDEN = 0.5 * (3.0 - math.sqrt(5.0))  # section of the search
_FIRST_STEP = 0.4  # in the logarithm of the tilt
_WIDENINGS = 4  # of a bracket that does not hold the optimum yet
_REFINEMENTS = 6  # sections: any tilt gives a bound, the best is flat
_FAR = 1e3  # a tilt that is large for any loss
_NEAR = 0.05  # standard deviations: the place of the saddle point is only a start


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
        check_options(self, TILT)

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
            both = delta_from_strip(law, epsilon, strip, least)
            low = max(low, both[0] if both is not None else -math.inf)
            both = delta_from_strip(law, epsilon, strip, most)
            high = min(high, both[0] if both is not None else 0.0)
        return proved_answer(law, epsilon, low, high, self.name)

    def _of_tilt(self, law: SumLaw, epsilon: float, tilt: float) -> Answer:
        if not tilt < law.domain[1]:
            raise InputError(
                f"method '{self.name}': tilt = {tilt:g} must lie below {law.domain[1]:.6g}, where "
                "the moments of the loss end"
            )
        least, most, _ = log_interval(law, epsilon, Strip.RIGHT, tilt)
        ends = (delta_from_strip(law, epsilon, Strip.RIGHT, end) for end in (least, most))
        low, high = (interval[0] if interval is not None else 0.0 for interval in ends)
        return proved_answer(law, epsilon, low, high, self.name)


def log_interval(
    law: SumLaw, epsilon: float, strip: Strip, distance: float
) -> tuple[float, float, float]:
    """Return (lower, upper, half-width), as logarithms, of a strip's integral I by one tilt."""
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
    log_centre = log_factor + log_of(integrals[0])
    top = max(log_centre, log_error)
    centre = math.exp(log_centre - top)
    error = math.exp(log_error - top)
    slack = ABOVE_ROUNDING + 1e-12 * abs(front)
    upper = front + top + math.log(centre + error) + slack
    least = centre - error
    lower = front + top + math.log(least) - slack if least > ABOVE_ROUNDING * centre else -math.inf
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
    middle = start
    least = function(start)
    right = start + step
    there = function(start + step)
    if there < least:
        left = middle
        middle = right
        least = there
    else:
        left = right
        step = -step
        right = middle + step
        there = function(right)
    for _ in range(_WIDENINGS):
        if there >= least:
            break
        step *= 2.0
        left = middle
        middle = right
        least = there
        right = middle + step
        there = function(right)
    for _ in range(_REFINEMENTS):
        # into the wider half, at the golden section
        wide, narrow = (right, left) if abs(right - middle) > abs(middle - left) else (left, right)
        trial = middle + _GOLDEN * (wide - middle)
        value = function(trial)
        if value < least:
            left = middle
            middle = trial
            right = wide
            least = value
        else:
            left, right = narrow, trial


@dataclass(frozen=True)
class BerryEsseen(FloatAccountant):
    """|δ − E(1 − e^{ε−Z})⁺| ≤ C P/v^{3/2}, Z ~ N(m, v), m and v of the loss [SPA (88), (89)].

    P = Σ E|Lᵢ − E Lᵢ|³; C = 0.4690 for identical steps, 0.56 for others. The payoff rises from 0 to
    1, so that the distance of the distribution functions bounds what replacing L by Z changes. The
    error is the same at every ε: what `spa-bounds` gains by its tilt shows beside this one.
    """

    name: str = "berry-esseen"
    citations: tuple[str, ...] = ("SPA (88)", "Shevtsova2010")

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the proved interval at one ε; its value is the upper end."""
        try:
            steps = summands(law, 0.0)
        except AccuracyError:
            steps = None
        if steps is None or not steps.is_spread or not math.isfinite(steps.berry_esseen):
            return proved_answer(law, epsilon, -math.inf, math.inf, self.name)
        centre = normal_payoff(law.drift(epsilon) + steps.shift, steps.variance)
        error = steps.berry_esseen + SUMS_ROUNDED
        low, high = (log_with_escaped(law, centre + sign * error) for sign in (-1.0, 1.0))
        return proved_answer(law, epsilon, low, high, self.name)


def normal_payoff(gap: float, variance: float) -> float:
    """Return E(1 − e^{−X})⁺ = Φ(g/√v) − e^{v/2 − g} Φ((g − v)/√v) of X ~ N(g, v)."""
    from scipy.special import log_ndtr

    root = math.sqrt(variance)
    first = float(log_ndtr(gap / root))
    second = 0.5 * variance - gap + float(log_ndtr((gap - variance) / root))
    return max(math.exp(first) - math.exp(min(second, first)), 0.0)


@dataclass(frozen=True)
class Rates:
    """Errors of Gaussian approximations with and without the tilt, as the number of steps grows."""

    deviations: float  # b: how many standard deviations ε lies above the mean of the loss
    saddle_point: float  # the limit of t₀ √v, divided by √v [SPA Prop 8]
    tilted: float  # the limit of the error of Theorem 5 at t₀ [SPA Thm 7]
    untilted: float  # the error without a tilt, C P/v^{3/2} [SPA (88), (89)]
    delta: float  # the limit Φ(−b) of δ [SPA Thm 9]

    @property
    def gain(self) -> float:
        """The error with the tilt, over that without one, 2e^{1 − x²/2} [SPA (90), (91)]."""
        return self.tilted / self.untilted

    @property
    def untilted_share(self) -> float:
        """The error without a tilt as a share of δ, which grows with b without end [SPA (92)]."""
        return self.untilted / self.delta

    @property
    def tilted_share(self) -> float:
        """The error with the tilt as a share of δ: like b n^{−1/2} for large b [SPA (93)]."""
        return self.tilted / self.delta


def rates(law: SumLaw, epsilon: float) -> Rates:
    """Return the rates of the saddle-point accountant at one ε."""
    if law.mass_at_infinity > 0:
        raise InputError(
            f"Theorem 7: the loss must be finite, and is infinite with probability "
            f"{law.mass_at_infinity:.3g}"
        )
    if not law.domain[1] > 0:
        raise InputError("Theorem 7: K must be finite at some t > 0, and the loss has no such one")
    mean, variance = (float(x) for x in law.cumulants(0.0, 2))
    if not variance > 0:
        raise InputError("Theorem 7: the variance of the loss must be positive, and is zero")
    root = math.sqrt(variance)
    b = (epsilon - mean) / root
    if not b >= 0:
        raise InputError(
            f"Theorem 7: epsilon = {epsilon:g} must be at least the mean of the loss, {mean:.6g}"
        )
    delta = 0.5 * math.erfc(b / math.sqrt(2.0))
    if not delta > 0:
        raise InputError(
            f"Theorem 7: epsilon = {epsilon:g} lies {b:.3g} deviations above the mean of the loss, "
            "and b must stay bounded as n grows; take a smaller epsilon"
        )
    x = 0.5 * (b + math.hypot(b, 2.0))
    untilted = summands(law, 0.0).berry_esseen
    tilted = 2.0 * untilted * math.exp(1.0 - 0.5 * x * x)
    return Rates(b, x / root, tilted, untilted, delta)


def log_central_limit_bound(law: SumLaw, epsilon: float, tilt: float) -> float:
    """Return log of e^{K(t) − εt}/(t(1+t)√(2πK″(t))), an upper bound on δ_CLT(t) [SPA Prop 4].

    The Gaussian density of the tilted sum is at most 1/√(2πK″(t)), and the payoff's integral is
    1/(t(1+t)). At the saddle point only K″ in place of F″ makes it differ from MSD₀.
    """
    if not 0 < tilt < law.domain[1]:
        raise InputError(
            f"Proposition 4: tilt = {tilt:g} must lie above 0 and below {law.domain[1]:.6g}, the "
            "end of the domain of K"
        )
    variance = float(law.cumulants(tilt, 2)[1])
    if not variance > 0:
        raise InputError("Proposition 4: the variance of the tilted loss must be positive")
    front = law.cgf(tilt) - epsilon * tilt - math.log(tilt) - math.log1p(tilt)
    return front - 0.5 * math.log(2.0 * math.pi * variance)
