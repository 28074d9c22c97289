"""Sums over a panel of nodes: as the nodes one by one, and what is proved with them."""

from __future__ import annotations

import math

import pytest
import sympy as sp
from catalogue import ALL
from flint import acb, arb, ctx

from symdp import compose, mechanisms
from symdp.certify import enclose_delta, enclosure, panels
from symdp.certify.panels import sum_panel
from symdp.certify.step import tilted_step
from symdp.emit.arb import constant_ball

SPACING = arb("0.0625")
COUNT = 256  # nodes that are summed one by one
GAUSSIAN = mechanisms.gaussian(sigma=1).subsample("poisson", "1/100")
STEPS = {
    "smooth": (GAUSSIAN, 4, 2**14),
    "turning": (mechanisms.student_t(nu=3, s=2), 1, 2**11),
    "edges and atoms": (mechanisms.laplace(b=2), 1, 2**10),
    "a singular end": (ALL["gamma noise"].mechanism("noise"), 1, 2**10),
    "far away": (mechanisms.laplace(b=2), 1, 2**50),
}


def nodes_of(name, bits=90):
    mechanism, tilt, first = STEPS[name]
    step = tilted_step(mechanism.pair("remove"), sp.Rational(tilt))
    start, reach = (float(SPACING) * k for k in (first, 2 * first))
    return step, step.nodes(reach, start, bits), first


def term(steps, tilt, epsilon, y):
    z = acb(tilt, y)
    value = acb(0, -epsilon * y).exp() / (z * (1 + z))
    for nodes, count in steps:
        value *= nodes.at(y) ** count
    return value


def compared(steps, tilt, first):
    """Sum a panel and some of its nodes, further apart; both must be the same sum."""
    stride = first // COUNT
    spacing, epsilon = stride * SPACING, arb("0.3")
    found = sum_panel(steps, tilt, epsilon, spacing, COUNT, arb(2) ** -80)
    assert found is not None
    expected = sum(
        (term(steps, tilt, epsilon, k * spacing) for k in range(COUNT, 2 * COUNT)), acb(0)
    )
    difference = found.total - expected
    assert abs(difference.mid()) <= found.error + abs(difference.rad())
    return found


@pytest.mark.parametrize("name", [name for name in STEPS if name != "far away"])
def test_a_panel_is_the_sum_of_its_nodes(name):
    with ctx.workprec(160):
        step, nodes, first = nodes_of(name)
        found = compared([(nodes, 3)], constant_ball(step.tilt, 160).real, first)
        assert found.error < 1e-20


def test_steps_of_two_kinds_are_multiplied():
    with ctx.workprec(160):
        one, nodes, first = nodes_of("edges and atoms")
        _, others, _ = nodes_of("a singular end")
        compared([(nodes, 2), (others, 1)], constant_ball(one.tilt, 160).real, first)


def test_a_panel_far_away_has_as_many_nodes_as_one_nearby():
    with ctx.workprec(192):
        step, nodes, first = nodes_of("far away")
        assert len(nodes.losses) < 1000
        tilt = constant_ball(step.tilt, 192).real
        # Where ε is a value of the loss nothing turns, and the sum of 1/y² is known.
        epsilon = arb("0.5")
        found = sum_panel([(nodes, 1)], tilt, epsilon, SPACING, first, arb(2) ** -130)
        assert found is not None
        pair = mechanisms.laplace(b=2).pair("remove")
        assert sp.simplify(sp.S.Half) in {point.loss for point in _flat(pair)}
        y = first * SPACING
        mass = math.exp(float(step.tilt) * 0.5 - float(step.scale)) / 2
        assert float(found.total.real) == pytest.approx(-mass / float(2 * y * SPACING), rel=1e-9)


def _flat(pair):
    from symdp.derive.pieces import pieces

    return [piece for piece in pieces(pair) if piece.slope == "constant"]


def test_a_wide_panel_is_halved(monkeypatch):
    with ctx.workprec(160):
        step, nodes, first = nodes_of("smooth")
        tilt = constant_ball(step.tilt, 160).real
        arguments = [(nodes, 3)], tilt, arb("0.3"), SPACING, first, arb(2) ** -80
        whole = sum_panel(*arguments)
        monkeypatch.setattr(panels, "_MOST_DEGREE", 44)
        halved = sum_panel(*arguments)
        assert whole is not None
        assert halved is not None
        difference = whole.total - halved.total
        assert abs(difference.mid()) <= whole.error + halved.error + abs(difference.rad())
        monkeypatch.setattr(panels, "_MOST_DEGREE", 4)
        assert sum_panel(*arguments) is None


@pytest.mark.parametrize("turn", ["0", "1e-30", "0.001", "1.5", "3.14159"])
def test_moments_are_sums_of_powers(turn):
    with ctx.workprec(200):
        angle = arb(turn)
        found = panels._moments(angle, 64, 12)
        for power in (0, 1, 7, 12):
            expected = sum(
                (acb(0, k * angle).exp() * (arb(2 * k) / 64 - 1) ** power for k in range(64)),
                acb(0),
            )
            assert found[power].overlaps(expected)
            assert abs(found[power].rad()) < 1e-40


HALVES = sp.Rational(3, 2)
SAMPLED = {
    "gumbel": (mechanisms.gumbel(b=3), 0.005),
    "rayleigh scales": (ALL["rayleigh scales"].mechanism("r")(a=HALVES, c=1), 0.05),
    "weibull scales": (ALL["weibull scales"].mechanism("w")(k=HALVES, a=2, c=HALVES), 0.011),
    "gamma shapes": (ALL["gamma shapes"].mechanism("g")(a=HALVES, c=1), 0.009),
    "weibull noise": (ALL["weibull noise"].mechanism("w"), 0.066),
    "exp(-|x|**3) noise": (ALL["exp(-|x|**3) noise"].mechanism("e"), 0.05),
    "cauchy": (ALL["cauchy"].mechanism("c"), 0.012),
}
FAST = {"gumbel", "gamma shapes"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in FAST else [pytest.mark.slow]) for n in SAMPLED]
)
def test_three_sampled_steps_are_certified(name):
    mechanism, epsilon = SAMPLED[name]
    mechanism = mechanism.subsample("poisson", "1/100")
    ball = enclose_delta([(mechanism.pair("remove"), 3)], epsilon, 15)
    answer = compose(mechanism, 3).delta(epsilon, direction="remove")
    with ctx.workprec(128):
        log = ball.log()
        assert ball.rel_accuracy_bits() > 48
        assert answer.log_lower <= log.upper()
        assert answer.log_upper >= log.lower()


def test_weights_have_bits_to_spare_for_powers_that_cancel(monkeypatch):
    """Of a thousand steps the parts of φ next to its ends add up to far more than φ itself."""
    step = ALL["exp(-cosh x)"].mechanism("noise").subsample("poisson", "1/100")
    goals = []
    finite = enclosure._finite

    def counted(*arguments):
        goals.append(arguments[-1])
        return finite(*arguments)

    monkeypatch.setattr(enclosure, "_finite", counted)
    ball = enclose_delta([(step.pair("remove"), 1000)], 2.82, 15)
    assert ball.rel_accuracy_bits() > 49
    assert len(goals) == 1
