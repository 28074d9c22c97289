"""Adaptive Gauss–Legendre panels at any precision for peaked, smooth integrands on the line.

∫ e^{g(x)} dx is cut where less than a share e^{−depth} of it is left, as far as a search for peaks
of g shows, and each panel [a, b] is summed by Gauss's rule of m nodes, which errs by
(b − a)^{2m+1} (m!)⁴/((2m + 1)((2m)!)³) times a 2m-th derivative.  Panels halve until the sum over
both halves differs from the whole by less than the digits wanted.  Nothing is proved: whoever asks
repeats the work with another m and compares.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from flint import acb, arb, ctx

from symdp.errors import AccuracyError

LogDensity = Callable[[arb], arb]
Evaluate = Callable[[arb], tuple[arb, arb]]

_MOST_EVALUATIONS = 400_000  # of an integrand: seconds at 50 digits
_OCTAVES = 64  # of a grid around a finite end
_HARDLY = 1 / 8  # a climb ends within an eighth of a width of the top


class DivergentError(AccuracyError):
    """The integrand does not fall off, so its integral is infinite or out of reach."""


class WorkLimitError(AccuracyError):
    """The characteristic function falls off too slowly, or the convolutions are too costly."""

    def __init__(self) -> None:
        super().__init__(
            "the loss needs too many nodes at this accuracy; ask for fewer digits, "
            "or compose more steps"
        )


@dataclass(frozen=True)
class Interval:
    """An open interval of the line, unbounded where an end is None."""

    lower: arb | None
    upper: arb | None

    def holds(self, x: arb) -> bool:
        """Whether x lies strictly inside."""
        above = self.lower is None or x > self.lower
        return bool(above and (self.upper is None or x < self.upper))


@dataclass(frozen=True)
class Peak:
    """A local maximum of the integrand: its place, the log height there and its half-width."""

    place: arb
    height: float
    width: arb


@dataclass(frozen=True)
class GaussPanel:
    """Gauss–Legendre nodes on [left, right]: weights carry exp(g − height of the survey)."""

    left: arb
    right: arb
    weights: list[arb]
    losses: list[arb]


@dataclass(frozen=True)
class Survey:
    """Where an integrand lives: its peaks from left to right and the ends of what counts."""

    peaks: tuple[Peak, ...]
    lower: arb
    upper: arb

    @property
    def height(self) -> float:
        """The largest logarithm of the integrand."""
        return max(peak.height for peak in self.peaks)

    @property
    def log_mass(self) -> float:
        """A rough logarithm of the integral."""
        return max(peak.height + as_float(peak.width.log()) for peak in self.peaks)


def as_float(value: arb) -> float:
    """The middle of a ball, −∞ where it is not a number."""
    number = float(value.mid())
    return -math.inf if math.isnan(number) or value.is_nan() else number


def survey(function: LogDensity, interval: Interval, hints: Iterable[arb], depth: float) -> Survey:
    """Find the peaks of exp(function) and cut the interval where less than exp(−depth) is left.

    Parameters
    ----------
    function : callable
        The logarithm of the integrand.
    interval : Interval
    hints : iterable of arb
        Points near which to look closely, such as the modes of mixture components.
    depth : float
        Minus the natural logarithm of the relative mass that may be cut away.

    Raises
    ------
    DivergentError
        If the integrand does not fall off towards an end.
    """
    hints = [point for point in hints if interval.holds(point)]
    starts = _highest([(x, as_float(function(x))) for x in grid(interval, hints)])
    starts += [(x, as_float(function(x))) for x in hints]
    peaks: list[Peak] = []
    for start, value in starts:
        if value == -math.inf or any(_is_on(start, value, peak) for peak in peaks):
            continue
        peak = _climb(function, interval, start, value)
        if not any(
            abs(peak.place - other.place) < peak.width.min(other.width) / 2 for other in peaks
        ):
            peaks.append(peak)
    if not peaks:
        raise DivergentError("no finite value of a density was found on its support")
    found = Survey(tuple(sorted(peaks, key=lambda peak: peak.place.fmpq())), arb(0), arb(0))
    floor = found.log_mass - depth
    counting = tuple(peak for peak in found.peaks if peak.height > found.height - 2 * depth)
    if not counting:
        raise DivergentError("the tilted density was seen to grow up to an end")
    lower = _cut(function, interval, counting[0], -1, floor)
    upper = _cut(function, interval, counting[-1], 1, floor)
    return Survey(counting, lower, upper)


def make_panels(
    evaluate: Evaluate, found: Survey, digits: float, frequency: arb, order: int
) -> list[GaussPanel]:
    """Return panels with ∫ exp(g + iyℓ) = exp(found.height) Σ weight·exp(iy·loss) over them all.

    Parameters
    ----------
    evaluate : callable
        x → (g(x), ℓ(x)).
    found : Survey
        Of g.
    digits : float
        Decimal digits wanted, relative to the whole integral.
    frequency : arb
        The largest |y| for which the nodes must do.
    order : int
        Nodes a panel.

    Raises
    ------
    AccuracyError
        If the work limit is reached first.
    """
    shift = arb(found.height)
    rule = gauss_rule(order, ctx.prec)

    def sampled(left: arb, right: arb) -> tuple[GaussPanel, arb, acb]:
        centre, half = (left + right) / 2, (right - left) / 2
        weights, losses = [], []
        total, turned = arb(0), acb(0)
        for root, weight in rule:
            log_density, loss = evaluate((centre + half * root).mid())
            size = half * weight * (log_density - shift).exp()
            weights.append(size)
            losses.append(loss)
            total += size
            if not frequency.is_zero():
                turned += size * acb(0, frequency * loss).exp()
        return GaussPanel(left, right, weights, losses), total, turned

    accepted: list[GaussPanel] = []
    waiting = [sampled(a, b) for a, b in itertools.pairwise(_breaks(found))]
    evaluations = len(waiting) * order
    tolerance = sum((total for _, total, _ in waiting), arb(0)) * arb(10) ** -arb(digits) / 64
    while waiting:
        panel, total, turned = waiting.pop()
        if not abs(total) < tolerance / 1024:
            left, right = panel.left, panel.right
            middle = ((left + right) / 2).mid()
            first, second = sampled(left, middle), sampled(middle, right)
            evaluations += 2 * order
            if evaluations > _MOST_EVALUATIONS or not total.is_finite():
                raise AccuracyError(
                    f"a density was not resolved to {int(digits)} digits; ask for fewer digits"
                )
            change = abs(first[1] + second[1] - total) + abs(first[2] + second[2] - turned)
            if not (change < tolerance or right - left < abs(left) * arb(2) ** (10 - ctx.prec)):
                waiting += [first, second]
                continue
        accepted.append(panel)
    return accepted


@lru_cache(maxsize=32)
def gauss_rule(order: int, precision: int) -> tuple[tuple[arb, arb], ...]:
    """Gauss–Legendre nodes and weights on [−1, 1]."""
    with ctx.workprec(precision):
        pairs = (arb.legendre_p_root(order, k, weight=True) for k in range(order))
        return tuple((root.mid(), weight.mid()) for root, weight in pairs)


def grid(interval: Interval, hints: Iterable[arb] = (), octaves: int = _OCTAVES) -> list[arb]:
    """Points of an interval, geometric around its finite ends, or around one centre."""
    ends = [end for end in (interval.lower, interval.upper) if end is not None]
    inside = [point for point in hints if interval.holds(point)]
    centres = ends or [*inside[:1], arb(0)][:1]
    points = {}
    for centre, octave in itertools.product(centres, range(-octaves, octaves + 1)):
        for x in (centre + arb(2) ** octave, centre - arb(2) ** octave):
            if interval.holds(x):
                points[str(x.mid().man_exp())] = x.mid()
    if len(ends) == 2:
        for part in range(1, 16):
            x = ends[0] + (ends[1] - ends[0]) * part / 16
            points[str(x.mid().man_exp())] = x.mid()
    return sorted(points.values(), key=arb.fmpq)


def _highest(samples: list[tuple[arb, float]]) -> list[tuple[arb, float]]:
    """The samples no lower than those beside them, one of each run of equal ones."""
    runs = [list(run) for _, run in itertools.groupby(samples, key=lambda sample: sample[1])]
    values = [-math.inf, *(run[0][1] for run in runs), -math.inf]
    return [
        run[len(run) // 2]
        for run, before, value, after in zip(runs, values, values[1:], values[2:], strict=False)
        if value > before and value > after
    ]


def _climb(function: LogDensity, interval: Interval, start: arb, value: float) -> Peak:
    """Walk uphill from `start` with steps that double on success and shrink on failure."""
    place, height = start, value
    step = _width(function, interval, place, height)
    for _ in range(200):
        moved = False
        for direction in (1, -1):
            x = (place + direction * step).mid()
            value = as_float(function(x)) if interval.holds(x) else -math.inf
            if value > height:
                place, height, moved = x, value, True
                break
        if moved:
            step = step * 2
        else:
            step = step / 4
            if step < _width(function, interval, place, height) / 8:
                break
    return Peak(place, height, _width(function, interval, place, height))


def _width(function: LogDensity, interval: Interval, place: arb, height: float) -> arb:
    """The distance at which the function has moved by one, on the side where that is sooner."""

    def changed(exponent: int) -> bool:
        sides = [(place + direction * arb(2) ** exponent).mid() for direction in (1, -1)]
        inside = [x for x in sides if interval.holds(x)]
        return not inside or any(abs(as_float(function(x)) - height) > 1 for x in inside)

    low, high = -200, 200
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if changed(middle) else (middle, high)
    width = arb(2) ** high
    if interval.lower is not None and interval.upper is not None:
        width = width.min(interval.upper - interval.lower)
    return width.mid()


def _is_on(place: arb, value: float, peak: Peak) -> bool:
    """Whether a place with its value lies on top of a peak, hardly higher than its own top."""
    near = bool(abs(place - peak.place) < peak.width / 2)
    return near and peak.height - 1 <= value <= peak.height + _HARDLY


def _cut(function: LogDensity, interval: Interval, peak: Peak, direction: int, floor: float) -> arb:
    """March away from the outermost peak until three distances in a row are negligible."""
    end = interval.upper if direction == 1 else interval.lower
    distance, quiet = peak.width, 0
    first_quiet = distance
    for _ in range(40 + int(3 * abs(floor - peak.height))):
        x = (peak.place + direction * distance).mid()
        if not interval.holds(x):
            return end if end is not None else x
        if as_float(function(x)) + as_float(distance.log()) < floor:
            first_quiet = distance if quiet == 0 else first_quiet
            quiet += 1
            if quiet == 3:
                return (peak.place + direction * first_quiet).mid()
        else:
            quiet = 0
        distance = distance * 2
    raise DivergentError("an integrand was not seen to fall off towards infinity")


def _breaks(found: Survey) -> list[arb]:
    """Panel ends: growing geometrically away from every peak, up to half-way to the next one."""
    places = [peak.place for peak in found.peaks]
    borders = [
        found.lower,
        *(((a + b) / 2).mid() for a, b in itertools.pairwise(places)),
        found.upper,
    ]
    points = [found.lower]
    for peak, left, right in zip(found.peaks, borders, borders[1:], strict=False):
        reach = right - left
        offsets: list[arb] = []
        while not offsets or offsets[-1] < reach:
            offsets.append(peak.width * (2 ** (len(offsets) + 1) - 1))
        below = [(peak.place - offset).mid() for offset in reversed(offsets)]
        above = [(peak.place + offset).mid() for offset in offsets]
        points += [x for x in (*below, peak.place, *above) if left < x < right]
        points.append(right)
    return [points[0], *(b for a, b in itertools.pairwise(points) if b > a)]
