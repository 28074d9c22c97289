"""The checker's own numbers: what they enclose, by Arb, and that any Python runs them."""

from __future__ import annotations

import ast
import json
import random
import shutil
import subprocess
from fractions import Fraction
from glob import glob
from pathlib import Path

import pytest
from flint import acb, arb, ctx, fmpq

import symdp
from symdp import mechanisms
from symdp.certify import check_certificate as checker
from symdp.questions.certificate_file import CHECKER, certificate

BITS = [64, 128, 700]
FORMULAS = [
    "exp(-x**2/8)/(2*(2*pi)**(1/2))",
    "9/10*exp(-x**2/8) + exp(-(x - 3)**2/72)/60",
    "1/(1 + x**2/5)**3",
    "(x + 9)**(5/2)*exp(-x - 9)",
    "1 + erf(x/3)/2",
    "log(x + 9)/(x + 11)",
    "exp(-Abs(x - 17/2)/3)/6",
]


def exact(n):
    """Return a number in units of the last bit, as Arb has it."""
    return arb(fmpq(n, checker.ONE))


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("name", ["exp", "log", "erf", "turn"])
def test_a_function_encloses_what_arb_does(name, bits):
    draw = random.Random(bits)
    checker.set_units(bits, 4)
    with ctx.workprec(4 * bits + 400):
        for _ in range(100):
            size = 2.0 ** draw.uniform(-bits, {"exp": 9, "log": 200, "erf": 5, "turn": 20}[name])
            x = int(size * 2**60) * draw.choice([-1, 1]) * checker.ONE >> 60
            x += draw.getrandbits(20)
            if name == "turn":
                re, im, radius = checker.turn(checker.point(x))
                true = acb(0, exact(x)).exp()
                off = acb(exact(re), exact(im)) - true
                assert abs(off).upper() <= exact(radius)
                assert radius < 8
                continue
            x = abs(x) + 1 if name == "log" else x
            found = getattr(checker.point(x), name)()
            true = getattr(exact(x), name)()
            assert exact(found.lo) <= true.upper()
            assert true.lower() <= exact(found.hi)
            if name == "erf" and abs(x) > checker.ONE:
                continue  # a sum of exp(x^2) times exp(-x^2), which is wider
            # no wider than a few of its last bits
            assert found.hi - found.lo <= (64 + bits) * max(1, found.size() >> (bits - 1))


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_series_encloses_its_function(formula):
    """Within the parts and the tail, at real places of a panel and of where the tail is summed."""
    draw = random.Random(formula)
    checker.set_units(128, 4)
    with ctx.workprec(1000):
        for _ in range(40):
            middle = Fraction(draw.randint(-700, 700), 100)
            radius = Fraction(1, draw.choice([10, 20, 100]))
            parts = [checker.real(middle), checker.real(radius * 4)]
            jet = checker.Jet([*parts, checker.point(0), checker.point(0)])
            tree = checker.formula(formula)
            try:
                values = [checker.value(tree, jet), checker.log_value(tree, jet).exp()]
            except checker.Refused:
                continue
            for found in values:
                for _ in range(5):
                    t = Fraction(draw.randint(-100, 100), 100)
                    point = checker.value(tree, checker.real(middle + radius * 4 * t))
                    rest = checker.real(t**4 * Fraction(found.tail, checker.ONE))
                    sum_ = sum((u * t**k for k, u in enumerate(found.parts)), checker.point(0))
                    assert sum_.lo - rest.hi <= point.hi
                    assert point.lo <= sum_.hi + rest.hi
                    inside = sum(u.size() for u in found.parts) + found.tail
                    assert point.lo <= inside


def pythons():
    """Return interpreters of other versions that this machine has."""
    names = [f"python3.{minor}" for minor in range(9, 16)]
    found = {name: shutil.which(name) for name in names}
    for path in glob(str(Path.home() / ".pyenv/versions/*/bin/python3.*")):
        if Path(path).name in names:
            found[Path(path).name] = path
    return [path for path in found.values() if path]


def test_every_python_at_hand_checks_a_file(tmp_path):
    file = tmp_path / "proof.json"
    steps = symdp.compose(mechanisms.gaussian(sigma=5), 40)
    told = certificate(steps, epsilon=2, digits=6, direction="remove")
    file.write_text(json.dumps(told))
    ran = 0
    for python in pythons():
        command = [python, "-I", "-S", str(CHECKER), str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "pyenv" in done.stderr:  # its stand-in for a version that is not chosen
            continue
        assert (done.returncode, done.stderr) == (0, ""), python
        assert done.stdout.startswith("proved: " + told["claim"]["lower"])
        ran += 1
    if not ran:
        pytest.skip("no other Python here")


def test_it_is_written_in_the_grammar_of_python_3_9():
    tree = ast.parse(CHECKER.read_text(), feature_version=(3, 9))
    newer = {"bit_count", "pairwise", "cbrt", "exp2", "removeprefix", "strict", "lcm"}
    names = {getattr(node, "attr", getattr(node, "arg", None)) for node in ast.walk(tree)}
    assert not newer & names
    assert not any(isinstance(node, ast.Match) for node in ast.walk(tree))
