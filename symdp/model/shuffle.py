r"""The pair of shuffled answers: n people answer under ε₀-local privacy, their names are dropped.

All use one randomizer R. Since R is ε₀-private, its laws at the two values x, x′ of the person in
question are R(x) = (1 − p) Q₀ + p Q₁ and R(x′) = p Q₀ + (1 − p) Q₁ for some laws Q₀, Q₁ and
p = 1/(1 + e^{ε₀}) [Kairouz, Oh, Viswanath 2015], and R(y) ≥ e^{−ε₀} (R(x) + R(x′))/2
= e^{−ε₀} (Q₀ + Q₁)/2 for every other person's y. So each of the n − 1 others is, with probability
e^{−ε₀} and by a fair coin, a draw from Q₀ or from Q₁: a clone. How many of either kind there are,
the person's own included, is all that a map needs to make the shuffled answers. With C clones, A of
the first kind, and D = 1 with probability 1 − p,

.. math:: P = (A + D,\; C - A + 1 - D), \qquad C \sim \mathrm{Bin}(n - 1, e^{-\varepsilon_0}),
   \quad A \sim \mathrm{Bin}(C, 1/2),

and Q, with D flipped, dominate [Feldman, McMillan, Talwar 2021]. Some randomizers leave more room
for clones; in randomized response of one bit it is 2p of the others that are clones, not e^{−ε₀}.

The ratio P/Q of an outcome (a, b) is ((1 − p)a + pb)/(pa + (1 − p)b), so that the best test at e^ε
is a ≥ t, and with y = e^ε

.. math:: \delta_C(\varepsilon) = (1 - p - y p)\, \Pr[A = t - 1] - (y - 1)\, \Pr[A \ge t].

Fewer clones are never better, and a profile lies below its chords: both only enlarge what is
tabulated here, so that a table of δ at some ε is the profile of a pair that dominates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, pairwise

import sympy as sp
from flint import arb, ctx, fmpq

from symdp.emit.exact import fraction_ball
from symdp.errors import InputError
from symdp.model.curve_tables import exponential, profile_pair, upper_end
from symdp.model.mechanism import Mechanism
from symdp.model.sampling import Number, exact
from symdp.tolerances import LONG_BITS

__all__ = ["from_shuffled"]

LARGEST_EPSILON = 20  # fewer than one in 10⁸ others is a clone: no crowd hides anybody
MOST_PEOPLE = 10**8  # the binomial sums are written out, a term for each likely number
_NODES = 96  # of the profile; the chords between them cost a relative h²/6 of the loss's variance
_REACH = 12.0  # standard deviations of the loss that they cover
_GROUPS = 48  # of numbers of clones, each counted as its least
_SPREAD = 9.0  # standard deviations of that number that are told apart


def from_shuffled(epsilon_0: Number, people: int, clones: Number | None = None) -> Mechanism:
    """Return a pair that dominates the shuffled answers of one ε₀-private randomizer."""
    size = exact(epsilon_0, "epsilon_0")
    if not 0 < size <= LARGEST_EPSILON:
        raise InputError(f"epsilon_0 must lie above 0 and up to {LARGEST_EPSILON}, not {size}")
    is_count = isinstance(people, int) and not isinstance(people, bool)
    if not is_count or not 2 <= people <= MOST_PEOPLE:
        raise InputError(
            f"people must be a whole number from 2 to {MOST_PEOPLE}, not {people!r:.40}"
        )
    others = people - 1
    with ctx.workprec(LONG_BITS):
        odds = _ball_of_constant(size).exp()
        rate = 1 / odds
        if clones is not None:
            rate = _rate(exact(clones, "clones"), odds)
        mean = float(rate) * others
        ratios = [exponential(epsilon) for epsilon in _epsilons(size, mean)]
        profile = [arb(0) for _ in ratios]
        for chance, least in _groups(others, rate):
            for index, delta in enumerate(_profile(least, odds, ratios)):
                profile[index] += chance * delta
        corners = []
        for ratio, delta in zip(ratios, profile, strict=True):
            corners.append((ratio, min(upper_end(delta), Fraction(1))))
    corners.append((exponential(size), Fraction(0)))
    mirrored = []
    for ratio, upper_delta in corners[1:]:
        mirrored.append((1 / ratio, 1 - (1 - upper_delta) / ratio))
    return profile_pair([*corners, *mirrored], "shuffled")


def _rate(value: sp.Expr, odds: arb) -> arb:
    most = 2 / (1 + odds)
    rate = _ball_of_constant(value)
    if not (rate > 0 and (rate <= most or rate.overlaps(most))):
        raise InputError(f"clones must lie above 0 and up to 2/(1 + e^ε₀) = {float(most):.6g}")
    return rate


def _epsilons(size: sp.Expr, mean: float) -> list[sp.Expr]:
    """Return 0 and further ε below ε₀, evenly over some standard deviations of the loss."""
    largest_loss = float(size)
    odds = math.exp(largest_loss)
    deviation = 2.0 * (odds - 1.0) / (odds + 1.0) / math.sqrt(mean + 1.0)
    wanted = math.ceil(_NODES * largest_loss / (_REACH * deviation))
    parts = max(_NODES, wanted)
    return [size * sp.Rational(index, parts) for index in range(_NODES)]


def _groups(others: int, rate: arb) -> Iterator[tuple[arb, int]]:
    """Yield the chance of each group of numbers of clones, and the least number in it."""
    mean = others * float(rate)
    reach = _SPREAD * math.sqrt(mean) + _SPREAD
    low = max(0, math.floor(mean - reach))
    high = min(others, math.ceil(mean + reach))
    width = math.ceil((high - low) / _GROUPS) or 1
    edges = sorted({0, *range(low, high + 1, width)})
    tails = [_tail(others, rate, edge) for edge in edges]
    tails.append(arb(0))
    for edge, (this, further) in zip(edges, pairwise(tails), strict=True):
        yield this - further, edge


def _tail(draws: int, rate: arb, least: int) -> arb:
    """Return Pr[Bin(draws, rate) ≥ least]."""
    if least == 0:
        return arb(1)
    return rate.beta_lower(least, draws - least + 1, regularized=1)


def _profile(clones: int, odds: arb, ratios: list[Fraction]) -> list[arb]:
    """Return a ball above δ at each e^ε, for a number of clones."""
    balls = [fraction_ball(y) for y in ratios]
    # Any threshold t gives no more than δ; where rounding leaves two, the larger is δ.
    thresholds = [_thresholds(clones, odds, y) for y in balls]
    sums = _upper_sums(clones, set(chain.from_iterable(thresholds)))
    share = 1 / (1 + odds)
    profile = []
    for y, between in zip(balls, thresholds, strict=True):
        weight = 1 - share - y * share
        lower, upper = (weight * sums[t][0] - (y - 1) * sums[t][1] for t in between)
        profile.append(lower.max(upper))
    return profile


def _thresholds(clones: int, odds: arb, y: arb) -> tuple[int, int]:
    """Return the least and the largest integer that may follow where the odds are e^ε."""
    middle = (clones + 1) * (y * odds - 1) / ((odds - 1) * (y + 1))
    return _next_whole(middle.lower()), _next_whole(middle.upper())


def _next_whole(value: arb) -> int:
    whole = value.floor().unique_fmpz()
    assert whole is not None  # the end of a ball is a number, not a ball
    return int(whole) + 1


def _upper_sums(clones: int, thresholds: set[int]) -> dict[int, tuple[arb, arb]]:
    """Return Pr[A = t − 1] and Pr[A ≥ t] of A = Bin(clones, 1/2) at some t above its mean."""
    possible = sorted((t for t in thresholds if t <= clones + 1), reverse=True)
    upper = {t: (arb(0), arb(0)) for t in thresholds if t > clones + 1}
    if not possible:
        return upper
    largest = possible[0]
    log_ways = arb(clones + 1).lgamma() - arb(largest).lgamma()
    log_ways = log_ways - arb(clones - largest + 2).lgamma()
    log_mass = log_ways - clones * arb(2).log()
    mass = log_mass.exp()
    # Beyond it the masses fall at least like a geometric series.
    step = arb(clones - largest + 1) / largest
    above = arb(1).union(arb(0))
    if step < 1:
        next_mass = mass * step
        above = next_mass.union(next_mass / (1 - step))
    for t in range(largest, possible[-1] - 1, -1):
        if t in thresholds:
            upper[t] = (mass, above)
        above = above + mass
        mass = mass * (t - 1) / (clones - t + 2)
    return upper


def _ball_of_constant(value: sp.Expr) -> arb:
    if value.is_Rational:
        return arb(fmpq(int(value.p), int(value.q)))
    return arb(str(value.evalf(60)), "1e-55")
