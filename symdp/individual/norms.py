"""Reading contribution norms: arrays, .npy files, Parquet tables; in chunks, checked."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.errors import InputError

LAYOUTS = ("steps-records", "records-steps")
_VALUES = 1 << 24  # of one chunk


def open_norms(source: Any) -> NDArray[Any]:
    """Return an array of norms: one that is given, or a .npy file's, memory-mapped.

    Raises
    ------
    InputError
        If the file cannot be read, is empty or holds no numbers.
    """
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
    found: list[list[float]] = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append([float(cell) for cell in line])
        except ValueError:
            if number > 1:
                raise InputError(f"{path}: row {number} holds what is no number") from None
        if len(line) != len(lines[0]):
            raise InputError(f"{path}: row {number} has {len(line)} cells, not {len(lines[0])}")
    return np.asarray(found, dtype=np.float64)


def _wide_parquet(path: Path) -> NDArray[Any]:
    from symdp.individual.output import pyarrow

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
    """Yield (records, their norms as records × steps) of an array whose layout is stated.

    Raises
    ------
    InputError
        If the layout is not stated or the array is not two-dimensional.
    """
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
    """Return norms between 0 and the clip; NaN, negative ones and, by option, larger are refused.

    Parameters
    ----------
    block
        Norms, records along the first axis.
    clip
        C.
    first
        The number of the first record, for messages.
    squared
        Whether the values are squared norms.
    above
        What to do with norms above the clip: "clip" or "refuse".
    """
    least, most = float(block.min()), float(block.max())
    if not (least >= 0.0 and most < np.inf):
        wrong = ~(np.isfinite(block) & (block >= 0.0))
        rows = np.unique(np.nonzero(wrong)[0]) + first
        shown = ", ".join(str(row) for row in rows[:5]) + (", …" if rows.size > 5 else "")
        raise InputError(
            f"norms of records {shown} ({rows.size} in all) are NaN, negative or infinite"
        )
    if squared:
        block = np.sqrt(block)
        most = float(np.sqrt(most))
    limit = block.dtype.type(clip)
    if most > limit:
        if above == "refuse":
            rows = np.unique(np.nonzero(block > limit)[0]) + first
            shown = ", ".join(str(row) for row in rows[:5]) + (", …" if rows.size > 5 else "")
            raise InputError(
                f"norms of records {shown} ({rows.size} in all) lie above the clip {clip:g}; clip "
                "them, or raise the clip"
            )
        block = np.minimum(block, limit)
    return block
