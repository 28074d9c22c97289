"""A ledger shared by threads, kept in a file, and read from whatever a file may hold."""

import copy
import json
import multiprocessing
import os
import pickle
import random
import threading

import pytest

from symdp import Ledger, mechanisms
from symdp.durable import sealed
from symdp.errors import InputError

STEP = mechanisms.gaussian(sigma=2).subsample("poisson", "1/100")
NOISE = mechanisms.laplace(b="1/3")


def test_threads_lose_no_step():
    ledger = Ledger()
    steps = (STEP, NOISE)

    def work():
        for k in range(5_000):
            ledger.add(steps[k % 2])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dict(ledger.steps) == {STEP: 10_000, NOISE: 10_000}


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_has_its_own_count_and_no_file(again, tmp_path):
    with Ledger.open(tmp_path / "budget.json") as ledger:
        ledger.add(STEP, 3)
        other = again(ledger)
        other.add(STEP)
        assert (ledger.n, other.n) == (3, 4)
        with pytest.raises(InputError, match="no file yet"):
            other.save()


def _add_and_fail(ledger):
    ledger.add(NOISE)
    ledger.add(NOISE, 0)


def test_a_file_keeps_what_was_added(tmp_path):
    path = tmp_path / "budget.json"
    with Ledger.open(path) as ledger:
        ledger.add(STEP, 3)
    with pytest.raises(InputError, match="positive"), Ledger.open(path) as ledger:
        _add_and_fail(ledger)
    assert Ledger.load(path).steps == ((STEP, 3), (NOISE, 1))
    assert sorted(os.listdir(tmp_path)) == ["budget.json", "budget.json.lock"]


def test_one_writer_at_a_time(tmp_path):
    path = tmp_path / "budget.json"
    with Ledger.open(path) as ledger:
        ledger.add(STEP)
        with pytest.raises(InputError, match="open for writing elsewhere"):
            Ledger.open(path)
        with pytest.raises(InputError, match="open for writing elsewhere"):
            Ledger([(STEP, 1)]).save(path)
        ledger.save()
        assert Ledger.load(path).n == 1  # reading is free
    Ledger.open(path).close()


def _hold(path, opened, done):
    with Ledger.open(path):
        opened.set()
        done.wait(20)


def test_another_process_is_kept_out_until_it_may(tmp_path):
    path = tmp_path / "budget.json"
    context = multiprocessing.get_context("fork")
    opened, done = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(path, opened, done))
    holder.start()
    assert opened.wait(20)
    with pytest.raises(InputError, match="elsewhere"):
        Ledger.open(path)
    holder.kill()
    holder.join(20)
    Ledger.open(path).close()  # the lock of a dead process is free


def test_steps_that_were_not_read_are_never_overwritten(tmp_path):
    path = tmp_path / "budget.json"
    Ledger([(STEP, 5)]).save(path)
    with pytest.raises(InputError, match="has not read"):
        Ledger([(STEP, 1)]).save(path)
    mine, yours = Ledger.load(path), Ledger.load(path)
    mine.add(STEP)
    mine.save()
    yours.add(STEP)
    with pytest.raises(InputError, match="has not read"):
        yours.save()
    assert Ledger.load(path).n == 6


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "budget.json"
    Ledger([(STEP, 5)]).save(path)

    def full(*_):
        raise OSError(28, "No space left on device")

    ledger = Ledger.load(path)
    ledger.add(STEP)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="cannot be written: No space left"):
            ledger.save()
    assert Ledger.load(path).n == 5
    assert sorted(os.listdir(tmp_path)) == ["budget.json", "budget.json.lock"]
    ledger.save()
    assert Ledger.load(path).n == 6


def test_damage_is_one_line(tmp_path):
    path = tmp_path / "budget.json"
    Ledger([(STEP, 5), (NOISE, 2)]).save(path)
    whole = path.read_text()
    chance = random.Random(5)
    texts = [whole[: chance.randrange(len(whole))] for _ in range(20)]
    texts += [whole.replace('"count": 5', '"count": 4'), "", "[]", "{}", "[" * 100_000]
    held = json.loads(whole)
    changes = [{"version": True}, {"extra": 1}, {"checksum": "0"}, {"ledger": None}]
    changes += [{"format": "symdp ledger"}, sealed(held | {"ledger": []}), sealed({"a": 1})]
    texts += [json.dumps(held | change) for change in changes]
    for text in texts:
        path.write_text(text)
        with pytest.raises(InputError) as refused:
            Ledger.load(path)
        assert "budget.json" in str(refused.value)
        assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match=r"budget.json"):
        Ledger.open(path)
    path.write_text(whole)
    Ledger.open(path).close()  # a refusal lets go of the lock


def _mutated(value, chance, odd):
    """Return JSON values with one place changed."""
    if not isinstance(value, dict | list) or not value or chance.random() < 0.1:
        return copy.deepcopy(chance.choice(odd))
    changed = copy.deepcopy(value)
    keys = list(changed) if isinstance(changed, dict) else list(range(len(changed)))
    key, deed = chance.choice(keys), chance.random()
    if deed < 0.08:
        del changed[key]
    elif deed < 0.14 and isinstance(changed, dict):
        changed[chance.choice(["x", "", "count", "P 0", "rate"])] = changed.pop(key)
    elif deed < 0.2 and isinstance(changed, list):
        changed.insert(key, copy.deepcopy(chance.choice(changed)))
    else:
        changed[key] = _mutated(changed[key], chance, odd)
    return changed


ODD = [
    None, True, False, 0, 1, -1, 2, 7, 10**30, 0.5, 1e308, "", "x", "0", "-3", "oo", "1e9", "nan",
    "Symbol", "Integer", "Pow", "exp", "Piecewise", "Sum", "Integral", "factorial", "Constant",
    "real", "positive", "points", "integers", "interval", "pair", "noise", "poisson", "zoo", "é",
    "0x" + "f" * 50, "\n", [], {}, [[]], [0], [0, 1], [3, 2, 1], {"real": True}, {"real": 2},
    {"positive": True}, ["Integer", "0"], ["Constant", "nan"], ["Constant", "oo"],
    ["Pow", [0, 1]], ["exp", [2]], ["Piecewise", [0]],
]  # fmt: skip


@pytest.mark.quick_cases(
    "<Mechanism gaussian(sigma=2), poisson sampling at rate 1/100>",
    "<Mechanism gaussian(sigma=2), with_replacement sampling at rate 1/10, batch 3>",
)
@pytest.mark.parametrize(
    "mechanism",
    [
        STEP,
        NOISE,
        mechanisms.randomized_response(epsilon_0=1),
        mechanisms.discrete_laplace(b="1/2"),
        mechanisms.gaussian(sigma=2).subsample("with_replacement", "1/10", 3),
    ],
    ids=repr,
)
def test_mutated_states_read_back_or_are_refused_in_one_line(mechanism):
    chance = random.Random(repr(mechanism))
    state = json.loads(json.dumps(Ledger([(mechanism, 3)]).state_dict()))
    refused = []
    for _ in range(300):
        changed = _mutated(state, chance, ODD)
        if chance.random() < 0.9:  # deeper down, where the formulas are
            changed = copy.deepcopy(state)
            step = changed["steps"][0]
            for _ in range(chance.choice((1, 1, 2))):
                step["mechanism"] = _mutated(step["mechanism"], chance, ODD)
        try:
            found = Ledger.from_state_dict(changed)
        except InputError as error:
            refused.append(str(error))
        else:
            assert all(count > 0 for _, count in found.steps)
            json.dumps(found.state_dict())
    assert len(refused) > 100
    assert not [message for message in refused if len(message.splitlines()) != 1]
