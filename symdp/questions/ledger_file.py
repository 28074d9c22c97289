"""A ledger's file: one writer at a time, replaced whole or not at all, with a checksum.

The file is one JSON object: the format and its version, the ledger's state, and the SHA-256 of that
state. The checksum tells damage and careless edits; who wants to forge a file can compute it too.
The writer holds a lock on a file beside it, which the system releases when the process ends,
however it ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from symdp.errors import InputError

_FORMAT = "symdp ledger file"
_VERSION = 1
_KEYS = {"format", "version", "sha256", "ledger"}


def checksum(state: object) -> str:
    """Return the SHA-256 of JSON values, whatever their keys' order and the spaces between them.

    Examples
    --------
    >>> checksum({"a": 1, "b": []}) == checksum({"b": [], "a": 1})
    True
    """
    text = json.dumps(state, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def read(path: Path) -> tuple[Any, str]:
    """Return the state that a file holds, and its checksum.

    Raises
    ------
    InputError
        If there is no such file, or it is not what `write` left there.
    """
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path} is no ledger: it is truncated, or no JSON; {_REMEDY}") from None
    if not isinstance(held, dict) or held.get("format") != _FORMAT:
        raise InputError(
            f"{path} is no ledger file: its 'format' must be '{_FORMAT}' (the JSON of a "
            "state_dict is read by Ledger.from_state_dict)"
        )
    if type(held.get("version")) is not int or held["version"] != _VERSION:
        raise InputError(f"{path}: version {held.get('version')!r:.20}; known is {_VERSION}")
    if set(held) != _KEYS:
        raise InputError(f"{path}: its keys must be {', '.join(sorted(_KEYS))}")
    found = checksum(held["ledger"])
    if held["sha256"] != found:
        raise InputError(f"{path} was edited or damaged: its checksum does not fit; {_REMEDY}")
    return held["ledger"], found


_REMEDY = "restore it from a copy"


def write(path: Path, state: object) -> str:
    """Put a state into a file in one step and return its checksum.

    Whatever happens meanwhile, the file is the old one or the new one.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    digest = checksum(state)
    held = {"format": _FORMAT, "version": _VERSION, "sha256": digest, "ledger": state}
    name = ""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".new")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(held, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(name, path.stat().st_mode)
        os.replace(name, path)
    except OSError as error:
        if name:
            with suppress(OSError):
                os.unlink(name)
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
    return digest


class Writer:
    """The right to write a file, held by one at a time; `close` gives it back.

    Raises
    ------
    InputError
        If another writer holds it, in this process or another, or there is no such folder.
    """

    def __init__(self, path: Path) -> None:
        place = path.with_name(f"{path.name}.lock")
        try:
            file = place.open("a+", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
        if not _locked(file):
            file.close()
            raise InputError(f"{path} is open for writing elsewhere: close it there first")
        self._file: IO[str] | None = file

    def close(self) -> None:
        """Let others write; the lock file stays, as removing it could let two in."""
        if self._file is not None:
            self._file.close()
            self._file = None


if sys.platform == "win32":
    import msvcrt

    def _locked(file: IO[str]) -> bool:
        """Whether the lock was free, and is now ours until the file is closed."""
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _locked(file: IO[str]) -> bool:
        """Whether the lock was free, and is now ours until the file is closed."""
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


class Filed(ABC):
    """What has a file as its home: opened for writing, loaded, saved."""

    _lock: threading.RLock
    _path: Path | None = None
    _saved = ""  # checksum of the file as this object knows it
    _writer: Writer | None = None

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
        writer = Writer(place)
        try:
            ledger = cls.load(place) if place.exists() else cls()
        except InputError:
            writer.close()
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
        state, digest = read(place)
        try:
            ledger = cls.from_state_dict(state)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
        ledger._path, ledger._saved = place, digest
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
            writer = self._writer if own and self._writer else Writer(place)
            try:
                known = self._saved if own else ""
                if place.exists() and read(place)[1] != known:
                    raise InputError(
                        f"{place} holds steps that this ledger has not read: add to it with "
                        "Ledger.open, or name another file"
                    )
                self._saved, self._path = write(place, self.state_dict()), place
            finally:
                if writer is not self._writer:
                    writer.close()

    def close(self) -> None:
        """Let others write the file; nothing is saved by this alone."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()
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
