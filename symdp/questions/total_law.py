"""Distinct steps of one formula, which differ in the values of its parameters alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from symdp.errors import AccuracyError, InputError
from symdp.interrupt import generation
from symdp.model.allocation import allocated_steps
from symdp.model.renyi_curve import RenyiCurve

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.numeric.loss import LossLaw
    from symdp.numeric.schedule import StepFamily
    from symdp.numeric.total import SumLaw

_LEAST = 24  # distinct steps of one formula from which on fewer may stand for all of them

Steps = Sequence[tuple["Mechanism", int]]


def total_law(steps: Steps, direction: str) -> SumLaw:
    """Return the law of the total privacy loss; very many steps of one formula are one term.

    Of steps that are known by a Rényi curve alone it is a bound on the transform.
    """
    from symdp.numeric.compile import loss_law
    from symdp.numeric.schedule import ManySteps, ManyStepsLaw
    from symdp.numeric.total import SumLaw

    def parts(some: Steps) -> list[tuple[LossLaw, int]]:
        return [(loss_law(mechanism, direction), count) for mechanism, count in some]

    curves = [(step, count) for step, count in steps if isinstance(step.source, RenyiCurve)]
    if curves:
        from symdp.methods.renyi_bound import RenyiBoundLaw

        known = [(step, count) for step, count in steps if not isinstance(step.source, RenyiCurve)]
        other = "add" if direction == "remove" else "remove"
        return RenyiBoundLaw(
            curves,
            total_law(known, direction) if known else None,
            lambda: total_law(steps, other),
        )
    families, others = [], []
    for members in _grouped(steps):
        found = _families(tuple(members), generation()) if len(members) >= _LEAST else []
        # Both directions of mirrored steps have one law.
        side = "remove" if members[0][0].is_mirrored else direction
        families += [ManySteps(family, side) for family in found]
        others += [] if found else members
    if not families:
        return SumLaw(parts(steps), direction)
    return ManyStepsLaw(families, parts(others), lambda: parts(steps), direction)


def _grouped(steps: Steps) -> list[list[tuple[Mechanism, int]]]:
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
    """Return what stands for steps of one formula, nothing where they have none.

    Where their values are on no line, and one parameter has few values, those that share one of
    them may be.
    """
    from symdp.numeric.compile import loss_law
    from symdp.numeric.formula import formula_of
    from symdp.numeric.schedule import StepFamily

    if allocated_steps(members[0][0]) is not None:
        return []
    found = [formula_of(mechanism, "remove") for mechanism, _ in members]
    formulas = {id(pair[0]) for pair in found if pair is not None}
    if None in found or len(formulas) != 1:
        return []
    formula = next(pair[0] for pair in found if pair is not None)
    vectors = [tuple(pair[1]) for pair in found if pair is not None]
    name = members[0][0].name

    def made(some: Sequence[int]) -> list[StepFamily]:
        ends = min(some, key=lambda k: vectors[k]), max(some, key=lambda k: vectors[k])
        laws = [loss_law(members[k][0], "remove") for k in ends]
        family = StepFamily(
            [vectors[k] for k in some],
            np.asarray([float(members[k][1]) for k in some]),
            lambda k: loss_law(members[some[k]][0], "remove"),
            lambda values: formula.at(values, name),
            lambda vectors: formula.entries(vectors, laws),
        )
        distinct = [{vectors[k][j] for k in some} for j in range(len(vectors[0]))]
        j, values = min(enumerate(distinct), key=lambda pair: (len(pair[1]) < 2, len(pair[1])))
        if family.has_rule or len(some) < 2 * _LEAST * len(values):
            return [family]
        groups = ([k for k in some if vectors[k][j] == value] for value in sorted(values))
        return [one for group in groups for one in made(group)]

    try:
        return made(range(len(members)))
    except (AccuracyError, InputError):  # what no double holds, or no quadrature resolves
        return []
