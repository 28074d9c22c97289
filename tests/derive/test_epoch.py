"""What is derived of an epoch of random allocation, against quadrature and laws in numbers."""

import json
import math

import mpmath
import pytest
import sympy as sp

from symdp import InputError, compose, mechanisms
from symdp.derive import derive
from symdp.derive.without_pair.epoch import derive_epoch

SCHEME = "random_allocation"
LAPLACE = mechanisms.laplace(b="3/2").subsample(SCHEME, steps=6)
RESPONSE = mechanisms.randomized_response(epsilon_0=1).subsample(SCHEME, steps=6)


def gaussian(x):
    return mpmath.npdf(x, 0, 2)


def test_the_transform_of_laplace_noise_is_closed():
    found = derive(mechanisms.laplace.subsample(SCHEME, steps=6))
    assert found.is_closed
    b = next(iter(found.transform.free_symbols - {found.rate}))
    ratio = lambda x: mpmath.exp((abs(x) - abs(x - 1)) / 1.5)  # noqa: E731
    for u in (0.3, 2.0):
        whole = mpmath.quad(
            lambda x, u=u: mpmath.exp(-abs(x) / 1.5 - u * ratio(x)) / 3, [-80, 0, 1, 80]
        )
        value = found.transform.subs({b: sp.Rational(3, 2), found.rate: u})
        assert abs(sp.N(value, 18) - whole) < 1e-13


def test_a_transform_without_a_closed_form_is_an_integral():
    found = derive(mechanisms.gaussian(sigma=2).subsample(SCHEME, steps=6))
    assert not found.is_closed
    whole = mpmath.quad(
        lambda x: gaussian(x) * mpmath.exp(-mpmath.exp((2 * x - 1) / 8) * 0.7), [-40, 0, 40]
    )
    integral = next(iter(found.transform.atoms(sp.Integral)))
    integrand = sp.lambdify(found.one_step.variable, integrand_at(integral, found.rate), "mpmath")
    assert abs(mpmath.quad(integrand, [-40, 0, 40]) - whole) < 1e-12


def integrand_at(integral, rate):
    return integral.function.subs(rate, sp.Rational(7, 10))


@pytest.mark.quick_cases("mechanism1")
@pytest.mark.parametrize("mechanism", [LAPLACE, RESPONSE, mechanisms.gaussian(sigma=2)])
def test_whole_tilts_are_those_of_the_law_in_numbers(mechanism):
    drawn = mechanism if mechanism.sampling else mechanism.subsample(SCHEME, steps=6)
    found, law = derive(drawn), compose(drawn, 1).law("remove")
    for tilt in (1, 2, 3):
        # A law from above has a transform too large by what it moves.
        assert law.cgf(float(tilt)) == pytest.approx(float(found.cgf_at(tilt)), rel=1e-8)
    assert float(found.renyi(3)) == pytest.approx(float(found.cgf_at(2)) / 2, rel=1e-15)


@pytest.mark.slow_cases("remove-0.5")
@pytest.mark.parametrize(("direction", "tilt"), [("remove", 0.5), ("add", 0.5), ("add", 1.7)])
def test_the_integral_is_the_moment_generating_function(direction, tilt):
    found = derive_epoch(RESPONSE, direction)
    phi = sp.Function("phi")(found.rate)
    written = found.moment.subs(phi, found.transform).doit(integrals=False, deep=True)
    integral = next(iter(written.atoms(sp.Integral)))
    z = found.cgf.tilt
    front = float((found.moment / next(iter(found.moment.atoms(sp.Integral)))).subs(z, tilt))
    inside = sp.lambdify(found.rate, integral.function.doit().subs(z, tilt), "mpmath")
    value = mpmath.quad(inside, [0, 0.01, 0.1, 1, 5, 20, 100])
    expected = compose(RESPONSE, 1).law(direction).cgf(tilt)
    assert math.log(front * value) == pytest.approx(expected, rel=1e-7)


@pytest.mark.slow
def test_texts_name_what_the_epoch_is_made_of():
    found = derive(LAPLACE)
    text = found.to_text(1)
    for line in ("W(x) =", "Q(W = e^(2/3))", "φ(u) =", "ℓ = log(Y/6)", "K(1) =", "c₁ ="):
        assert line in text
    assert r"\varphi(u)" in found.to_latex(1)
    assert "<math" in found.to_mathml(1)
    assert json.loads(json.dumps(found.to_json(1)))["transform_is_closed"]


def test_a_parameter_keeps_its_name():
    found = derive_epoch(mechanisms.bounded_range.subsample(SCHEME, steps=3))
    assert found.rate.name == "v"


def test_what_has_no_epoch_is_refused():
    with pytest.raises(InputError, match="moments of 1/Y"):
        derive(LAPLACE, "add").cgf_at(1)
    with pytest.raises(InputError, match="direction must be"):
        derive(LAPLACE, "both")
    with pytest.raises(AttributeError, match="EpochDerivation has no 'pld_density'"):
        _ = derive(LAPLACE).pld_density
