"""Where to cut an unbounded integral, with a proved bound of what lies beyond."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import sympy as sp
from flint import arb

from symdp.emit.arb import ArbFunction, compile_arb
from symdp.emit.enclose import find_cut
from symdp.errors import AccuracyError
from symdp.truth.majorants import majorants

Magnitude = Callable[[arb], arb]


def cut_tails(
    exponent: sp.Expr,
    magnitude: Magnitude,
    x: sp.Symbol,
    ends: list[arb | None],
    tolerance: arb,
    *,
    longest: float = math.inf,
) -> tuple[list[arb], arb]:
    """Return finite ends and an upper bound of the mass of e^g beyond them.

    Shells that reach the end of the double range bound a tail in milliseconds.  Where their balls
    are too wide, sums are taken apart (see `majorants`), and for what decays like e^{−e^x}
    log-concavity is asked, which may take SymPy seconds to show.

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
    longest : float
        How many operations an expression may have whose log-concavity is asked for.

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
            tail = _Tail(x, ends[1 - side], direction, tolerance)
            place, mass = tail.cut(exponent, magnitude, longest=longest)
            finite[side] = place.mid()
            total += mass
    return finite, arb(total.upper())


class _Tail:
    """One side of a support that is not bounded there."""

    def __init__(self, x: sp.Symbol, origin: arb | None, direction: int, tolerance: arb) -> None:
        self._x, self._origin, self._direction = x, origin, direction
        self._tolerance = tolerance
        self._begin = arb(1) if origin is None else abs(origin).upper() + 1

    def cut(self, exponent: sp.Expr, magnitude: Magnitude, *, longest: float) -> tuple[arb, arb]:
        """Return a place and a bound of what lies beyond, by whichever way shows one."""
        try:
            return self.by_shells(magnitude)
        except AccuracyError:
            parts = majorants(exponent, self._x, self._direction)
            if parts is not None:
                with suppress(AccuracyError):
                    return self._by_parts(parts, longest)
            if sp.count_ops(exponent) <= longest:
                found = self.by_concavity(exponent, magnitude)
                if found is not None:
                    return found
                # Over a wide ball a logarithm of a sum may reach zero, where its terms do not.
                return self.by_shells(_multiplied_out(exponent, self._x))
            raise

    def by_shells(self, magnitude: Magnitude) -> tuple[arb, arb]:
        """Return a place and a bound of what lies beyond, from suprema over balls."""
        cut, mass = find_cut(magnitude, self._begin, self._direction, self._tolerance)
        return self._direction * cut, mass

    def by_concavity(self, exponent: sp.Expr, magnitude: Magnitude) -> tuple[arb, arb] | None:
        """Return a place X and a bound of what lies beyond, if e^g is log-concave.

        Beyond X it lies below e^{g(X) + g′(X)(x − X)}, so its mass is at most e^{g(X)}/|g′(X)|.
        """
        slope = sp.diff(exponent, self._x)
        if not sp.factor_terms(sp.simplify(sp.diff(slope, self._x))).is_nonpositive:
            return None
        steepness: ArbFunction = compile_arb(slope, [self._x])
        start = arb(0) if self._origin is None else self._origin
        for k in range(-20, 1000):
            place = start + self._direction * arb(2) ** k
            steep = -self._direction * steepness(place)
            if steep > 0:
                bound = (magnitude(place) / steep).upper()
                if bound < self._tolerance:
                    return place, arb(bound)
        return None

    def _by_parts(self, exponents: list[sp.Expr], longest: float) -> tuple[arb, arb]:
        """Return the farthest of the places that bound each exponential, and the sum of bounds."""
        magnitudes = [_exponential(compile_arb(g, [self._x])) for g in exponents]
        cuts = [
            self.cut(exponent, magnitude, longest=longest)
            for exponent, magnitude in zip(exponents, magnitudes, strict=True)
        ]
        farthest = max((place for place, _ in cuts), key=lambda at: float(self._direction * at))
        return farthest, sum((mass for _, mass in cuts), arb(0))


def _exponential(exponent: ArbFunction) -> Magnitude:
    return lambda place: arb(exponent(place).exp())


def _multiplied_out(exponent: sp.Expr, x: sp.Symbol) -> Magnitude:
    """Return e^g multiplied out, as a function of balls."""
    compiled = compile_arb(sp.powsimp(sp.expand(sp.exp(exponent))), [x])
    return lambda place: arb(compiled(place))
