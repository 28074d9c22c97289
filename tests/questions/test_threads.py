"""Threads that share compositions, ledgers and sweeps: what each is told is what one alone is."""

from __future__ import annotations

import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from flint import arb, ctx

from symdp import AccuracyError, Ledger, compose, derive, mechanisms, sweep
from symdp.interrupt import time_limit
from symdp.questions.tradeoff import trade_off
from symdp.turns import in_turn

THREADS = 8


@pytest.fixture(autouse=True)
def threads_that_change_often():
    """Let another thread go on after every few lines."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


def at_once(works):
    """Return what functions return that threads call together."""
    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(lambda work: work(), works))


def fresh(seed):
    """A composition that no other test has asked."""
    step = mechanisms.gaussian(sigma=f"{1 + (seed % 997) / 1000:.6f}")
    return compose(step.subsample("poisson", "1/100"), 1000)


def check_composition(seed, threads, each):
    draw = random.Random(seed)
    epsilons = [[draw.uniform(0.05, 3.0) for _ in range(each)] for _ in range(threads)]
    shared, alone = fresh(seed), fresh(seed)
    works = [lambda some=some: [shared.delta(e).delta for e in some] for some in epsilons]
    expected = [[alone.delta(e).delta for e in some] for some in epsilons]
    assert at_once(works) == expected


def check_ledger(seed, threads, each):
    """Every thread adds steps of its own and asks; at the end all steps are counted."""
    ledger = Ledger()
    steps = [
        mechanisms.gaussian(sigma=f"{2 + k + (seed % 991) / 1000:.6f}") for k in range(threads)
    ]

    def work(step):
        told = []
        for _ in range(each):
            ledger.add(step, 5)
            told.append(ledger.epsilon(1e-6).epsilon)
        return told

    for told in at_once([lambda step=step: work(step) for step in steps]):
        assert told == sorted(told)  # ε never falls while steps are added
    alone = Ledger([(step, 5 * each) for step in steps])
    assert dict(ledger.steps) == dict(alone.steps)
    assert ledger.epsilon(1e-6).epsilon == pytest.approx(alone.epsilon(1e-6).epsilon, rel=1e-12)


def check_sweep(seed, threads, each):
    step = mechanisms.gaussian.subsample("poisson", "q")
    grid = {"sigma": [f"{1 + k + (seed % 983) / 1000:.6f}" for k in range(2)], "q": ["1/50"]}
    asked = {"n": [100 * k + 100 for k in range(each)], "delta": [1e-5, 1e-8]}
    with ThreadPoolExecutor(threads) as pool:
        found = sweep(step, grid, executor=pool, **asked)
    assert found.epsilon.tolist() == sweep(step, grid, **asked).epsilon.tolist()


@pytest.mark.quick_cases("check_ledger")
@pytest.mark.parametrize("check", [check_composition, check_ledger, check_sweep])
def test_threads_are_told_what_one_alone_is(check):
    check(1, 4, 4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 5))
@pytest.mark.parametrize("check", [check_composition, check_ledger, check_sweep])
def test_eight_threads_at_full_load(check, seed):
    check(seed, THREADS, 12)


@pytest.mark.slow
def test_questions_of_all_kinds_at_once():
    """Proofs and derivations set precisions of the process, on which the digits of others rest."""

    def kinds():
        noise = mechanisms.logistic(s="1.37")
        many = compose(mechanisms.laplace(b="3.21"), 10**6)
        return [
            lambda: many.delta(100.0).delta,
            lambda: compose(noise, 50).certify(1.5, 30).lower_decimal,
            lambda: compose(noise, 3).certify_epsilon(1e-6, 12).upper_decimal,
            lambda: trade_off(compose(noise, 7), 0.1),
            lambda: compose(noise, 1000).epsilon(1e-9).epsilon,
            lambda: str(derive(mechanisms.laplace).cgf),
            lambda: compose(mechanisms.gaussian(sigma="1.23"), 20).renyi(3.5),
        ]

    assert at_once(2 * kinds()) == 2 * [kind() for kind in kinds()]


def busy(begun, ended, seen):
    """Work with 200 bits until another thread has ended what it was at."""

    @in_turn
    def work():
        with ctx.workprec(200):
            begun.set()
            ended.wait(20)
            seen.append((arb(1) / 3).rel_accuracy_bits())

    return work


def test_a_limit_ends_while_another_thread_has_its_turn():
    begun, ended, seen = threading.Event(), threading.Event(), []
    other = threading.Thread(target=busy(begun, ended, seen))
    other.start()
    begun.wait(20)
    with pytest.raises(AccuracyError, match="no answer within"), time_limit(0.05):
        fresh(1).delta(1.0)
    ended.set()
    other.join()
    assert seen[0] >= 198  # the interrupt set no precision back that was not its own
    assert ctx.prec == 53
    assert fresh(1).delta(1.0).delta > 0  # nobody holds the turn


def test_a_limit_in_a_thread_ends_nobody_elses_work():
    def limited():
        with time_limit(0.01):
            time.sleep(0.05)
        return composition.delta(2.0).delta

    composition = fresh(3)
    found = at_once([limited, lambda: composition.delta(1.0).delta, limited])
    expected = [fresh(3).delta(e).delta for e in (2.0, 1.0, 2.0)]
    assert found == expected


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="processes do not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_that_forks_in_the_turn_of_another_thread_answers():
    import os

    begun, ended, seen = threading.Event(), threading.Event(), []
    other = threading.Thread(target=busy(begun, ended, seen))
    other.start()
    begun.wait(20)
    child = os.fork()
    if child == 0:
        os._exit(0 if in_turn(lambda: True)() else 1)
    for _ in range(200):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        status = 1
    ended.set()
    other.join()
    assert status == 0
