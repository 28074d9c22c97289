"""Sums whose density lies between atoms: cells against integrals over steps, grids and balls."""

import math

import numpy as np
import pytest

import symdp
from symdp import mechanisms
from symdp.numeric.contour import epsilons_of_line, own_lines
from symdp.numeric.few.between_atoms import answer_between_atoms, cells_of
from symdp.numeric.saddle_point import Strip


def sampled(b, rate, count):
    return symdp.compose(mechanisms.laplace(b=b).subsample("poisson", rate), count)


def atoms_and_density(b, rate, direction, panels):
    """Losses and masses of one step: both ends, and Gauss nodes where the output is in (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(32)
    edges = np.linspace(0.0, 1.0, panels + 1)
    x = (edges[:-1, None] + np.diff(edges)[:, None] * 0.5 * (nodes + 1.0)).ravel()
    weight = (np.diff(edges)[:, None] * 0.5 * weights).ravel()

    def law(x):
        ratio = 1.0 - rate + rate * np.exp((np.abs(x) - np.abs(x - 1.0)) / b)
        return np.log(ratio), np.exp(-np.abs(x) / b) / (2.0 * b)

    loss, q = law(x)
    ends, _ = law(np.asarray([0.0, 1.0]))
    q_of_ends = np.asarray([0.5, 0.5 * math.exp(-1.0 / b)])
    losses = np.concatenate([ends, loss])
    masses = np.concatenate([q_of_ends, q * weight])
    if direction == "remove":
        return losses, masses * np.exp(losses)
    return -losses, masses


def delta_of_three(b, rate, direction, epsilon):
    """δ of three steps: all sums of three nodes, of panels so short that kinks hardly count."""
    losses, masses = atoms_and_density(b, rate, direction, 12)
    two = np.add.outer(losses, losses).ravel()
    mass = np.multiply.outer(masses, masses).ravel()
    total = 0.0
    for loss, share in zip(losses, masses, strict=True):
        above = two + loss - epsilon
        total += share * float(mass @ np.where(above > 0.0, -np.expm1(-above), 0.0))
    return total


def by_cells(composition, epsilon, direction):
    law = composition.law(direction)
    tilt, _, _ = epsilons_of_line(law, epsilon, Strip.RIGHT)
    return answer_between_atoms(law, epsilon, tilt)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("b", "rate", "epsilon"), [(5, 0.01, 0.004), (1, 0.3, 0.5)])
def test_three_steps_are_sums_of_three_nodes(b, rate, epsilon, direction):
    expected = delta_of_three(b, rate, direction, epsilon)
    answer = sampled(b, rate, 3).delta(epsilon, direction=direction)
    assert answer.delta == pytest.approx(expected, rel=1e-5)  # nodes beside kinks: 1e-6
    assert answer.upper - answer.lower < 1e-11 * answer.delta


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    ("b", "rate", "count", "epsilon"),
    [
        (5, 0.01, 100, 0.02),
        (2, 0.3, 30, 1.5),
        (3, 0.25, 12, 0.6),
        (8, 0.001, 40, 0.002),
        (0.6, 0.1, 10, 0.5),
    ],
)
def test_losses_rounded_to_a_grid_enclose_it(b, rate, count, epsilon, direction):
    """Every loss down or up to a grid that has both atoms: the powers of an FFT enclose δ."""
    losses, masses = atoms_and_density(b, rate, direction, 400)
    low, high = losses.min(), losses.max()
    parts = 1 << 12
    step = (high - low) / parts
    place = (losses - low) / step
    size = 1 << (count * parts).bit_length()
    found = []
    for index in (np.floor(place + 1e-9), np.ceil(place - 1e-9)):
        grid = np.bincount(index.astype(int), masses, size)
        power = np.fft.irfft(np.fft.rfft(grid) ** count, size)[: count * parts + 1]
        above = count * low + step * np.arange(power.size) - epsilon
        found.append(float(power @ np.where(above > 0.0, -np.expm1(-above), 0.0)))
    answer = by_cells(sampled(b, rate, count), epsilon, direction)
    assert answer is not None
    assert found[0] < math.exp(answer.log_lower)
    assert math.exp(answer.log_upper) < found[1]
    assert found[1] - found[0] < 0.05 * found[1]


def test_a_proof_holds_the_answer():
    composition = sampled(5, "1/100", 10)
    answer = composition.delta(0.01)
    proof = composition.certify(0.01)
    assert answer.upper >= proof.lower
    assert answer.lower <= proof.upper


def test_substitution_has_a_kink_halfway():
    step = mechanisms.laplace(b=3).subsample("poisson", "1/4")
    substituted = symdp.compose(step.under("substitution"), 10)
    assert cells_of(substituted.law("remove")) == 2
    assert cells_of(symdp.compose(step, 10).law("remove")) == 1
    before = by_cells(substituted, 1.0, "remove")
    assert before is not None
    assert before.log_upper - before.log_lower < 1e-11


@pytest.mark.parametrize("step", [mechanisms.gaussian(sigma=2), mechanisms.logistic(s=2)])
def test_losses_without_atoms_have_no_cells(step):
    step = step.subsample("poisson", "1/10")
    assert cells_of(symdp.compose(step, 10).law("remove")) is None


def test_a_density_that_is_not_smooth_enough_is_declined():
    """Little noise: the density of a loss rises e⁸-fold from one atom to the next."""
    composition = sampled(0.25, 0.1, 10)
    assert by_cells(composition, 1.2, "remove") is None


def test_twice_as_many_polynomials_agree_with_a_line():
    """Noise b = 1/2: a line cut off smoothly shares nothing with the cells but the nodes."""
    composition = sampled(0.5, 0.1, 10)
    law = composition.law("remove")
    cells = by_cells(composition, 1.2, "remove")
    line, _ = own_lines(law, 1.2)
    assert cells.log_upper - cells.log_lower < 1e-11
    assert cells.log_lower <= line.log_upper
    assert line.log_lower <= cells.log_upper
