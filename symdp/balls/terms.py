"""The mass of a density from its own terms: each one's tail is bounded, the rest is integrated.

A sum of a fast and of a slow tail is beyond every term's rate, but |Σ fᵢ| ≤ Σ |fᵢ|; and a factor
that is bounded leaves a tail as it is: |sin|, |cos|, |tanh|, |erf| ≤ 1, erfc ≤ 2, and
erfc(z) ≤ e^{−z²} for z ≥ 0 [DLMF 7.8.3, with erfc(0) = 1].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp
from flint import acb, arb, ctx

from symdp.balls.cuts import cut_by_parts
from symdp.derive.breakpoints import smooth_stretches
from symdp.emit.arb import compile_arb
from symdp.emit.arb_operations import UNKNOWN
from symdp.emit.enclose import between, enclose_sum
from symdp.emit.exact import end_ball, real_ball
from symdp.errors import AccuracyError
from symdp.interrupt import Deadline

SECONDS = 2.0  # of work for one proof of mass
EVALUATIONS = 60_000  # of an integrand: more than those seconds allow
_MOST_TERMS = 64  # of a density multiplied out
_BOUNDED: dict[type[sp.Basic], sp.Expr] = {
    sp.sin: sp.S.One, sp.cos: sp.S.One, sp.tanh: sp.S.One, sp.erf: sp.S.One,
    sp.erfc: sp.Integer(2), sp.atan: sp.pi / 2, sp.sech: sp.S.One, sp.sign: sp.S.One,
    sp.Heaviside: sp.S.One, sp.asin: sp.pi / 2, sp.acos: sp.pi,
}  # fmt: skip


class _Falling(sp.Function):  # type: ignore[misc]
    """erfc(z) where z → ∞, which SymPy does not turn into 2 − erfc(−z)."""


def enclose_mass(
    density: sp.Expr,
    x: sp.Symbol,
    lower: sp.Expr,
    upper: sp.Expr,
    tolerance: arb,
    deadline: Deadline,
) -> arb:
    """Enclose the integral of a density, or its sum over integers.

    Parameters
    ----------
    density, x, lower, upper
        The density, its variable and the ends of its support.
    tolerance : arb
        Absolute accuracy.
    deadline
        When to give up.

    Raises
    ------
    AccuracyError
        If a tail is not bounded, or the time is over.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> skewed = sp.exp(-(x**2) / 2) * (1 + sp.erf(2 * x)) / sp.sqrt(2 * sp.pi)
    >>> mass = enclose_mass(skewed, x, -sp.oo, sp.oo, arb(2) ** -40, Deadline(9))
    >>> bool(mass.contains(1)), bool(mass.rad() < 1e-9)
    (True, True)
    """
    half = sp.S.Half if x.is_integer else sp.S.Zero  # kinks at the ends lie inside
    total = arb(0)
    for stretch in smooth_stretches((density,), x, lower - half, upper + half):
        (expression,) = stretch.expressions
        if expression == 0:
            continue
        low, high = stretch.lower, stretch.upper
        if x.is_integer and not stretch.is_point:
            low = low if low.is_infinite else sp.floor(low) + 1
            high = high if high.is_infinite else sp.ceiling(high) - 1
        total += _stretch_mass(expression, x, low, high, tolerance, deadline)
    return total


def _stretch_mass(
    density: sp.Expr,
    x: sp.Symbol,
    lower: sp.Expr,
    upper: sp.Expr,
    tolerance: arb,
    deadline: Deadline,
) -> arb:
    ends = [end_ball(e) for e in (lower, upper)]
    inside = compile_arb(density, [x])
    if not x.is_integer and not all(
        end.is_infinite or is_finite_at(density, x, end) for end in (lower, upper)
    ):
        parts = ends_at_infinity(density, x, lower, upper)
        inner = ((f, v, end) for f, v, *some in parts for end in some if end.is_finite)
        if not all(is_finite_at(*place) for place in inner):
            raise AccuracyError("a density has no value inside its support")
        return sum((_stretch_mass(*part, tolerance, deadline) for part in parts), arb(0))
    finite, tails = [arb(0) if end is None else end for end in ends], arb(0)
    for side, direction in ((0, -1), (1, 1)):
        if ends[side] is None:
            bounds, least = dominating(density, x, direction)
            other = ends[1 - side]
            begin = arb(least) if other is None else arb(least).max(abs(other).upper() + 1)
            place, mass = cut_by_parts(
                bounds, x, direction, begin.upper(), tolerance, bool(x.is_integer), deadline.check
            )
            finite[side] = place
            tails += mass
    spread = between(-tails, tails)
    if x.is_integer:
        return partial_sum(inside, finite[0].floor(), finite[1].ceil(), deadline) + spread

    result = integral(inside, finite[0], finite[1], tolerance, EVALUATIONS, deadline)
    return result.real + spread


def integral(
    function: Callable[..., Any],
    lower: arb,
    upper: arb,
    tolerance: arb,
    evaluations: int,
    deadline: Deadline | None,
) -> acb:
    """Return Arb's integral of a function of a ball and of `analytic` between finite ends.

    Raises
    ------
    AccuracyError
        When the time is over.
    """

    is_over = False

    def values(place: acb, analytic: bool = False) -> Any:
        nonlocal is_over
        if is_over or (deadline is not None and deadline.is_past):
            is_over = True  # an error raised here would not stop Arb
            return UNKNOWN
        return function(place, analytic=analytic)

    found = acb.integral(
        values,
        acb(lower),
        acb(upper),
        abs_tol=tolerance,
        rel_tol=arb(2) ** (4 - ctx.prec),
        eval_limit=evaluations,
    )
    if is_over and deadline is not None:
        deadline.check()
    return found


def is_finite_at(density: sp.Expr, x: sp.Symbol, end: sp.Expr) -> bool:
    """Return whether a density has a value at an end of its support."""
    at = real_ball(end)
    return bool(compile_arb(density, [x])(at).is_finite())


def ends_at_infinity(
    density: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> list[tuple[sp.Expr, sp.Symbol, sp.Expr, sp.Expr]]:
    """Return what each half is after x = end ± e^{−s}: no value is wanted at the end then."""
    return [
        (density, x, low, high)
        if v is x
        else (sp.powsimp(density.subs(x, place) * sp.exp(-v)), v, low, high)
        for place, v, low, high in halves(x, lower, upper)
    ]


def halves(
    x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> list[tuple[sp.Expr, sp.Symbol, sp.Expr, sp.Expr]]:
    """Return x in each half with its variable and ends: end ± e^{−s} beside a finite end.

    >>> halves(sp.Symbol("x"), sp.S.Zero, sp.oo)
    [(exp(-_s), _s, 0, oo), (x, x, 1, oo)]
    """
    length = upper - lower if lower.is_finite and upper.is_finite else sp.Integer(2)
    s = sp.Dummy("s", real=True)
    near = -sp.log(length / 2), sp.oo
    first = (lower + sp.exp(-s), s, *near) if lower.is_finite else (x, x, lower, upper - 1)
    second = (upper - sp.exp(-s), s, *near) if upper.is_finite else (x, x, lower + 1, upper)
    return [first, second]


def partial_sum(term: Callable[..., Any], lower: arb, upper: arb, deadline: Deadline | None) -> arb:
    """Enclose a sum over the integers between two; AccuracyError when the time is over."""

    def checked(k: Any, analytic: bool = False) -> Any:
        if deadline is not None:
            deadline.check()
        return term(k, analytic=analytic)

    return enclose_sum(checked, lower, upper)


def dominating(density: sp.Expr, x: sp.Symbol, direction: int) -> tuple[list[sp.Expr], int]:
    """Return exponents gᵢ with |f| ≤ Σ e^{gᵢ} on one side, and the distance from which that holds.

    Parameters
    ----------
    density, x
        f and its variable, smooth on that side.
    direction : {1, -1}
        The side.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> dominating(sp.exp(x) * sp.erfc(x + 1) / 4, x, 1)
    ([x - (x + 1)**2 - log(4)], 3)
    """
    if density.has(sp.Sum):  # a normaliser that SymPy would work on without end
        raise AccuracyError("the terms of a density divided by a sum are not told apart")
    y = sp.Symbol("y", positive=True)
    # Replacing rebuilds every sum that a normaliser is, for nothing where there is no erf.
    waning = [node for node in density.atoms(sp.erf, sp.erfc) if node.has(x)]
    far = density.xreplace({node: _falling(node, x, direction * y) for node in waning})
    found, least = [], 1
    for term in _terms(far):
        exponent = sp.S.Zero
        for factor in sp.Mul.make_args(term):
            if not factor.has(x):
                exponent += sp.log(abs(factor))
                continue
            part, begin = _log_bound(factor, x, direction * y, y)
            exponent += part
            least = max(least, begin)
        found.append(exponent)
    return found, least


def _terms(density: sp.Expr) -> list[sp.Expr]:
    """Return the terms of a density, its sums multiplied out where they are not too many."""
    expanded = sp.expand(density, power_base=False, power_exp=False, log=False, basic=False)
    terms = sp.Add.make_args(expanded)
    return list(terms if len(terms) <= _MOST_TERMS else sp.Add.make_args(density))


def _falling(node: sp.Expr, x: sp.Symbol, outwards: sp.Expr) -> sp.Expr:
    """Write erf and erfc through the erfc that falls outwards, so that constants cancel."""
    z = node.args[0]
    sign = _lead_sign(z, x, outwards)
    if sign is None:
        return node
    small = _Falling(z if sign > 0 else -z)
    if isinstance(node, sp.erfc):
        return small if sign > 0 else 2 - small
    return sign * (1 - small)


def _lead_sign(z: sp.Expr, x: sp.Symbol, outwards: sp.Expr) -> int | None:
    """Return the sign of a polynomial far out, None where z is none."""
    if not z.is_polynomial(x):
        return None
    (y,) = outwards.free_symbols
    lead = real_ball(sp.Poly(z.xreplace({x: outwards}), y).LC())
    return 1 if lead > 0 else -1 if lead < 0 else None


def _log_bound(
    factor: sp.Expr, x: sp.Symbol, outwards: sp.Expr, y: sp.Symbol
) -> tuple[sp.Expr, int]:
    """Return an upper bound of log |factor| and the distance from which it holds."""
    base, power = factor.as_base_exp()
    if isinstance(factor, sp.exp):
        return factor.args[0], 1
    if power.is_positive and not power.has(x):
        bound = _BOUNDED.get(type(base))
        if isinstance(base, _Falling):
            return -power * base.args[0] ** 2, _clear(base.args[0], x, outwards, y)
        if bound is not None:
            return power * sp.log(bound), 1
    if base.is_polynomial(x) and not power.has(x) and base.has(x):
        return _log_polynomial(base, power, x, outwards, y)
    return power * sp.log(base), 1


def _clear(z: sp.Expr, x: sp.Symbol, outwards: sp.Expr, y: sp.Symbol) -> int:
    """Return a distance beyond which a polynomial is at least half its leading term [Cauchy]."""
    lead, *others = (abs(real_ball(c)) for c in sp.Poly(z.xreplace({x: outwards}), y).all_coeffs())
    ratio = sum(others, arb(0)) / lead * 2
    return max(1, int(float(ratio.upper())) + 1)


def _log_polynomial(
    base: sp.Expr, power: sp.Expr, x: sp.Symbol, outwards: sp.Expr, y: sp.Symbol
) -> tuple[sp.Expr, int]:
    """Bound |p(y)|^c by a power of y: (1 ± ½) of its leading term where that leads."""
    polynomial = sp.Poly(base.xreplace({x: outwards}), y)
    share = sp.S.Half if power.is_negative else sp.Rational(3, 2)
    lead = sp.log(share) + sp.log(abs(polynomial.LC()))
    log_y = sp.log(outwards / y * x)
    return power * (lead + polynomial.degree() * log_y), _clear(base, x, outwards, y)
