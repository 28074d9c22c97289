"""Trade-off functions and privacy profiles as a user hands them in."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from refusals import refused

from symdp import Mechanism, compose, mechanisms
from symdp.model.curve_tables import (
    from_profile,
    from_profile_points,
    from_trade_off,
    from_trade_off_points,
)

A, E = sp.Symbol("alpha"), sp.Symbol("epsilon")
ROOT = (1 - sp.sqrt(A)) ** 2
EPSILONS = (-1.0, 0.0, 0.4, 1.5)


def delta_of_curve(f, epsilon, steps=200_000):
    """sup over α of 1 − f(α) − e^ε α, on a grid: never above the truth."""
    return max(1 - f(k / steps) - math.exp(epsilon) * k / steps for k in range(steps + 1))


@pytest.mark.quick_cases("1.5")
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_formula_is_its_own_trade_off_function(epsilon):
    """f = (1 − √α)² has δ = 1/(1 + e^ε), by 1 − f − yα = 2√α − (1 + y)α."""
    found = compose(from_trade_off(ROOT, A)).delta(epsilon, direction="remove").delta
    assert found == pytest.approx(1 / (1 + math.exp(epsilon)), rel=1e-12)
    assert found == pytest.approx(delta_of_curve(lambda a: (1 - a**0.5) ** 2, epsilon), rel=1e-4)


@pytest.mark.slow
def test_a_formula_and_its_profile_compose_alike():
    by_curve = compose(from_trade_off(ROOT, A), 5)
    by_profile = compose(from_profile(1 / (1 + sp.exp(E)), E, (-sp.oo, sp.oo)), 5)
    for epsilon in EPSILONS:
        assert by_curve.delta(epsilon).delta == pytest.approx(
            by_profile.delta(epsilon).delta, rel=1e-11
        )


def test_what_a_curve_lacks_at_zero_is_revealed():
    steps = compose(from_trade_off(sp.Rational(9, 10) * (1 - A) ** 2, A), 3)
    assert steps.delta(40.0, direction="remove").delta == pytest.approx(1 - 0.9**3, rel=1e-12)
    one = compose(from_trade_off(sp.Rational(9, 10) * (1 - A) ** 2, A))
    expected = delta_of_curve(lambda a: 0.9 * (1 - a) ** 2, 0.3)
    assert one.delta(0.3, direction="remove").delta == pytest.approx(expected, abs=1e-9)


def interpolated(points):
    def f(alpha):
        for (a, b), (c, d) in itertools.pairwise(points):
            if a <= alpha <= c:
                return b + (d - b) * (alpha - a) / (c - a)
        return 0.0

    return f


TABLE = [(0.0, 0.95), (0.1, 0.6), (0.3, 0.25), (0.6, 0.05), (1.0, 0.0)]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_straight_lines_are_a_list_exactly(epsilon):
    found = compose(from_trade_off_points(TABLE, "lines")).delta(epsilon, direction="remove").delta
    # a piecewise linear f is told by its corners
    expected = max(1 - b - math.exp(epsilon) * a for a, b in TABLE)
    assert found == pytest.approx(max(expected, 0.0), rel=1e-12)


def test_tables_of_a_known_curve_bound_it_and_come_closer():
    """Values of (1 − √α)²: every reading but straight lines is pessimistic."""
    for epsilon in EPSILONS:
        truth = 1 / (1 + math.exp(epsilon))
        answers = {}
        for size in (8, 64):
            table = [
                (Fraction(k, size) ** 2, (1 - Fraction(k, size)) ** 2) for k in range(size + 1)
            ]
            for between in ("unknown", "convex", "lines"):
                step = compose(from_trade_off_points(table, between))
                answers[between, size] = step.delta(epsilon, direction="remove").delta
        for size in (8, 64):
            assert answers["unknown", size] >= answers["convex", size] >= truth * (1 - 1e-12)
            assert answers["lines", size] <= truth * (1 + 1e-12)
        for between in ("unknown", "convex"):
            assert answers[between, 64] - truth < (answers[between, 8] - truth) / 4
        assert answers["convex", 64] == pytest.approx(truth, rel=1e-2)


@pytest.mark.parametrize("epsilon", [-0.7, 0.0, 0.4])
def test_claims_at_some_points_alone_leave_convex_functions(epsilon):
    """No convex function above two claims goes beyond the pair, and one claim says less."""
    claims = [(0.2, 0.5), (0.6, 0.1)]
    found = compose(from_trade_off_points(claims)).delta(epsilon, direction="remove").delta

    def largest_delta(alpha, beta):
        """δ of the lowest functions through one claim: they turn there, or before it, or behind."""
        left, right = beta / (1 - alpha), alpha / (1 - beta)
        y = math.exp(epsilon)
        return max(1 - left, 1 - y * right)

    # each claim alone allows more than both
    assert found <= min(largest_delta(*claim) for claim in claims) + 1e-12
    # two functions that keep both claims: from (0, 5/8) to (1, 0) over both, and down to (3/4, 0)
    for f in (
        interpolated([(0.0, 0.625), (1.0, 0.0)]),
        interpolated([(0.0, 1.0), (0.2, 0.5), (0.6, 0.1), (0.7, 0.0), (1.0, 0.0)]),
        interpolated([(0.0, 1.0), (2 / 3, 0.0), (1.0, 0.0)]),
    ):
        if all(f(a) >= b - 1e-12 for a, b in claims):
            assert delta_of_curve(f, epsilon, 20_000) <= found + 1e-12


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_one_guarantee_is_the_box(epsilon):
    ours = compose(from_profile_points([(1, "1e-3")]), 10).delta(epsilon).delta
    box = compose(mechanisms.approximate_dp(epsilon_0=1, delta_0="1e-3"), 10).delta(epsilon).delta
    assert ours == pytest.approx(box, rel=1e-12)


@pytest.mark.slow
def test_guarantees_of_gaussian_noise_bound_its_compositions():
    gauss = compose(mechanisms.gaussian(sigma=2))
    own = compose(mechanisms.gaussian(sigma=2), 10)
    gaps = []
    for size in (6, 24):
        table = [(4 * k / size, gauss.delta(4 * k / size).delta * (1 + 1e-11))
                 for k in range(size + 1)]  # fmt: skip
        step = from_profile_points(table)
        at_points = compose(step)
        for epsilon, delta in table[:: size // 3]:
            assert at_points.delta(epsilon).delta == pytest.approx(delta, rel=1e-9)
        gaps.append(compose(step, 10).delta(2.0).delta / own.delta(2.0).delta - 1)
    assert 0 < gaps[1] < gaps[0] / 8
    assert gaps[1] < 0.04


def test_a_point_above_the_hull_is_left_out():
    with_it = from_profile_points([(0, "0.3"), ("0.5", "0.29"), (1, "0.01")])
    without = from_profile_points([(0, "0.3"), (1, "0.01")])
    assert with_it.pair() == without.pair()


def test_one_direction_alone():
    """Nothing is known of the other direction: below the first point the line to (0, 1)."""
    step = compose(from_profile_points([(0, "1/2"), (1, "1/8")], both=False))
    for y in (0.25, 0.5, 0.75):
        found = step.delta(math.log(y), direction="remove").delta
        assert found == pytest.approx(1 - y / 2, rel=1e-12)


def test_a_step_that_may_reveal_everything():
    for points in ([(0, 1)], [(-1, 1), (2, 1)]):
        assert compose(from_profile_points(points), 3).delta(5.0).delta == 1.0


def test_arrays_are_tables_too():
    table = np.array([[0.0, 0.3], [1.0, 0.01]])
    assert (
        from_profile_points(table).pair() == from_profile_points([(0, "0.3"), (1, "0.01")]).pair()
    )
    rates = np.array(TABLE)
    assert (
        from_trade_off_points(rates, "lines").pair() == from_trade_off_points(TABLE, "lines").pair()
    )


FILES = {
    "[trade_off]\nf = '(1 - sqrt(alpha))**2'": 1 / (1 + math.e),
    "[trade_off]\npoints = [[0, 1], [0.25, 0.25], [1, 0]]\nbetween = 'lines'": 0.75 - math.e / 4,
    "[profile]\ndelta = '1/(1 + exp(epsilon))'": 1 / (1 + math.e),
    "[profile]\npoints = [[1, 1e-3]]": 1e-3,
    "[parameters]\nc = 'open probability'\n[trade_off]\nf = 'c*(1 - alpha)**2'": None,
}


@pytest.mark.slow_cases(
    "[trade_off]\\nf = '(1 - sqrt(alpha))**2'-0.2689414213699951",
    "[profile]\\ndelta = '1/(1 + exp(epsilon))'-0.2689414213699951",
)
@pytest.mark.parametrize(("text", "expected"), FILES.items())
def test_files(text, expected):
    step = Mechanism.from_toml(f"name = 'given'\n{text}\n")
    assert step.name == "given"
    if expected is None:
        step, expected = step(c="0.9"), delta_of_curve(lambda a: 0.9 * (1 - a) ** 2, 1.0)
    found = compose(step).delta(1.0, direction="remove").delta
    assert found == pytest.approx(expected, rel=1e-9)


WRONG = [
    (lambda: from_trade_off(1 - A**2, A), "lies above 1 - α at α = 0.015625"),
    (lambda: from_trade_off((1 - A) * (1 - 2 * A) ** 2, A), "rises at α ="),
    (lambda: from_trade_off((1 - A) * (1 - A**3), A), "is not convex at α ="),
    (lambda: from_trade_off(1 - A / 2, A), "is 0 at α = 1, not 1/2"),
    (lambda: from_trade_off_points([(0, 1)]), "has 1 points; 2 to 400 are needed"),
    (lambda: from_trade_off_points([(0, 1), ("0.5", "0.7"), (1, 0)]), "does not lie between 0 and"),
    (
        lambda: from_trade_off_points([(0, "0.5"), ("0.2", "0.6")]),
        "f rises from 1/2 to 3/5 between",
    ),
    (lambda: from_trade_off_points([(0, 1), ("0.5", "0.1"), ("0.2", "0.1")]), "sort the table"),
    (lambda: from_trade_off_points([(0, 1), (math.nan, 0)]), "point 2: α must be a finite number"),
    (lambda: from_trade_off_points([(0, 1), ("0.2", math.inf)]), "β must be a finite number"),
    (lambda: from_trade_off_points([(0, 1), (2, 0)]), "α = 2 is no probability"),
    (
        lambda: from_trade_off_points([(0, 1), (sp.sqrt(2) / 2, 0)]),
        "α = sqrt(2)/2 must be a decimal",
    ),
    (lambda: from_trade_off_points([0, 1]), "point 1 must be (α, β)"),
    (lambda: from_trade_off_points("0,1"), "must be a list of"),
    (
        lambda: from_trade_off_points([(0, 1), ("0.3", "0.6"), ("0.6", "0.1"), (1, 0)], "lines"),
        "not convex at α = 3/10",
    ),
    (lambda: from_trade_off_points([("0.1", "0.5"), (1, 0)], "lines"), "a first point at α = 0"),
    (lambda: from_trade_off_points([(0, 1), (1, 0)], "line"), "did you mean 'lines'"),
    (lambda: from_trade_off_points([(0, 1), (1, 0)], "lines"), "tells nothing apart"),
    (lambda: from_profile_points([]), "has 0 points; 1 to 400"),
    (lambda: from_profile_points([(1, "0.1"), (0, "0.2")]), "sort the table"),
    (lambda: from_profile_points([(0, "0.1"), (1, "0.2")]), "δ rises from 1/10 to 1/5"),
    (lambda: from_profile_points([(-2, "0.1")]), "lies below 1 - e^ε"),
    (lambda: from_profile_points([(0, "1.5")]), "no probability"),
    (lambda: from_profile(sp.Rational(1, 2) + 0 * E, E, (0, 1)), "come down to 0"),
    (lambda: from_profile_points([(10**12, "0.1")]), "point 1: ε must lie within ±500"),
    (lambda: from_profile_points({1: 0}), "must be a list of (ε, δ)"),
    (
        lambda: from_trade_off("1 - alpha", A),
        "must be a SymPy expression of alpha, not '1 - alpha'",
    ),
    (lambda: from_trade_off(None, A), "must be a SymPy expression of alpha"),
    (lambda: from_trade_off(1 - A, "alpha"), "must be a SymPy symbol, not 'alpha'"),
    (lambda: from_profile("1", E, (0, 1)), "a privacy profile must be a SymPy expression"),
    (lambda: from_trade_off(1 - A, A, parameters={"alpha": "positive"}), "both the variable"),
    (
        lambda: Mechanism.from_toml("name = 'a'\n[profile]\ndelta = '1'\npoints = [[1, 0]]"),
        "points; not both",
    ),
    (
        lambda: Mechanism.from_toml("name = 'a'\n[trade_off]\n"),
        "give f, a formula of alpha, or points",
    ),
    (
        lambda: Mechanism.from_toml("name = 'a'\nvariable = 'x'\n[profile]\npoints = [[1, 0]]"),
        "leave it out",
    ),
    (
        lambda: Mechanism.from_toml(
            "name = 'a'\n[profile]\npoints = [[1, 0]]\n[trade_off]\nf = '1'"
        ),
        "one of",
    ),
    (lambda: Mechanism.from_toml("name = 'a'\n[trade_off]\nf = '1 - x'"), "unknown name 'x'"),
    (lambda: Mechanism.from_toml("name = 'a'\n[trade_off]\npoints = [[0, nan], [1, 0]]"), "finite"),
]


@pytest.mark.parametrize(("make", "words"), WRONG)
def test_refusals(make, words):
    with refused(words):
        make()
