"""A cheap rule for peaked integrands with any ends: what decides about costs needs no more.

Between two of the cuts and peaks of a survey x = a + (b − a)/(1 + e^{−v}) turns whatever happens
near a or b, as narrow or as singular as it may be, into something smooth in v, where the
trapezoidal rule with a fixed step serves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from flint import arb, ctx

from symdp.oracle.panels import DivergentError, Evaluate, Survey, as_float

_STEP = 3.2  # for each digit that is wanted
_NEGLIGIBLE = 5.6  # of −log of a share of the whole, beyond its digits
_QUIET = 3
_MOST = 320  # steps towards one end, for each digit
_CLOSE = 0.25  # of a peak's width: on top of it
_FALLING = 1e-3  # of a logarithm for each unit of v
_SPARE_BITS = 10


def graded_nodes(evaluate: Evaluate, found: Survey, digits: float) -> tuple[list[arb], list[arb]]:
    """Return weights and losses with ∫ e^g f(ℓ) dx ≈ e^{found.height} Σ weight·f(loss).

    Parameters
    ----------
    evaluate : callable
        x → (g(x), ℓ(x)).
    found : Survey
        Of g.
    digits : float
        About how many the sums should have.

    Raises
    ------
    DivergentError
        If the terms do not fall towards an end, or there are none.

    Examples
    --------
    >>> from symdp.oracle.panels import Interval, survey
    >>> log_density = lambda x: -x.log() * 3 / 4
    >>> found = survey(log_density, Interval(arb(0), arb(1)), (), 30.0)
    >>> weights, _ = graded_nodes(lambda x: (log_density(x), x), found, 8)
    >>> total = sum(weights, arb(0)) * arb(found.height).exp()  # of x^(−3/4)
    >>> round(float(total), 6)
    4.0
    """
    widths = {peak.place.fmpq(): peak.width for peak in found.peaks}
    inside = [p.place for p in found.peaks if found.lower < p.place < found.upper]
    weights: list[arb] = []
    losses: list[arb] = []
    for left, right in itertools.pairwise([found.lower, *inside, found.upper]):
        for end, other in ((left, right), (right, left)):
            way = _towards(evaluate, found, digits, end, other, widths.get(end.fmpq()))
            for weight, loss in way:
                weights.append(weight)
                losses.append(loss)
    if not weights:  # a peak of rounding alone, as where all that is exponential cancels
        raise DivergentError("a tilted density has no place where it is more than rounding")
    return weights, losses


def _towards(
    evaluate: Evaluate, found: Survey, digits: float, end: arb, other: arb, top: arb | None
) -> Iterator[tuple[arb, arb]]:
    """Yield weights and losses from the middle of an interval towards an end, a peak or a cut."""
    width = other - end
    step, largest = arb(_STEP / digits), -math.inf
    negligible = digits * math.log(10) + _NEGLIGIBLE
    smallest = abs(end) * arb(2) ** (_SPARE_BITS - ctx.prec)
    quiet = 0
    logs: list[float] = []
    for index in range(math.ceil(_MOST * digits)):
        share = 1 / (1 + (step * index).exp())
        away = width * share
        if abs(away) <= smallest:
            break
        log_density, loss = evaluate((end + away).mid())
        weight = (log_density - found.height).exp() * abs(away) * (1 - share) * step
        log_weight = as_float(weight.log()) if weight > 0 else -math.inf
        if log_weight > -math.inf:
            # Both ways start in the middle.
            yield (weight / 2 if index == 0 else weight), loss
        logs.append(log_weight)
        is_on_top = top is None or bool(abs(away) < _CLOSE * top)
        largest = max(largest, log_weight)
        quiet = quiet + 1 if log_weight < largest - negligible else 0
        if quiet >= _QUIET and is_on_top:
            return
    back = round(digits / _STEP) + 1
    if len(logs) > back and logs[-1] > logs[-1 - back] - _FALLING:
        raise DivergentError("the tilted density was seen to grow up to an end")
