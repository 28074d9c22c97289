"""The theorems as functions: limits are reached, bounds hold, conditions that fail are named."""

from __future__ import annotations

import itertools
import math
import re

import mpmath as mp
import numpy as np
import pytest
from proved_bounds import log_central_limit

from benchmarks.reproduction import theorems as fa
from symdp import compose, mechanisms
from symdp.errors import InputError
from symdp.methods.route import Contour
from symdp.methods.series import SaddlePoint
from symdp.methods.spa_bounds import log_central_limit_bound, log_interval, rates
from symdp.numeric.saddle_point import Strip, saddle_point

SAMPLED = mechanisms.gaussian(sigma=2).subsample("poisson", "1/100")


def at(count, deviations, mechanism=SAMPLED):
    law = compose(mechanism, count).law("remove")
    return law, law.mean + deviations * math.sqrt(float(law.cumulants(0.0, 2)[1]))


@pytest.mark.parametrize("b", [0.0, 1.0, 3.0])
def test_theorem_7_is_the_limit_of_the_error_of_theorem_5(b):
    """At the saddle point; what is left falls like n^{−1/2}, the error itself does too."""
    left, errors, mechanism = [], [], mechanisms.gaussian(sigma=2).subsample("poisson", "1/4")
    for count in (10**6, 10**8, 10**10):
        law, epsilon = at(count, b, mechanism)
        found = rates(law, epsilon)
        saddle = saddle_point(law, epsilon, Strip.RIGHT)
        half = math.exp(log_interval(law, epsilon, Strip.RIGHT, saddle.tilt)[2])
        left.append(abs(half / found.tilted - 1.0))
        errors.append(half)
        assert found.saddle_point == pytest.approx(saddle.tilt, rel=30 / math.sqrt(count * 1e-4))
    assert left[2] < 1e-2
    assert left[1] / left[2] == pytest.approx(10.0, rel=0.3)
    assert errors[0] / errors[1] == pytest.approx(10.0, rel=0.3)
    assert errors[1] / errors[2] == pytest.approx(10.0, rel=0.05)


@pytest.mark.parametrize("count", [100, 10**4])
def test_the_rate_at_a_finite_number_of_steps(count):
    """(86), (87): with t₀√v = x(1 + τ) the error of Theorem 5 is its limit times what τ tells."""
    law, epsilon = at(count, 1.0, mechanisms.gumbel(b=4))
    found, saddle = rates(law, epsilon), saddle_point(law, epsilon, Strip.RIGHT).tilt
    with mp.workdps(30):  # c is e^{1/b}; tilted by t the loss is −Σ of exponential variables
        c, t = mp.exp(mp.mpf(1) / 4), mp.mpf(saddle)
        mean, variance = count * (mp.log(c) - (c - 1) / c), count * ((c - 1) / c) ** 2
        cgf = count * ((1 + t) * mp.log(c) - mp.log(c + t * (c - 1)))
        x = (1 + mp.sqrt(5)) / 2
        tau = t * mp.sqrt(variance) / x - 1
        third = mp.mpf("0.469") * (12 / mp.e - 2) / mp.sqrt(count)
        limit = 2 * third * mp.exp(1 - x * x / 2)
        payoff = t * mp.log(t) - (1 + t) * mp.log1p(t)
        rest = cgf - mean * t - variance * t * t / 2
        expected = limit * mp.exp(tau + x * x * tau * tau / 2 + payoff + rest)
    half = math.exp(log_interval(law, epsilon, Strip.RIGHT, saddle)[2])
    for ours, own in ((found.tilted, limit), (half, expected)):  # |·|³ has a kink, rounded upwards
        assert float(own) * (1 - 1e-9) <= ours <= 1.002 * float(own)


def test_what_tilting_buys():
    """(90)-(93): the gain, and errors as shares of δ where b grows with n."""
    shares = []
    for count, b in ((10**8, 2.0), (10**10, 4.0), (10**12, 6.0), (10**14, 8.0)):
        law, epsilon = at(count, b)
        found = rates(law, epsilon)
        x = (b + math.sqrt(b * b + 4.0)) / 2.0
        assert found.gain == pytest.approx(2.0 * math.exp(1.0 - x * x / 2.0), rel=1e-9)
        shares.append((found.untilted_share, found.tilted_share))
    untilted, tilted = zip(*shares, strict=True)
    assert all(later > earlier for earlier, later in itertools.pairwise(untilted))
    assert all(later < earlier for earlier, later in itertools.pairwise(tilted))
    assert tilted[-1] < 1e-4
    assert untilted[-1] > 1.0


@pytest.mark.slow
def test_theorem_9():
    for b in (0.5, 2.0):
        gaps = []
        for count in (10**6, 10**8):
            law, epsilon = at(count, b)
            exact = math.exp(Contour().log_delta(law, epsilon).log_delta)
            gaps.append(abs(exact - rates(law, epsilon).delta))
        assert gaps[1] < 0.2 * gaps[0]


@pytest.mark.parametrize("tilt", [0.2, 1.0, 3.0])
def test_proposition_4(tilt):
    law, epsilon = at(2000, 1.0)
    bound = log_central_limit_bound(law, epsilon, tilt)
    assert log_central_limit(law, epsilon, tilt) < bound
    saddle = saddle_point(law, epsilon, Strip.RIGHT)
    first = SaddlePoint(0).log_delta(law, epsilon).log_delta
    ratio = saddle.curvature / float(law.cumulants(saddle.tilt, 2)[1])
    at_saddle = log_central_limit_bound(law, epsilon, saddle.tilt)
    assert at_saddle == pytest.approx(first + 0.5 * math.log(ratio), rel=1e-6)


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "said"),
    [
        (mechanisms.gaussian(sigma=1), 0.1, "at least the mean of the loss"),
        (mechanisms.gaussian(sigma=1), 50.0, "b must stay bounded"),
        (mechanisms.randomized_response(epsilon_0="1/10"), -1.0, "at least the mean"),
    ],
)
def test_conditions_of_theorem_7(mechanism, epsilon, said):
    with pytest.raises(InputError, match=said):
        rates(compose(mechanism, 1).law("remove"), epsilon)


@pytest.mark.quick_cases("1.0")
@pytest.mark.parametrize("tilt", [0.5, 1.0, 7.0, 40.0])
def test_log_moments_against_mpmath(tilt):
    q, sigma = 0.02, 3.0
    with mp.workdps(30):
        peaks = [mp.mpf(k) for k in range(-60, 120, 3)]
        value = mp.quad(
            lambda t: (
                mp.npdf(t, 0, sigma)
                * (1 - q + q * mp.exp((2 * t - 1) / (2 * sigma**2))) ** (1 + tilt)
            ),
            peaks,
        )
        expected = float(mp.log(value))
    assert fa.log_moment(q, sigma, tilt) == pytest.approx(expected, rel=1e-9, abs=1e-13)
    law = compose(mechanisms.gaussian(sigma=3).subsample("poisson", "1/50"), 1).law("remove")
    assert fa.log_moment(q, sigma, tilt) == pytest.approx(law.cgf(tilt), rel=1e-9, abs=1e-13)


def test_tails_are_bounded_and_theorem_8_is_no_better_than_chernoff():
    """δ(L) ≤ P(S ≥ L) must lie below each bound."""
    for rate, sigma, steps, reach in (
        (0.01, 4, 10_000, 2.5),
        (0.05, 5, 500, 3.0),
        (0.1, 8, 200, 2.2),
    ):
        noise = mechanisms.gaussian(sigma=sigma).subsample("poisson", str(rate))
        delta = compose(noise, steps).delta(reach, direction="remove").delta
        chernoff = fa.chernoff_tail(rate, sigma, steps, reach)
        assert delta < chernoff < fa.tail_bound(rate, sigma, steps, reach)


def test_the_estimate_is_that_of_the_printed_table():
    for reach, printed in ((2, 3.32e-1), (6, 3.32e-6), (10, 1.36e-16), (12, 8.30e-24)):
        assert fa.tail_estimate(0.01, 1.5, 10_000, reach) == pytest.approx(printed, rel=3e-3)


def density(rate, sigma, loss):
    """ω of one step, zero below log(1 − q)."""
    with np.errstate(all="ignore"):
        ratio = (np.exp(loss) - 1.0 + rate) / rate
        x = sigma**2 * np.log(ratio) + 0.5
        slope = sigma**2 * np.exp(loss) / (np.exp(loss) - 1.0 + rate)
        mixture = (1 - rate) * np.exp(-0.5 * (x / sigma) ** 2)
        mixture += rate * np.exp(-0.5 * ((x - 1) / sigma) ** 2)
        found = mixture / (sigma * math.sqrt(2 * math.pi)) * slope
    return np.where(ratio > 0, np.nan_to_num(found), 0.0)


@pytest.mark.parametrize(("rate", "sigma", "reach"), [(0.1, 1.0, 4.0), (0.02, 4.0, 3.0)])
def test_discretisation_is_bounded(rate, sigma, reach):
    for points in (1000, 4000, 16_000):
        loss = -reach + 2 * reach / points * np.arange(points)
        found = 2 * reach / points * density(rate, sigma, loss).sum()
        exact = 1.0 - sum(
            share * 0.5 * math.erfc((edge - mean) / (sigma * math.sqrt(2)))
            for share, mean in ((1 - rate, 0.0), (rate, 1.0))
            for edge in [sigma**2 * math.log((math.exp(reach) - 1 + rate) / rate) + 0.5]
        )
        assert abs(found - exact) <= fa.discretisation_bound(rate, sigma, reach, points)


@pytest.mark.parametrize(("rate", "sigma", "steps"), [(0.3, 4.0, 30), (0.45, 2.0, 12)])
def test_periodisation_is_bounded(rate, sigma, steps):
    """Lemma 7 against transforms over a window of L = 1 and over one of 16."""
    spacing, found = 1e-4, []
    for reach in (1.0, 16.0):
        loss = -reach + spacing * np.arange(round(2 * reach / spacing))
        mass = np.fft.ifftshift(density(rate, sigma, loss) * spacing)
        total = np.fft.fftshift(np.fft.ifft(np.fft.fft(mass) ** steps).real)
        found.append(total[(loss >= 0.0) & (loss < 1.0 - spacing / 2)].sum())
    bound = fa.periodisation_bound(rate, sigma, steps, 1.0)
    assert abs(found[0] - found[1]) <= bound
    assert math.isinf(fa.periodisation_bound(rate, sigma, 64, 1.0))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: fa.periodisation_bound(0.5, 2, 5, 4), "Lemma 7: q = 0.5 must be above 0 and"),
        (lambda: fa.periodisation_bound(0.1, 2, 5, 0.5), "Lemma 7: L = 0.5 must be at least 1"),
        (lambda: fa.tail_bound(0.3, 4, 5, 6), "Theorem 8: q = 0.3 must be above 0 and at most"),
        (lambda: fa.tail_bound(0.01, 3, 5, 6), "Theorem 8: σ = 3 must be at least 4"),
        (lambda: fa.tail_bound(0.01, 4, 5, 2), "Theorem 8: L/2 = 1 must be above 1"),
        (lambda: fa.tail_bound(0.01, 4, 5, 90), "Theorem 8: L/2 = 45 must be at most"),
        (lambda: fa.log_moment_estimate(0.01, 0.5, 1), "Lemma 9: σ = 0.5 must be at least 1"),
        (lambda: fa.tail_estimate(0.1, 1.5, 5, 6), "Lemma 9: q = 0.1 must be below"),
        (lambda: fa.tail_estimate(0.01, 2, 5, 40), "Lemma 9: λ = 20 must be positive and at"),
        (lambda: fa.discretisation_bound(0.1, 2, 0.5, 9), "discretisation: L must be at least"),
        (lambda: fa.log_moment(0.1, 2, 0), "λ = 0 must be positive"),
        (lambda: fa.log_moment(0.1, -2, 1), "σ = -2 must be positive and finite"),
    ],
)  # fmt: skip
def test_a_condition_that_fails_is_named(call, said):
    with pytest.raises(InputError, match=re.escape(said)):
        call()
