"""Whether a record that moves the output by less may cost more: one sentence wherever it is said.

A page of a derivation, the comment of a program and the page of densities take the same words; in
braces stands how it is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from symdp.questions.steps.accounted import has_one_shift

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

DOMINATES = (
    "this noise has one mode, so that it dominates every smaller shift, as a half-line shifts with "
    "it ({})"
)
MAY_LOSE_MORE = (
    "this noise was not shown to have one mode ({}), and a smaller shift may lose more: numbers "
    "are asked of a pair that bounds all shifts, unless shift = 'exactly'"
)
NO_SMALLER = "there is no smaller shift, as outputs are whole numbers"


def of_smaller_shifts(mechanism: Mechanism) -> str:
    """Say whether the pair of additive noise dominates every smaller shift too, from the facts."""
    from symdp.balls.modes import one_mode

    fact = one_mode(mechanism)
    if fact:
        reason, _, _ = fact.reason.partition(":")  # what lies behind it is among the facts
        return DOMINATES.format(reason)
    if has_one_shift(mechanism):
        return NO_SMALLER
    return MAY_LOSE_MORE.format(fact.reason)
