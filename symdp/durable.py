"""Files that are whole or absent, that tell damage, and that one process writes at a time.

A file is written as a hidden neighbour, flushed to the disk, and moved into place: whatever happens
meanwhile, its name stands for the old file or the new one. What symdp itself reads again carries a
SHA-256, which tells damage and careless edits; who wants to forge a file can compute it too.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from symdp.errors import InputError

if TYPE_CHECKING:
    from filelock import BaseFileLock

_REMEDY = "restore it from a copy"
_LONGEST_NAME = 60  # characters that a neighbour takes from its file's name, which may be full


def checksum(values: object, data: Any = b"") -> str:
    """Return the SHA-256 of JSON values, whatever their keys' order, and of bytes behind them."""
    text = json.dumps(values, sort_keys=True, allow_nan=False, separators=(",", ":"))
    digest = hashlib.sha256(text.encode())
    digest.update(data)
    return digest.hexdigest()


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sealed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with the checksum of all of them."""
    kept = {key: value for key, value in values.items() if key != "checksum"}
    return kept | {"checksum": checksum(kept)}


def decoded(text: bytes) -> Any:
    """Return the values of JSON; ValueError for anything else, NaN and infinity included.

    A key that an object has twice raises InputError: readers differ in which of the two they take.
    """
    try:
        return json.loads(text.decode(), parse_constant=_refused, object_pairs_hook=unique)
    except RecursionError:
        raise ValueError("nested too deep") from None


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON whose keys differ; InputError where one is there twice."""
    entries: dict[str, Any] = {}
    for key, value in pairs:
        if key in entries:
            raise InputError(f"the key {key!r:.60} is there twice")
        entries[key] = value
    return entries


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


@dataclass(frozen=True)
class Kept:
    """A kind of file that symdp keeps: sealed JSON values with a format and its version."""

    format: str  # what the file says of itself
    version: int
    what: str  # its content, as messages name it
    origin: str  # where such files come from, for who gives another one

    def write(self, path: Path, values: Mapping[str, Any]) -> str:
        """Put values into a file in one step and return their checksum."""
        full = sealed({"format": self.format, "version": self.version, **values})
        text = json.dumps(full, indent=1, allow_nan=False) + "\n"
        replace_text(path, text, private=True)
        return str(full["checksum"])

    def read(self, path: Path) -> dict[str, Any]:
        """Return the values of a file that was written whole and not changed since."""
        try:
            values = decoded(path.read_bytes())
        except OSError as error:
            reason = error.strerror or error
            begins = f"; {self.origin}" if isinstance(error, FileNotFoundError) else ""
            raise InputError(f"{path}: {self.what} cannot be read: {reason}{begins}") from None
        except InputError as error:
            raise InputError(f"{path}: {self.what} was edited: {error}; {_REMEDY}") from None
        except ValueError:
            raise InputError(f"{path}: {self.what} is truncated, or no JSON; {_REMEDY}") from None
        if not isinstance(values, dict) or values.get("format") != self.format:
            raise InputError(
                f"{path}: this is no file of {self.what}, whose 'format' is '{self.format}': "
                f"{self.origin}"
            )
        if type(values.get("version")) is not int or values["version"] != self.version:
            raise InputError(
                f"{path}: version {values.get('version')!r:.20} of the format; known is "
                f"{self.version}: {self.origin}"
            )
        if values != sealed(values):
            raise InputError(damaged(path, self.what))
        return values


def damaged(path: Path, what: str) -> str:
    """Return the one line that names a file whose checksum does not fit."""
    return f"{path}: {what} was edited or damaged: its checksum does not fit; {_REMEDY}"


def replace_file(
    path: str | os.PathLike[str], write: Callable[[IO[bytes]], object], *, private: bool = False
) -> None:
    """Let `write` fill a new file, then put it in a file's place in one step.

    A device, a pipe and an open descriptor, such as /dev/stdout, are written to as they are, once
    everything that goes there is known. A link stays; what it points to is replaced.
    """
    try:
        target = _regular(Path(path))
        if target is None:
            memory = io.BytesIO()
            write(memory)
            with Path(path).open("ab", buffering=0) as stream:
                remaining = memory.getbuffer()
                while remaining:
                    remaining = remaining[stream.write(remaining) :]
            return
        _replace(target, write, 0o600 if private else 0o666)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"{path} cannot be written: {reason}; make room there or name another place"
        ) from None


def replace_text(path: str | os.PathLike[str], text: str, *, private: bool = False) -> None:
    """Put text in a file's place in one step, as `replace_file` does."""
    replace_file(path, lambda part: part.write(text.encode()), private=private)


def _regular(path: Path) -> Path | None:
    """Return the regular file that a path leads to, whether it is there or not; None if none."""
    while not path.parent.resolve().is_relative_to("/proc"):
        if not path.is_symlink():
            if path.exists() and not path.is_file():
                return None
            return path
        path = path.parent / path.readlink()
    return None


def _replace(path: Path, write: Callable[[IO[bytes]], object], mode: int) -> None:
    name = f".{path.name[:_LONGEST_NAME]}.{os.urandom(4).hex()}.part"
    part = path.with_name(name)
    stream = open(part, "xb", opener=lambda file, flags: os.open(file, flags, mode))  # noqa: SIM115
    try:
        with stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        if path.exists():
            part.chmod(path.stat().st_mode & 0o7777)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    """Make the new name durable too, on systems that open folders."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def lock(path: Path) -> BaseFileLock:
    """Return the lock of a file, taken; its `release` gives it back.

    The system gives it back when the process ends, however it ends. The file of the lock, beside
    the other, stays: removing it could let two in.
    """
    from filelock import FileLock, Timeout

    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}")
    taken = FileLock(path.with_name(f"{path.name}.lock"), timeout=0, mode=0o600, thread_local=False)
    try:
        taken.acquire()
    except Timeout:
        raise InputError(
            f"{path} is open for writing elsewhere: another writer holds the lock; close it there "
            "first"
        ) from None
    except (OSError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be written: its lock: {reason}") from None
    return taken


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, so that no second writer comes between; see `lock`."""
    taken = lock(path)
    try:
        yield
    finally:
        taken.release()
