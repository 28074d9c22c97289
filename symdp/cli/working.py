"""What a command is at, on a terminal, once it takes longer than two seconds.

A fork of the process draws it, not a thread: exact arithmetic in C holds the interpreter's lock
for seconds, and the drawing must not stand still then.  Rich is imported by the fork, and only when
there is something to draw, so that a quick question pays a fork and nothing else.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

PATIENCE = 2.0  # seconds before anything is drawn
_REFRESH = 0.1  # seconds between two drawings
_PIECE = 1 << 16
_LONGEST = 400  # characters of a message; a pipe takes that much whole or not at all
_IGNORED = ("SIGINT", "SIGTERM", "SIGHUP")  # the fork ends when the process does, and tidies up


class Work:
    """What is being done; tell it what comes next.

    >>> Work(None, "adding").say("quadrature", 3, 10)
    """

    def __init__(self, pipe: int | None, what: str) -> None:
        self._pipe, self.what = pipe, what

    def say(self, what: str, done: int | None = None, total: int | None = None) -> None:
        """Say what comes next, and how much of how much is done, where that is known."""
        if self._pipe is None:
            return
        line = json.dumps({"what": what[:_LONGEST], "done": done, "total": total}) + "\n"
        with suppress(OSError):  # a terminal that is held back never holds back the work
            os.write(self._pipe, line.encode())


@contextmanager
def working(what: str, patience: float | None = None) -> Iterator[Work]:
    """Show on standard error what is being done, from two seconds on until it is done.

    Nothing is shown where standard error is no terminal, and nothing is left on the screen.

    Parameters
    ----------
    what
        The work in a few words.
    patience
        Seconds before anything is shown; `PATIENCE` if left out.

    Examples
    --------
    >>> with working("adding") as work:
    ...     work.say("adding more", 1, 2)
    ...     1 + 1
    2
    """
    wait = PATIENCE if patience is None else patience
    if not (sys.stderr.isatty() and hasattr(os, "fork")) or threading.active_count() > 1:
        yield Work(None, what)
        return
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    reading, writing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(writing)
        _draw(reading, parent, what, wait)
    os.close(reading)
    os.set_blocking(writing, False)
    try:
        yield Work(writing, what)
    finally:
        with suppress(OSError):
            os.write(writing, b"\n")  # the end; its closing alone would wait for other forks
        os.close(writing)
        os.waitpid(child, 0)


def _draw(reading: int, parent: int, what: str, wait: float) -> None:
    """The fork's life: it never returns."""
    try:
        for name in _IGNORED:
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        _show(_Messages(reading, parent, what), wait)
    finally:
        os._exit(0)


class _Messages:
    """The last message of the process, and whether it has ended."""

    def __init__(self, reading: int, parent: int, what: str) -> None:
        self._reading, self._parent = reading, parent
        self._rest = b""
        self.start = time.monotonic()
        self.last: dict[str, Any] = {"what": what, "done": None, "total": None}

    def wait(self, seconds: float) -> bool:
        """Read for so long; return whether the process goes on with its work."""
        end = time.monotonic() + seconds
        while True:
            left = max(0.0, end - time.monotonic())
            ready, _, _ = select.select([self._reading], [], [], min(left, _REFRESH))
            if ready and not self._read():
                return False
            if os.getppid() != self._parent:
                return False
            if time.monotonic() >= end:
                return True

    def _read(self) -> bool:
        part = os.read(self._reading, _PIECE)
        *lines, self._rest = (self._rest + part).split(b"\n")
        if not part or b"" in lines:
            return False
        if lines:
            self.last = json.loads(lines[-1])
        return True


def _show(messages: _Messages, wait: float) -> None:
    if not messages.wait(wait):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from symdp.cli.display import one_line

    class BarIfCounted(BarColumn):
        def render(self, task: Any) -> Any:
            return super().render(task) if task.total is not None else ""

    screen = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarIfCounted(),
        TextColumn("{task.fields[counted]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True, highlight=False, emoji=False),
        auto_refresh=False,
        transient=True,
        get_time=time.monotonic,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = screen.add_task("", total=None, counted="")
    screen.tasks[0].start_time = messages.start

    def update() -> None:
        done, total = messages.last["done"], messages.last["total"]
        counted = "" if total is None else f"{done} of {total}"
        what = one_line(messages.last["what"])
        screen.update(task, description=what, total=total, completed=done or 0, counted=counted)

    update()
    with screen:
        while messages.wait(_REFRESH):
            update()
            screen.refresh()
