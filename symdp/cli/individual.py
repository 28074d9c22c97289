"""`symdp individual`: every record's ε from a run's folder, a file of norms or one of counts."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symdp.cli import options
from symdp.cli.working import working
from symdp.errors import InputError

if TYPE_CHECKING:
    from symdp.individual import IndividualAccountant, IndividualResult


_OF_A_GROUP = ("median", "max")  # what is told of a group's ε


def individual(
    *,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|NORMS", help="A run's folder, or a .npy, .csv or .parquet file."
        ),
    ],
    delta: Annotated[str, typer.Option("--delta", metavar="D", help="δ, between 0 and 1.")],
    multiplier: Annotated[
        str | None,
        typer.Option("--multiplier", metavar="Z", help="Noise standard deviation over the clip."),
    ] = None,
    clip: Annotated[
        str | None, typer.Option("--clip", metavar="C", help="The largest contribution norm.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="Q", help="Poisson sampling rate.")
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option("--layout", metavar="L", help="steps-records or records-steps; not guessed."),
    ] = None,
    counts: Annotated[
        bool,
        typer.Option("--counts", help="The file holds counts, records × buckets of the grid."),
    ] = False,
    grid: Annotated[
        str,
        typer.Option("--grid", metavar="GRID", help="norm:COUNT or geometric:COUNT[:SPAN]."),
    ] = "norm:256",
    fixed: Annotated[
        bool,
        typer.Option("--fixed", help="Contributions do not depend on outputs: results are exact."),
    ] = False,
    squared: Annotated[bool, typer.Option("--squared", help="The norms are squared.")] = False,
    refuse: Annotated[
        bool, typer.Option("--refuse-above", help="Refuse norms above the clip.")
    ] = False,
    groups: Annotated[
        Path | None,
        typer.Option("--groups", metavar="FILE", help="One label a record: .npy, or text lines."),
    ] = None,
    mu_floor: Annotated[
        str | None,
        typer.Option("--mu-floor", metavar="D0", help="Add μ(D0): the Gaussian μ for δ ≥ D0."),
    ] = None,
    method: Annotated[
        str, typer.Option("--method", metavar="M", help="contour, renyi, plancherel, gaussian.")
    ] = "contour",
    direction: options.Direction = "both",
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="FOLDER", help="Keep the counts as a run to resume from."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="The same norms were run once more: count them again.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="One row a record: .csv, .npz or .parquet."
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw a histogram.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Print what every record's ε comes to, and write one row for each."""
    from symdp.cli import job as words
    from symdp.individual.result import format_of

    if output is not None:
        format_of(output)  # a wrong name is known before the work
    if plot is not None:
        from symdp.page.plot import format_of as plot_format

        plot_format(plot)
    at = words.delta(delta)
    if keep is not None and (counts or source.is_dir()):
        raise InputError("--keep FOLDER keeps norms that are given as such; leave it out")
    if again and keep is None:
        raise InputError("--again needs --keep FOLDER, the run that has these norms already")
    parameters = {"--multiplier": multiplier, "--clip": clip, "--rate": rate}
    if source.is_dir():
        given = [name for name, value in parameters.items() if value is not None]
        if given:
            raise InputError(f"{', '.join(given)}: the run has its own; leave them out")
        from symdp.individual.files import open_accountant

        records = open_accountant(source, direction)
    else:
        lacking = [name for name, value in parameters.items() if value is None]
        if lacking:
            raise InputError(f"{source}: a file of norms or counts needs {', '.join(lacking)}")
        numbers = tuple(words.real(str(value), name) for name, value in parameters.items())
        choices = {"grid": grid, "squared": squared, "above": "refuse" if refuse else "clip"}
        if counts:
            records = _of_counts(source, numbers, grid, direction, fixed)
        else:
            records = _of_norms(source, numbers, layout, direction, fixed, keep, again, choices)
    labels = None if groups is None else _labels(groups)
    if labels is not None and len(labels) != len(records):
        raise InputError(f"{groups}: {len(labels)} labels for {len(records)} records")
    with working("ε of every record") as work:
        found = records.epsilon(at, method=method, progress=partial(work.say, work.what))
    if mu_floor is not None:
        found = _with_mu(records, found, words.delta(mu_floor))
    if output is not None:
        found.save(output)
    if plot is not None:
        from symdp.page.plot import save_histogram

        save_histogram(found, plot, labels)
    _show(found, at, labels, as_json)


def _of_counts(
    path: Path, numbers: tuple[float, ...], grid: str, direction: str, fixed: bool
) -> IndividualAccountant:
    import numpy as np

    from symdp.individual.accounting import from_counts
    from symdp.individual.norms import NormGrid, open_norms

    table = open_norms(path)
    edges = NormGrid.parse(grid)
    if table.ndim != 2 or table.shape[1] != edges.count:
        raise InputError(
            f"{path}: counts of shape {table.shape}; the grid {grid} has {edges.count} buckets, "
            "that of norm 0 first"
        )
    below, above = edges.levels(numbers[0])
    rates = np.full(edges.count, numbers[2])
    return from_counts(below, table, rates, direction, noise_above=above, adaptive=not fixed)


def _of_norms(
    path: Path,
    numbers: tuple[float, ...],
    layout: str | None,
    direction: str,
    fixed: bool,
    keep: Path | None,
    again: bool,
    choices: dict[str, Any],
) -> IndividualAccountant:
    import tempfile

    from symdp.individual.norms import LAYOUTS, open_norms, record_chunks
    from symdp.individual.recorder import Recorder

    array = open_norms(path)
    if array.ndim == 1:  # one step, a norm for every record
        array, layout = array[None, :], "steps-records"
    if path.suffix.lower() == ".parquet" and layout is None:
        layout = "records-steps"
    if layout not in LAYOUTS:
        raise InputError(f"{path}: state --layout steps-records or records-steps")
    if array.ndim != 2:
        raise InputError(f"{path}: norms of shape {array.shape}; two dimensions are needed")
    if choices["above"] == "clip":
        most = numbers[1] ** 2 if choices["squared"] else numbers[1]
        over = sum(int((norms > most).sum()) for _, norms in record_chunks(array, layout))
        if over:
            told = f"{over} of {array.size} norms lie above the clip, and count as the clip"
            print(f"symdp: note: {told}", file=sys.stderr)
    records = array.shape[0 if layout == "records-steps" else 1]
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "run" if keep is None else keep
        multiplier, clip, rate = numbers
        run = Recorder(where, records, multiplier, clip, rate, adaptive=not fixed, **choices)
        with working("norms counted") as work:
            run.add(array, layout, partial(work.say, work.what), again=again)
        if keep is not None:
            run.commit()
        return run.accountant(direction)


def _with_mu(
    records: IndividualAccountant, found: IndividualResult, floor: float
) -> IndividualResult:
    from dataclasses import replace

    from symdp.decimal_text import given

    with working("μ of every record"):
        values = records.mu(floor)
    note = f"mu is an estimate for δ ≥ {given(floor)}, no guarantee at smaller δ"
    joined = f"{found.note}; {note}" if found.note else note
    return replace(found, extra={f"mu_floor_{floor:g}": values}, note=joined)


def _labels(path: Path) -> list[Any]:
    import numpy as np

    if path.suffix.lower() == ".npy":
        try:
            return list(np.load(path, allow_pickle=False))
        except (OSError, ValueError, EOFError):
            raise InputError(f"{path}: cannot be read as labels") from None
    try:
        return path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path}: cannot be read as labels") from None


def _show(found: IndividualResult, delta: float, labels: list[Any] | None, as_json: bool) -> None:
    from symdp.cli.display import print_json, print_table, say
    from symdp.decimal_text import given, rounded

    summary = found.summary()
    if as_json:
        if labels is not None:
            groups = found.by_group(labels).items()
            summary["groups"] = {str(name): row for name, row in groups}
        print_json(summary)
        return
    upper = found.upper_ends()
    say(f"ε of {len(found)} records at δ = {given(delta)}, {found.method}")
    for share, value in upper.quantiles().items():
        say(f"  {share:6.0%}  {rounded(value, 8, 'up')}")
    if labels is not None:
        rows = [
            (str(name), f"{int(row['count'])}", *(rounded(row[k], 8, "up") for k in _OF_A_GROUP))
            for name, row in upper.by_group(labels).items()
        ]
        print_table(("group", "records", *_OF_A_GROUP), rows, range(1, 4))
    kinds = ", ".join(f"{n} {kind}" for kind, n in summary["kinds"].items())
    paths = ", ".join(f"{n} by {path}" for path, n in summary["paths"].items())
    say(f"  {kinds}; {paths}; direction {found.direction}, {found.seconds:.2g} s")
    say(f"  protects {found.protects}", "dim")
    for text in (found.note, summary["warning"]):
        if text:
            say(f"  note: {text}", "yellow")
