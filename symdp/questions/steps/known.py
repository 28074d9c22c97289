"""A composition whose law an earlier process derived, and the facts that it wrote down for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from symdp.arguments import EXACTLY, checked_count, sides
from symdp.errors import InputError
from symdp.questions.composition import Composition
from symdp.questions.steps.accounted import Accounted, has_one_shift

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.numeric.formula import Formula
    from symdp.numeric.loss import LossLaw
    from symdp.numeric.total import SumLaw

__all__ = ["KnownComposition", "facts_of", "is_proved_at_all_values"]

_ELSEWHERE = (Fraction(2, 3), Fraction(7, 4))  # times its values, where a formula's mass is checked


def is_proved_at_all_values(mechanism: Mechanism) -> bool:
    """Return whether other values of the parameters are answered for the same shifts."""
    from symdp.balls.modes import one_mode_always
    from symdp.model.sampling import Noise

    if not isinstance(mechanism.source, Noise) or mechanism.shift == EXACTLY:
        return True
    return has_one_shift(mechanism.template or mechanism) or bool(one_mode_always(mechanism))


class KnownComposition(Composition):
    """One step, some number of times, whose law an earlier process derived.

    `facts` is what `facts_of` wrote down, `values` has those of its parameters, the rate among
    them; `built` makes the composition for questions that the law does not answer. Facts that are
    none end in errors of any kind, values that need a derivation of their own in an InputError.
    """

    def __init__(
        self,
        facts: Mapping[str, Any],
        values: Mapping[str, Fraction],
        count: int,
        built: Callable[[], Composition],
    ) -> None:
        from symdp.model.relation import Protection
        from symdp.numeric.formula import decode

        self._added: LossLaw | None = None
        self._is_one_round = False
        self._law = _known_law(decode(facts["formula"]), values, str(facts["name"]))
        if facts["added"] is not None:
            self._added = _known_law(decode(facts["added"]), values, str(facts["name"]))
        count = checked_count(count)
        self.protection = Protection(**facts["protection"]).over(count)
        self._label = "both" if facts["is_mirrored"] else ""
        self._has_one_law = bool(facts["has_one_law"])
        self.n, self.mass = count, "proved"
        self._laws = {}
        self._built = built

    @cached_property
    def accounted(self) -> Accounted:  # type: ignore[override]
        """The record of a composition of the step."""
        return self._built().accounted

    def sides(self, direction: str) -> tuple[str, ...]:
        """Return the sides of a direction, without the record: a formula has no lowered ones."""
        wanted = sides(direction)
        return wanted[:1] if self._has_one_law else wanted

    def _new_law(self, side: str) -> SumLaw:
        from symdp.numeric.total import SumLaw

        law = self._law
        if side != "remove" and law.is_reversible:
            law = law.reversed()
        elif side != "remove":  # of single values, which are alike if there is no other law
            law = self._added or law
        return SumLaw([(law, self.n)], side)


def _known_law(formula: Formula, values: Mapping[str, Fraction], name: str) -> LossLaw:
    law = formula.at([values[key] for key in formula.names], name)
    if law is None:
        raise InputError("these values need a derivation of their own")
    return law


def facts_of(steps: Composition) -> dict[str, Any] | None:
    """Return the facts that answer for a formula in any process, None where there are none.

    That its densities have mass one is checked at three values of its parameters, as everywhere;
    the quadrature of each law is the check at others.
    """
    from symdp.model.dominating import is_attained
    from symdp.model.relation import SUBSTITUTION
    from symdp.numeric.formula import encode, formula_of
    from symdp.numeric.laws.of_mechanism import loss_law
    from symdp.numeric.loss import LossLaw

    if steps.accounted.lowered:
        return None
    if not all(is_proved_at_all_values(step) for step, _ in steps.given_steps()):
        return None
    ((mechanism, _), *others) = steps.steps
    sampling = mechanism.sampling
    pair = None if others else formula_of(mechanism, "remove")
    if pair is None:
        return None
    added = None
    if pair[0].is_discrete and not steps.accounted.has_one_law:  # it is not turned around
        added = formula_of(mechanism, "add")
        if added is None:
            return None
    if type(loss_law(mechanism, "remove")) is not LossLaw:
        return None
    if sampling is not None and mechanism.neighbours == SUBSTITUTION:
        return None  # whether data attain the pair may depend on values
    try:
        data = encode(pair[0])
        other = None if added is None else encode(added[0])
        if not _has_mass_one_elsewhere(mechanism):
            return None
    except InputError:
        return None
    protection = steps.protection
    if protection.is_envelope:  # as of one step
        protection = replace(protection, is_attained=is_attained(mechanism))
    return {
        "names": list(pair[0].names),
        "name": mechanism.name,
        "formula": data,
        "added": other,
        "is_mirrored": mechanism.is_mirrored,
        "has_one_law": steps.accounted.has_one_law,
        "protection": dict(vars(protection)),
    }


def _has_mass_one_elsewhere(mechanism: Mechanism) -> bool:
    from symdp.balls.proper import with_mass_one

    template = mechanism.template
    if template is None:
        return False
    free = {p.name for p in template.declared if p.symbol.is_positive and not p.symbol.is_integer}
    for factor in _ELSEWHERE:
        values = {
            name: value * factor if name in free else value for name, value in mechanism.bound
        }
        bound = {name: value for name, value in values.items() if name in template.parameters}
        other = template(**bound)
        if list(with_mass_one({other: 1}, for_proof=True)) != [other]:
            return False
    return True
