r"""The noise of least ε of one step: a linear program at each ε.

δ(ε) = Σ_k (P_k − e^ε Q_k)⁺ is linear in masses and slack variables,

.. math::

    \min \sum_k t_k, \quad t_k ≥ P_k - e^ε Q_k, \quad t_k ≥ 0, \quad
    p_0 ≥ p_1 ≥ … ≥ 0, \quad p_0 + 2 \sum p_k = 1, \quad \sum c_k p_k ≤ C,

so that its optimum is global among even noise with one mode on the points that are given. Its
solutions are staircases, cut off where δ allows it [Geng and Viswanath 2016]. Beyond the last point
p falls by e^{-ε/m} from each value to the next, m to a shift, as fast as costs no δ; p_K = 0 is a
noise that ends. The least ε of which the optimum is at most δ is found by bisection. Masses are
unknown relative to those of Laplace noise, so that the solver's tolerances are relative too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_HALVINGS = 40  # of the interval in which ε lies
_STEEPEST = 5.0  # of ε, at which the size of masses follows Laplace noise
_COUNTED = 1e4  # of sums over all masses: the solver drops what is below 1e-9
_MARGIN = 1e-7  # relative, of δ: what the solver's own tolerances may cost


@dataclass(frozen=True)
class _Program:
    """One step of noise on 0, ±1, …, ±K at a cost, moved by so many numbers."""

    cost: Array  # of all values, those beyond K too
    most: float
    shift: int
    rate: float
    delta: float
    last: int  # K
    size: Array  # of all values: masses are unknown relative to it

    def ratio(self, epsilon: float) -> float:
        """Return by how much masses fall beyond K, 0 where no values are there."""
        if self.last == self.cost.size - 1:
            return 0.0
        return math.exp(-epsilon / self.shift)

    def law(self, epsilon: float, moved: int) -> Any:
        """Return the masses at places −K, …, K + m of the noise moved up, as a matrix."""
        from scipy.sparse import coo_array

        places = np.arange(-self.last, self.last + self.shift + 1)
        index = np.abs(places - moved)
        beyond = np.maximum(index - self.last, 0)
        is_inside = (index <= self.last) | (self.ratio(epsilon) > 0.0)
        rows = np.nonzero(is_inside)[0]
        columns = np.minimum(index, self.last)[rows]
        values = self.size[columns] * self.ratio(epsilon) ** beyond[rows]
        values = values / self.size[np.abs(places)[rows]]
        return coo_array((values, (rows, columns)), shape=(places.size, self.last + 1)).tocsr()

    def weights(self, epsilon: float) -> tuple[Array, Array]:
        """Return what each unknown adds to all masses, and to the mean cost."""
        beyond = self.ratio(epsilon) ** np.arange(1.0, self.cost.size - self.last)
        twice = np.full(self.last + 1, 2.0)
        twice[0] = 1.0
        costs = twice * self.cost[: self.last + 1]
        masses = twice.copy()
        masses[-1] += 2.0 * beyond.sum()
        costs[-1] += 2.0 * float(beyond @ self.cost[self.last + 1 :])
        size = self.size[: self.last + 1]
        return masses * size, costs * size

    def masses(self, epsilon: float, unknown: Array) -> Array:
        """Return the masses of all values; the solver keeps to its bounds up to a tolerance."""
        sizes = self.size[: self.last + 1]
        positive = np.maximum(unknown * sizes, 0.0)
        listed = np.minimum.accumulate(positive)
        steps_beyond = np.arange(1.0, self.cost.size - self.last)
        beyond = listed[-1] * self.ratio(epsilon) ** steps_beyond
        masses = np.concatenate([listed, beyond])
        total = 2.0 * masses.sum() - masses[0]
        return np.asarray(masses / total)


def least_masses(
    cost: Array, most: float, shift: int, rate: float, delta: float, highest: float, last: int
) -> tuple[float, Array]:
    """Return the least ε of one step at δ, and the masses of all values that have it.

    `highest` is an ε that is known to be reached, `last` the number of the last mass that is free.
    """
    size = np.exp(-min(highest, _STEEPEST) / shift * np.arange(cost.size + shift))
    program = _Program(cost, most, shift, rate, delta, last, size)
    low = 0.0
    high = highest
    masses: Array | None = None
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        least, tried = _least_delta(program, middle)
        if least <= 1.0 - _MARGIN:
            high = middle
            masses = tried
        else:
            low = middle
    if masses is None:
        raise AccuracyError("the linear program of one step found no noise of this cost")
    return high, masses


def _least_delta(program: _Program, epsilon: float) -> tuple[float, Array]:
    """Return the least δ at ε, over the δ that is allowed, and masses that have it."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, eye_array, hstack, vstack

    half = program.last + 1
    places = np.arange(-program.last, program.last + program.shift + 1)
    size = places.size
    q = program.law(epsilon, 0)
    p = program.rate * program.law(epsilon, program.shift) + (1.0 - program.rate) * q
    factor = math.exp(epsilon)
    sides = [p - factor * q]
    if program.rate < 1.0:  # else both directions have one law of the loss
        sides.append(q - factor * p)
    many = len(sides)
    blocks = []
    for number, side in enumerate(sides):
        slacks = [coo_array((size, size)) for _ in sides]
        slacks[number] = -eye_array(size)
        blocks.append(hstack([side, *slacks, coo_array((size, 1))]))
    neighbour = program.size[1] / program.size[0]
    falls = hstack([
        neighbour * eye_array(half - 1, half, k=1) - eye_array(half - 1, half),
        coo_array((half - 1, many * size + 1)),
    ])  # fmt: skip
    largest = np.zeros((many, half + many * size + 1))
    for number in range(many):
        start = half + number * size
        largest[number, start : start + size] = program.size[np.abs(places)] / program.delta
        largest[number, -1] = -1.0
    mass_weights, cost_weights = program.weights(epsilon)
    beyond = np.zeros(many * size + 1)
    mean_cost = np.concatenate([_COUNTED * cost_weights / program.most, beyond])
    upper = vstack([*blocks, falls, coo_array(largest), coo_array(mean_cost[None, :])]).tocsr()
    bound = np.zeros(upper.shape[0])
    bound[-1] = _COUNTED
    aim = np.zeros(upper.shape[1])
    aim[-1] = 1.0
    total = np.concatenate([_COUNTED * mass_weights, beyond])
    solved = linprog(
        aim, upper, bound, coo_array(total[None, :]).tocsr(), [_COUNTED], method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )  # fmt: skip
    if solved.x is None:
        return math.inf, np.zeros(half)
    return float(solved.fun), program.masses(epsilon, solved.x[:half])
