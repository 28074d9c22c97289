"""The law of one step: its losses and their weights under P, as Gauss nodes or outcomes.

Panels of the support are halved until their integrals at three tilts agree. The file keeps to what
`symdp.emit.standalone.translate` reads: numbers, vectors, records, loops over ranges.
"""

from __future__ import annotations

from symdp.emit.standalone.runtime.mechanism import (
    FIRST,
    FLAT,
    INTEGERS,
    KIND,
    LAST,
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
    Number,
    Vector,
    absolute,
    exp,
    fail,
    filled,
    floor,
    gathered,
    isfinite,
    joined,
    kept,
    largest,
    largest_of,
    log,
    maximum,
    minimum,
    ordered,
    power,
    repeated,
    size,
    steps,
    sums_of,
    taken,
    tiled,
    total,
    where,
)

# ---- emitted from here on ----

GAUSS = 20  # nodes of a panel
DEEPEST = 60  # halvings of a panel
NEAR_MODE = 15.0  # places between the two ends of a mode
NARROWINGS_OF_MODE = 14  # of these ends, which are then 8^-14 as far apart
MOST_NODES = 300000
MOST_PLACES_SEEN = 3e7  # at which the density is evaluated for one answer
NEGLIGIBLE = 1e-18  # relative: what a sum leaves out
BLURRED = 1e-13  # relative: a panel whose frequencies a line need not resolve
NARROW = 2e-15  # relative: a panel whose nodes may be rounded out of it
CLOSE = 1e-14  # relative: a panel and its halves, which are far closer
PLACED = 4e-16  # relative: how far the rounding of a place and of a centre moves it
ROUGH = 1e-11  # relative: a panel that no halving brings closer
MOST_TURN = 10.0  # radians by which a loss may turn within a panel
FARTHEST = 1e6  # tilt
FARTHER = 2.0  # times a tilt is the next that is tried at least, where M has not ended
FARTHEST_STEP = 64.0  # the same at most
SETTLED = 1e-3  # relative: how closely the end of M is found
UNSEEN_SHARE = 1e-60  # of a law: a panel, and those beside it, which are not halved to see more
TINY = 1e-300
HEAVY = 1e-3  # of 1/n: parts of the law that keep |phi|^n from being small
ROUNDING = 3e-16  # relative
MASS = 1e-11  # of a law, that may be lost or rounded off
SMOOTH_FROM = 16384.0  # integers: from here on masses that fall like a power are integrated
SMOOTH_BLOCK = 2048.0  # of these, that tell whether sums are integrals
SMOOTH = 1e-7  # relative: how closely
HEAVIEST = (
    20.0  # by which the logarithm of such a mass falls, at most, to a place four times as far
)
UNSEEN = -100.0  # log of a density, relative: where a loss that is no number does not count
NEAR = 1e-6  # of log delta: the width at which a line is long enough


class CutLine:
    """A line at the tilt t up to T; the sums of its latest ε, what T changes and what is unsure.

    `sign`: 1 at every other frequency, −1 between. `beyond`: what terms beyond T add up to at most.
    `vague`: by how much the logarithm of a sum may be off where places are rounded.
    """

    t: float
    half_step: float
    far: float
    scale: float
    centre: float
    frequency: Vector
    sign: Vector
    window: Vector
    near: Vector
    length: Vector
    turn: Vector
    unsure: Vector
    vague: float
    beyond: float
    value: float
    apart: float
    change: float
    off: float


class Law:
    """One step, for tilts up to `reach` and for frequencies; `far`: there is no M(reach).

    Up to the frequency `outer` only its heavy parts count: |φ|^n is small there. Of one step alone
    no frequency is asked; `edge` is the ε at which panels are cut. For a line that is cut off,
    panels that count at the tilt `tilt` are cut until their loss turns by no more than `fine`.

    `near`: how far apart the ends of log δ may lie, or those of ε by `relative` of it.
    `lower, upper`: the ends of the last answer. `trouble`: the sums along a line gave none.
    `evaluated`: places at which this question evaluated the density, of at most `allowed`.
    `left, right, owner`: the panels that count up to the reach `laid`, and their pieces.

    Places are rounded: log densities are off by up to `blur` at the nodes, losses by `smear`,
    integrals by `uneven` where halving a panel brought it no closer, those without a tilt by
    `uneven_plain`, the mass of infinite losses by `hidden`. `off`: of the last log delta.
    `least`: log of a delta below which no answer is asked, as that of another law is above it.
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
    tilt: float
    fine: float
    loss: Vector
    log_weight: Vector  # under P; far out it is no logarithm of a double
    atomic: Vector
    blur: Vector
    smear: Vector
    uneven: float
    uneven_plain: float
    hidden: float
    doubt: float
    off: float
    of_others: float
    escaped: float
    far: float
    ready: float
    work: float
    phase: float
    slope: float
    strict: float
    least: float
    guess: float
    trouble: float
    lower: float
    upper: float
    near: float
    relative: float
    rough: float
    settled: float
    lasting: float
    reached: float
    evaluated: float
    allowed: float
    most_nodes: float
    cut: float
    line: CutLine
    laid: float
    left: Vector
    right: Vector
    owner: Vector
    new_left: Vector
    new_right: Vector
    new_owner: Vector


class Panels:
    """What Gauss nodes see of panels; `low`, `middle` and `high` are integrals at three tilts.

    For a line that is cut off all are at its tilt. The loss turns by `turn` in a panel, by `cut`
    where it passes the edge there; rounding leaves `noise` of an integral.
    """

    x: Vector
    density: Vector
    loss: Vector
    weight: Vector
    low: Vector
    middle: Vector
    high: Vector
    turn: Vector
    cut: Vector
    noise: Vector


def series(which: float, p: Vector) -> float:
    """Return a sum over integers, outwards from the place nearest to zero."""
    first = SERIES_LOW[which]
    last = SERIES_HIGH[which]
    start = first
    if not isfinite(first):
        start = last if isfinite(last) else 0.0
    reach = 256.0
    while reach < 4e6:
        low = maximum(first, start - reach)
        high = minimum(last, start + reach)
        values = term(which, low + steps(high - low + 1.0), p)
        value = total(values)
        count = size(values)
        small = 1e-19 * absolute(value)
        left = low == first or absolute(values[0]) * reach < small
        right = high == last or absolute(values[count - 1]) * reach < small
        if left and right:
            return value
        reach = 4.0 * reach
    fail("a normalising sum has too many terms")
    return 0.0


def height(piece: float, x: Number, c: Vector, side: float, tilt: float) -> Number:
    """Return log density plus tilt times loss, −∞ where there is no density."""
    density = log_p(piece, x, c) if side > 0.0 else log_q(piece, x, c)
    if tilt == 0.0:
        return where(density > -INFINITY, density, -INFINITY)
    value = density + tilt * side * loss_at(piece, x, c)
    holds = (density > -INFINITY) & (absolute(value) >= 0.0)
    return where(holds, value, -INFINITY)


def inside(
    piece: float, x: Number, c: Vector, side: float, tilt: float, low: float, high: float
) -> Number:
    """Return the log of a tilted density between two ends, −∞ beyond them."""
    within = (x > low) & (x < high)
    middle = 0.0
    if isfinite(low + high):
        middle = 0.5 * (low + high)
    elif isfinite(low):
        middle = low + 1.0
    elif isfinite(high):
        middle = high - 1.0
    x_within = where(within, x, middle)
    return where(within, height(piece, x_within, c, side, tilt), -INFINITY)


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
    for _ in range(NARROWINGS_OF_MODE):
        width = (b - a) / (NEAR_MODE + 1.0)
        places = a + width * (steps(NEAR_MODE) + 1.0)
        values = inside(piece, places, c, side, tilt, low, high)
        for i in range(size(places)):
            if values[i] > peak:
                best = places[i]
                peak = values[i]
        a = maximum(a, best - width)
        b = minimum(b, best + width)
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
    anchor = 0.0
    if isfinite(low):
        anchor = low
    elif isfinite(high):
        anchor = high
    powers = power(2.0, steps(71.0) - 30.0)
    grid = joined(anchor + powers, anchor - powers)
    grid = ordered(joined(grid, filled(1, anchor)))
    if isfinite(low + high):
        evenly = low + (high - low) * (steps(63.0) + 1.0) / 64.0
        grid = ordered(joined(grid, evenly))
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
                a = grid[i - 1]
                best = grid[i]
                b = grid[i + 1]
                around = around_mode(piece, c, side, tilt, low, high, a, best, b)
                within = (around > low) & (around < high)
                places = joined(places, kept(around, within))
    return ordered(places)


def places_of(a: Vector, b: Vector) -> Vector:
    """Return the Gauss nodes of panels, which no rounding moves beyond an end."""
    half = repeated(0.5 * (b - a), GAUSS)
    x = repeated(0.5 * (a + b), GAUSS) + half * tiled(PLACES, size(a))
    return maximum(minimum(x, repeated(b, GAUSS)), repeated(a, GAUSS))


def looked_at(law: Law, piece: float, a: Vector, b: Vector) -> Panels:
    """Evaluate a density and its losses at the nodes of panels from a to b."""
    panels = Panels()
    panels.x = places_of(a, b)
    law.evaluated = law.evaluated + size(panels.x)
    panels.density = height(piece, panels.x, law.c, law.side, 0.0)
    panels.loss = law.side * loss_at(piece, panels.x, law.c)
    panels.weight = repeated(0.5 * (b - a), GAUSS) * tiled(WEIGHTS, size(a))
    return panels


def weighed_panels(law: Law, panels: Panels, peaks: Vector) -> Panels:
    """Set what panels add to three integrals, relative to the peaks, and how far losses turn."""
    loss = panels.loss
    weight = panels.weight
    # far out a loss may be beyond the doubles that it is a ratio of
    counts = (absolute(loss) >= 0.0) | (panels.density > peaks[0] + UNSEEN)
    density = where(counts, panels.density, -INFINITY)
    panels.density = density
    within = density > -INFINITY
    if law.fine > 0.0 and size(peaks) > 1:  # of one tilt
        tilted = where(within, density + law.tilt * loss, -INFINITY)
        panels.low = sums_of(weight * exp(tilted - peaks[0]), GAUSS)
    else:
        panels.low = sums_of(weight * exp(density - peaks[0]), GAUSS)
    panels.middle = panels.low
    panels.high = panels.low
    if law.fine == 0.0 and size(peaks) > 1:
        tilted = where(within, density + 0.5 * law.reach * loss, -INFINITY)
        panels.middle = sums_of(weight * exp(tilted - peaks[1]), GAUSS)
        tilted = where(within, density + law.reach * loss, -INFINITY)
        panels.high = sums_of(weight * exp(tilted - peaks[2]), GAUSS)
    terms = where(within, absolute(density) + law.reach * absolute(loss), 0.0)
    panels.noise = largest_of(terms, GAUSS)
    losses = where(within, loss, -INFINITY)
    most = largest_of(losses, GAUSS)
    losses = where(within, -loss, -INFINITY)
    least = -largest_of(losses, GAUSS)
    turn = where(most > least, most - least, 0.0)
    margin = 0.1 * turn
    passes = (least - margin < law.edge) & (law.edge < most + margin)
    panels.turn = turn
    panels.cut = where(passes, turn, 0.0)
    return panels


def share_of(panels: Panels, sums: Vector) -> Vector:
    """Return the largest part that a panel has of the three integrals."""
    return maximum(panels.low / sums[0], maximum(panels.middle / sums[1], panels.high / sums[2]))


def share_about(share: Vector) -> Vector:
    """Return the largest share of a panel and of the two beside it."""
    number = size(share)
    outside = filled(1, 0.0)
    before = gathered(joined(outside, share), 0, number)
    after = gathered(joined(share, outside), 1, number)
    return maximum(share, maximum(before, after))


def record_panels(law: Law, piece: float, a: Vector, b: Vector) -> float:
    """Add panels of a piece to those that are being laid."""
    law.new_left = joined(law.new_left, a)
    law.new_right = joined(law.new_right, b)
    law.new_owner = joined(law.new_owner, filled(size(a), piece))
    return 0.0


def tell_size(law: Law, nodes: float) -> float:
    """Set `trouble` where a law has more nodes than it may have."""
    most = law.most_nodes if law.fine == 0.0 else 4.0 * law.most_nodes
    if nodes > most:
        law.trouble = 1.0
    return nodes


def add_outcomes(law: Law, loss: Vector, log_weight: Vector) -> float:
    """Add outcomes to a law, at places that no rounding moves; return how many nodes there are."""
    law.loss = joined(law.loss, loss)
    law.log_weight = joined(law.log_weight, log_weight)
    law.atomic = joined(law.atomic, filled(size(loss), 1.0))
    law.blur = joined(law.blur, filled(size(loss), 0.0))
    law.smear = joined(law.smear, filled(size(loss), 0.0))
    return tell_size(law, size(law.loss))


def change_by_rounding(x: Vector, value: Vector) -> Vector:
    """Return how much values at the nodes of panels change where places are rounded."""
    number = size(x)
    index = steps(number)
    within = index - GAUSS * floor(index / GAUSS)
    beside = where(within < GAUSS - 1.0, index + 1.0, index - 1.0)
    change = absolute(taken(value, beside) - value)
    rounding = PLACED * absolute(x)
    apart = absolute(taken(x, beside) - x)
    change = change * (rounding / maximum(maximum(apart, rounding), TINY))
    return where(change < INFINITY, change, 0.0)


def add_nodes(law: Law, panels: Panels, seen: Vector, flat: float) -> float:
    """Add the nodes of panels that are seen to a law; return how many there are."""
    every = repeated(seen, GAUSS)
    x = kept(panels.x, every)
    loss = kept(panels.loss, every)
    density = kept(panels.density, every)
    law.loss = joined(law.loss, loss)
    law.log_weight = joined(law.log_weight, log(kept(panels.weight, every)) + density)
    law.atomic = joined(law.atomic, filled(size(loss), flat))
    law.blur = joined(law.blur, change_by_rounding(x, density))
    law.smear = joined(law.smear, change_by_rounding(x, loss))
    return tell_size(law, size(law.loss))


def peak_at(panels: Panels, tilt: float) -> float:
    """Return the log of the largest density at the nodes of panels, tilted."""
    if tilt == 0.0:
        return largest(panels.density)
    value = panels.density + tilt * panels.loss
    holds = (panels.density > -INFINITY) & (absolute(value) >= 0.0)
    return largest(where(holds, value, -INFINITY))


def peaks_of(law: Law, panels: Panels, is_lost: float) -> Vector:
    """Return the log of the largest density at places, and at two tilts where a loss is finite."""
    if is_lost > 0.0:
        return filled(1, peak_at(panels, 0.0))
    if law.fine > 0.0:  # of one tilt
        return filled(3, peak_at(panels, law.tilt))
    low = joined(filled(1, peak_at(panels, 0.0)), filled(1, peak_at(panels, 0.5 * law.reach)))
    return joined(low, filled(1, peak_at(panels, law.reach)))


def turns_far(law: Law, piece: float, left: Panels, right: Panels, share: Vector) -> Vector:
    """Return which panels have a loss that turns, or passes the edge, too far for their share."""
    turn = maximum(left.turn, right.turn)
    turns = share * maximum(left.cut, right.cut) > 1e-3 * NEGLIGIBLE
    if FLAT[piece] > 0.0:
        return turns
    turns = turns | ((share > NEGLIGIBLE) & (turn * law.frequency > MOST_TURN))
    turns = turns | ((share > HEAVY / law.count) & (turn * law.outer > MOST_TURN))
    if law.fine > 0.0:
        turns = turns | ((share > BLURRED) & (turn > law.fine))
    return turns


def add_interval(law: Law, piece: float, low: float, high: float, is_lost: float) -> float:
    """Add the nodes of a piece of the real line: panels are halved until they agree."""
    a = filled(0, 0.0)
    b = filled(0, 0.0)
    if law.laid == law.reach:
        is_of_piece = (law.owner == piece) & (law.left >= low) & (law.right <= high)
        a = kept(law.left, is_of_piece)
        b = kept(law.right, is_of_piece)
    else:
        reach = 0.0 if is_lost > 0.0 else law.reach
        places = outline(piece, law.c, law.side, reach, low, high)
        number = size(places) - 1
        if number < 1:
            fail("no mass is seen on a piece of the support")
        a = gathered(places, 0, number)
        b = gathered(places, 1, number)
    wide = b - a > NARROW * (absolute(a) + absolute(b))
    a = kept(a, wide)
    b = kept(b, wide)
    if size(a) == 0:
        return 0.0
    whole = looked_at(law, piece, a, b)
    if peak_at(whole, 0.0) == -INFINITY:
        return 0.0
    peaks = peaks_of(law, whole, is_lost)
    whole = weighed_panels(law, whole, peaks)
    sums = joined(filled(1, total(whole.middle)), filled(1, total(whole.high)))
    sums = joined(filled(1, total(whole.low)), sums)
    if not isfinite(sums[0] + sums[1] + sums[2]):
        law.far = 1.0
        return 0.0
    sums = maximum(sums, 1e-300)
    low_sum = whole.low
    middle_sum = whole.middle
    high_sum = whole.high
    is_first = law.laid != law.reach
    if is_first:
        share = share_of(whole, sums)
        ends_left = not isfinite(low) and share[0] > MASS
        ends_right = not isfinite(high) and share[size(share) - 1] > MASS
        if ends_left or ends_right:
            law.far = 1.0
            return 0.0
        near = share_about(share) > UNSEEN_SHARE
        a = kept(a, near)
        b = kept(b, near)
        low_sum = kept(low_sum, near)
        middle_sum = kept(middle_sum, near)
        high_sum = kept(high_sum, near)
    flat = FLAT[piece]
    for depth in range(DEEPEST + 1):
        middle = 0.5 * (a + b)
        left = weighed_panels(law, looked_at(law, piece, a, middle), peaks)
        right = weighed_panels(law, looked_at(law, piece, middle, b), peaks)
        off_low = absolute(left.low + right.low - low_sum) / sums[0]
        off_middle = absolute(left.middle + right.middle - middle_sum) / sums[1]
        off_high = absolute(left.high + right.high - high_sum) / sums[2]
        off = maximum(off_low, maximum(off_middle, off_high))
        if largest(where(off >= 0.0, 0.0, 1.0)) > 0.0:  # no number
            law.far = 1.0
            return 0.0
        share = maximum(share_of(left, sums), share_of(right, sums))
        noise = ROUNDING * share * maximum(left.noise, right.noise)
        is_off = off > CLOSE + minimum(noise, 0.1 * ROUGH)
        wide = b - a > 2.0 * NARROW * (absolute(a) + absolute(b))
        again = (is_off | turns_far(law, piece, left, right, share)) & wide
        if depth == DEEPEST:
            again = again & (a > b)
        if largest(where(again, 0.0, off)) > ROUGH:
            if largest(where(again, 0.0, off_low)) > ROUGH or law.fine > 0.0:
                fail("the density is too rough for this program: symdp answers")
            law.far = 1.0  # only the tilted one is: M ends before this tilt, or close to it
            return 0.0
        seen = where(again, 0.0, share) > 1e-3 * NEGLIGIBLE
        if is_first:
            record_panels(law, piece, kept(a, seen), kept(b, seen))
        law.uneven = law.uneven + total(where(again | (off < CLOSE), 0.0, off))
        plain_off = where(again | (off_low < CLOSE), 0.0, off_low)
        law.uneven_plain = law.uneven_plain + total(plain_off)
        add_nodes(law, left, seen, flat)
        add_nodes(law, right, seen, flat)
        low_sum = joined(kept(left.low, again), kept(right.low, again))
        middle_sum = joined(kept(left.middle, again), kept(right.middle, again))
        high_sum = joined(kept(left.high, again), kept(right.high, again))
        if law.trouble > 0.0:
            return 0.0
        halves = joined(kept(middle, again), kept(b, again))
        a = joined(kept(a, again), kept(middle, again))
        b = halves
        if size(a) == 0:
            return 1.0
        tell_size(law, size(law.loss) + GAUSS * size(a))
        if law.trouble > 0.0:
            return 0.0
    return 0.0


def is_heavy(plain: Vector, low: float, high: float) -> float:
    """Return whether masses up to a reach fall like a power where they go on beyond it."""
    count = size(plain)
    left = 0.0
    right = 0.25
    if not isfinite(low):
        left = 0.375
        right = 0.625
    before = 0.0
    if not isfinite(low):
        before = plain[int(floor(left * count))] - plain[0]
    after = 0.0
    if not isfinite(high):
        after = plain[int(floor(right * count))] - plain[count - 1]
    return 1.0 if before < HEAVIEST and after < HEAVIEST else 0.0


def is_smooth(law: Law, piece: float, low: float, high: float, tilt: float) -> float:
    """Return whether sums over integers beyond a place are integrals, at three tilts."""
    for side in range(2):
        sign = 1.0 if side > 0 else -1.0
        end = high if side > 0 else low
        if not isfinite(end):
            first = sign * SMOOTH_FROM
            places = first + sign * (steps(SMOOTH_BLOCK) + 1.0)
            middle = first + sign * 0.5 * (SMOOTH_BLOCK + 1.0)
            nodes = middle + 0.5 * SMOOTH_BLOCK * PLACES
            for k in range(3):
                t = 0.5 * k * tilt
                seen = height(piece, places, law.c, law.side, t)
                between = height(piece, nodes, law.c, law.side, t)
                top = largest(seen)
                whole = total(exp(seen - top))
                integral = 0.5 * SMOOTH_BLOCK * total(WEIGHTS * exp(between - top))
                if not absolute(integral - whole) < SMOOTH * whole:
                    return 0.0
    return 1.0


def add_heavy(law: Law, piece: float, low: float, high: float, is_lost: float) -> float:
    """Add outcomes up to a place one by one, and those beyond as integrals of their masses."""
    first = maximum(low, -SMOOTH_FROM)
    last = minimum(high, SMOOTH_FROM)
    x = first + steps(last - first + 1.0)
    plain = height(piece, x, law.c, law.side, 0.0)
    loss = law.side * loss_at(piece, x, law.c)
    law.evaluated = law.evaluated + size(x)
    add_outcomes(law, loss, plain)
    if not isfinite(high):
        add_interval(law, piece, SMOOTH_FROM + 0.5, high, is_lost)
    if not isfinite(low) and law.far == 0.0:
        add_interval(law, piece, low, -SMOOTH_FROM - 0.5, is_lost)
    return 1.0


def add_integers(law: Law, piece: float, low: float, high: float, is_lost: float) -> float:
    """Add the outcomes of a law on integers, as far as three tilts see them."""
    start = 0.0
    if isfinite(low):
        start = low
    elif isfinite(high):
        start = high
    reach = 256.0
    tilt = 0.0 if is_lost > 0.0 else law.reach
    while reach < 2e6:
        first = maximum(low, start - reach)
        last = minimum(high, start + reach)
        x = first + steps(last - first + 1.0)
        law.evaluated = law.evaluated + size(x)
        plain = height(piece, x, law.c, law.side, 0.0)
        half = height(piece, x, law.c, law.side, 0.5 * tilt)
        tilted = height(piece, x, law.c, law.side, tilt)
        nearest = maximum(half - largest(half), tilted - largest(tilted))
        nearest = maximum(plain - largest(plain), nearest)
        count = size(x)
        left = first == low or nearest[0] < -60.0
        right = last == high or nearest[count - 1] < -60.0
        if left and right:
            seen = nearest > -60.0
            loss = law.side * loss_at(piece, x, law.c)
            return add_outcomes(law, kept(loss, seen), kept(plain, seen))
        is_power = reach >= SMOOTH_FROM and is_heavy(plain, low, high) > 0.0
        if is_power and is_smooth(law, piece, low, high, tilt) > 0.0:
            return add_heavy(law, piece, low, high, is_lost)
        reach = 4.0 * reach
    law.far = 1.0
    return 0.0


def add_flat(law: Law, piece: float, low: float, high: float, is_lost: float) -> float:
    """Add a piece of the real line, as one node where its loss is constant."""
    before = size(law.loss)
    weights = law.log_weight
    add_interval(law, piece, low, high, is_lost)
    number = size(law.loss) - before
    if FLAT[piece] > 0.0 and number > 1:
        log_weights = gathered(law.log_weight, before, number)
        top = largest(log_weights)
        log_mass = top + log(total(exp(log_weights - top)))
        blur = total(exp(log_weights - log_mass) * gathered(law.blur, before, number))
        law.log_weight = joined(weights, filled(1, log_mass))
        law.loss = gathered(law.loss, 0, before + 1)
        law.atomic = gathered(law.atomic, 0, before + 1)
        law.blur = joined(gathered(law.blur, 0, before), filled(1, blur))
        law.smear = joined(gathered(law.smear, 0, before), filled(1, 0.0))
    return 0.0


def forget_new_panels(law: Law) -> float:
    """Empty the list of the panels that are being laid."""
    law.new_left = filled(0, 0.0)
    law.new_right = filled(0, 0.0)
    law.new_owner = filled(0, 0.0)
    return 0.0


def forget_nodes(law: Law) -> float:
    """Empty a law before its nodes are laid."""
    law.loss = filled(0, 0.0)
    law.log_weight = filled(0, 0.0)
    law.atomic = filled(0, 0.0)
    law.blur = filled(0, 0.0)
    law.smear = filled(0, 0.0)
    law.uneven = 0.0
    law.uneven_plain = 0.0
    law.hidden = 0.0
    return 0.0


def build(law: Law) -> float:
    """Lay the nodes of one step; `far` says that there is no M(reach)."""
    if law.evaluated > law.allowed:
        fail("this takes more work than this program spends on an answer: symdp answers")
    forget_nodes(law)
    law.far = 0.0
    law.ready = 0.0
    forget_new_panels(law)
    for piece in range(PIECES):
        sign = law.side * KIND[piece]
        low, high = law.c[LOWER[piece]], law.c[UPPER[piece]]
        lost = 1.0 if sign > 0.0 else 0.0
        is_of_other_case = piece < law.c[FIRST] or piece >= law.c[LAST]
        if not is_of_other_case and sign >= 0.0 and law.far == 0.0:
            if POINTS > 0.0:
                loss = law.side * law.c[LOSS[piece]]
                mass = low if law.side > 0.0 else high
                add_outcomes(law, filled(1, loss), log(filled(1, mass)))
            elif INTEGERS > 0.0:
                add_integers(law, piece, low, high, lost)
            else:
                add_flat(law, piece, low, high, lost)
    if law.far > 0.0 or law.trouble > 0.0:
        return 0.0
    if law.laid != law.reach:
        law.left = law.new_left
        law.right = law.new_right
        law.owner = law.new_owner
        law.laid = law.reach
    if law.fine == 0.0:
        mass = total(exp(law.log_weight))
        if not absolute(mass - 1.0) < MASS + law.uneven + total(exp(law.log_weight) * law.blur):
            fail("the density does not add up to one at these values")
        law.log_weight = law.log_weight - log(mass)
        escaped = where(law.loss == INFINITY, exp(law.log_weight), 0.0)
        law.escaped = total(escaped)
        law.hidden = total(escaped * law.blur)
        law.ready = 1.0
    finite = (absolute(law.loss) < INFINITY) & (law.log_weight > -INFINITY)
    law.loss = kept(law.loss, finite)
    law.atomic = kept(law.atomic, finite)
    law.blur = kept(law.blur, finite)
    law.smear = kept(law.smear, finite)
    law.log_weight = kept(law.log_weight, finite)
    return 1.0


def farther(law: Law, about: float) -> float:
    """Move the reach after the law was found to be too far, or not far enough; 0: no more.

    Where nothing ended M so far it goes to a tilt about which the nodes have what is asked.
    """
    if law.far > 0.0:
        law.high = law.reach
        law.reach = 0.5 * (law.low + law.high)
    else:
        law.low = law.reach
        if law.high == INFINITY:
            law.reach = minimum(maximum(about, FARTHER * law.reach), FARTHEST_STEP * law.reach)
        else:
            law.reach = 0.5 * (law.low + law.high)
    law.ready = 0.0
    is_settled = law.high - law.low < SETTLED * law.high
    return 0.0 if law.reach > FARTHEST or is_settled else 1.0


def law_of(c: Vector, side: float, count: float) -> Law:
    """Return the law of one step before its nodes are laid."""
    law = Law()
    law.c = c
    law.side = side
    law.count = count
    law.low = 0.0
    law.high = INFINITY
    law.reach = 1.0
    law.frequency = 0.0
    law.outer = 0.0
    law.edge = INFINITY
    law.ready = 0.0
    law.far = 0.0
    law.strict = 1.0
    law.least = -INFINITY
    law.tilt = 0.0
    law.fine = 0.0
    law.trouble = 0.0
    law.near = NEAR
    law.relative = 0.0
    law.rough = 0.0
    law.settled = 0.0
    law.lasting = 0.0
    law.cut = 0.0
    law.reached = 0.0
    law.evaluated = 0.0
    law.doubt = 0.0
    law.off = 0.0
    law.allowed = MOST_PLACES_SEEN
    law.most_nodes = MOST_NODES
    law.laid = 0.0
    law.left = filled(0, 0.0)
    law.right = filled(0, 0.0)
    law.owner = filled(0, 0.0)
    forget_new_panels(law)
    return law


def resolved(law: Law, t: float, turn: float) -> Law:
    """Return the law tilted by t whose panels, where they count, turn by no more than so much."""
    fine = law_of(law.c, law.side, law.count)
    fine.reach = law.reach
    fine.tilt = t
    fine.fine = turn
    fine.evaluated = law.evaluated
    fine.allowed = law.allowed
    fine.most_nodes = law.most_nodes
    fine.laid = law.laid
    fine.left = law.left
    fine.right = law.right
    fine.owner = law.owner
    build(fine)
    law.evaluated = fine.evaluated
    return fine
