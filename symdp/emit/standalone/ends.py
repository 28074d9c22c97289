"""Ends of the support at which a density has no bound: places are told from the end, not from 0.

Where a density grows like a power next to a finite end a, half of its mass may lie so near that no
double tells x from a. There x = a ± w e^{−s}, and s runs from 0 to ∞: with the factor w e^{−s} the
density falls exponentially, and log(x − a) is log w − s without a subtraction.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from symdp.emit.standalone.write import Piece

_DISTANCE = sp.Symbol("_distance", positive=True)
_LONGEST = 300  # operations of a ratio of polynomials that is written as one fraction


def told_from_ends(piece: Piece, x: sp.Symbol) -> Iterator[Piece]:
    """Yield a piece as it is, or in parts, of which those next to singular ends have another x."""
    lower, upper = piece.lower, piece.upper
    is_low = _is_singular(piece, x, lower)
    is_high = _is_singular(piece, x, upper)
    if not (is_low or is_high):
        yield piece
        return
    inner = _place_inside(lower, upper)
    if is_low:
        yield _part_at_end(piece, x, lower, 1, inner - lower)
    else:
        yield _part_inside(piece, lower, inner)
    if is_high:
        yield _part_at_end(piece, x, upper, -1, upper - inner)
    else:
        yield _part_inside(piece, inner, upper)


def _place_inside(lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    """Return a place between two ends, one of which may be infinite."""
    if upper.is_infinite:
        return lower + 1
    if lower.is_infinite:
        return upper - 1
    return (lower + upper) / 2


def _is_singular(piece: Piece, x: sp.Symbol, end: sp.Expr) -> bool:
    """Whether a density may grow like a power at an end: a logarithm or a power is of 0 there.

    A logarithm that is only added, times what is not negative, makes the density vanish.
    """
    if end.is_infinite:
        return False
    for log_density in (piece.log_p, piece.log_q):
        if log_density is None:
            continue
        for term in sp.Add.make_args(log_density):
            factor, remaining = term.as_independent(x, as_Add=False)
            falls = isinstance(remaining, sp.log) and factor.is_nonnegative
            bases = [remaining.args[0]] if falls else []
            powers = (atom for atom in remaining.atoms(sp.log, sp.Pow) if atom.args[0] not in bases)
            if any(_is_zero_or_pole(power, x, end) for power in powers):
                return True
    return False


def _is_zero_or_pole(power: sp.Expr, x: sp.Symbol, end: sp.Expr) -> bool:
    """Whether the argument of a logarithm, or the base of a power that is no square, is 0."""
    base = power.args[0]
    is_rational = base.has(x) and base.is_rational_function(x)
    if not is_rational:
        return False
    above, below = _fraction(base)
    is_zero = _multiplied_out(above.subs(x, end)) == 0
    is_pole = _multiplied_out(below.subs(x, end)) == 0
    if power.is_Pow and power.exp.is_nonnegative:
        return bool(is_pole)
    return bool(is_zero or is_pole)


def _part_inside(piece: Piece, lower: sp.Expr, upper: sp.Expr) -> Piece:
    return Piece(lower, upper, piece.log_p, piece.log_q, piece.loss, piece.is_flat)


def _part_at_end(piece: Piece, x: sp.Symbol, end: sp.Expr, sign: int, wide: sp.Expr) -> Piece:
    """Return what lies between an end and a place `wide` from it; `sign`: to the right or left."""
    log_wide = sp.log(wide)

    def by_distance(expression: sp.Expr) -> sp.Expr:
        if expression.is_infinite:
            return expression
        moved = expression.xreplace({x: end + sign * _DISTANCE})
        moved = moved.replace(_is_power_of_distance, _power_of_factors)
        moved = moved.replace(sp.log, _log_of_factors)
        moved = moved.xreplace({sp.log(_DISTANCE): log_wide - x})
        return moved.xreplace({_DISTANCE: wide * sp.exp(-x)})

    def density(log_density: sp.Expr | None) -> sp.Expr | None:
        if log_density is None:
            return None
        return by_distance(log_density) + log_wide - x

    log_p = density(piece.log_p)
    log_q = density(piece.log_q)
    return Piece(sp.S.Zero, sp.oo, log_p, log_q, by_distance(piece.loss), piece.is_flat)


def _is_power_of_distance(expression: sp.Expr) -> bool:
    """Whether it is a power of a ratio of polynomials in the distance."""
    return bool(expression.is_Pow and expression.base.is_rational_function(_DISTANCE))


def _power_of_factors(power: sp.Expr) -> sp.Expr:
    """Return a power whose base has the distance as a factor where it can."""
    above, below = _fraction(power.base)
    return (above / below) ** power.exp


def _fraction(ratio: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Return numerator and denominator, common factors of their terms apart."""
    if ratio.count_ops() > _LONGEST:
        return ratio, sp.S.One
    above, below = sp.fraction(sp.together(ratio))
    return sp.factor_terms(_multiplied_out(above)), sp.factor_terms(_multiplied_out(below))


def _multiplied_out(expression: sp.Expr) -> sp.Expr:
    if expression.count_ops() > _LONGEST:
        return expression
    return sp.expand(expression)


def _log_of_factors(argument: sp.Expr) -> sp.Expr:
    """Return log of what may have a power of the distance as a factor, which stands apart."""
    if not argument.is_rational_function(_DISTANCE):
        return sp.log(argument)
    above, below = _fraction(argument)
    total = sp.S.Zero
    for part, sign in ((above, 1), (below, -1)):
        remaining, powers = part.as_independent(_DISTANCE, as_Add=False)
        for factor in sp.Mul.make_args(powers):
            base, exponent = factor.as_base_exp()
            if base == _DISTANCE:
                total += sign * exponent * sp.log(_DISTANCE)
            else:
                remaining *= factor
        if remaining != 1:
            total += sign * sp.log(remaining)
    return total
