"""Numbers from one exact kind to another: expressions and fractions as balls, and back; a constant
of a density, such as a normalising sum, to as many digits as a target asks for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from symdp.emit.arb import constant, constant_ball
from symdp.errors import AccuracyError

LN10 = math.log(10)  # e-folds of a digit


def real_ball(expression: object) -> arb:
    """Enclose the real part of a variable-free expression at the working precision."""
    return constant_ball(expression, ctx.prec).real


def end_ball(end: object) -> arb | None:
    """Enclose an end of a range, None where it is infinite."""
    if end.is_infinite:  # type: ignore[attr-defined]
        return None
    return real_ball(end)


def fraction_ball(value: Fraction) -> arb:
    """Enclose a fraction at the working precision."""
    return arb(fmpq(value.numerator, value.denominator))


def middle_of(ball: arb) -> Fraction:
    """Return the middle of a ball, exactly."""
    mantissa, exponent = ball.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


_MORE_BITS = (20, 200, 1200)  # carried beside those that are asked for, until they suffice
_ENOUGH = 140  # bits that doubles ask for
_SEEN = arb(2) ** -39  # relative: how far off a mass may be that two quadratures found
_SMALLEST = arb(2) ** -1080  # below every double: a ball that lies within it about 0 stands for 0


def constant_value(node: Any, bits: int) -> Any:
    """Return a variable-free expression as mpf, mpc or bool, right to so many bits."""
    import mpmath  # SymPy and mpmath only where a constant is asked for

    from symdp.emit.mass import MassIntegral

    holds_mass = bits <= _ENOUGH and bool(node.atoms(MassIntegral))
    for more in _MORE_BITS:
        with ctx.workprec(bits + more):
            value = constant(node)
        if isinstance(value, bool):
            return value
        parts = [_midpoint(part, abs(value), bits) for part in (value.real, value.imag)]
        if None not in parts:
            real, imaginary = parts
            if imaginary:
                return mpmath.mpc(real, imaginary)
            return real
        # A mass is known to fewer bits where its tails fall slowly, or where it is not proved;
        # log 1 to an absolute accuracy.
        if holds_mass and value.real.rad() < _SEEN * abs(value.real).max(arb(1)):
            return _midpoint(value.real, arb(1), 0)
    shown = value.real.str(5)
    raise AccuracyError(
        f"'{node}' could not be enclosed to {bits} bits: {shown}; write it in closed form"
    )


def _midpoint(part: arb, size: arb, bits: int) -> Any:
    """Return the middle of a ball that is sharp beside the size of the number, else None."""
    import mpmath

    if part.is_exact() and not part.is_nan():
        middle = part
    elif part.is_finite() and (part.rad() <= size * arb(2) ** -bits or abs(part) < _SMALLEST):
        middle = arb(0) if part.contains(0) else part.mid()
    else:
        return None
    if not middle.is_finite():
        if middle > 0:
            return mpmath.inf
        return -mpmath.inf
    mantissa, exponent = middle.man_exp()
    with mpmath.workprec(max(int(mantissa).bit_length(), 1)):
        return mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))
