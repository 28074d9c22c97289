"""The Edgeworth accountant's figures, with the baselines that symdp has, and one of IND."""

from __future__ import annotations

import math

from drawing import Curve, Figure, Panel
from jobs import EPSILON, STEPS, counts, epsilon, epsilon_interval, job

import symdp


def figures() -> list[Figure]:
    return [_estimates(), _intervals()]


def _panel(title: str, sigma: str, rate: str, numbers: list[int], target: float) -> Panel:
    jobs = [job(sigma, rate, n) for n in numbers]
    curves = [
        Curve("contour", numbers, [epsilon(j, target) for j in jobs]),
        Curve("gaussian", numbers, [epsilon(j, target, "gaussian") for j in jobs]),
        Curve("renyi", numbers, [epsilon(j, target, "renyi") for j in jobs]),
        Curve("edgeworth:2", numbers, [epsilon(j, target, "edgeworth:2") for j in jobs], dots=True),
    ]
    few = numbers[::3]
    bounds = [epsilon_interval(job(sigma, rate, n), target, "prv") for n in few]
    curves.append(Curve("prv", few, [b[0] for b in bounds], [b[1] for b in bounds]))
    return Panel(title, STEPS, EPSILON, curves)


def _estimates() -> Figure:
    left = _panel("q = 0.01, σ = 0.8, δ = 0.015", "0.8", "0.01", counts(100, 2000, 10), 0.015)
    right = _panel("q = 0.05, σ = 1, δ = 1e-5, 10 epochs", "1", "0.05", counts(10, 200, 10), 1e-5)
    rows = []
    for panel in (left, right):
        exact, gaussian, renyi, second = (c.y for c in panel.curves[:4])
        for label, values in (("gaussian", gaussian), ("renyi", renyi), ("edgeworth:2", second)):
            errors = [v / e - 1.0 for v, e in zip(values, exact, strict=True) if e > 0]
            finite = [e for e in errors if not math.isnan(e)]
            rows.append(
                (panel.title, f"`{label}`", f"{min(finite):+.1e}", f"{max(finite):+.1e}",
                 f"{finite[-1]:+.1e}")
            )  # fmt: skip
    return Figure(
        "ea-2",
        "EA Figure 2: second-order Edgeworth estimates",
        "ε at fixed δ over the number of steps. Relative errors of ε along the curves:",
        (left, right),
        "q = 0.01, σ = 0.8, δ = 0.015; q = 0.05, σ = 1, δ = 1e-5, 10 epochs",
        "the numbers of steps, 100 to 2000 on the left; `prv` and `renyi` in place of the software "
        "that the paper compares with",
        rows,
        ("setting", "method", "least", "largest", "at the end"),
    )


def _intervals() -> Figure:
    target, sigma = 0.1, "0.8"
    rates = (
        ("q = 0.4/√m", lambda m: 0.4 / math.sqrt(m)),
        ("q = 1/√(m log m)", lambda m: 1.0 / math.sqrt(m * math.log(m))),
        ("q = 0.1 √(log m/m)", lambda m: 0.1 * math.sqrt(math.log(m) / m)),
    )
    numbers = counts(1000, 10_000_000, 9)
    panels, rows = [], []
    for title, rate in rates:
        jobs = [
            symdp.compose(
                symdp.mechanisms.gaussian(sigma=sigma).subsample("poisson", f"{rate(m):.12g}"), m
            )
            for m in numbers
        ]
        exact = [epsilon(j, target) for j in jobs]
        bounds = [epsilon_interval(j, target, "eeai") for j in jobs]
        for (low, high), value in zip(bounds, exact, strict=True):
            assert low <= value <= high, "the interval lost the exact value"
        panels.append(
            Panel(
                title, STEPS, EPSILON,
                (
                    Curve("contour", numbers, exact),
                    Curve("eeai", numbers, [b[0] for b in bounds], [b[1] for b in bounds]),
                    Curve("renyi", numbers, [epsilon(j, target, "renyi") for j in jobs]),
                    Curve(
                        "edgeworth:2", numbers,
                        [epsilon(j, target, "edgeworth:2") for j in jobs], dots=True,
                    ),
                ),
                log_x=True,
            )
        )  # fmt: skip
        for place in (0, len(numbers) // 2, -1):
            low, high = bounds[place]
            rows.append(
                (title, f"{numbers[place]:,}", f"{low:.6f}", f"{exact[place]:.6f}", f"{high:.6f}",
                 f"{panels[-1].curves[2].y[place]:.6f}")
            )  # fmt: skip
    return Figure(
        "ea-3",
        "EA Figure 3: the exact Edgeworth interval",
        "σ = 0.8, δ = 0.1, the rate q falling with the number m of steps. The interval holds the "
        "exact ε at every point drawn.",
        panels,
        "σ = 0.8, δ = 0.1, and q over the number of steps",
        "the numbers of steps, 1000 to 10 000 000",
        rows,
        ("q", "m", "lower", "exact ε", "upper", "`renyi`"),
    )
