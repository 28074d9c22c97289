"""Truth within a given time: child processes compute it and are stopped when the time is up."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from tempfile import TemporaryFile
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any

from symdp.report.deadline import Deadline
from symdp.report.verification import Truth, judge

if TYPE_CHECKING:
    from symdp.composition import Composition


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
        seconds = self._deadline.seconds or 0.0
        late = Truth(epsilon, None, self._digits, reason=f"not reached within {seconds:g} s")
        # A file for its input, since a pipe to a child that is stopped may be left half written.
        with TemporaryFile() as question:
            pickle.dump((self._pairs, epsilon, self._digits), question)
            question.seek(0)
            with self._lock:
                if self._closed or self._deadline.is_past:
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
                    answer, _ = child.communicate(timeout=self._deadline.left)
                except subprocess.TimeoutExpired:
                    child.kill()
                    return late
        finally:
            with self._lock:
                self._running.discard(child)
        if child.returncode != 0:
            return Truth(epsilon, None, self._digits, reason="its computation broke off")
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
    sys.stdout.buffer.write(pickle.dumps(judge(*question)))


if __name__ == "__main__":
    _main()
