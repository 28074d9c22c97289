"""The exact accountant: the privacy profile as a contour integral, at a cost independent of n."""

from __future__ import annotations

import math
from dataclasses import dataclass

from symdp.accountant.answer import Answer
from symdp.accountant.atoms import finite_sum
from symdp.accountant.lattice import find_lattice, lattice_kernel
from symdp.accountant.single_step import log_profile
from symdp.accountant.strip import StripValue, continuous_kernel, find_tilt, integrate
from symdp.numeric.law import SumLaw

_LIST_ERROR = 1e-15  # rounding of one convolution of positive numbers
_TOO_WIDE = 1e-6  # beyond this the answer is no longer called exact
SAFETY = 4.0  # an error estimate is widened by this before it becomes an interval


@dataclass(frozen=True)
class Contour:
    """δ(ε) = (1/2πi) ∫ e^{K(z)−εz}/(z(1+z)) dz by the trapezoidal rule [SPA (28), (48)].

    The answer is the exact formula evaluated in double precision; its bounds are an estimate of
    what quadrature, truncation and rounding can have changed, widened by a factor of four.
    """

    name: str = "contour"
    citations: tuple[str, ...] = ("SPA",)

    def log_delta(self, law: SumLaw, epsilon: float) -> Answer:
        """Return log δ(ε), and log(1 − δ(ε)) where δ is not small.

        Parameters
        ----------
        law
            The composition's loss in one direction.
        epsilon
            Any real number, in nats.

        Raises
        ------
        AccuracyError
            If the integral cannot be evaluated to ten digits.
        """
        escaped = law.mass_at_infinity
        lower, upper = law.loss_bounds
        if law.log_finite_mass == -math.inf or epsilon >= upper:
            return _answer(_log(escaped), law.log_finite_mass, 1e-15)
        if epsilon <= lower:
            complement = epsilon + law.cgf(-1.0)
            return _answer(_log1m(complement), complement, 4e-16 * (4 + abs(law.mean)))
        if law.count == 1:
            part = law.parts[0][0]
            finite, complement = log_profile(part, epsilon)
            # Far in a tail the density is e to a large negative number, whose rounding counts.
            error = 4e-15 + part.base.error + 4e-16 * min(abs(finite), 1e6)
            return _answer(_log_sum(finite, _log(escaped)), complement, error)
        return self._integral(law, epsilon, escaped)

    def _integral(self, law: SumLaw, epsilon: float, escaped: float) -> Answer:
        kernel, period = continuous_kernel, math.inf
        if law.has_atoms:
            lattice = find_lattice(law)
            if lattice is not None:
                kernel, period = lattice_kernel(lattice, epsilon), 2.0 * math.pi / lattice.spacing
            elif not law.is_spread:
                listed = finite_sum(law, epsilon)
                if listed is not None:
                    log_delta = _log_sum(listed[0], _log(escaped))
                    return _answer(log_delta, listed[1], _LIST_ERROR * law.count)
        above: StripValue | None = None
        if law.domain[1] > 0:
            above = integrate(law, epsilon, find_tilt(law, epsilon, True), kernel, period, law.is_spread)
            log_delta = _log_sum(above.log_value, _log(escaped))
            if log_delta < math.log(0.25):
                return _answer(log_delta, _log1m(log_delta), above.relative_error)
        below = integrate(law, epsilon, find_tilt(law, epsilon, False), kernel, period, law.is_spread)
        complement = min(below.log_value, 0.0)
        if above is not None:
            return _answer(min(log_delta, 0.0), complement, max(above.relative_error, below.relative_error))
        # Only 1 − δ is to be had: the error is relative to it, not to δ.
        log_delta = _log1m(complement)
        scale = math.exp(complement - log_delta) if log_delta > -math.inf else math.inf
        return _answer(log_delta, complement, below.relative_error * max(1.0, scale))


def _answer(log_delta: float, log_complement: float, error: float) -> Answer:
    if log_delta == -math.inf:
        return Answer(log_delta, log_delta, log_delta, "exact", "", 0.0)
    margin = SAFETY * error
    margin += 4e-16 * abs(log_delta)  # the logarithm itself is rounded
    if not margin < _TOO_WIDE:
        advice = (
            f"the contour reached a relative accuracy of only {margin:.0e} here; "
            "the bounds say so, the digits do not"
        )
        lower = log_delta + math.log1p(-margin) if margin < 1 else -math.inf
        upper = min(log_delta + math.log1p(margin), 0.0)
        return Answer(float(log_delta), lower, upper, "estimate", advice)
    lower = log_delta + math.log1p(-margin)
    upper = min(log_delta + math.log1p(margin), 0.0)
    return Answer(float(log_delta), lower, upper, "exact", "", float(log_complement))


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def _log1m(log_x: float) -> float:
    """Return log(1 − x) for x = e^{log_x} ≤ 1."""
    if log_x >= 0:
        return -math.inf
    return math.log(-math.expm1(log_x)) if log_x > -0.693 else math.log1p(-math.exp(log_x))


def _log_sum(a: float, b: float) -> float:
    high, low = max(a, b), min(a, b)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))
