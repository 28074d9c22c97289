"""The page of ordinary days, from what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.days.questions import QUESTIONS
from benchmarks.peers.page import duration, megabytes, ratio, table

FOUR_DIGITS = 1e-4  # relative: what a peer must reach to be compared with
SLOWEST = 10
Row = Mapping[str, Any]


def page(kept: Mapping[str, Any]) -> str:
    """Return docs/days.md."""
    rows = kept["rows"]
    slowest = sorted((r for r in rows if r["warm"]), key=lambda r: -r["warm"])[:SLOWEST]
    return "\n".join([
        "# How long the questions of a day take",
        "",
        "*For those who compare programs or change symdp; using it needs nothing of this page.*",
        "",
        f"{len(rows)} questions that people ask in a day. Times are processor seconds of one "
        "thread. *Warm* is a",
        "fresh composition with parameters never seen, in a process that has answered the same "
        "question for others;",
        "*new process* counts the start of Python and all imports. The error is relative, against "
        "a proof by",
        "`certify`; empty where no proof came in time, and of a calibration what its rounding to "
        "the safe side leaves.",
        f"`make bench` measures all of it anew; here on {kept['cores']} cores under a load of "
        f"{kept['load']:g}. A load above the",
        "number of cores makes processor seconds up to twice those of an idle machine.",
        "",
        summary(rows),
        "",
        "## The slowest",
        "",
        _of(slowest),
        "## Slower than a peer",
        "",
        _slower(rows),
        "## How the cost grows",
        "",
        _slopes(kept["scaling"]),
        "![Processor seconds against numbers of steps, kinds of steps, records and points]"
        "(figures/days-scaling.svg)",
        "",
        "## Every question",
        "",
        _of(rows),
    ])  # fmt: skip


def summary(rows: Sequence[Row]) -> str:
    """Return the middle and the slow end of all times, and how many failed."""
    parts = []
    for name, text in (("warm", "warm"), ("cold", "in a new process")):
        times = sorted(r[name] for r in rows if r[name])
        late = times[min(int(0.95 * len(times)), len(times) - 1)]
        middle = duration(statistics.median(times))
        parts.append(f"{text}: p50 {middle}, p95 {duration(late)}, slowest {duration(times[-1])}")
    failed = [r["name"] for r in rows if r["failure"]]
    parts.append(f"without an answer: {', '.join(failed) or 'none'}")
    found = {q.name for q in QUESTIONS if q.ask != "calibrate"}
    errors = [r["error"] for r in rows if r["error"] is not None and r["name"] in found]
    parts.append(f"largest error against {len(errors)} proofs: {max(errors, default=0.0):.1e}")
    return "\n".join(f"- {part}" for part in parts)


def _fastest(row: Row) -> tuple[str, float] | None:
    """Return the fastest peer that gives four digits, with its time."""
    good = {name: took for name, (took, error) in row["peers"].items() if error <= FOUR_DIGITS}
    return min(good.items(), key=lambda pair: pair[1]) if good else None


def _of(rows: Sequence[Row]) -> str:
    cells = []
    for row in rows:
        best = _fastest(row)
        cells.append((
            row["name"],
            duration(row["warm"]),
            duration(row["cold"]),
            megabytes(row["megabytes"]),
            "" if row["error"] is None else f"{row['error']:.0e}",
            row["failure"] or ("" if best is None else f"{duration(best[1])} ({best[0]})"),
        ))  # fmt: skip
    header = ("question", "warm", "new process", "memory", "error", "fastest peer of four digits")
    return table(header, cells)


def _slower(rows: Sequence[Row]) -> str:
    pairs = [(row, _fastest(row)) for row in rows if row["warm"]]
    asked = [(row, best) for row, best in pairs if best is not None]
    late = [(row, best) for row, best in asked if row["warm"] > best[1]]
    text = f"Of {len(asked)} questions that a peer answers to four digits, {len(late)} take symdp"
    text += " longer:\n\n" if late else " longer.\n"
    rows_of = [
        (
            row["name"],
            duration(row["warm"]),
            duration(best[1]),
            best[0],
            ratio(row["warm"] / best[1]),
        )
        for row, best in late
    ]
    return text + (table(("question", "symdp", "peer", "which", "ratio"), rows_of) if late else "")


def _slopes(curves: Mapping[str, Any]) -> str:
    rows = [
        (name, *(duration(curve["seconds"][k]) for k in (0, -1)), f"{curve['slope']:.2f}")
        for name, curve in curves.items()
    ]
    names = [f"{name}, {c['sizes'][0]:,} to {c['sizes'][-1]:,}" for name, c in curves.items()]
    cells = [(name, *row[1:]) for name, row in zip(names, rows, strict=True)]
    said = "Slope 0 is a cost that does not grow, 1 one that grows with the number.\n\n"
    return said + table(("what grows", "least", "most", "slope of the second half"), cells)
