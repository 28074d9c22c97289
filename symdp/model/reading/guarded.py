"""Building exact expressions under guard: what would cost too much is refused beforehand.

`build` refuses an operation before SymPy starts on it when its exact numbers would grow past
all use (9**9**9, factorial(10**6)): neither a short text nor a value bound to a parameter may
stop the process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, NoReturn

import sympy as sp
from mpmath.libmp import NoConvergence
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.functions.elementary.piecewise import ExprCondPair

from symdp.emit.mass import MassIntegral
from symdp.errors import InputError

_MOST_BITS = 100_000  # of all exact numbers of one formula together
_MOST_NUMBER_BITS = 20_000  # of one: SymPy may ask whether it is prime
_MOST_ROOT_BITS = 1_100  # SymPy factors the number under a root
_LARGEST_ROOT = 10**30  # beyond, SymPy tells 2**(1/n) from 1 by a polynomial of degree n
_MOST_HEIGHT = 50
_FUNCTION_HEIGHT = 5  # SymPy's questions about signs can double with every function
_LARGEST_FACTORIAL = 2_000
_LARGEST_OPEN = 10_000  # number in the argument of a factorial that holds a symbol
_LARGEST_PRODUCT = 50  # SymPy writes out binomial(pi, 50)
_LARGEST_UNSIGNED_POWER = 1_000
_LARGEST_ARGUMENT = 1_000_000  # SymPy writes out 10**n for the integer part of exp(n)
_FACTORIALS = (sp.factorial, sp.gamma, sp.loggamma, sp.binomial)
_BESSEL = (sp.besseli, sp.besselk)
_TAME = (sp.Add, sp.Mul, sp.exp, sp.Abs, sp.Rational, sp.NumberSymbol)  # finite for finite parts
# a power, and bits of a value, that no product of some makes large
_SMALL_POWER = 4
_SHORT = 256
_TRIGONOMETRIC = (sp.sin, sp.cos, sp.tan, sp.asin, sp.acos, sp.atan, sp.erf, sp.erfc)
_HYPERBOLIC = (sp.sinh, sp.cosh, sp.tanh, sp.asinh, sp.acosh, sp.atanh, sp.sech, sp.csch, sp.coth)
_BOUNDED = (sp.exp, *_TRIGONOMETRIC, *_HYPERBOLIC)
_RATIONAL = (sp.Add, sp.Mul, ExprCondPair)
# What SymPy raises about expressions that it cannot settle.
_UNSETTLED = (
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    NotImplementedError,
    NoConvergence,
)
_SIGNS = {sp.Pow: "**", sp.Add: " + ", sp.Mul: "*"} | {
    head: f" {head.rel_op} " for head in (sp.Lt, sp.Le, sp.Gt, sp.Ge)
}
USELESS = (sp.zoo, sp.nan, sp.oo, -sp.oo, sp.I)


def sign_of(constant: sp.Expr) -> int:
    """Return -1, 0 or 1, the sign of an expression without symbols."""
    if constant.is_Rational:
        return int(constant.p > 0) - int(constant.p < 0)
    value = constant.evalf(30)
    if not value.is_comparable:
        raise InputError(f"{constant} is not a real number")
    return int(sp.sign(value))


def substitute(expr: sp.Basic, values: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
    """Put values for symbols into an expression, guarded as when it was read."""
    done: dict[sp.Basic, Part] = {}

    def visit(node: sp.Basic) -> Part:
        if node not in done:
            parts = [visit(argument) for argument in node.args]
            if not parts:
                # The mass of a density is one symbol, whose integrand holds parameters.
                done[node] = leaf(node.xreplace(values))
            elif all(part.expr is old for part, old in zip(parts, node.args, strict=True)):
                constant = all(part.constant for part in parts)
                done[node] = Part(node, sum(part.bits for part in parts), 0, constant)
            else:
                # What SymPy already holds may be as deep as it is: only text is measured.
                done[node] = build(node.func, parts)._replace(height=0)
        return done[node]

    return visit(expr).expr


def never_refuses(expr: sp.Basic, values: Mapping[sp.Symbol, sp.Expr]) -> bool:
    """Return whether `substitute` is certain to succeed, so that it may wait until it is needed.

    That is so for short rational values, where sums, products, small powers and exponentials make
    up the expression, and no part that is divided by or free of other symbols can vanish.
    """
    short = all(value.is_Rational and _bits(value) <= _SHORT for value in values.values())
    return short and _is_tame(expr, frozenset(values))


@lru_cache(maxsize=256)
def _is_tame(expr: sp.Basic, replaced: frozenset[sp.Symbol]) -> bool:
    for node in sp.preorder_traversal(expr):
        divides = isinstance(node, sp.Pow) and node.exp.is_Rational and node.exp.is_negative
        for part in [node, *([node.base] if divides else [])]:
            constant = part.free_symbols <= replaced
            if (constant or (divides and part is not node)) and not part.is_extended_nonzero:
                return False
        if isinstance(node, sp.Pow):
            small = node.exp.is_Rational and max(abs(node.exp.p), node.exp.q) <= _SMALL_POWER
            if not (small and (node.exp.is_Integer or node.base.is_positive)):
                return False
        elif isinstance(node, sp.exp) and node.free_symbols <= replaced:
            return False  # of a large number, it may have more digits than there is room for
        if not (node.is_Symbol or isinstance(node, (sp.Pow, *_TAME))):
            return False
    return True


class Part(NamedTuple):
    """An expression with what bounds the cost of building on it."""

    expr: sp.Basic
    bits: int  # no exact number in it can be longer
    height: int  # operations inside one another; a function weighs as much as five of them
    constant: bool


def leaf(expr: sp.Basic) -> Part:
    """Return a number or a symbol as a Part."""
    return Part(expr, _bits(expr) if expr.is_Rational else 1, 0, not expr.free_symbols)


def build(head: Callable[..., sp.Basic], parts: Sequence[Part]) -> Part:
    """Return head(*parts), refusing beforehand what would cost too much and afterwards 1/0."""
    bits = sum(part.bits for part in parts)
    height = max((part.height for part in parts), default=0)
    if head is sp.Pow:
        bits = _power_bits(*parts)
    is_plain_power = head is sp.Pow and parts[1].constant
    if head in (sp.Add, sp.Mul) or is_plain_power:
        height += 1
    elif head is not ExprCondPair:
        height += _FUNCTION_HEIGHT
    if height > _MOST_HEIGHT:
        raise InputError(
            f"the formula nests over {_MOST_HEIGHT} operations"
            f" or {_MOST_HEIGHT // _FUNCTION_HEIGHT} functions inside one another"
        )
    if head is sp.exp and parts[0].expr.has(sp.log):
        bits = _logarithmic_bits(parts[0])
    if head in _FACTORIALS:
        constants = [part for part in parts if part.constant]
        sizes = [_magnitude(part) for part in constants] or [_largest_number(parts[0].expr)]
        whole = head is not sp.binomial or all(part.expr.is_Integer for part in constants)
        # Nothing is built of factorial(n - k) or binomial(n, k), k a symbol.
        is_open = not parts[-1].constant
        largest = _LARGEST_PRODUCT
        if whole:
            largest = _LARGEST_OPEN if is_open else _LARGEST_FACTORIAL
        if any(size > largest for size in sizes):
            _refuse(head, parts)
        if not is_open:
            bits += sum(int(4 * size * math.log2(size + 2)) for size in sizes)
    else:
        bounded_parts: Sequence[Part] = ()
        if head in _BESSEL:
            bounded_parts = parts
        elif head in _BOUNDED:
            bounded_parts = parts[:1]
        for part in bounded_parts:
            if any(size > _LARGEST_ARGUMENT for size in _magnitudes(part)):
                _refuse(head, parts)
    if bits > _MOST_BITS:
        _refuse(head, parts)
    try:
        expr = head(*(part.expr for part in parts))
        # SymPy may cancel every symbol: gamma(x + 9 - x) is a constant as well.
        constant = not expr.free_symbols and not expr.has(ExprWithLimits, MassIntegral)
        real = not constant or expr.is_Rational or head in _RATIONAL or _is_real(expr)
    except _UNSETTLED:
        real = False
    if not real:
        raise InputError(f"{_describe(head, parts)} has no real value")
    if isinstance(expr, sp.Expr):
        results = [expr]
        if isinstance(expr, sp.Add | sp.Mul | sp.Pow):
            results += expr.args
        if any(part in USELESS for part in results):
            raise InputError(f"{_describe(head, parts)} is not finite and real")
        number, _ = expr.as_coeff_Mul()
        if number.is_Rational and _bits(number) > _MOST_NUMBER_BITS:
            _refuse(head, parts)
    return Part(expr, bits, height, constant)


def _bits(number: sp.Rational) -> int:
    return int(number.p).bit_length() + int(number.q).bit_length()


def _scaled(bits: int, factor: sp.Rational) -> int:
    # In integers: a float would overflow on the very exponents that are to be refused.
    return max(bits, int(sp.ceiling(bits * factor)))


def _largest_number(expr: sp.Expr) -> sp.Rational:
    return max((abs(number) for number in expr.atoms(sp.Rational)), default=sp.Integer(0))


def _logarithmic_bits(exponent: Part) -> int:
    # SymPy turns exp(n*log(2)) into 2**n.
    return _scaled(exponent.bits, _largest_number(exponent.expr))


def _power_bits(base: Part, exponent: Part) -> int:
    power = exponent.expr
    number, _ = base.expr.as_coeff_Mul()
    if base.expr == 0 and power.is_Rational and power < 0:
        raise InputError("the formula divides by zero")
    if base.expr == sp.E:
        if power.has(sp.log):
            return _logarithmic_bits(exponent)
        return exponent.bits
    if power.is_Rational and not power.is_Integer and number.is_Rational:
        is_large_root = base.constant and power.q > _LARGEST_ROOT
        if _bits(number) > _MOST_ROOT_BITS or is_large_root:
            _refuse(sp.Pow, (base, exponent))
    elif base.constant and exponent.constant:
        size = _magnitude(base)
        if size != 0:
            log_size = abs(sp.log(size.evalf(15))) * _magnitude(exponent)
            if log_size > _LARGEST_ARGUMENT:
                _refuse(sp.Pow, (base, exponent))
    # A number in the base is raised at once (a factor of it too), whatever else is in the exponent.
    largest = _largest_number(power)
    if largest > _LARGEST_UNSIGNED_POWER and not base.expr.is_positive:
        _refuse(sp.Pow, (base, exponent))  # SymPy would expand it to learn its sign
    bits_raised = 1 if base.expr.is_Add else base.bits
    return max(_scaled(bits_raised, largest), base.bits) + exponent.bits


def _is_real(constant: sp.Basic) -> bool:
    return not isinstance(constant, sp.Expr) or bool(constant.evalf(15).is_comparable)


def _magnitude(part: Part) -> sp.Expr:
    # Every constant was itself bounded when it was built, so evalf cannot run away here.
    value = part.expr if part.expr.is_Rational else part.expr.evalf(15)
    if value.is_Number and value.is_comparable:
        return abs(value)
    return sp.Integer(0)


def _magnitudes(part: Part) -> list[sp.Expr]:
    # What is constant on one branch alone is a constant as soon as that branch is looked at.
    if part.constant:
        return [_magnitude(part)]
    magnitudes = []
    for node in part.expr.atoms(sp.Min, sp.Max, sp.Piecewise):
        for argument in node.args:
            value = argument
            if isinstance(argument, ExprCondPair):
                value = argument.args[0]
            if value.free_symbols:
                continue
            branch = part.expr.xreplace({node: value})
            if not branch.free_symbols:
                magnitudes.append(_magnitude(part._replace(expr=branch)))
    return magnitudes


def _describe(head: Callable[..., sp.Basic], parts: Sequence[Part]) -> str:
    texts = [_short_text(part) for part in parts]
    if head is sp.Pow and texts[1] == "1/2":
        return f"sqrt({texts[0]})"
    if head in _SIGNS:
        return _SIGNS[head].join(map(_in_brackets, texts[:3]))
    name = getattr(head, "__name__", "function")
    return f"{name}({', '.join(texts)})"


def _short_text(part: Part) -> str:
    if _long(part):
        return "..."
    text = str(part.expr)
    return text if len(text) <= 30 else "..."


def _in_brackets(text: str) -> str:
    is_compound = bool(set(text) & set(" /*-"))
    return f"({text})" if is_compound else text


def _long(part: Part) -> bool:
    return (_bits(part.expr) if part.expr.is_Rational else part.bits) > 200


def _refuse(head: Callable[..., sp.Basic], parts: Sequence[Part]) -> NoReturn:
    raise InputError(f"{_describe(head, parts)} is too large to build exactly; use smaller numbers")
