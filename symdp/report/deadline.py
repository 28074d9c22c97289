"""Limits of time for what a page computes, so that one slow number does not hold up the rest."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from symdp.errors import AccuracyError

MOST_SECONDS = 4.0  # for one answer, where there is a limit at all
_LEAST = 1e-3  # seconds; a timer set to zero would never ring


class Deadline:
    """A number of seconds from now; None is for ever.

    >>> Deadline(None).is_past, Deadline(0.0).is_past
    (False, True)
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float | None:
        """Seconds that are left, None for ever."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    @property
    def is_past(self) -> bool:
        """Whether the time is up."""
        return self.left is not None and not self.left > 0


class _TimeUpError(Exception):
    """Raised where the time is up; no accountant takes it for a failure that it can work round."""


@contextmanager
def within(deadline: Deadline, most: float | None = None) -> Iterator[None]:
    """Interrupt what runs inside when the time is up, as far as the system has timers for that.

    Parameters
    ----------
    deadline
        The end of the time.
    most
        Seconds that this may take even where the deadline is later, if there is a deadline.

    Raises
    ------
    AccuracyError
        When the time is up.

    Examples
    --------
    >>> with within(Deadline(0.01)):
    ...     time.sleep(5)
    Traceback (most recent call last):
    symdp.errors.AccuracyError: no answer within 0.01 s
    """
    left = deadline.left
    has_timers = hasattr(signal, "setitimer")
    if left is None or not has_timers or threading.current_thread() is not threading.main_thread():
        yield
        return
    seconds = max(_LEAST, left if most is None else min(left, most))

    def stop(*_: Any) -> None:
        raise _TimeUpError

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _TimeUpError:
        raise AccuracyError(f"no answer within {seconds:.2g} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
