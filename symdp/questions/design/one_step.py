r"""The noise of least ε of one step: a linear program at each ε.

δ(ε) = Σ_k (P_k − e^ε Q_k)⁺ is linear in masses and slack variables,

.. math::

    \min \sum_k t_k, \quad t_k ≥ P_k - e^ε Q_k, \quad t_k ≥ 0, \quad
    p_0 ≥ p_1 ≥ … ≥ 0, \quad p_0 + 2 \sum p_k = 1, \quad \sum c_k p_k ≤ C,

so that its optimum is global among even noise with one mode on the points that are given. Its
solutions are staircases, cut off where δ allows it [Geng and Viswanath 2016]. The least ε of which
the optimum is at most δ is found by bisection.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_HALVINGS = 40  # of the interval in which ε lies
_MARGIN = 1e-7  # relative, of δ: what the solver's own tolerances may cost


def least_masses(
    cost: Array, most: float, shift: int, rate: float, delta: float, highest: float
) -> tuple[float, Array]:
    """Return the least ε of one step at δ, and the masses of 0, 1, …, K that have it.

    `highest` is an ε that is known to be reached.
    """
    low = 0.0
    high = highest
    masses: Array | None = None
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        least, tried = _least_delta(cost, most, shift, rate, middle)
        if least <= delta * (1.0 - _MARGIN):
            high = middle
            masses = tried
        else:
            low = middle
    if masses is None:
        raise AccuracyError("the linear program of one step found no noise of this cost")
    return high, masses


def _least_delta(
    cost: Array, most: float, shift: int, rate: float, epsilon: float
) -> tuple[float, Array]:
    """Return the least δ at ε, and masses that have it."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, eye_array, hstack, vstack

    half = cost.size
    reach = half - 1
    places = np.arange(-reach, reach + shift + 1)
    size = places.size

    def law(moved: int) -> Any:
        """Return the masses at all places of the noise moved up, as a matrix of p."""
        index = np.abs(places - moved)
        inside = index <= reach
        rows = np.nonzero(inside)[0]
        return coo_array((np.ones(rows.size), (rows, index[inside])), shape=(size, half)).tocsr()

    q = law(0)
    p = rate * law(shift) + (1.0 - rate) * q
    factor = math.exp(epsilon)
    sides = [p - factor * q]
    if rate < 1.0:  # else both directions have one law of the loss
        sides.append(q - factor * p)
    many = len(sides)
    blocks = []
    for number, side in enumerate(sides):
        slacks = [coo_array((size, size)) for _ in sides]
        slacks[number] = -eye_array(size)
        blocks.append(hstack([side, *slacks, coo_array((size, 1))]))
    falls = hstack([
        eye_array(reach, half, k=1) - eye_array(reach, half),
        coo_array((reach, many * size + 1)),
    ])  # fmt: skip
    largest = np.zeros((many, half + many * size + 1))
    for number in range(many):
        start = half + number * size
        largest[number, start : start + size] = 1.0
        largest[number, -1] = -1.0
    twice = np.full(half, 2.0)
    twice[0] = 1.0
    beyond = np.zeros(many * size + 1)
    mean_cost = np.concatenate([twice * cost, beyond])
    upper = vstack([*blocks, falls, coo_array(largest), coo_array(mean_cost[None, :])]).tocsr()
    bound = np.zeros(upper.shape[0])
    bound[-1] = most
    aim = np.zeros(upper.shape[1])
    aim[-1] = 1.0
    total = np.concatenate([twice, beyond])
    solved = linprog(
        aim, upper, bound, coo_array(total[None, :]).tocsr(), [1.0], method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )  # fmt: skip
    if solved.x is None:
        return math.inf, np.zeros(half)
    masses = np.maximum(solved.x[:half], 0.0)
    return float(solved.fun), masses
