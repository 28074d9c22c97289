"""What a command is at, on a terminal, once it takes longer than two seconds.

The process that supervises a command draws it, not a thread: exact arithmetic in C holds the
interpreter's lock for seconds, and the drawing must not stand still then.  Rich is imported there,
and only when there is something to draw.
"""

from __future__ import annotations

import json
import math
import select
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

PATIENCE = 2.0  # seconds before anything is drawn
MESSAGE = 2048  # bytes of a message: what every system sends at once
_REFRESH = 0.1  # seconds between two drawings
_LONGEST = 400  # characters of what is said, of up to four bytes
_FOR_CLEARING = 5.0  # seconds to wait for a clean terminal, if the supervisor has gone

_supervisor: socket.socket | None = None


def report_to(supervisor: socket.socket | None) -> None:
    """Let `tell` speak to the process at the other end of a socket of datagrams."""
    global _supervisor  # noqa: PLW0603
    _supervisor = supervisor


def tell(flags: int = 0, **message: Any) -> None:
    """Tell the process that supervises this one, if any."""
    if _supervisor is not None:
        with suppress(OSError):
            text = json.dumps(message, ensure_ascii=False)
            _supervisor.send(text.encode(errors="replace"), flags)


def is_supervised() -> bool:
    """Return whether another process receives what this one reports."""
    return _supervisor is not None


class Work:
    """What is being done; tell it what comes next."""

    def __init__(self, what: str, *, is_shown: bool = False) -> None:
        self.what = what
        self._is_shown = is_shown

    def say(self, what: str, done: int | None = None, total: int | None = None) -> None:
        """Say what comes next, and how much of how much is done, where that is known."""
        if self._is_shown:  # a terminal that is held back never holds back the work
            tell(socket.MSG_DONTWAIT, what=what[:_LONGEST], done=done, total=total)


@contextmanager
def working(what: str, patience: float | None = None) -> Iterator[Work]:
    """Show on standard error what is being done, from two seconds on until it is done.

    Nothing is shown where standard error is no terminal or nobody supervises this process, and
    nothing is left on the screen.
    """
    if _supervisor is None or not sys.stderr.isatty():
        yield Work(what)
        return
    tell(what=what[:_LONGEST], patience=PATIENCE if patience is None else patience)
    try:
        yield Work(what, is_shown=True)
    finally:
        tell(is_done=True)
        if select.select([_supervisor], [], [], _FOR_CLEARING)[0]:
            _supervisor.recv(1)


class Screen:
    """What a command says that it is at, drawn by the process that supervises it."""

    def __init__(self) -> None:
        self._next = math.inf
        self._start = 0.0
        self._last: tuple[str, int | None, int | None] = "", None, None
        self._drawn: Any = None

    @property
    def wait(self) -> float:
        """Seconds until the next drawing, ∞ where nothing is to be drawn."""
        return max(0.0, self._next - time.monotonic())

    def update(
        self,
        what: str,
        done: int | None = None,
        total: int | None = None,
        patience: float | None = None,
    ) -> None:
        """Take what is being done, and how much of how much; draw it from `patience` on."""
        self._last = what, done, total
        if patience is not None:
            self._start = time.monotonic()
            self._next = self._start + patience

    def draw(self) -> None:
        """Draw what was reported last, where it is time to."""
        if self.wait > 0:
            return
        from symdp.cli.display import one_line

        if self._drawn is None:
            self._drawn = _progress()
            self._drawn.add_task("", total=None, counted="")  # it is number 0
            self._drawn.tasks[0].start_time = self._start
            self._drawn.start()
        what, done, total = self._last
        counted = "" if total is None else f"{done} of {total}"
        line = one_line(what)
        self._drawn.update(0, description=line, total=total, completed=done or 0, counted=counted)
        self._drawn.refresh()
        self._next = time.monotonic() + _REFRESH

    def clear(self) -> None:
        """Take away what was drawn, and draw no more."""
        self._next = math.inf
        drawn = self._drawn
        self._drawn = None
        if drawn is not None:
            drawn.stop()


def _progress() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    class BarIfCounted(BarColumn):
        def render(self, task: Any) -> Any:
            if task.total is not None:
                return super().render(task)
            return ""

    return Progress(
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
