"""Losses and densities of many steps on the panels of one quadrature, and whether these serve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.law.formula import PieceRows
from symdp.law.mean import CANCELLED, WHOLE_MEAN, split_panels
from symdp.law.panels import LARGE_LOSS, ORDER, Index, bounded
from symdp.law.step import Array, Extended, SmoothPiece

_ROUNDING = 2.3e-16  # of a double

Rows = slice | Index
Values = NDArray[Any]  # of doubles or of 64-bit mantissas


class Rule:
    """Gauss–Legendre nodes on the panels of one piece, and on their halves."""

    def __init__(self, piece: SmoothPiece, lower: Array, upper: Array) -> None:
        self.piece, self.lower, self.upper = piece, lower, upper
        self.x, self.weight = split_panels(piece, lower, upper, 2)
        self.whole_x, self.whole_weight = split_panels(piece, lower, upper, 1)

    def joined(self) -> NDArray[np.bool_]:
        """Return whether each half panel ends where the next one of the piece begins."""
        if self.piece.flat or not self.lower.size:
            return np.empty(0, dtype=bool)
        follows = np.append(self.upper[:-1] == self.lower[1:], False)
        return np.stack([np.ones(follows.size, dtype=bool), follows], axis=1).ravel()

    def values(self, functions: PieceRows, rows: Rows, is_precise: bool) -> PieceValues:
        """Return values on panels and on their halves, with 64-bit mantissas or not."""
        if not is_precise:
            doubles = functions.doubles(rows, self.whole_x.astype(np.float64))
            weight = np.log(self.whole_weight).astype(np.float64)
            return replace(self.halves(functions, rows), whole=_Seen.of(*doubles, weight))
        log_p, loss = functions.extended(rows, self.x)
        whole = functions.extended(rows, self.whole_x)
        plain = functions.doubles(rows, self.x.astype(np.float64))
        with np.errstate(invalid="ignore"):
            off, off_loss = (
                np.nan_to_num(np.abs(x - y).astype(np.float64), posinf=0.0)
                for x, y in zip(plain, (log_p, loss), strict=True)
            )
        halves = _Seen.of(log_p, loss, np.log(self.weight))
        return PieceValues(self, halves, _Seen.of(*whole, np.log(self.whole_weight)), off, off_loss)

    def halves(self, functions: PieceRows, rows: Rows) -> PieceValues:
        """Return values on the halves of panels in doubles."""
        log_p, loss = functions.doubles(rows, self.x.astype(np.float64))
        return PieceValues(self, _Seen.of(log_p, loss, np.log(self.weight).astype(np.float64)))


@dataclass(frozen=True)
class _Seen:
    """Losses and logs of density times weight, rows by nodes; −inf where there is no density."""

    loss: Values
    log_mass: Values

    @classmethod
    def of(cls, log_p: Values, loss: Values, log_weight: Values) -> _Seen:
        """Return the losses that a density goes with."""
        seen = np.isfinite(log_p) & np.isfinite(loss)
        if seen.all():
            return cls(loss, log_p + log_weight)
        return cls(np.where(seen, loss, 0.0), np.where(seen, log_p + log_weight, -np.inf))


@dataclass(frozen=True)
class PieceValues:
    """Values on one piece: on halves of panels, on panels, and how far doubles are off."""

    rule: Rule
    halves: _Seen
    whole: _Seen | None = None
    off: Array | None = None
    off_loss: Array | None = None

    @property
    def loss(self) -> Values:
        """The losses at the nodes of the halves."""
        return self.halves.loss

    @property
    def log_mass(self) -> Values:
        """The logs of density times weight there."""
        return self.halves.log_mass

    @property
    def flat(self) -> bool:
        """Whether the loss is one atom."""
        return self.rule.piece.flat

    def as_atom(self) -> PieceValues:
        """Return the one loss of a flat piece with its mass."""
        top = self.log_mass.max(axis=1, keepdims=True)
        total = top + np.log(np.exp(self.log_mass - top).sum(axis=1, keepdims=True))
        loss = np.take_along_axis(self.loss, self.log_mass.argmax(axis=1)[:, None], axis=1)
        return PieceValues(self.rule, _Seen(loss, total))

    def beyond(self) -> Array:
        """Return about ∫ P|ℓ| and ∫ Pℓ² beyond the first and the last panel, and under Q."""
        total = np.zeros((self.loss.shape[0], 2, 2))
        rule, x = self.rule, self.rule.x.astype(np.float64)
        if self.flat or not x.size or self.off is None:
            return total
        sides = (
            (0, ORDER - 1, rule.lower[0] - rule.piece.lower),
            (-1, -ORDER, rule.piece.upper - rule.upper[-1]),
        )
        log_weight = np.log(rule.weight.astype(np.float64))
        for outer, inner, room in sides:
            if not room > 0:
                continue
            for side in (0, 1):
                log_p = (self.log_mass - side * self.loss).astype(np.float64) - log_weight
                with np.errstate(invalid="ignore"):
                    fall = np.nan_to_num(log_p[:, inner] - log_p[:, outer])
                length = abs(x[outer] - x[inner]) / np.maximum(0.5, fall)
                size = np.abs(self.loss[:, outer]).astype(np.float64)
                first = np.exp(np.minimum(log_p[:, outer], 700.0)) * np.minimum(room, length) * size
                total[:, side, 0] += first
                total[:, side, 1] += first * size
        return total


def _mean(pieces: Sequence[PieceValues], reverse: bool) -> Extended:
    """Return E L of every row, NaN where it is not known beyond doubles."""
    rows = pieces[0].loss.shape[0]
    unknown = np.full(rows, np.longdouble(math.nan))
    if any(piece.off is None for piece in pieces):
        return unknown
    found = []
    for name in ("whole", "halves"):
        mass, first, size = (np.zeros(rows, dtype=np.longdouble) for _ in range(3))
        for piece in pieces:
            values = getattr(piece, name)
            share = np.exp(values.log_mass - values.loss if reverse else values.log_mass)
            mass += share.sum(axis=1)
            first += (share * values.loss).sum(axis=1)
            size += (share * np.abs(values.loss)).sum(axis=1)
        found.append((-first if reverse else first) / mass)
    good = np.abs(found[1] - found[0]) <= WHOLE_MEAN * size / mass
    return np.where(good, found[1], unknown)


def disagreement(pieces: Sequence[PieceValues], tilts: Sequence[float], frequency: float) -> Array:
    """Return, for every row, how far apart panels and halves are beyond rounding, relative.

    Raises
    ------
    AccuracyError
        If doubles and 64-bit mantissas are so far apart that both may have cancelled.
    """
    worst = np.zeros(pieces[0].loss.shape[0])
    pieces = [piece for piece in pieces if piece.loss.size]
    tests = [_Tests(piece, 0.0 if piece.flat else frequency) for piece in pieces]
    for tilt in tilts:
        exponents = [(p.log_mass + tilt * p.loss).astype(np.float64) for p in pieces]
        top = np.max([e.max(axis=1) for e in exponents], axis=0)[:, None]
        mass, apart, off, off_loss, size = (np.zeros(worst.size) for _ in range(5))
        for piece, test, exponent in zip(pieces, tests, exponents, strict=True):
            values = np.exp(exponent - top)
            mass += values.sum(axis=1)
            apart += test.apart(values, exponent, top, tilt)
            if piece.off is not None and piece.off_loss is not None:
                off += (values * piece.off).sum(axis=1)
                off_loss += (values * piece.off_loss).sum(axis=1)
                size += (values * np.abs(test.loss)).sum(axis=1)
        if not ((off <= CANCELLED * mass) & (off_loss <= CANCELLED * size)).all():
            raise AccuracyError("the density or loss of a step cancels in doubles")
        worst = np.maximum(worst, apart / mass)
    return worst


class _Tests:
    """The functions of the loss that panels must integrate: 1, about ℓ, and oscillations."""

    def __init__(self, piece: PieceValues, frequency: float) -> None:
        assert piece.whole is not None
        self._piece, self._frequency, self._whole = piece, frequency, piece.whole
        self.loss = piece.loss.astype(np.float64)
        whole_loss = piece.whole.loss.astype(np.float64)
        self._size = np.minimum(np.abs(self.loss), LARGE_LOSS)
        self._functions: list[tuple[Array, Array]] = [(bounded(self.loss), bounded(whole_loss))]
        if frequency > 0:
            phase, whole_phase = frequency * self.loss, frequency * whole_loss
            self._functions += [(f(phase), f(whole_phase)) for f in (np.cos, np.sin)]

    def apart(self, values: Array, exponent: Array, top: Array, tilt: float) -> Array:
        """Return how much more than rounding panels and halves differ, and what ends leave out."""
        rule, panels = self._piece.rule, self._piece.rule.lower.size
        exponents = (self._whole.log_mass + tilt * self._whole.loss).astype(np.float64)
        whole = np.exp(exponents - top)
        left_out = np.zeros(values.shape[0])
        if rule.lower[0] > rule.piece.lower:
            left_out += values[:, 0]
        if rule.upper[-1] < rule.piece.upper:
            left_out += values[:, -1]
        reach = abs(tilt) + self._frequency
        rounded = np.abs(np.where(values > 0, exponent, 0.0)) + reach * np.abs(self.loss)
        sizes = values * (1.0 + self._size) * (4.0 + 2.0 * rounded)
        noise = _ROUNDING * _per_panel(sizes, panels)
        worst = np.abs(_per_panel(values, panels) - _per_panel(whole, panels)) - noise
        worst = np.maximum(worst, 0.0).sum(axis=1)
        for half, one in self._functions:
            difference = _per_panel(values * half, panels) - _per_panel(whole * one, panels)
            worst = np.maximum(worst, np.maximum(np.abs(difference) - noise, 0.0).sum(axis=1))
        return np.asarray(worst + left_out)


def _per_panel(values: Array, panels: int) -> Array:
    return np.asarray(values.reshape(values.shape[0], panels, -1).sum(axis=2))


@dataclass
class RowValues:
    """What one block of rows, or all of them, gave."""

    loss: Array
    log_weight: Array
    means: Extended
    error: Array
    beyond: Array

    @classmethod
    def of(cls, pieces: Sequence[PieceValues], error: Array) -> RowValues:
        """Return the columns of all pieces, atoms last, and their sums."""
        columns = [p for p in pieces if not p.flat]
        columns += [p.as_atom() for p in pieces if p.flat and p.loss.size]
        return cls(
            np.concatenate([p.loss.astype(np.float64) for p in columns], axis=1),
            np.concatenate([p.log_mass.astype(np.float64) for p in columns], axis=1),
            np.stack([_mean(pieces, reverse) for reverse in (False, True)], axis=1),
            error,
            np.sum([p.beyond() for p in pieces], axis=0),
        )
