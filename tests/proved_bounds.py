"""Mechanisms of every kind, and what each bound on them must contain."""

from __future__ import annotations

import math
from functools import cache

import sympy as sp
from flint import arb, ctx

from symdp import compose, mechanisms
from symdp.methods.moments import Moments
from symdp.methods.route import Contour
from symdp.methods.series import payoff_integrals
from symdp.model.mechanism import Mechanism
from symdp.numeric.saddle_point import Strip

x = sp.Symbol("x", real=True)


def normal(mean, sigma):
    return sp.exp(-((x - mean) ** 2) / (2 * sigma**2)) / (sigma * sp.sqrt(2 * sp.pi))


MECHANISMS = {
    "normal noise": mechanisms.gaussian(sigma="3/2"),
    "subsampled normal": mechanisms.gaussian(sigma="3/2").subsample("poisson", "1/100"),
    "substitution": mechanisms.gaussian(sigma=2).subsample("without_replacement", "1/20"),
    "with replacement": mechanisms.gaussian(sigma=2).subsample("with_replacement", "1/20", 2),
    "laplace": mechanisms.laplace(b="5/2"),
    "subsampled laplace": mechanisms.laplace(b=1).subsample("poisson", "1/10"),
    "logistic": mechanisms.logistic(s=1),
    "gumbel": mechanisms.gumbel(b=2),
    "student": mechanisms.student_t(nu=3, s=1),
    "mixture noise": Mechanism.additive(normal(0, 1) / 2 + normal(0, 3) / 2, x),
    "two variances": Mechanism.from_pair(normal(0, sp.Rational(3, 2)), normal(0, 1), x),
    "randomized response": mechanisms.randomized_response(epsilon_0=1),
    "discrete laplace": mechanisms.discrete_laplace(b=2),
    "one-sided": Mechanism.additive(sp.exp(-x / 20) / 20, x, support=(0, sp.oo)),
}
# Of MECHANISMS and COUNTS, as their cases are called: a thousand steps of all, and all of two.
QUICK = (
    *(f"{name}-1000" for name in MECHANISMS),
    *(f"{name}-{count}" for name in ("laplace", "subsampled normal") for count in (1, 10, 10**6)),
)
TRUE_CASES = [
    ("subsampled normal", 4000),
    ("laplace", 4000),
    ("gumbel", 30),
    ("gumbel", 4000),
    ("randomized response", 30),
    ("randomized response", 4000),
]
COUNTS = (1, 10, 10**3, 10**6)
DEVIATIONS = (-2.0, 0.0, 1.0, 4.0)


@cache
def composition(name, count):
    return compose(MECHANISMS[name], count)


@cache
def exact_points(name, count, direction):
    """(ε, contour's answer) around the mean of the loss and near the ends of its range."""
    law = composition(name, count).law(direction)
    mean, variance = (float(c) for c in law.cumulants(0.0, 2))
    places = [mean + k * math.sqrt(variance) for k in DEVIATIONS]
    places += [0.0, -0.5]
    low, high = law.loss_bounds
    places += [0.999 * end for end in (low, high) if math.isfinite(end) and count <= 10]
    return [(epsilon, Contour().log_delta(law, epsilon)) for epsilon in places]


def assert_contains(answer, exact):
    """The interval holds the true log δ, up to the rounding of a logarithm and the contour's."""
    assert answer.log_upper is not None
    assert not math.isnan(answer.log_delta)
    slack = rounding(exact.log_delta)
    assert answer.log_upper <= 0.0
    assert answer.log_upper + slack >= exact.log_lower
    if answer.log_lower is not None:
        assert answer.log_lower <= answer.log_upper
        assert answer.log_lower - slack <= exact.log_upper


def rounding(log_delta):
    """What the rounding of a loss and of a logarithm may change in log δ of the contour."""
    return 4e-15 * (1.0 + abs(log_delta)) if math.isfinite(log_delta) else 0.0


def assert_meets(answer, ball, slack=2.0**-52):
    """The interval meets a ball that is proved to hold δ, up to one rounding of δ itself."""
    assert answer.log_upper is not None
    assert not math.isnan(answer.log_delta)
    with ctx.workprec(128):
        lower, upper = ball.lower(), ball.upper()
        if lower > 0:
            assert answer.log_upper > -math.inf
            assert arb(answer.log_upper) + slack > lower.log()
        if answer.log_lower is not None and answer.log_lower > -math.inf:
            assert upper > 0
            assert arb(answer.log_lower) - slack < upper.log()


def assert_within_moments(answer, law, epsilon):
    """Never wider than [0, moments bound], at any ε."""
    assert answer.log_upper <= Moments().log_delta(law, epsilon).log_upper


def log_central_limit(law, epsilon, tilt):
    """Return log I of the strip of `tilt`, the tilted sum taken as Gaussian with its two moments.

    I_CLT = ½ e^{K(t) − εt − (m−ε)²/(2v)} [erfcx(a_t/√2) − erfcx(a_{t+1}/√2)] for t > 0, m = K′(t),
    v = K″(t), a_s = (sv + ε − m)/√v [SPA (66), (79)]; exact for a Gaussian loss at every t. The
    other strips integrate the same Gaussian against their own payoff.
    """
    strip = Strip.RIGHT if tilt > 0 else (Strip.LEFT if tilt < -1 else Strip.MIDDLE)
    mean, variance = (float(x) for x in law.cumulants(tilt, 2))
    log_factor, integrals = payoff_integrals(
        strip,
        tilt,
        1.0 + tilt,
        gap=mean - epsilon,
        variance=variance,
        count=1,
    )
    return law.cgf(tilt) - epsilon * tilt + log_factor + math.log(integrals[0])
