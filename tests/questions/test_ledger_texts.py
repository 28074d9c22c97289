"""Title, description and citation of a mechanism survive its ledger; older files still read."""

import json

import pytest

from symdp import Ledger, mechanisms
from symdp.errors import InputError

TEXTS = ("title", "description", "citation")
STEP = mechanisms.gaussian(sigma=2).subsample("poisson", "1/9")


def state():
    return json.loads(json.dumps(Ledger([(STEP, 3)]).state_dict()))


def test_texts_survive():
    (again, count), *_ = Ledger.from_state_dict(state()).steps
    assert (again, count) == (STEP, 3)
    for name in TEXTS:
        assert getattr(again, name) == getattr(STEP, name) != ""


def test_a_file_of_version_three_has_no_texts():
    old = {**state(), "version": 3}
    for name in TEXTS:
        del old["steps"][0]["mechanism"][name]
    (again, _), *_ = Ledger.from_state_dict(old).steps
    assert again == STEP
    assert again.title == ""


@pytest.mark.parametrize("wrong", [3, None, ["text"]])
def test_a_text_is_a_text(wrong):
    damaged = state()
    damaged["steps"][0]["mechanism"]["title"] = wrong
    with pytest.raises(InputError, match="title"):
        Ledger.from_state_dict(damaged)
