"""Where a proof of shuffled answers looks: found in doubles, and none of it believed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb, ctx

from symdp.emit.enclose import between
from symdp.emit.exact import LN10
from symdp.errors import AccuracyError
from symdp.numeric.shuffled.law import PartLaw
from symdp.numeric.shuffled.line import chernoff, period
from symdp.prove.blanket import Law, Line, SmoothPart
from symdp.tolerances import NEGLIGIBLE

SLACK = Fraction(1, 2**40)  # of log ω, by which it lies below the smallest law
MOST_DIGITS = 6  # of the bound: each more takes ten times the terms
_LEAST_DIGITS = 2  # with fewer it is refused
_MOST_PRODUCTS = 2e7  # of a sum: about three seconds
_MOST_CELLS = 2_000  # tried when one law is shown to lie below another on a panel
_DEPTH = 80  # halvings of such a panel
_BITS = 80  # beyond those that n takes


def line_of(law: PartLaw, people: int, digits: int) -> Line:
    """Return where to sum to so many digits, found in doubles."""
    tilt, _ = chernoff(law, people)
    # E[(S + G)₊] lies above E[S₊] by a share of about t²τ²/2
    blur = math.sqrt(2.0 * 10.0 ** -(digits + 0.3)) / tilt
    length = period(law, people, tilt)
    deviation = tilt * law.spread(tilt) * math.sqrt(people)
    fall = (digits + 2.0) * LN10 + math.log1p(deviation)
    end = math.sqrt(2.0 * fall) / blur
    terms = math.ceil(end * length / (2.0 * math.pi))
    return Line(tilt, length, blur, terms, digits, people)


def sized(part: Any, doubles: PartLaw, people: int, digits: int) -> tuple[Line, Law]:
    """Return a line to at most so many digits, of fewer where its sum would take too long."""
    for fewer in range(min(digits, MOST_DIGITS), _LEAST_DIGITS - 1, -1):
        line = line_of(doubles, people, fewer)
        # nodes are at least as many as the largest frequency has turns where the tilt leaves much
        lowest = max(float(doubles.values.min()), -NEGLIGIBLE / line.tilt)
        turns = line.reach * (float(doubles.values.max()) - lowest) / math.pi
        if isinstance(part, SmoothPart) and float(line.terms) * turns > _MOST_PRODUCTS:
            continue
        with ctx.workprec(working_bits(people, fewer)):
            law = part.law(line)
        if float(line.terms) * len(law.values) < _MOST_PRODUCTS:
            return line, law
    raise AccuracyError(
        "the law of so few answers is too rough to certify; ask more people, or a smaller epsilon"
    )


def working_bits(people: int, digits: int) -> int:
    """Return bits with which n-th powers keep so many digits."""
    return _BITS + people.bit_length() + int(digits * LN10 / math.log(2.0))


def is_above(
    difference: Callable[..., Any], edges: Sequence[arb], least: arb | None = None
) -> bool:
    """Whether balls prove a function to be above a number, 0 where left out, between edges."""
    floor = arb(0) if least is None else least
    waiting = [(left, right, 0) for left, right in pairwise(edges)]
    tried = 0
    while waiting:
        tried += 1
        left, right, depth = waiting.pop()
        if difference(between(left, right)) > floor:
            continue
        if depth > _DEPTH or tried > _MOST_CELLS:
            return False
        middle = ((left + right) / 2).mid()
        waiting += [(left, middle, depth + 1), (middle, right, depth + 1)]
    return True
