"""The whole run: ratios, intervals, every job with its figure, and the page."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers import accuracy, contenders, drawing, intervals, ratios, report
from benchmarks.peers.jobs import JOBS, Job
from benchmarks.peers.runner import Runner

JUDGED = 120.0  # seconds for one proof
ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Measure, draw and write; with --jobs measure those alone, and print what was found."""
    arguments = argparse.ArgumentParser(prog="benchmarks.peers", description=__doc__)
    arguments.add_argument("--docs", type=Path, default=ROOT / "docs", help="where to write")
    arguments.add_argument("--jobs", default="", help="names of jobs: only these, and no page")
    chosen = arguments.parse_args()
    wanted = set(filter(None, chosen.jobs.split(",")))
    if not wanted and (lacking := contenders.missing()):
        raise SystemExit(f"the page names {' and '.join(lacking)}: install by make bench")
    start = time.perf_counter()

    def say(what: str) -> None:
        print(f"{time.perf_counter() - start:6.0f} s  {what}", flush=True)

    figures = chosen.docs / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    # What is proved is proved in a process of its own, and leaves nothing behind for others.
    with Runner() as runner, Runner(JUDGED) as judge:
        if wanted:
            for job in (j for j in JOBS if j.name in wanted):
                print(accuracy.section(_measured(runner, judge, job, figures, say)))
            return
        races = ratios.measure(runner, judge)
        say("ratios")
        many = ratios.many_steps(runner, judge)
        say("many steps")
        sides = []
        for job in intervals.jobs():
            sides.append(intervals.measure(runner, judge, job))
            say(f"intervals: {job.setting}")
        measured = [_measured(runner, judge, job, figures, say) for job in JOBS]
    seconds = time.perf_counter() - start
    for name, text in report.pages(races, many, measured, sides, seconds).items():
        (chosen.docs / f"{name}.md").write_text(text)
    say("the pages are written")


def _measured(
    runner: Runner, judge: Runner, job: Job, figures: Path, say: Callable[[str], None]
) -> accuracy.Measured:
    """Measure a job, say so, and draw it."""
    everyone = contenders.installed([*contenders.methods(), *contenders.peers()])
    found = accuracy.measure(runner, judge, job, everyone)
    accuracy.report(found, say)
    title = f"{job.heading}: {job.setting}"
    preview = ROOT / "out" / "figures"
    drawing.save(accuracy.points(found), title, f"bench-{job.name}", figures, preview)
    return found
