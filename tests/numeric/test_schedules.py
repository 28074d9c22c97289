"""Schedules whose noise jumps, bends or is apart in one step: each step counts as itself."""

from __future__ import annotations

import math
import random

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

import symdp
from symdp import compose

NORMAL = """
name = "schedule"
variable = "x"
support = ["-oo", "oo"]
[parameters]
t = "positive"
[noise]
density = "exp(-x**2/(2*({0})**2))/(({0})*sqrt(2*pi))"
sensitivity = 1
"""


def schedule(path, sigma):
    """Normal noise whose standard deviation is a function of t."""
    file = path / "schedule.toml"
    file.write_text(NORMAL.format(sigma))
    return symdp.load(file)


def normal_delta(sigmas, epsilon):
    """δ of normal noise with sensitivity 1: μ² adds up, and μ has a closed form."""
    with mpmath.workdps(40):
        mu = mpmath.sqrt(sum(mpmath.mpf(sigma) ** -2 for sigma in sigmas))
        epsilon = mpmath.mpf(epsilon)
        tail = mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
        return float(mpmath.ncdf(mu / 2 - epsilon / mu) - tail)


def sampled_delta(sigma, others, rate, epsilon):
    """δ of sampled normal steps, a record removed: E δ₁(ε − S), δ₁ of one step in closed form.

    The losses S of `others`, how many by their σ, are convolved on a mesh of 1e-4, on which each is
    split between two places so that its mean stays; what that adds to their variance changes δ by
    1e-7 of itself.
    """
    mesh, half = 1e-4, 1 << 16
    spectrum = np.ones(half + 1, dtype=complex)
    for other, count in others.items():
        x = np.linspace(-12.0 * other, 12.0 * other + 1.0, 40_001)
        normal = np.exp(-(x**2) / (2 * other**2)) * (x[1] - x[0]) / other / math.sqrt(2 * math.pi)
        ratio = 1 - rate + rate * np.exp((2 * x - 1) / (2 * other**2))
        place = np.log(ratio) / mesh
        low = np.floor(place).astype(int)
        masses = np.bincount(low % (2 * half), normal * ratio * (low + 1 - place), 2 * half)
        masses += np.bincount((low + 1) % (2 * half), normal * ratio * (place - low), 2 * half)
        spectrum *= np.fft.rfft(masses) ** count
    shares = np.fft.irfft(spectrum)
    rest = np.exp(epsilon - np.fft.fftfreq(2 * half, 1.0 / (2 * half)) * mesh)
    above = np.maximum(rest - 1 + rate, 1e-300)
    root = sigma**2 * np.log(above / rate) + 0.5
    falls = rate * ndtr((1 - root) / sigma) - above * ndtr(-root / sigma)
    return float(shares @ np.where(rest > 1 - rate, falls, 1 - rest))


# Noise as a function of t, how many steps, and the standard deviations that it stands for.
APART = {
    "one step": (
        "Piecewise((2, (t >= 30) & (t <= 30)), (20, True))",
        [2.0 if t == 30 else 20.0 for t in range(1, 61)],
    ),
    "the last step": (
        "Piecewise((20, t < 300), (3, True))",
        [20.0] * 299 + [3.0],
    ),
    "a narrow dip": (
        "max(2, 20 - 40*max(0, 1 - abs(t - 31)))",
        [2.0 if t == 31 else 20.0 for t in range(1, 201)],
    ),
    "the first steps": (
        "Piecewise((5, t < 3), (50/sqrt(t), True))",
        [5.0 if t < 3 else 50.0 / mpmath.sqrt(t) for t in range(1, 61)],
    ),
    "hardly apart": (
        "50/sqrt(t)*Piecewise((1 + 1/1000000, (t >= 9) & (t <= 9)), (1, True))",
        [mpmath.mpf(50) / mpmath.sqrt(t) * (1 + mpmath.mpf(t == 9) / 10**6) for t in range(1, 61)],
    ),
}


@pytest.mark.quick_cases("one step")
@pytest.mark.parametrize("name", APART)
def test_a_step_apart_from_all_others_counts(tmp_path, name):
    sigma, values = APART[name]
    step = schedule(tmp_path, sigma)
    with mpmath.workdps(40):
        values = [mpmath.mpf(value) for value in values]
    composition = compose([(step(t=t + 1), 1) for t in range(len(values))])
    for epsilon in (0.5, 3.0, 3.2):
        true = normal_delta(values, epsilon)
        found = composition.delta(epsilon)
        assert found.delta == pytest.approx(true, rel=1e-11)
        assert found.lower <= true * (1 + 1e-15)
        assert true * (1 - 1e-15) <= found.upper
        assert composition.delta(epsilon, method="moments").upper >= true


def test_epsilon_counts_the_step_apart(tmp_path):
    composition = compose(
        [(schedule(tmp_path, APART["one step"][0])(t=t), 1) for t in range(1, 61)]
    )
    found = composition.epsilon(1e-5)
    with mpmath.workdps(40):  # the root of the closed form, printed as 2.585228919555674
        assert normal_delta(APART["one step"][1], found.epsilon) == pytest.approx(1e-5, rel=1e-11)
    assert found.epsilon == pytest.approx(2.585228919555674, rel=1e-13)


@pytest.mark.slow
def test_every_method_counts_the_step_apart(tmp_path):
    """No bound lies below the truth, and the other accountants find it to a digit."""
    composition = compose(
        [(schedule(tmp_path, APART["one step"][0])(t=t), 1) for t in range(1, 61)]
    )
    true = normal_delta(APART["one step"][1], 3)
    for method in set(symdp.methods.names()) - {"tilted-prv", "buckets", "fourier"}:  # as prv
        try:
            found = composition.delta(3, method=method)
        except symdp.SymdpError:
            continue
        if found.upper is not None and found.kind != "estimate":
            assert found.upper >= true * (1 - 1e-12), method
        if found.lower is not None and found.kind != "estimate":
            assert found.lower <= true * (1 + 1e-12), method
        assert found.kind != "estimate" or 0.5 < found.delta / true < 2.0, method
    certificate = composition.certify(3, 5)
    assert certificate.lower <= true <= certificate.upper


@pytest.mark.slow
def test_sampled_steps_of_which_one_is_apart(tmp_path):
    step = schedule(tmp_path, "Piecewise((1/2, (t >= 20) & (t <= 20)), (8, True))")
    step = step.subsample("poisson", "1/20")
    composition = compose([(step(t=t), 1) for t in range(1, 41)])
    true = sampled_delta(0.5, {8.0: 39}, 0.05, 1.0)
    assert composition.delta(1).delta == pytest.approx(true, rel=1e-6)


def test_equal_steps_are_one_kind_whatever_their_parameters_are(tmp_path):
    step = schedule(tmp_path, "Piecewise((2, t < 200), (20, True))")
    law = compose([(step(t=t), 2) for t in range(1, 301)]).law("remove")
    assert sorted(count for _, count in law.terms) == [202, 398]


@pytest.mark.slow
def test_one_step_with_a_rate_of_its_own():
    step = symdp.mechanisms.gaussian.subsample("poisson", "q")
    steps = [(step(sigma=f"{2 + k / 100}", q="1/100"), 1) for k in range(96)]
    law = compose([*steps, (step(sigma=3, q="1/10"), 1)]).law("remove")
    assert len(law.terms) < 60
    assert law.terms[-1][1] == 1
    assert sum(count for _, count in law.terms) == pytest.approx(97, rel=1e-15)


BASES = ["10", "10 + t/10", "40/sqrt(1 + t)", "10*exp(t/100)", "10*exp(-t/100)", "5 + t**2/1000"]
BUMPS = [
    "Piecewise(({a}, (t >= {k}) & (t <= {k})), (0, True))",
    "Piecewise(({a}, t >= {k}), (0, True))",
    "{a}*max(0, t - {k})",
    "{a}*abs(t - {k})",
    "{a}*exp(-{c}*(t - {k})**2)",
    "{a}/(1 + {c}*(t - {k})**2)",
    "{a}*cos(pi*t)**2",
    "{a}*max(0, 1 - {c}*abs(t - {k}))",
]
SIZES = ["1/2", "1/20", "1/1000", "1/100000", "1/10000000"]


def value_of(text, t):
    """A schedule's formula at one t, by mpmath and not by SymPy."""

    def piecewise(*pairs):
        return next(value for value, holds in pairs if holds)

    names = {name: getattr(mpmath, name) for name in ("sqrt", "exp", "cos", "pi")}
    names |= {"Piecewise": piecewise, "max": max, "abs": abs, "t": mpmath.mpf(t)}
    return eval(text, {"__builtins__": {}}, names)  # of the formulas above alone


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_schedules_of_all_kinds(tmp_path, seed):
    """Smooth noise with a bump, in σ or in 1/σ: spikes, jumps, kinks, hardly or strongly apart."""
    draw = random.Random(seed)
    n = draw.choice([24, 40, 60, 100])
    base = draw.choice(BASES)
    bump = draw.choice(BUMPS).format(
        a=draw.choice(SIZES), k=draw.randint(1, n), c=draw.choice([1, 100, 10_000])
    )
    sigma = f"1/(1/({base}) + {bump})" if draw.random() < 0.6 else f"{base} + {bump}"
    counts = [draw.choice([1, 1, 1, 5]) for _ in range(n)]
    with mpmath.workdps(40):
        values = [value_of(sigma, t) for t in range(1, n + 1) for _ in range(counts[t - 1])]
        size = float(mpmath.sqrt(sum(value**-2 for value in values)))
    step = schedule(tmp_path, sigma)
    composition = compose([(step(t=t), counts[t - 1]) for t in range(1, n + 1)])
    for scale in (0.3, 2.0, 6.0):
        epsilon = round(size * scale + size**2 / 2, 3)
        true = normal_delta(values, epsilon)
        found = composition.delta(epsilon)
        assert found.delta == pytest.approx(true, rel=1e-11), sigma
        assert found.lower <= true * (1 + 1e-14)
        assert true * (1 - 1e-14) <= found.upper


@pytest.mark.slow
@pytest.mark.parametrize("is_on_line", [True, False])
def test_two_parameters_of_which_one_has_a_step_apart(tmp_path, is_on_line):
    """Noise a times a function of t, a and t on a line, or on none with few values of a."""
    file = tmp_path / "schedule.toml"
    apart = "Piecewise((1/5, (t >= 30) & (t <= 30)), (1, True))"
    text = NORMAL.format(f"a*{apart}")
    file.write_text(text.replace('t = "positive"', 't = "positive"\na = "positive"'))
    step = symdp.load(file)
    count = 60 if is_on_line else 150
    scales = [10 + t / 10 if is_on_line else 10 + t % 3 for t in range(1, count + 1)]
    steps = [(step(t=t, a=f"{scales[t - 1]:.1f}"), 1) for t in range(1, count + 1)]
    sigmas = [
        mpmath.mpf(f"{scale:.1f}") / (5 if t == 30 else 1) for t, scale in enumerate(scales, 1)
    ]
    composition = compose(steps)
    for epsilon in (0.5, 3.0):
        true = normal_delta(sigmas, epsilon)
        found = composition.delta(epsilon)
        assert found.delta == pytest.approx(true, rel=1e-11)
        assert found.lower <= true * (1 + 1e-15)
        assert true * (1 - 1e-15) <= found.upper
