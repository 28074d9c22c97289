"""Compositions whose formula an earlier process derived: they answer without deriving it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from symdp.arguments import sides
from symdp.errors import InputError
from symdp.questions.composition import Composition

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.numeric.loss import LossLaw
    from symdp.numeric.total import SumLaw
    from symdp.questions.accounted import Accounted

_ELSEWHERE = (Fraction(2, 3), Fraction(7, 4))  # times its values, where a formula's mass is checked


class KnownComposition(Composition):
    """One step, some number of times, whose law is at hand.

    Parameters
    ----------
    facts
        What `facts_of` wrote down.
    values
        Values of parameters by their names, the sampling rate among them.
    count
        How often.
    built
        Makes the composition from its mechanism, for questions that the law does not answer.

    Raises
    ------
    InputError
        If the values need a derivation of their own.
    ValueError, KeyError, TypeError, IndexError, AttributeError
        If the facts are none.
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

        formula = decode(facts["formula"])
        law = formula.at([values[name] for name in formula.names], str(facts["name"]))
        if law is None:
            raise InputError("these values need a derivation of their own")
        self._law: LossLaw = law
        self.protection = Protection(**facts["protection"])
        self._label = "both" if facts["is_mirrored"] else ""
        self._has_one_law = bool(facts["has_one_law"])
        self.count, self.mass = count, "proved"
        self._laws = {}
        self._built = built

    @cached_property
    def accounted(self) -> Accounted:  # type: ignore[override]
        """The record of a composition of the step."""
        return self._built().accounted

    def sides(self, direction: str) -> tuple[str, ...]:
        """Return the sides of a direction, without the record: a formula has no lowered ones."""
        asked = sides(direction)
        return asked[:1] if self._has_one_law else asked

    @property
    def step_by_curve(self) -> None:
        """None: a formula is that of a law."""

    @cached_property
    def steps(self) -> tuple[tuple[Mechanism, int], ...]:  # type: ignore[override]
        """The step with its count."""
        return self.accounted.steps

    def _new_law(self, side: str) -> SumLaw:
        from symdp.numeric.total import SumLaw

        law = self._law if side == "remove" else self._law.reversed()
        return SumLaw([(law, self.count)], side)


def facts_of(steps: Composition) -> dict[str, Any] | None:
    """Return the facts that answer for a formula in any process, None where there are none.

    That its densities have mass one is checked at three values of its parameters, as everywhere;
    the quadrature of each law is the check at others.
    """
    from symdp.model.relation import SUBSTITUTION
    from symdp.numeric.compile import loss_law
    from symdp.numeric.formula import encode, formula_of
    from symdp.numeric.loss import LossLaw
    from symdp.questions.shifts import is_proved_at_all_values

    if steps.accounted.lowered:
        return None
    if not all(is_proved_at_all_values(given) for given, _ in steps.given_steps()):
        return None
    ((mechanism, _), *others) = steps.steps
    sampling = mechanism.sampling
    found = None if others else formula_of(mechanism, "remove")
    if found is None or type(loss_law(mechanism, "remove")) is not LossLaw:
        return None
    if sampling is not None and mechanism.neighbours == SUBSTITUTION:
        return None  # whether data attain the pair may depend on values
    try:
        data = encode(found[0])
        if not _has_mass_one_elsewhere(mechanism):
            return None
    except InputError:
        return None
    return {
        "names": list(found[0].names),
        "name": mechanism.name,
        "formula": data,
        "is_mirrored": mechanism.is_mirrored,
        "has_one_law": steps.accounted.has_one_law,
        "protection": dict(vars(steps.protection)),
    }


def _has_mass_one_elsewhere(mechanism: Mechanism) -> bool:
    from symdp.balls.density import with_mass_one

    template = mechanism.template
    if template is None:
        return False
    free = {p.name for p in template.declared if p.symbol.is_positive and not p.symbol.is_integer}
    for factor in _ELSEWHERE:
        values = {
            name: value * factor if name in free else value for name, value in mechanism.bound
        }
        known = {name: value for name, value in values.items() if name in template.parameters}
        other = template(**known)
        if list(with_mass_one({other: 1}, for_proof=True)) != [other]:
            return False
    return True
