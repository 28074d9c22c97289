"""One step whose loss turns many times: every stretch with ℓ > ε counts, asked in any order."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from flint import arb
from scipy.special import erfc, k1

import symdp
from symdp import Mechanism, compose, mechanisms
from symdp.numeric.answer import answer_in_balls

X = sp.Symbol("x", real=True)


def wavy(scale, level, height, frequency, shift):
    """Return normal noise times level + height·cos(frequency·x), as mechanism and as function."""
    s, a, h, b, d = (sp.Rational(value) for value in (scale, level, height, frequency, shift))
    mass = sp.sqrt(2 * sp.pi) * s * (a + h * sp.exp(-((b * s) ** 2) / 2))
    noise = sp.exp(-(X**2) / (2 * s**2)) * (a + h * sp.cos(b * X)) / mass
    s, a, h, b = (float(value) for value in (s, a, h, b))
    total = math.sqrt(2 * math.pi) * s * (a + h * math.exp(-((b * s) ** 2) / 2))

    def density(x):
        return np.exp(-(x**2) / (2 * s * s)) * (a + h * np.cos(b * x)) / total

    return Mechanism.additive(noise, X, sensitivity=d, shift="exactly"), density, float(d)


def summed(density, shift, epsilon):
    """Return ∫ (P − e^ε Q)⁺ by the midpoint rule, off by h² times the slopes at its kinks."""
    edges = np.linspace(-40.0, 40.0, 2_000_001)
    x = 0.5 * (edges[1:] + edges[:-1])
    gain = np.maximum(density(x - shift) - math.exp(epsilon) * density(x), 0.0)
    return float(gain.sum() * (edges[1] - edges[0]))


CASES = {
    "slow": ("2", "3", "2", "942477796/100000000", "1"),  # 3π, nearly
    "half a period": ("2", "2", "1", "628318531/100000000", "1/2"),
    "fast": ("1", "3/2", "1", "40", "1/3"),
    "nearly zero": ("3", "1001/1000", "1", "5", "7/10"),
    "small waves": ("1", "1", "1/100", "25", "1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_stretch_above_epsilon_counts(name):
    mechanism, density, shift = wavy(*CASES[name])
    step = compose(mechanism, 1)
    asked = {}
    for epsilon in (0.5, 1.0, 2.0, -1.0, 0.5):
        answer = step.delta(epsilon, direction="remove")
        assert answer.route == "single"
        assert answer.kind == "exact"
        assert answer.delta == pytest.approx(summed(density, shift, epsilon), abs=1e-8)
        assert asked.setdefault(epsilon, answer.log_delta) == answer.log_delta
    turned = compose(mechanism, 1)
    assert turned.delta(1.0, direction="remove").log_delta == asked[1.0]


@pytest.mark.slow
def test_far_out_rare_stretches_are_found():
    """Of δ(8) = 8e-46 nothing shows in 1 − δ: the tilt that makes ε typical shows the stretches."""
    mechanism, density, shift = wavy("2", "3", "2", "942477796/100000000", "1")
    x = np.linspace(25.0, 60.0, 1_400_001)
    gain = np.maximum(density(x - shift) - math.exp(8.0) * density(x), 0.0)
    found = compose(mechanism, 1).delta(8.0, direction="remove")
    assert found.delta == pytest.approx(float(gain.sum() * (x[1] - x[0])), rel=1e-7)


@pytest.mark.slow
def test_a_largest_loss_that_is_only_seen_ends_nothing_too_early():
    """The loss of a normal and a Cauchy law together peaks at 1.5698, between places of a grid."""
    noise = symdp.Mechanism.from_toml(
        'name = "two_tails"\nvariable = "x"\nsupport = ["-oo", "oo"]\n\n[noise]\n'
        'density = "0.7*exp(-x**2/2)/sqrt(2*pi) + 0.3/(pi*(1 + x**2))"\nsensitivity = 1\n'
        "normalize = true\n"
    )()

    def density(x):
        return 0.7 * np.exp(-x * x / 2) / math.sqrt(2 * math.pi) + 0.3 / (math.pi * (1 + x * x))

    composition = symdp.compose(noise, 1)
    x = np.linspace(1.0, 6.0, 2_000_001)
    for epsilon in (1.4, 1.506, 1.51, 1.56):
        gain = np.maximum(density(x - 1) - math.exp(epsilon) * density(x), 0.0)
        truth = float(np.trapezoid(gain, x))
        answer = composition.delta(epsilon, direction="remove")
        assert answer.lower - 1e-10 <= truth <= answer.upper + 1e-10, epsilon


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [2.6, 2.7320142161970113])
def test_delta_of_a_narrow_far_peak_next_to_its_largest_loss(epsilon):
    """All of δ comes from one peak of width 1/40; the payoff is as small as its rounding there."""

    def density(x):
        return np.exp(-np.sqrt(1 + x * x)) + 0.01 * np.exp(-800 * (x - 7) ** 2)

    noise = symdp.Mechanism.from_toml(
        'name = "far_peak"\nvariable = "x"\nsupport = ["-oo", "oo"]\n\n[noise]\n'
        'density = "exp(-sqrt(1 + x**2)) + 0.01*exp(-800*(x - 7)**2)"\nsensitivity = 0.2\n'
        'shift = "exactly"\nnormalize = true\n'
    )()
    x = np.linspace(6.9, 7.6, 1_400_001)
    gain = np.maximum(density(x - 0.2) - math.exp(epsilon) * density(x), 0.0)
    mass = 2.0 * k1(1.0) + 0.01 * math.sqrt(math.pi / 800)
    answer = symdp.compose(noise, 1).delta(epsilon, direction="remove")
    assert answer.upper - answer.lower < 1e-9 * answer.upper
    truth = float(np.trapezoid(gain, x)) / mass
    assert answer.lower * (1 - 1e-7) <= truth <= answer.upper * (1 + 1e-7)  # of the trapezoids


# ∫ (f(x) − e f(x − 1))⁺ and ∫ (f(x − 1) − e f(x))⁺ by mpmath.quad at 30 digits between the roots.
@pytest.mark.quick_cases("remove-0.24732419047235144")
@pytest.mark.parametrize(
    ("direction", "truth"), [("remove", 0.247324190472351441), ("add", 0.451481352390510004)]
)
def test_no_crossing_is_made_of_rounding(direction, truth):
    """From 9e15 on x and x − 1 are one double, and the loss, −9x + 4.5, falls below ε there.

    Beside that crossing the mass could not be enclosed, and δ was 0, exactly.
    """
    noise = sp.exp(-(X**2) / 2) * (1 + sp.erf(2 * X)) / sp.sqrt(2 * sp.pi)
    answer = compose(Mechanism.additive(noise, X, shift="exactly"), 1).delta(1, direction=direction)
    assert answer.kind == "exact"
    assert answer.lower <= truth * (1 + 1e-15)
    assert answer.upper >= truth * (1 - 1e-15)
    assert answer.upper - answer.lower < 1e-13


def test_what_no_ball_encloses_is_not_zero():
    found = answer_in_balls(arb.nan(), -math.inf)
    assert (found.log_upper, found.kind) == (0.0, "estimate")


@pytest.mark.slow
def test_a_tail_of_erf_beside_another_tail_has_its_logarithm():
    """1 + erf z is no double where it is 1e-400, next to a term that is smaller still."""
    half = (1 + sp.erf(X / 4)) * sp.exp(-(X**2) / 128)
    light = half + sp.exp(-X / 5 - sp.exp(-X / 5)) / 10
    step = compose(Mechanism.from_pair(light, (1 + X**2 / 25) ** -2, X, normalize=True), 1)

    z = np.linspace(-4000.0, 4000.0, 4_000_001)
    p = erfc(-z / 4) * np.exp(-(z**2) / 128)
    p += np.exp(-z / 5 - np.exp(np.minimum(-z / 5, 700.0))) / 10
    q = (1 + z**2 / 25) ** -2
    p, q = p / p.sum(), q / q.sum()
    for direction, first, second in (("remove", p, q), ("add", q, p)):
        truth = float(np.maximum(first - math.exp(0.5) * second, 0.0).sum())
        answer = step.delta(0.5, direction=direction)
        assert answer.delta == pytest.approx(truth, abs=1e-8)


@pytest.mark.slow
def test_a_mixture_of_which_each_part_is_the_lightest_at_one_end_has_its_mass():
    """Of −x² + log(1/4 + 3/4 e^{x² − x}) nothing was left from 1e20 on: a mass of 10^149."""
    heavy, other = sp.exp(-(X**2)), sp.exp(-X - sp.exp(-X))
    pair = Mechanism.from_pair(heavy, other, X, normalize=True).subsample("poisson", "1/4")
    z = np.linspace(-30.0, 60.0, 4_000_001)
    p, q = np.exp(-(z**2)), np.exp(-z - np.exp(np.minimum(-z, 700.0)))
    q /= q.sum()
    p = 0.75 * q + 0.25 * p / p.sum()
    truth = float(np.maximum(p - math.exp(0.1) * q, 0.0).sum())
    answer = compose(pair, 1).delta(0.1, direction="remove")
    assert answer.kind == "exact"
    assert answer.delta == pytest.approx(truth, rel=1e-8)


def test_a_crossing_at_a_place_that_is_looked_at_is_none_of_rounding():
    """ℓ(k) = ε up to the rounding of ε: balls may see the crossing on the other side of k."""
    step = compose(mechanisms.gaussian(sigma=5), 1)
    for k in range(2, 26):
        epsilon = (2 * k - 1) / 50
        tails = [0.5 * math.erfc((5 * epsilon + sign * 0.1) / math.sqrt(2)) for sign in (-1, 1)]
        truth = tails[0] - math.exp(epsilon) * tails[1]
        assert step.delta(epsilon).delta == pytest.approx(truth, rel=1e-9)


def test_places_that_doubles_blur_have_no_crossings():
    """Far left both logarithms are beyond 1e70: 2 000 crossings of rounding were each looked at."""
    x = sp.Symbol("x", real=True)
    y = 5 * x / 8 + sp.Rational(1, 16)
    skewed = (1 + sp.erf(y)) * sp.exp(-(y**2) / 2)
    waves = skewed * (sp.Rational(5, 4) + sp.cos(1 + 33 * x / 10))
    noise = Mechanism.additive(waves, x, sp.Rational(1, 10), normalize=True, shift="exactly")
    (outline,) = compose(noise).law("remove").terms[0][0].outlines
    assert np.abs(outline.x).max() < 1e11  # where the logarithms are -1e20
    at_most = compose(noise).delta(0.183).delta
    assert at_most == pytest.approx(0.0295357703137, rel=1e-7)  # sums over 200 000 panels
