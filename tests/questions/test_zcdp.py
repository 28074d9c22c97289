"""The least ρ of zCDP against closed forms, and against own sums and quadratures of D_α."""

from __future__ import annotations

import math
import random

import mpmath
import pytest
import sympy as sp

from symdp import Mechanism, compose, mechanisms
from symdp.errors import AccuracyError
from symdp.questions.zcdp import zcdp

X = sp.Symbol("x", real=True)


@pytest.mark.parametrize("epsilon", [0.01, 1.3, 8.0])
def test_randomized_response(epsilon: float) -> None:
    """ρ is the mean loss ε₀ tanh(ε₀/2), the limit α → 1."""
    found = zcdp(compose(mechanisms.randomized_response(epsilon_0=epsilon), 3))
    truth = 3 * epsilon * math.tanh(epsilon / 2)
    assert found.lower <= truth * (1 + 1e-15)
    assert truth <= found.upper <= truth * (1 + 1e-11)
    assert (found.kind, found.order) == ("exact", 1.0)


@pytest.mark.slow_cases("10.0")
@pytest.mark.parametrize("b", [0.3, 1.0, 2.0, 10.0])
def test_laplace(b: float) -> None:
    found = zcdp(compose(mechanisms.laplace(b=b), 1))
    truth = float(1 / mpmath.mpf(b) + mpmath.exp(-1 / mpmath.mpf(b)) - 1)
    assert found.lower <= truth <= found.upper <= truth * (1 + 1e-11)


@pytest.mark.quick_cases("False")
@pytest.mark.parametrize("sampled", [False, True])
def test_noise_with_a_quadratic_logarithm(sampled: bool) -> None:
    """A Poisson sample has ρ of all records; discrete Gaussian noise has that of the line."""
    for step in (mechanisms.gaussian(sigma=2), mechanisms.discrete_gaussian(sigma=2)):
        asked = step.subsample("poisson", "1/100") if sampled else step
        found = zcdp(compose(asked, 3))
        assert found.lower == found.rho == found.upper == 0.375
        if sampled:  # below at all orders, and near it at large ones
            ratios = [compose(asked, 3).renyi(a) / a for a in (2.0, 100.0, 1e4, 1e7)]
            assert ratios == sorted(ratios)
            assert 0.374995 < ratios[-1] < 0.375


@pytest.mark.slow
def test_a_record_added_to_a_sample_is_not_the_limit() -> None:
    """P is the mixture's Q then: no loss exceeds −log(1 − q), and D_α/α → 0 as α → ∞."""
    steps = compose(mechanisms.gaussian(sigma=1).subsample("poisson", "1/10"), 1)
    found = zcdp(steps, "add")
    x = [mpmath.mpf(k) / 40 for k in range(-600, 641)]
    best = mpmath.mpf(0)
    for order in [1 + mpmath.mpf(2) ** k for k in range(-12, 8)]:
        total = mpmath.mpf(0)
        for place in x:
            plain, moved = mpmath.npdf(place), mpmath.npdf(place - 1)
            mixed = mpmath.mpf("0.9") * plain + mpmath.mpf("0.1") * moved
            total += plain**order * mixed ** (1 - order) / 40
        best = max(best, mpmath.log(total) / (order - 1) / order)
    assert found.direction == "add"
    assert found.rho == pytest.approx(float(best), rel=2e-3)
    assert found.rho >= float(best) * (1 - 1e-9)
    assert zcdp(steps).rho == 0.5


@pytest.mark.slow
def test_off_the_integers_the_theorem_is_not_used() -> None:
    """Half-way between integers the unshifted theta series is the least: D_1.5 lies above."""
    x = sp.Symbol("x", integer=True)
    density = sp.exp(-((x - sp.Rational(1, 2)) ** 2) / sp.Rational(1, 2))
    steps = compose(Mechanism.additive(density, x, 1, "integers", normalize=True), 1)
    assert steps.renyi(1.5) > 1.5 * 2.0
    assert steps.zcdp().rho > 2.0


def test_gaussian_beside_laplace() -> None:
    plain, laplace = mechanisms.gaussian(sigma=2), mechanisms.laplace(b=2)
    truth = 0.125 + 0.5 + math.exp(-0.5) - 1
    found = zcdp(compose([(plain, 1), (laplace, 1)]))
    assert found.lower <= truth <= found.upper <= truth * (1 + 1e-11)
    found = zcdp(compose([(plain.subsample("poisson", "1/9"), 1), (laplace, 1)]))
    assert found.kind == "bound"
    assert found.lower < truth - 1e-3 <= found.upper


@pytest.mark.slow
def test_a_largest_order_between_one_and_infinity() -> None:
    """Sampled Laplace noise: own quadrature of E_Q (P/Q)^α, own search over α."""
    q, b = mpmath.mpf(1) / 100, mpmath.mpf(2)

    def ratio(alpha: float) -> mpmath.mpf:
        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            noise = mpmath.exp(-abs(x) / b) / (2 * b)
            moved = mpmath.exp(-abs(x - 1) / b) / (2 * b)
            return noise * ((1 - q) + q * moved / noise) ** alpha

        total = mpmath.quad(integrand, [-mpmath.inf, 0, 1, mpmath.inf])
        return mpmath.log(total) / (alpha - 1) / alpha

    with mpmath.workdps(30):
        grid = [float(ratio(mpmath.mpf(100 + k))) for k in range(0, 30, 2)]
    found = zcdp(compose(mechanisms.laplace(b=2).subsample("poisson", "1/100"), 1))
    assert 110 < found.order < 115
    assert max(grid) <= found.upper <= max(grid) * (1 + 1e-4)
    assert found.upper - found.lower < 1e-11 * found.upper


def random_pair(seed: int) -> tuple[list[sp.Rational], list[sp.Rational]]:
    chance = random.Random(seed)
    count = chance.randint(2, 5)
    laws = []
    for _ in range(2):
        weights = [sp.Integer(1 + int(10 ** chance.uniform(0, 5))) for _ in range(count)]
        laws.append([weight / sum(weights) for weight in weights])
    return laws[0], laws[1]


@pytest.mark.quick_cases("10")
@pytest.mark.parametrize("seed", range(12))
def test_no_order_passes_the_bound(seed: int) -> None:
    """Own sums over a fine grid of orders, in both directions."""
    p, q = random_pair(seed)
    found = zcdp(compose(Mechanism.from_pair(p, q, X, {"points": list(range(len(p)))}), 1))
    with mpmath.workdps(40):
        best = mpmath.mpf(0)
        for one, other in ((p, q), (q, p)):
            both = zip(one, other, strict=True)
            pairs = [(mpmath.mpf(a.p) / a.q, mpmath.mpf(b.p) / b.q) for a, b in both]
            best = max(best, mpmath.fsum(a * mpmath.log(a / b) for a, b in pairs))
            for k in range(1, 1500):
                t = mpmath.mpf(1.02) ** (k - 1100)
                total = mpmath.fsum(a * (a / b) ** t for a, b in pairs)
                best = max(best, mpmath.log(total) / t / (1 + t))
    assert float(best) <= found.upper * (1 + 1e-13)
    assert found.lower <= float(best) * (1 + 1e-4)
    assert found.upper - found.lower < 1e-11 * found.upper


def additive(density: sp.Expr, support: object = (-sp.oo, sp.oo)) -> Mechanism:
    return Mechanism.additive(density, X, support=support, normalize=True)


def test_without_a_finite_value_the_reason_is_said() -> None:
    gone = zcdp(compose(additive(sp.exp(-X), (0, sp.oo)), 1))
    assert math.isinf(gone.rho)
    assert "never has" in gone.advice
    gumbel = zcdp(compose(mechanisms.gumbel(b=2), 1))
    assert math.isinf(gumbel.rho)
    assert "infinite from α = 2.5414" in gumbel.advice


@pytest.mark.slow
def test_a_rho_that_grows_beyond_what_was_seen_is_infinite() -> None:
    quartic = zcdp(compose(additive(sp.exp(-(X**4) / 16)), 1), "remove")
    assert math.isinf(quartic.rho)
    assert "grows" in quartic.advice


@pytest.mark.slow
def test_losses_without_an_end_are_an_estimate() -> None:
    found = zcdp(compose(additive(sp.exp(-(sp.Abs(X / 2) ** sp.Rational(3, 2)))), 1))
    assert found.kind == "estimate"
    assert found.upper is None
    assert "were not looked at" in found.advice
    assert str(found).startswith("ρ = 0.")


@pytest.mark.slow
@pytest.mark.parametrize(
    "density",
    [
        1 / (1 + X**4 / 16),  # heavy
        sp.exp(-sp.Abs(X) / 3) + 3 * sp.exp(-sp.Abs(X - 4) / 2),  # two modes
    ],
)
def test_a_heavy_tail_and_two_modes(density: sp.Expr) -> None:
    """Own quadrature of D_α on a grid of orders never passes the bound, and comes near."""
    steps = compose(additive(density).shifted("exactly"), 1)
    found = steps.zcdp("remove")
    f = sp.lambdify(X, density, "mpmath")
    cuts = [-mpmath.inf, -8, 0, 1, 4, 5, 9, mpmath.inf]
    with mpmath.workdps(20):
        mass = mpmath.quad(f, cuts)
        ratios = [
            mpmath.log(mpmath.quad(lambda x, a=a: f(x) * (f(x - 1) / f(x)) ** a, cuts) / mass)
            / (a - 1) / a
            for a in (1.001, 1.1, 1.5, 2, 3, 5, 9, 20)
        ]  # fmt: skip
    assert float(max(ratios)) <= found.upper * (1 + 1e-9)
    assert found.upper <= float(max(ratios)) * 1.01
    assert found.upper - found.lower < 1e-11 * found.upper


def test_json_has_no_infinity() -> None:
    assert zcdp(compose(mechanisms.gumbel(b=2), 1)).to_json()["rho"] is None
    told = zcdp(compose(mechanisms.gaussian(sigma=2), 1)).to_json()
    assert (told["rho"], told["kind"], told["count"]) == (0.125, "exact", 1)


def test_a_direction_is_named_as_elsewhere() -> None:
    """Of sampled skewed noise the larger sign is asked, and its side is no direction."""
    steps = compose(mechanisms.gumbel(b=2).subsample("poisson", "1/10"), 50)
    found = zcdp(steps, "add")
    assert found.direction == "add"
    assert found.rho >= steps.renyi(1.0, "add") * (1 - 1e-12)


def test_losses_that_are_not_resolved_are_no_infinite_divergence() -> None:
    """Random allocation is known but for 1e-29: it said that no finite ρ exists."""
    steps = compose(mechanisms.gaussian(sigma=2).subsample("random_allocation", steps=5), 1)
    for ask in (lambda: zcdp(steps), lambda: steps.renyi([2])):
        with pytest.raises(AccuracyError, match="are not resolved, as of random allocation"):
            ask()


@pytest.mark.slow
def test_a_pair_that_dominates_does_not_say_that_no_rho_exists() -> None:
    """Several modes: the bound for all shifts has infinite losses, the noise has none."""
    x = sp.Symbol("x", real=True)
    density = sp.exp(-sp.Abs(x) / 2) * (2 + sp.cos(x))
    noise = Mechanism.additive(density, x, sensitivity=1, normalize=True)
    assert str(zcdp(compose(noise, 1))).startswith(
        "no finite ρ is known, as the pair only dominates"
    )


def test_an_answer_in_one_direction_says_which_sign_of_skewed_noise_it_covers():
    steps = compose(mechanisms.gumbel(b=2), 3)
    assert "a record removed that raises" in steps.zcdp("remove").protection.sentence
    assert "this direction" not in steps.zcdp().protection.sentence
