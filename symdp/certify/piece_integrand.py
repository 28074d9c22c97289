"""One step's integrand e^{b + wℓ} on a piece of the support, between cuts that serve every tilt.

The tails are cut once at the tilts 0 and l: for every s between them e^{sℓ} ≤ 1 + e^{lℓ}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import acb, arb, ctx

from symdp.balls.cuts import cut_tails
from symdp.balls.variation import log_slope, marks
from symdp.emit.arb import compile_arb, compile_arb_together, constant_ball
from symdp.emit.exact import end_ball, real_ball
from symdp.errors import AccuracyError
from symdp.prove.work import spend

if TYPE_CHECKING:
    from symdp.derive.records import Piece
    from symdp.emit.arb import ArbFunction

_MOST_TERMS = 200_000  # of a sum over integers: seconds in balls
_CLOSEST_PEAK = 200  # −log₂ of how near an end a peak is looked for, as a share of a piece
_MOST_TILT = 2**20  # beyond which e^{tℓ} leaves one point of the range
_FINE = 1400  # bits that tell an end from what lies 2^(−1024) inside it
_ROUGH = 0.5  # of a logarithm
_NEAR_BITS = 64  # around an end in which ℓ must be holomorphic


@dataclass(frozen=True)
class Cut:
    """Finite ends of a piece, and a bound of ∫ (1 + e^{lℓ}) dP beyond them."""

    lower: arb
    upper: arb
    beyond: arb


class Part:
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
        self._both = compile_arb_together([base, piece.loss], [x])
        self._cuts: dict[tuple[sp.Rational, int], Cut] = {}
        with ctx.workprec(256):
            self.ends = [end_ball(end) for end in (piece.lower, piece.upper)]

    @property
    def is_flat(self) -> bool:
        """Whether the loss has one value on it."""
        return self.piece.slope == "constant"

    def logarithms(self, place: Any, *, analytic: bool = False) -> tuple[Any, Any]:
        """Return b and ℓ at a real or complex place."""
        base, loss = self._both(place, analytic=analytic)
        return base, loss

    def terms(self, place: Any, tilt: Any) -> tuple[Any, Any]:
        """Return b + wℓ, the logarithm of e^{tℓ}P, and ℓ at a real or complex place."""
        spend(1.0)
        base, loss = self._both(place)
        return base + (tilt + self.shift) * loss, loss

    def exponent(self, place: Any, tilt: Any) -> Any:
        """Return b + wℓ."""
        return self.terms(place, tilt)[0]

    def values(self, place: Any, tilt: Any, fine: float) -> tuple[Any, Any]:
        """Return b + wℓ, and ℓ as fine as asked, over a ball, maybe by the mean value theorem.

        What the parts of a sum have in common widens its ball far more than the sum changes there.
        """
        exponent, loss = self.terms(place, tilt)
        rough = exponent.real.rad() > _ROUGH, loss.imag.rad() > fine
        if not any(rough) or not self.is_analytic(place):
            return exponent, loss
        spend(3.0)
        middle = acb(place.real.mid(), place.imag.mid())
        away = (place.real.rad() + place.imag.rad()).upper()
        if rough[0]:
            slope = abs(self._exponent_slope(place, tilt + self.shift))
            exponent = _moved(self.exponent(middle, tilt), slope * away, exponent)
        if rough[1]:
            slope = self.log_slope(place).real.exp()
            loss = _moved(self.loss(middle), slope * away, loss)
        return exponent, loss

    def is_analytic(self, place: Any) -> bool:
        """Whether log-density and loss are known to be holomorphic on a ball."""
        return all(value.is_finite() for value in self.logarithms(place, analytic=True))

    @cached_property
    def _exponent_slope(self) -> ArbFunction:
        weight = sp.Dummy("w")
        exponent = self._base_expression + weight * self.piece.loss
        return compile_arb(sp.diff(exponent, self.x), [self.x, weight])

    @cached_property
    def log_slope(self) -> ArbFunction:
        """Return log|ℓ′| as a function of balls."""
        return compile_arb(log_slope(self.piece, self.x), [self.x])

    def height(self, place: arb, tilt: arb, scale: arb) -> arb:
        """Bound e^{tℓ − scale}P over a ball."""
        return arb((self.exponent(place, tilt) - scale).exp().upper())

    def peak(self, cut: Cut, tilt: arb) -> float:
        """Return about the largest value of b + wℓ between the cuts; it proves nothing."""

        def height(place: arb) -> float:
            value = float(self.exponent(place, tilt).mid())
            return value if math.isfinite(value) else -math.inf

        low, high = cut.lower.mid(), cut.upper.mid()
        width = high - low
        close = [width * arb(2) ** -k for k in range(6, _CLOSEST_PEAK, 2)]
        places = [
            *marks(low, high),
            *(low + d for d in close if self.ends[0] is not None),
            *(high - d for d in close if self.ends[1] is not None),
        ]
        best = max((place.mid() for place in places if low < place < high), key=height)
        top, stride = height(best), width / 32
        for _ in range(40):
            beside = [x.mid() for x in (best - stride, best + stride) if low < x < high]
            sizes = [height(x) for x in beside]
            if max(sizes, default=-math.inf) > top:
                top, best = max(zip(sizes, beside, strict=True), key=itemgetter(0))
            elif min(sizes, default=top) > top - 1.0:
                break
            else:
                stride = stride / 2
        return top

    def cut(self, top: sp.Rational, bits: int) -> Cut:
        """Return ends beyond which the masses at the tilts 0 and `top` are below 2^(−bits)."""
        key = (top, bits)
        if key not in self._cuts:
            ends = [
                None if end is None else constant_ball(exact, 2 * bits).real
                for end, exact in zip(self.ends, (self.piece.lower, self.piece.upper), strict=True)
            ]
            beyond = arb(0)
            if None in ends:
                low, high = (self._one_cut(tilt, bits) for tilt in (sp.S.Zero, top))
                if ends[0] is None:
                    ends[0] = low.lower if bool(low.lower < high.lower) else high.lower
                if ends[1] is None:
                    ends[1] = low.upper if bool(low.upper > high.upper) else high.upper
                beyond = low.beyond + high.beyond
            for side in (0, 1):
                if self.ends[side] is not None and not self.is_regular(ends[side]):
                    ends[side], mass = self._inside(side, ends, top, bits)
                    beyond += mass
            assert ends[0] is not None
            assert ends[1] is not None
            self._cuts[key] = Cut(ends[0], ends[1], arb(beyond.upper()))
        return self._cuts[key]

    def is_regular(self, end: Any) -> bool:
        """Whether log-density and loss are holomorphic around an end."""
        near = arb(0, 1) * arb(2) ** -_NEAR_BITS * (1 + abs(end.mid()))
        return self.x.is_integer or self.is_analytic(acb(end + near, near))

    def spare(self, lower: arb, upper: arb) -> int:
        """Return how many bits it takes to tell two places from singular ends that are not 0."""
        bits = 0
        for end, place in zip(self.ends, (lower, upper), strict=True):
            if end is not None and not self.is_regular(end) and abs(end) > 0:
                with ctx.workprec(_FINE):
                    gap = abs(place.mid() - end.mid()) / abs(end)
                    bits = max(bits, -math.floor(float(gap.log().mid()) / math.log(2)))
        return bits

    def _inside(
        self, side: int, ends: list[arb | None], top: sp.Rational, bits: int
    ) -> tuple[arb, arb]:
        """Return a place inside a singular end, and a bound of the masses between the two.

        With x = end ± 1/v the mass up to the end is a tail in v, where shells bound it.
        """
        exact = self.piece.lower if side == 0 else self.piece.upper
        end = constant_ball(exact, _FINE).real
        other = ends[1 - side]
        inwards = 1 if side == 0 else -1
        begin = arb(1)
        if other is not None:
            begin = begin.max(4 / abs(other - end).lower())
        v = sp.Symbol("v", positive=True)
        farthest, total = arb(0), arb(0)
        # Precise enough to tell the end from what lies 2^(−1024) inside it.
        with ctx.workprec(_FINE):
            for tilt in (sp.S.Zero, top):
                exponent = self._base_expression + (tilt + self.shift) * self.piece.loss
                weight = real_ball(tilt + self.shift)

                def magnitude(at: arb, weight: arb = weight) -> arb:
                    spend(1.0)
                    base, loss = self.logarithms(end + inwards / at)
                    return arb((base + weight * loss).exp() / at**2)

                (_, place), mass = cut_tails(
                    exponent.subs(self.x, exact + inwards / v) - 2 * sp.log(v),
                    magnitude, v, [begin.upper(), None], arb(2) ** -bits,
                )  # fmt: skip
                farthest, total = farthest.max(place), total + mass
            reach = (1 / farthest).mid()
            while not reach * farthest <= 1:
                reach = reach / 2
            return end + inwards * reach, arb(total.upper())

    @lru_cache(maxsize=64)  # noqa: B019  (stretches are few and live as long as their cuts)
    def _one_cut(self, tilt: sp.Rational, bits: int) -> Cut:
        exponent = self._base_expression + (tilt + self.shift) * self.piece.loss
        weight = real_ball(tilt + self.shift)

        def magnitude(place: arb) -> arb:
            spend(2.0)
            base, loss = self.logarithms(place)
            return arb((base + weight * loss).exp())

        with ctx.workprec(64):
            tolerance = arb(2) ** -bits
            (low, high), beyond = cut_tails(
                exponent, magnitude, self.x, self.ends, tolerance, whole=bool(self.x.is_integer)
            )
        return Cut(low, high, beyond)


def _moved(middle: acb, away: arb, known: acb) -> acb:
    """Return the ball around a middle, unless it is no smaller than what is known."""
    size = away.upper()
    return middle + acb(arb(0, size), arb(0, size)) if size < known.real.rad() else known


@lru_cache(maxsize=256)
def stretch(piece: Piece, x: sp.Symbol) -> Part:
    """Return the stretch of a piece, whose cuts are kept."""
    return Part(piece, x)


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
