"""Comparisons of balls, which may stay open, and the branches that they choose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import acb, arb

from symdp.emit.arb_logarithms import UNKNOWN


def comparison(
    decide: Callable[[arb], bool], refute: Callable[[arb], bool]
) -> Callable[..., bool | None]:
    """A comparison of real parts: true, false, or None where the balls leave it open."""

    def operation(_detail: object, _analytic: bool, left: Any, right: Any) -> bool | None:
        difference = (acb(left) - acb(right)).real
        return True if decide(difference) else (False if refute(difference) else None)

    return operation


def all_of(_detail: object, _analytic: bool, *parts: bool | None) -> bool | None:
    """Whether all hold."""
    return False if False in parts else (None if None in parts else True)


def any_of(_detail: object, _analytic: bool, *parts: bool | None) -> bool | None:
    """Whether one holds."""
    return True if True in parts else (None if None in parts else False)


def piecewise(_detail: object, analytic: bool, *branches: Any) -> acb:
    """Follow the conditions; where a ball straddles a border, unite all branches it may take."""
    united: acb | None = None
    for value, condition in zip(branches[::2], branches[1::2], strict=True):
        if condition is False:
            continue
        united = acb(value) if united is None else united.union(acb(value))
        if condition is True:
            return united
        if analytic:
            return UNKNOWN
    return UNKNOWN
