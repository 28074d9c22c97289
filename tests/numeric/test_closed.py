"""δ(ε) of one step from distribution functions, beside quadratures and integrals in balls."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import arb, ctx

from symdp import Mechanism, compose, mechanisms
from symdp.density.exponents import exponents
from symdp.density.pieces import pieces
from symdp.model.pair import Pair
from symdp.numeric.closed import ClosedMasses
from symdp.numeric.laws.of_mechanism import loss_law
from symdp.numeric.loss import LossLaw
from symdp.numeric.single import profile

X = sp.Symbol("x", real=True)


def normal(scale, centre=0):
    return sp.exp(-((X - centre) ** 2) / (2 * sp.Rational(scale) ** 2)) / (
        sp.Rational(scale) * sp.sqrt(2 * sp.pi)
    )


# Two bumps, a step at a half of the line, one side only, cut off, scales far apart.
NOISES = {
    "gaussian": Mechanism.additive(normal("3/2"), X, 1),
    "two bumps": Mechanism.additive(
        (normal(1, -3) + 2 * normal("1/2", 3)) / 3, X, 1, shift="exactly"
    ),
    "two-piece": Mechanism.additive(
        sp.Piecewise(
            (2 * normal(1) * sp.Rational(1, 4), X < 0), (2 * normal(3) * sp.Rational(3, 4), True)
        ),
        X,
        1,
    ),
    "normal beside laplace": Mechanism.additive((normal(2) + sp.exp(-sp.Abs(X) / 3) / 6) / 2, X, 1),
    "far scales": Mechanism.additive(
        (99 * normal("1/10") + normal(50)) / 100, X, sp.Rational(1, 3), shift="exactly"
    ),
}
RATES = (None, "1/50")


def without_formulas(law: LossLaw) -> LossLaw:
    """The same law with integrals in balls."""
    smooth = tuple(replace(piece, closed=None) for piece in law.step.pieces)
    return LossLaw(replace(law.step, pieces=smooth), None)


@pytest.mark.quick_cases("gaussian-None", "two-piece-None", "two-piece-1/50", "gaussian-1/50")
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", NOISES)
def test_formulas_agree_with_integrals(name, rate):
    noise = NOISES[name] if rate is None else NOISES[name].subsample("poisson", rate)
    law = loss_law(noise, "remove")
    assert law.is_closed
    for epsilon in (0.0, 0.01, 0.4, 2.5):
        if not law.loss_bounds[0] < epsilon < law.loss_bounds[1]:
            continue
        with ctx.workprec(80):
            closed = profile(law, epsilon)
            integrated = profile(without_formulas(law), epsilon)
            # The third, a slope, is off by the density at the root times a double's rounding.
            for value, other, off in zip(closed, integrated, (1e-15, 1e-15, 1e-12), strict=True):
                assert abs(value - other).mid() <= off * abs(other).mid()


@pytest.mark.quick_cases("gaussian")
@pytest.mark.parametrize("name", NOISES)
def test_formulas_agree_with_a_quadrature_of_the_definition(name):
    noise = NOISES[name]
    pair = noise.pair("remove")
    p, q = (
        sp.lambdify(
            X,
            sum(
                w * c.xreplace({pair.variable: X})
                for w, c in zip(weights, pair.components, strict=True)
            ),
            "mpmath",
        )
        for weights in (pair.p_weights, pair.q_weights)
    )
    with mpmath.workdps(25):
        places = [-300, *(k / mpmath.mpf(4) for k in range(-80, 81)), 300]
        epsilon = mpmath.mpf("0.3")
        height = mpmath.exp(epsilon)
        expected = mpmath.quad(lambda x: max(p(x) - height * q(x), 0), places)
    answer = compose(noise, 1).delta(0.3, direction="remove")
    assert float(answer) == pytest.approx(float(expected), rel=1e-5)


def test_where_scales_cancel():
    """μ = 1e−6: δ is a difference of tails that agree to six digits."""
    sigma = 10**6
    answer = compose(mechanisms.gaussian(sigma=sigma), 1).delta(1e-6)
    with mpmath.workdps(40):
        mu = mpmath.mpf(1) / sigma
        at = mpmath.mpf(1e-6)
        expected = mpmath.ncdf(-at / mu + mu / 2) - mpmath.exp(at) * mpmath.ncdf(-at / mu - mu / 2)
        assert abs(answer.log_delta - mpmath.log(expected)) < 1e-14


@pytest.mark.parametrize("sigma", ["1/50", "1/3", 3])
def test_far_tails(sigma):
    with mpmath.workdps(60):
        mu = 1 / mpmath.mpf(sp.Rational(sigma).p) * sp.Rational(sigma).q
        for share in (0.3, 2.0, 8.0):
            epsilon = float(mu * mu / 2 + share * mu)
            at = mpmath.mpf(epsilon)
            tails = [mpmath.ncdf(-at / mu + side * mu / 2) for side in (1, -1)]
            expected = mpmath.log(tails[0] - mpmath.exp(at) * tails[1])
            found = compose(mechanisms.gaussian(sigma=sigma), 1).delta(epsilon)
            assert found.log_lower <= expected <= found.log_upper
            assert found.log_upper - found.log_lower < 1e-11


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-200])
@pytest.mark.parametrize("rate", [None, "1/100"])
@pytest.mark.parametrize(
    "noise", [mechanisms.gaussian(sigma="7/5"), mechanisms.laplace(b="7/5")], ids=str
)
def test_epsilon_meets_delta(noise, rate, delta):
    noise = noise if rate is None else noise.subsample("poisson", rate)
    steps = compose(noise, 1)
    epsilon = steps.epsilon(delta)
    around = [steps.delta(float(epsilon) * (1 + side * 1e-9)) for side in (-1, 1)]
    assert float(around[0]) >= delta >= float(around[1])


def test_what_is_no_quadratic_has_no_formula():
    for density in (sp.exp(-(X**4)), 1 / sp.cosh(X), sp.exp(-sp.sqrt(1 + X**2))):
        noise = Mechanism.additive(density, X, 1, normalize=True)
        pair: Pair = noise.pair("remove")
        assert all(exponents(piece, pair.variable) is None for piece in pieces(pair))


def test_a_growing_term_is_not_finite():
    masses = ClosedMasses(((arb(1), arb(0), arb(0)),), ((arb(-1), arb(0), arb(0)),))
    p, q = masses.between(arb(0), arb(1))
    assert not p.is_finite()
    assert q.is_finite()


@pytest.mark.slow_cases("1/50")
@pytest.mark.parametrize("rate", RATES)
def test_gaps_and_outputs_of_one_law_alone(rate):
    """P lives on two stretches with a gap, Q on half a line: losses of both infinities."""
    share = sp.Rational(1, 4) / (1 - sp.exp(-2))
    p = sp.Piecewise(
        (share * sp.exp(-X), (X > 0) & (X < 2)), (3 * sp.exp(5 - X) / 4, X > 5), (0, True)
    )
    q = sp.Piecewise((sp.exp(-X / 2) / 2, X > 0), (0, True))
    pair = Mechanism.from_pair(p, q, X)
    pair = pair if rate is None else pair.subsample("poisson", rate)
    x = (np.arange(2_000_000) + 0.5) * 3e-5
    without, with_it = (np.asarray(sp.lambdify(X, f, "numpy")(x), dtype=float) for f in (q, p))
    if rate is not None:
        with_it = without + float(sp.Rational(rate)) * (with_it - without)
    for epsilon in (0.0, 0.3, 1.7):
        for direction, laws in (("remove", (with_it, without)), ("add", (without, with_it))):
            gain = np.maximum(laws[0] - np.exp(epsilon) * laws[1], 0.0).sum() * 3e-5
            found = compose(pair, 1).delta(epsilon, direction=direction)
            assert float(found) == pytest.approx(gain, abs=3e-5)
