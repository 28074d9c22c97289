"""Few steps, atoms off a lattice, losses whose characteristic function lasts: δ between two ends.

The law of one step is put on a grid twice. Above: a loss between two places of the grid is split
between them so that P and Q keep their mass [Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022];
what is split distinguishes better, so δ of n steps grows. Below: the outcomes whose losses lie
around one place are merged to one, which is post-processing, and the loss of what is merged is
rounded down to a grid that is shifted by a little. A smooth density loses the square of the grid's
width on both sides. Each law is tilted, and its n-th power is one discrete Fourier transform.
"""

from __future__ import annotations

from symdp.emit.standalone.runtime.law import (
    Grid,
    Law,
    Tilted,
    build,
    law_of,
    log_escaped,
    log_sum,
    spacing,
    tilted_by,
)
from symdp.emit.standalone.runtime.primitives import (
    INFINITY,
    Vector,
    absolute,
    atan2,
    binned,
    cos,
    decayed,
    exp,
    expm1,
    filled,
    floor,
    gathered,
    hypot,
    isfinite,
    joined,
    kept,
    largest,
    log,
    maximum,
    minimum,
    power,
    sin,
    size,
    spectrum,
    sqrt,
    steps,
    summed,
    taken,
    total,
    where,
)

# ---- emitted from here on ----

LEFT_OUT = 35.0  # minus log of the tilted mass beyond either end of a grid
CELLS = 10.0  # of the grid, by which the loss may turn within a panel
FIRST_PLACES = 16384.0  # of a grid; a power of 2, as the transform has it
MOST_PLACES = 262144.0
SHIFTS = 10  # of the grid below, tried on either side
ATOM = 1e-12  # tilted mass of an atom that a grid is laid through
EPSILON = 1.2e-16  # relative, of a rounding
ROOM = 0.03  # of an interval's width, that the Gauss nodes may have moved it
SCALED_LOW = -12.0  # log of the tilted δ, of which rounding leaves ten digits
LEAST_TILT = 0.05  # of those that are tried in place of the saddle point
WIDEST = 2.0  # interval of log delta that is an answer


def reach_of(law: Law, at: Tilted, sign: float) -> float:
    """Return how far from n times the mean less than e^−35 of the tilted sum is left, to one side.

    That is Chernoff's bound, the least of some tilts.
    """
    limit = law.reach - at.t if sign > 0.0 else at.t + 1.0
    largest_loss = largest(sign * law.loss)
    far = (largest_loss - sign * at.mean) * law.count
    unit = 1.0 / sqrt(law.count * at.variance + 1e-300)
    for k in range(18):
        multiple = power(2.0, 0.5 * k - 1.0)
        more = minimum(unit * multiple, limit)
        if more > 0.0:
            moved = tilted_by(law, at.t + sign * more)
            rise = moved.cgf - at.cgf
            cost = law.count * (rise - sign * more * at.mean)
            far = minimum(far, (cost + LEFT_OUT) / more)
    return maximum(far, 0.0)


def wrapped(places: Vector, count: float) -> Vector:
    """Return places modulo a count."""
    return places - count * floor(places / count)


def split_up(law: Law, at: Tilted, start: float, h: float, number: float) -> Vector:
    """Return the tilted law on a grid, whose losses are split between two places."""
    index = floor((law.loss - start) / h)
    over = law.loss - start - h * index
    over = minimum(maximum(over, 0.0), h)
    share = expm1(-over) / expm1(-h)
    low = at.weight * exp(-at.t * over) * (1.0 - share)
    high = at.weight * exp(at.t * (h - over)) * share
    masses = joined(low, high)
    low_places = wrapped(index, number)
    high_places = wrapped(index + 1.0, number)
    return binned(joined(low_places, high_places), masses, number)


def rounded_loss(mass: Vector, over: Vector, shift: float, h: float) -> float:
    """Return how much loss is rounded off on a grid that is shifted."""
    lost = where(over >= shift, over - shift, over - shift + h)
    return summed(mass * lost)


def spline(u: Vector, k: float) -> Vector:
    """Return the share of the k-th of six places in what lies u beyond the third: a B-spline."""
    v = u if k >= 3.0 else 1.0 - u
    from_middle = absolute(k - 2.5)
    if from_middle > 2.0:
        return v * v * v * v * v / 120.0
    if from_middle > 1.0:
        inner = 2.0 + v * (2.0 + v * (1.0 - v))
        return (1.0 + 5.0 * v * (1.0 + v * inner)) / 120.0
    inner = 2.0 + v * (-2.0 + v * (-2.0 + v * 1.0))
    return (13.0 + 5.0 * v * (5.0 + v * inner)) / 60.0


def merged_means(
    law: Law, at: Tilted, start: float, h: float, moved: Vector, mass: Vector
) -> Vector:
    """Set the masses of what is merged to each place, and return how far its mean lies beyond.

    Atoms belong to the nearest place; of a density each place has the share of a quintic spline, so
    that few nodes at a place tell the mean. `moved`: how much larger losses are taken to be.
    """
    number = size(mass)
    t = at.t
    near = absolute(law.loss - at.mean) < 0.5 * h * number
    seen = near & (law.atomic == 0.0)
    loss = kept(law.loss, seen)
    weight = kept(at.weight, seen)
    scaled = (loss - start) / h
    nearest = wrapped(floor(scaled + 0.5), number)
    shared = scaled + taken(moved, nearest) / h
    index = floor(shared)
    beyond = shared - index
    off = scaled - index
    weight = weight * exp(-t * h * off)
    less = weight * exp(-h * off)
    mass[:] = 0.0 * mass
    other = 0.0 * mass
    for k in range(6):
        step = k - 2.0
        share = spline(beyond, k)
        bins = wrapped(index + step, number)
        mass_there = binned(bins, share * weight, number)
        other_there = binned(bins, share * less, number)
        mass[:] = mass + exp(t * h * step) * mass_there
        other = other + exp((1.0 + t) * h * step) * other_there
    seen = near & (law.atomic > 0.0)
    loss = kept(law.loss, seen)
    weight = kept(at.weight, seen)
    index = floor((loss - start) / h + 0.5)
    off = loss - start - h * index
    bins = wrapped(index, number)
    weight_there = weight * exp(-t * off)
    less_there = weight * exp(-(1.0 + t) * off)
    mass[:] = mass + binned(bins, weight_there, number)
    other = other + binned(bins, less_there, number)
    over = where((mass > 0.0) & (other > 0.0), -log(other / mass), 0.0)
    return minimum(maximum(over, -0.5 * h), 0.5 * h)


def merged(grid: Grid, law: Law, at: Tilted, start: float, h: float, number: float) -> Vector:
    """Return the tilted law on a grid, whose losses are merged and rounded down.

    Where a density falls or rises, the means of what is merged lie off their places, by h² at first
    and by h⁴ once losses are shared out as if they were larger by as much.
    """
    mass = filled(number, 0.0)
    over = merged_means(law, at, start, h, filled(number, 0.0), mass)
    over = merged_means(law, at, start, h, over, mass)
    shift = 0.0
    least = rounded_loss(mass, over, 0.0, h)
    for k in range(2 * SHIFTS):
        pair = floor(0.5 * k)
        is_odd = k - 2 * pair == 1
        sign = 1.0 if is_odd else -1
        trial = 0.5 * h * power(0.25, pair) * sign
        lost = rounded_loss(mass, over, trial, h)
        if lost < least:
            shift = trial
            least = lost
    grid.lower_first = shift
    down = where(over >= shift, 0.0, -1.0)
    bins = wrapped(steps(number) + down, number)
    tilted_mass = mass * exp(at.t * (shift + h * down))
    return binned(bins, tilted_mass, number)


def powered(grid: Grid, upper: Vector, lower: Vector, count: float) -> Vector:
    """Return the laws of the sums of so many, one after the other; `floor`: what rounding leaves.

    Both are real numbers: one transform holds them, and half of it tells the other half.
    """
    number = size(upper)
    half = floor(0.5 * number) + 1.0
    waves = spectrum(upper, lower, 1.0)
    real = gathered(waves, 0, half)
    imaginary = gathered(waves, number, half)
    back = wrapped(number - steps(half), number)
    other_real = taken(waves, back)
    other_imaginary = taken(waves, number + back)
    a = 0.5 * (real + other_real)
    b = 0.5 * (imaginary - other_imaginary)
    c = 0.5 * (imaginary + other_imaginary)
    d = 0.5 * (other_real - real)
    size_of_upper = hypot(a, b)
    size_of_lower = hypot(c, d)
    before = power(size_of_upper, count - 1.0)
    rounding = EPSILON * log(number) * 1.5
    grown = summed((count + 1.0 + size_of_upper) * before)
    grid.floor = rounding * 2.0 * grown / number
    turn = count * atan2(b, a)
    before = before * size_of_upper
    a = before * cos(turn)
    b = before * sin(turn)
    turn = count * atan2(d, c)
    before = power(size_of_lower, count)
    c = before * cos(turn)
    d = before * sin(turn)
    index = steps(number)
    fold = minimum(index, number - index)
    sign = where(index < half, 1.0, -1.0)
    a = taken(a, fold)
    b = sign * taken(b, fold)
    c = taken(c, fold)
    d = sign * taken(d, fold)
    return spectrum(a - d, b + c, -1.0)


def start_of_grid(law: Law, at: Tilted) -> float:
    """Return a loss that is on the grid: the heaviest atom, or the heaviest node."""
    weight = where(law.atomic > 0.0, at.weight, 0.0)
    if largest(weight) < ATOM:
        weight = at.weight
    most = largest(weight)
    heaviest = where(weight == most, -law.loss, -INFINITY)
    return -largest(heaviest)


def width_of_grid(law: Law, at: Tilted, start: float, least: float) -> float:
    """Return the width of a grid through the atoms of a law, at least so much."""
    atoms = kept(law.loss, (law.atomic > 0.0) & (at.weight > ATOM))
    if size(atoms) < 2:
        return least
    between = Law()
    between.loss = atoms
    gap = spacing(between)
    if gap < least:
        heaviest = where((law.atomic > 0.0) & (law.loss != start), at.weight, 0.0)
        most = largest(heaviest)
        second = where(heaviest == most, -law.loss, -INFINITY)
        gap = absolute(-largest(second) - start)
    if gap < least:
        return least
    return gap / floor(gap / least)


def excess_of(tail: Vector, t: float, h: float) -> Vector:
    """Return the sums weighed by exp(−ts) (1 − exp(−s)) from those weighed by exp(−(1 + t)s)."""
    following = joined(gathered(tail, 1, size(tail) - 1), filled(1, 0.0))
    return decayed(-expm1(-h) * exp(-t * h) * following, exp(-t * h))


def weighed_by(law: Law, t: float) -> Tilted:
    """Return the law of a grid tilted by t; of what does not count there it has no nodes."""
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


def places_lost(law: Law) -> float:
    """Return how many places of a grid the roundings of all steps may pass."""
    return 2.0 * law.count + 8.0


def grid_of(law: Law, at: Tilted, left: float, right: float, number: float) -> Grid:
    """Return the law of the sum on grids of so many places, tilted, from the mean to both sides."""
    grid = Grid()
    t = at.t
    h = (right + left) / (number - places_lost(law))
    start = start_of_grid(law, at)
    finest = 1e-15 * (1.0 + absolute(law.count * at.mean))
    h = width_of_grid(law, at, start, maximum(h, finest))
    fine = law_of(law.c, law.side, law.count)
    fine.reach = law.reach
    fine.tilt = t
    fine.fine = CELLS * h
    fine.evaluated = law.evaluated + number
    fine.allowed = law.allowed
    fine.most_nodes = law.most_nodes
    build(fine)
    law.evaluated = fine.evaluated
    if fine.far > 0.0 or fine.trouble > 0.0:
        grid.width = 0.0
        return grid
    at = weighed_by(fine, t)
    upper = split_up(fine, at, start, h, number)
    lower = merged(grid, fine, at, start, h, number)
    pair = powered(grid, upper, lower, law.count)
    mean_place = floor(law.count * (at.mean - start) / h)
    before = mean_place - floor(left / h) - law.count - 4.0
    order = wrapped(before + steps(number), number)
    upper = taken(gathered(pair, 0, number), order)
    lower = taken(gathered(pair, number, number), order)
    decay = exp(-(1.0 + t) * h)
    grid.t = t
    grid.width = h
    grid.scale = law.count * at.cgf
    grid.upper_first = law.count * start + before * h
    grid.lower_first = grid.upper_first + law.count * grid.lower_first
    grid.upper_tail = decayed(upper, decay)
    grid.upper_excess = excess_of(grid.upper_tail, t, h)
    grid.lower_tail = decayed(lower, decay)
    grid.lower_excess = excess_of(grid.lower_tail, t, h)
    return grid


def log_of_tail(
    grid: Grid, first: float, tail: Vector, excess: Vector, epsilon: float, sign: float
) -> float:
    """Return log δ of one of the laws, with what rounding and the ends of the grid may add."""
    t = grid.t
    h = grid.width
    index = maximum(floor((epsilon - first) / h) + 1.0, 0.0)
    over = first + h * index - epsilon
    value = 0.0
    if index < size(tail):
        beyond = excess[int(index)] - expm1(-over) * tail[int(index)]
        value = exp(-t * over) * beyond
    share = INFINITY
    if t > 0.0:
        share = -expm1(-h) / (expm1(-t * h) * expm1(-(1.0 + t) * h))
    off = grid.floor * minimum(share, size(tail)) + 2.0 * exp(-LEFT_OUT)
    value = value + sign * off
    if value > 0.0:
        return grid.scale - t * epsilon + log(value)
    return -INFINITY


def set_ends(law: Law, grid: Grid, epsilon: float) -> float:
    """Set the ends of log δ(ε) by a grid, and return the upper one."""
    upper = log_of_tail(grid, grid.upper_first, grid.upper_tail, grid.upper_excess, epsilon, 1.0)
    lower = log_of_tail(grid, grid.lower_first, grid.lower_tail, grid.lower_excess, epsilon, -1.0)
    room = 0.0
    if isfinite(lower):
        room = ROOM * (upper - lower) + 1e-12
    escaped = log_escaped(law)
    law.upper = minimum(log_sum(upper + room, escaped), 0.0)
    law.lower = minimum(log_sum(lower - room, escaped), law.upper)
    return law.upper


def tilt_of_grid(law: Law, epsilon: float, t: float) -> float:
    """Return the tilt, at most t, under which a grid is narrow: close to M's end tails are long."""
    at = tilted_by(law, t)
    spread = law.count * at.variance + 1.0 / (t * t)
    curvature = log(2.5 * t * (1.0 + t) * sqrt(spread))
    log_delta = law.count * at.cgf - t * epsilon - curvature
    best = t
    width = reach_of(law, at, 1.0) + reach_of(law, at, -1.0)
    trial = 0.5 * t
    while trial > LEAST_TILT:
        at = tilted_by(law, trial)
        scaled = log_delta - law.count * at.cgf + trial * epsilon
        if scaled < SCALED_LOW:
            break
        other = reach_of(law, at, 1.0) + reach_of(law, at, -1.0)
        if other < 0.8 * width:
            best = trial
            width = other
        trial = 0.5 * trial
    return best


def log_delta_on_grid(law: Law, epsilon: float, t: float) -> float:
    """Set the ends of log δ(ε) by a grid as fine as they ask for; return the upper one."""
    if law.cached > 0.0:
        set_ends(law, law.grid, epsilon)
        if law.upper - law.lower <= maximum(law.near, 1.5 * law.reached):
            return law.upper
    else:
        law.lower = -INFINITY
        law.upper = 0.0
    number = FIRST_PLACES
    while number < places_lost(law) * 2.0 and number < MOST_PLACES:
        number = 2.0 * number
    if number < places_lost(law) * 2.0:
        return law.upper
    at = tilted_by(law, tilt_of_grid(law, epsilon, t))
    right = reach_of(law, at, 1.0)
    left = reach_of(law, at, -1.0)
    for _ in range(3):
        grid = grid_of(law, at, left, right, number)
        if grid.width == 0.0:
            break
        law.grid = grid
        law.cached = 1.0
        set_ends(law, grid, epsilon)
        law.reached = law.upper - law.lower
        off = law.reached / law.near
        if off <= 1.0 or number == MOST_PLACES:
            break
        wanted = 1.2 * number * sqrt(off)
        number = 2.0 * number
        while number < wanted and number < MOST_PLACES:
            number = 2.0 * number
    return law.upper
