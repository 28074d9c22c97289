"""The moments accountant: Chernoff bounds on δ, plain and tightened, at the best tilt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.saddle_point import log_moments_bound

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw


@dataclass(frozen=True)
class Moments(FloatAccountant):
    """δ ≤ min_t e^{K(t) − εt} t^t/(1+t)^{1+t} [SPA (43)], or without the factor [SPA (40)].

    The factor is the largest value of (1 − e^{−x})e^{−tx} on x > 0; without it the bound is the
    moments accountant's first form, `plain`. Both are proved for every tilt, and both also bound
    the integral left of the pole at −1, so that δ near 1 − e^ε is bounded as tightly for ε < 0.

    Parameters
    ----------
    plain
        leave the factor out.

    Examples
    --------
    >>> Moments().name, Moments(plain=True).name
    ('moments', 'moments-plain')
    """

    plain: bool = False

    @property
    def name(self) -> str:
        """The method's name."""
        return "moments-plain" if self.plain else "moments"

    @property
    def citations(self) -> tuple[str, ...]:
        """What the method rests on."""
        return ("SPA (40)",) if self.plain else ("SPA (43)",)

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the bound at one ε, of kind "bound"; it never exceeds δ = 1."""
        best = log_moments_bound(law, epsilon, plain=self.plain)
        return Answer(best, None, best, "bound")


def proved_instead(law: SumLaw, epsilon: float, reason: str) -> Answer:
    """Return the interval [0, moments bound] where an estimate has no logarithm to report.

    A series may sum to a negative number, or to more than one. Neither is a δ; a number made from
    it would be a fabrication, and an exception would take a whole curve down with one point. What
    remains true is the tightened moments bound, and the answer says that it is one.

    Parameters
    ----------
    law, epsilon
        the total loss and ε.
    reason
        what went wrong and what to use instead.
    """
    bound = Moments().log_delta(law, epsilon)
    if bound.kind == "exact":
        return bound
    return Answer(
        bound.log_delta, -math.inf, bound.log_upper, "bound", f"{reason}; this is the moments bound"
    )
