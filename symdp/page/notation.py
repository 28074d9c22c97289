"""Formulas written by hand in Unicode, as a tree: “e^{F₀}/√(2πF₂)·(1 + c₁)”."""

from __future__ import annotations

import re
from collections.abc import Iterator

import sympy as sp

from symdp.page.layout import layout
from symdp.page.node import (
    ATOM,
    EMPTY,
    PRODUCT,
    SUM,
    Node,
    fence,
    fraction,
    name,
    number,
    operator,
    row,
    script,
    words,
)

_TOKEN = re.compile(
    r"“(?P<words>[^”]*)”|(?P<number>\d+(?:\.\d+)?)|(?P<above>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+|[′″‴]|⁽\w+⁾)"
    r"|(?P<below>[₀₁₂₃₄₅₆₇₈₉₋₊]+|[ₖₙₜₓⱼᵣₚₛₐ])|(?P<hole>\{\})"
    r"|(?P<name>MSD|He|log|exp|inf|sup|min|max|lim|[A-Za-zα-ωΑ-ΩℓΦ∞]̄?)|(?P<sign>\S)"
)
_FIGURES = str.maketrans("₀₁₂₃₄₅₆₇₈₉₋₊⁰¹²³⁴⁵⁶⁷⁸⁹⁻ₖₙₜₓⱼᵣₚₛₐ", "0123456789−+0123456789−kntxjrpsa")
_PAIRS = {"(": ")", "[": "]", "{": "}", "|": "|", "⌊": "⌋"}
_SUMS = set("+−±=≈≤≥<>≠,∈→‖;:∼…")


def read(formula: str, *holes: sp.Basic | Node) -> Node:
    """Return a formula as a tree; each {} in it is the next of `holes`.

    Juxtaposed names are a product; “words” stand in quotation marks, and {…} groups.

    Raises
    ------
    ValueError
        For a bracket that is not closed, which is a mistake of ours.

    Examples
    --------
    >>> from symdp.page.plain_text import text
    >>> text(read("c₁ = (3ρ₄ − 5ρ₃²)/24"))
    'c₁ = (3ρ₄ − 5ρ₃²)/24'
    >>> text(read("P(ℓ = {})", sp.Symbol("x") / 2))
    'P(ℓ = x/2)'
    """
    nodes = iter([hole if isinstance(hole, Node) else layout(hole) for hole in holes])
    reader = _Reader(formula, nodes)
    found = reader.row("")
    if reader.place < len(reader.tokens):
        raise ValueError(f"a bracket too many: {formula}")
    return found


class _Reader:
    def __init__(self, formula: str, holes: Iterator[Node]) -> None:
        self.tokens = [
            (str(m.lastgroup), m.group(str(m.lastgroup))) for m in _TOKEN.finditer(formula)
        ]
        self.place, self.holes, self.formula = 0, holes, formula

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
        return row(*parts, level=SUM if is_sum else parts[0].level if len(parts) == 1 else ATOM)

    def _product(self, factors: list[Node]) -> list[Node]:
        if len(factors) > 1:
            return [row(*factors, level=PRODUCT)]
        return factors

    def atom(self) -> Node:
        kind, text = self.tokens[self.place]
        self.place += 1
        if kind == "words":
            found = words(text)
        elif kind == "hole":
            found = next(self.holes)
        elif kind == "number":
            found = number(text)
        elif kind == "name":
            found = Node("name", text=text)
        elif text == "√":
            return Node("root", (_bare([self.atom()]),))
        elif text in _PAIRS:
            inside = self.row(_PAIRS[text])
            self.place += 1
            found = inside if text == "{" else fence(inside, text, _PAIRS[text])
        else:
            found = operator(text)
        found = self._scripts(found)
        if kind == "name" and self.place < len(self.tokens):
            following = self.tokens[self.place][1]
            if following in ("(", "["):  # f(x); a product with a sum is written with a dot
                self.place += 1
                inside = self.row(_PAIRS[following])
                self.place += 1
                found = self._scripts(row(found, fence(inside, following, _PAIRS[following])))
        return found

    def _scripts(self, base: Node) -> Node:
        while self.place < len(self.tokens):
            kind, text = self.tokens[self.place]
            if kind == "below":
                base = script(base, _small(text))
            elif kind == "above":
                base = script(base, EMPTY, _small(text))
            elif kind == "sign" and text in "_^":
                self.place += 1
                inside = self.atom_alone()
                base = script(base, inside) if text == "_" else script(base, EMPTY, inside)
                continue
            else:
                break
            self.place += 1
        return base

    def atom_alone(self) -> Node:
        """Read one name, number or group without what stands above or below it."""
        kind, text = self.tokens[self.place]
        self.place += 1
        if kind == "sign" and text in "{(":
            inside = self.row(_PAIRS[text])
            self.place += 1
            return inside
        if kind == "hole":
            return next(self.holes)
        if kind == "words":
            return words(text)
        return number(text) if kind == "number" else Node("name", text=text)


def _small(text: str) -> Node:
    if text[0] == "⁽":
        return fence(name(text[1:-1]))
    if text in "′″‴":
        return operator(text)
    plain = text.translate(_FIGURES)
    if plain[0] in "−+":
        return row(operator(plain[0]), *([number(plain[1:])] if plain[1:] else []))
    return number(plain) if plain.isdigit() else Node("name", text=plain)


def _bare(parts: list[Node]) -> Node:
    """Return a product without brackets around all of it."""
    found = row(*parts)
    is_round = found.kind == "fence" and found.parts[0].text == "("
    return found.parts[1] if is_round else found
