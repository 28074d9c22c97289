"""The saddle-point accountant: the method of steepest descent at any order, in any strip."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from symdp.methods.regime import Series, SeriesAccountant, estimate, far_line, standardised
from symdp.numeric.answer import Answer
from symdp.numeric.saddle_point import Saddle, best_saddle

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw


def standardised_exponent(law: SumLaw, saddle: Saddle, order: int) -> list[float]:
    """Return F_j/F₂^{j/2} at index j, for j from 2 to `order` (indices 0 and 1 hold zero).

    F_j = K^{(j)} + (−1)^j (j−1)! (t^{−j} + (1+t)^{−j}), from [SPA (49)].
    """
    width = 1.0 / math.sqrt(saddle.curvature)
    at_zero, at_minus_one = -width / saddle.tilt, -width / saddle.tilt_plus_one
    scaled = standardised(law.cumulants(saddle.tilt, order), 1.0 / width)
    scaled[2] = 1.0
    for j in range(3, order + 1):
        scaled[j] += math.factorial(j - 1) * (at_zero**j + at_minus_one**j)
    return scaled


@dataclass(frozen=True)
class SaddlePoint(SeriesAccountant):
    """MSD_k: e^F/√(2πF₂) times the series of steepest descent to relative order n^{−k}.

    k = 0 is [SPA (60)] and k = 1 is [SPA (61)]. The answer is an estimate. Its yardstick is the
    first two omitted orders, of which one may vanish by chance; the line far from the saddle point,
    which no order of the series sees, is sampled beside it.

    Parameters
    ----------
    order
        k, from 0 to 12.

    Raises
    ------
    InputError
        If the order is not an integer from 0 to 12.

    Examples
    --------
    >>> SaddlePoint(order=1).name
    'msd:1'
    """

    family: ClassVar[str] = "msd"
    order: int = 1

    @property
    def citations(self) -> tuple[str, ...]:
        """What the method rests on."""
        return ("SPA (60)",) if self.order == 0 else ("SPA (59)", "SPA (61)")

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return MSD_k at one ε, on the logarithmic scale.

        Where 1 + corrections is not positive, or where the strip's integral leaves no δ in (0, 1],
        the answer is the interval up to the moments bound, of kind "bound", with advice.
        """
        saddle = best_saddle(law, epsilon)
        derivatives = standardised_exponent(law, saddle, 2 * self.order + 6)
        terms = _corrections(self.order + 2)(derivatives)
        series = 1.0 + sum(terms[: self.order])
        width = 1.0 / math.sqrt(saddle.curvature)
        far = far_line(law, saddle.tilt, saddle.variance, width=width, pole=saddle.tilt)
        unseen = far * abs(saddle.tilt * saddle.tilt_plus_one) / (width * math.sqrt(2.0 * math.pi))
        return estimate(
            law,
            epsilon,
            saddle.strip,
            saddle.log_leading,
            Series(self.name, series, sum(abs(x) for x in terms[self.order :]), unseen),
        )


@cache
def _corrections(order: int) -> Callable[[Sequence[float]], list[float]]:
    """Return the function that gives the corrections at n⁻¹, …, n^{−order} in numbers."""
    from symdp.expansion.graded import graded_value
    from symdp.expansion.saddlepoint import gaussian_images

    images = [float(x) for x in gaussian_images(6 * order + 1)]

    def corrections(derivatives: Sequence[float]) -> list[float]:
        return [graded_value(2 * k, derivatives, images) for k in range(1, order + 1)]

    return corrections
