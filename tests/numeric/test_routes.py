"""Which way the default method took, said by every answer and shown by --explain."""

from __future__ import annotations

import pytest
from shell import Shell

from symdp import compose, mechanisms
from symdp.methods.route import ROUTES

GAUSSIAN, COIN = mechanisms.gaussian, mechanisms.randomized_response(epsilon_0=1)
INTEGERS = mechanisms.discrete_gaussian(sigma=2).subsample("poisson", "1/10")


@pytest.mark.slow_cases("mesh-steps5-1.0", "contour-steps7-1.0")
@pytest.mark.parametrize(
    ("route", "steps", "epsilon"),
    [
        ("outside_range", compose(COIN, 3), 100.0),
        ("single", compose(GAUSSIAN(sigma=1)), 1.0),
        ("finite_sum", compose(COIN, 10), 1.0),
        ("lattice", compose(COIN, 10**6), 1.0),
        ("finite_sum", compose(INTEGERS, 2), 1.0),
        ("mesh", compose(INTEGERS, 50), 1.0),
        ("residues", compose(mechanisms.laplace(b=2), 5), 1.0),
        ("contour", compose(mechanisms.student_t(nu=3, s=2), 5), 1.0),
        ("contour", compose(GAUSSIAN(sigma=2).subsample("poisson", "1/100"), 1000), 0.5),
        ("contour", compose([(COIN, 5), (GAUSSIAN(sigma=3), 2)]), 3.0),
    ],
)
def test_each_question_has_its_route(route, steps, epsilon):
    answer = steps.delta(epsilon)
    assert answer.route == route
    assert answer.to_json()["route"] == route


def test_an_epsilon_has_a_route_and_a_named_method_has_none():
    steps = compose(GAUSSIAN(sigma=1), 3)
    assert steps.epsilon(1e-5).route == "contour"
    moments = steps.delta(1.0, method="moments")
    assert moments.route == ""
    assert "route" not in moments.to_json()


def test_routes_have_names_of_their_own():
    names = [route.name for route in ROUTES]
    assert len(set(names)) == len(names)


def test_explain_marks_the_row(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Shell(capsys)("delta gaussian sigma=2 -n 1 --epsilon 1 --explain")
    marked = [line for line in ran.out.splitlines() if "→" in line]
    assert len(marked) == 1
    assert "single" in marked[0]
    assert all(route.name in ran.out for route in ROUTES)
