"""Opacus: the accountant alone, and in a real PrivacyEngine that trains three steps."""

import io
import json
import math

import pytest

pytestmark = [
    pytest.mark.slow,  # importing torch alone takes seconds
    pytest.mark.filterwarnings("ignore"),  # what torch and Opacus warn of is theirs
]
pytest.importorskip("torch")
pytest.importorskip("opacus")

import torch
from opacus import PrivacyEngine
from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier as their_noise_multiplier

from symdp import compose, mechanisms
from symdp.adapters.opacus import SymdpAccountant, get_noise_multiplier
from symdp.errors import InputError

RECORDS, BATCH = 64, 16


def training(**options):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    data = torch.utils.data.TensorDataset(torch.randn(RECORDS, 4), torch.randint(0, 2, (RECORDS,)))
    engine = PrivacyEngine(accountant="symdp")
    make = engine.make_private_with_epsilon if "target_epsilon" in options else engine.make_private
    model, optimizer, loader = make(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=BATCH),
        max_grad_norm=1.0,
        **options,
    )
    return engine, model, optimizer, loader


def train(model, optimizer, loader, steps):
    taken = 0
    while taken < steps:
        for features, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
            taken += 1
            if taken == steps:
                return


def test_an_engine_trains_three_steps():
    engine, model, optimizer, loader = training(noise_multiplier=1.5)
    assert engine.get_epsilon(1e-5) == 0.0
    train(model, optimizer, loader, 3)
    assert engine.accountant.history == [(1.5, 0.25, 3)]
    assert len(engine.accountant) == 3
    steps = compose(mechanisms.gaussian(sigma=1.5).subsample("poisson", 0.25), 3)
    exact = steps.epsilon(1e-5).epsilon
    assert exact <= engine.get_epsilon(1e-5) <= exact * (1 + 1e-9)
    rdp = create_accountant("rdp")
    rdp.history = list(engine.accountant.history)
    assert engine.get_epsilon(1e-5) < rdp.get_epsilon(1e-5)


def test_an_engine_meets_a_budget():
    engine, model, optimizer, loader = training(target_epsilon=2.0, target_delta=1e-5, epochs=1)
    train(model, optimizer, loader, 4)
    assert 1.9 < engine.get_epsilon(1e-5) <= 2.0


def test_a_checkpoint_keeps_the_history():
    engine, model, optimizer, loader = training(noise_multiplier=1.5)
    train(model, optimizer, loader, 3)
    file = io.BytesIO()
    engine.save_checkpoint(path=file, module=model, optimizer=optimizer)
    file.seek(0)
    again, model, optimizer, _ = training(noise_multiplier=1.5)
    again.load_checkpoint(path=file, module=model, optimizer=optimizer)
    assert again.get_epsilon(1e-5) == engine.get_epsilon(1e-5) > 0


def test_the_state_reads_back_through_json():
    accountant = SymdpAccountant()
    for noise in (1.5, 1.5, 2.0):
        accountant.step(noise_multiplier=noise, sample_rate=0.01)
    again = create_accountant("symdp")
    again.load_state_dict(json.loads(json.dumps(accountant.state_dict())))
    assert again.history == accountant.history == [(1.5, 0.01, 2), (2.0, 0.01, 1)]
    assert again.protects == "one record added to or removed from the data"


@pytest.mark.parametrize(
    "history",
    [3, [1], [(1.0, 0.1)], [(1.0, 0.1, 0)], [("1", 0.1, 1)], [(1.0, 2.0, 1)], [(-1.0, 0.1, 1)]],
)
def test_a_damaged_state_is_refused(history):
    with pytest.raises(ValueError, match=r"history|rate|noise"):
        SymdpAccountant().load_state_dict({"history": history, "mechanism": "symdp"})
    with pytest.raises(ValueError, match="rdp"):
        SymdpAccountant().load_state_dict({"history": [], "mechanism": "rdp"})


def test_no_noise_no_privacy():
    accountant = SymdpAccountant()
    accountant.step(noise_multiplier=0.0, sample_rate=0.01)
    assert accountant.get_epsilon(1e-5) == math.inf


@pytest.mark.parametrize(("noise", "rate"), [(-1.0, 0.1), (math.nan, 0.1), (1.0, 0.0), (1.0, 1.5)])
def test_a_wrong_step_is_refused(noise, rate):
    with pytest.raises(InputError):
        SymdpAccountant().step(noise_multiplier=noise, sample_rate=rate)


def test_the_noise_for_a_budget():
    asked = {"target_epsilon": 2.0, "target_delta": 1e-5, "sample_rate": 0.01}
    found = get_noise_multiplier(**asked, epochs=10)
    assert found == get_noise_multiplier(**asked, steps=1000)
    assert found <= their_noise_multiplier(**asked, epochs=10, accountant="symdp")
    accountant = SymdpAccountant()
    accountant.history = [(found, 0.01, 1000)]
    assert 2.0 - 1e-6 < accountant.get_epsilon(1e-5) <= 2.0
    with pytest.raises(InputError, match="one of the two"):
        get_noise_multiplier(**asked)
    with pytest.raises(InputError, match="epochs"):
        get_noise_multiplier(**asked, epochs=-1)


def test_a_last_batch_that_is_begun_counts():
    asked = {"target_epsilon": 2.0, "target_delta": 1e-5, "sample_rate": 0.3}
    assert get_noise_multiplier(**asked, epochs=1) == get_noise_multiplier(**asked, steps=4)
