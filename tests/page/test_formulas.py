"""Formulas as text, LaTeX and MathML: each reads as the other, and LaTeX compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symdp
from symdp.emit.log_sum_exp import hyperu
from symdp.page.document import Formulas, Line, sentence
from symdp.page.formula import equation, layout, one_set_of_cases, read
from symdp.page.html import html_blocks, mathml
from symdp.page.latex import latex, latex_blocks, latex_words
from symdp.page.markdown import markdown_blocks
from symdp.page.node import text
from symdp.page.sections.local import _cases
from symdp.page.text import formula_lines, to_text

a, s, t = sp.symbols("alpha sigma t", positive=True)
COMMANDS = (
    "frac sqrt left right text operatorname log exp inf sup min max sinh cosh tanh coth varepsilon "
    "delta sigma kappa lambda rho omega ell Phi varphi bar infty pi cdot le ge ne approx in to "
    "dots int sum mathrm quad qquad begin end intertext paragraph allowdisplaybreaks tau eta nu "
    "alpha xi theta binom bigl bigr vert textbar textless textgreater textasciicircum Gamma Sigma "
    "biggl biggr raggedright par propto surd displaystyle subsection subsubsection "
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
        (-(1 - a) / 2, "(α − 1)/2", "(alpha - 1)/2"),
        (a / 2 + sp.Rational(1, 3), "α/2 + 1/3", "alpha/2 + 1/3"),
        (sp.log(t) ** 2, "log²(t)", "log^2(t)"),
        (sp.hyper((a, -2 * t), (t + 1,), -1 / a), "₂F₁(α, −2t; t + 1; −1/α)",
         "_2F_1(alpha, -2*t; t + 1; -1/alpha)"),
        (hyperu(2 * t, 4, 1 / a), "U(2t, 4, 1/α)", "U(2*t, 4, 1/alpha)"),
        # what was isolated to many digits is not set as a fraction of thirty
        (-(sp.Integer(10) ** 30 + 1) / sp.Integer(3 * 10**30 + 7), "−0.3333333333…",
         "-0.3333333333..."),
        (sp.Rational(1, 10**30), f"1/1{'0' * 30}", f"1/1{'0' * 30}"),
    ],
)  # fmt: skip
def test_text_is_what_people_write(expression, written, plain):
    assert text(layout(expression)) == written
    assert text(layout(expression), ascii_only=True) == plain


def test_a_hypergeometric_function_is_set_as_in_books():
    assert latex(layout(sp.hyper((a, t), (1,), -1))) == (r"{}_{2}F_{1}(\alpha,\ t;\ 1;\ -1)")


def test_a_number_of_many_digits_is_ascii_in_latex():
    long = (sp.Integer(10) ** 30 + 1) / sp.Integer(3 * 10**30 + 7)
    assert latex(layout(long)) == r"0.3333333333\dots "


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


@pytest.mark.quick_cases("gaussian")
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


def test_words_behind_the_last_formula_stand_below_it():
    lines = [equation("a", "=b"), sentence("the reason"), sentence("the law")]
    found = latex_blocks([Formulas(lines)])
    assert found.index(r"\end{align*}") < found.index("the reason") < found.index("the law")
    assert "intertext" not in found


def test_cases_keep_their_words():
    cases = equation("r₀", sp.Piecewise((a, t < s), (s, True)), words="residue at t = 0")
    *rows, words = formula_lines(cases)
    assert [row.split()[-1] for row in rows] == ["t", "otherwise"]
    assert words == "  (residue at t = 0)"


X = sp.Symbol("x", real=True)
ENDS = st.integers(-3, 3)


@st.composite
def sets_of_cases(draw):
    """Return one to three cases in x, ends in any order, as authors write them."""
    ends = sorted(draw(st.sets(ENDS, min_size=1, max_size=3)))
    values = [k + X * draw(st.integers(0, 2)) for k in range(1, len(ends) + 2)]
    relation = draw(st.sampled_from([sp.Lt, sp.Le]))
    cases = [(value, relation(X, end)) for value, end in zip(values, ends, strict=False)]
    return sp.Piecewise(*cases, (values[-1], True))


@settings(deadline=None, derandomize=True, database=None, max_examples=25)
@given(sets_of_cases(), sets_of_cases(), sets_of_cases())
def test_sums_and_products_of_cases_are_one_set_of_cases(one, two, three):
    whole = one * two + sp.exp(-three)
    found = one_set_of_cases(whole)
    assert isinstance(found, sp.Piecewise)
    assert not any(value.has(sp.Piecewise) for value, _ in found.args)
    for place in (sp.Rational(k, 2) for k in range(-8, 9)):  # every end, and between
        assert found.subs(X, place) == whole.subs(X, place)


def test_each_case_of_a_sum_stands_on_a_line_of_its_own():
    low, high = (sp.Piecewise((sp.Integer(k), k > X), (0, True)) for k in (1, 2))
    lines = list(formula_lines(equation("f(x)", low + high)))
    assert lines == ["f(x) = 3  if x < 1", "       2  if 1 ≤ x < 2", "       0  if x ≥ 2"]


def test_cases_whose_order_is_open_stay_what_they_are():
    one, two = (sp.Piecewise((1, end > X), (0, True)) for end in (a, t))
    assert one_set_of_cases(one + two) == one + two


LONG = sum(sp.Symbol(f"a_{k}", positive=True) ** (k % 5 + 1) for k in range(60))


@pytest.mark.parametrize("right", [
    LONG, sp.exp(LONG), LONG / (1 + t), sp.log(LONG) * t, sp.Piecewise((LONG, t < 1), (t, True)),
], ids=["sum", "exponent", "fraction", "logarithm", "cases"])  # fmt: skip
def test_a_formula_wider_than_the_page_breaks_at_signs_in_every_format(right):
    line = Line(read("f(t)"), layout(right))
    page = [Formulas([line])]
    for text_line in to_text(page, 80).splitlines():
        assert len(text_line) <= 80
    rows = latex_blocks(page).split(r"\\")
    assert len(rows) >= 5
    assert markdown_blocks(page).count(r"\\") >= 4
    assert html_blocks(page).count("<mtr>") >= 5


def test_a_left_side_that_fills_the_page_stands_above_its_right_side():
    """Else it would leave the other formulas of a section no room, and each would be a column."""
    left = read("P(ℓ = {}), x ∈ [{}, {}]", sp.log(a + s) - sp.log(t + s), a * s + t, 3 * a + t)
    short = Line(read("δ"), layout(sp.exp(-a * sp.log(1 + t + s)) + a * s))
    rows = latex_blocks([Formulas([Line(left, layout(a / t)), short])]).split(r"\\")
    assert len(rows) == 3
    assert rows[2].strip().startswith(r"\delta &=")
    assert html_blocks([Formulas([Line(left, layout(a / t))])]).count("<mtr>") == 2


def test_values_between_outputs_are_cases_and_equal_neighbours_are_one():
    """L of a local randomizer: a below 1 and from 1 to 2, none from 2 to 3, b beyond."""
    y = sp.Symbol("y", real=True)
    parts = [SimpleNamespace(upper=sp.sympify(end)) for end in (1, 2, 3, sp.oo)]
    local = SimpleNamespace(mechanism=SimpleNamespace(variable=y), parts=parts)
    line = _cases(local, "L", [sp.S.One, sp.S.One, None, y])
    assert line.expression == sp.Piecewise((1, y < 2), (y, True))
