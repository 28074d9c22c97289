"""The saddle point's expansions leave what their stated orders say, at every order that is printed.

K is written by hand here; a tilt's error is what it leaves in nK′(t) = ε + 1/t + 1/(1 + t), divided
by the slope.
"""

from __future__ import annotations

import math
from functools import cache

import mpmath
import pytest
import sympy as sp
from mpmath import exp, log

from symdp.derive.asymptotics import (
    DEVIATION,
    LEVEL,
    PLACE,
    Expansion,
    at_place,
    central,
    fixed,
    kappa,
    large,
)
from symdp.derive.records import COUNT, EPSILON

DIGITS = 50
COUNTS = (10**6, 10**8)
XI, FIXED = (mpmath.mpf(-1), mpmath.mpf("1.5")), mpmath.mpf(2)
EXPANDED = {"central": central, "fixed": fixed, "large": large}
REGIMES = tuple(EXPANDED)
PRINTED = {"central": 3, "fixed": 3, "large": 2}  # the highest order that is asked
RATE = {"gaussian": "0.3", "laplace": "0.4", "gumbel": "0.35", "discrete laplace": "0.45"}  # tilts


def gaussian(t):
    """Noise of standard deviation 2."""
    return t * (1 + t) / 8


def laplace(t):
    """Noise of scale 2: masses at both ends of the loss and an exponential between them."""
    return log(((1 + t) * exp(t / 2) + t * exp(-(1 + t) / 2)) / (1 + 2 * t))


def gumbel(t):
    """Noise of scale 2: a gamma integral of whole order."""
    return (1 + t) / 2 - log((1 + t) * exp(mpmath.mpf(1) / 2) - t)


def discrete_laplace(t):
    """Masses that fall by a = e^{−1/2}: two geometric series."""
    a = exp(-mpmath.mpf(1) / 2)
    return log((a ** (1 + t) + a**-t) / (1 + a))


LAWS = {
    "gaussian": gaussian,
    "laplace": laplace,
    "gumbel": gumbel,
    "discrete laplace": discrete_laplace,
}


@cache
def derivative(name: str, order: int, place: str) -> mpmath.mpf:
    """K⁽ʲ⁾ by mpmath's differences."""
    with mpmath.workdps(DIGITS + 40):
        return mpmath.diff(LAWS[name], mpmath.mpf(place), order)


def in_numbers(name: str, expression: sp.Expr, count: int, xi: mpmath.mpf) -> mpmath.mpf:
    """Put cumulants, derivatives at the regime's tilt, n and ε into a formula."""
    values: dict[sp.Symbol, object] = {COUNT: count, DEVIATION: xi, EPSILON: FIXED}
    values[PLACE] = mpmath.mpf(RATE[name])
    values[LEVEL] = derivative(name, 1, RATE[name])
    for j in range(12):
        values[kappa(j)] = derivative(name, j, "0") if expression.has(kappa(j)) else 0
        values[at_place(j)] = derivative(name, j, RATE[name]) if expression.has(at_place(j)) else 0
    symbols = sorted(expression.free_symbols, key=str)
    return sp.lambdify(symbols, expression, "mpmath")(*(values[s] for s in symbols))


def error(name: str, expansion: Expansion, count: int, xi: mpmath.mpf) -> mpmath.mpf:
    """One Newton step from the printed tilt to the saddle point."""
    t = in_numbers(name, expansion.tilt, count, xi)
    epsilon = in_numbers(name, expansion.epsilon, count, xi)
    slope, bend = (mpmath.diff(LAWS[name], t, order) for order in (1, 2))
    left = count * slope - epsilon - 1 / t - 1 / (1 + t)
    return left / (count * bend + 1 / t**2 + 1 / (1 + t) ** 2)


@pytest.mark.slow_cases(
    *(f"fixed-3-{name}" for name in LAWS),
    *(f"central-3-{name}" for name in LAWS if name != "gumbel"),
    "central-3-gumbel",
)
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(
    ("regime", "order"), [(r, order) for r in REGIMES for order in range(PRINTED[r] + 1)]
)
def test_a_tilt_leaves_what_its_order_says(name: str, regime: str, order: int) -> None:
    is_lattice = name == "discrete laplace"
    expansion = EXPANDED[regime](order, is_lattice)
    assert expansion.regime == regime
    with mpmath.workdps(DIGITS):
        for xi in XI if regime == "central" else XI[:1]:
            errors = [abs(error(name, expansion, n, xi)) for n in COUNTS]
            power = float(log(errors[1] / errors[0]) / math.log(COUNTS[1] / COUNTS[0]))
            assert power == pytest.approx(float(expansion.tilt_order), abs=0.02)


@pytest.mark.quick_cases("0")
@pytest.mark.parametrize("order", range(3))
def test_log_delta_of_a_gaussian_leaves_what_its_order_says(order: int) -> None:
    """δ of n steps are two normal tails."""
    with mpmath.workdps(800):
        for regime in ("fixed", "large"):
            expansion = EXPANDED[regime](order)
            is_fixed = regime == "fixed"
            errors = []
            for n in (5000, 20000):
                epsilon = FIXED if is_fixed else n * derivative("gaussian", 1, "0.3")
                mu = mpmath.sqrt(n) / 2
                tails = mpmath.ncdf(-epsilon / mu + mu / 2), mpmath.ncdf(-epsilon / mu - mu / 2)
                delta = tails[0] - exp(epsilon) * tails[1]
                true = log(1 - delta) if is_fixed else log(delta)
                place = "-0.5" if is_fixed else "0.3"
                errors.append(abs(true - saddle_value(expansion, n, place)))
            power = float(log(errors[1] / errors[0]) / math.log(4))
            assert expansion.log_order is not None
            assert power == pytest.approx(float(expansion.log_order), abs=0.15)


def saddle_value(expansion: Expansion, count: int, place: str) -> mpmath.mpf:
    """The printed log δ of Gaussian noise with the tilt where K′ is 0, or the level."""
    assert expansion.log_delta is not None
    s = mpmath.mpf(place)
    values: dict[sp.Symbol, object] = {COUNT: count, EPSILON: FIXED, PLACE: s}
    values[LEVEL] = (1 + 2 * s) / 8
    values |= {at_place(j): v for j, v in enumerate((gaussian(s), 0, mpmath.mpf(1) / 4, 0, 0))}
    symbols = sorted(expansion.log_delta.free_symbols, key=str)
    return sp.lambdify(symbols, expansion.log_delta, "mpmath")(*(values[k] for k in symbols))
