"""The contour accountant against closed forms and arbitrary-precision truth."""

import math

import mpmath
import pytest
import sympy as sp
from catalogue import ALL

from symdp import compose, mechanisms
from symdp.model.mechanism import Mechanism
from symdp.prove.truth import privacy_profile

x = sp.Symbol("x", real=True)


def gaussian_log_delta(mu, epsilon):
    """log of Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) at 60 digits, and log of one less it."""
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        far = mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
        delta = mpmath.ncdf(mu / 2 - epsilon / mu) - far
        return float(mpmath.log(delta)), float(mpmath.log(mpmath.ncdf(epsilon / mu - mu / 2) + far))


@pytest.mark.slow_cases(
    "-1.0-1000000000-1/2",
    "-1.0-1000000000-5",
    "-1.0-1000000000000-1/2",
    "-1.0-1000000000000-5",
    "0.0-1000000000000-1/2",
    "0.0-1000000000000-5",
    "3.0-1000000000000-1/2",
    "12.0-1000000000-5",
    "12.0-1000000000000-1/2",
    "12.0-1000000000000-5",
    "36.5-2-1/2",
    "36.5-1000000000-1/2",
    "36.5-1000000000-5",
    "36.5-1000000000000-1/2",
    "36.5-1000000000000-5",
    "0.0-1000000000-5",
    "12.0-1000000000-1/2",
    "3.0-1000000000-5",
    "3.0-1000000000000-5",
    "3.0-1000000000-1/2",
)
@pytest.mark.parametrize("sigma", ["1/2", "5"])
@pytest.mark.parametrize("count", [1, 2, 3, 50, 10**4, 10**9, 10**12])
@pytest.mark.parametrize("deviations", [-6.0, -1.0, 0.0, 3.0, 12.0, 36.5])
def test_gaussian_closed_form(sigma, count, deviations):
    """Composition of Gaussians is Gaussian: δ from 1 − 1e-9 down to 1e-290."""
    with mpmath.workdps(60):
        mu = mpmath.sqrt(count) / mpmath.mpf(sp.Rational(sigma).p) * sp.Rational(sigma).q
        epsilon = float(mu * mu / 2 + deviations * mu)
        log_delta, log_complement = gaussian_log_delta(mu, epsilon)
    composition = compose(mechanisms.gaussian(sigma=sigma), count)
    guarantee = composition.delta(epsilon)
    tolerance = 1e-10 if count == 10**12 else 1e-11
    assert guarantee.log_delta == pytest.approx(log_delta, abs=tolerance)
    assert guarantee.log_lower <= log_delta <= guarantee.log_upper
    assert guarantee.kind == "exact"
    law = composition.law("remove")
    from symdp.methods import accountant

    answer = accountant("contour").log_delta(law, epsilon)
    low, high = answer.complement_bounds
    assert low <= log_complement <= high + 1e-50  # less than the digits of the closed form
    if count <= 10**4:  # of more steps only δ is asked of balls
        assert answer.log_complement == pytest.approx(log_complement, abs=1e-11, rel=1e-12)


def randomized_response_delta(epsilon_0, count, epsilon):
    """δ by the finite sum over the number of truthful answers, 50 digits."""
    with mpmath.workdps(50):
        e0, epsilon = mpmath.mpf(epsilon_0), mpmath.mpf(epsilon)
        truthful = 1 / (1 + mpmath.exp(-e0))
        total = mpmath.mpf(0)
        for k in range(count + 1):
            loss = e0 * (2 * k - count)
            if loss > epsilon:
                weight = mpmath.binomial(count, k) * truthful**k * (1 - truthful) ** (count - k)
                total += weight * -mpmath.expm1(epsilon - loss)
        return total


@pytest.mark.slow_cases("0.0-3000", "-0.3-3000")
@pytest.mark.parametrize("count", [1, 2, 7, 100, 3000])
@pytest.mark.parametrize("fraction", [-0.3, 0.0, 0.31, 0.5, 0.97])
def test_randomized_response_is_a_finite_sum(count, fraction):
    epsilon = fraction * count * 0.2
    composition = compose(mechanisms.randomized_response(epsilon_0="1/5"), count)
    exact = randomized_response_delta("0.2", count, epsilon)
    got = composition.delta(epsilon, direction="remove")
    if exact == 0:
        assert got.delta == 0
    else:
        assert got.log_delta == pytest.approx(float(mpmath.log(exact)), abs=1e-11, rel=2e-14)


def test_published_fourier_accountant_row():
    """FA Table 1: q = 0.01, σ = 1.5, 10⁴ steps, ε = 1; its finest grid gives 0.0496014103163."""
    mechanism = mechanisms.gaussian(sigma="3/2").subsample("poisson", "1/100")
    got = compose(mechanism, 10**4).delta(1.0, direction="remove")
    assert got.delta == pytest.approx(0.0496014103163, rel=1e-9)
    truth = privacy_profile([(mechanism.pair("remove"), 10**4)], 1.0, digits=25)
    assert abs(got.delta / truth - 1) < 1e-12


def normal(mean, sigma):
    return sp.exp(-((x - mean) ** 2) / (2 * sigma**2)) / (sigma * sp.sqrt(2 * sp.pi))


CASES = [
    ("logistic", mechanisms.logistic(s=1), 20, 4.0),
    ("gumbel", mechanisms.gumbel(b=1), 20, 14.0),
    ("student", mechanisms.student_t(nu=3, s=2), 60, 6.0),
    ("laplace", mechanisms.laplace(b=2), 400, 55.0),
    (
        "subsampled laplace",
        mechanisms.laplace(b=1).subsample("poisson", "1/100"),
        1000,
        0.7,
    ),
    ("mixture", Mechanism.additive(normal(0, 1) / 2 + normal(0, 3) / 2, x), 50, 12.0),
    (
        "quartic",
        Mechanism.additive(sp.exp(-(x**4)) / (2 * sp.gamma(sp.Rational(5, 4))), x),
        20,
        80.0,
    ),
    ("two variances", Mechanism.from_pair(normal(0, sp.Rational(3, 2)), normal(0, 1), x), 50, 16.0),
    ("discrete gaussian", mechanisms.discrete_gaussian(sigma=2), 50, 20.0),
    ("one big jump", mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"), 2000, 8.0),
]
LONG = {"mixture", "gumbel"}  # whose truth takes over ten seconds


@pytest.mark.quick_cases(
    "add-discrete gaussian", "remove-discrete gaussian", "add-subsampled laplace"
)
@pytest.mark.parametrize(
    ("name", "mechanism", "count", "epsilon"),
    [pytest.param(*c, id=c[0], marks=[pytest.mark.slow] * (c[0] in LONG)) for c in CASES],
)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_against_truth(name, mechanism, count, epsilon, direction):
    got = compose(mechanism, count).delta(epsilon, direction=direction)
    truth = privacy_profile([(mechanism.pair(direction), count)], epsilon, digits=20)
    if truth == 0:
        assert got.delta == 0
        return
    with mpmath.workdps(30):
        assert got.log_lower <= mpmath.log(truth) <= got.log_upper
        if got.log_delta > -700:
            assert abs(mpmath.exp(mpmath.mpf(got.log_delta)) / truth - 1) < 1e-10


def test_heterogeneous_composition_of_gaussians():
    """Σ 1/σ² adds up: 3 steps at σ = 2 and 5 at σ = 4 are one Gaussian of μ² = 3/4 + 5/16."""
    parts = [(mechanisms.gaussian(sigma=2), 3), (mechanisms.gaussian(sigma=4), 5)]
    got = compose(parts).delta(1.5)
    expected, _ = gaussian_log_delta(math.sqrt(0.75 + 0.3125), 1.5)
    assert got.log_delta == pytest.approx(expected, abs=1e-13)


def test_equal_steps_merge():
    one = compose(mechanisms.laplace(b=2), 60)
    two = compose([(mechanisms.laplace(b=2), 20), (mechanisms.laplace(b=2), 40)])
    assert two.delta(3.0).log_delta == one.delta(3.0).log_delta


def test_outside_the_loss_range():
    composition = compose(mechanisms.laplace(b=1), 5)
    assert composition.delta(5.0001).delta == 0.0
    below = composition.delta(-6.0)
    assert below.delta == pytest.approx(-math.expm1(-6.0), rel=1e-14)


def test_mass_at_infinity():
    """Exponential noise of sensitivity 1: P(Q = 0) is 0 in one direction, 1 − 1/e in the other."""
    density = sp.exp(-x)
    mechanism = Mechanism.additive(density, x, support=(0, sp.oo))
    composition = compose(mechanism, 3)
    escaped = -math.expm1(-3.0)
    assert composition.delta(50.0, direction="add").delta == pytest.approx(escaped, rel=1e-14)
    # The finite loss is always 1 a step in the remove direction: δ = 1 − e^{ε − 3}.
    got = composition.delta(1.0, direction="remove")
    assert got.delta == pytest.approx(-math.expm1(-2.0), rel=1e-12)


def three_points(weights):
    return Mechanism.from_pair(
        [sp.Rational(w) for w in weights], [sp.Rational(1, 3)] * 3, x, support=[0, 1, 2]
    )


@pytest.mark.parametrize("count", [2, 9, 60])
@pytest.mark.parametrize("epsilon", [-0.1, 0.3, 2.5])
def test_atoms_off_a_lattice(count, epsilon):
    """Three points in general position: a multinomial sum at 40 digits."""
    weights = ["1/2", "3/10", "1/5"]
    got = compose(three_points(weights), count).delta(epsilon, direction="remove")
    with mpmath.workdps(40):
        p = [mpmath.mpf(sp.Rational(w).p) / sp.Rational(w).q for w in weights]
        losses = [mpmath.log(3 * v) for v in p]
        exact = mpmath.mpf(0)
        for i in range(count + 1):
            for j in range(count + 1 - i):
                k = count - i - j
                loss = i * losses[0] + j * losses[1] + k * losses[2]
                if loss > epsilon:
                    ways = mpmath.binomial(count, i) * mpmath.binomial(count - i, j)
                    chance = ways * p[0] ** i * p[1] ** j * p[2] ** k
                    exact -= chance * mpmath.expm1(epsilon - loss)
        if exact == 0:
            assert got.delta == 0.0
        else:
            assert got.log_delta == pytest.approx(float(mpmath.log(exact)), abs=1e-12)
            assert got.log_lower <= mpmath.log(exact) <= got.log_upper


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "sigma", "count"),
    [
        ("1/5", "4/5", 10**3),
        ("1/5", "5", 10**6),
        ("1/100", "1/2", 10**3),
        ("1/100", "3/2", 10**9),
        ("1/100", "5", 10**6),
        ("1/1000", "4/5", 10**6),
        ("1/1000", "5", 10**9),
    ],
)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_subsampled_gaussian_everywhere(rate, sigma, count, direction):
    """δ from about 0.5 down to 1e-300, wherever ε of these sizes exists."""
    mechanism = mechanisms.gaussian(sigma=sigma).subsample("poisson", rate)
    composition = compose(mechanism, count)
    law = composition.law(direction)
    spread = math.sqrt(float(law.cumulants(0.0, 2)[1]))
    for deviations in (0.0, 4.0, 25.0):
        epsilon = law.mean + deviations * spread
        if not epsilon < 0.98 * law.loss_bounds[1]:
            continue
        got = composition.delta(epsilon, direction=direction)
        if got.log_delta < -690:
            continue
        truth = privacy_profile([(mechanism.pair(direction), count)], epsilon, digits=16)
        with mpmath.workdps(30):
            assert abs(mpmath.exp(mpmath.mpf(got.log_delta)) / truth - 1) < 1e-10


@pytest.mark.slow_cases("5-2.0")
@pytest.mark.parametrize(("b", "epsilon"), [("5", 2.0), ("7/2", 0.0), ("5", 2.05)])
def test_twelve_steps_on_and_off_a_sum_of_atoms(b, epsilon):
    # Residues know every atom and every kink, and share nothing with the line.
    from symdp.numeric.contour import on_own_lines
    from symdp.numeric.residues import residue_answer

    law = compose(mechanisms.laplace(b=b), 12).law("remove")
    integral, _ = on_own_lines(law, epsilon)
    direct = residue_answer(law, epsilon)
    # A line next to a kink ends at ten digits.
    assert integral.log_delta == pytest.approx(direct.log_delta, abs=1e-10)
    assert integral.log_lower <= direct.log_delta <= integral.log_upper
    # The same sums at fifty steps, convolved once for two minutes.
    known = {("5", 2.0): -2.3001921078653265, ("7/2", 0.0): -0.40559521658979136}
    if (b, epsilon) in known:
        fifty = compose(mechanisms.laplace(b=b), 50).delta(epsilon)
        assert fifty.log_delta == pytest.approx(known[b, epsilon], abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_sampled_even_densities_with_a_turning_loss(direction):
    """Cauchy noise against Student's with three degrees: δ(0) is q times the total variation."""
    step = ALL["student shapes"].mechanism("shapes").subsample("poisson", "1/100")
    with mpmath.workdps(30):
        gap = mpmath.quad(
            lambda v: abs(1 / (1 + v * v) - 2 / (1 + v * v) ** 2) / mpmath.pi,
            [-mpmath.inf, -10, -1, 0, 1, 10, mpmath.inf],
        )
        exact = float(gap / 200)
    got = compose(step, 1).delta(0.0, direction=direction)
    assert got.delta == pytest.approx(exact, rel=1e-12)
    assert compose(step, 1).law(direction).loss_bounds[0] < -0.009


@pytest.mark.parametrize("epsilon", [0.3, 0.39960000000000007, 0.39999999])
def test_next_to_the_largest_loss_of_one_step_its_rounding_counts(epsilon):
    """The largest loss, 2/5, is no double: δ = 1 − e^{(ε − 2/5)/2}."""
    answer = compose(mechanisms.laplace(b="5/2"), 1).delta(epsilon)
    with mpmath.workdps(40):
        gap = mpmath.mpf(2) / 5 - mpmath.mpf(epsilon)
        true = mpmath.log(-mpmath.expm1(-gap / 2))
        assert answer.log_lower <= true <= answer.log_upper
        assert answer.log_upper - answer.log_lower < 1e-14 + 1e-14 / gap


def test_next_to_one_the_bounds_know_what_delta_lacks():
    """One-sided noise: 1 − δ = e^ε is all that P has where Q lives, times e^{1000/20}."""
    x = sp.Symbol("x", real=True)
    noise = Mechanism.additive(sp.exp(-x / 20) / 20, x, support=(0, sp.oo))
    for method in ("contour", "spa-bounds", "eeai"):
        answer = compose(noise, 1000).delta(-50.0, method, "add")
        with mpmath.workdps(60):
            true = mpmath.log1p(-mpmath.exp(-50))
            assert answer.log_lower <= true <= answer.log_upper


def test_far_below_the_mean_one_minus_delta_is_enough():
    """There the line right of the poles all but touches one, and takes too many nodes."""
    answer = compose(mechanisms.discrete_laplace(b="1/2"), 10**9).delta(9e8, direction="add")
    assert answer.log_delta == 0.0
    assert answer.log_lower > -1e-15


@pytest.mark.slow
def test_tails_that_are_cut_off_count_with_their_losses():
    """A Laplace tail of mass e⁻⁴⁴ over a Gaussian has losses of 800, a million times."""
    step = ALL["laplace against gaussian"].mechanism("entry").subsample("poisson", "1/1000")
    found = compose(step, 10**6).delta(5.67704, direction="remove")
    proved = -0.0488123329886985  # by certify, seventeen digits
    assert found.log_lower <= proved <= found.log_upper
    assert found.log_upper - found.log_lower < 1e-11
