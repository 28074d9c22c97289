"""Twenty more: products of three factors, heavy tails on integers, spliced, folded, narrow laws.

Written before they were asked for the first time; none was changed for its answer.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from strangers.densities import HALF, UNIT, N, Stranger, Z, sech

TWENTY: dict[str, Stranger] = {
    # Products of three kinds of factors.
    "bell, ripple, power": Stranger(
        "exp(-x**2/6)*(3 + sin(2*x))/(1 + x**2)",
        lambda x: np.exp(-x * x / 6) * (3 + np.sin(2 * x)) / (1 + x * x),
    ),
    "secant, erf, exponential": Stranger(
        "(1 + erf(x))*exp(-abs(x)/2)/cosh(x/3)",
        lambda x: (1 + special.erf(x)) * np.exp(-abs(x) / 2) * sech(x / 3), kinks=(0,),
    ),
    "root, logarithm, exponential": Stranger(
        "sqrt(x)*log(2 + x)*exp(-x)", lambda x: np.sqrt(x) * np.log(2 + x) * np.exp(-x), HALF,
    ),
    "beta with a tilt": Stranger(
        "x**2*(1 - x)*exp(x)*(2 - x)", lambda x: x * x * (1 - x) * np.exp(x) * (2 - x), UNIT,
        sensitivity="1/4",
    ),
    # Integers with power tails.
    "three and a half": Stranger("(2 + abs(k))**(-7/2)", lambda k: (2.0 + abs(k)) ** -3.5, Z),
    "a square on integers": Stranger("1/(4 + k**2)", lambda k: 1.0 / (4.0 + k * k), Z),
    "a logarithm and a cube": Stranger(
        "log(3 + abs(k))/(3 + abs(k))**3", lambda k: np.log(3.0 + abs(k)) / (3.0 + abs(k)) ** 3, Z
    ),
    "Yule": Stranger(
        "gamma(k + 1)/gamma(k + 5)",
        lambda k: 1.0 / ((k + 1.0) * (k + 2.0) * (k + 3.0) * (k + 4.0)), N,
    ),
    # Spliced, folded, rounded.
    "normal body, cubic tail": Stranger(
        "Piecewise((exp(-x**2/2), abs(x) < 2), (exp(-2)*(2/abs(x))**4, True))",
        lambda x: np.where(
            abs(x) < 2, np.exp(-x * x / 2), np.exp(-2.0) * (2 / np.maximum(abs(x), 1)) ** 4
        ),
        kinks=(-2, 2),
    ),
    "folded logistic": Stranger(
        "exp(-x - 1)/(1 + exp(-x - 1))**2 + exp(x - 1)/(1 + exp(x - 1))**2",
        lambda x: special.expit(x + 1) * special.expit(-x - 1)
        + special.expit(x - 1) * special.expit(1 - x),
        HALF,
    ),
    "rounded logistic": Stranger(
        "1/(1 + exp(-(k + 1/2)/3)) - 1/(1 + exp(-(k - 1/2)/3))",
        lambda k: special.expit((abs(k) + 0.5) / 3) - special.expit((abs(k) - 0.5) / 3), Z,
    ),
    "two slopes": Stranger(
        "Piecewise((exp(x), x < 0), (exp(-x/3), True))",
        lambda x: np.where(x < 0, np.exp(np.minimum(x, 0)), np.exp(-np.maximum(x, 0) / 3)),
        kinks=(0,),
    ),
    # Infinite inside, narrow, wide.
    "a logarithm that peaks": Stranger(
        "log(1 + 1/x**2)*exp(-x**2/9)", lambda x: np.log1p(1 / (x * x)) * np.exp(-x * x / 9),
        kinks=(0,),
    ),
    "tiny Gumbel": Stranger(
        "exp(-x/0.00001 - exp(-x/0.00001))",
        lambda x: np.exp(-x / 1e-5 - np.exp(np.minimum(-x / 1e-5, 700))), sensitivity="0.00001",
    ),
    "huge logistic": Stranger(
        "exp(-x/1000000)/(1 + exp(-x/1000000))**2",
        lambda x: special.expit(x / 1e6) * special.expit(-x / 1e6), sensitivity="1000000",
    ),
    # Local randomizers and supports that end.
    "three heights": Stranger(
        "Piecewise((3, abs(x - 1/2) < 1/4), (1, True))",
        lambda x: np.where(abs(x - 0.5) < 0.25, 3.0, 1.0), UNIT, kinks=(0.25, 0.75),
        sensitivity="1/8",
    ),
    "half a sine": Stranger(
        "sin(3*x)", lambda x: np.sin(3 * x), UNIT, sensitivity="1/3",
    ),
    "Kumaraswamy": Stranger(
        "x*(1 - x**2)**3", lambda x: x * (1 - x * x) ** 3, UNIT, sensitivity="1/10"
    ),
    "sampled hyperbolic": Stranger(
        "exp(-sqrt(1 + x**2))", lambda x: np.exp(-np.sqrt(1 + x * x)), rate="1/50"
    ),
    "sampled cube of a secant": Stranger(
        "1/cosh(x)**3", lambda x: sech(x) ** 3, rate="1/20", sensitivity="2"
    ),
}  # fmt: skip
