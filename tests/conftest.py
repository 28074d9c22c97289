"""What every test may rely on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import flint
import mpmath
import pytest
from falls_short import FALLS_SHORT
from shell import Shell

# Nothing that a user's own derivations left on the disk may decide a test.
os.environ["SYMDP_CACHE"] = "off"
# Every core has a worker: threads of BLAS would only wait for one another, at full load. NumPy
# reads this when it is first imported, here and in every process that a test starts.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


LONG_CASES = Path(__file__).with_name("long_cases.txt")
LONG = 3.0  # seconds of a processor that a quick case takes at most
# Quick cases that may take longer, each with the reason why no shorter one is of its kind.
LONG_BUT_QUICK = {
    "tests/test_architecture.py::test_a_line_says_one_thing": "it parses the package for its file",
    "tests/page/test_examples.txt::test_examples.txt": "the examples share one derivation",
}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Keep how many seconds of a processor a case takes, its child processes included."""
    before = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        item.user_properties.append(("processor seconds", sum(os.times()[:4]) - before))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the quick cases that take long; the seconds of a busy machine fail nobody."""
    if terminalreporter.config.option.markexpr != "not slow":
        return
    for report in terminalreporter.stats.get("passed", []):
        seconds = dict(report.user_properties).get("processor seconds", 0.0)
        if seconds > LONG and report.nodeid not in LONG_BUT_QUICK:
            told = f"LONG {seconds:.1f} s of a processor, no named exception: {report.nodeid}"
            terminalreporter.write_line(told)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow cases of tests that say which they are; a case that does not exist is told."""
    if not items:
        return
    known: dict[str, set[str]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            known.setdefault(item.nodeid.split("[", maxsplit=1)[0], set()).add(item.callspec.id)
    for item in items:
        for name in ("slow_cases", "quick_cases"):
            for mark in item.iter_markers(name):
                assert isinstance(item, pytest.Function)
                whole = item.nodeid.split("[", maxsplit=1)[0]
                if "::" not in item.config.args[0]:
                    unknown = set(mark.args) - known.get(whole, set())
                    assert not unknown, f"{whole} has no case {sorted(unknown)}"
                if (item.callspec.id in mark.args) == (name == "slow_cases"):
                    item.add_marker(pytest.mark.slow)
        if item.nodeid in FALLS_SHORT:  # on some processors roundings fall so that it is kept
            item.add_marker(pytest.mark.xfail(reason=FALLS_SHORT[item.nodeid], strict=False))
    _mark_sweeps(items)


def _mark_sweeps(items: list[pytest.Item]) -> None:
    """Leave to `make sweep` what lies between the first and the last slow case of each test.

    And what takes more than eight seconds of a processor, which `long_cases.txt` lists. What is
    marked a sweep is slow as well, so that `not slow` leaves it out.
    """
    long = set(LONG_CASES.read_text(encoding="utf-8").splitlines())
    slow: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sweep"):
            item.add_marker(pytest.mark.slow)
        elif item.get_closest_marker("slow"):
            slow.setdefault(item.nodeid.split("[", maxsplit=1)[0], []).append(item)
    for cases in slow.values():
        for item in cases:
            if item not in (cases[0], cases[-1]) or item.nodeid in long:
                item.add_marker(pytest.mark.sweep)


@pytest.fixture(autouse=True)
def _restored_precision() -> Iterator[None]:
    """Restore the precision that mpmath and FLINT share among all code in a process."""
    digits, bits = mpmath.mp.dps, flint.ctx.prec
    yield
    mpmath.mp.dps, flint.ctx.prec = digits, bits


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    """Run commands in this process."""
    return Shell(capsys)


@pytest.fixture
def interrupts_are_heeded() -> Iterator[None]:
    """Undo what a shell does to its background jobs, whose children would ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
