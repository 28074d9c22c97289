"""Compositions in files; and parallel composition: disjoint parts of the data, each with steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from symdp.arguments import flat, is_array
from symdp.errors import InputError, at
from symdp.mechanisms import resolve
from symdp.model.relation import PAIR, SUBSTITUTION
from symdp.model.specification import (
    document_of,
    read_text,
    refuse_unknown,
    take,
    with_relation,
    with_sampling,
)
from symdp.questions.composition import Composition, compose
from symdp.questions.guarantee import Asked, Curve, Guarantee, Link, largest, weakest
from symdp.questions.steps.accounted import a_composition

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

_CONDITION = (
    "; the largest of {count} disjoint parts, {name}: every record is in one part, which depends "
    "on nothing but that record"
)
_LARGEST_COUNT = 10**12  # steps of one [[step]] table
_OF_A_STEP = ("name", "sampling", "relation", "count", "part")


class Parallel(Asked):
    """Steps on disjoint parts of the data: the privacy of a record is that of its own part.

    Where one record is added or removed, one part changes, so that δ(ε) = max over the parts of
    δ_p(ε) [McSherry 2009, Theorem 4, for every profile]. Steps that see all the data belong to
    every part: add them to each. The largest of several profiles is no pair's: it does not compose.

    Parameters
    ----------
    parts
        Name -> all steps that a record of that part takes part in, as a composition or as
        `compose` takes them; or a list of these.

    Raises
    ------
    InputError
        If two protect different neighbours, or the record that changes may change its part
        (substitution) or be several (groups).

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> north, south = (compose(mechanisms.gaussian(sigma=sigma), 3) for sigma in (2, 4))
    >>> answer = Parallel({"north": north, "south": south}).delta(1.5)
    >>> answer.delta == north.delta(1.5).delta
    True
    >>> Parallel({"a": [mechanisms.laplace(b=1)], "b": [mechanisms.laplace(b=2)]}).delta(1).delta
    0.0
    """

    def __init__(
        self, parts: Mapping[str, Composition | Sequence[Any]] | Sequence[Composition]
    ) -> None:
        if not isinstance(parts, Mapping | Sequence) or isinstance(parts, str) or not parts:
            raise InputError(f"{parts!r:.60}: give compositions, one for each part, with names")
        named = parts if isinstance(parts, Mapping) else dict(enumerate(parts, start=1))
        self.parts = {str(name): _composed(part) for name, part in named.items()}
        relations = {part.protection.relation for part in self.parts.values()} - {PAIR}
        if len(relations) > 1:
            raise InputError(f"parts have one neighbouring relation, not {sorted(relations)}")
        if SUBSTITUTION in relations:
            raise InputError(
                "under substitution a record may leave one part and enter another, and both "
                "change: ask parts under add_remove or zero_out"
            )
        if any(part.protection.group > 1 for part in self.parts.values()):
            raise InputError("the records of a group may be in several parts: ask for one record")

    @classmethod
    def load(cls, path: str | Path) -> Parallel:
        """Return the parts in a file of `[[step]]` tables that may each name a `part`.

        Steps without a part see all the data, and belong to every part; otherwise a step is
        written as for `load_composition`.
        """
        parts = read_parts(path)
        if list(parts) == [""]:
            raise InputError(f"{path}: no step names a part: symdp.load_composition(path) has them")
        return cls(parts)

    def __repr__(self) -> str:
        return f"Parallel({len(self.parts)} parts: {', '.join(self.parts):.100})"

    def _ask(self, quantity: str, value: Any, *how: str, **options: Any) -> Guarantee | Curve:
        """Return the largest answer, with bounds on it; an estimate where any part is one."""
        if is_array(value):
            answers_listed = [self._ask(quantity, entry, *how, **options) for entry in flat(value)]
            return Curve(cast("list[Guarantee]", answers_listed))
        answers = {
            name: cast("Guarantee", getattr(part, quantity)(value, *how, **options))
            for name, part in self.parts.items()
        }
        name, both = largest({name: Link.of(answer) for name, answer in answers.items()})
        best = answers[name]
        note = _CONDITION.format(count=len(answers), name=name)
        protection = None if best.protection is None else replace(best.protection, note=note)
        kind_for_pair = weakest(entry.kind_for_pair or entry.kind for entry in answers.values())
        also: dict[str, Any] = {
            "kind": both.kind,
            "advice": both.advice,
            "kind_for_pair": kind_for_pair,
        }
        return replace(best, protection=protection, **both.entries(quantity), **also)


def _composed(part: Any) -> Composition:
    """Return a part as a composition, which steps may stand for."""
    if isinstance(part, list | tuple):
        return compose(part)
    composition: Composition = a_composition(part)
    return composition


def load_composition(path: str | Path) -> Composition:
    """Return the composition in a file: `[[step]]` tables with mechanism, parameters and count.

    `mechanism` is a built-in name or a path relative to this file, `parameters` a table of
    numbers or ratios, `sampling` as in a mechanism's own file and optional, `count` how many
    times the step is taken (1 if left out).

    Raises
    ------
    InputError
        For a file that is no composition, or whose steps name a `part`: see `Parallel.load`.
    """
    parts = read_parts(path)
    if list(parts) != [""]:
        raise InputError(
            f"{path}: its steps are those of parts of the data: symdp.Parallel.load(path) has them"
        )
    with at(str(path)):
        return compose(parts[""])


def read_parts(path: str | Path) -> dict[str, list[tuple[Mechanism, int]]]:
    """Return the steps of each part of the data by its name, those without a part among them.

    The name is empty where no step has a part.
    """
    with at(str(path)):
        document = document_of(read_text(path))
        if "name" in document and "step" not in document:
            raise InputError("this is the file of one mechanism; give it without --composition")
        if {"budget", "parameters"} & document.keys():
            raise InputError(
                "its steps have an unknown, which symdp calibrate --composition FILE finds; here "
                "give their parameters values"
            )
        refuse_unknown(document, ("step",))
        steps = take(document, "step", list, required=True)
        if not steps:
            raise InputError("there is no [[step]]; write one for each mechanism")
        read_steps = []
        for index, step in enumerate(steps, start=1):
            with at(f"[[step]] {index}"):
                read_steps.append(_step(step, Path(path).parent))
        names = list(dict.fromkeys(part for part, _ in read_steps if part)) or [""]
        return {name: [step for part, step in read_steps if part in ("", name)] for name in names}


def _step(step: object, folder: Path) -> tuple[str, tuple[Mechanism, int]]:
    """Return the part of a step, empty where it sees all the data, its mechanism and count."""
    if not isinstance(step, dict):
        raise InputError("a step is a table")
    releases = take(step, "together", list)
    if releases is None:
        keys: tuple[str, ...] = ("mechanism", "parameters", *_OF_A_STEP)
        mechanism = _mechanism(step, folder, keys)
    else:
        refuse_unknown(step, ("together", *_OF_A_STEP))
        mechanism = _together(releases, folder, take(step, "relation", str))
        mechanism = with_sampling(mechanism, take(step, "sampling", dict))
    take(step, "name", str)
    return take(step, "part", str, default=""), (mechanism.require_concrete(), _count(step))


def _together(releases: list[Any], folder: Path, relation: str | None) -> Mechanism:
    """Return the one step of several releases on one sample."""
    from symdp.questions.together.product import together

    steps = []
    for index, release in enumerate(releases, start=1):
        with at(f"together {index}"):
            if not isinstance(release, dict):
                raise InputError('a release is a table, as { mechanism = "gaussian", … }')
            mechanism = _mechanism(release, folder, ("mechanism", "parameters", "count"))
            steps.append((with_relation(mechanism, relation), _count(release)))
    with at("together"):
        return together(steps)


def _mechanism(table: dict[str, Any], folder: Path, keys: tuple[str, ...]) -> Mechanism:
    """Return the mechanism of a table with its values, sampling and relation."""
    refuse_unknown(table, keys)
    mechanism = resolve(take(table, "mechanism", str, required=True), folder)
    mechanism = with_sampling(mechanism, take(table, "sampling", dict))
    mechanism = with_relation(mechanism, take(table, "relation", str))
    with at("parameters"):
        mechanism = mechanism(**take(table, "parameters", dict, default={}))
    return mechanism.require_concrete()


def _count(table: dict[str, Any]) -> int:
    """Return how many times it is run."""
    count = int(take(table, "count", int, default=1))
    if not 1 <= count <= _LARGEST_COUNT:
        raise InputError(f"count must be a whole number from 1 to {_LARGEST_COUNT}, not {count}")
    return count
