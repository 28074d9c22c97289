"""The line where every loss is discrete and off any lattice: how little its far nodes add.

Such a characteristic function comes back close to 1 for ever, but seldom.  G = Π|φ_i|^{2m_i} with
2m_i ≤ n_i is positive definite, and F(k) = 2(1 − |k|/M)⁺ has a positive transform: for every T

    Σ_{|k−T| ≤ M/2} G(kh) ≤ Σ_k G((T + k)h) F(k) ≤ Σ_k G(kh) F(k) ≤ 2 Σ_{|k|<M} G(kh) = A,

and with M = N the nodes beyond the N-th add at most 2A/(Nh)².  Up to there |φ| is bounded between
places a and b by |φ(y)| ≤ max(|φ(a)|, |φ(b)|) + E(ℓ − c)²(b − a)²/8, in doubles first where there
are many (see `sweep`), and nodes are summed where that is not small enough.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from flint import acb, arb, ctx

from symdp.certify.nodes import Nodes
from symdp.certify.step import TiltedStep
from symdp.certify.sweep import BITS, ROWS, Sweep
from symdp.certify.walk import Walk, integrand
from symdp.certify.work import spend_products
from symdp.errors import AccuracyError

_COARSE = 64  # bits of what only bounds
_STRIDE = 0.75  # between places, in deviations of one step
_PARTS, _PART = 8, 8  # of an interval between places at most, and nodes of one at least
_SHARE = 0.25  # of what may be left out
_SLACK = 1.5
_LONG = 40.0  # a log of how much further than the first places the last ones lie
_MOST_PLACES = 2e10  # times losses
_QUARTER = 0.25  # of the level, below which products are in doubles
_MOST_NEAR = 20_000
_ALONE = 10  # products of a walk, that a value alone costs
_RARE = 2.0**-12  # the mass of losses that places leave out
_LEAST_UNSEEN = 2.0**-56  # the same where nodes are summed


class _Place(NamedTuple):
    """A node, and upper bounds of each |φ_i| there."""

    node: int
    moduli: tuple[arb, ...]


class Scattered:
    """Σ over the nodes of e^{−iyε} Π φ_i(y)^{n_i}/(z(1 + z)), the first one halved.

    Parameters
    ----------
    steps : sequence of (TiltedStep, count)
        All of discrete losses.
    walks : sequence of (Walk, count)
        Their values at the nodes.
    tilt, epsilon, spacing : arb
        t, ε and the distance between nodes.
    allowed : arb
        About what may be left out.
    """

    def __init__(
        self,
        steps: Sequence[tuple[TiltedStep, int]],
        walks: Sequence[tuple[Walk, int]],
        tilt: arb,
        epsilon: arb,
        spacing: arb,
        allowed: arb,
    ) -> None:
        self._steps, self._walks = steps, walks
        self._tilt, self._epsilon, self._spacing = tilt, epsilon, spacing
        self._allowed = allowed
        self._counts = [n for _, n in steps]
        self._coarse: list[Nodes] = []
        self._fine: list[Nodes] = []
        self._precision = ctx.prec
        self._total, self._error = arb(0), arb(0)
        self._energy = arb(1)  # of G over all nodes so far, on both sides

    def sum(self) -> tuple[arb, arb]:
        """Return the sum of real parts, and a bound of what it leaves out.

        Raises
        ------
        AccuracyError
            If too many places would be needed.
        """
        deviation = max(float(step.deviation()) for step, _ in self._steps)
        stride = max(int(_STRIDE / (deviation * float(self._spacing))), 1)
        parts = min(max(stride // _PART, 1), _PARTS)
        part = stride // parts
        stride = parts * part
        first = self._sum_near()
        last = self._last(first, stride)
        reach = float((last + 2 * ROWS * stride) * self._spacing)
        self._fine = [walk.between(0, last + 2 * ROWS * stride, 1.0) for walk, _ in self._walks]
        with ctx.workprec(_COARSE):
            laws = [step.nodes(reach, 0.0, _COARSE) for step, _ in self._steps]
            self._coarse = [
                _likely(law, min(_RARE, 1.0 / n)) for law, n in zip(laws, self._counts, strict=True)
            ]
            self._level = _SHARE * self._allowed * self._spacing / math.log(2 + last / first)
            column = first // (ROWS * stride) + 1
            near = column * ROWS * stride
            for left, right in itertools.pairwise(self._places(first, stride, min(near, last))):
                self._add(left, right)
            end = right.node if last <= near else self._sweep(parts, part, column, last)
            y = end * self._spacing
            excess = sum((n * step.log_excess() for step, n in self._steps), arb(0)).exp() ** 2
            error = excess * (self._error + 4 * self._energy / y**2)
        return self._total, arb(error.upper())

    def _sum_near(self) -> int:
        """Sum the nodes about the first, and return the place up to which that is."""
        self._take([walk[0] for walk, _ in self._walks], 0)
        index, is_small = 0, False
        while not is_small:
            index += 1
            if index > _MOST_NEAR:
                raise AccuracyError(
                    "half of the steps have too many sums of losses off a lattice to certify, and "
                    "too few atoms for their characteristic function to fall; compose more steps"
                )
            values = [walk[index] for walk, _ in self._walks]
            self._take(values, index)
            size = self._product([abs(value).upper() for value in values])
            y = index * self._spacing
            is_small = bool(size < _SHARE * self._allowed * y * self._spacing / _LONG)
        return index

    def _last(self, first: int, stride: int) -> int:
        """Return up to where the nodes must be bounded."""
        energy = float(self._energy.upper())
        reach = _SLACK * math.sqrt(4 * energy / (_SHARE * float(self._allowed)))
        last = max(int(reach / float(self._spacing)), 2 * first)
        with ctx.workprec(_COARSE):
            laws = [_likely(step.nodes(1.0, 0.0, _COARSE), _RARE) for step, _ in self._steps]
        work = last / stride * sum(len(law.losses) for law in laws)
        if work > _MOST_PLACES:
            digits = math.ceil(2 * math.log10(work / _MOST_PLACES))
            raise AccuracyError(
                "the sums of the losses are too many and lie off any lattice; ask for "
                f"{digits} digits fewer, or compose more steps"
            )
        return last

    def _sweep(self, parts: int, part: int, column: int, last: int) -> int:
        """Add nodes far out, or bounds of what they add, and return the last one."""
        end = start = column * ROWS * parts * part
        # Even if all nodes from the first one on counted, what is left out here would not.
        hardly = _SHARE * self._allowed * start * self._spacing**2 / sum(self._counts)
        unseen = min(max(float(hardly), _LEAST_UNSEEN), _RARE)
        with ctx.workprec(BITS):
            reach = float((last + 2 * ROWS * parts * part) * self._spacing)
            laws = [step.nodes(reach, 0.0, BITS) for step, _ in self._steps]
            sweep = Sweep(
                [_likely(law, _RARE) for law in laws], [_likely(law, unseen) for law in laws],
                self._counts, tilt=self._tilt, epsilon=self._epsilon, spacing=self._spacing,
                parts=parts, part=part,
            )  # fmt: skip
        level = _QUARTER * self._level * self._spacing
        for chunk in sweep.chunks(column, last, float(level.log())):
            end, small = chunk.last, (chunk.last - chunk.first) * level * chunk.first
            # All of them count as if they were just small.
            self._error += small / (chunk.first * self._spacing) ** 2 + chunk.error
            self._energy += 2 * (small + chunk.energy)
            self._total += chunk.total
        return end

    def _places(self, first: int, stride: int, last: int) -> Iterator[_Place]:
        yield self._place(first)
        start = first // stride + 1
        ways = [nodes.walk(start, stride * self._spacing) for nodes in self._coarse]
        for node, values in zip(itertools.count(start * stride, stride), zip(*ways, strict=True)):
            spend_products(sum(len(nodes.losses) for nodes in self._coarse))
            yield _Place(node, tuple(abs(value).upper() for value in values))
            if node >= last:
                return

    def _place(self, node: int) -> _Place:
        values = _values(self._coarse, node * self._spacing)
        return _Place(node, tuple(abs(value).upper() for value in values))

    def _add(self, left: _Place, right: _Place) -> None:
        """Add the nodes after one place up to another, or a bound of what they add."""
        length, y = right.node - left.node, left.node * self._spacing
        spread = (length * self._spacing) ** 2 / 8
        bounds = [
            (a.max(b) + spread * nodes.spread[1] + nodes.error).upper().min(arb(1))
            for a, b, nodes in zip(left.moduli, right.moduli, self._coarse, strict=True)
        ]
        product = self._product(bounds)
        if product < self._level * y:
            self._error += length * product / y**2
            self._energy += 2 * length * self._product(bounds, even=True)
        elif length == 1:
            with ctx.workprec(self._precision):
                self._take(_values(self._fine, right.node * self._spacing), right.node)
        else:
            middle = self._place((left.node + right.node) // 2)
            self._add(left, middle)
            self._add(middle, right)

    def _take(self, values: Sequence[acb], index: int) -> None:
        """Add a node."""
        value = integrand(self._tilt, self._epsilon, index * self._spacing, values, self._counts)
        self._total += value.real if index else value.real / 2
        self._energy += 2 * self._product([abs(own).upper() for own in values], even=True)

    def _product(self, moduli: Sequence[arb], *, even: bool = False) -> arb:
        """Return an upper bound of Π|φ_i|^{n_i}, or of G."""
        product = arb(1)
        for size, count in zip(moduli, self._counts, strict=True):
            product *= size ** (count - count % 2 if even else count)
        return arb(product.upper())


def _values(steps: Sequence[Nodes], y: arb) -> list[acb]:
    spend_products(_ALONE * sum(len(nodes.losses) for nodes in steps))
    return [nodes.at(y) for nodes in steps]


def _likely(nodes: Nodes, rare: float) -> Nodes:
    """Return the nodes that weigh most; what the others weigh, a little, counts as error."""
    pairs = sorted(zip(nodes.weights, nodes.losses, strict=True), key=lambda p: float(p[0]))
    passed = itertools.accumulate(float(weight) for weight, _ in pairs)
    first = next(k for k, mass in enumerate(passed) if mass > rare)
    rest = sum((weight for weight, _ in pairs[:first]), arb(0))
    weights, losses = zip(*pairs[first:], strict=True)
    return replace(nodes, weights=weights, losses=losses, error=arb((nodes.error + rest).upper()))
