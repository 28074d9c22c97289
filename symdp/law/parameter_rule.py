"""Gauss quadrature over a parameter: a sum over very many steps of one formula from a few steps.

Σ nᵢ f(θᵢ) over distinct values of a parameter is an integral of f by a measure of points. Its Gauss
rule with m nodes is exact for polynomials of degree 2m − 1 [Golub and Welsch 1969, "Calculation of
Gauss quadrature rules"], its weights are positive, and what is analytic in the parameter, as K(t)
and log φ(y) are, is integrated to rounding by some ten or twenty nodes. The coefficients of f in
the measure's orthogonal polynomials tell whether that is so.

Of what happens between the nodes, as a jump or one step apart from all others, they tell nothing.
So all that depends on the parameters is taken at every step, too: its polynomial must meet every
step, and have the coefficients that the nodes give it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.law.elementary import Complex
from symdp.law.loss import LossLaw
from symdp.law.step import Array, Index

_SIZES = (14, 28, 44, 66, 100)  # nodes that are tried
_WORTHWHILE = 0.6  # of all steps: more nodes than that are no gain
FEW = 24  # steps that stand for all of those on no line, where a digit or two will do
_REFINED = 3  # times that weights are corrected: each time the error is squared
_EXACT = 1e-17  # of a moment: rounding with 64-bit mantissas
_LAST = 4  # coefficients that tell how large all later ones are
_MOST_MORE = 1.7  # times as many nodes at once
_SLOWEST = 0.5  # share of the last coefficients from which their fall is not told
_SETTLED = 1e-17  # of φ, for what its modulus makes small
_CLOSE = 1e-7  # of what depends on the parameters, in the mean square: what a polynomial may miss
_ROUNDED = 4.0 * 2.0**-53  # of averages of doubles over the steps, relative to the largest
_CONSTANT = 1e-9  # relative: what varies by less is looked at as if it varied by that much

Vector = tuple[Fraction, ...]
Extended = NDArray[np.longdouble]


@dataclass(frozen=True)
class Rule:
    """Nodes and weights that stand for a sum over steps.

    Attributes
    ----------
    values
        The parameters at every node, in the formula's order.
    weights
        Their positive weights, which add up to the number of steps.
    basis
        What takes values at the nodes to the coefficients of the polynomials; None where the nodes
        are all steps, and the sum is a plain one.
    steps
        The polynomials at every step, times the root of its share.
    """

    values: tuple[Vector, ...]
    weights: Extended
    basis: Extended | None = None
    steps: Extended | None = None

    def total(self, values: Array | Complex) -> Array | Complex:
        """Return Σ wₖ vₖ over the first axis."""
        found: Array | Complex = np.tensordot(self.weights.astype(np.float64), values, axes=1)
        return found

    def wanted(
        self, values: Array | Complex, close: float, is_log: bool = False
    ) -> tuple[float, float]:
        """Return about how many nodes leave the last coefficients small, and their largest share.

        As coefficients fall geometrically and a rule is exact to twice their degree, the square
        of their share is what it lacks. No more than there are means that this rule will do.

        Parameters
        ----------
        values
            Of one function or of several, nodes first.
        close
            The largest share of the last coefficients.
        is_log
            Whether they are logarithms of φ: then it also does that φ is too small to matter.
        """
        nodes = self.weights.size
        if self.basis is None:
            return float(nodes), 0.0
        share = (self.weights / self.weights.sum()).astype(np.float64)
        size = np.sqrt(np.tensordot(share, np.abs(values) ** 2, axes=1))
        basis = self.basis[-_LAST:].astype(np.float64)
        last = np.abs(np.tensordot(basis, values, axes=1)).max(axis=0)
        poor = last > close * size
        if is_log:
            with np.errstate(all="ignore"):
                modulus = np.exp(self.total(values).real)
                lacking = float(self.weights.sum()) * last * (last / size)
                poor &= lacking * modulus > _SETTLED
        shares = last / np.where(size > 0, size, 1.0)
        if not np.any(poor):
            return float(nodes), float(np.max(shares))
        worst = float(np.max(np.where(poor, shares, 0.0)))
        fall = math.log(close) / math.log(min(worst, _SLOWEST))
        return nodes * min(_MOST_MORE, fall), worst

    def meets(self, at_nodes: Array, at_steps: Array) -> bool:
        """Return whether functions are met at every step by the polynomials through the nodes.

        A product of two functions has the average Σ aₖbₖ of their coefficients, and aliases of
        degree 2m − k are in those of degree k. So a coefficient may be off by the share of the
        last one to the power 2 − k/m, and what no polynomial meets counts by its square.

        Parameters
        ----------
        at_nodes, at_steps
            Their values, a column for each.
        """
        if self.basis is None or self.steps is None:
            return True
        if not (np.isfinite(at_nodes).all() and np.isfinite(at_steps).all()):
            return False
        root = self.steps[0]  # of each step's share, as the first polynomial is 1
        mean = (root * root) @ at_steps
        apart = root[:, None] * (at_steps - mean)
        found = self.steps @ apart
        size = np.sqrt((apart * apart).sum(axis=0)) + _CONSTANT * np.abs(mean)
        missed = apart - self.steps.T @ found
        degree = np.arange(self.weights.size)[:, None] / self.weights.size
        allowed = size * _CLOSE ** (2.0 - degree) + _ROUNDED * np.abs(at_steps).max(axis=0)
        off = np.abs(found - self.basis @ (at_nodes - mean))
        is_met = np.sqrt((missed * missed).sum(axis=0)) <= _CLOSE * size
        return bool(is_met.all() and (off <= allowed).all())


class ParameterLine:
    """Values of parameters on one line: all are affine functions of one of them.

    Parameters
    ----------
    vectors
        The values of each step.
    counts
        How often each is taken.
    axis
        The parameter that the others are functions of.
    """

    def __init__(self, vectors: Sequence[Vector], counts: Array, axis: int) -> None:
        self._counts, self._axis = counts.astype(np.longdouble), axis
        column = [vector[axis] for vector in vectors]
        low, high = column.index(min(column)), column.index(max(column))
        self.ends = low, high
        self._first = vectors[low]
        length = column[high] - column[low]
        self._slope = [(b - a) / length for a, b in zip(vectors[low], vectors[high], strict=True)]
        logs = np.log(np.asarray([_extended(value) for value in column]))
        self._middle, self._half = 0.5 * (logs[low] + logs[high]), 0.5 * (logs[high] - logs[low])
        self._place = (logs - self._middle) / self._half

    @classmethod
    def through(cls, vectors: Sequence[Vector], counts: Array) -> ParameterLine | None:
        """Return the line through all vectors of positive values, None where there is none."""
        ratio = [max(column) / min(column) for column in zip(*vectors, strict=True)]
        if max(ratio) == 1:
            return None
        found = cls(vectors, counts, ratio.index(max(ratio)))
        return found if all(found.at(v[found._axis]) == v for v in vectors) else None

    def at(self, value: Fraction) -> Vector:
        """Return all parameters where the one of them has a value."""
        apart = value - self._first[self._axis]
        return tuple(a + slope * apart for a, slope in zip(self._first, self._slope, strict=True))

    def rule(self, size: int) -> Rule | None:
        """Return the Gauss rule with so many nodes in the logarithm of the one parameter.

        None where rounding does not let it be known.
        """
        total = self._counts.sum()
        row = np.sqrt(self._counts / total)
        rows = np.empty((size + 1, row.size), dtype=np.longdouble)
        rows[0], diagonal, beside = row, [], []
        for k in range(size):  # Lanczos, every row made orthogonal to all before it
            row = self._place * rows[k]
            diagonal.append((row * rows[k]).sum())
            for _ in range(2):
                row = row - (rows[: k + 1] @ row) @ rows[: k + 1]
            beside.append(np.sqrt((row * row).sum()))
            rows[k + 1] = row / beside[-1]
        inner = np.asarray(beside[:-1], dtype=np.float64)
        matrix = np.diag(np.asarray(diagonal, dtype=np.float64))
        found = np.linalg.eigvalsh(matrix + np.diag(inner, 1) + np.diag(inner, -1))
        place = found.astype(np.longdouble)
        for _ in range(_REFINED):  # Newton's method on the last polynomial
            known = _polynomials(place, diagonal, beside)
            place = place - known[0][-1] / known[1][-1]
        values = [
            Fraction(*value.as_integer_ratio())
            for value in np.exp(self._middle + self._half * place)
        ]
        # Weights for the nodes as they were rounded.
        place = (np.log(np.asarray([_extended(v) for v in values])) - self._middle) / self._half
        basis = _polynomials(place, diagonal, beside)[0][:-1]
        weights = 1.0 / (basis * basis).sum(axis=0)
        for _ in range(_REFINED):
            residue = (basis * weights).sum(axis=1)
            residue[0] -= 1.0
            weights = weights * (1.0 - (basis * residue[:, None]).sum(axis=0))
        if not (np.abs(residue).max() < _EXACT and weights.min() > 0.0):
            return None  # so uneven a measure that its polynomials are not known
        nodes = tuple(self.at(value) for value in values)
        return Rule(nodes, weights * total, basis * weights, rows[:size])


class StepFamily:
    """Steps of one formula, and the laws that stand for them.

    Parameters
    ----------
    vectors, counts
        The values of their parameters, and how often each is taken.
    member
        Returns the law of one step.
    made
        Returns the law at some values.
    entries
        Returns all that depends on the parameters, a row for each of many values of them. Steps
        for which it is the same are one step.
    """

    def __init__(
        self,
        vectors: Sequence[Vector],
        counts: Array,
        member: Callable[[int], LossLaw],
        made: Callable[[Vector], LossLaw | None],
        entries: Callable[[Sequence[Vector]], Array],
    ) -> None:
        at_steps = entries(vectors)
        again: dict[bytes, int] = {}
        first = np.asarray([again.setdefault(row.tobytes(), k) for k, row in enumerate(at_steps)])
        places = np.unique(first)
        self.counts = np.bincount(first, counts)[places]
        self._vectors = tuple(vectors[k] for k in places)
        self._member, self._places = member, places.tolist()
        self._made, self._entries, self._at_steps = made, entries, at_steps[places]
        self._line = ParameterLine.through(self._vectors, self.counts)
        most = 0.0 if self._line is None else _WORTHWHILE * self.counts.size
        self._sizes = [size for size in _SIZES if size <= most]
        self._rules: dict[int, tuple[Rule, list[LossLaw]]] = {}
        while self._sizes and 0 not in self._rules:  # the least size that is believed
            found = self._of_nodes(0)
            if found is None:
                del self._sizes[0]
            else:
                self._rules[0] = found

    def member(self, number: int) -> LossLaw:
        """Return the law of one step."""
        return self._member(self._places[number])

    def thinned(self, order: Index) -> StepFamily:
        """Return fewer steps, each standing for those between it and the next in an order."""
        starts = np.arange(FEW) * order.size // FEW
        counts = np.add.reduceat(self.counts[order], starts)
        place = order[starts]
        laws = self.rule(0)[1]
        vectors = [self._vectors[k] for k in place]
        return StepFamily(vectors, counts, lambda k: laws[place[k]], self._made, self._entries)

    @cached_property
    def ends(self) -> list[LossLaw]:
        """Laws among whose domains is the narrowest."""
        laws = self.rule(0)[1]
        if self._line is None or not self._sizes:
            return laws
        return [*map(self.member, self._line.ends), *laws]

    @property
    def has_rule(self) -> bool:
        """Whether a rule may stand for the steps."""
        return bool(self._sizes)

    def level(self, least: int, wanted: float) -> int:
        """Return the first level from another on that has as many nodes as are wanted."""
        return max(least, bisect_left(self._sizes, wanted))

    def rule(self, level: int) -> tuple[Rule, list[LossLaw]]:
        """Return the rule of a level with its laws; the last one takes all steps."""
        if level not in self._rules:
            self._rules[level] = self._of_nodes(level) or (
                Rule(self._vectors, self.counts.astype(np.longdouble)),
                [self.member(k) for k in range(self.counts.size)],
            )
        return self._rules[level]

    def _of_nodes(self, level: int) -> tuple[Rule, list[LossLaw]] | None:
        """Return a Gauss rule, None where none is believed or values need their own derivation."""
        if self._line is None or level >= len(self._sizes):
            return None
        rule = self._line.rule(self._sizes[level])
        if rule is None or not rule.meets(self._entries(rule.values), self._at_steps):
            return None
        laws = [law for law in map(self._made, rule.values) if law is not None]
        return (rule, laws) if len(laws) == len(rule.values) else None


def _polynomials(
    place: Extended, diagonal: Sequence[Any], beside: Sequence[Any]
) -> tuple[Extended, Extended]:
    """Return orthonormal polynomials and their derivatives from their recurrence."""
    values, slopes = [np.ones_like(place)], [np.zeros_like(place)]
    before = np.zeros_like(place), np.zeros_like(place)
    for middle, next_to in zip(diagonal, beside, strict=True):
        value = (place - middle) * values[-1] - before[0]
        slope = values[-1] + (place - middle) * slopes[-1] - before[1]
        before = next_to * values[-1], next_to * slopes[-1]
        values.append(value / next_to)
        slopes.append(slope / next_to)
    return np.stack(values), np.stack(slopes)


def _extended(value: Fraction) -> np.longdouble:
    """Return a ratio with a 64-bit mantissa, but for a rounding or two."""
    first = float(value)
    return np.longdouble(first) + np.longdouble(float(value - Fraction(first)))
