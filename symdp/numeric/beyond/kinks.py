"""A smooth cut-off of a line, and a bound of what it changes in δ where ε is no kink of it.

Values at |y| > T are left out, and those nearer taken c(y/T) times, c(w) = erfc(s(w − w₀))/2. That
the sums for several T agree proves nothing: |φ_t|ⁿ may return beyond all of them. So every step's

    φ_t(y) = Σⱼ aⱼ e^{iyℓⱼ} + Σⱼ Σ_{m=1}^{k} b_{jm} e^{iyℓⱼ}/(iy)^m + R(y)

is split into its atoms aⱼ, into what k integrations by parts of the tilted density leave at the
ends ℓⱼ of its stretches, and a rest R, bounded for every y ≥ T/20 by the variation of the (k−1)st
derivative. With A(y) = Σⱼ (aⱼ + Σ_m |b_{jm}| y^{−m}) and r ≥ |R| for each step, and |G| ≤ 1/y²:

- A product of n steps in which some factor is a rest is at most Π(Aᵢ + rᵢ) − ΠAᵢ. Its integral,
  1 − c(y/T) times, is small once r is: like T^{−k−1}.
- The others are exponentials e^{iyp}/(iy)^q, p a sum of n atoms and ends, and G is a series of
  powers of 1/(iy) as well where T ≥ 40(1 + |t|). With x = p − ε and u = T|x|, let y
  run over [T/20, ∞) + iT sign(x) u/(2s²). On the way there 1 − c < 1.2e-17 at T/20 decides; on
  the path |e^{iyx} (1 − c(y/T))| ≤ e^{−(u/2s)²} and |y| ≥ Tu/(2s²). So for u ≥ s² each power
  integrates to no more than e^{−(u/2s)²} times that at y = T/2, times T: nothing, unless p is
  near ε.
- Where p is so near, δ has a kink near ε, and the modulus is all there is.

So a line is as good as a step's density is smooth between its kinks, and atoms need not be few. At
a kink, the mass of the losses near ε bounds the change, as in `cut_off`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from symdp.numeric.answer import FEW_NODES, MOST_NODES, SAFETY, SETTLED
from symdp.numeric.elementary import Complex, log_sum
from symdp.numeric.line import Line, plain_sum
from symdp.numeric.nodes import Expansion
from symdp.numeric.step import Array, Index
from symdp.numeric.sums import Atoms, added
from symdp.numeric.total import SumLaw
from symdp.tolerances import NEGLIGIBLE

STEEPNESS = 12.0  # s, a pure number: c is 1e-14 at w = 1, and lacks 1e-20 of one at 0
CENTRE = 0.55  # w₀, a pure number, for which ∫M is about as small as it gets
FEJER = 0.464  # A, a pure number
GAUSSIANS = ((0.094, 13.0), (0.032, 24.0))  # aᵢ and bᵢ, pure numbers
FAR_ABOVE = 1e2  # R: how many times 1 + |tilt| the cut-off T must be for the proof above


def cut_off(w: Array) -> Array:
    """Return c(w), w ≥ 0, whose second term is below 1e-20 of the first one there."""
    z = STEEPNESS * (w - CENTRE)
    if z.size <= FEW_NODES:  # half a millisecond at most; SciPy takes 200 to be imported
        values = [math.erfc(argument) for argument in z.tolist()]
        return 0.5 * np.asarray(values)
    from scipy.special import erfc

    return np.asarray(0.5 * erfc(z))


@lru_cache(maxsize=8)
def cut_off_rows(size: int) -> Array:
    """Return the smooth cut-offs at Y and less at the nodes below Y, a row for each."""
    share = np.arange(size) / size
    shares = [shorter * share for shorter in np.geomspace(1.0, 2.0, 5)]
    return np.stack([cut_off(of_end) for of_end in shares])


def majorant_transform(w: Array) -> Array:
    """Return M̂(w) = ∫ M(u) cos(uw) du for w ≥ 0."""
    triangle = np.maximum(1.0 - w, 0.0)
    total = FEJER * 2.0 * math.pi * triangle
    for height, width in GAUSSIANS:
        area = height * width * math.sqrt(math.pi)
        total += area * np.exp(-((0.5 * width * w) ** 2))
    return np.asarray(total)


def near_bound(line: Line, turned: Complex) -> float:
    """Return what a cut-off at T changes in a sum of `turned` terms, by the mass near ε (cut_off).

    It is what a majorant of the change of the payoff, that needs no terms beyond T, adds up to.
    """
    end = line.step * line.places.size
    tilt = line.tilt
    y = line.places
    if end < FAR_ABOVE * (1.0 + abs(tilt)):
        return math.inf
    z = tilt + 1j * y
    weights = majorant_transform(y / end)
    terms = turned * z * (1.0 + tilt + 1j * y) * weights
    change = abs(plain_sum(terms.real))
    return change / (SAFETY * end**2)


@dataclass(frozen=True)
class Sums:
    """Sums of losses, each known to lie between two places, with their sizes."""

    low: Array
    high: Array
    size: Array

    @classmethod
    def none(cls) -> Sums:
        """Return no sums."""
        return cls(np.empty(0), np.empty(0), np.empty(0))

    def distance(self, epsilon: float) -> Array:
        """Return how far each is from ε at least."""
        outside = np.fmax(self.low - epsilon, epsilon - self.high)
        return np.asarray(np.fmax(outside, 0.0))


@dataclass(frozen=True)
class _Split:
    """What the steps are split into at one T."""

    residual: float  # the integral of products with a rest, on both sides
    start: float  # what the start of the path leaves
    expansions: Sequence[Expansion]  # of every step, none where they have no kinks


class KinkBound:
    """What smooth cut-offs of a line may change, as an integral over y on both sides."""

    def __init__(self, law: SumLaw, tilt: float) -> None:
        self._law = law
        self._tilt = tilt
        self._parts = law.tilted(tilt)
        self._known: dict[float, _Split] = {}
        self._known_kinks: dict[float, Sums] = {}

    def left_out(self, reach: float, epsilon: float) -> float:
        """Return how much the integral may change that is cut off at T = `reach`."""
        split = self._split_of_reach(reach)
        kinks = self._kinks_of_reach(reach)
        distance = reach * kinks.distance(epsilon)
        is_long = reach >= 40.0 * (1.0 + abs(self._tilt))
        is_clear = (distance >= STEEPNESS**2) & is_long
        shares = distance / (2.0 * STEEPNESS)
        decay = np.exp(-(shares**2))
        fall = np.where(is_clear, decay, 1.0)
        # T times the integral of 1 − c over y² is 9.6, its powers and both sides counted.
        at_kinks = 10.0 / reach * float(kinks.size @ fall)
        return split.residual + split.start + at_kinks

    def residual(self, reach: float) -> float:
        """Return how much it may change wherever ε is."""
        return self._split_of_reach(reach).residual

    def _split_of_reach(self, reach: float) -> _Split:
        if reach not in self._known:
            self._known[reach] = self._split_at(reach)
        return self._known[reach]

    def _split_at(self, reach: float) -> _Split:
        y = _frequencies(reach)
        bounds = [part.log_bound(y) for part in self._parts]
        log_size = self._law.combine(bounds)
        if self._law.terms is not self._law.parts:  # they stand for steps that are no terms
            integral = _integral_of_lacking(y, reach, np.exp(log_size))
            return _Split(integral, start=0.0, expansions=[])
        expansions = [part.expansion(0.5 * reach) for part in self._parts]
        sizes_of_steps = [_log_sizes(expansion, y) for expansion in expansions]
        wholes, mains, growths = zip(*sizes_of_steps, strict=True)
        log_whole = self._law.combine(wholes)
        log_main = self._law.combine(mains)
        growth = self._law.combine(growths)
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.exp(log_whole) * -np.expm1(-growth)
        # It is the difference of all and of the main part, neither of them large.
        most_of_all = np.exp(np.minimum(log_size, 0.0))
        most_of_main = np.exp(np.minimum(log_main, 700.0))
        most = most_of_all + most_of_main
        size = np.fmin(size, most)
        first_log_size = min(log_main[0], 700.0)
        first_size = float(np.exp(first_log_size))
        return _Split(
            residual=_integral_of_lacking(y, reach, size),
            start=1e-16 / reach * first_size,
            expansions=expansions,
        )

    def _kinks_of_reach(self, reach: float) -> Sums:
        if reach not in self._known_kinks:
            expansions = self._split_of_reach(reach).expansions
            self._known_kinks[reach] = self._kinks(expansions, reach)
        return self._known_kinks[reach]

    def _kinks(self, expansions: Sequence[Expansion], reach: float) -> Sums:
        """Return the sums of atoms and ends with their sizes at T/4.

        Where they are many, all those of a bin are known by its ends.
        """
        counts = [count for _, count in self._law.parts]
        steps = [expansion.terms(0.25 * reach) for expansion in expansions]
        if not (steps and all(loss.size for loss, _ in steps)):
            return Sums.none()
        log_masses = [log_sum(log_sizes) for _, log_sizes in steps]
        log_all = math.fsum(count * mass for mass, count in zip(log_masses, counts, strict=True))
        if log_all < -NEGLIGIBLE:
            return Sums.none()
        total: Atoms | None = (np.zeros(1), np.zeros(1))
        for step, count in zip(steps, counts, strict=True):
            total = _likely_sum(total, _likely_power(step, count))
        whole = math.exp(min(log_all, 700.0))
        if total is None:
            shares = binned_sums(steps, counts, STEEPNESS / reach)
            return replace(shares, size=whole * shares.size)
        loss, log_size = total
        listed = np.exp(np.minimum(log_size, 700.0))
        unlisted = max(whole - float(listed.sum()), 0.0)
        return Sums(
            low=np.append(loss, -math.inf),
            high=np.append(loss, math.inf),
            size=np.append(listed, unlisted),
        )


_Bins = tuple[Index, Array]  # numbers, and a share of each


def _grouped(steps: Sequence[_Bins], counts: Sequence[int]) -> Iterator[tuple[_Bins, int]]:
    """Yield the bins of steps with their counts, those of single steps added up in groups."""
    group: _Bins = (np.zeros(1, dtype=np.intp), np.ones(1))
    for step, count in zip(steps, counts, strict=True):
        if count > 1:
            yield step, count
            continue
        if group[0].size * step[0].size > FEW_NODES:
            yield group, 1
            group = step
            continue
        index = np.add.outer(group[0], step[0])
        share = np.multiply.outer(group[1], step[1])
        group = (index.ravel(), share.ravel())
    yield group, 1


def binned_sums(steps: Sequence[Atoms], counts: Sequence[int], width: float) -> Sums:
    """Return bins of the sums of so many losses of each step, with shares of the whole size.

    A loss in the k-th of its step's bins lies within one bin beyond their k-th edge: the sum of n
    losses, k adding up, within n bins beyond the k-th edge of the sums. Bins are narrower than
    `width` over n, unless they are many.
    """
    ranges = [float(np.ptp(loss)) for loss, _ in steps]
    count_of_all = sum(counts)
    lengths = [count * length for length, count in zip(ranges, counts, strict=True)]
    longest = math.fsum(lengths)
    bin_width = max(width / count_of_all, longest / MOST_NODES)
    bins: list[_Bins] = []
    start = 0.0
    last = 0
    for (loss, log_size), count in zip(steps, counts, strict=True):
        least = float(loss.min())
        numbers = np.floor((loss - least) / bin_width)
        index = numbers.astype(np.intp)
        share = np.exp(log_size - log_sum(log_size))
        bins.append((index, share))
        start += count * least
        last += count * int(index.max())
    length = 1 << last.bit_length()
    spectrum = np.ones(length // 2 + 1, dtype=np.complex128)
    for (index, share), count in _grouped(bins, counts):
        masses = np.bincount(index, share, length)
        spectrum *= np.fft.rfft(masses) ** count
    whole_period = np.fft.irfft(spectrum, length)
    size = np.maximum(whole_period[: last + 1], 0.0)
    low = start + bin_width * np.arange(last + 1)
    # What transforms round may be anywhere.
    return Sums(
        low=np.append(low, -math.inf),
        high=np.append(low + bin_width * count_of_all, math.inf),
        size=np.append(size, count_of_all * SETTLED),
    )


def _likely_power(step: Atoms, count: int) -> Atoms | None:
    """Return the sums of copies that count, None where they are many."""
    square: Atoms | None = step
    result: Atoms | None = (np.zeros(1), np.zeros(1))
    while count:
        if count & 1:
            result = _likely_sum(result, square)
        count >>= 1
        square = _likely_sum(square, square) if count else None
    return result


def _likely_sum(first: Atoms | None, second: Atoms | None) -> Atoms | None:
    """Return sums of two losses, less those that are rounding beside all others."""
    if first is None or second is None:
        return None
    if first[0].size * second[0].size > 16 * FEW_NODES:
        return None
    total = added(first, second)
    if total is None:
        return None
    loss, log_size = total
    is_likely = log_size > log_sum(log_size) - NEGLIGIBLE
    return loss[is_likely], log_size[is_likely]


def _frequencies(reach: float) -> Array:
    """Return where sizes are taken: from T/20 on, closely where 1 − c rises from nothing to 1."""
    before = np.geomspace(0.05, 0.2, 8)
    around = np.geomspace(0.2, 2.0, 48)
    beyond = np.geomspace(2.0, 1e6, 24)
    return reach * np.unique(np.concatenate([before, around, beyond]))


def _log_sizes(expansion: Expansion, y: Array) -> tuple[Array, Array, Array]:
    """Return log(A + r), log A and their difference, which is 0 where there is no rest."""
    main = expansion.main(y)
    residual = expansion.residual_size(y)
    # Next to a zero of the main part the growth is infinite.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative_growth = np.log1p(residual / main)
        growth = np.where(residual > 0.0, relative_growth, 0.0)
        return np.log(main + residual), np.log(main), growth


def _integral_of_lacking(y: Array, reach: float, size: Array) -> float:
    """Return 2∫ (1 − c(y/T)) size(y)/y² dy, each size one of all y up to the next, or beyond."""
    next_y = np.append(y[1:], math.inf)
    lacking = 1.0 - cut_off(next_y / reach)
    shares = -np.diff(1.0 / y, append=0.0)
    return 2.0 * float(size @ (lacking * shares))
