"""Roundings, margins and limits that mean the same wherever they stand.

Of doubles, relative to what is computed unless a use says otherwise. What one file alone needs, or
what a theorem or a measurement gave, stands there.
"""

from __future__ import annotations

UNIT = 1.2e-16  # one operation on doubles, rounded up
NO_SHARE = 1e-17  # of a sum: what is less changes no double
ROUNDED = 1e-15  # a few operations: a sum of losses, the log of a mass
LOSS_ROUNDED = 1e-14  # a loss, or a tilted one, that was evaluated
MASS_ROUNDED = 1e-13  # a probability that was integrated
SUMS_ROUNDED = 1e-12  # sums over all nodes, and what is formed of several of them
ABOVE_ROUNDING = 1e-9  # a margin: sums in doubles are off by far less, and no one reads its digits
SAME = 1e-9  # values that are closer are told as one
MASS_TOLERANCE = 1e-9  # how far a density's mass may lie from one; a wrong density is farther off
NEGLIGIBLE = 40.0  # e-folds below what counts: 4e-18, less than rounding
LARGEST_EXPONENT = 700.0  # of e^x in doubles

SHORT_TIME = 2.0  # seconds of work for what has another way to go
SOME_TIME = 4.0  # seconds of work for what is worth it, as an integral or a table of them
MORE_TIME = 5.0  # seconds of work for what leaves a gap on a page

BITS = 128  # of balls of which at most 30 digits are wanted, so that 28 bits may cancel
SUM_BITS = 160  # of balls whose sum cancels by e^{K(t) − tε} and less
MASS_BITS = 192  # of a mass that densities are divided by: 57 digits
LONG_BITS = 200  # of balls next to an axis or an end, where 140 are left of a difference of 1e-18
MANY_BITS = 1_000  # of balls next to an end where all that is large cancels
