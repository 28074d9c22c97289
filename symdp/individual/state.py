"""State of filters on disk: one JSON file, replaced as a whole before a step may be released.

A commit writes the charged state to a neighbour, flushes it to the disk and renames it over the
file; only then does it return.  A crash before that leaves the step unreleased, a crash after it
leaves it charged: it may be charged in vain, never released in vain.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from symdp.errors import InputError
from symdp.individual.output import replace_file

FORMAT = "symdp-filter"
VERSION = 1


def checksum(state: dict[str, Any]) -> str:
    """Return the SHA-256 of a state's canonical JSON, without its own checksum.

    Examples
    --------
    >>> checksum({"a": 1, "checksum": "x"}) == checksum({"a": 1})
    True
    """
    kept = {key: value for key, value in state.items() if key != "checksum"}
    text = json.dumps(kept, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Replace a state file as a whole; what was there stays if anything fails."""
    full = {"format": FORMAT, "version": VERSION, **state}
    full["checksum"] = checksum(full)
    text = json.dumps(full, indent=1, allow_nan=False) + "\n"
    replace_file(path, lambda part: _write(part, text))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def read_state(path: Path) -> dict[str, Any]:
    """Return a state that was written whole and not edited since.

    Raises
    ------
    InputError
        If the file is missing, cut short, edited, or of another format.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"{path}: the filter's state cannot be read ({reason})") from None
    try:
        state = json.loads(text)
    except ValueError:
        raise InputError(
            f"{path}: the filter's state is cut short or no JSON; restore it from a copy"
        ) from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise InputError(f"{path}: this is no state of a filter; make one with 'symdp filter new'")
    if state.get("version") != VERSION:
        raise InputError(f"{path}: version {state.get('version')!r} of the format is not known")
    if state.get("checksum") != checksum(state):
        raise InputError(
            f"{path}: the filter's state was edited or damaged: its checksum does not fit; "
            "restore it from a copy"
        )
    return state


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a state file, so that no second writer comes between.

    Raises
    ------
    InputError
        If another process or object holds it.
    """
    lock = path.with_name(path.name + ".lock")
    try:
        handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise InputError(f"{lock}: cannot be written ({error.strerror})") from None
    try:
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"{path}: another writer holds the lock; one process at a time may write"
            ) from None
        yield
    finally:
        os.close(handle)


def exact_square(value: float) -> Fraction:
    """Return the square of a double without rounding.

    Examples
    --------
    >>> exact_square(0.5)
    Fraction(1, 4)
    """
    return Fraction(value) * Fraction(value)


def root_up(value: Fraction) -> float:
    """Return a double that is no smaller than the square root, and next to it.

    Examples
    --------
    >>> root_up(Fraction(9, 4)), exact_square(root_up(Fraction(2))) >= 2
    (1.5, True)
    """
    guess = math.sqrt(float(value))
    while exact_square(guess) < value:
        guess = math.nextafter(guess, math.inf)
    while guess > 0 and exact_square(math.nextafter(guess, 0.0)) >= value:
        guess = math.nextafter(guess, 0.0)
    return guess


def number(value: object, name: str, positive: bool = False) -> float:
    """Return a finite number ≥ 0 (or > 0), or refuse it by name."""
    try:
        given = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r}: it must be a number") from None
    if (
        isinstance(value, bool)
        or not math.isfinite(given)
        or given < 0
        or (positive and given == 0)
    ):
        rule = "above 0" if positive else "0 or more"
        raise InputError(f"{name} = {value!r}: it must be a finite number, {rule}")
    return given
