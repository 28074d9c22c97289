"""Random pairs whose two directions differ, of seven kinds: what nobody had in mind."""

from __future__ import annotations

import random

import sympy as sp

from symdp import Mechanism, mechanisms

x = sp.Symbol("x", real=True)
KINDS = ("beta", "gumbel", "skewed", "sampled", "list", "bounded", "normals", "integers")


def ratio(draw: random.Random, low: float, high: float, parts: int = 20) -> sp.Rational:
    """Return a fraction between two numbers."""
    return sp.Rational(draw.randint(round(low * parts), round(high * parts)), parts)


def random_pair(seed: int) -> Mechanism:
    """Return a step whose directions differ; its kind is that of the seed in `KINDS`."""
    return _MADE[KINDS[seed % len(KINDS)]](random.Random(seed))


def _beta(draw: random.Random) -> Mechanism:
    p, q = ([draw.randint(1, 6), draw.randint(1, 6)] for _ in range(2))
    if p == q:
        q[0] += 1

    def density(a: int, b: int) -> sp.Expr:
        front = sp.factorial(a + b - 1) / (sp.factorial(a - 1) * sp.factorial(b - 1))
        return front * x ** (a - 1) * (1 - x) ** (b - 1)

    return Mechanism.from_pair(density(*p), density(*q), x, (0, 1), "beta")


def _gumbel(draw: random.Random) -> Mechanism:
    b = ratio(draw, 0.5, 5)
    noise = Mechanism.additive(sp.exp(-x / b - sp.exp(-x / b)) / b, x, 1, name="gumbel_like")
    return _maybe_sampled(draw, noise)


def _skewed(draw: random.Random) -> Mechanism:
    s, t = ratio(draw, 0.5, 3), ratio(draw, 0.5, 3)
    density = sp.Piecewise((sp.exp(-x / s), x >= 0), (sp.exp(x / t), True)) / (s + t)
    return _maybe_sampled(draw, Mechanism.additive(density, x, 1, name="skewed"))


def _maybe_sampled(draw: random.Random, noise: Mechanism) -> Mechanism:
    return noise.subsample("poisson", ratio(draw, 0.01, 0.9, 100)) if draw.random() < 0.5 else noise


def _sampled(draw: random.Random) -> Mechanism:
    size = ratio(draw, 0.4, 4)
    noise = draw.choice(
        [
            mechanisms.gaussian(sigma=size),
            mechanisms.laplace(b=size),
            mechanisms.logistic(s=size),
        ]
    )
    return noise.subsample("poisson", ratio(draw, 0.01, 0.9, 100))


def _list(draw: random.Random) -> Mechanism:
    size = draw.randint(3, 6)
    p, q = ([draw.randint(1, 30) for _ in range(size)] for _ in range(2))
    if draw.random() < 0.3:
        p[0] = 0
    if draw.random() < 0.3:
        q[-1] = 0
    masses = [[sp.Rational(v, sum(law)) for v in law] for law in (p, q)]
    return Mechanism.from_pair(*masses, x, list(range(size)), "listed")


def _bounded(draw: random.Random) -> Mechanism:
    a, b = draw.sample([-5, -4, -3, -2, -1, 1, 2, 3, 4, 5], 2)
    laws = [sp.exp(c * x) * c / (sp.exp(c) - 1) for c in (sp.Rational(a, 2), sp.Rational(b, 2))]
    return Mechanism.from_pair(*laws, x, (0, 1), "bounded")


def _normals(draw: random.Random) -> Mechanism:
    move, s, t = ratio(draw, 0, 2), ratio(draw, 0.5, 3), ratio(draw, 0.5, 3)
    laws = [
        sp.exp(-((x - m) ** 2) / (2 * w**2)) / (w * sp.sqrt(2 * sp.pi))
        for m, w in ((move, s), (0, t))
    ]
    return Mechanism.from_pair(*laws, x, (-sp.oo, sp.oo), "normals")


def _integers(draw: random.Random) -> Mechanism:
    return draw.choice(
        [
            mechanisms.negative_binomial(r=draw.randint(1, 6), p=ratio(draw, 0.1, 0.9)),
            mechanisms.discrete_laplace(b=ratio(draw, 0.5, 4)).subsample("poisson", "1/5"),
            mechanisms.discrete_gaussian(sigma=ratio(draw, 1, 4)).subsample("poisson", "1/5"),
        ]
    )


_MADE = dict(
    zip(
        KINDS,
        (_beta, _gumbel, _skewed, _sampled, _list, _bounded, _normals, _integers),
        strict=True,
    )
)
