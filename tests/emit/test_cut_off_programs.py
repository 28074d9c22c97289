"""Atoms off any lattice in programs: a line that is cut off smoothly, beside exact sums."""

from __future__ import annotations

import math
import subprocess
import tomllib
from fractions import Fraction
from itertools import product
from pathlib import Path

import mpmath
import pytest
from emitted import COMPILER, NODE, by_node, compiled, python_command

import symdp
from symdp.emit.standalone.runtime import cut_off
from symdp.model.mechanism import Mechanism
from symdp.numeric.beyond import kinks

WIDTH = 2e-6  # of log δ: two ends are asked to lie within 1e-6
THREE = """name = "three"
support = [0, 1, 2]
[pair]
P = ["1/2", "1/3", "1/6"]
Q = ["3/10", "1/20", "13/20"]
"""
FOUR = """name = "four"
support = [0, 1, 2, 3]
[pair]
P = ["1/1000", "1/7", "333/1000", "3662/7000"]
Q = ["1/100000", "1/9", "1/3", "499991/900000"]
"""
LAWS = {"three": THREE, "four": FOUR}  # the second has a rare loss that is ten times the others


def delta_of_sums(text: str, count: int, epsilon: float) -> mpmath.mpf:
    """Return δ of so many steps, a sum over how often each outcome is seen."""
    with mpmath.workdps(30):
        pair = tomllib.loads(text)["pair"]
        p = [mpmath.mpf(x.numerator) / x.denominator for x in map(Fraction, pair["P"])]
        q = [mpmath.mpf(x.numerator) / x.denominator for x in map(Fraction, pair["Q"])]
        growth = mpmath.exp(epsilon)
        delta = mpmath.mpf(0)
        for seen in product(range(count + 1), repeat=len(p) - 1):
            last = count - sum(seen)
            if last < 0:
                continue
            ways = mpmath.mpf(math.factorial(count))
            under_p = mpmath.mpf(1)
            under_q = mpmath.mpf(1)
            for times, a, b in zip((*seen, last), p, q, strict=True):
                ways /= math.factorial(times)
                under_p *= a**times
                under_q *= b**times
            delta += ways * max(mpmath.mpf(0), under_p - growth * under_q)
        return delta


QUESTIONS = [
    ("three", 2, 0.7), ("three", 5, 1.3), ("three", 60, 8.0), ("three", 150, 60.0),
    ("four", 2, 0.3), ("four", 4, 2.0), ("four", 12, 4.5),
]  # fmt: skip


def test_the_cut_off_is_that_of_the_package():
    assert (cut_off.STEEPNESS, cut_off.CENTRE) == (kinks.STEEPNESS, kinks.CENTRE)
    gaussians = (
        (cut_off.FIRST_HEIGHT, cut_off.FIRST_WIDTH), (cut_off.SECOND_HEIGHT, cut_off.SECOND_WIDTH)
    )  # fmt: skip
    assert (cut_off.FEJER, gaussians) == (kinks.FEJER, kinks.GAUSSIANS)
    assert cut_off.FAR_ABOVE == kinks.FAR_ABOVE


@pytest.mark.skipif(NODE is None, reason="no node, which runs JavaScript")
@pytest.mark.parametrize("name", LAWS)
def test_exact_sums_lie_between_the_ends_of_a_program(name: str, tmp_path: Path):
    law = Mechanism.from_toml(LAWS[name])
    source = tmp_path / "law.mjs"
    source.write_text(symdp.derive(law).to_program("javascript"), "utf-8")
    of_law = [(n, e) for law_name, n, e in QUESTIONS if law_name == name]
    asked = [("log_delta_ends", e, n, {}, "remove") for n, e in of_law]
    for (n, e), (lower, upper) in zip(of_law, by_node(source, asked), strict=True):
        truth = float(mpmath.log(delta_of_sums(LAWS[name], n, e)))
        assert lower <= truth <= upper
        assert upper - lower <= WIDTH


def test_epsilon_lies_between_its_ends(tmp_path: Path):
    law = Mechanism.from_toml(THREE)
    source = tmp_path / "law.py"
    source.write_text(symdp.derive(law).to_program("python"), "utf-8")
    words = ["delta=1e-5", "n=30", "remove"]
    line = [*python_command(source), *words]
    ran = subprocess.run(line, capture_output=True, text=True, check=True)
    upper = float(ran.stdout.split()[2])
    assert delta_of_sums(THREE, 30, upper) <= 1e-5
    assert delta_of_sums(THREE, 30, upper * (1 - 1e-6)) > 1e-5


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_c_lays_the_line_by_the_rules_of_its_language(tmp_path: Path):
    source = tmp_path / "law.c"
    law = Mechanism.from_toml(THREE)
    source.write_text(symdp.derive(law).to_program("c"), "utf-8")
    command = compiled(source, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    line = [*command, "epsilon=8", "n=60", "remove"]
    ran = subprocess.run(line, capture_output=True, text=True, check=False, timeout=100)
    assert (ran.returncode, ran.stderr) == (0, "")
    upper = float(ran.stdout.split()[2])
    truth = float(delta_of_sums(THREE, 60, 8.0))
    assert truth <= upper <= truth * (1 + WIDTH)
