"""Limits of time: what stops, what stands in for it, and what must be left as it was."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
import threading
import time
import weakref

import flint
import mpmath
import numpy as np
import pytest

from symdp import interrupt
from symdp.cli.supervise import end_after_work, supervised
from symdp.errors import InputError
from symdp.interrupt import Clock, attempt, charge, limit, time_left, worked

AGES = 60.0  # seconds that no test waits


def toil(seconds: float = AGES) -> str:
    end = worked() + seconds
    while worked() < end:
        pass
    return "done"


def sleep() -> str:
    time.sleep(AGES)
    return "awake"


def test_work_in_time_is_returned() -> None:
    assert attempt(lambda: 42, 0, AGES) == 42
    assert attempt(lambda: 42, 0, 0.0) == 0


def test_the_shortest_of_nested_limits_counts() -> None:
    assert attempt(lambda: attempt(toil, "inner", 0.05), "outer", AGES) == "inner"
    assert attempt(lambda: attempt(toil, "inner", AGES), "outer", 0.05) == "outer"


def test_work_goes_on_after_an_inner_limit() -> None:
    def work() -> tuple[str, str]:
        return attempt(toil, "first", 0.05), attempt(toil, "second", 0.05)

    assert attempt(work, ("", ""), AGES) == ("first", "second")


def test_what_catches_errors_does_not_catch_the_end() -> None:
    def stubborn() -> str:
        try:
            return toil()
        except Exception:
            return "caught"

    assert attempt(stubborn, "late", 0.05) == "late"


def test_an_error_of_the_work_comes_through() -> None:
    def fail() -> None:
        raise InputError("no such thing")

    with pytest.raises(InputError, match="no such thing"):
        attempt(fail, None, AGES)


def test_precisions_are_restored() -> None:
    digits, bits = mpmath.mp.dps, flint.ctx.prec

    def work() -> None:
        mpmath.mp.dps, flint.ctx.prec = 99, 999
        toil()

    assert attempt(work, "late", 0.05) == "late"
    assert (mpmath.mp.dps, flint.ctx.prec) == (digits, bits)


def test_what_numpy_does_in_errors_is_restored() -> None:
    """The end of time may come where a block that sets it is entered or left."""
    before = np.geterr()
    with limit(0.05) as outcome:
        np.seterr(all="ignore")
        while True:
            time.sleep(0.01)
    assert outcome.late
    assert np.geterr() == before


def test_c_code_that_calls_back_is_interrupted() -> None:
    def work() -> None:
        while True:
            flint.acb.integral(lambda z, _: (z * z).exp().sin().exp(), 0, 5, eval_limit=50_000)

    assert attempt(work, "late", 0.1) == "late"


def test_a_system_error_that_is_not_the_end_of_time_comes_through() -> None:
    def fail() -> None:
        raise SystemError("another one")

    with pytest.raises(SystemError, match="another one"):
        attempt(fail, None, AGES)


def test_a_timer_that_was_set_before_still_rings() -> None:
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    try:
        signal.setitimer(signal.ITIMER_REAL, 2.0)
        assert attempt(toil, "late", 0.05) == "late"
        assert not rung
        for _ in range(200):
            if rung:
                break
            time.sleep(0.05)
        assert rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_a_thread_works_to_its_end_and_knows_the_time() -> None:
    found = []
    worker = threading.Thread(
        target=lambda: found.append(attempt(lambda: time_left() <= 0.5, "late", 0.5))
    )
    worker.start()
    worker.join()
    assert found == [True]


def test_waiting_is_no_work_but_does_not_last_for_ever() -> None:
    assert attempt(lambda: time.sleep(0.2), "late", 0.1) is None
    assert attempt(sleep, "late", 0.02) == "late"


def test_what_a_child_worked_counts() -> None:
    def work() -> str:
        charge(1.0)
        return toil()

    start = time.monotonic()
    assert attempt(work, "late", 1.01) == "late"
    assert time.monotonic() - start < AGES
    clock = Clock(2.0)
    clock.attempt(lambda: charge(1.5), None)
    assert clock.left < 0.6


def test_a_clock_counts_what_was_worked() -> None:
    clock = Clock(0.4)
    assert clock.attempt(lambda: toil(0.1), "late") == "done"
    assert clock.left < 0.31
    for _ in range(100):  # on a busy machine waiting may end an attempt before its work does
        if clock.left > 0.0:
            assert clock.attempt(toil, "late") == "late"
    assert clock.left == 0.0
    assert clock.attempt(lambda: "more", "late") == "late"
    assert clock.attempt(lambda: "more", "late", least=AGES) == "more"


def test_a_block_tells_whether_it_was_left() -> None:
    with limit(AGES) as quick:
        pass
    with limit(0.02) as slow:
        sleep()
    assert (quick.late, slow.late) == (False, True)


def test_what_no_signal_ends_is_killed(capfd) -> None:
    def work() -> int:
        end_after_work(0.2)
        return len(str(3 ** (10**9)))

    said = []
    assert supervised(work, lambda line, code: said.append(line) or code) == 1
    assert said[0].startswith("not done within the time for it")
    assert supervised(lambda: 7, lambda line, code: code) == 7


def test_a_module_is_imported_to_its_end(tmp_path, monkeypatch) -> None:
    (tmp_path / "drowsy.py").write_text("import time\ntime.sleep(0.3)\nawake = True\n")
    monkeypatch.syspath_prepend(tmp_path)

    def work() -> str:
        import drowsy  # type: ignore[import-not-found]

        while drowsy.awake:
            time.sleep(0.01)
        return "never"

    assert attempt(work, "late", 0.05) == "late"
    import drowsy

    assert drowsy.awake


@pytest.mark.slow
def test_what_swallows_errors_comes_to_its_end(capfd) -> None:
    # Python prints what is raised in a callback of its collector, or in a destructor, and goes on.
    def slowly(phase: str, info: dict[str, int]) -> None:
        toil(0.2)

    class Slow:
        def __del__(self) -> None:
            toil(0.2)

    def work() -> str:
        gc.collect()
        return toil()

    gc.callbacks.append(slowly)
    try:
        assert attempt(work, "late", 0.05) == "late"
    finally:
        gc.callbacks.remove(slowly)

    def destroy() -> str:
        Slow()
        return toil()

    assert attempt(destroy, "late", 0.05) == "late"

    def forget() -> str:
        weakref.finalize(Slow(), toil, 0.2)
        return toil()

    assert attempt(forget, "late", 0.05) == "late"
    assert capfd.readouterr().err == ""


def test_nothing_is_raised_on_the_way_out_of_a_block():
    """Its limit would not see it, and nobody else catches it."""
    frames = []

    @contextlib.contextmanager
    def block():
        yield
        frames.append(sys._getframe().f_back)

    with block():
        here = sys._getframe()
    assert not interrupt._must_end(here)
    assert interrupt._must_end(frames[0])
