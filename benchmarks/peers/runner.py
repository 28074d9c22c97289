"""Keep one worker, ask it within a limit of time, and start another when it does not answer."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from fractions import Fraction
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType

from benchmarks.peers.answers import Contender, Outcome, Question
from benchmarks.peers.jobs import Job
from benchmarks.peers.worker import Request, TruthRequest, serve

LIMIT = 30.0  # seconds for one call
LOOK, WAIT = 0.5, 600.0  # seconds between looks at the worker; how long others may hold it up
BUDGET = 1.0  # seconds for the calls of one median
DIGITS = 16
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Runner:
    """A worker process behind a pipe; use it as a context manager."""

    def __init__(self, limit: float = LIMIT, serving: Callable[[Connection], None] = serve) -> None:
        self.limit, self._serving = limit, serving
        for name in ONE_THREAD:
            os.environ[name] = "1"
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def __enter__(self) -> Runner:
        """Return itself, with its process running."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self._stop()

    def ask(
        self,
        contender: Contender,
        job: Job,
        question: Question,
        at: object,
        situations: tuple[str, ...] = ("first",),
        budget: float = BUDGET,
    ) -> Outcome:
        """Return what came of one question; a call past the limit is a failure in words."""
        outcome = Outcome()
        for kind, found in self.talk(Request(contender, job, question, at, situations, budget)):
            if kind == "answer":
                outcome.answer, first, outcome.megabytes = found
                outcome.seconds["once"] = first
            elif kind == "seconds":
                outcome.seconds[found[0]] = found[1]
            elif kind in {"time", "memory"} and outcome.answer is None:
                outcome.failure, outcome.out_of_reach = str(found), True
            elif outcome.answer is None:
                outcome.failure = str(found)
        return outcome

    def truth(
        self, job: Job, question: Question, at: float, direction: str = "remove"
    ) -> tuple[Fraction, Fraction] | None:
        """Return proved ends of δ or ε, None where no proof was found."""
        for kind, found in self.talk(TruthRequest(job, question, at, DIGITS, direction)):
            if kind == "truth":
                return Fraction(found[0]), Fraction(found[1])
        return None

    def talk(self, request: object) -> list[tuple[str, object]]:
        """Return the worker's messages; the clock starts anew with each of them."""
        self._pipe.send(request)
        messages: list[tuple[str, object]] = []
        begin, end = self._used(), time.monotonic() + self.limit
        while True:
            if not self._pipe.poll(min(self.limit, LOOK)):
                # On a machine that others use, what counts is what the process has computed.
                late = time.monotonic() >= end
                if late and (self._used() - begin >= self.limit or time.monotonic() >= end + WAIT):
                    break
                continue
            try:
                message = self._pipe.recv()
            except EOFError:
                self._restart()
                return [*messages, ("memory", "the process was ended, for want of memory or worse")]
            if message[0] == "done":
                return messages
            messages.append(message)
            begin, end = self._used(), time.monotonic() + self.limit
        self._restart()
        return [*messages, ("time", f"over {self.limit:g} s")]

    def _used(self) -> float:
        """Return the CPU seconds of the worker, or the time where no file tells them."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return time.monotonic()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _start(self) -> None:
        self._pipe, other = self._context.Pipe()
        self._process = self._context.Process(target=self._serving, args=(other,), daemon=True)
        self._process.start()
        other.close()

    def _stop(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.join()

    def _restart(self) -> None:
        self._stop()
        self._start()
