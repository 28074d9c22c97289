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
import prv_rows
import saddle_rows
from drawing import save
from jobs import job
from page import reproduction

DOCS = Path(__file__).resolve().parents[2] / "docs"


def steps_within(epsilon: float, method: str) -> int:
    """The largest number of Gaussian steps, σ = 100, with ε at δ = 1e-5 at most a limit."""
    low, high = 1, 2048
    while high - low > 1:
        middle = (low + high) // 2
        found = job("100", "1", middle).epsilon(1e-5, method=method, direction="remove").epsilon
        low, high = (middle, high) if found <= epsilon else (low, middle)
    return low


def individual() -> list[tuple[str, ...]]:
    """The ε of 420 steps by Rényi's curve, and how many steps the exact profile allows at it."""
    found = job("100", "1", 420).epsilon(1e-5, method="renyi", direction="remove").epsilon
    return [
        ("ε of 420 steps by the Rényi curve (`renyi`)", "0.8", f"{found:.6f}"),
        ("steps at that ε by Gaussian DP (exact: `contour`)", "495",
         str(steps_within(found, "contour"))),
        ("steps at ε = 0.8 exactly, Rényi", "", str(steps_within(0.8, "renyi"))),
        ("steps at ε = 0.8 exactly, Gaussian DP", "", str(steps_within(0.8, "contour"))),
    ]  # fmt: skip


def main() -> None:
    start = time.perf_counter()

    def say(what: str) -> None:
        print(f"{time.perf_counter() - start:6.0f} s  {what}", flush=True)

    folder = DOCS / "figures"
    folder.mkdir(exist_ok=True)
    tables, errors = fourier_rows.tables()
    say("FA Tables 1 and 2")
    grid = fourier_rows.grid_20()
    say("values of FA's code")
    figures = []
    for rows in (fourier_rows, saddle_rows, edgeworth_rows, prv_rows, individual_rows):
        for figure in rows.figures():
            save(figure, folder)
            figures.append(figure)
            say(figure.heading)
    own = allocation_rows.figure()
    save(own, folder)
    say(own.heading)
    text = reproduction(tables, errors, grid, individual(), figures, own, fourier_rows.tails())
    (DOCS / "reproduction.md").write_text(text)
    (DOCS / "how-to-choose.md").write_text(choose.page())
    say("docs/reproduction.md and docs/how-to-choose.md are written")


if __name__ == "__main__":
    sys.exit(main())
