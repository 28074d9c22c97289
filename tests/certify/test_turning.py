"""Far sums of the trapezoidal rule, against polylogarithms less their first terms."""

from __future__ import annotations

import math

import mpmath
import pytest
from flint import acb, arb, ctx

from symdp.certify.turning import TurningSums

FIRST = 40
COEFFICIENTS = (0.5, -3.0, 20.0, 150.0)
GOAL = 1e-25
ANGLES = [3.0, 1.0, -0.4, 0.05, 1e-3, 1e-12]  # differences, terms one by one, Lerch functions


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(192):
        yield


def truth(angle):
    """Return Σ_{k≥K} zᵏ Σ_m c_m k^{−m} for z = e^{i·angle}."""
    with mpmath.workdps(60):
        z = mpmath.expj(mpmath.mpf(angle))
        total = mpmath.mpc(0)
        for m, c in enumerate(COEFFICIENTS, 2):
            total += c * (mpmath.polylog(m, z) if angle else mpmath.zeta(m))
            total -= c * mpmath.fsum(z**k / mpmath.mpf(k) ** m for k in range(1, FIRST))
        return total


def found(turn):
    sums = TurningSums(FIRST, len(COEFFICIENTS), arb(GOAL))
    return sums.total(turn, [acb(c) for c in COEFFICIENTS])


def contains(ball, value):
    parts = zip((ball.real, ball.imag), (value.real, value.imag), strict=True)
    return all(part.overlaps(arb(mpmath.nstr(x, 50), 1e-45)) for part, x in parts)


@pytest.mark.parametrize("angle", ANGLES)
def test_the_sum_lies_in_a_ball_as_narrow_as_asked(angle):
    ball = found(acb(0, arb(angle)).exp())
    assert contains(ball, truth(angle))
    assert float(ball.rad()) < 4 * GOAL


@pytest.mark.parametrize("distance", [0.0, 1e-30, 1e-12])
def test_where_the_terms_do_not_turn_or_may_not(distance):
    ball = found(acb(arb(1, distance), arb(0, distance)))
    for angle in (0.0, 0.9 * distance):
        assert contains(ball, truth(angle))
    assert float(ball.rad()) < 4 * GOAL + 100 * distance


def test_the_ways_agree_where_all_serve():
    turn = acb(0, arb("0.7")).exp()
    sums = TurningSums(FIRST, len(COEFFICIENTS), arb(GOAL))
    row = [acb(c) for c in COEFFICIENTS]
    sizes = [abs(c) for c in row]
    by_powers = sums._by_powers(turn, row, sizes)
    later = 5 * FIRST
    rest = TurningSums(later, len(COEFFICIENTS), arb(GOAL))
    cut = sums._one_by_one(turn, row, later) + rest._by_powers(turn, row, sizes)
    for other in (sums.total(turn, row), cut):
        assert by_powers.real.overlaps(other.real)
        assert by_powers.imag.overlaps(other.imag)


def test_what_is_left_out_is_no_less_than_its_bound_allows():
    """Four differences only: the bound exceeds the error, and is no idle one."""
    turn = acb(0, arb(2)).exp()
    sums = TurningSums(FIRST, len(COEFFICIENTS), arb(GOAL))
    row = [acb(c) for c in COEFFICIENTS]
    gap = abs(1 - turn).lower()
    ball = sums._by_parts(turn, gap, row, [abs(c) for c in row], FIRST, 4)
    assert contains(ball, truth(2.0))
    error = abs(complex(ball.mid()) - complex(truth(2.0)))
    assert error < float(ball.rad()) * math.sqrt(2) < 1e4 * error
