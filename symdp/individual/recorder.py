"""A run's record: how often each record's contribution fell into which bucket of norms.

A run is a folder: `run.json` (parameters as exact text, steps, segments, checksums), and one
memory-mapped array of counts for each segment.  `commit` makes the steps so far durable; what came
after the last commit is forgotten when a run is opened again, and its steps are to be given once
more.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symdp.arguments import a_path
from symdp.durable import checksum, locked
from symdp.errors import InputError
from symdp.individual.accounting import IndividualAccountant, named
from symdp.individual.files import RUN, accountant_of, keep_array, read_array, remove_unused
from symdp.individual.filters import number
from symdp.individual.norms import NormGrid, as_floats, checked, open_norms, record_chunks
from symdp.individual.result import WARNING

RESTS = ("clip", "stale")
_BUFFERED = 1 << 25  # norms that are kept before they are counted
_BLOCK = 1 << 20  # counts of one block of records: they stay in the cache
_WIDER = {"uint16": np.uint32, "uint32": np.uint64}


class Recorder:
    """Counts of every record's contribution norms, step by step, kept in a folder.

    Parameters
    ----------
    path
        The run's folder; an existing run is opened again where it was last committed.
    records
        Their number.
    multiplier, clip, rate
        Noise standard deviation over the clip, C, and the Poisson sampling rate.
    grid
        "norm:256" (linear in the norm), "geometric:256:300", or edges as shares of the clip.
    ids
        The records' names, each once.
    adaptive
        Whether contributions depend on earlier outputs, as in training; False for a fixed sequence.
    squared, above
        Whether norms come squared; whether those above the clip are clipped ("clip") or refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> run = Recorder(folder.name + "/run", records=3, multiplier=1.0, clip=2.0, rate=0.01)
    >>> for _ in range(100):
    ...     run.step([2.0, 1.0, 0.0])
    >>> run.commit()
    >>> found = run.accountant().epsilon(1e-5)
    >>> found.epsilon.round(4).tolist(), str(found.kind[0])
    ([0.718, 0.1898, 0.0], 'estimate')
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | Path,
        records: int,
        multiplier: float,
        clip: float,
        rate: float = 1.0,
        grid: str | Sequence[float] = "norm:256",
        ids: ArrayLike | None = None,
        *,
        adaptive: bool = True,
        squared: bool = False,
        above: str = "clip",
    ) -> None:
        if isinstance(records, bool) or not isinstance(records, int) or records < 1:
            raise InputError(f"records = {records!r}: a whole number of at least 1 is needed")
        if above not in {"clip", "refuse"}:
            raise InputError(f"above = {above!r}: it is 'clip' or 'refuse'")
        self.path = a_path(path, "the run's folder")
        self.records = records
        self.adaptive = adaptive
        self.squared = squared
        self.above = above
        self.grid = NormGrid.parse(grid)
        self.ids = named(ids, records)
        self.stale = False
        self.steps = 0
        self.segments: list[dict[str, Any]] = []
        self.inputs: list[str] = []  # what `add` has counted, by checksum
        self._saved = ""  # checksum of the run's state as this object knows it
        self._kept_ids: dict[str, str] | None = None
        self._complete = 0  # segments on the disk to which no step can be added
        self._places: dict[Any, int] | None = None
        self._buffer: list[NDArray[np.intp]] = []
        self._counts: list[NDArray[Any]] = []
        settings = _settings(multiplier, clip, rate)
        if (self.path / "run.json").exists():
            self._open(settings)
        else:
            self._start(settings)

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # two that count into one array would both count wrongly

    def _start(self, settings: dict[str, Any]) -> None:
        if self.path.exists() and any(x.name != "run.json.lock" for x in self.path.iterdir()):
            raise InputError(f"{self.path}: the folder is not empty and holds no run")
        self.path.mkdir(parents=True, exist_ok=True)
        self.segment(**settings)
        self.commit()

    def _open(self, settings: dict[str, Any]) -> None:
        state = RUN.read(self.path / "run.json")
        mine = {"records": self.records, "grid": self.grid.digest, "adaptive": self.adaptive}
        for name, value in mine.items():
            if state[name] != value:
                raise InputError(f"{self.path}: the run has another value of {name}: {state[name]}")
        last = state["segments"][-1]
        if any(last[name] != float(value).hex() for name, value in settings.items()):
            raise InputError(
                f"{self.path}: multiplier, clip or rate differ from the run's last segment; open "
                "it with those, then call segment() to change them"
            )
        self.steps = state["steps"]
        self.stale = state["stale"]
        self.inputs = state["inputs"]
        self._saved = state["checksum"]
        self._kept_ids = state["ids"]
        self.segments = state["segments"]
        self._complete = len(self.segments) - 1
        self._counts = [np.array(read_array(self.path, segment)) for segment in self.segments]

    def segment(self, multiplier: float, clip: float, rate: float = 1.0) -> None:
        """Begin a segment: from now on multiplier, clip or rate are others."""
        settings = _settings(multiplier, clip, rate)
        self._kept_in_memory()
        self.segments.append({k: float(v).hex() for k, v in settings.items()})
        self._counts.append(np.zeros((self.records, self.grid.count), dtype=np.uint16))

    @property
    def clip(self) -> float:
        """The present segment's clip."""
        return float.fromhex(self.segments[-1]["clip"])

    def step(
        self,
        norms: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        rest: str | None = None,
        active: ArrayLike | None = None,
        number: int | None = None,
    ) -> None:
        """Count one step; what breaks a rule is refused, and then nothing is counted.

        Parameters
        ----------
        norms
            What every record would contribute, sampled or not, shape (records,); or with `ids`,
            of these records only.
        ids
            Names (or places, where the run has no names) of the records looked at.
        rest
            What is charged to all others: "clip", which holds whatever they are, or "stale": their
            last known place, which makes every result an estimate.
        active
            Who takes part, a mask of shape (records,); others are charged nothing.
        number
            The step's expected number, from 1.
        """
        if number is not None and number != self.steps + 1:
            raise InputError(f"step {number}: the next step is {self.steps + 1}")
        values = np.atleast_1d(as_floats(norms))
        if values.ndim != 1:
            raise InputError(f"norms of shape {values.shape}: one step's norms are needed")
        if ids is None:
            if values.size != self.records:
                raise InputError(
                    f"norms of {values.size} records for {self.records}: give ids= and rest= for "
                    "a part of them"
                )
            places = self._place(values, 0)
        else:
            places = self._partial(values, ids, rest)
        if active is not None:
            mask = np.asarray(active)
            if mask.dtype != bool or mask.shape != (self.records,):
                raise InputError(f"active: a mask of shape ({self.records},) is needed")
            places = np.where(mask, places, 0)
        if rest == "stale":
            self.stale = True
        self._buffer.append(places)
        self._last = places
        self.steps += 1
        if len(self._buffer) * self.records >= _BUFFERED:
            self._kept_in_memory()

    def _place(self, values: NDArray[np.floating[Any]], first: int) -> NDArray[np.intp]:
        fine = checked(values, self.clip, first, squared=self.squared, above=self.above)
        return self.grid.place_scaled(fine, self.clip)

    def _partial(
        self, values: NDArray[np.floating[Any]], ids: ArrayLike, rest: str | None
    ) -> NDArray[np.intp]:
        if rest not in RESTS:
            raise InputError(
                f"rest = {rest!r}: state what the other records are charged, 'clip' or 'stale'"
            )
        names = np.asarray(ids)
        if names.shape != values.shape:
            raise InputError(f"ids of shape {names.shape} for norms of shape {values.shape}")
        where = self._lookup(names)
        if np.unique(where).size != where.size:
            raise InputError("ids: a record occurs twice in one step")
        top = self.grid.count - 1
        last = getattr(self, "_last", None)
        places = np.full(self.records, top) if rest == "clip" or last is None else last.copy()
        places[where] = self._place(values, 0)
        return places

    def _lookup(self, names: NDArray[Any]) -> NDArray[np.int64]:
        if self.ids is None:
            if names.dtype.kind not in "iu" or (names.size and not names.min() >= 0):
                raise InputError("ids: the run has no names; give places of records")
            if names.size and names.max() >= self.records:
                raise InputError(f"ids: {names.max()} is out of range for {self.records} records")
            return names.astype(np.int64)
        if self._places is None:
            self._places = {name: i for i, name in enumerate(self.ids.tolist())}
        try:
            return np.asarray([self._places[name] for name in names.tolist()], dtype=np.int64)
        except KeyError as error:
            raise InputError(f"ids: {error} is no record of this run") from None

    def add(
        self, source: Any, layout: str | None, progress: Any = None, *, again: bool = False
    ) -> None:
        """Count many steps at once: an array of norms, or a .npy or .parquet file; all or nothing.

        Parameters
        ----------
        source
            Norms, or a file of them; a long Parquet table has columns record, step and norm.
        layout
            "steps-records" or "records-steps", for everything but a long table.
        progress
            Called with the numbers of records done and in all.
        again
            Whether norms that this run has counted before are counted once more, not refused.
        """
        self._kept_in_memory()
        array = open_norms(source)
        pending = [counts.copy() for counts in self._counts[-1:]]
        steps = 0
        identity = checksum("norms")
        for rows, block in record_chunks(array, layout):
            steps = block.shape[1]
            if rows.stop > self.records:
                raise InputError(f"norms of more than the run's {self.records} records")
            self.count_block(block, rows.start, pending)
            identity = checksum(identity, np.ascontiguousarray(block, dtype="<f8"))
            if progress is not None:
                progress(rows.stop, self.records)
        if rows.stop != self.records:
            raise InputError(f"norms of {rows.stop} records for the run's {self.records}")
        if identity in self.inputs and not again:
            raise InputError(
                f"{self.path}: these norms are in the run already; the same steps are counted "
                "once: if they were run once more, say so with --again (again=True)"
            )
        self._counts[-1] = pending[0]
        self.inputs.append(identity)
        self.steps += steps

    def count_block(
        self, block: NDArray[np.floating[Any]], first: int, counts: list[NDArray[Any]] | None = None
    ) -> None:
        """Add the norms of some records, records × steps, to counts; steps are not numbered."""
        target = self._counts
        if counts is not None:
            target = counts
        records, steps = block.shape
        width = self.grid.count
        size = max(1, _BLOCK // max(width, steps))
        for start in range(0, records, size):
            part = block[start : start + size]
            records_of_part = part.shape[0]
            cells = self._place(part, first + start)
            offsets = np.arange(records_of_part) * width
            cells += offsets[:, None]
            added_counts = np.bincount(cells.ravel(), minlength=records_of_part * width)
            rows = slice(first + start, first + start + records_of_part)
            self._increase(target, rows, added_counts.reshape(-1, width))

    @staticmethod
    def _increase(target: list[NDArray[Any]], rows: slice, found: NDArray[np.intp]) -> None:
        counts = target[-1]
        total = counts[rows].astype(np.int64) + found
        while total.max() > np.iinfo(counts.dtype).max:
            counts = counts.astype(_WIDER[counts.dtype.name])
            target[-1] = counts
        counts[rows] = total

    def _kept_in_memory(self) -> None:
        """Count the steps that are kept in memory."""
        if not self._buffer:
            return
        width = self.grid.count
        size = max(1, _BLOCK // width)
        for start in range(0, self.records, size):
            rows = slice(start, min(start + size, self.records))
            offset = np.arange(rows.stop - start) * width
            added_counts = np.zeros((rows.stop - start) * width, dtype=np.intp)
            for places in self._buffer:
                added_counts += np.bincount(places[rows] + offset, minlength=added_counts.size)
            self._increase(self._counts, rows, added_counts.reshape(-1, width))
        self._buffer = []

    def commit(self) -> None:
        """Make everything so far durable: counts first, then the run's state, each in one step."""
        self._kept_in_memory()
        file = self.path / "run.json"
        with locked(file):
            if file.exists() and RUN.read(file)["checksum"] != self._saved:
                raise InputError(f"{self.path}: another writer has added steps; open it again")
            segments = [dict(segment) for segment in self.segments]
            ids = self._kept_ids
            try:
                if self.ids is not None and ids is None:
                    ids = keep_array(self.path, "ids", self.ids)
                for index in range(self._complete, len(segments)):
                    kept = keep_array(self.path, f"counts-{index}", self._counts[index])
                    segments[index].update(kept)
                state = {
                    "records": self.records,
                    "steps": self.steps,
                    "inputs": self.inputs,
                    "ids": ids,
                    "grid_name": self.grid.name,
                    "edges": [x.hex() for x in self.grid.edges.tolist()],
                    "grid": self.grid.digest,
                    "adaptive": self.adaptive,
                    "stale": self.stale,
                    "segments": segments,
                    "warning": WARNING,
                }
                self._saved = RUN.write(file, state)
                self.segments = segments
                self._kept_ids = ids
                self._complete = len(segments) - 1
            finally:
                remove_unused(self.path)

    def accountant(self, direction: str = "both") -> IndividualAccountant:
        """Return the accountant of the steps counted so far, bounds from rounding both ways."""
        self._kept_in_memory()
        return accountant_of(
            self.segments, self._counts, self.grid, self.ids, direction, self.adaptive or self.stale
        )


def _settings(multiplier: float, clip: float, rate: float) -> dict[str, float]:
    settings = {
        "multiplier": number(multiplier, "multiplier", positive=True),
        "clip": number(clip, "clip", positive=True),
        "rate": number(rate, "rate", positive=True),
    }
    if settings["rate"] > 1.0:
        raise InputError(f"rate = {rate!r}: it must lie from 0 to 1")
    return settings
