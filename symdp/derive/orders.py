"""K at whole tilts, that is, Rényi divergences of whole orders, and derivatives that stay short."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.integral_rules import hypergeometric
from symdp.density.signs import compare
from symdp.derive.cgf import derive_cgf
from symdp.derive.child import compute
from symdp.derive.records import CGF
from symdp.errors import InputError
from symdp.model import tidy
from symdp.tolerances import MORE_TIME

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_SHORT = 60  # operations up to which a cumulant is factored


@lru_cache(maxsize=1024)
def derivative_of(cgf: sp.Expr, tilt: sp.Symbol, order: int) -> sp.Expr:
    """Return K^(order), each log differentiated factor by factor so that quotients stay short."""
    if order > 1:
        derivative = sp.diff(derivative_of(cgf, tilt, order - 1), tilt)
    else:
        derivative = sp.Add(*(_slope_in_tilt(term, tilt) for term in sp.Add.make_args(cgf)))
    if sp.count_ops(derivative) > _SHORT:
        return derivative
    candidates = (derivative, tidy.factor(derivative))
    return min(candidates, key=lambda e: (sp.count_ops(e), sp.default_sort_key(e)))


def _slope_in_tilt(term: sp.Expr, tilt: sp.Symbol) -> sp.Expr:
    if not isinstance(term, sp.log):
        return sp.diff(term, tilt)
    total = sp.S.Zero
    for factor in sp.Mul.make_args(term.args[0]):
        base, power = factor.as_base_exp()
        if tilt in power.free_symbols or isinstance(factor, sp.exp):
            total += sp.diff(power * sp.log(base), tilt)
        elif isinstance(base, sp.sinh):
            total += power * sp.diff(base.args[0], tilt) * sp.coth(base.args[0])
        elif isinstance(base, sp.cosh):
            total += power * sp.diff(base.args[0], tilt) * sp.tanh(base.args[0])
        else:
            total += power * sp.diff(base, tilt) / base
    return total


def cumulant_in_moments(order: int, tilt: sp.Symbol) -> sp.Expr:
    """Return κ_n in raw moments, κ_n = m_n − Σ_{k<n} C(n−1, k−1) κ_k m_{n−k}."""
    moments = [sp.S.One, *(sp.Function(f"m_{k}")(tilt) for k in range(1, order + 1))]
    return cumulants_of(moments, sp.expand)[-1]


def cumulants_of(
    moments: Sequence[sp.Expr], written: Callable[[sp.Expr], sp.Expr] = lambda cumulants: cumulants
) -> list[sp.Expr]:
    """Return κ_1, κ_2, … from raw moments that begin with that of order 0."""
    cumulants: list[sp.Expr] = []
    for n in range(1, len(moments)):
        products = (
            math.comb(n - 1, k - 1) * cumulants[k - 1] * moments[n - k] for k in range(1, n)
        )
        cumulants.append(written(moments[n] - sp.Add(*products)))
    return cumulants


_LARGEST = 256  # order whose sum is written out


def cgf_at(pair: Pair, tilt: int, time_limit: float, below_one: tuple[str, ...]) -> sp.Expr:
    """Return K(tilt) for a whole tilt.

    A closed form is evaluated there.  For P = (1 − q)f₀ + q·f₁ against f₀ whose base pair (f₁, f₀)
    has the CGF k in closed form, the binomial theorem gives

        exp K(t) = Σ_{j ≤ t+1} C(t+1, j) (1 − q)^{t+1−j} q^j e^{k(j−1)},    t = 0, 1, 2, …

    with 1 in place of e^{k(−1)}; the reversed pair has it at −1 − t.
    """
    whole = derive_cgf(pair, time_limit, below_one)
    if whole.expression is not None:
        return value_at(whole, sp.Integer(tilt))
    sampled = sampled_pair(pair)
    if sampled is None or (turned := -1 - tilt if sampled.is_reversed else tilt) < 0:
        raise InputError(
            f"no closed form of K at {tilt} was found ({whole.reason}); a Poisson-subsampled pair "
            "has one at 0, 1, 2, ... with the record removed, at -1, -2, ... with it added"
        )
    if turned > _LARGEST:
        raise InputError(f"the order must be at most {_LARGEST + 1}, since a sum is written out")
    weights = (1 - sampled.rate, sampled.rate)
    return _binomial(sampled.base, weights, turned, time_limit, below_one)


@dataclass(frozen=True)
class Sampled:
    """P = (1 − q)f₀ + q·f₁ against f₀: the base pair (f₁, f₀), q, and whether P and Q changed."""

    base: Pair
    rate: sp.Expr
    is_reversed: bool


def sampled_pair(pair: Pair) -> Sampled | None:
    """Return what a pair is sampled from, None where it is no Poisson-subsampled pair."""
    is_reversed = len(_used(pair.q_weights)) > 1
    weights = (pair.p_weights, pair.q_weights)
    p_weights, q_weights = weights[::-1] if is_reversed else weights
    inside = _used(p_weights)
    outside = _used(q_weights)
    if len(inside) != 2 or len(outside) != 1 or outside[0] not in inside:
        return None
    (base,) = outside
    (other,) = (i for i in inside if i != base)
    return Sampled(_unsampled_pair(pair, base, other), p_weights[other], is_reversed)


def _used(weights: tuple[sp.Expr, ...]) -> list[int]:
    return [i for i, weight in enumerate(weights) if weight != 0]


def _unsampled_pair(pair: Pair, base: int, other: int) -> Pair:
    """The pair (f_other, f_base) without sampling."""
    from symdp.model.pair import Pair as PairRecord

    components = (pair.components[base], pair.components[other])
    weights = ((sp.S.Zero, sp.S.One), (sp.S.One, sp.S.Zero))
    atoms = tuple((value, (masses[base], masses[other])) for value, masses in pair.atoms)
    return PairRecord(pair.variable, pair.support, components, *weights, atoms=atoms)


def _binomial(
    plain: Pair,
    weights: tuple[sp.Expr, sp.Expr],
    tilt: int,
    time_limit: float,
    below_one: tuple[str, ...],
) -> sp.Expr:
    cgf = derive_cgf(plain, time_limit, below_one)
    if cgf.expression is None:
        raise InputError(f"no closed form of the CGF without sampling was found ({cgf.reason})")
    order = tilt + 1
    terms = [weights[0] ** order]
    for j in range(1, order + 1):
        value = value_at(cgf, sp.Integer(j - 1))
        if value is sp.oo:
            return sp.oo
        share = sp.binomial(order, j) * weights[0] ** (order - j) * weights[1] ** j
        terms.append(share * sp.exp(value))
    return sp.log(sp.Add(*terms))


def value_at(cgf: CGF, tilt: sp.Expr) -> sp.Expr:
    """Return a closed-form CGF at one tilt, as a limit where it reads 0/0; oo off its domain."""
    assert cgf.expression is not None
    if cgf.domain is not None:
        below, above = compare(tilt, cgf.domain[0]), compare(cgf.domain[1], tilt)
        if -1 in (below, above):
            return sp.oo
    value = cgf.expression.subs(cgf.tilt, tilt).replace(sp.hyper, hypergeometric)
    if value.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        limit = compute("derivative", (cgf.expression, cgf.tilt, tilt, 0), MORE_TIME)
        if limit is None:
            limit = compute("limit", (cgf.expression, cgf.tilt, tilt, "+"), MORE_TIME)
        if limit is None:
            raise InputError(f"K has no value found at {tilt}")
        value = limit
    if not value.has(sp.log):
        return sp.expand(value)
    return value


def check_order(order: int, least: int) -> None:
    """Refuse an order that is no whole number, or below the least."""
    if not isinstance(order, int) or isinstance(order, bool) or order < least:
        raise InputError(f"the order must be a whole number, {least} or more, not {order!r}")
