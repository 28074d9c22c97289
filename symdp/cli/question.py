"""The commands delta and epsilon once their words are read: one question, answered and printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from symdp.cli import job as words
from symdp.cli.display import print_answer
from symdp.cli.job import Job
from symdp.cli.known import Composed
from symdp.cli.patience import in_time
from symdp.cli.working import working

if TYPE_CHECKING:
    from symdp.questions.composition import Composition
    from symdp.questions.guarantee import Guarantee


def ask_delta(given: Mapping[str, Any]) -> None:
    """Print δ at the ε among the words given, which are named as the options of the command."""
    at = words.real(given["epsilon"], "--epsilon")
    side, name = words.direction(given["direction"]), words.method(given["method"])
    _answer(
        f"δ({given['epsilon']})",
        given,
        lambda steps: steps.delta(at, name, side),
        lambda steps: steps.delta(at, "moments", side),
    )


def ask_epsilon(given: Mapping[str, Any]) -> None:
    """Print ε at the δ among the words given."""
    at = words.delta(given["delta"])
    side, name = words.direction(given["direction"]), words.method(given["method"])
    _answer(
        f"ε(δ = {given['delta']})",
        given,
        lambda steps: steps.epsilon(at, name, side),
        lambda steps: steps.epsilon(at, "moments", side),
    )


def _answer(
    what: str,
    given: Mapping[str, Any],
    ask: Callable[[Composition], Guarantee],
    instead: Callable[[Composition], Guarantee],
) -> None:
    job = Job.of(given)
    composed = Composed(job)
    with working(f"{what} of {job.subject}"):
        answer = in_time(given["time_limit"], composed, ask, instead)
    print_answer(answer, given["as_json"], explain=given["explain"])
    composed.remember()
