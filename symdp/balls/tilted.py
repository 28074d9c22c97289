"""Enclosures of tilted moments of one step's loss: K, its mean, variance and third moment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import acb, arb, ctx

from symdp.balls.cuts import cut_tails
from symdp.balls.enclosure import EVALUATIONS
from symdp.derive.pieces import pieces, points
from symdp.derive.signs import interior_point
from symdp.emit.arb import compile_arb
from symdp.emit.enclose import enclose_sum
from symdp.emit.exact import BITS, end_ball, real_ball
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.derive.records import Piece
    from symdp.emit.arb import ArbFunction
    from symdp.model.pair import Pair

_REACH = 60  # octaves around an anchor in which the largest value is looked for
_ACCURACY = 64  # bits, relative to the peak of a tilted density
_ZOOMS = 40  # thirds cut off around the largest value: 2^(−23) of the width is left


class TiltedLaw:
    """Proved moments of the finite loss under dP_t ∝ e^{tℓ}dP, of one step.

    Parameters
    ----------
    pair : Pair
        All parameters bound.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> law = TiltedLaw(mechanisms.gaussian(sigma=2).pair())
    >>> law.cgf(sp.S.One).contains(arb(1) / 4), law.mean(sp.S.One).contains(arb(3) / 8)
    (True, True)
    """

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.points = tuple(
            point for point in points(pair) if not point.loss.is_infinite and point.p != 0
        )
        self.pieces = tuple(
            piece for piece in pieces(pair) if piece.log_p is not None and piece.log_q is not None
        )
        if not self.points and not self.pieces:
            raise AccuracyError("the loss is infinite everywhere: there is nothing to tilt")
        self._cached = lru_cache(maxsize=512)(self._moment)

    def cgf(self, tilt: sp.Rational) -> arb:
        """Enclose K(t) = log ∫ P^{1+t} Q^{−t}."""
        height, total = self._cached(tilt, 0, None)
        with ctx.workprec(BITS):
            return height + total.log()

    def mean(self, tilt: sp.Rational) -> arb:
        """Enclose K′(t)."""
        return self._ratio(tilt, 1, arb(0))

    def variance(self, tilt: sp.Rational) -> arb:
        """Enclose K″(t)."""
        return self._ratio(tilt, 2, self.mean(tilt))

    def third(self, tilt: sp.Rational) -> arb:
        """Enclose P_t = E_t|L − K′(t)|³."""
        return self._ratio(tilt, 3, self.mean(tilt))

    def square_about(self, tilt: sp.Rational, centre: arb) -> arb:
        """Enclose E_t(L − c)²."""
        return self._ratio(tilt, 2, centre)

    def _ratio(self, tilt: sp.Rational, power: int, centre: arb) -> arb:
        with ctx.workprec(BITS):
            _, total = self._cached(tilt, 0, None)
            own = self._moment(tilt, power, centre)[1]
            return own / total

    def _moment(self, tilt: sp.Rational, power: int, centre: arb | None) -> tuple[arb, arb]:
        """Return h and Σ∫ |ℓ − c|^power e^{log P + tℓ − h}, without the bars for a mean."""
        with ctx.workprec(BITS):
            return self._heights(tilt), self._total(
                tilt, power, arb(0) if centre is None else centre
            )

    @lru_cache(maxsize=128)  # noqa: B019  (laws are few and live as long as their numbers)
    def _heights(self, tilt: sp.Rational) -> arb:
        """Return about the log of the largest tilted density, as an exact number."""
        if self.points:
            balls = [real_ball(sp.log(p.p) + tilt * p.loss) for p in self.points]
            return max(ball.mid() for ball in balls)
        tops = [_top(piece, self.pair.variable, tilt) for piece in self.pieces]
        return arb(math.ceil(max(tops)))

    def _total(self, tilt: sp.Rational, power: int, centre: arb) -> arb:
        height, x = self._heights(tilt), self.pair.variable
        total = arb(0)
        for point in self.points:
            weight = (real_ball(sp.log(point.p) + tilt * point.loss) - height).exp()
            total += weight * _power(acb(real_ball(point.loss)), centre, power, analytic=False).real
        for piece in self.pieces:
            total += _piece_moment(piece, x, tilt, height, power, centre)
        return total


@dataclass(frozen=True)
class _Exponential:
    """e^g on balls."""

    exponent: ArbFunction

    def __call__(self, at: arb) -> arb:
        return arb(self.exponent(at).exp())


def _power(loss: acb, centre: arb, power: int, analytic: bool) -> acb:
    """|ℓ − c|^power, signed for the first power."""
    distance = loss - centre
    if power == 0:
        return acb(1)
    if power == 3:
        distance = distance.real_abs(analytic=analytic)
    return acb(distance**power)


def _top(piece: Piece, x: sp.Symbol, tilt: sp.Rational) -> float:
    """Return the largest log of the tilted density on a grid, sharpened once."""
    assert piece.log_p is not None
    exponent = compile_arb(piece.log_p + tilt * piece.loss, [x])

    def height(place: float) -> float:
        ball = exponent(arb(place))
        return float(ball) if ball.is_finite() and ball.rad() < 1 else -math.inf

    low, high = (
        end.evalf(20) if not end.is_infinite else None for end in (piece.lower, piece.upper)
    )
    inner = float(interior_point(piece.lower, piece.upper))
    anchors = {inner, *(float(end) for end in (low, high) if end is not None)}
    steps = [s * 2.0**k for k in range(-20, _REACH) for s in (-1, 1)]
    grid = sorted(
        {
            a + step
            for a in anchors
            for step in (*steps, 0.0)
            if (low is None or a + step >= low) and (high is None or a + step <= high)
        }
    )
    if x.is_integer:
        grid = sorted({float(round(place)) for place in grid if abs(place) < 2.0**40})
        grid = [g for g in grid if (low is None or g >= low) and (high is None or g <= high)]
    heights = [height(place) for place in grid]
    best = max(range(len(grid)), key=heights.__getitem__)
    if x.is_integer:
        return heights[best]
    left, right = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    top = heights[best]
    for _ in range(_ZOOMS):
        a, b = left + (right - left) / 3, right - (right - left) / 3
        ha, hb = height(a), height(b)
        top = max(top, ha, hb)
        left, right = (a, right) if ha < hb else (left, b)
    if top == -math.inf:
        raise AccuracyError("a tilted density was found nowhere on its piece")
    return top


def _piece_moment(
    piece: Piece, x: sp.Symbol, tilt: sp.Rational, height: arb, power: int, centre: arb
) -> arb:
    assert piece.log_p is not None
    top = sp.Integer(int(float(height)))
    exponent = piece.log_p + tilt * piece.loss - top
    size, loss = compile_arb(exponent, [x]), compile_arb(piece.loss, [x])

    def integrand(place: Any, analytic: bool = False) -> Any:
        weight = acb(size(place, analytic=analytic)).exp()
        value = acb(loss(place, analytic=analytic)) if power else acb(0)
        product = weight * _power(value, centre, power, analytic)
        return product if isinstance(place, acb) else product.real

    ends = [end_ball(piece.lower), end_ball(piece.upper)]
    if x.is_integer:
        return enclose_sum(integrand, *ends)
    tolerance = arb(2) ** -_ACCURACY
    found = _shared_cuts(piece, x, tilt, height, power, centre) if None in ends else None
    (low, high), tails = found or _cuts(piece, exponent, x, ends, power, centre, tolerance)
    result = acb.integral(
        integrand,
        acb(low),
        acb(high),
        abs_tol=tolerance,
        rel_tol=arb(2) ** -_ACCURACY,
        eval_limit=EVALUATIONS,
    )
    if not result.is_finite():
        raise AccuracyError("a tilted moment could not be enclosed")
    return result.real + arb(0, tails.upper())


@lru_cache(maxsize=512)
def _whole_tilt(piece: Piece, x: sp.Symbol, tilt: sp.Integer) -> tuple[list[arb], arb, float]:
    """Return cuts at a whole tilt, the bound of the tails, and the log it is relative to."""
    assert piece.log_p is not None
    top = math.ceil(_top(piece, x, tilt))
    exponent = piece.log_p + tilt * piece.loss - top
    compiled = compile_arb(exponent, [x])
    ends = [end_ball(piece.lower), end_ball(piece.upper)]
    cuts, tails = cut_tails(exponent, _Exponential(compiled), x, ends, arb(2) ** (-3 * _ACCURACY))
    return cuts, tails, top


def _shared_cuts(
    piece: Piece, x: sp.Symbol, tilt: sp.Rational, height: arb, power: int, centre: arb
) -> tuple[list[arb], arb] | None:
    """Cut where two whole tilts around t allow it; None where that does not do.

    With k ≤ t − 1 and t + 1 ≤ l, e^{sℓ} ≤ e^{kℓ} + e^{lℓ} for s = t and for s = t ± 1, and
    |u|^d ≤ d!(e^u + e^{−u}), so that few searches serve all tilts and moments.
    """
    around = (sp.floor(tilt) - 1, sp.ceiling(tilt) + 1)
    try:
        found = [_whole_tilt(piece, x, whole) for whole in around]
    except AccuracyError:  # beyond the domain of K
        return None
    bound = sum((tails * (top - height).exp() for _, tails, top in found), arb(0))
    if power:
        bound = bound * math.factorial(power) * (centre.exp() + (-centre).exp())
    if not bound < arb(2) ** -_ACCURACY:
        return None
    (low, high), (other_low, other_high) = (cuts for cuts, _, _ in found)
    return [low.min(other_low), high.max(other_high)], bound.upper()


def _cuts(
    piece: Piece,
    exponent: sp.Expr,
    x: sp.Symbol,
    ends: list[arb | None],
    power: int,
    centre: arb,
    tolerance: arb,
) -> tuple[list[arb], arb]:
    """Return finite ends and a bound of what ∫|ℓ − c|^power e^g has beyond them.

    |u|^d ≤ (d!/η^d)(e^{ηu} + e^{−ηu}) turns the moment into two exponential tails.
    """
    if None not in ends:
        return [end for end in ends if end is not None], arb(0)
    steps = (sp.Rational(1, 2), sp.Rational(1, 32), sp.Rational(1, 1024)) if power else (sp.S.Zero,)
    for index, eta in enumerate(steps):
        cuts: list[list[arb]] = []
        bound = arb(0)
        try:
            for sign in (1, -1) if power else (1,):
                tilted = exponent + sign * eta * piece.loss
                compiled = compile_arb(tilted, [x])
                own, tails = cut_tails(tilted, _Exponential(compiled), x, ends, tolerance)
                cuts.append(own)
                shift = (-sign * real_ball(eta) * centre).exp() if power else arb(1)
                bound += shift * tails
        except AccuracyError:
            if index == len(steps) - 1:
                raise
            continue
        factor = math.factorial(power) / real_ball(eta) ** power if power else arb(1)
        low = min((own[0].mid() for own in cuts), key=float)
        high = max((own[1].mid() for own in cuts), key=float)
        kept = [low if ends[0] is None else ends[0], high if ends[1] is None else ends[1]]
        return kept, bound * factor
    raise AccuracyError("no proved bound for the tail of a tilted moment was found")
