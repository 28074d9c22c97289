"""How the saddle point t₀ and log δ behave for many steps, expanded from the cumulants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import sympy as sp
from sympy.functions.elementary.hyperbolic import HyperbolicFunction

from symdp.derive.records import COUNT, EPSILON
from symdp.expansion import (
    edgeworth_density_polynomials,
    edgeworth_polynomials,
    standardised_cumulant,
)
from symdp.expansion.edgeworth import X
from symdp.model import tidy

Regime = Literal["central", "fixed", "large"]

DEVIATION = sp.Symbol("xi", real=True)
LEVEL = sp.Symbol("level", real=True)
PLACE = sp.Symbol("t_star", real=True)
STEP = sp.Symbol("h", positive=True)
_LONG = 60  # operations up to which a term is simplified
_MOST_CUMULANTS = 12  # of a series that is written out
LATTICE = "a lattice loss has oscillating terms of this order"


@cache
def kappa(j: int) -> sp.Symbol:
    """Return the symbol of K⁽ʲ⁾(0), the j-th cumulant of one step under P."""
    return sp.Symbol(f"kappa_{j}", positive=True) if j < 3 else sp.Symbol(f"kappa_{j}", real=True)


@cache
def at_place(j: int) -> sp.Symbol:
    """Return the symbol of K⁽ʲ⁾(s), of one step at the tilt s of the regime."""
    return sp.Symbol(f"K_{j}", positive=True) if j == 2 else sp.Symbol(f"K_{j}", real=True)


@dataclass(frozen=True)
class Expansion:
    """One regime of ε as n grows.


    Attributes
    ----------
    regime
        "central": ε = nκ₁ + ξ√(nκ₂), where δ tends to a limit in (0, 1) [SPA Thm 9];
        "fixed": ε does not move, δ tends to 1;
        "large": ε = nλ (λ is `level`) with λ > κ₁, δ falls exponentially.
    epsilon
        ε as an expression of n.
    tilt
        The saddle point t₀ of [SPA (50)], up to an error of order n^tilt_order.
    tilt_order
    log_delta
        log δ, or log(1 − δ) in the fixed regime, up to an error of order n^log_order; None where
        there is no expansion.
    log_order
    condition
        The equation that defines the tilt s in the formulas; None where there is no s.
    reason
        Why an order is missing.
    """

    regime: Regime
    epsilon: sp.Expr
    tilt: sp.Expr
    tilt_order: sp.Rational
    log_delta: sp.Expr | None
    log_order: sp.Rational | None
    condition: sp.Equality | None = None
    reason: str = ""

    def put(self, values: Mapping[sp.Symbol, sp.Expr]) -> Expansion:
        """Return the expansion with values for its symbols, the tilt s last."""
        place = {PLACE: values[PLACE]} if PLACE in values else {}
        rest = {symbol: value for symbol, value in values.items() if symbol != PLACE}

        def inner(expression: sp.Expr) -> sp.Expr:
            return expression.subs(rest).subs(place)

        return replace(
            self,
            epsilon=inner(self.epsilon),
            tilt=inner(self.tilt),
            log_delta=None if self.log_delta is None else inner(self.log_delta),
            condition=None if place else self.condition,
        )


def expansions(order: int, is_lattice: bool = False) -> tuple[Expansion, ...]:
    """Return the expansions of t₀ and log δ in all regimes, in cumulant symbols."""
    return central(order, is_lattice), fixed(order, is_lattice), large(order, is_lattice)


def central(order: int, is_lattice: bool = False) -> Expansion:
    """Expand at ε = nκ₁ + ξ√(nκ₂): t₀ ≈ τ/√(nκ₂) with τ − 1/τ = ξ [SPA Prop 8], δ → Φ̄(ξ).

    With h = n^{−1/2} and g = h/√κ₂, δ = P(L > ε) − e^ε Q(L > ε): the first term is that of the
    Edgeworth series, the second ∫ e^{−s} f(ε + s) ds = Σ g^{i+1} D^i f(ξ) of its density f.
    """
    n, b = COUNT, DEVIATION
    epsilon = n * kappa(1) + b * sp.sqrt(n * kappa(2))
    known = 0 if is_lattice else order
    return Expansion(
        "central",
        epsilon,
        _central_tilt(order),
        -sp.Rational(order + 2, 2),
        _central_log(known),
        -sp.Rational(known + 1, 2),
        reason=LATTICE if is_lattice and order else "",
    )


@cache
def _central_tilt(order: int) -> sp.Expr:
    """Solve κ₂u + Σ κ_{j+2}h^j u^{j+1}/(j+1)! − ξ√κ₂ − 1/u − h/(1 + hu) = 0 for t₀ = hu."""
    h, b = STEP, DEVIATION
    lead = sp.Symbol("u_0", positive=True)
    u: sp.Expr = lead
    parts = [lead * h]
    for k in range(1, order + 1):
        unknown = sp.Dummy("u")
        trial = u + unknown * h**k
        series = sum(
            kappa(j + 2) * h**j * trial ** (j + 1) / sp.factorial(j + 1) for j in range(k + 1)
        )
        inverse = sum((-1) ** j * ((trial - lead) / lead) ** j for j in range(k + 1)) / lead
        pole = sum((-1) ** j * h ** (j + 1) * trial**j for j in range(k))
        equation = sp.expand(series - inverse - pole).coeff(h, k)
        slope = sp.diff(equation, unknown)
        term = sp.factor(-equation.subs(unknown, 0) / slope)
        u += term * h**k
        parts.append(term * h ** (k + 1))
    root = (b / 2 + sp.sqrt(b**2 + 4) / 2) / sp.sqrt(kappa(2))
    terms = (term.subs(lead, root) for term in parts)
    return sp.Add(*terms).subs(h, 1 / sp.sqrt(COUNT))


@cache
def _central_log(order: int) -> sp.Expr:
    h, b = STEP, DEVIATION
    phi = sp.exp(-(X**2) / 2) / sp.sqrt(2 * sp.pi)
    survival = sp.erfc(b / sp.sqrt(2)) / 2
    coefficients = delta_coefficients(order)
    ratio = [(phi * c).subs(X, b) / survival for c in coefficients]
    # log(1 + Σ r_j h^j) by the recurrence of the logarithm of a power series.
    logs: list[sp.Expr] = [sp.S.Zero]
    full = [sp.S.One, *ratio]
    for k in range(1, order + 1):
        lower = sum((j * logs[j] * full[k - j] for j in range(1, k)), sp.S.Zero)
        logs.append(full[k] - lower / k)
    total = sp.log(survival) + sp.Add(*(logs[k] * h**k for k in range(1, order + 1)))
    return total.subs(h, 1 / sp.sqrt(COUNT))


def delta_coefficients(order: int) -> list[sp.Expr]:
    """Return c_1, … with δ = Φ̄(x) + φ(x) Σ c_j h^j, polynomials in x and the cumulants."""
    h, x = STEP, X
    g = h / sp.sqrt(kappa(2))
    values = {
        standardised_cumulant(j): kappa(j) / kappa(2) ** sp.Rational(j, 2)
        for j in range(3, order + 3)
    }
    tail = [p.subs(values) for p in edgeworth_polynomials(order)]
    density = [sp.S.One, *(r.subs(values) for r in edgeworth_density_polynomials(order))]
    total = sp.Add(*(p * h ** (j + 1) for j, p in enumerate(tail)))
    for k, part in enumerate(density):
        derivative = part
        for i in range(order - k):
            total -= g ** (i + 1) * h**k * derivative
            derivative = sp.diff(derivative, x) - x * derivative
    expanded = sp.expand(total)
    return [sp.factor(expanded.coeff(h, j)) for j in range(1, order + 1)]


@cache
def fixed(order: int, is_lattice: bool = False) -> Expansion:
    """Expand at fixed ε: t₀ = 1/(nκ₁) + …, and 1 − δ falls like e^{nK(s)} with K′(s) = 0.

    1 − δ is the integral of [SPA (48)] along a line left of the pole at 0; its saddle point lies
    in (−1, 0) and tends to s.
    """
    n, s, step = COUNT, PLACE, STEP
    t: sp.Expr = step / kappa(1)
    for k in range(2, order + 2):
        unknown = sp.Dummy("u")
        trial = t + unknown * step**k
        slope = sum(kappa(j + 1) * trial**j / sp.factorial(j) for j in range(k + 1))
        pole = trial * sum((-1) ** j * trial**j for j in range(k))
        # t(nK′(t) − ε) − 1 − t/(1 + t) = 0 with n = 1/h.
        equation = sp.expand(trial * (slope / step - EPSILON) - 1 - pole).coeff(step, k - 1)
        t += sp.factor(-equation.subs(unknown, 0) / sp.diff(equation, unknown)) * step**k
    return Expansion(
        "fixed",
        EPSILON,
        t.subs(step, 1 / n),
        -sp.Integer(order + 2),
        None if is_lattice else _saddle_log(EPSILON, order),
        None if is_lattice else -sp.Integer(min(order, 1) + 1),
        sp.Eq(sp.Derivative(sp.Function("K")(s), s), 0),
        LATTICE if is_lattice else "",
    )


@cache
def large(order: int, is_lattice: bool = False) -> Expansion:
    """Expand at ε = nλ, λ > κ₁: with K′(s) = λ, t₀ → s, log δ ≈ n(K(s) − λs) − ½ log n − …."""
    n, s = COUNT, PLACE
    t: sp.Expr = s
    if order:
        t += (1 / s + 1 / (1 + s)) / (n * at_place(2))
    return Expansion(
        "large",
        n * LEVEL,
        t,
        -sp.Integer(min(order, 1) + 1),
        None if is_lattice else _saddle_log(n * LEVEL, order),
        None if is_lattice else -sp.Integer(min(order, 1) + 1),
        sp.Eq(sp.Derivative(sp.Function("K")(s), s), LEVEL),
        LATTICE if is_lattice else "",
    )


def _saddle_log(epsilon: sp.Expr, order: int) -> sp.Expr:
    """Return nK − εs − ½ log(2πnK₂) − log|s(1+s)| and, from order 1 on, the term of order 1/n.

    The factor e^{(…)} G(z) with the part of ε that does not grow moved into G: there G′/G and G″/G
    change, and the correction is K₄/8K₂² − 5K₃²/24K₂³ + G′K₃/2GK₂² − G″/2GK₂.
    """
    n, s = COUNT, PLACE
    lead = (
        n * at_place(0)
        - epsilon * s
        - sp.log(2 * sp.pi * n * at_place(2)) / 2
        - sp.log(sp.Abs(s * (1 + s)))
    )
    if not order:
        return lead
    own = sp.S.Zero if epsilon.has(n) else epsilon
    first = -own - 1 / s - 1 / (1 + s)  # G′/G of e^{−εz}/(z(1+z))
    second = first**2 + 1 / s**2 + 1 / (1 + s) ** 2
    k2, k3, k4 = (at_place(j) for j in (2, 3, 4))
    correction = (
        k4 / (8 * k2**2) - 5 * k3**2 / (24 * k2**3) + first * k3 / (2 * k2**2) - second / (2 * k2)
    )
    return lead + correction / n


def substituted(
    expansion: Expansion,
    at_zero: Callable[[int], sp.Expr],
    derivative: Callable[[int], sp.Expr],
    tilt: sp.Symbol,
    place: sp.Expr | None,
) -> Expansion:
    """Put a closed-form CGF into an expansion."""
    formulas = [expansion.epsilon, expansion.tilt, expansion.log_delta or sp.S.Zero]
    used = set().union(*(formula.free_symbols for formula in formulas))
    values: dict[sp.Symbol, sp.Expr] = {}
    for j in range(_MOST_CUMULANTS):
        if j and kappa(j) in used:
            values[kappa(j)] = at_zero(j)
        if at_place(j) in used:
            values[at_place(j)] = derivative(j).subs(tilt, PLACE)
    if place is not None:
        values[PLACE] = place
    found = expansion.put(values)
    short = None if found.log_delta is None else _shorter(found.log_delta)
    return replace(found, tilt=_shorter(found.tilt), log_delta=short)


def _shorter(expression: sp.Expr) -> sp.Expr:
    """Shorten the terms one by one; a sum of logs and powers of n is not to be merged.

    Of hyperbolic functions SymPy's simplify makes longer ones, in seconds.
    """
    return sp.Add(
        *(
            term if sp.count_ops(term) >= _LONG else min((term, _rewritten(term)), key=sp.count_ops)
            for term in sp.Add.make_args(expression)
        )
    )


def _rewritten(term: sp.Expr) -> sp.Expr:
    return sp.factor_terms(term) if term.has(HyperbolicFunction) else tidy.simplify(term)
