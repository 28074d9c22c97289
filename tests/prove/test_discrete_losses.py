"""Losses that have atoms only, against all of them in rationals and binomials."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from catalogue import ALL
from flint import arb, ctx
from scipy.special import ive

from symdp import compose, mechanisms
from symdp.model.mechanism import Mechanism
from symdp.prove.enclosure import enclose_delta

x = sp.Symbol("x", real=True)
R = sp.Rational
RATE = R(1, 50)
HEIGHTS = [sp.exp(-k) for k in range(4)]


def staircase():
    """Noise that is flat on [−7/2, −5/2), …, [5/2, 7/2]."""
    branches = [(height, sp.Abs(x) < k + R(1, 2)) for k, height in enumerate(HEIGHTS)]
    mass = HEIGHTS[0] + 2 * sum(HEIGHTS[1:])
    return Mechanism.additive(sp.Piecewise(*branches, (0, True)) / mass, x, name="staircase")


def all_sums(masses, losses, count, epsilon):
    """Σ multinomial·(1 − e^{ε − s})⁺ over every sum s of losses, in 40 digits."""
    with mpmath.workdps(40):
        p = [mpmath.mpf(sp.N(mass, 40)) for mass in masses]
        values = [mpmath.mpf(sp.N(loss, 40)) for loss in losses]
        partial = [(count, mpmath.factorial(count), mpmath.mpf(0))]
        for mass, loss in zip(p[:-1], values[:-1], strict=True):
            partial = [
                (left - k, weight * mass**k / mpmath.factorial(k), total + k * loss)
                for left, weight, total in partial
                for k in range(left + 1)
            ]
        delta = mpmath.mpf(0)
        for left, weight, total in partial:
            loss = total + left * values[-1]
            if loss > epsilon:
                own = weight * p[-1] ** left / mpmath.factorial(left)
                delta += own * -mpmath.expm1(mpmath.mpf(epsilon) - loss)
        return mpmath.nstr(delta, 25)


def sampled_staircase():
    """Masses and losses of the sampled staircase, on the seven cells and the one beyond."""
    cells = [sp.exp(-abs(k)) for k in range(-3, 4)]
    q = [cell / sum(cells) for cell in [*cells, sp.S.Zero]]
    moved = [sp.S.Zero, *q[:-1]]
    p = [(1 - RATE) * a + RATE * b for a, b in zip(q, moved, strict=True)]
    merged: dict[sp.Expr, sp.Expr] = {}
    for a, b in zip(p, q, strict=True):
        if b != 0:
            loss = sp.simplify(sp.log(sp.nsimplify(sp.simplify(a / b))))
            merged[loss] = merged.get(loss, 0) + a
    return list(merged.values()), list(merged)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 17, 60])
def test_flat_pieces_are_atoms(count):
    masses, losses = sampled_staircase()
    pair = staircase().subsample("poisson", RATE).pair("remove")
    epsilon = R(1, 3)
    beyond = 1 - (1 - RATE / sp.exp(3) / (HEIGHTS[0] + 2 * sum(HEIGHTS[1:]))) ** count
    with ctx.workprec(120):
        found = enclose_delta([(pair, count)], 1 / 3, 15)
        truth = all_sums(masses, losses, count, epsilon)
        exact = arb(truth) + arb(str(sp.N(beyond, 25)))
        assert abs(found - exact) < arb(10) ** -15
    assert found.rad() < found * arb(10) ** -15


def test_two_atoms_on_a_half_line_are_a_lattice():
    rate, b, count, epsilon = R(1, 100), 20, 5_000, 2.0
    noise = ALL["exponential noise"].mechanism("one-sided")(b=b, D=1).subsample("poisson", rate)
    found = enclose_delta([(noise.pair("remove"), count)], epsilon, 15)
    with mpmath.workdps(40):
        q, turn = mpmath.mpf(1) / 100, mpmath.exp(mpmath.mpf(1) / b)
        # Beyond x = 1 the loss is log(1 − q + q e^{1/b}), before it log(1 − q).
        far = (1 - q) / turn + q
        high, low = mpmath.log(1 - q + q * turn), mpmath.log(1 - q)
        delta = mpmath.fsum(
            mpmath.binomial(count, k)
            * far**k
            * (1 - far) ** (count - k)
            * -mpmath.expm1(epsilon - k * high - (count - k) * low)
            for k in range(count + 1)
            if k * high + (count - k) * low > epsilon
        )
        assert abs(mpmath.mpf(found.str(25, radius=False)) / delta - 1) < 1e-14


def test_a_flat_piece_with_a_heavy_tail_is_an_atom():
    halves = sp.Piecewise((R(3, 2) / x**2, x < 2), (R(1, 2) / x**2, True))
    pair = Mechanism.from_pair(halves, x**-2, x, (1, sp.oo), name="flat tails").pair("remove")
    with ctx.workprec(100):
        found = enclose_delta([(pair, 20)], 2.0, 12)
        truth = all_sums([R(3, 4), R(1, 4)], [sp.log(R(3, 2)), sp.log(R(1, 2))], 20, 2)
        assert abs(found - arb(truth)) < arb(10) ** -12


@pytest.mark.slow_cases("500-0.8-6")
@pytest.mark.parametrize(("count", "epsilon", "digits"), [(60, 0.3, 12), (500, 0.8, 6)])
def test_many_steps_against_the_contour(count, epsilon, digits):
    """Residues while the sums are few, then the mesh."""
    response = ALL["randomised response of 4"].mechanism("response")(e=5)
    sampled = response.subsample("poisson", "1/100")
    answer = compose(sampled, count).delta(epsilon, direction="remove")
    found = enclose_delta([(sampled.pair("remove"), count)], epsilon, 12)
    assert found.lower() <= answer.upper
    assert found.upper() >= answer.lower
    assert found.rad() < found * arb(10) ** -digits


@pytest.mark.slow
def test_sampled_integer_noise_is_left_to_the_mesh():
    noise = mechanisms.discrete_laplace(b=3).subsample("poisson", "1/10")
    steps = compose([(noise, 400), (mechanisms.discrete_gaussian(sigma=2), 9)])
    proved = steps.certify(0.5, 15, "remove")
    answer = steps.delta(0.5, direction="remove")
    assert proved.digits >= 6
    assert answer.log_lower <= proved.log_upper
    assert proved.log_lower <= answer.log_upper


def test_integers_of_one_loss_are_one_atom_however_many():
    b, n, epsilon = 4000, 3, Fraction(1, 5000)
    ball = compose(mechanisms.discrete_laplace(b=b), n).certify(epsilon, digits=15)
    with mpmath.workdps(40):
        r = mpmath.exp(-mpmath.mpf(1) / b)
        truth = sum(
            mpmath.binomial(n, j) / (1 + r) ** n * r ** (n - j)
            * max(0, -mpmath.expm1(mpmath.mpf(1) / 5000 - mpmath.mpf(2 * j - n) / b))
            for j in range(n + 1)
        )  # fmt: skip
        assert ball.lower <= truth <= ball.upper
    assert ball.upper - ball.lower < 1e-14 * ball.upper


@pytest.mark.slow
def test_a_thousand_sampled_counts_are_proved():
    """Atoms off every lattice, against a convolution on a fine one by Fourier transforms."""
    sampled = ALL["skellam"].mechanism("skellam").subsample("poisson", "1/100")
    ball = enclose_delta([(sampled.pair("remove"), 1000)], 0.42, 10)
    # Each loss is split between two neighbours so that its mean stays: what is left falls like h²,
    # 6e-9 from h = 1.6e-5 to 8e-6.  The law of a step is summed until e^{−180}.
    k = np.arange(-60, 61)
    p, q = 0.99 * ive(abs(k), 2.0) + 0.01 * ive(abs(k - 1), 2.0), ive(abs(k), 2.0)
    spacing, size = 1.6e-5, 2**19
    places = np.log(p / q) / spacing
    low = np.floor(places).astype(int)
    step = np.bincount(low % size, p * (low + 1 - places), size)
    step += np.bincount((low + 1) % size, p * (places - low), size)
    total = np.fft.irfft(np.fft.rfft(step) ** 1000, size)
    losses = spacing * np.where(np.arange(size) > 0.75 * size, np.arange(size) - size, range(size))
    above = losses > 0.42
    truth = -float(total[above] @ np.expm1(0.42 - losses[above]))
    assert abs(float(ball.mid()) / truth - 1) < 3e-6  # of the truth
    assert ball.rel_accuracy_bits() > 19  # six digits, as off every lattice
