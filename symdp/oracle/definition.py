"""δ(ε) of one step from its definition, ∫ (P − e^ε Q)⁺, between the roots of ℓ = ε.

Where ℓ > ε the integrand is P (1 − e^{ε−ℓ}); its complement is ∫ P min(1, e^{ε−ℓ}).  Every part of
both is positive, so nothing cancels however small they are.  Errors are those of the panels, of the
roots (which the integrand meets with the value 0) and of the tails that are cut off.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from flint import arb, ctx

from symdp.emit.exact import LN10, real_ball
from symdp.oracle.law import MARGIN, CompiledPiece, LogDensity, StepLaw, integers_between
from symdp.oracle.panels import DivergentError, Interval, grid, make_panels, survey


def single_step(law: StepLaw, epsilon: arb, digits: float, order: int) -> tuple[arb, arb]:
    """Return (δ, 1 − δ), both to relative 10^(−digits), less the mass at infinity.

    Raises
    ------
    AccuracyError
        If the work limit is reached.
    """
    excess, rest = arb(0), arb(0)
    for point in law.points:
        if point.p != 0 and point.q != 0:
            loss = real_ball(point.loss)
            mass = real_ball(point.p)
            is_above = loss > epsilon
            rest += mass * (epsilon - loss).exp() if is_above else mass
            excess -= mass * (epsilon - loss).expm1() if is_above else 0
    for part in law.both:
        log_p, loss_of = part.log_p, part.loss
        assert log_p is not None
        assert loss_of is not None
        above, below = _sides(part, epsilon)
        for interval in above:
            excess += _mass(part, interval, _excess(log_p, loss_of, epsilon), digits, order)
            rest += _mass(part, interval, _charged(log_p, loss_of, epsilon), digits, order)
        for interval in below:
            rest += _mass(part, interval, log_p, digits, order)
    return excess, rest


def _excess(log_p: LogDensity, loss: LogDensity, epsilon: arb) -> LogDensity:
    """log of P (1 − e^{ε−ℓ}), not a number where ℓ ≤ ε."""
    return lambda x: log_p(x) + (-(epsilon - loss(x)).expm1()).log()


def _charged(log_p: LogDensity, loss: LogDensity, epsilon: arb) -> LogDensity:
    """log of P e^{ε−ℓ} = e^ε Q."""
    return lambda x: log_p(x) + epsilon - loss(x)


def _mass(
    part: CompiledPiece, interval: Interval, function: LogDensity, digits: float, order: int
) -> arb:
    """The integral of exp(function) over an interval, or its sum over the integers there."""
    if part.is_integer:
        # The survey must see the first integer inside, not the larger density before it.
        lower = None if interval.lower is None else interval.lower.ceil() - MARGIN
        upper = None if interval.upper is None else interval.upper.floor() + MARGIN
        interval = Interval(lower, upper)
        if lower is not None and upper is not None and upper < lower:
            return arb(0)
    try:
        found = survey(function, interval, part.hints, LN10 * (digits + 2))
    except DivergentError:
        if any(function(x).is_finite() for x in grid(interval, part.hints)):
            raise
        # Nowhere finite: ℓ = ε throughout, to the working precision.
        return arb(0)
    if part.is_integer:
        values = (function(place) for place in integers_between(part, found))
        return sum((value.exp() for value in values if value.is_finite()), arb(0))
    panels = make_panels(lambda x: (function(x), arb(0)), found, digits, arb(0), order)
    return arb(found.height).exp() * sum((w for panel in panels for w in panel.weights), arb(0))


def _sides(part: CompiledPiece, epsilon: arb) -> tuple[list[Interval], list[Interval]]:
    """Where ℓ > ε and where not, between roots of ℓ = ε at the working precision."""
    loss, whole = part.loss, part.interval()
    assert loss is not None

    def is_above(x: arb) -> bool:
        return bool(loss(x).mid() > epsilon.mid())

    places = grid(whole, part.hints)
    if part.is_flat:
        return ([whole], []) if is_above(places[0]) else ([], [whole])
    signs = [is_above(x) for x in places]
    borders: list[arb | None] = [whole.lower]
    for (left, before), (right, after) in itertools.pairwise(zip(places, signs, strict=True)):
        if before != after:
            borders.append(_root(is_above, left, right))
    borders.append(whole.upper)
    sides: tuple[list[Interval], list[Interval]] = [], []
    for index, (left_end, right_end) in enumerate(itertools.pairwise(borders)):
        sides[0 if signs[0] == (index % 2 == 0) else 1].append(Interval(left_end, right_end))
    return sides


def _root(is_above: Callable[[arb], bool], left: arb, right: arb) -> arb:
    """Where a function that crosses a level once does so, by bisection."""
    before = is_above(left)
    for _ in range(2 * ctx.prec + 200):
        middle = ((left + right) / 2).mid()
        if not left < middle < right:
            break
        if is_above(middle) == before:
            left = middle
        else:
            right = middle
    return right
