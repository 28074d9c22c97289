"""The mean and the ends of the loss beyond double precision.

n steps shift the total loss by n times the mean, while δ depends on ε minus that shift. For many
steps a double's rounding of the mean is therefore no longer small, so it is summed in balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from flint import arb, ctx

from symdp.emit.enclose import enclose_sum
from symdp.emit.exact import middle_of
from symdp.errors import AccuracyError
from symdp.law.accurate import extended_number
from symdp.law.nodes import escapes, inner_place, integer_nodes
from symdp.law.outline import Outline, covering_tilts
from symdp.law.panels import build_panels
from symdp.law.probe import ORDER
from symdp.law.step import Array, Extended, SmoothPiece, Step

PanelledPiece = tuple[SmoothPiece, Array, Array]

BITS = 140  # carried: n = 10¹² steps leave 100 of them
_ORDER = 24  # of a Gauss–Legendre rule
_FURTHER = 40.0  # e-folds of mass that doubles need not, and 22 digits do
_RELATIVE = 1e-22  # error of a mean: 10⁶ of them are a double's rounding
_FAINT = 1e-9  # relative error of a first set of panels
WHOLE_MEAN = 6e-14  # of E|L − near|, by which panels may miss the mean: halves err 2^16 times less
CANCELLED = 1e-11  # of E|L − near|: where doubles are off by more, 64-bit mantissas may be, too
_SAME_TOP = 1e-14  # relative: a largest loss in balls is the one in doubles
_MOST_PANELS = 20_000  # of a piece
_BESIDE = 8  # integers on each side of the likeliest
_SPARSE = 32  # places of an outline that are looked at


@cache
def _rule() -> tuple[tuple[arb, arb], ...]:
    with ctx.workprec(BITS):
        return tuple(arb.legendre_p_root(_ORDER, k, weight=True) for k in range(_ORDER))


@dataclass(frozen=True)
class _Panel:
    """A stretch of a piece, and by one rule over it ∫P, ∫P(ℓ − c) and ∫P|ℓ − c|."""

    piece: SmoothPiece
    low: arb
    high: arb
    mass: arb
    first: arb
    size: arb

    @classmethod
    def over(cls, piece: SmoothPiece, low: arb, high: arb, centre: arb) -> _Panel:
        """Return the panel with its sums."""
        half, middle = (high - low) / 2, (high + low) / 2
        mass, first, size = arb(0), arb(0), arb(0)
        for node, weight in _rule():
            log_p, loss = piece.accurate.ball(middle + half * node)
            share = half * weight * log_p.exp()
            mass, first = mass + share, first + share * (loss - centre)
            size += share * abs(loss - centre)
        return cls(piece, low, high, mass, first, size)

    def halves(self, centre: arb) -> tuple[_Panel, _Panel]:
        """Return both halves."""
        middle = ((self.low + self.high) / 2).mid()
        return (
            _Panel.over(self.piece, self.low, middle, centre),
            _Panel.over(self.piece, middle, self.high, centre),
        )


def precise_mean(step: Step, outlines: Sequence[Outline], near: float) -> Fraction:
    """Return E L given that L is finite, to about 22 digits of E|L − near|.

    The panels that settled in double precision are summed in ball arithmetic, and halved until
    their halves agree with them: what hardly counts in doubles has not been resolved there.

    Parameters
    ----------
    near
        About the mean.

    Raises
    ------
    AccuracyError
        If that takes too many panels.
    """
    with ctx.workprec(BITS):
        centre, mass, first = arb(near), arb(0), arb(0)
        size = arb(0)
        for probability, loss in step.point_balls:
            mass, first = mass + probability, first + probability * (loss - centre)
            size += probability * abs(loss - centre)
        finite = [outline for outline in outlines if not escapes(outline.piece)]
        masses = covering_tilts(finite, [-1.0, 0.0]) if finite else {}
        waiting: list[_Panel] = []
        for outline in finite:
            piece = outline.piece
            if piece.integer:
                own = _integer_sums(piece, centre)
                mass, first = mass + own[0], first + own[1]
                continue
            panels, _ = build_panels([(outline, {0.0: masses[0.0] - _FURTHER})], 0.0, _FAINT)
            if panels is not None:
                exact = {float(end): end for end in piece.ends}
                ends = zip(panels.lower.tolist(), panels.upper.tolist(), strict=True)
                waiting += [
                    _Panel.over(piece, exact.get(low, arb(low)), exact.get(high, arb(high)), centre)
                    for low, high in ends
                ]
        allowed = _RELATIVE * (size + sum((panel.size for panel in waiting), arb(0)))
        for _ in range(_MOST_PANELS):
            if not waiting:
                return Fraction(near) + middle_of(first / mass)
            panel = waiting.pop()
            left, right = panel.halves(centre)
            if abs(left.first + right.first - panel.first) <= allowed:
                mass, first = mass + left.mass + right.mass, first + left.first + right.first
            else:
                waiting += [left, right]
        raise AccuracyError(f"the mean of the loss of {step.name} could not be summed precisely")


def _integer_sums(piece: SmoothPiece, centre: arb) -> tuple[arb, arb]:
    """Return ΣP and ΣP(ℓ − c) over the integers of a piece."""
    places = integer_nodes(piece, [0.0], _FURTHER)
    if not places.size:
        return arb(0), arb(0)

    def share(power: int) -> Callable[..., Any]:
        def term(k: Any, analytic: bool = False) -> Any:
            log_p, loss = piece.accurate.ball(k, analytic=analytic)
            return log_p.exp() * (loss - centre) ** power

        return term

    ends = arb(float(places[0])), arb(float(places[-1]))
    return enclose_sum(share(0), *ends), enclose_sum(share(1), *ends)


def extended_means(pieces: Sequence[PanelledPiece], near: float) -> list[Fraction | None]:
    """Return E L and E_Q L, given that L is finite, to about 18 digits, by 64-bit mantissas.

    Parameters
    ----------
    pieces
        Every piece with a finite loss, and the panels that settled on it.
    near
        About E L.

    Returns
    -------
    Each mean to 1e-18 of the mean distance from it, or None where a piece has no such values, where
    they have cancelled, or where halves of the panels give another mean: what is less than a
    double's rounding has not been resolved there.
    """
    seen = []
    for parts in (1, 2):
        for piece, lower, upper in pieces:
            x, weight = split_panels(piece, lower, upper, parts)
            values = piece.accurate.extended(x)
            if values is None:
                return [None, None]
            with np.errstate(all="ignore"):
                off = np.abs(values[1] - piece.loss(x.astype(np.float64)))
                seen.append((weight * np.exp(values[0]), values[1], off))
    found = []
    for reverse in (False, True):
        if reverse:
            with np.errstate(all="ignore"):
                seen = [(share * np.exp(-loss), loss, off) for share, loss, off in seen]
        whole, halves = seen[: len(pieces)], seen[len(pieces) :]
        if reverse:
            near = float(sum((s * np.where(s > 0, loss, 0.0)).sum() for s, loss, _ in whole))
        found.append(_agreed(whole, halves, near))
    return found


_Seen = list[tuple[Extended, Extended, Extended]]  # masses, losses, how far doubles are off


def _agreed(whole: _Seen, halves: _Seen, near: float) -> Fraction | None:
    """Return the mean by the halves of panels, None where it is not known to 18 digits."""
    means = []
    for rule in (whole, halves):
        mass = first = size = off = np.longdouble(0.0)
        for share, loss, doubtful in rule:
            charged = share > 0  # where the density underflows, a loss may be anything
            gap = np.where(charged, loss - near, 0.0)
            mass, first = mass + share.sum(), first + (share * gap).sum()
            size += (share * np.abs(gap)).sum()
            off += (share * np.where(charged, doubtful, 0.0)).sum()
        if not off <= CANCELLED * size:
            return None
        means.append(first / mass)
    if not abs(means[1] - means[0]) <= WHOLE_MEAN * size / mass:
        return None
    rest = float(means[1])
    return Fraction(near) + Fraction(rest) + Fraction(float(means[1] - np.longdouble(rest)))


def split_panels(
    piece: SmoothPiece, lower: Array, upper: Array, parts: int
) -> tuple[Extended, Extended]:
    """Return Gauss–Legendre nodes and weights on equal parts of every panel."""
    exact = {float(end): extended_number(end) for end in piece.ends}
    low, high = (
        np.asarray([exact.get(end, np.longdouble(end)) for end in ends.tolist()])
        for ends in (lower, upper)
    )
    half = (high - low) / (2 * parts)
    middle = low[:, None] + np.multiply.outer(half, np.arange(1, 2 * parts, 2))
    nodes, weights = _extended_rule()
    x = middle[..., None] + half[:, None, None] * nodes
    weight = np.broadcast_to(half[:, None, None] * weights, x.shape)
    return x.ravel(), weight.ravel()


@cache
def _extended_rule() -> tuple[Extended, Extended]:
    with ctx.workprec(BITS):
        # Rising, as those in doubles.
        pairs = [arb.legendre_p_root(ORDER, k, weight=True) for k in reversed(range(ORDER))]
    nodes, weights = zip(*pairs, strict=True)
    return np.asarray([extended_number(x) for x in nodes]), np.asarray(
        [extended_number(w) for w in weights]
    )


def precise_losses(step: Step, outlines: Sequence[Outline]) -> tuple[Fraction, ...]:
    """Return the losses of a step whose finite losses are all single values, in rising order.

    Of integer noise, these are the ends of what is not negligible and some of those between.
    """
    with ctx.workprec(BITS):
        losses = [middle_of(loss) for _, loss in step.point_balls]
        for piece in (outline.piece for outline in outlines if not escapes(outline.piece)):
            places = _sampled(piece) if piece.integer else [inner_place(piece)]
            losses += [middle_of(piece.accurate.ball(arb(place))[1]) for place in places]
        return tuple(sorted(losses))


def precise_top(step: Step, outlines: Sequence[Outline], top: float) -> Fraction | None:
    """Return the largest loss beyond doubles, None where it is not seen at a place of a piece."""
    with ctx.workprec(BITS):
        losses = [loss for _, loss in step.point_balls]
        for piece in (outline.piece for outline in outlines if not escapes(outline.piece)):
            places = [arb(inner_place(piece))] if piece.flat else list(piece.ends)
            losses += [piece.accurate.ball(place)[1] for place in places]
        close = [loss for loss in losses if loss.is_finite() and loss.rad() < _RELATIVE]
        known = max((middle_of(loss) for loss in close), default=None)
    if known is None or not math.isfinite(top):
        return None
    return known if abs(float(known) - top) <= _SAME_TOP * (1.0 + abs(top)) else None


def _sampled(piece: SmoothPiece) -> list[float]:
    """Return some integers of a piece: where its loss ends, and others far from even spacing."""
    x = np.sort(integer_nodes(piece, [-1.0, 0.0]))
    loss = np.asarray(piece.loss(x))
    middle = int(np.asarray(piece.log_p(x)).argmax())
    chosen = {int(loss.argmin()), int(loss.argmax())}
    chosen |= {place % x.size for place in range(middle - _BESIDE, middle + _BESIDE + 1)}
    chosen |= {place * place * (x.size - 1) // _SPARSE**2 for place in range(_SPARSE + 1)}
    return [float(place) for place in x[sorted(chosen)]]
