"""Formulas and facts of the built-in mechanisms, which come with the package as data.

They are what a first question would derive. A test derives them anew, and run as a script it
writes them: tests/mechanisms/test_shipped.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from symdp.durable import checksum

FOLDER = Path(__file__).parent / "mechanisms" / "formulas"


@cache
def _held(name: str) -> dict[str, dict[str, Any]]:
    """Return what is shipped of a mechanism: kind of fact -> checksum of a key -> fact."""
    if not name.isidentifier():
        return {}
    file = FOLDER / f"{name}.json"
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


@lru_cache(maxsize=256)
def fact(name: str, kind: str, key: str) -> Any:
    """Return a fact of a mechanism, None where none of this key is shipped."""
    return fact_of_parts(name, kind, [key])


def fact_of_parts(name: str, kind: str, key: Sequence[object]) -> Any:
    """Return a fact whose key has several parts, as JSON has them."""
    return _held(name).get(kind, {}).get(checksum(list(key)))


def facts_of_law(name: str, key: list[str]) -> dict[str, Any] | None:
    """Return what answers for a law without SymPy, its formula among it."""
    facts: dict[str, Any] | None = fact_of_parts(name, "facts", key)
    if facts is None:
        return None
    formulas = _held(name)["formulas"]
    laws = {part: formulas.get(facts[part]) for part in ("formula", "added")}
    return facts | laws
