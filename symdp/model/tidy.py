"""SymPy's rewriting with limits: of operations, in time, and of the powers of exponentials.

`factor`, `cancel` and their like take exp(19t/10) and exp(t) for powers of exp(t/10), which is what
finds common factors and what never ends where a parameter has ten digits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import sympy as sp

from symdp.interrupt import attempt


def without_hyperbolics(expression: sp.Expr, x: sp.Symbol | None = None) -> sp.Expr:
    """Write cosh, tanh and the like, of x alone if it is given, through exponentials.

    What they are functions of stays: SymPy would make cosh(cos u) one of complex exponentials.
    """
    hyperbolic = sp.functions.elementary.hyperbolic.HyperbolicFunction

    def is_meant(node: sp.Basic) -> bool:
        return isinstance(node, hyperbolic) and (x is None or x in node.free_symbols)

    return expression.replace(is_meant, lambda node: node.rewrite(sp.exp, deep=False))


_HIGHEST = 64  # power of one exponential in a polynomial


class Generators:
    """An expression rewritten as a rational function of symbols that stand for exponentials.

    exp(2t + 1), exp(t) and exp(1/2) become y², y and w², so that SymPy's `factor` finds what it
    misses while it takes the three for unrelated.
    """

    def __init__(self, expression: sp.Expr) -> None:
        plain = without_hyperbolics(expression)
        nodes = sorted(_exponentials(plain), key=sp.default_sort_key)
        parts = {node: _exponent_parts(node) for node in nodes}
        exponents = [term for terms in parts.values() for term in terms.items()]
        self._meaning = _symbols_of_keys(exponents)
        self._units = dict(self._meaning.values())
        self._back = {symbol: _exponential(unit) for symbol, unit in self._units.items()}
        rules = {
            node: sp.Mul(*(self._power_of_symbol(key, rational) for key, rational in terms.items()))
            for node, terms in parts.items()
        }
        self.reduced: sp.Expr = plain.xreplace(rules)

    def _power_of_symbol(self, key: sp.Expr, rational: sp.Rational) -> sp.Expr:
        """exp(rational·key) as a power of its symbol."""
        whole = key if key in self._meaning else abs(rational) * key
        symbol, unit = self._meaning[whole]
        return symbol ** (rational * key / unit)

    def restored(self, expression: sp.Expr) -> sp.Expr:
        """Put the exponentials back."""
        return expression.xreplace(self._back)

    def factors(self, product: sp.Expr, *, with_hyperbolics: bool) -> list[sp.Expr]:
        """Return the factors of a product of the generators in terms of exponentials again."""
        factors: list[sp.Expr] = []
        for factor in sp.Mul.make_args(product):
            base, power = factor.as_base_exp()
            if isinstance(base, sp.Add):
                factors.extend(part**power for part in self._collected_sum(base, with_hyperbolics))
            else:
                factors.append(factor.xreplace(self._back))
        return factors

    def _collected_sum(self, total: sp.Add, with_hyperbolics: bool) -> Iterator[sp.Expr]:
        """Collect a sum by its exponentials; a difference of two may become a sinh."""
        generators = [symbol for symbol in self._back if symbol in total.free_symbols]
        if not generators or not total.is_polynomial(*generators):
            yield total.xreplace(self._back)
            return
        units = [self._units[symbol] for symbol in generators]
        terms = []
        for monomial, coefficient in sp.Poly(total, *generators).terms():
            exponents = [n * unit for n, unit in zip(monomial, units, strict=True)]
            terms.append((bounded(sp.factor, coefficient), sp.Add(*exponents)))
        if with_hyperbolics and len(terms) == 2:
            (a, u), (b, v) = terms
            is_difference = sp.expand(a + b) == 0
            if is_difference or sp.expand(a - b) == 0:
                half = bounded(sp.factor, sp.expand((u - v) / 2))
                function = sp.sinh if is_difference else sp.cosh
                middle = sp.expand((u + v) / 2)
                yield from (2 * a, sp.exp(middle), function(half))
                return
        yield sp.Add(*(c * _exponential(exponent) for c, exponent in terms))


def _symbols_of_keys(
    exponents: Iterable[tuple[sp.Expr, sp.Rational]],
) -> dict[sp.Expr, tuple[sp.Symbol, sp.Expr]]:
    """Give each key a symbol for the exponential of its unit.

    The unit is the greatest rational of which all multiples are whole, unless one of them would be
    a power so high that a polynomial could not be written down: then each multiple has a symbol.
    """
    multiples: dict[sp.Expr, dict[sp.Rational, None]] = {}
    for key, rational in exponents:
        sizes = multiples.setdefault(key, {})
        sizes[abs(rational)] = None
    units: dict[sp.Expr, sp.Expr] = {}
    for key, rationals in multiples.items():
        unit = sp.S.Zero
        for rational in rationals:
            unit = _common_divisor(unit, rational)
        if max(rationals) / unit <= _HIGHEST:
            units[key] = key * unit
            continue
        for rational in rationals:
            multiple = rational * key
            units[multiple] = multiple
    symbols = {}
    for i, (key, unit) in enumerate(units.items()):
        symbols[key] = (sp.Dummy(f"y{i}", positive=True), unit)
    return symbols


def _exponential(exponent: sp.Expr) -> sp.Expr:
    """Return exp(exponent), powers of numbers and symbols written as such."""
    plain = sp.S.Zero
    product = sp.S.One
    for term in sp.Add.make_args(exponent):
        logs = [factor for factor in sp.Mul.make_args(term) if isinstance(factor, sp.log)]
        if len(logs) == 1:
            product *= logs[0].args[0] ** (term / logs[0])
        else:
            plain += term
    return product * sp.exp(bounded(sp.factor, plain))


def _common_divisor(a: sp.Rational, b: sp.Rational) -> sp.Rational:
    return sp.Rational(sp.igcd(a.p * b.q, b.p * a.q), a.q * b.q)


def _exponentials(expression: sp.Expr) -> set[sp.Expr]:
    """The outermost exponentials and powers with symbolic exponents."""
    exponentials: set[sp.Expr] = set()
    stack: list[sp.Basic] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, sp.exp) or (
            isinstance(node, sp.Pow) and not node.exp.is_Rational and node.base.is_positive
        ):
            exponentials.add(node)
        elif not isinstance(node, sp.Function):
            stack.extend(node.args)
    return exponentials


def _exponent_parts(node: sp.Expr) -> dict[sp.Expr, sp.Rational]:
    """Split the exponent into rational multiples of keys."""
    if isinstance(node, sp.exp):
        exponent = node.args[0]
    else:
        exponent = node.exp * sp.log(node.base)
    parts: dict[sp.Expr, sp.Rational] = {}
    expanded = sp.expand(sp.expand_log(exponent, force=True))
    for term in sp.Add.make_args(expanded):
        rational, key = term.as_coeff_Mul(rational=True)
        parts[key] = parts.get(key, sp.S.Zero) + rational
    return parts


MOST_OPERATIONS = 3_000  # of an expression that is rewritten: longer ones are for values
_SECONDS = 3.0  # for one rewriting
_STEEP = 64  # numerators and denominators of exponents from which on they are looked at


def bounded(rewrite: Callable[[sp.Expr], sp.Expr], expression: sp.Expr) -> sp.Expr:
    """Return what SymPy makes of an expression, the expression itself where it is very long."""
    if expression.count_ops() <= MOST_OPERATIONS:
        return rewrite(expression)
    return expression


def limit(expression: sp.Expr, x: sp.Symbol, end: sp.Expr, side: str) -> sp.Expr | None:
    """Return a limit, None where the expression is very long or the limit takes too long."""
    if expression.count_ops() > MOST_OPERATIONS:
        return None
    return attempt(lambda: sp.limit(expression, x, end, side), None, _SECONDS)


def factor(expression: sp.Expr) -> sp.Expr:
    """Return the expression as a product, as it is where that takes too long."""
    return _limited(sp.factor, expression)


def without_difference(density: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return a difference of quotients of exponentials of x as a product, others as they are.

    Far out 1/(1 + e^{-x-1}) - 1/(1 + e^{-x}) is a difference of two ones: no digit of it is left.
    """
    if not (isinstance(density, sp.Add) and density.is_rational_function(*_exponentials(density))):
        return density
    signs = {term.could_extract_minus_sign() for term in density.args}
    denominators = [sp.denom(term) for term in density.args]
    sums = [d for d in denominators if isinstance(d, sp.Add) and d.has(x)]
    if len(signs) < 2 or not sums or not all(d.has(sp.exp) for d in sums):
        return density
    product = factor(density)
    return product if isinstance(product, sp.Mul) else density


def cancel(expression: sp.Expr) -> sp.Expr:
    """Return the expression as a quotient in lowest terms, as it is where that takes too long."""
    return _limited(sp.cancel, expression)


def together(expression: sp.Expr) -> sp.Expr:
    """Return the expression over one denominator, as it is where that takes too long."""
    return _limited(sp.together, expression)


def apart(expression: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return a quotient of polynomials in x in partial fractions, as it is where there are none."""
    try:
        return _limited(lambda quotient: sp.apart(sp.together(quotient), x), expression)
    except (sp.PolynomialError, NotImplementedError):
        return expression


def simplify(expression: sp.Expr) -> sp.Expr:
    """Return the expression as SymPy finds it simplest, as it is where that takes too long."""
    return _limited(_simplified, expression)


@lru_cache(maxsize=256)  # cumulants at 0 are asked for by four sections of a derivation
def _simplified(expression: sp.Expr) -> sp.Expr:
    return sp.simplify(expression)


def vanishes(expression: sp.Expr) -> bool:
    """Whether an expression is certainly 0; False too where an exact test takes too long."""
    if simplify(expression) == 0:
        return True
    if any(_is_steep(node) for node in expression.atoms(sp.exp, sp.Pow)):
        return False
    return bool(attempt(lambda: expression.equals(0), False, _SECONDS))


def _limited(rewrite: Callable[[sp.Expr], sp.Expr], expression: sp.Expr) -> sp.Expr:
    if not expression.args or expression.count_ops() > MOST_OPERATIONS:
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
