r"""Dominating pairs of sampling schemes, for any noise density f and each neighbouring relation.

D is what adding or removing one record moves the output by, q the rate. A pair dominates where no
two neighbouring data sets, and no choice of what the other records contribute, have a larger
hockey-stick divergence at any order; then it composes, adaptively too [Zhu, Dong, Wang 2022].

*Adding or removing a record* (with it, P; without it, Q):

- no sampling: (f(x − D), f), which the author of the mechanism asserts;
- Poisson: ((1 − q)f + q f(x − D), f) [SPA Lemma 3], [IND Lemma 8];
- Poisson, a group of k: binomial weights on f(x − jD), against f. Proved for log-concave f: at size
  u = Q(R) a test R has power at most G_j(u) against a shift of jD at most, and one half-line has
  all these powers together;
- truncated Poisson, at most B of N records: whether the other records fill the batch is
  published. If not, the Poisson pair; if so (probability p) the record displaces another, a shift
  of 2D at most and at the rate q′ = B·Pr[Bin(N, q) > B]/(N p).

- Poisson, the average over the batch released in place of the sum: `symdp.model.average`.

- random allocation, one of t steps: `symdp.model.allocation`.

*Substituting a record*, a symmetric relation:

- no sampling: (f(x − 2D), f) for symmetric f;
- Poisson: ((1 − q)f + q f(x − D), (1 − q)f + q f(x + D)) for symmetric log-concave f, by the same
  half-lines; otherwise the pair of a fixed batch, which is no smaller;
- a fixed batch, in which a substituted record has j places with probability w_j; given that it
  has any, q = Σ_{j ≥ 1} w_j, their number is published. A hit pair (f(x − 2jD), f) then becomes
  the symmetric pair

  .. math::

     P = (1 - q) f + q\, [f(x - 2jD)\, 1_{x > jD} + f(x)\, 1_{x < -jD}], \qquad P(x) = Q(-x),

  whose losses above 0 are those of ((1 − q)f + q f(x − 2jD), f), whose losses below 0 are their
  mirror image, and whose flat middle is an atom at 0. Its profile is that of Balle, Barthe and
  Gaboardi (2018, Theorems 8 to 10): δ′(log(1 + q(e^ε − 1))) = q Σ_j w_j δ_j(ε), δ_j the profile of
  (f(x − 2jD), f). Proofs stand in the derivation page on fixed batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import arb, ctx

from symdp.above import above
from symdp.emit.exact import middle_of
from symdp.errors import InputError
from symdp.model import tidy
from symdp.model.allocation import allocated_pair
from symdp.model.average import AVERAGE, sizes
from symdp.model.family import Family
from symdp.model.local import Local
from symdp.model.pair import Pair, Support, mass_of
from symdp.model.relation import (
    ADD_REMOVE,
    SUBSTITUTION,
    ZERO_OUT,
    usual_relation,
)
from symdp.model.sampling import Laws, MassNoise, Noise, Radial, RenyiCurve, Source
from symdp.model.schemes import ALLOCATION, Sampling

if TYPE_CHECKING:
    from symdp.model.sampling import MechanismRecord

_Weights = dict[int, tuple[sp.Expr, sp.Expr]]  # of numbers of shifts, under P and under Q
_ONE = sp.S.One
_ZERO = sp.S.Zero
_MOST_HITS = 48  # labels of a public choice: each is derived and compiled on its own
_FAR = Fraction(1, 10**15)  # less likely numbers of hits are charged an infinite loss
_BITS = 70  # probabilities of hits are rounded up to so many, so that formulas stay short
_LONG = 200  # and those that cannot be rounded to a safe side
_NOTHING = Fraction(1, 10**60)
_UNLIKELY = Fraction(
    1, 10**40
)  # numbers of hits of a large group that are lost, or counted as more
_SHORT = 11  # dimensions: beyond, a Bessel function is shorter by its name than as a finite sum
_MOST_LIKELY = 160  # numbers of hits of a large group, each with a shift of its own


def dominating_pair(
    source: Source,
    variable: sp.Symbol,
    support: Support,
    sampling: Sampling | None,
    relation: str,
    *,
    lowers: bool = False,
) -> Pair:
    """Return the pair (P, Q) that dominates under a relation, with the record removed.

    `lowers`: of a record that lowers the output; of one that raises it otherwise.
    """
    if sampling is not None and sampling.scheme == ALLOCATION:
        unsampled = dominating_pair(source, variable, support, None, relation, lowers=lowers)
        return allocated_pair(unsampled, sampling)
    if isinstance(source, RenyiCurve):
        raise InputError(
            "it is known by its Rényi curve alone, and has no pair of laws; ask for ε or δ by the "
            "method renyi, or for the trade-off function"
        )
    if isinstance(source, Local):
        raise InputError(
            "it is a local randomizer, of which two inputs make a pair of laws; ask for ε, δ, a "
            "curve or a calibration; `symdp derive` shows what its laws have in common"
        )
    if isinstance(source, Family):
        raise InputError(
            "it is known by its log-partition function, and has no pair of densities on a line; "
            "ask for ε, δ, a curve, a calibration or the trade-off function"
        )
    if isinstance(source, Radial):
        size = source.sensitivity * (2 if relation == SUBSTITUTION else 1)
        line = _on_a_line(source.on(size), variable)
        if line is None:
            raise InputError(
                "its outputs are vectors, and of this density no pair on a line is known, which a "
                "proof needs, as it is where -log g is r or r**2 times a constant; ask for ε, δ, a "
                "curve, a calibration or the trade-off function; where -log g rises by at most c "
                "over the sensitivity, randomized_response at epsilon_0 = c proves an upper end"
            )
        return dominating_pair(*line, sampling, ADD_REMOVE)
    if isinstance(source, MassNoise) and relation == SUBSTITUTION:
        source, support = source.moved(2 * source.sensitivity)
    if isinstance(source, Laws):
        return _of_laws(source, variable, support, sampling)
    noise = _Shifts(source, variable, support, -1 if lowers else 1)
    if relation == SUBSTITUTION:
        return _substituted(noise, sampling)
    if sampling is None:
        return noise.mixture({1: (_ONE, _ZERO), 0: (_ZERO, _ONE)})
    if sampling.released == AVERAGE and sampling.rate != 0:
        return _averaged(noise, sampling)
    if sampling.scheme == "truncated_poisson":
        return _truncated(noise, sampling, keeps_its_place=relation == ZERO_OUT)
    if sampling.group > 1:
        noise.require_log_concave(f"a group of {sampling.group} records")
        if sampling.group > _MOST_HITS:
            return _large_group(noise, sampling)
    weights = _binomial_weights(sampling.group, sampling.rate)
    without_noise = (_ONE, *(_ZERO for _ in weights[1:]))
    return noise.mixture(dict(enumerate(zip(weights, without_noise, strict=True))))


def _on_a_line(source: Radial, r: sp.Symbol) -> tuple[Noise | Laws, sp.Symbol, Support] | None:
    r"""Return noise, or a pair, on a line with the same law of the loss, None where none is known.

    Normal noise is as wide in every direction. Of e^{−br}, with a = bD/2, the loss is 2aη for
    η = (‖x‖ − ‖x − s‖)/D, ‖s‖ = D; in prolate coordinates the density of η is proportional to

    .. math:: (1 - η^2)^{(d-3)/2} ((1 - η^2) K_{d/2-1}(a) + \frac{d-1}{a} K_{d/2}(a)) e^{\pm aη}.
    """
    size = source.sensitivity
    length = sp.Symbol(r.name, positive=True)
    g = source.density.xreplace({r: length})
    slope = tidy.cancel(-sp.diff(g, length) / g)
    narrow = tidy.cancel(slope / length)
    x = _free_symbol(source.density.free_symbols - {r})
    line = Support("interval", -sp.oo, sp.oo)
    if source.dimension == 1:
        density = source.density.xreplace({r: sp.Abs(x)})
        return Noise(density / mass_of(density, x, line), size), x, line
    if length not in narrow.free_symbols and narrow.is_positive:
        normal = sp.sqrt(narrow / (2 * sp.pi)) * sp.exp(-narrow * x**2 / 2)
        return Noise(normal, size), x, line
    if length not in slope.free_symbols and slope.is_positive:
        half_shift = slope * size / 2
        return _of_exponential_length(source.dimension, half_shift, x)
    return None


def _free_symbol(symbols: set[sp.Basic]) -> sp.Symbol:
    """Return a real variable whose name is none of these symbols'."""
    names = {symbol.name for symbol in symbols}
    free = next(name for name in ("x", "y", "u", "x_1") if name not in names)
    return sp.Symbol(free, real=True)


def _of_exponential_length(
    d: sp.Integer, a: sp.Expr, x: sp.Symbol
) -> tuple[Laws, sp.Symbol, Support]:
    """Return the two laws of η, in x, where the noise has the density e^{−2ar/D}."""
    low = d / 2 - 1
    high = d / 2
    common = _ONE
    if d.is_odd and d <= _SHORT:  # they are finite sums, times what they share
        common = sp.sqrt(sp.pi / (2 * a)) * sp.exp(-a)
        bessel_low = _half_whole(low, a)
        bessel_high = _half_whole(high, a)
    else:
        bessel_low = sp.besselk(low, a)
        bessel_high = sp.besselk(high, a)
    inside = 1 - x**2
    second = sp.expand((d - 1) / a * bessel_high)
    body = inside * bessel_low + second
    body *= inside ** ((d - 3) / 2)
    front = sp.powsimp(a ** (d / 2 + 1) * common)
    divisor = (d - 1) * sp.sqrt(sp.pi) * 2**low
    body *= front / divisor / sp.gamma((d - 1) / 2)
    p = body * sp.exp(a * x)
    q = body * sp.exp(-a * x)
    return Laws(p, q), x, Support("interval", sp.Integer(-1), _ONE)


def is_on_vectors(mechanism: MechanismRecord) -> bool:
    """Whether noise is added to vectors, and no pair on a line has the same law of the loss."""
    source = mechanism.source
    return isinstance(source, Radial) and _on_a_line(source, mechanism.variable) is None


def _half_whole(order: sp.Expr, a: sp.Expr) -> sp.Expr:
    """Return the factor of K_order(a), an order half a whole number, that is a finite sum."""
    n = int(order - sp.Rational(1, 2))
    return sp.Add(*(sp.ff(n + k, 2 * k) / sp.factorial(k) / (2 * a) ** k for k in range(n + 1)))


def is_attained(mechanism: MechanismRecord) -> bool:
    """Whether data sets are known that are as far apart as the pair, which is a bound otherwise."""
    sampling = mechanism.sampling
    source = mechanism.source
    if isinstance(source, RenyiCurve) or (isinstance(source, Laws) and source.is_bound):
        return False
    if isinstance(source, Local):
        return not source.is_shuffled
    if sampling is not None and sampling.scheme == ALLOCATION:
        return sampling.participations == 1 and not is_envelope(mechanism)
    if sampling is None or isinstance(source, Laws | Radial | Family):
        return True
    if sampling.scheme != "poisson" or sampling.released == AVERAGE:
        return False
    if sampling.group > _MOST_HITS:
        return False
    if (mechanism.relation or usual_relation(mechanism)) != SUBSTITUTION:
        return True
    return _Shifts(source, mechanism.variable, mechanism.support).turns_both_ways


def is_envelope(mechanism: MechanismRecord) -> bool:
    """Whether the pair stands for many, of which each attains its profile at some ε alone."""
    return isinstance(mechanism.source, Laws) and mechanism.source.is_envelope


def _of_laws(
    source: Laws, variable: sp.Symbol, support: Support, sampling: Sampling | None
) -> Pair:
    rate = _ONE if sampling is None else sampling.rate
    atoms = tuple((value, masses[::-1]) for value, masses in source.atoms)
    laws = (source.Q, source.P), (1 - rate, rate), (_ONE, _ZERO)
    return Pair(variable, support, *laws, atoms=atoms)


class _Shifts:
    """A noise density f around its centre, and mixtures of its shifts by multiples of D/2."""

    def __init__(self, noise: Noise, variable: sp.Symbol, support: Support, sign: int = 1) -> None:
        self.noise = noise
        self.variable = variable
        self.support = support
        self.sign = sign

    @property
    def shape(self) -> Any:
        """What rules prove of the density, a `symdp.density.shapes.Shape`."""
        return above("shapes").shape_of(self.noise.density, self.variable, self.support)

    @property
    def turns_both_ways(self) -> bool:
        """Whether one record may go from +D to −D, and half-lines are the best tests of all."""
        twice = sp.expand(self.noise.substitution_sensitivity - 2 * self.noise.sensitivity)
        return twice == 0 and bool(self.shape.log_concave)

    @property
    def largest_shift(self) -> sp.Expr:
        """What removing a record or changing its value moves the output by."""
        size = self.noise.sensitivity
        twice = self.noise.substitution_sensitivity
        if (twice - size).is_nonnegative:
            return twice
        return sp.Max(twice, size)

    def require_log_concave(self, what: str) -> None:
        if not self.shape.is_log_concave:
            raise InputError(
                f"{what}: the mixture of several shifts is proved to dominate for a density whose "
                "logarithm is concave, which was not shown of this one; write its pair under [pair]"
            )

    def require_symmetric(self, what: str) -> None:
        shape = self.shape
        if shape.centre is None or not (shape.falls or self.noise.falls):
            lacking = "symmetric about a centre"
            remedy = "write the pair itself under [pair]"
            if shape.centre is not None:
                lacking = "falling away from it"
                remedy = f"say modes = 1 if you know that it falls, or {remedy}"
            raise InputError(
                f"{what} moves the output either way, and its pair is proved for a density that is "
                "symmetric and falls away from its centre; this one was not shown to be "
                f"{lacking}; {remedy}"
            )

    def mixture(self, weights: _Weights) -> Pair:
        """Return the mixtures Σ p_j f(x − jD) and Σ q_j f(x − jD), j = 0 first."""
        multiples = sorted(weights, key=lambda j: (j != 0, j < 0, abs(j)))
        size = self.sign * self.noise.sensitivity
        support, x = self._between(min(multiples) * size, max(multiples) * size)
        components = []
        p_weights = []
        q_weights = []
        for j in multiples:
            (p_weight, q_weight) = weights[j]
            components.append(self._shifted(j * size, support, x))
            p_weights.append(p_weight)
            q_weights.append(q_weight)
        return Pair(x, support, tuple(components), tuple(p_weights), tuple(q_weights))

    def hit_or_miss(self, rate: sp.Expr, shift: sp.Expr, ratio: sp.Expr = _ONE) -> Pair:
        """Return ((1 − q)f + q·ratio·f(x − shift), f)."""
        signed_shift = shift * self.sign
        support, x = self._between(_ZERO, signed_shift)
        f = self._shifted(_ZERO, support, x)
        shifted = self._shifted(signed_shift, support, x)
        return Pair(x, support, (f, shifted), (1 - rate, rate * ratio), (_ONE, _ZERO))

    def symmetric(self, rate: sp.Expr, shift: sp.Expr) -> Pair:
        """Return the symmetric pair whose losses above 0 are those of `hit_or_miss`."""
        support, x = self._widened(-shift, shift)
        centre = self.shape.centre
        f = self._shifted(_ZERO, support, x)
        up = self._shifted(shift, support, x)
        down = self._shifted(-shift, support, x)
        # Where the two are equal counts once: an integer there has mass.
        right = x >= centre + shift / 2
        left = x < centre - shift / 2
        p = sp.Piecewise((up, right), (f, left), (0, True))
        q = sp.Piecewise((f, right), (down, left), (0, True))
        not_drawn = 1 - rate
        return Pair(x, support, (f, p, q), (not_drawn, rate, _ZERO), (not_drawn, _ZERO, rate))

    def no_loss(self) -> Pair:
        """Return (f, f)."""
        return Pair(self.variable, self.support, (self.noise.density,), (_ONE,), (_ONE,))

    def infinite_loss(self, of_p: sp.Expr = _ONE, of_q: sp.Expr = _ONE) -> Pair:
        """Return two laws, of these masses, that have no outcome in common."""
        f = self.noise.density
        x = self.variable
        centre = self.shape.centre
        at = x
        if x.is_integer:
            at = sp.Symbol(x.name, integer=True)
        if centre is None:
            return self._beside_each_other(of_p, of_q, at)
        twice = 2 * _ONE
        parts = [(f, at > centre, twice, _ZERO), (f, at < centre, _ZERO, twice)]
        if x.is_integer:
            # The mass at the centre is no one's half: below it for Q, so that they do not meet.
            following = f.xreplace({x: x + 1})
            parts.append((f, sp.Eq(at, centre), _ONE, _ZERO))
            parts.append((following, sp.Eq(at, centre - 1), _ZERO, _ONE))
        components = []
        p_weights = []
        q_weights = []
        for density, where, p_weight, q_weight in parts:
            components.append(sp.Piecewise((density.xreplace({x: at}), where), (0, True)))
            p_weights.append(of_p * p_weight)
            q_weights.append(of_q * q_weight)
        return Pair(at, self.support, tuple(components), tuple(p_weights), tuple(q_weights))

    def _beside_each_other(self, of_p: sp.Expr, of_q: sp.Expr, at: sp.Symbol) -> Pair:
        """Return what `infinite_loss` does, as two neighbouring cells of one width."""
        lower = self.support.lower
        upper = self.support.upper
        width = sp.Min(upper - lower, 2) / 2
        cut = _ZERO
        if lower.is_finite:
            cut = lower + width
        elif upper.is_finite:
            cut = upper - width
        above_cut = (at >= cut) & (at < cut + width)
        below_cut = (at >= cut - width) & (at < cut)
        cell_of_p = sp.Piecewise((1 / width, above_cut), (0, True))
        cell_of_q = sp.Piecewise((1 / width, below_cut), (0, True))
        return Pair(at, self.support, (cell_of_p, cell_of_q), (of_p, _ZERO), (_ZERO, of_q))

    def _shifted(self, shift: sp.Expr, support: Support, x: sp.Symbol) -> sp.Expr:
        """Return f(x − shift) on a wider support, 0 where it does not live."""
        density = self.noise.density.xreplace({self.variable: x - shift})
        lower, upper = self.support.lower + shift, self.support.upper + shift
        inside = [x >= lower] if lower != support.lower else []
        inside += [x <= upper] if upper != support.upper else []
        if inside:
            return sp.Piecewise((density, sp.And(*inside)), (0, True))
        return density

    def _between(self, first: sp.Expr, last: sp.Expr) -> tuple[Support, sp.Symbol]:
        """Return what `_widened` does for the first and the last of shifts of this sign."""
        return self._widened(*((first, last) if self.sign > 0 else (last, first)))

    def _widened(self, least: sp.Expr, most: sp.Expr) -> tuple[Support, sp.Symbol]:
        """Return where f and its shifts between two live, and the variable that runs there."""
        support = self.support
        x = self.variable
        if support.kind == "interval":
            return Support("interval", support.lower + least, support.upper + most), x
        if support.kind == "naturals" and least != 0:
            return Support("integers", -sp.oo, sp.oo), sp.Symbol(x.name, integer=True)
        return support, x


def _large_group(noise: _Shifts, sampling: Sampling) -> Pair:
    """Return the mixture of the likely numbers of hits; what is less likely is lost, or made more.

    By joint convexity δ is at most that of the likely part, times its probability, and the rest.
    """
    least, tails = _likely_hits(sampling)
    unlikely = tails[-1]
    kept = 1 - unlikely
    weights: dict[int, tuple[sp.Expr, sp.Expr]] = {}
    for j, (this, further) in enumerate(pairwise(tails), start=least):
        mass = this - further
        weights[j] = (sp.Rational(mass / kept), _ZERO)
    (at_rest, _) = weights.get(0, (_ZERO, _ZERO))
    weights[0] = (at_rest, _ONE)
    likely = noise.mixture(weights)
    lost = sp.Rational(unlikely)
    if lost == 0:
        return likely
    return Pair.choice([(1 - lost, likely), (lost, noise.infinite_loss())])


def _substituted(noise: _Shifts, sampling: Sampling | None) -> Pair:
    noise.require_symmetric("substituting a record")
    shift = noise.noise.substitution_sensitivity
    if sampling is None:
        plain = noise.hit_or_miss(_ONE, shift)
        return Pair(plain.variable, plain.support, plain.components, (_ZERO, _ONE), (_ONE, _ZERO))
    if sampling.scheme == "poisson":
        if noise.turns_both_ways:
            rate = sampling.rate
            return noise.mixture({0: (1 - rate, 1 - rate), 1: (rate, _ZERO), -1: (_ZERO, rate)})
        return noise.symmetric(sampling.rate, noise.largest_shift)
    if sampling.scheme == "without_replacement" and sampling.group == 1:
        return noise.symmetric(sampling.rate, shift)
    return _drawn_repeatedly(noise, hits(sampling), shift)


def _drawn_repeatedly(noise: _Shifts, tails: Sequence[Fraction], shift: sp.Expr) -> Pair:
    """Return the pair of a batch that holds j substituted places or more with probability tails[j].

    tails[1] is the rate; given a hit, the number of places is published.
    """
    rate = _rounded_up(tails[1])
    if rate == 0:
        return noise.symmetric(_ZERO, shift)
    likely = [tail for tail in tails[1:] if tail > _FAR]
    if len(likely) > _MOST_HITS:
        raise InputError(_too_many(f"up to {len(likely)} with probability 1e-15"))
    # Moving probability to more hits only enlarges the loss, so that tails are rounded up.
    above = [_ONE]
    for tail in tails[2 : len(likely) + 2]:
        above.append(_rounded_up(tail / tails[1]))
    alternatives = []
    for j, (this, further) in enumerate(pairwise(above), start=1):
        if this != further:
            alternatives.append((this - further, noise.symmetric(rate, j * shift)))
    beyond = above[-1]
    if beyond != 0:
        alternatives.append((beyond * (1 - rate), noise.no_loss()))
        alternatives.append((beyond * rate, noise.infinite_loss()))
    return Pair.choice(alternatives)


def _truncated(noise: _Shifts, sampling: Sampling, *, keeps_its_place: bool) -> Pair:
    """Return the public choice: the other records leave room in the batch, or they fill it."""
    full, displaced = displacement(sampling)
    room = noise.hit_or_miss(sampling.rate, noise.noise.sensitivity)
    if full == 0:
        return room
    noise.require_symmetric("displacing a record of a truncated batch")
    if keeps_its_place:
        # Neither world is the one without it: its losses below 0 are no longer those of a miss.
        moved = noise.symmetric(displaced, noise.largest_shift)
    else:
        moved = noise.hit_or_miss(displaced, noise.noise.substitution_sensitivity)
    if full == 1:
        return moved
    return Pair.choice([(1 - full, room), (full, moved)])


def _averaged(noise: _Shifts, sampling: Sampling) -> Pair:
    """Return the pair of a batch whose size shows: given that, one record is exchanged."""
    noise.require_symmetric("exchanging a record of a batch for another")
    assert sampling.records is not None
    q = _rational_rate(sampling)
    batch = sizes(sampling.records, _rational_rate(sampling))
    shift = noise.noise.substitution_sensitivity
    rate = sp.Rational(q)
    alternatives = [
        (sp.Rational(mass), noise.hit_or_miss(rate, shift, sp.Rational(ratio)))
        for mass, ratio in zip(batch.masses, batch.ratios, strict=True)
    ]
    lost = noise.infinite_loss(sp.Rational(batch.lost_with), sp.Rational(batch.lost_without))
    return Pair.choice([*alternatives, (_ONE, lost)])


def displacement(sampling: Sampling) -> tuple[sp.Rational, sp.Rational]:
    """Return p, the chance that the other records fill a truncated batch, and q′ given that.

    Both to 60 digits.

    >>> [round(float(part), 6) for part in displacement(
    ...     Sampling("truncated_poisson", sp.Rational(1, 10), batch=2, records=10))]
    [0.225159, 0.062348]
    """
    assert sampling.batch is not None
    assert sampling.records is not None
    q = _rational_rate(sampling)
    size = sampling.batch
    records = sampling.records
    full = _binomial_tail(records - 1, q, size)
    if full < _NOTHING:
        return _ZERO, _ZERO
    rate = min(Fraction(1), size * _binomial_tail(records, q, size + 1) / (records * full))
    return _rounded_up(full, _LONG), _rounded_up(rate, _LONG)


def hits(sampling: Sampling) -> list[Fraction]:
    """Return Pr[at least j places of a fixed batch hold a substituted record], j = 0, 1, ...

    Draws with replacement hit a group of k records with probability kq each; without replacement
    the number of places is hypergeometric.

    >>> [float(tail) for tail in hits(Sampling("with_replacement", sp.Rational(1, 4), batch=2))]
    [1.0, 0.4375, 0.0625, 0.0]
    """
    rate = _rational_rate(sampling)
    if sampling.scheme == "with_replacement":
        draws = sampling.batch or 1
        rate = min(Fraction(1), sampling.group * rate)
        if draws * rate > _MOST_HITS:
            raise InputError(_too_many(f"{float(draws * rate):.4g} on average"))
        tails = [Fraction(1)]
        while tails[-1] > _FAR and len(tails) <= 2 * _MOST_HITS:
            tails.append(_binomial_tail(draws, rate, len(tails)))
        return tails
    records = sampling.records or 1
    group = sampling.group
    size = rate * records
    if size.denominator != 1:
        raise InputError(
            f"{float(size):.6g} of {records} records is no batch: rate times records must be whole"
        )
    places = [_hypergeometric(records, group, int(size), j) for j in range(group + 1)]
    return [*(sum(places[j:], Fraction(0)) for j in range(group + 1)), Fraction(0)]


def _likely_hits(sampling: Sampling) -> tuple[int, list[Fraction]]:
    """Return j₀ and the tails Pr[Bin(k, q) ≥ j], j = j₀, j₀ + 1, …, the first of them 1.

    Fewer hits than j₀ are counted as j₀, which only enlarges the loss; the last tail is below
    `_UNLIKELY`.
    """
    rate = _rational_rate(sampling)
    group = sampling.group
    least = 0
    while least < group and 1 - _binomial_tail(group, rate, least + 1) < _UNLIKELY:
        least += 1
    tails = [Fraction(1)]
    while tails[-1] > _UNLIKELY:
        tail = _binomial_tail(group, rate, least + len(tails))
        tails.append(Fraction(_rounded_up(tail, _LONG)))
        if len(tails) > _MOST_LIKELY:
            raise InputError(_too_many(f"more than {_MOST_LIKELY} likely numbers"))
    return least, tails


def _hypergeometric(records: int, group: int, size: int, j: int) -> Fraction:
    """Return the chance that a batch of `size` out of `records` holds j of a group."""
    inside = _falling_product(size, j)
    outside = _falling_product(records - size, group - j)
    ways = math.comb(group, j) * inside * outside
    return Fraction(max(ways, 0), _falling_product(records, group))


def _falling_product(start: int, factors: int) -> int:
    """Return start (start − 1) … of so many factors."""
    return math.prod(start - i for i in range(factors))


def _rational_rate(sampling: Sampling) -> Fraction:
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


def _rounded_up(probability: Fraction, bits: int = _BITS) -> sp.Rational:
    """Return the probability, or the next number of so many bits where it has more."""
    top = probability.numerator
    bottom = probability.denominator
    if bottom.bit_length() > bits:
        places = bits + bottom.bit_length() - top.bit_length()
        top = min(-(-(top << places) // bottom), 1 << places)
        bottom = 1 << places
    return sp.Rational(top, bottom)


def _binomial_weights(draws: int, rate: sp.Expr) -> list[sp.Expr]:
    """Return C(m, j) q^j (1 − q)^{m−j} for j = 0 … m, exactly."""
    return [math.comb(draws, j) * rate**j * (1 - rate) ** (draws - j) for j in range(draws + 1)]


def _too_many(number: str) -> str:
    """Return why so many places of substituted records are refused."""
    return (
        f"a batch holds {number} places of substituted records; at most {_MOST_HITS} are accounted "
        "for: lower the rate, the batch or the group"
    )
