"""Freeze answers and compare: `python -m benchmarks.frozen make`, `... compare`, `... state`."""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.frozen import asking, rows
from benchmarks.frozen.cases import SEED, Case, cases
from benchmarks.frozen.comparison import Finding, compare, table
from benchmarks.frozen.state import differences


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the file of values, compare with it, or ask in several ways whether answers differ."""
    parser = argparse.ArgumentParser(prog="benchmarks.frozen", description=__doc__)
    parser.add_argument("what", choices=("make", "compare", "state"))
    parser.add_argument("--part", default="1/1", help="K/N: every Nth case, from the Kth on")
    parser.add_argument("--only", default="*", help="cases whose names match a pattern")
    parser.add_argument("--values", type=Path, default=rows.VALUES, help="the file of values")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--columns", default="", help=f"of {', '.join(asking.COLUMNS)}")
    parser.add_argument("--certify", action="store_true", help="compare certificates too")
    parser.add_argument("--json", type=Path, help="write what was found to this file too")
    chosen = parser.parse_args(arguments)
    named = list(filter(None, chosen.columns.split(",")))
    end = time.monotonic() + chosen.seconds
    asking.prepare()
    these = _chosen(chosen.part, chosen.only)
    if chosen.what == "make":
        _make(these, named or list(asking.COLUMNS), chosen.values, end)
        return
    if chosen.what == "state":
        _state(these, chosen.values, end)
        return
    found = list(_compared(these, named or _usual(chosen.certify), chosen.values, end))
    print(table(found))
    if chosen.json:
        told = [asdict(one) for one in found]
        chosen.json.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def _usual(certify: bool) -> list[str]:
    return ["answer", "6", "10"] if certify else ["answer"]


def _chosen(part: str, only: str) -> list[Case]:
    """Return cases in an order in which the first hundred are of every kind."""
    first, parts = map(int, part.split("/"))
    all_of_them = list(cases().values())
    random.Random(SEED).shuffle(all_of_them)
    matched = [case for case in all_of_them if fnmatch.fnmatch(case.name, only)]
    return matched[first - 1 :: parts]


def _make(these: list[Case], columns: list[str], file: Path, end: float) -> None:
    """Add what is not in the file yet, column by column; what is there stays as it is."""
    for column in columns:
        for case in these:
            if time.monotonic() > end:
                break
            for row in _rows_of(case, file):
                if column not in row:
                    row[column] = asking.ask(case, row["epsilon"], column)
                    rows.append(row, file)
                    print(_told(row, column), flush=True)
    kept = rows.read(file)
    order = {name: k for k, name in enumerate(cases())}
    rows.write(sorted(kept.values(), key=lambda row: order.get(row["case"], -1)), file)


def _rows_of(case: Case, file: Path) -> list[rows.Row]:
    """Return the rows of a case, of which the file may have none yet."""
    kept = rows.read(file)
    found = [kept[case.name, place] for place in case.places if (case.name, place) in kept]
    if len(found) == len(case.places):
        return found
    epsilons = asking.epsilons_of(case)
    why = epsilons.get("refused")
    if why is not None:
        print(f"{case.name}: no ε: {why}", flush=True)
        epsilons = {place: 0.5 * (k + 1) for k, place in enumerate(case.places)}
    common = {"case": case.name, "direction": case.direction}
    return [common | {"place": place, "epsilon": epsilons[place]} for place in case.places]


def _told(row: rows.Row, column: str) -> str:
    found = row[column]
    what = found.get("refused") or found.get("log_delta") or found.get("lower")
    return f"{row['case']}, {row['place']}, {column}: {what} ({found['seconds']} s)"


def _compared(these: list[Case], columns: list[str], file: Path, end: float) -> Iterator[Finding]:
    kept = rows.read(file)
    for case in these:
        for place in case.places:
            row = kept.get((case.name, place), {})
            for column in columns:
                if column in row and time.monotonic() < end:
                    yield compare(row, asking.ask(case, row["epsilon"], column), column)


def _state(these: list[Case], file: Path, end: float) -> None:
    """Print where an answer depends on what was asked before it."""
    kept, cases_asked, lines = rows.read(file), 0, 0
    for case in these:
        found = [kept[key] for key in ((case.name, place) for place in case.places) if key in kept]
        answered = [row["epsilon"] for row in found if "log_delta" in row.get("answer", {})]
        if answered and time.monotonic() < end:
            cases_asked += 1
            for line in differences(case, answered):
                lines += 1
                print(line, flush=True)
    print(f"{cases_asked} cases asked, {lines} answers depend on what was asked before")


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
