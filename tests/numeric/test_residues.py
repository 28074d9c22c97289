"""δ as a finite sum of residues, against binomial sums, gamma laws and quadrature over losses."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
import sympy as sp
from flint import arb, ctx
from mpmath import mp

from symdp import mechanisms
from symdp.model.mechanism import Mechanism
from symdp.numeric.residues import residues_of
from symdp.prove.enclosure import mass_at_infinity
from symdp.questions.composition import compose

x = sp.Symbol("x", real=True)
R = sp.Rational
DIGITS = 30
ONE_ZERO = (sp.S.One, sp.S.Zero)


def noise(density, support=(-sp.oo, sp.oo), sensitivity=1):
    return Mechanism.additive(density, x, sensitivity=sensitivity, support=support)


ASYMMETRIC = noise(sp.exp(-sp.Abs(x) / 2 - x / 6) * R(2, 9))  # rates 1/3 below 0, 2/3 above
TRUNCATED = noise(sp.exp(-sp.Abs(x) / 2) / (4 * (1 - sp.exp(-R(3, 2)))), (-3, 3))
UNIFORM = noise(R(1, 10), (0, 10))
ONE_SIDED = noise(sp.exp(-x / 4) / 4, (0, sp.oo))


def linear():
    """P = 2x against Q = 1 on [0, 1]: the loss is log 2 less an exponential variable."""
    from symdp.model.pair import Pair, Support

    return Pair(
        x, Support("interval", sp.S.Zero, sp.S.One), (2 * x, sp.S.One), ONE_ZERO, ONE_ZERO[::-1]
    )


def delta(steps, epsilon, digits=DIGITS):
    """δ(ε) as a ball, of pairs and counts."""
    with ctx.workprec(4 * digits + 64):
        total = residues_of(steps)
        assert total is not None
        excess = total.excess(
            Fraction(epsilon), lambda ball: 2 * ball.rad() < arb(10) ** -digits * abs(ball)
        )
        return mass_at_infinity(steps, -2.4 * (digits + 20)) + excess


def assert_near(ball, truth, digits=DIGITS - 2):
    """A truth in mpmath, itself rounded, lies in the ball but for so many digits."""
    with ctx.workprec(4 * DIGITS + 64):
        known = arb(mpmath.nstr(truth, DIGITS + 10))
        assert abs(ball - known) <= abs(known) * arb(10) ** -digits + arb(10) ** -(DIGITS + 15)


def number(epsilon):
    return mp.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator


def laplace_delta(u, count, epsilon):
    """Residues at z = −½, 0 and −1, of power series in w = z + ½ that are multiplied in mpmath.

    Σ_k C(n,k) e^{−ku} ([k = 0] − [k = n] e^{−s} + 2^{−n} [w^{n−1}] (½+w)^{n−k−1} (w−½)^{k−1}
    e^{(w−½)s}) over s = u(n − 2k) − ε > 0.
    """

    def power(sign, exponent):  # (w + sign/2)^exponent
        half = mp.mpf(sign) / 2
        return [mp.binomial(exponent, j) * half ** (exponent - j) for j in range(count)]

    total = mp.mpf(0)
    for k in range(count + 1):
        s = u * (count - 2 * k) - epsilon
        if s <= 0:
            continue
        first, second = power(1, count - k - 1), power(-1, k - 1)
        third = [mp.exp(-s / 2) * s**j / mp.factorial(j) for j in range(count)]
        product = [mp.fsum(first[i] * second[j - i] for i in range(j + 1)) for j in range(count)]
        own = mp.fsum(product[j] * third[count - 1 - j] for j in range(count)) / mp.mpf(2) ** count
        own += (k == 0) - (k == count) * mp.exp(-s)
        total += mp.binomial(count, k) * mp.exp(-k * u) * own
    return total


def test_a_hundred_laplace_steps():
    ball = delta([(mechanisms.laplace(b=5).pair(), 100)], 3, 24)
    assert ball.str(24, radius=False) == "0.161337985976135399725729"


@pytest.mark.slow_cases("-4", "2", "-21", "0", "3")
@pytest.mark.parametrize("epsilon", [3, 2, 0, Fraction(39, 2), Fraction(1999, 100), -4, -21])
def test_laplace_steps_by_the_formula_of_one_pole(epsilon):
    """ε = 2 lies on a kink: 100/5 − 2·45/5."""
    with mp.workdps(120):
        truth = laplace_delta(mp.mpf(1) / 5, 100, number(epsilon))
        assert_near(delta([(mechanisms.laplace(b=5).pair(), 100)], epsilon), truth)


@pytest.mark.parametrize("epsilon", [0, Fraction(1, 3), 2, Fraction(48, 5), 10, 11, -3, -10, -12])
def test_a_list_is_a_binomial_sum(epsilon):
    """Losses ±1/5: ε = 2 and 48/5 are sums of them, 10 is the largest."""
    count = 50
    with mp.workdps(60):
        e = number(epsilon)
        p = 1 / (1 + mp.exp(-mp.mpf(1) / 5))
        truth = mp.fsum(
            mp.binomial(count, k) * p**k * (1 - p) ** (count - k) * -mp.expm1(e - loss)
            for k in range(count + 1)
            if (loss := mp.mpf(2 * k - count) / 5) > e
        )
        pair = mechanisms.randomized_response(epsilon_0="1/5").pair()
        ball = delta([(pair, count)], epsilon)
        assert_near(ball, truth)
        assert ball.is_zero() == (epsilon >= 10)


@pytest.mark.slow_cases("share0-1")
@pytest.mark.parametrize("count", [1, 5, 40])
@pytest.mark.parametrize("share", [Fraction(-1, 3), 0, Fraction(1, 5), Fraction(2, 3), 1])
def test_a_pole_on_either_side_of_the_line(count, share):
    """L = log 2 less Gamma(n) of rate 2 in one direction, Gamma(n) less log 2 in the other."""
    epsilon = share * count
    pair = linear()
    with mp.workdps(60):
        e = number(epsilon)
        most = count * mp.log(2) - e
        below = mp.gammainc(count, 0, 2 * most) - mp.exp(e) * mp.gammainc(count, 0, most)
        forth = below / mp.factorial(count - 1) if most > 0 else mp.mpf(0)
        least = max(e + count * mp.log(2), mp.mpf(0))
        above = mp.gammainc(count, least) - mp.exp(e) * mp.gammainc(count, 2 * least)
        assert_near(delta([(pair, count)], epsilon), forth)
        assert_near(delta([(pair.reversed(), count)], epsilon), above / mp.factorial(count - 1))


class Losses:
    """Finite losses under P: atoms (loss, mass), and a density between two losses."""

    def __init__(self, atoms, low, high, density):
        self.atoms, self.low, self.high, self.density = atoms, low, high, density

    def excess(self, count, epsilon):
        """E[(1 − e^{ε−L})⁺] of the sum, step by step."""
        if count == 0:
            return max(-mp.expm1(epsilon), mp.mpf(0))

        def rest(loss):
            return self.excess(count - 1, epsilon - loss)

        kinks = {self.low, self.high}
        for ups in range(count):
            kinks.add(epsilon - ups * self.high - (count - 1 - ups) * self.low)
        places = sorted(p for p in kinks if self.low <= p <= self.high)
        spread = mp.quad(
            lambda loss: self.density(loss) * rest(loss), places, method="gauss-legendre"
        )
        return spread + mp.fsum(mass * rest(loss) for loss, mass in self.atoms)


def asymmetric(direction):
    third = mp.mpf(1) / 3
    if direction == "remove":  # x − 1/3 in between
        atoms = [(-third, 2 * third * mp.exp(-third)), (2 * third, third)]
        return Losses(atoms, -third, 2 * third, lambda s: 2 * mp.exp((s - 2 * third) / 3) / 9)
    atoms = [(third, 2 * third), (-2 * third, third * mp.exp(-2 * third))]
    return Losses(atoms, -2 * third, third, lambda s: 2 * mp.exp(2 * (s - third) / 3) / 9)


def truncated(_):
    half = mp.mpf(1) / 2
    scale = 1 / (4 * -mp.expm1(-3 * half))
    atoms = [
        (-half, scale * 2 * (mp.exp(-half) - mp.exp(-3 * half))),
        (half, scale * 2 * -mp.expm1(-mp.mpf(1))),
    ]
    return Losses(atoms, -half, half, lambda s: scale * mp.exp((s - half) / 2))


def logistic(_):
    """Of scale 2: P(L ≤ s) = (e^{(s+μ)/2} − 1)/(e^μ − 1) with μ = ½."""
    mu = mp.mpf(1) / 2
    return Losses([], -mu, mu, lambda s: mp.exp((s + mu) / 2) / (2 * mp.expm1(mu)))


LAWS = {
    "asymmetric": (ASYMMETRIC, asymmetric),
    "truncated": (TRUNCATED, truncated),
    "logistic": (mechanisms.logistic(s=2), logistic),
}


@pytest.mark.quick_cases("asymmetric-2-remove")
@pytest.mark.parametrize("side", ["remove", "add"])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("law", LAWS)
def test_few_steps_by_quadrature_over_losses(law, count, side):
    mechanism, losses = LAWS[law]
    pair = mechanism.pair(side)
    with mp.workdps(30):
        own = losses(side)
        infinite = mp.mpf(0)
        if law == "truncated":
            infinite = 1 - (1 - _beyond()) ** count
        places = (Fraction(1, 7), Fraction(1, 2), -count, Fraction(2 * count, 3))
        for epsilon in places if count < 3 else places[:1]:
            truth = infinite + own.excess(count, number(epsilon))
            assert_near(delta([(pair, count)], epsilon), truth, 24)


def _beyond():
    """P(Q = 0) of the truncated noise, the last unit of its shifted range."""
    scale = 1 / (4 * -mp.expm1(-mp.mpf(3) / 2))
    return scale * 2 * (mp.exp(-mp.mpf(1)) - mp.exp(-mp.mpf(3) / 2))


@pytest.mark.slow_cases("epsilon0-1")
@pytest.mark.parametrize("count", [1, 7, 60])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 0, Fraction(-1, 4), 2, -20])
def test_losses_of_one_value(count, epsilon):
    with mp.workdps(50):
        e = number(epsilon)
        below = max(-mp.expm1(e), mp.mpf(0))
        kept = mp.mpf("0.9") ** count
        assert_near(delta([(UNIFORM.pair(), count)], epsilon), 1 - kept + kept * below)
        top = mp.mpf(count) / 4
        truth = max(-mp.expm1(e - top), mp.mpf(0))
        assert_near(delta([(ONE_SIDED.pair("remove"), count)], epsilon), truth)
        kept = mp.exp(-top)
        truth = 1 - kept + kept * max(-mp.expm1(e + top), mp.mpf(0))
        assert_near(delta([(ONE_SIDED.pair("add"), count)], epsilon), truth)


EXPONENTIAL = mechanisms.exponential(epsilon_0=1)
MANY = {
    "laplace": [(mechanisms.laplace(b=5), 30)],
    "asymmetric": [(ASYMMETRIC, 20)],
    "truncated": [(TRUNCATED, 12)],
    "logistic": [(mechanisms.logistic(s=2), 25)],
    "exponential mechanism": [(EXPONENTIAL, 10)],
    "staircase": [(mechanisms.staircase(epsilon_0=1, gamma_0="1/3"), 12)],
    "bounded range": [(mechanisms.bounded_range(epsilon_0=1, u="1/3"), 15)],
    "two kinds": [(mechanisms.laplace(b=2), 6), (mechanisms.logistic(s=3), 4), (TRUNCATED, 3)],
    "gumbel": [(mechanisms.gumbel(b=2), 5)],
}


@pytest.mark.quick_cases("logistic", "asymmetric", "staircase")
@pytest.mark.parametrize("name", MANY)
def test_the_two_directions_mirror_each_other(name):
    """δ(P,Q)(ε) = 1 − e^ε + e^ε δ(Q,P)(−ε)."""
    forth, back = ([(m.pair(side), n) for m, n in MANY[name]] for side in ("remove", "add"))
    for epsilon in (Fraction(1, 2), 2, Fraction(-1, 3)):
        with ctx.workprec(200):
            growth = arb(Fraction(epsilon).numerator) / Fraction(epsilon).denominator
            growth = growth.exp()
            mirrored = 1 - growth + growth * delta(back, -epsilon)
            assert mirrored.overlaps(delta(forth, epsilon))
            assert mirrored.rad() < 1e-25


@pytest.mark.slow_cases("bounded range", "two kinds", "gumbel", "exponential mechanism")
@pytest.mark.parametrize("name", MANY)
def test_the_default_answer_holds_the_sum(name):
    composition = compose(MANY[name])
    steps = [(m.pair("remove"), n) for m, n in MANY[name]]
    for epsilon in (0.5, 2.0):
        answer = composition.delta(epsilon, direction="remove")
        log_delta = float(delta(steps, Fraction(epsilon)).log().mid())
        slack = 4e-16 * (1 + abs(log_delta))
        assert answer.log_lower - slack <= log_delta <= answer.log_upper + slack


@pytest.mark.parametrize(
    "mechanism",
    [
        mechanisms.gaussian(sigma=2),
        mechanisms.student_t(nu=3, s=1),
        mechanisms.laplace(b=2).subsample("poisson", "1/3"),
        noise((2 - sp.Abs(x)) / 4, (-2, 2)),
    ],
    ids=["gaussian", "student", "sampled", "triangle"],
)
def test_other_losses_have_no_such_sum(mechanism):
    assert residues_of([(mechanism.pair("remove"), 3)]) is None


def test_too_many_terms_are_not_offered():
    assert residues_of([(mechanisms.laplace(b=5).pair(), 1000)]) is None
    assert residues_of([(mechanisms.staircase(epsilon_0=1, gamma_0="1/3").pair(), 500)]) is None


def test_a_delta_far_below_the_terms_that_cancel():
    """All 40 losses are at their largest with probability 2^{−40}: δ ≈ s·2^{−40} at s below 8."""
    near = Fraction(1, 10**40)
    ball = delta([(mechanisms.laplace(b=5).pair(), 40)], 8 - near, 20)
    with ctx.workprec(300):
        about = arb(10) ** -40 * arb(2) ** -40
        assert abs(ball / about - 1) < arb(10) ** -20
