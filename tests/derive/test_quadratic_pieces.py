"""K of quadratic pieces, beside mpmath's quadrature of the densities as they are written here."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.derive.presented import NORMAL
from symdp.derive.quadratic_pieces import CGFBySign, _definition
from symdp.page.derivation import check_blocks
from symdp.page.document import Table

X = sp.Symbol("x", real=True)
HALF = sp.Rational(1, 2)
A, B = sp.symbols("a b", positive=True)
DIGITS = 30


def split_normal(x, left, right, at=0):
    """exp of −(x − at)²/2 over the square of the scale on that side, not normalised."""
    scale = left if x < at else right
    return mpmath.exp(-(((x - at) / scale) ** 2) / 2)


def flat_top(x):
    """Three pieces: normal tails of scales 1 and 2 beside a flat one on (−1, 1)."""
    if abs(x) < 1:
        return mpmath.mpf(1)
    if x < 0:
        return mpmath.exp(-((x + 1) ** 2) / 2)
    return mpmath.exp(-((x - 1) ** 2) / 8)


def huber(x, k=1.25, s=1.5):
    """A normal body with exponential tails."""
    distance = abs(x)
    if distance < k:
        return mpmath.exp(-((distance / s) ** 2) / 2)
    return mpmath.exp(-k * (2 * distance - k) / (2 * s**2))


def truth(p, q, tilt, kinks):
    """log ∫ p^{1+t} q^{−t}, each density divided by its mass."""
    with mpmath.workdps(DIGITS + 10):
        ends = sorted({-mpmath.inf, -40, -12, *kinks, 12, 40, mpmath.inf})
        masses = [mpmath.quad(law, ends) for law in (p, q)]

        def tilted(x):
            if p(x) == 0 or q(x) == 0:
                return mpmath.mpf(0)
            return mpmath.exp((1 + tilt) * mpmath.log(p(x)) - tilt * mpmath.log(q(x)))

        whole = mpmath.quad(tilted, ends)
        return mpmath.log(whole) - (1 + tilt) * mpmath.log(masses[0]) + tilt * mpmath.log(masses[1])


def by_formula(d, tilt, values=None):
    """K as the page has it, at one tilt."""
    number = d.cgf_by_sign.at({**(values or {}), d.cgf.tilt: tilt}).evalf(DIGITS + 10, maxn=20_000)
    assert number.is_Float or number == 0, number
    return mpmath.mpmathify(number)


def shifted(law):
    """The density of noise, moved by 1."""
    return lambda x: law(x - 1)


SPLIT = sp.sqrt(2 / sp.pi) / (A + B) * sp.Piecewise(
    (sp.exp(-(X**2) / (2 * A**2)), X < 0), (sp.exp(-(X**2) / (2 * B**2)), True)
)  # fmt: skip


@pytest.fixture(scope="module")
def free_split():
    return symdp.derive(symdp.Mechanism.additive(SPLIT, X, 1)).cases[0]


def near(change):
    """Tilts at a change of the form, just beside it and away."""
    steps = (0, sp.Rational(1, 100), -sp.Rational(1, 100), sp.Rational(1, 2), -3)
    return [change + step for step in steps]


@pytest.mark.quick_cases("2-2")
@pytest.mark.parametrize(("a", "b"), [(3, 5), (5, 3), (2, 2)])
def test_two_pieces_at_every_tilt(free_split, a, b):
    """The sign changes at t = b²/(a² − b²); for a = b nowhere."""
    tilts = [sp.Rational(-5, 2), -sp.S.Half, sp.Integer(0), sp.Integer(-1), sp.Rational(7, 3)]
    if a != b:
        tilts += near(sp.Rational(b**2, a**2 - b**2))
    ((slope, constant),) = free_split.cgf_by_sign.changes
    assert sp.expand(slope - (A**2 - B**2)) == 0 == constant - B**2

    def law(x):
        return split_normal(x, a, b)

    for tilt in tilts:
        with mpmath.workdps(DIGITS + 10):
            value = by_formula(free_split, tilt, {A: a, B: b})
            expected = truth(shifted(law), law, mpmath.mpmathify(tilt), [0, 1])
            assert abs(value - expected) < mpmath.mpf(10) ** -DIGITS * (1 + abs(expected)), tilt


def piecewise(*cases):
    return sp.Piecewise(*cases)


OWN = {
    "split at one half": (
        piecewise((sp.exp(-((X - HALF) ** 2) / 8), X < HALF),
                  (sp.exp(-((X - HALF) ** 2) / 2), True)),
        lambda x: split_normal(x, 2, 1, mpmath.mpf(1) / 2), [0.5, 1.5], sp.Rational(1, 3),
    ),
    "three pieces": (
        piecewise((sp.exp(-((X + 1) ** 2) / 2), X < -1), (1, X < 1),
                  (sp.exp(-((X - 1) ** 2) / 8), True)),
        flat_top, [-1, 0, 1, 2], sp.Integer(0),
    ),
    "normal body, exponential tails": (
        piecewise((sp.exp(-(X**2) * sp.Rational(2, 9)), abs(X) < sp.Rational(5, 4)),
                  (sp.exp(-sp.Rational(5, 4) * (2 * abs(X) - sp.Rational(5, 4))
                          * sp.Rational(2, 9)), True)),
        huber, [-1.25, -0.25, 1.25, 2.25], sp.Integer(0),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_laws_of_ones_own(name):
    density, law, kinks, change = OWN[name]
    d = symdp.derive(symdp.Mechanism.additive(density, X, 1, normalize=True)).cases[0]
    for tilt in (*near(change), sp.Integer(-1), sp.Rational(-7, 5)):
        with mpmath.workdps(DIGITS + 10):
            value = by_formula(d, tilt)
            expected = truth(shifted(law), law, mpmath.mpmathify(tilt), kinks)
            assert abs(value - expected) < mpmath.mpf(10) ** -DIGITS * (1 + abs(expected)), tilt


OTHER_SCALES = """
name = "scales"
variable = "x"
support = ["-oo", "oo"]
[pair]
P = "5*sqrt(2/pi)/16*Piecewise((exp(-(x - 1)**2/8), x < 1), (exp(-(x - 1)**2*25/72), True))"
Q = "sqrt(2/pi)/4*Piecewise((exp(-x**2/18), x < 0), (exp(-x**2/2), True))"
"""


@pytest.mark.slow
def test_two_laws_of_other_scales_up_to_the_ends_of_the_domain():
    """P has scales 2 and 6/5, Q has 3 and 1: K is finite for −9/5 < t < 25/11."""
    d = symdp.derive(symdp.Mechanism.from_toml(OTHER_SCALES)).cases[0]
    assert d.cgf.domain == (sp.Rational(-9, 5), sp.Rational(25, 11))
    for tilt in map(sp.Rational, ("-179/100", "-1", "0", "1/3", "26/75", "8/25", "2", "9/4")):
        with mpmath.workdps(DIGITS + 10):
            value = by_formula(d, tilt)
            expected = truth(
                lambda x: split_normal(x, 2, mpmath.mpf(6) / 5, 1),
                lambda x: split_normal(x, 3, 1), mpmath.mpmathify(tilt),
                [-200, -90, 0, 1, 90, 200, 280, 330, 380, 450],
            )  # fmt: skip
            assert abs(value - expected) < mpmath.mpf(10) ** -DIGITS * (1 + abs(expected)), tilt


@pytest.mark.parametrize("alpha", [2, 0, -HALF])
def test_the_printed_cases_of_g_are_the_integral(alpha):
    """∫ exp(−αx² + βx) between −1/2 and 2, of each sign of α, by mpmath's quadrature."""
    names = sp.symbols("alpha beta low high", real=True)
    square, line, low, high = names
    integral = sp.Integral(sp.exp(line * X - square * X**2), (X, low, high))
    definition = _definition(square, line, low, high, True)
    found = CGFBySign(sp.Symbol("t"), sp.S.Zero, names, integral, definition, ())
    for beta in (3 * HALF, -sp.S.One):
        places = dict(zip(names, (sp.sympify(alpha), beta, -HALF, sp.Integer(2)), strict=True))
        for form in (definition, found.in_normal):
            (printed,) = [value for value, is_of in form.args if is_of.xreplace(places) == sp.true]
            number = printed.replace(NORMAL, lambda z: (1 + sp.erf(z / sp.sqrt(2))) / 2)
            a = float(alpha)
            b = float(beta)
            with mpmath.workdps(DIGITS):
                expected = mpmath.quad(lambda x, a=a, b=b: mpmath.exp(b * x - a * x * x), [-0.5, 2])
                assert abs(number.xreplace(places).evalf(DIGITS) - expected) < 1e-20 * expected


@pytest.mark.slow
def test_the_page_prints_it_and_checks_it(free_split):
    page = free_split.to_text(order=1, only=("K",))
    assert page.count("G(α, β)") == 2
    assert "if α > 0" in page
    assert "if α < 0" in page
    assert "if α = 0" in page
    whole = free_split.to_text(order=1, only=("cumulants",))
    assert "α is 0 where t·(a² − b²) = b²" in whole
    assert "no closed form of K was found" not in whole
    table = next(block for block in check_blocks(free_split) if isinstance(block, Table))
    rows = [row for row in table.rows if row[0] == "K"]
    assert len(rows) >= 5
    assert all(int(row[-1]) >= 15 for row in rows)


@pytest.mark.slow
def test_what_is_no_quadratic_has_none():
    tails = piecewise((sp.exp(-(X**2) / 2), abs(X) < 1), (sp.exp(-sp.S.Half) / X**4, True))
    d = symdp.derive(symdp.Mechanism.additive(tails, X, 1, normalize=True)).cases[0]
    assert d.cgf_by_sign is None
    assert "no closed form of K was found" in d.to_text(order=1, only=("cumulants",))


def test_the_direction_of_even_noise_hangs_on_no_time_limit(free_split):
    """Where the symmetry of the pair is not decided in time, the fact of the density serves."""
    even = symdp.derive(symdp.Mechanism.additive(SPLIT.subs(B, A), X, 1)).cases[0]
    assert even._dominance_by_shape("late").value == "both"
    assert free_split._dominance_by_shape("late").value == "unknown"
