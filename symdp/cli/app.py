"""All commands. Each reads its options, asks the library one question and prints the answer."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

# Command -> where it is, and its line in the list of all.
COMMANDS = {
    "list": ("catalogue.list_mechanisms", "Show the built-in mechanisms with their parameters."),
    "methods": ("catalogue.list_methods", "Show the methods and what they promise."),
    "derive": ("derivation.derive", "Derive the privacy loss, its CGF and the expansions."),
    "delta": ("answers.delta", "Print δ at a given ε."),
    "epsilon": ("answers.epsilon", "Print the smallest ε ≥ 0 at a given δ."),
    "curve": ("curve.curve", "Print the privacy profile δ(ε), and draw it."),
    "verify": ("verify.verify", "Compare every accountant with a many-digit reference."),
    "certify": ("certify.certify", "Print two decimals between which δ (or ε) is proved to lie."),
    "check": ("certify.check", "Check a certificate by a program of its own."),
    "calibrate": ("calibrate.calibrate", "Print the parameter that just meets (ε, δ)."),
    "train": ("train.train", "Print ε of a training run, or the noise for an ε."),
    "card": ("card.card", "Write or check a privacy card."),
    "tradeoff": ("tradeoff.tradeoff", "Print the least miss rate of any attack."),
    "audit": ("audit.audit", "Print a lower bound on ε from an attack's counts."),
    "report": ("report.report", "Write a report with derivation, accountants and proof."),
    "explore": ("explore.explore", "Write a page with sliders for ε, δ and attacks."),
    "individual": ("individual.individual", "Print what every record's ε comes to."),
    "ledger": ("ledger.ledger_app", "A budget ledger in a file: add, epsilon, show."),
    "filter": ("filter.filter_app", "A privacy filter in a file: new, ask, commit, status."),
}


class _Commands(UserDict[str, Any]):
    """The commands by name, each built when it is asked for: all take a tenth of a second."""

    def __getitem__(self, name: str) -> Any:
        where = super().__getitem__(name)
        if isinstance(where, str):
            self[name] = _built(name, where)
        return super().__getitem__(name)


class _Program(TyperGroup):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _Commands({name: where for name, (where, _) in COMMANDS.items()})

    def format_commands(self, _: Any, formatter: Any) -> None:
        """Write the list of all commands without building one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


app = typer.Typer(
    cls=_Program,
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


def _built(name: str, where: str) -> Any:
    """Return a command or a group of commands as Typer makes it."""
    from symdp.cli.examples import epilog

    module, attribute = where.split(".")
    found = getattr(import_module(f"symdp.cli.{module}"), attribute)
    alone = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name, epilog=epilog(name))
    else:
        alone.command(name, epilog=epilog(name))(found)
        alone.callback()(lambda: None)  # else Typer gives it options for completion
    made: Any = typer.main.get_command(alone)
    return made.commands[name]
