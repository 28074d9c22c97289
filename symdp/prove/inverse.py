"""ε(δ) = min {ε ≥ 0 : δ(ε) ≤ δ} between two decimals, and the larger of two directions.

As δ(ε) falls, a number a with δ(a) > δ lies below ε(δ), and a number b with δ(b) ≤ δ at or above
it.  Two enclosures of δ are the whole proof; how a and b were found does not matter.

They are found by secants of

    h(ε) = log((δ(ε) − δ∞)/(δ − δ∞)),

δ∞ the mass at infinity, which is nearly linear in ε and has its zero at ε(δ).  The first slope is
that of an estimate in doubles.  From the largest finite loss on h is −∞: such a place is an upper
end as any other, and only its h is of no use.  Where a secant leaves the interval between the
ends that are proved so far, the middle of that interval is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from flint import arb, ctx

from symdp.arguments import counted_pairs, real
from symdp.emit.exact import LN10, fraction_ball, middle_of
from symdp.errors import AccuracyError, InputError
from symdp.prove.enclosure import (
    LEAST_DIGITS,
    MOST_DIGITS,
    enclose_delta,
    estimate_log_delta,
    log_with_infinite_losses,
    mass_at_infinity,
)
from symdp.tolerances import SAME

if TYPE_CHECKING:
    from symdp.model.allocation import OneStep

_SPARE = 2  # digits of δ beyond those that tell two ends apart
_MOST_LOOKS = 100  # enclosures of δ: halving an interval to 30 digits takes as many
_MOST_DOUBLINGS = 40  # of ε = 1 until δ(ε) is below δ
_HALVINGS = 40  # that bring about ε within 1e-12 of the largest loss
_HALF = Fraction(2, 5)  # of the width that is asked for: half, and room for rounded ends
_GALLOP = 8  # times as far back from beyond the largest loss as the last time
_END_DIGITS = 3  # of the ends, beyond those that are asked for
_BLUR = 3  # times the radius of h that an end lies from the zero where δ has too few digits
_SLOPE_STEP = 1e-3  # of ε, relative: for a slope in doubles
_SLOPE_ERROR = Fraction(1, 10)  # relative, of that slope
_SLOPE_DIGITS = 6  # kept of a slope
_NOISE = Fraction(1, 100)  # relative error of a difference of two h that makes a slope
_APPROACH = Fraction(1, 1000)  # of the distance to the zero: so finely h is known on the way
_START_ERROR = Fraction(1, 10**12)  # relative, of an ε that is given to begin with
_SPARE_OF_TELLING = 1.0  # digits beyond those that the gap of two estimates shows


def enclose_epsilon(
    pairs: Sequence[tuple[OneStep, int]],
    delta: float | Fraction,
    digits: int = 15,
    start: float | None = None,
) -> tuple[Fraction, Fraction]:
    """Return ends a ≤ ε(δ) ≤ b, with δ(a) > δ ≥ δ(b) proved unless a is 0.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> low, high = enclose_epsilon([(mechanisms.gaussian(sigma=2).pair(), 30)], 1e-5, 8)
    >>> f"{float(low):.6f} {float(high):.6f}", high - low < low / 10**8
    ('14.829941 14.829942', True)
    """
    if not isinstance(digits, int) or not 1 <= digits <= MOST_DIGITS:
        raise InputError(f"digits must be a whole number from 1 to 1000, not {digits!r}")
    real(delta, "delta")
    steps = counted_pairs(pairs, "pair")
    target = Fraction(delta)
    if not 0 < target < 1:
        raise InputError(f"delta = {delta!r}: it must lie strictly between 0 and 1")
    with ctx.workprec(_bits_of_digits(digits)):
        log_error = _log10(target) * LN10 - (digits + _SPARE) * LN10
        infinite = mass_at_infinity(steps, log_error)
        if not infinite < fraction_ball(target):
            raise InputError(
                f"delta = {float(target):.6g} is not above the probability {float(infinite):.6g} "
                "of an output that only one of the two distributions can give: no finite epsilon "
                "exists"
            )
    profile = _ProfileBeside(steps, target, infinite)
    if start is not None and start > 0:
        epsilon = Fraction(start)
        slope = profile.slope(epsilon)
        away = epsilon * _START_ERROR
        return _RootSearch(profile, digits, epsilon, away, slope).ends()
    if profile.look(Fraction(0), LEAST_DIGITS).sign < 0:
        return Fraction(0), Fraction(0)
    epsilon = Fraction(profile.estimate())
    slope = profile.slope(epsilon)
    return _RootSearch(profile, digits, epsilon, -1 / slope, slope).ends()


class _ProfileLook(NamedTuple):
    """What an enclosure of δ at one ε says."""

    epsilon: Fraction
    sign: int  # 1 where δ(ε) > δ is proved, −1 where δ(ε) ≤ δ is, 0 where neither is
    height: Fraction | None  # h(ε) within the radius; None where δ(ε) may be δ∞
    radius: Fraction


@dataclass
class _ProfileBeside:
    """δ(ε) beside the δ that is asked for."""

    pairs: Sequence[tuple[OneStep, int]]
    target: Fraction
    infinite: arb

    def look(self, epsilon: Fraction, digits: int) -> _ProfileLook:
        """Enclose h(ε), about to an absolute error of 10^(−digits)."""
        with ctx.workprec(_bits_of_digits(digits)):
            target = fraction_ball(self.target)
            finite = target - self.infinite
            log_ratio = float((target / finite).log())
            lost = math.ceil(log_ratio / math.log(10))
        ball = enclose_delta(self.pairs, epsilon, min(digits + lost, MOST_DIGITS))
        with ctx.workprec(_bits_of_digits(digits + lost)):
            above = ball - fraction_ball(self.target)
            sign = 0
            if above > 0:
                sign = 1
            elif above <= 0:
                sign = -1
            height = (1 + above / finite).log()
            if not height.is_finite():
                return _ProfileLook(epsilon, sign, None, Fraction(0))
            return _ProfileLook(epsilon, sign, middle_of(height), middle_of(height.rad()))

    def estimate(self) -> float:
        """Return about ε(δ), by doubling and halving of what is estimated in doubles."""
        low = 0.0
        high = 1.0
        for _ in range(_MOST_DOUBLINGS):
            if self.seems_below(high):
                break
            low = high
            high = 2 * high
        else:
            raise AccuracyError("δ(ε) was not found to fall to the δ asked for at any ε")
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self.seems_below(middle):
                high = middle
            else:
                low = middle
        return low or high

    def seems_below(self, epsilon: float) -> bool:
        """Whether δ(ε) seems to be at most δ."""
        log_delta = estimate_log_delta(self.pairs, epsilon)
        if log_delta is None:
            return self.look(Fraction(epsilon), LEAST_DIGITS).sign < 0
        return log_delta < self.log_finite()

    def log_finite(self) -> float:
        """Return about log(δ − δ∞)."""
        with ctx.workprec(_bits_of_digits(LEAST_DIGITS)):
            return float((fraction_ball(self.target) - self.infinite).log())

    def slope(self, epsilon: Fraction) -> Fraction:
        """Return about h′(ε) < 0 from estimates in doubles."""
        about = float(epsilon)
        step = _SLOPE_STEP * about
        for beside in (about + step, about - step):
            log_delta = estimate_log_delta(self.pairs, about)
            log_beside = estimate_log_delta(self.pairs, beside)
            if log_delta is None or log_beside is None:
                continue
            fall = log_delta - log_beside
            if fall * (beside - about) > 0:
                return Fraction((log_beside - log_delta) / (beside - about))
        return -1 / epsilon


@dataclass
class _RootSearch:
    """The ends that are proved so far, and where the zero of h seems to lie."""

    profile: _ProfileBeside
    digits: int
    epsilon: Fraction  # about the zero
    away: Fraction  # about how far from there it may lie
    slope: Fraction  # about h′ there
    low: Fraction = Fraction(0)  # h > 0 there, or it is 0
    high: Fraction | None = None  # h ≤ 0 there, None where no such place is known
    slope_error: Fraction = _SLOPE_ERROR  # relative
    last: _ProfileLook | None = None  # of which h is known
    least: Fraction = Fraction(0)  # of the distance of an end, where δ has few digits
    blur: int = _BLUR
    has_zero: bool = False  # whether δ(0) was looked at

    def ends(self) -> tuple[Fraction, Fraction]:
        """Look at δ until both ends are proved."""
        for _ in range(_MOST_LOOKS):
            radius = max(_HALF * self.epsilon / 10**self.digits, self.least)
            if self.high is not None and self.high - self.low <= 2 * radius:
                return self.rounded()
            if 4 * self.away > radius:
                self.move(self.look(self.epsilon, max(radius, self.away * _APPROACH)))
                continue
            for end, sign in ((self.epsilon + radius, -1), (self.epsilon - radius, 1)):
                if self.is_known(end, sign):
                    continue
                short_end = _rounded_decimal(end, self.digits + _END_DIGITS, up=sign < 0)
                look = self.look(short_end, radius)
                if look.sign != sign:
                    self.move(look)
                    break
            else:
                return self.rounded()
        raise AccuracyError("the sign of δ(ε) − δ stays unproved beside its root")

    def rounded(self) -> tuple[Fraction, Fraction]:
        """Return the ends as decimals, rounded outwards: δ falls, so that the signs stay."""
        assert self.high is not None
        digits = self.digits + _END_DIGITS
        low = self.low
        high = self.high
        if low:
            low = _rounded_decimal(low, digits, up=False)
        if high:
            high = _rounded_decimal(high, digits, up=True)
        return low, high

    def is_known(self, end: Fraction, sign: int) -> bool:
        """Whether the sign is proved at a place as close to the root as an end."""
        if sign > 0:
            return end <= self.low
        return self.high is not None and end >= self.high

    def look(self, epsilon: Fraction, fine: Fraction) -> _ProfileLook:
        """Enclose h, to digits that tell apart places so close."""
        log_accuracy = _log10(abs(self.slope) * fine)
        wanted = math.ceil(-log_accuracy) + _SPARE
        look = self.profile.look(epsilon, max(wanted, LEAST_DIGITS))
        if look.sign > 0:
            self.low = max(self.low, epsilon)
        elif look.sign < 0:
            self.high = epsilon if self.high is None else min(self.high, epsilon)
        return look

    def move(self, look: _ProfileLook) -> None:
        """Go where the secant has its zero, or to the middle of the ends if it lies outside."""
        if look.height is None:
            if look.sign == 0:
                raise AccuracyError(
                    "δ is too close to the probability of an infinite loss for the digits that "
                    "are proved of it"
                )
            # Beyond the largest loss: ε may be only a rounding of what lies below it.
            one_digit = self.epsilon / 10**self.digits
            back = max(_GALLOP * self.away, one_digit)
            self.confine(look.epsilon - back, back)
            return
        self.take_slope(look)
        step = -look.height / self.slope
        next_epsilon = look.epsilon + step
        away = abs(step) * self.slope_error
        if look.sign == 0:  # δ has too few digits, or the place lies next to the zero
            blurred = self.blur * look.radius / abs(self.slope)
            self.least = max(self.least, blurred)
            self.blur *= 2
        if look.epsilon == 0 and look.sign == 0:
            self.epsilon = max(next_epsilon, self.least)
            self.away = Fraction(0)
        elif next_epsilon <= 0 and self.low == 0 and not self.has_zero:
            self.has_zero = True
            fine = self.least + self.epsilon * _APPROACH
            self.move(self.look(Fraction(0), fine))
        else:
            self.confine(next_epsilon, away)

    def confine(self, epsilon: Fraction, away: Fraction) -> None:
        """Go to a place between the ends, or to their middle."""
        if self.low < epsilon and (self.high is None or epsilon < self.high):
            self.epsilon = epsilon
            self.away = away
        elif self.high is None:
            self.epsilon = 2 * self.low
            self.away = self.low
        else:
            self.epsilon = (self.low + self.high) / 2
            self.away = (self.high - self.low) / 2

    def take_slope(self, look: _ProfileLook) -> None:
        """Let the slope be that of the last two looks, if their difference is known."""
        last = self.last
        self.last = look
        if last is None or last.epsilon == look.epsilon:
            return
        assert look.height is not None
        assert last.height is not None
        rise = look.height - last.height
        slope = rise / (look.epsilon - last.epsilon)
        if not slope < 0:
            return
        error = (look.radius + last.radius) / abs(rise)
        if error < _NOISE:
            self.slope = -_rounded_decimal(-slope, _SLOPE_DIGITS, up=False)
            # By Taylor's theorem, as h″ is about h′² or less.
            self.slope_error = min(_SLOPE_ERROR, max(error, abs(last.height)))


def _bits_of_digits(digits: int) -> int:
    return 4 * digits + 128


def _log10(value: Fraction) -> float:
    return math.log10(value.numerator) - math.log10(value.denominator)


def _rounded_decimal(value: Fraction, digits: int, *, up: bool) -> Fraction:
    """Return a number > 0 to some significant digits, rounded up or down."""
    power = math.floor(_log10(value))
    scale = Fraction(10) ** (digits - 1 - power)
    scaled = value * scale
    units = math.ceil(scaled) if up else math.floor(scaled)
    return Fraction(units) / scale


# The larger of two directions: the other one is proved below it, with no more digits than that
# takes. Estimates say which comes first and how many digits tell the two apart.


def larger_delta(
    pairs: Mapping[str, Sequence[tuple[OneStep, int]]],
    epsilon: float | Fraction,
    digits: int,
) -> tuple[str, arb]:
    """Return the direction of the larger δ(ε), and a ball around it."""
    if len(pairs) == 1:
        ((side, steps),) = pairs.items()
        return side, enclose_delta(steps, epsilon, digits)
    about = {}
    for side, steps in pairs.items():
        log_finite = estimate_log_delta(steps, epsilon)
        about[side] = log_with_infinite_losses(steps, log_finite)
    side, *others = _directions_in_order(about)
    largest = enclose_delta(pairs[side], epsilon, digits)
    for other in others:
        few = _telling_digits(about[side], about[other])
        if few < digits:
            rough = enclose_delta(pairs[other], epsilon, int(few), largest)
            if rough < largest:
                continue
        ball = enclose_delta(pairs[other], epsilon, digits, largest)
        with ctx.workprec(4 * digits + 64):
            if ball > largest:
                side = other
            largest = largest.max(ball)
    return side, largest


def larger_epsilon(
    pairs: Mapping[str, Sequence[tuple[OneStep, int]]],
    delta: float | Fraction,
    digits: int,
    about: Mapping[str, float | None],
) -> tuple[str, tuple[Fraction, Fraction]]:
    """Return the direction of the larger ε(δ), and the ends around it.

    Where δ(a) ≤ δ is proved in one direction, its ε is at most a.
    """
    side, *others = _directions_in_order(about)
    low, high = enclose_epsilon(pairs[side], delta, digits, about[side])
    target = Fraction(delta)  # which may be below all doubles
    for other in others:
        log_delta = estimate_log_delta(pairs[other], low)
        few = _telling_digits(_log10(target) * LN10, log_delta)
        if low > 0 and few < digits:
            rough = enclose_delta(pairs[other], low, int(few))
            if rough <= fraction_ball(target):
                continue
        other_low, other_high = enclose_epsilon(pairs[other], delta, digits, about[other])
        # Symmetric noise gives the same in both directions: the first one is named.
        if other_low > high:
            side = other
        low = max(low, other_low)
        high = max(high, other_high)
    return side, (low, high)


def _directions_in_order(about: Mapping[str, float | None]) -> list[str]:
    """Return the directions, what seems clearly the largest first."""
    sides = list(about)
    estimates = {side: value for side, value in about.items() if value is not None}
    if len(estimates) < len(sides):
        return sides
    first = estimates[sides[0]]
    best = max(sides, key=estimates.__getitem__)
    difference = estimates[best] - first
    if difference > SAME * max(1.0, abs(first)):
        others = [side for side in sides if side != best]
        return [best, *others]
    return sides


def _telling_digits(larger: float | None, smaller: float | None) -> float:
    """Return how many digits of the smaller δ tell it from the larger, given both logs."""
    if larger is None or smaller is None:
        return math.inf
    if not larger - smaller > SAME * max(1.0, abs(larger)):
        return math.inf
    if smaller == -math.inf:
        return 1
    relative_gap = -math.expm1(smaller - larger)
    return max(1, math.ceil(_SPARE_OF_TELLING - math.log10(relative_gap)))
