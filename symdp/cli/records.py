"""Commands for every record and for budgets in files: individual, ledger and filter."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symdp.arguments import MOST_STEPS
from symdp.cli import job as words
from symdp.cli.asking import How
from symdp.cli.display import (
    answer_blocks,
    check_drawing,
    one_line,
    print_json,
    say,
    show,
    steps_of,
)
from symdp.cli.job import Job
from symdp.cli.question import answer
from symdp.cli.working import working
from symdp.decimal_text import given, rounded
from symdp.errors import InputError, SymdpError
from symdp.page.document import Sentence, Table

if TYPE_CHECKING:
    from symdp.individual import IndividualAccountant, IndividualResult
    from symdp.page.document import Block
    from symdp.questions.composition import Composition
    from symdp.questions.guarantee import Guarantee
    from symdp.questions.ledger import Ledger

_OF_A_GROUP = ("median", "max")  # what is told of a group's ε


def individual(
    *,
    source: Path,
    delta: str,
    multiplier: str | None = None,
    clip: str | None = None,
    rate: str | None = None,
    layout: str | None = None,
    counts: bool = False,
    grid: str = "norm:256",
    fixed: bool = False,
    squared: bool = False,
    refuse: bool = False,
    groups: Path | None = None,
    mu_floor: str | None = None,
    how: How,
    keep: Path | None = None,
    again: bool = False,
    output: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Print what every record's ε comes to, and write one row for each."""
    from symdp.individual.result import format_of

    if output is not None:
        format_of(output)  # a wrong name is known before the work
    check_drawing(plot)
    at = words.delta(delta)
    if keep is not None and (counts or source.is_dir()):
        raise InputError("--keep FOLDER keeps norms that are given as such; leave it out")
    if again and keep is None:
        raise InputError("--again needs --keep FOLDER, the run that has these norms already")
    parameters = {"--multiplier": multiplier, "--clip": clip, "--rate": rate}
    if source.is_dir():
        stated = [name for name, value in parameters.items() if value is not None]
        if stated:
            raise InputError(f"{', '.join(stated)}: the run has its own; leave them out")
        from symdp.individual.files import open_accountant

        records = open_accountant(source, how.direction)
    else:
        lacking = [name for name, value in parameters.items() if value is None]
        if lacking:
            raise InputError(f"{source}: a file of norms or counts needs {', '.join(lacking)}")
        numbers = tuple(words.real(str(value), name) for name, value in parameters.items())
        choices = {"grid": grid, "squared": squared, "above": "clip"}
        if refuse:
            choices["above"] = "refuse"
        if counts:
            records = _of_counts(source, numbers, grid, how.direction, fixed)
        else:
            records = _of_norms(source, numbers, layout, how.direction, fixed, keep, again, choices)
    labels = None
    if groups is not None:
        labels = _labels(groups)
    if labels is not None and len(labels) != len(records):
        raise InputError(f"{groups}: {len(labels)} labels for {len(records)} records")
    with working("ε of every record") as work:
        result = records.epsilon(at, method=how.method, progress=partial(work.say, work.what))
    if mu_floor is not None:
        result = _with_mu(records, result, words.delta(mu_floor))
    if output is not None:
        result.save(output)
    if plot is not None:
        from symdp.page.plot import save_histogram

        save_histogram(result, plot, labels)
    _show_records(result, at, labels, how.as_json)


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
        array = array[None, :]
        layout = "steps-records"
    if path.suffix.lower() == ".parquet" and layout is None:
        layout = "records-steps"
    if layout not in LAYOUTS:
        raise InputError(f"{path}: state --layout steps-records or records-steps")
    if array.ndim != 2:
        raise InputError(f"{path}: norms of shape {array.shape}; two dimensions are needed")
    if choices["above"] == "clip":
        most = numbers[1]
        if choices["squared"]:
            most = most**2
        over = sum(int((norms > most).sum()) for _, norms in record_chunks(array, layout))
        if over:
            note = f"{over} of {array.size} norms lie above the clip, and count as the clip"
            print(f"symdp: note: {note}", file=sys.stderr)
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
    records: IndividualAccountant, result: IndividualResult, floor: float
) -> IndividualResult:
    from dataclasses import replace

    with working("μ of every record"):
        values = records.mu(floor)
    note = f"mu is an estimate for δ ≥ {given(floor)}, no guarantee at smaller δ"
    if result.note:
        note = f"{result.note}; {note}"
    return replace(result, extra={f"mu_floor_{floor:g}": values}, note=note)


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


def _show_records(
    result: IndividualResult, delta: float, labels: list[Any] | None, as_json: bool
) -> None:
    summary = result.summary()
    if as_json:
        if labels is not None:
            groups = result.by_group(labels).items()
            summary["groups"] = {str(name): row for name, row in groups}
        print_json(summary)
        return
    upper = result.upper_ends()
    say(f"ε of {len(result)} records at δ = {given(delta)}, {result.method}")
    for share, value in upper.quantiles().items():
        say(f"  {share:6.0%}  {rounded(value, 8, 'up')}")
    if labels is not None:
        rows = [
            (str(name), f"{int(row['count'])}", *(rounded(row[k], 8, "up") for k in _OF_A_GROUP))
            for name, row in upper.by_group(labels).items()
        ]
        show(Table(("group", "records", *_OF_A_GROUP), rows, numbers=range(1, 4)))
    kinds = ", ".join(f"{n} {kind}" for kind, n in summary["kinds"].items())
    paths = ", ".join(f"{n} by {path}" for path, n in summary["paths"].items())
    say(f"  {kinds}; {paths}; direction {result.direction}, {result.seconds:.2g} s")
    say(f"  protects {result.protects}", "quiet")
    for text in (result.note, summary["warning"]):
        if text:
            say(f"  note: {text}", "warning")


def ledger_add(
    *, file: Path, job: Job, note: str = "", user: str = "", as_json: bool = False
) -> None:
    """Add steps, once unless -n says; the file is made if there is none, and replaced whole."""
    added = job.build().given_steps()
    from symdp.questions.composition import Composition
    from symdp.questions.ledger import Ledger

    ledger = Ledger.open(file)
    try:
        Composition([*ledger.steps, *added])  # one relation for all, or nothing is added
        for step, times in added:
            ledger.add(step, times, note=note, user=user)
        ledger.save()
    finally:
        ledger.close()
    _show_ledger(ledger, as_json)


def ledger_epsilon(
    *,
    file: Path,
    delta: str,
    how: How,
) -> None:
    """Print the smallest ε ≥ 0 of all steps so far at a given δ."""
    answer(
        "epsilon", words.delta(delta), lambda: _loaded(file).composition(),
        f"ε(δ = {delta}) of {file}", how,
    )  # fmt: skip


def ledger_show(*, file: Path, by: str | None = None, delta: str | None = None, how: How) -> None:
    """Show the entries of a ledger and whose privacy they speak of; or what groups have spent."""
    ledger = _loaded(file)
    if (by is None) != (delta is None):
        raise InputError("--by note, user or date tells ε of each group at --delta: give both")
    if by is None or delta is None:
        _show_ledger(ledger, how.as_json)
        return
    at = words.delta(delta)
    groups = list(ledger.by(by).items())
    parts = [*(part for _, part in groups), ledger]
    of = [*(f"{by} {name}" for name, _ in groups), "all entries"]
    answers = [_spent(part, at, how, what) for part, what in zip(parts, of, strict=True)]
    if how.as_json:
        *rows, every = map(_answer_json, answers, parts)
        entries = [{by: name, **row} for (name, _), row in zip(groups, rows, strict=True)]
        print_json({"by": by, "delta": at, "groups": entries, "all": every})
        return
    names = [*(one_line(name) or f"(no {by})" for name, _ in groups), "all"]
    cells = [
        (name, str(part.n), *_answer_cells(answer))
        for name, part, answer in zip(names, parts, answers, strict=True)
    ]
    reasons = {one_line(answer) for answer in answers if isinstance(answer, str)}
    show(
        Table((by, "steps", f"ε at δ = {given(at)}", "kind"), cells, numbers=(1, 2)),
        Sentence("the ε of the groups do not add up: what all have spent is the last row"),
        *(Sentence(f"none: {reason}", "warning") for reason in sorted(reasons)),
        Sentence(f"protects {ledger.composition().protection.sentence}"),
    )


def _spent(part: Ledger, delta: float, how: How, what: str) -> Guarantee | str:
    """Return ε of some entries, or why there is none: the others have theirs."""

    def asked(steps: Composition) -> Guarantee:
        return steps.epsilon(delta, how.name, how.side)

    try:
        return how.ask(f"ε of {what}", part.composition, asked)
    except SymdpError as error:
        return str(error)


def _answer_json(answer: Guarantee | str, part: Ledger) -> dict[str, Any]:
    if isinstance(answer, str):
        return {"epsilon": None, "count": part.n, "error": answer}
    return answer.to_json()


def _answer_cells(answer: Guarantee | str) -> tuple[str, str]:
    if isinstance(answer, str):
        return ("none", "")
    return (answer.epsilon_text(), answer.kind)


def ledger_plot(
    *,
    file: Path,
    delta: str,
    output: Path,
    epsilon: str | None = None,
    by: str = "entry",
    how: How,
) -> None:
    """Draw ε spent over the entries, or over their dates, against a budget."""
    check_drawing(output, "-o")
    at = words.delta(delta)
    budget = words.optional(words.real, epsilon, "--epsilon")
    ledger = _loaded(file)

    def drawn(_: Composition) -> Guarantee:
        from symdp.page.plot import save_axes

        def draw(axes: Any) -> None:
            ledger.plot(at, budget, axes, by=by, method=how.name, direction=how.side)

        save_axes(draw, output)
        return ledger.epsilon(at, how.name, how.side)

    answer_drawn = how.ask(f"ε spent of {file}", ledger.composition, drawn)
    how.tell(answer_drawn, lambda answer: [*answer_blocks(answer), Sentence(f"drawn: {output}")])


def _loaded(file: Path) -> Ledger:
    from symdp.questions.ledger import Ledger

    return Ledger.load(file)


def _show_ledger(ledger: Ledger, as_json: bool) -> None:
    steps = ledger.steps
    whose = None
    if steps:
        whose = ledger.composition().protection
    if as_json:
        rows = [
            {"step": mechanism.summary, "title": mechanism.title, "count": count}
            for mechanism, count in steps
        ]
        entries = [entry.to_json() for entry in ledger.entries]
        document = {"count": ledger.n, "steps": rows, "entries": entries}
        if whose is not None:
            document |= whose.to_json()
        print_json(document)
        return
    head, rows_of_text = ledger.table()
    cells = [tuple(map(one_line, row)) for row in rows_of_text]
    kinds = f"{len(steps)} distinct"
    if len(steps) == 1:
        kinds = "all alike"
    blocks: list[Block] = [Table(head, cells), Sentence(f"{steps_of(ledger.n)}, {kinds}")]
    if whose is not None:
        blocks.append(Sentence(f"protects {whose.sentence}"))
    show(*blocks)


def filter_new(
    *,
    file: Path,
    budget: str | None = None,
    epsilon: str | None = None,
    delta: str | None = None,
    orders: str | None = None,
    increments: str | None = None,
    as_json: bool = False,
) -> None:
    """Make a filter with a budget that is fixed from now on."""
    from symdp.individual import GaussianFilter, Odometer, RenyiFilter, create

    new_filter: Any
    at = [_typed_number(x, name) for x, name in ((epsilon, "--epsilon"), (delta, "--delta"))]
    if increments is not None:
        if budget is not None or epsilon is not None or delta is not None or orders is not None:
            raise InputError("--increments stands alone")
        new_filter = Odometer(_numbers(increments, "--increments"))
    elif orders is not None:
        if budget is not None or at[0] is None or at[1] is None:
            raise InputError("--orders needs --epsilon and --delta, and no --budget")
        new_filter = RenyiFilter(_numbers(orders, "--orders"), epsilon=at[0], delta=at[1])
    else:
        new_filter = GaussianFilter(_typed_number(budget, "--budget"), epsilon=at[0], delta=at[1])
    _show_values(create(file, new_filter).status(), as_json)


def filter_ask(
    *, file: Path, bound: list[str], count: str | None = None, as_json: bool = False
) -> int:
    """Say whether a step fits; nothing changes.  Exit code 1 where it does not."""
    decision = _filter(file).ask(_typed_bound(bound), n=_typed_count(count))
    left = {"allowed": decision.allowed, "step": decision.step, "left": decision.left}
    _show_values(left, as_json)
    return int(not decision)


def filter_commit(
    *,
    file: Path,
    bound: list[str],
    step: str | None = None,
    count: str | None = None,
    as_json: bool = False,
) -> None:
    """Charge a step; when this has returned, the step may be released."""
    number = words.optional(words.whole, step, "--step", 1, MOST_STEPS)
    decision = _filter(file).commit(_typed_bound(bound), step=number, n=_typed_count(count))
    _show_values({"allowed": True, "step": decision.step, "left": decision.left}, as_json)


def filter_status(*, file: Path, as_json: bool = False) -> None:
    """Show budget, steps and what is proved."""
    from symdp.individual import load_filter

    _show_values(load_filter(file).status(), as_json)


def _filter(file: Path) -> Any:
    from symdp.individual import IndividualFilter, load_filter

    loaded = load_filter(file)
    if isinstance(loaded, IndividualFilter):
        raise InputError(f"{file}: an individual filter takes an array of μ; use it from Python")
    return loaded


def _typed_count(text: str | None) -> int:
    if text is None:
        return 1
    return words.whole(text, "-n", 1, MOST_STEPS)


def _typed_bound(numbers: list[str]) -> Any:
    values = [_typed_number(word, "BOUND") for word in numbers]
    if len(values) == 1:
        return values[0]
    return values


def _typed_number(text: str | None, name: str) -> str | None:
    """Return a number as it was typed, once it is known to be one: filters take it exactly."""
    if text is not None:
        words.real(text, name)
    return text


def _numbers(text: str, name: str) -> list[str]:
    return [str(_typed_number(word, name)) for word in text.split(",")]


def _show_values(values: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(values)
        return
    for name, value in values.items():
        label = name.replace("_", " ")
        if isinstance(value, float):
            say(f"{label}: {given(value)}")
        else:
            say(f"{label}: {value}")


LEDGER = {
    "add": ledger_add,
    "epsilon": ledger_epsilon,
    "show": ledger_show,
    "plot": ledger_plot,
}
FILTER = {"new": filter_new, "ask": filter_ask, "commit": filter_commit, "status": filter_status}
