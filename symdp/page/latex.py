r"""Formulas as LaTeX that plain pdflatex with amsmath compiles, and lines that fit a page."""

from __future__ import annotations

import unicodedata

from symdp.page.node import (
    EMPTY,
    GREEK_NAMES,
    PRODUCT,
    SUM,
    Node,
    fence,
    fraction,
    number,
    operator,
    row,
)

_LETTERS = {letter: f"\\{word}" for letter, word in GREEK_NAMES.items()} | {
    "ε": r"\varepsilon", "φ": r"\varphi", "∞": r"\infty", "Φ̄": r"\bar{\Phi}", "ℓ": r"\ell",
}  # fmt: skip
_FUNCTIONS = {
    "log",
    "exp",
    "inf",
    "sup",
    "min",
    "max",
    "sinh",
    "cosh",
    "tanh",
    "coth",
    "sin",
    "cos",
}
_SIGNS = {
    "−": "-", "·": r"\cdot ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "≈": r"\approx ",
    "∈": r"\in ", "→": r"\to ", "‖": r"\|", "…": r"\dots ", "∫": r"\int", "∑": r"\sum",
    "∏": r"\prod", "′": "'", "″": "''", "‴": "'''", "d": r"\,\mathrm{d}", "∨": r"\lor ",
    ",": ",\\ ", "|": r"\vert ", "{": r"\{", "}": r"\}", "∼": r"\sim ", "%": r"\%", "&": r"\&",
    "#": r"\#", "$": r"\$", "_": r"\_", "^": r"\hat{}", "~": r"\sim ", "\\": r"\backslash ",
}  # fmt: skip
_WORDS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "–": "--", "’": "'", "“": "``", "”": "''", "—": "---",
}  # fmt: skip
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₋", "0123456789-", strict=True))
PAGE = 62  # widths of a letter in one line of an article
_LEAST_LEFT = 12  # of them for a left side, a brace and the words of a condition
_OPEN, _CLOSE = {"(": r"\bigl(", "[": r"\bigl[", "|": r"\bigl|"}, {")": r"\bigr)", "]": r"\bigr]"}


def latex(node: Node) -> str:
    r"""Return a formula in LaTeX.

    Examples
    --------
    >>> import sympy as sp
    >>> from symdp.page.layout import layout
    >>> latex(layout(sp.sqrt(sp.Symbol("epsilon", positive=True)) / 2))
    '\\frac{\\sqrt{\\varepsilon}}{2}'
    """
    match node.kind:
        case "row":
            return "".join(_joined([latex(part) for part in node.parts]))
        case "fraction":
            return rf"\frac{{{latex(node.parts[0])}}}{{{latex(node.parts[1])}}}"
        case "root":
            return rf"\sqrt{{{latex(node.parts[0])}}}"
        case "binomial":
            return rf"\binom{{{latex(node.parts[0])}}}{{{latex(node.parts[1])}}}"
        case "script":
            base, below, above = node.parts
            found = latex(base)
            if base.kind not in {"name", "number", "operator", "fence"}:
                found = f"{{{found}}}"
            if below != EMPTY:
                found += f"_{{{latex(below)}}}"
            if above != EMPTY:
                primes = above.text if set(above.text) <= set("′″‴") else ""
                found += _SIGNS[primes] if primes else f"^{{{latex(above)}}}"
            return found
        case "fence":
            left, inside, right = node.parts
            return rf"\left{_bracket(left)}{latex(inside)}\right{_bracket(right)}"
        case "cases":
            rows = r" \\ ".join(_case(*case.parts) for case in node.parts)
            return rf"\begin{{cases}} {rows} \end{{cases}}"
        case "words":
            return rf"\text{{{latex_words(node.text)}}}"
        case "name":
            return _name(node.text)
        case "operator":
            return _SIGNS.get(node.text, node.text)
    return node.text


def _case(value: Node, condition: Node) -> str:
    first, *others = broken(value, PAGE - _LEAST_LEFT - measure(condition))
    more = "".join(rf" \\ \quad {latex(line)} & " for line in others)
    return f"{latex(first)} & {_condition(condition)}{more}"


def _condition(node: Node) -> str:
    return latex(node) if node.kind == "words" else rf"\text{{if }} {latex(node)}"


def _bracket(node: Node) -> str:
    return {"{": r"\{", "}": r"\}", "|": "|", "⌊": r"\lfloor ", "⌋": r"\rfloor "}.get(
        node.text, node.text
    )


def _joined(parts: list[str]) -> list[str]:
    """Put a space where a command would run into a letter."""
    found: list[str] = []
    for part in parts:
        ends_in_command = found and found[-1][-1:].isalpha() and "\\" in found[-1]
        found.append(f" {part}" if ends_in_command and part[:1].isalpha() else part)
    return found


def _name(text: str) -> str:
    if text in _LETTERS:
        return _LETTERS[text]
    if len(text) == 1 and text.isascii():
        return text
    if text in _FUNCTIONS:
        return rf"\{text}"
    return (
        rf"\operatorname{{{latex_words(text)}}}"
        if text.isascii()
        else rf"\text{{{latex_words(text)}}}"
    )


def latex_words(text: str) -> str:
    r"""Return a text that LaTeX prints as it stands and never obeys, in ASCII.

    >>> latex_words(r"100% of \input{x}: ε² ≤ 1")
    '100\\% of \\textbackslash{}input\\{x\\}: $\\varepsilon$$^{2}$ $\\le $ 1'
    """
    return "".join(_letter(sign) for sign in unicodedata.normalize("NFC", " ".join(text.split())))


def _letter(sign: str) -> str:
    if sign in _WORDS:
        return _WORDS[sign]
    if sign.isascii():
        return sign
    if sign in _RAISED or sign in _LOWERED:
        return f"$^{{{_RAISED[sign]}}}$" if sign in _RAISED else f"$_{{{_LOWERED[sign]}}}$"
    if sign in _LETTERS or sign in _SIGNS:
        return f"${(_LETTERS | _SIGNS)[sign]}$"
    if unicodedata.combining(sign):
        return ""
    decomposed = unicodedata.normalize("NFD", sign)
    base, marks = decomposed[0], decomposed[1:]
    accents = {"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"'}
    if base.isascii() and len(marks) == 1 and marks[0] in accents:
        return rf"\{accents[marks[0]]}{{{base}}}"
    return base if base.isascii() else "?"


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


def broken(node: Node, width: float = PAGE) -> list[Node]:
    """Return a formula as lines that fit, broken before a sign; the last signs of brackets stay.

    A fraction whose numerator is too wide becomes a factor 1/x, an exponential exp(…).

    Examples
    --------
    >>> import sympy as sp
    >>> from symdp.page.layout import layout
    >>> len(broken(layout(sum(sp.Symbol(f"a_{k}") for k in range(40))), 30))
    8
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
