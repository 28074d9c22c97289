"""δ of pairs with atoms beside densities: against definitions, equivalent pairs and each other."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import pytest
import sympy as sp
from atom_truths import FAILING, LAPLACE, LAWS, clamped, drawn, step

import symdp
from symdp import compose, mechanisms
from symdp.errors import InputError
from symdp.prove.truth import privacy_profile


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_one_and_two_steps_are_their_definition(name):
    truth, one = LAWS[name][2](), step(name)
    with mp.workdps(25):
        for count, epsilon in ((1, "0.1"), (1, "-0.2"), (2, "0.1"), (2, "0.7")):
            right = truth.delta(mp.mpf(epsilon), count)
            steps = compose(one, count)
            answer = steps.delta(float(epsilon), direction="remove")
            assert answer.delta == pytest.approx(float(right), rel=1e-10, abs=1e-15)
            assert answer.lower <= right * (1 + mp.mpf(10) ** -13)
            assert right <= mp.mpf(answer.upper) * (1 + mp.mpf(10) ** -13) + mp.mpf(10) ** -300
            if count == 1 and right > 0:
                proved = steps.certify(Fraction(epsilon), 12, "remove")
                assert mp.mpf(proved.lower_decimal) <= right <= mp.mpf(proved.upper_decimal)
                profile = privacy_profile([(one.pair(), 1)], sp.Rational(epsilon), digits=12)
                assert abs(profile / right - 1) < mp.mpf(10) ** -12


@pytest.mark.slow
@pytest.mark.parametrize(("name", "epsilon"), [("clamped normal", "0.1"), ("often zero", "0.7")])
def test_three_steps_are_their_definition(name, epsilon):
    with mp.workdps(16):
        right = LAWS[name][2]().delta(mp.mpf(epsilon), 3)
    steps = compose(step(name), 3)
    answer = steps.delta(float(epsilon), direction="remove")
    assert answer.delta == pytest.approx(float(right), rel=1e-10)
    proved = steps.certify(Fraction(epsilon), 8, "remove")
    assert proved.lower * (1 - 1e-9) <= right <= proved.upper * (1 + 1e-9)


def test_many_steps_and_the_largest_loss_of_the_clamped_normal():
    """The sums of 100 losses by the enclosure in balls, the largest loss from the two tails."""
    one = step("clamped normal")
    many = compose(one, 100)
    proved = many.certify(2, 12)
    assert proved.lower_decimal.startswith("9.4356194315717")
    assert many.delta(2.0).delta == pytest.approx(proved.delta, rel=1e-11)
    assert many.delta(2.0).delta == pytest.approx(0.94356194, abs=5e-9)
    with mp.workdps(25):
        (p, q), _ = clamped(2, 1).atoms
        largest = mp.log(q / p)
    assert mp.nstr(largest, 12) == "0.571386465109"
    assert compose(one).epsilon(1e-9).epsilon == pytest.approx(float(largest), abs=1e-8)
    assert compose(one).epsilon(1e-9).epsilon <= largest
    assert compose(one).delta(0.5713864652).delta == 0.0


@pytest.mark.quick_cases("50")
@pytest.mark.parametrize("count", [1, 2, 7, 50])
def test_clamping_laplace_noise_outside_of_both_means_changes_nothing(count):
    """Where the loss is ±1 anyway, an atom takes the place of a tail."""
    cut, whole = (
        compose(m, count) for m in (symdp.Mechanism.from_toml(LAPLACE), mechanisms.laplace(b=1))
    )
    for epsilon in (0.3, 2.5):
        for one in ("remove", "add"):
            assert cut.delta(epsilon, direction=one).delta == pytest.approx(
                whole.delta(epsilon, direction=one).delta, rel=1e-11
            )


def test_atoms_alone_are_a_list():
    P, Q = (sp.Rational(2, 3), sp.Rational(1, 3)), (sp.Rational(1, 3), sp.Rational(2, 3))
    x = sp.Symbol("x")
    listed = symdp.Mechanism.from_pair(P, Q, x, {"points": [0, 1]})
    atoms = dict(enumerate(zip(P, Q, strict=True)))
    beside = symdp.Mechanism.from_pair(sp.S.Zero, sp.S.Zero, x, (0, 1), atoms=atoms)
    for count in (1, 6):
        for epsilon in (0.2, 0.9):
            one, other = (compose(m, count).delta(epsilon).delta for m in (beside, listed))
            assert one == pytest.approx(other, rel=1e-13)


@pytest.mark.slow_cases(*(str(seed) for seed in range(4, 24)), "0", "3")
@pytest.mark.parametrize("seed", [str(seed) for seed in range(24)])
def test_random_pairs_in_both_directions_and_sampled(seed):
    with mp.workdps(30):
        made, excess = drawn(int(seed))
        q = mp.mpf(1) / 10
        sampled = compose(made.subsample("poisson", "1/10"))
        for epsilon in (0.05, 0.6):
            scale = mp.exp(mp.mpf(epsilon))
            for side, swapped in (("remove", False), ("add", True)):
                right = excess(scale, swapped)
                answer = compose(made).delta(epsilon, direction=side)
                assert answer.delta == pytest.approx(float(right), rel=1e-11, abs=1e-15)
                proved = compose(made).certify(epsilon, 10, side)
                assert mp.mpf(proved.lower_decimal) <= right <= mp.mpf(proved.upper_decimal)
            # (1 − q)Q + qP against Q: q times δ of the pair at a later ε.
            right = q * excess((scale - 1 + q) / q)
            answer = sampled.delta(epsilon, direction="remove")
            assert answer.delta == pytest.approx(float(right), rel=1e-11, abs=1e-15)


def test_a_mass_that_q_lacks_is_an_infinite_loss():
    failing = symdp.Mechanism.from_toml(FAILING)
    assert symdp.derive(failing).mass_at_infinity == sp.Rational(1, 100)
    assert symdp.derive(failing, "add").mass_at_infinity == 0
    # Nothing else of the loss lies above 1 + log(99/100).
    for count in (1, 5):
        steps = compose(failing, count)
        assert steps.delta(5.1).delta == pytest.approx(1 - 0.99**count, rel=1e-13)
    with pytest.raises(InputError, match=r"infinity|0\.01"):
        compose(failing).epsilon(0.005)
