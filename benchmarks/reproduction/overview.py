"""The three pictures of the documentation's first page: a training, a new noise, an attack."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
from matplotlib import pyplot as plt

import symdp

ROOT = Path(__file__).resolve().parents[2]
EXACT, OTHER, PLAIN = "#0b3d91", "#c8501e", "#777777"
SETTINGS = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",
}


def training(axis: Any) -> None:
    """The job of the README: its exact ε over the epochs, and its Rényi bound."""
    epochs = [1, 2, 5, 10, 20, 30, 40, 50, 60]
    runs = [symdp.training(60_000, 256, n, noise_multiplier="1.12") for n in epochs]
    for method, colour, label in (("renyi", OTHER, "Rényi bound"), ("contour", EXACT, "exact")):
        found = [run.epsilon(1e-5, method).epsilon for run in runs]
        axis.plot(epochs, found, color=colour, label=label)
    axis.set(xlabel="epochs", ylabel="ε at δ = 1e-5", ylim=(0, None))
    axis.legend()


def noise(axis: Any) -> None:
    """Logistic noise as its file writes it, and moved by one record."""
    x, density = np.linspace(-14, 15, 400), lambda x: 1 / (16 * np.cosh(x / 8) ** 2)
    axis.plot(x, density(x), color=PLAIN, label="without a record")
    axis.plot(x, density(x - 1), color=EXACT, label="with it")
    axis.fill_between(x, density(x), density(x - 1), where=x > 0.5, color=EXACT, alpha=0.25)
    axis.set(xlabel="output", ylabel="density", ylim=(0, 0.085))
    axis.legend(loc="upper right", ncols=2)


def attack(axis: Any) -> None:
    """What an attack on that training can reach: its true positive rate over false alarms."""
    run = symdp.training(60_000, 256, 60, noise_multiplier="1.12")
    alarms = np.linspace(0.0, 1.0, 41)
    found = 1 - np.asarray(run.trade_off(alarms))
    axis.plot(alarms, found, color=EXACT, label="no attack is above")
    axis.plot(alarms, alarms, color=PLAIN, linestyle="--", label="guessing")
    axis.set(xlabel="false alarms", ylabel="records found", ylim=(0, 1.02))
    axis.legend(loc="lower right")


PICTURES: dict[str, Callable[[Any], None]] = {
    "training": training, "noise": noise, "attack": attack,
}  # fmt: skip


def main(folder: Path = ROOT / "docs" / "figures") -> None:
    """Draw all three; the same numbers give the same bytes."""
    for name, draw in PICTURES.items():
        with plt.rc_context({**SETTINGS, "svg.hashsalt": name}):
            figure, axis = plt.subplots(figsize=(3.6, 2.6), layout="constrained")
            draw(axis)
            figure.savefig(folder / f"job-{name}.svg", metadata={"Date": None})
            plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
