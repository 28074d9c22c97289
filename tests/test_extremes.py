"""Extreme questions end in an answer or in one honest sentence, in bounded time and memory."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time

import pytest

from symdp import Mechanism, compose, mechanisms
from symdp.capacity import afford, within_capacity
from symdp.cli.asking import seconds_of
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import generation, is_interrupt, limit, time_limit
from symdp.questions.composition import Composition

GAUSSIAN = "gaussian sigma=1.5 -n 100"
POSIX = pytest.mark.skipif(os.name == "nt", reason="forks and signals are POSIX")


def is_one_line(ran, code):
    return ran.code == code and ran.out == "" and ran.err.count("\n") == 1


# Time.


def slow_unless_bound(answer):
    def delta(self, at, method="contour", direction="both"):
        if method != "moments":
            time.sleep(60)
        return answer(self, at, method, direction)

    return delta


@POSIX
def test_when_time_is_up_the_moments_bound_is_given(shell, monkeypatch):
    bound = compose(mechanisms.gaussian(sigma="3/2"), 100).delta(40, "moments").delta
    monkeypatch.setattr(Composition, "delta", slow_unless_bound(Composition.delta))
    ran = shell(f"delta {GAUSSIAN} --epsilon 40 --time-limit 0.1")
    assert is_one_line(ran, 1)
    assert "no answer within 0.1 s" in ran.err
    shown = float(ran.err.split("≤ ")[1].split(":")[0])
    assert bound <= shown <= bound * (1 + 1e-5)


@POSIX
def test_an_epsilon_has_its_bound_too(shell, monkeypatch):
    bound = compose(mechanisms.gaussian(sigma="3/2"), 100).epsilon(1e-5, "moments").epsilon
    monkeypatch.setattr(Composition, "certify_epsilon", lambda *_: time.sleep(60))
    ran = shell(f"certify {GAUSSIAN} --delta 1e-5 --time-limit 0.1")
    assert is_one_line(ran, 1)
    shown = float(ran.err.split("≤ ")[1].split(":")[0])
    assert bound <= shown <= bound * (1 + 1e-5)


@POSIX
@pytest.mark.parametrize(
    "line",
    [
        f"curve {GAUSSIAN} --points 10000",
        f"verify {GAUSSIAN} --digits 200",
        "calibrate gaussian --parameter sigma -n 100 --epsilon 1 --delta 1e-5",
    ],
)
def test_every_question_has_a_limit(shell, line):
    ran = shell(f"{line} --time-limit 0.01")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert ran.out.count("\n") <= line.startswith(
        "verify"
    )  # rows follow their heading as they come
    assert "no answer within 0.01 s: raise --time-limit" in ran.err


@pytest.mark.parametrize("text", ["-1", "1e7", "soon", ""])
def test_a_bad_limit_is_bad_input(shell, text):
    ran = shell(f"delta {GAUSSIAN} --epsilon 1 --time-limit", text)
    assert is_one_line(ran, 2)
    assert "--time-limit" in ran.err


def test_none_and_zero_are_no_limit():
    assert [seconds_of(text) for text in ("none", "0", "1/4")] == [None, None, 0.25]


@POSIX
def test_python_has_the_limit_that_it_asks_for():
    with pytest.raises(AccuracyError, match=r"no answer within 0.01 s"), time_limit(0.01):
        time.sleep(60)
    with time_limit(None):
        assert compose(mechanisms.gaussian(sigma=2), 3).delta(1.5).delta > 0


@POSIX
def test_laws_are_built_anew_after_an_interrupt():
    steps = compose(mechanisms.gaussian(sigma=2), 3)
    before, law = generation(), steps.law("remove")
    assert steps.law("remove") is law
    with limit(0.01):
        time.sleep(60)
    assert generation() == before + 1
    assert steps.law("remove").parts[0][0] is not law.parts[0][0]


# What no timer reaches.

SUPERVISED = """
import os, signal, sys
from symdp.cli import _complain, asking, supervise
supervise.LEAST_GRACE = 0.3
def work():
    {work}
    return 0
sys.exit(supervise.supervised(work, _complain))
"""


def supervised(work):
    return subprocess.run(
        [sys.executable, "-c", SUPERVISED.format(work=work)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.slow_cases("supervise.must_end_in(0.1); 3 ** 10**9-1-not done within 0.1 s")
@POSIX
@pytest.mark.parametrize(
    ("work", "code", "words"),
    [
        ("supervise.must_end_in(0.1); 3 ** 10**9", 1, "not done within 0.1 s"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 1, "ended by SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGABRT)", 1, "memory"),
    ],
)
def test_what_cannot_be_interrupted_is_ended(work, code, words):
    ran = supervised(work)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert ran.stderr.count("\n") == 1
    assert words in ran.stderr


@POSIX
def test_a_limit_of_a_command_counts_work_and_no_waiting():
    asked = "asking.in_time('0.2', lambda: 0, lambda _: __import__('time').sleep(0.5)); return 7"
    assert supervised(asked).returncode == 7


@POSIX
@pytest.mark.parametrize("work", ["return 7", "print('once'); return 7"])
def test_the_exit_code_and_the_output_come_through(work):
    ran = supervised(work)
    assert (ran.returncode, ran.stderr) == (7, "")
    assert ran.stdout == ("once\n" if "once" in work else "")


DEAF = "signal.signal(signal.SIGINT, signal.SIG_IGN); print('on', flush=True); signal.pause()"


@POSIX
def test_an_interrupt_that_is_not_heard_ends_it_all_the_same():
    child = subprocess.Popen(
        [sys.executable, "-c", SUPERVISED.format(work=DEAF)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "on\n"
    child.send_signal(signal.SIGINT)
    _, complaint = child.communicate(timeout=30)
    assert (child.returncode, complaint) == (130, "")


def test_an_interrupt_behind_another_error_is_one(shell, monkeypatch):
    def interrupted(*_):
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    monkeypatch.setattr(Composition, "delta", interrupted)
    ran = shell(f"delta {GAUSSIAN} --epsilon 1")
    assert (ran.code, ran.out, ran.err) == (130, "", "")
    assert not is_interrupt(SystemError())


# Memory and doubles.


def test_memory_is_asked_for_before_it_is_taken(shell, monkeypatch):
    monkeypatch.setattr("symdp.capacity.MOST_BYTES", 1000)
    ran = shell("delta laplace b=3/7 -n 1000 --epsilon 5")
    assert is_one_line(ran, 1)
    assert "GB of memory" in ran.err
    afford(100, "this", "nothing")


def test_a_mesh_that_is_too_large_leaves_the_moments_bound(monkeypatch):
    steps = compose(mechanisms.gaussian(sigma=3), 45)
    bound = steps.delta(1, "moments")
    monkeypatch.setattr("symdp.capacity.MOST_BYTES", 4_000_000)
    found = steps.delta(1, "prv")
    assert (found.log_delta, found.kind) == (bound.log_delta, "bound")
    assert "prv: a mesh of 4194304 points" in found.advice
    with pytest.raises(AccuracyError, match=r"fourier: grids of .* GB of memory"):
        steps.delta(1, "fourier")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "more memory than there is"),
        (OverflowError("math range error"), "beyond the range of doubles"),
        (ZeroDivisionError(), "beyond the range of doubles.*moments"),
        (RecursionError(), "nested too deeply"),
    ],
)
def test_what_does_not_fit_is_one_sentence(error, words):
    with pytest.raises(AccuracyError, match=f"prv: .*{words}"), within_capacity("prv"):
        raise error


def test_other_errors_come_through():
    with pytest.raises(InputError, match="mine"), within_capacity("prv"):
        raise InputError("mine")
    with pytest.raises(AccuracyError, match=r"^mine$"), within_capacity("prv"):
        raise AccuracyError("mine")


@pytest.mark.parametrize(
    ("name", "values", "delta"),
    [
        ("laplace", {"b": 10**30}, 1e-12),
        ("student_t", {"nu": 2, "s": 10**8}, 0.5),
        ("student_t", {"nu": 2, "s": 10**30}, 0.5),
    ],
)
def test_where_nothing_is_lost_epsilon_is_0_at_once(name, values, delta):
    found = compose(getattr(mechanisms, name)(**values), 10).epsilon(delta)
    assert (found.epsilon, found.epsilon_lower, found.epsilon_upper) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("sigma", [10, 100, 1000])
def test_epsilon_is_0_only_where_delta_of_0_is_small_enough(sigma):
    steps = compose(mechanisms.gaussian(sigma=sigma), 5)
    least = steps.delta(0).delta
    assert steps.epsilon(least * 0.999).epsilon > 0
    assert steps.epsilon(min(least * 1.3, 0.999)).epsilon == 0


def test_prv_says_what_it_cannot_prove():
    with pytest.raises(AccuracyError, match=r"prv proves no δ below 2\.3e-16.*moments"):
        compose(mechanisms.gaussian(sigma=3), 45).epsilon(1e-300, "prv")


def test_losses_that_no_double_tells_apart():
    """Ten signs, as good as: E(W − 1)⁺/10³⁰ of their sum W, from binomial probabilities."""
    answer = compose(mechanisms.laplace(b=10**30), 10).delta(1e-30)
    signs = sum(math.comb(10, k) * max(2 * k - 11, 0) for k in range(11)) / 2**10
    assert answer.kind == "exact"
    assert answer.delta == pytest.approx(signs * 1e-30, rel=1e-12)


def test_a_constant_that_is_huge_on_one_branch_is_refused():
    text = (
        'name = "a"\nvariable = "x"\nsupport = ["-oo", "oo"]\n'
        '[noise]\ndensity = "exp(-exp(-cosh(Max(x, 10**10))))"\n'
    )
    with pytest.raises(InputError, match=r"cosh\(Max\(10000000000, x\)\) is too large"):
        Mechanism.from_toml(text)
