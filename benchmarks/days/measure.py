"""One question after the other: in a warm process, in a new one, and beside proofs and peers."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from multiprocessing.connection import Connection
from tempfile import TemporaryDirectory
from typing import Any

import symdp
from benchmarks import results
from benchmarks.days.questions import CURVE, QUESTIONS, Question, Step
from benchmarks.peers import contenders
from benchmarks.peers.answers import Answer, Contender, Outcome
from benchmarks.peers.programs import CHECKED
from benchmarks.peers.runner import Runner
from benchmarks.peers.worker import added_megabytes, forget_peak, guarded, median_seconds

BUDGET = 0.5  # seconds for the calls of one median
LIMIT, PROOF_LIMIT = 90.0, 20.0  # seconds for one answer, and for one proof
DIGITS = 10  # of a proof
KEPT_WITHIN = 1e-6  # of a kept proof, relative, or it is sought anew
_FRESH = "import sys, benchmarks.days.questions as days; days.named(sys.argv[1]).answer()"
NOTHING = (0.0,) * len(CURVE)  # an answer, where only its places matter

_moves = itertools.count(1)  # parameters seen once are never new again


@dataclass(frozen=True)
class Check:
    """A number that an answer has in it: δ or ε of some steps, to be compared with a proof."""

    steps: tuple[Step, ...]
    ask: str
    at: float
    value: float

    @property
    def key(self) -> str:
        """A text that is the same where the same is to be proved."""
        steps = [
            [s.mechanism, dict(s.values), dict(s.sampling), s.count, s.under] for s in self.steps
        ]
        text = json.dumps([steps, self.ask, self.at], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass
class Row:
    """What one question took, and how far off its answer was.

    Attributes
    ----------
    warm, cold
        Processor seconds in a warm process with parameters never seen, and of a new process.
    megabytes
        What the first call added to a warm process.
    peers
        Label -> processor seconds and relative error.
    results
        Rows of a file that `benchmarks.results` reads.
    """

    name: str
    warm: float | None = None
    cold: float | None = None
    megabytes: float | None = None
    error: float | None = None
    failure: str = ""
    peers: dict[str, tuple[float, float]] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)


def checks(question: Question, answer: tuple[float, ...]) -> list[Check]:
    """Return the numbers of an answer that are compared with proofs."""
    steps, (at, *more) = question.steps, question.at
    if question.ask == "curve":
        return [Check(steps, "delta", CURVE[k], answer[k]) for k in CHECKED[::2]]
    if question.ask == "calibrate":
        name = next(iter(steps[0].values))
        found = replace(steps[0], values={**steps[0].values, name: str(answer[0])})
        return [Check((found,), "delta", at, more[0])]
    return [Check(steps, "epsilon" if question.ask == "records" else question.ask, at, answer[0])]


def serve(pipe: Connection) -> None:
    """Answer the questions and prove the numbers that come through the pipe."""
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            asked = pipe.recv()
            work = _proved if isinstance(asked, Check) else _timed
            guarded(pipe, lambda work=work, asked=asked: work(pipe, asked))
            pipe.send(("done", None))


def _timed(pipe: Connection, question: Question) -> None:
    before = forget_peak()
    answer = question.answer()
    pipe.send(("answer", (answer, added_megabytes(before))))
    pipe.send(("seconds", median_seconds(lambda: question.answer(next(_moves)), BUDGET)))


def _proved(pipe: Connection, check: Check) -> None:
    steps = symdp.compose([(step.made(0), step.count) for step in check.steps])
    proof = steps.certify_epsilon if check.ask == "epsilon" else steps.certify
    found = proof(check.at, digits=DIGITS)
    pipe.send(("truth", (str(found.lower_decimal), str(found.upper_decimal))))


def fresh(name: str) -> float:
    """Return the processor seconds of a new process that answers a question.

    An installed package has its bytecode beside it; here another process writes it down before.
    """
    own = {"PYTHONPYCACHEPREFIX": _bytecode().name, "PYTHONDONTWRITEBYTECODE": ""}
    for _ in range(2):
        before = _of_children()
        command = [sys.executable, "-c", _FRESH, name]
        subprocess.run(command, check=True, env={**os.environ, **own})
    return _of_children() - before


@cache
def _bytecode() -> TemporaryDirectory[str]:
    return TemporaryDirectory()


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows(proofs: dict[str, tuple[str, str]], every: int = 1) -> Iterator[Row]:
    """Yield a row for every so manyth question; proofs that are known are not sought again.

    A proof that did not come within its time is kept as two empty texts.
    """
    with Runner(LIMIT, serve) as warm, Runner(PROOF_LIMIT, serve) as judge, Runner() as others:
        for question in QUESTIONS[::every]:
            row = _measured(question, warm, judge, proofs)
            job = question.job()
            if job is not None and row.error is not None:
                _ask_peers(row, question, others, proofs)
            yield row


def _measured(
    question: Question, warm: Runner, judge: Runner, proofs: dict[str, tuple[str, str]]
) -> Row:
    row = Row(question.name)
    answer: tuple[float, ...] | None = None
    for kind, told in warm.talk(question):
        if kind == "answer":
            answer, row.megabytes = told
        elif kind == "seconds":
            row.warm = told
        else:
            row.failure = str(told)
    if answer is None:
        return row
    row.cold = fresh(question.name)
    errors = []
    for check in checks(question, answer):
        kept = proofs.get(check.key)
        # one that was kept may be of a law that the question no longer means
        if kept is None or (_error(check.value, kept) or 0.0) > KEPT_WITHIN:
            told = dict(judge.talk(check)).get("truth", ("", ""))
            proofs[check.key] = told
        errors.append(_error(check.value, proofs[check.key]))
        made = Outcome(Answer(check.value, "exact"), megabytes=row.megabytes)
        row.results.append(_row(row, check, proofs, ("symdp", "", symdp.__version__), made))
    row.error = None if None in errors else max(e for e in errors if e is not None)
    return row


def _error(value: float, ends: tuple[str, str]) -> float | None:
    """Return the relative distance from the middle of proved ends, None where there are none."""
    if not all(ends):
        return None
    middle = 0.5 * (float(ends[0]) + float(ends[1]))
    return abs(value - middle) / abs(middle) if middle else abs(value)


def _peers() -> list[Contender]:
    return [c for c in contenders.defaults() if c.program != "symdp"]


def _ask_peers(
    row: Row, question: Question, others: Runner, proofs: dict[str, tuple[str, str]]
) -> None:
    """Time each peer that has the question; parameters never seen, as for symdp."""
    job = question.job()
    assert job is not None
    at: Any = list(CURVE) if question.ask == "curve" else question.at[0]
    for peer in contenders.installed(_peers()):
        told = others.ask(peer, job, question.ask, at, ("parameters",), BUDGET)
        if told.answer is None or "parameters" not in told.seconds:
            continue
        value = told.answer.value
        values = value if isinstance(value, tuple) else (value,)
        places = [CURVE[k] for k in CHECKED] if question.ask == "curve" else question.at
        told_at = dict(zip(places, values, strict=True))
        errors = [_error(told_at[c.at], proofs[c.key]) for c in checks(question, NOTHING)]
        if None not in errors:
            row.peers[peer.label] = told.seconds["parameters"], max(errors)
            program = *contenders.named(peer), contenders.version(peer)
            for check in checks(question, NOTHING):
                own = replace(told.answer, value=told_at[check.at], lower=None, upper=None)
                made = Outcome(own, seconds=told.seconds, megabytes=told.megabytes)
                row.results.append(_row(row, check, proofs, program, made))


def _row(
    row: Row,
    check: Check,
    proofs: dict[str, tuple[str, str]],
    program: tuple[str, str, str],
    made: Outcome,
) -> dict[str, Any]:
    """Return what a program said of a check; symdp's seconds are those of the whole question."""
    ends = proofs[check.key]
    truth = (Fraction(ends[0]), Fraction(ends[1])) if all(ends) else None
    asked = row.name, check.ask, check.at
    return results.row(asked, truth, program, made, made.seconds.get("parameters", row.warm))
