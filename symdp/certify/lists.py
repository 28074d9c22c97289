"""δ(ε) of few steps over discrete losses off any lattice: every sum of losses, in balls.

The steps are dealt out in two halves.  With the sums b of one sorted, and M(x) and N(x) the sums of
p_b and of p_b e^{−b} over b > x, a sum a of the other adds p_a (M(ε − a) − e^{ε−a} N(ε − a)), so
that no sum of all is ever made.  Infinite lists are cut off first, and what that leaves out of P is
counted.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx

from symdp.certify.moments import whole_ends
from symdp.certify.parts import parts_of
from symdp.certify.work import spend
from symdp.emit.arb import constant_ball
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.certify.parts import Parts
    from symdp.model.pair import Pair

_MOST_SUMS = 300_000  # a few seconds in balls
_TRIES = 6  # with more sums kept, as many as were missing
_COST = 0.2  # of a sum, in values of a log-density
_FIRST_BITS, _MORE_BITS = 32, 8  # of what is cut off
_MOST_LOG = 1e9  # stands for −log 0
_Atoms = list[tuple[arb, arb]]  # masses under P, and losses


def enumerate_sums(steps: Sequence[tuple[Pair, int]], epsilon: arb, digits: float) -> arb:
    """Enclose Σ (1 − e^{ε−s})⁺ over all sums s of losses.

    Parameters
    ----------
    digits : float
        The relative accuracy to which infinite lists are followed.

    Raises
    ------
    AccuracyError
        If there are too many sums.
    """
    lists = [(parts_of(pair), count) for pair, count in steps]
    cut = _FIRST_BITS  # a first look at how large δ is, and at how much is rare
    ball = arb(0)
    for _ in range(_TRIES):
        bits = 64 * math.ceil(cut / 64)
        with ctx.workprec(ctx.prec + bits):
            ball, missing = _enumerated(lists, epsilon, bits, arb(2) ** -cut)
        allowed = ball * arb(10) ** -int(digits)
        if ball > 0 and missing < allowed:
            break
        # What is cut off must be small beside δ.
        lacking = float((missing / allowed).log()) / math.log(2) if ball > 0 else cut
        cut += math.ceil(lacking) + _MORE_BITS
    return ball


def _enumerated(
    lists: Sequence[tuple[Parts, int]], epsilon: arb, bits: int, least: arb
) -> tuple[arb, arb]:
    """Return δ(ε) as a ball, and the mass under P that was left out of it."""
    laws, missing = [], arb(0)
    for parts, count in lists:
        atoms, beyond = _atoms(parts, bits)
        laws.append((atoms, count))
        missing += count * beyond
    near, far = _halves(laws, float(least.log()))
    # Sums that hardly ever occur are not made: what they lack counts as if it were all above ε.
    whole = math.prod(
        (sum((m for m, _ in atoms), arb(0)) ** count for atoms, count in laws), start=arb(1)
    )
    found = sum((m for m, _ in near), arb(0)) * sum((m for m, _ in far), arb(0))
    missing += (whole - found).upper().max(arb(0))
    far.sort(key=lambda sum_: -float(sum_[1].mid()))
    keys = [-float(loss.mid()) for _, loss in far]
    masses, weighted = [arb(0)], [arb(0)]
    widest = arb(0)
    for mass, loss in far:
        masses.append(masses[-1] + mass)
        weighted.append(weighted[-1] + mass * (-loss).exp())
        widest = widest.max(loss.rad())
    total, reach = arb(0), arb(0)
    for mass, loss in near:
        rest = epsilon - loss
        first = bisect.bisect_left(keys, -float(rest.mid()))
        total += mass * (masses[first] - rest.exp() * weighted[first])
        reach = reach.max(abs(rest).upper())
        widest = widest.max(rest.rad())
    # Sums that doubles do not tell from ε may be on the wrong side of it.
    unsure = 4 * widest + (1 + reach) * arb(2) ** -50
    total += _unsure(near, far, keys, epsilon, unsure)
    return total + _spread(missing), missing


def _spread(missing: arb) -> arb:
    """Return what a missing mass under P may add, from nothing to all of it."""
    return arb(0).union(missing)


def _unsure(near: _Atoms, far: _Atoms, keys: list[float], epsilon: arb, width: arb) -> arb:
    """Bound what sums closer to ε than a width may have been counted wrongly by."""
    error = arb(0)
    for mass, loss in near:
        rest = epsilon - loss
        middle, room = -float(rest.mid()), float(width.upper())
        for index in range(
            bisect.bisect_left(keys, middle - room), bisect.bisect_right(keys, middle + room)
        ):
            own, other = far[index]
            error += mass * own * abs((rest - other).expm1()).upper()
    return arb(0, error.upper())


def _halves(laws: Sequence[tuple[_Atoms, int]], log_least: float) -> tuple[_Atoms, _Atoms]:
    """Return the sums of two parts of the steps, about as many of each."""
    halves: tuple[_Atoms, _Atoms] = ([(arb(1), arb(0))], [(arb(1), arb(0))])
    for atoms, count in laws:
        smaller = 0 if len(halves[0]) <= len(halves[1]) else 1
        known: dict[int, _Atoms] = {}
        for side in (0, 1):
            own = count // 2 + (count % 2 if side == smaller else 0)
            if own not in known:
                known[own] = _own_sums(atoms, own, log_least)
            found = known[own]
            _check_number(len(halves[side]) * len(found))
            halves[side][:] = [
                (p * q, a + b) for (p, a), (q, b) in itertools.product(halves[side], found)
            ]
    return halves


def _check_number(size: int) -> None:
    if size > _MOST_SUMS:
        raise AccuracyError(
            "half of the steps have too many sums of losses off a lattice to certify; compose "
            "fewer steps, or ask for fewer digits"
        )
    spend(_COST * size)


def _atoms(parts: Parts, bits: int) -> tuple[_Atoms, arb]:
    """Return the atoms of one step, and a bound of the mass of those that are left out."""
    masses: defaultdict[sp.Expr, arb] = defaultdict(lambda: arb(0))
    for point in parts.points:
        masses[point.loss] += constant_ball(point.p, ctx.prec).real
    atoms: _Atoms = []
    beyond = arb(0)
    for part in parts.stretches:
        cut = part.cut(sp.S.Zero, bits)
        if part.is_flat:
            found = part.nodes(cut, arb(0), arb(0), tolerance=arb(2) ** -bits)
            masses[part.piece.loss] += found.total() + arb(0).union(cut.beyond)
            continue
        beyond += cut.beyond
        first, last = whole_ends(cut)
        for k in range(first, last + 1):
            base, loss = part.logarithms(arb(k))
            mass = (base + part.shift * loss).exp()
            if mass.upper() < arb(2) ** -bits / (last - first + 1):
                beyond += mass.upper()
            else:
                atoms.append((mass, loss))
    known = [(mass, constant_ball(loss, ctx.prec).real) for loss, mass in masses.items()]
    return known + atoms, beyond


def _own_sums(atoms: _Atoms, count: int, log_least: float) -> _Atoms:
    """The multinomial law of the sum of `count` draws, but for what is rarer than a least mass."""
    rarest_first = sorted(atoms, key=lambda atom: float(atom[0].mid()))
    rest = sum((mass for mass, _ in atoms), arb(0))
    factorials: dict[int, arb] = {}

    def log_factorial(k: int) -> arb:
        if k not in factorials:
            factorials[k] = arb(k + 1).lgamma()
        return factorials[k]

    # Numbers left, logs of weights, sums, and about the logs of the masses of all such draws.
    partial = [(count, log_factorial(count), arb(0), count * _log(rest))]
    for mass, loss in rarest_first[:-1]:
        share, rest, log_mass = float((mass / rest).mid()), rest - mass, mass.log()
        grown: list[tuple[int, arb, arb, float]] = []
        for left, log_weight, total, log_all in partial:
            for k, log_part in _likely(left, share, log_least - log_all):
                own = log_weight + k * log_mass - log_factorial(k)
                grown.append((left - k, own, total + k * loss, log_all + log_part))
            if len(grown) > _MOST_SUMS:
                _check_number(len(grown))
        partial = grown
        spend(_COST * len(partial))
    mass, loss = rarest_first[-1]
    log_mass = mass.log()
    return [
        ((log_weight + left * log_mass - log_factorial(left)).exp(), total + left * loss)
        for left, log_weight, total, _ in partial
    ]


def _likely(draws: int, share: float, log_least: float) -> list[tuple[int, float]]:
    """Return numbers k of successes and their log-probabilities, where those exceed a least one."""
    if share >= 1.0:
        return [(draws, 0.0)]
    odds = math.log(share) - math.log1p(-share) if share > 0 else -_MOST_LOG

    def log_part(k: int) -> float:
        ways = math.lgamma(draws + 1) - math.lgamma(k + 1) - math.lgamma(draws - k + 1)
        return ways + k * odds + draws * math.log1p(-share)

    found = []
    for places in (range(int(draws * share), -1, -1), range(int(draws * share) + 1, draws + 1)):
        for k in places:
            size = log_part(k)
            if size < log_least:
                break
            found.append((k, size))
    return found


def _log(mass: arb) -> float:
    return float(mass.log().mid()) if mass > 0 else -_MOST_LOG
