"""Sums Σ_{k≥K} zᵏ f(k) over |z| = 1 of an f that is a polynomial in 1/k, at many z.

Summed by parts J times, with differences Δ and w = z/(1 − z), such a sum is

    zᴷ/(1 − z) Σ_{j<J} wʲ Δʲf(K) + wᴶ Σ_{k≥K} zᵏ Δᴶf(k),

whose last part is small where K|1 − z| is large, as |Δᴶ k^{−m}| ≤ m(m + 1)…(m + J − 1) k^{−m−J}.
The differences at K are the same for all z.  Closer to 1 some terms are added one by one first, up
to a larger K, and next to it each power takes a Lerch function, or at 1 a zeta function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from flint import acb, acb_mat, acb_poly, arb, ctx

from symdp.certify.work import spend

_MOST_DIFFERENCES = 64
_STRIDE = 4
_MOST_DOUBLINGS, _MOST_TERMS = 6, 6000
_LERCH_COST, _TERM_COST = 100.0, 0.5  # in values of a log-density

Coefficients = Sequence[acb]  # of k^{−2}, k^{−3}, …


class TurningSums:
    """The sums from one K on, each to about a goal.

    Parameters
    ----------
    first, length : int
        K, and how many powers of 1/k there are, from the second one on.
    goal : arb
    """

    def __init__(self, first: int, length: int, goal: arb) -> None:
        self._first, self._length, self._goal = first, length, goal
        self._log_goal = _log(goal)
        self._powers = np.arange(2, length + 2, dtype=float)
        self._differences: dict[int, acb_mat] = {}

    def total(self, turn: acb, coefficients: Coefficients) -> acb:
        """Enclose the sum for one z."""
        gap = abs(1 - turn).lower()
        sizes = [abs(c).upper() for c in coefficients]
        logs = np.asarray([_log(size) for size in sizes])
        for doublings in range(_MOST_DOUBLINGS):
            last = self._first << doublings
            count = self._enough(last, float(gap), logs)
            if last > self._first + _MOST_TERMS:
                break
            if count is not None:
                spend(_TERM_COST * (count + last - self._first))
                near = self._one_by_one(turn, coefficients, last)
                return near + self._by_parts(turn, gap, coefficients, sizes, last, count)
        return self._by_powers(turn, coefficients, sizes)

    def _enough(self, first: int, gap: float, logs: np.ndarray) -> int | None:
        """Return how many differences leave out less than the goal, or None where none do."""
        distance = gap * first
        if not distance > _STRIDE:
            return None
        from scipy.special import gammaln

        m = self._powers
        sizes = logs - (m - 1.0) * math.log(first) - gammaln(m)
        for count in range(_STRIDE, _MOST_DIFFERENCES, _STRIDE):
            left = sizes + gammaln(m + count) - count * math.log(distance)
            if float(np.logaddexp.reduce(left)) < self._log_goal:
                return count
        return None

    def _one_by_one(self, turn: acb, coefficients: Coefficients, last: int) -> acb:
        """Enclose what lies before a place."""
        series = acb_poly([0, 0, *coefficients])
        total, power = acb(0), turn**self._first
        for k in range(self._first, last):
            total += series(1 / arb(k)) * power
            power *= turn
        return total

    def _by_parts(
        self,
        turn: acb,
        gap: arb,
        coefficients: Coefficients,
        sizes: Sequence[arb],
        first: int,
        count: int,
    ) -> acb:
        """Enclose what lies beyond a place by differences there."""
        if first not in self._differences:
            self._differences[first] = self._differences_at(first)
        row = acb_mat([list(coefficients)]) * self._differences[first]
        series = acb_poly([row[0, j] for j in range(count)])
        beyond = arb(0)
        for m, size in enumerate(sizes, start=2):
            rising = math.prod(range(m, m + count))
            beyond += (
                size * rising * arb(first) ** (-m - count) * (1 + arb(first) / (m + count - 1))
            )
        error = (beyond / gap**count).upper()
        value = turn**first * series(turn / (1 - turn)) / (1 - turn)
        return value + acb(arb(0, error), arb(0, error))

    def _differences_at(self, first: int) -> acb_mat:
        """Return Δʲ k^{−m} at K, a row for each m."""
        spare = int(_MOST_DIFFERENCES * math.log2(2 * first)) + 64
        rows = []
        with ctx.workprec(ctx.prec + spare):
            places = [1 / arb(first + k) for k in range(_MOST_DIFFERENCES)]
            values = places
            for _ in range(self._length):
                values = [value * place for value, place in zip(values, places, strict=True)]
                row, left = [], values
                while left:
                    row.append(left[0])
                    left = [b - a for a, b in pairwise(left)]
                rows.append(row)
        return acb_mat(rows)

    def _by_powers(self, turn: acb, coefficients: Coefficients, sizes: Sequence[arb]) -> acb:
        """Enclose the sum by a Lerch function for each power that counts."""
        first, total, error = arb(self._first), acb(0), arb(0)
        is_one = turn.contains(acb(1))
        small = self._goal / self._length
        spare = int((self._length + 2) * math.log2(self._first + 1)) + 32
        with ctx.workprec(ctx.prec + spare):
            for m, (coefficient, size) in enumerate(zip(coefficients, sizes, strict=True), 2):
                most = size / first**m * (1 + first / (m - 1))
                if most < small:
                    error += most
                    continue
                spend(_LERCH_COST)
                if is_one:
                    total += coefficient * acb(m).zeta(acb(first))
                else:
                    total += coefficient * turn.lerch_phi(acb(m), acb(first))
            if is_one:
                error += self._mistaken(abs(turn - 1).upper(), sizes)
            else:
                total *= turn**self._first
        error = error.upper()
        return total + acb(arb(0, error), arb(0, error))

    def _mistaken(self, distance: arb, sizes: Sequence[arb]) -> arb:
        """Bound what taking a z at a distance from 1 for 1 changes: |zᵏ − 1| ≤ min(2, kη)."""
        if not distance > 0:
            return distance
        first = arb(self._first)
        # Of k⁻² the sums of η/k up to 1/η, and of 2/k² from there on.
        total = sizes[0] * distance * (4 + (1 / (first * distance)).log().max(arb(0)) + 1 / first)
        for m, size in enumerate(sizes[1:], 3):
            total += size * distance * first ** (1 - m) * (1 + first / (m - 2))
        return arb(total.upper())


def _log(value: arb) -> float:
    """Return about log of a number that may be too small or too large for a double."""
    return float(value.log().mid()) if value > 0 else -math.inf
