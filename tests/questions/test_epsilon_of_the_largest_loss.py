"""ε at small δ where the largest loss has a probability of its own: next to it, never above it."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import pytest
import sympy as sp

from symdp import Mechanism, compose, mechanisms

DELTAS = [1e-3, 1e-6, 1e-10, 1e-13, 1e-15, 5e-17, 1e-18, 1e-20, 1e-50, 1e-300]
COUNTS = [1, 2, 5]
DIGITS = 60
x = sp.Symbol("x", real=True)
mpf = mpmath.mpf
Laws = tuple[mpmath.mpf, list[tuple[mpmath.mpf, mpmath.mpf]]]  # the top; (how far below it, P)


def listed(p: list[mpmath.mpf], q: list[mpmath.mpf]) -> Laws:
    """Return the losses of two lists of masses."""
    losses = [mpmath.log(a / b) for a, b in zip(p, q, strict=True)]
    return max(losses), [(max(losses) - loss, a) for loss, a in zip(losses, p, strict=True)]


def response(epsilon: mpmath.mpf, k: int) -> Laws:
    """Return the losses of k-ary randomised response: one answer is e^ε times as likely."""
    heavy, light = (mpmath.exp(e) / (mpmath.exp(epsilon) + k - 1) for e in (epsilon, 0))
    return listed([heavy, light] + [light] * (k - 2), [light, heavy] + [light] * (k - 2))


def staircase() -> Laws:
    """Return the losses of staircase noise of ε₀ = 1, γ = 1/3, moved by one.

    Its height falls by e at γ, 1 + γ, …; outputs above 1 − γ have the loss 1, outputs below γ have
    −1. Under P these are those of noise above −γ: one half and γ times the height at 0.
    """
    gamma, falls = mpf(1) / 3, mpmath.exp(-1)
    p = mpf(1) / 2 + gamma * (1 - falls) / (2 * (gamma + falls * (1 - gamma)))
    return mpf(1), [(mpf(0), p), (mpf(1), 1 - p - p * falls), (mpf(2), p * falls)]


def below_top(laws: Laws, count: int, delta: float) -> mpmath.mpf:
    """Return how far ε(δ) of n steps lies below n times the largest loss, by adding up all sums."""
    sums = {mpf(0): mpf(1)}
    for _ in range(count):
        following: dict[mpmath.mpf, mpmath.mpf] = {}
        for far, mass in sums.items():
            for more, share in laws[1]:
                following[far + more] = following.get(far + more, 0) + mass * share
        sums = following

    def profile(below: mpmath.mpf) -> mpmath.mpf:
        terms = (p * -mpmath.expm1(far - below) for far, p in sums.items() if far < below)
        return mpmath.fsum(terms)

    return met_at(profile, mpf(delta))


def met_at(profile: Callable[[mpmath.mpf], mpmath.mpf], delta: mpmath.mpf) -> mpmath.mpf:
    """Return where δ is met; as logarithms the profile is nearly a line."""
    height = lambda u: mpmath.log(profile(mpmath.exp(u)) / delta)  # noqa: E731
    ends = mpmath.log(delta) - 1, mpmath.log(delta) + 12
    return mpmath.exp(mpmath.findroot(height, ends, solver="anderson", tol=1e-45, verify=False))


def lists(ways: str) -> tuple[Mechanism, Laws]:
    """Return a mechanism whose losses are a few single values, and these."""
    sixth = mpf(1) / 6
    if ways == "list":
        p, q = (sp.sympify(v) for v in (["1/2", "1/3", "1/6"], ["1/3", "1/6", "1/2"]))
        made = Mechanism.from_pair(p, q, x, [0, 1, 2])
        return made, listed([3 * sixth, 2 * sixth, sixth], [2 * sixth, sixth, 3 * sixth])
    return {
        "randomised response": (
            mechanisms.randomized_response(epsilon_0=1),
            response(mpf(1), 2),
        ),
        "k-ary": (mechanisms.k_ary_randomized_response(epsilon_0=2, k=5), response(mpf(2), 5)),
        # Moved by one, integers from 1 on have one loss and all others the opposite one.
        "discrete laplace": (mechanisms.discrete_laplace(b=3), response(mpf(1) / 3, 2)),
        "staircase": (mechanisms.staircase(epsilon_0=1, gamma_0="1/3"), staircase()),
    }[ways]


def holds(steps, delta: float, top: mpmath.mpf, below: mpmath.mpf, kind: str = "exact") -> None:
    """The ends hold the truth, are as close as doubles allow, and none exceeds the largest loss."""
    found = steps.epsilon(delta, direction="remove")
    truth = top - below
    assert found.kind == kind
    assert mpf(found.epsilon_lower) <= truth <= mpf(found.epsilon_upper)
    assert mpf(found.epsilon_upper) <= top or found.epsilon_upper == next_up(top)
    assert found.epsilon_upper - found.epsilon_lower <= 2e-13 * found.epsilon


def next_up(value: mpmath.mpf) -> float:
    """Return the smallest double that is no smaller."""
    near = float(value)
    return near if mpf(near) >= value else math.nextafter(near, math.inf)


@pytest.mark.slow_cases("randomised response-1", "randomised response-2", "k-ary-1", "k-ary-5")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    "ways", ["randomised response", "k-ary", "discrete laplace", "staircase", "list"]
)
def test_single_values(ways: str, count: int) -> None:
    with mpmath.workdps(DIGITS):
        made, laws = lists(ways)
        for delta in DELTAS:
            holds(compose(made, count), delta, count * laws[0], below_top(laws, count, delta))


def laplace_profile(count: int, below: mpmath.mpf) -> mpmath.mpf:
    """Return δ where ε lies `below` the largest loss n/b of n Laplace steps, at most 2/b.

    A loss falls short of 1/b by 0 with probability ½, by y with the density e^{−y/2}/4: the sum of
    k of them has y^{k−1} e^{−y/2}/((k−1)! 4^k). Every integral is an incomplete gamma function.
    """
    total = mpf(2) ** -count * -mpmath.expm1(-below)
    for k in range(1, count + 1):
        plain = mpmath.gammainc(k, 0, below / 2) * mpf(2) ** k
        # ∫ y^{k−1} e^{y/2 − below} dy = e^{−below} below^k/k · ₁F₁(k; k+1; below/2)
        other = below**k / k * mpmath.hyp1f1(k, k + 1, below / 2) * mpmath.exp(-below)
        share = mpmath.binomial(count, k) * mpf(2) ** (k - count) / mpf(4) ** k
        total += share * (plain - other) / mpmath.factorial(k - 1)
    return total


@pytest.mark.slow_cases("permute and flip-1", "permute and flip-5", "laplace-5")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    "made",
    [mechanisms.laplace(b=1), mechanisms.permute_and_flip(epsilon_0=1)],
    ids=["laplace", "permute and flip"],
)
def test_laplace_noise(made: Mechanism, count: int) -> None:
    # Of several steps the pair of permute and flip is an envelope: it stands for many.
    kind = "bound" if made.name == "permute_and_flip" and count > 1 else "exact"
    with mpmath.workdps(400):  # the incomplete gamma functions cancel where little is below
        for delta in DELTAS:
            below = met_at(lambda far: laplace_profile(count, far), mpf(delta))
            holds(compose(made, count), delta, mpf(count), below, kind)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_sampled_laplace_noise(direction: str) -> None:
    """One step: δ_q(ε) = q δ(log(1 + (e^ε − 1)/q)), and δ(ε) = 1 − e^{(ε − 1)/2} for |ε| ≤ 1.

    In the other direction δ(Q, M)(ε) = 1 − e^ε + e^ε δ(M, Q)(−ε).
    """
    q = mpf(1) / 10
    steps = compose(mechanisms.laplace(b=1).subsample("poisson", "1/10"), 1)
    with mpmath.workdps(400):
        q = mpf(1) / 10

        def sampled(epsilon: mpmath.mpf) -> mpmath.mpf:
            base = mpmath.log(1 + (mpmath.exp(epsilon) - 1) / q)
            return q * -mpmath.expm1((base - 1) / 2)

        def other(epsilon: mpmath.mpf) -> mpmath.mpf:
            return -mpmath.expm1(epsilon) + mpmath.exp(epsilon) * sampled(-epsilon)

        profile = sampled if direction == "remove" else other
        largest = mpmath.log(1 - q + q * mpmath.exp(1))
        if direction == "add":
            largest = -mpmath.log(1 - q + q * mpmath.exp(-1))
        for delta in DELTAS[1:]:
            below = met_at(lambda far: profile(largest - far), mpf(delta))
            found = steps.epsilon(delta, direction=direction)
            assert mpf(found.epsilon_lower) <= largest - below <= mpf(found.epsilon_upper)
            assert found.epsilon_upper <= next_up(largest)
            assert found.epsilon_upper - found.epsilon_lower < 1e-13 * found.epsilon


@pytest.mark.quick_cases("renyi-2")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("method", ["moments", "renyi", "tilted-prv", "msd:2", "spa-bounds"])
def test_no_method_exceeds_the_largest_loss(method: str, count: int) -> None:
    for made in (mechanisms.laplace(b=1), mechanisms.randomized_response(epsilon_0=1)):
        steps = compose(made, count)
        for delta in (1e-6, 5e-17, 1e-20, 1e-300):
            found = steps.epsilon(delta, method)
            assert found.epsilon <= count
            assert found.epsilon_upper is None or found.epsilon_upper <= count


def test_the_rows_of_randomised_response_and_laplace() -> None:
    found = compose(mechanisms.randomized_response(epsilon_0=1), 1).epsilon(1e-20)
    with mpmath.workdps(40):
        # log((P₁ − δ)/Q₁) lies less than half a double below 1
        p = mpmath.e / (1 + mpmath.e)
        assert found.epsilon == float(mpmath.log((p - mpf("1e-20")) / (1 - p))) == 1.0
    assert compose(mechanisms.laplace(b=1), 1).epsilon(5e-17).epsilon_upper == 1.0
