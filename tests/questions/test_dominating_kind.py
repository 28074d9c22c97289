"""What is exact for a pair that only dominates is a bound of the mechanism, everywhere."""

import json

import pytest
from shell import Shell

from symdp import Mechanism, compose, mechanisms
from symdp.page.card import make_card
from symdp.questions.ledger import Ledger

NOISE = mechanisms.gaussian(sigma=2)
TABLE = [(0, 1), ("1/4", "1/4"), (1, 0)]

DOMINATING = {
    "fixed batches": NOISE.subsample("without_replacement", "1/10"),
    "with replacement": NOISE.subsample("with_replacement", "1/20", batch=2),
    "truncated": NOISE.subsample("truncated_poisson", "1/10", batch=3, records=20),
    "several steps": NOISE.subsample("random_allocation", steps=4, participations=2),
    "group of fixed batches": NOISE.subsample("without_replacement", "1/10", records=20, group=2),
    "shuffled": Mechanism.from_shuffled(1, 100),
    "sampled table": Mechanism.from_profile_points([(1, "1/100")]).subsample("poisson", "1/10"),
    "profile points": Mechanism.from_profile_points([(1, "1/100")]),
    "trade-off points": Mechanism.from_trade_off_points(TABLE),
    "convex points": Mechanism.from_trade_off_points(TABLE, "convex"),
}
TIGHT = {
    "none": NOISE,
    "poisson": NOISE.subsample("poisson", "1/10"),
    "one step": NOISE.subsample("random_allocation", steps=4),
    "group": NOISE.subsample("poisson", "1/10", group=2),
    "substitution": NOISE.under("substitution"),
    "lines": Mechanism.from_trade_off_points(TABLE, "lines"),
    "response": mechanisms.randomized_response(epsilon_0=1),
}


@pytest.mark.quick_cases("convex points", "trade-off points", "profile points", "sampled table")
@pytest.mark.parametrize("name", DOMINATING)
def test_an_upper_bound_is_called_one(name):
    steps = compose(DOMINATING[name], 2)
    answers = [steps.delta(0.3)]
    if steps.law("remove").mass_at_infinity < 0.05:  # below it no ε is finite
        answers.append(steps.epsilon(0.05))
    for answer in answers:
        told = answer.to_json()
        assert (answer.kind, answer.kind_for_pair, told["kind"]) == ("bound", "exact", "bound")
        assert (told["pair"], told["method"]) == ("dominating", "contour")
        assert "upper bound" in told["protects"]
        assert answer.value == answer.upper
        assert answer.lower <= answer.value
    assert steps.delta(0.3, method="clt").kind in ("estimate", "bound")


@pytest.mark.slow_cases("one step", "group")
@pytest.mark.parametrize("name", TIGHT)
def test_a_pair_that_some_data_attain_is_exact(name):
    answer = compose(TIGHT[name], 2).delta(0.1)
    assert (answer.kind, answer.kind_for_pair, answer.to_json()["pair"]) == (
        "exact",
        "exact",
        "tight",
    )


def test_one_such_step_makes_the_whole_a_bound():
    steps = compose(
        [(Mechanism.from_shuffled(1, 100), 1), (mechanisms.randomized_response(epsilon_0=1), 2)]
    )
    assert steps.delta(0.5).kind == "bound"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["profile points", "several steps"])
def test_a_ledger_and_a_card_keep_it(name):
    kept = json.loads(json.dumps(Ledger([(DOMINATING[name], 2)]).state_dict()))
    again = Ledger.from_state_dict(kept)
    assert again.steps == Ledger([(DOMINATING[name], 2)]).steps
    card = make_card(again.composition(), title="kept", deltas=[0.05])
    assert card["neighboring_datasets"]["is_attained"] is False
    assert card["privacy_parameters"][0]["kind"] == "bound"


def test_sums_and_multiples_keep_it():
    steps = compose(DOMINATING["several steps"], 1)
    for whole in (2 * steps, steps + compose(NOISE, 1)):
        assert whole.protection.pair == "dominating"


def test_a_proof_for_such_a_pair_is_a_bound_too():
    proved = compose(DOMINATING["profile points"], 2).certify(0.3, digits=6)
    assert (proved.kind, proved.kind_for_pair, proved.to_json()["pair"]) == (
        "bound", "exact", "dominating",
    )  # fmt: skip


@pytest.mark.slow
def test_the_command_line_says_it(capsys):
    shell = Shell(capsys)
    line = "delta gaussian sigma=2 --sampling without_replacement --rate 1/10 -n 10 --epsilon 1"
    answer = shell(f"{line} --json").json
    assert (answer["kind"], answer["pair"]) == ("bound", "dominating")
    assert "upper bound: exact formula in floating point for a pair that" in shell(line).out
    plain = shell("tradeoff gaussian sigma=2 -n 1 --alpha 0.1 --json").json
    assert plain["pair"] == "tight"
