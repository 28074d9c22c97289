"""Signs that are certain: of constants, of parameter expressions, and the order of points."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from functools import lru_cache

import sympy as sp

from symdp.errors import InputError
from symdp.model import tidy
from symdp.model.assumption import AssumedSymbol, released

DIGITS = 40  # that a number is evaluated to; 8 of them may be rounding
_MOST_FACTORS = 4  # of one log in a sum of logs, whose product is multiplied out
_MOST_TERMS = 8  # of a sum that is squared
_NOTHING = sp.Float(10) ** -45  # what is smaller is 0 with its digits cancelled
_LARGEST_DEGREE = 64  # of a polynomial that is multiplied out; a second's work


@lru_cache(maxsize=8192)
def sign_of(expression: sp.Expr) -> int | None:
    """Return 1, 0 or −1 where the sign of an expression is certain, else None."""
    sign = _without_logs(expression)
    if sign is not None:
        return sign
    for rule in (_of_two_exponentials, _of_roots, _of_logs, _of_exponential_polynomial):
        sign = rule(expression)
        if sign is not None:
            return sign
    free = released(expression)
    if free == expression:
        return None
    return sign_of(free)


def _without_logs(expression: sp.Expr) -> int | None:
    """Return a sign that assumptions, a number's value or a product show."""
    if expression is sp.oo:
        return 1
    if expression is -sp.oo:
        return -1
    if expression.is_Rational:
        return int(sp.sign(expression))
    unclear = expression.has(sp.Sum, sp.Integral, sp.nan, sp.zoo)
    if not expression.free_symbols and not unclear:
        return _of_number(expression)  # first, since SymPy's own test of a long sum takes seconds
    sign = _assumed(_with_positive_bessels(expression))
    if sign is not None or unclear:
        return sign
    factored = sp.factor_terms(tidy.factor(tidy.together(expression)))
    if factored != expression:
        return _of_product(factored)
    return None


def _with_positive_bessels(expression: sp.Expr) -> sp.Expr:
    """Put positive symbols for I and K of what is positive, of which SymPy knows no sign."""
    bessels = set()
    for bessel in expression.atoms(sp.besselk, sp.besseli):
        order, argument = bessel.args
        is_first_kind = isinstance(bessel, sp.besseli)
        has_positive_values = order.is_nonnegative if is_first_kind else order.is_real
        if has_positive_values and argument.is_positive:
            bessels.add(bessel)
    return expression.xreplace({bessel: sp.Dummy(positive=True) for bessel in bessels})


def sign_from_one_on(expression: sp.Expr) -> int | None:
    """Return a sign that shows where whole parameters n ≥ 1 are written 1 + m, m ≥ 0."""
    replaced = _with_positive_bessels(expression)
    whole = [n for n in replaced.free_symbols if n.is_integer and n.is_positive]
    if not whole:
        return None
    moved = replaced.xreplace({n: 1 + sp.Dummy(integer=True, nonnegative=True) for n in whole})
    top, bottom = (
        _assumed(sp.expand(part)) for part in sp.fraction(tidy.bounded(sp.together, moved))
    )
    if top is None or bottom is None:
        return None
    return top * bottom


def _assumed(expression: sp.Expr) -> int | None:
    if expression.is_positive:
        return 1
    if expression.is_negative:
        return -1
    if expression.is_zero:
        return 0
    return None


def _of_number(number: sp.Expr) -> int | None:
    """Return the sign of a number; a mass, and whatever else is positive, is not evaluated."""
    factors = sp.Mul.make_args(number)
    expression = sp.Mul(*(factor for factor in factors if not _is_power_of_positive(factor)))
    rough = expression.evalf(15, maxn=400)
    if rough.is_Float and abs(rough) > 1e-6:
        return int(sp.sign(rough))
    value = sp.re(expression.evalf(DIGITS, maxn=400))
    if value.is_Float or value.is_Rational:
        if abs(value) > sp.Float(10) ** (8 - DIGITS):
            return int(sp.sign(value))
        if tidy.vanishes(expression):
            return 0
    return None


def _is_power_of_positive(factor: sp.Expr) -> bool:
    base, power = factor.as_base_exp()
    return bool(base.is_Atom and base.is_positive and power.is_real)


def _of_product(expression: sp.Expr) -> int | None:
    total = 1
    for factor in sp.Mul.make_args(expression):
        sign = _assumed(factor)
        if sign is None:
            base, power = factor.as_base_exp()
            if power.is_integer and power.is_even and base.is_real and base.is_nonzero:
                sign = 1
            elif power.is_integer and power.is_odd and power != 1:
                sign = sign_of(base)
            elif power == 1:
                sign = _of_two_exponentials(factor)
                sign = _of_roots(factor) if sign is None else sign
        if sign is None:
            return None
        total *= sign
    return total


def _of_two_exponentials(expression: sp.Expr) -> int | None:
    """Sign of a·e^u − b·e^v with a, b > 0: that of u − v + log(a/b)."""
    if not isinstance(expression, sp.Add) or not expression.has(sp.exp):
        return None
    if len(expression.args) != 2:
        return None
    parts = []
    for term in expression.args:
        coefficient, exponent = exponential_part(term)
        sign = sign_of(coefficient)
        if not sign:
            return None
        parts.append((sign, coefficient, exponent))
    (sign, a, u), (other, b, v) = parts
    if sign == other:
        return sign
    gap = _without_logs(sp.expand(u - v + sp.log(sp.Abs(a)) - sp.log(sp.Abs(b))))
    if gap is None:
        return None
    return gap * sign


def exponential_part(term: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Return (c, a) with term = c·exp(a), a the sum of all its exponents."""
    coefficient = sp.S.One
    exponent = sp.S.Zero
    for factor in sp.Mul.make_args(term):
        if isinstance(factor, sp.exp):
            exponent += factor.args[0]
        else:
            coefficient *= factor
    return coefficient, exponent


def _of_roots(expression: sp.Expr) -> int | None:
    """Sign of a + b where b is a term with a square root: that of b or of a, as a² − b² tells."""
    rooted = [t for t in sp.Add.make_args(expression) if _has_root(t)]
    if not expression.is_Add or not 1 <= len(rooted) <= 2 or len(expression.args) > _MOST_TERMS:
        return None
    b = rooted[0]
    a = expression - b
    gap = sp.expand(a**2 - b**2)
    sign = None if _has_root(gap) else sign_of(b)
    if not sign:
        return None
    larger = sign_of(gap)
    if larger == -1:
        return sign
    other_sign = sign_of(a)
    if other_sign is None or other_sign == sign:
        return other_sign
    if larger is None:
        return None
    return larger * other_sign


def _has_root(expression: sp.Expr) -> bool:
    return any(power.exp.is_Rational and power.exp.q == 2 for power in expression.atoms(sp.Pow))


def _of_logs(expression: sp.Expr) -> int | None:
    """Sign of r + Σ cᵢ log aᵢ with whole cᵢ: that of e^r Π aᵢ^cᵢ − 1.  A log is taken as real."""
    if not expression.has(sp.log):
        return None
    power = sp.S.One
    plain_terms = sp.S.Zero
    for term in sp.Add.make_args(expression):
        factor, log = term.as_coeff_Mul()
        if not isinstance(log, sp.log):
            plain_terms += term
        elif not factor.is_Integer or abs(factor) > _MOST_FACTORS:
            return None
        else:
            power *= log.args[0] ** factor
    if plain_terms.has(sp.log):
        return None
    above, below = sp.fraction(tidy.together(sp.exp(plain_terms) * power))
    side = sign_of(sp.expand(below))
    if not side:
        return None
    sign = sign_of(sp.powsimp(sp.expand(above - below), combine="exp"))
    if sign is None:
        return None
    return side * sign


def _of_exponential_polynomial(expression: sp.Expr) -> int | None:
    """Sign of Σ cᵢ e^{kᵢ g} with numbers cᵢ and whole kᵢ, where g has a sign.

    With e^g = 1 + v, or 1/(1 + v) for g < 0, it is a polynomial in v > 0, whose coefficients tell.
    """
    exponents = {node.args[0] for node in expression.atoms(sp.exp)}
    if not exponents or not expression.is_Add:
        return None
    g = min(exponents, key=sp.default_sort_key)
    ratios = [tidy.cancel(exponent / g) for exponent in exponents]
    if not all(ratio.is_Rational for ratio in ratios):
        return None
    g /= math.lcm(*(int(ratio.q) for ratio in ratios))
    powers = {exponent: tidy.cancel(exponent / g) for exponent in exponents}
    sign = sign_of(g)
    v = sp.Dummy("v", positive=True)
    degree = max(abs(power) for power in powers.values())
    if not sign or degree > _LARGEST_DEGREE:
        return None
    base = 1 / (1 + v)
    if sign > 0:
        base = 1 + v
    rules = {sp.exp(exponent): base**power for exponent, power in powers.items()}
    in_v = expression.xreplace(rules)
    if in_v.free_symbols != {v}:
        return None
    total = 1
    for part in sp.fraction(tidy.bounded(sp.together, in_v)):
        if not part.is_polynomial(v):
            return None
        signs = {sign_of(coefficient) for coefficient in sp.Poly(part, v).coeffs()}
        if len(signs) > 1:
            return None
        (only,) = signs
        if only is None:
            return None
        total *= only
    return total


def is_nearly_zero(value: sp.Expr) -> bool:
    """Whether a number vanishes; an end stored as a near rational makes it vanish nearly."""
    if sign_of(value) == 0:
        return True
    return not value.free_symbols and bool(abs(value.evalf(30, maxn=400)) < _NOTHING)


def compare(a: sp.Expr, b: sp.Expr) -> int | None:
    """Return the sign of a − b where it is certain, else None; ±oo allowed."""
    if a == b:
        return 0
    if a is sp.oo or b is -sp.oo:
        return 1
    if a is -sp.oo or b is sp.oo:
        return -1
    return sign_of(a - b)


class OpenSignError(InputError):
    """What is asked hangs on the sign of `gap`, which parameters leave open."""

    def __init__(self, message: str, gap: sp.Expr | None = None) -> None:
        super().__init__(message)
        self.gap = gap


def sorted_points(points: set[sp.Expr], what: str) -> list[sp.Expr]:
    """Sort points by certain comparisons and drop repeats."""
    ordered: list[sp.Expr] = []
    for point in sorted(points, key=sp.default_sort_key):
        position = len(ordered)
        for index, other in enumerate(ordered):
            order = compare(point, other)
            if order is None:
                raise OpenSignError(
                    f"the order of {what} {point} and {other} depends on parameter values; "
                    f"{values_wanted(names_of(point, other))}",
                    point - other,
                )
            if order <= 0:
                position = -1 if order == 0 else index
                break
        if position >= 0:
            ordered.insert(position, point)
    return ordered


def values_wanted(names: str) -> str:
    """Return what to do where the values of parameters decide."""
    return f"give values to {names} first, or assume in [assume] what decides it, such as '> 1'"


def names_of(*expressions: sp.Expr) -> str:
    """Return the names of the symbols in expressions, for a message."""
    names = sorted({symbol.name for e in expressions for symbol in e.free_symbols})
    return ", ".join(names) or "the parameters"


def interior_point(lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    """Return a point strictly between two ends, rational where both are numbers."""
    if lower is -sp.oo and upper is sp.oo:
        return sp.S.Zero
    if lower is -sp.oo:
        return _rational_below(upper)
    if upper is sp.oo:
        return -_rational_below(-lower)
    middle = (lower + upper) / 2
    if middle.free_symbols or middle.is_Rational:
        return tidy.together(middle)
    width = (upper - lower).evalf(DIGITS)
    return _near(middle, sp.Rational(str(width)) / 8)


def _rational_below(end: sp.Expr) -> sp.Expr:
    if end.free_symbols or end.is_Rational:
        return end - 1
    return sp.floor(end) - 1


def _near(value: sp.Expr, tolerance: sp.Rational) -> sp.Expr:
    """Return a short rational within `tolerance` of a number."""
    exact = sp.Rational(str(value.evalf(DIGITS)))
    digits = 1
    while True:
        scale = sp.Integer(10) ** digits
        candidate = sp.Rational(sp.floor(exact * scale), scale)
        if abs(candidate - exact) < tolerance or digits > DIGITS:
            return candidate
        digits += 1


def random_values(
    symbols: Iterable[sp.Symbol], seed: int, below_one: Iterable[str] = ()
) -> Mapping[sp.Symbol, sp.Expr]:
    """Return random rational values that respect the assumptions of parameters."""
    chance = random.Random(seed)
    below = set(below_one)
    values: dict[sp.Symbol, sp.Expr] = {}
    wanted = set(symbols)
    assumed = [symbol for symbol in wanted if isinstance(symbol, AssumedSymbol)]
    wanted.update(*(symbol.compared_with for symbol in assumed))
    dependences = {s: len(s.compared_with) for s in wanted if isinstance(s, AssumedSymbol)}
    # Those whose ends hold other parameters come after these.
    for symbol in sorted(wanted, key=lambda s: (dependences.get(s, 0), str(s.name))):
        is_below_one = symbol.name in below
        if isinstance(symbol, AssumedSymbol):
            values[symbol] = _between(symbol.moved(values), chance, is_below_one)
            continue
        if symbol.is_integer:
            size = sp.Integer(chance.randint(1, 3))
        elif is_below_one:
            size = sp.Rational(chance.randint(2, 21), 23)
        else:
            size = sp.Rational(chance.randint(14, 50), 23)
        values[symbol] = -size if symbol.is_negative else size
    return values


def _between(symbol: AssumedSymbol, chance: random.Random, is_below_one: bool) -> sp.Expr:
    """Return a random value between the ends of a symbol, which are numbers."""
    lower, upper = symbol.both_ends
    if lower is not None:
        low = lower.value
        if symbol.is_nonnegative:
            low = sp.Max(low, 0)
    elif symbol.is_nonnegative or upper is None:
        low = sp.S.Zero
    else:
        low = upper.value - 2
    if upper:
        high = upper.value
    elif is_below_one and low < 1:
        high = sp.S.One
    else:
        high = low + 2
    share = sp.Rational(chance.randint(2, 21), 23)
    value = low + (high - low) * share
    if not symbol.is_integer:
        return value
    near = (sp.floor(value), sp.ceiling(value), sp.floor(low) + 1)
    allowed = (integer for integer in near if symbol.allows(integer))
    return next(allowed, sp.ceiling(low))
