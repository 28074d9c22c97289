"""What this room calls rounded, equal, negligible, accurate and long: each said once.

An answer lacks what rounding takes, what a sum leaves out, and what a rule of quadrature misses.
The first is `ROUNDING` times the size of what was added; the second is kept e^-`NEGLIGIBLE` below
what is kept, so that it is less than the first; the third is estimated, widened by `SAFETY`, and no
wider than `TOLERABLE` unless there is no other way. Other numbers of the room follow from these.
"""

from __future__ import annotations

import math

ROUNDING = 2.3e-16  # relative: of one operation on doubles, rounded up
ROUNDED = 1e-15  # relative: of a sum of losses or the log of a mass, a few operations
EQUAL = 2e-14  # of the largest loss: losses that are closer are one value, but for rounding
BLURRED = 4.0 * EQUAL  # of the largest loss: the longest chain of losses that are taken together
SETTLED = 1e-13  # relative change at which a sum counts as complete: less is rounding
NEGLIGIBLE = 40.0  # e-folds below what counts: 4e-18, less than rounding
COUNTED = 1e-11  # relative half width of δ beyond which rounding counts, and balls take over
TOLERABLE = 1e-9  # relative half width of δ beyond which the next row of the table is asked
EXACT = 1e-6  # relative half width of δ beyond which an answer is no longer called exact
SAFETY = 4.0  # an error estimate is widened by this before it becomes an interval
HALF = math.log(0.5)  # log δ above which 1 − δ tells more than δ
MOST_NODES = 1 << 20  # values of one array: 16 MB, and about a second to evaluate
MOST_WORK = 1 << 27  # exponentials or sums of one answer: about two seconds
LONG_LINE = 1 << 17  # nodes of a line of losses with a density, which have many nodes themselves
FEW_NODES = 1 << 12  # of a line: ten milliseconds, less than to find out whether fewer will do
