"""The gain of designed noise over the number of steps: tables, and two files in docs/figures.

Run it as python docs/design_figure.py, for whole numbers, with `sizes` for several standard
deviations, or with `reals`; each takes some minutes. Each ε of a designed noise is proved by
certify, but for a few steps and for `sizes`, where it is the accountant's.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from symdp import compose
from symdp.page.plot import settings
from symdp.questions.design.integers import design

FIGURE = Path(__file__).parent / "figures" / "design.svg"
SIZES = Path(__file__).parent / "figures" / "design-sizes.svg"
REALS = Path(__file__).parent / "figures" / "design-reals.svg"
ON_REALS = {1: (1, 3), 2: (1, 10), 8: (1, 2, 10, 20)}  # std: steps
FEW = (2, 3, 4, 5)  # steps whose sums are so many that a proof of them stays too wide
STDS = (4, 8, 16, 32)  # in units of the sensitivity
COUNTS_OF_SIZES = (1, 6, 8, 10, 12, 15, 20, 30, 50, 100)
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
        proved = {}  # but for a few steps
        for row in best.rows:
            proved[row.name] = row.guarantee.epsilon
            if count not in FEW:
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


def over_sizes() -> None:
    """Print the gain for each standard deviation and number of steps, and draw it."""
    print("| steps |" + "".join(f" std {std} |" for std in STDS))
    print("| ---: |" + " ---: |" * len(STDS))
    gains: dict[int, list[float]] = {std: [] for std in STDS}
    for count in COUNTS_OF_SIZES:
        for std in STDS:
            gains[std].append(design(count, delta=DELTA, std=std).gain)
        cells = "".join(f" {gains[std][-1]:.2f} % |" for std in STDS)
        print(f"| {count} |{cells}", flush=True)
    with settings():
        from matplotlib import pyplot  # noqa: PLC0415

        figure, axes = pyplot.subplots(figsize=(6.2, 3.7), layout="constrained")
        for (std, percent), style in zip(gains.items(), ("o-", "s--", "D:", "^-."), strict=True):
            label = f"std = {std} sensitivities"
            axes.semilogx(COUNTS_OF_SIZES, percent, style, markersize=3.5, label=label)
        axes.set(xlabel="steps", ylabel="percent", title="ε below the better of the two others by")
        axes.legend(frameon=False)
        axes.grid(True, color="#888888", alpha=0.25, linewidth=0.6)
        figure.savefig(SIZES)


def on_reals() -> None:
    """Print the table of designs on the reals, and draw their gain for several sizes of noise."""
    print("| std / sensitivity | steps | ε designed | Gaussian | Laplace | gain | seconds |")
    print("| ---: | ---: | --- | --- | --- | ---: | --- |")
    curves: dict[float, dict[int, float]] = {}
    for std, counts in ON_REALS.items():
        for n in counts:
            start = time.process_time()
            best = design(n, delta=DELTA, std=std, support="reals")
            seconds = time.process_time() - start
            if n in FEW:  # where proofs take minutes
                print(n, best, best.seconds)
                curves.setdefault(std, {})[n] = best.gain
                continue
            ends = compose(best.mechanism, n).certify_epsilon(DELTA, 4)
            proving = time.process_time() - start - seconds
            epsilons = {row.name: row.guarantee.epsilon for row in best.rows}
            designed = float(ends.upper_decimal)
            known = min(epsilons["Gaussian"], epsilons["Laplace"])
            gain = max(100.0 * (1.0 - designed / known), 0.0)
            curves.setdefault(std, {})[n] = gain
            others = f"{epsilons['Gaussian']:.5f} | {epsilons['Laplace']:.5f}"
            times = f"{seconds:.1f}, {proving:.1f}"
            print(
                f"| {std} | {n} | {designed:.5f} | {others} | {gain:.2f} % | {times} |", flush=True
            )
    draw_reals(curves)


def draw_reals(curves: dict[float, dict[int, float]]) -> None:
    """Draw gains over the number of steps, a curve for each standard deviation."""
    with settings():
        from matplotlib import pyplot  # noqa: PLC0415

        figure, axes = pyplot.subplots(figsize=(6.2, 3.7), layout="constrained")
        for (std, gains), style in zip(curves.items(), ("o", "s", "D"), strict=True):
            label = f"std = {std} sensitivities"
            axes.semilogx(list(gains), list(gains.values()), style, markersize=5, label=label)
        axes.set(xlabel="steps", ylabel="ε below the better other, percent")
        ticks = sorted({n for gains in curves.values() for n in gains})
        axes.set_xticks(ticks, [str(n) for n in ticks])
        axes.minorticks_off()
        axes.legend(frameon=False)
        axes.grid(True, color="#888888", alpha=0.25, linewidth=0.6)
        figure.savefig(REALS)


if __name__ == "__main__":
    {"reals": on_reals, "sizes": over_sizes}.get("".join(sys.argv[1:]), main)()
