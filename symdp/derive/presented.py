"""Formulas as a referee would write them: shorter, and equal wherever both have a value.

Every rewriting is an identity of principal branches or rests on a sign that is certain, and is
compared in numbers before it is shown: what differs stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import mpmath
import sympy as sp

from symdp.density.signs import random_values, sign_of
from symdp.model import tidy
from symdp.tolerances import SUMS_ROUNDED

NORMAL = sp.Function("Phi", positive=True)
_ROUNDS = 2  # random values of the symbols, at which two forms are compared
_DIGITS = 25  # to which they are evaluated
_MOST_POWER = 8  # of a number within a logarithm
_SQUARED = sp.Wild("z")
_UNSEEN = (sp.Sum, sp.Integral, sp.Derivative)  # of which no number is asked for


@lru_cache(maxsize=1024)
def presented(expression: sp.Basic) -> sp.Basic:
    """Return a formula in the form in which it is read, itself where none is known to be equal."""
    if isinstance(expression, sp.Piecewise):
        branches = (
            (presented(value), _condition(condition)) for value, condition in expression.args
        )
        return sp.Piecewise(*branches, evaluate=False)
    if not isinstance(expression, sp.Expr) or not expression.args:
        return expression
    cases = [
        factor_in_cases
        for factor_in_cases in expression.args
        if isinstance(factor_in_cases, sp.Piecewise)
    ]
    if expression.is_Mul and len(cases) == 1:  # a factor goes into the cases
        factor = expression.xreplace({cases[0]: sp.S.One})
        branches = ((factor * value, condition) for value, condition in cases[0].args)
        return presented(sp.Piecewise(*branches, evaluate=False))
    if expression.has(*_UNSEEN):
        return expression.replace(sp.Sum, lambda *parts: _one_term(sp.Sum(*parts)))
    rewritten = _rewritten(expression)
    if rewritten == expression or equal_in_numbers(rewritten, expression):
        return rewritten
    return expression


def _condition(condition: sp.Basic) -> sp.Basic:
    if not isinstance(condition, sp.core.relational.Relational):
        return condition
    return condition.func(*map(presented, condition.args), evaluate=False)


def _rewritten(expression: sp.Expr) -> sp.Expr:
    for kind, rule in _RULES:
        expression = expression.replace(lambda node, kind=kind: isinstance(node, kind), rule)
    return expression


def equal_in_numbers(first: sp.Expr, second: sp.Expr) -> bool:
    """Whether two forms have the same value at random values of their symbols."""
    symbols = first.free_symbols | second.free_symbols
    for seed in range(_ROUNDS):
        values = dict(random_values(symbols, seed, ()))
        a, b = (_complex_value(form, values) for form in (first, second))
        if a is None or b is None or not abs(a - b) <= SUMS_ROUNDED * (1 + abs(b)):
            return False
    return True


def _complex_value(form: sp.Expr, values: dict[sp.Symbol, sp.Rational]) -> mpmath.mpc | None:
    plain = form.replace(NORMAL, lambda z: (1 + sp.erf(z / sp.sqrt(2))) / 2)
    for named in plain.atoms(sp.core.function.AppliedUndef):  # any function serves for a comparison
        waves = []
        for k, argument in enumerate(named.args, start=1):
            waves.append(sp.cos(k * argument))
        above_zero = 2 * len(waves) + sp.Add(*waves)
        plain = plain.xreplace({named: above_zero})
    number = plain.evalf(_DIGITS, subs=values, maxn=300)
    parts = number.as_real_imag()
    if all(part.is_Number for part in parts):
        return mpmath.mpc(*map(str, parts))
    return None


def _without_log(node: sp.exp) -> sp.Expr:
    """e^{c log b + r} is b^c e^r."""
    powers = sp.S.One
    remaining = []
    terms = (sp.expand_mul(term, deep=False) for term in sp.Add.make_args(node.args[0]))
    for term in sp.Add.make_args(sp.Add(*terms)):
        logs = [factor for factor in sp.Mul.make_args(term) if isinstance(factor, sp.log)]
        if len(logs) == 1:
            powers *= logs[0].args[0] ** (term / logs[0])
        else:
            remaining.append(term)
    if powers == 1:
        return node
    return powers * sp.exp(sp.Add(*remaining))


def _one_exponential(node: sp.Mul) -> sp.Expr:
    """e^a e^b is e^{a + b}."""
    parts = [factor.as_base_exp() for factor in node.args]
    exponents = [power for base, power in parts if base == sp.E]
    if len(exponents) < 2:
        return node
    others = (factor for factor, (base, _) in zip(node.args, parts, strict=True) if base != sp.E)
    return sp.Mul(*others, sp.exp(sp.factor_terms(sp.Add(*exponents))))


def _content(node: sp.Mul) -> sp.Expr:
    """Numbers leave the sums of a quotient: (2a + 2)/(2 − 2b) is (a + 1)/(1 − b)."""
    number = sp.S.One
    factors = []
    for factor in node.args:
        base, power = factor.as_base_exp()
        content = _of_terms(base) if power.is_Integer else sp.S.One
        number *= content**power
        factors.append(factor if content == 1 else (base / content) ** power)
    if number == 1 and factors == list(node.args):
        return node
    return sp.Mul(number, sp.Mul(*factors), evaluate=len(factors) != 1)


def _of_terms(base: sp.Expr) -> sp.Expr:
    if not base.is_Add:
        return sp.S.One
    sign = -1 if all(term.could_extract_minus_sign() for term in base.args) else 1
    return sign * base.primitive()[0]


def _hyperbolic(node: sp.Add) -> sp.Expr:
    """1 − tanh² is 1/cosh²."""
    if len(node.args) != 2 or node.args[0] != 1:
        return node
    match = node.args[1].match(-(sp.tanh(_SQUARED) ** 2))
    if match is None:
        return node
    return sp.cosh(match[_SQUARED]) ** -2


def _one_logarithm(node: sp.Add) -> sp.Expr:
    """c log(2a) − c log 2 is c log a: logarithms of numbers join others of the same factor."""
    groups: dict[sp.Expr, list[sp.Expr]] = {}
    terms: dict[sp.Expr, list[sp.Expr]] = {}
    for term in node.args:
        logarithm = _logarithm_in(term)
        if logarithm is not None and logarithm.args[0].is_positive:
            factor = term / logarithm
            turned = -1 if factor.could_extract_minus_sign() else 1
            groups.setdefault(turned * factor, []).append(logarithm.args[0] ** turned)
            terms.setdefault(turned * factor, []).append(term)
    joined = node
    for factor, inside in groups.items():
        if len(inside) > 1 and any(argument.is_number for argument in inside):
            joined = joined - sp.Add(*terms[factor]) + _one_log(factor, inside)
    return min((node, joined), key=_log_length)


def _logarithm_in(term: sp.Expr) -> sp.Expr | None:
    return next((f for f in sp.Mul.make_args(term) if isinstance(f, sp.log)), None)


def _one_log(factor: sp.Expr, inside: list[sp.Expr]) -> sp.Expr:
    """Return c log Π aᵢ, as −c log Π 1/aᵢ where more of them are quotients."""
    product = sp.Mul(*inside)
    above, below = sp.fraction(product)
    if above == 1:
        return -factor * sp.log(below)
    return factor * sp.log(product)


def _log_length(form: sp.Expr) -> tuple[int, int]:
    """How long a sum of logarithms is: their number first."""
    return len(form.atoms(sp.log)), sp.count_ops(form)


def _logarithm_of_numbers(node: sp.Add) -> sp.Expr:
    """Write log 3 − 2 log 2 as log(3/4)."""
    factors: list[sp.Expr] = []
    numbers: list[sp.Rational] = []
    others = []
    for term in node.args:
        factor, logarithm = term.as_coeff_Mul()
        if isinstance(logarithm, sp.log) and logarithm.args[0].is_Rational and factor.is_Rational:
            factors.append(factor)
            numbers.append(logarithm.args[0])
        else:
            others.append(term)
    if len(numbers) < 2:
        return node
    common = sp.gcd_list(factors)
    powers = [factor / common for factor in factors]
    if max(map(abs, powers)) > _MOST_POWER:
        return node
    product = sp.Mul(*(number**power for number, power in zip(numbers, powers, strict=True)))
    if common < 0:
        common, product = -common, 1 / product
    return sp.Add(*others, common * sp.log(product))


def _numbers_in_logarithms(node: sp.Add) -> sp.Expr:
    """Write log(2a − 2b) − log(2c − 2d) as log(a − b) − log(c − d)."""
    contents: dict[sp.Expr, sp.Expr] = {}
    bare: dict[sp.Expr, sp.Expr] = {}
    for term in node.args:
        logarithm = _logarithm_in(term)
        if logarithm is None or not logarithm.args[0].is_Add:
            continue
        content, primitive = logarithm.args[0].primitive()
        factor = term / logarithm
        turned = -1 if factor.could_extract_minus_sign() else 1
        before = contents.get(turned * factor, sp.S.One)
        contents[turned * factor] = before * content**turned
        bare[logarithm] = sp.log(primitive)
    if not contents or any(content != 1 for content in contents.values()):
        return node
    return node.xreplace(bare)


def _one_factor(node: sp.Add) -> sp.Expr:
    """Write 2ν arsinh y + 2 arsinh y as 2(ν + 1) arsinh y."""
    functions = [
        {f for f in sp.Mul.make_args(term) if isinstance(f, sp.Function)} for term in node.args
    ]
    if not set.intersection(*functions):
        return node
    return min((node, sp.factor_terms(node)), key=sp.count_ops)


def _greatest(node: sp.Max) -> sp.Expr:
    """Write max(a/4, b/4) as max(a, b)/4."""
    factors = {argument.as_coeff_Mul()[0] for argument in node.args}
    if len(factors) != 1 or not min(factors).is_positive:
        return node
    (factor,) = factors
    return factor * sp.Max(*(argument / factor for argument in node.args))


def _one_power(node: sp.Mul) -> sp.Expr:
    """Write zᵃzᵇ as z^{a + b}."""
    exponents: dict[sp.Expr, sp.Expr] = {}
    for factor in node.args:
        base, power = factor.as_base_exp()
        exponents[base] = exponents.get(base, sp.S.Zero) + power
    if sp.E in exponents or len(exponents) == len(node.args):
        return node
    return sp.Mul(*(base**power for base, power in exponents.items()))


def _of_tangents(node: sp.Add) -> sp.Expr:
    """Write a polynomial in tanh that 1 − tanh² divides with 1/cosh²."""
    tangents = node.atoms(sp.tanh)
    if len(tangents) != 1:
        return node
    (tangent,) = tangents
    y = sp.Dummy("y")
    polynomial = node.xreplace({tangent: y})
    if not polynomial.is_polynomial(y) or polynomial.has(sp.exp, sp.cosh):
        return node
    quotient, remainder = sp.div(polynomial, 1 - y**2, y)
    if sp.expand(remainder) != 0:
        return node
    return sp.factor(quotient).xreplace({y: tangent}) * sp.cosh(tangent.args[0]) ** -2


def _tangents_in_product(node: sp.Mul) -> sp.Expr:
    """Write (tanh z + 1)(tanh z − 1) as −1/cosh² z, and tanh z/(1 − e^{−2z}) as 1/(1 + e^{−2z})."""
    for tangent in node.atoms(sp.tanh):
        z = tangent.args[0]
        factors = set(node.args)
        pair = {tangent + 1, tangent - 1}
        if pair <= factors:
            return sp.Mul(-1, sp.cosh(z) ** -2, *(factors - pair))
        falling = sp.exp(-2 * z)
        quotient = {tangent, 1 / (1 - falling)}
        if quotient <= factors:
            return sp.Mul(1 / (1 + falling), *(factors - quotient))
    return node


def _absolute(node: sp.Abs) -> sp.Expr:
    sign = sign_of(node.args[0])
    if sign is None:
        return node
    return sign * node.args[0]


def _one_term(node: sp.Sum) -> sp.Expr:
    """A sum of one term is that term."""
    k, low, high = node.limits[0]
    if len(node.limits) == 1 and low == high:
        return node.function.subs(k, low)
    return node


def _logarithm(node: sp.log) -> sp.Expr:
    """log(1/a) is −log a for a > 0; log((√(1 + y²) + y)²) is 2 arsinh y, whatever the form."""
    inside = node.args[0]
    if inside.is_Pow and inside.exp.is_negative and inside.base.is_positive:
        return -sp.log(inside.base**-inside.exp)
    return area_sine(node)


def area_sine(node: sp.log) -> sp.Expr:
    """Return the logarithm of a unit a + b√r, a² − b²r = 1, as 2 arsinh √((a − 1)/2)."""
    inside = node.args[0]
    roots = {
        square_root
        for square_root in inside.atoms(sp.Pow)
        if square_root.exp == sp.S.Half and square_root.free_symbols
    }
    if len(roots) != 1:
        return node
    (root,) = roots
    y = sp.Dummy("y", positive=True)
    plain = inside.xreplace({root: y})
    if plain.has(sp.Pow) and not plain.is_rational_function(y):
        return node
    above, below = sp.fraction(sp.together(plain))
    conjugate = plain.xreplace({y: -y})
    rational = (form.xreplace({y: root}) for form in (plain * conjugate, (plain + conjugate) / 2))
    norm, middle = (tidy.simplify(form) for form in rational)
    if norm != 1 or middle.has(root):
        return node
    half = sp.sqrt(tidy.factor((middle - 1) / 2))
    sign = sign_of(sp.expand(above.xreplace({y: root}) - below.xreplace({y: root})))
    side = sign_of(sp.expand(below.xreplace({y: root})))
    if not sign or not side:
        return node
    return 2 * sign * side * sp.asinh(half)


_RULES: tuple[tuple[type, Callable[..., sp.Expr]], ...] = (
    (sp.exp, _without_log),
    (sp.Abs, _absolute),
    (sp.log, _logarithm),
    (sp.Add, _hyperbolic),
    (sp.Add, _of_tangents),
    (sp.Add, _numbers_in_logarithms),
    (sp.Add, _one_logarithm),
    (sp.Add, _logarithm_of_numbers),
    (sp.Add, _one_factor),
    (sp.Max, _greatest),
    (sp.Mul, _tangents_in_product),
    (sp.Mul, _one_power),
    (sp.Mul, _one_exponential),
    (sp.Mul, _content),
)
