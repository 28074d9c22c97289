"""Laws on finitely many integers, written with binomials, factorials and gamma functions.

Truths are convolutions on a grid by FFT, each loss split between two neighbours so that its mean
stays; the masses come from mpmath.  Two grids give the same to what the tests ask for.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

import symdp
from symdp.balls.modes import one_mode

mp = mpmath.mp
Masses = dict[int, Any]
_BINS = 20  # a power of 2


def convolved(
    masses: Masses, step: int, direction: str, count: int, epsilon: float
) -> tuple[float, float]:
    """δ(ε) of `count` steps of noise on integers, moved by `step` under P, and how far it is off.

    Each split adds at most a quarter of the squared spacing to the variance of a sum.
    """
    p, q = {k + step: own for k, own in masses.items()}, masses
    p, q = (p, q) if direction == "remove" else (q, p)
    infinite = mpmath.fsum(own for k, own in p.items() if not q.get(k))
    finite = [(own, mpmath.log(own / q[k])) for k, own in p.items() if own and q.get(k)]
    mean = mpmath.fsum(own * loss for own, loss in finite)
    width = math.sqrt(count * mpmath.fsum(own * (s - mean) ** 2 for own, s in finite))
    largest = max(abs(loss) for own, loss in finite if own > 1e-30)
    bins = 1 << _BINS
    spacing = (2 * abs(epsilon - count * mean) + 40 * width + 4 * largest) / bins
    grid = np.zeros(bins)
    for own, loss in finite:
        place = (loss - mean) / spacing
        low = int(mpmath.floor(place))
        grid[low % bins] += float(own * (low + 1 - place))
        grid[(low + 1) % bins] += float(own * (place - low))
    sums = np.fft.irfft(np.fft.rfft(grid) ** count, bins)
    places = np.arange(bins, dtype=float)
    places[bins // 2 :] -= bins
    losses = places * float(spacing) + float(count * mean)
    above = losses > epsilon
    beyond = float((sums[above] * -np.expm1(epsilon - losses[above])).sum())
    return float(1 - (1 - infinite) ** count) + beyond, float(count * spacing**2) + 1e-11


def binomial(n: int, p: Any) -> Masses:
    return {k: mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)}


def mixed() -> Masses:
    """A binomial variable and a coin of 9/10 added."""
    own, found = binomial(20, mpmath.mpf(1) / 3), dict.fromkeys(range(22), mpmath.mpf(0))
    for k, mass in own.items():
        found[k] += mass / 10
        found[k + 1] += mass * 9 / 10
    return found


def hypergeometric(red: int, whole: int, drawn: int) -> Masses:
    lowest = max(0, drawn - whole + red)
    return {
        k: mpmath.binomial(red, k) * mpmath.binomial(whole - red, drawn - k)
        / mpmath.binomial(whole, drawn)
        for k in range(lowest, min(red, drawn) + 1)
    }  # fmt: skip


def beta_binomial(n: int, a: Any, b: Any) -> Masses:
    whole = mpmath.beta(a, b)
    return {k: mpmath.binomial(n, k) * mpmath.beta(k + a, n - k + b) / whole for k in range(n + 1)}


HALF, THIRD = mpmath.mpf(1) / 2, mpmath.mpf(1) / 3
# A support, a density and its masses.
LAWS: dict[str, tuple[str, str, Masses]] = {
    "binomial": ('"naturals"', "binomial(200, k)/2**200", binomial(200, HALF)),
    "skewed": ('"integers"', "binomial(64, k)*3**(64 - k)/4**64", binomial(64, HALF / 2)),
    "centred": ('"integers"', "binomial(80, k + 40)/2**80", {
        k - 40: mass for k, mass in binomial(80, HALF).items()
    }),
    "factorials": (
        '"naturals"', "factorial(90)/(factorial(k)*factorial(90 - k)*2**90)", binomial(90, HALF),
    ),
    "gammas": (
        '"integers"', "gamma(91)/(gamma(k + 1)*gamma(91 - k)*2**90)", binomial(90, HALF),
    ),
    "pieces": (
        '"naturals"',
        "Piecewise((binomial(90, k)/2**90, k <= 90), (0, True))", binomial(90, HALF),
    ),
    "hypergeometric": (
        '"naturals"', "binomial(30, k)*binomial(25, 28 - k)/binomial(55, 28)",
        hypergeometric(30, 55, 28),
    ),
    "beta-binomial": (
        '"naturals"', "binomial(80, k)*beta(k + 5/2, 84 - k)/beta(5/2, 4)",
        beta_binomial(80, mpmath.mpf(5) / 2, 4),
    ),
    "negative hypergeometric": (
        '"naturals"', "binomial(k + 4, k)*binomial(95 - k, 40 - k)/binomial(100, 40)",
        {
            k: mpmath.binomial(k + 4, k) * mpmath.binomial(95 - k, 40 - k)
            / mpmath.binomial(100, 40)
            for k in range(41)
        },
    ),
    "mixed": (
        '"naturals"', "binomial(20, k)*2**(20 - k)/(10*3**20) + "
        "9*binomial(20, k - 1)*2**(21 - k)/(10*3**20)", mixed(),
    ),
}  # fmt: skip
QUICK = {"hypergeometric", "beta-binomial"}
FILE = """
name = "noise"
variable = "k"
support = {}
[noise]
density = "{}"
sensitivity = {}
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_finitely_many_integers_are_composed(name):
    support, density, masses = LAWS[name]
    for size, direction in ((2, "add"),) if name in QUICK else ((1, "remove"), (2, "add")):
        noise = symdp.Mechanism.from_toml(FILE.format(support, density, size))
        found = symdp.compose(noise, 20).delta(0.5, direction=direction)
        true, off = convolved(masses, size, direction, 20, 0.5)
        assert off < 3e-6
        assert found.lower - off < true < found.upper + off, (size, direction)
        assert found.upper - found.lower < 1e-7


BINOMIAL = """
name = "binomial"
variable = "k"
support = "naturals"
[parameters]
N = "positive integer"
p = "open probability"
[noise]
density = "binomial(N, k)*p**k*(1 - p)**(N - k)"
sensitivity = 1
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "true"),
    [
        # A contour of 600 000 nodes over the recurrences of |φ| up to y = 20 000, and `convolved`.
        (200, 0.359940766478347),
        pytest.param(1600, 0.014001949698759, marks=pytest.mark.slow),
    ],
)
def test_binomial_noise_of_any_size_is_answered(size, true):
    noise = symdp.Mechanism.from_toml(BINOMIAL)(N=size, p="1/2")
    found = symdp.compose(noise, 128).delta(1)
    assert found.lower * (1 - 1e-11) < true < found.upper * (1 + 1e-11)
    assert found.upper / found.lower < 1 + 1e-7
    assert found.protection.shift.startswith("at most")


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_a_large_shape_has_both_directions(direction):
    """Γ(k) of k > 171 is no double: it was taken for infinite where a record is removed."""
    r, half = 800, mpmath.mpf(1) / 2
    masses = {
        k: mpmath.exp(mpmath.loggamma(k + r) - mpmath.loggamma(r) - mpmath.loggamma(k + 1))
        * half ** (r + k)
        for k in range(400, 1300)
    }
    steps = symdp.compose(symdp.mechanisms.negative_binomial(r=r, p="1/2"), 10)
    found = steps.epsilon(1e-6, direction=direction)
    assert found.kind == "exact"
    assert found.epsilon == pytest.approx(0.2992 if direction == "remove" else 0.3197, abs=1e-4)
    true, off = convolved(masses, 1, direction, 10, found.epsilon)
    assert abs(true - 1e-6) < off < 1e-9


def _noise(density: str, support: str = '"naturals"') -> Any:
    return symdp.Mechanism.from_toml(FILE.format(support, density, 2))


@pytest.mark.slow_cases(
    'binomial(60, k)*beta(k + 3, 64 - k)/beta(3, 4)-"naturals"-True',
    'binomial(60, k)*beta(k + 1/2, 60 - k + 1/2)/beta(1/2, 1/2)-"naturals"-False',
    'binomial(20, k)*2**(20 - k)/3**21 + binomial(20, k - 1)*2**(22 - k)/3**21-"naturals"-True',
    'binomial(41, k)/2**42 + binomial(41, k - 2)/2**42-"integers"-True',
)
@pytest.mark.parametrize(
    ("density", "support", "is_one"),
    [
        ("binomial(300, k)/2**300", '"naturals"', True),
        ("binomial(1600, k)/2**1600", '"integers"', True),
        ("binomial(200, k)/2**200", "[0, 200]", True),
        ("factorial(90)/(factorial(k)*factorial(90 - k)*2**90)", '"naturals"', True),
        ("binomial(60, k)*binomial(90, 50 - k)/binomial(150, 50)", '"naturals"', True),
        ("binomial(60, k)*beta(k + 3, 64 - k)/beta(3, 4)", '"naturals"', True),
        ("binomial(60, k)*beta(k + 1/2, 60 - k + 1/2)/beta(1/2, 1/2)", '"naturals"', False),
        ("binomial(40, k)/2**41 + binomial(40, k - 60)/2**41", '"naturals"', False),
        (
            "binomial(20, k)*2**(20 - k)/3**21 + binomial(20, k - 1)*2**(22 - k)/3**21",
            '"naturals"',
            True,
        ),
        ("binomial(41, k)/2**42 + binomial(41, k - 2)/2**42", '"integers"', True),
    ],
)
def test_one_mode_of_such_laws_is_decided(density, support, is_one):
    assert bool(one_mode(_noise(density, support))) is is_one


def test_lists_of_the_same_masses_have_the_same_answers():
    """The density 0 beyond 12, and a list of 14 outputs."""
    size = 12
    masses = [str(sp.binomial(size, k) / sp.Integer(2) ** size) for k in range(size + 1)]
    points, p, q = list(range(size + 2)), ["0", *masses], [*masses, "0"]
    text = f'name = "list"\nsupport = {points}\n[pair]\nP = {p}\nQ = {q}\n'
    listed = symdp.Mechanism.from_toml(text.replace("'", '"'))
    noise = symdp.Mechanism.from_toml(BINOMIAL)(N=size, p="1/2")
    for direction in ("remove", "add"):
        one, two = (
            symdp.compose(m, 6).delta(0.7, direction=direction).delta for m in (noise, listed)
        )
        assert one == pytest.approx(two, rel=1e-9)
