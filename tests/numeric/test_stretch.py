"""Densities that vanish or blow up at finite ends other than 0, against quadrature by mpmath."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from catalogue import ALL
from flint import arb, ctx

from symdp import compose, mechanisms
from symdp.emit import compile_arb
from symdp.model.mechanism import Mechanism
from symdp.numeric.compile import _in_distance
from symdp.numeric.laws.of_mechanism import loss_law
from symdp.numeric.step import Stretch

x = sp.Symbol("x", real=True)
MF = mpmath.mpf

DENSITIES = {
    "cosine": (1 + sp.cos(sp.pi * x)) / 2,
    "triangle": 1 - sp.Abs(x),
    "biweight": sp.Rational(15, 16) * (1 - x**2) ** 2,
    "semicircle": 2 * sp.sqrt(1 - x**2) / sp.pi,
    "arcsine": 1 / (sp.pi * sp.sqrt(1 - x**2)),
}


def noise(name, sensitivity="1/4"):
    size = sp.Rational(sensitivity)
    return Mechanism.additive(DENSITIES[name], x, size, support=(-1, 1), name=name)


# Density and distribution function of the distance y from the upper end, 0 < y < 2.
def _triangle(y):
    return (y, y**2 / 2) if y <= 1 else (2 - y, 1 - (2 - y) ** 2 / 2)


def _cosine(y):
    return mpmath.sin(mpmath.pi * y / 2) ** 2, y / 2 - mpmath.sin(mpmath.pi * y) / (2 * mpmath.pi)


def _biweight(y):
    density = 15 * (y * (2 - y)) ** 2 / MF(16)
    return density, MF(15) / 16 * (4 * y**3 / 3 - y**4 + y**5 / 5)


LAWS = {"triangle": (_triangle, (MF(1),)), "cosine": (_cosine, ()), "biweight": (_biweight, ())}


class Reference:
    """δ of one and of two steps where the likelihood ratio falls with the distance y."""

    def __init__(self, name, sensitivity, rate):
        self.law, self.kinks = LAWS[name]
        self.shift, self.rate = MF(sensitivity), MF(rate)
        self.end = 2 - self.shift

    def both(self, y):
        """Densities of Q and P at y, and their masses below y."""
        (q, below_q), (f, below_f) = (self.clipped(y), self.clipped(y + self.shift))
        r = self.rate
        return q, (1 - r) * q + r * f, below_q, (1 - r) * below_q + r * below_f

    def clipped(self, y):
        return self.law(y) if 0 < y < 2 else (MF(0), MF(int(y > 0)))

    def ratio(self, y):
        q, p, _, _ = self.both(y)
        return p / q

    def place(self, level):
        """Return the y at which P/Q takes a level; None below the least one."""
        if level <= 1 - self.rate:
            return None
        low, high = self.end / 2, self.end
        while self.ratio(low) < level:
            low, high = low / 16, low
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if self.ratio(middle) >= level else (low, middle)

        def gap(y):
            ratio = self.ratio(y)
            return (ratio - level) / (ratio + level)

        return mpmath.findroot(gap, (low, high), solver="anderson", tol=1e-50, verify=False)

    def one(self, epsilon, direction):
        factor = mpmath.exp(epsilon)
        y = self.place(factor if direction == "remove" else 1 / factor)
        if y is None:
            return 1 - factor if direction == "remove" else MF(0)
        _, _, q, p = self.both(y)
        return p - factor * q if direction == "remove" else 1 - q - factor * (1 - p)

    def two(self, epsilon, direction):
        """Return ∫ P(y) δ₁(ε − ℓ(y)) dy, cut where either step's loss has a kink."""
        sign = 1 if direction == "remove" else -1
        kinks = [k - s for k in self.kinks for s in (0, self.shift) if 0 < k - s < self.end]
        cuts = {MF(0), self.end, *kinks}
        for kink in (*kinks, self.end):
            if self.ratio(kink) > 0:
                cuts.add(self.place(mpmath.exp(sign * epsilon) / self.ratio(kink)))

        def part(y):
            q, p, _, _ = self.both(y)
            rest = epsilon - sign * mpmath.log(p / q)
            return (p if direction == "remove" else q) * self.one(rest, direction)

        inside = sorted(c for c in cuts if c is not None and 0 <= c <= self.end)
        total = mpmath.quad(part, inside)
        _, _, q, p = self.both(self.end)
        if direction == "remove":
            total += self.both(MF(0))[3]  # the loss is infinite
        if self.rate < 1:
            rest = self.one(epsilon - sign * mpmath.log(1 - self.rate), direction)
            return total + (1 - (p if direction == "remove" else q)) * rest
        return total + (0 if direction == "remove" else 1 - q)


def check(answer, exact, most=1e-11):
    """The bounds hold, and are narrow."""
    log = mpmath.log(exact)
    assert answer.log_lower <= log <= answer.log_upper
    assert answer.log_upper - answer.log_lower < most


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rate", "direction"),
    [
        ("triangle", "1", "remove"),
        ("triangle", "1/10", "add"),
        ("cosine", "1", "add"),
        ("cosine", "1/10", "remove"),
        ("biweight", "1/10", "remove"),
    ],
)
def test_one_step(name, rate, direction):
    mechanism = noise(name) if rate == "1" else noise(name).subsample("poisson", rate)
    with mpmath.workdps(30):
        reference = Reference(name, "0.25", MF(1) / (1 if rate == "1" else 10))
        for epsilon in (-0.05, 0.03, 0.09) if rate != "1" else (-0.5, 0.5, 3.0, 20.0):
            answer = compose(mechanism, 1).delta(epsilon, direction=direction)
            check(answer, reference.one(MF(epsilon), direction), 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rate", "direction", "epsilon"),
    [
        ("triangle", 10, "remove", 0.03),
        ("cosine", 1, "add", 0.9),
    ],
)
def test_two_steps(name, rate, direction, epsilon):
    mechanism = noise(name) if rate == 1 else noise(name).subsample("poisson", f"1/{rate}")
    answer = compose(mechanism, 2).delta(epsilon, direction=direction)
    with mpmath.workdps(20):
        exact = Reference(name, "0.25", MF(1) / rate).two(MF(epsilon), direction)
    check(answer, exact)


@pytest.mark.slow
def test_directions_mirror_symmetric_noise():
    """Noise that is its own mirror image has the same δ both ways; roots end both densities."""
    steps = compose(noise("semicircle"), 30)
    remove, add = (steps.delta(3.5, direction=side) for side in ("remove", "add"))
    assert remove.log_delta == pytest.approx(add.log_delta, rel=1e-12)
    assert remove.log_upper - remove.log_lower < 1e-11


def test_a_density_may_grow_beyond_bounds():
    """Arcsine noise: what lies beyond 1 is 1/2 − arcsin(3/4)/π."""
    base = loss_law(noise("arcsine"), "remove").base
    assert base.mass_at_infinity == pytest.approx(0.5 - math.asin(0.75) / math.pi, rel=1e-13)
    assert base.weight.sum() + base.mass_at_infinity == pytest.approx(1.0, rel=1e-14)


def test_moving_the_outcome_changes_nothing():
    """The same pair with its ends at 0 and 1, and at 2 and 3."""
    pairs = [
        Mechanism.from_pair(30 * (y * (1 - y)) ** 2, 6 * y * (1 - y), x, (at, at + 1))
        for at, y in ((0, x), (2, x - 2))
    ]
    first, second = (compose(p, 1).delta(0.3, direction="remove") for p in pairs)
    assert first.log_delta == pytest.approx(second.log_delta, rel=1e-12)


def test_range_of_a_loss_without_known_slope():
    """Both densities vanish at the end, and the loss is infinite there."""
    low, high = loss_law(noise("cosine").subsample("poisson", "1/10"), "remove").loss_bounds
    assert high == math.inf
    assert -0.15 < low <= math.log(0.9)  # seen, and not known to rise: a quarter is its margin


def test_domain_of_tilts():
    """P ~ y and ℓ ~ −log y at the triangle's end: E e^{tL} is finite for t < 1 when sampled."""
    law = loss_law(noise("triangle").subsample("poisson", "1/10"), "remove")
    assert law.domain[1] == pytest.approx(1.0, rel=1e-9)


def test_regular_ends_are_left_alone():
    for mechanism in (mechanisms.laplace(b=2), mechanisms.gaussian(sigma=2)):
        for piece in loss_law(mechanism, "remove").step.pieces:
            assert piece.log_p(np.asarray([0.5])) == pytest.approx(
                piece.accurate(np.asarray([0.5]))[0], rel=1e-14
            )
            assert piece.lower in (-math.inf, 0.0, 1.0)


EXPRESSIONS = [
    sp.log(1 + sp.cos(sp.pi * x)),
    sp.log(1 - x**2) - sp.log((sp.Rational(5, 4) - x) ** 2),
    sp.log(sp.exp(x) - sp.E),
    sp.log(sp.E - sp.exp(x**2)),
    sp.log(sp.sqrt(3 + x) - 2),
    sp.log(1 - sp.tan(sp.pi * x / 4)) + sp.log(sp.sin(sp.pi * x)),
    sp.log(sp.cosh(1) - sp.cosh(x)),
    sp.log(1 / (1 + x) ** 2 - sp.Rational(1, 4)),
    sp.log(sp.log(2) - sp.log(1 + x)),
    sp.log(sp.Rational(9, 10) + (sp.Rational(5, 4) - x) / (10 * (1 - x))),
    -1 / (1 - x) + sp.log(1 - x) * x,
]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_distances_are_accurate(expression):
    """In doubles at u down to 1e−60, and the same function as before in balls of many bits."""
    inward = 1 if expression.subs(x, sp.Rational(7, 8)).is_real is False else -1
    double, _ = _in_distance(expression, x, sp.Integer(1), inward, 1.0)
    u = np.asarray([1e-60, 1e-30, 1e-12, 1e-5, 0.01, 0.2])
    got = double(u)
    given = compile_arb(expression, [x])
    with ctx.workprec(1000):
        exact = [float(given(1 + inward * arb(place)).mid()) for place in u.tolist()]
    np.testing.assert_allclose(got, exact, rtol=3e-14)


@pytest.mark.parametrize("kind", ["both", "one", "unbounded"])
def test_stretches_keep_mass(kind):
    """∫ u e^{−u} or ∫ u(W − u) over v, in doubles and balls alike."""
    length = None if kind == "unbounded" else lambda: arb(3)
    stretch = Stretch(length, kind == "both")

    def double(u):
        return np.log(u) - u if kind == "unbounded" else np.log(u) + np.log(3 - u)

    def ball(u, analytic=False):
        return u.log() - u if kind == "unbounded" else u.log() + (3 - u).log()

    ends = [(double, ball)] * (2 if kind == "both" else 1)
    function = stretch.in_doubles(ends, True)
    v = np.linspace(-60.0, min(stretch.upper, 60.0), 200_001)
    values = np.exp(function(v))
    mass = float(np.sum(0.5 * (values[1:] + values[:-1]) * np.diff(v)))
    assert mass == pytest.approx(1.0 if kind == "unbounded" else 4.5, rel=1e-6)
    places = np.asarray([-1e4, -300.0, -99.0, -5.0, -0.5])
    in_balls = stretch.in_balls([ball] * len(ends), True)
    with ctx.workprec(200):
        exact = [float(in_balls(arb(place)).mid()) for place in places.tolist()]
    np.testing.assert_allclose(function(places), exact, rtol=2e-14)
    slope = np.imag(stretch.in_doubles(ends, False)(places + 1e-30j)) / 1e-30
    assert slope[0] == pytest.approx(1.0, rel=1e-12)


@pytest.mark.quick_cases("1")
@pytest.mark.parametrize("count", [1, 2])
def test_a_tail_so_heavy_that_the_end_is_a_point_beside_it(count):
    """1/x² against 5/x⁶ from 1 on: with u = log x all is exponential, ℓ = 4u − log 5."""
    step = Mechanism.from_pair(1 / x**2, 5 / x**6, x, (1, sp.oo))
    answer = compose(step, count).delta(0.5, direction="remove")
    with mpmath.workdps(40):
        e = MF(1) / 2

        def one(e):
            root = mpmath.exp((e + mpmath.log(5)) / 4)
            return 1 / root - mpmath.exp(e) / root**5 if root > 1 else 1 - mpmath.exp(e)

        kink = (e + 2 * mpmath.log(5)) / 4
        ends = [0, 0.2, 0.5, kink, 1.5, 3, 10, 50, mpmath.inf]
        two = mpmath.quad(lambda u: one(e - (4 * u - mpmath.log(5))) * mpmath.exp(-u), ends)
        true = mpmath.log(one(e) if count == 1 else two)
        assert answer.log_lower <= true <= answer.log_upper
    assert answer.log_upper - answer.log_lower < 1e-12


@pytest.mark.slow
def test_two_steps_whose_losses_gather_at_a_limit_far_out():
    x = sp.Symbol("x", real=True)

    def lomax(scale):
        return (1 + x / scale) ** sp.Rational(-5, 4) / (4 * scale)

    support = (sp.S.Zero, sp.oo)
    mechanism = Mechanism.from_pair(lomax(50), lomax(1), x, support=support, name="lomax scales")
    found = compose(mechanism, 2).delta(1.0, direction="remove")

    def beyond(value):
        """Return δ of one step: P and Q of the outcomes with larger losses."""
        ratio = (50 * mpmath.exp(value)) ** mpmath.mpf("0.8")  # of 1 + x to 1 + x/50
        if ratio <= 1:
            return 1 - mpmath.exp(value)
        if ratio >= 50:
            return mpmath.mpf(0)
        x = (ratio - 1) / (1 - ratio / 50)
        return (1 + x / 50) ** mpmath.mpf("-0.25") - mpmath.exp(value) * (1 + x) ** mpmath.mpf(
            "-0.25"
        )

    def outer(s):
        place = 50 * mpmath.expm1(4 * s)  # beyond which P is e^{−s}
        rise = mpmath.log1p(place) - mpmath.log1p(place / 50)
        loss = mpmath.mpf(5) / 4 * rise - mpmath.log(50)
        return mpmath.exp(-s) * beyond(1 - loss)

    with mpmath.workdps(30):
        # From where 1 − ℓ is less than the largest loss, a quarter of log 50.
        ratio = (50 * mpmath.exp(1 - mpmath.log(50) / 4)) ** mpmath.mpf("0.8")
        start = mpmath.log1p((ratio - 1) / (1 - ratio / 50) / 50) / 4
        truth = mpmath.quad(outer, [start + s for s in (0, 1e-3, 0.1, 1, 2, 4, 8, 16, 40, 80)])
    assert found.log_lower <= float(mpmath.log(truth)) <= found.log_upper
    assert found.delta == pytest.approx(float(truth), rel=1e-10)


@pytest.mark.parametrize("count", [1, 2, 50, 77, 100, 101, 10**6])
@pytest.mark.parametrize("gap", [0.1, 1e-3, 1e-6])
def test_a_constant_loss_is_rounded_once_a_step(count, gap):
    """Geometric noise has the loss log 3 or none: δ = 1 − e^{ε − n log 3}."""
    step = ALL["geometric noise"].mechanism("one-sided")(r="1/3")
    with mpmath.workdps(40):
        top = count * mpmath.log(3)
        epsilon = float(top - gap)
        found = compose(step, count).delta(epsilon, direction="remove")
        truth = mpmath.log(-mpmath.expm1(mpmath.mpf(epsilon) - top))
        assert found.log_lower <= truth <= found.log_upper
        assert found.log_upper - found.log_lower < 1e-14 * (1 + count) / gap + 1e-12
