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

NORMAL = sp.Function("Phi", positive=True)
_ROUNDS = 2  # random values of the symbols, at which two forms are compared
_DIGITS = 25  # to which they are evaluated
_CLOSE = 1e-12  # to which they agree, relative to 1 + |value|
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
        if a is None or b is None or not abs(a - b) <= _CLOSE * (1 + abs(b)):
            return False
    return True


def _complex_value(form: sp.Expr, values: dict[sp.Symbol, sp.Rational]) -> mpmath.mpc | None:
    plain = form.replace(NORMAL, lambda z: (1 + sp.erf(z / sp.sqrt(2))) / 2)
    parts = plain.evalf(_DIGITS, subs=values, maxn=300).as_real_imag()
    if all(part.is_Number for part in parts):
        return mpmath.mpc(*map(str, parts))
    return None


def _without_log(node: sp.exp) -> sp.Expr:
    """e^{c log b + r} is b^c e^r."""
    powers = sp.S.One
    remaining = []
    for term in sp.Add.make_args(sp.expand_mul(node.args[0], deep=False)):
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
    for term in node.args:
        logarithm = next((f for f in sp.Mul.make_args(term) if isinstance(f, sp.log)), None)
        if logarithm is not None and logarithm.args[0].is_positive:
            factor = term / logarithm
            turned = -1 if factor.could_extract_minus_sign() else 1
            groups.setdefault(turned * factor, []).append(logarithm.args[0] ** turned)
    joined = node
    for factor, inside in groups.items():
        if len(inside) > 1 and any(argument.is_number for argument in inside):
            apart = sp.Add(*(factor * sp.log(argument) for argument in inside))
            joined = sp.expand_mul(joined - apart, deep=False) + factor * sp.log(sp.Mul(*inside))
    if sp.count_ops(joined) < sp.count_ops(node):
        return joined
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
    (sp.Add, _one_logarithm),
    (sp.Mul, _one_exponential),
    (sp.Mul, _content),
)
