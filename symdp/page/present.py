"""A derivation for people: text, LaTeX, MathML and HTML of its sections, and its sources."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING

from symdp.errors import InputError, suggestion
from symdp.page.latex import PAGE, latex, latex_words, measure
from symdp.page.mathml import mathml
from symdp.page.plain_text import WIDTH, transliterated, wrapped
from symdp.page.section import Line, Section

if TYPE_CHECKING:
    from symdp.derive.printed import Printed


def chosen(d: Printed, order: int, only: tuple[str, ...] = ()) -> list[Section]:
    """Return the sections of some keys, all where none is given.

    Raises
    ------
    InputError
        For a key that no section has.
    """
    found: list[Section] = [section for section in d.sections(order) if section.lines]
    keys = list(dict.fromkeys(section.key for section in found))
    for key in only:
        if key not in keys:
            hint = suggestion(key, keys) or f"; there are {', '.join(keys)}"
            raise InputError(f"no section is called {key!r:.40}{hint}")
    return [section for section in found if not only or section.key in only]


def shown_text(d: Printed, order: int, only: tuple[str, ...]) -> str:
    """Return sections as text."""
    return "\n\n".join(text_of(s, WIDTH, False) for s in chosen(d, order, only))


def to_text(d: Printed, order: int, only: tuple[str, ...], width: int, ascii_only: bool) -> str:
    """Return a derivation as text of `width` columns."""
    first = transliterated(d.headline) if ascii_only else d.headline
    return "\n\n".join([first, *(text_of(s, width, ascii_only) for s in chosen(d, order, only))])


def to_latex(d: Printed, order: int, only: tuple[str, ...] = ()) -> str:
    """Return a derivation as LaTeX: for each section a paragraph and one align (amsmath)."""
    parts = [f"% {transliterated(d.headline)}", r"\allowdisplaybreaks"]
    return "\n".join([*parts, *(latex_of(s) for s in chosen(d, order, only))])


def to_mathml(d: Printed, order: int, only: tuple[str, ...] = ()) -> str:
    """Return the formulas as MathML elements, one a line."""
    lines = (line for s in chosen(d, order, only) for line in s.lines if line.left is not None)
    return "\n".join(_math(line) for line in lines)


def notebook_latex(d: Printed) -> str:
    """Return what a notebook shows where it prints LaTeX."""
    rows = [row for s in chosen(d, 1) for line in s.lines for row in line.latex_rows()]
    return "$$\n\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}\n$$"


def notebook_html(d: Printed) -> str:
    """Return what a notebook shows."""
    parts = [f"<p><b>{escape(d.headline)}</b></p>"]
    for section in chosen(d, 1):
        lines = "".join(f'<div style="overflow-x: auto">{_html(n)}</div>' for n in section.lines)
        legend = "; ".join(
            f"<math>{mathml(name)}</math>, {escape(meaning)}" for name, meaning in section.legend
        )
        end = f"<p><small>{legend}</small></p>" if legend else ""
        parts.append(f"<h4>{escape(section.title)}</h4>{lines}{end}")
    return f'<div class="symdp-derivation">{"".join(parts)}</div>'


def text_of(section: Section, width: int, ascii_only: bool) -> str:
    """Return a section as lines of text."""
    lines = [transliterated(section.title) if ascii_only else section.title]
    for line in section.lines:
        for own in line.text(ascii_only):
            is_formula = line.right is not None and not own.startswith("  (")
            lines.append(wrapped(f"  {own}", width) if is_formula else _filled(own, width))
    if legend := section.legend_text(ascii_only):
        lines.append(_filled(f"where {legend}", width))
    return "\n".join(lines)


def _filled(words: str, width: int) -> str:
    """Break a sentence between words."""
    return fill(
        words.strip(), width, initial_indent="  ", subsequent_indent="      ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def latex_of(section: Section) -> str:
    """Return a section as a paragraph and one align."""
    found = [rf"\paragraph{{{latex_words(section.title)}}}"]
    rows: list[str] = []
    for said, own in _blocks(section):
        if said and (rows or own):
            rows += [rf"\intertext{{{said}}}"] if rows else []
            found += [] if rows else [said]
        elif said:
            found.append(said)
        rows += [f"{row} \\\\" for row in own]
    if rows:
        while rows and rows[-1].startswith(r"\intertext"):
            rows.pop()
        rows[-1] = rows[-1].removesuffix(r" \\")
        found += [r"\begin{align*}", *rows, r"\end{align*}"]
    if section.legend:
        legend = "; ".join(f"${latex(name)}$, {latex_words(said)}" for name, said in section.legend)
        found.append(f"Here {legend}.")
    return "\n".join([*found, ""])


def _blocks(section: Section) -> Iterator[tuple[str, list[str]]]:
    """Yield words that come first, and rows of formulas below them."""
    lefts = [measure(s.left) for s in section.lines if s.left is not None and s.right is not None]
    width = PAGE - max(lefts, default=0) - 3
    for line in section.lines:
        rows = list(line.latex_rows(width))
        words = latex_words(line.words)
        if not rows:
            name = f"${latex(line.left)}$: " if line.left is not None else ""
            yield f"{name}{words}", []
        elif len(rows) > 1 or (line.right and measure(line.right) + len(line.words) > width):
            yield words, rows
        else:
            yield "", [rf"{rows[0]} \quad \text{{{words}}}" if words else rows[0]]


def _math(line: Line) -> str:
    if line.right is None:
        words = f"<mo>:</mo><mspace width='0.4em'/><mtext>{escape(line.words)}</mtext>"
        return line.name().replace("</mrow></math>", f"{words}</mrow></math>")
    return line.mathml()


def _html(line: Line) -> str:
    words = f" <span>{escape(line.words)}</span>" if line.words else ""
    return words.strip() if line.left is None else f"{line.mathml()}{words}"
