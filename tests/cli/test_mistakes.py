"""Mistakes that people make at first: each is named in one line, with what to write instead."""

from __future__ import annotations

import math

import mpmath
import pytest
from refusals import refused
from shell import Shell

import symdp
from symdp.cli import accounting
from symdp.page.verification import Check, Truth

FILE = """
name = "mine"
variable = "x"
support = ["-oo", "oo"]
[parameters]
s = "positive"
[noise]
density = "exp(-abs(x)/s)/(2*s)"
sensitivity = 1
"""
EDITS = {
    "reals": ('["-oo", "oo"]', '"reals"', 'all reals are ["-oo", "oo"]'),
    "domain": ('"positive"', '">0"', "write 'positive'"),
    "interval": ('"positive"', '"(0, 1)"', "write 'open probability'"),
    "odd": (
        'density = "exp(-abs(x)/s)/(2*s)"',
        'density = "x*exp(-x**2/s)"\nnormalize = true',
        "negative somewhere",
    ),
    "table": ("[parameters]", "normalize = true\n[parameters]", "it is a key of [noise]"),
}
COMMANDS = {
    "epsilon laplace b=2 --delta 0": "symdp renyi … --order inf",
    "filter status nowhere.json": "symdp filter new",
    "ledger show nowhere.json": "symdp ledger add",
    "check nowhere.toml": "certify --certificate FILE writes",
}


@pytest.mark.parametrize("name", EDITS)
def test_a_file_says_what_to_write(name, tmp_path, shell: Shell):
    before, after, told = EDITS[name]
    file = tmp_path / "mine.toml"
    file.write_text(FILE.replace(before, after), "utf-8")
    ran = shell(f"delta {file} s=2 --epsilon 1")
    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_what_to_write(command, shell: Shell):
    ran = shell(command)
    assert ran.code == 2
    assert COMMANDS[command] in ran.err
    assert ran.err.count("\n") == 1


def test_orders_is_the_order_of_other_libraries(shell: Shell):
    assert shell("renyi laplace b=2 --orders 2,8").out == (
        shell("renyi laplace b=2 --order 2,8").out
    )


def test_what_is_no_certificate(tmp_path, shell: Shell):
    for text, told in (("hello", "no JSON"), ("{}", "its format is not")):
        file = tmp_path / "one.json"
        file.write_text(text, "utf-8")
        ran = shell(f"check {file}")
        assert ran.code == 2
        assert told in ran.err
        assert "symdp certify --certificate FILE writes one" in ran.err


def test_a_delta_of_0_is_told_what_to_ask():
    steps = symdp.compose(symdp.mechanisms.laplace(b=2), 3)
    with refused("at 0, ε is the largest loss: renyi(math.inf)"):
        steps.epsilon(0)
    assert steps.renyi(math.inf) == 1.5


def test_a_true_delta_shows_no_more_digits_than_are_known(capsys):
    """Of an enclosure of six digits twelve were printed."""
    truth = Truth(1.0, mpmath.mpf("0.123456789"), 6)
    accounting._print_place([Check("contour", truth, None, reason="late")], {})
    assert "δ = 0.123457 to 6 digits" in capsys.readouterr().out
