"""What was derived from one mechanism, as blocks of a page: both directions where they differ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import sympy as sp

from symdp.decimal_text import Side, rounded
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import Deadline
from symdp.page import formulas
from symdp.page.blocks import Block, Formulas, Heading, Listing, Paragraph, Table
from symdp.page.loss_sections import (
    cumulant_lines,
    density_lines,
    domain_lines,
    law_lines,
    loss_lines,
)
from symdp.page.notation import read
from symdp.page.section import Line, equation
from symdp.prove.tail_values import tail_value

if TYPE_CHECKING:
    from flint import arb

    from symdp.derive import Derivation
    from symdp.derive.tails import TailConstant
    from symdp.model.mechanism import Mechanism
    from symdp.questions.composition import Composition

_SECONDS = 4.0  # for the proved values of one direction's tail constants
_CUMULANTS, _SHOWN_CUMULANTS = 4, 3  # in numbers of all steps; as formulas of one
_OTHER = {"remove": "P against Q", "add": "Q against P"}
_DENSITIES = {
    False: "Densities: Q without the record, P with it",
    True: "Densities: P with one value of the record, Q with another",
}


def mechanism_blocks(mechanism: Mechanism, count: int) -> list[Block]:
    """Return what one mechanism is, and its densities."""
    from symdp.derive import derive

    described = [Paragraph(mechanism.description)] if mechanism.description else []
    return [
        Heading(3, _headline(mechanism, count)),
        *described,
        Heading(4, _DENSITIES[mechanism.is_mirrored]),
        Formulas(density_lines(derive(mechanism))),
    ]


def derivation_blocks(mechanism: Mechanism, count: int, epsilon: float | None) -> list[Block]:
    """Return loss, law of the loss, CGF, cumulants and tails of one mechanism.

    Parameters
    ----------
    mechanism, count
        What is composed, and how often.
    epsilon
        Where tail bounds of `count` steps are shown in numbers; None leaves them symbolic.
    """
    from symdp.derive import derive

    derivation = derive(mechanism)
    larger = derivation.dominating_direction
    blocks: list[Block] = [
        Heading(3, f"Derived from {_headline(mechanism, count)}"),
        Paragraph(_which(larger.value, larger.proof)),
    ]
    if larger.value == "both":
        return blocks + _direction(derivation, count, epsilon, "")
    for side in _OTHER:
        found = derivation if side == derivation.direction else derive(mechanism, side)
        blocks += _direction(found, count, epsilon, f", {side} direction")
    return blocks


def _headline(mechanism: Mechanism, count: int) -> str:
    values = ", ".join(f"{name} = {value}" for name, value in mechanism.values.items())
    steps = "1 step" if count == 1 else f"{count} steps"
    what = f"{mechanism.title or mechanism.name}, {steps}" + (f", {values}" if values else "")
    if mechanism.sampling:
        what += f", {mechanism.sampling.describe().replace('_', ' ')}"
    return what


def _which(value: str, proof: str) -> str:
    if value == "both":
        return f"Both directions have the same privacy profile: {proof}. One is shown."
    if value == "unknown":
        return f"Which direction is the worse one is not known in advance: {proof}. Both are shown."
    return f"For one step the {value} direction is the worse one: {proof}. Both are shown."


def _direction(
    derivation: Derivation, count: int, epsilon: float | None, suffix: str
) -> list[Block]:
    """The blocks of one direction; `suffix` tells the headings of two directions apart."""
    against = f" ({_OTHER[derivation.direction]})" if suffix else ""
    blocks: list[Block] = [
        Heading(3, f"Privacy loss{suffix}{against}"),
        Formulas(loss_lines(derivation)),
        Heading(4, "The law of the loss: its inverse, density and distribution function"),
        Formulas(_without_repetition(law_lines(derivation))),
    ]
    if derivation.atoms:
        text = "ω and F are those of the continuous part; the atoms above are apart."
        blocks.append(Paragraph(text, "quiet"))
    blocks += [Heading(3, f"Cumulant generating function{suffix}"), *_transform(derivation)]
    blocks += [Heading(3, f"Tail constants{suffix}"), *_tails(derivation, count, epsilon)]
    return blocks


def _without_repetition(rows: list[Line]) -> list[Line]:
    """Leave out the second of two lines that give the same reason."""
    if len(rows) > 1 and rows[-1].right is None and rows[-1].words == rows[-2].words:
        return rows[:-1]
    return rows


def _transform(derivation: Derivation) -> list[Block]:
    cgf = derivation.cgf
    blocks: list[Block] = []
    if cgf.expression is None:
        blocks.append(Paragraph(f"Evaluated numerically: {cgf.reason}."))
    else:
        tilts = ", ".join(str(tilt).replace("*I", "i") for tilt in cgf.checked_at)
        text = f"In closed form, compared with numerical integrals at t = {tilts}."
        own = equation(read("K({})", cgf.tilt), cgf.expression)
        blocks += [Paragraph(text), Formulas([own])]
    if ends := domain_lines(derivation):
        blocks += [Paragraph("K is finite between"), Formulas(ends)]
    text = "The tilted cumulants of one step"
    if cgf.expression is None:
        text += ", in the moments m_j(t) of the loss under the tilted law"
    rows = cumulant_lines(derivation, _SHOWN_CUMULANTS)
    return [*blocks, Paragraph(f"{text}:"), Formulas(rows)]


def cumulant_table(composition: Composition, sides: tuple[str, ...]) -> list[Block]:
    """Return the cumulants of the whole composition in numbers, under both laws."""
    rows, notes = [], []
    for side in sides:
        own = f" ({side})" if len(sides) > 1 else ""
        for tilt, measure in ((0.0, "P"), (-1.0, "Q")):
            try:
                values = composition.law(side).cumulants(tilt, _CUMULANTS)
            except AccuracyError as error:
                notes.append(f"{measure}{own}: {error}")
                continue
            label = f"{measure}, t = {tilt:g}{own}".replace("-", "−")
            rows.append([label, *(_number(float(v)) for v in values)])
    head = ["the loss under", "mean κ₁", "variance κ₂", "κ₃", "κ₄"]
    caption = "Cumulants of the total finite loss of all steps."
    blocks: list[Block] = [Table(head, rows, caption)] if rows else []
    return [*blocks, *([Listing(notes)] if notes else [])]


def _tails(derivation: Derivation, count: int, epsilon: float | None) -> list[Block]:
    deadline = Deadline(_SECONDS)
    # What has a formula is quick; a supremum over tilts is not, and comes last.
    order = sorted(derivation.tails, key=lambda c: (c.expression is None, not c.arguments))
    values = {c.name: _value(c, count, epsilon, deadline) for c in order}
    text = "Numbers are ends of proved enclosures, shown to six digits"
    if epsilon is not None:
        text += f"; bounds on tails are for n = {count} steps at ε = {epsilon:.6g}"
    return [Paragraph(f"{text}.", "quiet"), Formulas(formulas.tails(derivation, values))]


def _value(constant: TailConstant, count: int, epsilon: float | None, deadline: Deadline) -> str:
    """A constant in numbers, or why not; nothing where it needs what nobody chose."""
    places = {"epsilon": epsilon, "count": count, "t": 0}
    values = {name: places.get(name) for name in constant.arguments}
    if None in values.values() or constant.expression in (sp.oo, -sp.oo):
        return ""
    if deadline.is_past:
        return "not evaluated: the constants before it took the time"
    try:
        with deadline.within():
            ball = tail_value(constant, **values)
    except (AccuracyError, InputError) as error:
        reason = str(error)
        return "" if constant.reason and constant.reason in reason else f"no number: {reason}"
    at = " at t = 0" if "t" in values else ""
    return f"{_ball(ball)}{at}"


def _ball(ball: arb) -> str:
    """Return a proved number: its digits where all of its ball has them, else its upper end."""
    low = high = float(ball.mid())
    if not (ball.is_exact() and ball == low):
        low = math.nextafter(float(ball.lower()), -math.inf)
        high = math.nextafter(float(ball.upper()), math.inf)
    most = _number(high, "up")
    return f"proved: {'' if most == _number(low, 'down') else 'at most '}{most}"


def _number(value: float, side: Side = "nearest") -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return rounded(value, 6, side).replace("-", "−")
