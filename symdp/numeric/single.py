"""δ(ε) of one step from its definition, cut at the roots of ℓ(x) = ε, in balls.

    δ(ε) = ∫_{ℓ>ε} P (1 − e^{ε−ℓ}) dx,    1 − δ(ε) = ∫ min(P, e^ε Q) dx.

Doubles find where the mass of both lies and where ℓ crosses ε; Arb integrates what lies between and
encloses it. What is left out beyond is e^−52 of what is kept, as far as doubles see, and the two
integrals, which add up to 1, show whether a stretch was missed. Where balls of what cancels are too
wide for Arb, or stretches too many, rules and their halves say about how far they are off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from flint import acb, arb, ctx
from numpy.typing import NDArray

from symdp.emit.enclose import between
from symdp.errors import AccuracyError
from symdp.numeric.answer import (
    BALL_BITS,
    COUNTED,
    ROUNDED,
    ROUNDING,
    SAFETY,
    SETTLED,
    Answer,
    answer_in_balls,
    exact_answer,
    falling_answer,
)
from symdp.numeric.elementary import distinct, log_sum
from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import escapes, flat_nodes, inner_place
from symdp.numeric.outline import NEGLIGIBLE, Outline
from symdp.numeric.panels import MonotoneGrid, gauss_legendre, monotone_grid
from symdp.numeric.saddle_point import log_add_exp
from symdp.numeric.step import MOST_ROUNDED, Array, SmoothPiece
from symdp.numeric.total import SumLaw

_TIGHT_BITS = 58  # of an integral, relative to its size
_EVALUATIONS = 4_000  # of an integrand on one panel: a fifth of a second
_APART = np.exp2(np.arange(-60.0, 64.0))  # distances from a root or an end, in octaves
_PLACES = 16  # of a stretch: where it is split, or doubles are compared with balls
_FAR = np.exp2(np.arange(-1000.0, -60.0, 4.0))  # distances from 0, next to which densities may grow
_MANY_ROOTS = 12  # of ℓ = ε on a piece, between which Arb takes seconds in all
_FINER = 24  # halvings of the distance between two doubles
_TRIES = 4  # of an absolute tolerance, each from the size that was found
Payoff = Callable[[Any, Any], Any]


def single_answer(law: SumLaw, epsilon: float, by_rules: bool = False) -> Answer | None:
    """Return δ(ε) of a single step with a density, None for others.

    `by_rules`: in doubles, with ends that are wide: a search asks on its way.
    """
    if law.count > 1:
        return None
    part = law.parts[0][0]
    closed = part.known_profile(epsilon)
    if closed is not None:
        return _of_profile(law, part, epsilon, closed)
    by_rules = by_rules and not part.is_closed
    with suppress(AccuracyError), ctx.workprec(BALL_BITS):
        integrals = _profile(part, epsilon, False, True) if by_rules else profile(part, epsilon)
        if integrals is None or not all(ball.is_finite() for ball in integrals):
            return None
        finite, complement, beyond = integrals
        if epsilon < part.loss_bounds[1] and not finite.mid() > 0:
            return None  # a stretch above ε was missed
        infinite = arb(law.log_mass_at_infinity).exp().mid()
        gap = abs(finite + infinite + complement - 1).upper()
        if not gap < SETTLED:  # mass was missed, of δ or of 1 − δ
            finite, complement = (arb(ball, gap) for ball in (finite, complement))
        answer = answer_in_balls(finite, law.log_mass_at_infinity, complement)
        answer = falling_answer(answer, beyond)
        return _widened(answer) if by_rules else answer
    return None


def _widened(answer: Answer) -> Answer:
    low, high = answer.log_lower, answer.log_upper
    assert low is not None
    assert high is not None
    off = 10.0 * COUNTED  # so that it counts as rounded
    return replace(answer, log_lower=low - off, log_upper=high + off)


def _of_profile(
    law: SumLaw, part: LossLaw, epsilon: float, closed: tuple[float, float, float, float]
) -> Answer:
    finite, complement, missing, beyond = closed
    error = 4.0 * ROUNDED + missing + 2.0 * ROUNDING * min(abs(finite), 1e6)
    off = missing + 4.0 * ROUNDED + 2.0 * ROUNDING * (abs(complement) + abs(epsilon))
    log_delta = log_add_exp(finite, law.log_mass_at_infinity)
    slope = -math.exp(min(beyond - log_delta, 700.0))
    return exact_answer(log_delta, complement, error, slope, epsilon, off + part.base.error)


def profile(law: LossLaw, epsilon: float) -> tuple[arb, arb, arb] | None:
    """Return E(1 − e^{ε−L})⁺ and E min(1, e^{ε−L}) of finite losses, None of those on integers.

    The third is what losses above ε have of the second: −dδ/dε.
    """
    for in_balls in (False, True):
        integrals = _profile(law, epsilon, in_balls)
        if integrals is None or all(
            ball.rad() <= SETTLED * abs(ball.mid()) for ball in integrals[:2]
        ):
            break
    return integrals


def _profile(
    law: LossLaw, epsilon: float, in_balls: bool, by_rules: bool = False
) -> tuple[arb, arb, arb] | None:
    outlines = [outline for outline in law.outlines if not escapes(outline.piece)]
    if any(outline.piece.integer for outline in outlines):
        return None
    top = law.loss_bounds[1]
    near = abs(top) / max(top - epsilon, 1e-300) if math.isfinite(top) else 1.0
    with ctx.workprec(2 * BALL_BITS + max(0, math.frexp(near)[1])):
        at, gains, rests, beyond = arb(epsilon), arb(0), arb(0), arb(0)

        def gain(log_p: Any, loss: Any) -> Any:
            return log_p.exp() * -(at - loss).expm1()

        def all_of(log_p: Any, loss: Any) -> Any:
            return log_p.exp()

        def share(log_p: Any, loss: Any) -> Any:
            return (log_p + at - loss).exp()

        def add_atom(log_p: arb, loss: arb) -> None:
            nonlocal gains, rests, beyond
            gains += gain(log_p, loss).max(arb(0))
            rests += all_of(log_p, loss).min(share(log_p, loss))
            beyond += share(log_p, loss) if loss > at else 0

        for mass, loss in law.step.point_balls:
            add_atom(mass.log(), loss)
        masses = _tilted_masses(outlines, epsilon, law.domain[1])
        for outline in outlines:
            piece = outline.piece
            if piece.flat:
                atom = flat_nodes(outline)
                mass = arb(0)
                for log_weight in atom.log_weight.tolist():
                    mass += arb(log_weight).exp()
                mass = arb(mass.mid(), (mass * (atom.error + 4.0 * ROUNDED)).upper())
                add_atom(mass.log(), piece.ball(arb(inner_place(piece)))[1])
                continue
            crossed, edges = _crossings(outline, masses, epsilon)
            roots = [_closer(piece, arb(low), arb(high), at) for low, high in crossed]
            for low, high in roots:
                log_p, loss = piece.ball(between(low, high))
                gains += arb(0).union((high - low) * abs(gain(log_p, loss)).upper())
                rests += arb(0).union((high - low) * abs(all_of(log_p, loss)).upper())
            ends = [None, *(r for root in roots for r in root), None]
            closed = _by_formula(piece, ends, at)
            if closed is not None:
                gains, rests, beyond = (
                    total + part for total, part in zip((gains, rests, beyond), closed, strict=True)
                )
                continue
            is_quick = by_rules or len(roots) > _MANY_ROOTS
            for start, end in zip(ends[::2], ends[1::2], strict=True):
                inner = _Part(outline, start, end, edges, in_balls, is_quick)
                if inner.is_empty:
                    continue
                if inner.is_above(epsilon):
                    gains += inner.integral(gain, _log_gain(epsilon))
                    above = inner.integral(share, lambda loss: epsilon - loss)
                    rests, beyond = rests + above, beyond + above
                else:
                    rests += inner.integral(all_of, np.zeros_like)
    return gains, rests, beyond


def _by_formula(
    piece: SmoothPiece, ends: Sequence[arb | None], at: arb
) -> tuple[arb, arb, arb] | None:
    """Enclose what a piece adds between its roots, None where no formula has its integrals.

    `ends`: both places of every stretch, None for an end of the piece.
    """
    closed = piece.closed
    if closed is None:
        return None
    gains, rests, beyond = arb(0), arb(0), arb(0)
    for start, end in zip(ends[::2], ends[1::2], strict=True):
        low = piece.exact_end(upper=False) if start is None else start
        high = piece.exact_end(upper=True) if end is None else end
        inside = arb(inner_place(replace(piece, lower=float(low), upper=float(high))))
        log_p, loss = piece.ball(inside)
        p, q = closed.between(low, high)
        share = at.exp() * q
        is_known = p.is_finite() and q.is_finite() and loss.is_finite()
        if not is_known or not closed.density(inside).overlaps(log_p.exp()):
            return None
        if loss > at:
            gains, rests, beyond = gains + p - share, rests + share, beyond + share
        else:
            rests += p
    return gains, rests, beyond


def log_single(law: LossLaw, epsilon: float) -> float:
    """Return about log E(1 − e^{ε−L})⁺ over finite losses, −∞ where that is not had."""
    with suppress(AccuracyError):
        integrals = profile(law, epsilon)
        if integrals is not None and integrals[0].mid() > 0:
            with ctx.workprec(BALL_BITS):
                return float(integrals[0].mid().log())
    return -math.inf


def _closer(piece: SmoothPiece, low: arb, high: arb, epsilon: arb) -> tuple[arb, arb]:
    """Return places beyond doubles between which ℓ crosses ε.

    They lie beside where a straight line crosses, if that is told there, else they are halved.
    """
    first, last = (piece.ball(x)[1] - epsilon for x in (low, high))
    straight = low + (high - low) * first / (first - last)
    if straight.is_finite():
        apart = (high - low) * arb(2) ** -_FINER
        near = [(straight + side * apart).mid().max(low).min(high) for side in (-1, 1)]
        gaps = [piece.ball(x)[1] - epsilon for x in near]
        if bool(first > 0 > last) and bool(gaps[0] > 0 > gaps[1]):
            return near[0], near[1]
        if bool(first < 0 < last) and bool(gaps[0] < 0 < gaps[1]):
            return near[0], near[1]
    for _ in range(_FINER):
        middle = ((low + high) / 2).mid()
        centre = piece.ball(middle)[1] - epsilon
        if centre.contains(0) or first.contains(0):
            break
        low, high = (middle, high) if bool(centre > 0) is bool(first > 0) else (low, middle)
    return low, high


class _Part:
    """A stretch of a piece between two crossings, on one side of ε."""

    def __init__(
        self,
        outline: Outline,
        start: arb | None,
        end: arb | None,
        edges: Array,
        in_balls: bool,
        is_quick: bool,
    ) -> None:
        self._piece, self._in_balls, self._is_quick = outline.piece, in_balls, is_quick
        piece = outline.piece
        self._exact = start, end  # roots; the piece's own ends where there are none
        self._start = piece.lower if start is None else float(start.mid())
        self._end = piece.upper if end is None else float(end.mid())
        near = [x for x in (self._start, self._end) if math.isfinite(x)]
        edges = edges[(edges > self._start) & (edges < self._end)]
        centres = np.asarray(near)[:, None]
        size = 2.0**-20 * np.maximum(np.abs(centres), 1e-3)
        with np.errstate(over="ignore", invalid="ignore"):  # of ends near the largest double
            apart = np.concatenate([_APART * size, np.tile(_APART, (len(near), 1))], 1)
            around = (centres - apart).ravel(), (centres + apart).ravel()
        x = np.concatenate([outline.x, edges, *around])
        for edge, inward in ((self._start, _FAR), (self._end, -_FAR)):
            x = np.concatenate([x, inward]) if edge == 0.0 else x
        x = distinct(x)
        self._x = x[(x > self._start) & (x < self._end)]
        self.is_empty = self._x.size < 3 or not self._start < self._end

    def is_above(self, epsilon: float) -> bool:
        """Return whether the loss is above ε, as most places say."""
        with np.errstate(all="ignore"):
            loss = np.asarray(self._piece.loss(self._x))
        loss = loss[np.isfinite(loss)]
        return bool(np.count_nonzero(loss > epsilon) * 2 > loss.size)

    def integral(self, payoff: Payoff, log_payoff: Callable[[Array], Array]) -> arb:
        """Enclose ∫ P·payoff, but for what is negligible beside it as far as doubles see."""
        x = self._x
        with np.errstate(all="ignore"):
            log_p, _, loss = self._piece.values(x)
            heights = np.nan_to_num(log_p + log_payoff(loss), nan=-np.inf, posinf=-np.inf)
            spacing = np.log(np.gradient(x))
        shells = heights + spacing
        top = float(shells.max())
        if not top > -math.inf:
            return arb(0)
        kept = np.flatnonzero(shells >= top - NEGLIGIBLE)
        first, last = int(kept[0]), int(kept[-1])
        if self._is_quick:
            return self._by_rules(log_payoff, x[max(first - 1, 0) : last + 2])
        ends = self._cut(first, -1), self._cut(last, 1)

        def integrand(x: Any, analytic: bool = False) -> Any:
            return payoff(*self._piece.ball(x, analytic=analytic))

        inner = np.arange(first + 1, last)
        splits = inner[heights[inner].argmax()][None] if inner.size else inner
        for grid in (splits, inner[:: max(1, inner.size // _PLACES)]):
            edges = [ends[0], *map(arb, x[grid].tolist()), ends[1]]
            total = _integrated(integrand, edges, top)
            if total.rad() < abs(total.mid()) * arb(2) ** -(_TIGHT_BITS // 2):
                return total
        return self._by_rules(log_payoff, x[max(first - 1, 0) : last + 2])

    def _by_rules(self, log_payoff: Callable[[Array], Array], edges: Array) -> arb:
        """Return about the integral where Arb does not end, as of wide balls of what cancels.

        How far doubles are off is told by balls at nodes of the likely part.
        """

        def logs(x: Array, weights: Array, *, in_balls: bool = False) -> Array:
            with np.errstate(all="ignore"):
                log_p, loss = self._piece.rounded(x) if in_balls else self._piece.values(x)[::2]
                if (lost := np.isnan(log_p + loss)).any():  # as ∞ − ∞ in doubles
                    log_p[lost], loss[lost] = self._piece.rounded(x[lost])
                return log_p + log_payoff(loss) + np.log(weights)

        halves = distinct(np.concatenate([edges, 0.5 * (edges[1:] + edges[:-1])]))
        rules = [
            tuple(column.ravel() for column in gauss_legendre(chosen[:-1], chosen[1:]))
            for chosen in (edges, halves)
        ]
        log_values = logs(*rules[1])
        share = np.cumsum(np.exp(log_values - log_values.max()))
        chosen = np.searchsorted(share, share[-1] * (np.arange(_PLACES) + 0.5) / _PLACES)
        seen = [column[chosen] for column in rules[1]]
        gap = np.minimum(np.abs(log_values[chosen] - logs(*seen, in_balls=True)), 1.0)
        off = float(np.expm1(gap).mean())
        in_balls = self._in_balls and not off <= ROUNDED and rules[0][0].size <= MOST_ROUNDED
        whole, half = (log_sum(logs(*rule, in_balls=in_balls)) for rule in rules)
        off = abs(math.expm1(min(whole - half, 1.0))) + (4.0 * ROUNDED if in_balls else off)
        total = arb(half).exp()
        return arb(total.mid(), (total * SAFETY * off).upper())

    def _cut(self, number: int, step: int) -> arb:
        """Return an end of what is kept: the stretch's own end where that is next and regular."""
        x, beside = self._x, number + step
        if 0 <= beside < x.size:
            return arb(x[beside])
        root = self._exact[int(step > 0)]
        if root is not None:
            return root
        end = self._start if step < 0 else self._end
        exact = self._piece.exact_end(upper=step > 0)
        if exact.is_finite():
            around = acb(exact + arb(0, 1) * abs(x[number] - end), arb(0, 1) * abs(x[number] - end))
            if all(v.is_finite() for v in self._piece.ball(around, analytic=True)):
                return exact
        return arb(x[number])


def _integrated(integrand: Callable[..., Any], edges: Sequence[arb], log_size: float) -> arb:
    """Enclose an integral whose size is about known, panel by panel."""
    total = arb(0)
    for _ in range(_TRIES):
        total, tolerance = arb(0), arb(log_size).exp() * arb(2) ** -_TIGHT_BITS
        for left, right in pairwise(edges):
            total += acb.integral(
                integrand, acb(left), acb(right), abs_tol=tolerance,
                rel_tol=arb(2) ** -_TIGHT_BITS, eval_limit=_EVALUATIONS,
            ).real  # fmt: skip
            if not total.rad() < arb(log_size).exp():
                return arb(0, 1)
        size = abs(total.mid())
        if total.rad() <= size * arb(2) ** (8 - _TIGHT_BITS) or not size > 0:
            break
        log_size = float(size.log())
    return total


def _log_gain(epsilon: float) -> Callable[[Array], Array]:
    def function(loss: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.log(np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0))

    return function


def _tilted_masses(finite: Sequence[Outline], epsilon: float, end: float) -> dict[float, float]:
    """Return the tilts under which everything that δ and 1 − δ consist of is typical, with masses.

    Below 0, the laws under P and Q; above, the saddle point's tilt, whose law makes ε typical.
    """
    smooth = [o for o in finite if not o.piece.flat]
    if all(o.piece.monotone for o in smooth):
        return {}
    tilts = [-1.0, 0.0, *_typical_tilt(smooth, epsilon, end)]
    logs = np.logaddexp.reduce([o.log_masses(tilts) for o in smooth], axis=0)
    pairs = zip(tilts, logs.tolist(), strict=True)
    return {tilt: log_mass for tilt, log_mass in pairs if math.isfinite(log_mass)}


def _typical_tilt(outlines: Sequence[Outline], epsilon: float, end: float) -> list[float]:
    """Return about where K′(t) = ε + 1/t + 1/(1+t), as grids tell; none far beyond doubles."""

    def too_far(tilt: float) -> bool:
        shells = np.concatenate([o.shells([tilt])[0] for o in outlines])
        loss = np.concatenate([o.loss for o in outlines])
        usable = np.isfinite(shells) & np.isfinite(loss)
        if not usable.any():
            return True
        weight = np.exp(shells[usable] - shells[usable].max())
        mean = float(weight @ loss[usable] / weight.sum())
        return mean > epsilon + 1.0 / tilt + 1.0 / (1.0 + tilt)

    if not end > 0.0:
        return []
    farthest = 2.0**40  # from there on a loss is told within its rounding
    low, high = 0.0, min(1.0, 0.5 * end)
    while high < farthest and not too_far(high):
        low, high = high, min(2.0 * high, 0.5 * (high + end))
        if high == low:
            return [low]
    if high >= farthest:
        return []
    for _ in range(12):  # far closer than a standard deviation needs
        middle = 0.5 * (low + high)
        low, high = (low, middle) if too_far(middle) else (middle, high)
    return [0.5 * (low + high)]


def _crossings(
    outline: Outline, masses: Mapping[float, float], epsilon: float
) -> tuple[list[tuple[float, float]], Array]:
    """Return neighbouring doubles between which ℓ crosses ε, and edges of panels, if it may turn.

    Between two places of the grid the loss is monotone, so that a root shows as a change of sign;
    one that rounding shows far out, where x and x − 1 are one double, is told by balls there.
    """
    piece, x, edges = outline.piece, outline.x, np.empty(0)
    grid = None if piece.monotone else _resolved(outline, masses)
    if grid is None:
        loss = outline.loss
    else:
        x, edges = distinct(np.concatenate([x, grid.x, grid.turns])), grid.edges
        with np.errstate(all="ignore"):
            loss = np.asarray(piece.loss(x))
    usable = ~np.isnan(loss)
    x, above = x[usable], loss[usable] > epsilon
    is_enclosed = np.zeros(x.size, dtype=bool)
    while True:
        change = np.flatnonzero(above[:-1] != above[1:])
        pending = np.union1d(change, change + 1)
        pending = pending[~is_enclosed[pending]]
        if not pending.size:
            break
        is_enclosed[pending] = True
        for k in pending.tolist():
            gap = piece.ball(arb(x[k]))[1] - epsilon
            above[k] = bool(gap > 0) or (above[k] and not gap < 0)
    low, high = _narrowed(piece, x[change], x[change + 1], above[change], epsilon)
    return list(zip(low.tolist(), high.tolist(), strict=True)), edges


def _narrowed(
    piece: SmoothPiece, low: Array, high: Array, is_left_above: NDArray[np.bool_], epsilon: float
) -> tuple[Array, Array]:
    """Return neighbouring doubles between each pair of places between which ℓ crosses ε.

    Each pass looks at the middle and on both sides of where a straight line crosses.
    """
    with np.errstate(all="ignore"):
        for _ in range(1100):
            middle = 0.5 * (low + high)
            if not ((middle > low) & (middle < high)).any():
                break
            start, end = (np.asarray(piece.loss(x)) - epsilon for x in (low, high))
            straight = low + (high - low) * start / (start - end)
            straight = np.where(np.isfinite(straight), np.clip(straight, low, high), middle)
            beside = np.maximum((high - low) / 1024.0, np.spacing(np.abs(straight)))
            tried = np.stack([straight - beside, middle, straight + beside])
            places = np.sort(np.clip(tried, low, high), axis=0)
            same = (np.asarray(piece.loss(places)) > epsilon) == is_left_above
            same |= places == low
            same &= places != high
            places = np.concatenate([low[None], places, high[None]])
            number = np.logical_and.accumulate(same).sum(axis=0)
            index = np.arange(low.size)
            low, high = places[number, index], places[number + 1, index]
    return low, high


def _resolved(outline: Outline, masses: Mapping[float, float]) -> MonotoneGrid | None:
    """Return the grid of all tilts, of P and Q alone where the others are too much, or None."""
    for tilts in (masses, {t: m for t, m in masses.items() if t <= 0.0}):
        with suppress(AccuracyError):
            return monotone_grid(outline, tilts)
    return None  # δ and 1 − δ tell whether a stretch was missed
