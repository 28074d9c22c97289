"""Certificates as files: what they cover, and that their checker cannot be fooled."""

from __future__ import annotations

import ast
import copy
import json
import subprocess
import sys
from fractions import Fraction

import pytest

import symdp
from symdp import mechanisms
from symdp.errors import AccuracyError, InputError
from symdp.prove import check_certificate as checker
from symdp.questions.certificate_file import CHECKER, certificate, check

MIXTURE = """
name = "mixture"
variable = "x"
support = ["-oo", "oo"]
[noise]
density = "9/10*exp(-x**2/8)/(2*sqrt(2*pi)) + exp(-x**2/72)/(60*sqrt(2*pi))"
sensitivity = 1
"""
QUARTIC = """
name = "quartic"
variable = "x"
support = ["-oo", "oo"]
[noise]
density = "exp(-x**4/200)"
normalize = true
sensitivity = 1
"""


def sampled_gaussian(count=10_000):
    step = mechanisms.gaussian(sigma="3/2").subsample("poisson", "1/100")
    return symdp.compose(step, count)


# name -> composition, epsilon, digits, direction
COVERED = {
    "sampled normal": (sampled_gaussian, "1", 10, "remove"),
    "sampled normal, other direction": (sampled_gaussian, "1", 10, "add"),
    "sampled normal, a million": (
        lambda: symdp.compose(
            mechanisms.gaussian(sigma="3/2").subsample("poisson", "1/1000"), 10**6
        ),
        "1",
        8,
        "remove",
    ),
    "normal": (lambda: symdp.compose(mechanisms.gaussian(sigma=5), 50), "2", 8, "remove"),
    "Laplace": (lambda: symdp.compose(mechanisms.laplace(b=5), 1000), "12", 8, "remove"),
    "sampled Laplace": (
        lambda: symdp.compose(mechanisms.laplace(b=2).subsample("poisson", "1/50"), 2000),
        "1",
        8,
        "remove",
    ),
    "logistic": (lambda: symdp.compose(mechanisms.logistic(s=4), 100), "3", 8, "add"),
    "power law": (lambda: symdp.compose(mechanisms.student_t(nu=5, s=4), 100), "3", 6, "remove"),
    "mixture": (lambda: symdp.compose(symdp.Mechanism.from_toml(MIXTURE), 40), "3", 6, "remove"),
    "mass integral": (
        lambda: symdp.compose(symdp.Mechanism.from_toml(QUARTIC), 60),
        "3",
        8,
        "remove",
    ),
    "bounded support": (
        lambda: symdp.compose(mechanisms.exponential(epsilon_0="1/2"), 60),
        "3",
        8,
        "remove",
    ),
    "two kinds": (
        lambda: symdp.compose([(mechanisms.gaussian(sigma=6), 40), (mechanisms.laplace(b=9), 60)]),
        "2",
        8,
        "remove",
    ),
    "coin": (
        lambda: symdp.compose(mechanisms.randomized_response(epsilon_0="1/10"), 10_000),
        "10",
        12,
        "both",
    ),
    "whole numbers": (lambda: symdp.compose(mechanisms.discrete_laplace(b=5), 100), "3", 10, "add"),
    "normal whole numbers": (
        lambda: symdp.compose(mechanisms.discrete_gaussian(sigma=4), 50),
        "2",
        10,
        "remove",
    ),
    "far below doubles": (
        lambda: symdp.compose(mechanisms.randomized_response(epsilon_0="1/10"), 10_000),
        "500",
        6,
        "remove",
    ),
    "whole numbers, small": (
        lambda: symdp.compose(mechanisms.discrete_gaussian(sigma=10), 100),
        "12",
        6,
        "remove",
    ),
    "negative": (
        lambda: symdp.compose(mechanisms.gaussian(sigma=10).subsample("poisson", "1/10"), 1000),
        "-1/2",
        8,
        "remove",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COVERED)
def test_a_certificate_agrees_with_the_proof_by_arb(name):
    build, epsilon, digits, direction = COVERED[name]
    steps = build()
    made = certificate(steps, epsilon=epsilon, digits=digits, direction=direction)
    lower, upper = (Fraction(made["claim"][end]) for end in ("lower", "upper"))
    proved = steps.certify(Fraction(epsilon), digits + 2, direction)
    assert lower <= Fraction(proved.upper_decimal)
    assert Fraction(proved.lower_decimal) <= upper
    assert upper - lower <= 2 * Fraction(10) ** -digits * upper
    assert checker.check(json.loads(json.dumps(made))).startswith(made["claim"]["lower"])
    assert len(json.dumps(made)) < 20_000


@pytest.mark.slow
def test_the_program_alone_checks_a_file(tmp_path):
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(certificate(sampled_gaussian(), epsilon=1, digits=6)))
    alone = tmp_path / "check_certificate.py"
    alone.write_text(CHECKER.read_text())
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(alone), str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "P against Q and Q against P" in done.stdout
    assert check(file).code == 0


def test_an_epsilon_is_found_and_proved():
    made = certificate(sampled_gaussian(), delta=Fraction(1, 10**5), digits=6, direction="remove")
    exact = sampled_gaussian().epsilon(1e-5, direction="remove").epsilon
    assert 0 < Fraction(made["claim"]["epsilon"]) - Fraction(exact) < Fraction(1, 10**4)
    assert Fraction(made["claim"]["upper"]) == Fraction(1, 10**5)
    checker.check(made)


@pytest.mark.slow
def test_a_claim_lowered_by_the_slack_is_refused():
    made = certificate(sampled_gaussian(), epsilon=1, digits=8, direction="remove")
    claim = made["claim"]
    width = Fraction(claim["upper"]) - Fraction(claim["lower"])
    low = copy.deepcopy(made)
    low["claim"]["lower"] = "0"
    low["claim"]["upper"] = str(Fraction(claim["upper"]) - width)
    with pytest.raises(checker.Refused, match="upper end"):
        checker.check(low)
    high = copy.deepcopy(made)
    high["claim"]["upper"] = "1"
    high["claim"]["lower"] = str(Fraction(claim["lower"]) + width)
    with pytest.raises(checker.Refused, match="lower end"):
        checker.check(high)


@pytest.mark.slow
def test_no_float_and_nothing_of_ours_decides():
    source = CHECKER.read_text()
    assert "import symdp" not in source
    assert "float(" not in source
    assert "math.exp" not in source
    ast.parse(source, feature_version=(3, 9))
    imported = {
        alias.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {"ast", "json", "re", "sys", "fractions", "functools", "itertools", "math"}


@pytest.mark.slow_cases("<lambda>-no certificate0")
@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (lambda: symdp.compose(mechanisms.gaussian(sigma=2), 1), "no certificate"),
        (lambda: symdp.compose(mechanisms.laplace(b=20), 20), "no certificate"),
    ],
)
def test_what_is_not_covered_gets_a_sentence(steps, message):
    with pytest.raises(AccuracyError, match=message):
        certificate(steps(), epsilon="1/2", digits=6, direction="remove")


@pytest.mark.slow_cases("discrete_gaussian-30-digits of a law's constant factor")
@pytest.mark.parametrize(
    ("noise", "epsilon", "told"),
    [("gaussian", 45, "too small"), ("discrete_gaussian", 30, "digits of a law's constant factor")],
)
def test_a_tiny_delta_is_refused_where_it_is_out_of_reach(noise, epsilon, told):
    steps = symdp.compose(getattr(mechanisms, noise)(sigma=10), 100)
    with pytest.raises(AccuracyError, match=told):
        certificate(steps, epsilon=epsilon, digits=6, direction="remove")


def test_bad_questions_are_told():
    with pytest.raises(InputError, match="one of the two"):
        certificate(sampled_gaussian())
    with pytest.raises(InputError, match="digits"):
        certificate(sampled_gaussian(), epsilon=1, digits=99)


@pytest.mark.quick_cases("1", "2", "6", "8")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1, 2]",
        "{}",
        '{"format": "symdp certificate 1"}',
        '{"format": "symdp privacy card", "version": 1}',
        "[" * 100_000,
        '{"format": ' + "9" * 100_000 + "}",
        " " * 1_000_000,
        "\x00\xff",
        "nan",
    ],
    ids=range(10),
)
def test_foreign_files_are_told_in_one_line(text, tmp_path):
    file = tmp_path / "proof.json"
    file.write_text(text, encoding="latin-1")
    verdict = check(file)
    assert verdict.code == 2
    assert "\n" not in verdict.text
    assert verdict.text.startswith("not a certificate")


@pytest.mark.parametrize("text", ["[]", '"a"', "null", "true", "3", "[[1]]", '[{"steps": []}]'])
def test_what_is_no_object_is_no_certificate_in_words_of_people(shell, tmp_path, text) -> None:
    path = tmp_path / "proof.json"
    path.write_text(text)
    ran = shell(f"check {path}")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "it holds no object with steps and a claim" in ran.err
    assert "attribute" not in ran.err
