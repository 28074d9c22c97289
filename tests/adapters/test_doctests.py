"""The examples of the adapters, where their other library is there."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

NEEDED = {
    "upper": "symdp",
    "opacus": "opacus",
    "dp_accounting": "dp_accounting",
    "flower": "flwr",
    "opendp": "opendp",
}


@pytest.mark.parametrize("name", NEEDED)
def test_examples_hold(name):
    pytest.importorskip(NEEDED[name], exc_type=ImportError)
    found = doctest.testmod(import_module(f"symdp.adapters.{name}"))
    assert found.failed == 0
