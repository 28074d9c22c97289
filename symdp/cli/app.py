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
    "delta": ("question.delta", "Print δ at a given ε."),
    "epsilon": ("question.epsilon", "Print the smallest ε ≥ 0 at a given δ."),
    "curve": ("accounting.curve", "Print the privacy profile δ(ε), and draw it."),
    "verify": ("accounting.verify", "Compare every accountant with a many-digit reference."),
    "certify": (
        "accounting.certify",
        "Print two decimals between which δ (or ε) is proved to lie.",
    ),
    "check": ("accounting.check", "Check a certificate by a program of its own."),
    "check-claim": ("accounting.check_claim", "Prove or refute a stated (ε, δ)."),
    "calibrate": ("accounting.calibrate", "Print the parameter that just meets (ε, δ)."),
    "train": ("training.train", "Print ε of a training run, or the noise for an ε."),
    "card": ("pages.card", "Write or check a privacy card."),
    "compare": ("accounting.compare", "Print noises of one size side by side."),
    "tradeoff": ("accounting.tradeoff", "Print the least miss rate of any attack."),
    "renyi": ("accounting.renyi", "Print Rényi divergences and the least ρ of zCDP."),
    "audit": ("accounting.audit", "Print a lower bound on ε from an attack's counts."),
    "report": ("pages.report", "Write a report with derivation, accountants and proof."),
    "explore": ("pages.explore", "Write a page with sliders for ε, δ and attacks."),
    "individual": ("records.individual", "Print what every record's ε comes to."),
    "ledger": ("records.LEDGER", "A budget ledger in a file: add, epsilon, show."),
    "filter": ("records.FILTER", "A privacy filter in a file: new, ask, commit, status."),
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
    from symdp.cli.options import typed

    module, attribute = where.split(".")
    found = getattr(import_module(f"symdp.cli.{module}"), attribute)
    alone = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(found, dict):
        group = typer.Typer(rich_markup_mode=None, help=COMMANDS[name][1])
        for own, command in found.items():
            group.command(own, epilog=epilog(f"{name} {own}"))(typed(command, name))
        alone.add_typer(group, name=name, epilog=epilog(name))
    else:
        alone.command(name, epilog=epilog(name))(typed(found, name))
        alone.callback()(lambda: None)  # else Typer gives it options for completion
    made: Any = typer.main.get_command(alone)
    return made.commands[name]


_JOB = "gaussian sigma=1.12 --sampling poisson --rate 256/60000 -n 14063"
_DATA = "--examples 60000 --batch 256 --epochs 60"
_RUN = f"{_DATA} --noise 1.12"
_PLAN = f"{_DATA} --target-epsilon 3"

EXAMPLES: dict[str, tuple[str, ...]] = {
    "list": ("symdp list",),
    "methods": ("symdp methods",),
    "derive": (
        "symdp derive laplace",
        "symdp derive gaussian sigma=1.5 --sampling poisson --rate 0.01 -n 10000 --epsilon 1",
        "symdp derive examples/logistic.toml --format latex",
        "symdp derive gaussian --format javascript",
    ),
    "delta": (
        "symdp delta laplace b=2 -n 1 --epsilon 0.4",
        "symdp delta examples/logistic.toml s=4 -n 50 --epsilon 2.5 --json",
        "symdp delta laplace b=20 -n 50 --epsilon 1 --method prv --eps-error 1e-3",
    ),
    "epsilon": (
        f"symdp epsilon {_JOB} --delta 1e-5",
        "symdp epsilon --composition examples/composition.toml --delta 1e-6",
    ),
    "curve": ("symdp curve gaussian sigma=2 -n 10 --epsilon-range 0 5 --plot curve.svg",),
    "verify": ("symdp verify gaussian sigma=2 -n 10 --method moments",),
    "certify": (
        "symdp certify gaussian sigma=2 -n 10 --epsilon 3 --digits 8",
        "symdp certify gaussian sigma=2 -n 30 --epsilon 3 --digits 8 --certificate proof.json",
    ),
    "check": ("symdp check proof.json",),
    "check-claim": (
        'symdp check-claim "ε = 17 at δ = 1e-5" gaussian sigma=2 -n 30',
        'symdp check-claim "eps=0.8, delta=1e-6" --composition examples/composition.toml',
    ),
    "calibrate": (
        "symdp calibrate gaussian --parameter sigma -n 10 --epsilon 2 --delta 1e-5",
        "symdp calibrate gaussian sigma=2 --parameter n --epsilon 2 --delta 1e-5",
        "symdp calibrate gaussian --parameter sigma -n 10 --advantage 0.1",
    ),
    "compare": ("symdp compare gaussian laplace student_t nu=5 --std 20 -n 50 --delta 1e-5",),
    "tradeoff": ("symdp tradeoff gaussian sigma=4 -n 10 --alpha 0.001,0.01 --plot attack.svg",),
    "renyi": ("symdp renyi laplace b=2 -n 10 --order 2,8",),
    "audit": (
        "symdp audit --tp 90/100 --fp 5/100 --delta 1e-5",
        "symdp audit gaussian sigma=5 -n 1 --tp 200/400 --fp 40/400",
    ),
    "train": (f"symdp train {_RUN} --delta 1e-5", f"symdp train {_PLAN} --delta 1e-5"),
    "card": (
        f"symdp card {_RUN} -o card.json",
        "symdp card --check card.json",
        f"symdp card {_RUN} --registry card.yaml",
    ),
    "ledger": (
        "symdp ledger add budget.json gaussian sigma=2 --sampling poisson --rate 1/100 -n 600",
        "symdp ledger epsilon budget.json --delta 1e-5",
    ),
    "ledger add": (
        "symdp ledger add budget.json gaussian sigma=2 --sampling poisson --rate 1/100 -n 600",
    ),
    "ledger epsilon": ("symdp ledger epsilon budget.json --delta 1e-5",),
    "ledger show": ("symdp ledger show budget.json",),
    "explore": ("symdp explore gaussian sigma=1.12 --sampling poisson -n 14063 -o page.html",),
    "report": ("symdp report gaussian sigma=2 -n 10 -o report.html",),
    "individual": (
        "symdp individual norms.npy --multiplier 1 --clip 1 --rate 0.01 --delta 1e-5"
        " --layout steps-records",
    ),
    "filter": (
        "symdp filter new budget.json --epsilon 2 --delta 1e-6",
        "symdp filter ask budget.json 0.1",
    ),
    "filter new": ("symdp filter new budget.json --epsilon 2 --delta 1e-6",),
    "filter ask": ("symdp filter ask budget.json 0.1",),
    "filter commit": ("symdp filter commit budget.json 0.1 --step 1",),
    "filter status": ("symdp filter status budget.json",),
}


def epilog(command: str) -> str:
    """Return the end of a command's help: its examples, one a line."""
    lines = "\n".join(f"  {example}" for example in EXAMPLES[command])
    return f"\b\nExamples:\n{lines}"
