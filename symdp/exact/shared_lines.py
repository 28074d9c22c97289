"""Lines that are kept with a law: each serves every ε of a cell of the real axis.

Any line of a strip gives the same δ; where it crosses the axis changes the cost and the rounding
only. So the axis is cut into cells no wider than the integrand, and all ε of a cell share the line
that suits its middle. The cells do not depend on what was asked before, and neither do answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from symdp.errors import AccuracyError
from symdp.exact.line import Line
from symdp.law.saddle_point import saddle_point
from symdp.law.tilts import Strip
from symdp.law.total import SumLaw

_NEAR = 0.02  # standard deviations of the integrand
HALF_CELL = 0.6  # half a cell, in the same unit: off the saddle point by this costs e^0.18
_FINEST = 5  # halvings of the first cells: closer to the end of the range, lines are not shared
_FROM_END = 0.5  # next to the end of the range the integrand is about as wide as it is far from it
_MOST_KEPT = 2048  # lines of one law
_MOST_NODES = 1 << 22  # of all lines together, 24 bytes each

Trace = Callable[[SumLaw, float, float, float], Line | Literal[True] | None]


class _Lines:
    """The lines kept with one law; a cell maps to True where it is too wide for one line."""

    def __init__(self, law: SumLaw) -> None:
        self.top = math.frexp(math.sqrt(float(law.cumulants(0.0, 2)[1])))[1]
        self.cells: dict[tuple[Strip, int, int], Line | Literal[True] | None] = {}
        self.nodes = 0

    def keep(self, cell: tuple[Strip, int, int], found: Line | Literal[True] | None) -> None:
        """Keep what was found for a cell; what was kept before makes room."""
        size = found.places.size if isinstance(found, Line) else 0
        if len(self.cells) >= _MOST_KEPT or self.nodes + size > _MOST_NODES:
            self.cells.clear()
            self.nodes = 0
        self.cells[cell] = found
        self.nodes += size


def shared_line(law: SumLaw, epsilon: float, strip: Strip, trace: Trace) -> Line | None:
    """Return the line of a strip that serves ε, or None where no line can be kept.

    Parameters
    ----------
    law, epsilon
        The total loss, not on a lattice, and ε.
    strip
        RIGHT or MIDDLE.
    trace
        Makes the line of a cell.
    """
    lines: _Lines | None = law.kept.get(_Lines)
    if lines is None:
        lines = law.kept[_Lines] = _Lines(law)
    for level in range(_FINEST + 1):
        width = math.ldexp(1.0, lines.top - level)
        index = math.floor(epsilon / width)
        cell = (strip, level, index)
        found = lines.cells.get(cell, False)
        if found is False:
            found = _line(law, strip, (index + 0.5) * width, 0.5 * width, trace)
            lines.keep(cell, found)
        if found is not True:
            return found
    return None


def _line(
    law: SumLaw, strip: Strip, centre: float, half: float, trace: Trace
) -> Line | Literal[True] | None:
    """Return the line of a cell, None where it does not settle, or True if the cell is too wide."""
    lower, upper = law.loss_bounds
    if not half < _FROM_END * min(centre - lower, upper - centre):
        return True
    try:
        saddle = saddle_point(law, centre, strip, settled=_NEAR)
        if saddle is None or half > HALF_CELL * math.sqrt(saddle.curvature):
            return True
        return trace(law, centre, saddle.tilt, half)
    except AccuracyError:
        return None
