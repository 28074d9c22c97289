"""1 − δ(ε) of a composition, and the miss rates that it leaves an attack.

For every ε the line 1 − δ(ε) − e^ε α lies below the trade-off f, and the highest of all lines is f
[IND]. So a line that is not known may be left out, and one from the lower end of 1 − δ lowers f at
most: what is returned is never above the true f. The lines are those of a trade-off, convex,
falling and at most 1 − α, just if 1 − δ is a concave function of e^ε that stays below 1 and e^ε;
that is checked of all that were computed, and refused where it does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from symdp.errors import AccuracyError
from symdp.numeric.saddle_point import golden_section, log_one_minus_exp

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from symdp.arguments import Direction
    from symdp.questions.accounted import Composed

_ROUNDED = 1e-9  # of log(1 − δ): far above its rounding, far below what a wrong integral lacks
_TOLERANCE = 1e-11  # of the interval in which the best ε is sought
_KINK = 1e-5  # in nats: how far from a kink the parabolas may have stopped
_NARROWINGS = 50  # of a golden section
_DOUBLINGS = 60  # of the interval around the best ε: from any width beyond all losses in doubles
_NEVER = -1e9  # the score of a line below 0: less than the log of any miss rate


class Complement:
    """The lower end of log(1 − δ(ε)), the smaller one of the directions, at every real ε.

    Parameters
    ----------
    composition
        The steps.
    direction
        "remove", "add" or "both".
    """

    def __init__(self, composition: Composed, direction: Direction) -> None:
        from symdp.questions.accountants import accountant_for

        self._accountant = accountant_for("contour", composition)
        self._laws = [composition.law(side) for side in composition.sides(direction)]
        # log P(L < ∞) and log Q(P > 0): no 1 − δ(ε) is above the one, or e^ε times the other.
        self._most = min(law.log_finite_mass for law in self._laws)
        self._slope = min(min(law.cgf(-1.0), 0.0) for law in self._laws)
        self._known: dict[float, tuple[float, float]] = {}
        self._refusal: AccuracyError | None = None

    def __call__(self, epsilon: float) -> float:
        """Return the lower end of log(1 − δ(ε)).

        Raises
        ------
        AccuracyError
            If 1 − δ cannot be computed, or is more than any mechanism's.
        """
        low = self._lower(epsilon)
        if low == -math.inf and self._refusal is not None:
            raise self._refusal
        return low

    def miss_rates(self, alphas: Sequence[float]) -> NDArray[np.float64]:
        """Return f at some false positive rates between 0 and 1.

        Raises
        ------
        AccuracyError
            If 1 − δ can be computed nowhere, or is none that a trade-off has.
        """
        import numpy as np

        for alpha in sorted(set(alphas)):
            if 0.0 < alpha < 1.0:
                self._seek(math.log(alpha))
        self._check()
        epsilon, low, _ = self._lines()
        if epsilon.size == 0 and self._refusal is not None:
            raise self._refusal
        rates = np.asarray(alphas, dtype=np.float64)
        found = np.where(rates == 0.0, math.exp(self._most), 0.0)
        for place in np.flatnonzero((rates > 0.0) & (rates < 1.0)).tolist():
            log_alpha = math.log(rates[place])
            lines = zip(epsilon.tolist(), low.tolist(), strict=True)
            found[place] = math.exp(max(_log_line(e, c, log_alpha) for e, c in lines))
        return found

    def _lower(self, epsilon: float) -> float:
        """Return the lower end, −∞ where a direction's cannot be computed."""
        if epsilon not in self._known:
            try:
                answers = [self._accountant.log_delta(law, epsilon) for law in self._laws]
            except AccuracyError as refusal:  # a line that is left out raises no miss rate
                self._refusal = refusal
                self._known[epsilon] = -math.inf, math.inf
                return -math.inf
            bounds = [answer.complement_bounds for answer in answers]
            low, high = min(low for low, _ in bounds), min(high for _, high in bounds)
            most = min(self._most, epsilon + self._slope)
            if low > most + _ROUNDED * (1.0 + abs(most)):
                raise _misfit(epsilon)
            self._known[epsilon] = min(low, most), min(high, most)
        return self._known[epsilon][0]

    def _lines(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return every ε at which 1 − δ is known, in rising order, and the logs of its ends."""
        import numpy as np

        known = sorted((e, *ends) for e, ends in self._known.items() if ends[0] > -math.inf)
        epsilon, low, high = np.asarray(known, dtype=np.float64).reshape(-1, 3).T
        return epsilon, low, high

    def _check(self) -> None:
        """Refuse values of 1 − δ that are not those of one concave function of e^ε.

        Raises
        ------
        AccuracyError
            If some value lies below what its neighbours, 0 at −∞ and the rise to ∞ allow.
        """
        import numpy as np

        epsilon, low, high = self._lines()
        if epsilon.size == 0:
            return
        least = np.maximum.accumulate(low)  # it does not fall
        below = epsilon + np.maximum.accumulate((low - epsilon)[::-1])[::-1]  # nor rises faster
        least = np.maximum(least, below)
        with np.errstate(all="ignore"):  # neighbours far away, and values that are no doubles
            left, right = np.exp(np.diff(epsilon)[:-1] * -1.0), np.exp(np.diff(epsilon)[1:])
            share = (right - 1.0) / (right - left)
            share = np.where(np.isfinite(share), share, 1.0)
            chord = np.logaddexp(np.log(share) + low[:-2], np.log1p(-share) + low[2:])
        least[1:-1] = np.fmax(least[1:-1], chord)
        wrong = np.flatnonzero(high < least - _ROUNDED * (1.0 + np.abs(least)))
        if wrong.size:
            raise _misfit(float(epsilon[wrong[0]]))

    def _seek(self, log_alpha: float) -> None:
        """Compute 1 − δ around the ε whose line is the highest at a false positive rate."""

        def score(epsilon: float) -> float:
            return _log_line(epsilon, self._lower(epsilon), log_alpha)

        left, right = self._bracket(score)
        for end in self._ends():
            if math.isfinite(end):  # where parabolas do not get to
                score(end)
        # The score has kinks at the values of a loss that takes single values only.
        spread = any(law.is_spread for law in self._laws)
        place = maximum(score, left, right)
        if not spread:
            near = max(left, place - _KINK), min(right, place + _KINK)
            golden_section(lambda epsilon: -score(epsilon), *near, _NARROWINGS)

    def _ends(self) -> tuple[float, float]:
        """Return the range of the loss: beyond it, 1 − δ(ε) is constant, or e^ε times that."""
        bounds = [law.loss_bounds for law in self._laws]
        return min(low for low, _ in bounds), max(high for _, high in bounds)

    def _bracket(self, score: Callable[[float], float]) -> tuple[float, float]:
        """Return an interval around the maximum, from what is known already or from 0 on."""
        low, high = self._ends()
        middle = max(self._known, key=score) if self._known else min(max(0.0, low), high)
        variances = [float(law.cumulants(t, 2)[1]) for law in self._laws for t in (0.0, -1.0)]
        width = math.sqrt(max(*variances, 1e-300))
        left = max((e for e in self._known if e < middle), default=middle - width)
        right = min((e for e in self._known if e > middle), default=middle + width)
        left, right = max(low, left), min(high, right)
        for _ in range(_DOUBLINGS):
            if not (left > low and score(left) >= score(middle)):
                break
            left, middle, right = max(low, left - 2.0 * (middle - left)), left, middle
        for _ in range(_DOUBLINGS):
            if not (right < high and score(right) >= score(middle)):
                break
            left, middle, right = middle, right, min(high, right + 2.0 * (right - middle))
        return left, right


def _misfit(epsilon: float) -> AccuracyError:
    return AccuracyError(
        f"1 − δ computed at epsilon = {epsilon:.6g} is none of a privacy profile, so that no "
        "trade-off is given; prove δ there with certify, and please report it"
    )


def _log_line(epsilon: float, log_complement: float, log_alpha: float) -> float:
    """Return log(1 − δ − e^ε α); where that is no logarithm, less the farther ε is too large."""
    over = epsilon + log_alpha - log_complement
    if over < 0.0:
        return log_complement + log_one_minus_exp(over)
    return _NEVER * (1.0 + min(over, -_NEVER))


def maximum(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that rises and then falls is largest, found by parabolas."""
    from scipy.optimize import minimize_scalar

    if not low < high:
        return low
    found = minimize_scalar(
        lambda x: -function(float(x)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": _TOLERANCE * max(1.0, high - low), "maxiter": 200},
    )
    return float(found.x)
