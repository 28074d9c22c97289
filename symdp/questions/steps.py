"""The steps of a composition as people hand them in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symdp.errors import InputError
from symdp.model.mechanism import Mechanism


def listed_steps(steps: object) -> list[tuple[Mechanism, Any]]:
    """Return a list of mechanisms, or of (mechanism, count), as pairs; InputError for others."""
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        raise InputError(f"{steps!r:.60} is no mechanism, nor a list of (mechanism, count)")
    pairs = []
    for place, step in enumerate(steps, start=1):
        pair = (step, 1) if isinstance(step, Mechanism) else step
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise InputError(f"step {place}: a mechanism or (mechanism, count) is needed")
        if not isinstance(pair[0], Mechanism):
            raise InputError(f"step {place}: {pair[0]!r:.60} is no mechanism")
        pairs.append((pair[0], pair[1]))
    return pairs
