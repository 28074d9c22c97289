"""Accuracy against time: every contender at every job, a table and a figure each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks import results
from benchmarks.peers import contenders
from benchmarks.peers.answers import Contender, Outcome
from benchmarks.peers.drawing import Point
from benchmarks.peers.jobs import Job
from benchmarks.peers.page import duration, megabytes, number, table
from benchmarks.peers.runner import Runner
from benchmarks.peers.verdict import Ends, below, relative_error, shown_error, words

SITUATIONS = ("first", "next")
LEFT_OUT = "left out, as a coarser one was out of reach"
HEADER = ("program", "one δ", "next ε", "memory", "δ", "relative error", "in words")


@dataclass
class Measured:
    """A job with its proved δ, and what came of every contender."""

    job: Job
    truth: Ends | None
    outcomes: list[tuple[Contender, Outcome]]


def measure(runner: Runner, judge: Runner, job: Job, taking_part: Iterable[Contender]) -> Measured:
    """Ask everyone about one job, from coarse settings to fine ones."""
    truth = judge.truth(job, "delta", job.epsilon)
    # The mechanism is compiled before anything is timed; what that costs is measured elsewhere.
    runner.ask(contenders.ours("moments"), job, "delta", job.epsilon, ())
    outcomes: list[tuple[Contender, Outcome]] = []
    hopeless: set[str] = set()
    for contender in taking_part:
        if contender.ladder in hopeless:
            outcomes.append(
                (contender, Outcome(failure="left out, as a coarser one was out of reach"))
            )
            continue
        outcome = runner.ask(contender, job, "delta", job.epsilon, SITUATIONS)
        if outcome.out_of_reach:
            hopeless.add(contender.ladder)
            if contender.program == "symdp":  # its new process has compiled nothing yet
                runner.ask(contenders.ours("moments"), job, "delta", job.epsilon, ())
        outcomes.append((contender, outcome))
    return Measured(job, truth, outcomes)


def points(measured: Measured) -> list[Point]:
    """Return what can be drawn: a time and a finite error."""
    if measured.truth is None:
        return []
    found = []
    for contender, outcome in measured.outcomes:
        if outcome.answer is None:
            continue
        value = outcome.answer.value
        assert isinstance(value, float)
        error = abs(relative_error(value, measured.truth))
        if math.isnan(error):
            continue
        taken = outcome.seconds.get("first", outcome.seconds["once"])
        group, label = _group(contender, outcome)
        if group == "symdp, exact":
            # What its last digits are off by is no side to be on.
            found.append(Point(group, label, taken, error, below=False))
        else:
            side = below(value, measured.truth)
            found.append(Point(group, label, taken, error, side))
    return found


def section(measured: Measured) -> str:
    """Return the job's part of the page."""
    job, truth = measured.job, measured.truth
    parts = [f"### {job.heading}\n", f"{job.text} {_upper(job.setting)}.\n"]
    if truth is None:
        parts.append("No proof was found within the limit of time, and so no error is given.\n")
    else:
        parts.append(f"Proved: δ = {_proved(truth)}.\n")
        parts.append(f"![{job.heading}](figures/bench-{job.name}.svg)\n")
    parts.append(table(HEADER, [_row(c, o, truth) for c, o in measured.outcomes]))
    return "\n".join(parts)


def rows(measured: Measured) -> list[dict[str, Any]]:
    """Return the job's rows of a file that `benchmarks.results` reads."""
    job, found = measured.job, []
    for contender, outcome in measured.outcomes:
        program = *contenders.named(contender), contenders.version(contender)
        taken = outcome.seconds.get("first", outcome.seconds.get("once"))
        asked = job.setting, "delta", job.epsilon
        found.append(results.row(asked, measured.truth, program, outcome, taken))
    return found


def summary(measured: list[Measured]) -> str:
    """Return one cell for each job and program: the error, or what went wrong."""
    present = {contender for contender, _ in measured[0].outcomes}
    shown = [contender for contender in contenders.defaults() if contender in present]
    rows = []
    for one in measured:
        by_label = {c.label: o for c, o in one.outcomes}
        cells = [_cell(by_label[c.label], one.truth) for c in shown]
        rows.append((one.job.heading, _magnitude(one.truth), *cells))
    return table(("job", "δ", *(c.label for c in shown)), rows)


def counts(measured: list[Measured], limits: tuple[float, ...]) -> str:
    """Return at how many jobs each contender is how close, and how often below the truth."""
    proved = [m for m in measured if m.truth is not None]
    rows = []
    for k, (contender, _) in enumerate(proved[0].outcomes):
        errors, low, none = [], 0, 0
        for one in proved:
            answer = one.outcomes[k][1].answer
            if answer is None or one.truth is None:
                none += 1
                continue
            assert isinstance(answer.value, float)
            errors.append(abs(relative_error(answer.value, one.truth)))
            low += answer.kind in {"upper", "estimate"} and below(answer.value, one.truth)
        close = [str(sum(e <= limit for e in errors)) for limit in limits]
        rows.append((contender.label, *close, str(low), str(none)))
    header = ("program", *(f"within {limit:g}" for limit in limits), "below δ", "no answer")
    return table(header, rows)


def report(measured: Measured, say: Callable[[str], None]) -> None:
    """Print one line about a job."""
    answered = sum(o.answer is not None for _, o in measured.outcomes)
    proof = "proved" if measured.truth else "NO PROOF"
    say(f"{measured.job.name}: {proof}, {answered} of {len(measured.outcomes)} answered")


def _group(contender: Contender, outcome: Outcome) -> tuple[str, str]:
    """Return the group of the figure and the text beside the point."""
    assert outcome.answer is not None
    if contender.program == "symdp":
        kind = {"exact": "exact", "upper": "bounds", "estimate": "estimates", "lower": "bounds"}
        return f"symdp, {kind[outcome.answer.kind]}", contender.label.strip("`")
    group, _, setting = contender.label.partition(", ε error ")
    if contender.program in {"google", "allocation"}:
        group, _, setting = contender.label.rpartition(", ")
    return group, setting


def _row(contender: Contender, outcome: Outcome, truth: Ends | None) -> tuple[str, ...]:
    seconds = outcome.seconds
    times = (duration(seconds.get("first", seconds.get("once"))), duration(seconds.get("next")))
    memory = megabytes(outcome.megabytes)
    if outcome.answer is None:
        return (contender.label, "", "", memory, "", "", outcome.failure)
    value = outcome.answer.value
    assert isinstance(value, float)
    if truth is None:
        return (contender.label, *times, memory, number(value), "", "")
    error = shown_error(value, truth)
    return (contender.label, *times, memory, number(value), error, words(outcome, truth))


def _cell(outcome: Outcome, truth: Ends | None) -> str:
    if outcome.answer is None or truth is None:
        return outcome.failure.split(";")[0] or "–"
    value = outcome.answer.value
    assert isinstance(value, float)
    said = words(outcome, truth).split(":")[0].split(";")[0]
    error = shown_error(value, truth)
    return f"{error} ({said})" if said else error


def _magnitude(truth: Ends | None) -> str:
    return "" if truth is None else f"{float(truth[0]):.2g}"


def _proved(truth: Ends) -> str:
    return number(float((truth[0] + truth[1]) / 2), 16)


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]
