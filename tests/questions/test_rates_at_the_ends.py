"""Sampling at rate 0, next to 0 and at 1, in all schemes: an answer, or one line that says why."""

from __future__ import annotations

from contextlib import suppress

import pytest
import sympy as sp

from symdp import Mechanism, compose, mechanisms
from symdp.errors import AccuracyError, InputError

X = sp.Symbol("x", real=True)
NOISES = {
    "normal": mechanisms.gaussian(sigma=2),
    "skewed": mechanisms.gumbel(b=2),
    "two modes": Mechanism.additive(
        sp.exp(-sp.Abs(X) / 3) + 3 * sp.exp(-sp.Abs(X - 4) / 2), X, normalize=True),
    "waves": Mechanism.additive(
        sp.exp(-sp.Abs(X) / 2) * (2 + sp.cos(3 * X)), X, normalize=True),
    "one-sided": Mechanism.additive(sp.exp(-X), X, support=(0, sp.oo)),
    "integers": mechanisms.discrete_laplace(b=2),
    "a gap": Mechanism.additive(
        sp.Piecewise((1, sp.Abs(X) < 1), (1, sp.Abs(X) > 2), (0, True)), X, support=(-3, 3),
        normalize=True),
    "list": mechanisms.randomized_response(epsilon_0=1),
}  # fmt: skip
SCHEMES = {
    "poisson": {},
    "group": {"group": 2},
    "average": {"released": "average", "records": 30},
    "without_replacement": {},
    "with_replacement": {"batch": 3},
    "truncated_poisson": {"batch": 3, "records": 30},
}


@pytest.mark.slow_cases("poisson-two modes", "poisson-waves")
@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_record_that_is_never_drawn_loses_nothing(name: str, scheme: str) -> None:
    drawn = "poisson" if scheme in ("group", "average") else scheme

    def answered() -> list[float]:
        steps = compose(NOISES[name].subsample(drawn, 0, **SCHEMES[scheme]), 3)
        answers = steps.delta(0.25).delta, steps.epsilon(1e-9).epsilon
        return [*answers, steps.renyi(2.0), steps.zcdp().rho]

    if scheme == "poisson":
        assert answered() == [0.0] * 4
        return
    with suppress(InputError):  # where no pair is proved
        assert answered() == [0.0] * 4


@pytest.mark.quick_cases("list", "integers", "normal")
@pytest.mark.parametrize("name", NOISES)
def test_next_to_rate_zero_delta_is_at_most_the_rate_and_at_one_it_is_that_without(
    name: str,
) -> None:
    """δ of a sample is at most the chance that the record is drawn, at ε ≥ 0."""
    whole = compose(NOISES[name], 1).delta(0.25)
    for rate in ("1e-320", "1e-200", "1e-17"):
        log_delta = compose(NOISES[name].subsample("poisson", rate), 1).delta(0.25).log_delta
        assert log_delta <= float(sp.log(sp.Rational(rate)))
    sampled = compose(NOISES[name].subsample("poisson", 1), 1).delta(0.25)
    assert sampled.delta == pytest.approx(whole.delta, rel=1e-9)


def test_a_search_that_comes_to_the_last_double_before_the_end_of_k_ends() -> None:
    """The generating function jumps there: no tilt lies between it and the next double."""
    steps = compose(mechanisms.gumbel(b=2).subsample("poisson", "1e-320"), 1)
    assert steps.delta(0.25).log_delta <= float(sp.log(sp.Rational("1e-320")))


@pytest.mark.slow_cases("density1-1000000000000", "density0-1000000000000")
@pytest.mark.parametrize("size", [10**12, 10**14, 10**17, 10**20])
@pytest.mark.parametrize("density", [1 / (sp.pi * sp.cosh(X)), sp.exp(-X) / (1 + sp.exp(-X)) ** 2])
def test_noise_that_is_nothing_beside_the_sensitivity_has_no_delta_of_zero(
    density: sp.Expr, size: int
) -> None:
    """No loss was seen in doubles, and every ε was above the largest of them: 0, exact."""
    steps = compose(Mechanism.additive(density, X, size), 1)
    try:
        answer = steps.delta(1.0)
    except AccuracyError:
        answer = None
    assert answer is None or answer.upper >= 1.0 - 1e-9
