"""Individual accounting block by block: the answers of each block of records are a file."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from symdp.arguments import a_path, whole
from symdp.blocks import kept_blocks
from symdp.errors import InputError
from symdp.numeric.step import Array

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from symdp.individual.accounting import IndividualAccountant

_BLOCK = 100_000  # records: a few seconds and 100 MB of a worker


def in_folder(
    accountant: IndividualAccountant,
    folder: str | Path,
    *,
    delta: float | None = None,
    epsilon: ArrayLike | None = None,
    executor: Executor | None = None,
    block: int = _BLOCK,
    progress: Callable[[int, int], object] | None = None,
    method: str = "contour",
    direction: str | None = None,
) -> list[Path]:
    """Answer for every record, and keep the answers block by block in a folder.

    No more than the blocks on their way are held in memory where the counts are memory-mapped. A
    run that was ended goes on where it was.

    Parameters
    ----------
    accountant
        The records.
    folder
        Where the files are; made if it is not there.
    delta, epsilon
        One of the two, as for `IndividualAccountant.epsilon` and `IndividualAccountant.delta`.
    executor
        Anything with the `submit` of `concurrent.futures`: a process pool's, or a cluster's.
    block
        The number of records of a block.
    progress
        Called with the numbers of blocks that are there and in all.
    method, direction
        As for `IndividualAccountant.epsilon`.

    Returns
    -------
    One .npz file for each block of records in order, with the columns of `IndividualResult.save`.

    Raises
    ------
    InputError
        If not exactly one of δ and ε is given, or the folder holds the blocks of another question.
    AccuracyError
        If a worker ended before its block was done; what is done is kept.

    Examples
    --------
    >>> import tempfile
    >>> from symdp.individual import from_counts
    >>> counts = [[100, 0], [50, 50], [0, 100]]
    >>> with tempfile.TemporaryDirectory() as place:
    ...     files = in_folder(from_counts([1, 4], counts, 0.01), place, delta=1e-5, block=2)
    ...     [np.load(file)["epsilon"].round(6).tolist() for file in files]
    [[0.718036, 0.585004], [0.079514]]
    """
    if (delta is None) == (epsilon is None):
        raise InputError("individual accounting needs either epsilon or delta")
    records, size = len(accountant), whole(block, "block", 1)
    each = None if epsilon is None else np.asarray(epsilon, dtype=np.float64)
    if each is not None and each.shape not in {(), (records,)}:
        raise InputError(f"epsilon of shape {each.shape} for {records} records")
    options = {"method": method, "direction": direction}

    def task(number: int) -> tuple[Any, ...]:
        rows = slice(number * size, min((number + 1) * size, records))
        above, ids = accountant.noise_above, accountant.ids
        part = replace(
            accountant,
            counts=np.asarray(accountant.counts[rows]),
            noise=_rows(accountant.noise, rows),
            rate=_rows(accountant.rate, rows),
            noise_above=None if above is None else _rows(above, rows),
            ids=np.arange(rows.start, rows.stop) if ids is None else np.asarray(ids[rows]),
        )
        return part, delta, each if each is None or each.ndim == 0 else each[rows], options

    blocks = -(-records // size)
    asked = {
        "individual": [_digest(task(k)) for k in range(blocks)],
        "asked": [delta, method, direction],
    }
    path = a_path(folder, "the folder")
    return kept_blocks(path, asked, blocks, _answered, task, ".npz", executor, progress)


def _rows(levels: Array, rows: slice) -> Array:
    """Return the levels of some records, where records have levels of their own."""
    return levels if levels.ndim == 1 else levels[rows]


def _digest(task: tuple[Any, ...]) -> str:
    """Return a checksum of what a block is about."""
    part, _, epsilon, _ = task
    digest = hashlib.sha256(repr((part.direction, part.adaptive)).encode())
    for one in part.mechanisms or ():
        digest.update((one.key if one is not None else "").encode())
    for array in (part.counts, part.noise, part.rate, part.noise_above, part.ids, epsilon):
        if array is not None:
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _answered(
    part: IndividualAccountant,
    delta: float | None,
    epsilon: Array | None,
    options: dict[str, Any],
) -> bytes:
    """Return the columns of a block's answers, as a worker does."""
    if delta is not None:
        found = part.epsilon(delta, **options)
    else:
        assert epsilon is not None
        found = part.delta(epsilon, **options)
    data = io.BytesIO()
    np.savez_compressed(data, allow_pickle=False, **found.columns())
    return data.getvalue()
