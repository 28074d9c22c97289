"""A document is a tree of blocks; text, HTML, Markdown and LaTeX are functions of it.

A derivation, a report, a card, a calculation in numbers and what a command prints are documents.
A formula is a tree of nodes (`symdp.page.node`), so that every printer says the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from symdp.page.node import EMPTY, PAGE, Node, broken, is_wide, listed, measure, operator, text

if TYPE_CHECKING:
    from symdp.page.plot import Series

_MANY_OPERATIONS = 60  # from which on a page folds a formula
_NAMED_FUNCTIONS = frozenset({
    "log", "exp", "inf", "sup", "min", "max", "sinh", "cosh", "tanh", "coth", "sin", "cos", "tan",
    "atan", "acos", "asin", "erf", "erfc", "erfi", "Γ", "B", "sign", "floor", "ceiling", "hyper",
})  # fmt: skip
_COUNTERS = frozenset("ijkmn")
_CONSTANTS = frozenset("πi∞d") | {"e"}
_FOOT = "Numbers called exact are the exact formula in floating point; bounds are proved; "
_FOOT += "estimates are neither."


@dataclass(frozen=True)
class Heading:
    """A heading of level 2 (a section), 3 or 4."""

    level: int
    text: str


@dataclass(frozen=True)
class Sentence:
    """Words. `tone` is "", "quiet", "warning", "strong", "good" or "bad"; `answer` ends them."""

    text: str
    tone: str = ""
    answer: str = ""


@dataclass(frozen=True)
class Line:
    """A formula, a sentence among formulas, or a name with the reason why it has no formula.

    Without a left side the words are a sentence; without a right one they stand in its place, else
    behind it. `where` names parts of the right side, `note` stands below on a page, and
    `expression` is what SymPy has for the right side, if anything.
    """

    left: Node | None
    right: Node | None = None
    words: str = ""
    relation: str = "="
    where: tuple[tuple[Node, Node], ...] = ()
    note: str = ""
    expression: Any = None

    @property
    def operations(self) -> int:
        """How many operations the right side has."""
        if self.expression is None:
            return 0
        from sympy import count_ops

        return int(count_ops(self.expression))

    @property
    def is_long(self) -> bool:
        """Whether a page folds it."""
        return self.operations > _MANY_OPERATIONS

    @property
    def room(self) -> float:
        """The width of a page that is left to the right side."""
        left = self.left or EMPTY
        if is_wide(left):
            return PAGE - 3
        return PAGE - 3 - measure(left)

    def rows(self, width: float, of_parts: float = PAGE) -> Iterator[tuple[int, tuple[Node, ...]]]:
        """Yield a formula with two sides as rows: how far one stands in, and what is in it.

        Behind a wide left side, which would leave it no room, the right one begins a row.
        """
        left = self.left or EMPTY
        sign = operator(self.relation)
        first, *others = broken(self.right or EMPTY, width)
        if is_wide(left):
            yield 0, (left,)
            yield 1, (sign, first)
        else:
            yield 0, (left, sign, first)
        yield from ((1, (part,)) for part in others)
        for name, value in self.where:
            first, *others = broken(value, of_parts - measure(name) - 5)
            yield 1, (name, operator("="), first)
            yield from ((2, (part,)) for part in others)

    def nodes(self) -> Iterator[Node]:
        """Yield both sides and the named parts."""
        yield from (side for side in (self.left, self.right) if side is not None)
        for _, part in self.where:
            yield part


def sentence(words: str) -> Line:
    """Return a line of words."""
    return Line(None, words=words)


@dataclass(frozen=True)
class Formulas:
    """Lines, one below the other; on a page long ones are folded."""

    lines: Sequence[Line]


@dataclass(frozen=True)
class Legend:
    """What the symbols of the formulas above mean."""

    items: Sequence[tuple[Node, str]]


@dataclass(frozen=True)
class Table:
    """Rows of text below a head; the columns of `numbers` are set to the right.

    `strong` lists the rows that stand out, `bad` those that are wrong.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    numbers: Collection[int] = ()
    strong: frozenset[int] = frozenset()
    bad: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Figure:
    """Curves with a caption, `name` unique within the page; or errors, a row for each curve."""

    series: Sequence[Series]
    caption: str
    name: str
    of_errors: bool = False


@dataclass(frozen=True)
class Listing:
    """A list of lines."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Command:
    """Text that is copied as it stands."""

    text: str


@dataclass(frozen=True)
class Folded:
    """Blocks behind a line that opens them."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Embedded:
    """Markup of our own that a browser runs, such as a panel; other printers leave it out."""

    html: str


Block: TypeAlias = (
    Heading | Sentence | Formulas | Legend | Table | Figure | Listing | Command | Folded | Embedded
)


@dataclass
class Document:
    """A title and what stands below it."""

    title: str
    blocks: list[Block] = field(default_factory=list)
    foot: str = _FOOT


@dataclass(frozen=True)
class Section:
    """A part of a derivation: a title, lines, and the meaning of exactly the symbols in them."""

    key: str
    title: str
    lines: tuple[Line, ...]
    legend: tuple[tuple[Node, str], ...] = ()
    is_general: bool = False  # says the same of every mechanism

    def blocks(self, level: int = 4) -> list[Block]:
        """Return the section as blocks of a document."""
        blocks: list[Block] = []
        if self.title:
            blocks.append(Heading(level, self.title))
        blocks.append(Formulas(self.shown()))
        if self.legend:
            blocks.append(Legend(self.legend))
        return blocks

    def shown(self) -> list[Line]:
        """Return the lines, each part explained where it comes first."""
        explained: set[tuple[Node, Node]] = set()
        lines = []
        for line in self.lines:
            lines.append(replace(line, where=tuple(p for p in line.where if p not in explained)))
            explained |= set(line.where)
        return lines

    def explained(self, meanings: Mapping[str, str]) -> Section:
        """Return the section with its legend."""
        nodes: dict[str, list[Node]] = {}
        for label, node in self.symbols().items():
            general, any_index = _general(label, node)
            if label in meanings:
                nodes.setdefault(label, [node])
            elif general in meanings and _is_counted(node):
                nodes.setdefault(general, [any_index])
            elif general in meanings:
                nodes.setdefault(general, []).append(node)
        legend = tuple((listed(alike), meanings[label]) for label, alike in nodes.items())
        return replace(self, legend=legend)

    def symbols(self) -> dict[str, Node]:
        """Return the symbols of the lines, without the names of parts and of functions."""
        nodes: dict[str, Node] = {}
        for line in self.lines:
            parts = {token(name) for name, _ in line.where}
            for node in line.nodes():
                for symbol in _names(node):
                    if (label := token(symbol)) not in parts:
                        nodes.setdefault(label, symbol)
        return nodes


def one_legend(sections: Sequence[Section]) -> list[tuple[Node, str]]:
    """Return the legend of several sections; what a symbol means in one alone says where."""
    by_token: dict[str, tuple[Node, list[str]]] = {}
    for section in sections:
        for node, meaning in section.legend:
            meanings = by_token.setdefault(token(node), (node, [meaning]))[1]
            if all(not meaning_before.endswith(meaning) for meaning_before in meanings):
                meanings.append(f"in “{section.title}” {meaning}")
    return [(node, ", ".join(meanings)) for node, meanings in by_token.values()]


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


def _is_counted(node: Node) -> bool:
    """Whether an index counts, as that of κ₃ does, and not that of α_P."""
    if node.kind != "script":
        return True
    index = node.parts[1]
    return index.kind == "number" or text(index) in _COUNTERS


def _names(node: Node) -> Iterator[Node]:
    if node.kind == "name":
        if node.text not in _NAMED_FUNCTIONS and node.text not in _CONSTANTS:
            yield node
        return
    if node.kind == "script" and node.parts[0].kind == "name":
        base, below, above = node.parts
        if below != EMPTY:
            yield replace(node, parts=(base, below, EMPTY))
        elif base.text not in _CONSTANTS and base.text not in _NAMED_FUNCTIONS:
            yield base
        yield from _names(above)
        return
    for part in node.parts:
        yield from _names(part)
