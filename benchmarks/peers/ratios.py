"""How many times longer the others take: δ, ε and a curve, in four situations, and many steps."""

from __future__ import annotations

import resource
import statistics
from dataclasses import dataclass, replace

from benchmarks.peers import contenders
from benchmarks.peers.answers import Answer, Contender, Outcome, Question
from benchmarks.peers.jobs import JOBS, Job
from benchmarks.peers.page import duration, number, ratio, table
from benchmarks.peers.programs import CHECKED
from benchmarks.peers.runner import Runner
from benchmarks.peers.verdict import Ends, relative_error

JOB = JOBS[0]
DELTA = 1e-5
CURVE = [0.1 + 2.9 * k / 199 for k in range(200)]
QUESTIONS: tuple[tuple[Question, str, object], ...] = (
    ("delta", "δ at ε = 1", JOB.epsilon),
    ("epsilon", f"ε at δ = {DELTA:g}", DELTA),
    ("curve", "δ at 200 ε", CURVE),
)
LONG = 40.0  # seconds for the calls of one median, so that 15 are made
SITUATIONS = {
    "parameters": "parameters never seen",
    "composition": "a new number of steps",
    "next": "the same composition, a new {0} near by",
    "same": "the same composition, the same {0}",
}
COUNTS = (10**3, 10**6, 10**9, 10**12)
LONG_SITUATIONS = ("composition", "next", "same")
COLD = "a new process, imports included"
COLD_RUNS = 15
FINEST = 1.1e-16  # what a double can say of any number


def pairs() -> list[tuple[Contender, Contender]]:
    """Each other program beside symdp asked for the same directions."""
    both, remove = contenders.ours("contour", "both"), contenders.ours("contour")
    return [
        (contenders.dots(1e-4), both),
        (contenders.prv(0.1), remove),
        (contenders.ours("fourier"), remove),
    ]


@dataclass
class Race:
    """One question: its proved answers, and what came of everyone by label and direction."""

    question: Question
    title: str
    truths: list[Ends | None]
    outcomes: dict[Contender, Outcome]


def measure(runner: Runner, judge: Runner) -> list[Race]:
    races = []
    present = [pair for pair in pairs() if contenders.is_installed(pair[0])]
    everyone = dict.fromkeys(c for pair in present for c in reversed(pair))
    for question, title, at in QUESTIONS:
        places = [CURVE[k] for k in CHECKED] if question == "curve" else [at]
        asked: Question = "epsilon" if question == "epsilon" else "delta"
        truths = [judge.truth(JOB, asked, place) for place in places]
        found = {c: runner.ask(c, JOB, question, at, tuple(SITUATIONS), LONG) for c in everyone}
        if question == "delta":
            for contender, outcome in found.items():
                outcome.seconds["cold"] = _cold(contender)
        races.append(Race(question, title, truths, found))
    return races


def _cold(contender: Contender) -> float:
    """Return the CPU seconds of a new process up to its first δ."""
    seconds = []
    for _ in range(COLD_RUNS):
        start = _of_children()
        with Runner() as fresh:
            fresh.ask(contender, JOB, "delta", JOB.epsilon, ())
        seconds.append(_of_children() - start)
    return statistics.median(seconds)


def _of_children() -> float:
    """Return the CPU seconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def error(outcome: Outcome, truths: list[Ends | None]) -> float:
    """Return the largest relative error over the places checked, nan where one is unknown."""
    if outcome.answer is None or any(t is None for t in truths):
        return float("nan")
    value = outcome.answer.value
    values = value if isinstance(value, tuple) else (value,)
    errors = [
        abs(relative_error(v, t)) for v, t in zip(values, truths, strict=True) if t is not None
    ]
    return max(errors)


def headline(races: list[Race]) -> str:
    """Return symdp beside its first peer: the same question in the same situation, both sides."""
    rows = []
    for race in races:
        ((other, own), *_) = _present(race)
        for situation, text in SITUATIONS.items():
            if situation == "same":
                continue
            mine, theirs = (race.outcomes[c].seconds.get(situation) for c in (own, other))
            asked = text.format(_given(race))
            shown = f"**{asked}**" if situation == "parameters" else asked
            times = ratio(theirs / mine) if mine and theirs else ""
            rows.append((race.title, shown, duration(mine), duration(theirs), times))
    ((other, own), *_) = _present(races[0])
    return table(("question", "situation", *(c.label for c in (own, other)), "ratio"), rows)


def section(races: list[Race]) -> str:
    """Return tables of times, ratios and errors."""
    parts = []
    for race in races:
        parts.append(f"### {race.title}\n")
        rows = []
        if race.question == "delta":
            rows.append((COLD, *_cells(race, "cold")))
        for situation, text in SITUATIONS.items():
            rows.append((text.format(_given(race)), *_cells(race, situation)))
        rows.append(("relative error", *_errors(race)))
        parts.append(table(["what is kept", *_heads(race)], rows))
    return "\n".join(parts)


def _given(race: Race) -> str:
    return "δ" if race.question == "epsilon" else "ε"


def _present(race: Race) -> list[tuple[Contender, Contender]]:
    return [pair for pair in pairs() if pair[0] in race.outcomes]


def _heads(race: Race) -> list[str]:
    heads, seen = [], set()
    for other, own in _present(race):
        if own not in seen:
            seen.add(own)
            direction = "both directions" if own.setting[1] == "both" else "remove"
            heads.append(f"`contour`, {direction}")
        name = f"{other.label}, remove" if other.program == "symdp" else other.label
        heads += [name, "ratio"]
    return heads


def _cells(race: Race, situation: str) -> list[str]:
    """Return the times in one situation."""
    cells, seen = [], set()
    for other, own in _present(race):
        mine, theirs = (race.outcomes[c].seconds.get(situation) for c in (own, other))
        if own not in seen:
            seen.add(own)
            cells.append(duration(mine) or race.outcomes[own].failure)
        cells.append(duration(theirs) or race.outcomes[other].failure)
        cells.append(ratio(theirs / mine) if mine and theirs else "")
    return cells


def _errors(race: Race) -> list[str]:
    cells, seen = [], set()
    for other, own in _present(race):
        mine, theirs = (error(race.outcomes[c], race.truths) for c in (own, other))
        if own not in seen:
            seen.add(own)
            cells.append(f"{mine:.1e}")
        cells += [f"{theirs:.1e}", ratio(theirs / max(mine, FINEST))]
    return cells


def many_steps(runner: Runner, judge: Runner) -> str:
    """Return the times of δ over the number of steps, at the ε where δ is about 1e-5."""
    own = contenders.ours("contour")
    rows: list[tuple[str, ...]] = []
    medians: dict[int, dict[str, float]] = {}
    for count in COUNTS:
        job = replace(JOB, count=count)
        found = runner.ask(own, job, "epsilon", DELTA, ("same",))
        if found.answer is None:
            rows.append((f"{count:,}", found.failure, "", "", "", "", ""))
            continue
        assert isinstance(found.answer.value, float)
        job = replace(job, epsilon=float(f"{found.answer.value:.12g}"))
        asked = _near(runner, own, job)
        truth = judge.truth(job, "delta", job.epsilon)
        medians[count] = asked.seconds
        off = error(asked, [truth])
        rows.append(
            (f"{count:,}", f"{job.epsilon:.12g}", _value(asked.answer),
             *(duration(asked.seconds.get(s)) for s in LONG_SITUATIONS),
             f"{off:.1e}" if truth else "no proof")
        )  # fmt: skip
    header = ("n", "ε", "δ", "a new number of steps", "a new ε near by", "the same ε", "error of δ")
    return table(header, rows) + "\n" + _growth(medians)


def _growth(medians: dict[int, dict[str, float]]) -> str:
    """Return how much longer the most steps take than fewer ones."""
    last = COUNTS[-1]
    rows = []
    for count in COUNTS[:-1]:
        ends = [
            (medians.get(last, {}).get(s), medians.get(count, {}).get(s)) for s in LONG_SITUATIONS
        ]
        rows.append((f"{count:,}", *("" if not a or not b else ratio(a / b) for a, b in ends)))
    header = ("n", "a new number of steps", "a new ε near by", "the same ε")
    return (
        f"The time at n = {last:,} divided by that at fewer steps; the aim is at most 1.5 for "
        "n = 1,000.\n\n" + table(header, rows)
    )


def _near(runner: Runner, own: Contender, job: Job) -> Outcome:
    return runner.ask(own, job, "delta", job.epsilon, LONG_SITUATIONS)


def _value(answer: Answer | None) -> str:
    if answer is None or not isinstance(answer.value, float):
        return ""
    return number(answer.value, 6)
