"""A piece whose singular finite ends are moved to infinity, where doubles resolve them.

Next to a finite end the coordinate x itself has no digits left for the distance u from the end,
on which densities and loss depend. A piece is therefore parametrised by a real v that falls to −∞
like log u; what is a power of u becomes an exponential of v, and a logarithm of u a line. Densities
are those of v, the factor |dx/dv| included; the loss is the same function of the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, ctx

from symdp.emit.arb_operations import UNKNOWN
from symdp.law.step import Array, RealFunction

ArbFunction = Callable[..., Any]

_FAR = -100.0  # further out a function of u = O(e^v) is a line in v, or it is left as it is
_SAMPLES = (-200.0, -400.0)
_CHECKS = (_FAR, -1e3, -1e5, -1e9)
_LINE = 1e-14  # relative: a function that is linear next to an end
_BITS = 300  # carried next to an end


@dataclass(frozen=True)
class EndFunction:
    """One function of the distance u from an end: in doubles, and in balls where it has them."""

    double: RealFunction
    ball: ArbFunction | None = None


class Stretch:
    """The places of one piece between singular ends: v, and from it the distance u from an end.

    With two singular ends v runs over all reals, v < 0 is counted from the lower end and v > 0 from
    the upper one: u = W e^{−|v|}/(1 + e^{−|v|}). With one, u = W e^v for v < 0 on a piece of length
    W, or log(1 + e^v) on an unbounded one.

    Parameters
    ----------
    length
        W at the working precision, None for an unbounded piece.
    two_sided
        Whether both ends are singular.
    """

    def __init__(self, length: Callable[[], arb] | None, two_sided: bool) -> None:
        self._length, self.two_sided = length, two_sided
        self.lower = -math.inf
        self.upper = math.inf if two_sided or length is None else 0.0
        with ctx.workprec(_BITS):
            self._width = 1.0 if length is None else float(length().mid())
            self._log_width = 0.0 if length is None else float(length().log().mid())

    def depth(self, v: Array) -> Array:
        """Return −|v| where both ends are singular, else v."""
        return np.where(np.real(v) > 0, -v, v) if self.two_sided else v

    def distance(self, depth: Array) -> tuple[Array, Array]:
        """Return u and log |dx/dv|."""
        from scipy import special

        if self._length is None:
            small = np.exp(np.where(np.real(depth) > 0, -depth, depth))
            rest = special.log1p(small)
            beyond = np.where(np.real(depth) > 0, depth, 0.0)
            return beyond + rest, depth - beyond - rest
        small = np.exp(depth)
        if not self.two_sided:
            return self._width * small, self._log_width + depth
        rest = special.log1p(small)
        return self._width * small / (1.0 + small), self._log_width + depth - 2.0 * rest

    def ball_depth(self, v: Any) -> Any:
        """Return the depth of a real or complex ball of places."""
        return -v if self.two_sided and float(v.real.mid()) > 0 else v

    def ball_distance(self, depth: Any) -> tuple[Any, Any]:
        """Return balls around u and log |dx/dv|."""
        if self._length is None:
            positive = float(depth.real.mid()) > 0
            rest = _log_one_plus((-depth if positive else depth).exp())
            return (depth + rest, -rest) if positive else (rest, depth - rest)
        length, small = self._length(), depth.exp()
        if not self.two_sided:
            return length * small, length.log() + depth
        return length * small / (1 + small), length.log() + depth - 2 * _log_one_plus(small)

    def in_doubles(self, ends: Sequence[EndFunction], is_density: bool) -> RealFunction:
        """Return a function of v from functions of u, at the lower end and at the upper one."""
        sides = [_Side(self, end, is_density) for end in ends]

        def function(v: Array) -> Array:
            v = np.asarray(v)
            depth = np.asarray(self.depth(v))
            if not self.two_sided:
                return sides[0](depth)
            value = np.empty(v.shape, dtype=depth.dtype)
            below = np.real(v) <= 0
            for side, chosen in zip(sides, (below, ~below), strict=True):
                if chosen.any():
                    value[chosen] = side(depth[chosen])
            return value

        return function

    def in_balls(self, ends: Sequence[ArbFunction], is_density: bool) -> ArbFunction:
        """Return the same in ball arithmetic."""

        def function(v: Any, analytic: bool = False) -> Any:
            depth = self.ball_depth(v)
            upper = self.two_sided and float(v.real.mid()) > 0
            distance, log_slope = self.ball_distance(depth)
            value = ends[int(upper)](distance, analytic=analytic)
            return value + log_slope if is_density else value

        return function


def _log_one_plus(small: Any) -> Any:
    """Return log(1 + u), not a number where a ball of u may cross the cut."""
    return small.log1p() if small.real > -1 else UNKNOWN


class _Side:
    """A function of the depth at one end, continued by its line where u underflows."""

    def __init__(self, stretch: Stretch, end: EndFunction, is_density: bool) -> None:
        self._stretch, self._function, self._is_density = stretch, end.double, is_density
        self._line = None if end.ball is None else self._far_line(end.ball)

    def _far_line(self, function: ArbFunction) -> tuple[float, float] | None:
        """Return slope and intercept of the line that the function is far out, if it is one."""

        def value(depth: float) -> float:
            distance, log_slope = self._stretch.ball_distance(arb(depth))
            found = function(distance)
            return float((found + log_slope if self._is_density else found).mid())

        with ctx.workprec(_BITS):
            near, far = (value(depth) for depth in _SAMPLES)
            slope = (far - near) / (_SAMPLES[1] - _SAMPLES[0])
            intercept = near - slope * _SAMPLES[0]
            for depth in _CHECKS:
                gap = abs(value(depth) - (intercept + slope * depth))
                if not gap <= _LINE * (1.0 + abs(intercept) + abs(slope * depth)):
                    return None
        return slope, intercept

    def __call__(self, depth: Array) -> Array:
        with np.errstate(all="ignore"):
            if self._line is None:
                return self._near(depth)
            beyond = np.real(depth) < _FAR
            if not beyond.any():
                return self._near(depth)
            slope, intercept = self._line
            return np.where(
                beyond, intercept + slope * depth, self._near(np.where(beyond, _FAR, depth))
            )

    def _near(self, depth: Array) -> Array:
        distance, log_slope = self._stretch.distance(depth)
        value = self._function(distance)
        return np.asarray(value + log_slope if self._is_density else value)
