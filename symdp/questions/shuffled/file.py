"""A certificate file of shuffled answers: lists, of which the checker proves the sum anew."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from symdp.emit.exact import LN10
from symdp.errors import InputError
from symdp.model.local import Local
from symdp.numeric.shuffled.blanket import part_law
from symdp.prove.witness import make_shuffled
from symdp.questions.shuffled.outputs import randomizer
from symdp.questions.shuffled.plan import line_of
from symdp.questions.shuffled.proof import listed_parts

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

_DIGITS = 4  # of the sum: each more takes ten times as long to check
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
    if not laws.outputs.is_list:
        raise InputError(
            f"{mechanism.summary}: certificate files of shuffled answers are of lists of outcomes; "
            "of densities use certify without a file"
        )
    if epsilon < 0:
        raise InputError("shuffled answers are bounded from epsilon = 0 on")
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
