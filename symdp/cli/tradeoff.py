"""`symdp tradeoff`: what the best attack on one record's presence reaches, listed or drawn."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from symdp.cli import job as words
from symdp.cli import options
from symdp.cli.job import Job
from symdp.errors import InputError

if TYPE_CHECKING:
    from symdp.questions.composition import Composition, Direction

_RATES = "0.001,0.01,0.05,0.1,0.5"
_MOST_RATES = 1000
_DRAWN = 101  # false positive rates of a figure, on the unit interval


@options.of_steps()
def tradeoff(
    *,
    job: Job,
    alpha: Annotated[
        str, typer.Option("--alpha", metavar="A,…", help="False positive rates, 0 to 1.")
    ] = _RATES,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw the curve: .svg, .pdf or .png."),
    ] = None,
    direction: options.Direction = "both",
    time_limit: options.TimeLimit = "60",
    as_json: options.Json = False,
) -> None:
    """Print the least miss rate of any attack at its false positive rate, and draw it."""
    from symdp.cli.supervise import in_time
    from symdp.cli.working import working

    side = words.direction(direction)
    rates = [words.real(word, "--alpha") for word in alpha.split(",")]
    if len(rates) > _MOST_RATES or not all(0.0 <= one <= 1.0 for one in rates):
        raise InputError(f"--alpha {alpha:.40}: at most {_MOST_RATES} rates, each from 0 to 1")
    if plot is not None:
        from symdp.cli.curve import check_drawing

        check_drawing(plot)
    with working(f"trade-off of {job.subject}"):
        in_time(time_limit, job.build, lambda steps: _tell(steps, rates, side, plot, as_json))


def _tell(
    steps: Composition, rates: list[float], side: Direction, plot: Path | None, as_json: bool
) -> None:
    from symdp.cli.display import print_json, print_table, say
    from symdp.decimal_text import given, rounded
    from symdp.questions.tradeoff import membership_advantage, trade_off

    # All at once: what is computed for one rate tells of its neighbours.
    grid = [] if plot is None else [place / (_DRAWN - 1) for place in range(_DRAWN)]
    found = [float(miss) for miss in trade_off(steps, [*rates, *grid], side)]
    misses, drawn = found[: len(rates)], found[len(rates) :]
    advantage = membership_advantage(steps)
    if plot is not None:
        from symdp.page.plot import save_trade_off

        save_trade_off(grid, drawn, plot)
    points = list(zip(rates, misses, strict=True))
    if as_json:
        print_json(
            {
                "points": [
                    {"alpha": one, "beta": miss, "true_positive_rate": 1.0 - miss}
                    for one, miss in points
                ],
                "advantage": advantage,
                "direction": side,
                "count": steps.count,
                **steps.protection.to_json(),
            }
        )
        return
    rows = []
    for one, miss in points:
        rows.append((given(one), rounded(miss, 8, "down"), rounded(1 - Fraction(miss), 8, "up")))
    head = ("false positive rate", "miss rate, at least", "true positive rate, at most")
    print_table(head, rows, range(3))
    say(f"advantage over guessing at most {rounded(advantage, 8, 'up')}")
    say(f"protects {steps.protection.sentence}")
    if plot is not None:
        say(f"drawn: {plot}")
