"""δ(ε) from the line between the poles, where K need not be finite at any t > 0.

With g(ε) = E min(1, e^{ε−L}) over finite losses δ(ε) = 1 − g(ε), and for −1 < t < 0

    −g(ε) = (1/2π) ∫ e^{K(z)−εz}/(z(1+z)) dy,    z = t + iy.

K is finite there whatever the densities.  What 1 − g cancels is digits of δ itself, not of e^ε.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx, fmpq

from symdp.certify.estimate import find_saddle
from symdp.certify.line import Goal, sum_line
from symdp.certify.step import tilted_step
from symdp.certify.work import LN10
from symdp.errors import AccuracyError
from symdp.law.tilts import Strip

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_SPARE = 2.0  # digits
_TRIES = 3  # with more digits carried, as many as cancelled
_BITS = 128  # carried beside the digits wanted
_FEWEST_BITS = 3  # of a tilt


def enclose_middle(steps: Sequence[tuple[Pair, int]], exact: Fraction, digits: int) -> arb:
    """Enclose δ(ε) of many steps from the middle of the strip.

    Parameters
    ----------
    steps : sequence of (Pair, count)
        All parameters bound.
    exact : Fraction
        ε.
    digits : int

    Raises
    ------
    AccuracyError
        If the line is refused, or stays too wide.
    """
    more = digits + _SPARE
    saddle = find_saddle(steps, float(exact), Strip.MIDDLE)
    if saddle is None:
        raise AccuracyError("no saddle point was found between the poles")
    step = 2.0 ** math.floor(-0.5 * math.log2(saddle.curvature) - 1.0)
    near = min(-saddle.tilt, 1 + saddle.tilt)
    unit = sp.Rational(min(step, 2.0 ** (math.floor(math.log2(near)) - _FEWEST_BITS)))
    tilt = round(saddle.tilt / float(unit)) * unit
    tilted = [(tilted_step(pair, tilt), n) for pair, n in steps]
    for _ in range(_TRIES):
        width = step * 2.0 ** round(2 + math.log2(LN10 * more) / 2)
        bits = 3.33 * more + max(saddle.log_size, 0.0) / math.log(2) + _BITS
        with ctx.workprec(int(bits + math.log2(sum(n for _, n in steps)))):
            epsilon = arb(fmpq(exact.numerator, exact.denominator))
            ball = (1 + sum_line(tilted, tilt, epsilon, Goal(0.0, width, more))).min(arb(1))
            if ball > 0 and 2 * ball.rad() < ball.lower() * arb(10) ** -digits:
                return ball
            size = abs(ball).upper()
        more += max(_SPARE - float(size.log()) / LN10, _SPARE) if size > 0 else digits
    raise AccuracyError("the enclosure stays too wide; ask for fewer digits")
