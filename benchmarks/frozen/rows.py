"""The file of values: one JSON line a row; a later line of it adds to what stands before."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

VALUES = Path(__file__).with_name("values.jsonl")
Row = dict[str, Any]


def read(file: Path = VALUES) -> dict[tuple[str, str], Row]:
    """Return all rows, each by the name of its case and its place of ε."""
    found: dict[tuple[str, str], Row] = {}
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for row in map(json.loads, filter(None, lines)):
        found.setdefault((row["case"], row["place"]), {}).update(row)
    return found


def line(row: Row) -> str:
    """Return a row as one line.

    >>> line({"place": "mean", "case": "a", "epsilon": 0.1})
    '{"case": "a", "epsilon": 0.1, "place": "mean"}\\n'
    """
    return json.dumps(row, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def append(row: Row, file: Path = VALUES) -> None:
    """Add a line."""
    with file.open("a", encoding="utf-8") as opened:
        opened.write(line(row))


def write(rows: Iterable[Row], file: Path = VALUES) -> None:
    """Write the file anew, a line a row."""
    new = file.with_suffix(".new")
    new.write_text("".join(map(line, rows)), encoding="utf-8")
    new.replace(file)
