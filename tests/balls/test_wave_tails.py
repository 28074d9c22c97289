"""Masses of waves under power tails, beside closed forms by residues and Bessel functions."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp
from flint import arb, ctx
from sympy.core.cache import clear_cache

import symdp
from symdp.balls.mass import enclose_mass
from symdp.balls.wave_tails import _common_frequency, _term, wave_tail
from symdp.density.records import DISTANCE
from symdp.interrupt import Deadline

x = sp.Symbol("x", real=True)
LINE = (-sp.oo, sp.oo)
CAUCHY = 1 / (1 + x**2)
RATIO = 2 - sp.sqrt(3)

MASSES = {
    "cosine": ((2 + sp.cos(x)) * CAUCHY**2, sp.pi * (1 + sp.exp(-1))),
    "square of a cosine": (
        (1 + sp.cos(x) ** 2) * CAUCHY ** sp.Rational(3, 2),
        3 + 2 * sp.besselk(1, 2),
    ),
    "shifted": ((2 + sp.sin(3 * x + 1)) * CAUCHY, sp.pi * (2 + sp.sin(1) * sp.exp(-3))),
    "two frequencies": (
        (3 + sp.cos(x) + sp.cos(sp.sqrt(2) * x)) * CAUCHY,
        sp.pi * (3 + sp.exp(-1) + sp.exp(-sp.sqrt(2))),
    ),
    "product of waves": (
        (1 + sp.cos(x) * sp.cos(2 * x)) * CAUCHY,
        sp.pi * (1 + sp.exp(-1) / 2 + sp.exp(-3) / 2),
    ),
    "all harmonics": (
        CAUCHY / (2 + sp.cos(x)),
        sp.pi / sp.sqrt(3) * (1 - RATIO / sp.E) / (1 + RATIO / sp.E),
    ),
    "wide": ((2 + sp.cos(x / 5)) / (1 + x**2 / 400), 20 * sp.pi * (2 + sp.exp(-4))),
}


def enclosed(density, ends=LINE):
    with ctx.workprec(128):
        return enclose_mass(density, x, *ends, arb(2) ** -80, Deadline(20))


def contains(ball, value, digits=21):
    with ctx.workprec(128):
        off = abs(ball - arb(str(sp.N(value, 40))))
    return off < arb(10) ** -digits and ball.rad() < 1e-20


@pytest.mark.parametrize("name", ["cosine", "square of a cosine", "all harmonics"])
def test_a_mass_is_enclosed(name):
    density, mass = MASSES[name]
    assert contains(enclosed(density), mass)


@pytest.mark.slow
@pytest.mark.parametrize("name", MASSES)
def test_every_mass_is_enclosed(name):
    density, mass = MASSES[name]
    assert contains(enclosed(density), mass)


def test_one_sided_waves():
    density = (2 + sp.sin(3 * x)) / (1 + x) ** 3
    with mpmath.workdps(30):
        wave = mpmath.quadosc(lambda u: mpmath.sin(3 * u) / (1 + u) ** 3, [0, mpmath.inf], omega=3)
        assert contains(enclosed(density, (sp.S.Zero, sp.oo)), 1 + sp.Float(wave, 30))


def test_principal_values_meet_no_cut():
    """(1 + z³)^{−1.1} turns by more than half a circle on the way to i∞."""
    density = (2 + sp.cos(x)) * (1 + x**3) ** sp.Rational(-11, 10)
    with mpmath.workdps(30):

        def power(u):
            return (1 + u**3) ** (-mpmath.mpf(11) / 10)

        wave = mpmath.quadosc(lambda u: mpmath.cos(u) * power(u), [0, mpmath.inf], omega=1)
        mean = 2 * mpmath.quad(power, [0, 1, 4, 64, mpmath.inf])
        assert contains(enclosed(density, (sp.S.Zero, sp.oo)), sp.Float(mean + wave, 25))


@pytest.mark.slow
def test_waves_in_a_sum_that_no_factor_holds():
    """1/(1 + x² + cos x), by ∫ over 2000 periods and the mean beyond, to 1e-12."""
    from scipy import integrate

    density = 1 / (1 + x**2 + sp.cos(x))
    far = 4000 * sp.pi
    edges = [sp.pi * k for k in range(4001)]

    def height(u):
        return 1 / (1 + u * u + sp.cos(u))

    numeric = sp.lambdify(x, density, "numpy")
    total = sum(
        integrate.fixed_quad(numeric, float(low), float(low + sp.pi), n=24)[0] for low in edges[:-1]
    )
    # 1/x² less 1/x⁴ and what cos x moves, which is of the order x^{−4}
    beyond = 1 / float(far)
    ball = enclosed(density)
    assert abs(float(ball.mid()) - 2 * (total + beyond)) < 1e-11
    assert ball.rad() < 1e-20


@pytest.mark.parametrize(
    "far",
    [
        (2 + sp.cos(DISTANCE)) / DISTANCE,
        (2 + sp.cos(DISTANCE)) * sp.exp(-DISTANCE),
        (2 + sp.cos(DISTANCE**2)) / DISTANCE**2,
        (2 + sp.cos(DISTANCE) * sp.cos(sp.sqrt(2) * DISTANCE)) / (1 + sp.log(DISTANCE)),
        1 / (sp.sqrt(1 + DISTANCE**2) - DISTANCE + sp.cos(DISTANCE)),
    ],
)
def test_other_tails_are_left_to_others(far):
    with ctx.workprec(128):
        assert wave_tail(far, arb(1), arb(2) ** -80, Deadline(5)) is None


@pytest.mark.parametrize("rate", [sp.Rational(1, 500), sp.Rational(1, 50), sp.Rational(2)])
@pytest.mark.parametrize("power", [2, 3, 8])
def test_the_harmonics_left_out_are_bounded_on_both_paths(power, rate):
    """Of nine places cos 5φ is lost from the line, and is taken for cos 4φ on the turned path."""
    wave = 2 + sp.cos(rate * DISTANCE) / 10**9 + sp.cos(5 * rate * DISTANCE + 1)
    far = wave / DISTANCE**power
    cut = 2
    with ctx.workprec(128):
        term = _term(far, _common_frequency(far))
        sizes = (arb(10) ** (digits / 8) for digits in range(40, -40, -1))
        harmonics = next(h for h in (term._harmonics(arb(cut), s) for s in sizes) if h.order == 4)
    line = mpmath.mpf(cut) ** (1 - power) / (power - 1)
    turned = mpmath.quad(
        lambda y: abs(cut + 1j * y) ** -power * mpmath.exp(-4 * mpmath.mpf(rate.p) / rate.q * y),
        [0, 1, 4, 16, 64, 256, mpmath.inf],
    )
    assert float(harmonics.others) >= float(line + turned)


def test_noise_is_divided_by_its_mass():
    noise = symdp.Mechanism.additive((1 + sp.cos(2 * x) / 2) * CAUCHY, x, normalize=True)
    assert float(noise.pair().Q.subs(noise.pair().variable, 0)) == pytest.approx(
        1.5 / float(sp.pi * (1 + sp.exp(-2) / 2)), rel=1e-14
    )


@pytest.mark.slow
def test_an_infinite_mass_is_refused():
    slow = (2 + sp.cos(x)) / (1 + sp.Abs(x))
    with pytest.raises(symdp.InputError, match="its mass could not be enclosed"):
        symdp.compose(symdp.Mechanism.additive(slow, x, normalize=True))


def test_a_symbol_that_is_equal_is_the_same():
    """SymPy's cache forgets, and then has an equal symbol in what it keeps."""
    clear_cache()
    other = sp.Symbol(DISTANCE.name, positive=True)
    kept = sp.cos(other)
    assert kept.args[0] == DISTANCE
    assert kept.args[0] is not DISTANCE
    density, mass = MASSES["cosine"]
    assert contains(enclosed(density), mass)
