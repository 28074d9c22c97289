"""A page as Markdown: formulas as LaTeX, curves as SVG files beside it."""

from __future__ import annotations

import re
from pathlib import Path

from symdp.report.blocks import (
    Block,
    Formulas,
    Heading,
    Listing,
    Page,
    Paragraph,
    Plot,
    Table,
)
from symdp.report.plot import save

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|$])")


def to_markdown(page: Page, path: Path) -> str:
    """Return the page; each plot is written beside `path`, whose name its own begins with.

    Raises
    ------
    InputError
        If a plot cannot be written.
    """
    parts = [f"# {_plain(page.title)}", *(_block(block, path) for block in page.blocks)]
    return "\n\n".join(parts) + "\n"


def _block(block: Block, path: Path) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {_plain(text)}"
        case Paragraph(text, tone):
            return f"**{_plain(text)}**" if tone else _plain(text)
        case Formulas(formulas):
            return "\n\n".join(f"$${formula.latex()}$$" for formula in formulas)
        case Table():
            return _table(block)
        case Plot(series, caption, name):
            figure = path.with_name(f"{path.stem}-{name}.svg")
            save(series, figure)
            return f"![{_plain(caption)}]({figure.name.replace(' ', '%20')})\n\n{_plain(caption)}"
        case Listing(lines):
            return "\n".join(f"- {_plain(line)}" for line in lines)


def _table(table: Table) -> str:
    rule = ["---:" if column >= table.numbers_from else "---" for column in range(len(table.head))]
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
