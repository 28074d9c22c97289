r"""The loss of random allocation, log(Y/t): a law with a tabulated density.

**From above, where the sum of likelihood ratios has atoms or kinks.** δ of either direction is the
mean of a convex function of Y, the sum of t copies of W = P/Q under Q: E (Y/t − e^ε)⁺ and E (1 −
e^ε Y/t)⁺. Moving W to one of the two points of a lattice around it, so that its mean stays, makes
every such mean larger [Jensen], and so does moving all copies. With h the spacing, a copy that is
moved adds at most h/4 where it and the others end within a cell of the kink, so that

.. math::

   0 \le \delta' - \delta \le \frac{h}{4} \max_y \Pr(|Y' - y| \le (1 + m) h, W_1 \text{ is moved}),

m = t, or 4.2 √t but for a probability of 1e-15 [Hoeffding]; for the other direction the maximum is
that of t/y times the same. Y' lives on a lattice, and its law is one power of a transform. The
lattice holds the least W and the largest, so that those two, which are often atoms, stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.model.allocation import split_counts
from symdp.numeric.elementary import uniform_sum
from symdp.numeric.laws.allocation_density import RatioLaw, log_tail, tabulate
from symdp.numeric.laws.table import Chart, LogDensityTable, TabulatedLaw
from symdp.numeric.loss import LossLaw
from symdp.numeric.step import Array, Step

_BITS = 160  # precision of the probabilities of a list


class AllocatedLaw(TabulatedLaw):
    """The loss of one of `steps` ≥ 2 steps drawn at random; `base`: of one, to remove."""

    def __init__(self, base: LossLaw, steps: int, direction: str) -> None:
        table, ratios = table_of(base, steps), ratios_of(base)
        is_remove = direction == "remove"  # P has the record, and large losses lie where Y is large
        ends = [steps * math.exp(edge) for edge in (table.edges[-1], table.edges[0])]
        tails = [
            log_tail(ratios.coarse, steps, y, side, with_record=is_remove)
            for y, side in zip(ends, (1, -1), strict=True)
        ]
        infinite = _infinite(
            base, ratios, steps, 1.0 if is_remove else -1.0, tails[0 if is_remove else 1]
        )
        super().__init__(table, Chart(), direction, base.step.name, infinite, base.loss_bounds)
        self.uncertain_mass = math.exp(tails[0]) + math.exp(tails[1]) + ratios.mass_beyond


def listed_step(name: str, p: Sequence[arb], q: Sequence[arb], steps: int, direction: str) -> Step:
    """Return the step of random allocation on a finite list, from its probabilities."""
    with ctx.workprec(_BITS):
        log_p, loss, balls = [], [], []
        for with_record, without in listed_masses(p, q, steps):
            first, second = (
                (with_record, without) if direction == "remove" else (without, with_record)
            )
            if first == 0:
                continue
            log_p.append(float(first.log().mid()))
            if second == 0:
                loss.append(math.inf)
                continue
            balls.append((first, (first / second).log()))
            loss.append(float(balls[-1][1].mid()))
    return Step(name, (), np.asarray(loss), np.asarray(log_p), tuple(balls))


def listed_masses(p: Sequence[arb], q: Sequence[arb], steps: int) -> Iterator[tuple[arb, arb]]:
    """Yield the probabilities with and without the record of every way to count outcomes.

    The numbers n of outcomes have the multinomial law under Q; under P one of the t outputs has the
    law P: Σ_j p_j·Multinomial(n − e_j; t − 1).
    """
    whole = [_powers(mass, steps) for mass in q]
    factorials = [arb(n).fac() for n in range(steps + 1)]
    for counts in split_counts(len(q), steps):
        terms = [whole[j][n] / factorials[n] for j, n in enumerate(counts)]
        likely = _product(terms) * factorials[steps]
        with_record = arb(0)
        for j, n in enumerate(counts):
            if n:
                others = _product([*terms[:j], *terms[j + 1 :]])
                with_record += p[j] * others * whole[j][n - 1] / factorials[n - 1]
        yield with_record * factorials[steps - 1], likely


def _powers(mass: arb, most: int) -> list[arb]:
    powers = [arb(1)]
    for _ in range(most):
        powers.append(powers[-1] * mass)
    return powers


def _product(factors: Iterable[arb]) -> arb:
    return math.prod(factors, start=arb(1))


@lru_cache(maxsize=16)
def ratios_of(base: LossLaw) -> RatioLaw:
    """Return the likelihood ratio of one law, which all numbers of steps share."""
    return RatioLaw(base)


@lru_cache(maxsize=64)
def table_of(base: LossLaw, steps: int) -> LogDensityTable:
    """Return the table of one law and number of steps, which both directions share."""
    return tabulate(ratios_of(base), steps)


def allocated_law(base: LossLaw, steps: int, direction: str) -> LossLaw:
    """Return the law of one of t steps: a table, or a list from above where atoms forbid one."""
    ratios = ratios_of(base)
    if not recurs(ratios, steps):
        with suppress(AccuracyError):
            return AllocatedLaw(base, steps, direction)
    return LatticeAllocatedLaw(base, ratios, steps, direction)


def _infinite(base: LossLaw, ratios: RatioLaw, steps: int, sign: float, beyond: float) -> float:
    """Return the log of the mass at infinity and of what lies beyond the table's end."""
    if sign > 0:
        mass = base.mass_at_infinity + ratios.mass_beyond
        log_mass = math.log(mass) if mass > 0 else -math.inf
    else:
        mass = ratios.mass_at_zero
        log_mass = steps * math.log(mass) if mass > 0 else -math.inf
    return float(np.logaddexp(log_mass, beyond))


_CELLS = 1 << 18  # of the lattice of Y: 2 MB, and some tenths of a second
_BEYOND = math.log(1e-14)  # of the probability beyond the last cell
_HALVINGS = 7  # in search of the last cell: to 1 in 50
_SUB_GAUSSIAN = 4.2  # 2 exp(−2·4.2²) = 1e-15
_SAME_CELL = 1e-9  # cells: what is so near a point of the lattice is on it, but for rounding
_NOISE = 1e-15  # of the root of Σ mass²: rounding of the transform
_WIDEST = 1e-3  # of δ, absolute: less is no answer
_SCANNED = 1 << 17  # frequencies at which atoms are watched
_FAINT = math.log(1e-13)  # of |φ|^t: what recurs below this does not count
_LIKELY = 1e-9  # atoms less likely do not bring |φ| back


class LatticeAllocatedLaw(LossLaw):
    """The same from above, as a list of losses."""

    def __init__(self, base: LossLaw, ratios: RatioLaw, steps: int, direction: str) -> None:
        lattice = _Lattice(ratios, steps)
        transform = np.fft.rfft(lattice.law)
        size = lattice.law.size
        whole = np.fft.irfft(transform**steps, size)
        moved = np.fft.irfft(transform ** (steps - 1) * np.fft.rfft(lattice.moved), size)
        noise = whole < _NOISE * math.sqrt(float(whole @ whole))
        y = steps * lattice.least + lattice.spacing * np.arange(size)
        lost = float(np.abs(whole[noise]) @ (1.0 + y[noise] / steps)) + lattice.beyond
        lost += 2.0 * math.exp(_BEYOND) + ratios.mass_beyond
        whole[noise] = 0.0
        is_remove = direction == "remove"
        weight = np.ones(size) if is_remove else steps / np.maximum(y, lattice.spacing)
        gap = lost + 0.25 * lattice.spacing * _most_within(moved, steps, weight)
        if not gap < _WIDEST:
            raise AccuracyError(
                f"random allocation of {base.step.name} over {steps} steps: the sum of likelihood "
                f"ratios, up to {y[-1]:.2g}, has no density that could be tabulated, and a lattice "
                f"bounds delta to within {gap:.1g} only; take more steps or more noise"
            )
        seen = (whole > 0) & (y > 0)
        log_ratio, log_q = np.log(y[seen] / steps), np.log(whole[seen])
        infinite = lost + (base.mass_at_infinity if is_remove else float(whole[y <= 0].sum()))
        loss = np.append(log_ratio if is_remove else -log_ratio, math.inf)
        log_p = np.append(log_q + log_ratio if is_remove else log_q, math.log(infinite))
        finite = loss[:-1]
        bounds = float(finite.min()), float(finite.max())
        super().__init__(Step(base.step.name, (), loss, log_p), bounds)
        self.uncertain_mass = gap

    @cached_property
    def precise_losses(self) -> tuple[Fraction, ...]:
        """The losses, which are doubles."""
        return tuple(Fraction(loss) for loss in np.sort(self.base.loss).tolist())


class _Lattice:
    """The law of W on a lattice: whole, and of what was moved; P(W > top) counts as infinite."""

    def __init__(self, ratios: RatioLaw, steps: int) -> None:
        top = _top(ratios, steps)
        self._place(ratios.coarse.ratio, steps, top)
        nodes = ratios.refined(2.0 * math.pi / self.spacing, 0.0, top)  # some beyond the coarse
        self._place(nodes.ratio, steps, top)
        mass = np.exp(nodes.log_weight)
        above = nodes.ratio > top - (steps - 1) * self.least  # and so is Y, whatever the others
        self.beyond = float(mass[above] @ nodes.ratio[above])
        position = (np.where(above, self.least, nodes.ratio) - self.least) / self.spacing
        cell = np.rint(position)
        stays = np.abs(position - cell) < _SAME_CELL
        cell[~stays] = np.floor(position[~stays])
        share = np.where(stays, 0.0, position - cell)
        cells = cell.astype(np.int64)
        self.law = _spread(cells, mass, share)
        self.moved = _spread(cells[~stays], mass[~stays], share[~stays])

    def _place(self, ratio: Array, steps: int, top: float) -> None:
        """Place the lattice: the least of the ratios is on it, and the largest below the top."""
        self.least, largest = float(ratio.min()), float(ratio.max())
        self.spacing = (top - steps * self.least) / _CELLS
        if largest < top:
            self.spacing = (largest - self.least) / ((largest - self.least) // self.spacing)


def _spread(cell: NDArray[np.int64], mass: Array, share: Array) -> Array:
    low = np.bincount(cell, mass * (1.0 - share), _CELLS + 2)
    return np.asarray(low + np.bincount(cell + 1, mass * share, _CELLS + 2), dtype=np.float64)


def _top(ratios: RatioLaw, steps: int) -> float:
    """Return a y that Y hardly ever exceeds, with the record and without."""
    low, high = 0.0, 1.0

    def exceeds(log_share: float) -> bool:
        y = steps * math.exp(log_share)
        return log_tail(ratios.coarse, steps, y, 1, with_record=True) > _BEYOND

    while exceeds(high):
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return steps * math.exp(high)


def _most_within(law: Array, steps: int, weight: Array) -> float:
    """Return the largest probability of a window times the weight at its lower end."""
    reach = 1 + math.ceil(min(steps, _SUB_GAUSSIAN * math.sqrt(steps)))
    total = np.concatenate([[0.0], np.cumsum(np.abs(law))])
    lower = np.maximum(np.arange(law.size) - reach, 0)
    upper = np.minimum(np.arange(law.size) + reach + 1, law.size)
    within = total[upper] - total[lower]
    within[within < _NOISE] = 0.0
    return float((within * weight[lower]).max())


def recurs(ratios: RatioLaw, steps: int) -> bool:
    """Return whether atoms of W bring |φ|^t back, or never let it go, as a table cannot have it."""
    atoms = ratios.atoms
    kept = atoms.log_weight > math.log(_LIKELY)
    ratio, mass = atoms.ratio[kept], np.exp(atoms.log_weight[kept])
    if not kept.any() or steps * math.log(min(float(mass.sum()), 1.0)) < _FAINT:
        return False
    if ratio.size == 1:
        return True
    step = 0.5 / float(np.ptp(ratio))
    size = np.abs(uniform_sum(mass, step * (ratio - ratio.min()), 0, _SCANNED))
    faint = steps * np.log(np.maximum(size, 1e-300)) < _FAINT
    return not faint[int(faint.argmax()) :].all()
