"""Flower: the protocol, against the real package and its own accountant."""

import json

import pytest

pytest.importorskip("flwr")
serverapp = pytest.importorskip("flwr.serverapp")
if not hasattr(serverapp, "PrivacyAccountant"):
    pytest.skip("this Flower has no accountants", allow_module_level=True)

from flwr.serverapp import GaussianPrivacyEvent, NeighboringRelation, PrivacyConfig, SamplingMethod

from symdp import compose, mechanisms
from symdp.adapters.flower import SymdpAccountant
from symdp.errors import InputError

ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
NONE, POISSON = SamplingMethod.NO_AMPLIFICATION, SamplingMethod.POISSON
FIXED = SamplingMethod.WITHOUT_REPLACEMENT
EVENT = GaussianPrivacyEvent(noise_multiplier=2.0, sample_size=20, population_size=1000)


def config(relation=ADD, sampling=NONE, **more):
    return PrivacyConfig(1e-5, 1000, relation, sampling, **more)


@pytest.mark.parametrize(
    ("relation", "sampling", "step"),
    [
        (ADD, NONE, mechanisms.gaussian(sigma=2)),
        (ADD, POISSON, mechanisms.gaussian(sigma=2).subsample("poisson", "1/50")),
        (REPLACE, FIXED, mechanisms.gaussian(sigma=2).subsample("without_replacement", "1/50")),
    ],
)
def test_answers_are_those_of_the_composition(relation, sampling, step):
    accountant = SymdpAccountant(config(relation, sampling))
    accountant.compose(EVENT, 60)
    accountant.compose(EVENT)
    steps = compose(step, 61)
    exact = steps.epsilon(1e-5)
    assert exact.epsilon <= accountant.get_epsilon(1e-5) <= exact.epsilon * (1 + 1e-9)
    assert (
        steps.delta(1.0).delta <= accountant.get_delta(1.0) <= steps.delta(1.0).delta * (1 + 1e-9)
    )
    assert accountant.num_releases == 61
    assert accountant.protects == steps.protection.sentence.split(";")[0]
    spent = accountant.get_privacy_spent()
    assert (spent.epsilon, spent.delta) == (accountant.get_epsilon(1e-5), 1e-5)
    assert (spent.num_releases, spent.accounting_method) == (61, "symdp")


@pytest.mark.parametrize("sampling", [NONE, POISSON])
def test_not_above_the_accountant_of_flower(sampling):
    pytest.importorskip("dp_accounting")
    ours, theirs = (
        one(config(ADD, sampling)) for one in (SymdpAccountant, serverapp.RdpAccountant)
    )
    for accountant in (ours, theirs):
        accountant.compose(EVENT, 50)
    assert 0.5 * theirs.get_epsilon(1e-5) < ours.get_epsilon(1e-5) < theirs.get_epsilon(1e-5)


def test_whether_a_release_would_exceed_the_budget():
    accountant = SymdpAccountant(config(max_epsilon=5.0))
    assert accountant.get_privacy_spent().epsilon == 0.0
    assert not accountant.would_exceed(EVENT)
    assert accountant.would_exceed(EVENT, count=100)
    assert accountant.would_exceed(EVENT, max_epsilon=0.1)
    assert accountant.num_releases == 0
    with pytest.raises(InputError, match="max_epsilon"):
        SymdpAccountant(config()).would_exceed(EVENT)


def test_the_state_reads_back_through_json():
    accountant = SymdpAccountant(config(max_epsilon=5.0))
    accountant.compose(EVENT, 7)
    again = SymdpAccountant(config(max_epsilon=5.0))
    again.load_state_dict(json.loads(json.dumps(accountant.state_dict())))
    assert again.state_dict() == accountant.state_dict()
    assert again.get_epsilon(1e-5) == accountant.get_epsilon(1e-5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"backend": "rdp"}, "backend"),
        ({"schema_version": 9}, "schema_version"),
        ({"config": {}}, "configuration"),
        ({"compositions": 3}, "list"),
        ({"compositions": [{"event": {}, "count": 1}]}, "composition 1"),
        ({"compositions": [{"event": None, "count": 1}]}, "composition 1"),
    ],
)
def test_a_damaged_state_changes_nothing(change, words):
    accountant = SymdpAccountant(config())
    accountant.compose(EVENT, 7)
    before = accountant.state_dict()
    with pytest.raises(InputError, match=words):
        accountant.load_state_dict({**before, **change})
    assert accountant.state_dict() == before


def test_what_cannot_be_represented_is_named():
    accountant = SymdpAccountant(config())
    with pytest.raises(InputError, match="'laplace' is no GaussianPrivacyEvent"):
        accountant.compose("laplace")
    with pytest.raises(InputError, match="population_size 10 of GaussianPrivacyEvent"):
        accountant.compose(GaussianPrivacyEvent(1.0, 5, 10))
    with pytest.raises(InputError, match="the number of steps"):
        accountant.compose(EVENT, 0)
    with pytest.raises(InputError, match="delta"):
        accountant.get_epsilon(1.0)
    assert accountant.num_releases == 0


def test_a_strategy_takes_the_accountant():
    from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

    accountant = SymdpAccountant(config(max_epsilon=5.0))
    strategy = DifferentialPrivacyServerSideFixedClipping(
        FedAvg(), noise_multiplier=2.0, clipping_norm=1.0, num_sampled_clients=20,
        accountant=accountant,
    )  # fmt: skip
    list(strategy._prepare_accounting(1, [object()] * 20))
    strategy._compose_release(strategy._pop_pending_event(1))
    assert accountant.num_releases == 1
    assert strategy.privacy_spent().epsilon == accountant.get_epsilon(1e-5) > 0
