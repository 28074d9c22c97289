"""A search by estimates: few bounds are asked, and what they say decides."""

import math

import numpy as np
import pytest
import sympy as sp
from strangers.densities import Stranger
from strangers.truth import pair_of
from strangers.twenty import TWENTY
from strangers.unseen import UNSEEN

import symdp
from symdp import calibrate, compose, mechanisms
from symdp.arguments import silent
from symdp.questions.rough_delta import rough_log_deltas
from symdp.questions.value_search import ValueSearch, grid_of

LIMIT = math.log(1e-5)
ROOT = 0.00123456789012


def log_bound(value):
    """Return a bound that rises with a rate, and is 1e-5 at ROOT."""
    return min(LIMIT + 1.1 * math.log(float(value) / ROOT), 0.0)


def searched(estimate, digits=10):
    """Return the neighbours that a search finds, and the values whose bound it asked."""
    asked = []

    def counted(value):
        asked.append(value)
        return log_bound(value)

    grid = grid_of("open probability", digits)
    search = ValueSearch(grid, counted, LIMIT, "q", "δ", silent, frozenset(), estimate)
    return search, search.met(), asked


@pytest.mark.parametrize("off", [0.0, 0.004, -0.01])
def test_with_an_estimate_few_bounds_are_asked(off):
    _, (value, step, neighbour), asked = searched(
        lambda value: log_bound(value) + off * (1 + 0.1 * math.sin(40 * math.log(float(value))))
    )
    assert step == sp.Rational(1, 10**12)
    assert neighbour == value + step
    assert value <= sp.Rational(str(ROOT)) < neighbour
    assert len(asked) <= 7
    assert {value, neighbour} <= set(asked)
    assert len(searched(None)[2]) > 2 * len(asked)


@pytest.mark.parametrize("off", [3.0, -3.0, -30.0, math.nan])
def test_an_estimate_that_misleads_changes_no_answer(off):
    search, (value, step, neighbour), asked = searched(lambda value: log_bound(value) + off)
    assert (value, step, neighbour) == searched(None)[1]
    assert {value, neighbour} <= set(asked)
    assert search.note == ""


def test_what_a_refusal_says_of_values_is_their_bound():
    grid = grid_of("positive", 6)
    search = ValueSearch(
        grid, lambda _: LIMIT + 1.0, LIMIT, "s", "δ ≤ 1e-05", silent, frozenset(),
        lambda _: LIMIT + 2.0,
    )  # fmt: skip
    with pytest.raises(symdp.InputError, match=r"no value .* has 2\.71828e-05"):
        search.met()


@pytest.mark.parametrize("rate", ["63/100", "37/10000"])
@pytest.mark.parametrize("name", ["half normal with a tail", "beta with a tilt"])
def test_an_estimate_is_about_delta(name, rate):
    """Beside sums of losses on grids; of sides far below the others nothing is wanted."""
    stranger = (UNSEEN | TWENTY)[name]
    noise = symdp.Mechanism.from_toml(stranger.toml).subsample("poisson", rate)
    steps = compose(noise, 30)
    estimates = rough_log_deltas(steps.accounted, steps.sides("both"), 1.0)
    drawn = Stranger(**{**vars(stranger), "rate": rate})
    truth = max(loss.delta(30, 1.0)[0] for loss in pair_of(drawn))
    assert max(estimates.values()) == pytest.approx(math.log(truth), abs=5e-3)


@pytest.mark.parametrize(
    ("noise", "count", "epsilon"),
    [
        (mechanisms.gaussian(sigma=2), 10, 2.0),
        (mechanisms.gumbel(b=4).subsample("poisson", "11/250"), 300, 1.0),
        (mechanisms.laplace(b=5).subsample("poisson", "1/20"), 200, 0.5),
    ],
)
def test_an_estimate_of_built_in_noise(noise, count, epsilon):
    steps = compose(noise, count)
    rough = rough_log_deltas(steps.accounted, steps.sides("both"), epsilon)
    assert max(rough.values()) == pytest.approx(steps.delta(epsilon).log_delta, abs=5e-3)


def test_a_dear_calibration_asks_few_deltas(monkeypatch):
    """One-sided noise at a rate: δ is the mass that is lost, 1 − (1 − q d)³⁰."""
    asked = []
    plain = symdp.Composition.delta

    def counted(self, *arguments, **options):
        asked.append(arguments)
        return plain(self, *arguments, **options)

    monkeypatch.setattr(symdp.Composition, "delta", counted)
    noise = symdp.Mechanism.from_toml(UNSEEN["half normal with a tail"].toml)
    found = calibrate(noise.subsample("poisson", "q"), "q", 30, epsilon=1, delta=1e-5)
    assert len(asked) <= 7
    x = np.linspace(0.0, 0.01, 20001)
    near = np.trapezoid(np.exp(-x * x - x), x)
    wide = np.linspace(0.0, 12.0, 2_000_001)
    lost = near / np.trapezoid(np.exp(-wide * wide - wide), wide)
    truth = -math.expm1(math.log1p(-1e-5) / 30) / lost
    assert float(found.value) == pytest.approx(truth, rel=1e-8)
    assert found.guarantee.upper <= 1e-5 < found.missed.upper
