"""δ of any law from lines that are cut off smoothly: by one line, or given the large losses.

A line's error is what the cut-off may change, bounded at every ε, and rounding of the FFT. Both
depend on the tilt, which is moved from the saddle point towards 0 where the first nodes foretell
less. Where no tilt makes ε typical, δ is a sum over the number of large losses; the intervals of
its terms add up, and terms that are left out are bounded by Chernoff's bound.

**A smooth cut-off, with a proved bound of what it changes in δ.** |Φ(y)| of losses that are atoms
off any lattice has no limit: it comes near 1 whenever all phases nearly agree. With c(w) = (erfc
s(w − w₀) − erfc s(w + w₀))/2 the terms times c(y/T) add up to E (f ∗ κ)(S − ε), the payoff f
smoothed by the transform κ of c. At the tilt t = 0 that changes the payoff by D₀(Tx)/T at the
distance x from ε, where with u = Tx

    D_m(u) = ±(1/π) ∫₀^∞ (1 − c(w)) trig(uw)/w^{2+m} dw,    trig the cosine or the sine,

and is bounded by |D₀(u)| ≤ M(u) = A sinc²(u/2) + Σ aᵢ e^{−(u/bᵢ)²}, where the numbers of M make ∫M
small (a linear program). M has no frequencies beyond 1 but for e^{−42}, so that E M(T(S − ε))/T is
a sum over |y| ≤ T as well. It is a bound: how much of the loss lies within a few T⁻¹ of ε, whatever
Φ does beyond T. For a density f_S it is 6 f_S(ε)/T².

**Any tilt.** For |y| > 1 + |t| the kernel is a series in 1/y,

    1/(z(1+z)) = 1/z − 1/(1+z) = Σ_{m≥0} (−1)^m ((1+t)^{m+1} − t^{m+1})/(iy)^{m+2},    z = t + iy,

and |(1+t)^{m+1} − t^{m+1}| ≤ (m+1)(1+|t|)^m for t > −1, by the mean value theorem for t ≥ 0. Where
|y| ≤ 2(1+|t|), 1 − c is below 1e-18, less than the rounding of the terms there. So if R(1+|t|) ≤ T,
the payoff changes by at most (1/T) Σ_m (m+1) R^{−m} |D_m(u)|. Three facts bound that by M(u)/T:

- D_m is the (m+2)-fold integral, from u to ∞, of sin(w₀v)/(πv) e^{−(v/2s)²}, the transform of c, so
  that for u > 0, by v² ≥ u² + 2u(v − u),  |D_m(u)| ≤ (2s²/u)^{m+2} e^{−(u/2s)²}/(πu);
- as b₂ = 2s, for u ≥ 105 the sum of these bounds is below the last term of M alone;
- for u < 105 the sum was computed at steps of 10⁻³ and is below 0.993 M(u) where R = 100, its slope
  between the steps included: tests/numeric/test_mesh.py does so.

**Values up to the cut-off.** Near y = 0, where |φ|ⁿ is large, each value is a plain sum, accurate
relative to 1 − φ. Beyond, one product or transform gives all values of φ_t to 5e-14 of Σ pⱼ, so
that φ_tⁿ is wrong by n·5e-14·|φ_t|ⁿ⁻¹, and the rounding of y·ℓ turns it by n·y·E|ℓ|·2e-16. Both are
added up as they occur.

**Rare large losses.** Where a rare loss makes δ, no tilt makes ε a typical sum, and an integral
cancels. With A and B the step's loss given that it is below or above a threshold, and p the
probability of the latter,

    δ(ε) = Σ_j C(n, j) p^j (1 − p)^{n−j} δ_{A·(n−j) + B·j}(ε),

terms of one sign, each with a tilt of its own. The threshold is where the tilted masses of the
step's values, or its tilted density, are lowest between two hills; pieces are cut there. Where that
lies above ε, one loss below it still carries the sum past ε: the threshold is half of the way to ε
then, and the law of a single large loss is cut again, below what reaches ε together with all that
others add, and above what passes ε alone. Any parts of the outcomes would do: where exactly they
are cut changes the work alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from flint import arb

from symdp.errors import AccuracyError
from symdp.numeric.answer import (
    EQUAL,
    FEW_NODES,
    LONG_LINE,
    MOST_NODES,
    ROUNDING,
    SAFETY,
    SETTLED,
    TOLERABLE,
    Answer,
    exact_answer,
    margin,
    outside_range,
)
from symdp.numeric.beyond.kinks import FAR_ABOVE, cut_off, majorant_transform
from symdp.numeric.contour import (
    HALF_CELL,
    Refused,
    Traced,
    contour_answer,
    on_shared_lines,
)
from symdp.numeric.elementary import Complex, log_payoff, log_sum, weighted_sums
from symdp.numeric.line import (
    Line,
    StripValue,
    answer_from_strips,
    continuous_kernel,
    first_line,
    line_tilt,
    loss_size,
    plain_sum,
)
from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import (
    DIRECT_WORK,
    OVERFLOW,
    Tilted,
    characteristic_grid,
    escapes,
    log_mass,
)
from symdp.numeric.outline import NEGLIGIBLE as OUTLINED
from symdp.numeric.outline import Outline
from symdp.numeric.panels import ORDER
from symdp.numeric.saddle_point import Strip, log_one_minus_exp
from symdp.numeric.step import Array, Index, SmoothPiece, Step
from symdp.numeric.sums import Atoms, atoms_of, united
from symdp.numeric.total import SumLaw, kept_with_law
from symdp.tolerances import NEGLIGIBLE, ROUNDED

_BLOCK = (1 << 15) - 16  # values at once, by a transform with a grid of 2^17 points


@dataclass(frozen=True)
class Smoothed:
    """A line with values up to a cut-off T, and a bound of what the cut-off changed at any ε."""

    reach: float  # T, in nats⁻¹
    left_out: float  # what else the sum may lack or have too much, on both sides together
    near: Array  # M̂(w)/c(w): turns the values, but for G, into those of the mass within a few 1/T
    far: Index  # how many blocks of steps the places are from 0
    more: Index  # and how many steps more
    latest: dict[float, tuple[float, float, float]]  # at the last ε, which is asked for again

    def sums(self, line: Line, epsilon: float) -> tuple[float, float, float, float]:
        """Return the sum, its derivative by ε, what it may lack, and what the cut-off changed."""
        if epsilon not in self.latest:
            gap = line.distance(epsilon) + line.shift
            self.latest.clear()
            self.latest[epsilon] = self._sums_at(line, gap)
        total, slope, change = self.latest[epsilon]
        return total, slope, self.left_out, change

    def _sums_at(self, line: Line, gap: float) -> tuple[float, float, float]:
        # Products by 1, y and, of those near 0, by z(1 + z).
        sums = np.zeros(3)
        step = gap * line.step
        tilt = line.tilt
        block_numbers = np.arange(self.far[-1] + 1.0)
        block_turns = np.exp(1j * (step * _BLOCK) * block_numbers)
        turns = np.exp(1j * step * np.arange(_BLOCK))
        for first in range(0, line.places.size, _BLOCK):
            block = slice(first, first + _BLOCK)
            y = line.places[block]
            near = self.near[block]
            far_turns = block_turns[self.far[block]]
            near_turns = turns[self.more[block]]
            terms = line.values[block] * far_turns * near_turns
            even = terms.real
            odd = terms.imag
            if not first:  # y = 0 has no mirror image
                even[0] *= 0.5
            square = (tilt * (1.0 + tilt) - y * y) * near
            cross = (1.0 + 2.0 * tilt) * float(weighted_sums(y * near, odd))
            sums += (
                even.sum(),
                float(weighted_sums(y, odd)),
                float(weighted_sums(square, even)) - cross,
            )
        total, turned, mass = (2.0 * sums).tolist()
        slope = turned - tilt * total
        # What is proved needs no margin, and gets one where estimates become bounds.
        change = abs(mass) / (SAFETY * self.reach**2)
        return total, slope, change


def smoothed(line: Line, places: Array, values: Complex, reach: float, left_out: float) -> Line:
    """Return a line's values, those at further places included, cut off smoothly at `reach`.

    `left_out` has the error of further values.
    """
    further = np.zeros(places.size, dtype=np.complex128)
    exponents = np.append(line.exponents, further)
    places = np.append(line.places, places)
    values = np.append(line.values, values)
    weight = cut_off(places / reach)
    near = majorant_transform(places / reach) / weight
    index = np.rint(places / line.step).astype(np.intp)
    far, more = np.divmod(index, _BLOCK)
    cut = Smoothed(reach, left_out, near, far, more, {})
    return replace(
        line,
        places=places,
        values=values * weight,
        exponents=exponents,
        assured=True,
        cut=cut,
    )


_TRANSFORMED = 5e-14  # what kernel and rounding of the FFT change in φ, relative to Σ pⱼ = 1
_SPREAD = 8  # values of a transform for each loss: as long as it takes to spread them
_LARGEST = float(majorant_transform(np.zeros(1))[0]) / SAFETY  # ∫M, a proved bound


def mesh_line(
    law: SumLaw, epsilon: float, tilt: float, beside: float, wanted: float = TOLERABLE
) -> Line:
    """Return a line of a law of any kind that serves every ε' with |ε' − ε| ≤ `beside`.

    The cut-off changes no more than `wanted`, relative to the integral, where that is to be had.
    """
    line, most, (total_of_first, mass, _) = _first_nodes(law, epsilon, tilt, beside)
    least = FAR_ABOVE * (1.0 + abs(tilt))
    if most * line.step < least:
        raise AccuracyError(
            "too few values of the characteristic function tell what single values of the "
            "loss add up to; the method prv gives proved bounds"
        )
    distance = abs(line.distance(epsilon) + line.shift)
    size = distance + loss_size(law, law.tilted(tilt))
    # As many nodes as bound the change by what is wanted, as far as the first ones tell.
    reach = math.inf
    if total_of_first > 0:
        reach = math.sqrt(_LARGEST * mass / (wanted * total_of_first))
    nodes = max(reach, 1.01 * least) / line.step
    nodes = max(nodes, 4.0 * line.places.size, FEW_NODES)
    power_of_two = math.ceil(math.log2(min(nodes, float(most))))
    nodes = min(most, 1 << power_of_two)
    while True:
        # What is left out of all terms is a twentieth of what is wanted at most.
        negligible = wanted * total_of_first / (128.0 * nodes)
        smoothed = _cut_line(law, line, nodes, size, negligible)
        assert smoothed.cut is not None
        total, _, left_out, change = smoothed.cut.sums(smoothed, epsilon)
        is_small = change <= 2.0 * wanted * abs(total)
        is_settled = left_out >= change or is_small
        if nodes >= most or is_settled:
            return smoothed
        nodes = min(most, 8 * nodes)


def predicted_error(law: SumLaw, epsilon: float, tilt: float) -> float:
    """Return about the relative error of a line, as its first nodes tell; inf if they cannot."""
    line, most, (total, mass, modulus) = _first_nodes(law, epsilon, tilt, 0.0)
    reach = most * line.step
    if reach < FAR_ABOVE * (1.0 + abs(tilt)):
        return math.inf
    if line.places.size >= 2 * FEW_NODES or not total > 0:
        return math.inf
    units = line.rounding + abs(tilt) * line.spread
    rounded = (ROUNDING * units + law.count * _TRANSFORMED) * modulus
    change = _LARGEST * mass / reach**2
    return (change + rounded) / total


def _first_nodes(
    law: SumLaw, epsilon: float, tilt: float, beside: float
) -> tuple[Line, int, tuple[float, float, float]]:
    """Return a line's first nodes and how many it may have, more only where the bound needs them.

    With them the sum of the first nodes, that of the density near ε, and that of the moduli. A loss
    with a density has more nodes itself the farther out it is asked: a line of it ends sooner.
    """
    tilted = law.tilted(tilt)
    line, _ = first_line(
        law, tilted, epsilon, tilt, continuous_kernel, math.inf, beside, 2 * FEW_NODES
    )
    most = LONG_LINE // 2 if law.is_spread else MOST_NODES
    far_above = FAR_ABOVE * (1.0 + abs(tilt))
    while most < 4 * MOST_NODES and most * line.step < far_above:
        most *= 2
    turned = line.turned(epsilon)
    z = line.tilt + 1j * line.places
    total = abs(plain_sum(turned.real))
    terms_of_mass = turned * z * (1.0 + z)
    mass = abs(plain_sum(terms_of_mass.real))
    modulus = 2.0 * float(np.abs(turned).sum())
    return line, most, (total, mass, modulus)


def _cut_line(law: SumLaw, line: Line, nodes: int, size: float, negligible: float) -> Line:
    """Return the line up to so many nodes, cut off, less the terms that are shown negligible."""
    start = line.places.size
    step = line.step
    if nodes <= start:
        no_values = np.empty(0, dtype=np.complex128)
        return smoothed(line, np.empty(0), no_values, step * start, 0.0)
    tilted = law.tilted(line.tilt, step * nodes)
    [at_tilt] = continuous_kernel(np.asarray([complex(line.tilt)])).tolist()
    log_least = math.log(abs(at_tilt)) - 1.5 * NEGLIGIBLE - math.log(nodes)
    if negligible > 0.0:
        log_least = max(log_least, math.log(negligible))
    fixed_error = max(part.error for part in tilted)
    turned = ROUNDING * size
    # The steps that leave the fewest places first.
    counts = [count for _, count in law.terms]
    parts = list(zip(tilted, counts, strict=True))
    parts.sort(key=lambda pair: -pair[1] * pair[0].variance)
    remaining, left_out = _nodes_that_count(parts, line, range(start, nodes), log_least)
    blocks: list[tuple[Array, Complex]] = []
    # Each transform spreads all losses once, which shall not cost more than its own values.
    most_points = max(part.points for part in tilted)
    length = max(_BLOCK, _SPREAD * most_points)
    for first in range(0, remaining.size, length):
        index = remaining[first : first + length]
        y: Array = step * index.astype(np.float64)
        exponent = np.zeros(index.size, dtype=np.complex128)
        unsure = np.zeros(index.size)
        log_most = _log_kernel(line.tilt, y)
        for part, count in parts:
            value = _characteristic_at(part, step, index)
            modulus, error = _modulus_and_error(part, value, y)
            log_most += count * np.log(np.minimum(modulus + error, 1.0))
            may_count = log_most > log_least
            left_out += _left_out(log_most[~may_count])
            seen = np.flatnonzero(may_count)
            index = index[seen]
            y = y[seen]
            log_most = log_most[seen]
            log = np.log(modulus[seen]) + 1j * np.angle(value[seen])
            exponent = exponent[seen] + count * log
            unsure = unsure[seen] + count * error[seen] / modulus[seen]
        kernel_values = continuous_kernel(np.asarray(line.tilt + 1j * y))
        values = np.exp(exponent) * kernel_values
        unsure = np.minimum(unsure, 1e9) + turned * y + fixed_error
        left_out += 2.0 * float(weighted_sums(np.abs(values), unsure))
        blocks.append((y, values))
    places = np.concatenate([np.empty(0), *(y for y, _ in blocks)])
    no_terms = np.empty(0, dtype=np.complex128)
    terms = np.concatenate([no_terms, *(values for _, values in blocks)])
    return smoothed(line, places, terms, step * nodes, left_out)


def _nodes_that_count(
    parts: Sequence[tuple[Tilted, int]], line: Line, nodes: range, log_least: float
) -> tuple[Index, float]:
    """Return the nodes in cells that may have a term of a size, and what the others add up to.

    φ changes by no more than |y − y'| E|L − m|: one value bounds a cell of nodes.
    """
    count_of_all = sum(count for _, count in parts)
    steepest = max(part.turning for part, _ in parts)
    allowed = 0.5 * math.exp(-0.5 * NEGLIGIBLE / count_of_all)
    in_cell = int(min(2.0 * allowed / max(steepest * line.step, 1e-300), len(nodes)))
    if in_cell < 4:  # it would cost as much as its nodes
        return np.arange(nodes.start, nodes.stop), 0.0
    half = in_cell // 2
    width = line.step * in_cell
    least = line.step * nodes.start
    first_cell = (nodes.start + half) // in_cell
    last_cell = (nodes.stop - 1 + half) // in_cell
    left_out = 0.0
    blocks: list[Index] = []
    for start in range(first_cell, last_cell + 1, _BLOCK):
        cells = np.arange(start, min(start + _BLOCK, last_cell + 1))
        y = width * cells.astype(np.float64)
        log_most = _log_kernel(line.tilt, np.maximum(y - 0.5 * width, least))
        for part, count in parts:
            value = _characteristic_at(part, width, cells)
            modulus, error = _modulus_and_error(part, value, y)
            most = modulus + error + 0.5 * width * part.turning
            log_most += count * np.log(np.minimum(most, 1.0))
        may_count = log_most + math.log(in_cell) > log_least
        left_out += in_cell * _left_out(log_most[~may_count])
        blocks.append(cells[may_count])
    remaining = np.concatenate(blocks)
    index = in_cell * remaining[:, np.newaxis] + np.arange(-half, in_cell - half)
    inside = (index >= nodes.start) & (index < nodes.stop)
    return index[inside], left_out


def _left_out(log_terms: Array) -> float:
    """Return what terms add up to on both sides, in the sum and in the mass near ε.

    Where y ≤ T, the latter's share M̂(0)|z(1+z)|/(SAFETY T²) is at most 1.1 _LARGEST times a term.
    """
    return 2.0 * (1.0 + 1.1 * _LARGEST) * float(np.exp(log_terms).sum())


def _log_kernel(tilt: float, y: Array) -> Array:
    """Return log |1/(z(1+z))|."""
    square = y * y
    return np.asarray(-0.5 * np.log((tilt**2 + square) * ((1.0 + tilt) ** 2 + square)))


def _modulus_and_error(part: Tilted, value: Complex, y: Array) -> tuple[Array, Array]:
    """Return |φ_t|, not 0, and what it may be off by."""
    least_modulus = np.finfo(float).tiny
    modulus = np.maximum(np.abs(value), least_modulus)
    deviation = math.sqrt(part.variance)
    return modulus, _TRANSFORMED + ROUNDING * deviation * y


def _characteristic_at(part: Tilted, step: float, index: Index) -> Complex:
    """Return φ_t at some of the nodes, in rising order, less the mean's phase."""
    if index.size:
        first = int(index[0])
        last = int(index[-1]) + 1
        is_long = index.size * part.points > DIRECT_WORK
        # An exponential for each place and loss costs as much as some ten products.
        if is_long and 10 * index.size >= last - first:
            return characteristic_grid(part, step, first, last)[index - first]
    return np.exp(part.log_characteristic(step * index.astype(np.float64)))


_MISJUDGED = 10.0  # times a predicted error, beyond which the saddle point is tried as well
_DEEPEST = 3  # times that a law is conditioned again
_MOST_TERMS = 40  # each is a line of its own


def mesh_answer(law: SumLaw, epsilon: float) -> Answer:
    """Return δ(ε) of a law of any kind with a two-sided error, AccuracyError if none is had."""
    return _answer_given_depth(law, epsilon, _DEEPEST, [_MOST_TERMS])


def given_large_losses(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε) as a sum over the number of large losses, None where no line needs that."""
    if not (law.is_spread and law.domain[1] > 0):
        return None
    tilt = line_tilt(law, epsilon, Strip.RIGHT)
    return _conditioned_answer(law, tilt, epsilon, _DEEPEST, [_MOST_TERMS // 4])


def _answer_given_depth(
    law: SumLaw, epsilon: float, depth: int, left: list[int], wanted: float = TOLERABLE
) -> Answer:
    """Return δ(ε), a law conditioned again for as many lines as are left at most."""
    if law.is_spread and 0 < depth < _DEEPEST and left[0] > 0:  # a term of such a sum
        tilt = line_tilt(law, epsilon, Strip.RIGHT)
        candidate = _conditioned_answer(law, tilt, epsilon, depth, left)
        if candidate is not None:
            return candidate
    if not law.is_spread and law.domain[1] > 0:
        tilt = line_tilt(law, epsilon, Strip.RIGHT)
        _, error = best_tilt(law, epsilon, tilt)
        if depth and error > 10.0 * TOLERABLE:
            candidate = _conditioned_answer(law, tilt, epsilon, depth, left)
            if candidate is not None:
                return candidate
        if depth == _DEEPEST and error <= 10.0 * TOLERABLE:
            shared = on_shared_lines(law, epsilon, _traced_line)
            if shared is not None and margin(shared) <= 10.0 * TOLERABLE:
                return shared

    def value(strip: Strip) -> StripValue:
        saddle = line_tilt(law, epsilon, strip)
        tilt, error = best_tilt(law, epsilon, saddle)
        candidate = mesh_line(law, epsilon, tilt, 0.0, wanted).value(epsilon)
        # Where far nodes cancel, the first ones predict too little.
        if tilt == saddle or candidate.relative_error <= _MISJUDGED * (error + wanted):
            return candidate
        if predicted_error(law, epsilon, saddle) == math.inf:  # there no line bounds anything
            return candidate
        other = mesh_line(law, epsilon, saddle, 0.0, wanted).value(epsilon)
        if other.relative_error < candidate.relative_error:
            return other
        return candidate

    answer = answer_from_strips(law, value)
    assert answer is not None
    return answer


def _conditioned_answer(
    law: SumLaw, tilt: float, epsilon: float, depth: int, left: list[int]
) -> Answer | None:
    """Return δ(ε) as a sum over the number of losses beyond a valley, None where there is none."""
    terms = conditioned(law, tilt, epsilon)
    if terms is None:
        return None
    return _sum_of_terms(terms, epsilon, depth - 1, left)


def _traced_line(law: SumLaw, centre: float, saddle: float, half: float) -> Traced:
    tilt, error = best_tilt(law, centre, saddle)
    if half * abs(saddle - tilt) > HALF_CELL:
        return Refused.TOO_WIDE
    if not error <= 10.0 * TOLERABLE:
        return Refused.NO_LINE
    return mesh_line(law, centre, tilt, half)


def best_tilt(law: SumLaw, epsilon: float, saddle: float) -> tuple[float, float]:
    """Return the tilt, at the saddle point or nearer to 0, with the least predicted error.

    Tilts nearer to 0 allow wider steps between frequencies, and so a cut-off farther out; but the
    sum cancels to a smaller share of its terms, which are rounded.
    """
    best = saddle
    least_error = predicted_error(law, epsilon, saddle)
    if not saddle > 0:
        return best, least_error
    for share in (0.8, 0.6, 0.4, 0.25, 0.15):
        if least_error <= TOLERABLE:
            break
        tilt = share * saddle
        error = predicted_error(law, epsilon, tilt)
        if error < least_error:
            best = tilt
            least_error = error
    return best, least_error


def _sum_of_terms(
    terms: list[tuple[float, SumLaw]], epsilon: float, depth: int, left: list[int]
) -> Answer | None:
    """Return Σ e^{wⱼ} δⱼ(ε), None where too many terms count."""
    log_bounds = [weight + _log_bound(law, epsilon) for weight, law in terms]
    bounds = np.asarray(log_bounds)
    order = np.argsort(-bounds, kind="stable")
    log_terms: list[float] = []
    log_error = -math.inf
    log_slope = -math.inf
    log_total = -math.inf
    term_count = 0
    has_lines = True
    for done, number in enumerate(order.tolist()):
        weight, law = terms[number]
        if bounds[number] < log_total - NEGLIGIBLE:
            log_others = log_sum(bounds[order[done:]])
            log_error = float(np.logaddexp(log_error, log_others))
            break
        answer = outside_range(law, epsilon)
        if (
            answer is not None
            and epsilon <= law.loss_bounds[0]
            and answer.log_complement is not None
        ):
            # 1 − δ = e^ε Q there.
            log_odds = answer.log_complement - answer.log_delta
            answer = replace(answer, slope=-math.exp(min(log_odds, OVERFLOW)))
        if answer is None:
            term_count += 1
            is_inner = depth < _DEEPEST - 1
            left[0] -= is_inner
            if term_count > _MOST_TERMS or (is_inner and left[0] < 0):
                return None
            if depth and _lies_in_a_gap(law, epsilon):
                answer = _answer_given_depth(law, epsilon, depth, left, 5.0 * TOLERABLE)
            elif has_lines and law.is_spread:
                # Where the first and largest term has no line, the others have none.
                answer = contour_answer(law, epsilon)
                has_lines = answer is not None
            answer = answer or _answer_given_depth(law, epsilon, depth, left, 5.0 * TOLERABLE)
        if answer.log_delta == -math.inf:
            continue
        log_term = weight + answer.log_delta
        log_terms.append(log_term)
        # The chance is rounded too, as its logarithms are multiplied.
        half = _half_width(answer) + SETTLED + ROUNDED * abs(weight)
        log_error = float(np.logaddexp(log_error, log_term + math.log(half)))
        if answer.slope is not None:
            log_steepness = math.log(max(-answer.slope, 1e-300))
            log_slope = float(np.logaddexp(log_slope, log_term + log_steepness))
        log_total = log_sum(log_terms)
    if log_total == -math.inf:
        return None
    relative_error = math.exp(min(log_error - log_total, 0.0)) / SAFETY
    relative_slope = -math.exp(min(log_slope - log_total, 700.0))
    log_complement = log_one_minus_exp(log_total)
    return exact_answer(log_total, log_complement, relative_error, relative_slope)


def _half_width(answer: Answer) -> float:
    """Return how far the ends of an answer lie from δ, relative to it."""
    assert answer.log_upper is not None
    assert answer.log_lower is not None
    above = math.expm1(min(answer.log_upper - answer.log_delta, OVERFLOW))
    below = -math.expm1(answer.log_lower - answer.log_delta)
    return max(above, below)


def _log_bound(law: SumLaw, epsilon: float) -> float:
    """Bound log δ by Chernoff's bound [SPA (43)] near the saddle point, or by the chance of a loss.

    Where no loss is above its mean by more than its share of ε less all means, no sum exceeds ε.
    """
    lower, upper = law.loss_bounds
    if epsilon >= upper:
        return -math.inf
    if epsilon <= lower or epsilon <= law.mean:
        return 0.0
    whole_tilt = line_tilt(law, epsilon, Strip.RIGHT)
    tilts = whole_tilt * np.asarray([0.5, 1.0])
    chernoff = law.log_transform(tilts, epsilon) + log_payoff(tilts)
    share = 0.5 * (epsilon - law.mean) / law.count  # half of it: masses are seen at nodes
    log_chances = [-OUTLINED + math.log(law.count)]  # what nodes leave out
    for part, count in law.parts:
        is_large = part.base.loss > part.base.mean + share
        log_mass = log_sum(part.base.log_weight[is_large])
        log_chances.append(math.log(count) + log_mass)
    log_chance = log_sum(np.asarray(log_chances))
    return min(0.0, float(chernoff.min()), log_chance)


_SHALLOWEST = 2.0  # e-folds of a valley between two hills that is worth a threshold
_FARTHEST = 3000.0  # e-folds of a probability beyond which no δ is asked for


def conditioned(law: SumLaw, tilt: float, epsilon: float) -> list[tuple[float, SumLaw]] | None:
    """Return log probabilities and laws given how many losses are beyond a valley at a tilt."""
    if law.is_spread:
        return _conditioned_densities(law, tilt, epsilon)
    best: tuple[int, int, Atoms] | None = None
    deepest = _SHALLOWEST
    for index, (part, _) in enumerate(law.parts):
        loss, log_mass = _values_between_tilts(part, tilt)
        depth, first = _deepest_dip(log_mass + tilt * loss)
        if depth > deepest:
            deepest = depth
            best = (index, first, (loss, log_mass))
    if best is None:
        return None
    index, first, (loss, log_mass) = best
    part = law.parts[index][0]
    below = _law_of_atoms(part, loss[:first], log_mass[:first])
    above = _law_of_atoms(part, loss[first:], log_mass[first:])
    whole = log_sum(log_mass)
    log_low = log_sum(log_mass[:first]) - whole
    log_high = log_sum(log_mass[first:]) - whole
    logs = [_log_share_below(log_low, log_high), log_high]
    return list(_binomial_terms(law, index, [below, above], logs))


def _log_share_below(log_low: float, log_high: float) -> float:
    """Return the log of the probability below a threshold, from that above where it is small."""
    if log_high < -1.0:
        return math.log1p(-math.exp(log_high))
    return log_low


def _conditioned_densities(
    law: SumLaw, tilt: float, epsilon: float
) -> list[tuple[float, SumLaw]] | None:
    """Return such terms where a step with a density has two hills and no atom."""
    deepest = _deepest_valley(law, tilt)
    if deepest is None:
        return None
    index, valley = deepest
    if law.parts[index][1] == 1:
        thresholds = _around_epsilon(law, index, epsilon)
        if valley > max(thresholds, default=math.inf):
            return _one_step_cut(law, index, thresholds)
    threshold = min(valley, _large_loss(law, index, epsilon))
    if threshold > 0.0:  # one for all ε nearby, whose terms have lines in common
        threshold = 2.0 ** (0.125 * math.floor(8.0 * math.log2(threshold)))
    return _terms_around(law, index, threshold)


@kept_with_law
def _terms_around(law: SumLaw, index: int, threshold: float) -> list[tuple[float, SumLaw]] | None:
    """Return the terms of a law one of whose steps is cut at a loss, None where it cannot be."""
    laws = laws_around(law, index, threshold)
    if laws is None:
        return None
    sides, (log_low, log_high) = laws
    logs = [_log_share_below(log_low, log_high), log_high]
    return list(_binomial_terms(law, index, sides, logs))


def _deepest_valley(law: SumLaw, tilt: float) -> tuple[int, float] | None:
    """Return the kind of step whose tilted density has the deepest valley, and its loss there."""
    valley: tuple[int, float] | None = None
    deepest = _SHALLOWEST
    for index, (part, _) in enumerate(law.parts):
        if part.has_atoms or not part.is_spread:
            continue
        nodes = part.tilted(tilt).nodes
        height = nodes.log_weight - nodes.log_spread + tilt * nodes.centred
        # Between losses that are one double, as of outputs far from a record, there is no valley.
        gap = np.diff(nodes.loss, prepend=-np.inf)
        least_gap = EQUAL * np.abs(nodes.loss).max()
        starts = np.flatnonzero(gap > least_gap)
        loss = nodes.loss[starts]
        highest = np.maximum.reduceat(height, starts)
        depth, first = _deepest_dip(highest, ORDER // 4)
        if depth > deepest:
            deepest = depth
            middle = 0.5 * float(loss[first - 1] + loss[first])
            valley = (index, middle)
    return valley


def _lies_in_a_gap(law: SumLaw, epsilon: float) -> bool:
    """Return whether the tilted density of a single step has a valley beyond all that passes ε."""
    if not (law.is_spread and law.domain[1] > 0):
        return False
    deepest = _deepest_valley(law, line_tilt(law, epsilon, Strip.RIGHT))
    if deepest is None:
        return False
    index, valley = deepest
    if law.parts[index][1] > 1:
        return False
    return valley > _passing_loss(law, index, epsilon)


def _large_loss(law: SumLaw, index: int, epsilon: float) -> float:
    """Return a loss that lies half of the way to ε, or one that passes ε alone.

    A valley above ε would leave ε in the gap of a law again: of the losses below the valley, one
    carries the sum past ε.
    """
    part = law.parts[index][0]
    variance = float(law.cumulants(0.0, 2)[1])
    missing = epsilon - law.mean
    if missing > math.sqrt(variance):
        return part.base.mean + 0.5 * missing
    return _passing_loss(law, index, epsilon)


def _passing_loss(law: SumLaw, index: int, epsilon: float) -> float:
    """Return the loss of one step with which the sum is at least ε, whatever the others add.

    Where they have no least sum, it is one below which they hardly ever fall.
    """
    part, count = law.parts[index]
    others = _other_parts(law, index)
    if count > 1:
        others.append((part, count - 1))
    lower_ends = [n * step.loss_bounds[0] for step, n in others]
    least = math.fsum(lower_ends)
    if math.isinf(least):
        mean, reach = _spread_of_others(law, part)
        least = mean - reach
    passing = epsilon - least
    rounding = 2.0 * EQUAL * (abs(passing) + abs(epsilon))
    return passing + rounding


def _other_parts(law: SumLaw, index: int) -> list[tuple[LossLaw, int]]:
    """Return the parts of a law without one of them."""
    return [pair for k, pair in enumerate(law.parts) if k != index]


def _spread_of_others(law: SumLaw, part: LossLaw) -> tuple[float, float]:
    """Return the mean of what all steps but one add, and how far from it that hardly ever lies."""
    total_variance = float(law.cumulants(0.0, 2)[1])
    variance = max(total_variance - part.tilted(0.0).variance, 0.0)
    mean = law.mean - part.base.mean
    return mean, math.sqrt(2.0 * NEGLIGIBLE * variance)


def _around_epsilon(law: SumLaw, index: int, epsilon: float) -> list[float]:
    """Return losses of a single step below which others do not reach ε, and above which all do."""
    part, _ = law.parts[index]
    mean, reach = _spread_of_others(law, part)
    low, high = part.loss_bounds
    reaching = epsilon - mean - reach
    passing = _passing_loss(law, index, epsilon)
    return [threshold for threshold in (reaching, passing) if low < threshold < high]


def _one_step_cut(
    law: SumLaw, index: int, thresholds: Sequence[float]
) -> list[tuple[float, SumLaw]] | None:
    """Return the terms of a law one of whose steps is cut at rising losses."""
    others = _other_parts(law, index)
    terms = []
    log_below = law.log_finite_mass
    for threshold in reversed(thresholds):
        laws = laws_around(law, index, threshold)
        if laws is None:
            return None
        (below, above), (log_low, log_high) = laws
        law_above = SumLaw([(above, 1), *others])
        terms.append((log_below + log_high, law_above))
        law = SumLaw([(below, 1), *others])
        index = 0
        log_below = log_below + log_low
    return [*terms, (log_below, law)]


@kept_with_law
def laws_around(
    law: SumLaw, index: int, threshold: float
) -> tuple[list[LossLaw], list[float]] | None:
    """Return a step's laws below and above a threshold, and their log masses; None if unsure."""
    part = law.parts[index][0]
    pieces_below: list[SmoothPiece] = []
    pieces_above: list[SmoothPiece] = []
    for outline in part.outlines:
        if escapes(outline.piece):
            continue
        parts = _parts_of_piece(outline, threshold)
        if parts is None:
            return None
        for is_above, piece in parts:
            if is_above:
                pieces_above.append(piece)
            else:
                pieces_below.append(piece)
    if not (pieces_below and pieces_above):
        return None
    low, high = part.loss_bounds
    sides = []
    logs = []
    both = ((pieces_below, (low, threshold)), (pieces_above, (threshold, high)))
    for pieces, bounds in both:
        mass = log_sum([log_mass(piece) for piece in pieces])
        shares = [piece.less(mass) for piece in pieces]
        step = Step(part.step.name, tuple(shares))
        sides.append(LossLaw(step, bounds))
        logs.append(mass)
    whole = log_sum(logs)
    if not abs(whole - math.log1p(-part.mass_at_infinity)) < SETTLED:
        return None
    return sides, [log - whole for log in logs]


def _parts_of_piece(outline: Outline, threshold: float) -> list[tuple[bool, SmoothPiece]] | None:
    """Return the parts of a piece, and whether the loss is above there; None of more than two."""
    piece = outline.piece
    is_finite = np.isfinite(outline.loss)
    x = outline.x[is_finite]
    above = outline.loss[is_finite] > threshold
    is_first_above = bool(above[0])
    is_change = above[:-1] != above[1:]
    change = np.flatnonzero(is_change)
    if change.size == 0:
        return [(is_first_above, piece)]
    if change.size > 1:
        return None
    low = float(x[change[0]])
    high = float(x[change[0] + 1])
    while low < (middle := 0.5 * (low + high)) < high:
        loss = piece.loss(np.asarray([middle]))
        is_above = bool(loss[0] > threshold)
        if is_above is is_first_above:
            low = middle
        else:
            high = middle
    left, right = piece.parted(low)
    return [(is_first_above, left), (not is_first_above, right)]


def _binomial_terms(
    law: SumLaw, index: int, sides: list[LossLaw], logs: list[float]
) -> Iterator[tuple[float, SumLaw]]:
    """Yield the terms of a law one of whose steps has two sides of such log probabilities."""
    others = _other_parts(law, index)
    count = law.parts[index][1]
    log_finite = law.log_finite_mass
    below, above = sides
    log_low, log_high = logs
    log_binomial = 0.0  # log C(count, j)
    rounded_off = 0.0  # what its sum has rounded off
    for j in range(count + 1):
        if j:
            more = math.log((count - j + 1) / j) + rounded_off
            before = log_binomial
            log_binomial = before + more
            rounded_off = more - (log_binomial - before)
        weight = log_binomial + rounded_off
        weight = weight + j * log_high + (count - j) * log_low + log_finite
        is_negligible = j > 0 and weight < -_FARTHEST and log_high < 0
        if is_negligible and j > count * math.exp(log_high):
            return
        sides_and_counts = ((below, count - j), (above, j))
        parts = [(side, n) for side, n in sides_and_counts if n]
        yield weight, SumLaw([*parts, *others])


def _values_between_tilts(part: LossLaw, tilt: float) -> Atoms:
    """Return all values of a step's loss that count at any tilt from −1 to the given one."""
    values = atoms_of(part, 0.0)
    reach = 1.0
    while reach < tilt:
        values = united(values, atoms_of(part, reach))
        reach *= 2.0
    return united(values, atoms_of(part, tilt))


def _deepest_dip(height: Array, beside: int = 1) -> tuple[float, int]:
    """Return how far the deepest valley lies below the lower of its hills, and where it is."""
    if height.size < 3:
        return 0.0, 0
    before = np.maximum.accumulate(height)
    from_right = np.maximum.accumulate(height[::-1])
    after = from_right[::-1]
    # Two interleaved branches of the loss are no valleys: a neighbour may be as high.
    around = np.pad(height, beside, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(around, 2 * beside + 1)
    floor = windows.max(axis=1)[1:-1]
    left_hill = before[1:-1]
    right_hill = after[1:-1]
    lower_hill = np.minimum(left_hill, right_hill)
    with np.errstate(invalid="ignore"):  # of heights of −∞ on all sides
        depth = np.nan_to_num(lower_hill - floor, nan=0.0)
    index = int(depth.argmax())
    return float(depth[index]), index + 1


def _law_of_atoms(part: LossLaw, loss: Array, log_mass: Array) -> LossLaw:
    """Return the law of a step whose loss is one of some values."""
    log_mass = log_mass - log_sum(log_mass)
    masses = np.exp(log_mass).tolist()
    balls = zip(masses, loss.tolist(), strict=True)
    step = Step(
        part.step.name,
        point_loss=loss,
        point_log_p=log_mass,
        point_balls=tuple((arb(mass), arb(value)) for mass, value in balls),
    )
    bounds = (float(loss[0]), float(loss[-1]))
    return LossLaw(step, bounds)
