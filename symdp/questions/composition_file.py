"""A composition as a TOML file: [[step]] tables, each a mechanism and how often it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from symdp.errors import InputError, at
from symdp.mechanisms import resolve
from symdp.model.specification import (
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
    times the step is taken (1 if left out). Steps that name a `part` are refused, see
    `load_parts`.

    Returns
    -------
    The steps, each mechanism with all its parameters bound.

    Raises
    ------
    InputError : the file cannot be read, or a step is not complete.
    """
    parts = load_parts(path)
    if list(parts) != [""]:
        raise InputError(
            f"{path}: its steps are those of parts of the data: ask delta or epsilon, or "
            "symdp.parallel(symdp.load_parts(path))"
        )
    return parts[""]


def load_parts(path: str | Path) -> dict[str, list[tuple[Mechanism, int]]]:
    """Read a composition whose steps may each see one part of the data: `part = "north"`.

    Returns
    -------
    Name of a part -> its steps, those without a part among them, as they see all the data; the
    name is empty where no step has a part.

    Raises
    ------
    InputError : as for `load_composition`.
    """
    with at(str(path)):
        document = document_of(read_text(path))
        refuse_unknown(document, ("step",))
        steps = take(document, "step", list, required=True)
        if not steps:
            raise InputError("there is no [[step]]; write one for each mechanism")
        found = []
        for place, step in enumerate(steps, start=1):
            with at(f"[[step]] {place}"):
                found.append(_step(step, Path(path).parent))
        names = list(dict.fromkeys(part for part, _ in found if part)) or [""]
        return {name: [step for part, step in found if part in ("", name)] for name in names}


def _step(step: object, folder: Path) -> tuple[str, tuple[Mechanism, int]]:
    """Return the part of a step, empty where it sees all the data, its mechanism and count."""
    if not isinstance(step, dict):
        raise InputError("a step is a table")
    refuse_unknown(step, ("mechanism", "parameters", "sampling", "relation", "count", "part"))
    name = take(step, "mechanism", str, required=True)
    mechanism = resolve(name, folder)
    mechanism = with_sampling(mechanism, take(step, "sampling", dict))
    mechanism = with_relation(mechanism, take(step, "relation", str))
    with at("parameters"):
        mechanism = mechanism(**take(step, "parameters", dict, default={}))
    count = take(step, "count", int, default=1)
    if not 1 <= count <= _LARGEST_COUNT:
        raise InputError(f"count must be a whole number from 1 to {_LARGEST_COUNT}, not {count}")
    return take(step, "part", str, default=""), (mechanism.require_concrete(), count)
