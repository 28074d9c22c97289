"""Where the CGF is finite, read off the growth of log P and log Q at the ends of the pieces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from symdp.density.mixture import Term
from symdp.density.normal_form import LogForm, exponential_terms
from symdp.density.signs import compare, sign_of
from symdp.model import tidy

# Orders of growth, compared as tuples: e^{kx} beats x log x beats powers beats logs.
_Order = tuple[int, sp.Expr]
_Growth = dict[_Order, sp.Expr]


@dataclass(frozen=True)
class Flank:
    """The terms of P and of Q, in normal form, near one end of a piece."""

    log_p: tuple[LogForm, ...]
    log_q: tuple[LogForm, ...]
    end: sp.Expr


def cgf_domain(flanks: Iterable[Flank]) -> tuple[sp.Expr, sp.Expr] | None:
    """Return (t₋, t₊) between which ∫ P^{1+t} Q^{−t} converges at every end, None where unknown.

    At an end the integrand is exp(a(t)·g) with the leading growth g of log P and log Q and a(t)
    linear in t: it converges where a(t) < 0, or, for powers, where a(t) lies beyond −1.
    """
    lower, upper = -sp.oo, sp.oo
    for flank in flanks:
        bounds = _flank_bounds(flank)
        if bounds is None:
            return None
        lower, upper = _later(lower, bounds[0], 1), _later(upper, bounds[1], -1)
    return lower, upper


def _later(a: sp.Expr, b: sp.Expr, direction: int) -> sp.Expr:
    order = compare(a, b)
    if order is None:
        if direction > 0:
            return sp.Max(a, b)
        return sp.Min(a, b)
    if order in (0, direction):
        return a
    return b


def _flank_bounds(flank: Flank) -> tuple[sp.Expr, sp.Expr] | None:
    """Bounds on t from one end."""
    p, q = (_largest(forms, flank.end) for forms in (flank.log_p, flank.log_q))
    orders = None if p is None or q is None else _sorted_orders(p, q)
    if p is None or q is None or orders is None:
        return None
    for order in orders:
        at_zero = p.get(order, sp.S.Zero)
        slope = sp.expand(at_zero - q.get(order, sp.S.Zero))
        if at_zero == 0 and slope == 0:
            continue
        # The coefficient of the leading growth is at_zero + t·slope.
        limit = sp.S.Zero
        if order[0] == 0:  # a log: |x|^a converges for a < −1 at ∞, for a > −1 at a finite end
            limit = sp.S.NegativeOne if flank.end.is_infinite else sp.S.One
        return _below(at_zero, slope, limit)
    if not flank.end.is_infinite:
        return (-sp.oo, sp.oo)
    return None


def _below(constant: sp.Expr, slope: sp.Expr, limit: sp.Expr) -> tuple[sp.Expr, sp.Expr] | None:
    """Solve constant + t·slope < limit."""
    if slope == 0:
        if sign_of(limit - constant) == 1:
            return (-sp.oo, sp.oo)
        return None
    sign = sign_of(slope)
    edge = sp.factor_terms(tidy.cancel((limit - constant) / slope))
    if sign is None:  # both cases, told apart where the parameters have values
        open_part = sp.Mul(
            *(f for f in sp.Mul.make_args(tidy.factor(tidy.together(slope))) if sign_of(f) != 1)
        )
        return (
            sp.Piecewise((-sp.oo, sp.Ge(open_part, 0)), (edge, True)),
            sp.Piecewise((edge, sp.Gt(open_part, 0)), (sp.oo, True)),
        )
    if sign > 0:
        return (-sp.oo, edge)
    return (edge, sp.oo)


def _sorted_orders(*growths: _Growth) -> list[_Order] | None:
    """All orders of growth, fastest first; None where parameters leave their order open."""
    ordered: list[_Order] = []
    for order in {order for growth in growths for order in growth}:
        index = 0
        for other in ordered:
            gap = order[0] - other[0] or compare(order[1], other[1])
            if not gap:
                return None
            index += gap < 0
        ordered.insert(index, order)
    return ordered


def _largest(forms: Iterable[LogForm], end: sp.Expr) -> _Growth | None:
    """The growth of a sum of terms: that of the fastest-growing one."""
    best: _Growth | None = None
    for form in forms:
        growth = _growth(form, end)
        if growth is None:
            return None
        if best is None:
            best = growth
            continue
        orders = _sorted_orders(best, growth)
        if orders is None:
            return None
        for order in orders:
            gap = compare(growth.get(order, sp.S.Zero), best.get(order, sp.S.Zero))
            if gap is None:
                return None
            if gap:
                best = growth if gap > 0 else best
                break
    return best


def _growth(form: LogForm, end: sp.Expr) -> _Growth | None:
    """Return the growing parts of a normal form at an end by order, None where unclear."""
    if not end.is_infinite:
        return _finite_growth(form, end)
    x = form.variable
    side = 1 if end is sp.oo else -1
    growth: _Growth = {}
    if not _add_smooth(growth, form.smooth, x, side, sp.S.One):
        return None
    for base, power in form.moving_logs.items():
        if base.is_polynomial(x):
            degree = sp.Integer(sp.degree(base, x))
            _add_growth(growth, (0, sp.S.Zero), degree * power)
        elif isinstance(base, sp.factorial) and base.args[0] == x:
            _add_growth(growth, (2, sp.S.Zero), power)
            _add_growth(growth, (1, sp.S.One), -power)
            _add_growth(growth, (0, sp.S.Zero), power / 2)
        elif not _add_exponential_base(growth, base, power, x, side):
            return None
    return {order: sp.expand(c) for order, c in growth.items() if sp.expand(c) != 0}


def _add_growth(growth: _Growth, order: _Order, coefficient: sp.Expr) -> None:
    growth[order] = growth.get(order, sp.S.Zero) + coefficient


def _add_smooth(growth: _Growth, smooth: object, x: sp.Symbol, side: int, factor: sp.Expr) -> bool:
    """Add the monomials that grow at side·∞; False where one is not understood."""
    assert isinstance(smooth, dict)
    for monomial, coefficient in smooth.items():
        base, power = monomial.as_base_exp()
        if base in (x, -x) and x not in power.free_symbols:
            sign = sp.S.One if base.subs(x, side).is_positive else sp.S.NegativeOne**power
            if sign_of(power) == 1:
                _add_growth(growth, (1, power), factor * coefficient * sign)
            continue
        if isinstance(monomial, sp.exp):
            rate = sp.expand(monomial.args[0] / x)
            direction = None if x in rate.free_symbols else sign_of(rate * side)
            if direction is None:
                return False
            if direction > 0:
                _add_growth(growth, (3, rate * side), factor * coefficient)
            continue
        return False
    return True


def _add_exponential_base(
    growth: _Growth, base: sp.Expr, power: sp.Expr, x: sp.Symbol, side: int
) -> bool:
    """Add log Σ cᵢ exp(aᵢ) ~ the largest aᵢ."""
    terms = exponential_terms(base, x)
    if terms is None:
        return False
    leader = sp.S.Zero
    for index, (_, exponent) in enumerate(terms):
        gap = sp.expand(exponent - leader) if index else sp.S.Zero
        if index == 0:
            leader = exponent
        elif x in gap.free_symbols:
            if not gap.is_polynomial(x):
                return False
            sign = sign_of(sp.Poly(gap, x).LC() * side ** int(sp.degree(gap, x)))
            if sign is None:
                return False
            leader = exponent if sign > 0 else leader
    if not leader.is_polynomial(x):
        return False
    smooth = {x ** m[0]: c for m, c in sp.Poly(leader, x).terms() if m[0]}
    return _add_smooth(growth, smooth, x, side, power)


def _finite_growth(form: LogForm, end: sp.Expr) -> _Growth | None:
    """Near a finite end only factors that vanish or blow up there matter."""
    power = power_at(form, end)
    # In log(1/|x − end|), which grows: |x − end|^a converges for −a < 1.
    if power is None:
        return None
    if power[0] != 0:
        return {(0, sp.S.Zero): -power[0]}
    return {}


def power_at(form: LogForm, end: sp.Expr, side: int = 1) -> tuple[sp.Expr, sp.Expr] | None:
    """Return (k, c) with e^form ~ e^c y^k where x = end + side·y, None where that is unclear."""
    x = form.variable
    power = sp.S.Zero
    constant = form.constant
    for monomial, coefficient in form.smooth.items():
        value = monomial.subs(x, end)
        if value.is_finite is not True and not value.is_real:
            return None
        constant += coefficient * value
    for base, exponent in form.moving_logs.items():
        order = 0
        derivative = base
        while tidy.vanishes(value := derivative.subs(x, end)):
            if not _is_entire(base, x) or order == _MOST_ORDER:
                return None
            derivative = sp.diff(derivative, x)
            order = order + 1
        if value.has(sp.oo, -sp.oo, sp.zoo, sp.nan):
            return None
        power += order * exponent
        constant += exponent * sp.log(value * side**order / sp.factorial(order))
    return sp.expand(power), constant


def power_at_end(terms: Iterable[Term], end: sp.Expr, side: int) -> tuple[sp.Expr, sp.Expr] | None:
    """Return (k, c) with Σ terms ~ c y^k where x = end + side·y, None where that is unclear."""
    if end.is_infinite:
        return sp.S.Zero, sp.S.One
    total: dict[sp.Expr, sp.Expr] = {}
    for term in terms:
        power = power_at(term.form, end, side)
        if power is None:
            return None
        total[power[0]] = total.get(power[0], sp.S.Zero) + term.weight * sp.exp(power[1])
    least = [
        exponent for exponent in total if all(compare(other, exponent) in (0, 1) for other in total)
    ]
    is_known = len(least) == 1 and not tidy.vanishes(total[least[0]])
    if is_known:
        return (least[0], total[least[0]])
    return None


_MOST_ORDER = 12  # of a zero


def _is_entire(base: sp.Expr, x: sp.Symbol) -> bool:
    """Whether a base is made of whole powers, exponentials and waves, and has a Taylor series."""
    functions = (sp.exp, sp.sin, sp.cos, sp.sinh, sp.cosh)
    moving = [node for node in base.atoms(sp.Function, sp.Pow) if x in node.free_symbols]
    return all(
        isinstance(f, functions) or (f.is_Pow and f.exp.is_Integer and f.exp > 0) for f in moving
    )
