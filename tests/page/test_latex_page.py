"""A page in LaTeX: it compiles, no row leaves it, and each formula is set as people set it."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import sympy as sp

from symdp.page.derivation import to_document
from symdp.page.document import Formulas, sentence
from symdp.page.formula import equation, layout
from symdp.page.latex import latex, latex_blocks, latex_words

a, b, s, t = sp.symbols("a b s t", positive=True)
y = sp.Symbol("y", real=True)
WIDE = sp.Piecewise(
    (0, y < (1 - 2 * a) / (2 * s**2)),
    (
        sp.exp(-((2 * y - 1) ** 2) / (8 * s**2)) * sp.sin(a * y) / (a + b),
        y < (2 * a - 1) * sp.asinh(1 / (2 * s * sp.sqrt(b))),
    ),
    (1 / (a + b) + t**2 / (a * b + s), True),
)


def compiled(text, tmp_path):
    """Return the log of pdflatex."""
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex")
    (tmp_path / "page.tex").write_text(to_document(text), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=120)
    log = run.stdout.decode("latin-1")
    assert run.returncode == 0, log
    return log


def test_sentences_between_formulas_compile(tmp_path):
    """Two sentences in one \\intertext ended the table that they stood in: no page was made."""
    lines = [
        equation("F(y)", WIDE), sentence("y < 0: ℓ is constant"), sentence("y > 0: ℓ rises"),
        equation("sup ℓ", a), sentence("the reason"),
    ]  # fmt: skip
    written = latex_blocks([Formulas(lines)])
    assert written.count(r"\begin{align*}") == written.count(r"\end{align*}") == 2
    assert "intertext" not in written
    assert "Overfull" not in compiled(written, tmp_path)


def test_conditions_that_leave_no_room_stand_below_their_values(tmp_path):
    written = latex_blocks([Formulas([equation("F(y)", WIDE)])])
    assert r"\\[2.5ex]" in written
    assert re.search(r"\\\\ \\quad \\quad \\text\{if \}", written)
    assert "Overfull" not in compiled(written, tmp_path)


def test_cases_stand_alone_where_other_left_sides_would_push_them_off_the_page(tmp_path):
    value = sp.sqrt(y - a - s) * sp.sin(a + b + t) + y * sp.cos(b)
    narrow = sp.Piecewise((value, y < a + b + s), (1, True))
    lines = [
        equation("ℓ^{-1}(y), x ∈ (a, ∞)", a), equation("F(y)", narrow),
        equation("sup ℓ", b),
    ]  # fmt: skip
    written = latex_blocks([Formulas(lines)])
    assert written.count(r"\begin{align*}") == 3
    assert "Overfull" not in compiled(written, tmp_path)


@pytest.mark.parametrize(
    ("formula", "set_"),
    [
        (sp.exp(-((y - 1) ** 2) / (2 * s**2)), r"e^{-(y-1)^{2}/(2s^{2})}"),
        (sp.exp(-abs(y) / b), r"e^{-|y|/b}"),
        (2 * sp.log(a), r"2\log(a)"),
        (s * sp.tanh(a) * sp.sqrt(b), r"s\sqrt{b}\tanh(a)"),
        (sp.Piecewise((1, y < -1 / b), (2, y < 1 / b), (3, True)),
         r"\begin{cases} 1 & \text{if } y<-1/b \\ 2 & \text{if } {-}1/b\le y<1/b \\ "
         r"3 & \text{if } y\ge 1/b \end{cases}"),
    ],
    ids=["exponent", "quotient of letters", "no dot", "no dots", "sign of an end"],
)  # fmt: skip
def test_a_formula_is_set_as_people_set_it(formula, set_):
    assert latex(layout(formula)) == set_


@pytest.mark.parametrize(
    ("told", "set_"),
    [
        ("log P_Chernoff(ε), log Q_Chernoff(ε) (K′ has no inverse)",
         r"$\log P_{\text{Chernoff}}(\varepsilon)$, "
         r"$\log Q_{\text{Chernoff}}(\varepsilon)$ ($K'$ has no inverse)"),
        ("even: f(y) = f(−y)", r"even: $f(y)=f(-y)$"),
        ("a₊, A₋ (a loss)", r"$a_{+}$, $A_{-}$ (a loss)"),
        ("the moments, tilted by t", "the moments, tilted by $t$"),
        ("(it falls on either side of x = 0)", r"(it falls on either side of $x=0$)"),
        ("bounds |φ(y)| times |y|; I am", r"bounds $|\varphi(y)|$ times $|y|$; I am"),
    ],
)  # fmt: skip
def test_letters_in_words_are_formulas(told, set_):
    assert latex_words(told) == set_


def test_what_a_letter_is_stands_with_the_letter_where_it_stands_above():
    long = sp.Add(*(sp.sin(k * a) * sp.cos(b) for k in range(1, 9)))
    written = latex_blocks([Formulas([equation("η", long, words="= −E_Q ℓ of the finite loss")])])
    assert r"$\eta=-E_{Q}\ell$ of the finite loss" in written


def test_integers_have_a_letter():
    assert latex_words("k ∈ ℤ: ℓ is increasing") == r"$k\in \mathbf{Z}$: $\ell$ is increasing"


def test_a_wide_numerator_stands_behind_its_letters_and_one_dot():
    sum_ = sp.Add(*(a**k * b ** (9 - k) * k for k in range(1, 9)))
    written = latex_blocks([Formulas([equation("m₂", 16 * s * sum_ * sp.exp(-t) / t**5)])])
    assert r"\frac{16s}{t^{5}}" in written
    assert not re.search(r"\\cdot\s*\\cdot", written)
