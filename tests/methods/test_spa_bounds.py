"""The proved interval around SP-CLT: it holds the truth everywhere, and shrinks as it should."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from proved_bounds import (
    COUNTS,
    MECHANISMS,
    QUICK,
    TRUE_CASES,
    assert_contains,
    assert_within_moments,
    composition,
    exact_points,
    log_central_limit,
)

from symdp import compose, mechanisms
from symdp.methods.interval import Summands, summands
from symdp.methods.spa_bounds import SpaBounds, log_interval
from symdp.numeric.saddle_point import Strip
from symdp.prove.truth import privacy_profile

METHOD = SpaBounds()
SUBSAMPLED = MECHANISMS["subsampled normal"]


@pytest.mark.quick_cases(*QUICK)
@pytest.mark.slow_cases(
    "gumbel-1",
    "with replacement-10",
    "logistic-10",
    "mixture noise-10",
    "two variances-10",
    "student-10",
    "substitution-10",
)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_contains_the_contour(name, count):
    direction = "add" if count == 10 else "remove"
    law = composition(name, count).law(direction)
    for epsilon, exact in exact_points(name, count, direction):
        answer = METHOD.log_delta(law, epsilon)
        assert_contains(answer, exact)
        assert answer.kind in {"bound", "exact"}
        assert_within_moments(answer, law, epsilon)


@pytest.mark.slow_cases("gumbel-30")
@pytest.mark.parametrize(("name", "count"), TRUE_CASES)
def test_contains_arbitrary_precision(name, count):
    law = composition(name, count).law("remove")
    mean, variance = (float(c) for c in law.cumulants(0.0, 2))
    epsilon = round(mean + 1.5 * math.sqrt(variance), 3)
    truth = privacy_profile([(MECHANISMS[name].pair("remove"), count)], epsilon, digits=20)
    answer = METHOD.log_delta(law, epsilon)
    assert answer.log_lower < float(mp.log(truth)) < answer.log_upper


def test_every_tilt_proves_an_interval():
    """Also far from the best one, in all three strips, with the centre that SP-CLT has there."""
    law = compose(SUBSAMPLED, 10**4).law("remove")
    for epsilon in (-1.0, 0.2, 1.0):
        delta = math.exp(exact_delta(law, epsilon))
        integrals = {
            Strip.RIGHT: delta,
            Strip.MIDDLE: 1 - delta,
            Strip.LEFT: delta - 1 + math.exp(epsilon),
        }
        for strip, distances in (
            (Strip.RIGHT, (0.05, 0.7, 3.0)),
            (Strip.MIDDLE, (0.1, 0.5, 0.9)),
            (Strip.LEFT, (0.05, 0.7, 3.0)),
        ):
            for s in distances:
                lower, upper, error = log_interval(law, epsilon, strip, s)
                assert lower < math.log(integrals[strip]) < upper
                tilt = strip.position(s)[0]
                centre = math.exp(log_central_limit(law, epsilon, tilt))
                assert math.exp(upper) == pytest.approx(centre + math.exp(error), rel=1e-7)


def exact_delta(law, epsilon):
    from symdp.methods.route import Contour

    return Contour().log_delta(law, epsilon).log_delta


def test_best_tilt_beats_the_saddle_point():
    from symdp.numeric.saddle_point import saddle_point

    law = compose(SUBSAMPLED, 10**4).law("remove")
    for epsilon in (0.5, 1.0, 3.0):
        saddle = saddle_point(law, epsilon, Strip.RIGHT)
        lower, upper, _ = log_interval(law, epsilon, Strip.RIGHT, saddle.tilt)
        best = METHOD.log_delta(law, epsilon)
        assert best.log_lower >= lower
        assert best.log_upper <= upper
        assert math.exp(best.log_upper) - math.exp(best.log_lower) < 0.999 * (
            math.exp(upper) - math.exp(lower)
        )


def test_widths_fall_like_the_inverse_root():
    """At one size of the total loss (noise ∝ √n) the interval's width is O(n^{−1/2})."""
    widths = []
    for count in (10**4, 16 * 10**4):
        law = compose(mechanisms.laplace(b=math.isqrt(count)), count).law("remove")
        answer = METHOD.log_delta(law, 1.0)
        widths.append(math.exp(answer.log_upper) - math.exp(answer.log_lower))
    assert math.log(widths[1] / widths[0], 16) == pytest.approx(-0.5, abs=0.05)


GROWING = (10**4, 10**6, 10**8)
STEP = mechanisms.logistic(s=1)


def at_standard_deviations(count, b):
    """A law, ε = n E L + b√(n Var L), and Var L, E|L − E L|³ of one step."""
    law = compose(STEP, count).law("remove")
    mean, variance = (float(c) for c in law.cumulants(0.0, 2))
    (one,) = law.tilted(0.0)
    third = float(one.weight @ abs(one.deviation) ** 3)
    return law, mean + b * math.sqrt(variance), variance / count, third


def slope(values):
    return math.log(values[-1] / values[0]) / math.log(GROWING[-1] / GROWING[0])


@pytest.mark.parametrize("b", [-1.0, 0.5, 3.0])
def test_rate_of_the_saddle_point(b):
    """[SPA Prop 8]: t₀√(nV) → (b + √(b² + 4))/2, and what is missing falls like n^{−1/2}."""
    from symdp.numeric.saddle_point import saddle_point

    limit = 0.5 * (b + math.sqrt(b * b + 4.0))
    gaps = []
    for count in GROWING:
        law, epsilon, variance, _ = at_standard_deviations(count, b)
        tilt = saddle_point(law, epsilon, Strip.RIGHT).tilt
        gaps.append(abs(tilt * math.sqrt(count * variance) / limit - 1.0))
    assert gaps[-1] < 1e-3
    assert slope(gaps) == pytest.approx(-0.5, abs=0.02)


@pytest.mark.parametrize("b", [-1.0, 0.5, 3.0])
def test_rate_of_the_error(b):
    """[SPA Thm 7]: at t₀ the error is 2C P V^{−3/2} e^{(1−bτ)/2}/√n up to 1 + o(1), τ = t₀√(nV)."""
    from symdp.numeric.saddle_point import saddle_point

    tau = 0.5 * (b + math.sqrt(b * b + 4.0))
    errors, ratios = [], []
    for count in GROWING:
        law, epsilon, variance, third = at_standard_deviations(count, b)
        tilt = saddle_point(law, epsilon, Strip.RIGHT).tilt
        errors.append(math.exp(log_interval(law, epsilon, Strip.RIGHT, tilt)[2]))
        expected = 2 * 0.4690 * third / variance**1.5 * math.exp(0.5 * (1.0 - b * tau))
        ratios.append(errors[-1] * math.sqrt(count) / expected)
    # t^t/(1+t)^{1+t} tends to one like 1 − t log(1/t), and so slowly does the rate; the absolute
    # moment is rounded up by less than two percent
    assert slope(errors) == pytest.approx(-0.5, abs=0.03)
    assert ratios[-1] == pytest.approx(1.0, abs=0.03)
    assert abs(ratios[-1] - 1.0) <= abs(ratios[0] - 1.0)


@pytest.mark.slow_cases("0.001")
@pytest.mark.parametrize("delta", [0.3, 1e-3])
def test_rate_of_epsilon(delta):
    """[SPA Thm 9]: (ε(δ) − n E L)/√(nV) → Φ⁻¹(1 − δ), and the gap falls like n^{−1/2}."""
    from scipy.special import ndtri

    gaps = []
    for count in GROWING:
        law, _, variance, _ = at_standard_deviations(count, 0.0)
        found = compose(STEP, count).epsilon(delta, direction="remove").epsilon
        place = (found - law.mean) / math.sqrt(count * variance)
        gaps.append(abs(place - float(ndtri(1.0 - delta))))
    assert gaps[-1] < 1e-3
    assert slope(gaps) == pytest.approx(-0.5, abs=0.05)


def test_different_steps():
    """Several laws in one sum use the constant for independent summands, and hold the truth."""
    parts = [(SUBSAMPLED, 500), (mechanisms.laplace(b=20), 300), (mechanisms.gumbel(b=30), 200)]
    steps = compose(parts)
    law = steps.law("remove")
    moments = summands(law, 0.0)
    assert not moments.identical
    assert moments.berry_esseen == pytest.approx(
        0.56 * moments.absolute_third / moments.variance**1.5, rel=1e-12
    )
    for epsilon in (-0.5, 0.0, 0.5, 1.5):
        assert_contains(METHOD.log_delta(law, epsilon), steps_exact(law, epsilon))


def steps_exact(law, epsilon):
    from symdp.methods.route import Contour

    return Contour().log_delta(law, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("tilt", [-1.0, 0.0, 2.0])
def test_absolute_moments_are_never_too_small(tilt):
    """Against mpmath's quadrature, split at the kink."""
    law = compose(SUBSAMPLED, 1).law("remove")
    found = summands(law, tilt)
    with mp.workdps(25):
        sigma, q = mp.mpf(3) / 2, mp.mpf(1) / 100

        def loss(x):
            return mp.log1p(q * mp.expm1((2 * x - 1) / (2 * sigma**2)))

        cuts = [-25, -12, -6, -3, -1, 0, 1, 2, 4, 6, 9, 14, 25, 40]

        def mean(f, extra=()):
            return mp.quad(
                lambda x: f(loss(x)) * mp.exp((1 + tilt) * loss(x)) * mp.npdf(x, 0, sigma),
                sorted({*map(mp.mpf, cuts), *extra}),
            )

        mass = mean(lambda _: mp.mpf(1))
        centre = mean(lambda v: v) / mass
        kink = (2 * sigma**2 * mp.log1p(mp.expm1(centre) / q) + 1) / 2
        third = mean(lambda v: abs(v - centre) ** 3, (kink,)) / mass
        first = mean(lambda v: abs(v - centre), (kink,)) / mass
        second = mean(lambda v: (v - centre) ** 2) / mass
    assert float(third) < found.absolute_third < 1.02 * float(third)
    assert float(first * second) < found.absolute_mixed < 1.03 * float(first * second)
    assert found.variance == pytest.approx(float(second), rel=1e-10)


def test_advice_where_nothing_is_gained():
    answer = METHOD.log_delta(compose(SUBSAMPLED, 1).law("remove"), 0.01)
    assert "contour" in answer.advice
    assert not METHOD.log_delta(compose(SUBSAMPLED, 10**4).law("remove"), 1.0).advice


@pytest.mark.slow_cases("two variances--1.0", "with replacement--1.0")
@pytest.mark.parametrize("tilt", [-1.0, -0.3, 0.0, 1.0, 5.0])
@pytest.mark.parametrize("name", MECHANISMS)
def test_absolute_moments_against_a_denser_rule(name, tilt):
    """Nodes that resolve 200 turns of the characteristic function see kinks far more sharply."""
    law = composition(name, 1).law("remove")
    if not law.domain[0] < tilt < law.domain[1] and tilt not in {-1.0, 0.0}:
        pytest.skip("the moment generating function ends before this tilt")
    found = summands(law, tilt)
    spread = math.sqrt(found.variance)
    if spread == 0.0:  # one loss only
        assert found.absolute_third == found.absolute_mixed == 0.0
        return
    (dense,) = law.tilted(tilt, frequency=200.0 / spread)
    size = abs(dense.deviation)
    third, first = float(dense.weight @ size**3), float(dense.weight @ size)
    assert third * (1 - 1e-9) <= found.absolute_third <= 1.02 * third
    assert first * found.variance * (1 - 1e-9) <= found.absolute_mixed
    assert found.absolute_mixed <= 1.05 * first * found.variance


def test_a_sum_that_does_not_vary_has_no_normal_approximation():
    """The distance from Φ is bounded by nothing there, and no interval rests on it."""
    still = Summands(3, True, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert not still.is_spread
    assert still.berry_esseen == math.inf
