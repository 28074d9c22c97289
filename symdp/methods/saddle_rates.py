"""What tilting buys: the rates of the saddle-point accountant, beside those without a tilt.

With m = K′(0), v = K″(0) and b = (ε − m)/√v, the saddle point is t₀ ≈ x/√v, x = (b + √(b² + 4))/2,
for x = b + 1/x balances K′(t) ≈ m + vt against ε + 1/t. There e^{K(t) − εt} → e^{x²/2 − bx}, which
is e^{1 − x²/2}, so that the error of Theorem 5 becomes 2C (P/v^{3/2}) e^{1 − x²/2}; without a tilt
it is C P/v^{3/2} at every b, P = Σ E|Lᵢ − E Lᵢ|³. P/v^{3/2} falls like n^{−1/2}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from symdp.errors import InputError
from symdp.methods.standard_moments import summands

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw


@dataclass(frozen=True)
class Rates:
    """Errors of Gaussian approximations with and without the tilt, as the number of steps grows.

    Attributes
    ----------
    deviations
        b: how many standard deviations ε lies above the mean of the loss.
    saddle_point
        The limit of t₀ √v, divided by √v [SPA Prop 8].
    tilted
        The limit of the error of Theorem 5 at t₀ [SPA Thm 7].
    untilted
        The error without a tilt, C P/v^{3/2} [SPA (88), (89)].
    delta
        The limit Φ(−b) of δ [SPA Thm 9].
    """

    deviations: float
    saddle_point: float
    tilted: float
    untilted: float
    delta: float

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
    """Return the rates of the saddle-point accountant at one ε.

    Parameters
    ----------
    law
        The total loss in one direction.
    epsilon
        ε in nats, at least the mean of the loss and at most about thirty deviations above it.

    Raises
    ------
    InputError
        If a condition of the theorem does not hold; the message says which.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> law = compose(mechanisms.gaussian(sigma=100), 10_000).law("remove")
    >>> found = rates(law, 2.5)
    >>> print(f"{found.deviations:.3f} {found.gain:.3f} {found.delta:.4f}")
    2.000 0.295 0.0228
    """
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

    Parameters
    ----------
    law, epsilon
        The total loss in one direction, and ε.
    tilt
        t > 0 in the domain of K.

    Raises
    ------
    InputError
        If the tilt lies outside, or the loss does not vary.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> law = compose(mechanisms.gaussian(sigma=10), 100).law("remove")
    >>> print(f"{math.exp(log_central_limit_bound(law, 1.5, 1.8)):.4f}")
    0.0661
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
