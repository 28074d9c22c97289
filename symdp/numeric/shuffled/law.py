r"""The law of one answer's part of a blanket sum, as nodes or as cells.

With ω below every law R_x that an answer may have, the part is 0 with probability 1 − ∫ω, else

.. math:: X = \frac{R_0(Y) - e^{ε} R_1(Y)}{ω(Y)}, \qquad Y \sim ω.

Outputs of which ω has nothing, or so little that X is beyond any use, are counted apart: what they
add to δ is at most ∫(R₀ − e^ε R₁)₊ over them, as (a + b)₊ ≤ a₊ + b₊.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True)
class PartLaw:
    """Values X with their masses under ω; the remaining probability is that of 0."""

    values: Array
    masses: Array
    # intervals of X, in columns: lower and upper ends, and the least density of X between them;
    # none where the values are atoms
    windows: Array = field(default_factory=lambda: np.empty(0))

    @property
    def remaining(self) -> float:
        """The probability of 0 that the masses leave."""
        return 1.0 - float(self.masses.sum())

    def transform_less_one(
        self, tilt: float, frequencies: Array, share: float
    ) -> NDArray[np.complex128]:
        """Return E[e^{zX}] − 1 at z = t + iy, y = 0, h, 2h, …, without cancellation.

        e^{iv} − 1 = −2 sin²(v/2) + 2i sin(v/2) cos(v/2), so that no difference is taken. Of many
        values a frequency is one of a few plus a multiple of so many, and the sums are products of
        matrices. Values of which the tilt leaves less than a share have no turns.
        """
        growth = float(self.masses @ np.expm1(tilt * self.values))
        weights = 2.0 * self.masses * np.exp(tilt * self.values)
        counts = weights > share
        weights = weights[counts]
        halves = 0.5 * self.values[counts]
        count = frequencies.size
        size = min(64, count) if halves.size > 64 else 1
        starts = frequencies[::size]
        losses = np.zeros((starts.size, size))
        turns = np.zeros((starts.size, size))
        # Blocks of which products of matrices keep to one processor.
        width = 1 << 7 if size > 1 else 1 << 6
        height = (1 << 18) // (width * size)
        for first in range(0, halves.size, width):
            part = slice(first, first + width)
            sine, cosine = _turned(frequencies[:size], halves[part])
            upper = (sine**2).T
            lower = (cosine**2).T
            mixed = (sine * cosine).T
            for row in range(0, starts.size, height):
                rows = slice(row, row + height)
                sine, cosine = _turned(starts[rows], halves[part])
                both = sine * cosine * weights[part]
                above = sine**2 * weights[part]
                below = cosine**2 * weights[part]
                losses[rows] += above @ lower + 2.0 * (both @ mixed) + below @ upper
                turns[rows] += both @ (lower - upper) + (below - above) @ mixed
        sums: NDArray[np.complex128] = growth - losses + 1j * turns
        return sums.ravel()[:count]

    def cgf(self, tilt: float) -> float:
        """Return log E[e^{tX}] at a real tilt, inf beyond the doubles."""
        return log_moment(self.masses, tilt * self.values)

    def tilted(self, tilt: float) -> tuple[float, float]:
        """Return mean and variance of X under the tilted law, at a tilt within the doubles."""
        weights = self.masses * np.exp(tilt * self.values)
        total = float(weights.sum()) + self.remaining
        # below it a tilt leaves nothing, and its square is no number
        values = np.maximum(self.values, -1e150)
        moments = weights * values
        mean = float(moments.sum()) / total
        with np.errstate(over="ignore"):
            square = float((moments * values).sum()) / total
        return mean, max(square - mean * mean, 0.0)

    def spread(self, tilt: float) -> float:
        """Return the standard deviation of X under the tilted law."""
        weights = np.exp(np.log(self.masses) + tilt * self.values)
        total = float(weights.sum()) + self.remaining
        mean = float(weights @ self.values) / total
        square = float(weights @ self.values**2) / total
        return float(np.sqrt(max(square - mean * mean, 0.0)))


def _turned(frequencies: Array, halves: Array) -> tuple[Array, Array]:
    angles = np.multiply.outer(frequencies, halves)
    return np.sin(angles), np.cos(angles)


def log_moment(masses: Array, exponents: Array) -> float:
    """Return log(1 + Σ m (e^x − 1)), inf beyond the doubles."""
    with np.errstate(over="ignore"):
        small = np.expm1(np.minimum(exponents, 1.0))
        large = np.exp(np.log(masses) + exponents) - masses
        growth = float(np.where(exponents < 1.0, masses * small, large).sum())
    return float(np.log1p(growth))


@dataclass(frozen=True)
class Cells:
    """Masses and means of X on cells, and between which ends it lies there."""

    masses: Array
    means: Array
    lower: Array
    upper: Array

    def joined(self, other: Cells) -> Cells:
        """Return these cells and others."""
        mine = (self.masses, self.means, self.lower, self.upper)
        theirs = (other.masses, other.means, other.lower, other.upper)
        return Cells(*map(np.concatenate, zip(mine, theirs, strict=True)))
