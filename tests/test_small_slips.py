"""What people write, and what was said of it wrongly once."""

from __future__ import annotations

import pytest
import sympy as sp

from symdp import InputError, Mechanism, compose, mechanisms

GAUSSIAN = mechanisms.gaussian(sigma=2)
UNDECLARED = """
name = "a"
variable = "x"
support = ["-oo", "oo"]
[noise]
density = "exp(-abs(x)/b)/(2*b)"
sensitivity = 1
"""


def test_compositions_do_what_they_look_like():
    assert compose([GAUSSIAN, GAUSSIAN]).steps == ((GAUSSIAN, 2),)
    assert compose([GAUSSIAN, (GAUSSIAN, 3.0)]).n == 4
    assert compose(GAUSSIAN, 1000.0).n == 1000
    for wrong in ("gaussian", [1], [(GAUSSIAN,)], [("gaussian", 2)], 7, [[GAUSSIAN, 1.5]]):
        with pytest.raises(InputError):
            compose(wrong)
    with pytest.raises(InputError, match="positive integer"):
        compose(GAUSSIAN, 1.5)


@pytest.mark.parametrize(
    "command",
    [
        "delta gaussian sigma=1 -n 5 --epsilon 1",
        "epsilon gaussian sigma=1 -n 5 --delta 1e-5",
        "verify gaussian sigma=1 -n 5",
        "calibrate gaussian --parameter sigma -n 5 --epsilon 1 --delta 1e-5",
    ],
)
def test_every_command_says_the_same(shell, tmp_path, command):
    said = shell(f"{command} --method rdp").err
    assert said == "symdp: method 'rdp' is unknown; did you mean 'renyi'?\n"
    if "calibrate" not in command:
        said = shell(command.replace("sigma=1", "sigma=inf")).err
        assert said == "symdp: sigma: 'inf' is not a finite number, as it must be\n"
    path = tmp_path / "a.toml"
    path.write_text(UNDECLARED)
    said = shell(command.replace("gaussian", str(path)).replace("sigma=1", "b=1")).err
    assert "unknown name 'b'; known are x; declare a parameter under [parameters]" in said
    path.write_text(UNDECLARED.replace('"oo"', '"inf"'))
    said = shell(command.replace("gaussian", str(path)).replace("sigma=1", "b=1")).err
    assert "unknown name 'inf'; infinity is written oo" in said


@pytest.mark.slow
def test_a_density_in_asinh_is_checked():
    """The Gaussian pair pushed through sinh has the Gaussian pair's profile."""
    x = sp.Symbol("x", real=True)
    scale = sp.sqrt(2 * sp.pi) * sp.sqrt(1 + x**2)
    pushed = Mechanism.from_pair(
        sp.exp(-((sp.asinh(x) - 1) ** 2) / 2) / scale, sp.exp(-(sp.asinh(x) ** 2) / 2) / scale, x
    )
    plain = compose(mechanisms.gaussian(sigma=1), 3).delta(1.0)
    assert compose(pushed, 3).delta(1.0).delta == pytest.approx(plain.delta, rel=1e-11)


def test_a_mass_that_was_not_enclosed_is_not_called_infinite():
    x = sp.Symbol("x", real=True)
    with pytest.raises(InputError, match=r"could not be shown") as refused:
        compose(Mechanism.additive(sp.exp(x**2), x), 1)
    assert "has no finite mass" not in str(refused.value)


@pytest.mark.parametrize("below", [1e-6, 1e-10, 1e-12, 1e-15])
def test_one_step_is_exact_next_to_its_largest_loss(below):
    epsilon = 0.5 - below
    answer = compose(mechanisms.laplace(b=2), 1).delta(epsilon)
    true = float(1 - sp.exp((sp.Rational(epsilon) - sp.Rational(1, 2)) / 2).evalf(60))
    assert answer.kind == "exact"
    assert answer.lower <= true <= answer.upper
    assert answer.upper - answer.lower < 1e-12 * true


@pytest.mark.parametrize("method", ["lugannani-rice", "gaussian", "gdp-e"])
def test_one_step_that_is_not_normal_has_advice(method):
    from symdp import load

    steps = compose(load("examples/logistic.toml")(s=1), 1)
    answer = steps.delta(0.834, method=method)
    assert answer.advice
    assert "contour" in answer.advice
    assert not compose(mechanisms.gaussian(sigma=2), 1).delta(0.5, method=method).advice
