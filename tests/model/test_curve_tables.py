"""Steps known by a Rényi curve, against the accountants of a law that has the same curve."""

from __future__ import annotations

import json
import math

import pytest
import sympy as sp
from refusals import refused

from symdp import Mechanism, compose, load_composition, mechanisms
from symdp.adapters.upper import epsilon_upper
from symdp.errors import AccuracyError
from symdp.methods.renyi import _curve_transform
from symdp.page.card import differences, make_card
from symdp.questions.ledger import Ledger

ALPHA = sp.Symbol("alpha")
STEP = mechanisms.zcdp(rho="1/32")


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("method", ["contour", "renyi", "moments"])
def test_the_curve_of_gaussian_noise(epsilon, method):
    """ρ = 1/(2σ²): the curve is that of the Gaussian, whose law has a smaller δ."""
    gauss = compose(mechanisms.gaussian(sigma=4), 20)
    found = compose(STEP, 20).delta(epsilon, method)
    assert (found.kind, found.method) == ("bound", "renyi")
    assert found.delta == pytest.approx(gauss.delta(epsilon, "renyi").delta, rel=1e-8)
    assert found.delta > gauss.delta(epsilon).delta
    back = compose(STEP, 20).epsilon(found.delta, method)
    assert back.epsilon == pytest.approx(epsilon, rel=1e-8)
    assert compose(STEP, 20).delta(back.epsilon).delta <= found.delta * (1 + 1e-12)


def test_the_epsilon_of_a_census():
    """min over α of ρα + log(1/δ)/(α − 1) + log(1 − 1/α) − log(α)/(α − 1), in many digits."""
    import mpmath

    rho, delta = mpmath.mpf("4.944"), mpmath.mpf("1e-10")

    def bound(alpha):
        rest = mpmath.log(1 - 1 / alpha) - (mpmath.log(delta) + mpmath.log(alpha)) / (alpha - 1)
        return rho * alpha + rest

    best = mpmath.findroot(lambda a: mpmath.diff(bound, a), 3.0)
    found = compose(mechanisms.zcdp(rho="4.944"), 1).epsilon(1e-10).epsilon
    assert found == pytest.approx(float(bound(best)), rel=1e-10)
    assert round(found, 5) == 25.36282


def test_a_curve_beside_known_steps():
    noise = mechanisms.laplace(b=5)
    mixed = compose([(STEP, 20), (noise, 6)])
    whole = compose([(mechanisms.gaussian(sigma=4), 20), (noise, 6)])
    for epsilon in (1.0, 3.0):
        expected = whole.delta(epsilon, "renyi").delta
        assert mixed.delta(epsilon).delta == pytest.approx(expected, rel=1e-8)
    assert (compose(STEP, 20) + compose(noise, 6)).delta(1.0).delta == mixed.delta(1.0).delta


def test_a_table_is_never_below_its_curve():
    """Chords of a convex transform lie above it; at the listed orders they touch."""
    orders = (1.5, 2.0, 3.0, 5.0, 9.0, 17.0, 33.0)
    table = Mechanism.from_renyi_points({order: order / 32 for order in orders})
    transform = _curve_transform(table)
    for order in orders:
        assert transform(order - 1) == pytest.approx((order - 1) * order / 32, rel=1e-14)
    assert transform(40.0) == math.inf
    for epsilon in (1.0, 3.0):
        bound = compose(table, 20).delta(epsilon).delta
        curve = compose(STEP, 20).delta(epsilon).delta
        assert curve <= bound * (1 + 1e-9)
        assert bound < 3 * curve


def test_a_formula_and_a_file():
    formula = Mechanism.from_renyi(ALPHA / 32)
    file = Mechanism.from_toml(
        'name = "mine"\n[parameters]\nr = "positive"\n[renyi]\ndivergence = "r*alpha"'
    )
    expected = compose(STEP, 20).epsilon(1e-6).epsilon
    for step in (formula, file(r="1/32")):
        assert compose(step, 20).epsilon(1e-6).epsilon == pytest.approx(expected, rel=1e-12)
    table = Mechanism.from_toml('name = "t"\n[renyi]\npoints = [[2, "1/16"], [4, 0.125]]')
    assert table == Mechanism.from_renyi_points([(2, "1/16"), (4, "1/8")], "t")


def test_attacks_are_bounded_from_the_gaussian_that_has_the_curve():
    """No bound from a curve may promise more than a mechanism that has it keeps."""
    curve, gauss = compose(STEP, 4), compose(mechanisms.gaussian(sigma=4), 4)
    advantage = curve.membership_advantage()
    assert advantage == pytest.approx(math.sqrt(0.125 / 2), rel=2e-3)  # Pinsker's inequality
    assert advantage > gauss.membership_advantage()
    for alpha in (0.0, 1e-3, 0.1, 0.5, 0.9, 1.0):
        assert 0.0 <= curve.trade_off(alpha) <= gauss.trade_off(alpha) + 1e-12
    assert curve.trade_off(0.9) == pytest.approx(0.0, abs=0.1)
    assert curve.bayes_error() <= gauss.bayes_error()
    for epsilon in (-2.0, -0.5):
        assert gauss.delta(epsilon).delta <= curve.delta(epsilon).delta < 1.0


@pytest.mark.slow
def test_files_ledgers_and_cards_take_the_step(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(
        '[[step]]\nmechanism = "zcdp"\nparameters = {rho = "1/32"}\ncount = 20\n'
        '[[step]]\nmechanism = "gaussian"\nparameters = {sigma = "sqrt(339/542)"}\n',
        encoding="utf-8",
    )
    steps = load_composition(path)
    ledger = Ledger(steps.steps)
    again = Ledger.from_state_dict(json.loads(json.dumps(ledger.state_dict())))
    assert again.steps == ledger.steps
    assert again.epsilon(1e-5).epsilon == steps.epsilon(1e-5).epsilon
    table = Ledger([(Mechanism.from_renyi_points({2: "1/4", 8: 1}), 3)])
    assert Ledger.from_state_dict(table.state_dict()).steps == table.steps
    card = make_card(ledger.composition(), title="a job", deltas=[1e-5])
    assert differences(card) == []
    assert "Rényi curve alone" in card["neighboring_datasets"]["protects"]
    assert epsilon_upper(ledger, 1e-5) >= ledger.epsilon(1e-5).epsilon


WRONG = [
    (lambda: compose(STEP, 3).epsilon(1e-5, "prv"), "needs the law of the loss"),
    (lambda: compose(STEP, 3).delta(1.0, "truth"), "Rényi curve alone"),
    (lambda: compose(STEP, 3).certify(1.0), "has no pair of laws"),
    (lambda: STEP.subsample("poisson", "1/10"), "known by its Rényi curve alone"),
    (lambda: STEP.moved_by(2), "no sensitivity"),
    (lambda: mechanisms.zcdp(rho=0), "rho must be above 0"),
    (lambda: Mechanism.from_renyi(-ALPHA), "must be 0 or more"),
    (lambda: Mechanism.from_renyi_points({}), "1 to 10000 orders"),
    (lambda: Mechanism.from_renyi_points({1.0: 0.1}), "above 1"),
    (lambda: Mechanism.from_renyi_points(5), "must be a table of orders and divergences"),
    (lambda: Mechanism.from_renyi_points([(2,)]), "must be (order, divergence)"),
    (lambda: Mechanism.from_renyi_points([(3, 0.2), (2, 0.1)]), "must lie above 3"),
    (lambda: Mechanism.from_renyi_points({2: 0.3, 3: 0.2}), "below the 3/10"),
    (lambda: Mechanism.from_renyi_points({2: math.nan}), "the divergence"),
]


@pytest.mark.parametrize(("make", "words"), WRONG)
def test_refusals(make, words):
    with refused(words):
        make()


def test_where_no_order_has_a_bound():
    lost = compose([STEP, mechanisms.approximate_dp(epsilon_0=1, delta_0="1/9")])
    assert lost.delta(1.0).delta == 1.0
    with pytest.raises(AccuracyError, match="does not fall"):
        lost.epsilon(1e-3)
