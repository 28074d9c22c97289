"""The accountant that every emitted file holds: written once, translated into C and JavaScript.

M(z) = E exp(zL) of one step is a sum over Gauss nodes of the density, or over outcomes. δ is the
trapezoidal sum along Re z = t, the saddle point, of

    M(z)^n exp(−zε) / (z(z + 1)) / 2πi,

or a sum over one period where all losses lie on a lattice; ε is its inverse. The file keeps to what
`symdp.emit.standalone.translate` reads: numbers, vectors, records, loops over ranges.
"""

from __future__ import annotations

from symdp.emit.standalone.runtime.mechanism import LARGEST, LEAST
from symdp.emit.standalone.runtime.nodes import build
from symdp.emit.standalone.runtime.outline import FARTHEST, LOG_ROUNDING, LOST, ROUNDING, TINY, Law
from symdp.emit.standalone.runtime.primitives import (
    INFINITY,
    Vector,
    absolute,
    exp,
    expm1,
    fail,
    floor,
    isfinite,
    largest,
    log,
    log1p,
    maximum,
    minimum,
    size,
    sqrt,
    total,
    where,
)
from symdp.emit.standalone.runtime.sums import spacing, sum_line, sum_period, tilted_by

# ---- emitted from here on ----


def saddle(law: Law, epsilon: float, high: float) -> float:
    """Return the t at which log of the integrand is least, infinite beyond `high`."""
    a, b, t = 0.0, high, high
    for _ in range(100):
        at = tilted_by(law, t)
        rise = law.count * at.mean - epsilon - 1.0 / t - 1.0 / (1.0 + t)
        if t == high and rise < 0.0:
            return INFINITY
        if rise < 0.0:
            a = t
        else:
            b = t
        slope = law.count * at.variance + 1.0 / (t * t) + 1.0 / ((1.0 + t) * (1.0 + t))
        nearer = t - rise / slope
        if absolute(nearer - t) < 1e-6 * t:
            return nearer if nearer > a and nearer < b else t
        t = nearer if nearer > a and nearer < b else 0.5 * (a + b)
    return t


def log_escaped(law: Law) -> float:
    """Return log of the probability that a loss is infinite."""
    if law.escaped >= 1.0:
        return 0.0
    return log(-expm1(law.count * log1p(-law.escaped))) if law.escaped > 0.0 else -INFINITY


def log_sum(a: float, b: float) -> float:
    """Return log(e^a + e^b)."""
    most, least = maximum(a, b), minimum(a, b)
    return most if least == -INFINITY else most + log1p(exp(least - most))


def all_losses(law: Law) -> float:
    """Return n times the largest finite loss."""
    end = law.c[LARGEST] if law.side > 0.0 else -law.c[LEAST]
    if size(law.loss) == 0:
        return -INFINITY
    if total(law.atomic) == size(law.loss):
        end = largest(law.loss) if not isfinite(end) else maximum(end, largest(law.loss))
    return law.count * end


def of_one_step(law: Law, epsilon: float) -> float:
    """Return log of E max(0, 1 − e^(ε−L)) over the nodes, none of whose panels passes ε."""
    log_weight = where(law.loss > epsilon, law.log_weight, -INFINITY)
    top = largest(log_weight)
    if top == -INFINITY:
        return -INFINITY
    below = minimum(epsilon - law.loss, 0.0)
    return top + log(total(exp(log_weight - top) * -expm1(below)))


def farther(law: Law) -> float:
    """Move the reach after the law was found to be too far, or not far enough; 0: no more."""
    if law.far > 0.0:
        law.high = law.reach
        law.reach = 0.5 * (law.low + law.high)
    else:
        law.low = law.reach
        law.reach = 2.0 * law.reach if law.high == INFINITY else 0.5 * (law.low + law.high)
    law.ready = 0.0
    return 0.0 if law.reach > FARTHEST or law.high - law.low < 1e-6 * law.high else 1.0


def log_delta_of(law: Law, epsilon: float) -> float:
    """Return log δ(ε) of n steps."""
    if law.count == 1.0 and law.edge != epsilon:
        law.edge, law.ready = epsilon, 0.0
    for _ in range(200):
        if law.ready == 0.0:
            build(law)
        more = 1.0
        if law.far > 0.0:
            more = farther(law)
        else:
            if epsilon >= all_losses(law):
                return log_escaped(law)
            # 1 − δ = E min(1, e^(ε−L)) ≤ 2 M(−1/2)^n e^(ε/2)
            half = log(total(exp(law.log_weight - 0.5 * law.loss)) + 1e-9)
            if law.count * half + 0.5 * epsilon < LOG_ROUNDING:
                return 0.0
            s, following, high = 0.0, epsilon, law.reach
            if law.count > 1.0 and total(law.atomic) == size(law.loss):
                s = spacing(law)
                if s == 0.0:
                    fail("the losses are single values off any lattice, which no program adds")
                least = law.count * -largest(-law.loss)
                following = least + s * (floor((epsilon - least) / s) + 1.0)
                high = minimum(high, 50.0 / s)
            t = saddle(law, epsilon, high)
            if t == INFINITY and high == law.reach:
                more = farther(law)
            else:
                at = tilted_by(law, minimum(t, high))
                if law.count == 1.0:
                    law.slope = at.t
                    return log_sum(of_one_step(law, epsilon), log_escaped(law))
                if s == 0.0 and law.frequency == 0.0:
                    law.frequency = 30.0 / sqrt(law.count * at.variance)
                    law.ready = 0.0
                else:
                    drift = law.count * at.mean - following
                    scale = law.count * at.cgf - at.t * following
                    law.work = 0.0
                    value = (
                        sum_period(law, at, drift, following - epsilon, s)
                        if s > 0.0
                        else sum_line(law, at, drift, scale)
                    )
                    lost = ROUNDING * (absolute(epsilon) + absolute(law.count * at.mean))
                    if law.strict > 0.0 and value > 0.0 and lost * law.slope > LOST:
                        fail(
                            "delta loses its digits to the rounding of epsilon so close to the end"
                        )
                    if value > 0.0:
                        return log_sum(scale + log(value), log_escaped(law))
                    if value > -2.0:
                        law.frequency = 3.0 * law.frequency
                    law.ready = 0.0
        if more == 0.0:
            fail("the moment generating function ends before the saddle point")
    fail("the saddle point was not found")
    return 0.0


def law_of(c: Vector, side: float, count: float) -> Law:
    """Return the law of one step before its nodes are laid."""
    law = Law()
    law.c, law.side, law.count = c, side, count
    law.low, law.high, law.reach = 0.0, INFINITY, 1.0
    law.frequency, law.outer, law.edge = 0.0, 0.0, INFINITY
    law.ready, law.far, law.strict = 0.0, 0.0, 1.0
    return law


def guess(law: Law, t: float, target: float) -> float:
    """Return log δ, less a target, where t is the saddle point, by the first term of descent."""
    at = tilted_by(law, t)
    law.guess = law.count * at.mean - 1.0 / t - 1.0 / (1.0 + t)
    spread = law.count * at.variance + 1.0 / (t * t)
    return law.count * at.cgf - t * law.guess - log(2.5 * t * (1.0 + t) * sqrt(spread)) - target


def start_of(law: Law, target: float) -> float:
    """Return about where log δ(ε) is `target`."""
    for _ in range(60):
        if law.ready == 0.0:
            build(law)
        if law.far == 0.0 and (size(law.loss) == 0 or guess(law, law.reach, target) < 0.0):
            break
        if farther(law) == 0.0:
            break
    if law.ready == 0.0 or size(law.loss) == 0:
        return 1.0
    a, b = log(1e-9 * law.reach), log(law.reach)
    for _ in range(25):
        middle = 0.5 * (a + b)
        if guess(law, exp(middle), target) < 0.0:
            b = middle
        else:
            a = middle
    return law.guess


def epsilon_of(law: Law, target: float) -> float:
    """Return the least ε ≥ 0 with log δ(ε) at most `target`."""
    law.strict = 0.0
    build(law)
    if (
        law.far == 0.0
    ):  # δ(0) of n steps is at most n times that of one, a kink seen to a few percent
        one = log_sum(of_one_step(law, 0.0), log(law.escaped + TINY))
        if one + log(1.1 * law.count) <= target:
            return 0.0
    if log_delta_of(law, 0.0) <= target:
        return 0.0
    if log_escaped(law) >= target:
        fail("no epsilon is finite: delta is below the probability of an infinite loss")
    low, high = 0.0, all_losses(law)
    x = start_of(law, target)
    if not (x > 0.0 and x < high):
        x = minimum(1.0, 0.5 * high)
    last, before, slope = 0.0, INFINITY, 0.0
    for _ in range(100):
        found = log_delta_of(law, x) - target
        if absolute(found) <= 1e-14 * (1.0 + absolute(target)):
            return x
        if found > 0.0:
            low = x
        else:
            high = x
        slope = (found - before) / (x - last) if isfinite(before) and x != last else -law.slope
        last, before = x, found
        step = x - found / slope if slope < 0.0 else low
        if step > low and step < high:
            x = step
        else:
            x = 0.5 * (low + high) if isfinite(high) else 2.0 * x + 1.0
        if x == last or x <= low or x >= high:
            return high
    return high
