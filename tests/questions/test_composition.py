"""The questions people ask of a composition: inputs, inverses, directions, arrays."""

import math
from dataclasses import replace
from typing import get_args, get_overloads

import mpmath
import numpy as np
import pytest

from symdp import Composition, compose, mechanisms
from symdp.arguments import MethodName
from symdp.errors import InputError
from symdp.methods import names

STEPS = compose(mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"), 1000)


@pytest.mark.slow_cases("remove-1e-100", "remove-1e-300", "both-1e-100", "both-1e-300")
@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-5, 1e-12, 1e-100, 1e-300])
@pytest.mark.parametrize("direction", ["remove", "add", "both"])
def test_epsilon_inverts_delta(delta, direction):
    found = STEPS.epsilon(delta, direction=direction)
    back = STEPS.delta(found.epsilon, direction=direction)
    if found.epsilon > 0:
        assert back.log_delta == pytest.approx(math.log(delta), abs=1e-10)
        assert found.lower <= found.epsilon <= found.upper
        assert found.upper - found.lower < 1e-8
    else:
        assert back.delta <= delta


def test_epsilon_is_not_negative():
    weak = compose(mechanisms.gaussian(sigma=1000), 1)
    found = weak.epsilon(0.1)
    assert found.epsilon == 0.0
    assert "already" in found.advice


def test_both_takes_the_larger_direction():
    remove, add = (STEPS.delta(0.5, direction=d) for d in ("remove", "add"))
    both = STEPS.delta(0.5)
    assert both.log_delta == max(remove.log_delta, add.log_delta)
    assert both.direction == "remove"


def test_profile_is_decreasing_and_convex_in_exp_epsilon():
    grid = np.linspace(-1.0, 3.0, 9)
    curve = STEPS.delta(grid)
    assert (np.diff(curve.delta) < 0).all()
    slopes = np.diff(curve.delta) / np.diff(np.exp(grid))
    assert (np.diff(slopes) > -1e-12).all()


def test_reversed_profile():
    """δ_{Q,P}(−ε) = 1 − e^{−ε}(1 − δ_{P,Q}(ε))."""
    for epsilon in (0.1, 0.7, 2.0):
        forward = STEPS.delta(epsilon, direction="remove").delta
        backward = STEPS.delta(-epsilon, direction="add").delta
        assert backward == pytest.approx(1 - math.exp(-epsilon) * (1 - forward), rel=1e-13)


def test_arrays_in_arrays_out():
    curve = STEPS.delta(np.asarray([0.5, 1.0]))
    assert len(curve) == 2
    assert curve.delta[1] == STEPS.delta(1.0).delta
    assert (curve.lower <= curve.delta).all()
    assert (curve.delta <= curve.upper).all()
    assert STEPS.epsilon([1e-5, 1e-6]).epsilon.shape == (2,)
    assert [p["epsilon"] for p in curve.to_json()["points"]] == [0.5, 1.0]


def test_below_the_double_range():
    far = compose(mechanisms.gaussian(sigma=1), 1).delta(60.0)
    with mpmath.workdps(40):
        tails = mpmath.erfc(59.5 / mpmath.sqrt(2)), mpmath.erfc(60.5 / mpmath.sqrt(2))
        exact = (tails[0] - mpmath.exp(60) * tails[1]) / 2
        assert far.log_delta == pytest.approx(float(mpmath.log(exact)), abs=1e-11)
        shown = far.to_json()["delta"]
        assert abs(mpmath.mpf(shown) / exact - 1) < 1e-10
    assert far.delta == 0.0


@pytest.mark.slow_cases("1000.0")
@pytest.mark.parametrize("epsilon", [61.0, 120.0, 1000.0])
def test_bounds_below_the_double_range_are_rounded_outward(epsilon):
    """Subnormal, and smaller than any double."""
    tiny = compose(mechanisms.gaussian(sigma=2), 10)
    exact = tiny.delta(epsilon)
    assert exact.log_upper < math.log(2.3e-308)
    with mpmath.workdps(30):
        assert exact.lower < mpmath.exp(exact.log_lower)
        assert mpmath.exp(exact.log_upper) < exact.upper
        proved = tiny.delta(epsilon, method="moments")
        assert mpmath.exp(proved.log_delta) < proved.delta


@pytest.mark.parametrize(
    ("call", "culprit"),
    [
        (lambda: STEPS.delta(math.nan), "epsilon = nan"),
        (lambda: STEPS.delta(math.inf), "epsilon = inf"),
        (lambda: STEPS.delta("one"), "not a number"),
        (lambda: STEPS.delta(1.0, method="contur"), "contour"),
        (lambda: STEPS.delta(1.0, method="msd"), "order"),
        (lambda: STEPS.delta(1.0, method="msd99"), "highest order"),
        (lambda: STEPS.delta(1.0, direction="up"), "direction"),
        (lambda: STEPS.epsilon(0.0), "between 0 and 1"),
        (lambda: STEPS.epsilon(1.0), "between 0 and 1"),
        (lambda: compose(mechanisms.laplace(b=1), 0), "positive integer"),
        (lambda: compose(mechanisms.laplace(b=1), 2.5), "positive integer"),
        (lambda: compose(mechanisms.laplace(b=1), True), "positive integer"),
        (lambda: compose(mechanisms.laplace(), 3), "b"),
        (lambda: compose([]), "at least one"),
    ],
)
def test_bad_input_names_the_culprit(call, culprit):
    with pytest.raises(InputError, match=culprit):
        call()


def test_no_finite_epsilon_below_the_mass_at_infinity():
    import sympy as sp

    from symdp.model.mechanism import Mechanism

    x = sp.Symbol("x", real=True)
    uniform = compose(Mechanism.additive(sp.Rational(1, 4), x, support=(-2, 2)), 1)
    assert uniform.delta(3.0).delta == pytest.approx(0.25, rel=1e-14)
    with pytest.raises(InputError, match="no finite epsilon"):
        uniform.epsilon(0.2)


def test_compositions_of_the_same_steps_are_equal():
    noise, sample = mechanisms.gaussian(sigma=4), mechanisms.laplace(b=8)
    both = compose([(noise, 3), (sample, 20)])
    assert both == compose(sample, 20) + compose(noise, 3)
    assert len({both, compose([(sample, 20), (noise, 3)])}) == 1
    assert both != compose([(noise, 3), (sample, 21)])
    assert both != compose([(noise, 3), (mechanisms.laplace(b=9), 20)])
    assert both != "both"


def test_equal_answers_may_take_other_times():
    steps = compose(mechanisms.gaussian(sigma=2), 3)
    answer = steps.epsilon(1e-5)
    assert answer == replace(answer, seconds=answer.seconds + 1.0)
    assert answer != steps.epsilon(2e-5)


def test_an_answer_is_one_line():
    steps = compose(mechanisms.gaussian(sigma=2), 3)
    assert repr(steps.delta(1.5)) == f"<Guarantee {steps.delta(1.5)}>"
    assert len(repr(steps.delta(1.5))) < 100
    assert repr(steps.certify(1.5)).startswith("<Certificate (ε, δ) = (1.5, 0.0288822455")


def test_types_tell_a_number_from_an_array():
    """What a type checker reads: the annotations of the overloads."""
    for asked in (Composition.delta, Composition.epsilon):
        one, many = get_overloads(asked.__wrapped__)
        assert one.__annotations__["return"] == "Guarantee"
        assert many.__annotations__["return"] == "Curve"
        assert one.__annotations__["method"] == "MethodName"
    assert set(names()) | {"truth", "certified"} <= set(get_args(MethodName))


def test_renyi_divergences_of_several_orders():
    steps = compose(mechanisms.gaussian(sigma=2), 3)
    assert steps.renyi([2, 8]).tolist() == pytest.approx([2 * 3 / 8, 8 * 3 / 8], rel=1e-12)
    with pytest.raises(InputError, match="orders are 0 or more"):
        steps.renyi([2, -1])
