"""δ(ε) from a law of the loss on a mesh that dominates the true one, and a bound of their distance.

**Above.**  Each outcome x of a step, with a loss between the levels A < B, is split between A and B
such that both its masses stay: p = p_A + p_B and q = e^{−A} p_A + e^{−B} p_B.  Let U be the sum of
the levels and S the sum of the losses.  Under P, given what happened, the factors e^{−ξ} with
ξ = (level) − ℓ(x) are independent and of mean 1, so that N = e^{−Ξ}, Ξ = U − S, has mean 1, and by
Jensen's inequality

    E(1 − e^{ε−U})⁺ = E E[(1 − e^{ε−S} N)⁺ | x] ≥ E(1 − e^{ε−S})⁺.

**Below.**  Given x let w(S) be what this inequality lacks.  With d = |S − ε| it is at most
E(Ξ − d)⁺ for S ≤ ε, as 1 − e^{−v} ≤ v.  For S > ε it is E(e^{−d}N − 1)⁺, which under dP′ = N dP is
at most E′(−Ξ − d)⁺, and −Ξ under P′ is what Ξ is under P.  Each ξ spans at most h, so that by
Hoeffding's lemma 0 ≤ EΞ ≤ nh²/8 = τ²/2, where τ = √n h/2, and Ξ − EΞ has a variance of at most τ²
and the exponential moments of a Gaussian of that variance.  Hence, with z = d/τ − b and b = τ/2,

    w ≤ τ min{(√(1 + z²) − z)/2, e^{−1−z²/2}/z}

by Cauchy's inequality, and by v⁺ ≤ e^{λv−1}/λ with λ = z/τ.  Let V(u) = C e^{−(u−ε)²/4τ²}.  By
Jensen's inequality E[V(U) | x] ≥ C e^{−((z + 2b)² + 1)/4}, which is at least w(S) at every z ≥ −b
if it is at z = −b: both bounds fall faster than it does, the first one up to 1, for b ≤ 1/5.  So

    C = τ (√(1 + b²) + b) e^{(1 + b²)/4}/2,    δ(ε) ≥ E(1 − e^{ε−U})⁺ − E V(U).

Outcomes that lie on the mesh are not split; sums of such alone need no V(U).  The distance is
about 0.6 n h² times the density of the loss at ε, so relative to δ about 0.6 n h² t(1 + t).

**An end where ℓ grows to infinity.**  What lies beyond some loss counts as an infinite one.  This
adds to δ(ε) at most min(P, e^ε Q) of the outputs with such a step, at most e^ε Σ nᵢQᵢ, where Qᵢ is
the mass that one step's Q has there.

**Sums.**  The masses of U are lower bounds, tilted by e^{tU} (see `mesh`).  The tilted mass that
they lack counts with the largest weight that it can have, which is e^{−tε} t^t/(1 + t)^{1+t}.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from flint import arb, arb_poly, ctx, fmpz_poly

from symdp.errors import AccuracyError
from symdp.numeric.elementary import log_payoff as log_payoff_in_doubles
from symdp.numeric.elementary import log_sum
from symdp.prove.cells import Atom, Panel, outcomes_of
from symdp.prove.kind import Kinds, sum_law
from symdp.prove.line import constant_of_noise, log_payoff, masses
from symdp.prove.plan import panels_of
from symdp.tolerances import BITS

_DISTANCE = 0.6  # of both bounds, in n h² t(1 + t) δ
_TRIES = 5  # of a finer mesh or a smaller δ
_FIRST = 0.5  # of the width, that the first mesh is made for
_FINER, _FINEST_STEP = 0.8, 0.05  # of the mesh from one try to the next
_FINER_AGAIN = 1.2  # times the finest mesh: nearer to it is not worth another try
_WIDEST_SPREAD = 0.4  # τ, so that b ≤ 1/5
_REACH = 16.0  # of V in units of τ: e^{−64} beyond
_NEAR_POINTS = 4  # of a sum, next to ε, whose side may not be proved
_TILT_BITS, _SPACINGS = 5, 4  # shared by close ε; the last, of an octave
_MOST_CELLS = 200_000  # of all steps: about six seconds
_MOST_POINTS = 1 << 22  # of a sum: a product of such polynomials takes ten seconds
_MOST_STORED = 1 << 31  # bits of two factors: a product takes a gigabyte
_MOST_SUMS = 20_000  # sums of atoms that lie on the mesh
_SHARE = 2.0**-9  # of the width that is asked for, for each thing that is left out
_COEFFICIENT_BITS = 28  # beyond what may be left out, as so many are rounded
_STRAY_BITS = 16  # of a loss, beyond what moves δ by its width
_DEVIATIONS = 16.0  # that a sum may be long
# What is said where there would be more.
_TOO_LARGE = "the sum of so many steps is too large for a proof on a mesh"


def bracket_delta(kinds: Kinds, epsilon: arb, tilt: float, log_size: float, digits: float) -> arb:
    """Enclose δ(ε), infinite losses included, to so many digits if a mesh so fine can be had.

    A tilt t > 0 near the saddle point and about log δ decide about width and cost alone.  One more
    digit takes a mesh three times as fine.
    """
    count = sum(n for _, n in kinds)
    width = 10.0**-digits
    mantissa, exponent = math.frexp(tilt)
    short_mantissa = math.floor(mantissa * 2**_TILT_BITS)
    tilt = math.ldexp(short_mantissa, exponent - _TILT_BITS)
    # n times as far from ε as leaves e^{t(n·centre − ε)} near 1: close ε share it.
    unit = 2.0 ** -math.ceil(math.log2(count * tilt))
    epsilon_of_step = float(epsilon.mid()) / count
    centre = unit * round(epsilon_of_step / unit)
    epsilon_bits = 32 * math.ceil(max(float(epsilon), 0.0) / math.log(2) / 32)
    aim = _MeshAim(tilt, centre, math.floor(log_size), width, count, epsilon_bits)
    best: arb | None = None
    with ctx.workprec(BITS + max(0, exponent)):
        length_at_tilt = _DISTANCE * count * tilt * (1.0 + tilt)
        spacing = math.sqrt(_FIRST * width / length_at_tilt)
        for _ in range(_TRIES):
            window = _window(kinds, aim, ctx.prec)
            finest = _finest_spacing(kinds, window.kept, aim)
            steps_of_octave = math.floor(_SPACINGS * math.log2(spacing))
            spacing = max(2.0 ** (steps_of_octave / _SPACINGS), finest)
            try:
                ball, left_out = _ball_on_mesh(kinds, window, epsilon, aim, spacing)
            except AccuracyError:  # as of a sum that is too large
                if best is None:
                    raise
                break
            best = ball if best is None else best.intersection(ball)
            relative_width = math.inf
            if best > 0:
                relative_width = float(2 * best.rad() / best.lower())
            if relative_width <= width:
                break
            if left_out > width / 2:  # δ is smaller than it was said to be
                log_top = aim.log_size
                if best.upper() > 0:
                    log_top = float(best.upper().log())
                size = min(aim.log_size, log_top) - math.log(left_out / width)
                aim = replace(aim, log_size=math.floor(size))
            elif spacing <= finest * _FINER_AGAIN:
                break
            else:
                shrunk = min(math.sqrt(width / relative_width), 1.0)
                spacing *= max(shrunk * _FINER, _FINEST_STEP)
    assert best is not None
    return best


def _ball_on_mesh(
    kinds: Kinds, window: _KeptWindow, epsilon: arb, aim: _MeshAim, spacing: float
) -> tuple[arb, float]:
    """Return the ball from the lower to the upper end, and what was left out relative to δ."""
    # As an infinite loss an outcome adds up to e^ε q more.
    excess = arb((window.q_beyond * epsilon.exp()).upper())
    if not all(step.outcomes for step in window.kept):
        return window.infinite + (-excess).union(window.missed), 0.0  # no sum is finite
    law = _sum_on_mesh(kinds, aim, spacing, ctx.prec)
    payoff = log_payoff(law.tilt).exp()
    lacking = law.lacking * law.tilted(epsilon) * payoff
    left_out = lacking + window.missed
    above = window.infinite + law.excess(epsilon - law.slack) + left_out
    proved = law.excess(epsilon + law.slack) - law.distance(epsilon)
    below = proved.max(arb(0))
    share = 0.0
    if above > 0:
        share = float((left_out / above).upper())
    lower = window.infinite + below - excess
    low = arb(lower.lower()).max(arb(0))
    high = arb(above.upper()).min(arb(1))
    return low.union(high), share


@dataclass(frozen=True)
class _MeshAim:
    """What decides about cost and width, and proves nothing.

    Losses are tilted about a centre near ε/n; `width` is that of the ball relative to δ.
    """

    tilt: float
    centre: float
    log_size: float
    width: float
    count: int
    epsilon_bits: int  # of e^ε or more, a multiple of 32 that close ε share

    @property
    def log_share(self) -> float:
        """Log of what may be left out at a time, relative to δ and for each step."""
        return math.log(_SHARE * self.width / self.count)

    @property
    def cut_bits(self) -> int:
        """−log₂ of the mass of P that may be cut off, a multiple of 32 that few aims share."""
        efolds = max(0.0, -self.log_size) - self.log_share
        return 32 * math.ceil(efolds / math.log(2) / 32)

    @property
    def stray_bits(self) -> int:
        """−log₂ of what the loss on a panel may be off by."""
        scale = self.count * (1.0 + self.tilt) / self.width
        return _STRAY_BITS + math.ceil(math.log2(scale))


class _MeshSum(NamedTuple):
    """The sum of all steps on the mesh, its masses times e^{t·level − back} in units, from below.

    Coefficient j is that of the level first + j, which lies at origin + (first + j)·step, up to a
    slack.  `spread` is τ over the steps of which outcomes are split, `unsplit` has lower bounds of
    P of sums of which none was, and `lacking` bounds what tilted mass the coefficients lack.
    """

    masses: fmpz_poly
    first: int
    origin: arb
    step: arb
    unit: arb
    tilt: arb
    back: arb
    lacking: arb
    slack: arb
    spread: arb
    unsplit: dict[int, arb]

    def place(self, level: int) -> arb:
        return self.origin + level * self.step

    def below(self, epsilon: arb) -> int:
        """About the last level below ε."""
        level = (epsilon - self.origin) / self.step
        return math.floor(float(level.mid()))

    def tilted(self, epsilon: arb) -> arb:
        """Bound e^{back − tu}e^{t(u − ε)} for every sum u within the slack of its level."""
        return (self.back - self.tilt * (epsilon - self.slack)).exp()

    def front(self, level: int) -> arb:
        """Enclose the mass of P of a unit at a level."""
        exponent = self.back - self.tilt * self.place(level)
        return self.unit * exponent.exp()

    def mass(self, level: int) -> arb:
        """Bound the mass of P at a level from below."""
        index = level - self.first
        if not 0 <= index < self.masses.length():
            return arb(0)
        return self.front(level) * arb(self.masses[index])

    def excess(self, epsilon: arb) -> arb:
        """Enclose Σ (1 − e^{ε−u})⁺ over these masses."""
        start = max(self.below(epsilon) - 1, self.first)
        total = arb(0)
        for level in range(start, start + _NEAR_POINTS):
            gain = -(epsilon - self.place(level)).expm1()
            payoff = gain.max(arb(0))
            total += self.mass(level) * payoff
        start += _NEAR_POINTS
        if start < self.first + self.masses.length():
            far_masses = arb_poly(self.masses.right_shift(start - self.first))
            of_p = far_masses((-self.tilt * self.step).exp())
            of_q = far_masses((-(1 + self.tilt) * self.step).exp())
            share_of_q = (epsilon - self.place(start)).exp()
            total += self.front(start) * (of_p - share_of_q * of_q)
        return total

    def distance(self, epsilon: arb) -> arb:
        """Bound E V(U) over sums of which an outcome was split, ∞ where the mesh is too wide."""
        spread = self.spread
        reach = _REACH * spread
        if spread.is_zero():
            return arb(0)
        is_far = reach >= 2 * self.tilt * spread**2
        if not (spread <= _WIDEST_SPREAD and is_far):
            return arb.pos_inf()
        front = constant_of_noise(spread)
        # Of V(u) e^{−tu} the largest value is for what the coefficients lack, and that beyond the
        # reach for all the rest.
        total = self.lacking * ((self.tilt * spread) ** 2).exp()
        whole = self.unit * arb(self.masses(1)) + self.lacking
        log_fall = self.tilt * reach - (_REACH / 2) ** 2
        total += whole * log_fall.exp()
        total *= front * self.tilted(epsilon)
        levels_within = float(((reach + self.slack) / self.step).upper())
        half = math.ceil(levels_within) + 1
        middle = self.below(epsilon)
        for level in range(middle - half, middle + half + 2):
            whole_mass = self.mass(level)
            mass = whole_mass - self.unsplit.get(level, arb(0))
            between = abs(self.place(level) - epsilon)
            distance = (between - self.slack).max(arb(0))
            fall = (-((distance / (2 * spread)) ** 2)).exp()
            total += mass * front * fall
        return arb(total.upper())


@lru_cache(maxsize=4)
def _sum_on_mesh(kinds: Kinds, aim: _MeshAim, spacing: float, precision: int) -> _MeshSum:
    """Return the sum of all steps on a mesh about so wide, kept for close ε."""
    window = _window(kinds, aim, precision)
    dropped = math.ceil((window.surplus - aim.log_share) / math.log(2))
    bits = dropped + _COEFFICIENT_BITS
    unit = arb(2) ** bits
    step = _spacing_of_mesh(window.kept, spacing)
    product = fmpz_poly([1 << bits])
    first = 0
    split = 0
    origin = arb(0)
    slack = arb(0)
    widest = arb(0)
    log_total = arb(0)
    unsplit: dict[int, arb] = {0: arb(1)}
    for kept_step in window.kept:
        count = kept_step.steps
        law = _law_on_mesh(kept_step, step, aim, bits)
        power, low = _truncated_power(law.masses, count, bits, dropped)
        product, shift = _truncated_product(product, power, bits, dropped)
        first += low + count * law.first + shift
        origin += count * law.offset
        slack += count * law.overshoot
        log_total += count * law.total.log()
        if law.is_split:
            split += count
        widest = widest.max(law.overshoot)
        unsplit = _sums_of_levels(unsplit, law.unsplit, count)
    total = log_total.exp()
    tilt = arb(aim.tilt)
    lacking_share = 1 - arb(product(1)) / unit
    widest_step = step + 2 * widest
    spread = arb(split).sqrt() * widest_step / 2
    return _MeshSum(
        masses=product,
        first=first,
        origin=origin,
        step=step,
        unit=total / unit,
        tilt=tilt,
        back=tilt * (aim.count * arb(aim.centre)),
        lacking=total * lacking_share.upper(),
        slack=arb(slack.upper()),
        spread=arb(spread.upper()),
        unsplit=unsplit,
    )


# What counts of each step.


class _KeptStep(NamedTuple):
    """What counts of a kind, by size, n, and a bound of the tilted mass of what does not."""

    outcomes: tuple[Atom | Panel, ...]
    steps: int
    below: arb


class _KeptWindow(NamedTuple):
    """What counts of all kinds, a bound of P of what does not, and about log (Π Mⁿ ω/δ).

    Of finite losses that count as infinite Q has at most `q_beyond`, in all steps.

    The tilted masses of what is left out below, of M in all, count with the largest weight ω.
    """

    kept: list[_KeptStep]
    missed: arb
    infinite: arb
    q_beyond: arb
    surplus: float


@lru_cache(maxsize=4)
def _window(kinds: Kinds, aim: _MeshAim, precision: int) -> _KeptWindow:
    log_mass = -aim.cut_bits * math.log(2)
    tilted_laws = []
    where = []
    beyond = []
    q_beyond = arb(0)
    surplus = float(log_payoff_in_doubles(aim.tilt)) - aim.log_size
    for kind, count in kinds:
        panels = panels_of(kind, aim.tilt, 0.0, log_mass)
        q_bits = aim.cut_bits + aim.epsilon_bits
        outcomes = outcomes_of(kind, panels, aim.cut_bits, aim.stray_bits, q_bits=q_bits)
        where.append(outcomes.panels)
        beyond.append(outcomes.beyond)
        q_beyond += count * outcomes.q_beyond
        tilted = {item: _tilted_mass(item, aim) for item in outcomes.items}
        tilted_laws.append(tilted)
        log_sizes = [_log_of_upper(size) for size in tilted.values()]
        surplus += count * log_sum(log_sizes)
    most_panels = max(map(len, where), default=1) + 1
    whole = masses(kinds, where, log_mass - math.log(most_panels), beyond)
    q_beyond = arb(q_beyond.upper())
    kept = []
    missed = whole.outside
    for tilted, (_, count) in zip(tilted_laws, kinds, strict=True):
        # Above, where hardly any loss lies but much tilted mass, the mass of P is what to count.
        plain = {item: arb(item.mass.upper()) for item in tilted}
        left, above = _without_smallest(plain, aim.log_size + aim.log_share)
        log_sizes = [_log_of_upper(size) for size in tilted.values()]
        log_total = log_sum(log_sizes)
        log_most = log_total - surplus + aim.log_share
        tilted_left = {item: tilted[item] for item in left}
        left, below = _without_smallest(tilted_left, log_most)
        kept.append(_KeptStep(tuple(left), count, below))
        missed += count * above
    return _KeptWindow(kept, arb(missed.upper()), whole.infinity, q_beyond, max(surplus, 0.0))


def _tilted_mass(item: Atom | Panel, aim: _MeshAim) -> arb:
    """Bound the tilted mass of an outcome by that at its largest loss."""
    exponent = arb(aim.tilt) * (item.top - arb(aim.centre))
    return item.mass.upper() * exponent.exp()


def _without_smallest(
    sizes: dict[Atom | Panel, arb], log_most: float
) -> tuple[list[Atom | Panel], arb]:
    """Leave out the smallest outcomes, but not all; return the others, the largest first."""
    log_sizes = {item: _log_of_upper(size) for item, size in sizes.items()}
    left = sorted(sizes, key=log_sizes.__getitem__, reverse=True)
    total = arb(0)
    while len(left) > 1:
        smallest = left[-1]
        larger_total = arb((total + sizes[smallest]).upper())
        if not _log_of_upper(larger_total) < log_most:
            break
        total = larger_total
        left.pop()
    return left, total


def _log_of_upper(mass: arb) -> float:
    top = mass.upper()
    if top > 0:
        return float(top.log().mid())
    return -math.inf


def _finest_spacing(kinds: Kinds, kept: Sequence[_KeptStep], aim: _MeshAim) -> float:
    """Return the finest mesh that can be had in seconds."""
    length = 0.0
    full = 0.0
    for kept_step in kept:
        places = np.concatenate([item.places for item in kept_step.outcomes])
        for item in kept_step.outcomes:
            length += float(np.abs(np.diff(item.places)).sum())
        full += kept_step.steps * float(np.ptp(places))
    with suppress(AccuracyError):  # K may be infinite there
        variance = float(sum_law(kinds).cumulants(aim.tilt, 2)[1])
        full = min(full, _DEVIATIONS * math.sqrt(variance))
    return max(length / _MOST_CELLS, full / _MOST_POINTS)


# One step on the mesh.


class _MeshLaw(NamedTuple):
    """One step, tilted and scaled to a total of at most 1, as lower bounds times 2^bits.

    `first` is the level of the first one, `total` bounds all tilted mass, and `unsplit` has lower
    bounds of the masses of P that are not split.
    """

    masses: fmpz_poly
    first: int
    offset: arb
    total: arb
    unsplit: dict[int, arb]
    overshoot: arb
    is_split: bool


def _spacing_of_mesh(kept: Sequence[_KeptStep], spacing: float) -> arb:
    """Return a step near a spacing, which divides the first distance of two heavy atoms."""
    for kept_step in kept:
        losses = [item.loss for item in kept_step.outcomes if isinstance(item, Atom)]
        if len(losses) < 2:
            continue
        gap = abs(losses[0] - losses[1]).mid()
        if gap > spacing:
            parts = math.ceil(float(gap) / spacing)
            return (gap / parts).mid()
    return arb(spacing)


def _law_on_mesh(kept_step: _KeptStep, step: arb, aim: _MeshAim, bits: int) -> _MeshLaw:
    """Split every outcome of one step between two levels, but for atoms that lie on the mesh."""
    atoms = [item for item in kept_step.outcomes if isinstance(item, Atom)]
    offset = atoms[0].loss.mid() if atoms else arb(0)
    on_mesh: dict[int, arb] = {}
    split: dict[int, tuple[arb, arb]] = {}
    overshoot = arb(0)
    for item in kept_step.outcomes:
        if isinstance(item, Atom):
            level = round(float(((item.loss - offset) / step).mid()))
            miss = abs(item.loss - offset - level * step)
            if miss < 2.0**-aim.stray_bits:
                on_mesh[level] = on_mesh.get(level, arb(0)) + item.mass
                overshoot = overshoot.max(miss)
                continue
        for row in item.cells(offset, step):
            overshoot = overshoot.max(row.overshoot)
            for level, p, q in zip(row.levels, row.p, row.q, strict=True):
                if level in split:
                    before_p, before_q = split[level]
                    split[level] = (before_p + p, before_q + q)
                else:
                    split[level] = (p, q)
    overshoot = arb(overshoot.upper())
    next_levels = [level + 1 for level in split]
    levels = sorted({*split, *next_levels, *on_mesh})
    first = levels[0]
    length = levels[-1] - first + 1
    if length > _MOST_POINTS:
        raise AccuracyError(_TOO_LARGE)
    tilt = arb(aim.tilt)
    back = offset - arb(aim.centre)
    weights = {}
    for level in levels:
        exponent = tilt * (level * step + back)
        weights[level] = exponent.exp()
    masses = {level: mass * weights[level] for level, mass in on_mesh.items()}
    whole = -(-(step + 2 * overshoot)).expm1()
    for level, (p, q) in split.items():
        growth = (offset + level * step - overshoot).exp()
        upper = (p - growth * q) / whole
        for near, part in ((level, p - upper), (level + 1, upper)):
            before = masses.get(near, arb(0))
            masses[near] = before + part * weights[near]
    total = kept_step.below
    for mass in masses.values():
        total = total + mass.upper().max(arb(0))
    total = arb(total.upper())
    scale = arb(2) ** bits / total
    coefficients = [0] * length
    with ctx.workprec(ctx.prec + bits):
        for level, mass in masses.items():
            least_units = (mass * scale).lower().max(arb(0))
            units = least_units.floor().unique_fmpz()
            if units is None:
                raise AccuracyError("a mass on the mesh is not enclosed")
            coefficients[level - first] = int(units)
    unsplit = {}
    for level, mass in list(on_mesh.items())[:2]:
        unsplit[level] = arb(mass.lower()).max(arb(0))
    return _MeshLaw(
        masses=fmpz_poly(coefficients),
        first=first,
        offset=offset,
        total=total,
        unsplit=unsplit,
        overshoot=overshoot,
        is_split=bool(split),
    )


# Products of polynomials whose coefficients are masses in units of 2^(−bits), rounded down, so
# that every one is a lower bound of the mass that it stands for.  What is lost, the ends that are
# cut off included, shows in the sum of all coefficients, which was 2^bits or less before.


def _truncated_power(base: fmpz_poly, count: int, bits: int, dropped: int) -> tuple[fmpz_poly, int]:
    """Return a power, and the index of its first coefficient."""
    result = fmpz_poly([1 << bits])
    first = 0
    low = 0
    while True:
        if count & 1:
            result, shift = _truncated_product(result, base, bits, dropped)
            first += low + shift
        count >>= 1
        if not count:
            return result, first
        base, shift = _truncated_product(base, base, bits, dropped)
        low = 2 * low + shift


def _truncated_product(
    left: fmpz_poly, second: fmpz_poly, bits: int, dropped: int
) -> tuple[fmpz_poly, int]:
    """Return a product, and the first index left as ends of less than 2^(−dropped) are cut off."""
    length = len(left) + len(second)
    if length > 2 * _MOST_POINTS or length * bits > _MOST_STORED:
        raise AccuracyError(_TOO_LARGE)
    product = (left * second) // (1 << bits)
    least = 1 << (bits - dropped)
    first = _first_of_mass(product, range(len(product)), least)
    last = _first_of_mass(product, reversed(range(len(product))), least)
    if first is None or last is None:
        return product.truncate(0), 0
    return product.truncate(last + 1).right_shift(first), first


def _first_of_mass(product: fmpz_poly, indices: Iterable[int], least: int) -> int | None:
    """Return the index up to which coefficients add up to so much, None if all are less."""
    total = 0
    for index in indices:
        total += int(product[index])
        if total >= least:
            return index
    return None


def _sums_of_levels(sums: dict[int, arb], masses: dict[int, arb], count: int) -> dict[int, arb]:
    """Return lower bounds of the masses of sums of two levels, none where there are too many."""
    fewest = count if len(masses) == 1 else 0
    extended: dict[int, arb] = {}
    most_sums = (count - fewest + 1) * len(sums)
    if not masses or most_sums > _MOST_SUMS:
        return extended
    both = [*masses.items(), (0, arb(0))]
    level_p, p = both[0]
    level_q, q = both[1]
    ways = arb(1)
    for k in range(fewest, count + 1):
        power = ways * p**k * q ** (count - k)
        distance = k * level_p + (count - k) * level_q
        for first, mass in sums.items():
            level = first + distance
            before = extended.get(level, arb(0))
            extended[level] = before + mass * power
        ways = ways * (count - k) / (k + 1)
    return extended
