"""Integer noise as a function of its parameters: the law of a formula is that of its values."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import acb

from symdp import Mechanism, compose, mechanisms
from symdp.numeric import compile as compiling
from symdp.numeric.formula import formula_of
from symdp.numeric.laws.of_mechanism import loss_law

K = sp.Symbol("k", integer=True)
B = sp.Symbol("b", positive=True)
POSITIVE = {"b": "positive"}


def own(masses, **options):
    """Noise on the integers with a positive parameter, divided by the sum of its masses."""
    return Mechanism.additive(
        masses, K, support="integers", name="own", parameters=POSITIVE, normalize=True, **options
    )(b=sp.Rational(7, 3))


# One loss beyond the middle, a sum without a formula, bumps of two heights, tails of two rates.
NOISES = {
    "discrete laplace": mechanisms.discrete_laplace(b="7/3"),
    "discrete gaussian": mechanisms.discrete_gaussian(sigma="7/3"),
    "skellam": mechanisms.skellam(mu="7/3"),
    "bent": own((1 + sp.Abs(K)) * sp.exp(-sp.Abs(K) / B)),
    "two bumps": own(sp.exp(-((K - 4) ** 2) / B) + 2 * sp.exp(-((K + 4) ** 2) / B)),
    "two rates": own(sp.exp(-sp.Abs(K) / B - sp.Abs(K - 2) / 3)),
}
SCHEMES = {"whole": None, "sampled": "1/20"}


@pytest.mark.quick_cases(
    "discrete laplace-whole", "discrete laplace-sampled", "discrete gaussian-whole"
)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", NOISES)
def test_the_law_of_a_formula_is_that_of_its_values(name, scheme):
    noise = NOISES[name]
    if SCHEMES[scheme] is not None:
        noise = noise.subsample("poisson", SCHEMES[scheme])
    for direction in ("remove", "add"):
        if formula_of(noise, direction) is None:
            assert name in {"bent", "two bumps", "two rates"}
            continue
        law = loss_law(noise, direction)
        other = compiling.compiled_law(noise.pair(direction), "other")
        assert law.loss_bounds == pytest.approx(other.loss_bounds, rel=1e-14)
        assert law.domain == pytest.approx(other.domain, rel=1e-9)
        tilts = np.asarray([-1.2, -0.5, 0.0, 0.3])
        tilts = tilts[(tilts > law.domain[0]) & (tilts < law.domain[1])]
        for tilt in tilts.tolist():
            ours, theirs = (one.tilted(tilt).cumulants(3) for one in (law, other))
            assert ours == pytest.approx(theirs, rel=1e-10, abs=1e-12)


def test_a_delta_against_sums_of_the_definition():
    sigma, epsilon = sp.Rational(13, 9), 0.7
    with mpmath.workdps(40):
        width = 2 * mpmath.mpf(sigma.p) ** 2 / mpmath.mpf(sigma.q) ** 2
        mass = mpmath.nsum(lambda k: mpmath.exp(-(k**2) / width), [-mpmath.inf, mpmath.inf])

        def p(k):
            return mpmath.exp(-((k - 1) ** 2) / width) / mass

        def q(k):
            return mpmath.exp(-(k**2) / width) / mass

        expected = mpmath.fsum(
            max(p(mpmath.mpf(k)) - mpmath.exp(mpmath.mpf(epsilon)) * q(mpmath.mpf(k)), 0)
            for k in range(-60, 61)
        )
        found = compose(mechanisms.discrete_gaussian(sigma=sigma), 1).delta(epsilon)
        assert abs(found.log_delta - mpmath.log(expected)) < 1e-13


def test_nothing_is_derived_anew_for_another_value(monkeypatch):
    compose(mechanisms.discrete_gaussian(sigma="11/7"), 3).delta(0.5)
    compose(mechanisms.discrete_laplace(b="11/7"), 3).delta(0.5)

    def refused(*_):
        raise AssertionError("derived anew")

    monkeypatch.setattr(compiling, "compiled_law", refused)
    for sigma in ("12/7", "90"):
        assert compose(mechanisms.discrete_gaussian(sigma=sigma), 3).delta(0.01).kind == "exact"
        assert compose(mechanisms.discrete_laplace(b=sigma), 3).delta(0.001).kind == "exact"


@pytest.mark.parametrize("b", ["1/9", "1", "50"])
def test_discrete_laplace_against_its_closed_form(b):
    """δ(ε) of one step: (1 − e^{ε − 1/b}) of the integers from 1 on."""
    with mpmath.workdps(30):
        rate = 1 / mpmath.mpf(sp.Rational(b).p) * sp.Rational(b).q
        epsilon = float(rate / 3)
        above = mpmath.tanh(rate / 2) / (1 - mpmath.exp(-rate))
        expected = above * (1 - mpmath.exp(epsilon - rate))
        found = compose(mechanisms.discrete_laplace(b=b), 1).delta(epsilon)
        assert float(found) == pytest.approx(float(expected), rel=1e-13)
        assert np.isfinite(found.log_upper)


LISTS = {
    "response": mechanisms.randomized_response(epsilon_0="7/5"),
    "k-ary": mechanisms.k_ary_randomized_response(epsilon_0="7/5", k=4),
    "infinite loss": mechanisms.approximate_dp(epsilon_0="1/3", delta_0="1/1000"),
    "staircase": mechanisms.staircase(epsilon_0="7/5", gamma_0="5/7"),
    "bounded range": mechanisms.bounded_range(epsilon_0="7/5", u="2/3"),
}


@pytest.mark.quick_cases("response-None", "k-ary-None")
@pytest.mark.parametrize("rate", [None, "1/9"])
@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_that_of_its_values(name, rate):
    noise = LISTS[name] if rate is None else LISTS[name].subsample("poisson", rate)
    for direction in ("remove", "add"):
        pair = formula_of(noise, direction)
        assert pair is not None
        law = pair[0].at(pair[1], "law")
        other = compiling.compiled_law(noise.pair(direction), "other")
        np.testing.assert_allclose(law.step.point_loss, other.step.point_loss, rtol=1e-15)
        np.testing.assert_allclose(law.step.point_log_p, other.step.point_log_p, rtol=1e-15)
        for place in (-0.4, 0.3):
            value, theirs = (
                one.moment.numbers().at(acb(place), one.moment.orders) for one in (law, other)
            )
            assert abs(value - theirs) < 1e-12


def test_a_probability_that_vanishes_is_derived_by_itself():
    x, a = sp.Symbol("x"), sp.Symbol("a", positive=True)
    pair = [a, 1 - 2 * a, a], [sp.Rational(1, 4), sp.Rational(1, 2), sp.Rational(1, 4)]
    made = Mechanism.from_pair(*pair, x, [0, 1, 2], parameters={"a": "positive"})
    half = compose(made(a="1/2"), 1)  # the middle has no mass: log 2 or nothing
    assert float(half.delta(0, direction="remove")) == pytest.approx(0.5, rel=1e-14)
    third = compose(made(a="1/3"), 1)
    assert float(third.delta(0, direction="remove")) == pytest.approx(1 / 6, rel=1e-14)
