"""Loss laws in double precision against closed forms and ball arithmetic."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from catalogue import ALL
from scipy import optimize

from symdp import mechanisms
from symdp.density.pieces import flat_masses, pieces
from symdp.errors import AccuracyError
from symdp.model.mechanism import Mechanism
from symdp.numeric.elementary import exponential_remainder, oscillation_sum, uniform_sum
from symdp.numeric.laws.of_mechanism import loss_law
from symdp.numeric.outline import Outline
from symdp.numeric.panels import ORDER, build_rule
from symdp.numeric.total import SumLaw
from symdp.prove.tilted_loss import cgf_ball
from symdp.questions.composition import compose

x = sp.Symbol("x", real=True)


def normal(mean, sigma):
    return sp.exp(-((x - mean) ** 2) / (2 * sigma**2)) / (sigma * sp.sqrt(2 * sp.pi))


MECHANISMS = {
    "gaussian": mechanisms.gaussian(sigma="3/2"),
    "subsampled gaussian": mechanisms.gaussian(sigma="3/2").subsample("poisson", "1/100"),
    "substitution": mechanisms.gaussian(sigma=2).subsample("without_replacement", "1/20"),
    "with replacement": mechanisms.gaussian(sigma=2).subsample("with_replacement", "1/20", 8),
    "laplace": mechanisms.laplace(b=2),
    "subsampled laplace": mechanisms.laplace(b=1).subsample("poisson", "1/10"),
    "logistic": mechanisms.logistic(s=1),
    "gumbel": mechanisms.gumbel(b=2),
    "student": mechanisms.student_t(nu=3, s=1),
    "mixture noise": Mechanism.additive(normal(0, 1) / 2 + normal(0, 3) / 2, x),
    "two variances": Mechanism.from_pair(normal(0, sp.Rational(3, 2)), normal(0, 1), x),
    "quartic": Mechanism.additive(sp.exp(-(x**4)) / (2 * sp.gamma(sp.Rational(5, 4))), x),
    "randomized response": mechanisms.randomized_response(epsilon_0=1),
    "discrete laplace": mechanisms.discrete_laplace(b=2),
    "discrete gaussian": mechanisms.discrete_gaussian(sigma=3),
}


@pytest.fixture(params=list(MECHANISMS), scope="module")
def named(request):
    return MECHANISMS[request.param]


@pytest.mark.slow_cases("with replacement-remove", "with replacement-add")
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_cgf_vanishes_at_both_ends(named, direction):
    law = SumLaw([(loss_law(named, direction), 1)])
    assert abs(law.cgf(0.0)) < 1e-15
    assert abs(law.cgf(-1.0)) < 4e-15


def test_directions_are_mirror_images(named):
    """L in the add direction is −L of the remove direction under Q: K_add(t) = K_remove(−1 − t)."""
    remove = SumLaw([(loss_law(named, "remove"), 1)])
    add = SumLaw([(loss_law(named, "add"), 1)])
    for t in (-0.9, -0.5, -0.125):
        assert add.cgf(t) == pytest.approx(remove.cgf(-1.0 - t), rel=1e-13, abs=1e-15)


def test_cgf_at_zero_leaves_out_what_is_infinite():
    lost = mechanisms.approximate_dp(epsilon_0="1/10", delta_0="1/1000")
    law = SumLaw([(loss_law(lost, "remove"), 3)])
    assert law.cgf(0.0) == pytest.approx(3 * math.log(0.999), rel=1e-14)
    assert law.cgf(0.0) == pytest.approx(law.cgf(1e-13), abs=1e-12)


@pytest.mark.parametrize("scale", ["2/5", "7/2"])
def test_a_geometric_tail_has_the_mass_of_its_terms(scale):
    pair = mechanisms.discrete_laplace(b=scale).pair()
    masses = flat_masses(pieces(pair), pair.variable)
    assert len(masses) == 2
    for piece, mass in masses.items():
        log_p = sp.lambdify(pair.variable, piece.log_p, "mpmath")
        end, sign = (piece.upper, -1) if piece.lower.is_infinite else (piece.lower, 1)
        with mpmath.workdps(40):
            terms = mpmath.fsum(mpmath.exp(log_p(int(end) + sign * j)) for j in range(400))
        assert float(mass.mid()) == pytest.approx(float(terms), rel=1e-15)
        assert float(mass.rad()) < 1e-30


def test_derivatives_agree_with_differences_of_the_cgf(named):
    """Cumulants are tilted moments; differencing K (Richardson twice) must give the same."""
    law = SumLaw([(loss_law(named, "remove"), 1)])
    first, second = law.cumulants(-0.4, 2)

    def slope(h):
        return (law.cgf(-0.4 + h) - law.cgf(-0.4 - h)) / (2 * h)

    coarse, middle, fine = slope(0.2), slope(0.1), slope(0.05)
    better, best = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    assert (16 * best - better) / 15 == pytest.approx(first, rel=1e-4, abs=1e-9)
    assert second >= 0


def test_convexity(named):
    law = SumLaw([(loss_law(named, "remove"), 3)])
    grid = np.linspace(-0.99, -0.01, 15)
    values = np.asarray([law.cgf(t) for t in grid])
    assert (np.diff(values, 2) > -1e-15).all()


def test_characteristic_function_against_brute_force():
    """φ_t of the subsampled Gaussian against a fine mpmath trapezoid at 30 digits."""
    law = SumLaw([(loss_law(MECHANISMS["subsampled gaussian"], "remove"), 1)])
    with mpmath.workdps(30):
        sigma, q, h = mpmath.mpf(3) / 2, mpmath.mpf(1) / 100, mpmath.mpf(1) / 4
        places = [k * h for k in range(-80, 121)]
        losses = [mpmath.log(1 - q + q * mpmath.exp((2 * p - 1) / (2 * sigma**2))) for p in places]
        heights = [mpmath.exp(-(p**2) / (2 * sigma**2)) for p in places]
        scale = h / (sigma * mpmath.sqrt(2 * mpmath.pi))

        def log_moment(z):
            terms = (w * mpmath.exp((1 + z) * v) for w, v in zip(heights, losses, strict=True))
            return mpmath.log(scale * mpmath.fsum(terms))

        for t, y in ((0.5, 3.0), (4.0, 0.01), (10.0, 20.0)):
            expected = complex(log_moment(mpmath.mpc(t, y)) - log_moment(mpmath.mpf(t)))
            got = complex(law.cgf_line(t, np.asarray([y]))[0])
            turn = 2j * math.pi * round((got - expected).imag / (2 * math.pi))
            assert got - turn == pytest.approx(expected, rel=1e-12, abs=1e-14)
            assert law.cgf(t) == pytest.approx(float(log_moment(mpmath.mpf(t)).real), rel=2e-14)


def test_domain_of_two_variances():
    """Variances 9/4 and 1: M(t) = ∫P^{1+t}Q^{−t} is finite for t < 4/5 only."""
    law = loss_law(MECHANISMS["two variances"], "remove")
    assert law.domain[1] == pytest.approx(0.8, rel=1e-9)
    assert law.domain[0] == -math.inf
    with pytest.raises(AccuracyError, match="finite"):
        law.tilted(0.81)


def test_domain_of_gumbel():
    """e^{tL} with L = 1/b − (e^{1/b} − 1)e^{−x/b} is integrable for t > −1 − 1/(e^{1/b} − 1)."""
    law = loss_law(MECHANISMS["gumbel"], "remove")
    assert law.domain[0] == pytest.approx(-1 - 1 / math.expm1(0.5), rel=1e-9)


def test_far_narrow_peak_is_seen():
    """A peak of width 1/1000 at 300 carries half the mass."""
    density = normal(0, 1) / 2 + normal(300, sp.Rational(1, 1000)) / 2
    law = loss_law(Mechanism.additive(density, x, sensitivity=sp.Rational(1, 10**4)), "remove")
    assert abs(law.base.weight.sum() - 1) < 1e-12


def test_mass_between_two_tilts_is_kept():
    """Between tilts 31 and 47 the mass jumps from the bulk to a far mode; nothing may be lost."""
    mechanism = mechanisms.gaussian(sigma=2).subsample("poisson", "1/100")
    law = SumLaw([(loss_law(mechanism, "remove"), 1)])
    places = np.arange(-60, 200, 0.25)
    losses = np.log1p(0.01 * np.expm1((2 * places - 1) / 8))
    for t in (31.0, 34.0, 35.25, 36.0, 40.0):
        exponent = -(places**2) / 8 + (1 + t) * losses
        expected = np.logaddexp.reduce(exponent) + math.log(0.25 / (2 * math.sqrt(2 * math.pi)))
        assert law.cgf(t) == pytest.approx(expected, rel=1e-12)


def test_rule_counts_stay_small():
    """Merging leaves a handful of panels for a smooth density, each halved once more."""
    law = loss_law(MECHANISMS["gaussian"], "remove")
    outline = Outline(law.step.pieces[0])
    assert build_rule(outline, {0.0: 0.0}, 0.0).x.size <= 16 * ORDER


def test_exponential_remainders_near_zero():
    tiny = np.asarray([1e-12, -3e-9, 0.2, -0.7, 5.0])
    with mpmath.workdps(40):
        expected = [float(mpmath.expm1(v) - mpmath.mpf(v)) for v in tiny.tolist()]
    np.testing.assert_allclose(exponential_remainder(tiny), expected, rtol=3e-16)


def test_oscillation_sum_near_zero():
    """Third-order imaginary parts survive: Σ w (sin x − x) for x about 1e-6."""
    weight, deviation = np.asarray([0.75, 0.25]), np.asarray([-1.0, 3.0])
    got = oscillation_sum(np.asarray([1e-6]), deviation, weight)[0]
    with mpmath.workdps(40):
        terms = [
            w * (mpmath.expj(mpmath.mpf(1e-6) * d) - 1 - 1j * mpmath.mpf(1e-6) * d)
            for w, d in zip(weight.tolist(), deviation.tolist(), strict=True)
        ]
        exact = mpmath.fsum(terms)
    assert got.real == pytest.approx(float(exact.real), rel=1e-14)
    assert got.imag == pytest.approx(float(exact.imag), rel=1e-14)


def test_fast_sum_against_direct_sum():
    rng = np.random.default_rng(5)
    weight, angle = rng.random(400) / 400, rng.uniform(-3, 3, 400)
    got = uniform_sum(weight, angle, 1000, 3000)
    k = np.arange(1000, 3000)
    direct = np.exp(1j * np.multiply.outer(k, angle)) @ weight
    assert np.abs(got - direct).max() < 1e-12


def test_mean_of_gaussian_and_laplace():
    """E L = 1/(2σ²), and for Laplace noise μ + e^{−μ} − 1 with μ = 1/b."""
    mean = loss_law(mechanisms.gaussian(sigma="3/7"), "remove").base.mean
    assert mean == pytest.approx(49 / 18, rel=4e-15)
    mean = loss_law(mechanisms.laplace(b=3), "remove").base.mean
    assert mean == pytest.approx(1 / 3 + math.expm1(-1 / 3), rel=4e-15)


def test_mean_to_the_ends_that_no_double_is():
    """E L = (1 − cos 1) I₁(1)/I₀(1) where half the circle is π: its double leaves out 1e-16."""
    mechanism = ALL["von mises"].mechanism("von mises")()
    mean = loss_law(mechanism, "remove").base.mean
    with mpmath.workdps(40):
        exact = (1 - mpmath.cos(1)) * mpmath.besseli(1, 1) / mpmath.besseli(0, 1)
    assert mean == pytest.approx(float(exact), rel=4e-15)


@pytest.mark.slow
def test_a_tail_that_ends_beyond_the_root_of_the_largest_double():
    """Under c x^(c−1) (1 + x^c)⁻² the logarithm of 1 + x^c has mean 1, and L is half of it."""
    mechanism = ALL["burr"].mechanism("burr")(c="3/2", a="3/2", b=1)
    mean = loss_law(mechanism, "add").base.mean
    assert mean == pytest.approx(0.5 - math.log(1.5), rel=1e-12)


@pytest.mark.parametrize("tilt", [20.0, 60.0, 84.0, 90.0])
def test_a_small_cgf_is_accurate_relative_to_itself(tilt):
    """Also where e^{t(L − μ)} overflows at nodes that P hardly reaches."""
    mechanism = mechanisms.gaussian(sigma=3).subsample("poisson", "1/1000")
    law = loss_law(mechanism, "remove")
    ball = cgf_ball(mechanism.pair("remove"), sp.Rational(tilt), 34).real
    with mpmath.workdps(40):
        exact = mpmath.mpf(ball.mid().str(34, radius=False)) - tilt * mpmath.mpf(law.base.mean)
        assert law.tilted(tilt).excess == pytest.approx(float(exact), rel=2e-15)


def test_a_law_whose_other_density_falls_doubly_exponentially_keeps_its_mass() -> None:
    # Logistic against Gumbel: log P is the difference of two numbers of 1e20 far out on the left.
    x = sp.Symbol("x", real=True)
    gumbel, logistic = sp.exp(-x - sp.exp(-x)), sp.exp(-x) / (1 + sp.exp(-x)) ** 2
    one = compose(Mechanism.from_pair(gumbel, logistic, x, (-sp.oo, sp.oo)), 1)
    odds = optimize.brentq(lambda u: u - 2 * math.log1p(u) - 0.7, 2, 20)  # e^−x at loss 0.7
    expected = 1 / (1 + odds) - math.exp(0.7 - odds)
    assert one.delta(0.7, direction="add").upper == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_a_limit_that_is_neared_slowly_is_not_taken_for_known():
    """ℓ = −1/√log(e + x²) nears its limit so slowly that no place of a double tells it."""
    pair = Mechanism.from_toml(
        'name = "slow"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[pair]\nnormalize = true\n'
        'P = "exp(-1/sqrt(log(exp(1) + x**2)))/(1 + x**2)"\nQ = "1/(1 + x**2)"\n'
    )
    _, highest = loss_law(pair, "remove").loss_bounds
    assert highest > 0.79208  # −log ∫ P/π, by mpmath


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "q"),
    [
        ("1/((10*x/37 - 2/37)**2 + 1)", "1/cosh(x/2 - 3/4)"),
        (
            "exp(-(10*x/23 + 33/23)**2/2)",
            "exp(-Abs(5*x/26 + 1/13)) + 1/(1000*((5*x/21)**2 + 1)**3)",
        ),
        ("exp(-(5*x/21 + 13/21)**2/2)", "log((x + 27/10)**2 + 2)/((x + 27/10)**2 + 1)**2"),
    ],
)
def test_a_range_holds_turns_however_large_losses_are_far_out(p, q):
    """Between places where |ℓ| is 10²² or more the loss turns once, which rounding hid."""
    pair = Mechanism.from_toml(
        'name = "far"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[pair]\nnormalize = true\n'
        f'P = "{p}"\nQ = "{q}"\n'
    )
    x = sp.Symbol("x")
    first, second = (sp.lambdify(x, sp.sympify(text), "mpmath") for text in (p, q))
    ends = [-mpmath.inf, *range(-20, 21, 4), mpmath.inf]
    ratio = mpmath.log(mpmath.quad(second, ends) / mpmath.quad(first, ends))
    losses = [mpmath.log(first(k / 64) / second(k / 64)) + ratio for k in range(-1280, 1281)]
    low, high = loss_law(pair, "remove").loss_bounds
    assert low < min(losses)
    assert max(losses) < high


@pytest.mark.parametrize(
    ("density", "log_density"),
    [
        (
            sp.exp(-sp.sqrt(1 + x**2 / 9)) * (2 + sp.tanh(x / 3)),
            lambda v: -np.sqrt(1 + v * v / 9) + np.log(2 + np.tanh(v / 3)),
        ),
        (
            sp.exp(-sp.sqrt(4 + x**2) / 2) * (3 + sp.cos(x) / (1 + x**2)),
            lambda v: -np.sqrt(4 + v * v) / 2 + np.log(3 + np.cos(v) / (1 + v * v)),
        ),
        (1 / sp.cosh(x / 3) / (1 + sp.exp(-(x**2))), lambda v: -_log_cosh_and_bump(v)),
    ],
)
def test_a_range_holds_no_rounding_of_the_far_tails(density, log_density):
    """At |x| of 10¹⁵ log P and log Q are that large, and their difference in doubles is noise."""
    law = loss_law(Mechanism.additive(density, x, normalize=True), "remove")
    v = np.linspace(-100.0, 101.0, 2_010_001)
    losses = log_density(v - 1) - log_density(v)
    low, high = law.loss_bounds
    assert losses.min() - 1e-3 < low <= losses.min() + 1e-13
    assert losses.max() - 1e-13 <= high < losses.max() + 1e-3


def _log_cosh_and_bump(v):
    return np.abs(v / 3) + np.log1p(np.exp(-np.abs(v) * 2 / 3)) + np.log1p(np.exp(-v * v))


def test_a_loss_that_goes_up_and_down_for_ever_has_a_range():
    """Of e^{−x}(1 + cos(3x)/2) moved by s, ℓ is s and at most √3·s in waves, for small s."""
    noise = Mechanism.additive(
        sp.exp(-x) * (1 + sp.cos(3 * x) / 2),
        x,
        sensitivity=sp.Rational(1, 2000),
        support=(0, sp.oo),
        normalize=True,
        shift="exactly",
    )
    low, high = loss_law(noise, "remove").loss_bounds
    s = 1 / 2000
    crest = math.sqrt(3) * s
    assert s - 2 * crest < low < s - crest * (1 - 1e-5)
    assert s + crest * (1 - 1e-5) < high < s + 2 * crest
