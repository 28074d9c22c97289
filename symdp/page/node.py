"""A formula as it is set: names, fractions, scripts, roots and brackets, as a tree.

Text, LaTeX and MathML are written from this tree, so that each says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

SUM, PRODUCT, ATOM = 1, 2, 3  # how tightly a node holds together


@dataclass(frozen=True)
class Node:
    """One part of a formula.

    Attributes
    ----------
    kind
        "name", "number", "operator" or "words" with a text; "row"; "fraction" of two; "root";
        "script" of a base, an index and an exponent, either empty; "fence" of an opening text, a
        node and a closing text; "cases" of rows (value, condition); "binomial" of two.
    parts
        Nodes, or one text.
    level
        `SUM` or `PRODUCT` where a bracket is needed inside of something tighter.
    """

    kind: str
    parts: tuple[Node, ...] = ()
    text: str = ""
    level: int = ATOM

    def walk(self) -> Iterator[Node]:
        """Yield the node and all below it."""
        yield self
        for part in self.parts:
            yield from part.walk()


EMPTY = Node("row")
_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η",
    "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ",
    "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "phi": "φ", "chi": "χ",
    "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ",
    "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω", "ell": "ℓ",
}  # fmt: skip
GREEK_NAMES = {letter: name for name, letter in _GREEK.items()}


def name(text: str) -> Node:
    """Return a name: Greek letters as such, an index behind the first underscore.

    Examples
    --------
    >>> [part.text for part in name("lambda_3").parts]
    ['λ', '3', '']
    """
    base, _, index = text.partition("_")
    while base and base[-1].isdigit() and not index:
        base, index = base[:-1], base[-1] + index
    if not base:
        return Node("name", text=text)
    own = Node("name", text=_GREEK.get(base, base))
    if not index:
        return own
    below = number(index) if index.isdigit() else Node("name", text=_GREEK.get(index, index))
    return script(own, below)


def number(text: str) -> Node:
    """Return a number."""
    return Node("number", text=text)


def operator(text: str) -> Node:
    """Return a sign that stands between two others."""
    return Node("operator", text=text)


def words(text: str) -> Node:
    """Return plain words."""
    return Node("words", text=text)


def row(*parts: Node, level: int = ATOM) -> Node:
    """Return nodes one behind the other."""
    return parts[0] if len(parts) == 1 else Node("row", parts, level=level)


def script(base: Node, below: Node = EMPTY, above: Node = EMPTY) -> Node:
    """Return a base with an index and an exponent; two of one base stand above each other."""
    if base.kind == "script":
        old = base.parts
        if EMPTY in (old[1], below) and EMPTY in (old[2], above):
            return Node(
                "script", (old[0], *(b if a is EMPTY else a for a, b in _pairs(old, below, above)))
            )
    return Node("script", (base, below, above))


def _pairs(old: tuple[Node, ...], below: Node, above: Node) -> Iterable[tuple[Node, Node]]:
    return (old[1], below), (old[2], above)


def fence(inside: Node, left: str = "(", right: str = ")") -> Node:
    """Return a node in brackets."""
    return Node("fence", (operator(left), inside, operator(right)))


def fraction(above: Node, below: Node) -> Node:
    """Return a fraction."""
    return Node("fraction", (above, below), level=PRODUCT)


def held(node: Node, level: int = PRODUCT) -> Node:
    """Return a node, in brackets where it holds together less than `level`."""
    return fence(node) if node.level < level else node


def applied(function: Node, *arguments: Node) -> Node:
    """Return f(a, b)."""
    return row(function, fence(listed(arguments)))


def listed(parts: Iterable[Node], between: str = ",") -> Node:
    """Return nodes with a comma between."""
    found: list[Node] = []
    for part in parts:
        found += [operator(between), part] if found else [part]
    return row(*found)
