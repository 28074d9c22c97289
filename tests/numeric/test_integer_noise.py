"""Mass functions on the integers that balls over wide ranges do not follow: Bessel and binomial."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from catalogue import ALL
from flint import acb, arb, ctx

from symdp import compose, mechanisms
from symdp.density.pieces import pieces
from symdp.derive.limits import limit_at
from symdp.emit import compile_arb, compile_numpy
from symdp.emit.arb import log_bessel_i_ball
from symdp.numeric.cut_off import best_tilt
from symdp.numeric.laws.of_mechanism import loss_law
from symdp.numeric.saddle_point import Strip, saddle_point
from symdp.prove.enclosure import enclose_delta

k = sp.Symbol("k", integer=True)
SKELLAM = ALL["skellam"].mechanism("skellam")()
NEGATIVE_BINOMIAL = ALL["negative binomial"].mechanism("counts")(a="7/10", c="1/2")


def skellam(shift):
    """Return the masses of the difference of two Poisson counts of mean 1, shifted."""
    return {j: mpmath.exp(-2) * mpmath.besseli(abs(j - shift), 2) for j in range(-45, 46)}


def counts(rate):
    """Return the masses of the failures before the fifth success."""
    rate = mpmath.mpf(rate)
    return {j: mpmath.binomial(j + 4, 4) * (1 - rate) ** 5 * rate**j for j in range(400)}


def by_sums(p, q, count, epsilon):
    """Return δ over all tuples of outcomes."""
    loss = {j: mpmath.log(p[j] / q[j]) for j in p}
    total = mpmath.mpf(0)
    for chosen in itertools.product(p, repeat=count):
        gap = epsilon - sum(loss[j] for j in chosen)
        if gap < 0:
            total += mpmath.fprod(p[j] for j in chosen) * -mpmath.expm1(gap)
    return mpmath.log(total)


@pytest.mark.quick_cases("mechanism2-p2-q2-1-4.5")
@pytest.mark.parametrize(
    ("mechanism", "p", "q", "count", "epsilon"),
    [
        (SKELLAM, (skellam, 1), (skellam, 0), 1, 1.3),
        (SKELLAM, (skellam, 1), (skellam, 0), 2, 2.1),
        (NEGATIVE_BINOMIAL, (counts, "0.7"), (counts, "0.5"), 1, 4.5),
    ],
)
def test_the_accountant_and_the_proof_agree_with_all_sums(mechanism, p, q, count, epsilon):
    with mpmath.workdps(30):
        masses = [law(at) for law, at in (p, q)]
        truth = by_sums(*masses, count, mpmath.mpf(epsilon))
        answer = compose(mechanism, count).delta(epsilon, direction="remove")
        assert answer.log_lower <= truth <= answer.log_upper
        assert answer.log_upper - answer.log_lower < 1e-11
        ball = enclose_delta([(mechanism.pair("remove"), count)], epsilon, 12)
        assert ball.log().overlaps(arb(mpmath.nstr(truth, 20)))


@pytest.mark.slow
def test_many_steps_of_skellam_noise():
    """Close to a Gaussian: the bounds of the contour and of the Berry–Esseen kind overlap."""
    law = compose(SKELLAM, 10_000).law("remove")
    mean, variance = (float(c) for c in law.cumulants(0.0, 2))
    answer = compose(SKELLAM, 10_000).delta(mean + math.sqrt(variance), direction="remove")
    assert answer.log_upper - answer.log_lower < 1e-7  # off every lattice
    other = compose(SKELLAM, 10_000).delta(
        mean + math.sqrt(variance), direction="remove", method="spa-bounds"
    )
    assert other.log_lower <= answer.log_lower
    assert answer.log_upper <= other.log_upper


def test_the_loss_of_sampled_skellam_noise_has_no_top():
    """Far out P/Q grows like k: nothing beyond the last double that was seen may count as 0."""
    law = loss_law(SKELLAM.subsample("poisson", "1/100"), "remove")
    assert law.loss_bounds[1] == math.inf
    assert law.loss_bounds[0] == pytest.approx(math.log(0.99), rel=0.01)
    delta = compose(SKELLAM.subsample("poisson", "1/100"), 1).delta(1.5, direction="remove")
    with mpmath.workdps(30):
        truth = mpmath.mpf(0)
        for j in range(300, 700):
            base, moved = (mpmath.exp(-2) * mpmath.besseli(j - s, 2) for s in (0, 1))
            mixed = 99 * base / 100 + moved / 100
            gain = mixed - mpmath.exp(mpmath.mpf("1.5")) * base
            truth += max(gain, mpmath.mpf(0))
        assert delta.log_delta == pytest.approx(float(mpmath.log(truth)), rel=1e-12)


@pytest.mark.parametrize(("end", "value"), [(sp.oo, sp.oo), (-sp.oo, sp.log(sp.Rational(1, 2)))])
def test_limits_of_bessel_ratios(end, value):
    ratio = sp.besseli(k - 1, 2) / sp.besseli(k, 2)
    assert limit_at(sp.log(sp.Rational(1, 2) + ratio / 2), k, end, end is sp.oo) == value


def test_quotients_of_gamma_functions_are_polynomials():
    (piece,) = pieces(NEGATIVE_BINOMIAL.pair("remove"))
    assert not piece.log_q.has(sp.gamma, sp.binomial, sp.loggamma)


@pytest.mark.parametrize("x", [0.5, 2.0, 40.0])
def test_logarithm_of_a_bessel_function_of_any_order(x):
    order = sp.Symbol("n", integer=True)
    fast = compile_numpy(sp.log(sp.besseli(order, sp.Float(x, 30))), [order])
    ball = compile_arb(sp.log(sp.besseli(order, sp.Rational(x))), [order])
    for n in (0, 3, -7, 120, 170, 400, -5000):
        with mpmath.workdps(40):
            truth = mpmath.log(mpmath.besseli(abs(n), mpmath.mpf(x)))
        assert float(fast(np.asarray([float(n)]))[0]) == pytest.approx(float(truth), rel=1e-13)
        assert ball(arb(n)).overlaps(arb(mpmath.nstr(truth, 30)))


def test_balls_of_orders_hold_every_order():
    for low, high in ((1, 3), (10, 11), (50, 400)):
        wide = log_bessel_i_ball(acb(arb(low).union(arb(high))), acb(2))
        for n in (low, (low + high) // 2, high):
            assert wide.real.contains(acb(2).bessel_i(acb(n)).log().real)
    assert log_bessel_i_ball(acb(arb(-2).union(arb(3))), acb(2)) is None


def main_lobe(law, epsilon, tilt):
    """Return log δ by the trapezoidal rule next to the real axis, in fifty digits."""
    step = law.parts[0][0].step
    with mpmath.workdps(50), ctx.workprec(170):
        balls = list(step.point_balls)
        for piece in step.pieces:
            for k in range(-100, 101):
                log_p, loss = piece.ball(arb(k))
                balls.append((log_p.exp(), loss))
        atoms = [tuple(mpmath.mpf(b.mid().str(50, radius=False)) for b in pair) for pair in balls]
        spread = mpmath.sqrt(float(law.cumulants(0.0, 2)[1]))
        h, place = 1 / (8 * spread), mpmath.mpf(epsilon)

        def term(k):
            z = tilt + 1j * h * k
            moment = mpmath.fsum(p * mpmath.exp(z * loss) for p, loss in atoms)
            return mpmath.re(mpmath.exp(law.count * mpmath.log(moment) - place * z) / (z * (1 + z)))

        total = term(0) + 2 * mpmath.fsum(term(k) for k in range(1, 100))
        return float(mpmath.log(h * total / (2 * mpmath.pi)))


@pytest.mark.slow
@pytest.mark.parametrize("deviations", [1.0, 5.0])
def test_sampled_integer_noise_of_very_many_steps(deviations):
    """What recurs is small: its rounding counts, next to the axis only that of the spread."""
    step = mechanisms.discrete_gaussian(sigma=2).subsample("poisson", "1/100")
    composition = compose(step, 10**8)
    law = composition.law("remove")
    mean, variance = (float(value) for value in law.cumulants(0.0, 2))
    spread = math.sqrt(variance)
    epsilon = mean + deviations * spread
    answer = composition.delta(epsilon, direction="remove")
    assert answer.log_upper - answer.log_lower < 1e-6
    truth = main_lobe(law, epsilon, (deviations + 0.5) / spread)
    assert answer.log_lower < truth < answer.log_upper


def test_a_tilt_is_chosen_where_the_sum_cancels_wholly():
    """The sum along a line cancels wholly at some tilts; those tell nothing of the answer."""
    sampled = mechanisms.discrete_gaussian(sigma=3).subsample("poisson", "1/1000")
    law, epsilon = compose(sampled, 20).law("remove"), 0.030663080980235034
    saddle = saddle_point(law, epsilon, Strip.RIGHT)
    assert saddle is not None
    assert 0 < best_tilt(law, epsilon, saddle.tilt)[0] <= saddle.tilt


SAMPLED_SKELLAM = SKELLAM.subsample("poisson", "1/100")


@pytest.mark.slow
def test_many_sampled_counts_are_certified():
    steps = compose(SAMPLED_SKELLAM, 10**4)
    proved = steps.certify(1.2, digits=6, direction="remove")
    found = steps.delta(1.2, direction="remove")
    assert proved.log_upper - proved.log_lower < 1e-6  # no lattice: proved on a mesh
    assert found.log_lower <= proved.log_upper
    assert proved.log_lower <= found.log_upper
