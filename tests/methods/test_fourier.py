"""The Fourier accountant: published figures, its own error estimate, every kind of mechanism."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from every_kind import EVERY_KIND

from symdp import compose, mechanisms
from symdp.errors import InputError
from symdp.methods import accountant
from symdp.methods.fourier import Fourier
from symdp.methods.loss_mesh import has_smooth_density, log_beyond, loss_cells, loss_density
from symdp.methods.route import Contour
from symdp.model.mechanism import Mechanism
from symdp.model.reading.parser import parse
from symdp.model.sampling import variable_symbol

# The papers' digits carry the rounding of a transform to the k-th power, as ours do.
ROUNDING = 2e-15


def subsampled(rate, sigma, relation="add_remove"):
    return mechanisms.gaussian(sigma=sigma).under(relation).subsample("poisson", rate)


def folded():
    """A loss that turns, log((1 + x²)/2), so that two places share each of its values."""
    x = variable_symbol("x", "interval")
    p = parse("exp(-x**2/2)*(1 + x**2)/(2*sqrt(2*pi))", {"x": x})
    q = parse("exp(-x**2/2)/sqrt(2*pi)", {"x": x})
    return Mechanism.from_pair(p, q, x, name="folded")


CASES = EVERY_KIND | {"substitution": subsampled("1/100", 2, "substitution"), "folded": folded()}


@pytest.mark.slow_cases("12-800000-0.0496014103252")
@pytest.mark.parametrize(
    ("reach", "points", "published"),
    [
        (12, 50_000, 0.0491228786423),
        (12, 200_000, 0.0496013846114),
        (12, 800_000, 0.0496014103252),
        pytest.param(12, 3_200_000, 0.0496014103163, marks=pytest.mark.slow),
        pytest.param(2, 3_200_000, 0.0422160172923, marks=pytest.mark.slow),
        pytest.param(6, 3_200_000, 0.0496014103158, marks=pytest.mark.slow),
        pytest.param(10, 3_200_000, 0.0496014103134, marks=pytest.mark.slow),
    ],
)
def test_published_convergence(reach, points, published):
    """[FA Tables 1, 2]: q = 0.01, σ = 1.5, k = 10⁴, ε = 1; the truth lies in the own bounds."""
    law = compose(subsampled("1/100", "3/2"), 10_000).law("remove")
    answer = Fourier(reach, points).log_delta(law, 1.0)
    assert math.exp(answer.log_delta) == pytest.approx(published, abs=10_000 * ROUNDING)
    truth = Contour().log_delta(law, 1.0).log_delta
    assert answer.log_lower < truth < answer.log_upper
    assert answer.kind == "estimate"
    if abs(published / math.exp(truth) - 1) > 1e-6:
        assert answer.advice


PUBLISHED = [  # rate, σ, steps, ε, remove, substitution, on 10⁶ points of [−20, 20)
    ("1/100", 2, 10_000, 1.0, 0.010224911209, 0.128209385711),
    ("1/100", 2, 100_000, 1.0, 0.392057288533, 0.820553801441),
    ("1/100", 2, 10_000, 0.8, 0.022850339596, 0.168032073536),
    ("1/100", 1, 10_000, 1.0, 0.239176394737, 0.556809673152),
    ("1/50", 2, 10_000, 1.0, 0.149917329693, 0.511311882151),
]


@pytest.mark.quick_cases("1/100-2-100000-1.0-add_remove")
@pytest.mark.parametrize("relation", ["add_remove", "substitution"])
@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}-{row[3]}")
def test_published_values(row, relation):
    rate, sigma, steps, epsilon, remove, substitution = row
    law = compose(subsampled(rate, sigma, relation), steps).law("remove")
    answer = Fourier(20, 1_000_000).log_delta(law, epsilon)
    published = remove if relation == "add_remove" else substitution
    assert math.exp(answer.log_delta) == pytest.approx(published, abs=steps * ROUNDING)
    truth = Contour().log_delta(law, epsilon).log_delta
    assert answer.log_lower < truth < answer.log_upper
    if abs(published / math.exp(truth) - 1) > 1e-6:
        assert answer.advice


@pytest.mark.slow
def test_two_published_values_are_off():
    """One grid is too coarse, the other too short; both are told so."""
    coarse = compose(subsampled("1/100", 1), 10_000).law("remove")
    answer = Fourier(20, 1_000_000).log_delta(coarse, 1.0)
    assert "spacing" in answer.advice
    assert abs(math.exp(answer.log_delta) - 0.2391429614) > 3e-5
    short = compose(subsampled("1/100", 2, "substitution"), 100_000).law("remove")
    answer = Fourier(20, 1_000_000).log_delta(short, 1.0)
    assert "beyond the grid" in answer.advice
    for law, truth in ((coarse, 0.2391429614), (short, 0.8205550112)):
        chosen = Fourier().log_delta(law, 1.0)
        assert math.exp(chosen.log_delta) == pytest.approx(truth, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [10, 1000, 100_000])
@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_mechanism(name, steps):
    composition = compose(CASES[name], steps)
    for direction in ("remove", "add"):
        law = composition.law(direction)
        width = math.sqrt(float(law.cumulants(0.0, 2)[1]))
        for epsilon in (law.mean - width, law.mean + width, law.mean + 3 * width):
            answer = Fourier().log_delta(law, epsilon)
            truth = Contour().log_delta(law, epsilon)
            if answer.kind == "exact":
                assert answer.log_delta == pytest.approx(truth.log_delta, rel=1e-12)
                continue
            assert answer.log_lower <= truth.log_upper
            assert answer.log_upper >= truth.log_lower
            if not answer.advice:
                assert answer.log_delta == pytest.approx(truth.log_delta, abs=1e-6)
                assert answer.log_upper - answer.log_lower < 2.1e-6


@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_gaussian_closed_form(mu):
    law = compose(mechanisms.gaussian(sigma=100), round((100 * mu) ** 2)).law("remove")
    for epsilon in (-0.5, 0.0, 0.1, 1.0):
        with mp.workdps(30):
            delta = mp.ncdf(mu / 2 - epsilon / mu)
            delta -= mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
        answer = Fourier().log_delta(law, epsilon)
        if not answer.advice:
            assert answer.log_delta == pytest.approx(float(mp.log(delta)), abs=1e-6)
        assert answer.log_lower <= float(mp.log(delta)) <= answer.log_upper


@pytest.mark.slow
def test_heterogeneous_and_mass_at_infinity():
    steps = [(subsampled("1/100", 2), 500), (mechanisms.laplace(b=10), 7)]
    law = compose(steps).law("remove")
    for epsilon in (0.2, 1.0):
        truth = Contour().log_delta(law, epsilon).log_delta
        answer = Fourier().log_delta(law, epsilon)
        assert answer.log_delta == pytest.approx(truth, abs=1e-6)
    x = variable_symbol("x", "interval")
    noise = parse("exp(-x/10)/10", {"x": x})
    exponential = Mechanism.additive(noise, x, 1, support=(sp.Integer(0), sp.oo), name="ray")
    for direction in ("remove", "add"):
        law = compose([(exponential, 3), (mechanisms.gaussian(sigma=5), 4)]).law(direction)
        truth = Contour().log_delta(law, 0.3).log_delta
        assert Fourier().log_delta(law, 0.3).log_delta == pytest.approx(truth, abs=1e-6)


def test_rounding_is_never_an_answer():
    law = compose(subsampled("1/100", 2), 1000).law("remove")
    answer = Fourier().log_delta(law, 12.0)
    truth = Contour().log_delta(law, 12.0).log_delta
    assert answer.kind == "bound"
    assert "rounding" in answer.advice
    assert answer.log_lower <= truth <= answer.log_upper


def test_chernoff_is_below_the_published_tail_bound():
    """[FA Thm 8]: (1 + 2q²(L/2 + 1)(L/2)/σ²)^k e^{−L²/2}, for σ ≥ 4 and q ≤ 1/5."""
    rate, sigma, steps = 0.01, 4.0, 1000
    law = compose(subsampled("1/100", 4), steps).law("remove")
    for length in (2.5, 3.0, 4.0):
        half = length / 2
        c = math.log1p(1 / (rate * (half - 1)))
        assert half <= sigma**2 * c / 2 - 2 * math.log(sigma)
        printed = steps * math.log1p(2 * rate**2 * (half + 1) * half / sigma**2) - length**2 / 2
        found = log_beyond(law, 0.0, length, upper=True)
        assert found < printed
        assert found < log_beyond(law, 0.0, length - 0.5, upper=True)


@pytest.mark.slow
def test_cells_hold_the_whole_law():
    for name, mechanism in CASES.items():
        law = compose(mechanism).law("remove")
        part = law.parts[0][0]
        for tilt in (0.0, 1.0):
            spacing, first, count = 1e-3, -20_000, 40_000
            cells = loss_cells(part, tilt, spacing, first, count)
            mean = cells.moment.sum() + cells.mass @ ((first + np.arange(count)) * spacing)
            assert cells.mass.sum() == pytest.approx(1.0, abs=1e-13), name
            assert mean == pytest.approx(law.cumulants(tilt, 1)[0], rel=1e-9, abs=1e-13), name
            assert cells.mass.min() >= 0
            assert (cells.moment <= cells.mass * spacing * (1 + 1e-9) + 1e-18).all()


def test_density_of_the_subsampled_gaussian():
    """ω(s) = f(ℓ⁻¹(s)) σ²e^s/(e^s − (1 − q)), ℓ⁻¹(s) = σ² log((e^s − (1 − q))/q) + 1/2 [FA 6.1]."""
    part = compose(subsampled("1/100", 2)).law("remove").parts[0][0]
    assert has_smooth_density(part)
    s = np.asarray([-0.5, -0.0099, -0.005, 0.0, 0.003, 0.02, 0.1])
    excess = np.maximum(np.exp(s) - 0.99, 1e-300)
    x = 4 * np.log(excess / 0.01) + 0.5
    base = np.exp(-(x**2) / 8) / math.sqrt(8 * math.pi)
    shifted = np.exp(-((x - 1) ** 2) / 8) / math.sqrt(8 * math.pi)
    expected = np.where(s > math.log(0.99), (0.99 * base + 0.01 * shifted) * 4 * np.exp(s), 0)
    expected = np.where(s > math.log(0.99), expected / excess, 0)
    assert loss_density(part, s) == pytest.approx(expected, rel=1e-11, abs=1e-15)


@pytest.mark.parametrize(("reach", "points"), [(-1, 100), (math.inf, 100), (1, 101), (1, 0)])
def test_bad_grids_are_refused(reach, points):
    with pytest.raises(InputError, match="method 'fourier': "):
        Fourier(reach, points)


def test_it_is_known_by_name():
    assert accountant("fourier") == Fourier()
    found = compose(mechanisms.gaussian(sigma=10), 20).delta(1.0, method="fourier")
    assert (found.kind, found.method, found.citations) == ("estimate", "fourier", ("FA",))
