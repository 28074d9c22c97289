"""Sums over integers with a power's tail, against zeta functions and sums that share no code."""

import math

import mpmath
import numpy as np
import pytest

import symdp
from symdp.errors import AccuracyError
from symdp.numeric.integers import integer_rule, stretch_rule


def _noise(density: str) -> symdp.Mechanism:
    text = f"""
name = "heavy"
variable = "k"
support = "integers"
[noise]
density = "{density}"
normalize = true
sensitivity = 1
"""
    return symdp.Mechanism.from_toml(text)


@pytest.mark.parametrize(("first", "last"), [(512, 1023), (600, 1300), (2**20, 2**21 - 1)])
@pytest.mark.parametrize("power", ["1.5", "3", "7"])
def test_a_rule_of_few_integers_sums_an_octave_of_a_power(first, last, power):
    places, weights = stretch_rule(np.asarray([float(first)]), np.asarray([float(last)]))
    assert (places == np.round(places)).all()
    assert (weights > 0).all()
    with mpmath.workdps(40):
        s = mpmath.mpf(power)
        truth = mpmath.zeta(s, first + 3) - mpmath.zeta(s, last + 4)
        found = mpmath.fsum(
            mpmath.mpf(weight) / (mpmath.mpf(place) + 3) ** s
            for place, weight in zip(places[0].tolist(), weights[0].tolist(), strict=True)
        )
        assert abs(found / truth - 1) < 1e-13  # weights are rounded, the first ones count most


# Σ 1/(9 + k²)² is the derivative by a² of −π coth(πa)/a at a = 3, and Σ log n/n³ is −ζ′(3).
_SQUARES = (
    mpmath.pi / 54 / mpmath.tanh(3 * mpmath.pi) + (mpmath.pi / mpmath.sinh(3 * mpmath.pi)) ** 2 / 18
)
_LOGS = -2 * mpmath.zeta(3, derivative=1) - mpmath.log(2) / 8


def _one_step(weight, mass, epsilon, last=200_000):
    """δ(ε) of one step of weights of |k|, shifted by one, from its definition."""
    total = mpmath.mpf(0)
    for k in range(last):  # losses are positive on one side alone
        gain = weight(k) - mpmath.exp(epsilon) * weight(k + 1)
        if gain <= 0 and k > 100:
            break
        total += max(gain, mpmath.mpf(0))
    return total / mass


@pytest.mark.slow_cases(
    "0.5-1/(9 + k**2)**2-<lambda>-mass1",
    "0.5-(1 + abs(k))**(-5/2)-<lambda>-mass2",
    "0.5-log(2 + abs(k))/(2 + abs(k))**3-<lambda>-mass3",
    "0.5-1/(1 + k**2)-<lambda>-mass0",
)
@pytest.mark.parametrize(
    ("density", "weight", "mass"),
    [
        (
            "1/(1 + k**2)",
            lambda k: 1 / (1 + mpmath.mpf(k) ** 2),
            mpmath.pi / mpmath.tanh(mpmath.pi),
        ),
        ("1/(9 + k**2)**2", lambda k: 1 / (9 + mpmath.mpf(k) ** 2) ** 2, _SQUARES),
        (
            "(1 + abs(k))**(-5/2)",
            lambda k: 1 / (1 + mpmath.mpf(k)) ** 2.5,
            2 * mpmath.zeta(2.5) - 1,
        ),
        (
            "log(2 + abs(k))/(2 + abs(k))**3",
            lambda k: mpmath.log(2 + k) / (2 + mpmath.mpf(k)) ** 3,
            _LOGS,
        ),
    ],
)
@pytest.mark.parametrize("epsilon", [0.5, 0.01])
def test_one_step_of_a_heavy_tail_is_its_sum(density, weight, mass, epsilon):
    answer = symdp.compose(_noise(density), 1).delta(epsilon)
    truth = _one_step(weight, mass, mpmath.mpf(epsilon))
    assert answer.lower <= truth <= answer.upper
    assert answer.upper - answer.lower < 1e-10 * truth


def _two_steps(power: int, offset: int, epsilon: float, most: int) -> tuple[float, float]:
    """Bounds on δ(ε) of two steps, all integers up to `most` taken, the others bounded."""
    k = np.arange(-most, most + 1)
    weight = (offset + np.abs(k)) ** -float(power)
    mass = float(mpmath.zeta(power, offset) * 2 - mpmath.mpf(offset) ** -power)
    p = weight / mass
    loss = power * (np.log(offset + np.abs(k + 1)) - np.log(offset + np.abs(k)))
    order = np.argsort(loss)
    loss, p = loss[order], p[order]
    above = np.append(np.cumsum(p[::-1])[::-1], 0.0)
    under = np.append(np.cumsum((p * np.exp(-loss))[::-1])[::-1], 0.0)
    first = np.searchsorted(loss, epsilon - loss, side="right")
    total = float(p @ (above[first] - np.exp(epsilon - loss) * under[first]))
    missing = 1.0 - float(p.sum())
    return total, total + 2.0 * missing


@pytest.mark.slow
def test_two_steps_agree_with_all_pairs_of_integers():
    answer = symdp.compose(_noise("1/(2 + abs(k))**4"), 2).delta(1)
    low, high = _two_steps(4, 2, 1.0, 100_000)
    assert high - low < 1e-12
    assert low * (1 - 1e-11) <= answer.upper
    assert answer.lower <= high * (1 + 1e-11)
    assert answer.upper - answer.lower < 1e-8 * low


@pytest.mark.slow_cases("4-0.7199559")
@pytest.mark.parametrize(("power", "delta"), [(3, 0.4011422), (4, 0.7199559)])
def test_ten_steps_of_zeta_like_noise(power, delta):
    # from a dominating lattice and an FFT of another program
    value = symdp.compose(_noise(f"1/(3 + abs(k))**{power}"), 10).delta(2).delta
    assert value == pytest.approx(delta, rel=2e-7)


@pytest.mark.slow
def test_epsilon_of_a_heavy_tail_is_inverse_to_delta():
    composition = symdp.compose(_noise("1/(1 + k**2)").subsample("poisson", "1/10"), 20)
    epsilon = composition.epsilon(1e-5).epsilon
    assert composition.delta(epsilon).delta == pytest.approx(1e-5, rel=1e-6)


class _Alternating:
    """Masses of 1/k³, every other one twice as large, with a loss that alternates."""

    lower, upper, flat, integer, off = 1.0, math.inf, False, True, None

    def values(self, x):
        log_p = -3.0 * np.log(x) + math.log(2.0) * (x % 2)
        loss = 0.1 * (x % 2)
        return log_p, log_p - loss, loss

    def accurate(self, x):
        log_p, _, loss = self.values(x)
        return log_p, loss, 1.0


def test_masses_that_alternate_are_summed_one_by_one_where_that_matters():
    nodes = integer_rule(_Alternating(), {0.0: math.log(2.25)})
    mass = np.exp(nodes.log_weight)
    odd = 2 * 0.875 * float(mpmath.zeta(3))
    assert mass.sum() == pytest.approx(odd + 0.125 * float(mpmath.zeta(3)), rel=1e-14)
    assert mass @ nodes.loss == pytest.approx(0.1 * odd, rel=1e-14)
    assert nodes.loss.size > 100_000


class _Random(_Alternating):
    """Masses of k^(−3/2) that are twice as large at random."""

    def values(self, x):
        odd = np.floor(np.mod(x * 0.6180339887498949, 1.0) + 0.5)
        log_p = -1.5 * np.log(x) + math.log(2.0) * odd
        return log_p, log_p - 0.1 * odd, 0.1 * odd


def test_masses_without_an_order_are_refused():
    with pytest.raises(AccuracyError, match="spreads over"):
        integer_rule(_Random(), {0.0: math.log(4.0)})
