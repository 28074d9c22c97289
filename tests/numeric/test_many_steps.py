"""Very many distinct steps of one formula: arrays of all give what each of them gives alone."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import sympy as sp

from symdp import mechanisms
from symdp.model.mechanism import Mechanism
from symdp.numeric.laws.of_mechanism import loss_law
from symdp.numeric.many.kinds import together
from symdp.numeric.many.schedule import RuleLaw
from symdp.numeric.total import SumLaw
from symdp.questions.composition import Composition

x = sp.Symbol("x", real=True)


def gaussians(count, each=1, low=1.0, high=2.0):
    """Sampled Gaussian steps whose σ rises from step to step."""
    sigmas = np.linspace(low, high, count)
    step = mechanisms.gaussian.subsample("poisson", "1/100")
    return [(step(sigma=f"{sigma:.6f}"), each) for sigma in sigmas]


def plain_law(steps, direction):
    return SumLaw([(loss_law(mechanism, direction), count) for mechanism, count in steps])


def plain_delta(steps, epsilon, direction):
    from symdp.methods.route import Contour

    return math.exp(Contour().log_delta(plain_law(steps, direction), epsilon).log_delta)


def is_stacked(law):
    return isinstance(law, RuleLaw)


@pytest.mark.slow
def test_steps_of_two_formulas_and_others():
    steps = gaussians(60)
    steps += [(mechanisms.laplace(b=f"{2 + k / 40}"), 1) for k in range(60)]
    steps += [(mechanisms.logistic(s=3), 7)]
    law = Composition(steps).law("remove")
    assert law.terms[-1][1] == 7
    assert sum(count for _, count in law.terms) == pytest.approx(127, rel=1e-15)
    assert len(law.terms) < 100  # one formula's rule at least has fewer nodes than steps
    assert law.count == 127
    assert not is_stacked(Composition(steps[:10]).law("remove"))


@pytest.mark.slow
def test_arrays_give_what_single_steps_give():
    steps = gaussians(70, each=100, low=1.5, high=1.9)
    composition = Composition(steps)
    law = composition.law("remove")
    assert is_stacked(law)
    assert law.count == 7000
    for epsilon in (0.4,):
        found = composition.delta(epsilon, direction="remove")
        true = plain_delta(steps, epsilon, "remove")
        assert found.delta == pytest.approx(true, rel=2e-13)
        assert found.lower <= true <= found.upper
        assert found.upper < found.lower * (1 + 1e-11)


@pytest.mark.slow
def test_cumulants_and_ends_of_the_range():
    steps = gaussians(60, each=3, low=1.5, high=1.9)
    law, plain = Composition(steps).law("add"), plain_law(steps, "add")
    assert is_stacked(law)
    np.testing.assert_allclose(law.cumulants(0.0, 4), plain.cumulants(0.0, 4), rtol=1e-10)
    assert law.loss_bounds[0] == -math.inf
    assert law.loss_bounds[1] == pytest.approx(plain.loss_bounds[1], rel=1e-8)
    assert law.loss_bounds[1] >= plain.loss_bounds[1]
    tilts = np.asarray([-1.0, -0.3, 0.7])
    np.testing.assert_allclose(
        law.log_transform(tilts, 0.1), plain.log_transform(tilts, 0.1), rtol=1e-11, atol=1e-13
    )


@pytest.mark.slow
def test_a_parameter_that_matters_abruptly():
    """Noise whose shape changes at one value of its parameter."""
    a = sp.Symbol("a", positive=True)
    wide = sp.Piecewise((1, a < sp.Rational(3, 2)), (2, True))
    density = sp.exp(-(x**2) / (2 * wide**2)) / (wide * sp.sqrt(2 * sp.pi))
    step = Mechanism.additive(density * 1, x, sensitivity=a)
    steps = [(step(a=f"{1 + k / 60:.4f}"), 1) for k in range(60)]
    found = Composition(steps)
    law = found.law("remove")
    variance = sum(
        float(m.values["a"]) ** 2 / (1 if k < 30 else 4) for k, (m, _) in enumerate(steps)
    )
    assert law.cumulants(0.0, 2)[1] == pytest.approx(variance, rel=1e-12)


@pytest.mark.slow
def test_parameters_of_the_rate_alone():
    step = mechanisms.gaussian.subsample("poisson", "q")
    steps = [(step(sigma=f"{1.5 + k / 1000}", q="1/100"), 1) for k in range(60)]
    composition = Composition(steps)
    assert is_stacked(composition.law("remove"))
    found = composition.delta(0.05, direction="remove").delta
    assert found == pytest.approx(plain_delta(steps, 0.05, "remove"), rel=1e-12)


@pytest.mark.slow
def test_counts_are_whole_where_the_sum_is_not_linear():
    steps = gaussians(60, each=2, low=1.5, high=1.6)
    composition = Composition(steps)
    stacked = composition.law("remove")
    assert is_stacked(stacked)

    def third(law):
        each = ((part.tilted(0.5), n) for part, n in law.parts)
        return math.fsum(n * float(x.weight @ np.abs(x.deviation) ** 3) for x, n in each)

    assert third(stacked) == pytest.approx(third(plain_law(steps, "remove")), rel=1e-14)
    assert len(stacked.parts) == 60


@pytest.mark.slow
def test_values_on_no_line_give_what_single_steps_give():
    step = mechanisms.gaussian.subsample("poisson", "q")
    pairs = [(f"{1.2 + (37 * k % 60) / 60:.4f}", f"{(5 + k % 9) / 1000:.4f}") for k in range(60)]
    steps = [(step(sigma=sigma, q=rate), 5) for sigma, rate in pairs]
    composition = Composition(steps)
    assert not is_stacked(composition.law("remove"))
    for epsilon in (0.1, 0.8):
        found = composition.delta(epsilon, direction="remove")
        true = plain_delta(steps, epsilon, "remove")
        assert found.delta == pytest.approx(true, rel=2e-13)
        assert found.lower <= true <= found.upper


@pytest.mark.slow
def test_steps_that_share_a_rate_are_a_family():
    step = mechanisms.gaussian.subsample("poisson", "q")
    rates = {"1/100": 80, "1/50": 80, "1/10": 3}
    steps = [(step(sigma=f"{2 + k / 60:.4f}", q=q), 1) for q, n in rates.items() for k in range(n)]
    law = Composition(steps).law("remove")
    assert len(law.terms) < 60
    assert sum(count for _, count in law.terms) == pytest.approx(163, rel=1e-15)
    true = plain_law(steps, "remove").cumulants(1.0, 4)
    np.testing.assert_allclose(law.cumulants(1.0, 4), true, rtol=1e-12)


def gaussian_delta(mu, epsilon):
    """δ(ε) of Gaussian noise with sensitivity/σ = μ, which composes by the sum of μ²."""
    with mpmath.workdps(40):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        normal = mpmath.ncdf(mu / 2 - epsilon / mu)
        return float(normal - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu))


@pytest.mark.slow
def test_ten_thousand_distinct_gaussians():
    sigmas = [f"{100 * (1 + k / 10_000):.4f}" for k in range(10_000)]
    composition = Composition([(mechanisms.gaussian(sigma=sigma), 1) for sigma in sigmas])
    with mpmath.workdps(40):  # a sum in doubles is off by more than the interval is wide
        mu = mpmath.sqrt(sum(1 / mpmath.mpf(sigma) ** 2 for sigma in sigmas))
    for epsilon in (-0.5, 0.5, 4.0):
        found = composition.delta(epsilon, direction="add")
        true = gaussian_delta(mu, epsilon)
        assert found.delta == pytest.approx(true, rel=1e-12)
        assert found.lower * (1 - 1e-15) <= true <= found.upper * (1 + 1e-15)


@pytest.mark.slow
def test_ten_thousand_distinct_sampled_steps():
    """Distinct steps beside fewer, each taken more often, at the middle of their neighbours."""
    composition = Composition(gaussians(10_000, low=1.0, high=2.0))
    found = composition.delta(0.5, direction="remove")
    assert is_stacked(composition.law("remove"))
    assert found.upper < found.lower * (1 + 1e-11)
    middle = Composition(gaussians(1000, 10, 1.0 + 4.5e-4, 2.0 - 4.5e-4))
    assert found.delta == pytest.approx(middle.delta(0.5, direction="remove").delta, rel=1e-5)


@pytest.mark.slow
def test_no_rule_stands_for_rates_up_to_one_half():
    """log(1 − q) is singular near: a share of 3e-5 of the last coefficients lost 3e-11 of δ."""
    rates = np.geomspace(1e-4, 0.55, 40)
    step = mechanisms.gaussian(sigma=1)
    steps = [(step.subsample("poisson", f"{rate:.6f}"), 1) for rate in rates]
    law = Composition(steps).law("add")
    assert not is_stacked(law)
    plain = plain_law(steps, "add")
    assert law.loss_bounds[1] == pytest.approx(plain.loss_bounds[1], rel=1e-13)
    true = plain_delta(steps, 1.165, "add")
    assert Composition(steps).delta(1.165, direction="add").delta == pytest.approx(true, rel=2e-13)


@pytest.mark.quick_cases("laplace-add", "laplace-remove")
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    "step",
    [
        lambda k: mechanisms.logistic(s=f"{1 + k / 5:.1f}").subsample("poisson", f"{1 + k}/100"),
        lambda k: mechanisms.laplace(b=f"{1 + k / 5:.1f}").subsample("poisson", f"{1 + k}/100"),
        lambda k: mechanisms.student_t(nu=3, s=f"{1 + k / 5:.1f}"),
        lambda k: mechanisms.gaussian(sigma=f"{1 + k * k / 5:.1f}"),
    ],
    ids=["logistic", "laplace", "student", "gaussian"],
)
def test_laws_that_look_for_their_mass_together_give_what_each_gives(step, direction, monkeypatch):
    monkeypatch.setattr("symdp.numeric.many.kinds._ALIKE", 8)
    alone = [loss_law(step(k), direction) for k in range(8)]
    alike = together(alone)
    assert alike[3] is not alone[3]
    tilts = np.asarray([-0.4, 0.7, 2.5])
    y = np.asarray([0.5, 7.0, 60.0])
    for one, other in zip(alone, alike, strict=True):
        np.testing.assert_allclose(other.transform(tilts), one.transform(tilts), rtol=1e-12)
        assert other.loss_bounds == pytest.approx(one.loss_bounds, rel=1e-14)
        found, true = (law.tilted(0.7, 60.0).log_characteristic(y) for law in (other, one))
        # e^{z}, as a logarithm has the rounding of φ over its size
        np.testing.assert_allclose(np.exp(found), np.exp(true), rtol=0, atol=1e-13)
