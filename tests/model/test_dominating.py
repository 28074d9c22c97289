"""The pairs of sampling schemes: what their theorems say, and what is refused.

Against every small data set they stand in `test_enumeration`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import pytest
import sympy as sp
from refusals import refused

from symdp import Mechanism, compose, mechanisms

GRID = np.linspace(-30.0, 30.0, 12_001)
EPSILONS = (-0.7, 0.0, 0.3, 1.2, 3.0)
SUMMED = 1e-6  # error of the sums on the grid: its spacing squared, over the size of a kink
Mixture = dict[float, float]  # shift -> weight

NOISES: dict[str, tuple[Mechanism, Callable[[np.ndarray], np.ndarray]]] = {
    "gaussian": (
        mechanisms.gaussian(sigma="3/2"),
        lambda x: np.exp(-(x**2) / 4.5) / math.sqrt(4.5 * math.pi),
    ),
    "logistic": (mechanisms.logistic(s=1), lambda x: 0.25 / np.cosh(x / 2) ** 2),
    "student": (mechanisms.student_t(nu=3, s=1), lambda x: 6 * 3**0.5 / math.pi / (3 + x**2) ** 2),
}


@functools.cache
def shifted(name: str, shift: float) -> np.ndarray:
    return NOISES[name][1](GRID - shift)


def density(name: str, mixture: Mixture) -> np.ndarray:
    return sum(weight * shifted(name, shift) for shift, weight in mixture.items())


def divergence(name: str, p: Mixture, q: Mixture, epsilon: float) -> float:
    gap = density(name, p) - math.exp(epsilon) * density(name, q)
    return float(np.maximum(gap, 0.0).sum() * (GRID[1] - GRID[0]))


@pytest.mark.quick_cases("gaussian")
@pytest.mark.parametrize("name", ["gaussian", "logistic"])
def test_the_pair_of_poisson_under_substitution_is_attained(name):
    mechanism = NOISES[name][0].under("substitution").subsample("poisson", "2/5")
    p, q = {0.0: 0.6, 1.0: 0.4}, {0.0: 0.6, -1.0: 0.4}
    steps = compose(mechanism)
    assert steps.protection.is_attained
    for epsilon in EPSILONS:
        own = steps.delta(epsilon).delta
        assert own == pytest.approx(divergence(name, p, q, epsilon), abs=SUMMED)


def test_with_replacement_no_single_mixture_dominates():
    """At ε = 0 others at 0 are worse than the mixture of shifts 2j that others at −1 give."""
    share, draws = 0.3, 3
    weights = [math.comb(draws, j) * share**j * (1 - share) ** (draws - j) for j in range(4)]
    mixture = divergence("gaussian", {2.0 * j: w for j, w in enumerate(weights)}, {0.0: 1.0}, 0.0)
    one = {float(j): w for j, w in enumerate(weights)}
    other = {-float(j): w for j, w in enumerate(weights)}
    worse = divergence("gaussian", one, other, 0.0)
    assert worse > mixture + 1e-3
    steps = compose(mechanisms.gaussian(sigma="3/2").subsample("with_replacement", 0.3, 3))
    assert steps.delta(0.0).delta >= worse - SUMMED


@pytest.mark.slow_cases("1-1/100-1000-15.4835-16.963")
@pytest.mark.parametrize(
    ("sigma", "rate", "count", "low", "high"),
    [
        (1, "1/100", 1000, 15.4835, 16.963),
        (2, "1/100", 10_000, 6.907, 8.939),
        (4, "1/10", 1000, 9.1819, 10.495),
    ],
)
def test_compositions_of_fixed_batches(sigma, rate, count, low, high):
    noise = mechanisms.gaussian(sigma=sigma)
    own = compose(noise.subsample("without_replacement", rate), count).epsilon(1e-6)
    # All other records at −C, the substituted one at +C: a shift of 2C at the rate of the batch.
    twice = mechanisms.gaussian(sigma=sp.Rational(sigma, 2)).subsample("poisson", rate)
    data = compose(twice, count).epsilon(1e-6, direction="remove")
    assert low <= data.epsilon <= own.epsilon <= high
    assert (own.direction, own.protection.relation) == ("both", "substitution")
    assert not own.protection.is_attained


@pytest.mark.slow_cases("rate0-student", "rate1-student")
@pytest.mark.parametrize("name", ["gaussian", "student"])
@pytest.mark.parametrize("rate", [sp.Rational(1, 10), sp.Rational(3, 4)])
def test_the_profile_is_that_of_the_theorem(name, rate):
    noise = NOISES[name][0]
    base = compose(noise.under("substitution"))
    batch = compose(noise.subsample("without_replacement", rate))
    for epsilon in (0.0, 0.4, 1.3):
        amplified = math.log1p(float(rate) * math.expm1(epsilon))
        found = batch.delta(amplified).delta
        assert found == pytest.approx(float(rate) * base.delta(epsilon).delta, rel=1e-11)
        mirrored = -math.expm1(-amplified) + math.exp(-amplified) * found
        assert batch.delta(-amplified).delta == pytest.approx(mirrored, rel=1e-11)


def test_draws_with_replacement_have_the_profile_of_the_theorem():
    noise, draws = mechanisms.gaussian(sigma=2), 3
    batch = compose(noise.subsample("with_replacement", "1/10", draws))
    share = 1 - 0.9**draws
    for epsilon in (0.1, 1.0):
        total = sum(
            math.comb(draws, j) * 0.1**j * 0.9 ** (draws - j)
            * compose(mechanisms.gaussian(sigma=sp.Rational(1, j))).delta(epsilon).delta
            for j in (1, 2, 3)
        )  # fmt: skip
        amplified = math.log1p(share * math.expm1(epsilon))
        assert batch.delta(amplified).delta == pytest.approx(total, rel=1e-10)


def test_truncation_that_never_happens_costs_nothing():
    noise = mechanisms.gaussian(sigma=2)
    truncated = noise.subsample("truncated_poisson", "1/100", 900, records=1000)
    plain = noise.subsample("poisson", "1/100")
    assert truncated.pair() == plain.pair()
    assert compose(truncated).protection.sentence.startswith("one record added to or removed")


@pytest.mark.slow
def test_many_draws_are_summed_to_a_proved_remainder():
    steps = compose(mechanisms.gaussian(sigma=4).subsample("with_replacement", "1/50000", 1024), 10)
    law = steps.law("remove")
    assert 0 < law.mass_at_infinity < 1e-14  # ten steps
    one = compose(mechanisms.gaussian(sigma=4).subsample("without_replacement", "64/3125"), 10)
    assert steps.epsilon(1e-5).epsilon > one.epsilon(1e-5).epsilon


def test_integer_noise_in_a_fixed_batch():
    noise = mechanisms.discrete_laplace(b=2)
    batch, base = noise.subsample("without_replacement", "1/5"), noise.under("substitution")
    for epsilon in (0.0, 0.3, 0.9):
        amplified = math.log1p(math.expm1(epsilon) / 5)
        expected = compose(base).delta(epsilon).delta / 5
        assert compose(batch).delta(amplified).delta == pytest.approx(expected, rel=1e-11)


def test_a_file_states_its_own_substitution():
    text = """
name = "counts"
variable = "x"
support = ["-oo", "oo"]
relation = "substitution"
[noise]
density = "exp(-abs(x))/2"
sensitivity = 1
substitution_sensitivity = 1
"""
    counts = Mechanism.from_toml(text)
    assert counts.neighbours == "substitution"
    plain = mechanisms.laplace(b=1)
    assert compose(counts).delta(0.4).delta == pytest.approx(compose(plain).delta(0.4).delta)
    twice = compose(plain.under("substitution")).delta(0.4).delta
    assert twice == pytest.approx(1 - math.exp((0.4 - 2) / 2))


@pytest.mark.slow
def test_a_pair_in_three_parts_written_out_equals_the_group():
    weights = [math.comb(3, j) * sp.Rational(1, 50) ** j * sp.Rational(49, 50) ** (3 - j)
               for j in range(4)]  # fmt: skip
    x = sp.Symbol("x", real=True)
    f = mechanisms.gaussian(sigma="6/5").source.density
    x = mechanisms.gaussian.variable
    written = Mechanism.from_pair(sum(w * f.subs(x, x - j) for j, w in enumerate(weights)), f, x)
    group = mechanisms.gaussian(sigma="6/5").subsample("poisson", "1/50", group=3)
    one, other = (compose(m, 500).delta(2.0).delta for m in (written, group))
    assert one == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (
            lambda: mechanisms.gumbel(b=1).subsample("without_replacement", 0.1).pair(),
            "not shown to be symmetric",
        ),
        (
            lambda: mechanisms.student_t(nu=3, s=1).subsample("poisson", 0.1, group=2).pair(),
            "whose logarithm is concave",
        ),
        (
            lambda: mechanisms.gaussian.subsample("without_replacement", 0.1).under("add_remove"),
            "admits the relation substitution alone, not add_remove",
        ),
        (
            lambda: mechanisms.gaussian.subsample("poisson", 0.1, group=2).under("substitution"),
            "no pair is proved for substitution",
        ),
        (
            lambda: mechanisms.gaussian.subsample("truncated_poisson", 0.1, 5, records=9, group=2),
            "no pair is proved for groups",
        ),
        (lambda: mechanisms.gaussian.subsample("truncated_poisson", 0.1, 5), "needs records"),
        (
            lambda: mechanisms.gumbel(b=1).subsample("truncated_poisson", 0.1, 2, records=9).pair(),
            "displacing a record of a truncated batch moves the output either way",
        ),
        (lambda: mechanisms.gaussian.under("replace"), "unknown neighbouring relation 'replace'"),
        (
            lambda: mechanisms.randomized_response.subsample("poisson", 0.1).under("substitution"),
            "not for substitution",
        ),
        (
            lambda: mechanisms.gaussian(sigma=1).subsample("with_replacement", 0.5, 10**4).pair(),
            "at most 48 are accounted for",
        ),
        (
            lambda: compose(
                [
                    (mechanisms.gaussian(sigma=1), 1),
                    (mechanisms.gaussian(sigma=1).subsample("without_replacement", 0.1), 1),
                ]
            ),
            "one composition has one neighbouring relation",
        ),
    ],
)
def test_what_is_not_proved_is_refused(make, part):
    with refused(part):
        make()
