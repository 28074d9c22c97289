"""Next to the largest loss of noise with a density, and steps whose loss is one value."""

from __future__ import annotations

import math

import mpmath
import pytest
import sympy as sp

from symdp import Mechanism, compose, mechanisms
from symdp.numeric.contour import on_own_lines
from symdp.numeric.cut_off import mesh_answer


def laplace_profile(count: int, b: mpmath.mpf, below: mpmath.mpf) -> mpmath.mpf:
    """Return δ where ε lies `below` the largest loss n/b of n Laplace steps.

    A loss falls short of 1/b by 0 with probability 1/2, and by y up to 2/b with the density
    e^{−y/2}/4: k of them have the density y^{k−1} e^{−y/2}/((k−1)! 4^k) in all for y ≤ below ≤ 2/b.
    """
    total = mpmath.mpf(2) ** -count * -mpmath.expm1(-below)
    for k in range(1, count + 1):
        share = mpmath.binomial(count, k) * mpmath.mpf(2) ** (k - count) / mpmath.mpf(4) ** k
        term = mpmath.quad(
            lambda y, k=k: (
                y ** (k - 1)
                * mpmath.exp(-y / 2)
                / mpmath.factorial(k - 1)
                * -mpmath.expm1(y - below)
            ),
            [0, below],
        )
        total += share * term
        if share * term < total * mpmath.mpf(10) ** -25:
            break
    return total


@pytest.mark.parametrize("count", [2, 3, 10, 60])
@pytest.mark.parametrize("share", [2.0**-7, 1e-4, 1e-7, 1e-10, 3e-13])
def test_delta_next_to_the_largest_loss(count: int, share: float) -> None:
    steps = compose(mechanisms.laplace(b="3/2"), count)
    epsilon = count / 1.5 * (1 - share)
    answer = steps.delta(epsilon)
    with mpmath.workdps(40):
        b = mpmath.mpf(3) / 2
        truth = mpmath.log(laplace_profile(count, b, count / b - mpmath.mpf(epsilon)))
        assert answer.log_lower <= truth <= answer.log_upper
    assert answer.kind == "exact"
    assert answer.log_upper - answer.log_lower < 1e-14 + 1.2e-15 * abs(answer.log_delta)
    assert answer.route == "residues"


@pytest.mark.slow_cases("1e-06")
@pytest.mark.parametrize("delta", [1e-6, 1e-10, 1e-14])
def test_epsilon_next_to_the_largest_loss(delta: float) -> None:
    steps = compose(mechanisms.laplace(b="3/2"), 5)
    found = steps.epsilon(delta)
    with mpmath.workdps(40):
        b = mpmath.mpf(3) / 2
        below = mpmath.findroot(
            lambda u: mpmath.log(laplace_profile(5, b, mpmath.exp(u)) / mpmath.mpf(delta)),
            mpmath.log(32 * mpmath.mpf(delta)),
        )
        truth = 5 / b - mpmath.exp(below)
        assert found.epsilon_lower <= truth <= found.epsilon_upper
    assert found.epsilon_upper - found.epsilon_lower < 1e-13 * found.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("share", [1e-3, 1e-5])
def test_several_steps_next_to_their_largest_loss_agree_with_a_mesh(share: float) -> None:
    steps = compose([(mechanisms.laplace(b="3/2"), 2), (mechanisms.laplace(b=3), 3)])
    law = steps.law("remove")
    epsilon = law.loss_bounds[1] * (1 - share)
    assert law.few_fall_short(epsilon)
    answer, other = steps.delta(epsilon), mesh_answer(law, epsilon)
    assert answer.route == "residues"
    assert answer.log_lower <= other.log_upper
    assert other.log_lower <= answer.log_upper


def test_what_was_kept_next_to_the_largest_loss_answers_nothing_farther_off() -> None:
    first, second = (compose(mechanisms.laplace(b="3/2"), 3) for _ in range(2))
    first.delta(2.0 * (1 - 1e-9))
    for share in (1e-6, 1e-2, 0.3, 1e-9):
        epsilon = 2.0 * (1 - share)
        one, other = first.delta(epsilon), second.delta(epsilon)
        assert one.log_delta == pytest.approx(other.log_delta, rel=1e-12)
        assert other.log_lower <= one.log_delta <= other.log_upper


@pytest.mark.slow
def test_a_step_whose_finite_loss_is_one_value_moves_the_others() -> None:
    """With probability q both uniform outputs say nothing, otherwise they say all."""
    x = sp.Symbol("x", real=True)
    half = sp.Rational(1, 2)
    cosine = Mechanism.additive(sp.cos(sp.pi * x / 2) ** 2, x, half, (-1, 1))
    uniform = Mechanism.additive(sp.Rational(1, 8), x, half, (-4, 4))
    mixed = compose([(cosine, 1), (uniform, 2)])
    assert not mixed.law("remove").is_mixed
    for epsilon in (0.5, 1.5):
        alone = compose(cosine, 1).delta(epsilon)  # one step, from the definition
        answer = mixed.delta(epsilon)
        assert alone.route == "single"
        truth = 1 - (7.5 / 8) ** 2 * (1 - alone.delta)
        assert answer.delta == pytest.approx(truth, rel=1e-12)
        assert answer.lower <= truth * (1 + 1e-14)
        assert truth * (1 - 1e-14) <= answer.upper
    assert math.isclose(
        mixed.law("remove").mass_at_infinity,
        1 - (7.5 / 8) ** 2 * (1 - compose(cosine, 1).law("remove").mass_at_infinity),
        rel_tol=1e-13,
    )
    own, assured = on_own_lines(mixed.law("remove"), 1.5)
    assert assured
    assert own.kind == "exact"


@pytest.mark.parametrize("off", [0.0, -1.1e-16, -1e-14])
def test_at_a_largest_loss_that_no_output_has(off):
    """Twenty losses that rise to 1/20 far out: nothing exceeds ε = 1, however it is rounded."""
    x = sp.Symbol("x", real=True)
    noise = x**3 * sp.exp(-x / 20) / (6 * 20**4)
    law = Mechanism.additive(noise, x, support=(0, sp.oo), shift="exactly", name="gamma")
    answer = compose(law, 20).delta(1.0 + off, direction="remove")
    assert answer.kind == "exact"
    assert answer.lower == 0.0
    assert abs(off) <= answer.upper <= 2e-14


def half_powers(count, below, terms=24):
    """Return δ of sech noise, f(x) = 1/(2π cosh(x/2)), where ε lies `below` count/2.

    With c = e, u = e^{−x} and e^y = (1 + cu)/(1 + u) the loss falls short of 1/2 by y, and
    P(Y ≤ y) = (2/π) arctan √(cu): a power series in √y, whose transform has Γ(k/2 + 1) s^{−k/2}.
    """

    def shares(root):
        over = mpmath.expm1(root**2) / root**2 if root else mpmath.mpf(1)
        tangent = mpmath.sqrt(mpmath.e * over / (mpmath.e - mpmath.exp(root**2))) * root
        return 2 / mpmath.pi * mpmath.atan(tangent)

    def gamma(k):
        return mpmath.gamma(k / mpmath.mpf(2) + 1)

    series = [a * gamma(k) for k, a in enumerate(mpmath.taylor(shares, 0, terms))][1:]
    power = [mpmath.mpf(1)] + [mpmath.mpf(0)] * (terms - 1)
    for _ in range(count):
        power = [mpmath.fsum(power[i] * series[k - i] for i in range(k + 1)) for k in range(terms)]
    return mpmath.fsum(
        g * (-1) ** (j + 1) * below ** (j + mpmath.mpf(count + k) / 2) / gamma(2 * j + count + k)
        for k, g in enumerate(power)
        for j in range(1, 24)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("distance", "width"),
    [(2.0**-7, 1e-11), (2.0**-20, 1e-6), (3e-10, 1e-4), (3e-13, math.inf)],
    ids=["near", "nearer", "next", "doubles"],
)
@pytest.mark.parametrize("count", [2, 5, 20])
def test_next_to_the_largest_loss_of_what_is_no_residue_sum(count, distance, width):
    """How narrow it is hangs on how far doubles tell losses from the largest one; never wrong."""
    x = sp.Symbol("x", real=True)
    steps = compose(Mechanism.additive(1 / (2 * sp.pi * sp.cosh(x / 2)), x, name="sech"), count)
    epsilon = count / 2 - distance
    answer = steps.delta(epsilon, direction="remove")
    with mpmath.workdps(50):
        below = mpmath.mpf(count) / 2 - mpmath.mpf(epsilon)
        truth = mpmath.log(half_powers(count, below))
        assert answer.log_lower <= truth <= answer.log_upper
    assert answer.log_upper - answer.log_lower <= width
