"""What [IND] prints and draws, computed anew: python -m benchmarks.individual.reproduction.

MNIST's and MIMIC-III's gradient norms are not here: MIMIC-III needs PhysioNet credentials, and the
norms of Fig. 1 come from the authors' training run; its accounting is shown on one full clip.
"""

from __future__ import annotations

import math

import numpy as np

from symdp.individual import GaussianFilter, from_counts
from symdp.individual.gaussian import epsilon_of, log_profile

DELTA = 1e-5


def renyi_epsilon(steps, sigma=100.0):
    return from_counts([sigma], [[steps]], 1.0, "remove").epsilon(DELTA, method="renyi").epsilon[0]


def most_steps(epsilon, by):
    low, high = 1, 4096
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if by(middle) <= epsilon else (low, middle)
    return low


def gdp_epsilon(steps, sigma=100.0):
    return float(epsilon_of(np.array([math.sqrt(steps) / sigma]), math.log(DELTA))[0])


def rows():
    """Yield (what, printed, computed)."""
    at = renyi_epsilon(420)
    yield "ε of 420 steps, Rényi, σ = 100", "0.8", f"{at:.8f}"
    yield "the same by Gaussian DP", "", f"{gdp_epsilon(420):.8f}"
    yield "how much smaller", "roughly 10 %", f"{1 - gdp_epsilon(420) / at:.2%}"
    yield f"steps at ε = {at:.4f}, Gaussian DP", "495", str(most_steps(at, gdp_epsilon))
    yield "steps at ε = 0.8 exactly, Rényi", "420", str(most_steps(0.8, renyi_epsilon))
    yield "steps at ε = 0.8 exactly, Gaussian DP", "495", str(most_steps(0.8, gdp_epsilon))
    for epsilon in (2.75, 0.5, 10.0):  # the paper prints ε, not the budget that it is
        budget = GaussianFilter(epsilon=epsilon, delta=DELTA).budget
        yield f"MIMIC-III budget at ε = {epsilon:g}", "", f"{budget:.8f}"
    mnist = from_counts([2.0], [[10_000]], 0.005, "remove")
    for delta in (1e-5, 1e-6):
        found = mnist.epsilon(delta)
        yield f"Fig. 1, full clip, δ = {delta:g}: ε", "", f"{found.epsilon[0]:.8f}"
    yield "Fig. 1b: μ at δ₀ = 1e-5", "", f"{mnist.mu(1e-5)[0]:.5f}"


def figures():
    """Return the curves of Figs 3, 4 and 5: δ(ε) at 420 steps, ε against steps."""
    epsilons = np.linspace(0.1, 0.9, 50)
    steps = np.arange(10, 601, 10)
    records = from_counts([100.0], np.full((50, 1), 420), 1.0, "remove")
    alone = from_counts([100.0], steps[:, None], 1.0, "remove")
    return {
        "fig3": (
            epsilons,
            records.delta(epsilons, method="renyi").delta,
            np.exp(log_profile(np.full(50, math.sqrt(420) / 100), epsilons)),
        ),
        "fig45": (
            steps,
            alone.epsilon(DELTA, method="renyi").epsilon,
            alone.epsilon(DELTA).epsilon,
        ),
    }


def main():
    for what, printed, computed in rows():
        print(f"{what:45s} {printed:>14s} {computed:>14s}")
    for name, (x, bound, exact) in figures().items():
        print(name)
        for i in range(0, len(x), 7):
            print(f"  {x[i]:8.4g}  Rényi {bound[i]:.8g}  Gaussian DP {exact[i]:.8g}")


if __name__ == "__main__":
    main()
