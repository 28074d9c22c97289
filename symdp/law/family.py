"""Distinct steps of one formula, which differ in the values of its parameters alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from symdp.errors import AccuracyError
from symdp.interrupt import generation
from symdp.model.allocation import allocated_steps
from symdp.model.renyi_curve import RenyiCurve

if TYPE_CHECKING:
    from symdp.law.loss import LossLaw
    from symdp.law.shared_nodes import StepRows
    from symdp.law.step import Array
    from symdp.law.total import SumLaw
    from symdp.model.mechanism import Mechanism

_LEAST = 24  # distinct steps of one formula from which on arrays of all of them pay

Steps = Sequence[tuple["Mechanism", int]]


def total_law(steps: Steps, direction: str) -> SumLaw:
    """Return the law of the total privacy loss; very many steps of one formula are one term.

    Of steps that are known by a Rényi curve alone it is a bound on the transform.
    """
    from symdp.law.compile import loss_law
    from symdp.law.many_steps import Stack, StackedLaw
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
    stacks, others = [], []
    for members in _grouped(steps):
        table = _table(tuple(members), generation()) if len(members) >= _LEAST else None
        if table is None:
            others += members
        else:
            # Both directions of mirrored steps have one law.
            side = "remove" if members[0][0].is_mirrored else direction
            stacks.append(Stack(table, side))
    if not stacks:
        return SumLaw(parts(steps), direction)
    return StackedLaw(stacks, parts(others), lambda: parts(steps), direction)


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
def _table(members: tuple[tuple[Mechanism, int], ...], _: int) -> StepRows | None:
    """Return the nodes that steps of one formula share, None where they cannot."""
    from symdp.law.compile import loss_law
    from symdp.law.formula import formula_of
    from symdp.law.shared_nodes import StepRows

    if allocated_steps(members[0][0]) is not None:
        return None
    found = [formula_of(mechanism, "remove") for mechanism, _ in members]
    formulas = {id(pair[0]) for pair in found if pair is not None}
    if None in found or len(formulas) != 1:
        return None
    vectors = [pair[1] for pair in found if pair is not None]
    formula = next(pair[0] for pair in found if pair is not None)
    rows = formula.rows(vectors)
    if rows is None:
        return None
    counts = np.asarray([float(count) for _, count in members])
    values = np.asarray([[float(v) for v in vector] for vector in vectors])
    try:
        return StepRows(rows, counts, _chosen(values), lambda k: loss_law(members[k][0], "remove"))
    except AccuracyError:
        return None


def _chosen(values: Array) -> list[int]:
    """Return the steps with the least and the largest value of each parameter, and a middle one."""
    ends = [*values.argmin(axis=0).tolist(), *values.argmax(axis=0).tolist()]
    logs = np.log(values)
    middle = int(np.abs(logs - 0.5 * (logs.min(axis=0) + logs.max(axis=0))).sum(axis=1).argmin())
    return sorted({*ends, middle})
