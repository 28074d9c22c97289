"""Time against error, one figure a job, as an SVG of the same bytes whenever the numbers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

LEAST, MOST = 1e-17, 1e4  # errors beyond are drawn on the edge
OURS = "symdp"
# Group of points -> marker, colour, size, and whether a line joins them.
STYLES = {
    "symdp, exact": ("*", "#0b3d91", 13, False),
    "symdp, bounds": ("o", "#2a7f3f", 6, False),
    "symdp, estimates": ("o", "#3f8fd2", 6, False),
    "Google PLD, connect the dots": ("s", "#c8501e", 7, True),
    "Google PLD, privacy buckets": ("D", "#8a1c3b", 7, True),
    "Google PLD, buckets rounded down": ("v", "#d98b9f", 7, True),
    "Google RDP": ("X", "#6b4c2a", 8, False),
    "prv-accountant": ("^", "#7b3fa0", 7, True),
    "autodp, Rényi": ("P", "#8f7a1f", 8, False),
    "PLD_accounting": ("<", "#b0436e", 7, True),
}
SIZE = (9.2, 6.2)
SIDES = ((1, 0), (0.7, 0.8), (0.7, -0.8), (-1, 0), (-0.7, 0.8), (-0.7, -0.8), (0, 1), (0, -1))
OFFSETS = tuple((far * x, far * y) for far in (7, 13, 20, 28, 38) for x, y in SIDES)


@dataclass(frozen=True)
class Point:
    """One contender: its group, the text beside it, seconds, |relative error|, and its side."""

    group: str
    label: str
    seconds: float
    error: float
    below: bool


def save(points: Sequence[Point], title: str, name: str, folder: Path, preview: Path) -> None:
    """Draw into folder/name.svg and, to be looked at, preview/name.png."""
    settings = {
        "svg.hashsalt": name,
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#e4e4e4",
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "legend.fontsize": 8,
    }
    with plt.rc_context(settings):
        figure, axis = plt.subplots(figsize=SIZE, layout="constrained")
        axis.set(xscale="log", yscale="log", xlabel="seconds for one δ, from the parameters")
        axis.set_ylabel("|relative error of δ|")
        axis.set_title(title, fontsize=10)
        for group in STYLES:
            _draw_group(axis, group, [p for p in points if p.group == group])
        axis.set_ylim(LEAST / 4.0, MOST * 60.0)
        axis.margins(x=0.12)
        figure.legend(handles=_keys(points), loc="outside lower center", ncols=3)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        _label(figure, axis, points)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        preview.mkdir(parents=True, exist_ok=True)
        figure.savefig(preview / f"{name}.png", dpi=90)
        plt.close(figure)


def clipped(error: float) -> float:
    """Return an error within the axes."""
    return min(max(error, LEAST), MOST)


def _draw_group(axis, group: str, points: Sequence[Point]) -> None:
    marker, colour, size, joined = STYLES[group]
    if joined and len(points) > 1:
        x, y = [p.seconds for p in points], [clipped(p.error) for p in points]
        axis.plot(x, y, color=colour, linewidth=0.9, alpha=0.6)
    for p in points:
        axis.plot(
            p.seconds, clipped(p.error), marker, color=colour, markersize=size,
            markerfacecolor="white" if p.below else colour, markeredgewidth=1.3,
        )  # fmt: skip


def _keys(points: Sequence[Point]) -> list[Line2D]:
    keys = []
    for group, (marker, colour, size, _) in STYLES.items():
        if any(p.group == group for p in points):
            keys.append(
                Line2D([], [], marker=marker, color=colour, linestyle="", markersize=min(size, 9),
                       label=group)
            )  # fmt: skip
    keys.append(
        Line2D([], [], marker="o", color="#444444", linestyle="", markerfacecolor="white",
               label="hollow: below the true δ")
    )  # fmt: skip
    return keys


def _label(figure, axis, points: Sequence[Point]) -> None:
    """Put each text at the first place beside its point that covers nothing yet."""
    renderer = figure.canvas.get_renderer()
    dots = [axis.transData.transform((p.seconds, clipped(p.error))) for p in points]
    taken = [Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in dots]
    inside = axis.get_window_extent(renderer)
    for point in sorted(points, key=lambda p: not p.group.startswith(OURS)):
        colour = STYLES[point.group][1]
        text = axis.annotate(
            point.label, (point.seconds, clipped(point.error)), xytext=OFFSETS[0],
            textcoords="offset points", fontsize=7, color=colour, va="center",
        )  # fmt: skip
        for dx, dy in OFFSETS:
            text.set_position((dx, dy))
            text.set_horizontalalignment("left" if dx > 0 else "right" if dx < 0 else "center")
            box = text.get_window_extent(renderer)
            fits = inside.x0 <= box.x0 and box.x1 <= inside.x1
            fits = fits and inside.y0 <= box.y0 and box.y1 <= inside.y1
            if fits and not any(box.overlaps(other) for other in taken):
                break
        else:
            text.remove()
            continue
        taken.append(box)
        if dx * dx + dy * dy > 13.5**2:
            axis.annotate(
                "", (point.seconds, clipped(point.error)), xytext=(dx, dy),
                textcoords="offset points",
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.6},
            )  # fmt: skip
