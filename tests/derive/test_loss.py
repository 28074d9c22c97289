"""Inverse, distribution and dominating direction of the loss, and Rényi orders, against numbers."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp
from catalogue import ALL
from derive_examples import R, x

import symdp
from symdp.density.check import moment
from symdp.density.pieces import pieces, points
from symdp.derive import derive
from symdp.errors import InputError
from symdp.model.mechanism import Mechanism

M = symdp.mechanisms


@pytest.fixture(autouse=True)
def _cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMDP_CACHE", "off")


CASES: dict[str, tuple[Mechanism, dict[str, sp.Rational]]] = {
    "gaussian": (M.gaussian, {"sigma": R(4, 3)}),
    "laplace": (M.laplace, {"b": R(3, 4)}),
    "logistic": (M.logistic, {"s": R(2, 3)}),
    "gumbel": (M.gumbel, {"b": R(5, 4)}),
    "subsampled gaussian": (M.gaussian.subsample("poisson", "q"), {"sigma": R(4, 3), "q": R(1, 7)}),
    "subsampled laplace": (M.laplace.subsample("poisson", "q"), {"b": R(3, 4), "q": R(1, 7)}),
    "triangles": (ALL["triangles"].mechanism(), {}),
}

STEPS = """
name = "steps"
variable = "x"
support = [0, 3]
[pair]
P = "Piecewise((1/4, x < 1), (1/8, True))"
Q = "Piecewise((1/8, x < 1), (3/8, x < 2), (1/4, True))"
atoms = {{ "{atom}" = ["1/2", "1/4"] }}
"""


@pytest.mark.quick_cases("gaussian")
@pytest.mark.parametrize("name", CASES)
def test_distribution_of_the_loss_against_quadrature_over_x(name: str) -> None:
    mechanism, values = CASES[name]
    found, bound = derive(mechanism), derive(mechanism(**values))
    put = {mechanism.parameters[n]: v for n, v in values.items()}
    density, cdf = found.pld_density, found.pld_cdf
    assert density.expression is not None, density.reason
    assert cdf.expression is not None, cdf.reason
    x = bound.variable
    for piece in bound.pieces:
        if piece.slope == "constant":
            continue
        at = R(1, 3)
        level = piece.loss.subs(x, at)
        wanted = sp.N((sp.exp(piece.log_p) / sp.Abs(sp.diff(piece.loss, x))).subs(x, at), 30)
        mine = sp.N(density.expression.subs(put).subs(density.loss, level), 30)
        assert abs(mine - wanted) < 1e-20
        p = sp.lambdify(x, sp.exp(piece.log_p), "mpmath")
        with mpmath.workdps(30):
            low = max(piece.lower, -R(40) if name != "gumbel" else -R(6))
            marks = [low, *(m for m in (-9, -3, -1, 0) if low < m), at]
            below = mpmath.quad(p, [mpmath.mpf(str(sp.N(m, 30))) for m in marks])
            share = mpmath.mpmathify(sp.N(cdf.expression.subs(put).subs(cdf.loss, level), 30))
            assert abs(share - below) < 1e-15


@pytest.mark.quick_cases("gaussian", "laplace")
@pytest.mark.parametrize("name", CASES)
def test_inverse_undoes_the_loss(name: str) -> None:
    mechanism, values = CASES[name]
    put = {mechanism.parameters[n]: v for n, v in values.items()}
    found = derive(mechanism)
    moving = [(p, b) for p, b in found.inverse if p.slope != "constant"]
    assert moving
    for piece, back in moving:
        assert back is not None
        level = piece.loss.subs(put).subs(found.variable, R(2, 7))
        assert abs(sp.N(back.subs(put).subs(found.pld_density.loss, level) - R(2, 7), 30)) < 1e-25


@pytest.mark.slow
def test_what_has_no_closed_distribution_says_why() -> None:
    noise = derive(M.student_t)
    assert (noise.pld_cdf.expression, bool(noise.pld_cdf.reason)) == (None, True)
    lattice = derive(M.discrete_laplace)
    assert "atoms" in lattice.pld_density.reason


@pytest.mark.slow_cases(
    "mechanism2-both", "mechanism14-both", "mechanism15-both", "mechanism16-unknown"
)
@pytest.mark.parametrize(
    ("mechanism", "direction"),
    [
        (M.gaussian, "both"),
        (M.laplace, "both"),
        (M.logistic, "both"),
        (M.student_t, "both"),
        (M.discrete_laplace, "both"),
        (M.randomized_response, "both"),
        (M.gumbel, "unknown"),
        (M.gaussian.subsample("poisson", "q"), "remove"),
        (M.laplace.subsample("poisson", R(1, 10)), "remove"),
        (M.gumbel.subsample("poisson", "q"), "unknown"),
        (M.gaussian.subsample("without_replacement", "q"), "both"),
        (ALL["asymmetric laplace"].mechanism(), "unknown"),
        (ALL["gaussian, two variances"].mechanism(), "unknown"),
        (ALL["exponential noise"].mechanism(), "unknown"),
        (ALL["uniform noise"].mechanism(), "both"),
        (Mechanism.additive((sp.erf(x + 4) - sp.erf(x - 4)) / 16, x), "both"),
        (Mechanism.additive((sp.erf(x + 4) - sp.erf((x - 4) / 2)) / 16, x), "unknown"),
    ],
)
def test_dominating_direction(mechanism: Mechanism, direction: str) -> None:
    found = derive(mechanism).dominating_direction
    assert found.value == direction
    assert found.proof


@pytest.mark.quick_cases(
    "gaussian-5-add", "gaussian-5-remove", "gaussian-2-remove", "gaussian-2-add"
)
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("order", [2, 5])
@pytest.mark.parametrize("name", ["gaussian", "laplace", "gumbel"])
def test_renyi_of_subsampled_pairs_against_integrals(name: str, order: int, direction: str) -> None:
    mechanism = getattr(M, name)
    (parameter,) = mechanism.parameters
    value = R(7, 5)
    sampled = mechanism.subsample("poisson", "q")
    tilt = order - 1 if direction == "remove" else -order
    found = derive(sampled, direction).cgf_at(tilt)
    put = {sampled.parameters[parameter]: value, sampled.parameters["q"]: R(2, 9)}
    pair = sampled(**{parameter: value, "q": R(2, 9)}).pair(direction)
    ball = moment(sp.Integer(tilt), pieces(pair), points(pair), pair.variable)
    direct = sp.Float(ball.real.str(25, radius=False), 25)
    assert abs(sp.N(sp.exp(found.subs(put)), 25) / direct - 1) < 1e-18


@pytest.mark.slow
def test_renyi_of_closed_forms_and_refusals() -> None:
    sigma = M.gaussian.parameters["sigma"]
    assert sp.simplify(derive(M.gaussian).renyi(4) - 2 / sigma**2) == 0
    with pytest.raises(InputError, match="whole number"):
        derive(M.gaussian).renyi(1)
    # D₂ of Cauchy noise is log(1 + 1/(2s²)), that of Student's with ν = 3 a polynomial in 1/s².
    for nu, wanted in ((1, sp.log(R(9, 8))), (3, None)):
        found = derive(M.student_t(nu=nu, s=2)).renyi(2)
        assert wanted is None or sp.simplify(found - wanted) == 0
        assert not found.has(sp.hyper, sp.legendre)
        density = sp.lambdify(x, (1 + x**2 / (4 * nu)) ** (-R(nu + 1, 2)), "mpmath")
        marks = [-mpmath.inf, -4, 0, 1, 5, mpmath.inf]
        mass = mpmath.quad(density, marks)
        direct = mpmath.quad(lambda at, f=density: f(at - 1) ** 2 / f(at), marks) / mass
        assert abs(mpmath.log(direct) - sp.N(found, 20)) < 1e-12
    with pytest.raises(InputError, match="no closed form of K at 1 was found"):
        derive(M.discrete_gaussian).renyi(2)
    with pytest.raises(InputError, match="whole number"):
        derive(M.gaussian).cgf_at(0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("atom", [0, 1, 2, 3])
def test_an_atom_has_its_loss_whatever_stretch_has_the_same(atom):
    """Half of P and a quarter of Q lie at the atom, whose ratio 2 is that of the first stretch."""
    steps = Mechanism.from_toml(STEPS.format(atom=atom))
    loss = derive(steps).loss
    ratios = {0.5: 2, 1.5: sp.Rational(1, 3), 2.5: sp.Rational(1, 2), atom: 2}
    for at, ratio in ratios.items():
        assert loss.subs(steps.variable, sp.Rational(at)) == sp.log(ratio)
