"""One unknown for several steps: the truths are those of normal noise, from the error function."""

from __future__ import annotations

import math

import pytest
from pages import ROOT
from shell import Shell

import symdp
from symdp import InputError, mechanisms
from symdp.questions.design.scaled import load_scaled, scaled

SHARED = """
[budget]
by = "{by}"
shares = {{ first = 1, second = {share} }}
[[step]]
name = "first"
mechanism = "gaussian"
count = 4
[[step]]
name = "second"
mechanism = "gaussian"
count = 9
"""


def normal_delta(mu, epsilon):
    """δ(ε) of a normal loss of mean μ²/2 and variance μ²."""

    def upper(x):
        return math.erfc(x / math.sqrt(2)) / 2

    return upper(epsilon / mu - mu / 2) - math.exp(epsilon) * upper(epsilon / mu + mu / 2)


def normal_mu(epsilon, delta):
    low, high = 1e-6, 50.0
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if normal_delta(middle, epsilon) < delta else (low, middle)
    return low


def test_one_scale_for_normal_steps():
    steps = [(mechanisms.gaussian, {"sigma": "2*scale"}, 4)]
    steps.append((mechanisms.gaussian, {"sigma": "scale**2 + 1"}, 9))
    answer = symdp.calibrate(scaled(steps), "scale", epsilon=1, delta=1e-5)

    def mu(scale):
        return math.sqrt(4 / (2 * scale) ** 2 + 9 / (scale**2 + 1) ** 2)

    value = float(answer.value)
    wanted = normal_mu(1, 1e-5)
    assert mu(value) <= wanted * (1 + 1e-9)
    assert mu(value - 2 * float(answer.step)) > wanted * (1 - 1e-9)
    assert float(answer.steps["step 2"]["sigma"]) == pytest.approx(value**2 + 1, rel=1e-11)


def test_the_whole_runs_several_times():
    steps = scaled([(mechanisms.gaussian, {"sigma": "scale"}, 4)])
    thrice = symdp.calibrate(steps, "scale", 3, epsilon=1, delta=1e-5)
    alone = symdp.calibrate(mechanisms.gaussian, "sigma", 12, epsilon=1, delta=1e-5)
    assert thrice.value == alone.value


def test_laplace_and_normal_steps_meet_the_target():
    steps = [(mechanisms.laplace, {"b": "2*scale"}, 4)]
    steps.append((mechanisms.gaussian, {"sigma": "3*scale"}, 6))
    answer = symdp.calibrate(scaled(steps), "scale", epsilon=2, delta=1e-6, digits=6)
    for value, meets in ((answer.value, True), (answer.neighbour, False)):
        laplace, normal = mechanisms.laplace(b=2 * value), mechanisms.gaussian(sigma=3 * value)
        held = symdp.compose([(laplace, 4), (normal, 6)])
        assert (held.delta(2).delta <= 1e-6) == meets


@pytest.mark.slow
def test_shares_of_epsilon(tmp_path):
    file = tmp_path / "shared.toml"
    file.write_text(SHARED.format(by="epsilon", share=3), encoding="utf-8")
    answer = symdp.calibrate(load_scaled(file), "share", epsilon=2, delta=1e-6, digits=4)
    share = float(answer.value)
    first, second = (float(answer.steps[name]["sigma"]) for name in ("first", "second"))
    assert normal_delta(2 / first, share) == pytest.approx(1e-6, rel=1e-7)
    assert normal_delta(3 / second, 3 * share) == pytest.approx(1e-6, rel=1e-7)
    mu = math.sqrt(4 / first**2 + 9 / second**2)
    assert normal_delta(mu, 2) <= 1e-6 * (1 + 1e-9)
    assert normal_delta(mu * (1 + 1e-2), 2) > 1e-6


@pytest.mark.slow
def test_shares_of_rho(tmp_path):
    file = tmp_path / "shared.toml"
    file.write_text(SHARED.format(by="rho", share="0.5"), encoding="utf-8")
    answer = symdp.calibrate(load_scaled(file), "share", epsilon=2, delta=1e-6, digits=4)
    rho = float(answer.value)
    first, second = (float(answer.steps[name]["sigma"]) for name in ("first", "second"))
    assert 4 / (2 * first**2) == pytest.approx(rho, rel=1e-9)
    assert 9 / (2 * second**2) == pytest.approx(rho / 2, rel=1e-9)


@pytest.mark.slow
def test_a_rate_may_be_the_unknown(tmp_path):
    file = tmp_path / "sampled.toml"
    file.write_text(
        '[[step]]\nmechanism = "gaussian"\nparameters = { sigma = 2 }\ncount = 50\n'
        'sampling = { scheme = "poisson", rate = "q" }\n',
        encoding="utf-8",
    )
    together = symdp.calibrate(load_scaled(file), "q", epsilon=1, delta=1e-5, digits=5)
    sampled = mechanisms.gaussian(sigma=2).subsample("poisson", "q")
    alone = symdp.calibrate(sampled, "q", 50, epsilon=1, delta=1e-5, digits=5)
    assert together.value == alone.value


@pytest.mark.slow
def test_on_the_command_line(shell: Shell, tmp_path):
    file = ROOT / "examples" / "scaled.toml"
    asked = f"calibrate --composition {file} --parameter scale --epsilon 2 --delta 1e-6"
    told = shell(f"{asked} --json").json
    assert told["steps"]["counts"]["b"] == f"{2 * told['value']:.12g}"
    assert told["delta"] <= 1e-6
    ran = shell(asked)
    assert "sums    sigma = 7.56" in ran.out


def test_other_names_get_values(shell: Shell, tmp_path):
    file = tmp_path / "two.toml"
    file.write_text(
        '[[step]]\nmechanism = "gaussian"\nparameters = { sigma = "scale*w" }\n', encoding="utf-8"
    )
    asked = f"calibrate --composition {file} --parameter scale --epsilon 1 --delta 1e-5 --json"
    refused = shell(asked)
    assert "give a value for w" in refused.err
    half = shell(asked.replace("--composition", "w=1/2 --composition")).json["value"]
    single = symdp.calibrate(mechanisms.gaussian, "sigma", 1, epsilon=1, delta=1e-5)
    assert half == pytest.approx(2 * float(single.value), rel=1e-9)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('parameters = { sigma = "2*scale" }\nfoo = 1', "foo"),
        ('parameters = { simga = "2*scale" }', "did you mean 'sigma'"),
        ('parameters = { sigma = "2*" }', "a number or a name is missing"),
        ("parameters = { sigma = 2 }", 'as in b = "2'),
    ],
)
def test_what_is_wrong_in_a_file_is_said(shell: Shell, tmp_path, text, told):
    file = tmp_path / "steps.toml"
    file.write_text(f'[[step]]\nmechanism = "gaussian"\n{text}\n', encoding="utf-8")
    ran = shell(f"calibrate --composition {file} --parameter scale --epsilon 1 --delta 1e-5")
    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("second = 3", "third = 3", "no step has the name 'third'"),
        (", second = 3", "", "it has no share"),
        ("second = 3", "second = 0", "above 0"),
        ('"epsilon"', '"delta"', "that of zCDP"),
        ("count = 9", "count = 9\nparameters = { sigma = 2 }", "one parameter left open"),
    ],
)
def test_shares_that_are_none_are_refused(tmp_path, old, new, told):
    file = tmp_path / "shared.toml"
    text = SHARED.format(by="epsilon", share=3)
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=told):
        load_scaled(file)


def test_an_unknown_is_not_answered_without_a_value(shell: Shell):
    ran = shell(f"epsilon --composition {ROOT / 'examples' / 'shared.toml'} --delta 1e-6")
    assert "symdp calibrate --composition FILE" in ran.err
