"""SymPy's rewriting with limits: in time, and of the powers that exponentials may become.

`factor`, `cancel` and their like take exp(19t/10) and exp(t) for powers of exp(t/10), which is what
finds common factors and what never ends where a parameter has ten digits.
"""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

from symdp.derive.generators import Generators
from symdp.interrupt import attempt

_SECONDS = 3.0  # for one rewriting
_STEEP = 64  # numerators and denominators of exponents from which on they are looked at


def factor(expression: sp.Expr) -> sp.Expr:
    """Return the expression as a product, as it is where that takes too long.

    Examples
    --------
    >>> t = sp.Symbol("t", real=True)
    >>> factor(sp.exp(sp.Rational(12345679, 10**6) * t) * t + t)
    t*(exp(12345679*t/1000000) + 1)
    """
    return _limited(sp.factor, expression)


def cancel(expression: sp.Expr) -> sp.Expr:
    """Return the expression as a quotient in lowest terms, as it is where that takes too long."""
    return _limited(sp.cancel, expression)


def together(expression: sp.Expr) -> sp.Expr:
    """Return the expression over one denominator, as it is where that takes too long."""
    return _limited(sp.together, expression)


def simplify(expression: sp.Expr) -> sp.Expr:
    """Return the expression as SymPy finds it simplest, as it is where that takes too long."""
    return _limited(sp.simplify, expression)


def vanishes(expression: sp.Expr) -> bool:
    """Whether an expression is certainly 0; False too where an exact test takes too long.

    Examples
    --------
    >>> vanishes(sp.sqrt(2) * sp.sqrt(3) - sp.sqrt(6)), vanishes(sp.sqrt(2) - 1)
    (True, False)
    """
    if simplify(expression) == 0:
        return True
    if any(_is_steep(node) for node in expression.atoms(sp.exp, sp.Pow)):
        return False
    return bool(attempt(lambda: expression.equals(0), False, _SECONDS))


def _limited(rewrite: Callable[[sp.Expr], sp.Expr], expression: sp.Expr) -> sp.Expr:
    if not expression.args:
        return expression
    return attempt(lambda: _without_powers(rewrite, expression), expression, _SECONDS)


def _without_powers(rewrite: Callable[[sp.Expr], sp.Expr], expression: sp.Expr) -> sp.Expr:
    if not any(_is_steep(node) for node in expression.atoms(sp.exp, sp.Pow)):
        return rewrite(expression)
    generators = Generators(expression)
    return generators.restored(rewrite(generators.reduced))


def _is_steep(node: sp.Expr) -> bool:
    """Whether an exponent holds a fraction that would make a power of very high degree."""
    if isinstance(node, sp.exp):
        exponent = node.args[0]
    else:
        exponent = sp.S.Zero if node.exp.is_Integer else node.exp
    return any(max(abs(r.p), r.q) > _STEEP for r in exponent.atoms(sp.Rational))
