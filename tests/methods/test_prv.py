"""Privacy loss on a mesh: the interval contains the truth, plain and tilted, in every regime."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from every_kind import EVERY_KIND

from symdp import compose, mechanisms
from symdp.errors import InputError
from symdp.methods import accountant
from symdp.methods.moments import Moments
from symdp.methods.prv import Prv
from symdp.methods.route import Contour
from symdp.model.mechanism import Mechanism
from symdp.model.reading.parser import parse
from symdp.model.sampling import variable_symbol

BOTH = [Prv(), Prv(tilted=True)]


def subsampled(rate, sigma, scheme="poisson"):
    return mechanisms.gaussian(sigma=sigma).subsample(scheme, rate)


CASES = EVERY_KIND | {
    "without replacement": subsampled("1/100", 2, "without_replacement"),
    "gumbel": mechanisms.gumbel(b=20),
    "discrete gaussian": mechanisms.discrete_gaussian(sigma=15),
}


def gaussian_log_delta(mu, epsilon):
    with mp.workdps(60):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        return mp.log(mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps"), [(name, (10, 1000, 100_000)[k % 3]) for k, name in enumerate(CASES)]
)
def test_the_truth_lies_inside(name, steps):
    composition = compose(CASES[name], steps)
    for direction in ("remove", "add"):
        law = composition.law(direction)
        width = math.sqrt(float(law.cumulants(0.0, 2)[1]))
        for distance in (1, 4):
            epsilon = law.mean + distance * width
            truth = Contour().log_delta(law, epsilon)
            for method in BOTH:
                answer = method.log_delta(law, epsilon)
                if answer.kind == "exact":  # ε outside the range of the loss
                    assert answer.log_delta == pytest.approx(truth.log_delta, rel=1e-12)
                    continue
                assert answer.kind == "bound"
                assert answer.log_delta == answer.log_upper
                assert answer.log_lower <= truth.log_upper
                assert answer.log_upper >= truth.log_lower
                # te with e = h√(k/2 log) leaves a tenth at 10⁵ steps and a percent or two at 10³.
                if not answer.advice and distance < 4:
                    allowed = 0.05 if steps == 100_000 else 0.04
                    assert answer.log_upper - answer.log_lower < allowed


@pytest.mark.quick_cases("3.0-prv")
@pytest.mark.parametrize("method", BOTH, ids=lambda m: m.name)
@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_gaussian_closed_form(method, mu):
    law = compose(mechanisms.gaussian(sigma=10), round((10 * mu) ** 2)).law("remove")
    for epsilon in (-1.0, 0.0, 0.2 * mu, mu * mu / 2, mu * mu / 2 + 3 * mu):
        answer = method.log_delta(law, epsilon)
        truth = gaussian_log_delta(mu, epsilon)
        assert answer.log_lower <= truth <= answer.log_upper
        if truth > -20 and not answer.advice:
            assert answer.log_upper - answer.log_lower < 0.02


@pytest.mark.slow
def test_more_points_tighten_the_interval():
    """e is proportional to the mesh, so that four times the points leave a quarter of it."""
    law = compose(subsampled("1/100", 2), 1000).law("remove")
    for tilted in (False, True):
        spans = []
        for points in (1 << 15, 1 << 17, 1 << 19):
            answer = Prv(tilted, points).log_delta(law, 0.3)
            truth = Contour().log_delta(law, 0.3).log_delta
            assert answer.log_lower < truth < answer.log_upper
            spans.append(answer.log_upper - answer.log_lower)
        assert spans[0] / spans[1] == pytest.approx(4.0, rel=0.1)
        assert spans[1] / spans[2] == pytest.approx(4.0, rel=0.1)


@pytest.mark.slow_cases("10000")
@pytest.mark.parametrize("steps", [100, 10_000])
def test_tilting_reaches_any_delta(steps):
    """At δ near 1e-30 and 1e-200 the tilted interval is as narrow as at 1e-3."""
    law = compose(mechanisms.gaussian(sigma=20), steps).law("remove")
    mu = math.sqrt(steps) / 20
    for epsilon in (mu * mu / 2 + 11.3 * mu, mu * mu / 2 + 30 * mu):
        truth = gaussian_log_delta(mu, epsilon)
        assert truth < math.log(1e-28)
        answer = Prv(tilted=True).log_delta(law, epsilon)
        assert answer.log_lower <= truth <= answer.log_upper
        assert answer.log_upper - answer.log_lower < 0.25
        assert not answer.advice


@pytest.mark.slow
def test_tilting_a_subsampled_mechanism():
    law = compose(subsampled("1/100", 2), 2000).law("remove")
    for epsilon in (1.0, 6.0):
        truth = Contour().log_delta(law, epsilon).log_delta
        answer = Prv(tilted=True).log_delta(law, epsilon)
        assert answer.log_lower <= truth <= answer.log_upper
        assert answer.log_upper - answer.log_lower < 0.5


def test_the_floor_is_reported_and_included():
    law = compose(mechanisms.gaussian(sigma=20), 1000).law("remove")
    answer = Prv().log_delta(law, 20.0)
    truth = Contour().log_delta(law, 20.0).log_delta
    assert "floating-point floor" in answer.advice
    assert "tilted-prv" in answer.advice
    assert answer.log_lower == -math.inf
    assert truth < math.log(1e-25) < math.log(1e-15) < answer.log_upper < math.log(1e-9)


@pytest.mark.slow
def test_heterogeneous_and_mass_at_infinity():
    x = variable_symbol("x", "interval")
    noise = parse("exp(-x/10)/10", {"x": x})
    ray = Mechanism.additive(noise, x, 1, support=(sp.Integer(0), sp.oo), name="ray")
    steps = [(subsampled("1/100", 2), 300), (mechanisms.laplace(b=10), 5), (ray, 2)]
    for direction in ("remove", "add"):
        law = compose(steps).law(direction)
        for epsilon in (-0.2, 0.3, 1.0):
            truth = Contour().log_delta(law, epsilon)
            for method in BOTH:
                answer = method.log_delta(law, epsilon)
                assert answer.log_lower <= truth.log_upper
                assert answer.log_upper >= truth.log_lower
                assert answer.log_upper - answer.log_lower < 0.05 or answer.log_delta < -16


@pytest.mark.slow
def test_arbitrary_precision_truth():
    """Against quadrature to 30 digits, which shares no code with the mesh."""
    composition = compose(mechanisms.laplace(b=2), 12)
    truth = composition.delta(2.0, method="truth", direction="remove").log_delta
    for method in BOTH:
        answer = method.log_delta(composition.law("remove"), 2.0)
        assert answer.log_lower <= truth <= answer.log_upper
        assert answer.log_upper - answer.log_lower < 1e-2


def test_binomial_sums():
    """Randomized response: δ is a sum over the binomial law of the number of true answers."""
    steps, epsilon = 200, 3.0
    law = compose(mechanisms.randomized_response(epsilon_0="1/2"), steps).law("remove")
    with mp.workdps(40):
        p = mp.exp(0.5) / (1 + mp.exp(0.5))
        delta = mp.fsum(
            mp.binomial(steps, k) * p**k * (1 - p) ** (steps - k) * (1 - mp.exp(epsilon - loss))
            for k in range(steps + 1)
            if (loss := mp.mpf(2 * k - steps) / 2) > epsilon
        )
        truth = mp.log(delta)
    for method in BOTH:
        answer = method.log_delta(law, epsilon)
        assert answer.log_lower <= truth <= answer.log_upper


def test_bad_numbers_of_points():
    for points in (0, 1000, 1 << 24):
        with pytest.raises(InputError, match="points"):
            Prv(points=points)


def test_where_no_mesh_serves_the_answer_is_the_moments_bound():
    law = compose(mechanisms.gaussian(sigma=20), 100_000).law("remove")
    answer = Prv(points=1024).log_delta(law, 100.0)
    assert "too few" in answer.advice
    assert answer.kind == "bound"
    assert answer.log_lower == -math.inf
    assert answer.log_upper == Moments().log_delta(law, 100.0).log_upper


def test_they_are_known_by_name():
    assert accountant("prv") == Prv()
    assert accountant("tilted-prv") == Prv(tilted=True)
    found = compose(mechanisms.gaussian(sigma=10), 20).delta(1.0, method="prv")
    assert (found.kind, found.method, found.citations) == ("bound", "prv", ("PRV",))


@pytest.mark.slow
def test_losses_without_moments_get_useful_intervals():
    """The range of a step needs no moment; truths are exact for one step, sampled for five."""
    x = variable_symbol("x", "interval")
    normal, cauchy, laplace = (
        parse(text, {"x": x})
        for text in ("exp(-x**2/2)/sqrt(2*pi)", "1/(pi*(1 + x**2))", "exp(-Abs(x))/2")
    )
    rng = np.random.default_rng(1)
    draws = {
        "cauchy": (cauchy, rng.standard_cauchy((5, 200_000))),
        "laplace": (laplace, rng.laplace(size=(5, 200_000))),
    }
    for name, (density, sample) in draws.items():
        mechanism = Mechanism.from_pair(density, normal, x, name=name)
        assert compose(mechanism, 1).law("remove").domain[1] == 0.0
        for steps in (1, 5):
            law = compose(mechanism, steps).law("remove")
            for epsilon in (5.0,) if steps == 1 else (1.0, 5.0):
                answer = Prv(points=1 << 18).log_delta(law, epsilon)
                low, high = math.exp(answer.log_lower), math.exp(answer.log_upper)
                assert (answer.kind, answer.advice) == ("bound", "")
                assert high - low < 5e-3 * high
                log_p = np.log(np.abs(density_values(name, sample)))
                loss = (log_p + sample**2 / 2 + math.log(2 * math.pi) / 2)[:steps].sum(axis=0)
                payoff = -np.expm1(np.minimum(epsilon - loss, 0.0))
                error = 5 * payoff.std() / math.sqrt(payoff.size)
                assert low - error < payoff.mean() < high + error
                if steps == 1:
                    truth = Contour().log_delta(law, epsilon)
                    assert answer.log_lower <= truth.log_lower <= truth.log_upper
                    assert truth.log_upper <= answer.log_upper


def density_values(name, x):
    return 1 / (math.pi * (1 + x * x)) if name == "cauchy" else np.exp(-np.abs(x)) / 2
