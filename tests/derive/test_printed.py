"""Every printed formula, read back from its text, against integrals over the printed densities."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from printed_formula import value
from scipy.integrate import quad

import symdp
from symdp.cli.job import declared
from symdp.derive import derive
from symdp.derive.printed import Derivation, plain
from symdp.page.document import token
from symdp.page.sections.series import composed_section
from symdp.page.text import formula_lines

mp = mpmath.mp
BETA = """
name = "beta"
variable = "x"
support = [0, 1]
[pair]
P = "12*x**2*(1 - x)"
Q = "6*x*(1 - x)"
"""
QUARTIC = """
name = "quartic"
variable = "x"
support = ["-oo", "oo"]
[noise]
density = "exp(-x**4)/(2*gamma(5/4))"
sensitivity = 1
"""
# What is derived, values of its parameters, where P and Q live and have kinks, and losses inside.
CASES: dict[str, tuple[Callable[[], Any], dict[str, float], list[float], tuple[float, ...]]] = {
    "gaussian": (
        lambda: symdp.mechanisms.gaussian, {"σ": 1.37}, [-40, -6, 0.5, 7, 40], (-0.3, 0.8),
    ),
    "sampled gaussian": (
        lambda: declared(symdp.mechanisms.gaussian, "q", None).subsample("poisson", "q"),
        {"σ": 1.37, "q": 0.15}, [-40, -6, 0.5, 7, 40], (-0.05, 0.4),
    ),
    "laplace": (lambda: symdp.mechanisms.laplace, {"b": 1.83}, [-150, 0, 1, 150], (-0.2, 0.4)),
    "logistic": (lambda: symdp.mechanisms.logistic, {"s": 0.71}, [-70, 0, 1, 70], (-0.9, 0.6)),
    "beta": (lambda: symdp.Mechanism.from_toml(BETA), {}, [0, 0.5, 1], (-1.2, 0.3)),
    "quartic": (lambda: symdp.Mechanism.from_toml(QUARTIC), {}, [-6, 0, 1, 6], (-0.9, 0.6)),
}  # fmt: skip
N, EPS, DELTA = 7, 0.9, 1e-3


class Page:
    """A printed page: formulas by their left sides, and the truth from its own densities."""

    def __init__(self, name: str, sections: Callable[[Any], list[Any]] = Derivation.sections):
        make, self.numbers, self.ends, self.losses = CASES[name]
        self.numbers = {k: mpmath.mpf(str(v)) for k, v in self.numbers.items()}
        self.d = derive(make())
        self.variable = token_of(self.d.pld_density.loss)
        self.lines: dict[str, tuple[list[str], dict[str, str]]] = {}
        for section in sections(self.d):
            for line in section.lines:
                if line.right is not None and line.expression is not None:
                    first, *others = formula_lines(line)
                    left, right = re.split(r" [=≈] ", first, maxsplit=1)
                    cases = [right.partition("    ")[0] if line.right.kind != "cases" else right]
                    parts = {}
                    for other in others:
                        named = re.match(r"  (\w+) = (.*)", other)
                        if named and line.where:
                            parts[named.group(1)] = named.group(2)
                        elif line.right.kind == "cases":
                            cases.append(other.strip())
                    self.lines.setdefault(left, (cases, parts))

    def __contains__(self, left: str) -> bool:
        return left in self.lines

    def at(self, left: str, **names: Any) -> Any:
        """What a printed formula comes to."""
        cases, parts = self.lines[left]
        known = self.numbers | names
        for name, formula in parts.items():
            known[name] = value(formula, known)
        for case in cases:
            formula, _, condition = case.partition("  if ")
            if not condition or holds(condition, known):
                return value(formula.strip(), known)
        raise AssertionError(f"no case of {left} holds")

    def law(self, name: str, x: Any) -> Any:
        """P or Q at x, from the page."""
        known = {}
        for index in "₀₁":
            if f"f{index}(x)" in self:
                known[f"f{index}"] = lambda y, index=index: self.at(f"f{index}(x)", x=y)
        return self.at(f"{name}(x)", x=x, **known)

    def integral(self, f: Callable[[Any, Any, Any], Any]) -> Any:
        """∫ f(P, Q, log(P/Q)) dx."""

        def inside(x: Any) -> Any:
            p, q = self.law("P", x), self.law("Q", x)
            return mpmath.mpf(0) if p <= 0 or q <= 0 else f(p, q, mpmath.log(p / q))

        return mpmath.quad(inside, self.ends)

    def cumulants(self, t: Any) -> list[Any]:
        """K, K′, …, K⁗ at a tilt from integrals."""
        mass = self.integral(lambda p, q, s: p * mpmath.exp(t * s))
        mean = self.integral(lambda p, q, s: p * mpmath.exp(t * s) * s) / mass
        two, three, four = (
            self.integral(lambda p, q, s, k=k: p * mpmath.exp(t * s) * (s - mean) ** k) / mass
            for k in (2, 3, 4)
        )
        return [mpmath.log(mass), mean, two, three, four - 3 * two**2]


def token_of(symbol: sp.Symbol) -> str:
    from symdp.page.formula import layout

    return token(layout(symbol))


def holds(condition: str, known: dict[str, Any]) -> bool:
    sides = re.split(r"\s*([<≤>≥])\s*", condition)
    order = {"<": lambda a, b: a < b, "≤": lambda a, b: a <= b,
             ">": lambda a, b: a > b, "≥": lambda a, b: a >= b}  # fmt: skip
    numbers = [value(side, known) for side in sides[::2]]
    return all(
        order[sign](a, b) for a, sign, b in zip(numbers, sides[1::2], numbers[1:], strict=False)
    )


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    return {}


def page_of(pages: dict[str, Page], name: str) -> Page:
    if name not in pages:
        pages[name] = Page(name)
    return pages[name]


def close(a: Any, b: Any, error: float = 1e-9) -> bool:
    return bool(abs(a - b) <= error * (1 + abs(b)))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_loss_and_its_law_are_those_of_the_printed_densities(pages, name):
    page = page_of(pages, name)
    assert close(page.integral(lambda p, q, s: p), 1)
    for x in (0.11, 0.5, 0.93):
        assert close(page.at("ℓ(x)", x=x), mpmath.log(page.law("P", x) / page.law("Q", x)))
    s, inverse = page.variable, f"ℓ⁻¹({page.variable})"
    for loss in page.losses:
        if inverse in page:
            place = page.at(inverse, **{s: loss})
            assert close(page.at("ℓ(x)", x=place), loss)
            below = mpmath.quad(
                lambda x: page.law("P", x), [e for e in page.ends if e < place] + [place]
            )
            if not page.d.atoms:
                assert close(page.at(f"F({s})", **{s: loss}), below)
        if f"ω({s})" in page:
            slope = mpmath.diff(lambda y: page.at(f"F({s})", **{s: y}), loss)
            assert close(page.at(f"ω({s})", **{s: loss}), slope)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_cgf_and_its_cumulants_are_integrals(pages, name):
    page = page_of(pages, name)
    for t in (mpmath.mpf("0.37"),):
        truth = page.cumulants(t)
        for mark, true in zip(("", "′", "″", "‴"), truth, strict=False):
            if f"K{mark}(t)" in page and page.d.cgf.expression is not None:
                assert close(page.at(f"K{mark}(t)", t=t), true), mark
    truth = page.cumulants(mpmath.mpf(0))
    for index, true in zip("₁₂₃₄", truth[1:], strict=True):
        if f"κ{index}" in page:
            assert close(page.at(f"κ{index}"), true), index
    if "κ₃/κ₂^(3/2)" in page:
        assert close(page.at("κ₃/κ₂^(3/2)"), truth[3] / truth[2] ** 1.5)
        assert close(page.at("κ₄/κ₂²"), truth[4] / truth[2] ** 2)
    if "e^(K(t))" in page:
        for t in range(4):
            true = page.integral(lambda p, q, s, t=t: p * mpmath.exp(t * s))
            assert close(page.at("e^(K(t))", t=t), true)


@pytest.mark.slow
def test_leading_terms_in_the_rate_are_those_of_small_rates(pages):
    page = page_of(pages, "sampled gaussian")
    (cumulants,) = (s for s in page.d.sections() if s.key == "cumulants")
    leading = dict(
        line.split(" = ")
        for own in cumulants.lines
        for line in formula_lines(own)
        if " + O(q" in line
    )
    outer, page.numbers = page.numbers, page.numbers | {"q": mpmath.mpf("1e-4")}
    truth = page.cumulants(mpmath.mpf(0))
    for index, true in zip("₁₂", truth[1:], strict=False):
        found = value(leading[f"κ{index}"].partition(" + O(")[0], page.numbers)
        assert close(found / true, 1, 1e-3), index
    page.numbers = outer
    assert set(leading) == {f"κ{index}" for index in "₁₂₃₄"}


@pytest.mark.quick_cases("gaussian")
@pytest.mark.parametrize("name", [n for n in CASES if n not in ("sampled gaussian", "quartic")])
def test_the_corrections_of_a_mechanism_are_those_of_its_integrals(pages, name):
    page, t = page_of(pages, name), mpmath.mpf("0.83")
    truth = page.cumulants(t)
    f = [
        N * k + (-1) ** j * mpmath.factorial(j - 1) * (t**-j + (1 + t) ** -j) if j else 0
        for j, k in enumerate(truth)
    ]
    f[0] = N * truth[0] - EPS * t - mpmath.log(t) - mpmath.log(1 + t)
    rho3, rho4 = f[3] / f[2] ** 1.5, f[4] / f[2] ** 2
    known = {"t": t, "n": N, "ε": EPS}
    for label, true in (("F₀", f[0]), ("F₂", f[2]), ("F₃", f[3]), ("F₄", f[4]), ("ρ₃", rho3),
                        ("ρ₄", rho4)):  # fmt: skip
        if label in page:
            assert close(page.at(label, **known), true), label
    assert "F₂" in page


def test_the_general_corrections_are_those_that_people_print():
    numbers = {f"ρ{k}": mpmath.mpf(v) for k, v in zip("₃₄₅₆", (0.3, -0.7, 1.1, 0.9), strict=True)}
    numbers |= {f"λ{k}": mpmath.mpf(v) for k, v in zip("₃₄₅", (0.4, -0.2, 0.6), strict=True)}
    numbers |= {
        f"He{k}": mpmath.mpf(v) for k, v in zip("₂₃₄₅₆₈", (2, 3, 5, 7, 11, 13), strict=True)
    }
    text = derive(symdp.mechanisms.gaussian).show("series", order=3)
    text = text.partition("For this mechanism")[0]
    printed = {
        m.group(1): m.group(2).partition("    ")[0]
        for m in re.finditer(r"^  ([ce][₁₂₃]) = (.*)$", text, re.MULTILINE)
    }
    expected = {
        "c₁": "(3ρ₄ − 5ρ₃²)/24",
        "c₂": "(385ρ₃⁴ − 630ρ₃²ρ₄ + 105ρ₄² + 168ρ₃ρ₅ − 24ρ₆)/1152",
        "e₁": "λ₃He₂/6",
        "e₂": "(3λ₄He₃ + λ₃²He₅)/72",
        "e₃": "(54λ₅He₄ + 45λ₃λ₄He₆ + 5λ₃³He₈)/6480",
    }
    for label, formula in expected.items():
        assert close(value(printed[label], numbers), value(formula, numbers), 1e-12), label


@pytest.mark.parametrize("name", ["gaussian"])
def test_the_composed_delta_of_one_step_is_the_integral(pages, name):
    page = page_of(pages, name)
    page.ends = sorted([*page.ends, page.at("ℓ⁻¹(s)", s=mpmath.mpf(EPS))])
    true = page.integral(lambda p, q, s: max(0, p - mpmath.exp(EPS) * q))
    assert close(page.at("δ(ε)", n=1, ε=mpmath.mpf(EPS)), true, 1e-12)


@pytest.mark.quick_cases("gaussian")
@pytest.mark.parametrize("name", ["gaussian", "laplace", "logistic"])
def test_epsilon_of_many_steps_is_its_series_in_the_cumulants(pages, name):
    page, z = page_of(pages, name), mpmath.mpf("3.09")
    _, k1, k2, k3, _ = page.cumulants(mpmath.mpf(0))
    n = 400
    true = n * k1 + z * mpmath.sqrt(n * k2) + (z**2 - 1) * k3 / (6 * k2) - 1
    assert close(page.at("ε(n, δ)", n=n, z_δ=z), true)


def test_a_legend_names_exactly_the_symbols_of_its_section(pages):
    for name in ("gaussian", "sampled gaussian"):
        for section in page_of(pages, name).d.sections():
            names = [token(node).split(", ") for node, _ in section.legend]
            told = {name for listed in names for name in listed}
            for label in section.symbols():
                base = re.match(r"[^\W\d_₀-₉₋₊]+", label)
                assert told & {label, f"{base.group() if base else label}_j"}, label
            assert len(told) == sum(map(len, names))


def case_of(page: Page, left: str, **names: object) -> object:
    """What a line comes to whose cases ask for k = 0 or k = n."""
    cases, _ = page.lines[left]
    known = page.numbers | names
    for case in cases:
        formula, _, condition = case.partition("  if ")
        if condition:
            first, last = condition.split(" = ")
            if value(first, known) != value(last, known):
                continue
        return value(formula.replace("otherwise", "").strip(), known)
    raise AssertionError(left)


@pytest.mark.slow_cases("1-logistic", "2-logistic", "5-logistic", "9-logistic")
@pytest.mark.parametrize("name", ["laplace", "logistic"])
@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_the_composed_delta_is_the_printed_finite_sum(pages, name, count):
    if f"{name} composed" not in pages:  # this section alone, where the whole page takes seconds
        pages[f"{name} composed"] = Page(name, lambda d: [composed_section(d)])
    page = pages[f"{name} composed"]
    parameter = {"laplace": "b", "logistic": "s"}[name]
    steps = symdp.compose(
        getattr(symdp.mechanisms, name)(**{parameter: float(page.numbers[parameter])}), count
    )
    for epsilon in (-0.4, 0.2, 0.9):
        total = mpmath.mpf(0)
        for k in range(count + 1):
            known = {"n": count, "k": k, "ε": mpmath.mpf(epsilon)}
            if page.at("b_k", **known) > epsilon:
                with mp.workdps(40):
                    series = mpmath.taylor(
                        lambda w, known=known: page.at("g_k(w)", w=w, **known), 0, count - 1
                    )
                residues = case_of(page, "r₀", **known) + case_of(page, "r₁", **known)
                total += mpmath.binomial(count, k) * (residues + series[count - 1])
        # The default route integrates densities or a contour and knows of no residues.
        assert float(total) == pytest.approx(
            steps.delta(epsilon, direction="remove").delta, rel=1e-9, abs=1e-13
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "laplace", "logistic"])
def test_tail_constants_are_their_definitions(pages, name):
    page, n = page_of(pages, name), 40
    epsilon = 3 + n * page.cumulants(mpmath.mpf(0))[1]
    asked = {"n": n, "ε": epsilon}

    def mean_under_q() -> object:
        return page.integral(lambda p, q, s: q * s)

    assert mpmath.almosteq(page.at("η"), -mean_under_q(), 1e-10)
    mean = page.integral(lambda p, q, s: p * s)
    log_sub = -((epsilon - n * mean) ** 2) / (2 * n * page.at("s_P²"))
    assert mpmath.almosteq(page.at("log P_sub(ε)", **asked), log_sub, 1e-9)
    log_q = -((epsilon - n * mean_under_q()) ** 2) / (2 * n * page.at("s_Q²"))
    assert mpmath.almosteq(page.at("log Q_sub(ε)", **asked), log_q, 1e-9)
    for u in (-2.0, -0.3, 0.4, 1.7):  # what s² promises
        spread = page.integral(lambda p, q, s, u=u: p * mpmath.exp(u * (s - mean)))
        assert mpmath.log(spread) <= page.at("s_P²") * u**2 / 2 * (1 + mpmath.mpf("1e-12"))
    if "log P_Hoeffding(ε)" in page:
        formula = -2 * (epsilon - n * mean) ** 2 / (n * page.at("τ") ** 2)
        assert mpmath.almosteq(page.at("log P_Hoeffding(ε)", **asked), formula, 1e-9)
    if "log P_Chernoff(ε)" in page:
        place = mpmath.findroot(lambda t: n * page.cumulants(t)[1] - epsilon, 0.2)
        least = n * page.cumulants(place)[0] - place * epsilon
        assert mpmath.almosteq(page.at("log P_Chernoff(ε)", **asked), least, 1e-8)
    if "P_t" in page:
        t = mpmath.mpf("0.3")
        mass, middle = mpmath.exp(page.cumulants(t)[0]), page.cumulants(t)[1]
        third = page.integral(lambda p, q, s: p * mpmath.exp(t * s) * abs(s - middle) ** 3) / mass
        assert mpmath.almosteq(page.at("P_t", t=t), third, 1e-3)  # the kink is within a panel


SIGMA, STEPS = 1.3, 2


def normal(x: float, mean: float = 0.0) -> float:
    return math.exp(-((x - mean) ** 2) / (2 * SIGMA**2)) / (SIGMA * math.sqrt(2 * math.pi))


def moment(power: int, u: float = 0.0) -> float:
    """E_Q W^power e^{−uW}, W = P/Q from the two normal laws."""

    def inside(x: float) -> float:
        ratio = normal(x, 1.0) / normal(x)
        return normal(x) * ratio**power * math.exp(-u * ratio)

    return quad(inside, -14, 18, epsabs=1e-13, limit=200)[0]


@pytest.mark.slow
def test_an_epoch_of_random_allocation_is_that_of_its_definition():
    drawn = symdp.mechanisms.gaussian.subsample("random_allocation", steps=STEPS)
    text = derive(drawn).to_text(width=400)
    lines = dict(re.findall(r"^  (.*?) = (.*)$", text, re.MULTILINE))
    sigma = {"σ": mpmath.mpf(str(SIGMA))}
    for x in (-1.1, 0.4, 2.0):
        ratio = normal(x, 1.0) / normal(x)
        assert float(value(lines["W(x)"], sigma | {"x": mpmath.mpf(x)})) == pytest.approx(ratio)
    inside = re.fullmatch(r"∫_\(−∞\)\^∞ (.*) dx", lines["φ(u)"])
    assert inside is not None
    for u in (0.2, 1.5):
        own = quad(lambda x, u=u: float(value(inside[1], sigma | {"x": x, "u": u})), -14, 18)[0]
        assert own == pytest.approx(moment(0, u), rel=1e-9)
    # Y² to Y⁴ of two copies, by the binomial theorem.
    for t in (1, 2, 3):
        raised = sum(math.comb(t + 1, j) * moment(j) * moment(t + 1 - j) for j in range(t + 2))
        printed = float(value(lines[f"K({t})"], sigma))
        assert math.exp(printed) == pytest.approx(raised / STEPS ** (t + 1), rel=1e-9)
    # Between whole tilts: the printed integral against a double integral over both copies.
    shape = re.fullmatch(r"\(∫₀\^∞ d²/du²φ\(u\)²/u\^t du\)(/\(.*\))", lines["e^(K(t))"])
    assert shape is not None
    t = 0.5

    def second(u: float) -> float:
        zero, one, two = moment(0, u), moment(1, u), moment(2, u)
        return (2 * one**2 + 2 * zero * two) / u**t

    whole = quad(lambda v: second(v**2) * 2 * v, 0, 1, epsabs=1e-9)[0]
    whole += quad(lambda v: second(math.exp(v)) * math.exp(v), 0, 9, epsabs=1e-9)[0]
    printed = whole * float(value(f"1{shape[1]}", {"t": mpmath.mpf(t)}))
    x, width = np.linspace(-13, 17, 3001, retstep=True)
    law = np.exp(-(x**2) / (2 * SIGMA**2)) / (SIGMA * math.sqrt(2 * math.pi)) * width
    ratio = np.exp((2 * x - 1) / (2 * SIGMA**2))
    both = ((ratio[:, None] + ratio[None, :]) / STEPS) ** (1 + t)
    assert printed == pytest.approx(float(law @ both @ law), rel=1e-6)


def test_ratios_of_many_thousand_digits_are_printed():
    """Python turns no number of more than 4300 digits into text: masses of a tabulated profile."""
    digits = 6000
    part = sp.Rational(3**digits, 10 ** (digits // 2))
    for number in (part, 1 / part, sp.Integer(7) ** digits, sp.Rational(1, 3)):
        shown = sp.sympify(plain(number))
        assert abs(shown / number - 1) < sp.Rational(1, 10**11)
        assert len(plain(number)) < 40
