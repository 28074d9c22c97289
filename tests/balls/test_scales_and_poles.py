"""Masses of densities that are infinite inside, or far narrower than 1, against closed forms."""

import mpmath
import pytest
import sympy as sp
from flint import arb, ctx

import symdp
from symdp.balls.mass import enclose_mass
from symdp.interrupt import Deadline, worked

x = sp.Symbol("x", real=True)


def _mass(density, lower=-sp.oo, upper=sp.oo):
    with ctx.workprec(192):
        deadline = Deadline(20.0, worked)
        return enclose_mass(density, x, lower, upper, arb(2) ** -120, deadline)


@pytest.mark.quick_cases("density4-mass4", "density3-mass3")
@pytest.mark.parametrize(
    ("density", "mass"),
    [
        (sp.log(1 + 4 / x**2), 4 * mpmath.pi),
        (sp.log(1 + 1 / sp.Abs(x) ** 3), 4 * mpmath.pi / mpmath.sqrt(3)),
        (sp.log(1 + 9 / (x - 5) ** 2), 6 * mpmath.pi),
        (sp.exp(-500_000 * x - sp.exp(-500_000 * x)), mpmath.mpf(1) / 500_000),
        (sp.exp(-sp.Abs(x) / 10**9), 2 * mpmath.mpf(10) ** 9),
    ],
)
def test_a_mass_is_its_closed_form(density, mass):
    found = _mass(density)
    assert float(found.mid()) == pytest.approx(float(mass), rel=1e-15)
    assert found.rad() < 1e-15 * abs(found)


def _noise(density: str, sensitivity: str) -> symdp.Mechanism:
    return symdp.Mechanism.from_toml(
        f'name = "own"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[noise]\n'
        f'density = "{density}"\nnormalize = true\nsensitivity = "{sensitivity}"\n'
    )


@pytest.mark.slow
def test_one_step_of_a_logarithmic_peak():
    answer = symdp.compose(_noise("log(1 + 4/x**2)", "1"), 1).delta(1)
    f = lambda y: mpmath.log(1 + 4 / y**2) / (4 * mpmath.pi)  # noqa: E731
    gain = lambda y: max(f(y) - mpmath.e * f(y - 1), mpmath.mpf(0))  # noqa: E731
    # P is infinite at 0, and above e times Q next to it alone
    root = [mpmath.findroot(lambda y: f(y) - mpmath.e * f(y - 1), at) for at in (-0.5, 0.2)]
    truth = mpmath.quad(gain, [root[0], root[0] / 4, 0, root[1] / 4, root[1]])
    assert float(truth) == pytest.approx(answer.delta, rel=1e-9)


@pytest.mark.quick_cases("2e-6")
@pytest.mark.parametrize("scale", ["1e-12", "2e-6", "1e6"])
def test_a_scale_changes_nothing(scale):
    narrow = _noise(f"exp(-x/{scale} - exp(-x/{scale}))", scale)
    plain = _noise("exp(-x - exp(-x))", "1")
    deltas = [symdp.compose(m, 10).delta(2).delta for m in (narrow, plain)]
    assert deltas[0] == pytest.approx(deltas[1], rel=1e-11)
