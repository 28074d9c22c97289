"""The log of a moment generating function stays real wherever the function is positive."""

from __future__ import annotations

import cmath

import pytest
import sympy as sp

from symdp.derive.simplify import log_of_total

T = sp.Symbol("t", real=True)
C, D = sp.symbols("c d", real=True)  # of no known sign
W = sp.Symbol("w", real=True)  # SymPy orders it behind t: of w − t it factors −1 out
S, U, V = sp.symbols("s u v", positive=True)
TOTALS = {  # the function, and values at which it is positive
    "a root of a difference": (sp.sqrt(C - T), {C: 2, T: 0.5}),
    "a root of a difference, negative at zero": (sp.sqrt(T - C), {C: -1, T: -0.5}),
    "over a root": (1 / sp.sqrt(C - T), {C: 2, T: 0.5}),
    "a root of a quotient": (sp.sqrt((C - T) / (D - T)), {C: 3, D: 2, T: 0.5}),
    "a root of a negative quotient": (sp.sqrt((C - T) / (T - D)), {C: 3, D: 0.25, T: 0.5}),
    "a symbolic power": ((2 * C - 3 * T) ** -S, {C: 2, S: 1.5, T: 0.5}),
    "a symbolic power of what is known": ((1 - 4 * S * T) ** -S, {S: 1.5, T: 0.1}),
    "three halves": ((1 - 2 * T) ** sp.Rational(-3, 2), {T: 0.25}),
    "a square turned": ((T - C) ** 2 * sp.exp(T), {C: 2, T: 0.5}),
    "two roots": (sp.sqrt(C - T) / sp.sqrt(2 * C - T), {C: 2, T: 0.5}),
    "a root of a product with −1": (sp.sqrt(W + (W - 1) * T - T**2), {W: 2, T: 0.5}),
    "a power of a product with −1": ((W + (W - 1) * T - T**2) ** -S, {W: 2, S: 1.5, T: 0.5}),
    "a product with a constant": ((U * W - 2 * U * T) ** -S, {U: 3, W: 2, S: 1.5, T: 0.5}),
    "over a product": ((T / (U * T + U * T**2) + 1 / T) ** S, {U: 3, S: 1.5, T: 0.5}),
    "two signs that cancel": (((U - T) / (V - T)) ** S, {U: 3, V: 2, S: 1.5, T: 0.5}),
    "a constant below": (((2 + T) / (3 + 3 * T)) ** S, {S: 1.5, T: 0.5}),
    "beside an exponential": (sp.exp(T**2) / sp.sqrt(C - 5 * T), {C: 3, T: 0.5}),
}


@pytest.mark.parametrize("name", TOTALS)
def test_a_logarithm_is_real_where_its_argument_is_positive(name: str) -> None:
    total, values = TOTALS[name]
    true = complex(sp.N(total.subs(values)))
    assert true.real > 0
    value = complex(sp.N(log_of_total(total, T).subs(values)))
    assert value.imag == pytest.approx(0.0, abs=1e-12)
    assert value.real == pytest.approx(cmath.log(true).real, rel=1e-12)


KNOWN = [name for name, (total, _) in TOTALS.items() if not total.free_symbols & {C, D, W}]


@pytest.mark.parametrize("name", KNOWN)
def test_every_logarithm_is_of_something_positive(name: str) -> None:
    """Real arithmetic has no logarithm of what is negative, even where two of them would cancel."""
    total, values = TOTALS[name]
    for node in log_of_total(total, T).atoms(sp.log):
        assert node.args[0].subs(values) > 0, node
