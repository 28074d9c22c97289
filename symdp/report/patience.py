"""Truth within a given time: child processes compute it and are stopped when the time is up.

A proved enclosure stands in for a truth that takes too long.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from tempfile import TemporaryFile
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any

from symdp.report.deadline import Deadline
from symdp.report.verification import Truth, certified, judge

if TYPE_CHECKING:
    from symdp.questions.composition import Composition

_CERTIFIED_DIGITS = 15
_FOR_CERTIFICATE = 0.5  # of the time for the truth, for a proved enclosure in its place


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
        sides: tuple[str, ...],
        seconds: float | None = None,
    ) -> None:
        self._pairs = {
            side: [(mechanism.pair(side), n) for mechanism, n in composition.steps]
            for side in sides
        }
        self._digits = digits
        self._deadline = Deadline(seconds)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = Lock()
        self._closed = False
        self._pool = ThreadPoolExecutor(max_workers=max(1, os.cpu_count() or 1))

    def ask(self, epsilon: float) -> Future[Truth]:
        """Ask for δ(ε); the answer comes later, and is without a value where time ran out."""
        return self._pool.submit(self._answer, epsilon)

    def _answer(self, epsilon: float) -> Truth:
        found = self._asked("truth", epsilon, self._digits, self._deadline)
        if found.value is not None or self._deadline.seconds is None:
            return found
        more = Deadline(_FOR_CERTIFICATE * self._deadline.seconds)
        proved = self._asked("certificate", epsilon, _CERTIFIED_DIGITS, more)
        if proved.value is None:
            also = f", {proved.reason}" if proved.reason.startswith("nor ") else ""
            return replace(found, reason=found.reason + also)
        return replace(proved, reason=f"{found.reason}: a certified value stands in")

    def _asked(self, what: str, epsilon: float, digits: int, deadline: Deadline) -> Truth:
        seconds = deadline.seconds or 0.0
        late = Truth(epsilon, None, digits, reason=f"not reached within {seconds:g} s")
        # A file for its input, since a pipe to a child that is stopped may be left half written.
        with TemporaryFile() as question:
            pickle.dump((what, self._pairs, epsilon, digits), question)
            question.seek(0)
            with self._lock:
                if self._closed or deadline.is_past:
                    return late
                child = subprocess.Popen(
                    [sys.executable, "-m", "symdp.report.patience"],
                    stdin=question,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
                self._running.add(child)
        try:
            with child:
                try:
                    answer, _ = child.communicate(timeout=deadline.left)
                except subprocess.TimeoutExpired:
                    child.kill()
                    return late
        finally:
            with self._lock:
                self._running.discard(child)
        if child.returncode != 0:
            return Truth(epsilon, None, digits, reason="its computation broke off")
        found: Truth = pickle.loads(answer)
        return found

    def __enter__(self) -> Judges:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._closed = True
            for child in self._running:
                child.kill()
        self._pool.shutdown(cancel_futures=True)


def _main() -> None:
    question: Any = pickle.loads(sys.stdin.buffer.read())
    answer = {"truth": judge, "certificate": certified}[question[0]]
    sys.stdout.buffer.write(pickle.dumps(answer(*question[1:])))


if __name__ == "__main__":
    _main()
