"""A warm process that answers questions one by one, timed, within a limit of memory."""

from __future__ import annotations

import ctypes
import gc
import itertools
import logging
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import symdp
from benchmarks.peers.answers import Answer, Contender, NotCoveredError, Question
from benchmarks.peers.jobs import Job
from benchmarks.peers.programs import PROGRAMS

MEMORY = 4 << 30  # bytes of one process
MOST_CALLS, LONG = 15, 2.0  # calls of a median; seconds of a call that is not repeated
LONGEST_TEXT = 110
NEAR = 1e-3  # how far the next ε lies from the last; of δ, and of an ε below 1, relatively


@dataclass(frozen=True)
class Request:
    """Ask one contender about one job.

    Attributes
    ----------
    situations
        What to time: "first" (all of it, at an ε beside the job's), "parameters" (all of it with
        parameters never seen), "composition" (a new count of a step that is kept), "next" (an ε or
        δ beside the last one, of a composition that is kept), "same" (the same ε again).
    budget
        Seconds for the calls of one median.
    """

    contender: Contender
    job: Job
    question: Question
    at: Any
    situations: tuple[str, ...]
    budget: float


@dataclass(frozen=True)
class TruthRequest:
    """Ask for proved decimals of δ at ε, or of ε at δ."""

    job: Job
    question: Question
    at: float
    digits: int
    direction: str = "remove"


_moves = itertools.count(1)  # of the whole process: parameters seen once are never new again


def serve(pipe: Connection) -> None:
    """Answer what comes through the pipe until it closes."""
    logging.getLogger("absl").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            request = pipe.recv()
            if isinstance(request, TruthRequest):
                guarded(pipe, lambda r=request: pipe.send(("truth", _proved(r))))
            else:
                guarded(pipe, lambda r=request: _measure(pipe, r))
            pipe.send(("done", None))


def guarded(pipe: Connection, work: Callable[[], None]) -> None:
    """Run, and send the words of what went wrong; any error of a peer is an outcome here."""
    try:
        work()
    except MemoryError:
        pipe.send(("memory", f"more than {MEMORY >> 30} GB of memory"))
    except NotCoveredError as error:
        pipe.send(("failed", str(error)))
    except Exception as error:
        text = " ".join(str(error).split())
        short = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
        pipe.send(("failed", f"{type(error).__name__}: {short}".replace("|", "/")))


def _proved(request: TruthRequest) -> tuple[str, str]:
    steps = symdp.compose(request.job.mechanism(), request.job.count)
    ask = steps.certify_epsilon if request.question == "epsilon" else steps.certify
    found = ask(request.at, digits=request.digits, direction=request.direction)
    if found.digits < request.digits:  # few steps: what two evaluations of 30 digits agree on
        exact = getattr(steps, request.question)(
            request.at, method="truth", direction=request.direction
        )
        return repr(exact.lower), repr(exact.upper)
    return found.lower_decimal, found.upper_decimal


def _measure(pipe: Connection, request: Request) -> None:
    contender, job = request.contender, request.job
    program = PROGRAMS[contender.program](*contender.setting)
    ask = getattr(program, request.question)
    before = forget_peak()
    start = time.process_time()
    step = program.step(job)
    composed = program.composed(step, job.count)
    answer: Answer = ask(composed, request.at)
    first = time.process_time() - start
    pipe.send(("answer", (answer, first, added_megabytes(before))))
    near = _places(request.at)
    counts = itertools.count(1)
    calls: dict[str, Callable[[], object]] = {
        "first": lambda: ask(program.composed(program.step(job), job.count), next(near)),
        "parameters": lambda: ask(
            program.composed(program.step(job.moved(next(_moves))), job.count), request.at
        ),
        "composition": lambda: ask(program.composed(step, job.count - next(counts)), request.at),
        "next": lambda: ask(composed, next(near)),
        "same": lambda: ask(composed, request.at),
    }
    for situation in request.situations:
        if situation == "first" and first > LONG:
            pipe.send(("seconds", (situation, first)))
        else:
            taken = median_seconds(calls[situation], request.budget)
            pipe.send(("seconds", (situation, taken)))


def median_seconds(call: Callable[[], object], budget: float) -> float:
    """Return the median CPU time of up to 15 calls, fewer where they take longer than the budget.

    CPU time of one thread says the same on a machine that others use as on one that is idle.
    """
    seconds: list[float] = []
    while len(seconds) < MOST_CALLS and (not seconds or sum(seconds) < budget):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def _places(at: Any) -> Iterator[Any]:
    """Return values beside the one given, each a little further away."""
    for k in itertools.count(1):
        yield [_beside(v, k) for v in at] if isinstance(at, Sequence) else _beside(at, k)


def _beside(value: float, place: int) -> float:
    return value + NEAR * place * min(value, 1.0)


def forget_peak() -> float | None:
    """Give back what is free, forget the peak, and return what the process holds, in MB."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _megabytes("VmRSS:")


def added_megabytes(before: float | None) -> float | None:
    peak = _megabytes("VmHWM:")
    return None if peak is None or before is None else max(peak - before, 0.0)


def _megabytes(entry: str) -> float | None:
    """Return an entry of what Linux tells a process about itself, None elsewhere."""
    if not sys.platform.startswith("linux"):
        return None
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(entry):
            return int(line.split()[1]) / 1024.0
    return None
