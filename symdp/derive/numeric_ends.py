"""What numbers show where no formula was found: the domain of K and the range of the loss.

Nothing here is proved.  Ends are read off values far out, and always declared as numeric.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import sympy as sp
from flint import arb, ctx

from symdp.density.check import as_fraction, exactly
from symdp.density.records import Piece
from symdp.emit.arb import ArbFunction, compile_arb
from symdp.errors import InputError

_BITS, _ROUGH_BITS = 480, 128  # carried next to an end, where terms cancel; elsewhere
# Of places 2^k towards an end.
_EXPONENTS = (*range(2, 32), *range(32, 96, 8), *range(96, 1024, 64))
_SETTLED = 1e-5  # relative change of an end from one place to the next
_SLOW = 0.01  # the same while it still creeps towards its limit
_HUGE = 1e3  # a ratio that is taken to grow without end
_DOUBLED = 1.4  # growth over the last eight places that does not end
_DIGITS, _FEW_DIGITS = 6, 2  # shown of a slope that has settled, and of one that has not
_NEAR = 10  # 2^10 is as far as Bessel functions are followed: theirs take long far out
_GRID = 64  # places to each doubling of the distance from an end
_SLOW_GRID = 8  # the same of a loss with Bessel functions, which take a millisecond each
_SWEEPS = 10  # octaves of a grid outwards
_FAR = 20  # places that must have values before the last of them counts as far out
_THIRDS = 30  # cuts of a cell of the grid, to a third each
_GROWTH = 1.001  # of a loss, from one far place to the next, that counts as without bound

Range = tuple[sp.Expr, sp.Expr]


def numeric_domain(pieces: Sequence[Piece], x: sp.Symbol) -> Range | None:
    """Return (t₋, t₊) as far as numbers show it, to six digits; None where they do not.

    At an end of a piece, ∫ P^{1+t} Q^{−t} is finite while log P + tℓ + log w → −∞, w the distance
    from a finite end or |x|, so that it bounds t by −Δ(log P + log w)/Δℓ from one place to the
    next further out, on the side that the sign of Δℓ tells.
    """
    lower, upper = -sp.oo, sp.oo
    try:
        for piece in pieces:
            if piece.log_p is None or piece.log_q is None or piece.lower == piece.upper:
                continue
            for end, side in ((piece.lower, 1), (piece.upper, -1)):
                if x.is_integer and not end.is_infinite:
                    continue
                bound = _bound(piece, x, end, side)
                if bound is None:
                    return None
                if bound[1] > 0:
                    upper = min(upper, bound[0])
                elif bound[1] < 0:
                    lower = max(lower, bound[0])
    except InputError:  # a function that ball arithmetic does not have
        return None
    return lower, upper


def _bound(piece: Piece, x: sp.Symbol, end: sp.Expr, side: int) -> tuple[sp.Expr, int] | None:
    """A bound on t and its side, 0 for no bound; None where the values do not settle."""
    ratios: list[tuple[float, int]] = []
    for (size, loss), (next_size, next_loss) in pairwise(_values(piece, x, end, side)):
        fall, rise = next_size - size, next_loss - loss
        if not fall < 0:
            ratios.clear()  # still on its way to the tail
            continue
        if rise.contains(0):
            ratios.append((_HUGE**3, 0))
            continue
        ratios.append((float((-fall / rise).mid()), 1 if float(rise.mid()) > 0 else -1))
    if len(ratios) < 8 or len({sign for _, sign in ratios[-3:] if sign}) > 1:
        return None
    (before, _), (near, _), (last, sign) = ratios[-3:]
    change, earlier = abs(last - near), abs(near - before)
    rises = abs(last) > abs(near) > abs(before)
    if not sign or (rises and (abs(last) > _HUGE or abs(last) > _DOUBLED * abs(ratios[-8][0]))):
        return sp.S.Zero, 0
    settled = change <= _SETTLED * abs(last)
    if not settled and (change > _SLOW * abs(last) or change > earlier):
        return None
    digits = _DIGITS if settled else _FEW_DIGITS
    return sp.Rational(f"{last:.{digits}g}"), sign


def _values(piece: Piece, x: sp.Symbol, end: sp.Expr, side: int) -> Iterator[tuple[arb, arb]]:
    """(log P + log w, ℓ) at places that close in on an end, as far as they are known."""
    with ctx.workprec(_BITS):
        log_p, loss = (compile_arb(part, [x]) for part in (piece.log_p, piece.loss))
        place = as_fraction(end)
        other = as_fraction(piece.upper if side > 0 else piece.lower)
        assert piece.log_p is not None
        slow = any(part.has(sp.besselk, sp.besseli) for part in (piece.log_p, piece.loss))
        for k in _EXPONENTS:
            if slow and place is None and k > _NEAR:
                return
            width = Fraction(2) ** (k if place is None else -k)
            at = -side * width if place is None else place + side * width
            if other is not None and (at - other) * (-side) <= 0:
                continue
            found = log_p(exactly(at)).real, loss(exactly(at)).real
            if not all(ball.is_finite() and float(ball.rad()) < 1e-9 for ball in found):
                return
            yield found[0] + arb(width.numerator).log() - arb(width.denominator).log(), found[1]


def numeric_range(pieces: Sequence[Piece], x: sp.Symbol) -> Range | None:
    """Return the least and the greatest loss seen, to six digits; None where it has no values.

    A loss that still grows far out counts as unbounded.
    """
    values: list[float] = []
    with ctx.workprec(_ROUGH_BITS):
        for piece in pieces:
            if piece.log_p is None or piece.log_q is None:
                continue
            if piece.loss.has(sp.besseli):
                return None  # where its order goes to infinity is not followed far enough
            try:
                loss = compile_arb(piece.loss, [x])
                values.extend(_last(piece, x))
            except InputError:
                return None
            found = _extremes(loss, _grid(piece, bool(x.is_integer)), bool(x.is_integer))
            if found is None:
                return None
            values.extend(found)
    if not values:
        return None
    return _rounded(min(values)), _rounded(max(values))


def _extremes(
    loss: ArbFunction, grid: Iterable[Fraction], is_whole: bool
) -> tuple[float, float] | None:
    """The least and the greatest value on a grid, sharpened; None where one is not known."""
    heights: dict[Fraction, float] = {}
    for at in grid:
        ball = loss(exactly(at)).real
        if not ball.is_finite():
            return None
        heights[at] = float(ball)
    places, ends = sorted(heights), []
    for sign in (-1, 1):
        signed = [sign * heights[place] for place in places]
        best = signed.index(max(signed))
        low, high = places[max(best - 1, 0)], places[min(best + 1, len(places) - 1)]
        top = signed[best]
        for _ in range(0 if is_whole else _THIRDS):
            third = (high - low) / 3
            left, right = (
                sign * float(loss(exactly(at)).real) for at in (low + third, high - third)
            )
            low, high = (low, high - third) if left > right else (low + third, high)
            top = max(top, left, right)
        ends.append(sign * top)
    return ends[0], ends[1]


def _last(piece: Piece, x: sp.Symbol) -> Iterator[float]:
    """The loss at the farthest places towards both ends, ±∞ where it still grows there."""
    for end, side in ((piece.lower, 1), (piece.upper, -1)):
        losses = [float(loss.mid()) for _, loss in _values(piece, x, end, side)]
        if len(losses) > _FAR:
            grows = abs(losses[-1]) > 1 and all(
                abs(a) * _GROWTH < abs(b) for a, b in pairwise(losses[-3:])
            )
            yield math.copysign(math.inf, losses[-1]) if grows else losses[-1]


def _rounded(value: float) -> sp.Expr:
    return sp.oo * int(math.copysign(1, value)) if math.isinf(value) else sp.Float(value, _DIGITS)


def _grid(piece: Piece, is_whole: bool) -> Iterator[Fraction]:
    low, high = as_fraction(piece.lower), as_fraction(piece.upper)
    if low is not None and high is not None:
        steps = _GRID * 16
        places = (low + (high - low) * Fraction(2 * k + 1, 2 * steps) for k in range(steps))
    else:
        per_doubling = _SLOW_GRID if piece.loss.has(sp.besselk) else _GRID
        start = low if low is not None else high if high is not None else Fraction(0)
        sides = [side for side, end in ((1, high), (-1, low)) if end is None]
        places = (
            start + side * Fraction(2) ** k * Fraction(per_doubling + j, per_doubling)
            for side in sides
            for k in range(-20, _SWEEPS)
            for j in range(per_doubling)
        )
    yield from (Fraction(round(at)) if is_whole else at for at in places)
