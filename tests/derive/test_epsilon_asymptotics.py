"""ε as a formula in n: the error that is left falls at the order that is stated."""

from __future__ import annotations

import math

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.derive import derive
from symdp.derive.asymptotics import QUANTILE, in_cumulants, kappa, normal_quantile
from symdp.derive.records import COUNT, EPSILON
from symdp.derive.series import cumulants
from symdp.errors import AccuracyError, InputError

R = sp.Rational
BUILT = symdp.mechanisms
CASES = {
    "gaussian": BUILT.gaussian(sigma=2),
    "gumbel": BUILT.gumbel(b=2),
    "logistic": BUILT.logistic(s=1),
    "laplace": BUILT.laplace(b=2),  # atoms beside a density
}
COUNTS = (1600, 6400)
DELTA = R(1, 1000)


@pytest.mark.quick_cases("gaussian-1", "gaussian-2")
@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("name", CASES)
def test_the_error_falls_at_the_order_that_is_stated(name: str, order: int) -> None:
    made = CASES[name]
    found = derive(made).epsilon_asymptotics(order)
    errors = [
        float(found.at(n, DELTA))
        - symdp.compose(made, n).epsilon(float(DELTA), direction="remove").epsilon
        for n in COUNTS
    ]
    power = math.log(errors[1] / errors[0]) / math.log(COUNTS[1] / COUNTS[0])
    # The next term is smaller by n^{−1/2}, a fortieth at 1600.
    assert power == pytest.approx(float(found.error_power), abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_a_sampled_gaussian_in_sigma_q_and_n(delta: float) -> None:
    sampled = BUILT.gaussian.subsample("poisson", "q")
    d = derive(sampled)
    found = d.epsilon_asymptotics(2)
    sigma, q = (d.mechanism.parameters[name] for name in ("sigma", "q"))
    values = {sigma: sp.Integer(2), q: R(1, 20)}
    count = 200_000  # √(nκ₂) is 12
    own = BUILT.gaussian(sigma=2).subsample("poisson", "1/20")
    exact = symdp.compose(own, count).epsilon(delta, direction="remove").epsilon
    errors = [abs(float(d.epsilon_asymptotics(k).at(count, delta, values)) - exact) for k in (0, 2)]
    assert errors[1] < 0.02 * exact
    assert errors[1] < errors[0]
    assert found.rate_order == 4


def test_a_rate_too_large_for_its_series_is_refused() -> None:
    """At σ = 1.2 and q = 1/5 the powers of q up to the fourth would be off by a sixth."""
    d = derive(BUILT.gaussian.subsample("poisson", "q"))
    found = d.epsilon_asymptotics(0)
    sigma, q = (d.mechanism.parameters[name] for name in ("sigma", "q"))
    with pytest.raises(AccuracyError, match="series in the rate has not settled"):
        found.at(200_000, 1e-5, {sigma: R(6, 5), q: R(1, 5)})
    own = BUILT.gaussian(sigma=3).subsample("poisson", "1/5")
    exact = symdp.compose(own, 200_000).epsilon(1e-5, direction="remove").epsilon
    assert float(found.at(200_000, 1e-5, {sigma: R(3), q: R(1, 5)})) == pytest.approx(
        exact, rel=0.05
    )


def test_cumulants_of_a_sampled_loss_are_series_in_the_rate() -> None:
    """The error of κ_j is of the order q⁵, so that a tenth of the rate makes it 10⁻⁵ of itself."""
    d = derive(BUILT.gaussian.subsample("poisson", "q"))
    for side in ("remove", "add"):
        one = derive(BUILT.gaussian.subsample("poisson", "q"), side)
        series, order = cumulants(one, 3, 4)
        assert order == 4
        sigma, q = (d.mechanism.parameters[name] for name in ("sigma", "q"))
        gaps = []
        for rate in (R(1, 10), R(1, 40)):
            made = BUILT.gaussian(sigma=2).subsample("poisson", str(rate))
            exact = symdp.compose(made, 1).law(side).cumulants(0.0, 3)
            own = [float(c.subs({sigma: 2, q: rate})) for c in series]
            gaps.append([abs(a - b) for a, b in zip(own, exact, strict=True)])
        for wide, near in zip(*gaps, strict=True):
            assert math.log(wide / near) / math.log(4) == pytest.approx(5, abs=0.35)


def test_the_next_power_of_the_rate_is_what_a_longer_series_adds() -> None:
    """nκ₁ + z√(nκ₂) with κ_j up to q⁵ less the same up to q⁴, at numbers."""
    d = derive(BUILT.gaussian.subsample("poisson", "q"))
    sigma, q = (d.mechanism.parameters[name] for name in ("sigma", "q"))
    values = {sigma: 2, q: R(1, 10), COUNT: 900, QUANTILE: R(7, 2)}
    with mpmath.workdps(30):
        kappas = []
        for order in (4, 5):
            series, _ = cumulants(d, 2, order)
            kappas.append([mpmath.mpmathify(c.subs(values).evalf(30)) for c in series])
        short, long = (900 * first + 3.5 * mpmath.sqrt(900 * second) for first, second in kappas)
        told = d.epsilon_asymptotics(0).next_rate_term.subs(values).evalf(30)
        assert abs(mpmath.mpmathify(told) - (long - short)) < 1e-20


@pytest.mark.slow
def test_derivatives_are_those_that_numbers_give() -> None:
    made = BUILT.gaussian(sigma=2)
    n, delta = 6400, 1e-5
    numeric = symdp.sensitivities(made, n, delta)
    d = derive(BUILT.gaussian)
    found = d.epsilon_asymptotics(3)
    sigma = d.mechanism.parameters["sigma"]
    at = {sigma: 2, COUNT: n, QUANTILE: normal_quantile(delta)}
    by_sigma, by_count = (float(found.sensitivity(s).subs(at)) for s in (sigma, COUNT))
    assert by_sigma == pytest.approx(numeric["sigma"].derivative, rel=1e-5)
    # One more step is dε/dn half a step on.
    half = {**at, COUNT: n + R(1, 2)}
    assert float(found.sensitivity(COUNT).subs(half)) == pytest.approx(
        numeric["n"].derivative, rel=1e-6
    )
    assert by_count == pytest.approx(numeric["n"].derivative, rel=1e-4)


@pytest.mark.quick_cases("0")
@pytest.mark.parametrize("order", [0, 1])
def test_planning_inverts_the_formula(order: int) -> None:
    d = derive(BUILT.laplace)
    found = d.epsilon_asymptotics(order)
    at = {d.mechanism.parameters["b"]: R(2), QUANTILE: normal_quantile(R(1, 10**6))}
    epsilon = found.epsilon.subs(at).subs(COUNT, 500)
    assert float(found.n.subs(at).subs(EPSILON, epsilon)) == pytest.approx(500, rel=1e-12)


@pytest.mark.slow
def test_planning_comes_close_to_the_exact_number_of_steps() -> None:
    made, delta, budget = BUILT.gumbel(b=20), R(1, 10**5), 6.0
    found = derive(made).epsilon_asymptotics(1)
    at = {QUANTILE: normal_quantile(delta), EPSILON: budget}
    planned = round(float(found.n.subs(at)))
    reached = symdp.compose(made, planned).epsilon(float(delta), direction="remove").epsilon
    assert reached == pytest.approx(budget, rel=0.1)


def test_every_term_says_what_it_is() -> None:
    found = in_cumulants(2, is_lattice=False)
    assert [term.power for term in found.terms] == [1, R(1, 2), 0, 0, R(-1, 2)]
    assert found.terms[2].meaning == "the skewness of the loss"
    assert found.terms[3].expression == -1
    assert kappa(4) in found.epsilon.free_symbols
    assert all(term.meaning for term in found.terms)


@pytest.mark.slow_cases("student_t-0-no closed form of the derivative")
@pytest.mark.parametrize(
    ("name", "order", "words"),
    [
        ("discrete_laplace", 1, "oscillate with n; ask for order 0"),
        ("student_t", 0, "no closed form of the derivative"),
        ("permute_and_flip", -1, "the order must be a whole number"),
        ("approximate_dp", 0, "infinite with positive probability"),
    ],
)
def test_what_has_no_formula_says_why(name: str, order: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        derive(getattr(BUILT, name)).epsilon_asymptotics(order)


@pytest.mark.parametrize("delta", [0, 1, -1, "x", 2.0, float("nan")])
def test_delta_is_a_probability(delta: object) -> None:
    with pytest.raises(InputError, match="delta"):
        derive(CASES["gaussian"]).epsilon_asymptotics(0).at(10, delta)  # type: ignore[arg-type]
