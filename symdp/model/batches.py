"""How often a batch holds a record or several: binomial and hypergeometric weights, rounded up."""

from __future__ import annotations

import math
from fractions import Fraction

import sympy as sp
from flint import arb, ctx

from symdp.emit.exact import middle_of
from symdp.errors import InputError
from symdp.model.schemes import Sampling

MOST_HITS = 48  # labels of a public choice: each is derived and compiled on its own
FAR = Fraction(1, 10**15)  # less likely numbers of hits are charged an infinite loss
_BITS = 70  # probabilities of hits are rounded up to so many, so that formulas stay short
_LONG = 200  # and those that cannot be rounded to a safe side
_NOTHING = Fraction(1, 10**60)
_UNLIKELY = Fraction(
    1, 10**40
)  # numbers of hits of a large group that are lost, or counted as more
_MOST_LIKELY = 160  # numbers of hits of a large group, each with a shift of its own


def displacement(sampling: Sampling) -> tuple[sp.Rational, sp.Rational]:
    """Return p, the chance that the other records fill a truncated batch, and q′ given that.

    Both to 60 digits.

    >>> [round(float(part), 6) for part in displacement(
    ...     Sampling("truncated_poisson", sp.Rational(1, 10), batch=2, records=10))]
    [0.225159, 0.062348]
    """
    assert sampling.batch is not None
    assert sampling.records is not None
    q, size, records = fraction(sampling), sampling.batch, sampling.records
    full = _binomial_tail(records - 1, q, size)
    if full < _NOTHING:
        return sp.Integer(0), sp.Integer(0)
    rate = min(Fraction(1), size * _binomial_tail(records, q, size + 1) / (records * full))
    return rounded_up(full, _LONG), rounded_up(rate, _LONG)


def hits(sampling: Sampling) -> list[Fraction]:
    """Return Pr[at least j places of a fixed batch hold a substituted record], j = 0, 1, ...

    Draws with replacement hit a group of k records with probability kq each; without replacement
    the number of places is hypergeometric.

    >>> [float(tail) for tail in hits(Sampling("with_replacement", sp.Rational(1, 4), batch=2))]
    [1.0, 0.4375, 0.0625, 0.0]
    """
    rate = fraction(sampling)
    if sampling.scheme == "with_replacement":
        draws, rate = sampling.batch or 1, min(Fraction(1), sampling.group * rate)
        if draws * rate > MOST_HITS:
            raise InputError(too_many(f"{float(draws * rate):.4g} on average"))
        tails = [Fraction(1)]
        while tails[-1] > FAR and len(tails) <= 2 * MOST_HITS:
            tails.append(_binomial_tail(draws, rate, len(tails)))
        return tails
    records, group = sampling.records or 1, sampling.group
    size = rate * records
    if size.denominator != 1:
        raise InputError(
            f"{float(size):.6g} of {records} records is no batch: rate times records must be whole"
        )
    places = [_hypergeometric(records, group, int(size), j) for j in range(group + 1)]
    return [*(sum(places[j:], Fraction(0)) for j in range(group + 1)), Fraction(0)]


def likely_hits(sampling: Sampling) -> tuple[int, list[Fraction]]:
    """Return j₀ and the tails Pr[Bin(k, q) ≥ j], j = j₀, j₀ + 1, …, the first of them 1.

    Fewer hits than j₀ are counted as j₀, which only enlarges the loss; the last tail is below
    `_UNLIKELY`.

    >>> least, tails = likely_hits(Sampling("poisson", sp.Rational(1, 1000), group=200))
    >>> least, len(tails), float(tails[1])
    (0, 25, 0.1813511705213643)
    """
    rate, group = fraction(sampling), sampling.group
    least = 0
    while least < group and 1 - _binomial_tail(group, rate, least + 1) < _UNLIKELY:
        least += 1
    tails = [Fraction(1)]
    while tails[-1] > _UNLIKELY:
        tail = _binomial_tail(group, rate, least + len(tails))
        tails.append(Fraction(rounded_up(tail, _LONG)))
        if len(tails) > _MOST_LIKELY:
            raise InputError(too_many(f"more than {_MOST_LIKELY} likely numbers"))
    return least, tails


def _hypergeometric(records: int, group: int, size: int, j: int) -> Fraction:
    """Return the chance that a batch of `size` out of `records` holds j of a group."""
    inside = math.prod(size - i for i in range(j))
    outside = math.prod(records - size - i for i in range(group - j))
    ways = math.comb(group, j) * inside * outside
    return Fraction(max(ways, 0), math.prod(records - i for i in range(group)))


def fraction(sampling: Sampling) -> Fraction:
    """Return the rate; raise InputError where it has no value yet."""
    rate = sampling.rate
    if not rate.is_Rational:
        raise InputError(
            f"{sampling.scheme} sampling needs the value of its rate, a rational number, "
            f"before its pair can be written; it is {rate}"
        )
    return Fraction(int(rate.p), int(rate.q))


def _binomial_tail(draws: int, rate: Fraction, least: int) -> Fraction:
    """Return Pr[Bin(draws, rate) ≥ least], the upper end of a ball of some 200 bits."""
    if least <= 0:
        return Fraction(1)
    if least > draws or rate == 0:
        return Fraction(0)
    if rate == 1:
        return Fraction(1)
    with ctx.workprec(_LONG + 60):
        chance = arb(rate.numerator) / rate.denominator
        ball = chance.beta_lower(least, draws - least + 1, regularized=1)
        if not ball.is_finite():
            raise InputError(f"the tail of a binomial of {draws} draws cannot be evaluated")
        return min(Fraction(1), max(middle_of(ball.upper()), Fraction(0)))


def rounded_up(probability: Fraction, bits: int = _BITS) -> sp.Rational:
    """Return the probability, or the next number of so many bits where it has more."""
    top, bottom = probability.numerator, probability.denominator
    if bottom.bit_length() > bits:
        places = bits + bottom.bit_length() - top.bit_length()
        top, bottom = min(-(-(top << places) // bottom), 1 << places), 1 << places
    return sp.Rational(top, bottom)


def binomial_weights(draws: int, rate: sp.Expr) -> list[sp.Expr]:
    """Return C(m, j) q^j (1 − q)^{m−j} for j = 0 … m, exactly.

    >>> binomial_weights(2, sp.Rational(1, 4))
    [9/16, 3/8, 1/16]
    """
    return [math.comb(draws, j) * rate**j * (1 - rate) ** (draws - j) for j in range(draws + 1)]


def too_many(number: str) -> str:
    """Return why so many places of substituted records are refused."""
    return (
        f"a batch holds {number} places of substituted records; at most {MOST_HITS} are accounted "
        "for: lower the rate, the batch or the group"
    )
