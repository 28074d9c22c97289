"""The comparison of every accountant with a truth, and the time that both are given."""

from __future__ import annotations

import math
import os
import time

import mpmath
import pytest

import symdp
from symdp.interrupt import Deadline
from symdp.page import verification
from symdp.page.verification import (
    Truth,
    analyse,
    certified,
    check,
    epsilon_truth,
    is_broken,
    judge,
    places,
    timely_truth,
    truth_at,
    verify,
)
from symdp.questions.guarantee import Guarantee

STEPS = symdp.compose(symdp.mechanisms.gaussian(sigma=5), 10)


def test_truth_is_the_closed_form():
    truth = truth_at(STEPS, 2.0, "both", 30)
    with mpmath.workdps(50):
        mu = mpmath.sqrt(10) / 5

        def tail(z):
            return mpmath.erfc(z / mpmath.sqrt(2)) / 2

        exact = tail(2 / mu - mu / 2) - mpmath.exp(2) * tail(2 / mu + mu / 2)
        assert abs(truth.value / exact - 1) < mpmath.mpf(10) ** -29
    assert truth.digits == 30


@pytest.mark.slow
def test_true_epsilon_meets_delta():
    start = STEPS.epsilon(1e-6)

    def ask(epsilon):
        return truth_at(STEPS, epsilon, "both", 30)

    found = epsilon_truth(STEPS, 1e-6, start, ask)
    assert found.value is not None
    assert float(found.value) == pytest.approx(start.epsilon, rel=1e-12)
    rough = epsilon_truth(STEPS, 1e-6, STEPS.epsilon(1e-6, "moments"), ask)
    assert float(rough.value) == pytest.approx(float(found.value), rel=1e-14)


@pytest.mark.slow
def test_every_accountant_is_compared():
    from symdp.methods import names

    seen = []
    checks = list(
        verify(STEPS, digits=20, targets=(1e-2, 1e-8), advance=lambda *at: seen.append(at))
    )
    assert [c.method for c in checks] == 2 * list(names())
    assert seen[-1][0] == seen[-1][1]
    assert not any(c.broken for c in checks)
    exact = [c for c in checks if c.method == "contour"]
    assert all(abs(c.error) < 1e-11 for c in exact)
    moments = [c for c in checks if c.method == "moments"]
    assert all(c.error > 0 for c in moments)


def guarantee(**values):
    given = {"epsilon": 1.0, "log_delta": -2.0, "kind": "exact", "method": "m"}
    return Guarantee(**(given | {"direction": "remove", "n": 1} | values))


@pytest.mark.parametrize(
    ("values", "broken"),
    [
        ({"kind": "bound", "log_delta": -1.9}, False),
        ({"kind": "bound", "log_delta": -2.1}, True),
        ({"kind": "bound", "log_delta": -2.0}, False),
        ({"log_lower": -2.1, "log_upper": -1.9}, False),
        ({"log_delta": -1.95, "log_lower": -1.99, "log_upper": -1.9}, True),
        ({"log_delta": -2.15, "log_lower": -2.2, "log_upper": -2.1}, True),
        ({"log_lower": -math.inf, "log_upper": 0.0}, False),
        ({"kind": "estimate", "log_delta": -5.0}, False),
    ],
)
def test_a_bound_on_the_wrong_side_is_seen(values, broken):
    with mpmath.workdps(30):
        truth = Truth(1.0, mpmath.exp(-2), 30, "remove")
    assert is_broken(guarantee(**values), truth) is broken


def test_an_accountant_without_an_answer_says_why(monkeypatch):
    def fails(*_):
        raise symdp.AccuracyError("too slow")

    monkeypatch.setattr(symdp.Composition, "delta", fails)
    one = check(STEPS, "contour", "both", Truth(1.0, mpmath.mpf(1), 30))
    assert one.answer is None
    assert one.reason == "too slow"
    assert one.to_json()["reason"] == "too slow"


def test_places_leave_out_what_the_profile_never_reaches():
    mechanism = symdp.mechanisms.randomized_response(epsilon_0=1)
    found = places(symdp.compose(mechanism, 3), "both", (0.5, 1e-2, 1e-30))
    assert found == sorted(found)
    assert all(0 <= epsilon <= 3 for epsilon in found)


def test_what_is_too_slow_says_so(monkeypatch):
    def works(*_, **__):
        end = time.process_time() + 30
        while time.process_time() < end:
            pass

    monkeypatch.setattr(symdp.Composition, "epsilon", works)
    results = analyse(STEPS, 1e-5, digits=15, targets=(), patience=0.1)
    assert results.best is None
    assert not results.answers
    assert all("no answer within" in why or "left out" in why for _, why in results.failures)
    assert "no answer within" in results.failures[0][1]


@pytest.mark.slow
def test_an_epsilon_that_would_take_long_is_not_begun(monkeypatch):
    """δ has shown it: eight of these are more than one answer may take."""
    asked = []
    delta, epsilon = symdp.Composition.delta, symdp.Composition.epsilon

    def slow(self, at, method="contour", *others, **named):
        end = time.process_time() + (0.4 if method == "prv" else 0.0)
        found = delta(self, at, method, *others, **named)
        while time.process_time() < end:
            pass
        return found

    def noted(self, at, method="contour", *others, **named):
        asked.append(method)
        return epsilon(self, at, method, *others, **named)

    monkeypatch.setattr(symdp.Composition, "delta", slow)
    monkeypatch.setattr(symdp.Composition, "epsilon", noted)
    monkeypatch.setattr("symdp.methods.table.names", lambda: ("contour", "clt", "prv", "moments"))
    results = analyse(STEPS, 1e-5, digits=15, targets=(1e-2,), patience=20.0)
    assert "prv" not in asked
    assert "moments" in asked
    ((method, why),) = results.failures
    assert method == "prv"
    assert why.startswith("left out: its ε takes about")


def test_an_accountant_cannot_swallow_the_end_of_its_time():
    def stubborn():
        with Deadline(0.05).within():
            try:
                time.sleep(30)
            except (ArithmeticError, ValueError):
                time.sleep(30)

    with pytest.raises(symdp.AccuracyError, match="no answer within"):
        stubborn()


def test_a_proved_enclosure_stands_in_for_truth():
    pairs = {"remove": [(mechanism.pair("remove"), n) for mechanism, n in STEPS.steps]}
    proved, truth = certified(pairs, 1.0, 15), judge(pairs, 1.0, 20)
    assert proved.certified
    assert not truth.certified
    assert proved.digits >= 14
    assert abs(proved.value / truth.value - 1) < 10.0**-proved.digits


def test_a_truth_that_comes_too_late_is_replaced(monkeypatch):
    monkeypatch.setattr("symdp.page.verification.judge", lambda *_: time.sleep(300))
    monkeypatch.setattr("symdp.page.verification._FOR_CERTIFICATE", 60.0)
    found = timely_truth(STEPS, 1.0, 20, Deadline(0.5))
    assert found.certified
    assert found.reason == "not reached within 0.5 s: a certified value stands in"
    assert found.value == certified({"remove": [(m.pair("remove"), n) for m, n in STEPS.steps]},
                                    1.0, 15).value  # fmt: skip


def test_truth_is_stopped_when_its_time_is_up(monkeypatch):
    monkeypatch.setattr("symdp.page.verification.judge", lambda *_: time.sleep(300))
    monkeypatch.setattr("symdp.page.verification.certified", lambda *_: time.sleep(300))
    monkeypatch.setattr("symdp.page.verification._FOR_CERTIFICATE", 0.01)
    late = timely_truth(STEPS, 1.0, 20, Deadline(0.01))
    assert late.value is None
    assert late.reason.startswith("not reached within 0.01 s")


@pytest.mark.slow
def test_verify_command(shell, monkeypatch):
    monkeypatch.setattr("symdp.page.verification.TARGETS", (1e-3, 1e-9))
    ran = shell("verify gaussian sigma=5 -n 10 --digits 15 --json")
    result = ran.json
    assert result["violated"] == 0
    assert result["digits"] == 15
    assert result["count"] == 10
    methods = {row["method"] for row in result["checks"]}
    assert {"contour", "moments", "clt"} <= methods
    for row in result["checks"]:
        assert row["relative_error"] is None or math.isfinite(row["relative_error"])


@pytest.mark.slow
def test_verify_for_people_and_a_violation_is_code_1(shell, monkeypatch):
    monkeypatch.setattr("symdp.page.verification.TARGETS", (1e-3,))
    ran = shell("verify gaussian sigma=5 -n 10 --digits 15")
    assert ran.code == 0
    assert "no bound violated" in ran.out
    monkeypatch.setattr("symdp.page.verification.is_broken", lambda *_: True)
    ran = shell("verify gaussian sigma=5 -n 10 --digits 15")
    assert ran.code == 1
    assert "VIOLATED" in ran.out
    assert ran.err == ""


def test_no_time_at_all_is_a_reason():
    rows = list(verify(STEPS, methods=["contour", "clt"], epsilons=[1.0, 2.0], patience=1e-9))
    assert [row.method for row in rows] == ["contour", "clt"] * 2
    assert all(row.reason.startswith("no answer within") for row in rows)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="timers")
def test_a_slow_accountant_takes_no_other_row(monkeypatch):
    asked = []
    own = verification.check

    def slow(composition, method, direction, truth):
        asked.append(method)
        while method == "clt":
            pass
        return own(composition, method, direction, truth)

    monkeypatch.setattr(verification, "check", slow)
    rows = list(
        verify(STEPS, methods=["clt", "msd:1", "moments"], epsilons=[1.0, 2.0], patience=4.0)
    )
    assert [row.method for row in rows] == ["clt", "msd:1", "moments"] * 2
    assert asked.count("clt") == 1
    for row in rows:
        if row.method == "clt":
            assert row.answer is None
            assert row.reason.startswith("no answer within")
        else:
            assert row.answer is not None
            assert row.error is not None
