"""A calculation as engineers keep it: the formula, the numbers put in, the result.

Each correction term of the saddle-point and of the Edgeworth series stands with its size, and
beside the last sum the exact δ of its direction, and the larger one of both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from symdp.errors import AccuracyError, InputError
from symdp.expansion import hermite_values
from symdp.interrupt import attempt
from symdp.numeric.saddle_point import Strip, saddle_point
from symdp.page.document import Block, Heading, Table, token
from symdp.page.formula import layout, read
from symdp.page.node import EMPTY, PRODUCT, Node, fence, number, operator, row, script, text
from symdp.page.sections.loss import derivative_mark
from symdp.page.sections.series import edgeworth_corrections, saddle_corrections
from symdp.tolerances import SHORT_TIME

if TYPE_CHECKING:
    import sympy as sp

    from symdp.derive import PairDerivation
    from symdp.derive.tails import TailConstant
    from symdp.numeric.total import SumLaw
    from symdp.questions.composition import Composition, Direction
    from symdp.questions.guarantee import Guarantee

_DIGITS = 6
_NOTHING = 1e-15  # of a bound on log P: it says nothing, whatever its formula would give
_INDICES = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_HEAD = ("formula", "with its numbers", "result")
Row = tuple[str, str, str]


def digits(value: float) -> str:
    """Return six digits, as text."""
    return f"{value:.{_DIGITS}g}".replace("-", "−")


def with_numbers(node: Node, values: Mapping[str, float]) -> Node:
    """Return a formula with numbers in place of the symbols that have a value."""
    if node.kind in {"name", "script"}:
        value = values.get(token(node))
        if value is not None:
            return _number_with_exponent(node, value)
    changed = [with_numbers(part, values) for part in node.parts]
    if node.kind != "row" or node.level != PRODUCT:
        return replace(node, parts=tuple(changed))
    parts = changed[:1]
    for old_pair, new_pair in zip(pairwise(node.parts), pairwise(changed), strict=True):
        before = old_pair[0]
        changed_part = new_pair[1]
        apart = "operator" not in (before.kind, changed_part.kind)
        if apart and new_pair != old_pair:
            parts.append(operator("·"))
        parts.append(changed_part)
    return replace(node, parts=tuple(parts))


def _number_with_exponent(node: Node, value: float) -> Node:
    """Return a number in place of a symbol, with the symbol's exponent."""
    size = number(digits(abs(value)))
    if value < 0:
        size = fence(row(operator("−"), size))
    if node.kind == "script" and node.parts[2] != EMPTY:
        return script(size, EMPTY, node.parts[2])
    return size


@dataclass
class _Sheet:
    """Rows so far, and the numbers that later formulas take."""

    rows: list[Row]
    values: dict[str, float]

    def add(self, name: str, formula: Node | str, result: float) -> None:
        """Add a row; the result is known to later rows under its name."""
        if isinstance(formula, str):
            formula = read(formula)
        equality = row(read(name), operator("="), formula)
        with_values = with_numbers(formula, self.values)
        self.rows.append((text(equality), text(with_values), digits(result)))
        self.values[name] = result

    def given(self, name: str, formula: str, result: float) -> None:
        """Add a row of a number that comes from a quadrature."""
        self.rows.append((text(read(f"{name} = {formula}")), "", digits(result)))
        self.values[name] = result

    def add_correction(self, name: str, correction: sp.Expr) -> float:
        """Add a row of a correction term, from the numbers of the rows before; return its size."""
        numbers = {s: self.values[token(layout(s))] for s in correction.free_symbols}
        size = float(correction.subs(numbers))
        self.add(name, layout(correction), size)
        return size


def _index(j: int) -> str:
    return str(j).translate(_INDICES)


def saddle_sheet(law: SumLaw, epsilon: float, order: int) -> list[Row]:
    """Return the saddle point, F_j, ρ_j, each correction and each partial sum."""
    saddle = saddle_point(law, epsilon, Strip.RIGHT)
    if saddle is None:
        raise AccuracyError("there is no saddle point right of 0")
    t = saddle.tilt
    highest = 2 * order + 2
    cumulants = [saddle.cgf, *map(float, law.cumulants(t, highest))]
    sheet = _Sheet([("t > 0 with F₁ = 0", "", digits(t))], {"ε": epsilon, "t": t})
    for j, value in enumerate(cumulants):
        mark = derivative_mark(j)
        sheet.given(f"k{_index(j)}", f"nK{mark}(t)", value)
    f = {0: cumulants[0] - epsilon * t - math.log(t) - math.log(1 + t)}
    sheet.add("F₀", "k₀ − εt − log(t) − log(1 + t)", f[0])
    for j in range(2, highest + 1):
        index = _index(j)
        factor = math.factorial(j - 1)
        f[j] = cumulants[j] + (-1) ** j * factor * (t**-j + (1 + t) ** -j)
        poles = f"(1/t^{j} + 1/(1 + t)^{j})"
        if j > 2:
            poles = f"{factor}·{poles}"
        sign = "+−"[j % 2]
        sheet.add(f"F{index}", f"k{index} {sign} {poles}", f[j])
    for j in range(3, highest + 1):
        index = _index(j)
        ratio = f[j] / f[2] ** (j / 2)
        sheet.add(f"ρ{index}", f"F{index}/F₂^{{{j}/2}}", ratio)
    escaped = law.mass_at_infinity
    lost = ""
    first = "δ₀"
    if escaped > 0:
        sheet.given("A", "1 − (1 − δ_∞)^n", escaped)
        lost = "A + "
        first = "(δ₀ − A)"
    leading = math.exp(saddle.log_leading)
    sheet.add("δ₀", f"{lost}e^{{F₀}}/√(2πF₂)", escaped + leading)
    total = 1.0
    sums = "1"
    for k, value in enumerate(saddle_corrections(order), start=1):
        index = _index(k)
        total += sheet.add_correction(f"c{index}", value)
        sums = f"{sums} + c{index}"
        partial_sum = escaped + leading * total
        sheet.add(f"δ{index}", f"{lost}{first}·({sums})", partial_sum)
    return sheet.rows


def edgeworth_sheet(law: SumLaw, epsilon: float, order: int) -> list[Row]:
    """Return x, λ_j and each correction under P and under Q, and each partial sum."""
    rows: list[Row] = []
    tails: dict[str, list[float]] = {}
    for under, tilt in (("P", 0), ("Q", -1)):
        k = [0.0, *map(float, law.cumulants(float(tilt), order + 2))]
        at = f"{tilt}".replace("-", "−")
        sheet = _Sheet([], {"ε": epsilon})
        for j in range(1, order + 3):
            sheet.given(f"k{_index(j)}", f"nK^{{({j})}}({at})", k[j])
        x = (epsilon - k[1]) / math.sqrt(k[2])
        sheet.add(f"x_{under}", "(ε − k₁)/√(k₂)", x)
        for j in range(3, order + 3):
            index = _index(j)
            standardised = k[j] / k[2] ** (j / 2)
            sheet.add(f"λ{index}", f"k{index}/k₂^{{{j}/2}}", standardised)
        for j, value in enumerate(hermite_values(3 * order + 1, x)):
            sheet.values[f"He{_index(j)}"] = float(value)
        beyond = math.erfc(x / math.sqrt(2)) / 2
        density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        tails[under] = [beyond]
        for j, correction in enumerate(edgeworth_corrections(order), start=1):
            size = sheet.add_correction(f"e{_index(j)}", correction)
            tails[under].append(tails[under][-1] + density * size)
        rows += sheet.rows
        for j, tail in enumerate(tails[under]):
            terms = "Φ alone"
            if j > 0:
                terms = f"to e{_index(j)}"
            rows.append((f"1 − E_{under}(x_{under}), {terms}", "", digits(tail)))
    kept = math.exp(min(law.cgf(0.0), 0.0))
    mass_of_q = math.exp(min(law.cgf(-1.0), 0.0))
    if mass_of_q >= 1 - _NOTHING:
        mass_of_q = 1.0
    under_p = "1 − E_P(x_P)"
    under_q = "e^ε"
    factor_of_p = ""
    factor_of_q = ""
    if kept < 1:
        rows.append(("(1 − δ_∞)^n", "", digits(kept)))
        under_p = "1 − (1 − δ_∞)^n·E_P(x_P)"
        factor_of_p = f"{digits(1 - kept)} + {digits(kept)}·"
    if mass_of_q < 1:
        rows.append(("(1 − δ_(−∞))^n", "", digits(mass_of_q)))
        under_q = "e^ε·(1 − δ_(−∞))^n"
        factor_of_q = f"{digits(mass_of_q)}·"
    growth = math.exp(epsilon)
    for j, (tail_of_p, tail_of_q) in enumerate(zip(tails["P"], tails["Q"], strict=True)):
        result = 1 - kept + kept * tail_of_p - growth * mass_of_q * tail_of_q
        name = f"δ{_index(j)} = {under_p} − {under_q}·(1 − E_Q(x_Q))"
        from_p = f"{factor_of_p}{digits(tail_of_p)}"
        from_q = f"{digits(growth)}·{factor_of_q}{digits(tail_of_q)}"
        rows.append((name, f"{from_p} − {from_q}", digits(result)))
    return rows


def tails_sheet(d: PairDerivation, count: int, epsilon: float) -> list[Row]:
    """Return every tail constant as a number, at t = 0 where it is one of a tilt."""
    places = {"epsilon": epsilon, "n": count, "t": 0}
    rows = []
    for constant in d.tails:
        values = {name: places[name] for name in constant.arguments if name in places}
        nowhere = constant.expression is None and constant.rule.kind == "end"
        if nowhere or len(values) < len(constant.arguments):
            continue
        formula = ""
        if constant.expression is not None:
            formula = text(layout(constant.expression))
        name = text(read(constant.notation))
        if "t" in values:
            name += " at t = 0"
        result = attempt(partial(_upper_end, constant, values), "not in time", SHORT_TIME)
        rows.append((name, formula, result))
    return rows


def _upper_end(constant: TailConstant, values: Mapping[str, float]) -> str:
    """The upper end of a proved enclosure."""
    try:
        ball = constant.value(**values)
    except (AccuracyError, InputError):
        infinite = constant.expression is not None and constant.expression.is_infinite
        if infinite:
            return "∞"
        return "not known"
    value = float(ball.upper())
    if "epsilon" in values and abs(value) < _NOTHING:
        return "0: ε is not above the mean"
    return digits(value)


def sheets(
    composition: Composition,
    d: PairDerivation | None,
    epsilon: float,
    order: int,
    direction: Direction,
) -> list[tuple[str, list[Row]]]:
    """Return titles with their rows: both series, each ending with the exact δ, and the tails.

    Where the directions have two laws, the larger δ of both stands beside that of the asked one.
    """
    composition.accounted.require_own_pairs("a derivation in numbers")
    law = composition.law(direction)
    exact = composition.delta(epsilon, direction=direction)
    last, larger = _exact_rows(composition, exact, direction)
    if d is not None and d.is_disjoint:
        return [("δ", [last, *larger])]
    listed = []
    if d is not None and d.only_loss is not None:
        listed.append(("δ", [last, *larger]))
    else:
        for title, sheet in (
            ("Saddle-point series", saddle_sheet), ("Edgeworth series", edgeworth_sheet)
        ):  # fmt: skip
            try:
                rows = sheet(law, epsilon, order)
            except AccuracyError as error:
                listed.append((title, [(f"no series: {error}", "", ""), last, *larger]))
            else:
                gap = []
                if exact.delta > 0.0:
                    off = float(rows[-1][2].replace("−", "-")) / exact.delta - 1
                    gap = [("the last sum is off by", "", f"{off:+.2e}".replace("-", "−"))]
                listed.append((title, [*rows, last, *gap, *larger]))
    if d is not None:
        listed.append(("Tail constants", tails_sheet(d, composition.n, epsilon)))
    return listed


def _exact_rows(
    composition: Composition, answer: Guarantee, direction: Direction
) -> tuple[Row, list[Row]]:
    """Return the row of δ in a direction, and that of the larger one where there are two."""
    name = f"δ ({answer.kind}, {answer.method})"
    if answer.kind == "exact":
        name = f"exact {name}"
    result = answer.delta_text(_DIGITS).replace("-", "−")
    if len(composition.sides("both")) == 1:
        return (name, "", result), []
    both = composition.delta(answer.epsilon)
    larger = f"δ of both directions: {both.direction} is the larger"
    return (
        (f"{name}, {direction} direction", "", result),
        [(larger, "", both.delta_text(_DIGITS).replace("-", "−"))],
    )


def sheet_blocks(listed: list[tuple[str, list[Row]]], at: str) -> list[Block]:
    """Return the sheets as tables, `at` saying of which numbers."""
    blocks: list[Block] = []
    for title, rows in listed:
        blocks += [Heading(4, f"{title}{at}"), Table(_HEAD, rows)]
    return blocks
