"""The shape of a noise density by rules: even, log-concave, of one mode, each with its reason.

Rules cost nothing and are proofs, for all values of the parameters that stay symbols:

- log-concavity, by the way in which f is built (`symdp.density.curvature`), by its second
  derivative, or piece by piece with slopes that fall at each join;
- sums of independent laws: F(x + a) − F(x − a) is a uniform law plus noise of density F′, and where
  f − b²f″ = g the noise is Laplace's of scale b plus noise of density g. Both keep log-concavity
  [Prékopa 1973]; with g of one mode the sum has one mode, as the other law is log-concave
  [Ibragimov 1956];
- one mode: f falls on either side of a point, by the way in which it is built or by its slope; or
  log f(a + e^u) is concave in u, on a half-line from a.

What no rule shows is open, never its opposite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import arb, ctx

from symdp.density.breakpoints import Stretch, smooth_stretches
from symdp.density.curvature import Curvature
from symdp.density.signs import random_values, sign_of
from symdp.emit.arb import compile_arb
from symdp.errors import InputError
from symdp.interrupt import attempt
from symdp.model import tidy
from symdp.model.fact import OPEN, RULE, Fact, Shape
from symdp.model.pair import Support
from symdp.tolerances import SHORT_TIME

if TYPE_CHECKING:
    from symdp.density.second_look import SecondLook

_PLACE = 3 / 7  # where unequal densities are told apart, times powers of two
_OCTAVES = range(-40, 41, 4)
_BITS = 100  # of a ball there
_MOST_TERMS = 12  # of a density that is put into the equation of Laplace's sum
_LONGEST = 150  # operations of an expression whose sign SymPy is asked for
_POINTS = tuple(sp.Rational(j, 7) for j in (1, 3, 8, 15, 40, 90))  # where a sign is looked at
_CLEAR = sp.Float("1e-9")  # beyond rounding
_MOST_CENTRES = 6  # points from which a density may fall
_JUMPING = (sp.sign, sp.Piecewise, sp.Heaviside)
_UNKNOWN = (sp.Derivative, sp.DiracDelta, sp.polygamma, *_JUMPING)
# Of distribution functions up to a line, as densities are written, up to a positive factor.
_DERIVATIVES: dict[type[sp.Basic], Callable[[sp.Expr], sp.Expr]] = {
    sp.erf: lambda u: sp.exp(-(u**2)),
    sp.erfc: lambda u: -sp.exp(-(u**2)),
    sp.tanh: lambda u: 1 / sp.cosh(u) ** 2,
    sp.atan: lambda u: 1 / (1 + u**2),
}
_NONE = Fact(None, OPEN, "no rule shows it")


@lru_cache(maxsize=256)
def shape_of(density: sp.Expr, variable: sp.Symbol, support: Support) -> Shape:
    """Return what can be proved of a density by rules."""
    centre = centre_of(density, variable, support)
    even = _NONE
    if centre == 0:
        even = Fact(centre, RULE, "f(y) = f(−y)")
    elif centre is not None:
        even = Fact(centre, RULE, f"f({centre} + y) = f({centre} − y)")
    body = _without_constant(density, variable, support)
    log_concave = _by_concave_terms(body, variable, support)
    one_mode = _NONE
    if not log_concave:  # and where values say no, to look for a proof is in vain
        look, _ = _second_look(density, variable, support)
        if not look.against_log_concave():
            log_concave = _log_concave(body, variable, support, centre)
        if not log_concave and not look.against_one_mode():
            one_mode = _one_mode(body, variable, support, centre)
    if log_concave:
        one_mode = Fact(True, RULE, f"it is log-concave: {log_concave.reason}")
    return _looked_at(Shape(even, log_concave, one_mode), density, variable, support)


def _looked_at(shape: Shape, density: sp.Expr, x: sp.Symbol, support: Support) -> Shape:
    """Return the shape, its facts open where values of the density contradict them."""
    centre = shape.centre
    if centre is None and not shape.one_mode:
        return shape
    look, values = _second_look(density, x, support)
    contradictions: dict[str, object] = {}
    if shape.log_concave:
        contradictions["log_concave"] = look.against_log_concave()
    if shape.one_mode:
        contradictions["one_mode"] = look.against_one_mode()
    if centre is not None:
        contradictions["even"] = look.against_even(centre.xreplace(values))
    for name, contradiction in contradictions.items():
        if contradiction:
            open_fact = contradicted(getattr(shape, name), contradiction)
            shape = replace(shape, **{name: open_fact})
    return shape


@lru_cache(maxsize=64)
def _second_look(
    density: sp.Expr, x: sp.Symbol, support: Support
) -> tuple[SecondLook, Mapping[sp.Symbol, sp.Expr]]:
    """Return a density's heights at some values of its parameters, and these values."""
    from symdp.density.second_look import SecondLook

    symbols = density.free_symbols | support.lower.free_symbols | support.upper.free_symbols
    values = random_values(symbols - {x}, 0)
    return SecondLook(density.xreplace(values), x, support.substitute(values)), values


def contradicted(fact: Fact, contradiction: object) -> Fact:
    """Return an open fact in place of one that values contradict."""
    return Fact(
        None,
        OPEN,
        f"its proof ({fact.reason}) contradicts the density's values at {contradiction}: "
        "a fault of symdp, please report it",
    )


@lru_cache(maxsize=256)
def centre_of(density: sp.Expr, variable: sp.Symbol, support: Support) -> sp.Expr | None:
    """Return the c with f(c + y) = f(c − y), None where no such c was found."""
    y = sp.Symbol("y", positive=True)
    # A constant that is kept as an integral would be computed anew at every point.
    _, body = density.as_independent(variable, as_Add=False)
    for centre in _centres(body, variable, support):
        right = body.subs(variable, centre + y)
        left = body.subs(variable, centre - y)
        if _are_equal(right, left, y):
            return centre
    return None


def _without_constant(f: sp.Expr, x: sp.Symbol, support: Support) -> sp.Expr:
    """Return f up to a positive factor; a constant of open sign has that of the rest of f."""
    constant, body = f.as_independent(x, as_Add=False)
    sign = sign_of(constant)
    if sign is None:
        run = Curvature(x, support.lower, support.upper).run(body)
        if run.is_nonnegative:  # a density is not negative
            sign = 1
        elif run.is_nonpositive:
            sign = -1
    if sign == 1:
        return body
    if sign == -1:
        return sp.Add(*(-term for term in sp.Add.make_args(body)))
    return f


def _by_concave_terms(f: sp.Expr, x: sp.Symbol, support: Support) -> Fact:
    if f.has(*_JUMPING) or Curvature(x, support.lower, support.upper).log_bend(f) not in (0, -1):
        return _NONE
    return Fact(True, RULE, "its logarithm is a sum of concave terms")


def _log_concave(f: sp.Expr, x: sp.Symbol, support: Support, centre: sp.Expr | None) -> Fact:
    lower = support.lower
    upper = support.upper
    if not f.has(*_JUMPING):
        smoothed = _smoothed(f, x)
        if smoothed is not None:
            difference, name = smoothed
            if Curvature(x, -sp.oo, sp.oo).log_bend(difference) in (0, -1):
                return Fact(True, RULE, f"a uniform law plus independent noise: {name}")
        if _laplace_part(f, x, lambda g: Curvature(x, lower, upper).log_bend(g) in (0, -1)):
            return Fact(True, RULE, "Laplace noise plus independent log-concave noise")
    if x.is_integer and f.has(*_JUMPING):
        return _NONE
    if _pieces_are_concave(f, x, lower, upper):
        return Fact(True, RULE, "its pieces are log-concave and its slope falls at each join")
    if _bends_down(f, x, support, centre):
        return Fact(True, RULE, "the second derivative of log f is nowhere above 0")
    return _NONE


def _pieces_are_concave(f: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> bool:
    """Whether a continuous f is log-concave on each piece, with slopes that fall at the joins."""
    if not f.has(sp.Piecewise, sp.Abs, sp.Max, sp.Min) or x.is_integer:
        return False
    stretches = _stretches_of(f, x, lower, upper)
    for stretch in stretches:
        (piece,) = stretch.expressions
        curvature = Curvature(x, stretch.lower, stretch.upper)
        if curvature.log_bend(piece) in (0, -1):
            continue
        if curvature.run(_log_slope(piece, x)).slope not in (0, -1):
            return False
    joins = all(_joins_downwards(left, right, x) for left, right in pairwise(stretches))
    return bool(stretches) and joins


def _stretches_of(f: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> list[Stretch]:
    """Return the smooth stretches of f, none where their order is open."""
    try:
        return smooth_stretches((f,), x, lower, upper)
    except InputError:
        return []


def _joins_downwards(left: Stretch, right: Stretch, x: sp.Symbol) -> bool:
    """Whether two pieces meet and the slope of the logarithm does not rise there."""
    before = left.expressions[0]
    after = right.expressions[0]
    join = left.upper
    jump = before.subs(x, join) - after.subs(x, join)
    if not _vanishes(jump):
        return False
    slope_before = sp.diff(before, x).subs(x, join)
    slope_after = sp.diff(after, x).subs(x, join)
    gap = slope_before - slope_after
    return _vanishes(gap) or sign_of(gap) == 1


def _vanishes(gap: sp.Expr) -> bool:
    return gap == 0 or sign_of(gap) == 0 or _tried(tidy.simplify, gap) == 0


def _bends_down(f: sp.Expr, x: sp.Symbol, support: Support, centre: sp.Expr | None) -> bool:
    """Whether SymPy sees that (log f)″ ≤ 0; of an even f right of its centre, where f falls."""
    if f.has(*_JUMPING):
        return False
    if centre is None:
        whole = sp.Symbol("y", real=True)
        logarithm = _logarithm(f.subs(x, whole))
        bend = sp.diff(logarithm, whole, 2)
        has_kinks = f.has(sp.Abs, sp.Max, sp.Min)
        return not has_kinks and _is_nonpositive(bend, whole, sp.oo)
    y = sp.Symbol("y", positive=True)
    right = _logarithm(f.subs(x, centre + y))
    half = support.upper - centre
    bend = sp.diff(right, y, 2)
    if not _is_nonpositive(bend, y, half):
        return False
    # The slope of a concave logarithm is the largest at the centre.
    steepest = tidy.limit(sp.diff(right, y), y, sp.S.Zero, "+")
    return steepest is not None and _is_nonpositive(steepest, y, half)


def _one_mode(f: sp.Expr, x: sp.Symbol, support: Support, centre: sp.Expr | None) -> Fact:
    smoothed = None
    if not f.has(*_JUMPING):
        smoothed = _smoothed(f, x)
    if smoothed is not None:
        difference, name = smoothed
        line = Support(support.kind, -sp.oo, sp.oo)
        if shape_of(difference, x, line).one_mode:
            return Fact(True, RULE, f"a uniform law plus independent noise of one mode: {name}")
    if centre is not None:
        if _falls(f, x, centre, support, 1, is_even=True):
            return Fact(True, RULE, f"it falls on either side of its centre {x} = {centre}")
        return _NONE
    if _is_concave_in_the_logarithm(f, x, support):
        reason = f"log f is concave in the logarithm of the distance from {x} = {support.lower}"
        return Fact(True, RULE, reason)
    for start in _starts(f, x, support):
        falls_right = _falls(f, x, start, support, 1, is_even=False)
        if falls_right and _falls(f, x, start, support, -1, is_even=False):
            return Fact(True, RULE, f"it falls on either side of {x} = {start}")
    return _NONE


def _is_concave_in_the_logarithm(f: sp.Expr, x: sp.Symbol, support: Support) -> bool:
    """Whether log f(a + e^u) is concave in u on (a, b): it rises, then falls, in u and so in x."""
    if x.is_integer or support.lower.is_infinite:
        return False
    if f.has(sp.Abs, sp.Max, sp.Min, *_JUMPING):
        return False
    u = sp.Symbol("u", real=True)
    substituted = f.subs(x, support.lower + sp.exp(u))
    split = sp.expand_power_exp(sp.expand_power_base(substituted))
    written = split.replace(sp.exp, lambda exponent: sp.exp(_short_sum(exponent)))
    line = Curvature(u, -sp.oo, sp.log(support.upper - support.lower))
    return line.log_bend(written) in (0, -1)


def _short_sum(exponent: sp.Expr) -> sp.Expr:
    """Return an exponent multiplied out, where that has few terms."""
    terms = sp.expand(exponent)
    if len(sp.Add.make_args(terms)) > _MOST_TERMS:
        return exponent
    return terms


def _starts(f: sp.Expr, x: sp.Symbol, support: Support) -> list[sp.Expr]:
    """Return points of the support from which f may fall: its ends, kinks and zeros of terms."""
    starts = [end for end in (support.lower, support.upper) if not end.is_infinite]
    for zero in [sp.S.Zero, *_zeros_of_lines(f, x)]:
        sides = [sign_of(zero - start) for start in starts[:2]]
        if zero not in starts and None not in sides:
            starts.append(zero)
    return starts[:_MOST_CENTRES]


def _falls(
    f: sp.Expr, x: sp.Symbol, start: sp.Expr, support: Support, side: int, *, is_even: bool
) -> bool:
    """Whether f does not rise on the way from a point to an end of the support."""
    half = start - support.lower
    if side == 1:
        half = support.upper - start
    if half == 0:
        return True
    if not half.is_infinite and sign_of(half) != 1:
        return False
    y = sp.Symbol("y", positive=True, integer=x.is_integer or None)
    g = f.subs(x, start + side * y)
    stretches = _stretches_of(g, y, sp.S.Zero, half)
    if not stretches:
        return False
    for stretch in stretches:
        (piece,) = stretch.expressions
        if not stretch.is_point and not _piece_falls(piece, y, stretch, is_even=is_even):
            return False
    if x.is_integer and f.has(*_JUMPING):  # the value at the start may be its own
        fall = f.subs(x, start) - f.subs(x, start + side)
        if sign_of(fall) not in (0, 1):
            return False
    return all(_steps_down(left, right, y) for left, right in pairwise(stretches))


def _piece_falls(piece: sp.Expr, y: sp.Symbol, stretch: Stretch, *, is_even: bool) -> bool:
    """Whether f does not rise on a stretch; of an even f SymPy is asked for the sign, too."""
    curvature = Curvature(y, stretch.lower, stretch.upper)
    if curvature.run(piece).slope in (0, -1):
        return True
    if curvature.run(_log_slope(piece, y)).is_nonpositive:
        return True
    if not is_even:
        return False
    distance = sp.Symbol("y", positive=True)  # a real one: of whole ones SymPy leaves out (0, 1)
    moved = piece.subs(y, distance + stretch.lower)
    return _is_nonpositive(sp.diff(moved, distance), distance, stretch.upper - stretch.lower)


def _log_slope(f: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return f′/f of a positive f as a sum over its factors."""
    slope = sp.S.Zero
    for factor in sp.Mul.make_args(f):
        if isinstance(factor, sp.exp):
            slope += sp.diff(factor.args[0], x)
            continue
        base, exponent = factor.as_base_exp()
        if x in exponent.free_symbols:
            slope += sp.diff(exponent * sp.log(base), x)
        else:
            slope += exponent * sp.diff(base, x) / base
    return slope


def _steps_down(left: Stretch, right: Stretch, y: sp.Symbol) -> bool:
    """Whether f does not rise at a join."""
    before = left.expressions[0].subs(y, left.upper)
    after = right.expressions[0].subs(y, left.upper)
    gap = before - after
    return gap == 0 or sign_of(gap) in (0, 1) or _vanishes(gap)


def _smoothed(f: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, str] | None:
    """Return F′ where f = F(x + a) − F(x − a), a > 0, and what F is called."""
    if not f.is_Add or len(f.args) != 2:
        return None
    first, second = f.args
    first_value = _affine_argument(first, x)
    second_value = _affine_argument(second, x)
    if first_value is None or second_value is None:
        return None
    function = type(first_value)
    if type(second_value) is not function:
        return None
    u = first_value.args[0]
    v = second_value.args[0]
    rate = sp.diff(u, x)
    if sp.expand(sp.diff(v, x) - rate) != 0:
        return None
    distance = tidy.bounded(sp.cancel, (v - u) / rate)
    if x in distance.free_symbols:
        return None
    shifted = first.subs(x, x + distance)
    if sp.expand(shifted + second) != 0:
        return None
    # f = F(x) − F(x + d): a density where it is not negative, whatever the sign of d.
    sign = sign_of(distance)
    if not sign:
        return None
    factor = -sign * rate * first / first_value
    slope = _DERIVATIVES[function](u)
    return factor * slope, f"a difference of two values of {function.__name__}"


def _affine_argument(term: sp.Expr, x: sp.Symbol) -> Any:
    """Return the one function of x that a term is a constant times, if its argument is a line."""
    function = term.as_independent(x, as_Add=False)[1]
    if type(function) not in _DERIVATIVES or not function.args[0].is_polynomial(x):
        return None
    if sp.degree(function.args[0], x) == 1:
        return function
    return None


def _laplace_part(f: sp.Expr, x: sp.Symbol, is_wanted: Callable[[sp.Expr], bool]) -> bool:
    """Whether f − b²f″ is a density g of the wanted shape: f is that of Laplace(b) plus g's then.

    Another solution of the equation differs by multiples of e^{±x/b}, which have no finite mass.
    """
    if not f.has(sp.erfc, sp.erf):
        return False
    expanded = sp.expand(f)
    if len(sp.Add.make_args(expanded)) > _MOST_TERMS:
        return False
    second_derivative = sp.diff(expanded, x, 2)
    for rate in _rates(expanded, x):
        g = _collected(expanded - second_derivative / rate**2)
        if g.has(sp.erfc, sp.erf) or g == 0:
            continue
        constant, body = g.as_independent(x, as_Add=False)
        if sign_of(constant) == 1 and is_wanted(body):
            return True
    return False


def _rates(f: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    """Return the sizes of r in factors e^{rx} of f."""
    rates = []
    for node in f.atoms(sp.exp):
        exponent = sp.expand(node.args[0])
        if exponent.is_polynomial(x) and sp.degree(exponent, x) == 1:
            rate = sp.Abs(sp.diff(exponent, x))
            if rate not in rates:
                rates.append(rate)
    return rates


def _collected(expression: sp.Expr) -> sp.Expr:
    """Return a sum whose products of exponentials are single ones, equal terms joined."""
    terms = []
    for term in sp.Add.make_args(sp.expand(expression)):
        exponents = []
        others = []
        for factor in sp.Mul.make_args(term):
            if isinstance(factor, sp.exp):
                exponents.append(factor.args[0])
            else:
                others.append(factor)
        exponent = sp.expand(sp.Add(*exponents))
        terms.append(sp.Mul(*others) * sp.exp(exponent))
    return sp.Add(*terms)


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
    for centre in _zeros_of_lines(density, x):
        if centre != 0 and (not x.is_integer or (2 * centre).is_integer):
            yield centre


def _zeros_of_lines(density: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    """Return the zeros of linear terms, each once."""
    zeros: list[sp.Expr] = []
    for node in density.atoms(sp.Add):
        if node.is_polynomial(x) and sp.degree(node, x) == 1:
            zero = tidy.cancel(-node.subs(x, 0) / sp.diff(node, x))
            if zero not in zeros:
                zeros.append(zero)
    return zeros


def _are_equal(right: sp.Expr, left: sp.Expr, y: sp.Symbol) -> bool:
    """Whether two functions are one; numbers tell most of those that are not, in no time."""
    gap = right - left
    if gap == 0:
        return True
    symbols = sorted(gap.free_symbols - {y}, key=str)
    values = {}
    for k, symbol in enumerate(symbols):
        divisor = 1 if symbol.is_integer else 3
        values[symbol] = sp.Integer(k + 2) / divisor
    if _differ(right.subs(values), left.subs(values), y):
        return False
    if _tried(sp.expand, gap) == 0 or _tried(_ratio, (right, left)) == 1:
        return True
    return _tried(_canonical, gap) == 0 or _tried(tidy.simplify, gap) == 0


def _differ(right: sp.Expr, left: sp.Expr, y: sp.Symbol) -> bool:
    """Whether balls around two functions at some place of any size exclude each other."""
    with suppress(InputError), ctx.workprec(_BITS):  # of a function without balls
        on_right = compile_arb(right, [y])
        on_left = compile_arb(left, [y])
        for octave in _OCTAVES:
            distance = arb(_PLACE) * arb(2) ** octave
            first = arb(on_right(distance).real)
            second = arb(on_left(distance).real)
            are_finite = first.is_finite() and second.is_finite()
            if are_finite and not first.overlaps(second):
                return True
    return False


def _ratio(sides: tuple[sp.Expr, sp.Expr]) -> sp.Expr | None:
    try:
        return tidy.cancel(sides[0] / sides[1])
    except (sp.PolynomialError, NotImplementedError):  # a Piecewise is no rational function
        return None


def _tried(way: Callable[[Any], sp.Expr | None], expression: Any) -> sp.Expr | None:
    return attempt(lambda: way(expression), None, SHORT_TIME)


def _canonical(gap: sp.Expr) -> sp.Expr:
    return tidy.simplify(sp.expand(sp.powsimp(sp.expand(gap.rewrite(sp.exp)))))


def _is_nonpositive(expression: sp.Expr, y: sp.Symbol, half: sp.Expr) -> bool:
    """Whether an expression is at most 0 for 0 < y < half, for all values of the parameters."""
    if expression.has(*_UNKNOWN):
        return False
    if half.is_infinite is not True:
        w = sp.Symbol("w", positive=True)
        expression = expression.subs(y, half * w / (1 + w))
    if expression.is_nonpositive:
        return True
    if expression.count_ops() > _LONGEST or _is_somewhere_positive(expression, y):
        return False
    rewritten = (_tried(way, expression) for way in (tidy.factor, tidy.together))
    return any(form is not None and bool(form.is_nonpositive) for form in rewritten)


def _is_somewhere_positive(expression: sp.Expr, y: sp.Symbol) -> bool:
    """Whether values at some points say that there is nothing to prove."""
    values = random_values(expression.free_symbols - {y}, 1)
    at_values = expression.subs(values)
    points = list(_POINTS)
    if not y.is_positive:
        points.extend(-point for point in _POINTS)
    for point in points:
        try:
            value = at_values.subs(y, point).evalf(15, maxn=60)
        except ZeroDivisionError:  # a pole at the point
            continue
        if value.is_Float and value > _CLEAR:
            return True
    return False
