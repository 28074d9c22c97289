"""Contribution norms: read from arrays, .npy files and tables, checked, and where they are counted.

A norm is counted on a grid, rounded towards the larger loss.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.errors import InputError
from symdp.numeric.step import Array

LAYOUTS = ("steps-records", "records-steps")
_VALUES = 1 << 24  # of one chunk
_MOST_EDGES = 4096  # kinds of steps that are told apart
_SLACK = 2.0**-22  # two units in the last place of a single-precision norm
_GEOMETRIC_SPAN = 300.0  # largest over smallest noise multiplier of a geometric grid


def open_norms(source: Any) -> NDArray[Any]:
    """Return an array of norms: one that is given, or a .npy file's, memory-mapped."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        if path.suffix.lower() == ".parquet":
            return _wide_parquet(path)
        if path.suffix.lower() == ".csv":
            return _table_of_text(path)
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            reason = getattr(error, "strerror", None) or "it is no .npy, .csv or .parquet"
            raise InputError(f"{path}: cannot be read ({reason})") from None
    else:
        array = np.asarray(source)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise InputError(
            f"norms of type {getattr(array, 'dtype', type(array))}: numbers are needed"
        )
    if array.size == 0:
        raise InputError("norms: there are none; an empty array or file accounts for nothing")
    return array


def _table_of_text(path: Path) -> NDArray[Any]:
    """Return the numbers of a CSV file, whose first line may be names."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if any(cell.strip() for cell in line)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as CSV ({str(error)[:80]})") from None
    rows: list[list[float]] = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append([float(cell) for cell in line])
        except ValueError:
            if number > 1:
                raise InputError(f"{path}: row {number} holds what is no number") from None
        if len(line) != len(lines[0]):
            raise InputError(f"{path}: row {number} has {len(line)} cells, not {len(lines[0])}")
    return np.asarray(rows, dtype=np.float64)


def _wide_parquet(path: Path) -> NDArray[Any]:
    from symdp.individual.result import pyarrow

    pa, pq = pyarrow()
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({str(error)[:80]})") from None
    if table.num_rows == 0:
        raise InputError(f"{path}: the table is empty")
    names = set(table.column_names)
    if {"record", "step", "norm"} <= names:
        return _long(table, path)
    columns = [table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names]
    return np.stack(columns, axis=1)


def _long(table: Any, path: Path) -> NDArray[Any]:
    """Return records × steps of a table with columns record, step, norm; every pair once."""
    record, step, norm = (
        table.column(name).to_numpy(zero_copy_only=False) for name in ("record", "step", "norm")
    )
    rows, at_row = np.unique(record, return_inverse=True)
    columns, at_column = np.unique(step, return_inverse=True)
    flat = at_row * columns.size + at_column
    if np.unique(flat).size != flat.size:
        raise InputError(f"{path}: a record has two norms for one step; each pair once is needed")
    if flat.size != rows.size * columns.size:
        raise InputError(
            f"{path}: {rows.size * columns.size - flat.size} norms of {rows.size} records × "
            f"{columns.size} steps are missing; write 0 where a record contributed nothing"
        )
    full = np.empty(flat.size, dtype=norm.dtype)
    full[flat] = norm
    return full.reshape(rows.size, columns.size)


def record_chunks(
    array: NDArray[Any], layout: str | None
) -> Iterator[tuple[slice, NDArray[np.floating[Any]]]]:
    """Yield (records, their norms as records × steps) of an array whose layout is stated."""
    if layout not in LAYOUTS:
        raise InputError(
            f"layout {layout!r}: state 'steps-records' or 'records-steps'; it is not guessed"
        )
    if array.ndim != 2:
        raise InputError(f"norms of shape {array.shape}: two dimensions are needed")
    by_record = layout == "records-steps"
    records, steps = array.shape if by_record else array.shape[::-1]
    size = max(1, _VALUES // steps)
    for start in range(0, records, size):
        rows = slice(start, min(start + size, records))
        block = array[rows] if by_record else np.ascontiguousarray(array[:, rows].T)
        yield rows, as_floats(block)


def as_floats(block: Any) -> NDArray[np.floating[Any]]:
    """Return norms as singles or doubles, whichever they are nearest to."""
    values = np.asarray(block)
    if values.dtype in (np.float32, np.float64):
        return values
    return values.astype(np.float32 if values.dtype == np.float16 else np.float64)


def checked(
    block: NDArray[np.floating[Any]],
    clip: float,
    first: int,
    *,
    squared: bool = False,
    above: str = "clip",
) -> NDArray[np.floating[Any]]:
    """Return norms between 0 and the clip C; what is no norm, or too large, is refused."""
    least, most = float(block.min()), float(block.max())
    if not (least >= 0.0 and most < np.inf):
        wrong = _records_in_words(~(np.isfinite(block) & (block >= 0.0)), first)
        raise InputError(f"norms of records {wrong} are NaN, negative or infinite")
    if squared:
        block = np.sqrt(block)
        most = float(np.sqrt(most))
    limit = block.dtype.type(clip)
    if most > limit:
        if above == "refuse":
            large = _records_in_words(block > limit, first)
            raise InputError(
                f"norms of records {large} lie above the clip {clip:g}; "
                "clip them, or raise the clip"
            )
        block = np.minimum(block, limit)
    return block


def _records_in_words(wrong: NDArray[np.bool_], first: int) -> str:
    """Return the first records of a mask in words, and how many they are."""
    rows = np.unique(np.nonzero(wrong)[0]) + first
    shown = ", ".join(str(row) for row in rows[:5]) + (", …" if rows.size > 5 else "")
    return f"{shown} ({rows.size} in all)"


@dataclass(frozen=True)
class NormGrid:
    """Upper edges of norm buckets, as shares of the clip: 0 < e_1 < … < e_B = 1.

    Bucket 0 holds norms that are exactly 0 and costs nothing; bucket b holds (e_{b−1}, e_b] and is
    charged as e_b.
    """

    # the text that makes it again: "norm:256", "geometric:64", "geometric:256:300" or "given"
    name: str
    edges: Array  # e_1 … e_B

    @classmethod
    def parse(cls, grid: str | Sequence[float] | Array) -> NormGrid:
        """Return the grid of a name or of given edges."""
        if isinstance(grid, str):
            kind, _, arguments = grid.partition(":")
            parts = arguments.split(":") if arguments else []
            try:
                numbers = [float(part) for part in parts]
            except ValueError:
                numbers = []
            count = int(numbers[0]) if numbers else 0
            if not 1 <= count <= _MOST_EDGES or kind not in {"norm", "geometric"}:
                raise InputError(
                    f"grid {grid!r}: it is norm:COUNT or geometric:COUNT[:SPAN], COUNT up to "
                    f"{_MOST_EDGES}"
                )
            if kind == "norm":
                return cls(grid, np.arange(1, count + 1) / count)
            span = numbers[1] if len(numbers) > 1 else _GEOMETRIC_SPAN
            if not span > 1.0:
                raise InputError(f"grid {grid!r}: the span must lie above 1")
            return cls(grid, np.geomspace(1.0 / span, 1.0, count))
        edges = np.asarray(grid, dtype=np.float64)
        fine = edges.ndim == 1 and 1 <= edges.size <= _MOST_EDGES
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
        buckets = np.ceil(norms * norms.dtype.type(factor))
        return np.minimum(buckets, self.edges.size).astype(np.intp)

    def levels(self, multiplier: float) -> tuple[Array, Array]:
        """Return noise over contribution of every bucket, rounded down and rounded up."""
        lower_edges = np.concatenate([[0.0], self.edges[:-1]]) * (1.0 - 4.0 * _SLACK)
        with np.errstate(divide="ignore"):
            below = multiplier / self.edges
            above = multiplier / lower_edges
        no_contribution = [np.inf]
        rounded_down = np.concatenate([no_contribution, below])
        rounded_up = np.concatenate([no_contribution, above])
        return rounded_down, rounded_up
