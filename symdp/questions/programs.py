"""From a derivation to an accountant that stands alone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import sympy as sp

from symdp.arguments import instance
from symdp.derive.derivation import PairDerivation, derive_pair
from symdp.derive.printed import Derivation
from symdp.emit.standalone import LANGUAGES, Argument, Case, Condition, Model, Piece, to_code
from symdp.emit.standalone.ends import told_from_ends
from symdp.errors import InputError, suggestion
from symdp.model.assumption import compared
from symdp.model.sampling import Noise
from symdp.questions.steps.accounted import answering, has_one_law
from symdp.questions.steps.smaller_shifts import of_smaller_shifts

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.model.relation import Protection

_WIDTH = 92  # characters of a line of a program's notes


def to_program(derivation: Derivation, language: str) -> str:
    """Return a file that accounts for a mechanism without symdp, see `Derivation.to_program`."""
    instance(derivation, Derivation, "it is no derivation: give symdp.derive(mechanism)")
    if language not in LANGUAGES:
        hint = suggestion(language, LANGUAGES) or f"; there are {', '.join(LANGUAGES)}"
        raise InputError(f"no program in {language!r:.40}{hint}")
    mechanism = derivation.mechanism
    cases = [case for case in derivation.cases if isinstance(case, PairDerivation)]
    if not cases:
        mechanism.pair()  # says why there is none
        raise InputError(f"{mechanism.name}: what has no pair on a line has no program")
    return to_code(_model(mechanism, cases), language)


def _model(mechanism: Mechanism, derivations: Sequence[PairDerivation]) -> Model:
    from symdp.version import __version__

    answered = [_answered(derivation) for derivation in derivations]
    first, whose = answered[0]
    kind = first.pair.support.kind
    free = [p for p in mechanism.declared if p.name in mechanism.parameters]
    what = repr(mechanism)[len("<Mechanism ") : -1]
    protects = f"Protects {whose.sentence}."
    notes = (
        *textwrap.wrap(protects, _WIDTH),
        *_on_smaller_shifts(mechanism),
        f"Written by symdp {__version__}. You may use this file under the MIT license.",
        "delta is accurate to about 1e-12, relative: the contour integral by the trapezoidal rule,",
        "the moment generating function by Gauss quadrature. With few steps, and of atoms off any",
        "lattice, a line is cut off and has it between two ends: the upper is the answer, and",
        "log_delta_ends and epsilon_ends give both. No bound is proved.",
        "Source: Alghamdi et al., The Saddle-Point Accountant for Differential Privacy (2022),",
        "equation (28).",
    )
    assumed = _conditions(mechanism)
    names = [p.name for p in free]
    cases = []
    for derivation, _ in answered:
        others = [c for c in _conditions(derivation.mechanism) if c not in assumed]
        cases.append(_case(derivation, names, tuple(others)))
    return Model(
        mechanism.name,
        f"Privacy accountant of {what}.",
        notes,
        tuple(Argument(p.symbol, p.domain, p.rule) for p in free),
        assumed,
        "integers" if kind in ("integers", "naturals") else kind,
        tuple(cases),
        first.direction == "remove" or mechanism.is_mirrored,
        all(has_one_law(derivation.mechanism) for derivation, _ in answered),
    )


def _on_smaller_shifts(mechanism: Mechanism) -> list[str]:
    """Return what a page of additive noise says of smaller shifts, in lines."""
    is_plain = mechanism.sampling is None and isinstance(mechanism.source, Noise)
    if not is_plain:
        return []
    sentence = of_smaller_shifts(mechanism)
    return textwrap.wrap(f"{sentence[0].upper()}{sentence[1:]}.", _WIDTH)


def _answered(derivation: PairDerivation) -> tuple[PairDerivation, Protection]:
    """Return the derivation of what answers for a mechanism, and whom it protects."""
    mechanism = derivation.mechanism
    step, whose = answering(mechanism, f"{mechanism.name}: a program")
    if step != mechanism:
        derivation = derive_pair(step, direction=derivation.direction)
    return derivation, whose


def _conditions(mechanism: Mechanism) -> tuple[Condition, ...]:
    """Return what is assumed of parameters as differences that are positive."""
    conditions = []
    for left, operator, right in compared(mechanism):
        difference = left - right if operator.startswith(">") else right - left
        sentence = f"{left} {operator} {right}"
        conditions.append(Condition(difference, "=" not in operator, sentence))
    return tuple(conditions)


def _case(
    derivation: PairDerivation, names: Sequence[str], conditions: tuple[Condition, ...]
) -> Case:
    """Return what one order of the parameters has; where two are equal it is either order's."""
    mechanism = derivation.mechanism
    symbols = {p.name: p.symbol for p in mechanism.declared}
    pieces = [
        Piece(p.lower, p.upper, p.log_p, p.log_q, p.loss, p.slope == "constant")
        for p in derivation.pieces
    ] or [
        Piece(p.p, p.q, None, None, p.loss)
        for p in derivation.points
        if not (p.p.is_zero and p.q.is_zero)
    ]
    if derivation.pair.support.kind == "interval":
        pieces = [part for piece in pieces for part in told_from_ends(piece, derivation.variable)]
    if not pieces:
        raise InputError(f"{mechanism.name}: a public choice among pairs has no program")
    return Case(
        (*_fixed(mechanism, names), *(replace(c, is_strict=False) for c in conditions)),
        tuple(symbols[name] for name in names),
        derivation.variable,
        tuple(pieces),
        derivation.loss_range or (-sp.oo, sp.oo),
    )


def _fixed(mechanism: Mechanism, names: Sequence[str]) -> Iterator[Condition]:
    """Yield that a whole number has the value of its case."""
    for p in mechanism.declared:
        if p.name in names and p.name in mechanism.values:
            value = mechanism.values[p.name]
            sentence = f"{p.name} = {value}"
            yield Condition(p.symbol - value, False, sentence)
            yield Condition(value - p.symbol, False, sentence)
