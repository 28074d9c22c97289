"""Steps whose losses are single values, alone on fine lattices or beside steps that have none."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from certified_values import assert_certified, epsilon_at

from symdp import compose, mechanisms
from symdp.methods.route import Contour
from symdp.numeric.contour import Tail
from symdp.numeric.elementary import log_one_plus, uniform_sum
from symdp.numeric.sums import Angles, added, places_above
from symdp.numeric.total import find_lattice

RESPONSE = mechanisms.randomized_response
GAUSSIAN = mechanisms.gaussian
LATTICES = {
    "fine": [
        (RESPONSE(epsilon_0=e), n) for e, n in (("1/2", 30), ("707/1000", 30), ("1123/1000", 20))
    ],
    "nearly coarse": [
        (RESPONSE(epsilon_0=1), 30),
        (RESPONSE(epsilon_0="500000001/1000000000"), 30),
    ],
    "hardly told apart": [
        (RESPONSE(epsilon_0=1), 20),
        (RESPONSE(epsilon_0=f"{10**12 // 2 + 1}/{10**12}"), 20),
    ],
    "few, and fine": [(RESPONSE(epsilon_0="1/2"), 2), (RESPONSE(epsilon_0="70711/100000"), 3)],
    "two kinds of noise": [
        (mechanisms.discrete_gaussian(sigma="5/2"), 1),
        (mechanisms.discrete_laplace(b="6/7"), 100),
    ],
}
MIXED = {
    "one narrow step": [(RESPONSE(epsilon_0=1), 300), (GAUSSIAN(sigma=10), 1)],
    "narrower": [(RESPONSE(epsilon_0=1), 300), (GAUSSIAN(sigma=100), 1)],
    "two lattices": [
        (RESPONSE(epsilon_0="1/2"), 30),
        (RESPONSE(epsilon_0="707/1000"), 30),
        (GAUSSIAN(sigma=1000), 3),
    ],
    "wide": [(RESPONSE(epsilon_0="1/2"), 100), (GAUSSIAN(sigma=1), 10)],
}


def counts_of(law):
    return [count for _, count in law.terms]


@pytest.mark.quick_cases(
    "hardly told apart-1.5",
    "hardly told apart-0.3",
    "few, and fine-0.3",
    "nearly coarse-1.5",
    "nearly coarse-0.3",
    "few, and fine-1.5",
    "hardly told apart--1.0",
)
@pytest.mark.parametrize("deviations", [-1.0, 0.3, 1.5])
@pytest.mark.parametrize("name", LATTICES)
def test_lattices_however_fine_agree_with_certified_values(name, deviations):
    """Their characteristic function recurs, as high as at zero, long after it died out."""
    steps = LATTICES[name]
    epsilon = epsilon_at(steps, deviations, "remove")
    assert_certified(steps, epsilon, "remove", accuracy=2e-12, width=1e-10)


@pytest.mark.quick_cases("wide-0.3")
@pytest.mark.parametrize("deviations", [0.3, 2.1])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "narrower")) for n in MIXED]
)
def test_single_values_beside_a_spread_loss_agree_with_certified_values(name, deviations):
    steps = MIXED[name]
    epsilon = epsilon_at(steps, deviations, "remove")
    assert_certified(steps, epsilon, "remove", accuracy=1e-7, width=1e-6)


@pytest.mark.slow
def test_many_steps_on_a_lattice_beside_a_narrow_one_are_bounded_rather_than_guessed():
    mixed = compose([(RESPONSE(epsilon_0=1), 10**8), (GAUSSIAN(sigma=10), 1)])
    answer = mixed.delta(mixed.law("remove").mean, direction="remove")
    assert (answer.kind, answer.route) == ("bound", "prv")
    # Half of the losses exceed their mean, and few of those by less than a few nats.
    assert 0.4 < answer.lower < 0.4995
    assert 0.5 < answer.upper < 0.6


def test_what_is_left_out_lies_below_the_threshold():
    """Against every node of half a period: none that is left out is as large as was allowed."""
    law = compose(LATTICES["fine"]).law("remove")
    tilted = law.tilted(0.4)
    spacing = float(find_lattice(law).spacing)
    step = math.pi / spacing / 20_000
    rest = places_above(Angles(tilted, counts_of(law)), step, 40, 20_000, 12.0)
    assert rest is not None
    y = step * np.arange(40, 20_000)
    logs = [part.log_characteristic(y).real for part in tilted]
    large = sum(n * log for log, (_, n) in zip(logs, law.terms, strict=True)) > -12.0
    assert large.any()
    assert np.isin(40 + np.flatnonzero(large), rest).all()
    assert rest.size < 15_000
    assert (np.diff(rest) > 0).all()


def test_angles_obey_the_triangle_inequality():
    law = compose(LATTICES["fine"]).law("add")
    angles = Angles(law.tilted(1.0), counts_of(law))
    y = np.random.default_rng(3).uniform(0.0, 500.0, 400)
    for reach in (0.01, 0.1, 1.0):
        gap = np.abs(angles.at(y + reach) - angles.at(y))
        assert (gap <= angles.at(np.asarray([reach])) + 1e-7).all()
        assert (gap <= angles.within(np.asarray([reach])) + 1e-7).all()


@pytest.mark.slow
def test_thousands_of_distinct_steps_on_one_lattice_agree_with_their_sum():
    """One after another, on a window of twelve deviations around the mean of the sum."""
    sizes = np.arange(1000, 2500)  # of the losses, in 10⁻⁵
    keep = 1.0 / (1.0 + np.exp(-sizes * 1e-5))
    total, spread = float(keep @ sizes), math.sqrt(float(keep * (1.0 - keep) @ sizes**2))
    mass = np.zeros(int(24.0 * spread))
    shift = round(total) - mass.size // 2  # what the first entry stands for, in the end
    mass[mass.size // 2] = 1.0  # at the mean so far, which moves with every step
    moved = 0
    for size, chance in zip(sizes, keep, strict=True):
        ahead = round(float(keep[: size - 999] @ sizes[: size - 999])) - moved
        moved += ahead
        grown = np.zeros_like(mass)
        grown[: mass.size - ahead] += (1.0 - chance) * mass[ahead:]
        grown[size - ahead :] += chance * mass[: mass.size - size + ahead]
        mass = grown
    assert shift == moved - mass.size // 2
    loss = (2.0 * (shift + np.arange(mass.size)) - sizes.sum()) * 1e-5
    epsilon = 0.4300053
    expected = math.log(math.fsum(mass * -np.expm1(np.minimum(epsilon - loss, 0.0))))
    steps = [(RESPONSE(epsilon_0=f"{size}/100000"), 1) for size in sizes]
    found = compose(steps).delta(epsilon, direction="remove")
    assert abs(found.log_delta - expected) < 1e-11
    assert found.log_upper - found.log_lower < 1e-12


def test_the_tail_bound_finds_the_narrowest_recurrence():
    """10¹² steps on a lattice recur in peaks of a millionth of the distance between samples."""
    steps = [(RESPONSE(epsilon_0=1), 10**12), (GAUSSIAN(sigma=1), 3)]
    law = compose(steps).law("remove")
    start, _ = Tail(law, 1e-6).beyond(1e-4, 1e-12)
    assert start > 3.0


def test_sums_next_to_each_other_are_merged_at_their_mean_and_in_no_chains():
    loss = 1.0 + 1e-13 * np.arange(40.0)
    found = added((loss, np.zeros(40)), (np.asarray([9.0]), np.zeros(1)))
    assert found is not None
    merged, log_weight = found
    assert 1 < merged.size < 10
    assert np.exp(log_weight).sum() == pytest.approx(40.0)
    assert np.exp(log_weight) @ (merged - 10.0) == pytest.approx(
        float((loss - 1.0).sum()), rel=1e-2
    )


def test_the_logarithm_next_to_a_zero_of_the_characteristic_function():
    """1 + z of size 1e-6 has ten digits; the square that cancels would leave four."""
    z = np.asarray([complex(-1.0 + 3e-6, 4e-6)])
    assert log_one_plus(z)[0].real == pytest.approx(math.log(5e-6), abs=1e-10)


def test_small_negative_angles_keep_their_accuracy():
    """A term's phase is off by no more than k times the rounding of its angle."""
    weight, angle = np.asarray([1.0]), np.asarray([-1.234e-5])
    for first in (0, 30_000):
        found = uniform_sum(weight, angle, first, first + 60_000)
        exact = np.exp(1j * angle[0] * np.arange(first, first + 60_000))
        assert np.abs(found - exact).max() < 2e-13


def test_far_out_the_complement_of_a_finite_sum_is_one():
    """Lists made where δ is tiny lack the losses that make up nearly all of P."""
    mechanism = mechanisms.discrete_gaussian(sigma=2).subsample("poisson", "1/2")
    for count in (2, 3):
        answer = Contour().log_delta(compose(mechanism, count).law("remove"), 40.0)
        assert answer.log_delta < -1000.0
        assert answer.log_complement == 0.0


def test_lists_serve_a_tilt_far_out_and_one_between_the_poles():
    steps = [
        (RESPONSE(epsilon_0="1587/1000"), 30),
        (mechanisms.discrete_gaussian(sigma="4379/1000"), 3),
        (GAUSSIAN(sigma=100), 1),
    ]
    answer = compose(steps).delta(57.68, direction="remove")
    assert answer.log_delta < -300.0
    assert answer.log_upper - answer.log_lower < 1e-5


@pytest.mark.quick_cases("10000000-3000")
@pytest.mark.parametrize(("count", "sigma"), [(10**7, 3000), (10**9, 30000)])
def test_an_infinite_loss_beside_very_many_steps_in_balls(count, sigma):
    """δ∞ + (1 − δ∞)(p δ_G(ε − ε₀) + (1 − p) δ_G(ε + ε₀)) of normal steps and one (ε₀, δ∞) step."""
    step = mechanisms.approximate_dp(epsilon_0="1/10", delta_0="1/1000000")
    answer = compose([(mechanisms.gaussian(sigma=sigma), count), (step, 1)]).delta(3.0)
    with mpmath.workdps(50):
        mu, shift, lost = mpmath.sqrt(count) / sigma, mpmath.mpf(1) / 10, mpmath.mpf(10) ** -6
        more = 1 / (1 + mpmath.exp(-shift))

        def normal(epsilon):
            below = mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
            return mpmath.ncdf(mu / 2 - epsilon / mu) - below

        finite = more * normal(3 - shift) + (1 - more) * normal(3 + shift)
        truth = mpmath.log(lost + (1 - lost) * finite)
    assert answer.log_lower <= truth <= answer.log_upper < answer.log_lower + 3e-11
