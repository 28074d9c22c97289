"""When a series is out of its regime, and what an estimate says then."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from symdp.errors import AccuracyError, InputError
from symdp.methods.moments import proved_instead
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.saddle_point import Strip, delta_from_strip

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

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
    return _LARGEST_ERROR_OF_FEW if count <= FEW_STEPS else LARGEST_ERROR


def out_of_regime(name: str, what: str, share: float, count: int) -> str:
    """Return the advice of an estimate whose omitted terms are a share of δ, too large a one."""
    few = ""
    if share <= LARGEST_ERROR:
        few = f", much for {count} step{'s' if count > 1 else ''}"
    return f"{name} is out of its regime: {what} {share:.2g} of delta{few}; {REMEDY}"


def far_line(
    law: SumLaw, tilt: float, variance: float, *, width: float, pole: float, first: float = 3.0
) -> float:
    """Return the integral over the line beyond the reach of a series about y = 0.

    A series knows the characteristic function φ_t near y = 0 alone. Losses that gather around
    multiples of one value lift it again further out, and no cumulant shows that. Returned is
    ∫ ||φ_t(y)| − e^{−K″(t)y²/2}| dy/(|pole + iy| |pole + 1 + iy|) over |y| from `first` widths on.

    The grid is logarithmic over a factor of ten, or, where the loss has atoms and φ_t may come
    back in peaks as narrow as at zero, uniform and as far as the kernel gives such a peak weight.
    """
    if law.has_atoms:
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
    found = delta_from_strip(law, epsilon, strip, log_integral)
    if found is None or found[0] == -math.inf:
        return proved_instead(
            law, epsilon, f"{series.name} gives no delta between 0 and 1 here; {REMEDY}"
        )
    value, complement = found
    # errors are relative to the strip's integral; what counts is their size in units of δ
    log_scale = log_factor - value
    advice = ""
    for size, what in (
        (series.next_term, "its next terms are"),
        (series.unseen, "what lies beyond the reach of its terms is about"),
    ):
        log_share = (math.log(size) if size > 0 else -math.inf) + log_scale
        if math.isnan(size) or log_share > math.log(series.largest):
            share = math.exp(min(log_share, 700.0))
            advice = out_of_regime(series.name, what, share, law.count)
    return Answer(value, None, None, "estimate", advice, complement)


def standardised(cumulants: Iterable[float], root: float) -> list[float]:
    """Return κ_j/root^j at index j for j from 2 on, with zeros at the indices 0 and 1."""
    if not root > 0:
        raise AccuracyError(f"the privacy loss does not vary; {REMEDY}")
    scaled, scale = [0.0, 0.0], 1.0 / root
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
