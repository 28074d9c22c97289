"""The contour integral of the privacy profile for losses with a density, at a cost without n.

    δ(ε) = (1/2πi) ∫_{Re z = t} e^{K(z)−εz}/(z(1+z)) dz        [SPA (28), (48)]

by the trapezoidal rule, whose error is bounded by Chernoff bounds of the terms of Poisson's sum;
what lies beyond the last node is bounded by the variation of the loss's density, and rounding by
how far the sum cancels.

**Lines are kept with a law:** each serves every ε next to the one whose saddle point it is. Any
line of a strip gives the same δ; where it crosses the axis changes the cost and the rounding only.
The ε whose saddle point lies at t is known without a search,

    ε(t) = K′(t) − 1/t − 1/(1+t)        [SPA (50)],

and rises with t. So a strip is halved, in a coordinate u of the tilt, down to stretches about as
wide as the integrand; the line in the middle of a stretch serves every ε of it. They do not depend
on what was asked before, and neither do answers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter

import numpy as np

from symdp.errors import AccuracyError
from symdp.numeric.answer import (
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
from symdp.numeric.cut_off import slow_line
from symdp.numeric.line import (
    Line,
    StripValue,
    answer_from_strips,
    line_tilt,
)
from symdp.numeric.saddle_point import Strip
from symdp.numeric.total import SumLaw, kept_with_law


def contour_answer(
    law: SumLaw,
    epsilon: float,
    sharpened: Callable[[SumLaw, float, Answer], Answer] | None = None,
    most: float = TOLERABLE,
) -> Answer | None:
    """Return δ(ε), or None where no tilt makes ε typical or the integrand does not die out.

    `sharpened` may narrow it where rounding counts; beyond the relative half width `most` it is
    None.
    """
    if not law.is_spread or law.few_fall_short(epsilon):
        return None
    for trace in (_traced, _traced_farther):
        shared = on_shared_lines(law, epsilon, trace)
        if shared is not None and sharpened is not None:
            shared = sharpened(law, epsilon, shared)
        if shared is not None and _is_narrow(shared, most):
            return shared
    # What is listed of atoms is listed of every step.
    found = own_lines(law.singly() if law.has_atoms else law, epsilon)
    return found[0] if found is not None and found[1] and _is_narrow(found[0], most) else None


def _is_narrow(answer: Answer, most: float) -> bool:
    """Return whether no other row is better; far out log δ itself is rounded."""
    return margin(answer) <= most + SETTLED * abs(answer.log_delta)


def prepare(law: SumLaw, epsilons: Sequence[float]) -> None:
    """Take the integrals of many ε together that shared lines serve, before each is asked for."""
    if law.is_spread:
        lower, upper = law.loss_bounds
        inside = [epsilon for epsilon in epsilons if lower < epsilon < upper]
        _lines(law, Strip.RIGHT).sum_ahead(inside, _traced)


def on_shared_lines(law: SumLaw, epsilon: float, trace: Trace) -> Answer | None:
    """Return the answer from lines that serve other ε as well, None where there are none."""

    def value(strip: Strip) -> StripValue | None:
        return _lines(law, strip).value(epsilon, trace)

    return answer_from_strips(law, value)


@kept_with_law
def own_lines(law: SumLaw, epsilon: float) -> tuple[Answer, bool] | None:
    """Return what `on_own_lines` does, None where no line tells anything: a later row asks too."""
    try:
        return on_own_lines(law, epsilon)
    except AccuracyError:
        return None


def on_own_lines(law: SumLaw, epsilon: float) -> tuple[Answer, bool]:
    """Return the answer from lines for this ε alone, and whether all of them was accounted for."""
    assured = True

    def value(strip: Strip) -> StripValue:
        nonlocal assured
        tilt = line_tilt(law, epsilon, strip)
        line = slow_line(law, epsilon, tilt, 0.0, 2 * LONG_LINE, TOLERABLE / SAFETY, EXACT)
        found = line.value(epsilon)
        assured = assured and found.assured
        return found

    answer = answer_from_strips(law, value)
    assert answer is not None
    return answer, assured


def _traced_farther(law: SumLaw, epsilon: float, tilt: float, beside: float) -> Traced:
    """Return a line that is cut off smoothly far out, as δ may have kinks next to other ε."""
    line = slow_line(law, epsilon, tilt, beside, LONG_LINE, least=4 * FEW_NODES)
    return Refused.NO_LINE if line.cut is None or not line.assured else line


def _traced(law: SumLaw, epsilon: float, tilt: float, beside: float) -> Traced:
    """Return a line that serves every ε' with |ε' − ε| ≤ `beside`, or that none is shown to end."""
    line = slow_line(law, epsilon, tilt, beside, LONG_LINE)
    return line if line.assured else Refused.NO_LINE


HALF_CELL = 0.9  # half a stretch, in standard deviations of the integrand: that costs e^0.4
_FINEST = 2.0**-20  # length of a stretch, for lines that cross elsewhere than at the saddle point
_FARTHEST = 60  # the whole u beyond which nothing is looked at


class Refused(Enum):
    """Why there is no line for a stretch of ε."""

    TOO_WIDE = "one line does not serve all of it: its halves are tried"
    NO_LINE = "no line will do there"


Traced = Line | Refused
Trace = Callable[[SumLaw, float, float, float], Traced]


def epsilon_near(law: SumLaw, log_delta: float) -> float | None:
    """Return about the ε at which the integral right of both poles is δ, None where there is none.

    That is where the leading order of the saddle point approximation is.
    """
    return _lines(law, Strip.RIGHT).epsilon_near(log_delta)


@kept_with_law
def _lines(law: SumLaw, strip: Strip) -> _Lines:
    return _Lines(law, strip)


@dataclass(frozen=True)
class _Place:
    """A place u of a strip: the tilt t, ε(t), √F₂ dt/du, and log MSD₀ [SPA (60)].

    The third is how many standard deviations of the integrand a stretch of length 1 is wide.
    """

    u: float
    tilt: float
    epsilon: float
    width: float
    log_leading: float


_epsilon: Callable[[_Place], float] = attrgetter("epsilon")


class _Lines:
    """The lines of one strip of a law, by the places of their stretches, in rising order."""

    def __init__(self, law: SumLaw, strip: Strip) -> None:
        self._law, self._strip, self._end = law, strip, strip.width(law)
        self._lines: dict[tuple[float, Trace], Traced] = {}
        self._ahead: dict[tuple[float, Trace], StripValue] = {}  # integrals taken together
        self._middles: dict[float, _Place] = {}  # where lines are about to be traced
        self._nodes = 0
        self._places: list[_Place] = []
        self._is_closed = not self._end > 0  # whether nothing can be evaluated beyond the last
        first, most = -5, 2  # a first guess, evaluated together
        if self._is_closed:
            most = first
        elif strip is Strip.RIGHT:  # as far out as K is at hand
            near, far = (reach / (1.0 + reach / self._end) for reach in (3.0, 7.0))
            most = 2 if law.window(near)[1] >= far else 1
        while not self._places and most > first:
            self._places = self._reachable(range(first, most + 1))
            most -= 1

    def value(self, epsilon: float, trace: Trace) -> StripValue | None:
        """Return the integral from the line that serves ε, None where no line can be kept."""
        if (epsilon, trace) in self._ahead:
            return self._ahead[epsilon, trace]
        line = self.line(epsilon, trace)
        return None if line is None else line.value(epsilon)

    def sum_ahead(self, epsilons: Sequence[float], trace: Trace) -> None:
        """Take the integrals at many ε at once: `value` has them then."""
        self._prepare(epsilons, trace)
        served: dict[int, tuple[Line, list[float]]] = {}
        for epsilon in epsilons:
            line = self.line(epsilon, trace)
            if line is not None:
                served.setdefault(id(line), (line, []))[1].append(epsilon)
        self._ahead = {
            (epsilon, trace): value
            for line, some in served.values()
            if line.cut is None
            for epsilon, value in zip(some, line.values_at(some), strict=True)
        }

    def _prepare(self, epsilons: Sequence[float], trace: Trace) -> None:
        """Halve the stretches of many ε together, and evaluate the middles that lines cross at."""
        for end in (min(epsilons, default=math.nan), max(epsilons, default=math.nan)):
            self._reaches(end, _epsilon)
        ends: list[tuple[_Place, _Place]] = []
        while self._places:
            known = np.asarray([place.epsilon for place in self._places])
            after = np.unique(known.searchsorted(epsilons, side="right")).tolist()
            inside = [k for k in after if 0 < k < known.size]
            ends = [(self._places[k - 1], self._places[k]) for k in inside]
            wide = [(a, b) for a, b in ends if _is_wide(a, b) and b.u - a.u >= _FINEST]
            if not wide:
                break
            self._add(self._evaluated([0.5 * (a.u + b.u) for a, b in wide]))
        crossed = [0.5 * (a.u + b.u) for a, b in ends]
        places = [u for u in crossed if u not in self._middles and (u, trace) not in self._lines]
        if places:
            self._middles = {place.u: place for place in self._evaluated(places)}

    def line(self, epsilon: float, trace: Trace) -> Line | None:
        """Return the line that serves ε, or None where none can be kept."""
        stretch = self._stretch(epsilon, _epsilon)
        while stretch is not None:
            found = self._kept(*stretch, trace)
            if found is not Refused.TOO_WIDE:
                return found if isinstance(found, Line) else None
            self._halve(*stretch)
            stretch = self._stretch(epsilon, _epsilon)
        return None

    def epsilon_near(self, log_delta: float) -> float | None:
        """Return about the ε at which the strip's integral is δ, None where there is none."""
        stretch = self._stretch(-log_delta, lambda place: -place.log_leading)
        if stretch is None:
            return None
        # The cubic that agrees with ε and dε/d(log δ) = −1/t at both ends.
        low, high = stretch
        gap, fall = high.epsilon - low.epsilon, low.log_leading - high.log_leading
        x = (low.log_leading - log_delta) / fall
        bent = (1.0 - x) * (fall / low.tilt - gap) - x * (fall / high.tilt - gap)
        return low.epsilon + x * gap + x * (1.0 - x) * bent

    def _stretch(
        self, value: float, rising: Callable[[_Place], float]
    ) -> tuple[_Place, _Place] | None:
        """Return the stretch on which something rises to a value, None where none does."""
        if not self._reaches(value, rising):
            return None
        while True:
            place = bisect_right(self._places, value, key=rising) - 1
            low, high = self._places[place : place + 2]
            if not _is_wide(low, high):
                return low, high
            if high.u - low.u < _FINEST:
                return None
            self._halve(low, high)

    def _halve(self, low: _Place, high: _Place) -> None:
        """Add the middle of a stretch."""
        self._add(self._evaluated([0.5 * (low.u + high.u)]))

    def _add(self, places: Sequence[_Place]) -> None:
        """Add places, each u once, in a list of their own: no search sees half of them."""
        known = {place.u: place for place in (*self._places, *places)}
        self._places = sorted(known.values(), key=lambda place: place.u)

    def _reaches(self, value: float, rising: Callable[[_Place], float]) -> bool:
        """Look further out, and return whether something rises to a value between two places."""
        while self._places and value < rising(self._places[0]) and self._places[0].u > -_FARTHEST:
            self._add(self._evaluated([self._places[0].u - 1.0]))
        while self._places and value >= rising(self._places[-1]) and not self._is_closed:
            self._add(self._reachable([self._places[-1].u + 1.0]))
            self._is_closed |= self._places[-1].u >= _FARTHEST
        places = self._places
        return bool(places) and rising(places[0]) <= value < rising(places[-1])

    def _kept(self, low: _Place, high: _Place, trace: Trace) -> Traced:
        """Return the line of a stretch; what was kept before makes room for a new one."""
        u = 0.5 * (low.u + high.u)
        known = self._lines.get((u, trace))
        if known is not None:
            return known
        middle = self._middles.pop(u, None) or self._evaluated([u])[0]
        half = max(high.epsilon - middle.epsilon, middle.epsilon - low.epsilon)
        try:
            found = trace(self._law, middle.epsilon, middle.tilt, (1.0 + TOLERABLE) * half)
        except AccuracyError:
            found = Refused.NO_LINE
        size = found.places.size if isinstance(found, Line) else 0
        if self._nodes + size > 2 * MOST_NODES:
            self._lines.clear()
            self._nodes = 0
        self._nodes += size
        self._lines[u, trace] = found
        return found

    def _reachable(self, places: Sequence[float]) -> list[_Place]:
        """Return what is known at some u, nothing where they are too far out for a quadrature."""
        try:
            return self._evaluated(places)
        except AccuracyError:
            self._is_closed = True
            return []

    def _evaluated(self, places: Sequence[float]) -> list[_Place]:
        """Return what is known at some u, at whole ones of which windows of tilts end."""
        u = np.asarray(places, dtype=np.float64)
        reach = np.where(u < 0, np.exp2(u), np.exp2(u + 1.0) - 1.0)
        slope = math.log(2.0) * np.where(u < 0, reach, reach + 1.0)
        if self._strip is Strip.MIDDLE:
            tilt, above = -1.0 / (1.0 + reach), reach / (1.0 + reach)
            slope /= (1.0 + reach) ** 2
        else:
            shrunk = 1.0 + reach / self._end
            tilt, slope = reach / shrunk, slope / shrunk**2
            above = 1.0 + tilt
        laws = self._law.rough.terms
        terms = [weight * np.stack(law.rough_cumulants(tilt)) for law, weight in laws]
        excess, mean, variance = np.sum(terms, axis=0)
        epsilon = self._law.mean + (mean - 1.0 / tilt - 1.0 / above)
        curvature = np.maximum(variance, 0.0) + tilt**-2.0 + above**-2.0
        leading = excess - tilt * (epsilon - self._law.mean) - np.log(np.abs(tilt) * above)
        leading -= 0.5 * np.log(2.0 * math.pi * curvature)
        columns = u, tilt, epsilon, np.sqrt(curvature) * slope, leading
        return [_Place(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]


def _is_wide(low: _Place, high: _Place) -> bool:
    """Return whether a stretch is too wide for one line."""
    return max(low.width, high.width) * (high.u - low.u) > 2.0 * HALF_CELL
