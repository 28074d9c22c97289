"""The size of noise against closed forms and quadrature, and noises of one size side by side."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import sympy as sp

import symdp
from symdp import Mechanism, mechanisms
from symdp.errors import AccuracyError, InputError
from symdp.questions.noise import compare, noise_size

x = sp.Symbol("x", real=True)
POSITIVE = sp.Symbol("x", nonnegative=True)


@pytest.mark.slow_cases(
    "<Mechanism logistic(s=1)>-0-1.8137993642342178-1.3862943611198906",
    "<Mechanism gumbel(b=2)>-1.1544313298030657-2.565099660323728-None",
    "<Mechanism student_t(nu=5, s=1)>-0-1.2909944487358056-0.9490167245562361",
)
@pytest.mark.parametrize(
    ("noise", "mean", "std", "mean_abs"),
    [
        (mechanisms.laplace(b=3), 0, 3 * math.sqrt(2), 3),
        (mechanisms.gaussian(sigma=2), 0, 2, 2 * math.sqrt(2 / math.pi)),
        (mechanisms.logistic(s=1), 0, math.pi / math.sqrt(3), 2 * math.log(2)),
        (mechanisms.student_t(nu=5, s=1), 0, math.sqrt(5 / 3), 0.9490167245562361),  # below
        (mechanisms.gumbel(b=2), 2 * 0.5772156649015329, 2 * math.pi / math.sqrt(6), None),
        (symdp.Mechanism.additive(sp.exp(-x), x, support=(0, sp.oo)), 1, 1, 2 / math.e),
    ],
    ids=str,
)
def test_sizes_that_are_known(noise, mean, std, mean_abs):
    found = noise_size(noise)
    assert found.mean == pytest.approx(mean, rel=1e-15, abs=0)
    assert found.std == pytest.approx(std, rel=4e-16)
    if mean_abs is not None:
        # of Student's noise: 2 √ν Γ((ν + 1)/2)/((ν − 1) √π Γ(ν/2))
        assert found.mean_abs == pytest.approx(mean_abs, rel=4e-16)


@pytest.mark.slow
def test_three_modes_off_their_mean_against_mpmath():
    parts = [(0.5, -4, 1), (0.3, 2, 3), (0.2, 9, 0.25)]
    density = sum(
        sp.Rational(str(w))
        * sp.exp(-((x - m) ** 2) / (2 * sp.Rational(str(s)) ** 2))
        / (sp.Rational(str(s)) * sp.sqrt(2 * sp.pi))
        for w, m, s in parts
    )
    found = noise_size(symdp.Mechanism.additive(density, x))
    mean = sum(w * m for w, m, s in parts)
    assert found.mean == pytest.approx(mean, rel=1e-14)
    assert found.std == pytest.approx(
        math.sqrt(sum(w * (s * s + m * m) for w, m, s in parts) - mean**2), rel=1e-14
    )
    away = mpmath.quad(
        lambda y: abs(y - mean) * sum(w * mpmath.npdf(y, m, s) for w, m, s in parts),
        [-20, -4, mean, 2, 8, 9, 10, 30],
    )
    assert found.mean_abs == pytest.approx(float(away), rel=1e-13)


def test_noise_on_integers_against_its_sum():
    found = noise_size(mechanisms.discrete_laplace(b=2))
    weights = {k: mpmath.exp(-abs(k) / mpmath.mpf(2)) for k in range(-200, 201)}
    mass = sum(weights.values())
    square = sum(k * k * w for k, w in weights.items()) / mass
    assert found.std == pytest.approx(float(mpmath.sqrt(square)), rel=1e-15)
    assert found.mean_abs == pytest.approx(
        float(sum(abs(k) * w for k, w in weights.items()) / mass), rel=1e-15
    )


@pytest.mark.slow_cases("2")
@pytest.mark.parametrize("nu", [1, 2])
def test_what_has_no_variance_has_no_number(nu):
    with pytest.raises(AccuracyError, match="whether it is finite is open"):
        noise_size(mechanisms.student_t(nu=nu, s=1))


@pytest.mark.slow
def test_noises_of_one_size_have_it_and_answer_as_alone():
    rows = compare([mechanisms.laplace, mechanisms.gaussian], 50, delta=1e-5, std=20)
    assert [row.mechanism.name for row in rows] == ["gaussian", "laplace"]
    for row in rows:
        assert row.size.std == pytest.approx(20, rel=1e-11)
    alone = symdp.compose(mechanisms.laplace(b="14.1421356237"), 50)
    assert rows[1].guarantee.epsilon == alone.epsilon(1e-5).epsilon
    assert rows[1].delta == alone.delta(rows[0].guarantee.epsilon).upper
    assert rows[0].delta == pytest.approx(1e-5, rel=1e-9)


@pytest.mark.slow
def test_a_rule_of_sampling_does_not_change_what_is_added():
    sampled = mechanisms.gaussian.subsample("poisson", "1/10")
    (row,) = compare([sampled], 300, delta=1e-5, mean_abs="7/2")
    assert row.size.mean_abs == pytest.approx(3.5, rel=1e-11)
    assert row.size.std == pytest.approx(3.5 * math.sqrt(math.pi / 2), rel=1e-11)


@pytest.mark.slow_cases("noises5-size5-noise on a line")
@pytest.mark.parametrize(
    ("noises", "size", "told"),
    [
        ([mechanisms.student_t], {"std": 1}, "values for all but one of nu, s"),
        ([mechanisms.laplace], {}, "std or mean_abs, one of them"),
        ([mechanisms.laplace], {"std": 1, "mean_abs": 1}, "one of them"),
        ([mechanisms.laplace], {"std": 0}, "must be positive"),
        ([mechanisms.randomized_response], {"std": 1}, "no additive noise"),
        ([mechanisms.l2_laplace(d=3)], {"std": 1}, "noise on a line"),
    ],
)
def test_wrong_words_are_told(noises, size, told):
    with pytest.raises(InputError, match=told):
        compare(noises, 1, delta=1e-5, **size)


def test_a_noise_without_an_answer_does_not_take_that_of_others(monkeypatch):
    epsilon = symdp.Composition.epsilon

    def refusing(steps, delta):
        if steps.steps[0][0].name == "gaussian":
            raise AccuracyError("it oscillates too fast")
        return epsilon(steps, delta)

    monkeypatch.setattr(symdp.Composition, "epsilon", refusing)
    noises = [mechanisms.gaussian, mechanisms.laplace]
    reasons = []
    (row,) = compare(noises, 3, delta=1e-5, std=4, left_out=reasons.append)
    assert row.mechanism.name == "laplace"
    assert reasons == ["gaussian: it oscillates too fast"]
    with pytest.raises(AccuracyError, match="oscillates"):
        compare(noises, 3, delta=1e-5, std=4)


R = sp.Symbol("r", positive=True)
ON_VECTORS = {  # the density of the length but for r^{d−1}, and d
    "hyperbolic": (sp.exp(-2 * sp.sqrt(1 + R**2 / 9)), 3),
    "exponential": (sp.exp(-R / 2), 50),
    "power": ((1 + R**2) ** -3, 2),
    "normal": (sp.exp(-(R**2) / 18), 1000),
    "on a line": (sp.exp(-(R**2) / 8), 1),
    "ball": (sp.Piecewise((1, R <= 2), (sp.exp(2 - R), True)), 5),
}


@pytest.mark.parametrize(("density", "dimension"), ON_VECTORS.values(), ids=list(ON_VECTORS))
def test_a_coordinate_of_noise_on_vectors(density, dimension):
    noise = Mechanism.radial(density, R, dimension=dimension, sensitivity=1)
    g = sp.lambdify(R, density, "mpmath")
    d, ends = mpmath.mpf(dimension), [0, 2, 10, 50, 80, 90, 95, 100, 110, 150, 1000, mpmath.inf]
    mass, first, second = (
        mpmath.quad(lambda r, k=k: r ** (d - 1 + k) * g(r), ends) for k in range(3)
    )
    part = mpmath.gamma(d / 2) / mpmath.sqrt(mpmath.pi) / mpmath.gamma((d + 1) / 2)
    assert noise.mean == 0.0
    assert noise.std == pytest.approx(float(mpmath.sqrt(second / mass / d)), rel=1e-12)
    assert noise.mean_abs == pytest.approx(float(part * first / mass), rel=1e-12)
    values = noise.sample(20_000, rng=7)
    assert values.shape == (20_000, dimension)
    heights = np.abs(values)
    error = heights.std() / np.sqrt(values.size / 4)  # coordinates of one vector hang together
    assert abs(heights.mean() - noise.mean_abs) < 5 * error
    assert abs(values.mean()) < 10 * noise.std / np.sqrt(values.size)


def test_heavy_tails_on_vectors_have_no_size_and_vectors_no_quantiles():
    noise = Mechanism.radial((1 + R**2) ** -2, R, dimension=2, sensitivity=1)
    assert noise.mean_abs == pytest.approx(1, rel=1e-15)
    with pytest.raises(AccuracyError, match="whether it is finite is open"):
        _ = noise.std
    with pytest.raises(InputError, match="which has no quantiles"):
        noise.quantile(0.5)


def test_noises_on_vectors_are_compared_by_a_coordinate():
    s = sp.Symbol("s", positive=True)
    normal = Mechanism.radial(sp.exp(-(R**2) / (2 * s**2)), R, dimension=7, sensitivity=1)
    on_vectors, on_the_line = compare([normal, mechanisms.gaussian], 10, delta=1e-5, std=9)
    assert on_vectors.size.std == pytest.approx(9)
    assert on_vectors.guarantee.epsilon == pytest.approx(on_the_line.guarantee.epsilon, rel=1e-9)
