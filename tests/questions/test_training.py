"""A training run is the composition that its words mean."""

from fractions import Fraction

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
    run = symdp.training(60000, 256, 60, noise=1.12, sampling=sampling, largest_batch=largest)
    assert run.steps == compose(step, 14063).steps
    assert run.protection == compose(step, 14063).protection


def test_steps_in_place_of_epochs_and_parts_of_an_epoch():
    assert symdp.training(100, 10, steps=7, noise=1).count == 7
    assert symdp.training(100, 30, 1, noise=1).count == 4  # a batch that is begun counts
    assert symdp.training(100, 10, 0.5, noise=1).count == 5
    assert symdp.training(100, 10, Fraction(1, 3), noise=1).count == 4


def test_a_batch_of_all_examples_is_not_sampled():
    run = symdp.training(100, 100, 3, noise=2)
    assert run.steps == ((mechanisms.gaussian(sigma=2), 3),)


def test_the_relation_and_other_noise():
    run = symdp.training(100, 10, 1, noise=2, relation="substitution")
    assert run.protection.relation == "substitution"
    run = symdp.training(100, 10, 1, noise=2, mechanism=mechanisms.laplace)
    assert run.steps[0][0].name == "laplace"


def test_the_noise_for_a_budget_meets_it():
    found = training_run(100, 1, 5).calibrated(epsilon=1.0, delta=1e-5)
    run = symdp.training(100, 1, 5, noise=found.value)
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
        symdp.training(**words, noise=1)
