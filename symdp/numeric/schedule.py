"""Many steps of one formula as one loss: its K, moments and log φ are sums over their parameters.

The sum of independent losses is a loss, and what adds up over the steps is an integral over their
parameters: a few nodes of its Gauss rule stand for all steps. More nodes are taken until the
last coefficients of what is summed say that it is known to rounding, and all steps where none do.

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
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.numeric.elementary import Complex
from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import (
    Tilted,
    log_bound_near,
    log_characteristic,
    log_characteristic_grid,
    log_decay,
    tilted_cumulants,
)
from symdp.numeric.step import Array, Index
from symdp.numeric.total import SumLaw, square_length

# share of the last coefficients or of what a polynomial misses: its square is lacking
_CLOSE = 1e-7
_ROUNDED = 4.0 * 2.0**-53  # relative: of a sum of doubles over nodes or steps
_ROUGH = 0.1  # the same where a digit or two will do
_MOST_TILTED = 8  # tilted laws that are kept
_OUTWARD = 3e-14  # relative: of an end of the range, so that no loss lies beyond


class ManySteps:
    """The privacy loss of many steps of one formula in one direction, added up.

    `close` is the largest share of the last coefficients of what is summed.
    """

    uncertain_mass = 0.0
    mass_at_infinity = 0.0

    def __init__(self, family: StepFamily, direction: str, close: float = _CLOSE) -> None:
        self._family, self._reverse, self._close = family, direction == "add", close
        ends = [self._turned(law) for law in family.ends]
        self.domain = max(law.domain[0] for law in ends), min(law.domain[1] for law in ends)
        self.has_atoms = ends[0].has_atoms
        self.is_spread = ends[0].is_spread
        self.counts = family.counts
        self._laws: dict[int, list[LossLaw]] = {}
        self._tilted: dict[tuple[float, float], ManyTilted] = {}

    def _turned(self, law: LossLaw) -> LossLaw:
        return law.reversed() if self._reverse else law

    def laws(self, level: int) -> list[LossLaw]:
        """Return the laws at the nodes of a level."""
        if level not in self._laws:
            self._laws[level] = [self._turned(law) for law in self._family.rule(level)[1]]
        return self._laws[level]

    def rule(self, level: int) -> Rule:
        """Return the rule of a level."""
        return self._family.rule(level)[0]

    def total(
        self,
        of: Callable[[LossLaw], Any],
        close: float | None = None,
        first: int = 0,
        is_log: bool = False,
    ) -> tuple[Any, int, float]:
        """Return Σ nᵢ f(Lᵢ), the level that was enough, and the share of its last coefficients."""
        level = first
        while True:
            rule, values = self.rule(level), np.asarray([of(law) for law in self.laws(level)])
            wanted, share = rule.wanted(values, close or self._close, is_log)
            if wanted <= len(values):
                return rule.total(values), level, share
            level = self._family.level(level + 1, wanted)

    @cached_property
    def rough(self) -> ManySteps:
        """The same to a digit or two, from fewer nodes where a rule stands for the steps."""
        if not self._family.has_rule:
            return self
        found = ManySteps(self._family, "add" if self._reverse else "remove", _ROUGH)
        found._laws = self._laws
        return found

    @cached_property
    def thinned(self) -> ManySteps:
        """The same, or fewer steps whose characteristic function is hardly smaller far out."""
        if self._family.has_rule or self.counts.size < 2 * FEW:
            return self.rough
        variances = [law.tilted(0.0).variance for law in self.laws(0)]
        side = "add" if self._reverse else "remove"
        return ManySteps(self._family.thinned(np.argsort(variances)), side)

    @cached_property
    def loss_bounds(self) -> tuple[float, float]:
        """The range of the sum's loss, or a little more."""
        known = np.asarray([law.loss_bounds for law in self.laws(0)])
        finite = np.isfinite(known).all(axis=0)
        found, *_ = self.total(lambda law: np.where(finite, law.loss_bounds, 0.0))
        size, *_ = self.total(lambda law: np.where(finite, np.abs(law.loss_bounds), 0.0), _ROUGH)
        low, high = (found + _OUTWARD * np.asarray([-1.0, 1.0]) * size).tolist()
        return low if finite[0] else -math.inf, high if finite[1] else math.inf

    @cached_property
    def square_length(self) -> float:
        """Σ nᵢτᵢ², as for every total."""
        if not all(map(math.isfinite, self.loss_bounds)):
            return math.inf
        return float(self.total(lambda law: float(np.diff(law.loss_bounds)[0]) ** 2)[0])

    @cached_property
    def base(self) -> ManyTilted:
        """What the nodes around tilts −1 and 0 say of the sum."""
        return self.tilted(0.0)

    @cached_property
    def atom_gap(self) -> float:
        """The smallest distance of two atoms of one step, inf where there are none."""
        return min(law.atom_gap for law in self.laws(0))

    def window(self, tilt: float) -> tuple[float, float]:
        """Return between which tilts the nodes around a tilt serve at no further cost."""
        windows = [law.window(tilt) for law in self.laws(0)]
        return max(low for low, _ in windows), min(high for _, high in windows)

    def transform(self, tilts: Array) -> Array:
        """Return K(t) − t·E L for several tilts."""
        found, *_ = self.total(lambda law: law.transform(tilts))
        return np.asarray(found)

    def rough_cumulants(self, tilts: Array) -> Array:
        """Return K(t) − t E L, K′(t) − E L and K″(t) for several tilts."""
        _, level, _ = self.total(lambda law: np.stack(law.rough_cumulants(tilts)[:2]))
        found = [np.stack(law.rough_cumulants(tilts)) for law in self.laws(level)]
        return np.asarray(self.rule(level).total(np.asarray(found)))

    def tilted(self, tilt: float, frequency: float = 0.0) -> ManyTilted:
        """Return the steps tilted by `tilt`, from nodes that resolve |y| ≤ frequency."""
        key = tilt, frequency
        if key not in self._tilted:
            if len(self._tilted) >= _MOST_TILTED:
                self._tilted.clear()
            still = self.tilted(tilt) if frequency > 0.0 else None
            self._tilted[key] = ManyTilted.of(self, tilt, frequency, still)
        return self._tilted[key]


def _summed(of: Callable[[Tilted], float]) -> cached_property[float]:
    """A sum over the steps of what is known of each."""

    def total(many: ManyTilted) -> float:
        return float(sum(n * of(x) for x, n in many.parts))

    return cached_property(total)


@dataclass(frozen=True, eq=False)
class ManyTilted:
    """Many steps under P_t: what `Tilted` says of one step, of their sum."""

    steps: ManySteps
    tilt: float
    frequency: float
    level: int  # of the rule that moments are known by
    excess: float
    shift: float
    variance: float
    lacking: float  # what the rule may lack, relative
    # What else adds up over the steps. `imprecise`: how many have a K that is no sum of growths.
    mean = _summed(lambda x: x.nodes.mean)
    size = _summed(lambda x: x.size)
    imprecise = _summed(lambda x: x.imprecise)
    _log_atomic = _summed(lambda x: math.log(max(x.atomic, 1e-300)))
    _first = _summed(lambda x: x.nodes.beyond[0])
    _second = _summed(lambda x: x.nodes.beyond[1])

    @classmethod
    def of(
        cls, steps: ManySteps, tilt: float, frequency: float, still: ManyTilted | None
    ) -> ManyTilted:
        """Return the steps under a tilt; moments are those of the same without frequencies."""
        if still is not None:
            return replace(still, frequency=frequency)

        def moments(law: LossLaw) -> list[float]:
            part = law.tilted(tilt)
            return [part.excess, part.shift, part.variance]

        found, level, share = steps.total(moments)
        excess, shift, variance = found.tolist()
        return cls(steps, tilt, frequency, level, excess, shift, variance, share * share)

    @cached_property
    def parts(self) -> list[tuple[Tilted, float]]:
        """The tilted laws that stand for the steps, and how many steps each stands for."""
        laws = self.steps.laws(self.level)
        weights = self.steps.rule(self.level).weights.astype(np.float64).tolist()
        return [
            (x.tilted(self.tilt, self.frequency), n) for x, n in zip(laws, weights, strict=True)
        ]

    @property
    def nodes(self) -> ManyTilted:
        """Itself, as it says of the sum what nodes say of a step."""
        return self

    @property
    def beyond(self) -> tuple[float, float]:
        """What the nodes leave out of E|L| and E L², added up."""
        return self._first, self._second

    @cached_property
    def error(self) -> float:
        """The quadratures' estimate of their relative error, and the rule's."""
        return max(x.error for x, _ in self.parts) + _ROUNDED + self.lacking

    @cached_property
    def widest(self) -> float:
        """The largest standard deviation of a single step."""
        return max(x.widest for x, _ in self.parts)

    @property
    def atomic(self) -> float:
        """Π aᵢ^nᵢ, aᵢ the weight of a step's atoms."""
        return math.exp(self._log_atomic)

    def log_sum(self, of: Callable[[Tilted], Complex]) -> Complex:
        """Return Σ nᵢ log φᵢ from the logarithms of one step."""
        found, *_ = self.steps.total(
            lambda law: of(law.tilted(self.tilt, self.frequency)), first=self.level, is_log=True
        )
        return np.asarray(found)


class ManyStepsLaw(SumLaw):
    """The total privacy loss of very many distinct steps, those of one formula taken together.

    `parts` returns every distinct step's law with its count, for what does not add up over them.
    """

    def __init__(
        self,
        families: Sequence[ManySteps],
        others: Sequence[tuple[LossLaw, int]],
        parts: Callable[[], Sequence[tuple[LossLaw, int]]],
        direction: str = "",
    ) -> None:
        self._terms: list[tuple[Any, int]] = [*((family, 1) for family in families), *others]
        self._families, self._others, self._all = tuple(families), tuple(others), parts
        self.kept, self.direction = {}, direction
        self.count = sum(n for _, n in others) + int(sum(f.counts.sum() for f in families))

    @property
    def terms(self) -> Sequence[tuple[Any, int]]:
        """The families, and the laws of the other steps with their counts."""
        return self._terms

    @cached_property
    def parts(self) -> tuple[tuple[LossLaw, int], ...]:
        """Every distinct step's law, with its count."""
        return tuple(self._all())

    def singly(self) -> SumLaw:
        """Return the same total with every step by itself."""
        return self._singly

    @cached_property
    def _singly(self) -> SumLaw:
        return SumLaw(self.parts)

    @cached_property
    def square_length(self) -> float:
        """Σ nᵢτᵢ², as for every total."""
        return square_length(self._others) + sum(f.square_length for f in self._families)

    def epsilon_of_top(self, log_delta: float) -> float | None:
        """Return None: to begin a search there is not worth the law of every step."""
        return None

    @cached_property
    def rough(self) -> SumLaw:
        """The same total to a digit or two, from fewer nodes."""
        return ManyStepsLaw([f.rough for f in self._families], self._others, self._all)

    @cached_property
    def thinned(self) -> SumLaw:
        """A law of fewer steps whose characteristic function is hardly smaller far out."""
        return ManyStepsLaw([f.thinned for f in self._families], self._others, self._all)

    @cached_property
    def apart(self) -> tuple[SumLaw, SumLaw]:
        """Their steps with losses of single values, and the others, families among them."""
        sides = [[x for x in self._others if x[0].is_spread is spread] for spread in (False, True)]
        spread = lambda: [x for x in self.parts if x[0].is_spread]  # noqa: E731
        return SumLaw(sides[0]), ManyStepsLaw(self._families, sides[1], spread)

    def tilted_terms(self, tilt: float, frequency: float = 0.0) -> list[tuple[Tilted, float]]:
        """Return single steps' laws tilted by `tilt`, those of families standing for several."""
        found: list[tuple[Tilted, float]] = []
        for x, (_, count) in zip(self.tilted(tilt, frequency), self.terms, strict=True):
            found += x.parts if isinstance(x, ManyTilted) else [(x, float(count))]
        return found


@log_characteristic.register
def _(tilted: ManyTilted, y: Array) -> Complex:  # type: ignore[misc]
    return tilted.log_sum(lambda x: log_characteristic(x, y))


@log_characteristic_grid.register
def _(tilted: ManyTilted, step: float, first: int, last: int) -> Complex:  # type: ignore[misc]
    return tilted.log_sum(lambda x: log_characteristic_grid(x, step, first, last))


@tilted_cumulants.register
def _(tilted: ManyTilted, order: int) -> Array:  # type: ignore[misc]
    found, *_ = tilted.steps.total(lambda law: tilted_cumulants(law.tilted(tilted.tilt), order))
    return np.asarray(found)


@log_decay.register
def _(tilted: ManyTilted, y: Array) -> Array:  # type: ignore[misc]
    return np.asarray(sum(n * log_decay(x, y) for x, n in tilted.parts))


@log_bound_near.register
def _(tilted: ManyTilted, y: Array) -> Array:  # type: ignore[misc]
    return np.asarray(sum(n * log_bound_near(x, y) for x, n in tilted.parts))


_SIZES = (14, 28, 44, 66, 100)  # nodes that are tried
_WORTHWHILE = 0.6  # of all steps: more nodes than that are no gain
FEW = 24  # steps that stand for all of those on no line, where a digit or two will do
_REFINED = 3  # times that weights are corrected: each time the error is squared
_EXACT = 1e-17  # of a moment: rounding with 64-bit mantissas
_LAST = 4  # coefficients that tell how large all later ones are
_MOST_MORE = 1.7  # times as many nodes at once
_SLOWEST = 0.5  # share of the last coefficients from which their fall is not told
_SETTLED = 1e-17  # of φ, for what its modulus makes small
_CONSTANT = 1e-9  # relative: what varies by less is looked at as if it varied by that much

Vector = tuple[Fraction, ...]
Extended = NDArray[np.longdouble]


@dataclass(frozen=True)
class Rule:
    """Nodes and weights that stand for a sum over steps."""

    values: tuple[Vector, ...]  # the parameters at every node, in the formula's order
    weights: Extended  # their positive weights, which add up to the number of steps
    basis: Extended | None = None  # takes values at the nodes to coefficients; None for all steps
    steps: Extended | None = None  # the polynomials at every step, times the root of its share

    def total(self, values: Array | Complex) -> Array | Complex:
        """Return Σ wₖ vₖ over the first axis."""
        found: Array | Complex = np.tensordot(self.weights.astype(np.float64), values, axes=1)
        return found

    def wanted(
        self, values: Array | Complex, close: float, is_log: bool = False
    ) -> tuple[float, float]:
        """Return about how many nodes leave the last coefficients small, and their largest share.

        As coefficients fall geometrically and a rule is exact to twice their degree, the square
        of their share is what it lacks. No more than there are means that this rule will do; of
        logarithms of φ it also does that φ is too small to matter.
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
        found = cls(vectors, counts, ratio.index(max(ratio)))
        return found if all(found.at(v[found._axis]) == v for v in vectors) else None

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

    `member` returns the law of one step, `made` the law at some values, and `entries` all that
    depends on the parameters, a row for each of many values; steps with equal rows are one step.
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
