"""Values of one step's φ_t along the line, from nodes that reach ever further."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from flint import acb, arb, ctx

from symdp.certify.nodes import Nodes
from symdp.prove.work import COARSE_BITS, spend_products

_FIRST = 40  # values that the first nodes serve
_LEAST_BITS = 24  # below which Arb saves no time


@dataclass(frozen=True)
class Need:
    """How well values φ(y) must be known that enter a sum as w(y) φ(y)ⁿ."""

    bits: int  # −log₂ of the tolerance about y = 0
    count: int  # n
    falls: bool  # whether w(y) is like 1/y²

    def bits_at(self, y: float, size: float) -> int:
        """Return what is needed from a frequency on, where |φ| is about `size` or less.

        The errors n |φ|ⁿ⁻¹ w(y) of what follows may add up to those about y = 0, and so may
        the power of one of them where φ itself is smaller than it.
        """
        whole = self.bits - (math.log2(max(y, 1.0)) if self.falls else 0.0)
        single = whole + (self.count - 1) * math.log2(min(max(size, 1e-300), 1.0))
        return 16 * math.ceil(max(single, whole / self.count + 2.0, _LEAST_BITS) / 16)


def integrand(tilt: arb, epsilon: arb, y: arb, values: Iterable[acb], counts: Iterable[int]) -> acb:
    """Return e^{−iyε} Π φ_i^{n_i}/(z(1 + z)) at z = t + iy [SPA (28)], from values φ_i."""
    z = acb(tilt, y)
    product = acb(0, -epsilon * y).exp() / (z * (1 + z))
    for value, count in zip(values, counts, strict=True):
        product *= value**count
    return product


class Walk:
    """Values at y = 0, h, 2h, …, each computed once, from nodes that reach ever further.

    Parameters
    ----------
    nodes : callable
        Of a reach and bits.
    spacing : arb
    need : Need
        The larger y, and the smaller φ, the fewer nodes and bits will do.
    """

    def __init__(self, nodes: Callable[[float, int], Nodes], spacing: arb, need: Need) -> None:
        self._nodes, self._spacing, self._need = nodes, spacing, need
        self._values: list[acb] = []
        self._source: Iterator[acb] = iter(())
        self._width, self._precision = 0, ctx.prec
        self._spare = ctx.prec - need.bits

    def __getitem__(self, index: int) -> acb:
        while len(self._values) <= index:
            with ctx.workprec(self._precision):
                found = next(self._source, None)
            if found is None:
                found = self._extended()
            spend_products(self._width)
            self._values.append(found)
        return self._values[index]

    def between(self, first: int, last: int, size: float | None = None) -> Nodes:
        """Return nodes that serve the values from one to another, |φ| being about a size or less.

        Without a size, that of the last third of the values so far counts.
        """
        start, reach = (float(self._spacing) * k for k in (first, last))
        if size is None:
            recent = (float(abs(value).upper()) for value in self._values[-(first // 3) :])
            size = max(recent, default=1.0)
        bits = self._need.bits_at(start, size)
        self._precision = max(bits + self._spare, COARSE_BITS)
        with ctx.workprec(self._precision):
            return self._nodes(reach, bits)

    def _extended(self) -> acb:
        """Return the next value, from nodes that reach twice as far."""
        have = len(self._values)
        nodes = self.between(have, max(2 * have, _FIRST))
        with ctx.workprec(self._precision):
            self._source, self._width = nodes.walk(have, self._spacing), len(nodes.losses)
            return next(self._source)
