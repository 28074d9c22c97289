"""One mode is proved where there is one, and never where there are two."""

from __future__ import annotations

import pytest
import sympy as sp

from symdp import mechanisms
from symdp.balls.modes import one_mode, one_mode_always
from symdp.model.mechanism import Mechanism
from symdp.model.sampling import Noise

X, K = sp.Symbol("x", real=True), sp.Symbol("k", integer=True)
A = sp.Symbol("a", positive=True)
HALF, LINE = sp.Rational(1, 2), (-sp.oo, sp.oo)


def normal(mean: object, sigma: object = 1) -> sp.Expr:
    return sp.exp(-((X - mean) ** 2) / (2 * sigma**2)) / (sigma * sp.sqrt(2 * sp.pi))


ONE = {
    "slow waves": (normal(0, 2) * (2 + sp.cos(X / 10)), LINE),
    "two scales": ((normal(0) + normal(0, 3)) / 2, LINE),
    "a skewed mixture": ((normal(0) + 2 * normal(1, 2)) / 3, LINE),
    "cauchy": (1 / (sp.pi * (1 + X**2)), LINE),
    "beta": (6 * X * (1 - X), (0, 1)),
    "an infinite end": (X ** (-HALF) * (1 - X) ** 3, (0, 1)),
    "uniform": (HALF + 0 * X, (-1, 1)),
    "one-sided": (sp.exp(-X), (0, sp.oo)),
    "a jump at the mode": (sp.Piecewise((sp.exp(X / 2) / 4, X < 0), (sp.exp(-X) / 2, True)), LINE),
    "generalised normal": (sp.exp(-(abs(X) ** sp.Rational(3, 2))), LINE),
    "a cusp": (sp.exp(-sp.sqrt(abs(X))) / 4, LINE),
    "an infinite mode": (sp.exp(-abs(X)) / sp.sqrt(abs(X)), LINE),
    "hyperbolic": (1 / (sp.pi * sp.cosh(X)), LINE),
    "stairs": (sp.Piecewise((sp.Rational(1, 4), abs(X) < 1), (sp.Rational(1, 8), True)), (-3, 3)),
    "triangle": (1 - abs(X), (-1, 1)),
    "raised cosine": ((1 + sp.cos(sp.pi * X)) / 2, (-1, 1)),
    "two humps that meet": ((normal(0) + normal(2)) / 2, LINE),
    "zero at an end": ((X - 2) ** 2 * sp.exp(X), (-sp.oo, 2)),
    "gumbel": (sp.exp(-(X + sp.exp(-X)) / 2), LINE),
    "skewed normal": (normal(0, 5) * (1 + sp.erf(X / 5)), LINE),
    "steeply skewed normal": (normal(0) * (1 + sp.erf(6 * X - 1)), LINE),
    "skewed hyperbolic": ((sp.pi / 2 + sp.atan(2 * X)) / sp.cosh(X), LINE),
    "tilted by tanh": (normal(0) * (1 + sp.tanh(X) / 2), LINE),
    "a ripple that is no mode": (normal(0) * (1 + sp.sin(3 * X) / 10), LINE),
    "nearly uniform": (1 / (1 + (X / 6) ** 8), LINE),
    "log-logistic": (X ** (-HALF) / (1 + sp.sqrt(X)) ** 2, (0, sp.oo)),
    "inverse gamma": (X ** (-4) * sp.exp(-1 / X), (0, sp.oo)),
    "generalised logistic": (sp.exp(-2 * X) / (1 + sp.exp(-X)) ** 5, LINE),
    "vanishing between thirds": (
        (X - sp.Rational(1, 3)) * (sp.Rational(7, 3) - X) ** 2,
        (sp.Rational(1, 3), sp.Rational(7, 3)),
    ),
    "a power of a cosine": (sp.cos(sp.pi * X / 6) ** 4, (-3, 3)),
}
SEVERAL = {
    "waves": (normal(0, 2) * (2 + sp.cos(2 * sp.pi * X)), LINE),
    "waves on a heavy tail": ((2 + sp.cos(X)) / (1 + X**2) ** 2, LINE),
    "arcsine": (1 / (sp.pi * sp.sqrt(X * (1 - X))), (0, 1)),
    "a jump up while falling": (
        sp.Piecewise((sp.exp(X) / 2, X < 0), (sp.exp(-X / 2) / 8, X < 1), (sp.exp(-X), True)),
        LINE,
    ),
    "a gap": (sp.Piecewise((HALF, X < 1), (0, X < 2), (HALF, True)), (0, 3)),
    "a zero in the middle": (X**2 * normal(0), LINE),
    "a zero off the middle": ((X - sp.Rational(1, 3)) ** 2 * sp.exp(-(X**2)), LINE),
    "an infinite peak off the mode": (
        (2 - sp.log((X - 2) ** 2)) * sp.exp(-4 * X),
        (0, sp.Rational(7, 2)),
    ),
    "a ripple that is one": (normal(0) * (1 + sp.sin(3 * X) / 2), LINE),
    "two wells": (sp.exp(-((X**2 - 1) ** 2)), LINE),
    "three normals": (normal(0) + normal(3) + normal(6), LINE),
    "a zero with corners": (sp.Abs(X) * sp.exp(-sp.Abs(X)), LINE),
    "two corners": ((sp.exp(-abs(X - 1)) + sp.exp(-abs(X + 1))) / 4, LINE),
}


@pytest.mark.slow_cases(
    "slow waves",
    "a skewed mixture",
    "skewed hyperbolic",
    "tilted by tanh",
    "a ripple that is no mode",
    "two humps that meet",
)
@pytest.mark.parametrize("name", ONE)
def test_one_mode_is_proved(name):
    density, support = ONE[name]
    assert one_mode(Mechanism.additive(density, X, 1, support))


@pytest.mark.slow_cases(
    "waves on a heavy tail", "a gap", "an infinite peak off the mode", "three normals"
)
@pytest.mark.parametrize("name", SEVERAL)
def test_several_modes_are_not_taken_for_one(name):
    density, support = SEVERAL[name]
    assert not one_mode(Mechanism.additive(density, X, 1, support))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "is_shown"),
    # At a = 1 the slope has a triple zero, whose sign is left open.
    [("0.9", True), ("0.99", True), ("1.01", False), ("1.1", False)],
)
def test_two_humps_are_one_as_long_as_they_are_close(value, is_shown):
    """Two normal laws at ±a have one mode for a ≤ 1 alone."""
    humps = Mechanism.additive((normal(A) + normal(-A)) / 2, X)
    assert bool(one_mode(humps(a=value))) is is_shown
    assert not one_mode_always(humps(a=value))


@pytest.mark.slow_cases("masses2-False")
@pytest.mark.parametrize(
    ("masses", "is_shown"),
    [
        (sp.exp(-(K**2) / 2), True),
        (sp.exp(-abs(K)) * (3 + sp.sign(K)), True),  # 4/e, 3, …: the value at 0 is its own
        (sp.exp(-abs(K)) * (2 + sp.cos(sp.pi * K / 2)), False),
        (sp.exp(-((K - 3) ** 2)) + sp.exp(-((K + 3) ** 2)), False),
        (sp.exp(-abs(K)) * sp.Piecewise((HALF / 5, sp.Eq(K, 0)), (1, True)), False),
    ],
)
def test_whole_numbers(masses, is_shown):
    assert bool(one_mode(Mechanism.additive(masses, K, 2, "integers", normalize=True))) is is_shown


def test_the_built_in_noises_have_one_mode_whatever_their_parameters():
    noises = [getattr(mechanisms, name) for name in mechanisms.names()]
    noises = [noise for noise in noises if isinstance(noise.source, Noise)]
    shown = {noise.name for noise in noises if one_mode_always(noise)}
    # Negative binomial noise is asked for shifts of 1 alone, which are the only ones there are.
    assert {noise.name for noise in noises} - shown <= {"negative_binomial", "skellam"}
    assert one_mode(mechanisms.negative_binomial(r=3, p="1/2"))
    assert one_mode(mechanisms.skellam(mu=3))
