"""The larger of two directions: the other is proved below it, with no more digits than that takes.

Estimates say which direction comes first and how many digits tell the two apart; what is returned
does not rest on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb, ctx

from symdp.prove.enclosure import enclose_delta, estimate_log_delta
from symdp.prove.inverse import enclose_epsilon, is_above

if TYPE_CHECKING:
    from symdp.model.allocation import OneStep

_SPARE = 1.0  # digits beyond those that the gap of the estimates shows
_CLOSE = 1e-9  # a gap that may be rounding: the same loss in both directions


def larger_delta(
    pairs: Mapping[str, Sequence[tuple[OneStep, int]]],
    epsilon: float | Fraction,
    digits: int,
) -> tuple[str, arb]:
    """Return the direction of the larger δ(ε), and a ball around it.

    Parameters
    ----------
    pairs
        The (pair, count) of each direction.
    epsilon, digits
        As for `enclose_delta`.

    Raises
    ------
    InputError, AccuracyError
        As `enclose_delta`.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> step = mechanisms.gaussian(sigma=2).subsample("poisson", 0.1)
    >>> both = {side: [(step.pair(side), 1)] for side in ("add", "remove")}
    >>> side, ball = larger_delta(both, 0.5, 8)
    >>> side, bool(ball.overlaps(enclose_delta(both["remove"], 0.5, 8)))
    ('remove', True)
    """
    if len(pairs) == 1:
        ((side, steps),) = pairs.items()
        return side, enclose_delta(steps, epsilon, digits)
    about = {side: estimate_log_delta(steps, epsilon) for side, steps in pairs.items()}
    side, *others = _order(about)
    largest = enclose_delta(pairs[side], epsilon, digits)
    for other in others:
        few = _telling_digits(about[side], about[other])
        if few < digits and enclose_delta(pairs[other], epsilon, int(few), largest) < largest:
            continue
        ball = enclose_delta(pairs[other], epsilon, digits, largest)
        with ctx.workprec(4 * digits + 64):
            side, largest = other if ball > largest else side, largest.max(ball)
    return side, largest


def larger_epsilon(
    pairs: Mapping[str, Sequence[tuple[OneStep, int]]],
    delta: float | Fraction,
    digits: int,
    about: Mapping[str, float | None],
) -> tuple[str, tuple[Fraction, Fraction]]:
    """Return the direction of the larger ε(δ), and the ends around it.

    Where δ(a) ≤ δ is proved in one direction, its ε is at most a.

    Parameters
    ----------
    pairs
        The (pair, count) of each direction.
    delta, digits
        As for `enclose_epsilon`.
    about
        An estimate of each direction's ε, which says where to begin; None where there is none.

    Raises
    ------
    InputError, AccuracyError
        As `enclose_epsilon`.
    """
    side, *others = _order(about)
    ends = enclose_epsilon(pairs[side], delta, digits, about[side])
    for other in others:
        if ends[0] > 0 and _clearly_below(pairs[other], delta, ends[0], digits):
            continue
        found = enclose_epsilon(pairs[other], delta, digits, about[other])
        # Symmetric noise gives the same in both directions: the first one is named.
        side = other if found[0] > ends[1] else side
        ends = max(ends[0], found[0]), max(ends[1], found[1])
    return side, ends


def _clearly_below(
    pairs: Sequence[tuple[OneStep, int]],
    delta: float | Fraction,
    epsilon: Fraction,
    digits: int,
) -> bool:
    """Whether few digits prove ε(δ) to be at most the ε given."""
    target = Fraction(delta)  # which may be below all doubles
    log_delta = math.log(target.numerator) - math.log(target.denominator)
    few = _telling_digits(log_delta, estimate_log_delta(pairs, epsilon))
    return few < digits and is_above(pairs, delta, epsilon, int(few))


def _order(about: Mapping[str, float | None]) -> list[str]:
    """Return the directions, what seems clearly the largest first."""
    first, *_ = sides = list(about)
    known = {side: value for side, value in about.items() if value is not None}
    if len(known) < len(sides):
        return sides
    best = max(sides, key=known.__getitem__)
    if known[best] - known[first] > _CLOSE * max(1.0, abs(known[first])):
        return [best, *(side for side in sides if side != best)]
    return sides


def _telling_digits(larger: float | None, smaller: float | None) -> float:
    """Return how many digits of the smaller δ tell it from the larger, given both logs."""
    if larger is None or smaller is None or not larger - smaller > _CLOSE * max(1.0, abs(larger)):
        return math.inf
    if smaller == -math.inf:
        return 1
    return max(1, math.ceil(_SPARE - math.log10(-math.expm1(smaller - larger))))
