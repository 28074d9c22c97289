"""The contour integral of the privacy profile for losses with a density, at a cost without n.

    δ(ε) = (1/2πi) ∫_{Re z = t} e^{K(z)−εz}/(z(1+z)) dz        [SPA (28), (48)]

by the trapezoidal rule, whose error is bounded by Chernoff bounds of the terms of Poisson's sum;
rounding is bounded by how far the sum cancels.

**Lines are kept with a law:** each serves every ε next to the one whose saddle point it is. Any
line of a strip gives the same δ; where it crosses the axis changes the cost and the rounding only.
The ε whose saddle point lies at t is known without a search,

    ε(t) = K′(t) − 1/t − 1/(1+t)        [SPA (50)],

and rises with t. So a strip is halved, in a coordinate u of the tilt, down to stretches about as
wide as the integrand; the line in the middle of a stretch serves every ε of it. They do not depend
on what was asked before, and neither do answers.

**Beyond the end of a line.** Losses that gather near equally spaced values, however closely, lift
|φ_t(y)|ⁿ again beyond any point where it had fallen to nothing. Far out, the variation of the
loss's density bounds it; up to there the variance of the losses next to their median does where
steps are many. Where both leave less than rounding not far out, the line ends there and is summed
plainly. Else it is cut off smoothly, with a bound of what that changes (`kinks`); the part of
atoms, which recurs, is split off and summed exactly.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from symdp.errors import AccuracyError
from symdp.numeric.answer import (
    COUNTED,
    EXACT,
    FEW_NODES,
    LONG_LINE,
    MOST_NODES,
    SAFETY,
    SETTLED,
    TOLERABLE,
    Answer,
    margin,
)
from symdp.numeric.elementary import weighted_sums
from symdp.numeric.line import (
    Line,
    StripValue,
    answer_from_strips,
    continuous_kernel,
    first_line,
    line_tilt,
    longer,
    off_the_end,
    plain_sum,
)
from symdp.numeric.nodes import Tilted
from symdp.numeric.saddle_point import Strip, has_no_typical_tilt
from symdp.numeric.step import Array
from symdp.numeric.sums import finite_sum
from symdp.numeric.total import SumLaw, kept_with_law
from symdp.tolerances import NEGLIGIBLE, ROUNDED

if TYPE_CHECKING:
    from symdp.numeric.beyond.kinks import KinkBound


def contour_answer(
    law: SumLaw,
    epsilon: float,
    sharpened: Callable[[SumLaw, float, Answer], Answer] | None = None,
    most: float = TOLERABLE,
    large_losses: Sequence[Callable[[SumLaw, float], Answer | None]] = (),
) -> Answer | None:
    """Return δ(ε), or None where no tilt makes ε typical or the integrand does not die out.

    `sharpened` may narrow it where rounding counts; beyond the relative half width `most` it is
    None. Where rare large losses carry δ, two ways to sum over their number are asked before lines
    whose end is far out, the first one before lines beyond the rise of K.
    """
    if not law.is_spread or law.few_fall_short(epsilon):
        return None
    is_beyond_tilts = law.domain[1] < math.inf and has_no_typical_tilt(law, epsilon)
    if large_losses and (is_beyond_tilts or large_losses_count(law, epsilon)):
        counted = min(most, COUNTED) if sharpened is not None else most
        # From that many steps on a line that ends before the rise of K is short.
        traces = [_no_line, _traced_plain_line] if law.count >= 30 else [None, _no_line]
        for trace, by_large_losses in zip(traces, large_losses, strict=True):
            if trace is not None and not is_beyond_tilts:
                shared = on_shared_lines(law, epsilon, trace)
                if shared is not None and _is_narrow(shared, counted):
                    return shared
            by_sum = by_large_losses(law, epsilon)
            if by_sum is not None and _is_narrow(by_sum, TOLERABLE):
                return replace(by_sum, route="mesh")
            if law.count < 5:  # whose cut-off lines take no longer
                break
    if law.has_atoms:
        between = _between_atoms(law, epsilon)
        if between is not None:
            return between
    must_end = most <= TOLERABLE
    for trace in (_traced_line, _traced_cut_line):
        shared = on_shared_lines(law, epsilon, trace)
        is_wide = must_end and shared is not None and not _is_narrow(shared, COUNTED)
        if law.has_atoms and is_wide:
            # Atoms are kinks of δ. Next to them a line of ε alone has what others and balls lack.
            lines = own_lines(law.singly(), epsilon, must_end)
            if lines is not None and lines[1] and _is_narrow(lines[0], 10.0 * SETTLED):
                return lines[0]
        if shared is not None and sharpened is not None:
            shared = sharpened(law, epsilon, shared)
        if shared is not None and _is_narrow(shared, most):
            return shared
    singly = law.singly()
    # What is listed of atoms is listed of every step.
    law_of_lines = singly if law.has_atoms else law
    lines = own_lines(law_of_lines, epsilon, must_end)
    if lines is not None:
        answer, is_assured = lines
        if is_assured and _is_narrow(answer, most):
            return answer
    if singly is law:
        return None
    return contour_answer(singly, epsilon, sharpened, most)


def _between_atoms(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε) from the cells between atoms, None where a line ends soon or losses have none."""
    from symdp.numeric.few.between_atoms import answer_between_atoms, cells_of  # few questions' way

    if cells_of(law) is None or ends_soon(law, epsilon):
        return None
    stretch = epsilons_of_line(law, epsilon, Strip.RIGHT)
    if stretch is None:
        return None
    answer = answer_between_atoms(law, epsilon, stretch[0])
    if answer is not None and _is_narrow(answer, COUNTED):
        return answer
    return None


def _is_narrow(answer: Answer, most: float) -> bool:
    """Return whether no other row is better; far out log δ itself is rounded."""
    return margin(answer) <= most + SETTLED * abs(answer.log_delta)


def large_losses_count(law: SumLaw, epsilon: float) -> bool:
    """Return whether K has begun to rise like the largest losses at the saddle point of ε."""
    has_right_side = law.count >= 3 and law.domain[1] > 0
    return has_right_side and _lines_of_strip(law, Strip.RIGHT).rises_at(epsilon)


def ends_soon(law: SumLaw, epsilon: float) -> bool:
    """Return whether |φ|ⁿ dies out on the line of ε after few nodes."""
    few = 2048
    nodes = _lines_of_strip(law, Strip.RIGHT).nodes(epsilon)
    return nodes is not None and nodes.plain is not None and nodes.plain.places.size <= few


def on_shared_lines(law: SumLaw, epsilon: float, trace: Trace) -> Answer | None:
    """Return the answer from lines that serve other ε as well, None where there are none."""

    def value(strip: Strip) -> StripValue | None:
        lines = _lines_of_strip(law, strip)
        line = lines.line_before_rise(epsilon) or lines.line(epsilon, trace)
        return None if line is None else line.value(epsilon)

    return answer_from_strips(law, value)


@kept_with_law
def own_lines(law: SumLaw, epsilon: float, must_end: bool = False) -> tuple[Answer, bool] | None:
    """Return what `on_own_lines` does, None where no line tells anything: a later row asks too."""
    try:
        return on_own_lines(law, epsilon, must_end)
    except AccuracyError:
        return None


def on_own_lines(law: SumLaw, epsilon: float, must_end: bool = False) -> tuple[Answer, bool]:
    """Return the answer from lines for this ε alone, and whether all of them was accounted for.

    AccuracyError where it was not, if the lines must end.
    """
    assured = True
    worst = TOLERABLE if must_end else EXACT
    longest = 2 * LONG_LINE
    if longest * len(law.terms) > MOST_NODES:  # every kind has values of its own
        longest = LONG_LINE

    def value(strip: Strip) -> StripValue:
        nonlocal assured
        nodes = _lines_of_strip(law, strip).nodes(epsilon)
        if nodes is None or nodes.plain is not None:
            tilt = line_tilt(law, epsilon, strip)
            nodes = SlowNodes(law, epsilon, tilt, 0.0)
        line = nodes.line(epsilon, longest, TOLERABLE / SAFETY, worst, 0, must_end)
        integral = line.value(epsilon)
        assured = assured and integral.assured
        return integral

    answer = answer_from_strips(law, value)
    assert answer is not None
    return answer, assured


def _traced_cut_line(law: SumLaw, epsilon: float, tilt: float, beside: float) -> Traced:
    """Return a line that is cut off smoothly far out, as δ may have kinks next to other ε."""
    nodes = _slow_nodes(law, epsilon, tilt, beside)
    line = nodes.line(epsilon, LONG_LINE, least=4 * FEW_NODES)
    if line.cut is None:
        return Refused.NO_LINE
    return line


def _traced_plain_line(law: SumLaw, epsilon: float, tilt: float, beside: float) -> Traced:
    """Return a line that ends where bounds show it."""
    line = _slow_nodes(law, epsilon, tilt, beside).plain
    return Refused.NO_LINE if line is None else line


def _no_line(law: SumLaw, epsilon: float, tilt: float, beside: float) -> Traced:
    """Return that there is no line but that before the rise of K."""
    return Refused.NO_LINE


def _traced_line(law: SumLaw, epsilon: float, tilt: float, beside: float) -> Traced:
    """Return a line that serves every ε' with |ε' − ε| ≤ `beside`, or that none is shown to end."""
    return _slow_nodes(law, epsilon, tilt, beside).line(epsilon, LONG_LINE)


def _attempted(trace: Callable[[], Found]) -> Found | None:
    """Return what is traced, None where no line will do."""
    try:
        return trace()
    except AccuracyError:
        return None


def _rough_growth(law: SumLaw, tilts: Array) -> tuple[Array, Array]:
    """Return about K − tμ and K″ at some tilts."""
    cumulants = [count * np.stack(step.rough_cumulants(tilts)) for step, count in law.terms]
    excess, _, variance = np.sum(cumulants, axis=0)
    return np.asarray(excess), np.asarray(variance)


_MANIFOLD = 16.0  # times K″ at smaller tilts, where rare large losses make up K″
HALF_CELL = 0.9  # half a stretch, in standard deviations of the integrand: that costs e^0.4
_FINEST = 2.0**-20  # length of a stretch, for lines that cross elsewhere than at the saddle point
_FARTHEST = 60  # the whole u beyond which nothing is looked at


class Refused(Enum):
    """Why there is no line for a stretch of ε."""

    TOO_WIDE = "one line does not serve all of it: its halves are tried"
    NO_LINE = "no line will do there"


Traced = Line | Refused
Trace = Callable[[SumLaw, float, float, float], Traced]
Found = TypeVar("Found")  # what is traced


def epsilon_near(law: SumLaw, log_delta: float) -> float | None:
    """Return about the ε at which the integral right of both poles is δ, None where there is none.

    That is where the leading order of the saddle point approximation is.
    """
    return _lines_of_strip(law, Strip.RIGHT).epsilon_near(log_delta)


def epsilons_of_line(
    law: SumLaw, epsilon: float, strip: Strip
) -> tuple[float, float, float] | None:
    """Return a tilt near the saddle point of ε, and between which ε it serves as well.

    None where no tilt makes ε typical.
    """
    return _lines_of_strip(law, strip).epsilons_of_line(epsilon)


@kept_with_law
def _lines_of_strip(law: SumLaw, strip: Strip) -> _StripLines:
    return _StripLines(law, strip)


@dataclass(frozen=True)
class _StripPoint:
    """A place u of a strip: the tilt t, ε(t), √F₂ dt/du, and log MSD₀ [SPA (60)].

    The third is how many standard deviations of the integrand a stretch of length 1 is wide.
    """

    u: float
    tilt: float
    epsilon: float
    width: float
    log_leading: float


_epsilon_of: Callable[[_StripPoint], float] = attrgetter("epsilon")


def _epsilon_of_one_loss(law: SumLaw, log_delta: float) -> float:
    """Return about the ε that one loss exceeds with δ, the others being at their mean."""
    losses = []
    masses = []
    for step, count in law.terms:
        losses.append(step.base.centred)
        masses.append(count * step.base.weight)
    loss = np.concatenate(losses)
    mass = np.concatenate(masses)
    delta = math.exp(log_delta)
    low = 0.0
    high = float(loss.max())
    for _ in range(40):
        middle = 0.5 * (low + high)
        is_larger = loss > middle
        shares = -np.expm1(middle - loss[is_larger])
        if mass[is_larger] @ shares > delta:
            low = middle
        else:
            high = middle
    return law.mean + low


@dataclass(frozen=True)
class _BeforeRise:
    """A tilt where rare large losses do not count yet, and up to which ε its line may serve."""

    law: SumLaw
    tilt: float
    most: float
    lost: float  # e-folds, as for `first_line`

    @cached_property
    def line(self) -> Line | None:
        """The line, None where it has no end or rounding counts."""
        line = _attempted(lambda: SlowNodes(self.law, self.most, self.tilt, 0.0, self.lost).plain)
        if line is None or not SAFETY * line.error_of_nodes(self.most) <= COUNTED:
            return None
        return line


class _StripLines:
    """The lines of one strip of a law, by the places of their stretches, in rising order."""

    def __init__(self, law: SumLaw, strip: Strip) -> None:
        self._law = law
        self._strip = strip
        self._end = strip.width(law)
        self._lines: dict[tuple[float, Trace], Traced] = {}
        self._risen: dict[float, bool] = {}
        self._before_rise: dict[float, _BeforeRise | None] = {}
        self._nodes = 0
        self._points: list[_StripPoint] = []
        self._is_closed = not self._end > 0  # whether nothing can be evaluated beyond the last
        first = -5  # a first guess, evaluated together
        last = 2
        if self._is_closed:
            last = first
        elif strip is Strip.RIGHT:  # as far out as K is at hand
            near = 3.0 / (1.0 + 3.0 / self._end)
            far = 7.0 / (1.0 + 7.0 / self._end)
            last = 2 if law.window(near)[1] >= far else 1
        while not self._points and last > first:
            self._points = self._reachable(range(first, last + 1))
            last -= 1

    def line(self, epsilon: float, trace: Trace) -> Line | None:
        """Return the line that serves ε, or None where none can be kept."""
        stretch = self._stretch_with(epsilon, _epsilon_of)
        while stretch is not None:
            low, high = stretch
            traced = self._kept_line(low, high, trace)
            if isinstance(traced, Line):
                return traced
            if traced is Refused.NO_LINE:
                return None
            self._halve(low, high)
            stretch = self._stretch_with(epsilon, _epsilon_of)
        return None

    def epsilons_of_line(self, epsilon: float) -> tuple[float, float, float] | None:
        """Return the tilt of the line of ε's stretch and its ends, None where there is none."""
        stretch = self._stretch_with(epsilon, _epsilon_of)
        if stretch is None:
            return None
        low, high = stretch
        middle, _ = self._middle_of(low, high)
        return middle.tilt, low.epsilon, high.epsilon

    def rises_at(self, epsilon: float) -> bool:
        """Return whether rare large losses make up K″ at the end of ε's stretch."""
        stretch = self._stretch_with(epsilon, _epsilon_of)
        return stretch is not None and self._has_risen(stretch[1])

    def line_before_rise(self, epsilon: float) -> Line | None:
        """Return the line before rare large losses count, None where it does not serve ε.

        Where they carry δ, the saddle point is where K begins to rise like the largest of them.
        Nearer to 0 steps between frequencies are longer, and one line serves all ε at which its sum
        cancels to no less than rounding allows.
        """
        stretch = self._stretch_with(epsilon, _epsilon_of)
        has_density = self._law.is_spread and not self._law.has_atoms
        if stretch is None or not (has_density and self._has_risen(stretch[1])):
            return None
        u = 0.25 * math.floor(4.0 * stretch[1].u - 2.0)  # 0.6 to 0.7 of the tilt
        if u not in self._before_rise:
            self._before_rise[u] = _attempted(lambda: self._traced_before_rise(u))
        before = self._before_rise[u]
        if before is None or epsilon > before.most:
            return None
        return before.line

    def _traced_before_rise(self, u: float) -> _BeforeRise | None:
        """Return a line, and the largest ε at which rounding hardly counts in its sum."""
        [point] = self._evaluated([u])
        tilt = point.tilt
        first = SlowNodes(self._law, point.epsilon, tilt, 0.0, 0.5 * NEGLIGIBLE).first
        low = point.epsilon
        high = low + NEGLIGIBLE / tilt
        for _ in range(20):
            middle = 0.5 * (low + high)
            if 2.0 * SAFETY * first.error_of_nodes(middle) <= COUNTED:
                low = middle
            else:
                high = middle
        if low == point.epsilon:
            return None
        # The leading order at t is linear in ε, and at ε(t) about δ.
        log_leading = point.log_leading - tilt * (low - point.epsilon)
        lost = max(log_leading - first.value(low).log_value, 0.0)
        lost += 2.0 * tilt * (low - point.epsilon)  # at smaller ε
        return _BeforeRise(self._law, tilt, low, lost)

    def nodes(self, epsilon: float) -> SlowNodes | None:
        """Return the nodes of the line of ε's stretch, None where there is none."""
        stretch = self._stretch_with(epsilon, _epsilon_of)
        if stretch is None:
            return None
        middle, half = self._middle_of(*stretch)
        return _slow_nodes(self._law, middle.epsilon, middle.tilt, half)

    def epsilon_near(self, log_delta: float) -> float | None:
        """Return about the ε at which the strip's integral is δ, None where there is none."""
        stretch = self._stretch_with(-log_delta, lambda point: -point.log_leading)
        if stretch is None:
            return None
        # The cubic that agrees with ε and dε/d(log δ) = −1/t at both ends.
        low, high = stretch
        if self._has_risen(high):  # there the leading order overrates δ
            return _epsilon_of_one_loss(self._law, log_delta)
        gap = high.epsilon - low.epsilon
        fall = low.log_leading - high.log_leading
        x = (low.log_leading - log_delta) / fall
        left_bend = fall / low.tilt - gap
        right_bend = fall / high.tilt - gap
        bend = (1.0 - x) * left_bend - x * right_bend
        straight = low.epsilon + x * gap
        return straight + x * (1.0 - x) * bend

    def _stretch_with(
        self, value: float, rising: Callable[[_StripPoint], float]
    ) -> tuple[_StripPoint, _StripPoint] | None:
        """Return the stretch on which something rises to a value, None where none does."""
        if not self._reaches(value, rising):
            return None
        while True:
            index = bisect_right(self._points, value, key=rising) - 1
            low, high = self._points[index : index + 2]
            length = high.u - low.u
            width = max(low.width, high.width) * length
            if width <= 2.0 * HALF_CELL:  # for one line
                return low, high
            if length < _FINEST:
                return None
            self._halve(low, high)

    def _has_risen(self, point: _StripPoint) -> bool:
        """Return whether rare large losses make up K″ at a point."""
        if self._strip is not Strip.RIGHT:
            return False
        if point.u not in self._risen:
            _, variance = _rough_growth(self._law, np.asarray([0.5, 1.0]) * point.tilt)
            self._risen[point.u] = bool(_MANIFOLD * variance[0] < variance[1])
        return self._risen[point.u]

    def _halve(self, low: _StripPoint, high: _StripPoint) -> None:
        """Add the point in the middle of a stretch."""
        middle = 0.5 * (low.u + high.u)
        self._add_points(self._evaluated([middle]))

    def _add_points(self, points: Sequence[_StripPoint]) -> None:
        """Add points, each u once, in a list of their own: no search sees half of them."""
        by_u = {point.u: point for point in (*self._points, *points)}
        self._points = sorted(by_u.values(), key=lambda point: point.u)

    def _reaches(self, value: float, rising: Callable[[_StripPoint], float]) -> bool:
        """Look further out, and return whether something rises to a value between two points."""
        if not self._points:
            return False
        first = self._points[0]
        while value < rising(first) and first.u > -_FARTHEST:
            self._add_points(self._evaluated([first.u - 1.0]))
            first = self._points[0]
        last = self._points[-1]
        while value >= rising(last) and not self._is_closed:
            self._add_points(self._reachable([last.u + 1.0]))
            last = self._points[-1]
            self._is_closed |= last.u >= _FARTHEST
        return rising(first) <= value < rising(last)

    def _kept_line(self, low: _StripPoint, high: _StripPoint, trace: Trace) -> Traced:
        """Return the line of a stretch; what was kept before makes room for a new one."""
        key = (0.5 * (low.u + high.u), trace)
        kept = self._lines.get(key)
        if kept is not None:
            return kept
        middle, half = self._middle_of(low, high)
        attempted = _attempted(lambda: trace(self._law, middle.epsilon, middle.tilt, half))
        traced = attempted or Refused.NO_LINE
        size = traced.places.size if isinstance(traced, Line) else 0
        if self._nodes + size > 2 * MOST_NODES:
            self._lines.clear()
            self._nodes = 0
        self._nodes += size
        self._lines[key] = traced
        return traced

    def _middle_of(self, low: _StripPoint, high: _StripPoint) -> tuple[_StripPoint, float]:
        """Return the middle of a stretch, and how far from it an ε of the stretch is at most."""
        [middle] = self._evaluated([0.5 * (low.u + high.u)])
        half = max(high.epsilon - middle.epsilon, middle.epsilon - low.epsilon)
        return middle, (1.0 + TOLERABLE) * half

    def _reachable(self, places: Sequence[float]) -> list[_StripPoint]:
        """Return what is known at some u, nothing where they are too far out for a quadrature."""
        try:
            return self._evaluated(places)
        except AccuracyError:
            self._is_closed = True
            return []

    def _evaluated(self, places: Sequence[float]) -> list[_StripPoint]:
        """Return what is known at some u, at whole ones of which windows of tilts end."""
        u = np.asarray(places, dtype=np.float64)
        is_low = u < 0
        reach = np.where(is_low, np.exp2(u), np.exp2(u + 1.0) - 1.0)
        reach_and_one = np.where(is_low, reach, reach + 1.0)
        slope = math.log(2.0) * reach_and_one
        if self._strip is Strip.MIDDLE:
            tilt = -1.0 / (1.0 + reach)
            above = reach / (1.0 + reach)
            slope /= (1.0 + reach) ** 2
        else:
            shrunk = 1.0 + reach / self._end
            tilt = reach / shrunk
            above = 1.0 + tilt
            slope = slope / shrunk**2
        law = self._law
        cumulants = [count * np.stack(step.rough_cumulants(tilt)) for step, count in law.terms]
        excess, mean, variance = np.sum(cumulants, axis=0)
        distance = mean - 1.0 / tilt - 1.0 / above
        epsilon = law.mean + distance
        pole_at_0 = tilt**-2.0
        pole_at_minus_1 = above**-2.0
        curvature = np.maximum(variance, 0.0) + pole_at_0 + pole_at_minus_1
        log_kernel = np.log(np.abs(tilt) * above)
        leading = excess - tilt * (epsilon - law.mean) - log_kernel
        leading -= 0.5 * np.log(2.0 * math.pi * curvature)
        width = np.sqrt(curvature) * slope
        rows = np.stack([u, tilt, epsilon, width, leading], axis=1)
        return [_StripPoint(*row) for row in rows.tolist()]


_LONGEST = 300.0  # in standard deviations⁻¹ of one step: a plain sum so long would cost too much
_OUT = np.geomspace(1.0, 1e6, 81)  # times the end of a line: where bounds are taken
_LEFT_OUT = COUNTED / SAFETY  # relative to δ: what may lie beyond a line that is cut off smoothly


class Tail:
    """What lies beyond the end of a line, as the densities of `law` at a tilt bound |φ|ⁿ."""

    def __init__(self, law: SumLaw, tilt: float) -> None:
        self._law = law
        self._parts = law.tilted(tilt)
        # What a tilt makes narrower would need finer nodes than the untilted law.
        untilted = law.tilted(0.0)
        widths = [part.widest for part in (*self._parts, *untilted)]
        widest = max(widths)
        self.farthest = math.inf
        if widest > 0:
            self.farthest = _LONGEST / widest
        self._bounded: dict[float, tuple[Array, Array]] = {}

    def beyond(self, end: float, enough: float) -> tuple[float, float]:
        """Return the least y ≥ `end` with 2∫_y^∞ Π|φᵢ|^{nᵢ}/v² dv ≤ `enough`, and the integral.

        At inf, where there is no such y, it is that from `end` on.  Terms beyond add up to at most
        as much, over their step.
        """
        if end not in self._bounded:
            # Bounds of |φ|ⁿ between places from the end on, and beyond the last of them.
            places = end * _OUT
            bounds = [part.log_bound(places) for part in self._parts]
            self._bounded = {end: (places, np.exp(self._law.combine(bounds)))}
        y, size = self._bounded[end]
        shares = size * -np.diff(1.0 / y, append=0.0)
        from_last = np.cumsum(shares[::-1])
        left = 2.0 * from_last[::-1]
        good = np.flatnonzero(left <= enough)
        if not good.size:
            return math.inf, float(left[0])
        first = good[0]
        return float(y[first]), float(left[first])


@dataclass(frozen=True)
class _SmoothCut:
    """Values that die out slowly: at each ε the sum is cut off smoothly.

    Where δ is smooth around ε, a smooth cut-off at Y averages δ over a width of order 1/Y with a
    kernel whose moments all vanish: its error falls faster than any power of Y. Sums at Y and less
    show it, several of them, as next to a kink of δ any two may agree by chance; and what is beyond
    all of them is bounded.
    """

    law: SumLaw
    kinks: KinkBound
    listed: bool  # whether the atoms' part of the values is left out, and summed exactly

    def sums(self, line: Line, epsilon: float) -> tuple[float, float, float, float]:
        """Return the sum at ε, its derivative, and what lies beyond and what the cut changes."""
        total, slope, change = self.known(line, epsilon)
        beyond = 0.0
        if line.assured:
            beyond = self.beyond(line, epsilon, _LEFT_OUT * abs(total))
        _, atom_error, _ = self._atom_sum(line, epsilon)
        return total, slope, beyond + atom_error, change

    def known(self, line: Line, epsilon: float) -> tuple[float, float, float]:
        """Return the sum, its derivative, and what the cut changes as far as values are known."""
        from symdp.numeric.beyond.kinks import cut_off_rows

        exact, _, steepness = self._atom_sum(line, epsilon)
        turned = line.turned(epsilon)
        terms = turned.real
        slopes = line.places * turned.imag - line.tilt * terms
        cuts = cut_off_rows(terms.size)
        sums = 2.0 * weighted_sums(cuts, terms) - terms[0]
        full, *others = sums.tolist()
        change = max(abs(full - other) for other in others)
        slope = plain_sum(slopes * cuts[0]) + steepness
        return full + exact, slope, change

    def beyond(self, line: Line, epsilon: float, enough: float) -> float:
        """Return a bound of what the cut changes, whatever values are not known."""
        left_out = self.kinks.left_out(reach(line), epsilon)
        smooth = min(left_out, 1e300) / line.step
        if smooth <= enough:
            return smooth
        from symdp.numeric.beyond.kinks import near_bound

        near = near_bound(line, line.turned(epsilon))
        return min(smooth, near)

    def may_end(self, line: Line, epsilon: float, nodes: int, most: float) -> bool:
        """Return whether what so many nodes leave may be small, as far as a line tells."""
        wanted = most * abs(line.plain(epsilon)) * line.step
        end = nodes * line.step
        # The first nodes of a line may misjudge δ.
        if self.kinks.residual(end) > 10.0 * wanted:
            return False
        mass_near = self._mass_near(line, epsilon, end) * line.step
        if not mass_near > 2.0 * wanted:
            return True
        return not self.kinks.left_out(end, epsilon) > 10.0 * wanted

    def _mass_near(self, line: Line, epsilon: float, end: float) -> float:
        """Return about what the losses near ε leave of a line that ends there."""
        z = line.tilt + 1j * line.places
        turned = line.turned(epsilon)
        terms = turned * z * (1.0 + z)
        mass = plain_sum(terms.real)
        return abs(mass) / end**2

    def _atom_sum(self, line: Line, epsilon: float) -> tuple[float, float, float]:
        """Return what atoms alone add to the sum, its error, and its derivative by ε."""
        if not self.listed:
            return 0.0, 0.0, 0.0
        atom_sum = finite_sum(self.law, epsilon, line.tilt, atomic=True)
        if atom_sum is None:
            return 0.0, 0.0, 0.0
        log_unit = math.log(2.0 * math.pi / line.step)
        log_unit -= line.tilt * line.distance(epsilon) + line.excess
        log_value = atom_sum.log_delta if line.tilt > 0 else atom_sum.log_complement
        value = math.exp(min(log_value + log_unit, 700.0))
        error = math.exp(min(atom_sum.log_error + log_unit, 700.0))
        slope = math.exp(min(atom_sum.log_slope + log_unit, 700.0))
        return math.copysign(value, line.tilt), error, -slope


def reach(line: Line) -> float:
    """Return the end Y of a line."""
    return line.step * line.places.size


class SlowNodes:
    """The values of one line of a law with a density, as many as an ε next to its own needs.

    They are evaluated once, in blocks that do not depend on what was asked before.
    """

    def __init__(
        self, law: SumLaw, epsilon: float, tilt: float, beside: float, lost: float = 0.0
    ) -> None:
        if not lost:
            tilt, lost = off_the_end(law, epsilon, tilt, beside)
        self._law = law
        self._epsilon = epsilon
        self._tilted = law.tilted(tilt)
        self._tail = Tail(law, tilt)
        # The nodes that a Gaussian would need.
        self.first, _ = first_line(
            law, self._tilted, epsilon, tilt, continuous_kernel, math.inf, beside, lost=lost
        )

    @cached_property
    def plain(self) -> Line | None:
        """The line up to where bounds leave less than rounding, None where that is too far."""
        return self._plain_within(min(self._tail.farthest, self.first.step * LONG_LINE))

    def _plain_within(self, farthest: float) -> Line | None:
        """Return the line up to where bounds leave less than rounding, None where that is later."""
        line = self.first
        while True:
            enough = ROUNDED * abs(line.plain(self._epsilon)) * line.step
            end_of_line = line.step * line.places.size
            end, left_out = self._tail.beyond(end_of_line, enough)
            if end <= end_of_line:
                last = 0.5 * left_out / line.step / line.places.size
                return replace(line, assured=True, last=last)
            if end > farthest:
                return None
            stop = math.ceil(end / line.step) + 1
            line = longer(self._law, line, stop, continuous_kernel)

    @cached_property
    def _smooth_cut(self) -> _SmoothCut:
        from symdp.numeric.beyond.kinks import KinkBound  # most lines end where bounds show it

        kinks = KinkBound(self._law, self.first.tilt)
        lists_atoms = _lists_atoms(self._law, self.first, self._tilted)
        cut = _SmoothCut(self._law, kinks, lists_atoms)
        first = replace(self.first, cut=cut, assured=True)
        self._all = _less_atoms(self._law, first, cut, self._tilted, 0)
        return cut

    def _up_to(self, stop: int) -> Line:
        """Return the first nodes, less what atoms that are listed add."""
        cut = self._smooth_cut
        while self._all.places.size < stop:
            start = self._all.places.size
            grown = longer(self._law, self._all, _next_size(start), continuous_kernel)
            self._all = _less_atoms(self._law, grown, cut, self._tilted, start)
        return self._all.up_to(stop)

    def line(
        self,
        epsilon: float,
        most: int,
        enough: float = SETTLED,
        worst: float = TOLERABLE,
        least: int = 0,
        must_end: bool = True,
    ) -> Line:
        """Return the line for an ε.

        Where bounds show that values die out soon, it ends there. Else it has `least` to `most`
        nodes, until the sum changes by no more than `enough`, relative to it, and what lies beyond
        is bounded by little; of the most nodes the best is returned where it does so by `worst`.
        Where what lies beyond is not bounded so well it is not assured, unless it `must_end`.
        AccuracyError if the integrand does not settle.
        """
        if self.plain is not None:
            return self.plain
        cut = self._smooth_cut
        stop = self.first.places.size
        if must_end and not cut.may_end(self.first, epsilon, most, worst):
            raise AccuracyError("the steps' densities vary too much for a line to have an end")
        best = self.first
        best_error = math.inf
        settled = self.first
        settled_error = math.inf
        while stop <= most:
            plain = self._plain_within(stop * self.first.step)
            if plain is not None:  # a smooth cut-off would not come sooner
                return plain
            if must_end and not cut.may_end(self.first, epsilon, stop, worst):
                stop = _next_size(stop)
                continue
            line = self._up_to(stop)
            total, _, change = cut.known(line, epsilon)
            if math.isnan(total):  # further values take every step by itself
                break
            beyond = math.inf
            if total:
                least_counted = _LEFT_OUT * abs(total)
                beyond = cut.beyond(line, epsilon, least_counted) / abs(total)
                change = change / abs(total)
            else:
                change = math.inf
            if beyond <= 0.01 and change < settled_error:  # else a sum that settles tells nothing
                settled = line
                settled_error = change
            if change + beyond < best_error:
                best = line
                best_error = change + beyond
            is_long = line.places.size >= least
            if change <= enough and beyond <= _LEFT_OUT and is_long:
                return line
            # Next to ε what lies beyond falls like 1/Y²: the longest line would gain little.
            gained = (line.places.size / most) ** 2
            gains_little = beyond * gained > _LEFT_OUT > change
            if is_long and best_error <= worst / SAFETY and gains_little:
                return best
            stop = _next_size(line.places.size)
        if best_error <= worst:
            return best
        if settled_error <= worst and not must_end:
            return replace(settled, assured=False)
        raise AccuracyError(
            "the characteristic function of the privacy loss decays too slowly for "
            f"{self._law.count} steps: {best.places.size} nodes leave a relative error of "
            f"{best_error:.1e}"
        )


def _next_size(size: int) -> int:
    """Return up to how many nodes a line with too few is evaluated."""
    return size * (4 if size < FEW_NODES else 2)


_MOST_LINES = 4  # whose nodes are kept with a law: at most 60 MB


def _slow_nodes(law: SumLaw, epsilon: float, tilt: float, beside: float) -> SlowNodes:
    """Return the nodes of a stretch's line; the oldest ones make room for new ones."""
    kept: dict[tuple[float, ...], SlowNodes] = law.kept.setdefault("nodes of lines", {})
    key = (epsilon, tilt, beside)
    if key not in kept:
        while len(kept) >= _MOST_LINES:
            kept.pop(next(iter(kept)))
        kept[key] = SlowNodes(law, *key)
    return kept[key]


def _lists_atoms(law: SumLaw, first: Line, tilted: list[Tilted]) -> bool:
    """Return whether the atoms' part of the values, which recurs, is left out and summed exactly.

    |φ_t(y)| returns to Π aᵢ^nᵢ again and again, aᵢ the weights of the steps' atoms.
    """
    if not law.has_atoms:
        return False
    if not all(part.atomic > 0 for part in tilted):
        return False
    counts = [count for _, count in law.terms]
    pairs = zip(tilted, counts, strict=True)
    log_recurrent = math.fsum(count * math.log(part.atomic) for part, count in pairs)
    if not (log_recurrent > math.log(SETTLED) and first.tilt > -1.0):
        return False
    return finite_sum(law, 0.0, first.tilt, atomic=True) is not None


def _less_atoms(law: SumLaw, line: Line, cut: _SmoothCut, tilted: list[Tilted], start: int) -> Line:
    """Return a line from whose values, those from a node on, the atoms' part is taken if listed."""
    if not cut.listed:
        return line
    y = line.places[start:]
    modulus = np.ones(y.size)
    angle = np.zeros(y.size)
    for part, (_, count) in zip(tilted, law.terms, strict=True):
        value = part.atoms_characteristic(line.step, start, line.places.size)
        modulus = modulus * np.abs(value) ** count
        angle = angle + count * np.angle(value)
    kernel_values = continuous_kernel(np.asarray(line.tilt + 1j * y))
    of_atoms = modulus * np.exp(1j * angle) * kernel_values
    smooth_values = line.values[start:] - of_atoms
    return replace(line, values=np.append(line.values[:start], smooth_values))
