"""Cumulants, saddle point, Edgeworth and many steps: functions of a loss and its CGF.

Where K has no closed form the mean may have one. On a piece where ℓ is a polynomial, E ℓʲ is made
of ∫ xᵏP dx, the k-th derivative by β of ∫ e^{βx}P dx, which the table of integrals knows of normal
and exponential pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import mpmath
import sympy as sp

from symdp.density.check import parameters_of, with_values
from symdp.density.integrate import definite
from symdp.density.normal_form import Integrand, linear_root, log_form
from symdp.density.pieces import pieces
from symdp.density.signs import interior_point, random_values
from symdp.derive.asymptotics import (
    LEVEL,
    PLACE,
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
from symdp.tolerances import MORE_TIME

if TYPE_CHECKING:
    from symdp.density.records import Piece
    from symdp.derive.orders import Sampled
    from symdp.derive.privacy_loss import PrivacyLoss
    from symdp.derive.records import CGF, HasCGF
    from symdp.model.pair import Pair

_SHARE = 0.4  # of the clock, for one derivative
_LEAST = 0.25  # seconds
_LONGEST = 130  # operations of a mean that a person reads, of the j-th moment j times that
_MOST_DEGREE = 2  # of a loss, whose j-th power is integrated
_ROUNDS = 2  # random values of parameters
_DIGITS = 25
_TOLERANCE = mpmath.mpf(10) ** -15  # of a moment and of one of |ℓ|ʲ, relative


def cumulant(d: HasCGF, order: int) -> sp.Expr:
    """Return the tilted cumulant K^(order)(t) as an expression of the tilt.

    Where neither it nor K has a closed form it is given by the tilted raw moments
    m_k(t) = ∫ ℓᵏ P^{1+t} Q^{−t} / ∫ P^{1+t} Q^{−t}, over the outputs whose loss is finite, as
    integrals or sums that are written out.
    """
    check_order(order, 1)
    closed = closed_cumulant(d, order)
    if closed is not None:
        return closed
    whole = d.moment_integral
    tilted = [sp.diff(whole, d.cgf.tilt, k) / whole for k in range(1, order + 1)]
    return cumulants_of([sp.S.One, *tilted])[-1]


def closed_cumulant(d: HasCGF, order: int) -> sp.Expr | None:
    """K^(order) where K has a closed form, and it has derivatives in closed form, in time."""
    tilt = d.cgf.tilt
    expression = d.cgf.expression
    if expression is None:
        return None
    derivative = d.clock.attempt(
        lambda: derivative_of(expression, tilt, order), None, _SHARE, _LEAST
    )
    # A special function may have no derivative by its parameters.
    if derivative is None or derivative.has(sp.Derivative, sp.Subs):
        return None
    return derivative


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
    payoff = -EPSILON * z - sp.log(z) - sp.log(1 + z)
    terms = []
    for j in range(2 * order + 3):
        cumulant: sp.Expr = sp.Symbol(f"kappa_{j}", real=True)
        if substitute:
            closed = closed_derivative(d, j) if j else closed_form(d)
            cumulant = closed.xreplace({tilt: z})
        terms.append((F(j), COUNT * cumulant + sp.diff(payoff, z, j)))
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
    tilt = sp.sympify(at, strict=True)
    value = derivative.subs(d.cgf.tilt, tilt)
    if value.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        seconds = min(MORE_TIME, max(_LEAST, d.clock.left))
        limit = compute("derivative", (closed_form(d), d.cgf.tilt, tilt, order), seconds)
        if limit is None:
            limit = compute("limit", (derivative, d.cgf.tilt, tilt, "+"), seconds)
        if limit is None:
            raise InputError(f"the cumulant of order {order} has no value found at {tilt}")
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
    fixed, large = others
    middle = _mirrored_tilt(d)
    if middle is not None:
        fixed = fixed.put({PLACE: middle})
    regimes = (central, fixed, large)
    if not substitute:
        return regimes
    tilt = d.cgf.tilt
    put = partial(substituted, at_zero=lambda j: cumulant_at(d, j, 0), tilt=tilt)
    free = partial(put, derivative=lambda j: closed_derivative(d, j) if j else closed_form(d))
    if middle is None:
        fixed = free(fixed, place=invert_slope(d, sp.S.Zero))
    else:
        with suppress(InputError):  # where K reads 0/0 at −1/2 and no limit was found
            fixed = put(
                fixed,
                derivative=lambda j: cumulant_at(d, j, middle) if j else value_at(d.cgf, middle),
                place=middle,
            )
    return free(central, place=None), fixed, free(large, place=invert_slope(d, LEVEL))


def _mirrored_tilt(d: PrivacyLoss) -> sp.Expr | None:
    """Return −1/2, where K(t) = K(−1 − t) has its least value, if both directions are alike."""
    if d.dominating_direction.value == "both":
        return -sp.S.Half
    return None


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
    expansion = in_cumulants(order, d.pair.is_discrete)
    if not substitute:
        return expansion
    values, power = cumulants(d, order + 2, rate_order)
    rules = {kappa(j): value for j, value in enumerate(values, start=1)}
    terms = tuple(replace(t, expression=t.expression.subs(rules)) for t in expansion.terms)
    more = sp.S.Zero
    if power is not None:
        with suppress(InputError):  # of a moment that is infinite
            first, second = cumulants(d, 2, power + 1)[0]
            root = sp.sqrt(COUNT) * (sp.sqrt(second) - sp.sqrt(values[1]))
            more = COUNT * (first - values[0]) + QUANTILE * root
    terms = tuple(t for t in terms if t.expression != 0)
    return replace(expansion, terms=terms, rate_order=power, next_rate_term=more)


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
        log_moment = value_at(base, sp.Integer(i - 1))
        if log_moment is sp.oo:
            raise InputError(f"E (P/Q)^{i} is infinite: the cumulants are no series in the rate")
        return sp.exp(log_moment)

    of_sampled = sampled_cumulants(
        highest, sampled.rate, likelihood, sampled.is_reversed, rate_order
    )
    return of_sampled, rate_order


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
    closed = closed_cumulant(d, order)
    if closed is None:
        raise InputError(
            f"no closed form of the derivative of order {order} of {d.mechanism.name}'s CGF was "
            "found; leave substitute out"
        )
    return closed


def invert_slope(d: HasCGF, level: sp.Expr) -> sp.Expr | None:
    """Return the tilt t with K′(t) = level where a formula gives it, else None."""
    if d.cgf.expression is None:
        return None
    slope = cumulant(d, 1).rewrite(sp.exp)
    return linear_root(sp.numer(tidy.together(slope - level)), d.cgf.tilt)


@lru_cache(maxsize=64)
def moment_at_zero(pair: Pair, order: int, below_one: tuple[str, ...] = ()) -> sp.Expr | None:
    """Return E_P ℓʲ where every loss is finite and a short formula gives it, else None.

    It is compared with a quadrature at random values of the parameters.
    """
    if pair.support.kind != "interval" or pair.alternatives:
        return None
    total = sp.S.Zero
    for piece in pieces(pair):
        if piece.log_p is None:
            continue
        part = _of_piece(piece, order, pair.variable)
        if part is None:
            return None
        total += part
    formula = _collected(total)
    if sp.count_ops(formula) > order * _LONGEST or not _is_checked(formula, pair, order, below_one):
        return None
    return formula


def _of_piece(piece: Piece, order: int, x: sp.Symbol) -> sp.Expr | None:
    """Return ∫ ℓʲ P over a piece."""
    assert piece.log_p is not None
    if piece.log_q is None or not piece.loss.is_polynomial(x):
        return None
    if piece.place is not None:  # an atom
        return sp.exp(piece.log_p) * piece.loss**order
    loss = sp.Poly(piece.loss, x)
    if loss.degree() > _MOST_DEGREE:
        return None
    # Analytic at 0, where it is put to 0; of a sign with which an infinite piece has an integral.
    if piece.upper == sp.oo:
        beta = sp.Dummy("beta", negative=True)
    else:
        beta = sp.Dummy("beta", positive=True)
    generating = _tilted_mass(piece, x, beta)
    if generating is None:
        return None
    total = sp.S.Zero
    for (power,), coefficient in (loss**order).terms():
        total += coefficient * sp.diff(generating, beta, power).subs(beta, 0)
    if total.has(sp.nan, sp.zoo):
        return None
    return total


def _tilted_mass(piece: Piece, x: sp.Symbol, beta: sp.Symbol) -> sp.Expr | None:
    """Return ∫ e^{βx} P(x) dx over a piece, None where the table does not know it."""
    inside = interior_point(piece.lower, piece.upper)
    total = sp.S.Zero
    for term in piece.log_p_terms:
        form = log_form(sp.exp(term + beta * x), x, inside)
        value = definite(Integrand(form, piece.lower, piece.upper, False))
        if value is None:
            return None
        total += value * sp.exp(form.constant)
    return total


def _collected(total: sp.Expr) -> sp.Expr:
    """Return a sum by its exponentials, error functions and roots of π, each with one factor.

    What several exponentials and error functions are divided by, as a mass is, stays one symbol.
    """
    masses: dict[sp.Expr, sp.Dummy] = {}

    def named(power: sp.Pow) -> sp.Expr:
        if power.exp.is_negative and power.base.has(sp.erf, sp.erfc):
            return masses.setdefault(1 / power.base, sp.Dummy()) ** (-power.exp)
        return power

    total = total.replace(lambda node: isinstance(node, sp.Pow), named)
    names = {node: sp.Dummy() for node in total.atoms(sp.exp, sp.erf, sp.erfc)}
    meanings = {name: node for node, name in names.items()}
    by_function: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(tidy.bounded(sp.expand, total.xreplace(names))):
        plain = sp.S.One
        function = sp.S.One
        exponent = sp.S.Zero
        for factor in sp.Mul.make_args(term):
            base, power = factor.as_base_exp()
            meaning = meanings.get(base)
            if base is sp.pi:
                function *= factor
            elif meaning is None:
                plain *= factor
            elif isinstance(meaning, sp.exp):
                exponent += power * meaning.args[0]
            else:
                function *= meaning.func(tidy.factor(sp.expand(meaning.args[0]))) ** power
        sign, kind = (function * sp.exp(tidy.factor(sp.expand(exponent)))).as_coeff_Mul()
        by_function[kind] = by_function.get(kind, sp.S.Zero) + sign * plain
    written = sp.Add(*(tidy.factor(part) * kind for kind, part in by_function.items()))
    if len(masses) == 1:
        (mass,) = masses.values()
        written = sp.factor_terms(sp.collect(written, mass))
    return written.xreplace({name: mass for mass, name in masses.items()})


def _is_checked(formula: sp.Expr, pair: Pair, order: int, below_one: Sequence[str]) -> bool:
    """Return whether a moment is what a quadrature gives at random values of the parameters."""
    symbols = formula.free_symbols | parameters_of(pair)
    for seed in range(_ROUNDS if symbols else 1):
        values = dict(random_values(symbols, seed, below_one))
        truth, size = _quadrature(with_values(pair, values), order)
        value = formula.subs(values).evalf(_DIGITS, maxn=400)
        if not value.is_Float or abs(mpmath.mpmathify(value) - truth) > _TOLERANCE * size:
            return False
    return True


def _quadrature(pair: Pair, order: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return E ℓʲ and E |ℓ|ʲ of a pair without parameters."""
    x = pair.variable
    total = mpmath.mpf(0)
    size = mpmath.mpf(0)
    with mpmath.workdps(_DIGITS):
        for piece in pieces(pair):
            if piece.log_p is None:
                continue
            inside = sp.exp(piece.log_p) * piece.loss**order
            if piece.place is not None:
                total += mpmath.mpmathify(inside.evalf(_DIGITS))
                continue
            function = sp.lambdify(x, inside, "mpmath")
            part = mpmath.quad(function, [_number_of_end(piece.lower), _number_of_end(piece.upper)])
            total += part
            size += abs(part)
    return total, max(size, abs(total))


def _number_of_end(end: sp.Expr) -> mpmath.mpf:
    """Return an end of a piece, infinite ones too."""
    if end.is_infinite:
        if end == sp.oo:
            return mpmath.inf
        return -mpmath.inf
    return mpmath.mpmathify(end.evalf(_DIGITS))
