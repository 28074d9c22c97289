"""What individual accounting has on the disk: runs, filters, and answers block by block.

A run is the folder that a `Recorder` wrote, read again for accounting; a filter lives in a file; of
many records the answers of each block are a file.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symdp.arguments import a_path, whole
from symdp.blocks import kept_blocks
from symdp.durable import Kept, damaged, file_checksum, locked, replace_file
from symdp.errors import InputError
from symdp.individual.accounting import IndividualAccountant, from_counts
from symdp.individual.filters import FILTER, Filter, GaussianFilter, Odometer, RenyiFilter, read
from symdp.individual.individual_filter import IndividualFilter
from symdp.individual.norms import NormGrid
from symdp.numeric.step import Array

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from symdp.individual.accounting import IndividualAccountant

RUN = Kept(
    "symdp-individual-run",
    2,
    "the run of individual accounting",
    "make one with a Recorder or 'symdp individual … --keep FOLDER'",
)
_FILE = "the filter's file"
_BLOCK = 100_000  # records: a few seconds and 100 MB of a worker


def accountant_of(
    segments: Sequence[dict[str, Any]],
    counts: Sequence[NDArray[Any]],
    grid: NormGrid,
    ids: NDArray[Any] | None,
    direction: str,
    adaptive: bool,
) -> IndividualAccountant:
    """Return the accountant of segments' counts."""
    below, above, rates = [], [], []
    for segment in segments:
        low, high = grid.levels(float.fromhex(segment["multiplier"]))
        below.append(low)
        above.append(high)
        rates.append(np.full(low.size, float.fromhex(segment["rate"])))
    table = counts[0] if len(counts) == 1 else np.concatenate(counts, axis=1)
    return from_counts(
        np.concatenate(below),
        table,
        np.concatenate(rates),
        direction,
        noise_above=np.concatenate(above),
        adaptive=adaptive,
        ids=ids,
    )


def keep_array(folder: Path, name: str, array: NDArray[Any]) -> dict[str, str]:
    """Write an array beside a run's state, which is to hold the returned name and checksum.

    The name is a new one: what the present state refers to is never overwritten.
    """
    path = folder / f"{name}-{os.urandom(4).hex()}.npy"
    replace_file(path, lambda part: np.save(part, array, allow_pickle=False), private=True)
    return {"file": path.name, "sha256": file_checksum(path)}


def read_array(folder: Path, kept: Mapping[str, Any]) -> NDArray[Any]:
    """Return an array that `keep_array` wrote, memory-mapped."""
    path = folder / kept["file"]
    try:
        if file_checksum(path) != kept["sha256"]:
            raise InputError(damaged(path, "a file of the run"))
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: a file of the run cannot be read: {reason}") from None


def remove_unused(folder: Path) -> None:
    """Remove arrays that a run's state does not refer to, as its only writer."""
    file = folder / "run.json"
    state = RUN.read(file) if file.exists() else {"segments": [], "ids": None}
    used = {array["file"] for array in (*state["segments"], state["ids"]) if array is not None}
    for name in ("counts", "ids"):
        for array_file in folder.glob(f"{name}-*.npy"):
            if array_file.name not in used:
                array_file.unlink(missing_ok=True)


def open_accountant(path: str | Path, direction: str = "both") -> IndividualAccountant:
    """Return the accountant of a run's folder as it was last committed; counts memory-mapped."""
    folder = a_path(path, "the run's folder")
    state = RUN.read(folder / "run.json")
    edges = np.asarray([float.fromhex(x) for x in state["edges"]])
    grid = NormGrid(state["grid_name"], edges)
    counts = [read_array(folder, segment) for segment in state["segments"]]
    ids = None if state["ids"] is None else read_array(folder, state["ids"])
    adaptive = state["adaptive"] or state["stale"]
    return accountant_of(state["segments"], counts, grid, ids, direction, adaptive)


def create(path: str | Path, made: Filter | IndividualFilter) -> Filter | IndividualFilter:
    """Put a new filter into a file that does not exist yet: no budget is forgotten by mistake."""
    where = a_path(path, _FILE)
    kinds = (Filter, IndividualFilter)
    if not isinstance(made, kinds):
        raise InputError(f"{made!r:.60}: it is no filter: give GaussianFilter(budget=1), say")
    with locked(where):
        if where.exists():
            raise InputError(f"{where}: there is such a file; a filter's state is not overwritten")
        FILTER.write(where, made.to_json())
        made.path = where
    return made


def load_filter(path: str | Path) -> Filter | IndividualFilter:
    """Return the filter that a state file holds, exactly as it was.

    Every step of the journal is charged again; nothing is taken on trust.
    """
    where = a_path(path, _FILE)
    state = FILTER.read(where)
    try:
        return _made(state, where)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: the filter's state lacks {error}") from None


def _made(state: dict[str, Any], path: Path) -> Filter | IndividualFilter:
    kind = state["filter"]
    restored: Filter
    if kind == "individual":
        return IndividualFilter.from_state(state, path)
    if kind == GaussianFilter.type_name:
        restored = GaussianFilter(read(state["budget"]), path=path)
        if "epsilon" in state:
            restored._target = str(state["epsilon"]), str(state["delta"])
    elif kind == Odometer.type_name:
        restored = Odometer([read(x) for x in state["increments"]], path=path)
    elif kind == RenyiFilter.type_name:
        restored = RenyiFilter(
            [float.fromhex(x) for x in state["orders"]],
            epsilon=float.fromhex(state["epsilon"]),
            delta=float.fromhex(state["delta"]),
            path=path,
        )
    else:
        raise InputError(f"{path}: a filter of kind {kind!r} is not known")
    restored._replay(state, str(path))
    return restored


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
    run that was ended goes on where it was; a folder of another question is refused. Returned is
    one .npz file for each block of records in order, with the columns of `IndividualResult.save`.

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
    records = len(accountant)
    size = whole(block, "block", 1)
    epsilons = None if epsilon is None else np.asarray(epsilon, dtype=np.float64)
    if epsilons is not None and epsilons.shape not in {(), (records,)}:
        raise InputError(f"epsilon of shape {epsilons.shape} for {records} records")
    options = {"method": method, "direction": direction}

    def task(number: int) -> tuple[Any, ...]:
        rows = slice(number * size, min((number + 1) * size, records))
        above = accountant.noise_above
        ids = accountant.ids
        part = replace(
            accountant,
            counts=np.asarray(accountant.counts[rows]),
            noise=_rows(accountant.noise, rows),
            rate=_rows(accountant.rate, rows),
            noise_above=None if above is None else _rows(above, rows),
            ids=np.arange(rows.start, rows.stop) if ids is None else np.asarray(ids[rows]),
        )
        if epsilons is None or epsilons.ndim == 0:
            return part, delta, epsilons, options
        return part, delta, epsilons[rows], options

    blocks = -(-records // size)
    question = {
        "individual": [_digest(task(k)) for k in range(blocks)],
        "asked": [delta, method, direction],
    }
    path = a_path(folder, "the folder")
    return kept_blocks(path, question, blocks, _answered, task, ".npz", executor, progress)


def _rows(levels: Array, rows: slice) -> Array:
    """Return the levels of some records, where records have levels of their own."""
    return levels if levels.ndim == 1 else levels[rows]


def _digest(task: tuple[Any, ...]) -> str:
    """Return a checksum of what a block is about."""
    part, _, epsilon, _ = task
    digest = hashlib.sha256(repr((part.direction, part.adaptive)).encode())
    for mechanism in part.mechanisms or ():
        digest.update((mechanism.key if mechanism is not None else "").encode())
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
        answers = part.epsilon(delta, **options)
    else:
        assert epsilon is not None
        answers = part.delta(epsilon, **options)
    data = io.BytesIO()
    np.savez_compressed(data, allow_pickle=False, **answers.columns())
    return data.getvalue()
