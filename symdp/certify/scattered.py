"""The line where every loss is discrete and off any lattice: how little its far nodes add.

Such a characteristic function comes back close to 1 for ever, but seldom.  G = Π|φ_i|^{2m_i} with
2m_i ≤ n_i is positive definite, and F(k) = 2(1 − |k|/M)⁺ has a positive transform: for every T

    Σ_{|k−T| ≤ M/2} G(kh) ≤ Σ_k G((T + k)h) F(k) ≤ Σ_k G(kh) F(k) ≤ 2 Σ_{|k|<M} G(kh) = A,

and with M = N the nodes beyond the N-th add at most 2A/(Nh)².  Up to there |φ| is bounded between
places (see `sift`), in doubles where there are many (see `sweep`), and nodes are summed where that
is not small enough.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from flint import acb, arb, ctx

from symdp.certify.nodes import Nodes
from symdp.certify.sift import Sieve, power, values_at, widest
from symdp.certify.step import TiltedStep
from symdp.certify.sweep import BITS, ROWS, Sweep
from symdp.certify.walk import Walk, integrand
from symdp.errors import AccuracyError

_COARSE = 64  # bits of what only bounds
_PARTS, _PART = 8, 8  # of an interval at most, and nodes of the shortest at least
_SHARE = 0.25  # of what may be left out
_SLACK = 1.5
_LONG = 40.0  # a log of how much further than the first places the last ones lie
_MOST_PLACES = 2e10  # times losses
_QUARTER = 0.25  # of the level, below which products are in doubles
_MOST_NEAR = 20_000
_RARE = 2.0**-12  # the mass of losses that places leave out
_LEAST_UNSEEN = 2.0**-56  # the same where nodes are summed


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
        self._even = [n - n % 2 for n in self._counts]
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
        lengths = _lengths(widest(deviation, self._spacing))
        stride = lengths[0]
        first = self._sum_near()
        last = self._last(first, stride)
        reach = float((last + 2 * ROWS * stride) * self._spacing)
        self._fine = [walk.between(0, last + 2 * ROWS * stride, 1.0) for walk, _ in self._walks]
        with ctx.workprec(_COARSE):
            laws = [step.nodes(reach, 0.0, _COARSE) for step, _ in self._steps]
            coarse = self._rough(laws)
            self._level = _SHARE * self._allowed * self._spacing / math.log(2 + last / first)
            column = first // (ROWS * stride) + 1
            near = column * ROWS * stride
            self._sift(coarse, first, min(near, last), stride)
            end = last if last <= near else self._sweep(lengths, column, last)
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
            size = power([abs(value).upper() for value in values], self._counts)
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

    def _sweep(self, lengths: Sequence[int], column: int, last: int) -> int:
        """Add nodes far out, or bounds of what they add, and return the last one."""
        end = start = column * ROWS * lengths[0]
        # Even if all nodes from the first one on counted, what is left out here would not.
        hardly = _SHARE * self._allowed * start * self._spacing**2 / sum(self._counts)
        unseen = min(max(float(hardly), _LEAST_UNSEEN), _RARE)
        with ctx.workprec(BITS):
            reach = float((last + 2 * ROWS * lengths[0]) * self._spacing)
            laws = [step.nodes(reach, 0.0, BITS) for step, _ in self._steps]
            sweep = Sweep(
                self._rough(laws), [_likely(law, unseen) for law in laws],
                self._counts, tilt=self._tilt, epsilon=self._epsilon, spacing=self._spacing,
                lengths=lengths, tolerance=float(self._level / self._spacing),
            )  # fmt: skip
        level = _QUARTER * self._level * self._spacing
        for chunk in sweep.chunks(column, last, float(level.log())):
            end, small = chunk.last, (chunk.last - chunk.first) * level * chunk.first
            # All of them count as if they were just small.
            self._error += small / (chunk.first * self._spacing) ** 2 + chunk.error
            self._energy += 2 * (small + chunk.energy)
            self._total += chunk.total
            for node in chunk.unsure:
                self._take_alone(node)
        return end

    def _rough(self, laws: Sequence[Nodes]) -> list[Nodes]:
        """Return what of each law tells whether its power is small."""
        return [_likely(law, min(_RARE, 1 / n)) for law, n in zip(laws, self._counts, strict=True)]

    def _sift(self, coarse: Sequence[Nodes], first: int, last: int, stride: int) -> None:
        """Add nodes, or bounds of what they add."""

        def is_small(product: arb, node: int) -> bool:
            return bool(product < self._level * node * self._spacing)

        sieve = Sieve(coarse, self._counts, self._spacing, is_small)
        for before, end, moduli in sieve.stretches(first, last, stride):
            if moduli is None:
                self._take_alone(end)
            else:
                length, y = end - before, before * self._spacing
                self._error += length * power(moduli, self._counts) / y**2
                self._energy += 2 * length * power(moduli, self._even)

    def _take_alone(self, index: int) -> None:
        with ctx.workprec(self._precision):
            self._take(values_at(self._fine, index * self._spacing), index)

    def _take(self, values: Sequence[acb], index: int) -> None:
        """Add a node."""
        value = integrand(self._tilt, self._epsilon, index * self._spacing, values, self._counts)
        self._total += value.real if index else value.real / 2
        self._energy += 2 * power([abs(own).upper() for own in values], self._even)


def _lengths(widest: int) -> tuple[int, ...]:
    """Return lengths of ever smaller parts, the first as long as may be, each whole times more."""
    splits: list[int] = []
    while widest >= 2 * _PART:
        splits.append(min(widest // _PART, _PARTS))
        widest //= splits[-1]
    return tuple(widest * math.prod(splits[k:]) for k in range(len(splits) + 1))


def _likely(nodes: Nodes, rare: float) -> Nodes:
    """Return the nodes that weigh most; what the others weigh, a little, counts as error."""
    pairs = sorted(zip(nodes.weights, nodes.losses, strict=True), key=lambda p: float(p[0]))
    passed = itertools.accumulate(float(weight) for weight, _ in pairs)
    first = next(k for k, mass in enumerate(passed) if mass > rare)
    rest = sum((weight for weight, _ in pairs[:first]), arb(0))
    weights, losses = zip(*pairs[first:], strict=True)
    return replace(nodes, weights=weights, losses=losses, error=arb((nodes.error + rest).upper()))
