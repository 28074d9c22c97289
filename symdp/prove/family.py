"""δ(ε) of laws that are known by M alone, between two sums in which nothing far out counts.

Let Ξ be normal of mean τ²/2 and variance τ², and U = S + Ξ: the loss of the same steps and one
more, of a little normal noise. So δ_U(ε) ≥ δ(ε), and what it exceeds it by is bounded as on a mesh
(see `mesh`, whose Ξ has the moments of this one at most): with b = τ/2 ≤ 1/5

    δ_U(ε) − E V(U) ≤ δ(ε) ≤ δ_U(ε),    V(u) = C e^{−(u−ε)²/4τ²},
    C = τ (√(1 + b²) + b) e^{(1 + b²)/4}/2.

E e^{zU} = M(z) e^{τ²z(z+1)/2} dies out whatever M does, as |M(t + iy)| ≤ M(t). Both terms are sums
on a line (see `line`), the second one by

    e^{−x²/4τ²} = (τ/√π) ∫ e^{τ²z² + zx} dy,    z = t + iy.

Poisson's formula has no negative term in either, so that each sum is an upper bound, and of the
first the aliases are subtracted.

**Losses on a lattice** of spacing h need no Ξ: with Λ = Nh the sum over k is one over a period,

    (1/N) Σ_{k<N} M(z_k) (e^{−z_k ℓ}/(1 − e^{−z_k h}) − e^{ε−(1+z_k)ℓ}/(1 − e^{−(1+z_k)h})),

ℓ the first value above ε, and the aliases are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from flint import acb, arb, ctx

from symdp.emit.exact import LN10, fraction_ball
from symdp.errors import AccuracyError, InputError
from symdp.numeric.laws.family import FamilyLaw
from symdp.numeric.total import SumLaw
from symdp.prove.line import constant_of_noise, log_payoff
from symdp.prove.plan import find_saddle, period_of
from symdp.tolerances import SUM_BITS

_LEAST, _DIGITS = 4, 8.0  # at least and at most, as each takes three times as many terms
_MOST_TERMS = 30_000  # of a sum: two seconds
_WIDEST = 0.4  # τ, so that b ≤ 1/5
_LACKING = 2.3  # ∫V, in τ²


def enclose_known(steps: Sequence[tuple[Any, int]], exact: Fraction, digits: int) -> arb:
    """Enclose δ(ε) of steps that are known by M, to four digits at least."""
    laws = [(law, count) for law, count in steps if isinstance(law, FamilyLaw)]
    if len(laws) < len(steps):
        raise InputError(
            "steps that are known by their log-partition function are certified by themselves: "
            "here are others beside them"
        )
    law = SumLaw(laws)
    epsilon = float(exact)
    if epsilon >= law.loss_bounds[1]:
        raise AccuracyError("the largest loss is not proved of what is known by its transform")
    saddle = find_saddle(law, epsilon)
    if saddle is None:
        raise AccuracyError("no t > 0 was found at which the CGF of the loss is finite")
    log_size = min(saddle.log_size, 0.0)
    tilt = saddle.tilt
    lattice = laws[0][0].lattice if len(laws) == 1 else None
    wanted = float(digits)
    if not lattice:
        wanted = min(wanted, _DIGITS)
    log_goal = log_size - (wanted + 1.0) * LN10
    below, above, length = period_of(law, epsilon, tilt, log_goal)
    sides = (arb(below), arb(above))
    if lattice:
        efolds = abs(log_size) + wanted * LN10
        bits = SUM_BITS + int(efolds / math.log(2.0)) + law.count.bit_length()
        with ctx.workprec(bits):
            start, step = lattice
            number = math.ceil(length / abs(float(step))) + 1
            period = abs(step) * number
            sums = _MomentSums(laws, fraction_ball(exact), arb(0), arb(tilt), period)
            return sums.on_lattice(number, start, step, sides)
    # The density of the loss at ε is about t(1 + t) times δ.
    length_at_tilt = _LACKING * tilt * (1.0 + tilt)
    tau = math.sqrt(10.0**-wanted / length_at_tilt)
    log_kernel = math.log(1.0 + 1.0 / tilt)
    efolds = (wanted + 2.0) * LN10 + log_kernel + 4.0
    reach = math.sqrt(2.0 * efolds)
    least_tau = reach * length / (2.0 * math.pi * _MOST_TERMS)
    tau = min(max(tau, least_tau), _WIDEST)
    terms = math.ceil(reach / tau * length / (2.0 * math.pi))
    if terms > 2 * _MOST_TERMS:
        raise AccuracyError("so many terms would take minutes to certify; ask for a larger epsilon")
    size_bits = int(abs(log_size) / math.log(2.0))
    bits = SUM_BITS + size_bits + law.count.bit_length()
    with ctx.workprec(bits):
        length_ball = arb(length)
        sums = _MomentSums(laws, fraction_ball(exact), arb(tau), arb(tilt), length_ball)
        ball = sums.ball(terms, sides)
        widest = ball.lower() * arb(10) ** -min(digits, _LEAST)
        if not 2 * ball.rad() < widest:
            raise AccuracyError("the enclosure stays too wide; compose more steps")
        return ball


class _MomentSums:
    """Both sums on a line."""

    def __init__(
        self,
        laws: Sequence[tuple[FamilyLaw, int]],
        epsilon: arb,
        tau: arb,
        tilt: arb,
        length: arb,
    ) -> None:
        self._laws = laws
        self._epsilon = epsilon
        self._tau = tau
        self._tilt = tilt
        self._length = length

    def _log_moment(self, z: acb) -> acb:
        """Enclose log M of all steps and the normal one, less zε."""
        total = acb(0)
        for law, count in self._laws:
            total = total + count * law.at(z)
        normal = self._tau**2 * z * (z + 1) / 2
        return acb(total + normal - z * self._epsilon)

    def ball(self, terms: int, sides: tuple[arb, arb]) -> arb:
        """Enclose δ(ε) by so many terms, the aliases bounded by moments at two tilts."""
        tau = self._tau
        tilt = self._tilt
        h = 2 * arb.pi() / self._length
        payoff = arb(0)
        near = arb(0)
        for k in range(terms + 1):
            z = acb(tilt, h * k)
            log_value = self._log_moment(z)
            weight = 1 if k == 0 else 2
            kernel = z * (z + 1)
            payoff += weight * (log_value.exp() / kernel).real
            smoothed = (log_value + (tau * z) ** 2).exp()
            near += weight * smoothed.real
        # |M(t + iy)| ≤ M(t) beyond the last term.
        y = h * terms
        square = (tau * y) ** 2
        top = self._log_moment(acb(tilt)).real.exp()
        decay = (-square / 2).exp()
        beyond = 2 * top * decay / (h * y)
        payoff += arb(0, beyond.upper())
        fall = 3 * square / 2
        smoothed_fall = ((tau * tilt) ** 2 - fall).exp()
        near += 2 * top * smoothed_fall / (2 * fall / y * h)
        front = constant_of_noise(tau)
        lacking = front * tau / arb.pi().sqrt() * h * near
        upper = payoff / self._length
        lower = upper - self._alias_bound(sides) - lacking.upper()
        return self._ball_between(lower, upper)

    def on_lattice(self, number: int, start: arb, step: arb, sides: tuple[arb, arb]) -> arb:
        """Enclose δ(ε) where every loss is `start` and a whole number of steps."""
        _, count = self._laws[0]
        epsilon = self._epsilon
        first = count * start
        h = abs(step)
        steps_above = math.ceil(float((epsilon - first) / h))
        least = first + steps_above * h
        gap = epsilon - least
        total = arb(0)
        for k in range(number // 2 + 1):
            y = 2 * arb.pi() * k / self._length
            z = acb(self._tilt, y)
            value = (self._log_moment(z) + z * gap).exp()
            at_z = 1 - (-z * h).exp()
            at_next = 1 - (-(1 + z) * h).exp()
            share = 1 / at_z
            share -= gap.exp() / at_next
            weight = 1 if k == 0 or 2 * k == number else 2
            total += weight * (value * share).real
        upper = total / number
        # The value next to ε may lie on either side of it, where it adds nothing.
        near = arb(0)
        if gap.contains(0):
            near = arb(0, abs(gap).upper())
        lower = upper - self._alias_bound(sides) + near
        return self._ball_between(lower, upper + near)

    def _alias_bound(self, sides: tuple[arb, arb]) -> arb:
        total = arb(0)
        for side in sides:
            log_fall = -abs(self._tilt - side) * self._length
            log_moment = self._log_moment(acb(side)).real
            log_bound = log_moment + log_fall + log_payoff(side)
            total += log_bound.exp() / -log_fall.expm1()
        return arb(total.upper())

    @staticmethod
    def _ball_between(lower: arb, upper: arb) -> arb:
        low = arb(lower.lower()).max(arb(0))
        high = arb(upper.upper()).min(arb(1))
        return low.union(high)
