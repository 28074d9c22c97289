"""What replaces Bessel functions far out is never less, and tails follow from it."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp
from catalogue import ALL
from flint import arb

from symdp import compose
from symdp.balls.bessel import without_bessel
from symdp.balls.cuts import cut_tails
from symdp.derive.pieces import pieces
from symdp.emit.arb import compile_arb
from symdp.prove.enclosure import enclose_delta

k = sp.Symbol("k", integer=True)
y = sp.Symbol("y", positive=True)
THIRD = sp.Rational(1, 3)
SKELLAM = ALL["skellam"].mechanism("skellam")
SAMPLED = SKELLAM.subsample("poisson", "1/100")

EXPONENTS = {
    "one": sp.log(sp.besseli(k, 2)) - 2,
    "a ratio": 17 * sp.log(sp.besseli(k - 1, 2) / sp.besseli(k, 2)) + sp.log(sp.besseli(k, 2)),
    "other arguments": sp.log(sp.besseli(k + 3, 5))
    - 2 * sp.log(sp.besseli(k - 2, sp.Rational(1, 3))),
    "with powers": sp.log(3 * sp.besseli(k, sp.sqrt(6))) + k * sp.log(2),
}


def value(exponent, place):
    with mpmath.workdps(40):
        return mpmath.mpf(sp.N(exponent.xreplace({k: sp.Integer(place)}), 40))


@pytest.mark.parametrize("direction", [-1, 1])
@pytest.mark.parametrize("name", EXPONENTS)
def test_bounds_are_above_and_not_far(name, direction):
    exponent = EXPONENTS[name]
    bound = without_bessel(exponent, k, direction)
    assert bound.exponent.free_symbols <= {k}
    assert not bound.exponent.has(sp.besseli)
    for away in (bound.least, bound.least + 1, 20, 300):
        exact, above = (value(e, direction * away) for e in (exponent, bound.exponent))
        assert exact <= above
        assert away < 300 or above < exact + 25


@pytest.mark.parametrize(
    "exponent",
    [
        sp.log(sp.besseli(k, k)),
        sp.log(sp.besseli(k / 2, 2)),
        sp.log(sp.besseli(k, 2) + 1),
        sp.log(sp.besseli(2 * k, 2)),
    ],
)
def test_others_are_left_alone(exponent):
    assert without_bessel(exponent, k, 1) is None


@pytest.mark.slow_cases("add-1", "add-0", "add-30", "remove-0", "remove-1")
@pytest.mark.parametrize("weight", [0, 1, 30])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_tails_of_sampled_counts_are_cut_where_they_are_small(weight, direction):
    """Balls of Bessel functions are too wide to show that a far tilt leaves anything small."""
    pair = SAMPLED.pair(direction)
    (piece,) = pieces(pair)
    exponent = (piece.log_p + weight * piece.loss).xreplace({pair.variable: k})
    compiled = compile_arb(exponent, [k])
    (low, high), beyond = cut_tails(
        exponent, lambda at: arb(compiled(at).exp()), k, [None, None], arb(2) ** -60, whole=True
    )
    low, high = int(low.unique_fmpz()), int(high.unique_fmpz())
    assert -300 < low < 0 < high < 300
    with mpmath.workdps(40):
        far = [mpmath.exp(value(exponent, p)) for p in range(high, high + 60)]
        far += [mpmath.exp(value(exponent, p)) for p in range(low - 60, low + 1)]
        assert mpmath.fsum(far) <= mpmath.mpf(float(beyond.upper())) <= mpmath.mpf(2) ** -60


@pytest.mark.slow
def test_a_thousand_sampled_counts_are_proved():
    composition = compose(SAMPLED, 1000)
    found = composition.delta(0.42, direction="remove")
    ball = enclose_delta([(SAMPLED.pair("remove"), 1000)], 0.42, 10)
    assert ball.rel_accuracy_bits() > 19  # six digits, as off every lattice
    assert found.log_lower <= float(ball.log().upper())
    assert float(ball.log().lower()) <= found.log_upper


@pytest.mark.parametrize("radius", [0.1, 3.0, 17.5])
def test_balls_of_log_gamma_are_no_wider_than_its_values(radius):
    log_gamma = compile_arb(
        sp.loggamma(sp.Symbol("y", positive=True)), [sp.Symbol("y", positive=True)]
    )
    ball = log_gamma(arb(20, radius))
    ends = [mpmath.loggamma(20 + side * radius) for side in (-1, 1)]
    assert float(ball.lower()) <= ends[0]
    assert ends[1] <= float(ball.upper())
    assert float(ball.rad()) < (ends[1] - ends[0]) * (0.51 if radius > 1 else 5)
