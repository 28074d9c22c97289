"""A formula as it is set, a tree of names, fractions, scripts, roots and brackets; as text, broken.

Text, LaTeX and MathML are written from this tree, so that each says the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# how tightly a node holds together
SUM = 1
PRODUCT = 2
ATOM = 3


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
    base_node = Node("name", text=_GREEK.get(base, base))
    if not index:
        return base_node
    if index.isdigit():
        return script(base_node, number(index))
    index_node = Node("name", text=_GREEK.get(index, index))
    return script(base_node, index_node)


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
    if len(parts) == 1:
        return parts[0]
    return Node("row", parts, level=level)


def script(base: Node, below: Node = EMPTY, above: Node = EMPTY) -> Node:
    """Return a base with an index and an exponent; two of one base stand above each other."""
    if base.kind == "script":
        inner, low, high = base.parts
        if EMPTY in (low, below) and EMPTY in (high, above):
            base = inner
            if low != EMPTY:
                below = low
            if high != EMPTY:
                above = high
    return Node("script", (base, below, above))


def fence(inside: Node, left: str = "(", right: str = ")") -> Node:
    """Return a node in brackets."""
    return Node("fence", (operator(left), inside, operator(right)))


def fraction(above: Node, below: Node) -> Node:
    """Return a fraction."""
    return Node("fraction", (above, below), level=PRODUCT)


def held(node: Node, level: int = PRODUCT) -> Node:
    """Return a node, in brackets where it holds together less than `level`."""
    if node.level < level:
        return fence(node)
    return node


def applied(function: Node, *arguments: Node) -> Node:
    """Return f(a, b)."""
    return row(function, fence(listed(arguments)))


def listed(parts: Iterable[Node], between: str = ",") -> Node:
    """Return nodes with a comma between."""
    nodes: list[Node] = []
    for part in parts:
        if nodes:
            nodes.append(operator(between))
        nodes.append(part)
    return row(*nodes)


_ABOVE = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_BELOW = str.maketrans("0123456789−+", "₀₁₂₃₄₅₆₇₈₉₋₊")
_SPACED = ("+", "−", "=", "≈", "≤", "≥", "<", ">", "≠", "∈", "→", "∨", "‖", "|", "∼")
_ASCII = {
    "−": "-", "·": "*", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "∞": "oo", "√": "sqrt",
    "∫": "integral", "∑": "sum", "∏": "product", "∈": "in", "→": "->", "‖": "||", "∨": "or",
    "…": "...", "′": "'", "″": "''", "‴": "'''", "–": "-", "’": "'", "⋅": "*", "½": "1/2",
    "“": '"', "”": '"', "∼": "~", "×": "*", "Φ̄": "Phi_bar", "—": "-", "←": "<-", "↦": "->",
    "⌈": "ceil(", "⌉": ")", "⌊": "floor(", "⌋": ")", "‘": "'", "∂": "d", "ø": "o", "ł": "l",
    "ß": "ss", "ℤ": "Z", "─": "-", "│": "|", "█": "#", "▏": "|", "°": "deg", "±": "+-",
}  # fmt: skip
_FIGURES = str.maketrans("₀₁₂₃₄₅₆₇₈₉₋⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-" * 2)
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉₋]+")


def text(node: Node, ascii_only: bool = False) -> str:
    """Return a formula on one line."""
    parts = [text(part, ascii_only) for part in node.parts]
    match node.kind:
        case "row":
            return _row(node, parts, ascii_only)
        case "fraction":
            above, below = node.parts
            is_whole = above.level != SUM and above.kind != "fraction"
            is_whole &= all(part.text != "d" or part.kind != "operator" for part in above.walk())
            return f"{_closed(parts[0], is_whole)}/{_closed(parts[1], below.level == ATOM)}"
        case "root" if ascii_only:
            return f"sqrt({parts[0]})"
        case "root":
            is_whole = node.parts[0].kind in ("name", "number", "script")
            return "√" + _closed(parts[0], is_whole)
        case "script":
            return _script(node, parts, ascii_only)
        case "fence":
            left, inside, right = parts
            return f"{left.strip()}{inside}{right.strip()}"
        case "cases":
            rows = ([text(part, ascii_only) for part in case.parts] for case in node.parts)
            return "; ".join(f"{value} if {condition}" for value, condition in rows)
        case "binomial":
            return f"C({parts[0]}, {parts[1]})"
    if ascii_only:
        return transliterated(node.text)
    return node.text


def _closed(written: str, is_whole: bool) -> str:
    if is_whole:
        return written
    return f"({written})"


def _row(node: Node, written: list[str], ascii_only: bool) -> str:
    line = ""
    before = None
    is_spaced = False
    for part, piece in zip(node.parts, written, strict=True):
        if part.kind == "operator":
            is_spaced = part.text in _SPACED and line[-1:] not in ("", " ")
            if part.text == "d" or is_spaced:
                line += " "
        elif before is not None:
            is_sign = before.kind == "script" and before.parts[0].kind == "operator"
            is_long_name = before.kind == "name" and len(before.text) > 1
            apart = is_sign or (is_long_name and part.kind != "fence")
            is_factor = not is_sign and before.kind not in {"operator", "words"}
            if "words" in (part.kind, before.kind) or apart:
                if not line.endswith((" ", "(", "[")):
                    line += " "
            elif ascii_only and node.level == PRODUCT and is_factor:
                line += "*"
        line = line + piece
        before = part
        if part.kind == "operator" and (part.text in ",;∫∑∏" or is_spaced):
            line += " "
    return line


def _script(node: Node, written: list[str], ascii_only: bool) -> str:
    line = written[0]
    whole = {"name", "number", "fence"}
    for part, piece, mark, small, figures, whole_kinds in (
        (node.parts[1], written[1], "_", r"−?\d+|[−+]", _BELOW, whole | {"words"}),
        (node.parts[2], written[2], "^", r"−?\d+", _ABOVE, whole),
    ):
        plain = piece.replace("-", "−")
        if part == EMPTY:
            continue
        if part.text and set(part.text) <= set("′″‴∗*"):
            line += piece
        elif re.fullmatch(small, plain) and not ascii_only:
            line += plain.translate(figures)
        else:
            line += mark + _closed(piece, part.kind in whole_kinds)
    return line


def transliterated(words: str) -> str:
    """Return a text in ASCII: Greek letters by their names, signs as they are typed."""
    words = _RAISED.sub(lambda m: "^" + m.group().translate(_FIGURES), words)
    words = _LOWERED.sub(lambda m: "_" + m.group().translate(_FIGURES), words)
    for sign, letters in _ASCII.items():
        words = words.replace(sign, letters)
    words = "".join(GREEK_NAMES.get(letter, letter) for letter in words)
    plain = unicodedata.normalize("NFKD", words)
    letters_alone = "".join(sign for sign in plain if not unicodedata.combining(sign))
    return letters_alone.encode("ascii", "replace").decode("ascii")


_GREEK_WORD = re.compile(rf"\b({'|'.join(_GREEK)})(_\w+)?\b(?! (?:function|law|noise))")
_IN_SYMPY = (  # what SymPy writes and what people write
    (r"\boo\b", "∞"), (r" >= ", " ≥ "), (r" <= ", " ≤ "),
    (r"(?<!\w)-(?=[\w∞(])", "−"), (r" - ", " − "), (r"sqrt\((\w+)\)", r"√\1"),
    (r"\bsqrt\(", "√("), (r"\*\*", "^"), (r"(?<=[\w)])\*(?=[\w(])", "·"),
)  # fmt: skip


def in_words(sentence: str) -> str:
    """Return a sentence with the formulas that SymPy wrote into it as people write them."""
    words = _GREEK_WORD.sub(lambda m: text(name(m.group())), sentence)
    words = re.sub(r"\*\*(\d+)", lambda m: m.group(1).translate(_ABOVE), words)
    for pattern, sign in _IN_SYMPY:
        words = re.sub(pattern, sign, words)
    return words


PAGE = 62  # widths of a letter in one line of an article
_WIDE_LEFT = 24  # of them
_LEAST_VALUE = 20  # of them for the values of cases
_LEAST_LEFT = 12  # of them for a left side, a brace and the words of a condition
_OPEN = {"(": r"\bigl(", "[": r"\bigl[", "|": r"\bigl|"}
_CLOSE = {")": r"\bigr)", "]": r"\bigr]"}


def measure(node: Node, in_line: bool = False) -> float:
    """Return about how wide a formula is, in widths of a letter; in exponents fractions are a/b."""
    widths = [measure(part, in_line) for part in node.parts]
    match node.kind:
        case "fraction" if in_line:
            brackets = 2 * (node.parts[0].level == SUM) + 2 * (node.parts[1].level != ATOM)
            return sum(widths) + 1 + brackets
        case "fraction":
            return max(widths) + 0.5
        case "script":
            base, *_ = widths
            below, above = (measure(part, in_line=True) for part in node.parts[1:])
            if node.parts[0].kind == "operator":
                return base + 0.7 * (above + below)
            return base + 0.7 * max(below, above)
        case "root" | "fence":
            return sum(widths) + 1
        case "cases":
            value_width = max(measure(case.parts[0]) for case in node.parts)
            return value_width + _width_of_conditions(node) + 5
        case "operator":
            if node.text in "+−=≈≤≥<>≠∈→":
                return 2.4
            return 1.0
        case "words":
            return 0.9 * len(node.text)
        case "binomial":
            return max(widths) + 2
    if node.parts:
        return sum(widths)
    return float(len(node.text))


def is_wide(left: Node) -> bool:
    """Whether a left side leaves so little of the page that the right one begins below it."""
    return measure(left) > _WIDE_LEFT


def broken(node: Node, width: float = PAGE) -> list[Node]:
    """Return a formula as lines that fit, broken before a sign; the last signs of brackets stay.

    A fraction whose numerator is too wide becomes a factor 1/x, an exponential exp(…).
    """
    if measure(node) <= width or node.kind == "cases":
        return [node]
    chunks: list[list[Node]] = [[]]
    for part in _flat(node, width):
        if part.kind == "operator" and part.text in "+−·":
            chunks.append([])
        chunks[-1].append(part)
    lines = [chunks[0]]
    used = sum(map(measure, chunks[0]))
    for chunk in chunks[1:]:
        width_of_chunk = sum(map(measure, chunk))
        if lines[-1] and used + width_of_chunk > width:
            lines.append([])
            used = 4.0
        lines[-1] += chunk
        used += width_of_chunk
    return [row(*line) for line in lines]


def width_of_cases(node: Node) -> float:
    """Return the width that is left to values between a left side and the widest condition."""
    return max(_LEAST_VALUE, PAGE - _LEAST_LEFT - _width_of_conditions(node))


def _width_of_conditions(node: Node) -> float:
    return max(measure(case.parts[1], in_line=True) for case in node.parts)


def _joint(node: Node) -> str:
    """The kind of what stands before another; ∑ with its limits is an operator."""
    if node.kind == "script":
        return node.parts[0].kind
    return node.kind


def _leading_factors(numerator: Node) -> tuple[Node, Node]:
    """Return the letters and numbers at the front of a product, 1 without any, and the rest."""
    count = 0
    if numerator.level == PRODUCT and numerator.kind == "row":
        for part in numerator.parts[:-1]:
            if _joint(part) not in ("number", "name", "root") or measure(part) > _LEAST_LEFT:
                break
            count += 1
    if not count:
        return number("1"), numerator
    kept = row(*numerator.parts[:count], level=PRODUCT)
    others = numerator.parts[count:]
    if others[0].text == "·":
        others = others[1:]
    return kept, row(*others, level=PRODUCT)


def _flat(node: Node, width: float) -> list[Node]:
    """The parts of a formula between which it may be broken."""
    if measure(node) <= width / 2:
        return [node]
    match node.kind:
        case "row":
            parts: list[Node] = []
            for part in node.parts:
                inner = _flat(part, width)
                if node.level == PRODUCT and parts:
                    kinds = {_joint(parts[-1]), inner[0].kind}
                    if "operator" not in kinds:
                        parts.append(operator("·"))
                parts += inner
            return parts
        case "fence":
            left, inside, right = node.parts
            opening = operator(_OPEN.get(left.text, left.text))
            closing = operator(_CLOSE.get(right.text, right.text))
            return [opening, *_flat(inside, width), closing]
        case "fraction":
            above, below = node.parts
            if measure(below) > PAGE / 2:
                return [node]
            if above.level == SUM:
                above = fence(above)
            kept, others = _leading_factors(above)
            factors = _flat(others, width)
            return [fraction(kept, below), operator("·"), *factors]
        case "script":
            base, below, above = node.parts
            if below == EMPTY and base.text == "e":
                return [Node("name", text="exp"), *_flat(fence(above), width)]
    return [node]
