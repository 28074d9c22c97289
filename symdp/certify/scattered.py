"""The line where every loss is discrete and off any lattice: all that comes back up to a cut-off.

Such a characteristic function comes back close to 1 for ever, but seldom.  A smooth cut-off makes
what follows unneeded (see `mollifier`): it changes δ by as much as lies close to ε, which the same
nodes say.  Nodes are shown to be small by places between which |φ| is bounded (see `sift`), in
doubles where there are many (see `sweep`), and summed where they are not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from flint import acb, arb, ctx

from symdp.certify.mollifier import LARGEST, Mollifier, enough
from symdp.certify.nodes import Nodes
from symdp.certify.sift import Sieve, power, values_at, widest
from symdp.certify.step import TiltedStep
from symdp.certify.sweep import BITS, ROWS, Sweep
from symdp.certify.walk import Walk, integrand
from symdp.errors import AccuracyError

_COARSE = 64  # bits of what only bounds
_PARTS, _PART = 8, 8  # of an interval at most, and nodes of the shortest at least
_SHARE = 0.25  # of what may be left out
_LONG = 40.0  # a log of how much further than the first places the last ones lie
_MOST_PLACES = 2e10  # times losses
_QUARTER = 0.25  # of the level, below which products are in doubles
_MOST_NEAR = 2000
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
        self._fine: list[Nodes] = []
        self._precision = ctx.prec
        self._near: list[tuple[int, arb]] = []  # nodes, and Re Φ there
        self._sums = _Sums()
        self._mollifier: Mollifier | None = None

    def sum(self) -> tuple[arb, arb]:
        """Return the sum of real parts, and a bound of what it leaves out.

        Raises
        ------
        AccuracyError
            If too many places would be needed.
        """
        deviation = max(float(step.deviation()) for step, _ in self._steps)
        lengths = _lengths(widest(deviation, self._spacing))
        stride, first = lengths[0], self._sum_near()
        size = float(sum((abs(value).upper() for _, value in self._near), arb(0)).upper())
        reach = enough(size, _SHARE * float(self._allowed))
        # The first nodes lie where nothing is cut off.
        self._mollifier = Mollifier(max(reach, 3.0 * first * float(self._spacing)))
        last = int(self._mollifier.reach / float(self._spacing)) + 1
        self._require_few(last / stride)
        farthest = last + 2 * ROWS * stride
        self._fine = [walk.between(0, farthest, 1.0) for walk, _ in self._walks]
        with ctx.workprec(_COARSE):
            laws = [
                step.nodes(float(farthest * self._spacing), 0, _COARSE) for step, _ in self._steps
            ]
            self._level = _SHARE * self._allowed * self._spacing / math.log(2 + last / first)
            column = first // (ROWS * stride) + 1
            near = column * ROWS * stride
            self._sift(self._rough(laws), first, min(near, last), stride)
            if last > near:
                self._sweep(lengths, column, last)
            sums = self._sums
            mass = sum((own * self._window(node) for node, own in self._near), sums.mass)
            excess = sum((n * step.log_excess() for step, n in self._steps), arb(0)).exp() ** 2
            error = excess * (sums.error + self._mollifier.bound(mass))
        return sums.total, arb(error.upper())

    def _sum_near(self) -> int:
        """Sum nodes about the first while they are not small, and return the last of them."""
        self._take([walk[0] for walk, _ in self._walks], 0)
        index, is_small = 0, False
        while not is_small and index < _MOST_NEAR:
            index += 1
            values = [walk[index] for walk, _ in self._walks]
            self._take(values, index)
            size = power([abs(value).upper() for value in values], self._counts)
            y = index * self._spacing
            is_small = bool(size < _SHARE * self._allowed * y * self._spacing / _LONG)
        return index

    def _require_few(self, places: float) -> None:
        with ctx.workprec(_COARSE):
            laws = [_likely(step.nodes(1.0, 0.0, _COARSE), _RARE) for step, _ in self._steps]
        work = places * sum(len(law.losses) for law in laws)
        if work > _MOST_PLACES:
            digits = math.ceil(2 * math.log10(work / _MOST_PLACES))
            raise AccuracyError(
                "the sums of the losses are too many and lie off any lattice; ask for "
                f"{digits} digits fewer, or compose more steps"
            )

    def _sweep(self, lengths: Sequence[int], column: int, last: int) -> None:
        """Add nodes far out, or bounds of what they add."""
        assert self._mollifier is not None
        start = column * ROWS * lengths[0]
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
                mollifier=self._mollifier,
            )  # fmt: skip
        level = _QUARTER * self._level * self._spacing
        for chunk in sweep.chunks(column, last, float(level.log())):
            # All that are left out count as if they were just small.
            small = (chunk.last - chunk.first) * level * chunk.first
            error = small / (chunk.first * self._spacing) ** 2 + chunk.error
            with ctx.workprec(self._precision):
                self._sums = self._sums.plus(
                    total=arb(chunk.total), error=error, mass=LARGEST * small + chunk.mass
                )
            for node in chunk.unsure:
                self._take_alone(node)

    def _rough(self, laws: Sequence[Nodes]) -> list[Nodes]:
        """Return what of each law tells whether its power is small."""
        return [_likely(law, min(_RARE, 1 / n)) for law, n in zip(laws, self._counts, strict=True)]

    def _sift(self, coarse: Sequence[Nodes], first: int, last: int, stride: int) -> None:
        """Add nodes, or bounds of what they add."""

        def is_small(product: arb, node: int) -> bool:
            return bool(product < self._level * node * self._spacing)

        sieve = Sieve(coarse, self._counts, self._spacing, is_small)
        for before, end, moduli in sieve.runs(first, last, stride):
            if moduli is None:
                self._take_alone(end)
            else:
                size = (end - before) * power(moduli, self._counts)
                y = before * self._spacing
                self._sums = self._sums.plus(error=size / y**2, mass=LARGEST * size)

    def _take_alone(self, index: int) -> None:
        with ctx.workprec(self._precision):
            self._take(values_at(self._fine, index * self._spacing), index)

    def _take(self, values: Sequence[acb], index: int) -> None:
        """Add a node."""
        y = index * self._spacing
        value = integrand(self._tilt, self._epsilon, y, values, self._counts)
        z = acb(self._tilt, y)
        own = (value * z * (1 + z)).real if index else (value * z * (1 + z)).real / 2
        total, mass = value.real if index else value.real / 2, arb(0)
        if self._mollifier is None:
            self._near.append((index, own))
        else:
            cut, window = self._mollifier.weights_at(y)
            total, mass = total * cut, own * window
        self._sums = self._sums.plus(total=total, mass=mass)

    def _window(self, index: int) -> arb:
        assert self._mollifier is not None
        return self._mollifier.weights_at(index * self._spacing)[1]


@dataclass(frozen=True)
class _Sums:
    """The sum so far, what it may be off by, and the mass near ε."""

    total: arb = field(default_factory=lambda: arb(0))
    error: arb = field(default_factory=lambda: arb(0))
    mass: arb = field(default_factory=lambda: arb(0))

    def plus(self, **more: arb) -> _Sums:
        return replace(self, **{name: getattr(self, name) + own for name, own in more.items()})


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
