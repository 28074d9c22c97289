"""Few steps, atoms off any lattice: δ from a line that is cut off smoothly, between two ends.

|φ(y)| of atoms has no limit: it comes near 1 whenever all phases nearly agree. That of few steps is
small where no sum reaches. Terms at y are
taken c(y/T) times, and the mass of the losses within a few 1/T of ε bounds what that changes in δ,
whatever φ does beyond T. `symdp.numeric.cut_off` has the proof; numbers here are those there.

Of a density of losses that the nodes resolve, φ falls beyond T. Twice its size on the upper half of
the line bounds it there, with the atoms in full; δ is then known to the digits of the sum.
"""

from __future__ import annotations

from symdp.emit.standalone.runtime.erf import erfc
from symdp.emit.standalone.runtime.law import (
    TINY,
    CutLine,
    Law,
    resolved,
)
from symdp.emit.standalone.runtime.primitives import (
    INFINITY,
    PI,
    Number,
    Vector,
    absolute,
    atan2,
    binned,
    cos,
    exp,
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
    ranking,
    repeated,
    sin,
    size,
    spectrum,
    spread_over,
    sqrt,
    steps,
    summed,
    sums_of,
    taken,
    tiled,
    total,
    where,
)
from symdp.emit.standalone.runtime.tilted import (
    Tilted,
    doubt_of,
    escaped_off,
    log_escaped,
    log_sum,
    reach_about,
    tilted_by,
    weighed_by,
)

# ---- emitted from here on ----

STEEPNESS = 12.0  # of the cut-off c
CENTRE = 0.55  # where c is a half
FEJER = 0.464  # M is 0.464 sinc² and two Gaussians
FIRST_HEIGHT = 0.094
FIRST_WIDTH = 13.0
SECOND_HEIGHT = 0.032
SECOND_WIDTH = 24.0
FAR_ABOVE = 100.0  # times 1 + t, that T is at least
SPREAD = 32  # places of a grid over which a loss is spread
DECAY = 0.1472621556370216  # of the Gaussian that spreads it: 3π/64, for twice the places
TRANSFORMED = 1e-14  # of φ: what such a transform changes, and panels that a line does not resolve
FIRST_FREQUENCIES = 1024.0
MOST_FREQUENCIES = 262144.0  # a power of 2, as the transform has it
MANY_STEPS = 10000.0  # from here on φ − 1 near 0 is asked relative to itself
NEAREST = 64  # frequencies near 0
SPARE = 12.0  # log of how much larger than delta a sum may begin: ten digits are left
SMALLER = 0.8  # times a tilt is the next that is tried
SMALLER_TILTS = 40
WORTH = 1.2  # times the frequency: the least that a line grows by
LONGER = 4.0  # the same: the most where a density has a share
FALLING = 0.5  # of what a line changes times its square: a density's falls faster than this
FINE_TURN = 20.0  # radians by which a wave at the end of a line may turn within a panel
WAVE = 1e-15  # of φ, relative to what 1 − φ has
SUMMED = 3e-16  # of a sum of terms, relative to their sizes
UNSEEN_ATOM = 1e-19  # of all steps: atoms that are left out
AGREEING = 1e-9  # relative: two halves of a sum, which is far closer
QUARTER = 0.25  # of the width that is asked for
BLOCK = 64.0  # nodes, in the order of their losses, of which a density is told
RESOLVED = 0.03  # of T: a density that varies by no more has no atoms and no narrow parts
LASTING = 2.0  # times |φ| of the upper half of a line: more than it is beyond
MOST_ATOMS = 8  # whose waves are told from those of a density


def wrapped(places: Vector, count: float) -> Vector:
    """Return places modulo a count."""
    return places - count * floor(places / count)


def window_at(w: Number) -> Number:
    """Return c(w)."""
    return 0.5 * erfc(STEEPNESS * (w - CENTRE))


def bell(w: Number, height: float, wide: float) -> Number:
    """Return the transform of a Gaussian of M."""
    half = 0.5 * wide * w
    return height * wide * sqrt(PI) * exp(-half * half)


def near_at(w: Number) -> Number:
    """Return the transform of M, which bounds what the cut-off changes in the payoff."""
    triangle = 2.0 * PI * FEJER * maximum(1.0 - w, 0.0)
    first = bell(w, FIRST_HEIGHT, FIRST_WIDTH)
    return triangle + first + bell(w, SECOND_HEIGHT, SECOND_WIDTH)


def transformed(weight: Vector, deviation: Vector, step: float, number: float) -> Vector:
    """Return φ at so many multiples of a step, from 0 on: real parts, then imaginary ones.

    Each loss is spread as a Gaussian over places of a grid, and what that does to the Fourier
    transform is divided out [Greengard, Lee 2004].
    """
    places = 4.0 * number
    scaled = deviation * (step * places / (2.0 * PI))
    index = floor(scaled)
    off = scaled - index
    grid = spread_over(weight, index, off, places, SPREAD, DECAY)
    values = spectrum(grid, filled(places, 0.0), -1.0)
    turn = 2.0 * PI / places * steps(number)
    grown = places * sqrt(DECAY / PI) * exp(turn * turn / (4.0 * DECAY))
    return joined(grown * gathered(values, 0, number), grown * gathered(values, places, number))


def nearest_waves(weight: Vector, deviation: Vector, step: float, number: float) -> Vector:
    """Return φ − 1 at as many multiples of a step, from 1 on, accurate relative to itself."""
    places = size(weight)
    repeats = int(number)
    angle = repeated(step * (steps(number) + 1.0), places) * tiled(deviation, repeats)
    heavy = tiled(weight, repeats)
    half = sin(0.5 * angle)
    less = sums_of(-2.0 * heavy * half * half, places)
    return joined(less, sums_of(heavy * sin(angle), places))


def variation_of(deviation: Vector, weight: Vector) -> float:
    """Return the total variation of the density of losses, told by blocks of nodes."""
    many = size(deviation)
    number = floor(many / BLOCK)
    if number < 2.0:
        return INFINITY
    order = ranking(deviation)
    sorted_loss = taken(deviation, order)
    block = minimum(floor((steps(many) + 0.5) * (number / many)), number - 1.0)
    mass = binned(block, taken(weight, order), number)
    first = minimum(floor(steps(number + 1.0) * (many / number) + 0.5), many - 1.0)
    end = 0.5 * (taken(sorted_loss, first) + taken(sorted_loss, maximum(first - 1.0, 0.0)))
    width = gathered(end, 1, number) - gathered(end, 0, number)
    if largest(-width) >= 0.0:
        return INFINITY
    outside = filled(1, 0.0)
    density = joined(joined(outside, mass / width), outside)
    return total(absolute(gathered(density, 1, number + 1.0) - gathered(density, 0, number + 1.0)))


def log_beyond(
    line: CutLine, phi: Vector, deviation: Vector, weight: Vector, atomic: Vector
) -> float:
    """Return a bound of log |φ| beyond a line, infinite where none is known.

    Atoms count in full. A density that the line resolves has a φ that falls from there on.
    """
    is_atom = atomic > 0.0
    atoms = kept(deviation, is_atom)
    share = kept(weight, is_atom)
    is_spread = atomic == 0.0
    variation = variation_of(kept(deviation, is_spread), kept(weight, is_spread))
    if size(atoms) > MOST_ATOMS or variation > RESOLVED * line.far:
        return INFINITY
    number = size(line.frequency)
    real = gathered(phi, 0, number)
    imaginary = gathered(phi, number, number)
    for k in range(size(atoms)):
        angle = line.frequency * atoms[k]
        real = real - share[k] * cos(angle)
        imaginary = imaginary - share[k] * sin(angle)
    half = floor(0.5 * number)
    falling = gathered(sqrt(real * real + imaginary * imaginary), half, number - half)
    return log(total(share) + LASTING * largest(falling))


def line_of(
    law: Law, at: Tilted, fine: Law, fine_at: Tilted, half_step: float, number: float
) -> CutLine:
    """Lay a line at multiples of half a step, of which every other one is a line of its own.

    Its nodes, and their weights, are those of a law that resolves its frequencies.
    """
    line = CutLine()
    line.t = at.t
    line.half_step = half_step
    line.far = half_step * number
    line.scale = law.count * at.cgf
    line.centre = law.count * at.mean
    weight = fine_at.weight
    seen = weight > UNSEEN_ATOM / law.count
    deviation = kept(fine.loss, seen) - at.mean
    seen_weight = kept(weight, seen)
    dropped = total(where(seen, 0.0, weight))
    values = transformed(seen_weight, deviation, half_step, number)
    less = gathered(values, 1, number - 1.0) - total(seen_weight)
    imaginary = gathered(values, number + 1.0, number - 1.0)
    error = filled(number - 1.0, TRANSFORMED)
    if law.count > MANY_STEPS:
        near = nearest_waves(seen_weight, deviation, half_step, NEAREST)
        left = number - 1.0 - NEAREST
        less = joined(gathered(near, 0, NEAREST), gathered(less, NEAREST, left))
        near_imaginary = gathered(near, NEAREST, NEAREST)
        imaginary = joined(near_imaginary, gathered(imaginary, NEAREST, left))
        error = joined(filled(NEAREST, 0.0), filled(left, TRANSFORMED))
    line.vague = maximum(doubt_of(law, at).scale, escaped_off(law))
    index = steps(number - 1.0) + 1.0
    line.frequency = half_step * index
    line.sign = 1.0 - 2.0 * wrapped(index, 2.0)
    square = less * (2.0 + less) + imaginary * imaginary
    far_modulus = log(hypot(1.0 + less, imaginary) + TINY)
    modulus = where(square > -0.75, 0.5 * log1p(maximum(square, -0.75)), far_modulus)
    error = error + WAVE * (absolute(less) + sqrt(at.variance) * line.frequency) + 2.0 * dropped
    doubt = doubt_of(fine, fine_at)
    of_wave = minimum(doubt.most, doubt.slope * line.frequency)
    error = error + of_wave + doubt.smear * line.frequency
    line.window = window_at(line.frequency / line.far)
    line.near = near_at(line.frequency / line.far)
    line.length = exp(law.count * modulus)
    line.turn = law.count * atan2(imaginary, 1.0 + less)
    line.unsure = law.count * error * exp((law.count - 1.0) * modulus)
    phi = joined(1.0 + less, imaginary)
    beyond = law.count * log_beyond(line, phi, deviation, seen_weight, kept(fine.atomic, seen))
    line.beyond = exp(minimum(beyond, 0.0)) / (line.far * half_step)
    return line


def set_cut_ends(law: Law, line: CutLine, epsilon: float) -> float:
    """Set the ends of log δ(ε) by a line, and return the upper one."""
    t = line.t
    drift = line.centre - epsilon
    rounding = 2.5e-16 * (absolute(epsilon) + absolute(line.centre))
    turn = line.turn + line.frequency * drift
    wave = cos(turn)
    c = t * (1.0 + t) - line.frequency * line.frequency
    d = line.frequency * (1.0 + 2.0 * t)
    square = c * c + d * d
    terms = line.window * line.length * (wave * c + sin(turn) * d) / square
    unsure = line.unsure + line.length * (SUMMED + rounding * line.frequency)
    near = 0.5 * near_at(0.0) + summed(line.near * line.length * wave)
    left_out = summed((1.0 - line.window) * line.length / sqrt(square)) + line.beyond
    line.change = minimum(absolute(near) / (line.far * line.far), left_out)
    line.off = SUMMED / (t * (1.0 + t)) + summed(line.window * unsure / sqrt(square))
    line.value = 0.5 / (t * (1.0 + t)) + summed(terms)
    line.apart = absolute(0.5 / (t * (1.0 + t)) + summed(line.sign * terms))
    doubt = line.change + line.off + line.apart
    relative = 4e-15 * (absolute(epsilon) + absolute(line.scale)) + 1e-12 + line.vague
    log_unit = line.scale - t * epsilon + log(line.half_step / PI)
    upper = log_unit + log(line.value + doubt) + relative
    lower = -INFINITY
    if line.value > doubt:
        lower = log_unit + log(line.value - doubt) - relative
    escaped = log_escaped(law)
    law.upper = minimum(log_sum(upper, escaped), 0.0)
    law.lower = minimum(log_sum(lower, escaped), law.upper)
    return law.upper


def step_of(law: Law, at: Tilted, epsilon: float) -> float:
    """Return a first distance of the places of a line."""
    t = at.t
    scale = law.count * at.cgf - t * epsilon
    spread = sqrt(law.count * at.variance + 1.0 / (t * t))
    return minimum(2.0 * PI * t / (40.0 - minimum(scale, 0.0)), 1.0 / spread)


def tilt_of_short_line(law: Law, epsilon: float, t: float) -> float:
    """Return the tilt, t or less, at which the steps of a line are wide.

    Rare large losses weigh as much as all others at the saddle point: the sum's law is wide, and
    steps are small. Sums at a smaller tilt begin larger than δ, by no more than doubles have digits
    to spare.
    """
    at = tilted_by(law, t)
    height = law.count * at.cgf - t * epsilon - log(t * (1.0 + t))
    best = t
    widest = step_of(law, at, epsilon)
    trial = t
    for _ in range(SMALLER_TILTS):
        trial = SMALLER * trial
        at = tilted_by(law, trial)
        if law.count * at.cgf - trial * epsilon - log(trial * (1.0 + trial)) > height + SPARE:
            break
        if reach_about(law, at, 0.0) > 0.0:
            break
        step = step_of(law, at, epsilon)
        if step > widest:
            best = trial
            widest = step
    return best


def agrees(line: CutLine) -> float:
    """Return whether the halves of a line have one sum."""
    return 1.0 if line.apart <= AGREEING * absolute(line.value) + line.off else 0.0


def cut_width(law: Law, epsilon: float, t: float) -> float:
    """Lay a line for log δ(ε) at a tilt, and return how far apart its ends are."""
    law.cut = 0.0
    at = tilted_by(law, t)
    is_atomic = total(law.atomic) == size(law.loss)
    step = step_of(law, at, epsilon)
    far = 2.0 * FAR_ABOVE * (1.0 + t)
    resolved_to = 0.0
    fine = law
    fine_at = at
    width = INFINITY
    before = INFINITY
    for _ in range(12):
        number = FIRST_FREQUENCIES
        while number * step < 2.0 * far and number < MOST_FREQUENCIES:
            number = 2.0 * number
        far = minimum(far, 0.5 * step * number)
        if far < FAR_ABOVE * (1.0 + t):
            break
        if not is_atomic and far != resolved_to:
            fine = resolved(law, t, FINE_TURN / far)
            if fine.far > 0.0 or fine.trouble > 0.0:
                break
            fine_at = weighed_by(fine, t)
            if absolute(fine_at.cgf - at.cgf) > AGREEING * (1.0 + absolute(at.cgf)):
                break
            resolved_to = far
        line = line_of(law, at, fine, fine_at, far / number, number)
        set_cut_ends(law, line, epsilon)
        if agrees(line) > 0.0:
            law.line = line
            law.cut = 1.0
            width = law.upper - law.lower
            room = QUARTER * law.near * maximum(line.value, 0.0)
            is_last = far * 1.01 > 0.5 * step * MOST_FREQUENCIES
            if line.change <= room or line.off > maximum(room, line.change) or is_last:
                break
            more = minimum(maximum(1.2 * sqrt(line.change / maximum(room, TINY)), 2.0), 32.0)
            falling = line.change * far * far
            if not is_atomic:  # nodes grow as frequencies do, and what is beyond may fall faster
                longer = LONGER if falling < FALLING * before else INFINITY
                more = minimum(minimum(more, longer), 3.0 * law.most_nodes / size(fine.loss))
            before = falling
            if more < WORTH:
                break
            far = more * far
        else:
            step = 0.5 * step
    return width
