"""Calibration: closed forms, the neighbour that misses, every kind of parameter, errors."""

import math

import mpmath
import pytest
import sympy as sp

import symdp
from symdp import calibrate, compose, mechanisms
from symdp.errors import InputError
from symdp.model.mechanism import Mechanism
from symdp.questions.composition import Composition
from symdp.questions.value_search import grid_of

TARGET = {"epsilon": 1.0, "delta": 1e-5}


def exact_sigma(count, epsilon, delta):
    """Return the analytic Gaussian calibration at 40 digits: δ(ε; √n/σ) = δ solved for σ."""
    with mpmath.workdps(40):
        epsilon, delta = mpmath.mpf(epsilon), mpmath.mpf(delta)

        def excess(mu):
            tail = mpmath.ncdf(-epsilon / mu + mu / 2)
            return tail - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2) - delta

        return mpmath.sqrt(count) / mpmath.findroot(
            excess, (0.01, 20), solver="bisect", maxsteps=200
        )


@pytest.mark.quick_cases("1-1-1e-05-12", "100-8-1e-09-10")
@pytest.mark.parametrize(
    ("count", "epsilon", "delta", "digits"),
    [(1, 1, 1e-5, 12), (10, 0.5, 1e-6, 10), (100, 8, 1e-9, 10), (1000, 1, 1e-3, 6)],
)
def test_gaussian_noise_is_the_analytic_calibration_rounded_up(count, epsilon, delta, digits):
    found = calibrate(
        mechanisms.gaussian, "sigma", count, epsilon=epsilon, delta=delta, digits=digits
    )
    with mpmath.workdps(40):
        sigma = exact_sigma(count, epsilon, delta)
        value = mpmath.mpf(int(found.value.p)) / int(found.value.q)
        step = mpmath.mpf(int(found.step.p)) / int(found.step.q)
        assert sigma <= value
        # The bound's own margin, of about 1e-13, may cost part of one more step at 12 digits.
        assert value - sigma <= step * (1 if digits < 12 else 2)
        assert step <= value * mpmath.mpf(10) ** (1 - digits) * 10


@pytest.mark.quick_cases("mechanism3-n-None--1")
@pytest.mark.parametrize(
    ("mechanism", "parameter", "count", "safe_side"),
    [
        pytest.param(mechanisms.laplace, "b", 30, 1, marks=pytest.mark.slow),
        pytest.param(
            mechanisms.gaussian(sigma=1).subsample("poisson", "q"),
            "q",
            100,
            -1,
            marks=pytest.mark.slow,
        ),
        (mechanisms.randomized_response, "epsilon_0", 30, -1),
        (mechanisms.gaussian(sigma=20), "n", None, -1),
    ],
)
def test_the_value_meets_the_target_and_its_neighbour_does_not(
    mechanism, parameter, count, safe_side
):
    found = calibrate(mechanism, parameter, count, digits=5, **TARGET)
    assert found.neighbour == found.value - safe_side * found.step
    for value, meets in ((found.value, True), (found.neighbour, False)):
        if parameter == "n":
            steps = compose(mechanism, int(value))
        else:
            steps = compose(mechanism(**{parameter: value}), count)
        uppers = [steps.delta(1.0, direction=side).upper for side in ("remove", "add")]
        assert (max(uppers) <= 1e-5) == meets
    assert found.guarantee.upper <= 1e-5 < found.missed.upper


def test_the_number_of_steps_against_the_closed_form():
    found = calibrate(mechanisms.gaussian(sigma=20), "n", **TARGET)
    count = int(found.value)
    assert found.step == 1
    assert exact_sigma(count, 1, 1e-5) <= 20 < exact_sigma(count + 1, 1, 1e-5)


def test_one_laplace_step_against_its_closed_form():
    """δ(ε) = 1 − e^{(ε − 1/b)/2} for one step."""
    found = calibrate(mechanisms.laplace, "b", 1, epsilon=0.5, delta=0.01, digits=8)
    with mpmath.workdps(30):
        b = 1 / (mpmath.mpf("0.5") - 2 * mpmath.log(mpmath.mpf("0.99")))
        assert 0 <= mpmath.mpf(int(found.value.p)) / int(found.value.q) - b <= float(found.step)


def test_a_bound_calibrates_to_more_noise():
    exact = calibrate(mechanisms.gaussian, "sigma", 50, digits=5, **TARGET)
    bound = calibrate(mechanisms.gaussian, "sigma", 50, digits=5, method="moments", **TARGET)
    assert bound.value > exact.value
    assert bound.guarantee.kind == "bound"


def coin():
    """A bit that is told truly with probability p: no privacy at p = 0 or 1, all of it at 1/2."""
    p = sp.Symbol("p", positive=True)
    return Mechanism.from_pair(
        [p, 1 - p], [1 - p, p], sp.Symbol("x"), {"points": [0, 1]},
        name="coin", parameters={"p": "open probability"},
    )  # fmt: skip


def test_a_parameter_that_turns_has_a_value_that_meets_the_target_and_a_note():
    # δ = max(p, 1 − p) − e^ε min(p, 1 − p)
    truth = (0.1 + math.exp(0.5)) / (1 + math.exp(0.5))
    found = calibrate(coin(), "p", 1, epsilon=0.5, delta=0.1, digits=6)
    assert 0 <= float(found) - (1 - truth) <= float(found.step)
    assert "not monotone" in found.note
    assert "note" in found.to_json()
    found = calibrate(coin(), "p", 1, epsilon=0.5, delta=0.1, digits=6, between=("1/2", "99/100"))
    assert not found.note
    assert 0 <= truth - float(found) <= float(found.step)


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: calibrate(mechanisms.gaussian(sigma=1), "n", **TARGET), ["no value", "1e-05"]),
        (
            lambda: calibrate(
                mechanisms.gaussian, "sigma", 10, between=(20, 30), digits=5, **TARGET
            ),
            ["sigma", "every value"],
        ),
        (lambda: calibrate(mechanisms.gaussian, "sigm", 10, **TARGET), ["did you mean 'sigma'"]),
        (lambda: calibrate(mechanisms.gaussian, "sigma", **TARGET), ["give n"]),
        (lambda: calibrate(mechanisms.gaussian(sigma=1), "n", 5, **TARGET), ["leave n out"]),
        (lambda: calibrate(mechanisms.gaussian(sigma=1), "sigma", 5, **TARGET), ["bound to 1"]),
        (lambda: calibrate(mechanisms.student_t, "s", 5, **TARGET), ["nu"]),
        (lambda: calibrate(mechanisms.gaussian, "sigma", 0, **TARGET), ["positive integer"]),
        (lambda: calibrate(mechanisms.gaussian, "sigma", 5, epsilon=1, delta=0), ["delta = 0"]),
        (lambda: calibrate(mechanisms.gaussian, "sigma", 5, epsilon=1, delta=1), ["delta = 1"]),
        (
            lambda: calibrate(mechanisms.gaussian, "sigma", 5, epsilon=math.nan, delta=0.1),
            ["epsilon = nan"],
        ),
        (lambda: calibrate(mechanisms.gaussian, "sigma", 5, digits=3, **TARGET), ["digits"]),
        (
            lambda: calibrate(mechanisms.gaussian, "sigma", 5, between=(3, 2), **TARGET),
            ["lower one first"],
        ),
        (
            lambda: calibrate(mechanisms.gaussian, "sigma", 5, method="msd:1", **TARGET),
            ["msd:1", "upper bound", "contour"],
        ),
    ],
)
def test_bad_input_is_one_line_that_names_the_culprit(call, parts):
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_on_the_command_line(shell):
    line = "calibrate gaussian --parameter sigma -n 10 --epsilon 1 --delta 1e-5 --digits 6"
    answer = shell(f"{line} --json").json
    assert answer["parameter"] == "sigma"
    assert answer["value"] == 11.7973
    assert answer["upper"] <= answer["target_delta"] == 1e-5
    assert answer["count"] == 10
    assert {"epsilon", "delta", "lower", "kind", "method", "direction", "seconds"} <= set(answer)
    assert shell(line).out.startswith("sigma = 11.7973\n")
    steps = shell("calibrate gaussian sigma=20 --parameter n --epsilon 1 --delta 1e-5 --json").json
    assert steps["value"] == steps["count"] == 28


@pytest.mark.slow
@pytest.mark.parametrize("rate", ["", "--rate q"])
def test_a_sampling_rate_on_the_command_line(shell, rate):
    line = "calibrate gaussian sigma=1 --sampling poisson --parameter q -n 50 --digits 4 --json"
    answer = shell(f"{line} --epsilon 1 --delta 1e-5 {rate}").json
    mechanism = symdp.mechanisms.gaussian(sigma=1).subsample("poisson", answer["value"])
    assert compose(mechanism, 50).delta(1.0).upper <= 1e-5


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("calibrate gaussian --parameter s -n 1 --epsilon 1 --delta 1e-5", ["'s'", "sigma"]),
        ("calibrate gaussian sigma=1 --parameter n --epsilon 1 --delta 1e-5", ["no value"]),
        ("calibrate gaussian -n 1 --epsilon 1 --delta 1e-5", ["--parameter"]),
        ("calibrate gaussian --parameter sigma -n 1 --epsilon 1 --delta 2", ["--delta"]),
    ],
)
def test_errors_of_the_command_line(shell, line, parts):
    ran = shell(line)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    for part in parts:
        assert part in ran.err


def test_values_far_below_the_target_are_passed_by_a_bound(monkeypatch):
    """At the first rates δ is e^−118 and takes seconds: nothing is asked of it but to be small."""
    asked: list[float] = []
    delta = Composition.delta

    def counted(self, epsilon, *options):
        answer = delta(self, epsilon, *options)
        asked.append(answer.log_delta)
        return answer

    monkeypatch.setattr(Composition, "delta", counted)
    noise = mechanisms.gaussian(sigma=3).subsample("poisson", "q")
    calibrated = calibrate(noise, "q", 30, epsilon=1, delta=1e-5)
    assert min(asked) > math.log(1e-5) - 25
    assert calibrated.note == ""
    there = compose(noise(q=calibrated.value), 30).delta(1)
    assert 0.999 < there.delta / 1e-5 <= 1


@pytest.mark.parametrize("limit", ["4.2999", "2.05", "6.99", "2"])
@pytest.mark.parametrize("side", [1, -1])
def test_values_next_to_an_end_that_is_not_allowed(limit, side):
    """The last one on a grid of four digits that is, and some before it; none beyond."""
    end = sp.Rational(limit)
    grid = grid_of("real", 4)
    values = grid._near_end(side * sp.Integer(2), side * sp.Integer(7), lambda v: side * v <= end)
    distances = [side * value for value in values]
    assert max(distances) == sp.floor(end * 1000) / 1000
    assert all(2 <= distance <= end for distance in distances)
