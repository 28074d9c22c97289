"""Quadrature nodes that many steps of one formula share: a row of losses and weights for each.

Panels that serve a few of the steps, those with the least, the middle and the largest values of
each parameter, are tried on all of them. A step that they do not serve joins those that they are
made for. Losses and densities are taken with 64-bit mantissas, a block of rows at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symdp.capacity import afford
from symdp.errors import AccuracyError
from symdp.law.mean import split_panels
from symdp.law.outline import covering_tilts
from symdp.law.panels import LARGE_LOSS, ORDER, Index, bounded, build_panels
from symdp.law.step import Array, Extended, SmoothPiece

if TYPE_CHECKING:
    from symdp.law.formula import FormulaRows, PieceRows
    from symdp.law.loss import LossLaw

Window = tuple[int, int]
# Windows of tilts reach 2^level − 1 beyond −1 and 0; the first one serves both directions.
_WINDOWS: list[Window] = [(2, 2), *(w for k in range(3, 11) for w in ((0, k), (k, 0)))]
_MOST_TABLES = 24  # that are kept
_FIRST_FREQUENCY = 0.25  # nats⁻¹
_GROWTH = 2.0  # of the frequency, from one band to the next
_AGREE = 1e-14  # relative: how far the halves of all panels may be from the panels
_CHECKED_STEPS = 48  # of all, evenly spread, whose panels are checked at higher frequencies
_MOST_ADDED = 8  # steps that the first panels do not serve
_CANCELLED = 1e-11  # of E|L|: where doubles are off by more, 64-bit mantissas may be, too
_WHOLE_MEAN = 6e-14  # of E|L|, by which panels may miss the mean: halves err 2^16 times less
_ROUNDING = 2.3e-16  # of a double
_BLOCK = 1 << 15  # values of one array: they stay in the cache
_HELD = 8.0  # arrays of all values
_REMEDY = "use the method moments, or compose fewer distinct steps"


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yield slices of rows that have few values together."""
    size = max(1, _BLOCK // max(columns, 1))
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


@dataclass(frozen=True)
class NodeRows:
    """Losses and weights of many steps at common nodes: arrays (steps, nodes).

    Attributes
    ----------
    loss, log_weight
        ℓ and log w, the weights of a step adding up to one; nodes without weight have the loss 0.
    mean
        E L of each step in doubles.
    exact_mean
        E L to 18 digits of E|L|, NaN where panels are too coarse for that.
    joined
        Whether a panel ends where the next one begins; the first columns are `ORDER` nodes of each
        panel, from left to right, and the other ones are atoms.
    error
        The largest relative error of a weighted sum.
    beyond
        E|L| and E L² of the tails that were cut off, of each step.
    """

    loss: Array
    log_weight: Array
    mean: Array
    exact_mean: Extended
    joined: NDArray[np.bool_]
    error: float
    beyond: Array

    @classmethod
    def made(cls, values: _Values, reverse: bool, joined: NDArray[np.bool_]) -> NodeRows:
        """Return the rows of P and Q, or of Q and P."""
        loss, log_weight = values.loss, values.log_weight
        if reverse:
            log_weight, loss = log_weight - loss, -loss
        total, mean = np.empty(loss.shape[0]), np.empty(loss.shape[0])
        for block in blocks(*loss.shape):
            weight = np.exp(log_weight[block])
            total[block] = weight.sum(axis=1)
            first = np.einsum("ij,ij->i", weight, loss[block]) / total[block]
            rest = np.einsum("ij,ij->i", weight, loss[block] - first[:, None]) / total[block]
            mean[block] = first + rest
        if not (np.abs(total - 1.0) < 1e-9).all():
            raise AccuracyError(f"a density integrates numerically to {total.max()!r}, not 1")
        log_weight = log_weight - np.log(total)[:, None]
        side = int(reverse)
        error = float(values.error.max())
        exact, beyond = values.means[:, side], values.beyond[:, side]
        return cls(loss, log_weight, mean, exact, joined, error, beyond)


@dataclass
class _Values:
    """What one block of rows, or all of them, gave."""

    loss: Array
    log_weight: Array
    means: Extended
    error: Array
    beyond: Array

    @classmethod
    def of(cls, pieces: Sequence[_PieceValues], error: Array) -> _Values:
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


Panels = tuple[Array, Array]  # lower and upper ends
Rows = slice | Index
Values = NDArray[Any]  # of doubles or of 64-bit mantissas


class StepRows:
    """Node rows of steps that differ in the values of parameters, for windows of tilts.

    Parameters
    ----------
    formula
        The pieces at all values.
    counts
        How often each step is taken.
    chosen
        The steps that the first panels are made for.
    member
        Returns the law of one step.

    Raises
    ------
    AccuracyError
        If they have no panels in common.
    """

    def __init__(
        self,
        formula: FormulaRows,
        counts: Array,
        chosen: Sequence[int],
        member: Callable[[int], LossLaw],
    ) -> None:
        self.counts, self.loss_bounds = counts, formula.loss_bounds
        self._formula, self.member = formula, member
        self._first = list(chosen)
        laws = [member(k) for k in chosen]
        self.domain = max(law.domain[0] for law in laws), min(law.domain[1] for law in laws)
        self.has_atoms = laws[0].has_atoms
        self._made: dict[tuple[Window, int, bool], NodeRows] = {}
        self.at(_WINDOWS[0], 0.0, False)

    def of_steps(self, index: Index, counts: Array) -> StepRows:
        """Return the nodes of some of the steps, with other counts."""
        place = {int(k): i for i, k in enumerate(index)}
        ends = [int(place.get(k, 0)) for k in self._first] + [index.size - 1]
        return StepRows(
            self._formula.of_rows(index), counts, sorted(set(ends)), lambda k: self.member(index[k])
        )

    def edges(self, window: Window) -> tuple[float, float]:
        """Return the ends of a window of tilts, inside the domain."""
        ends = zip(window, (-1.0 - self.domain[0], self.domain[1]), strict=True)
        low, high = (
            (2.0**level - 1.0) / (1.0 + (2.0**level - 1.0) / end) if end > 0 else 0.0
            for level, end in ends
        )
        return -1.0 - low, high

    def window(self, tilt: float) -> Window:
        """Return the smallest window that holds a tilt.

        Raises
        ------
        AccuracyError
            If the tilt is outside the domain, or far beyond what is tabulated.
        """
        for window in _WINDOWS:
            low, high = self.edges(window)
            if low <= tilt <= high:
                return window
        raise AccuracyError(f"tilt {tilt:.6g} is too far out for the nodes of many distinct steps")

    def at(self, window: Window, frequency: float, reverse: bool) -> NodeRows:
        """Return rows that serve a window of tilts and |y| ≤ frequency, of P and Q or of Q and P.

        Raises
        ------
        AccuracyError
            If no common panels are found.
        """
        band = 0
        if frequency > _FIRST_FREQUENCY:
            band = math.ceil(math.log(frequency / _FIRST_FREQUENCY, _GROWTH))
        key = window, band, reverse
        if key not in self._made:
            if len(self._made) >= _MOST_TABLES:
                self._made.clear()
            highest = _FIRST_FREQUENCY * _GROWTH**band
            values, joined = self._values(self.edges(window), highest)
            sides = (False, True) if window == _WINDOWS[0] else (reverse,)
            for side in sides:
                self._made[window, band, side] = NodeRows.made(values, side, joined)
        return self._made[key]

    def _values(
        self, edges: tuple[float, float], frequency: float
    ) -> tuple[_Values, NDArray[np.bool_]]:
        chosen = list(self._first)
        is_precise = frequency <= _FIRST_FREQUENCY
        step = 1 if is_precise else max(1, self.counts.size // _CHECKED_STEPS)
        tried = np.arange(0, self.counts.size, step)
        for _ in range(_MOST_ADDED):
            laws = [self.member(k) for k in chosen]
            panels = _panels(laws, edges, frequency)
            rule = [_Rule(p, *ends) for p, ends in zip(laws[0].step.pieces, panels, strict=True)]
            size = sum(one.x.size for one in rule)
            afford(_HELD * size * self.counts.size, "the nodes of the loss", _REMEDY)
            some = [tried[rows] for rows in blocks(tried.size, size)]
            values = _joined(self._tried(rows, rule, edges, frequency) for rows in some)
            worst = int(values.error.argmax())
            if values.error[worst] <= _AGREE:
                if not is_precise:
                    every = blocks(self.counts.size, size)
                    values = _joined(self._plain(rows, rule, values.error) for rows in every)
                return values, np.concatenate([one.joined() for one in rule])[:-1]
            if tried[worst] in chosen:
                break
            chosen.append(int(tried[worst]))
        raise AccuracyError("the distinct steps have no quadrature in common")

    def _tried(
        self, rows: Index, rule: Sequence[_Rule], edges: tuple[float, float], frequency: float
    ) -> _Values:
        """Return values on the halves of the panels, compared with those on the panels."""
        is_precise = frequency <= _FIRST_FREQUENCY
        pairs = zip(rule, self._formula.pieces, strict=True)
        pieces = [one.values(functions, rows, is_precise) for one, functions in pairs]
        tilts = {edges[0], -1.0, 0.0, edges[1]}
        if is_precise:
            tilts |= {0.5 * (edges[0] - 1.0), 0.5 * edges[1]}
        error = _disagreement(pieces, sorted(tilts), frequency)
        return _Values.of(pieces, error)

    def _plain(self, rows: slice, rule: Sequence[_Rule], error: Array) -> _Values:
        """Return values on the halves of the panels in doubles."""
        pairs = zip(rule, self._formula.pieces, strict=True)
        pieces = [one.halves(functions, rows) for one, functions in pairs]
        return _Values.of(pieces, np.full(pieces[0].loss.shape[0], error.max()))


def _joined(parts: Iterable[_Values]) -> _Values:
    found = list(parts)
    names = ("loss", "log_weight", "means", "error", "beyond")
    return _Values(*(np.concatenate([getattr(p, name) for p in found]) for name in names))


def _panels(laws: Sequence[LossLaw], edges: tuple[float, float], frequency: float) -> list[Panels]:
    """Return panels for every piece that serve all laws."""
    ends = [edges[0], -1.0, 0.0, edges[1]]
    masses = [covering_tilts(law.outlines, ends) for law in laws]
    found = []
    for k, piece in enumerate(laws[0].step.pieces):
        steps = [(law.outlines[k], mass) for law, mass in zip(laws, masses, strict=True)]
        panels, _ = build_panels(steps, 0.0 if piece.flat else frequency)
        none = np.empty(0)
        found.append((none, none) if panels is None else (panels.lower, panels.upper))
    return found


class _Rule:
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

    def values(self, functions: PieceRows, rows: Rows, is_precise: bool) -> _PieceValues:
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
        return _PieceValues(
            self, halves, _Seen.of(*whole, np.log(self.whole_weight)), off, off_loss
        )

    def halves(self, functions: PieceRows, rows: Rows) -> _PieceValues:
        """Return values on the halves of panels in doubles."""
        log_p, loss = functions.doubles(rows, self.x.astype(np.float64))
        return _PieceValues(self, _Seen.of(log_p, loss, np.log(self.weight).astype(np.float64)))


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
class _PieceValues:
    """Values on one piece: on halves of panels, on panels, and how far doubles are off."""

    rule: _Rule
    halves: _Seen
    whole: _Seen | None = None
    off: Array | None = None
    off_loss: Array | None = None

    @property
    def loss(self) -> Values:
        return self.halves.loss

    @property
    def log_mass(self) -> Values:
        return self.halves.log_mass

    @property
    def flat(self) -> bool:
        return self.rule.piece.flat

    def as_atom(self) -> _PieceValues:
        """Return the one loss of a flat piece with its mass."""
        top = self.log_mass.max(axis=1, keepdims=True)
        total = top + np.log(np.exp(self.log_mass - top).sum(axis=1, keepdims=True))
        loss = np.take_along_axis(self.loss, self.log_mass.argmax(axis=1)[:, None], axis=1)
        return _PieceValues(self.rule, _Seen(loss, total))

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


def _mean(pieces: Sequence[_PieceValues], reverse: bool) -> Extended:
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
    good = np.abs(found[1] - found[0]) <= _WHOLE_MEAN * size / mass
    return np.where(good, found[1], unknown)


def _disagreement(
    pieces: Sequence[_PieceValues], tilts: Sequence[float], frequency: float
) -> Array:
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
        if not ((off <= _CANCELLED * mass) & (off_loss <= _CANCELLED * size)).all():
            raise AccuracyError("the density or loss of a step cancels in doubles")
        worst = np.maximum(worst, apart / mass)
    return worst


class _Tests:
    """The functions of the loss that panels must integrate: 1, about ℓ, and oscillations."""

    def __init__(self, piece: _PieceValues, frequency: float) -> None:
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
