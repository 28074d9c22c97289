"""Constants that lead a sum of exponentials are added to the exponents as logarithms."""

import mpmath
import numpy as np
import sympy as sp

from symdp.emit import compile_numpy
from symdp.emit.numpy import NumpyFunctions
from symdp.emit.program import compile_programs


def test_a_constant_that_leads_a_small_logarithm_is_not_rounded():
    """log(1 − q + q r) is about as small as q, of which a rounded 1 − q keeps four digits less."""
    x = sp.Symbol("x", positive=True)
    expression = sp.log(sp.Rational(4999, 5000) + x**2 * (1 + x) ** 2 * sp.exp(-x) / 5000)
    places = np.asarray([1e-6, 0.01, 0.1, 0.3])
    values = compile_numpy(expression, [x])(places)
    with mpmath.workdps(40):
        for place, value in zip(places, values, strict=True):
            u = mpmath.mpf(place)
            truth = mpmath.log((4999 + u**2 * (1 + u) ** 2 * mpmath.exp(-u)) / 5000)
            assert abs(value / truth - 1) < 4e-16
    constant = sp.Rational(4999, 5000)
    alone, _ = NumpyFunctions(compile_programs([constant, expression], [x]))(places)
    assert np.all(alone == float(constant))
