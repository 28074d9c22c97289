"""`symdp derive --check`: formulas beside quadratures, and a program that anybody can run."""

import subprocess
import sys

import mpmath
import pytest
import sympy as sp

from symdp import Mechanism, derive, mechanisms
from symdp.density.signs import random_values
from symdp.page.independent import judged, program_of

X = sp.Symbol("x", real=True)
S = sp.Symbol("s", positive=True)
HUMPS = (sp.exp(-((X - 2) ** 2) / 2) + sp.exp(-((X + 2) ** 2) / 2)) / (2 * sp.sqrt(2 * sp.pi))
LAWS = {
    "laplace": mechanisms.laplace,
    "discrete": mechanisms.discrete_laplace,
    "one-sided": Mechanism.additive(sp.exp(-X / S) / S, X, support=(0, sp.oo), name="one-sided"),
    "two humps": Mechanism.additive(HUMPS, X, name="two humps"),
    "gap": Mechanism.additive(
        sp.Piecewise((sp.S.Half, (X > -2) & (X < -1)), (sp.S.Half, (X > 1) & (X < 2)), (0, True)),
        X,
        support=(-2, 2),
        name="gap",
    ),
}


def checked(mechanism):
    d = derive(mechanism)
    values = dict(random_values(d.mechanism.parameters.values(), 1, d.below_one))
    return d, values, judged(d, values)


@pytest.mark.quick_cases("gap", "discrete")
@pytest.mark.parametrize("name", LAWS)
def test_formulas_agree_with_quadratures(name):
    _, _, rows = checked(LAWS[name])
    assert {row.name for row in rows} >= {"mass of P", "mass of Q"}
    assert min(row.digits for row in rows) >= 13, [(r.name, r.at, r.digits) for r in rows]


@pytest.mark.slow
def test_a_wrong_formula_has_no_digits():
    d, values, _ = checked(mechanisms.laplace)
    wrong = type(d.cgf)(**{**vars(d.cgf), "expression": d.cgf.expression + sp.Rational(1, 1000)})
    object.__setattr__(d, "cgf", wrong)
    assert max(row.digits for row in judged(d, values) if row.name == "K") <= 3


def test_the_program_prints_what_the_table_holds():
    d, values, rows = checked(LAWS["laplace"])
    program = program_of(d, values, rows)
    assert "symdp" not in program
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    for row, number in zip(rows, printed, strict=True):
        assert mpmath.almosteq(row.truth, mpmath.mpf(number), 1e-13, 1e-13)
