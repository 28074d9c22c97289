"""Grids of contribution norms: where a norm is counted, rounded towards the larger loss."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symdp.errors import InputError
from symdp.numeric.step import Array

MOST_EDGES = 4096  # kinds of steps that are told apart
_SLACK = 2.0**-22  # two units in the last place of a single-precision norm
_GEOMETRIC_SPAN = 300.0  # largest over smallest noise multiplier of a geometric grid


@dataclass(frozen=True)
class NormGrid:
    """Upper edges of norm buckets, as shares of the clip: 0 < e_1 < … < e_B = 1.

    Bucket 0 holds norms that are exactly 0 and costs nothing; bucket b holds (e_{b−1}, e_b] and is
    charged as e_b.

    Attributes
    ----------
    name
        The text that makes it again: "norm:256", "geometric:64", "geometric:256:300" or "given".
    edges
        e_1 … e_B.

    Examples
    --------
    >>> grid = NormGrid.parse("norm:4")
    >>> grid.place(np.array([0.0, 0.2, 0.25, 0.26, 1.0])).tolist()
    [0, 1, 1, 2, 4]
    """

    name: str
    edges: Array

    @classmethod
    def parse(cls, grid: str | Sequence[float] | Array) -> NormGrid:
        """Return the grid of a name or of given edges.

        Raises
        ------
        InputError
            If the name is unknown or the edges do not rise to 1.
        """
        if isinstance(grid, str):
            kind, _, rest = grid.partition(":")
            parts = rest.split(":") if rest else []
            try:
                numbers = [float(part) for part in parts]
            except ValueError:
                numbers = []
            count = int(numbers[0]) if numbers else 0
            if not 1 <= count <= MOST_EDGES or kind not in {"norm", "geometric"}:
                raise InputError(
                    f"grid {grid!r}: it is norm:COUNT or geometric:COUNT[:SPAN], COUNT up to "
                    f"{MOST_EDGES}"
                )
            if kind == "norm":
                return cls(grid, np.arange(1, count + 1) / count)
            span = numbers[1] if len(numbers) > 1 else _GEOMETRIC_SPAN
            if not span > 1.0:
                raise InputError(f"grid {grid!r}: the span must lie above 1")
            return cls(grid, np.geomspace(1.0 / span, 1.0, count))
        edges = np.asarray(grid, dtype=np.float64)
        fine = edges.ndim == 1 and 1 <= edges.size <= MOST_EDGES
        if not fine or not (np.diff(edges) > 0).all() or not edges[0] > 0 or edges[-1] != 1.0:
            raise InputError("grid: given edges must rise from above 0 to exactly 1")
        return cls("given", edges)

    @property
    def count(self) -> int:
        """The number of buckets, the free one included."""
        return self.edges.size + 1

    @property
    def digest(self) -> str:
        """A hash of the edges, kept with a run so that its counts are read with the same grid."""
        return hashlib.sha256(np.ascontiguousarray(self.edges, dtype="<f8").tobytes()).hexdigest()

    @property
    def is_linear(self) -> bool:
        """Whether places are found by one multiplication."""
        return self.name.startswith("norm:")

    def place(self, shares: NDArray[np.floating]) -> NDArray[np.intp]:
        """Return the bucket of norms given as shares of the clip, none above 1."""
        if not self.is_linear:
            return np.where(shares > 0.0, np.searchsorted(self.edges, shares) + 1, 0)
        return self.place_scaled(shares, 1.0)

    def place_scaled(self, norms: NDArray[np.floating], clip: float) -> NDArray[np.intp]:
        """Return the buckets of norms at most `clip`, never rounded to a smaller one.

        A product with a power of two is exact; any other is widened by two units in the last
        place of single precision, whose norms it serves.
        """
        if not self.is_linear:
            return self.place(norms / norms.dtype.type(clip))
        factor = self.edges.size / clip
        if np.log2(factor) % 1.0 != 0.0:
            factor *= 1.0 + _SLACK
        found = np.ceil(norms * norms.dtype.type(factor))
        return np.minimum(found, self.edges.size).astype(np.intp)

    def levels(self, multiplier: float) -> tuple[Array, Array]:
        """Return noise over contribution of every bucket, rounded down and rounded up."""
        lower = np.concatenate([[0.0], self.edges[:-1]]) * (1.0 - 4.0 * _SLACK)
        with np.errstate(divide="ignore"):
            below, above = multiplier / self.edges, multiplier / lower
        return np.concatenate([[np.inf], below]), np.concatenate([[np.inf], above])
