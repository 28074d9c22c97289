"""Nodes that are not shown to be small are all summed, and bounds of the others hold."""

import math

import mpmath
import pytest
from flint import arb, ctx

from symdp import compose, mechanisms
from symdp.certify import enclose_delta
from symdp.certify.line import lattice
from symdp.certify.line.node_selection import Sieve, power, widest
from symdp.certify.nodes import Nodes

SPACING = arb(1) / 32


def nodes_of(masses, losses, error=0.0, total=1.0):
    weights = tuple(total * arb(m) / sum(masses) for m in masses)
    return Nodes(weights, tuple(arb(loss) for loss in losses), arb(error), 1e9)


@pytest.mark.parametrize(("stride", "total"), [(1, 1.0), (7, 1.0), (40, 1.0), (7, 1.125)])
def test_bounds_hold_and_what_is_loud_is_alone(stride, total):
    with ctx.workprec(80):
        laws = [
            nodes_of((3, 7, 6), (0, 1, 1.618), 1e-9),
            nodes_of((1, 1), (0.3, -0.7), total=total),
        ]
        counts = [9, 4]
        sieve = Sieve(laws, counts, SPACING, lambda size, node: bool(size < 1e-5 * (node + 1)))
        node = alone = together = 0
        for before, last, moduli in sieve.runs(0, 3000, stride):
            assert before == node
            node = last
            for index in range(before + 1, last + 1):
                found = [abs(law.at(index * SPACING)).upper() for law in laws]
                if moduli is None:
                    alone += 1
                else:
                    together += 1
                    assert all(a <= b for a, b in zip(found, moduli, strict=True))
            if moduli is None:
                assert last == before + 1
            else:
                assert power(moduli, counts) < 1e-5 * (before + 1)
        assert node == 3000
        assert alone
        assert together


def test_places_are_closer_than_a_step_is_wide():
    assert widest(2.0, arb(1) / 64) == 24
    assert widest(1e3, arb(1)) == 1


def responses(count, few):
    """Of the second kind are so few that |φ| recurs within a period of the first."""
    return [
        (mechanisms.randomized_response(epsilon_0=2), count),
        (mechanisms.randomized_response(epsilon_0="1/2"), few),
    ]


def exact_delta(count, few, epsilon):
    with mpmath.workdps(40):
        total = mpmath.mpf(0)
        keep = [mpmath.exp(e) / (1 + mpmath.exp(e)) for e in (mpmath.mpf(2), mpmath.mpf(1) / 2)]
        for i in range(count + 1):
            for j in range(few + 1):
                loss = 2 * (2 * i - count) + mpmath.mpf(2 * j - few) / 2
                if loss > epsilon:
                    mass = mpmath.binomial(count, i) * mpmath.binomial(few, j)
                    mass *= keep[0] ** i * (1 - keep[0]) ** (count - i)
                    mass *= keep[1] ** j * (1 - keep[1]) ** (few - j)
                    total -= mass * mpmath.expm1(epsilon - loss)
        return total


def test_nodes_that_come_back_within_a_period_are_summed(monkeypatch):
    steps = responses(400, 3)
    law = compose(steps).law("remove")
    epsilon = round(law.mean + 2 * math.sqrt(float(law.cumulants(0.0, 2)[1])), 3)
    pairs = [(m.pair("remove"), n) for m, n in steps]
    alone = []

    def counted(*args):
        for run in beyond(*args):
            alone.append(run.moduli is None)
            yield run

    beyond = lattice._beyond
    monkeypatch.setattr(lattice, "_beyond", counted)
    found = enclose_delta(pairs, epsilon, 20)
    assert any(alone)
    assert not all(alone)
    with ctx.workprec(140):
        exact = arb(mpmath.nstr(exact_delta(400, 3, mpmath.mpf(epsilon)), 38))
        assert abs(found - exact) < arb(10) ** -20 * exact


def test_nodes_that_come_back_count(monkeypatch):
    """Were they left out as small, the enclosure would lose the truth."""
    steps = responses(400, 3)
    law = compose(steps).law("remove")
    epsilon = round(law.mean + 2 * math.sqrt(float(law.cumulants(0.0, 2)[1])), 3)
    beyond = lattice._beyond

    def blind(*args):
        for run in beyond(*args):
            yield run._replace(moduli=(arb(0), arb(0)))

    monkeypatch.setattr(lattice, "_beyond", blind)
    found = enclose_delta([(m.pair("remove"), n) for m, n in steps], epsilon, 10)
    with ctx.workprec(140):
        exact = arb(mpmath.nstr(exact_delta(400, 3, mpmath.mpf(epsilon)), 38))
        assert not found.overlaps(exact)


@pytest.mark.parametrize(
    "mechanism",
    [
        mechanisms.discrete_laplace(b=2),
        mechanisms.randomized_response(epsilon_0="1/3"),
        mechanisms.discrete_laplace(b=1).subsample("poisson", "1/100"),
    ],
)
@pytest.mark.parametrize("digits", [15, 30])
def test_very_many_steps_on_a_lattice_are_proved(mechanism, digits):
    composition = compose(mechanism, 10**12)
    law = composition.law("remove")
    epsilon = law.mean + 2 * math.sqrt(float(law.cumulants(0.0, 2)[1]))
    proved = composition.certify(epsilon, digits=digits, direction="remove")
    found = composition.delta(epsilon, direction="remove")
    assert proved.log_upper - proved.log_lower < 1e-14
    assert found.log_lower <= proved.log_upper
    assert proved.log_lower <= found.log_upper
    assert found.log_upper - found.log_lower < 4e-12
