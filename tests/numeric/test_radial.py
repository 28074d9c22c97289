"""Noise on vectors, g(‖x‖) moved by D: against noise on the line, closed forms and draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

import symdp
from symdp import Mechanism, compose, mechanisms
from symdp.errors import InputError
from symdp.page.card import make_card

R = sp.Rational
r = sp.Symbol("r")


def law_of(density, dimension, rate=None):
    made = Mechanism.radial(density, r, dimension)
    return made if rate is None else made.subsample("poisson", rate)


# Normal noise is as wide in every direction: along the shift it is noise on the line.
@pytest.mark.quick_cases(
    "1/10-1000-2.0-1", "None-1000-120.0-1", "None-10-2.0-1", "None-1-0.3-1", "1/10-10-0.3-1"
)
@pytest.mark.parametrize("dimension", [1, 2, 3, 6, 50])
@pytest.mark.parametrize(
    ("rate", "count", "epsilon"),
    [(None, 1, 0.3), (None, 10, 2.0), (None, 1000, 120.0), ("1/10", 10, 0.3), ("1/10", 1000, 2.0)],
)
def test_normal_noise_is_that_on_the_line(dimension, rate, count, epsilon):
    line = mechanisms.gaussian(sigma=2)
    line = line if rate is None else line.subsample("poisson", rate)
    for direction in ("remove", "add"):
        truth = compose(line, count).delta(epsilon, direction=direction)
        found = compose(law_of(sp.exp(-(r**2) / 8), dimension, rate), count)
        found = found.delta(epsilon, direction=direction)
        assert found.kind == "exact"
        assert found.lower <= truth.upper
        assert truth.lower <= found.upper
        assert abs(found.delta - truth.delta) <= 1e-12 * truth.delta


@pytest.mark.quick_cases("1/5-10-0.2-3")
@pytest.mark.parametrize("dimension", [2, 3, 10])
@pytest.mark.parametrize(
    ("rate", "count", "epsilon"),
    [(None, 1, 0.9), (None, 3, 2.5), (None, 100, 8.0), ("1/5", 3, 0.5), ("1/5", 10, 0.2)],
)
def test_laplace_noise_is_the_pair_in_one_variable(dimension, rate, count, epsilon):
    """That pair was found by other coordinates, and its answers share no table with these."""
    known = mechanisms.l2_laplace(s=1, d=dimension)
    known = known if rate is None else known.subsample("poisson", rate)
    truth = compose(known, count).delta(epsilon)
    found = compose(law_of(sp.exp(-r), dimension, rate), count).delta(epsilon)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert abs(found.delta - truth.delta) <= 1e-12 * truth.delta


@pytest.mark.slow_cases("10-1.5")
@pytest.mark.parametrize(("count", "epsilon"), [(1, 0.5), (10, 1.5)])
def test_one_dimension_is_laplace_with_its_atoms(count, epsilon):
    found = compose(law_of(sp.exp(-r), 1), count).delta(epsilon)
    laplace = compose(mechanisms.laplace(b=1), count).delta(epsilon)
    assert found.delta == pytest.approx(laplace.delta, rel=1e-14)
    assert found.route == ("single" if count == 1 else "residues")


# Draws of a direction and a length, the length by the law of |x|; δ is the mean of (1 − e^{ε−L})⁺
# over sums of losses. The tolerance is four standard errors, and a few draws that were not seen.
DRAWS = 400_000


def lengths(rng, dimension, name, size):
    if name == "student":
        normal = np.sqrt(rng.chisquare(dimension, size))
        return normal / np.sqrt(rng.chisquare(5, size) / 5)
    power = {"exp 1/2": 0.5, "exp 3/2": 1.5, "exp 4": 4.0}[name]
    return rng.gamma(dimension / power, 1.0, size) ** (1.0 / power)


DENSITIES = {
    "student": lambda d: (1 + r**2 / 5) ** (-R(5 + d, 2)),
    "exp 1/2": lambda _d: sp.exp(-sp.sqrt(r)),
    "exp 3/2": lambda _d: sp.exp(-(r ** R(3, 2))),
    "exp 4": lambda _d: sp.exp(-(r**4)),
}


def drawn(name, dimension, rate, count, epsilon):
    rng = np.random.default_rng(dimension)
    log_g = sp.lambdify(r, sp.expand_log(sp.log(DENSITIES[name](dimension)), force=True))
    total = np.zeros(DRAWS // count)
    for _ in range(count):
        size = lengths(rng, dimension, name, total.size)
        normal = rng.standard_normal((total.size, dimension))
        along = size * normal[:, 0] / np.linalg.norm(normal, axis=1)
        is_in = rng.random(total.size) < (1.0 if rate is None else float(rate))
        # Distances from the centre with the record (at 1 along the shift) and from that without.
        own, other = (np.sqrt(size**2 + 2 * s * along + 1) for s in (1, -1))
        near, far = np.where(is_in, size, other), np.where(is_in, own, size)
        ratio = log_g(near) - log_g(far)
        total += ratio if rate is None else np.log1p(float(rate) * np.expm1(ratio))
    gains = np.maximum(0.0, -np.expm1(np.minimum(epsilon - total, 0.0)))
    return gains.mean(), gains.std() / math.sqrt(total.size)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(DENSITIES))
@pytest.mark.parametrize(
    ("dimension", "rate", "count", "epsilon"),
    [(2, None, 1, 0.1), (3, None, 10, 1.0), (5, None, 1, 0.3), (5, R(1, 4), 1, 0.05),
     (10, None, 10, 2.0), (10, R(1, 5), 10, 0.4)],
)  # fmt: skip
def test_other_noise_is_what_draws_show(name, dimension, rate, count, epsilon):
    mean, error = drawn(name, dimension, rate, count, epsilon)
    steps = compose(law_of(DENSITIES[name](dimension), dimension, rate), count)
    found = steps.delta(epsilon, direction="remove")
    assert found.upper - found.lower <= 1e-9
    assert abs(found.delta - mean) <= 4.0 * error + 10.0 / DRAWS


@pytest.mark.slow
def test_numbers_of_a_quadrature_over_both_distances():
    """A rule of 160 × 240 nodes in r₁ − r₂ and r₁ + r₂, and a line of its own, in 15 digits."""
    student = (1 + r**2 / 5) ** (-R(11, 2))
    assert compose(law_of(student, 6), 10).delta(1.0).delta == pytest.approx(
        0.76259625162554, abs=1e-13
    )
    power = sp.exp(-(r ** R(3, 2)))
    assert compose(law_of(power, 6), 10).delta(2.0).delta == pytest.approx(
        0.693127115887, abs=1e-12
    )


@pytest.mark.quick_cases("3")
@pytest.mark.parametrize("seed", range(6))
def test_strangers_agree_with_a_plain_sum(seed):
    """One step by a plain two-dimensional sum: over lengths, and over angles from the shift."""
    rng = np.random.default_rng(seed)
    dimension, scale = int(rng.integers(3, 9)), R(int(rng.integers(5, 30)), 10)
    epsilon = float(rng.uniform(0.05, 0.5))
    forms = [
        sp.exp(-sp.sqrt(1 + (r / scale) ** 2)),
        sp.exp(-(r / scale)) + sp.exp(-((r / scale) ** 2)),
        1 / sp.cosh(r / scale),
        sp.exp(-r / scale - (r / scale) ** 2),
        (1 + r / scale) ** (-dimension - 3),
        sp.exp(-((r / scale) ** R(5, 4))),
    ]
    density = forms[seed]
    g = sp.lambdify(r, density)
    # log r evenly, and Gauss–Jacobi angles by the substitution cos θ = −cos s with its own weight.
    log_r = np.linspace(-14.0, 14.0 if seed == 4 else 6.0, 6001)
    angle = (np.arange(4000) + 0.5) * math.pi / 4000
    size, weight = np.exp(log_r), np.sin(angle) ** (dimension - 2)
    with np.errstate(all="ignore"):
        mass = np.exp(dimension * log_r) * g(size)
        mass /= mass.sum()
        delta = 0.0
        for length, share in zip(size, mass, strict=True):
            if share > 1e-18:
                other = np.sqrt(length**2 + 2.0 * length * np.cos(angle) + 1.0)
                ratio = g(other) / g(length)  # without the record over with it
                delta += share * (weight @ np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0))
    delta /= weight.sum()
    # The kink in the angle makes the sum wrong by the square of a step.
    found = compose(law_of(density, dimension), 1).delta(epsilon)
    assert found.delta == pytest.approx(delta, abs=2e-7)


FILE = """
name = "planar Laplace"
variable = "r"
[parameters]
s = "positive"
d = "positive integer"
[noise]
norm = "l2"
dimension = "d"
density = "exp(-r/s)"
sensitivity = 1
"""


@pytest.mark.slow
def test_a_file_says_the_same():
    made = symdp.Mechanism.from_toml(FILE)(s="1/2", d=2)
    found = compose(made, 4).delta(3)
    assert found.delta == pytest.approx(
        compose(mechanisms.l2_laplace(s="1/2", d=2), 4).delta(3).delta, rel=1e-12
    )
    assert "Euclidean length" in found.protection.sentence
    assert compose(made, 4).epsilon(found.delta).epsilon == pytest.approx(3, abs=1e-9)


def test_a_dimension_may_stand_at_the_top():
    at_top = FILE.replace('dimension = "d"\n', "")
    at_top = at_top.replace("[parameters]", 'dimension = "d"\n[parameters]')
    assert symdp.Mechanism.from_toml(at_top) == symdp.Mechanism.from_toml(FILE)
    with pytest.raises(InputError, match="dimension stands twice"):
        symdp.Mechanism.from_toml(FILE.replace("[parameters]", "dimension = 2\n[parameters]"))
    with pytest.raises(InputError, match="'norm' is missing"):
        symdp.Mechanism.from_toml(at_top.replace('norm = "l2"', ""))


@pytest.mark.slow
def test_a_sensitivity_is_a_length():
    """Of spherical Laplace noise a shift of 3 is one of 1 where the scale is a third as long."""
    made = symdp.Mechanism.from_toml(FILE)(s=2, d=3)
    truth = compose(symdp.Mechanism.from_toml(FILE)(s="2/3", d=3), 4).delta(2)
    for size in (3, sp.Integer(3)):
        found = compose(made.moved_by(size), 4).delta(2)
        assert found.delta == pytest.approx(truth.delta, rel=1e-12)
    assert made.moved_by(3).summary == "planar Laplace(s=2, d=3), sensitivity 3"
    written = symdp.Mechanism.from_toml(FILE.replace("sensitivity = 1", "sensitivity = 3"))(
        s=2, d=3
    )
    assert made.moved_by(3).source == written.source


@pytest.mark.slow
def test_ledgers_and_cards_keep_the_dimension():
    """Without it g was noise on a half-line, and no finite ε was said to exist."""
    steps = compose(symdp.Mechanism.from_toml(FILE)(s=2, d=3).subsample("poisson", "1/4"), 4)
    ledger = symdp.Ledger.from_state_dict(symdp.Ledger(steps.given_steps()).state_dict())
    again = ledger.composition()
    assert again.delta(0.5).log_delta == steps.delta(0.5).log_delta
    assert again.protection == steps.protection
    card = make_card(steps, title="vectors", deltas=[1e-3])
    assert card["privacy_parameters"][0]["epsilon"] == pytest.approx(
        steps.epsilon(1e-3).epsilon, rel=1e-12
    )


@pytest.mark.slow
def test_the_shift_is_twice_as_long_under_substitution():
    made = law_of(sp.exp(-(r**2) / 8), 5).under("substitution")
    truth = compose(mechanisms.gaussian(sigma=1), 3).delta(1.5).delta
    assert compose(made, 3).delta(1.5).delta == pytest.approx(truth, rel=1e-12)


@pytest.mark.slow_cases("density3-2-turns many times")
@pytest.mark.parametrize(
    ("density", "dimension", "words"),
    [
        (r * sp.exp(-r), 3, "not shown to fall"),
        (1 / (1 + r**2), 2, "not finite"),
        (sp.Piecewise((1, r < 1), (0, True)), 2, "kinks"),
        (sp.exp(-r) * (2 + sp.sin(r)), 2, "turns many times"),
    ],
)
def test_what_is_refused(density, dimension, words):
    with pytest.raises(InputError, match=words):
        compose(law_of(density, dimension), 1).delta(0.5)


def test_what_no_mechanism_can_be():
    with pytest.raises(InputError, match="whole number"):
        Mechanism.radial(sp.exp(-r), r, R(1, 2))
    with pytest.raises(InputError, match="norm = 'l1'"):
        symdp.Mechanism.from_toml(FILE.replace("l2", "l1"))
    with pytest.raises(InputError, match="above 0"):
        Mechanism.radial(sp.exp(-r), r, 2, sensitivity=0)
    with pytest.raises(InputError, match="on vectors"):
        law_of(sp.exp(-r), 2).subsample("without_replacement", "1/4")
    with pytest.raises(InputError, match="no pair on a line is known"):
        compose(law_of((1 + r**2) ** -4, 2), 2).certify(1)


# δ(½) of one step and δ(1) of ten, s = D = 1: the pair in η = (r₁ − r₂)/D, whose M is a ratio of
# Bessel functions I, on a line of its own in mpmath.
@pytest.mark.parametrize(
    ("dimension", "one", "ten"),
    [
        (3, 0.0751740701028, 0.43904557597),
        pytest.param(5, 0.034104497558, 0.284976215528, marks=pytest.mark.slow),
        pytest.param(10, 0.00775776934949, 0.126660584401, marks=pytest.mark.slow),
    ],
)
def test_laplace_noise_is_proved_on_a_line(dimension, one, ten):
    for count, epsilon, truth in ((1, "1/2", one), (10, 1, ten)):
        proved = compose(law_of(sp.exp(-r), dimension), count).certify(sp.Rational(epsilon))
        assert proved.upper - proved.lower <= 1e-6 * truth
        printed = 5e-12  # half a unit of the last digit of the shortest truth
        assert proved.lower - printed <= truth <= proved.upper + printed


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_random_allocation_is_that_of_the_pair_in_one_variable(direction):
    own, known = (
        compose(noise.subsample("random_allocation", steps=4), 2).delta(0.3, direction=direction)
        for noise in (law_of(sp.exp(-r), 2), mechanisms.l2_laplace(s=1, d=2))
    )
    assert own.delta == pytest.approx(known.delta, rel=1e-10)
    assert own.lower <= known.upper
    assert known.lower <= own.upper


@pytest.mark.quick_cases("200")
@pytest.mark.parametrize("dimension", [200, 1000])
def test_many_dimensions_cost_no_digits(dimension):
    truth = compose(mechanisms.gaussian(sigma=2), 10).delta(1)
    found = compose(law_of(sp.exp(-(r**2) / 8), dimension), 10).delta(1)
    assert found.delta == pytest.approx(truth.delta, rel=1e-12)


def test_normal_noise_has_the_formulas_of_the_line():
    """Substitution moves it twice as far; the parameter x leaves that name to no variable."""
    x = sp.Symbol("x", positive=True)
    noise = Mechanism.radial(sp.exp(-(r**2) / (2 * x**2)), r, 7, sp.Rational(3, 2))
    for made, shift in ((noise, sp.Rational(3, 2)), (noise.under("substitution"), 3)):
        d = symdp.derive(made)
        t, size = d.cgf.tilt, next(iter(made.parameters.values()))
        assert sp.simplify(d.cgf.expression - t * (1 + t) * shift**2 / (2 * size**2)) == 0


@pytest.mark.slow
def test_large_losses_are_known_to_fewer_digits():
    """Φ(2) − e^{1150}Φ(−48) in 40 digits: logs of 1250 are rounded in their last digits."""
    found = compose(law_of(sp.exp(-1250 * r**2), 3), 1).delta(1150)
    assert found.lower <= 0.97612554381472851 <= found.upper


@pytest.mark.slow
def test_prv_bounds_hold_the_line():
    steps = compose(law_of(sp.exp(-r), 3, "1/5"), 4)
    bound, exact = steps.delta(0.5, method="prv"), steps.delta(0.5)
    assert bound.lower <= exact.delta <= bound.upper
