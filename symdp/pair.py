"""The dominating pair and its support, and the guarded building of their exact expressions.

`build` refuses an operation before SymPy starts on it when its exact numbers would grow past
all use (9**9**9, factorial(10**6)): neither a short text nor a value bound to a parameter may
stop the process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, NoReturn, TypeAlias

import sympy as sp
from mpmath.libmp import NoConvergence
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.functions.elementary.piecewise import ExprCondPair

from symdp.errors import InputError, suggestion

Component: TypeAlias = sp.Expr | tuple[sp.Expr, ...]

_MOST_BITS = 100_000  # of all exact numbers of one formula together
_MOST_NUMBER_BITS = 10_000  # of one: SymPy may ask whether it is prime
_MOST_ROOT_BITS = 1_100  # SymPy factors the number under a root
_LARGEST_ROOT = 10**30  # beyond, SymPy tells 2**(1/n) from 1 by a polynomial of degree n
_MOST_HEIGHT = 50
_FUNCTION_HEIGHT = 5  # SymPy's questions about signs can double with every function
_LARGEST_FACTORIAL = 1_000
_LARGEST_PRODUCT = 50  # SymPy writes out binomial(pi, 50)
_LARGEST_UNSIGNED_POWER = 1_000
_LARGEST_ARGUMENT = 1_000_000  # SymPy writes out 10**n for the integer part of exp(n)
_FACTORIALS = (sp.factorial, sp.gamma, sp.loggamma, sp.binomial, sp.besseli, sp.besselk)
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


@dataclass(frozen=True)
class Support:
    """Where a density lives: an interval, finitely many points, all integers, or 0, 1, 2, ...

    Parameters
    ----------
    kind : "interval", "points", "integers" or "naturals"
    lower, upper : the ends of an interval, -oo and oo allowed; they may hold parameters.
        (-oo, oo) for integers and points, (0, oo) for naturals
    points : the points, of kind "points" only

    Examples
    --------
    >>> Support("interval", sp.Integer(0), sp.oo).checked()
    Support(kind='interval', lower=0, upper=oo, points=())
    """

    kind: Literal["interval", "points", "integers", "naturals"]
    lower: sp.Expr
    upper: sp.Expr
    points: tuple[sp.Expr, ...] = ()

    def checked(self) -> Support:
        """Return self; raise InputError if the support is empty or a point is there twice."""
        if self.kind == "points":
            if len(self.points) < 2:
                raise InputError("a finite support needs two points or more")
            for place, point in enumerate(self.points):
                if point in self.points[:place]:
                    raise InputError(f"the point {point} of the support is there twice")
        if self.kind != "interval":
            return self
        empty = self.lower == sp.oo or self.upper == -sp.oo
        width = self.upper - self.lower
        if empty or (not width.free_symbols and not width.is_infinite and sign_of(width) <= 0):
            raise InputError(
                f"the support [{self.lower}, {self.upper}] is empty;"
                " its lower end must lie below its upper end"
            )
        return self

    def substitute(self, values: Mapping[sp.Symbol, sp.Expr]) -> Support:
        """Return the support with values in place of symbols."""
        lower, upper = substitute(self.lower, values), substitute(self.upper, values)
        points = tuple(substitute(point, values) for point in self.points)
        return Support(self.kind, lower, upper, points).checked()


@dataclass(frozen=True)
class Pair:
    r"""A dominating pair as two mixtures of the same components.

    .. math:: P = \sum_i p_i f_i, \qquad Q = \sum_i q_i f_i

    P is the law of the output with the record and Q without it; f_0 is the density without the
    record. A plain pair has the components (Q, P) and the weights (0, 1) and (1, 0).

    Parameters
    ----------
    variable : real, or an integer on integers and naturals
    support : where P + Q lives; a component that is 0 on a part of it is a Piecewise
    components : densities f_0, f_1, ... of the variable; on points, one mass for every point
    p_weights, q_weights : free of the variable, one for every component
    alternatives : weights and pairs of a *public choice*: one of the pairs is drawn with these
        probabilities, which one is published, and its output follows. The loss is then the mixture
        of theirs; such a pair has no components of its own

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> line = Support("interval", -sp.oo, sp.oo)
    >>> f, g = sp.exp(-abs(x)) / 2, sp.exp(-abs(x - 1)) / 2
    >>> pair = Pair(x, line, (f, g), (sp.Integer(0), sp.Integer(1)), (sp.Integer(1), sp.Integer(0)))
    >>> pair.P == g, pair.Q == f, pair.reversed().P == f
    (True, True, True)
    """

    variable: sp.Symbol
    support: Support
    components: tuple[Component, ...]
    p_weights: tuple[sp.Expr, ...]
    q_weights: tuple[sp.Expr, ...]
    alternatives: tuple[tuple[sp.Expr, Pair], ...] = ()

    @classmethod
    def choice(cls, alternatives: Sequence[tuple[sp.Expr, Pair]]) -> Pair:
        """Return the public choice among pairs of one variable; of a single pair, that pair."""
        if len(alternatives) == 1:
            return alternatives[0][1]
        first = alternatives[0][1]
        return cls(first.variable, first.support, (), (), (), tuple(alternatives))

    def __post_init__(self) -> None:
        if not len(self.components) == len(self.p_weights) == len(self.q_weights):
            raise InputError("a pair needs one weight of P and one of Q for every component")

    @property
    def P(self) -> Component:
        """The law with the record; a tuple of masses on points, and no law of a public choice."""
        return self._mixture(self.p_weights)

    @property
    def Q(self) -> Component:
        """The law without the record; a tuple of masses on points."""
        return self._mixture(self.q_weights)

    @property
    def is_discrete(self) -> bool:
        """Whether the variable takes countably many values."""
        return self.support.kind != "interval"

    def reversed(self) -> Pair:
        """Return the pair with P and Q swapped."""
        others = tuple((weight, pair.reversed()) for weight, pair in self.alternatives)
        held = (self.components, self.q_weights, self.p_weights, others)
        return Pair(self.variable, self.support, *held)

    def expressions(self) -> tuple[sp.Expr, ...]:
        """Return every expression that the pair is made of, for hashes and free symbols."""
        listed = (c if isinstance(c, tuple) else (c,) for c in self.components)
        ends = (self.support.lower, self.support.upper, *self.support.points)
        own = (*ends, *(part for parts in listed for part in parts))
        others = (part for w, pair in self.alternatives for part in (w, *pair.expressions()))
        return (self.variable, *own, *self.p_weights, *self.q_weights, *others)

    def _mixture(self, weights: tuple[sp.Expr, ...]) -> Component:
        terms = [
            component if isinstance(component, tuple) else (component,)
            for component in self.components
        ]
        used = [(weight, term) for weight, term in zip(weights, terms, strict=True) if weight != 0]
        masses = tuple(
            sp.Add(*(weight * term[place] for weight, term in used))
            for place in range(len(terms[0]))
        )
        return masses if self.support.kind == "points" else masses[0]


def normalized(law: Component, variable: sp.Symbol, support: Support) -> Component:
    """Return a law divided by its mass, which stays an unevaluated exact sum or integral."""
    if isinstance(law, tuple):
        if (total := sp.Add(*law)) == 0:
            raise InputError("the masses add up to 0, so they cannot be normalized")
        return tuple(mass / total for mass in law)
    taken = {str(symbol.name) for symbol in law.free_symbols}
    name = f"{variable.name}_"
    while name in taken:
        name += "_"
    # Not a Dummy: two loads of one file must give equal mechanisms.
    dummy = sp.Symbol(name, **variable.assumptions0)
    head = sp.Integral if support.kind == "interval" else sp.Sum
    return law / head(law.xreplace({variable: dummy}), (dummy, support.lower, support.upper))


def kind_of(support: object) -> Literal["interval", "points", "integers", "naturals"]:
    """Return the kind of support that a caller means."""
    if isinstance(support, Support):
        return support.kind
    if isinstance(support, Mapping) and set(support) == {"points"}:
        return "points"
    if isinstance(support, list | tuple) and len(support) >= 2:
        return "points" if len(support) > 2 else "interval"
    if support == "integers":
        return "integers"
    if support == "naturals":
        return "naturals"
    hint = suggestion(support, ("integers", "naturals")) if isinstance(support, str) else ""
    raise InputError(
        f"the support {support!r:.60} must be [lower, upper], 'integers', 'naturals',"
        f" three points or more, or points = [...]{hint}"
    )


def sign_of(constant: sp.Expr) -> int:
    """Return -1, 0 or 1, the sign of an expression without symbols.

    Raises
    ------
    InputError : it is not a real number.

    >>> sign_of(sp.sqrt(2) - sp.Rational(3, 2))
    -1
    """
    if constant.is_Rational:
        return int(sp.sign(constant))
    value = constant.evalf(30)
    if not value.is_comparable:
        raise InputError(f"{constant} is not a real number")
    return int(sp.sign(value))


def substitute(expr: sp.Basic, values: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
    """Put values for symbols into an expression, guarded as when it was read.

    Raises
    ------
    InputError : an exact number would grow past all use, or a part is not finite and real.

    >>> x = sp.Symbol("x", real=True)
    >>> substitute(sp.gamma(x) + 1, {x: sp.Integer(5)})
    25
    """
    done: dict[sp.Basic, Part] = {}

    def visit(node: sp.Basic) -> Part:
        if node not in done:
            parts = [visit(argument) for argument in node.args]
            if not parts:
                done[node] = leaf(values.get(node, node))
            elif all(part.expr is old for part, old in zip(parts, node.args, strict=True)):
                constant = all(part.constant for part in parts)
                done[node] = Part(node, sum(part.bits for part in parts), 0, constant)
            else:
                # What SymPy already holds may be as deep as it is: only text is measured.
                done[node] = build(node.func, parts)._replace(height=0)
        return done[node]

    return visit(expr).expr


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
    if head in (sp.Add, sp.Mul) or (head is sp.Pow and parts[1].constant):
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
        if any(size > (_LARGEST_FACTORIAL if whole else _LARGEST_PRODUCT) for size in sizes):
            _refuse(head, parts)
        bits += sum(int(4 * size * math.log2(size + 2)) for size in sizes)
    elif head in _BOUNDED and any(size > _LARGEST_ARGUMENT for size in _magnitudes(parts[0])):
        _refuse(head, parts)
    if bits > _MOST_BITS:
        _refuse(head, parts)
    try:
        expr = head(*(part.expr for part in parts))
        # SymPy may cancel every symbol: gamma(x + 9 - x) is a constant as well.
        constant = not expr.free_symbols and not expr.has(ExprWithLimits)
        real = not constant or expr.is_Rational or head in _RATIONAL or _is_real(expr)
    except _UNSETTLED:
        real = False
    if not real:
        raise InputError(f"{_describe(head, parts)} has no real value")
    if isinstance(expr, sp.Expr):
        inside = expr.args if isinstance(expr, sp.Add | sp.Mul | sp.Pow) else ()
        if any(part in USELESS for part in (expr, *inside)):
            raise InputError(f"{_describe(head, parts)} is not finite and real")
        number = expr.as_coeff_Mul()[0]
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
    power, number = exponent.expr, base.expr.as_coeff_Mul()[0]
    if base.expr == 0 and power.is_Rational and power < 0:
        raise InputError("the formula divides by zero")
    if base.expr == sp.E:
        return _logarithmic_bits(exponent) if power.has(sp.log) else exponent.bits
    if power.is_Rational and not power.is_Integer and number.is_Rational:
        if _bits(number) > _MOST_ROOT_BITS or (base.constant and power.q > _LARGEST_ROOT):
            _refuse(sp.Pow, (base, exponent))
    elif base.constant and exponent.constant and _magnitude(base) != 0:
        size = abs(sp.log(_magnitude(base).evalf(15))) * _magnitude(exponent)
        if size > _LARGEST_ARGUMENT:
            _refuse(sp.Pow, (base, exponent))
    # A number in the base is raised at once (a factor of it too), whatever else is in the exponent.
    largest = _largest_number(power)
    if largest > _LARGEST_UNSIGNED_POWER and not base.expr.is_positive:
        _refuse(sp.Pow, (base, exponent))  # SymPy would expand it to learn its sign
    return max(_scaled(1 if base.expr.is_Add else base.bits, largest), base.bits) + exponent.bits


def _is_real(constant: sp.Basic) -> bool:
    return not isinstance(constant, sp.Expr) or bool(constant.evalf(15).is_comparable)


def _magnitude(part: Part) -> sp.Expr:
    # Every constant was itself bounded when it was built, so evalf cannot run away here.
    value = part.expr if part.expr.is_Rational else part.expr.evalf(15)
    return abs(value) if value.is_Number and value.is_comparable else sp.Integer(0)


def _magnitudes(part: Part) -> list[sp.Expr]:
    # What is constant on one branch alone is a constant as soon as that branch is looked at.
    if part.constant:
        return [_magnitude(part)]
    found = []
    for node in part.expr.atoms(sp.Min, sp.Max, sp.Piecewise):
        listed = (arg.args[0] if isinstance(arg, ExprCondPair) else arg for arg in node.args)
        for value in (value for value in listed if not value.free_symbols):
            branch = part.expr.xreplace({node: value})
            if not branch.free_symbols:
                found.append(_magnitude(part._replace(expr=branch)))
    return found


def _describe(head: Callable[..., sp.Basic], parts: Sequence[Part]) -> str:
    texts = ["..." if _long(part) else str(part.expr) for part in parts]
    texts = [text if len(text) <= 30 else "..." for text in texts]
    if head is sp.Pow and texts[1] == "1/2":
        return f"sqrt({texts[0]})"
    if head in _SIGNS:
        return _SIGNS[head].join(f"({t})" if set(t) & set(" /*-") else t for t in texts[:3])
    return f"{getattr(head, '__name__', 'function')}({', '.join(texts)})"


def _long(part: Part) -> bool:
    return (_bits(part.expr) if part.expr.is_Rational else part.bits) > 200


def _refuse(head: Callable[..., sp.Basic], parts: Sequence[Part]) -> NoReturn:
    raise InputError(f"{_describe(head, parts)} is too large to build exactly; use smaller numbers")
