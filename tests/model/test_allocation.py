"""The pair of random allocation: lists by brute force, refusals, and what k of t is made of."""

import itertools
import math

import pytest
import sympy as sp

from symdp import InputError, Mechanism, compose, mechanisms
from symdp.model.allocation import independent_steps

SCHEME = "random_allocation"
NOISE = mechanisms.gaussian(sigma=2)
THREE = Mechanism.from_pair(
    [0.5, 0.3, 0.2, 0], [0.1, 0.4, 0.25, 0.25], sp.Symbol("x"), [0, 1, 2, 3]
)


def brute(p, q, steps, epsilon, direction):
    total = 0.0
    for outputs in itertools.product(range(len(q)), repeat=steps):
        without = math.prod(q[i] for i in outputs)
        with_record = (
            sum(
                p[x] * math.prod(q[y] for j, y in enumerate(outputs) if j != i)
                for i, x in enumerate(outputs)
            )
            / steps
        )
        first, second = (with_record, without) if direction == "remove" else (without, with_record)
        total += max(first - math.exp(epsilon) * second, 0.0)
    return total


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("epsilon", [-0.4, 0.1, 0.6])
def test_lists_are_those_of_all_outputs(direction, epsilon):
    answer = compose(THREE.subsample(SCHEME, steps=5), 1).delta(epsilon, direction=direction)
    p, q = ([float(mass) for mass in law] for law in (THREE.pair().P, THREE.pair().Q))
    assert answer.lower <= answer.upper
    assert brute(p, q, 5, epsilon, direction) == pytest.approx(answer.delta, rel=1e-12)


def test_the_formulas_of_a_list_add_up():
    pair = mechanisms.randomized_response.subsample(SCHEME, steps=3).pair()
    assert len(pair.P) == 4
    assert sp.simplify(sum(pair.P) - 1) == sp.simplify(sum(pair.Q) - 1) == 0
    one = sp.Symbol("epsilon_0", positive=True)
    ratio = pair.P[0] / pair.Q[0]
    free = next(iter(ratio.free_symbols))
    assert sp.simplify(ratio.subs(free, one) - sp.exp(one)) == 0


def test_one_step_is_the_step_itself():
    drawn = NOISE.subsample(SCHEME, steps=1)
    assert drawn.pair() == NOISE.pair()
    own = compose(NOISE, 7).delta(1.5)
    assert own.lower <= compose(drawn, 7).delta(1.5).delta <= own.upper
    every = NOISE.subsample(SCHEME, steps=4, participations=4)
    own = compose(NOISE, 8).delta(2.0)
    assert own.lower <= compose(every, 2).delta(2.0).delta <= own.upper


def test_several_participations_are_blocks():
    drawn = NOISE.subsample(SCHEME, steps=11, participations=3)
    assert [(m.sampling.steps, n) for m, n in independent_steps(drawn)] == [(3, 1), (4, 2)]
    steps = compose(drawn, 5)
    assert steps.n == 5
    assert sorted((m.sampling.steps, n) for m, n in steps.steps) == [(3, 5), (4, 10)]
    assert "upper bound" in steps.protection.sentence
    assert compose(NOISE.subsample(SCHEME, steps=11), 5).protection.is_attained


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "needs steps"),
        ({"steps": 0}, "steps must be a whole number of 1 or more, not 0"),
        ({"steps": 2.5}, "steps must be a whole number of 1 or more, not 2.5"),
        ({"steps": 5, "participations": 0}, "participations must be a whole number"),
        ({"steps": 5, "participations": 6}, "participations = 6 is more than steps = 5"),
        ({"steps": 10**10}, "at most 1000000000 are accounted for"),
        ({"steps": 5, "rate": 0.2}, "takes no rate"),
    ],
)
def test_bad_numbers_are_named(given, message):
    with pytest.raises(InputError, match=message):
        NOISE.subsample(SCHEME, **given)


def test_other_schemes_take_no_steps():
    with pytest.raises(InputError, match="poisson sampling takes no steps"):
        NOISE.subsample("poisson", 0.1, steps=5)
    with pytest.raises(
        InputError, match="the sampling rate must be a number: poisson sampling needs one"
    ):
        NOISE.subsample("poisson")


@pytest.mark.parametrize("scheme", ["shuffle", "shuffled", "shuffled_batches", "correlated_noise"])
def test_what_has_no_pair_is_refused_by_name(scheme):
    with pytest.raises(InputError, match=f"{scheme}: no pair is known to dominate"):
        NOISE.subsample(scheme, 0.1)


def test_other_names_of_a_scheme_are_known():
    with pytest.raises(InputError, match="called 'random_allocation' here"):
        NOISE.subsample("balls_in_bins", 0.1)


def test_substitution_is_refused():
    with pytest.raises(InputError, match="no pair is proved for substitution"):
        NOISE.subsample(SCHEME, steps=5).under("substitution")
    assert NOISE.subsample(SCHEME, steps=5).under("zero_out").neighbours == "zero_out"


def test_a_file_says_it():
    text = (
        'name = "noise"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[noise]\n'
        'density = "exp(-x**2/2)/sqrt(2*pi)"\nsensitivity = 1\n'
        '[sampling]\nscheme = "random_allocation"\nsteps = 50\n'
    )
    assert Mechanism.from_toml(text).sampling.describe() == "random allocation, 1 of 50 steps"
    assert Mechanism.from_toml(text + "participations = 2\n").sampling.rate == sp.Rational(1, 25)
    with pytest.raises(InputError, match=r"\[sampling\]: participations must be a whole number"):
        Mechanism.from_toml(text + "participations = 1.5\n")


def test_the_derivation_of_several_outputs_is_refused_by_name():
    with pytest.raises(InputError, match="lives on 50 outputs at once"):
        NOISE.subsample(SCHEME, steps=50).pair()
