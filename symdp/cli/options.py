"""The options that several commands share, written once."""

from __future__ import annotations

from typing import Annotated

import typer


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
        help="An accountant, such as contour, msd:1, edgeworth:2, clt, moments; or truth.",
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
        help="Number of all records: truncated_poisson, groups without replacement.",
    ),
]
Group = Annotated[
    str | None,
    typer.Option("--group", metavar="K", help="Protect K records together; needs --sampling."),
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
Relation = Annotated[
    str | None,
    typer.Option(
        "--relation",
        metavar="RELATION",
        help="add_remove (default), substitution (fixed batches: always) or zero_out.",
    ),
]
Direction = Annotated[
    str, typer.Option("--direction", metavar="DIRECTION", help="remove, add, or both: the larger.")
]
OneDirection = Annotated[
    str, typer.Option("--direction", metavar="DIRECTION", help="remove or add.")
]
Advantage = Annotated[
    str | None,
    typer.Option(
        "--advantage", metavar="A", help="The largest advantage of an attack, instead of ε and δ."
    ),
]
TruePositiveRate = Annotated[
    str | None,
    typer.Option("--tpr", metavar="T", help="Its largest true positive rate, at the rate --fpr."),
]
FalsePositiveRate = Annotated[
    str | None, typer.Option("--fpr", metavar="F", help="The false positive rate for --tpr.")
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
