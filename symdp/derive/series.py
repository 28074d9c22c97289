"""Cumulants, saddle point, Edgeworth and many steps: functions of a loss and its CGF."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.normal_form import linear_root
from symdp.derive.asymptotics import (
    LEVEL,
    QUANTILE,
    EpsilonAsymptotics,
    Expansion,
    expansions,
    in_cumulants,
    kappa,
    sampled_cumulants,
    substituted,
)
from symdp.derive.cgf import derive_cgf
from symdp.derive.child import compute
from symdp.derive.orders import (
    check_order,
    cumulants_of,
    derivative_of,
    sampled_pair,
    value_at,
)
from symdp.derive.records import COUNT, EPSILON
from symdp.errors import InputError
from symdp.expansion import F, edgeworth_polynomials, saddlepoint_series, standardised_cumulant
from symdp.model import tidy

if TYPE_CHECKING:
    from symdp.derive.orders import Sampled
    from symdp.derive.privacy_loss import PrivacyLoss
    from symdp.derive.records import CGF, HasCGF

_SECONDS_OF_A_LIMIT = 5.0  # where a cumulant is 0/0
_SHARE = 0.4  # of the clock, for one derivative
_LEAST = 0.25  # seconds


def cumulant(d: HasCGF, order: int) -> sp.Expr:
    """Return the tilted cumulant K^(order)(t) as an expression of the tilt.

    Where neither it nor K has a closed form it is given by the tilted raw moments
    m_k(t) = ∫ ℓᵏ P^{1+t} Q^{−t} / ∫ P^{1+t} Q^{−t}, over the outputs whose loss is finite, as
    integrals or sums that are written out.
    """
    check_order(order, 1)
    found = closed_cumulant(d, order)
    if found is not None:
        return found
    whole = d.moment_integral
    tilted = [sp.diff(whole, d.cgf.tilt, k) / whole for k in range(1, order + 1)]
    return cumulants_of([sp.S.One, *tilted])[-1]


def closed_cumulant(d: HasCGF, order: int) -> sp.Expr | None:
    """K^(order) where K has a closed form, and it has derivatives in closed form, in time."""
    tilt, expression = d.cgf.tilt, d.cgf.expression
    if expression is None:
        return None
    found = d.clock.attempt(lambda: derivative_of(expression, tilt, order), None, _SHARE, _LEAST)
    # A special function may have no derivative by its parameters.
    return None if found is None or found.has(sp.Derivative, sp.Subs) else found


def msd(d: HasCGF, order: int, substitute: bool = False) -> sp.Expr:
    """Return MSD_order ≈ δ(ε), the method of steepest descent [SPA (60), (61)].

    MSD_k = 1 − (1 − δ_∞)ⁿ + e^{F₀}/√(2πF₂)·(1 + corrections up to n^{−k}), F_j the j-th derivative
    of F(z) = nK(z) − εz − log z − log(1+z) at t and δ_∞ the mass of an infinite loss.
    """

    check_order(order, 0)
    formula = sp.exp(F(0)) / sp.sqrt(2 * sp.pi * F(2)) * saddlepoint_series(order)
    if substitute:
        formula = formula.xreplace(dict(saddle_terms(d, order)))
    return 1 - finite_mass(d) + formula


def finite_mass(d: HasCGF) -> sp.Expr:
    """Return (1 − δ_∞)ⁿ, the probability under P that no step's loss is infinite."""
    return (1 - d.mass_at_infinity) ** COUNT


def saddle_terms(
    d: HasCGF, order: int, substitute: bool = True
) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
    """Return what F₀, F₁, … of `msd` mean: F_j = nK⁽ʲ⁾(t) + (d/dt)ʲ(−εt − log t − log(1+t)).

    F_j for j ≤ 2·order + 2 and t > 0 [SPA (48)].
    """

    check_order(order, 0)
    tilt = d.cgf.tilt
    z = sp.Symbol(tilt.name, positive=True)  # the saddle point lies right of 0
    rest = -EPSILON * z - sp.log(z) - sp.log(1 + z)
    terms = []
    for j in range(2 * order + 3):
        own: sp.Expr = sp.Symbol(f"kappa_{j}", real=True)
        if substitute:
            found = closed_derivative(d, j) if j else closed_form(d)
            own = found.xreplace({tilt: z})
        terms.append((F(j), COUNT * own + sp.diff(rest, z, j)))
    return tuple(terms)


def edgeworth(d: HasCGF, order: int, substitute: bool = False, at: sp.Expr | int = 0) -> sp.Expr:
    """Return E_order(x), the Edgeworth series of the standardised finite loss's distribution.

    E_k(x) = Φ(x) − φ(x) Σ_{j≤k} p_j(x) in λ_j = κ_j/κ₂^{j/2}, as behind [EA Prop 3.2].
    """

    check_order(order, 0)
    x = sp.Symbol("x", real=True)
    normal = (1 + sp.erf(x / sp.sqrt(2))) / 2
    density = sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)
    formula = normal - density * sp.Add(*edgeworth_polynomials(order))
    if not substitute:
        return formula
    kappa = {j: cumulant_at(d, j, at) for j in range(2, order + 3)}
    half = sp.Rational(1, 2)
    return formula.xreplace(
        {
            standardised_cumulant(j): COUNT ** (1 - j * half) * kappa[j] / kappa[2] ** (j * half)
            for j in range(3, order + 3)
        }
    )


def cumulant_at(d: HasCGF, order: int, at: sp.Expr | int) -> sp.Expr:
    """Return the closed-form cumulant at one tilt, as a limit where the formula reads 0/0."""
    check_order(order, 1)
    if not isinstance(at, int | sp.Expr):
        raise InputError(f"the tilt must be a number or a SymPy expression, not {at!r}")
    derivative = closed_derivative(d, order)
    place = sp.sympify(at, strict=True)
    value = derivative.subs(d.cgf.tilt, place)
    if value.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        seconds = min(_SECONDS_OF_A_LIMIT, max(_LEAST, d.clock.left))
        limit = compute("limit", (derivative, d.cgf.tilt, place, "+"), seconds)
        if limit is None:
            raise InputError(f"the cumulant of order {order} has no value found at {place}")
        return limit
    return min(tidy.simplify(value), tidy.factor(value), key=sp.count_ops)


def asymptotics(d: PrivacyLoss, order: int = 1, substitute: bool = False) -> tuple[Expansion, ...]:
    """Return how t₀ and log δ behave for many steps, in three regimes of ε.

    "central" ε = nκ₁ + ξ√(nκ₂) [SPA Prop 8, Thm 9], "fixed" ε, and "large" ε = nλ.  Where the loss
    is infinite with positive probability, log δ in the first and the last is the log of what finite
    losses add, δ − 1 + (1 − δ_∞)ⁿ, and the second needs κ₁ > 0 > K′(−1).
    """

    check_order(order, 0)
    _refuse_one_value(d)
    central, *others = expansions(order, d.pair.is_discrete)
    if d.mass_at_infinity != 0 and central.log_delta is not None:
        central = replace(
            central, log_delta=central.log_delta + COUNT * sp.log(1 - d.mass_at_infinity)
        )
    found = (central, *others)
    if not substitute:
        return found
    levels = {"fixed": sp.S.Zero, "large": LEVEL}
    places = {name: invert_slope(d, level) for name, level in levels.items()}
    return tuple(
        substituted(
            expansion,
            lambda j: cumulant_at(d, j, 0),
            lambda j: closed_derivative(d, j) if j else closed_form(d),
            d.cgf.tilt,
            places.get(expansion.regime),
        )
        for expansion in found
    )


def epsilon_asymptotics(
    d: PrivacyLoss, order: int = 1, substitute: bool = True, rate_order: int = 4
) -> EpsilonAsymptotics:
    """Return ε at fixed δ for many steps: nκ₁ + z√(nκ₂) + (z² − 1)κ₃/6κ₂ − 1 + O(n^{−1/2}).

    z is Φ̄⁻¹(δ) and κ_j the cumulants of one step.  An estimate, for n so large that
    √(nκ₂) is well above 1.
    """

    check_order(order, 0)
    check_order(rate_order, 2)
    if d.mass_at_infinity != 0:
        raise InputError(
            "the loss is infinite with positive probability, which n steps bring to 1: "
            "epsilon does not exist for large n"
        )
    _refuse_one_value(d)
    found = in_cumulants(order, d.pair.is_discrete)
    if not substitute:
        return found
    values, power = cumulants(d, order + 2, rate_order)
    rules = {kappa(j): value for j, value in enumerate(values, start=1)}
    terms = tuple(replace(t, expression=t.expression.subs(rules)) for t in found.terms)
    more = sp.S.Zero
    if power is not None:
        with suppress(InputError):  # of a moment that is infinite
            first, second = cumulants(d, 2, power + 1)[0]
            root = sp.sqrt(COUNT) * (sp.sqrt(second) - sp.sqrt(values[1]))
            more = COUNT * (first - values[0]) + QUANTILE * root
    terms = tuple(t for t in terms if t.expression != 0)
    return replace(found, terms=terms, rate_order=power, next_rate_term=more)


def _refuse_one_value(d: PrivacyLoss) -> None:
    if d.only_loss is not None:
        raise InputError("the finite loss takes one value alone: δ of n steps is a formula")


def cumulants(
    d: PrivacyLoss, highest: int, rate_order: int
) -> tuple[tuple[sp.Expr, ...], int | None]:
    """Return κ₁, …, and the power of the rate that they are series up to, if they are."""

    if d.cgf.expression is not None:
        return tuple(cumulant_at(d, j, 0) for j in range(1, highest + 1)), None
    sampled = sampled_pair(d.pair)
    base = None if sampled is None else base_cgf(d, sampled)
    if sampled is None or base is None or base.expression is None:
        closed_form(d)  # raises, and says why there is none
    assert sampled is not None
    assert base is not None
    if d.mass_at_infinity != 0:
        raise InputError("cumulants given a finite loss are no series in the rate here")

    def likelihood(i: int) -> sp.Expr:
        if i < 2:  # P of the base pair may lie outside Q
            return 1 - i * d.mass_at_minus_infinity / sampled.rate
        found = value_at(base, sp.Integer(i - 1))
        if found is sp.oo:
            raise InputError(f"E (P/Q)^{i} is infinite: the cumulants are no series in the rate")
        return sp.exp(found)

    own = sampled_cumulants(highest, sampled.rate, likelihood, sampled.is_reversed, rate_order)
    return own, rate_order


def base_cgf(d: PrivacyLoss, sampled: Sampled) -> CGF:
    """Return the CGF of the pair that a Poisson-sampled one is made of."""
    return derive_cgf(sampled.base, d.time_limit, d.below_one)


def closed_form(d: HasCGF) -> sp.Expr:
    """Return K(t)."""
    if d.cgf.expression is None:
        raise InputError(
            f"no closed form of the CGF of {d.mechanism.name} was found to substitute "
            f"({d.cgf.reason}); leave substitute out"
        )
    return d.cgf.expression


def closed_derivative(d: HasCGF, order: int) -> sp.Expr:
    """Return K^(order)(t)."""
    closed_form(d)
    found = closed_cumulant(d, order)
    if found is None:
        raise InputError(
            f"no closed form of the derivative of order {order} of {d.mechanism.name}'s CGF was "
            "found; leave substitute out"
        )
    return found


def invert_slope(d: HasCGF, level: sp.Expr) -> sp.Expr | None:
    """Return the tilt t with K′(t) = level where a formula gives it, else None."""
    if d.cgf.expression is None:
        return None
    slope = cumulant(d, 1).rewrite(sp.exp)
    return linear_root(sp.numer(tidy.together(slope - level)), d.cgf.tilt)
