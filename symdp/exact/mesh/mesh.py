"""δ of any law from lines that are cut off smoothly: by one line, or given the large losses.

A line's error is what the cut-off may change, bounded at every ε (see `smoothed`), and rounding
of the FFT (see `frequencies`). Both depend on the tilt, which is moved from the saddle point
towards 0 where the first nodes foretell less. Where no tilt makes ε typical, δ is a sum over the
number of large losses (see `large_losses`); the intervals of its terms add up, and terms that are
left out are bounded by Chernoff's bound.
"""

from __future__ import annotations

import math

import numpy as np

from symdp.exact.accuracy import NEGLIGIBLE, ROUNDED, SAFETY, SETTLED, TOLERABLE
from symdp.exact.answer import Answer
from symdp.exact.base import outside_range
from symdp.exact.contour import contour_answer
from symdp.exact.error_bars import exact_answer, margin
from symdp.exact.line import StripValue
from symdp.exact.mesh.frequencies import mesh_line, mesh_value, predicted_error
from symdp.exact.mesh.large_losses import conditioned
from symdp.exact.shared_lines import HALF_CELL, Refused, Traced, shared_line
from symdp.exact.two_strips import answer_from_strips, line_tilt
from symdp.law.elementary import log_payoff, log_sum
from symdp.law.outline import NEGLIGIBLE as OUTLINED
from symdp.law.tilts import Strip, log_one_minus_exp
from symdp.law.total import SumLaw

_MISJUDGED = 10.0  # times a predicted error, beyond which the saddle point is tried as well
_DEEPEST = 3  # times that a law is conditioned again
_MOST_TERMS = 40  # each is a line of its own


def mesh_answer(law: SumLaw, epsilon: float) -> Answer:
    """Return δ(ε) of a law of any kind with a two-sided error, AccuracyError if none is had."""
    return _answer(law, epsilon, _DEEPEST, [_MOST_TERMS])


def given_large_losses(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε) of losses with a density as a sum over the number of large ones.

    None where no line is short for want of it: no step has a density with two hills at the tilt
    that makes ε typical.
    """
    if not (law.is_spread and law.domain[1] > 0):
        return None
    terms = conditioned(law, line_tilt(law, epsilon, Strip.RIGHT))
    return None if terms is None else _summed(terms, epsilon, _DEEPEST - 1, [_MOST_TERMS // 4])


def _answer(
    law: SumLaw, epsilon: float, depth: int, left: list[int], wanted: float = TOLERABLE
) -> Answer:
    """Return δ(ε), a law conditioned again for as many lines as are left at most."""
    if law.is_spread and 0 < depth < _DEEPEST and left[0] > 0:  # a term of such a sum
        terms = conditioned(law, line_tilt(law, epsilon, Strip.RIGHT))
        found = None if terms is None else _summed(terms, epsilon, depth - 1, left)
        if found is not None:
            return found
    if not law.is_spread and law.domain[1] > 0:
        tilt = line_tilt(law, epsilon, Strip.RIGHT)
        error = best_tilt(law, epsilon, tilt)[1]
        terms = conditioned(law, tilt) if depth and error > 10.0 * TOLERABLE else None
        found = None if terms is None else _summed(terms, epsilon, depth - 1, left)
        if found is not None:
            return found
        if depth == _DEEPEST and error <= 10.0 * TOLERABLE:
            shared = _on_shared_lines(law, epsilon)
            if shared is not None and margin(shared) <= 10.0 * TOLERABLE:
                return shared

    def value(strip: Strip) -> StripValue:
        saddle = line_tilt(law, epsilon, strip)
        tilt, error = best_tilt(law, epsilon, saddle)
        found = mesh_value(law, epsilon, tilt, wanted)
        # Where far nodes cancel, the first ones predict too little.
        if tilt == saddle or found.relative_error <= _MISJUDGED * (error + wanted):
            return found
        if predicted_error(law, epsilon, saddle) == math.inf:  # there no line bounds anything
            return found
        other = mesh_value(law, epsilon, saddle, wanted)
        return min(found, other, key=lambda one: one.relative_error)

    found = answer_from_strips(law, value)
    assert found is not None
    return found


def _on_shared_lines(law: SumLaw, epsilon: float) -> Answer | None:
    """Return the answer from lines that serve other ε as well, None where there are none."""
    if law.is_spread:
        return None

    def value(strip: Strip) -> StripValue | None:
        line = shared_line(law, epsilon, strip, _traced)
        return None if line is None else line.value(epsilon)

    return answer_from_strips(law, value)


def _traced(law: SumLaw, centre: float, saddle: float, half: float) -> Traced:
    tilt, error = best_tilt(law, centre, saddle)
    if half * abs(saddle - tilt) > HALF_CELL:
        return Refused.TOO_WIDE
    return mesh_line(law, centre, tilt, half) if error <= 10.0 * TOLERABLE else Refused.NO_LINE


def best_tilt(law: SumLaw, epsilon: float, saddle: float) -> tuple[float, float]:
    """Return the tilt, at the saddle point or nearer to 0, with the least predicted error.

    Tilts nearer to 0 allow wider steps between frequencies, and so a cut-off farther out; but the
    sum cancels to a smaller share of its terms, which are rounded.
    """
    found = saddle, predicted_error(law, epsilon, saddle)
    for share in (0.8, 0.6, 0.4, 0.25, 0.15) if saddle > 0 else ():
        if found[1] <= TOLERABLE:
            break
        error = predicted_error(law, epsilon, share * saddle)
        if error < found[1]:
            found = share * saddle, error
    return found


def _summed(
    terms: list[tuple[float, SumLaw]], epsilon: float, depth: int, left: list[int]
) -> Answer | None:
    """Return Σ e^{wⱼ} δⱼ(ε), None where too many terms count."""
    bounds = np.asarray([weight + _log_bound(law, epsilon) for weight, law in terms])
    order = np.argsort(-bounds, kind="stable")
    gains: list[float] = []
    error, slope, total, asked, has_lines = -math.inf, -math.inf, -math.inf, 0, True
    for done, place in enumerate(order.tolist()):
        weight, law = terms[place]
        if bounds[place] < total - NEGLIGIBLE:
            others = log_sum(bounds[order[done:]])
            error = float(np.logaddexp(error, others))
            break
        answer = outside_range(law, epsilon)
        if answer is None:
            asked += 1
            left[0] -= depth < _DEEPEST - 1
            if asked > _MOST_TERMS or (depth < _DEEPEST - 1 and left[0] < 0):
                return None
            # Where the first and largest term has no line, the others have none.
            answer = contour_answer(law, epsilon) if has_lines and law.is_spread else None
            has_lines = has_lines and answer is not None
            answer = answer or _answer(law, epsilon, depth, left, 5.0 * TOLERABLE)
        if answer.log_delta == -math.inf:
            continue
        assert answer.log_upper is not None
        assert answer.log_lower is not None
        gains.append(weight + answer.log_delta)
        half = max(answer.log_upper - answer.log_delta, answer.log_delta - answer.log_lower)
        half += SETTLED + ROUNDED * abs(weight)  # of the chance, whose logs are multiplied
        error = float(np.logaddexp(error, gains[-1] + math.log(math.expm1(min(half, 700.0)))))
        if answer.slope is not None:
            slope = float(np.logaddexp(slope, gains[-1] + math.log(max(-answer.slope, 1e-300))))
        total = log_sum(gains)
    if total == -math.inf:
        return None
    relative = math.exp(min(error - total, 0.0)) / SAFETY
    known = -math.exp(min(slope - total, 700.0))
    return exact_answer(total, log_one_minus_exp(total), relative, known)


def _log_bound(law: SumLaw, epsilon: float) -> float:
    """Bound log δ by Chernoff's bound [SPA (43)] near the saddle point, or by the chance of a loss.

    Where no loss is above its mean by more than its share of ε less all means, no sum exceeds ε.
    """
    lower, upper = law.loss_bounds
    if epsilon >= upper:
        return -math.inf
    if epsilon <= lower or epsilon <= law.mean:
        return 0.0
    tilts = line_tilt(law, epsilon, Strip.RIGHT) * np.asarray([0.5, 1.0])
    bound = law.log_transform(tilts, epsilon) + log_payoff(tilts)
    share = 0.5 * (epsilon - law.mean) / law.count  # half of it: masses are seen at nodes
    chances = [-OUTLINED + math.log(law.count)]  # what nodes leave out
    for part, count in law.parts:
        large = part.base.loss > part.base.mean + share
        chances.append(math.log(count) + log_sum(part.base.log_weight[large]))
    return min(0.0, float(bound.min()), log_sum(np.asarray(chances)))
