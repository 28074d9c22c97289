r"""ε of n equal steps of listed masses, in doubles, and its gradient in every mass.

By the envelope theorem no derivative of the loss is needed. With S the sum of n − 1 losses,

.. math::

    dδ = n \sum_i (dP_i A_i - e^ε dQ_i B_i), \quad
    A_i = P^{n-1}(S > ε - ℓ_i), \quad B_i = Q^{n-1}(S > ε - ℓ_i),

and dε = dδ / (e^ε Qⁿ(S > ε)). The law of S comes from one Fourier transform of the losses under a
tilted law P e^{tℓ}, so that small δ are known to the digits that a search needs. It proves nothing,
and no answer quotes it: it tells a search where to go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from symdp.tolerances import LARGEST_EXPONENT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_CELLS = 1 << 15  # of the circle of losses
_REACH = 14.0  # standard deviations of the tilted sum to either side
_TILTS = np.exp(np.linspace(math.log(1e-2), math.log(1e4), 80))
_SPARE = 7.0  # log of the tilted mass over δ: rounding is then 1e-13 of δ
_BISECTIONS = 45  # of an ε of two steps
_COUNTED = 1e-18  # of the tilted mass: less of it widens no circle
_LEAST_WIDTH = 1e-3  # of the circle, relative to the largest loss: a tilted law may be one atom


@dataclass(frozen=True)
class Slope:
    """ε at a δ, and its derivatives in the masses of P and of Q."""

    epsilon: float
    by_p: Array
    by_q: Array


def epsilon_slope(p: Array, q: Array, count: int, delta: float) -> Slope | None:
    """Return ε of so many steps of (P, Q), None where infinite losses alone exceed δ."""
    shared = (p > 0.0) & (q > 0.0)
    never = (p > 0.0) & ~shared
    finite = 1.0 - float(p[never].sum())
    infinite = -math.expm1(count * math.log(finite)) if finite < 1.0 else 0.0
    if infinite >= delta:
        return None
    loss = np.log(p[shared]) - np.log(q[shared])
    if count == 2:
        tilted: _Two | _Tilted = _Two(p[shared], loss)
    else:
        tilted = _Tilted(p[shared], loss, count, delta)
    epsilon = tilted.epsilon(delta - infinite)
    if epsilon is None:
        return None
    factor = count * finite ** (count - 1)
    by_p = np.zeros_like(p)
    by_q = np.zeros_like(q)
    above_p, above_q = tilted.above(epsilon - loss)
    slope = tilted.slope(epsilon)
    by_p[shared] = count * above_p / slope
    by_p[never] = factor / slope
    by_q[shared] = -count * math.exp(epsilon) * above_q / slope
    return Slope(epsilon, by_p, by_q)


class _Two:
    """The law of two losses, each pair of them: no grid, whose width a search would use."""

    def __init__(self, p: Array, loss: Array) -> None:
        order = np.argsort(loss)
        self.loss = loss[order]
        self.p = p[order]
        self.q = self.p * np.exp(-self.loss)
        self.largest = 2.0 * float(self.loss[-1])
        self.upper_p = np.append(np.cumsum(self.p[::-1])[::-1], 0.0)
        self.upper_q = np.append(np.cumsum(self.q[::-1])[::-1], 0.0)

    def above(self, places: Array) -> tuple[Array, Array]:
        """Return the masses of one loss above places, under P and under Q."""
        index = np.searchsorted(self.loss, places, side="right")
        return self.upper_p[index], self.upper_q[index]

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return δ, and e^ε Q²(S > ε), by which it falls."""
        above_p, above_q = self.above(epsilon - self.loss)
        falls = math.exp(epsilon) * float(self.q @ above_q)
        return float(self.p @ above_p) - falls, falls

    def epsilon(self, delta: float) -> float | None:
        """Return ε ≥ 0 at δ."""
        low = 0.0
        high = self.largest
        if self.delta(low)[0] <= delta:
            return 0.0
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            if self.delta(middle)[0] > delta:
                low = middle
            else:
                high = middle
        return high

    def slope(self, epsilon: float) -> float:
        """Return e^ε Q²(S > ε)."""
        return max(self.delta(epsilon)[1], 1e-300)


class _Tilted:
    """The law of n losses and that of n − 1, on a circle of losses, tilted."""

    def __init__(self, p: Array, loss: Array, count: int, delta: float) -> None:
        self.count = count
        if count == 1:
            order = np.argsort(loss)
            self.losses = loss[order]
            self.under_p = _above(p[order])
            self.under_q = _above(p[order] * np.exp(-loss[order]))
            return
        self.tilt = _tilt(p, loss, count, delta)
        weights = p * np.exp(self.tilt * (loss - loss.max()))
        total = float(weights.sum())
        self.log_moment = math.log(total) + self.tilt * float(loss.max())
        weights = weights / total
        mean = float(weights @ loss)
        deviation = math.sqrt(max(float(weights @ (loss - mean) ** 2), 1e-300))
        counted = weights > _COUNTED
        farthest = float(np.abs(loss[counted] - mean).max())
        half_width = _REACH * math.sqrt(count) * deviation + 2.0 * farthest
        half_width = max(half_width, _LEAST_WIDTH * count * float(np.abs(loss).max()))
        self.step = 2.0 * half_width / _CELLS
        cells = _on_circle(loss[counted] - mean, weights[counted], self.step)
        transform = np.fft.rfft(cells)
        middle = _CELLS // 2
        offsets = (np.arange(_CELLS) - middle) * self.step
        self.losses = count * mean + offsets
        self.masses = np.roll(np.fft.irfft(transform**count, _CELLS), middle)
        self.fewer_losses = (count - 1) * mean + offsets
        fewer = np.fft.irfft(transform ** (count - 1), _CELLS)
        self.fewer = np.roll(fewer, middle)
        self.under_p = self._summed(self.masses, self.losses, count, 0.0)
        self.under_q = self._summed(self.masses, self.losses, count, 1.0)

    def _summed(self, masses: Array, losses: Array, count: int, power: float) -> Array:
        """Return the mass above each place of the law with density e^{-(t + power) s} Mⁿ."""
        exponent = count * self.log_moment - (self.tilt + power) * losses
        terms = masses * np.exp(np.minimum(exponent, LARGEST_EXPONENT))
        return _above(terms)

    def epsilon(self, delta: float) -> float | None:
        """Return ε ≥ 0 at δ, None beyond doubles: between two places δ(ε) is a line in e^ε."""
        deltas = self.under_p - np.exp(np.minimum(self.losses, LARGEST_EXPONENT)) * self.under_q
        above = np.nonzero(deltas > delta)[0]
        if not above.size:
            return 0.0  # δ is reached at any ε
        last = above[-1]
        excess = max(float(self.under_p[last]) - delta, 1e-300)
        if not (self.under_q[last] > 0.0 and self.losses[last] < LARGEST_EXPONENT):
            return None
        return max(math.log(excess / float(self.under_q[last])), 0.0)

    def slope(self, epsilon: float) -> float:
        """Return e^ε Qⁿ(S > ε), by which δ falls with ε."""
        mass = np.interp(epsilon, self.losses, self.under_q)
        return max(math.exp(epsilon) * float(mass), 1e-300)

    def above(self, places: Array) -> tuple[Array, Array]:
        """Return the masses of n − 1 losses above places, under P and under Q."""
        if self.count == 1:
            is_above = np.where(places < 0.0, 1.0, 0.0)
            return is_above, is_above
        sums = []
        for power in (0.0, 1.0):
            table = self._summed(self.fewer, self.fewer_losses, self.count - 1, power)
            between = np.interp(places, self.fewer_losses + 0.5 * self.step, table)
            sums.append(np.clip(between, 0.0, 1.0))
        return sums[0], sums[1]


def _above(terms: Array) -> Array:
    """Return the sum of all later terms, beside each."""
    sums = np.cumsum(terms[::-1])[::-1]
    return np.concatenate([sums[1:], [0.0]])


def _tilt(p: Array, loss: Array, count: int, delta: float) -> float:
    """Return the least tilt at which the rounding of doubles is far below δ.

    ε is about where Chernoff's bound is least; there the tilted mass stands for at most
    Mⁿe^{-tε}, and its rounding for 1e-16 of that.
    """
    log_delta = math.log(delta)
    exponents = np.multiply.outer(_TILTS, loss)
    highest = exponents.max(axis=1)
    scaled = np.exp(exponents - highest[:, None])
    cgf = count * (np.log(scaled @ p) + highest)
    bounds = (cgf - log_delta) / _TILTS
    heights = cgf - _TILTS * bounds.min()
    is_fine = heights <= log_delta + _SPARE
    least = int(np.argmax(is_fine))
    return float(_TILTS[least])


def _on_circle(loss: Array, weights: Array, step: float) -> Array:
    """Return masses on a circular grid that keep three moments of each loss."""
    position = loss / step
    index = np.floor(position).astype(int)
    r = position - index
    shares = (
        -r * (r - 1.0) * (r - 2.0) / 6.0,
        (r + 1.0) * (r - 1.0) * (r - 2.0) / 2.0,
        -(r + 1.0) * r * (r - 2.0) / 2.0,
        (r + 1.0) * r * (r - 1.0) / 6.0,
    )
    cells = np.zeros(_CELLS)
    for offset, share in enumerate(shares, start=-1):
        cells += np.bincount((index + offset) % _CELLS, weights * share, _CELLS)
    return cells
