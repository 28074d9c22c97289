"""Side by side: whoever gives an interval or a bound, and whether the truth lies in it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from benchmarks.peers import contenders
from benchmarks.peers.answers import Contender, Outcome
from benchmarks.peers.jobs import Job
from benchmarks.peers.page import duration, number, table
from benchmarks.peers.runner import Runner
from benchmarks.peers.verdict import Ends, above, below, shown_error

HEADER = ("program", "lower", "value", "upper", "relative error", "one δ", "holds the truth?")
ROWS = (  # rate, σ, steps, ε: what the tests of the Fourier accountant's code list
    ("0.01", "2", 10_000, 1.0),
    ("0.01", "2", 100_000, 1.0),
    ("0.01", "2", 10_000, 0.8),
    ("0.01", "1", 10_000, 1.0),
    ("0.02", "2", 10_000, 1.0),
)
GRID = (20.0, 1_000_000)
TABLES = Job("tables", "FA Tables 1 and 2", "", "gaussian", "1.5", "0.01", 10_000, 1.0)
SCHEMES = ("poisson", "substitution")
DIGITS = 10
SHORT = 0.3  # seconds for the calls of one median


def jobs() -> list[Job]:
    """The tables' setting, and the five rows in both relations."""
    rows = [
        Job(f"row-{k}-{scheme}", "", "", "gaussian", sigma, rate, count, epsilon, scheme)
        for k, (rate, sigma, count, epsilon) in enumerate(ROWS)
        for scheme in SCHEMES
    ]
    return [TABLES, *rows]


def taking_part() -> list[Contender]:
    """Those with an interval or a bound, and the grid whose values were published."""
    own = ("certified", "contour", "prv", "tilted-prv", "spa-bounds", "eeai", "moments")
    return [
        *(contenders.ours(name) for name in own),
        contenders.grid(*GRID),
        contenders.optimistic(1e-4),
        contenders.buckets(1e-4),
        contenders.dots(1e-4),
        contenders.rdp(),
        contenders.autodp(),
        contenders.allocation(1e-4),
        contenders.prv(0.1),
        contenders.prv(0.01),
    ]


End = float | Fraction | None


@dataclass
class Side:
    """A job, its proved δ, and what the programs gave."""

    job: Job
    truth: Ends | None
    outcomes: list[tuple[Contender, Outcome]]


def measure(runner: Runner, judge: Runner, job: Job) -> Side:
    truth = judge.truth(job, "delta", job.epsilon)
    outcomes = [
        (c, runner.ask(c, job, "delta", job.epsilon, ("first",), SHORT)) for c in taking_part()
    ]
    return Side(job, truth, outcomes)


def section(side: Side) -> str:
    """Return a heading and a table."""
    heading = side.job.setting[0].upper() + side.job.setting[1:]
    if side.truth is None:
        return f"### {heading}\n\nNo proof was found within the limit of time.\n"
    middle = float((side.truth[0] + side.truth[1]) / 2)
    rows = [_row(c, o, side.truth) for c, o in side.outcomes]
    return f"### {heading}\n\nProved: δ = {number(middle, 16)}.\n\n{table(HEADER, rows)}"


def misses(sides: list[Side]) -> dict[str, int]:
    """Return how often each contender's bounds exclude the truth."""
    found: dict[str, int] = {}
    for side in sides:
        for contender, outcome in side.outcomes:
            if side.truth is not None and verdict(outcome, side.truth).startswith("**no"):
                found[contender.label] = found.get(contender.label, 0) + 1
    return found


def ends(outcome: Outcome) -> tuple[End, End]:
    """Return the program's own interval; a bound alone is one end of it."""
    answer = outcome.answer
    assert answer is not None
    assert isinstance(answer.value, float)
    low, high = answer.lower, answer.upper
    if answer.kind == "upper" and high is None:
        high = answer.value
    if answer.kind == "lower" and low is None:
        low = answer.value
    return low, high


def verdict(outcome: Outcome, truth: Ends) -> str:
    """Return whether the interval can hold the truth, and what its program says against it."""
    answer = outcome.answer
    if answer is None:
        return outcome.failure
    low, high = ends(outcome)
    if low is None and high is None:
        return "claims no interval"
    said = "yes"
    if low is not None and above(low, truth):
        said = "**no**: all of it lies above"
    elif high is not None and below(high, truth):
        said = "**no**: all of it lies below"
    return f"{said}; advises against itself" if answer.note else said


def _row(contender: Contender, outcome: Outcome, truth: Ends) -> tuple[str, ...]:
    answer = outcome.answer
    if answer is None:
        return (contender.label, "", "", "", "", "", outcome.failure)
    assert isinstance(answer.value, float)
    low, high = ends(outcome)
    shown = ["" if v is None else number(float(v), DIGITS) for v in (low, answer.value, high)]
    error = shown_error(answer.value, truth)
    seconds = duration(outcome.seconds.get("first", outcome.seconds["once"]))
    return (contender.label, *shown, error, seconds, verdict(outcome, truth))
