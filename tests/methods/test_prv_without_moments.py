"""The default method of losses without moments, against every step rounded down and up."""

import numpy as np
import pytest
import sympy

import symdp
from symdp.methods.loss_mesh import GridSum

x = sympy.Symbol("x", real=True)
SHIFT, STEPS, SPACING, LOWEST, LARGEST = 0.1, 5, 1e-3, -4.0, 250.0


def log_density(places: np.ndarray) -> np.ndarray:
    """Return the log density of inverse Gaussian noise of mean 1."""
    return -((places - 1) ** 2) / (2 * places) - 0.5 * np.log(2 * np.pi * places**3)


def rounded_deltas(epsilon: float) -> list[float]:
    """Return δ with the loss of every step rounded down, and up, by the trapezoid over log y."""
    y = np.exp(np.linspace(-14.0, 5.0, 500_001))
    density = np.exp(log_density(y + SHIFT)) * y * np.log(y[1] / y[0])
    loss = np.minimum(log_density(y + SHIFT) - log_density(y), LARGEST)
    cells = round((LARGEST - LOWEST) / SPACING) + 1
    total = STEPS * LOWEST + SPACING * np.arange(STEPS * cells)
    found = []
    for rounded in (np.floor, np.ceil):
        places = rounded((loss - LOWEST) / SPACING).astype(int)
        mass = np.bincount(places, density, cells)
        sums = np.fft.irfft(np.fft.rfft(mass, 1 << 21) ** STEPS, 1 << 21)[: total.size]
        payoff = -np.expm1(np.minimum(epsilon - total, 0.0))
        found.append(1.0 - density.sum() ** STEPS + float(sums @ payoff))
    return found


@pytest.fixture(scope="module")
def steps():
    noise = sympy.exp(-((x - 1) ** 2) / (2 * x)) / sympy.sqrt(2 * sympy.pi * x**3)
    support = sympy.Interval(0, sympy.oo)
    mechanism = symdp.Mechanism.additive(
        noise, x, sympy.Rational(1, 10), support=support, name="inverse Gaussian"
    )
    return symdp.compose(mechanism, STEPS)


@pytest.mark.slow
def test_delta_lies_between_those_of_rounded_losses(steps):
    answer = steps.delta(1.0, direction="add")
    lower, upper = rounded_deltas(1.0)
    # A line, whose end is bounded, answers exactly what rounded losses bound.
    assert (answer.kind, answer.route) == ("exact", "contour")
    assert lower < answer.upper
    assert answer.lower < upper
    assert answer.upper - answer.lower < 1e-3


@pytest.mark.slow
def test_epsilon_is_found_from_quantiles_where_a_variance_would_mislead(steps):
    answer = steps.epsilon(0.3, direction="add")
    assert (answer.kind, answer.route) == ("exact", "contour")
    lower, upper = rounded_deltas(answer.epsilon)
    assert lower < 0.3 < upper
    assert answer.upper - answer.lower < 0.01


def test_a_payoff_on_a_mesh_wider_than_the_range_of_exponentials():
    mass = np.array([0.125, 0.25, 0.375, 0.25])
    total = GridSum(mass, -5000.0, 2000.0, 1e-16)
    assert total.payoff(-3500.0, 0.0, 0.0) == 0.875
    assert total.payoff(1.0, 0.0, -1e4) == 1.0
    assert total.payoff(1000.0, 0.0, 0.0) == 0.0
