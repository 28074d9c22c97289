"""A derivation for people: text, LaTeX, MathML and HTML of its sections, and its sources."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING

import sympy as sp

from symdp.derive.section import Line, Section, rounded
from symdp.emit.latex import PAGE, latex, latex_words, measure
from symdp.emit.mathml import mathml
from symdp.emit.plain_text import WIDTH, transliterated, wrapped
from symdp.errors import InputError, suggestion

if TYPE_CHECKING:
    from symdp.derive.privacy_loss import PrivacyLoss
    from symdp.model.mechanism import Mechanism

_BRIEF = 98  # columns of a line of three that stand for a derivation
_WIDE = 'style="overflow-x: auto; overflow-y: hidden; margin: 0.4em 0"'


class Presented:
    """What has sections of formulas, and so a text, LaTeX, MathML and HTML."""

    mechanism: Mechanism
    direction: str

    def sections(self, order: int = 2) -> list[Section]:
        """Return the sections, expansions up to `order`, each with its legend."""
        raise NotImplementedError

    def chosen(self, order: int, only: tuple[str, ...] = ()) -> list[Section]:
        """Return the sections of some keys, all where none is given.

        Raises
        ------
        InputError
            For a key that no section has.
        """
        found = [section for section in self.sections(order) if section.lines]
        keys = list(dict.fromkeys(section.key for section in found))
        for key in only:
            if key not in keys:
                hint = suggestion(key, keys) or f"; there are {', '.join(keys)}"
                raise InputError(f"no section is called {key!r:.40}{hint}")
        return [section for section in found if not only or section.key in only]

    @property
    def headline(self) -> str:
        """What was derived, in one line."""
        return f"{self.mechanism!r}, {self.direction} direction"

    def show(self, *only: str, order: int = 2) -> str:
        """Return sections as text, such as "series" or "cumulants".

        Examples
        --------
        >>> import symdp
        >>> shown = symdp.derive(symdp.mechanisms.gaussian).show("composed")
        >>> print(shown.splitlines()[1])
          δ(ε) = Φ((n − 2εσ²)/(2σ√n)) − e^εΦ(−(2εσ² + n)/(2σ√n))
        """
        return "\n\n".join(text_of(s, WIDTH, False) for s in self.chosen(order, only))

    def to_text(
        self,
        order: int = 2,
        only: tuple[str, ...] = (),
        width: int = WIDTH,
        ascii_only: bool = False,
    ) -> str:
        """Return the derivation as text of `width` columns, expansions up to `order`."""
        first = transliterated(self.headline) if ascii_only else self.headline
        parts = [first, *(text_of(s, width, ascii_only) for s in self.chosen(order, only))]
        return "\n\n".join(parts)

    def to_latex(self, order: int = 2, only: tuple[str, ...] = ()) -> str:
        """Return the derivation as LaTeX: for each section a paragraph and one align (amsmath)."""
        parts = [f"% {transliterated(self.headline)}", r"\allowdisplaybreaks"]
        return "\n".join([*parts, *(latex_of(s) for s in self.chosen(order, only))])

    def to_mathml(self, order: int = 2, only: tuple[str, ...] = ()) -> str:
        """Return the formulas as MathML elements, one a line."""
        lines = (
            line for s in self.chosen(order, only) for line in s.lines if line.left is not None
        )
        return "\n".join(_math(line) for line in lines)

    def _repr_latex_(self) -> str:
        rows = [row for s in self.chosen(1) for line in s.lines for row in line.latex_rows()]
        return "$$\n\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}\n$$"

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{escape(self.headline)}</b></p>"]
        for section in self.chosen(1):
            lines = "".join(
                f'<div style="overflow-x: auto">{_html(n)}</div>' for n in section.lines
            )
            legend = "; ".join(
                f"<math>{mathml(name)}</math>, {escape(meaning)}"
                for name, meaning in section.legend
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


def in_brief(d: PrivacyLoss) -> str:
    """Return three lines: what was derived, the loss, and K if it was asked for already.

    Examples
    --------
    >>> import symdp
    >>> symdp.derive(symdp.mechanisms.gaussian)
    <Derivation of gaussian(sigma), remove direction
      ell(x) = (2*x - 1)/(2*sigma**2)
      K(t): ask for .cgf>
    """
    loss = f"  ell({d.variable}) = {plain(d.loss)}"
    last = "  K(t): ask for .cgf"
    if "cgf" in vars(d):
        form = d.cgf.expression
        last = f"  K({d.cgf.tilt}) = {d.cgf.form if form is None else plain(form)}"
    first = f"<Derivation of {d.mechanism.summary}, {d.direction} direction"
    return "\n".join([first, *(_cut(line) for line in (loss, last))]) + ">"


def plain(expression: sp.Basic) -> str:
    """Return an expression as SymPy's text; long rationals are rounded.

    Examples
    --------
    >>> plain(sp.Rational(1, 3)), plain(sp.Rational(10**70 + 1, 3 * 10**70))
    ('1/3', '0.333333333333')
    """
    return str(rounded(expression))


def _cut(line: str) -> str:
    return line if len(line) < _BRIEF else f"{line[: _BRIEF - 1]}…"


# What the dominating pair of a sampling scheme rests on.
_SCHEMES = {
    "poisson": ("SPA Lemma 3", "IND Lemma 8"),
    "without_replacement": ("BBG Thm 8", "ZDW"),
    "with_replacement": ("BBG Thm 10", "ZDW"),
    "truncated_poisson": ("ZDW",),
    "random_allocation": ("FS", "BB"),
}


def citations(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the sources of a derivation: its mechanism, its sampling, the two expansions."""
    own = (mechanism.citation,) if mechanism.citation else ()
    scheme = _SCHEMES[mechanism.sampling.scheme] if mechanism.sampling else ()
    return (*own, *scheme, "SPA (28)", "SPA (59)", "EA Prop 3.2")
