"""A calculation as engineers keep it: the formula, the numbers put in, the result.

Each correction term of the saddle-point and of the Edgeworth series stands with its size, and
beside the last sum the exact δ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from symdp.balls.tail_values import tail_value
from symdp.derive.section import token
from symdp.derive.series_sections import edgeworth_corrections, saddle_corrections
from symdp.emit.layout import layout
from symdp.emit.node import PRODUCT, Node, number, operator, row
from symdp.emit.notation import read
from symdp.emit.plain_text import text
from symdp.errors import AccuracyError, InputError
from symdp.expansion import hermite
from symdp.expansion.edgeworth import X
from symdp.law.saddle_point import best_saddle
from symdp.law.normal import log_survival

if TYPE_CHECKING:
    from symdp.derive import Derivation
    from symdp.law.total import SumLaw
    from symdp.questions.composition import Composition

_DIGITS = 6
_INDICES = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
Row = tuple[str, str, str]


@dataclass
class _Sheet:
    """Rows so far, and the numbers that later formulas take."""

    rows: list[Row]
    values: dict[str, float]

    def add(self, name: str, formula: Node | str, result: float, *, known: bool = True) -> None:
        """Add a row; the result is known to later rows under its name."""
        right = read(formula) if isinstance(formula, str) else formula
        shown = text(row(read(name), operator("="), right))
        put = text(with_numbers(right, self.values)) if known else ""
        self.rows.append((shown, put, digits(result)))
        self.values[name] = result


def digits(value: float) -> str:
    """Return six digits, as text.

    >>> digits(-0.00001234567), digits(1234.5)
    ('−1.23457e−05', '1234.5')
    """
    return f"{value:.{_DIGITS}g}".replace("-", "−")


def with_numbers(node: Node, values: Mapping[str, float]) -> Node:
    """Return a formula with numbers in place of the symbols that have a value.

    >>> text(with_numbers(read("(3ρ₄ − 5ρ₃²)/24"), {"ρ₃": -0.5, "ρ₄": 0.25}))
    '(3·0.25 − 5·(−0.5)²)/24'
    """
    if node.kind in {"name", "script"} and (value := values.get(token(node))) is not None:
        own = number(digits(value) if value >= 0 else f"({digits(value)})")
        above = node.parts[2] if node.kind == "script" else None
        return replace(node, parts=(own, node.parts[1].parts and Node("row") or Node("row"), above)) if above is not None and (above.parts or above.text) else own
    parts: list[Node] = []
    for part in node.parts:
        own = with_numbers(part, values)
        apart = node.kind == "row" and node.level == PRODUCT and parts
        if apart and own != part and parts[-1].kind != "operator":
            parts.append(operator("·"))
        elif apart and _is_new(parts[-1], node.parts) and own.kind not in {"operator", "fence"}:
            parts.append(operator("·"))
        parts.append(own)
    return replace(node, parts=tuple(parts))


def _is_new(node: Node, old: tuple[Node, ...]) -> bool:
    return node.kind != "operator" and node not in old


def saddle_sheet(law: SumLaw, epsilon: float, order: int) -> list[Row]:
    """Return the saddle point, F_j, ρ_j, each correction and each partial sum.

    Parameters
    ----------
    law : of the total loss, finite
    epsilon : ε
    order : of the last correction
    """
    saddle = best_saddle(law, epsilon, right=True) if False else best_saddle(law, epsilon)
    t, highest = saddle.tilt, 2 * order + 2
    cumulants = [float(law.cgf(t)), *map(float, law.cumulants(t, highest))]
    sheet = _Sheet([], {"ε": epsilon, "t": t})
    sheet.rows.append(("t: nK′(t) − ε − 1/t − 1/(1 + t) = 0", "", digits(t)))
    for j, own in enumerate(cumulants):
        mark = ["", "′", "″", "‴"][j] if j < 4 else f"^({j})"
        sheet.rows.append((f"nK{mark}(t)", "", digits(own)))
    names = [f"n K^({j})" for j in range(highest + 1)]
    del names
    zero = cumulants[0] - epsilon * t - math.log(abs(t)) - math.log(abs(1 + t))
    sheet.add("F₀", "nK(t) − εt − log(t) − log(1 + t)", zero)
    f = {0: zero}
    for j in range(2, highest + 1):
        f[j] = cumulants[j] + (-1) ** j * math.factorial(j - 1) * (t**-j + (1 + t) ** -j)
        index = str(j).translate(_INDICES)
        left = "nK^{(" + str(j) + ")}(t)"
        sign = "+" if j % 2 == 0 else "−"
        own = f"{left} {sign} {math.factorial(j - 1)}·(t^{{−{j}}} + (1 + t)^{{−{j}}})"
        sheet.add(f"F{index}", own, f[j])
    for j in range(3, highest + 1):
        index = str(j).translate(_INDICES)
        sheet.add(f"ρ{index}", f"F{index}/F₂^{{{j}/2}}", f[j] / f[2] ** (j / 2))
    scale = math.exp(f[0]) / math.sqrt(2 * math.pi * f[2])
    sheet.add("δ₀", "e^{F₀}/√(2πF₂)", scale)
    total, sums = 1.0, "1"
    for k, own in enumerate(saddle_corrections(order), start=1):
        index = str(k).translate(_INDICES)
        numbers = {s: sheet.values[token(layout(s))] for s in own.free_symbols}
        size = float(own.subs(numbers))
        sheet.add(f"c{index}", layout(own), size)
        total, sums = total + size, f"{sums} + c{index}"
        sheet.add(f"δ{index}", f"δ₀·({sums})", scale * total)
    return sheet.rows
