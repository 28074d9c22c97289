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
from symdp.prove.measure import Asked, measure, single_losses, up, walk
from symdp.prove.plan import panels_of
from symdp.prove.work import limited

_LN2 = math.log(2)  # e-folds of a bit
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
    about = estimate_log_epoch(pair, float(exact))
    log_size, width = (_FIRST_SIZE, _FIRST_DIGITS) if about is None else (about, digits + _SPARE)
    with limited(digits):
        for _ in range(_TRIES):
            ball = _enclosed(pair, exact, log_size - width * LN10)
            if ball > 0:
                with ctx.workprec(64):
                    log_size = float(ball.lower().log().mid())
                    have = log_size - float((2 * ball.rad()).log().mid())
                if have >= digits * LN10:
                    return ball
                width = max(digits, width + digits - have / LN10) + _SPARE
            else:
                log_size *= _GROWTH
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
        p, q = ([real_ball(m) for m in law] for law in (pair.base.P, pair.base.Q))
        share = fraction_ball(exact).exp()
        total = arb(0)
        for with_record, without in listed_masses(p, q, pair.steps):
            first, second = with_record, without
            if pair.direction != "remove":
                first, second = without, with_record
            total += (first - share * second).max(arb(0))
        return total


def estimate_log_epoch(pair: AllocatedPair, epsilon: float) -> float | None:
    """Return about log δ(ε) of one epoch, None where the numeric law does not know it."""
    with suppress(AccuracyError):
        law = allocated_law(pair_law(pair.base), pair.steps, pair.direction)
        if isinstance(law, AllocatedLaw):
            log_delta = law.known_profile(epsilon)[0]
            return log_delta if log_delta > -math.inf else None
    return None


def _enclosed(pair: AllocatedPair, exact: Fraction, log_goal: float) -> arb:
    """Return δ(ε) as a ball of about so large a radius."""
    steps = pair.steps
    with ctx.workprec(int(max(0.0, -log_goal) / _LN2) + _BITS):
        epsilon = fraction_ball(exact)
        if pair.direction == "remove":
            goal = log_goal + math.log(steps) - _SHARES
            share = epsilon.exp()
            ball = _shortfall(pair.base, steps, share * steps, goal) / steps + 1 - share
        else:
            goal = log_goal + math.log(steps) - float(exact) - _SHARES
            share = (-epsilon).exp()
            ball = _shortfall(pair.base, steps, share * steps, goal) / (steps * share)
        return ball.max(arb(0)).min(arb(1))


def _shortfall(base: Pair, steps: int, level: arb, log_goal: float) -> arb:
    """Enclose F(K), every error about e^{log_goal}."""
    log_mass = log_goal - math.log(steps)
    law = _restricted(base, _rounded_down(log_mass))
    tilt, period = _find_line(law, steps, float(level), log_goal)
    scale = float(f"{law.log_at(tilt):.12g}")
    height = tilt * float(level) + steps * scale
    bits = math.ceil((height - math.log(tilt) + math.log(steps) - log_goal) / _LN2) + 8
    bits = 16 * math.ceil(max(bits, 8) / 16)
    law = _restricted(base, _rounded_down(min(scale - bits * _LN2, log_mass)))
    h = 2.0 * math.pi / period
    number, beyond = _terms(law, tilt, scale, steps, h, log_goal - height)
    values, above = _values(law, tilt, scale, h, int(_rounded_up(number, _LEVEL_BITS)), bits)
    with ctx.workprec(bits + _BITS):
        spacing = arb(h)
        period_ball = 2 * arb.pi() / spacing
        total = acb(0)
        for index, value in enumerate(values[: number + 1]):
            v = index * spacing
            term = acb(0, v * level).exp() * value**steps / acb(tilt, v) ** 2
            total += term if index else term / 2
        inner = total.real * spacing / arb.pi() + arb(0, beyond.upper())
        top = (arb(tilt) * level + steps * arb(scale)).exp()
        fall = (-arb(tilt) * period_ball).exp()
        added = fall * (level + period_ball) / (1 - fall) ** 2
        if not period_ball >= level:
            height_below = (
                (2 * arb(tilt) * level).exp() * above**steps / (2 * arb(tilt) * arb.const_e())
            )
            added += height_below * fall / (1 - fall)
        return inner * top - arb(0).union(arb(added.upper()))


def _find_line(law: _Restricted, steps: int, level: float, log_goal: float) -> tuple[float, float]:
    """Return c and the period T, which close questions share, and so the values of φ."""
    k = _rounded_up(level, _LEVEL_BITS)
    depth = math.log((1.0 + _PERIODS) * k) + 1.0 - log_goal  # cT at which the rule adds so much
    depth = _DEPTH_STEP * math.ceil(depth / _DEPTH_STEP)
    tilt = _rounded_up(law.saddle(steps, k, depth / (_PERIODS * k)), _TILT_BITS)
    period = max(k * (1.0 + 2.0**-30), depth / tilt)
    least = tilt * k + steps * law.log_at(tilt)
    while True:
        half = 0.5 * period
        other = _rounded_up(max(tilt, 2.0 * depth / period), _TILT_BITS)
        height = other * k + steps * law.log_at(other)
        before = 2 * other * k + steps * law.log_at(2 * other) - math.log(2 * other) - other * half
        if before > log_goal or height > least + _MORE_HEIGHT * depth:
            return tilt, period
        tilt, period = other, half


def _rounded_up(value: float, bits: int) -> float:
    """Return a number of few bits at or above a value, so that close questions share work."""
    unit = 2.0 ** (math.frexp(value)[1] - bits)
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
        return arb(0) if self.exact.loss == sp.oo else -(-super().loss).exp()

    def values(self, x: Any, *, analytic: bool = False) -> tuple[Any, Any]:
        """Return balls around log Q and −W."""
        log_q, loss = super().values(x, analytic=analytic)
        return log_q, self.loss if self.is_flat else -(-loss).exp()


class _Ratio(Kind):
    """The law Q of one step with −W as its loss."""

    stretch_type = _RatioStretch

    def atoms(self) -> list[tuple[arb, arb]]:
        """Return mass and −W of the points that Q gives."""
        points = [(mass, -(-loss).exp()) for mass, loss in super().atoms()]
        return [*points, (self.infinite_atoms(), arb(0))]


@lru_cache(maxsize=16)
def _ratio_of(base: Pair) -> _Ratio:
    return _Ratio(base.reversed())


@lru_cache(maxsize=32)
def _restricted(base: Pair, log_mass: float) -> _Restricted:
    return _Restricted(_ratio_of(base), log_mass)


class _Restricted:
    """φ of Q on panels that leave out about a mass: its size, its values, how it falls."""

    def __init__(self, kind: Kind, log_mass: float) -> None:
        self.kind = kind
        self.panels = panels_of(kind, 0.0, 0.0, log_mass - _FOLDS)
        plain = Asked(arb(0), 0.0, log_mass - _FOLDS)
        with ctx.workprec(int(max(0.0, -log_mass) / _LN2) + _BITS):
            nodes = measure(kind, self.panels, [plain])
            self._outside = arb((1 - nodes.total(plain, 0)).upper()).max(arb(0))
        nodes_with_mass = [
            (w, x) for w, x in zip(nodes.weights, nodes.losses, strict=True) if w > 0
        ]
        self._logs = np.asarray([float(w.log().mid()) for w, _ in nodes_with_mass])
        self._ratios = np.minimum([-float(x.mid()) for _, x in nodes_with_mass], 1e300)

    def _tilted(self, tilt: float) -> tuple[float, float]:
        """Return about log φ(c) and −φ′/φ."""
        logs = self._logs - tilt * self._ratios
        weights = np.exp(logs - logs.max())
        total = float(weights.sum())
        return float(logs.max()) + math.log(total), float(weights @ self._ratios) / total

    def log_at(self, tilt: float) -> float:
        """Return about log φ(c)."""
        return self._tilted(tilt)[0]

    def saddle(self, steps: int, level: float, least: float) -> float:
        """Return about where e^{cK} φ(c)^t/c² is least, or a least c."""

        def falls(c: float) -> bool:
            return level - steps * self._tilted(c)[1] <= 2.0 / c

        low = high = least
        while falls(high) and high < least * _FARTHEST:
            low, high = high, 2.0 * high
        for _ in range(_HALVINGS if high > low else 0):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if falls(middle) else (low, middle)
        return high

    def outside(self, scale: float) -> arb:
        """Bound what a value of φ e^{−scale} lacks."""
        return arb((self._outside * (-arb(scale)).exp()).upper())


@lru_cache(maxsize=16)
def _values(
    law: _Restricted, tilt: float, scale: float, h: float, number: int, bits: int
) -> tuple[list[acb], arb]:
    """Return φ(c + iv) e^{−scale} at v = 0, h, …, (number)h, and what φ(2c) is at most."""
    with ctx.workprec(bits + _BITS):
        twice = law.log_at(2 * tilt)
        main = Asked(arb(tilt), scale, -bits * _LN2, (number + 1) * h)
        side = Asked(arb(2 * tilt), twice, -6 * LN10)
        nodes = measure(law.kind, law.panels, [main, side])
        error = arb((nodes.errors[0] + law.outside(scale)).upper())
        line = walk(nodes.weighted(main), nodes.losses, error, arb(h))
        above = (nodes.total(side, 1) + law.outside(twice)) * arb(twice).exp()
        return list(islice(line, number + 1)), arb(above.upper())


def _terms(
    law: _Restricted, tilt: float, scale: float, steps: int, h: float, log_goal: float
) -> tuple[int, arb]:
    """Return after how many terms the rest is proved to be negligible, and bound it."""
    few, log_each = steps < _MANY, log_goal / steps
    log_share = log_each - 2.0 if few else math.log(-0.02 * math.expm1(log_each))
    log_share = max(_rounded_down(log_share), _LEAST_SHARE)
    fall = _falling(law, tilt, scale, log_share, _ORDERS if few else 0)
    outside = up(law.outside(scale))

    def log_beyond(number: int) -> float:
        size = fall.at(h * (number + 1) * (1 - 1e-12)) + outside
        return steps * (math.log(size) + 1e-12) - math.log(math.pi * h * number)

    low, high = 0, 8
    while log_beyond(high) > log_goal:
        low, high = high, 2 * high
        if high > _MOST_FREQUENCIES:
            raise AccuracyError(
                "the transform of the likelihood ratio falls too slowly to certify so many digits; "
                "ask for fewer digits, or more steps"
            )
    while high - low > max(1, low // 64):
        middle = (low + high) // 2
        low, high = (middle, high) if log_beyond(middle) > log_goal else (low, middle)
    return high, arb(log_beyond(high) + 1e-9).exp()


@lru_cache(maxsize=16)
def _falling(law: _Restricted, tilt: float, scale: float, log_share: float, orders: int) -> Falling:
    moment = Asked(arb(tilt), scale, log_share - 3.0)
    with ctx.workprec(int(-log_share / _LN2) + _BITS):
        total = measure(law.kind, law.panels, [moment]).total(moment, 0)
        single = single_losses(law.kind, law.panels, moment)
        share = math.exp(log_share)
        return Falling(law.kind, law.panels, tilt, scale, total, single, share, orders)
