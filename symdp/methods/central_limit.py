"""The tilted central limit and tilted Edgeworth accountants, in any strip and on a log scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from symdp.methods.mills import mills_differences, mills_moments
from symdp.methods.regime import Series, SeriesAccountant, estimate, far_line, standardised
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.saddle_point import Strip, best_saddle

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# A tilted law that has all but collapsed on its largest loss is treated as if its deviation were
# this fraction of its distance from ε: Gaussians so narrow cannot be told from a point.
_NARROWEST = 1e-6  # of the distance to the mean: the least deviation that a normal law is given


def payoff_integrals(
    strip: Strip, tilt: float, tilt_plus_one: float, *, gap: float, variance: float, count: int
) -> tuple[float, list[float]]:
    """Return (log factor, T₀, …, T_{count−1}) of a strip's payoff against Hermite functions.

    factor · T_m = ∫ payoff(x) e^{−tx} φ(u) He_m(u) dx/√v with u = (x − gap)/√v and payoff(x) equal
    to (1 − e^{−x})⁺, min(1, e^{−x}) or (e^{−x} − 1)⁺ from right to left. Negative x are mirrored,
    which gives He_m the sign (−1)^m.
    """
    from symdp.expansion.hermite import hermite_integrals_from_moments

    root = math.sqrt(variance)
    end_point = -gap / root
    if strip is Strip.MIDDLE:
        sides = [(tilt_plus_one * root, end_point, 1), (-tilt * root, -end_point, -1)]
    elif strip is Strip.RIGHT:
        sides = [(tilt * root, end_point, 1)]
    else:
        sides = [(-tilt_plus_one * root, -end_point, -1)]
    parts = []
    for scaled_tilt, start, sign in sides:
        a = scaled_tilt + start
        if strip is Strip.MIDDLE:
            moments = mills_moments(a, count)
        else:
            moments = mills_differences(a, root, count)
        # e^{−start²/2}, and e^{a²/2} where the moments hide it, without squaring large numbers
        exponent = -0.5 * start * start if a >= 0 else scaled_tilt * (0.5 * scaled_tilt + start)
        integrals = hermite_integrals_from_moments(start, moments)
        parts.append((exponent, [sign**m * value for m, value in enumerate(integrals)]))
    top = max(exponent for exponent, _ in parts)
    return top - _LOG_ROOT_TWO_PI, [
        math.fsum(math.exp(exponent - top) * values[m] for exponent, values in parts)
        for m in range(count)
    ]


def _tilted_series(law: SumLaw, epsilon: float, order: int, name: str) -> Answer:
    from symdp.expansion.graded import graded_value

    saddle = best_saddle(law, epsilon)
    cumulants = law.cumulants(saddle.tilt, order + 4)
    gap = float(cumulants[0]) - epsilon
    variance = max(float(cumulants[1]), (_NARROWEST * gap) ** 2)
    root = math.sqrt(variance)
    scaled = standardised(cumulants, root)
    log_factor, integrals = payoff_integrals(
        saddle.strip,
        saddle.tilt,
        saddle.tilt_plus_one,
        gap=gap,
        variance=variance,
        count=3 * (order + 2) + 1,
    )
    terms = [graded_value(grade, scaled, integrals) for grade in range(order + 3)]
    far = far_line(
        law,
        saddle.tilt,
        saddle.variance,
        width=1.0 / math.sqrt(saddle.curvature),
        pole=saddle.tilt,
    )
    unseen = far / (2.0 * math.pi) * math.exp(min(-log_factor, 700.0))
    return estimate(
        law,
        epsilon,
        saddle.strip,
        math.fsum([saddle.cgf, -epsilon * saddle.tilt, log_factor]),
        Series(name, sum(terms[: order + 1]), sum(abs(x) for x in terms[order + 1 :]), unseen),
    )


@dataclass(frozen=True)
class CentralLimit(FloatAccountant):
    """SP-CLT: the loss tilted to the saddle point taken as Gaussian [SPA (66), (79)].

    The answer is an estimate of relative error n^{−1/2}; its yardstick is the next two
    orders of the tilted Edgeworth series, of which the first vanishes for a symmetric loss.

    Examples
    --------
    >>> CentralLimit().name
    'clt'
    """

    name: str = "clt"
    citations: tuple[str, ...] = ("SPA (66)", "SPA (79)")

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return SP-CLT at one ε."""
        return _tilted_series(law, epsilon, 0, self.name)


@dataclass(frozen=True)
class TiltedEdgeworth(SeriesAccountant):
    """The Edgeworth series of the tilted loss, integrated in closed form [SPA (62)-(64)].

    The poles are kept exact, unlike in steepest descent; the answer is an estimate of relative
    error n^{−(k+1)/2}. A sum that is not positive is answered as in `SaddlePoint`.

    Parameters
    ----------
    order
        k, from 0 (which is SP-CLT) to 12.

    Raises
    ------
    InputError
        If the order is not an integer from 0 to 12.

    Examples
    --------
    >>> TiltedEdgeworth(order=2).name
    'tilted-edgeworth:2'
    """

    family: ClassVar[str] = "tilted-edgeworth"
    citations: tuple[str, ...] = ("SPA (64)",)

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the tilted Edgeworth estimate at one ε."""
        return _tilted_series(law, epsilon, self.order, self.name)
