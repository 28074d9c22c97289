r"""What is released of a batch: its noisy sum, or its average over the records that were drawn.

Whoever sees the average sees the size b of the batch too, and then the sum. With N records, the
one in question among them, and B the binomial masses of N − 1 draws at rate q, the size is b

.. math:: \text{without the record: } B(b), \qquad
   \text{with it: } (1 - q) B(b) + q B(b - 1).

Given b, a batch with the record has another one less: an exchange, which moves the sum by 2D at
most. So the pair is Q(b, y) = B(b) f(y), P(b, y) = (1 − q) B(b) f(y) + q B(b − 1) f(y − 2D). The
derivation page on averages has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from symdp.emit.exact import middle_of
from symdp.errors import InputError

SUM = "sum"
AVERAGE = "average"
RATE_AVERAGE = "rate_average"
RELEASED = (SUM, AVERAGE)
MOST_SIZES = 64  # each is derived and compiled on its own; more are split between neighbours
_FAINT = Fraction(1, 10**21)  # sizes less likely than this are charged an infinite loss
_BITS = 70  # of a mass, rounded down; what is lost is charged an infinite loss as well
_PRECISION = 260
_LARGEST = 10**7  # sizes that are looked at one by one


@dataclass(frozen=True)
class Sizes:
    """The sizes of a batch."""

    masses: tuple[Fraction, ...]  # without the record
    ratios: tuple[Fraction, ...]  # B(b − 1)/B(b)
    lost_with: Fraction  # what is left of the masses with the record
    lost_without: Fraction  # and without it


def sizes(records: int, rate: Fraction) -> Sizes:
    """Return the sizes of a Poisson batch out of `records`, merged where there are many.

    A size between two kept ones is split between them so that the masses of both laws stay: both
    laws are linear in the ratio, so that the larger choice of sizes can imitate the smaller.
    """
    if rate == 1:  # the size is the number of records, and no size is had in both worlds
        return Sizes((), (), Fraction(1), Fraction(1))
    likely = _likely(records, rate)
    ratios = {b: b * (1 - rate) / ((records - b) * rate) for b in likely}
    step = math.ceil(len(likely) / MOST_SIZES)
    first = min(likely)
    last = max(likely)
    kept = sorted({*range(first, last, step), last})
    masses = dict.fromkeys(kept, Fraction(0))
    for b, mass in likely.items():
        index = min((b - first) // step, max(len(kept) - 2, 0))
        low = kept[index]
        high = kept[min(index + 1, len(kept) - 1)]
        share = Fraction(0)
        if high != low:
            share = (ratios[b] - ratios[low]) / (ratios[high] - ratios[low])
        masses[low] += mass * (1 - share)
        masses[high] += mass * share
    down = []
    kept_ratios = []
    with_it = Fraction(0)
    for b in kept:
        mass = _rounded_down(masses[b])
        ratio = ratios[b]
        down.append(mass)
        kept_ratios.append(ratio)
        with_it += mass * (1 - rate + rate * ratio)
    without_it = sum(down, Fraction(0))
    return Sizes(tuple(down), tuple(kept_ratios), 1 - with_it, 1 - without_it)


def _likely(records: int, rate: Fraction) -> dict[int, Fraction]:
    """Return lower bounds on the masses of Bin(N − 1, q) where they are not faint."""
    others = records - 1
    mode = int((others + 1) * rate)
    downwards = range(min(mode, others), -1, -1)
    upwards = range(mode + 1, others + 1)
    masses: dict[int, Fraction] = {}
    with ctx.workprec(_PRECISION):
        chance = arb(rate.numerator) / rate.denominator
        log_drawn = chance.log()
        log_left = (1 - chance).log()
        log_factorial = arb(others + 1).lgamma()
        for walk in (downwards, upwards):
            for b in walk:
                ways = log_factorial - arb(b + 1).lgamma() - arb(others - b + 1).lgamma()
                log_mass = ways + b * log_drawn + (others - b) * log_left
                mass = max(middle_of(log_mass.exp().lower()), Fraction(0))
                if mass < _FAINT:
                    break
                if len(masses) > _LARGEST:
                    raise InputError(f"{records} records: too many sizes of a batch")
                masses[b] = mass
    return masses


def _rounded_down(mass: Fraction) -> Fraction:
    """Return the mass, or the next number below it of so many bits where it has more."""
    if mass.denominator.bit_length() <= _BITS:
        return mass
    places = _BITS + mass.denominator.bit_length() - mass.numerator.bit_length()
    return Fraction((mass.numerator << places) // mass.denominator, 1 << places)
