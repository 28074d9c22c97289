"""Paths beside the real axis: their bounds hold, their nodes agree, few steps are certified."""

from __future__ import annotations

import math

import pytest
import sympy as sp
from catalogue import ALL
from flint import acb, arb, ctx

from symdp import compose, mechanisms
from symdp.certify import enclose_delta
from symdp.certify.lifted import Lifted
from symdp.certify.nodes import path_nodes, stretch_nodes
from symdp.certify.paths import Segment
from symdp.certify.scope import Scope
from symdp.certify.step import tilted_step
from symdp.emit.arb import constant_ball

SUBSAMPLED = mechanisms.gaussian(sigma=2).subsample("poisson", "1/100")
GAMMA = ALL["gamma noise"].mechanism("noise")
NARROW = mechanisms.gaussian(sigma=1).subsample("poisson", "1/100")
LAPLACE = mechanisms.laplace(b=2).subsample("poisson", "1/100")
STEPS = {
    "rising": (SUBSAMPLED, "remove", 20),
    "falling": (SUBSAMPLED, "add", 5),
    "bounded": (mechanisms.logistic(s=2), "remove", 2),
    "turning": (mechanisms.student_t(nu=3, s=2), "remove", 1),
    "an edge": (mechanisms.laplace(b=2), "add", 1),
    "a singular end": (GAMMA, "remove", 1),
}


def moving(name):
    """Return each stretch of a mechanism with its path, its tilt and its scale."""
    mechanism, direction, tilt = STEPS[name]
    step = tilted_step(mechanism.pair(direction), sp.Rational(tilt))
    t = constant_ball(step.tilt, 192).real
    for part in step.parts.stretches:
        if part.piece.slope in ("increasing", "decreasing"):
            cut = part.cut(step.parts.reach(step.tilt), 128)
            yield part, cut, t, step.scale, Lifted(part, *ends(part, cut), t, step.scale)


def ends(part, cut):
    """Return the cuts, or places a little inside where the loss may turn."""
    low, high = cut.lower.mid(), cut.upper.mid()
    room = (high - low) * arb(2) ** -20
    finite = part.piece.lower.is_finite, part.piece.upper.is_finite
    return (low + room).mid() if finite[0] else low, (high - room).mid() if finite[1] else high


@pytest.mark.parametrize("frequency", [3.0, 40.0, 200.0, 900.0])
@pytest.mark.parametrize("name", STEPS)
def test_a_bound_holds_and_is_close(name, frequency):
    with ctx.workprec(192):
        for part, _, t, scale, lifted in moving(name):
            scope = Scope((0.0, frequency))
            inner = part.nodes(
                cut_at(*ends_of(lifted)), t, scale, tolerance=arb(2) ** -60, scope=scope
            )
            size = abs(inner.at(arb(frequency)))
            bound = lifted.at(arb(frequency))
            assert bound >= size.lower()
            if size > 1e-15:  # of parts that are not cut off inside
                assert bound < 30 * size.upper() + 1e-4


def ends_of(lifted):
    return lifted._ends


def cut_at(low, high):
    from symdp.certify.moments import Cut

    return Cut(low, high, arb(0))


@pytest.mark.parametrize("name", STEPS)
def test_nodes_on_a_path_agree_with_those_on_the_axis(name):
    with ctx.workprec(192):
        for part, cut, t, scale, _ in moving(name):
            lifted = Lifted(part, cut.lower.mid(), cut.upper.mid(), t, scale)
            path = lifted.segments(50.0)
            assert path is not None
            tolerance = arb(2) ** -100
            over = path_nodes(part, path, t, scale, frequencies=(50.0, 120.0), tolerance=tolerance)
            scope = Scope((0.0, 120.0))
            along = stretch_nodes(part, cut, t, scale, tolerance=tolerance, scope=scope)
            for y in (50.0, 77.0, 120.0):
                found, expected = over.at(arb(y)), along.at(arb(y))
                difference = found - expected
                assert abs(difference) < 1e-25
                assert abs(acb(difference.mid())) <= over.error + along.error + abs(
                    difference.rad()
                )


def test_a_path_is_not_led_around_a_singularity():
    """log cosh-like losses have branch points beside the axis; no path may pass beyond them."""
    for part, _, _, _, lifted in moving("bounded"):
        path = lifted.segments(1e3)
        height = max(abs(float(end.imag)) for line in path for end in (line.start, line.end))
        # e^{−x/2} = −1 at Im x = 2π.
        assert 0 < height < 2 * math.pi
        low, high = ends_of(lifted)
        middle = acb((low + high) / 2)
        assert lifted._is_holomorphic([acb(low), middle + acb(0, 6), acb(high)])
        assert not lifted._is_holomorphic([acb(low), middle + acb(0, 7), acb(high)])
        assert part.piece.slope == "increasing"


def test_the_sides_of_a_path_count():
    """Of a piece that ends where its density does not vanish they are all there is far out."""
    with ctx.workprec(192):
        part, cut, t, scale, lifted = next(moving("an edge"))
        y = arb(2000)
        scope = Scope((0.0, 2000.0))
        size = abs(part.nodes(cut, t, scale, tolerance=arb(2) ** -60, scope=scope).at(y))
        bound = lifted.at(y)
        assert 0.5 * size < bound < 4 * size
        path = lifted._best(2000.0)
        sides = [cell for cell in path._cells if cell.segment in (0, len(path.segments) - 1)]
        assert sum((cell.at(y) for cell in sides), arb(0)) > bound / 2
        assert {type(segment) for segment in path.segments} == {Segment}


FEW = {
    "two subsampled": (SUBSAMPLED, 2, 0.0151, "remove"),
    "ten subsampled": (SUBSAMPLED, 10, 0.0338, "remove"),
    "a hundred subsampled": (SUBSAMPLED, 100, 0.108, "add"),
    "five bounded": (mechanisms.logistic(s=2), 5, 1.49, "remove"),
    "three of gamma noise": (GAMMA, 3, 1.0, "remove"),
    "ten subsampled laplace": (LAPLACE, 10, 0.03, "remove"),
    "a long walk": (NARROW, 3, 0.0456, "remove"),
    "sampled tails": (mechanisms.logistic(s=2).subsample("poisson", "1/100"), 100, 0.05, "remove"),
    "doubly": (mechanisms.gumbel(b=2).subsample("poisson", "1/100"), 100, 0.08, "remove"),
}


@pytest.mark.slow_cases("sampled tails", "five bounded", "doubly")
@pytest.mark.parametrize("name", FEW)
def test_few_steps_are_certified(name):
    mechanism, count, epsilon, direction = FEW[name]
    ball = enclose_delta([(mechanism.pair(direction), count)], epsilon, 15)
    answer = compose(mechanism, count).delta(epsilon, direction=direction)
    with ctx.workprec(128):
        log = ball.log()
        assert answer.log_lower <= log.upper()
        assert log.lower() <= answer.log_upper
        assert abs(log - answer.log_delta) < 1e-11
