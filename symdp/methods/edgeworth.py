"""The Edgeworth accountant: Edgeworth expansions of the untilted loss under P and under Q."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from symdp.methods.mills import mills_moments
from symdp.methods.moments import proved_instead
from symdp.methods.regime import REMEDY, Series, SeriesAccountant, estimate, far_line, standardised
from symdp.numeric.answer import Answer
from symdp.numeric.saddle_point import Strip

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw


# Every other order may vanish, and far out under Q, where e^ε multiplies the tail, they first grow.
_NEXT_TERMS = 3  # orders beyond the last one, whose size is the yardstick of what is left out


@dataclass(frozen=True, slots=True)
class _Side:
    """The standardised loss under one measure: x = (ε − mean)/deviation and what follows at ±x.

    `log_front` is the logarithm of mass · e^{−x²/2}; `total` and `next_terms` complete it to the
    probability of the tail that x points into, in units of 1/√(2π).
    """

    x: float
    deviation: float
    log_front: float
    total: float
    next_terms: float


@dataclass(frozen=True)
class Edgeworth(SeriesAccountant):
    """AEA_k: δ = 1 − F_Y(ε) − e^ε(1 − F_X(ε)) [EA Prop 3.2] with F_Y, F_X expanded to order k.

    Y is the loss under P with cumulants K^{(j)}(0), X the loss under Q with cumulants K^{(j)}(−1).
    The tails that are small are the ones added up, so that neither δ nor 1 − δ suffers from
    cancellation. The answer is an estimate of error n^{−(k+1)/2}, absolute on the scale of the
    distribution functions: where δ is smaller than that, the sum may be negative, and the answer is
    then the interval up to the moments bound, of kind "bound", with advice. Its yardstick is the
    next three orders. A composition of subsampled steps has two
    directions, of which the larger counts [EA Lemma 3.3]; each is one law here.

    Parameters
    ----------
    order
        k, from 0 (the central limit theorem) to 12.

    Raises
    ------
    InputError
        If the order is not an integer from 0 to 12.

    Examples
    --------
    >>> Edgeworth(order=3).name
    'edgeworth:3'
    """

    family: ClassVar[str] = "edgeworth"
    citations: tuple[str, ...] = ("EA Prop 3.2",)

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the Edgeworth estimate at one ε."""
        p = _side(law, epsilon, 0.0, self.order)
        q = _side(law, epsilon, -1.0, self.order)
        if p is None or q is None:
            return proved_instead(law, epsilon, f"the privacy loss has no variance; {REMEDY}")
        if p.x > 0 and q.x > 0:
            strip, sign_p, sign_q = Strip.RIGHT, 1.0, -1.0
        elif q.x >= 0:
            strip, sign_p, sign_q = Strip.MIDDLE, 1.0, 1.0
        else:
            strip, sign_p, sign_q = Strip.LEFT, -1.0, 1.0
        top = max(p.log_front, q.log_front)
        scale_p, scale_q = math.exp(p.log_front - top), math.exp(q.log_front - top)
        # beyond the reach of both expansions the two tails make up the integral on the line t = 0
        far = far_line(law, 0.0, p.deviation**2, width=1.0 / p.deviation, pole=0.0, first=6.0)
        unseen = far / math.sqrt(2.0 * math.pi) * math.exp(min(law.cgf(0.0) - top, 700.0))
        return estimate(
            law,
            epsilon,
            strip,
            top - 0.5 * math.log(2.0 * math.pi),
            Series(
                self.name,
                sign_p * scale_p * p.total + sign_q * scale_q * q.total,
                scale_p * p.next_terms + scale_q * q.next_terms,
                unseen,
            ),
        )


def _side(law: SumLaw, epsilon: float, tilt: float, order: int) -> _Side | None:
    """Return the loss under P (tilt 0) or, times e^ε, under Q (tilt −1), expanded to an order."""
    from symdp.expansion.graded import graded_value
    from symdp.expansion.hermite import hermite_values

    cumulants = [float(x) for x in law.cumulants(tilt, order + _NEXT_TERMS + 2)]
    mean, variance = cumulants[:2]
    if not variance > 0:
        return None
    root = math.sqrt(variance)
    scaled = standardised(cumulants, root)
    x = (epsilon - mean) / root
    # in the distribution function h^d becomes He_{d−1}, so that degree d sits at index d
    images = [0.0, *hermite_values(3 * (order + _NEXT_TERMS), x)]
    grades = range(1, order + _NEXT_TERMS + 1)
    corrections = [graded_value(grade, scaled, images) for grade in grades]
    below = sum(corrections[:order])
    tail = mills_moments(abs(x), 1)[0] + (below if x > 0 else -below)
    log_front = law.cgf(tilt) - tilt * epsilon - 0.5 * x * x
    return _Side(x, root, log_front, tail, sum(abs(c) for c in corrections[order:]))
