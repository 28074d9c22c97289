"""Moments of the loss by ball arithmetic: what closed forms are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import sympy as sp
from flint import acb, arb, ctx, fmpq

from symdp.density.records import Piece, Point
from symdp.emit.arb import ArbFunction, compile_arb
from symdp.errors import InputError

BITS = 480  # carried: checks are to 30 digits
_DROP = 60.0  # integrals are cut where e^−60 of them is left
_FAR = 1000  # cuts are sought as far out as 2^1000
_MOST_EVALUATIONS = 50_000  # of an integrand: a few seconds
_MOST_TERMS = 20_000  # of a sum: a few seconds
_ZOOMS = 24  # halvings around a peak
_CLIMBS = 8  # grids, each around the last one's peak
_DEEP, _NOTHING = -1e6, -1e300  # logs of sizes that do not count

Height = Callable[[Fraction], float]
Smooth = Callable[[Fraction, Fraction], bool]


class CheckError(ArithmeticError):
    """The integral of a check could not be had."""


def moment(z: sp.Expr, pieces: Sequence[Piece], points: Sequence[Point], x: sp.Symbol) -> acb:
    """Return a ball around M(z) = Σ ∫ P^{1+z} Q^{−z} where both densities are positive.

    The cuts of infinite ranges are not part of the ball; they leave out about e^−60 of the whole.

    Raises
    ------
    CheckError
        Where an integrand falls too slowly, is too singular, or an integral does not converge.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> piece = Piece(-sp.oo, sp.oo, -(x**2) - sp.log(sp.pi) / 2, None, 2 * x, "increasing")
    >>> moment(sp.S.One, [piece], [], x).real.str(15, radius=False)
    '2.71828182845905'
    """
    with ctx.workprec(BITS):
        total = acb(0)
        for point in points:
            if point.loss not in (sp.oo, -sp.oo):
                loss, mass = (compile_arb(part, [])() for part in (point.loss, point.p))
                total += acb(mass) * (_ball(z) * acb(loss)).exp()
        for piece in pieces:
            if piece.loss not in (sp.oo, -sp.oo) and piece.log_p is not None:
                total += _PieceMoment(piece, z, x).value()
    return total


def _ball(z: sp.Expr) -> acb:
    parts = [sp.Rational(part) for part in z.as_real_imag()]
    return acb(*(fmpq(int(part.p), int(part.q)) for part in parts))


def exactly(point: Fraction) -> acb:
    """Return a fraction as a ball."""
    return acb(fmpq(point.numerator, point.denominator))


def as_fraction(end: sp.Expr) -> Fraction | None:
    """Return a number as a fraction, right to 150 digits; None where it is infinite."""
    if end in (sp.oo, -sp.oo):
        return None
    rational = end if end.is_Rational else sp.Rational(str(end.evalf(150)))
    return Fraction(int(rational.p), int(rational.q))


class _PieceMoment:
    """∫ exp(log P + z·loss) over one piece."""

    def __init__(self, piece: Piece, z: sp.Expr, x: sp.Symbol) -> None:
        assert piece.log_p is not None
        self.log_p, self.loss = compile_arb(piece.log_p, [x]), compile_arb(piece.loss, [x])
        self.formulas = (piece.log_p, piece.loss, x)
        self.z = _ball(z)
        self.low, self.high = as_fraction(piece.lower), as_fraction(piece.upper)
        self.is_sum = bool(x.is_integer)

    @cached_property
    def slopes(self) -> tuple[ArbFunction, ArbFunction] | None:
        """The derivatives of log P and of the loss, None where they have no ball arithmetic."""
        log_p, loss, x = self.formulas
        try:
            return compile_arb(sp.diff(log_p, x), [x]), compile_arb(sp.diff(loss, x), [x])
        except InputError:
            return None

    def integrand(self, point: Any, analytic: bool) -> Any:
        exponent = self.log_p(point, analytic=analytic) + self.z * self.loss(
            point, analytic=analytic
        )
        wide = exponent.is_finite() and not bool(exponent.real.rad() < 1)
        return (self._centred(point, exponent, analytic) if wide else exponent).exp()

    def _centred(self, point: acb, exponent: acb, analytic: bool) -> acb:
        """The exponent by the mean value theorem: log P and z·ℓ may be large and cancel."""
        if self.slopes is None:
            return exponent
        middle = acb(point.real.mid(), point.imag.mid())
        log_p, loss = (slope(point, analytic=analytic) for slope in self.slopes)
        at_middle = self.log_p(middle) + self.z * self.loss(middle)
        found = at_middle + (log_p + self.z * loss) * (point - middle)
        return found if bool(found.real.rad() < exponent.real.rad()) else exponent

    def height(self, point: Fraction) -> float:
        """Log of the integrand's size, −∞ where balls overflow."""
        place = exactly(point)
        ball = (self.log_p(place) + self.z.real * self.loss(place)).real
        if not ball.is_finite():
            return -math.inf
        if bool(ball.rad() < 1):
            return max(float(ball), _NOTHING)
        # Far down a bound is as good as the value, which may cancel below the precision.
        return max(float(ball.upper()), _NOTHING) if bool(ball < _DEEP) else -math.inf

    def is_smooth(self, end: Fraction, other: Fraction) -> bool:
        """Whether the integrand is analytic around an end, as far as a small ball there shows."""
        width = exactly((other - end) / 1024).real
        around = width * arb(0, 1)
        return bool(self.integrand(exactly(end) + acb(around, around), True).is_finite())

    def value(self) -> acb:
        if self.is_sum:
            return self._sum()
        marks, size = cut_marks(self.height, self.low, self.high, self.is_smooth)
        tolerance = arb(2) ** -100 * arb(size).exp()
        total = acb(0)
        for left, right in pairwise(marks):
            total += acb.integral(
                self.integrand,
                exactly(left),
                exactly(right),
                rel_tol=arb(2) ** -80,
                abs_tol=tolerance,
                eval_limit=_MOST_EVALUATIONS,
            )
            if not total.is_finite():
                raise CheckError("the integral of the check did not converge")
        return total

    def _sum(self) -> acb:
        if self.low is not None and self.low == self.high:
            return acb(self.integrand(acb(int(self.low)), False))
        marks, _ = cut_marks(self.height, self.low, self.high)
        total = acb(0)
        first, last = math.ceil(marks[0]), math.floor(marks[-1])
        if last - first > _MOST_TERMS:
            raise CheckError("the terms of the check fall too slowly")
        for k in range(first, last + 1):
            total += self.integrand(acb(k), False)
        return total


def cut_marks(
    height: Height, low: Fraction | None, high: Fraction | None, is_smooth: Smooth | None = None
) -> tuple[list[Fraction], float]:
    """Cut a range where nothing is left of the integrand, at its peak, and near singular ends."""
    heights: dict[Fraction, float] = {}
    for anchor in [end for end in (low, high) if end is not None] or [Fraction(0)]:
        heights |= _heights(height, anchor, low, high)
    singular = [end for end in (low, high) if end is not None and not math.isfinite(heights[end])]

    def mass(point: Fraction) -> float:
        """The height, less near a singular end, where what is high is narrow."""
        own = heights[point] if point in heights else height(point)
        return own + min([0.0, *(_log(abs(point - end)) for end in singular if point != end)])

    peak = _zoomed(mass, {point: mass(point) for point in heights})
    for _ in range(_CLIMBS):  # from a slope so steep that the first grid saw its foot alone
        heights |= _heights(height, peak, low, high)
        higher = _zoomed(mass, {point: mass(point) for point in heights})
        if mass(higher) <= mass(peak):
            break
        peak = higher
    heights[peak] = height(peak)
    ordered = sorted(heights)
    size = _log_size(heights, ordered)
    floor = size - _DROP
    left = [p for p in ordered if p < peak and heights[p] + _log(peak - p) < floor]
    right = [p for p in ordered if p > peak and heights[p] + _log(p - peak) < floor]
    start, stop = max(left, default=low), min(right, default=high)
    if start is None or stop is None:
        raise CheckError("the integrand of the check falls too slowly")
    marks = {start, peak, stop, *_far_marks(peak, start, stop)}
    for end, other in ((start, min(marks - {start})), (stop, max(marks - {stop}))):
        is_rough = not math.isfinite(height(end))
        if not is_rough and is_smooth is not None and end in (low, high):
            is_rough = not is_smooth(end, other)
        if is_rough:
            marks.discard(end)
            marks.update(_shells(height, end, other, floor))
    return sorted(marks), size


def _log(width: Fraction) -> float:
    return math.log(width.numerator) - math.log(width.denominator)


def _far_marks(peak: Fraction, start: Fraction, stop: Fraction) -> set[Fraction]:
    """Marks at geometric distances, for ranges far longer than the integrand's own scale."""
    marks = (peak + side * Fraction(2) ** k for side in (-1, 1) for k in range(8, _FAR, 8))
    return {mark for mark in marks if start < mark < stop}


def _heights(
    height: Height, anchor: Fraction, low: Fraction | None, high: Fraction | None
) -> dict[Fraction, float]:
    """Heights at geometric distances from an anchor, out to where nothing is left."""
    heights = {anchor: height(anchor)}
    for side in (-1, 1):
        end = low if side < 0 else high
        last = heights[anchor]
        for k in range(-30, _FAR):
            point = anchor + side * Fraction(2) ** k
            if end is not None and (end - point) * side <= 0:
                break
            own = height(point)
            lowest = max(heights.values()) - 2 * _DROP
            if own == -math.inf and last == _NOTHING:
                break  # so far down that balls overflow
            if own == -math.inf and last >= lowest + _DROP:
                raise CheckError("the integrand of the check grows beyond all bounds")
            heights[point] = last = own
            if k > 30 and own + k * math.log(2) < lowest:
                break
    return heights


def _zoomed(height: Height, heights: dict[Fraction, float]) -> Fraction:
    """Return the place of the peak, sharpened between its neighbours on the grid."""
    ordered = sorted(heights)
    best = max(range(len(ordered)), key=lambda i: heights[ordered[i]])
    if not math.isfinite(heights[ordered[best]]):
        raise CheckError("the integrand of the check vanishes on its grid")
    low, peak = ordered[max(best - 1, 0)], ordered[best]
    high = ordered[min(best + 1, len(ordered) - 1)]
    for _ in range(_ZOOMS):
        for point in ((low + peak) / 2, (peak + high) / 2):
            heights[point] = height(point)
        around = [low, (low + peak) / 2, peak, (peak + high) / 2, high]
        best = max(range(5), key=lambda i: heights[around[i]])
        low, peak, high = around[max(best - 1, 0)], around[best], around[min(best + 1, 4)]
    return peak


def _shells(height: Height, end: Fraction, other: Fraction, floor: float) -> list[Fraction]:
    """Marks that close in on an end where the integrand is singular; the end is not one."""
    marks = []
    for k in range(1, BITS):
        marks.append(end + (other - end) / 2**k)
        ahead = (k, k + 3, k + 10, k + 30, k + 100)  # it may rise again towards the end
        if all(
            height(end + (other - end) / 2**j) - j * math.log(2) + _log(abs(other - end)) < floor
            for j in ahead
        ):
            return marks
    raise CheckError("the integrand of the check is too singular")


def _log_size(heights: dict[Fraction, float], ordered: Sequence[Fraction]) -> float:
    """Log of the largest panel, width times its lower height, of a grid."""
    return max(
        min(heights[left], heights[right]) + _log(right - left) for left, right in pairwise(ordered)
    )
