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

from symdp.accountant.atoms import finite_sum
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
_FAR = 15.0
_SOME_FREQUENCY = 1.0
_TAPER = 24.0  # the cut-off falls from 1 − 1e-17 at Y/2 to 1e-17 at Y


@dataclass(frozen=True)
class StripValue:
    """log |I(t)| and an estimate of its relative error."""

    log_value: float
    relative_error: float


def continuous_kernel(z: Complex) -> Complex:
    """Return 1/(z(1+z)), the transform of the hockey-stick payoff (1 − e^{−x})⁺."""
    return 1.0 / (z * (1.0 + z))


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
    for asked in (below, above):
        side = asked
        try:
            bound = law.log_transform(side, epsilon, float(max(side.max(), tilt)))
        except AccuracyError:  # too far out for a quadrature: half as far will do
            side = 0.5 * (asked + tilt)
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
    if abs(tilt) > _FAR:
        # Node sets made for frequencies know the distance from the end of the range.
        tilted = [
            part if part.nodes.origin is not None else near
            for near, part in zip(tilted, law.tilted(tilt, _SOME_FREQUENCY), strict=True)
        ]
    counts = [count for _, count in law.parts]
    distance = law.drift(epsilon, tilted)
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
        points = max(3, math.ceil(period / step))
        points += 1 - points % 2  # odd, so that the nodes are symmetric and none is on the seam
        step, limit = period / points, points // 2 + 1
    reach = FIRST_REACH / math.sqrt(variance) if variance > 0 else math.inf
    stop = int(min(limit, max(24, math.ceil(min(reach / step, MAX_NODES / 2)))))
    terms = np.empty(0, dtype=np.complex128)
    best = (math.inf, 0.0)
    revival = _revival(tilted, counts) if smooth and law.has_atoms else 0.0
    cycle = law.atom_cycle if revival * law.count > 1e-17 else 0.0
    exact = 0.0
    single = revival > SETTLED and tilt > -1.0
    if single:
        # What comes back again and again is the sum of atoms alone, which is known exactly.
        listed = finite_sum(law, epsilon, atomic=True)
        if listed is None:
            single = False
        else:
            log_exact = listed[0] if tilt > 0 else listed[1]
            exact = math.exp(min(log_exact - log_front, 700.0)) * 2.0 * math.pi / step
            revival = 0.0
    while True:
        finer = law.tilted(tilt, step * stop)
        block = _terms(finer, counts, gap, tilt, step, terms.size, stop, kernel)
        if single:
            block = block - _atomic_terms(tilted, counts, gap, tilt, step, terms.size, stop, kernel)
        terms = np.concatenate([terms, block])
        last = np.maximum(
            np.abs(block), revival * abs(kernel(np.asarray([complex(tilt, step * stop)]))[0])
        )
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
    tail, total = tail * abs(total), total + math.copysign(exact, tilt)
    tail /= abs(total)
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


def _atomic_terms(
    tilted: list[Tilted],
    counts: list[int],
    gap: float,
    tilt: float,
    step: float,
    start: int,
    stop: int,
    kernel: Kernel,
) -> Complex:
    """Return the terms that the sums of atoms alone would have."""
    y = step * np.arange(start, stop, dtype=np.float64)
    modulus, angle = np.ones(y.size), y * gap
    for part, count in zip(tilted, counts, strict=True):
        here = part.nodes.atomic
        turns = np.exp(1j * np.multiply.outer(y, part.deviation[here]))
        value = (turns * part.weight[here]).sum(axis=1)
        modulus = modulus * np.abs(value) ** count
        angle = angle + count * np.angle(value)
    return np.asarray(
        modulus * np.exp(1j * angle) * kernel(np.asarray(tilt + 1j * y, dtype=np.complex128))
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
    if smooth and not complete:
        return plain, math.inf
    tail = 2.0 * terms.size * float(last[-(last.size // 8 + 1) :].max())
    if tail <= SETTLED * abs(plain):
        return plain, tail
    if not smooth:
        return plain, 4.0 * terms.size * float(last.mean())
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
    y = step * np.arange(start, stop, dtype=np.float64)
    exponent = 1j * y * gap
    for part, count in zip(tilted, counts, strict=True):
        exponent = exponent + count * log_characteristic_grid(part, step, start, stop)
    return np.asarray(np.exp(exponent) * kernel(np.asarray(tilt + 1j * y, dtype=np.complex128)))
