"""δ of a composition from its densities alone, in NumPy: nodes, a fine lattice of losses, an FFT.

The densities are taken at the nodes of the double exponential rule, on each stretch between their
kinks; the mass of a node goes to the four nearest lattice points, so that moments up to the third
stay (Lagrange); the n-fold sum is one power of the transform. Two lattices tell how far off it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from strangers.densities import Stranger

    Array = NDArray[np.float64]

_NODES = 200_000  # of a stretch
_INTEGERS = 60_000  # on either side of 0
_LATTICE = 2**19  # points of the finer lattice, of the other one fewer
_TILTS = np.geomspace(1e-3, 1e3, 40)
_LEAST = 1e-25  # mass of a node that is kept
_NOTHING = 1e-15  # of mass that a sum has beyond the lattice
_ROUNDING = 1e-12  # of δ
_OF_A_MASS = 1e-14  # of what each step holds


@dataclass(frozen=True)
class Loss:
    """The law of one step's loss: masses at losses, and the mass at infinity."""

    losses: Array
    masses: Array
    infinite: float
    is_discrete: bool = False
    lost: float = 0.0  # mass next to ends at which the density grows, where doubles do not reach

    def cgf(self, tilts: Array) -> Array:
        """Return log E[e^{tℓ}; ℓ < ∞] for several tilts."""
        logs, rows = np.log(self.masses), []
        for t in tilts:
            row = logs + t * self.losses
            rows.append(row.max() + np.log(np.exp(row - row.max()).sum()))
        return np.asarray(rows)

    def delta(self, count: int, epsilon: float, finer: int = 1) -> tuple[float, float]:
        """Return δ(ε) of a composition, and how far off it may be, on lattices so much finer."""
        if count == 1:
            gain = self.masses * -np.expm1(np.minimum(epsilon - self.losses, 600.0))
            above = np.maximum(gain, 0.0)
            if self.is_discrete:
                return float(above.sum()) + self.infinite, _ROUNDING
            part = above.sum() + _kinks(gain)
            rough = 2.0 * above[::2].sum() + _kinks(gain[::2]) * 2.0  # half of the nodes
            return float(part) + self.infinite, abs(part - rough) + _ROUNDING + self.lost
        few = self._delta(count, epsilon, finer * _LATTICE * 2 // 3)
        many = self._delta(count, epsilon, finer * _LATTICE)
        infinite = -np.expm1(count * np.log1p(-self.infinite)) if self.infinite < 1 else 1.0
        rounding = _ROUNDING + count * (_OF_A_MASS + self.lost)
        return float(infinite + many), 4.0 * abs(many - few) + rounding

    def between(self, count: int, epsilon: float) -> tuple[float, float]:
        """Return δ of the losses rounded down and up to a lattice: it lies between them."""
        rounded = [self._delta(count, epsilon, _LATTICE, end) for end in (np.floor, np.ceil)]
        infinite = -np.expm1(count * np.log1p(-self.infinite)) if self.infinite < 1 else 1.0
        low, high = (float(infinite + delta) for delta in rounded)
        rounding = _ROUNDING + count * (_OF_A_MASS + self.lost)
        return low - rounding, high + rounding

    @cached_property
    def _rates(self) -> tuple[Array, Array]:
        return self.cgf(_TILTS), self.cgf(-_TILTS)

    def _window(self, count: int) -> tuple[float, float]:
        """Return the ends beyond which a sum has next to no mass (Chernoff), or is not found."""
        log = -np.log(_NOTHING)
        up, down = ((count * cgf + log) / _TILTS for cgf in self._rates)
        high = min(float(up.min()), count * float(self.losses.max()))
        low = max(-float(down.min()), count * float(self.losses.min()))
        room = 1e-3 * (high - low) + 1e-9
        return low - room, high + room

    def _delta(
        self,
        count: int,
        epsilon: float,
        points: int,
        rounded: Callable[[Array], Array] | None = None,
    ) -> float:
        sums, masses = self.summed(count, points, rounded)
        gain = sums - epsilon
        above = gain > 0
        return float(masses[above] @ -np.expm1(-gain[above]))

    def summed(
        self, count: int, points: int, rounded: Callable[[Array], Array] | None = None
    ) -> tuple[Array, Array]:
        """Return sums of losses on a lattice, and their masses."""
        low, high = self._window(count)
        spacing = (high - low) / points
        place = self.losses / spacing
        floor = np.floor(place) if rounded is None else rounded(place)
        t = place - floor
        one = ((0, np.ones_like(t)),)
        weights = (
            one
            if rounded
            else (
                (-1, -t * (t - 1) * (t - 2) / 6),
                (0, (t + 1) * (t - 1) * (t - 2) / 2),
                (1, -(t + 1) * t * (t - 2) / 2),
                (2, (t + 1) * t * (t - 1) / 6),
            )
        )
        lattice = np.zeros(points)
        for step, weight in weights:
            index = np.mod(floor + step, points).astype(np.int64)
            lattice += np.bincount(index, self.masses * weight, points)
        summed = np.fft.irfft(np.fft.rfft(lattice) ** count, points)
        first = np.ceil(low / spacing)
        return (first + np.mod(np.arange(points) - first, points)) * spacing, summed


def _kinks(gain: Array) -> float:
    """Return what a rule over max(g, 0) has too little or much next to the zeros of g."""
    one, two = gain[:-1], gain[1:]
    change = one * two < 0
    return float(np.sum(one[change] * two[change] / abs(one[change] - two[change])) / 2)


def pair_of(stranger: Stranger) -> tuple[Loss, ...]:
    """Return the losses of a mechanism in both directions, its shift being the sensitivity.

    Sampled, a record that lowers the output has two of its own.
    """
    raised = _raised(stranger, 0.0 if stranger.other else float(Fraction(stranger.sensitivity)))
    if not stranger.rate or stranger.other:
        return raised
    return (*raised, *_raised(stranger, -float(Fraction(stranger.sensitivity))))


def _raised(stranger: Stranger, moved: float) -> tuple[Loss, ...]:
    rate = float(Fraction(stranger.rate)) if stranger.rate else 1.0
    if isinstance(stranger.support, str):
        is_two_sided = stranger.support == "integers"
        x, weights = _integers(-_INTEGERS if is_two_sided else min(0, int(moved)))
        low, high = (-np.inf if is_two_sided else 0.0), np.inf
        total = None
    else:
        low, high = (float(str(end).replace("oo", "inf")) for end in stranger.support)
        inside = {*stranger.kinks, 0.0} if low < 0 < high else set(stranger.kinks)
        own = {low, high, *inside}
        x, weights = _nodes(own | {end + moved for end in own if np.isfinite(end)})
        total = _nodes(own)

    def density(at: Array, same: Callable[[Array], Array] = stranger.same) -> Array:
        held = (at >= low) & (at <= high)
        middle = 0.5 * (low + high) if np.isfinite(low + high) else 1.0 + max(low, -1.0)
        with np.errstate(all="ignore"):
            value = same(np.where(held, at, middle))
        return np.where(held & np.isfinite(value), value, 0.0)

    at, weight = (x, weights) if total is None else total
    other = stranger.other or stranger.same
    q = density(x, other) * weights / float(density(at, other) @ weight)
    p = (1 - rate) * q + rate * density(x - moved) * weights / float(density(at) @ weight)
    is_discrete = total is None
    lost = 0.0
    if not is_discrete:
        whole = float(min(density(at) @ weight, density(at, other) @ weight))
        lost = 2 * _lost([low, high], density) / whole
    both = _loss(p, q, is_discrete), _loss(q, p, is_discrete)
    return tuple(replace(loss, lost=lost) for loss in both)


def _lost(ends: list[float], density: Callable[[Array], Array]) -> float:
    """Return about the mass between finite ends and the doubles next to them.

    A density that grows like the root of the distance there has twice its value times the width.
    """
    total = 0.0
    for end in ends:
        if np.isfinite(end) and end != 0.0:
            ulp = float(np.spacing(end))
            beside = density(np.asarray([end - ulp, end + ulp]))
            total += 4.0 * ulp * float(beside.max())
    return total


def _integers(first: int) -> tuple[Array, Array]:
    """Return integers and weights; beyond the last ones sums are integrals, octave by octave."""
    near = np.arange(first, _INTEGERS + 1, dtype=float)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    begin = (_INTEGERS + 0.5) * np.exp2(np.arange(60.0))[:, None]
    far, share = (begin * (1.5 + 0.5 * nodes)).ravel(), (0.5 * begin * weights).ravel()
    parts = [(near, np.ones_like(near)), (far, share)]
    if first == -_INTEGERS:
        parts.append((-far, share))
    x, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    return x, weight


def _loss(p: Array, q: Array, is_discrete: bool) -> Loss:
    held = (p > _LEAST) & (q > 0)
    with np.errstate(all="ignore"):
        losses = np.log(p[held]) - np.log(q[held])
    return Loss(losses, p[held], float(p[(p > 0) & (q == 0)].sum()), is_discrete)


def _nodes(edges: set[float]) -> tuple[Array, Array]:
    """Return nodes and weights of the double exponential rules between edges."""
    ends = sorted(edges)
    found = [_stretch(low, high) for low, high in pairwise(ends)]
    return np.concatenate([x for x, _ in found]), np.concatenate([w for _, w in found])


def _stretch(low: float, high: float) -> tuple[Array, Array]:
    u = np.linspace(-4.5, 4.5, _NODES + 1)
    step = u[1] - u[0]
    power = 0.5 * np.pi * np.sinh(u)
    speed = 0.5 * np.pi * np.cosh(u)
    if np.isfinite(low) and np.isfinite(high):
        share = 1 / (1 + np.exp(-2 * power))  # of the way from the lower end
        rest = 1 / (1 + np.exp(2 * power))
        x = np.where(share < 0.5, low + (high - low) * share, high - (high - low) * rest)
        weight = (high - low) * 2 * speed * share * rest
    else:
        distance = np.exp(power)
        x = low + distance if np.isfinite(low) else high - distance
        weight = distance * speed
    keep = (x > low) & (x < high)
    return x[keep], weight[keep] * step
