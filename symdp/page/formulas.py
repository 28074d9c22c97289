"""Formulas of a report that stand in no section of a derivation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import sympy as sp

from symdp.page.notation import read
from symdp.page.section import Line, equation
from symdp.page.series_sections import edgeworth_corrections, saddle_corrections

if TYPE_CHECKING:
    from symdp.derive import Derivation


def tails(derivation: Derivation, values: Mapping[str, str]) -> list[Line]:
    """Return the tail constants: their formulas, what they bound, and values that were proved.

    Parameters
    ----------
    derivation
        What the constants belong to.
    values
        From the name of a constant to its value or the reason why it has none, in words.
    """
    rows = []
    for constant in derivation.tails:
        right, known = constant.expression, values.get(constant.name, "")
        if right is not None and right.has(sp.zoo, sp.nan):
            right = None  # a formula that divides by a width of zero
        note = f"{constant.bounds}; {known}" if known else constant.bounds
        own = (constant.reason or "the formula divides by zero") if right is None else right
        rows.append(equation(constant.notation, own, note=note))
    return rows


def series(order: int) -> list[Line]:
    """Return the corrections of the saddle-point and Edgeworth series up to an order."""
    rows = [
        equation("δ(ε)", "=1 − (1 − δ_∞)^n + e^{F₀}/√(2πF₂)·(1 + c₁ + c₂ + …)", relation="≈"),
        equation("ρ_j", "=F_j/F₂^{j/2}"),
    ]
    for letter, found in (("c", saddle_corrections(order)), ("e", edgeworth_corrections(order))):
        if letter == "e":
            rows.append(equation("E(x)", "=Φ(x) − φ(x)·(e₁ + e₂ + …)"))
        rows += [
            equation(read(f"{letter}_{{}}", sp.Integer(k)), own)
            for k, own in enumerate(found, start=1)
        ]
    return rows
