"""Lines whose values die out slowly or never: how much lies beyond, and the sum cut off smoothly.

**Beyond the end of a line.** Losses that gather near equally spaced values, however closely, lift
|φ_t(y)|ⁿ again beyond any point where it had fallen to nothing. Far out, the variation of the
loss's density bounds it; up to there the variance of the losses next to their median does where
steps are many, and elsewhere it is looked at.

**A smooth cut-off, with a proved bound of what it changes in δ.** |Φ(y)| of losses that are atoms
off any lattice has no limit: it comes near 1 whenever all phases nearly agree. With c(w) = (erfc
s(w − w₀) − erfc s(w + w₀))/2 the terms times c(y/T) add up to E (f ∗ κ)(S − ε), the payoff f
smoothed by the transform κ of c. At the tilt t = 0 that changes the payoff by D₀(Tx)/T at the
distance x from ε, where with u = Tx

    D_m(u) = ±(1/π) ∫₀^∞ (1 − c(w)) trig(uw)/w^{2+m} dw,    trig the cosine or the sine,

and is bounded by |D₀(u)| ≤ M(u) = A sinc²(u/2) + Σ aᵢ e^{−(u/bᵢ)²}, where the numbers of M make ∫M
small (a linear program). M has no frequencies beyond 1 but for e^{−42}, so that E M(T(S − ε))/T is
a sum over |y| ≤ T as well. It is a bound: how much of the loss lies within a few T⁻¹ of ε, whatever
Φ does beyond T. For a density f_S it is 6 f_S(ε)/T².

**Any tilt.** For |y| > 1 + |t| the kernel is a series in 1/y,

    1/(z(1+z)) = 1/z − 1/(1+z) = Σ_{m≥0} (−1)^m ((1+t)^{m+1} − t^{m+1})/(iy)^{m+2},    z = t + iy,

and |(1+t)^{m+1} − t^{m+1}| ≤ (m+1)(1+|t|)^m for t > −1, by the mean value theorem for t ≥ 0. Where
|y| ≤ 2(1+|t|), 1 − c is below 1e-18, less than the rounding of the terms there. So if R(1+|t|) ≤ T,
the payoff changes by at most (1/T) Σ_m (m+1) R^{−m} |D_m(u)|. Three facts bound that by M(u)/T:

- D_m is the (m+2)-fold integral, from u to ∞, of sin(w₀v)/(πv) e^{−(v/2s)²}, the transform of c, so
  that for u > 0, by v² ≥ u² + 2u(v − u),  |D_m(u)| ≤ (2s²/u)^{m+2} e^{−(u/2s)²}/(πu);
- as b₂ = 2s, for u ≥ 105 the sum of these bounds is below the last term of M alone;
- for u < 105 the sum was computed at steps of 10⁻³ and is below 0.993 M(u) where R = 100, its slope
  between the steps included: tests/numeric/test_mesh.py does so.

**Values up to the cut-off.** Near y = 0, where |φ|ⁿ is large, each value is a plain sum, accurate
relative to 1 − φ. Beyond, one product or transform gives all values of φ_t to 5e-14 of Σ pⱼ, so
that φ_tⁿ is wrong by n·5e-14·|φ_t|ⁿ⁻¹, and the rounding of y·ℓ turns it by n·y·E|ℓ|·2e-16. Both are
added up as they occur.

**Smooth losses.** Terms that die out are summed plainly. Those of smooth losses that do not are cut
off smoothly, and the part of atoms, which recurs, is split off and summed exactly. Where all losses
are atoms, recurrences of |φ| near 1 are looked for: over one period, or as far as it pays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from symdp.errors import AccuracyError
from symdp.numeric.answer import (
    FEW_NODES,
    LONG_LINE,
    MOST_NODES,
    NEGLIGIBLE,
    ROUNDED,
    ROUNDING,
    SAFETY,
    SETTLED,
    TOLERABLE,
)
from symdp.numeric.elementary import Complex
from symdp.numeric.line import (
    Line,
    continuous_kernel,
    end_size,
    first_line,
    kernel_modulus,
    longer,
    loss_size,
    plain_sum,
)
from symdp.numeric.nodes import (
    Tilted,
    log_bound_near,
    log_characteristic,
    log_characteristic_grid,
    log_decay,
)
from symdp.numeric.step import Array, Index
from symdp.numeric.sums import finite_sum
from symdp.numeric.total import SumLaw, find_lattice

_FARTHEST = 300.0  # in standard deviations⁻¹ of one step: a plain sum so long would cost too much
_OUT = np.geomspace(1.0, 1e6, 81)  # times the end of a line: where bounds are taken


class Tail:
    """What lies beyond the end of a line, as the densities of `law` at a tilt bound |φ|ⁿ."""

    def __init__(self, law: SumLaw, tilt: float) -> None:
        self._law = law.thinned
        self._parts = self._law.tilted(tilt)
        # What a tilt makes narrower would need finer nodes than the untilted law.
        widest = max(part.widest for part in (*self._parts, *self._law.tilted(0.0)))
        self.farthest = _FARTHEST / widest if widest > 0 else math.inf
        alone = self._law.combine([np.log([max(x.atomic, 1e-300)]) for x in self._parts])
        self._alone = float(np.exp(alone[0]))

    def beyond(self, end: float, enough: float, less_atoms: bool = False) -> tuple[float, float]:
        """Return the least y ≥ `end` with 2∫_y^∞ Π|φᵢ|^{nᵢ}/v² dv ≤ `enough`, and the integral.

        At inf, where there is no such y, it is that from `end` on.  Terms beyond add up to at most
        as much, over their step.
        """
        y = end * _OUT
        bounds = []
        for part in self._parts:
            far = log_decay(part, y)
            far[:-1] = np.minimum(far[:-1], log_bound_near(part, y))
            bounds.append(far)
        size = np.exp(self._law.combine(bounds))
        if less_atoms:  # they are summed by themselves, or seen to recur
            size = np.maximum(size - self._alone, 0.0)
        shares = size * -np.diff(1.0 / y, append=0.0)
        left = 2.0 * np.cumsum(shares[::-1])[::-1]
        good = np.flatnonzero(left <= enough)
        if not good.size:
            return math.inf, float(left[0])
        return float(y[good[0]]), float(left[good[0]])


STEEPNESS = 12.0  # s, a pure number: c is 1e-14 at w = 1, and lacks 1e-20 of one at 0
CENTRE = 0.55  # w₀, a pure number, for which ∫M is about as small as it gets
FEJER = 0.464  # A, a pure number
GAUSSIANS = ((0.094, 13.0), (0.032, 24.0))  # aᵢ and bᵢ, pure numbers
FAR_ABOVE = 1e2  # R: how many times 1 + |tilt| the cut-off T must be for the proof above
_BLOCK = 1 << 16  # nodes summed at once: what a processor's cache holds


@dataclass(frozen=True)
class Smoothed:
    """A line with values up to a cut-off T, and a bound of what the cut-off changed at any ε."""

    reach: float  # T, in nats⁻¹
    left_out: float  # what else the sum may lack or have too much, on both sides together
    near: Array  # M̂(w)/c(w): turns the values, but for G, into those of the mass within a few 1/T
    far: Index  # how many blocks of steps the places are from 0
    more: Index  # and how many steps more
    known: dict[float, tuple[float, float, float]]  # at the last ε, which is asked for again

    def sums(self, line: Line, epsilon: float) -> tuple[float, float, float, float]:
        """Return the sum, its derivative by ε, what it may lack, and what the cut-off changed."""
        if epsilon not in self.known:
            self.known.clear()
            self.known[epsilon] = self._summed(line, line.distance(epsilon) + line.shift)
        total, slope, change = self.known[epsilon]
        return total, slope, self.left_out, change

    def _summed(self, line: Line, gap: float) -> tuple[float, float, float]:
        # Products by 1, y and, of those near 0, by z(1 + z).
        found = np.zeros(3)
        step = gap * line.step
        jumps = np.exp(1j * (step * _BLOCK) * np.arange(self.far[-1] + 1.0))
        turns = np.exp(1j * step * np.arange(_BLOCK))
        for first in range(0, line.places.size, _BLOCK):
            here = slice(first, first + _BLOCK)
            y, near = line.places[here], self.near[here]
            terms = line.values[here] * jumps[self.far[here]] * turns[self.more[here]]
            even, odd = terms.real, terms.imag
            if not first:  # y = 0 has no mirror image
                even[0] *= 0.5
            square = (line.tilt * (1.0 + line.tilt) - y * y) * near
            found += (
                even.sum(),
                y @ odd,
                square @ even - (1.0 + 2.0 * line.tilt) * ((y * near) @ odd),
            )
        total, turned, mass = (2.0 * found).tolist()
        # What is proved needs no margin, and gets one where estimates become bounds.
        return total, turned - line.tilt * total, abs(mass) / (SAFETY * self.reach**2)


def smoothed(line: Line, places: Array, values: Complex, reach: float, left_out: float) -> Line:
    """Return a line's values, those at further places included, cut off smoothly at `reach`."""
    places, values = np.append(line.places, places), np.append(line.values, values)
    kept = cut_off(places / reach)
    near = majorant_transform(places / reach) / kept
    blocks = np.divmod(np.rint(places / line.step).astype(np.intp), _BLOCK)
    cut = Smoothed(reach, left_out, near, *blocks, {})
    return replace(line, places=places, values=values * kept, assured=True, cut=cut)


def cut_off(w: Array) -> Array:
    """Return c(w), w ≥ 0, whose second term is below 1e-20 of the first one there."""
    z = STEEPNESS * (w - CENTRE)
    if z.size <= FEW_NODES:  # half a millisecond at most; SciPy takes 200 to be imported
        return 0.5 * np.asarray([math.erfc(one) for one in z.tolist()])
    from scipy.special import erfc

    return np.asarray(0.5 * erfc(z))


def majorant_transform(w: Array) -> Array:
    """Return M̂(w) = ∫ M(u) cos(uw) du for w ≥ 0."""
    total = FEJER * 2.0 * math.pi * np.maximum(1.0 - w, 0.0)
    for height, width in GAUSSIANS:
        total += height * width * math.sqrt(math.pi) * np.exp(-((0.5 * width * w) ** 2))
    return np.asarray(total)


_TRANSFORMED = 5e-14  # what kernel and rounding of the FFT change in φ, relative to Σ pⱼ = 1
_SPREAD = 8  # values of a transform for each loss: as long as it takes to spread them
_LARGEST = float(majorant_transform(np.zeros(1))[0]) / SAFETY  # ∫M, a proved bound


def mesh_line(
    law: SumLaw, epsilon: float, tilt: float, beside: float, wanted: float = TOLERABLE
) -> Line:
    """Return a line of a law of any kind that serves every ε' with |ε' − ε| ≤ `beside`.

    The cut-off changes no more than `wanted`, relative to the integral, where that is to be had.
    """
    tilted = law.tilted(tilt)
    line, _ = first_line(
        law, tilted, epsilon, tilt, continuous_kernel, math.inf, beside, 2 * FEW_NODES
    )
    gap = line.distance(epsilon) + line.shift
    most = _most_nodes(law, line)
    if most * line.step < FAR_ABOVE * (1.0 + abs(tilt)):
        raise AccuracyError(
            "too few values of the characteristic function tell what single values of the "
            "loss add up to; the method prv gives proved bounds"
        )
    size = abs(gap) + loss_size(law, tilted)
    nodes = _nodes_wanted(line, gap, wanted, most)
    while True:
        made = _up_to(law, line, nodes, size)
        assert made.cut is not None
        total, _, left_out, change = made.cut.sums(made, epsilon)
        short = change > 2.0 * wanted * abs(total) and left_out < change
        if nodes >= most or not short:
            return made
        nodes = min(most, 8 * nodes)


def predicted_error(law: SumLaw, epsilon: float, tilt: float) -> float:
    """Return about the relative error of a line, as its first nodes tell; inf if they cannot."""
    tilted = law.tilted(tilt)
    line, _ = first_line(
        law, tilted, epsilon, tilt, continuous_kernel, math.inf, 0.0, 2 * FEW_NODES
    )
    reach = _most_nodes(law, line) * line.step
    if reach < FAR_ABOVE * (1.0 + abs(tilt)) or line.places.size >= 2 * FEW_NODES:
        return math.inf
    total, mass, modulus = _first_sums(line, line.distance(epsilon) + line.shift)
    if not total > 0:
        return math.inf
    rounded = (ROUNDING * line.rounding + law.count * _TRANSFORMED) * modulus
    return (_LARGEST * mass / reach**2 + rounded) / total


def _most_nodes(law: SumLaw, line: Line) -> int:
    """Return how many nodes a line may have: more only where the bound needs them.

    A loss with a density has more nodes itself the farther out it is asked: a line of it ends
    sooner.
    """
    most = LONG_LINE // 2 if law.is_spread else MOST_NODES
    while most < 4 * MOST_NODES and most * line.step < FAR_ABOVE * (1.0 + abs(line.tilt)):
        most *= 2
    return most


def _first_sums(line: Line, gap: float) -> tuple[float, float, float]:
    """Return the sum of the first nodes, that of the density near ε, and that of the moduli."""
    turned = line.values * np.exp(1j * gap * line.places)
    z = line.tilt + 1j * line.places
    mass = abs(plain_sum((turned * z * (1.0 + z)).real))
    return abs(plain_sum(turned.real)), mass, 2.0 * float(np.abs(turned).sum())


def _nodes_wanted(line: Line, gap: float, wanted: float, most: int) -> int:
    """Return how many nodes bound the change by what is wanted, as far as the first ones tell."""
    total, mass, _ = _first_sums(line, gap)
    reach = math.sqrt(_LARGEST * mass / (wanted * total)) if total > 0 else math.inf
    reach = max(reach, 1.01 * FAR_ABOVE * (1.0 + abs(line.tilt)))
    needed = min(max(reach / line.step, 4.0 * line.places.size, FEW_NODES), float(most))
    return min(most, 1 << math.ceil(math.log2(needed)))


def _up_to(law: SumLaw, line: Line, nodes: int, size: float) -> Line:
    """Return the line up to so many nodes, cut off, less those where |φ_t|ⁿ is negligible."""
    start, step = line.places.size, line.step
    if nodes <= start:
        return smoothed(line, np.empty(0), np.empty(0, dtype=np.complex128), step * start, 0.0)
    tilted = law.tilted(line.tilt, step * nodes)
    least = -1.5 * NEGLIGIBLE - math.log(nodes)
    # Those left out, and what they may add to the mass near ε, which is divided by a larger T².
    left_out = 4.0 * math.exp(-1.5 * NEGLIGIBLE) * kernel_modulus(continuous_kernel, line.tilt, 0.0)
    fixed_error, turned = max(part.error for part in tilted), ROUNDING * size
    # The steps that leave the fewest places first.
    parts = sorted(
        zip(tilted, (n for _, n in law.terms), strict=True),
        key=lambda pair: -pair[1] * pair[0].variance,
    )
    kept: list[tuple[Array, Complex]] = []
    # Each transform spreads all losses once, which shall not cost more than its own values.
    length = max(LONG_LINE, _SPREAD * max(part.weight.size for part in tilted))
    for first in range(start, nodes, length):
        place = np.arange(first, min(first + length, nodes))
        exponent, unsure = np.zeros(place.size, dtype=np.complex128), np.zeros(place.size)
        most = np.zeros(place.size)
        for part, weight in parts:
            log = _log_values(part, step, place)
            modulus = np.maximum(np.exp(log.real), np.finfo(float).tiny)
            error = _TRANSFORMED + ROUNDING * math.sqrt(part.variance) * step * place
            unsure += weight * error / modulus
            exponent += weight * log
            most += weight * np.log(np.minimum(modulus + error, 1.0))
            seen = np.flatnonzero(most > least)
            place, most = place[seen], most[seen]
            exponent, unsure = exponent[seen], unsure[seen]
        y: Array = step * place.astype(np.float64)
        values = np.exp(exponent) * continuous_kernel(np.asarray(line.tilt + 1j * y))
        unsure = np.minimum(unsure, 1e9) + turned * y + fixed_error
        left_out += 2.0 * float(np.abs(values) @ unsure)
        kept.append((y, values))
    places, terms = (np.concatenate(column) for column in zip(*kept, strict=True))
    return smoothed(line, places, terms, step * nodes, left_out)


def _log_values(part: Tilted, step: float, place: Index) -> Complex:
    """Return log φ_t at some of the nodes, in rising order."""
    first, last = (int(place[0]), int(place[-1]) + 1) if place.size else (0, 0)
    # An exponential for each place and loss costs as much as some ten products.
    if 10 * place.size >= last - first > 0:
        return log_characteristic_grid(part, step, first, last)[place - first]
    return log_characteristic(part, step * place.astype(np.float64))


_UNSEEN = 1e-5  # relative to δ: what may lie beyond a line whose smooth cut-offs agree to 1e-13
_CYCLES = 8.0  # recurrences after which a sum is taken for settled


@dataclass(frozen=True)
class _Slow:
    """Values that die out slowly: at each ε the sum is cut off smoothly."""

    law: SumLaw
    listed: bool  # whether the atoms' part of the values is left out, and summed exactly
    recurrent: float  # what |φ_t| returns to beyond the end, where atoms are not listed
    cycle: float  # after which length the atoms' part recurs
    left_out: float = 0.0  # beyond the end, on both sides together

    def sums(self, line: Line, epsilon: float) -> tuple[float, float, float, float]:
        """Return the sum at ε, its derivative, and what lies beyond and what the cut changes.

        Where terms have died out the sum is plain. Where they decay slowly but δ is smooth around
        ε, a smooth cut-off at Y averages δ over a width of order 1/Y with a kernel whose moments
        all vanish: its error falls faster than any power of Y. Sums at Y and less show it, several
        of them, as next to a kink of δ any two may agree by chance.
        """
        total, slope, tail, change = self.known(line, epsilon)
        beyond = min(tail, 1e300) + self.left_out + self._atoms(line, epsilon)[1]
        return total, slope, beyond, change

    def known(self, line: Line, epsilon: float) -> tuple[float, float, float, float]:
        """Return the same of the values that are known."""
        exact, _, steepness = self._atoms(line, epsilon)
        turned = line.values * np.exp(1j * (line.distance(epsilon) + line.shift) * line.places)
        terms = turned.real
        slopes = line.places * turned.imag - line.tilt * terms
        total, tail = plain_sum(terms) + exact, 2.0 * terms.size * self.end(line)
        if not reach(line) >= _CYCLES * self.cycle:  # not every recurrence has been seen
            return total, math.nan, math.inf, 0.0
        if tail <= SETTLED * abs(total):
            return total, plain_sum(slopes) + steepness, tail, 0.0
        cuts = _cut_offs(terms.size)
        full, *others = (2.0 * (cuts @ terms) - terms[0]).tolist()
        change = max(abs(full - other) for other in others)
        return full + exact, plain_sum(slopes * cuts[0]) + steepness, 0.0, change

    def end(self, line: Line) -> float:
        """Return the size of the last values, or of what they may return to."""
        again = self.recurrent * kernel_modulus(continuous_kernel, line.tilt, reach(line))
        return max(end_size(np.abs(line.values[line.values.size // 2 :])), again)

    def _atoms(self, line: Line, epsilon: float) -> tuple[float, float, float]:
        """Return what atoms alone add to the sum, its error, and its derivative by ε."""
        found = finite_sum(self.law, epsilon, line.tilt, atomic=True) if self.listed else None
        if found is None:
            return 0.0, 0.0, 0.0
        log_unit = math.log(2.0 * math.pi / line.step)
        log_unit -= line.tilt * line.distance(epsilon) + line.excess
        log_value = found.log_delta if line.tilt > 0 else found.log_complement
        value, error, slope = (
            math.exp(min(log + log_unit, 700.0))
            for log in (log_value, found.log_error, found.log_slope)
        )
        return math.copysign(value, line.tilt), error, -slope


def reach(line: Line) -> float:
    """Return the end Y of a line."""
    return line.step * line.places.size


@lru_cache(maxsize=8)
def _cut_offs(size: int) -> Array:
    """Return the smooth cut-offs at Y and less at the nodes below Y, a row for each."""
    place = np.arange(size) / size
    return np.stack([cut_off(shorter * place) for shorter in np.geomspace(1.0, 2.0, 5)])


def slow_line(
    law: SumLaw,
    epsilon: float,
    tilt: float,
    beside: float,
    most: int,
    enough: float = SETTLED,
    worst: float = TOLERABLE,
    least: int = 0,
) -> Line:
    """Return a line of a law with a density that serves every ε' with |ε' − ε| ≤ `beside`.

    Where bounds show that values die out soon, it ends there. Else it has `least` to `most` nodes,
    until the sum changes by no more than `enough`, relative to it; of the most nodes it is returned
    where it does so by `worst`. AccuracyError if the integrand does not settle so far.
    """
    tilted, tail = law.tilted(tilt), Tail(law, tilt)
    first, _ = first_line(law, tilted, epsilon, tilt, continuous_kernel, math.inf, beside)
    plain = _plain_line(law, first, epsilon, tail)
    if plain is not None:
        return plain
    line, cut = _started(law, first, tilted)
    best: tuple[float, Line] = math.inf, line
    while True:
        total, _, tail_size, change = cut.known(line, epsilon)
        relative = (tail_size + change) / abs(total) if total else math.inf
        best = min(best, (relative, line), key=lambda pair: pair[0])
        stop = line.places.size * (4 if line.places.size < FEW_NODES else 2)
        if best[0] <= enough and line.places.size >= least:
            start, left_out = reach(line), 0.0
            if not line.assured:
                start, left_out = _beyond(line, cut, total, tail)
            if start <= reach(line):
                return replace(line, assured=True, cut=replace(cut, left_out=left_out))
            stop, best = math.ceil(min(start / line.step, 1e9)) + 1, (math.inf, line)
        if stop > most:
            relative, line = best
            if relative <= worst:
                return line
            raise AccuracyError(
                "the characteristic function of the privacy loss decays too slowly for "
                f"{law.count} steps: {line.places.size} nodes leave a relative error of "
                f"{relative:.1e}"
            )
        start = line.places.size
        line = _less_atoms(law, longer(law, line, stop, continuous_kernel), cut, tilted, start)


def _plain_line(law: SumLaw, line: Line, epsilon: float, tail: Tail) -> Line | None:
    """Return a line up to where bounds leave less than rounding, None where that is too far."""
    while True:
        enough = ROUNDED * abs(line.plain(epsilon)) * line.step
        end, left_out = tail.beyond(reach(line), enough)
        if end <= reach(line):
            last = 0.5 * left_out / line.step / line.places.size
            return replace(line, assured=True, last=last)
        if end > min(tail.farthest, line.step * LONG_LINE):
            return None
        line = longer(law, line, math.ceil(end / line.step) + 1, continuous_kernel)


def _beyond(line: Line, cut: _Slow, total: float, tail: Tail) -> tuple[float, float]:
    """Return from which y on what lies beyond a line is negligible, and what its terms add up to.

    Where the bound is not negligible itself, but too little for a recurrence, what was seen up to
    there is taken to go on.
    """
    end, unit = reach(line), abs(total) * line.step
    start, left_out = tail.beyond(end, SETTLED * unit, less_atoms=True)
    if start > end and tail.beyond(end, _UNSEEN * unit, less_atoms=True)[0] <= end:
        return end, 0.0
    if start > end:
        start, left_out = tail.beyond(end, 0.5 * _UNSEEN * unit, less_atoms=True)
    return start, left_out / line.step


def _started(law: SumLaw, first: Line, tilted: list[Tilted]) -> tuple[Line, _Slow]:
    """Return a line's first nodes, and how it is to be summed."""
    counts = [weight for _, weight in law.terms]
    # What |φ_t(y)| returns to again and again where atoms carry weights aᵢ: Π aᵢ^nᵢ. Between two
    # such returns the terms look as if they had died out.
    recurrent = 0.0
    if law.has_atoms and all(part.atomic > 0 for part in tilted):
        logs = (n * math.log(part.atomic) for n, part in zip(counts, tilted, strict=True))
        recurrent = math.exp(math.fsum(logs))
    cycle = law.atom_cycle if recurrent * law.count > math.exp(-NEGLIGIBLE) else 0.0
    listed = recurrent > SETTLED and first.tilt > -1.0
    # What recurs is the sum of atoms alone, which is known exactly.
    listed = listed and finite_sum(law, 0.0, first.tilt, atomic=True) is not None
    if law.is_mixed:
        lattice = find_lattice(law.apart[0])
        period = math.inf if lattice is None else 2.0 * math.pi / float(lattice.spacing)
        cycle = max(cycle, period)
        if _CYCLES * cycle > first.step * 0.25 * LONG_LINE:
            raise AccuracyError(
                f"the single values of the loss of {law.count} steps bring the characteristic "
                "function back too often; the method prv gives proved bounds"
            )
    cut = _Slow(law, listed, 0.0 if listed else recurrent, cycle)
    line = replace(first, cut=cut, assured=law.is_mixed)
    return _less_atoms(law, line, cut, tilted, 0), cut


def _less_atoms(law: SumLaw, line: Line, cut: _Slow, tilted: list[Tilted], start: int) -> Line:
    """Return a line from whose values, those from a node on, the atoms' part is taken if listed."""
    if not cut.listed:
        return line
    y = line.places[start:]
    modulus, angle = np.ones(y.size), np.zeros(y.size)
    for part, (_, count) in zip(tilted, law.terms, strict=True):
        here = part.nodes.atomic
        turns = np.exp(1j * np.multiply.outer(y, part.deviation[here]))
        value = (turns * part.weight[here]).sum(axis=1)
        modulus = modulus * np.abs(value) ** count
        angle = angle + count * np.angle(value)
    alone = modulus * np.exp(1j * angle) * continuous_kernel(np.asarray(line.tilt + 1j * y))
    rest = line.values[start:] - alone
    return replace(line, values=np.append(line.values[:start], rest))
