"""The commands delta and epsilon, and how plain words of theirs are read without loading Typer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


WANTED = {"delta": "epsilon", "epsilon": "delta"}  # the option that each command needs
OPTIONS = {
    "-n": "count", "--count": "count", "--method": "method", "--sampling": "sampling",
    "--rate": "rate", "--batch-size": "batch", "--records": "records", "--group": "group",
    "--steps": "steps", "--participations": "participations", "--relation": "relation",
    "--direction": "direction", "--composition": "composition", "--time-limit": "time_limit",
}  # fmt: skip
FLAGS = {"--explain": "explain", "--json": "as_json"}
USUAL = {"method": "contour", "direction": "both", "time_limit": "60"}  # where not given


def plain_words(command: str, words: Sequence[str]) -> dict[str, Any] | None:
    """Return what the words of delta or epsilon say, by the names that the options have there.

    None is returned for anything unusual, which Typer then reads, or explains: options that are
    unknown, given twice or joined to their value by "=", or one that is missing.

    Examples
    --------
    >>> plain_words("delta", ["gaussian", "sigma=2", "-n", "5", "--epsilon", "1"])["count"]
    '5'
    >>> plain_words("delta", ["gaussian", "--epsilom", "1"]) is None
    True
    """
    wanted = WANTED[command]
    options = OPTIONS | {f"--{wanted}": wanted}
    given: dict[str, Any] = {}
    others: list[str] = []
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            others.append(word)
            continue
        name = options.get(word) or FLAGS.get(word)
        value: Any = True if word in FLAGS else next(left, None)
        if name is None or value is None or name in given:
            return None
        given[name] = value
    if wanted not in given:
        return None
    absent = dict.fromkeys(OPTIONS.values()) | dict.fromkeys(FLAGS.values(), False)
    return (
        absent
        | USUAL
        | given
        | {
            "mechanism": others[0] if others else None,
            "values": others[1:],
        }
    )


def ask_delta(job: Job, given: Mapping[str, Any]) -> None:
    """Print δ at the ε among the words given, which are named as the options of the command."""
    at = words.real(given["epsilon"], "--epsilon")
    side, name = words.direction(given["direction"]), words.method(given["method"])
    _answer(
        f"δ({given['epsilon']})",
        job,
        given,
        lambda steps: steps.delta(at, name, side),
        lambda steps: steps.delta(at, "moments", side),
    )


def ask_epsilon(job: Job, given: Mapping[str, Any]) -> None:
    """Print ε at the δ among the words given."""
    at = words.delta(given["delta"])
    side, name = words.direction(given["direction"]), words.method(given["method"])
    _answer(
        f"ε(δ = {given['delta']})",
        job,
        given,
        lambda steps: steps.epsilon(at, name, side),
        lambda steps: steps.epsilon(at, "moments", side),
    )


def _answer(
    what: str,
    job: Job,
    given: Mapping[str, Any],
    ask: Callable[[Composition], Guarantee],
    instead: Callable[[Composition], Guarantee],
) -> None:
    composed = Composed(job)
    with working(f"{what} of {job.subject}"):
        answer = in_time(given["time_limit"], composed, ask, instead)
    print_answer(answer, given["as_json"], explain=given["explain"])
    composed.remember()
