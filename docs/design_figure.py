"""The gain of designed noise over the number of steps: a table, and docs/figures/design.svg.

Run it as python docs/design_figure.py; it takes some minutes. Each ε is proved by certify.
"""

from __future__ import annotations

import time
from pathlib import Path

from symdp import compose
from symdp.page.plot import settings
from symdp.questions.design.integers import design

FIGURE = Path(__file__).parent / "figures" / "design.svg"
COUNTS = (1, 2, 5, 8, 10, 12, 15, 20, 30, 50, 100)
DELTA, STD, DIGITS = 1e-6, 8, 6


def main() -> None:
    """Print the table, and draw the figure."""
    print("| steps | ε designed | Gaussian | Laplace | gain | seconds to find, to prove |")
    print("| ---: | --- | --- | --- | ---: | --- |")
    gains, curves = [], {}
    for count in COUNTS:
        start = time.process_time()
        best = design(count, delta=DELTA, std=STD)
        found = time.process_time() - start
        proved = {}
        for row in best.rows:
            ends = compose(row.mechanism, count).certify_epsilon(DELTA, DIGITS)
            proved[row.name] = float(ends.upper_decimal)
        seconds = time.process_time() - start - found
        known = min(proved["Gaussian"], proved["Laplace"])
        least = proved.get("designed", known)
        gain = 100.0 * (1.0 - least / known)
        gains.append(gain)
        for name, value in proved.items():
            curves.setdefault(name, []).append(value)
        cells = [f"{proved[name]:.5f}" for name in ("designed", "Gaussian", "Laplace")]
        print(
            f"| {count} | {' | '.join(cells)} | {gain:.2f} % | {found:.1f}, {seconds:.1f} |",
            flush=True,
        )
    with settings():
        from matplotlib import pyplot  # noqa: PLC0415

        figure, (above, below) = pyplot.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained")
        styles = {"designed": "o-", "Gaussian": "s--", "Laplace": "D:"}
        for name, style in styles.items():
            above.loglog(COUNTS, curves[name], style, markersize=3.5, label=name)
        above.set(xlabel="steps", ylabel=f"ε at δ = {DELTA:g}", title=f"standard deviation {STD}")
        above.legend(frameon=False)
        below.semilogx(COUNTS, gains, "o-", markersize=3.5)
        below.set(xlabel="steps", ylabel="percent", title="ε below the better of the two others by")
        for axes in (above, below):
            axes.grid(True, color="#888888", alpha=0.25, linewidth=0.6)
        figure.savefig(FIGURE)


if __name__ == "__main__":
    main()
