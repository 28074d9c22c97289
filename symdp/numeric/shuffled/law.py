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

from symdp.numeric.answer import MOST_NODES

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

    def transform_less_one(self, points: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Return E[e^{zX}] − 1 at complex z, without cancellation."""
        sums = np.empty(points.shape, dtype=np.complex128)
        rows = max(1, MOST_NODES // max(2 * self.values.size, 1))
        for start in range(0, points.size, rows):
            block = points[start : start + rows]
            exponents = np.multiply.outer(block, self.values)
            sums[start : start + rows] = np.expm1(exponents) @ self.masses
        return sums

    def cgf(self, tilt: float) -> float:
        """Return log E[e^{tX}] at a real tilt, inf beyond the doubles."""
        return log_moment(self.masses, tilt * self.values)

    def spread(self, tilt: float) -> float:
        """Return the standard deviation of X under the tilted law."""
        weights = np.exp(np.log(self.masses) + tilt * self.values)
        total = float(weights.sum()) + self.remaining
        mean = float(weights @ self.values) / total
        square = float(weights @ self.values**2) / total
        return float(np.sqrt(max(square - mean * mean, 0.0)))


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
