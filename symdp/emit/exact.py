"""Numbers from one exact kind to another: expressions and fractions as balls, and back."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, ctx, fmpq

from symdp.emit.arb import constant_ball

LN10 = math.log(10)  # e-folds of a digit
BITS = 128  # carried by balls of which at most 30 digits are wanted, so that 28 bits may cancel


def real_ball(expression: object) -> arb:
    """Enclose the real part of a variable-free expression at the working precision."""
    return constant_ball(expression, ctx.prec).real


def end_ball(end: object) -> arb | None:
    """Enclose an end of a range, None where it is infinite."""
    return None if end.is_infinite else real_ball(end)  # type: ignore[attr-defined]


def fraction_ball(value: Fraction) -> arb:
    """Enclose a fraction at the working precision.

    >>> float(fraction_ball(Fraction(3, 4)))
    0.75
    """
    return arb(fmpq(value.numerator, value.denominator))


def middle_of(ball: arb) -> Fraction:
    """Return the middle of a ball, exactly.

    >>> middle_of(arb(1) / 4)
    Fraction(1, 4)
    """
    mantissa, exponent = ball.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
