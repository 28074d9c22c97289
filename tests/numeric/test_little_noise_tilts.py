"""K of little noise, whose tilted laws have no losses in common: far tilts, and those between."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from symdp import compose, mechanisms
from symdp.errors import AccuracyError
from symdp.numeric import outline

ORDERS = [1.0001, 1.5, 2.0, 17.5, 64.0, 256.1, 300.0, 1000.0, 9999.5, 1e4]


def divergence(sigma: str, rate: str, order: float) -> mpmath.mpf:
    """Return D_α((1 − q)N(0, σ²) + qN(1, σ²) ‖ N(0, σ²)) by quadrature around both of its modes."""
    s, q, a = mpmath.mpf(sigma), mpmath.mpf(rate), mpmath.mpf(order)

    def height(x: mpmath.mpf) -> mpmath.mpf:
        loss = mpmath.log1p(q * mpmath.expm1((2 * x - 1) / (2 * s**2)))
        return a * loss - x**2 / (2 * s**2)

    places = sorted({mpmath.mpf(c) + k * s for c in (0, a) for k in range(-14, 15, 4)})
    top = max(height(x) for x in places)
    total = mpmath.quad(lambda x: mpmath.exp(height(x) - top), places)
    return (top + mpmath.log(total / (s * mpmath.sqrt(2 * mpmath.pi)))) / (a - 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "rate"),
    [
        ("1/20", "1/100000"),
        ("1/10", "1/100000"),
        ("1/2", "1/100"),
        ("2", "1/10"),
        ("100", "3/10"),
        ("1", "1/100000"),
    ],
)
def test_divergences_of_all_orders(sigma: str, rate: str) -> None:
    noise = mechanisms.gaussian(sigma=sigma).subsample("poisson", rate)
    with mpmath.workdps(25):
        exact = str(mpmath.mpf(Fraction(sigma).numerator) / Fraction(sigma).denominator)
        part = str(mpmath.mpf(Fraction(rate).numerator) / Fraction(rate).denominator)
        for order in ORDERS:
            found = compose(noise, 1).renyi(order, "remove")
            truth = divergence(exact, part, order)
            # K is rounded by 1e-21 where losses are as small as the rate.
            assert abs(found - truth) <= 4e-15 * truth + mpmath.mpf("2e-21"), order


def test_the_row_of_sampled_little_noise() -> None:
    noise = mechanisms.gaussian(sigma="1/10").subsample("poisson", "1/100000")
    assert compose(noise, 1).renyi(256.1, "remove") == pytest.approx(12793.44194350616, rel=1e-15)


def test_too_few_tilts_leave_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """K(t) = t(1 + t)/(2σ²): tilts are spread evenly, or the law is refused.

    Those at one end alone were taken when there were too many, and K(−½) of σ = 1/1000 was twice
    too small.
    """
    monkeypatch.setattr(outline, "MAX_TILTS", 40)
    law = compose(mechanisms.gaussian(sigma="1/100"), 1).law("remove")
    for tilt in (-0.7, -0.5, -0.3, 0.3, 0.7):
        assert law.cgf(tilt) == pytest.approx(tilt * (1 + tilt) * 5000, rel=1e-12)
    monkeypatch.setattr(outline, "MAX_TILTS", 10)
    law = compose(mechanisms.gaussian(sigma="1/99"), 1).law("remove")
    with pytest.raises(AccuracyError, match="smaller than the sensitivity"):
        law.cgf(-0.5)
