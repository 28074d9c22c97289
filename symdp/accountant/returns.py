"""Losses on single values off any lattice: how far their characteristic function comes back.

Then |Φ(y)| has no limit: it comes back near 1 whenever all phases nearly agree, after lulls of any
length.  Nothing seen before y = T shows that it will not beyond, but how much of it there can be is
bounded.  Let Φ = Φ₁Φ₂ be the halves of the steps, so that |Φ| ≤ (|Φ₁|² + |Φ₂|²)/2.  As |Φ₁|² is
positive definite, and so is F(u) = (sin(u/2)/(u/2))² ≥ 0.919 on |u| ≤ 1, no window of 2L + 1 nodes
holds more of |Φ₁|² than

    M = (1/0.919) Σ_k F(k/L) |Φ₁(kh)|²,

the same about y = 0.  With N = 8L nodes seen on each side, what the sum lacks beyond them is at
most Σ_{j≥0} 2·4M/(8 + 2j)² = 0.568 M, whence M ≤ 2.85 Σ_{|k|≤N} F |Φ₁|².  Beyond T = Nh the terms
|Φ|/y² of both sides add up to no more than 2 Σ_j M/((8 + 2j)Lh)² = 9.1 M/T².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from symdp.accountant.angles import Angles, audible
from symdp.accountant.line import (
    ROUNDING,
    Line,
    continuous_kernel,
    first_line,
    loss_size,
    plain_sum,
    tilted_laws,
)
from symdp.errors import AccuracyError
from symdp.numeric.elementary import Complex
from symdp.numeric.law import Tilted
from symdp.numeric.line import log_characteristic
from symdp.numeric.step import Array
from symdp.numeric.total import SumLaw

_MOST_NODES = 1 << 24
_MOST_WORK = float(1 << 30)  # nodes times atoms
_SIDE = 256  # a block is a square of so many nodes each way
_WANTED = 2e-12  # what may come back beyond the last node looked at, as a share of the sum
_SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15)  # of the saddle point
_MOST_KEPT = 1 << 21
_FAINT = 1e-11
_MANY = 8.0
_SPARSE = 1.0 / 16.0  # of a block
_DEAR = 20.0  # of a value of e^{iyL} that no product of matrices gives
_SILENT = 44.0  # −log of a modulus that no sum of so many nodes makes count
_WINDOW = 2.85 * 9.1  # of the sum about y = 0, over T²


@dataclass(frozen=True)
class Returns:
    """The terms beyond the first that count, and a bound of all others, on both sides together."""

    places: Array
    values: Complex
    left_out: float


def sparing_tilt(law: SumLaw, epsilon: float, saddle: float) -> float:
    """Return the tilt, at the saddle point or below, at which the bound of the rest is smallest.

    For N nodes a distance h apart it is a multiple of e^{K(t) − tε}/(Nh)².
    """
    best = (math.inf, saddle)
    for share in _SHARES if saddle > 0 else ():
        tilt = share * saddle
        try:
            line, _ = first_line(
                law, tilted_laws(law, tilt), epsilon, tilt, continuous_kernel, math.inf, 0.0
            )
        except AccuracyError:
            continue
        height = tilt * line.distance(epsilon) + line.excess
        best = min(best, (height - 2.0 * math.log(line.step), tilt))
    return best[1]


def with_returns(line: Line, tilted: Sequence[Tilted], counts: Sequence[float], gap: float) -> Line:
    """Return a line with all terms that come back as far as it pays to look, and a bound of others.

    Parameters
    ----------
    line
        Its first nodes, of a scattered law.
    tilted, counts
        The steps at its tilt.
    gap
        The frequency of the sum, E L + shift − ε.
    """
    total = abs(plain_sum((line.values * np.exp(1j * gap * line.places)).real))
    found = _look(line, tilted, counts, total)
    places = np.concatenate([line.places, found.places])
    # The losses are rounded, which turns far values by so much times y.
    size = abs(gap) + loss_size(tilted, counts)
    turned = 2.0 * ROUNDING * size * float(np.abs(found.values) @ found.places)
    return replace(
        line,
        places=places,
        values=np.concatenate([line.values, found.values]),
        last=(found.left_out + turned) / (2.0 * places.size),
        assured=True,
    )


def _look(line: Line, tilted: Sequence[Tilted], counts: Sequence[float], total: float) -> Returns:
    """Return what comes back beyond a line's nodes, as far as a bound of the rest asks to look."""
    start, step = line.places.size, line.step
    allowed = _WANTED * total
    places: list[Array] = []
    values: list[Complex] = []
    dropped, kept = 0.0, 0
    squares: list[tuple[float, float]] = []  # of each block: its first y, and Σ |Φ₁|² of both sides
    lookout = _Lookout(tilted, counts, step)
    nearest = 1.0 / abs(line.tilt * (1.0 + line.tilt))  # |G| at y = 0
    floor = _FAINT * total / _MOST_NODES  # what is smaller is left out, and its size counted
    number = 0
    while True:
        first = number * _SIDE**2
        heard, logs = lookout.block(first)
        unheard = 2.0 * lookout.faint * (_SIDE**2 - heard.size)
        squares.append((step * first, _squares(logs, lookout.halves, first == 0) + unheard))
        y = step * (first + heard.astype(np.float64))
        log_size = np.sum([n * log.real for n, log in zip(counts, logs, strict=True)], axis=0)
        gain = continuous_kernel(np.asarray(line.tilt + 1j * y, dtype=np.complex128))
        size = np.exp(log_size) * np.abs(gain)
        size[first + heard < start] = 0.0
        here = np.flatnonzero(size > floor)
        dropped += unheard * (1.0 / (step * first) ** 2 if first else nearest)
        angle = np.sum([n * log.imag[here] for n, log in zip(counts, logs, strict=True)], axis=0)
        places.append(y[here])
        values.append(np.exp(log_size[here] + 1j * angle) * gain[here])
        reach = step * (first + _SIDE**2)
        beyond = _WINDOW * _about_zero(squares, reach) / reach**2
        kept += here.size
        number += 1
        seen = number * _SIDE**2
        if seen > start and (beyond < allowed or kept > _MOST_KEPT or lookout.is_tired(seen)):
            break
    return Returns(np.concatenate(places), np.concatenate(values), dropped + beyond)


class _Lookout:
    """log φ of each step at those nodes of a block at which Φ₁ or Φ₂ is not negligible."""

    def __init__(self, tilted: Sequence[Tilted], counts: Sequence[float], step: float) -> None:
        self._tilted, self._step = tilted, step
        self._blocks: list[_Block] = []
        self.halves = _halves(counts)
        self._angles = Angles(tilted, self.halves)
        leader = max(range(len(counts)), key=lambda i: counts[i])
        power = counts[leader]
        self._leader = leader
        self._silent = math.exp(-2.0 * _SILENT / power) if power >= _MANY else 0.0  # of |φ|²
        # Where |φ|ⁿ is e^{−_SILENT}, of |Φ₁|²; angles say as much of both halves at once.
        self.faint = math.exp(-_SILENT * (1.0 - 1.0 / power) if power >= _MANY else -_SILENT)
        self._work = 0.0

    def block(self, first: int) -> tuple[Array, list[Complex]]:
        """Return nodes, counted from the first of the block, and the logarithms there."""
        size = _SIDE**2
        heard: Array
        few = audible(self._angles, self._step, first, first + size, _SILENT)
        if few is not None and few.size <= _SPARSE * size:
            y: Array = self._step * few
            return few - first, [log_characteristic(part, y) for part in self._tilted]
        self._work += size * self._angles.atoms
        if not self._blocks:
            self._blocks = [_Block(part, self._step) for part in self._tilted]
        start = self._step * first
        lead = self._blocks[self._leader].values(start)
        heard = np.asarray(np.flatnonzero(lead.real**2 + lead.imag**2 > self._silent))
        found = [
            lead[heard] if i == self._leader else block.values(start)[heard]
            for i, block in enumerate(self._blocks)
            if heard.size
        ] or [np.empty(0, dtype=np.complex128)] * len(self._blocks)
        with np.errstate(divide="ignore"):
            return heard, [np.log(np.abs(v)) + 1j * np.angle(v) for v in found]

    def is_tired(self, seen: int) -> bool:
        """Return whether to look no further."""
        return seen > _MOST_NODES or self._work + _DEAR * self._angles.work > _MOST_WORK


class _Block:
    """Values of φ at _SIDE² nodes from any place on, as one product of matrices."""

    def __init__(self, part: Tilted, step: float) -> None:
        self._deviation, self._weight = part.deviation, part.weight
        inner = step * np.arange(_SIDE, dtype=np.float64)
        self._columns = np.exp(1j * np.multiply.outer(self._deviation, inner))
        self._rows = np.exp(1j * np.multiply.outer(_SIDE * inner, self._deviation))

    def values(self, start: float) -> Complex:
        turned = self._rows * (self._weight * np.exp(1j * start * self._deviation))
        return np.asarray((turned @ self._columns).ravel())


def _halves(counts: Sequence[float]) -> list[list[float]]:
    """Return the exponents of |Φ₁|² and of |Φ₂|²: single steps are dealt out in turn."""
    halves: list[list[float]] = [[], []]
    singles = 0
    for count in counts:
        odd = count % 2.0 == 1.0
        for side in (0, 1):
            halves[side].append(count + (1.0 if singles % 2 == side else -1.0) if odd else count)
        singles += odd
    return halves


def _squares(logs: Sequence[Complex], halves: Sequence[Sequence[float]], has_zero: bool) -> float:
    """Return the sum of (|Φ₁|² + |Φ₂|²)/2 over a block and its mirror image."""
    total = 0.0
    for exponents in halves:
        listed = [m * log.real for m, log in zip(exponents, logs, strict=True) if m > 0]
        power = np.exp(np.sum(listed, axis=0)) if listed else np.ones(logs[0].size)
        total += float(power.sum()) - (0.5 * float(power[0]) if has_zero else 0.0)  # at y = 0
    return total


def _about_zero(squares: Sequence[tuple[float, float]], reach: float) -> float:
    """Bound Σ F(k/L)|Φ₁|², with F(u) ≤ min(1, 4/u²) and L an eighth of all nodes."""
    length = reach / 8.0
    return math.fsum(
        size * min(1.0, 4.0 * (length / first) ** 2 if first else 1.0) for first, size in squares
    )
