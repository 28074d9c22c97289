"""What pairs of sampling schemes ask of a noise density: symmetry, one mode, a concave logarithm.

All three are proved by algebra on one side of the centre, where |x − c| is x − c; what SymPy
cannot decide counts as not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp

from symdp.interrupt import attempt
from symdp.model import tidy
from symdp.model.pair import Support

_SECONDS = 2.0  # for each question put to SymPy
_PLACES = (sp.Rational(3, 7), sp.Rational(19, 11))  # where unequal densities are told apart


@dataclass(frozen=True)
class Shape:
    """What was proved of a density f."""

    centre: sp.Expr | None  # the c with f(c + y) = f(c − y), None where no such c was found
    falls: bool  # whether f(c + y) does not rise in y > 0
    is_log_concave: bool  # whether log f is concave on the whole support


@lru_cache(maxsize=256)
def shape_of(density: sp.Expr, variable: sp.Symbol, support: Support) -> Shape:
    """Return what can be proved of a density."""
    y = sp.Symbol("y", positive=True)
    whole = sp.Symbol("y", real=True)
    centre = centre_of(density, variable, support)
    if centre is not None:
        right = density.subs(variable, centre + y)
        half = support.upper - centre
        slope, bend = sp.diff(right, y), sp.diff(_logarithm(right), y, 2)
        falls = _is_nonpositive(slope, y, half)
        # Concave on both sides and symmetric: at the centre it turns downwards where it falls.
        concave = _is_nonpositive(bend, y, half)
        if concave and not falls:  # the slope of a concave logarithm is the largest at the centre
            first = sp.limit(sp.diff(_logarithm(right), y), y, 0, "+")
            falls = _is_nonpositive(first, y, half)
        return Shape(centre, falls, falls and concave)
    bend = sp.diff(_logarithm(density.subs(variable, whole)), whole, 2)
    smooth = not density.has(sp.Abs, sp.sign, sp.Min, sp.Max, sp.Piecewise, sp.Heaviside)
    return Shape(None, False, smooth and _is_nonpositive(bend, whole, sp.oo))


@lru_cache(maxsize=256)
def centre_of(density: sp.Expr, variable: sp.Symbol, support: Support) -> sp.Expr | None:
    """Return the c with f(c + y) = f(c − y), None where no such c was found."""
    y = sp.Symbol("y", positive=True)
    # A constant that is kept as an integral would be computed anew at every place.
    density = density.as_independent(variable, as_Add=False)[1]
    for centre in _centres(density, variable, support):
        right, left = (density.subs(variable, centre + side * y) for side in (1, -1))
        if _are_equal(right, left, y):
            return centre
    return None


def _logarithm(density: sp.Expr) -> sp.Expr:
    return sp.expand_log(sp.log(density), force=True)


def _centres(density: sp.Expr, x: sp.Symbol, support: Support) -> Iterator[sp.Expr]:
    """Yield candidates: 0 or the middle of the support, and the zeros of linear terms."""
    lower, upper = support.lower, support.upper
    if lower.is_infinite is not True and upper.is_infinite is not True:
        yield tidy.simplify((lower + upper) / 2)
        return
    if lower != -upper:
        return
    yield sp.S.Zero
    seen = {sp.S.Zero}
    for node in density.atoms(sp.Add):
        if node.is_polynomial(x) and sp.degree(node, x) == 1:
            centre = tidy.cancel(-node.subs(x, 0) / sp.diff(node, x))
            if centre not in seen and (not x.is_integer or (2 * centre).is_integer):
                seen.add(centre)
                yield centre


def _are_equal(right: sp.Expr, left: sp.Expr, y: sp.Symbol) -> bool:
    """Whether two functions are one; numbers tell most of those that are not, in no time."""
    gap = right - left
    if gap == 0:
        return True
    symbols = sorted(gap.free_symbols - {y}, key=str)
    values = {s: sp.Integer(k + 2) / (1 if s.is_integer else 3) for k, s in enumerate(symbols)}
    for place in _PLACES:
        size, scale = (own.subs(values).subs(y, place).evalf(20, maxn=200) for own in (gap, right))
        if size.is_number and scale.is_number and abs(size) > sp.Float("1e-12") * abs(scale):
            return False
    return (
        _tried(sp.expand, gap) == 0
        or _tried(_ratio, (right, left)) == 1
        or any(_tried(way, gap) == 0 for way in (_canonical, tidy.simplify))
    )


def _ratio(sides: tuple[sp.Expr, sp.Expr]) -> sp.Expr | None:
    try:
        return tidy.cancel(sides[0] / sides[1])
    except (sp.PolynomialError, NotImplementedError):  # a Piecewise is no rational function
        return None


def _tried(way: Callable[[Any], sp.Expr | None], expression: Any) -> sp.Expr | None:
    return attempt(lambda: way(expression), None, _SECONDS)


def _canonical(gap: sp.Expr) -> sp.Expr:
    return tidy.simplify(sp.expand(sp.powsimp(sp.expand(gap.rewrite(sp.exp)))))


def _is_nonpositive(expression: sp.Expr, y: sp.Symbol, half: sp.Expr) -> bool:
    """Whether an expression is at most 0 for 0 < y < half, for all values of the parameters."""
    if expression.has(sp.Derivative, sp.Piecewise, sp.Heaviside, sp.DiracDelta, sp.sign):
        return False
    if half.is_infinite is not True:
        w = sp.Symbol("w", positive=True)
        expression = expression.subs(y, half * w / (1 + w))
    if expression.is_nonpositive:
        return True
    found = (_tried(way, expression) for way in (tidy.factor, tidy.simplify, tidy.together))
    return any(one is not None and bool(one.is_nonpositive) for one in found)
