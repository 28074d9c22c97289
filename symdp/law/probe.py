"""Gauss–Legendre panels and what each must integrate: tilted densities that oscillate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symdp.capacity import BLOCK, afford
from symdp.law.outline import tilted
from symdp.law.step import Array, Index, SmoothPiece

ORDER = 16  # nodes of a panel: the usual balance of cost and accuracy
# On [−1, 1].
NODES, WEIGHTS = (a.astype(np.float64) for a in np.polynomial.legendre.leggauss(ORDER))
LARGE_LOSS = 100.0  # losses beyond this count as if they grew no more
MANY_PANELS = 1_000  # of so many that have not settled, rounding is measured
_FAR, _RESOLVED = 2.0**5, 2.0**40  # halves of an interval, that its middle is away from 0
_NO_MASS = -745.2  # an exponent whose exponential is no double above 0
_SOME = (2, 7, 8, 13)  # nodes of a panel at which rounding is measured
_ROUNDED = 4.0  # times the largest that is seen at a few nodes
REMEDY = "use the method moments, or ask for another epsilon or delta"


_LEGENDRE = np.polynomial.legendre
# From values at the nodes to the coefficients of their Legendre series, and to slopes there.
COEFFICIENTS: Array = (
    _LEGENDRE.legvander(NODES, ORDER - 1) * WEIGHTS[:, None] * (np.arange(ORDER) + 0.5)
)
DERIVATIVE = _LEGENDRE.legval(NODES, _LEGENDRE.legder(COEFFICIENTS.T)).T.astype(np.float64)


def gauss_legendre(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return nodes and weights, one row for each interval [lower, upper].

    Where an interval is short beside its distance from 0, its nodes are rounded by e_i, which the
    weights make up for: Σ w_i f(x_i + e_i) is Σ w_i f(x_i) + Σ w_i e_i f′(x_i), and f′ at the nodes
    is a matrix times the values.
    """
    half = 0.5 * (upper - lower)
    middle = 0.5 * (upper + lower)
    offset = half[:, None] * NODES
    nodes, weights = middle[:, None] + offset, half[:, None] * WEIGHTS
    far = np.flatnonzero((np.abs(middle) > _FAR * half) & (np.abs(middle) < _RESOLVED * half))
    if far.size:
        rounded = _sum_error(middle[far, None], offset[far], nodes[far])
        rounded += 0.5 * _sum_error(lower[far], upper[far], 2.0 * middle[far])[:, None]
        weights[far] += (weights[far] * rounded / half[far, None]) @ DERIVATIVE
    return nodes, weights


def _sum_error(a: Array, b: Array, total: Array) -> Array:
    """Return a + b − total exactly, of a sum that was rounded."""
    back = total - a
    return (a - (total - back)) + (b - back)


def bounded(loss: Array) -> Array:
    """Return a smooth function of the loss, about itself, that grows no more where it is large."""
    return np.asarray(loss / np.hypot(1.0, loss / LARGE_LOSS))


@dataclass
class Panels:
    """Intervals with their test integrals: (test function, tilt, interval), and rounding noise."""

    lower: Array
    upper: Array
    integrals: Array
    noise: Array

    def take(self, index: Index) -> Panels:
        """Return some of them."""
        return Panels(
            self.lower[index], self.upper[index], self.integrals[..., index], self.noise[:, index]
        )

    def join(self, other: Panels) -> Panels:
        """Return these and others."""
        return Panels(
            np.concatenate([self.lower, other.lower]),
            np.concatenate([self.upper, other.upper]),
            np.concatenate([self.integrals, other.integrals], axis=-1),
            np.concatenate([self.noise, other.noise], axis=-1),
        )


@dataclass(frozen=True)
class Probe:
    """The tilted and oscillating functions that every panel must integrate."""

    piece: SmoothPiece
    tilts: Sequence[float]
    tops: Array
    frequency: float

    def evaluate(self, lower: Array, upper: Array) -> Panels:
        """Return panels with the integrals of each tilted density: plain, by ℓ, oscillating."""
        # Plain, by ℓ, two that oscillate, and the noise; twice, for what is joined or compared.
        held = (5.0 if self.frequency > 0 else 3.0) * 2.0 * len(self.tilts) * lower.size
        afford(held, "the nodes of the loss", REMEDY)
        size = max(1, BLOCK // (ORDER * len(self.tilts)))
        blocks = [
            self._evaluated(lower[i : i + size], upper[i : i + size])
            for i in range(0, max(lower.size, 1), size)
        ]
        if len(blocks) == 1:
            return blocks[0]
        return Panels(
            lower,
            upper,
            np.concatenate([block.integrals for block in blocks], axis=-1),
            np.concatenate([block.noise for block in blocks], axis=-1),
        )

    def cancelled(self, lower: Array, upper: Array) -> Array:
        """Return the rounding of log P + tℓ, in units of what such values have, by tilt and panel.

        More than 1 where large terms cancel, as beside a narrow mode far from a wide one.
        """
        every = -(-lower.size // MANY_PANELS)
        x = gauss_legendre(lower[::every], upper[::every])[0][:, list(_SOME)].ravel()
        with np.errstate(all="ignore"):
            log_p, _, loss = self.piece.values(x)
            exact_log_p, exact_loss = self.piece.rounded(x)
            reach = np.abs(np.asarray(self.tilts))[:, None] + self.frequency
            seen = np.abs(log_p - exact_log_p) + reach * np.abs(loss - exact_loss)
            usual = 4.6e-16 * (2.0 + np.abs(log_p) + reach * np.abs(loss))
            ratio = np.nan_to_num(seen / usual, nan=1.0, posinf=1.0)
        highest = _ROUNDED * ratio.reshape(len(self.tilts), -1, len(_SOME)).max(axis=2)
        return np.asarray(np.maximum(np.repeat(highest, every, axis=1)[:, : lower.size], 1.0))

    def _evaluated(self, lower: Array, upper: Array) -> Panels:
        x, weight = gauss_legendre(lower, upper)
        places = x.ravel()
        with np.errstate(all="ignore"):
            log_p, log_q, loss = self.piece.values(places)
            rows = tilted(log_p, log_q, loss, self.tilts)
            # Where losses are wide each place matters to few of the tilts.
            seen = np.flatnonzero((rows - self.tops[:, None]).max(axis=1) > _NO_MASS)
            rows = rows[seen]
            density = np.exp(rows - self.tops[seen, None])
        loss = loss.reshape(x.shape)
        loss = np.where(np.isfinite(loss), loss, 0.0)
        values = density.reshape(seen.size, *x.shape) * weight
        tests = [np.ones(loss.shape), bounded(loss)]
        if self.frequency > 0:
            phase = np.fmod(self.frequency * loss, 2 * np.pi)
            tests += [np.cos(phase), np.sin(phase)]
        # Rounding of the exponent log P + tℓ (and of the phase yℓ) is a relative error of the
        # density that no refinement removes.
        reach = np.abs(np.asarray(self.tilts)[seen])[:, None, None] + self.frequency
        far = np.abs(loss)
        exponent = np.where(values > 0, np.abs(rows).reshape(values.shape) + reach * far, 0.0)
        # The second test function is as large as the loss, and so is its rounding.
        size = 2.3e-16 * (1.0 + np.minimum(far, LARGE_LOSS))
        noise = np.zeros((len(self.tilts), lower.size))
        noise[seen] = np.einsum("tpn,tpn,pn->tp", values, 4.0 + 2.0 * exponent, size)
        integrals = np.zeros((len(tests), len(self.tilts), lower.size))
        integrals[:, seen] = np.einsum("kpn,tpn->ktp", np.stack(tests), values)
        return Panels(lower, upper, integrals, noise)


@dataclass(frozen=True)
class Probes:
    """The functions of several steps, all of which every panel must integrate."""

    parts: Sequence[Probe]

    @property
    def tilts(self) -> list[float]:
        """The tilts of one step after the other."""
        return [tilt for part in self.parts for tilt in part.tilts]

    def evaluate(self, lower: Array, upper: Array) -> Panels:
        """Return panels with the integrals of all steps."""
        found = [part.evaluate(lower, upper) for part in self.parts]
        if len(found) == 1:
            return found[0]
        integrals = np.concatenate([panels.integrals for panels in found], axis=1)
        return Panels(lower, upper, integrals, np.concatenate([p.noise for p in found]))

    def cancelled(self, lower: Array, upper: Array) -> Array:
        """Return the same of each tilt's step: a row for every tilt."""
        return np.concatenate([part.cancelled(lower, upper) for part in self.parts])
