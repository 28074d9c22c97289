"""Sums over the nodes of one step: the law tilted, its lattice, what escapes, δ of one step.

The file keeps to what `symdp.emit.standalone.translate` reads.
"""

from __future__ import annotations

from symdp.emit.standalone.runtime.law import Law
from symdp.emit.standalone.runtime.mechanism import LARGEST, LEAST
from symdp.emit.standalone.runtime.primitives import (
    INFINITY,
    Vector,
    absolute,
    exp,
    expm1,
    filled,
    floor,
    gathered,
    joined,
    largest,
    log,
    log1p,
    maximum,
    minimum,
    ordered,
    size,
    sqrt,
    summed,
    total,
    where,
)

# ---- emitted from here on ----

OVERLAPPING = 15.0  # deviations between two means, so far that their laws hold what is between
COVERED = 1.0  # the same, within which one of them holds a law
SAME_LATTICE = 1e-9  # of a spacing


class Tilted:
    """The law tilted by t: mean, variance, K(t), and its weights."""

    t: float
    mean: float
    variance: float
    cgf: float
    weight: Vector


def tilted_by(law: Law, t: float) -> Tilted:
    """Return the tilted law."""
    at = Tilted()
    scaled = t * law.loss + law.log_weight
    top = largest(scaled)
    weight = exp(scaled - top)
    mass = total(weight)
    weight = weight / mass
    at.t = t
    at.weight = weight
    mean = total(weight * law.loss)
    at.mean = mean
    at.variance = total(weight * (law.loss - mean) * (law.loss - mean))
    if top > 300.0:
        at.cgf = top + log(mass)
    else:
        near = minimum(t * law.loss, 300.0)
        grown = where(near < 300.0, exp(law.log_weight) * expm1(near), exp(scaled))
        at.cgf = log1p(total(grown) - law.escaped)
    return at


class Doubt:
    """What rounded places change: all of a law, φ at high frequencies, φ at low ones, its phase."""

    scale: float
    most: float
    slope: float
    smear: float


def doubt_of(law: Law, at: Tilted) -> Doubt:
    """Return what rounded places change in a tilted law.

    Errors e of log weights move log M(t), whose mass is divided out, by Σ(w_t − w_0)e, and φ(y) by
    Σ w_t (exp(iyd) − φ) e.
    """
    doubt = Doubt()
    plain = exp(law.log_weight)
    size_of = absolute(law.loss - at.mean)
    typical = total(at.weight * size_of)
    doubt.smear = total(at.weight * law.smear)
    moved = total(absolute(at.weight - plain) * law.blur) + at.t * doubt.smear
    doubt.scale = law.count * (moved + law.hidden + law.uneven_plain + law.uneven)
    doubt.most = 2.0 * total(at.weight * law.blur) + law.uneven
    doubt.slope = total(at.weight * (size_of + typical) * law.blur)
    return doubt


def escaped_off(law: Law) -> float:
    """Return by how much the logarithm of what escapes may be off."""
    return law.hidden / law.escaped + law.uneven_plain if law.escaped > 0.0 else 0.0


def reach_about(law: Law, at: Tilted, least: float) -> float:
    """Return a reach whose nodes hold a tilted law, or 0 where those that are laid do.

    Nodes lie where one of three tilts has mass: 0, the reach, and half of it. A law tilted in
    between may have its mass between theirs, as one below `least` is told to have.
    """
    t = at.t
    deviation = sqrt(at.variance)
    half = 0.5 * law.reach
    nearest = minimum(t, minimum(absolute(t - half), law.reach - t))
    if t < least:
        nearest = law.reach
    elif half * deviation < OVERLAPPING:
        return 0.0
    if nearest * deviation < COVERED:
        return 0.0
    return 2.0 * t if 2.0 * t < law.high else minimum(1.01 * t, 0.5 * (t + law.high))


def weighed_by(law: Law, t: float) -> Tilted:
    """Return the law that is resolved at a tilt t; what does not count there has no nodes."""
    at = Tilted()
    scaled = t * law.loss + law.log_weight
    top = largest(scaled)
    weight = exp(scaled - top)
    mass = total(weight)
    at.t = t
    at.weight = weight / mass
    at.cgf = top + log(mass)
    at.mean = summed(at.weight * law.loss)
    return at


def spacing(law: Law) -> float:
    """Return the spacing of the lattice on which all losses lie, 0 for none."""
    losses = ordered(law.loss)
    number = size(losses)
    first = losses[0]
    last = losses[number - 1]
    gaps = gathered(losses, 1, number - 1) - gathered(losses, 0, number - 1)
    equal = 1e-12 * (absolute(first) + absolute(last))
    gaps = where(gaps > equal, gaps, INFINITY)
    least = -largest(joined(-gaps, filled(1, -INFINITY)))
    if least == INFINITY:
        return maximum(absolute(first), 1.0)
    width = last - first
    s = width / floor(width / least + 0.5)
    places = (losses - first) / s
    off = largest(absolute(places - floor(places + 0.5)))
    return s if off < SAME_LATTICE else 0.0


def log_escaped(law: Law) -> float:
    """Return log of the probability that a loss is infinite."""
    if law.escaped >= 1.0:
        return 0.0
    if law.escaped > 0.0:
        log_kept = law.count * log1p(-law.escaped)
        return log(-expm1(log_kept))
    return -INFINITY


def log_sum(a: float, b: float) -> float:
    """Return log(e^a + e^b)."""
    most = maximum(a, b)
    least = minimum(a, b)
    return most if least == -INFINITY else most + log1p(exp(least - most))


def all_losses(law: Law) -> float:
    """Return n times the largest finite loss, infinite where none is known."""
    end = law.c[LARGEST] if law.side > 0.0 else -law.c[LEAST]
    if size(law.loss) == 0:
        return -INFINITY
    if total(law.atomic) == size(law.loss):
        end = maximum(end, largest(law.loss))
    return law.count * end


def of_one_step(law: Law, epsilon: float) -> float:
    """Return log of E max(0, 1 − e^(ε−L)) over the nodes, none of whose panels passes ε.

    `slope` is how fast it falls with ε, `doubt` what rounded places leave in doubt.
    """
    log_weight = where(law.loss > epsilon, law.log_weight, -INFINITY)
    top = largest(log_weight)
    if top == -INFINITY:
        return -INFINITY
    below = minimum(epsilon - law.loss, 0.0)
    weight = exp(log_weight - top)
    payoff = total(weight * -expm1(below))
    law.slope = total(weight * exp(below)) / payoff
    unsure = total(weight * (law.blur * -expm1(below) + law.smear * exp(below)))
    law.doubt = unsure / payoff
    return top + log(payoff)
