"""A training run is the composition that its words mean."""

import math
from fractions import Fraction

import numpy as np
import pytest

import symdp
from symdp import compose, mechanisms
from symdp.errors import InputError
from symdp.questions.training import samplings, training_run

NOISE = mechanisms.gaussian(sigma="1.12")


@pytest.mark.parametrize(
    ("sampling", "step"),
    [
        ("poisson", NOISE.subsample("poisson", "256/60000")),
        ("without_replacement", NOISE.subsample("without_replacement", "256/60000")),
        ("with_replacement", NOISE.subsample("with_replacement", "1/60000", 256)),
        (
            "truncated_poisson",
            NOISE.subsample("truncated_poisson", "256/60000", 300, records=60000),
        ),
    ],
)
def test_every_sampling(sampling, step):
    largest = 300 if sampling == "truncated_poisson" else None
    run = symdp.training(
        60000, 256, 60, noise_multiplier=1.12, sampling=sampling, largest_batch=largest
    )
    assert run.steps == compose(step, 14063).steps
    assert run.protection == compose(step, 14063).protection


def test_steps_in_place_of_epochs_and_parts_of_an_epoch():
    assert symdp.training(100, 10, steps=7, noise_multiplier=1).n == 7
    assert symdp.training(100, 30, 1, noise_multiplier=1).n == 4  # a batch that is begun counts
    assert symdp.training(100, 10, 0.5, noise_multiplier=1).n == 5
    assert symdp.training(100, 10, Fraction(1, 3), noise_multiplier=1).n == 4


def attained(weights, sigma, count, epsilon):
    """A lower bound on δ of Σ w_j N(2j, σ²) against N(0, σ²), composed: losses rounded down."""
    x = np.linspace(-9 * sigma, 2 * len(weights) + 9 * sigma, 200_001)
    ratio = sum(w * np.exp((4 * j * x - (2 * j) ** 2) / (2 * sigma**2)) for j, w in weights.items())
    mass = ratio * np.exp(-(x**2) / (2 * sigma**2)) / math.sqrt(2 * math.pi) / sigma
    width = 1e-3
    cells = np.floor(np.log(ratio) / width).astype(int)
    law = np.bincount(cells - cells.min(), mass * (x[1] - x[0]))
    size = 1 << (count * len(law)).bit_length()
    total = np.fft.irfft(np.fft.rfft(law, size) ** count, size)
    loss = (np.arange(size) + count * cells.min()) * width
    return float(np.sum(total * np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0)))


def binomial(draws, rate):
    return {j: math.comb(draws, j) * rate**j * (1 - rate) ** (draws - j) for j in range(draws + 1)}


def test_a_batch_of_all_examples_by_poisson_is_not_sampled():
    run = symdp.training(100, 100, 3, noise_multiplier=2)
    whole = compose(mechanisms.gaussian(sigma=2), 3)
    assert run.epsilon(1e-5).epsilon == pytest.approx(whole.epsilon(1e-5).epsilon, rel=1e-12)
    assert run.protection.sampling == "poisson"


@pytest.mark.slow
@pytest.mark.parametrize("examples", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_as_many_draws_with_replacement_as_examples_repeat_some(examples):
    """The others contribute −C, the record C: one of the data sets."""
    run = symdp.training(
        examples, examples, steps=10, noise_multiplier=1.5, sampling="with_replacement"
    )
    assert run.protection.relation == "substitution"
    assert run.protection.sampling == "with_replacement"
    weights = {j: w for j, w in binomial(examples, 1 / examples).items() if j < 13}
    for epsilon in (5.0, 15.0):
        assert run.delta(epsilon).delta > attained(weights, 1.5, 10, epsilon) - 1e-9
    if examples == 100:
        assert attained(weights, 1.5, 10, 20.0) > 1e-3  # ε at δ = 1e-3 of the data set is 20.1
        assert run.epsilon(1e-3).epsilon == pytest.approx(65.240532, rel=1e-7)


def test_a_truncated_batch_of_all_examples_leaves_some_out():
    run = symdp.training(
        100, 100, steps=10, noise_multiplier=1.5, sampling="truncated_poisson", largest_batch=50
    )
    assert run.protection.sampling == "truncated_poisson"
    for epsilon in (5.0, 11.72):
        attack = attained({0: 0.5, 1: 0.5}, 1.5, 10, epsilon)
        assert run.delta(epsilon).delta == pytest.approx(attack, rel=0.02)  # rounded losses
        assert run.delta(epsilon).delta > attack


@pytest.mark.slow
def test_the_noise_for_a_truncated_batch_of_all_examples_holds_the_attack_down():
    found = training_run(
        100, 100, steps=10, sampling="truncated_poisson", largest_batch=50
    ).calibrated(epsilon=8.0, delta=1e-3)  # fmt: skip
    assert found.value > 1.8  # 1.52 is enough for a batch of all examples
    assert attained({0: 0.5, 1: 0.5}, float(found.value), 10, 8.0) <= 1e-3


@pytest.mark.parametrize("sampling", ["without_replacement", "poisson"])
def test_a_batch_of_all_examples_under_substitution(sampling):
    run = symdp.training(
        9, 9, steps=10, noise_multiplier=3, sampling=sampling, relation="substitution"
    )
    assert (run.protection.relation, run.protection.sampling) == ("substitution", sampling)
    twice = compose(mechanisms.gaussian(sigma="3/2"), 10)
    assert run.epsilon(1e-3).epsilon == pytest.approx(twice.epsilon(1e-3).epsilon, rel=1e-10)


def test_an_epoch_of_one_step_sees_all_examples():
    run = symdp.training(9, 9, 4, noise_multiplier=3, sampling="random_allocation")
    assert run.protection.sampling == "random_allocation"
    whole = compose(mechanisms.gaussian(sigma=3), 4)
    assert run.epsilon(1e-3).epsilon == pytest.approx(whole.epsilon(1e-3).epsilon, rel=1e-12)


def test_the_relation_and_other_noise():
    run = symdp.training(100, 10, 1, noise_multiplier=2, relation="substitution")
    assert run.protection.relation == "substitution"
    run = symdp.training(100, 10, 1, noise_multiplier=2, mechanism=mechanisms.laplace)
    assert run.steps[0][0].name == "laplace"


def test_the_noise_for_a_budget_meets_it():
    found = training_run(100, 1, 5).calibrated(epsilon=1.0, delta=1e-5)
    run = symdp.training(100, 1, 5, noise_multiplier=found.value)
    assert 1.0 - 1e-6 < run.epsilon(1e-5).epsilon <= 1.0


def test_samplings_are_those_of_the_model():
    from symdp.model.schemes import SCHEMES

    assert set(samplings()) < set(samplings(300)) <= set(SCHEMES)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"examples": 10, "batch": 11, "epochs": 1}, "too large"),
        ({"examples": 10, "batch": 0, "epochs": 1}, "positive"),
        ({"examples": 10, "batch": 5}, "one of the two"),
        ({"examples": 10, "batch": 5, "epochs": 1, "steps": 1}, "one of the two"),
        ({"examples": 10, "batch": 5, "epochs": 0}, "epochs"),
        ({"examples": 10, "batch": 5, "epochs": float("nan")}, "epochs"),
        ({"examples": 10, "batch": 5, "epochs": 1, "sampling": "poison"}, "did you mean 'poisson'"),
        ({"examples": 10, "batch": 5, "epochs": 1, "sampling": "shuffled"}, "there are poisson"),
        ({"examples": 9, "batch": 5, "epochs": 1, "sampling": "truncated_poisson"}, "largest_"),
        ({"examples": 10, "batch": 5, "epochs": 1, "mechanism": NOISE}, "free parameters"),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_is_named(words, message):
    with pytest.raises(InputError, match=message):
        symdp.training(**words, noise_multiplier=1)
