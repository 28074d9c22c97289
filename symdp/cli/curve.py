"""`symdp curve`: the privacy profile as a table, as JSON, as a figure."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from symdp.cli.display import console, print_json, progress, steps_of
from symdp.decimal_text import rounded

if TYPE_CHECKING:
    from symdp.composition import Composition, Direction
    from symdp.guarantee import Guarantee

_KINDS = ("exact", "bound", "estimate")
_MOST_NAMED = 3  # mechanisms in a title
_SHOWN = 1e-9  # relative; closer bounds look like the value itself


def compute_curve(
    composition: Composition,
    method: str,
    direction: Direction,
    ends: tuple[float, float] | None,
    points: int,
    *,
    plot: Path | None = None,
) -> tuple[list[Guarantee], float]:
    """Return the profile at evenly spaced ε and the seconds it took; draw it if a file is named."""
    from symdp.report.plot import format_of
    from symdp.report.profile import default_range, evenly

    if plot is not None:
        format_of(plot)  # a wrong name is known before the work
    start = time.perf_counter()
    epsilons = evenly(ends or default_range(composition, direction), points)
    with progress() as screen:
        answers = [
            composition.delta(epsilon, method, direction)
            for epsilon in screen.track(epsilons, description="δ(ε)")
        ]
    seconds = time.perf_counter() - start
    if plot is not None:
        _draw(composition, answers, direction, plot)
    return answers, seconds


def print_curve(
    answers: list[Guarantee],
    direction: str,
    seconds: float,
    *,
    as_json: bool,
    plot: Path | None = None,
) -> None:
    """Print the profile, one point a line or as one JSON object."""
    if not as_json:
        _print_table(answers, plot)
        return
    print_json(
        {
            "points": [answer.to_json() for answer in answers],
            "kind": max((answer.kind for answer in answers), key=_KINDS.index),
            "method": answers[0].method,
            "direction": direction,
            "count": answers[0].count,
            "seconds": round(seconds, 6),
        }
    )


def _draw(
    composition: Composition, answers: list[Guarantee], direction: Direction, path: Path
) -> None:
    from symdp.report.plot import Series, save
    from symdp.report.profile import sample

    epsilons = [answer.epsilon for answer in answers]
    curves = [Series.of(answers[0].method, answers)]
    if answers[0].method != "moments":
        bound = sample(composition, epsilons, "moments", direction)
        curves.append(Series.of("moments bound", bound))
    save(curves, path, _title(composition))


def _title(composition: Composition) -> str:
    if len(composition.steps) > _MOST_NAMED:
        return f"{composition.count} steps of {len(composition.steps)} mechanisms"
    return "\n".join(f"{steps_of(n)} of {m.summary}" for m, n in composition.steps)


def _print_table(answers: list[Guarantee], plot: Path | None) -> None:
    from rich.table import Table

    screen = console()
    wide = any(_are_apart(a) for a in answers)
    table = Table(box=None, pad_edge=False)
    for name in ("ε", "δ", *(("lower", "upper") if wide else ())):
        table.add_column(name, justify="right")
    table.add_column("kind")
    for a in answers:
        bounds = [text or "" for text in a.bound_texts()]
        shown = bounds if wide else []
        table.add_row(rounded(a.epsilon, 8, a.side), a.delta_text(), *shown, a.kind)
    screen.print(table)
    for advice in dict.fromkeys(a.advice for a in answers if a.advice):
        screen.print(f"warning: {advice}", style="yellow", soft_wrap=True)
    if plot is not None:
        screen.print(f"drawn: {plot}", soft_wrap=True)


def _are_apart(answer: Guarantee) -> bool:
    """Whether the bounds on δ differ by more than the digits that are shown."""
    low, high = answer.log_lower, answer.log_upper
    return low is not None and high is not None and high - low > _SHOWN
