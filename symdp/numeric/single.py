"""δ(ε) of one step from its definition, cut at the roots of ℓ(x) = ε, in balls.

    δ(ε) = ∫_{ℓ>ε} P (1 − e^{ε−ℓ}) dx,    1 − δ(ε) = ∫ min(P, e^ε Q) dx.

Doubles find where the mass of both lies and where ℓ crosses ε; Arb integrates what lies between and
encloses it. What is left out beyond is e^−52 of what is kept, as far as doubles see, and the two
integrals, which add up to 1, show whether a stretch was missed. Where balls of what cancels are too
wide for Arb, or stretches too many, rules and their halves say about how far they are off.
"""

from __future__ import annotations

import math
import sys
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
    ROUNDING,
    SAFETY,
    SETTLED,
    Answer,
    answer_in_balls,
    exact_answer,
    falling_answer,
)
from symdp.numeric.beyond.turns import MonotoneGrid, monotone_grid
from symdp.numeric.elementary import distinct, log_sum
from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import escapes, flat_nodes, inner_place
from symdp.numeric.outline import NEGLIGIBLE, Outline
from symdp.numeric.panels import MANY_PANELS, gauss_legendre
from symdp.numeric.saddle_point import log_add_exp
from symdp.numeric.step import MOST_ROUNDED, Array, SmoothPiece
from symdp.numeric.total import SumLaw
from symdp.tolerances import ROUNDED

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
        return _closed_answer(law, part, epsilon, closed)
    by_rules = by_rules and not part.is_closed
    with suppress(AccuracyError), ctx.workprec(BALL_BITS):
        if by_rules:
            integrals = _integrals(part, epsilon, in_balls=False, by_rules=True)
        else:
            integrals = profile(part, epsilon)
        if integrals is None or not all(ball.is_finite() for ball in integrals):
            return None
        finite, complement, beyond = integrals
        if epsilon < part.loss_bounds[1] and not finite.mid() > 0:
            return None  # a stretch above ε was missed
        infinite = arb(law.log_mass_at_infinity).exp().mid()
        gap = abs(finite + infinite + complement - 1).upper()
        if not gap < SETTLED:  # mass was missed, of δ or of 1 − δ
            finite = arb(finite, gap)
            complement = arb(complement, gap)
        answer = answer_in_balls(finite, law.log_mass_at_infinity, complement)
        answer = falling_answer(answer, beyond)
        return _as_rounded(answer) if by_rules else answer
    return None


def _as_rounded(answer: Answer) -> Answer:
    """Return an answer with ends so wide that it counts as rounded."""
    low = answer.log_lower
    high = answer.log_upper
    assert low is not None
    assert high is not None
    off = 10.0 * COUNTED
    return replace(answer, log_lower=low - off, log_upper=high + off)


def _closed_answer(
    law: SumLaw,
    part: LossLaw,
    epsilon: float,
    closed: tuple[float, float, float, float],
) -> Answer:
    log_finite, log_complement, missing, log_beyond = closed
    rounded = missing + 4.0 * ROUNDED
    rounding = 2.0 * ROUNDING * min(abs(log_finite), 1e6)
    error = 4.0 * ROUNDED + missing + rounding
    off = rounded + 2.0 * ROUNDING * (abs(log_complement) + abs(epsilon))
    log_delta = log_add_exp(log_finite, law.log_mass_at_infinity)
    log_share = log_beyond - log_delta
    slope = -math.exp(min(log_share, 700.0))
    return exact_answer(log_delta, log_complement, error, slope, epsilon, off + part.base.error)


def profile(law: LossLaw, epsilon: float) -> tuple[arb, arb, arb] | None:
    """Return E(1 − e^{ε−L})⁺ and E min(1, e^{ε−L}) of finite losses, None of those on integers.

    The third is what losses above ε have of the second: −dδ/dε.
    """
    integrals = _integrals(law, epsilon, in_balls=False)
    if integrals is None:
        return None
    delta, complement, _ = integrals
    if all(ball.rad() <= SETTLED * abs(ball.mid()) for ball in (delta, complement)):
        return integrals
    return _integrals(law, epsilon, in_balls=True)


class _Profile:
    """The three integrals of `profile` at an ε, as far as they were added up."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = arb(epsilon)
        self.delta = arb(0)
        self.complement = arb(0)
        self.beyond = arb(0)

    def gain(self, log_p: Any, loss: Any) -> Any:
        """Return P(1 − e^{ε−ℓ})."""
        return log_p.exp() * -(self.epsilon - loss).expm1()

    def density(self, log_p: Any, _: Any) -> Any:
        """Return P."""
        return log_p.exp()

    def share(self, log_p: Any, loss: Any) -> Any:
        """Return P e^{ε−ℓ}."""
        return (log_p + self.epsilon - loss).exp()

    def add(self, delta: arb, complement: arb, beyond: arb) -> None:
        """Add what a part of the outcomes has."""
        self.delta += delta
        self.complement += complement
        self.beyond += beyond

    def add_atom(self, log_p: arb, loss: arb) -> None:
        """Add an atom."""
        gain = self.gain(log_p, loss).max(arb(0))
        share = self.share(log_p, loss)
        beyond = share if loss > self.epsilon else arb(0)
        self.add(gain, self.density(log_p, loss).min(share), beyond)

    def add_around_root(self, piece: SmoothPiece, low: arb, high: arb) -> None:
        """Add what lies between two places on either side of a root of ℓ = ε."""
        log_p, loss = piece.ball(between(low, high))
        width = high - low
        largest_gain = abs(self.gain(log_p, loss)).upper()
        largest_density = abs(self.density(log_p, loss)).upper()
        gain = arb(0).union(width * largest_gain)
        mass = arb(0).union(width * largest_density)
        self.add(gain, mass, arb(0))


def _integrals(
    law: LossLaw, epsilon: float, in_balls: bool, by_rules: bool = False
) -> tuple[arb, arb, arb] | None:
    outlines = [outline for outline in law.outlines if not escapes(outline.piece)]
    if any(outline.piece.integer for outline in outlines):
        return None
    top = law.loss_bounds[1]
    near = 1.0
    if math.isfinite(top):
        near = abs(top) / max(top - epsilon, 1e-300)
    with ctx.workprec(2 * BALL_BITS + max(0, math.frexp(near)[1])):
        total = _Profile(epsilon)
        for mass, loss in law.step.point_balls:
            total.add_atom(mass.log(), loss)
        masses = _tilted_masses(outlines, epsilon, law.domain[1])
        for outline in outlines:
            piece = outline.piece
            if piece.flat:
                _, loss = piece.ball(arb(inner_place(piece)))
                total.add_atom(_flat_mass(outline).log(), loss)
                continue
            crossed, edges = _crossings(outline, masses, epsilon)
            ends: list[arb | None] = [None]
            for left, right in crossed:
                low, high = _bracket_beyond_doubles(piece, arb(left), arb(right), total.epsilon)
                total.add_around_root(piece, low, high)
                ends += [low, high]
            ends.append(None)
            if _add_by_formula(total, piece, ends):
                continue
            is_quick = by_rules or len(crossed) > _MANY_ROOTS
            for start, end in zip(ends[::2], ends[1::2], strict=True):
                stretch = _OneSidedStretch(outline, start, end, edges, in_balls, is_quick)
                if stretch.is_empty:
                    continue
                if stretch.is_above(epsilon):
                    gain = stretch.integral(total.gain, _log_gain(epsilon))
                    share = stretch.integral(total.share, lambda loss: epsilon - loss)
                    total.add(gain, share, share)
                else:
                    mass = stretch.integral(total.density, np.zeros_like)
                    total.add(arb(0), mass, arb(0))
    return total.delta, total.complement, total.beyond


def _flat_mass(outline: Outline) -> arb:
    """Enclose the mass of a piece of constant loss."""
    atom = flat_nodes(outline)
    mass = arb(0)
    for log_weight in atom.log_weight.tolist():
        mass += arb(log_weight).exp()
    error = atom.error + 4.0 * ROUNDED
    radius = (mass * error).upper()
    return arb(mass.mid(), radius)


def _add_by_formula(total: _Profile, piece: SmoothPiece, ends: Sequence[arb | None]) -> bool:
    """Add what a piece has between its roots, and return whether a formula has its integrals.

    `ends`: both places of every stretch, None for an end of the piece.
    """
    closed = piece.closed
    if closed is None:
        return False
    delta = arb(0)
    complement = arb(0)
    beyond = arb(0)
    for start, end in zip(ends[::2], ends[1::2], strict=True):
        low = piece.exact_end(upper=False) if start is None else start
        high = piece.exact_end(upper=True) if end is None else end
        stretch = replace(piece, lower=float(low), upper=float(high))
        inside = arb(inner_place(stretch))
        log_p, loss = piece.ball(inside)
        p, q = closed.between(low, high)
        is_known = p.is_finite() and q.is_finite() and loss.is_finite()
        if not is_known or not closed.density(inside).overlaps(log_p.exp()):
            return False
        if loss > total.epsilon:
            share = total.epsilon.exp() * q
            delta = delta + p - share
            complement += share
            beyond += share
        else:
            complement += p
    total.add(delta, complement, beyond)
    return True


def log_single(law: LossLaw, epsilon: float) -> float:
    """Return about log E(1 − e^{ε−L})⁺ over finite losses, −∞ where that is not had."""
    with suppress(AccuracyError):
        integrals = profile(law, epsilon)
        if integrals is None:
            return -math.inf
        delta = integrals[0].mid()
        if delta > 0:
            with ctx.workprec(BALL_BITS):
                return float(delta.log())
    return -math.inf


def _bracket_beyond_doubles(
    piece: SmoothPiece, low: arb, high: arb, epsilon: arb
) -> tuple[arb, arb]:
    """Return places beyond doubles between which ℓ crosses ε.

    They lie beside where a straight line crosses, if that is told there, else they are halved.
    """
    first = piece.ball(low)[1] - epsilon
    last = piece.ball(high)[1] - epsilon
    straight = low + (high - low) * first / (first - last)
    if straight.is_finite():
        distance = (high - low) * arb(2) ** -_FINER
        left = (straight - distance).mid().max(low).min(high)
        right = (straight + distance).mid().max(low).min(high)
        left_gap = piece.ball(left)[1] - epsilon
        right_gap = piece.ball(right)[1] - epsilon
        falls = bool(first > 0 > last) and bool(left_gap > 0 > right_gap)
        rises = bool(first < 0 < last) and bool(left_gap < 0 < right_gap)
        if falls or rises:
            return left, right
    for _ in range(_FINER):
        middle = ((low + high) / 2).mid()
        gap = piece.ball(middle)[1] - epsilon
        if gap.contains(0) or first.contains(0):
            break
        if bool(gap > 0) is bool(first > 0):
            low = middle
        else:
            high = middle
    return low, high


class _OneSidedStretch:
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
        piece = outline.piece
        self._piece = piece
        self._in_balls = in_balls
        self._exact = (start, end)  # roots; the piece's own ends where there are none
        self._start = piece.lower if start is None else float(start.mid())
        self._end = piece.upper if end is None else float(end.mid())
        is_inside = (edges > self._start) & (edges < self._end)
        self._is_quick = is_quick or np.count_nonzero(is_inside) > 4 * MANY_PANELS
        places = [outline.x, edges[is_inside]]
        finite_ends = [x for x in (self._start, self._end) if math.isfinite(x)]
        centres = np.asarray(finite_ends)[:, None]
        size = 2.0**-20 * np.maximum(np.abs(centres), 1e-3)
        with np.errstate(over="ignore", invalid="ignore"):  # of ends near the largest double
            relative = _APART * size
            absolute = np.tile(_APART, (len(finite_ends), 1))
            distances = np.concatenate([relative, absolute], 1)
            places += [(centres - distances).ravel(), (centres + distances).ravel()]
        if self._start == 0.0:
            places.append(_FAR)
        if self._end == 0.0:
            places.append(-_FAR)
        x = distinct(np.concatenate(places))
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
            log_heights = log_p + log_payoff(loss)
            heights = np.nan_to_num(log_heights, nan=-np.inf, posinf=-np.inf)
            spacing = np.log(np.gradient(x))
        shells = heights + spacing
        top = float(shells.max())
        if not top > -math.inf:
            return arb(0)
        essential = np.flatnonzero(shells >= top - NEGLIGIBLE)
        first = int(essential[0])
        last = int(essential[-1])
        edges_of_rules = x[max(first - 1, 0) : last + 2]
        if self._is_quick:
            return self._by_rules(log_payoff, edges_of_rules)
        low = self._end_of_mass(first, -1)
        high = self._end_of_mass(last, 1)

        def integrand(x: Any, analytic: bool = False) -> Any:
            return payoff(*self._piece.ball(x, analytic=analytic))

        inner = np.arange(first + 1, last)
        splits = inner
        if inner.size:
            splits = inner[heights[inner].argmax()][None]
        every = max(1, inner.size // _PLACES)
        for grid in (splits, inner[::every]):
            edges = [low, *map(arb, x[grid].tolist()), high]
            total = _integrated(integrand, edges, top)
            resolution = arb(2) ** -(_TIGHT_BITS // 2)
            if total.rad() < abs(total.mid()) * resolution:
                return total
        return self._by_rules(log_payoff, edges_of_rules)

    def _by_rules(self, log_payoff: Callable[[Array], Array], edges: Array) -> arb:
        """Return about the integral where Arb does not end, as of wide balls of what cancels.

        How far doubles are off is told by balls at nodes of the likely part.
        """

        def log_values(x: Array, weights: Array, *, in_balls: bool = False) -> Array:
            with np.errstate(all="ignore"):
                if in_balls:
                    log_p, loss = self._piece.rounded(x)
                else:
                    log_p, _, loss = self._piece.values(x)
                is_lost = np.isnan(log_p + loss)  # as ∞ − ∞ in doubles
                if is_lost.any():
                    log_p[is_lost], loss[is_lost] = self._piece.rounded(x[is_lost])
                return log_p + log_payoff(loss) + np.log(weights)

        middles = 0.5 * (edges[1:] + edges[:-1])
        halves = distinct(np.concatenate([edges, middles]))
        nodes, node_weights = gauss_legendre(edges[:-1], edges[1:])
        fine_nodes, fine_node_weights = gauss_legendre(halves[:-1], halves[1:])
        x = nodes.ravel()
        weights = node_weights.ravel()
        fine_x = fine_nodes.ravel()
        fine_weights = fine_node_weights.ravel()
        fine_values = log_values(fine_x, fine_weights)
        top = fine_values.max()
        if top == -np.inf:  # far out, where no double holds the density
            return arb(0, sys.float_info.min)
        cumulated = np.cumsum(np.exp(fine_values - top))
        quantiles = cumulated[-1] * (np.arange(_PLACES) + 0.5) / _PLACES
        sample = np.searchsorted(cumulated, quantiles)
        exact_values = log_values(fine_x[sample], fine_weights[sample], in_balls=True)
        gap = np.minimum(np.abs(fine_values[sample] - exact_values), 1.0)
        rounded_off = float(np.expm1(gap).mean())
        in_balls = self._in_balls and not rounded_off <= ROUNDED and x.size <= MOST_ROUNDED
        if in_balls:
            rounded_off = 4.0 * ROUNDED
        whole = log_sum(log_values(x, weights, in_balls=in_balls))
        fine = log_sum(log_values(fine_x, fine_weights, in_balls=in_balls))
        off = abs(math.expm1(min(whole - fine, 1.0))) + rounded_off
        total = arb(fine).exp()
        return arb(total.mid(), (total * SAFETY * off).upper())

    def _end_of_mass(self, number: int, step: int) -> arb:
        """Return an end of what is kept: the stretch's own end where that is next and regular."""
        x = self._x
        beside = number + step
        if 0 <= beside < x.size:
            return arb(x[beside])
        is_upper = step > 0
        root = self._exact[int(is_upper)]
        if root is not None:
            return root
        end = self._end if is_upper else self._start
        exact = self._piece.exact_end(upper=is_upper)
        if exact.is_finite():
            distance = abs(x[number] - end)
            imaginary = arb(0, 1) * distance
            around = acb(exact + imaginary, imaginary)
            balls = self._piece.ball(around, analytic=True)
            if all(ball.is_finite() for ball in balls):
                return exact
        return arb(x[number])


def _integrated(integrand: Callable[..., Any], edges: Sequence[arb], log_size: float) -> arb:
    """Enclose an integral whose size is about known, panel by panel."""
    total = arb(0)
    resolution = arb(2) ** -_TIGHT_BITS
    for _ in range(_TRIES):
        total = arb(0)
        size = arb(log_size).exp()
        for left, right in pairwise(edges):
            integral = acb.integral(
                integrand,
                acb(left),
                acb(right),
                abs_tol=size * resolution,
                rel_tol=resolution,
                eval_limit=_EVALUATIONS,
            )
            total += integral.real
            if not total.rad() < size:
                return arb(0, 1)
        middle = abs(total.mid())
        is_resolved = total.rad() <= middle * arb(2) ** (8 - _TIGHT_BITS)
        if is_resolved or not middle > 0:
            break
        log_size = float(middle.log())
    return total


def _log_gain(epsilon: float) -> Callable[[Array], Array]:
    def function(loss: Array) -> Array:
        with np.errstate(all="ignore"):
            gain = -np.expm1(np.minimum(epsilon - loss, 0.0))
            return np.log(np.maximum(gain, 0.0))

    return function


def _tilted_masses(finite: Sequence[Outline], epsilon: float, end: float) -> dict[float, float]:
    """Return the tilts under which everything that δ and 1 − δ consist of is typical, with masses.

    Below 0, the laws under P and Q; above, the saddle point's tilt, whose law makes ε typical.
    """
    smooth = [outline for outline in finite if not outline.piece.flat]
    if all(outline.piece.monotone for outline in smooth):
        return {}
    tilts = [-1.0, 0.0, *_typical_tilt(smooth, epsilon, end)]
    of_pieces = [outline.log_masses(tilts) for outline in smooth]
    log_masses = np.logaddexp.reduce(of_pieces, axis=0)
    pairs = zip(tilts, log_masses.tolist(), strict=True)
    return {tilt: log_mass for tilt, log_mass in pairs if math.isfinite(log_mass)}


def _typical_tilt(outlines: Sequence[Outline], epsilon: float, end: float) -> list[float]:
    """Return about where K′(t) = ε + 1/t + 1/(1+t), as grids tell; none far beyond doubles."""

    def too_far(tilt: float) -> bool:
        shells_of_pieces = [outline.shells([tilt])[0] for outline in outlines]
        shells = np.concatenate(shells_of_pieces)
        loss = np.concatenate([outline.loss for outline in outlines])
        is_usable = np.isfinite(shells) & np.isfinite(loss)
        if not is_usable.any():
            return True
        shells = shells[is_usable]
        weight = np.exp(shells - shells.max())
        mean = float(weight @ loss[is_usable] / weight.sum())
        return mean > epsilon + 1.0 / tilt + 1.0 / (1.0 + tilt)

    if not end > 0.0:
        return []
    farthest = 2.0**40  # from there on a loss is told within its rounding
    low = 0.0
    high = min(1.0, 0.5 * end)
    while high < farthest and not too_far(high):
        low = high
        high = min(2.0 * high, 0.5 * (high + end))
        if high == low:
            return [low]
    if high >= farthest:
        return []
    for _ in range(12):  # far closer than a standard deviation needs
        middle = 0.5 * (low + high)
        if too_far(middle):
            high = middle
        else:
            low = middle
    return [0.5 * (low + high)]


def _crossings(
    outline: Outline, masses: Mapping[float, float], epsilon: float
) -> tuple[list[tuple[float, float]], Array]:
    """Return neighbouring doubles between which ℓ crosses ε, and edges of panels, if it may turn.

    Between two places of the grid the loss is monotone, so that a root shows as a change of sign;
    one that rounding shows far out, where x and x − 1 are one double, is told by balls there.
    """
    piece = outline.piece
    x = outline.x
    loss = outline.loss
    edges = np.empty(0)
    grid = None if piece.monotone else _grid_of_tilts(outline, masses)
    if grid is not None:
        x = distinct(np.concatenate([x, grid.x, grid.turns]))
        edges = grid.edges
        with np.errstate(all="ignore"):
            loss = np.asarray(piece.loss(x))
    is_usable = ~np.isnan(loss)
    x = x[is_usable]
    above = loss[is_usable] > epsilon
    is_enclosed = np.zeros(x.size, dtype=bool)
    while True:
        change = np.flatnonzero(above[:-1] != above[1:])
        pending = np.union1d(change, change + 1)
        pending = pending[~is_enclosed[pending]]
        if not pending.size:
            break
        is_enclosed[pending] = True
        for k in pending.tolist():
            _, loss_ball = piece.ball(arb(x[k]))
            gap = loss_ball - epsilon
            if gap > 0:
                above[k] = True
            elif gap < 0:
                above[k] = False
    left = x[change]
    right = x[change + 1]
    low, high = _bracketed_by_doubles(piece, left, right, above[change], epsilon)
    brackets = list(zip(low.tolist(), high.tolist(), strict=True))
    return brackets, edges


def _bracketed_by_doubles(
    piece: SmoothPiece,
    low: Array,
    high: Array,
    is_left_above: NDArray[np.bool_],
    epsilon: float,
) -> tuple[Array, Array]:
    """Return neighbouring doubles between each pair of places between which ℓ crosses ε.

    Each pass looks at the middle and on both sides of where a straight line crosses.
    """
    with np.errstate(all="ignore"):
        for _ in range(1100):
            middle = 0.5 * (low + high)
            if not ((middle > low) & (middle < high)).any():
                break
            start = np.asarray(piece.loss(low)) - epsilon
            end = np.asarray(piece.loss(high)) - epsilon
            share = (high - low) * start / (start - end)
            straight = low + share
            within = np.clip(straight, low, high)
            straight = np.where(np.isfinite(straight), within, middle)
            rounding = np.spacing(np.abs(straight))
            distance = np.maximum((high - low) / 1024.0, rounding)
            trial = np.stack([straight - distance, middle, straight + distance])
            places = np.sort(np.clip(trial, low, high), axis=0)
            is_above = np.asarray(piece.loss(places)) > epsilon
            is_same = is_above == is_left_above
            is_same |= places == low
            is_same &= places != high
            places = np.concatenate([low[None], places, high[None]])
            number = np.logical_and.accumulate(is_same).sum(axis=0)
            index = np.arange(low.size)
            low = places[number, index]
            high = places[number + 1, index]
    return low, high


def _grid_of_tilts(outline: Outline, masses: Mapping[float, float]) -> MonotoneGrid | None:
    """Return the grid of all tilts, of P and Q alone where the others are too much, or None."""
    untilted = {tilt: log_mass for tilt, log_mass in masses.items() if tilt <= 0.0}
    for tilts in (masses, untilted):
        with suppress(AccuracyError):
            return monotone_grid(outline, tilts)
    return None  # δ and 1 − δ tell whether a stretch was missed
