"""Lines that are kept, and what lies beyond their last node."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from strangers.densities import Stranger, gumbel
from strangers.truth import pair_of

from symdp import Mechanism, compose, mechanisms
from symdp.methods import accountant
from symdp.methods.route import Contour
from symdp.numeric import contour
from symdp.numeric.contour import Tail, _lines_of_strip, _traced_line, on_own_lines
from symdp.numeric.cut_off import mesh_line
from symdp.numeric.line import Line, line_tilt, longer, off_the_end
from symdp.numeric.nodes import decays
from symdp.numeric.saddle_point import Strip

LAPLACE = mechanisms.laplace(b=2).subsample("poisson", "1/10")
GAUSSIAN = mechanisms.gaussian(sigma="3/2").subsample("poisson", "1/100")
X = sp.Symbol("x", real=True)


def two_bumps(width):
    """Randomised response behind Gaussian noise: the loss gathers at ±log 3 and has no atoms."""
    bumps = [
        sp.exp(-((X - place) ** 2) / (2 * width**2)) / (width * sp.sqrt(2 * sp.pi))
        for place in (0, 10)
    ]
    weights = (sp.Rational(3, 4), sp.Rational(1, 4))
    P = weights[0] * bumps[0] + weights[1] * bumps[1]
    Q = weights[1] * bumps[0] + weights[0] * bumps[1]
    return Mechanism.from_pair(P, Q, X)


@pytest.mark.quick_cases("remove")
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_a_shared_line_agrees_with_a_line_of_ones_own(direction):
    law = compose(GAUSSIAN, 10**4).law(direction)
    generator = np.random.default_rng(7)
    for epsilon in generator.uniform(0.05, 8.0, 60).tolist():
        shared = Contour().log_delta(law, epsilon)
        assert isinstance(_lines_of_strip(law, Strip.RIGHT).line(epsilon, _traced_line), Line)
        own, assured = on_own_lines(law, epsilon)
        assert assured
        assert shared.log_delta == pytest.approx(own.log_delta, abs=2e-13)
        assert shared.log_lower <= own.log_upper
        assert own.log_lower <= shared.log_upper


@pytest.mark.slow  # test_state.py asks the like of whole answers
def test_answers_do_not_depend_on_what_was_asked_before():
    places = np.linspace(0.2, 4.0, 9).tolist()
    forward, backward = (compose(GAUSSIAN, 1000).law("remove") for _ in range(2))
    first = [Contour().log_delta(forward, e).log_delta for e in places]
    second = [Contour().log_delta(backward, e).log_delta for e in reversed(places)]
    assert first == second[::-1]


def test_slope_is_the_derivative():
    law = compose(GAUSSIAN, 1000).law("remove")
    for epsilon in (0.01, 0.3, 2.0):
        step = 1e-5
        low, high = (
            Contour().log_delta(law, epsilon + s).log_delta for s in (-0.5 * step, 0.5 * step)
        )
        slope = Contour().log_delta(law, epsilon).slope
        assert slope == pytest.approx((high - low) / step, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("count", [100, 1000])
def test_losses_that_gather_near_a_lattice_are_answered_alike_at_two_tilts(count):
    law = compose(two_bumps(1), count).law("remove")
    epsilon = 0.3 * count
    found = Contour().log_delta(law, epsilon)
    assert found.route == "mesh"  # it bounds whatever lies beyond its cut-off, by the mass near ε
    tilt = 0.7 * line_tilt(law, epsilon, Strip.RIGHT)
    other = mesh_line(law, epsilon, tilt, 0.0).value(epsilon)
    width = 4.0 * other.relative_error + found.log_upper - found.log_lower
    assert width < 1e-6
    assert abs(found.log_delta - other.log_value) <= width


@pytest.mark.slow
def test_a_line_beyond_the_return_is_answered():
    # Wide bumps: the characteristic function rises again, but not for ever.
    law = compose(two_bumps(4), 12).law("remove")
    answer, proved = Contour().log_delta(law, 1.0), accountant("prv").log_delta(law, 1.0)
    assert answer.kind == "exact"
    assert proved.log_lower <= answer.log_delta <= proved.log_upper
    assert proved.log_upper - proved.log_lower < 1e-3


def left_out(law, tilt, end):
    """2∫ Π|φ|ⁿ/y² dy from `end` on by a plain sum, up to where |φ| of normal noise is nothing."""
    y = np.geomspace(end, 40.0, 4000)
    (tilted,) = law.tilted(tilt, 40.0)
    size = np.abs(np.exp(1j * np.multiply.outer(y, tilted.deviation)) @ tilted.weight) ** law.count
    return 2.0 * np.trapezoid(size / y**2, y)


def test_what_lies_beyond_a_line_is_bounded_from_where_it_is_little():
    law = compose(mechanisms.gaussian(sigma=2), 50).law("remove")
    tail, far, near = Tail(law, 0.5), 10.0 / math.sqrt(50 / 4), 1.0 / math.sqrt(50 / 4)
    start, left = tail.beyond(far, 1e-12)
    assert start == far
    assert left_out(law, 0.5, far) <= left <= 1e-12
    # At a tenth of that the bound is far from little.
    start, left = tail.beyond(near, 1e-12)
    assert near < start < 30.0
    assert left_out(law, 0.5, start) <= left <= 1e-12
    # Of a line that ends nowhere soon enough it is all.
    start, left = tail.beyond(near, -1.0)
    assert start == math.inf
    assert left >= left_out(law, 0.5, near)


@pytest.mark.slow
def test_a_line_cut_off_in_a_dip_goes_on():
    # Both turning points of this loss make waves that cancel at some frequencies.
    composition = compose(mechanisms.student_t(nu=3, s=2), 30)
    start, _ = Tail(composition.law("remove"), 0.61).beyond(4.886, 1e-14)
    assert start > 4.886
    answer = composition.delta(2.0, direction="remove")
    proved = composition.certify(2.0, digits=13, direction="remove")
    assert answer.delta == pytest.approx(float(proved.lower_decimal), rel=1e-12)


@pytest.mark.slow_cases("subsampled")
@pytest.mark.parametrize(
    "mechanism",
    [
        mechanisms.gaussian(sigma=2),
        GAUSSIAN,
        mechanisms.logistic(s=4),
        mechanisms.gumbel(b=2),
        mechanisms.laplace(b=2),
        mechanisms.student_t(nu=3, s=2),
    ],
    ids=["gaussian", "subsampled", "logistic", "gumbel", "laplace", "student"],
)
def test_variation_bounds_the_characteristic_function(mechanism):
    law = compose(mechanism, 1).law("remove")
    (tilted,) = law.tilted(0.5 if law.domain[1] > 0.5 else 0.0)
    y = np.geomspace(0.1, 300.0, 40) / math.sqrt(tilted.variance)
    (fine,) = law.tilted(tilted.tilt, float(y[-1]))
    phi = np.exp(1j * np.multiply.outer(y, fine.deviation)) @ fine.weight
    bound = np.exp(decays([tilted]).log_bound(y)[:, 0])
    assert (np.abs(phi) <= bound * (1 + 1e-6) + 1e-13).all()
    assert (np.diff(bound) <= 1e-12).all()


SAMPLED = mechanisms.gumbel(b=2).subsample("poisson", "1/10")


@pytest.mark.slow
def test_next_to_the_end_of_moments_a_line_keeps_its_distance():
    """K is infinite from 1.54 on: next to it large losses count, and the step is short."""
    law, epsilon = compose(SAMPLED, 50).law("remove lowered"), 4.0
    saddle = line_tilt(law, epsilon, Strip.RIGHT)
    tilt, lost = off_the_end(law, epsilon, saddle)
    assert 0.0 < lost <= 4.0
    assert law.domain[1] - tilt > 2.0 * (law.domain[1] - saddle)
    nodes = _lines_of_strip(law, Strip.RIGHT).nodes(epsilon)
    assert nodes.line(epsilon, 1 << 17).places.size < 4000
    answer = Contour().log_delta(law, epsilon)
    truth = pair_of(Stranger("", gumbel, sensitivity="1/2", rate="1/10"))[2]
    value, off = truth.delta(50, epsilon)
    assert abs(math.exp(answer.log_delta) - value) <= off < 1e-4 * value
    assert answer.log_upper - answer.log_lower < 1e-11
    # A loss that is normal, or has moments of every order, keeps its saddle point.
    for other in (GAUSSIAN, LAPLACE):
        law = compose(other, 50).law("remove")
        saddle = line_tilt(law, 1.0, Strip.RIGHT)
        assert off_the_end(law, 1.0, saddle) == (saddle, 0.0)


def test_nodes_of_a_stretch_serve_every_epsilon_of_it(monkeypatch):
    evaluated = []

    def counted(law, line, stop, kernel):
        evaluated.append(stop)
        return longer(law, line, stop, kernel)

    monkeypatch.setattr(contour, "longer", counted)
    places = [0.1, 0.1001, 0.1002, 0.1003]
    forward, backward = (compose(LAPLACE, 4).law("remove") for _ in range(2))
    first = [on_own_lines(forward, e)[0] for e in places]
    once = len(evaluated)
    assert 0 < once < 2 * len(places)
    again = [on_own_lines(forward, e)[0] for e in places]
    assert len(evaluated) == once
    assert first == again == [on_own_lines(backward, e)[0] for e in places[::-1]][::-1]
    assert len(evaluated) == 2 * once
