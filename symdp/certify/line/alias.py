"""The step of the trapezoidal rule, with a proved bound of what the rule adds.

By Poisson summation the rule with step h on Re z = t > 0 returns, with a = 2π/h,

    δ(ε) + Σ_{j≥1} [e^{jat} δ(ε + ja) + e^{−jat} δ(ε − ja)],

and every term is bounded by δ(ε′) ≤ e^{K(s)−sε′} s^s/(1+s)^{1+s} for any s ≥ 0 [SPA (43)]: with
s > t on the right and s < t on the left both sums are geometric.  For −1 < t < 0 it returns −g(ε)
less such sums of g(ε) = E min(1, e^{ε−L}), and g(ε′) ≤ e^{K(s)−sε′} for −1 ≤ s ≤ 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sympy as sp
from flint import arb

from symdp.certify.estimate import Steps as Pairs
from symdp.certify.estimate import exponent
from symdp.certify.line.step import TiltedStep
from symdp.emit.exact import real_ball
from symdp.errors import AccuracyError
from symdp.law.elementary import log_payoff

Steps = Sequence[tuple[TiltedStep, int]]

# Distances of trial tilts, in widths of the saddle; the cheapest is taken.
_FACTORS = (0.25, 0.4, 0.6, 0.8, 1.0, 1.3, 1.8)
_SHARED = 1.3  # widths on either side that one set of nodes serves
_CLOSER = 0.5  # a trial tilt moves in by so much where K was not enclosed
_MOST_TRIES = 12  # after which 2^(−12) of the width is left
_GRID = range(-8, 9)  # half octaves of the saddle point
# Tilts, of the saddle point: above it the characteristic function falls late.
_LOWEST, _HIGHEST = 1 / 8, 1.5


@dataclass(frozen=True)
class Anchor:
    """A tilt s ≠ t with an upper bound of log δ(ε′) + sε′, or of log g(ε′) + sε′, for every ε′."""

    tilt: sp.Rational
    log_bound: arb

    def added(self, tilt: sp.Rational, epsilon: arb, period: arb) -> arb:
        """Bound Σ_{j≥1} e^{±jat} δ(ε ± ja) for the period a, on the side of this anchor."""
        distance = abs(real_ball(self.tilt) - real_ball(tilt))
        ratio = (-distance * period).exp()
        top = (self.log_bound - real_ball(self.tilt) * epsilon).exp()
        return (top * ratio / (1 - ratio)).upper()

    def period(self, tilt: sp.Rational, epsilon: arb, log_goal: float) -> float:
        """Return about the period from which the sum lies below a goal."""
        distance = abs(float(self.tilt - tilt))
        excess = float((self.log_bound - real_ball(self.tilt) * epsilon).mid()) - log_goal
        period = max(excess, 0.0) / distance
        return period - math.log1p(-math.exp(-max(distance * period, 0.7))) / distance


def log_largest_payoff(s: arb) -> arb:
    """Return log of max_v e^{−sv}(1 − e^{−v})⁺ = s^s/(1 + s)^{1+s}, s > 0."""
    return s * s.log() - (1 + s) * (1 + s).log()


def anchor(steps: Steps, tilt: sp.Rational) -> Anchor:
    """Return the proved anchor at a tilt s ≥ −1 in the domain of K."""
    s = real_ball(tilt)
    total = sum((n * step.parts.cgf(tilt) for step, n in steps), arb(0))
    if tilt > 0:
        total += log_largest_payoff(s)
    return Anchor(tilt, arb(total.upper()))


def choose(
    steps: Steps, tilt: sp.Rational, epsilon: arb, log_goal: float, width: float
) -> tuple[float, tuple[Anchor, Anchor]]:
    """Return a period a = 2π/h, not rounded, and anchors on both sides of the tilt.

    Parameters
    ----------
    log_goal : float
        Log of what the rule may add.
    width : float
        About how far from t the best anchors lie.

    Raises
    ------
    AccuracyError
        If K is not enclosed at any tilt on one side of t.
    """
    lowest, highest = (sp.S.Zero, sp.oo) if tilt > 0 else (sp.S.NegativeOne, sp.S.Zero)

    def beside(distance: float, way: int) -> sp.Rational:
        room = float(tilt - lowest if way < 0 else highest - tilt)
        return min(max(tilt + way * _short(min(distance, room)), lowest), highest)

    for step, _ in steps:
        step.parts.share(tilt, beside(_SHARED * width, -1), beside(_SHARED * width, 1))
    above, below = (
        _best(
            steps, tilt, epsilon, log_goal,
            sorted({beside(f * width, way) for f in _FACTORS}, reverse=way < 0),
        )
        for way in (1, -1)
    )  # fmt: skip
    tries = 0
    while above is None:
        width, tries = width * _CLOSER, tries + 1
        if tries > _MOST_TRIES:
            raise AccuracyError("the cumulant generating function was not enclosed beyond the tilt")
        above = _best(steps, tilt, epsilon, log_goal, [beside(width, 1)])
    if below is None:
        raise AccuracyError("the cumulant generating function is not enclosed below the tilt")
    least = below.period(tilt, epsilon, log_goal)
    # Where K rises steeply soon beyond the tilt, as before a second hump, closer ones serve.
    closer = min(_FACTORS)
    while above.period(tilt, epsilon, log_goal) > least and tries < _MOST_TRIES:
        closer, tries = closer * _CLOSER, tries + 1
        nearer = _best(steps, tilt, epsilon, log_goal, [beside(closer * width, 1)])
        if nearer is None or not (
            nearer.period(tilt, epsilon, log_goal) < above.period(tilt, epsilon, log_goal)
        ):
            break
        above = nearer
    return max(above.period(tilt, epsilon, log_goal), least), (above, below)


class Height(NamedTuple):
    """About K(s) − sε at a tilt s > 0 of the composition."""

    tilt: float
    log_value: float


def heights(steps: Pairs, epsilon: float, tilt: float) -> tuple[Height, ...]:
    """Return about K(s) − sε on both sides of a tilt, as far as K is finite; they prove nothing."""
    found = []
    for power in _GRID:
        s = tilt * 2.0 ** (power / 2)
        value = exponent(steps, epsilon, s)
        if value is None:
            break
        found.append(Height(s, value))
    return tuple(found)


def cheapest_tilt(profile: Sequence[Height], saddle: float, log_goal: float) -> float:
    """Return the tilt at which the shortest period will do: neither side needs a longer one."""

    def period(tilt: float, others: Iterable[Height]) -> float:
        sizes = [(log_value + float(log_payoff(s)), s) for s, log_value in others]
        return min(
            (max(size - log_goal, 0.0) / abs(s - tilt) for size, s in sizes), default=math.inf
        )

    best = (math.inf, saddle)
    for tilt, _ in profile:
        if saddle * _LOWEST <= tilt <= saddle * _HIGHEST:
            below = [Height(0.0, 0.0), *(h for h in profile if h.tilt < tilt)]
            above = (h for h in profile if h.tilt > tilt)
            best = min(best, (max(period(tilt, below), period(tilt, above)), tilt))
    return best[1]


def _best(
    steps: Steps, tilt: sp.Rational, epsilon: arb, log_goal: float, tilts: list[sp.Rational]
) -> Anchor | None:
    """Walk from the middle of some tilts while the period that an anchor allows falls."""

    def found(index: int) -> tuple[float, Anchor] | None:
        if not 0 <= index < len(tilts):
            return None
        try:
            own = anchor(steps, tilts[index])
        except AccuracyError:  # beyond the domain of K
            return None
        if not own.log_bound.is_finite():
            return None
        return own.period(tilt, epsilon, log_goal), own

    centre = len(tilts) // 2
    best = found(centre)
    ways = [1, -1]
    while best is None and centre > 0:
        centre, ways = centre - 1, [-1]
        best = found(centre)
    for way in ways:
        index = centre + way
        while best is not None and (further := found(index)) and further[0] < best[0]:
            best, index = further, index + way
        if index != centre + way:
            break  # on the other side it is longer
    return None if best is None else best[1]


def _short(value: float) -> sp.Rational:
    """Return a rational of few digits near a positive number."""
    scale = 2 ** max(6 - math.frexp(value)[1], 0)
    return sp.Rational(max(round(value * scale), 1), scale)
