"""Threads take turns: one question of a process is answered at a time.

The working precisions of Arb and mpmath belong to the process, not to a thread: a thread that sets
one changes the digits of all others. What a law keeps for further questions needs no lock then.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_turn = [threading.RLock()]


def _renew() -> None:
    """Take a new lock in a forked process: whoever held the old one is not there."""
    _turn[0] = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def in_turn(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that waits until no other thread is in one of its like.

    It must wait for no work that is given to other threads. Locks are taken after the turn.
    """

    @wraps(function)
    def asked(*arguments: P.args, **options: P.kwargs) -> R:
        with _turn[0]:
            return function(*arguments, **options)

    return asked


@contextmanager
def if_ours() -> Iterator[bool]:
    """Tell whether no other thread has its turn; none takes it inside then."""
    turn = _turn[0]
    ours = turn.acquire(blocking=False)
    try:
        yield ours
    finally:
        if ours:
            turn.release()
