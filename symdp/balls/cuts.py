"""Where to cut an unbounded integral, with a proved bound of what lies beyond."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp
from flint import arb

from symdp.balls.bessel import without_bessel
from symdp.balls.gammas import without_gammas
from symdp.balls.leading import outward_slope
from symdp.balls.majorants import majorants
from symdp.emit.arb import ArbFunction, compile_arb
from symdp.emit.enclose import find_cut
from symdp.errors import AccuracyError

Magnitude = Callable[[arb], arb]


def cut_tails(
    exponent: sp.Expr,
    magnitude: Magnitude,
    x: sp.Symbol,
    ends: list[arb | None],
    tolerance: arb,
    *,
    whole: bool = False,
) -> tuple[list[arb], arb]:
    """Return finite ends and an upper bound of the mass of e^g beyond them.

    The leading term of the slope of g bounds a tail as far as infinity (see `leading`).  Other
    exponents are bounded by shells that reach the end of the double range, and where their balls
    are too wide sums are taken apart (see `majorants`).

    Parameters
    ----------
    exponent, x
        g and its variable.
    magnitude : callable
        e^g on balls.
    ends
        None where infinite.
    tolerance : arb
        What the bound of each tail may be at most.
    whole : bool
        Sum over the integers instead of integrating; finite ends must be integers.

    Raises
    ------
    AccuracyError
        If no bound is found.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> (low, high), tails = cut_tails(-x, lambda at: (-at).exp(), x, [arb(0), None], arb(2) ** -20)
    >>> float(low), float(high), bool(tails < 1e-6)
    (0.0, 16.0, True)
    """
    finite = [arb(0) if end is None else end for end in ends]
    total = arb(0)
    for side, direction in ((0, -1), (1, 1)):
        if ends[side] is None:
            tail = _TailCut(x, ends[1 - side], direction, tolerance, whole=whole)
            place, mass = tail.cut(exponent, magnitude)
            finite[side] = place.mid()
            total += mass
    return finite, arb(total.upper())


def cut_by_parts(
    exponents: list[sp.Expr],
    x: sp.Symbol,
    direction: int,
    begin: arb,
    tolerance: arb,
    whole: bool,
    check: Callable[[], None],
) -> tuple[arb, arb]:
    """Return a place and an upper bound of what Σ e^{gᵢ} has beyond it.

    Parameters
    ----------
    exponents, x
        The gᵢ and their variable.
    direction : {1, -1}
        The side.
    begin, tolerance : arb
        The least distance of the place from 0, and what each exponential may have beyond it.
    whole : bool
        Sum over the integers instead of integrating; `begin` must be one.
    check : callable
        Is called again and again; raises when the time is over.
    """
    tail = _TailCut(x, None, direction, tolerance, whole=whole)
    tail.start(begin, check)
    return tail.by_parts(exponents)


class _TailCut:
    """One side of a support that is not bounded there."""

    def __init__(
        self, x: sp.Symbol, origin: arb | None, direction: int, tolerance: arb, *, whole: bool
    ) -> None:
        self._x, self._direction = x, direction
        self._tolerance, self._whole = tolerance, whole
        self._begin = arb(1) if origin is None else abs(origin).upper() + 1
        self._check: Callable[[], None] = _no_check

    def start(self, begin: arb, check: Callable[[], None]) -> None:
        """Set the least distance of a place, and what is called at every value."""
        self._begin, self._check = begin, check

    def cut(self, exponent: sp.Expr, magnitude: Magnitude) -> tuple[arb, arb]:
        """Return a place and a bound of what lies beyond, by whichever way shows one."""
        slope = outward_slope(exponent, self._x, self._direction)
        if slope is not None:
            if slope.diverges:
                raise AccuracyError("the mass of a tail is infinite")
            found = slope.cut(
                lambda y: magnitude(self._direction * y),
                self._begin,
                self._tolerance,
                whole=self._whole,
            )
            if found is not None:
                return self._direction * found[0], found[1]
        bounds = self._without_special(exponent)
        if bounds is not None:
            return self.by_parts(bounds)
        try:
            place, mass = find_cut(
                magnitude, self._begin, self._direction, self._tolerance, per_integer=self._whole
            )
        except AccuracyError:
            parts = majorants(exponent, self._x, self._direction)
            if parts is None:
                raise
            return self.by_parts(parts)
        return self._direction * place, mass

    def _without_special(self, exponent: sp.Expr) -> list[sp.Expr] | None:
        """Return exponents of which balls are narrow, None where that is not needed or known."""
        if not self._whole or not exponent.has(sp.besseli, sp.gamma, sp.factorial, sp.binomial):
            return None
        without = without_bessel if exponent.has(sp.besseli) else without_gammas
        found: list[sp.Expr] = []
        for part in majorants(exponent, self._x, self._direction) or [exponent]:
            bound = without(part, self._x, self._direction)
            if bound is None:
                return None
            found.append(bound.exponent)
            self._begin = self._begin.max(arb(bound.least))
        return found

    def by_parts(self, exponents: list[sp.Expr]) -> tuple[arb, arb]:
        """Return the farthest of the places that bound each exponential, and the sum of bounds."""
        magnitudes = [_exponential(compile_arb(g, [self._x]), self._check) for g in exponents]
        cuts = [
            self.cut(exponent, magnitude)
            for exponent, magnitude in zip(exponents, magnitudes, strict=True)
        ]
        farthest = max((place for place, _ in cuts), key=lambda at: float(self._direction * at))
        return farthest, sum((mass for _, mass in cuts), arb(0))


def _no_check() -> None:
    """Let the work take its time."""


def _exponential(exponent: ArbFunction, check: Callable[[], None]) -> Magnitude:
    def magnitude(place: arb) -> arb:
        check()
        return arb(exponent(place).exp())

    return magnitude
