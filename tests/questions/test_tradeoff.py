"""Trade-off curves, attacks, Rényi and Gaussian privacy against closed forms."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp

from symdp import Mechanism, compose, mechanisms
from symdp.errors import InputError
from symdp.methods.gaussian import log_gaussian_delta
from symdp.questions import tradeoff
from symdp.questions.tradeoff import bayes_error, gaussian_mu, renyi_divergence, trade_off

TEN = compose(mechanisms.gaussian(sigma=5), 10)  # μ = √10/5
MU = math.sqrt(10) / 5
COIN = compose(mechanisms.randomized_response(epsilon_0=1), 1)
SKEW = compose(mechanisms.gumbel(b=2), 3)


def normal(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def quantile(p):
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


@pytest.mark.parametrize("alpha", [1e-8, 1e-3, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("direction", ["both", "remove", "add"])
def test_gaussian_trade_off(alpha, direction):
    """f(α) = Φ(Φ⁻¹(1 − α) − μ)."""
    with mpmath.workdps(40):
        exact = float(normal(quantile(1 - mpmath.mpf(alpha)) - mpmath.sqrt(10) / 5))
    # Near α = 1 two numbers of size 1 − α cancel to f.
    assert trade_off(TEN, alpha, direction) == pytest.approx(exact, rel=1e-11)


@pytest.mark.quick_cases("0.0", "1.0")
@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.1, 1 / (1 + math.e), 0.5, 0.9, 1.0])
def test_randomised_response_is_piecewise_linear(alpha):
    exact = max(0.0, 1 - math.e * alpha, (1 - alpha) / math.e)
    assert trade_off(COIN, alpha) == pytest.approx(exact, abs=1e-13)
    assert COIN.trade_off(alpha) == trade_off(COIN, alpha)


@pytest.mark.slow_cases("0.02", "0.3")
@pytest.mark.parametrize("alpha", [0.02, 0.3, 0.8])
def test_the_inverse_is_the_other_direction_and_both_lies_below(alpha):
    beta = trade_off(SKEW, alpha, "remove")
    assert SKEW.inverse_trade_off(beta, "remove") == pytest.approx(alpha, rel=1e-9)
    both = trade_off(SKEW, alpha)
    assert both <= min(beta, trade_off(SKEW, alpha, "add")) + 1e-14
    assert SKEW.inverse_trade_off(both) == pytest.approx(alpha, rel=1e-9)
    assert beta != pytest.approx(trade_off(SKEW, alpha, "add"), rel=1e-3)


def test_trade_off_begins_below_one_where_some_mass_is_at_infinity():
    import sympy as sp

    from symdp.model.mechanism import Mechanism

    x = sp.Symbol("x", real=True)
    uniform = compose(Mechanism.additive(sp.Rational(1, 4), x, support=(-2, 2)), 1)
    assert trade_off(uniform, 0.0) == pytest.approx(0.75, rel=1e-14)
    assert trade_off(uniform, 0.25) == pytest.approx(0.5, rel=1e-12)


def test_attacks():
    advantage = TEN.membership_advantage()
    with mpmath.workdps(30):
        exact = float(2 * normal(mpmath.sqrt(10) / 10) - 1)
    assert advantage == pytest.approx(exact, rel=1e-13)
    assert bayes_error(TEN) == pytest.approx((1 - exact) / 2, rel=1e-13)
    # An attacker who guesses by the prior alone is right no less often.
    assert TEN.bayes_error(0.01) <= 0.01
    assert bayes_error(SKEW, 0.3) == min(bayes_error(SKEW, 0.3, d) for d in ("remove", "add"))


@pytest.mark.parametrize("prior", [0.05, 0.4, 0.7])
def test_bayes_error_is_the_best_point_of_the_trade_off(prior):
    """min over α of (1 − π)α + π f(α), for Gaussian noise at its own threshold."""
    with mpmath.workdps(30):
        mu = mpmath.sqrt(10) / 5
        threshold = mu / 2 + mpmath.log((1 - mpmath.mpf(prior)) / prior) / mu
        exact = (1 - mpmath.mpf(prior)) * normal(-threshold) + prior * normal(threshold - mu)
        assert bayes_error(TEN, prior) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("order", [0, 0.3, 1 - 1e-9, 1, 1 + 1e-9, 2, 32, 1000])
def test_gaussian_renyi_curve(order):
    assert TEN.renyi(order) == pytest.approx(order * 0.2, rel=1e-12, abs=1e-13)


def test_renyi_limits():
    """Randomised response: D_∞ = ε₀, D₁ = ε₀ tanh(ε₀/2)."""
    assert renyi_divergence(COIN, math.inf) == pytest.approx(1.0, rel=1e-14)
    assert renyi_divergence(COIN, 1) == pytest.approx(math.tanh(0.5), rel=1e-13)
    assert renyi_divergence(TEN, math.inf) == math.inf
    orders = [0.5, 1.0, 2.0, 10.0, math.inf]
    curve = [renyi_divergence(COIN, order) for order in orders]
    assert curve == sorted(curve)
    sides = [renyi_divergence(SKEW, 1.4, side) for side in ("remove", "add")]
    assert renyi_divergence(SKEW, 1.4) == max(sides)
    assert sides[0] != pytest.approx(sides[1], rel=1e-3)


def test_gaussian_privacy_of_gaussian_noise():
    assert TEN.gaussian_privacy(1e-6).mu == pytest.approx(MU, rel=1e-9)
    for epsilon in (-0.5, 0.0, 3.0, 20.0):
        mu = gaussian_mu(epsilon, TEN.delta(epsilon).log_delta)
        assert mu == pytest.approx(MU, rel=1e-11)


@pytest.mark.slow
def test_the_gaussian_curve_lies_above_the_profile_and_touches_it():
    found = COIN.gaussian_privacy(1e-6)
    gaps = []
    for k in range(100):
        epsilon = k / 100
        log_delta = COIN.delta(epsilon).log_delta
        gaps.append(log_gaussian_delta(found.mu, epsilon) - log_delta)
    assert min(gaps) > -1e-9
    touch = COIN.delta(found.epsilon).log_delta
    assert log_gaussian_delta(found.mu, found.epsilon) == pytest.approx(touch, abs=1e-10)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: trade_off(TEN, -0.1), "alpha = -0.1"),
        (lambda: trade_off(TEN, math.nan), "alpha = nan"),
        (lambda: trade_off(TEN, 0.5, "up"), "direction"),
        (lambda: TEN.inverse_trade_off(1.5), "beta = 1.5"),
        (lambda: bayes_error(TEN, 1.0), "prior = 1.0"),
        (lambda: renyi_divergence(TEN, -1), "order = -1"),
        (lambda: renyi_divergence(TEN, math.nan), "order = nan"),
        (lambda: gaussian_mu(1.0, 0.0), "below 1"),
        (lambda: TEN.gaussian_privacy(0.0), "least_delta = 0.0"),
    ],
)
def test_bad_input_names_the_culprit(call, part):
    with pytest.raises(InputError, match=part):
        call()


@pytest.mark.quick_cases("steps0")
@pytest.mark.parametrize(
    "steps",
    [
        compose(mechanisms.gumbel(b=2), 3),  # the directions cross beside 0
        compose([(mechanisms.gaussian(sigma=2), 3), (mechanisms.laplace(b=3), 2)]),
        compose(mechanisms.gaussian(sigma=3).subsample("poisson", "0.01"), 400),
    ],
)
def test_slopes_find_the_lines_that_heights_find(steps, monkeypatch):
    rates = [1e-9, 1e-3, 0.1, 0.37, 0.5, 0.9, 0.999]
    by_slopes = trade_off(steps, rates)
    monkeypatch.setattr(tradeoff._Complement, "_touches", lambda lines, log_alpha: False)
    assert by_slopes == pytest.approx(trade_off(steps, rates), rel=1e-9)


def test_a_hundred_rates_take_a_few_lines_each(monkeypatch):
    asked = []
    answered = tradeoff._Complement._lower
    monkeypatch.setattr(
        tradeoff._Complement,
        "_lower",
        lambda lines, epsilon: asked.append(epsilon) or answered(lines, epsilon),
    )
    steps = compose(mechanisms.gaussian(sigma=1.3).subsample("poisson", "0.01"), 100)
    trade_off(steps, np.linspace(0.01, 0.99, 100))
    assert len(set(asked)) < 350  # 1 300 where heights alone tell


@pytest.mark.slow
def test_losses_without_moments_have_a_trade_off():
    """The variance of such a loss is no double: the search must not begin that far away.

    x⁻⁴e^{−4/x} on x > 0 moved by 1 has losses that fall like 1/ℓ, and the highest line lies far
    below ε = 0.
    """
    x = sp.Symbol("x", positive=True)
    noise = Mechanism.additive(x**-4 * sp.exp(-4 / x) * 32, x, support=(0, sp.oo))
    steps = compose(noise, 5)
    miss = steps.trade_off(0.1)
    heights = [
        1 - steps.delta(epsilon, direction=direction).upper - 0.1 * math.exp(epsilon)
        for direction in ("remove", "add")
        for epsilon in (-10, -9, -8, -7)
    ]
    lowest = min(max(heights[:4]), max(heights[4:]))
    assert lowest <= miss * (1 + 1e-9)
    assert 0 < miss < 1e-5


def test_lines_far_apart_are_those_of_one_profile():
    """Neighbours 70 apart on the scale of ε have a chord whose shares add up to 1 but for 1e-11."""
    sampled = mechanisms.gaussian(sigma="1/20").subsample("poisson", "99/100")
    with mpmath.workdps(40):
        threshold = _normal_quantile((mpmath.mpf("0.05") - mpmath.mpf("0.01")) / mpmath.mpf("0.99"))
        missed = mpmath.ncdf(-(20 + threshold))
    assert trade_off(compose(sampled), 0.05) == pytest.approx(float(missed), rel=1e-10)


def _normal_quantile(share):
    return mpmath.sqrt(2) * mpmath.erfinv(2 * share - 1)


@pytest.mark.slow
def test_five_steps_of_integers_whose_sums_lie_close():
    """Sums of losses are dense, next to each an answer's own slope is blurred.

    The truth is that of the Neyman–Pearson test: all sums of losses, from the largest.
    """
    k = sp.Symbol("k", integer=True)
    noise = Mechanism.additive(
        1 / sp.cosh(k / 4) ** 2, k, 1, normalize=True, shift="exactly", support="integers"
    )
    alpha = 0.1
    places = np.arange(-200, 201)
    q = np.cosh(places / 4.0) ** -2.0
    q /= q.sum()
    p = np.roll(q, 1)
    kept = np.arange(p.size) > 0
    loss = np.log(p[kept] / q[kept])
    mass = p[kept]
    likely = mass > 1e-11
    sums, masses = np.zeros(1), np.ones(1)
    for _ in range(5):
        sums = np.add.outer(sums, loss[likely]).ravel()
        masses = np.multiply.outer(masses, mass[likely]).ravel()
        order = np.argsort(sums)[masses[np.argsort(sums)] > 1e-16]
        sums, masses = sums[order], masses[order]
        first = np.unique(np.round(sums, 11), return_index=True)[1]
        masses = np.add.reduceat(masses, first)
        sums = sums[first]
    sums, masses = sums[::-1], masses[::-1]
    alphas = np.cumsum(masses * np.exp(-sums))
    powers = np.cumsum(masses)
    true = 1.0 - np.interp(alpha, alphas, powers)
    found = compose(noise, 5).trade_off(alpha)
    assert true - 2e-8 < found < true + 1e-9
