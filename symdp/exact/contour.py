"""The contour integral of the privacy profile for losses with a density, at a cost without n.

    δ(ε) = (1/2πi) ∫_{Re z = t} e^{K(z)−εz}/(z(1+z)) dz        [SPA (28), (48)]

by the trapezoidal rule, whose error is bounded by Chernoff bounds of the terms of Poisson's sum;
what lies beyond the last node is bounded by the variation of the loss's density, and rounding by
how far the sum cancels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from symdp.errors import AccuracyError
from symdp.exact.accuracy import EXACT, FEW_NODES, LONG_LINE, SAFETY, SETTLED, TOLERABLE
from symdp.exact.answer import Answer
from symdp.exact.error_bars import margin
from symdp.exact.line import (
    StripValue,
    continuous_kernel,
    first_line,
    longer,
    plain_sum,
)
from symdp.exact.shared_lines import Refused, Trace, Traced, shared_value, sum_ahead
from symdp.exact.slow_decay import slow_line
from symdp.exact.tail_bound import Tail
from symdp.exact.two_strips import answer_from_strips, line_tilt, sharpened
from symdp.law.tilts import Strip
from symdp.law.total import SumLaw, kept_with_law


def contour_answer(
    law: SumLaw, epsilon: float, in_balls: bool = False, most: float = TOLERABLE
) -> Answer | None:
    """Return δ(ε), or None where no tilt makes ε typical or the integrand does not die out.

    Next to the largest loss neither is so before 10⁵ nodes, and few sums are to be added. Balls may
    take over where rounding counts; beyond the relative half width `most` there is no answer.
    """
    if not law.is_spread or law.few_fall_short(epsilon):
        return None
    for trace in (_traced, _traced_farther):
        shared = on_shared_lines(law, epsilon, trace)
        shared = sharpened(law, epsilon, shared) if in_balls else shared
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
        sum_ahead(law, [epsilon for epsilon in epsilons if lower < epsilon < upper], _traced)


def on_shared_lines(law: SumLaw, epsilon: float, trace: Trace) -> Answer | None:
    """Return the answer from lines that serve other ε as well, None where there are none."""

    def value(strip: Strip) -> StripValue | None:
        return shared_value(law, epsilon, strip, trace)

    return answer_from_strips(law, value)


@kept_with_law
def _last(law: SumLaw) -> dict[float, tuple[Answer, bool] | None]:
    """What lines of its own gave at the last ε."""
    return {}


def own_lines(law: SumLaw, epsilon: float) -> tuple[Answer, bool] | None:
    """Return what `on_own_lines` does, None where no line tells anything: only its values show it.

    A later row asks for the same ε again.
    """
    kept = _last(law)
    if epsilon in kept:
        return kept[epsilon]
    try:
        found = on_own_lines(law, epsilon)
    except AccuracyError:
        found = None
    kept.clear()
    kept[epsilon] = found
    return found


def on_own_lines(law: SumLaw, epsilon: float) -> tuple[Answer, bool]:
    """Return the answer from lines for this ε alone, and whether all of them was accounted for.

    Raises
    ------
    AccuracyError
        If the integrand does not die out.
    """
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
    if Tail(law, tilt).end is not None:
        return Refused.NO_LINE
    slow = slow_line(law, epsilon, tilt, beside, LONG_LINE, least=4 * FEW_NODES)
    return slow if slow.assured else Refused.NO_LINE


def _traced(law: SumLaw, epsilon: float, tilt: float, beside: float) -> Traced:
    """Return a line that serves every ε' with |ε' − ε| ≤ `beside`, or that none will do.

    Its values must die out, which excludes lattices and few steps that are partly atoms, and what
    lies beyond them must be shown to be negligible.

    Raises
    ------
    AccuracyError
        If the law cannot be evaluated so far out.
    """
    tail = Tail(law, tilt)
    if tail.end is None:
        slow = slow_line(law, epsilon, tilt, beside, LONG_LINE)
        return slow if slow.assured else Refused.NO_LINE
    tilted = law.tilted(tilt)
    line, _ = first_line(law, tilted, epsilon, tilt, continuous_kernel, math.inf, beside)
    gap = line.distance(epsilon) + line.shift
    while line.places.size <= LONG_LINE:
        size, reach = line.places.size, line.step * line.places.size
        total = plain_sum((line.values * np.exp(1j * line.places * gap)).real)
        wanted = 2.0 * size
        if 4.0 * size * line.last <= SETTLED * abs(total):
            found = tail.beyond(reach)
            if not found.assured:
                return Refused.NO_LINE
            if found.start > reach:
                wanted = found.start / line.step + 1.0
            elif found.beyond(line) <= SETTLED * abs(total):
                return replace(line, assured=True)
        if wanted > 2 * LONG_LINE:
            return Refused.NO_LINE
        line = longer(law, line, math.ceil(wanted), continuous_kernel)
    return Refused.NO_LINE
