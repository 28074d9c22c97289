"""A certificate of shuffled answers with densities: panels on which one law is the least.

What is said where panels lie, and which law is the least there, is no claim: the checker proves it
on each, of that law less a small share. Panels are halved until it does, and until the checker's
bound of their integrals is small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import sympy as sp

from symdp.emit.exact import LN10
from symdp.errors import AccuracyError
from symdp.prove.blanket import Line
from symdp.prove.witness import Told, certificate_of_shuffled, checker, gauss_rule, law_text

_SLACK = "1/1000000"  # of log w below the least law: it costs about n t² E X² times that
_SPARE = 3  # digits of an integral beyond those of the sum
_MOST_PRODUCTS = 3e6  # of all nodes and terms: about fifteen seconds of checking
_MOST_PANELS = 600  # of a pair: more take minutes to check
_DEEPEST = 90  # halvings, from which on outputs are left out, as next to a kink


@dataclass(frozen=True)
class Answers:
    """Laws of the answers of so many people, and an ε."""

    laws: tuple[sp.Expr, ...]
    variable: sp.Symbol
    ends: tuple[sp.Expr, sp.Expr]
    people: int
    epsilon: Fraction


@dataclass(frozen=True)
class Layout:
    """Where the sum of a pair is taken, and neighbouring panels with the law that is least."""

    line: Line
    rows: tuple[tuple[tuple[float, ...], int], ...]


def make_of_answers(
    answers: Answers,
    layouts: Mapping[tuple[int, int], Layout],
    log_delta: float,
    sizes: tuple[int, int],
) -> Told | None:
    """Return a certificate of an upper end of δ(ε), about a number, as JSON values.

    `sizes` are the bits of its numbers and the digits of the end. None where it would take the
    checker too long.
    """
    bits, digits = sizes
    entries: Told = {
        "people": str(answers.people),
        "laws": [law_text(law, answers.variable) for law in answers.laws],
        "support": [str(end) for end in answers.ends],
    }
    # an error of one integral counts n times, that of a mass beside δ
    log_error = min(-math.log(answers.people), log_delta) - (digits + _SPARE) * LN10
    nodes = math.ceil((12.0 - log_error) / (2.0 * math.log(checker.REACH)))
    witness: Told = {"bits": str(bits), "rule": gauss_rule(nodes, bits), "plans": {}}
    products = 0
    try:
        checker.set_units(bits)
        checker.LEFT = math.inf  # looking for panels is not checking
        for pair, layout in layouts.items():
            panels = _Panels(entries, pair, layout, checker.rule_of(witness), answers.epsilon)
            hint = panels.hint(log_error)
            witness["plans"]["{} {}".format(*pair)] = hint
            products += sum(map(len, hint["panels"])) * nodes * layout.line.terms
    except checker.Refused as refusal:
        raise AccuracyError(f"no certificate: its checker says, {refusal}") from None
    if products > _MOST_PRODUCTS:
        return None
    return certificate_of_shuffled(entries, witness, answers.epsilon, digits)


class _Panels:
    """Panels of one pair of laws, as the checker takes them."""

    def __init__(
        self, entries: Told, pair: tuple[int, int], layout: Layout, rule: Any, epsilon: Fraction
    ) -> None:
        line = layout.line
        self._layout = layout
        self._hint: Told = {
            "tilt": f"{line.tilt:.6e}",
            "period": f"{line.period:.6e}",
            "blur": f"{line.blur:.6e}",
            "terms": str(line.terms),
            "slack": _SLACK,
            "panels": [],
            "least": [],
        }
        laws = [checker.formula(text) for text in entries["laws"]]
        self._answer = checker.Answer(laws, self._hint, rule, ([], []), pair, epsilon)
        tilt, _, _, terms, spacing = checker.plan_of(self._hint)
        self._tilt = tilt
        self._height = spacing * terms

    def hint(self, log_error: float) -> Told:
        """Return the plan of the pair with its panels."""
        count = sum(len(edges) for edges, _ in self._layout.rows)
        most = int(math.exp(log_error) / count * checker.ONE)
        for edges, least in self._layout.rows:
            self._answer.least = least
            for row in self._laid(edges, most):
                self._hint["panels"].append([str(edge) for edge in row])
                self._hint["least"].append(str(least))
        return self._hint

    def _laid(self, edges: Sequence[float], most: int) -> Iterator[list[Fraction]]:
        """Yield edges of neighbouring panels, each of an error of at most so many units."""
        waiting = [(Fraction(x), Fraction(y), 0) for x, y in pairwise(edges)][::-1]
        row: list[Fraction] = []
        while waiting:
            x, y, depth = waiting.pop()
            if not self._is_small(x, y, most):
                if depth < _DEEPEST:
                    middle = (x + y) / 2
                    waiting += [(middle, y, depth + 1), (x, middle, depth + 1)]
                continue
            is_next = bool(row) and row[-1] == x
            if is_next and len(row) > 1 and self._is_small(row[-2], y, most):
                # two are one
                row[-1] = y
                continue
            if row and not is_next:
                yield row
                row = []
            row = [*row, y] if is_next else [x, y]
            if len(row) > _MOST_PANELS:
                raise AccuracyError(
                    "no certificate file: the ratios of these laws vary so much that its checker "
                    "would need too many panels; certify without a file"
                )
        if row:
            yield row

    def _is_small(self, x: Fraction, y: Fraction, most: int) -> bool:
        """Whether the checker takes a panel, with an error of at most so many units."""
        try:
            self._answer.panels = [self._answer.panel(x, y)]
            _, error = self._answer.measure(self._tilt, self._height)
        except checker.Refused:
            return False
        return bool(error <= most)
