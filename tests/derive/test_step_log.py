"""The step log: every printed value is the integral that stands above it."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.derive import derive
from symdp.page.sections.step_log import step_log
from symdp.page.text import formula_lines

WEIBULL = """
name = "weibull"
variable = "x"
support = [0, "oo"]
[pair]
P = "3*x**2*exp(-x**3)"
Q = "6*x**2*exp(-2*x**3)"
"""
MAKE = {
    "laplace": lambda: symdp.mechanisms.laplace(b="3/2"),
    "gaussian": lambda: symdp.mechanisms.gaussian(sigma="4/3"),
    "gumbel": lambda: symdp.mechanisms.gumbel(b=2),
    "weibull": lambda: symdp.Mechanism.from_toml(WEIBULL),
    "logistic": lambda: symdp.mechanisms.logistic(s=1),
}


@pytest.mark.quick_cases("gaussian")
@pytest.mark.parametrize("name", MAKE)
def test_every_value_of_the_log_is_an_integral(name):
    d = derive(MAKE[name]())
    tilt, place = d.cgf.tilt, sp.Rational(1, 3)
    spans, total = [], mpmath.mpf(0)
    form = None
    for line in step_log(d).lines:
        left = "" if line.left is None else "".join(formula_lines(line)).split(" = ")[0]
        if line.words.startswith("2."):
            ends = line.words.partition("(")[2].partition(")")[0].split(", ")
            spans.append([float(end.replace("∞", "inf").replace("−", "-")) for end in ends])
        elif left.startswith("log P^("):
            form = line.expression
        elif left == "value":
            inside = sp.lambdify(d.variable, sp.exp(form).subs(tilt, place), "mpmath")
            own = mpmath.quad(inside, _split(*spans[-1]))
            printed = mpmath.mpf(sp.N(line.expression.subs(tilt, place), 20))
            assert mpmath.almosteq(own, printed, 1e-9)
            total += printed
    words = " ".join(line.words for line in step_log(d).lines)
    assert "table of integrals, " in words
    assert "equal to 18 digits" in words
    assert mpmath.almosteq(mpmath.log(total), sp.N(d.cgf.expression.subs(tilt, place), 20), 1e-9)


def _split(low, high):
    low, high = max(low, -60.0), min(high, 60.0)
    return sorted({low, *(p for p in (-8, -2, 0, 2, 8) if low < p < high), high})


def test_a_change_of_variable_and_a_refusal_are_told():
    words = " ".join(line.words for line in step_log(derive(MAKE["weibull"]())).lines)
    assert "x = r ± e^y" in words
    assert "gamma" in words
    sampled = symdp.mechanisms.gaussian(sigma=2).subsample("poisson", "1/10")
    words = " ".join(line.words for line in step_log(derive(sampled)).lines)
    assert "no entry of the table" in words
    assert "no closed form was found: " in words


@pytest.mark.slow
def test_the_command_prints_it(shell):
    ran = shell("derive laplace --only composed --explain")
    assert ran.code == 0
    assert "How K was found" in ran.out
    assert "table of integrals, line: ∫ exp(αx)." in ran.out
    in_latex = shell("derive laplace --only composed --explain --format latex")
    assert "How $K$ was found" in in_latex.out
    assert shell("derive laplace --explain --format json").code == 2
