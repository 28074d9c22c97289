"""Quadrature nodes that many steps of one formula share: a row of losses and weights for each.

Panels that serve a few of the steps, those with the least, the middle and the largest values of
each parameter, are tried on all of them. A step that they do not serve joins those that they are
made for. Losses and densities are taken with 64-bit mantissas, a block of rows at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symdp.capacity import afford
from symdp.errors import AccuracyError
from symdp.law.nodes import MASS_ROUNDED
from symdp.law.outline import covering_tilts
from symdp.law.panels import Index, build_panels
from symdp.law.shared_values import RowValues, Rule, disagreement
from symdp.law.step import Array, Extended

if TYPE_CHECKING:
    from symdp.law.formula import FormulaRows
    from symdp.law.loss import LossLaw

Window = tuple[int, int]
# Windows of tilts reach 2^level − 1 beyond −1 and 0; the first one serves both directions.
_WINDOWS: list[Window] = [(3, 3), *(w for k in range(4, 11) for w in ((0, k), (k, 0)))]
_MOST_TABLES = 24  # that are kept
_FIRST_FREQUENCY = 0.25  # nats⁻¹
_GROWTH = 2.0  # of the frequency, from one band to the next
_AGREE = 1e-14  # relative: how far the halves of all panels may be from the panels
_CHECKED_STEPS = 48  # of all, evenly spread, whose panels are checked at higher frequencies
_MOST_ADDED = 8  # steps that the first panels do not serve
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
    def made(cls, values: RowValues, reverse: bool, joined: NDArray[np.bool_]) -> NodeRows:
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
        error = float(values.error.max() + max(np.abs(total - 1.0).max() - MASS_ROUNDED, 0.0))
        exact, beyond = values.means[:, side], values.beyond[:, side]
        return cls(loss, log_weight, mean, exact, joined, error, beyond)


Panels = tuple[Array, Array]  # lower and upper ends


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
    ) -> tuple[RowValues, NDArray[np.bool_]]:
        chosen = list(self._first)
        is_precise = frequency <= _FIRST_FREQUENCY
        step = 1 if is_precise else max(1, self.counts.size // _CHECKED_STEPS)
        tried = np.arange(0, self.counts.size, step)
        for _ in range(_MOST_ADDED):
            laws = [self.member(k) for k in chosen]
            panels = _panels(laws, edges, frequency)
            rule = [Rule(p, *ends) for p, ends in zip(laws[0].step.pieces, panels, strict=True)]
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
        self, rows: Index, rule: Sequence[Rule], edges: tuple[float, float], frequency: float
    ) -> RowValues:
        """Return values on the halves of the panels, compared with those on the panels."""
        is_precise = frequency <= _FIRST_FREQUENCY
        pairs = zip(rule, self._formula.pieces, strict=True)
        pieces = [one.values(functions, rows, is_precise) for one, functions in pairs]
        tilts = {edges[0], -1.0, 0.0, edges[1]}
        if is_precise:
            tilts |= {0.5 * (edges[0] - 1.0), 0.5 * edges[1]}
        error = disagreement(pieces, sorted(tilts), frequency)
        return RowValues.of(pieces, error)

    def _plain(self, rows: slice, rule: Sequence[Rule], error: Array) -> RowValues:
        """Return values on the halves of the panels in doubles."""
        pairs = zip(rule, self._formula.pieces, strict=True)
        pieces = [one.halves(functions, rows) for one, functions in pairs]
        return RowValues.of(pieces, np.full(pieces[0].loss.shape[0], error.max()))


def _joined(parts: Iterable[RowValues]) -> RowValues:
    found = list(parts)
    names = ("loss", "log_weight", "means", "error", "beyond")
    return RowValues(*(np.concatenate([getattr(p, name) for p in found]) for name in names))


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
