"""The integrand on a mesh of frequencies, up to where a smooth cut-off changes little.

Near y = 0, where |φ|ⁿ is large, each value is a plain sum, accurate relative to 1 − φ. Beyond, one
product or transform gives all values of φ_t to 5e-14 of Σ pⱼ, so that φ_tⁿ is wrong by
n·5e-14·|φ_t|ⁿ⁻¹, and the rounding of y·ℓ turns it by n·y·E|ℓ|·2e-16. Both are added up as they
occur.
"""

from __future__ import annotations

import math

import numpy as np

from symdp.capacity import BLOCK
from symdp.errors import AccuracyError
from symdp.exact.accuracy import (
    FEW_NODES,
    LONG_LINE,
    MOST_NODES,
    NEGLIGIBLE,
    ROUNDING,
    SAFETY,
    TOLERABLE,
)
from symdp.exact.line import (
    Line,
    StripValue,
    continuous_kernel,
    first_line,
    kernel_modulus,
    loss_size,
    plain_sum,
)
from symdp.exact.mesh.smoothed import FAR_ABOVE, Smoothed, majorant_transform, smoothed
from symdp.law.elementary import Complex
from symdp.law.nufft import uniform_sum
from symdp.law.step import Array, Index
from symdp.law.tilted import Tilted
from symdp.law.total import SumLaw

_TRANSFORMED = 5e-14  # what kernel and rounding of the FFT change in φ, relative to Σ pⱼ = 1
_SPREAD = 8  # values of a transform for each loss: as long as it takes to spread them
_LARGEST = float(majorant_transform(np.zeros(1))[0]) / SAFETY  # ∫M, a proved bound


def mesh_value(law: SumLaw, epsilon: float, tilt: float, wanted: float = TOLERABLE) -> StripValue:
    """Return log |I(t)| at one ε, with an error that counts the cut-off, the FFT and rounding."""
    return mesh_line(law, epsilon, tilt, 0.0, wanted).value(epsilon)


def mesh_line(
    law: SumLaw, epsilon: float, tilt: float, beside: float, wanted: float = TOLERABLE
) -> Smoothed:
    """Return a line that serves every ε' with |ε' − ε| ≤ `beside`.

    Parameters
    ----------
    law, epsilon
        The total loss, of any kind, and ε in nats.
    tilt
        Where the line crosses the real axis; its place changes the cost and the rounding only.
    beside
        In nats.
    wanted
        What the cut-off may change, relative to the integral, where that is to be had.

    Raises
    ------
    AccuracyError
        If the mesh does not reach far enough beyond the tilt to bound anything.
    """
    tilted = law.tilted(tilt)
    line, _ = first_line(
        law, tilted, epsilon, tilt, continuous_kernel, math.inf, beside, 2 * FEW_NODES
    )
    gap = line.distance(epsilon) + line.shift
    most = _most_nodes(law, line)
    if most * line.step < FAR_ABOVE * (1.0 + abs(tilt)):
        raise AccuracyError(
            "too few values of the characteristic function tell what single values of the "
            "loss add up to; the method prv gives proved bounds"
        )
    size = abs(gap) + loss_size(law, tilted)
    nodes = _nodes_wanted(line, gap, wanted, most)
    while True:
        made = _up_to(law, line, nodes, size)
        total, _, change = made.sums(gap)
        short = change > 2.0 * wanted * abs(total) and made.left_out < change
        if nodes >= most or not short:
            return made
        nodes = min(most, 8 * nodes)


def predicted_error(law: SumLaw, epsilon: float, tilt: float) -> float:
    """Return about the relative error of a line at a tilt, as its first nodes tell.

    It is large where no tilt makes ε a typical sum: the integral cancels there.
    """
    tilted = law.tilted(tilt)
    line, _ = first_line(
        law, tilted, epsilon, tilt, continuous_kernel, math.inf, 0.0, 2 * FEW_NODES
    )
    reach = _most_nodes(law, line) * line.step
    if reach < FAR_ABOVE * (1.0 + abs(tilt)) or line.places.size >= 2 * FEW_NODES:
        return math.inf
    total, mass, modulus = _first_sums(line, line.distance(epsilon) + line.shift)
    if not total > 0:
        return math.inf
    rounded = (ROUNDING * line.rounding + law.count * _TRANSFORMED) * modulus
    return (_LARGEST * mass / reach**2 + rounded) / total


def _most_nodes(law: SumLaw, line: Line) -> int:
    """Return how many nodes a line may have: more only where the bound needs them.

    A loss with a density has more nodes itself the farther out it is asked, so that a line of it
    ends sooner.
    """
    most = LONG_LINE // 2 if law.is_spread else MOST_NODES
    while most < 4 * MOST_NODES and most * line.step < FAR_ABOVE * (1.0 + abs(line.tilt)):
        most *= 2
    return most


def _first_sums(line: Line, gap: float) -> tuple[float, float, float]:
    """Return the sum of the first nodes, that of the density near ε, and that of the moduli."""
    turned = line.values * np.exp(1j * gap * line.places)
    z = line.tilt + 1j * line.places
    mass = abs(plain_sum((turned * z * (1.0 + z)).real))
    return abs(plain_sum(turned.real)), mass, 2.0 * float(np.abs(turned).sum())


def _nodes_wanted(line: Line, gap: float, wanted: float, most: int) -> int:
    """Return how many nodes bound the change by what is wanted, as far as the first ones tell."""
    total, mass, _ = _first_sums(line, gap)
    reach = math.sqrt(_LARGEST * mass / (wanted * total)) if total > 0 else math.inf
    reach = max(reach, 1.01 * FAR_ABOVE * (1.0 + abs(line.tilt)))
    needed = min(max(reach / line.step, 4.0 * line.places.size, FEW_NODES), float(most))
    return min(most, 1 << math.ceil(math.log2(needed)))


def _up_to(law: SumLaw, line: Line, nodes: int, size: float) -> Smoothed:
    """Return the line with values at so many nodes, cut off smoothly at the last.

    Where so much as the error of φ_t leaves |φ_t|ⁿ too small to count, nodes are left out.
    """
    start, step = line.places.size, line.step
    if nodes <= start:
        return smoothed(line, np.empty(0), np.empty(0, dtype=np.complex128), step * start, 0.0)
    tilted = law.tilted(line.tilt, step * nodes)
    least = -1.5 * NEGLIGIBLE - math.log(nodes)
    # Those left out, and what they may add to the mass near ε, which is divided by a larger T².
    left_out = 4.0 * math.exp(-1.5 * NEGLIGIBLE) * kernel_modulus(continuous_kernel, line.tilt, 0.0)
    fixed_error, turned = max(part.error for part in tilted), ROUNDING * size
    # The steps that leave the fewest places first.
    parts = sorted(
        zip(tilted, (n for _, n in law.terms), strict=True),
        key=lambda pair: -pair[1] * pair[0].variance,
    )
    kept: list[tuple[Array, Complex]] = []
    # Each transform spreads all losses once, which shall not cost more than its own values.
    length = max(LONG_LINE, _SPREAD * max(part.weight.size for part in tilted))
    for first in range(start, nodes, length):
        place = np.arange(first, min(first + length, nodes))
        exponent, unsure = np.zeros(place.size, dtype=np.complex128), np.zeros(place.size)
        most = np.zeros(place.size)
        for part, weight in parts:
            phi = _transform(part, step, place)
            modulus = np.maximum(np.abs(phi), np.finfo(float).tiny)
            error = _TRANSFORMED + ROUNDING * math.sqrt(part.variance) * step * place
            unsure += weight * error / modulus
            exponent.real += weight * np.log(modulus)
            exponent.imag += weight * np.arctan2(phi.imag, phi.real)
            most += weight * np.log(np.minimum(modulus + error, 1.0))
            seen = np.flatnonzero(most > least)
            place, most = place[seen], most[seen]
            exponent, unsure = exponent[seen], unsure[seen]
        y: Array = step * place.astype(np.float64)
        values = np.exp(exponent) * continuous_kernel(np.asarray(line.tilt + 1j * y))
        unsure = np.minimum(unsure, 1e9) + turned * y + fixed_error
        left_out += 2.0 * float(np.abs(values) @ unsure)
        kept.append((y, values))
    places, terms = (np.concatenate(column) for column in zip(*kept, strict=True))
    return smoothed(line, places, terms, step * nodes, left_out)


def _transform(part: Tilted, step: float, places: Index) -> Complex:
    """Return Σ wⱼ e^{ikhdⱼ} for some k in rising order."""
    angle = np.fmod(step * part.deviation, 2.0 * np.pi)
    first, last = (int(places[0]), int(places[-1]) + 1) if places.size else (0, 0)
    # An exponential for each place and loss costs as much as some ten products.
    if 10 * places.size >= last - first > 0:
        return uniform_sum(part.weight, angle, first, last)[places - first]
    rows = max(1, BLOCK // max(angle.size, 1))
    found = np.empty(places.size, dtype=np.complex128)
    for k in range(0, places.size, rows):
        some = slice(k, k + rows)
        found[some] = np.exp(1j * np.multiply.outer(places[some], angle)) @ part.weight
    return found
