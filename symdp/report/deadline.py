"""Limits of time for what a page computes, so that one slow number does not hold up the rest."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

from symdp.interrupt import time_limit

MOST_SECONDS = 4.0  # for one answer, where there is a limit at all


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


def within(deadline: Deadline, most: float | None = None) -> AbstractContextManager[None]:
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
    >>> with within(Deadline(60.0), most=0.01):
    ...     time.sleep(5)
    Traceback (most recent call last):
    symdp.errors.AccuracyError: no answer within 0.01 s
    """
    left = deadline.left
    return time_limit(left if left is None or most is None else min(left, most))
