"""The contour integral of the privacy profile on one vertical line, by the trapezoidal rule.

With F(z) = K(z) − εz and a kernel G the integral I(t) = (1/2πi) ∫_{Re z = t} e^{F(z)} G(z) dz is
δ(ε) on 0 < t < t₊ and δ(ε) − M(0) on −1 < t < 0; G(z) = 1/(z(1+z)), or its periodic sum where the
loss lives on a lattice. The rule's error is a sum of terms of one sign [Poisson summation], each
bounded by a Chernoff bound, and that bound chooses the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erfc

from symdp.errors import AccuracyError
from symdp.numeric.elementary import Complex
from symdp.numeric.law import SumLaw, Tilted
from symdp.numeric.line import log_characteristic_grid
from symdp.numeric.step import Array

Kernel = Callable[[Complex], Complex]

LOG_ACCURACY = 38.0  # each alias term is kept below e^-38 = 3e-17 of the answer
FIRST_REACH = 10.0  # a Gaussian characteristic function is below e^-50 at ten widths
MAX_NODES = 1 << 20
SETTLED = 1e-13  # relative change at which the sum counts as complete
TOLERABLE = 1e-10  # the largest relative change that is still reported, with its size
ROUNDING = 2.3e-16
_CYCLES = 8.0
_TAPER = 24.0  # the cut-off falls from 1 − 1e-17 at Y/2 to 1e-17 at Y


@dataclass(frozen=True)
class StripValue:
    """log |I(t)| and an estimate of its relative error."""

    log_value: float
    relative_error: float


def continuous_kernel(z: Complex) -> Complex:
    """Return 1/(z(1+z)), the transform of the hockey-stick payoff (1 − e^{−x})⁺."""
    return 1.0 / (z * (1.0 + z))


def find_tilt(law: SumLaw, epsilon: float, upper_strip: bool) -> float:
    """Return the saddle point of e^{F(z)}/(z(1+z)) in its strip, to about 1 %.

    It solves K′(t) = ε + 1/t + 1/(1+t) [SPA (50)]; the place of the line changes the cost of the
    rule, never its value, so a rough root is enough.
    """
    end = law.domain[1]
    if upper_strip:
        if not end > 0:
            raise AccuracyError("the moment generating function is infinite for every positive tilt")
        if math.isinf(end):
            to_tilt, to_u = math.exp, math.log
        else:
            to_tilt = lambda u: end / (1.0 + math.exp(-u))  # noqa: E731
            to_u = lambda t: math.log(t / (end - t))  # noqa: E731
    else:
        to_tilt = lambda u: -1.0 / (1.0 + math.exp(u))  # noqa: E731
        to_u = lambda t: math.log((1.0 + t) / -t)  # noqa: E731

    def slope(t: float) -> tuple[float, float]:
        first, second = law.cumulants(t, 2)
        value = first - epsilon - 1.0 / t - 1.0 / (1.0 + t)
        return value, second + 1.0 / (t * t) + 1.0 / ((1.0 + t) * (1.0 + t))

    tilt = _first_guess(law, epsilon, upper_strip, end)
    low, high = -math.inf, math.inf
    u = to_u(tilt)
    for _ in range(200):
        try:
            value, curvature = slope(tilt)
        except AccuracyError:
            # Too close to the end of the domain for any quadrature: stay inside.
            high, u = u, (0.5 * (max(low, u - 4.0) + u))
            tilt = to_tilt(u)
            continue
        if value > 0:
            high = u
        else:
            low = u
        if abs(value) < 0.02 * math.sqrt(curvature):
            return tilt
        target = tilt - value / curvature
        inside = target > 0 and (target < end) if upper_strip else -1.0 < target < 0.0
        new = to_u(target) if inside else (u + (1.5 if value < 0 else -1.5))
        new = min(max(new, u - 3.0), u + 1.5)  # windows further out are built only when needed
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - u) < 1e-3 * (1.0 + abs(u)) and math.isfinite(high) and math.isfinite(low):
            return tilt
        u = new
        tilt = to_tilt(u)
        if upper_strip and not math.isinf(end) and end - tilt < 1e-9 * end:
            return to_tilt(u - 1.0)
    return tilt


def _first_guess(law: SumLaw, epsilon: float, upper_strip: bool, end: float) -> float:
    first, second = law.cumulants(0.0 if upper_strip else -0.5, 2)
    gap = first - epsilon
    second = max(second, 1e-300)
    if upper_strip:
        root = math.sqrt(gap * gap + 4.0 * second)
        guess = 2.0 / (gap + root) if gap > 0 else (root - gap) / (2.0 * second)
        return min(guess, 1.0 if math.isinf(end) else 0.5 * end)
    return min(max(-0.5 - gap / (second + 8.0), -1.0 + 1e-3), -1e-3)


def _spacing(law: SumLaw, epsilon: float, tilt: float, log_answer: float, widest: float) -> float:
    """Return the largest step whose alias terms stay below e^{−38} of the answer.

    A term at ε + 2πj/h is at most e^{2πj(t−s)/h + K(s) − sε + log c(s)} for any s beyond the tilt,
    so a given s allows h = 2π|s − t|/(38 + K(s) − sε + log c(s) − log answer).
    """
    natural = math.sqrt(2.0 * LOG_ACCURACY) / widest
    end = law.domain[1]
    if tilt > 0:
        below = tilt - np.minimum(natural * np.asarray([0.5, 1.0, 2.0]), tilt)
        above = tilt + natural * np.asarray([0.25, 0.5, 1.0, 2.0])
        if not math.isinf(end):
            above = np.minimum(above, tilt + (end - tilt) * np.asarray([0.25, 0.5, 0.75, 0.9]))
    else:
        below = tilt - np.minimum(natural * np.asarray([0.25, 0.5, 1.0, 2.0]), 1.0 + tilt)
        above = tilt + np.minimum(natural * np.asarray([0.25, 0.5, 1.0, 2.0]), -tilt)
    steps = []
    for side in (below, above):
        try:
            bound = law.log_transform(side, epsilon, float(max(side.max(), tilt)))
        except AccuracyError:
            side = 0.5 * (side + tilt)
            bound = law.log_transform(side, epsilon, float(max(side.max(), tilt)))
        if tilt > 0:
            bound = bound + _log_payoff_bound(side)
        room = np.maximum(LOG_ACCURACY + bound - log_answer, 1.0)
        steps.append(float((2.0 * math.pi * np.abs(side - tilt) / room).max()))
    return min(steps)


def _log_payoff_bound(s: Array) -> Array:
    """Return log of s^s/(1+s)^{1+s}, the largest value of (1 − e^{−x})⁺e^{−sx} [SPA (43)]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(s > 0, s * np.log(s / (1.0 + s)) - np.log1p(s), 0.0)


def integrate(
    law: SumLaw,
    epsilon: float,
    tilt: float,
    kernel: Kernel = continuous_kernel,
    period: float = math.inf,
    smooth: bool = True,
) -> StripValue:
    """Return log |I(t)| on the line Re z = `tilt`.

    Parameters
    ----------
    kernel, period
        G, and for a lattice of losses the length 2π/Δ after which the integrand repeats.
    smooth
        False for single values off any lattice: the terms then never die out but average out, and
        what lies beyond the last node is bounded by their mean size.

    Raises
    ------
    AccuracyError
        If the integrand has not died out after 2²⁰ nodes.
    """
    tilted = law.tilted(tilt)
    counts = [count for _, count in law.parts]
    distance = law.drift(epsilon)
    gap = distance + math.fsum(n * x.shift for n, x in zip(counts, tilted, strict=True))
    variance = math.fsum(n * x.variance for n, x in zip(counts, tilted, strict=True))
    excess = math.fsum(n * x.excess for n, x in zip(counts, tilted, strict=True))
    drift = tilt * distance
    curvature = variance + 1.0 / (tilt * tilt) + 1.0 / ((1.0 + tilt) * (1.0 + tilt))
    widest = math.sqrt(curvature)
    log_front = drift + excess
    first = complex(kernel(np.asarray([complex(tilt)]))[0])
    log_answer = log_front + math.log(abs(first)) - 0.5 * math.log(2.0 * math.pi * curvature)
    step = _spacing(law, epsilon, tilt, log_answer, widest)
    limit = MAX_NODES
    if not math.isinf(period):
        size = max(3, math.ceil(period / step))
        size += 1 - size % 2  # odd, so that the nodes are symmetric and none lies on the seam
        step, limit = period / size, size // 2 + 1
    reach = FIRST_REACH / math.sqrt(variance) if variance > 0 else math.inf
    stop = int(min(limit, max(24, math.ceil(min(reach / step, MAX_NODES / 2)))))
    terms = np.empty(0, dtype=np.complex128)
    best = (math.inf, 0.0)
    revival = _revival(tilted, counts) if smooth and law.has_atoms else 0.0
    cycle = law.atom_cycle if revival > 0 else 0.0
    while True:
        finer = law.tilted(tilt, step * stop)
        block = _terms(finer, counts, gap, tilt, step, terms.size, stop, kernel)
        terms = np.concatenate([terms, block])
        last = np.maximum(np.abs(block), revival * np.abs(kernel(tilt + 1j * step * stop)))
        if stop >= limit < MAX_NODES:
            total, tail = _plain_sum(terms.real), 0.0
        else:
            total, tail = _settle(terms.real, last, smooth, step * stop >= _CYCLES * cycle)
        best = min(best, (tail / abs(total) if total else math.inf, total))
        if best[0] <= SETTLED:
            break
        stop = min(2 * stop, limit)
        if terms.size >= stop:
            if best[0] <= TOLERABLE:
                break
            raise AccuracyError(
                f"the characteristic function of the privacy loss decays too slowly for "
                f"{law.count} steps: {stop} nodes leave a relative error of {best[0]:.1e}"
            )
    tail, total = best
    magnitude = abs(total) * step / (2.0 * math.pi)
    if not (magnitude > 0 and math.isfinite(magnitude)):
        raise AccuracyError("the contour integral cancelled to nothing")
    # With the mean exact, quadrature errs relative to the curvature part of K only.
    lean = 0.0 if law.mean_is_precise else abs(tilt)
    size = math.fsum(
        n * (2.0 * x.excess + lean * math.sqrt(x.variance))
        for n, x in zip(counts, tilted, strict=True)
    )
    spread = math.fsum(n * math.sqrt(x.variance) for n, x in zip(counts, tilted, strict=True))
    rounding = ROUNDING * (
        8.0 + abs(drift) + abs(excess) + 0.25 * math.sqrt(law.count) + lean * spread
    )
    cancellation = max(1.0, float(np.abs(terms).sum()) / abs(total))
    error = rounding * cancellation + tail + max(x.error for x in tilted) * (1.0 + abs(size))
    return StripValue(log_front + math.log(magnitude), error)


def _revival(tilted: list[Tilted], counts: list[int]) -> float:
    """Return Π aᵢ^nᵢ, what |φ_t(y)| returns to again and again where atoms carry weights aᵢ.

    Between two such returns the terms look as if they had died out.
    """
    if any(part.atomic <= 0 for part in tilted):
        return 0.0
    return math.exp(
        math.fsum(n * math.log(part.atomic) for n, part in zip(counts, tilted, strict=True))
    )


def _plain_sum(terms: Array) -> float:
    return 2.0 * float(terms.sum()) - float(terms[0])


def _settle(terms: Array, last: Array, smooth: bool, complete: bool) -> tuple[float, float]:
    """Return the two-sided sum and the size of what its cut-off may have left out.

    Where terms have died out the sum is plain. Where they decay slowly but δ is smooth around ε, a
    smooth cut-off at Y averages δ over a width of order 1/Y with a kernel whose moments all vanish,
    so its error falls faster than any power of Y; the sums at Y and Y/2 show it, once the sum is
    `complete`: once every return of the atoms' oscillation has been seen.
    """
    plain = _plain_sum(terms)
    tail = 2.0 * terms.size * float(last[-(last.size // 8 + 1) :].max())
    if tail <= SETTLED * abs(plain):
        return plain, tail
    if not smooth:
        return plain, 4.0 * terms.size * float(last.mean())
    if not complete:
        return plain, math.inf
    place = np.arange(terms.size) / terms.size
    full, half = (_plain_sum(terms * 0.5 * erfc(_TAPER * (s * place - 0.75))) for s in (1.0, 2.0))
    return full, abs(full - half)


def _terms(
    tilted: list[Tilted],
    counts: list[int],
    gap: float,
    tilt: float,
    step: float,
    start: int,
    stop: int,
    kernel: Kernel,
) -> Complex:
    """Return e^{F(z_k) − F(t)} G(z_k) for k = start, …, stop − 1."""
    y = step * np.arange(start, stop)
    exponent = 1j * y * gap
    for part, count in zip(tilted, counts, strict=True):
        exponent = exponent + count * log_characteristic_grid(part, step, start, stop)
    return np.asarray(np.exp(exponent) * kernel(tilt + 1j * y))
