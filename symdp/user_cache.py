"""Files of derived facts in the user's cache directory: data only, sealed, never run.

A file holds JSON with a checksum, the versions that wrote it and its own key. It is written under
another name and moved into place, so that concurrent writers leave one whole file. One that is
damaged, of other versions, of another key than its name says, or that another user may write to,
counts as missing and is written anew. The environment variable SYMDP_CACHE=off turns all of it off.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from symdp.durable import checksum, decoded, replace_text, sealed
from symdp.errors import InputError

LARGEST = 1_000_000  # bytes of one file
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_DERIVING = ("balls", "density", "derive", "emit", "expansion", "mechanisms", "model", "numeric")


def folder(name: str) -> Path | None:
    """Return the folder of one kind of facts, None where SYMDP_CACHE=off."""
    if os.environ.get("SYMDP_CACHE", "").strip().lower() in {"off", "0", "no", "false"}:
        return None
    base = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(base) if base and Path(base).is_absolute() else None
    if home is None:
        try:
            home = Path.home() / ".cache"
        except RuntimeError:  # no home directory
            return None
    return home / "symdp" / name


def file_for(name: str, *key: str) -> Path | None:
    """Return the file of a key among one kind of facts, None where the cache is off."""
    directory = folder(name)
    if directory is None:
        return None
    return directory / f"{checksum([*versions(), *key])}.json"


@cache
def versions() -> list[str]:
    """Return what a derived fact depends on besides its mechanism: versions and sources.

    Sources count by name, size and time of change, so that nobody who edits them meets old facts.
    """
    from symdp.version import __version__

    package = Path(__file__).parent
    files = sorted(source for room in _DERIVING for source in (package / room).rglob("*.py"))
    sympy = find_spec("sympy")
    if sympy is not None and sympy.origin is not None:
        files.append(Path(sympy.origin).with_name("release.py"))
    stamps = []
    for file in files:
        with suppress(OSError):
            state = file.stat()
            stamps.append(f"{file}:{state.st_size}:{state.st_mtime_ns}")
    return [__version__, ".".join(map(str, sys.version_info[:3])), checksum(stamps)]


def recall(path: Path) -> Any:
    """Return what a file holds; None where there is none, or none that can be trusted."""
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            if state.st_size > LARGEST or not _is_own(state):
                return None
            document = decoded(file.read())
        facts = document["facts"]
        return facts if document == _whole(path, facts) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(path: Path, facts: Any) -> None:
    """Write a file in one step; nothing happens where the disk refuses or it would be too large."""
    text = json.dumps(_whole(path, facts), allow_nan=False)
    if len(text) > LARGEST:
        return
    with suppress(OSError, InputError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_text(path, text, private=True)


def _whole(path: Path, facts: Any) -> dict[str, Any]:
    """Return what a file of facts holds: its name, the checksum of its key, is sealed with them."""
    return sealed({"versions": versions(), "key": path.stem, "facts": facts})


def _is_own(state: os.stat_result) -> bool:
    """Return whether nobody but this user may have written a file."""
    is_mine = not hasattr(os, "getuid") or state.st_uid == os.getuid()
    return is_mine and not state.st_mode & _WRITABLE_BY_OTHERS
