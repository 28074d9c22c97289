"""What a caller hands in where a mechanism is needed."""

from __future__ import annotations

from typing import Any

from symdp.errors import InputError
from symdp.model.mechanism import Mechanism

__all__ = ["Mechanism", "a_mechanism"]


def a_mechanism(value: Any) -> Mechanism:
    """Return the value if it is a mechanism.

    Raises
    ------
    InputError : it is anything else, its name for instance; the message says what to pass.

    >>> a_mechanism("gaussian")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    symdp.errors.InputError: 'gaussian' is no mechanism: pass symdp.mechanisms.gaussian, say, ...
    """
    if isinstance(value, Mechanism):
        return value
    text = f"{value!r:.60}"
    named = isinstance(value, str) and value.isidentifier()
    known = f"symdp.mechanisms.{value}" if named else "symdp.mechanisms.gaussian(sigma=2)"
    raise InputError(f'{text} is no mechanism: pass {known}, say, or symdp.load("file.toml")')
