"""A ledger's file: one writer at a time, replaced whole or not at all, with a checksum."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from symdp.durable import Kept, lock
from symdp.errors import InputError, at

if TYPE_CHECKING:
    from filelock import BaseFileLock

_FILE = Kept(
    "symdp ledger file",
    2,
    "the ledger",
    "Ledger.save writes one (the JSON of a state_dict is read by Ledger.from_state_dict)",
)


class Filed(ABC):
    """What has a file as its home: opened for writing, loaded, saved."""

    _lock: threading.RLock
    _path: Path | None = None
    _saved = ""  # checksum of the file as this object knows it
    _writer: BaseFileLock | None = None

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return all that is kept, as JSON values."""

    @classmethod
    @abstractmethod
    def from_state_dict(cls, state: object) -> Self:
        """Return what `state_dict` wrote; raise InputError for anything else."""

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Return the ledger of a file, a new one if there is none, as its only writer.

        Used in a with statement: at its end, and at every `save`, what was added is in the file.
        A process that is killed loses what it added since; save before noise is released.

        Raises
        ------
        InputError
            If another ledger has the file open, or it is damaged, edited or no ledger's.

        Examples
        --------
        >>> from symdp import Ledger, mechanisms
        >>> path = getfixture("tmp_path") / "budget.json"
        >>> for _ in range(2):
        ...     with Ledger.open(path) as ledger:
        ...         ledger.add(mechanisms.laplace(b=2), 3)
        >>> Ledger.load(path).count
        6
        """
        place = Path(path)
        writer = lock(place)
        try:
            ledger = cls.load(place) if place.exists() else cls()
        except InputError:
            writer.release()
            raise
        ledger._path, ledger._writer = place, writer
        return ledger

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the ledger that a file holds; nothing in it is trusted, no text is run.

        Raises
        ------
        InputError
            If the file is missing, truncated, edited or no ledger's.
        """
        place = Path(path)
        held = _FILE.read(place)
        with at(str(place)):
            ledger = cls.from_state_dict(held.get("ledger"))
        ledger._path, ledger._saved = place, held["checksum"]
        return ledger

    def save(self, path: str | os.PathLike[str] | None = None) -> None:
        """Write the ledger into a file, its own where none is named, replacing it in one step.

        Raises
        ------
        InputError
            If another ledger has the file open, or it holds what this ledger has not read: steps
            that were counted are never overwritten.
        """
        with self._lock:
            place = self._path if path is None else Path(path)
            if place is None:
                raise InputError("this ledger has no file yet: name one, as in save('budget.json')")
            own = place == self._path
            writer = self._writer if own and self._writer else lock(place)
            try:
                known = self._saved if own else ""
                if place.exists() and _FILE.read(place)["checksum"] != known:
                    raise InputError(
                        f"{place} holds steps that this ledger has not read: add to it with "
                        "Ledger.open, or name another file"
                    )
                self._saved, self._path = _FILE.write(place, {"ledger": self.state_dict()}), place
            finally:
                if writer is not self._writer:
                    writer.release()

    def close(self) -> None:
        """Let others write the file; nothing is saved by this alone."""
        with self._lock:
            if self._writer is not None:
                self._writer.release()
                self._writer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.save()  # after an error too: what was added may have been spent
        finally:
            self.close()
