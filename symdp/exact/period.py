"""Losses on a lattice: the integrand over one period, of which only what may count is evaluated.

However narrow the peak at y = 0 of many steps is, others may be as high wherever the lattice is
fine compared with the differences of the losses that are taken often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from symdp.errors import AccuracyError
from symdp.exact.angles import Angles, audible
from symdp.exact.line import Kernel, Line, longer, loss_size, with_places
from symdp.law.loss import Tilted
from symdp.law.step import Array
from symdp.law.total import SumLaw

_FEW_NODES = 1 << 7  # all of which are evaluated
_MOST_NODES = 1 << 20
_MOST_WORK = 1 << 25  # nodes times atoms
_NEGLIGIBLE = 40.0  # e-folds below the value at y = 0, for all together that is never evaluated


def with_period(
    law: SumLaw, epsilon: float, line: Line, tilted: Sequence[Tilted], kernel: Kernel, limit: int
) -> Line:
    """Return a line with all values of half a period that may count, and a bound of the others.

    Parameters
    ----------
    line
        Its first nodes, of a law all of whose losses lie on a lattice.
    limit
        The number of nodes from 0 to the middle of the period.

    Raises
    ------
    AccuracyError
        If too many of them count.
    """
    first = line.places.size
    if first < limit <= _FEW_NODES:
        line = longer(law, line, limit, kernel)
    if line.places.size >= limit:
        return replace(line, last=0.0)
    counts = [count for _, count in law.terms]
    angles = Angles(tilted, counts)
    level = _NEGLIGIBLE + math.log(limit)
    found = audible(angles, line.step, first, limit, level)
    if found is None:
        if limit > _MOST_NODES or limit * angles.atoms > _MOST_WORK:
            raise AccuracyError(
                f"the losses of {law.count} steps lie on a lattice too fine for one period of "
                "their characteristic function; the method prv gives proved bounds"
            )
        return replace(longer(law, line, limit, kernel), last=0.0)
    size = abs(epsilon) + loss_size(tilted, counts)
    # |G| is largest at y = 0, and so is the modulus of every value.
    left_out = 2.0 * math.exp(-_NEGLIGIBLE) * abs(line.values[0])
    places: Array = line.step * np.asarray(found, dtype=np.float64)
    return with_places(law, line, places, kernel, left_out, size)
