"""The accountant that every emitted file holds: written once, translated into C and JavaScript.

M(z) = E exp(zL) of one step is a sum over Gauss nodes of the density, or over outcomes. δ is the
trapezoidal sum along Re z = t, the saddle point, of

    M(z)^n exp(−zε) / (z(z + 1)) / 2πi,

or a sum over one period where all losses lie on a lattice; ε is its inverse. The file keeps to what
`symdp.emit.standalone.translate` reads: numbers, vectors, records, loops over ranges.
"""

from __future__ import annotations

from symdp.emit.standalone.runtime.mechanism import (
    FLAT,
    INTEGERS,
    KIND,
    LARGEST,
    LEAST,
    LOSS,
    LOWER,
    PIECES,
    PLACES,
    POINTS,
    SERIES_HIGH,
    SERIES_LOW,
    UPPER,
    WEIGHTS,
    log_p,
    log_q,
    loss_at,
    term,
)
from symdp.emit.standalone.runtime.primitives import (
    INFINITY,
    PI,
    Number,
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
    largest_of,
    log,
    log1p,
    maximum,
    minimum,
    ordered,
    power,
    ranking,
    repeated,
    sin,
    size,
    sqrt,
    steps,
    summed,
    sums_of,
    taken,
    tiled,
    total,
    where,
)

# ---- emitted from here on ----

GAUSS = 20  # nodes of a panel
DEEPEST = 60  # halvings of a panel
MOST_NODES = 300000
NEGLIGIBLE = 1e-18  # relative: what a sum leaves out
NARROW = 2e-15  # relative: a panel whose nodes may be rounded out of it
CLOSE = 1e-14  # relative: a panel and its halves, which are far closer
ROUGH = 1e-11  # relative: a panel that no halving brings closer
AGREED = 1e-12  # relative: sums with a step and with half of it
MOST_TURN = 10.0  # radians by which a loss may turn within a panel
MOST_WORK = 1e8  # sines of one answer
FARTHEST = 1e6  # tilt
SAME_LATTICE = 1e-9  # of a spacing
RESET = 32  # turns of a wave after which it is computed anew
TINY = 1e-300
LOG_SMALL = -31.0  # of |phi|^n beyond which nothing is summed: log of 3e-14
LOG_ROUNDING = -38.0  # of 1 - delta, of which 1 as a double holds nothing
FEW = 20  # steps: with fewer the characteristic function itself is small where its power is
HEAVY = 1e-3  # of 1/n: parts of the law that keep |phi|^n from being small
LOST = 1e-10  # relative error of delta by the rounding of losses
ROUNDING = 3e-16
MASS = 1e-11  # of a law, that may be lost or rounded off


class Law:
    """One step, for tilts up to `reach` and for frequencies; `far`: there is no M(reach).

    Up to the frequency `outer` only its heavy parts count: |φ|^n is small there. Of one step alone
    no frequency is asked; `edge` is the ε at which panels are cut.
    """

    c: Vector
    side: float
    count: float
    low: float
    high: float
    reach: float
    frequency: float
    outer: float
    edge: float
    loss: Vector
    log_weight: Vector  # under P; far out it is no logarithm of a double
    atomic: Vector
    escaped: float
    far: float
    ready: float
    work: float
    phase: float
    slope: float
    strict: float
    guess: float


class Panels:
    """What Gauss nodes see of panels; `low`, `middle` and `high` are integrals at three tilts.

    The loss turns by `turn` in a panel, by `cut` where it passes the edge there.
    """

    density: Vector
    loss: Vector
    weight: Vector
    low: Vector
    middle: Vector
    high: Vector
    turn: Vector
    cut: Vector


def series(which: float, p: Vector) -> float:
    """Return a sum over integers, outwards from the place nearest to zero."""
    first, last = SERIES_LOW[which], SERIES_HIGH[which]
    start = first if first > -INFINITY else (last if last < INFINITY else 0.0)
    reach = 256.0
    while reach < 4e6:
        low, high = maximum(first, start - reach), minimum(last, start + reach)
        values = term(which, low + steps(high - low + 1.0), p)
        found = total(values)
        count = size(values)
        small = 1e-19 * absolute(found)
        left = low == first or absolute(values[0]) * reach < small
        if left and (high == last or absolute(values[count - 1]) * reach < small):
            return found
        reach = 4.0 * reach
    fail("a normalising sum has too many terms")
    return 0.0


def height(piece: float, x: Number, c: Vector, side: float, tilt: float) -> Number:
    """Return log density plus tilt times loss, −∞ where there is no density."""
    density = log_p(piece, x, c) if side > 0.0 else log_q(piece, x, c)
    if tilt == 0.0:
        return where(density > -INFINITY, density, -INFINITY)
    return where(density > -INFINITY, density + tilt * side * loss_at(piece, x, c), -INFINITY)


def inside(
    piece: float, x: Number, c: Vector, side: float, tilt: float, low: float, high: float
) -> Number:
    """Return the log of a tilted density between two ends, −∞ beyond them."""
    within = (x > low) & (x < high)
    middle = (
        0.5 * (low + high)
        if isfinite(low + high)
        else (low + 1.0 if isfinite(low) else (high - 1.0 if isfinite(high) else 0.0))
    )
    return where(within, height(piece, where(within, x, middle), c, side, tilt), -INFINITY)


def around_mode(
    piece: float,
    c: Vector,
    side: float,
    tilt: float,
    low: float,
    high: float,
    a: float,
    best: float,
    b: float,
) -> Vector:
    """Return places about the highest point between a and b, geometrically."""
    peak = inside(piece, best, c, side, tilt, low, high)
    for _ in range(60):  # golden section
        x = best - 0.381966 * (best - a) if best - a > b - best else best + 0.381966 * (b - best)
        value = inside(piece, x, c, side, tilt, low, high)
        if value > peak:
            if x < best:
                b = best
            else:
                a = best
            best = x
            peak = value
        elif x < best:
            a = x
        else:
            b = x
    scales = power(2.0, steps(81.0) - 40.0)
    fallen = maximum(
        inside(piece, best + scales, c, side, tilt, low, high),
        inside(piece, best - scales, c, side, tilt, low, high),
    )
    k = 0
    while k < 80 and fallen[k] >= peak - 0.5:
        k = k + 1
    powers = scales[k] * power(2.0, steps(163.0) - 2.0)  # heavy tails hold mass far out
    return joined(filled(1, best), joined(best + powers, best - powers))


def outline(piece: float, c: Vector, side: float, reach: float, low: float, high: float) -> Vector:
    """Return places between which a piece is first looked at: about the modes up to a tilt."""
    anchor = low if isfinite(low) else (high if isfinite(high) else 0.0)
    powers = power(2.0, steps(71.0) - 30.0)
    grid = joined(anchor + powers, anchor - powers)
    grid = ordered(joined(grid, filled(1, anchor)))
    if isfinite(low + high):
        grid = ordered(joined(grid, low + (high - low) * (steps(63.0) + 1.0) / 64.0))
    places = filled(0, 0.0)
    if isfinite(low):
        places = joined(places, filled(1, low))
    if isfinite(high):
        places = joined(places, filled(1, high))
    for turn in range(4):  # at tilt −1 it is the other law
        tilt = 0.5 * reach * (turn - 1.0) if turn > 0 else -1.0
        seen = inside(piece, grid, c, side, tilt, low, high)
        for i in range(1, size(grid) - 1):
            if seen[i] > seen[i - 1] and seen[i] >= seen[i + 1]:
                a, best, b = grid[i - 1], grid[i], grid[i + 1]
                found = around_mode(piece, c, side, tilt, low, high, a, best, b)
                places = joined(places, kept(found, (found > low) & (found < high)))
    return ordered(places)


def places_of(a: Vector, b: Vector) -> Vector:
    """Return the Gauss nodes of panels, which no rounding moves beyond an end."""
    half = repeated(0.5 * (b - a), GAUSS)
    x = repeated(0.5 * (a + b), GAUSS) + half * tiled(PLACES, size(a))
    return maximum(minimum(x, repeated(b, GAUSS)), repeated(a, GAUSS))


def measured(law: Law, piece: float, a: Vector, b: Vector, peaks: Vector) -> Panels:
    """Look at panels from a to b."""
    panels = Panels()
    number = size(a)
    half = repeated(0.5 * (b - a), GAUSS)
    x = places_of(a, b)
    density = height(piece, x, law.c, law.side, 0.0)
    loss = law.side * loss_at(piece, x, law.c)
    weight = half * tiled(WEIGHTS, number)
    panels.density, panels.loss, panels.weight = density, loss, weight
    panels.low = sums_of(weight * exp(density - peaks[0]), GAUSS)
    halfway, full = 0.5 * law.reach, law.reach
    if size(peaks) > 1:
        seen = where(density > -INFINITY, density + halfway * loss, -INFINITY)
        panels.middle = sums_of(weight * exp(seen - peaks[1]), GAUSS)
        seen = where(density > -INFINITY, density + full * loss, -INFINITY)
        panels.high = sums_of(weight * exp(seen - peaks[2]), GAUSS)
    else:
        panels.middle, panels.high = panels.low, panels.low
    most = largest_of(where(density > -INFINITY, loss, -INFINITY), GAUSS)
    least = -largest_of(where(density > -INFINITY, -loss, -INFINITY), GAUSS)
    turn = where(most > least, most - least, 0.0)
    passes = (least - 0.1 * turn < law.edge) & (law.edge < most + 0.1 * turn)
    panels.turn, panels.cut = turn, where(passes, turn, 0.0)
    return panels


def share_of(panels: Panels, sums: Vector) -> Vector:
    """Return the largest part that a panel has of the three integrals."""
    return maximum(panels.low / sums[0], maximum(panels.middle / sums[1], panels.high / sums[2]))


def add_nodes(law: Law, loss: Vector, log_weight: Vector, flat: float) -> float:
    """Add nodes to a law; return how many there are."""
    law.loss = joined(law.loss, loss)
    law.log_weight = joined(law.log_weight, log_weight)
    law.atomic = joined(law.atomic, filled(size(loss), flat))
    if size(law.loss) > MOST_NODES:
        fail("too few steps for this program: the loss needs too many nodes")
    return size(law.loss)


def add_interval(law: Law, piece: float, low: float, high: float, is_lost: float) -> float:
    """Add the nodes of a piece of the real line: panels are halved until they agree."""
    places = outline(piece, law.c, law.side, 0.0 if is_lost > 0.0 else law.reach, low, high)
    number = size(places) - 1
    if number < 1:
        fail("no mass is seen on a piece of the support")
    a, b = gathered(places, 0, number), gathered(places, 1, number)
    wide = b - a > NARROW * (absolute(a) + absolute(b))
    a, b = kept(a, wide), kept(b, wide)
    x = places_of(a, b)
    peaks = filled(1, largest(height(piece, x, law.c, law.side, 0.0)))
    if peaks[0] == -INFINITY:
        return 0.0
    if is_lost == 0.0:
        top = largest(height(piece, x, law.c, law.side, 0.5 * law.reach))
        peaks = joined(peaks, filled(1, top))
        top = largest(height(piece, x, law.c, law.side, law.reach))
        peaks = joined(peaks, filled(1, top))
    whole = measured(law, piece, a, b, peaks)
    sums = joined(
        filled(1, total(whole.low)),
        joined(filled(1, total(whole.middle)), filled(1, total(whole.high))),
    )
    if not isfinite(sums[0] + sums[1] + sums[2]):
        law.far = 1.0
        return 0.0
    sums = maximum(sums, 1e-300)
    share = share_of(whole, sums)
    if (not isfinite(low) and share[0] > MASS) or (
        not isfinite(high) and share[size(share) - 1] > MASS
    ):
        law.far = 1.0
        return 0.0
    inner = 0.0 if FLAT[piece] > 0.0 else law.frequency
    outer = 0.0 if FLAT[piece] > 0.0 else law.outer
    low_sum, middle_sum, high_sum = whole.low, whole.middle, whole.high
    for depth in range(DEEPEST + 1):
        middle = 0.5 * (a + b)
        left = measured(law, piece, a, middle, peaks)
        right = measured(law, piece, middle, b, peaks)
        off = maximum(
            absolute(left.low + right.low - low_sum) / sums[0],
            maximum(
                absolute(left.middle + right.middle - middle_sum) / sums[1],
                absolute(left.high + right.high - high_sum) / sums[2],
            ),
        )
        if largest(where(off >= 0.0, 0.0, 1.0)) > 0.0:  # no number
            law.far = 1.0
            return 0.0
        share = maximum(share_of(left, sums), share_of(right, sums))
        turn = maximum(left.turn, right.turn)
        turns = (share > NEGLIGIBLE) & (turn * inner > MOST_TURN)
        turns = turns | ((share > HEAVY / law.count) & (turn * outer > MOST_TURN))
        turns = turns | (share * maximum(left.cut, right.cut) > 1e-3 * NEGLIGIBLE)
        again = ((off > CLOSE) | turns) & (b - a > 2.0 * NARROW * (absolute(a) + absolute(b)))
        if depth == DEEPEST:
            again = again & (a > b)
        if largest(where(again, 0.0, off)) > ROUGH:
            fail("the density is too rough for this program")
        seen = where(again, 0.0, share) > 1e-3 * NEGLIGIBLE
        every = repeated(seen, GAUSS)
        flat = FLAT[piece]
        add_nodes(law, kept(left.loss, every), kept(log(left.weight) + left.density, every), flat)
        add_nodes(
            law, kept(right.loss, every), kept(log(right.weight) + right.density, every), flat
        )
        low_sum = joined(kept(left.low, again), kept(right.low, again))
        middle_sum = joined(kept(left.middle, again), kept(right.middle, again))
        high_sum = joined(kept(left.high, again), kept(right.high, again))
        halves = joined(kept(middle, again), kept(b, again))
        a = joined(kept(a, again), kept(middle, again))
        b = halves
        if size(a) == 0:
            return 1.0
    return 0.0


def add_integers(law: Law, piece: float, low: float, high: float, is_lost: float) -> float:
    """Add the outcomes of a law on integers, as far as three tilts see them."""
    start = low if isfinite(low) else (high if isfinite(high) else 0.0)
    reach = 256.0
    tilt = 0.0 if is_lost > 0.0 else law.reach
    while reach < 2e6:
        first, last = maximum(low, start - reach), minimum(high, start + reach)
        x = first + steps(last - first + 1.0)
        plain = height(piece, x, law.c, law.side, 0.0)
        half = height(piece, x, law.c, law.side, 0.5 * tilt)
        tilted = height(piece, x, law.c, law.side, tilt)
        nearest = maximum(
            plain - largest(plain), maximum(half - largest(half), tilted - largest(tilted))
        )
        count = size(x)
        if (first == low or nearest[0] < -60.0) and (last == high or nearest[count - 1] < -60.0):
            seen = nearest > -60.0
            loss = law.side * loss_at(piece, x, law.c)
            return add_nodes(law, kept(loss, seen), kept(plain, seen), 1.0)
        reach = 4.0 * reach
    law.far = 1.0
    return 0.0


def add_flat(law: Law, piece: float, low: float, high: float, is_lost: float) -> float:
    """Add a piece of the real line, as one node where its loss is constant."""
    before, weights = size(law.loss), law.log_weight
    add_interval(law, piece, low, high, is_lost)
    number = size(law.loss) - before
    if FLAT[piece] > 0.0 and number > 1:
        own = gathered(law.log_weight, before, number)
        top = largest(own)
        law.log_weight = joined(weights, filled(1, top + log(total(exp(own - top)))))
        law.loss = gathered(law.loss, 0, before + 1)
        law.atomic = gathered(law.atomic, 0, before + 1)
    return 0.0


def build(law: Law) -> float:
    """Lay the nodes of one step; `far` says that there is no M(reach)."""
    law.loss, law.log_weight, law.atomic = filled(0, 0.0), filled(0, 0.0), filled(0, 0.0)
    law.far, law.ready = 0.0, 0.0
    for piece in range(PIECES):
        sign = law.side * KIND[piece]
        low, high = law.c[LOWER[piece]], law.c[UPPER[piece]]
        lost = 1.0 if sign > 0.0 else 0.0
        if sign >= 0.0 and law.far == 0.0:
            if POINTS > 0.0:
                loss = law.side * law.c[LOSS[piece]]
                add_nodes(
                    law, filled(1, loss), log(filled(1, low if law.side > 0.0 else high)), 1.0
                )
            elif INTEGERS > 0.0:
                add_integers(law, piece, low, high, lost)
            else:
                add_flat(law, piece, low, high, lost)
    if law.far > 0.0:
        return 0.0
    mass = total(exp(law.log_weight))
    if not absolute(mass - 1.0) < MASS:
        fail("the density does not add up to one at these values")
    log_weight = law.log_weight - log(mass)
    law.escaped = total(where(law.loss == INFINITY, exp(log_weight), 0.0))
    finite = (absolute(law.loss) < INFINITY) & (log_weight > -INFINITY)
    law.loss, law.atomic = kept(law.loss, finite), kept(law.atomic, finite)
    law.log_weight = kept(log_weight, finite)
    law.ready = 1.0
    return 1.0


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
