"""One step of a mechanism as plain numeric functions: what a loss law is built from.

**Singular finite ends** are moved to infinity, where doubles resolve them. Next to a finite end the
coordinate x itself has no digits left for the distance u from the end, on which densities and loss
depend. A piece is therefore parametrised by a real v that falls to −∞ like log u; what is a power
of u becomes an exponential of v, and a logarithm of u a line. Densities are those of v, the factor
|dx/dv| included; the loss is the same function of the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from flint import acb, acb_poly, arb, arb_poly, ctx
from numpy.typing import NDArray

from symdp.emit.arb import UNKNOWN
from symdp.errors import AccuracyError
from symdp.numeric.closed import ClosedMasses
from symdp.tolerances import LOSS_ROUNDED

Array = NDArray[np.float64]
Index = NDArray[np.intp]
RealFunction = Callable[[Array], Array]
BallFunction = Callable[..., tuple[Any, Any]]

_BITS, _MOST_BITS = 110, 4_000  # of a ball that says how to round, at first and at last
MOST_ROUNDED = 4_000  # nodes at most that are evaluated in balls, one by one
_EVERY, _LEAST, _MOST = 16, 16, 256  # of how many places one is compared with balls, and how many
CANCELLED = 8.0  # roundings by which doubles are off where terms cancel
_TYPICAL = 0.01  # of a usual loss: what is smaller need be known no better


def no_terms(x: Array) -> Sequence[Array]:
    """Return nothing: P and Q are no sums, or their terms need no look."""
    return ()


def together(functions: Sequence[RealFunction]) -> Callable[[Array], Sequence[Array]]:
    """Return the function that gives the values of several."""
    return lambda x: [function(x) for function in functions]


@dataclass(frozen=True)
class SmoothPiece:
    """A stretch of the support on which densities and privacy loss ℓ are smooth.

    `integer` pieces hold their ends. A loss of +inf means that Q vanishes, so that the P-mass is
    mass at infinity. `log_terms` gives logs of the single terms of P and Q, whose modes show where
    a quadrature must look. `log_mass`: of the atom under P, None where it is to be integrated.
    `ball`: log P and ℓ in balls, of complex places too with `analytic`. `joint`: log P, log Q and ℓ
    where that is cheaper. `off`: the relative error of P and Q, as of a table. `closed`: their
    integrals, where formulas give them.
    """

    lower: float
    upper: float
    log_p: RealFunction
    log_q: RealFunction
    loss: RealFunction
    ball: BallFunction
    log_terms: Callable[[Array], Sequence[Array]] = no_terms
    flat: bool = False  # true where ℓ is constant, so that the whole piece is one atom of the loss
    log_mass: float | None = None
    monotone: bool = False  # true where ℓ is derived to rise or to fall on the whole piece
    integer: bool = False
    ends: tuple[arb, ...] = ()  # balls around the finite ends, which a double may have rounded
    joint: Callable[[Array], tuple[Array, ...]] | None = None
    off: RealFunction | None = None
    closed: ClosedMasses | None = None

    def values(self, x: Array) -> tuple[Array, Array, Array]:
        """Return log P, log Q and ℓ."""
        if self.joint is None:
            loss = np.asarray(self.loss(x), dtype=np.float64)
            return self.log_p(x), self.log_q(x), loss
        log_p, log_q, loss = self.joint(x)
        return log_p, log_q, loss

    def exact_end(self, *, upper: bool) -> arb:
        """Return an end of the piece, in a ball where a double may have rounded it."""
        end = self.upper if upper else self.lower
        exact_ends = (ball for ball in self.ends if float(ball) == end)
        return next(exact_ends, arb(end))

    def accurate(
        self,
        x: Array,
        balls: int | None = None,
        doubles: tuple[Array, Array] | None = None,
        usual_loss: float = 0.0,
        shares: Sequence[Array] = (),
    ) -> tuple[Array, Array, float]:
        """Return log P and ℓ, by balls where few doubles cancel, and how many roundings off.

        `doubles`: both, where they are known. `usual_loss`: a mean of |ℓ|. `shares`: what places
        have of sums, none where they are alike. Of w and of w|ℓ| it is how far Σ w|ℓ| is off: each
        ℓ by no more than so many roundings of |ℓ| and its mean, in the mean square under both.
        """
        if balls is None:
            balls = max(_LEAST, min(x.size // _EVERY, _MOST))
        sample_size = min(x.size, balls)
        of_usual = _TYPICAL
        if shares:
            sample_size = min(x.size, max(_LEAST, balls // len(shares)))
            of_usual = 1.0
        evenly = np.linspace(0, max(x.size - 1, 0), sample_size)
        samples = [evenly.astype(np.intp)]
        for share in shares:  # places that each stand for as much of the sum
            cumulated = np.cumsum(share)
            if cumulated.size and 0.0 < cumulated[-1] < math.inf:
                quantiles = cumulated[-1] * (np.arange(sample_size) + 0.5) / sample_size
                samples.append(np.searchsorted(cumulated[:-1], quantiles))
        if len(samples) > 1:
            samples = samples[1:]
        with np.errstate(all="ignore"):
            if doubles is None:
                log_p, _, loss = self.values(x)
            else:
                log_p, loss = doubles
            off = 1.0
            for sample in samples:
                exact = self.rounded(x[sample])
                doubles_there = log_p[sample], loss[sample]
                of_sample = _roundings(*doubles_there, *exact, usual_loss, of_usual)
                off = max(off, of_sample)
        if off <= CANCELLED or x.size > MOST_ROUNDED:
            return log_p, loss, off
        log_p, loss = self.rounded(x)
        return log_p, loss, 1.0

    def rounded(self, x: Array) -> tuple[Array, Array]:
        """Return log P and ℓ, each the double next to it."""
        pairs = [rounded(self.ball, value, is_flat=self.flat) for value in x.tolist()]
        columns = np.asarray(pairs, dtype=np.float64).reshape(-1, 2)
        log_p, loss = columns.T
        return log_p, loss

    def parted(self, cut: float) -> tuple[SmoothPiece, SmoothPiece]:
        """Return what lies on the left of a place, and on its right."""
        left_ends = [end for end in self.ends if float(end) < cut]
        right_ends = [end for end in self.ends if not float(end) < cut]
        left = replace(self, upper=cut, ends=(*left_ends, arb(cut)))
        right = replace(self, lower=cut, ends=(arb(cut), *right_ends))
        return left, right

    def reversed(self) -> SmoothPiece:
        """Return the piece with P and Q exchanged, neither of which vanishes on it."""
        log_mass = self.log_mass
        if log_mass is not None:
            below_upper = min(0.0, self.upper - 1.0)
            inside = np.asarray([max(below_upper, self.lower + 1.0)])
            _, inner_loss = self.rounded(inside)
            log_mass -= float(inner_loss[0])
        direct_ball = self.ball
        direct_loss = self.loss

        def ball(x: Any, **analytic: bool) -> tuple[Any, Any]:
            log_p, loss = direct_ball(x, **analytic)
            return log_p - loss, -loss

        def joint(x: Array) -> tuple[Array, ...]:
            log_p, log_q, loss = self.values(x)
            return log_q, log_p, -loss

        closed = None if self.closed is None else self.closed.reversed()
        piece = replace(
            self,
            log_mass=log_mass,
            log_p=self.log_q,
            log_q=self.log_p,
            loss=lambda x: -direct_loss(x),
            ball=ball,
            closed=closed,
        )
        if self.joint is None:
            return piece
        return replace(piece, joint=joint)

    def less(self, constant: float) -> SmoothPiece:
        """Return the piece with both log densities less a constant."""
        whole_ball = self.ball
        log_p = self.log_p
        log_q = self.log_q

        def ball(x: Any, **analytic: bool) -> tuple[Any, Any]:
            value, loss = whole_ball(x, **analytic)
            return value - arb(constant), loss

        closed = None if self.closed is None else self.closed.scaled(arb(-constant))
        return replace(
            self,
            log_p=lambda x: np.asarray(log_p(x) - constant),
            log_q=lambda x: np.asarray(log_q(x) - constant),
            ball=ball,
            joint=None,
            closed=closed,
        )


@dataclass(frozen=True)
class Balls:
    """Balls of log P and ℓ, which is infinite where it is None."""

    log_p: Callable[..., Any]
    loss: Callable[..., Any] | None

    def __call__(self, x: Any, **analytic: bool) -> tuple[Any, Any]:
        """Return both."""
        loss = arb.pos_inf() if self.loss is None else self.loss(x, **analytic)
        return self.log_p(x, **analytic), loss


def _roundings(
    log_p: Array,
    loss: Array,
    exact_log_p: Array,
    exact_loss: Array,
    usual_loss: float,
    share: float,
) -> float:
    """Return how many roundings of a double the differences are in the mean square.

    `share`: of a mean or the median loss, beside which smaller ones are known no better.
    """
    if not log_p.size:
        return 1.0
    finite_size = np.abs(exact_loss[np.isfinite(exact_loss)])
    if finite_size.size:
        usual_loss = np.fmax(usual_loss, np.median(finite_size))
    typical = share * usual_loss
    loss_unit = np.maximum(np.abs(exact_loss) + typical, 1e-300)
    log_p_unit = 1.0 + np.abs(exact_log_p)
    log_p_units = np.abs(log_p - exact_log_p) / log_p_unit
    loss_units = np.abs(loss - exact_loss) / loss_unit
    log_p_off = np.where(log_p == exact_log_p, 0.0, log_p_units)
    loss_off = np.where(loss == exact_loss, 0.0, loss_units)
    off = np.nan_to_num([log_p_off, loss_off], nan=np.inf)
    squares = np.square(off / np.finfo(float).eps)
    worst = float(squares.mean(axis=1).max())
    return max(1.0, math.sqrt(worst))


def _is_known(ball: arb, smallest: float) -> bool:
    """Whether a double next to a ball is known, or the ball is smaller than an absolute size."""
    if not ball.is_finite():
        return bool(ball == arb.pos_inf())
    return ball.rel_accuracy_bits() >= 54 or float(ball.rad()) < smallest


@lru_cache(maxsize=1 << 15)  # node sets of several tilts share places, whose balls are slow
def rounded(
    ball: BallFunction, x: float, beside: float = 0.0, *, is_flat: bool = False
) -> tuple[float, float]:
    """Return log P and ℓ at the sum of two numbers, each the double next to it.

    On a flat stretch ℓ may be the difference of two normalizing constants, which quadratures find
    to some fifty digits: where it vanishes it has no relative digits, and is wanted absolutely.
    """
    bits = _BITS
    smallest = 1e-40 if is_flat else 1e-300
    while bits <= _MOST_BITS:
        with ctx.workprec(bits):
            log_p, loss = ball(arb(x) + arb(beside))
            if _is_known(log_p, smallest) and _is_known(loss, smallest):
                if is_flat and loss.contains(0):
                    return float(log_p.mid()), 0.0
                return float(log_p.mid()), float(loss.mid())
        bits *= 2
    raise AccuracyError(
        f"the density or the loss has no finite value at {x!r}, as where a density touches "
        "zero at so many places that they are not told apart; bound the support"
    )


@dataclass(frozen=True)
class Step:
    """One step in one direction: smooth pieces, and the points of a finite list.

    `point_balls` enclose (probability, loss) of points with a finite loss. `name` is for messages.
    """

    name: str
    pieces: tuple[SmoothPiece, ...] = ()
    point_loss: Array = field(default_factory=lambda: np.empty(0))
    point_log_p: Array = field(default_factory=lambda: np.empty(0))
    point_balls: tuple[tuple[arb, arb], ...] = ()


ArbFunction = Callable[..., Any]
# Of the distance u from an end: in doubles, and in balls where it has them.
EndFunction = tuple[RealFunction, ArbFunction | None]

_FAR = -100.0  # further out a function of u = O(e^v) is a line in v, or it is left as it is
_SAMPLES = (-200.0, -400.0)  # depths that show the line
_CHECKS = (_FAR, -1e3, -2.5e3)  # depths at which it is to hold
_END_BITS = 300  # carried next to an end


class Stretch:
    """The places of one piece between singular ends: v, and from it the distance u from an end.

    With two singular ends v runs over all reals, v < 0 is counted from the lower end and v > 0 from
    the upper one: u = W e^{−|v|}/(1 + e^{−|v|}). With one, u = W e^v for v < 0 on a piece of length
    W, or log(1 + e^v) on an unbounded one, which has none.
    """

    def __init__(self, length: Callable[[], arb] | None, two_sided: bool) -> None:
        self._length = length
        self.two_sided = two_sided
        self.lower = -math.inf
        self.upper = math.inf
        self._width = 1.0
        self._log_width = 0.0
        if length is None:
            return
        if not two_sided:
            self.upper = 0.0
        with ctx.workprec(_END_BITS):
            self._width = float(length().mid())
            self._log_width = float(length().log().mid())

    def depth(self, v: Array) -> Array:
        """Return −|v| where both ends are singular, else v."""
        if not self.two_sided:
            return v
        return np.where(np.real(v) > 0, -v, v)

    def distance(self, depth: Array) -> tuple[Array, Array]:
        """Return u and log |dx/dv|."""
        from scipy import special

        if self._length is None:
            is_positive = np.real(depth) > 0
            small = np.exp(np.where(is_positive, -depth, depth))
            log_share = special.log1p(small)
            beyond = np.where(is_positive, depth, 0.0)
            return beyond + log_share, depth - beyond - log_share
        small = np.exp(depth)
        log_slope = self._log_width + depth
        if not self.two_sided:
            return self._width * small, log_slope
        log_share = special.log1p(small)
        return self._width * small / (1.0 + small), log_slope - 2.0 * log_share

    def ball_depth(self, v: Any) -> Any:
        """Return the depth of a real or complex ball of places."""
        if self.two_sided and float(v.real.mid()) > 0:
            return -v
        return v

    def ball_distance(self, depth: Any) -> tuple[Any, Any]:
        """Return balls around u and log |dx/dv|."""
        if self._length is None and float(depth.real.mid()) > 0:
            log_share = _log_one_plus((-depth).exp())
            return depth + log_share, -log_share
        small = depth.exp()
        if self._length is None:
            log_share = _log_one_plus(small)
            return log_share, depth - log_share
        length = self._length()
        log_slope = length.log() + depth
        if not self.two_sided:
            return length * small, log_slope
        log_share = _log_one_plus(small)
        return length * small / (1 + small), log_slope - 2 * log_share

    def in_doubles(self, ends: Sequence[EndFunction], is_density: bool) -> RealFunction:
        """Return a function of v from functions of u, at the lower end and at the upper one."""
        sides = [self._side(double, ball, is_density) for double, ball in ends]

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

    def _side(
        self, double: RealFunction, ball: ArbFunction | None, is_density: bool
    ) -> RealFunction:
        """Return a function of the depth at one end, continued by its line where u underflows."""
        line = None if ball is None else self._far_line(ball, is_density)

        def near(depth: Array) -> Array:
            distance, log_slope = self.distance(depth)
            value = double(distance)
            if is_density:
                return np.asarray(value + log_slope)
            return np.asarray(value)

        def function(depth: Array) -> Array:
            with np.errstate(all="ignore"):
                is_beyond = np.real(depth) < _FAR
                if line is None or not is_beyond.any():
                    return near(depth)
                slope, intercept = line
                near_value = near(np.where(is_beyond, _FAR, depth))
                return np.where(is_beyond, intercept + slope * depth, near_value)

        return function

    def _far_line(self, ball: ArbFunction, is_density: bool) -> tuple[float, float] | None:
        """Return slope and intercept of the line that a function is far out, if it is one."""

        def value(depth: float) -> float:
            distance, log_slope = self.ball_distance(arb(depth))
            log_value = ball(distance)
            if is_density:
                log_value = log_value + log_slope
            return float(log_value.mid())

        near_depth, far_depth = _SAMPLES
        with ctx.workprec(_END_BITS):
            near = value(near_depth)
            far = value(far_depth)
            slope = (far - near) / (far_depth - near_depth)
            intercept = near - slope * near_depth
            for depth in _CHECKS:
                rise = slope * depth
                gap = abs(value(depth) - (intercept + rise))
                if not gap <= LOSS_ROUNDED * (1.0 + abs(intercept) + abs(rise)):
                    return None
        return slope, intercept

    def in_balls(self, ends: Sequence[ArbFunction], is_density: bool) -> ArbFunction:
        """Return a function of v from functions of u in ball arithmetic."""

        def function(v: Any, analytic: bool = False) -> Any:
            is_upper = self.two_sided and float(v.real.mid()) > 0
            distance, log_slope = self.ball_distance(self.ball_depth(v))
            value = ends[int(is_upper)](distance, analytic=analytic)
            if is_density:
                return value + log_slope
            return value

        return function


def _log_one_plus(small: Any) -> Any:
    """Return log(1 + u), not a number where a ball of u may cross the cut."""
    if small.real > -1:
        return small.log1p()
    return UNKNOWN


Exact: TypeAlias = Any  # a Fraction, or an expression of SymPy without symbols


class Numbers(NamedTuple):
    """The N of M, its b and its p at the working precision."""

    polynomials: tuple[arb_poly, ...]
    rates: tuple[arb, ...]
    poles: tuple[arb, ...]

    def at(self, z: acb, orders: Sequence[int]) -> acb:
        """Return M(z), not finite at a pole that M need not have."""
        total = acb(0)
        for polynomial, rate in zip(self.polynomials, self.rates, strict=True):
            total += acb_poly(polynomial)(z) * (rate * z).exp()
        for pole, order in zip(self.poles, orders, strict=True):
            total /= (z - pole) ** order
        return total


@dataclass(frozen=True, eq=False)
class Moment:
    """M(z) = Σ Nᵢ(z) e^{bᵢz}/Π (z − p)^d of one step's finite loss, at any precision.

    `rates, exact`: the b and the p as exact numbers, None for those that are known as balls alone.
    `is_checked`: whether its formula was compared with integrals at many values.
    """

    numbers: Callable[[], Numbers]  # encloses its numbers
    orders: tuple[int, ...]  # d of each pole
    rates: tuple[Exact | None, ...]
    exact: tuple[Exact | None, ...]
    is_checked: bool = False

    @property
    def terms(self) -> int:
        """How many terms there are."""
        return len(self.rates)

    def reversed(self) -> Moment:
        """Return M(−1 − z), that of −ℓ under Q."""

        def numbers() -> Numbers:
            direct = self.numbers()
            mirror = arb_poly([-1, -1])
            sign = (-1) ** sum(self.orders)
            polynomials = []
            for polynomial, rate in zip(direct.polynomials, direct.rates, strict=True):
                polynomials.append(polynomial(mirror) * (sign * (-rate).exp()))
            return Numbers(
                tuple(polynomials),
                rates=tuple(-rate for rate in direct.rates),
                poles=tuple(-1 - pole for pole in direct.poles),
            )

        rates = []
        for rate in self.rates:
            mirrored_rate = None if rate is None else -rate
            rates.append(mirrored_rate)
        exact = []
        for pole in self.exact:
            mirrored_pole = None if pole is None else -1 - pole
            exact.append(mirrored_pole)
        return Moment(numbers, self.orders, tuple(rates), tuple(exact), self.is_checked)
