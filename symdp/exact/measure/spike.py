"""A density that is infinite at one end like 1/√u: a smooth density of v = √u instead."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from symdp.exact.measure.density import NODES, WEIGHTS, LogDensity, log_integrals, mass_and_mean
from symdp.law.step import Array

_SMALLEST = 1e-60  # distance from a place where the density is infinite
_AROUND = np.asarray([0.5, 1.5])  # times the distance: where an integral over t takes over
_ANGLES = np.arange(0.0, 80.0)  # of a hyperbola, over which f changes like e^η


@dataclass(frozen=True)
class Spike:
    """The law of base + side·v², where v has the density `root` between its first and last edge.

    As with other densities, all weights are those of the law tilted by a common tilt.
    """

    base: float
    side: float
    root: LogDensity

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value."""
        near, far = (self.base + self.side * float(v) ** 2 for v in self.root.edges[[0, -1]])
        return (near, far) if self.side > 0 else (far, near)

    @property
    def fine_edges(self) -> Array:
        """Roots between which log f moves by no more than a rule of 16 points resolves."""
        return self.root.fine_edges

    @property
    def size(self) -> float:
        """The largest mean of |log f| over a panel."""
        return self.root.size

    def log_at_top(self) -> float:
        """Return the log of the density at the largest value."""
        v = self.root.edges[-1:] if self.side > 0 else self.root.edges[:1]
        with np.errstate(divide="ignore"):
            return float((self.root(v) - np.log(2.0 * v))[0])

    def noise_at(self, s: Array) -> Array:
        """Return the noise of log f where it is known, and 0 elsewhere."""
        return self.root.noise_at(np.sqrt(np.maximum(self.side * (s - self.base), 0.0)))

    def moved(self, distance: float) -> Spike:
        """Return the law of s + distance."""
        return replace(self, base=self.base + distance)

    def scaled(self, constant: float) -> Spike:
        """Return the density times e^constant."""
        return replace(self, root=self.root.scaled(constant))

    def rule(self, tilt: float, low: float, high: float) -> tuple[Array, Array]:
        """Return places and logs of weights that integrate f(s) e^{−tilt·s} from `low` to `high`.

        Other factors may move by a few units over a length of 1.
        """
        least, most = sorted(
            math.sqrt(min(max(self.side * (s - self.base), 0.0), 1e300)) for s in (low, high)
        )
        first, last = max(least, float(self.root.edges[0])), min(most, float(self.root.edges[-1]))
        if not first < last:
            return np.empty(0), np.empty(0)
        edges = np.unique(self.root.cells(0.0, first, last, max(abs(tilt), 1.0)))
        half = 0.5 * np.diff(edges)
        v = ((0.5 * (edges[1:] + edges[:-1]))[:, None] + half[:, None] * NODES).ravel()
        s = self.base + self.side * v * v
        return s, self.root(v) - tilt * s + np.log((half[:, None] * WEIGHTS).ravel())

    def mass_and_mean(self, tilt: float) -> tuple[float, float]:
        """Return log ∫ f(s) e^{−tilt·s} ds, and the mean of s under that."""
        return mass_and_mean(*self.rule(tilt, -np.inf, np.inf))


def with_density(spike: Spike, density: LogDensity, s: Array) -> Array:
    """Return the log of the density of the sum of both at every s.

    Around the place where the density changes fastest the integral is over its own variable t, as
    there t = s − base − side·v² would be rounded too coarsely, and over v elsewhere.
    """
    place = density.narrowest
    own, other = spike.root.fine_edges, density.fine_edges

    def distance(s: Array) -> Array:
        return np.maximum(spike.side * (s - spike.base - place), 0.0)

    def cuts_of_v(s: Array) -> Array:
        w = np.sqrt(np.maximum(spike.side * (s - spike.base - other), 0.0))
        around = np.sqrt(distance(s) * _AROUND)
        return np.concatenate([w, around, np.broadcast_to(own, (s.size, own.size))], axis=1)

    def log_over_v(v: Array, s: Array) -> Array:
        value = spike.root(v) + density(s - spike.base - spike.side * v * v)
        return np.where(np.abs(v * v - distance(s)) < 0.5 * distance(s), -np.inf, value)

    def cuts_of_t(s: Array) -> Array:
        w = s - spike.base - spike.side * own**2
        every = np.concatenate([w, np.broadcast_to(other, (s.size, other.size))], axis=1)
        half = 0.5 * distance(s)
        return np.asarray(np.clip(every, place - half, place + half))

    def log_over_t(t: Array, s: Array) -> Array:
        square = np.maximum(distance(s) - spike.side * (t - place), 0.0)
        with np.errstate(divide="ignore"):
            v = np.sqrt(square)
            return np.where(square > 0, spike.root(v) - np.log(2.0 * v) + density(t), -np.inf)

    length = own.size + other.size
    return np.logaddexp(
        log_integrals(cuts_of_v, log_over_v, s, length),
        log_integrals(cuts_of_t, log_over_t, s, length),
    )


def convolve_spikes(first: Spike, second: Spike, s: Array) -> Array:
    """Return the log of the density of the sum of both at every s.

    What is left of a double integral is one over an angle: of a circle where both rise or both
    fall, of a hyperbola where v₁² − v₂² is given.
    """
    w = first.side * (s - first.base - second.base)
    if first.side == second.side:
        found = _on_circle(first.root, second.root, np.sqrt(np.maximum(w, _SMALLEST)))
        return np.where(w > 0, found, -np.inf)
    radius = np.sqrt(np.maximum(np.abs(w), _SMALLEST))
    found = _on_hyperbola(first.root, second.root, radius)
    return np.where(w > 0, found, _on_hyperbola(second.root, first.root, radius))


def _on_circle(first: LogDensity, second: LogDensity, radius: Array) -> Array:
    """Return log ½∫ f(r cos θ) g(r sin θ) dθ."""
    a, b = first.fine_edges, second.fine_edges

    def cuts(r: Array) -> Array:
        one, other = np.arccos(np.minimum(a / r, 1.0)), np.arcsin(np.minimum(b / r, 1.0))
        low, high = np.maximum(one[:, -1:], other[:, :1]), np.minimum(one[:, :1], other[:, -1:])
        return np.asarray(np.clip(np.concatenate([one, other], axis=1), low, np.maximum(low, high)))

    def log_product(angle: Array, r: Array) -> Array:
        return first(r * np.cos(angle)) + second(r * np.sin(angle))

    return log_integrals(cuts, log_product, radius, a.size + b.size) - math.log(2.0)


def _on_hyperbola(first: LogDensity, second: LogDensity, radius: Array) -> Array:
    """Return log ½∫ f(r cosh η) g(r sinh η) dη."""
    a, b = first.fine_edges, second.fine_edges

    def cuts(r: Array) -> Array:
        one, other = np.arccosh(np.maximum(a / r, 1.0)), np.arcsinh(b / r)
        low, high = np.maximum(one[:, :1], other[:, :1]), np.minimum(one[:, -1:], other[:, -1:])
        between = np.broadcast_to(_ANGLES, (r.size, _ANGLES.size))
        every = np.concatenate([one, other, between], axis=1)
        return np.asarray(np.clip(every, low, np.maximum(low, high)))

    def log_product(angle: Array, r: Array) -> Array:
        return first(r * np.cosh(angle)) + second(r * np.sinh(angle))

    return log_integrals(cuts, log_product, radius, a.size + b.size + _ANGLES.size) - math.log(2.0)
