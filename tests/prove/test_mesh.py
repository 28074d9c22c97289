"""The dominating law on a mesh and the bound of its distance, against enumeration and integrals.

No truth here uses symdp: sums of rationals, closed forms, and integrals of mpmath or NumPy.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from flint import arb, ctx, fmpq
from scipy.special import ndtr

from symdp import mechanisms
from symdp.errors import AccuracyError
from symdp.model.mechanism import Mechanism
from symdp.prove import cells, mesh
from symdp.prove.kind import kind_of, sum_law
from symdp.prove.mesh import bracket_delta
from symdp.prove.plan import find_saddle, panels_of

X = sp.Symbol("x", real=True)
HALF, PHI = sp.Rational(1, 2), sp.exp(-(X**2) / 2) / sp.sqrt(2 * sp.pi)
LINE, UNIT = (-sp.oo, sp.oo), (sp.S.Zero, sp.S.One)
RATE, SIGMA = mp.mpf("0.01"), mp.mpf("1.5")
SUBSAMPLED = mechanisms.gaussian(sigma="3/2").subsample("poisson", "1/100")
LAPLACE, NORMAL = mechanisms.laplace(b=2), mechanisms.gaussian(sigma=2)
INTEGERS = mechanisms.discrete_gaussian(sigma=2).subsample("poisson", "1/10")
RESPONSE = mechanisms.randomized_response(epsilon_0=1)
OSCILLATING = Mechanism.from_pair(
    PHI * (1 + sp.cos(8 * X) / 2) / (1 + sp.exp(-32) / 2), PHI, X, support=LINE
)
CACHES = (cells.outcomes_of, mesh._window, mesh._sum_on_mesh)


@pytest.fixture(autouse=True)
def fresh():
    """Nothing is kept from a test that breaks a bound."""
    for function in CACHES:
        function.cache_clear()
    with ctx.workprec(192):
        yield
    for function in CACHES:
        function.cache_clear()


def brackets(steps, epsilon, digits, direction="remove", tilt=None, log_size=-5.0):
    """The bracket at a tilt, which is that of the saddle point if none is given."""
    kinds = tuple((kind_of(m.pair(direction)), count) for m, count in steps)
    if tilt is None:
        saddle = find_saddle(sum_law(kinds), float(epsilon))
        tilt, log_size = saddle.tilt, saddle.log_size
    exact = Fraction(epsilon)
    at = arb(fmpq(exact.numerator, exact.denominator))
    return bracket_delta(kinds, at, tilt, log_size, digits)


def width(ball):
    return float(2 * ball.rad() / ball.lower())


def near(value, error=1e-11):
    """A ball around a truth that is known to so much, relative."""
    with mp.workdps(40):
        return arb(mp.nstr(mp.mpf(value), 36)) * (1 + arb(0, error))


def pair_of(p, q, support=LINE, **more):
    return Mechanism.from_pair(p, q, X, support=support, **more)


# Every law on a few points, in rationals.


def finite_law(draw, size):
    """Masses of P and Q on points, in tenths or so, none of them 0."""
    found = []
    for _ in range(2):
        parts = [draw.randint(1, 9) for _ in range(size)]
        found.append([Fraction(part, sum(parts)) for part in parts])
    return found


def exact_delta(laws, epsilon):
    """Σ (p − e^ε q)⁺ over all outcomes of all steps, p and q in rationals."""
    factor = arb(fmpq(epsilon.numerator, epsilon.denominator)).exp()
    total = arb(0)
    for outcome in itertools.product(*(zip(*law, strict=True) for law in laws)):
        p, q = (math.prod(own, start=Fraction(1)) for own in zip(*outcome, strict=True))
        own = arb(fmpq(p.numerator, p.denominator))
        own -= factor * arb(fmpq(q.numerator, q.denominator))
        total += own.max(arb(0))
    return total


@pytest.mark.slow_cases("5")
@pytest.mark.parametrize("seed", range(8))
def test_small_laws_lie_in_every_bracket(seed):
    draw = random.Random(seed)
    law, other = finite_law(draw, draw.randint(2, 4)), finite_law(draw, 2)
    counts = draw.randint(1, 4), draw.randint(0, 2)
    steps = []
    for (p, q), count in zip((law, other), counts, strict=True):
        own = [[sp.Rational(str(m)) for m in side] for side in (p, q)]
        made = pair_of(*own, {"points": list(range(len(p)))})
        steps += [(made, count)] if count else []
    laws = [law] * counts[0] + [other] * counts[1]
    for epsilon in (Fraction(-1, 3), Fraction(1, 7), Fraction(3, 5)):
        truth = exact_delta(laws, epsilon)
        for digits, tilt in ((1, 0.5), (3, 2.0), (5, 1.0)):
            ball = brackets(steps, epsilon, digits, tilt=tilt, log_size=-1.0)
            assert ball.overlaps(truth)


@pytest.mark.parametrize("seed", range(6))
def test_the_distance_is_never_more_than_its_bound(seed):
    """Two-valued factors of mean 1: what Jensen's inequality lacks, against E V."""
    draw = random.Random(seed)
    count, step = draw.randint(1, 6), draw.choice((0.01, 0.1, 0.3))
    spread = math.sqrt(count) * step / 2
    b = spread / 2
    front = spread * (math.sqrt(1 + b * b) + b) / 2 * math.exp((1 + b * b) / 4)
    factors = []
    for _ in range(count):
        down = draw.uniform(0, step)
        up = step - down
        share = -math.expm1(-down) / -math.expm1(-step)  # of e^{−ξ} the mean is 1
        factors.append(((up, share), (-down, 1 - share)))
    sums = [
        (sum(xi for xi, _ in chosen), math.prod(share for _, share in chosen))
        for chosen in itertools.product(*factors)
    ]
    assert sum(share * math.exp(-xi) for xi, share in sums) == pytest.approx(1, abs=1e-12)
    for away in [draw.uniform(-3, 3) * spread for _ in range(200)] + [0.0]:
        lack = sum(share * max(-math.expm1(-away - xi), 0.0) for xi, share in sums)
        lack -= max(-math.expm1(-away), 0.0)
        bound = sum(
            share * front * math.exp(-(((away + xi) / (2 * spread)) ** 2)) for xi, share in sums
        )
        assert -1e-15 < lack <= bound


# Two steps: ∫ P(x) δ₁(ε − ℓ(x)) dx, where one step's δ₁ is known by roots of its loss.


def two_subsampled(epsilon):
    """The integral in mpmath, δ₁ from normal tails."""

    def tail(x, mean):
        return mp.erfc((x - mean) / (SIGMA * mp.sqrt(2))) / 2

    def root(level):
        return SIGMA**2 * mp.log((mp.exp(level) - 1 + RATE) / RATE) + mp.mpf(1) / 2

    def one(level):
        if level <= mp.log(1 - RATE):
            return -mp.expm1(level)
        x = root(level)
        return (1 - RATE) * tail(x, 0) + RATE * tail(x, 1) - mp.exp(level) * tail(x, 0)

    def integrand(x):
        ratio = mp.exp((2 * x - 1) / (2 * SIGMA**2))
        weight = 1 - RATE + RATE * ratio
        return mp.npdf(x, 0, SIGMA) * weight * one(epsilon - mp.log(weight))

    kink = root(epsilon - mp.log(1 - RATE))
    return mp.quad(integrand, sorted({-15, -5, 0, 4, kink, 9, 15}))


@pytest.mark.quick_cases("epsilon1")
@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 10)])
def test_two_steps_against_quadrature(epsilon):
    with mp.workdps(20):
        exact = two_subsampled(mp.mpf(epsilon.numerator) / epsilon.denominator)
    ball = brackets([(SUBSAMPLED, 2)], epsilon, 4, tilt=10.0, log_size=float(mp.log(exact)))
    assert ball.overlaps(near(exact))
    assert width(ball) < 1e-4


def gauss_points(lower, upper, panels=2000):
    """Places and weights of five Gauss nodes on each of many panels."""
    roots, weights = np.polynomial.legendre.leggauss(5)
    edges = np.linspace(lower, upper, panels + 1)
    half = (upper - lower) / panels / 2
    return ((edges[:-1] + half)[:, None] + half * roots).ravel(), np.tile(half * weights, panels)


def between_roots(loss, p_below, q_below, turns):
    """δ₁ from distribution functions, ℓ monotone between turns: its roots by halving."""

    def one(level):
        total = np.zeros_like(level)
        for low, high in itertools.pairwise(turns):
            rises = loss(high - 1e-9) > loss(low + 1e-9)
            left, right = np.full_like(level, low), np.full_like(level, high)
            for _ in range(45):
                middle = (left + right) / 2
                is_left = (loss(middle) < level) == rises
                left, right = np.where(is_left, middle, left), np.where(is_left, right, middle)
            ends = (left, high) if rises else (low, left)
            p, q = (below(ends[1]) - below(ends[0]) for below in (p_below, q_below))
            total += p - np.exp(level) * q
        return total

    return one


def mixture(*terms):
    """A sum of normal laws: its density as an expression and in doubles, and what lies below."""
    density = sum(
        w * sp.exp(-((X - m) ** 2) / (2 * s**2)) / (sp.sqrt(2 * sp.pi) * s) for w, m, s in terms
    )
    terms = [tuple(map(float, term)) for term in terms]
    return (
        density,
        lambda x: sum(
            w / s / math.sqrt(2 * math.pi) * np.exp(-(((x - m) / s) ** 2) / 2) for w, m, s in terms
        ),
        lambda x: sum(w * ndtr((x - m) / s) for w, m, s in terms),
    )


MIXTURES = {
    "turns once": (
        mixture((1, 0, 1)),
        mixture((sp.Rational(3, 10), 1, 1), (sp.Rational(7, 10), -2, 2)),
    ),
    "four modes": (
        mixture((HALF, -4, 1), (HALF, 4, 1)),
        mixture((sp.Rational(1, 3), -3, 1), (sp.Rational(2, 3), 4, 2)),
    ),
    "a narrow mode": (
        mixture((sp.Rational(9, 10), 0, 1), (sp.Rational(1, 10), 1, sp.Rational(1, 20))),
        mixture((1, sp.Rational(1, 2), sp.Rational(3, 2))),
    ),
}


def two_of_mixtures(p, q, epsilon):
    """∫ P(x) δ₁(ε − ℓ(x)) dx where both densities are more than 0 in doubles."""
    (_, p_at, p_below), (_, q_at, q_below) = p, q

    def loss(x):
        return np.log(p_at(x)) - np.log(q_at(x))

    grid = np.linspace(-26, 26, 260_001)
    grid = grid[(p_at(grid) > 1e-300) & (q_at(grid) > 1e-300)]
    signs = np.sign(np.diff(loss(grid)))
    turns = [grid[0], *grid[1:-1][signs[1:] != signs[:-1]], grid[-1]]
    x, weights = gauss_points(grid[0], grid[-1])
    return float(
        weights @ (p_at(x) * between_roots(loss, p_below, q_below, turns)(epsilon - loss(x)))
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", MIXTURES)
def test_losses_of_several_modes_against_roots_and_an_integral(name):
    p, q = MIXTURES[name]
    ball = brackets([(pair_of(p[0], q[0]), 2)], 0.5, 4)
    # Turns are known to 2e-4, where δ₁ changes by the square of that.
    assert ball.overlaps(near(two_of_mixtures(p, q, 0.5), 4e-8))
    assert width(ball) < 1e-4


@pytest.mark.quick_cases("1")
@pytest.mark.parametrize("seed", range(12))
def test_random_mixtures_against_roots_and_an_integral(seed):
    """Of one to three normal laws each, so that losses turn up to five times."""
    draw = random.Random(seed)

    def number(low, high):
        return sp.Rational(draw.randint(20 * low, 20 * high), 20)

    def law():
        shares = [draw.randint(1, 9) for _ in range(draw.randint(1, 3))]
        return mixture(
            *((sp.Rational(s, sum(shares)), number(-3, 3), number(1, 2)) for s in shares)
        )

    p, q = law(), law()
    epsilon = draw.randint(-4, 8) / 8
    ball = brackets([(pair_of(p[0], q[0]), 2)], epsilon, 3)
    # What lies beyond the grid is far less than 1e-12.
    assert ball.overlaps(near(two_of_mixtures(p, q, epsilon), 1e-6) + arb(0, 1e-12))
    assert width(ball) < 1e-3


def test_a_stretch_without_mass_in_doubles():
    """Q's tail is the wider one from x = 15 on, where P has e^{−430} left."""
    p, q = mixture((1, sp.Rational(3, 10), HALF)), mixture((1, -3, sp.Rational(11, 20)))
    ball = brackets([(pair_of(p[0], q[0]), 2)], 3.5, 4)
    assert ball.overlaps(near(two_of_mixtures(p, q, 3.5), 1e-7))
    assert width(ball) < 1e-4


@pytest.mark.slow
def test_an_oscillating_density_turns_inside_its_piece():
    """P = φ(x)(1 + cos(8x)/2): the phase 8x is uniform under φ but for e^{−32}."""
    kind = kind_of(OSCILLATING.pair())
    (stretch,) = kind.stretches
    assert stretch.exact.slope == "unknown"
    found = cells.outcomes_of(kind, panels_of(kind, 1.0, 0.0, -20.0), 32, 32).items
    assert any({1, -1} <= {run.sign for run in panel.runs} for panel in found)

    def one(level):
        angle = np.arccos(np.clip(2 * np.expm1(level), -1, 1))
        return (angle + np.sin(angle) / 2 - np.exp(level) * angle) / np.pi

    epsilon = 0.5
    angles, weights = gauss_points(0, math.pi)
    density = (1 + np.cos(angles) / 2) / math.pi
    truth = float(weights @ (density * one(epsilon - np.log1p(np.cos(angles) / 2))))
    ball = brackets([(OSCILLATING, 2)], epsilon, 3)
    assert ball.overlaps(near(truth, 1e-9))
    assert width(ball) < 1e-3


@pytest.mark.slow
def test_ends_where_the_density_is_infinite():
    """The arcsine law against the uniform one: ℓ = −log π − log(x(1 − x))/2 turns at 1/2."""
    arcsine = pair_of(1 / (sp.pi * sp.sqrt(X * (1 - X))), sp.S.One, UNIT)

    def one(level):
        small = np.exp(-2 * (level + math.log(math.pi)))  # x(1 − x) below it
        x = 2 * small / (1 + np.sqrt(np.maximum(1 - 4 * small, 0.0)))
        x = np.where(small >= 0.25, 0.5, x)
        return 4 / np.pi * np.arcsin(np.sqrt(x)) - 2 * np.exp(level) * x

    epsilon = 0.5
    angles, weights = gauss_points(0, math.pi / 2)  # x = sin²: P is uniform
    loss = -math.log(math.pi) - np.log(np.sin(angles) * np.cos(angles))
    truth = float(weights @ one(epsilon - loss)) * 2 / math.pi
    ball = brackets([(arcsine, 2)], epsilon, 4)
    assert ball.overlaps(near(truth, 1e-8))
    assert width(ball) < 1e-4


@pytest.mark.slow
def test_some_losses_are_infinite():
    """Cosine noise moved by 1/2: P(ℓ = ∞) = P(x < −1/2), and ℓ falls from ∞ to −∞ elsewhere."""
    cosine = [sp.pi / 4 * sp.cos(sp.pi * (X - k * HALF) / 2) for k in (0, 1)]
    inside = [sp.And(k * HALF - 1 <= X, k * HALF + 1 >= X) for k in (0, 1)]
    p, q = (sp.Piecewise((c, i), (0, True)) for c, i in zip(cosine, inside, strict=True))
    noise = pair_of(p, q, (-1, sp.Rational(3, 2)))

    def below(x):
        return (np.sin(np.pi * np.clip(x, -1, 1) / 2) + 1) / 2

    def one(level):
        turn = np.exp(level) * math.sqrt(0.5)  # cos a = e^{level} cos(a − π/4)
        x = np.arctan2(1 - turn, turn) * 2 / np.pi
        return below(x) - below(-0.5) - np.exp(level) * (below(x - 0.5) - below(-1.0))

    epsilon = 0.75
    x, weights = gauss_points(-0.5, 1)
    density = np.pi / 4 * np.cos(np.pi * x / 2)
    loss = np.log(np.cos(np.pi * x / 2)) - np.log(np.cos(np.pi * (x - 0.5) / 2))
    infinite = float(below(-0.5))
    truth = float(weights @ (density * one(epsilon - loss))) + 1 - (1 - infinite) ** 2
    ball = brackets([(noise, 2)], epsilon, 4)
    assert ball.overlaps(near(truth, 1e-8))
    assert width(ball) < 1e-4


# Sums in which a normal law is: by the integral over a line, M in closed form.


def moment_normal(z, sigma):
    return mp.exp(z * (z + 1) / (2 * mp.mpf(sigma) ** 2))


def moment_laplace(z, b):
    """Atoms at ±1/b, and e^{z(1 − 2x)/b − x/b}/2b between."""
    s = 1 / mp.mpf(b)
    rate = (2 * z + 1) * s
    return (mp.exp(z * s) + mp.exp(-(1 + z) * s)) / 2 + s / 2 * mp.exp(z * s) * (
        -mp.expm1(-rate) / rate
    )


def moment_response(z, epsilon_0):
    top = 1 / (1 + mp.exp(-mp.mpf(epsilon_0)))
    return top * mp.exp(z * epsilon_0) + (1 - top) * mp.exp(-z * epsilon_0)


def on_a_line(moment, epsilon, tilt=1, step="0.02", terms=4000):
    """(h/2π) Σ M(z) e^{−εz}/(z(z + 1)) over z = t + ihk, its aliases e^{−2πt/h} apart."""
    h, total = mp.mpf(step), mp.mpf(0)
    for k in range(terms):
        z = mp.mpc(tilt, k * h)
        term = (moment(z) * mp.exp(-epsilon * z) / (z * (z + 1))).real
        total += term if k == 0 else 2 * term
        if k > 50 and abs(moment(z)) < mp.mpf(10) ** -22:
            break
    return h / (2 * mp.pi) * total


BESIDE_NORMAL = {
    "normal": ([(NORMAL, 3)], lambda z: moment_normal(z, 2) ** 3, 1.5),
    "two normal kinds": (
        [(NORMAL, 1), (mechanisms.gaussian(sigma=1), 1)],
        lambda z: moment_normal(z, 2) * moment_normal(z, 1),
        0.3,
    ),
    "with atoms": (
        [(RESPONSE, 2), (NORMAL, 1)],
        lambda z: moment_response(z, 1) ** 2 * moment_normal(z, 2),
        1.0,
    ),
    "atoms beside densities": (
        [(LAPLACE, 2), (NORMAL, 2), (RESPONSE, 1)],
        lambda z: moment_laplace(z, 2) ** 2 * moment_normal(z, 2) ** 2 * moment_response(z, 1),
        0.75,
    ),
}


@pytest.mark.quick_cases("two normal kinds")
@pytest.mark.parametrize("name", BESIDE_NORMAL)
def test_sums_with_a_normal_law_against_a_line(name):
    steps, moment, epsilon = BESIDE_NORMAL[name]
    with mp.workdps(25):
        truth = on_a_line(moment, epsilon)
    ball = brackets(steps, epsilon, 5)
    assert ball.overlaps(near(truth, 1e-15))
    assert width(ball) < 1e-5


# Discrete losses off any lattice: every type of half the steps, and the other half above it.


def types(law, count):
    """The masses of P and Q of all multisets of outcomes."""
    p, q = [], []
    logs = [(math.log(a), math.log(b)) for a, b in law]
    for chosen in itertools.combinations_with_replacement(range(len(law)), count):
        times = [chosen.count(k) for k in sorted(set(chosen))]
        ways = math.lgamma(count + 1) - sum(math.lgamma(t + 1) for t in times)
        p.append(ways + sum(logs[k][0] for k in chosen))
        q.append(ways + sum(logs[k][1] for k in chosen))
    return np.exp(p), np.exp(q)


def in_halves(law, count, epsilon):
    """Σ P(a) Σ (p − e^{ε − ℓ(a)} q)⁺ over outcomes a of half the steps and of the other half."""
    (p, q), (own, other) = types(law, count // 2), types(law, count - count // 2)
    order = np.argsort(np.log(p / q))
    loss = np.log(p / q)[order]
    p_above, q_above = (np.append(np.cumsum(m[order][::-1])[::-1], 0.0) for m in (p, q))
    level = epsilon - np.log(own / other)
    first = np.searchsorted(loss, level)
    return float(own @ (p_above[first] - np.exp(level) * q_above[first]))


def test_integers_off_any_lattice_against_all_types():
    weights = {k: math.exp(-k * k / 8) for k in range(-60, 61)}
    total = sum(weights.values())
    law = [
        ((0.9 * weights[k] + 0.1 * weights[k - 1]) / total, weights[k] / total)
        for k in range(-13, 15)  # 1e-10 lies outside
    ]
    truth = in_halves(law, 6, 0.7)
    ball = brackets([(INTEGERS, 6)], 0.7, 4)
    assert ball.overlaps(near(truth, 1e-6))
    assert width(ball) < 1e-4


def test_points_off_any_lattice_against_all_types():
    p, q = [41, 33, 19, 7], [7, 29, 31, 33]
    made = pair_of(
        *([sp.Rational(k, 100) for k in side] for side in (p, q)), {"points": [0, 1, 2, 3]}
    )
    law = [(a / 100, b / 100) for a, b in zip(p, q, strict=True)]
    ball = brackets([(made, 20)], 12.5, 5)
    assert ball.overlaps(near(in_halves(law, 20, 12.5), 1e-12))
    assert width(ball) < 1e-5


# Losses that turn at 0: −a log(rate) − (1 − rate)|x|^r with |x|^r a gamma variable of shape a.


def gamma_delta(shape, rate, count, epsilon):
    """Return δ of n steps with |x|^r gamma distributed, of rate 1 under P and another under Q."""
    with mp.workdps(40):
        rate, shape = mp.mpf(rate), mp.mpf(shape) * count
        most = (-shape * mp.log(rate) - mp.mpf(epsilon)) / (1 - rate)
        p = mp.gammainc(shape, 0, most, regularized=True)
        q = mp.gammainc(shape, 0, rate * most, regularized=True)
        return p - mp.exp(mp.mpf(epsilon)) * q


def scaled(density, c, support):
    """Return a density against the same one c times as wide."""
    return pair_of(density, density.subs(X, X / c) / c, support, name="scaled")


CUBIC = sp.exp(-(sp.Abs(X) ** 3)) / (2 * sp.gamma(sp.Rational(4, 3)))
QUARTIC = sp.exp(-(X**4)) / (2 * sp.gamma(sp.Rational(5, 4)))
RAYLEIGH = X * sp.exp(-(X**2) / 2)
TURNING = {  # Q has rate c^{−r}
    "normal": (scaled(PHI, 2, LINE), HALF, HALF**2),
    "flat": (scaled(CUBIC, 2, LINE), sp.Rational(1, 3), sp.Rational(1, 8)),
    "flatter": (scaled(QUARTIC, 2, LINE), sp.Rational(1, 4), sp.Rational(1, 16)),
    "rayleigh": (scaled(RAYLEIGH, 3, (sp.S.Zero, sp.oo)), sp.S.One, sp.Rational(1, 9)),
}


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TURNING)
def test_few_steps_of_turning_losses_against_gamma_distributions(name, count):
    mechanism, shape, rate = TURNING[name]
    epsilon = float(0.6 * count * float(-shape * sp.log(rate)))
    ball = brackets([(mechanism, count)], epsilon, 5)
    truth = gamma_delta(str(shape.evalf(50)), str(rate.evalf(50)), count, epsilon)
    assert ball.overlaps(near(truth, 1e-30))
    assert width(ball) < 1e-5


# What holds the proof together.


def test_masses_of_cells_are_integrals():
    """Between the ends of cells P and Q are differences of normal distribution functions."""
    kind = kind_of(SUBSAMPLED.pair())
    panels = panels_of(kind, 1.0, 0.0, -60.0)
    outcomes = cells.outcomes_of(kind, panels, 96, 60)
    found, where = outcomes.items, outcomes.panels
    offset, step = arb("0.01"), arb("0.03")
    total_p, total_q = arb(0), arb(0)
    for panel in found:
        for row in panel.cells(offset, step):
            assert row.overshoot < 1e-12
            for level, p, q in zip(row.levels, row.p, row.q, strict=True):
                low, high = (offset + (level + k) * step for k in (0, 1))
                assert p.upper() >= (low - arb(1e-12)).exp() * q.lower()
                assert p.lower() <= (high + arb(1e-12)).exp() * q.upper()
                total_p, total_q = total_p + p, total_q + q
    with mp.workdps(40):
        (low, high) = (where[0].edges[0], where[-1].edges[-1])

        def mass(mean):
            return mp.ncdf((high - mean) / SIGMA) - mp.ncdf((low - mean) / SIGMA)

        assert all(one.edges[-1] == other.edges[0] for one, other in itertools.pairwise(where))
        assert abs(total_q - arb(mp.nstr(mass(0), 35))) < 1e-15
        p = (1 - RATE) * mass(0) + RATE * mass(1)
        assert abs(total_p - arb(mp.nstr(p, 35))) < 1e-15


def broken(digits=3):
    """Return a bracket, one bound of which may be left out, and the truth."""
    with mp.workdps(25):
        truth = on_a_line(
            lambda z: moment_laplace(z, 2) ** 30 * moment_normal(z, 2) ** 20, 4, step="0.1"
        )
    ball = brackets([(LAPLACE, 30), (NORMAL, 20)], 4.0, digits, tilt=1.0, log_size=-2.0)
    return ball, near(truth, 1e-15)


def test_nothing_broken_contains_the_truth():
    ball, truth = broken()
    assert ball.contains(truth)


def test_without_the_bound_of_the_distance_the_truth_is_lost(monkeypatch):
    monkeypatch.setattr(mesh._MeshSum, "distance", lambda *_: arb(0))
    ball, truth = broken()
    assert ball > truth


@pytest.mark.slow
def test_without_what_is_left_out_the_truth_is_lost(monkeypatch):
    """A coarse share, on a mesh so fine that the distance would not hide it."""
    monkeypatch.setattr(mesh, "_SHARE", 2.0**12)
    real, window = mesh._sum_on_mesh, mesh._window
    monkeypatch.setattr(mesh, "_sum_on_mesh", lambda *a: real(*a)._replace(lacking=arb(0)))
    monkeypatch.setattr(mesh, "_window", lambda *a: window(*a)._replace(missed=arb(0)))
    ball, truth = broken(6)
    assert ball < truth


@pytest.mark.slow
def test_a_mass_slightly_wrong_loses_the_truth(monkeypatch):
    real = cells.Panel.cells

    def wrong(*arguments):
        for row in real(*arguments):
            p, q = ([m * arb("0.9999") for m in side] for side in (row.p, row.q))
            yield row._replace(p=p, q=q)

    monkeypatch.setattr(cells.Panel, "cells", wrong)
    ball, truth = broken(4)
    assert not ball.overlaps(truth)


def test_panels_that_are_left_out_count_above(monkeypatch):
    """Without half of P's panels the ball is wide and holds the truth still."""
    real = mesh.panels_of

    def fewer(*arguments):
        return tuple(
            one._replace(edges=one.edges[: len(one.edges) // 2]) for one in real(*arguments)
        )

    monkeypatch.setattr(mesh, "panels_of", fewer)
    ball, truth = broken(3)
    assert ball.contains(truth)
    assert ball.rad() > 0.01


def test_what_needs_too_many_panels_is_refused(monkeypatch):
    monkeypatch.setattr(cells, "_MOST_PANELS", 10)
    with pytest.raises(AccuracyError, match="too many panels"):
        brackets([(OSCILLATING, 2)], 0.5, 3, tilt=1.0, log_size=-3.0)


@pytest.mark.slow
def test_without_what_losses_beyond_add_the_truth_is_lost(monkeypatch):
    """Nearly a tenth of Q counts as an infinite loss: the upper end alone has it."""
    density = 32 * X**-4 * sp.exp(-4 / X)
    noise = Mechanism.additive(density, X, sensitivity=1, support=(sp.S.Zero, sp.oo))
    kinds = ((kind_of(noise.pair("add")), 5),)
    real = mesh.outcomes_of

    def coarse(*arguments, q_bits):
        return real(*arguments, q_bits=-7)

    def unpaid(*arguments, q_bits):
        return coarse(*arguments, q_bits=q_bits)._replace(q_beyond=arb(0))

    truth = arb(0.9371405, 2e-8)  # of lattices of NumPy, tests/strangers/truth.py
    monkeypatch.setattr(mesh, "outcomes_of", coarse)
    assert bracket_delta(kinds, arb(1), 1 / 16, -0.1, 4).contains(truth)
    mesh._window.cache_clear()
    mesh._sum_on_mesh.cache_clear()
    monkeypatch.setattr(mesh, "outcomes_of", unpaid)
    assert not bracket_delta(kinds, arb(1), 1 / 16, -0.1, 4).overlaps(truth)
