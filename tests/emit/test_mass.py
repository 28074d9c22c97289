"""Masses that densities are divided by take the values of parameters wherever they stand."""

import pytest

from symdp import Mechanism, compose
from symdp.emit.mass import MassIntegral
from symdp.page.formula import layout
from symdp.page.node import text

FILE = """
name = "own"
variable = "{variable}"
support = {support}
[parameters]
s = "positive"
[noise]
density = "{density}"
sensitivity = 1
normalize = true
shift = "exactly"
"""
REAL, INTEGERS, POSITIVE = '["-oo", "oo"]', '"integers"', '[0, "oo"]'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "support", "density"),
    [
        ("x", REAL, "(1 + x**2/s**2)**(-3)"),
        ("x", REAL, "exp(-(x - 2)**2/(2*s**2)) + exp(-(x + 2)**2/(2*s**2))"),
        ("x", POSITIVE, "x**2*exp(-x/s)"),
        ("k", INTEGERS, "exp(-abs(k)/s)*(2 + cos(k))"),
    ],
)
def test_a_normalized_density_with_a_parameter(variable, support, density):
    text = FILE.format(variable=variable, support=support, density=density)
    value = "3/2"
    written = text.replace('s = "positive"\n', "").replace("[parameters]\n", "")
    for end in ("/s", "(2*s**2)"):
        written = written.replace(end, end.replace("s", f"({value})"))
    own = compose(Mechanism.from_toml(text)(s=value), 3).delta(0.5)
    plain = compose(Mechanism.from_toml(written), 3).delta(0.5)
    assert own.kind == plain.kind == "exact"
    assert own.delta == pytest.approx(plain.delta, rel=1e-12)


def test_masses_are_printed_as_sums_or_by_a_name_that_the_page_defines():
    own = FILE.format(variable="k", support=INTEGERS, density="exp(-abs(k)/s)")
    assert text(layout(Mechanism.from_toml(own).pair().Q)) == "e^(−|k|/s)/(∑_(k = −∞)^∞ e^(−|k|/s))"
    own = FILE.format(variable="x", support=REAL, density="exp(-x**4/s)")
    law = Mechanism.from_toml(own).pair().Q
    assert text(layout(law)) == "e^(−x⁴/s)/C"
    (mass,) = law.atoms(MassIntegral)
    assert text(layout(mass.as_integral())) == "∫_(−∞)^∞ e^(−x⁴/s) dx"


@pytest.mark.slow
def test_a_mass_without_parameters_is_no_number_to_be_tried():
    """At a = 1 the mass stands alone below the line, where a constant is asked to be real."""
    own = FILE.format(variable="x", support=REAL, density="exp(-abs(x)/4)*(1 + x**2)**(-s)")
    over = FILE.format(variable="x", support=REAL, density="exp(-abs(x)/4)/(1 + x**2)**s")
    found = [compose(Mechanism.from_toml(text)(s=1), 3).delta(1.0).delta for text in (own, over)]
    assert found[0] == pytest.approx(found[1], rel=1e-13)


def test_what_stands_behind_the_sign_of_a_sum_is_summed():
    own = FILE.format(variable="k", support=INTEGERS, density="1/(1 + k**2/s**2)**2")
    law = Mechanism.from_toml(own).pair().Q
    assert text(layout(law)) == "1/((k²/s² + 1)²∑_(k = −∞)^∞ 1/(k²/s² + 1)²)"
