"""Dominating pairs, ordinary and hard, that the other derivation tests run through."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

from symdp.model.pair import Pair, Support

R = sp.Rational
ZERO, ONE = sp.S.Zero, sp.S.One
LINE = Support("interval", -sp.oo, sp.oo)

x = sp.Symbol("x", real=True)
k = sp.Symbol("k", integer=True)
n = sp.Symbol("n", integer=True, nonnegative=True)


def plain(q: sp.Expr, p: sp.Expr, support: Support = LINE, variable: sp.Symbol = x) -> Pair:
    return Pair(variable, support, (q, p), (ZERO, ONE), (ONE, ZERO))


def additive(density: sp.Expr, shift: sp.Expr | int = 1, variable: sp.Symbol = x) -> Pair:
    support = LINE if variable is x else Support("integers", -sp.oo, sp.oo)
    return plain(density, density.subs(variable, variable - shift), support, variable)


def poisson(pair: Pair, rate: sp.Expr) -> Pair:
    return Pair(pair.variable, pair.support, pair.components, (1 - rate, rate), (ONE, ZERO))


def without_replacement(density: sp.Expr, rate: sp.Expr, variable: sp.Symbol = x) -> Pair:
    components = tuple(density.subs(variable, variable - j) for j in (0, 1, -1))
    support = LINE if variable is x else Support("integers", -sp.oo, sp.oo)
    return Pair(variable, support, components, (1 - rate, rate, ZERO), (1 - rate, ZERO, rate))


def with_replacement(density: sp.Expr, rate: sp.Expr, batch: int) -> Pair:
    shifts = [0, *range(1, batch + 1), *range(-1, -batch - 1, -1)]
    weights = [
        sp.binomial(batch, j) * rate**j * (1 - rate) ** (batch - j) for j in range(batch + 1)
    ]
    zeros = [ZERO] * batch
    return Pair(
        x,
        LINE,
        tuple(density.subs(x, x - j) for j in shifts),
        (*weights, *zeros),
        (weights[0], *zeros, *weights[1:]),
    )


def gaussian(s: sp.Expr, at: sp.Expr = x) -> sp.Expr:
    return sp.exp(-(at**2) / (2 * s**2)) / (sp.sqrt(2 * sp.pi) * s)


def laplace(b: sp.Expr, at: sp.Expr = x) -> sp.Expr:
    return sp.exp(-sp.Abs(at) / b) / (2 * b)


def logistic(s: sp.Expr, at: sp.Expr = x) -> sp.Expr:
    return sp.exp(-at / s) / (s * (1 + sp.exp(-at / s)) ** 2)


def student(nu: sp.Expr, at: sp.Expr = x) -> sp.Expr:
    scale = sp.gamma((nu + 1) / 2) / (sp.sqrt(nu * sp.pi) * sp.gamma(nu / 2))
    return scale * (1 + at**2 / nu) ** (-(nu + 1) / 2)


def shifted(density: sp.Expr, support: sp.Expr) -> sp.Expr:
    return sp.Piecewise((density, support), (0, True))


def discrete_gaussian(s: sp.Expr) -> sp.Expr:
    j = sp.Dummy("j", integer=True)
    return sp.exp(-(k**2) / (2 * s**2)) / sp.Sum(sp.exp(-(j**2) / (2 * s**2)), (j, -sp.oo, sp.oo))


def _asymmetric_laplace() -> sp.Expr:
    return sp.Piecewise((sp.exp(3 * x), x < 0), (sp.exp(-x / 2), True)) * R(3, 7)


_MIXED_NOISE = (gaussian(ONE) + gaussian(R(3, 2), x - 2)) / 2
_DISCRETE_LAPLACE = sp.tanh(R(1, 4)) * sp.exp(-sp.Abs(k) / 2)

PAIRS: dict[str, Callable[[], Pair]] = {
    "gaussian": lambda: additive(gaussian(R(3, 2))),
    "gaussian poisson": lambda: poisson(additive(gaussian(R(3, 2))), R(1, 100)),
    "gaussian poisson add": lambda: poisson(additive(gaussian(R(3, 2))), R(1, 100)).reversed(),
    "gaussian without": lambda: without_replacement(gaussian(R(2)), R(1, 50)),
    "gaussian with": lambda: with_replacement(gaussian(R(2)), R(1, 50), 5),
    "laplace": lambda: additive(laplace(R(3, 2))),
    "laplace poisson": lambda: poisson(additive(laplace(ONE)), R(1, 10)),
    "laplace poisson add": lambda: poisson(additive(laplace(ONE)), R(1, 10)).reversed(),
    "laplace without": lambda: without_replacement(laplace(R(2)), R(1, 20)),
    "laplace with": lambda: with_replacement(laplace(R(2)), R(1, 20), 5),
    "asymmetric laplace": lambda: additive(_asymmetric_laplace()),
    "logistic": lambda: additive(logistic(R(2))),
    "logistic poisson": lambda: poisson(additive(logistic(R(2))), R(1, 10)),
    "logistic by sech": lambda: additive(sp.sech(x / 4) ** 2 / 8),
    "sech": lambda: additive(sp.sech(sp.pi * x / 2) / 2),
    "gumbel": lambda: additive(sp.exp(-x / 2 - sp.exp(-x / 2)) / 2),
    "student": lambda: additive(student(R(5))),
    "student poisson": lambda: poisson(additive(student(R(5))), R(1, 10)),
    "cauchy": lambda: additive(1 / (sp.pi * 2 * (1 + x**2 / 4))),
    "quartic": lambda: additive(sp.exp(-(x**4)) / (2 * sp.gamma(R(5, 4)))),
    "cubic": lambda: additive(sp.exp(-(sp.Abs(x) ** 3)) / (2 * sp.gamma(R(4, 3)))),
    "two variances": lambda: plain(gaussian(R(2)), gaussian(R(1), x - 1)),
    "mixed noise": lambda: additive(_MIXED_NOISE),
    "mixed noise poisson": lambda: poisson(additive(_MIXED_NOISE), R(1, 5)),
    "own mixture": lambda: plain(gaussian(ONE), R(4, 5) * gaussian(ONE) + gaussian(ONE, x - 1) / 5),
    "own mixture laplace": lambda: plain(
        laplace(ONE), (4 * laplace(ONE) + laplace(ONE, x - 1)) / 5
    ),
    "uniform": lambda: plain(
        shifted(R(1, 2), x <= 2), shifted(R(1, 2), x >= 1), Support("interval", ZERO, R(3))
    ),
    "exponential noise": lambda: plain(
        sp.exp(-x), shifted(sp.exp(1 - x), x >= 1), Support("interval", ZERO, sp.oo)
    ),
    "exponential noise add": lambda: plain(
        sp.exp(-x), shifted(sp.exp(1 - x), x >= 1), Support("interval", ZERO, sp.oo)
    ).reversed(),
    "rayleigh signs": lambda: plain(x**2 * gaussian(ONE), (x - 1) ** 2 * gaussian(ONE, x - 1)),
    "beta": lambda: plain(6 * x * (1 - x), 12 * x * (1 - x) ** 2, Support("interval", ZERO, ONE)),
    "gamma": lambda: plain(x * sp.exp(-x), x**2 * sp.exp(-x) / 2, Support("interval", ZERO, sp.oo)),
    "triangle": lambda: plain(
        sp.Max(0, 1 - sp.Abs(x)),
        sp.Max(0, 1 - sp.Abs(x - R(1, 2))),
        Support("interval", -ONE, R(3, 2)),
    ),
    "flat top": lambda: additive(sp.exp(-sp.Max(1, sp.Abs(x))) / (4 / sp.E)),
    "huber": lambda: additive(
        sp.Piecewise((sp.exp(-(x**2) / 2), sp.Abs(x) < 1), (sp.exp(R(1, 2) - sp.Abs(x)), True))
    ),
    "wave": lambda: plain(
        (1 + sp.cos(x) / 2) / (2 * sp.pi),
        (1 + sp.sin(x) / 2) / (2 * sp.pi),
        Support("interval", -sp.pi, sp.pi),
    ),
    "discrete laplace": lambda: additive(_DISCRETE_LAPLACE, variable=k),
    "discrete laplace poisson": lambda: poisson(additive(_DISCRETE_LAPLACE, variable=k), R(1, 10)),
    "discrete laplace without": lambda: without_replacement(_DISCRETE_LAPLACE, R(1, 10), k),
    "discrete gaussian": lambda: additive(discrete_gaussian(R(2)), variable=k),
    "discrete gaussian poisson": lambda: poisson(
        additive(discrete_gaussian(R(2)), variable=k), R(1, 10)
    ),
    "geometric": lambda: plain(
        R(1, 2) ** (n + 1), R(1, 3) * R(2, 3) ** n, Support("naturals", ZERO, sp.oo), n
    ),
    "geometric shifted": lambda: plain(
        R(1, 2) ** (n + 1), shifted(R(1, 2) ** n, n >= 1), Support("naturals", ZERO, sp.oo), n
    ),
    "poisson counts": lambda: plain(
        sp.exp(-2) * R(2) ** n / sp.factorial(n),
        sp.exp(-3) * R(3) ** n / sp.factorial(n),
        Support("naturals", ZERO, sp.oo),
        n,
    ),
    "zero inflated": lambda: plain(
        R(1, 2) ** (n + 1),
        sp.Piecewise((R(3, 4), sp.Eq(n, 0)), (R(1, 2) ** (n + 2), True)),
        Support("naturals", ZERO, sp.oo),
        n,
    ),
}


def randomized_response(honest: sp.Expr) -> Pair:
    support = Support("points", ZERO, ONE, (ZERO, ONE))
    components = ((honest, 1 - honest), (1 - honest, honest))
    return Pair(x, support, components, (ZERO, ONE), (ONE, ZERO))
