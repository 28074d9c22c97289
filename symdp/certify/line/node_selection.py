"""Which nodes of a line or a period may count, and how little each of the others does.

Between two places |φ(y)| ≤ max(|φ(a)|, |φ(b)|) + E(ℓ − c)²(b − a)²/8.  Where the product of such
bounds is not small enough, what lies between is halved, down to single nodes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from flint import acb, arb

from symdp.certify.nodes import Nodes
from symdp.prove.work import spend_products

_STRIDE = 0.75  # between places, in deviations of one step
_ALONE = 10  # products of a walk, that a value alone costs


class Run(NamedTuple):
    """The nodes after one up to another, and bounds of the |φ_i| at all of them.

    A single node may have no bounds: it is not shown to be small.
    """

    before: int
    last: int
    moduli: tuple[arb, ...] | None


class _Place(NamedTuple):
    """A node, and upper bounds of each |φ_i| there."""

    node: int
    moduli: tuple[arb, ...]


class Sieve:
    """Runs of nodes kh, each shown to be small or a single node.

    Parameters
    ----------
    steps : sequence of Nodes
        Of few bits, from y = 0 on.
    counts : sequence of int
        The n_i.
    spacing : arb
        h.
    is_small : callable
        Of a bound of Π|φ_i|^{n_i} at nodes after one, and of that one.
    """

    def __init__(
        self,
        steps: Sequence[Nodes],
        counts: Sequence[int],
        spacing: arb,
        is_small: Callable[[arb, int], bool],
    ) -> None:
        self._steps, self._counts, self._spacing = steps, counts, spacing
        self._is_small = is_small
        self._largest = [nodes.total().upper() for nodes in steps]  # |φ| is at most φ(0)

    def runs(self, first: int, last: int, stride: int) -> Iterator[Run]:
        """Yield what covers all nodes after a first one up to a last one."""
        for left, right in itertools.pairwise(self._places(first, last, stride)):
            yield from self._between(left, right)

    def _places(self, first: int, last: int, stride: int) -> Iterator[_Place]:
        yield self._place(first)
        start = first // stride + 1
        ways = [nodes.walk(start, stride * self._spacing) for nodes in self._steps]
        for node, values in zip(itertools.count(start * stride, stride), zip(*ways, strict=True)):
            if node >= last:
                break
            spend_products(sum(len(nodes.losses) for nodes in self._steps))
            yield _Place(node, tuple(abs(value).upper() for value in values))
        yield self._place(last)

    def _place(self, node: int) -> _Place:
        values = values_at(self._steps, node * self._spacing)
        return _Place(node, tuple(abs(value).upper() for value in values))

    def _between(self, left: _Place, right: _Place) -> Iterator[Run]:
        length = right.node - left.node
        spread = (length * self._spacing) ** 2 / 8
        bounds = tuple(
            (a.max(b) + spread * nodes.spread[1] + nodes.error).upper().min(largest)
            for a, b, nodes, largest in zip(
                left.moduli, right.moduli, self._steps, self._largest, strict=True
            )
        )
        if self._is_small(power(bounds, self._counts), left.node):
            yield Run(left.node, right.node, bounds)
        elif length == 1:
            yield Run(left.node, right.node, None)
        else:
            middle = self._place((left.node + right.node) // 2)
            yield from self._between(left, middle)
            yield from self._between(middle, right)


def widest(deviation: float, spacing: arb) -> int:
    """Return how many nodes may lie between two places, given the deviation of one step."""
    return max(int(_STRIDE / (deviation * float(spacing))), 1)


def values_at(steps: Sequence[Nodes], y: arb) -> list[acb]:
    """Return all φ_i at some y."""
    spend_products(_ALONE * sum(len(nodes.losses) for nodes in steps))
    return [nodes.at(y) for nodes in steps]


def power(moduli: Sequence[arb], counts: Sequence[int]) -> arb:
    """Return an upper bound of Π|φ_i|^{n_i}."""
    return arb(math.prod((m**n for m, n in zip(moduli, counts, strict=True)), start=arb(1)).upper())
