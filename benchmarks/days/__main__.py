"""Measure the questions of ordinary days and write docs/days.md: a part of `make bench`."""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks import results
from benchmarks.days import measure, page, scaling
from benchmarks.peers import contenders

DOCS = Path(__file__).resolve().parents[2] / "docs"
FIGURES = Path("figures")
MEASURED = FIGURES / "days.json"
RESULTS = DOCS.parent / "benchmarks" / "measured" / "days.json"


def main() -> None:
    """Measure, and write what was measured and the page."""
    arguments = argparse.ArgumentParser(prog="benchmarks.days", description=__doc__)
    arguments.add_argument("--docs", type=Path, default=DOCS, help="where to write")
    arguments.add_argument("--page", action="store_true", help="write the page, measure nothing")
    arguments.add_argument(
        "--every", type=int, default=1, help="print every so manyth question alone, write nothing"
    )
    arguments.add_argument("--results", type=Path, default=RESULTS, help="answers as JSON")
    chosen = arguments.parse_args()
    start = time.perf_counter()
    file = chosen.docs / MEASURED
    kept = json.loads(file.read_text()) if file.is_file() else {"proofs": {}}
    if not chosen.page:
        if chosen.every == 1 and (lacking := contenders.missing()):
            raise SystemExit(f"the page names {' and '.join(lacking)}: install by make bench")
        found, told = [], []
        for row in measure.rows(kept["proofs"], chosen.every):
            found.append(asdict(row))
            told += found[-1].pop("results")
            print(f"{row.name}: {row.warm} s, {row.cold} s, {row.error} {row.failure}", flush=True)
            if chosen.every == 1:
                _write(file, kept)  # a run that was ended proves nothing again
        if chosen.every > 1:
            print(page.summary(found))
            if chosen.results != RESULTS:
                chosen.results.write_text(results.file_of(told))
            return
        chosen.results.write_text(results.file_of(told))
        kept["cores"], kept["load"] = os.cpu_count(), round(max(os.getloadavg()), 1)
        kept["rows"], kept["seconds"] = found, round(time.perf_counter() - start)
        kept["scaling"] = scaling.measured(lambda text: print(text, flush=True))
        _write(file, kept)
    scaling.draw(kept["scaling"], chosen.docs / FIGURES / "days-scaling.svg")
    text = page.page(kept)
    (chosen.docs / "days.md").write_text(text)
    print(page.summary(kept["rows"]))


def _write(file: Path, kept: object) -> None:
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
