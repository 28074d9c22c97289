r"""δ(ε) of one epoch of random allocation from the transform of its likelihood ratio, in balls.

W = P/Q of one step, Y the sum of t independent copies under Q, and φ(u) = E_Q e^{−uW}. Both
directions are F(K) = E_Q (K − Y)⁺ at one K each, as what Q never gives counts in full:

    remove: δ(ε) = F(t e^ε)/t + 1 − e^ε,        add: δ(ε) = e^ε F(t e^{−ε})/t.

For every c > 0,

.. math::

   F(K) = \frac{1}{2\pi i} \int_{c - i\infty}^{c + i\infty} \frac{e^{uK} \varphi(u)^t}{u^2}\, du.

**What the rule adds.**  With the spacing 2π/T the trapezoidal rule gives Σ_k e^{−ckT} F(K + kT)
[Poisson's summation].  At k > 0 there is at most e^{−cT}(K + T)/(1 − e^{−cT})², as F(y) ≤ y.  At
k < 0 there is nothing for T ≥ K; elsewhere F(y) ≤ e^{ay} φ(a)^t/(ae) for every a > 0, and with
a = 2c the sum is at most e^{2cK} φ(2c)^t/(2ce) · e^{−cT}/(1 − e^{−cT}).  So T need only be long
beside what Y varies by.

**What lies beyond the last node.**  Where |φ(c + iv)| ≤ B for all v ≥ V, the nodes left out add at
most e^{cK} B^t/(πV).  Integration by parts over the density of W, as often as serves best, gives B.

**What the quadrature of φ lacks** is a part of the ball around each of its values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp
from flint import acb, arb, ctx

from symdp.certify.estimate import log_delta_of_one
from symdp.certify.infinity import is_beyond, mass_at_infinity
from symdp.certify.ratio_transform import ratio_transform, rounded_up, short
from symdp.emit.exact import LN10, fraction_ball, real_ball
from symdp.errors import AccuracyError
from symdp.law.allocation import listed_masses
from symdp.model.allocation import MOST_OUTCOMES, AllocatedPair, OneStep, outcomes
from symdp.prove.work import limited

if TYPE_CHECKING:
    from symdp.certify.ratio_transform import RatioTransform

_LN2 = math.log(2)  # e-folds of a bit
_FIRST_SIZE, _FIRST_DIGITS = -10.0, 2.0  # log δ and digits of a first look
_GROWTH = 2.5  # times that log δ is, where a look shows no digit
_TRIES = 8  # looks; the last ones reach beyond δ = 1e-1000
_SPARE = 0.7  # digits beyond those asked, which the errors share
_BITS = 64  # carried beyond the digits
_SHARES = math.log(8)  # e-folds by which each error is below the goal
_PERIODS = 1.5  # T/K at first: costs change little from 1.2 to 3
_MORE_HEIGHT = 0.3  # of cT, that e^{cK} φ(c)^t may grow by for half the period
_COARSE = 64  # bits of what decides about costs alone
_LEVEL_BITS, _DEPTH_STEP = 4, 2.0  # of K, and of cT
_MOST_FREQUENCIES = 100_000  # nodes of the integral: half a minute


def enclose_epochs(steps: Sequence[tuple[OneStep, int]], epsilon: Fraction, digits: int) -> arb:
    """Enclose δ(ε) of a composition that holds an epoch of random allocation.

    Raises
    ------
    AccuracyError
        If there is more than that one epoch.
    """
    (pair, count), *others = steps
    if others or count > 1 or not isinstance(pair, AllocatedPair):
        raise AccuracyError(
            "one epoch of random allocation is proved on its own, not composed with others; ask "
            "for one epoch, or for delta, whose error is an estimate"
        )
    return enclose_allocation(pair, epsilon, digits)


def enclose_allocation(pair: AllocatedPair, epsilon: float | Fraction, digits: int = 15) -> arb:
    """Enclose δ(ε) of one epoch.

    Parameters
    ----------
    epsilon
        In nats, taken exactly.
    digits
        The relative width is 10^(−digits).

    Raises
    ------
    AccuracyError
        If no proof of so many digits was found, as where atoms of P/Q keep φ from falling.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> from symdp.model.allocation import AllocatedPair
    >>> pair = AllocatedPair(mechanisms.gaussian(sigma=1).pair("remove"), 10, "remove")
    >>> bool(0.002782868 < enclose_allocation(pair, 1, 6) < 0.002782870)
    True
    """
    exact = Fraction(epsilon)
    if is_beyond([(pair, 1)], sp.Rational(exact.numerator, exact.denominator)):
        with ctx.workprec(4 * digits + _BITS):
            return mass_at_infinity([(pair, 1)], arb(10) ** -(2 * digits + 8))
    if pair.base.support.kind == "points":
        return _on_list(pair, exact, digits)
    transform = ratio_transform(pair.base)
    about = estimate_log_epoch(pair, float(exact))
    log_size, width = (_FIRST_SIZE, _FIRST_DIGITS) if about is None else (about, digits + _SPARE)
    with limited(digits):
        for _ in range(_TRIES):
            ball = _enclosed(transform, pair, exact, log_size - width * LN10)
            if ball > 0:
                with ctx.workprec(_COARSE):
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
            first, second = (
                (with_record, without) if pair.direction == "remove" else (without, with_record)
            )
            total += (first - share * second).max(arb(0))
        return total


def estimate_log_epoch(pair: AllocatedPair, epsilon: float) -> float | None:
    """Return about log δ(ε) of one epoch, None where the numeric law does not know it."""
    with suppress(AccuracyError):
        return log_delta_of_one(pair, epsilon)
    return None


def _enclosed(
    transform: RatioTransform, pair: AllocatedPair, exact: Fraction, log_goal: float
) -> arb:
    """Return δ(ε) as a ball of about so large a radius."""
    steps = pair.steps
    with ctx.workprec(int(max(0.0, -log_goal) / _LN2) + _BITS):
        epsilon = fraction_ball(exact)
        if pair.direction == "remove":
            goal = log_goal + math.log(steps) - _SHARES
            share = epsilon.exp()
            ball = shortfall(transform, steps, share * steps, goal) / steps + 1 - share
        else:
            goal = log_goal + math.log(steps) - float(exact) - _SHARES
            share = (-epsilon).exp()
            ball = shortfall(transform, steps, share * steps, goal) / (steps * share)
        return ball.max(arb(0)).min(arb(1))


def shortfall(transform: RatioTransform, steps: int, level: arb, log_goal: float) -> arb:
    """Enclose E (K − Y)⁺, every error about e^{log_goal}.

    Parameters
    ----------
    steps, level
        t and K > 0.

    Raises
    ------
    AccuracyError
        If |φ|^t does not fall so far.
    """
    tilt, length = _line(transform, steps, float(level), log_goal)
    c = real_ball(tilt)
    spacing = arb(2.0 * math.pi / length)
    added = _added(transform, steps, level, tilt, 2 * arb.pi() / spacing)
    scale = transform.log_at(tilt).mid()
    height = c * level + steps * scale
    last, beyond = transform.decay(tilt).reach(steps, log_goal - float(height))
    number = int(last / float(spacing)) + 1
    while not number * spacing >= last:
        number += 1
    if number > _MOST_FREQUENCIES:
        raise AccuracyError(
            "the transform of the likelihood ratio falls too slowly to certify so many digits; "
            "ask for fewer digits, or more steps"
        )
    log_size = float(height) - math.log(float(c))
    bits = math.ceil((log_size + math.log(steps) - log_goal) / _LN2) + 8
    bits = 16 * math.ceil(max(bits, 8) / 16)
    values = transform.values(tilt, spacing, number, bits)
    with ctx.workprec(bits + _BITS):
        total = acb(0)
        for index, value in enumerate(values[: number + 1]):
            v = index * spacing
            term = acb(0, v * level).exp() * value**steps / acb(c, v) ** 2
            total += term if index else term / 2
        # The bound is relative to φ(c)^t, the sum to e^{t·scale}.
        away = (steps * (transform.log_at(tilt) - scale)).exp()
        inner = total.real * spacing / arb.pi() + arb(0, (beyond * away).upper())
        return inner * height.exp() - arb(0).union(added)


def _line(
    transform: RatioTransform, steps: int, level: float, log_goal: float
) -> tuple[sp.Rational, float]:
    """Return c and the period T, which close questions share, and so the values of φ."""
    k = rounded_up(level, _LEVEL_BITS)
    depth = math.log((1.0 + _PERIODS) * k) + 1.0 - log_goal  # cT at which the rule adds so much
    depth = _DEPTH_STEP * math.ceil(depth / _DEPTH_STEP)
    tilt = short(transform.saddle(steps, k, depth / (_PERIODS * k)))
    period = max(k * (1.0 + 2.0**-30), depth / float(tilt))
    least = float(tilt) * k + steps * float(transform.log_at(tilt).mid())
    while True:
        half, other = 0.5 * period, short(max(float(tilt), 2.0 * depth / period))
        height = float(other) * k + steps * float(transform.log_at(other).mid())
        before = _log(_before(transform, steps, arb(k), other, arb(half)))
        if before > log_goal or height > least + _MORE_HEIGHT * depth:
            return tilt, period
        tilt, period = other, half


def _added(
    transform: RatioTransform, steps: int, level: arb, tilt: sp.Rational, period: arb
) -> arb:
    """Bound what the trapezoidal rule adds."""
    fall = (-real_ball(tilt) * period).exp()
    total = fall * (level + period) / (1 - fall) ** 2
    if not period >= level:
        total += _before(transform, steps, level, tilt, period)
    return arb(total.upper())


def _before(
    transform: RatioTransform, steps: int, level: arb, tilt: sp.Rational, period: arb
) -> arb:
    """Bound what it adds at k < 0."""
    c = real_ball(tilt)
    fall = (-c * period).exp()
    height = 2 * c * level + steps * transform.log_at(2 * tilt)
    return arb((height.exp() / (2 * c * arb.const_e()) * fall / (1 - fall)).upper())


def _log(size: arb) -> float:
    return float(size.log().mid()) if size > 0 else -math.inf
