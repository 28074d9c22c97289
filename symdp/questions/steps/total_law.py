"""The law of the total privacy loss; very many steps of one formula are one term of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from symdp.errors import AccuracyError, InputError
from symdp.interrupt import generation
from symdp.model.relation import is_local

if TYPE_CHECKING:
    from fractions import Fraction

    from symdp.model.mechanism import Mechanism
    from symdp.numeric.formula import Formula
    from symdp.numeric.loss import LossLaw
    from symdp.numeric.many.schedule import StepFamily
    from symdp.numeric.total import SumLaw

__all__ = ["total_law"]

_Steps = Sequence[tuple["Mechanism", int]]
_LEAST = 24  # distinct steps of one formula from which on fewer may stand for all of them


def total_law(steps: _Steps, direction: str) -> SumLaw:
    """Return the law of the total privacy loss of steps in a direction.

    Of steps that are known by a Rényi curve alone it is a bound on the transform.
    """
    from symdp.model.sampling import RenyiCurve
    from symdp.numeric.total import SumLaw

    if any(is_local(step) for step, _ in steps):
        from symdp.questions.shuffled.blanket import BlanketLaw

        return BlanketLaw(steps[0][0])
    if any(isinstance(step.source, RenyiCurve) for step, _ in steps):
        return _bounded_by_curves(steps, direction)
    families: list[StepFamily] = []
    singles: list[tuple[Mechanism, int]] = []
    for members in _grouped(steps):
        parts = _families(tuple(members), generation()) if len(members) >= _LEAST else []
        families += parts
        if not parts:
            singles += members
    if any(family.has_rule for family in families):
        from symdp.numeric.many.schedule import RuleLaw

        return RuleLaw(
            families,
            _counted_laws(singles, direction),
            lambda: _counted_laws(steps, direction),
            direction,
        )
    terms: list[tuple[LossLaw, int]] = []
    for family in families:
        terms += ((law, int(count)) for law, count in family.terms(direction == "add"))
    return SumLaw(terms + _counted_laws(singles, direction), direction)


def _counted_laws(steps: _Steps, direction: str) -> list[tuple[LossLaw, int]]:
    from symdp.numeric.laws.of_mechanism import loss_law

    return [(loss_law(mechanism, direction), count) for mechanism, count in steps]


def _bounded_by_curves(steps: _Steps, direction: str) -> SumLaw:
    """Return the law of steps of which some are known by a Rényi curve alone."""
    from symdp.methods.renyi import RenyiBoundLaw
    from symdp.model.sampling import RenyiCurve

    curves: list[tuple[Mechanism, int]] = []
    with_laws: list[tuple[Mechanism, int]] = []
    for step in steps:
        is_curve = isinstance(step[0].source, RenyiCurve)
        (curves if is_curve else with_laws).append(step)
    opposite = "add" if direction == "remove" else "remove"
    total = total_law(with_laws, direction) if with_laws else None
    return RenyiBoundLaw(curves, total, lambda: total_law(steps, opposite))


def _grouped(steps: _Steps) -> list[list[tuple[Mechanism, int]]]:
    """Return the steps by what those of one formula share."""
    if len(steps) < _LEAST:
        return [list(steps)]
    groups: dict[object, list[tuple[Mechanism, int]]] = {}
    for mechanism, count in steps:
        sampling = mechanism.sampling
        scheme = None if sampling is None else tuple((vars(sampling) | {"rate": None}).items())
        template = None if mechanism.template is None else mechanism.template.key
        whole = {p.name for p in mechanism.declared if p.symbol.is_integer}
        fixed = tuple(pair for pair in sorted(mechanism.bound) if pair[0] in whole)
        key = template, scheme, mechanism.neighbours, mechanism.is_mirrored, fixed
        groups.setdefault(key, []).append((mechanism, count))
    return list(groups.values())


@lru_cache(maxsize=8)
def _families(members: tuple[tuple[Mechanism, int], ...], _: int) -> list[StepFamily]:
    """Return what stands for steps of one formula, nothing where they have none."""
    from symdp.model.allocation import allocated_steps
    from symdp.numeric.formula import formula_of

    if allocated_steps(members[0][0]) is not None:
        return []
    formulas: list[Formula] = []
    vectors: list[tuple[Fraction, ...]] = []
    for mechanism, _count in members:
        pair = formula_of(mechanism, "remove")
        if pair is None:
            return []
        formulas.append(pair[0])
        vectors.append(tuple(pair[1]))
    formula = formulas[0]
    are_one = all(other is formula for other in formulas)
    if not are_one or formula.is_discrete:  # whose places move with the parameters
        return []
    try:
        return _OneFormula(formula, members, vectors).families(range(len(members)))
    except (AccuracyError, InputError):  # what no double holds, or no quadrature resolves
        return []


class _OneFormula:
    """Steps of one formula, each with its vector of parameters."""

    def __init__(
        self,
        formula: Formula,
        members: Sequence[tuple[Mechanism, int]],
        vectors: Sequence[tuple[Fraction, ...]],
    ) -> None:
        self.formula = formula
        self.members = members
        self.vectors = vectors

    def families(self, indices: Sequence[int]) -> list[StepFamily]:
        """Return families of the steps at these indices.

        Where their values are on no line, and one parameter has few values, those that share one
        of them may be.
        """
        family = self._family(indices)
        number, values = self._fewest_values(indices)
        if family.has_rule or len(indices) < 2 * _LEAST * len(values):
            return [family]
        parts: list[StepFamily] = []
        for value in sorted(values):
            parts += self.families([k for k in indices if self.vectors[k][number] == value])
        return parts

    def _family(self, indices: Sequence[int]) -> StepFamily:
        import numpy as np

        from symdp.numeric.many.schedule import StepFamily

        formula = self.formula
        name = self.members[0][0].name
        first = min(indices, key=lambda k: self.vectors[k])
        last = max(indices, key=lambda k: self.vectors[k])
        laws = [self._law_of_member(first), self._law_of_member(last)]
        return StepFamily(
            [self.vectors[k] for k in indices],
            np.asarray([float(self.members[k][1]) for k in indices]),
            lambda k: self._law_of_member(indices[k]),
            lambda values: formula.at(values, name),
            lambda vectors: formula.entries(vectors, laws),
        )

    def _law_of_member(self, index: int) -> LossLaw:
        from symdp.numeric.laws.of_mechanism import loss_law

        return loss_law(self.members[index][0], "remove")

    def _fewest_values(self, indices: Sequence[int]) -> tuple[int, set[Fraction]]:
        """Return which parameter has fewest values, two at least, and these."""
        distinct = [
            {self.vectors[k][number] for k in indices} for number in range(len(self.vectors[0]))
        ]
        return min(enumerate(distinct), key=lambda pair: (len(pair[1]) < 2, len(pair[1])))
