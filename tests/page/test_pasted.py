"""What a derivation prints by default, whole, and one formula at a time."""

from __future__ import annotations

import shutil
import subprocess

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.page.document import Section, one_legend
from symdp.page.formula import equation, read
from symdp.page.latex import latex_words
from symdp.page.node import text
from symdp.page.sections.loss import _moments_in_time
from symdp.page.sections.series import _regimes
from symdp.page.sections.step_log import step_log


@pytest.mark.slow
def test_the_general_series_stand_behind_all(shell):
    short, whole = shell("derive gaussian").out, shell("derive gaussian --all").out
    for title in ("Saddle-point series", "Edgeworth series"):
        assert f"\n{title}\n" not in short
        assert whole.count(f"\n{title}\n") == 1
    parts, longer = short.split("\n\n"), whole.split("\n\n")
    assert parts[-1].startswith("Symbols\n")
    assert [part for part in parts[:-1] if part not in longer] == []


@pytest.mark.parametrize("more", ["", " --all"])
def test_a_page_has_one_legend_that_explains_a_symbol_once(shell, more):
    shown = shell(f"derive gaussian{more}").out
    assert shown.count("\n  where ") == 1
    legend = " ".join(shown.partition("\n  where ")[2].split())
    symbols = [one.partition(", ")[0] for one in legend.split("; ") if ", " in one]
    assert len(symbols) > 20
    assert len(set(symbols)) == len(symbols)


def test_one_legend_says_where_a_symbol_means_something_else():
    def section(title, **meant):
        lines = tuple(equation(name, sp.S.One) for name in meant)
        return Section("loss", title, lines).explained(meant)

    made = one_legend([section("A", x="an output", t="a tilt"), section("B", x="an argument")])
    assert {text(node): told for node, told in made} == {
        "x": "an output, in “B” an argument",
        "t": "a tilt",
    }
    both = [section("A", x="an output"), section("B", x="an output")]
    assert [told for _, told in one_legend(both)] == ["an output"]


def test_an_index_that_counts_stands_for_all_and_a_law_for_itself():
    lines = tuple(equation(read(name), sp.S.One) for name in ("κ_3", "κ_4", "α_P", "α_Q", "P_t"))
    meant = {"κ_j": "the cumulants", "α_j": "a scale", "P_t": "a moment", "P_j": "a bound"}
    legend = Section("tails", "Tails", lines).explained(meant).legend
    assert [(text(node), told) for node, told in legend] == [
        ("κ_j", "the cumulants"),
        ("α_P, α_Q", "a scale"),
        ("P_t", "a moment"),
    ]


@pytest.mark.quick_cases("gaussian")
@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_one_formula_in_latex_is_one_bare_align(shell, name):
    ran = shell(f"derive {name} --only K --format latex")
    first, *rows, last = ran.out.rstrip("\n").split("\n")
    assert (ran.code, first, last) == (0, r"\begin{align*}", r"\end{align*}")
    assert len(rows) == 2
    assert all(row.startswith("K(t) &= ") for row in rows)
    assert r"\text" not in ran.out
    assert r"\left(t" not in rows[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shift", "held"), [("3", "{1, 2, 3}"), ("2", "{1, 2}"), ("9", "{1, …, 9}")]
)
def test_a_piece_of_whole_numbers_is_a_set(shell, shift, held):
    shown = shell(f"derive discrete_laplace b=1 --sensitivity {shift} --only loss").out
    assert f"\n  k ∈ {held}: ℓ is increasing\n" in shown
    assert "k ∈ (" not in shown
    shown = shell(f"derive discrete_laplace b=1 --sensitivity {shift} --only loss --format latex")
    assert r"$k\in \{1,\ " in shown.out


APART = """
name = "apart"
variable = "x"
support = ["-1/3", "1/3"]
[noise]
density = "{density}"
sensitivity = 1
"""


@pytest.mark.parametrize(
    "text",
    [
        APART.format(density="3 - 9*abs(x)"),
        APART.format(density="9*(1 - 9*x**2)/4"),
        APART.format(density="1").replace('["-1/3", "1/3"]', '["0", "1"]'),
    ],
    ids=["triangular", "Epanechnikov", "uniform"],
)
def test_laws_with_no_output_in_common_have_delta_one_and_nothing_of_a_finite_loss(text):
    shown = symdp.derive(symdp.Mechanism.from_toml(text)).to_text(whole=True)
    assert shown.count("δ = 1 for every ε: the two laws have no output in common\n") == 1
    for none in ("K(t)", "κ", "inf ℓ", "V₁", "Φ", "ℓ is", "not found", "0.0"):
        assert none not in shown
    asked = symdp.derive(symdp.Mechanism.from_toml(text)).to_text(only=("K",))
    assert asked.endswith("\n  δ = 1 for every ε: the two laws have no output in common")


def test_numbers_of_laws_with_no_output_in_common_are_delta_alone(shell, tmp_path):
    path = tmp_path / "apart.toml"
    path.write_text(APART.format(density="3 - 9*abs(x)"), encoding="utf-8")
    ran = shell(f"derive {path} --epsilon 1 -n 3 --only loss")
    assert ran.code == 0
    table = ran.out.partition("δ at ε = 1, n = 3")[2]
    assert "exact δ" in table
    assert table.split()[-1] == "1"
    assert "not known" not in table


@pytest.mark.slow
def test_laws_with_no_output_in_common_are_certified_at_one(shell, tmp_path):
    path = tmp_path / "apart.toml"
    path.write_text(APART.format(density="3 - 9*abs(x)"), encoding="utf-8")
    composed = symdp.compose(symdp.load(path), n=3)
    for epsilon in (0, 1, 50):
        proved = composed.certify(epsilon)
        assert 1 - 1e-8 < proved.lower <= 1 <= proved.upper < 1 + 1e-8
    ran = shell(f"report {path} --delta 1e-5 -n 3 --output {tmp_path / 'page.html'}")
    assert ran.code == 0, ran.err


def test_laws_that_meet_keep_their_page():
    shown = symdp.derive(
        symdp.Mechanism.from_toml(APART.format(density="1").replace("1/3", "1/2"))
    ).to_text()
    assert "δ = 1 for every ε" in shown  # a uniform law that ends where the other one begins
    wide = symdp.derive(
        symdp.Mechanism.from_toml(APART.format(density="1/2").replace("1/3", "1"))
    ).to_text()
    assert "δ = 1 for every ε" not in wide
    assert "K(t)" in wide


BETA = """
name = "betas"
variable = "x"
support = [0, 1]
dominates = "given"
[parameters]
a = "positive"
b = "positive"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "q", "written"),
    [
        ((1, 0), (0, 1), "ℓ(x) = log(bx/(a·(1 − x)))"),
        ((1, 0), (0, 0), "ℓ(x) = log(x·(a + b)/a)"),
        ((1, 1), (0, 0), ""),
        ((2, 0), (0, 1), ""),
    ],
)
def test_the_loss_of_a_beta_pair_has_no_gamma_function(p, q, written):
    def law(more, other):
        return (
            f"x**(a + {more} - 1)*(1 - x)**(b + {other} - 1)*gamma(a + b + {more + other})"
            f"/(gamma(a + {more})*gamma(b + {other}))"
        )

    text = BETA + f'[pair]\nP = "{law(*p)}"\nQ = "{law(*q)}"\n'
    found = symdp.derive(symdp.Mechanism.from_toml(text))
    assert not found.loss.has(sp.gamma)
    assert written in found.to_text(only=("loss",))
    x, (a, b) = found.variable, found.mechanism.parameters.values()
    for place in ("0.03", "0.5", "0.98"):
        at = {x: mpmath.mpf(place), a: mpmath.mpf("1.7"), b: mpmath.mpf("0.6")}
        mine = mpmath.mpf(sp.N(found.loss.subs(at), 30))
        densities = []
        for more, other in (p, q):
            first, second = at[a] + more, at[b] + other
            power = at[x] ** (first - 1) * (1 - at[x]) ** (second - 1)
            densities.append(power / mpmath.beta(first, second))
        assert abs(mine - mpmath.log(densities[0] / densities[1])) < 1e-12


@pytest.mark.parametrize(
    ("told", "set_"),
    [
        ("in the tail, r > κ₁", r"in the tail, $r>\kappa_{1}$"),
        ("log E_P e^(λ(ℓ − Eℓ)) ≤ s²λ² for every λ",
         r"$\log E_{P}e^{\lambda(\ell-E\ell)}\le s^{2}\lambda^{2}$ for every $\lambda$"),
        ("x ∈ (−∞, ∞): ℓ is increasing", r"$x\in (-\infty,\ \infty)$: $\ell$ is increasing"),
        ("my_noise, 50% & \\x {a}", r"my\_noise, 50\% \& \textbackslash{}x \{a\}"),
        ("ξ√(n", r"$\xi$$\surd $(n"),  # a bracket is missing: sign by sign
    ],
)  # fmt: skip
def test_a_formula_in_a_sentence_is_set_as_one_in_latex(told, set_):
    assert latex_words(told) == set_


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex")
@pytest.mark.parametrize("name", ["staircase"])
def test_no_line_of_a_page_is_wider_than_it(name, tmp_path):
    found = symdp.derive(getattr(symdp.mechanisms, name)).to_latex()
    head = "\\documentclass{article}\\usepackage{amsmath}\\usepackage[T1]{fontenc}\n"
    page = f"{head}\\begin{{document}}\n{found}\n\\end{{document}}\n"
    (tmp_path / "page.tex").write_text(page, encoding="utf-8")
    ran = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "page.tex"],
        cwd=tmp_path, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0
    assert "Overfull" not in ran.stdout.decode("latin-1")


def test_the_walk_through_of_laws_with_nothing_in_common_is_one_sentence():
    lines = step_log(
        symdp.derive(symdp.Mechanism.from_toml(APART.format(density="3 - 9*abs(x)")))
    ).lines
    assert [line.words for line in lines] == [
        "δ = 1 for every ε: the two laws have no output in common; no loss is finite, K = −∞, and "
        "neither direction is larger"
    ]


def test_the_walk_through_says_integrals_whose_sum_is_the_generating_function():
    """M(t) of Laplace noise of scale 2 is ((t + 1)e^{t/2} + t e^{−(t + 1)/2})/(2t + 1)."""
    lines = step_log(symdp.derive(symdp.mechanisms.laplace(b=2))).lines
    values = [line.expression for line in lines if line.left and line.left.text == "value"]
    (tilt,) = values[0].free_symbols
    at = sp.Rational(1, 3)
    with_moment = (at + 1) * sp.exp(at / 2) + at * sp.exp(-(at + 1) / 2)
    assert len(values) == 3
    assert float(sum(values).subs(tilt, at)) == pytest.approx(float(with_moment / (2 * at + 1)))


X = sp.Symbol("x", real=True)
QUARTERS = [sp.Rational(part, 4) for part in range(4)]
WITH_LOST_MASS = symdp.Mechanism.from_pair(
    [QUARTERS[2], QUARTERS[1], QUARTERS[1]], [QUARTERS[1], QUARTERS[3], 0], X, {"points": [0, 1, 2]}
)


def test_moments_of_the_loss_are_those_of_its_law():
    """The loss of Gaussian noise, σ = 2, has mean 1/8 and variance 1/4; an infinite one none."""
    mean, variance = sp.Rational(1, 8), sp.Rational(1, 4)
    assert _moments_in_time(symdp.derive(symdp.mechanisms.gaussian(sigma=2))) == [
        mean,
        mean**2 + variance,
        mean**3 + 3 * mean * variance,
    ]
    assert _moments_in_time(symdp.derive(WITH_LOST_MASS)) == []


@pytest.mark.parametrize(
    ("mechanism", "left"),
    [
        (symdp.mechanisms.gaussian(sigma=2), "log δ"),
        (WITH_LOST_MASS, "log(δ − 1 + (1 − δ_∞)^n)"),
    ],
    ids=["none", "a quarter"],
)
def test_many_steps_name_the_part_of_delta_that_has_losses(mechanism, left):
    """δ = 1 − (1 − δ∞)ⁿ + (1 − δ∞)ⁿ δ of the finite losses."""
    lines = _regimes(symdp.derive(mechanism), substitute=False)
    names = [text(line.left) for line in lines if line.left is not None]
    assert {name for name in names if name.startswith("log")} - {"log(1 − δ)"} == {left}
