"""A sum on a line that was not seen to end is an estimate, with the ends that are proved."""

from __future__ import annotations

import math

import pytest

from symdp import compose, mechanisms
from symdp.errors import AccuracyError
from symdp.methods import route
from symdp.numeric import cut_off
from symdp.numeric.answer import Answer
from symdp.numeric.saddle_point import log_moments_bound

EPSILON = 1.0
STEPS = compose(mechanisms.laplace(b=3), 6)
TRUTH = STEPS.delta(EPSILON, direction="remove").log_delta


@pytest.fixture
def law(monkeypatch):
    """Six Laplace steps, whose lines are taken for ones without an end."""

    line = Answer(TRUTH, TRUTH - 1e-9, TRUTH + 1e-9, "exact")
    monkeypatch.setattr(route, "own_lines", lambda *_: (line, False))
    monkeypatch.setattr(route, "_given_large_losses", lambda *_: None)
    return STEPS.law("remove")


def test_without_a_mesh_nothing_bounds_it_from_below(law, monkeypatch):
    def no_mesh(*_):
        raise AccuracyError("no mesh")

    monkeypatch.setattr(cut_off, "mesh_answer", no_mesh)
    answer = route._mesh_answer(law, EPSILON)
    assert answer.kind == "estimate"
    assert answer.log_delta == TRUTH
    assert answer.log_lower == -math.inf
    assert answer.log_upper == pytest.approx(log_moments_bound(law, EPSILON))


@pytest.mark.parametrize(("below", "above"), [(0.5, 0.25), (0.01, 4.0)])
def test_a_mesh_has_the_ends_it_proves(law, monkeypatch, below, above):
    wide = Answer(TRUTH, TRUTH - below, TRUTH + above, "bound")
    monkeypatch.setattr(cut_off, "mesh_answer", lambda *_: wide)
    answer = route._mesh_answer(law, EPSILON)
    assert answer.kind == "estimate"
    assert answer.log_lower == TRUTH - below
    assert answer.log_upper <= TRUTH + above
    assert answer.log_lower <= answer.log_delta <= answer.log_upper
