"""What individual accounting has on the disk: runs, and filters.

A run is the folder that a `Recorder` wrote, read again for accounting; a filter lives in a file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symdp.arguments import a_path
from symdp.durable import Kept, damaged, file_checksum, locked, replace_file
from symdp.errors import InputError
from symdp.individual.accounting import IndividualAccountant, from_counts
from symdp.individual.filters import FILTER, Filter, GaussianFilter, Odometer, RenyiFilter, read
from symdp.individual.individual_filter import IndividualFilter
from symdp.individual.norms import NormGrid

if TYPE_CHECKING:
    from symdp.individual.accounting import IndividualAccountant

RUN = Kept(
    "symdp-individual-run",
    2,
    "the run of individual accounting",
    "make one with a Recorder or 'symdp individual … --keep FOLDER'",
)
_FILE = "the filter's file"


def accountant_of(
    segments: Sequence[dict[str, Any]],
    counts: Sequence[NDArray[Any]],
    grid: NormGrid,
    ids: NDArray[Any] | None,
    direction: str,
    adaptive: bool,
) -> IndividualAccountant:
    """Return the accountant of segments' counts."""
    below = []
    above = []
    rates = []
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
