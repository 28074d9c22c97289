"""A composition as a TOML file: [[step]] tables, each a mechanism and how often it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from symdp.errors import InputError
from symdp.mechanisms import resolve
from symdp.model.specification import (
    at,
    document_of,
    read_text,
    refuse_unknown,
    take,
    with_relation,
    with_sampling,
)

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

_LARGEST_COUNT = 10**12  # steps of one [[step]] table


def load_composition(path: str | Path) -> list[tuple[Mechanism, int]]:
    """Read a composition: `[[step]]` tables with mechanism, parameters, sampling and count.

    `mechanism` is a built-in name or a path relative to this file, `parameters` a table of
    numbers or ratios, `sampling` as in a mechanism's own file and optional, `count` how many
    times the step is taken (1 if left out).

    Returns
    -------
    The steps, each mechanism with all its parameters bound.

    Raises
    ------
    InputError : the file cannot be read, or a step is not complete.
    """
    with at(str(path)):
        document = document_of(read_text(path))
        refuse_unknown(document, ("step",))
        steps = take(document, "step", list, required=True)
        if not steps:
            raise InputError("there is no [[step]]; write one for each mechanism")
        composition = []
        for place, step in enumerate(steps, start=1):
            with at(f"[[step]] {place}"):
                composition.append(_step(step, Path(path).parent))
        return composition


def _step(step: object, folder: Path) -> tuple[Mechanism, int]:
    if not isinstance(step, dict):
        raise InputError("a step is a table")
    refuse_unknown(step, ("mechanism", "parameters", "sampling", "relation", "count"))
    name = take(step, "mechanism", str, required=True)
    mechanism = resolve(name, folder)
    mechanism = with_sampling(mechanism, take(step, "sampling", dict))
    mechanism = with_relation(mechanism, take(step, "relation", str))
    with at("parameters"):
        mechanism = mechanism(**take(step, "parameters", dict, default={}))
    count = take(step, "count", int, default=1)
    if not 1 <= count <= _LARGEST_COUNT:
        raise InputError(f"count must be a whole number from 1 to {_LARGEST_COUNT}, not {count}")
    return mechanism.require_concrete(), count
