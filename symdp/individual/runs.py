"""Runs on disk: the folder that a `Recorder` wrote, read again for accounting."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.errors import InputError
from symdp.individual.accounting import IndividualAccountant, from_counts
from symdp.individual.grid import NormGrid
from symdp.individual.state import checksum

FORMAT = "symdp-individual-run"


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


def read_run(path: Path) -> dict[str, Any]:
    """Return a run's state.

    Raises
    ------
    InputError
        If it is missing, cut short or edited.
    """
    try:
        state = json.loads((path / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{path}: no run, or its run.json is cut short") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise InputError(f"{path}: this is no run of individual accounting")
    if state.get("checksum") != checksum(state):
        raise InputError(f"{path}: run.json was edited or damaged: its checksum does not fit")
    return state


def open_accountant(path: str | Path, direction: str = "both") -> IndividualAccountant:
    """Return the accountant of a run's folder as it was last committed; counts memory-mapped."""
    folder = Path(path)
    state = read_run(folder)
    edges = np.asarray([float.fromhex(x) for x in state["edges"]])
    grid = NormGrid(state["grid_name"], edges)
    try:
        counts = [np.load(folder / s["file"], mmap_mode="r") for s in state["segments"]]
        ids = np.load(folder / "ids.npy") if (folder / "ids.npy").exists() else None
    except (OSError, ValueError, EOFError):
        raise InputError(f"{folder}: a file of counts is missing or cut short") from None
    if any(c.shape != (state["records"], grid.count) for c in counts):
        raise InputError(f"{folder}: counts do not have the run's shape")
    adaptive = state["adaptive"] or state["stale"]
    return accountant_of(state["segments"], counts, grid, ids, direction, adaptive)
