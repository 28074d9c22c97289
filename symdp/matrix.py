r"""Sensitivities of correlated noise: matrix mechanisms, DP-FTRL trees and banded matrices.

A matrix mechanism publishes a function of C x + z, z normal with independent entries of standard
deviation σ; row t of x is what the records of step t contribute, each with a norm of at most 1. One
record moves C x by at most sens(C), and the whole run is *one* Gaussian step of that shift. Where
contributions depend on earlier outputs, C must be lower triangular [Denisov, McMahan, Rush, Smith,
Thakurta 2022]. With several participations π, any two of them `separation` steps apart or more,

.. math:: \mathrm{sens}(C)^2 = \max_\pi \max_u \sum_{i,j \in \pi} (C^T C)_{ij}
   \langle u_i, u_j \rangle \le \max_\pi \sum_{i,j \in \pi} |C^T C|_{ij} .

Where columns so far apart are orthogonal, as in a banded matrix, only the diagonal is left and a
dynamic programme finds the maximum [Choquette-Choo and others 2023, arXiv 2306.08153].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symdp.arguments import real
from symdp.errors import InputError

__all__ = ["CyclicPoisson", "Sensitivity", "cyclic_poisson", "sensitivity", "tree"]

MOST_ENTRIES = 50_000_000  # of C: 400 MB
_UNIT = np.finfo(np.float64).eps
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sensitivity:
    """What one record moves C x by at most.

    Attributes
    ----------
    lower, upper
        Ends of an interval that holds it, rounded outwards; account with `upper`.
    pattern
        Steps of participation that move it by `lower`.
    """

    lower: float
    upper: float
    pattern: tuple[int, ...]

    @property
    def is_exact(self) -> bool:
        """Whether both ends agree up to rounding."""
        return self.upper - self.lower <= 1e-9 * self.upper

    def __float__(self) -> float:
        """Return the upper end."""
        return self.upper


@dataclass(frozen=True)
class CyclicPoisson:
    """The Poisson steps that a banded mechanism with cyclic sampling amounts to.

    Attributes
    ----------
    sensitivity
        The largest norm of a column, the shift of each step; σ over it is the noise multiplier.
    rate
        The sampling rate of each step, b q.
    steps
        How many there are, ⌈T/b⌉.
    """

    sensitivity: float
    rate: float
    steps: int


def sensitivity(
    C: ArrayLike,
    *,
    bands: int | None = None,
    participations: int = 1,
    separation: int | None = None,
) -> Sensitivity:
    """Return the sensitivity of x ↦ C x for contributions of norm 1.

    Parameters
    ----------
    C : a matrix with a column for every step, of full column rank; square or with more rows
    bands : C is lower triangular and zero from the `bands`-th diagonal below the main one on; this
        is checked. The separation is then `bands` where it is left out
    participations : the most steps that one record takes part in
    separation : the least distance of two participations of one record; 1 if there is no rule

    Raises
    ------
    InputError : C is not a finite matrix, is singular, or has more bands than said; a number that
        is no positive integer; several participations without bands or a separation.

    Examples
    --------
    >>> round(float(sensitivity([[1, 0, 0], [0.5, 1, 0], [0, 0.5, 1]], bands=2)), 12)
    1.11803398875
    >>> sensitivity([[1, 0, 0], [0.5, 1, 0], [0, 0.5, 1]], bands=2, participations=2).pattern
    (0, 2)
    """
    matrix, scale = _scaled(_checked(C, bands))
    times = _whole(participations, "participations")
    steps = matrix.shape[1]
    if separation is None and bands is None and times > 1:
        raise InputError(
            "several participations need bands=, or separation=: the least distance of two of them"
        )
    apart = _whole(separation if separation is not None else bands or 1, "separation")
    gram = np.abs(matrix.T @ matrix)
    # |fl(CᵀC) − CᵀC| ≤ γ |C|ᵀ|C|; the factor at the end covers what follows.
    rounding = 2.0 * matrix.shape[0] * _UNIT
    gram = gram + rounding * (np.abs(matrix).T @ np.abs(matrix))
    squares = np.diagonal(gram)
    total, pattern = _best(squares, times, apart)
    low = float(np.linalg.norm(matrix[:, list(pattern)].sum(axis=1)))
    i, j = np.indices(gram.shape)
    far = np.abs(i - j) >= apart
    if times > 1 and gram[far].any():
        shares = _best_of_rows(np.where(far | (i == j), gram, 0.0), times, apart)
        total, _ = _best(shares, times, apart)
    else:
        low = math.sqrt(float(squares[list(pattern)].sum()))
    slack = 4.0 * (steps + matrix.shape[0]) * _UNIT
    single = math.sqrt(float(squares.max()))
    if low < single:
        low = single
        pattern = (int(squares.argmax()),)
    upper = math.sqrt(total) * (1.0 + slack)
    return Sensitivity(float(low * (1.0 - slack)) * scale, float(upper) * scale, pattern)


def tree(steps: int) -> Array:
    """Return the strategy matrix of a binary tree over steps: a row for every complete node.

    A step is in one node of every level, so that one participation moves the tree by the square
    root of the number of levels above it [Dwork, Naor, Pitassi, Rothblum 2010; Kairouz and others
    2021, DP-FTRL].

    Raises
    ------
    InputError : the number is no positive integer, or the matrix would be too large.

    Examples
    --------
    >>> round(float(sensitivity(tree(8))) ** 2, 9)
    4.0
    """
    count = _whole(steps, "steps")
    if 2 * count * count > MOST_ENTRIES:
        raise InputError(
            f"a tree over {count} steps has too many entries; "
            "symdp.tree_strategy.tree_sensitivity needs no matrix"
        )
    rows = []
    width = 1
    while width <= count:
        for start in range(0, count - width + 1, width):
            row = np.zeros(count)
            row[start : start + width] = 1.0
            rows.append(row)
        width *= 2
    return np.array(rows)


def cyclic_poisson(C: ArrayLike, bands: int, rate: float) -> CyclicPoisson:
    """Return the Poisson steps that a banded mechanism with cyclic sampling amounts to.

    The records are divided into b = `bands` parts once. Step t draws from part t mod b, each record
    with probability b q, so that batches have the size of Poisson batches at rate q. A record then
    takes part b steps apart or more, its columns are orthogonal, and its ⌈T/b⌉ chances are Poisson
    steps on a Gaussian of the largest column norm [arXiv 2306.08153, Theorem 4].

    Raises
    ------
    InputError : as for `sensitivity`, or a rate q that is no number with b q in (0, 1].

    Examples
    --------
    >>> cyclic_poisson([[1, 0, 0], [0.5, 1, 0], [0, 0.5, 1]], 2, 0.01).steps
    2
    """
    size = sensitivity(C, bands=bands).upper
    share = bands * real(rate, "rate")
    if not 0 < share <= 1:
        raise InputError(f"rate = {rate!r:.40}: bands times rate must lie above 0 and up to 1")
    steps = np.asarray(C).shape[1]
    return CyclicPoisson(size, share, -(-steps // bands))


def _scaled(matrix: Array) -> tuple[Array, float]:
    """Return the matrix over a power of two, so that no square leaves the range of doubles."""
    scale = 2.0 ** (math.frexp(float(np.abs(matrix).max()))[1] - 1)
    return matrix / scale, scale


def _checked(C: ArrayLike, bands: int | None) -> Array:
    try:
        matrix = np.array(C, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("C must be a matrix of numbers, one row as long as the next") from None
    if matrix.ndim != 2 or not 0 < matrix.size <= MOST_ENTRIES:
        raise InputError(f"C must be a matrix, not an array of shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        row, column = (int(index) for index in np.argwhere(~np.isfinite(matrix))[0])
        raise InputError(f"C[{row}, {column}] = {matrix[row, column]} is not a finite number")
    # The rank of a triangular matrix needs no decomposition, which takes minutes for 5 000 steps.
    square = matrix.shape[0] == matrix.shape[1] and not np.triu(matrix, 1).any()
    full = bool(np.diagonal(matrix).all()) if square else False
    rank = matrix.shape[1] if full else int(np.linalg.matrix_rank(matrix))
    if rank < matrix.shape[1]:
        raise InputError(
            f"C is singular: rank {rank} with {matrix.shape[1]} columns, so that the steps cannot "
            "be told from C x; use a matrix of full column rank"
        )
    if bands is not None:
        width = _whole(bands, "bands")
        i, j = np.indices(matrix.shape)
        outside = np.argwhere((matrix != 0) & ((j > i) | (i - j >= width)))
        if len(outside):
            row, column = (int(index) for index in outside[0])
            raise InputError(
                f"C[{row}, {column}] is not 0: with bands = {width} only the diagonal and the "
                f"{width - 1} below it are filled"
            )
    return matrix


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} must be 1, 2, 3 or more, not {value!r:.40}")
    return int(value)


def _best(values: Array, times: int, apart: int) -> tuple[float, tuple[int, ...]]:
    """Return the largest sum of at most `times` values, `apart` places from one another."""
    count = len(values)
    tops = [np.zeros(count + 1)]
    for _ in range(min(times, -(-count // apart))):
        top = np.zeros(count + 1)
        for index in range(count):
            taken = values[index] + tops[-1][max(index + 1 - apart, 0)]
            top[index + 1] = max(top[index], taken)
        tops.append(top)
    places: list[int] = []
    index = count
    level = len(tops) - 1
    while index > 0 and level > 0:
        if tops[level][index] == tops[level][index - 1]:
            index -= 1
        else:
            places.append(index - 1)
            index = max(index - apart, 0)
            level = level - 1
    return float(tops[-1][count]), tuple(reversed(places))


def _best_of_rows(values: Array, times: int, apart: int) -> Array:
    """Return for every row the largest sum that `_best` may find in it."""
    count = values.shape[1]
    top = np.zeros((count + 1, values.shape[0]))
    for _ in range(min(times, -(-count // apart))):
        last = top
        top = np.zeros_like(top)
        for index in range(count):
            taken = values[:, index] + last[max(index + 1 - apart, 0)]
            top[index + 1] = np.maximum(top[index], taken)
    return np.asarray(top[count])
