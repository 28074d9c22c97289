"""Where to cut an unbounded integral, with a proved bound of what lies beyond."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp
from flint import arb

from symdp.emit.enclose import find_cut
from symdp.errors import AccuracyError
from symdp.truth.enclosure import _cut_tails as concave_tails


def cut_tails(
    exponent: sp.Expr,
    magnitude: Callable[[arb], arb],
    x: sp.Symbol,
    ends: list[arb | None],
    tolerance: arb,
) -> tuple[list[arb], arb]:
    """Return finite ends and an upper bound of the mass of e^g beyond them.

    Shells that reach the end of the double range bound a tail in milliseconds.  Where their balls
    are too wide, as for e^{−e^x}, log-concavity is asked, which takes SymPy seconds to show.

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
    try:
        for side, direction in ((0, -1), (1, 1)):
            if ends[side] is None:
                other = ends[1 - side]
                begin = arb(1) if other is None else abs(other).upper() + 1
                cut, tail = find_cut(magnitude, begin, direction, tolerance)
                finite[side] = (direction * cut).mid()
                total += tail
    except AccuracyError:
        finite, balls = concave_tails(exponent, magnitude, x, ends, tolerance)
        return finite, abs(balls).upper()
    return finite, total.upper()
