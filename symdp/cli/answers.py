"""`symdp delta` and `symdp epsilon`, as Typer reads them."""

from __future__ import annotations

from typing import Annotated

import typer

from symdp.cli import options
from symdp.cli.job import Job
from symdp.cli.question import ask_delta, ask_epsilon


@options.of_steps()
def delta(
    *,
    epsilon: Annotated[str, typer.Option("--epsilon", metavar="E", help="ε in nats.")],
    job: Job,
    method: options.Method = "contour",
    settings: options.Settings,
    direction: options.Direction = "both",
    time_limit: options.TimeLimit = "60",
    explain: options.Explain = False,
    as_json: options.Json = False,
) -> None:
    """Print δ at a given ε."""
    ask_delta(job, locals())


@options.of_steps()
def epsilon(
    *,
    delta: Annotated[str, typer.Option("--delta", metavar="D", help="δ, between 0 and 1.")],
    job: Job,
    method: options.Method = "contour",
    settings: options.Settings,
    direction: options.Direction = "both",
    time_limit: options.TimeLimit = "60",
    explain: options.Explain = False,
    as_json: options.Json = False,
) -> None:
    """Print the smallest ε ≥ 0 at a given δ."""
    ask_epsilon(job, locals())
