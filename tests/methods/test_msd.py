"""The saddle-point accountant: its tilts, its published errors, its order and its regime."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
import sympy as sp
from closed_form_law import (
    ClosedFormLaw,
    SubsampledGaussianLaw,
    contour_log_delta,
    exponential,
    gaussian,
    laplace,
    logistic,
    randomized_response,
)

from symdp.errors import AccuracyError, InputError
from symdp.expansion import F, saddlepoint_series
from symdp.methods.series import SaddlePoint
from symdp.numeric.saddle_point import (
    Strip,
    best_saddle,
    delta_from_strip,
    increasing_root,
    log_one_minus_exp,
    saddle_point,
)

PUBLISHED = 0.049601410315  # rate 0.01, σ = 1.5, 10⁴ steps, ε = 1, remove


@pytest.fixture(scope="module")
def published_law():
    return SubsampledGaussianLaw(0.01, 1.5, 10**4)


def gaussian_delta(mu, epsilon):
    with mp.workdps(60):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("strip", list(Strip))
@pytest.mark.parametrize(
    "law",
    [gaussian(0.02), gaussian(7.0), logistic(2.0, 30), laplace(0.3, 100)],
    ids=["narrow gaussian", "wide gaussian", "logistic", "laplace"],
)
@pytest.mark.parametrize("deviations", [-3.0, -0.2, 0.0, 1.0, 4.0])
def test_saddle_point_solves_its_equation(law, strip, deviations):
    """K′(t) = ε + 1/t + 1/(1+t), inside the strip, whatever the side of the mean."""
    mean, variance = law.cumulants(0.0, 2)
    epsilon = float(mean + deviations * math.sqrt(variance))
    saddle = saddle_point(law, epsilon, strip)
    t, one = saddle.tilt, saddle.tilt_plus_one
    assert {Strip.RIGHT: t > 0, Strip.MIDDLE: -1 < t < 0, Strip.LEFT: t < -1}[strip]
    assert one == pytest.approx(1 + t, abs=1e-15 * max(1, abs(t)))
    residual = law.cumulants(t, 1)[0] - epsilon - 1 / t - 1 / one
    assert abs(residual) < 1e-8 * math.sqrt(saddle.curvature)
    assert saddle.curvature == pytest.approx(saddle.variance + t**-2 + one**-2, rel=1e-12)


def test_no_saddle_point_outside_the_domain():
    whole = logistic(2.0, 30)
    for domain in ((-2.0, 0.0), (-2.0, 0.25)):  # K′(0.25) lies below ε
        law = ClosedFormLaw(whole.moment, 30, domain=domain)
        assert saddle_point(law, 40.0, Strip.RIGHT) is None
        assert saddle_point(law, 40.0, Strip.MIDDLE) is not None
        answer = SaddlePoint(1).log_delta(law, 40.0)
        assert answer.advice
        assert "contour" in answer.advice


def test_root_finder_counts_failures_as_too_far():
    from symdp.numeric.saddle_point import Probe

    def probe(s):
        if s > 3:
            raise AccuracyError("too far")
        return Probe(s - root, 1e-14, s + 10 * (root - s))

    root = 2.5
    assert increasing_root(probe, math.inf, 0.1) == pytest.approx(root, rel=1e-12)
    root = 3.5
    assert increasing_root(probe, math.inf, 0.1) is None


@pytest.mark.parametrize(("order", "error"), [(0, -2.2e-2), (1, 4.08e-3), (2, -8.19e-4)])
def test_published_errors(published_law, order, error):
    answer = SaddlePoint(order).log_delta(published_law, 1.0)
    assert math.expm1(answer.log_delta - math.log(PUBLISHED)) == pytest.approx(error, rel=0.02)
    assert answer.kind == "estimate"
    # A percent is warned of; the next terms of order 1 are 0.65 % of δ, its error 0.4 %.
    assert bool(answer.advice) is (order < 2)
    assert answer.log_lower is None
    assert answer.log_upper is None


def exact_series(law, epsilon, start, order):
    """Return log MSD_0, …, log MSD_order of |I| in mpmath, from the symbolic corrections."""

    def slope(t):
        return law.exact_cumulants(t, 1)[0] - epsilon - 1 / t - 1 / (1 + t)

    t = mp.findroot(slope, start)
    derivatives = [
        c + (-1) ** j * mp.factorial(j - 1) * (t**-j + (1 + t) ** -j)
        for j, c in enumerate(law.exact_cumulants(t, 2 * order + 2), start=1)
    ]
    symbols = [F(j) for j in range(2, 2 * order + 3)]
    leading = mp.re(law.exact_cgf(t)) - epsilon * t - mp.log(abs(t * (1 + t)))
    leading -= mp.log(2 * mp.pi * derivatives[1]) / 2
    return [
        leading + mp.log(sp.lambdify(symbols, saddlepoint_series(k), "mpmath")(*derivatives[1:]))
        for k in range(order + 1)
    ]


@pytest.mark.quick_cases("-0.4")
@pytest.mark.parametrize("tilt", [1.5, -0.4, -1.5])
def test_measured_order(tilt):
    """At a fixed tilt in any strip the relative error of MSD_k falls like n^{−(k+1)}.

    The poles' own terms are of higher order in 1/n but have large coefficients: only very large n
    shows the slopes without them.
    """
    order, errors = 4, []
    with mp.workdps(130):
        for count in (10**16, 4 * 10**16):
            law = exponential(2.0, count)
            epsilon = law.exact_cumulants(tilt, 1)[0]
            truth = contour_log_delta(law, epsilon, tilt, digits=120)
            series = exact_series(law, epsilon, tilt, order)
            errors.append([abs(mp.expm1(value - truth)) for value in series])
        measured = [float(mp.log(a / b, 4)) for a, b in zip(*errors, strict=True)]
    assert measured == pytest.approx([k + 1 for k in range(order + 1)], abs=0.05)


@pytest.mark.parametrize("tilt", [1.5, -0.4])
@pytest.mark.parametrize("count", [30, 3000])
def test_numbers_follow_the_symbols(tilt, count):
    """The accountant's doubles against the symbolic series at 40 digits, δ down to e^−4000."""
    law = logistic(3.0, count)
    epsilon = float(law.cumulants(tilt, 1)[0])
    with mp.workdps(40):
        expected = [float(x) for x in exact_series(law, mp.mpf(epsilon), tilt, 3)]
    for order in range(4):
        answer = SaddlePoint(order).log_delta(law, epsilon)
        found = answer.log_delta if tilt > 0 else answer.log_complement
        assert found == pytest.approx(expected[order], rel=1e-13, abs=1e-12)


@pytest.mark.quick_cases("2.0")
@pytest.mark.parametrize("mu", [0.01, 0.5, 2.0, 20.0])
def test_sane_for_every_epsilon(mu):
    """Across the strips: decreasing, and δ and 1 − δ both near the truth."""
    law, previous = gaussian(mu), 0.0
    for x in (-40.0, -9.0, -3.0, -1.0, -mu / 2, -0.1, 0.0, 1e-9, 0.1, mu / 2, 1.0, 3.0, 9.0, 40.0):
        epsilon = mu * x
        exact = gaussian_delta(mu, epsilon)
        answer = SaddlePoint(2).log_delta(law, epsilon)
        # 1 % of δ or of 1 − δ, whichever is the smaller
        with mp.workdps(60):
            error = abs(mp.exp(mp.mpf(answer.log_delta)) - exact)
            assert error < min(exact, 1 - exact) * mp.mpf("0.01") + mp.mpf("1e-16")
        # At μ = 2 the two next terms are up to 2 % of δ, which is warned of.
        assert not answer.advice or (mu == 2.0 and "its next terms are 0.0" in answer.advice)
    points = [mu * (0.31 * k - 12) for k in range(80)]
    for epsilon in points:
        value = SaddlePoint(2).log_delta(law, epsilon).log_delta
        assert value <= previous + 0.01
        previous = value


def test_exchange_of_p_and_q():
    """δ(−ε) = 1 − e^{−ε} + e^{−ε}δ(ε) for a symmetric pair: the outer strips mirror each other."""
    law = logistic(1.0, 50)
    for epsilon in (0.2, 1.0, 5.0, 20.0):
        right = SaddlePoint(2).log_delta(law, epsilon).log_delta
        left = SaddlePoint(2).log_delta(law, -epsilon)
        if best_saddle(law, epsilon).strip is Strip.RIGHT:
            expected = math.log(-math.expm1(-epsilon) + math.exp(right - epsilon))
            assert left.log_delta == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("epsilon", [4.0, 8.0, 20.0])
def test_one_large_loss_is_noticed(epsilon):
    """Where one step's loss carries the tail no order helps; at ε = 8 the next terms are small."""
    law = SubsampledGaussianLaw(0.01, 2.0, 2000, nodes=2000)
    truth = {4.0: -114.9637, 8.0: math.log(1.36324) - 109 * math.log(10), 20.0: None}[epsilon]
    for order in range(3):
        answer = SaddlePoint(order).log_delta(law, epsilon)
        assert "contour" in answer.advice
        if truth is not None:
            assert answer.log_delta - truth > math.log(5)


def test_regime_has_no_false_alarm(published_law):
    # Where δ is above a tenth the next terms are more than half a percent of it.
    for epsilon in (1.0, 2.0, 3.0):
        assert not SaddlePoint(2).log_delta(published_law, epsilon).advice


def randomized_response_delta(loss, count, epsilon):
    p = math.exp(loss) / (1 + math.exp(loss))
    return math.fsum(
        math.comb(count, k) * p**k * (1 - p) ** (count - k) * -math.expm1(epsilon - x)
        for k in range(count + 1)
        if (x := loss * (2 * k - count)) > epsilon
    )


@pytest.mark.parametrize(("loss", "count"), [(1.0, 20), (2.0, 20), (4.0, 10), (0.1, 300)])
def test_lattice_is_noticed(loss, count):
    """Losses on a coarse lattice repeat the peak along the line, which no cumulant shows."""
    law = randomized_response(loss, count)
    mean, variance = law.cumulants(0.0, 2)
    wrong = 0
    for x in (-1.0, 0.0, 1.0, 1.5, 2.0):
        epsilon = float(mean + x * math.sqrt(variance)) + 0.123 * loss
        if epsilon < law.loss_bounds[1]:
            truth = math.log(randomized_response_delta(loss, count, epsilon))
            answer = SaddlePoint(2).log_delta(law, epsilon)
            off = abs(math.expm1(answer.log_delta - truth))
            wrong += off > 0.1
            if off > 0.01:
                assert "contour" in answer.advice
    # A lattice far finer than the tail's own scale does no harm.
    assert (wrong == 0) == (loss < 1)


def test_negative_sum_becomes_a_bound():
    """1 − 1.25 has no logarithm: the answer is a proved interval, not a number made up."""
    law = SubsampledGaussianLaw(1e-4, 0.5, 100, nodes=2000)
    negative = []
    for epsilon in (0.05, 0.2, 0.5, 1.0, 2.0):
        answer = SaddlePoint(1).log_delta(law, epsilon)
        assert "contour" in answer.advice
        if answer.kind == "bound":
            negative.append(epsilon)
            assert answer.log_lower == -math.inf
            assert answer.log_upper == answer.log_delta <= 0
            assert "negative" in answer.advice
            # the mass of all losses above ε, a crude truth, lies below the bound
            loss, base, _ = law._grid(0.0)
            above = float((base * (loss + math.log1p(0) > epsilon)) @ loss)
            assert math.log(max(above, 1e-300)) <= answer.log_delta
    assert negative


def test_outside_the_range_of_the_loss():
    law = randomized_response(0.5, 10, escape=0.01)
    escaped = 1 - 0.99**10
    above = SaddlePoint(1).log_delta(law, 5.0)
    assert above.kind == "exact"
    assert above.log_delta == pytest.approx(math.log(escaped), rel=1e-13)
    below = SaddlePoint(1).log_delta(law, -5.0)
    assert below.log_delta == pytest.approx(math.log1p(-(0.99**10) * math.exp(-5)), rel=1e-12)
    assert SaddlePoint(1).log_delta(randomized_response(0.5, 10), 5.0).log_delta == -math.inf


def test_mass_at_infinity_adds_to_the_finite_part():
    """δ = δ∞ + (1 − δ∞)·(δ of the finite loss), for a K with K(0) = log(1 − δ∞)."""
    plain = logistic(1.0, 60)
    stay = mp.mpf("0.9999")
    escaping = ClosedFormLaw(
        lambda z: stay * plain.moment(z),
        60,
        bounds=(-1.0, 1.0),
        mass_at_infinity=float(1 - stay**60),
    )
    for epsilon in (-3.0, 0.5, 4.0, 15.0):
        finite = math.exp(SaddlePoint(3).log_delta(plain, epsilon).log_delta)
        escaped = float(1 - stay**60)
        found = SaddlePoint(3).log_delta(escaping, epsilon)
        assert math.exp(found.log_delta) == pytest.approx(
            escaped + (1 - escaped) * finite, rel=1e-9
        )


def test_strips_to_delta():
    law = logistic(1.0, 3)
    assert delta_from_strip(law, 1.0, Strip.RIGHT, math.log(0.25)) == (math.log(0.25), None)
    assert delta_from_strip(law, 1.0, Strip.RIGHT, 0.1) is None
    middle = delta_from_strip(law, 1.0, Strip.MIDDLE, -50.0)
    assert middle == (-math.exp(-50), -50.0)
    assert delta_from_strip(law, 1.0, Strip.MIDDLE, 0.0) is None
    left = delta_from_strip(law, -2.0, Strip.LEFT, math.log(0.01))
    assert left[0] == pytest.approx(math.log(1 - math.exp(-2) + 0.01), rel=1e-14)
    assert left[1] == pytest.approx(math.log(math.exp(-2) - 0.01), rel=1e-14)
    assert delta_from_strip(law, -2.0, Strip.LEFT, -1.9) is None
    assert log_one_minus_exp(0.0) == -math.inf


@pytest.mark.parametrize("order", [-1, 13, 1.0, True, "1"])
def test_orders_are_checked(order):
    with pytest.raises(InputError, match="integer from 0 to 12"):
        SaddlePoint(order)


def test_every_order_up_to_the_highest(published_law):
    """The series is asymptotic: it first improves, and stays finite at every order offered."""
    errors = [
        abs(SaddlePoint(k).log_delta(published_law, 1.0).log_delta - math.log(PUBLISHED))
        for k in range(13)
    ]
    assert min(errors) < 1e-4
    assert max(errors) < 0.03
