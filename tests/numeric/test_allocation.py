"""Random allocation of noise: closed forms, Monte Carlo, two factors, both directions."""

import math

import numpy as np
import pytest
import sympy as sp

from symdp import AccuracyError, Mechanism, compose, mechanisms
from symdp.model.reading.parser import parse
from symdp.numeric.laws.allocation_density import Cut, RatioLaw, Sums, Window, tabulate
from symdp.numeric.laws.of_mechanism import loss_law

SCHEME = "random_allocation"


def epochs(sigma, steps, count):
    return compose(mechanisms.gaussian(sigma=sigma).subsample(SCHEME, steps=steps), count)


@pytest.fixture(scope="module")
def unit():
    return epochs(1, 50, 1)


def two_steps(sigma, epsilon, direction):
    """δ of one of two Gaussian steps by a sum over a grid of both outputs."""
    x = np.linspace(-14.0 * sigma, 1.0 + 14.0 * sigma, 6001)
    q = np.exp(-0.5 * (x / sigma) ** 2)
    q /= q.sum()
    ratio = np.exp((x - 0.5) / sigma**2)
    both = 0.5 * (ratio[:, None] + ratio)
    gain = both - math.exp(epsilon) if direction == "remove" else 1.0 - math.exp(epsilon) * both
    return float(q @ np.maximum(gain, 0.0) @ q)


@pytest.mark.slow
@pytest.mark.parametrize(("direction", "epsilon"), [("remove", 0.5), ("add", 0.4)])
def test_two_steps_are_a_double_integral(direction, epsilon):
    answer = epochs(2, 2, 1).delta(epsilon, direction=direction)
    # The grid has a kink across it: its error is of second order in 0.01.
    assert answer.delta == pytest.approx(two_steps(2, epsilon, direction), rel=2e-6)
    assert answer.upper / answer.lower - 1.0 < 1e-10


def test_the_density_has_mass_one_and_mean_one():
    nodes, weights = np.polynomial.legendre.leggauss(48)
    for sigma, steps in ((2, 10), (4, 200)):
        table = tabulate(RatioLaw(loss_law(mechanisms.gaussian(sigma=sigma), "remove")), steps)
        half = 0.5 * np.diff(table.edges)[:, None]
        x = (table.edges[:-1, None] + half + half * nodes).ravel()
        density = np.exp(table(x)) * (half * weights).ravel()
        assert density.sum() == pytest.approx(1.0, abs=1e-12)
        assert density @ np.exp(x) == pytest.approx(1.0, abs=1e-12)


def test_panels_join_and_tails_are_those_of_one_large_ratio():
    table = tabulate(RatioLaw(loss_law(mechanisms.gaussian(sigma=1), "remove")), 50)
    inner = table.edges[1:-1]
    assert np.allclose(table(inner - 1e-12), table(inner + 1e-12), rtol=0, atol=1e-8)
    # log Y of one large ratio W and 49 others, which are small beside it: t·q(y − 49)·y.
    place = 7.5
    y = 50.0 * math.exp(place)
    loss = math.log(y - 49.0)
    single = math.log(50.0) - 0.5 * (loss + 0.5) ** 2 - 0.5 * math.log(2.0 * math.pi)
    expected = single - loss + math.log(y)
    assert float(table(np.asarray([place]))[0]) == pytest.approx(expected, abs=2e-3)


@pytest.mark.slow
def test_several_epochs_and_monte_carlo(unit):
    for count, epsilon, remove, add in ((5, 0.5, 0.029045888402, 0.025377538647),):
        steps = epochs(1, 50, count)
        assert steps.delta(epsilon, direction="remove").delta == pytest.approx(remove, rel=1e-10)
        assert steps.delta(epsilon, direction="add").delta == pytest.approx(add, rel=1e-10)
    assert unit.delta(1.0, direction="remove").delta == pytest.approx(8.135335415e-6, rel=1e-9)
    chance = np.random.default_rng(7)
    ratio = np.exp(chance.standard_normal((200_000, 50)) - 0.5)
    gain = np.maximum(ratio.mean(axis=1) - math.exp(0.3), 0.0)
    error = gain.std() / math.sqrt(gain.size)
    assert abs(gain.mean() - unit.delta(0.3, direction="remove").delta) < 5.0 * error


def test_both_directions_are_one_profile(unit):
    # δ of (Q, P) at −ε is 1 − e^{−ε} + e^{−ε} δ of (P, Q) at ε.
    for epsilon in (0.2, 0.8):
        other = unit.delta(-epsilon, direction="add").delta
        own = unit.delta(epsilon, direction="remove").delta
        assert other == pytest.approx(-math.expm1(-epsilon) + math.exp(-epsilon) * own, rel=1e-11)


def test_the_cgf_and_what_is_built_on_it(unit):
    law = unit.law("remove")
    assert law.cgf(-1.0) == pytest.approx(0.0, abs=1e-12)
    # E_Q (Y/t)² = 1 + Var(W)/t is M(1).
    assert law.cgf(1.0) == pytest.approx(math.log1p(math.expm1(1.0) / 50), rel=1e-11)
    steps = epochs(1, 50, 20)
    exact = steps.delta(1.0, direction="remove")
    assert steps.delta(1.0, method="msd:1", direction="remove").delta == pytest.approx(
        exact.delta, rel=0.02
    )
    assert steps.delta(1.0, method="moments", direction="remove").delta > exact.delta
    assert exact.route == "contour"
    assert exact.upper / exact.lower - 1.0 < 1e-9
    back = steps.epsilon(exact.delta, direction="remove")
    assert back.epsilon == pytest.approx(1.0, rel=1e-9)


@pytest.mark.slow  # little noise makes long tails: a table of forty panels
def test_poisson_sampling_says_too_little_where_noise_is_small():
    noise = mechanisms.gaussian(sigma="1/2")
    drawn = compose(noise.subsample(SCHEME, steps=50), 1).delta(0.5).delta
    coin = compose(noise.subsample("poisson", "1/50"), 50).delta(0.5).delta
    assert drawn == pytest.approx(0.117910015574, rel=1e-9)
    assert coin < 0.96 * drawn


def test_poisson_sampling_says_too_much_where_noise_is_large():
    milder = mechanisms.gaussian(sigma=2)
    drawn = compose(milder.subsample(SCHEME, steps=10), 1).delta(1.0).delta
    coin = compose(milder.subsample("poisson", "1/10"), 10).delta(1.0).delta
    assert drawn < 0.01 * coin


def test_what_lies_beyond_the_table_is_charged():
    steps = epochs(4, 200, 1)
    end = steps.law("remove").parts[0][0].step.pieces[0].upper
    beyond = steps.delta(end + 0.01, direction="remove")
    assert 0.0 < beyond.delta < 1e-16
    assert steps.delta(end - 0.01, direction="remove").delta > beyond.delta


def test_a_table_meets_its_own_windows():
    """One log density by four ways to take large ratios apart; W bends much on a coarse panel."""
    maker = Sums(RatioLaw(loss_law(mechanisms.gaussian(sigma="0.7"), "remove")), 1000)
    y = np.asarray([1380.0])
    found = []
    for split in (100.0, 150.0, 260.0):
        cuts = Cut(split), Cut(1700.0, split)
        windows = [Window.at(maker, 1380.0, 0, cut) for cut in cuts]
        found.append(np.logaddexp.reduce([w.log_density(y)[0] for w in windows]).item())
    whole = Window.at(maker, 1380.0, 37, Cut(2500.0)).log_density(y)[0].item()
    # The t-th power multiplies roundings of φ by a thousand.
    assert np.allclose(found, whole, rtol=0, atol=1e-11)


@pytest.mark.slow_cases("0.7-3000")
@pytest.mark.parametrize(("sigma", "steps"), [("0.7", 1000), ("0.7", 3000)])
def test_large_ratios_are_resolved(sigma, steps):
    answer = epochs(sigma, steps, 1).delta(0.1, direction="remove")
    assert answer.upper / answer.lower - 1.0 < 1e-8


BASES = {
    "widths": (
        "exp(-x**2/8)/(2*sqrt(2*pi))",
        "exp(-2*x**2/9)*2/(3*sqrt(2*pi))",
    ),
    "uniform": ("Piecewise((1, x < 1), (0, True))", "Piecewise((1/2, x < 2), (0, True))"),
    "logistic": ("exp(-x)/(1 + exp(-x))**2", "exp(-x - 1/2)/(1 + exp(-x - 1/2))**2"),
}


@pytest.mark.quick_cases("2-uniform")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("steps", [2, 30])
def test_every_base_is_answered_or_refused(name, steps):
    """W is unbounded, 0 somewhere, or nearly constant: numbers with bounds, or one sentence."""
    x = sp.Symbol("x", real=True)
    support = (0, 2) if name == "uniform" else (-sp.oo, sp.oo)
    laws = [parse(density, {"x": x}) for density in BASES[name]]
    base = Mechanism.from_pair(*laws, x, support)
    drawn = base.subsample(SCHEME, steps=steps)
    for direction in ("remove", "add"):
        own = compose(base, 1).delta(0.0, direction=direction)
        try:
            answer = compose(drawn, 1).delta(0.0, direction=direction)
        except AccuracyError as error:
            assert "random allocation of" in str(error)  # noqa: PT017
            continue
        assert 0.0 <= answer.lower <= answer.delta <= answer.upper <= 1.0
        # δ(0) is the mean absolute deviation of a mean of copies of W, at most that of one.
        assert answer.lower <= own.upper
