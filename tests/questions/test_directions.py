"""Both directions: where a symmetry gives them one law, and where one is larger."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
import sympy as sp

from symdp import Mechanism, compose, mechanisms
from symdp.derive.symmetry import dominating_direction
from symdp.methods.route import Contour
from symdp.numeric.answer import Answer
from symdp.questions.invert import invert, invert_larger
from symdp.questions.steps.accounted import has_one_law
from symdp.questions.steps.total_law import total_law

EVEN = [
    mechanisms.laplace(b=2),
    mechanisms.logistic(s="3/2"),
    mechanisms.gaussian(sigma=3),
    mechanisms.student_t(nu=3, s=2),
    mechanisms.discrete_laplace(b=2),
    mechanisms.gaussian(sigma=4).under("substitution"),
]
UNEVEN = [
    mechanisms.gumbel(b=2),
    mechanisms.laplace(b=2).subsample("poisson", "1/10"),
    mechanisms.randomized_response(epsilon_0=1),
]


def test_a_reflection_that_moves_the_support_exchanges_nothing():
    """P(1 − x) = Q(x) as formulas, and both have mass 1 on (−2, 1), which is mapped to (0, 3)."""
    x = sp.Symbol("x", real=True)

    def density(at):
        return sp.Rational(1, 3) + (at**3 - at**2 / 2 - 7 * at / 2) / 50

    P, Q = density(x), density(1 - x)
    assert [sp.integrate(law, (x, -2, 1)) for law in (P, Q)] == [1, 1]
    pair = Mechanism.from_pair(P, Q, x, (-2, 1), "cubic")
    assert dominating_direction(pair.pair()).value == "unknown"
    steps = compose(pair)
    cells = [-2.0 + 0.01 * (k + 0.5) for k in range(300)]
    p, q = (list(map(sp.lambdify(x, law, "math"), cells)) for law in (P, Q))
    for direction, top, bottom in (("remove", p, q), ("add", q, p)):
        truth = sum(max(a - 1.2 * b, 0.0) for a, b in zip(top, bottom, strict=True)) / 100
        answer = steps.delta(math.log(1.2), direction=direction).delta
        assert answer == pytest.approx(truth, rel=0.02)


@dataclass(frozen=True)
class Counting(Contour):
    """The default method, which writes down what it is asked."""

    asked: list[tuple[object, float]] = field(default_factory=list)

    def log_delta(self, law, epsilon: float) -> Answer:
        self.asked.append((law, epsilon))
        return super().log_delta(law, epsilon)


@pytest.mark.slow_cases("<Mechanism student_t(nu=3, s=2)>", "<Mechanism logistic(s=3/2)>")
@pytest.mark.parametrize("noise", EVEN, ids=repr)
def test_a_law_and_its_mirror_answer_alike(noise: Mechanism) -> None:
    assert has_one_law(noise)
    steps = compose(noise, 4)
    own, other = steps.law("remove"), total_law(steps.steps, "add")
    assert steps.law("add") is own
    if not noise.is_mirrored:  # else the library knows of one law alone
        assert other is not own
        assert other.parts[0][0] is not own.parts[0][0]
    method = Contour()
    for epsilon in (-0.7, 0.4, 1.1):
        mirrored = method.log_delta(other, epsilon).log_delta
        assert steps.delta(epsilon).log_delta == pytest.approx(mirrored, rel=1e-11, abs=1e-12)
        assert steps.delta(epsilon, direction="add").log_delta == pytest.approx(
            mirrored, rel=1e-11, abs=1e-12
        )
        # What is proved of the pair itself: δ(P‖Q)(ε) = 1 − e^ε + e^ε δ(Q‖P)(−ε).
        across = 1 - math.exp(epsilon) + math.exp(epsilon) * steps.delta(-epsilon).delta
        assert steps.delta(epsilon).delta == pytest.approx(across, rel=1e-9)
    curve = steps.delta([0.2, 0.8])
    assert [float(d) for d in curve.log_delta] == pytest.approx(
        [method.log_delta(other, e).log_delta for e in (0.2, 0.8)], rel=1e-11
    )
    found = invert(method, other, math.log(0.05))
    assert steps.epsilon(0.05).epsilon == pytest.approx(found.value, rel=1e-11)


@pytest.mark.parametrize("noise", [EVEN[1], EVEN[2]], ids=repr)
def test_the_trade_off_of_one_law_is_its_own_inverse(noise: Mechanism) -> None:
    steps = compose(noise, 4)
    for direction in ("remove", "both"):
        assert steps.trade_off(steps.trade_off(0.2, direction), direction) == pytest.approx(0.2)


@pytest.mark.slow_cases("<Mechanism logistic(s=3/2)>")
@pytest.mark.parametrize("noise", EVEN[:5], ids=repr)
def test_the_quick_look_agrees_with_the_proof(noise: Mechanism) -> None:
    assert dominating_direction(noise.pair()).value == "both"


@pytest.mark.parametrize("noise", UNEVEN, ids=repr)
def test_other_noise_is_asked_in_both_directions(noise: Mechanism) -> None:
    assert not has_one_law(noise)
    assert compose(noise, 3).law("add") is not compose(noise, 3).law("remove")


@pytest.mark.slow_cases("2/(pi*(1 + x**2))")
@pytest.mark.parametrize("density", ["2/(pi*(1 + x**2))", "sqrt(2/pi)*exp(-x**2/2)"])
def test_half_of_an_even_density_is_asked_in_both_directions(density: str) -> None:
    """The formula is even and its support is not: one direction has mass at infinity."""
    x = sp.Symbol("x", real=True)
    noise = Mechanism.additive(sp.sympify(density, {"x": x}), x, sp.Rational(1, 2), (0, sp.oo))
    assert not has_one_law(noise)
    steps = compose(noise, 3)
    remove, add = (steps.delta(0.5, direction=side).delta for side in ("remove", "add"))
    beyond = steps.law("add").mass_at_infinity
    assert beyond > 0.5
    assert add >= beyond > remove
    assert steps.delta(0.5).delta == add


def test_noise_about_another_centre_has_one_law_and_skewed_noise_two() -> None:
    x = sp.Symbol("x", real=True)
    moved = Mechanism.additive(sp.exp(-abs(x - 1)) / 2, x)
    assert has_one_law(moved)
    other = total_law(compose(moved, 3).steps, "add")
    mirrored = Contour().log_delta(other, 0.4).log_delta
    assert compose(moved, 3).delta(0.4).log_delta == pytest.approx(mirrored, rel=1e-11)
    for density in (
        sp.exp(-x - sp.exp(-x)),
        sp.Piecewise((sp.exp(-x) * 2 / 3, x > 0), (sp.exp(2 * x) * 2 / 3, True)),
    ):
        assert not has_one_law(Mechanism.additive(density, x))


@pytest.mark.slow_cases("laplace-1e-08", "laplace-0.001")
@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-8])
@pytest.mark.parametrize(
    "steps",
    [
        compose(mechanisms.gumbel(b=2), 6),
        compose(mechanisms.gaussian(sigma=1).subsample("poisson", "1/20"), 200),
        compose(mechanisms.laplace(b=2).subsample("poisson", "1/3"), 5),
    ],
    ids=["gumbel", "gaussian", "laplace"],
)
def test_epsilon_of_both_is_the_larger_one(steps, delta: float) -> None:
    both = steps.epsilon(delta)
    single = [steps.epsilon(delta, direction=side) for side in ("remove", "add")]
    larger = max(one.epsilon for one in single)
    assert both.epsilon == pytest.approx(larger, rel=1e-11)
    assert both.epsilon_lower <= larger <= both.epsilon_upper


def test_the_smaller_direction_is_passed_by_a_bound() -> None:
    steps = compose(mechanisms.gaussian(sigma=1).subsample("poisson", "1/20"), 200)
    laws = {side: steps.law(side) for side in ("remove", "add")}
    method = Counting()
    found = invert_larger(method, laws, math.log(1e-6))
    assert list(found) == ["remove"]
    assert laws["add"] not in [law for law, _ in method.asked]
    # The other way round the larger one is looked for as well.
    again = invert_larger(Contour(), dict(reversed(laws.items())), math.log(1e-6))
    assert again["remove"].value == pytest.approx(found["remove"].value, rel=1e-12)
    assert again["add"].value < again["remove"].value
