"""The sum of a plan in balls, for an answer of which doubles lose too much to rounding.

n steps multiply every rounding error by n, and next to the largest loss the logarithms are large
that cancel. A plan that doubles found is as good as ever then: its sum, evaluated in balls, has
any number of digits (see `symdp.prove.line`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from flint import arb

from symdp.errors import AccuracyError
from symdp.numeric.answer import Answer, answer_in_balls, margin
from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import escapes, inner_place
from symdp.numeric.outline import Outline
from symdp.numeric.step import SmoothPiece
from symdp.numeric.total import SumLaw, kept_with_law
from symdp.prove.enclosure import MANY, enclose_sum
from symdp.prove.kind import Kind, Kinds, Stretch

_DIGITS = 13  # of δ
_WORK = 0.15  # of what a proof may cost: about two seconds


def in_balls(law: SumLaw, epsilon: float, answer: Answer) -> Answer:
    """Return an answer, or the one in balls where that is narrower."""
    ball = _ball_of_delta(law, epsilon) if law.count >= MANY else None
    if ball is None:
        return answer
    ball_answer = replace(answer_in_balls(ball, -math.inf), slope=answer.slope)
    if margin(ball_answer) < margin(answer):
        return ball_answer
    return answer


@kept_with_law
def _ball_of_delta(law: SumLaw, epsilon: float) -> arb | None:
    """Enclose δ(ε), None where that takes too much work: another line's answer asks again."""
    kinds = _kinds(law)
    try:
        if kinds is None:
            return None
        return enclose_sum(kinds, Fraction(epsilon), _DIGITS, _WORK)
    except AccuracyError:
        return None


@kept_with_law
def _kinds(law: SumLaw) -> Kinds | None:
    """Return the steps of a law in balls, None where they are too many."""
    if len(law.terms) > MANY or any(type(part) is not LossLaw for part, _ in law.parts):
        return None
    return tuple((_LawKind(part), count) for part, count in law.parts)


class _LawStretch(Stretch):
    """A piece of a law in doubles, evaluated by its functions in balls."""

    piece: SmoothPiece

    def __init__(self, piece: SmoothPiece) -> None:
        self.piece = piece
        self.is_integer = piece.integer
        self.is_moved = True
        self.is_infinite = escapes(piece)
        self.is_flat = piece.flat or self.is_infinite

    @property
    def loss(self) -> Any:
        if self.is_infinite:
            return arb.pos_inf()
        return self.piece.ball(arb(inner_place(self.piece)))[1]

    def place(self, edge: float | arb) -> arb:
        if edge in (self.piece.lower, self.piece.upper):
            for end in self.piece.ends:
                if float(end.mid()) == edge:
                    return end
        return arb(edge)

    @cached_property
    def outline(self) -> Outline:
        return Outline(self.piece)

    def whole_mass(self) -> arb | None:
        return None


class _LawKind(Kind):
    """One step as its law in doubles has it."""

    def __init__(self, law: LossLaw) -> None:
        self.law = law
        self.points = ()
        self.stretches = tuple(_LawStretch(piece) for piece in law.step.pieces)

    def atoms(self) -> list[tuple[arb, arb]]:
        return list(self.law.step.point_balls)

    @property
    def may_be_infinite(self) -> bool:
        return self.law.mass_at_infinity > 0

    def infinite_atoms(self) -> arb:
        balls = self.law.step.point_balls
        if not self.law.step.point_loss.size:
            return arb(0)
        missing = 1 - sum((mass for mass, _ in balls), arb(0))
        if self.law.mass_at_infinity > 0:
            return missing
        return arb(0)
