"""The commands delta and epsilon, and how plain words of theirs are read without loading Typer."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from symdp import user_cache
from symdp.cli import job as words
from symdp.cli.display import print_answer
from symdp.cli.job import Job, bindings, number, whole
from symdp.cli.supervise import in_time
from symdp.cli.working import working
from symdp.errors import SymdpError
from symdp.interrupt import limit
from symdp.method_options import OPTIONS as METHOD_OPTIONS

if TYPE_CHECKING:
    from symdp.arguments import Direction
    from symdp.questions.composition import Composition
    from symdp.questions.guarantee import Guarantee

WANTED = {"delta": "epsilon", "epsilon": "delta"}  # the option that each command needs
OPTIONS = {
    "-n": "count", "--count": "count", "--method": "method", "--sampling": "sampling",
    "--rate": "rate", "--batch-size": "batch", "--records": "records", "--group": "group",
    "--steps": "steps", "--participations": "participations", "--released": "released",
    "--relation": "relation", "--sensitivity": "sensitivity", "--shift": "shift",
    "--direction": "direction", "--composition": "composition", "--time-limit": "time_limit",
}  # fmt: skip
OPTIONS |= {one.flag: one.name for one in METHOD_OPTIONS}
FLAGS = {"--explain": "explain", "--json": "as_json"}
USUAL = {"method": "contour", "direction": "both", "time_limit": "60"}  # where not given
_LARGEST_FILE = 1_000_000  # bytes, as for every mechanism file
_LONGEST = 5.0  # seconds that a command may work once its answer is printed
_RATE = "sampling_rate"  # as a law's formula calls it
_NUMBERS = ("mechanism", "values", "count", "rate")  # of a job
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError)


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
            "settings": {one.name: given[one.name] for one in METHOD_OPTIONS if one.name in given},
        }
    )


def ask_delta(job: Job, given: Mapping[str, Any]) -> None:
    """Print δ at the ε among the words given, which are named as the options of the command."""
    at = words.real(given["epsilon"], "--epsilon")
    side, name, chosen = _how(given)
    _answer(
        f"δ({given['epsilon']})",
        job,
        given,
        lambda steps: steps.delta(at, name, side, **chosen),
        lambda steps: steps.delta(at, "moments", side),
    )


def ask_epsilon(job: Job, given: Mapping[str, Any]) -> None:
    """Print ε at the δ among the words given."""
    at = words.delta(given["delta"])
    side, name, chosen = _how(given)
    _answer(
        f"ε(δ = {given['delta']})",
        job,
        given,
        lambda steps: steps.epsilon(at, name, side, **chosen),
        lambda steps: steps.epsilon(at, "moments", side),
    )


def _how(given: Mapping[str, Any]) -> tuple[Direction, str, dict[str, float]]:
    """Return direction, method and its options among the words given."""
    name = words.method(given["method"])
    return words.direction(given["direction"]), name, words.settings(name, given["settings"])


def _answer(
    what: str,
    job: Job,
    given: Mapping[str, Any],
    ask: Callable[[Any], Guarantee],
    instead: Callable[[Any], Guarantee],
) -> None:
    composed = Composed(job)
    with working(f"{what} of {job.subject}"):
        answer = in_time(given["time_limit"], composed, ask, instead)
    print_answer(answer, given["as_json"], explain=given["explain"])
    composed.remember()


class _Asked(NamedTuple):
    """Where the facts of a job's formula are kept, and the values that it is asked for."""

    path: Path
    values: dict[str, Fraction]


class Composed:
    """The composition that a job describes, without SymPy where an earlier command derived it.

    Call it to have the composition, and `remember` once it has answered.
    """

    def __init__(self, job: Job) -> None:
        self._job, self._asked = job, _asked(job)
        self._built: Any = None

    def __call__(self) -> Any:
        """Return the composition."""
        return self._known() or self._made()

    def _known(self) -> Composition | None:
        facts = None if self._asked is None else user_cache.recall(self._asked.path)
        if self._asked is None or facts is None:
            return None
        from symdp.questions.composition import KnownComposition

        try:
            count = whole(self._job.count or "1", "-n")
            return KnownComposition(facts, self._asked.values, count, self._made)
        except (*_UNREADABLE, SymdpError):
            return None  # the usual way answers, or says what is wrong

    def _made(self) -> Any:
        self._built = self._job.build_any()
        return self._built

    def remember(self) -> None:
        """Keep the facts of a composition that was made the usual way."""
        if self._built is None or self._asked is None:
            return
        from symdp.questions.composition import facts_of

        with limit(_LONGEST, of_work=True):
            facts = facts_of(self._built)
            if facts is not None and set(facts["names"]) <= set(self._asked.values):
                user_cache.keep(self._asked.path, facts)


def _is_one(count: str) -> bool:
    try:
        return number(count, "-n") == 1
    except SymdpError:
        return False


def _asked(job: Job) -> _Asked | None:
    """Return None for a job that no formula of one step answers."""
    from symdp.mechanisms import path_of

    if job.mechanism is None or job.composition is not None or job.count is None:
        return None
    if job.sensitivity is not None or (job.group is not None and job.sampling is None):
        return None  # the formula is that of the mechanism's own sensitivity
    try:
        file = path_of(job.mechanism)
        if file is None or file.stat().st_size > _LARGEST_FILE:
            return None
        text = file.read_bytes().decode("utf-8-sig")
        words = tomllib.loads(text).get("parameters", {})
        bound = bindings(job.values)
        values = {name: value for name, value in bound.items() if isinstance(value, Fraction)}
        if len(values) < len(bound):
            return None
        if job.rate is not None:
            values[_RATE] = number(job.rate, "--rate")
    except (*_UNREADABLE, SymdpError):
        return None
    free = {name for name in values if name == _RATE or words.get(name) == "positive"}
    if any(values[name] <= 0 or (name == _RATE and values[name] >= 1) for name in free):
        return None
    fixed = [f"{name}={values[name]}" for name in sorted(set(values) - free)]
    # Every field of a job tells formulas apart but those that only put numbers into one.
    written = [f"{f.name}={getattr(job, f.name)}" for f in fields(job) if f.name not in _NUMBERS]
    written.append(f"one step={_is_one(job.count)}")  # which has one sign
    path = user_cache.file_for("law", text, *sorted(free), "", *fixed, "", *written)
    return None if path is None else _Asked(path, values)
