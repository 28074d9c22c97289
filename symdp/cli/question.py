"""The commands delta and epsilon; the names that other libraries have for our options."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from symdp import shipped, user_cache
from symdp.cli import job as words
from symdp.cli.asking import How
from symdp.cli.display import answer_blocks
from symdp.cli.job import Job, bindings, number
from symdp.cli.options import found_at, parameters_of
from symdp.cli.table import COMMANDS
from symdp.errors import InputError, SymdpError
from symdp.interrupt import limit

if TYPE_CHECKING:
    from symdp.questions.composition import Composition

_LARGEST_FILE = 1_000_000  # bytes, as for every mechanism file
_LONGEST = 5.0  # seconds that a command may work once its answer is printed
_RATE = "sampling_rate"  # as a law's formula calls it
_NUMBERS = ("mechanism", "values", "count", "rate")  # of a job
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError)
# What other libraries call an option: taken for ours, or named where it means something else.
_OF_TRAINING = {
    "--noise-multiplier": "--noise", "--sigma": "--noise", "--z": "--noise",
    "--batch-size": "--batch", "--bs": "--batch", "--lot-size": "--batch",
    "--n": "--examples", "--N": "--examples", "--num-examples": "--examples",
    "--dataset-size": "--examples", "--number-of-examples": "--examples", "--samples": "--examples",
    "--eps": "--target-epsilon", "--epsilon": "--target-epsilon",
    "--target-eps": "--target-epsilon", "--target-delta": "--delta",
    "--num-epochs": "--epochs", "--num-steps": "--steps", "--iterations": "--steps",
}  # fmt: skip
_OF_OTHERS = {
    "--eps": "--epsilon", "--target-epsilon": "--epsilon", "--target-delta": "--delta",
    "--n": "-n", "--num-steps": "-n", "--num-compositions": "-n",
    "--sample-rate": "--rate", "--sampling-rate": "--rate", "--sampling-probability": "--rate",
    "--q": "--rate", "--orders": "--order",
}  # fmt: skip
_MEANT = {
    "--sample-rate": "symdp train has no --sample-rate: give --examples N and --batch B, whose "
    "ratio is the rate",
    "--max-grad-norm": "the clip norm changes no ε: --noise is the noise over it; leave "
    "--max-grad-norm out",
}
# An option that a command has not -> what answers the question; of others, where it is asked.
_ELSEWHERE = {
    ("delta", "--delta"): "`delta` asks δ at --epsilon; for ε at a δ: symdp epsilon",
    ("epsilon", "--epsilon"): "`epsilon` asks ε at --delta; for δ at an ε: symdp delta",
    ("curve", "--epsilon"): "`curve` takes --epsilon-range A B; for δ at one ε: symdp delta",
    ("curve", "--delta"): "`curve` prints δ over a range of ε; for ε at a δ: symdp epsilon",
    ("report", "--epsilon"): "`report` compares ε at --delta; for δ at an ε: symdp verify",
}
_ASKED_AT = {"--epsilon": "for δ at an ε: symdp delta", "--delta": "for ε at a δ: symdp epsilon"}
_PARAMETERS = ("--noise-multiplier", "--sigma", "--noise")


def ours(words: Sequence[str]) -> list[str]:
    """Return the words of a command line, the options of other libraries by our names."""
    if not words:
        return []
    is_training = words[0] in ("train", "card")
    names = _OF_OTHERS
    if words[0] == "train":
        names = _OF_TRAINING
    elif is_training:
        names = {}
    translated = []
    for word in words:
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            translated.append(word)
            continue
        name = name.replace("_", "-")
        if is_training and name in _MEANT:
            raise InputError(_MEANT[name])
        if words[0] in ("delta", "epsilon", "curve", "certify") and name in _PARAMETERS:
            raise InputError(f"{name}: a parameter is written NAME=VALUE here, as in sigma=1.1")
        name = names.get(name, name)
        if name in _ASKED_AT and (instead := _elsewhere(words[0], name)):
            raise InputError(instead)
        translated.append(name + equals + value)
    return translated


def _elsewhere(command: str, option: str) -> str:
    """Return which command takes an option that this one does not; nothing where it does."""
    if (command, option) in _ELSEWHERE:
        return _ELSEWHERE[command, option]
    callable_found = found_at(COMMANDS[command][0]) if command in COMMANDS else None
    if not callable(callable_found) or any(
        option in parameter.flags for parameter in parameters_of(callable_found, command)
    ):
        return ""
    return f"`{command}` has no {option}; {_ASKED_AT[option]}"


def delta(
    *, epsilon: str, job: Job, how: How, settings: Mapping[str, str], explain: bool = False
) -> None:
    """Print δ at a given ε."""
    at = words.real(epsilon, "--epsilon")
    _answer_and_remember("delta", at, f"δ({epsilon})", job, how, settings, explain)


def epsilon(
    *, delta: str, job: Job, how: How, settings: Mapping[str, str], explain: bool = False
) -> None:
    """Print the smallest ε ≥ 0 at a given δ."""
    _answer_and_remember(
        "epsilon", words.delta(delta), f"ε(δ = {delta})", job, how, settings, explain
    )


def _answer_and_remember(
    quantity: str,
    at: float,
    what: str,
    job: Job,
    how: How,
    settings: Mapping[str, str],
    explain: bool,
) -> None:
    composed = Composed(job)
    answer(quantity, at, composed, f"{what} of {job.subject}", how, settings, explain)
    composed.remember()


def answer(
    quantity: str,
    at: float,
    build: Callable[[], Any],
    what: str,
    how: How,
    settings: Mapping[str, str] | None = None,
    explain: bool = False,
) -> None:
    """Ask a composition for δ or ε, in time, and print what it answers."""
    chosen = words.settings(how.name, settings or {})
    result = how.ask(
        what,
        build,
        lambda steps: getattr(steps, quantity)(at, how.name, how.side, **chosen),
        lambda steps: getattr(steps, quantity)(at, "moments", how.side),
    )
    how.tell(result, lambda guarantee: answer_blocks(guarantee, explain=explain))


class _Asked(NamedTuple):
    """Where the facts of a job's formula are kept, and the values that it is asked for."""

    key: list[str]
    path: Path | None
    values: dict[str, Fraction]


class Composed:
    """The composition that a job describes, without SymPy where an earlier command derived it.

    Call it to have the composition, and `remember` once it has answered.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._asked = _asked(job)
        self._built: Any = None

    def __call__(self) -> Any:
        """Return the composition."""
        return self._known() or self._made()

    def _known(self) -> Composition | None:
        facts = None if self._asked is None else self._facts(self._asked)
        if self._asked is None or facts is None:
            return None
        from symdp.questions.steps.known import KnownComposition

        try:
            count = self._job.steps_asked
            return KnownComposition(facts, self._asked.values, count, self._made)
        except (*_UNREADABLE, SymdpError):
            return None  # the usual way answers, or says what is wrong

    def _facts(self, asked: _Asked) -> Any:
        """Return the facts that come with the package, or those that an earlier command kept."""
        facts = shipped.facts_of_law(str(self._job.mechanism), asked.key)
        if facts is None and asked.path is not None:
            facts = user_cache.recall(asked.path)
        return facts

    def _made(self) -> Any:
        self._built = self._job.build_any()
        return self._built

    def remember(self) -> None:
        """Keep the facts of a composition that was made the usual way."""
        if self._built is None or self._asked is None or self._asked.path is None:
            return
        from symdp.questions.steps.known import facts_of

        with limit(_LONGEST, of_work=True):
            facts = facts_of(self._built)
            if facts is not None and set(facts["names"]) <= set(self._asked.values):
                user_cache.keep(self._asked.path, facts)


def _is_one(job: Job) -> bool:
    try:
        return job.steps_asked == 1
    except SymdpError:
        return False


def _asked(job: Job) -> _Asked | None:
    """Return None for a job that no formula of one step answers."""
    from symdp.mechanisms import path_of

    if job.mechanism is None or job.composition is not None:
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
    written.append(f"one step={_is_one(job)}")  # which has one sign
    key = [text, *sorted(free), "", *fixed, "", *written]
    return _Asked(key, user_cache.file_for("law", *key), values)
