"""Atoms off any lattice: δ from a line that is cut off smoothly, between two ends.

|φ(y)| of such losses has no limit: it comes near 1 whenever all phases nearly agree. Terms at y are
taken c(y/T) times, and the mass of the losses within a few 1/T of ε bounds what that changes in δ,
whatever φ does beyond T. `symdp.numeric.cut_off` has the proof; numbers here are those there.
"""

from __future__ import annotations

from symdp.emit.standalone.runtime.law import (
    TINY,
    CutLine,
    Half,
    Law,
    Tilted,
    log_escaped,
    log_sum,
    tilted_by,
)
from symdp.emit.standalone.runtime.primitives import (
    INFINITY,
    PI,
    Number,
    Vector,
    absolute,
    atan2,
    cos,
    erfc,
    exp,
    floor,
    hypot,
    joined,
    kept,
    log,
    log1p,
    maximum,
    minimum,
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

STEEPNESS = 12.0  # of the cut-off c
CENTRE = 0.55  # where c is a half
FEJER = 0.464  # M is 0.464 sinc² and two Gaussians
FIRST_HEIGHT = 0.094
FIRST_WIDTH = 13.0
SECOND_HEIGHT = 0.032
SECOND_WIDTH = 24.0
FAR_ABOVE = 100.0  # times 1 + t, that T is at least
BLOCK = 512  # places
MOST_BLOCKS = 512.0  # of half a line
MOST_WAVES = 1e8  # places times atoms, of the lines that one answer may lay
WAVE = 1e-15  # of φ, relative to what 1 − φ has
SUMMED = 3e-16  # of a sum of terms, relative to their sizes
UNSEEN_ATOM = 1e-19  # of all steps: atoms that are left out
AGREEING = 1e-9  # relative: two halves of a sum, which is far closer
QUARTER = 0.25  # of the width that is asked for


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


def turned_blocks(
    cosine: Vector,
    sine: Vector,
    weight: Vector,
    deviation: Vector,
    first: float,
    wide: float,
    blocks: float,
) -> Vector:
    """Return φ − 1 in blocks of places that lie beyond the first block, real parts, then others.

    `cosine, sine`: of all atoms in turn at each frequency of the first block.
    """
    if blocks > 1.0:
        left = floor(0.5 * blocks)
        middle = first + left * wide
        return joined(
            turned_blocks(cosine, sine, weight, deviation, first, wide, left),
            turned_blocks(cosine, sine, weight, deviation, middle, wide, blocks - left),
        )
    number = size(weight)
    turn = first * deviation
    places = int(floor(size(cosine) / number + 0.5))
    c = tiled(weight * cos(turn), places)
    s = tiled(weight * sin(turn), places)
    real = sums_of(cosine * c - sine * s, number) - total(weight)
    return joined(real, sums_of(sine * c + cosine * s, number))


def waves(weight: Vector, deviation: Vector, first: float, step: float, blocks: float) -> Vector:
    """Return φ − 1 at places a step apart in blocks: real parts, then others of each block."""
    number = size(weight)
    frequency = first + step * steps(BLOCK)
    angle = repeated(frequency, number) * tiled(deviation, BLOCK)
    heavy = tiled(weight, BLOCK)
    half = sin(0.5 * angle)
    sine = sin(angle)
    nearest = joined(sums_of(-2.0 * heavy * half * half, number), sums_of(heavy * sine, number))
    if blocks < 2.0:
        return nearest
    cosine = cos(angle)
    wide = step * BLOCK
    return joined(nearest, turned_blocks(cosine, sine, weight, deviation, wide, wide, blocks - 1.0))


def half_of(law: Law, at: Tilted, far: float, first: float, step: float, blocks: float) -> Half:
    """Return the law at every other frequency of a line."""
    half = Half()
    seen = at.weight > UNSEEN_ATOM / law.count
    deviation = kept(law.loss, seen) - at.mean
    weight = kept(at.weight, seen)
    dropped = total(where(seen, 0.0, at.weight))
    values = waves(weight, deviation, first, step, blocks)
    index = steps(BLOCK * blocks)
    frequency = first + step * index
    index = index + BLOCK * floor(index / BLOCK)
    less = taken(values, index)
    imaginary = taken(values, index + BLOCK)
    square = less * (2.0 + less) + imaginary * imaginary
    far_modulus = log(hypot(1.0 + less, imaginary) + TINY)
    modulus = where(square > -0.75, 0.5 * log1p(maximum(square, -0.75)), far_modulus)
    error = WAVE * (absolute(less) + sqrt(at.variance) * frequency) + 2.0 * dropped
    half.frequency = frequency
    half.window = window_at(frequency / far)
    half.near = near_at(frequency / far)
    half.length = exp(law.count * modulus)
    half.turn = law.count * atan2(imaginary, 1.0 + less)
    half.unsure = law.count * error * exp((law.count - 1.0) * modulus)
    return half


def add_half(line: CutLine, half: Half, drift: float, rounding: float) -> float:
    """Add what half of the places have at an ε; return the sum of their terms."""
    t = line.t
    turn = half.turn + half.frequency * drift
    wave = cos(turn)
    c = t * (1.0 + t) - half.frequency * half.frequency
    d = half.frequency * (1.0 + 2.0 * t)
    square = c * c + d * d
    terms = half.window * half.length * (wave * c + sin(turn) * d) / square
    unsure = half.unsure + half.length * (SUMMED + rounding * half.frequency)
    line.change = line.change + summed(half.near * half.length * wave)
    line.off = line.off + summed(half.window * unsure / sqrt(square))
    return summed(terms)


def set_cut_ends(law: Law, line: CutLine, epsilon: float) -> float:
    """Set the ends of log δ(ε) by a line, and return the upper one."""
    t = line.t
    drift = line.centre - epsilon
    rounding = 2.5e-16 * (absolute(epsilon) + absolute(line.centre))
    line.change = 0.5 * near_at(0.0)
    line.off = SUMMED / (t * (1.0 + t))
    even = 0.5 / (t * (1.0 + t)) + add_half(line, line.even, drift, rounding)
    odd = add_half(line, line.odd, drift, rounding)
    line.value = even + odd
    line.apart = absolute(even - odd)
    line.change = absolute(line.change) / (line.far * line.far)
    doubt = line.change + line.off + line.apart
    relative = 4e-15 * (absolute(epsilon) + absolute(line.scale)) + 1e-12
    log_unit = line.scale - t * epsilon + log(0.5 * line.step / PI)
    upper = log_unit + log(line.value + doubt) + relative
    lower = -INFINITY
    if line.value > doubt:
        lower = log_unit + log(line.value - doubt) - relative
    escaped = log_escaped(law)
    law.upper = minimum(log_sum(upper, escaped), 0.0)
    law.lower = minimum(log_sum(lower, escaped), law.upper)
    return law.upper


def line_of(law: Law, at: Tilted, step: float, blocks: float) -> CutLine:
    """Lay a line of so many blocks of places a half."""
    line = CutLine()
    line.t = at.t
    line.step = step
    line.far = step * BLOCK * blocks
    line.scale = law.count * at.cgf
    line.centre = law.count * at.mean
    line.even = half_of(law, at, line.far, step, step, blocks)
    line.odd = half_of(law, at, line.far, 0.5 * step, step, blocks)
    return line


def step_of(law: Law, at: Tilted, epsilon: float) -> float:
    """Return a first distance of the places of a line."""
    t = at.t
    scale = law.count * at.cgf - t * epsilon
    spread = sqrt(law.count * at.variance + 1.0 / (t * t))
    return minimum(2.0 * PI * t / (40.0 - minimum(scale, 0.0)), 1.0 / spread)


def agrees(line: CutLine) -> float:
    """Return whether the halves of a line have one sum."""
    return 1.0 if line.apart <= AGREEING * line.value + line.off else 0.0


def cut_width(law: Law, epsilon: float, t: float) -> float:
    """Lay a line for log δ(ε) at a tilt, and return how far apart its ends are."""
    law.cut = 0.0
    at = tilted_by(law, t)
    step = step_of(law, at, epsilon)
    far = 2.0 * FAR_ABOVE * (1.0 + t)
    work = 0.0
    width = INFINITY
    atoms = total(where(at.weight > UNSEEN_ATOM / law.count, 1.0, 0.0))
    for _ in range(12):
        most = minimum(MOST_BLOCKS, (MOST_WAVES - work) / (2.0 * BLOCK * atoms))
        blocks = maximum(floor(minimum(far / (step * BLOCK) + 1.0, most)), 1.0)
        far = step * BLOCK * blocks
        if far < FAR_ABOVE * (1.0 + t) or most < 1.0:
            break
        work = work + 2.0 * BLOCK * blocks * atoms
        line = line_of(law, at, step, blocks)
        set_cut_ends(law, line, epsilon)
        if agrees(line) > 0.0:
            law.line = line
            law.cut = 1.0
            width = law.upper - law.lower
            room = QUARTER * law.near * line.value
            if line.change <= room or line.off > room or blocks >= most - 1.0:
                break
            more = 1.2 * sqrt(line.change / maximum(room, TINY))
            far = far * minimum(maximum(more, 2.0), 32.0)
        else:
            step = 0.5 * step
    return width
