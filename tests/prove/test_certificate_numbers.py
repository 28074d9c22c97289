"""The checker's own numbers: what they enclose, by Arb, and that any Python runs them."""

from __future__ import annotations

import ast
import json
import random
import re
import shutil
import subprocess
from fractions import Fraction
from glob import glob
from pathlib import Path

import mpmath
import pytest
from flint import acb, arb, ctx, fmpq

import symdp
from symdp import mechanisms
from symdp.prove import check_certificate as checker
from symdp.questions.certificate_file import CHECKER, certificate

BITS = [64, 128, 700]
MOST = {"exp": 9, "log": 200, "inverse": 50, "erf": 5, "turn": 20}  # logs of the largest arguments
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
@pytest.mark.parametrize("name", ["exp", "log", "inverse", "erf", "turn"])
def test_a_function_encloses_what_arb_does(name, bits):
    draw = random.Random(bits)
    checker.set_units(bits)
    with ctx.workprec(4 * bits + 400):
        for _ in range(100):
            size = 2.0 ** draw.uniform(-bits, MOST[name])
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
            true = 1 / exact(x) if name == "inverse" else getattr(exact(x), name)()
            assert exact(found.lo) <= true.upper()
            assert true.lower() <= exact(found.hi)
            if name == "erf" and abs(x) > checker.ONE:
                continue  # a sum of exp(x^2) times exp(-x^2), which is wider
            # no wider than a few of its last bits
            assert found.hi - found.lo <= (64 + bits) * max(1, found.size() >> (bits - 1))


@pytest.mark.parametrize("name", ["exp", "log", "inverse", "erf", "abs"])
def test_a_number_with_an_error_encloses_what_arb_does(name):
    """At the middle and at both ends of what it encloses, however wide it is."""
    draw = random.Random(name)
    checker.set_units(128)
    with ctx.workprec(500):
        for _ in range(200):
            radius = checker.ONE >> draw.randint(0, 128)
            x = radius * draw.randint(-9, 9) + draw.getrandbits(100) * draw.choice([0, 1])
            try:
                found = getattr(checker.Series([x], radius), name)()
            except checker.Refused:
                assert name in ("log", "inverse", "erf")  # of what may be 0, or is very wide
                continue
            for end in (x - radius, x, x + radius):
                arg = exact(end)
                true = {"inverse": lambda u: 1 / u, "abs": abs}.get(
                    name, lambda u: getattr(u, name)()
                )(arg)
                assert exact(found.lo) <= true.upper()
                assert true.lower() <= exact(found.hi)


@pytest.mark.slow_cases("1 + erf(x/3)/2")
@pytest.mark.parametrize("formula", FORMULAS)
def test_a_series_encloses_its_function(formula):
    """Within the parts, the radius and the tail, on a panel and as far as its series is used."""
    draw = random.Random(formula)
    checker.set_units(128)
    for _ in range(40):
        middle = Fraction(draw.randint(-700, 700), 100)
        reach = Fraction(checker.REACH, draw.choice([2, 10, 20, 100]))
        around = middle + checker.Series([0, checker.ONE, 0, 0]) * reach
        tree = checker.formula(formula)
        for evaluate in (checker.value, checker.log_value):
            try:
                found = checker.series(evaluate(tree, around))
            except checker.Refused:
                continue
            for _ in range(5):
                t = Fraction(draw.randint(-100, 100), 100)
                value = evaluate(tree, checker.series(middle + reach * t))
                about = sum(u * t**k for k, u in enumerate(found.parts))
                error = found.radius + found.tail * t**checker.PARTS
                assert about - error <= value.hi
                assert value.lo <= about + error
                assert value.lo <= found.size()


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_series_has_coefficients_no_larger_than_it_says(formula):
    """By mpmath's own, from differences."""
    checker.set_units(128)
    tree = checker.formula(formula)
    for middle in (Fraction(1, 3), Fraction(5)):
        reach = Fraction(1, 4)
        found = checker.series(
            checker.value(tree, middle + checker.Series([0, checker.ONE, 0, 0]) * reach)
        )
        with mpmath.workdps(40):
            place = mpmath.mpf(middle.numerator) / middle.denominator
            true = mpmath.taylor(lambda t, x=place: mpmath_value(formula, x + t / 4), 0, 12)
            one, few = mpmath.mpf(checker.ONE), mpmath.mpf(10) ** -25  # of Taylor's differences
            for coefficient, part in zip(true, found.parts, strict=False):
                assert abs(coefficient - part / one) <= found.radius / one + few
            beyond = sum(map(abs, true[checker.PARTS :]))
            assert beyond <= (found.tail + found.radius) / one + few


def mpmath_value(formula, x):
    """Evaluate a formula by mpmath, which the checker does not know; no Abs changes its sign."""
    names = {name: getattr(mpmath, name) for name in ("exp", "log", "erf", "pi", "mpf")}
    text = re.sub(r"\d+", r"mpf(\g<0>)", formula)
    return eval(text, {"__builtins__": {}}, names | {"Abs": lambda u: -u, "x": x})


def pythons():
    """Return interpreters of other versions that this machine has."""
    names = [f"python3.{minor}" for minor in range(9, 16)]
    found = {name: shutil.which(name) for name in names}
    for path in glob(str(Path.home() / ".pyenv/versions/*/bin/python3.*")):
        if Path(path).name in names:
            found[Path(path).name] = path
    return [path for path in found.values() if path]


@pytest.mark.slow
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
