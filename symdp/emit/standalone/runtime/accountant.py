"""The accountant that every emitted file holds: written once, translated into C and JavaScript.

M(z) = E exp(zL) of one step is a sum over Gauss nodes of the density, or over outcomes. δ is the
trapezoidal sum along Re z = t, the saddle point, of

    M(z)^n exp(−zε) / (z(z + 1)) / 2πi,

or a sum over one period where all losses lie on a lattice. Where |M|^n does not die out, as with
few steps and atoms off any lattice, a line that is cut off smoothly has δ between two ends. ε is
its inverse.
"""

from __future__ import annotations

from symdp.emit.standalone.runtime.cut_off import (
    agrees,
    cut_width,
    set_cut_ends,
    tilt_of_short_line,
)
from symdp.emit.standalone.runtime.law import (
    FARTHEST,
    NEGLIGIBLE,
    ROUNDING,
    TINY,
    Law,
    build,
    farther,
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
    isfinite,
    joined,
    kept,
    largest,
    log,
    log1p,
    maximum,
    minimum,
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
from symdp.emit.standalone.runtime.tilted import (
    Tilted,
    all_losses,
    doubt_of,
    escaped_off,
    log_escaped,
    log_sum,
    of_one_step,
    reach_about,
    spacing,
    tilted_by,
)

# ---- emitted from here on ----

AGREED = 1e-12  # relative: sums with a step and with half of it
MOST_WORK = 1e8  # sines of one sum
MOST_WORK_OF_MANY = 2.5e8  # the same of many steps
MANY = 1000.0  # steps
RESET = 32  # turns of a wave after which it is computed anew
LOG_SMALL = -31.0  # of |phi|^n beyond which nothing is summed: log of 3e-14
LOG_ROUNDING = -38.0  # of 1 - delta, of which 1 as a double holds nothing
FEW = 20.0  # steps: with fewer the characteristic function itself is small where its power is
FEW_OF_DENSITIES = 200.0  # steps, where atoms do not count: a line by a transform is quicker
FAR = 16.0  # times the frequency where terms are small, up to which few steps are summed
LOST = 1e-10  # relative error of delta by the rounding of losses
ACCURATE = 2e-12  # of log delta, by a sum that converged
CALMER = 0.25  # of a deviation: a smaller tilt is taken where it leaves so little
LOG_NOTHING = -1000.0  # of δ that no double holds: how large it is at most is an answer
OVERSHOT = 0.45  # of the reach: nodes are laid anew for a smaller tilt
REACHED = 1e-13  # of log delta, relative: no double tells more
ROUGH_LINE = 1e-4  # of log delta: the width of a line beyond which another tilt is tried
WIDEST = 2.0  # interval of log delta that is an answer
FIRST_NARROWINGS = 20  # of the interval in which ε of one step lies, by nodes that do not know it
NARROWINGS = 12  # of the interval in which a lower end of ε lies, which is the lower of its ends
BESIDE = 0.01  # of log δ: the width of an answer that is compared with another law's
ROOM = 1.5  # times a tilt is the reach of the nodes that are laid for it
SEEN = 4.0  # log of how much larger than δ of one step a bound at a tilt of its panels may be
CANCELLED = 6.0  # log of how much larger than delta a sum at a smaller tilt may begin


def set_wave(u: Vector, v: Vector, deviation: Vector, y: float) -> float:
    """Set u = cos(yd) − 1, v = sin(yd)."""
    half = 0.5 * y
    v[:] = sin(half * deviation)
    u[:] = -2.0 * v * v
    v[:] = sin(y * deviation)
    return y


def turn_wave(u: Vector, v: Vector, a: Vector, b: Vector, spare: Vector) -> float:
    """Turn a wave by another one: sums stay accurate where cosines are near 1."""
    spare[:] = u + (a + u * a - v * b)
    v[:] = v + (b + v * a + u * b)
    u[:] = spare
    return 0.0


def most_work(law: Law) -> float:
    """Return how many sines one sum may take before a line is cut off."""
    return MOST_WORK if law.count < MANY else MOST_WORK_OF_MANY


def size_on_line(law: Law, at: Tilted, u: Vector, v: Vector, turn: float) -> float:
    """Return the size of [M(t + iy)/M(t)]^n exp(−iyε), and set its phase.

    `of_others`: the size of all steps but one.
    """
    less = summed(at.weight * u)
    imaginary = summed(at.weight * v)
    real = 1.0 + less
    square = less * (2.0 + less) + imaginary * imaginary
    if square > -0.75:
        modulus = 0.5 * log1p(square)
    else:
        modulus = log(hypot(real, imaginary) + TINY)
    law.of_others = exp((law.count - 1.0) * modulus)
    law.phase = law.count * atan2(imaginary, real) + turn
    law.work = law.work + size(u)
    if law.work > most_work(law):
        law.trouble = 1.0
    return exp(law.count * modulus)


def far_end(law: Law, at: Tilted, deviation: Vector) -> float:
    """Return a y from which |φ|^n is small: |φ| ≤ 1 − w + V/y, of a part of mass w whose density
    has total variation V, in blocks of nodes in the order of their losses.
    """
    order = ranking(deviation)
    place = taken(deviation, order)
    weight = taken(at.weight, order)
    number = int(floor((size(place) - 1) / 16))
    if number < 2:
        return INFINITY
    first = 16.0 * steps(number + 1)
    ends = taken(place, first)
    width = gathered(ends, 1, number) - gathered(ends, 0, number)
    mass = sums_of(gathered(weight, 0, 16 * number), 16)
    density = where(width > 0.0, mass / width, INFINITY)
    needed = -expm1(LOG_SMALL / law.count)
    best = INFINITY
    level = 64.0 / sqrt(at.variance)
    for _ in range(40):
        part = where(density <= level, density, 0.0)
        excess = total(where(density <= level, mass, 0.0)) - needed
        padded = joined(filled(1, 0.0), part)
        padded = joined(padded, filled(1, 0.0))
        steps_up = gathered(padded, 1, number + 1) - gathered(padded, 0, number + 1)
        if excess > 0.0:
            variation = total(absolute(steps_up))
            best = minimum(best, variation / excess)
        level = 0.5 * level
    return best


def lasts(law: Law, at: Tilted, far: float) -> float:
    """Return whether |φ|^n of few steps is small only where no sum along a line reaches."""
    log_atoms = log(total(at.weight * law.atomic) + TINY)
    few = FEW if law.count * log_atoms > LOG_SMALL else FEW_OF_DENSITIES
    scaled = far * sqrt(law.count * at.variance)
    return 1.0 if law.count < few and scaled > FAR * sqrt(-2.0 * LOG_SMALL) else 0.0


def stays_small(law: Law, at: Tilted, deviation: Vector, start: float, end: float) -> float:
    """Return whether |φ|^n is small from one y to another.

    |φ|² = E cos(y(L − L')) grows no faster than E |L − L'| and than 2y Var L, so that one value
    tells of a stretch. Nodes that add up to less than 0.01/n are left out.
    """
    least = 0.01 / (law.count * size(deviation))
    seen = at.weight > least
    weight = kept(at.weight, seen)
    place = kept(deviation, seen)
    limit = exp(2.0 * LOG_SMALL / law.count)
    slope = 2.0 * total(weight * absolute(place))
    y = start
    u = 0.0 * place
    v = 0.0 * place
    while y < end:
        set_wave(u, v, place, y)
        law.work = law.work + 4.0 * size(place)
        real = 1.0 + summed(weight * u)
        imaginary = summed(weight * v)
        spare = limit - real * real - imaginary * imaginary
        if spare <= 0.0 or law.work > most_work(law):
            return 0.0
        steepest = minimum(slope, 3.0 * at.variance * y)
        y = y + minimum(0.5 * y, spare / steepest)
    return 1.0


def sum_line(law: Law, at: Tilted, drift: float, scale: float) -> float:
    """Return the integral on the line, or −1 where the nodes must resolve higher frequencies.

    −3, and `trouble`, where the characteristic function lasts too long, or may: that of few steps
    is small nowhere that a sum reaches. `doubt`: by how much rounded places may change it.
    """
    t, count = at.t, law.count
    deviation = law.loss - at.mean
    u = 0.0 * deviation
    v = 0.0 * deviation
    a, b, spare = 0.0 * deviation, 0.0 * deviation, 0.0 * deviation
    h = 2.0 * PI * t / (40.0 - minimum(scale, 0.0))
    if at.variance > 0.0:
        h = minimum(h, 1.0 / sqrt(count * at.variance + 1.0 / (t * t)))
    even = 0.5 / (t * (1.0 + t))
    odd = 0.0
    doubt = doubt_of(law, at)
    unsure = 0.0
    start = 1
    stride = 1
    far = far_end(law, at, deviation)
    last = INFINITY
    if lasts(law, at, far) > 0.0:
        law.trouble = 1.0
        return -3.0
    if size(u) * far > 2.0 * h * most_work(law):
        law.trouble = 1.0
        return -3.0
    for _ in range(8):
        k = start
        settled = -1.0
        y = 0.0
        again = 0.0
        set_wave(a, b, deviation, 0.5 * h * stride)
        while y < last:
            y = 0.5 * h * k
            if y > law.frequency and (settled < 0.0 or y > law.outer):
                return -1.0
            if law.trouble > 0.0:
                return -3.0
            if floor(k / RESET) > floor((k - stride) / RESET) or k == start:
                set_wave(u, v, deviation, y)
            else:
                turn_wave(u, v, a, b, spare)
            length = size_on_line(law, at, u, v, y * drift)
            # 1/(z (1 + z)) at z = t + iy
            c = t * (1.0 + t) - y * y
            d = y * (1.0 + 2.0 * t)
            found = length * (cos(law.phase) * c + sin(law.phase) * d) / (c * c + d * d)
            if k - 2 * floor(0.5 * k) == 1:
                odd = odd + found
            else:
                even = even + found
            of_wave = minimum(doubt.most, doubt.slope * y) + doubt.smear * y
            unsure = unsure + law.of_others * of_wave / hypot(c, d)
            if length / hypot(c, d) > NEGLIGIBLE * absolute(even):
                settled = -1.0
            elif settled < 0.0:
                settled = y
                again = 1.5 * y
            if last == INFINITY and settled >= 0.0 and y >= again and k >= 40:
                if law.outer < far and y < far:
                    law.outer = 1.05 * far
                    return -2.0
                if stays_small(law, at, deviation, y, far) > 0.0:
                    last = y
                again = 1.2 * y
            k = k + stride
        if absolute(even - odd) <= AGREED * absolute(even) and even + odd > 0.0:
            law.doubt = doubt.scale + count * unsure / (even + odd)
            return 0.5 * h * (even + odd) / PI
        even = even + odd
        odd = 0.0
        h = 0.5 * h
        start = 1
        stride = 2
    law.trouble = 1.0
    return -3.0


def sum_period(law: Law, at: Tilted, drift: float, d: float, s: float) -> float:
    """Return the sum over one period of a lattice, or −3; the next sum lies d above ε."""
    t = at.t
    deviation = law.loss - at.mean
    u = 0.0 * deviation
    v = 0.0 * deviation
    a, b, spare = 0.0 * deviation, 0.0 * deviation, 0.0 * deviation
    number = 64.0
    before = 0.0
    shrink = exp(-t * s)
    rest = exp(-s)
    factor = exp(-d) * expm1(d - s)
    doubt = doubt_of(law, at)
    for _ in range(24):
        found = 0.0
        slope = 0.0
        unsure = 0.0
        settled = -1.0
        again = 0.0
        last = INFINITY
        set_wave(a, b, deviation, 2.0 * PI / (s * number))
        for k in range(int(0.5 * number) + 1):
            y = 2.0 * PI * k / (s * number)
            if y > last:
                break
            if law.trouble > 0.0:
                return -3.0
            if k - RESET * floor(k / RESET) == 0:
                set_wave(u, v, deviation, y)
            else:
                turn_wave(u, v, a, b, spare)
            length = size_on_line(law, at, u, v, y * drift)
            # (1 − e^−d − a e^−d (e^(d−s) − 1)) / ((1 − a)(1 − a e^−s)), a = exp(−zs)
            ar = shrink * cos(y * s)
            ai = -shrink * sin(y * s)
            nr = -expm1(-d) - ar * factor
            ni = -ai * factor
            br = -expm1(-t * s) + 2.0 * shrink * sin(0.5 * y * s) * sin(0.5 * y * s)
            cr = 1.0 - ar * rest
            ci = -ai * rest
            dr = br * cr + ai * ci
            di = br * ci - ai * cr
            below = dr * dr + di * di
            kr = (nr * dr + ni * di) / below
            ki = (ni * dr - nr * di) / below
            real = length * cos(law.phase)
            imaginary = length * sin(law.phase)
            share = 0.5 if k == 0 or 2.0 * k == number else 1.0
            found = found + share * (real * kr - imaginary * ki)
            # d/dε turns the payoff into −e^(ε−s), whose kernel is e^−d / (1 − a e^−s)
            of_wave = minimum(doubt.most, doubt.slope * y) + doubt.smear * y
            unsure = unsure + share * law.of_others * of_wave * hypot(kr, ki)
            slope = slope + share * exp(-d) * (real * cr + imaginary * ci) / (cr * cr + ci * ci)
            if length * hypot(kr, ki) > NEGLIGIBLE * absolute(found):
                settled = -1.0
            elif settled < 0.0:
                settled = y
                again = 1.5 * y
            if last == INFINITY and law.count >= FEW and settled >= 0.0 and y >= again:
                if stays_small(law, at, deviation, y, PI / s) > 0.0:
                    last = y
                again = 1.2 * y
        value = 2.0 * found / number
        if absolute(value - before) <= AGREED * absolute(value) and value > 0.0:
            law.slope = slope / found
            law.doubt = doubt.scale + law.count * unsure / found
            return value
        before = value
        number = 2.0 * number
    law.trouble = 1.0
    return -3.0


def saddle(law: Law, epsilon: float, high: float) -> float:
    """Return the t at which log of the integrand is least, infinite beyond `high`."""
    a = 0.0
    b = high
    t = high
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


def calmer(law: Law, epsilon: float, t: float) -> float:
    """Return a tilt, t or less, at which the sum's law is narrow.

    Rare large losses, such as those of small samples, weigh as much at the saddle point as all
    others: the law is then of two parts far apart, and a line needs many frequencies. At a tilt a
    little smaller they are negligible, and the sum begins only so much larger than δ.
    """
    at = tilted_by(law, t)
    height = law.count * at.cgf - t * epsilon - log(t * (1.0 + t))
    deviation = sqrt(at.variance)
    trial = t
    while trial > 0.25 * t:
        trial = 0.8 * trial
        at = tilted_by(law, trial)
        if law.count * at.cgf - trial * epsilon - log(trial * (1.0 + trial)) > height + CANCELLED:
            return t
        if reach_about(law, at, 0.0) > 0.0:
            return t
        if sqrt(at.variance) < CALMER * deviation:
            return trial
    return t


def ended(law: Law, log_delta: float, off: float) -> float:
    """Set the ends of log δ by how far off it may be, and return the upper one."""
    law.off = off
    law.upper = minimum(log_delta + off, 0.0)
    law.lower = log_delta - off
    return law.upper


def accuracy(log_delta: float, epsilon: float) -> float:
    """Return how far off log δ of a sum that converged may be."""
    if log_delta == -INFINITY:
        return 0.0
    return ACCURATE + 4e-15 * (absolute(epsilon) + absolute(log_delta))


def tilt_that_sees(law: Law, epsilon: float) -> float:
    """Return a tilt at which panels were compared whose bound of δ of one step is near it, or 0.

    E(1 − e^(ε−L))⁺ ≤ M(t) e^(−tε) t^t/(1 + t)^(1 + t): what panels leave open is small beside δ.
    """
    log_delta = of_one_step(law, epsilon)
    for k in range(2):
        t = 0.5 * law.reach * (k + 1.0)
        factor = t * log(t / (1.0 + t)) - log1p(t)
        if tilted_by(law, t).cgf - t * epsilon + factor < log_delta + SEEN:
            return t
    return 0.0


def is_less_than_asked(law: Law, epsilon: float, t: float) -> float:
    """Return whether Markov's bound of δ is below what is asked, which then is the answer."""
    finite = law.count * tilted_by(law, t).cgf - t * epsilon
    most = minimum(log_sum(finite, log_escaped(law)), 0.0)
    if most >= law.least:
        return 0.0
    law.upper = most
    law.lower = -INFINITY
    return 1.0


def prepared(law: Law, epsilon: float) -> float:
    """Lay the nodes of a law for δ(ε), and return the saddle point.

    Where M ends before it, that is a tilt close to M's end; −1: an end of δ is its answer, what
    escapes, 1, or a bound that is less than is asked.
    """
    for _ in range(200):
        if law.ready == 0.0:
            build(law)
        more = 1.0
        if law.trouble > 0.0 and law.frequency == 0.0 and law.low > 0.0:  # for a smaller tilt
            law.reach = law.low
            law.settled = 1.0
            law.trouble = 0.0
            law.ready = 0.0
        elif law.trouble > 0.0 and law.frequency == 0.0:  # as many as next to a tilt where M ends
            law.trouble = 0.0
            law.far = 1.0
            more = farther(law, law.reach)
        elif law.trouble > 0.0:  # too many nodes for the frequencies of a line
            law.frequency = 0.0
            law.outer = 0.0
            law.trouble = 0.0
            law.ready = 0.0
            law.lasting = 1.0
        elif law.far > 0.0:
            more = farther(law, law.reach)
        else:
            if epsilon >= all_losses(law):
                ended(law, log_escaped(law), escaped_off(law))
                return -1.0
            # 1 − δ = E min(1, e^(ε−L)) ≤ 2 M(−1/2)^n e^(ε/2)
            half = log(total(exp(law.log_weight - 0.5 * law.loss)) + 1e-9)
            if law.count * half + 0.5 * epsilon < LOG_ROUNDING:
                ended(law, 0.0, 1e-15)
                return -1.0
            if law.count == 1.0:
                t = tilt_that_sees(law, epsilon)
                if t > 0.0:
                    return t
            t = saddle(law, epsilon, law.reach)
            if is_less_than_asked(law, epsilon, minimum(t, law.reach)) > 0.0:
                return -1.0
            if law.settled > 0.0:
                return minimum(t, 0.8 * law.reach)
            if t < INFINITY:
                nearer = reach_about(law, tilted_by(law, t), OVERSHOT * law.reach)
                if nearer == 0.0:
                    return t
                law.low = minimum(law.low, t)
                law.reach = nearer
                law.ready = 0.0
            else:
                more = farther(law, ROOM * saddle(law, epsilon, FARTHEST))
        if more == 0.0:
            if law.settled > 0.0 or law.low == 0.0:
                fail("the moment generating function ends at 0: symdp answers")
            law.reach = law.low
            law.settled = 1.0
            law.ready = 0.0
    fail("the saddle point was not found")
    return 0.0


def narrow(law: Law, upper: float, lower: float) -> float:
    """Set the ends of log δ, which a first look for ε asks no width of; return the upper one."""
    is_wide = not (upper - lower < WIDEST or upper < LOG_NOTHING)
    if law.rough == 0.0 and is_wide:
        fail("no line in double precision is long enough for these losses: symdp answers")
    law.upper = upper
    law.lower = lower
    return upper


def ends_at(law: Law, epsilon: float) -> float:
    """Set the ends of log δ(ε) by the line that is there; return their width."""
    set_cut_ends(law, law.line, epsilon)
    if agrees(law.line) == 0.0:
        return INFINITY
    return law.upper - law.lower


def between_ends(law: Law, epsilon: float, t: float) -> float:
    """Return the upper end of log δ(ε) by a line that is cut off smoothly.

    Its tilt is one at which steps are wide, or the saddle point where sums at that one cancel.
    """
    law.slope = t
    if law.cut > 0.0 and ends_at(law, epsilon) <= maximum(law.near, 1.5 * law.reached):
        return narrow(law, law.upper, law.lower)
    smaller = tilt_of_short_line(law, epsilon, t)
    width = cut_width(law, epsilon, smaller)
    if width > maximum(law.near, ROUGH_LINE) and smaller < t:
        first = law.line
        before = width
        width = cut_width(law, epsilon, t)
        if before < width:
            law.line = first
            law.cut = 1.0
    if law.cut == 0.0:
        # Markov's bound alone: E e^(tS) is a bound of δ e^(tε)
        most = law.count * tilted_by(law, t).cgf - t * epsilon
        return narrow(law, minimum(log_sum(most, log_escaped(law)), 0.0), -INFINITY)
    law.reached = ends_at(law, epsilon)
    return narrow(law, law.upper, law.lower)


def log_delta_within(law: Law, epsilon: float) -> float:
    """Return log δ(ε) of n steps, within the work that is left of the question."""
    if law.count == 1.0 and law.edge != epsilon:
        law.edge = epsilon
        law.ready = 0.0
    law.work = 0.0
    for _ in range(30):
        t = prepared(law, epsilon)
        if t < 0.0:
            return law.upper
        if law.count == 1.0:
            finite = of_one_step(law, epsilon)
            value = log_sum(finite, log_escaped(law))
            law.slope = law.slope * exp(finite - value) if value > -INFINITY else t
            plain = law.uneven_plain + total(exp(law.log_weight) * law.blur) + law.hidden
            at_tilt = law.uneven * exp(tilted_by(law, t).cgf - t * epsilon)
            open_to = minimum(law.uneven_plain, at_tilt) / maximum(exp(finite), TINY)
            lost = 2.0 * ROUNDING * absolute(epsilon) * law.slope  # losses and ε are rounded
            doubt = plain + maximum(law.doubt + open_to + lost, escaped_off(law))
            return ended(law, value, accuracy(value, epsilon) + doubt)
        s, following = 0.0, epsilon
        is_atomic = total(law.atomic) == size(law.loss)
        if is_atomic:
            s = spacing(law)
            least = law.count * -largest(-law.loss)
            if s > 0.0:
                following = least + s * (floor((epsilon - least) / s) + 1.0)
                t = minimum(t, 50.0 / s)
        if is_atomic and s == 0.0:
            law.lasting = 1.0
        if law.lasting > 0.0:
            return between_ends(law, epsilon, t)
        steepest = t
        if s == 0.0:
            t = calmer(law, epsilon, t)
        at = tilted_by(law, t)
        if s == 0.0 and law.frequency == 0.0:
            # nodes that resolve no frequency tell already where few steps need another line
            if lasts(law, at, far_end(law, at, law.loss - at.mean)) > 0.0:
                law.lasting = 1.0
                return between_ends(law, epsilon, steepest)
            law.frequency = 30.0 / sqrt(law.count * at.variance)
            law.ready = 0.0
        else:
            drift = law.count * at.mean - following
            scale = law.count * at.cgf - at.t * following
            value = (
                sum_period(law, at, drift, following - epsilon, s)
                if s > 0.0
                else sum_line(law, at, drift, scale)
            )
            if s == 0.0:
                law.slope = steepest
            lost = ROUNDING * (absolute(epsilon) + absolute(law.count * at.mean))
            if law.strict > 0.0 and value > 0.0 and lost * law.slope > LOST:
                fail("delta loses its digits to the rounding of epsilon so close to the end")
            if value > 0.0:
                value = log_sum(scale + log(value), log_escaped(law))
                # a sum that cancels keeps fewer digits
                times = 2.0 if t < steepest else 1.0
                doubt = maximum(law.doubt + lost * law.slope, escaped_off(law))
                return ended(law, value, times * accuracy(value, epsilon) + doubt)
            if law.trouble > 0.0:
                law.trouble = 0.0
                law.lasting = 1.0
                law.frequency = 0.0
                law.outer = 0.0
            elif value > -2.0:
                law.frequency = 3.0 * law.frequency
            law.ready = 0.0
    fail("the characteristic function needs too high frequencies")
    return 0.0


def log_delta_of(law: Law, epsilon: float) -> float:
    """Return log δ(ε) of n steps; `lower` and `upper` are its ends."""
    law.evaluated = 0.0
    return log_delta_within(law, epsilon)


def guess(law: Law, t: float, target: float) -> float:
    """Return log δ, less a target, where t is the saddle point, by the first term of descent."""
    at = tilted_by(law, t)
    law.guess = law.count * at.mean - 1.0 / t - 1.0 / (1.0 + t)
    spread = law.count * at.variance + 1.0 / (t * t)
    curvature = log(2.5 * t * (1.0 + t) * sqrt(spread))
    log_integrand = law.count * at.cgf - t * law.guess
    return log_integrand - curvature - target


def start_of(law: Law, target: float) -> float:
    """Return about where log δ(ε) is `target`."""
    for _ in range(60):
        if law.ready == 0.0:
            build(law)
        about = law.reach
        if law.far == 0.0:
            if size(law.loss) == 0 or guess(law, law.reach, target) < 0.0:
                break
            while about < FARTHEST and guess(law, about, target) >= 0.0:
                about = 2.0 * about
        if farther(law, about) == 0.0:
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


def start_of_one_step(law: Law, target: float, high: float) -> float:
    """Return about where log δ(ε) of one step is `target`, by the nodes that are there."""
    a = 0.0
    b = minimum(high, largest(law.loss))
    for _ in range(FIRST_NARROWINGS):
        middle = 0.5 * (a + b)
        if log_sum(of_one_step(law, middle), log_escaped(law)) > target:
            a = middle
        else:
            b = middle
    return 0.5 * (a + b)


def root_of(law: Law, target: float, x: float, low: float, high: float) -> float:
    """Return the ε between two with log δ(ε) = target, from a first one."""
    last = 0.0
    before = INFINITY
    slope = 0.0
    for _ in range(100):
        off = log_delta_within(law, x) - target
        rounding = ROUNDING * x * law.slope  # no double tells more
        if absolute(off) <= REACHED * (1.0 + absolute(target)) + rounding:
            return x
        if off > 0.0:
            low = x
        else:
            high = x
        slope = -law.slope
        if law.count > 1.0 and isfinite(before) and x != last:
            slope = (off - before) / (x - last)
        last = x
        before = off
        step = x - off / slope if slope < 0.0 else low
        if step > low and step < high:
            x = step
        else:
            x = 0.5 * (low + high) if isfinite(high) else 2.0 * x + 1.0
        if x == last or x <= low or x >= high or absolute(off) <= law.rough:
            return high if isfinite(high) else x
    return high if isfinite(high) else x


def lower_root(law: Law, target: float, x: float) -> float:
    """Return the ε at which the lower end is at its target, below that of the upper."""
    ends_at(law, x)
    high = x
    step = maximum((target - law.lower) / law.slope, 1e-15 * x)
    low = maximum(x - step, 0.0)
    for _ in range(60):
        ends_at(law, low)
        if law.lower > target or low == 0.0:
            break
        step = 2.0 * step
        high = low
        low = maximum(x - step, 0.0)
    for _ in range(NARROWINGS):
        middle = 0.5 * (low + high)
        ends_at(law, middle)
        if law.lower > target:
            low = middle
        else:
            high = middle
    return low


def ended_at(law: Law, epsilon: float, off: float) -> float:
    """Set the ends of ε, and return it."""
    law.lower = maximum(epsilon - off, 0.0)
    law.upper = epsilon
    return epsilon


def epsilon_of(law: Law, target: float) -> float:
    """Return the least ε ≥ 0 with log δ(ε) at most `target`; `lower` and `upper` are its ends."""
    law.strict = 0.0
    law.evaluated = 0.0
    build(law)
    for _ in range(60):
        if law.far == 0.0 or farther(law, law.reach) == 0.0:
            break
        build(law)
    if law.ready > 0.0 and log_escaped(law) > target:
        fail("no epsilon is finite: delta is below the probability of an infinite loss")
    if (
        law.far == 0.0 and law.trouble == 0.0
    ):  # δ(0) of n steps is at most n times that of one, a kink seen to a few percent
        one = log_sum(of_one_step(law, 0.0), log(law.escaped + TINY))
        if one + log(1.1 * law.count) <= target:
            return ended_at(law, 0.0, 0.0)
    near = law.near
    law.near = 0.05
    if log_delta_within(law, 0.0) <= target:
        law.near = near
        return ended_at(law, 0.0, 0.0)
    law.rough = 1e-3 if law.lasting > 0.0 else 0.0
    if log_escaped(law) >= target:
        fail("no epsilon is finite: delta is below the probability of an infinite loss")
    high = all_losses(law)
    is_first = law.count == 1.0 and law.ready > 0.0 and size(law.loss) > 0
    x = start_of_one_step(law, target, high) if is_first else start_of(law, target)
    if not (x > 0.0 and x < high):
        x = minimum(1.0, 0.5 * high)
    x = root_of(law, target, x, 0.0, high)
    law.near = maximum(near, law.relative * x * law.slope)
    is_rough = law.rough > 0.0
    law.rough = 0.0
    if law.lasting == 0.0:
        if is_rough:
            x = root_of(law, target, x, 0.0, high)
        slope = maximum(law.slope, 1e-9)
        missed = REACHED * (1.0 + absolute(target)) / slope + ROUNDING * x  # by the root
        off = 2.0 * (maximum(accuracy(target, x), law.off) / slope + missed)
        law.near = near
        return ended_at(law, x + missed, off)
    law.cut = 0.0
    x = root_of(law, target, minimum(x, 0.999999 * high), 0.0, high)
    least = lower_root(law, target, x)
    law.near = near
    return ended_at(law, x, x - least)


def log_delta_beside(law: Law, epsilon: float, other: float) -> float:
    """Return log δ(ε), or a bound of it that is less than half of another law's."""
    law.least = other - 1.0
    value = log_delta_of(law, epsilon)
    law.least = -INFINITY
    return value


def epsilon_beside(law: Law, target: float, other: float) -> float:
    """Return the least ε as `epsilon_of`, or −1 where it is at most another law's."""
    if other > 0.0:
        near = law.near
        law.near = BESIDE
        law.strict = 0.0
        value = log_delta_beside(law, other, target + 1.0)
        law.near = near
        if value <= target:
            ended_at(law, other, other)
            return -1.0
    return epsilon_of(law, target)
