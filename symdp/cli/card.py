"""`symdp card`: a privacy card of a job, written or checked.

A job is what the other commands take, a mechanism or a composition's file, or the words of a
training run: whoever fills in a card has one of the three at hand, and an own file format for jobs
would be a fourth.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symdp.cli import job as words
from symdp.cli import options
from symdp.cli.job import Job
from symdp.cli.report import check_file, write_file
from symdp.cli.train import (
    BatchSize,
    Epochs,
    Examples,
    LargestBatch,
    Noise,
    Steps,
    TrainingJob,
)
from symdp.durable import unique
from symdp.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from symdp.questions.composition import Composition

_LARGEST_FILE = 10_000_000  # bytes
_DELTAS = "1e-5,1e-6,1e-8"

Sampling = Annotated[
    str | None,
    typer.Option(
        "--sampling",
        metavar="SCHEME",
        help="How batches are drawn: needs --rate with MECHANISM; poisson in a training run.",
    ),
]


def card(
    *,
    mechanism: options.Mechanism = None,
    values: options.Values = None,
    count: options.Count = None,
    composition: options.CompositionFile = None,
    sampling: Sampling = None,
    rate: options.Rate = None,
    batch_size: options.Batch = None,
    records: options.Records = None,
    group: options.Group = None,
    released: options.Released = None,
    relation: options.Relation = None,
    examples: Examples = None,
    batch: BatchSize = None,
    epochs: Epochs = None,
    steps: Steps = None,
    noise: Noise = None,
    largest_batch: LargestBatch = None,
    delta: Annotated[
        str, typer.Option("--delta", metavar="D,…", help="The δ at which ε is given.")
    ] = _DELTAS,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="What the card is about.")
    ] = None,
    prove: Annotated[
        str | None,
        typer.Option("--prove", metavar="K", help="Prove K digits of the first ε, 1 to 15."),
    ] = None,
    certificate: Annotated[
        bool, typer.Option("--certificate", help="Add a proof that --check checks by itself.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="A .json, .md, .html or .tex file."),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option("--check", metavar="FILE", help="Compute a card's JSON again and compare."),
    ] = None,
    time_limit: options.TimeLimit = "60",
    as_json: options.Json = False,
) -> None:
    """Write a privacy card: parameters, unit, neighbors, mechanism, attack, proof, sources, hash.

    With --check, exit code 1 where something differs.
    """
    from symdp.cli.supervise import in_time

    job = Job(
        mechanism, values or [], count, composition, sampling, rate, batch_size, records, group,
        relation=relation, released=released,
    )  # fmt: skip
    run = TrainingJob(examples, batch, epochs, steps, sampling, largest_batch, relation, released)
    if check is not None:
        if output is not None or run.is_asked or mechanism or composition:
            raise InputError("--check FILE stands alone: a card holds its own job")
        in_time(time_limit, lambda: check, lambda file: _check(file, as_json))
        return
    path = _named(output)
    build, subject = _chosen(job, run, noise)
    deltas = [words.delta(word) for word in delta.split(",")]
    digits = None if prove is None else words.whole(prove, "--prove", 1, 15)
    made = in_time(
        time_limit,
        build,
        lambda steps: _make(
            steps, title or subject, deltas, digits, subject, certificate, _told(run, noise)
        ),
    )
    _write(made, path)
    if as_json:
        from symdp.cli.display import print_json

        print_json(made)
    else:
        print(path)


def _chosen(job: Job, run: TrainingJob, noise: str | None) -> tuple[Callable[[], Composition], str]:
    """Return what builds the composition, and the job in a few words."""
    if not run.is_asked and noise is None:
        return job.build, job.subject
    if job.mechanism or job.composition or job.count or job.rate:
        raise InputError("a training run takes no MECHANISM, --composition, -n or --rate")
    if noise is None:
        raise InputError("--noise Z is missing: the noise multiplier, as in --noise 1.12")
    multiplier = words.number(noise, "--noise")
    return lambda: run.build().composition(multiplier), run.subject


def _told(run: TrainingJob, noise: str | None) -> dict[str, Any] | None:
    """Return what a card says of a training run, None for another job."""
    if not run.is_asked or noise is None:
        return None
    made = run.build()
    return {
        "examples": made.examples, "batch": made.batch, "steps": made.steps, "noise": noise,
        "sampling": made.sampling, "largest_batch": made.largest_batch,
        "relation": made.relation, "released": made.released,
    }  # fmt: skip


def _make(
    steps: Composition,
    title: str,
    deltas: list[float],
    digits: int | None,
    subject: str,
    certificate: bool,
    training: dict[str, Any] | None,
) -> dict[str, Any]:
    import datetime

    from symdp.cli.working import working
    from symdp.page.card import make_card
    from symdp.page.card_certificate import add_certificate

    with working(f"card of {subject}"):
        made = make_card(
            steps,
            title=title,
            deltas=deltas,
            proved_digits=digits,
            date=datetime.datetime.now(datetime.UTC).date().isoformat(),
            training=training,
        )
        if certificate:
            add_certificate(made, steps)
        return made


def _named(path: Path | None) -> Path:
    """Return the file to write; a wrong name or a missing folder is known before the work."""
    if path is None:
        raise InputError("-o FILE is missing: a .json, .md, .html or .tex file")
    check_file(path, ("json", "md", "html", "tex"))
    return path


def _write(made: dict[str, Any], path: Path) -> None:
    from symdp.page.card_page import card_page
    from symdp.page.html import to_html
    from symdp.page.markdown import to_markdown
    from symdp.page.tex import to_tex

    forms: dict[str, Callable[[], str]] = {
        "json": lambda: json.dumps(made, indent=1, allow_nan=False, ensure_ascii=False) + "\n",
        "md": lambda: to_markdown(card_page(made), path),
        "html": lambda: to_html(card_page(made)),
        "tex": lambda: to_tex(card_page(made)),
    }
    write_file(path, forms)


def _check(path: Path, as_json: bool) -> None:
    from symdp.cli.display import one_line, print_json
    from symdp.cli.working import working
    from symdp.page.card import Difference, differences
    from symdp.page.card_certificate import wrong_in_certificate

    with working(f"computing {path} again"):
        held = _read(path)
        found = differences(held)
        assert isinstance(held, dict)
        found += [Difference("certificate", wrong, "") for wrong in wrong_in_certificate(held)]
    if as_json:
        places = [{"place": d.place, "card": d.found, "computed": d.recomputed} for d in found]
        print_json({"agrees": not found, "differences": places})
    elif not found:
        print(f"{path}: computed again, everything agrees")
    else:
        for difference in found:
            print(one_line(f"{path}: {difference}"))
    if found:
        raise typer.Exit(1)


def _read(path: Path) -> object:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(f"{path} is larger than {_LARGEST_FILE} bytes: no card")
        text = path.read_text(encoding="utf-8")
        return json.loads(text, parse_constant=_refused, object_pairs_hook=unique)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is no card: it is truncated, or no JSON") from None


def _refused(constant: str) -> None:
    raise InputError(f"a card has no {constant}: every number in it is finite")
