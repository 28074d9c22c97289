"""The pages docs/benchmarks*.md, written from what was measured."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import symdp
from benchmarks.peers import accuracy, intervals, ratios
from benchmarks.peers.accuracy import Measured
from benchmarks.peers.intervals import Side
from benchmarks.peers.page import table
from benchmarks.peers.ratios import Race
from benchmarks.peers.runner import LIMIT
from benchmarks.peers.verdict import words
from benchmarks.peers.worker import MEMORY, MOST_CALLS

PACKAGES = (
    "dp-accounting", "prv-accountant", "autodp", "PLD_accounting", "riskcal", "numpy", "scipy",
)  # fmt: skip
CLOSE = 1e-2  # relative, of a δ
LONG_TABLE = re.compile(r"^\| program \|.*?(?=\n\n|\n*\Z)", re.MULTILINE | re.DOTALL)
FOLDED = "<details><summary>Every program</summary>\n\n\\g<0>\n\n</details>"
LIMITS = (1e-2, 1e-4, 1e-8)
MAINTAINERS = (
    "*For those who compare programs or change symdp; using it needs nothing of this page.*\n"
)

HEAD = """# symdp beside its peers

`make bench` measures everything on this page and on its two others, [intervals and bounds side by
side](benchmarks-intervals.md) and [job by job](benchmarks-jobs.md), and writes them, in one run:
{versions}; Python {python}, {cores} cores ({processor}). Times are CPU time of one thread.

The peers are Google's `dp-accounting`, its privacy loss distributions by either of its
discretisations and its Rényi accountant, Microsoft's `prv-accountant`, `autodp` by its Rényi
accountant (its characteristic functions ask SciPy for what 1.14 removed), `PLD_accounting`, and
for an attack's advantage `riskcal`. Where one of them is not installed nothing is written.
symdp takes part with each of its methods. What a program answers is compared
with an enclosure of the true δ or ε by `certify`, proved with floating point included, to 16
digits.

- Every program runs in a process that is warm: it has imported what it needs. **One δ** is the
  median time from the parameters to δ over up to {calls} calls, fewer where one takes long, each
  at an ε slightly beside the last. symdp keeps compiled mechanisms, and so has compiled this one.
  **Next ε** is the time for δ at an ε near by, of a
  composition that is kept: its object, its grid, its composed losses, whatever the program can
  keep.
- The directions are those of each program: Google's answers are the larger of both, the others'
  are for removal, which is the larger here.
- A call may take {limit:g} s and a process {memory} GB. What goes past that is said in words,
  and finer settings of the same program are left out.
- **Memory** is what the first call added to its process at most.
- An upper bound below the true δ is an error, and set in bold. An estimate below it is not, but it
  promises more privacy than there is, and so it is named too.
"""


def pages(
    races: Sequence[Race],
    many: str,
    attack: str,
    measured: list[Measured],
    sides: list[Side],
    seconds: float,
) -> dict[str, str]:
    """Return the names of the pages, each with its text."""
    summary = "\n".join(
        (
            HEAD.format(
                versions=versions(),
                python=platform.python_version(),
                cores=os.cpu_count(),
                processor=_processor(),
                calls=MOST_CALLS,
                limit=LIMIT,
                memory=MEMORY >> 30,
            ),
            "## Time at a glance\n",
            f"{_capital(ratios.JOB.setting)}. Each row is one situation, the same for both; the "
            "first of each question, parameters that were never seen, is what a search, a table "
            f"or a first question pays. Medians of {MOST_CALLS} calls in a warm process; both "
            "directions; the ratio is the peer's time over symdp's.\n",
            ratios.headline(list(races)),
            "## Accuracy at a glance\n",
            "The relative error of δ, at the default settings or, where there is none, that of "
            "the program's documentation.\n",
            accuracy.summary(measured),
            f"At how many of the {sum(m.truth is not None for m in measured)} jobs with a proof "
            "each program is how close, answers below the true δ (lower bounds aside, and exact "
            "methods, whose last digits have no side), and does not answer:\n",
            accuracy.counts(measured, LIMITS),
            "### Numbers that must not be relied on\n",
            _wrong(measured),
            "## Times and ratios\n",
            f"{_capital(ratios.JOB.setting)}; ε at δ = {ratios.DELTA:g}, and a curve of "
            f"{len(ratios.CURVE)} points between ε = {ratios.CURVE[0]:g} and "
            f"{ratios.CURVE[-1]:g}, compared with proved values at {len(ratios.CHECKED)} of them. "
            "Each program at its defaults, or the setting of its documentation. Ratios are the "
            "program's time over symdp's in the same situation and the same directions; of the "
            "error, its error over symdp's, or over the rounding of a double where that is "
            "larger.\n",
            ratios.section(list(races)),
            "### Over the number of steps\n",
            "The same mechanism at the ε where δ is about 1e-5.\n",
            many,
            "### An attack's best advantage\n",
            "δ at ε = 0, of both directions: what `riskcal` answers, from Google's distribution at "
            "1e-4.\n",
            attack,
            f"The whole run took {seconds / 60.0:.0f} minutes.\n",
        )
    )
    beside = "\n".join(
        (
            "# Intervals and bounds side by side\n",
            MAINTAINERS,
            "The settings of the Fourier accountant's tables and of its code's tests, the latter "
            "also for substitution. Of a bound only one end is given. `fourier` is on the grid of "
            "the published values.\n",
            _missed(sides),
            "\n".join(intervals.section(side) for side in sides).replace("### ", "## "),
        )
    )
    by_job = job_page([accuracy.section(m).replace("### ", "## ") for m in measured])
    return {"benchmarks": summary, "benchmarks-intervals": beside, "benchmarks-jobs": by_job}


def job_page(sections: Sequence[str]) -> str:
    """Return the page of all jobs: an index, and sections whose tables are folded."""
    rows = []
    shown = []
    for text in sections:
        heading = text.partition("\n")[0].removeprefix("## ")
        proved = re.search(r"^Proved: δ = (\S+)\.$", text, re.MULTILINE)
        answers = re.findall(r"^\| (.+?) \|.*\| ([-+][\d.]+e[-+]\d+) \|", text, re.MULTILINE)
        within = sum(abs(float(error)) <= CLOSE for _, error in answers)
        value = f"{float(proved[1]):.4g}" if proved else ""
        rows.append((f"[{heading}](#{anchor(heading)})", value, str(len(answers)), str(within)))
        shown.append(LONG_TABLE.sub(FOLDED, text))
    return "\n".join(
        (
            "# Job by job\n",
            MAINTAINERS,
            "Each job has a figure, and a table of every program that is folded. In the figures "
            "symdp's exact values are stars, its bounds and estimates circles; peers have other "
            "shapes, joined from coarse to fine. Errors above 1e4 or below 1e-17 are drawn at the "
            "edge.\n",
            table(("job", "δ", "answers", f"within {CLOSE:g} of it"), rows),
            "\n".join(shown),
        )
    )


def anchor(heading: str) -> str:
    """Return the name by which a page links to a heading.

    Examples
    --------
    >>> anchor("Tables 1, 2: δ = 0.5")
    'tables-1-2-δ--05'
    """
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.replace(" ", "-")


def versions() -> str:
    """Return the packages that take part, with their versions."""
    found = [f"symdp {symdp.__version__}"]
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return ", ".join(found)


def _wrong(measured: list[Measured]) -> str:
    """List every answer in bold: 0, negative, or on the wrong side of what it claims."""
    lines = []
    for one in measured:
        if one.truth is None:
            continue
        for contender, outcome in one.outcomes:
            said = words(outcome, one.truth)
            if "**" in said:
                lines.append(f"- {one.job.heading}: {contender.label} {said}.")
    return "\n".join(lines or ["There are none."]) + "\n"


def _missed(sides: list[Side]) -> str:
    found = intervals.misses(sides)
    total = sum(side.truth is not None for side in sides)
    if not found:
        return f"In all {total} settings every interval and bound holds the proved δ.\n"
    listed = ", ".join(f"{label} in {count}" for label, count in found.items())
    return f"Of {total} settings the proved δ is outside of what was claimed by: {listed}.\n"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _processor() -> str:
    if sys.platform.startswith("linux"):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
