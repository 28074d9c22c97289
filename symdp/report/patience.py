"""Truth within a given time: child processes compute it and are stopped when the time is up.

A proved enclosure stands in for a truth that takes too long.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from symdp.interrupt import limit
from symdp.report.deadline import Deadline
from symdp.report.verification import Truth, certified, judge

if TYPE_CHECKING:
    from symdp.arguments import Direction
    from symdp.model.pair import Pair
    from symdp.questions.composition import Composition

_CERTIFIED_DIGITS = 15
_FOR_CERTIFICATE = 0.5  # of the time for the truth, for a proved enclosure in its place
_GRACE = 2.0  # seconds beyond both for what no signal ends in a child
_MOST_CHILDREN = 8


class Judges:
    """Child processes that compute truth, as many at once as there are processors.

    Parameters
    ----------
    composition, digits
        Of the truth.
    sides
        The directions that must be looked at.
    seconds
        The time for all questions together, from now; None for as long as it takes.
    """

    def __init__(
        self,
        composition: Composition,
        digits: int,
        sides: tuple[Direction, ...],
        seconds: float | None = None,
    ) -> None:
        self._pairs = {
            side: [(mechanism.pair(side), n) for mechanism, n in composition.steps]
            for side in sides
        }
        self._digits = digits
        self._deadline = Deadline(seconds)
        children = min(os.cpu_count() or 1, _MOST_CHILDREN)
        self._pool = multiprocessing.Pool(children, _leave_interrupts_to_the_parent)

    def ask(self, epsilon: float) -> Callable[[], Truth]:
        """Ask for δ(ε); call what is returned to wait for it: no value where time ran out."""
        question = self._pairs, epsilon, self._digits, self._deadline
        asked = self._pool.apply_async(_answer, question)

        def answer() -> Truth:
            left, seconds = self._deadline.left, self._deadline.seconds or 0.0
            try:
                most = None if left is None else left + _FOR_CERTIFICATE * seconds + _GRACE
                return asked.get(most)
            except multiprocessing.TimeoutError:
                return _late(epsilon, self._digits, seconds)
            except MemoryError:
                return Truth(epsilon, None, self._digits, reason="its computation broke off")

        return answer

    def __enter__(self) -> Judges:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pool.terminate()


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _late(epsilon: float, digits: int, seconds: float) -> Truth:
    return Truth(epsilon, None, digits, reason=f"not reached within {seconds:g} s")


def _answer(
    pairs: Mapping[Direction, Sequence[tuple[Pair, int]]],
    epsilon: float,
    digits: int,
    deadline: Deadline,
) -> Truth:
    """What a child does: the truth until the deadline, then a proved enclosure."""
    if deadline.left is None or deadline.seconds is None:
        return judge(pairs, epsilon, digits)
    found = _late(epsilon, digits, deadline.seconds)
    with limit(deadline.left):
        found = judge(pairs, epsilon, digits)
    if found.value is not None:
        return found
    proved = Truth(epsilon, None, digits)
    with limit(_FOR_CERTIFICATE * deadline.seconds):
        proved = certified(pairs, epsilon, _CERTIFIED_DIGITS)
    if proved.value is None:
        return replace(found, reason=", ".join(filter(None, (found.reason, proved.reason))))
    return replace(proved, reason=f"{found.reason}: a certified value stands in")
