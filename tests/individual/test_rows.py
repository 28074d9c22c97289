"""Records with steps of any density share lines: against sums and closed forms of our own."""

from __future__ import annotations

import math
import random

import mpmath as mp
import numpy as np
import pytest
import sympy as sp

import symdp
from symdp import mechanisms
from symdp.individual import from_mechanisms
from symdp.numeric.laws.of_mechanism import loss_law
from symdp.numeric.many.kinds import LawTable

# x = sinh u on an even grid, and dx: all densities below are analytic around the line, or end there
U = np.arange(-24.0, 24.0, 1 / 128)
X, WEIGHT = np.sinh(U), np.cosh(U) / 128


def log_logistic(x, s):
    return -np.abs(x) / s - 2 * np.log1p(np.exp(-np.abs(x) / s)) - math.log(s)


def log_student(x, nu, s):
    front = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi)
    return front - math.log(s) - (nu + 1) / 2 * np.log1p(x * x / (nu * s * s))


def log_normal(x, sigma):
    return -0.5 * (x / sigma) ** 2 - math.log(sigma) - 0.5 * math.log(2 * math.pi)


def log_gumbel(x, b):
    return -x / b - np.exp(np.minimum(-x / b, 700)) - math.log(b)


def loss_of(log_f, q, removes=True):
    """log P and ℓ on the grid, where P = (1 − q)f(x) + q f(x − 1) and Q = f, or the reverse."""
    log_q, log_shifted = log_f(X), log_f(X - 1)
    log_p = (
        log_shifted if q == 1 else np.logaddexp(math.log1p(-q) + log_q, log_shifted + math.log(q))
    )
    with np.errstate(invalid="ignore"):
        loss = log_p - log_q
    loss = np.where(np.isfinite(loss), loss, 0.0)
    return (log_p, loss) if removes else (log_q, -loss)


def line_of(laws, tilt, step=1 / 64, nodes=600):
    """δ of (counts, ε) by the plain trapezoid on Re z = t, M by another one along the outcomes."""
    z, logs = tilt + 1j * step * np.arange(nodes), []
    for log_p, loss in laws:
        weight = np.exp(log_p + tilt * loss) * WEIGHT
        kept = weight > 1e-25 * weight.max()
        weight, place = weight[kept], loss[kept]
        logs.append(np.log([(weight * np.exp(1j * y * place)).sum() for y in z.imag]))

    def delta(counts, epsilon):
        terms = np.exp(np.asarray(counts) @ np.asarray(logs) - epsilon * z) / (z * (1 + z))
        return step / (2 * math.pi) * (2 * terms.sum() - terms[0]).real

    return delta


def holds(found, i, delta, truth, slack=1e-11):
    """Assert that a record's interval is narrow and holds the ε at which a true profile is δ."""
    low, high = float(found.lower[i]), float(found.upper[i])
    assert high - low < 1e-10
    assert truth(high) <= delta * (1 + slack)
    assert truth(low) >= delta * (1 - slack)


@pytest.mark.slow
def test_four_kinds_of_densities_in_one_row():
    kinds = [
        mechanisms.logistic(s=2).subsample("poisson", "1/50"),
        mechanisms.student_t(nu=3, s=2),
        mechanisms.gaussian(sigma=3).subsample("poisson", "1/10"),
        mechanisms.logistic(s=4),
    ]
    laws = [
        loss_of(lambda x: log_logistic(x, 2), 1 / 50),
        loss_of(lambda x: log_student(x, 3, 2), 1),
        loss_of(lambda x: log_normal(x, 3), 1 / 10),
        loss_of(lambda x: log_logistic(x, 4), 1),
    ]
    counts = [[300, 12, 80, 9], [40, 3, 0, 30], [0, 30, 500, 0]]
    found = from_mechanisms(kinds, counts, "remove").epsilon(1e-5)
    assert found.paths == {"shared line": 3}
    delta = line_of(laws, 3.0, nodes=1500)
    for i, row in enumerate(counts):
        holds(found, i, 1e-5, lambda e, row=row: delta(row, e))


@pytest.mark.slow
def test_both_signs_of_skewed_noise_are_asked():
    kinds = [mechanisms.gumbel(b=2).subsample("poisson", "1/10"), mechanisms.gaussian(sigma=4)]
    counts = [[60, 20], [200, 1]]
    found = from_mechanisms(kinds, counts).epsilon(1e-5)
    assert found.paths == {"shared line": 2}
    normal = loss_of(lambda x: log_normal(x, 4), 1)
    sides = [
        [loss_of(lambda x, sign=sign: log_gumbel(sign * x, 2), 1 / 10, removes), normal]
        for sign in (1, -1)
        for removes in (True, False)
    ]
    lines = [line_of(side, 0.7) for side in sides]
    for i, row in enumerate(counts):
        holds(found, i, 1e-5, lambda e, row=row: max(delta(row, e) for delta in lines))


@pytest.mark.slow
def test_infinite_losses_beside_a_density():
    """One-sided exponential noise: the loss is −1/b, or infinite with probability 1 − e^{−1/b}."""
    x, b = sp.Symbol("x", real=True), sp.Symbol("b", positive=True)
    noise = symdp.Mechanism.additive(
        sp.exp(-x / b) / b, x, support=(0, sp.oo), sensitivity=1, name="one-sided"
    )
    kinds = [noise(b=2000).shifted("up"), mechanisms.gaussian(sigma=5)]
    counts = np.array([[3, 40], [1, 60], [9, 1], [0, 40]])
    found = from_mechanisms(kinds, counts, "add").epsilon(0.02)

    def truth(row, epsilon):  # δ∞ + (1 − δ∞) G_μ(ε + n/b), in 30 digits
        with mp.workdps(30):
            n, mu = int(row[0]), mp.sqrt(int(row[1])) / 5
            left, e = mp.exp(-mp.mpf(n) / 2000), mp.mpf(epsilon) + mp.mpf(n) / 2000
            profile = mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)
            return 1 - left + left * profile

    assert found.paths == {"shared line": 4}
    for i, row in enumerate(counts):
        holds(found, i, 0.02, lambda e, row=row: truth(row, e))
    delta = from_mechanisms(kinds, counts, "add").delta([-2.0, 0.5, 3.0, 1.0])
    for i, (row, epsilon) in enumerate(zip(counts, (-2.0, 0.5, 3.0, 1.0), strict=True)):
        known = mp.log(truth(row, epsilon))
        assert delta.lower[i] <= known <= delta.upper[i]
        assert delta.upper[i] - delta.lower[i] < 1e-11
    with pytest.raises(symdp.InputError, match="no finite epsilon"):
        from_mechanisms(kinds, [[3, 40]], "add").epsilon(1e-3)


@pytest.mark.slow
def test_the_table_bounds_every_characteristic_function():
    kinds = [
        mechanisms.logistic(s=1).subsample("poisson", "1/50"),
        mechanisms.student_t(nu=3, s=2),
        mechanisms.laplace(b=2).subsample("poisson", "1/4"),
        mechanisms.exponential(epsilon_0="1/2"),
        two_modes(4),
        mechanisms.gaussian(sigma="1/5").subsample("poisson", "1/3"),
        mechanisms.discrete_gaussian(sigma=3),
    ]
    used = np.ones(len(kinds), dtype=bool)
    for direction, tilt in (("remove", 0.7), ("add", 4.0)):
        laws = [loss_law(kind, direction) for kind in kinds]
        table = LawTable(laws)
        # an even grid of y, fine enough for the largest losses, out to where they turn 40 times
        step = 1 / 32
        lines = table.line(tilt, step, 640, used)
        heights = (lines - lines[:, :1]).real
        y = step * np.arange(1, 640, 7)
        bounds = table.log_bounds(tilt, y, used)
        for height, bound in zip(heights, bounds, strict=True):
            between = [height[7 * j + 1 : 7 * j + 9].max() for j in range(y.size - 1)]
            assert (between <= bound[:-1] + 1e-9).all()
            assert height[1 + 7 * (y.size - 1) :].max() <= bound[-1] + 1e-9


def test_a_pair_that_only_dominates_gives_bounds():
    kind = mechanisms.gaussian(sigma=3).subsample("without_replacement", "1/50")
    found = from_mechanisms([kind], [[300], [3000]]).epsilon(1e-5)
    assert found.paths == {"shared line": 2}
    assert set(found.kind) == {"bound"}
    alone = [symdp.compose(kind, n).epsilon(1e-5) for n in (300, 3000)]
    assert {one.kind for one in alone} == {"bound"}
    np.testing.assert_allclose(found.epsilon, [one.epsilon for one in alone], rtol=1e-11)
    assert found.epsilon.tolist() == found.upper.tolist()


STRANGERS = {
    "logistic": lambda r: mechanisms.logistic(s=r.choice([1, 2, 5])),
    "student": lambda r: mechanisms.student_t(nu=r.choice([3, 5]), s=r.choice([1, 4])),
    "laplace": lambda r: mechanisms.laplace(b=r.choice([2, 10])),
    "gumbel": lambda r: mechanisms.gumbel(b=r.choice([2, 6])),
    "gaussian": lambda r: mechanisms.gaussian(sigma=r.choice([1, 3, 9])),
    "two modes": lambda r: two_modes(r.choice([4, 7])),
    "integers": lambda r: mechanisms.discrete_gaussian(sigma=r.choice([3, 8])),
    "exponential": lambda r: mechanisms.exponential(epsilon_0=r.choice(["1/5", "1/2"])),
}


def two_modes(s):
    x, scale = sp.Symbol("x", real=True), sp.Symbol("s", positive=True)
    density = sum(sp.exp(-((x + c) ** 2) / (2 * scale**2)) for c in (scale, -scale))
    noise = symdp.Mechanism.additive(
        density / (2 * scale * sp.sqrt(2 * sp.pi)), x, sensitivity=1, name="two modes"
    )
    return noise(s=s)


def check_strangers(seed, rows=2):
    """Kinds and counts at random: the shared lines' intervals and those of compositions meet."""
    r = random.Random(seed)
    kinds = [STRANGERS[name](r) for name in r.sample(list(STRANGERS), r.choice([1, 2, 3]))]
    kinds = [
        k.subsample("poisson", r.choice(["1/100", "1/8"])) if r.random() < 0.6 else k for k in kinds
    ]
    counts = [[r.choice([0, 1, 5, 40, 400]) for _ in kinds] for _ in range(rows)]
    records, delta, epsilon = (
        from_mechanisms(kinds, counts),
        r.choice([1e-3, 1e-6]),
        r.uniform(-1, 4),
    )
    by_delta, by_epsilon = records.epsilon(delta), records.delta(epsilon)
    for i, row in enumerate(counts):
        steps = [(m, n) for m, n in zip(kinds, row, strict=True) if n]
        if not steps:
            assert by_delta.epsilon[i] == 0.0
            continue
        alone = symdp.compose(steps)
        one = alone.epsilon(delta)
        assert by_delta.lower[i] <= (math.inf if one.epsilon_upper is None else one.epsilon_upper)
        assert (one.epsilon_lower or 0.0) <= by_delta.upper[i]
        one = alone.delta(epsilon)
        assert by_epsilon.lower[i] <= one.log_upper
        assert one.log_lower <= by_epsilon.upper[i]


@pytest.mark.slow_cases("2")
@pytest.mark.parametrize("seed", [0, 2])
def test_rows_of_strangers_agree_with_their_compositions(seed):
    check_strangers(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *range(3, 11)])
def test_more_rows_of_strangers_agree_with_their_compositions(seed):
    check_strangers(seed, 3)
