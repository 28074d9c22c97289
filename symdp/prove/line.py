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
        log_finite = arb(0)
        for mass, count in zip(self.infinite, self.counts, strict=True):
            log_finite = log_finite + count * (-mass).log1p()
        return -log_finite.expm1()

    @property
    def inside(self) -> arb:
        """Enclose the probability that all losses are finite and on panels."""
        product = arb(1)
        for step_mass, count in zip(self.finite, self.counts, strict=True):
            product *= step_mass**count
        return product


def masses(
    kinds: Kinds,
    panels: Sequence[Sequence[Panels]],
    log_error: float,
    beyond: Sequence[Sequence[Panels]] | None = None,
) -> Masses:
    """Enclose masses to an absolute error; losses on panels beyond count as infinite."""
    counts = tuple(n for _, n in kinds)
    log_step_error = log_error - math.log(4.0 * sum(counts))
    log_bits = -log_step_error / math.log(2)
    bits = int(log_bits) + SPARE_BITS
    if bits > _MOST_BITS and any(kind.stretches for kind, _ in kinds):
        raise AccuracyError(_TOO_SMALL.format(log_error))
    finite = []
    infinite = []
    outside = arb(0)
    with ctx.workprec(bits):
        plain = Asked(arb(0), 0.0, log_step_error)
        beyond = beyond or [()] * len(kinds)
        for (kind, n), step_panels, far_panels in zip(kinds, panels, beyond, strict=True):
            infinite_part = infinite_mass(kind, step_panels, log_step_error)
            if far_panels:
                infinite_part += measure(kind, far_panels, [plain]).total(plain, 0)
            infinite.append(infinite_part)
            if not kind.stretches:  # a list is the whole law
                finite.append(1 - infinite_part)
                continue
            finite_part = measure(kind, step_panels, [plain]).total(plain, 0)
            finite.append(finite_part)
            lacking = (1 - finite_part - infinite_part).upper()
            outside += n * lacking.max(arb(0))
    return Masses(tuple(finite), tuple(infinite), counts, arb(outside.upper()))


class Line:
    """The sum of a plan, which serves every ε: its values do not depend on it."""

    def __init__(self, kinds: Kinds, plan: Plan, epsilon: float, digits: float) -> None:
        self.kinds = kinds
        self.plan = plan
        self.digits = digits
        self._count = sum(n for _, n in kinds)
        self._log_each = -(digits + SPARE_DIGITS) * LN10 - math.log(self._count)
        log_bits = -self._log_each / math.log(2)
        size = 2.0 + abs(epsilon) + plan.period
        self.bits = int(log_bits) + SPARE_BITS
        self.bits += int(math.log2(size))
        log_mass_error = min(plan.log_size, 0.0) - digits * LN10 - 1.0
        self.masses = masses(kinds, plan.panels, log_mass_error)
        self._log_goal = -(digits + 0.5) * LN10
        self.terms = self._find_terms()
        with ctx.workprec(self.bits):
            self._values, self._sides = self._values_and_sides()

    @cached_property
    def spacing(self) -> arb:
        """h = 2π/Λ."""
        return 2 * arb.pi() / arb(self.plan.period)

    def _moments_at(self, scales: Scales, reach: float) -> list[Asked]:
        plan = self.plan
        return [
            Asked(arb(plan.tilt), scales.tilt, self._log_each, reach),
            Asked(arb(plan.below), scales.below, -3 * LN10),
            Asked(arb(plan.above), scales.above, -3 * LN10),
        ]

    def _find_terms(self) -> int:
        """Return after how many terms the rest is proved to be negligible."""
        plan = self.plan
        h = 2 * math.pi / plan.period
        # The sum is about its term at the real axis, over the width of the saddle.
        kernel = abs(plan.tilt * (1 + plan.tilt))
        log_kernel = -math.log(kernel)
        log_width = 0.5 * math.log(2 * math.pi * plan.curvature)
        top = log_kernel - log_width + math.log(plan.period)
        above_finite = max(plan.log_size - plan.log_finite, 0.0)
        wanted = self._log_goal + top + above_finite
        self.falls = self._falls_of_steps()

        def log_beyond(terms: int) -> float:
            y = h * (terms + 1) * (1 - 1e-12)
            size = 0.0
            for (_, n), fall in zip(self.kinds, self.falls, strict=True):
                size += n * math.log(fall.at(y))
            return size + math.log(2 / (h * h * terms))

        low = 0
        high = 8
        while log_beyond(high) > wanted:
            low = high
            high = 2 * high
            if low >= _MOST_TERMS:
                raise AccuracyError(TOO_SLOW)
        while high - low > max(1, low // 16):
            middle = (low + high) // 2
            if log_beyond(middle) > wanted:
                low = middle
            else:
                high = middle
        if high > _MOST_TERMS:
            raise AccuracyError(TOO_SLOW)
        self._log_beyond = log_beyond(high)
        return high

    def _falls_of_steps(self) -> list[Falling]:
        """Return how |M| of each kind falls, by layers or by parts as far as it has to."""
        plan = self.plan
        dense = sum(n for kind, n in self.kinds if not kind.is_discrete)
        log_bound = self._log_goal / max(dense, 1)
        step_bound = math.exp(max(log_bound, -40.0))
        orders = 0
        share = 0.02 * (1 - step_bound)
        if step_bound < _LOW:
            orders = _ORDERS if self.digits < _MANY_DIGITS else _MORE_ORDERS
            share = 0.1 * step_bound
        falls = []
        log_error = -8 * LN10 - math.log(self._count)
        with ctx.workprec(80 + self._count.bit_length()):
            steps = zip(self.kinds, plan.panels, plan.scales, strict=True)
            for (kind, _), step_panels, scale in steps:
                moment = Asked(arb(plan.tilt), scale.tilt, log_error)
                nodes = measure(kind, step_panels, [moment])
                fall = Falling(
                    kind,
                    step_panels,
                    plan.tilt,
                    scale.tilt,
                    total=nodes.total(moment, 0),
                    atoms=single_losses(kind, step_panels, moment),
                    share=share,
                    orders=orders,
                )
                falls.append(fall)
        return falls

    def _values_and_sides(self) -> tuple[list[acb], tuple[arb, arb]]:
        """Return Π (e^{−scale}M_i(z_k))^{n_i}, and about log M below and above, less the scales."""
        plan = self.plan
        reach = float(self.spacing.upper()) * self.terms * (1 + 1e-9)
        values = [acb(1)] * (self.terms + 1)
        log_below = arb(0)
        log_above = arb(0)
        steps = zip(self.kinds, plan.panels, plan.scales, strict=True)
        for (kind, count), step_panels, scales in steps:
            at_tilt, at_below, at_above = self._moments_at(scales, reach)
            nodes = measure(kind, step_panels, [at_tilt, at_below, at_above])
            weights = nodes.weighted(at_tilt)
            spare_products(self.terms * len(nodes.losses))
            line = walk(weights, nodes.losses, nodes.errors[0], self.spacing)
            for k, value in enumerate(islice(line, self.terms + 1)):
                values[k] *= value**count
            below = arb(nodes.total(at_below, 1).upper())
            above = arb(nodes.total(at_above, 2).upper())
            log_below += count * (below.log() + scales.below)
            log_above += count * (above.log() + scales.above)
        return values, (arb(log_below.upper()), arb(log_above.upper()))

    @cached_property
    def _sum_of_scales(self) -> arb:
        total = arb(0)
        counts = [n for _, n in self.kinds]
        for scales, n in zip(self.plan.scales, counts, strict=True):
            total = total + arb(scales.tilt) * n
        return total

    def delta(self, epsilon: arb) -> arb:
        """Enclose δ(ε)."""
        plan = self.plan
        tilt = arb(plan.tilt)
        period = arb(plan.period)
        with ctx.workprec(self.bits):
            turn = (acb(0, -epsilon * self.spacing)).exp()
            total = arb(0)
            rotation = acb(1)
            for k, value in enumerate(self._values):
                if k % 64 == 0:
                    rotation = acb(0, -epsilon * self.spacing * k).exp()
                z = acb(tilt, self.spacing * k)
                kernel = z * (z + 1)
                term = (value * rotation / kernel).real
                if k:
                    term = 2 * term
                total += term
                rotation *= turn
            log_beyond = arb(math.nextafter(self._log_beyond, math.inf))
            beyond = log_beyond.exp() * (1 + arb(1e-9))
            front = (self._sum_of_scales - tilt * epsilon).exp() / period
            whole = front * (total + arb(0, beyond))
            added = arb(0)
            sides = zip((plan.below, plan.above), self._sides, strict=True)
            for b, log_moment in sides:
                side = arb(b)
                log_fall = -abs(tilt - side) * period
                log_bound = log_moment - side * epsilon + log_fall + log_payoff(side)
                added += log_bound.exp() / -log_fall.expm1()
            aliases = arb(0).union(arb(added.upper()))
            signed = whole if plan.is_right else -whole
            ball = arb(signed - aliases)
        size_bits = int(max(0.0, -plan.log_size) / math.log(2))
        with ctx.workprec(max(self.bits, 64) + size_bits):
            law_masses = self.masses
            if not plan.is_right:
                ball = law_masses.inside - ball.max(arb(0))
            ball = ball.max(arb(0)) + law_masses.infinity
            return ball + arb(0).union(law_masses.outside)


def log_payoff(b: arb) -> arb:
    """Return log(b^b/(1 + b)^{1+b}) for b ≥ 0, and 0 between the poles."""
    if not b > 0:
        return arb(0)
    return b * b.log() - (1 + b) * (1 + b).log()


def constant_of_noise(deviation: arb) -> arb:
    """Return C of V(u) = C e^{−(u−ε)²/4τ²}, what noise of deviation τ adds to δ(ε) (see `mesh`)."""
    b = deviation / 2
    width = deviation * ((1 + b**2).sqrt() + b) / 2
    return width * ((1 + b**2) / 4).exp()
