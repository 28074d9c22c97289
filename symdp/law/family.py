"""Families: the steps of a composition that differ in the values of some parameters alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from symdp.model.allocation import allocated_steps

if TYPE_CHECKING:
    import sympy as sp

    from symdp.law.condensed import Family
    from symdp.law.loss import LossLaw
    from symdp.law.step import Array
    from symdp.law.total import SumLaw
    from symdp.model.mechanism import Mechanism

_LEAST = 48  # distinct steps from which on fewer may stand for them
_MOST_AXES = 3
_RATE = "sampling rate"  # no name of a parameter, for it has a blank

Steps = Sequence[tuple["Mechanism", int]]


def total_law(steps: Steps, direction: str) -> SumLaw:
    """Return the law of the total privacy loss, of very many distinct steps a condensed one."""
    from symdp.law.compile import loss_law
    from symdp.law.condensed import CondensedLaw
    from symdp.law.total import SumLaw

    def parts(some: Steps) -> list[tuple[LossLaw, int]]:
        return [(loss_law(mechanism, direction), count) for mechanism, count in some]

    families, others = find_families(steps, direction)
    if not families:
        return SumLaw(parts(steps))
    return CondensedLaw(families, parts(others), lambda: parts(steps))


def find_families(steps: Steps, direction: str) -> tuple[list[Family], list[tuple[Mechanism, int]]]:
    """Return the families that few steps can stand for, and all steps that belong to none.

    Parameters
    ----------
    steps
        Distinct concrete mechanisms, each with its count.
    direction
        "remove" or "add", for the laws.
    """
    if len(steps) < _LEAST:
        return [], list(steps)
    groups: dict[object, list[tuple[Mechanism, int]]] = {}
    for mechanism, count in steps:
        groups.setdefault(_key(mechanism), []).append((mechanism, count))
    families, others = [], []
    for key, members in groups.items():
        family = None if key is None or len(members) < _LEAST else _family(members, direction)
        if family is None:
            others += members
        else:
            families.append(family)
    return families, others


def _values(mechanism: Mechanism) -> dict[str, sp.Expr]:
    """Return the values that make a step of its template; the rate is one of them."""
    assert mechanism.template is not None
    used = {str(s.name) for formula in _formulas(mechanism.template) for s in formula.free_symbols}
    found = {name: value for name, value in mechanism.bound if name in used}
    if mechanism.sampling is not None:
        found[_RATE] = mechanism.sampling.rate
    return found


def _formulas(mechanism: Mechanism) -> list[sp.Basic]:
    """Return the expressions of densities and support."""
    held = [*vars(mechanism.source).values(), *vars(mechanism.support).values()]
    flat = [one for part in held for one in (part if isinstance(part, tuple) else (part,))]
    return [one for one in flat if hasattr(one, "free_symbols")]


def _is_abrupt(template: Mechanism, names: Iterable[str]) -> bool:
    """Return whether a formula may jump or turn at a value of one of these parameters.

    What depends on the variable as well only moves where it turns.
    """
    import sympy as sp

    kinds = (sp.Abs, sp.sign, sp.Min, sp.Max, sp.floor, sp.ceiling, sp.Heaviside)
    turning: set[sp.Basic] = set()
    for node in (
        node for formula in _formulas(template) for node in sp.preorder_traversal(formula)
    ):
        if isinstance(node, kinds):
            turning.update(node.args)
        elif isinstance(node, sp.Piecewise):
            turning.update(*(condition.atoms(sp.Rel) for _, condition in node.args))
    free = [{str(s.name) for s in inner.free_symbols} for inner in turning]
    variable = str(template.variable.name)
    return any(own & set(names) and variable not in own for own in free)


def _key(mechanism: Mechanism) -> object:
    """Return what steps of one family share, or None for a step that belongs to none."""
    if mechanism.template is None or allocated_steps(mechanism) is not None:
        return None
    sampling = mechanism.sampling
    own = None if sampling is None else vars(sampling) | {"rate": None}
    scheme = None if own is None else tuple(own.values())
    whole = {p.name for p in mechanism.declared if p.symbol.is_integer}
    fixed = tuple(
        (name, value) for name, value in sorted(_values(mechanism).items()) if name in whole
    )
    return mechanism.template.key, scheme, mechanism.neighbours, fixed


def _family(members: list[tuple[Mechanism, int]], direction: str) -> Family | None:
    """Return the family of such steps, or None where their parameters span too many axes."""
    from symdp.law.compile import loss_law
    from symdp.law.condensed import Family

    first = members[0][0]
    values = [_values(mechanism) for mechanism, _ in members]
    table = {name: np.asarray([float(v[name]) for v in values]) for name in values[0]}
    axes = [_Axis(name, column) for name, column in table.items() if np.ptp(column) > 0]
    if not 1 <= len(axes) <= _MOST_AXES:
        return None
    assert first.template is not None
    if _is_abrupt(first.template, [axis.name for axis in axes]):
        return None
    places = np.stack([axis.places(table[axis.name]) for axis in axes], axis=1)
    counts = np.asarray([float(count) for _, count in members])

    def law_at(place: tuple[float, ...]) -> LossLaw:
        chosen = dict(values[0])
        for axis, x in zip(axes, place, strict=True):
            chosen[axis.name] = axis.value(x)
        return loss_law(_made(first, chosen), direction)

    family = Family(places, counts, law_at, lambda k: loss_law(members[k][0], direction))
    return family if family.is_worthwhile else None


def _made(like: Mechanism, values: dict[str, sp.Expr | float]) -> Mechanism:
    """Return the step of a family with other values."""
    assert like.template is not None
    # Parameters that only the rate was made of have values, too.
    known = {parameter.name for parameter in like.template.declared}
    given = {name: value for name, value in like.bound if name in known} | values
    rate = given.pop(_RATE, None)
    made = replace(like.template(**given), relation=like.relation)
    if like.sampling is None:
        return made
    assert rate is not None
    own = like.sampling
    return made.subsample(own.scheme, rate, own.batch, records=own.records, group=own.group)


class _Axis:
    """A parameter's values between the least and the largest, mapped to [−1, 1]."""

    def __init__(self, name: str, values: Array) -> None:
        self.name = name
        self.low, self.high = float(values.min()), float(values.max())
        self.is_logarithmic = self.low > 0

    def places(self, values: Array) -> Array:
        low, high = self.low, self.high
        if self.is_logarithmic:
            share = np.log(values / low) / np.log(high / low)
        else:
            share = (values - low) / (high - low)
        return np.asarray(np.clip(2.0 * share - 1.0, -1.0, 1.0))

    def value(self, place: float) -> float:
        share = 0.5 * (place + 1.0)
        if share in (0.0, 1.0):
            return self.high if share else self.low
        if self.is_logarithmic:
            found = self.low * float((self.high / self.low) ** share)
        else:
            found = self.low + (self.high - self.low) * share
        return min(max(found, self.low), self.high)
