r"""Pairs of a step of which a curve is known: a trade-off function, a profile, a Rényi curve.

*Trade-off function* f: no test of size α misses with a probability below f(α). With Q uniform on
[0, 1], P of density −f′ and the mass 1 − f(0) at infinity, the tests [0, α] miss with exactly f(α):
the pair is f where f is convex, and below f otherwise [Dong, Roth, Su 2019, Proposition 2.2].
In s = −log α the laws are e^{−s} and the derivative of f(e^{−s}), which tames a steep start of f.

*Privacy profile*: δ as a function of y = e^ε is convex, falls from 1 at y = 0 with a slope of −1 or
more, and under Q the ratio P/Q has the law δ″(y) [Gopi, Lee, Wutschitz 2021, Theorem 3.3].

*Tables of points*, of error rates or of guarantees (ε, δ): the largest profile that a table allows,
and the smallest trade-off function, are piecewise linear once their convex hull is taken, and a
piecewise linear function is a finite list of outcomes. The masses are ratios of whole numbers: what
is irrational in a table is rounded to the safe side.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import sympy as sp
from flint import arb, ctx

from symdp.emit.exact import fraction_ball, middle_of
from symdp.errors import InputError, suggestion
from symdp.model import tidy
from symdp.model.mechanism import Mechanism
from symdp.model.pair import Support
from symdp.model.reading.intake import Intake
from symdp.model.sampling import Laws, Number, RenyiCurve, exact
from symdp.tolerances import SUM_BITS

MOST_POINTS = 400  # outcomes of a list: each is a formula of its own
MOST_EPSILON = 500  # of a table: e^ε is a ratio of whole numbers, and a mass has up to 4 000 bits
_BETWEEN = ("unknown", "convex", "lines")
Point = tuple[Fraction, Fraction]
_FIRST_POINT: Point = (Fraction(0), Fraction(1))  # of a profile in e^ε, and of a trade-off function
_LAST_POINT: Point = (Fraction(1), Fraction(0))  # of a trade-off function
_PLACES = 64  # where a formula is tried against the rules of a trade-off function
_SLACK = sp.Float("1e-30", 30)
_ORDERS = Support("interval", sp.Integer(1), sp.oo)
_TRIED = 12  # orders 1 + 2^k and 1 + 2^−k at which a formula without parameters is looked at


def from_trade_off_points(
    points: Iterable[Iterable[Number]], between: str = "unknown", name: str = "trade_off"
) -> Mechanism:
    """Return a pair that dominates every step whose trade-off function a table describes."""
    if between not in _BETWEEN:
        hint = suggestion(str(between), _BETWEEN) or f" (known are {', '.join(_BETWEEN)})"
        raise InputError(f"between = {between!r:.40} is unknown{hint}")
    table = [_rational(point, "αβ") for point in _table_of_points(points, "α", "β", 2)]
    for index, (alpha, beta) in enumerate(table, start=1):
        if not 0 <= alpha <= 1:
            raise InputError(f"point {index}: α = {alpha} is no probability")
        if beta < 0 or beta > 1 - alpha:
            raise InputError(
                f"point {index}: f({alpha}) = {beta} does not lie between 0 and 1 - α: a coin that "
                "ignores the output does better"
            )
    _check_falling(table, "α", "f")
    (last_alpha, last_beta) = table[-1]
    if last_alpha < 1 and last_beta > 0:
        table.append(_LAST_POINT)
    return _listed_mechanism(_masses_of_tests(table, between), name, is_bound=between != "lines")


def _masses_of_tests(table: list[Point], between: str) -> list[Point]:
    """Return the outcomes, masses under P and Q, of the lowest curve that a table allows."""
    if between == "unknown":
        corners = _lowest_between(table)
    else:
        _check_convex(table)
        corners = table
        if between != "lines":
            corners = _extended_chords(table)
        elif table[0][0] != 0:
            raise InputError("between = 'lines' needs a first point at α = 0")
    hull = _lower_hull(corners)
    (_, first_beta) = hull[0]
    (last_alpha, _) = hull[-1]
    masses = [(1 - first_beta, Fraction(0))]
    for (alpha, beta), (next_alpha, next_beta) in pairwise(hull):
        masses.append((beta - next_beta, next_alpha - alpha))
    masses.append((Fraction(0), 1 - last_alpha))
    return masses


def from_profile_points(
    points: Iterable[Iterable[Number]], *, both: bool = True, name: str = "profile"
) -> Mechanism:
    """Return a pair that dominates every step with a list of guarantees (ε, δ)."""
    table = _table_of_points(points, "ε", "δ", 1)
    corners: list[Point] = []
    for index, (epsilon, delta) in enumerate(table, start=1):
        if not 0 <= delta <= 1:
            raise InputError(f"point {index}: δ = {delta} is no probability")
        if abs(epsilon) > MOST_EPSILON:
            raise InputError(f"point {index}: ε must lie within ±{MOST_EPSILON}")
        ratio = exponential(epsilon)
        upper_delta = _rounded_up(delta)
        if upper_delta < 1 - ratio:
            raise InputError(f"point {index}: δ({epsilon}) = {delta} lies below 1 - e^ε")
        corners.append((ratio, upper_delta))
        if both and epsilon != 0:
            mirrored_delta = 1 - (1 - upper_delta) / ratio
            corners.append((exponential(-epsilon), mirrored_delta))
    _check_falling(table, "ε", "δ")
    return profile_pair(corners, name)


def profile_pair(corners: Iterable[Point], name: str) -> Mechanism:
    """Return the pair of the lower convex hull of points (e^ε, δ) of a profile, exactly.

    In y = e^ε a profile falls from 1 at 0 with a slope of −1 or more; each corner is an outcome
    whose mass under Q is the change of the slope, and y times that under P.
    """
    hull = _lower_hull(sorted([_FIRST_POINT, *corners]))
    slopes = [_line_through(left, right)[1] for left, right in pairwise(hull)]
    slopes.append(Fraction(0))
    mass_of_infinite_loss = hull[-1][1]
    masses = [(mass_of_infinite_loss, Fraction(0)), (Fraction(0), 1 + slopes[0])]
    for (y, _), (before, after) in zip(hull[1:], pairwise(slopes), strict=True):
        change = after - before
        masses.append((y * change, change))
    return _listed_mechanism(masses, name, is_bound=True)


def exponential(value: sp.Expr) -> Fraction:
    """Return e^value, or a ratio just above it: a profile that does not rise is no higher there."""
    if value == 0:
        return Fraction(1)
    with ctx.workprec(SUM_BITS + 40):
        return upper_end(fraction_ball(_rounded_up(value)).exp())


def upper_end(ball: arb) -> Fraction:
    """Return the upper end of a ball as a ratio."""
    return middle_of(ball.upper())


def _rounded_up(value: sp.Expr) -> Fraction:
    """Return a constant that is a ratio, or a ratio just above it."""
    if value.is_Rational:
        return Fraction(int(value.p), int(value.q))
    number = sp.Rational(value.evalf(60)) + sp.Rational(1, 2**SUM_BITS)
    return Fraction(int(number.p), int(number.q))


def _rational(point: tuple[sp.Expr, sp.Expr], names: str) -> Point:
    for name, value in zip(names, point, strict=True):
        if not value.is_Rational:
            raise InputError(f"{name} = {value} must be a decimal or a ratio; round it down")
    return _rounded_up(point[0]), _rounded_up(point[1])


def _table_of_points(
    points: Iterable[Iterable[Number]], first: str, second: str, least: int
) -> list[tuple[sp.Expr, sp.Expr]]:
    if isinstance(points, str | Mapping) or not isinstance(points, Iterable):
        raise InputError(f"the points must be a list of ({first}, {second})")
    listed = list(points)
    if not least <= len(listed) <= MOST_POINTS:
        raise InputError(f"the table has {len(listed)} points; {least} to {MOST_POINTS} are needed")
    table: list[tuple[sp.Expr, sp.Expr]] = []
    for index, point in enumerate(listed, start=1):
        argument, value = _two(point, index, first, second)
        exact_argument = exact(argument, f"point {index}: {first}")
        exact_value = exact(value, f"point {index}: {second}")
        if table:
            (before, _) = table[-1]
            if _rounded_up(exact_argument) <= _rounded_up(before):
                raise InputError(
                    f"point {index}: {first} = {exact_argument} does not lie above the {before} "
                    "before it; sort the table"
                )
        table.append((exact_argument, exact_value))
    return table


def _two(point: object, index: int, first: str, second: str) -> list[Any]:
    """Return the two numbers of a point of a table."""
    pair: list[Any] = []
    if isinstance(point, Iterable) and not isinstance(point, str):
        pair = list(point)
    if len(pair) != 2:
        raise InputError(f"point {index} must be ({first}, {second}), not {point!s:.40}")
    return pair


def _check_falling(
    table: Sequence[tuple[sp.Expr | Fraction, sp.Expr | Fraction]], first: str, second: str
) -> None:
    for (argument, value), (next_argument, next_value) in pairwise(table):
        if next_value > value:
            raise InputError(
                f"{second} rises from {value} to {next_value} between {first} = {argument} and "
                f"{next_argument}; it must not"
            )


def _check_convex(table: Sequence[Point]) -> None:
    for a, b, c in zip(table, table[1:], table[2:], strict=False):
        if _bend_at(a, b, c) < 0:
            raise InputError(f"the trade-off function is not convex at α = {b[0]}")


def _lowest_between(table: Sequence[Point]) -> list[Point]:
    """Return the lowest corners of convex functions above the points, from (0, 1) to (1, 0).

    Beyond a point such a function lies above the line from (0, 1) through it, before the next
    point above the line from (1, 0) through that one; the corner is where the two meet.
    """
    corners = []
    for left, right in pairwise([_FIRST_POINT, *table, _LAST_POINT]):
        (left_alpha, left_beta) = left
        (right_alpha, right_beta) = right
        rise = Fraction(0)
        if right_alpha < 1:
            rise = right_beta / (1 - right_alpha)
        meeting = left_alpha
        if left_alpha > 0:
            fall = (1 - left_beta) / left_alpha
            if fall != rise:
                meeting = (1 - rise) / (fall - rise)  # 1 − fall α = rise (1 − α)
        alpha = min(max(meeting, left_alpha), right_alpha)
        corners.append((alpha, rise * (1 - alpha)))
    return corners


def _extended_chords(table: Sequence[Point]) -> list[Point]:
    """Return where neighbouring chords, extended, meet: no convex function lies lower there."""
    none = Fraction(0)
    corners = []
    for index, (left, right) in enumerate(pairwise(table)):
        before = None
        after = None
        if index > 0:
            before = _line_through(table[index - 1], left)
        if index + 2 < len(table):
            after = _line_through(right, table[index + 2])
        if before is None and after is None:
            corners += [left, right]
        elif before is None and after is not None:
            (alpha, _) = left
            corners.append((alpha, _height(after, alpha)))
        elif before is not None and after is None:
            (intercept, slope) = before
            (alpha, _) = right
            if slope != 0:
                alpha = min(alpha, -intercept / slope)
            corners.append((alpha, max(_height(before, alpha), none)))
        elif before is not None and after is not None:
            (intercept, slope) = before
            (next_intercept, next_slope) = after
            if slope == next_slope:
                corners += [left, right]
                continue
            alpha = (next_intercept - intercept) / (slope - next_slope)
            corners.append((alpha, max(_height(before, alpha), none)))
    (_, first_beta) = corners[0]
    return [(none, first_beta), *corners, _LAST_POINT]


def _height(line: Point, alpha: Fraction) -> Fraction:
    """Return a line, its height at 0 and its slope, at α."""
    (intercept, slope) = line
    return intercept + slope * alpha


def _line_through(a: Point, b: Point) -> Point:
    """Return the height at 0 and the slope of the line through two points."""
    (alpha, beta) = a
    (other_alpha, other_beta) = b
    slope = (other_beta - beta) / (other_alpha - alpha)
    return beta - slope * alpha, slope


def _lower_hull(points: Sequence[Point]) -> list[Point]:
    """Return the lower convex hull of points that are sorted by their first entry."""
    hull: list[Point] = []
    for point in points:
        (argument, height) = point
        if hull and argument == hull[-1][0]:
            if height >= hull[-1][1]:
                continue
            hull.pop()
        while len(hull) >= 2 and _bend_at(hull[-2], hull[-1], point) <= 0:
            hull.pop()
        hull.append(point)
    while len(hull) >= 2 and hull[-1][1] >= hull[-2][1]:
        hull.pop()
    return hull


def _bend_at(a: Point, b: Point, c: Point) -> Fraction:
    """Return a number of the sign of the bend at b."""
    (argument, height) = a
    width_to_b = b[0] - argument
    rise_to_b = b[1] - height
    width_to_c = c[0] - argument
    rise_to_c = c[1] - height
    return width_to_b * rise_to_c - rise_to_b * width_to_c


def _listed_mechanism(
    masses: Sequence[tuple[Fraction, Fraction]], name: str, *, is_bound: bool
) -> Mechanism:
    """Return the mechanism of a list of outcomes (P, Q), empty ones left out."""
    kept = [pair for pair in masses if any(pair)]
    if len(kept) == 1:
        raise InputError("this table tells nothing apart: every test is as good as a coin")
    P = []
    Q = []
    for p, q in kept:
        P.append(sp.Rational(p.numerator, p.denominator))
        Q.append(sp.Rational(q.numerator, q.denominator))
    x = sp.Symbol("x", real=True)
    points = {"points": list(range(len(kept)))}
    mechanism = Mechanism.from_pair(P, Q, x, points, name)
    assert isinstance(mechanism.source, Laws)
    source = replace(mechanism.source, is_bound=is_bound)
    return replace(mechanism, source=source)


def from_trade_off(
    f: sp.Expr,
    variable: sp.Symbol,
    name: str = "trade_off",
    *,
    parameters: Mapping[str, str] | None = None,
) -> Mechanism:
    """Return the mechanism whose trade-off function is a formula."""
    alpha, curve = _formula_of(f, variable, "trade-off function", parameters)
    at_zero = tidy.bounded(sp.simplify, curve.subs(alpha, 0))
    at_one = tidy.bounded(sp.simplify, curve.subs(alpha, 1))
    if at_one != 0:
        raise InputError(f"a trade-off function is 0 at α = 1, not {at_one}")
    if not curve.free_symbols - {alpha}:
        _check_formula(curve, alpha)
    names = {symbol.name for symbol in curve.free_symbols}
    s = alpha
    while s.name in names:
        s = sp.Symbol(f"{s.name}_s", real=True)
    in_s = curve.subs(alpha, sp.exp(-s))
    moved = sp.powdenest(sp.expand(in_s), force=True)
    P = tidy.bounded(sp.simplify, sp.diff(moved, s))
    Q = sp.exp(-s)
    if at_zero == 1:
        return Mechanism.from_pair(P, Q, s, (0, sp.oo), name, parameters=parameters)
    left = s < 0
    P = sp.Piecewise((1 - at_zero, left), (P, True))
    Q = sp.Piecewise((0, left), (Q, True))
    return Mechanism.from_pair(P, Q, s, (-1, sp.oo), name, parameters=parameters)


def _formula_of(
    formula: object, variable: object, what: str, parameters: Mapping[str, str] | None
) -> tuple[sp.Symbol, sp.Expr]:
    """Return the variable as a real symbol, and the formula in it."""
    if not isinstance(variable, sp.Symbol):
        raise InputError(f"the variable of a {what} must be a SymPy symbol, not {variable!r:.40}")
    name = str(variable.name)
    if name in (parameters or {}):
        raise InputError(f"'{variable}' is both the variable of the {what} and a parameter")
    if not isinstance(formula, sp.Expr | int):
        raise InputError(f"a {what} must be a SymPy expression of {variable}, not {formula!r:.40}")
    symbol = sp.Symbol(name, real=True)
    expression = sp.sympify(formula, strict=True)
    return symbol, expression.xreplace({variable: symbol})


def from_profile(
    delta: sp.Expr,
    variable: sp.Symbol,
    support: object,
    name: str = "profile",
    *,
    parameters: Mapping[str, str] | None = None,
) -> Mechanism:
    """Return the mechanism whose privacy profile is a formula."""
    epsilon, curve = _formula_of(delta, variable, "privacy profile", parameters)
    mechanism = Mechanism.from_pair(curve, curve, epsilon, support, name, parameters=parameters)
    last = sp.nan
    limit = tidy.limit(curve, epsilon, mechanism.support.upper, "-")
    if limit is not None:
        last = tidy.bounded(sp.simplify, limit)
    if last != 0:
        raise InputError(f"a profile must come down to 0 at its largest loss, not to {last}")
    slope = sp.diff(curve, epsilon)
    bend = sp.diff(curve, epsilon, 2)
    P = tidy.bounded(sp.simplify, bend - slope)
    Q = sp.exp(-epsilon) * P
    return Mechanism.from_pair(P, Q, epsilon, support, name, parameters=parameters)


def _check_formula(curve: sp.Expr, alpha: sp.Symbol) -> None:
    """Raise InputError at the first place where a formula breaks a rule, if one is found."""
    bend = sp.diff(curve, alpha, 2)
    slope = sp.diff(curve, alpha)
    rules = (
        (curve - 1 + alpha, "lies above 1 - α", 1),
        (slope, "rises", 1),
        (bend, "is not convex", -1),
    )
    for step in range(1, _PLACES):
        tried = sp.Rational(step, _PLACES)
        for expression, rule, wrong_sign in rules:
            value = expression.subs(alpha, tried).evalf(30)
            if not value.is_comparable:
                raise InputError(
                    f"the trade-off function has no real value near α = {float(tried)}"
                )
            if wrong_sign * value > _SLACK:
                raise InputError(f"the trade-off function {rule} at α = {float(tried)}")


def from_renyi(
    divergence: sp.Expr,
    variable: sp.Symbol | str = "alpha",
    name: str = "renyi",
    *,
    parameters: Mapping[str, str] | None = None,
) -> Mechanism:
    """Return the step whose Rényi divergence of order α > 1 is at most a formula of α."""
    intake = Intake(variable, _ORDERS, parameters)
    alpha = intake.variable
    curve = intake.read(divergence, "the divergence")
    if not curve.free_symbols - {alpha}:
        for power in range(-_TRIED, _TRIED + 1):
            order = 1 + sp.Integer(2) ** power
            value = curve.subs(alpha, order).evalf(30)
            is_nonnegative = value.is_comparable and value >= 0
            if value != sp.oo and not is_nonnegative:
                raise InputError(f"the divergence of order {order} must be 0 or more, not {value}")
    return Mechanism(name, alpha, _ORDERS, RenyiCurve(curve), intake.declared)


def from_renyi_points(
    points: Mapping[Number, Number] | Iterable[Iterable[Number]], name: str = "renyi"
) -> Mechanism:
    """Return the step whose Rényi divergence is bounded at some orders."""
    listed = points.items() if isinstance(points, Mapping) else points
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise InputError("a Rényi curve must be a table of orders and divergences")
    orders_and_bounds: list[sp.Expr] = []
    for index, point in enumerate(listed, start=1):
        pair = _two(point, index, "order", "divergence")
        orders_and_bounds += [exact(pair[0], "the order"), exact(pair[1], "the divergence")]
    alpha = sp.Symbol("alpha", real=True)
    return Mechanism(name, alpha, _ORDERS, RenyiCurve.of_table(orders_and_bounds), ())
