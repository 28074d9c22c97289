"""SymPy expressions as people set them: fractions, one root for numbers, Greek letters, cases."""

from __future__ import annotations

from functools import cache

import sympy as sp
from sympy.core.function import AppliedUndef

from symdp.page.node import (
    EMPTY,
    PRODUCT,
    SUM,
    Node,
    applied,
    fence,
    fraction,
    held,
    listed,
    name,
    number,
    operator,
    row,
    script,
    words,
)

_FUNCTIONS = {"gamma": "Γ", "uppergamma": "Γ", "lowergamma": "γ", "Beta": "B", "ln": "log"}
_RELATIONS = {
    sp.StrictLessThan: "<", sp.LessThan: "≤", sp.StrictGreaterThan: ">", sp.GreaterThan: "≥",
    sp.Equality: "=", sp.Unequality: "≠",
}  # fmt: skip


@cache
def layout(e: sp.Basic) -> Node:
    """Return how a SymPy expression is set.

    Examples
    --------
    >>> layout(sp.Symbol("x") / 2).kind
    'fraction'
    """
    if isinstance(e, sp.Symbol):
        return name(e.name)
    if isinstance(e, sp.Number):
        return _number(e)
    if e in _CONSTANTS:
        return _CONSTANTS[e]
    if isinstance(e, sp.Add):
        return _sum(e)
    if isinstance(e, sp.Mul):
        return _product(e)
    if isinstance(e, sp.exp):
        return script(Node("name", text="e"), EMPTY, layout(e.args[0]))
    if isinstance(e, sp.Pow):
        return _power(e)
    if isinstance(e, sp.Piecewise):
        return _cases(e)
    if isinstance(e, sp.Abs):
        return fence(layout(e.args[0]), "|", "|")
    if isinstance(e, sp.binomial):
        return Node("binomial", tuple(map(layout, e.args)))
    if hasattr(e, "as_integral"):  # the mass of a density: its definition stands beside it
        return layout(sp.Symbol(e.name))
    if isinstance(e, sp.Integral | sp.Sum | sp.Product):
        return _over(e)
    if isinstance(e, sp.Derivative):
        return _derivative(e)
    if isinstance(e, sp.besseli | sp.besselk):
        letter = "I" if isinstance(e, sp.besseli) else "K"
        return applied(script(name(letter), layout(e.args[0])), layout(e.args[1]))
    if isinstance(e, sp.legendre):
        return applied(script(name("P"), layout(e.args[0])), layout(e.args[1]))
    if isinstance(e, sp.loggamma):
        return applied(name("log"), applied(name("Gamma"), layout(e.args[0])))
    if isinstance(e, sp.polygamma):
        order = script(name("psi"), EMPTY, fence(layout(e.args[0])))
        return applied(order, layout(e.args[1]))
    if isinstance(e, sp.Tuple):
        return fence(listed(map(layout, e.args)))
    if type(e) in _RELATIONS:
        return _relation(e)
    if isinstance(e, sp.And | sp.Or):
        parts = map(layout, sorted(e.args, key=sp.default_sort_key))
        return listed(parts, "," if isinstance(e, sp.And) else "∨")
    if isinstance(e, AppliedUndef):
        return applied(name(str(e.func)), *map(layout, e.args))
    if e.args:
        own = type(e).__name__
        return applied(name(_FUNCTIONS.get(own, own.lower())), *map(layout, e.args))
    return words("otherwise" if e == sp.true else str(e))


_CONSTANTS: dict[sp.Basic, Node] = {
    sp.pi: Node("name", text="π"), sp.E: Node("name", text="e"), sp.I: Node("name", text="i"),
    sp.oo: Node("name", text="∞"), sp.zoo: Node("name", text="∞"),
    -sp.oo: row(operator("−"), Node("name", text="∞"), level=SUM),
    sp.EulerGamma: Node("name", text="γ"),
}  # fmt: skip


def _number(e: sp.Number) -> Node:
    if e in _CONSTANTS:
        return _CONSTANTS[e]
    if e.is_negative:
        return row(operator("−"), _number(-e), level=SUM)
    if isinstance(e, sp.Rational) and e.q != 1:
        return fraction(number(str(e.p)), number(str(e.q)))
    if isinstance(e, sp.Float):
        digits, _, power = str(e).partition("e")
        digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
        if not power:
            return number(digits)
        ten = script(number("10"), EMPTY, _number(sp.Integer(int(power))))
        return row(number(digits), operator("·"), ten, level=PRODUCT)
    return number(str(e))


def terms_in_order(e: sp.Add) -> list[sp.Expr]:
    """Return the terms as they are written: SymPy's order, a positive one first."""
    terms = list(e.as_ordered_terms()) if e.is_commutative else list(e.args)
    first = next((k for k, t in enumerate(terms) if not t.could_extract_minus_sign()), 0)
    return [terms.pop(first), *terms]


def _sum(e: sp.Add) -> Node:
    parts: list[Node] = []
    for term in terms_in_order(e):
        is_negative = term.could_extract_minus_sign()
        own = layout(-term if is_negative else term)
        if is_negative:
            parts += [operator("−"), held(own)]
        elif parts and own.kind == "row" and own.parts[0] == operator("−"):
            parts += own.parts  # a product that begins with a negative sum
        elif parts:
            parts += [operator("+"), own]
        else:
            parts.append(own)
    return row(*parts, level=SUM)


def _product(e: sp.Mul) -> Node:
    """Set a product: e^{−x} stays above the line, roots of numbers are put under one root."""
    coefficient, rest = e.as_coeff_Mul()
    if coefficient.is_negative:
        return row(operator("−"), held(layout(-coefficient * rest)), level=SUM)
    for factor in sp.Mul.make_args(e):
        if factor.is_Add and all(t.could_extract_minus_sign() for t in factor.args):
            others = (own for own in e.args if own is not factor)
            return row(operator("−"), held(layout(sp.Mul(*others, -factor))), level=SUM)
    square, above, below, exponentials = sp.S.One, [], [], []
    for factor in sp.Mul.make_args(e):
        base, power = factor.as_base_exp()
        if factor.is_Rational or (base in (sp.pi, *_positive(base)) and power in _HALVES):
            square *= factor**2
        elif isinstance(factor, sp.exp) and sp.count_ops(factor) > _LONG:
            exponentials.append(factor)
        elif base != sp.E and power.could_extract_minus_sign():
            below.append(base**-power)
        else:
            above.append(factor)
    for roots, factors in zip(_roots(square), (above, below), strict=True):
        factors[:0] = roots
    top = _factors(above if above or not exponentials or below else exponentials)
    if below:
        top = fraction(top, _factors(below))
    elif exponentials:
        return _factors([*above, *exponentials])
    if not exponentials or (not above and not below):
        return top
    if not above:  # 1/x e^{…} is e^{…}/x
        return fraction(_factors(exponentials), _factors(below))
    return row(top, operator("·"), _factors(exponentials), level=PRODUCT)


_LONG = 10  # operations of an exponential that stands behind a fraction, not above its line
_HALVES = (sp.S.Half, -sp.S.Half)


def _positive(base: sp.Expr) -> tuple[sp.Expr, ...]:
    return (base,) if base.is_Rational and base.is_positive else ()


def _roots(square: sp.Expr) -> tuple[list[sp.Expr], list[sp.Expr]]:
    """Return √ of a rational times a power of π as factors above and below the line."""
    found: tuple[list[sp.Expr], list[sp.Expr]] = [], []
    rational, rest = square.as_coeff_Mul()
    power = rest.as_base_exp()[1] if rest != 1 else sp.S.Zero
    for side, own in enumerate((sp.Integer(rational.p), sp.Integer(rational.q))):
        whole, inside = sp.sqrt(own).as_coeff_Mul()
        exponent = max(power if side == 0 else -power, sp.S.Zero)
        under = inside**2 * sp.pi ** (exponent % 2)
        if whole != 1:
            found[side].append(whole)
        if exponent // 2:
            found[side].append(sp.pi ** (exponent // 2))
        if under != 1:
            found[side].append(sp.Pow(under, sp.S.Half, evaluate=False))
    return found


def _factors(factors: list[sp.Expr]) -> Node:
    if len(factors) <= 1:
        return layout(factors[0]) if factors else number("1")
    parts: list[Node] = []
    # What stands behind a sign of a sum is summed.
    for factor in sorted(factors, key=lambda f: (isinstance(f, sp.Sum), _reading_order(f))):
        own = held(layout(factor))
        if parts and _needs_dot(parts[-1], own):
            parts.append(operator("·"))
        parts.append(own)
    return row(*parts, level=PRODUCT)


def _reading_order(factor: sp.Expr) -> tuple[int, str]:
    """Numbers, symbols, those with an index, roots, sums, exponentials, functions."""
    base, power = factor.as_base_exp()
    if factor.is_Rational:
        return 0, ""
    if factor.is_number:
        if factor == sp.pi:
            return 0, "π"
        return 4, str(factor)
    if isinstance(factor, sp.exp):
        return 6, str(factor)
    if isinstance(base, sp.binomial):
        return 1, ""
    if base.is_Symbol:
        if power == sp.S.Half:
            return 4, str(factor)
        return (3 if base.name.startswith("He_") else 2 if "_" in base.name else 1), str(factor)
    return (5 if base.is_Add else 7), str(factor)


def _needs_dot(left: Node, right: Node) -> bool:
    """Whether two factors run together without a dot: 2·3, nx·(…), clip·b."""
    first = next(n for n in right.walk() if n.kind in _LEAVES)
    if right.kind == "root":
        return left.kind in {"root", "fraction"}
    if "fraction" in (left.kind, right.kind) or left.kind == "root" or first.kind == "number":
        return True
    if first.kind == "name" and len(first.text) > 1 and first.text != "He":
        return True
    last = [n for n in left.walk() if n.kind in _LEAVES][-1]
    if last.kind == "number":
        return left.kind == "script" and right.kind == "fence"
    if last.kind == "operator" or right.kind == "fence":
        return right.kind == "fence" and left.kind != "fence"
    return len(last.text) > 1


_LEAVES = ("name", "number", "operator", "words")


_ELEMENTARY = (sp.log, sp.sinh, sp.cosh, sp.tanh, sp.coth, sp.sin, sp.cos, sp.tan)


def _power(e: sp.Pow) -> Node:
    base, power = e.as_base_exp()
    if power == sp.S.Half:
        return Node("root", (layout(base),))
    if power.could_extract_minus_sign() and base != sp.E:
        return fraction(number("1"), layout(sp.Pow(base, -power)))
    if isinstance(base, _ELEMENTARY) and power.is_Integer:
        function = name(_FUNCTIONS.get(type(base).__name__, type(base).__name__))
        return applied(script(function, EMPTY, layout(power)), layout(base.args[0]))
    own = layout(base)
    if own.kind not in {"name", "number", "script"} and not isinstance(base, AppliedUndef):
        own = fence(own)
    return script(fence(own) if own.kind == "script" and own.parts[2].parts else own, EMPTY,
                  layout(power))  # fmt: skip


def _cases(e: sp.Piecewise) -> Node:
    """Set cases; x < a, x < b, otherwise are read as x < a, a ≤ x < b, x ≥ b."""
    rows, before = [], None
    for value, condition in e.args:
        told = layout(condition)
        is_upper = isinstance(condition, sp.StrictLessThan | sp.LessThan)
        if before is not None and is_upper and condition.lhs == before[0]:
            told = row(layout(before[1]), operator(before[2]), *told.parts)
        elif before is not None and condition == sp.true:
            sign = "≥" if before[2] == "≤" else ">"
            told = row(layout(before[0]), operator(sign), layout(before[1]))
        if is_upper:
            sign = "≤" if isinstance(condition, sp.StrictLessThan) else "<"
            before = (condition.lhs, condition.rhs, sign)
        rows.append(Node("row", (layout(value), told)))
    return Node("cases", tuple(rows), level=SUM)


def _relation(e: sp.Basic) -> Node:
    return row(layout(e.args[0]), operator(_RELATIONS[type(e)]), layout(e.args[1]))


def _over(e: sp.Integral | sp.Sum | sp.Product) -> Node:
    sign = "∑" if isinstance(e, sp.Sum) else "∏" if isinstance(e, sp.Product) else "∫"
    inside = held(layout(e.args[0])) if sign != "∫" else layout(e.args[0])
    if sign == "∫" and inside.level == SUM:
        inside = fence(inside)
    for limits in e.args[1:]:
        x, ends = layout(limits[0]), [layout(end) for end in limits[1:]]
        low, high = ends if len(ends) == 2 else (EMPTY, EMPTY)
        if sign == "∫":
            inside = row(script(operator(sign), low, high), inside, operator("d"), x)
        else:
            below = row(x, operator("="), low)
            inside = row(script(operator(sign), below, high), inside)
    return Node("row", inside.parts, level=PRODUCT)


def _derivative(e: sp.Derivative) -> Node:
    (x, order), *_ = e.variable_count
    power = EMPTY if order == 1 else layout(order)
    above, below = (script(part, EMPTY, power) for part in (name("d"), layout(x)))
    return row(fraction(above, row(name("d"), below)), held(layout(e.expr)), level=PRODUCT)
