"""Programs that look at their arguments: the order of kinks, and what is assumed of parameters."""

from __future__ import annotations

import math
import re
import runpy
import subprocess
from pathlib import Path
from typing import Any

import mpmath
import pytest
import sympy as sp
from emitted import COMPILER, ENDINGS, NODE, by_node, compiled

import symdp
from symdp.cli import main
from symdp.derive.privacy_loss import PrivacyLoss
from symdp.emit.log_sum_exp import ExpMinusOne
from symdp.emit.standalone.write import _factored
from symdp.questions.programs import _case

HUBER = """
name = "huber"
variable = "x"
support = ["-oo", "oo"]
[parameters]
k = "positive"
s = "positive"
[noise]
density = '''Piecewise((exp(-x**2/(2*s**2)), abs(x) < k),
    (exp(-k*(2*abs(x) - k)/(2*s**2)), True))'''
sensitivity = 1
normalize = true
"""
UNIFORM = """
name = "uniform"
variable = "x"
support = ["-w", "w"]
[parameters]
w = "positive"
[noise]
density = "1/(2*w)"
sensitivity = 1
"""
# Two modes below b = 1: the pair of one shift is not the worst there.
LINDLEY = """
name = "lindley"
variable = "x"
support = ["-oo", "oo"]
[parameters]
b = "positive"
[assume]
b = ">= 1"
[noise]
density = "b**2/(2*(1 + b))*(1 + abs(x))*exp(-b*abs(x))"
sensitivity = 1
"""
# every order of the kinks, and both ties
VALUES = ((4.0, 3.0), (1.0, 2.0), (0.7, 1.0), (0.5, 2.0), (0.2, 1.0))


def huber_step(k: float, s: float, epsilon: float) -> float:
    """Return δ of one step by quadrature between the kinks."""

    def height(x: mpmath.mpf) -> mpmath.mpf:
        x = abs(x)
        return mpmath.exp(-(x**2 if x < k else k * (2 * x - k)) / (2 * s**2))

    def excess(x: mpmath.mpf) -> mpmath.mpf:
        return max(mpmath.mpf(0), height(x - 1) - mpmath.exp(epsilon) * height(x))

    # the loss rises: its root is where the excess begins
    low, high = mpmath.mpf(-k - 1), mpmath.mpf(k + 2)
    for _ in range(60):
        middle = (low + high) / 2
        if height(middle - 1) < mpmath.exp(epsilon) * height(middle):
            low = middle
        else:
            high = middle
    kinks = [x for x in (-k, 1 - k, k, 1 + k) if x > high]
    whole = mpmath.quad(height, [-mpmath.inf, -k, 0, k, mpmath.inf])
    return float(mpmath.quad(excess, sorted([high, *kinks, mpmath.inf])) / whole)


def written(text: str, language: str, folder: Path) -> Path:
    mechanism = symdp.Mechanism.from_toml(text)
    source = folder / f"{mechanism.name}.{ENDINGS[language]}"
    program = symdp.derive(mechanism).to_program(language)
    source.write_text(program, "utf-8")
    return source


def epsilon_of(k: float, s: float) -> float:
    """Return an ε below the largest loss, k/s²."""
    return 0.4 * k / s**2


def test_a_program_takes_the_case_that_its_arguments_are_in(tmp_path: Path, capsys):
    """A uniform law beside itself: what lies beyond the other is seen, all of it below w = 1/2."""
    mechanism, source = tmp_path / "uniform.toml", tmp_path / "uniform.py"
    mechanism.write_text(UNIFORM, "utf-8")
    assert main(["derive", str(mechanism), "--format", "python"]) == 0
    source.write_text(capsys.readouterr().out, "utf-8")
    names: dict[str, Any] = runpy.run_path(str(source))
    for w in (0.2, 0.5, 0.8, 3.0):
        hidden = max(0.0, 1 - 1 / (2 * w))
        assert names["delta"](0.1, 2, w=w) == pytest.approx(1 - hidden**2, rel=1e-12)


@pytest.mark.slow
def test_a_program_takes_the_order_of_kinks_that_its_arguments_have(tmp_path: Path, capsys):
    mechanism, source = tmp_path / "huber.toml", tmp_path / "huber.py"
    mechanism.write_text(HUBER, "utf-8")
    assert main(["derive", str(mechanism), "--format", "python"]) == 0
    source.write_text(capsys.readouterr().out, "utf-8")
    names: dict[str, Any] = runpy.run_path(str(source))
    for k, s in VALUES:
        epsilon = epsilon_of(k, s)
        truth = huber_step(k, s, epsilon)
        assert names["delta"](epsilon, 1, k=k, s=s) == pytest.approx(truth, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["c", "javascript"])
def test_other_languages_take_it_too(language: str, tmp_path: Path):
    source = written(HUBER, language, tmp_path)
    if language == "javascript":
        if NODE is None:
            pytest.skip("no node, which runs JavaScript")
        asked = [("delta", epsilon_of(k, s), 1, {"k": k, "s": s}, "remove") for k, s in VALUES]
        deltas = by_node(source, asked)
    else:
        if COMPILER is None:
            pytest.skip("no C compiler")
        command = compiled(source)
        deltas = []
        for k, s in VALUES:
            words = [f"epsilon={epsilon_of(k, s)!r}", "n=1", f"k={k}", f"s={s}"]
            ran = subprocess.run([*command, *words], capture_output=True, text=True, check=True)
            deltas.append(float(re.match(r"delta = (\S+)", ran.stdout)[1]))
    for (k, s), delta in zip(VALUES, deltas, strict=True):
        assert delta == pytest.approx(huber_step(k, s, epsilon_of(k, s)), rel=1e-9)


def test_values_that_break_an_assumption_are_refused(tmp_path: Path):
    names: dict[str, Any] = runpy.run_path(str(written(LINDLEY, "python", tmp_path)))
    with pytest.raises(ValueError, match="b >= 1 is assumed of this program"):
        names["delta"](0.5, 10, b=0.5)
    assert math.isfinite(names["log_delta"](0.5, 1, b=1.0))


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="no node, which runs JavaScript")
def test_javascript_refuses_them_too(tmp_path: Path):
    source = written(LINDLEY, "javascript", tmp_path)
    asked = [("delta", 0.5, 10, {"b": b}, "remove") for b in (0.5, 1.0)]
    refused, delta = by_node(source, asked)
    assert refused == "b >= 1 is assumed of this program"
    assert 0 < delta < 1


@pytest.mark.slow
def test_many_steps_of_rare_samples_are_summed_on_a_line(tmp_path: Path):
    """At the saddle point rare large losses weigh as much as all others: a law of two parts."""
    mechanism = symdp.mechanisms.gaussian(sigma="1.12").subsample("poisson", "1/500")
    source = tmp_path / "program.py"
    source.write_text(symdp.derive(mechanism).to_program("python"), "utf-8")
    names: dict[str, Any] = runpy.run_path(str(source))
    low, high = names["log_delta_ends"](0.2, 1000, "remove")
    expected = symdp.compose(mechanism, 1000).delta(0.2, direction="remove").log_delta
    assert low <= expected <= high
    assert high - low <= 1e-11


def test_many_rare_steps_are_refused_early(tmp_path: Path):
    """Panels were cut until memory was full."""
    mechanism = symdp.mechanisms.gaussian(sigma="1.12").subsample("poisson", "1/100000")
    source = tmp_path / "program.py"
    source.write_text(symdp.derive(mechanism).to_program("python"), "utf-8")
    names: dict[str, Any] = runpy.run_path(str(source))
    (law,) = names["_laws_of"](1e6, {}, "remove")
    law.lasting = 1.0
    with pytest.raises(ArithmeticError, match="no line in double precision is long enough"):
        names["_log_delta"]([law], 0.1)
    assert law.evaluated < 1e6


def test_an_end_of_a_loss_that_no_formula_tells_is_open(monkeypatch):
    """Any other end would be believed: beyond it δ is 0."""
    monkeypatch.setattr(PrivacyLoss, "loss_range", None)
    derivation = symdp.derive(symdp.mechanisms.logistic(s=1))
    assert _case(derivation, [], ()).loss_range == (-sp.oo, sp.oo)


@pytest.mark.slow
def test_a_program_answers_where_no_formula_tells_the_ends_of_a_loss(tmp_path: Path, monkeypatch):
    mechanism = symdp.mechanisms.logistic(s=1)
    monkeypatch.setattr(PrivacyLoss, "loss_range", None)
    source = tmp_path / "program.py"
    source.write_text(symdp.derive(mechanism).to_program("python"), "utf-8")
    names: dict[str, Any] = runpy.run_path(str(source))
    for direction in ("remove", "add"):
        expected = symdp.compose(mechanism, 20).delta(8.0, direction=direction).delta
        assert names["delta"](8.0, 20, direction) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("size", [1, 3, -2])
@pytest.mark.parametrize("sign", [1, -1])
def test_differences_of_exponentials_keep_their_digits(size, sign):
    """c e^a − c e^b as c e^b (e^{a−b} − 1), and c e^a + c e^b as it is."""
    x, y = sp.symbols("x y")
    total = size * sp.exp(x) + sign * size * sp.exp(y)
    written = _factored(total)
    assert written.has(ExpMinusOne) is (sign < 0)
    at = {x: sp.Rational(3, 7), y: sp.Rational(-2, 5)}
    assert abs(sp.N((written.rewrite(sp.exp) - total).subs(at), 30)) < 1e-25
