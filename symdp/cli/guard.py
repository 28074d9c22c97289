"""A last limit of time: a command's work in a process that can be stopped, whatever it is at."""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import threading
import time
from collections.abc import Callable

from symdp.errors import AccuracyError, SymdpError
from symdp.interrupt import WAITING

_PIECE = 1 << 16


def guarded(work: Callable[[], str], seconds: float) -> str:
    """Return the text that the work returns, from a fork that is killed when its time is up.

    Work with limits of its own ends long before; this one also ends what listens to no signal, as
    one huge power of a whole number.  Where there is no fork, the work runs here without it.

    Parameters
    ----------
    work : what to do; prints nothing
    seconds : that the fork itself works; it may last ten times as long on a busy machine

    Raises
    ------
    SymdpError
        What the work raises.
    AccuracyError
        When its time is up.

    Examples
    --------
    >>> guarded(lambda: "done", 60.0)
    'done'
    """
    if not hasattr(os, "fork") or threading.active_count() > 1:
        return work()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _perform(work, writing, seconds)
    os.close(writing)
    try:
        answer = _received(reading, time.monotonic() + WAITING * seconds)
    finally:
        os.close(reading)
        status = end_group(child)
    if answer is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF):
        raise AccuracyError(
            f"not done within {seconds:g} s: give the parameters values with fewer digits, write "
            "the density more simply, or raise --time-limit"
        )
    if not answer:
        return work()  # it failed in a way that nobody foresaw: once more, for the error's sake
    found = pickle.loads(answer)
    if isinstance(found, SymdpError):
        raise found
    return str(found)


def _perform(work: Callable[[], str], writing: int, seconds: float) -> None:
    """The child's life: it never returns."""
    os.setpgid(0, 0)  # so that it ends together with the processes that it starts
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    found: str | SymdpError
    try:
        try:
            found = work()
        except SymdpError as error:
            found = error
        data = pickle.dumps(found)
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)


def _received(reading: int, end: float) -> bytes | None:
    """All that the child writes, None where it is not done at the end."""
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return None
        part = os.read(reading, _PIECE)
        if not part:
            return b"".join(parts)
        parts.append(part)


def end_group(child: int) -> int:
    """End a child and the processes of its group, and return the status that it ended with."""
    for kill in (os.killpg, os.kill):  # its group may not exist yet
        try:
            kill(child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    return os.waitpid(child, 0)[1]
