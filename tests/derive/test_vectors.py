"""Formulas of noise on vectors: two distances, or a pair on a line that has the same loss."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp
from shell import Shell

import symdp
from symdp import Mechanism, derive

r, s = sp.Symbol("r"), sp.Symbol("s", positive=True)
STUDENT = Mechanism.radial((1 + r**2 / s**2) ** -4, r, dimension=3, sensitivity=2, name="student")
PLANAR = Mechanism.radial(sp.exp(-r / s), r, dimension=2, name="planar")
FILE = """name = "student"
variable = "r"
[parameters]
s = "positive"
[noise]
norm = "l2"
dimension = 3
density = "(1 + r**2/s**2)**(-4)"
sensitivity = 1
"""


def nodes(*ends: float, count: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre nodes and weights of panels between the ends."""
    x, w = np.polynomial.legendre.leggauss(count)
    half = [(high - low) / 2 for low, high in pairwise(ends)]
    at = [low + h * (1 + x) for low, h in zip(ends, half, strict=False)]
    return np.concatenate(at), np.concatenate([h * w for h in half])


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("rate", [None, sp.Rational(1, 5)])
def test_the_integral_over_two_distances_is_the_moment(direction, rate):
    """The same in coordinates along the shift, of length 2, and across it."""
    made = STUDENT(s=2) if rate is None else STUDENT(s=2).subsample("poisson", rate)
    found = derive(made, direction)
    moment = found.moment(found.density / found.normaliser.doit(), found.loss)
    (first, _, _), (second, _, _) = moment.limits
    inside = sp.lambdify((first, second), moment.function.subs(found.cgf.tilt, 0.5), "numpy")
    far, weight = nodes(0, 1, 2, 4, 12, 60, 400)
    x, w = np.polynomial.legendre.leggauss(120)
    half = (far + 2 - abs(far - 2)) / 2
    near = abs(far - 2)[:, None] + half[:, None] * (1 + x)
    own = float(((inside(near, far[:, None]) @ w) * half) @ weight)

    y, v = nodes(0, 2, 20, 2000)
    mass = float(4 * np.pi * y**2 * (1 + y * y / 4) ** -4 @ v)
    a, of_a = nodes(-400, -60, -8, -2, 0, 1, 2, 4, 10, 60, 400)
    h, of_h = nodes(0, 2, 8, 40, 400)
    q, p = ((1 + ((a[:, None] - c) ** 2 + h**2) / 4) ** -4 / mass for c in (0, 2))
    p = p if rate is None else 0.8 * q + 0.2 * p
    top, bottom = (p, q) if direction == "remove" else (q, p)
    truth = of_a @ (2 * np.pi * h * top**1.5 * bottom**-0.5) @ of_h
    assert own == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("dimension", [2, 5, 6])
def test_two_distances_have_the_moments_of_the_noise(dimension):
    """Of (1 + |X|²)^(−12): mass 1, E|X|² = d/(22 − d), and E|X − v|² is 4 more where |v| = 2."""
    found = derive(Mechanism.radial((1 + r**2) ** -12, r, dimension, sensitivity=2, name="noise"))
    square = dimension / (22 - dimension)
    density = found.density / found.normaliser.doit()
    inside = sp.lambdify(sorted(density.free_symbols, key=str), density, "numpy")
    far, weight = nodes(0, 1, 2, 4, 12, count=60)
    # |r₁ − r₂| ≤ 2 ≤ r₁ + r₂; the root at its ends is that of a cosine.
    angle, w = nodes(0, np.pi, count=60)
    half = (far + 2 - abs(far - 2)) / 2
    near = abs(far - 2)[:, None] + half[:, None] * (1 - np.cos(angle))
    heights = inside(near, far[:, None]) * half[:, None] * np.sin(angle) * weight[:, None] * w
    assert heights.sum() == pytest.approx(1.0, rel=1e-6)
    assert (heights * near**2).sum() == pytest.approx(square, rel=1e-6)
    assert (heights * far[:, None] ** 2).sum() == pytest.approx(square + 4.0, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [PLANAR, symdp.mechanisms.l2_laplace], ids=str)
def test_a_pair_on_a_line_is_a_density_for_all_values(noise):
    """Bessel functions are positive, and d − 1 is none below 0: ω was negative."""
    law = symdp.derive(noise).pld_density
    values = {name: {"s": 2, "d": 4}[name] for name in noise.parameters}
    value = law.expression.subs(
        {y: values[y.name] for y in law.expression.free_symbols if y.name in values}
    )
    pair = noise(**values).pair().P
    (x,) = pair.free_symbols
    inside = sp.N(value.subs(law.loss, sp.Rational(1, 5)))
    assert inside > 0
    assert float(inside) == pytest.approx(
        float(sp.N(2 * pair.subs(x, sp.Rational(2, 5)))), rel=1e-12
    )


@pytest.mark.slow
def test_the_pair_of_planar_laplace_noise_has_the_law_of_its_loss():
    """δ of the pair, written as one, is that of the noise, which is summed over distances."""
    pair = PLANAR(s=2).pair()
    (x,) = pair.P.free_symbols
    ends = (pair.support.lower, pair.support.upper)
    own = Mechanism.from_pair(pair.P, pair.Q, x, support=ends)
    one, other = (symdp.compose(m, 1).delta(0.5).delta for m in (own, PLANAR(s=2)))
    assert one == pytest.approx(other, rel=1e-9)


def test_every_format_and_the_page(tmp_path, capsys):
    shell, path = Shell(capsys), tmp_path / "student.toml"
    path.write_text(FILE, encoding="utf-8")
    for form in ("text", "latex", "mathml", "json"):
        ran = shell("derive", str(path), "--format", form)
        assert ran.code == 0, ran.err
        assert "no density" not in ran.out
        if form == "json":
            assert json.loads(ran.out)["dimension"] == "3"
        if form == "text":
            assert "4·log(r₁² + s²) − 4·log(r₂² + s²)" in ran.out
    ran = shell("derive", str(path), "--format", "page")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
