"""Formulas as text, LaTeX and MathML: each reads as the other, and LaTeX compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from xml.etree import ElementTree as ET

import pytest
import sympy as sp

import symdp
from symdp.page.formula import layout, read
from symdp.page.html import mathml
from symdp.page.latex import latex, latex_words
from symdp.page.node import text

a, s, t = sp.symbols("alpha sigma t", positive=True)
COMMANDS = (
    "frac sqrt left right text operatorname log exp inf sup min max sinh cosh tanh coth varepsilon "
    "delta sigma kappa lambda rho omega ell Phi varphi bar infty pi cdot le ge ne approx in to "
    "dots int sum mathrm quad qquad begin end intertext paragraph allowdisplaybreaks tau eta nu "
    "alpha xi theta binom bigl bigr vert textbar textless textgreater textasciicircum Gamma Sigma "
    "| \\ { } _ , % & $"
)


@pytest.mark.parametrize(
    ("expression", "written", "plain"),
    [
        (sp.exp(-(t**2) / 2) / (s * sp.sqrt(2 * sp.pi)), "e^(−t²/2)/(σ√(2π))",
         "e^(-t^2/2)/(sigma*sqrt(2*pi))"),
        (2 * 2**t, "2·2^t", "2*2^t"),
        (-(a + 1) * t, "−t·(α + 1)", "-t*(alpha + 1)"),
        (1 / (2 * s**2), "1/(2σ²)", "1/(2*sigma^2)"),
        (sp.sqrt(2) / 2, "1/√2", "1/sqrt(2)"),
        ((t + 1) ** sp.Rational(3, 2), "(t + 1)^(3/2)", "(t + 1)^(3/2)"),
        (-(1 - a) / 2, "α/2 − 1/2", "alpha/2 - 1/2"),
        (sp.log(t) ** 2, "log²(t)", "log^2(t)"),
    ],
)  # fmt: skip
def test_text_is_what_people_write(expression, written, plain):
    assert text(layout(expression)) == written
    assert text(layout(expression), ascii_only=True) == plain


def test_a_formula_by_hand_is_the_same_in_every_form():
    formula = read("c₁ = (3ρ₄ − 5ρ₃²)/24")
    assert text(formula) == "c₁ = (3ρ₄ − 5ρ₃²)/24"
    assert latex(formula) == r"c_{1}=\frac{3\rho_{4}-5\rho_{3}^{2}}{24}"
    written = "".join(ET.fromstring(f"<math>{mathml(formula)}</math>").itertext())
    assert written == "c1=3ρ4−5ρ3224"


def test_words_are_never_obeyed():
    assert (
        latex_words(r"\input{x} $ % # é ε")
        == r"\textbackslash{}input\{x\} \$ \% \# \'{e} $\varepsilon$"
    )


@pytest.mark.slow_cases("laplace", "logistic")
@pytest.mark.parametrize("name", ["gaussian", "randomized_response", "laplace", "logistic"])
def test_latex_is_ascii_balanced_and_of_known_commands(name, tmp_path):
    found = symdp.derive(getattr(symdp.mechanisms, name)).to_latex()
    assert found.isascii()
    assert found.count("{") - found.count(r"\{") == found.count("}") - found.count(r"\}")
    assert found.count(r"\left") == found.count(r"\right")
    assert found.count(r"\begin{align*}") == found.count(r"\end{align*}") > 5
    used = set(re.findall(r"\\([A-Za-z]+|\S)", found))
    assert used <= set(COMMANDS.split()), used - set(COMMANDS.split())
    if shutil.which("pdflatex") is None:
        return
    file = tmp_path / "page.tex"
    head = "\\documentclass{article}\\usepackage{amsmath}\\begin{document}\n"
    file.write_text(head + found + "\n\\end{document}\n", encoding="utf-8")
    ran = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", file.name],
        cwd=tmp_path, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    log = ran.stdout.decode("latin-1")
    assert ran.returncode == 0, log
    assert not re.findall(r"Overfull|Warning|^!", log, re.MULTILINE), log
