r"""The asymptotic series: steepest descent, tilted and untilted Edgeworth, the central limit.

Each is a truncated sum times a leading factor, for the integral of one strip. An answer is an
estimate, whose yardstick is the size of the first terms left out and of what no term sees, the
line far from y = 0; where either is too large beside δ, the answer says so.

Their terms are integrals over half-lines. M_j(a) = ∫₀^∞ w^j e^{−aw − w²/2} dw has Mills' ratio
M₀ = (1 − Φ(a))/φ(a) = √(π/2) erfcx(a/√2), and M_{j+1} = j M_{j−1} − a M_j, a recursion that is
stable upwards for a < 0 (all its terms are positive) and downwards for a ≥ 0, where it starts from
the ratio of two high moments: their integrand vanishes to high order at both ends, so that the
trapezoidal rule gives it to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from symdp.errors import AccuracyError, InputError
from symdp.methods.moments import log_of, proved_instead
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.saddle_point import Saddle, Strip, best_saddle, delta_from_strip

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# An asymptotic series is about as accurate as its first omitted terms are small, to a factor of
# about two: an estimate that is off by a percent says so.
LARGEST_ERROR = 0.005  # relative: a series is out of its regime where the next term says more
# The first omitted term of a sum of one or two losses that are not normal may say little of those
# beyond it: of lugannani-rice, errors of eight times its size were seen.
FEW_STEPS = 2  # for which a series in 1/√n promises nothing
_LARGEST_ERROR_OF_FEW = 0.25 * LARGEST_ERROR  # for so few, the next term tells less of the rest
REMEDY = "use the method contour"
_GRID = np.geomspace(1.0, 10.0, 40)
_FARTHEST = 1000.0  # standard deviations: the line beyond is smaller than what is sampled
_NOISE = 1e-6  # a far tail divides by its own e^{−x²/2}: rounding must not pass for a signal
_SPACING = math.log(float(_GRID[1] / _GRID[0]))
HIGHEST_ORDER = 12  # of every series
_NEARBY = 0.1  # below this relative distance a difference is summed as a Taylor series
_TAYLOR_TERMS = 20  # 0.1^20/20! and its like are far below rounding
_LEAST_TOP = 24  # moments this high vanish fast enough at zero for the trapezoidal rule
_WIDTHS = np.linspace(-14.0, 10.0, 97)
# A tilted law that has all but collapsed on its largest loss is treated as if its deviation were
# this fraction of its distance from ε: Gaussians so narrow cannot be told from a point.
_NARROWEST = 1e-6  # of the distance to the mean: the least deviation that a normal law is given
# Every other order may vanish, and far out under Q, where e^ε multiplies the tail, they first grow.
_NEXT_TERMS = 3  # orders beyond the last one, whose size is the yardstick of what is left out


@dataclass(frozen=True, slots=True)
class Series:
    """A truncated series for a strip's integral, in units of its leading factor."""

    name: str  # the method's name
    total: float  # the sum of the terms kept
    next_term: float  # the size of the first terms left out: the yardstick
    unseen: float  # the part of the line integral that no order of the series sees, from `far_line`
    largest: float = LARGEST_ERROR  # the share of δ from which either is too large


def largest_error(count: int) -> float:
    """Return the share of δ from which an omitted term is too large to rely on the sum."""
    if count <= FEW_STEPS:
        return _LARGEST_ERROR_OF_FEW
    return LARGEST_ERROR


def out_of_regime(name: str, what: str, share: float, count: int) -> str:
    """Return the advice of an estimate whose omitted terms are a share of δ, too large a one."""
    few = ""
    if share <= LARGEST_ERROR:
        few = f", much for {count} step{'s' if count > 1 else ''}"
    return f"{name} is out of its regime: {what} {share:.2g} of delta{few}; {REMEDY}"


def far_line(
    law: SumLaw, tilt: float, variance: float, *, width: float, pole: float, first: float = 3.0
) -> float:
    """Return ∫ ||φ_t(y)| − e^{−K″(t)y²/2}| dy/(|pole + iy| |pole + 1 + iy|), |y| > first·width.

    Losses that gather around multiples of one value lift φ_t there, which no cumulant shows.
    """
    if law.has_atoms:  # φ_t may come back in peaks as narrow as at zero
        reach = 8.0 * math.sqrt(abs(pole * (1.0 + pole))) / width
        y = np.arange(first, min(max(reach, 20.0 * first), _FARTHEST), 0.5) * width
        spacing = np.full(y.shape, 0.5 * width)
    else:
        y = first * width * _GRID
        spacing = _SPACING * y
    modulus = np.exp(law.cgf_line(tilt, y).real)
    excess = np.abs(modulus - np.exp(-0.5 * variance * y * y))
    excess[excess < _NOISE] = 0.0
    kernel = 1.0 / (np.hypot(pole, y) * np.hypot(1.0 + pole, y))
    return 2.0 * float(excess @ (kernel * spacing))


def estimate(
    law: SumLaw, epsilon: float, strip: Strip, log_factor: float, series: Series
) -> Answer:
    """Return the answer of a truncated series, with advice where its yardsticks are too large."""
    if not series.total > 0:
        return proved_instead(
            law, epsilon, f"{series.name} sums to a negative number here; {REMEDY}"
        )
    log_integral = log_factor + math.log(series.total)
    both = delta_from_strip(law, epsilon, strip, log_integral)
    if both is None or both[0] == -math.inf:
        return proved_instead(
            law, epsilon, f"{series.name} gives no delta between 0 and 1 here; {REMEDY}"
        )
    value, complement = both
    # errors are relative to the strip's integral; what counts is their size in units of δ
    log_scale = log_factor - value
    advice = ""
    for size, what in (
        (series.next_term, "its next terms are"),
        (series.unseen, "what lies beyond the reach of its terms is about"),
    ):
        log_share = log_of(size) + log_scale
        if math.isnan(size) or log_share > math.log(series.largest):
            share = math.exp(min(log_share, 700.0))
            advice = out_of_regime(series.name, what, share, law.count)
    return Answer(value, None, None, "estimate", advice, complement)


def standardised(cumulants: Iterable[float], root: float) -> list[float]:
    """Return κ_j/root^j at index j for j from 2 on, with zeros at the indices 0 and 1."""
    if not root > 0:
        raise AccuracyError(f"the privacy loss does not vary; {REMEDY}")
    scaled = [0.0, 0.0]
    scale = 1.0 / root
    for cumulant in islice(cumulants, 1, None):
        scale /= root  # step by step: a product overflows to inf, where a power would raise
        scaled.append(float(cumulant) * scale)
    return scaled


@dataclass(frozen=True)
class SeriesAccountant(FloatAccountant):
    """A family of accountants, one for each order of a series."""

    family: ClassVar[str]
    order: int = 2

    def __post_init__(self) -> None:
        if type(self.order) is not int or not 0 <= self.order <= HIGHEST_ORDER:
            raise InputError(
                f"order {self.order!r} of {self.family}: an integer from 0 to {HIGHEST_ORDER} "
                "is needed"
            )

    @property
    def name(self) -> str:
        """The family, a colon and the order."""
        return f"{self.family}:{self.order}"


def mills_moments(a: float, count: int) -> list[float]:
    """Return M₀(a), …, M_{count−1}(a), times e^{−a²/2} where a < 0: they grow like e^{a²/2}."""
    if a < 0:
        front = math.exp(-0.5 * a * a)
        moments = [math.sqrt(0.5 * math.pi) * math.erfc(a / math.sqrt(2.0))]
        moments.append(front - a * moments[0])
        for j in range(1, count - 1):
            moments.append(j * moments[j - 1] - a * moments[j])
        return moments[:count]
    top = max(count, _LEAST_TOP)
    ratios = [_moment_ratio(a, top)]
    for j in range(top - 1, 0, -1):
        ratios.append(j / (a + ratios[-1]))
    ratios.reverse()
    moments = [1.0 / (a + ratios[0])]
    for ratio in ratios[: count - 1]:
        moments.append(moments[-1] * ratio)
    return moments


def _moment_ratio(a: float, j: int) -> float:
    """Return M_j(a)/M_{j−1}(a) for a ≥ 0 by the trapezoidal rule in log w around the mode."""
    mode = 2.0 * j / (a + math.sqrt(a * a + 4.0 * j))
    y = _WIDTHS / math.sqrt(j + mode * mode)
    growth = np.expm1(y)
    # j·y − a·mode·(e^y − 1) − mode²(e^{2y} − 1)/2 with j = a·mode + mode² at the mode
    exponent = j * (y - growth) - 0.5 * (mode * growth) ** 2
    weight = np.exp(exponent)
    mean_growth = (weight @ growth) / weight.sum()
    return float(mode * (1.0 + mean_growth))


def mills_differences(a: float, width: float, count: int) -> list[float]:
    """Return M_j(a) − M_j(a + width) > 0 for j below `count`, each times e^{−a²/2} where a < 0."""
    # close arguments use M_j(a + d) = Σ_i (−d)^i M_{j+i}(a)/i!, so that nothing cancels
    if width <= _NEARBY * max(1.0, abs(a)) and width * max(1.0, -a) <= _NEARBY * max(1.0, a):
        terms = _TAYLOR_TERMS + count
        moments = mills_moments(a, count + terms)
        factor = 1.0
        factors = []
        for i in range(1, terms + 1):
            factor *= -width / i
            factors.append(-factor)
        return [
            math.fsum(factor * moments[j + i] for i, factor in enumerate(factors, start=1))
            for j in range(count)
        ]
    near = mills_moments(a, count)
    far = mills_moments(a + width, count)
    if a < 0:
        step = min(width, -a)  # the factors differ up to a + width, or to zero if that is nearer
        shift = math.exp(step * (a + 0.5 * step))
        return [x - shift * y for x, y in zip(near, far, strict=True)]
    return [x - y for x, y in zip(near, far, strict=True)]


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
    return top - LOG_ROOT_TWO_PI, [
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


@dataclass(frozen=True, slots=True)
class _Side:
    """The standardised loss under one measure, and the tail that x points into."""

    x: float  # (ε − mean)/deviation
    deviation: float
    log_front: float  # log of mass · e^{−x²/2}
    total: float  # what completes it to the probability of the tail, in units of 1/√(2π)
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
            strip = Strip.RIGHT
            sign_p = 1.0
            sign_q = -1.0
        elif q.x >= 0:
            strip = Strip.MIDDLE
            sign_p = 1.0
            sign_q = 1.0
        else:
            strip = Strip.LEFT
            sign_p = -1.0
            sign_q = 1.0
        top = max(p.log_front, q.log_front)
        scale_p = math.exp(p.log_front - top)
        scale_q = math.exp(q.log_front - top)
        # beyond the reach of both expansions the two tails make up the integral on the line t = 0
        far = far_line(law, 0.0, p.deviation**2, width=1.0 / p.deviation, pole=0.0, first=6.0)
        unseen = far / math.sqrt(2.0 * math.pi) * math.exp(min(law.cgf(0.0) - top, 700.0))
        return estimate(
            law,
            epsilon,
            strip,
            top - LOG_ROOT_TWO_PI,
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

    highest = order + _NEXT_TERMS
    cumulants = [float(x) for x in law.cumulants(tilt, highest + 2)]
    mean, variance = cumulants[:2]
    if not variance > 0:
        return None
    root = math.sqrt(variance)
    scaled = standardised(cumulants, root)
    x = (epsilon - mean) / root
    # in the distribution function h^d becomes He_{d−1}, so that degree d sits at index d
    images = [0.0, *hermite_values(3 * highest, x)]
    corrections = [graded_value(grade, scaled, images) for grade in range(1, highest + 1)]
    below = sum(corrections[:order])
    next_terms = sum(abs(c) for c in corrections[order:])
    signed = below if x > 0 else -below
    tail = mills_moments(abs(x), 1)[0] + signed
    log_front = law.cgf(tilt) - tilt * epsilon - 0.5 * x * x
    return _Side(x, root, log_front, tail, next_terms)


def standardised_exponent(law: SumLaw, saddle: Saddle, order: int) -> list[float]:
    """Return F_j/F₂^{j/2} at index j, for j from 2 to `order` (indices 0 and 1 hold zero).

    F_j = K^{(j)} + (−1)^j (j−1)! (t^{−j} + (1+t)^{−j}), from [SPA (49)].
    """
    width = 1.0 / math.sqrt(saddle.curvature)
    at_zero = -width / saddle.tilt
    at_minus_one = -width / saddle.tilt_plus_one
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
        if self.order == 0:
            return ("SPA (60)",)
        return ("SPA (59)", "SPA (61)")

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
