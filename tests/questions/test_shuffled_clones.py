"""The blanket is below the clones, for twenty randomizers: the table of docs/shuffling.md."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
import sympy as sp

from symdp import Mechanism, compose

X, Y = sp.symbols("x y", real=True)
TWO = {"values": [0, 1]}


def laplace(scale, inputs=(0, 1)):
    return Mechanism.local(sp.exp(-sp.Abs(Y - X) / scale) / (2 * scale), Y, X, inputs)


def of(density, inputs):
    return Mechanism.local(density, Y, X, inputs)


def k_ary(k, odds):
    whole = odds + k - 1
    return [[Fraction(odds if i == j else 1, whole) for j in range(k)] for i in range(k)]


def rappor(bits, keep):
    rows = []
    for value in range(bits):
        row = []
        for outcome in itertools.product((0, 1), repeat=bits):
            same = sum(bit == (index == value) for index, bit in enumerate(outcome))
            row.append(keep**same * (1 - keep) ** (bits - same))
        rows.append(row)
    return rows


def weighted(weights):
    return [[Fraction(w) / sum(map(Fraction, row)) for w in row] for row in weights]


HADAMARD = [[3 if bin(r & c).count("1") % 2 == 0 else 1 for c in range(8)] for r in (1, 2, 3)]
SKEWED = [["1/2", "3/10", "1/5"], ["1/5", "1/2", "3/10"], ["1/10", "1/5", "7/10"]]
GEOMETRIC = [[Fraction(1, 2) ** abs(i - j) for j in range(5)] for i in range(5)]
SUBSETS = [[4 if i in s else 1 for s in itertools.combinations(range(5), 2)] for i in range(5)]
LOGISTIC = sp.exp(-(Y - X)) / (1 + sp.exp(-(Y - X))) ** 2
STUDENT = 2 / (sp.pi * (1 + (Y - X) ** 2) ** 2)
TWO_MODES = (sp.exp(-sp.Abs(Y - X)) + sp.exp(-sp.Abs(Y - X - 3))) / 4
WAVES = sp.exp(-sp.Abs(Y - X)) * (1 + sp.cos(4 * (Y - X)) / 2) / (2 + sp.Rational(1, 17))

CASES = {
    "Laplace 1": (lambda: laplace(1), 0.2),
    "Laplace 1/2": (lambda: laplace(sp.Rational(1, 2)), 0.2),
    "Laplace 2": (lambda: laplace(2), 0.1),
    "Laplace at 2": (lambda: laplace(1, TWO), 0.2),
    "Laplace at 3": (lambda: laplace(1, {"values": [0, sp.Rational(1, 2), 1]}), 0.2),
    "logistic": (lambda: of(LOGISTIC, (0, 1)), 0.1),
    "Student": (lambda: of(STUDENT, TWO), 0.2),
    "two modes": (lambda: of(TWO_MODES, TWO), 0.2),
    "waves": (lambda: of(WAVES, TWO), 0.3),
    "secant": (lambda: of(1 / (sp.pi * sp.cosh(Y - X)), (0, 1)), 0.2),
    "2-ary": (lambda: Mechanism.local(k_ary(2, 3)), 0.2),
    "3-ary": (lambda: Mechanism.local(k_ary(3, 3)), 0.2),
    "10-ary": (lambda: Mechanism.local(k_ary(10, 3)), 0.2),
    "100-ary": (lambda: Mechanism.local(k_ary(100, 8)), 0.2),
    "RAPPOR 4": (lambda: Mechanism.local(rappor(4, Fraction(3, 4))), 0.2),
    "RAPPOR 3": (lambda: Mechanism.local(rappor(3, Fraction(9, 10))), 0.2),
    "Hadamard": (lambda: Mechanism.local(weighted(HADAMARD)), 0.2),
    "skewed": (lambda: Mechanism.local(SKEWED), 0.2),
    "geometric": (lambda: Mechanism.local(weighted(GEOMETRIC)), 0.2),
    "subsets": (lambda: Mechanism.local(weighted(SUBSETS)), 0.2),
}


@pytest.mark.quick_cases("RAPPOR 3")
@pytest.mark.parametrize("name", CASES)
def test_the_blanket_is_below_the_clones_of_the_same_randomizer(name):
    make, epsilon = CASES[name]
    crowd = compose(make().shuffled(1000))
    blanket = crowd.delta(epsilon).delta
    assert 0.0 < blanket <= crowd.delta(epsilon, method="clones").delta * (1 + 1e-6)
