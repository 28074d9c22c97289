"""Exponential families by their log-partition function, against laws and sums of other kinds."""

from __future__ import annotations

import json
import math
from contextlib import suppress

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy import special, stats

import symdp
from symdp import Ledger, Mechanism, compose, mechanisms
from symdp.errors import AccuracyError, InputError, SymdpError

R = sp.Rational
a, b, c, k, t = sp.symbols("a b c k t")


def directions(d=8, kappa=3, angle=sp.pi / 3):
    nu = R(d, 2) - 1
    formula = sp.log(sp.besseli(nu, k)) - nu * sp.log(k)
    moved = [kappa * sp.cos(angle), kappa * sp.sin(angle)]
    return Mechanism.family(formula, [kappa, 0], moved, "directions", length=k)


def poisson(with_record, without_record, counts=True):
    own, other = {t: sp.log(with_record)}, {t: sp.log(without_record)}
    return Mechanism.family(sp.exp(t), own, other, "poisson", counts=counts)


def gaussians(own, other):
    """Of precision matrices, the mean 0."""
    names = (a, b, c)
    members = [dict(zip(names, one, strict=True)) for one in (own, other)]
    return Mechanism.family(-sp.log(a * c - b**2) / 2, *members, "gaussians")


def by_nodes(losses, weights, n, epsilon, tilt, reach, step):
    """δ(ε) by the trapezoid on a line, M a sum over nodes of a density."""
    y = np.arange(0.0, reach, step)
    z = tilt + 1j * y
    moment = np.exp(np.multiply.outer(z, losses)) @ weights
    terms = (moment**n * np.exp(-epsilon * z) / (z * (1 + z))).real
    return step / math.pi * (terms.sum() - 0.5 * terms[0])


@pytest.mark.slow
def test_directions_are_those_of_the_density_of_one_component():
    """Of the part of x along the difference of the means, integrated over all the rest."""
    d, kappa, h = 8, 3.0, 0.5  # 60 degrees: half of it has the sine 1/2
    u, wu = np.polynomial.legendre.leggauss(300)
    inner, wv = np.polynomial.legendre.leggauss(200)
    along = np.exp(kappa * math.sqrt(1 - h * h) * np.multiply.outer(np.sqrt(1 - u * u), inner)) @ (
        wv * (1 - inner**2) ** ((d - 4) / 2)
    )
    weights = wu * (1 - u * u) ** ((d - 3) / 2) * along * np.exp(kappa * h * u)
    weights /= weights.sum()
    truth = by_nodes(2 * kappa * h * u, weights, 20, 1.0, 0.3, 12.0, 0.005)
    assert abs(truth - 0.96259890) < 5e-9
    for direction in ("remove", "add"):
        found = compose(directions(), 20).delta(1, direction=direction)
        assert found.kind == "exact"
        assert abs(found.delta - truth) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "epsilon"),
    [(3, 4.0), (1, 0.5), pytest.param(1, 2.9, marks=pytest.mark.sweep), (500, 90.0)],
)
def test_directions_are_the_pair_in_one_variable(n, epsilon):
    pair = mechanisms.von_mises_fisher(kappa=3, h="1/2", m=7)
    truth, found = (compose(one, n).delta(epsilon) for one in (pair, directions()))
    assert found.kind == "exact"
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper


@pytest.mark.slow
def test_odd_dimensions_have_half_orders():
    """On the sphere of three dimensions A = log(sinh k/k): the same as by a Bessel function."""
    formula = sp.log(sp.sinh(k) / k)
    plain = Mechanism.family(formula, [3, 0], [R(3, 2), sp.sqrt(27) / 2], length=k)
    for n in (1, 10):
        one, other = (compose(m, n).delta(0.7) for m in (plain, directions(3)))
        assert one.kind == other.kind == "exact"
        assert abs(one.delta / other.delta - 1) < 1e-9


@pytest.mark.quick_cases("3-2-40-2.0")
@pytest.mark.parametrize(
    ("p", "q", "n", "epsilon"),
    [
        (3, 2, 1, 1.0),
        (3, 2, 40, 2.0),
        (90, 100, 3, 0.5),
        (5000, 5050, 2, 1),
        (10300, 10000, 20, 100.0),
    ],
)
def test_counts_are_the_sum_of_all_of_them(p, q, n, epsilon):
    """n Poisson counts are one of n times the mean, whose ratio rises or falls with it."""
    j = np.arange(0, 3 * n * max(p, q) + 200)
    for direction, (own, other) in (("remove", (p, q)), ("add", (q, p))):
        log_p, log_q = (stats.poisson.logpmf(j, n * mean) for mean in (own, other))
        gain = np.exp(log_p) - np.exp(epsilon + log_q)
        truth = math.fsum(gain[gain > 0])
        found = compose(poisson(p, q), n).delta(epsilon, direction=direction)
        assert found.kind == "exact"
        rounded = 1e-10 + 4e-15 * n * max(p, q)  # SciPy's logs have terms as large as the mean
        assert abs(found.delta - truth) <= rounded * truth
        # The same not told that they are counts: a wider interval around it.
        wide = compose(poisson(p, q, counts=False), n).delta(epsilon, direction=direction)
        assert wide.lower <= found.upper
        assert found.lower <= wide.upper


@pytest.mark.parametrize(
    ("formula", "own", "other", "laws"),
    [
        # Five failures before so many successes: e^t is the chance of one.
        (
            -5 * sp.log(1 - sp.exp(t)),
            R(1, 2),
            R(2, 5),
            (stats.nbinom(5, 0.5), stats.nbinom(5, 0.6)),
        ),
        # Thirty coins, e^t the odds.
        (
            30 * sp.log(1 + sp.exp(t)),
            R(3, 2),
            R(2, 3),
            (stats.binom(30, 0.6), stats.binom(30, 0.4)),
        ),
        # Hardly any counts: the step of the lattice is wide beside the mean.
        (sp.exp(t), R(2, 1000), R(1, 1000), (stats.poisson(0.002), stats.poisson(0.001))),
    ],
    ids=["negative binomial", "binomial", "rare"],
)
def test_other_counts_are_sums_of_masses(formula, own, other, laws):
    step = Mechanism.family(formula, {t: sp.log(own)}, {t: sp.log(other)}, counts=True)
    j = np.arange(400)
    for direction, (first, second) in (("remove", laws), ("add", laws[::-1])):
        gain = first.pmf(j) - math.exp(0.0009) * second.pmf(j)
        truth = math.fsum(gain[gain > 0])
        found = compose(step, 1).delta(0.0009, direction=direction)
        assert found.kind == "exact"
        assert abs(found.delta - truth) <= 1e-11 * truth  # of SciPy's masses


@pytest.mark.slow
def test_dirichlet_of_one_count_more():
    """The loss is log x + c, x one component, which is Beta."""
    formula = sp.loggamma(a) + sp.loggamma(b) + sp.loggamma(c) - sp.loggamma(a + b + c)
    others = {b: R(5, 2), c: 4}
    step = Mechanism.family(formula, {a: 3, **others}, {a: 2, **others})
    own, other = stats.beta(3, 6.5), stats.beta(2, 6.5)
    for epsilon in (0.2, 1.0):
        cut = float(special.beta(3, 6.5) / special.beta(2, 6.5)) * math.exp(epsilon)
        truth = own.sf(cut) - math.exp(epsilon) * other.sf(cut)
        found = compose(step, 1).delta(epsilon, direction="remove")
        assert abs(found.delta - truth) < 1e-12
        low = float(special.beta(3, 6.5) / special.beta(2, 6.5)) * math.exp(-epsilon)
        truth = other.cdf(low) - math.exp(epsilon) * own.cdf(low)
        found = compose(step, 1).delta(epsilon, direction="add")
        assert abs(found.delta - truth) < 1e-12


@pytest.mark.slow
def test_normal_noise_of_another_width():
    """One step of N(1/3, 1) against N(0, 5/4): the loss turns once, as two roots tell."""
    names = sp.symbols("s u")
    formula = -(names[0] ** 2) / (4 * names[1]) - sp.log(-2 * names[1]) / 2
    own, other = (
        dict(zip(names, (R(1, 3), -R(1, 2)), strict=True)),
        dict(zip(names, (0, -R(2, 5)), strict=True)),
    )
    step = Mechanism.family(formula, own, other)
    with mpmath.workdps(30):

        def log_ratio(x):
            return -((x - mpmath.mpf(1) / 3) ** 2) / 2 + x * x * 2 / 5 + mpmath.log(1.25) / 2

        for epsilon in (0.05, 0.1):
            ends = mpmath.polyroots([-0.1, mpmath.mpf(1) / 3, -mpmath.mpf(1) / 18
                                     + mpmath.log(1.25) / 2 - epsilon])  # fmt: skip
            assert all(abs(log_ratio(x) - epsilon) < 1e-14 for x in ends)
            low, high = sorted(ends)
            sd = mpmath.sqrt(1.25)
            p = mpmath.ncdf(high - mpmath.mpf(1) / 3) - mpmath.ncdf(low - mpmath.mpf(1) / 3)
            q = mpmath.ncdf(high / sd) - mpmath.ncdf(low / sd)
            truth = float(p - mpmath.e**epsilon * q)
            found = compose(step, 1).delta(epsilon, direction="remove")
            assert found.kind == "exact"
            assert abs(found.delta - truth) < 1e-13


@pytest.mark.slow
def test_a_logarithm_of_a_determinant_is_split_into_factors():
    """Its principal value turns back where both factors are complex; that of a sum does not."""
    joint = gaussians((2, 0, 3), (1, 0, 2))
    parts = Mechanism.family(-sp.log(a) / 2 - sp.log(c) / 2, {a: 2, c: 3}, {a: 1, c: 2}, "product")
    for n, epsilon in ((1, 0.2), (1, 0.5), (7, 1.0)):
        for direction in ("remove", "add"):
            one, other = (compose(m, n).delta(epsilon, direction=direction) for m in (joint, parts))
            assert abs(one.delta - other.delta) <= 1e-12 * other.delta
    cubic = Mechanism.family(sp.log(1 + k**3) / 3, [3, 0], [2, 2], length=k)
    with pytest.raises(InputError, match="whose branch at complex z is not known"):
        compose(cubic, 1).delta(1)
    cut = Mechanism.family(sp.log(a**2 + b**2 + 1) / 3, {a: 1, b: 0}, {a: 0, b: 1})
    with pytest.raises(InputError, match="write a logarithm of a product as a sum"):
        compose(cut, 1).delta(1)


@pytest.mark.quick_cases("5.3-4.8-formula1", "-1-2-formula0", "5.3-4.8-formula0")
@pytest.mark.parametrize(
    "formula", [sp.log(2 * sp.sinh(t) / t), sp.log((sp.exp(t) - sp.exp(-t)) / t)]
)
@pytest.mark.parametrize(("own", "other"), [(4.8, 5.3), (5.3, 4.8), (-1, 2), (-3, -2)])
def test_logarithms_of_negative_factors(formula, own, other):
    """Exponential laws cut to [−1, 1]: one step by the mass beyond a point, twenty by nodes."""
    x, weight = special.roots_legendre(60)
    masses = np.exp(np.multiply.outer([own, other], x)) * weight
    log_sums = np.log(masses.sum(axis=1))
    losses = (own - other) * x - log_sums[0] + log_sums[1]
    epsilon = 0.3 * abs(own - other)
    place = (epsilon + log_sums[0] - log_sums[1]) / (own - other)
    beyond = []
    for theta in (own, other):
        edges = np.exp(theta * np.asarray([-1.0, place, 1.0]))
        part = (edges[2] - edges[1]) / (edges[2] - edges[0])
        beyond.append(part if own > other else 1 - part)
    truth = max(beyond[0] - math.exp(epsilon) * beyond[1], 0.0)
    if not -1 < place < 1:
        truth = 0.0
    step = Mechanism.family(formula, {t: R(str(own))}, {t: R(str(other))})
    one = compose(step, 1).delta(epsilon, direction="remove")
    assert one.delta == pytest.approx(truth, rel=1e-9, abs=1e-15)
    law = masses[0] / masses[0].sum()
    mean, size = law @ losses, abs(own - other)
    far = 20 * mean + math.sqrt(20 * (law @ losses**2 - mean**2))
    twenty = compose(step, 20).delta(far, direction="remove")
    assert twenty.kind == "exact"
    line = by_nodes(losses, law, 20, far, 0.4 / size, 60 / size, 0.005 / size)
    assert twenty.delta == pytest.approx(line, rel=1e-6)


def test_what_is_not_convex_is_refused_in_one_line():
    with pytest.raises(SymdpError):
        compose(Mechanism.family(-(t**2), {t: 1}, {t: 2}), 3).delta(1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_gamma_noise_of_another_shape_and_rate(seed):
    """The loss turns, and its density is singular at its end: a pair on the line tells as much."""
    random = np.random.default_rng(seed)
    numbers = [R(int(v), 8) for v in random.integers(6, 40, 4)]
    n, epsilon = int(random.choice([1, 2, 5, 60])), float(random.choice([0.1, 0.5, 1.5]))
    formula = sp.loggamma(a) - a * sp.log(b)
    own, other = (
        dict(zip((a, b), numbers[:2], strict=True)),
        dict(zip((a, b), numbers[2:], strict=True)),
    )
    x = sp.Symbol("x")
    laws = [
        one[b] ** one[a] * x ** (one[a] - 1) * sp.exp(-one[b] * x) / sp.gamma(one[a])
        for one in (own, other)
    ]
    pair = Mechanism.from_pair(*laws, x, (0, sp.oo))
    family = Mechanism.family(formula, own, other)
    for direction in ("remove", "add"):
        truth = compose(pair, n).delta(epsilon, direction=direction)
        found = compose(family, n).delta(epsilon, direction=direction)
        assert found.lower <= truth.upper
        assert truth.lower <= found.upper


def drawn(losses, n, epsilon):
    total = sum(losses() for _ in range(n))
    values = np.maximum(0.0, -np.expm1(np.minimum(epsilon - total, 0.0)))
    return values.mean(), values.std() / math.sqrt(values.size)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(1, 0.1), (10, 1.0)])
def test_normal_vectors_of_another_covariance_are_as_drawn(n, epsilon):
    own, other = np.array([[2, 0.5], [0.5, 3]]), np.array([[1, 1 / 3], [1 / 3, 2]])
    step = gaussians((2, R(1, 2), 3), (1, R(1, 3), 2))
    random = np.random.default_rng(3)
    for sign, (first, second) in ((1, (own, other)), (-1, (other, own))):
        gap = 0.5 * math.log(np.linalg.det(first) / np.linalg.det(second))

        def losses(first=first, second=second, gap=gap):
            x = random.multivariate_normal([0, 0], np.linalg.inv(first), 400_000)
            return gap - 0.5 * ((x @ (first - second)) * x).sum(axis=1)

        seen, error = drawn(losses, n, epsilon)
        found = compose(step, n).delta(epsilon, direction="remove" if sign > 0 else "add").delta
        assert abs(seen - found) < 4.5 * error


@pytest.mark.slow
def test_dirichlet_of_two_changes_is_as_drawn():
    formula = sp.loggamma(a) + sp.loggamma(b) + sp.loggamma(c) - sp.loggamma(a + b + c)
    own, other = (3.0, 2.0, 4.0), (2.0, 3.0, 4.0)
    step = Mechanism.family(
        formula, dict(zip((a, b, c), map(int, own), strict=True)),
        dict(zip((a, b, c), map(int, other), strict=True)),
    )  # fmt: skip
    random = np.random.default_rng(4)

    def losses():
        x = random.dirichlet(own, 400_000)
        return np.log(x[:, 0]) - np.log(x[:, 1])

    seen, error = drawn(losses, 10, 2.0)
    assert abs(seen - compose(step, 10).delta(2, direction="remove").delta) < 4.5 * error


FILE = """
name = "counts"
protects = "a change that moves the mean of a count from a to b"
[parameters]
p = "positive"
q = "positive"
[family]
log_partition = "exp(t)"
with = {t = "log(p)"}
without = {t = "log(q)"}
counts = true
"""


def test_a_file_says_the_same():
    step = Mechanism.from_toml(FILE)(p=3, q=2)
    assert compose(step, 5).delta(1).delta == compose(poisson(3, 2), 5).delta(1).delta
    assert compose(Mechanism.from_toml(FILE)(p="5/2", q=2), 5).epsilon(1e-6).epsilon > 0
    text = FILE.replace("{t = ", "{p = ").replace("exp(t)", "exp(p)")
    with pytest.raises(InputError, match="'p' is both a coordinate of theta and a parameter"):
        Mechanism.from_toml(text)
    with pytest.raises(InputError, match=r"\[family\] says all of the law; leave support out"):
        Mechanism.from_toml("support = [0, 1]\n" + FILE)
    with pytest.raises(InputError, match="theta has other coordinates"):
        Mechanism.from_toml(FILE.replace('without = {t = "log(q)"}', 'without = {s = "log(q)"}'))
    with pytest.raises(InputError, match="change at once"):
        Mechanism.family(sp.exp(a) + sp.exp(b), {a: 1, b: 2}, {a: 2, b: 1}, counts=True)
    with pytest.raises(InputError, match="nothing is lost"):
        poisson(2, 2)
    z = sp.Symbol("z")
    with pytest.raises(InputError, match="must not depend on the variable z"):
        Mechanism.family(sp.exp(z), {z: 1}, {z: 2})


# What needs a density on the line is refused in one sentence.
@pytest.mark.parametrize("step", [directions(), poisson(4, 3)], ids=["directions", "counts"])
def test_what_needs_a_density_is_refused(step):
    steps = compose(step, 5)
    for ask in (
        lambda: symdp.derive(step),
        lambda: steps.delta(1, method="truth"),
    ):
        with pytest.raises(SymdpError, match="known by its log-partition function"):
            ask()
    for scheme in ("poisson", "without_replacement"):
        with pytest.raises(InputError, match=r"what .* sampling gains needs the density"):
            step.subsample(scheme, "1/10")


@pytest.mark.slow
def test_methods_answer_or_refuse():
    """None takes a law without points for one that loses nothing."""
    steps = compose(directions(), 20)
    exact = steps.delta(1).delta
    for method in ("msd:2", "edgeworth:3", "clt", "lugannani-rice", "tilted-edgeworth:2"):
        assert abs(steps.delta(1, method=method).delta - exact) < 2e-3
    for method in ("renyi", "moments", "spa-bounds", "prv", "tilted-prv"):
        assert steps.delta(1, method=method).upper >= exact
    for method in ("fourier", "eeai", "buckets", "gaussian", "gdp-e", "berry-esseen"):
        with suppress(AccuracyError):  # which says that the density is not known
            found = steps.delta(1, method=method)
            assert found.kind == "estimate" or found.upper >= exact
    found = symdp.individual.from_mechanisms([directions()], [[20]]).delta(1)
    assert abs(float(found.delta[0]) - exact) < 1e-12


@pytest.mark.slow
def test_ledgers_keep_a_family():
    for step in (directions(), Mechanism.from_toml(FILE)(p=3, q=2)):
        ledger = Ledger()
        ledger.add(step, 7)
        kept = Ledger.from_state_dict(json.loads(json.dumps(ledger.state_dict())))
        assert kept.steps == ledger.steps
        assert kept.delta(1).delta == compose(step, 7).delta(1).delta


def test_families_compose_with_others():
    """Two Poisson counts, the normal law by its own A, and what the same laws are on the line."""
    s, sigma = sp.symbols("s sigma", positive=True)
    normal = Mechanism.family(s**2 * sigma**2 / 2, {s: 1 / sigma**2}, {s: 0})(sigma=2)
    own, other = mechanisms.gaussian(sigma=2), mechanisms.laplace(b=3)
    one = compose([(normal, 30), (other, 3), (poisson(3, 2), 2)])
    two = compose([(own, 30), (other, 3), (poisson(3, 2), 2)])
    for direction in ("remove", "add"):
        found, truth = (c.delta(2, direction=direction) for c in (one, two))
        assert abs(found.delta / truth.delta - 1) < 1e-11
    million = compose(normal(), 1_000_000).delta(1.3e5)
    assert abs(million.delta / compose(own, 1_000_000).delta(1.3e5).delta - 1) < 1e-11


def test_divergences_of_counts_are_those_of_the_whole_law():
    """Poisson laws of 5 and of 1: the divergence of order 8 is 55 799, and there is no ρ."""
    step = compose(poisson(5, 1), 1)
    assert step.renyi(2, direction="remove") == pytest.approx(16, rel=1e-12)
    for order in (8, math.inf):
        with pytest.raises(AccuracyError, match="at least"):
            step.renyi(order, direction="remove")
    with pytest.raises(AccuracyError, match="every order"):
        step.zcdp()
    assert step.renyi(math.inf, direction="add") == pytest.approx(4, rel=1e-12)
