"""Where the law of one step is looked at first: the modes of its densities."""

from __future__ import annotations

from symdp.emit.standalone.runtime.mechanism import (
    SERIES_HIGH,
    SERIES_LOW,
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
    fail,
    filled,
    isfinite,
    joined,
    kept,
    maximum,
    minimum,
    ordered,
    power,
    size,
    steps,
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
