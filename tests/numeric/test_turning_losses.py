"""Few steps whose loss turns, or whose density is infinite at an end, against integrals."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from catalogue import ALL

import symdp
from symdp import compose
from symdp.model.mechanism import Mechanism

WIDEST = 1e-4  # of an interval, in log δ: lines are long where the density is infinite


def assert_held(steps, epsilon, direction, log_truth, width):
    """The interval of the default answer holds the truth and is no wider than that."""
    found = steps.delta(epsilon, direction=direction)
    assert found.log_lower <= log_truth <= found.log_upper
    assert found.log_upper - found.log_lower <= width


def gaussians(wide, narrow):
    variable = sp.Symbol("x", real=True)
    laws = [sp.exp(-(variable**2) / (2 * v)) / sp.sqrt(2 * sp.pi * v) for v in (wide, narrow)]
    return Mechanism.from_pair(*laws, variable)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["-0.005", "0.001", "0.3", "4"])
def test_two_sampled_steps_whose_loss_turns_against_an_integral_over_one(epsilon):
    """A rare wide Gaussian: most losses lie next to the least, next to where the density is."""
    steps = compose(gaussians(4, 1).subsample("poisson", "1/100"), 2)
    with mpmath.workdps(25):
        rate, limit = mpmath.mpf("0.01"), mpmath.mpf(float(epsilon))

        def loss(x):
            return mpmath.log(1 - rate + rate / 2 * mpmath.exp(3 * x * x / 8))

        def place(value):
            return mpmath.sqrt(mpmath.log((mpmath.exp(value) - 1 + rate) * 2 / rate) * 8 / 3)

        def gain(x):
            rest = limit - loss(x)
            far = place(rest) if rest > loss(0) else mpmath.mpf(0)
            under_q = mpmath.erfc(far / mpmath.sqrt(2))
            under_p = (1 - rate) * under_q + rate * mpmath.erfc(far / mpmath.sqrt(8))
            return (
                2 * mpmath.npdf(x) * (mpmath.exp(loss(x)) * under_p - mpmath.exp(limit) * under_q)
            )

        end = place(limit - loss(0))
        below = [end * mpmath.mpf(k) / 8 for k in range(8)] + [
            end * (1 - mpmath.mpf(4) ** -k) for k in range(2, 9)
        ]
        cuts = [*sorted(below), end, end + 1, end + 4, end + 10, end + 30]
        log_truth = float(mpmath.log(mpmath.quad(gain, cuts)))
    assert_held(steps, float(epsilon), "remove", log_truth, WIDEST)


def shapes():
    """Chi-square noise of 5 and 2 degrees: next to 0 the loss grows like x^{3/2}."""
    ratio = 1 / (mpmath.gamma(2.5) * mpmath.mpf(2) ** 1.5)

    def place(growth):
        return (growth / ratio) ** (mpmath.mpf(2) / 3)

    def under(far):
        return mpmath.gammainc(2.5, far / 2, regularized=True), mpmath.exp(-far / 2)

    def step(x):
        return mpmath.exp(-x / 2) / 2, ratio * x**1.5

    return ALL["chi-square"].mechanism("shapes")(a=5, c=2), place, under, step


def heavy_scales():
    """Lévy noise of two scales, by y = 1/x: next to y = 0 the density grows like 1/√y."""
    ratio = mpmath.sqrt(2) / 2

    def place(growth):
        return 2 * mpmath.log(growth / ratio)

    def under(far):
        return mpmath.erfc(mpmath.sqrt(far / 2)), mpmath.erfc(mpmath.sqrt(far))

    def step(y):
        return mpmath.exp(-y) / mpmath.sqrt(mpmath.pi * y), ratio * mpmath.exp(y / 2)

    return ALL["levy scales"].mechanism("scales")(a=1, c=2), place, under, step


def shapes_without_end():
    """Chi-square noise of 1 and 5 degrees, by y = 1/x: mass as close to x = 0 as 1e-60 counts."""
    ratio = mpmath.gamma(2.5) * 4 / mpmath.gamma(0.5)

    def place(growth):
        return mpmath.sqrt(growth / ratio)

    def under(far):
        x = 1 / far / 2
        return (mpmath.gammainc(degrees, 0, x, regularized=True) for degrees in (0.5, 2.5))

    def step(y):
        density = y**-3.5 * mpmath.exp(-1 / y / 2) / (2**2.5 * mpmath.gamma(2.5))
        return density, ratio * y**2

    return ALL["chi-square"].mechanism("shapes")(a=1, c=5), place, under, step


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["-0.004", "0.2"])
@pytest.mark.parametrize(
    ("made", "shells"), [(shapes, 20), (heavy_scales, 20), (shapes_without_end, 160)]
)
def test_two_sampled_steps_next_to_whose_least_loss_densities_grow_without_end(
    made, shells, epsilon
):
    """The integral over one step's outcomes of what the other gives beyond the rest."""
    with mpmath.workdps(25):
        noise, place, under, step = made()
        rate, limit = mpmath.mpf("0.01"), mpmath.mpf(float(epsilon))
        slowest = step(mpmath.mpf("1e-60"))[1]
        least = 1 - rate + rate * slowest

        def far_from(loss):
            return place(max((mpmath.exp(loss) - 1 + rate) / rate, slowest))

        def gain(root):
            density, growth = step(root**2)
            ratio = 1 - rate + rate * growth
            far = far_from(limit - mpmath.log(ratio))
            under_p, under_q = under(mpmath.mpf(far))
            mixed = (1 - rate) * under_q + rate * under_p
            return 2 * root * density * (ratio * mixed - mpmath.exp(limit) * under_q)

        end = mpmath.sqrt(far_from(limit - mpmath.log(least)))
        below = [end * mpmath.mpf(k) / 32 for k in range(1, 32)]
        below += [end * mpmath.mpf(4) ** -k for k in range(2, 9)]
        below += [end * (1 - mpmath.mpf(4) ** -k) for k in range(2, 9)]
        above = [end + k * mpmath.mpf(2) ** -6 * 1.6**k for k in range(shells)]
        cuts = [mpmath.mpf("1e-40"), *sorted(below), *above]
        log_truth = float(mpmath.log(mpmath.quad(gain, cuts)))
    steps = compose(noise.subsample("poisson", "1/100"), 2)
    assert_held(steps, float(epsilon), "remove", log_truth, 1e-6 if made is shapes else WIDEST)


WAVES = {  # that go on for ever, with what their densities are times an exponential
    "one wave": ("exp(-x)*(1 + cos(3*x)/2)", "1/2000", lambda x: 1 + np.cos(3 * x) / 2),
    "two lengths": (
        "exp(-x)*(5 + cos(x) + 3*sin(20*x)**3)",
        "1/7",
        lambda x: 5 + np.cos(x) + 3 * np.sin(20 * x) ** 3,
    ),
    "none alike": (
        "exp(-x)*(3 + cos(x) + cos(sqrt(2)*x))",
        "1/10",
        lambda x: 3 + np.cos(x) + np.cos(math.sqrt(2) * x),
    ),
}


@pytest.mark.parametrize("name", WAVES)
def test_waves_that_go_on_bound_the_loss(name):
    """The ends hold every crest; where all crests are alike they are hardly farther away."""
    density, shift, wave = WAVES[name]
    noise = symdp.Mechanism.from_toml(
        'name = "waves"\nvariable = "x"\nsupport = [0, "oo"]\n[noise]\nnormalize = true\n'
        f'shift = "exactly"\ndensity = "{density}"\nsensitivity = "{shift}"\n'
    )
    part, _ = symdp.compose(noise, 1).law("remove").parts[0]
    low, high = part.loss_bounds
    size = float(Fraction(shift))
    x = np.linspace(size, 5000.0, 2_000_001)
    losses = size + np.log(wave(x - size) / wave(x))
    room = 2e-2 * np.ptp(losses) if name != "one wave" else 1e-4 * np.ptp(losses)
    assert low <= losses.min() + 1e-12
    assert high >= losses.max() - 1e-12
    if name != "none alike":
        assert low > losses.min() - room
        assert high < losses.max() + room
