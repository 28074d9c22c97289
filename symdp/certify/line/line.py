"""δ(ε) by the trapezoidal rule on a vertical line, every error bounded.

With z = t + iy and t > 0, δ(ε) = (1/2π) ∫ e^{K(z)−εz}/(z(1+z)) dy [SPA (28)]; between the poles,
for −1 < t < 0, the same integral is −E min(1, e^{ε−L}) over finite losses.  The nodes are enclosed,
what the rule adds is bounded (see `alias`), and beyond the last node |φ_t(y)|ⁿ is shown to stay
below a level T: up to some place by Taylor bounds around enclosed values (see `march`), farther out
by integration by parts (see `decay`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp
from flint import acb, arb, ctx

from symdp.certify.line.alias import Steps, choose
from symdp.certify.line.characteristic_function import Walk, integrand
from symdp.certify.line.modulus_proof import March
from symdp.emit.exact import LN10, real_ball
from symdp.errors import AccuracyError

Walks = Sequence[tuple[Walk, int]]

_MOST_NODES = 40_000  # beyond, the mesh costs less
_FEW_NODES = 200  # of which the products cost nothing beside the nodes of the steps
_SPACING_BITS = 4  # of h, so that close ε share nodes
# What is said where too many nodes would be needed.
_TOO_SLOW = (
    "the characteristic function of the loss falls too slowly to certify so many digits; ask for "
    "fewer digits, or compose more steps"
)


@dataclass(frozen=True)
class Goal:
    """What a sum aims at: log δ as far as it is known, and decimal digits relative to it.

    Attributes
    ----------
    most_products
        Products of balls that a line may cost, about.
    """

    log_size: float
    width: float
    digits: float
    most_products: float = math.inf


def sum_line(steps: Steps, tilt: sp.Rational, epsilon: arb, goal: Goal) -> arb:
    """Enclose the integral: δ(ε) less the mass at infinity, or −E min(1, e^{ε−L}) for t < 0.

    Raises
    ------
    AccuracyError
        If a bound cannot be proved or the work limit is reached.
    """
    t = real_ball(tilt)
    height = sum((n * step.scale for step, n in steps), arb(0)) - t * epsilon
    log_goal = goal.log_size - goal.digits * LN10 - math.log(8)
    period, anchors = choose(steps, tilt, epsilon, log_goal, goal.width)
    # Of few bits, so that close ε share nodes.
    finest = 2.0 ** (math.floor(math.log2(2 * math.pi / period)) - _SPACING_BITS)
    spacing = arb(finest * math.floor(2 * math.pi / period / finest))
    added = sum(
        (side.added(tilt, epsilon, 2 * arb.pi() / spacing) for side in anchors), arb(0)
    ).upper()
    line = _Line(steps, t, epsilon, spacing, arb(log_goal) - height, goal.most_products)
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
    most_products: float

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
            return self._to_level(walks, goal)

    def _to_level(self, walks: Walks, goal: arb) -> tuple[arb, arb]:
        """Sum up to where the modulus is proved to stay small."""
        march = March(self.steps)
        self._require_decay(march, goal)
        if self.most_products < math.inf:
            self._require_few_products(march, walks, goal)
        total = self._node(0, walks).real / 2
        index, least = 1, 1
        while max(index, least) <= _MOST_NODES:
            y = index * self.spacing
            node = self._node(index, walks)
            total += node.real
            size = abs(node).upper() * abs(acb(self.tilt, y) * acb(1 + self.tilt, y)).upper()
            index += 1
            weight = 1 / y + self.spacing / y**2
            level = (arb.pi() * goal / weight).lower()
            if index > least and size < level:
                failed = march.failure(y, level)
                if failed is None:
                    factor = march.excess * (level * weight / arb.pi()).upper()
                    return total * self.spacing / arb.pi(), factor.upper()
                # Not proved to be small there: sum on, and ask again later.
                least = max(int(float(failed / self.spacing)), index + index // 8)
        raise AccuracyError(_TOO_SLOW)

    def _require_decay(self, march: March, goal: arb) -> None:
        y = _MOST_NODES * self.spacing
        march.require_decay(arb.pi() * goal * y / (1 + self.spacing), y)

    def _require_few_products(self, march: March, walks: Walks, goal: arb) -> None:
        """Raise AccuracyError where the nodes up to a proved bound cost too much."""
        y = _FEW_NODES * self.spacing
        level = (arb.pi() * goal / (1 / y + self.spacing / y**2)).lower()
        last = math.ceil(float(march.far(self.spacing, level) / self.spacing))
        if last < _FEW_NODES:
            return
        if last**2 > 4 * self.most_products:  # a step has about a node for four of the line
            raise AccuracyError(_TOO_SLOW)
        each = float(level) ** (1 / sum(count for _, count in walks))
        if last * sum(len(walk.between(last // 2, last, each).losses) for walk, _ in walks) > (
            self.most_products
        ):
            raise AccuracyError(_TOO_SLOW)

    def _node(self, index: int, walks: Walks) -> acb:
        values = (walk[index] for walk, _ in walks)
        counts = (count for _, count in walks)
        return integrand(self.tilt, self.epsilon, index * self.spacing, values, counts)
