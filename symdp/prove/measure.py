"""Integrals of one step's law over panels, in balls: nodes for every frequency up to a reach.

On a panel c ± h the Gauss–Legendre rule with N nodes is exact for polynomials of degree 2N − 1, and
the k-th Chebyshev coefficient of a function that is holomorphic in the ellipse of radius ρ and at
most M there is at most 2M/ρᵏ, so that the rule errs by at most

    h Σ_{k ≥ 2N, even} (2M/ρᵏ)(2 + 2/3) ≤ (16/3) h M ρ^{−2N}/(1 − ρ^{−2}).

M is enclosed on the ellipse for every y up to the reach at once, since |e^{iyℓ}| = e^{−y Im ℓ} is
largest at one end.  A panel whose order would be too high is halved; one that hardly has mass is
left out, which is no error: the law is restricted to what is integrated, and what its mass lacks of
1 is counted where δ is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from flint import acb, acb_mat, arb, ctx

from symdp.emit.enclose import between
from symdp.errors import AccuracyError
from symdp.prove.kind import Kind, Stretch
from symdp.prove.work import COARSE_BITS, spend_products

RADIUS = 3  # of the ellipse
_ARCS = 8  # of its upper half
_MOST_PANELS = 20_000  # tried on a stretch
_MOST_NODES = 100_000  # of a step
_ORDER_STEP = 4  # orders of rules come in steps, so that few are made
_MOST_INTEGERS = 100_000  # of a stretch
_BLOCK = 32  # frequencies taken by one product of matrices
CHAIN = 16  # products in a row, after which e^{iyℓ} is computed anew: each adds a rounding
_TOO_MANY = (
    "the loss needs too many nodes to certify so many digits; ask for fewer digits, or compose "
    "more steps"
)


class Panels(NamedTuple):
    """Where one stretch is integrated: edges of panels, rising, or the ends of its integers.

    An edge that is the double next to an end of the stretch stands for that end, exactly.
    """

    stretch: int
    edges: tuple[float, ...]


@dataclass(frozen=True)
class Asked:
    """How well an integral is wanted: ∫ e^{tℓ − scale + iyℓ} dP for |y| ≤ reach.

    Attributes
    ----------
    log_error
        Log of the error that all panels together may make.
    """

    tilt: arb
    scale: float
    log_error: float
    reach: float = 0.0


@dataclass(frozen=True)
class Nodes:
    """Σ weight·e^{zℓ} is M(z) of a restricted law but for an error that `measure` was asked for."""

    weights: tuple[arb, ...]  # of P, whatever the tilts
    losses: tuple[arb, ...]
    errors: tuple[arb, ...]  # one for each of what was asked

    def weighted(self, asked: Asked) -> list[arb]:
        """Return the weights of e^{tℓ − scale} dP."""
        tilt, scale = asked.tilt, arb(asked.scale)
        if tilt == 0 and asked.scale == 0:
            return list(self.weights)
        return [
            w * (tilt * x - scale).exp() for w, x in zip(self.weights, self.losses, strict=True)
        ]

    def total(self, asked: Asked, number: int) -> arb:
        """Enclose the integral at y = 0."""
        return sum(self.weighted(asked), arb(0, self.errors[number]))


def measure(
    kind: Kind, panels: Sequence[Panels], asked: Sequence[Asked], log_least: float
) -> Nodes:
    """Return nodes of the finite losses of a step.

    Parameters
    ----------
    log_least
        Log of the mass of P that a panel may have and be left out.

    Raises
    ------
    AccuracyError
        If too many nodes would be needed.
    """
    rule = _Rule(asked, log_least)
    for mass, loss in kind.atoms():
        rule.atom(mass, loss)
    with ctx.workprec(ctx.prec + 10):
        for one in panels:
            stretch = kind.stretches[one.stretch]
            if not stretch.is_infinite:
                rule.add(stretch, one.edges)
    return rule.nodes()


def infinite_mass(kind: Kind, panels: Sequence[Panels], log_error: float) -> arb:
    """Enclose from below the probability of an infinite loss, what is left out counting as none."""
    rule = _Rule([Asked(arb(0), 0.0, log_error)], log_error)
    with ctx.workprec(ctx.prec + 10):
        for one in panels:
            stretch = kind.stretches[one.stretch]
            if stretch.is_infinite:
                rule.add(stretch, one.edges)
    found = rule.nodes()
    return sum(found.weights, kind.infinite_atoms()) + arb(0, found.errors[0])


class _Rule:
    """Nodes and errors as they are added."""

    def __init__(self, asked: Sequence[Asked], log_least: float) -> None:
        self._asked, self._log_least = asked, log_least
        self._weights: list[arb] = []
        self._losses: list[arb] = []
        self._errors = [arb(0) for _ in asked]

    def nodes(self) -> Nodes:
        errors = tuple(arb(error.upper()) for error in self._errors)
        return Nodes(tuple(self._weights), tuple(self._losses), errors)

    def atom(self, mass: arb, loss: arb) -> None:
        self._weights.append(mass)
        self._losses.append(loss)

    def add(self, stretch: Stretch, edges: Sequence[float]) -> None:
        """Add a stretch between its edges; what has one loss is one node."""
        before = len(self._weights)
        whole = stretch.whole_mass() if stretch.is_flat else None
        if whole is not None:
            self.atom(whole, stretch.loss)
            return
        if stretch.is_integer:
            first, last = int(edges[0]), int(edges[-1])
            if last - first > _MOST_INTEGERS:
                raise AccuracyError(_TOO_MANY)
            for k in range(first, last + 1):
                log_p, loss = stretch.values(arb(k))
                self.atom(log_p.exp(), loss)
        else:
            self._integrate(stretch, [stretch.place(edge) for edge in edges])
        if stretch.is_flat:
            mass = sum(self._weights[before:], arb(0))
            del self._weights[before:], self._losses[before:]
            self.atom(mass, stretch.loss)

    def _integrate(self, stretch: Stretch, edges: list[arb]) -> None:
        waiting = list(itertools.pairwise(edges))[::-1]
        share = math.log(max(len(waiting), 1)) + 2.0  # e-folds: panels share what may err
        wanted = [one.log_error - share for one in self._asked]
        least = self._log_least - share
        most = 1.5 * max(_order_of(-w) for w in wanted) + 2 * _ORDER_STEP
        for tries in itertools.count():
            if not waiting:
                return
            if tries > _MOST_PANELS or len(self._weights) > _MOST_NODES:
                raise AccuracyError(_TOO_MANY)
            left, right = waiting.pop()
            centre, half = (left + right) / 2, (right - left) / 2
            bounds = self._on_ellipse(stretch, centre, half)
            if bounds is not None:
                log_mass, logs = bounds
                if log_mass < least:
                    continue
                order = max(_order_of(b - w) for b, w in zip(logs, wanted, strict=True))
                if order <= most:
                    self._gauss(stretch, centre, half, order, logs)
                    continue
            elif self._is_negligible(stretch, left, right, least):
                continue
            middle = centre.mid()
            if not left < middle < right:
                raise AccuracyError(_TOO_MANY)
            waiting += [(middle, right), (left, middle)]

    def _gauss(
        self, stretch: Stretch, centre: arb, half: arb, order: int, logs: Sequence[float]
    ) -> None:
        for number, log_bound in enumerate(logs):
            self._errors[number] += _rule_error(log_bound, order)
        for root, weight in gauss(order, ctx.prec):
            log_p, loss = stretch.values(centre + half * root)
            self.atom(half * weight * log_p.exp(), loss)

    def _on_ellipse(
        self, stretch: Stretch, centre: arb, half: arb
    ) -> tuple[float, list[float]] | None:
        """Return the log of a bound of P on a panel, and logs of h·M; None where not analytic."""
        with ctx.workprec(COARSE_BITS):
            around = ellipse(stretch, centre, half)
            if around is None:
                return None
            log_half = abs(half).log()
            mass = max(float((log_p.real + log_half).upper()) for log_p, _ in around) + math.log(
                2.0
            )
            logs = []
            for one in self._asked:
                most = -math.inf
                for log_p, loss in around:
                    value = log_p.real + one.tilt * loss.real - one.scale
                    if one.reach:
                        value += one.reach * abs(loss.imag)
                    most = max(most, float(arb((value + log_half).upper())))
                logs.append(most + 1e-9 * (1.0 + abs(most)))
        if not all(math.isfinite(x) for x in (mass, *logs)):
            return None
        return mass, logs

    def _is_negligible(self, stretch: Stretch, left: arb, right: arb, least: float) -> bool:
        """Whether P is hardly there, as beside an end where it is not analytic."""
        with ctx.workprec(COARSE_BITS):
            log_p, _ = stretch.values(between(left, right))
            size = log_p + abs(right - left).log()
            return bool(size < least)


def ellipse(stretch: Stretch, centre: arb, half: arb) -> list[tuple[Any, Any]] | None:
    """Return log P and ℓ on balls that cover the upper half of the ellipse around a panel.

    The upper half says all: what is real on the axis has conjugate values below it.  None where
    they are not known to be holomorphic inside.
    """
    wide = (arb(RADIUS) + arb(1) / RADIUS) / 2
    tall = (arb(RADIUS) - arb(1) / RADIUS) / 2
    inside = centre + half * acb(between(-wide, wide), between(-tall, tall))
    if not all(value.is_finite() for value in stretch.values(inside, analytic=True)):
        return None
    found = [stretch.values(centre + half * turn) for turn in _ellipse_arcs()]
    return found if all(p.is_finite() and l.is_finite() for p, l in found) else None


@lru_cache(maxsize=1)
def _ellipse_arcs() -> tuple[acb, ...]:
    """Balls that cover the upper half of the ellipse (ρe^{iθ} + e^{−iθ}/ρ)/2."""
    balls = []
    with ctx.workprec(COARSE_BITS):
        step = arb.pi() / _ARCS
        for index in range(_ARCS):
            angle = between(index * step, (index + 1) * step)
            wide, tall = arb(RADIUS) + arb(1) / RADIUS, arb(RADIUS) - arb(1) / RADIUS
            balls.append(acb(wide / 2 * angle.cos(), tall / 2 * angle.sin()))
    return tuple(balls)


def _order_of(excess: float) -> int:
    """Return how many nodes bring an error down by so many e-folds, with the rule's factor 6."""
    order = math.ceil((excess + 2.0) / (2 * math.log(RADIUS)))
    return max(_ORDER_STEP, _ORDER_STEP * math.ceil(order / _ORDER_STEP))


def _rule_error(log_bound: float, order: int) -> arb:
    square = arb(RADIUS) ** 2
    return arb((arb(16) / 3 * arb(log_bound).exp() / square**order / (1 - 1 / square)).upper())


@lru_cache(maxsize=64)
def gauss(order: int, precision: int) -> tuple[tuple[arb, arb], ...]:
    """Gauss–Legendre nodes and weights on [−1, 1]."""
    with ctx.workprec(precision):
        return tuple(arb.legendre_p_root(order, k, weight=True) for k in range(order))


def walk(weights: Sequence[arb], losses: Sequence[arb], error: arb, spacing: arb) -> Iterator[acb]:
    """Yield Σ weight·e^{iyℓ} at y = 0, h, 2h, …, with its error.

    A product of complex balls may be √2 times as wide as its factors, so chains are short.
    """
    ball = acb(arb(0, error), arb(0, error))
    turns = [(acb(0, spacing) * loss).exp() for loss in losses]
    rows = [[acb(1)] * len(turns), turns]
    for k in range(2, _BLOCK + 1):
        halves = rows[k // 2], rows[k - k // 2]
        rows.append([a * b for a, b in zip(*halves, strict=True)])
    leap = rows.pop()
    block = acb_mat(rows)
    current: list[acb] = []
    for number in itertools.count():
        if number % CHAIN == 0:
            y = number * _BLOCK * spacing
            current = [w * (acb(0, y) * x).exp() for w, x in zip(weights, losses, strict=True)]
        else:
            current = [a * b for a, b in zip(current, leap, strict=True)]
        spend_products(_BLOCK * len(losses))
        values = block * acb_mat([[value] for value in current])
        for row in range(_BLOCK):
            yield values[row, 0] + ball
