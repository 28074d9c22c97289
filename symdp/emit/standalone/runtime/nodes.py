"""The law of one step as nodes: of panels that are halved until they agree, or outcomes."""

from __future__ import annotations

from symdp.emit.standalone.runtime.mechanism import (
    FLAT,
    INTEGERS,
    KIND,
    LOSS,
    LOWER,
    PIECES,
    PLACES,
    POINTS,
    UPPER,
    WEIGHTS,
    loss_at,
)
from symdp.emit.standalone.runtime.outline import (
    CLOSE,
    DEEPEST,
    GAUSS,
    HEAVY,
    MASS,
    MOST_NODES,
    MOST_TURN,
    NARROW,
    NEGLIGIBLE,
    ROUGH,
    Law,
    Panels,
    height,
    outline,
)
from symdp.emit.standalone.runtime.primitives import (
    INFINITY,
    Vector,
    absolute,
    exp,
    fail,
    filled,
    gathered,
    isfinite,
    joined,
    kept,
    largest,
    largest_of,
    log,
    maximum,
    minimum,
    repeated,
    size,
    steps,
    sums_of,
    tiled,
    total,
    where,
)

# ---- emitted from here on ----


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
