"""Every printed formula, read back from its text, against integrals over the printed densities."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import sympy as sp
from printed_formula import value

import symdp
from symdp.cli.symbols import declared
from symdp.derive import derive
from symdp.derive.section import token

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
    "beta": (lambda: symdp.loads(BETA), {}, [0, 0.5, 1], (-1.2, 0.3)),
    "quartic": (lambda: symdp.loads(QUARTIC), {}, [-6, 0, 1, 6], (-0.9, 0.6)),
}  # fmt: skip
N, EPS, DELTA = 7, 0.9, 1e-3


class Page:
    """A printed page: formulas by their left sides, and the truth from its own densities."""

    def __init__(self, name: str) -> None:
        make, self.numbers, self.ends, self.losses = CASES[name]
        self.numbers = {k: mpmath.mpf(str(v)) for k, v in self.numbers.items()}
        self.d = derive(make())
        self.variable = token_of(self.d.pld_density.loss)
        self.lines: dict[str, tuple[list[str], dict[str, str]]] = {}
        for section in self.d.sections():
            for line in section.lines:
                if line.right is not None and line.expression is not None:
                    first, *others = line.text()
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
    from symdp.emit.layout import layout

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


@pytest.mark.slow_cases("logistic")
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


def test_leading_terms_in_the_rate_are_those_of_small_rates(pages):
    page = page_of(pages, "sampled gaussian")
    (cumulants,) = (s for s in page.d.sections() if s.key == "cumulants")
    leading = dict(
        line.split(" = ") for own in cumulants.lines for line in own.text() if " + O(q" in line
    )
    outer, page.numbers = page.numbers, page.numbers | {"q": mpmath.mpf("1e-4")}
    truth = page.cumulants(mpmath.mpf(0))
    for index, true in zip("₁₂", truth[1:], strict=False):
        found = value(leading[f"κ{index}"].partition(" + O(")[0], page.numbers)
        assert close(found / true, 1, 1e-3), index
    page.numbers = outer
    assert set(leading) == {f"κ{index}" for index in "₁₂₃₄"}


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
            told = {token(node) for node, _ in section.legend}
            for label in section.symbols():
                base = re.match(r"[^\W\d_₀-₉₋₊]+", label)
                assert told & {label, f"{base.group() if base else label}_j"}, label
            assert len(told) == len(section.legend)
