"""The document of a derivation: its sections, each made by itself, and what their symbols mean."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

import mpmath
import sympy as sp

from symdp.density.signs import random_values
from symdp.derive.child import or_reason
from symdp.derive.derivation import PairDerivation
from symdp.derive.kinds import CasesDerivation
from symdp.derive.without_pair.epoch import EpochDerivation
from symdp.derive.without_pair.local import LocalDerivation
from symdp.derive.without_pair.vectors import FIRST, SECOND, VectorDerivation
from symdp.errors import AccuracyError, InputError, suggestion
from symdp.interrupt import attempt
from symdp.model.dominating import is_on_vectors
from symdp.model.family import Family
from symdp.model.local import Local
from symdp.model.relation import is_local
from symdp.model.sampling import Noise, Radial, RenyiCurve
from symdp.page.document import (
    Block,
    Command,
    Formulas,
    Heading,
    Legend,
    Line,
    Section,
    Sentence,
    Table,
    one_legend,
    sentence,
    token,
)
from symdp.page.formula import equation, finished, layout, read
from symdp.page.html import html_blocks, math_line
from symdp.page.independent import judged, program_of
from symdp.page.latex import aligned, latex_blocks, latex_rows
from symdp.page.markdown import markdown_blocks
from symdp.page.node import EMPTY, in_words, text, transliterated
from symdp.page.sections.local import local_sections
from symdp.page.sections.loss import (
    ASSUMED,
    DISJOINT,
    OF_INTEGRAL,
    cgf_section,
    cumulant_lines,
    facts_section,
    loss_section,
    masses_of,
    mechanism_section,
    range_ends,
)
from symdp.page.sections.series import (
    asymptotics_section,
    composed_section,
    corrections,
    own_section,
    tails_section,
)
from symdp.page.sections.step_log import step_log
from symdp.page.text import to_text as text_of
from symdp.tolerances import SHORT_TIME

if TYPE_CHECKING:
    from symdp.derive.printed import Derivation
    from symdp.derive.records import HasCGF
    from symdp.model.mechanism import Mechanism


@cache
def _words() -> dict[str, dict[str, str]]:
    """Return what symbols mean, in every section and in those of one key."""
    return tomllib.loads(files("symdp.page").joinpath("meanings.toml").read_text(encoding="utf-8"))


def meanings(d: HasCGF, key: str, extra: dict[str, str]) -> dict[str, str]:
    """Return what the symbols of one section mean."""
    tilt = token(layout(d.cgf.tilt))
    words = _words()["common"] | {tilt: "the tilt"} | extra | _words().get(key, {})
    words |= {f"{tilt}₋": "where K begins to be finite", f"{tilt}₊": "where it ends"}
    for p in d.mechanism.declared:
        words[token(layout(p.symbol))] = f"a parameter {p.rule}"
    return words


def explained(d: HasCGF, sections: list[Section], extra: dict[str, str]) -> list[Section]:
    """Return sections in their final form, with their legends."""
    taken = {str(d.cgf.tilt.name), *(p.name for p in d.mechanism.declared), *extra}
    return [finished(s, taken).explained(meanings(d, s.key, extra)) for s in sections]


_Reading = tuple[str, ...]
_WHOLE_TILTS = 3  # of an epoch, at which K is shown


def sections(d: Derivation, order: int) -> list[Section]:
    """Return the sections, expansions up to `order`, each with its legend."""
    if isinstance(d, VectorDerivation):
        return _of_vectors(d, order)
    if isinstance(d, LocalDerivation):
        return local_sections(d)
    if isinstance(d, EpochDerivation):
        return _of_epoch(d, order)
    if isinstance(d, PairDerivation):
        return _of_steps(d, order)
    return [section for case in d.cases for section in case.sections(order)]


def _of_steps(d: PairDerivation, order: int) -> list[Section]:
    makers: tuple[tuple[str, str, Callable[[], list[Section]]], ...] = (
        ("mechanism", "Mechanism", lambda: [mechanism_section(d)]),
        ("facts", "Facts", lambda: [facts_section(d)]),
        ("loss", "Privacy loss", lambda: [loss_section(d)]),
        ("cumulants", "Cumulant generating function", lambda: [cgf_section(d, order)]),
        ("series", "Series", lambda: corrections(d, order)),
        ("series", "For this mechanism", lambda: [own_section(d)]),
        ("asymptotics", "Many steps", lambda: [asymptotics_section(d)]),
        ("tails", "Tail constants", lambda: [tails_section(d, d.tails)]),
        ("composed", "Composed δ as a finite formula", lambda: [composed_section(d)]),
    )
    if d.is_disjoint:  # nothing that rests on a finite loss
        makers = makers[:3]
    sections_found = [
        section for key, title, make in makers for section in or_reason(make, _absent(key, title))
    ]
    return explained(d, sections_found, symbols_of(d))


def symbols_of(d: PairDerivation) -> dict[str, str]:
    """Return what the symbols mean that this derivation alone has."""
    meaning = "the mass by which a density is divided"
    return {
        token(layout(d.variable)): "the output of the mechanism",
        token(layout(d.pld_density.loss)): "a loss",
        **{token(layout(mass)): meaning for mass in masses_of(d)},
    }


def _absent(key: str, title: str) -> Callable[[str], list[Section]]:
    """What stands for a section that was not found: its title, and a line that says why."""
    return lambda why: [Section(key, title, (sentence(f"not found: {in_words(why)}"),))]


def _of_epoch(epoch: EpochDerivation, order: int) -> list[Section]:
    """One step, one epoch, its moments, the series."""
    d = epoch.one_step
    sign = -1
    whole_tilts = range(0)
    if epoch.direction == "remove":
        sign = 1
        whole_tilts = range(1, _WHOLE_TILTS + 1)
    x = layout(d.variable)
    z = layout(epoch.cgf.tilt)
    step = [equation(read("W({})", x), epoch.ratio)]
    step += [equation(read("Q(W = {})", value), mass) for value, mass in epoch.atoms]
    step.append(equation(read("φ({})", epoch.rate), epoch.transform))
    of_epoch = [
        sentence(f"Y is the sum of {epoch.steps} independent copies of W under Q"),
        equation("ℓ", sign * sp.log(sp.Symbol("Y", positive=True) / epoch.steps)),
    ]
    ends = range_ends(d)
    if d.loss_range is not None and sign < 0:
        ends = (-d.loss_range[1], -d.loss_range[0])
    if d.loss_range is not None or sign > 0:
        of_epoch += [
            equation(name, end) for name, end in zip(("inf ℓ", "sup ℓ"), ends, strict=True)
        ]
    transform = [equation(read("e^{K({})}", z), epoch.moment)]
    for tilt in whole_tilts:
        try:
            transform.append(equation(read("K({})", sp.Integer(tilt)), epoch.cgf_at(tilt)))
        except InputError:
            break
    listed = [
        Section("epoch", "One step", tuple(step)),
        Section("epoch", f"One epoch of {epoch.steps} steps", tuple(of_epoch)),
        Section("epoch", "Moment generating function", tuple(transform)),
        *corrections(epoch, order),
    ]
    extra = {
        token(layout(d.variable)): "the output of one step",
        token(layout(epoch.rate)): "the argument of the transform φ of W under Q",
    }
    return explained(epoch, listed, extra)


def _of_vectors(d: VectorDerivation, order: int) -> list[Section]:
    """The loss at two distances, their law, K as an integral over it, the series."""
    t = layout(d.cgf.tilt)
    at = (FIRST, SECOND)
    q = sp.Function("q")(*at)
    loss = sp.Function("ℓ")(*at)
    law = [
        equation("ℓ(r₁, r₂)", d.loss),
        equation("q(r₁, r₂)", d.density / sp.Symbol("N")),
        equation("N", d.normaliser),
        sentence("for |r₁ − r₂| ≤ D ≤ r₁ + r₂, D the length of the shift; with the record, e^ℓq"),
    ]
    named = [equation(read("e^{K({})}", t), d.moment(q, loss))]
    named += [
        sentence(f"no closed form of K was found: {in_words(d.cgf.reason)}"),
        *cumulant_lines(d, order + 1),
    ]
    listed = [
        mechanism_section(d),
        facts_section(d),
        Section("loss", "Privacy loss", tuple(law)),
        Section("cumulants", "Cumulant generating function", tuple(named)),
        *corrections(d, order),
    ]
    extra = {
        token(layout(d.mechanism.variable)): "a distance",
        "g": "the density at a distance, but for a factor",
        "q": "the density of both distances without the record",
        "N": "what makes q a density",
    }
    return explained(d, listed, extra)


def chosen(
    d: Derivation, order: int, only: tuple[str, ...] = (), whole: bool = False
) -> list[Section]:
    """Return what is of this mechanism alone, the `whole`, or sections and formulas by name.

    A formula is called as its left side begins: K, ell, omega, c_1.  An unknown name is refused.
    """
    filled: list[Section] = [section for section in d.sections(order) if section.lines]
    if not only:
        return [section for section in filled if whole or not section.is_general]
    keys = list(dict.fromkeys(section.key for section in filled))
    wanted: list[Section] = []
    for key in only:
        by_key = [section for section in filled if section.key == key]
        mine = [s for s in filled if not s.is_general] + [s for s in filled if s.is_general]
        by_name = (
            [formula for formula in s.lines if _name_of(formula) == transliterated(key)]
            for s in mine
        )
        named = next(filter(None, by_name), [])
        if not by_key and not named and isinstance(d, PairDerivation) and d.is_disjoint:
            wanted.append(Section(key, "", (sentence(DISJOINT),)))
            continue
        if not by_key and not named:
            hint = suggestion(key, keys) or f"; there are {', '.join(keys)}"
            raise InputError(f"no section or formula is called {key!r:.40}{hint}")
        if named and not by_key:
            named = named + _definitions_of(named, filled)
        bare = tuple(replace(line, words="") for line in named if line.right is not None)
        wanted += by_key or [Section(key, "", bare)]
    return wanted


def _definitions_of(lines: Sequence[Line], sections: Sequence[Section]) -> list[Line]:
    """Return the lines that say what functions in formulas stand for, as G in K."""
    functions: set[str] = set()
    for line in lines:
        if line.expression is not None:
            applied = line.expression.atoms(sp.core.function.AppliedUndef)
            functions |= {str(function.func) for function in applied}
    every = (line for section in sections for line in section.lines)
    return [line for line in every if line not in lines and _name_of(line) in functions]


def _name_of(line: Line) -> str:
    """Return the name with which a left side begins; nothing where something stands above it."""
    if line.left:
        first = next((node for node in line.left.walk() if node.kind != "row"), None)
    else:
        first = None
    is_name = first is not None and (first.kind == "name" or first.parts[2:] == (EMPTY,))
    if first is not None and is_name:
        return transliterated(text(first))
    return ""


@lru_cache(maxsize=64)
def doubt(mechanism: Mechanism) -> str:
    """Return what shows that a density is none, at drawn values of free parameters; else nothing.

    Who derives, and asks for no number, learns here what `delta` would refuse.
    """
    from symdp import mechanisms

    if is_on_vectors(mechanism) or is_local(mechanism):
        return ""  # of a density but for a factor, or of one for each input
    plain = replace(mechanism.template or mechanism, sampling=None, relation=None)
    if plain.name in mechanisms.names() and plain.key == getattr(mechanisms, plain.name).key:
        return ""  # tests hold what is built in against its definition
    from symdp.balls.density import checked_masses

    drawn = random_values(mechanism.parameters.values(), 1, ())
    names = {symbol: name for name, symbol in mechanism.parameters.items()}
    values = {names[symbol]: value for symbol, value in drawn.items()}
    with suppress(InputError, AccuracyError):
        concrete = replace(mechanism, sampling=None, relation=None)(**values)
        try:
            attempt(lambda: checked_masses(concrete), None, SHORT_TIME)
        except InputError as error:
            at = ", ".join(f"{name} = {value}" for name, value in values.items())
            if at:
                return f"no density: {error!s} (at {at})"
            return f"no density: {error!s}"
    return ""


def _head(d: Derivation) -> list[Block]:
    reason = doubt(d.cases[0].mechanism)
    if reason:
        return [Sentence(f"warning: {reason}", "warning")]
    return []


def blocks(
    d: Derivation, order: int, only: tuple[str, ...] = (), whole: bool = False
) -> list[Block]:
    """Return the sections as blocks of a document, with one legend for all of them."""
    if isinstance(d, CasesDerivation):
        return blocks_of_cases(d.cases, order, only, whole)
    listed = chosen(d, order, only, whole)
    parts: list[Block] = []
    for section in listed:
        parts += replace(section, legend=()).blocks()
    legend = one_legend(listed)
    if legend and len(listed) > 1:
        parts.append(Heading(4, "Symbols"))
    if legend:
        parts.append(Legend(legend))
    return parts


def blocks_of_cases(
    cases: Sequence[Derivation], order: int, only: tuple[str, ...] = (), whole: bool = False
) -> list[Block]:
    """Return the cases of one mechanism as blocks: what all of them say, then what each one does.

    A line belongs to all cases where it reads the same in each of them; a section whose lines lean
    on one another stands as a whole.
    """
    listed = [_of_any_case(chosen(d, order, only, whole)) for d in cases]
    readings = [_readings(sections) for sections in listed]
    common = set.intersection(*readings)
    conditions = _conditions([d.mechanism for d in cases])
    parts = _blocks_under("In every case", _parted(listed[0], common, is_common=True))
    for first, alike in _alike(readings).items():
        word = "Cases"
        if len(alike) == 1:
            word = "Case"
        title = f"{word} {' and '.join(str(number + 1) for number in alike)}"
        condition = "; ".join(conditions[number] for number in alike)
        parts += _blocks_under(
            f"{title}: {condition}", _parted(listed[first], common, is_common=False)
        )
    legend = one_legend([section for sections in listed for section in sections])
    if legend:
        return [*parts, Heading(4, "Symbols"), Legend(legend)]
    return parts


def _of_any_case(sections: Sequence[Section]) -> list[Section]:
    """Return sections without what a title says, and which integral of a case has no form."""
    shortened = []
    for section in sections:
        lines = [
            replace(line, words=line.words.partition(OF_INTEGRAL)[0])
            for line in section.lines
            if not line.words.startswith(ASSUMED)
        ]
        shortened.append(replace(section, lines=tuple(lines)))
    return shortened


def _alike(readings: Sequence[set[_Reading]]) -> dict[int, list[int]]:
    """Return the cases that read the same, by the first of them."""
    groups: dict[int, list[int]] = {}
    for number, reading in enumerate(readings):
        first = next(k for k, other in enumerate(readings) if other == reading)
        groups.setdefault(first, []).append(number)
    return groups


_WHOLE_SECTIONS = ("series", "asymptotics", "composed")  # whose lines lean on one another


def _readings(sections: Sequence[Section]) -> set[_Reading]:
    return {_reading(section, line) for section in sections for line in section.lines}


def _reading(section: Section, line: Line) -> _Reading:
    """Return a line as it is read, or the section where its lines lean on one another."""
    if section.key in _WHOLE_SECTIONS:
        return (section.title, *(part for other in section.lines for part in _as_read(other)))
    return (section.title, *_as_read(line))


def _as_read(line: Line) -> _Reading:
    return (line.relation, line.words, line.note, *(text(node) for node in line.nodes()))


def _parted(
    sections: Sequence[Section], common: set[_Reading], *, is_common: bool
) -> list[Section]:
    """Return the sections with the lines that all cases have, or with the others."""
    parted = []
    for section in sections:
        lines = [x for x in section.lines if (_reading(section, x) in common) is is_common]
        if lines:
            parted.append(replace(section, lines=tuple(lines), legend=()))
    return parted


def _blocks_under(title: str, sections: Sequence[Section]) -> list[Block]:
    blocks_of_sections = [block for section in sections for block in section.blocks()]
    return [Heading(3, title), *blocks_of_sections]


def _conditions(mechanisms: Sequence[Mechanism]) -> list[str]:
    """Return what is assumed in each case and not in all of them."""
    texts = []
    for mechanism in mechanisms:
        values = (f"{name} = {value}" for name, value in mechanism.bound)
        texts.append([*mechanism.assumptions, *values])
    shared = set.intersection(*map(set, texts))
    return [" and ".join(part for part in parts if part not in shared) for parts in texts]


def to_text(
    d: Derivation,
    order: int,
    only: tuple[str, ...],
    width: int,
    ascii_only: bool = False,
    headline: bool = True,
    whole: bool = False,
) -> str:
    """Return a derivation as text of `width` columns."""
    head: list[Block] = []
    if headline:
        first = d.headline
        if ascii_only:
            first = transliterated(first)
        head = [*_head(d), Sentence(first)]
    return text_of([*head, *blocks(d, order, only, whole)], width, ascii_only)


def to_latex(d: Derivation, order: int, only: tuple[str, ...] = (), whole: bool = False) -> str:
    """Return a derivation as LaTeX: for each section a heading and one align (amsmath)."""
    parts = blocks(d, order, only, whole)
    if all(isinstance(block, Formulas) for block in parts):  # what was asked for by name
        return latex_blocks(parts)
    head = f"% {transliterated(d.headline)}\n{_PACKAGES}\\allowdisplaybreaks\n"
    return head + latex_blocks([*_head(d), *parts])


_PACKAGES = "% packages: amsmath; fontenc with option T1\n"


def to_mathml(d: Derivation, order: int, only: tuple[str, ...] = (), whole: bool = False) -> str:
    """Return the formulas as MathML elements, one a line."""
    elements = []
    reason = doubt(d.cases[0].mechanism)
    if reason:
        elements.append(f"<!-- {escape(reason)} -->")
    for case in d.cases:
        for section in chosen(case, order, only, whole):
            elements += [math_line(line) for line in section.lines if line.left is not None]
    return "\n".join(elements)


def to_document(text: str) -> str:
    """Return derivations in LaTeX as a document that pdflatex compiles as it stands."""
    head = "\\documentclass{article}\n\\usepackage{amsmath}\n\\usepackage[T1]{fontenc}\n"
    return f"{head}\\begin{{document}}\n{text}\\end{{document}}\n"


def check_blocks(d: PairDerivation) -> list[Block]:
    """Return what the formulas say at numbers, beside quadratures, and a program of the latter.

    Free parameters are drawn. The quadratures take P and Q as they are written, and mpmath alone.
    """
    drawn = _values_of(d)
    rows = judged(d, drawn)
    at = ", ".join(f"{symbol} = {value}" for symbol, value in drawn.items())
    shown = []
    for row in rows:
        value, truth = (mpmath.nstr(number, _SHOWN) for number in (row.value, row.truth))
        at_place = row.at.replace("-", "−")
        shown.append((row.name, at_place, value, truth, str(row.digits)))
    caption = "Formulas beside quadratures of P and Q as they are written"
    if at:
        caption += f", at {at}"
    head = ("of", "at", "by formula", "by quadrature", "digits")
    return [
        Heading(4, "Checks"),
        Sentence(f"{caption}:"),
        Table(head, shown, numbers=(2, 3, 4)),
        Sentence("This program of mpmath repeats the quadratures, and takes nothing from above:"),
        Command(program_of(d, drawn, rows)),
    ]


def notebook_latex(d: Derivation) -> str:
    """Return what a notebook shows where it prints LaTeX."""
    listed = [section for case in d.cases for section in chosen(case, 1)]
    rows = (row for s in listed for line in s.lines for row in latex_rows(line))
    return f"$${aligned(rows)}$$"


def notebook_html(d: Derivation) -> str:
    """Return what a notebook shows."""
    head = html_blocks([*_head(d), Sentence(d.headline, "strong")])
    return f'<div class="symdp-derivation">{head}{html_blocks(blocks(d, 1))}</div>'


_SHOWN = 13  # digits of what is checked: a table of them fits a page
_DESCRIBED = "Derived by symdp from its density, and checked below."
_COUNT = 8  # steps: of so few truth may be out of reach


def to_page(d: PairDerivation, source: str, values: Mapping[str, str], order: int = 2) -> str:
    """Return a derivation of a new mechanism as a page that MyST executes, as the built-ins have.

    What is printed comes from the sections, and every cell holds the package against something
    that it did not come from: numerical integrals, differences, proofs.
    """
    if d.pair.alternatives:
        raise InputError("a public choice among pairs has no page: derive one of them")
    parts_by_name: dict[str, list[str]] = {
        "mechanism": [],
        "loss": [],
        "cumulants": [],
        "others": [],
    }
    for section in d.sections(order):
        key = section.key
        if key == "facts":
            key = "mechanism"
        parts_by_name.get(key, parts_by_name["others"]).append(markdown_blocks(section.blocks(2)))
    page = files("symdp.page").joinpath("derivation.md").read_text(encoding="utf-8")
    return Template(page).substitute(
        {name: "\n\n".join(parts) for name, parts in parts_by_name.items()},
        title=d.mechanism.title or f"The mechanism {d.mechanism.name}",
        description=d.mechanism.description or _DESCRIBED,
        source=source,
        direction=d.direction,
        values=repr(dict(_drawn(d)) | dict(values)),
        steps=markdown_blocks(step_log(d).blocks(2)),
        count=_COUNT,
    )


def _values_of(d: PairDerivation) -> dict[sp.Symbol, sp.Expr]:
    """Return exact numbers inside their domains for the free parameters."""
    return dict(random_values(d.mechanism.parameters.values(), 1, d.below_one))


def _drawn(d: PairDerivation) -> Iterator[tuple[str, str]]:
    """Yield the free parameters, each with an exact number inside its domain."""
    names: dict[sp.Symbol, str] = {s: name for name, s in d.mechanism.parameters.items()}
    yield from ((names[symbol], str(value)) for symbol, value in _values_of(d).items())


def mechanism_latex(mechanism: Mechanism) -> str:
    """Return the densities of P and Q, and the sampling, as one displayed line."""
    x = sp.latex(mechanism.variable)
    source = mechanism.source
    if isinstance(source, Noise):
        f = sp.latex(source.density)
        size = sp.latex(source.sensitivity)
        lines = [f"Q({x}) = f({x}) = {f}", f"P({x}) = f({x} - {size})"]
    elif isinstance(source, RenyiCurve):
        bound = r"\text{a table}"
        if not isinstance(source.divergence, tuple):
            bound = sp.latex(source.divergence)
        lines = [rf"D_{{{x}}} \le {bound}"]
    elif isinstance(source, Local):
        lines = source.latex_lines(mechanism.variable)
    elif isinstance(source, Family):
        lines = [f"K({x}) = {sp.latex(source.log_moment)}"]
    elif isinstance(source, Radial):
        f = sp.latex(source.density)
        size = sp.latex(source.sensitivity)
        lines = [rf"g({x}) \propto {f}", rf"d = {sp.latex(source.dimension)}", f"D = {size}"]
    else:
        lines = [f"{name}({x}) = {sp.latex(getattr(source, name))}" for name in ("P", "Q")]
        for value, masses in source.atoms:
            outcome = rf"\{{{sp.latex(value)}\}}"
            for name, mass in zip("PQ", masses, strict=True):
                lines.append(f"{name}({outcome}) = {sp.latex(mass)}")
    if mechanism.sampling:
        scheme = mechanism.sampling.scheme.replace("_", r"\ ")
        lines.append(rf"\text{{{scheme} sampling}},\ q = {sp.latex(mechanism.sampling.rate)}")
    return r"$\displaystyle " + r",\quad ".join(lines) + "$"
