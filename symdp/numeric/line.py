"""The integrand of the contour formula on one vertical line, at the nodes of a trapezoidal rule.

With F(z) = K(z) − εz and a kernel G the integral I(t) = (1/2πi) ∫_{Re z = t} e^{F(z)} G(z) dz is
δ(ε) on 0 < t < t₊ and δ(ε) − M(0) on −1 < t < 0; G(z) = 1/(z(1+z)), or its periodic sum where the
loss lives on a lattice. The rule's error is a sum of terms of one sign [Poisson summation], each
bounded by a Chernoff bound, and that bound chooses the step.

**Two strips.** A line right of both poles gives δ; where δ is large, one between them tells more:

    δ(ε) − δ∞ = I(t) for t > 0,    1 − δ(ε) = −I(t) for −1 < t < 0.

Each has an error relative to itself. Where δ is large the one that leaves δ the smaller error is
taken: an error of 1 − δ counts (1 − δ)/δ times.

**Rounding.** Losses and masses of the nodes are rounded: that is another law, whose integral is
another by d log δ/dε times what the losses lack, however far the sum cancels. What log φ lacks,
relative to itself, all terms may share, and it counts as often as the sum cancels. The other
roundings of a term, of its exponential, its kernel and its phases, are independent of those of
another: they add up like their squares. On a lattice, whose kernel takes losses at its points
alone, all of it counts as often as the sum cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from symdp.errors import AccuracyError
from symdp.numeric.answer import HALF, MOST_NODES, ROUNDING, SAFETY, Answer, exact_answer, unclosed
from symdp.numeric.elementary import Complex, log_payoff, weighted_sums
from symdp.numeric.nodes import Tilted, log_characteristic_grid
from symdp.numeric.saddle_point import Strip, far_tilt, log_add_exp, log_one_minus_exp, saddle_point
from symdp.numeric.step import Array
from symdp.numeric.total import SumLaw
from symdp.tolerances import NEGLIGIBLE

Kernel = Callable[[Complex], Complex]

_WORTHWHILE = 0.03  # of the best distance between tilts, for a step that costs no new node set


@dataclass(frozen=True)
class LineError:
    """What the sum of a line lacks or has too much, each said once, relative to the integral."""

    alias: float = math.exp(-NEGLIGIBLE)  # the other terms of Poisson's sum
    beyond: float = 0.0  # nodes beyond the last one
    outside: float = 0.0  # mass that the nodes of the losses do not see
    quadrature: float = 0.0  # nodes of the losses, near y = 0 and far out
    rounding: float = 0.0
    cut: float = 0.0  # what a smooth cut-off changes

    @property
    def total(self) -> float:
        """Their sum."""
        near = self.outside + self.quadrature + self.rounding + self.alias
        return near + self.beyond + self.cut


@dataclass(frozen=True)
class StripValue:
    """log |I(t)|, an estimate of its errors, and d log |I| / dε.

    `assured`: terms beyond the last one were shown to be negligible, not only seen to have died
    out.
    """

    log_value: float
    error: LineError
    slope: float
    assured: bool

    @property
    def relative_error(self) -> float:
        """All errors together."""
        return self.error.total


class CutOff(Protocol):
    """How a line is summed whose values do not die out."""

    def sums(self, line: Line, epsilon: float) -> tuple[float, float, float, float]:
        """Return the sum at ε, its derivative, and what lies beyond and what the cut changes."""


def continuous_kernel(z: Complex) -> Complex:
    """Return 1/(z(1+z)), the transform of the hockey-stick payoff (1 − e^{−x})⁺."""
    return 1.0 / (z * (1.0 + z))


@dataclass(frozen=True)
class Line:
    """The integrand's values Π φᵢ(y_k)^{nᵢ} G(t + iy_k) at places y_k, less the mean's phase.

    They do not depend on ε: a line serves every one.
    """

    tilt: float  # t, where the line crosses the axis
    step: float  # between places
    mean: float  # Σ E L, rounded, and what was rounded off
    mean_residual: float
    shift: float  # Σ nᵢ(E_t Lᵢ − μᵢ)
    excess: float  # Σ nᵢ(Kᵢ(t) − tμᵢ)
    places: Array
    values: Complex
    last: float  # the size of the last values: what was left out where values died out
    outside: float  # as for `LineError`
    quadrature: float  # of the nodes near y = 0
    spread: float  # Σ nᵢ(σᵢ + |E_t Lᵢ − μᵢ| + |μᵢ|), by whose rounding ε may be off
    rounding: float  # in units of rounding, what the whole integral is off by
    imprecise: float  # in units of rounding, what every term is off by
    turning: float  # Σ nᵢ E_t|Lᵢ − mᵢ|: times y, what phases are rounded like
    is_periodic: bool  # whether the kernel is that of a lattice
    exponents: Complex  # Σ nᵢ log φᵢ
    unsure: Array  # what the error of the nodes may change in the values, on both sides
    assured: bool  # as for `StripValue`
    cut: CutOff | None = None

    @cached_property
    def _sizes(self) -> Array:
        """The sizes of the terms, each with its mirror image but the first."""
        sizes = 2.0 * np.abs(self.values)
        sizes[:1] *= 0.5
        return np.asarray(sizes)

    def up_to(self, stop: int) -> Line:
        """Return the line's first nodes."""
        return replace(
            self,
            places=self.places[:stop],
            values=self.values[:stop],
            unsure=self.unsure[:stop],
            exponents=self.exponents[:stop],
        )

    def distance(self, epsilon: float) -> float:
        """Return Σ E L − ε, rounded once."""
        gap = self.mean - epsilon
        # The part that the subtraction rounded off, exactly.
        back = gap - self.mean
        lost_of_mean = self.mean - (gap - back)
        lost = lost_of_mean - (epsilon + back)
        return gap + (lost + self.mean_residual)

    def plain(self, epsilon: float) -> float:
        """Return the sum alone."""
        return plain_sum(self.turned(epsilon).real)

    def turned(self, epsilon: float) -> Complex:
        """Return the terms of the sum at ε."""
        gap = self.distance(epsilon) + self.shift
        phase = 1j * gap * self.places
        return np.asarray(self.values * np.exp(phase))

    def value(self, epsilon: float, falls: Kernel | None = None) -> StripValue:
        """Return the integral at one ε: by the plain sum where values died out.

        `falls`: how fast the integrand's value at z falls with ε, relative to itself; e^{−εz}
        falls like z.
        """
        distance = self.distance(epsilon)
        if self.cut is not None:
            return self._sized(distance, *self.cut.sums(self, epsilon))
        turned = self.turned(epsilon)
        rate = np.asarray(self.tilt + 1j * self.places)
        if falls is not None:
            rate = falls(rate)
        total = plain_sum(turned.real)
        slope = -plain_sum((rate * turned).real)
        beyond = 2.0 * self.places.size * self.last
        return self._sized(distance, total, slope, beyond)

    def error_of_nodes(self, epsilon: float) -> float:
        """Return the relative error by rounding and by the nodes of the losses, inf of no sum."""
        turned = self.turned(epsilon)
        rate = self.tilt + 1j * self.places
        total = plain_sum(turned.real)
        size = abs(total)
        if not 0.0 < size < math.inf:
            return math.inf
        slope = -plain_sum((rate * turned).real)
        rounding = self._rounding(self.distance(epsilon), size, slope / total)
        return ROUNDING * rounding + self.quadrature + float(self.unsure.sum()) / size

    def _sized(
        self,
        distance: float,
        total: float,
        slope: float,
        beyond: float,
        cut: float = 0.0,
    ) -> StripValue:
        """Return the integral whose sum is known, with the sizes of what the sum left out."""
        size = abs(total)
        magnitude = size * self.step / (2.0 * math.pi)
        if not (magnitude > 0 and math.isfinite(magnitude)):
            raise AccuracyError("the contour integral cancelled to nothing")
        drift = self.tilt * distance
        unsure = float(self.unsure.sum())
        error = LineError(
            beyond=beyond / size,
            outside=self.outside,
            quadrature=self.quadrature + unsure / size,
            rounding=ROUNDING * self._rounding(distance, size, slope / total),
            cut=cut / size,
        )
        log_value = drift + self.excess + math.log(magnitude)
        return StripValue(log_value, error, slope / total, self.assured)

    def _rounding(self, distance: float, size: float, slope: float) -> float:
        """Return the relative error of a sum of a size by roundings, in units of them."""
        of_all = self.rounding + abs(self.tilt * distance)
        if self.is_periodic:
            cancellation = 0.5 * float(self._sizes.sum()) / size
            return (of_all + abs(self.tilt) * self.spread) * max(1.0, cancellation)
        steepness = max(abs(self.tilt), abs(slope))
        turned = (self.turning + abs(distance + self.shift)) * self.places
        # Of an exponential, a kernel, their product and a sum.
        of_one = 8.0 + turned + np.abs(self.exponents.imag)
        independent = of_one * self._sizes
        of_terms = math.sqrt(float(weighted_sums(independent, independent)))
        of_shared = self.imprecise + np.abs(self.exponents.real)
        shared = float(weighted_sums(of_shared, self._sizes))
        return of_all + steepness * self.spread + (of_terms + shared) / size


def _tilts_around(law: SumLaw, tilt: float, widest: float) -> tuple[Array, Array]:
    """Return tilts of the line's strip below and above it, those where K is at hand if they do."""
    natural = math.sqrt(2.0 * NEGLIGIBLE) / widest
    end = law.domain[1]
    if tilt > 0:
        distances = natural * np.asarray([0.5, 1.0, 2.0])
        below = tilt - np.minimum(distances, tilt)
        above = tilt + natural * np.asarray([0.25, 0.5, 1.0, 2.0])
        if not math.isinf(end):
            shares = np.asarray([0.25, 0.5, 0.75, 0.9])
            inside = tilt + (end - tilt) * shares
            above = np.minimum(above, inside)
    else:
        distances = natural * np.asarray([0.25, 0.5, 1.0, 2.0])
        below = tilt - np.minimum(distances, 1.0 + tilt)
        above = tilt + np.minimum(distances, -tilt)
    low, high = law.window(tilt)
    if high - tilt > _WORTHWHILE * natural:
        above = np.minimum(above, high)
    if tilt - low > _WORTHWHILE * natural:
        below = np.maximum(below, low)
    return below, above


def _alias_free_step(
    law: SumLaw,
    epsilon: float,
    tilt: float,
    log_answer: float,
    widest: float,
    beside: float,
) -> float:
    """Return the largest step whose alias terms stay below e^{−40} of the answer.

    A term at ε + 2πj/h is at most e^{2πj(t−s)/h + K(s) − sε + log c(s)} for any s beyond the tilt,
    so a given s allows h = 2π|s − t|/(40 + K(s) − sε + log c(s) − log answer). Moving ε by at most
    `beside` changes the difference by at most |s − t| times that, and the Gaussian factor e^{−x²/2}
    of the answer by x = beside/√F₂.
    """
    accuracy = NEGLIGIBLE + 0.5 * (beside / widest) ** 2
    below, above = _tilts_around(law, tilt, widest)
    side = np.concatenate([below, above])

    def steps_at(tilts: Array, may_lack: bool = True) -> Array:
        if may_lack:
            bound = law.known_log_transform(tilts, epsilon)
        else:
            bound = law.log_transform(tilts, epsilon)
        apart = np.abs(tilts - tilt)
        if tilt > 0:
            bound = bound + log_payoff(tilts)
        efolds = accuracy + bound - log_answer + beside * apart
        room = np.maximum(efolds, 1.0)
        return np.nan_to_num(2.0 * math.pi * apart / room)

    for share in (1.0, 0.5, 0.25, 0.125):  # those tilts, or some closer to the line's
        nearer = tilt + share * (side - tilt)
        try:
            steps = steps_at(nearer)
            break
        except AccuracyError as refusal:  # too far out for a quadrature
            refused = refusal
    else:
        raise refused
    of_below = float(steps[: below.size].max())
    of_above = float(steps[below.size :].max())
    if of_above < 0.25 * of_below:
        # K rises steeply somewhere before those tilts.
        closer = tilt + (nearer[below.size] - tilt) * 0.7 ** np.arange(1.0, 13.0)
        of_above = max(of_above, float(steps_at(closer).max()))
    if min(of_below, of_above) == 0.0:
        steps = steps_at(nearer, may_lack=False)
        of_below = float(steps[: below.size].max())
        of_above = float(steps[below.size :].max())
    return min(of_below, of_above)


def loss_size(law: SumLaw, tilted: Sequence[Tilted]) -> float:
    """Return Σ nᵢ (σᵢ + |E_t Lᵢ − μᵢ| + |μᵢ|), of which rounding takes its share."""
    counts = [count for _, count in law.terms]
    pairs = zip(counts, tilted, strict=True)
    return math.fsum(abs(count) * step.size for count, step in pairs)


def first_line(
    law: SumLaw,
    tilted: list[Tilted],
    epsilon: float,
    tilt: float,
    kernel: Kernel,
    period: float,
    beside: float,
    most: int = MOST_NODES // 2,
    lost: float = 0.0,
) -> tuple[Line, int]:
    """Return a line with the nodes that a Gaussian would need, and the most that it may have.

    The former are no more than `most`; its step serves every ε' with |ε' − ε| ≤ `beside`. δ is by
    `lost` e-folds less than the leading order at the tilt.
    """
    counts = [count for _, count in law.terms]
    counted = list(zip(counts, tilted, strict=True))
    mean, mean_residual = law.mean_parts
    shift = math.fsum(count * step.shift for count, step in counted)
    variance = math.fsum(count * step.variance for count, step in counted)
    excess = math.fsum(count * step.excess for count, step in counted)
    moments = []
    for step in tilted:
        moments.append(np.asarray([step.excess, step.shift, step.variance]))
    if np.isnan(law.smooth_sum(moments)).any():
        raise AccuracyError("so many steps are not known from a few of them at this tilt")
    above = 1.0 + tilt
    pole_at_0 = 1.0 / (tilt * tilt)
    pole_at_minus_1 = 1.0 / (above * above)
    curvature = variance + pole_at_0 + pole_at_minus_1
    # Next to the end of the range the rounding of the losses counts, not how far they spread.
    spread = loss_size(law, tilted)
    # Cut tails lack in averages of e^{zL} − 1 − zL, which are about |zL|, or z²L²/2 if less.
    z = abs(tilt) + 1.0 / math.sqrt(curvature)
    lacking = []
    for count, step in counted:
        first, second = step.nodes.beyond
        average = min(first, 0.5 * z * second)
        lacking.append(count * z * average)
    # A CGF that is no sum of growths is rounded like 1 in every step, however small it is.
    imprecise = math.fsum(count * step.imprecise for count, step in counted)
    drowned = 4.0 * imprecise
    # How many times the relative error of nodes counts in the integral.
    sizes = [2.0 * abs(count * step.excess) for count, step in counted]
    weighed = 1.0 + math.fsum(sizes)
    quadrature = max(step.error for step in tilted) + law.lacking
    line = Line(
        tilt=tilt,
        step=math.nan,
        mean=mean,
        mean_residual=mean_residual,
        shift=shift,
        excess=excess,
        places=np.empty(0),
        values=np.empty(0, dtype=np.complex128),
        last=math.inf,
        outside=math.fsum(lacking),
        quadrature=quadrature * (weighed + abs(tilt) * spread),
        spread=spread,
        rounding=8.0 + abs(excess) + drowned,
        imprecise=drowned,
        turning=math.fsum(abs(count) * step.turning for count, step in counted),
        is_periodic=not math.isinf(period),
        exponents=np.empty(0, dtype=np.complex128),
        unsure=np.empty(0),
        assured=False,
    )
    [at_tilt] = kernel(np.asarray([complex(tilt)])).tolist()
    modulus = abs(at_tilt)
    if not 0.0 < modulus < math.inf:
        raise AccuracyError(
            f"at the tilt {tilt:.6g} the integrand is no double: the losses are too large or too "
            "small; use the method moments, or ask for another epsilon"
        )
    log_answer = tilt * line.distance(epsilon) + excess + math.log(modulus)
    log_width = 0.5 * math.log(2.0 * math.pi * curvature)
    log_answer -= log_width + lost
    step_size = _alias_free_step(law, epsilon, tilt, log_answer, math.sqrt(curvature), beside)
    limit = MOST_NODES
    if not math.isinf(period):
        points = max(3, math.ceil(period / step_size))
        points += 1 - points % 2  # odd, so that the nodes are symmetric and none is on the seam
        step_size = period / points
        limit = points // 2 + 1
    # Up to where a Gaussian is e^-50: the first nodes also tell how far others have to reach.
    reach = math.inf
    if variance > 0:
        reach = math.sqrt(2.5 * NEGLIGIBLE / variance)
    gaussian_nodes = math.ceil(min(reach / step_size, most))
    stop = int(min(limit, max(24, gaussian_nodes)))
    first_nodes = longer(law, replace(line, step=step_size), stop, kernel)
    return first_nodes, limit


def longer(law: SumLaw, line: Line, stop: int, kernel: Kernel) -> Line:
    """Return the line with values up to node `stop` − 1."""
    start = line.places.size
    finer = law.tilted(line.tilt, line.step * stop)
    logs = [log_characteristic_grid(part, line.step, start, stop) for part in finer]
    places: Array = line.step * np.arange(start, stop, dtype=np.float64)
    grown = extended(law, line, finer, places, logs, kernel)
    modulus = np.abs(grown.values[start:])
    last_count = modulus.size // 8 + 1
    return replace(grown, last=float(modulus[-last_count:].max()))


def extended(
    law: SumLaw,
    line: Line,
    finer: Sequence[Tilted],
    places: Array,
    logs: Sequence[Complex],
    kernel: Kernel,
) -> Line:
    """Return the line with values at places whose log φ of every step are known."""
    kernel_values = kernel(np.asarray(line.tilt + 1j * places))
    exponent = law.smooth_sum(logs)
    block = np.exp(exponent) * kernel_values
    # Nodes for higher frequencies have an error of their own, of φ relative to Σ pⱼ and of yℓ.
    off = np.zeros(places.size)
    counts = [count for _, count in law.terms]
    for part, log, count in zip(finer, logs, counts, strict=True):
        inverse_modulus = np.exp(np.minimum(-log.real, 300.0))
        turned = math.sqrt(part.variance) * places
        changed = np.minimum(np.abs(log), 1.0) + turned
        off += count * part.quadrature_error * changed * inverse_modulus
    unsure = 2.0 * np.abs(block) * np.minimum(off, 1.0)
    return replace(
        line,
        exponents=np.append(line.exponents, exponent),
        unsure=np.append(line.unsure, unsure),
        places=np.concatenate([line.places, places]),
        values=np.concatenate([line.values, block]),
    )


def plain_sum(terms: Array) -> float:
    """Return the two-sided sum of terms whose mirror images are their conjugates."""
    return 2.0 * float(terms.sum()) - float(terms[0])


_NEAR_SADDLE = 0.02  # standard deviations of the integrand: closer costs more than it saves


def line_tilt(law: SumLaw, epsilon: float, strip: Strip) -> float:
    """Return the tilt of a line near the saddle point, whose place changes only the cost."""
    saddle = saddle_point(law, epsilon, strip, settled=_NEAR_SADDLE)
    if saddle is None:
        return far_tilt(law, strip)
    return saddle.tilt


_ROOM = 3.0  # standard deviations of the integrand: with less up to the end the step is short
_RISE = 4.0  # e-folds of the leading order at a tilt, by which a sum may cancel more


def off_the_end(
    law: SumLaw, epsilon: float, tilt: float, beside: float = 0.0
) -> tuple[float, float]:
    """Return a tilt farther from the end t₊ of K's domain where steps are short, and what is lost.

    Where single large losses carry δ, its saddle point is next to t₊: K(s) is finite only just
    above it. Farther away the integrand is little larger, by the e-folds that are lost at ε and
    at every ε' with |ε' − ε| ≤ `beside`, and the losses that count are smaller.
    """
    end = law.domain[1]
    if not end * 0.25 < tilt < end < math.inf:
        return tilt, 0.0
    tilts = end - np.geomspace(end - tilt, 0.75 * end, 33)
    cumulants = [count * np.stack(step.rough_cumulants(tilts)) for step, count in law.terms]
    excess, _, variance = np.sum(cumulants, axis=0)
    pole_at_0 = tilts**-2.0
    pole_at_minus_1 = (1.0 + tilts) ** -2.0
    curvature = np.maximum(variance, 0.0) + pole_at_0 + pole_at_minus_1
    if (end - tilt) * math.sqrt(curvature[0]) > _ROOM:
        return tilt, 0.0
    width = tilts * (1.0 + tilts) * np.sqrt(curvature)
    log_width = np.log(width)
    log_leading = excess + tilts * law.drift(epsilon) - log_width
    rise = np.maximum(log_leading - log_leading[0], 0.0)
    lost = rise + beside * (tilt - tilts)
    last = int((lost > _RISE).argmax()) - 1
    return float(tilts[last]), float(lost[last])


def answer_from_strips(law: SumLaw, value: Callable[[Strip], StripValue | None]) -> Answer | None:
    """Return δ from the integrals of two strips, None where one has no value."""
    above: StripValue | None = None
    refused: AccuracyError | None = None
    log_delta = math.nan
    if law.domain[1] > 0:
        try:
            above = value(Strip.RIGHT)
        except AccuracyError as failure:  # far below the mean 1 − δ is all that there is to know
            refused = failure
        if above is None and refused is None:
            return None
    if above is not None:
        log_delta = log_add_exp(above.log_value, law.log_mass_at_infinity)
        if log_delta < HALF:
            slope = above.slope * math.exp(above.log_value - log_delta)
            log_complement = log_one_minus_exp(log_delta)
            return exact_answer(log_delta, log_complement, above.error.total, slope)
    below = value(Strip.MIDDLE)
    if below is None:
        return None
    log_complement = min(below.log_value, 0.0)
    through_complement = log_one_minus_exp(log_complement)
    scale = math.inf  # of an error of 1 − δ, relative to δ
    if through_complement > -math.inf:
        scale = math.exp(log_complement - through_complement)
    error = below.error.total * scale
    if above is not None and not error < above.error.total:
        error = max(above.error.total, below.error.total)
        error += unclosed(log_delta, log_complement, error)
        slope = above.slope * math.exp(above.log_value - log_delta)
        return exact_answer(
            min(log_delta, 0.0),
            log_complement,
            error,
            slope,
            complement_error=below.error.total,
        )
    # Only 1 − δ is to be had, or tells more: its error is relative to it, not to δ.
    if above is not None:
        uncertainty = above.error.total * math.exp(log_delta) + below.error.total
        error += unclosed(log_delta, log_complement, uncertainty)
    if refused is not None and not error < 1.0:
        raise refused
    if through_complement == -math.inf:  # 1 − δ is 1 but for its error, which δ may be as large as
        most = SAFETY * below.error.total + max(below.log_value, 0.0)
        log_most = math.log(most)
        return Answer(log_most, -math.inf, log_most, "bound", "", 0.0, None, "", most)
    return exact_answer(
        through_complement,
        log_complement,
        error,
        -below.slope * scale,
        complement_error=below.error.total,
    )
