"""δ(ε) by the trapezoidal rule on a vertical line, every error bounded.

With z = t + iy and t > 0, δ(ε) = (1/2π) ∫ e^{K(z)−εz}/(z(1+z)) dy [SPA (28)]; between the poles,
for −1 < t < 0, the same integral is −E min(1, e^{ε−L}) over finite losses.  The nodes are enclosed,
far out a panel at a time (see `panels`), what the rule adds is bounded (see `alias`), and beyond
the last node |φ_t(y)|ⁿ is shown to stay below a level T by marching: |φ(y)| ≤ |φ(y′)| + σ|y − y′|
from enclosed nodes, with a cubic bound near zero, integration by parts and paths beside the axis
far out.  Of few steps with atoms what follows a node is summed instead (see `edges`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sympy as sp
from flint import acb, arb, ctx

from symdp.certify.alias import Steps, choose
from symdp.certify.edges import find_tail
from symdp.certify.march import March
from symdp.certify.panels import Panel, sum_panel
from symdp.certify.scattered import Scattered
from symdp.certify.walk import Walk, integrand
from symdp.emit.arb import constant_ball
from symdp.errors import AccuracyError

Walks = Sequence[tuple[Walk, int]]
_Way = Callable[[Walks, arb], tuple[arb, arb] | None]

_LN10 = math.log(10)
_MOST_NODES = 400_000
_FIRST_PANEL, _LATE_PANEL, _LAST_PANEL = 64, 2048, 2**64
_SPARE_BITS = 16
_PANEL_SHARE = 2.0**-7
_FEW = 40  # steps, the sums of whose atoms are not too many
_SPACING_BITS = 4
_MORE = 32.0  # may be left out where each digit costs much: within the digits to spare


@dataclass(frozen=True)
class Goal:
    """What a sum aims at: log δ as far as it is known, and decimal digits relative to it."""

    log_size: float
    width: float
    digits: float


def sum_line(steps: Steps, tilt: sp.Rational, epsilon: arb, goal: Goal) -> arb:
    """Enclose the integral: δ(ε) less the mass at infinity, or −E min(1, e^{ε−L}) for t < 0.

    Raises
    ------
    AccuracyError
        If a bound cannot be proved or the work limit is reached.
    """
    t = constant_ball(tilt, ctx.prec).real
    height = sum((n * step.scale for step, n in steps), arb(0)) - t * epsilon
    log_goal = goal.log_size - goal.digits * _LN10 - math.log(8)
    period, anchors = choose(steps, tilt, epsilon, log_goal, goal.width)
    # Of few bits, so that close ε share nodes.
    finest = 2.0 ** (math.floor(math.log2(2 * math.pi / period)) - _SPACING_BITS)
    spacing = arb(finest * math.floor(2 * math.pi / period / finest))
    added = sum(
        (side.added(tilt, epsilon, 2 * arb.pi() / spacing) for side in anchors), arb(0)
    ).upper()
    line = _Line(steps, t, epsilon, spacing, arb(log_goal) - height)
    total, beyond = line.sum()
    inner = (total + arb(0, beyond)) * height.exp()
    return inner - arb(0).union(added) if tilt > 0 else inner + arb(0).union(added)


@dataclass
class _Line:
    """The sum over nodes in units of e^{height}, and a bound of what it leaves out."""

    steps: Steps
    tilt: arb
    epsilon: arb
    spacing: arb
    log_goal: arb

    def sum(self) -> tuple[arb, arb]:
        near = abs(self.tilt * (1 + self.tilt))
        count = sum(n for _, n in self.steps)
        goal = self.log_goal.exp().mid()
        tolerance = (goal * near.min(arb(1)) / (2 * count)).mid()
        precision = int(-float(tolerance.log().mid()) / math.log(2)) + 40
        with ctx.workprec(max(precision, ctx.prec)):
            walks = [
                (step.walk(self.spacing, tolerance, n, falls=True), n) for step, n in self.steps
            ]
            if all(step.is_discrete for step, _ in self.steps):
                return self._scattered(walks, goal)
            ways: list[_Way] = [self._to_level, self._to_edges]
            if self.tilt < 0:  # what follows a node is summed for t > 0 only
                ways = [self._to_level]
            elif count <= _FEW and self._has_atoms:
                ways = [self._to_edges, self._to_level]
            refused: AccuracyError | None = None
            for way in ways:
                try:
                    found = way(walks, goal)
                except AccuracyError as error:
                    # The level says what is wanted, edges only that they do not serve.
                    refused = error if way == self._to_level else refused or error
                    continue
                if found is not None:
                    return found
        assert refused is not None
        raise refused

    def _to_edges(self, walks: Walks, goal: arb) -> tuple[arb, arb] | None:
        """Sum up to where atoms and edges of the loss say what follows, and add that."""
        allowed = arb.pi() * goal / self.spacing
        found = find_tail(self.steps, self.tilt, self.epsilon, self.spacing, allowed)
        if found is None:
            return None
        tail, first = found
        total = self._node(0, walks).real / 2
        for index in range(1, first):
            total += self._node(index, walks).real
        total += tail.total(first, allowed)
        front = self.spacing / arb.pi()
        return total * front, (tail.bound(first) * front).upper()

    def _scattered(self, walks: Walks, goal: arb) -> tuple[arb, arb]:
        """Sum up to where the nodes beyond are few that count."""
        front = self.spacing / arb.pi()
        far = Scattered(
            self.steps, walks, self.tilt, self.epsilon, self.spacing, _MORE * goal / front
        )
        total, error = far.sum()
        return total * front, (error * front).upper()

    def _to_level(self, walks: Walks, goal: arb) -> tuple[arb, arb]:
        """Sum up to where the modulus is proved to stay small."""
        total, error = self._node(0, walks).real / 2, arb(0)
        march = March(self.steps)
        # Many steps with atoms have too many sums of values for panels.
        many = self._has_atoms and sum(n for _, n in self.steps) > _FEW
        self._require_decay(march, goal, _MOST_NODES if many else _LAST_PANEL)
        index, least = 1, 1
        proved_near = False
        moduli: Sequence[float | None] = [None] * len(walks)
        while True:
            found = None
            if index >= _FIRST_PANEL and index & (index - 1) == 0:
                found = self._panel(index, walks, goal, moduli)
            if found is not None:
                total += found.total.real
                error += found.error
                index, moduli = 2 * index, found.moduli
                size = math.prod(arb(m) ** n for m, (_, n) in zip(moduli, walks, strict=True))
            else:
                if index >= _LATE_PANEL and not proved_near:
                    self._require_decay(march, goal, _MOST_NODES)
                    proved_near = True
                node = self._node(index, walks)
                total += node.real
                y = index * self.spacing
                size = abs(node).upper() * abs(acb(self.tilt, y) * acb(1 + self.tilt, y)).upper()
                index += 1
            y = (index - 1) * self.spacing
            weight = 1 / y + self.spacing / y**2
            level = (arb.pi() * goal / weight).lower()
            if index > least and size < level:
                failed = march.failure(y, level)
                if failed is None:
                    factor = march.excess * (level * weight / arb.pi()).upper()
                    front = self.spacing / arb.pi()
                    return total * front, (factor + error * front).upper()
                # Not proved to be small there: sum on, and ask again later.
                least = max(int(float(failed / self.spacing)), index + index // 8)
            if max(index, least) > _MOST_NODES and found is None:
                raise AccuracyError(
                    "the characteristic function of the loss falls too slowly to certify so many "
                    "digits; ask for fewer digits, or compose more steps"
                )

    @property
    def _has_atoms(self) -> bool:
        return any(step.parts.has_atoms for step, _ in self.steps)

    def _panel(
        self, first: int, walks: Walks, goal: arb, moduli: Sequence[float | None]
    ) -> Panel | None:
        """Sum the nodes up to twice a first one at once, if that costs less than each.

        Parts of φ may be larger than it, and powers of them lose bits when they are added up.
        """
        share = goal * arb.pi() / self.spacing * _PANEL_SHARE
        spare = 0
        for _ in range(2):
            nodes = [
                (walk.between(first, 2 * first, size, spare), count)
                for (walk, count), size in zip(walks, moduli, strict=True)
            ]
            found = sum_panel(nodes, self.tilt, self.epsilon, self.spacing, first, share)
            if found is None:
                return None
            wide = found.total.rad().max(found.error) / share
            if wide <= _MORE:
                return found
            spare = int(float(wide.log()) / math.log(2)) + _SPARE_BITS
        return None

    def _require_decay(self, march: March, goal: arb, last: int) -> None:
        y = last * self.spacing
        march.require_decay(arb.pi() * goal * y / (1 + self.spacing), y)

    def _node(self, index: int, walks: Walks) -> acb:
        values = (walk[index] for walk, _ in walks)
        counts = (count for _, count in walks)
        return integrand(self.tilt, self.epsilon, index * self.spacing, values, counts)
