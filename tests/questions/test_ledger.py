"""The ledger: merging, history, JSON that reads back, errors."""

import copy
import json

import pytest

from symdp import compose, mechanisms
from symdp.errors import InputError
from symdp.questions.ledger import Ledger

STEP = mechanisms.gaussian(sigma=2).subsample("poisson", "1/100")


@pytest.mark.slow
def test_a_million_steps_are_one_entry():
    ledger = Ledger()
    for _ in range(10**6):
        ledger.add(STEP)
    assert (len(ledger), ledger.n) == (1, 10**6)
    assert len(json.dumps(ledger.state_dict())) < 5_000
    whole = compose(STEP, 10**6)
    assert ledger.delta(20.0).log_delta == whole.delta(20.0).log_delta


def test_equal_steps_merge_and_different_ones_do_not():
    ledger = Ledger([(STEP, 3)])
    ledger.add(mechanisms.gaussian(sigma=2.0).subsample("poisson", 0.01), 4)
    ledger.add(mechanisms.gaussian(sigma=2))
    assert [count for _, count in ledger.steps] == [7, 1]


def test_answers_follow_the_steps():
    ledger = Ledger([(STEP, 100)])
    before = ledger.epsilon(1e-5).epsilon
    assert before == compose(STEP, 100).epsilon(1e-5).epsilon
    ledger.add(mechanisms.gaussian(sigma=5))
    after = ledger.epsilon(1e-5).epsilon
    assert after == compose([(STEP, 100), (mechanisms.gaussian(sigma=5), 1)]).epsilon(1e-5).epsilon
    assert after > before


def test_a_history_of_training():
    ledger = Ledger()
    history = [(2.0, 0.01, 60), (1.5, 1.0, 1), (2.0, 0.01, 40)]
    ledger.add_history(mechanisms.gaussian, history, "poisson")
    assert ledger.steps == ((STEP, 100), (mechanisms.gaussian(sigma="3/2"), 1))


@pytest.mark.slow_cases(
    "<Mechanism student_t(nu=3, s=2)>",
    "<Mechanism gaussian(sigma=2), with_replacement sampling at rate 1/10, batch 3>",
    "<Mechanism gaussian(sigma=2), poisson sampling at rate 1/10, groups of 3>",
    "<Mechanism gaussian(sigma=2), truncated_poisson sampling at rate 1/10, batch 20, 100 records>",
)
@pytest.mark.parametrize(
    "mechanism",
    [
        STEP,
        mechanisms.laplace(b="1/3"),
        mechanisms.randomized_response(epsilon_0=1),
        mechanisms.discrete_gaussian(sigma=2),
        mechanisms.discrete_laplace(b="1/2"),
        mechanisms.student_t(nu=3, s=2),
        mechanisms.gaussian(sigma=2).subsample("with_replacement", "1/10", 3),
        mechanisms.gaussian(sigma=2).subsample("without_replacement", "1/10"),
        mechanisms.gaussian(sigma=2).under("substitution").subsample("poisson", "1/10"),
        mechanisms.gaussian(sigma=2).subsample("poisson", "1/10", group=3),
        mechanisms.gaussian(sigma=2).subsample("truncated_poisson", "1/10", 20, records=100),
    ],
    ids=repr,
)
def test_the_state_reads_back_through_json(mechanism):
    ledger = Ledger([(mechanism, 1)])
    again = Ledger.from_state_dict(json.loads(json.dumps(ledger.state_dict())))
    assert again.steps == ledger.steps
    assert repr(again.steps) == repr(ledger.steps)
    assert again.delta(0.25).log_delta == ledger.delta(0.25).log_delta


def test_a_ledger_that_was_read_knows_families_still():
    state = Ledger([(STEP, 3), (mechanisms.laplace(b=2), 1)]).state_dict()
    (sampled, _), (noise, _) = Ledger.from_state_dict(state).steps
    assert sampled.template.key == STEP.template.key
    assert noise.template(b=2) == noise


def test_a_sampling_rate_that_was_read_has_a_value():
    state = Ledger([(STEP, 3)]).state_dict()
    formulas = state["steps"][0]["mechanism"]["formulas"]
    names = [node[1] for node in formulas["nodes"]]
    formulas["roots"]["rate"] = names.index("sigma")
    with pytest.raises(InputError, match="step 1 of the ledger: the sampling rate has no value"):
        Ledger.from_state_dict(state)


def _changed(path, value):
    state = copy.deepcopy(Ledger([(STEP, 3)]).state_dict())
    place = state
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return state


@pytest.mark.parametrize(
    ("state", "part"),
    [
        ([], "no ledger"),
        ({"format": "other"}, "no ledger"),
        (_changed(["version"], 9), "version 9"),
        (_changed(["version"], True), "version True"),
        (_changed(["version"], 2.0), "version 2.0"),
        (_changed(["version"], []), "version"),
        (_changed(["signature"], "none"), "no 'signature': only format, steps, version"),
        (_changed(["steps", 0, "mechanism", "source"], {}), "noise, pair"),
        (_changed(["steps", 0, "mechanism", "support"], []), "support"),
        (_changed(["steps", 0, "mechanism", "scheme"], {}), "scheme"),
        (_changed(["steps", 0, "mechanism", "batch"], []), "batch"),
        (_changed(["steps"], 3), "'steps'"),
        (_changed(["steps", 0], 3), "step 1"),
        (_changed(["steps", 0, "count"], -1), "positive integer"),
        (_changed(["steps", 0, "count"], True), "positive integer"),
        (_changed(["steps", 0, "mechanism"], "gaussian"), "object"),
        (_changed(["steps", 0, "mechanism", "support"], "nowhere"), "nowhere"),
        (_changed(["steps", 0, "mechanism", "support"], "integers"), "variable"),
        (_changed(["steps", 0, "mechanism", "source"], "magic"), "noise, pair"),
        (_changed(["steps", 0, "mechanism", "parameters"], {"sigma": "odd"}), "odd"),
        (_changed(["steps", 0, "mechanism", "parameters"], {"tau": "real"}), "value tau"),
        (_changed(["steps", 0, "mechanism", "scheme"], "posson"), "did you mean 'poisson'"),
        (_changed(["steps", 0, "mechanism", "formulas", "nodes", 0], ["eval", []]), "eval"),
    ],
)
def test_a_broken_state_is_refused(state, part):
    with pytest.raises(InputError, match=part):
        Ledger.from_state_dict(state)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: Ledger().epsilon(1e-5), "empty"),
        (lambda: Ledger().add(mechanisms.laplace), "b"),
        (lambda: Ledger().add(STEP, 0), "positive integer"),
        (lambda: Ledger().add(STEP, True), "positive integer"),
        (lambda: Ledger().add(STEP, 1.5), "positive integer"),
        (lambda: Ledger().add_history(mechanisms.student_t, []), "2 free parameters"),
        (lambda: Ledger().add_history(mechanisms.gaussian, [(1, 0.1)]), "entry 1"),
        (lambda: Ledger().add_history(mechanisms.gaussian, [(1, 2, 3)]), "entry 1"),
        (lambda: Ledger().add_history(mechanisms.gaussian, [(0, 0.5, 3)]), "sigma"),
    ],
)
def test_bad_input_names_the_culprit(call, part):
    with pytest.raises(InputError, match=part):
        call()


def test_a_history_says_how_it_was_sampled():
    ledger = Ledger()
    with pytest.raises(InputError, match="say how the batches were drawn: scheme='poisson'"):
        ledger.add_history(mechanisms.gaussian, [(2.0, 0.01, 60)])
    assert len(ledger) == 0
    ledger.add_history(mechanisms.gaussian, [(2.0, 0.01, 60)], "without_replacement")
    [(step, _)] = ledger.steps
    assert step.neighbours == "substitution"
    ledger.add(STEP)
    with pytest.raises(InputError, match="one composition has one neighbouring relation"):
        ledger.epsilon(1e-5)


def test_a_broken_history_adds_nothing():
    ledger = Ledger()
    with pytest.raises(InputError, match="entry 2"):
        ledger.add_history(mechanisms.gaussian, [(2.0, 0.01, 5), (2.0, 0.01, -5)], "poisson")
    assert len(ledger) == 0
