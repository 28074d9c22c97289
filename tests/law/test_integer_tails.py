"""Masses with heavy tails on the integers, against sums over many of them."""

import math
from dataclasses import replace

import numpy as np
import pytest

import symdp
from symdp.law.compile import loss_law
from symdp.law.integer_tails import with_smooth_tails

RANGE = 400_000  # beyond it 1/(1 + k²)² has a mass of 1e-17


def noise(formula, support="integers"):
    return symdp.loads(
        f'name = "noise"\nvariable = "k"\nsupport = "{support}"\n'
        f'[noise]\ndensity = "{formula}"\nsensitivity = 1\nnormalize = true\nshift = "exactly"\n'
    )


def profile(masses, moved, epsilon):
    """Return δ(ε) of one step from its definition."""
    return float(np.maximum(masses - np.exp(epsilon) * moved, 0.0).sum() / masses.sum())


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_one_step_of_a_heavy_mass(epsilon):
    k = np.arange(-RANGE, RANGE + 1.0)
    masses, moved = ((1 + (k - shift) ** 2) ** -2.0 for shift in (0, 1))
    answer = symdp.compose(noise("1/(1 + k**2)**2"), 1).delta(epsilon)
    assert answer.kind == "exact"
    assert answer.delta == pytest.approx(profile(masses, moved, epsilon), rel=1e-12)


def test_tails_become_densities_where_masses_are_smooth():
    pieces = loss_law(noise("1/(1 + k**2)**2"), "remove").step.pieces
    assert [piece.integer for piece in pieces].count(False) == 2


def test_masses_that_depend_on_parity_stay_on_integers():
    (middle, *_) = loss_law(noise("1/(1 + k**2)**2"), "remove").step.pieces
    whole = replace(middle, lower=-math.inf, upper=math.inf)
    assert len(with_smooth_tails(whole)) == 3

    def wavy(k):
        return middle.log_p(k) + np.log(3.0 + np.cos(np.pi * k))

    assert with_smooth_tails(replace(whole, log_p=wavy)) == [replace(whole, log_p=wavy)]


def test_a_mean_whose_terms_are_no_smooth_sum_next_to_a_pole():
    """Negative binomial masses have gamma functions of k + 47, with poles left of the first k."""
    steps = symdp.compose(symdp.mechanisms.negative_binomial(r=47, p="0.963"), 500)
    answer = steps.epsilon(4.86e-7, direction="add")
    assert answer.epsilon_lower <= answer.epsilon <= answer.epsilon_upper
    back = steps.delta(answer.epsilon, direction="add")
    assert back.lower <= 4.86e-7 * (1 + 1e-9)
    assert back.upper >= 4.86e-7 * (1 - 1e-9)
