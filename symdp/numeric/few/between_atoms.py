"""Sums of losses with a density between atoms on a lattice: a power in an algebra of cells.

A step whose loss has atoms at multiples of h, counted from its least loss a, and a density that is
smooth between them, as of sampled Laplace noise: atoms at both ends, h = b − a. Its characteristic
function falls like 1/y, so that a line would be long. The sum of n steps has atoms at na + kh and a
density that is smooth on every cell between them. With p_j the Legendre polynomials of a cell,
a law is (α, v): α_k the mass at na + kh, v_{kj} the coefficient of p_j on cell k. A sum's law is

    (α, v) * (β, w) = (α∗β, α∗w + v∗β + v⋆w),

∗ the convolution of the cells' numbers. p_i ⋆ p_j lives on two neighbouring cells, on each a
polynomial, which is projected. A Fourier transform over cells makes of all that products at each
frequency, and the n-th power takes log₂ n squarings there.

It is the law tilted to ε that is composed, so that masses near ε are not small beside the others:

    δ(ε) = e^{K(t) − tε} E_t[e^{−t(S − ε)}(1 − e^{−(S − ε)})⁺],

every term of which is positive. Fewer polynomials tell how much those left out would change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial import legendre

from symdp.numeric.answer import (
    BLURRED,
    COUNTED,
    EXACT,
    HALF,
    LONG_LINE,
    ROUNDING,
    Answer,
    exact_answer,
    margin,
)
from symdp.numeric.elementary import Complex, matrix_product, weighted_sums
from symdp.numeric.line import loss_size
from symdp.numeric.nodes import Tilted
from symdp.numeric.panels import ORDER
from symdp.numeric.saddle_point import log_add_exp, log_one_minus_exp
from symdp.numeric.step import Array
from symdp.numeric.total import SumLaw, kept_with_law


def answer_between_atoms(law: SumLaw, epsilon: float, tilt: float) -> Answer | None:
    """Return δ(ε) from the cells between atoms, at a tilt near its saddle point, else None."""
    cells = cells_of(law)
    if cells is None:
        return None
    for degree in (ORDER, 2 * ORDER, 4 * ORDER):
        work = law.count * cells * degree * degree
        if work > 2 * LONG_LINE:
            return None
        fine = _composed(law, tilt, cells, degree)
        coarse = _composed(law, tilt, cells, degree * 3 // 4)
        fallen = fine.last / max(coarse.last, 1e-300)
        is_vague = degree > ORDER and fine.last * fallen**4 > EXACT
        if is_vague:  # twice as many polynomials would leave that
            return None
        answer = _answer_of(law, epsilon, fine, coarse)
        if answer is None or (margin(answer) <= COUNTED and fine.last <= EXACT):
            return answer
    return None


@kept_with_law
def cells_of(law: SumLaw) -> int | None:
    """Return how many cells a step's losses span, None where its law is not smooth on few."""
    if len(law.terms) > 1:
        return None
    [(part, _)] = law.terms
    low, high = part.loss_bounds
    if not math.isfinite(high - low) or part.goes_on:
        return None
    base = part.base
    ends = [base.loss[base.atomic]]
    for piece in part.step.pieces:
        if piece.integer:
            return None
        if not piece.flat:
            edges = np.asarray([piece.lower, piece.upper])
            if not np.isfinite(edges).all():
                return None
            ends.append(np.asarray(piece.loss(edges)))
    shares = (np.concatenate(ends) - low) / (high - low)
    rounding = BLURRED * max(abs(low), abs(high)) / (high - low)
    for cells in (1, 2, 3, 4):
        off = np.abs(shares - np.round(shares * cells) / cells)
        if off.max() <= rounding:
            return cells
    return None


@dataclass(frozen=True)
class _Cells:
    """The tilted law of a sum: masses of atoms, and the series of the density on every cell."""

    tilted: Tilted
    start: float  # the least loss of a step
    length: float  # of a cell
    atoms: Array
    series: Array  # a row for each cell
    peak: float  # of both, beside which a Fourier transform rounds
    last: float  # of a step's series, beside the first coefficient: what is left out is as large


@kept_with_law
def _composed(law: SumLaw, tilt: float, cells: int, degree: int) -> _Cells:
    """Return the law of all steps under a tilt."""
    [(part, count)] = law.terms
    low, high = part.loss_bounds
    length = (high - low) / cells
    frequency = 2.0 * degree / length  # of a polynomial in the middle of a cell
    [tilted] = law.tilted(tilt, frequency)
    is_atom = tilted.nodes.atomic
    from_low = (tilted.nodes.loss - low) / length
    number = np.rint(from_low[is_atom])
    atoms = np.zeros(cells + 1)
    np.add.at(atoms, number.astype(np.intp), tilted.weight[is_atom])
    is_inner = ~is_atom
    inner = from_low[is_inner]
    cell = np.clip(np.floor(inner), 0.0, cells - 1.0)
    weight = tilted.weight[is_inner]
    values = _polynomials(inner - cell, degree)
    values *= weight[:, None]
    values *= _squares(degree)
    series = np.zeros((cells, degree))
    np.add.at(series, cell.astype(np.intp), values)
    total_cells = count * cells
    size = 1 << total_cells.bit_length()
    index = np.arange(size // 2 + 1)
    angle = 2.0 * math.pi / size * index
    base = _Spectrum(
        atoms=np.fft.rfft(atoms, size),
        series=np.fft.rfft(series, size, axis=0),
        turn=np.exp(-1j * angle),
    )
    power = base.power(count)
    sizes = np.abs(power.atoms)
    sizes += np.abs(power.series).sum(axis=1)
    coefficients = np.abs(series).max(axis=0)
    last = coefficients[-4:].max()
    largest = max(coefficients[0], 1e-300)
    all_atoms = np.fft.irfft(power.atoms, size)
    all_series = np.fft.irfft(power.series, size, axis=0)
    return _Cells(
        tilted=tilted,
        start=low,
        length=length,
        atoms=all_atoms[: total_cells + 1],
        series=all_series[:total_cells],
        peak=float(sizes.mean()),
        last=float(last / largest),
    )


def _squares(degree: int) -> Array:
    """Return 1/∫ p_j² over a cell."""
    index = np.arange(degree, dtype=np.float64)
    return np.asarray(2.0 * index + 1.0)


def _polynomials(u: Array, degree: int) -> Array:
    """Return the Legendre polynomials of [0, 1], a column for each."""
    return np.asarray(legendre.legvander(2.0 * u - 1.0, degree - 1))


@cache
def _rule(degree: int) -> tuple[Array, Array]:
    """Return Gauss's nodes and weights on [0, 1], exact for products of three polynomials."""
    nodes, weights = legendre.leggauss(2 * degree)
    u: Array = 0.5 * (nodes + 1.0)
    weight: Array = 0.5 * weights
    return u, weight


@cache
def _products(degree: int) -> Array:
    """Return the series of p_i ⋆ p_j on the first cell beside that on the next, a row for i, j."""
    u, weight = _rule(degree)
    column = weight[:, None]
    projection = _polynomials(u, degree) * column
    projection *= _squares(degree)
    # ∫ p_i(w) p_j(u − w) dw from 0 to u, and p_j(1 + u − w) from u to 1
    on_first = (0.0 * u, u, 0.0)
    on_next = (u, 1.0 - u, 1.0)
    series = []
    for begin, room, shift in (on_first, on_next):
        places = begin[:, None] + room[:, None] * u
        others = shift + u[:, None] - places
        shape = (*places.shape, degree)
        left = _polynomials(places.ravel(), degree).reshape(shape)
        right = _polynomials(others.ravel(), degree).reshape(shape)
        left *= column
        # Products of matrices would wake other threads.
        integrals = np.einsum("uvi,uvj->uij", left, right)
        integrals *= room[:, None, None]
        products = np.einsum("uij,uk->ijk", integrals, projection)
        series.append(products)
    on_both = np.concatenate(series, axis=2)
    return on_both.reshape(degree * degree, 2 * degree)


@dataclass(frozen=True)
class _Spectrum:
    """A law at every frequency of the cells, e^{−iω} being `turn`."""

    atoms: Complex
    series: Complex
    turn: Complex

    def times(self, other: _Spectrum) -> _Spectrum:
        """Return the law of the sum of two."""
        count, degree = self.series.shape
        left = self.series[:, :, None]
        right = other.series[:, None, :]
        pairs = (left * right).reshape(count, degree * degree)
        table = _products(degree)
        both = np.empty((count, 2 * degree), dtype=np.complex128)
        both.real = matrix_product(pairs.real, table)
        both.imag = matrix_product(pairs.imag, table)
        series = both[:, :degree]
        series += self.turn[:, None] * both[:, degree:]
        series += self.atoms[:, None] * other.series
        series += other.atoms[:, None] * self.series
        atoms = self.atoms * other.atoms
        return _Spectrum(atoms, series, self.turn)

    def power(self, count: int) -> _Spectrum:
        """Return the law of the sum of so many, one or more."""
        if count == 1:
            return self
        half = self.power(count // 2)
        whole = half.times(half)
        return whole.times(self) if count % 2 else whole


def _sums(law: SumLaw, epsilon: float, cells: _Cells) -> tuple[float, float, float]:
    """Return E_t of the payoff, of what it falls by as ε grows, and the payoffs of all places."""
    total_cells, degree = cells.series.shape
    start = law.count * cells.start
    threshold = (epsilon - start) / cells.length
    first = min(max(math.floor(threshold), 0), total_cells - 1)
    # In the cell of ε the integral begins at ε.
    begin = np.zeros(total_cells - first)
    begin[0] = min(max(threshold - first, 0.0), 1.0)
    room = 1.0 - begin
    u, weight = _rule(max(degree, 2 * ORDER))
    inner = begin[:, None] + room[:, None] * u
    series = cells.series[first:]
    densities = series @ _polynomials(u, degree).T
    densities[0] = _polynomials(inner[0], degree) @ series[0]
    lengths = room[:, None] * weight
    masses = densities * lengths
    number = np.arange(first, total_cells)
    over = number[:, None] + inner - threshold
    atom_over = np.arange(total_cells + 1) - threshold
    is_over = atom_over > 0.0
    over_of_atoms = atom_over[is_over]
    mass_of_atoms = cells.atoms[is_over]
    above = cells.length * np.concatenate([over.ravel(), over_of_atoms])
    mass = np.concatenate([masses.ravel(), mass_of_atoms])
    size = np.concatenate([lengths.ravel(), np.ones_like(over_of_atoms)])
    turned = np.exp(-cells.tilted.tilt * above)
    payoff = turned * -np.expm1(-above)
    fall = turned - payoff
    total = weighted_sums(payoff, mass)
    steepness = weighted_sums(fall, mass)
    payoffs = weighted_sums(payoff, size)
    return float(total), float(steepness), float(payoffs)


def _answer_of(law: SumLaw, epsilon: float, fine: _Cells, coarse: _Cells) -> Answer | None:
    """Return δ(ε), None where 1 − δ tells more or rounding all."""
    total, fall, payoffs = _sums(law, epsilon, fine)
    roughly, _, _ = _sums(law, epsilon, coarse)
    if not total > 0.0:
        return None
    tilted = fine.tilted
    tilt = tilted.tilt
    [transform] = law.log_transform(np.asarray([tilt]), epsilon).tolist()
    log_value = transform + math.log(total)
    log_delta = log_add_exp(log_value, law.log_mass_at_infinity)
    if not log_delta < HALF:
        return None
    # Coefficients fall like a geometric series, and so does what they change.
    fallen = min(fine.last / max(coarse.last, 1e-300), 1.0)
    left_out = fallen * abs(total - roughly) / total
    excess = law.count * abs(tilted.excess)
    spread = loss_size(law, [tilted])
    weighed = 1.0 + 2.0 * excess + tilt * spread
    quadrature = (tilted.error + law.lacking) * weighed
    steepness = fall / total
    drift = abs(tilt * law.drift(epsilon))
    of_spread = max(tilt, steepness) * spread
    # A power rounds its count times, beside the largest values at each frequency.
    of_power = law.count * (1.0 + fine.peak * payoffs / total)
    rounded = 8.0 + excess + drift + of_spread + of_power
    error = left_out + quadrature + ROUNDING * rounded
    share = math.exp(log_value - log_delta)
    log_complement = log_one_minus_exp(log_delta)
    return exact_answer(log_delta, log_complement, error * share, -steepness * share)
