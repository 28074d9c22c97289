"""The options that several commands share, written once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from symdp.cli.job import Job
from symdp.method_options import OPTIONS, Option


def _built_in(typed: str) -> list[str]:
    """Return the built-in names that begin with what was typed, for a shell's completion."""
    from symdp.mechanisms import names

    return [name for name in names() if name.startswith(typed)]


Mechanism = Annotated[
    str | None,
    typer.Argument(
        metavar="MECHANISM",
        help="A built-in name (see 'symdp list') or a TOML file.",
        autocompletion=_built_in,
    ),
]
Values = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME=VALUE", help="Parameters, exact: sigma=1.5 or q=1/3."),
]
Count = Annotated[
    str | None,
    typer.Option(
        "-n",
        "--count",
        metavar="COUNT",
        help="Number of steps; with --composition, how often the whole file is run.",
    ),
]
CompositionFile = Annotated[
    str | None,
    typer.Option(
        "--composition", metavar="FILE", help="A TOML file of [[step]] tables instead of MECHANISM."
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="METHOD",
        help="An accountant, such as contour, msd:1, edgeworth:2, clt, moments; or truth. "
        "'symdp methods' lists them with their options.",
    ),
]
Scheme = Annotated[
    str | None,
    typer.Option(
        "--sampling",
        metavar="SCHEME",
        help="poisson, without_replacement, with_replacement or truncated_poisson; needs --rate. "
        "Or random_allocation; needs --steps.",
    ),
]
Rate = Annotated[
    str | None, typer.Option("--rate", metavar="Q", help="Sampling rate, exact: 0.01 or 1/100.")
]
Batch = Annotated[
    str | None,
    typer.Option(
        "--batch-size",
        metavar="M",
        help="Number of draws with replacement; the most records a truncated batch keeps.",
    ),
]
Records = Annotated[
    str | None,
    typer.Option(
        "--records",
        metavar="N",
        help="Number of all records: truncated_poisson, averages, groups without replacement.",
    ),
]
Group = Annotated[
    str | None,
    typer.Option("--group", metavar="K", help="Protect K records together."),
]
Steps = Annotated[
    str | None,
    typer.Option(
        "--steps",
        metavar="T",
        help="random_allocation: the steps of an epoch; -n counts epochs.",
    ),
]
Participations = Annotated[
    str | None,
    typer.Option(
        "--participations",
        metavar="K",
        help="random_allocation: in how many of the steps a record takes part; 1 if left out.",
    ),
]
Released = Annotated[
    str | None,
    typer.Option(
        "--released",
        metavar="WHAT",
        help="sum (default): the noisy sum of a batch, or it divided by a constant; average: "
        "divided by the number of records drawn, needs --records.",
    ),
]
Relation = Annotated[
    str | None,
    typer.Option(
        "--relation",
        metavar="RELATION",
        help="add_remove (default), substitution (fixed batches: always) or zero_out.",
    ),
]
Sensitivity = Annotated[
    str | None,
    typer.Option(
        "--sensitivity",
        metavar="S",
        help="How far one record moves the query that noise is added to; 1 for the built-in ones.",
    ),
]
Shift = Annotated[
    str | None,
    typer.Option(
        "--shift",
        metavar="SHIFT",
        help="How far a record moves that query: at-most the sensitivity (default), where noise is "
        "skewed with one sign at all steps; either-way, with any; up or down; or exactly.",
    ),
]
Direction = Annotated[
    str, typer.Option("--direction", metavar="DIRECTION", help="remove, add, or both: the larger.")
]
OneDirection = Annotated[
    str, typer.Option("--direction", metavar="DIRECTION", help="remove or add.")
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show the ways of the default method, and the one taken.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
TimeLimit = Annotated[
    str,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        help="Give up after so many seconds, with a proved bound if there is one; 0 for no limit.",
    ),
]

Settings = Mapping[str, str]  # options of methods, by their names

# What says which steps are meant, by the names of a `Job`.
_OF_STEPS = {
    "mechanism": Mechanism, "values": Values, "count": Count, "composition": CompositionFile,
    "sampling": Scheme, "rate": Rate, "batch": Batch, "records": Records, "group": Group,
    "steps": Steps, "participations": Participations, "released": Released, "relation": Relation,
    "sensitivity": Sensitivity, "shift": Shift,
}  # fmt: skip


def _of_method(one: Option) -> Any:
    return Annotated[str | None, typer.Option(one.flag, metavar="VALUE", help=f"{one.what}.")]


def of_steps(*left_out: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command all options that say which steps are meant, in place of its argument `job`.

    An argument `settings` becomes the options of methods, as text by their names.

    Parameters
    ----------
    left_out
        Names of those that the command does not have.
    """

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        parameters: list[inspect.Parameter] = []
        of_method = {one.name: one for one in OPTIONS if one.name not in left_out}
        settings: list[str] = []
        for own in inspect.signature(command, eval_str=True).parameters.values():
            if own.name == "job":
                kinds: dict[str, Any] = _OF_STEPS
            elif own.name == "settings":
                kinds = {name: _of_method(one) for name, one in of_method.items()}
                settings += kinds
            else:
                parameters.append(own)
                continue
            parameters += [
                own.replace(name=name, annotation=kind, default=None)
                for name, kind in kinds.items()
                if name not in left_out
            ]

        def asked(**given: Any) -> None:
            chosen = {name: given.pop(name) for name in settings}
            others = {name: word for name, word in given.items() if name not in _OF_STEPS}
            if settings:
                others["settings"] = {n: word for n, word in chosen.items() if word is not None}
            command(job=Job.of(given), **others)

        asked.__doc__, asked.__name__ = command.__doc__, command.__name__
        asked.__annotations__ = {one.name: one.annotation for one in parameters}
        asked.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return asked

    return with_options
