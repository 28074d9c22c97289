"""What is printed of a number: no more digits than are known, ≤ where an upper end is all."""

from __future__ import annotations

import math
import re

import pytest
import sympy as sp

import symdp
from symdp import Mechanism, compose, mechanisms
from symdp.questions.guarantee import Guarantee

X = sp.Symbol("x", real=True)


@pytest.mark.parametrize(
    ("value", "lower", "upper", "shown"),
    [
        (0.1234567891234, 0.1234567891234, 0.1234567891234, "0.123456789124"),
        (0.12345678, 0.12345670, 0.12345688, "0.123457"),  # seven figures agree but for rounding
        (0.123, 0.12, 0.126, "0.13"),
        (0.0, 0.0, 1e-21, "1.1e-21"),
        (0.0, 0.0, 0.0, "0"),
    ],
)
def test_digits_end_where_the_ends_part(value, lower, upper, shown) -> None:
    def log(number: float) -> float:
        return math.log(number) if number else -math.inf

    logs = {"log_lower": log(lower), "log_upper": log(upper)}
    answer = Guarantee(1.0, log(value), "exact", "contour", "both", 1, **logs)
    assert answer.delta_text() == shown
    assert float(answer.delta_text()) >= upper * (1 - 1e-12)
    assert answer.sign == ("≤" if upper > 2 * lower else "=")


LAWS = {
    "laplace at its largest loss": (mechanisms.laplace(b=1), 1, 1.0),
    "uniform at its largest loss": (
        Mechanism.additive(sp.Rational(1, 4), X, support=(-2, 2)), 1, 0.0),
    "heavy": (mechanisms.student_t(s=2, nu=3), 3, 0.5),
    "list": (mechanisms.randomized_response(epsilon_0=2), 4, 7.9),
    "sampled": (mechanisms.laplace(b=1).subsample("poisson", "1/100"), 5, 1.0),
    "waves": (Mechanism.additive(
        sp.exp(-sp.Abs(X) / 2) * (2 + sp.cos(3 * X)), X, normalize=True), 2, 1.0),
    "counts": (mechanisms.negative_binomial(r=3, p="1/3"), 2, 1.0),
}  # fmt: skip


@pytest.mark.slow_cases("heavy")
@pytest.mark.parametrize("name", LAWS)
def test_a_printed_number_has_the_digits_of_its_interval(name: str) -> None:
    mechanism, count, epsilon = LAWS[name]
    answer = compose(mechanism, count).delta(epsilon)
    digits = len(re.sub(r"e.*|[^0-9]", "", answer.delta_text()).lstrip("0"))
    if answer.sign == "≤":
        assert answer.upper >= 2 * answer.lower
        assert digits <= 2
        return
    assert answer.upper == answer.lower or digits <= 2 - math.log10(1 - answer.lower / answer.upper)


def test_the_command_says_that_an_upper_end_is_one(shell) -> None:
    told = shell("delta laplace b=1 --epsilon 1").out
    assert re.match(r"δ\(1\) (≤ \d|= 0\n)", told)
    assert shell("delta gaussian sigma=2 --epsilon 1").out.startswith("δ(1) = 0.0")
    nothing = shell("delta gaussian sigma=1/10 -n 100 --epsilon 1 --method moments").out
    assert "no bound below 1 is known" in nothing


def test_open_is_not_stated_as_its_opposite() -> None:
    waves = LAWS["waves"][0]
    told = compose(waves, 2).protection.sentence
    assert "was not shown to have one mode: an upper bound for all shifts at once" in told
    assert "several modes" not in told


def test_a_constant_on_a_bounded_support_has_a_finite_mass() -> None:
    """Its ends held a parameter under a fraction line, of which SymPy does not know that."""
    flat = symdp.Mechanism.from_toml(
        'name = "flat"\nvariable = "x"\nsupport = ["-1/w", "1/w"]\n[parameters]\nw = "positive"\n'
        '[noise]\ndensity = "w/2"\n'
    )
    assert compose(flat(w="1/2"), 1).delta(0.1).delta == pytest.approx(0.25)
    with pytest.raises(symdp.InputError, match="its mass is infinite"):
        Mechanism.additive(sp.Rational(1, 2), X)
