"""Masses: proved where a tail is bounded, else found by two quadratures, said to be seen."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import pytest
import sympy as sp
from flint import arb, ctx

import symdp
from symdp.balls.density import checked_masses
from symdp.balls.mass import _wynn, enclose_mass, enclose_normalizer, is_proved, two_masses
from symdp.balls.proper import checked_steps
from symdp.emit.mass import MassIntegral
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import Deadline
from symdp.model.mechanism import Mechanism
from symdp.model.reading.parser import parse

x = sp.Symbol("x", real=True)
k = sp.Symbol("k", integer=True)
NORMAL = sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)
CAUCHY = 1 / (sp.pi * (1 + x**2))
STUDENT = 2 / (sp.pi * (1 + x**2) ** 2)
ROOT = sp.sqrt(2)
ROUNDED = (sp.erf((k + sp.S.Half) / (3 * ROOT)) - sp.erf((k - sp.S.Half) / (3 * ROOT))) / 2
WAVE = STUDENT * (1 + sp.cos(x) / 2) / (1 + sp.exp(-1))
BESSEL = sp.besselk(0, sp.Abs(x)) / sp.pi
HALF_LINE, LINE, UNIT = (sp.S.Zero, sp.oo), (-sp.oo, sp.oo), (sp.S.Zero, sp.S.One)
PEAK = 1000 * sp.exp(-500_000 * (x - 300) ** 2) / sp.sqrt(2 * sp.pi)
BETA = 1 / (sp.pi * sp.sqrt(x * (1 - x)))
BUMP = sp.exp(-1 / (1 - x**2))
HEAVY = (1 + x / sp.sqrt(3 + x**2)) ** 2 * (1 - x / sp.sqrt(3 + x**2)) ** 3

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
def test_the_mass_of_a_density_is_enclosed(name):
    density, ends = PROVED[name]
    variable = k if density.has(k) else x
    with ctx.workprec(128):
        mass = enclose_mass(density, variable, *ends, arb(2) ** -90, Deadline(30))
        assert mass.contains(1)
        assert mass.rad() < arb(10) ** -15


def test_a_time_that_is_over_is_an_error():
    with pytest.raises(AccuracyError, match="within"):
        enclose_mass(WAVE, x, *LINE, arb(2) ** -90, Deadline(-1))


def m(number: float | str | int) -> mpmath.mpf:
    return mpmath.mpf(number)


REAL, RAY, CUT, WHOLE, NATURAL = ("-oo", "oo"), ("0", "oo"), ("0", "1"), "integers", "naturals"
# Formulas with their support, their mass in closed form (or by mpmath), and what is found of it.
STRANGE = {
    # Heavy tails.
    "power 3/2": (
        "(1 + x**2)**(-3/4)", REAL, lambda: mpmath.sqrt(mpmath.pi) * mpmath.gamma(m(1) / 4)
        / mpmath.gamma(m(3) / 4),
    ),
    "cubic": ("1/(1 + abs(x)**3)", REAL, lambda: 4 * mpmath.pi / (3 * mpmath.sqrt(3))),
    "power 11/10": ("(1 + x)**(-11/10)", RAY, lambda: m(10)),
    "root in the exponent": ("exp(-sqrt(abs(x)))", REAL, lambda: m(4)),
    "skew Student": ("(1 + x**2)**(-2)*(1 + atan(3*x)/2)", REAL, lambda: mpmath.pi / 2),
    # Waves.
    "waves": ("exp(-abs(x))*(1 + cos(7*x))", REAL, lambda: m(2) + m(2) / 50),
    "chirp": (
        "(2 + sin(x**2))*exp(-x**2)", REAL,
        lambda: 2 * mpmath.sqrt(mpmath.pi) + mpmath.im(mpmath.sqrt(mpmath.pi / mpmath.mpc(1, -1))),
    ),
    # Infinite, or of no value, at an end.
    "two poles": ("x**(-1/2)*(1 - x)**(-1/3)", CUT, lambda: mpmath.beta(m(1) / 2, m(2) / 3)),
    "logarithm": ("-log(x)", CUT, lambda: m(1)),
    "squared logarithm": ("log(x)**2/sqrt(x)", CUT, lambda: m(16)),
    "pole of 9/10": ("x**(-9/10)*exp(-x)", RAY, lambda: mpmath.gamma(m(1) / 10)),
    "essential": ("exp(-1/x - x)", RAY, lambda: 2 * mpmath.besselk(1, 2)),
    "semicircle": ("sqrt(1 - x**2)", ("-1", "1"), lambda: mpmath.pi / 2),
    # Several modes, and gaps.
    "three needles": (
        "exp(-5000*(x + 5)**2) + exp(-5000*x**2)/2 + exp(-5000*(x - 40)**2)", REAL,
        lambda: m(5) / 2 * mpmath.sqrt(mpmath.pi / 5000),
    ),
    "double well": (
        "exp(-(x**2 - 4)**2)", REAL,
        lambda: 2 * mpmath.quad(lambda t: mpmath.exp(-((t**2 - 4) ** 2)), [0, 1, 2, 3, 6]),
    ),
    "gap": ("Piecewise((x, x < 1), (0, x < 3), (5 - x, True))", ("0", "5"), lambda: m(5) / 2),
    # Special functions.
    "erfc": ("erfc(abs(x))", REAL, lambda: 2 / mpmath.sqrt(mpmath.pi)),
    "Bessel": ("besselk(0, abs(x))", REAL, lambda: mpmath.pi, "seen"),
    "hyperbolic": ("1/cosh(x)**3", REAL, lambda: mpmath.pi / 2),
    # Integers.
    "integers with a hole": (
        "k**2*exp(-abs(k)/3)", WHOLE,
        lambda: 2 * mpmath.exp(-m(1) / 3) * (1 + mpmath.exp(-m(1) / 3))
        / (1 - mpmath.exp(-m(1) / 3)) ** 3,
    ),
    "factorials": ("1/factorial(k)**2", NATURAL, lambda: mpmath.besseli(0, 2)),
    "logarithmic series": ("(3/4)**k/(k + 1)", NATURAL, lambda: mpmath.log(4) * 4 / 3),
    "wide integers": (
        "exp(-k**2/20000)", WHOLE, lambda: mpmath.jtheta(3, 0, mpmath.exp(-m(1) / 20000)),
    ),
    "gap of integers": (
        "Piecewise((2**(-abs(k)), abs(k) > 3), (0, True))", WHOLE, lambda: m(1) / 4,
    ),
    "powers over factorials": ("5**k/factorial(k + 2)", NATURAL, lambda: (mpmath.exp(5) - 6) / 25),
    "binomials": ("binomial(k + 6, 6)*(4/5)**k", NATURAL, lambda: m(5) ** 7),
}  # fmt: skip
SLOW = (
    "power 11/10", "two poles", "Bessel", "erfc", "skew Student", "hyperbolic", "essential",
    "squared logarithm", "pole of 9/10", "double well", "power 3/2", "cubic",
    "integers with a hole",
)  # fmt: skip


@pytest.mark.slow_cases(*SLOW, "three needles", "chirp", "waves", "logarithm", "binomials")
@pytest.mark.parametrize("name", STRANGE)
def test_strange_densities_have_their_mass_and_no_other(name):
    formula, support, truth, *words = STRANGE[name]
    word = words[0] if words else "proved"
    variable = k if isinstance(support, str) else x
    density = parse(formula, {variable.name: variable})
    with mpmath.workdps(45):
        mass = truth()
        text = mpmath.nstr(mass, 40)
    ends = support
    if not isinstance(support, str):
        ends = tuple(parse(end, {}, infinite=True) for end in support)
    scaled = density / sp.Rational(text)
    found = checked_steps({Mechanism.additive(scaled, variable, support=ends): 2})
    assert found[1] == word
    wrong = Mechanism.additive(scaled * sp.Rational(1001, 1000), variable, support=ends)
    with pytest.raises(InputError, match=r"integrates to|sums to|could not be shown"):
        checked_masses(wrong)
    if word == "proved":
        low, high = {"integers": LINE, "naturals": HALF_LINE}.get(str(support), ends)
        with ctx.workprec(160):
            ball = enclose_mass(density, variable, low, high, arb(2) ** -90, Deadline(60))
            assert ball.overlaps(arb(text) * arb(1, 1e-38))
            assert ball.rad() < 1e-15 * ball


QUADRATURES = {
    "cauchy": (CAUCHY, LINE, 1.0),
    "square root tail": (sp.Rational(1, 4) * (1 + sp.Abs(x)) ** sp.Rational(-3, 2), LINE, 1.0),
    "infinite at both ends": (BETA, UNIT, 1.0),
    "infinite at zero": (sp.exp(-x) / sp.sqrt(sp.pi * x), HALF_LINE, 1.0),
    "wave on a heavy tail": (WAVE, LINE, 1.0),
    "a thousandth too much": (sp.Rational(1001, 1000) * NORMAL, LINE, 1.001),
    "sum with a heavy tail": (6 / (sp.pi * k) ** 2, (sp.S.One, sp.oo), 1.0),
    "far narrow peak": (NORMAL / 2 + PEAK / 2, LINE, 1.0),
    "one integer between two kinks": (  # Σ over k of 1/(k² + 1) is π coth π
        1 / (k**2 + 1) + sp.Piecewise((1, sp.Abs(k - 1) < sp.Rational(2, 3)), (0, True)),
        LINE,
        math.pi / math.tanh(math.pi) + 1.0,
    ),
    "from 1/2 on": (sp.exp(sp.Rational(1, 2) - x), (sp.Rational(1, 2), sp.oo), 1.0),
    "up to -1/2": (sp.exp(x + sp.Rational(1, 2)), (-sp.oo, -sp.Rational(1, 2)), 1.0),
    "from -1 on": (sp.exp(-x - 1), (-sp.S.One, sp.oo), 1.0),
    "integers from 3 on": (sp.Rational(1, 2) ** (k - 2), (sp.S(3), sp.oo), 1.0),
    "integers up to -3": (sp.Rational(1, 2) ** (-k - 2), (-sp.oo, -sp.S(3)), 1.0),
    "removable singularity": ((1 - sp.exp(-(x**2) / 2)) / (x**2 * sp.sqrt(2 * sp.pi)), LINE, 1.0),
}


@pytest.mark.slow_cases(
    "wave on a heavy tail", "one integer between two kinks", "removable singularity"
)
@pytest.mark.parametrize("name", QUADRATURES)
def test_two_quadratures_find_the_mass(name):
    density, ends, mass = QUADRATURES[name]
    found = two_masses(density, k if density.has(k) else x, *ends)
    assert found == pytest.approx((mass, mass), abs=1e-12)


@pytest.mark.parametrize(
    ("term", "limit"),
    [
        (lambda j: 2.0**-j, 1.0),
        (lambda j: (-1) ** j / (2 * j - 1), -math.pi / 4),
        (lambda j: 0.5**j + 0.25**j, 4 / 3),
        (lambda j: 0.1**j, 1 / 9),
        (lambda j: [0.5, 0.4, 0.1][j - 1] if j < 4 else 0.0, 1.0),  # all of it in three shells
        (lambda j: 0.75 if j < 2 else 0.0, 0.75),
    ],
    ids=["halves", "alternating", "two rates", "tenths", "ended", "ended at once"],
)
def test_partial_sums_are_extrapolated_to_their_limit(term, limit):
    sums = [math.fsum(term(j) for j in range(1, n + 1)) for n in range(1, 15)]
    assert _wynn(sums) == pytest.approx(limit, rel=1e-9)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_a_mass_that_is_infinite_or_hardly_finite_has_no_limit(power):
    slow = 1 / ((sp.Abs(x) + 2) * sp.log(sp.Abs(x) + 2) ** (power - 1))
    assert all(map(math.isnan, two_masses(slow, x, *LINE)))


@pytest.mark.slow
def test_a_mass_without_a_proof_is_said_to_be_seen():
    bessel = Mechanism.additive(BESSEL, x, name="Bessel")
    assert checked_steps({bessel: 3}) == ({bessel: 3}, "seen")
    assert checked_steps({Mechanism.additive(WAVE, x): 1})[1] == "proved"
    assert checked_steps({Mechanism.additive(NORMAL, x): 1})[1] == "proved"


@pytest.mark.slow
def test_masses_that_differ_from_one_say_what_was_found():
    bessel = Mechanism.additive(BESSEL * sp.Rational(999, 1000), x, name="Bessel")
    with pytest.raises(InputError, match=r"one quadrature found 0\.999, another 0\.999"):
        checked_masses(bessel)


REFUSED = {
    "0.999": (sp.Rational(999, 1000) * (NORMAL + CAUCHY) / 2, r"integrates to 0\.999"),
    "1.001": (sp.Rational(1001, 1000) * (NORMAL + CAUCHY) / 2, r"integrates to 1\.001"),
    "1/|x|": (1 / sp.Abs(x), "could not be shown"),
    "cauchy without pi": (1 / (1 + x**2), r"integrates to 3\.14159"),
    "a peak too much": (NORMAL + PEAK, "integrates to 2"),
}


@pytest.mark.slow_cases("1/|x|")
@pytest.mark.parametrize("name", REFUSED)
def test_a_density_of_another_mass_is_refused(name):
    density, words = REFUSED[name]
    with pytest.raises(InputError, match=words):
        checked_masses(Mechanism.additive(density, x, name="m"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("density", "ends"), [(BUMP, (-1, 1)), (HEAVY, (-sp.oo, sp.oo))], ids=["bump", "heavy"]
)
def test_constants_are_found_with_and_without_a_proof(density, ends):
    mass = enclose_normalizer(MassIntegral(density, (x, *ends)))
    value = sp.lambdify(x, density, "mpmath")
    low, high = (mpmath.mpf(str(end).replace("oo", "inf")) for end in ends)
    with mpmath.workdps(40):
        truth = mpmath.quad(value, [low, -0.5, 0, 0.5, high])
    assert is_proved(mass) is (density is HEAVY)  # which needs roots that do not cancel
    assert abs(float(mass.mid()) / float(truth) - 1) < 1e-14


@pytest.mark.slow
def test_what_was_only_seen_is_answered_and_never_proved():
    noise = symdp.Mechanism.additive(
        BUMP, x, sp.Rational(1, 20), support=(-1, 1), normalize=True, name="bump"
    )
    step = symdp.compose(noise, 1)
    assert 0 < step.delta(1.0).delta < 1
    with pytest.raises(InputError, match="could not be shown to have mass 1"):
        step.certify(1.0)


def test_parameters_that_are_long_fractions_are_not_worked_on() -> None:
    """SymPy raised their digits to powers of seven digits; δ is mpmath's integral at 30 digits."""
    noise = symdp.mechanisms.student_t(nu="11296723/820029", s="364208/118583")
    assert symdp.compose(noise, 1).delta(0.3, direction="remove").delta == pytest.approx(
        0.0300604228385867721, rel=1e-12
    )


@pytest.mark.slow
def test_addends_of_unlike_tails_stay_apart() -> None:
    """1/cosh beside a power: mass and δ by mpmath's integrals between the roots of ℓ = ε."""
    noise = Mechanism.additive(1 / sp.cosh(x) + 1 / (10 * (1 + x**2) ** 2), x, normalize=True)
    (mass,) = noise.source.density.atoms(MassIntegral)
    assert float(enclose_normalizer(mass)) == pytest.approx(3.29867228626928290, rel=1e-15)
    found = symdp.compose(replace(noise, shift="exactly"), 1).delta(0.5)
    assert found.log_lower <= math.log(0.140502710150609697) <= found.log_upper
    assert found.log_upper - found.log_lower < 1e-12
