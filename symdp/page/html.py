"""A document as one HTML file: formulas as MathML, curves as SVG, nothing fetched from anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from itertools import count

import sympy as sp

from symdp.page import document as doc
from symdp.page.formula import layout
from symdp.page.node import ATOM, EMPTY, SUM, Node, broken, row, width_of_cases
from symdp.page.panel import POLICY
from symdp.page.plot import embedded
from symdp.version import __version__

# What a browser holds a page without a panel to: it fetches nothing and runs nothing.
_NOTHING_OUTSIDE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_LONG_PAGE = 6  # headings from which on a page begins with its contents


def to_html(page: doc.Document) -> str:
    """Return the page as a document that needs no network; every text is escaped."""
    style = files("symdp.page").joinpath("style.css").read_text(encoding="utf-8")
    title = escape(page.title)
    headings = [block for block in page.blocks if isinstance(block, doc.Heading)]
    places = (f' id="part-{index}"' for index in count())
    runs = any(isinstance(block, doc.Embedded) for block in page.blocks)
    policy = _NOTHING_OUTSIDE
    if runs:
        policy = POLICY
    blocks = []
    for block in page.blocks:
        mark = ""
        if isinstance(block, doc.Heading):
            mark = next(places)
        blocks.append(_block(block, mark))
    body = "\n".join(blocks)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        # An icon of its own, so that no browser asks a server for one.
        '<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n{_contents(headings)}{body}\n"
        f"<footer>symdp {escape(__version__)}. {escape(page.foot)}</footer>\n</body>\n</html>\n"
    )


def _contents(headings: list[doc.Heading]) -> str:
    if len(headings) < _LONG_PAGE:
        return ""
    links = [
        f'<li class="level-{heading.level}"><a href="#part-{index}">{escape(heading.text)}</a></li>'
        for index, heading in enumerate(headings)
        if heading.level <= 3
    ]
    return f"<nav><ul>{''.join(links)}</ul></nav>\n"


def html_blocks(blocks: Iterable[doc.Block]) -> str:
    """Return blocks as HTML, for a place in a page of somebody else."""
    return "".join(map(_block, blocks))


def _block(block: doc.Block, mark: str = "") -> str:
    match block:
        case doc.Heading(level, text):
            return f"<h{level}{mark}>{escape(text)}</h{level}>"
        case doc.Sentence(text, tone, answer):
            words = escape(text + answer)
            if tone == "strong":
                return f"<p><b>{words}</b></p>"
            if tone:
                return f'<p class="{escape(tone)}">{words}</p>'
            return f"<p>{words}</p>"
        case doc.Formulas(lines):
            return f'<div class="formulas">{"".join(map(_line, lines))}</div>'
        case doc.Legend(items):
            legend = "; ".join(
                f"<math>{mathml(n)}</math>, {escape(meaning)}" for n, meaning in items
            )
            return f"<p><small>{legend}</small></p>"
        case doc.Table():
            return _table(block)
        case doc.Figure(series, caption, name, of_errors):
            figure = embedded(series, name, of_errors=of_errors)
            return f"<figure>{figure}<figcaption>{escape(caption)}</figcaption></figure>"
        case doc.Listing(lines):
            return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
        case doc.Command(text):
            return f"<pre>{escape(text)}</pre>"
        case doc.Embedded(html):
            return html
        case doc.Folded(summary, blocks):
            inside = html_blocks(blocks)
            return f"<details><summary>{escape(summary)}</summary>{inside}</details>"


def _element(tag: str, text: str, attributes: str = "") -> str:
    """Return a text as an element, nothing for an empty one."""
    if not text:
        return ""
    return f"<{tag}{attributes}>{escape(text)}</{tag}>"


def _line(line: doc.Line) -> str:
    words = _element("span", line.words, ' class="words"')
    if line.left is None:
        return f"<div>{words}</div>"
    shown = f"{formula(line)} {words}".rstrip()
    if line.is_long:
        count = f'<span class="words">{line.operations} operations</span>'
        shown = f"<details><summary>{_name(line)} {count}</summary>{shown}</details>"
    note = _element("p", line.note, ' class="note"')
    return f'<div style="overflow-x: auto">{shown}{note}</div>'


def _table(table: doc.Table) -> str:
    rows = []
    for index, cells in enumerate(table.rows):
        marks = {"strong": index in table.strong, "bad": index in table.bad}
        kinds = " ".join(word for word, is_so in marks.items() if is_so)
        kind = ""
        if kinds:
            kind = f' class="{kinds}"'
        rows.append(f"<tr{kind}>{_cells('td', cells, table)}</tr>")
    caption = _element("caption", table.caption)
    head = f"<thead><tr>{_cells('th', table.head, table)}</tr></thead>"
    body = "".join(rows)
    return f'<div class="wide"><table>{caption}{head}<tbody>{body}</tbody></table></div>'


def _cells(tag: str, texts: Sequence[str], table: doc.Table) -> str:
    cells = []
    for index, text in enumerate(texts):
        kind = ""
        if index in table.numbers:
            kind = ' class="number"'
        cells.append(f"<{tag}{kind}>{escape(text)}</{tag}>")
    return "".join(cells)


def mathml(expression: sp.Basic | Node) -> str:
    """Return the MathML of a formula, without the surrounding math element."""
    if isinstance(expression, Node):
        return _written(expression, False)
    return _written(layout(expression), False)


_LEAVES = {"words": "mtext", "number": "mn", "name": "mi"}


def _written(node: Node, is_small: bool) -> str:
    """Write a node; in a small one, an exponent, a fraction stands on the line."""
    if node.kind in _LEAVES:
        tag = _LEAVES[node.kind]
        return f"<{tag}>{escape(node.text)}</{tag}>"
    if node.kind == "script":
        return _script(node, is_small)
    parts = [_written(part, is_small) for part in node.parts]
    match node.kind:
        case "row":
            return f"<mrow>{_spaced(node.parts, parts)}</mrow>"
        case "fraction" if not is_small:
            return f"<mfrac>{parts[0]}{parts[1]}</mfrac>"
        case "fraction":
            above, below = parts
            if node.parts[0].level == SUM:
                above = _bracketed(above)
            if node.parts[1].level != ATOM:
                below = _bracketed(below)
            return f'<mrow>{above}<mo lspace="0" rspace="0">/</mo>{below}</mrow>'
        case "root":
            return f"<msqrt>{parts[0]}</msqrt>"
        case "binomial":
            return _bracketed(f'<mfrac linethickness="0">{"".join(parts)}</mfrac>')
        case "fence":
            left, right = (_operator(end.text, "fence") for end in node.parts[::2])
            return f"<mrow>{left}{parts[1]}{right}</mrow>"
        case "cases":
            width = width_of_cases(node)
            rows = "".join(_case(case.parts[0], case.parts[1], width) for case in node.parts)
            brace = '<mo stretchy="true" form="prefix">{</mo>'
            return f"<mrow>{brace}<mtable>{rows}</mtable></mrow>"
    return _operator(node.text)


def _spaced(parts: Sequence[Node], written: Iterable[str]) -> str:
    """Join the parts of a row, a space beside words and behind a long name."""
    markup = ""
    for before, part, piece in zip((EMPTY, *parts), parts, written, strict=False):
        is_later = before is not EMPTY
        if is_later and "words" in (before.kind, part.kind):
            markup += '<mspace width="0.4em"/>'
        is_word = before.kind == "name" and len(before.text) > 1 and "̄" not in before.text
        if is_word and part.kind not in {"fence", "operator"}:
            markup += '<mspace width="0.17em"/>'
        if part.kind == "fence" and before.kind in {"name", "script"}:
            markup += "<mo>\N{FUNCTION APPLICATION}</mo>"
        markup += piece
    return markup


def _script(node: Node, is_small: bool) -> str:
    base, below, above = node.parts
    markup = _written(base, is_small)
    parts = [_written(part, True) for part in (below, above) if part != EMPTY]
    if len(parts) == 2 and base.text in ("∑", "∏"):
        tag = "munderover"
    elif len(parts) == 2:
        tag = "msubsup"
    elif above == EMPTY:
        tag = "msub"
    else:
        tag = "msup"
    return f"<{tag}>{markup}{''.join(parts)}</{tag}>"


def _operator(text: str, kind: str = "") -> str:
    text = text.replace(r"\bigl", "").replace(r"\bigr", "")
    if kind == "fence":
        return f'<mo stretchy="true" lspace="0" rspace="0">{escape(text)}</mo>'
    if text == "d":
        return '<mspace width="0.2em"/><mi mathvariant="normal">d</mi>'
    if text in ("(", ")", "[", "]", "|"):
        return f'<mo stretchy="false">{escape(text)}</mo>'
    return f"<mo>{escape(text)}</mo>"


def _bracketed(inside: str) -> str:
    return f"<mrow><mo>(</mo>{inside}<mo>)</mo></mrow>"


def _case(value: Node, condition: Node, width: float) -> str:
    lines = [mathml(line) for line in broken(value, width)]
    markup = _stacked(lines)
    return f"<mtr>{_cell(markup)}{_cell(mathml(condition))}</mtr>"


def _cell(inside: str) -> str:
    return f'<mtd style="text-align: left">{inside}</mtd>'


def _stacked(lines: Sequence[str]) -> str:
    """Lines below one another, set to the left."""
    if len(lines) == 1:
        return lines[0]
    rows = "".join(f"<mtr>{_cell(f'<mrow>{line}</mrow>')}</mtr>" for line in lines)
    return f'<mtable displaystyle="true">{rows}</mtable>'


def formula(line: doc.Line) -> str:
    """Return a formula as a math element, its left side alone where there is no other."""
    if line.right is None:
        return _name(line)
    lines = []
    for depth, parts in line.rows(line.room):
        markup = mathml(row(*parts))
        if depth:
            markup = f'<mspace width="2em"/>{markup}'
        lines.append(markup)
    inside = _stacked(lines)
    return f'<math displaystyle="true"><mrow>{inside}</mrow></math>'


def _name(line: doc.Line) -> str:
    return f"<math><mrow>{mathml(line.left or EMPTY)}</mrow></math>"


def math_line(line: doc.Line) -> str:
    """Return a formula as one math element, the words that stand for its right side within."""
    if line.right is None:
        words = f"<mo>:</mo><mspace width='0.4em'/><mtext>{escape(line.words)}</mtext>"
        return _name(line).replace("</mrow></math>", f"{words}</mrow></math>")
    return formula(line)
