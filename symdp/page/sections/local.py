"""Sections of a local randomizer: its laws, what they have in common, and the bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from symdp.derive.without_pair.local import EPSILON, MOST_SHOWN, TILT, LocalDerivation
from symdp.page.document import Line, Section, sentence
from symdp.page.formula import equation, finished, layout, read
from symdp.page.node import in_words, text
from symdp.questions.shuffled.worst import worst_ends

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MEANINGS = {
    "R_a": "the law of the answer at the first input",
    "R_b": "the law of the answer at the last input",
    "ω": "the smallest density of the answer, of all inputs",
    "γ": "the mass of ω",
    "L": "one answer's part of the sum that bounds δ; 0 with probability 1 − γ",
    "φ": "the transform E e^{zL}",
    "z": "the argument of the transform",
    "ε": "the privacy parameter",
    "δ": "the largest P(S) − e^ε·Q(S) over events S",
    "t": "where the line of the integral crosses the real axis",
    "n": "the number of people, the protected one among them",
}


def local_sections(d: LocalDerivation) -> list[Section]:
    """Return the sections of a local randomizer, each with its legend."""
    y = layout(d.mechanism.variable)
    x = layout(d.source.input)
    described = [
        Section("mechanism", "Mechanism", tuple(_laws(d))),
        Section("loss", "What all laws have in common", tuple(_common(d))),
        Section("cumulants", "One answer's part", tuple(_part(d))),
        Section("composed", "The bound on shuffled answers", tuple(_bound(d))),
    ]
    taken = {str(d.mechanism.variable), str(d.source.input), str(TILT), "n"}
    taken |= {parameter.name for parameter in d.mechanism.declared}
    meanings = dict(_MEANINGS)
    meanings[text(y)] = "the answer"
    meanings[text(x)] = "the input"
    for parameter in d.mechanism.declared:
        meanings[text(layout(parameter.symbol))] = f"a parameter {parameter.rule}"
    return [finished(section, taken).explained(meanings) for section in described]


def _laws(d: LocalDerivation) -> Iterator[Line]:
    source = d.source
    if isinstance(source.density, tuple):
        yield from _listed(source.density)
    else:
        y = layout(d.mechanism.variable)
        yield equation(read("R_{}({})", layout(source.input), y), source.density)
    inputs = ", ".join(str(value) for value in source.inputs[:MOST_SHOWN])
    if source.is_interval:
        yield sentence(in_words(f"inputs from {source.inputs[0]} to {source.inputs[1]}"))
    elif not isinstance(source.density, tuple):
        if len(source.inputs) > MOST_SHOWN:
            inputs += ", …"
        yield sentence(in_words(f"inputs {inputs}"))
    yield sentence("protects: one person's input changed; every other answer may have any law")


def _listed(laws: tuple[tuple[sp.Expr, ...], ...]) -> Iterator[Line]:
    if len(laws) > MOST_SHOWN or len(laws[0]) > MOST_SHOWN:
        yield sentence(f"{len(laws)} laws on {len(laws[0])} outcomes, given as a list")
        return
    for number, law in enumerate(laws):
        yield equation(f"R_{number}", sp.Tuple(*law))


def _common(d: LocalDerivation) -> Iterator[Line]:
    if d.why_least:
        yield sentence(in_words(d.why_least))
    if not d.parts:
        yield sentence("ω(y) = inf R_x(y) over all inputs x")
        return
    if d.is_list:
        yield from _masses(d)
    else:
        yield _cases(d, "ω", [part.least for part in d.parts])
    yield equation("γ", d.common_mass)


def _masses(d: LocalDerivation) -> Iterator[Line]:
    """Yield ω of outcomes, those of one mass together."""
    counts: dict[sp.Expr, int] = {}
    for part in d.parts:
        counts[part.least] = counts.get(part.least, 0) + part.count
    for mass, count in list(counts.items())[:MOST_SHOWN]:
        plural = "s" * (count > 1)
        yield equation("ω", mass, words=f"of {count} outcome{plural}")
    if len(counts) > MOST_SHOWN:
        yield sentence(f"and {len(counts) - MOST_SHOWN} masses more")


def _part(d: LocalDerivation) -> Iterator[Line]:
    first, last = (d.source.inputs[0], d.source.inputs[-1])
    yield sentence("L = (R_a − e^ε·R_b)/ω, at an answer that is drawn from ω/γ; 0 without one")
    if not d.parts:
        return
    yield sentence(in_words(f"for the inputs a = {first} and b = {last}"))
    values = [part.value for part in d.parts]
    if None in values:
        yield sentence("outputs that ω has nothing of are counted apart: (R_a − e^ε·R_b)₊ of each")
    if d.is_list:
        yield from _losses(d)
    else:
        yield _cases(d, "L", values)
    yield equation(read("φ({})", layout(TILT)), d.transform)


def _losses(d: LocalDerivation) -> Iterator[Line]:
    """Yield the values of L of a list, each with its probability."""
    law: dict[sp.Expr, sp.Expr] = {}
    for part in d.parts:
        value = part.value
        if value is not None:
            law[value] = law.get(value, sp.S.Zero) + part.count * part.least
    for value, mass in list(law.items())[:MOST_SHOWN]:
        yield equation(read("P(L = {})", layout(value)), mass)
    if len(law) > MOST_SHOWN:
        yield sentence(f"and {len(law) - MOST_SHOWN} values more")


def _cases(d: LocalDerivation, name: str, values: Sequence[sp.Expr | None]) -> Line:
    """Return one line for a value that has different forms between different outputs."""
    y = d.mechanism.variable
    cases: list[tuple[sp.Expr, sp.Expr]] = []
    for part, value in zip(d.parts, values, strict=True):
        if value is None:
            continue
        if cases and cases[-1][0] == value:
            cases.pop()
        cases.append((value, part.upper))
    conditions = [(value, y < upper) for value, upper in cases[:-1]]
    conditions.append((cases[-1][0], sp.true))
    return equation(read(f"{name}({{}})", layout(y)), sp.Piecewise(*conditions))


def _bound(d: LocalDerivation) -> Iterator[Line]:
    height = sp.Symbol("s", real=True)
    point = sp.Symbol("t", positive=True) + sp.I * height
    transform = sp.Function("φ")(point)
    integrand = transform**d.people / point**2
    integral = sp.Integral(integrand, (height, -sp.oo, sp.oo)) / (2 * sp.pi * d.people)
    yield equation(read("δ({})", layout(EPSILON)), integral, relation="≤")
    yield sentence("for any t > 0; of all ordered pairs of inputs the largest bound counts")
    if d.source.is_interval:
        yield sentence(in_words(_worst(d)))


def _worst(d: LocalDerivation) -> str:
    """Return which pair of inputs is the worst one, where a rule tells it."""
    lower, upper = d.source.inputs
    fact = worst_ends(d.mechanism)
    if fact:
        return f"the largest is that of {lower} and {upper}: {fact.reason}"
    return "which pair that is was not proved"
