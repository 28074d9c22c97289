"""ε(δ) between two decimals at which the sign of δ(ε) − δ is proved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb, ctx, fmpq

from symdp.certify.enclosure import enclose_delta
from symdp.certify.infinity import mass_at_infinity
from symdp.errors import AccuracyError, InputError

if TYPE_CHECKING:
    from symdp.model.allocation import OneStep

_FEW = 4  # digits that find a bracket
_SLOPE_DIGITS = 9  # of both δ in a difference quotient, whose digits decide about costs alone
_SLOPE_STEP = 1e-4  # of ε, half the quotient's width: five digits are left
_SLOPE_TRUST = 1e-2  # how far a first slope may be off
_MOST_DOUBLINGS = 40  # of ε = 1 until δ(ε) is below δ
_HALVINGS = 40  # that bring a bracket to doubles
_MOST_TRIES = 12  # each begins where the last one ended
_SPARE = 2  # digits beyond those that the width of the bracket needs
_HALF = Fraction(2, 5)  # of the width that is asked for
_BLUR = Fraction(3)  # times the radius of log δ that ends must lie from the root at least
_WIDENED = 3  # times that a step may be ten times as long


def enclose_epsilon(
    pairs: Sequence[tuple[OneStep, int]],
    delta: float | Fraction,
    digits: int = 15,
    start: float | None = None,
) -> tuple[Fraction, Fraction]:
    """Return ends a ≤ ε(δ) ≤ b with δ(a) > δ ≥ δ(b) proved, or (0, 0) where δ(0) ≤ δ is.

    Parameters
    ----------
    pairs : sequence of (Pair, count)
        All parameters bound.
    delta : float or Fraction
        0 < δ < 1, taken exactly.
    digits : int
        1 to 1000: b − a is below 10^(−digits) of either, or what fewer proved digits of δ allow.
    start : float, optional
        About where ε lies; how near costs time only.

    Raises
    ------
    InputError
        For a δ or digits out of range, or a δ that the mass at infinity reaches.
    AccuracyError
        If a sign is not proved.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> low, high = enclose_epsilon([(mechanisms.gaussian(sigma=2).pair(), 30)], 1e-5, 8)
    >>> f"{float(low):.6f} {float(high):.6f}", high - low < low / 10**8
    ('14.829941 14.829942', True)
    """
    if not isinstance(digits, int) or not 1 <= digits <= 1000:
        raise InputError(f"digits must be a whole number from 1 to 1000, not {digits!r}")
    target = Fraction(delta)
    if not 0 < target < 1:
        raise InputError(f"delta = {delta!r}: it must lie strictly between 0 and 1")
    with ctx.workprec(_bits(digits)):
        escaped = mass_at_infinity(pairs, _ball(target) * arb(2) ** -40)
        if not escaped < _ball(target):
            raise InputError(
                f"delta = {float(target):.6g} is not above the probability {float(escaped):.6g} "
                "of an output that only one of the two distributions can give: no finite epsilon "
                "exists"
            )
    profile = _Profile(pairs, target)
    if start is None or not start > 0:
        if profile.height(Fraction(0), _FEW) < 0:
            return Fraction(0), Fraction(0)
        start = profile.bracket()
    return profile.ends(Fraction(start), digits)


def is_above(
    pairs: Sequence[tuple[OneStep, int]],
    delta: float | Fraction,
    epsilon: Fraction,
    digits: int,
) -> bool:
    """Whether so many digits prove that δ(ε) ≤ δ, so that ε(δ) is at most the ε given.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> steps = [(mechanisms.gaussian(sigma=2).pair(), 3)]
    >>> is_above(steps, 1e-5, Fraction(4), 2), is_above(steps, 1e-5, Fraction(3), 2)
    (True, False)
    """
    return bool(enclose_delta(pairs, epsilon, digits) <= _ball(Fraction(delta)))


@dataclass
class _Profile:
    """log δ(ε) less the logarithm of the target, in balls."""

    pairs: Sequence[tuple[OneStep, int]]
    target: Fraction

    def height(self, epsilon: Fraction, digits: int) -> arb:
        ball = enclose_delta(self.pairs, epsilon, digits)
        with ctx.workprec(_bits(digits)):
            return (ball / _ball(self.target)).log() if ball > 0 else arb.neg_inf()

    def bracket(self) -> float:
        """Return about the root, from few digits."""
        low, high = 0.0, 1.0
        for _ in range(_MOST_DOUBLINGS):
            if self.height(Fraction(high), _FEW) < 0:
                break
            low, high = high, 2 * high
        else:
            raise AccuracyError("δ(ε) was not seen to fall to the δ asked for at any ε")
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if not high - low > 1e-3 * high:
                break
            low, high = (low, middle) if self.height(Fraction(middle), _FEW) < 0 else (middle, high)
        return (low + high) / 2

    def ends(self, start: Fraction, digits: int) -> tuple[Fraction, Fraction]:
        """Refine by secants until the signs at two decimals around the root are proved."""
        place = start
        radius = _HALF * place / 10**digits
        slope = self._slope(place)
        trust = _SLOPE_TRUST
        known: tuple[Fraction, Fraction] | None = None
        spare, blur = _SPARE, _BLUR
        for _ in range(_MOST_TRIES):
            enough = max(math.ceil(-_log10(abs(slope) * radius)), 1) + spare
            # What is not known of the place yet need not be computed to all digits.
            height = self.height(place, enough)
            if not height.is_finite():
                raise AccuracyError("δ(ε) vanishes where its inverse was looked for")
            value = _fraction(height)
            if known is not None and known[0] != place and value != known[1]:
                slope = (value - known[1]) / (place - known[0])
            known = (place, value)
            move = -value / slope
            place = place + move
            if not place > 0:
                place = known[0] / 2
                continue
            # Where δ has fewer proved digits than asked, no narrower ends can be told apart.
            blurred = blur * _fraction(height.rad()) / abs(slope)
            radius = max(_HALF * place / 10**digits, blurred)
            if abs(move) * Fraction(trust) < radius / 4:
                low = _decimal(max(place - radius, place / 2), digits + 2, up=False)
                high = _decimal(place + radius, digits + 2, up=True)
                if self.height(low, enough) > 0 and self.height(high, enough) <= 0:
                    return low, high
                spare, blur = spare + _SPARE, 2 * blur
            trust = max(min(float(abs(move) / place), trust), 10.0**-digits)
        raise AccuracyError("the sign of δ(ε) − δ stays unproved beside its root")

    def _slope(self, place: Fraction) -> Fraction:
        """Return about d log δ/dε."""
        rise, step = Fraction(0), place * Fraction(_SLOPE_STEP)
        for widened in range(_WIDENED):
            step = place * Fraction(_SLOPE_STEP) * 10**widened
            heights = [self.height(x, _SLOPE_DIGITS) for x in (place - step, place + step)]
            if not all(height.is_finite() for height in heights):
                raise AccuracyError("δ(ε) vanishes where its inverse was looked for")
            rise = _fraction(heights[1]) - _fraction(heights[0])
            doubt = sum(_fraction(height.rad()) for height in heights)
            if doubt < Fraction(_SLOPE_TRUST) * abs(rise):
                break
        if not rise < 0:
            raise AccuracyError("δ(ε) was not seen to fall where its inverse was looked for")
        return rise / (2 * step)


def _bits(digits: int) -> int:
    return 4 * digits + 128


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def _fraction(ball: arb) -> Fraction:
    mantissa, exponent = ball.mid().man_exp()
    whole, power = int(mantissa), int(exponent)
    return Fraction(whole * 2**power) if power >= 0 else Fraction(whole, 2**-power)


def _log10(value: Fraction) -> float:
    return math.log10(value.numerator) - math.log10(value.denominator)


def _decimal(value: Fraction, digits: int, *, up: bool) -> Fraction:
    """Return a number > 0 to some significant digits, rounded up or down."""
    power = math.floor(_log10(value))
    scale = Fraction(10) ** (digits - 1 - power)
    scaled = value * scale
    return Fraction(math.ceil(scaled) if up else math.floor(scaled)) / scale
