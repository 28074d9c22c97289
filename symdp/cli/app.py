"""The commands. Each reads its options, asks the library one question and prints the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from symdp.cli import options
from symdp.cli.card import card
from symdp.cli.examples import epilog
from symdp.cli.filter import filter_app
from symdp.cli.individual import individual
from symdp.cli.job import Job
from symdp.cli.ledger import ledger_app
from symdp.cli.question import ask_delta, ask_epsilon
from symdp.cli.report import report
from symdp.cli.tradeoff import tradeoff
from symdp.cli.train import train
from symdp.errors import InputError

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Privacy accounting from a mechanism's density: derived, exact, checked.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from symdp.version import __version__

        typer.echo(f"symdp {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command("list", epilog=epilog("list"))
def list_mechanisms(name: options.OneName = None) -> None:
    """Show the built-in mechanisms with their parameters."""
    from symdp.cli.catalogue import print_catalogue

    print_catalogue(name)


@app.command(epilog=epilog("derive"))
def derive(
    *,
    mechanism: options.Mechanism = None,
    values: options.Values = None,
    order: Annotated[
        str, typer.Option("--order", metavar="K", help="Show terms up to this order, 1 to 8.")
    ] = "2",
    form: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="text, latex, mathml, python, c or json."),
    ] = "text",
    time_limit: Annotated[
        str,
        typer.Option(
            "--time-limit", metavar="S", help="Seconds; what is not found by then stays numeric."
        ),
    ] = "20",
    sampling: options.Scheme = None,
    rate: options.Rate = None,
    batch: options.Batch = None,
    records: options.Records = None,
    group: options.Group = None,
    steps: options.Steps = None,
    participations: options.Participations = None,
    relation: options.Relation = None,
    direction: options.OneDirection = "remove",
    exact: Annotated[
        bool,
        typer.Option("--exact", help="With c or python: the exact accountant, not the estimate."),
    ] = False,
) -> None:
    """Derive the privacy loss, its range and CGF, and the expansions of a mechanism."""
    from symdp.cli import job as words
    from symdp.cli.derivation import print_derivation

    job = Job.of(locals())
    terms = words.whole(order, "--order", 1, 8)
    limit = words.real(time_limit, "--time-limit")
    print_derivation(job, direction, terms, form, limit, exact=exact)


@app.command(epilog=epilog("delta"))
def delta(
    *,
    epsilon: Annotated[str, typer.Option("--epsilon", metavar="E", help="ε in nats.")],
    mechanism: options.Mechanism = None,
    values: options.Values = None,
    count: options.Count = None,
    method: options.Method = "contour",
    sampling: options.Scheme = None,
    rate: options.Rate = None,
    batch: options.Batch = None,
    records: options.Records = None,
    group: options.Group = None,
    steps: options.Steps = None,
    participations: options.Participations = None,
    relation: options.Relation = None,
    direction: options.Direction = "both",
    composition: options.CompositionFile = None,
    time_limit: options.TimeLimit = "60",
    explain: options.Explain = False,
    as_json: options.Json = False,
) -> None:
    """Print δ at a given ε."""
    ask_delta(locals())


@app.command(epilog=epilog("epsilon"))
def epsilon(
    *,
    delta: Annotated[str, typer.Option("--delta", metavar="D", help="δ, between 0 and 1.")],
    mechanism: options.Mechanism = None,
    values: options.Values = None,
    count: options.Count = None,
    method: options.Method = "contour",
    sampling: options.Scheme = None,
    rate: options.Rate = None,
    batch: options.Batch = None,
    records: options.Records = None,
    group: options.Group = None,
    steps: options.Steps = None,
    participations: options.Participations = None,
    relation: options.Relation = None,
    direction: options.Direction = "both",
    composition: options.CompositionFile = None,
    time_limit: options.TimeLimit = "60",
    explain: options.Explain = False,
    as_json: options.Json = False,
) -> None:
    """Print the smallest ε ≥ 0 at a given δ."""
    ask_epsilon(locals())


@app.command(epilog=epilog("curve"))
def curve(
    *,
    mechanism: options.Mechanism = None,
    values: options.Values = None,
    count: options.Count = None,
    epsilon_range: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--epsilon-range", metavar="A B", help="From 0 to where δ is 1e-10, if left out."
        ),
    ] = None,
    points: Annotated[
        str, typer.Option("--points", metavar="N", help="How many ε, both ends among them.")
    ] = "50",
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw the curve: .svg, .pdf or .png."),
    ] = None,
    method: options.Method = "contour",
    sampling: options.Scheme = None,
    rate: options.Rate = None,
    batch: options.Batch = None,
    records: options.Records = None,
    group: options.Group = None,
    steps: options.Steps = None,
    participations: options.Participations = None,
    relation: options.Relation = None,
    direction: options.Direction = "both",
    composition: options.CompositionFile = None,
    time_limit: options.TimeLimit = "60",
    as_json: options.Json = False,
) -> None:
    """Print the privacy profile δ(ε) at evenly spaced ε, and draw it."""
    from symdp.cli import job as words
    from symdp.cli.curve import compute_curve, print_curve
    from symdp.cli.patience import in_time

    job = Job.of(locals())
    side = words.direction(direction)
    ends = None
    if epsilon_range is not None:
        low, high = (words.real(end, "--epsilon-range") for end in epsilon_range)
        ends = (low, high)
        if not low < high:
            raise InputError("--epsilon-range A B: A must lie below B")
    name, many = words.method(method), words.whole(points, "--points", 2, 10_000)
    answers, seconds = in_time(
        time_limit,
        lambda: job,
        lambda asked: compute_curve(asked, name, side, ends, many, plot=plot),
    )
    print_curve(answers, side, seconds, as_json=as_json, plot=plot)


@app.command(epilog=epilog("verify"))
def verify(
    *,
    mechanism: options.Mechanism = None,
    values: options.Values = None,
    count: options.Count = None,
    digits: Annotated[
        str, typer.Option("--digits", metavar="D", help="Digits of the truth, 15 to 200.")
    ] = "20",
    method: Annotated[
        str | None, typer.Option("--method", metavar="METHOD", help="Compare this one only.")
    ] = None,
    sampling: options.Scheme = None,
    rate: options.Rate = None,
    batch: options.Batch = None,
    records: options.Records = None,
    group: options.Group = None,
    steps: options.Steps = None,
    participations: options.Participations = None,
    relation: options.Relation = None,
    direction: options.Direction = "both",
    composition: options.CompositionFile = None,
    time_limit: options.TimeLimit = "60",
    as_json: options.Json = False,
) -> None:
    """Compare every accountant with an independent many-digit truth (100 steps unless -n says)."""
    from symdp.cli import job as words
    from symdp.cli.patience import in_time
    from symdp.cli.verify import print_verification

    job = Job.of(locals())
    side = words.direction(direction)
    precise = words.whole(digits, "--digits", 15, 200)
    chosen = None if method is None else [words.method(method)]
    broken = in_time(
        time_limit,
        lambda: job,
        lambda asked: print_verification(asked, side, precise, as_json, chosen),
    )
    if broken:
        raise typer.Exit(1)


@app.command(epilog=epilog("certify"))
def certify(
    *,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="E", help="Prove δ at this ε.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option("--delta", metavar="D", help="Or prove ε at this δ.")
    ] = None,
    mechanism: options.Mechanism = None,
    values: options.Values = None,
    count: options.Count = None,
    digits: Annotated[
        str, typer.Option("--digits", metavar="D", help="Proved digits, 1 to 200.")
    ] = "15",
    sampling: options.Scheme = None,
    rate: options.Rate = None,
    batch: options.Batch = None,
    records: options.Records = None,
    group: options.Group = None,
    steps: options.Steps = None,
    participations: options.Participations = None,
    relation: options.Relation = None,
    direction: options.Direction = "both",
    composition: options.CompositionFile = None,
    time_limit: options.TimeLimit = "60",
    as_json: options.Json = False,
) -> None:
    """Print two decimals between which δ (or ε) is proved to lie, every rounding included."""
    from symdp.cli import job as words
    from symdp.cli.certify import prove

    job = Job.of(locals())
    side = words.direction(direction)
    if (epsilon is None) == (delta is None):
        raise InputError("give --epsilon E or --delta D, one of the two")
    prove(job, epsilon, delta, words.whole(digits, "--digits", 1, 200), side, time_limit, as_json)


@app.command(epilog=epilog("calibrate"))
def calibrate(
    *,
    parameter: Annotated[
        str,
        typer.Option(
            "--parameter", metavar="NAME", help="A parameter, a sampling rate, or n: the steps."
        ),
    ],
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="E", help="ε in nats.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option("--delta", metavar="D", help="δ, between 0 and 1.")
    ] = None,
    advantage: options.Advantage = None,
    tpr: options.TruePositiveRate = None,
    fpr: options.FalsePositiveRate = None,
    mechanism: options.Mechanism = None,
    values: options.Values = None,
    count: options.Count = None,
    digits: Annotated[
        str | None,
        typer.Option("--digits", metavar="K", help="Significant digits, 4 to 13; 10, 6 of a rate."),
    ] = None,
    between: Annotated[
        tuple[str, str] | None,
        typer.Option("--between", metavar="A B", help="Search between these two values only."),
    ] = None,
    method: options.Method = "contour",
    sampling: options.Scheme = None,
    rate: options.Rate = None,
    batch: options.Batch = None,
    records: options.Records = None,
    group: options.Group = None,
    steps: options.Steps = None,
    participations: options.Participations = None,
    relation: options.Relation = None,
    direction: options.Direction = "both",
    time_limit: options.TimeLimit = "60",
    as_json: options.Json = False,
) -> None:
    """Print the value of a parameter that just meets (ε, δ), rounded to the safe side.

    Or the value that holds attacks down: --advantage A, or --tpr T at --fpr F.
    """
    from symdp.cli import job as words
    from symdp.cli.calibrate import Target, run_calibration
    from symdp.cli.patience import in_time

    job = Job.of(locals())
    target = Target.of(epsilon, delta, advantage, tpr, fpr)
    in_time(
        time_limit,
        lambda: job,
        lambda asked: run_calibration(
            asked,
            parameter,
            target,
            digits=None if digits is None else words.whole(digits, "--digits", 4, 13),
            between=between,
            method=words.method(method),
            direction=words.direction(direction),
            as_json=as_json,
        ),
    )


app.command("train", epilog=epilog("train"))(train)
app.command("card", epilog=epilog("card"))(card)
app.command("tradeoff", epilog=epilog("tradeoff"))(tradeoff)
app.add_typer(ledger_app, name="ledger", epilog=epilog("ledger"))
app.command("report", epilog=epilog("report"))(report)
app.command("individual", epilog=epilog("individual"))(individual)
app.add_typer(filter_app, name="filter", epilog=epilog("filter"))
