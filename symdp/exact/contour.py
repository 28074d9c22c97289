"""The exact accountant: the privacy profile as a contour integral, at a cost independent of n."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from symdp.errors import AccuracyError
from symdp.exact.answer import Answer
from symdp.exact.base import FloatAccountant
from symdp.exact.conditioned import conditioned
from symdp.exact.exact import ROUNDED, exact_answer, margin
from symdp.exact.finite_sum import FiniteSum, count_sums, finite_sum
from symdp.exact.halves import MOST_STEPS, halved_sum
from symdp.exact.jumps import with_jumps
from symdp.exact.lattice import Lattice, find_lattice, lattice_kernel
from symdp.exact.line import Kernel, StripValue, continuous_kernel
from symdp.exact.lines import kept_line
from symdp.exact.measure.added import convolved
from symdp.exact.returns import sparing_tilt
from symdp.exact.routes import (
    CONTOUR,
    FINITE_SUM,
    LATTICE,
    MEASURE,
    SINGLE_STEP,
    SPLIT,
    UPPER_TAIL,
)
from symdp.exact.single_step import log_profile
from symdp.exact.strip import integrate
from symdp.exact.topmost import is_near_top, topmost_sum
from symdp.law.saddle_point import saddle_point
from symdp.law.tilts import Strip, far_tilt, log_add_exp, log_one_minus_exp
from symdp.law.total import SumLaw

_FEW = 20  # steps whose densities are added before an integral is tried
_SEVERAL = 200  # the same where the losses have no atoms
_FEW_TERMS = 64  # of a sum over single values that is taken before any integral is tried
_SOME_TERMS = 128  # where each takes an integral of its own
_MANY_TERMS = 1024
_MIXED = 1e-9  # bounds wider than this are worth such a sum even where it costs more
_FEWEST = 4  # steps that halves are listed of at once
_SHARP = 1e-12
_CLOSE = 2e-11
_FAIR = 1e-10  # bounds wider than this are worth a sum over large losses
_LOOSE = 1e-2  # or are worth a long one, where nothing else is left
_FEW_VALUES, _SOME_VALUES, _MANY_VALUES = 2, 24, 400  # of δ in it
_WIDE = 1e-7  # where a line of its own may be better than a shared one
_HALF = math.log(0.5)
_GROWTH = 1e-14  # what the bounds of added densities usually are, for each step
_NEARBY = 0.1  # of the distance to the mean
_SLACK = 2.0  # how much wider than nearby an answer may be to be taken at once
_MOST_DOUBLED = 2_000_000
_NEAR = 0.02  # standard deviations of the integrand


@dataclass(frozen=True)
class Contour(FloatAccountant):
    """δ(ε) = (1/2πi) ∫ e^{K(z)−εz}/(z(1+z)) dz by the trapezoidal rule [SPA (28), (48)].

    The answer is the exact formula evaluated in double precision; its bounds are an estimate of
    what quadrature, truncation and rounding can have changed, widened by a factor of four.

    Parameters
    ----------
    close
        The half width of bounds on log δ that is worth no second, slower way.
    """

    name: str = "contour"
    citations: tuple[str, ...] = ("SPA",)
    close: float = _CLOSE

    @property
    def is_exact(self) -> bool:
        """True: it is the profile, but for rounding."""
        return True

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return log δ(ε), and log(1 − δ(ε)) where δ is not small.

        Raises
        ------
        AccuracyError
            If the integral cannot be evaluated to ten digits.
        """
        log_escaped = law.log_mass_at_infinity
        if not law.is_spread and is_near_top(law, epsilon):
            topmost = topmost_sum(law, epsilon, _line(law, epsilon, Strip.RIGHT))
            if topmost is not None:
                return _of_sum(topmost, log_escaped, epsilon, UPPER_TAIL)
        if law.count == 1:
            return _of_one(law, epsilon, log_escaped)
        if not law.is_spread:
            return self._single_values(law, epsilon, log_escaped)
        kept = _on_kept_lines(law, epsilon, log_escaped)
        valley: _Valley = law.kept.setdefault(_Valley, _Valley())
        if kept is not None and margin(kept) <= max(self.close, valley.inherent):
            return kept
        if law.is_mixed:
            return self._mixed(law, epsilon, log_escaped)
        if law.count <= (_FEW if law.has_atoms else _SEVERAL):
            added = _convolution(law, epsilon, log_escaped)
            if added is not None:
                return self._sharpened(law, epsilon, added)
        if valley.holds(epsilon, law.mean):
            nearby = _convolution(law, epsilon, log_escaped)
            if nearby is not None and margin(nearby) <= valley.margin:
                return nearby
        try:
            answer, assured = _integral(law, epsilon, log_escaped)
        except AccuracyError:
            added = _convolution(law, epsilon, log_escaped)
            if added is None:
                raise
            valley.grow(epsilon, margin(added))
            return added
        width = margin(answer)
        if assured and not (width > self.close and law.count * _GROWTH < width):
            if kept is not None and margin(kept) < _SLACK * width:
                valley.inherent = max(valley.inherent, _SLACK * margin(kept))
            return answer
        other = _convolution(law, epsilon, log_escaped)
        if other is None or (assured and margin(other) >= width):
            return answer
        valley.grow(epsilon, margin(other))
        return other

    def _sharpened(self, law: SumLaw, epsilon: float, added: Answer) -> Answer:
        """Return the integral instead of added densities that are not close, where it is closer."""
        if margin(added) > self.close:
            with suppress(AccuracyError):
                return min(added, _integral(law, epsilon, law.log_mass_at_infinity)[0], key=margin)
        return added

    def _mixed(self, law: SumLaw, epsilon: float, log_escaped: float) -> Answer:
        """Return the answer where the losses of some steps are single values.

        A sum over those of what the others give has no lulls; where it would be long, others may
        keep the characteristic function of all from coming back.
        """
        right = _line(law, epsilon, Strip.RIGHT) if law.domain[1] > 0 else 0.0
        tilts = (right, _line(law, epsilon, Strip.MIDDLE))
        summed = conditioned(law, epsilon, tilts, self._of_others, (0, _FEW_TERMS))
        if summed is not None:
            return summed
        found: Answer | None = None
        with suppress(AccuracyError):
            found = _integral(law, epsilon, log_escaped)[0]
            if margin(found) <= _MIXED:
                return found
        summed = conditioned(law, epsilon, tilts, self._of_others, (_SOME_TERMS, _MANY_TERMS))
        if summed is None or (found is not None and margin(found) <= margin(summed)):
            summed = found
        if summed is None:
            raise AccuracyError(
                f"the {law.count} steps are too many to add up the single values of the loss, "
                "which bring the characteristic function back too often; the method prv gives "
                "proved bounds"
            )
        return summed

    def _single_values(self, law: SumLaw, epsilon: float, log_escaped: float) -> Answer:
        """Return the answer where the loss takes single values only.

        A sum over all of them where there are not too many, over two halves of the steps, or an
        integral over one period of a lattice is exact; the integral over the whole line counts how
        often the characteristic function may come back.
        """
        lattice = find_lattice(law)
        if lattice is not None:
            width = math.sqrt(float(law.cumulants(0.0, 2)[1]))
            if not count_sums(law) < width / float(lattice.spacing):
                with suppress(AccuracyError):  # where it is too fine for so few steps
                    return _integral(law, epsilon, log_escaped, lattice)[0]
        tilt = _line(law, epsilon, Strip.RIGHT)

        def listed() -> Answer | None:
            halves = halved_sum(law, epsilon, tilt)
            return None if halves is None else _of_sum(halves, log_escaped, epsilon, SPLIT)

        def jumping(most: int) -> Answer | None:
            few = law.count <= _FEWEST
            return None if few else with_jumps(law, epsilon, self._of_others, most)

        whole = finite_sum(law, epsilon, tilt)
        if whole is not None:
            known = _of_sum(whole, log_escaped, epsilon, FINITE_SUM)
            halves = None if margin(known) <= _SHARP else listed()
            return known if halves is None else min(known, halves, key=margin)
        first: list[tuple[float, Callable[[], Answer | None]]] = [
            (_SHARP, listed),
            (_SHARP, lambda: _on_kept_lines(law, epsilon, log_escaped)),
        ]
        # Large losses that are rare, where that is short, and last of all if nothing else serves.
        ways: list[tuple[float, Callable[[], Answer | None]]] = [
            (_SHARP, lambda: jumping(_FEW_VALUES)),
            *(first if law.count <= MOST_STEPS else first[::-1]),
            (_FAIR, lambda: jumping(_SOME_VALUES)),
            (_WIDE, lambda: _integral(law, epsilon, log_escaped)[0]),
            (_LOOSE, lambda: jumping(_MANY_VALUES)),
        ]
        usual: _Usual = law.kept.setdefault(_Usual, _Usual())
        found: list[Answer] = []
        refused: AccuracyError | None = None
        # Most likely what was sharp for another ε is so again.
        for number in sorted(range(len(ways)), key=lambda number: number != usual.way):
            width, way = ways[number]
            if _is_narrow(found, width):
                continue
            try:
                answer = way()
            except AccuracyError as failure:
                refused = failure
                continue
            if answer is not None:
                found.append(answer)
                usual.way = number if margin(answer) <= _SHARP else usual.way
        if not found:
            assert refused is not None
            raise refused
        return min(found, key=margin)

    def _of_others(self, law: SumLaw, epsilon: float, spare: float) -> Answer:
        """Return δ of some of the steps, within bounds that may be wider than those of all."""
        return replace(self, close=spare * self.close).log_delta(law, epsilon)


@dataclass
class _Usual:
    """Which way to a sum of single values was last seen to be sharp."""

    way: int = 0


@dataclass
class _Valley:
    """Between which ε adding densities has been better than the integral, and how good it was.

    Between the bulk and a rare large loss no tilt makes ε typical, and the integral cancels.
    `inherent` is a margin of shared lines that a line of its own was seen not to improve on.
    """

    low: float = math.inf
    high: float = -math.inf
    margin: float = 0.0
    inherent: float = 0.0

    def holds(self, epsilon: float, mean: float) -> bool:
        """Return whether ε lies among these or close by, measured by the distance to the mean."""
        reach = _NEARBY * abs(epsilon - mean)
        return self.low - reach <= epsilon <= self.high + reach

    def grow(self, epsilon: float, margin: float) -> None:
        """Note another ε, and the margin of the answer there."""
        self.low, self.high = min(self.low, epsilon), max(self.high, epsilon)
        self.margin = max(self.margin, _SLACK * margin)


def _of_one(law: SumLaw, epsilon: float, log_escaped: float) -> Answer:
    """Return the answer for a single step."""
    part = law.parts[0][0]
    finite, complement, missing, rounded = log_profile(part, epsilon)
    # Far in a tail the density is e to a large negative number, whose rounding counts.
    error = 4e-15 + part.base.error + missing + 4e-16 * min(abs(finite), 1e6)
    # Next to the largest loss the rounding of others is not small beside their distance from ε.
    top = law.loss_bounds[1]
    if math.isfinite(top) and rounded > -math.inf:
        error += ROUNDED * abs(top) / law.below_top(epsilon) * math.exp(rounded - finite)
    return exact_answer(
        log_add_exp(finite, log_escaped), complement, error, epsilon=epsilon, route=SINGLE_STEP
    )


def _convolution(law: SumLaw, epsilon: float, log_escaped: float) -> Answer | None:
    """Return the answer by adding densities, or None where that cannot be done."""
    if not law.is_spread or law.is_condensed or law.count > _MOST_DOUBLED:
        return None
    try:
        found = convolved(law, epsilon)
    except AccuracyError:
        return None
    log_delta = log_add_exp(found.log_delta, log_escaped)
    slope = (
        found.slope * math.exp(found.log_delta - log_delta) if log_delta > -math.inf else math.nan
    )
    complement = min(found.log_complement, 0.0)
    return exact_answer(min(log_delta, 0.0), complement, found.error, slope, route=MEASURE)


def _on_kept_lines(law: SumLaw, epsilon: float, log_escaped: float) -> Answer | None:
    """Return the answer from lines that are kept with the law, or None where there are none."""

    def value(strip: Strip) -> StripValue | None:
        line = kept_line(law, epsilon, strip)
        return None if line is None else line.value(epsilon)

    found = _from_strips(law, log_escaped, value)
    return None if found is None else replace(found, route=CONTOUR)


def _integral(
    law: SumLaw,
    epsilon: float,
    log_escaped: float,
    lattice: Lattice | None = None,
) -> tuple[Answer, bool]:
    """Return the answer by the contour integral, over one period where a lattice is given.

    With it comes whether all of the line was accounted for.
    """
    kernel: Kernel = continuous_kernel
    period = math.inf
    if lattice is not None:
        kernel = lattice_kernel(lattice, epsilon)
        period = 2.0 * math.pi / float(lattice.spacing)
    assured = True

    def value(strip: Strip) -> StripValue:
        nonlocal assured
        line = _line(law, epsilon, strip)
        if not law.is_spread and lattice is None:
            line = sparing_tilt(law, epsilon, line)
        found = integrate(law, epsilon, line, kernel, period)
        assured = assured and found.assured
        return found

    answer = _from_strips(law, log_escaped, value)
    assert answer is not None
    return replace(answer, route=CONTOUR if lattice is None else LATTICE), assured


def _is_narrow(found: Sequence[Answer], width: float) -> bool:
    return any(margin(answer) <= width for answer in found)


def _of_sum(found: FiniteSum, log_escaped: float, epsilon: float, route: str) -> Answer:
    log_delta = log_add_exp(found.log_delta, log_escaped)
    known = log_delta > -math.inf
    error = math.exp(min(found.log_error - log_delta, 0.0)) if known else 0.0
    # Lists made for a far tilt lack the bulk of P, of which δ next to 1 is made.
    complement = found.log_complement if log_delta > _HALF else log_one_minus_exp(log_delta)
    return exact_answer(log_delta, complement, error, epsilon=epsilon, route=route)


def _from_strips(
    law: SumLaw, log_escaped: float, value: Callable[[Strip], StripValue | None]
) -> Answer | None:
    """Return the answer from the integrals right of the poles and, for large δ, between them."""
    above: StripValue | None = None
    refused: AccuracyError | None = None
    try:
        above = value(Strip.RIGHT) if law.domain[1] > 0 else None
    except AccuracyError as failure:  # far below the mean 1 − δ is all that there is to know
        refused = failure
    if law.domain[1] > 0 and refused is None:
        if above is None:
            return None
        log_delta = log_add_exp(above.log_value, log_escaped)
        if log_delta < math.log(0.25):
            slope = above.slope * math.exp(above.log_value - log_delta)
            return exact_answer(
                log_delta, log_one_minus_exp(log_delta), above.relative_error, slope
            )
    below = value(Strip.MIDDLE)
    if below is None:
        return None
    complement = min(below.log_value, 0.0)
    through_complement = log_one_minus_exp(complement)
    if above is not None and not (
        through_complement > -math.inf
        and below.relative_error * math.exp(complement - through_complement) < above.relative_error
    ):
        error = max(above.relative_error, below.relative_error)
        slope = above.slope * math.exp(above.log_value - log_delta)
        return exact_answer(min(log_delta, 0.0), complement, error, slope)
    # Only 1 − δ is to be had, or tells more: its error is relative to it, not to δ.
    log_delta = through_complement
    scale = math.exp(complement - log_delta) if log_delta > -math.inf else math.inf
    if refused is not None and not below.relative_error * scale <= _CLOSE:
        raise refused
    slope = -below.slope * scale
    return exact_answer(log_delta, complement, below.relative_error * scale, slope)


def _line(law: SumLaw, epsilon: float, strip: Strip) -> float:
    """Return the tilt of the line: near the saddle point, whose place changes only the cost."""
    saddle = saddle_point(law, epsilon, strip, settled=_NEAR)
    if saddle is not None:
        return saddle.tilt
    return far_tilt(law, strip)
