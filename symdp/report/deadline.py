"""Limits of time for what a page computes, so that one slow number does not hold up the rest."""

from __future__ import annotations

import math
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
        self.seconds = math.inf if seconds is None else seconds
        self._end = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._end - time.monotonic())

    @property
    def is_past(self) -> bool:
        """Whether the time is up."""
        return not self.left > 0


def within(deadline: Deadline, most: float = math.inf) -> AbstractContextManager[None]:
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
    return time_limit(deadline.left if math.isinf(deadline.left) else min(deadline.left, most))
