"""Enclosures in ball arithmetic of ∫ e^{g(x) + iyℓ(x)} dx, and so of masses and of the CGF."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import acb, arb, ctx

from symdp.arguments import instance
from symdp.balls.cuts import cut_tails
from symdp.derive import pieces, points
from symdp.emit import compile_arb
from symdp.emit.arb_operations import UNKNOWN
from symdp.emit.enclose import between, enclose_sum
from symdp.interrupt import Deadline
from symdp.model.pair import Pair

if TYPE_CHECKING:
    from symdp.emit.arb import ArbFunction

EVALUATIONS = 60_000  # of an integrand: more than the seconds of one proof allow

_Density = Callable[..., Any]


def cgf_ball(pair: Pair, z: sp.Expr, digits: int = 30) -> acb:
    """Enclose K(z) = log ∫ P^{1+z} Q^{−z} of one step, floating point included.

    Every smooth piece is integrated with proved error; what lies beyond a cut is bounded from the
    log-concavity of the tilted density or by shells that reach the end of the double range.

    Parameters
    ----------
    pair
        With all parameters bound.
    z
        A complex number with rational parts; its real part in the domain of K.
    digits
        Absolute accuracy aimed at, in decimal digits.

    Returns
    -------
    acb
        A ball that contains K(z), on the principal branch.

    Raises
    ------
    AccuracyError
        If no tail bound is found, as outside the domain of K.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> ball = cgf_ball(mechanisms.gaussian(sigma=2).pair(), sp.Rational(1, 2), 20)
    >>> ball.real.contains(arb(3) / 32)
    True
    """
    instance(pair, Pair, "it is no pair: give mechanism.pair()")
    t, y = sp.re(z), sp.im(z)
    with ctx.workprec(int(3.33 * digits) + 40):
        tolerance = arb(10) ** (-digits)
        total = acb(0)
        if pair.support.kind == "points":
            for point in points(pair):
                if point.p != 0 and point.loss != sp.oo:
                    real = compile_arb(sp.log(point.p) + t * point.loss, [])()
                    turn = compile_arb(y * point.loss, [])()
                    total += acb(real.real, turn.real).exp()
            return total.log()
        for piece in pieces(pair):
            if piece.log_p is None or piece.log_q is None:
                continue
            exponent = piece.log_p + t * piece.loss
            turn = y * piece.loss if y != 0 else None
            total += enclose_exponential(
                exponent, pair.variable, piece.lower, piece.upper, tolerance=tolerance, turn=turn
            )
        return total.log()


def enclose_exponential(
    exponent: sp.Expr,
    x: sp.Symbol,
    lower: sp.Expr,
    upper: sp.Expr,
    *,
    tolerance: arb | None = None,
    turn: sp.Expr | None = None,
    deadline: Deadline | None = None,
) -> Any:
    """Enclose ∫ e^{g(x) + iθ(x)} dx over an interval, or the sum over its integers.

    Parameters
    ----------
    exponent, turn
        g and θ, smooth between the ends; without θ the result is real.
    lower, upper
        The ends, infinite ones allowed.
    tolerance
        Absolute accuracy; 1e-12 if not given.
    deadline
        When to give up, if ever.

    Raises
    ------
    AccuracyError
        If no bound of a tail is found or the work limit is reached.
    """
    tolerance = arb(10) ** -12 if tolerance is None else tolerance
    total = _enclose(exponent, x, lower, upper, tolerance, turn, deadline)
    if total.is_finite() or x.is_integer or (lower.is_infinite and upper.is_infinite):
        return total
    # A factor such as e^{−1/x} has no value on a ball around its end: put that end at infinity.
    total = arb(0)
    for place, v, low, high in halves(x, lower, upper):
        moved = exponent if v is x else exponent.subs(x, place) - v
        angle = None if turn is None else turn.subs(x, place)
        total += _enclose(moved, v, low, high, tolerance, angle, deadline)
    return total


def _enclose(
    exponent: sp.Expr,
    x: sp.Symbol,
    lower: sp.Expr,
    upper: sp.Expr,
    tolerance: arb,
    turn: sp.Expr | None,
    deadline: Deadline | None = None,
) -> Any:
    size, whole = compile_arb(exponent, [x]), bool(x.is_integer)
    ends = [None if e.is_infinite else compile_arb(e, [])().real for e in (lower, upper)]
    angle = None if turn is None else compile_arb(turn, [x])

    def density(place: Any, analytic: bool = False) -> Any:
        value = size(place, analytic=analytic)
        if angle is not None:
            value = value + acb(0, 1) * angle(place, analytic=analytic)
        return value.exp()

    def magnitude(place: arb) -> arb:
        if deadline is not None:
            deadline.check()
        return arb(size(place).exp())

    (left, right), tails = cut_tails(exponent, magnitude, x, ends, tolerance, whole=whole)
    spread = acb(between(arb(0), tails)) if angle is None else acb(arb(0, tails), arb(0, tails))
    if whole:
        result = _sum(size, angle, left, right, deadline) + spread
        return result if angle is not None else result.real
    for candidate in (density, _multiplied(exponent, turn, x)):
        result = integral(candidate, left, right, tolerance, EVALUATIONS, deadline)
        # Where a factor of the density vanishes its logarithm is no use: multiply it out instead.
        if result.is_finite() and result.rad() < 1e3 * tolerance:
            break
    total = result + spread
    return total if angle is not None else total.real


def _multiplied(exponent: sp.Expr, turn: sp.Expr | None, x: sp.Symbol) -> _Density:
    angle = 0 if turn is None else sp.I * turn
    compiled = compile_arb(sp.exp(exponent) * sp.exp(angle), [x])

    def product(place: Any, analytic: bool = False) -> Any:
        return compiled(place, analytic=analytic)

    return product


def _sum(
    size: ArbFunction,
    angle: ArbFunction | None,
    left: arb,
    right: arb,
    deadline: Deadline | None,
) -> acb:
    """Enclose the sum of e^{g(k) + iθ(k)} over the integers between two."""

    def height(k: Any, analytic: bool = False) -> Any:
        return size(k, analytic=analytic).exp()

    if angle is None:
        return acb(partial_sum(height, left, right, deadline))
    turn = angle

    def real(k: Any, analytic: bool = False) -> Any:
        return height(k, analytic) * turn(k, analytic=analytic).cos()

    def imaginary(k: Any, analytic: bool = False) -> Any:
        return height(k, analytic) * turn(k, analytic=analytic).sin()

    parts = (partial_sum(part, left, right, deadline) for part in (real, imaginary))
    return acb(*parts)


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
