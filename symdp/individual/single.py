"""One record at a time, by the accountants that serve any composition."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.questions.composition import Composition


def step_mechanism(noise: float, rate: float) -> Mechanism:
    """Return the mechanism of one Gaussian step with Poisson sampling.

    Examples
    --------
    >>> step_mechanism(2.0, 0.25).summary
    'step(sigma=2), poisson sampling at rate 1/4'
    """
    import sympy as sp

    from symdp.model.mechanism import Mechanism

    x, sigma = sp.Symbol("x", real=True), sp.Symbol("sigma", positive=True)
    density = sp.exp(-(x**2) / (2 * sigma**2)) / (sigma * sp.sqrt(2 * sp.pi))
    step = Mechanism.additive(density, x, sensitivity=1, name="step")(sigma=noise)
    return step if rate == 1.0 else step.subsample("poisson", rate)


def record_composition(work: Any, record: int) -> Composition:
    """Return a record's steps as a composition."""
    from symdp.questions.composition import compose

    counts = np.asarray(work.counts[record])
    steps = []
    for b in np.flatnonzero(counts):
        if work.mechanisms is not None:
            mechanism = work.mechanisms[b]
        elif math.isfinite(work.noise[b]) and work.rate[b] > 0.0:
            mechanism = step_mechanism(float(work.noise[b]), float(work.rate[b]))
        else:
            mechanism = None
        if mechanism is not None:
            steps.append((mechanism, int(counts[b])))
    return compose(steps)


def single_record(work: Any, asked: Any, record: int) -> tuple[float, float]:
    """Return a record's ε, or log δ, by its own contour, and its error (of ε, or relative of δ).

    Raises
    ------
    AccuracyError
        If it cannot be answered to its accuracy.
    """
    composition = record_composition(work, record)
    if asked.log_delta is not None:
        found = composition.epsilon(math.exp(asked.log_delta), direction=asked.direction)
        ends = found.epsilon_lower, found.epsilon_upper
        value = found.epsilon
    else:
        found = composition.delta(float(asked.epsilon[record]), direction=asked.direction)
        ends = found.log_lower, found.log_upper
        value = found.log_delta
    width = max((abs(e - value) for e in ends if e is not None), default=0.0)
    return value, width
