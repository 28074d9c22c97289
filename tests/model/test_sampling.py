"""Sampling: the weights of the densities mixed, rates as parameters, and what is refused."""

# ruff: noqa: SIM300 (it takes the laws P and Q for constants)

from __future__ import annotations

import math

import pytest
import sympy as sp
from refusals import refused

from symdp import mechanisms
from symdp.model.mechanism import Mechanism

X = sp.Symbol("x", real=True)
B = sp.Symbol("b", positive=True)


def gaussian() -> Mechanism:
    return mechanisms.gaussian


def test_poisson_weights() -> None:
    q = sp.Rational(1, 100)
    pair = gaussian()(sigma=1).subsample("poisson", 0.01).pair()
    plain = gaussian()(sigma=1).pair()
    assert pair.components == plain.components
    assert (pair.p_weights, pair.q_weights) == ((1 - q, q), (1, 0))
    assert sp.expand(pair.P - (1 - q) * plain.Q - q * plain.P) == 0
    assert pair.Q == plain.Q
    add = gaussian()(sigma=1).subsample("poisson", 0.01).pair("add")
    assert (add.p_weights, add.q_weights) == ((1, 0), (1 - q, q))


def test_rates_of_zero_and_one() -> None:
    base = gaussian()(sigma=1)
    assert base.subsample("poisson", 1).pair() == base.pair()
    nothing = base.subsample("poisson", 0).pair()
    assert nothing.P == nothing.Q == base.pair().Q
    for scheme, batch in (("without_replacement", None), ("with_replacement", 3)):
        never = base.subsample(scheme, 0, batch).pair()
        assert sp.simplify(never.P - never.Q) == 0


def test_a_fixed_batch_mixes_a_hit_and_a_miss() -> None:
    q = sp.Rational(1, 4)
    pair = gaussian()(sigma=2).subsample("without_replacement", q).pair()
    f = gaussian()(sigma=2).source.density
    assert pair.components[0] == f
    assert (pair.p_weights, pair.q_weights) == ((1 - q, q, 0), (1 - q, 0, q))
    for place in (sp.Rational(-7, 3), sp.Rational(1, 5), sp.Rational(9, 4)):
        inside = abs(place) <= 1
        hit = 0 if inside else f.subs(X, place - 2 if place > 1 else place)
        other = 0 if inside else f.subs(X, place if place > 1 else place + 2)
        assert pair.components[1].subs(X, place) == hit
        assert pair.components[2].subs(X, place) == other


def test_a_rate_may_be_a_parameter() -> None:
    free = gaussian().subsample("poisson", "q")
    assert list(free.parameters) == ["sigma", "q"]
    assert free == gaussian().subsample("poisson", sp.Symbol("q"))
    assert free(sigma=2, q=0.25) == gaussian()(sigma=2).subsample("poisson", "1/4")
    with refused("q must be from 0 to 1, not 2"):
        free(q=2)
    scaled = Mechanism.additive(sp.exp(-B * X**2), X).subsample("poisson", B / 10)
    assert scaled(b=5).sampling.rate == sp.Rational(1, 2)
    with refused("mechanism with b=20", "must be a probability, 0 to 1, not 2"):
        scaled(b=20)
    assert gaussian()(sigma=2).subsample("poisson", "sigma/10").sampling.rate == sp.Rational(1, 5)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("poison", 0.1), "did you mean 'poisson'?"),
        (("poisson", 1.1), "must be a probability, 0 to 1, not 11/10"),
        (("poisson", -0.1), "must be a probability"),
        (("poisson", math.nan), "must be a finite number"),
        (("poisson", "nan"), "not a finite number"),
        (("poisson", None), "the sampling rate must be a number"),
        (("poisson", "x"), "both the variable and a parameter"),
        (("poisson", X), "both the variable and a parameter"),
        (("poisson", X / 2), "must not depend on the variable"),
        (("poisson", "q/2"), "the sampling rate: unknown name 'q'"),
        (("poisson", 0.1, 5), "poisson sampling takes no batch"),
        (("with_replacement", 0.1), "needs batch: the number of draws"),
        (("with_replacement", 0.1, 0), "from 1 to 1000000000000, not 0"),
        (("with_replacement", 0.1, 10**13), "from 1 to 1000000000000, not 10000000000000"),
        (("with_replacement", 0.1, 2.5), "from 1 to 1000000000000, not 2.5"),
        (("with_replacement", 0.1, True), "from 1 to 1000000000000, not True"),
    ],
)
def test_bad_sampling(arguments: tuple[object, ...], part: str) -> None:
    with refused(part):
        gaussian().subsample(*arguments)


def test_sampling_that_does_not_fit() -> None:
    with refused("gaussian already has poisson sampling"):
        gaussian().subsample("poisson", 0.1).subsample("poisson", 0.1)
    with refused("needs additive noise"):
        mechanisms.randomized_response.subsample("without_replacement", 0.1)
    response = mechanisms.randomized_response(epsilon_0=sp.log(3)).subsample("poisson", 0.5)
    assert response.pair().P == (sp.Rational(1, 2), sp.Rational(1, 2))
