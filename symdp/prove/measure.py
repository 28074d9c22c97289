"""Integrals of one step's law over panels, in balls: nodes for every frequency up to a reach.

On a panel c ± h the Gauss–Legendre rule with N nodes is exact for polynomials of degree 2N − 1, and
the k-th Chebyshev coefficient of a function that is holomorphic in the ellipse of radius ρ and at
most M there is at most 2M/ρᵏ, so that the rule errs by at most

    h Σ_{k ≥ 2N, even} (2M/ρᵏ)(2 + 2/3) ≤ (16/3) h M ρ^{−2N}/(1 − ρ^{−2}).

M is enclosed on the ellipse for every y up to the reach at once, since |e^{iyℓ}| = e^{−y Im ℓ} is
largest at one end.  A panel whose order would be too high is halved, unless a ball around the
integrand is small enough to be an error, as where a tilt leaves nothing or beside an end that is
singular.  All integrals of a plan are of the law on its panels and nothing else; what the mass
there lacks of 1 is counted where δ is.

The interpolant at N Chebyshev points differs from the function by at most 4Mρ^{1−N}/(ρ − 1)
[Trefethen, Approximation Theory and Approximation Practice, Theorem 8.2].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from flint import acb, acb_mat, arb, arb_mat, arb_poly, ctx

from symdp.emit.enclose import between
from symdp.errors import AccuracyError
from symdp.prove.kind import Kind, Stretch
from symdp.prove.work import COARSE_BITS, spend_products

RADIUS = 3  # of the ellipse
_ARCS = 8  # of its upper half
_MOST_PANELS = 20_000  # tried on a stretch
_MOST_NODES = 100_000  # of a step
_ORDER_STEP = 4  # orders of rules come in steps, so that few are made
_BITS_STEP = 64  # of the precision of a rule
MOST_INTEGERS = 100_000  # of a stretch
LN2 = math.log(2.0)  # e-folds of a factor of two
_BLOCK = 32  # frequencies taken by one product of matrices
CHAIN = 16  # products in a row, after which e^{iyℓ} is computed anew: each adds a rounding
# What is said where there would be more of either.
TOO_MANY = (
    "the loss needs too many nodes to certify so many digits; ask for fewer digits, or compose "
    "more steps"
)


class Panels(NamedTuple):
    """Where one stretch is integrated: edges of panels, rising, or the ends of its integers.

    A double next to an end of the stretch stands for that end, exactly; a ball for itself.
    """

    stretch: int
    edges: tuple[Any, ...]


@dataclass(frozen=True)
class Asked:
    """How well an integral is wanted: ∫ e^{tℓ − scale + iyℓ} dP for |y| ≤ reach."""

    tilt: arb
    scale: float
    log_error: float  # log of the error that all panels together may make
    reach: float = 0.0


@dataclass(frozen=True)
class Nodes:
    """Σ weight·e^{zℓ} is M(z) of a restricted law but for an error that `measure` was asked for."""

    weights: tuple[arb, ...]  # of P, whatever the tilts
    losses: tuple[arb, ...]
    errors: tuple[arb, ...]  # one for each of what was asked

    def weighted(self, asked: Asked) -> list[arb]:
        """Return the weights of e^{tℓ − scale} dP."""
        if asked.tilt == 0 and asked.scale == 0:
            return list(self.weights)
        scale = arb(asked.scale)
        pairs = zip(self.weights, self.losses, strict=True)
        return [weight * (asked.tilt * loss - scale).exp() for weight, loss in pairs]

    def total(self, asked: Asked, number: int) -> arb:
        """Enclose the integral at y = 0."""
        return sum(self.weighted(asked), arb(0, self.errors[number]))


def measure(kind: Kind, panels: Sequence[Panels], moments: Sequence[Asked]) -> Nodes:
    """Return nodes of the finite losses of a step on panels."""
    rule = _NodeRule(moments)
    for mass, loss in kind.atoms():
        rule.atom(mass, loss)
    with ctx.workprec(ctx.prec + 10):
        for stretch_panels in panels:
            stretch = kind.stretches[stretch_panels.stretch]
            if not stretch.is_infinite:
                rule.add(stretch, stretch_panels.edges)
    return rule.nodes()


def single_losses(kind: Kind, panels: Sequence[Panels], moment: Asked) -> arb:
    """Bound what atoms of the finite loss add to the integral at y = 0."""
    flat = [part for part in panels if not kind.stretches[part.stretch].has_density]
    total = measure(kind, flat, [moment]).total(moment, 0)
    return arb(total.upper())


def infinite_mass(kind: Kind, panels: Sequence[Panels], log_error: float) -> arb:
    """Enclose the probability of an infinite loss on panels."""
    rule = _NodeRule([Asked(arb(0), 0.0, log_error)])
    with ctx.workprec(ctx.prec + 10):
        for stretch_panels in panels:
            stretch = kind.stretches[stretch_panels.stretch]
            if stretch.is_infinite:
                rule.add(stretch, stretch_panels.edges)
    nodes = rule.nodes()
    return sum(nodes.weights, kind.infinite_atoms()) + arb(0, nodes.errors[0])


class _NodeRule:
    """Nodes and errors as they are added."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self._asked = asked
        self._weights: list[arb] = []
        self._losses: list[arb] = []
        self._errors = [arb(0) for _ in asked]

    def nodes(self) -> Nodes:
        errors = tuple(arb(error.upper()) for error in self._errors)
        return Nodes(tuple(self._weights), tuple(self._losses), errors)

    def atom(self, mass: arb, loss: arb) -> None:
        self._weights.append(mass)
        self._losses.append(loss)

    def add(self, stretch: Stretch, edges: Sequence[Any]) -> None:
        """Add a stretch between its edges; what has one loss is one node."""
        before = len(self._weights)
        whole = stretch.whole_mass() if stretch.is_flat else None
        if whole is not None:
            self.atom(whole, stretch.loss)
            return
        if stretch.is_integer:
            first = int(edges[0])
            last = int(edges[-1])
            if last - first > MOST_INTEGERS:
                raise AccuracyError(TOO_MANY)
            for k in range(first, last + 1):
                log_p, loss = stretch.values(arb(k))
                self.atom(log_p.exp(), loss)
        else:
            self._integrate(stretch, list(map(stretch.place, edges)))
        if stretch.is_flat:
            mass = sum(self._weights[before:], arb(0))
            del self._weights[before:]
            del self._losses[before:]
            self.atom(mass, stretch.loss)

    def _integrate(self, stretch: Stretch, edges: list[arb]) -> None:
        waiting = list(itertools.pairwise(edges))[::-1]
        share = math.log(max(len(waiting), 1)) + 2.0  # e-folds: panels share what may err
        wanted = [moment.log_error - share for moment in self._asked]
        most = 3 * max(order_of(-log_error) for log_error in wanted)
        for tries in itertools.count():
            if not waiting:
                return
            if tries > _MOST_PANELS or len(self._weights) > _MOST_NODES:
                raise AccuracyError(TOO_MANY)
            left, right = waiting.pop()
            centre = (left + right) / 2
            half = (right - left) / 2
            if self._settle_panel(stretch, (left, right), (centre, half), wanted, most):
                continue
            middle = centre.mid()
            if not left < middle < right:
                raise AccuracyError(TOO_MANY)
            waiting += [(middle, right), (left, middle)]

    def _settle_panel(
        self,
        stretch: Stretch,
        ends: tuple[arb, arb],
        centre_and_half: tuple[arb, arb],
        wanted: Sequence[float],
        most: int,
    ) -> bool:
        """Add a panel's nodes, or leave it out as an error, and return whether either will do."""
        centre, half = centre_and_half
        log_bounds = self._on_ellipse(stretch, centre, half)
        orders = [math.inf] * len(wanted)
        if log_bounds is not None:
            pairs = zip(log_bounds, wanted, strict=True)
            orders = [order_of(bound - log_error) for bound, log_error in pairs]
        sizes: list[float] | None = None
        if max(orders) > most:
            sizes = self._log_sizes(stretch, *ends)
        is_little = [False] * len(wanted)
        if sizes is not None:
            pairs = zip(sizes, wanted, strict=True)
            is_little = [size + LN2 < log_error for size, log_error in pairs]
        with_little = zip(orders, is_little, strict=True)
        needed = [order for order, little in with_little if not little]
        if log_bounds is not None:
            doubled = [bound + LN2 for bound in log_bounds]
            bounds_and_errors = zip(doubled, wanted, strict=True)
            if all(bound < log_error for bound, log_error in bounds_and_errors):
                self._add_errors(doubled)
                return True
        if sizes is not None and not needed:
            self._add_errors(sizes)
            return True
        if max(needed) > most:
            return False
        assert log_bounds is not None
        order = int(max(needed))
        for number, little in enumerate(is_little):
            if little:  # the integral, and what the nodes make of it
                assert sizes is not None
                largest = arb(sizes[number]).exp().upper()
                self._errors[number] += 2 * largest
            else:
                self._errors[number] += rule_error(log_bounds[number], order)
        self._gauss(stretch, centre, half, order)
        return True

    def _add_errors(self, logs: Sequence[float]) -> None:
        for number, log_size in enumerate(logs):
            self._errors[number] += arb(log_size).exp().upper()

    def _gauss(self, stretch: Stretch, centre: arb, half: arb, order: int) -> None:
        precision = _BITS_STEP * math.ceil(ctx.prec / _BITS_STEP)
        for root, weight in gauss(order, precision):
            log_p, loss = stretch.values(centre + half * root)
            self.atom(half * weight * log_p.exp(), loss)

    def _on_ellipse(self, stretch: Stretch, centre: arb, half: arb) -> list[float] | None:
        """Return logs of h·M, None where the integrands are not known to be analytic."""
        logs = []
        with ctx.workprec(COARSE_BITS):
            around = ellipse(stretch, centre, half)
            if around is None:
                return None
            log_half = abs(half).log()
            for moment in self._asked:
                highest = max(self._log_bound(moment, *pair) for pair in around)
                logs.append(up(arb(highest) + log_half))
        return logs if all(map(math.isfinite, logs)) else None

    def _log_sizes(self, stretch: Stretch, left: arb, right: arb) -> list[float] | None:
        """Return logs of bounds of the integrals between two places from balls around them."""
        with ctx.workprec(COARSE_BITS):
            log_p, loss = stretch.values(between(left, right))
            log_width = abs(right - left).log()
            heights = [self._log_bound(moment, log_p, loss) for moment in self._asked]
            logs = [up(arb(height) + log_width) for height in heights]
        return None if any(map(math.isnan, logs)) else logs

    @staticmethod
    def _log_bound(one: Asked, log_p: Any, loss: Any) -> float:
        """Return the log of a bound of |e^{(t + iy)ℓ − scale}P| over balls."""
        value = log_p.real - one.scale
        if one.tilt != 0:  # at 0 an infinite loss is none
            value += one.tilt * loss.real
        if one.reach:
            value += one.reach * abs(loss.imag)
        return up(value)


def up(ball: arb) -> float:
    """Return a double that is no less than a ball."""
    return math.nextafter(float(ball.upper()), math.inf)


def down(ball: arb) -> float:
    """Return a double that is no more than a ball."""
    return math.nextafter(float(ball.lower()), -math.inf)


def ellipse(stretch: Stretch, centre: arb, half: arb) -> list[tuple[Any, Any]] | None:
    """Return log P and ℓ on balls that cover the upper half of the ellipse around a panel.

    The upper half says all: what is real on the axis has conjugate values below it.  None where
    they are not known to be holomorphic inside.
    """
    wide, tall = _semi_axes()
    rectangle = acb(between(-wide, wide), between(-tall, tall))
    inside = stretch.values(centre + half * rectangle, analytic=True)
    if not all(value.is_finite() for value in inside):
        return None
    arc_values = [stretch.values(centre + half * turn) for turn in _ellipse_arcs()]
    are_finite = [log_p.is_finite() and loss.is_finite() for log_p, loss in arc_values]
    if not all(are_finite):
        return None
    return arc_values


def _semi_axes() -> tuple[arb, arb]:
    """Return half the width and half the height of the ellipse."""
    radius = arb(RADIUS)
    inverse = arb(1) / RADIUS
    return (radius + inverse) / 2, (radius - inverse) / 2


@lru_cache(maxsize=1)
def _ellipse_arcs() -> tuple[acb, ...]:
    """Balls that cover the upper half of the ellipse (ρe^{iθ} + e^{−iθ}/ρ)/2."""
    with ctx.workprec(COARSE_BITS):
        step = arb.pi() / _ARCS
        angles = [between(index * step, (index + 1) * step) for index in range(_ARCS)]
        wide, tall = _semi_axes()
        arcs = [acb(wide * angle.cos(), tall * angle.sin()) for angle in angles]
        return tuple(arcs)


def order_of(excess: float) -> int:
    """Return how many nodes bring an error down by so many e-folds, with the rule's factor 6."""
    log_gain = 2 * math.log(RADIUS)
    order = max(1, math.ceil((excess + 2.0) / log_gain))
    eighth = 1 << max(order.bit_length() - 3, 0)
    step = max(_ORDER_STEP, eighth)  # few rules: roots take long
    return step * math.ceil(order / step)


def rule_error(log_bound: float, order: int) -> arb:
    """Bound the error of a rule, given the log of h·M."""
    square = arb(RADIUS) ** 2
    size = arb(log_bound).exp()
    first = arb(16) / 3 * size / square**order
    return arb((first / (1 - 1 / square)).upper())


@lru_cache(maxsize=64)
def gauss(order: int, precision: int) -> tuple[tuple[arb, arb], ...]:
    """Gauss–Legendre nodes and weights on [−1, 1]."""
    with ctx.workprec(precision):
        half = range((order + 1) // 2)
        right = [arb.legendre_p_root(order, k, weight=True) for k in half]
        paired = right[: order // 2][::-1]
        left = [(-root, weight) for root, weight in paired]
        return (*right, *left)


def walk(weights: Sequence[arb], losses: Sequence[arb], error: arb, spacing: arb) -> Iterator[acb]:
    """Yield Σ weight·e^{iyℓ} at y = 0, h, 2h, …, with its error.

    A product of complex balls may be √2 times as wide as its factors, so chains are short.
    """
    ball = acb(arb(0, error), arb(0, error))
    if not losses:  # nothing but an error
        yield from itertools.repeat(ball)
    turns = [(acb(0, spacing) * loss).exp() for loss in losses]
    rows = [[acb(1)] * len(turns), turns]
    for k in range(2, _BLOCK + 1):
        half = rows[k // 2]
        other_half = rows[k - k // 2]
        rows.append([a * b for a, b in zip(half, other_half, strict=True)])
    leap = rows.pop()
    block = acb_mat(rows)
    current: list[acb] = []
    for number in itertools.count():
        if number % CHAIN == 0:
            y = acb(0, number * _BLOCK * spacing)
            pairs = zip(weights, losses, strict=True)
            current = [weight * (y * loss).exp() for weight, loss in pairs]
        else:
            current = [a * b for a, b in zip(current, leap, strict=True)]
        spend_products(_BLOCK * len(losses))
        values = block * acb_mat([[value] for value in current])
        for row in range(_BLOCK):
            yield values[row, 0] + ball


class Samples(NamedTuple):
    """log P and ℓ at Chebyshev points of a panel, rising, and over its ellipse."""

    centre: arb
    half: arb
    values: list[tuple[arb, arb]]
    around: list[tuple[Any, Any]]


def sampled(stretch: Stretch, left: arb, right: arb, size: int) -> Samples | None:
    """Return a panel's values at so many points, None where they are not all regular."""
    centre = (left + right) / 2
    half = (right - left) / 2
    around = ellipse(stretch, centre, half)
    if around is None:
        return None
    points, _ = _chebyshev_points_and_matrix(size, ctx.prec)
    values = [stretch.values(centre + half * u) for u in points]
    are_finite = [log_p.is_finite() and loss.is_finite() for log_p, loss in values]
    if not all(are_finite):
        return None
    return Samples(centre, half, values, around)


def interpolant(values: Sequence[arb]) -> arb_poly:
    """Return the polynomial of u that has these values at Chebyshev points."""
    _, matrix = _chebyshev_points_and_matrix(len(values), ctx.prec)
    column = arb_mat([[value] for value in values])
    return arb_poly(list((matrix * column).entries()))


def interpolation_error(bound: arb, size: int) -> arb:
    """Bound what an interpolant at so many points lacks, for a bound on the ellipse."""
    decay = arb(RADIUS) ** (1 - size)
    return arb((bound * 4 * decay / (RADIUS - 1)).upper())


@lru_cache(maxsize=8)
def _chebyshev_points_and_matrix(size: int, precision: int) -> tuple[tuple[arb, ...], arb_mat]:
    """Return Chebyshev points, and what makes the powers' coefficients of interpolants."""
    with ctx.workprec(precision + 2 * size):
        falling = reversed(range(size))
        angles = [(2 * k + 1) * arb.pi() / (2 * size) for k in falling]
        fourier = []
        for j in range(size):
            weight = arb(2) if j else arb(1)
            fourier.append([weight * (j * angle).cos() / size for angle in angles])
        columns = [[0] * size for _ in range(size)]  # of powers in each Chebyshev polynomial
        previous = [1]
        current = [0, 1]
        for j in range(size):
            for k, c in enumerate(previous):
                columns[k][j] = c
            following = [0, *(2 * c for c in current)]
            for k, c in enumerate(previous):
                following[k] -= c
            previous = current
            current = following
        points = tuple(angle.cos() for angle in angles)
        return points, arb_mat(columns) * arb_mat(fourier)
