"""Figures of several curves, as SVG files that are the same bytes whenever the numbers are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

COLOURS = ("#0b5fa5", "#d1495b", "#2a9d5c", "#b8860b", "#7b4fa3", "#5b6770", "#d95f02", "#1b9e9e")
STYLES = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1, 1, 1)),
    (0, (1, 3)),
    (0, (8, 2)),
    (0, (3, 1, 1, 1, 1, 1)),
)
WIDTH, HEIGHT = 5.2, 3.7


@dataclass(frozen=True)
class Curve:
    """One labelled curve; with `high` it is the band from y to high, `dots` draws points alone."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    high: Sequence[float] | None = None
    dots: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes, `mark` a vertical line. A logarithmic y axis leaves out what is below 0."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    log_x: bool = False
    log_y: bool = False
    y_range: tuple[float, float] | None = None
    x_ticks: Sequence[float] = ()
    mark: float | None = None


@dataclass(frozen=True)
class Figure:
    """A figure of the page: file name, heading, what it shows, its panels and what was found.

    `given` and `chosen` tell the paper's parameters from those that are our own.
    """

    name: str
    heading: str
    text: str
    panels: Sequence[Panel]
    given: str
    chosen: str
    rows: Sequence[tuple[str, ...]] = field(default=())
    header: tuple[str, ...] = ()


def save(figure: Figure, folder: Path) -> None:
    """Draw the panels side by side into folder/name.svg and, to be looked at, out/name.png."""
    settings = {
        "svg.hashsalt": figure.name,
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.fontsize": 8,
        "legend.frameon": False,
    }
    with plt.rc_context(settings):
        count = len(figure.panels)
        drawn, axes = plt.subplots(
            1, count, figsize=(WIDTH * count, HEIGHT), squeeze=False, layout="constrained"
        )
        for panel, axis in zip(figure.panels, axes[0], strict=True):
            _draw(panel, axis)
        drawn.savefig(folder / f"{figure.name}.svg", metadata={"Date": None})
        preview = folder.parent.parent / "out" / "figures"
        preview.mkdir(parents=True, exist_ok=True)
        drawn.savefig(preview / f"{figure.name}.png", dpi=80)
        plt.close(drawn)


def _draw(panel: Panel, axis) -> None:
    for place, curve in enumerate(panel.curves):
        colour = COLOURS[place % len(COLOURS)]
        style = STYLES[place % len(STYLES)]
        y = [_shown(value, panel.log_y) for value in curve.y]
        if curve.high is not None:
            high = [_shown(value, panel.log_y) for value in curve.high]
            axis.fill_between(curve.x, y, high, color=colour, alpha=0.18, linewidth=0)
            axis.plot(curve.x, high, color=colour, linestyle=style, label=curve.label)
            axis.plot(curve.x, y, color=colour, linestyle=style)
        elif curve.dots:
            axis.plot(curve.x, y, ".", color=colour, markersize=5, label=curve.label)
        else:
            axis.plot(curve.x, y, color=colour, linestyle=style, label=curve.label)
    axis.set_title(panel.title, fontsize=9)
    axis.set_xlabel(panel.x_label)
    axis.set_ylabel(panel.y_label)
    if panel.log_x:
        axis.set_xscale("log")
    if panel.x_ticks:
        axis.set_xticks(panel.x_ticks, [f"{place:g}" for place in panel.x_ticks])
        axis.set_xticks([], minor=True)
    if panel.log_y:
        axis.set_yscale("log")
    if panel.y_range:
        axis.set_ylim(*panel.y_range)
    if panel.mark is not None:
        axis.axvline(panel.mark, color="black", linewidth=0.8, linestyle="--")
    axis.legend()


def _shown(value: float, log: bool) -> float:
    return math.nan if log and not value > 0 else value
