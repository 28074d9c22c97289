"""Parallel composition: disjoint parts of the data, each with steps of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from symdp.arguments import Direction, flat, is_array
from symdp.errors import InputError
from symdp.model.relation import PAIR, SUBSTITUTION
from symdp.questions.composition import Composition, compose
from symdp.questions.guarantee import Guarantee
from symdp.questions.largest import Link, largest, weakest
from symdp.questions.profile_curve import Curve
from symdp.questions.steps import a_composition

_CONDITION = (
    "; the largest of {count} disjoint parts, {name}: every record is in one part, which depends "
    "on nothing but that record"
)


class Parallel:
    """Steps on disjoint parts of the data: the privacy of a record is that of its own part.

    Where one record is added or removed, one part changes, so that δ(ε) = max over the parts of
    δ_p(ε) [McSherry 2009, Theorem 4, for every profile]. Steps that see all the data belong to
    every part: add them to each. The largest of several profiles is no pair's: it does not compose.

    Parameters
    ----------
    parts
        Name -> all steps that a record of that part takes part in; or a list of them.

    Raises
    ------
    InputError
        If there are no parts, two protect different neighbours, or the record that changes may
        change its part (substitution) or be several (groups).

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> north, south = (compose(mechanisms.gaussian(sigma=sigma), 3) for sigma in (2, 4))
    >>> answer = Parallel({"north": north, "south": south}).delta(1.5)
    >>> answer.delta == north.delta(1.5).delta
    True
    """

    def __init__(self, parts: Mapping[str, Composition] | Sequence[Composition]) -> None:
        if not isinstance(parts, Mapping | Sequence) or isinstance(parts, str) or not parts:
            raise InputError(f"{parts!r:.60}: give compositions, one for each part, with names")
        named = parts if isinstance(parts, Mapping) else dict(enumerate(parts, start=1))
        self.parts = {str(name): a_composition(one) for name, one in named.items()}
        relations = {one.protection.relation for one in self.parts.values()} - {PAIR}
        if len(relations) > 1:
            raise InputError(f"parts have one neighbouring relation, not {sorted(relations)}")
        if SUBSTITUTION in relations:
            raise InputError(
                "under substitution a record may leave one part and enter another, and both "
                "change: ask parts under add_remove or zero_out"
            )
        if any(one.protection.group > 1 for one in self.parts.values()):
            raise InputError("the records of a group may be in several parts: ask for one record")

    def delta(
        self, epsilon: Any, method: str = "contour", direction: Direction = "both", **options: Any
    ) -> Any:
        """Return the largest δ(ε) of the parts, see `Composition.delta`."""
        if is_array(epsilon):
            return Curve([self.delta(one, method, direction, **options) for one in flat(epsilon)])
        return self._largest(
            {n: c.delta(epsilon, method, direction, **options) for n, c in self.parts.items()}
        )

    def epsilon(
        self, delta: Any, method: str = "contour", direction: Direction = "both", **options: Any
    ) -> Any:
        """Return the largest ε(δ) of the parts, see `Composition.epsilon`."""
        if is_array(delta):
            return Curve([self.epsilon(one, method, direction, **options) for one in flat(delta)])
        return self._largest(
            {n: c.epsilon(delta, method, direction, **options) for n, c in self.parts.items()}
        )

    def _largest(self, answers: Mapping[str, Guarantee]) -> Guarantee:
        """Return the largest answer; with bounds on it; an estimate where any part is one."""
        by_delta = next(iter(answers.values())).asked == "delta"
        of = Link.of_delta if by_delta else Link.of_epsilon
        name, all_parts = largest({name: of(answer) for name, answer in answers.items()})
        best = answers[name]
        note = _CONDITION.format(count=len(answers), name=name)
        told = None if best.protection is None else replace(best.protection, note=note)
        names = ("log_delta", "log_lower", "log_upper")
        if not by_delta:
            names = ("epsilon", "epsilon_lower", "epsilon_upper")
        ends = (all_parts.value, all_parts.lower, all_parts.upper)
        found: dict[str, Any] = dict(zip(names, ends, strict=True))
        for_pair = weakest(one.for_pair or one.kind for one in answers.values())
        found |= {"kind": all_parts.kind, "advice": all_parts.advice, "for_pair": for_pair}
        return replace(best, protection=told, **found)


def parallel(
    parts: Mapping[str, Composition | Sequence[Any]] | Sequence[Composition],
) -> Parallel:
    """Return what disjoint parts of the data cost together, see `Parallel`.

    Parameters
    ----------
    parts
        Name -> composition, or its steps as `compose` takes them; or a list of compositions.

    Raises
    ------
    InputError
        As `Parallel` and `compose` do.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> parallel({"a": [mechanisms.laplace(b=1)], "b": [mechanisms.laplace(b=2)]}).delta(1).delta
    0.0
    """
    if isinstance(parts, Mapping):
        return Parallel(
            {n: p if isinstance(p, Composition) else compose(p) for n, p in parts.items()}
        )
    return Parallel(parts)
