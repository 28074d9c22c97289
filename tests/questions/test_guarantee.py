"""The largest of several answers is of the weakest kind that may be the largest."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import sympy as sp
from skewed_pairs import random_pair

from symdp import Mechanism, Parallel, compose, mechanisms
from symdp.individual.result import IndividualResult, larger
from symdp.methods import names
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.questions.guarantee import KINDS, Link, largest, weakest
from symdp.questions.invert import invert_larger

EXACT = Link(-10.0, -10.1, -9.9, "exact")
BOUND = Link(-12.0, -math.inf, -12.0, "bound")
OVER = Link(-8.0, -13.0, -8.0, "bound", "too wide")
GUESS = Link(-11.0, None, None, "estimate", "out of its regime")
GUESSED = Link(-9.0, -9.5, -8.5, "estimate")


@pytest.mark.parametrize(
    ("one", "other", "kind", "ends"),
    [
        (EXACT, BOUND, "exact", (-10.1, -9.9)),  # the bound is proved to be less
        (EXACT, OVER, "bound", (-10.1, -8.0)),
        (EXACT, GUESS, "estimate", (-10.1, None)),  # the guess may be too small
        (BOUND, GUESS, "estimate", (-math.inf, None)),
        (OVER, GUESSED, "estimate", (-9.5, -8.0)),
        (GUESS, GUESSED, "estimate", (-9.5, None)),
        (EXACT, EXACT, "exact", (-10.1, -9.9)),
    ],
)
def test_two_links(one: Link, other: Link, kind: str, ends: tuple[float | None, float]) -> None:
    for first, second in ((one, other), (other, one)):
        name, both = largest({"first": first, "second": second})
        assert both.kind == kind
        assert (both.lower, both.upper) == ends
        value = {"first": first, "second": second}[name].value
        assert value == max(first.value, second.value)
        assert both.value == (both.upper if kind == "bound" else value)


def test_the_advice_of_kinds_that_differ_says_whose_it_is() -> None:
    assert largest({"remove": OVER, "add": GUESS})[1].advice == (
        "remove: too wide; add: out of its regime"
    )
    assert largest({"remove": OVER, "add": BOUND})[1].advice == "too wide"
    assert weakest(["bound", "exact"]) == "bound"


def beta_pair() -> Mechanism:
    x = sp.Symbol("x", real=True)
    return Mechanism.from_pair(140 * x**3 * (1 - x) ** 3, 105 * x**2 * (1 - x) ** 4, x, (0, 1))


def test_a_bound_of_one_direction_and_an_estimate_of_the_other_are_an_estimate() -> None:
    """Right is 9.167e-31, as of all sums of ten losses: what was called a bound lay below it."""
    steps = compose(beta_pair(), 10)
    kinds = [steps.delta(39.6, "edgeworth:2", d).kind for d in ("remove", "add")]
    assert kinds == ["bound", "estimate"]
    both = steps.delta(39.6, "edgeworth:2")
    assert both.kind == "estimate"
    assert both.upper is None
    assert "remove: " in both.advice
    assert "add: edgeworth:2 is out of its regime" in both.advice


@dataclass(frozen=True)
class Half(FloatAccountant):
    """A bound of one direction, an estimate of the other: ten times and a thousandth of δ."""

    name: str = "half"
    citations: tuple[str, ...] = ()

    def inside_range(self, law, epsilon: float) -> Answer:
        value = -2.0 * epsilon - 1.0
        if law.direction == "remove":
            return Answer(value + 2.0, None, value + 2.0, "bound", slope=-2.0)
        return Answer(value - 7.0, None, None, "estimate", "a guess", slope=-2.0)


def test_a_direction_that_an_estimate_passes_by_leaves_an_estimate() -> None:
    steps = compose(mechanisms.gaussian(sigma=1).subsample("poisson", "1/2"), 30)
    laws = {side: steps.law(side) for side in ("remove", "add")}
    found = invert_larger(Half(), laws, math.log(1e-6))
    assert [one.kind for one in found.values()] == ["bound", "estimate"]
    both = largest(found)[1]
    assert (both.kind, both.upper) == ("estimate", None)
    assert both.value == pytest.approx(0.5 * (1 - math.log(1e-6)), rel=1e-9)


def test_parts_of_the_data_are_as_strong_as_the_weakest() -> None:
    noise = mechanisms.gaussian(sigma=3)
    skewed = mechanisms.gaussian(sigma=1).subsample("poisson", "1/50")
    parts = Parallel({"a": compose(noise, 2), "b": compose(skewed, 300)})
    assert parts.delta(1.0, "moments").kind == "bound"
    assert parts.delta(1.0, "msd:2").kind == "estimate"
    exact = parts.delta(1.0)
    assert (exact.kind, exact.kind_for_pair) == ("exact", "exact")
    assert exact.delta == max(part.delta(1.0).delta for part in parts.parts.values())


def individual(kinds: list[int], values: list[float], upper: list[float]) -> IndividualResult:
    size = len(kinds)
    value = np.array(values)
    return IndividualResult(
        "epsilon",
        value,
        np.full(size, -10.0),
        np.where(np.isnan(upper), np.nan, value),
        np.array(upper),
        np.array(kinds, dtype=np.uint8),
        np.zeros(size, dtype=np.uint8),
        np.zeros(size),
        np.ones(size, dtype=np.int64),
        "contour",
        "remove",
    )


def test_records_are_as_strong_as_the_weakest_direction() -> None:
    nan = math.nan
    first = individual([0, 0, 1, 0], [2.0, 2.0, 2.0, 1.0], [2.0, 2.0, 3.0, 1.0])
    second = individual([1, 2, 2, 0], [1.0, 1.0, 1.0, 1.0], [1.0, nan, nan, 1.0])
    both = larger(first, second)
    assert [KINDS[k] for k in both.kind_code] == ["exact", "estimate", "estimate", "exact"]
    assert both.upper.tolist() == pytest.approx([2.0, nan, nan, 1.0], nan_ok=True)


def check(seed: int, counts: tuple[int, ...], tried: list[str]) -> None:
    """Nothing called a bound lies below the contour, nor begins above it."""
    step = random_pair(seed)
    for count in counts:
        steps = compose(step, count)
        laws = [steps.law(side) for side in ("remove", "add")]
        top = max(law.loss_bounds[1] for law in laws)
        mean = max(law.scale[0] for law in laws)
        if not top < math.inf:
            top = mean + 8.0 * math.sqrt(max(law.scale[1] for law in laws))
        places = [0.3 * top, 0.9 * top, (1 - 1e-6) * top, top, 1.01 * top]
        truths = steps.delta(places)
        for method in tried:
            for truth, found in zip(truths, steps.delta(places, method), strict=True):
                holds(truth, found, f"seed {seed}, {count} steps, ε = {truth.epsilon!r}, {method}")


def holds(truth, found, what: str) -> None:
    if found.kind == "estimate":
        return
    # Both are rounded like their logarithms.
    slack = 1e-13 * (1.0 + abs(found.log_delta)) if found.log_delta > -math.inf else 0.0
    assert found.log_delta + slack >= truth.log_lower, what
    assert found.log_upper is None or found.log_upper + slack >= truth.log_lower, what
    if found.log_lower is not None and truth.log_upper is not None:
        assert found.log_lower - slack <= truth.log_upper, what


QUICK = ["moments", "edgeworth:2", "msd:2", "lugannani-rice", "clt", "gaussian", "gdp-e"]


@pytest.mark.quick_cases("4")
@pytest.mark.parametrize("seed", [0, 4, 5])
def test_nothing_called_a_bound_lies_below_the_contour(seed: int) -> None:
    check(seed, (10,), QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_twelve_pairs_whose_directions_differ(seed: int) -> None:
    check(seed, (1, 3, 40)[seed % 3 : seed % 3 + 1], [n for n in names() if n != "contour"])
