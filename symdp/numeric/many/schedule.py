"""Many steps of one formula: a few nodes of the Gauss rule of their parameter stand for all.

What adds up over the steps is an integral over their parameter.  Where the last coefficients of
what is summed do not say that it is known to rounding, every step is asked by itself.

**Gauss quadrature over a parameter.** Σ nᵢ f(θᵢ) over distinct values of a parameter is an integral
of f by a measure of points. Its Gauss rule with m nodes is exact for polynomials of degree 2m − 1
[Golub and Welsch 1969, "Calculation of Gauss quadrature rules"], its weights are positive, and what
is analytic in the parameter, as K(t) and log φ(y) are, is integrated to rounding by some ten or
twenty nodes. The coefficients of f in the measure's orthogonal polynomials tell whether that is so.

Of what happens between the nodes, as a jump or one step apart from all others, they tell nothing.
So all that depends on the parameters is taken at every step, too: its polynomial must meet every
step, and have the coefficients that the nodes give it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.numeric.elementary import Complex
from symdp.numeric.loss import LossLaw
from symdp.numeric.many.kinds import together
from symdp.numeric.step import Array
from symdp.numeric.total import SumLaw, kept_with_law
from symdp.tolerances import NO_SHARE

# share of the last coefficients or of what a polynomial misses: its square is lacking
_CLOSE = 1e-7
_CLOSER = 1e-9  # the same where the nodes of a rule are chosen, at some tilts and frequencies
_ROUNDED = 4.0 * 2.0**-53  # relative: of a sum of doubles over nodes or steps
_OUTWARD = 3e-14  # relative: of an end of the range, so that no loss lies beyond
_PLACES = np.linspace(0.75, 9.0, 12)  # y in deviations of the sum, where a rule is chosen

_Terms = Sequence[tuple[LossLaw, float]]


def _singly_where_unknown(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a total's method that asks every step by itself where a rule does not know."""

    def method(law: RuleLaw, *arguments: Any) -> Any:
        answer = function(law, *arguments)
        if not np.isnan(answer).any():
            return answer
        singly = getattr(law.singly(), function.__name__)
        return singly(*arguments) if arguments else singly

    return method


class RuleLaw(SumLaw):
    """The total privacy loss of very many steps, those of one formula by the rule of a parameter.

    `parts` returns every distinct step's law with its count, for what does not add up over them.
    """

    lacking = _CLOSE * _CLOSE + _ROUNDED

    def __init__(
        self,
        families: Sequence[StepFamily],
        others: Sequence[tuple[LossLaw, int]],
        parts: Callable[[], Sequence[tuple[LossLaw, int]]],
        direction: str = "",
    ) -> None:
        self._families = tuple(families)
        self._others = tuple(others)
        self._all = parts
        self.kept = {}
        self.direction = direction
        family_count = int(sum(family.counts.sum() for family in families))
        self.count = sum(count for _, count in others) + family_count

    @cached_property
    def terms(self) -> _Terms:  # type: ignore[override]
        """The laws at the nodes with their weights, and the other steps with their counts."""
        terms: list[tuple[LossLaw, float]] = []
        for family in self._families:
            terms += family.terms(self.direction == "add")
        return [*terms, *self._others]

    @cached_property
    def parts(self) -> tuple[tuple[LossLaw, int], ...]:
        """Every distinct step's law, with its count."""
        return tuple(self._all())

    def singly(self) -> SumLaw:
        """Return the same total with every step by itself."""
        return _singly(self)

    @cached_property
    def samples(self) -> Sequence[LossLaw]:
        """The laws at the nodes, the first and the last of each family, and the other steps."""
        laws = [law for law, _ in self.terms]
        for family in self._families:
            laws += family.ends(self.direction == "add")
        return laws

    @cached_property
    def domain(self) -> tuple[float, float]:
        """The tilts between which every step's moment generating function is finite."""
        lowest = max(law.domain[0] for law in self.samples)
        highest = min(law.domain[1] for law in self.samples)
        return lowest, highest

    def smooth_sum(self, values: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return Σ nᵢ vᵢ over the terms, nan where the rules do not say that it is known."""
        first = 0
        for family in self._families:
            family_values = np.asarray(values[first : first + len(family.laws)])
            first += len(family_values)
            if not family.knows(family_values, _CLOSE):
                return np.full(family_values.shape[1:], np.nan)
        return self.combine(values)

    log_transform = _singly_where_unknown(SumLaw.log_transform)

    def known_log_transform(self, tilts: Array, epsilon: float) -> Array:
        """Return K(s) − s·ε, nan where it takes every step by itself to know it."""
        singles = np.split(np.asarray(tilts), np.size(tilts))
        values = [SumLaw.log_transform(self, tilt, epsilon) for tilt in singles]
        return np.concatenate(values)

    cgf = _singly_where_unknown(SumLaw.cgf)
    cumulants = _singly_where_unknown(SumLaw.cumulants)

    @cached_property
    @_singly_where_unknown
    def loss_bounds(self) -> tuple[float, float]:
        """The essential range of the finite total loss, or a little more."""
        bounds = np.asarray([law.loss_bounds for law, _ in self.terms])
        is_finite = np.isfinite(bounds).all(axis=0)
        finite_bounds = np.where(is_finite, bounds, 0.0)
        finite_sizes = np.where(is_finite, np.abs(bounds), 0.0)
        total = self.smooth_sum(list(finite_bounds))
        size = self.combine(list(finite_sizes))
        outward = _OUTWARD * np.asarray([-1.0, 1.0]) * size
        low, high = (total + outward).tolist()
        if not is_finite[0]:
            low = -math.inf
        if not is_finite[1]:
            high = math.inf
        return low, high

    def epsilon_of_top(self, log_delta: float) -> float | None:
        """Return None: to begin a search there is not worth the law of every step."""
        return None

    @cached_property
    def apart(self) -> tuple[SumLaw, SumLaw]:
        """Their steps with losses of single values, and the others, families among them."""
        discrete = [pair for pair in self._others if not pair[0].is_spread]
        spread = [pair for pair in self._others if pair[0].is_spread]

        def all_spread() -> list[tuple[LossLaw, int]]:
            return [pair for pair in self.parts if pair[0].is_spread]

        return SumLaw(discrete), RuleLaw(self._families, spread, all_spread, self.direction)


_SIZES = (14, 28, 44, 66, 100)  # nodes that are tried
_WORTHWHILE = 0.6  # of all steps: more nodes than that are no gain
_REFINED = 3  # times that weights are corrected: each time the error is squared
_LAST = 4  # coefficients that tell how large all later ones are
_CONSTANT = 1e-9  # relative: what varies by less is looked at as if it varied by that much

Vector = tuple[Fraction, ...]
Extended = NDArray[np.longdouble]


@dataclass(frozen=True)
class Rule:
    """Nodes and weights that stand for a sum over steps."""

    values: tuple[Vector, ...]  # the parameters at every node, in the formula's order
    weights: Extended  # their positive weights, which add up to the number of steps
    basis: Extended  # takes values at the nodes to coefficients
    steps: Extended  # the polynomials at every step, times the root of its share

    def knows(self, values: Array | Complex, close: float) -> bool:
        """Return whether the last coefficients are small.

        As coefficients fall geometrically and a rule is exact to twice their degree, the square of
        their share is what it lacks. Of log φ, which is complex, it also does that φ is too small
        to matter.
        """
        total = self.weights.sum()
        share = (self.weights / total).astype(np.float64)
        mean_square = np.tensordot(share, np.abs(values) ** 2, axes=1)
        size = np.sqrt(mean_square)
        last_rows = self.basis[-_LAST:].astype(np.float64)
        last_coefficients = np.tensordot(last_rows, values, axes=1)
        last = np.abs(last_coefficients).max(axis=0)
        is_unknown = last > close * size
        if np.iscomplexobj(values):
            with np.errstate(all="ignore"):
                log_modulus = np.tensordot(self.weights, values.real, axes=1)
                modulus = np.exp(log_modulus.astype(np.float64))
                lacking = float(total) * last * (last / size)
                is_unknown &= lacking * modulus > NO_SHARE
        return not np.any(is_unknown)

    def size_needed(self, values: Array | Complex, close: float) -> int:
        """Return about how many nodes tell values that are not known, by the last coefficients.

        They fall ever faster, hardly like a normal density: log c_m is taken to fall like −m^{3/2}.
        """
        node_count = self.weights.size
        coefficients = np.abs(np.tensordot(self.basis.astype(np.float64), values, axes=1))
        size = np.sqrt((coefficients * coefficients).sum(axis=0))
        last = coefficients[-_LAST:].max(axis=0)
        share = float((last / np.maximum(size, np.finfo(float).tiny)).max())
        needed = node_count + 1
        if close < share < 1.0:
            ratio = math.log(close) / math.log(share)
            first_of_last = (node_count - _LAST) * ratio ** (2.0 / 3.0)
            needed = max(needed, _LAST + math.ceil(first_of_last))
        return needed

    def meets(self, at_nodes: Array, at_steps: Array) -> bool:
        """Return whether functions are met at every step by the polynomials through the nodes.

        A product of two functions has the average Σ aₖbₖ of their coefficients, and aliases of
        degree 2m − k are in those of degree k. So a coefficient may be off by the share of the
        last one to the power 2 − k/m, and what no polynomial meets counts by its square.
        """
        is_finite = np.isfinite(at_nodes).all() and np.isfinite(at_steps).all()
        if not is_finite:
            return False
        root = self.steps[0]  # of each step's share, as the first polynomial is 1
        mean = (root * root) @ at_steps
        deviation = root[:, None] * (at_steps - mean)
        coefficients = self.steps @ deviation
        spread = np.sqrt((deviation * deviation).sum(axis=0))
        size = spread + _CONSTANT * np.abs(mean)
        missed = deviation - self.steps.T @ coefficients
        missed_size = np.sqrt((missed * missed).sum(axis=0))
        if not (missed_size <= _CLOSE * size).all():
            return False
        node_count = self.weights.size
        degree = np.arange(node_count)[:, None] / node_count
        rounded = _ROUNDED * np.abs(at_steps).max(axis=0)
        allowed = size * _CLOSE ** (2.0 - degree) + rounded
        from_nodes = self.basis @ (at_nodes - mean)
        off = np.abs(coefficients - from_nodes)
        return bool((off <= allowed).all())


class ParameterLine:
    """Values of parameters on one line: all are affine functions of one of them, the axis."""

    def __init__(self, vectors: Sequence[Vector], counts: Array, axis: int) -> None:
        self._counts = counts.astype(np.longdouble)
        self._axis = axis
        column = [vector[axis] for vector in vectors]
        low = column.index(min(column))
        high = column.index(max(column))
        self.ends = (low, high)
        self._first = vectors[low]
        length = column[high] - column[low]
        pairs = zip(vectors[low], vectors[high], strict=True)
        self._slope = [(last - first) / length for first, last in pairs]
        logs = np.log(np.asarray([_extended(value) for value in column]))
        self._middle = 0.5 * (logs[low] + logs[high])
        self._half = 0.5 * (logs[high] - logs[low])
        self._place = (logs - self._middle) / self._half

    @classmethod
    def through(cls, vectors: Sequence[Vector], counts: Array) -> ParameterLine | None:
        """Return the line through all vectors of positive values, None where there is none."""
        ratios = [max(column) / min(column) for column in zip(*vectors, strict=True)]
        widest = max(ratios)
        if widest == 1:
            return None
        axis = ratios.index(widest)
        line = cls(vectors, counts, axis)
        if all(line.at(vector[axis]) == vector for vector in vectors):
            return line
        return None

    def at(self, value: Fraction) -> Vector:
        """Return all parameters where the one of them has a value."""
        distance = value - self._first[self._axis]
        pairs = zip(self._first, self._slope, strict=True)
        return tuple(first + slope * distance for first, slope in pairs)

    def rule(self, size: int) -> Rule | None:
        """Return the Gauss rule in the logarithm of that one, None where it is not known."""
        total = self._counts.sum()
        row = np.sqrt(self._counts / total)
        rows = np.empty((size + 1, row.size), dtype=np.longdouble)
        rows[0] = row
        diagonal = []
        off_diagonal = []
        for k in range(size):  # Lanczos, every row made orthogonal to all before it
            row = self._place * rows[k]
            diagonal.append((row * rows[k]).sum())
            before = rows[: k + 1]
            for _ in range(2):
                row = row - (before @ row) @ before
            norm = np.sqrt((row * row).sum())
            off_diagonal.append(norm)
            rows[k + 1] = row / norm
        inner = np.asarray(off_diagonal[:-1], dtype=np.float64)
        matrix = np.diag(np.asarray(diagonal, dtype=np.float64))
        matrix = matrix + np.diag(inner, 1) + np.diag(inner, -1)
        roots = np.linalg.eigvalsh(matrix).astype(np.longdouble)
        for _ in range(_REFINED):  # Newton's method on the last polynomial
            polynomials, slopes = _orthonormal_polynomials(roots, diagonal, off_diagonal)
            roots = roots - polynomials[-1] / slopes[-1]
        numbers = np.exp(self._middle + self._half * roots)
        values = [Fraction(*number.as_integer_ratio()) for number in numbers]
        # Weights for the nodes as they were rounded.
        logs = np.log(np.asarray([_extended(value) for value in values]))
        roots = (logs - self._middle) / self._half
        polynomials, _ = _orthonormal_polynomials(roots, diagonal, off_diagonal)
        basis = polynomials[:-1]
        weights = 1.0 / (basis * basis).sum(axis=0)
        for _ in range(_REFINED):
            residue = (basis * weights).sum(axis=1)
            residue[0] -= 1.0
            correction = (basis * residue[:, None]).sum(axis=0)
            weights = weights * (1.0 - correction)
        if not (np.abs(residue).max() < NO_SHARE and weights.min() > 0.0):
            return None  # so uneven a measure that its polynomials are not known
        nodes = tuple(self.at(value) for value in values)
        return Rule(nodes, weights * total, basis * weights, rows[:size])


@kept_with_law
def _singly(law: SumLaw) -> SumLaw:
    laws, counts = zip(*law.parts, strict=True)
    return SumLaw(list(zip(together(laws), counts, strict=True)), law.direction)


class StepFamily:
    """Steps of one formula, and the laws that stand for them.

    `member` returns the law of one step, `made` the law at some values, and `entries` all that
    depends on the parameters, a row for each of many values; steps with equal rows are one step.
    """

    def __init__(
        self,
        vectors: Sequence[Vector],
        counts: Array,
        member: Callable[[int], LossLaw],
        law_of: Callable[[Vector], LossLaw | None],
        entries: Callable[[Sequence[Vector]], Array],
    ) -> None:
        at_steps = entries(vectors)
        number_of_row: dict[bytes, int] = {}
        keys = [row.tobytes() for row in at_steps]
        first = np.asarray([number_of_row.setdefault(key, k) for k, key in enumerate(keys)])
        distinct = np.unique(first)
        self.counts = np.bincount(first, counts)[distinct]
        vectors = [vectors[k] for k in distinct]
        self._ends: list[LossLaw] = []
        self._rule: Rule | None = None
        line = ParameterLine.through(vectors, self.counts)
        if line is not None:
            sizes = [size for size in _SIZES if size <= _WORTHWHILE * distinct.size]
            needed = 0
            for size in sizes:
                if size < min(needed, sizes[-1]):
                    continue
                rule = line.rule(size)
                if rule is None or not rule.meets(entries(rule.values), at_steps[distinct]):
                    continue
                laws = [law for law in map(law_of, rule.values) if law is not None]
                if len(laws) < size:
                    continue
                laws = together(laws)
                needed = self._size_needed(rule, laws)
                if needed <= size:
                    self._ends = [member(int(distinct[k])) for k in line.ends]
                    self._rule = rule
                    self.laws = laws
                    return
        self.laws = together([member(k) for k in distinct.tolist()])

    def _size_needed(self, rule: Rule, laws: Sequence[LossLaw]) -> int:
        """Return the nodes that tell what is summed at usual tilts and frequencies.

        Those of the rule where they do, else about how many, from the farthest tilt on.
        """
        weights = rule.weights.astype(np.float64)
        inner = min(1.0, 0.5 * laws[0].domain[1])
        _, end_of_window = laws[0].window(0.0)
        for tilt in (end_of_window, inner, 0.0, -1.0):
            parts = [law.tilted(tilt) for law in laws]
            moments = np.asarray([[part.excess, part.shift, part.variance] for part in parts])
            if not rule.knows(moments, _CLOSER):
                return rule.size_needed(moments, _CLOSER)
            width = math.sqrt(float(weights @ moments[:, 2]))
            y = _PLACES / width
            finer = [law.tilted(tilt, float(y[-1])) for law in laws]
            logs = np.asarray([part.log_characteristic(y) for part in finer])
            if not rule.knows(logs, _CLOSER):
                return rule.size_needed(logs, _CLOSER)
        return rule.weights.size

    @property
    def has_rule(self) -> bool:
        """Whether a rule stands for the steps."""
        return self._rule is not None

    def knows(self, values: Array | Complex, close: float) -> bool:
        """Return whether values of all laws tell what all steps add up to."""
        return self._rule is None or self._rule.knows(values, close)

    def terms(self, reverse: bool) -> _Terms:
        """Return laws in either direction, and how many steps each stands for."""
        laws = self._reversed if reverse else self.laws
        weights = self.counts
        if self._rule is not None:
            weights = self._rule.weights.astype(np.float64)
        return list(zip(laws, weights.tolist(), strict=True))

    @cached_property
    def _reversed(self) -> list[LossLaw]:
        return together([law.reversed() for law in self.laws])

    def ends(self, reverse: bool) -> list[LossLaw]:
        """Return the laws of the first and the last step, beside those of the nodes."""
        if reverse:
            return [law.reversed() for law in self._ends]
        return self._ends


def _orthonormal_polynomials(
    x: Extended, diagonal: Sequence[Any], off_diagonal: Sequence[Any]
) -> tuple[Extended, Extended]:
    """Return orthonormal polynomials and their derivatives from their recurrence."""
    values = [np.ones_like(x)]
    slopes = [np.zeros_like(x)]
    value_before = np.zeros_like(x)
    slope_before = np.zeros_like(x)
    for middle, beside in zip(diagonal, off_diagonal, strict=True):
        value = (x - middle) * values[-1] - value_before
        slope = values[-1] + (x - middle) * slopes[-1] - slope_before
        value_before = beside * values[-1]
        slope_before = beside * slopes[-1]
        values.append(value / beside)
        slopes.append(slope / beside)
    return np.stack(values), np.stack(slopes)


def _extended(value: Fraction) -> np.longdouble:
    """Return a ratio with a 64-bit mantissa, but for a rounding or two."""
    first = float(value)
    remainder = float(value - Fraction(first))
    return np.longdouble(first) + np.longdouble(remainder)
