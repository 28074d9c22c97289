"""A page as one HTML file: formulas as MathML, curves as SVG, nothing fetched from anywhere."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from symdp import __version__
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
from symdp.report.plot import embedded


def to_html(page: Page) -> str:
    """Return the page as a document that needs no network; every text is escaped."""
    style = files("symdp.report").joinpath("style.css").read_text(encoding="utf-8")
    title = escape(page.title)
    body = "\n".join(_block(block) for block in page.blocks)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n{body}\n"
        f"<footer>symdp {escape(__version__)}. Numbers called exact are the exact formula in "
        "floating point; bounds are proved; estimates are neither.</footer>\n</body>\n</html>\n"
    )


def _block(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Paragraph(text, tone):
            kind = f' class="{escape(tone)}"' if tone else ""
            return f"<p{kind}>{escape(text)}</p>"
        case Formulas(formulas):
            lines = "".join(f"<div>{formula.mathml()}</div>" for formula in formulas)
            return f'<div class="formulas">{lines}</div>'
        case Table():
            return _table(block)
        case Plot(series, caption, name):
            figure = embedded(series, name)
            return f"<figure>{figure}<figcaption>{escape(caption)}</figcaption></figure>"
        case Listing(lines):
            return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _table(table: Table) -> str:
    rows = []
    for place, row in enumerate(table.rows):
        kinds = [
            word
            for word, places in (("strong", table.strong), ("bad", table.bad))
            if place in places
        ]
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        rows.append(f"<tr{kind}>{_cells('td', row, table.numbers_from)}</tr>")
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = f"<thead><tr>{_cells('th', table.head, table.numbers_from)}</tr></thead>"
    body = "".join(rows)
    return f'<div class="wide"><table>{caption}{head}<tbody>{body}</tbody></table></div>'


def _cells(tag: str, texts: object, numbers_from: int) -> str:
    assert isinstance(texts, list | tuple)
    cells = []
    for column, text in enumerate(texts):
        kind = ' class="number"' if column >= numbers_from else ""
        cells.append(f"<{tag}{kind}>{escape(text)}</{tag}>")
    return "".join(cells)
