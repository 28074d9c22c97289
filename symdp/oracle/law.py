"""One step's privacy loss as weighted nodes in arbitrary precision, straight from P, Q and ℓ.

M(t + iy) = ∫ P e^{(t+iy)ℓ} dx over the places of finite loss becomes e^h Σ wⱼ e^{iyℓⱼ}: Gauss–
Legendre panels where the loss has a density, the terms themselves on integers and lists, one atom
for a piece on which the loss is constant.  Errors are those of the panels, and the part of M(t)
below 10^{−digits} that is cut off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb

from symdp.derive.pieces import pieces, points
from symdp.emit.arb import ArbFunction, compile_arb
from symdp.emit.exact import real_ball
from symdp.errors import AccuracyError
from symdp.oracle.panels import (
    DivergentError,
    GaussPanel,
    Interval,
    Survey,
    grid,
    make_panels,
    survey,
)

if TYPE_CHECKING:
    from symdp.derive.records import Piece
    from symdp.model.pair import Pair

_MOST_INTEGERS = 400_000  # of a sum: seconds at 50 digits
_MOST_HINTS = 48  # places where a density may be largest
MARGIN = arb(2) ** -20  # by which ends that are integers lie inside an interval


@dataclass(frozen=True)
class Nodes:
    """Nodes of one tilt t: M(t + iy) ≈ exp(height) Σ weight·exp(iy·loss).

    `atoms` is the weight of losses that have positive probability.
    """

    height: arb
    weights: tuple[arb, ...]
    losses: tuple[arb, ...]
    atoms: arb

    @property
    def total(self) -> arb:
        """Σ weight."""
        return sum(self.weights, arb(0))

    def cumulants(self) -> tuple[arb, arb, arb]:
        """K(t), K′(t) and K″(t)."""
        pairs = list(zip(self.weights, self.losses, strict=True))
        total = self.total
        mean = sum((w * x for w, x in pairs), arb(0)) / total
        square = sum((w * (x - mean) ** 2 for w, x in pairs), arb(0))
        return self.height + total.log(), mean, square / total


@dataclass(frozen=True)
class CompiledPiece:
    """A compiled piece of the support; `loss` is None where P or Q is 0 on it."""

    lower: sp.Expr
    upper: sp.Expr
    log_p: ArbFunction | None
    log_q: ArbFunction | None
    loss: ArbFunction | None
    is_flat: bool
    is_integer: bool
    hints: tuple[arb, ...]

    def interval(self) -> Interval:
        """The piece as an open interval at the current precision.

        The ends of a piece of integers belong to it, so they move outwards a little.
        """
        lower, upper = _end(self.lower), _end(self.upper)
        if self.is_integer:
            lower = None if lower is None else lower - MARGIN
            upper = None if upper is None else upper + MARGIN
        return Interval(lower, upper)


LogDensity = Callable[[arb], arb]
_Discrete = tuple[list[arb], list[arb]]  # weights and losses


class StepLaw:
    """The loss of one step: pieces or points compiled once; nodes are made for each tilt.

    Parameters
    ----------
    pair : Pair
        All parameters bound.

    Attributes
    ----------
    both, only_p : tuple of CompiledPiece
        Pieces where both densities live, and those where only P does (infinite loss).
    """

    def __init__(self, pair: Pair) -> None:
        self.is_finite = pair.support.kind == "points"
        self.points = points(pair)
        parts = pieces(pair)
        stretches = [_stretch(part, pair.variable) for part in parts]
        self.both = tuple(part for part in stretches if part.loss is not None)
        self.only_p = tuple(part for part in stretches if part.log_q is None)
        self.only_q = tuple(part for part in stretches if part.log_p is None)
        self.is_discrete = pair.is_discrete or all(part.is_flat for part in self.both)

    def mass_at_infinity(self, digits: float, order: int) -> arb:
        """P(Q = 0), the part of P that no ε covers."""
        total = arb(0)
        for point in self.points:
            if point.q == 0:
                total += real_ball(point.p)
        return total + self._mass([(part, part.log_p) for part in self.only_p], digits, order)

    def mass_without_record(self, digits: float, order: int) -> arb:
        """Q(P > 0) = M(−1)."""
        total = arb(1)
        for point in self.points:
            if point.p == 0:
                total -= real_ball(point.q)
        return total - self._mass([(part, part.log_q) for part in self.only_q], digits, order)

    def loss_range(self) -> tuple[arb, arb]:
        """Least and greatest finite loss, limits at the ends of the support included."""
        values = [real_ball(point.loss) for point in self.points if point.p != 0 and point.q != 0]
        for part in self.both:
            assert part.loss is not None
            inner = part.interval()
            places = grid(inner, part.hints, 200)
            if not part.is_integer:
                places += [end for end in (inner.lower, inner.upper) if end is not None]
            values += [value for value in map(part.loss, places) if value.is_finite()]
        values = [value.mid() for value in values]
        if not values:
            raise AccuracyError(
                "no finite loss is found where both densities are seen: the noise is too small, "
                "or too large, beside the sensitivity"
            )
        return min(values), max(values)

    def end_values(self, part: CompiledPiece) -> list[arb]:
        """Finite limits of the loss at the ends of a piece; the one value of a flat piece."""
        assert part.loss is not None
        inner = part.interval()
        places = grid(inner, part.hints, 200)
        if part.is_flat:
            return [part.loss(places[len(places) // 2]).mid()]
        found = []
        for end, last, before in (
            (inner.lower, places[0], places[1]),
            (inner.upper, places[-1], places[-2]),
        ):
            value = part.loss(last if end is None else end)
            near, next_one = part.loss(last), part.loss(before)
            # Towards infinity a limit shows by standing still.
            settled = abs(near - next_one) < (1 + abs(near)) * arb(2) ** -100
            if value.is_finite() and (end is not None or settled):
                found.append(value.mid())
        return found

    def _mass(
        self, parts: list[tuple[CompiledPiece, LogDensity | None]], digits: float, order: int
    ) -> arb:
        total = arb(0)
        for part, log_density in parts:
            assert log_density is not None
            found = look(part, log_density, digits)
            weights, _ = _nodes_of(part, log_density, found, digits, arb(0), order)
            total += arb(found.height).exp() * sum(weights, arb(0))
        return total

    def nodes(self, tilt: arb, digits: float, frequency: arb, order: int) -> Nodes:
        """Discretise the loss for all M(tilt + iy) with |y| ≤ frequency.

        Parameters
        ----------
        tilt : arb
            A point of the domain of K.
        digits : float
            Decimal digits wanted of M, relative to M(tilt).
        frequency : arb
        order : int
            Nodes a panel; another order gives an independent result.

        Raises
        ------
        DivergentError
            Where M(tilt) is infinite.
        AccuracyError
            Where the work limit is reached.
        """
        if self.is_finite:
            return self._point_nodes(tilt)
        surveyed = []
        for part in self.both:
            log_density = tilted(part, tilt)
            surveyed.append((part, log_density, look(part, log_density, digits)))
        highest = max(found.log_mass for _, _, found in surveyed)
        height = arb(max(found.height for _, _, found in surveyed))
        weights: list[arb] = []
        losses: list[arb] = []
        atoms = arb(0)
        for part, log_density, found in surveyed:
            if found.log_mass < highest - math.log(10) * (digits + 20):
                continue
            sizes, places = _nodes_of(part, log_density, found, digits, frequency, order)
            scale = (arb(found.height) - height).exp()
            if part.is_flat:
                sizes, places = [sum(sizes, arb(0))], places[:1]
            weights += [size * scale for size in sizes]
            losses += places
            if part.is_flat or part.is_integer:
                atoms += scale * sum(sizes, arb(0))
        return Nodes(height, tuple(weights), tuple(losses), atoms)

    def _point_nodes(self, tilt: arb) -> Nodes:
        finite = [point for point in self.points if point.p != 0 and point.q != 0]
        losses = tuple(real_ball(point.loss) for point in finite)
        weights = tuple(
            real_ball(point.p) * (tilt * loss).exp()
            for point, loss in zip(finite, losses, strict=True)
        )
        return Nodes(arb(0), weights, losses, sum(weights, arb(0)))


def _nodes_of(
    part: CompiledPiece,
    log_density: LogDensity,
    found: Survey,
    digits: float,
    frequency: arb,
    order: int,
) -> _Discrete:
    loss = part.loss or (lambda _: arb(0))
    if part.is_integer:
        places = integers_between(part, found)
        return (
            [(log_density(place) - found.height).exp() for place in places],
            [loss(place) for place in places],
        )
    if part.is_flat:
        frequency = arb(0)
    panels = panels_of(log_density, loss, found, digits, frequency, order)
    return (
        [weight for panel in panels for weight in panel.weights],
        [value for panel in panels for value in panel.losses],
    )


def panels_of(
    log_density: LogDensity,
    loss: LogDensity,
    found: Survey,
    digits: float,
    frequency: arb,
    order: int,
) -> list[GaussPanel]:
    """Return the panels of a tilted density with the losses at their nodes."""
    return make_panels(lambda x: (log_density(x), loss(x)), found, digits, frequency, order)


@lru_cache(maxsize=64)
def step_law(pair: Pair) -> StepLaw:
    """Compile a pair, once."""
    return StepLaw(pair)


def integers_between(part: CompiledPiece, found: Survey) -> list[arb]:
    """The integers of a piece that count, both ends of the piece included."""
    lower, upper = int(found.lower.fmpq().floor()), int(found.upper.fmpq().ceil())
    if not part.lower.is_infinite and lower < int(part.lower):
        lower = int(part.lower)
    if not part.upper.is_infinite and upper > int(part.upper):
        upper = int(part.upper)
    if upper - lower > _MOST_INTEGERS:
        raise AccuracyError(
            f"{upper - lower} integers count in a discrete density, over the limit "
            f"{_MOST_INTEGERS}; ask for fewer digits"
        )
    return [arb(k) for k in range(lower, upper + 1)]


def tilted(part: CompiledPiece, tilt: arb) -> Callable[[arb], arb]:
    """log of P exp(tilt·ℓ) on a piece."""
    log_p, loss = part.log_p, part.loss
    assert log_p is not None
    assert loss is not None
    return lambda x: log_p(x) + tilt * loss(x)


def look(part: CompiledPiece, log_density: Callable[[arb], arb], digits: float) -> Survey:
    """Survey one piece for so many digits of its mass."""
    return survey(log_density, part.interval(), part.hints, math.log(10) * (digits + 2))


def _stretch(part: Piece, variable: sp.Symbol) -> CompiledPiece:
    x = [variable]
    lower, upper = part.lower, part.upper
    bare = CompiledPiece(lower, upper, None, None, None, False, bool(variable.is_integer), ())
    terms = list(dict.fromkeys((*part.log_p_terms, *part.log_q_terms)))
    terms = terms[:: -(-len(terms) // _MOST_HINTS)] if terms else []
    hints = [mode for term in terms for mode in _modes(compile_arb(term, x), bare.interval())]
    return CompiledPiece(
        lower,
        upper,
        None if part.log_p is None else compile_arb(part.log_p, x),
        None if part.log_q is None else compile_arb(part.log_q, x),
        None if part.log_p is None or part.log_q is None else compile_arb(part.loss, x),
        part.slope == "constant",
        bare.is_integer,
        tuple(hints),
    )


def _modes(term: ArbFunction, interval: Interval) -> tuple[arb, ...]:
    """Where one additive term peaks; none where it does not fall off inside the piece."""
    try:
        return tuple(peak.place for peak in survey(term, interval, (), 30.0).peaks)
    except DivergentError:
        return ()


def _end(limit: sp.Expr) -> arb | None:
    return None if limit.is_infinite else real_ball(limit).mid()
