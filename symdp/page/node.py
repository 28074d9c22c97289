"""A formula as it is set, a tree of names, fractions, scripts, roots and brackets; as text, broken.

Text, LaTeX and MathML are written from this tree, so that each says the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

SUM, PRODUCT, ATOM = 1, 2, 3  # how tightly a node holds together


@dataclass(frozen=True)
class Node:
    """One part of a formula."""

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
    """Return a name: Greek letters as such, an index behind the first underscore."""
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


_ABOVE = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_BELOW = str.maketrans("0123456789−", "₀₁₂₃₄₅₆₇₈₉₋")
_DIGITS = re.compile(r"−?\d+")
_SPACED = ("+", "−", "=", "≈", "≤", "≥", "<", ">", "≠", "∈", "→", "∨", "‖", "|", "∼")
_ASCII = {
    "−": "-", "·": "*", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "∞": "oo", "√": "sqrt",
    "∫": "integral", "∑": "sum", "∏": "product", "∈": "in", "→": "->", "‖": "||", "∨": "or",
    "…": "...", "′": "'", "″": "''", "‴": "'''", "–": "-", "’": "'", "⋅": "*", "½": "1/2",
    "“": '"', "”": '"', "∼": "~", "×": "*", "Φ̄": "Phi_bar", "—": "-", "←": "<-", "↦": "->",
    "⌈": "ceil(", "⌉": ")", "⌊": "floor(", "⌋": ")", "‘": "'", "∂": "d", "ø": "o", "ł": "l",
    "ß": "ss", "─": "-", "│": "|", "█": "#", "▏": "|", "°": "deg", "±": "+-",
}  # fmt: skip
_FIGURES = str.maketrans("₀₁₂₃₄₅₆₇₈₉₋⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-" * 2)
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉₋]+")


def text(node: Node, ascii_only: bool = False) -> str:
    """Return a formula on one line."""
    return _Writer(ascii_only).write(node)


class _Writer:
    def __init__(self, ascii_only: bool) -> None:
        self.ascii_only = ascii_only

    def write(self, node: Node) -> str:
        match node.kind:
            case "row":
                return self._row(node)
            case "fraction":
                above, below = (self.write(part) for part in node.parts)
                if node.parts[0].level == SUM or node.parts[0].kind == "fraction":
                    above = f"({above})"
                return f"{above}/{self._closed(node.parts[1], below, ATOM)}"
            case "root":
                inside = self.write(node.parts[0])
                simple = () if self.ascii_only else ("name", "number", "script")
                is_simple = node.parts[0].kind in simple
                return self._sign("√") + (inside if is_simple else f"({inside})")
            case "script":
                return self._script(node)
            case "fence":
                left, inside, right = (self.write(part) for part in node.parts)
                return f"{left.strip()}{inside}{right.strip()}"
            case "cases":
                return "; ".join(
                    f"{self.write(c.parts[0])} if {self.write(c.parts[1])}" for c in node.parts
                )
            case "binomial":
                return f"C({self.write(node.parts[0])}, {self.write(node.parts[1])})"
            case "words":
                return transliterated(node.text) if self.ascii_only else node.text
        return self._sign(node.text)

    def _sign(self, sign: str) -> str:
        if not self.ascii_only:
            return sign
        return GREEK_NAMES.get(sign) or transliterated(sign)

    def _row(self, node: Node) -> str:
        found, before = "", None
        for part in node.parts:
            own = self.write(part)
            if part.kind == "operator":
                if part.text in (",", "d"):
                    own = ", " if part.text == "," else " d"
                elif part.text in "∫∑∏":
                    own = f"{own} "
                elif part.text in _SPACED and found[-1:] not in ("", " "):
                    own = f" {own} "
            elif before is not None:
                apart = "words" in (part.kind, before.kind) or _is_sign(before)
                apart = apart or (_is_long_name(before) and part.kind != "fence")
                if apart and not found.endswith((" ", "(", "[")):
                    found += " "
                elif self.ascii_only and node.level == PRODUCT and _is_factor(before):
                    found += "*"
            found, before = found + own, part
        return found

    def _closed(self, node: Node, written: str, level: int) -> str:
        return f"({written})" if node.level < level else written

    def _script(self, node: Node) -> str:
        base, below, above = node.parts
        found = self.write(base)
        for part, mark, figures in ((below, "_", _BELOW), (above, "^", _ABOVE)):
            if part.kind == "row" and not part.parts:
                continue
            own = self.write(part)
            plain = own.replace("-", "−")
            if part.text and set(part.text) <= set("′″‴∗*"):
                found += own
            elif plain in ("−", "+") and mark == "_" and not self.ascii_only:
                found += "₋" if plain == "−" else "₊"
            elif _DIGITS.fullmatch(plain) and not self.ascii_only:
                found += plain.translate(figures)
            elif (
                part.kind in {"name", "number"}
                or (part.kind == "words" and mark == "_")
                or part.kind == "fence"
            ):
                found += mark + own
            else:
                found += f"{mark}({own})"
        return found


def _is_factor(node: Node) -> bool:
    return node.kind not in {"operator", "words"} and not _is_sign(node)


def _is_long_name(node: Node) -> bool:
    return node.kind == "name" and len(node.text) > 1


def _is_sign(node: Node) -> bool:
    return node.kind == "script" and node.parts[0].kind == "operator"


def transliterated(words: str) -> str:
    """Return a text in ASCII: Greek letters by their names, signs as they are typed."""
    words = _RAISED.sub(lambda m: "^" + m.group().translate(_FIGURES), words)
    words = _LOWERED.sub(lambda m: "_" + m.group().translate(_FIGURES), words)
    for sign, own in _ASCII.items():
        words = words.replace(sign, own)
    words = "".join(GREEK_NAMES.get(letter, letter) for letter in words)
    plain = unicodedata.normalize("NFKD", words)
    return "".join(c if c.isascii() else "" if unicodedata.combining(c) else "?" for c in plain)


PAGE = 62  # widths of a letter in one line of an article
_WIDE_LEFT = 24  # of them
_OPEN, _CLOSE = {"(": r"\bigl(", "[": r"\bigl[", "|": r"\bigl|"}, {")": r"\bigr)", "]": r"\bigr]"}


def measure(node: Node) -> float:
    """Return about how wide a formula is, in widths of a letter."""
    widths = [measure(part) for part in node.parts]
    match node.kind:
        case "fraction":
            return max(widths) + 0.5
        case "script":
            return widths[0] + 0.7 * (
                widths[2] + widths[1] if node.parts[0].kind == "operator" else max(widths[1:])
            )
        case "root" | "fence":
            return sum(widths) + 1
        case "cases":
            each = [(measure(r.parts[0]), measure(r.parts[1])) for r in node.parts]
            return max(v for v, _ in each) + max(c for _, c in each) + 5
        case "operator":
            return 2.4 if node.text in "+−=≈≤≥<>≠∈→" else 1.0
        case "words":
            return 0.9 * len(node.text)
        case "binomial":
            return max(widths) + 2
    return sum(widths) if node.parts else float(len(node.text))


def is_wide(left: Node) -> bool:
    """Whether a left side leaves so little of the page that the right one begins below it."""
    return measure(left) > _WIDE_LEFT


def broken(node: Node, width: float = PAGE) -> list[Node]:
    """Return a formula as lines that fit, broken before a sign; the last signs of brackets stay.

    A fraction whose numerator is too wide becomes a factor 1/x, an exponential exp(…).
    """
    if measure(node) <= width or node.kind == "cases":
        return [node]
    lines: list[list[Node]] = [[]]
    used = 0.0
    parts = _flat(node, width)
    for place, part in enumerate(parts):
        own = measure(part)
        behind = parts[place + 1 : place + 1 + _until_sign(parts[place + 1 :])]
        upcoming = own + sum(map(measure, behind))
        may_break = part.kind == "operator" and part.text in "+−·" and lines[-1]
        if may_break and used + upcoming > width:
            lines.append([])
            used = 4.0
        lines[-1].append(part)
        used += own
    return [row(*line) for line in lines]


def _until_sign(parts: list[Node]) -> int:
    """How many parts stand before the next place for a break."""
    for count, part in enumerate(parts):
        if part.kind == "operator" and part.text in "+−·":
            return count
    return len(parts)


def _flat(node: Node, width: float) -> list[Node]:
    """The parts of a formula between which it may be broken."""
    if measure(node) <= width / 2:
        return [node]
    match node.kind:
        case "row":
            found: list[Node] = []
            for part in node.parts:
                own = _flat(part, width)
                kinds = {found[-1].kind, own[0].kind} if found else {"operator"}
                if node.level == PRODUCT and "operator" not in kinds:
                    found.append(operator("·"))
                found += own
            return found
        case "fence":
            left, inside, right = node.parts
            return [Node("operator", text=_OPEN.get(left.text, left.text)), *_flat(inside, width),
                    Node("operator", text=_CLOSE.get(right.text, right.text))]  # fmt: skip
        case "fraction":
            above, below = node.parts
            if measure(below) > width / 2:
                return [node]
            factors = _flat(fence(above) if above.level == SUM else above, width)
            return [fraction(number("1"), below), operator("·"), *factors]
        case "script":
            base, below, above = node.parts
            if below == EMPTY and base.text == "e":
                return [Node("name", text="exp"), *_flat(fence(above), width)]
    return [node]
