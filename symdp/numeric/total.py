"""The total privacy loss of a composition, in numbers: sums over its distinct steps.

**Lattices a + Δℤ**, on which the characteristic function repeats, have two-point lists, integer
noise with a linear loss, and every sum of copies of one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, wraps
from itertools import pairwise
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from symdp.errors import InputError
from symdp.numeric.elementary import distinct
from symdp.numeric.loss import EXTENDED, LossLaw
from symdp.numeric.nodes import Tilted
from symdp.numeric.step import Array
from symdp.tolerances import MASS_ROUNDED, ROUNDED, SUMS_ROUNDED

# of a function that is kept with a law
P = ParamSpec("P")
# what that function returns
T = TypeVar("T")
_TOP_SHARE = 2.0**-5  # of the way from the largest loss to the mean: next to the largest loss
_LARGE_DELTA = 0.25  # from which 1 − δ is worth a computation of its own
# of P: median, and the decile on either side
_QUANTILES = np.asarray([0.1, 0.5, 0.9])


class SumLaw:
    """The total privacy loss of independent steps: distinct laws, each with a count ≥ 1.

    `direction` is empty for a part of a law. `terms`: pairs (law, count) from which all comes that
    adds up over the steps: the parts themselves, unless there are too many. `kept`: see
    `kept_with_law`.
    """

    lacking = 0.0  # relative: of what is summed over the terms

    def __init__(self, parts: Sequence[tuple[LossLaw, int]], direction: str = "") -> None:
        if not parts:
            raise InputError("a composition needs at least one step")
        self._parts = tuple(parts)
        self.direction = direction
        self.kept: dict[object, Any] = {}
        self.count = sum(count for _, count in parts)

    @property
    def parts(self) -> tuple[tuple[LossLaw, int], ...]:
        """Every distinct step's law, with its count."""
        return self._parts

    @property
    def terms(self) -> Sequence[tuple[LossLaw, int]]:
        """The laws and counts that sums over the steps are taken with."""
        return self.parts

    @property
    def samples(self) -> Sequence[LossLaw]:
        """Laws of the steps, or of some with all others between them."""
        return [law for law, _ in self.parts]

    def singly(self) -> SumLaw:
        """Return the same total with every distinct step by itself."""
        return self

    @cached_property
    def domain(self) -> tuple[float, float]:
        """The tilts between which every step's moment generating function is finite."""
        return (
            max(law.domain[0] for law, _ in self.terms),
            min(law.domain[1] for law, _ in self.terms),
        )

    def is_resolved_at(self, tilt: float) -> bool:
        """Whether K(t) is known, or known to be infinite."""
        return all(law.is_resolved_at(tilt) for law, _ in self.terms)

    def diverges_at(self, tilt: float) -> bool:
        """Whether the moment at t ≥ 0 is infinite: of some step, as far as its law is known."""
        for law, _ in self.terms:
            if law.mass_at_infinity > law.uncertain_mass:
                return True
            is_outside = tilt > 0.0 and tilt >= law.domain[1]
            if is_outside and law.is_resolved_at(tilt):
                return True
        return False

    @cached_property
    def is_spread(self) -> bool:
        """Whether some loss has a continuous part."""
        return any(law.is_spread for law, _ in self.terms)

    @property
    def rough_scale(self) -> tuple[float, float]:
        """About the mean and the variance of the finite total."""
        moments = [(*law.rough_scale, count) for law, count in self.parts]
        mean = sum(step_mean * count for step_mean, _, count in moments)
        variance = sum(step_variance * count for _, step_variance, count in moments)
        return mean, variance

    @cached_property
    def is_closed(self) -> bool:
        """Whether it is one step whose δ is a formula."""
        return self.count == 1 and self.parts[0][0].is_closed

    @cached_property
    def has_atoms(self) -> bool:
        """Whether some single value of a loss has positive probability."""
        return any(law.has_atoms for law, _ in self.terms)

    @property
    def is_mixed(self) -> bool:
        """Whether the losses of some steps are several single values, and those of others are not.

        A step whose finite loss is one value only moves the others.
        """
        if not self.is_spread:
            return False
        discrete = [law.loss_bounds for law, _ in self.terms if not law.is_spread]
        return any(low < high for low, high in discrete)

    @cached_property
    def apart(self) -> tuple[SumLaw, SumLaw]:
        """The steps of a mixed law: those whose losses are single values, and the others."""
        discrete = [pair for pair in self.parts if not pair[0].is_spread]
        spread = [pair for pair in self.parts if pair[0].is_spread]
        return SumLaw(discrete), SumLaw(spread)

    def combine(self, values: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return Σ nᵢ vᵢ over the terms."""
        total: NDArray[Any] = np.zeros_like(np.asarray(values[0]))
        for value, (_, count) in zip(values, self.terms, strict=True):
            total = total + count * value
        return total

    smooth_sum = combine  # the same of what is smooth in the steps' parameters

    @cached_property
    def atom_cycle(self) -> float:
        """The longest distance after which the atoms' part of |φ| recurs: 2π over their gap."""
        gaps = [law.atom_gap for law, _ in self.terms if law.has_atoms]
        return 2.0 * math.pi / min(gaps, default=math.inf)

    @cached_property
    def loss_bounds(self) -> tuple[float, float]:
        """The essential range of the finite total loss."""
        return (
            sum(count * law.loss_bounds[0] for law, count in self.terms),
            sum(count * law.loss_bounds[1] for law, count in self.terms),
        )

    @cached_property
    def precise_top(self) -> Fraction | None:
        """The largest total loss beyond doubles, None where that is not known."""
        total = Fraction(0)
        for law, count in self.parts:
            if law.precise_top is None:
                return None
            total += count * law.precise_top
        return total

    def below_top(self, epsilon: float) -> float:
        """Return how far ε lies below the largest total loss, inf where that is infinite."""
        top = self.precise_top
        if top is None:
            return self.loss_bounds[1] - epsilon
        return float(top - Fraction(epsilon))

    def few_fall_short(self, epsilon: float) -> bool:
        """Return whether what exceeds ε are hardly more than the largest losses of all steps.

        In the mean at most one step's loss is another one then, if the sum exceeds ε, and δ is what
        a few short convolutions give.
        """
        top = self.loss_bounds[1]
        below = top - epsilon
        if not (self.has_atoms and below < _TOP_SHARE * (top - self.mean)):
            return False
        expected_others = 0.0
        for law, count in self.parts:
            log_largest, log_close, _ = law.near_top(below)
            if not log_largest > -math.inf:
                return False
            expected_others += count * math.exp(log_close - log_largest)
        delta_of_top = self._top_mass * -math.expm1(-below)
        return expected_others <= 1.0 and delta_of_top < _LARGE_DELTA

    @cached_property
    def _top_mass(self) -> float:
        """The probability that every step has its largest loss."""
        log_masses = [count * law.near_top(0.0)[0] for law, count in self.parts]
        return math.exp(sum(log_masses))

    @cached_property
    def around_top(self) -> tuple[float, float]:
        """Doubles around the largest finite total loss, both that one where it is a double."""
        rounded_top = self.loss_bounds[1]
        top = self.precise_top
        if top is None or not math.isfinite(rounded_top):
            rounding = ROUNDED * abs(rounded_top)
            return rounded_top - rounding, rounded_top + rounding
        near = float(top)
        one_rounding = abs(top) * Fraction(EXTENDED)
        if abs(Fraction(near) - top) <= one_rounding:
            return near, near
        if Fraction(near) < top:
            return near, math.nextafter(near, math.inf)
        return math.nextafter(near, -math.inf), near

    def epsilon_of_top(self, log_delta: float) -> float | None:
        """Return the ε at which the largest loss alone gives δ, None where it gives less at 0.

        No smaller ε has that δ. Only where `few_fall_short` holds of it, it is worth asking for.
        """
        top = self.loss_bounds[1]
        certain_mass = max(self.mass_at_infinity - self.uncertain_mass, 0.0)
        largest_delta = (1.0 + SUMS_ROUNDED) * math.exp(log_delta)
        share = largest_delta - (1.0 - SUMS_ROUNDED) * certain_mass
        has_top = self.has_atoms and top < math.inf
        if not (has_top and share < self._top_mass):
            return None
        below = math.log1p(-max(share, 0.0) / self._top_mass)
        widths = [count * law.near_top(0.0)[2] for law, count in self.parts]
        width = sum(widths)
        rounding = ROUNDED * min(-below, abs(top))
        return self.around_top[0] - width + below - rounding

    @property
    def log_common_mass(self) -> float:
        """log Q(P > 0): what Q has of the outputs that P can give."""
        return min(self.cgf(-1.0), 0.0)

    @cached_property
    def log_finite_mass(self) -> float:
        """log(1 − δ∞), δ∞ the composition's mass at infinity."""
        logs = []
        for law, count in self.terms:
            if law.mass_at_infinity < 1:
                logs.append(count * math.log1p(-law.mass_at_infinity))
            else:
                logs.append(-math.inf)
        return math.fsum(logs)

    @cached_property
    def uncertain_mass(self) -> float:
        """A bound on the probability that some step's loss is one that its law does not know."""
        return math.fsum(count * law.uncertain_mass for law, count in self.terms)

    @property
    def mass_at_infinity(self) -> float:
        """δ∞ = 1 − Π(1 − δ∞ᵢ)."""
        return -math.expm1(self.log_finite_mass)

    @property
    def log_mass_at_infinity(self) -> float:
        """log δ∞, −inf where the loss is always finite."""
        finite = self.log_finite_mass
        if finite < -1.0:  # δ∞ next to 1 keeps what it lacks
            return math.log1p(-math.exp(finite))
        if finite < 0:
            return math.log(-math.expm1(finite))
        return -math.inf

    @property
    def mean(self) -> float:
        """Σ E L under P, given that L is finite."""
        return self.mean_parts[0]

    @cached_property
    def square_length(self) -> float:
        """Σ nᵢτᵢ², τᵢ the length of the interval of a step's loss; ∞ where one has none."""
        squares = []
        for law, count in self.terms:
            low, high = law.loss_bounds
            squares.append(count * (high - low) ** 2)
        return math.fsum(squares)

    @cached_property
    def mean_parts(self) -> tuple[float, float]:
        """Σ E L as an unrounded sum of two doubles."""
        exact = Fraction(0)
        for law, count in self.terms:
            exact += Fraction(count) * Fraction(law.base.mean)
        rounded = float(exact)
        remainder = exact - Fraction(rounded)
        return rounded, float(remainder)

    def drift(self, epsilon: float) -> float:
        """Return Σ E L − ε, rounded once."""
        return math.fsum([*self.mean_parts, -epsilon])

    def window(self, tilt: float) -> tuple[float, float]:
        """Return between which tilts around one K can be had at no further cost."""
        laws = [law for law, _ in self.terms]
        moving = []
        for law in laws:
            low, high = law.loss_bounds
            if low < high:
                moving.append(law)
        windows = [law.window(tilt) for law in moving or laws]
        lowest = max(low for low, _ in windows)
        highest = min(high for _, high in windows)
        return lowest, highest

    def tilted(self, tilt: float, frequency: float = 0.0) -> list[Tilted]:
        """Return the laws of the terms tilted by `tilt`."""
        return [law.tilted(tilt, frequency) for law, _ in self.terms]

    def tilted_terms(self, tilt: float, frequency: float = 0.0) -> list[tuple[Tilted, float]]:
        """Return laws of single steps tilted by `tilt`, and how many steps each stands for."""
        laws = self.tilted(tilt, frequency)
        counts = [float(count) for _, count in self.terms]
        return list(zip(laws, counts, strict=True))

    def log_transform(self, tilts: Array, epsilon: float) -> Array:
        """Return K(s) − s·ε for several tilts, without cancellation between K and ε."""
        drift = np.asarray(tilts) * self.drift(epsilon)
        transforms = [law.transform(tilts) for law, _ in self.terms]
        return np.asarray(drift + self.smooth_sum(transforms))

    def known_log_transform(self, tilts: Array, epsilon: float) -> Array:
        """Return K(s) − s·ε, nan where it takes every step by itself to know it."""
        return self.log_transform(tilts, epsilon)

    def cgf(self, tilt: float) -> float:
        """Return K(t) = Σ nᵢ Kᵢ(t), which is log(1 − δ∞) at 0 whether there is a mean or not."""
        if tilt == 0.0:
            return self.log_finite_mass
        excess = [np.asarray(x.excess) for x in self.tilted(tilt)]
        return tilt * self.mean + float(self.smooth_sum(excess))

    def cumulants(self, tilt: float, order: int) -> Array:
        """Return K′(t), …, K^(order)(t): cumulants of the tilted total loss."""
        cumulants = [part.cumulants(order) for part in self.tilted(tilt)]
        total = self.smooth_sum(cumulants)
        total[0] += self.mean
        return total

    @cached_property
    def scale(self) -> tuple[float, float]:
        """A place and a square width of the sum from quantiles of steps, which need no moments."""
        centre = 0.0
        square = 0.0
        for part, count in self.parts:
            cumulated = np.cumsum(part.base.weight)
            quantiles = cumulated[-1:] * _QUANTILES
            index = np.searchsorted(cumulated[:-1], quantiles)
            lower, middle, upper = part.base.loss[index].tolist()
            centre += count * middle
            square += count * (upper - lower) ** 2
        return centre, square

    def cgf_line(self, tilt: float, y: Array) -> np.ndarray:
        """Return K(t + iy) − K(t) for an array of y."""
        y = np.asarray(y, dtype=np.float64)
        frequency = 0.0
        if y.size:
            frequency = float(np.abs(y).max())
        parts = self.tilted(tilt, frequency)
        logs = [part.log_characteristic(y) for part in parts]
        total = 1j * y * self.drift(0.0)
        for part, log, (_, count) in zip(parts, logs, self.terms, strict=True):
            total += count * (log + 1j * y * part.shift)
        return total


def kept_with_law(
    function: Callable[Concatenate[SumLaw, P], T],
) -> Callable[Concatenate[SumLaw, P], T]:
    """Return a function that asks another, pure one once for each law and what else is given."""

    @wraps(function)
    def asked(law: SumLaw, /, *arguments: P.args, **named: P.kwargs) -> T:
        key = asked, arguments, *named.items()
        if key not in law.kept:
            law.kept[key] = function(law, *arguments, **named)
        value: T = law.kept[key]
        return value

    return asked


_MOST_POINTS = 1 << 20  # of a step, and of a period


@dataclass(frozen=True)
class Lattice:
    """The set offset + spacing·ℤ that the total loss is certain to lie in.

    Both are kept beyond doubles: n steps multiply their rounding, and ε lies between two points.
    """

    offset: Fraction
    spacing: Fraction


@kept_with_law
def find_lattice(law: SumLaw) -> Lattice | None:
    """Return the lattice of a sum of purely atomic losses, or None where there is none."""
    if law.is_spread:
        return None
    if not all(_has_few_losses(part) for part, _ in law.parts):
        return None
    offset = Fraction(0)
    spacing = Fraction(0)
    widest = Fraction(0)
    scale = Fraction(0)
    for part, count in law.parts:
        losses = part.precise_losses
        least = losses[0]
        largest = losses[-1]
        offset += count * least
        scale = max(scale, abs(least), abs(largest))
        widest = max(widest, largest - least)
        for low, high in pairwise(losses):
            rounding = Fraction(EXTENDED) * scale
            spacing = _common_measure(high - low, spacing, rounding)
            if 0 < spacing < scale / _MOST_POINTS:  # too long a period
                return None
    if not spacing:
        return None
    # Differences of neighbours are rounded as much as the longest one, which counts many of them.
    spacing = widest / round(widest / spacing)
    misfits = [_misfit(part, float(spacing)) for part, _ in law.parts]
    largest_misfit = max(misfits)
    if largest_misfit > MASS_ROUNDED * float(scale):
        return None
    return Lattice(offset, spacing)


def _misfit(part: LossLaw, spacing: float) -> float:
    """Return how far from the lattice a loss lies, in doubles."""
    distances = part.base.loss - float(part.precise_losses[0])
    nearest = spacing * np.round(distances / spacing)
    return float(np.abs(distances - nearest).max())


def _has_few_losses(law: LossLaw) -> bool:
    """Return whether the loss has no continuous part and not too many values."""
    if not all(piece.flat or piece.integer for piece in law.step.pieces):
        return False
    loss = distinct(law.base.loss)
    return 0 < loss.size <= _MOST_POINTS


def _common_measure(first: Fraction, second: Fraction, smallest: Fraction) -> Fraction:
    """Return the largest number that divides both, where what is smaller counts as nothing."""
    large = max(first, second)
    small = min(first, second)
    while small > smallest:
        remainder = large % small
        large = small
        small = min(remainder, small - remainder)
    if large > smallest:
        return large
    return Fraction(0)
