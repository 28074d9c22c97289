"""All commands. Each reads its options, asks the library one question and prints the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from symdp.cli import options
from symdp.cli.audit import audit
from symdp.cli.calibrate import calibrate
from symdp.cli.card import card
from symdp.cli.catalogue import list_mechanisms, list_methods
from symdp.cli.certify import certify, check
from symdp.cli.curve import curve
from symdp.cli.derivation import derive
from symdp.cli.examples import epilog
from symdp.cli.explore import explore
from symdp.cli.filter import filter_app
from symdp.cli.individual import individual
from symdp.cli.job import Job
from symdp.cli.ledger import ledger_app
from symdp.cli.question import ask_delta, ask_epsilon
from symdp.cli.report import report
from symdp.cli.tradeoff import tradeoff
from symdp.cli.train import train
from symdp.cli.verify import verify

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


_COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_mechanisms, "methods": list_methods, "derive": derive, "delta": delta,
    "epsilon": epsilon, "curve": curve, "verify": verify, "certify": certify, "check": check,
    "calibrate": calibrate, "train": train, "card": card, "tradeoff": tradeoff, "audit": audit,
    "report": report, "explore": explore, "individual": individual,
}  # fmt: skip
for name, command in _COMMANDS.items():
    app.command(name, epilog=epilog(name))(command)
app.add_typer(ledger_app, name="ledger", epilog=epilog("ledger"))
app.add_typer(filter_app, name="filter", epilog=epilog("filter"))
