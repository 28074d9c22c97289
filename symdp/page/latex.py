r"""A document as LaTeX that plain pdflatex with amsmath compiles, its formulas broken to a page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from symdp.errors import InputError
from symdp.page import document as doc
from symdp.page.node import (
    ATOM,
    EMPTY,
    GREEK_NAMES,
    PAGE,
    SUM,
    Node,
    broken,
    is_wide,
    measure,
    text,
)

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
    "ℤ": r"\mathbf{Z}", "√": r"\surd ", "∝": r"\propto ", "%": r"\%", "&": r"\&",
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


def latex(node: Node, in_line: bool = False) -> str:
    r"""Return a formula in LaTeX; within a line of text or an exponent fractions are a/(bc)."""
    parts = [latex(part, in_line) for part in node.parts]
    match node.kind:
        case "row":
            return _joined(_without_dots(node.parts, parts))
        case "root":
            return rf"\sqrt{{{parts[0]}}}"
        case "fraction" if in_line:
            return _slashed(node, parts)
        case "fraction":
            return rf"\frac{{{parts[0]}}}{{{parts[1]}}}"
        case "binomial":
            return rf"\binom{{{parts[0]}}}{{{parts[1]}}}"
        case "script":
            scripts = [latex(part, in_line=True) for part in node.parts[1:]]
            return _script(node, [parts[0], *scripts])
        case "fence":
            left, right = (_BRACKETS.get(end.text, end.text) for end in node.parts[::2])
            if _is_tall(node, in_line):
                return rf"\left{left}{parts[1]}\right{right}"
            return left + parts[1] + right
        case "cases":
            rows = _case_rows(node)
            return rf"\begin{{cases}} {rows} \end{{cases}}"
        case "words":
            return rf"\text{{{latex_words(node.text)}}}"
        case "name":
            return _name(node.text)
        case "operator":
            return _SIGNS.get(node.text, node.text)
    return node.text.replace("…", r"\dots ")


def _slashed(node: Node, written: list[str]) -> str:
    """Return a fraction on one line, its sides in brackets where they need some."""
    above, below = node.parts
    above_latex, below_latex = written
    holds_differential = any(n.text == "d" and n.kind == "operator" for n in above.walk())
    if above.level == SUM or above.kind == "fraction" or holds_differential:
        above_latex = f"({above_latex})"
    if below.level != ATOM:
        below_latex = f"({below_latex})"
    return f"{above_latex}/{below_latex}"


def _without_dots(nodes: tuple[Node, ...], written: list[str]) -> list[str]:
    """Leave out the dot before a letter, a root or a function, which LaTeX sets apart itself."""
    kept: list[str] = []
    for index, (node, piece) in enumerate(zip(nodes, written, strict=True)):
        is_dot = node.kind == "operator" and node.text == "·"
        is_between = 0 < index < len(nodes) - 1
        if not (is_dot and is_between and _leading(nodes[index + 1]).kind in ("name", "root")):
            kept.append(piece)
    return kept


def _leading(node: Node) -> Node:
    """Return what a formula begins with."""
    while node.kind in ("row", "script") and node.parts:
        node = node.parts[0]
    return node


def _script(node: Node, written: list[str]) -> str:
    base, below, above = node.parts
    base_latex, below_latex, above_latex = written
    if base.kind not in {"name", "number", "operator", "fence"}:
        base_latex = f"{{{base_latex}}}"
    if below != EMPTY:
        base_latex += f"_{{{below_latex}}}"
    if above == EMPTY:
        return base_latex
    if above.text in {"′", "″", "‴"}:
        return base_latex + _SIGNS[above.text]
    return f"{base_latex}^{{{above_latex}}}"


_TALL = ("fraction", "binomial", "cases")
_BRACKETS = {"{": r"\{", "}": r"\}", "⌊": r"\lfloor ", "⌋": r"\rfloor "}


_APART = r" \\[2.5ex] "  # between rows of fractions: the depth of an ordinary row is counted in it
_BELOW = r" \\ \quad "
_LEFT_OF_CASES = 10  # widths of a letter


def _case_rows(node: Node) -> str:
    """Return the rows of cases; on a narrow page a condition stands below its value."""
    between = r" \\ "
    if any(_is_tall(case.parts[0]) for case in node.parts):
        between = _APART
    if measure(node) <= PAGE - _LEFT_OF_CASES:
        return between.join(
            f"{_displayed(case.parts[0])} & {_condition(case.parts[1])}" for case in node.parts
        )
    room = PAGE - _LEFT_OF_CASES
    rows = []
    for case in node.parts:
        value, condition = case.parts
        lines = broken(value, room)
        is_tall = any(map(_is_tall, lines))
        set_lines = [_sized(_displayed(line), is_tall) for line in lines]
        if measure(lines[-1]) + measure(condition, in_line=True) > room:
            set_lines.append("")
        set_lines[-1] += rf"\quad {_condition(condition)}"
        rows.append(_BELOW.join(set_lines))
    return between.join(rows)


def _condition(condition: Node) -> str:
    words = latex(condition, in_line=True)
    if condition.kind == "words":
        return words
    if words.startswith("-"):
        words = f"{{-}}{words[1:]}"  # a sign of what follows, no difference
    return rf"\text{{if }} {words}"


def _is_tall(node: Node, in_line: bool = False) -> bool:
    """Whether a formula is higher than a line; exponents and indices are not."""
    if node.kind == "operator":
        return node.text in ("∫", "∑", "∏")
    if node.kind in _TALL and not (in_line and node.kind == "fraction"):
        return True
    if node.kind == "script":
        return _is_tall(node.parts[0], in_line)
    return any(_is_tall(part, in_line) for part in node.parts)


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
        while end > start and not (formula := _as_formula(_bare(words[start:end]))):
            end -= 1
        if end > start:
            punctuation = " ".join(words[start:end])[len(_bare(words[start:end])) :]
            yield f"${formula}${punctuation}"
            start = end
        else:
            yield _word(words[start])
            start += 1


def _word(word: str) -> str:
    named = _LETTER.fullmatch(word)
    if named is None:
        return "".join(map(_letter, word))
    before, letter, behind = named.groups()
    return f"{before}${letter.replace('′', _SIGNS['′'])}${behind}"


def _bare(words: list[str]) -> str:
    """Return a run of words without the punctuation that ends it."""
    run = " ".join(words).rstrip(",;:.")
    if run.endswith(")") and run.count(")") > run.count("("):
        return run[:-1]
    return run


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
        return latex(read(_NAMED_BELOW.sub(r"_“\1”", run)), in_line=True).strip()
    except (ValueError, IndexError, StopIteration):
        return ""


_NO_NAMES = "a|A|I|is|as|at|by|of|or|on|to|in|if|it|no|so|an|we|be|do|up|vs|EA|FA"
_ONE = r"(?:log|exp|inf|sup|min|max|Var|[A-Za-zα-ωΑ-ΩℓΦ]{1,2}(?![A-Za-z]))"
_IN_FORMULA = re.compile(
    rf"(?![(\[]*(?:{_NO_NAMES})\b(?![₀-₉₊₋]))"
    rf"(?:{_ONE}|(?<=\b[A-Z])_[A-Za-z]{{3,}}|[0-9ℤ,()\[\]|/+−=<>≤≥≠≈∈∝→‖·√∞…^_²³⁰¹⁴ⁿ₀₁₂₃₄₊₋ₙₜ{{}}′″‴!])+[,;:.]*"
)
_NAMED_BELOW = re.compile(r"(?<=\b[A-Z])_([A-Za-z]{3,})")  # a name below a letter, as in P_Chernoff
_LETTER = re.compile(r"(\(?)(?!a|A|I)([A-Za-z]′*)([,;:.)]*)")  # alone, it names something
_TELLING = re.compile(r"[_^ℓ∞√≤≥≠≈∈∝→‖²³ⁿ₀-₉₊₋ₙα-ωΦ′]|[\w)] [+−=<>] |^log\(|^\|\w\|$")


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
    return "; ".join(f"${latex(name, in_line=True)}$, {words(meaning)}" for name, meaning in items)


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
        f"{caption}{{\\small\\noindent\n\\begin{{tabular}}{{{alignment}}}\n"
        f"{head} \\\\ \\hline\n{lines}\\end{{tabular}}\\par}}"
    )


def latex_rows(line: doc.Line, width: float = PAGE) -> Iterator[str]:
    """Yield rows of an align environment whose right sides are broken to a width."""
    if line.left is None or line.right is None:
        return
    rows = list(line.rows(width, width))
    is_tall = any(_is_tall(part) for _, parts in rows for part in parts)
    for depth, parts in rows:
        first, *others = (_sized(latex(part), is_tall) for part in parts)
        if depth:
            yield " ".join([rf"&\{'q' * depth}uad", first, *others])
        elif others:
            yield f"{first} &{' '.join(others)}"
        else:
            yield f"&{first}"


def _sized(formula: str, is_tall: bool) -> str:
    """Return a row whose brackets, which close in another one, are as high as what they hold."""
    if not is_tall:
        return formula
    return formula.replace(r"\bigl", r"\biggl").replace(r"\bigr", r"\biggr")


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
    """Lines as align environments and words between them, in one ragged paragraph.

    Cases that the left sides of other lines would push off the page have an environment alone.
    """
    all_lines = list(lines)
    widest_left = _widest_left(all_lines)
    parts: list[str] = []
    rows: list[str] = []
    sentences: list[str] = []
    for line in all_lines:
        sentence, formulas = _said(line, PAGE - widest_left - 3)
        is_cases = line.right is not None and line.right.kind == "cases"
        is_alone = is_cases and widest_left + measure(line.right or EMPTY) > PAGE
        if sentence or is_alone:
            parts += _environment(rows)
            rows = []
        if sentence:
            sentences.append(sentence)
        if formulas:
            parts += _paragraph(sentences)
            sentences = []
            rows += formulas
        if is_alone:
            parts += _environment(rows)
            rows = []
    parts += [*_environment(rows), *_paragraph(sentences)]
    if any(not part.startswith(r"\begin") for part in parts):
        return "\n".join([r"{\raggedright", *parts, r"\par}"])
    return "\n".join(parts)


def _widest_left(lines: list[doc.Line]) -> float:
    lefts = [s.left for s in lines if s.left is not None and s.right is not None]
    return max((measure(left) for left in lefts if not is_wide(left)), default=0.0)


def _environment(rows: list[str]) -> list[str]:
    if not rows:
        return []
    lines = " \\\\\n".join(rows)
    return [f"\\begin{{align*}}\n{lines}\n\\end{{align*}}"]


def _paragraph(sentences: list[str]) -> list[str]:
    if not sentences:
        return []
    return ["\\\\\n".join(sentences)]


def _said(line: doc.Line, width: float) -> tuple[str, list[str]]:
    """Return the words that stand above the rows of a line, and these."""
    rows = list(latex_rows(line, width))
    is_above = len(rows) > 1 or (line.right and measure(line.right) + len(line.words) > width)
    words = latex_words(line.words)
    if is_above and line.left and line.words.startswith("="):
        words = latex_words(f"{text(line.left)} {line.words}")
    if not rows and line.left is None:
        return words, []
    if not rows and line.left is not None:
        return f"${latex(line.left, in_line=True)}$: {words}", []
    if is_above:
        return words, rows
    if words:
        return "", [rf"{rows[0]} \quad \text{{{words}}}"]
    return "", rows
