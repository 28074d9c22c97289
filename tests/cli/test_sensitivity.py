"""--sensitivity and --group without sampling: the answer is that of scaled noise, and says so."""

from __future__ import annotations

import json

import pytest

from symdp import compose, mechanisms
from symdp.cli import main


def told(capsys, *words):
    assert main(list(words)) == 0
    return json.loads(capsys.readouterr().out)


def test_another_sensitivity_scales_the_noise(capsys):
    words = ("epsilon", "laplace", "b=3", "-n", "10", "--delta", "1e-5", "--json")
    found = told(capsys, *words, "--sensitivity", "3")
    assert found["epsilon"] == compose(mechanisms.laplace(b=1), 10).epsilon(1e-5).epsilon
    assert found["protects"].endswith("; sensitivity 3")
    assert found["epsilon"] > told(capsys, *words)["epsilon"]


def test_a_group_without_sampling_is_a_shift(capsys):
    words = ("epsilon", "gaussian", "sigma=100", "-n", "4", "--delta", "1e-5", "--json")
    found = told(capsys, *words, "--group", "50")
    expected = compose(mechanisms.gaussian(sigma=2), 4).epsilon(1e-5).epsilon
    assert found["epsilon"] == pytest.approx(expected, rel=1e-13)
    assert found["group"] == 50
    assert "up to 50 records" in found["protects"]
    assert "without sampling a group of 50 is a shift" in found["protects"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--group", "2"), "--group without --sampling needs noise"),
        (("--sensitivity", "2"), "--sensitivity needs noise"),
    ],
)
def test_what_has_no_sensitivity_is_refused(capsys, words, message):
    asked = ["delta", "randomized_response", "epsilon_0=1", "-n", "2", "--epsilon", "1", *words]
    assert main(asked) == 2
    assert message in capsys.readouterr().err
    assert main(["delta", "laplace", "b=1", "-n", "2", "--epsilon", "1", "--sensitivity", "0"]) == 2
    assert "must be a number above 0" in capsys.readouterr().err


VECTORS = """
name = "vectors"
variable = "r"
dimension = 3
[parameters]
s = "positive"
[noise]
norm = "l2"
density = "exp(-r/s)"
"""


@pytest.mark.quick_cases("options2")
@pytest.mark.parametrize(
    "options", [["--sensitivity", "3"], ["--sensitivity", "D", "D=3"], ["--group", "3"]]
)
def test_of_noise_on_vectors_it_is_a_length(capsys, tmp_path, options):
    """e^{−r/s} moved by 3 is e^{−3r/s} moved by 1."""
    file = tmp_path / "vectors.toml"
    file.write_text(VECTORS)
    words = ("delta", str(file), "-n", "4", "--epsilon", "2", "--json")
    found, truth = told(capsys, *words, "s=2", *options), told(capsys, *words, "s=2/3")
    assert found["delta"] == pytest.approx(truth["delta"], rel=1e-12)
