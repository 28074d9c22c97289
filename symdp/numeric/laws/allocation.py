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
from symdp.tolerances import SAME, SUM_BITS


class AllocatedLaw(TabulatedLaw):
    """The loss of one of `steps` ≥ 2 steps drawn at random; `base`: of one, to remove."""

    def __init__(self, base: LossLaw, steps: int, direction: str) -> None:
        table = table_of(base, steps)
        ratios = ratios_of(base)
        is_remove = direction == "remove"  # P has the record, and large losses lie where Y is large
        largest = steps * math.exp(table.edges[-1])
        least = steps * math.exp(table.edges[0])
        log_above = log_tail(ratios.coarse, steps, largest, 1, with_record=is_remove)
        log_below = log_tail(ratios.coarse, steps, least, -1, with_record=is_remove)
        if is_remove:
            infinite = _log_infinite_mass(base, ratios, steps, 1.0, log_above)
        else:
            infinite = _log_infinite_mass(base, ratios, steps, -1.0, log_below)
        super().__init__(table, Chart(), direction, base.step.name, infinite, base.loss_bounds)
        mass_outside = math.exp(log_above) + math.exp(log_below)
        self.uncertain_mass = mass_outside + ratios.mass_beyond


def listed_step(name: str, p: Sequence[arb], q: Sequence[arb], steps: int, direction: str) -> Step:
    """Return the step of random allocation on a finite list, from its probabilities."""
    log_p = []
    losses = []
    balls = []
    with ctx.workprec(SUM_BITS):
        for with_record, without in listed_masses(p, q, steps):
            first = with_record
            second = without
            if direction != "remove":
                first = without
                second = with_record
            if first == 0:
                continue
            log_p.append(float(first.log().mid()))
            if second == 0:
                losses.append(math.inf)
                continue
            loss = (first / second).log()
            balls.append((first, loss))
            losses.append(float(loss.mid()))
    return Step(
        name,
        point_loss=np.asarray(losses),
        point_log_p=np.asarray(log_p),
        point_balls=tuple(balls),
    )


def listed_masses(p: Sequence[arb], q: Sequence[arb], steps: int) -> Iterator[tuple[arb, arb]]:
    """Yield the probabilities with and without the record of every way to count outcomes.

    The numbers n of outcomes have the multinomial law under Q; under P one of the t outputs has the
    law P: Σ_j p_j·Multinomial(n − e_j; t − 1).
    """
    powers = [_powers_of_mass(mass, steps) for mass in q]
    factorials = [arb(n).fac() for n in range(steps + 1)]
    for counts in split_counts(len(q), steps):
        terms = [powers[j][n] / factorials[n] for j, n in enumerate(counts)]
        without = _product_of_balls(terms) * factorials[steps]
        with_record = arb(0)
        for j, n in enumerate(counts):
            if not n:
                continue
            other_terms = [*terms[:j], *terms[j + 1 :]]
            others = _product_of_balls(other_terms)
            with_record += p[j] * others * powers[j][n - 1] / factorials[n - 1]
        yield with_record * factorials[steps - 1], without


def _powers_of_mass(mass: arb, most: int) -> list[arb]:
    powers = [arb(1)]
    for _ in range(most):
        powers.append(powers[-1] * mass)
    return powers


def _product_of_balls(factors: Iterable[arb]) -> arb:
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


def _log_infinite_mass(
    base: LossLaw, ratios: RatioLaw, steps: int, sign: float, beyond: float
) -> float:
    """Return the log of the mass at infinity and of what lies beyond the table's end."""
    mass = ratios.mass_at_zero
    power = steps
    if sign > 0:
        mass = base.mass_at_infinity + ratios.mass_beyond
        power = 1
    log_mass = -math.inf
    if mass > 0:
        log_mass = power * math.log(mass)
    return float(np.logaddexp(log_mass, beyond))


_CELLS = 1 << 18  # of the lattice of Y: 2 MB, and some tenths of a second
_BEYOND = math.log(1e-14)  # of the probability beyond the last cell
_HALVINGS = 7  # in search of the last cell: to 1 in 50
_SUB_GAUSSIAN = 4.2  # 2 exp(−2·4.2²) = 1e-15
_NOISE = 1e-15  # of the root of Σ mass²: rounding of the transform
_WIDEST = 1e-3  # of δ, absolute: less is no answer
_SCANNED = 1 << 17  # frequencies at which atoms are watched
_FAINT = math.log(1e-13)  # of |φ|^t: what recurs below this does not count
_LIKELY = 1e-9  # atoms less likely do not bring |φ| back


class LatticeAllocatedLaw(LossLaw):
    """The same from above, as a list of losses."""

    def __init__(self, base: LossLaw, ratios: RatioLaw, steps: int, direction: str) -> None:
        lattice = _RatioLattice(ratios, steps)
        size = lattice.law.size
        transform = np.fft.rfft(lattice.law)
        whole = np.fft.irfft(transform**steps, size)
        others = transform ** (steps - 1)
        moved = np.fft.irfft(others * np.fft.rfft(lattice.moved), size)
        is_noise = whole < _NOISE * math.sqrt(float(whole @ whole))
        y = steps * lattice.least + lattice.spacing * np.arange(size)
        noise_size = np.abs(whole[is_noise])
        noise_mass = float(noise_size @ (1.0 + y[is_noise] / steps))
        lost = noise_mass + lattice.beyond
        lost += 2.0 * math.exp(_BEYOND) + ratios.mass_beyond
        whole[is_noise] = 0.0
        is_remove = direction == "remove"
        weight = np.ones(size)
        if not is_remove:
            weight = steps / np.maximum(y, lattice.spacing)
        gap = lost + 0.25 * lattice.spacing * _most_within(moved, steps, weight)
        if not gap < _WIDEST:
            raise AccuracyError(
                f"random allocation of {base.step.name} over {steps} steps: the sum of likelihood "
                f"ratios, up to {y[-1]:.2g}, has no density that could be tabulated, and a lattice "
                f"bounds delta to within {gap:.1g} only; take more steps or more noise"
            )
        is_listed = (whole > 0) & (y > 0)
        log_ratio = np.log(y[is_listed] / steps)
        log_q = np.log(whole[is_listed])
        if is_remove:
            infinite = lost + base.mass_at_infinity
            finite = log_ratio
            finite_log_p = log_q + log_ratio
        else:
            infinite = lost + float(whole[y <= 0].sum())
            finite = -log_ratio
            finite_log_p = log_q
        loss = np.append(finite, math.inf)
        log_p = np.append(finite_log_p, math.log(infinite))
        bounds = (float(finite.min()), float(finite.max()))
        super().__init__(Step(base.step.name, (), loss, log_p), bounds)
        self.uncertain_mass = gap

    @cached_property
    def precise_losses(self) -> tuple[Fraction, ...]:
        """The losses, which are doubles."""
        rising = np.sort(self.base.loss).tolist()
        return tuple(Fraction(loss) for loss in rising)


class _RatioLattice:
    """The law of W on a lattice: whole, and of what was moved; P(W > top) counts as infinite."""

    def __init__(self, ratios: RatioLaw, steps: int) -> None:
        top = _hardly_exceeded(ratios, steps)
        self._place_on_ratios(ratios.coarse.ratio, steps, top)
        nodes = ratios.refined(2.0 * math.pi / self.spacing, 0.0, top)  # some beyond the coarse
        self._place_on_ratios(nodes.ratio, steps, top)
        mass = np.exp(nodes.log_weight)
        is_above = nodes.ratio > top - (steps - 1) * self.least  # and so is Y, whatever the others
        self.beyond = float(mass[is_above] @ nodes.ratio[is_above])
        ratio = np.where(is_above, self.least, nodes.ratio)
        position = (ratio - self.least) / self.spacing
        cell = np.rint(position)
        stays = np.abs(position - cell) < SAME
        moves = ~stays
        cell[moves] = np.floor(position[moves])
        share = np.where(stays, 0.0, position - cell)
        cells = cell.astype(np.int64)
        self.law = _masses_on_cells(cells, mass, share)
        self.moved = _masses_on_cells(cells[moves], mass[moves], share[moves])

    def _place_on_ratios(self, ratio: Array, steps: int, top: float) -> None:
        """Place the lattice: the least of the ratios is on it, and the largest below the top."""
        self.least = float(ratio.min())
        self.spacing = (top - steps * self.least) / _CELLS
        largest = float(ratio.max())
        if largest < top:
            width = largest - self.least
            self.spacing = width / (width // self.spacing)


def _masses_on_cells(cell: NDArray[np.int64], mass: Array, share: Array) -> Array:
    low = np.bincount(cell, mass * (1.0 - share), _CELLS + 2)
    high = np.bincount(cell + 1, mass * share, _CELLS + 2)
    return np.asarray(low + high, dtype=np.float64)


def _hardly_exceeded(ratios: RatioLaw, steps: int) -> float:
    """Return a y that Y hardly ever exceeds, with the record and without."""

    def exceeds(log_share: float) -> bool:
        y = steps * math.exp(log_share)
        return log_tail(ratios.coarse, steps, y, 1, with_record=True) > _BEYOND

    low = 0.0
    high = 1.0
    while exceeds(high):
        low = high
        high = 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if exceeds(middle):
            low = middle
        else:
            high = middle
    return steps * math.exp(high)


def _most_within(law: Array, steps: int, weight: Array) -> float:
    """Return the largest probability of a window times the weight at its lower end."""
    deviations = _SUB_GAUSSIAN * math.sqrt(steps)
    reach = 1 + math.ceil(min(steps, deviations))
    cells = np.arange(law.size)
    cumulated_sizes = np.cumsum(np.abs(law))
    cumulated = np.concatenate([[0.0], cumulated_sizes])
    lower = np.maximum(cells - reach, 0)
    upper = np.minimum(cells + reach + 1, law.size)
    within = cumulated[upper] - cumulated[lower]
    within[within < _NOISE] = 0.0
    return float((within * weight[lower]).max())


def recurs(ratios: RatioLaw, steps: int) -> bool:
    """Return whether atoms of W bring |φ|^t back, or never let it go, as a table cannot have it."""
    atoms = ratios.atoms
    is_likely = atoms.log_weight > math.log(_LIKELY)
    if not is_likely.any():
        return False
    ratio = atoms.ratio[is_likely]
    mass = np.exp(atoms.log_weight[is_likely])
    total = min(float(mass.sum()), 1.0)
    if steps * math.log(total) < _FAINT:
        return False
    if ratio.size == 1:
        return True
    step = 0.5 / float(np.ptp(ratio))
    angles = step * (ratio - ratio.min())
    modulus = np.abs(uniform_sum(mass, angles, 0, _SCANNED))
    is_faint = steps * np.log(np.maximum(modulus, 1e-300)) < _FAINT
    first = int(is_faint.argmax())
    return not is_faint[first:].all()
