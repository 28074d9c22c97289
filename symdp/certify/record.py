"""A proved interval in the record that every answer has, its decimals rounded outwards."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flint import arb, ctx

from symdp.certify.larger import larger_delta, larger_epsilon
from symdp.guarantee import Guarantee

if TYPE_CHECKING:
    from symdp.composition import Composition
    from symdp.mechanism import Mechanism

CITATIONS = ("SPA (28)", "SPA (43)")
_MORE_DIGITS = 3


@dataclass(frozen=True)
class Certificate(Guarantee):
    """A guarantee whose δ (or ε) is proved to lie between two decimals, floating point included.

    Attributes
    ----------
    lower_decimal, upper_decimal
        The ends, the lower one rounded down and the upper one up.
    """

    lower_decimal: str = "0"
    upper_decimal: str = "1"

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values, both ends as decimal strings."""
        return super().to_json() | {"lower": self.lower_decimal, "upper": self.upper_decimal}


def certificate(
    ball: arb, epsilon: float, direction: str, count: int, digits: int, seconds: float
) -> Certificate:
    """Return the record of an enclosure of δ.

    Examples
    --------
    >>> certificate(arb(0.25), 1.0, "add", 1, 5, 0.0).to_json()["upper"]
    '2.5000000e-1'
    """
    shown = digits + _MORE_DIGITS
    with ctx.workprec(4 * shown + 64):
        lower, upper = ball.lower(), ball.upper()
    low, high = _fraction(lower), _fraction(upper)
    return Certificate(
        epsilon,
        _log(ball.mid(), 0),
        "exact",
        "certified",
        direction,
        count,
        "delta",
        _log(lower, -1),
        _log(upper, 1),
        seconds=seconds,
        citations=CITATIONS,
        lower_decimal=decimal_outward(max(low, Fraction(0)), shown, up=False),
        upper_decimal=decimal_outward(min(high, Fraction(1)), shown, up=True),
    )


def certify_delta(
    steps: Sequence[tuple[Mechanism, int]],
    epsilon: float | Fraction,
    digits: int,
    directions: Sequence[str],
) -> Certificate:
    """Enclose δ(ε) in each direction and return the record of the larger one.

    Raises
    ------
    InputError
        If ε or the digits are out of range.
    AccuracyError
        If no proof is found for this mechanism at so many digits.
    """
    start = time.perf_counter()
    pairs = {side: [(m.pair(side), n) for m, n in steps] for side in directions}
    side, largest = larger_delta(pairs, epsilon, digits)
    count = sum(n for _, n in steps)
    return certificate(largest, float(epsilon), side, count, digits, time.perf_counter() - start)


def certify_epsilon(
    composition: Composition, delta: float | Fraction, digits: int, directions: Sequence[str]
) -> Certificate:
    """Enclose ε(δ) in each direction and return the record of the larger one.

    The contour says where to begin; what is returned does not rest on it.

    Raises
    ------
    InputError
        If δ or the digits are out of range, or no finite ε exists.
    AccuracyError
        If the sign of δ(ε) − δ is not proved on both sides of ε.
    """
    start = time.perf_counter()
    side, (low, high) = larger_epsilon(composition, delta, digits, directions)
    shown = digits + _MORE_DIGITS
    given = float(delta)
    return Certificate(
        float((low + high) / 2),
        math.log(given) if given > 0 else -math.inf,
        "exact",
        "certified",
        side,
        composition.count,
        "epsilon",
        epsilon_lower=_double(low, -1),
        epsilon_upper=_double(high, 1),
        seconds=time.perf_counter() - start,
        citations=CITATIONS,
        given_delta=given,
        lower_decimal=decimal_outward(low, shown, up=False),
        upper_decimal=decimal_outward(high, shown, up=True),
    )


def decimal_outward(value: Fraction, digits: int, *, up: bool) -> str:
    """Return a number ≥ 0 to some significant digits, rounded up or down and never nearest.

    Examples
    --------
    >>> decimal_outward(Fraction(2, 3), 4, up=False), decimal_outward(Fraction(2, 3), 4, up=True)
    ('6.666e-1', '6.667e-1')
    >>> decimal_outward(Fraction(99999, 10**9), 3, up=True)
    '1.00e-4'
    """
    if value == 0:
        return "0"
    # The power of ten from the sizes in bits, then put right exactly.
    bits = value.numerator.bit_length() - value.denominator.bit_length()
    power = math.floor(bits * math.log10(2)) - 1
    while Fraction(10) ** (power + 1) <= value:
        power += 1
    scaled = value / Fraction(10) ** (power - digits + 1)
    whole = math.ceil(scaled) if up else math.floor(scaled)
    text = str(whole)
    if len(text) > digits:  # rounded up to the next power of ten
        text, power = text[:digits], power + 1
    return f"{text[0]}.{text[1:]}e{power}" if digits > 1 else f"{text}e{power}"


def _fraction(end: arb) -> Fraction:
    mantissa, exponent = end.mid().man_exp()
    m, e = int(mantissa), int(exponent)
    return Fraction(m * 2**e) if e >= 0 else Fraction(m, 2**-e)


def _double(end: Fraction, side: int) -> float:
    """Return a fraction as a double, rounded outwards to the side given."""
    value = float(end)
    if (Fraction(value) - end) * side < 0:
        value = math.nextafter(value, side * math.inf)
    return value


def _log(end: arb, side: int) -> float:
    """Return log as a double, rounded outwards to the side given, never above 0."""
    if not end > 0:
        return -math.inf
    with ctx.workprec(100):
        value = float(end.log().mid())
    if side:
        # Two steps: one for the rounding of the log, one for that of the conversion.
        for _ in range(2):
            value = math.nextafter(value, side * math.inf)
    return min(value, 0.0)
