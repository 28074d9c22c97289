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
from collections.abc import Sequence
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx

from symdp.certify.moments import whole_ends
from symdp.certify.step import parts_of
from symdp.certify.work import spend
from symdp.emit.arb import constant_ball
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.certify.step import Parts
    from symdp.pair import Pair

_MOST_SUMS = 300_000
_TRIES = 6
_COST = 0.2  # of a sum, in values of a log-density
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
    is_finite = not any(parts.stretches for parts, _ in lists)
    bits = 64 * math.ceil((3.33 * digits + 40) / 64)
    ball = arb(0)
    for _ in range(_TRIES):
        with ctx.workprec(ctx.prec + bits):
            ball = _enumerated(lists, epsilon, bits)
        if is_finite or (ball > 0 and ball.rad() < ball * arb(10) ** -int(digits)):
            break
        bits *= 2  # what is cut off must be small beside δ
    return ball


def _enumerated(lists: Sequence[tuple[Parts, int]], epsilon: arb, bits: int) -> arb:
    laws, missing = [], arb(0)
    for parts, count in lists:
        atoms, beyond = _atoms(parts, bits)
        laws.append((atoms, count))
        missing += count * beyond
    near, far = _halves(laws)
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
    return total + _unsure(near, far, keys, epsilon, unsure) + arb(0).union(missing)


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


def _halves(laws: Sequence[tuple[_Atoms, int]]) -> tuple[_Atoms, _Atoms]:
    """Return the sums of two parts of the steps, about as many of each."""
    shares: tuple[list[int], list[int]] = ([], [])
    sizes = [1, 1]
    for atoms, count in laws:
        smaller = 0 if sizes[0] <= sizes[1] else 1
        for side in (0, 1):
            own = count // 2 + (count % 2 if side == smaller else 0)
            shares[side].append(own)
            sizes[side] *= math.comb(len(atoms) + own - 1, own)
    if sum(sizes) > _MOST_SUMS:
        raise AccuracyError(
            f"half of the steps have {max(sizes)} sums of losses off a lattice: too many to "
            "certify; compose fewer steps"
        )
    spend(_COST * sum(sizes))
    halves: list[_Atoms] = []
    for counts in shares:
        sums: _Atoms = [(arb(1), arb(0))]
        for (atoms, _), own in zip(laws, counts, strict=True):
            found = _own_sums(atoms, own)
            sums = [(p * q, a + b) for (p, a), (q, b) in itertools.product(sums, found)]
        halves.append(sums)
    return halves[0], halves[1]


def _atoms(parts: Parts, bits: int) -> tuple[_Atoms, arb]:
    """Return the atoms of one step, and a bound of the mass of those that are left out."""
    atoms = [
        (constant_ball(point.p, ctx.prec).real, constant_ball(point.loss, ctx.prec).real)
        for point in parts.points
    ]
    beyond = arb(0)
    for part in parts.stretches:
        cut = part.cut(sp.S.Zero, bits)
        beyond += cut.beyond
        first, last = whole_ends(cut)
        for k in range(first, last + 1):
            loss = part.loss(arb(k))
            mass = (part.base(arb(k)) + part.shift * loss).exp()
            if mass.upper() < arb(2) ** -bits / (last - first + 1):
                beyond += mass.upper()
            else:
                atoms.append((mass, loss))
    return atoms, beyond


def _own_sums(atoms: _Atoms, count: int) -> _Atoms:
    """The multinomial law of the sum of `count` draws, atom by atom."""
    partial = [(count, arb(math.factorial(count)), arb(0))]
    for mass, loss in atoms[:-1]:
        shares = [mass**k / math.factorial(k) for k in range(count + 1)]
        partial = [
            (left - k, weight * shares[k], total + k * loss)
            for left, weight, total in partial
            for k in range(left + 1)
        ]
    mass, loss = atoms[-1]
    return [
        (weight * mass**left / math.factorial(left), total + left * loss)
        for left, weight, total in partial
    ]
