"""A page as one HTML file: formulas as MathML, curves as SVG, nothing fetched from anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files

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
from symdp.page.panel import POLICY
from symdp.page.plot import embedded
from symdp.page.section import Line
from symdp.version import __version__

# What a browser holds a page without a panel to: it fetches nothing and runs nothing.
_NOTHING_OUTSIDE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_LONG_PAGE = 6  # headings from which on a page begins with its contents


def to_html(page: Page) -> str:
    """Return the page as a document that needs no network; every text is escaped."""
    style = files("symdp.page").joinpath("style.css").read_text(encoding="utf-8")
    title = escape(page.title)
    headings = [block for block in page.blocks if isinstance(block, Heading)]
    places = {id(heading): f"part-{place}" for place, heading in enumerate(headings)}
    runs = any(isinstance(block, Embedded) for block in page.blocks)
    policy = POLICY if runs else _NOTHING_OUTSIDE
    body = "\n".join(_placed(block, places) for block in page.blocks)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        # An icon of its own, so that no browser asks a server for one.
        '<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n{_contents(headings, places)}{body}\n"
        f"<footer>symdp {escape(__version__)}. Numbers called exact are the exact formula in "
        "floating point; bounds are proved; estimates are neither.</footer>\n</body>\n</html>\n"
    )


def _contents(headings: list[Heading], places: dict[int, str]) -> str:
    if len(headings) < _LONG_PAGE:
        return ""
    links = [
        f'<li class="level-{heading.level}"><a href="#{places[id(heading)]}">'
        f"{escape(heading.text)}</a></li>"
        for heading in headings
        if heading.level <= 3
    ]
    return f"<nav><ul>{''.join(links)}</ul></nav>\n"


def _placed(block: Block, places: dict[int, str]) -> str:
    if isinstance(block, Heading):
        place = places[id(block)]
        return f'<h{block.level} id="{place}">{escape(block.text)}</h{block.level}>'
    return _block(block)


def _block(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Paragraph(text, tone):
            kind = f' class="{escape(tone)}"' if tone else ""
            return f"<p{kind}>{escape(text)}</p>"
        case Formulas(formulas):
            return f'<div class="formulas">{"".join(map(_formula, formulas))}</div>'
        case Table():
            return _table(block)
        case Plot(series, caption, name, of_errors):
            figure = embedded(series, name, of_errors=of_errors)
            return f"<figure>{figure}<figcaption>{escape(caption)}</figcaption></figure>"
        case Listing(lines):
            return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
        case Code(text):
            return f"<pre>{escape(text)}</pre>"
        case Embedded(html):
            return html
        case Folded(summary, blocks):
            inside = "".join(map(_block, blocks))
            return f"<details><summary>{escape(summary)}</summary>{inside}</details>"


def _formula(formula: Line) -> str:
    shown = formula.mathml()
    if formula.right is None:
        shown += f' <span class="words">{escape(formula.words)}</span>'
    if formula.is_long:
        count = f'<span class="words">{formula.operations} operations</span>'
        shown = f"<details><summary>{formula.name()} {count}</summary>{shown}</details>"
    note = f'<p class="note">{escape(formula.note)}</p>' if formula.note else ""
    return f"<div>{shown}{note}</div>"


def _table(table: Table) -> str:
    rows = []
    for place, row in enumerate(table.rows):
        kinds = [
            word
            for word, places in (("strong", table.strong), ("bad", table.bad))
            if place in places
        ]
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        rows.append(f"<tr{kind}>{_cells('td', row, table)}</tr>")
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = f"<thead><tr>{_cells('th', table.head, table)}</tr></thead>"
    body = "".join(rows)
    return f'<div class="wide"><table>{caption}{head}<tbody>{body}</tbody></table></div>'


def _cells(tag: str, texts: Sequence[str], table: Table) -> str:
    cells = []
    for column, text in enumerate(texts):
        kind = ' class="number"' if table.holds_numbers(column) else ""
        cells.append(f"<{tag}{kind}>{escape(text)}</{tag}>")
    return "".join(cells)
