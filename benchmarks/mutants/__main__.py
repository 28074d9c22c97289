"""Change one line of a room at a time and see whether quick tests notice.

    python -m benchmarks.mutants --room derive --count 25
    python -m benchmarks.mutants --room page --own
    python -m benchmarks.mutants --room derive --again --tests tests/derive/test_new.py

Mutations are drawn with a seed. A copy of the tree is taken once, and it is measured which quick
tests, of all rooms, run which lines (ten minutes of a processor). A mutation is tried on those that
run its line, the room's own first and quick before long, until one fails; then on what else stands
in the same files, and in files that run its line for other rooms. Each result is printed as it
comes, and kept: the same command goes on where it was stopped. What survives must be looked at: a
hole gets a test, what changes nothing gets deleted code. `--own` measures and asks the room's own
tests alone, a few minutes: what survives may be noticed by tests of other rooms. `--again` tries
what survived on tests that came later, from the tree as it is now.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from benchmarks.mutants.changes import Mutation, again, drawn, lines_that_use
from benchmarks.mutants.reached import OPTIONS, Reached

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("symdp", "tests", "benchmarks", "examples", "docs", "derivations", "paper")
FILES = (
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "CITATION.cff",
    "Makefile",
)
SLOWER = 4.0  # what works so many times as long as measured hangs, and is noticed
START = 20.0  # seconds of a processor until the first test runs, at most
WAITING = 20.0  # seconds that may pass for each, on a machine that others keep busy


def copied(folder: Path) -> Path:
    """Copy what tests read."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    return folder


def in_order(mutation: Mutation, reached: Reached, room: str) -> list[str]:
    """Return tests, those that are most likely to notice first."""
    tree = reached.tree
    direct: set[str] = set()
    if mutation.inside:
        direct = reached.running(mutation.path, [mutation.line])
        direct = direct or reached.running(mutation.path, [mutation.statement])
        # What only child processes run is seen in none: then all that runs a line of the file.
        direct = direct or reached.running(mutation.path, range(1, 1000))
    else:
        using: dict[str, set[int]] = {}
        for path, line in lines_that_use(tree, mutation):
            using.setdefault(path, set()).add(line)
        for path, lines in using.items():
            direct |= reached.running(path, lines)
    files = {name.split("::", maxsplit=1)[0] for name in direct}
    beside = {name for name in reached.seconds if name.split("::", maxsplit=1)[0] in files}

    def late(name: str) -> tuple[bool, float]:
        is_own = name.startswith((f"tests/{room}/", f"symdp/{room}/"))
        return not is_own, reached.seconds[name] * (1.0 if is_own else 2.0)

    return [*sorted(direct, key=late), *sorted(beside - direct, key=late)]


def within(tests: Sequence[str], reached: Reached, seconds: float) -> Iterator[str]:
    """Yield those tests for which there are seconds left."""
    for name in tests:
        if reached.seconds[name] <= seconds:
            seconds -= reached.seconds[name]
            yield name


def is_noticed(mutation: Mutation, tree: Path, tests: Sequence[str], seconds: float) -> str:
    """Return the test that fails on the changed file, an empty text where none does."""
    file = tree / mutation.path
    text = file.read_text(encoding="utf-8")
    file.write_text(mutation.applied(text), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", *OPTIONS, "-x", "--tb=no", "-rfE", *tests]
    most = math.ceil(START + SLOWER * seconds)
    limits = partial(resource.setrlimit, resource.RLIMIT_CPU, (most, most))
    try:
        ran = subprocess.run(
            command, cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, text=True,
            timeout=WAITING * most, capture_output=True, check=False, preexec_fn=limits,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "it does not end"
    finally:
        file.write_text(text, encoding="utf-8")
    if ran.returncode == 0:
        return ""
    if ran.returncode < 0:
        return "it does not end"
    named = [line for line in ran.stdout.split("\n") if line.startswith(("FAILED", "ERROR"))]
    return named[0][:150] if named else f"exit {ran.returncode}"


def tried(mutation: Mutation, reached: Reached, room: str, seconds: float) -> dict[str, object]:
    """Try a mutation on a few tests, then on the others."""
    start = time.monotonic()
    tests = in_order(mutation, reached, room)
    few = list(within(tests, reached, seconds / 10))
    most = [name for name in within(tests, reached, seconds) if name not in few]
    by = ""
    for part in (few, most):
        if part and not by:
            by = is_noticed(mutation, reached.tree, part, sum(map(reached.seconds.get, part)))
    return {
        **asdict(mutation), "room": room, "by": by, "tests": len(few) + len(most),
        "left_out": len(tests) - len(few) - len(most),
        "seconds": round(time.monotonic() - start, 1),
        "before": (reached.tree / mutation.path).read_text().split("\n")[mutation.line - 1],
    }  # fmt: skip


def kept(file: Path) -> list[dict[str, object]]:
    """Read results."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def mutation_of(result: dict[str, object]) -> Mutation:
    """Return the mutation of a result."""
    return Mutation(**{name: result[name] for name in Mutation.__dataclass_fields__})


def try_again(results: Path, tests: Sequence[str], seconds: float) -> int:
    """Try what survived on tests of the tree as it is now."""
    tree = results.parent / "now"
    shutil.rmtree(tree, ignore_errors=True)
    copied(tree)
    for result in kept(results):
        if result["by"]:
            continue
        mutation = again(tree, mutation_of(result), str(result["before"]))
        if mutation is None:
            print(f"gone: {result['path']}: {str(result['before']).strip()}", flush=True)
            continue
        by = is_noticed(mutation, tree, tests, seconds)
        text = (tree / mutation.path).read_text(encoding="utf-8")
        print(f"{by or 'SURVIVES'}: {mutation.shown(text)}", flush=True)
    return 0


def main() -> int:
    """Print what happens to each mutation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--room", help="a folder of symdp, such as derive")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--skip", type=int, default=0, help="of those that are drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=100.0, help="of tests for one mutation")
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "mutants")
    parser.add_argument("--measure", metavar="ROOM", help="only see what its tests run")
    parser.add_argument("--own", action="store_true", help="ask no tests of other rooms")
    parser.add_argument("--again", action="store_true", help="try what survived on --tests")
    parser.add_argument("--tests", nargs="*", default=[])
    given = parser.parse_args()
    results = given.folder / f"{given.room}.jsonl"
    if given.own and not given.room:
        parser.error("--own needs --room")
    if given.again:
        return try_again(results, given.tests, given.seconds)
    if importlib.util.find_spec("coverage") is None:
        parser.error("python -m pip install coverage: it sees which tests run a line")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the changed file is put back first
    tree = given.folder / "tree"
    if not tree.exists():
        copied(tree)
    only = given.measure or ""
    if given.own:
        only = given.room
    reached = Reached(tree, given.folder / "reached", only)
    if only or given.room is not None:
        reached.measure()
    if given.measure or not given.room:
        return 0
    done = {mutation_of(result) for result in kept(results)}
    chosen = drawn(tree, given.room, given.count, given.seed)
    survivors = 0
    for number, mutation in enumerate(chosen, start=1):
        if number <= given.skip or mutation in done:
            continue
        result = tried(mutation, reached, given.room, given.seconds)
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        shown = mutation.shown((tree / mutation.path).read_text(encoding="utf-8"))
        told = f"{result['by'] or 'SURVIVES'} ({result['tests']} tests, {result['seconds']} s"
        told += f", {result['left_out']} left out)" if result["left_out"] else ")"
        print(f"{number} of {len(chosen)} {shown}\n  {told}", flush=True)
    by = [bool(result["by"]) for result in kept(results)]
    survivors = by.count(False)
    print(f"{len(by) - survivors} of {len(by)} are noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
