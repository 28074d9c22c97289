"""Records' intervals against sums, residues and long lines that share no code with them."""

from __future__ import annotations

import math
import random

import mpmath as mp
import numpy as np
import pytest

import symdp
from symdp.individual import from_counts, from_mechanisms
from symdp.individual.methods import gaussian_step, record_composition
from symdp.numeric.laws.of_mechanism import loss_law
from symdp.numeric.many.kinds import SampledNormal, sampled_normals

laplace = symdp.mechanisms.laplace
gaussian = symdp.mechanisms.gaussian


def laplace_delta(b, n, epsilon):
    """δ(ε) of n Laplace steps of scale b as a finite sum of residues, for 0 < ε < n/b.

    Σ_{k: (n−2k)/b > ε} C(n,k) e^{−k/b} ([k=0] + 2^{−n} [w^{n−1}]
    (½+w)^{n−k−1} (w−½)^{k−1} e^{(w−½)s_k}),  s_k = (n−2k)/b − ε.
    """
    with mp.workdps(40 + n // 2):
        u, total = mp.mpf(1) / b, mp.mpf(0)
        for k in range(n):
            s = u * (n - 2 * k) - mp.mpf(epsilon)
            if s <= 0:
                break
            first = [mp.binomial(n - k - 1, j) * mp.mpf(2) ** (j - n + k + 1) for j in range(n - k)]
            if k:
                second = [
                    mp.binomial(k - 1, j) * mp.mpf(-0.5) ** (k - 1 - j) for j in range(min(k, n))
                ]
            else:
                second = [-(mp.mpf(2) ** (j + 1)) for j in range(n)]
            grown = [s**j / mp.factorial(j) for j in range(n)]
            both = [mp.mpf(0)] * n
            for i, a in enumerate(first):
                for j, c in enumerate(second[: n - i]):
                    both[i + j] += a * c
            found = mp.fsum(a * grown[n - 1 - i] for i, a in enumerate(both)) * mp.exp(-s / 2)
            total += mp.binomial(n, k) * mp.exp(-k * u) * ((k == 0) + found / mp.mpf(2) ** n)
        return +total


def lattice_delta(steps, spacing, epsilon):
    """δ(ε) where each step's loss is `spacing` times an integer: masses from the least one on."""
    masses, least = np.ones(1, dtype=np.longdouble), 0
    for lowest, mass, count in steps:
        for _ in range(count):
            masses = np.convolve(masses, np.asarray(mass, dtype=np.longdouble))
        least += lowest * count
    losses = np.longdouble(spacing) * (least + np.arange(masses.size))
    gain = -np.expm1(np.minimum(np.longdouble(epsilon) - losses, 0))
    return float(masses @ gain)


def holds(found, i, delta, truth, slack=1e-12):
    """Assert that a record's interval holds the ε at which a true profile is δ."""
    low, high = float(found.lower[i]), float(found.upper[i])
    assert low <= found.epsilon[i] <= high
    assert low == 0.0 or truth(low) >= delta * (1 - slack)
    assert truth(high) <= delta * (1 + slack)


def test_the_residue_formula_has_its_digits():
    with mp.workdps(40):
        known = mp.mpf("0.161337985976135399725729")
        assert abs(laplace_delta(5, 100, 3) - known) < mp.mpf("1e-24")


@pytest.mark.slow_cases("20-100-1e-05")
@pytest.mark.parametrize(("b", "n", "delta"), [(20, 100, 1e-5), (5, 30, 1e-3), (2, 10, 1e-4)])
def test_laplace_steps_hold_the_finite_sum(b, n, delta):
    found = from_mechanisms([laplace(b=b), None], [[n, 4], [n, 0]]).epsilon(delta)
    assert found.epsilon[0] == found.epsilon[1]
    holds(found, 0, delta, lambda epsilon: laplace_delta(b, n, epsilon))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_laplace_steps(n):
    found = from_mechanisms([laplace(b=2)], [[n]]).epsilon(0.02)
    holds(found, 0, 0.02, lambda epsilon: laplace_delta(2, n, epsilon))


def test_randomised_response_holds_the_binomial_sum():
    step, size = symdp.mechanisms.randomized_response(epsilon_0="1/50"), 1 / 50
    truth = math.exp(size) / (1 + math.exp(size))
    found = from_mechanisms([step], [[200], [3], [2], [1]])
    for delta in (1e-5, 1e-2):
        answered = found.epsilon(delta)
        for i, n in enumerate((200, 3, 2, 1)):
            holds(
                answered,
                i,
                delta,
                lambda e, n=n: lattice_delta([(-1, [1 - truth, 0, truth], n)], size, e),
            )


def three_valued(name):
    """A mechanism of losses ε₀, 0, −ε₀, with its masses and ε₀ from their definitions."""
    if name == "k-ary":
        e = math.exp(0.1)
        step = symdp.mechanisms.k_ary_randomized_response(epsilon_0="1/10", k=5)
        return step, 0.1, [1 / (4 + e), 3 / (4 + e), e / (4 + e)]
    if name == "staircase":
        # the density's value on each stretch of length ¼ and ¾, shifted by one
        r, gamma = math.exp(-0.1), 0.25
        height = (1 - r) / (2 * (gamma + r * (1 - gamma)))
        step = symdp.mechanisms.staircase(epsilon_0="1/10", gamma_0="1/4")
        cells = []
        for quarter in range(-4000, 4000):
            x = (quarter + 0.5) / 4
            level, shifted = ((abs(y) // 1) + (1 if abs(y) % 1 >= gamma else 0) for y in (x, x - 1))
            cells.append((level - shifted, height * r**shifted / 4))
        return step, 0.1, [math.fsum(m for v, m in cells if v == k) for k in (-1, 0, 1)]
    step = symdp.mechanisms.discrete_laplace(b=10)
    p = 1 / (1 + math.exp(-0.1))
    return step, 0.1, [1 - p, 0.0, p]


@pytest.mark.parametrize("name", ["k-ary", "staircase", "geometric"])
def test_losses_of_three_values_hold_their_sums(name):
    step, size, masses = three_valued(name)
    assert math.fsum(masses) == pytest.approx(1, abs=1e-12)
    counts = (120, 3, 1)
    found = from_mechanisms([step], [[n] for n in counts]).epsilon(1e-4)
    for i, n in enumerate(counts):
        holds(found, i, 1e-4, lambda e, n=n: lattice_delta([(-1, masses, n)], size, e), 1e-10)


def test_discrete_gaussian_steps_hold_their_sum():
    sigma, n = 6, 25
    k = np.arange(-90, 91, dtype=np.longdouble)
    mass = np.exp(-((k - 1) ** 2) / (2 * sigma**2))
    mass = np.stack([mass, np.zeros_like(mass)], axis=1).ravel()[:-1] / mass.sum()
    step = symdp.mechanisms.discrete_gaussian(sigma=sigma)
    found = from_mechanisms([step], [[n]]).epsilon(1e-6)
    # ℓ(k) = (2k − 1)/2σ²: odd multiples of 1/2σ²
    spacing = 1 / (2 * sigma**2)
    holds(found, 0, 1e-6, lambda e: lattice_delta([(-181, mass, n)], spacing, e), 1e-11)


def test_two_kinds_of_atoms_share_a_lattice():
    one = symdp.mechanisms.randomized_response(epsilon_0="1/10")
    p = math.exp(0.1) / (1 + math.exp(0.1))
    two, _, masses = three_valued("k-ary")
    found = from_mechanisms([one, two], [[40, 30]]).epsilon(1e-4)
    steps = [(-1, [1 - p, 0, p], 40), (-1, masses, 30)]
    holds(found, 0, 1e-4, lambda e: lattice_delta(steps, 0.1, e))


def test_an_infinite_loss_counts_in_full():
    leaky = symdp.mechanisms.approximate_dp(epsilon_0="1/10", delta_0="1/1000")
    found = from_mechanisms([leaky], [[10], [2]]).epsilon(0.05)
    alone = [symdp.compose(leaky, n).epsilon(0.05) for n in (10, 2)]
    assert found.epsilon.tolist() == [one.epsilon for one in alone]
    with pytest.raises(symdp.InputError, match=r"counts \[10\]"):
        from_mechanisms([leaky], [[10]]).epsilon(1e-4)


@pytest.mark.slow
def test_laplace_beside_gaussian_holds_the_proof():
    kinds = [laplace(b=4), gaussian(sigma=4)]
    found = from_mechanisms(kinds, [[3, 20], [0, 20]]).epsilon(1e-4)
    assert found.paths == {"shared line": 2}
    proved = symdp.compose([(kinds[0], 3), (kinds[1], 20)]).certify_epsilon(1e-4, digits=8)
    assert found.lower[0] <= proved.epsilon_upper
    assert proved.epsilon_lower <= found.upper[0]
    delta = from_mechanisms(kinds, [[3, 20], [3, 20]]).delta([1.0, 2.0])
    for i, epsilon in enumerate((1.0, 2.0)):
        alone = symdp.compose([(kinds[0], 3), (kinds[1], 20)]).delta(epsilon)
        assert delta.lower[i] <= alone.log_upper
        assert alone.log_lower <= delta.upper[i]
        assert delta.upper[i] - delta.lower[i] < 1e-10  # a line as narrow as one of its own


def gaussian_delta(sigma, q, n, epsilon, tilt, step, nodes, removes=True):
    """δ(ε) by the plain trapezoid with all values as far as they are felt, evaluated here."""
    u = np.arange(-12 - tilt / sigma * (not removes), 14 + (1 + tilt) / sigma, 1 / 64)
    log_r = np.log1p(q * np.expm1(np.minimum(u / sigma - 0.5 / sigma**2, 600)))
    loss = log_r if removes else -log_r
    weight = np.exp(-0.5 * u * u + (log_r if removes else 0) + tilt * loss - 0.5 * tilt)
    total = weight.sum()
    z = tilt + 1j * step * np.arange(nodes)
    phi = np.array([(weight * np.exp(1j * y * loss)).sum() for y in z.imag]) / total
    log_front = n * (math.log(total / 64 / math.sqrt(2 * math.pi)) + 0.5 * tilt) - tilt * epsilon
    terms = phi**n * np.exp(-1j * z.imag * epsilon) / (z * (1 + z))
    return math.exp(log_front) * step / (2 * math.pi) * (2 * terms.sum() - terms[0]).real


@pytest.mark.quick_cases("0.2-0.5-40-0.05")
@pytest.mark.parametrize(
    ("sigma", "q", "n", "delta"),
    [(0.1, 0.1, 200, 0.1), (0.1, 0.1, 150, 0.05), (0.125, 0.2, 80, 0.1), (0.2, 0.5, 40, 0.05)],
)
def test_little_noise_brings_the_characteristic_function_back(sigma, q, n, delta):
    """The loss is large where the record was drawn: |φ|ⁿ recurs at 2π over that loss."""
    found = from_counts([sigma], [[n]], q, "remove").epsilon(delta)
    tilt = 0.015

    def truth(epsilon):
        return gaussian_delta(sigma, q, n, epsilon, tilt, 2 * math.pi / 8000, 2400)

    holds(found, 0, delta, truth, 1e-10)


def test_the_bound_of_the_characteristic_function_is_never_exceeded():
    for sigma, q in [(0.1, 0.3), (0.5, 0.9), (1, 0.01), (6, 0.01)]:
        for direction in ("remove", "add"):
            table = sampled_normals(np.array([sigma]), np.array([q]), direction)
            law = SampledNormal(sigma, q, direction)
            for tilt in (0.5, 3.0, 30.0):
                spread = math.sqrt(law.tilted(tilt).variance)
                y = np.geomspace(0.03, 8, 40) / spread
                if y[-1] / sigma > 1e4:
                    continue  # more turns than a test has time for
                part = law.tilted(tilt, y[-1])
                loss, weight = part.deviation, part.weight
                bound = table.log_bounds(tilt, y, np.array([True]))[0]
                for j in range(y.size):
                    between = np.linspace(y[j], y[min(j + 1, y.size - 1)], 5)
                    seen = np.abs(np.exp(1j * np.outer(between, loss)) @ weight).max()
                    assert math.log(seen) <= bound[j] + 1e-12
                assert bound[8] < 0.05 * math.log(abs(np.exp(1j * y[8] * loss) @ weight))


def test_the_transform_of_the_add_direction_far_out():
    with mp.workdps(30):
        for sigma, q, tilt in [("0.3", "0.5", 30), ("0.5", "0.9", 30), ("0.8", "0.01", 12)]:
            s, rate, h = mp.mpf(sigma), mp.mpf(q), mp.mpf(1) / 32
            start = -12 - tilt / s
            total = mp.fsum(
                mp.exp(
                    -tilt * mp.log(1 - rate + rate * mp.exp(u / s - 1 / (2 * s * s))) - u * u / 2
                )
                for u in (start + h * k for k in range(int((14 - start) / h)))
            )
            known = mp.log(total * h / mp.sqrt(2 * mp.pi))
            table = sampled_normals(np.array([float(s)]), np.array([float(rate)]), "add")
            found = table.transform(np.array([float(tilt)]), table.has_loss)[0, 0]
            assert abs(found - known) < 2e-14 * known


@pytest.mark.parametrize(("sigma", "q"), [(1, 1e-6), (0.8, 0.02)])
def test_a_small_tilt_beside_large_ones_keeps_its_digits(sigma, q):
    """K(0.02), asked together with K(900), by the trapezoid in 40 digits."""
    tilts = np.array([0.02, 900.0])
    table = sampled_normals(np.array([sigma]), np.array([q]), "remove")
    step = symdp.mechanisms.gaussian(sigma=sigma).subsample("poisson", q)
    with mp.workdps(40):
        s, rate, h = mp.mpf(sigma), mp.mpf(q), mp.mpf(1) / 32
        total = mp.mpf(0)
        for k in range(int((28 + 2 / s) / h)):
            u = h * k - 14
            ratio = 1 - rate + rate * mp.exp(u / s - 1 / (2 * s * s))
            total += mp.exp(mp.mpf("1.02") * mp.log(ratio) - u * u / 2)
        known = mp.log(total * h / mp.sqrt(2 * mp.pi))
    for found in (table.transform(tilts, table.has_loss)[0, 0], known_to_the_law(step, tilts)[0]):
        # the law's own mean is a sum of losses of the size of q, rounded
        assert abs(found - known) < 1e-17 * q + 2e-9 * known


def known_to_the_law(step, tilts):
    law = loss_law(step, "remove")
    return law.transform(tilts) + tilts * law.base.mean


def test_a_loss_that_is_one_value_keeps_the_whole_of_its_mass():
    table = sampled_normals(np.array([0.05]), np.array([0.3]), "add")
    bound = table.log_bounds(0.5, np.geomspace(0.1, 1e4, 9), table.has_loss)
    assert bound.min() > -1e-15


@pytest.mark.slow
def test_a_loss_that_is_one_value_but_for_a_null_set():
    """Noise 1/20 of a contribution: without it the loss is −log(1 − q), but for 1e-22 of all mass.

    So δ = 1 − e^{ε + n log(1 − q)}. Layers of no width once told that φ dies out there, and
    δ = 0.9899 was said to be exact where it is 0.9992.
    """
    epsilon = 7.1
    found = from_counts([0.05], [[40]], 0.3, "add").delta(np.array([epsilon]))
    known = math.log(-math.expm1(epsilon + 40 * math.log1p(-0.3)))
    assert found.lower[0] <= known + 1e-14
    assert known - 1e-14 <= found.upper[0]


def random_case(seed):
    """A few steps of a few kinds, with and without sampling."""
    chosen = random.Random(seed)
    kinds = {
        "gaussian": lambda: gaussian(sigma=chosen.choice([1, 2, 5])),
        "logistic": lambda: symdp.mechanisms.logistic(s=chosen.choice([2, 5])),
        "laplace": lambda: laplace(b=chosen.choice([2, 8])),
        "coin": lambda: symdp.mechanisms.randomized_response(epsilon_0="1/5"),
    }
    names = chosen.choice(
        [
            ["gaussian"],
            ["gaussian", "gaussian"],
            ["gaussian", "laplace"],
            ["laplace"],
            ["coin"],
            ["logistic"],
            ["coin", "gaussian"],
        ]
    )
    made = []
    for name in names:
        step = kinds[name]()
        if name != "coin" and chosen.random() < 0.6:
            step = step.subsample("poisson", chosen.choice(["1/100", "1/5", "1/2"]))
        made.append(step)
    counts = [chosen.choice([1, 2, 3, 10, 60]) for _ in made]
    return made, counts, chosen.choice([1e-2, 1e-4, 1e-7])


def check_random(seed):
    made, counts, delta = random_case(seed)
    found = from_mechanisms(made, [counts]).epsilon(delta)
    alone = symdp.compose(list(zip(made, counts, strict=True))).epsilon(delta)
    assert found.lower[0] <= alone.epsilon <= found.upper[0] or (
        alone.epsilon_lower <= found.upper[0] and found.lower[0] <= alone.epsilon_upper
    )


@pytest.mark.slow_cases("0", "4", "2")
@pytest.mark.parametrize("seed", range(7))
def test_random_records_agree_with_their_composition(seed):
    check_random(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(7, 13))
def test_more_random_records_agree_with_their_composition(seed):
    check_random(seed)


def test_a_formula_tells_a_gaussian_whatever_its_name():
    import sympy as sp

    x, s = sp.Symbol("x", real=True), sp.Symbol("s", positive=True)
    other = symdp.Mechanism.additive(
        sp.exp(-((x - 3) ** 2) / (2 * s**2)) / (s * sp.sqrt(2 * sp.pi)), x, sensitivity=2, name="n"
    )
    assert gaussian_step(other(s=5)) == (2.5, 1.0)
    assert gaussian_step(gaussian(sigma=5).subsample("poisson", "1/8")) == (5.0, 0.125)
    assert gaussian_step(gaussian(sigma=5).under("substitution")) == (2.5, 1.0)
    for refused in (
        laplace(b=2),
        symdp.mechanisms.discrete_gaussian(sigma=2),
        gaussian(sigma=5).subsample("without_replacement", "1/8"),
        gaussian(sigma=5).subsample("poisson", "1/8", group=2),
        gaussian(sigma=5).subsample("random_allocation", steps=8),
    ):
        assert gaussian_step(refused) is None


def test_a_named_and_a_counted_gaussian_are_one():
    kinds = [gaussian(sigma=s).subsample("poisson", "1/100") for s in (1, 2)]
    counts = [[100, 900], [500, 500], [0, 1000]]
    named = from_mechanisms(kinds, counts).epsilon(1e-6)
    counted = from_counts([1, 2], counts, 0.01).epsilon(1e-6)
    # 1/100 as a ratio and as a double, each with quadratures of its own
    np.testing.assert_allclose(named.epsilon, counted.epsilon, rtol=1e-12)
    assert named.paths == {"shared line": 3}
    assert record_composition(from_mechanisms([None], [[3]]), 0) is None
