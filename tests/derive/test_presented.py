"""Formulas as they are read: each rewriting against numbers, and what must stay as it is."""

import math
from itertools import pairwise

import mpmath
import pytest
import sympy as sp
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

import symdp
from symdp.derive import presented as rules
from symdp.derive.presented import presented
from symdp.derive.tails.sub_gaussian import loss_width
from symdp.page.formula import finished, layout, read
from symdp.page.node import in_words, text
from symdp.page.sections.loss import _closed_at_zero as closed_at_zero
from symdp.page.sections.loss import cumulant_lines, loss_lines, mechanism_section
from symdp.page.text import formula_lines

A, B, T, U = sp.symbols("a b t u", positive=True)
X = sp.Symbol("x", real=True)
K = sp.Symbol("k", integer=True)
ROOT = sp.sqrt(1 + 4 * A**2)


@pytest.mark.parametrize(
    ("written", "short"),
    [
        (sp.exp(B * sp.log(A)) / A**B, sp.S.One),
        (sp.Sum(A**K, (K, 3, 3)), A**3),
        (sp.exp(U) * sp.exp(T * U), sp.exp(U * (T + 1))),
        ((2 * sp.sqrt(A) + 2) / (2 - 2 * sp.exp(U)), (sp.sqrt(A) + 1) / (1 - sp.exp(U))),
        (1 - sp.tanh(T) ** 2, sp.cosh(T) ** -2),
        (sp.log((ROOT + 1) / (ROOT - 1)), 2 * sp.asinh(1 / (2 * A))),
        (sp.log((A**2 + (ROOT - 1) ** 2 / 4) / (A**2 + (ROOT + 1) ** 2 / 4)),
         -2 * sp.asinh(1 / (2 * A))),
        (B * sp.log(2 * A) - B * sp.log(2), B * sp.log(A)),
        (sp.log(3) - 2 * sp.log(2), sp.log(sp.Rational(3, 4))),
        (A - sp.log(B) / 2 - sp.log(sp.pi) / 2 - sp.log(2) / 2, A - sp.log(2 * sp.pi * B) / 2),
        (2 * sp.log(2 * B + 1) - 2 * sp.log(B) - 2 * sp.log(2) + A,
         A + 2 * sp.log((2 * B + 1) / (2 * B))),
        (sp.log(2 * sp.erf(A) + 2 * B) - sp.log(2 * T + 2 * U),
         sp.log(sp.erf(A) + B) - sp.log(T + U)),
        (sp.tanh(B / 2) / (1 - sp.exp(-B)), 1 / (1 + sp.exp(-B))),
        (A * (sp.tanh(B) - 1) * (sp.tanh(B) + 1), -A * sp.cosh(B) ** -2),
        (4 * sp.tanh(B) ** 2 - 3 * sp.tanh(B) ** 4 - 1,
         (3 * sp.tanh(B) ** 2 - 1) * sp.cosh(B) ** -2),
        (sp.Max(sp.exp(A) / 4, sp.exp(-B) / 4), sp.Max(sp.exp(A), sp.exp(-B)) / 4),
        ((X - A) ** T * (X - A) ** (-T - 1), 1 / (X - A)),
        (2 * B * sp.asinh(A) + 2 * sp.asinh(A), sp.Mul(2, B + 1, sp.asinh(A), evaluate=False)),
        (sp.exp((B * sp.log(A + 1) + T) / B - U), (A + 1) * sp.exp(T / B - U)),
    ],
)  # fmt: skip
def test_a_formula_becomes_the_short_one_of_the_same_value(written, short):
    found = presented(written)
    assert found == short
    values = {
        A: sp.Rational(3, 7),
        B: sp.Rational(5, 3),
        T: sp.Rational(2, 9),
        U: sp.Rational(4, 5),
        X: sp.Rational(8, 5),
    }
    assert abs((found - written).subs(values).evalf(30)) < 1e-25


@pytest.mark.parametrize(
    "kept",
    [
        sp.log(X**2) - 2 * sp.log(X),  # x may be negative
        sp.Abs(X - A),
        sp.log(1 / (X - A)),
        sp.sqrt((X - A) ** 2),
        sp.log(A + ROOT),  # no unit
    ],
)
def test_what_hangs_on_an_open_sign_stays(kept):
    assert presented(kept) == kept


def test_a_rule_that_is_wrong_changes_nothing(monkeypatch):
    wrong = (*rules._RULES, (sp.cosh, lambda node: sp.sinh(node.args[0])))
    monkeypatch.setattr(rules, "_RULES", wrong)
    rules.presented.cache_clear()
    assert presented(sp.cosh(T + 1)) == sp.cosh(T + 1)
    rules.presented.cache_clear()


SEVENTH = """
name = "Pearson VII"
variable = "x"
support = ["-oo", "oo"]
[parameters]
a = "positive"
[noise]
density = "2*a**3/(pi*(a**2 + x**2)**2)"
"""


def test_the_largest_loss_of_pearson_vii_is_an_area_sine():
    found = symdp.derive(symdp.Mechanism.from_toml(SEVENTH))
    low, high = found.loss_range
    a = next(iter(high.free_symbols))
    assert high == 4 * sp.asinh(1 / (2 * a)) == -low
    seen = minimize_scalar(lambda x: 2 * math.log((0.49 + (x - 1) ** 2) / (0.49 + x**2)))
    assert float(high.subs(a, 0.7)) == pytest.approx(-float(seen.fun), rel=1e-9)
    assert text(layout(high)) == "4·arsinh(1/(2a))"


@pytest.mark.slow
def test_a_cumulant_without_a_formula_is_an_integral():
    found = symdp.derive(symdp.Mechanism.from_toml(SEVENTH)(a=1))
    first, second = found.cumulant(1), found.cumulant(2)
    assert first.has(sp.Integral)
    assert not first.atoms(sp.Function("m_1")) | second.atoms(sp.core.function.AppliedUndef)

    def moment(j, t):
        def inside(x):
            loss = 2 * mpmath.log((1 + x**2) / (1 + (x - 1) ** 2))
            return float(loss**j * mpmath.exp(t * loss) * 2 / (mpmath.pi * (1 + (x - 1) ** 2) ** 2))

        return sum(quad(inside, *ends)[0] for ends in ((-60, 0), (0, 1), (1, 60)))

    def value(formula, t):
        at = formula.subs(found.cgf.tilt, sp.Float(t))
        numbers = {i: sp.Float(_integral(i)) for i in at.atoms(sp.Integral)}
        return float(at.xreplace(numbers))

    for t in (0.0, 0.5):
        mean = moment(1, t) / moment(0, t)
        assert value(first, t) == pytest.approx(mean, rel=1e-4)
        spread = moment(2, t) / moment(0, t) - mean**2
        assert value(second, t) == pytest.approx(spread, rel=1e-4)
    shown = "\n".join(line for own in cumulant_lines(found, 1) for line in formula_lines(own))
    assert shown == "K′(t) = e^(−K(t))·∫_(−∞)^∞ ℓ(x)P(x)^(1 + t)Q(x)^(−t) dx"


def _integral(own):
    x, low, high = own.limits[0]
    inside = sp.lambdify(x, own.function, "mpmath")
    ends = [max(low, -60), 0, 1, min(high, 60)]
    ends = sorted({float(end) for end in ends if low <= end <= high})
    return sum(quad(lambda x: float(inside(x)), *pair)[0] for pair in pairwise(ends))


def test_the_cases_of_a_list_of_losses_hold_in_any_order():
    law = symdp.derive(symdp.mechanisms.k_ary_randomized_response).pld_cdf
    epsilon, s = sp.Symbol("epsilon_0", positive=True), law.loss
    for form in (law.expression, law.expression.xreplace({s: s})):  # as given, as SymPy turns it
        shown = [text(case.parts[1]) for case in layout(form).parts]
        assert shown == ["s < −ε₀", "−ε₀ ≤ s < 0", "0 ≤ s < ε₀", "s ≥ ε₀"]
    turned = sp.Piecewise((0, epsilon < -s), (1, True), evaluate=False)
    assert text(layout(turned).parts[0].parts[1]) == "s < −ε₀"


@pytest.mark.slow
def test_a_loss_that_one_value_of_a_parameter_stops_says_so():
    found = symdp.derive(symdp.mechanisms.sparse_histogram)
    lines = [f"{text(one.left)}: {one.words}" for one in loss_lines(found) if one.left]
    assert "sup ℓ: for j ≠ 0; else the loss is constant" in lines
    assert loss_width(found) == sp.oo


@pytest.mark.slow
def test_cumulants_are_in_their_shortest_form():
    found = symdp.derive(symdp.mechanisms.k_ary_randomized_response).cumulant_at(2, 0)
    k, e = sorted(found.free_symbols, key=str)[::-1]
    wanted = e**2 * (k * sp.exp(e) + k + 2 * sp.exp(e) - 2) / (k + sp.exp(e) - 1) ** 2
    assert sp.simplify(found - wanted) == 0
    assert sp.count_ops(found) <= sp.count_ops(wanted)
    lines = list(closed_at_zero(symdp.derive(symdp.mechanisms.gumbel)))
    assert next(line.expression for line in lines if line.words == "skewness") == -2


@pytest.mark.slow
def test_a_range_that_was_not_found_is_not_called_unbounded():
    x, width = sp.Symbol("x", real=True), sp.Symbol("g", positive=True)
    law = sp.Piecewise((1 / (1 + x**2 / width**2), sp.Abs(x) < 3), (0, True))
    found = symdp.derive(symdp.Mechanism.additive(law, x, support=(-3, 3), normalize=True))
    assert found.loss_range is None
    assert found.tails["hoeffding_p"].reason == "the range of the loss was not found"


def test_signs_stand_inside():
    def of(e):
        return text(layout(e))

    assert of(-(A - 1) * B) == "b·(1 − a)"
    assert of(-(A - B) / (X - 1)) in ("(b − a)/(x − 1)", "(a − b)/(1 − x)")
    assert of(X - (A - 1) * B) == "x − b·(a − 1)"
    assert of(-(A + B) * X) == "−x·(a + b)"
    assert of(sp.factorial(K - 1)) == "(k − 1)!"
    assert of(sp.Abs(sp.Symbol("x")) ** 3) == "|x|³"
    assert text(read("{}(a + b)", layout(sp.binomial(A, K)))) == "C(a, k)(a + b)"


def test_sentences_hold_no_sympy():
    raw = "between -oo and sqrt(x) - 2*sigma**2, epsilon_0 of the gamma function"
    assert in_words(raw) == "between −∞ and √x − 2·σ², ε₀ of the gamma function"


def test_a_factor_stands_in_the_cases_and_a_gap_is_named():
    law = sp.Piecewise((0, sp.Abs(X) < 1), (sp.exp(-sp.Abs(X)), True))
    found = symdp.derive(
        symdp.Mechanism.additive(law, X, sensitivity=sp.Rational(1, 2), normalize=True)
    )
    law, _ = (line for line in finished(mechanism_section(found)).lines if line.right)
    assert [text(part) for case in law.right.parts for part in case.parts] == [
        "0", "|x| < 1", "e^(1 − |x|)/2", "|x| ≥ 1",
    ]  # fmt: skip
    told = [line.words for line in loss_lines(found)]
    assert "ℓ has no value on (−1/2, 1), where P = Q = 0" in told


def test_a_part_has_one_name_in_a_section_and_is_explained_once():
    found = symdp.derive(symdp.mechanisms.staircase)
    section = finished(mechanism_section(found))
    shown = [part for line in section.shown() for part in line.where]
    names = [text(name) for name, _ in shown]
    assert len(names) == len(set(names)) > 2
    assert sum(len(line.where) for line in section.lines) > len(shown)  # alone, each says its own


@pytest.mark.parametrize(
    ("name", "values", "density"),
    [
        ("laplace", {"b": "3/2"}, lambda x: mpmath.exp(-abs(x) / 1.5) / 3),
        ("logistic", {"s": "5/4"}, lambda x: mpmath.sech(x / 2.5) ** 2 / 5),
    ],
)
def test_of_mirrored_laws_the_tilt_at_a_fixed_epsilon_is_minus_a_half(name, values, density):
    """K(t) = K(−1 − t): log(1 − δ) is elementary, with ∫ √(PQ) and the variance at −1/2."""
    d = symdp.derive(getattr(symdp.mechanisms, name)(**values)).cases[0]
    _, fixed, _ = d.asymptotics(0, substitute=True)
    ends = [-mpmath.inf, 0, 0.5, 1, mpmath.inf]

    def moment(power):
        def inside(x):
            p, q = density(x - 1), density(x)
            return mpmath.sqrt(p * q) * mpmath.log(p / q) ** power

        return mpmath.quad(inside, ends)

    n = 40
    epsilon = mpmath.mpf(7) / 10
    mass = moment(0)
    square = moment(2) / mass
    truth = n * mpmath.log(mass) + epsilon / 2 - mpmath.log(mpmath.pi * n * square / 8) / 2
    numbers = {"n": n, "epsilon": sp.Rational(7, 10)}
    formula = fixed.log_delta
    put = formula.subs({symbol: numbers[symbol.name] for symbol in formula.free_symbols})
    assert abs(mpmath.mpmathify(put.evalf(20)) - truth) < 1e-12


def test_a_loss_of_a_log_concave_density_is_monotone_by_that_fact():
    box = symdp.Mechanism.additive((sp.erf(X + 3) - sp.erf(X - 3)) / 12, X, 1)
    words = [line.words for line in loss_lines(symdp.derive(box).cases[0])]
    assert "ℓ does not fall, as the density is log-concave" in words
