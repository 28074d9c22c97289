"""δ(ε) by one sum on a vertical line, every error bounded: the theorem that a plan is put into.

With the loss L = log p(X)/q(X), X drawn from P, S the sum of all losses and M(z) = E e^{zS},

    δ(ε) = E g(S − ε),    g(s) = max(0, 1 − e^{−s}).

As ∫ g(s) e^{−zs} ds = 1/(z(z + 1)) for Re z > 0, Poisson's formula for s ↦ e^{−ts} E g(S − ε + s)
gives, for any t > 0 and Λ > 0, at z_k = t + 2πik/Λ

    (1/Λ) Σ_k M(z_k) e^{−εz_k}/(z_k(z_k + 1)) = Σ_m e^{−tmΛ} E g(S − ε + mΛ).

No term on the right is negative and that of m = 0 is δ(ε).  As g(s) ≤ e^{bs} b^b/(1 + b)^{1+b} for
any b ≥ 0 [SPA (43)], those of m ≠ 0 are two geometric series, by M at a b below and at a b above t.
Between the poles, for −1 < t < 0, the same sum is that of E min(1, e^{ε−S}) = 1 − δ with a minus
sign, and min(1, e^{−s}) ≤ e^{bs} for −1 ≤ b ≤ 0.

**Panels.**  All this holds for the law restricted to panels.  What lies outside counts as an
infinite loss above and as nothing below, at most Σ nᵢ (1 − Pᵢ(panels)): nothing of tails has to be
known.  **Beyond the last term** |M(z)| ≤ B for |y| ≥ h(N + 1), h = 2π/Λ (see `falling`), and
Σ_{k>N} 1/|z_k(z_k + 1)| is at most 1/(h²N).  Where all losses lie on a lattice see `lattice`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from flint import acb, arb, ctx

from symdp.emit.exact import LN10
from symdp.errors import AccuracyError
from symdp.prove.falling import Falling
from symdp.prove.kind import Kinds
from symdp.prove.measure import Asked, Panels, infinite_mass, measure, single_losses, walk
from symdp.prove.plan import Plan, Scales
from symdp.prove.work import spare_products

SPARE_DIGITS = 3.0  # of an integral beyond those of the sum
SPARE_BITS = 40  # beyond the digits of an integral
_MOST_TERMS = 40_000  # of the sum: more cost as much as a mesh
_MOST_BITS = 5_000  # of a mass: 1e-1400 is left out
# Of each step's |M|: where it must fall below, integrations by parts show it, more for many digits.
_LOW, _ORDERS, _MORE_ORDERS, _MANY_DIGITS = 0.25, 3, 8, 12.0
# What is said where the law has too little mass above ε, or |M| too much far out.
_TOO_SMALL = "log δ is about {:.3g}: too small a δ to certify"
# The same of |M|.
TOO_SLOW = (
    "the characteristic function of the loss falls too slowly to certify so many digits; ask for "
    "fewer digits, or compose more steps"
)


@dataclass(frozen=True)
class Masses:
    """P of the panels and of infinite losses, for each kind, and of neither, for all steps."""

    finite: tuple[arb, ...]
    infinite: tuple[arb, ...]
    counts: tuple[int, ...]
    outside: arb

    @property
    def infinity(self) -> arb:
        """Enclose the probability that some loss is known to be infinite."""
        pairs = zip(self.infinite, self.counts, strict=True)
        return -sum((n * (-step_mass).log1p() for step_mass, n in pairs), arb(0)).expm1()

    @property
    def inside(self) -> arb:
        """Enclose the probability that all losses are finite and on panels."""
        product = arb(1)
        for step_mass, count in zip(self.finite, self.counts, strict=True):
            product *= step_mass**count
        return product


def masses(kinds: Kinds, panels: Sequence[Sequence[Panels]], log_error: float) -> Masses:
    """Enclose masses to an absolute error."""
    count = sum(n for _, n in kinds)
    log_step_error = log_error - math.log(4.0 * count)
    bits = int(-log_step_error / math.log(2)) + SPARE_BITS
    if bits > _MOST_BITS and any(kind.stretches for kind, _ in kinds):
        raise AccuracyError(_TOO_SMALL.format(log_error))
    finite = []
    infinite = []
    outside = arb(0)
    with ctx.workprec(bits):
        plain = Asked(arb(0), 0.0, log_step_error)
        for (kind, n), step_panels in zip(kinds, panels, strict=True):
            infinite.append(infinite_mass(kind, step_panels, log_step_error))
            if not kind.stretches:  # a list is the whole law
                finite.append(1 - infinite[-1])
                continue
            finite.append(measure(kind, step_panels, [plain]).total(plain, 0))
            outside += n * (1 - finite[-1] - infinite[-1]).upper().max(arb(0))
    return Masses(tuple(finite), tuple(infinite), tuple(n for _, n in kinds), arb(outside.upper()))


class Line:
    """The sum of a plan, which serves every ε: its values do not depend on it."""

    def __init__(self, kinds: Kinds, plan: Plan, epsilon: float, digits: float) -> None:
        self.kinds = kinds
        self.plan = plan
        self.digits = digits
        count = sum(n for _, n in kinds)
        self._log_each = -(digits + SPARE_DIGITS) * LN10 - math.log(count)
        self.bits = int(-self._log_each / math.log(2)) + SPARE_BITS
        self.bits += int(math.log2(2.0 + abs(epsilon) + plan.period))
        self.masses = masses(kinds, plan.panels, min(plan.log_size, 0.0) - digits * LN10 - 1.0)
        self._log_goal = -(digits + 0.5) * LN10
        self.terms = self._find_terms()
        with ctx.workprec(self.bits):
            self._values, self._sides = self._evaluate()

    @cached_property
    def spacing(self) -> arb:
        """h = 2π/Λ."""
        return 2 * arb.pi() / arb(self.plan.period)

    def _asked(self, scales: Scales, reach: float) -> list[Asked]:
        plan = self.plan
        return [
            Asked(arb(plan.tilt), scales.tilt, self._log_each, reach),
            Asked(arb(plan.below), scales.below, -3 * LN10),
            Asked(arb(plan.above), scales.above, -3 * LN10),
        ]

    def _find_terms(self) -> int:
        """Return after how many terms the rest is proved to be negligible."""
        plan = self.plan
        count = sum(n for _, n in self.kinds)
        h = 2 * math.pi / plan.period
        # The sum is about its term at the real axis, over the width of the saddle.
        top = (
            -math.log(abs(plan.tilt * (1 + plan.tilt)))
            - 0.5 * math.log(2 * math.pi * plan.curvature)
            + math.log(plan.period)
        )
        dense = sum(n for kind, n in self.kinds if not kind.is_discrete)
        step_bound = math.exp(max(self._log_goal / max(dense, 1), -40.0))
        orders = 0
        if step_bound < _LOW:
            orders = _ORDERS if self.digits < _MANY_DIGITS else _MORE_ORDERS
        self.falls: list[Falling] = []
        with ctx.workprec(80 + count.bit_length()):
            for (kind, _), step_panels, scale in zip(
                self.kinds, plan.panels, plan.scales, strict=True
            ):
                moments = [Asked(arb(plan.tilt), scale.tilt, -8 * LN10 - math.log(count))]
                nodes = measure(kind, step_panels, moments)
                atoms = single_losses(kind, step_panels, moments[0])
                share = 0.1 * step_bound if orders else 0.02 * (1 - step_bound)
                total = nodes.total(moments[0], 0)
                self.falls.append(
                    Falling(kind, step_panels, plan.tilt, scale.tilt, total, atoms, share, orders)
                )

        def log_beyond(terms: int) -> float:
            y = h * (terms + 1) * (1 - 1e-12)
            size = sum(
                n * math.log(fall.at(y))
                for (_, n), fall in zip(self.kinds, self.falls, strict=True)
            )
            return size + math.log(2 / (h * h * terms))

        wanted = self._log_goal + top + max(plan.log_size - plan.log_finite, 0.0)
        low, high = 0, 8
        while log_beyond(high) > wanted:
            low, high = high, 2 * high
            if low >= _MOST_TERMS:
                raise AccuracyError(TOO_SLOW)
        while high - low > max(1, low // 16):
            middle = (low + high) // 2
            low, high = (middle, high) if log_beyond(middle) > wanted else (low, middle)
        if high > _MOST_TERMS:
            raise AccuracyError(TOO_SLOW)
        self._log_beyond = log_beyond(high)
        return high

    def _evaluate(self) -> tuple[list[acb], tuple[arb, arb]]:
        """Return Π (e^{−scale}M_i(z_k))^{n_i}, and about log M below and above, less the scales."""
        reach = float(self.spacing.upper()) * self.terms * (1 + 1e-9)
        values = [acb(1)] * (self.terms + 1)
        sides = [arb(0), arb(0)]
        for (kind, count), step_panels, scales in zip(
            self.kinds, self.plan.panels, self.plan.scales, strict=True
        ):
            moments = self._asked(scales, reach)
            nodes = measure(kind, step_panels, moments)
            weights = nodes.weighted(moments[0])
            spare_products(self.terms * len(nodes.losses))
            line = walk(weights, nodes.losses, nodes.errors[0], self.spacing)
            for k, value in enumerate(islice(line, self.terms + 1)):
                values[k] *= value**count
            for side in (0, 1):
                total = arb(nodes.total(moments[side + 1], side + 1).upper())
                sides[side] += count * (total.log() + scales[side + 1])
        return values, (arb(sides[0].upper()), arb(sides[1].upper()))

    @cached_property
    def _scale(self) -> arb:
        pairs = zip(self.plan.scales, self.kinds, strict=True)
        return sum((arb(scales.tilt) * n for scales, (_, n) in pairs), arb(0))

    def delta(self, epsilon: arb) -> arb:
        """Enclose δ(ε)."""
        plan, tilt = self.plan, arb(self.plan.tilt)
        with ctx.workprec(self.bits):
            turn = (acb(0, -epsilon * self.spacing)).exp()
            total = arb(0)
            rotation = acb(1)
            for k, value in enumerate(self._values):
                if k % 64 == 0:
                    rotation = acb(0, -epsilon * self.spacing * k).exp()
                z = acb(tilt, self.spacing * k)
                term = (value * rotation / (z * (z + 1))).real
                total += term if k == 0 else 2 * term
                rotation *= turn
            beyond = arb(math.nextafter(self._log_beyond, math.inf)).exp() * (1 + arb(1e-9))
            front = (self._scale - tilt * epsilon).exp() / arb(plan.period)
            added = arb(0)
            for b, log_moment in zip((plan.below, plan.above), self._sides, strict=True):
                log_fall = -abs(tilt - arb(b)) * arb(plan.period)
                log_bound = log_moment - arb(b) * epsilon + log_fall + log_payoff(arb(b))
                added += log_bound.exp() / -log_fall.expm1()
            whole = front * (total + arb(0, beyond))
            aliases = arb(0).union(arb(added.upper()))
            signed = whole if plan.is_right else -whole
            ball = arb(signed - aliases)
        with ctx.workprec(max(self.bits, 64) + _bits_of(plan.log_size)):
            law_masses = self.masses
            if not plan.is_right:
                ball = law_masses.inside - ball.max(arb(0))
            ball = ball.max(arb(0)) + law_masses.infinity
            return ball + arb(0).union(law_masses.outside)


def _bits_of(log_size: float) -> int:
    return int(max(0.0, -log_size) / math.log(2))


def log_payoff(b: arb) -> arb:
    """Return log(b^b/(1 + b)^{1+b}) for b ≥ 0, and 0 between the poles."""
    if not b > 0:
        return arb(0)
    return b * b.log() - (1 + b) * (1 + b).log()
