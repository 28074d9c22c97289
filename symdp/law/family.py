"""Distinct steps of one formula, which differ in the values of its parameters alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from symdp.interrupt import generation
from symdp.model.allocation import allocated_steps
from symdp.model.renyi_curve import RenyiCurve

if TYPE_CHECKING:
    from symdp.law.loss import LossLaw
    from symdp.law.parameter_rule import StepFamily
    from symdp.law.total import SumLaw
    from symdp.model.mechanism import Mechanism

_LEAST = 24  # distinct steps of one formula from which on fewer may stand for all of them

Steps = Sequence[tuple["Mechanism", int]]


def total_law(steps: Steps, direction: str) -> SumLaw:
    """Return the law of the total privacy loss; very many steps of one formula are one term.

    Of steps that are known by a Rényi curve alone it is a bound on the transform.
    """
    from symdp.law.compile import loss_law
    from symdp.law.many_steps import ManySteps, ManyStepsLaw
    from symdp.law.total import SumLaw

    def parts(some: Steps) -> list[tuple[LossLaw, int]]:
        return [(loss_law(mechanism, direction), count) for mechanism, count in some]

    curves = [(step, count) for step, count in steps if isinstance(step.source, RenyiCurve)]
    if curves:
        from symdp.law.renyi_bound import RenyiBoundLaw

        known = [(step, count) for step, count in steps if not isinstance(step.source, RenyiCurve)]
        other = "add" if direction == "remove" else "remove"
        return RenyiBoundLaw(
            curves,
            total_law(known, direction) if known else None,
            lambda: total_law(steps, other),
        )
    families, others = [], []
    for members in _grouped(steps):
        family = _family(tuple(members), generation()) if len(members) >= _LEAST else None
        if family is None:
            others += members
        else:
            # Both directions of mirrored steps have one law.
            side = "remove" if members[0][0].is_mirrored else direction
            families.append(ManySteps(family, side))
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
def _family(members: tuple[tuple[Mechanism, int], ...], _: int) -> StepFamily | None:
    """Return what stands for steps of one formula, None where they have no formula."""
    from symdp.law.compile import loss_law
    from symdp.law.formula import formula_of
    from symdp.law.parameter_rule import StepFamily

    if allocated_steps(members[0][0]) is not None:
        return None
    found = [formula_of(mechanism, "remove") for mechanism, _ in members]
    formulas = {id(pair[0]) for pair in found if pair is not None}
    if None in found or len(formulas) != 1:
        return None
    formula = next(pair[0] for pair in found if pair is not None)
    vectors = [tuple(pair[1]) for pair in found if pair is not None]
    counts = np.asarray([float(count) for _, count in members])
    name = members[0][0].name
    return StepFamily(
        vectors,
        counts,
        lambda k: loss_law(members[k][0], "remove"),
        lambda values: formula.at(values, name),
    )
