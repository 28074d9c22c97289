"""The trapezoidal sums along a line, and over one period of a lattice."""

from __future__ import annotations

from symdp.emit.standalone.runtime.outline import (
    AGREED,
    FEW,
    LOG_SMALL,
    MOST_WORK,
    NEGLIGIBLE,
    RESET,
    SAME_LATTICE,
    TINY,
    Law,
)
from symdp.emit.standalone.runtime.primitives import (
    INFINITY,
    PI,
    Vector,
    absolute,
    atan2,
    cos,
    exp,
    expm1,
    fail,
    filled,
    floor,
    gathered,
    hypot,
    joined,
    kept,
    largest,
    log,
    log1p,
    maximum,
    minimum,
    ordered,
    ranking,
    sin,
    size,
    sqrt,
    steps,
    summed,
    sums_of,
    taken,
    total,
    where,
)

# ---- emitted from here on ----


class Tilted:
    """The law tilted by t: mean, variance, K(t), and its weights."""

    t: float
    mean: float
    variance: float
    cgf: float
    weight: Vector


def tilted_by(law: Law, t: float) -> Tilted:
    """Return the tilted law."""
    found = Tilted()
    scaled = t * law.loss + law.log_weight
    top = largest(scaled)
    weight = exp(scaled - top)
    mass = total(weight)
    weight = weight / mass
    found.t, found.weight = t, weight
    mean = total(weight * law.loss)
    found.mean = mean
    found.variance = total(weight * (law.loss - mean) * (law.loss - mean))
    if top > 300.0:
        found.cgf = top + log(mass)
    else:
        near = minimum(t * law.loss, 300.0)
        grown = where(near < 300.0, exp(law.log_weight) * expm1(near), exp(scaled))
        found.cgf = log1p(total(grown) - law.escaped)
    return found


def spacing(law: Law) -> float:
    """Return the spacing of the lattice on which all losses lie, 0 for none."""
    losses = ordered(law.loss)
    number = size(losses)
    first, last = losses[0], losses[number - 1]
    gaps = gathered(losses, 1, number - 1) - gathered(losses, 0, number - 1)
    gaps = where(gaps > 1e-12 * (absolute(first) + absolute(last)), gaps, INFINITY)
    least = -largest(joined(-gaps, filled(1, -INFINITY)))
    if least == INFINITY:
        return maximum(absolute(first), 1.0)
    s = (last - first) / floor((last - first) / least + 0.5)
    places = (losses - first) / s
    return s if largest(absolute(places - floor(places + 0.5))) < SAME_LATTICE else 0.0


def set_wave(u: Vector, v: Vector, deviation: Vector, y: float) -> float:
    """Set u = cos(yd) − 1, v = sin(yd)."""
    v[:] = sin((0.5 * y) * deviation)
    u[:] = -2.0 * v * v
    v[:] = sin(y * deviation)
    return y


def turn_wave(u: Vector, v: Vector, a: Vector, b: Vector, spare: Vector) -> float:
    """Turn a wave by another one: sums stay accurate where cosines are near 1."""
    spare[:] = u + (a + u * a - v * b)
    v[:] = v + (b + v * a + u * b)
    u[:] = spare
    return 0.0


def size_on_line(law: Law, at: Tilted, u: Vector, v: Vector, turn: float) -> float:
    """Return the size of [M(t + iy)/M(t)]^n exp(−iyε), and set its phase."""
    real, imaginary = summed(at.weight * u), summed(at.weight * v)
    square = real * (2.0 + real) + imaginary * imaginary
    modulus = 0.5 * log1p(square) if square > -0.75 else log(hypot(1.0 + real, imaginary) + TINY)
    law.phase = law.count * atan2(imaginary, 1.0 + real) + turn
    law.work = law.work + size(u)
    if law.work > MOST_WORK:
        fail("too few steps for this program: the characteristic function lasts too long")
    return exp(law.count * modulus)


def far_end(law: Law, at: Tilted, deviation: Vector) -> float:
    """Return a y from which |φ|^n is small: |φ| ≤ 1 − w + V/y, of a part of mass w whose density
    has total variation V, in blocks of nodes in the order of their losses.
    """
    order = ranking(deviation)
    place, weight = taken(deviation, order), taken(at.weight, order)
    number = int(floor((size(place) - 1) / 16))
    if number < 2:
        return INFINITY
    first = 16.0 * steps(number + 1)
    ends = taken(place, first)
    width = gathered(ends, 1, number) - gathered(ends, 0, number)
    mass = sums_of(gathered(weight, 0, 16 * number), 16)
    density = where(width > 0.0, mass / width, INFINITY)
    needed = -expm1(LOG_SMALL / law.count)
    best, level = INFINITY, 64.0 / sqrt(at.variance)
    for _ in range(40):
        part = where(density <= level, density, 0.0)
        excess = total(where(density <= level, mass, 0.0)) - needed
        padded = joined(joined(filled(1, 0.0), part), filled(1, 0.0))
        steps_up = gathered(padded, 1, number + 1) - gathered(padded, 0, number + 1)
        if excess > 0.0:
            best = minimum(best, total(absolute(steps_up)) / excess)
        level = 0.5 * level
    return best


def stays_small(law: Law, at: Tilted, deviation: Vector, start: float, end: float) -> float:
    """Return whether |φ|^n is small from one y to another.

    |φ|² = E cos(y(L − L')) grows no faster than E |L − L'| and than 2y Var L, so that one value
    tells of a stretch. Nodes that add up to less than 0.01/n are left out.
    """
    seen = at.weight > 0.01 / (law.count * size(deviation))
    weight, place = kept(at.weight, seen), kept(deviation, seen)
    limit = exp(2.0 * LOG_SMALL / law.count)
    slope, y = 2.0 * total(weight * absolute(place)), start
    u, v = 0.0 * place, 0.0 * place
    while y < end:
        set_wave(u, v, place, y)
        law.work = law.work + 4.0 * size(place)
        real, imaginary = 1.0 + summed(weight * u), summed(weight * v)
        spare = limit - real * real - imaginary * imaginary
        if spare <= 0.0 or law.work > MOST_WORK:
            return 0.0
        y = y + minimum(0.5 * y, spare / minimum(slope, 3.0 * at.variance * y))
    return 1.0


def sum_line(law: Law, at: Tilted, drift: float, scale: float) -> float:
    """Return the integral on the line, or −1 where the nodes must resolve higher frequencies."""
    t, count = at.t, law.count
    deviation = law.loss - at.mean
    u, v = 0.0 * deviation, 0.0 * deviation
    a, b, spare = 0.0 * deviation, 0.0 * deviation, 0.0 * deviation
    h = 2.0 * PI * t / (40.0 - minimum(scale, 0.0))
    if at.variance > 0.0:
        h = minimum(h, 1.0 / sqrt(count * at.variance + 1.0 / (t * t)))
    even, odd, start, stride = 0.5 / (t * (1.0 + t)), 0.0, 1, 1
    far, last = far_end(law, at, deviation), INFINITY
    for _ in range(8):
        k, settled, y, again = start, -1.0, 0.0, 0.0
        set_wave(a, b, deviation, 0.5 * h * stride)
        while y < last:
            y = 0.5 * h * k
            if y > law.frequency and (settled < 0.0 or y > law.outer):
                return -1.0
            if floor(k / RESET) > floor((k - stride) / RESET) or k == start:
                set_wave(u, v, deviation, y)
            else:
                turn_wave(u, v, a, b, spare)
            length = size_on_line(law, at, u, v, y * drift)
            # 1/(z (1 + z)) at z = t + iy
            c, d = t * (1.0 + t) - y * y, y * (1.0 + 2.0 * t)
            found = length * (cos(law.phase) * c + sin(law.phase) * d) / (c * c + d * d)
            if k - 2 * floor(0.5 * k) == 1:
                odd = odd + found
            else:
                even = even + found
            if length / hypot(c, d) > NEGLIGIBLE * absolute(even):
                settled = -1.0
            elif settled < 0.0:
                settled, again = y, 1.5 * y
            if last == INFINITY and settled >= 0.0 and y >= again and k >= 40:
                if count < FEW:
                    far = minimum(far, 8.0 * settled)
                if law.outer < far and y < far:
                    law.outer = 1.05 * far
                    return -2.0
                if stays_small(law, at, deviation, y, far) > 0.0:
                    last = y
                again = 1.2 * y
            k = k + stride
        if absolute(even - odd) <= AGREED * absolute(even) and even + odd > 0.0:
            law.slope = t
            return 0.5 * h * (even + odd) / PI
        even, odd, h = even + odd, 0.0, 0.5 * h
        start, stride = 1, 2
    fail("the trapezoidal sums do not agree")
    return 0.0


def sum_period(law: Law, at: Tilted, drift: float, d: float, s: float) -> float:
    """Return the sum over one period of a lattice; the next sum lies d above ε."""
    t = at.t
    deviation = law.loss - at.mean
    u, v = 0.0 * deviation, 0.0 * deviation
    a, b, spare = 0.0 * deviation, 0.0 * deviation, 0.0 * deviation
    number, before = 64.0, 0.0
    shrink, rest, factor = exp(-t * s), exp(-s), exp(-d) * expm1(d - s)
    for _ in range(24):
        found, slope, settled, again, last = 0.0, 0.0, -1.0, 0.0, INFINITY
        set_wave(a, b, deviation, 2.0 * PI / (s * number))
        for k in range(int(0.5 * number) + 1):
            y = 2.0 * PI * k / (s * number)
            if y > last:
                break
            if k - RESET * floor(k / RESET) == 0:
                set_wave(u, v, deviation, y)
            else:
                turn_wave(u, v, a, b, spare)
            length = size_on_line(law, at, u, v, y * drift)
            # (1 − e^−d − a e^−d (e^(d−s) − 1)) / ((1 − a)(1 − a e^−s)), a = exp(−zs)
            ar, ai = shrink * cos(y * s), -shrink * sin(y * s)
            nr, ni = -expm1(-d) - ar * factor, -ai * factor
            br = -expm1(-t * s) + 2.0 * shrink * sin(0.5 * y * s) * sin(0.5 * y * s)
            cr, ci = 1.0 - ar * rest, -ai * rest
            dr, di = br * cr + ai * ci, br * ci - ai * cr
            below = dr * dr + di * di
            kr, ki = (nr * dr + ni * di) / below, (ni * dr - nr * di) / below
            real, imaginary = length * cos(law.phase), length * sin(law.phase)
            share = 0.5 if k == 0 or 2.0 * k == number else 1.0
            found = found + share * (real * kr - imaginary * ki)
            # d/dε turns the payoff into −e^(ε−s), whose kernel is e^−d / (1 − a e^−s)
            slope = slope + share * exp(-d) * (real * cr + imaginary * ci) / (cr * cr + ci * ci)
            if length * hypot(kr, ki) > NEGLIGIBLE * absolute(found):
                settled = -1.0
            elif settled < 0.0:
                settled, again = y, 1.5 * y
            if last == INFINITY and settled >= 0.0 and y >= again:
                if stays_small(law, at, deviation, y, PI / s) > 0.0:
                    last = y
                again = 1.2 * y
        value = 2.0 * found / number
        if absolute(value - before) <= AGREED * absolute(value) and value > 0.0:
            law.slope = slope / found
            return value
        before, number = value, 2.0 * number
    fail("the sums over one period do not agree")
    return 0.0
