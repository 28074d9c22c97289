"""A calculation as engineers keep it: the formula, the numbers put in, the result.

Each correction term of the saddle-point and of the Edgeworth series stands with its size, and
beside the last sum the exact δ of its direction, and the larger one of both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from symdp.errors import AccuracyError, InputError
from symdp.expansion import hermite_values
from symdp.interrupt import attempt
from symdp.numeric.saddle_point import Strip, saddle_point
from symdp.page.document import Block, Heading, Table, token
from symdp.page.formula import layout, read
from symdp.page.node import EMPTY, PRODUCT, Node, fence, number, operator, row, script, text
from symdp.page.sections.series import edgeworth_corrections, saddle_corrections

if TYPE_CHECKING:
    from symdp.derive import PairDerivation
    from symdp.derive.tails import TailConstant
    from symdp.numeric.total import SumLaw
    from symdp.questions.composition import Composition, Direction
    from symdp.questions.guarantee import Guarantee

_DIGITS = 6
_SECONDS = 2.0  # for the number of one tail constant
_NOTHING = 1e-15  # of a bound on log P: it says nothing, whatever its formula would give
_INDICES = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_HEAD = ("formula", "with its numbers", "result")
Row = tuple[str, str, str]


def digits(value: float) -> str:
    """Return six digits, as text."""
    return f"{value:.{_DIGITS}g}".replace("-", "−")


def with_numbers(node: Node, values: Mapping[str, float]) -> Node:
    """Return a formula with numbers in place of the symbols that have a value."""
    if node.kind in {"name", "script"} and (value := values.get(token(node))) is not None:
        size = number(digits(abs(value)))
        changed_part = size if value >= 0 else fence(row(operator("−"), size))
        above = EMPTY if node.kind == "name" else node.parts[2]
        if above == EMPTY:
            return changed_part
        return script(changed_part, EMPTY, above)
    changed = [with_numbers(part, values) for part in node.parts]
    parts: list[Node] = []
    for index, changed_part in enumerate(changed):
        before = node.parts[index - 1] if index else None
        apart = before is not None and "operator" not in (before.kind, changed_part.kind)
        moved = apart and (changed[index - 1] != before or changed_part != node.parts[index])
        if node.kind == "row" and node.level == PRODUCT and moved:
            parts.append(operator("·"))
        parts.append(changed_part)
    return replace(node, parts=tuple(parts))


@dataclass
class _Sheet:
    """Rows so far, and the numbers that later formulas take."""

    rows: list[Row]
    values: dict[str, float]

    def add(self, name: str, formula: Node | str, result: float) -> None:
        """Add a row; the result is known to later rows under its name."""
        right = read(formula) if isinstance(formula, str) else formula
        put = text(with_numbers(right, self.values))
        self.rows.append((text(row(read(name), operator("="), right)), put, digits(result)))
        self.values[name] = result

    def given(self, name: str, formula: str, result: float) -> None:
        """Add a row of a number that comes from a quadrature."""
        self.rows.append((text(read(f"{name} = {formula}")), "", digits(result)))
        self.values[name] = result


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
        mark = ("", "′", "″", "‴")[j] if j < 4 else f"^{{({j})}}"
        sheet.given(f"k{_index(j)}", f"nK{mark}(t)", value)
    f = {0: cumulants[0] - epsilon * t - math.log(t) - math.log(1 + t)}
    sheet.add("F₀", "k₀ − εt − log(t) − log(1 + t)", f[0])
    for j in range(2, highest + 1):
        f[j] = cumulants[j] + (-1) ** j * math.factorial(j - 1) * (t**-j + (1 + t) ** -j)
        sign = "−" if j % 2 else "+"
        factor = "" if j == 2 else f"{math.factorial(j - 1)}·"
        poles = f"{factor}(1/t^{j} + 1/(1 + t)^{j})"
        sheet.add(f"F{_index(j)}", f"k{_index(j)} {sign} {poles}", f[j])
    for j in range(3, highest + 1):
        sheet.add(f"ρ{_index(j)}", f"F{_index(j)}/F₂^{{{j}/2}}", f[j] / f[2] ** (j / 2))
    escaped = law.mass_at_infinity
    lost = ""
    if escaped > 0:
        sheet.given("A", "1 − (1 − δ_∞)^n", escaped)
        lost = "A + "
    leading = math.exp(saddle.log_leading)
    sheet.add("δ₀", f"{lost}e^{{F₀}}/√(2πF₂)", escaped + leading)
    total = 1.0
    sums = "1"
    for k, value in enumerate(saddle_corrections(order), start=1):
        size = float(value.subs({s: sheet.values[token(layout(s))] for s in value.free_symbols}))
        sheet.add(f"c{_index(k)}", layout(value), size)
        total = total + size
        sums = f"{sums} + c{_index(k)}"
        first = "(δ₀ − A)" if lost else "δ₀"
        sheet.add(f"δ{_index(k)}", f"{lost}{first}·({sums})", escaped + leading * total)
    return sheet.rows


def edgeworth_sheet(law: SumLaw, epsilon: float, order: int) -> list[Row]:
    """Return x, λ_j and each correction under P and under Q, and each partial sum."""
    rows: list[Row] = []
    tails: dict[str, list[float]] = {}
    for under, tilt in (("P", 0.0), ("Q", -1.0)):
        k = [0.0, *map(float, law.cumulants(tilt, order + 2))]
        sheet = _Sheet([], {"ε": epsilon})
        for j in range(1, order + 3):
            sheet.given(f"k{_index(j)}", f"nK^{{({j})}}({'0' if tilt == 0 else '−1'})", k[j])
        x = (epsilon - k[1]) / math.sqrt(k[2])
        sheet.add(f"x_{under}", "(ε − k₁)/√(k₂)", x)
        for j in range(3, order + 3):
            sheet.add(f"λ{_index(j)}", f"k{_index(j)}/k₂^{{{j}/2}}", k[j] / k[2] ** (j / 2))
        for j, value in enumerate(hermite_values(3 * order + 1, x)):
            sheet.values[f"He{_index(j)}"] = float(value)
        beyond = math.erfc(x / math.sqrt(2)) / 2
        density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        tails[under] = [beyond]
        for j, correction in enumerate(edgeworth_corrections(order), start=1):
            size = float(
                correction.subs(
                    {s: sheet.values[token(layout(s))] for s in correction.free_symbols}
                )
            )
            sheet.add(f"e{_index(j)}", layout(correction), size)
            tails[under].append(tails[under][-1] + density * size)
        rows += sheet.rows
        for j, tail in enumerate(tails[under]):
            terms = "alone" if j == 0 else f"to e{_index(j)}"
            rows.append((f"1 − E_{under}(x_{under}), {'Φ ' * (j == 0)}{terms}", "", digits(tail)))
    kept, mass_of_q = (math.exp(min(law.cgf(tilt), 0.0)) for tilt in (0.0, -1.0))
    mass_of_q = mass_of_q if mass_of_q < 1 - _NOTHING else 1.0
    under_p = "1 − E_P(x_P)"
    under_q = "e^ε"
    factors = ("", "")
    if kept < 1:
        rows.append(("(1 − δ_∞)^n", "", digits(kept)))
        under_p = "1 − (1 − δ_∞)^n·E_P(x_P)"
        factors = (f"{digits(1 - kept)} + {digits(kept)}·", "")
    if mass_of_q < 1:
        rows.append(("(1 − δ_(−∞))^n", "", digits(mass_of_q)))
        under_q = "e^ε·(1 − δ_(−∞))^n"
        factors = (factors[0], f"{digits(mass_of_q)}·")
    for j in range(order + 1):
        result = 1 - kept + kept * tails["P"][j] - math.exp(epsilon) * mass_of_q * tails["Q"][j]
        put = f"{factors[0]}{digits(tails['P'][j])} − {digits(math.exp(epsilon))}·{factors[1]}"
        name = f"δ{_index(j)} = {under_p} − {under_q}·(1 − E_Q(x_Q))"
        rows.append((name, f"{put}{digits(tails['Q'][j])}", digits(result)))
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
        formula = "" if constant.expression is None else text(layout(constant.expression))
        result = attempt(partial(_number, constant, values), "not in time", _SECONDS)
        at = " at t = 0" if "t" in values else ""
        rows.append((f"{text(read(constant.notation))}{at}", formula, result))
    return rows


def _number(constant: TailConstant, values: Mapping[str, float]) -> str:
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
    word = "exact δ" if answer.kind == "exact" else "δ"
    name = f"{word} ({answer.kind}, {answer.method})"
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
    return [b for title, rows in listed for b in (Heading(4, f"{title}{at}"), Table(_HEAD, rows))]
