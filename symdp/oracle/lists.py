"""δ(ε) of few steps over lists of atoms: every sum of losses is enumerated, in two halves."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence

from flint import arb

from symdp.errors import AccuracyError
from symdp.oracle.saddle import Steps

_MOST_SUMS = 150_000
_List = list[tuple[arb, arb]]


def can_enumerate(sizes: Sequence[tuple[int, int]]) -> bool:
    """Whether lists of these (atoms, count) split into two halves small enough."""
    return all(_sums(half) <= _MOST_SUMS for half in _halves(sizes))


def enumerate_sums(steps: Steps, epsilon: arb, tilt: float, digits: float) -> arb:
    """Return Σ (1 − e^{ε−s})⁺ over all sums s of losses, with their exact probabilities.

    For a negative tilt the complement Σ min(1, e^{ε−s}) is returned.  Atoms whose share at the
    tilt is below the digits asked are left out.

    Raises
    ------
    AccuracyError
        If there are too many sums.
    """
    lists = []
    for law, count in steps:
        nodes = law.nodes(arb(tilt), digits + 4, arb(0), 0)
        lists.append(
            (
                [
                    ((nodes.height - tilt * loss).exp() * weight, loss)
                    for weight, loss in zip(nodes.weights, nodes.losses, strict=True)
                ],
                count,
            )
        )
    if not can_enumerate([(len(atoms), count) for atoms, count in lists]):
        raise AccuracyError("a composition of lists has too many sums; ask for fewer digits")
    first, second = ([], [])
    for atoms, count in lists:
        first.append((atoms, (count + 1) // 2))
        second.append((atoms, count // 2))
    left, right = _convolved(first), _convolved(second)
    right.sort(key=lambda atom: atom[1].mid().fmpq())
    losses = [loss for _, loss in right]
    floats = [float(loss) for loss in losses]
    # Tails Σ w and Σ w e^{−loss} from each atom upwards; all terms are positive.
    plain, shifted = [arb(0)], [arb(0)]
    for mass, loss in reversed(right):
        plain.append(plain[-1] + mass)
        shifted.append(shifted[-1] + mass * (-loss).exp())
    below = [arb(0)]
    for mass, _ in right:
        below.append(below[-1] + mass)
    total = arb(0)
    for mass, loss in left:
        threshold = epsilon - loss
        index = max(bisect.bisect_left(floats, float(threshold)) - 2, 0)
        while index < len(losses) and not losses[index].mid() > threshold.mid():
            index += 1
        above = len(losses) - index
        charged = threshold.exp() * shifted[above]
        total += mass * (below[index] + charged if tilt < 0 else plain[above] - charged)
    return total


def _halves(sizes: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], ...]:
    return [(n, (k + 1) // 2) for n, k in sizes], [(n, k // 2) for n, k in sizes]


def _sums(half: Sequence[tuple[int, int]]) -> int:
    return math.prod(math.comb(atoms + count - 1, count) for atoms, count in half)


def _convolved(lists: Sequence[tuple[_List, int]]) -> _List:
    """All sums of the given numbers of atoms of each list, with their probabilities."""
    result: _List = [(arb(1), arb(0))]
    for atoms, count in lists:
        own = _own_sums(atoms, count)
        result = [(p * q, a + b) for (p, a), (q, b) in itertools.product(result, own)]
    return result


def _own_sums(atoms: _List, count: int) -> _List:
    """The multinomial law of a sum of `count` draws, atom by atom."""
    partial = [(count, arb(math.factorial(count)), arb(0))]
    for mass, loss in atoms[:-1]:
        shares = [mass**k / math.factorial(k) for k in range(count + 1)]
        partial = [
            (left - k, weight * shares[k], total + k * loss)
            for left, weight, total in partial
            for k in range(left + 1)
        ]
    mass, loss = atoms[-1]
    shares = [mass**k / math.factorial(k) for k in range(count + 1)]
    return [(weight * shares[left], total + left * loss) for left, weight, total in partial]
