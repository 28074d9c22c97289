"""The Edgeworth interval: its error bound is never exceeded, and it always holds the truth."""

from __future__ import annotations

import math
from dataclasses import astuple

import mpmath as mp
import numpy as np
import pytest
from proved_bounds import (
    MECHANISMS,
    TRUE_CASES,
    assert_contains,
    assert_within_moments,
    composition,
    exact_points,
)

from symdp import compose, mechanisms
from symdp.methods.eeai import (
    _KERNEL,
    EdgeworthInterval,
    _edgeworth_error,
    _log_largest,
    edgeworth_tail,
    smoothing_error,
    uniform_error,
)
from symdp.methods.interval import least_log_delta, log_hoeffding, log_tail, summands
from symdp.methods.moments import Moments
from symdp.methods.route import Contour
from symdp.numeric.many.schedule import RuleLaw
from symdp.prove.truth import privacy_profile

METHOD = EdgeworthInterval()
SUBSAMPLED = MECHANISMS["subsampled normal"]


@pytest.mark.quick_cases(
    "normal noise",
    "laplace",
    "subsampled laplace",
    "randomized response",
    "discrete laplace",
    "one-sided",
)
@pytest.mark.parametrize("name", MECHANISMS)
def test_contains_the_contour(name):
    law = composition(name, 1000).law("remove")
    for epsilon, exact in exact_points(name, 1000, "remove"):
        answer = METHOD.log_delta(law, epsilon)
        assert_contains(answer, exact)
        assert answer.log_lower is not None
        assert_within_moments(answer, law, epsilon)


@pytest.mark.quick_cases("laplace-4000", "randomized response-30", "randomized response-4000")
@pytest.mark.parametrize(("name", "count"), TRUE_CASES)
def test_contains_arbitrary_precision(name, count):
    law = composition(name, count).law("remove")
    mean, variance = (float(c) for c in law.cumulants(0.0, 2))
    epsilon = round(mean - 0.5 * math.sqrt(variance), 3)
    truth = privacy_profile([(MECHANISMS[name].pair("remove"), count)], epsilon, digits=20)
    answer = METHOD.log_delta(law, epsilon)
    assert answer.log_lower < float(mp.log(truth)) < answer.log_upper


@pytest.mark.parametrize(
    ("count", "known", "digit"),
    [(10**3, 0.10, 0.005), (10**4, 0.0137, 5e-5), (10**5, 0.0026, 5e-5), (10**6, 7.5e-4, 5e-6)],
)
def test_known_error_bounds(count, known, digit):
    found = uniform_error(summands(compose(SUBSAMPLED, count).law("remove"), 0.0))
    assert abs(found - known) <= digit


def binomial_distance(loss, p, count):
    """sup|F − E₁| of a sum of `count` losses ±loss with P(+) = p, attained at a jump, in mpmath."""
    with mp.workdps(30):
        p = mp.mpf(p)
        deviation = 2 * loss * mp.sqrt(count * p * (1 - p))
        mean = count * loss * (2 * p - 1)
        skew = (1 - 2 * p) / mp.sqrt(count * p * (1 - p))
        below, worst = mp.mpf(0), mp.mpf(0)
        mass = (1 - p) ** count
        for k in range(count + 1):
            x = (loss * (2 * k - count) - mean) / deviation
            series = mp.ncdf(x) - skew * (x * x - 1) * mp.npdf(x) / 6
            worst = max(worst, abs(below - series), abs(below + mass - series))
            below += mass
            mass *= p / (1 - p) * (count - k) / (k + 1)
        return float(worst)


@pytest.mark.parametrize("count", [1, 5, 40, 1000])
@pytest.mark.parametrize("loss", [0.05, 1.0, 3.0])
def test_error_bound_is_never_exceeded_with_atoms(loss, count):
    """Two losses: jumps make the distance as large as n^{−1/2}, so that the bound has a rival."""
    steps = compose(mechanisms.randomized_response(epsilon_0=str(loss)), count)
    moments = summands(steps.law("remove"), 0.0)
    truth = binomial_distance(mp.mpf(loss), 1 / (1 + mp.exp(-mp.mpf(loss))), count)
    assert truth <= _edgeworth_error(moments)
    assert truth <= uniform_error(moments)
    assert truth <= smoothing_error(steps.law("remove"), 0.0, moments)


@pytest.mark.quick_cases("logistic-50--1.0", "gumbel-50-0.0", "logistic-50-0.0")
@pytest.mark.parametrize("tilt", [0.0, -1.0])
@pytest.mark.parametrize("count", [50, 20000])
@pytest.mark.parametrize("name", ["subsampled normal", "logistic", "gumbel", "two variances"])
def test_error_bound_is_never_exceeded(name, count, tilt):
    """F from its Fourier inversion (Gil-Pelaez), E₁ from the moments, over eleven deviations."""
    law = composition(name, count).law("remove")
    moments = summands(law, tilt)
    deviation = math.sqrt(moments.variance)
    step = 0.01
    y = (np.arange(4000) + 0.5) * step
    line = np.exp(
        law.cgf_line(tilt, y / deviation) - 1j * y * (law.mean + moments.shift) / deviation
    )
    kept = np.abs(line).max(initial=0.0, where=y > 35.0)
    assert kept < 1e-6  # the sum is long enough
    x = np.linspace(-5.5, 5.5, 221)
    tail = 0.5 + (np.imag(np.exp(-1j * np.outer(x, y)) * line) / y).sum(axis=1) * step / math.pi
    series = np.asarray([edgeworth_tail(moments, float(v)) for v in x])
    distance = float(np.abs(tail - series).max())
    assert distance <= _edgeworth_error(moments)
    assert distance <= uniform_error(moments)
    smooth = smoothing_error(law, tilt, moments)
    assert distance <= smooth
    if count == 20000:
        assert distance < 3e-3  # and the series is one: the comparison compares something
        assert smooth < 0.02 * uniform_error(moments)


def test_error_bound_falls_like_the_inverse_root():
    """The bound without an assumption on smoothness is 0.1995 K̃₃/√n to leading order."""
    values = [
        uniform_error(summands(compose(SUBSAMPLED, n).law("remove"), 0.0)) for n in (10**8, 10**10)
    ]
    assert math.log(values[1] / values[0], 100) == pytest.approx(-0.5, abs=0.01)


@pytest.mark.quick_cases("laplace")
@pytest.mark.parametrize("name", ["subsampled normal", "logistic", "laplace"])
def test_continuous_losses_have_the_better_rate(name):
    values = []
    for count in (10**3, 10**5):
        law = composition(name, count).law("remove")
        values.append(smoothing_error(law, 0.0, summands(law, 0.0)))
    assert math.log(values[1] / values[0], 100) == pytest.approx(-1.0, abs=0.05)


def test_atoms_keep_the_slower_rate():
    """Jumps of two losses are as large as n^{−1/2}: no bound can fall faster."""
    values = []
    for count in (10**3, 10**5):
        law = composition("randomized response", count).law("remove")
        values.append(smoothing_error(law, 0.0, summands(law, 0.0)))
    assert math.log(values[1] / values[0], 100) == pytest.approx(-0.5, abs=0.05)


def test_kernel_of_the_smoothing_inequality():
    """|k(v)| ≤ c/(2πv) and |k(v) − i/(2πv)| ≤ ½(1 − v + π²v²/18) on (0, 1]."""
    with mp.workdps(25):
        for j in range(1, 401):
            v = mp.mpf(j) / 400
            k = (1 - v) / 2 + 0.5j * ((1 - v) * mp.cot(mp.pi * v) + 1 / mp.pi if v < 1 else 0)
            assert abs(k) <= _KERNEL / (2 * mp.pi * v)
            assert abs(k - 1j / (2 * mp.pi * v)) <= (1 - v + mp.pi**2 * v**2 / 18) / 2


@pytest.mark.slow
def test_widths_shrink():
    """At one size of the loss (noise ∝ √n), O(1/n) for a loss with a density."""
    widths = []
    for count in (10**4, 10**6):
        law = compose(mechanisms.logistic(s=math.isqrt(count)), count).law("remove")
        answer = METHOD.log_delta(law, 0.5)
        widths.append(math.exp(answer.log_upper) - math.exp(answer.log_lower))
    assert math.log(widths[1] / widths[0], 100) == pytest.approx(-1.0, abs=0.05)


@pytest.mark.slow
def test_epsilon_lies_between_the_roots():
    """ε₊ solves δ₊ = δ and ε₋ solves δ₋ = δ, not what a slope makes of either."""
    steps = compose(SUBSAMPLED, 10**4)
    law = steps.law("remove")
    for delta in (0.2, 0.02):
        found = steps.epsilon(delta, method="eeai", direction="remove")
        exact = steps.epsilon(delta, direction="remove").epsilon
        assert found.epsilon_lower < exact < found.epsilon_upper
        assert found.epsilon == pytest.approx(found.epsilon_upper, rel=1e-12)
        low = METHOD.log_delta(law, found.epsilon_lower).log_lower
        assert low == pytest.approx(math.log(delta), rel=1e-6)
        assert low >= math.log(delta)


@pytest.mark.parametrize("name", ["laplace", "subsampled laplace", "randomized response"])
@pytest.mark.parametrize("origin", [0.0, -1.0])
def test_tail_bounds(name, origin):
    """Chernoff's bound is no looser than Hoeffding's, and neither is below the tail itself."""
    law = composition(name, 200).law("remove")
    mean, variance = (float(c) for c in law.cumulants(origin, 2))
    for k in (0.5, 2.0, 6.0):
        gap = k * math.sqrt(variance)
        for sign in (1.0, -1.0):
            found = log_tail(law, mean + sign * gap, origin, upper=sign > 0)
            assert found <= log_hoeffding(law, gap) < 0
    assert log_tail(law, mean - 1.0, origin, upper=True) == 0.0


def test_tail_bounds_against_binomials():
    law = compose(mechanisms.randomized_response(epsilon_0=1), 100).law("remove")
    p = 1 / (1 + math.exp(-1))
    for k in (78, 85, 95):
        exceed = math.fsum(
            math.comb(100, j) * p**j * (1 - p) ** (100 - j) for j in range(k + 1, 101)
        )
        assert math.log(exceed) <= log_tail(law, float(2 * k - 100), 0.0, upper=True)


def test_large_epsilon_is_not_left_to_the_uniform_error():
    """e^ε times the uniform error would be useless here; the tails keep the interval small."""
    law = compose(SUBSAMPLED, 10**4).law("remove")
    answer = METHOD.log_delta(law, 20.0)
    assert answer.log_upper < -40
    assert answer.log_lower == -math.inf
    assert "contour" in answer.advice


@pytest.mark.slow
def test_different_steps():
    parts = [(SUBSAMPLED, 5000), (mechanisms.laplace(b=50), 3000), (mechanisms.gumbel(b=90), 2000)]
    for direction in ("remove", "add"):
        law = compose(parts).law(direction)
        assert not summands(law, 0.0).identical
        for epsilon in (-0.5, 0.0, 0.5, 1.5):
            answer = METHOD.log_delta(law, epsilon)
            assert_contains(answer, Contour().log_delta(law, epsilon))
            assert answer.log_lower >= least_log_delta(law, epsilon) - 1e-9
    width = math.exp(METHOD.log_delta(law, 0.0).log_upper)
    assert width < 0.9 * math.exp(Moments().log_delta(law, 0.0).log_upper)


@pytest.mark.slow
def test_very_many_different_steps_are_taken_as_arrays():
    """Moments and |f| of all steps at once are those of each, and the interval holds the truth."""
    step = mechanisms.gaussian(sigma=2)
    steps = [(step.subsample("poisson", f"{200 + k}/2000"), 20) for k in range(70)]
    law = compose(steps).law("remove")
    assert isinstance(law, RuleLaw)
    singly = law.singly()
    for origin in (0.0, -1.0):
        together, apart = summands(law, origin), summands(singly, origin)
        # absolute moments are bounds, which depend on the nodes
        assert astuple(together) == pytest.approx(astuple(apart), rel=1e-6)
        widest = max(tilted.widest for tilted in law.tilted(origin))
        for y, grid in (
            (np.geomspace(0.1, 2.0, 40) / widest, None),
            (np.arange(20, 80) * (0.1 / widest), (0.1 / widest, 20)),
        ):
            bound = _log_largest(law, origin, y, grid)
            places = np.random.default_rng(2).uniform(y[:-1], y[1:])
            shift = singly.cgf_line(origin, places).real
            assert (shift <= bound + 1e-12).all()
            assert (bound <= np.maximum(0.25 * shift, -20)).all()
        # O(1/n) where moments alone give O(1/√n), as for steps that are taken one by one
        assert smoothing_error(law, origin, together) < 0.1 * _edgeworth_error(together)
    epsilon = law.mean + math.sqrt(float(law.cumulants(0.0, 2)[1]))
    exact = Contour().log_delta(law, epsilon)
    answer = METHOD.log_delta(law, epsilon)
    assert_contains(answer, exact)
    assert answer.log_upper - answer.log_lower < 1.5


def test_on_the_command_line(shell):
    import json

    words = ["delta", "gaussian", "sigma=2", "-n", "100", "--epsilon", "1", "--json"]
    words += ["--method", "eeai"]
    answer = json.loads(shell(*words).out)
    assert answer["method"] == "eeai"
    assert answer["kind"] == "bound"
    truth = json.loads(shell(*[w for w in words if w not in {"--method", "eeai"}]).out)
    assert answer["lower"] <= truth["delta"] <= answer["upper"]


@pytest.mark.parametrize(("count", "width"), [(300, 0.1), (1000, 0.02), (4000, 0.1)])
def test_both_ends_are_close_where_steps_are_many(count, width):
    """Of sums of Laplace losses at their mean, whose shape is nearly known."""
    steps = compose(mechanisms.laplace(b=20), count)
    law = steps.law("remove")
    answer = METHOD.log_delta(law, law.mean)
    truth = steps.delta(law.mean, direction="remove").log_delta
    assert truth - width <= answer.log_lower <= truth
    assert truth <= answer.log_upper <= truth + width
