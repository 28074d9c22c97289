"""Laws from formulas with values put in, against laws derived at these values."""

from __future__ import annotations

import math
from importlib import import_module

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

import symdp
from symdp import mechanisms
from symdp.numeric.compile import compiled_law
from symdp.numeric.formula import law_of_formula
from symdp.numeric.laws.of_mechanism import loss_law
from symdp.numeric.nodes import excess

STEPS = {
    "gaussian": mechanisms.gaussian(sigma="7/5"),
    "sampled gaussian": mechanisms.gaussian(sigma="1.237").subsample("poisson", "11/1000"),
    "fixed batch": mechanisms.gaussian(sigma=3).subsample("without_replacement", "1/50"),
    "substituted": mechanisms.gaussian(sigma=2).under("substitution"),
    "laplace": mechanisms.laplace(b="5/2").subsample("poisson", "1/7"),
    "logistic": mechanisms.logistic(s="1.9"),
    "student": mechanisms.student_t(nu="7/2", s="1.5"),
    "gumbel": mechanisms.gumbel(b="2.2").subsample("poisson", "1/30"),
}
LAPLACE = [
    mechanisms.laplace(b="7/3"),
    mechanisms.laplace(b="1/4").subsample("poisson", "1/9"),
]
WRITTEN = """
name = "written"
variable = "x"
support = ["-oo", "oo"]
[parameters]
s = "positive"
[noise]
density = "exp(-x**2/(2*s**2))/(s*sqrt(2*pi))"
"""
TILTS = np.asarray([-1.5, -0.7, -0.2, 0.3, 0.9])


@pytest.mark.quick_cases(
    "gaussian-remove",
    "sampled gaussian-add",
    "substituted-remove",
    "laplace-remove",
    "logistic-remove",
    "student-add",
    "gumbel-add",
)
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("name", STEPS)
def test_a_formula_with_values_has_the_law_that_is_derived_at_them(name, direction):
    step = STEPS[name]
    found = law_of_formula(step, direction)
    assert found is not None
    derived = compiled_law(step.pair(direction), step.name)
    assert found.domain == pytest.approx(derived.domain, rel=1e-12)
    assert found.loss_bounds == pytest.approx(derived.loss_bounds, rel=1e-15)
    assert found.precise_top == derived.precise_top
    ends = [
        [float(end) for piece in law.step.pieces for end in piece.ends] for law in (found, derived)
    ]
    assert ends[0] == ends[1]
    values = [excess(law.base, TILTS) for law in (found, derived)]
    assert values[0] == pytest.approx(values[1], rel=1e-13)
    spread = float(derived.base.weight @ np.abs(derived.base.centred))
    assert abs(found.base.mean - derived.base.mean) < 4e-15 * spread


@pytest.mark.parametrize("name", STEPS)
def test_a_law_with_densities_exchanged_is_that_of_the_other_direction(name):
    step = STEPS[name]
    other = compiled_law(step.pair("remove"), step.name)
    assert other.is_reversible
    turned, derived = other.reversed(), compiled_law(step.pair("remove").reversed(), step.name)
    assert turned.domain == pytest.approx(derived.domain, rel=1e-12)
    assert turned.loss_bounds == pytest.approx(derived.loss_bounds, rel=1e-15)
    values = [excess(law.base, TILTS) for law in (turned, derived)]
    assert values[0] == pytest.approx(values[1], rel=1e-13)
    assert turned.base.beyond == pytest.approx(derived.base.beyond, abs=1e-15)
    spread = float(derived.base.weight @ np.abs(derived.base.centred))
    assert abs(turned.base.mean - derived.base.mean) < 4e-15 * spread
    for piece in turned.step.pieces:
        inside = np.asarray([0.25 + max(piece.lower, -2.0)])
        log_p, loss = piece.rounded(inside)
        assert (log_p, loss) == (
            pytest.approx(piece.log_p(inside), rel=1e-13),
            pytest.approx(piece.loss(inside), rel=1e-12),
        )


@pytest.mark.parametrize("name", STEPS)
def test_rounded_losses_are_the_nearest_doubles(name):
    (piece, *_) = loss_law(STEPS[name], "remove").step.pieces
    x = np.linspace(max(piece.lower, -6.3), min(piece.upper, 7.0), 41)[1:-1]
    found = piece.rounded(x)
    for values, index in zip(found, (0, 1), strict=True):
        with ctx.workprec(200):
            exact = [piece.ball(arb(place))[index] for place in x.tolist()]
            gaps = [abs(float(b - arb(v))) for b, v in zip(exact, values.tolist(), strict=True)]
        assert max(g / math.ulp(v) for g, v in zip(gaps, values.tolist(), strict=True)) < 0.51


@pytest.mark.parametrize(
    "step",
    [
        mechanisms.gaussian(sigma=2).normalized(),
        mechanisms.gaussian(sigma=2).subsample("poisson", 1),
    ],
    ids=["no template", "rate one"],
)
def test_what_no_formula_serves_is_derived(step):
    assert law_of_formula(step, "remove") is None
    assert loss_law(step, "remove").base.mass_at_infinity == 0.0


def test_derivation_happens_once_for_a_formula(monkeypatch):
    from symdp.numeric import formula

    calls, module = [], import_module("symdp.density.pieces")
    derive = module.pieces
    monkeypatch.setattr(module, "pieces", lambda pair: calls.append(pair) or derive(pair))
    formula._derived_formula.cache_clear()
    written = symdp.Mechanism.from_toml(WRITTEN)  # what is shipped is derived never
    for scale in ("2.1", "2.2", "2.3"):
        assert law_of_formula(written(s=scale), "remove") is not None
    assert len(calls) == 1


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("made", LAPLACE)
def test_an_exponential_stretch_of_constant_loss_has_its_mass_in_closed_form(made, direction):
    flat = [piece for piece in loss_law(made, direction).step.pieces if piece.flat]
    assert len(flat) == 2
    for piece in flat:
        mass = mpmath.quad(
            lambda x, log_p=piece.log_p: mpmath.exp(float(log_p(np.asarray([float(x)]))[0])),
            [piece.lower, 0.5 * (max(piece.lower, -9.0) + min(piece.upper, 9.0)), piece.upper],
        )
        assert piece.log_mass == pytest.approx(float(mpmath.log(mass)), abs=1e-13)


def test_alternatives_that_differ_in_weights_have_one_formula(monkeypatch):
    """One alternative for each size of a batch: the same law as where each is derived by itself."""
    average = mechanisms.laplace(b="5/2").subsample(
        "poisson", "1/30", records=60, released="average"
    )
    pair = average.pair("remove")
    together = compiled_law(pair, "together")
    compiled = import_module("symdp.numeric.compile")
    monkeypatch.setattr(compiled, "_pieces_of_group", lambda group, name: [])
    one_by_one = compiled_law(pair, "one by one")
    assert len(together.step.pieces) == len(one_by_one.step.pieces) > 20
    assert together.is_reversible
    assert one_by_one.is_reversible
    tilts = np.asarray([-1.0, -0.4, 0.5, 3.0])
    for law, other in ((together, one_by_one), (together.reversed(), one_by_one.reversed())):
        assert law.mass_at_infinity == pytest.approx(other.mass_at_infinity, rel=1e-12)
        values = law.transform(tilts) + tilts * law.base.mean
        others = other.transform(tilts) + tilts * other.base.mean
        np.testing.assert_allclose(values, others, rtol=1e-12, atol=1e-15)


def test_a_constant_next_to_1_leads_a_small_loss_unrounded():
    """log(99/100 + W e^{…}) is as small as q: 99/100 is no double, and counts by its logarithm."""
    average = mechanisms.gaussian(sigma="3/2").subsample(
        "poisson", "1/100", records=200, released="average"
    )
    law = compiled_law(average.pair("remove"), "average")
    x = np.linspace(-3.0, 3.0, 101)
    moving = [piece for piece in law.step.pieces if not piece.flat]
    for piece in moving[:5]:
        _, _, loss = piece.values(x)
        _, exact = piece.rounded(x)
        assert np.abs(loss - exact).max() <= 4e-17 + 1e-14 * np.abs(exact).max()
        assert np.sqrt(np.mean((loss - exact) ** 2)) < 2e-17
