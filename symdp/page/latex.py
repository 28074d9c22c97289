r"""A document as LaTeX that plain pdflatex with amsmath compiles, its formulas broken to a page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from symdp.errors import InputError
from symdp.page import document as doc
from symdp.page.node import EMPTY, GREEK_NAMES, PAGE, Node, broken_case, is_wide, measure

_LEVELS = {2: "subsection*", 3: "subsection*", 4: "subsubsection*"}  # an author's numbers stay
_LETTERS = {letter: f"\\{word}" for letter, word in GREEK_NAMES.items()} | {
    "ε": r"\varepsilon", "φ": r"\varphi", "∞": r"\infty", "Φ̄": r"\bar{\Phi}", "ℓ": r"\ell",
}  # fmt: skip
_FUNCTIONS = {
    "log", "exp", "inf", "sup", "min", "max", "sinh", "cosh", "tanh", "coth", "sin", "cos",
}  # fmt: skip
_SIGNS = {
    "−": "-", "·": r"\cdot ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "≈": r"\approx ",
    "∈": r"\in ", "→": r"\to ", "‖": r"\|", "…": r"\dots ", "∫": r"\int", "∑": r"\sum",
    "∏": r"\prod", "′": "'", "″": "''", "‴": "'''", "d": r"\,\mathrm{d}", "∨": r"\lor ",
    ",": ",\\ ", ";": ";\\ ", "|": r"\vert ", "{": r"\{", "}": r"\}", "∼": r"\sim ",
    "√": r"\surd ", "∝": r"\propto ", "%": r"\%", "&": r"\&",
    "#": r"\#", "$": r"\$", "_": r"\_", "^": r"\hat{}", "~": r"\sim ", "\\": r"\backslash ",
}  # fmt: skip
_WORDS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "–": "--", "’": "'", "“": "``", "”": "''", "—": "---",
}  # fmt: skip
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₋₊ₙₜₖ", "0123456789-+ntk", strict=True))


def latex(node: Node) -> str:
    r"""Return a formula in LaTeX."""
    parts = [latex(part) for part in node.parts]
    match node.kind:
        case "row":
            return _joined(parts)
        case "root":
            return rf"\sqrt{{{parts[0]}}}"
        case "fraction" | "binomial":
            command = "frac" if node.kind == "fraction" else "binom"
            return rf"\{command}{{{parts[0]}}}{{{parts[1]}}}"
        case "script":
            base, below, above = node.parts
            is_whole = base.kind in {"name", "number", "operator", "fence"}
            written = parts[0] if is_whole else f"{{{parts[0]}}}"
            if below != EMPTY:
                written += f"_{{{parts[1]}}}"
            if above != EMPTY:
                primes = above.text if set(above.text) <= set("′″‴") else ""
                written += _SIGNS[primes] if primes else f"^{{{parts[2]}}}"
            return written
        case "fence":
            left, right = (_BRACKETS.get(end.text, end.text) for end in node.parts[::2])
            is_tall = any(n.kind in _TALL or n.text in ("∫", "∑", "∏") for n in node.walk())
            if is_tall:
                return rf"\left{left}{parts[1]}\right{right}"
            return left + parts[1] + right
        case "cases":
            is_tall = any(part.kind in _TALL for case in node.parts for part in case.walk())
            between = r" \\[1ex] " if is_tall else r" \\ "
            rows = between.join(_case(*case.parts) for case in node.parts)
            return rf"\begin{{cases}} {rows} \end{{cases}}"
        case "words":
            return rf"\text{{{latex_words(node.text)}}}"
        case "name":
            return _name(node.text)
        case "operator":
            return _SIGNS.get(node.text, node.text)
    return node.text.replace("…", r"\dots ")


_TALL = ("fraction", "binomial", "cases")
_BRACKETS = {"{": r"\{", "}": r"\}", "⌊": r"\lfloor ", "⌋": r"\rfloor "}


def _case(value: Node, condition: Node) -> str:
    first, *others = map(_displayed, broken_case(value, condition))
    words = latex(condition) if condition.kind == "words" else rf"\text{{if }} {latex(condition)}"
    return "".join([f"{first} & {words}", *(rf" \\ \quad {line} & " for line in others)])


def _displayed(value: Node) -> str:
    """Return a value with fractions of full size, as the rows of an align environment have them."""
    is_tall = any(part.kind in _TALL for part in value.walk())
    if is_tall:
        return rf"\displaystyle {latex(value)}"
    return latex(value)


def _joined(parts: list[str]) -> str:
    """Put a space where a command would run into a letter."""
    written = ""
    for before, part in zip(["", *parts], parts, strict=False):
        ends_in_command = before[-1:].isalpha() and "\\" in before
        written += f" {part}" if ends_in_command and part[:1].isalpha() else part
    return written


def _name(text: str) -> str:
    if text in _LETTERS or (len(text) == 1 and text.isascii()):
        return _LETTERS.get(text, text)
    if text in _FUNCTIONS:
        return rf"\{text}"
    return rf"\{'operatorname' if text.isascii() else 'text'}{{{latex_words(text)}}}"


def latex_words(text: str) -> str:
    r"""Return a text that LaTeX prints as it stands and never obeys, in ASCII.

    What is a formula in it, such as s²λ²/2 or r > κ₁, is set as one.
    """
    words = unicodedata.normalize("NFC", " ".join(text.split()))
    return " ".join(_pieces(words.split(" ")))


def _pieces(words: list[str]) -> Iterator[str]:
    """Yield the words of a text, those that make a formula as one."""
    start = 0
    while start < len(words):
        end = start
        while end < len(words) and _IN_FORMULA.fullmatch(words[end]):
            end += 1
            if words[end - 1][-1] in ",;:." and _is_balanced(words[start:end]):
                break
        run = " ".join(words[start:end])
        formula = _as_formula(run.rstrip(",;:."))
        yield (
            f"${formula}${run[len(run.rstrip(',;:.')) :]}"
            if formula
            else "".join(map(_letter, words[start]))
        )
        start = end if formula else start + 1


def _is_balanced(words: list[str]) -> bool:
    run = " ".join(words)
    pairs = all(run.count(a) == run.count(b) for a, b in ("()", "[]", "{}"))
    return pairs and run.count("|") % 2 == 0


def _as_formula(run: str) -> str:
    """Return a run of words in LaTeX where it is a formula, else nothing."""
    from symdp.page.formula import read

    if not _TELLING.search(run) or not _is_balanced([run]):
        return ""
    try:
        return latex(read(_NAMED_BELOW.sub(r"_“\1”", run))).strip()
    except (ValueError, IndexError, StopIteration):
        return ""


_NO_NAMES = "a|A|I|is|as|at|by|of|or|on|to|in|if|it|no|so|an|we|be|do|up|vs|EA|FA"
_ONE = r"(?:log|exp|inf|sup|min|max|Var|[A-Za-zα-ωΑ-ΩℓΦ]{1,2}(?![A-Za-z]))"
_IN_FORMULA = re.compile(
    rf"(?![(\[]*(?:{_NO_NAMES})\b)"
    rf"(?:{_ONE}|(?<=\b[A-Z])_[A-Za-z]{{3,}}|[0-9,()\[\]|/+−=<>≤≥≠≈∈∝→‖·√∞…^_²³⁰¹⁴ⁿ₀₁₂₃₄₊₋ₙₜ{{}}′″‴!])+[,;:.]*"
)
_NAMED_BELOW = re.compile(r"(?<=\b[A-Z])_([A-Za-z]{3,})")  # a name below a letter, as in P_Chernoff
_TELLING = re.compile(r"[_^ℓ∞√≤≥≠≈∈∝→‖²³ⁿ₀-₉ₙα-ωΦ′]|\w [+−=<>] ")


def _letter(sign: str) -> str:
    if sign in _WORDS:
        return _WORDS[sign]
    if sign.isascii():
        return sign
    if sign in _RAISED or sign in _LOWERED:
        if sign in _RAISED:
            return f"$^{{{_RAISED[sign]}}}$"
        return f"$_{{{_LOWERED[sign]}}}$"
    if sign in _LETTERS or sign in _SIGNS:
        return f"${(_LETTERS | _SIGNS)[sign]}$"
    if unicodedata.combining(sign):
        return ""
    decomposed = unicodedata.normalize("NFD", sign)
    base = decomposed[0]
    marks = decomposed[1:]
    accents = {"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"'}
    if base.isascii() and len(marks) == 1 and marks[0] in accents:
        return rf"\{accents[marks[0]]}{{{base}}}"
    if base.isascii():
        return base
    return "?"


def to_latex(page: doc.Document) -> str:
    """Return a section that a LaTeX document takes in by its input command."""
    return "".join([rf"\section{{{latex_words(page.title)}}}", *_parts(page.blocks)]) + "\n"


def latex_blocks(blocks: Iterable[doc.Block]) -> str:
    """Return blocks as a part of a LaTeX document, below no title."""
    return "".join(_parts(blocks)).strip("\n") + "\n"


def _parts(blocks: Iterable[doc.Block]) -> Iterator[str]:
    for block in blocks:
        yield "\n" if isinstance(block, doc.Formulas | doc.Legend) else "\n\n"
        yield _block(block)


def _block(block: doc.Block) -> str:
    match block:
        case doc.Heading(level, words):
            return rf"\{_LEVELS[level]}{{{latex_words(words)}}}"
        case doc.Sentence(words, _, answer):
            return latex_words(words + answer)
        case doc.Formulas(lines):
            return _aligned(lines)
        case doc.Legend(items):
            return f"Here {legend_in(items)}."
        case doc.Table():
            return _table(block)
        case doc.Listing(lines):
            listed = "\n".join(rf"  \item {latex_words(line)}" for line in lines)
            return f"\\begin{{itemize}}\n{listed}\n\\end{{itemize}}"
        case doc.Command(words):
            lines_set = r"\\".join(
                f"\n{''.join(map(_letter, line))}" for line in words.splitlines()
            )
            return f"\\begin{{flushleft}}\\ttfamily\\small{lines_set}\n\\end{{flushleft}}"
        case _:
            raise InputError(f"a {type(block).__name__.lower()} has no LaTeX form here")


def legend_in(items: Iterable[tuple[Node, str]], words: Callable[[str], str] | None = None) -> str:
    """Return a legend as one sentence, its symbols between dollars."""
    in_latex = latex_words if words is None else words
    return "; ".join(f"${latex(name)}$, {in_latex(meaning)}" for name, meaning in items)


def _table(table: doc.Table) -> str:
    columns = "".join("r" if k in table.numbers else "l" for k in range(len(table.head)))
    head, *body = (" & ".join(map(latex_words, row)) for row in (table.head, *table.rows))
    lines = "".join(f"{row} \\\\\n" for row in body)
    caption = f"{latex_words(table.caption)}\n\n" if table.caption else ""
    return f"{caption}\\begin{{tabular}}{{{columns}}}\n{head} \\\\ \\hline\n{lines}\\end{{tabular}}"


def latex_rows(line: doc.Line, width: float = PAGE) -> Iterator[str]:
    """Yield rows of an align environment whose right sides are broken to a width."""
    if line.left is None or line.right is None:
        return
    for depth, parts in line.rows(width, width):
        first, *others = map(latex, parts)
        if depth:
            yield " ".join([rf"&\{'q' * depth}uad", first, *others])
        else:
            yield f"{first} &{' '.join(others)}" if others else f"&{first}"


def display(line: doc.Line) -> str:
    """Return a formula with two sides between double dollars, on as many rows as it needs."""
    rows = list(latex_rows(line, line.room))
    if len(rows) == 1:
        return f"$${rows[0].replace(' &', ' ', 1)}$$"
    return f"$${aligned(rows)}$$"


def aligned(rows: Iterable[str]) -> str:
    """Return rows below one another, for a place between double dollars."""
    return "\n\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}\n"


def _aligned(lines: Iterable[doc.Line]) -> str:
    """Lines as words and one align environment; words behind its last row stand below it."""
    before: list[str] = []
    rows: list[str] = []
    behind: list[str] = []
    for sentence, formulas in _said(list(lines)):
        if sentence:
            (behind if rows else before).append(sentence)
        if formulas:
            between = [rf"\intertext{{{(chr(92) * 2 + ' ').join(behind)}}}"] if behind else []
            rows += [*between, *(rf"{row} \\" for row in formulas)]
            behind = []
    if rows:
        rows[-1] = rows[-1].removesuffix(r" \\")
        rows = [r"\begin{align*}", *rows, r"\end{align*}"]
    return "\n".join([*map(_paragraph, before), *rows, *map(_paragraph, behind)])


def _paragraph(words: str) -> str:
    return rf"{{\raggedright {words}\par}}"


def _said(lines: list[doc.Line]) -> Iterator[tuple[str, list[str]]]:
    """Yield words that come first, and rows of formulas below them."""
    lefts = [s.left for s in lines if s.left is not None and s.right is not None]
    width = PAGE - max((measure(left) for left in lefts if not is_wide(left)), default=0) - 3
    for line in lines:
        rows = list(latex_rows(line, width))
        words = latex_words(line.words)
        if not rows:
            name = f"${latex(line.left)}$: " if line.left is not None else ""
            yield f"{name}{words}", []
        elif len(rows) > 1 or (line.right and measure(line.right) + len(line.words) > width):
            yield words, rows
        else:
            yield "", [rf"{rows[0]} \quad \text{{{words}}}" if words else rows[0]]
