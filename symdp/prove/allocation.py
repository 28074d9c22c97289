r"""δ(ε) of one epoch of random allocation from the transform of its likelihood ratio, in balls.

W = P/Q of one step, Y the sum of t independent copies under Q, and φ(u) = E_Q e^{−uW}. Both
directions are F(K) = E_Q (K − Y)⁺ at one K each, as what Q never gives counts in full:

    remove: δ(ε) = F(t e^ε)/t + 1 − e^ε,        add: δ(ε) = e^ε F(t e^{−ε})/t.

For every c > 0,

.. math::

   F(K) = \frac{1}{2\pi i} \int_{c - i\infty}^{c + i\infty} \frac{e^{uK} \varphi(u)^t}{u^2}\, du.

**φ as a moment generating function.**  −W is a "loss" whose law is Q, and φ its M, so that nodes
and bounds are those of any loss at a tilt c > 0.  As |e^{−uW}| ≤ 1, what Q has outside the panels
changes a value of φ by no more than that mass, 1 − Q(panels): nothing of tails has to be known.

**What the rule adds.**  With the spacing 2π/T the trapezoidal rule gives Σ_k e^{−ckT} F(K + kT)
[Poisson's summation].  At k > 0 there is at most e^{−cT}(K + T)/(1 − e^{−cT})², as F(y) ≤ y.  At
k < 0 there is nothing for T ≥ K; elsewhere F(y) ≤ e^{ay} φ(a)^t/(ae) for every a > 0, and with
a = 2c the sum is at most e^{2cK} φ(2c)^t/(2ce) · e^{−cT}/(1 − e^{−cT}).  So T need only be long
beside what Y varies by.

**What lies beyond the last node.**  Where |φ(c + iv)| ≤ B for all v ≥ V, the nodes left out add at
most e^{cK} B^t/(πV) (see `falling`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import sympy as sp
from flint import acb, arb, ctx

from symdp.emit.exact import LN10, fraction_ball, real_ball
from symdp.errors import AccuracyError
from symdp.model.allocation import MOST_OUTCOMES, AllocatedPair, OneStep, outcomes
from symdp.model.pair import Pair
from symdp.numeric.compile import pair_law
from symdp.numeric.laws.allocation import AllocatedLaw, allocated_law, listed_masses
from symdp.prove.falling import Falling
from symdp.prove.kind import Kind, Stretch
from symdp.prove.measure import LN2, Asked, measure, single_losses, up, walk
from symdp.prove.plan import panels_of
from symdp.prove.work import limited

_FIRST_SIZE, _FIRST_DIGITS = -10.0, 2.0  # log δ and digits of a first look
_GROWTH = 2.5  # times that log δ is, where a look shows no digit
_TRIES = 8  # looks; the last ones reach beyond δ = 1e-1000
_SPARE = 0.7  # digits beyond those asked, which the errors share
_BITS = 64  # carried beyond the digits
_SHARES = math.log(8)  # e-folds by which each error is below the goal
_PERIODS = 1.5  # T/K at first: costs change little from 1.2 to 3
_MORE_HEIGHT = 0.3  # of cT, that e^{cK} φ(c)^t may grow by for half the period
_LEVEL_BITS, _TILT_BITS, _DEPTH_STEP = 4, 5, 2.0  # of K, of c and of cT: close questions share them
_FOLDS = 8.0  # e-folds of what is left out: steps that close questions share, and to spare
_HALVINGS, _FARTHEST = 12, 2.0**60  # in search of a tilt, and times the least one
_LEAST_SHARE = -600.0  # log of what of φ no cell need cover
_MOST_FREQUENCIES = 100_000  # nodes of the integral: half a minute
_MANY, _ORDERS = 200, 8  # steps, of fewer of which so many integrations by parts show how |φ| falls


def enclose_epochs(steps: Sequence[tuple[OneStep, int]], epsilon: Fraction, digits: int) -> arb:
    """Enclose δ(ε) of a composition that is one epoch of random allocation, refuse any other."""
    (pair, count), *others = steps
    if others or count > 1 or not isinstance(pair, AllocatedPair):
        raise AccuracyError(
            "one epoch of random allocation is proved on its own, not composed with others; ask "
            "for one epoch, or for delta, whose error is an estimate"
        )
    return enclose_allocation(pair, epsilon, digits)


def enclose_allocation(pair: AllocatedPair, epsilon: float | Fraction, digits: int = 15) -> arb:
    """Enclose δ(ε) of one epoch to a relative width of 10^(−digits)."""
    exact = Fraction(epsilon)
    if pair.base.support.kind == "points":
        return _on_list(pair, exact, digits)
    if pair.base.support.kind != "interval":
        raise AccuracyError("the likelihood ratio has atoms only: its transform never falls")
    log_size = _FIRST_SIZE
    width = _FIRST_DIGITS
    estimate = estimate_log_epoch(pair, float(exact))
    if estimate is not None:
        log_size = estimate
        width = digits + _SPARE
    with limited(digits):
        for _ in range(_TRIES):
            ball = _ball_of_epoch(pair, exact, log_size - width * LN10)
            if not ball > 0:
                log_size *= _GROWTH
                continue
            with ctx.workprec(64):
                log_size = float(ball.lower().log().mid())
                log_width = float((2 * ball.rad()).log().mid())
                efolds = log_size - log_width
            if efolds >= digits * LN10:
                return ball
            width = max(digits, width + digits - efolds / LN10) + _SPARE
    raise AccuracyError("the enclosure stays too wide; ask for fewer digits")


def _on_list(pair: AllocatedPair, exact: Fraction, digits: int) -> arb:
    """Enclose δ(ε) on a finite list: the sum over how often each outcome came."""
    number = outcomes(pair.base, pair.steps)
    if number > MOST_OUTCOMES:
        raise AccuracyError(
            f"{number} numbers of outcomes of {pair.steps} steps are too many to list; take fewer "
            "steps or fewer points"
        )
    with ctx.workprec(4 * digits + 2 * _BITS):
        p = [real_ball(mass) for mass in pair.base.P]
        q = [real_ball(mass) for mass in pair.base.Q]
        growth = fraction_ball(exact).exp()
        total = arb(0)
        for with_record, without in listed_masses(p, q, pair.steps):
            gain = with_record - growth * without
            if pair.direction != "remove":
                gain = without - growth * with_record
            total += gain.max(arb(0))
        return total


def estimate_log_epoch(pair: AllocatedPair, epsilon: float) -> float | None:
    """Return about log δ(ε) of one epoch, None where the numeric law does not know it."""
    with suppress(AccuracyError):
        law = allocated_law(pair_law(pair.base), pair.steps, pair.direction)
        if not isinstance(law, AllocatedLaw):
            return None
        log_delta, _, _, _ = law.known_profile(epsilon)
        if log_delta > -math.inf:
            return log_delta
    return None


def _ball_of_epoch(pair: AllocatedPair, exact: Fraction, log_goal: float) -> arb:
    """Return δ(ε) as a ball of about so large a radius."""
    steps = pair.steps
    with ctx.workprec(int(max(0.0, -log_goal) / LN2) + _BITS):
        epsilon = fraction_ball(exact)
        if pair.direction == "remove":
            goal = log_goal + math.log(steps) - _SHARES
            growth = epsilon.exp()
            shortfall = _shortfall(pair.base, steps, growth * steps, goal)
            ball = shortfall / steps + 1 - growth
        else:
            goal = log_goal + math.log(steps) - float(exact) - _SHARES
            growth = (-epsilon).exp()
            shortfall = _shortfall(pair.base, steps, growth * steps, goal)
            ball = shortfall / (steps * growth)
        return ball.max(arb(0)).min(arb(1))


def _shortfall(base: Pair, steps: int, level: arb, log_goal: float) -> arb:
    """Enclose F(K), every error about e^{log_goal}."""
    log_mass = log_goal - math.log(steps)
    law = _restricted(base, _rounded_down(log_mass))
    tilt, period = _find_line(law, steps, float(level), log_goal)
    scale = float(f"{law.log_at(tilt):.12g}")
    height = tilt * float(level) + steps * scale
    log_digits = height - math.log(tilt) + math.log(steps) - log_goal
    bits = math.ceil(log_digits / LN2) + 8
    bits = 16 * math.ceil(max(bits, 8) / 16)
    log_missed = min(scale - bits * LN2, log_mass)
    law = _restricted(base, _rounded_down(log_missed))
    h = 2.0 * math.pi / period
    number, beyond = _terms_needed(law, tilt, scale, steps, h, log_goal - height)
    shared_number = int(_rounded_up_to_bits(number, _LEVEL_BITS))
    values, above = _transform_values(law, tilt, scale, h, shared_number, bits)
    with ctx.workprec(bits + _BITS):
        spacing = arb(h)
        period_ball = 2 * arb.pi() / spacing
        total = acb(0)
        for index, value in enumerate(values[: number + 1]):
            v = index * spacing
            kernel = acb(tilt, v) ** 2
            rotation = acb(0, v * level).exp()
            term = rotation * value**steps / kernel
            if not index:
                term = term / 2
            total += term
        integral = total.real * spacing / arb.pi()
        inner = integral + arb(0, beyond.upper())
        log_top = arb(tilt) * level + steps * arb(scale)
        top = log_top.exp()
        fall = (-arb(tilt) * period_ball).exp()
        added = fall * (level + period_ball) / (1 - fall) ** 2
        if not period_ball >= level:
            other_tilt = 2 * arb(tilt)
            height_below = (other_tilt * level).exp() * above**steps
            height_below = height_below / (other_tilt * arb.const_e())
            added += height_below * fall / (1 - fall)
        alias = arb(0).union(arb(added.upper()))
        return inner * top - alias


def _find_line(
    law: _RestrictedRatio, steps: int, level: float, log_goal: float
) -> tuple[float, float]:
    """Return c and the period T, which close questions share, and so the values of φ."""
    k = _rounded_up_to_bits(level, _LEVEL_BITS)
    depth = math.log((1.0 + _PERIODS) * k) + 1.0 - log_goal  # cT at which the rule adds so much
    depth = _DEPTH_STEP * math.ceil(depth / _DEPTH_STEP)
    saddle = law.saddle(steps, k, depth / (_PERIODS * k))
    tilt = _rounded_up_to_bits(saddle, _TILT_BITS)
    period = max(k * (1.0 + 2.0**-30), depth / tilt)
    least = tilt * k + steps * law.log_at(tilt)
    while True:
        half = 0.5 * period
        least_tilt = max(tilt, 2.0 * depth / period)
        other = _rounded_up_to_bits(least_tilt, _TILT_BITS)
        height = other * k + steps * law.log_at(other)
        twice = 2 * other
        height_at_twice = twice * k + steps * law.log_at(twice)
        before = height_at_twice - math.log(twice) - other * half
        if before > log_goal or height > least + _MORE_HEIGHT * depth:
            return tilt, period
        tilt = other
        period = half


def _rounded_up_to_bits(value: float, bits: int) -> float:
    """Return a number of few bits at or above a value, so that close questions share work."""
    _, exponent = math.frexp(value)
    unit = 2.0 ** (exponent - bits)
    return math.ceil(value / unit) * unit


def _rounded_down(log_mass: float) -> float:
    return _FOLDS * math.floor(log_mass / _FOLDS)


class _RatioStretch(Stretch):
    """A stretch of (Q, P), whose loss is −log W, with −W in its place."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.is_infinite = False  # W is 0 where P is

    @property
    def loss(self) -> Any:
        """−W of a flat stretch."""
        if self.exact.loss == sp.oo:
            return arb(0)
        return -(-super().loss).exp()

    def values(self, x: Any, *, analytic: bool = False) -> tuple[Any, Any]:
        """Return balls around log Q and −W."""
        log_q, loss = super().values(x, analytic=analytic)
        if self.is_flat:
            return log_q, self.loss
        return log_q, -(-loss).exp()


class _Ratio(Kind):
    """The law Q of one step with −W as its loss."""

    stretch_type = _RatioStretch

    def atoms(self) -> list[tuple[arb, arb]]:
        """Return mass and −W of the points that Q gives."""
        points = []
        for mass, loss in super().atoms():
            ratio = (-loss).exp()
            points.append((mass, -ratio))
        return [*points, (self.infinite_atoms(), arb(0))]


@lru_cache(maxsize=16)
def _ratio_of(base: Pair) -> _Ratio:
    return _Ratio(base.reversed())


@lru_cache(maxsize=32)
def _restricted(base: Pair, log_mass: float) -> _RestrictedRatio:
    return _RestrictedRatio(_ratio_of(base), log_mass)


class _RestrictedRatio:
    """φ of Q on panels that leave out about a mass: its size, its values, how it falls."""

    def __init__(self, kind: Kind, log_mass: float) -> None:
        self.kind = kind
        self.panels = panels_of(kind, 0.0, 0.0, log_mass - _FOLDS)
        plain = Asked(arb(0), 0.0, log_mass - _FOLDS)
        with ctx.workprec(int(max(0.0, -log_mass) / LN2) + _BITS):
            nodes = measure(kind, self.panels, [plain])
            outside = arb((1 - nodes.total(plain, 0)).upper())
            self._outside = outside.max(arb(0))
        logs = []
        ratios = []
        for weight, loss in zip(nodes.weights, nodes.losses, strict=True):
            if weight > 0:
                logs.append(float(weight.log().mid()))
                ratios.append(-float(loss.mid()))
        self._logs = np.asarray(logs)
        self._ratios = np.minimum(ratios, 1e300)

    def _log_mass_and_mean(self, tilt: float) -> tuple[float, float]:
        """Return about log φ(c) and −φ′/φ."""
        logs = self._logs - tilt * self._ratios
        top = float(logs.max())
        weights = np.exp(logs - logs.max())
        total = float(weights.sum())
        mean = float(weights @ self._ratios) / total
        return top + math.log(total), mean

    def log_at(self, tilt: float) -> float:
        """Return about log φ(c)."""
        log_mass, _ = self._log_mass_and_mean(tilt)
        return log_mass

    def saddle(self, steps: int, level: float, least: float) -> float:
        """Return about where e^{cK} φ(c)^t/c² is least, or a least c."""

        def falls(c: float) -> bool:
            _, mean = self._log_mass_and_mean(c)
            return level - steps * mean <= 2.0 / c

        low = least
        high = least
        while falls(high) and high < least * _FARTHEST:
            low = high
            high = 2.0 * high
        if high > low:
            for _ in range(_HALVINGS):
                middle = 0.5 * (low + high)
                if falls(middle):
                    low = middle
                else:
                    high = middle
        return high

    def outside(self, scale: float) -> arb:
        """Bound what a value of φ e^{−scale} lacks."""
        return arb((self._outside * (-arb(scale)).exp()).upper())


@lru_cache(maxsize=16)
def _transform_values(
    law: _RestrictedRatio, tilt: float, scale: float, h: float, number: int, bits: int
) -> tuple[list[acb], arb]:
    """Return φ(c + iv) e^{−scale} at v = 0, h, …, (number)h, and what φ(2c) is at most."""
    twice = 2 * tilt
    with ctx.workprec(bits + _BITS):
        scale_at_twice = law.log_at(twice)
        main = Asked(arb(tilt), scale, -bits * LN2, (number + 1) * h)
        side = Asked(arb(twice), scale_at_twice, -6 * LN10)
        nodes = measure(law.kind, law.panels, [main, side])
        lacking = nodes.errors[0] + law.outside(scale)
        error = arb(lacking.upper())
        line = walk(nodes.weighted(main), nodes.losses, error, arb(h))
        above = nodes.total(side, 1) + law.outside(scale_at_twice)
        above = above * arb(scale_at_twice).exp()
        values = list(islice(line, number + 1))
        return values, arb(above.upper())


def _terms_needed(
    law: _RestrictedRatio, tilt: float, scale: float, steps: int, h: float, log_goal: float
) -> tuple[int, arb]:
    """Return after how many terms the rest is proved to be negligible, and bound it."""
    log_each = log_goal / steps
    orders = 0
    if steps < _MANY:
        orders = _ORDERS
        log_share = log_each - 2.0
    else:
        log_share = math.log(-0.02 * math.expm1(log_each))
    log_share = max(_rounded_down(log_share), _LEAST_SHARE)
    fall = _fall_of_transform(law, tilt, scale, log_share, orders)
    outside = up(law.outside(scale))

    def log_beyond(number: int) -> float:
        y = h * (number + 1) * (1 - 1e-12)
        size = fall.at(y) + outside
        log_power = steps * (math.log(size) + 1e-12)
        return log_power - math.log(math.pi * h * number)

    low = 0
    high = 8
    while log_beyond(high) > log_goal:
        low = high
        high = 2 * high
        if high > _MOST_FREQUENCIES:
            raise AccuracyError(
                "the transform of the likelihood ratio falls too slowly to certify so many digits; "
                "ask for fewer digits, or more steps"
            )
    while high - low > max(1, low // 64):
        middle = (low + high) // 2
        if log_beyond(middle) > log_goal:
            low = middle
        else:
            high = middle
    return high, arb(log_beyond(high) + 1e-9).exp()


@lru_cache(maxsize=16)
def _fall_of_transform(
    law: _RestrictedRatio, tilt: float, scale: float, log_share: float, orders: int
) -> Falling:
    moment = Asked(arb(tilt), scale, log_share - 3.0)
    with ctx.workprec(int(-log_share / LN2) + _BITS):
        total = measure(law.kind, law.panels, [moment]).total(moment, 0)
        single = single_losses(law.kind, law.panels, moment)
        share = math.exp(log_share)
        return Falling(law.kind, law.panels, tilt, scale, total, single, share, orders)
