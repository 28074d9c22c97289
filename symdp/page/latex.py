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
        case "fraction":
            return rf"\frac{{{parts[0]}}}{{{parts[1]}}}"
        case "binomial":
            return rf"\binom{{{parts[0]}}}{{{parts[1]}}}"
        case "script":
            return _script(node, parts)
        case "fence":
            left, right = (_BRACKETS.get(end.text, end.text) for end in node.parts[::2])
            is_tall = any(n.kind in _TALL or n.text in ("∫", "∑", "∏") for n in node.walk())
            if is_tall:
                return rf"\left{left}{parts[1]}\right{right}"
            return left + parts[1] + right
        case "cases":
            between = r" \\ "
            if any(map(_is_tall, node.parts)):
                between = r" \\[1ex] "
            rows = between.join(_case(*case.parts) for case in node.parts)
            return rf"\begin{{cases}} {rows} \end{{cases}}"
        case "words":
            return rf"\text{{{latex_words(node.text)}}}"
        case "name":
            return _name(node.text)
        case "operator":
            return _SIGNS.get(node.text, node.text)
    return node.text.replace("…", r"\dots ")


def _script(node: Node, written: list[str]) -> str:
    base, below, above = node.parts
    base_latex, below_latex, above_latex = written
    if base.kind not in {"name", "number", "operator", "fence"}:
        base_latex = f"{{{base_latex}}}"
    if below != EMPTY:
        base_latex += f"_{{{below_latex}}}"
    if above == EMPTY:
        return base_latex
    if above.text and set(above.text) <= set("′″‴"):
        return base_latex + _SIGNS[above.text]
    return f"{base_latex}^{{{above_latex}}}"


_TALL = ("fraction", "binomial", "cases")
_BRACKETS = {"{": r"\{", "}": r"\}", "⌊": r"\lfloor ", "⌋": r"\rfloor "}


def _case(value: Node, condition: Node) -> str:
    first, *others = map(_displayed, broken_case(value, condition))
    words = latex(condition)
    if condition.kind != "words":
        words = rf"\text{{if }} {words}"
    further_rows = [rf" \\ \quad {line} & " for line in others]
    return "".join([f"{first} & {words}", *further_rows])


def _is_tall(node: Node) -> bool:
    return any(part.kind in _TALL for part in node.walk())


def _displayed(value: Node) -> str:
    """Return a value with fractions of full size, as the rows of an align environment have them."""
    if _is_tall(value):
        return rf"\displaystyle {latex(value)}"
    return latex(value)


def _joined(parts: list[str]) -> str:
    """Put a space where a command would run into a letter."""
    written = ""
    for before, part in zip(["", *parts], parts, strict=False):
        ends_in_command = before[-1:].isalpha() and "\\" in before
        if ends_in_command and part[:1].isalpha():
            written += " "
        written += part
    return written


def _name(text: str) -> str:
    if text in _LETTERS or (len(text) == 1 and text.isascii()):
        return _LETTERS.get(text, text)
    if text in _FUNCTIONS:
        return rf"\{text}"
    words = latex_words(text)
    if text.isascii():
        return rf"\operatorname{{{words}}}"
    return rf"\text{{{words}}}"


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
        bare_run = run.rstrip(",;:.")
        formula = _as_formula(bare_run)
        if formula:
            punctuation = run[len(bare_run) :]
            yield f"${formula}${punctuation}"
            start = end
        else:
            yield "".join(map(_letter, words[start]))
            start += 1


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
        yield "\n"
        if not isinstance(block, doc.Formulas | doc.Legend):
            yield "\n"
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


def legend_in(items: Iterable[tuple[Node, str]], words: Callable[[str], str] = latex_words) -> str:
    """Return a legend as one sentence, its symbols between dollars."""
    return "; ".join(f"${latex(name)}$, {words(meaning)}" for name, meaning in items)


def _table(table: doc.Table) -> str:
    alignment = ""
    for index in range(len(table.head)):
        if index in table.numbers:
            alignment += "r"
        else:
            alignment += "l"
    head, *body = (" & ".join(map(latex_words, row)) for row in (table.head, *table.rows))
    lines = "".join(f"{row} \\\\\n" for row in body)
    caption = ""
    if table.caption:
        caption = f"{latex_words(table.caption)}\n\n"

    return (
        f"{caption}\\begin{{tabular}}{{{alignment}}}\n{head} \\\\ \\hline\n{lines}\\end{{tabular}}"
    )


def latex_rows(line: doc.Line, width: float = PAGE) -> Iterator[str]:
    """Yield rows of an align environment whose right sides are broken to a width."""
    if line.left is None or line.right is None:
        return
    for depth, parts in line.rows(width, width):
        first, *others = map(latex, parts)
        if depth:
            yield " ".join([rf"&\{'q' * depth}uad", first, *others])
        elif others:
            yield f"{first} &{' '.join(others)}"
        else:
            yield f"&{first}"


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
        if sentence and rows:
            behind.append(sentence)
        elif sentence:
            before.append(sentence)
        if formulas and behind:
            sentences = "\\\\ ".join(behind)
            rows.append(rf"\intertext{{{sentences}}}")
            behind = []
        rows += [rf"{row} \\" for row in formulas]
    if rows:
        rows[-1] = rows[-1].removesuffix(r" \\")
        rows = [r"\begin{align*}", *rows, r"\end{align*}"]
    return "\n".join([*map(_paragraph, before), *rows, *map(_paragraph, behind)])


def _paragraph(words: str) -> str:
    return rf"{{\raggedright {words}\par}}"


def _said(lines: list[doc.Line]) -> Iterator[tuple[str, list[str]]]:
    """Yield words that come first, and rows of formulas below them."""
    lefts = [s.left for s in lines if s.left is not None and s.right is not None]
    widths = (measure(left) for left in lefts if not is_wide(left))
    width = PAGE - max(widths, default=0) - 3
    for line in lines:
        rows = list(latex_rows(line, width))
        words = latex_words(line.words)
        if not rows and line.left is None:
            yield words, []
        elif not rows and line.left is not None:
            yield f"${latex(line.left)}$: {words}", []
        elif len(rows) > 1 or (line.right and measure(line.right) + len(line.words) > width):
            yield words, rows
        elif words:
            yield "", [rf"{rows[0]} \quad \text{{{words}}}"]
        else:
            yield "", rows
