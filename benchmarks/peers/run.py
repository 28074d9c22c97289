"""The whole run: ratios, intervals, every job with its figure, and the page."""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.peers import accuracy, contenders, drawing, intervals, ratios, report, risk
from benchmarks.peers.jobs import JOBS, Job
from benchmarks.peers.runner import Runner

JUDGED = 120.0  # seconds for one proof
ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "measured" / "peers.json"


class Parts:
    """The parts of a run, kept in a folder where there is one, with the seconds that they took."""

    def __init__(self, folder: Path | None, say: Callable[[str], None]) -> None:
        self._folder, self._say, self.seconds = folder, say, 0.0
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def get(self, name: str, work: Callable[[], Any]) -> Any:
        """Return a part, measured if it is not kept."""
        path = None if self._folder is None else self._folder / f"{name}.pickle"
        if path is not None and path.exists():
            found, seconds = pickle.loads(path.read_bytes())
        else:
            start = time.perf_counter()
            found = work()
            seconds = time.perf_counter() - start
            if path is not None:
                path.write_bytes(pickle.dumps((found, seconds)))
            self._say(name)
        self.seconds += seconds
        return found


def main() -> None:
    """Measure, draw and write; with --jobs measure those alone, and print what was found."""
    arguments = argparse.ArgumentParser(prog="benchmarks.peers", description=__doc__)
    arguments.add_argument("--docs", type=Path, default=ROOT / "docs", help="where to write")
    arguments.add_argument("--jobs", default="", help="names of jobs: only these, and no page")
    arguments.add_argument("--keep", type=Path, help="keep each part here: a run may be resumed")
    arguments.add_argument("--results", type=Path, default=RESULTS, help="answers as JSON")
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
            found = [
                _measured(runner, judge, job, figures, say) for job in JOBS if job.name in wanted
            ]
            print("\n".join(map(accuracy.section, found)))
            if chosen.results != RESULTS:
                _write(found, chosen.results)
            return
        parts = Parts(chosen.keep, say)
        races = parts.get("ratios", lambda: ratios.measure(runner, judge))
        many = parts.get("many-steps", lambda: ratios.many_steps(runner, judge))
        attack = parts.get("advantage", lambda: risk.measure(runner, judge))
        sides = [
            parts.get(f"intervals-{job.name}", lambda j=job: intervals.measure(runner, judge, j))
            for job in intervals.jobs()
        ]
        measured = [
            parts.get(job.name, lambda j=job: _measured(runner, judge, j, figures, say))
            for job in JOBS
        ]
    for name, text in report.pages(races, many, attack, measured, sides, parts.seconds).items():
        (chosen.docs / f"{name}.md").write_text(text)
    _write(measured, chosen.results)
    say("the pages and the results are written")


def _write(measured: list[accuracy.Measured], path: Path) -> None:
    path.write_text(results.file_of([row for one in measured for row in accuracy.rows(one)]))


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
