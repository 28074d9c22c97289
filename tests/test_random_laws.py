"""Laws drawn at random, whose answers are compared with sums in NumPy that share no code.

The truth of one step is an integral of (P − e^ε Q)⁺ by Gauss's rule between its kinks; that of
several steps a law of losses on a lattice, each loss split between its two neighbours so that the
masses of P and Q stay. Such a split raises δ by a multiple of the squared spacing: two spacings
tell between which ends δ lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

import symdp

Array = NDArray[np.float64]
Density = Callable[[Array], Array]

PLACES, WEIGHTS = np.polynomial.legendre.leggauss(8)
QUADRATURE = 1e-9  # relative error of one integral
ROUNDING = 1e-13  # of a sum by fast Fourier transforms
NEGLIGIBLE = 1e-17  # a mass, beside rounding
SHIFTS = 8  # sizes of a shift that are tried, up to the sensitivity
CELLS = 100  # of a range between two kinks, for an integral
VALUES = 1000  # of a range between two kinks, each with a loss of its own


@dataclass(frozen=True)
class Noise:
    """A density up to its constant: as symdp reads it, as NumPy computes it, and its kinks."""

    formula: str
    density: Density
    kinks: Sequence[float]  # with the two ends of the support, or of what is not negligible
    support: str = '["-oo", "oo"]'

    def mechanism(self, sensitivity: str) -> symdp.Mechanism:
        return symdp.Mechanism.from_toml(
            f'name = "drawn"\nvariable = "x"\nsupport = {self.support}\n[noise]\n'
            f'density = "{self.formula}"\nnormalize = true\nsensitivity = "{sensitivity}"\n'
        )

    def pair(self, shift: float, cells: int = CELLS) -> tuple[Density, Density, Array]:
        """The shifted density, the density, and edges between which both are smooth."""
        first, last = self.kinks[0], self.kinks[-1]
        mass = integral(self.density, mesh(self.kinks, cells))

        def without(x: Array) -> Array:
            inside = (first < x) & (x < last)
            return np.where(inside, self.density(np.clip(x, first, last)), 0.0) / mass

        edges = mesh(sorted({*self.kinks, *(kink + shift for kink in self.kinks)}), cells)
        return lambda x: without(x - shift), without, edges


def mesh(kinks: Sequence[float], cells: int = VALUES) -> Array:
    """Edges between kinks that grow denser, geometrically, towards each of them."""
    parts = []
    for low, high in pairwise(kinks):
        near = np.geomspace(1e-9, 0.5, cells // 2) * (high - low)
        even = np.linspace(low, high, cells)
        parts += [even, low + near, high - near]
    return np.unique(np.concatenate(parts))


def nodes(edges: Array) -> tuple[Array, Array]:
    middle = (edges[1:] + edges[:-1]) / 2
    half = np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * PLACES).ravel(), (half[:, None] * WEIGHTS).ravel()


def integral(f: Density, edges: Array) -> float:
    x, weight = nodes(edges)
    return float(weight @ f(x))


def one_step(p: Density, q: Density, edges: Array, epsilon: float) -> float:
    """∫(p − e^ε q)⁺, the places where it begins and ends by bisection."""

    def gap(x: Array) -> Array:
        return p(x) - math.exp(epsilon) * q(x)

    x, _ = nodes(edges)
    sign = np.sign(gap(x))
    turns = np.nonzero(sign[1:] * sign[:-1] < 0)[0]
    low, high = x[turns], x[turns + 1]
    for _ in range(60):
        middle = (low + high) / 2
        same = np.sign(gap(middle)) == sign[turns]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return integral(lambda x: np.maximum(gap(x), 0.0), np.unique(np.append(edges, low)))


def worst_shift(noise: Noise, sensitivity: float, epsilon: float, rate: float = 1.0) -> float:
    """The largest δ of one step, sampled or not, that one of many shifts brings about."""
    largest = 0.0
    for size in sensitivity * np.arange(1, SHIFTS + 1) / SHIFTS:
        for shift in (size, -size):
            there, without, edges = noise.pair(shift)

            def mixed(x: Array, there: Density = there, without: Density = without) -> Array:
                return (1 - rate) * without(x) + rate * there(x)

            removed = one_step(mixed, without, edges, epsilon)
            added = one_step(without, mixed, edges, epsilon)
            largest = max(largest, removed, added)
    return largest


def on_a_lattice(p: Array, q: Array, spacing: float) -> tuple[int, Array, float]:
    """The first number, the masses and the mass at infinity of a law of losses."""
    finite = (p > 0) & (q > 0)
    infinite = p[~finite].sum()
    loss = np.log(p[finite] / q[finite])
    number = np.floor(loss / spacing).astype(int)
    up = p[finite] * np.expm1(number * spacing - loss) / np.expm1(-spacing)
    first = int(number.min())
    size = int(number.max()) - first + 2
    masses = np.bincount(number - first, p[finite] - up, size)
    return first, masses + np.bincount(number - first + 1, up, size), float(infinite)


def several(steps: Iterable[tuple[Array, Array, int]], epsilon: float) -> tuple[float, float]:
    """Ends between which δ of steps lies, each given by the masses of P and Q and a count."""
    rounded = []
    for spacing in (2e-3, 1e-3):
        start, total, finite = 0, np.ones(1), 1.0
        for p, q, count in steps:
            likely = (p > NEGLIGIBLE * p.sum()) | (q > NEGLIGIBLE * q.sum())
            laws = (law[likely] / law.sum() for law in (p, q))
            first, masses, infinite = on_a_lattice(*laws, spacing)
            finite *= (1.0 - infinite) ** count
            start += first * count
            size = (masses.size - 1) * count + total.size
            spectrum = np.fft.rfft(masses, size) ** count
            total = np.fft.irfft(spectrum * np.fft.rfft(total, size), size)
        losses = (start + np.arange(total.size)) * spacing
        kept = -np.expm1(np.minimum(epsilon - losses, 0.0))
        rounded.append(float(total @ kept) + 1.0 - finite)
    change = abs(rounded[0] - rounded[1])
    return rounded[1] - change - ROUNDING, rounded[1] + 0.05 * change + ROUNDING


def masses(p: Density, q: Density, edges: Array) -> tuple[Array, Array]:
    x, weight = nodes(edges)
    return weight * p(x), weight * q(x)


def assert_between(answer: symdp.Guarantee, low: float, high: float) -> None:
    assert answer.kind == "exact"
    assert low <= answer.delta <= high


def cubic(x: Array) -> Array:
    return (x**2 + 0.7) ** 3


SMOOTHED = Noise(
    "erf((x + 7/5)/2) - erf((x - 7/5)/2)",
    lambda x: special.erfc((np.abs(x) - 1.4) / 2) - special.erfc((np.abs(x) + 1.4) / 2),
    (-45.0, -1.4, 0.0, 1.4, 45.0),
)
NORMAL_PLUS_LAPLACE = Noise(
    "exp(2*x)*erfc((2 + x)/sqrt(2)) + exp(-2*x)*erfc((2 - x)/sqrt(2))",
    lambda x: (
        np.exp(2 * x) * special.erfc((2 + x) / math.sqrt(2))
        + np.exp(-2 * x) * special.erfc((2 - x) / math.sqrt(2))
    ),
    (-25.0, -2.0, 0.0, 2.0, 25.0),
)
SPLICED = Noise(  # its slope rises where the tail begins
    "Piecewise((exp(-x**2/2), abs(x) < 2), (exp(-2)*(2/abs(x))**4, True))",
    lambda x: np.where(
        np.abs(x) < 2, np.exp(-(x**2) / 2), np.exp(-2) * (2 / np.maximum(np.abs(x), 1)) ** 4
    ),
    (-1e6, -1e4, -300.0, -20.0, -2.0, 0.0, 2.0, 20.0, 300.0, 1e4, 1e6),
)
CUBED = Noise("x**2*exp(-x**3/4)", lambda x: x**2 * np.exp(-(x**3) / 4), (0.0, 6.0), '[0, "oo"]')
VALLEY = Noise("-(-x**2 - 7/10)**3", cubic, (-2.0, 0.0, 2.0), "[-2, 2]")
OUTWARD_STEPS = Noise(
    "Piecewise((1, abs(x) < 1), (2, abs(x) < 2), (exp(2 - abs(x)), True))",
    lambda x: np.select(
        [np.abs(x) < 1, np.abs(x) < 2], [np.ones_like(x), 2 + 0 * x], np.exp(2 - np.abs(x))
    ),
    (-45.0, -2.0, -1.0, 0.0, 1.0, 2.0, 45.0),
)
WAVES = Noise(
    "exp(-x**2/8)*(6/5 + cos(3*x + 1))",
    lambda x: np.exp(-(x**2) / 8) * (1.2 + np.cos(3 * x + 1)),
    (-18.0, -6.0, 0.0, 6.0, 18.0),
)
SKEWED = Noise(
    "1/(exp(x/2) + exp(-x))",
    lambda x: 1 / (np.exp(x / 2) + np.exp(-x)),
    (-45.0, -6.0, 0.0, 8.0, 90.0),
)


@pytest.mark.parametrize(
    ("noise", "sensitivity", "epsilon"),
    [
        pytest.param(SMOOTHED, "1/2", 0.4, id="uniform law plus normal", marks=pytest.mark.slow),
        pytest.param(
            NORMAL_PLUS_LAPLACE, "1/2", 0.7, id="normal plus Laplace", marks=pytest.mark.slow
        ),
        pytest.param(
            SPLICED, "1/4", 0.3, id="normal centre, tails of a power", marks=pytest.mark.slow
        ),
        pytest.param(CUBED, "1", 14.1, id="half a line, infinite losses"),
    ],
)
def test_noise_of_one_mode_has_its_worst_shift_at_the_sensitivity(
    noise: Noise, sensitivity: str, epsilon: float
) -> None:
    truth = worst_shift(noise, float(Fraction(sensitivity)), epsilon)
    answer = symdp.compose(noise.mechanism(sensitivity), 1).delta(epsilon)
    assert_between(answer, truth * (1 - QUADRATURE), truth * (1 + QUADRATURE))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "sensitivity", "epsilon"),
    [
        pytest.param(VALLEY, "1/2", 1.5, id="negative factors"),
        pytest.param(
            OUTWARD_STEPS, "1", 0.9, id="steps that rise outwards", marks=pytest.mark.slow
        ),
        pytest.param(WAVES, "1", 2.0, id="waves", marks=pytest.mark.slow),
    ],
)
def test_noise_with_valleys_has_a_bound_of_every_shift(
    noise: Noise, sensitivity: str, epsilon: float
) -> None:
    truth = worst_shift(noise, float(Fraction(sensitivity)), epsilon)
    answer = symdp.compose(noise.mechanism(sensitivity), 1).delta(epsilon)
    assert answer.kind in ("exact", "bound")
    assert truth * (1 - QUADRATURE) <= answer.delta < 1.5 * truth


@pytest.mark.slow
def test_steps_of_noise_with_valleys_may_have_shifts_of_different_sizes() -> None:
    steps = [(*masses(*WAVES.pair(1.0, VALUES)), 2), (*masses(*WAVES.pair(0.5, VALUES)), 1)]
    low, high = several(steps, 4.0)
    assert high - low < 1e-5
    answer = symdp.compose(WAVES.mechanism("1"), 3).delta(4.0)
    assert answer.kind == "bound"
    assert low <= answer.delta < 2 * high


@pytest.mark.slow
def test_sampled_skewed_noise() -> None:
    sampled = SKEWED.mechanism("1/2").subsample("poisson", "1/10")
    truth = worst_shift(SKEWED, 0.5, 0.03, rate=0.1)
    answer = symdp.compose(sampled, 1).delta(0.03)
    assert_between(answer, truth * (1 - QUADRATURE), truth * (1 + QUADRATURE))


@pytest.mark.slow
def test_steps_of_sampled_skewed_noise() -> None:
    ends = []
    for shift in (0.5, -0.5):
        there, without = masses(*SKEWED.pair(shift, VALUES))
        mixed = 0.9 * without + 0.1 * there
        ends += [several([pair], 0.2) for pair in ((mixed, without, 10), (without, mixed, 10))]
    sampled = SKEWED.mechanism("1/2").subsample("poisson", "1/10")
    answer = symdp.compose(sampled, 10).delta(0.2)
    assert_between(answer, *max(ends))


def test_masses_on_the_integers() -> None:
    """More in the middle than on either side, and tails of their own."""
    k = np.arange(-300, 301)
    mass = np.where(abs(k) <= 2, 3.0, np.exp(-abs(k) / 2.0))
    noise = symdp.Mechanism.from_toml(
        'name = "drawn"\nvariable = "k"\nsupport = "integers"\n[noise]\n'
        'density = "Piecewise((3, abs(k) <= 2), (exp(-abs(k)/2), True))"\nnormalize = true\n'
    )
    one, five = (symdp.compose(noise, count).delta(epsilon) for count, epsilon in ((1, 1), (5, 4)))
    there, without = np.append(0.0, mass), np.append(mass, 0.0)
    truth = np.maximum(there - math.e * without, 0.0).sum() / mass.sum()
    assert_between(one, truth * (1 - QUADRATURE), truth * (1 + QUADRATURE))
    assert_between(five, *several([(there, without, 5)], 4.0))


@pytest.mark.slow
def test_a_pair_with_a_gap_atoms_and_infinite_losses() -> None:
    edges = mesh((0.0, 1.0, 2.0, 3.0))
    x, weight = nodes(edges)
    outside = (x < 1) | (x > 2)
    p = np.append(0.8 * weight * outside / 2, [0.05, 0.15])
    q = np.append(0.7 * weight * outside * 3 * (10 - x**2) / 40, [0.0, 0.3])
    pair = symdp.Mechanism.from_toml("""
        name = "drawn"
        variable = "x"
        support = [0, 3]
        [pair]
        P = "Piecewise((2/5, x < 1), (0, x < 2), (2/5, True))"
        Q = "Piecewise((21/400*(10 - x**2), x < 1), (0, x < 2), (21/400*(10 - x**2), True))"
        [pair.atoms]
        "3/2" = ["1/20", "0"]
        "0" = ["3/20", "3/10"]
    """)
    assert_between(symdp.compose(pair, 10).delta(3, direction="remove"), *several([(p, q, 10)], 3))
    assert_between(symdp.compose(pair, 10).delta(3, direction="add"), *several([(q, p, 10)], 3))


def waiting_times() -> tuple[Array, Array]:
    """Inverse Gaussian laws, x^{-3/2} exp(−1/(2x) − sx): masses of s = 2 and of s = 3."""
    x, weight = nodes(mesh((1e-3, 0.1, 1.0, 5.0, 40.0)))
    with_record, without = (weight * x**-1.5 * np.exp(-0.5 / x - s * x) for s in (2.0, 3.0))
    return with_record / with_record.sum(), without / without.sum()


def family_of_waiting_times() -> symdp.Mechanism:
    return symdp.Mechanism.from_toml("""
        name = "drawn"
        protects = "a drift"
        [family]
        log_partition = "-sqrt(-2*t)"
        with = {t = -2}
        without = {t = -3}
    """)


@pytest.mark.parametrize("direction", ["remove", pytest.param("add", marks=pytest.mark.slow)])
def test_a_family_beside_its_densities(direction: str) -> None:
    p, q = waiting_times() if direction == "remove" else waiting_times()[::-1]
    answer = symdp.compose(family_of_waiting_times(), 20).delta(1.5, direction=direction)
    assert_between(answer, *several([(p, q, 20)], 1.5))


def test_divergences_of_a_family_beside_its_densities() -> None:
    p, q = waiting_times()
    steps = symdp.compose(family_of_waiting_times(), 1)
    for order in (0.5, 1.5, 2.0):
        truth = math.log(np.sum(p * (p / q) ** (order - 1))) / (order - 1)
        assert steps.renyi(order, direction="remove") == pytest.approx(truth, rel=1e-8)
    assert steps.renyi(3.1, direction="remove") == math.inf
