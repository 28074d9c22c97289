"""A page for densities that nobody tuned for: in every format, whatever SymPy cannot find.

What a page says of them is compared with closed forms of their own, or with mpmath.
"""

from __future__ import annotations

import json

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.derive import derive
from symdp.page.derivation import to_page

LINE = ("-oo", "oo")
HALF = ("0", "oo")


def noise(density, support=LINE, normalize=True, sensitivity="1", **parameters):
    """Return a mechanism as its author would write it."""
    is_list = not isinstance(support, str)
    ends = "[" + ", ".join(f'"{end}"' for end in support) + "]" if is_list else f'"{support}"'
    own = "\n".join(
        f'{name} = "{rule}"' for name, rule in (parameters or {"s": "positive"}).items()
    )
    return symdp.Mechanism.from_toml(f"""
name = "stranger"
variable = "{"x" if is_list else "k"}"
support = {ends}
[parameters]
{own}
[noise]
density = "{density}"
sensitivity = "{sensitivity}"
normalize = {str(normalize).lower()}
""")


QUICK = {
    "Cauchy": noise("1/(pi*s*(1+(x/s)**2))", normalize=False),
    "Gumbel": noise("exp(-x/s-exp(-x/s))"),
    "a power on a half-line": noise("x**(-4)*exp(-s/x)", HALF),
}
SLOW = {
    "Cauchy, normalised": noise("1/(1+(x/s)**2)"),
    "sech": noise("1/cosh(x/s)"),
    "generalised logistic": noise(
        "a*exp(-x/s)/(s*(1+exp(-x/s))**(a+1))", normalize=False, a="positive", s="positive"
    ),
    "Lomax": noise("a/s*(1+x/s)**(-a-1)", HALF, normalize=False, a="positive", s="positive"),
    "a root of cosh": noise("1/sqrt(cosh(x/s))"),
    "atan beside cosh": noise("(pi/2+atan(2*x/s))/cosh(x/s)"),
    "Fréchet": noise("x**(-3)*exp(-(x/s)**(-2))", HALF),
    "a singular end": noise("exp(k*x)/sqrt(1-x**2)", ("-1", "1"), sensitivity="1/2", k="positive"),
    "triangular": noise("Max(0, s-Abs(x))/s**2", normalize=False),
    "truncated": noise("exp(-Abs(x)/s)", ("-w", "w"), s="positive", w="positive"),
    "pieces": noise("Piecewise((exp(-x/s), x>0), (exp(2*x/s), True))"),
    "triangular on integers": noise(
        "Max(0, w-Abs(k))/w**2", "integers", normalize=False, w="positive integer"
    ),
    "power tails on integers": noise("1/(1+k**2/s**2)**2", "integers"),
}


def in_all_formats(derivation):
    """Return the text, after asking for every other format."""
    json.dumps(derivation.to_json(), allow_nan=False)
    assert derivation.to_latex()
    assert derivation.to_mathml()
    assert derivation.show()
    assert "{code-cell}" in to_page(derivation, "mechanism", {})
    return derivation.to_text()


def holds_all_sections(text):
    """Two laws without an output in common have no finite loss, and so no generating function."""
    titles = ("Mechanism", "Privacy loss")
    if "the two laws have no output in common" not in text:
        titles += ("Cumulant generating function", "Tail constants")
    return all(f"\n{title}\n" in text for title in titles)


@pytest.mark.slow_cases("Cauchy", "Gumbel")
@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)])
def test_a_density_has_a_page_in_every_format(name):
    for derivation in derive((QUICK | SLOW)[name]).cases:
        assert holds_all_sections(in_all_formats(derivation))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SLOW][::3])
def test_a_density_with_values_has_a_page(name):
    mechanism = SLOW[name]
    values = {"s": "2", "a": "3/2", "w": "5", "k": "1"}
    given = mechanism(**{name: values[name] for name in mechanism.parameters})
    for derivation in derive(given).cases:
        assert holds_all_sections(derivation.to_text())
        json.dumps(derivation.to_json(), allow_nan=False)


@pytest.mark.slow
def test_student_noise_with_one_degree_of_freedom_has_its_legendre_function():
    derivation = symdp.derive(symdp.mechanisms.student_t(nu=1))
    t, s = derivation.cgf.tilt, sp.Symbol("s", positive=True)
    assert derivation.cgf.expression == sp.log(sp.legendre(t, 1 + 1 / (2 * s**2)))
    text = in_all_formats(derivation)
    assert "K(t) = log(P_t(1 + 1/(2s²)))" in text
    # There is no derivative by the degree: cumulants are integrals.
    assert "κ₁ = ∫_(−∞)^∞ ℓ(x)P(x) dx" in text


def test_sections_are_made_one_by_one(monkeypatch):
    from symdp.page import derivation as module

    def broken(*_):
        raise TypeError("cannot determine truth value of Relational")

    monkeypatch.setattr(module, "loss_section", broken)
    derivation = symdp.derive(symdp.mechanisms.gaussian)
    text = in_all_formats(derivation)
    assert holds_all_sections(text)
    assert "not found: SymPy gives it up (TypeError)" in text
    assert "K(t) = t·(t + 1)/(2σ²)" in text


@pytest.mark.slow
def test_the_law_of_triangular_noise_is_one_set_of_cases():
    mechanism = noise("Max(0, s-Abs(x))/s**2", normalize=False)(s=3)
    derivation = symdp.derive(mechanism)
    for law in (derivation.pld_density, derivation.pld_cdf):
        assert isinstance(law.expression, sp.Piecewise)
        assert not any(value.has(sp.Piecewise) for value, _ in law.expression.args)
        ends = [condition.rhs for _, condition in law.expression.args[:-1]]
        assert ends == sorted(ends)

    def distribution(loss):  # P(ℓ ≤ s) by solving for x on each of the three pieces by hand
        r = mpmath.exp(loss)
        x = (2 - 3 * r) / (r - 1) if r < mpmath.mpf(2) / 3 else (3 * r - 2) / (r + 1)
        if r > 1.5:
            x = (3 * r - 4) / (r - 1)
            return 1 - (4 - x) ** 2 / mpmath.mpf(18)
        return (x + 2) ** 2 / mpmath.mpf(18)

    for loss in (-2, -0.7, -0.1, 0.3, 0.8, 3):
        found = derivation.pld_cdf.expression.subs(derivation.pld_cdf.loss, sp.Float(loss, 20))
        assert float(found) == pytest.approx(float(distribution(loss)), rel=1e-12)


@pytest.mark.slow
def test_masses_with_a_formula_are_evaluated_and_others_have_a_name():
    x, s = sp.symbols("x s")
    known = {
        "1/cosh(x/s)": (LINE, 1 / (sp.pi * s * sp.cosh(x / s))),
        "exp(-Abs(x)/s)": (LINE, sp.exp(-sp.Abs(x) / s) / (2 * s)),
        "1-(x/s)**2": (("-s", "s"), 3 * (1 - (x / s) ** 2) / (4 * s)),
        "x**(-4)*exp(-s/x)": (HALF, s**3 * sp.exp(-s / x) / (2 * x**4)),
    }
    for density, (support, law) in known.items():
        found = derive(noise(density, support)).cases[0].pair.Q
        values = {"x": sp.Rational(1, 3), "s": sp.Integer(2)}
        own = found.subs({symbol: values[symbol.name] for symbol in found.free_symbols})
        assert abs(sp.N(own / law.subs(values), 30) - 1) < sp.Float(10) ** -25
    text = symdp.derive(noise("(pi/2+atan(2*x/s))/cosh(x/s)*exp(-x**4)")).show("mechanism")
    assert "C = ∫_(−∞)^∞ " in text


@pytest.mark.slow
def test_the_law_of_student_noise_is_one_set_of_cases():
    derivation = symdp.derive(symdp.mechanisms.student_t)
    law = derivation.pld_density
    assert isinstance(law.expression, sp.Piecewise)  # the order of its ends no sign tells
    values = {"nu": sp.Integer(3), "s": sp.Integer(2)}
    own = {y: values[y.name] for y in law.expression.free_symbols if y.name in values}
    # With u = e^{−s/2} the loss is s where 12 + (x − 1)² = u (12 + x²): both roots by hand.
    for loss in (-0.3, -0.1, 0.05, 0.2):
        u = mpmath.exp(-mpmath.mpf(loss) / 2)
        root = mpmath.sqrt(1 - (1 - u) * (13 - 12 * u))
        total = mpmath.mpf(0)
        for at in ((1 + root) / (1 - u), (1 - root) / (1 - u)):
            density = mpmath.gamma(2) / mpmath.gamma(1.5) / mpmath.sqrt(12 * mpmath.pi)
            density *= (1 + (at - 1) ** 2 / 12) ** -2
            total += density / abs(4 * at / (12 + at**2) - 4 * (at - 1) / (12 + (at - 1) ** 2))
        found = law.expression.subs(own).subs(law.loss, sp.Float(loss, 20))
        assert float(found) == pytest.approx(float(total), rel=1e-12)
