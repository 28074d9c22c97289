"""Quantiles against SciPy's, samples against its distribution functions; a figure of each kind."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
import scipy.stats
import sympy as sp

from symdp import Mechanism, derive, mechanisms
from symdp.errors import AccuracyError, InputError

X = sp.Symbol("x", real=True)
SHARES = np.array([1e-12, 1e-3, 0.1, 0.4, 0.9, 0.999])
LEAST_P = 1e-4  # of a Kolmogorov-Smirnov test: a right sampler with this seed has 0.8
mixture = 3 * sp.exp(-((X + 4) ** 2) / 2) / 4 + sp.exp(-((X - 4) ** 2) * 8)
CASES = {
    "laplace": (mechanisms.laplace(b=2), scipy.stats.laplace(scale=2)),
    "heavy": (mechanisms.student_t(nu=3, s=2), scipy.stats.t(3, scale=2)),
    "cauchy": (Mechanism.additive(1 / (sp.pi * (1 + X**2)), X), scipy.stats.cauchy()),
    "skewed": (mechanisms.gumbel(b=2), scipy.stats.gumbel_r(scale=2)),
    "singular end": (
        Mechanism.additive(sp.exp(-X) / sp.sqrt(sp.pi * X), X, support=(0, sp.oo)),
        scipy.stats.gamma(0.5),
    ),
    "narrow and far": (
        Mechanism.additive(1000 * sp.exp(-((X - 1000) ** 2) * 500000) / sp.sqrt(2 * sp.pi), X),
        scipy.stats.norm(1000, 1e-3),
    ),
    "two ends": (
        Mechanism.additive(20 * X**3 * (1 - X), X, sp.Rational(1, 9), (0, 1)),
        scipy.stats.beta(4, 2),
    ),
}


@pytest.mark.slow_cases("narrow and far")
@pytest.mark.parametrize("name", CASES)
def test_quantiles(name: str) -> None:
    mechanism, truth = CASES[name]
    assert mechanism.quantile(SHARES) == pytest.approx(truth.ppf(SHARES), rel=1e-11)
    assert isinstance(mechanism.quantile(0.4), float)


@pytest.mark.quick_cases("laplace")
@pytest.mark.parametrize("name", CASES)
def test_samples_have_the_distribution(name: str) -> None:
    mechanism, truth = CASES[name]
    drawn = mechanism.sample(50_000, rng=7)
    assert scipy.stats.kstest(drawn, truth.cdf).pvalue > LEAST_P


@pytest.mark.quick_cases("<lambda>3")
@pytest.mark.parametrize(
    "wrong",
    [
        lambda: mechanisms.laplace(b="1.88").sample(50_000, rng=7),
        lambda: -mechanisms.gumbel(b=2).sample(50_000, rng=7),
        lambda: mechanisms.laplace(b=2).sample(50_000, rng=7) + 0.05,
        lambda: mechanisms.logistic(s=1).sample(50_000, rng=7),
    ],
)
def test_a_wrong_sampler_fails(wrong) -> None:
    """The test tells 6 % of the scale, the other sign, a small move, another density."""
    assert scipy.stats.kstest(wrong(), scipy.stats.laplace(scale=2).cdf).pvalue < LEAST_P


def test_two_modes() -> None:
    noise = Mechanism.additive(mixture, X, normalize=True)
    mass = 0.75 * np.sqrt(2 * np.pi), np.sqrt(np.pi / 8)
    share = mass[0] / sum(mass)
    left, right = scipy.stats.norm(-4, 1), scipy.stats.norm(4, 0.25)
    places = noise.quantile([0.01, 0.5, 0.95])
    found = share * left.cdf(places) + (1 - share) * right.cdf(places)
    assert found == pytest.approx([0.01, 0.5, 0.95], rel=1e-11)


def test_integers() -> None:
    noise, truth = mechanisms.discrete_laplace(b=2), scipy.stats.dlaplace(0.5)
    shares = np.linspace(0.01, 0.99, 37)
    assert noise.quantile(shares).tolist() == truth.ppf(shares).tolist()
    drawn = noise.sample(50_000, rng=7)
    seen = [(drawn == k).sum() for k in range(-6, 7)]
    expected = [50_000 * truth.pmf(k) for k in range(-6, 7)]
    rest = [50_000 - sum(seen)], [50_000 - sum(expected)]
    assert scipy.stats.chisquare(seen + rest[0], expected + rest[1]).pvalue > LEAST_P


@pytest.mark.slow
def test_moments() -> None:
    noise = mechanisms.gumbel(b=2)
    assert noise.mean == pytest.approx(2 * np.euler_gamma, rel=1e-15)
    assert noise.std == pytest.approx(2 * np.pi / np.sqrt(6), rel=1e-15)
    heavy = mechanisms.student_t(nu="3/2", s=2)
    assert heavy.mean_abs == pytest.approx(scipy.stats.t(1.5, scale=2).expect(abs), rel=1e-6)
    with pytest.raises(AccuracyError, match="whether it is finite is open"):
        _ = heavy.std


def test_what_adds_no_noise_says_so() -> None:
    coin = mechanisms.randomized_response(epsilon_0=1)
    for ask in (lambda: coin.mean, lambda: coin.quantile(0.5), lambda: coin.sample(3)):
        with pytest.raises(InputError, match="randomized_response is no additive noise"):
            ask()
    with pytest.raises(InputError, match="must lie between 1e-30 and 1"):
        mechanisms.laplace(b=2).quantile([0.5, 1.0])


@pytest.mark.quick_cases("mechanism1", "mechanism2")
@pytest.mark.parametrize(
    "mechanism",
    [
        mechanisms.gumbel(b=2),
        mechanisms.discrete_laplace(b=2),
        mechanisms.randomized_response(epsilon_0=1),
    ],
)
def test_a_figure(mechanism) -> None:
    with mpl.rc_context({"backend": "Agg"}):
        from matplotlib import pyplot

        axes = mechanism.plot().ravel()
        assert len(axes) == 4
        _, rows = pyplot.subplots(4, 1)
        assert mechanism.plot(rows) is rows
        with pytest.raises(InputError, match="four axes"):
            mechanism.plot(rows[0])
        places, losses = axes[1].lines[0].get_data()
        top = mechanism.pair()
        assert np.all(np.isfinite(losses))
        assert top.Q is not None
        assert axes[3].lines[0].get_ydata()[0] == pytest.approx(1.0, abs=1e-9)
        assert places.size == losses.size
        pyplot.close("all")


def test_the_figure_of_a_derivation() -> None:
    with mpl.rc_context({"backend": "Agg"}):
        from matplotlib import pyplot

        axes = derive(mechanisms.laplace(b=2)).plot()
        losses = axes[0, 1].lines[0].get_ydata()
        assert (losses.min(), losses.max()) == pytest.approx((-0.5, 0.5))
        assert "finite for t from -∞ to ∞" in axes[1, 0].get_title()
        pyplot.close("all")


def test_noise_on_integers_has_whole_numbers() -> None:
    for noise in (mechanisms.skellam(mu=2), mechanisms.discrete_laplace(b=2)):
        drawn = noise.sample(1000, rng=3)
        assert drawn.dtype == np.int64
        assert len(set(drawn.tolist())) > 5
    assert mechanisms.laplace(b=2).sample(3, rng=3).dtype == np.float64
