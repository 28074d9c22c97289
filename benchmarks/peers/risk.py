"""An attack's best advantage over guessing, which is δ at ε = 0."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.peers import contenders
from benchmarks.peers.page import duration, number, table
from benchmarks.peers.ratios import JOB
from benchmarks.peers.runner import Runner
from benchmarks.peers.verdict import shown_error, words

AT_ZERO = replace(JOB, epsilon=0.0)


def measure(runner: Runner, judge: Runner) -> str:
    """Return the section's table."""
    truth = judge.truth(AT_ZERO, "delta", 0.0)
    rows = []
    for contender in (contenders.ours("contour", "both"), contenders.riskcal()):
        found = runner.ask(contender, AT_ZERO, "delta", 0.0, ("first", "next"))
        if found.answer is None or truth is None:
            rows.append((contender.label, "", "", "", "", found.failure or "no proof"))
            continue
        value = found.answer.value
        assert isinstance(value, float)
        times = (duration(found.seconds.get(name)) for name in ("first", "next"))
        said = words(found, truth)
        rows.append((contender.label, *times, number(value), shown_error(value, truth), said))
    return table(
        ("program", "one answer", "again", "advantage", "relative error", "in words"), rows
    )
