"""A certificate file of shuffled answers, of which the checker proves the sum anew.

Lists have all their pairs of laws in the file, densities those of the inputs that are listed, or of
the two ends of an interval where these are the worst pair by a rule, which the file then says.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from symdp.emit.exact import LN10
from symdp.errors import AccuracyError, InputError
from symdp.model.local import Local
from symdp.numeric.shuffled.blanket import part_law, splits_of_all
from symdp.prove.witness import make_shuffled
from symdp.questions.shuffled.outputs import randomizer
from symdp.questions.shuffled.plan import line_of
from symdp.questions.shuffled.proof import listed_parts
from symdp.questions.shuffled.witness import Answers, Layout, make_of_answers

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.numeric.shuffled.blanket import Estimate
    from symdp.numeric.shuffled.outputs import Outputs
    from symdp.questions.shuffled.outputs import Randomizer

_DIGITS = 4  # of the sum: each more takes ten times as long to check
_DENSITY_DIGITS = 2  # the same of densities, whose sums have some thousand nodes
_BITS = 96  # of a sum of n-th powers, beyond those of n and of δ
_MOST_PAIRS = 1_000  # of different kinds, of which each has a plan
_BELOW = 3.0  # e-folds: a pair of which a simple bound lies so far below needs no sum


def certificate_of_round(mechanism: Mechanism, epsilon: Fraction, digits: int) -> dict[str, Any]:
    """Return a proof of an upper end of δ(ε) of one round, as JSON values."""
    source = mechanism.source
    assert isinstance(source, Local)
    assert source.people is not None
    people = int(source.people)
    laws = randomizer(mechanism)
    if epsilon < 0:
        raise InputError("shuffled answers are bounded from epsilon = 0 on")
    if not laws.outputs.is_list:
        return _of_densities(mechanism, laws, people, (epsilon, digits))
    parts = listed_parts(mechanism, laws, people, epsilon)
    if len(parts) > _MOST_PAIRS:
        raise InputError(
            f"{mechanism.summary}: its inputs have {len(parts)} different pairs, and a file has "
            f"room for {_MOST_PAIRS}; use certify without a file"
        )
    largest = max(estimate.log_delta for estimate, _ in parts)
    digits = min(digits, _DIGITS)
    plans = {}
    for estimate, _ in parts:
        law = part_law(laws.outputs.only(estimate.split.kept), estimate.pair, float(epsilon))
        plan = {"tilt": "1", "period": "1", "blur": "1", "terms": "0"}
        if float(law.values.max(initial=0.0)) > 0.0:
            line = line_of(law, people, digits)
            plan = {
                "tilt": _short(line.tilt),
                "period": _short(line.period),
                "blur": _short(line.blur),
                "terms": str(line.terms if estimate.log_delta > largest - _BELOW else 0),
            }
        plans["{} {}".format(*estimate.pair)] = plan
    rows = [_ratios(mechanism, index) for index in range(len(laws.inputs))]
    spare = digits * LN10 + math.log(people) - min(largest, 0.0)
    bits = _BITS + int(spare / math.log(2.0))
    return make_shuffled(rows, people, epsilon, plans, (bits, digits))


def _of_densities(
    mechanism: Mechanism, laws: Randomizer, people: int, target: tuple[Fraction, int]
) -> dict[str, Any]:
    """Return a proof for all ordered pairs of listed inputs, or of the two ends of an interval."""
    epsilon, digits = target
    source = mechanism.source
    assert isinstance(source, Local)
    if not laws.worst:
        raise InputError(
            f"{mechanism.summary}: a certificate file is of laws that are listed, and which inputs "
            "of this interval are the worst pair is not known; list the inputs, as in "
            "inputs = { values = [0, 1] }"
        )
    pairs = list(permutations(range(len(laws.inputs)), 2))
    outputs, estimates = splits_of_all(laws.outputs, pairs, people, float(epsilon))
    densities = tuple(source.density.subs(source.input, value) for value in laws.inputs)  # type: ignore[union-attr]
    ends = mechanism.support.lower, mechanism.support.upper
    answers = Answers(densities, mechanism.variable, ends, people, epsilon)
    for fewer in range(min(digits, _DENSITY_DIGITS), 0, -1):
        document = _to_digits(answers, outputs, estimates, fewer)
        if document is not None:
            break
    else:
        raise AccuracyError(
            f"{mechanism.summary}: no certificate file, as its checker would need too many nodes; "
            "certify without a file"
        )
    if source.is_interval:
        lower, upper = laws.inputs
        document["assumed"] = (
            f"of all inputs from {lower} to {upper} these two have the least law and are the worst "
            f"pair: {laws.worst.reason}"
        )
    return document


def _to_digits(
    answers: Answers, outputs: Outputs, estimates: list[Estimate], digits: int
) -> dict[str, Any] | None:
    """Return a certificate to so many digits, None where that takes the checker too long."""
    epsilon = float(answers.epsilon)
    people = answers.people
    largest = min(max(estimate.log_delta for estimate in estimates), 0.0)
    least_mass = math.exp(largest - (digits + 1.0) * LN10)
    layouts = {}
    for estimate in estimates:
        kept = estimate.split.kept
        line = line_of(part_law(outputs.only(kept), estimate.pair, epsilon), people, digits)
        if estimate.log_delta <= largest - _BELOW:
            line = replace(line, terms=0)
        layouts[estimate.pair] = Layout(line, _rows(outputs, kept, least_mass))
    bits = _BITS + int((digits * LN10 + math.log(people) - largest) / math.log(2.0))
    return make_of_answers(answers, layouts, largest, (bits, digits))


def _rows(
    outputs: Outputs, kept: Any, least_mass: float
) -> tuple[tuple[tuple[float, ...], int], ...]:
    """Return edges of neighbouring panels on which one law is the least, those with mass alone."""
    masses = (outputs.densities * outputs.weights).sum(axis=2).max(axis=0)
    middle = outputs.densities.shape[2] // 2
    smallest = outputs.densities[:, :, middle].argmin(axis=0)
    below = np.cumsum(masses)
    above = np.cumsum(masses[::-1])[::-1]
    counts = kept & (below > least_mass) & (above > least_mass)
    rows: list[tuple[tuple[float, ...], int]] = []
    last = -1
    for index in np.flatnonzero(counts).tolist():
        edges = (float(outputs.low[index]), float(outputs.high[index]))
        least = int(smallest[index])
        if rows and last == least and rows[-1][0][-1] == edges[0]:
            rows[-1] = ((*rows[-1][0], edges[1]), least)
        else:
            rows.append((edges, least))
        last = least
    return tuple(rows)


def _short(value: float) -> str:
    """Return a number of few digits, which is all that a plan needs."""
    return f"{value:.6e}"


def _ratios(mechanism: Mechanism, index: int) -> list[Fraction]:
    source = mechanism.source
    assert isinstance(source, Local)
    masses: tuple[Any, ...] = source.law(index, mechanism.variable, mechanism.support)
    if not all(mass.is_Rational for mass in masses):
        raise InputError(
            f"{mechanism.summary}: certificate files of shuffled answers are of masses that are "
            "ratios; use certify without a file"
        )
    return [Fraction(str(mass)) for mass in masses]
