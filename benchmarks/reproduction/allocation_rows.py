"""One epoch in which every record takes part once: random allocation beside what stands in for it.

What is held equal is the noise of a model update. With N records, t steps and noise multiplier σ,
a batch of N/t records has a mean gradient with noise of standard deviation tσC/N. A batch of all
records has that noise at the multiplier tσ: its t steps are one Gaussian of noise σ√t.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from drawing import Curve, Figure, Panel

import symdp
from symdp.errors import SymdpError

STEPS, DELTA, SIGMA = 100, 1e-6, "1/2"
SIGMAS = ["0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1", "1.2", "1.4", "1.7", "2", "2.5", "3", "4"]
EPSILONS = [0.1 * i for i in range(1, 81)]
ALLOCATED, POISSON, FULL = (
    "one step of 100, drawn at random",
    "Poisson, rate 1/100",
    "all records in every step",
)
KNOWN = "one step, which is known"


@cache
def epoch(kind: str, sigma: str) -> symdp.Composition:
    """One epoch; numbers are decimals or ratios, taken exactly."""
    noise = symdp.mechanisms.gaussian(sigma=sigma)
    if kind == ALLOCATED:
        return symdp.compose(noise.subsample("random_allocation", steps=STEPS), 1)
    if kind == POISSON:
        return symdp.compose(noise.subsample("poisson", Fraction(1, STEPS)), STEPS)
    if kind == KNOWN:
        return symdp.compose(noise, 1)
    return symdp.compose(symdp.mechanisms.gaussian(sigma=STEPS * Fraction(sigma)), STEPS)


def epsilon(kind: str, sigma: str) -> float:
    """ε at δ = 1e-6, the larger direction; nan where it is refused."""
    try:
        return epoch(kind, sigma).epsilon(DELTA).epsilon
    except SymdpError:
        return math.nan


def profile(kind: str) -> list[float]:
    """δ(ε) at the small noise."""
    return [epoch(kind, SIGMA).delta(e).delta for e in EPSILONS]


def crossing() -> tuple[float, float]:
    """The ε, and its δ, below which Poisson sampling says too little at the small noise."""

    def gap(e: float) -> float:
        own, other = (epoch(kind, SIGMA).delta(e).delta for kind in (ALLOCATED, POISSON))
        return math.log(own / other)

    low, high = EPSILONS[0], EPSILONS[-1]
    assert gap(low) > 0 > gap(high)
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gap(middle) > 0 else (low, middle)
    return low, epoch(ALLOCATED, SIGMA).delta(low).delta


def figure() -> Figure:
    """ε against the noise, and both profiles where the noise is small."""
    kinds = (ALLOCATED, POISSON, FULL, KNOWN)
    noise = [float(s) for s in SIGMAS]
    found = {kind: [epsilon(kind, s) for s in SIGMAS] for kind in kinds}
    meet, there = crossing()
    rows = [
        (s, *(f"{found[kind][i]:.4f}" for kind in kinds))
        for i, s in enumerate(SIGMAS)
        if s in {"0.5", "0.7", "1", "2", "4"}
    ]
    text = (
        "One epoch of 100 steps with Gaussian noise, the larger of both directions, exact. Noise "
        "of a model update is equal in three of them: a batch of a hundredth of the records has "
        "the multiplier σ, one of all records 100σ. The fourth is what an attacker gets who knows "
        f"the record's step. At σ = {float(Fraction(SIGMA)):g} the profiles cross at ε = "
        f"{meet:.3f}, δ = {there:.3f}: at larger δ Poisson sampling reports less than random "
        "allocation, and is no bound on it; at smaller δ it reports more. The more noise, the "
        "nearer random allocation comes to batches of all records."
    )
    return Figure(
        "allocation",
        "Random allocation, Poisson sampling and full batches",
        text,
        [
            Panel(
                "ε at δ = 1e-6",
                "noise multiplier σ",
                "ε",
                [Curve(kind, noise, found[kind]) for kind in kinds],
                log_x=True,
                log_y=True,
                x_ticks=(0.4, 0.6, 1, 2, 3, 4),
            ),
            Panel(
                f"little noise: σ = {float(Fraction(SIGMA)):g}",
                "ε",
                "δ",
                [
                    *(Curve(kind, EPSILONS, profile(kind)) for kind in (ALLOCATED, POISSON)),
                    Curve("where they cross", [meet], [there], dots=True),
                ],
                log_y=True,
                y_range=(1e-6, 0.5),
            ),
        ],
        "",
        "t = 100, σ from 0.4 to 4, δ = 1e-6",
        rows,
        ("σ", *kinds),
    )
