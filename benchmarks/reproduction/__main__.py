"""Compute the published tables and figures anew and write them into docs/: `make figures`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import allocation_rows
import choose
import edgeworth_rows
import fourier_rows
import individual_rows
import overview
import prv_rows
import saddle_rows
import training_rows
from drawing import save
from page import reproduction

DOCS = Path(__file__).resolve().parents[2] / "docs"


def main() -> None:
    start = time.perf_counter()

    def say(what: str) -> None:
        print(f"{time.perf_counter() - start:6.0f} s  {what}", flush=True)

    folder = DOCS / "figures"
    folder.mkdir(exist_ok=True)
    overview.main(folder)
    tables, errors = fourier_rows.tables()
    say("FA Tables 1 and 2")
    grid = fourier_rows.grid_20()
    say("values of FA's code")
    figures = []
    papers = (fourier_rows, saddle_rows, edgeworth_rows, prv_rows, individual_rows, training_rows)
    for rows in papers:
        for figure in rows.figures():
            save(figure, folder)
            figures.append(figure)
            say(figure.heading)
    own = allocation_rows.figure()
    save(own, folder)
    say(own.heading)
    numbers = individual_rows.numbers()
    text = reproduction(tables, errors, grid, numbers, figures, own, fourier_rows.tails())
    (DOCS / "reproduction.md").write_text(text)
    (DOCS / "how-to-choose.md").write_text(choose.page())
    say("docs/reproduction.md and docs/how-to-choose.md are written")


if __name__ == "__main__":
    sys.exit(main())
