"""Hand a slow symbolic computation to a child process and stop it when its time is up.

That SymPy gave a computation up is kept in the user's cache, by what was asked and by all versions,
so that the next command does not try it again.  What ended for want of time, memory or depth of
recursion is not: with more of it, or on another machine, it may be found.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import sympy as sp

from symdp import user_cache
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import WAITING, T, charge, time_left, undisturbed

# In all these ways SymPy gives up; an InputError is a ValueError, an AccuracyError arithmetic.
GIVES_UP = (
    ArithmeticError, AttributeError, LookupError, NotImplementedError, RecursionError, TypeError,
    ValueError, sp.polys.polyerrors.BasePolynomialError,
)  # fmt: skip
_JOIN_SECONDS = 1.0  # in which a child that was told to end has ended


def _integrate(integrand: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    return sp.integrate(integrand, (x, lower, upper), conds="none")


def _limit(expression: sp.Expr, x: sp.Symbol, end: sp.Expr, direction: str) -> sp.Expr:
    return sp.limit(expression, x, end, direction)


def _derivative(expression: sp.Expr, x: sp.Symbol, at: sp.Expr, order: int) -> sp.Expr:
    """Return a derivative at a place where the formula reads 0/0, from its Taylor series."""
    step = sp.Symbol("h", positive=True)
    series = sp.series(expression.subs(x, at + step), step, 0, order + 1).removeO()
    value = sp.factorial(order) * sp.expand(series).coeff(step, order)
    return value if value.has(sp.log) else sp.factor(value)


def _factor(expression: sp.Expr) -> sp.Expr:
    return sp.factor(sp.together(expression))


_TASKS: dict[str, Callable[..., sp.Expr]] = {
    "integrate": _integrate,
    "limit": _limit,
    "derivative": _derivative,
    "factor": _factor,
    "simplify": sp.simplify,
}


def or_reason(work: Callable[[], T], otherwise: Callable[[str], T]) -> T:
    """Return what a part of a page is, or what stands in for it and says why it is not there."""
    try:
        return work()
    except GIVES_UP as error:
        has_reason = isinstance(error, InputError | AccuracyError)
        return otherwise(
            str(error) if has_reason else f"SymPy gives it up ({type(error).__name__})"
        )


class _Outcome(NamedTuple):
    """What a child found: its result, the seconds that it worked, and whether it came to an end."""

    answer: sp.Expr | None
    spent: float
    is_done: bool


def compute(task: str, arguments: tuple[Any, ...], seconds: float) -> sp.Expr | None:
    """Return the result of a task ("integrate", "limit", …), None where it failed.

    Failure is an exception in the child, a result that still holds what was asked for, or the end
    of the time, in seconds that the child works; it is killed then.  The child is a fork where that
    is safe, otherwise a fresh interpreter that receives the task by its standard input.
    """
    seconds = min(seconds, time_left())
    given_up = _file_of_failure(task, arguments)
    if seconds <= 0 or (given_up is not None and user_cache.recall(given_up) == task):
        return None
    forking = (
        "fork" in multiprocessing.get_all_start_methods()
        and threading.active_count() == 1
        and not multiprocessing.current_process().daemon
    )
    if forking and task == "simplify":
        import sympy.physics.units  # noqa: F401  else each child does
    outcome = (_by_fork if forking else _by_interpreter)(task, arguments, seconds)
    charge(outcome.spent)
    if outcome.answer is None and outcome.is_done and given_up is not None:
        user_cache.keep(given_up, task)
    return outcome.answer


def _file_of_failure(task: str, arguments: tuple[Any, ...]) -> Path | None:
    """Return where a failure is kept; nowhere for symbols that each process numbers anew."""
    if any(isinstance(argument, sp.Expr) and argument.has(sp.Dummy) for argument in arguments):
        return None
    return user_cache.file_for("failed", task, *map(sp.srepr, arguments))


def _perform(task: str, arguments: tuple[Any, ...]) -> tuple[sp.Expr | None, bool]:
    """Return the result, None where it failed, and whether that would be the same elsewhere."""
    try:
        answer = _TASKS[task](*arguments)
    except (*GIVES_UP, MemoryError) as error:
        return None, not isinstance(error, RecursionError | MemoryError)
    is_left = answer.has(sp.Integral, sp.Limit, sp.nan, sp.zoo, sp.AccumBounds)
    return None if is_left else answer, True


def _outcome_of(task: str, arguments: tuple[Any, ...], seconds: float) -> bytes:
    """Return the pickled outcome; the system ends a process that takes longer."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
    start = time.process_time()
    answer, is_done = _perform(task, arguments)
    return pickle.dumps((answer, time.process_time() - start, is_done))


def _fork_main(sender: Connection, task: str, arguments: tuple[Any, ...], seconds: float) -> None:
    sender.send_bytes(_outcome_of(task, arguments, seconds))
    sender.close()


def _by_fork(task: str, arguments: tuple[Any, ...], seconds: float) -> _Outcome:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(
        target=_fork_main, args=(sender, task, arguments, seconds), daemon=True
    )
    with undisturbed():
        process.start()
        sender.close()
    try:
        if not receiver.poll(WAITING * seconds):
            return _Outcome(None, seconds, is_done=False)
        answer = receiver.recv_bytes()
    except EOFError:
        return _Outcome(None, seconds, is_done=False)
    finally:
        process.kill()
        process.join(_JOIN_SECONDS)
        receiver.close()
    return _Outcome(*pickle.loads(answer))


def _by_interpreter(task: str, arguments: tuple[Any, ...], seconds: float) -> _Outcome:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "symdp.derive.child"],
            input=pickle.dumps((task, arguments, seconds)),
            capture_output=True,
            timeout=WAITING * seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _Outcome(None, seconds, is_done=False)
    if done.returncode != 0:
        return _Outcome(None, seconds, is_done=False)
    return _Outcome(*pickle.loads(done.stdout))


if __name__ == "__main__":
    sys.stdout.buffer.write(_outcome_of(*pickle.loads(sys.stdin.buffer.read())))
