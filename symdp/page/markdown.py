"""A page as Markdown: formulas as LaTeX, curves as SVG files beside it."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from symdp.page.blocks import (
    Block,
    Code,
    Embedded,
    Folded,
    Formulas,
    Heading,
    Listing,
    Page,
    Paragraph,
    Plot,
    Table,
)
from symdp.page.plot import save
from symdp.page.section import Line

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|$])")


def to_markdown(page: Page, path: Path) -> str:
    """Return the page; each plot is written beside `path`, whose name its own begins with.

    Raises
    ------
    InputError
        If a plot cannot be written.
    """
    blocks = [block for block in page.blocks if not isinstance(block, Embedded)]
    parts = [f"# {_plain(page.title)}", *(_block(block, path) for block in blocks)]
    return "\n\n".join(parts) + "\n"


def _block(block: Block, path: Path) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {_plain(text)}"
        case Paragraph(text, tone):
            return f"**{_plain(text)}**" if tone else _plain(text)
        case Formulas(formulas):
            return "\n\n".join(_formula(formula) for formula in formulas)
        case Table():
            return _table(block)
        case Plot(series, caption, name, of_errors):
            figure = path.with_name(f"{path.stem}-{name}.svg")
            save(series, figure, of_errors=of_errors)
            return f"![{_plain(caption)}]({figure.name.replace(' ', '%20')})\n\n{_plain(caption)}"
        case Listing(lines):
            return "\n".join(f"- {_plain(line)}" for line in lines)
        case Embedded():
            return ""
        case Code(text):
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            return f"{fence}\n{text}\n{fence}"
        case Folded(summary, blocks):
            inside = "\n\n".join(_block(inner, path) for inner in blocks)
            return _folded(summary, inside)


def _formula(formula: Line) -> str:
    shown = f"$${formula.latex()}$$"
    if formula.is_long:
        shown = _folded(f"{formula.operations} operations", shown)
    return f"{shown}\n\n{_plain(formula.note)}" if formula.note else shown


def _folded(summary: str, inside: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>\n\n{inside}\n\n</details>"


def _table(table: Table) -> str:
    rule = ["---:" if table.holds_numbers(column) else "---" for column in range(len(table.head))]
    rows = []
    for place, row in enumerate(table.rows):
        cells = [_plain(cell) for cell in row]
        if place in table.strong:
            cells = [f"**{cell}**" if cell else "" for cell in cells]
        rows.append(cells)
    lines = [[_plain(cell) for cell in table.head], rule, *rows]
    drawn = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{_plain(table.caption)}\n\n{drawn}" if table.caption else drawn


def _plain(text: str) -> str:
    """Escape what Markdown or HTML would take for a command."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
