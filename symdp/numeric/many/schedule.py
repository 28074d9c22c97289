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

# share of the last coefficients or of what a polynomial misses: its square is lacking
_CLOSE = 1e-7
_CLOSER = 1e-9  # the same where the nodes of a rule are chosen, at some tilts and frequencies
_ROUNDED = 4.0 * 2.0**-53  # relative: of a sum of doubles over nodes or steps
_OUTWARD = 3e-14  # relative: of an end of the range, so that no loss lies beyond
_PLACES = np.linspace(0.75, 9.0, 12)  # y in deviations of the sum, where a rule is chosen

_Terms = Sequence[tuple[LossLaw, float]]


def _or_singly(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a total's method that asks every step by itself where a rule does not know."""

    def asked(law: RuleLaw, *arguments: Any) -> Any:
        answer = function(law, *arguments)
        if not np.isnan(answer).any():
            return answer
        singly = getattr(law.singly(), function.__name__)
        return singly(*arguments) if arguments else singly

    return asked


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
        self._families, self._others, self._all = tuple(families), tuple(others), parts
        self.kept, self.direction = {}, direction
        self.count = sum(n for _, n in others) + int(sum(f.counts.sum() for f in families))

    @cached_property
    def terms(self) -> _Terms:  # type: ignore[override]
        """The laws at the nodes with their weights, and the other steps with their counts."""
        laws = [x for family in self._families for x in family.terms(self.direction == "add")]
        return [*laws, *self._others]

    @cached_property
    def parts(self) -> tuple[tuple[LossLaw, int], ...]:
        """Every distinct step's law, with its count."""
        return tuple(self._all())

    def singly(self) -> SumLaw:
        """Return the same total with every step by itself."""
        return _singly(self)

    @cached_property
    def domain(self) -> tuple[float, float]:
        """The tilts between which every step's moment generating function is finite."""
        ends = [law for family in self._families for law in family.ends(self.direction == "add")]
        ends += [law for law, _ in self.terms]
        return max(law.domain[0] for law in ends), min(law.domain[1] for law in ends)

    def smooth_sum(self, values: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return Σ nᵢ vᵢ over the terms, nan where the rules do not say that it is known."""
        first = 0
        for family in self._families:
            family_values = np.asarray(values[first : first + len(family.laws)])
            first += len(family_values)
            if not family.knows(family_values, _CLOSE):
                return np.full(family_values.shape[1:], np.nan)
        return self.combine(values)

    log_transform = _or_singly(SumLaw.log_transform)
    cgf = _or_singly(SumLaw.cgf)
    cumulants = _or_singly(SumLaw.cumulants)

    @cached_property
    @_or_singly
    def loss_bounds(self) -> tuple[float, float]:
        """The essential range of the finite total loss, or a little more."""
        bounds = np.asarray([law.loss_bounds for law, _ in self.terms])
        finite = np.isfinite(bounds).all(axis=0)
        total = self.smooth_sum(list(np.where(finite, bounds, 0.0)))
        size = self.combine(list(np.where(finite, np.abs(bounds), 0.0)))
        low, high = (total + _OUTWARD * np.asarray([-1.0, 1.0]) * size).tolist()
        return low if finite[0] else -math.inf, high if finite[1] else math.inf

    def epsilon_of_top(self, log_delta: float) -> float | None:
        """Return None: to begin a search there is not worth the law of every step."""
        return None

    @cached_property
    def apart(self) -> tuple[SumLaw, SumLaw]:
        """Their steps with losses of single values, and the others, families among them."""
        sides = [[x for x in self._others if x[0].is_spread is spread] for spread in (False, True)]
        spread = lambda: [x for x in self.parts if x[0].is_spread]  # noqa: E731
        return SumLaw(sides[0]), RuleLaw(self._families, sides[1], spread, self.direction)


_SIZES = (14, 28, 44, 66, 100)  # nodes that are tried
_WORTHWHILE = 0.6  # of all steps: more nodes than that are no gain
_REFINED = 3  # times that weights are corrected: each time the error is squared
_EXACT = 1e-17  # of a moment: rounding with 64-bit mantissas
_LAST = 4  # coefficients that tell how large all later ones are
_SETTLED = 1e-17  # of φ, for what its modulus makes small
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
        share = (self.weights / self.weights.sum()).astype(np.float64)
        size = np.sqrt(np.tensordot(share, np.abs(values) ** 2, axes=1))
        basis = self.basis[-_LAST:].astype(np.float64)
        last = np.abs(np.tensordot(basis, values, axes=1)).max(axis=0)
        poor = last > close * size
        if np.iscomplexobj(values):
            with np.errstate(all="ignore"):
                modulus = np.exp(np.tensordot(self.weights, values.real, axes=1).astype(np.float64))
                lacking = float(self.weights.sum()) * last * (last / size)
                poor &= lacking * modulus > _SETTLED
        return not np.any(poor)

    def meets(self, at_nodes: Array, at_steps: Array) -> bool:
        """Return whether functions are met at every step by the polynomials through the nodes.

        A product of two functions has the average Σ aₖbₖ of their coefficients, and aliases of
        degree 2m − k are in those of degree k. So a coefficient may be off by the share of the
        last one to the power 2 − k/m, and what no polynomial meets counts by its square.
        """
        if not (np.isfinite(at_nodes).all() and np.isfinite(at_steps).all()):
            return False
        root = self.steps[0]  # of each step's share, as the first polynomial is 1
        mean = (root * root) @ at_steps
        apart = root[:, None] * (at_steps - mean)
        coefficients = self.steps @ apart
        size = np.sqrt((apart * apart).sum(axis=0)) + _CONSTANT * np.abs(mean)
        missed = apart - self.steps.T @ coefficients
        degree = np.arange(self.weights.size)[:, None] / self.weights.size
        allowed = size * _CLOSE ** (2.0 - degree) + _ROUNDED * np.abs(at_steps).max(axis=0)
        off = np.abs(coefficients - self.basis @ (at_nodes - mean))
        is_met = np.sqrt((missed * missed).sum(axis=0)) <= _CLOSE * size
        return bool(is_met.all() and (off <= allowed).all())


class ParameterLine:
    """Values of parameters on one line: all are affine functions of one of them, the axis."""

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
        candidate = cls(vectors, counts, ratio.index(max(ratio)))
        return candidate if all(candidate.at(v[candidate._axis]) == v for v in vectors) else None

    def at(self, value: Fraction) -> Vector:
        """Return all parameters where the one of them has a value."""
        apart = value - self._first[self._axis]
        return tuple(a + slope * apart for a, slope in zip(self._first, self._slope, strict=True))

    def rule(self, size: int) -> Rule | None:
        """Return the Gauss rule in the logarithm of that one, None where it is not known."""
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
        eigenvalues = np.linalg.eigvalsh(matrix + np.diag(inner, 1) + np.diag(inner, -1))
        roots = eigenvalues.astype(np.longdouble)
        for _ in range(_REFINED):  # Newton's method on the last polynomial
            polynomials = _polynomials(roots, diagonal, beside)
            roots = roots - polynomials[0][-1] / polynomials[1][-1]
        values = [
            Fraction(*value.as_integer_ratio())
            for value in np.exp(self._middle + self._half * roots)
        ]
        # Weights for the nodes as they were rounded.
        roots = (np.log(np.asarray([_extended(v) for v in values])) - self._middle) / self._half
        basis = _polynomials(roots, diagonal, beside)[0][:-1]
        weights = 1.0 / (basis * basis).sum(axis=0)
        for _ in range(_REFINED):
            residue = (basis * weights).sum(axis=1)
            residue[0] -= 1.0
            weights = weights * (1.0 - (basis * residue[:, None]).sum(axis=0))
        if not (np.abs(residue).max() < _EXACT and weights.min() > 0.0):
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
        again: dict[bytes, int] = {}
        first = np.asarray([again.setdefault(row.tobytes(), k) for k, row in enumerate(at_steps)])
        places = np.unique(first)
        self.counts = np.bincount(first, counts)[places]
        vectors = [vectors[k] for k in places]
        self._ends: list[LossLaw] = []
        self._rule: Rule | None = None
        line = ParameterLine.through(vectors, self.counts)
        for size in _SIZES if line is not None else ():
            assert line is not None
            rule = line.rule(size) if size <= _WORTHWHILE * places.size else None
            if rule is None or not rule.meets(entries(rule.values), at_steps[places]):
                continue
            laws = [law for law in map(law_of, rule.values) if law is not None]
            if len(laws) == size and self._is_known(rule, laws := together(laws)):
                self._ends = [member(int(places[k])) for k in line.ends]
                self._rule, self.laws = rule, laws
                return
        self.laws = together([member(k) for k in places.tolist()])

    def _is_known(self, rule: Rule, laws: Sequence[LossLaw]) -> bool:
        """Return whether what is summed at usual tilts and frequencies is known from the nodes."""
        weights = rule.weights.astype(np.float64)
        for tilt in (-1.0, 0.0, min(1.0, 0.5 * laws[0].domain[1]), laws[0].window(0.0)[1]):
            parts = [law.tilted(tilt) for law in laws]
            moments = np.asarray([[x.excess, x.shift, x.variance] for x in parts])
            width = math.sqrt(float(weights @ moments[:, 2]))
            y = _PLACES / width
            finer = [law.tilted(tilt, float(y[-1])) for law in laws]
            logs = np.asarray([x.log_characteristic(y) for x in finer])
            if not (rule.knows(moments, _CLOSER) and rule.knows(logs, _CLOSER)):
                return False
        return True

    @property
    def has_rule(self) -> bool:
        """Whether a rule stands for the steps."""
        return self._rule is not None

    def knows(self, values: Array | Complex, close: float) -> bool:
        """Return whether values of all laws tell what all steps add up to."""
        return self._rule is None or self._rule.knows(values, close)

    def terms(self, reverse: bool) -> _Terms:
        """Return laws in either direction, and how many steps each stands for."""
        weights = self.counts if self._rule is None else self._rule.weights.astype(np.float64)
        return list(zip(self._reversed if reverse else self.laws, weights.tolist(), strict=True))

    @cached_property
    def _reversed(self) -> list[LossLaw]:
        return together([law.reversed() for law in self.laws])

    def ends(self, reverse: bool) -> list[LossLaw]:
        """Return the laws of the first and the last step, beside those of the nodes."""
        return [law.reversed() for law in self._ends] if reverse else self._ends


def _polynomials(
    x: Extended, diagonal: Sequence[Any], beside: Sequence[Any]
) -> tuple[Extended, Extended]:
    """Return orthonormal polynomials and their derivatives from their recurrence."""
    values, slopes = [np.ones_like(x)], [np.zeros_like(x)]
    before = np.zeros_like(x), np.zeros_like(x)
    for middle, next_to in zip(diagonal, beside, strict=True):
        value = (x - middle) * values[-1] - before[0]
        slope = values[-1] + (x - middle) * slopes[-1] - before[1]
        before = next_to * values[-1], next_to * slopes[-1]
        values.append(value / next_to)
        slopes.append(slope / next_to)
    return np.stack(values), np.stack(slopes)


def _extended(value: Fraction) -> np.longdouble:
    """Return a ratio with a 64-bit mantissa, but for a rounding or two."""
    first = float(value)
    return np.longdouble(first) + np.longdouble(float(value - Fraction(first)))
