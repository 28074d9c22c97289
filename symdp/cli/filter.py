"""`symdp filter`: a privacy filter in a file, asked and charged from any program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from symdp.arguments import MOST_STEPS
from symdp.cli import options
from symdp.cli.examples import epilog
from symdp.errors import InputError

filter_app = typer.Typer(
    rich_markup_mode=None, help="A privacy filter in a file: new, ask, commit, status."
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The filter's state, JSON.")]
Count = Annotated[
    str | None, typer.Option("-n", "--count", metavar="COUNT", help="How many such steps; 1.")
]
Bound = Annotated[
    list[str], typer.Argument(metavar="BOUND…", help="The step's μ; ρ at every order of rdp.")
]


@filter_app.command("new", epilog=epilog("filter new"))
def new(
    *,
    file: File,
    budget: Annotated[str | None, typer.Option("--budget", metavar="B", help="μ in all.")] = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", metavar="E", help="ε in all.")] = None,
    delta: Annotated[str | None, typer.Option("--delta", metavar="D", help="Its δ.")] = None,
    orders: Annotated[
        str | None, typer.Option("--orders", metavar="A,…", help="A Rényi filter at these orders.")
    ] = None,
    increments: Annotated[
        str | None, typer.Option("--increments", metavar="M,…", help="An odometer of these μ.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Make a filter with a budget that is fixed from now on."""
    from symdp.individual import GaussianFilter, Odometer, RenyiFilter, create

    made: Any
    given = [_number(x, name) for x, name in ((epsilon, "--epsilon"), (delta, "--delta"))]
    if increments is not None:
        if budget is not None or epsilon is not None or delta is not None or orders is not None:
            raise InputError("--increments stands alone")
        made = Odometer(_numbers(increments, "--increments"))
    elif orders is not None:
        if budget is not None or given[0] is None or given[1] is None:
            raise InputError("--orders needs --epsilon and --delta, and no --budget")
        made = RenyiFilter(_numbers(orders, "--orders"), epsilon=given[0], delta=given[1])
    else:
        made = GaussianFilter(_number(budget, "--budget"), epsilon=given[0], delta=given[1])
    _show(create(file, made).status(), as_json)


@filter_app.command("ask", epilog=epilog("filter ask"))
def ask(*, file: File, bound: Bound, count: Count = None, as_json: options.Json = False) -> None:
    """Say whether a step fits; nothing changes.  Exit code 1 where it does not."""
    decision = _load(file).ask(_bound(bound), count=_count(count))
    _show({"allowed": decision.allowed, "step": decision.step, "left": decision.left}, as_json)
    if not decision:
        raise typer.Exit(1)


@filter_app.command("commit", epilog=epilog("filter commit"))
def commit(
    *,
    file: File,
    bound: Bound,
    step: Annotated[
        str | None, typer.Option("--step", metavar="J", help="The number it must have.")
    ] = None,
    count: Count = None,
    as_json: options.Json = False,
) -> None:
    """Charge a step; when this has returned, the step may be released."""
    from symdp.cli import job as words

    number = None if step is None else words.whole(step, "--step", 1, MOST_STEPS)
    decision = _load(file).commit(_bound(bound), step=number, count=_count(count))
    _show({"allowed": True, "step": decision.step, "left": decision.left}, as_json)


@filter_app.command("status", epilog=epilog("filter status"))
def status(*, file: File, as_json: options.Json = False) -> None:
    """Show budget, steps and what is proved."""
    from symdp.individual import load_filter

    _show(load_filter(file).status(), as_json)


def _load(file: Path) -> Any:
    from symdp.individual import IndividualFilter, load_filter

    found = load_filter(file)
    if isinstance(found, IndividualFilter):
        raise InputError(f"{file}: an individual filter takes an array of μ; use it from Python")
    return found


def _count(text: str | None) -> int:
    from symdp.cli import job as words

    return 1 if text is None else words.whole(text, "-n", 1, MOST_STEPS)


def _bound(words: list[str]) -> Any:
    values = [_number(word, "BOUND") for word in words]
    return values[0] if len(values) == 1 else values


def _number(text: str | None, name: str) -> str | None:
    """Return a number as it was typed, once it is known to be one: filters take it exactly."""
    from symdp.cli import job as words

    if text is not None:
        words.real(text, name)
    return text


def _numbers(text: str, name: str) -> list[str]:
    return [str(_number(word, name)) for word in text.split(",")]


def _show(values: dict[str, Any], as_json: bool) -> None:
    from symdp.cli.display import print_json, say
    from symdp.decimal_text import given

    if as_json:
        print_json(values)
        return
    for name, value in values.items():
        shown = given(value) if isinstance(value, float) else value
        say(f"{name.replace('_', ' ')}: {shown}")
