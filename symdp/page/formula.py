"""Formulas as they are set: SymPy's expressions and lines in Unicode, as one tree of nodes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import ROUND_DOWN, Context, Decimal
from functools import cache
from itertools import chain, count
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from symdp.derive.presented import NORMAL, presented
from symdp.derive.printed import rounded
from symdp.emit.log_sum_exp import hyperu
from symdp.emit.mass import MassIntegral
from symdp.interrupt import attempt
from symdp.page.document import Line, Section
from symdp.page.node import (
    ATOM,
    EMPTY,
    PAGE,
    PRODUCT,
    SUM,
    Node,
    applied,
    broken,
    fence,
    fraction,
    held,
    in_words,
    listed,
    measure,
    name,
    number,
    operator,
    row,
    script,
    text,
    words,
)

_FUNCTIONS = {"gamma": "Γ", "uppergamma": "Γ", "lowergamma": "γ", "Beta": "B", "ln": "log",
              "asinh": "arsinh", "acosh": "arcosh", "atanh": "artanh"}  # fmt: skip
_RELATIONS = {
    sp.StrictLessThan: "<", sp.LessThan: "≤", sp.StrictGreaterThan: ">", sp.GreaterThan: "≥",
    sp.Equality: "=", sp.Unequality: "≠",
}  # fmt: skip


@cache
def layout(e: sp.Basic) -> Node:
    """Return how a SymPy expression is set."""
    if e in _CONSTANTS:
        return _CONSTANTS[e]
    for kinds, setter in _SETTERS:
        if isinstance(e, kinds):
            return setter(e)
    if e.args:
        kind = type(e).__name__
        return applied(name(_FUNCTIONS.get(kind, kind.lower())), *map(layout, e.args))
    if e == sp.true:
        return words("otherwise")
    return words(str(e))


def _indexed(letter: str) -> Callable[[Any], Node]:
    """Set a function whose first argument is an index."""
    return lambda e: applied(script(name(letter), layout(e.args[0])), layout(e.args[1]))


def _polygamma(e: Any) -> Node:
    order, at = e.args
    argument = layout(at)
    if order == 0:
        return applied(name("psi"), argument)
    if order in (1, 2, 3):
        mark = operator("′″‴"[int(order) - 1])
    else:
        mark = fence(layout(order))
    return applied(script(name("psi"), EMPTY, mark), argument)


def _hypergeometric(e: Any) -> Node:
    """Set ₚF_q(a, b; c; z), with no parameter where there is none."""
    above = listed(map(layout, e.ap))
    below = listed(map(layout, e.bq))
    count_above = number(str(len(e.ap)))
    count_below = number(str(len(e.bq)))
    head = row(script(EMPTY, count_above), script(name("F"), count_below))
    arguments = listed((above, below, layout(e.argument)), ";")
    return row(head, fence(arguments))


def _joined(e: Any) -> Node:
    parts = map(layout, sorted(e.args, key=sp.default_sort_key))
    if isinstance(e, sp.And):
        return listed(parts)
    return listed(parts, "∨")


_CONSTANTS: dict[sp.Basic, Node] = {
    sp.pi: Node("name", text="π"), sp.E: Node("name", text="e"), sp.I: Node("name", text="i"),
    sp.oo: Node("name", text="∞"), sp.zoo: Node("name", text="∞"),
    -sp.oo: row(operator("−"), Node("name", text="∞"), level=SUM),
    sp.EulerGamma: Node("name", text="γ"),
}  # fmt: skip


def _number(e: sp.Number) -> Node:
    if e.is_negative:
        return row(operator("−"), _number(-e), level=SUM)
    if isinstance(e, sp.Rational) and min(e.p, e.q) >= 10**20 and 1e-6 < e < 1e9:
        # The border of a piece, isolated to more digits than anyone reads.
        context = Context(prec=10, rounding=ROUND_DOWN)
        quotient = context.divide(Decimal(int(e.p)), Decimal(int(e.q)))
        return number(f"{quotient:f}…")
    if isinstance(e, sp.Rational) and e.q != 1:
        return fraction(number(str(e.p)), number(str(e.q)))
    if isinstance(e, sp.Float):
        digits, _, power = str(e).partition("e")
        if "." in digits:
            digits = digits.rstrip("0").rstrip(".")
        if not power:
            return number(digits)
        ten = script(number("10"), EMPTY, _number(sp.Integer(int(power))))
        return row(number(digits), operator("·"), ten, level=PRODUCT)
    return number(str(e))


def terms_in_order(e: sp.Add) -> list[sp.Expr]:
    """Return the terms as they are written: SymPy's order, a positive one first."""
    terms = list(e.args)
    if e.is_commutative:
        terms = list(e.as_ordered_terms())
    positive = (k for k, term in enumerate(terms) if not term.could_extract_minus_sign())
    first = next(positive, 0)
    return [terms.pop(first), *terms]


def _sum(e: sp.Add) -> Node:
    """Set a sum; terms with one denominator, a number, are one fraction: (x + 1)/2."""
    denominator = _common_denominator(e)
    if denominator != 1:
        return fraction(
            _sum(sp.Add(*(term * denominator for term in e.args))), _number(denominator)
        )
    parts: list[Node] = []
    for term in terms_in_order(e):
        if term.is_Mul:
            part = _product(term, is_term=True)
        else:
            part = layout(term)
        if _is_minus(part):
            parts += part.parts
        elif parts:
            parts += [operator("+"), part]
        else:
            parts.append(part)
    return row(*parts, level=SUM)


def _common_denominator(e: sp.Add) -> sp.Integer:
    """Return what all terms are divided by, where that is one number and they hold no other."""
    denominators = set()
    for term in e.args:
        factor, others = term.as_coeff_Mul()
        powers = (part.as_base_exp() for part in sp.Mul.make_args(others))
        is_quotient = any(base != sp.E and power.is_negative for base, power in powers)
        if not factor.is_Rational or is_quotient:
            return sp.S.One
        denominators.add(factor.q)
    if len(denominators) > 1 or all(term.could_extract_minus_sign() for term in e.args):
        return sp.S.One
    return sp.Integer(denominators.pop())


def _is_minus(node: Node) -> bool:
    return node.kind == "row" and len(node.parts) == 2 and node.parts[0] == operator("−")


def _product(e: sp.Mul, *, is_term: bool = False) -> Node:
    """Set a product: e^{−x} stays above the line, roots of numbers are put under one root.

    Where it is no term of a sum, its sign goes into a difference: (1 − x)y, not −(x − 1)y.
    """
    coefficient, product = e.as_coeff_Mul()
    if coefficient.is_negative:
        positive = -coefficient * product
        factors = sp.Mul.make_args(positive)
        turned = max(factors, key=_minuses)
        if is_term or not _minuses(turned):
            node = layout(positive)
            if _is_minus(node):
                return node.parts[1]
            return row(operator("−"), held(node), level=SUM)
        base, power = turned.as_base_exp()
        others = (node for node in factors if node is not turned)
        e = sp.Mul(*others, (-base) ** power, evaluate=False)
    for factor in sp.Mul.make_args(e):
        if factor.is_Add and all(t.could_extract_minus_sign() for t in factor.args):
            others = (node for node in e.args if node is not factor)
            positive = sp.Mul(*others, -factor)
            return row(operator("−"), held(layout(positive)), level=SUM)
    square = sp.S.One
    above = []
    below = []
    exponentials = []
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
    if not below:
        return _factors([*above, *exponentials])
    denominator = _factors(below)
    if not exponentials:
        return fraction(_factors(above), denominator)
    exponential = _factors(exponentials)
    if not above:  # 1/x e^{…} is e^{…}/x
        return fraction(exponential, denominator)
    quotient = fraction(_factors(above), denominator)
    return row(quotient, operator("·"), exponential, level=PRODUCT)


def _minuses(factor: sp.Expr) -> int:
    """Return how many terms of a sum, or of one below the line, have a minus."""
    base, power = factor.as_base_exp()
    if not base.is_Add or power not in (1, -1):
        return 0
    return sum(term.could_extract_minus_sign() for term in base.args)


_LONG = 10  # operations of an exponential that stands behind a fraction, not above its line
_HALVES = (sp.S.Half, -sp.S.Half)


def _positive(base: sp.Expr) -> tuple[sp.Expr, ...]:
    if base.is_Rational and base.is_positive:
        return (base,)
    return ()


def _roots(square: sp.Expr) -> tuple[list[sp.Expr], list[sp.Expr]]:
    """Return √ of a rational times a power of π as factors above and below the line."""
    sides: tuple[list[sp.Expr], list[sp.Expr]] = [], []
    rational, power_of_pi = square.as_coeff_Mul()
    power = sp.S.Zero
    if power_of_pi != 1:
        power = power_of_pi.as_base_exp()[1]
    integers = (sp.Integer(rational.p), sp.Integer(rational.q))
    for side, (integer, signed) in enumerate(zip(integers, (power, -power), strict=True)):
        whole, inside = sp.sqrt(integer).as_coeff_Mul()
        exponent = max(signed, sp.S.Zero)
        under = inside**2 * sp.pi ** (exponent % 2)
        if whole != 1:
            sides[side].append(whole)
        if exponent // 2:
            sides[side].append(sp.pi ** (exponent // 2))
        if under != 1:
            sides[side].append(sp.Pow(under, sp.S.Half, evaluate=False))
    return sides


_OPEN = (sp.Sum, sp.Integral)  # reach as far as the product does


def _factors(factors: list[sp.Expr]) -> Node:
    if len(factors) <= 1:
        if factors:
            return layout(factors[0])
        return number("1")
    parts: list[Node] = []
    # What stands behind a sign of a sum is summed, and what stands behind dx no longer integrated.
    for factor in sorted(
        factors, key=lambda f: (isinstance(f, sp.Sum | sp.Integral), _reading_order(f))
    ):
        node = held(layout(factor))
        if parts and _needs_dot(parts[-1], node):
            parts.append(operator("·"))
        parts.append(node)
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
        if base.name.startswith("He_"):
            return 3, str(factor)
        if "_" in base.name:
            return 2, str(factor)
        return 1, str(factor)
    if base.is_Add:
        return 5, str(factor)
    return 7, str(factor)


def _needs_dot(left: Node, right: Node) -> bool:
    """Whether two factors run together without a dot: 2·3, nx·(…), clip·b."""
    first = next(n for n in right.walk() if n.kind in _LEAVES)
    if left.kind == "binomial":
        return first.kind == "number"
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
    node = layout(base)
    is_whole = node.kind in {"name", "number", "script", "fence"}
    if not is_whole and not isinstance(base, AppliedUndef):
        node = fence(node)
    if node.kind == "script" and node.parts[2].parts:
        node = fence(node)
    return script(node, EMPTY, layout(power))


def _without_sign(condition: Any) -> Any:
    """Return s < −a for a < −s, as SymPy turns it."""
    if type(condition) in _RELATIONS:
        for side in condition.args:
            if (-side).is_Symbol and (-side).is_positive is None:  # the variable, no parameter
                turned = condition.reversedsign
                if turned.lhs == -side:
                    return turned
                return turned.reversed
    return condition


def _cases(e: sp.Piecewise) -> Node:
    """Set cases; x < a, x < b, otherwise are read as x < a, a ≤ x < b, x ≥ b."""
    rows = []
    before = None
    for value, stated in e.args:
        condition: Any = _without_sign(stated)
        if type(condition) in _RELATIONS and condition.rhs.is_Symbol:
            is_before = before is not None and condition.rhs == before[0]
            # A parameter has a sign, the variable of a density on the line has none.
            is_turned = condition.lhs.is_positive and condition.rhs.is_positive is None
            if is_turned or is_before:
                condition = condition.reversed
        words = layout(condition)
        is_upper = isinstance(condition, sp.StrictLessThan | sp.LessThan)
        if before is not None and is_upper and condition.lhs == before[0]:
            words = row(layout(before[1]), operator(before[2]), *words.parts)
        elif before is not None and condition == sp.true:
            sign = _OPPOSITE[before[2]]
            words = row(layout(before[0]), operator(sign), layout(before[1]))
        if is_upper:
            sign = _LOWER[type(condition)]
            before = (condition.lhs, condition.rhs, sign)
        rows.append(Node("row", (layout(value), words)))
    return Node("cases", tuple(rows), level=SUM)


# The lower end of the case behind x < a or x ≤ a, and what holds behind the last of them.
_LOWER = {sp.StrictLessThan: "≤", sp.LessThan: "<"}
_OPPOSITE = {"≤": "≥", "<": ">"}


def _relation(e: sp.Basic) -> Node:
    left, right = e.args
    return row(layout(left), operator(_RELATIONS[type(e)]), layout(right))


_OVER = ((sp.Sum, "∑"), (sp.Product, "∏"), (sp.Integral, "∫"))


def _over(e: sp.Integral | sp.Sum | sp.Product) -> Node:
    sign = next(sign for kind, sign in _OVER if isinstance(e, kind))
    inside = layout(e.args[0])
    if sign != "∫":
        inside = held(inside)
    elif inside.level == SUM:
        inside = fence(inside)
    for limits in e.args[1:]:
        x = layout(limits[0])
        low, high = EMPTY, EMPTY
        if len(limits) == 3:
            low, high = layout(limits[1]), layout(limits[2])
        if sign == "∫":
            inside = row(script(operator(sign), low, high), inside, operator("d"), x)
        else:
            below = row(x, operator("="), low)
            inside = row(script(operator(sign), below, high), inside)
    return Node("row", inside.parts, level=PRODUCT)


def _derivative(e: sp.Derivative) -> Node:
    (x, order), *_ = e.variable_count
    power = EMPTY
    if order != 1:
        power = layout(order)
    above = script(name("d"), EMPTY, power)
    below = script(layout(x), EMPTY, power)
    quotient = fraction(above, row(name("d"), below))
    return row(quotient, held(layout(e.expr)), level=PRODUCT)


# The first whose type it is sets an expression.
_SETTERS: tuple[tuple[Any, Callable[[Any], Node]], ...] = (
    (sp.Symbol, lambda e: name(e.name)),
    (sp.Number, _number),
    (sp.Add, _sum),
    (sp.Mul, _product),
    (sp.exp, lambda e: script(Node("name", text="e"), EMPTY, layout(e.args[0]))),
    (sp.Pow, _power),
    (sp.Piecewise, _cases),
    (sp.Abs, lambda e: fence(layout(e.args[0]), "|", "|")),
    (sp.factorial, lambda e: row(held(layout(e.args[0]), ATOM), operator("!"))),
    (sp.binomial, lambda e: Node("binomial", tuple(map(layout, e.args)))),
    (MassIntegral, lambda e: layout(sp.Symbol(e.name))),  # its definition stands beside it
    ((sp.Integral, sp.Sum, sp.Product), _over),
    (sp.Derivative, _derivative),
    (sp.besseli, _indexed("I")),
    (sp.besselk, _indexed("K")),
    (sp.legendre, _indexed("P")),
    (sp.hyper, _hypergeometric),
    (hyperu, lambda e: applied(name("U"), *map(layout, e.args))),
    (sp.loggamma, lambda e: applied(name("log"), applied(name("Gamma"), layout(e.args[0])))),
    (sp.polygamma, _polygamma),
    (sp.Tuple, lambda e: fence(listed(map(layout, e.args)))),
    (tuple(_RELATIONS), _relation),
    ((sp.And, sp.Or), _joined),
    (AppliedUndef, lambda e: applied(name(str(e.func)), *map(layout, e.args))),
)

_TOKEN = re.compile(
    r"“(?P<words>[^”]*)”|(?P<number>\d+(?:\.\d+)?)|(?P<above>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ]+|[′″‴]|⁽\w+⁾)"
    r"|(?P<below>[₀₁₂₃₄₅₆₇₈₉₋₊]+|[ₖₙₜₓⱼᵣₚₛₐ])|(?P<hole>\{\})"
    r"|(?P<name>MSD|He|Var|log|exp|inf|sup|min|max|lim|[A-Za-zα-ωΑ-ΩℓΦ∞]̄?)|(?P<sign>\S)"
)
_FIGURES = str.maketrans("₀₁₂₃₄₅₆₇₈₉₋₊⁰¹²³⁴⁵⁶⁷⁸⁹⁻ₖₙₜₓⱼᵣₚₛₐⁿ", "0123456789−+0123456789−kntxjrpsan")
_PAIRS = {"(": ")", "[": "]", "{": "}", "|": "|", "⌊": "⌋"}
_SUMS = set("+−±=≈≤≥<>≠,∈→‖;:∼…")


def read(formula: str, *holes: sp.Basic | Node) -> Node:
    """Return a formula as a tree; each {} in it is the next of `holes`.

    Juxtaposed names are a product; “words” stand in quotation marks, and {…} groups.
    """
    nodes = map(_node, holes)
    reader = _Reader(formula, nodes)
    tree = reader.row("")
    if reader.place < len(reader.tokens):
        raise ValueError(f"a bracket too many: {formula}")
    return tree


def _node(part: sp.Basic | Node) -> Node:
    if isinstance(part, Node):
        return part
    return layout(part)


class _Reader:
    def __init__(self, formula: str, holes: Iterator[Node]) -> None:
        self.tokens = [
            (str(m.lastgroup), m.group(str(m.lastgroup))) for m in _TOKEN.finditer(formula)
        ]
        self.place = 0
        self.holes = holes
        self.formula = formula

    def row(self, end: str) -> Node:
        """Read up to a closing bracket: products between signs."""
        parts: list[Node] = []
        product: list[Node] = []
        while self.place < len(self.tokens):
            kind, text = self.tokens[self.place]
            if kind == "sign" and text == end:
                break
            if kind == "sign" and text in ")]}":
                raise ValueError(f"a bracket too many: {self.formula}")
            if kind == "sign" and text in _SUMS:
                self.place += 1
                parts += [*self._product(product), operator(text)]
                product = []
            elif kind == "sign" and text == "/":
                self.place += 1
                product = [fraction(_bare(self._product(product)), _bare([self.atom()]))]
            elif kind == "sign" and text == "·":
                self.place += 1
                product.append(operator(text))
            else:
                product.append(self.atom())
        parts += self._product(product)
        is_sum = any(part.kind == "operator" and part.text in "+−" for part in parts)
        if is_sum:
            return row(*parts, level=SUM)
        return row(*parts)

    def _product(self, factors: list[Node]) -> list[Node]:
        if len(factors) > 1:
            return [row(*factors, level=PRODUCT)]
        return factors

    def atom(self) -> Node:
        """Read a name, number, root or bracket with its scripts, and what a name is applied to."""
        kind, text = self.tokens[self.place]
        if text == "√":
            self.place += 1
            return Node("root", (_bare([self.atom()]),))
        node = self._scripts(self._leaf())
        following = ""
        if self.place < len(self.tokens):
            _, following = self.tokens[self.place]
        if kind == "name" and following in ("(", "["):
            # f(x); a product with a sum is written with a dot
            node = self._scripts(row(node, self._leaf()))
        return node

    def _leaf(self, is_script: bool = False) -> Node:
        """Read one name, number or group; one that is a script needs no brackets."""
        kind, text = self.tokens[self.place]
        self.place += 1
        if kind == "hole":
            return next(self.holes)
        if text in _PAIRS and (text in "{(" or not is_script):
            inside = self.row(_PAIRS[text])
            self.place += 1
            if is_script or text == "{":
                return inside
            return fence(inside, text, _PAIRS[text])
        if kind == "sign" and is_script:
            return Node("name", text=text)
        if kind == "sign":
            return operator(text)
        return Node(kind, text=text)

    def _scripts(self, base: Node) -> Node:
        while self.place < len(self.tokens):
            kind, text = self.tokens[self.place]
            is_low = kind == "below" or text == "_"
            if kind not in ("below", "above") and (kind != "sign" or text not in "_^"):
                break
            self.place += 1
            if kind == "sign":
                mark = self._leaf(is_script=True)
            else:
                mark = _small(text)
            if is_low:
                base = script(base, mark)
            else:
                base = script(base, EMPTY, mark)
        return base


def _small(text: str) -> Node:
    if text[0] == "⁽":
        return fence(name(text[1:-1]))
    if text in "′″‴":
        return operator(text)
    plain = text.translate(_FIGURES)
    if plain in ("−", "+"):
        return operator(plain)
    if plain[0] in "−+":
        return row(operator(plain[0]), number(plain[1:]))
    if plain.isdigit():
        return number(plain)
    return Node("name", text=plain)


def _bare(parts: list[Node]) -> Node:
    """Return a product without brackets around all of it."""
    product = row(*parts)
    is_round = product.kind == "fence" and product.parts[0].text == "("
    if is_round:
        return product.parts[1]
    return product


_LONG_FORMULA = 110  # characters from which on a formula is given in named parts
_MOST_ENDS = 12  # of cases that are ordered
_WORTH_A_NAME = 3  # operations of a part
_FOR_ONE = 3.0  # seconds for the form in which one formula is read
_PARTS = ("u", "v", "w", "y", "z", "a", "b", "c", "d", "g", "h", "r")


def equation(
    left: str | Node,
    right: sp.Basic | Node | str,
    *,
    relation: str = "=",
    words: str = "",
    note: str = "",
) -> Line:
    """Return a line; a right side in words has no formula."""
    if isinstance(left, str):
        left = read(left)
    if isinstance(right, str):
        if right.startswith("="):
            return Line(left, read(right[1:]), words, relation, note=note)
        return Line(left, None, in_words(right), note=note)
    if isinstance(right, Node):
        return Line(left, right, words, relation, note=note)
    node = layout(shown(right))
    return Line(left, node, words, relation, note=note, expression=right)


@cache
def shown(expression: sp.Basic) -> sp.Basic:
    """Return an expression as people write it: Φ for erf and erfc, short decimals."""
    return _own_bound(_in_normal(one_set_of_cases(rounded(expression))))


def _own_bound(expression: sp.Basic) -> sp.Basic:
    """Return an expression whose sums and integrals go over no symbol that is free in it."""
    taken = {str(symbol.name) for symbol in expression.free_symbols}
    for sum_or_integral in expression.atoms(sp.Sum, sp.Integral):
        bound = sum_or_integral.limits[0][0]
        if bound.name.rstrip("_") in taken:
            free = next(letter for letter in _BOUND if letter not in taken)
            new = sp.Symbol(free, **bound.assumptions0)
            expression = expression.xreplace(
                {sum_or_integral: sum_or_integral.xreplace({bound: new})}
            )
    return expression


_BOUND = ("j", "i", "l", "m", "y", "z", "u_0")  # letters over which a sum may go


def _in_normal(expression: sp.Basic) -> sp.Basic:
    if isinstance(expression, sp.Piecewise):
        rows = [(_in_normal(value), condition) for value, condition in expression.args]
        return sp.Piecewise(*rows, evaluate=False)
    if not isinstance(expression, sp.Expr) or not expression.has(sp.erf, sp.erfc):
        return expression
    names: dict[sp.Expr, sp.Dummy] = {}

    def normal(z: sp.Expr) -> sp.Expr:
        argument = sp.factor_terms(sp.sqrt(2) * z)
        return names.setdefault(NORMAL(argument), sp.Dummy())

    written = expression.replace(sp.erf, lambda z: 2 * normal(z) - 1)
    written = written.replace(sp.erfc, lambda z: 2 * normal(-z))
    if written.is_polynomial(*names.values()):
        written = sp.collect(sp.expand(written), list(names.values()), sp.factor)
        constant = written.subs(dict.fromkeys(names.values(), 0))
        forms = sp.factor(constant), _by_exponentials(constant)
        written = written - constant + min(forms, key=sp.count_ops)
    for value, dummy in reversed(names.items()):  # later ones hold those before
        written = written.xreplace({dummy: value})
    return written


def _by_exponentials(expression: sp.Expr) -> sp.Expr:
    """Return a sum by its exponentials and powers of π, each with one factor."""
    factors: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(expression)):
        kind = sp.S.One
        factor = sp.S.One
        for part in sp.Mul.make_args(term):
            if isinstance(part, sp.exp) or part.as_base_exp()[0] is sp.pi:
                kind *= part
            else:
                factor *= part
        factors[kind] = factors.get(kind, sp.S.Zero) + factor
    return sp.Add(*(sp.factor(factor) * kind for kind, factor in factors.items()))


def one_set_of_cases(expression: sp.Basic) -> sp.Basic:
    """Return a sum, product or nesting of cases in one variable as one set of cases, in order.

    Where the order of the ends is not known, or cases depend on several symbols, it stays as it is.
    """
    cases = expression.atoms(sp.Piecewise)
    if cases <= {expression} or expression.has(sp.Integral, sp.Sum):
        return expression
    ends = set()
    symbols = set()
    relations: set[Any] = set()
    for piecewise in cases:
        for _, condition in piecewise.args:
            relations |= condition.atoms(sp.core.relational.Relational)
    for relation in relations:
        a, b = relation.args
        if not a.is_Symbol:
            a, b = b, a
        if isinstance(relation, sp.Eq | sp.Ne) or not a.is_Symbol or a in b.free_symbols:
            return expression
        symbols.add(a)
        ends.add(b)
    if len(symbols) != 1 or len(ends) > _MOST_ENDS:
        return expression
    (x,) = symbols
    places = sorted(ends, key=sp.default_sort_key)
    below = {a: sum(1 for b in places if (a - b).is_positive) for a in places}
    if sorted(below.values()) != list(range(len(places))):
        return expression
    places.sort(key=below.__getitem__)
    middles = [(a + b) / 2 for a, b in itertools.pairwise(places)]
    inside = [places[0] - 1, *middles, places[-1] + 1]
    cells = [_of_cell(expression, x, edge) for edge in inside]
    at = [_of_cell(expression, x, edge) for edge in places]
    if None in cells or None in at:
        return expression
    rows: list[tuple[Any, Any]] = []
    for k, edge in enumerate(places):
        if at[k] == cells[k]:
            rows.append((cells[k], x <= edge))
        else:
            rows.append((cells[k], x < edge))
            if at[k] != cells[k + 1]:
                rows.append((at[k], x <= edge))
    rows.append((cells[-1], sp.true))
    kept = [row for row, after in itertools.pairwise(rows) if row[0] != after[0]]
    return sp.Piecewise(*kept, rows[-1], evaluate=False)


def _of_cell(expression: sp.Basic, x: sp.Symbol, value_of_x: sp.Expr) -> sp.Basic | None:
    """Return an expression with the cases that hold at a place; None where one is not decided."""
    for piecewise in sorted(expression.atoms(sp.Piecewise), key=sp.count_ops):
        for value, condition in piecewise.args:
            holds = condition.subs(x, value_of_x)
            if holds == sp.true:
                expression = expression.xreplace({piecewise: value})
                break
            if holds != sp.false:
                return None
        else:
            return None
    if expression.has(sp.Piecewise):
        return _of_cell(expression, x, value_of_x)
    return expression


def finished(section: Section, taken: Iterable[str] = ()) -> Section:
    """Return a section whose formulas are short, and whose long ones share the names of parts.

    A name is none of `taken` and none that stands in the section, and means one thing in all of it.
    """
    used = set(taken)
    for line in section.lines:
        used |= {str(symbol.name) for symbol in _symbols(line)}
        used |= set(_LETTER.findall(line.words))
        left = line.left or EMPTY
        used |= {node.text for node in left.walk() if node.kind == "name"}
    letters = (letter for letter in _PARTS if letter not in used)
    numbered = (f"u_{index}" for index in count(1))
    parts = _Parts(map(sp.Symbol, chain(letters, numbered)))
    lines = map(parts.put, section.lines)
    return replace(section, lines=tuple(lines))


_LETTER = re.compile(r"(?<![^\W\d_])[a-z](?![^\W\d_])")


def _symbols(line: Line) -> set[sp.Symbol]:
    if line.expression is None:
        return set()
    return set(line.expression.free_symbols)


def _fits(formula: sp.Basic, room: float) -> bool:
    return all(measure(row) <= PAGE for row in broken(layout(formula), room))


_MOST_NAMES = 4  # of wide denominators of one formula


class _Parts:
    """Names for the parts that occur several times in long formulas."""

    def __init__(self, names: Iterator[sp.Symbol]) -> None:
        self.names = names
        self.known: dict[sp.Basic, sp.Symbol] = {}  # by the part written out
        self.values: dict[sp.Symbol, sp.Basic] = {}  # in other parts

    def put(self, line: Line) -> Line:
        """Return a line in its shorter form, with the parts that it needs."""
        if line.expression is None:
            return line
        plain = shown(line.expression)
        formula = attempt(lambda: presented(plain), plain, _FOR_ONE)
        whole = self._narrow(self._named(formula), line.room)
        needed: list[sp.Symbol] = []
        open_ = [whole]
        while open_:
            more = [s for s in open_.pop().free_symbols if s in self.values and s not in needed]
            needed += more
            open_ += [self.values[s] for s in more]
        where = ((layout(s), layout(v)) for s, v in self.values.items() if s in needed)
        return replace(line, right=layout(whole), where=tuple(where))

    def _narrow(self, whole: sp.Basic, room: float) -> sp.Basic:
        """Give names to wide denominators until no line is wider than the page."""
        for _ in range(_MOST_NAMES):
            below = [p.base for p in whole.atoms(sp.Pow) if p.exp.is_negative and p.base.is_Add]
            wide = max(below, key=lambda base: measure(layout(base)), default=sp.S.One)
            if sp.count_ops(wide) < _WORTH_A_NAME or _fits(whole, room):
                break
            if wide not in self.known:
                self.known[wide] = name = next(self.names)
                self.values[name] = wide
            whole = whole.xreplace({wide: self.known[wide]})
        return whole

    def _named(self, formula: sp.Basic) -> sp.Basic:
        if len(text(layout(formula))) <= _LONG_FORMULA or formula.has(sp.Integral, sp.Sum):
            return formula
        # Rows say where they hold as they stand: a name in a condition would turn it around.
        is_cases = isinstance(formula, sp.Piecewise)
        values = [formula]
        if is_cases:
            values = [value for value, _ in formula.args]
        parts, named = sp.cse(values, symbols=sp.numbered_symbols(cls=sp.Dummy), order="canonical")
        in_full: dict[sp.Symbol, sp.Basic] = {}
        in_names: dict[sp.Symbol, sp.Basic] = {}
        for part, value in parts:
            in_full[part] = full = value.xreplace(in_full)
            short_value = value.xreplace(in_names)
            is_long = (
                isinstance(short_value, sp.Expr) and sp.count_ops(short_value) >= _WORTH_A_NAME
            )
            if is_long and full not in self.known:
                self.known[full] = name = next(self.names)
                self.values[name] = short_value
            in_names[part] = self.known.get(full, short_value)
        written = [value.xreplace(in_names) for value in named]
        if not is_cases:
            return written[0]
        rows = zip(written, (condition for _, condition in formula.args), strict=True)
        return sp.Piecewise(*rows, evaluate=False)
