"""Steps known by a Rényi curve, against the accountants of a law that has the same curve."""

from __future__ import annotations

import math

import pytest
from refusals import refused

from symdp import compose, mechanisms
from symdp.questions.renyi_steps import compose_curves, rdp, zcdp


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("method", ["renyi", "moments"])
def test_the_curve_of_gaussian_noise(epsilon, method):
    """ρ = 1/(2σ²): the curve is that of the Gaussian, whose law has a smaller δ."""
    gauss = compose(mechanisms.gaussian(sigma=4), 20)
    found = compose_curves(zcdp("1/32"), 20).delta(epsilon, method)
    assert found.kind == "bound"
    assert found.delta == pytest.approx(gauss.delta(epsilon, method).delta, rel=1e-8)
    assert found.delta > gauss.delta(epsilon).delta
    back = compose_curves(zcdp("1/32"), 20).epsilon(found.delta, method)
    assert back.epsilon == pytest.approx(epsilon, rel=1e-8)


def test_a_curve_beside_known_steps():
    noise = mechanisms.laplace(b=5)
    mixed = compose_curves([(zcdp("1/32"), 20), (noise, 6)])
    whole = compose([(mechanisms.gaussian(sigma=4), 20), (noise, 6)])
    for epsilon in (1.0, 3.0):
        expected = whole.delta(epsilon, "renyi").delta
        assert mixed.delta(epsilon).delta == pytest.approx(expected, rel=1e-8)


def test_a_table_is_never_below_its_curve():
    """Chords of a convex transform lie above it; at the listed orders they touch."""
    orders = (1.5, 2.0, 3.0, 5.0, 9.0, 17.0, 33.0)
    table = rdp({order: order / 32 for order in orders})
    for order in orders:
        assert table.transform(order - 1) == pytest.approx((order - 1) * order / 32, rel=1e-14)
    assert table.transform(40.0) == math.inf
    for epsilon in (1.0, 3.0):
        bound = compose_curves(table, 20).delta(epsilon).delta
        curve = compose_curves(zcdp("1/32"), 20).delta(epsilon).delta
        assert curve <= bound * (1 + 1e-9)
        assert bound < 3 * curve


STEP = compose_curves(zcdp("1/8"), 3)
WRONG = [
    (lambda: STEP.delta(1.0, "contour"), "Rényi curve alone: contour needs the law of the loss"),
    (lambda: STEP.epsilon(1e-5, "prv"), "ask renyi or moments"),
    (lambda: STEP.delta(math.nan), "epsilon"),
    (lambda: STEP.epsilon(0.0), "strictly between 0 and 1"),
    (lambda: zcdp(0), "rho must be above 0"),
    (lambda: rdp({}), "one order or more"),
    (lambda: rdp({1.0: 0.1}), "above 1"),
    (lambda: rdp(5), "must be a table of orders and divergences"),
    (lambda: rdp([(2,)]), "must be a table of orders and divergences"),
    (lambda: rdp([(3, 0.2), (2, 0.1)]), "above the order before it"),
    (lambda: rdp({2: 0.3, 3: 0.2}), "falls"),
    (lambda: rdp({2: math.nan}), "the divergence of order 2"),
    (lambda: compose_curves([mechanisms.laplace(b=1)]), "one curve or more"),
    (
        lambda: compose_curves(
            [zcdp(1), mechanisms.approximate_dp(epsilon_0=1, delta_0="1/9")]
        ).epsilon(1e-3),
        "no order has a finite divergence",
    ),
]


@pytest.mark.parametrize(("make", "words"), WRONG)
def test_refusals(make, words):
    with refused(words):
        make()
