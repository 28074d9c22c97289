"""Figures of individual accounting by Gaussian DP that need no patient's data [IND]."""

from __future__ import annotations

import math

import numpy as np
from drawing import Curve, Figure, Panel
from jobs import DELTA, EPSILON, STEPS, counts, deltas, epsilon, grid, job

from symdp.individual import GaussianFilter, from_counts
from symdp.methods.gaussian import log_gaussian_delta


def steps_within(limit: float, method: str) -> int:
    """The largest number of Gaussian steps, σ = 100, with ε at δ = 1e-5 at most a limit."""
    low, high = 1, 2048
    while high - low > 1:
        middle = (low + high) // 2
        found = epsilon(job("100", "1", middle), 1e-5, method)
        low, high = (middle, high) if found <= limit else (low, middle)
    return low


def numbers() -> list[tuple[str, ...]]:
    """What the paper prints in its text, and what belongs to it: nothing else is "printed"."""
    renyi, exact = (epsilon(job("100", "1", 420), 1e-5, m) for m in ("renyi", "contour"))
    rows = [
        ("ε of 420 steps by the Rényi curve (`renyi`)", "0.8", f"{renyi:.6f}"),
        ("the same by Gaussian DP (exact: `contour`)", "", f"{exact:.6f}"),
        ("how much smaller", "roughly 10 percent", f"{1 - exact / renyi:.2%}"),
        ("steps at that ε by Gaussian DP", "495", str(steps_within(renyi, "contour"))),
        ("steps at ε = 0.8 exactly, Rényi", "", str(steps_within(0.8, "renyi"))),
        ("steps at ε = 0.8 exactly, Gaussian DP", "", str(steps_within(0.8, "contour"))),
    ]
    for target in (2.75, 0.5, 10.0):  # the paper prints ε, not the budget B that it is
        budget = GaussianFilter(epsilon=target, delta=1e-5).budget
        rows.append((f"budget B of ε = {target:g}", "", f"{budget:.8f}"))
    noise = math.sqrt(50) / GaussianFilter(epsilon=2.75, delta=1e-5).budget
    rows.append(("σ at which 50 epochs spend ε = 2.75", "≈ 10.61", f"{noise:.4f}"))
    return rows


def figures() -> list[Figure]:
    return [_clipped_record(), _rounds()]


def _clipped_record() -> Figure:
    run = from_counts([2.0], [[10_000]], 0.005, "remove")
    mu = float(run.mu(1e-5)[0])
    steps, epsilons = job("2", "0.005", 10_000), grid(0.05, 2.5, 20)
    exact = deltas(steps, epsilons)
    bound = [math.exp(log_gaussian_delta(mu, e)) for e in epsilons]
    assert all(b >= d for b, d in zip(bound, exact, strict=True) if d >= 1e-5)
    return Figure(
        "ind-1",
        "IND Figure 1: a record's curve and one Gaussian curve",
        "q = 0.005, σ = 2, 10 000 steps, a record whose gradient is always clipped, and the least "
        f"μ = {mu:.4f} whose Gaussian curve is above its own wherever δ ≥ 1e-5.",
        (
            Panel(
                "δ(ε)", EPSILON, DELTA,
                (Curve("contour", epsilons, exact), Curve("μ-GDP", epsilons, bound)),
                log_y=True,
            ),
        ),
        given="σ = 2, batches of 300, 50 epochs of MNIST",
        chosen="the record, because a histogram over MNIST's records needs its data",
    )  # fmt: skip


def _rounds() -> Figure:
    """Figures 3 to 5 are of the private gradient descent with σ = 100."""
    steps, epsilons, many = job("100", "1", 420), grid(0.1, 0.9, 17), counts(10, 600, 12)
    jobs = [job("100", "1", k) for k in many]
    ratio = np.asarray([epsilon(j, 1e-5, "renyi") / epsilon(j, 1e-5) for j in jobs])
    return Figure(
        "ind-3",
        "IND Figures 3, 4 and 5: Rényi divergences against Gaussian DP",
        "σ = 100 without sampling: δ(ε) of 420 steps, and ε at δ = 1e-5 over the number of steps. "
        f"Rényi's ε is above the exact one by {ratio.min() - 1:.1%} to {ratio.max() - 1:.1%}.",
        (
            Panel(
                "420 steps", EPSILON, DELTA,
                (
                    Curve("contour", epsilons, deltas(steps, epsilons)),
                    Curve("renyi", epsilons, deltas(steps, epsilons, "renyi")),
                ),
                log_y=True,
            ),
            Panel(
                "δ = 1e-5", STEPS, EPSILON,
                tuple(
                    Curve(name, many, [epsilon(j, 1e-5, name) for j in jobs])
                    for name in ("contour", "renyi")
                ),
            ),
        ),
        given="σ = 100, 420 steps, δ = 1e-5",
        chosen="the ranges of ε and of the number of steps",
    )  # fmt: skip
