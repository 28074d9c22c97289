"""Waves whose shift is a whole number of periods or half periods: what two densities share goes."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.density.normal_form import log_form
from symdp.density.roots import RootsUnknownError, roots_between
from symdp.density.turning import slope_numerator
from symdp.derive import derive

X = sp.Symbol("x", real=True)
W, N = sp.Symbol("w", positive=True), sp.Symbol("n", integer=True)


@pytest.mark.parametrize(
    ("shifted", "plain"),
    [
        (sp.cos(2 * sp.pi * (X - 1)), sp.cos(2 * sp.pi * X)),
        (sp.cos(4 * sp.pi * X - 2 * sp.pi, evaluate=False), sp.cos(4 * sp.pi * X)),
        (sp.sin(sp.pi * (X - 1)), -sp.sin(sp.pi * X)),
        (sp.cos(sp.pi * (2 * X - 1)), -sp.cos(2 * sp.pi * X)),
        (sp.sin(2 * sp.pi * (X - W) / W), sp.sin(2 * sp.pi * X / W)),
        (sp.cos(2 * sp.pi * (X - N)), sp.cos(2 * sp.pi * X)),
        (sp.cos(sp.pi * (X - 2 * N) + W), sp.cos(sp.pi * X + W)),
        (sp.tan(sp.pi * (X - N)) / 10, sp.tan(sp.pi * X) / 10),
    ],
)
def test_whole_periods_leave_a_wave(shifted: sp.Expr, plain: sp.Expr) -> None:
    at = sp.Rational(1, 7)
    gap = log_form(3 + shifted, X, at).minus(log_form(3 + plain, X, at))
    assert gap.to_expression() == 0


@pytest.mark.parametrize("shift", [sp.Rational(1, 3), W])
def test_other_shifts_stay(shift: sp.Expr) -> None:
    at = sp.Rational(1, 7)
    shifted, plain = 3 + sp.cos(2 * sp.pi * (X - shift)), 3 + sp.cos(2 * sp.pi * X)
    assert not log_form(shifted, X, at).minus(log_form(plain, X, at)).is_constant


def test_a_slope_that_shifted_waves_share_is_a_constant_times_a_power() -> None:
    """sin a sin b + cos a cos b = cos(a − b) does not move: it turns nowhere inside the support."""
    loss = sp.cos(sp.pi * (X - 1) / 20) ** 4 / sp.cos(sp.pi * X / 20) ** 4
    slope = slope_numerator(loss, X)
    assert len(slope.atoms(sp.sin, sp.cos)) == 1
    place = sp.Rational(3)
    assert sp.sign(slope.subs(X, place).n()) == sp.sign(sp.diff(loss, X).subs(X, place).n())


def test_zeros_of_a_wave_beside_a_larger_constant() -> None:
    assert roots_between(1 + sp.cos(W * X) / 2, X, -sp.oo, sp.oo) == ()
    with pytest.raises(RootsUnknownError, match="infinitely many zeros"):
        roots_between(sp.cos(2 * X), X, -sp.oo, sp.oo)


# The noise, the range of its loss, and the values of parameters at which K is compared.
NOISES = {
    "laplace": ("exp(-abs(x)/b)*(1 + sin(2*pi*x)/2)/(2*b)", ("-1/b", "1/b"), {"b": 2}),
    "gaussian": ("exp(-x**2/2)*(1 + sin(2*pi*x)/2)/sqrt(2*pi)", ("-oo", "oo"), {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISES)
def test_the_cgf_of_a_noise_with_ripples_of_its_sensitivity_is_closed(name: str) -> None:
    density, ends, values = NOISES[name]
    words = "\n".join(f'{key} = "positive"' for key in values)
    made = symdp.Mechanism.from_toml(
        f'name = "ripples"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[parameters]\n{words}\n'
        f'[noise]\ndensity = "{density}"'
    )
    d = derive(made)
    assert list(map(str, d.loss_range or ())) == list(ends)
    assert d.cgf.form == "closed", d.cgf.reason
    f = sp.lambdify(made.variable, made(**values).source.density, "mpmath")  # type: ignore[union-attr]
    tilt = mpmath.mpf(1) / 3
    with mpmath.workdps(20):
        cuts = [-60, *range(-20, 21), 60]
        truth = mpmath.log(mpmath.quad(lambda x: f(x - 1) ** (1 + tilt) * f(x) ** -tilt, cuts))
        bound = d.cgf.expression.subs({made.parameters[k]: v for k, v in values.items()})  # type: ignore[union-attr]
        found = bound.subs(d.cgf.tilt, sp.Rational(1, 3)).evalf(18)
    assert abs(found - truth) < 1e-10
