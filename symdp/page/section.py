"""One section of a derivation: lines of formulas and words, and what their symbols mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count

import sympy as sp

from symdp.derive.printed import rounded
from symdp.page.latex import PAGE, broken, latex, latex_words, measure
from symdp.page.layout import layout
from symdp.page.mathml import mathml
from symdp.page.node import EMPTY, Node, operator, row
from symdp.page.notation import read
from symdp.page.plain_text import text, transliterated

_LONG_FORMULA = 110  # characters from which on a formula is given in named parts
_WORTH_A_NAME = 3  # operations of a part
_MANY_OPERATIONS = 60  # from which on a page folds a formula
_WIDE_LINE = 90  # characters up to which words stand behind their formula
_WIDE_CASE = 60  # characters up to which conditions stand below each other
_PARTS = ("u", "v", "w", "y", "z", "a", "b", "c", "d", "g", "h", "r")
_NAMED_FUNCTIONS = frozenset({
    "log", "exp", "inf", "sup", "min", "max", "sinh", "cosh", "tanh", "coth", "sin", "cos", "tan",
    "atan", "acos", "asin", "erf", "erfc", "erfi", "Γ", "B", "sign", "floor", "ceiling", "hyper",
})  # fmt: skip
_CONSTANTS = frozenset("πi∞d") | {"e"}


@dataclass(frozen=True)
class Line:
    """A formula, a sentence, or a name with the reason why it has no formula.

    Attributes
    ----------
    left, right
        The two sides; no left side where `words` are a sentence.
    words
        What is said behind the formula, or in place of its right side.
    relation
        "=", "≈" or "≤".
    where
        Named parts of the right side, each a name and what it stands for.
    note
        What stands below on a page, in small letters.
    expression
        The SymPy expression that the right side shows, if it shows one.
    """

    left: Node | None
    right: Node | None = None
    words: str = ""
    relation: str = "="
    where: tuple[tuple[Node, Node], ...] = ()
    note: str = ""
    expression: sp.Basic | None = None

    @property
    def operations(self) -> int:
        """How many operations the right side has."""
        return 0 if self.expression is None else int(sp.count_ops(self.expression))

    @property
    def is_long(self) -> bool:
        """Whether a page folds it."""
        return self.operations > _MANY_OPERATIONS

    @property
    def whole(self) -> Node | None:
        """The two sides and what is between them."""
        if self.left is None or self.right is None:
            return self.left
        return row(self.left, operator(self.relation), self.right)

    def nodes(self) -> Iterator[Node]:
        """Yield both sides and the named parts."""
        yield from (side for side in (self.left, self.right) if side is not None)
        for _, part in self.where:
            yield part

    def text(self, ascii_only: bool = False) -> Iterator[str]:
        """Yield lines of text, not yet broken."""
        words = transliterated(self.words) if ascii_only else self.words
        if self.left is None:
            yield words
            return
        name = text(self.left, ascii_only)
        if self.right is None:
            yield f"{name}: {words}"
            return
        if self.right.kind == "cases":
            cases = [
                (text(case.parts[0], ascii_only), text(case.parts[1], ascii_only))
                for case in self.right.parts
            ]
            begin = f"{name} {self.relation} "
            wide = max(len(value) for value, _ in cases)
            for value, condition in cases:
                at = condition if condition == "otherwise" else f"if {condition}"
                yield f"{begin}{value:{wide if wide < _WIDE_CASE else 0}}  {at}"
                begin = " " * len(begin)
        else:
            sign = transliterated(self.relation) if ascii_only else self.relation
            formula = f"{name} {sign} {text(self.right, ascii_only)}"
            is_short = len(formula) + len(words) <= _WIDE_LINE
            yield f"{formula}    {words}" if words and is_short else formula
            if words and not is_short:
                yield f"  ({words})"
        for part, meant in self.where:
            yield f"  {text(part, ascii_only)} = {text(meant, ascii_only)}"

    def latex(self) -> str:
        """Return the formula in LaTeX on one line, or its name and the words."""
        if self.left is None:
            return rf"\text{{{latex_words(self.words)}}}"
        if self.right is None:
            return rf"{latex(self.left)}: \text{{{latex_words(self.words)}}}"
        parts = "".join(rf",\quad {latex(n)} = {latex(v)}" for n, v in self.where)
        return f"{latex(self.left)} {latex(operator(self.relation))} {latex(self.right)}{parts}"

    def latex_rows(self, width: float = PAGE) -> Iterator[str]:
        """Yield rows of an align environment whose right sides are broken to a width."""
        if self.left is None or self.right is None:
            return
        first, *others = broken(self.right, width)
        yield f"{latex(self.left)} &{latex(operator(self.relation))} {latex(first)}"
        yield from (rf"&\quad {latex(line)}" for line in others)
        for name, value in self.where:
            first, *others = broken(value, width - measure(name) - 5)
            yield rf"&\quad {latex(name)} = {latex(first)}"
            yield from (rf"&\qquad {latex(line)}" for line in others)

    def mathml(self) -> str:
        """Return the formula as a math element, its left side alone where there is no other."""
        if self.right is None:
            return self.name()
        rows = broken(self.right)
        first = mathml(row(self.left or EMPTY, operator(self.relation), rows[0]))
        if len(rows) > 1 or self.where:
            inner = [first, *(f'<mspace width="2em"/>{mathml(line)}' for line in rows[1:])]
            for name, value in self.where:
                own = mathml(row(name, operator("="), value))
                inner.append(f'<mspace width="2em"/>{own}')
            cells = "".join(
                f'<mtr><mtd style="text-align: left"><mrow>{line}</mrow></mtd></mtr>'
                for line in inner
            )
            first = f'<mtable displaystyle="true">{cells}</mtable>'
        return f'<math displaystyle="true"><mrow>{first}</mrow></math>'

    def name(self) -> str:
        """Return the left side as a math element."""
        return f"<math><mrow>{mathml(self.left or EMPTY)}</mrow></math>"


def equation(
    left: str | Node,
    right: sp.Basic | Node | str,
    *,
    relation: str = "=",
    words: str = "",
    note: str = "",
    taken: Iterable[str] = (),
) -> Line:
    """Return a line; a right side in words has no formula, a long one is given in named parts."""
    name = read(left) if isinstance(left, str) else left
    if isinstance(right, str):
        if right.startswith("="):
            return Line(name, read(right[1:]), words, relation, note=note)
        return Line(name, None, right, note=note)
    if isinstance(right, Node):
        return Line(name, right, words, relation, note=note)
    shortened, parts = in_parts(shown(right), taken)
    where = tuple((layout(part), layout(value)) for part, value in parts)
    return Line(name, layout(shortened), words, relation, where, note, right)


def sentence(words: str) -> Line:
    """Return a line of words."""
    return Line(None, words=words)


_NORMAL = sp.Function("Phi")


def shown(expression: sp.Basic) -> sp.Basic:
    """Return an expression as people write it: Φ for erf and erfc, short decimals.

    Examples
    --------
    >>> shown(sp.erf(sp.Symbol("x") / sp.sqrt(2)) / 2 + sp.S.Half)
    Phi(x)
    """
    expression = rounded(expression)
    if isinstance(expression, sp.Piecewise):
        return sp.Piecewise(*((shown(e), c) for e, c in expression.args), evaluate=False)
    if not isinstance(expression, sp.Expr) or not expression.has(sp.erf, sp.erfc):
        return expression
    names: dict[sp.Expr, sp.Dummy] = {}

    def normal(z: sp.Expr) -> sp.Expr:
        return names.setdefault(_NORMAL(sp.factor_terms(sp.sqrt(2) * z)), sp.Dummy())

    written = expression.replace(sp.erf, lambda z: 2 * normal(z) - 1)
    written = written.replace(sp.erfc, lambda z: 2 * normal(-z))
    if written.is_polynomial(*names.values()):
        written = sp.collect(sp.expand(written), list(names.values()), sp.factor)
        rest = written.subs(dict.fromkeys(names.values(), 0))
        written = written - rest + sp.factor(rest)
    for value, dummy in reversed(names.items()):  # later ones hold those before
        written = written.xreplace({dummy: value})
    return written


def in_parts(
    expression: sp.Basic, taken: Iterable[str] = ()
) -> tuple[sp.Basic, list[tuple[sp.Symbol, sp.Expr]]]:
    """Return an expression with names for the parts that occur several times, and these parts.

    A short expression is returned as it is.

    Examples
    --------
    >>> x = sp.Symbol("x")
    >>> in_parts(sp.exp(x))
    (exp(x), [])
    """
    if len(text(layout(expression))) <= _LONG_FORMULA or expression.has(sp.Integral, sp.Sum):
        return expression, []
    used = {str(s.name) for s in expression.free_symbols} | set(taken)

    def names() -> Iterator[sp.Symbol]:
        short = (name for name in _PARTS if name not in used)
        return map(sp.Symbol, chain(short, (f"u_{k}" for k in count(1))))

    found, (whole,) = sp.cse(expression, symbols=names(), order="canonical")
    kept: list[tuple[sp.Symbol, sp.Expr]] = []
    inlined: dict[sp.Symbol, sp.Expr] = {}
    for name, value in found:
        own = value.xreplace(inlined)
        if isinstance(own, sp.Expr) and sp.count_ops(own) >= _WORTH_A_NAME:
            kept.append((name, own))
        else:
            inlined[name] = own
    whole = whole.xreplace(inlined)
    # In the order of the alphabet, whatever was inlined between.
    again = dict(zip((name for name, _ in kept), names(), strict=False))
    kept = [(again[name], value.xreplace(again)) for name, value in kept]
    return whole.xreplace(again), kept


@dataclass(frozen=True)
class Section:
    """A title, lines, and the meaning of exactly the symbols that the lines use."""

    key: str
    title: str
    lines: tuple[Line, ...]
    legend: tuple[tuple[Node, str], ...] = ()

    def legend_text(self, ascii_only: bool = False) -> str:
        """Return the legend as one sentence, empty where there is none."""
        found = "; ".join(f"{text(name, ascii_only)}, {meaning}" for name, meaning in self.legend)
        return transliterated(found) if ascii_only else found

    def explained(self, meanings: Mapping[str, str]) -> Section:
        """Return the section with its legend."""
        legend: dict[str, tuple[Node, str]] = {}
        for label, node in self.symbols().items():
            general, any_index = _general(label, node)
            own = (label, node) if label in meanings else (general, any_index)
            if own[0] in meanings:
                legend.setdefault(own[0], (own[1], meanings[own[0]]))
        return replace(self, legend=tuple(legend.values()))

    def symbols(self) -> dict[str, Node]:
        """Return the symbols of the lines, without the names of parts and of functions."""
        found: dict[str, Node] = {}
        for line in self.lines:
            parts = {token(name) for name, _ in line.where}
            for node in line.nodes():
                for own in _names(node):
                    if (label := token(own)) not in parts:
                        found.setdefault(label, own)
        return found


def token(node: Node) -> str:
    """Return a symbol without exponents, as text."""
    if node.kind == "script":
        return text(replace(node, parts=(node.parts[0], node.parts[1], EMPTY)))
    return text(node)


def _general(label: str, node: Node) -> tuple[str, Node]:
    """The symbol with any index: κ_j for κ₃."""
    if node.kind != "script":
        return label, node
    index = Node("name", text="j")
    return f"{text(node.parts[0])}_j", replace(node, parts=(node.parts[0], index, EMPTY))


def _names(node: Node) -> Iterator[Node]:
    if node.kind == "name":
        if node.text not in _NAMED_FUNCTIONS and node.text not in _CONSTANTS:
            yield node
        return
    if node.kind == "script" and node.parts[0].kind == "name":
        base, below, above = node.parts
        if below != EMPTY or (base.text not in _CONSTANTS and base.text not in _NAMED_FUNCTIONS):
            yield replace(node, parts=(base, below, EMPTY)) if below != EMPTY else base
        yield from _names(above)
        return
    for part in node.parts:
        yield from _names(part)
