"""What people type by mistake works, or says in one line what to write."""

from __future__ import annotations

import math
import pickle

import pytest
from refusals import refused

import symdp
from symdp import compose, mechanisms

NOISE = mechanisms.gaussian(sigma=2)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("delta", r"symdp\.compose\(mechanism, n\)\.delta"),
        ("epsilon", r"symdp\.compose\(mechanism, n\)\.epsilon"),
        ("group", r"mechanism\.moved_by\(k\*D\)"),
        ("compose", r"symdp\.compose\(mechanism, n\)"),
        ("subsampel", "did you mean 'subsample'"),
    ],
)
def test_a_mechanism_says_what_was_meant(name, words):
    with pytest.raises(AttributeError, match=words) as caught:
        getattr(NOISE, name)
    assert "\n" not in str(caught.value)
    assert not hasattr(NOISE, name)


def test_a_mechanism_is_still_copied():
    assert pickle.loads(pickle.dumps(NOISE)) == NOISE


def test_a_group_is_the_move_that_the_sentence_names():
    """Three records under add_remove: the two laws are 3 apart, δ of two normal tails."""
    mu, epsilon = 3 / 2, 1.0
    tail = lambda x: math.erfc(x / math.sqrt(2)) / 2  # noqa: E731
    truth = tail(epsilon / mu - mu / 2) - math.exp(epsilon) * tail(epsilon / mu + mu / 2)
    assert compose(NOISE.moved_by(3)).delta(epsilon).delta == pytest.approx(truth, rel=1e-12)


def test_compositions_are_summed():
    total = sum([compose(NOISE, 2), compose(NOISE, 3), compose(mechanisms.laplace(b=3))])
    assert (total.n, len(total.steps)) == (6, 2)
    with pytest.raises(TypeError):
        1 + compose(NOISE)


def test_answers_compare_with_numbers_by_what_they_are_at_most():
    answer = compose(NOISE, 3).delta(1.5)
    assert answer.upper == answer.at_most > answer.lower
    assert answer <= answer.at_most
    assert not answer < answer.at_most
    assert answer < 0.03 < compose(NOISE, 9).delta(1.5)
    assert answer >= "1/40"
    assert sorted([compose(NOISE, n).delta(1.5) for n in (9, 3)])[0] == answer
    with refused("an ε and a δ are not compared"):
        _ = answer < compose(NOISE).epsilon(1e-5)
    with refused("a number to compare with"):
        _ = answer < "little"


def sampled(scheme):
    """Return the scheme that a spelling means."""
    return NOISE.subsample(scheme, "1/9").sampling.scheme


@pytest.mark.parametrize(
    ("written", "returned"),
    [
        (lambda: mechanisms.gumbel(b=2).shifted("at_most").shift, "at most"),
        (lambda: mechanisms.gumbel(b=2).shifted("Either-Way").shift, "either way"),
        (lambda: NOISE.under("zero-out").relation, "zero_out"),
        (lambda: NOISE.under("add or remove one").relation, "add_remove"),
        (
            lambda: NOISE.subsample("without-replacement", 0.1).sampling.scheme,
            "without_replacement",
        ),
        (lambda: sampled("Poisson"), "poisson"),
        (lambda: compose(NOISE, 3).delta(0.5, "tilted_PRV").method, "tilted-prv"),
    ],
)
def test_words_have_one_spelling_and_take_others(written, returned):
    assert written() == returned


@pytest.mark.parametrize("rate", [0.25, "1/4", symdp.Mechanism])
def test_a_rate_is_read_once_and_keeps_its_name(rate):
    """The probability of a record: an atom of the mixture, exactly, however it was written."""
    if isinstance(rate, type):
        step = mechanisms.gaussian.subsample("poisson", "q")(sigma=2, q="0.25")
    else:
        step = NOISE.subsample("poisson", rate)
    assert str(step.sampling.rate) == "1/4"
    with refused("must be a probability"):
        NOISE.subsample("poisson", 1.25)
    with refused("must be a probability"):
        mechanisms.gaussian.subsample("poisson", "sigma")(sigma=2)
    with refused("both the variable and a parameter"):
        NOISE.subsample("poisson", str(NOISE.variable))


def test_training_takes_its_multiplier():
    run = symdp.training(1000, 10, steps=5, noise_multiplier="1.5")
    assert run == compose(mechanisms.gaussian(sigma="1.5").subsample("poisson", "1/100"), 5)


def test_what_has_no_pair_on_a_line_has_no_program():
    coin = symdp.Mechanism.local([["3/4", "1/4"], ["1/4", "3/4"]])
    epoch = NOISE.subsample("random_allocation", steps=9)
    for mechanism, words in ((coin, "a local randomizer"), (epoch, "outputs at once")):
        with refused(words):
            symdp.derive(mechanism).to_program("c")
    with refused("did you mean 'python'"):
        symdp.derive(NOISE).to_program("pyton")
