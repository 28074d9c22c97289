"""Masses from the terms of a density, and by two quadratures where no proof comes."""

from __future__ import annotations

import math

import pytest
import sympy as sp
from flint import arb, ctx

from symdp.balls.density import checked_masses
from symdp.balls.masses import checked_steps
from symdp.balls.numeric_mass import two_masses
from symdp.balls.terms import enclose_mass
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import Deadline
from symdp.model.mechanism import Mechanism

x = sp.Symbol("x", real=True)
k = sp.Symbol("k", integer=True)
NORMAL = sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)
CAUCHY = 1 / (sp.pi * (1 + x**2))
STUDENT = 2 / (sp.pi * (1 + x**2) ** 2)
ROOT = sp.sqrt(2)
ROUNDED = (sp.erf((k + sp.S.Half) / (3 * ROOT)) - sp.erf((k - sp.S.Half) / (3 * ROOT))) / 2
WAVE = STUDENT * (1 + sp.cos(x) / 2) / (1 + sp.exp(-1))
HALF_LINE, LINE, UNIT = (sp.S.Zero, sp.oo), (-sp.oo, sp.oo), (sp.S.Zero, sp.S.One)
PEAK = 1000 * sp.exp(-500_000 * (x - 300) ** 2) / sp.sqrt(2 * sp.pi)
BETA = 1 / (sp.pi * sp.sqrt(x * (1 - x)))

# Densities of mass 1 by what they are: mixtures, skewed, smoothed or rounded laws.
PROVED = {
    "normal and cauchy": (sp.Rational(7, 10) * NORMAL + sp.Rational(3, 10) * CAUCHY, LINE),
    "normal and student": (NORMAL / 2 + STUDENT / 2, LINE),
    "skew-normal": (NORMAL * (1 + sp.erf(2 * x)), LINE),
    "normal and laplace": (
        sp.exp(x + sp.S.Half) * sp.erfc((x + 1) / ROOT) / 4
        + sp.exp(-x + sp.S.Half) * sp.erfc((1 - x) / ROOT) / 4,
        LINE,
    ),
    "exponential with a wave": (sp.exp(-x) * (1 + sp.cos(x)) * 2 / 3, HALF_LINE),
    "rounded normal": (ROUNDED, LINE),
    "lognormal": (sp.exp(-(sp.log(x) ** 2) / 2) / (x * sp.sqrt(2 * sp.pi)), HALF_LINE),
    "inverse gaussian": (
        sp.exp(-((x - 1) ** 2) / (2 * x)) / sp.sqrt(2 * sp.pi * x**3),
        HALF_LINE,
    ),
    "far narrow peak": (NORMAL / 2 + PEAK / 2, LINE),
}


@pytest.mark.parametrize("name", PROVED)
def test_the_mass_of_a_density_is_enclosed_from_its_terms(name):
    density, ends = PROVED[name]
    variable = k if density.has(k) else x
    with ctx.workprec(128):
        mass = enclose_mass(density, variable, *ends, arb(2) ** -90, Deadline(30))
        assert mass.contains(1)
        assert mass.rad() < arb(10) ** -15


def test_a_time_that_is_over_is_an_error():
    with pytest.raises(AccuracyError, match="within"):
        enclose_mass(WAVE, x, *LINE, arb(2) ** -90, Deadline(-1))


QUADRATURES = {
    "cauchy": (CAUCHY, LINE, 1.0),
    "square root tail": (sp.Rational(1, 4) * (1 + sp.Abs(x)) ** sp.Rational(-3, 2), LINE, 1.0),
    "infinite at both ends": (BETA, UNIT, 1.0),
    "infinite at zero": (sp.exp(-x) / sp.sqrt(sp.pi * x), HALF_LINE, 1.0),
    "wave on a heavy tail": (WAVE, LINE, 1.0),
    "a thousandth too much": (sp.Rational(1001, 1000) * NORMAL, LINE, 1.001),
    "sum with a heavy tail": (6 / (sp.pi * k) ** 2, (sp.S.One, sp.oo), 1.0),
}


@pytest.mark.parametrize("name", QUADRATURES)
def test_two_quadratures_find_the_mass(name):
    density, ends, mass = QUADRATURES[name]
    found = two_masses(density, k if density.has(k) else x, *ends)
    assert found == pytest.approx((mass, mass), abs=1e-12)


def test_two_quadratures_disagree_about_a_far_narrow_peak():
    first, second = two_masses(NORMAL / 2 + PEAK / 2, x, *LINE)
    assert first == pytest.approx(1.0, abs=1e-12)
    assert second == pytest.approx(0.5, abs=1e-12)


def test_a_mass_that_is_infinite_has_no_limit():
    assert all(map(math.isnan, two_masses(1 / (1 + sp.Abs(x)), x, *LINE)))


def test_a_mass_without_a_proof_is_said_to_be_seen():
    wave = Mechanism.additive(WAVE, x, name="wave")
    assert checked_steps({wave: 3}) == ({wave: 3}, "seen")
    assert checked_steps({Mechanism.additive(NORMAL, x): 1})[1] == "proved"


def test_masses_that_differ_from_one_say_what_was_found():
    wave = Mechanism.additive(WAVE * sp.Rational(999, 1000), x, name="wave")
    with pytest.raises(InputError, match=r"one quadrature found 0\.999, another 0\.999"):
        checked_masses(wave)


REFUSED = {
    "0.999": (sp.Rational(999, 1000) * (NORMAL + CAUCHY) / 2, r"integrates to 0\.999"),
    "1.001": (sp.Rational(1001, 1000) * (NORMAL + CAUCHY) / 2, r"integrates to 1\.001"),
    "1/|x|": (1 / sp.Abs(x), "could not be shown"),
    "cauchy without pi": (1 / (1 + x**2), r"integrates to 3\.14159"),
    "a peak too much": (NORMAL + PEAK, "integrates to 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_density_of_another_mass_is_refused(name):
    density, words = REFUSED[name]
    with pytest.raises(InputError, match=words):
        checked_masses(Mechanism.additive(density, x, name="m"))
