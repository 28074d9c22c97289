"""A command in a child process, which is ended when it must be."""

from __future__ import annotations

import json
import math
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from symdp.cli.working import MESSAGE, Screen, is_supervised, report_to, tell
from symdp.interrupt import WAITING

GRACE = 0.1  # of a limit, after it: for what the timer reaches, and for what is told then
LEAST_GRACE = 2.0  # seconds, of a short one
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
_AFTER_INTERRUPT = 2.0  # seconds to end in good order after an interrupt
_DIES_WITH_PARENT = 1  # Linux's PR_SET_PDEATHSIG
_LARGEST_DATA = 6 << 30  # bytes a command may hold; what is estimated beforehand stays far below


def supervised(command: Callable[[], int], complain: Callable[[str, int], int]) -> int:
    """Return the exit code of a command that runs in a child with the same standard streams.

    The child says with `must_end_in` when its own timer rings; where nothing in it listens, as
    inside one long call of a library in C, it is ended a little later.  Interrupts are passed on,
    and an end by a signal (memory that a library did not get, say) becomes a sentence.  Without
    forks the command runs here.
    """
    if not hasattr(os, "fork") or threading.active_count() > 1:
        return command()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        ours.close()
        _obey(command, theirs, parent)
    with ours, theirs:
        overseer = _Overseer(child, ours, theirs)
        with overseer.listening():
            code = overseer.wait()
    if code is None or (code == -signal.SIGPROF and overseer.limit < math.inf):
        return complain(
            f"not done within {overseer.limit:g} s, nor can it be interrupted where it is: ask a "
            "simpler question, another --method, or raise --time-limit",
            1,
        )
    if code >= 0:
        return code
    if code == -signal.SIGINT:
        return INTERRUPTED
    if code == -signal.SIGPROF:
        return complain(
            "not done within the time for it: give the parameters values with fewer digits, write "
            "the density more simply, or raise --time-limit",
            1,
        )
    return complain(
        f"the computation was ended by {signal.Signals(-code).name}, as where memory runs out: "
        "ask a simpler question, or another --method such as moments",
        1,
    )


def grace(seconds: float) -> float:
    """Return the seconds after a limit in which a process tells what it knows and ends."""
    return max(LEAST_GRACE, GRACE * seconds)


def must_end_in(seconds: float) -> None:
    """Tell the process that supervises this one, if any, when the own timer rings; ∞ for never.

    Seconds are of work: the system ends this process where its timer does not, and the supervisor
    a process that only waits.
    """
    tell(limit=seconds)
    end_after_work(0.0 if math.isinf(seconds) else seconds + grace(seconds))


def end_after_work(seconds: float) -> None:
    """Let the system end this process, if supervised, after so many seconds of its work; 0: never.

    Work with limits of its own ends long before; this also ends what runs no Python for long, as
    one huge power of a whole number.
    """
    if is_supervised():
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _obey(command: Callable[[], int], supervisor: socket.socket, parent: int) -> None:
    """The child's life: it never returns."""
    report_to(supervisor)
    code = 1
    try:
        os.setpgid(0, 0)  # an interrupt comes once, from the parent; and all end together
        _die_with(parent)
        _bound_memory()
        code = command()
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _die_with(parent: int) -> None:
    """End with the parent, even where that is killed; only Linux offers it."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _bound_memory() -> None:
    """Let allocations fail long before the machine does."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        if most == resource.RLIM_INFINITY or most > _LARGEST_DATA:
            resource.setrlimit(resource.RLIMIT_DATA, (_LARGEST_DATA, most))


class _Overseer:
    """What the parent knows of its child."""

    def __init__(self, child: int, ours: socket.socket, theirs: socket.socket) -> None:
        self._child = child
        self._ours = ours
        self._theirs = theirs
        self._end_process = math.inf
        self._screen = Screen()
        self._is_interrupted = False
        self.limit = math.inf

    def wait(self) -> int | None:
        """Return how the child ended, less than 0 for a signal; None where it was made to."""
        while True:
            ended, status = os.waitpid(self._child, os.WNOHANG)
            if ended:
                self._screen.clear()
                if os.WIFSIGNALED(status):
                    _end_process(os.killpg, self._child)  # what it started
                return os.waitstatus_to_exitcode(status)
            left = self._end_process - time.monotonic()
            if left <= 0:
                self._end_child()
                if self._is_interrupted:
                    return -signal.SIGINT
                return None
            self._screen.draw()
            wait = min(left, self._screen.wait, 3600.0)
            if select.select([self._ours], [], [], wait)[0]:
                self._received(self._ours.recv(MESSAGE))

    def _received(self, message: bytes) -> None:
        """Take a limit of time, what is being done, or that it is done, which is answered."""
        report = json.loads(message or b"{}")
        if "limit" in report:
            self.limit = report["limit"]
            self._end_process = time.monotonic() + WAITING * (self.limit + grace(self.limit))
        elif "what" in report:
            self._screen.update(**report)
        elif report:
            self._screen.clear()
            with suppress(OSError):
                self._ours.send(b"!", socket.MSG_DONTWAIT)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Pass interrupts on to the child, end it with this process, and notice its end."""
        wanted = {
            signal.SIGCHLD: self._wake,
            signal.SIGINT: self._pass_on,
            signal.SIGTERM: self._end_both,
            signal.SIGHUP: self._end_both,
        }
        before = {
            number: signal.signal(number, handler)
            for number, handler in wanted.items()
            if signal.getsignal(number) != signal.SIG_IGN or number == signal.SIGCHLD
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _end_child(self) -> None:
        """End the child and the processes of its group."""
        self._screen.clear()
        for kill in (os.killpg, os.kill):  # its group may not exist yet
            _end_process(kill, self._child)
        os.waitpid(self._child, 0)

    def _wake(self, number: int, frame: FrameType | None) -> None:
        with suppress(OSError):  # who has messages waiting is awake
            self._theirs.send(b"", socket.MSG_DONTWAIT)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._is_interrupted = True
        self._end_process = min(self._end_process, time.monotonic() + _AFTER_INTERRUPT)
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self._child, number)
        self._wake(number, frame)

    def _end_both(self, number: int, frame: FrameType | None) -> None:
        self._end_child()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _end_process(kill: Callable[[int, int], None], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        kill(number, signal.SIGKILL)
