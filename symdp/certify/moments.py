"""One step's integrand e^{b + wℓ} between cuts that serve every tilt, and its real moments.

The tails are cut once at the tilts −1 and l: for every s between them e^{sℓ} ≤ e^{−ℓ} + e^{lℓ}, and
|u|^d ≤ (d!/η^d)(e^{ηu} + e^{−ηu}) does the same for moments at tilts η inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import acb, arb, ctx

from symdp.emit.arb import compile_arb, constant_ball
from symdp.emit.enclose import find_cut
from symdp.errors import AccuracyError
from symdp.truth.cuts import cut_tails

if TYPE_CHECKING:
    from symdp.derive.records import Piece
    from symdp.emit.arb import ArbFunction

_EVALUATIONS = 200_000
_MOST_TERMS = 200_000
_MOST_TILT = 2**20


@dataclass(frozen=True)
class Cut:
    """Finite ends of a piece, and a bound of ∫ (e^{−ℓ} + e^{lℓ}) dP beyond them."""

    lower: arb
    upper: arb
    beyond: arb


class Stretch:
    """A piece of the support on which both densities live."""

    def __init__(self, piece: Piece, x: sp.Symbol) -> None:
        assert piece.log_p is not None
        assert piece.log_q is not None
        self.piece, self.x = piece, x
        base, self.shift = piece.log_p, 0
        if sp.count_ops(piece.log_q) < sp.count_ops(piece.log_p):
            base, self.shift = piece.log_q, 1
        self._base_expression = base
        self.base: ArbFunction = compile_arb(base, [x])
        self.loss: ArbFunction = compile_arb(piece.loss, [x])
        weight = sp.Dummy("w")
        self._exponent: ArbFunction = compile_arb(base + weight * piece.loss, [x, weight])
        self._cuts: dict[tuple[sp.Rational, int], Cut] = {}
        with ctx.workprec(256):
            self._ends = [
                None if end.is_infinite else constant_ball(end, ctx.prec).real
                for end in (piece.lower, piece.upper)
            ]

    def cut(self, top: sp.Rational, bits: int) -> Cut:
        """Return ends beyond which the masses at the tilts −1 and `top` are below 2^(−bits)."""
        key = (top, bits)
        if key not in self._cuts:
            if None not in self._ends:
                ends = [
                    constant_ball(end, 2 * bits).real
                    for end in (self.piece.lower, self.piece.upper)
                ]
                self._cuts[key] = Cut(ends[0], ends[1], arb(0))
            else:
                low, high = (self._one_cut(tilt, bits) for tilt in (sp.S.NegativeOne, top))
                self._cuts[key] = Cut(
                    low.lower if bool(low.lower < high.lower) else high.lower,
                    low.upper if bool(low.upper > high.upper) else high.upper,
                    arb((low.beyond + high.beyond).upper()),
                )
        return self._cuts[key]

    @lru_cache(maxsize=64)  # noqa: B019  (stretches are few and live as long as their cuts)
    def _one_cut(self, tilt: sp.Rational, bits: int) -> Cut:
        exponent = self._base_expression + (tilt + self.shift) * self.piece.loss
        weight = constant_ball(tilt + self.shift, ctx.prec).real

        def magnitude(place: arb) -> arb:
            return arb((self.base(place) + weight * self.loss(place)).exp())

        with ctx.workprec(64):
            tolerance = arb(2) ** -bits
            if self.x.is_integer:
                (low, high), beyond = _cut_sum(magnitude, self._ends, tolerance)
            else:
                (low, high), beyond = cut_tails(exponent, magnitude, self.x, self._ends, tolerance)
        return Cut(low, high, beyond)

    def integral(
        self,
        z: acb,
        scale: arb,
        cut: Cut,
        tolerance: arb,
        power: int = 0,
        centre: arb | None = None,
    ) -> acb:
        """Enclose ∫ |ℓ − c|^d e^{b + wℓ − scale} between the cuts; signed for the first power."""
        weight = z + self.shift

        def integrand(x: Any, analytic: bool = False) -> Any:
            value = (self._exponent(x, weight, analytic=analytic) - scale).exp()
            if power:
                loss = self.loss(x, analytic=analytic)
                distance = loss - centre
                if power % 2 and power > 1:
                    distance = distance.real_abs(analytic=analytic)
                value = value * distance**power
            return value

        if self.x.is_integer:
            first, last = whole_ends(cut)
            return sum((integrand(acb(k)) for k in range(first, last + 1)), acb(0))
        return acb.integral(
            integrand,
            acb(cut.lower),
            acb(cut.upper),
            abs_tol=tolerance,
            rel_tol=tolerance,
            eval_limit=_EVALUATIONS,
        )


@lru_cache(maxsize=256)
def stretch(piece: Piece, x: sp.Symbol) -> Stretch:
    """Return the stretch of a piece, whose cuts are kept."""
    return Stretch(piece, x)


def top_tilt(tilt: sp.Rational) -> sp.Integer:
    """Return a power of two at least one unit above a tilt."""
    if tilt > _MOST_TILT:
        raise AccuracyError("ε lies at the end of the range of the loss, out of every tilt's reach")
    return sp.Integer(2 ** math.ceil(math.log2(float(tilt) + 1.0) + 1e-9))


def whole_ends(cut: Cut) -> tuple[int, int]:
    """Return the first and the last integer of a piece of the integers."""
    first, last = cut.lower.unique_fmpz(), cut.upper.unique_fmpz()
    if first is None or last is None:
        raise AccuracyError("a limit of a sum over the integers is not exact")
    if int(last) - int(first) > _MOST_TERMS:
        raise AccuracyError("a sum over the integers has too many terms to be certified")
    return int(first), int(last)


def _cut_sum(magnitude: Any, ends: list[arb | None], tolerance: arb) -> tuple[list[arb], arb]:
    """Return whole ends and a bound of the terms beyond them."""
    cuts = [arb(0) if end is None else end for end in ends]
    total = arb(0)
    for side, direction in ((0, -1), (1, 1)):
        if ends[side] is None:
            other = ends[1 - side]
            begin = arb(1) if other is None else (abs(other) + 1).ceil()
            cut, tail = find_cut(magnitude, begin, direction, tolerance, per_integer=True)
            cuts[side] = direction * cut
            total += tail
    return cuts, arb(total.upper())
