"""A formula that was there is there: which of P, K, κ₂, ω, F and V₁ have one, by density.

A check that drops a wrong formula leaves an integral in its place, and the page is still right:
this table notices. A formula more than it has is welcome and is entered.
"""

from __future__ import annotations

import pytest
import sympy as sp

import symdp
from symdp.derive import Derivation, derive
from symdp.model.mechanism import Mechanism

X, K = sp.Symbol("x", real=True), sp.Symbol("k", integer=True)
S = sp.Symbol("s", positive=True)
LINE, RAY = (-sp.oo, sp.oo), (0, sp.oo)
BUILT = (
    *("gaussian", "laplace", "logistic", "gumbel", "discrete_laplace", "discrete_gaussian"),
    *("exponential", "negative_binomial", "student_t"),
)
WRITTEN = {  # noise whose constant the package finds
    "ripples on normal noise": (sp.exp(-(X**2) / 8) * (2 + sp.cos(2 * sp.pi * X)), LINE),
    "ripples on a ray": (sp.exp(-X) * (2 + sp.cos(3 * X)), RAY),
    "hyperbolic secant": (1 / sp.cosh(X), LINE),
    "gamma of order three": (X**2 * sp.exp(-X), RAY),
    "cauchy": (1 / (1 + X**2), LINE),
    "semicircle": (sp.sqrt(16 - X**2), (-4, 4)),
    "triangle": (3 - sp.Abs(X), (-3, 3)),
    "squares of gamma functions": (sp.binomial(K + 3, 3) ** 2 * sp.exp(-K), "naturals"),
    "weibull": (X * sp.exp(-(X**2)), RAY),
    "normal and laplace": (sp.exp(-(X**2) / 2 - sp.Abs(X)), LINE),
}
PAIRS = {
    "two variances": (sp.exp(-(X**2) / 2), sp.exp(-(X**2) / 8) / 2, LINE),
    "two rates": (2 * sp.exp(-2 * X), sp.exp(-X), RAY),
    "two waves": (1 + sp.cos(X) / 2, 1 + sp.sin(X) / 2, (-sp.pi, sp.pi)),
    "two betas": (6 * X * (1 - X), 12 * X * (1 - X) ** 2, (0, 1)),
    "two geometrics": (
        sp.exp(-K) * (1 - sp.exp(-1)),
        sp.exp(-2 * K) * (1 - sp.exp(-2)),
        "naturals",
    ),
}
DENSITIES = (*BUILT, *WRITTEN, *PAIRS)
FORMULAS = {
    "gaussian": "P K κ₂ ω F V₁",
    "laplace": "P K κ₂ ω F V₁",
    "logistic": "P K κ₂ ω F",
    "gumbel": "P K κ₂ ω F",
    "discrete_laplace": "P K κ₂ F",
    "discrete_gaussian": "",
    "exponential": "P K κ₂ ω F V₁",
    "negative_binomial": "P",
    "student_t": "P K ω",
    "ripples on normal noise": "P K κ₂ ω",
    "ripples on a ray": "P",
    "hyperbolic secant": "P K ω",
    "gamma of order three": "P K ω F",
    "cauchy": "P K ω",
    "semicircle": "P",
    "triangle": "P K ω F",
    "squares of gamma functions": "P",
    "weibull": "P",
    "normal and laplace": "P K κ₂ ω F",
    "two variances": "P K κ₂ ω F",
    "two rates": "P K κ₂ ω F",
    "two waves": "P",
    "two betas": "P K κ₂ ω F",
    "two geometrics": "P K κ₂",
}
UNDONE = (sp.Integral, sp.Sum, sp.Derivative)


def mechanism(name: str) -> Mechanism:
    if name in BUILT:
        return getattr(symdp.mechanisms, name)
    if name in WRITTEN:
        density, support = WRITTEN[name]
        variable = K if support == "naturals" else X
        return Mechanism.additive(density, variable, 1, support, normalize=True)
    p, q, support = PAIRS[name]
    variable = K if support == "naturals" else X
    return Mechanism.from_pair(p, q, variable, support, normalize=True)


def formulas_of(name: str) -> str:
    """Return the names of what has a formula without an integral."""
    d: Derivation = derive(mechanism(name))
    variance = d.cumulant(2)
    if d.cgf.expression is None:
        variance = None
    formulas = {
        "P": d.pair.P,
        "K": d.cgf.expression,
        "κ₂": variance,
        "ω": d.pld_density.expression,
        "F": d.pld_cdf.expression,
        "V₁": d.tails["van_der_corput_1"].expression,
    }
    there = (n for n, form in formulas.items() if form is not None and not form.has(*UNDONE))
    return " ".join(there)


@pytest.mark.quick_cases("gaussian", "two rates")
@pytest.mark.parametrize("name", DENSITIES)
def test_what_had_a_formula_has_one(name: str) -> None:
    assert formulas_of(name) == FORMULAS[name]
