"""Which quick tests run which lines, and how long each takes.

Tests are run once, folder by folder, under `coverage`, which is told the test that runs. What a
file of tests derives once is kept for its other tests, so that only the first is seen to run the
lines; the others of its file come after it. Between files nothing is kept.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import _lru_cache_wrapper, cached_property
from pathlib import Path
from typing import Any

import pytest

OPTIONS = ("-p", "no:xdist", "-p", "no:cacheprovider", "-q", "-m", "not slow")


def folders(tree: Path) -> list[list[str]]:
    """Return what is run together: a room's examples and tests, and the tests of no room."""
    rooms = sorted(path.name for path in (tree / "tests").iterdir() if path.is_dir())
    parts = []
    for room in rooms:
        own = [f"tests/{room}", f"symdp/{room}"]
        parts.append([path for path in own if (tree / path).exists()])
    files = sorted((tree / "tests").glob("test_*"))
    parts.append([str(file.relative_to(tree)) for file in files])
    return parts


class _Marking:
    """A plugin of pytest that tells `coverage` which test runs, and keeps what each takes."""

    def __init__(self, seen: Any) -> None:
        self._seen = seen
        self._file = ""
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        file = item.nodeid.split("::", maxsplit=1)[0]
        if file != self._file:
            self._file = file
            _forget()
        self._seen.switch_context(item.nodeid)
        before = sum(os.times()[:4])
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = sum(os.times()[:4]) - before
            self._seen.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)


def _forget() -> None:
    """Empty what functions of the package keep of earlier answers."""
    for thing in gc.get_objects():
        with contextlib.suppress(ReferenceError):
            if type(thing) is _lru_cache_wrapper and thing.__module__.startswith("symdp"):
                thing.cache_clear()


def measure(into: str, tests: Sequence[str]) -> None:
    """Run tests in this process and write what they run."""
    import coverage

    seen = coverage.Coverage(data_file=f"{into}.lines", source=["symdp"], config_file=False)
    marking = _Marking(seen)
    seen.erase()
    seen.start()
    pytest.main([*OPTIONS, *tests], plugins=[marking])
    seen.stop()
    seen.save()
    passed = {name: marking.seconds[name] for name in marking.seconds.keys() - marking.failed}
    Path(f"{into}.json").write_text(json.dumps(passed, indent=1), encoding="utf-8")


@dataclass
class Reached:
    """What was measured of one tree, kept in a folder: of all rooms, or of one alone."""

    tree: Path
    folder: Path
    room: str = ""

    def measure(self) -> None:
        """Measure what is not yet there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for tests in folders(self.tree):
            name = Path(tests[0]).name if len(tests) <= 2 else "others"
            into = self.folder / name
            if into.with_suffix(".json").exists() or self.room not in ("", name):
                continue
            print(f"which lines do the tests of {name} run?", flush=True)
            code = "import sys; from benchmarks.mutants.reached import measure; "
            code += "measure(sys.argv[1], sys.argv[2:])"
            with into.with_suffix(".txt").open("w", encoding="utf-8") as printed:
                subprocess.run(
                    [sys.executable, "-c", code, str(into), *tests], cwd=self.tree,
                    env=os.environ | {"PYTHONPATH": str(self.tree)}, stdout=printed,
                    stderr=subprocess.STDOUT, check=False,
                )  # fmt: skip

    def _files(self, ending: str) -> list[Path]:
        return sorted(self.folder.glob((self.room or "*") + ending))

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Seconds of a processor of each test that passes."""
        seconds: dict[str, float] = {}
        for file in self._files(".json"):
            seconds |= json.loads(file.read_text(encoding="utf-8"))
        return seconds

    @cached_property
    def _lines(self) -> list[Any]:
        import coverage

        read = []
        for file in self._files(".lines"):
            data = coverage.CoverageData(str(file))
            data.read()
            read.append(data)
        return read

    def running(self, path: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that run one of the lines of a file."""
        names: set[str] = set()
        for data in self._lines:
            of_lines = data.contexts_by_lineno(str(self.tree / path))
            for line in lines:
                names.update(of_lines.get(line, ()))
        return names & self.seconds.keys()
