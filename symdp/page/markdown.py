"""A document as Markdown: formulas as LaTeX, curves as SVG files beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

from symdp.page import document as doc
from symdp.page.latex import display, latex, legend_in
from symdp.page.plot import save

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|$])")


def to_markdown(page: doc.Document, path: Path) -> str:
    """Return a document; each figure is written beside `path`, whose name its own begins with."""
    return f"# {_plain(page.title)}\n\n{markdown_blocks(page.blocks, path)}\n"


def markdown_blocks(blocks: Iterable[doc.Block], path: Path | None = None) -> str:
    """Return blocks as a part of a Markdown file; without a path there are no figures."""
    return "\n\n".join(filter(None, (_block(block, path) for block in blocks)))


def _block(block: doc.Block, path: Path | None) -> str:
    match block:
        case doc.Heading(level, text):
            return f"{'#' * level} {_plain(text)}"
        case doc.Sentence(text, tone, answer):
            words = _plain(text + answer)
            if tone:
                return f"**{words}**"
            return words
        case doc.Formulas(lines):
            return "\n\n".join(map(_line, lines))
        case doc.Legend(items):
            return f"Here {legend_in(items, _plain)}."
        case doc.Table():
            return _table(block)
        case doc.Figure(series, caption, name, of_errors) if path is not None:
            figure = path.with_name(f"{path.stem}-{name}.svg")
            save(series, figure, of_errors=of_errors)
            return f"![{_plain(caption)}]({figure.name.replace(' ', '%20')})\n\n{_plain(caption)}"
        case doc.Listing(lines):
            return "\n".join(f"- {_plain(line)}" for line in lines)
        case doc.Embedded() | doc.Figure():
            return ""
        case doc.Command(text):
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            return f"{fence}\n{text}\n{fence}"
        case doc.Folded(summary, blocks):
            return _folded(summary, markdown_blocks(blocks, path))


def _line(line: doc.Line) -> str:
    if line.left is None:
        return _plain(line.words)
    if line.right is None:
        shown = f"${latex(line.left)}$: {_plain(line.words)}"
    else:
        shown = display(line)
        if line.is_long:
            shown = _folded(f"{line.operations} operations", shown)
        if line.words:
            shown = f"{shown}\n\n{_plain(line.words)}"
    if line.note:
        return f"{shown}\n\n{_plain(line.note)}"
    return shown


def _folded(summary: str, inside: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>\n\n{inside}\n\n</details>"


def _bold(cell: str) -> str:
    if not cell:
        return ""
    return f"**{cell}**"


def _table(table: doc.Table) -> str:
    rule = ["---"] * len(table.head)
    for column in range(len(rule)):
        if column in table.numbers:
            rule[column] = "---:"
    rows = []
    for index, row in enumerate(table.rows):
        cells = [_plain(cell) for cell in row]
        if index in table.strong:
            cells = [_bold(cell) for cell in cells]
        rows.append(cells)
    lines = [[_plain(cell) for cell in table.head], rule, *rows]
    drawn = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    if table.caption:
        return f"{_plain(table.caption)}\n\n{drawn}"
    return drawn


def _plain(text: str) -> str:
    """Escape what Markdown or HTML would take for a command."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
