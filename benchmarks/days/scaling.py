"""How the cost grows with the numbers of steps, kinds of steps, records and sweep points."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import symdp

_LEVELS = (1, 3, 10, 30, 100, 300, 1000)
_STEPS = tuple(10**k for k in range(1, 10))
_RECORDS = (10, 100, 1000, 10_000, 100_000, 1_000_000)
_POINTS = (1, 3, 10, 30, 100, 300)


def _noise(sigma: Fraction | float | str) -> symdp.Mechanism:
    made: symdp.Mechanism = symdp.mechanisms.gaussian(sigma=sigma)
    return made.subsample("poisson", "1/100")


def _of_steps(count: int) -> object:
    return symdp.compose(_noise(Fraction(3, 2) + Fraction(1, count + 7)), count).epsilon(1e-5)


def _of_levels(many: int) -> object:
    steps = [(_noise(1 + Fraction(k, many) + Fraction(1, 10**6)), 10) for k in range(many)]
    return symdp.compose(steps).epsilon(1e-5)


def _of_records(many: int) -> object:
    counts = np.random.default_rng(1).integers(0, 500, (many, 4))
    return symdp.individual.from_counts([1.0, 2.0, 4.0, 8.0], counts, 0.01).epsilon(1e-5)


def _of_points(many: int) -> object:
    sigmas = [1 + Fraction(k, many) + Fraction(1, 10**7) for k in range(many)]
    sampled = symdp.mechanisms.gaussian.subsample("poisson", "1/100")
    return symdp.sweep(sampled, {"sigma": sigmas}, 1000, delta=1e-5)


CURVES: dict[str, tuple[Callable[[int], object], Sequence[int]]] = {
    "steps": (_of_steps, _STEPS),
    "kinds of steps": (_of_levels, _LEVELS),
    "records": (_of_records, _RECORDS),
    "sweep points": (_of_points, _POINTS),
}


def measured(say: Callable[[str], None]) -> dict[str, Any]:
    """Return sizes, processor seconds and the slope of their logarithms of every curve."""
    _of_steps(100)  # the formula is derived before anything is timed
    found = {}
    for name, (ask, sizes) in CURVES.items():
        seconds = []
        for size in sizes:
            start = time.process_time()
            ask(size)
            seconds.append(time.process_time() - start)
        found[name] = {"sizes": list(sizes), "seconds": seconds, "slope": slope(sizes, seconds)}
        say(f"{name}: slope {found[name]['slope']:.2f}, {seconds[-1]:.2f} s at {sizes[-1]}")
    return found


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope of log seconds against log size, over the second half of the sizes.

    Examples
    --------
    >>> round(slope([1, 10, 100, 1000], [1.0, 1.0, 3.0, 30.0]), 6)
    1.0
    """
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(seconds[half:]), 1)[0])


def draw(curves: dict[str, Any], file: Path) -> None:
    """Draw all curves into one figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "symdp"
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name, curve in curves.items():
        label = f"{name} (slope {curve['slope']:.2f})"
        axes.loglog(curve["sizes"], curve["seconds"], "o-", label=label)
    axes.set(xlabel="how many", ylabel="processor seconds")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)
