"""A document as text: formulas on a line in Unicode or ASCII, tables in which no word is cut."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap

from symdp.page import document as doc
from symdp.page.node import Node, text, transliterated

WIDE = 200  # characters of a table's line that no terminal wraps
_GAP = 2  # spaces between two columns
_WIDE_LINE = 90  # characters up to which words stand behind their formula
_WIDE_CASE = 60  # characters up to which conditions stand below each other
WIDTH = 100  # columns of a text, which fit a terminal and a page
_INDENT = "      "  # of the lines that go on
_FIRST_BREAK = 0.4  # of the width: a line is not broken before, lest it be all indent
# Before a sum's next term or a factor, or after a comma.
_BREAKS = re.compile(r" (?=[+\-−] )|(?<=\S)(?=[·*](?!\*))|(?<=,) |(?= if )")


def wrapped(line: str, width: int = WIDTH, indent: str = _INDENT) -> str:
    """Return a line on as many lines as it needs; joined again it is the same formula."""
    lines: list[str] = []
    remaining = line
    while len(remaining) > width:
        cut = _best_break(remaining, width, len(indent))
        if cut is None:
            break
        lines.append(remaining[:cut].rstrip())
        remaining = indent + remaining[cut:].lstrip()
    return "\n".join([*lines, remaining])


def _best_break(line: str, width: int, indent: int) -> int | None:
    """Return the last place within the width at which the fewest brackets are open."""
    depths = []
    depth = 0
    for sign in line:
        depth += (sign == "(") - (sign == ")")
        depths.append(depth)
    least = max(int(_FIRST_BREAK * width), indent + 1)
    places = [m.start() for m in _BREAKS.finditer(line) if least <= m.start() <= width]
    if not places:  # of a sentence, between words
        words = [k for k in range(least, width + 1) if line[k] == " "]
        if words:
            return words[-1]
        after = (m.start() for m in _BREAKS.finditer(line) if m.start() > indent + 1)
        return next((p for p in after), None)
    return min(places, key=lambda index: (depths[index - 1], -index))


def to_text(
    blocks: Iterable[doc.Block],
    width: int | None = None,
    ascii_only: bool = False,
    styled: Callable[[str, str], str] = lambda words, _: words,
) -> str:
    """Return blocks as lines of text of at most a width; None is that of no terminal.

    `styled` puts words into a tone.
    """
    letters = _letters(ascii_only)
    most = width or WIDTH

    def lines_of(block: doc.Block, is_later: bool) -> Iterator[str]:
        match block:
            case doc.Heading(_, title):
                if is_later:
                    yield ""
                yield letters(title)
            case doc.Sentence(words, tone, answer) if not answer:
                filled = "\n".join(broken_lines(words, width or len(words)))
                if tone:
                    filled = styled(filled, tone)
                yield filled
            case doc.Sentence(words, _, answer):
                yield words + styled(answer, "strong")
            case doc.Formulas(lines):
                for line in lines:
                    for printed_row in formula_lines(line, ascii_only):
                        is_formula = line.right is not None and not printed_row.startswith("  (")
                        if is_formula:
                            yield wrapped(f"  {printed_row}", most)
                        else:
                            yield _filled(printed_row, most)
            case doc.Legend(items):
                yield _filled(f"where {legend_text(items, ascii_only)}", most)
            case doc.Table(head, rows, caption, numbers):
                if caption:
                    yield letters(caption)
                cells = [list(map(letters, row)) for row in (head, *rows)]
                yield from table_lines(cells[0], cells[1:], numbers, width or WIDE)
            case doc.Listing(lines):
                yield from lines
            case doc.Command(words):
                yield from words.splitlines()
            case doc.Folded(summary, blocks):
                yield summary
                for inner in blocks:
                    yield from lines_of(inner, True)
            case doc.Figure(_, caption):
                yield caption

    text_lines: list[str] = []
    for block in blocks:
        text_lines += lines_of(block, bool(text_lines))
    return "\n".join(text_lines)


def _letters(ascii_only: bool) -> Callable[[str], str]:
    """Return what writes a text in the letters that are allowed."""
    if ascii_only:
        return transliterated
    return str


def legend_text(items: Iterable[tuple[Node, str]], ascii_only: bool = False) -> str:
    """Return a legend as one sentence."""
    legend = "; ".join(f"{text(name, ascii_only)}, {meaning}" for name, meaning in items)
    if ascii_only:
        return transliterated(legend)
    return legend


def formula_lines(line: doc.Line, ascii_only: bool = False) -> Iterator[str]:
    """Yield a formula as lines of text, not yet broken; cases stand below one another."""
    letters = _letters(ascii_only)
    words = letters(line.words)
    if line.left is None:
        yield words
        return
    name = text(line.left, ascii_only)
    if line.right is None:
        yield f"{name}: {words}"
        return
    first, *others = _sided(f"{name} {letters(line.relation)} ", line.right, ascii_only)
    is_short = line.right.kind != "cases" and len(first) + len(words) <= _WIDE_LINE
    if words and is_short:
        yield f"{first}    {words}"
    else:
        yield first
    yield from others
    if words and not is_short:
        yield f"  ({words})"
    for part, meant in line.where:
        yield from _sided(f"  {text(part, ascii_only)} = ", meant, ascii_only)


def _sided(begin: str, right: Node, ascii_only: bool) -> Iterator[str]:
    """Yield a right side behind its left one, a line for each case."""
    if right.kind != "cases":
        yield begin + text(right, ascii_only)
        return
    cases = [tuple(text(part, ascii_only) for part in case.parts) for case in right.parts]
    value_width = max(len(value) for value, _ in cases)
    if value_width >= _WIDE_CASE:
        value_width = 0
    for value, condition in cases:
        words = condition
        if condition != "otherwise":
            words = f"if {condition}"
        yield f"{begin}{value:{value_width}}  {words}"
        begin = " " * len(begin)


def _filled(words: str, width: int) -> str:
    """Break a sentence between words, its later lines further in."""
    return "\n".join(broken_lines(f"  {words.strip()}", width, _INDENT))


def table_lines(
    head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int], width: int
) -> list[str]:
    """Return the lines of a table, the columns of `numbers` to the right."""
    cells = list(zip(head, *rows, strict=True))
    natural = [max(map(len, column)) for column in cells]
    least = [max(map(_longest_word, column)) for column in cells]
    room = width - _GAP * (len(head) - 1)
    if sum(least) > room:
        return _listed_rows(head, rows, width)
    most = max(natural, default=0)
    while sum(widths := [min(n, max(k, most)) for n, k in zip(natural, least, strict=True)]) > room:
        most -= 1
    shown = []
    for row in (head, *rows):
        pieces = [broken_lines(cell, wide) for cell, wide in zip(row, widths, strict=True)]
        for texts in zip_longest(*pieces, fillvalue=""):
            padded = []
            for column, (cell, wide) in enumerate(zip(texts, widths, strict=True)):
                if column in numbers:
                    padded.append(cell.rjust(wide))
                else:
                    padded.append(cell.ljust(wide))
            line = (" " * _GAP).join(padded)
            shown.append(line.rstrip())
    return shown


def _longest_word(cell: str) -> int:
    return max(map(len, cell.split()), default=0)


def _listed_rows(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return rows that no line holds, each cell behind its column's name, a gap between rows."""
    listed: list[str] = []
    for row in rows:
        for name, cell in zip(head, row, strict=True):
            if name and cell:
                listed += broken_lines(f"{name}: {cell}", width)
            elif cell:
                listed += broken_lines(cell, width)
        listed.append("")
    return listed[:-1]


def broken_lines(text: str, width: int, indent: str | None = None) -> list[str]:
    """Return text on as many lines as it needs, broken between words only, indented alike."""
    if len(text) <= width:
        return [text]
    bare = text.lstrip()
    first = text[: len(text) - len(bare)]
    if indent is None:
        indent = first
    lines = wrap(
        bare,
        width,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [""]
