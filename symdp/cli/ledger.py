"""`symdp ledger`: a budget ledger in a file, added to and asked from the shell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from symdp.cli import job as words
from symdp.cli import options
from symdp.cli.examples import epilog
from symdp.cli.job import Job

if TYPE_CHECKING:
    from symdp.questions.ledger import Ledger

ledger_app = typer.Typer(
    rich_markup_mode=None, help="A budget ledger in a file: add, epsilon, show."
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The ledger's file, JSON.")]


@ledger_app.command("add", epilog=epilog("ledger add"))
@options.of_steps()
def add(
    *,
    file: File,
    job: Job,
    as_json: options.Json = False,
) -> None:
    """Add steps, once unless -n says; the file is made if there is none, and replaced whole."""
    added = job.build(default_count=1).given_steps()
    from symdp.questions.composition import Composition
    from symdp.questions.ledger import Ledger

    ledger = Ledger.open(file)
    try:
        Composition([*ledger.steps, *added])  # one relation for all, or nothing is added
        for step, times in added:
            ledger.add(step, times)
        ledger.save()
    finally:
        ledger.close()
    _show(ledger, as_json)


@ledger_app.command("epsilon", epilog=epilog("ledger epsilon"))
def epsilon(
    *,
    file: File,
    delta: Annotated[str, typer.Option("--delta", metavar="D", help="δ, between 0 and 1.")],
    method: options.Method = "contour",
    direction: options.Direction = "both",
    time_limit: options.TimeLimit = "60",
    as_json: options.Json = False,
) -> None:
    """Print the smallest ε ≥ 0 of all steps so far at a given δ."""
    from symdp.cli.display import print_answer
    from symdp.cli.supervise import in_time
    from symdp.cli.working import working

    side, at, name = words.direction(direction), words.delta(delta), words.method(method)
    with working(f"ε(δ = {delta}) of {file}"):
        answer = in_time(
            time_limit,
            lambda: _loaded(file).composition(),
            lambda steps: steps.epsilon(at, name, side),
            lambda steps: steps.epsilon(at, "moments", side),
        )
    print_answer(answer, as_json)


@ledger_app.command("show", epilog=epilog("ledger show"))
def show(*, file: File, as_json: options.Json = False) -> None:
    """Show the steps of a ledger and whose privacy they speak of."""
    _show(_loaded(file), as_json)


def _loaded(file: Path) -> Ledger:
    from symdp.questions.ledger import Ledger

    return Ledger.load(file)


def _show(ledger: Ledger, as_json: bool) -> None:
    from symdp.cli.display import one_line, print_json, print_table, say, steps_of

    steps = ledger.steps
    whose = ledger.composition().protection if steps else None
    if as_json:
        rows = [
            {"step": mechanism.summary, "title": mechanism.title, "count": count}
            for mechanism, count in steps
        ]
        print_json(
            {"count": ledger.count, "steps": rows, **({} if whose is None else whose.to_json())}
        )
        return
    cells = [(str(count), one_line(m.summary), one_line(m.title)) for m, count in steps]
    print_table(("steps", "mechanism", "title"), cells)
    kinds = f"{len(steps)} distinct" if len(steps) != 1 else "all alike"
    say(f"{steps_of(ledger.count)}, {kinds}")
    if whose is not None:
        say(f"protects {whose.sentence}")
