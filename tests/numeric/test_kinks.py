"""What lies beyond a line is bounded: expansions of φ hold φ, and answers hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import symdp
from symdp import compose, mechanisms
from symdp.methods.table import accountant
from symdp.numeric.beyond import kinks
from symdp.numeric.beyond.kinks import CENTRE, MOST_NODES, STEEPNESS, KinkBound, binned_sums
from symdp.numeric.contour import on_own_lines
from symdp.numeric.cut_off import mesh_answer

LINE = 'name = "noise"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[noise]\nnormalize = true\n'
HUBER = symdp.Mechanism.from_toml(
    LINE + 'density = "Piecewise((exp(-x**2/2), abs(x) < 1), (exp(1/2 - abs(x)), True))"'
)
ATOMS = symdp.Mechanism.from_toml("""
    name = "atoms beside a density"
    variable = "x"
    support = [0, 3]
    [pair]
    P = "Piecewise((2/5, x < 1), (0, x < 2), (2/5, True))"
    Q = "Piecewise((21/400*(10 - x**2), x < 1), (0, x < 2), (21/400*(10 - x**2), True))"
    [pair.atoms]
    "3/2" = ["1/20", "0"]
    "0" = ["3/20", "3/10"]
""")
# losses that rise and fall, atoms, ends, and none of them
LAWS = {
    "student": mechanisms.student_t(nu=3, s=1),
    "huber": HUBER,
    "huber sampled": HUBER.subsample("poisson", "1/10"),
    "pair with atoms": ATOMS,
    "laplace sampled": mechanisms.laplace(b=2).subsample("poisson", "1/10"),
    "truncated": symdp.Mechanism.from_toml(
        'name = "t"\nvariable = "x"\nsupport = [-3, 3]\n[noise]\n'
        'density = "exp(-x**2/2)"\nnormalize = true\n'
    ),
    "skewed": symdp.Mechanism.from_toml(LINE + 'density = "1/(exp(x/2) + exp(-x))"').subsample(
        "poisson", "1/4"
    ),
}


@pytest.mark.quick_cases("huber")
@pytest.mark.parametrize("name", LAWS)
def test_an_expansion_holds_the_characteristic_function(name):
    """Between two places and far beyond; where it is split well, it is hardly larger than φ."""
    law = compose(LAWS[name], 2).law("remove")
    for tilt in (0.0, 0.3, -0.4):
        (part,) = law.tilted(tilt)
        expansion = part.expansion(250.0 / part.widest)
        y = np.geomspace(25.0, 3000.0, 200) / part.widest
        (finer,) = law.tilted(tilt, y[-1])
        modulus = np.exp(finer.log_characteristic(y).real)
        bound = expansion.main(y) + expansion.residual_size(y)
        assert (modulus <= bound * (1.0 + 1e-9)).all()
        if name == "skewed":  # at the ends of its range the density is a power, that no panel ends
            continue
        far = y > 500.0 / part.widest
        assert (modulus[far] / bound[far]).max() > 0.5
        assert expansion.residual_size(y)[far].max() < 0.01 * bound[far].min()


def laplace_moment(z):
    """E e^{zL} of a Laplace step of scale 1: atoms at ±1, and e^{−(1 − ℓ)/2}/4 between them."""
    atoms = 0.5 * np.exp(z) + 0.5 * np.exp(-1.0 - z)
    return atoms + np.exp(-0.5) * np.sinh(z + 0.5) / (2.0 * (z + 0.5))


def change(count, tilt, reach, epsilon):
    """2 ∫ (c(y/30T) − c(y/T)) Re of the integrand from 0 on by a plain sum."""
    y = np.arange(0.0, 30.0 * reach, 0.02)
    z = tilt + 1j * y
    lacking = 0.5 * special.erfc(STEEPNESS * (CENTRE - y / reach))
    lacking -= 0.5 * special.erfc(STEEPNESS * (CENTRE - y / (30.0 * reach)))
    power = (laplace_moment(z) / laplace_moment(tilt)) ** count
    terms = (power * np.exp(-1j * y * epsilon) / (z * (1.0 + z))).real * lacking
    return 2.0 * 0.02 * float(terms.sum())


@pytest.mark.quick_cases("5")
@pytest.mark.parametrize("count", [1, 2, 5])
def test_what_a_cut_off_changes_is_bounded(count):
    """Next to a kink, an odd number less than the count, and away from it; atoms are not listed."""
    law = compose(mechanisms.laplace(b=1), count).law("remove")
    bound = KinkBound(law, 0.25)
    for reach in (60.0, 300.0):
        for epsilon in (count - 2.0, count - 1.9, count - 1.3, count - 1.0, count - 0.4):
            seen = abs(change(count, 0.25, reach, epsilon))
            assert seen <= bound.left_out(reach, epsilon) + 1e-12
    assert bound.left_out(300.0, count - 1.0) < 1e-10
    assert bound.left_out(300.0, count - 2.0) > 1e-6


@pytest.mark.slow_cases("huber")
@pytest.mark.parametrize(
    ("mechanism", "count", "epsilon"),
    [
        pytest.param(HUBER, 2, 0.9, id="huber"),
        pytest.param(HUBER, 10, 5.0, id="huber, ten", marks=pytest.mark.slow),
        pytest.param(LAWS["huber sampled"], 10, 0.3, id="huber sampled", marks=pytest.mark.slow),
        pytest.param(LAWS["laplace sampled"], 5, 0.1, id="laplace sampled"),
        pytest.param(ATOMS, 3, 1.0, id="pair with atoms", marks=pytest.mark.slow),
        pytest.param(LAWS["student"], 5, 1.5, id="student", marks=pytest.mark.slow),
        pytest.param(LAWS["truncated"], 2, 0.5, id="truncated", marks=pytest.mark.slow),
    ],
)
def test_few_steps_are_narrow_and_hold_the_mesh(mechanism, count, epsilon):
    """The mesh bounds what lies beyond its end otherwise: by the mass of losses near ε."""
    law = compose(mechanism, count).law("remove")
    answer = accountant("contour").log_delta(law, epsilon)
    assert answer.kind == "exact"
    assert answer.route in ("contour", "two_steps")
    assert answer.log_upper - answer.log_lower < 1e-9
    mesh = mesh_answer(law, epsilon)
    assert mesh.log_lower <= answer.log_upper
    assert answer.log_lower <= mesh.log_upper


@pytest.mark.slow
def test_at_a_kink_the_mass_near_it_bounds_the_change():
    """ε is a sum of atoms: no smoothness helps, and no answer is narrower than it may be."""
    steps = [(mechanisms.randomized_response(epsilon_0=1), 5), (HUBER, 3)]
    law = compose(steps).law("remove")
    answer, is_bounded = on_own_lines(law, 2.0)
    assert is_bounded
    assert 1e-9 < answer.log_upper - answer.log_lower < 1e-5
    assert math.exp(answer.log_delta) == pytest.approx(0.544073902872, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_bins_hold_all_sums_of_kinks(seed):
    """Whatever a distance is, no less lies within it than all sums one by one say."""
    random = np.random.default_rng(seed)
    counts = (2, 3) if seed % 2 else (4,)
    steps = [(random.normal(0.0, 3.0, 7), random.normal(-2.0, 2.0, 7)) for _ in counts]
    sums = [(0.0, 0.0)]
    for (loss, log_size), count in zip(steps, counts, strict=True):
        share = log_size - special.logsumexp(log_size)
        for _ in range(count):
            sums = [
                (at + one, size + log)
                for at, size in sums
                for one, log in zip(loss, share, strict=True)
            ]
    loss, log_size = np.asarray(sums).T
    binned = binned_sums(steps, counts, 0.02)
    assert binned.size.sum() == pytest.approx(1.0, abs=1e-11)
    for epsilon in random.uniform(loss.min(), loss.max(), 20):
        for distance in (0.0, 0.01, 0.1, 1.0):
            exact = np.exp(log_size[np.abs(loss - epsilon) <= distance]).sum()
            within = binned.size[binned.distance(epsilon) <= distance].sum()
            wider = np.exp(log_size[np.abs(loss - epsilon) <= distance + 0.05]).sum()
            assert exact <= within <= wider + 1e-11


@pytest.mark.parametrize(("width", "is_met"), [(0.5, True), (0.02, True), (1e-9, False)])
def test_bins_are_as_narrow_as_asked_unless_they_are_many(width, is_met):
    random = np.random.default_rng(8)
    steps = [(random.normal(0.0, 3.0, 7), random.normal(-2.0, 2.0, 7)) for _ in range(2)]
    binned = binned_sums(steps, (2, 3), width)
    bins = (binned.high - binned.low)[:-1]
    assert bool(bins.max() <= width * (1 + 1e-9)) is is_met
    assert binned.size.size <= MOST_NODES + 8
    losses = [loss for (loss, _), count in zip(steps, (2, 3), strict=True) for _ in range(count)]
    assert binned.low[0] <= sum(map(np.min, losses)) + 1e-9
    assert binned.high[-2] >= sum(map(np.max, losses)) - 1e-9


def test_beside_a_zero_of_the_main_part_growth_is_infinite_without_a_warning():
    class Sizes:
        def main(self, y):
            return np.asarray([1.0, 1e-320, 0.0])

        def residual_size(self, y):
            return np.asarray([0.5, 1.0, 0.0])

    with np.errstate(all="raise", divide="ignore", invalid="ignore"):
        _, _, growth = kinks._log_sizes(Sizes(), np.ones(3))
    assert growth.tolist() == [math.log1p(0.5), math.inf, 0.0]
