"""A page as a part of a LaTeX document: headings, texts, tables, lists; every text escaped."""

from __future__ import annotations

from symdp.errors import InputError
from symdp.page.blocks import Block, Code, Heading, Listing, Page, Paragraph, Table

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "ε": r"\(\varepsilon\)", "δ": r"\(\delta\)", "→": r"\(\to\)", "–": "--", "≤": r"\(\le\)",
}  # fmt: skip
_LEVELS = {2: "subsection", 3: "subsubsection", 4: "paragraph"}


def to_tex(page: Page) -> str:
    """Return a section that a LaTeX document takes in by its input command.

    Raises
    ------
    InputError
        If a block has no form in LaTeX here: figures and formulas are pages' alone.
    """
    parts = [rf"\section{{{escaped(page.title)}}}", *(_block(block) for block in page.blocks)]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    r"""Return a text that LaTeX prints as it stands and never obeys.

    >>> escaped(r"100% of \input{x}")
    '100\\% of \\textbackslash{}input\\{x\\}'
    """
    return "".join(_SPECIAL.get(letter, letter) for letter in " ".join(text.split()))


def _block(block: Block) -> str:
    match block:
        case Heading(level, text):
            return rf"\{_LEVELS[level]}{{{escaped(text)}}}"
        case Paragraph(text, _):
            return escaped(text)
        case Table():
            return _table(block)
        case Listing(lines):
            items = "\n".join(rf"  \item {escaped(line)}" for line in lines)
            return f"\\begin{{itemize}}\n{items}\n\\end{{itemize}}"
        case Code(text):
            lines = r"\\".join(f"\n{escaped(line)}" for line in text.splitlines())
            return f"\\begin{{flushleft}}\\ttfamily\\small{lines}\n\\end{{flushleft}}"
        case _:
            raise InputError(f"a {type(block).__name__.lower()} has no LaTeX form here")


def _table(table: Table) -> str:
    columns = "".join(
        "r" if table.holds_numbers(column) else "l" for column in range(len(table.head))
    )
    rows = [" & ".join(escaped(cell) for cell in row) for row in (table.head, *table.rows)]
    head, *body = rows
    lines = "".join(f"{row} \\\\\n" for row in body)
    caption = f"{escaped(table.caption)}\n\n" if table.caption else ""
    return f"{caption}\\begin{{tabular}}{{{columns}}}\n{head} \\\\ \\hline\n{lines}\\end{{tabular}}"
