"""Every method that claims a bound holds the exact value: mechanisms, counts, directions, ε."""

from __future__ import annotations

import math
from functools import cache

import pytest
from proved_bounds import COUNTS, MECHANISMS, assert_contains, composition

from symdp.accountant import accountant
from symdp.accountant.base import outside_range
from symdp.accountant.contour import Contour
from symdp.accountant.prv import Prv
from symdp.errors import AccuracyError

QUICK = ("moments", "moments-plain", "moments-variance", "renyi", "spa-bounds", "eeai")
# The mesh of a PRV interval may be coarse: it is wider then, and no less a bound.
METHODS = {name: accountant(name) for name in QUICK} | {
    "prv": Prv(points=1 << 16),
    "tilted-prv": Prv(tilted=True, points=1 << 16),
}
DEVIATIONS = (-6.0, -2.0, 0.0, 1.0, 4.0, 9.0)
NEARLY = 0.999  # of the range


@cache
def exact(name, count, direction):
    """(ε, the contour's answer) over the range of the loss: bulk, both tails, both ends, zero."""
    law = composition(name, count).law(direction)
    mean, variance = (float(c) for c in law.cumulants(0.0, 2))
    low, high = law.loss_bounds
    places = {mean + k * math.sqrt(variance) for k in DEVIATIONS} | {0.0, -0.5}
    places |= {NEARLY * end for end in (low, high) if math.isfinite(end) and count <= 10}
    places |= {2 * end + 1e-3 for end in (high,) if math.isfinite(end) and count == 1}
    return law, [(epsilon, Contour().log_delta(law, epsilon)) for epsilon in sorted(places)]


def answered(method, law, epsilon):
    """The answer, or None where PRV says that its mesh is too coarse for so many steps."""
    try:
        return method.log_delta(law, epsilon)
    except AccuracyError:
        if method.name in {"prv", "tilted-prv"}:
            return None
        raise


def check(method, name, count, direction):
    law, points = exact(name, count, direction)
    checked = 0
    for epsilon, truth in points:
        answer = answered(method, law, epsilon)
        if answer is None:
            continue
        assert_contains(answer, truth)
        inside = outside_range(law, epsilon) is None
        assert answer.kind == ("bound" if inside else "exact")
        checked += 1
    return checked


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_bound_holds_the_exact_value(name, count, direction):
    for label, method in METHODS.items():
        checked = check(method, name, count, direction)
        assert checked or label in {"prv", "tilted-prv"}


@pytest.mark.parametrize(
    ("name", "count", "direction"),
    [
        ("substitution", 1, "add"),
        ("one-sided", 10, "add"),
        ("two variances", 1000, "remove"),
        ("randomized response", 10**6, "add"),
    ],
)
def test_a_thin_slice(name, count, direction):
    for label in (*QUICK, "tilted-prv") if name == "one-sided" else QUICK:
        assert check(METHODS[label], name, count, direction)
