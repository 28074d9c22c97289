"""Formulas as text on one line, in Unicode as people write them, or in ASCII; and broken lines."""

from __future__ import annotations

import re
import unicodedata

from symdp.page.node import ATOM, GREEK_NAMES, PRODUCT, SUM, Node

WIDTH = 100  # columns of a text, which fit a terminal and a page
_INDENT = "      "  # of the lines that go on
_FIRST_BREAK = 0.4  # of the width: a line is not broken before, lest it be all indent
# Before a sum's next term or a factor, or after a comma.
_BREAKS = re.compile(r" (?=[+\-−] )|(?<=\S)(?=[·*](?!\*))|(?<=,) |(?= if )")
_ABOVE = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_BELOW = str.maketrans("0123456789−", "₀₁₂₃₄₅₆₇₈₉₋")
_DIGITS = re.compile(r"−?\d+")
_SPACED = ("+", "−", "=", "≈", "≤", "≥", "<", ">", "≠", "∈", "→", "∨", "‖", "|", "∼")
_ASCII = {
    "−": "-", "·": "*", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "∞": "oo", "√": "sqrt",
    "∫": "integral", "∑": "sum", "∏": "product", "∈": "in", "→": "->", "‖": "||", "∨": "or",
    "…": "...", "′": "'", "″": "''", "‴": "'''", "–": "-", "’": "'", "⋅": "*", "½": "1/2",
    "“": '"', "”": '"', "∼": "~", "×": "*", "Φ̄": "Phi_bar",
}  # fmt: skip
_FIGURES = str.maketrans("₀₁₂₃₄₅₆₇₈₉₋⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-" * 2)
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉₋]+")


def text(node: Node, ascii_only: bool = False) -> str:
    """Return a formula on one line.

    Parameters
    ----------
    node : what `symdp.page.layout` gave
    ascii_only : whether letters and signs are spelled, and every product has its sign

    Examples
    --------
    >>> import sympy as sp
    >>> from symdp.page.layout import layout
    >>> s, x = sp.symbols("sigma x", positive=True)
    >>> text(layout(sp.exp(-(x**2) / 2) / (s * sp.sqrt(2 * sp.pi))))
    'e^(−x²/2)/(σ√(2π))'
    >>> text(layout(3 * x / s**2), ascii_only=True)
    '3*x/sigma^2'
    """
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
    """Return a text in ASCII: Greek letters by their names, signs as they are typed.

    Examples
    --------
    >>> transliterated("δ ≤ ε², K″(t)")
    "delta <= epsilon^2, K''(t)"
    """
    words = _RAISED.sub(lambda m: "^" + m.group().translate(_FIGURES), words)
    words = _LOWERED.sub(lambda m: "_" + m.group().translate(_FIGURES), words)
    for sign, own in _ASCII.items():
        words = words.replace(sign, own)
    words = "".join(GREEK_NAMES.get(letter, letter) for letter in words)
    plain = unicodedata.normalize("NFKD", words)
    return "".join(c if c.isascii() else "" if unicodedata.combining(c) else "?" for c in plain)


def wrapped(line: str, width: int = WIDTH, indent: str = _INDENT) -> str:
    """Return a line on as many lines as it needs; joined again it is the same formula.

    Examples
    --------
    >>> print(wrapped("  f = a*(b + c) + d*(e + f)", 18))
      f = a*(b + c)
          + d*(e + f)
    """
    found: list[str] = []
    rest = line
    while len(rest) > width:
        place = _best_break(rest, width, len(indent))
        if place is None:
            break
        found.append(rest[:place].rstrip())
        rest = indent + rest[place:].lstrip()
    return "\n".join([*found, rest])


def _best_break(line: str, width: int, indent: int) -> int | None:
    """Return the last place within the width at which the fewest brackets are open."""
    depths, depth = [], 0
    for sign in line:
        depth += (sign == "(") - (sign == ")")
        depths.append(depth)
    least = max(int(_FIRST_BREAK * width), indent + 1)
    places = [m.start() for m in _BREAKS.finditer(line) if least <= m.start() <= width]
    if not places:  # of a sentence, between words
        words = [k for k in range(least, width + 1) if line[k] == " "]
        if words:
            return words[-1]
        after = (m.start() for m in _BREAKS.finditer(line) if m.start() > indent + 1)
        return next((p for p in after), None)
    return min(places, key=lambda place: (depths[place - 1], -place))
