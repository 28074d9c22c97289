"""δ(ε) of one step from its definition, ∫ P (1 − e^{ε−ℓ})⁺, between proved roots of ℓ = ε."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import acb, arb, ctx

from symdp.certify.nodes import nodes_between
from symdp.certify.parts import parts_of
from symdp.certify.piece_integrand import Cut, Part, whole_ends
from symdp.emit.enclose import between
from symdp.emit.exact import real_ball
from symdp.errors import AccuracyError
from symdp.prove.work import spend

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_EVALUATIONS = 200_000  # of an integrand: about ten seconds at 64 bits


def excess(loss: arb, epsilon: arb) -> arb:
    """Enclose (1 − e^{ε−ℓ})⁺."""
    return (-(epsilon - loss).expm1()).max(arb(0))


def enclose_single(pair: Pair, epsilon: arb, bits: int) -> arb:
    """Enclose δ(ε) of one step less the mass at infinity.

    Parameters
    ----------
    bits : int
        What is cut off is below 2^(−bits), absolutely.

    Raises
    ------
    AccuracyError
        If a piece is not known to be monotone, or a tail is not bounded.
    """
    parts = parts_of(pair)
    total = arb(0)
    for point in parts.points:
        mass, loss = (real_ball(e) for e in (point.p, point.loss))
        total += mass * excess(loss, epsilon)
    for part in parts.stretches:
        cut = part.cut(sp.S.Zero, bits)
        with ctx.workprec(ctx.prec + part.spare(cut.lower, cut.upper)):
            total += _share(part, cut, epsilon, bits) + arb(0).union(cut.beyond)
    return total


def _share(part: Part, cut: Cut, epsilon: arb, bits: int) -> arb:
    """Enclose the integral of the excess over one stretch between its cuts."""
    shift = part.shift

    def integrand(x: Any, analytic: bool = False) -> Any:
        spend(2.0)
        base, loss = part.logarithms(x, analytic=analytic)
        mass = (base + shift * loss).exp()
        return mass * -(epsilon - loss).expm1()

    if part.x.is_integer and part.is_flat:
        nodes = nodes_between(part, cut, arb(0), arb(0), tolerance=arb(2) ** -bits)
        return nodes.total() * excess(nodes.losses[0], epsilon)
    if part.x.is_integer:
        first, last = whole_ends(cut)
        total = arb(0)
        for k in range(first, last + 1):
            base, loss = part.logarithms(arb(k))
            total += (base + shift * loss).exp() * excess(loss, epsilon)
        return total
    if part.piece.slope == "unknown":
        raise AccuracyError("the loss is not known to be monotone on a piece: no proved roots")
    slope = {"increasing": 1, "decreasing": -1, "constant": 0}[part.piece.slope]
    low, high = cut.lower.mid(), cut.upper.mid()
    if slope == 0:
        loss = part.loss(((low + high) / 2).mid())
        ends = (low, high) if loss > epsilon else (low, low)
        if not (loss > epsilon or loss < epsilon):
            raise AccuracyError("ε cannot be told from the loss on a flat piece")
        bracket = arb(0)
    else:
        ends, bracket = _above(part, epsilon, low, high, slope)
    for end in (cut.lower, cut.upper):
        if end.rad() > 0:  # between the middle of the ball and the true end
            base, loss = part.logarithms(end)
            size = (base + shift * loss).exp().upper()
            bracket += arb(0, (2 * end.rad() * size).upper())
    if not ends[0] < ends[1]:
        return bracket
    inner = acb.integral(
        integrand,
        acb(ends[0]),
        acb(ends[1]),
        abs_tol=arb(2) ** -bits,
        rel_tol=arb(2) ** (8 - ctx.prec),
        eval_limit=_EVALUATIONS,
    )
    return inner.real + bracket


def _above(
    part: Part, epsilon: arb, low: arb, high: arb, slope: int
) -> tuple[tuple[arb, arb], arb]:
    """Return where ℓ > ε is proved, and a ball of what the gap to ℓ < ε may add."""

    def beyond(x: arb) -> bool:
        return bool(part.loss(x) > epsilon)

    def before(x: arb) -> bool:
        return bool(part.loss(x) < epsilon)

    inner, outer = (high, low) if slope > 0 else (low, high)
    # From the end where the loss is largest as far as it stays proved to be above, and the same
    # from the other end: monotony does the rest.
    top = _last(beyond, inner, outer)
    bottom = _last(before, outer, inner)
    gap = between(bottom, top)
    base, loss = part.logarithms(gap)
    size = (base + part.shift * loss).exp().upper() * abs(top - bottom).upper()
    most = arb(1)
    if beyond(top):
        most = excess(part.loss(top), epsilon).upper()
    ends = (top, high) if slope > 0 else (low, top)
    return ends, arb(0).union((size * most).upper())


def _last(holds: Callable[[arb], bool], start: arb, end: arb) -> arb:
    """Return the farthest place from `start` towards `end` at which a predicate was proved.

    The start itself is returned where nothing was proved, as where ℓ is infinite there.
    """
    if holds(end):
        return end
    proved, open_end = start, end
    for _ in range(2 * ctx.prec):
        middle = ((proved + open_end) / 2).mid()
        proved, open_end = (middle, open_end) if holds(middle) else (proved, middle)
    return proved
