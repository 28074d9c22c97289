"""φ(u) = E_Q e^{−uW} of one step's likelihood ratio W = P/Q, in balls: its nodes and its decay.

As a loss under Q, −W has the moment generating function φ, so that nodes, cuts and integration by
parts are those of any loss at a tilt c > 0.
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp
from flint import acb, arb, ctx, fmpz_mat

from symdp.balls.cuts import cut_tails
from symdp.balls.variation import LossDensity, LossPart
from symdp.certify.nodes import CHAIN, Scope, nodes_between
from symdp.certify.parts import Parts
from symdp.certify.piece_integrand import stretch
from symdp.derive.pieces import pieces
from symdp.derive.records import TURNED, Piece
from symdp.emit.arb import compile_arb
from symdp.emit.exact import real_ball
from symdp.errors import AccuracyError
from symdp.prove.work import spend_products

if TYPE_CHECKING:
    from symdp.balls.variation import Bound
    from symdp.certify.nodes import Nodes
    from symdp.law.step import Array
    from symdp.model.pair import Pair

_ORDERS = (1, 2, 3, 4, 6, 8, 11, 14)  # of integration by parts
_HALVINGS = 12  # in search of a frequency or a tilt, to one in four thousand
_FARTHEST = 2.0**60  # of a frequency
_MOST_DOUBLINGS = 60  # of a tilt in search of the saddle point
_MOST_KEPT = 4  # tilts whose values and bounds are kept
_SPARE_BITS = 64  # carried beyond those that are asked
_MORE = 8  # one in eight more values than asked, for close questions
_CHEAPER = 8  # a product within matrices than one of balls
_DECAY_BITS = 128  # of a bound of |φ|, far more than it shows
_TILT_BITS = 5  # of a tilt


def rounded_up(value: float, bits: int) -> float:
    """Return a number of few bits at or above a value, so that close questions share what it says.

    >>> rounded_up(10.1, 4)
    11.0
    """
    unit = 2.0 ** (math.frexp(value)[1] - bits)
    return math.ceil(value / unit) * unit


def short(tilt: float) -> sp.Rational:
    """Return a tilt of few bits, at or above the one given."""
    return sp.Rational(rounded_up(tilt, _TILT_BITS))


class _RatioParts(Parts):
    """The parts of a step whose law is Q and whose "loss" is −W."""

    def __init__(self, pair: Pair) -> None:
        if pair.support.kind != "interval":
            raise AccuracyError("the likelihood ratio has atoms only: its transform never falls")
        own = [piece for piece in pieces(pair) if piece.log_q is not None]
        self._of(pair, (), tuple(stretch(_of_ratio(piece), pair.variable) for piece in own))

    def reach(self, tilt: sp.Rational) -> sp.Rational:
        """Return 0: e^{−cW} is at most 1, so that tails of Q bound those at every tilt c > 0."""
        return sp.S.Zero

    def weighed_ratios(self, tilt: sp.Rational) -> tuple[Array, Array]:
        """Return about the weights e^{−cW} Q and the ratios W of nodes, which prove nothing."""
        _, nodes = self._coarse(tilt)
        weights = np.array([float(w.mid()) for w in nodes.weights])
        return weights, np.array([-float(x.mid()) for x in nodes.losses])


class _RatioDensity(LossPart):
    """The density of W on a piece under e^{−cW} Q/φ(c), whose tails are those of Q over φ(c)."""

    def __init__(self, piece: Piece, x: sp.Symbol, tilt: sp.Rational, log_moment: arb) -> None:
        super().__init__(piece, x, tilt, log_moment)
        assert piece.log_p is not None
        self._own = piece.log_p
        self._own_ball = compile_arb(piece.log_p, [x])

    def cut(self, tolerance: arb) -> tuple[list[arb], arb]:
        """Return finite ends, and a bound of the mass beyond them."""

        def magnitude(x: arb) -> arb:
            return arb((self._own_ball(x) - self.log_moment).exp())

        return cut_tails(self._own, magnitude, self.x, list(self.ends), tolerance)


def _of_ratio(piece: Piece) -> Piece:
    """Return a piece with the law Q and the loss −W, which is 0 where P is."""
    log_q, low, high = piece.log_q, piece.lower, piece.upper
    assert log_q is not None
    if piece.log_p is None:
        return Piece(low, high, log_q, log_q, sp.S.Zero, "constant")
    minus_ratio = -sp.exp(piece.loss)
    # The second law has to be there, and is not used: Q e^{W}.
    return Piece(low, high, log_q, log_q - minus_ratio, minus_ratio, TURNED[piece.slope])


class RatioTransform:
    """φ of one step.

    Parameters
    ----------
    pair
        P with the record, Q without; all parameters bound.

    Raises
    ------
    AccuracyError
        If W has atoms only.
    """

    def __init__(self, pair: Pair) -> None:
        self._parts = _RatioParts(pair)
        self._decays: dict[sp.Rational, RatioDecay] = {}
        self._values: list[tuple[tuple[sp.Rational, str], int, list[acb]]] = []

    def log_at(self, tilt: sp.Rational) -> arb:
        """Enclose log φ(c), to about fifteen digits."""
        return self._parts.cgf(tilt)

    def values(self, tilt: sp.Rational, spacing: arb, number: int, bits: int) -> list[acb]:
        """Return φ(c + iv) e^{−scale} at v = 0, h, …, (number)h, to about 2^(−bits).

        The scale is the middle of `log_at`. Close questions share them.
        """
        key = (tilt, spacing.str(30, radius=False))
        for own, fine, values in self._values:
            if own == key and fine >= bits and len(values) > number:
                return values
        number += number // _MORE
        with ctx.workprec(bits + _SPARE_BITS):
            reach = float((number + 2) * spacing)
            scale = self.log_at(tilt).mid()
            nodes = self._parts.nodes(tilt, scale, arb(2) ** -bits, Scope(reach))
            spend_products(number * len(nodes.losses) / _CHEAPER)
            values = _on_grid(nodes, spacing, number + 1)
        self._values = [*self._values[1 - _MOST_KEPT :], (key, bits, values)]
        return values

    def decay(self, tilt: sp.Rational) -> RatioDecay:
        """Return the bounds of |φ| at a tilt, which are kept."""
        if tilt not in self._decays:
            if len(self._decays) >= _MOST_KEPT:
                self._decays.clear()
            self._decays[tilt] = RatioDecay(self._parts, tilt)
        return self._decays[tilt]

    def saddle(self, steps: int, level: float, least: float) -> float:
        """Return about where e^{cK} φ(c)^t/c² is least, or a least c; it proves nothing."""
        low = high = least
        weights, ratios = self._parts.weighed_ratios(short(high))
        start = float(short(high))

        def rises(c: float) -> bool:
            tilted = weights * np.exp((start - c) * ratios)
            return level - steps * float(tilted @ ratios / tilted.sum()) > 2.0 / c

        for _ in range(_MOST_DOUBLINGS):
            if rises(high):
                break
            low, high = high, 2.0 * high
            weights, ratios = self._parts.weighed_ratios(short(high))
            start = float(short(high))
        for _ in range(_HALVINGS if high > low else 0):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if rises(middle) else (middle, high)
        return high


class RatioDecay:
    """Bounds of |φ(c + iv)|/φ(c) for all v from one on."""

    def __init__(self, parts: Parts, tilt: sp.Rational) -> None:
        with ctx.workprec(_DECAY_BITS):
            log_moment = parts.cgf(tilt)
            scale, c = log_moment.mid(), real_ball(tilt)
            self._flat = arb(0)
            moving = []
            for part in parts.stretches:
                if not part.is_flat:
                    moving.append(_RatioDensity(part.piece, part.x, tilt, log_moment))
                    continue
                cut = part.cut(parts.reach(tilt), _DECAY_BITS)
                found = nodes_between(part, cut, c, scale, tolerance=arb(2) ** -_DECAY_BITS)
                mass = found.total() * (scale - log_moment).exp()
                self._flat += mass + cut.beyond * (-log_moment).exp()
            self._density = LossDensity.of(moving)
        self._bounds: dict[int, Bound | None] = {}

    def reach(self, steps: int, log_level: float) -> tuple[float, arb]:
        """Return V and B^t/(πV), which is at most about e^{log_level}.

        Raises
        ------
        AccuracyError
            If there is none, as where atoms of W keep φ from falling.
        """
        found: tuple[float, arb] | None = None
        for order in _ORDERS:
            bound = self._bound(order)
            high = found[0] if found else 1.0
            if bound is None or (found and not _log(self._share(bound, steps, high)) < log_level):
                break
            low = 0.0
            while high < _FARTHEST and not _log(self._share(bound, steps, high)) < log_level:
                low, high = high, 2.0 * high
            if high >= _FARTHEST:
                continue
            for _ in range(_HALVINGS):
                middle = 0.5 * (low + high)
                is_far = _log(self._share(bound, steps, middle)) < log_level
                low, high = (low, middle) if is_far else (middle, high)
            found = high, self._share(bound, steps, high)
        if found is None:
            raise AccuracyError(
                "atoms of the likelihood ratio keep its transform from falling far enough to "
                "certify so many digits; ask for fewer digits, or more steps"
            )
        return found

    def _share(self, bound: Bound, steps: int, v: float) -> arb:
        with ctx.workprec(_DECAY_BITS):
            size = (bound.at(arb(v)) + self._flat).min(arb(1))
            return arb((size**steps / (arb.pi() * v)).upper())

    def _bound(self, order: int) -> Bound | None:
        """Return the bound by so many integrations by parts, None where they are not allowed."""
        if order not in self._bounds:
            try:
                self._bounds[order] = self._density.bound(order)
            except AccuracyError:
                self._bounds[order] = None
        return self._bounds[order]


def _on_grid(nodes: Nodes, spacing: arb, count: int) -> list[acb]:
    """Return the transform at so many multiples of a spacing: one product of two matrices."""
    error = arb(0, nodes.error)
    size = math.isqrt(count - 1) + 1
    turns = [(acb(0, spacing) * loss).exp() for loss in nodes.losses]
    columns, last = [[acb(1)] * len(turns)], [acb(1)] * len(turns)
    for k in range(1, size):
        # Each product adds a rounding: chains of them are short.
        last = [one**k for one in turns] if k % CHAIN == 0 else _times(last, turns)
        columns.append(last)
    leap = [one**size for one in turns]
    rows, last = [], [acb(weight) for weight in nodes.weights]
    for k in range(math.ceil(count / size)):
        if k:
            weighed = zip(nodes.weights, leap, strict=True)
            last = [w * one**k for w, one in weighed] if k % CHAIN == 0 else _times(last, leap)
        rows.append(last)
    return [value + acb(error, error) for value in _products(rows, columns)[:count]]


def _products(rows: list[list[acb]], columns: list[list[acb]]) -> list[acb]:
    """Return Σ a_i b_i of every row with every column, by exact products of fixed-point numbers.

    With ã and b̃ off by α and β at most and |b| ≤ 1, each is off by M α(1 + β) + β Σ|a|.
    """
    bits = ctx.prec
    (a, a_i, alpha), (b, b_i, beta) = _fixed_point(rows, bits), _fixed_point(columns, bits)
    b, b_i = b.transpose(), b_i.transpose()
    mixed = (a + a_i) * (b + b_i)
    real, imaginary = a * b, a_i * b_i
    unit = arb(2) ** (-2 * bits)
    size = sum((abs(value) for value in rows[0]), arb(0)) + len(rows[0]) * alpha
    error = arb(0, (len(rows[0]) * alpha * (1 + beta) + beta * size).upper())
    return [
        acb((x - y) * unit + error, (z - x - y) * unit + error)
        for x, y, z in zip(real.entries(), imaginary.entries(), mixed.entries(), strict=True)
    ]


def _fixed_point(rows: list[list[acb]], bits: int) -> tuple[fmpz_mat, fmpz_mat, arb]:
    """Return numbers of modulus up to 1 as multiples of 2^(−bits), and the largest error."""
    # Each part is off by a rounding of the product and by the floor, one unit each.
    scale, rounded_off = arb(2) ** bits, arb(2) ** (2 - bits)
    parts = [
        fmpz_mat([[(part(z) * scale).mid().floor().unique_fmpz() for z in row] for row in rows])
        for part in (attrgetter("real"), attrgetter("imag"))
    ]
    radius = max((z.rad() for row in rows for z in row), key=float)
    return parts[0], parts[1], arb((radius + rounded_off).upper())


def _times(one: list[acb], other: list[acb]) -> list[acb]:
    return [a * b for a, b in zip(one, other, strict=True)]


def _log(size: arb) -> float:
    return float(size.log().mid()) if size > 0 else -math.inf


@lru_cache(maxsize=16)
def ratio_transform(pair: Pair) -> RatioTransform:
    """Return the transform of a step, whose nodes and bounds are kept."""
    return RatioTransform(pair)
