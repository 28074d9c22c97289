"""δ(ε) of few steps over finite lists: every sum of losses, in balls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flint import arb, ctx

from symdp.certify.single import excess
from symdp.certify.step import parts_of
from symdp.emit.arb import constant_ball
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.pair import Pair

_MOST_SUMS = 200_000
_Atoms = list[tuple[arb, arb]]


def enumerate_sums(steps: Sequence[tuple[Pair, int]], epsilon: arb) -> arb:
    """Enclose Σ (1 − e^{ε−s})⁺ over all sums s of losses.

    Raises
    ------
    AccuracyError
        If there are too many sums, or a list is not finite.
    """
    lists = [(parts_of(pair), count) for pair, count in steps]
    if any(parts.stretches for parts, _ in lists):
        raise AccuracyError(
            "discrete losses off a lattice, infinitely many of them, cannot be certified beyond "
            "one step"
        )
    sums = math.prod(math.comb(len(p.points) + n - 1, n) for p, n in lists)
    if sums > _MOST_SUMS:
        raise AccuracyError(f"the composition has {sums} sums of losses off a lattice: too many")
    result: _Atoms = [(arb(1), arb(0))]
    for parts, count in lists:
        own = _own_sums([_atom(point) for point in parts.points], count)
        result = [(p * q, a + b) for (p, a), (q, b) in itertools.product(result, own)]
    return sum((mass * excess(loss, epsilon) for mass, loss in result), arb(0))


def _atom(point: object) -> tuple[arb, arb]:
    mass, loss = (constant_ball(getattr(point, name), ctx.prec).real for name in ("p", "loss"))
    return mass, loss


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
