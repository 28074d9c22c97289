"""δ(ε) to many digits against closed forms, exact rational sums and published figures."""

from __future__ import annotations

import math
from fractions import Fraction

import definition
import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy.special import gammaln

from symdp import mechanisms
from symdp.errors import AccuracyError, InputError
from symdp.model.pair import Pair, Support
from symdp.prove.truth import privacy_profile, profile

x = sp.Symbol("x", real=True)
k = sp.Symbol("k", integer=True)
R = sp.Rational
LINE = Support("interval", -sp.oo, sp.oo)
INTEGERS = Support("integers", -sp.oo, sp.oo)
ZERO, ONE = sp.Integer(0), sp.Integer(1)


def _shifted(density: sp.Expr, rate: sp.Expr = ONE, variable: sp.Symbol = x) -> Pair:
    support = INTEGERS if variable is k else LINE
    moved = density.subs(variable, variable - 1)
    return Pair(variable, support, (density, moved), (1 - rate, rate), (ONE, ZERO))


def _listed(p: list[sp.Expr], q: list[sp.Expr]) -> Pair:
    places = tuple(sp.Integer(i) for i in range(len(p)))
    support = Support("points", places[0], places[-1], places)
    return Pair(sp.Symbol("v", real=True), support, (tuple(q), tuple(p)), (ZERO, ONE), (ONE, ZERO))


def _gaussian(sigma: sp.Expr) -> sp.Expr:
    return sp.exp(-(x**2) / (2 * sigma**2)) / (sigma * sp.sqrt(2 * sp.pi))


GAUSSIAN = _shifted(_gaussian(R(3, 2)))
SUBSAMPLED = _shifted(_gaussian(R(3, 2)), R(1, 100))
LAPLACE = _shifted(sp.exp(-sp.Abs(x)) / 2)
LOGISTIC = _shifted(sp.exp(-x) / (1 + sp.exp(-x)) ** 2)
CAUCHY = _shifted(1 / (sp.pi * (1 + x**2)))
DISCRETE = _shifted(sp.tanh(R(1, 4)) * sp.exp(-sp.Abs(k) / 2), variable=k)
RESPONSE = _listed([R(3, 4), R(1, 4)], [R(1, 4), R(3, 4)])


def _gaussian_delta(count: int, epsilon: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """δ and 1 − δ of `count` Gaussian steps with σ = 3/2, by complementary error functions."""
    with mpmath.workdps(90 + int(abs(epsilon))):
        mu = mpmath.sqrt(count) * 2 / 3
        root = mpmath.sqrt(2)
        upper = mpmath.erfc((epsilon / mu - mu / 2) / root) / 2
        lower = mpmath.erfc((epsilon / mu + mu / 2) / root) / 2
        delta = upper - mpmath.exp(epsilon) * lower
        return delta, mpmath.erfc(-(epsilon / mu - mu / 2) / root) / 2 + mpmath.exp(epsilon) * lower


@pytest.mark.quick_cases("1-0", "1--3", "1-1")
@pytest.mark.parametrize(
    ("count", "epsilon"),
    [
        (1, 1),
        (1, -3),
        (1, 30),
        (1, 0),
        (2, 1),
        (100, 60),
        (100, 10),
        (100, 0),
        (100, -60),
        (100, -90),
    ],
)
def test_gaussian_closed_form(count: int, epsilon: int) -> None:
    found = profile([(GAUSSIAN, count)], epsilon, 50)
    delta, complement = _gaussian_delta(count, epsilon)
    with mpmath.workdps(60):
        assert abs(found.value / delta - 1) < mpmath.mpf(10) ** -50
        assert abs((1 - found.value) - complement) < mpmath.mpf(10) ** -50
    assert found.digits == 50


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [222222222, 222230000, 215000000])
def test_a_billion_gaussian_steps(epsilon: int) -> None:
    """So many digits as are said: 50 or 15, as the last bits of a plan in doubles decide."""
    found = profile([(GAUSSIAN, 10**9)], epsilon, 50)
    with mpmath.workdps(80):
        mu = mpmath.sqrt(10**9) * 2 / 3
        upper = mpmath.ncdf(mu / 2 - epsilon / mu)
        # e^ε Φ(−ε/μ − μ/2), by the ratio of the two tails: both under- and overflow otherwise.
        shift = epsilon / mu + mu / 2
        lower = mpmath.erfc(shift / mpmath.sqrt(2)) / 2 * mpmath.exp(epsilon)
        assert abs(found.value / (upper - lower) - 1) < mpmath.mpf(10) ** -found.digits
    assert found.digits >= 15


def test_published_fourier_value() -> None:
    """The discrete Fourier accountant's Table 1 shows 0.0496014103 at its finest grids."""
    value = privacy_profile([(SUBSAMPLED, 10_000)], 1, 50)
    assert mpmath.nstr(value, 9) == "0.0496014103"
    # Ten more digits, on which evaluations at several precisions and tilts agreed.
    assert mpmath.nstr(value, 30) == "0.0496014103148257756069437717921"


@pytest.mark.parametrize("epsilon", [R(-2), R(0), R(1, 3), R(99, 100), R(1), R(5)])
def test_laplace_closed_form(epsilon: sp.Rational) -> None:
    with mpmath.workdps(60):
        e = mpmath.mpf(int(epsilon.p)) / int(epsilon.q)
        if abs(e) < 1:
            truth = 1 - mpmath.exp((e - 1) / 2)
        else:
            truth = mpmath.mpf(0) if e >= 1 else 1 - mpmath.exp(e)
        assert (
            abs(privacy_profile([(LAPLACE, 1)], epsilon, 50) - truth)
            <= truth * mpmath.mpf(10) ** -50
        )


@pytest.mark.slow
def test_cauchy_single_step() -> None:
    """ℓ > 0 exactly for x > 1/2, so δ(0) = P(x > 1/2) − Q(x > 1/2) = 2 arctan(1/2)/π."""
    with mpmath.workdps(40):
        truth = 2 * mpmath.atan(mpmath.mpf(1) / 2) / mpmath.pi
        assert abs(privacy_profile([(CAUCHY, 1)], 0, 35) / truth - 1) < mpmath.mpf(10) ** -35


@pytest.mark.parametrize(("count", "epsilon"), [(1, R(1, 2)), (2, 0), (7, 3), (60, 20), (60, -9)])
def test_randomized_response_is_a_binomial_sum(count: int, epsilon: sp.Expr) -> None:
    """Σ (p_j − e^ε q_j)⁺ with exact probabilities; only e^ε is irrational."""
    with mpmath.workdps(60):
        growth = mpmath.exp(mpmath.mpf(int(sp.Rational(epsilon).p)) / int(sp.Rational(epsilon).q))
        truth = mpmath.mpf(0)
        for ones in range(count + 1):
            ways = math.comb(count, ones)
            p = ways * Fraction(3, 4) ** ones * Fraction(1, 4) ** (count - ones)
            q = ways * Fraction(1, 4) ** ones * Fraction(3, 4) ** (count - ones)
            excess = mpmath.mpf(p.numerator) / p.denominator
            excess -= growth * q.numerator / q.denominator
            truth += max(excess, mpmath.mpf(0))
        value = privacy_profile([(RESPONSE, count)], epsilon, 40)
        assert abs(value / truth - 1) < mpmath.mpf(10) ** -40


def test_mass_at_infinity() -> None:
    """P = (1/10, 9/10) on (0, 1), Q = 1 on 1: δ = 1 − (9/10)^n for ε ≥ n log(9/10)."""
    pair = _listed([R(1, 10), R(9, 10)], [ZERO, ONE])
    for count in (1, 3, 1000):
        with mpmath.workdps(45):
            truth = 1 - (mpmath.mpf(9) / 10) ** count
            value = privacy_profile([(pair, count)], 1, 40)
            assert abs(value / truth - 1) < mpmath.mpf(10) ** -40


def test_half_of_the_support_is_certain() -> None:
    """Uniform noise on [0, 1] moved by 1/4: a quarter of the mass has infinite loss."""
    inside = sp.Piecewise((ONE, (x >= 0) & (x <= 1)), (ZERO, True))
    pair = Pair(
        x, Support("interval", ZERO, R(5, 4)), (inside, inside.subs(x, x - R(1, 4))),
        (ZERO, ONE), (ONE, ZERO),
    )  # fmt: skip
    for count in (1, 4):
        with mpmath.workdps(40):
            truth = 1 - (mpmath.mpf(3) / 4) ** count
            assert abs(privacy_profile([(pair, count)], R(1, 3), 30) - truth) < 1e-30


def _discrete_laplace_delta(count: int, epsilon: mpmath.mpf) -> mpmath.mpf:
    """The definition, on a truncated convolution of the loss's atoms −1/2 and 1/2."""
    ratio = mpmath.exp(-mpmath.mpf(1) / 2)
    # ℓ = 1/2 for k ≥ 1 and −1/2 for k ≤ 0, P(k ≥ 1) = 1/(1 + e^{−1/2}).
    up = 1 / (1 + ratio)
    total = mpmath.mpf(0)
    for ups in range(count + 1):
        loss = mpmath.mpf(2 * ups - count) / 2
        if loss > epsilon:
            weight = mpmath.binomial(count, ups) * up**ups * (1 - up) ** (count - ups)
            total -= weight * mpmath.expm1(epsilon - loss)
    return total


@pytest.mark.parametrize(("count", "epsilon"), [(1, 0.25), (2, 0.5), (9, 2.0), (100, 30.0)])
def test_discrete_laplace(count: int, epsilon: float) -> None:
    with mpmath.workdps(50):
        truth = _discrete_laplace_delta(count, mpmath.mpf(epsilon))
        value = privacy_profile([(DISCRETE, count)], epsilon, 40)
        assert abs(value / truth - 1) < mpmath.mpf(10) ** -40


@pytest.mark.quick_cases("pair0-1-0.2-single step", "pair4-4-0.1-lattice")
@pytest.mark.parametrize(
    ("pair", "count", "epsilon", "way"),
    [
        (SUBSAMPLED, 1, 0.2, "single step"),
        (SUBSAMPLED, 3000, 0.5, "line"),
        (LAPLACE, 3, 0.7, "residues"),
        (_listed([R(1, 2), R(1, 3), R(1, 6)], [R(1, 7), R(2, 7), R(4, 7)]), 5, 1.0, "residues"),
        (_shifted(sp.tanh(R(1, 4)) * sp.exp(-sp.Abs(k) / 2), R(1, 10), k), 4, 0.1, "lattice"),
        (_shifted(sp.exp(-sp.Abs(x)) / 2, R(1, 10)), 2, 0.1, "convolution"),
        pytest.param(CAUCHY, 2, 0.7, "convolution", marks=pytest.mark.slow),
    ],
)
def test_the_two_directions_mirror_each_other(
    pair: Pair, count: int, epsilon: float, way: str
) -> None:
    """δ(P,Q)(ε) = 1 − e^ε + e^ε δ(Q,P)(−ε), with different tilts and nodes behind it."""
    forth = profile([(pair, count)], epsilon, 18)
    back = profile([(pair.reversed(), count)], -epsilon, 18)
    assert forth.digits == back.digits == 18
    assert forth.way == way
    with mpmath.workdps(30):
        growth = mpmath.exp(mpmath.mpf(epsilon))
        assert abs(1 - growth + growth * back.value - forth.value) < mpmath.mpf(10) ** -17


@pytest.mark.slow_cases("2", "3")
@pytest.mark.parametrize("count", [2, 3, 5])
def test_few_steps_are_those_of_the_closed_form(count: int) -> None:
    found = profile([(GAUSSIAN, count)], R(3, 2), 30)
    with mpmath.workdps(60):
        closed = _gaussian_delta(count, mpmath.mpf(3) / 2)[0]
        assert abs(found.value / closed - 1) < mpmath.mpf(10) ** -30
    assert found.digits == 30  # proved by a line, or two sums agree on them, as at two steps


@pytest.mark.slow_cases("30")
@pytest.mark.parametrize("digits", [12, 30])
def test_two_steps_added_are_those_of_the_closed_form(digits: int) -> None:
    from symdp.prove.truth import _two_steps_added

    added = _two_steps_added([(GAUSSIAN, 2)], Fraction(3, 2), digits)
    with mpmath.workdps(60):
        closed = _gaussian_delta(2, mpmath.mpf(3) / 2)[0]
        assert abs(mpmath.mpf(added.str(30, radius=False)) / closed - 1) < mpmath.mpf(10) ** -15
        assert float(added.rad()) < 10.0**-digits * float(closed)


@pytest.mark.slow
def test_what_no_plan_and_no_convolution_reaches_says_how_many_digits_a_mesh_proves() -> None:
    """Atoms beside densities, too many steps for sums of kinks."""
    sampled = mechanisms.laplace(b=1).subsample("poisson", "1/10").pair("remove")
    with pytest.raises(AccuracyError):
        privacy_profile([(sampled, 40)], R(1, 2), 30)
    found = profile([(sampled, 40)], R(1, 2), 30)
    assert found.is_proved
    assert 4 <= found.digits < 15
    assert "mesh" in found.said


def test_one_step_of_a_definition_that_shares_no_code() -> None:
    for step in (
        mechanisms.gumbel(b=2),
        mechanisms.student_t(nu=3, s=2),
        mechanisms.staircase(epsilon_0=1, gamma_0="1/3"),
    ):
        pair = step.pair("remove")
        proved = privacy_profile([(pair, 1)], 0.125, 25)
        assert abs(definition.delta(pair, 0.125) / proved - 1) < 1e-15


@pytest.mark.slow
def test_many_steps_of_a_definition_that_shares_no_code() -> None:
    """Fifty logistic steps, M by Gauss's rule of mpmath along a line of another tilt."""
    with mpmath.workdps(35):
        own = definition.moment(
            lambda v: mpmath.exp(-v) / (1 + mpmath.exp(-v)) ** 2,
            lambda v: 2 * mpmath.log((1 + mpmath.exp(1 - v)) / (1 + mpmath.exp(-v))) - 1,
            [-90, -60, -40, -25, -15, -9, -5, -2, 0, 2, 5, 9, 15, 25, 40, 60, 90],
            30,
        )
        judged = definition.composed([(own, 50)], 9, mpmath.mpf(1) / 3, 15)
        # P is the noise itself and Q its move by 1 to the right: of either direction the same.
        assert abs(privacy_profile([(LOGISTIC, 50)], 9, 25) / judged - 1) < 1e-13


def test_laplace_pair_of_steps_by_hand() -> None:
    """δ₂(ε) = E δ₁(ε − L) with δ₁ in closed form, the atoms ±1 and the density e^{(l−1)/2}/4."""
    with mpmath.workdps(40):
        epsilon = mpmath.mpf(3) / 10

        def single(e: mpmath.mpf) -> mpmath.mpf:
            if e >= 1:
                return mpmath.mpf(0)
            return 1 - mpmath.exp(e) if e <= -1 else 1 - mpmath.exp((e - 1) / 2)

        total = single(epsilon - 1) / 2 + single(epsilon + 1) * mpmath.exp(-1) / 2
        total += mpmath.quad(
            lambda l: single(epsilon - l) * mpmath.exp((l - 1) / 2) / 4, [-1, epsilon - 1, 1]
        )
        assert abs(privacy_profile([(LAPLACE, 2)], R(3, 10), 30) / total - 1) < 1e-30


@pytest.mark.slow
def test_far_below_every_double() -> None:
    value = privacy_profile([(SUBSAMPLED, 2000)], 60, 25)
    assert 0 < value < mpmath.mpf(10) ** -450
    with mpmath.workdps(30):
        again = privacy_profile([(SUBSAMPLED, 2000)], 60, 15)
        assert abs(value / again - 1) < mpmath.mpf(10) ** -15


@pytest.mark.slow
def test_equal_steps_may_be_given_apart() -> None:
    together = privacy_profile([(GAUSSIAN, 5), (LOGISTIC, 20)], 1, 20)
    apart = privacy_profile([(GAUSSIAN, 2), (LOGISTIC, 20), (GAUSSIAN, 3)], 1, 20)
    assert abs(together / apart - 1) < mpmath.mpf(10) ** -20


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match="count"):
        privacy_profile([(GAUSSIAN, 0)], 1)
    with pytest.raises(InputError, match="at least one step"):
        privacy_profile([], 1)
    with pytest.raises(InputError, match="digits"):
        privacy_profile([(GAUSSIAN, 1)], 1, 0)
    with pytest.raises(InputError, match="epsilon"):
        privacy_profile([(GAUSSIAN, 1)], math.inf)
    with pytest.raises(InputError, match="a rational number"):
        privacy_profile([(GAUSSIAN, 1)], sp.log(2))


# Losses log(14/15), log 2, log(4/5) and log(4/3) lie on no lattice.
OFF_LATTICE = _listed(
    [R(7, 10), R(1, 10), R(1, 10), R(1, 10)], [R(3, 4), R(1, 20), R(1, 8), R(3, 40)]
)


@pytest.mark.slow
def test_out_of_reach_is_said() -> None:
    """Atoms too many to enumerate, whose characteristic function recurs."""
    with pytest.raises(AccuracyError, match="ask for fewer digits"):
        privacy_profile([(OFF_LATTICE, 900)], 3, 40)


@pytest.mark.slow
def test_atoms_off_every_lattice_are_not_taken_for_a_density() -> None:
    """A sum that ends where the characteristic function has fallen is wrong by 1e-5 here."""
    count, epsilon = 300, 7.5
    found = profile([(OFF_LATTICE, count)], epsilon, 30)
    # All 4.6 million sums, in doubles: each weight to about 1e-13.
    p, q = np.asarray([0.7, 0.1, 0.1, 0.1]), np.asarray([0.75, 0.05, 0.125, 0.075])
    ks = np.stack(np.meshgrid(*[np.arange(count + 1)] * 3, indexing="ij")).reshape(3, -1)
    ks = ks[:, ks.sum(axis=0) <= count]
    ks = np.vstack([ks, count - ks.sum(axis=0)])
    weights = math.lgamma(count + 1) - gammaln(ks + 1).sum(axis=0) + np.log(p) @ ks
    losses = np.log(p / q) @ ks
    truth = -(np.exp(weights) @ np.expm1(np.minimum(epsilon - losses, 0.0)))
    assert abs(float(found.value) / truth - 1) < 10.0**-found.digits + 1e-11
    assert found.digits >= 4


def test_too_small_a_delta_is_refused() -> None:
    """A billion Gaussian steps, log δ = −68 000: integrals would carry as many e-folds."""
    with pytest.raises(AccuracyError, match="too small a δ to certify"):
        privacy_profile([(GAUSSIAN, 10**9)], 230000000, 30)
