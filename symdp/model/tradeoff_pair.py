r"""Pairs of a step that is known by its trade-off function or by its privacy profile.

*Trade-off function* f: no test of size α misses with a probability below f(α). With Q uniform on
[0, 1], P of density −f′ and the mass 1 − f(0) at infinity, the tests [0, α] miss with exactly f(α):
the pair is f where f is convex, and below f otherwise [Dong, Roth, Su 2019, Proposition 2.2].
In s = −log α the laws are e^{−s} and the derivative of f(e^{−s}), which tames a steep start of f.

*Privacy profile*: δ as a function of y = e^ε is convex, falls from 1 at y = 0 with a slope of −1 or
more, and under Q the ratio P/Q has the law δ″(y) [Gopi, Lee, Wutschitz 2021, Theorem 3.3].

*Tables* are claims at some points. The largest function that they allow is piecewise linear once
its convex hull is taken, and piecewise linear functions are finite lists of outcomes, exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

import sympy as sp

from symdp.errors import InputError, suggestion
from symdp.model.guarded import sign_of
from symdp.model.mechanism import Mechanism
from symdp.model.sampling import Number, exact

__all__ = ["from_profile", "from_profile_points", "from_trade_off", "from_trade_off_points"]

MOST_POINTS = 400  # outcomes of a list: each is an exact formula of its own
MOST_EPSILON = 10_000  # of a table: e^ε is evaluated to sixty digits behind its decimal point
_BETWEEN = ("unknown", "convex", "lines")
_DIGITS = 60  # to which the places of a hull are compared
_PLACES = 64  # where a formula is tried against the rules of a trade-off function
_SLACK = sp.Float("1e-30", 30)
Point = tuple[sp.Expr, sp.Expr]


def from_trade_off(
    f: sp.Expr,
    variable: sp.Symbol,
    name: str = "trade_off",
    *,
    parameters: Mapping[str, str] | None = None,
) -> Mechanism:
    """Return the mechanism whose trade-off function is a formula.

    Parameters
    ----------
    f : the least miss rate at false alarm rate α, for 0 ≤ α ≤ 1; other symbols are parameters
    variable : α
    parameters : name -> domain word, as for `Mechanism.additive`

    Raises
    ------
    InputError : f(1) is not 0, or f is found to rise, to be concave, or to lie above 1 − α.

    Examples
    --------
    >>> a = sp.Symbol("a")
    >>> from_trade_off((1 - sp.sqrt(a))**2, a).source.Q
    exp(-a_s)
    """
    alpha, curve = _read(f, variable, "trade-off function", parameters)
    ends = [sp.simplify(curve.subs(alpha, end)) for end in (0, 1)]
    if ends[1] != 0:
        raise InputError(f"a trade-off function is 0 at α = 1, not {ends[1]}")
    if not curve.free_symbols - {alpha}:
        _check_formula(curve, alpha)
    s = alpha
    while s.name in {symbol.name for symbol in curve.free_symbols}:
        s = sp.Symbol(f"{s.name}_s", real=True)
    moved = sp.powdenest(sp.expand(curve.subs(alpha, sp.exp(-s))), force=True)
    P, Q = sp.simplify(sp.diff(moved, s)), sp.exp(-s)
    if ends[0] == 1:
        return Mechanism.from_pair(P, Q, s, (0, sp.oo), name, parameters=parameters)
    left = s < 0
    P, Q = sp.Piecewise((1 - ends[0], left), (P, True)), sp.Piecewise((0, left), (Q, True))
    return Mechanism.from_pair(P, Q, s, (-1, sp.oo), name, parameters=parameters)


def _read(
    formula: object, variable: object, what: str, parameters: Mapping[str, str] | None
) -> tuple[sp.Symbol, sp.Expr]:
    """Return the variable as a real symbol, and the formula in it."""
    if not isinstance(variable, sp.Symbol):
        raise InputError(f"the variable of a {what} must be a SymPy symbol, not {variable!r:.40}")
    if str(variable.name) in (parameters or {}):
        raise InputError(f"'{variable}' is both the variable of the {what} and a parameter")
    if not isinstance(formula, sp.Expr | int):
        raise InputError(f"a {what} must be a SymPy expression of {variable}, not {formula!r:.40}")
    symbol = sp.Symbol(str(variable.name), real=True)
    return symbol, sp.sympify(formula, strict=True).xreplace({variable: symbol})


def from_trade_off_points(
    points: Iterable[Iterable[Number]], between: str = "unknown", name: str = "trade_off"
) -> Mechanism:
    """Return a pair that dominates every step whose trade-off function a table describes.

    Parameters
    ----------
    points : (α, β), α rising: false alarm rates and least miss rates, each in [0, 1]
    between : what is known between the points. "unknown": β is a lower bound at α, nothing else;
        "convex": β is the value at α; "lines": the function is straight from point to point

    Raises
    ------
    InputError : fewer than two points, points out of order, a rate that is no probability, a β
        that rises, or lies above 1 − α; a corner that bends the wrong way, unless "unknown".

    Examples
    --------
    >>> from_trade_off_points([(0, 1), ("1/4", "1/4"), (1, 0)], "lines").pair().P
    (3/4, 1/4)
    """
    if between not in _BETWEEN:
        hint = suggestion(str(between), _BETWEEN) or f" (known are {', '.join(_BETWEEN)})"
        raise InputError(f"between = {between!r:.40} is unknown{hint}")
    table = _table(points, "α", "β", 2)
    for place, (alpha, beta) in enumerate(table, start=1):
        if not 0 <= alpha <= 1:
            raise InputError(f"point {place}: α = {alpha} is no probability")
        if beta < 0 or beta > 1 - alpha:
            raise InputError(
                f"point {place}: f({alpha}) = {beta} does not lie between 0 and 1 - α: a coin that "
                "ignores the output does better"
            )
    _check_falling(table, "α", "f")
    if table[-1][0] < 1 and table[-1][1] > 0:
        table.append((sp.Integer(1), sp.Integer(0)))
    if between == "unknown":
        corners = _steps(table)
    else:
        _check_convex(table)
        corners = table if between == "lines" else _extended_chords(table)
        if between == "lines" and table[0][0] != 0:
            raise InputError("between = 'lines' needs a first point at α = 0")
    hull = _lower_hull(corners)
    masses = [(1 - hull[0][1], sp.Integer(0))]
    masses += [(this[1] - that[1], that[0] - this[0]) for this, that in pairwise(hull)]
    masses.append((sp.Integer(0), 1 - hull[-1][0]))
    return _listed(masses, name)


def from_profile(
    delta: sp.Expr,
    variable: sp.Symbol,
    support: object,
    name: str = "profile",
    *,
    parameters: Mapping[str, str] | None = None,
) -> Mechanism:
    """Return the mechanism whose privacy profile is a formula.

    Parameters
    ----------
    delta : δ(ε) of one direction on the range of the loss, without atoms
    variable : ε
    support : (least, most) loss, where δ must come down to 0
    parameters : name -> domain word, as for `Mechanism.additive`

    Raises
    ------
    InputError : δ is not 0 at the largest loss.

    Examples
    --------
    >>> e = sp.Symbol("e")
    >>> from_profile(1 / (1 + sp.exp(e)), e, (-sp.oo, sp.oo))
    <Mechanism profile()>
    """
    epsilon, curve = _read(delta, variable, "privacy profile", parameters)
    made = Mechanism.from_pair(curve, curve, epsilon, support, name, parameters=parameters)
    last = sp.simplify(sp.limit(curve, epsilon, made.support.upper, "-"))
    if last != 0:
        raise InputError(f"a profile must come down to 0 at its largest loss, not to {last}")
    P = sp.simplify(sp.diff(curve, epsilon, 2) - sp.diff(curve, epsilon))
    Q = sp.exp(-epsilon) * P
    return Mechanism.from_pair(P, Q, epsilon, support, name, parameters=parameters)


def from_profile_points(
    points: Iterable[Iterable[Number]], *, both: bool = True, name: str = "profile"
) -> Mechanism:
    """Return a pair that dominates every step with a list of guarantees (ε, δ).

    The profile is convex in e^ε and does not rise, so that it lies below the lower convex hull of
    the points, continued by a constant. One point is the box of Kairouz, Oh and Viswanath.

    Parameters
    ----------
    points : (ε, δ), ε rising, each a guarantee of the step
    both : whether they hold in both directions, as guarantees of differential privacy do; then
        δ(−ε) ≤ 1 − e^{−ε} + e^{−ε}δ bounds the other side

    Raises
    ------
    InputError : no points, points out of order, a δ that is no probability, rises with ε, or lies
        below 1 − e^ε.

    Examples
    --------
    >>> box = from_profile_points([(0, "1/3")]).pair()
    >>> box.P, box.Q
    ((1/3, 0, 2/3), (0, 1/3, 2/3))
    """
    table = _table(points, "ε", "δ", 1)
    for place, (epsilon, delta) in enumerate(table, start=1):
        if not 0 <= delta <= 1:
            raise InputError(f"point {place}: δ = {delta} is no probability")
        if abs(epsilon) > MOST_EPSILON:
            raise InputError(f"point {place}: ε must lie within ±{MOST_EPSILON}")
        if sign_of(delta - 1 + sp.exp(epsilon)) < 0:
            raise InputError(f"point {place}: δ({epsilon}) = {delta} lies below 1 - e^ε")
    _check_falling(table, "ε", "δ")
    if both:
        table += [(-e, 1 - sp.exp(-e) * (1 - d)) for e, d in table if e != 0]
    corners = [(sp.Integer(0), sp.Integer(1)), *((sp.exp(e), d) for e, d in table)]
    hull = _lower_hull(sorted(corners, key=lambda point: _size(point[0])))
    slopes = [(that[1] - this[1]) / (that[0] - this[0]) for this, that in pairwise(hull)]
    slopes.append(sp.Integer(0))
    masses = [(hull[-1][1], sp.Integer(0)), (sp.Integer(0), 1 + slopes[0])]
    for (y, _), (before, after) in zip(hull[1:], pairwise(slopes), strict=True):
        masses.append((y * (after - before), after - before))
    return _listed(masses, name)


def _table(points: Iterable[Iterable[Number]], first: str, second: str, least: int) -> list[Point]:
    if isinstance(points, str | Mapping) or not isinstance(points, Iterable):
        raise InputError(f"the points must be a list of ({first}, {second})")
    points = list(points)
    if not least <= len(points) <= MOST_POINTS:
        raise InputError(f"the table has {len(points)} points; {least} to {MOST_POINTS} are needed")
    table: list[Point] = []
    for place, point in enumerate(points, start=1):
        pair = list(point) if isinstance(point, Iterable) and not isinstance(point, str) else []
        if len(pair) != len((first, second)):
            raise InputError(f"point {place} must be ({first}, {second}), not {point!s:.40}")
        own = (
            exact(pair[0], f"point {place}: {first}"),
            exact(pair[1], f"point {place}: {second}"),
        )
        if table and sign_of(own[0] - table[-1][0]) <= 0:
            raise InputError(
                f"point {place}: {first} = {own[0]} does not lie above the {table[-1][0]} before "
                "it; sort the table"
            )
        table.append(own)
    return table


def _check_falling(table: Sequence[Point], first: str, second: str) -> None:
    for this, that in pairwise(table):
        if sign_of(that[1] - this[1]) > 0:
            raise InputError(
                f"{second} rises from {this[1]} to {that[1]} between {first} = {this[0]} and "
                f"{that[0]}; it must not"
            )


def _check_convex(table: Sequence[Point]) -> None:
    for a, b, c in zip(table, table[1:], table[2:], strict=False):
        if _turn(a, b, c) < 0:
            raise InputError(f"the trade-off function is not convex at α = {b[0]}")


def _check_formula(curve: sp.Expr, alpha: sp.Symbol) -> None:
    """Raise InputError at the first place where a formula breaks a rule, if one is found."""
    bend = sp.diff(curve, alpha, 2)
    slope = sp.diff(curve, alpha)
    for step in range(1, _PLACES):
        at = sp.Rational(step, _PLACES)
        for what, rule, wrong in (
            (curve - 1 + alpha, "lies above 1 - α", 1),
            (slope, "rises", 1),
            (bend, "is not convex", -1),
        ):
            value = what.subs(alpha, at).evalf(30)
            if not value.is_comparable:
                raise InputError(f"the trade-off function has no real value near α = {float(at)}")
            if wrong * value > _SLACK:
                raise InputError(f"the trade-off function {rule} at α = {float(at)}")


def _steps(table: Sequence[Point]) -> list[Point]:
    """Return the lower corners of what may fall to its next value just after each point."""
    alphas = [sp.Integer(0), *(alpha for alpha, _ in table)]
    betas = [*(beta for _, beta in table), sp.Integer(0)]
    return list(zip(alphas, betas, strict=True))


def _extended_chords(table: Sequence[Point]) -> list[Point]:
    """Return where neighbouring chords, extended, meet: no convex function lies lower there."""
    corners = []
    for place, (left, right) in enumerate(pairwise(table)):
        before = _line(table[place - 1], left) if place else None
        after = _line(right, table[place + 2]) if place + 2 < len(table) else None
        if before is None and after is not None:
            corners.append((left[0], after[0] + after[1] * left[0]))
        elif before is not None and after is None:
            end = right[0] if before[1] == 0 else min(right[0], -before[0] / before[1])
            corners.append((end, sp.Max(before[0] + before[1] * end, 0)))
        elif before is not None and after is not None and before[1] != after[1]:
            at = (after[0] - before[0]) / (before[1] - after[1])
            corners.append((at, sp.Max(before[0] + before[1] * at, 0)))
        else:
            corners += [left, right]
    first = (sp.Integer(0), corners[0][1])
    return [first, *corners, (sp.Integer(1), sp.Integer(0))]


def _line(a: Point, b: Point) -> Point:
    slope = (b[1] - a[1]) / (b[0] - a[0])
    return a[1] - slope * a[0], slope


def _lower_hull(points: Sequence[Point]) -> list[Point]:
    """Return the lower convex hull of points that are sorted by their first entry."""
    hull: list[Point] = []
    for point in points:
        if hull and _size(point[0] - hull[-1][0]) == 0:
            if _size(point[1] - hull[-1][1]) >= 0:
                continue
            hull.pop()
        while len(hull) >= 2 and _turn(hull[-2], hull[-1], point) <= 0:
            hull.pop()
        hull.append(point)
    while len(hull) >= 2 and _size(hull[-1][1] - hull[-2][1]) >= 0:
        hull.pop()
    return hull


def _turn(a: Point, b: Point, c: Point) -> int:
    """Return the sign of the bend at b, 0 where it is too small to be told."""
    cross = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    size = _size(cross)
    return (size > 0) - (size < 0)


def _size(value: sp.Expr) -> Fraction:
    """Return a constant to sixty digits, 0 where it is smaller than that."""
    number = sp.Rational(value if value.is_Rational else value.evalf(_DIGITS, chop=True))
    exactly = Fraction(int(number.p), int(number.q))
    return exactly if abs(exactly) > Fraction(1, 10**_DIGITS) else Fraction(0)


def _listed(masses: Sequence[tuple[sp.Expr, sp.Expr]], name: str) -> Mechanism:
    """Return the mechanism of a list of outcomes (P, Q), empty ones left out."""
    kept = [pair for pair in masses if pair[0] != 0 or pair[1] != 0]
    if len(kept) == 1:
        raise InputError("this table tells nothing apart: every test is as good as a coin")
    points = {"points": list(range(len(kept)))}
    x = sp.Symbol("x", real=True)
    return Mechanism.from_pair([p for p, _ in kept], [q for _, q in kept], x, points, name)
