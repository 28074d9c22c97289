"""Runs on disk: the folder that a `Recorder` wrote, read again for accounting."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.arguments import a_path
from symdp.durable import Kept, damaged, file_checksum, replace_file
from symdp.errors import InputError
from symdp.individual.accounting import IndividualAccountant, from_counts
from symdp.individual.grid import NormGrid

RUN = Kept(
    "symdp-individual-run",
    2,
    "the run of individual accounting",
    "make one with a Recorder or 'symdp individual … --keep FOLDER'",
)


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
    """Return an array that `keep_array` wrote, memory-mapped.

    Raises
    ------
    InputError
        If its file is missing, cut short, edited or damaged.
    """
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
    held = RUN.read(file) if file.exists() else {"segments": [], "ids": None}
    used = {one["file"] for one in (*held["segments"], held["ids"]) if one is not None}
    for name in ("counts", "ids"):
        for one in folder.glob(f"{name}-*.npy"):
            if one.name not in used:
                one.unlink(missing_ok=True)


def open_accountant(path: str | Path, direction: str = "both") -> IndividualAccountant:
    """Return the accountant of a run's folder as it was last committed; counts memory-mapped.

    Raises
    ------
    InputError
        If one of its files is missing, cut short, edited or damaged.
    """
    folder = a_path(path, "the run's folder")
    state = RUN.read(folder / "run.json")
    edges = np.asarray([float.fromhex(x) for x in state["edges"]])
    grid = NormGrid(state["grid_name"], edges)
    counts = [read_array(folder, segment) for segment in state["segments"]]
    ids = None if state["ids"] is None else read_array(folder, state["ids"])
    adaptive = state["adaptive"] or state["stale"]
    return accountant_of(state["segments"], counts, grid, ids, direction, adaptive)
