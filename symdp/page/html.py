"""A document as one HTML file: formulas as MathML, curves as SVG, nothing fetched from anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from itertools import count

import sympy as sp

from symdp.page import document as doc
from symdp.page.formula import layout
from symdp.page.node import ATOM, EMPTY, SUM, Node, broken_case, row
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
    policy = POLICY if runs else _NOTHING_OUTSIDE
    body = "\n".join(
        _block(block, next(places) if isinstance(block, doc.Heading) else "")
        for block in page.blocks
    )
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


def _line(line: doc.Line) -> str:
    words = f'<span class="words">{escape(line.words)}</span>' if line.words else ""
    if line.left is None:
        return f"<div>{words}</div>"
    shown = f"{formula(line)} {words}".rstrip()
    if line.is_long:
        count = f'<span class="words">{line.operations} operations</span>'
        shown = f"<details><summary>{_name(line)} {count}</summary>{shown}</details>"
    note = f'<p class="note">{escape(line.note)}</p>' if line.note else ""
    return f'<div style="overflow-x: auto">{shown}{note}</div>'


def _table(table: doc.Table) -> str:
    rows = []
    for index, cells in enumerate(table.rows):
        marks = {"strong": index in table.strong, "bad": index in table.bad}
        kinds = " ".join(word for word, is_so in marks.items() if is_so)
        kind = f' class="{kinds}"' if kinds else ""
        rows.append(f"<tr{kind}>{_cells('td', cells, table)}</tr>")
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = f"<thead><tr>{_cells('th', table.head, table)}</tr></thead>"
    body = "".join(rows)
    return f'<div class="wide"><table>{caption}{head}<tbody>{body}</tbody></table></div>'


def _cells(tag: str, texts: Sequence[str], table: doc.Table) -> str:
    kinds = (' class="number"' if k in table.numbers else "" for k in range(len(texts)))
    return "".join(
        f"<{tag}{kind}>{escape(t)}</{tag}>" for kind, t in zip(kinds, texts, strict=True)
    )


def mathml(expression: sp.Basic | Node) -> str:
    """Return the MathML of a formula, without the surrounding math element."""
    return _written(expression if isinstance(expression, Node) else layout(expression), False)


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
            above = _bracketed(parts[0]) if node.parts[0].level == SUM else parts[0]
            below = parts[1] if node.parts[1].level == ATOM else _bracketed(parts[1])
            return f'<mrow>{above}<mo lspace="0" rspace="0">/</mo>{below}</mrow>'
        case "root":
            return f"<msqrt>{parts[0]}</msqrt>"
        case "binomial":
            return _bracketed(f'<mfrac linethickness="0">{"".join(parts)}</mfrac>')
        case "fence":
            left, right = (_operator(end.text, "fence") for end in node.parts[::2])
            return f"<mrow>{left}{parts[1]}{right}</mrow>"
        case "cases":
            rows = "".join(_case(*case.parts) for case in node.parts)
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
        word = before.text if before.kind == "name" else ""
        if len(word) > 1 and "̄" not in word and part.kind not in {"fence", "operator"}:
            markup += '<mspace width="0.17em"/>'
        if part.kind == "fence" and before.kind in {"name", "script"}:
            markup += "<mo>\N{FUNCTION APPLICATION}</mo>"
        markup += piece
    return markup


def _script(node: Node, is_small: bool) -> str:
    base, below, above = node.parts
    markup = _written(base, is_small)
    parts = [_written(part, True) for part in (below, above) if part != EMPTY]
    if len(parts) == 2:
        tag = "munderover" if base.text in ("∑", "∏") else "msubsup"
    else:
        tag = "msub" if above == EMPTY else "msup"
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


def _case(value: Node, condition: Node) -> str:
    lines = [mathml(line) for line in broken_case(value, condition)]
    markup = lines[0] if len(lines) == 1 else _stacked(lines)
    return f"<mtr>{_cell(markup)}{_cell(mathml(condition))}</mtr>"


def _cell(inside: str) -> str:
    return f'<mtd style="text-align: left">{inside}</mtd>'


def _stacked(lines: Iterable[str]) -> str:
    """Lines below one another, set to the left."""
    rows = "".join(f"<mtr>{_cell(f'<mrow>{line}</mrow>')}</mtr>" for line in lines)
    return f'<mtable displaystyle="true">{rows}</mtable>'


def formula(line: doc.Line) -> str:
    """Return a formula as a math element, its left side alone where there is no other."""
    if line.right is None:
        return _name(line)
    lines = [
        ('<mspace width="2em"/>' if depth else "") + mathml(row(*parts))
        for depth, parts in line.rows(line.room)
    ]
    inside = lines[0] if len(lines) == 1 else _stacked(lines)
    return f'<math displaystyle="true"><mrow>{inside}</mrow></math>'


def _name(line: doc.Line) -> str:
    return f"<math><mrow>{mathml(line.left or EMPTY)}</mrow></math>"


def math_line(line: doc.Line) -> str:
    """Return a formula as one math element, the words that stand for its right side within."""
    if line.right is None:
        words = f"<mo>:</mo><mspace width='0.4em'/><mtext>{escape(line.words)}</mtext>"
        return _name(line).replace("</mrow></math>", f"{words}</mrow></math>")
    return formula(line)
