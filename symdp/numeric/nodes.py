"""The privacy loss of one step as a weighted set of points that serves a whole window of tilts.

Under P_t ∝ e^{tL}P they give its moments, K(t) accurate relative to itself, and log φ_t(y) with the
phase of the mean taken out.

**How large φ can be far out**, which no sample of it could show. Where the loss has a density g on
a stretch, k integrations by parts bound that stretch's share of |φ(y)| by V_k/|y|^k and what is
left at its ends, V_k the total variation of g^(k−1) there; its mass bounds the share as well.
Stretches on which the loss hardly changes, and single values, keep their mass: |φ(y)| may recur to
that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symdp.capacity import BLOCK
from symdp.errors import AccuracyError
from symdp.numeric.beyond.stationary import ENDS, NEAR_END, Branch, branches, interpolated_at
from symdp.numeric.beyond.waves import condensed
from symdp.numeric.elementary import (
    CHUNK,
    Complex,
    exponential_remainder,
    log_one_plus,
    log_sum,
    oscillation_sum,
    uniform_sum,
    weighted_sums,
)
from symdp.numeric.integers import integer_rule, log_mass_of_integers
from symdp.numeric.outline import Outline, covering_tilts
from symdp.numeric.panels import DERIVATIVE, MANY_PANELS, ORDER, WEIGHTS, PieceNodes, build_rule
from symdp.numeric.step import Array, Index, SmoothPiece, Step
from symdp.tolerances import MASS_ROUNDED


@dataclass(frozen=True)
class WholePanels:
    """Where the nodes of whole panels are, ℓ′ per half a width there, and which of them adjoin."""

    index: Index
    slope: Array
    joined: NDArray[np.bool_]


@dataclass(frozen=True)
class NodeSet:
    """Points ℓⱼ and log weights log pⱼ with Σ pⱼ e^{zℓⱼ} = M(z) on a window of tilts.

    `mass_at_infinity` is P(Q = 0); the pⱼ add up to one less it. `error` is the quadrature's own
    estimate of its relative error and what the nodes missed of the mass 1, and `beyond` about E|L|
    and E L² of the tails that were cut off, which hardly have mass but may have large losses.
    `atomic` marks single values of positive probability, which no frequency averages out. `number`
    counts the nodes along the axis of outcomes, those left out included (−1 for an atom), and
    `log_spread` is the log of the stretch of losses that a node stands for (−∞ for an atom): from
    them the decay of the characteristic function is bounded.

    `centred` and `mean` are ℓⱼ − μ and μ = E L, kept because K is only accurate relative to itself
    when built around the mean. Sets for far tilts are `partial`: they leave out what only tilts
    nearer to 0 see. `panels` are the pieces with a finite loss that is not on integers, each with
    its panels. `kinks` has the ends of losses that nodes stand for many of, and what a payoff
    with a kink between them adds to the error. `rounded` is what rounding of losses and masses
    has of the error: the points are those of another law then, at every frequency.
    """

    loss: Array
    log_weight: Array
    weight: Array
    mean: float
    centred: Array
    mass_at_infinity: float
    atomic: NDArray[np.bool_]
    number: Index
    log_spread: Array
    error: float
    partial: bool = False
    beyond: tuple[float, float] = (0.0, 0.0)
    panels: tuple[tuple[SmoothPiece, Array, Array], ...] = ()
    beyond_reversed: tuple[float, float] = (0.0, 0.0)
    kinks: Array = field(default_factory=lambda: np.empty((3, 0)))
    rounded: float = 0.0

    @cached_property
    def whole_panels(self) -> WholePanels:
        """The panels whose nodes were all kept."""
        order = np.argsort(self.number)
        first_number = np.searchsorted(self.number[order], 0)
        order = order[first_number:]
        panel = self.number[order] // ORDER
        last_of_panel = panel[ORDER - 1 :]
        first_of_panel = panel[: panel.size - ORDER + 1]
        whole = np.flatnonzero(last_of_panel == first_of_panel)
        places = whole[:, None] + np.arange(ORDER)
        index = order[places]
        slope = self.loss[index] @ DERIVATIVE.T
        joined = np.asarray(np.diff(panel[whole]) == 1)
        return WholePanels(index, slope, joined)

    def reversed(self, escaped: float) -> NodeSet:
        """Return the node set of −ℓ under Q, given the probability that P vanishes under Q."""
        loss = -self.loss[::-1]
        log_q = (self.log_weight - self.loss)[::-1]
        log_weight, weight, mean, total = _normalised_weights(log_q, loss, escaped, "Q")
        low, high, change = self.kinks
        return replace(
            self,
            loss=loss,
            log_weight=log_weight,
            weight=weight,
            mean=mean,
            centred=loss - mean,
            mass_at_infinity=escaped / total,
            atomic=self.atomic[::-1],
            number=self.number[::-1],
            log_spread=self.log_spread[::-1],
            beyond=self.beyond_reversed,
            beyond_reversed=self.beyond,
            panels=tuple((piece.reversed(), a, b) for piece, a, b in self.panels),
            kinks=np.stack([-high, -low, change]),
        )


def _normalised_weights(
    log_weight: Array, loss: Array, escaped: float, name: str
) -> tuple[Array, Array, float, float]:
    """Return log weights and weights that add up to one, the mean, and what they added up to."""
    total = float(np.exp(log_weight).sum()) + escaped
    if not abs(total - 1.0) < 1e-9:
        raise AccuracyError(f"the density of {name} integrates numerically to {total!r}, not 1")
    log_weight = log_weight - np.log(total)
    weight = np.exp(log_weight)
    inside = weight.sum()
    mean = 0.0
    if inside > 0:
        mean = float(weighted_sums(loss, weight)) / inside
        mean += float(weighted_sums(loss - mean, weight)) / inside
    return log_weight, weight, mean, total


def flat_nodes(outline: Outline) -> PieceNodes:
    """Return the atom of a piece of constant loss, its mass integrated once for all tilts."""
    piece = outline.piece
    if piece.log_mass is not None:
        return known_atom(piece)
    if not outline.kept:
        log_mass_of_grid = float(outline.log_masses([0.0])[0])
        rule = build_rule(outline, {0.0: log_mass_of_grid}, 0.0)
        x = rule.x[:1]
        log_weight = np.full(x.size, log_sum(rule.log_weight))
        _, loss = piece.rounded(x)
        atom = PieceNodes.atoms(loss, log_weight)
        settled_atom = replace(atom, error=rule.error, panels=rule.panels)
        outline.kept.update(atom=settled_atom)
    kept: PieceNodes = outline.kept["atom"]
    return kept


def known_atom(piece: SmoothPiece) -> PieceNodes:
    """Return the atom of a piece of constant loss whose mass is known."""
    x = np.asarray([inner_place(piece)])
    _, loss = piece.rounded(x)
    return PieceNodes.atoms(loss, np.asarray([piece.log_mass]))


def log_mass(piece: SmoothPiece) -> float:
    """Return log ∫ P over a piece."""
    if piece.integer:
        return log_mass_of_integers(piece)
    atom = flat_nodes(Outline(piece, tilts=(0.0,)))
    return log_sum(atom.log_weight)


def build_nodes(
    step: Step,
    outlines: Sequence[Outline],
    ends: Sequence[float],
    frequency: float,
    reference: NodeSet | None = None,
) -> NodeSet:
    """Return a step's node set for tilts between the ends and frequencies up to `frequency`.

    Where the ends leave tilt 0 out, mean and mass at infinity are those of a `reference` that does
    not. Outlines that were asked for the same ends are not asked again.
    """
    escaping = [escapes(outline.piece) for outline in outlines]
    paired = list(zip(outlines, escaping, strict=True))
    finite = [outline for outline, escaped in paired if not escaped]
    masses: dict[float, float] = {}
    if finite:
        masses = finite[0].covered or covering_tilts(finite, ends)
        finite[0].covered = masses
    piece_nodes = [PieceNodes.atoms(step.point_loss, step.point_log_p)]
    for outline, escaped in paired:
        piece = outline.piece
        piece_masses = {0.0: 0.0} if escaped else masses
        if piece.integer:
            nodes = integer_rule(piece, piece_masses, frequency)
        elif piece.flat:
            nodes = flat_nodes(outline)
        else:
            nodes = build_rule(outline, piece_masses, frequency)
            if nodes.loss.size > 2 * ORDER * MANY_PANELS:
                nodes = condensed(nodes, piece_masses, frequency)
        piece_nodes.append(nodes)
    return node_set(step, piece_nodes, escaping, reference)


def node_set(
    step: Step,
    piece_nodes: Sequence[PieceNodes],
    escaping: Sequence[bool],
    reference: NodeSet | None = None,
) -> NodeSet:
    """Return the node set of points and of all pieces' nodes, some with an infinite loss."""
    loss = np.concatenate([nodes.loss for nodes in piece_nodes])
    log_weight = np.concatenate([nodes.log_weight for nodes in piece_nodes])
    log_spread = np.concatenate([nodes.log_spread for nodes in piece_nodes])
    number = _node_numbers([nodes.number for nodes in piece_nodes])
    kinks = np.concatenate([nodes.kinks for nodes in piece_nodes], axis=1)
    error = max(nodes.error for nodes in piece_nodes)
    quadrature_error = max(nodes.error - nodes.rounded for nodes in piece_nodes)
    rounded = error - quadrature_error
    error += float(kinks[2].sum())
    is_infinite = np.isposinf(loss)
    escaped = float(np.exp(log_weight[is_infinite]).sum())
    has_mass = np.isfinite(log_weight)
    is_usable = ~is_infinite & has_mass & np.isfinite(loss)
    usable = np.flatnonzero(is_usable)
    order = usable[np.argsort(loss[usable])]
    loss = loss[order]
    log_weight = log_weight[order]
    number = number[order]
    log_spread = log_spread[order]
    is_atom = number < 0
    are_atoms = is_atom[:-1] & is_atom[1:]
    is_same_loss = np.diff(loss) == 0.0
    again = np.flatnonzero(is_same_loss & are_atoms) + 1
    if again.size:  # atoms at one and the same loss
        first = np.delete(np.arange(loss.size), again)
        loss = loss[first]
        number = number[first]
        log_spread = log_spread[first]
        log_weight = np.logaddexp.reduceat(log_weight, first)
    atomic = number < 0
    panels = []
    for piece, is_escaping, nodes in zip(step.pieces, escaping, piece_nodes[1:], strict=True):
        if nodes.panels is not None and not is_escaping:
            panels.append((piece, *nodes.panels))
    if reference is not None:
        return replace(
            reference,
            loss=loss,
            log_weight=log_weight,
            weight=np.exp(log_weight),
            centred=loss - reference.mean,
            atomic=atomic,
            number=number,
            log_spread=log_spread,
            error=error,
            rounded=rounded,
            partial=True,
            beyond=(0.0, 0.0),
            panels=tuple(panels),
            kinks=kinks,
        )
    log_weight, weight, mean, total = _normalised_weights(log_weight, loss, escaped, step.name)
    # The mass of the density is 1: what the nodes miss of it was not seen, whatever it holds.
    error += max(abs(total - 1.0) - MASS_ROUNDED, 0.0)
    tails = [(*nodes.beyond, *nodes.beyond_reversed) for nodes in piece_nodes]
    first, second, first_reversed, second_reversed = np.sum(tails, axis=0).tolist()
    return NodeSet(
        loss,
        log_weight,
        weight,
        mean,
        loss - mean,
        escaped / total,
        atomic,
        number,
        log_spread,
        error,
        beyond=(first, second),
        beyond_reversed=(first_reversed, second_reversed),
        panels=tuple(panels),
        kinks=kinks,
        rounded=rounded,
    )


def _node_numbers(counts: Sequence[Index]) -> Index:
    """Return the pieces' node numbers one after the other, a panel left free between pieces."""
    numbers = []
    first = 0
    for count in counts:
        is_atom = count < 0
        numbers.append(np.where(is_atom, count, count + first))
        last_panel = int(count.max(initial=-1)) // ORDER
        first += (last_panel + 2) * ORDER
    return np.concatenate(numbers)


def escapes(piece: SmoothPiece) -> bool:
    """Return whether Q vanishes on the piece, so that its loss is infinite."""
    x = np.asarray([inner_place(piece)])
    return bool(np.isposinf(piece.loss(x)).all())


def inner_place(piece: SmoothPiece) -> float:
    """Return some point of the piece."""
    low = piece.lower
    high = piece.upper
    if np.isfinite(low) and np.isfinite(high):
        return low if piece.integer else 0.5 * (low + high)
    if np.isfinite(low):
        return low + 1.0
    if np.isfinite(high):
        return high - 1.0
    return 0.0


OVERFLOW = 600.0  # beyond this, e^x overflows and the sum is taken logarithmically
LARGE = 30.0  # from which on 1 + x is rounding beside e^x


@dataclass(frozen=True)
class Tilted:
    """One step's loss under P_t ∝ e^{tL}P: weights, distances from the tilted mean, moments.

    `shift` is E_t L − μ, μ = E L: n steps multiply every rounding by n, so that t·nμ − tε is formed
    once, exactly, for the whole sum. A precise shift is accurate relative to itself, not to the
    losses only. `atomic` is the weight on single values.
    """

    tilt: float
    nodes: NodeSet
    shift: float
    variance: float
    weight: Array
    deviation: Array
    atomic: float
    is_precise: bool

    @property
    def error(self) -> float:
        """The quadrature's estimate of its relative error."""
        return self.nodes.error

    @property
    def quadrature_error(self) -> float:
        """The error but for rounding of the nodes."""
        return self.nodes.error - self.nodes.rounded

    @property
    def turning(self) -> float:
        """E_t|L − m|, which phases are rounded like, times y."""
        return float(weighted_sums(np.abs(self.deviation), self.weight))

    @property
    def points(self) -> int:
        """The number of its points."""
        return self.weight.size

    def log_characteristic(self, y: Array) -> Complex:
        """Return log E_t e^{iy(L − m)} = log φ_t(y) − iym, relative to itself near y = 0."""
        flat = oscillation_sum(y.ravel(), self.deviation, self.weight)
        return log_one_plus(flat).reshape(y.shape)

    def atoms_characteristic(self, step: float, first: int, last: int) -> Complex:
        """Return the atoms' part of φ_t(kh) e^{−ikhm} for k = first, …, last − 1."""
        is_atom = self.nodes.atomic
        weight = self.weight[is_atom]
        deviation = self.deviation[is_atom]
        if (last - first) * weight.size > DIRECT_WORK:
            turns = np.fmod(step * deviation, 2 * np.pi)
            return uniform_sum(weight, turns, first, last)
        y = step * np.arange(first, last, dtype=np.float64)
        phase = np.multiply.outer(y, deviation)
        terms = np.exp(1j * phase) * weight
        return np.asarray(terms.sum(axis=1))

    def cumulants(self, order: int) -> Array:
        """Return cumulants, the first as E_t L − E L, from central moments m:

        κⱼ = mⱼ − Σ_{i=2}^{j−2} C(j−1, i−1) κᵢ m_{j−i}.
        """
        moments = [1.0, 0.0]
        power = self.weight * self.deviation
        for _ in range(2, order + 1):
            power = power * self.deviation
            moments.append(float(power.sum()))
        cumulants = [0.0, self.shift]
        for j in range(2, order + 1):
            products = [
                math.comb(j - 1, i - 1) * cumulants[i] * moments[j - i] for i in range(2, j - 1)
            ]
            cumulants.append(moments[j] - math.fsum(products))
        return np.asarray(cumulants[1 : order + 1])

    @cached_property
    def decay(self) -> Decay:
        """What bounds |φ_t| far out."""
        panels = self.nodes.whole_panels
        return panel_decay(self.weight[panels.index], panels.slope, panels.joined)

    def log_bound(self, y: Array) -> Array:
        """Return an estimated bound on log |φ_t| between neighbours of rising y, beyond the last.

        Before the last, of all that lies beyond as well, but for what shows near the median loss.
        """
        far = self.decay.log_bound(y)
        near = near_bound(self.weight, self.deviation, y)
        far[:-1] = np.minimum(far[:-1], near)
        return far

    def expansion(self, y: float) -> Expansion:
        """Return φ as exponentials at atoms and ends of stretches, of the order best at a y."""
        atomic = self.nodes.atomic
        loss = self.nodes.loss[self.nodes.whole_panels.index]
        atoms = (self.nodes.loss[atomic], self.weight[atomic])
        frequency = np.asarray([y])
        expansions = [self.decay.expansion(order, y, loss, atoms) for order in _ORDERS]
        residuals = [float(expansion.residual_size(frequency)[0]) for expansion in expansions]
        return expansions[residuals.index(min(residuals))]

    @property
    def widest(self) -> float:
        """The largest standard deviation of a single step, here the only one's."""
        return math.sqrt(self.variance)

    @property
    def size(self) -> float:
        """σ + |E_t L − μ| + |μ|, of which rounding takes its share."""
        return self.widest + abs(self.shift) + abs(self.nodes.mean)

    @property
    def imprecise(self) -> float:
        """How many steps have a K that is no sum of growths."""
        return float(not self.is_precise)

    @cached_property
    def excess(self) -> float:
        """K(t) − t·μ, accurate relative to itself."""
        of_tilt = excess(self.nodes, np.asarray([self.tilt]))
        return float(of_tilt[0])


def excess(nodes: NodeSet, tilts: Array) -> Array:
    """Return K(t) − t·μ for several tilts: log E e^{t(L−μ)}, built from e^x − 1 − x near zero."""
    rows = max(1, BLOCK // max(nodes.centred.size, 1))
    if tilts.size > rows:
        starts = range(0, tilts.size, rows)
        blocks = [tilts[first : first + rows] for first in starts]
        return np.concatenate([excess(nodes, block) for block in blocks])
    scaled = np.multiply.outer(tilts, nodes.centred)
    exponent = nodes.log_weight + scaled
    top = exponent.max(axis=1, initial=-math.inf)
    if nodes.partial:
        near = np.zeros(tilts.size, dtype=bool)
    else:
        near = top < OVERFLOW
    values = np.empty(tilts.size)
    if near.any():
        values[near] = _from_growths(nodes, scaled[near])
    if not near.all():
        far = ~near
        growth = np.exp(exponent[far] - top[far, None])
        total = growth.sum(axis=1)
        values[far] = top[far] + np.log(total)
    return values


def _from_growths(nodes: NodeSet, scaled: Array) -> Array:
    """Return log E e^x from e^x − 1 − x near zero, x being `scaled`, a row for each tilt."""
    near = np.minimum(scaled, LARGE)
    growth = exponential_remainder(near)
    ratio = weighted_sums(growth, nodes.weight)
    if scaled.max(initial=0.0) > LARGE:
        # Beside e^x there, 1 + x is all that counts; the weight may be tiny where e^x is huge.
        large = np.exp(scaled + nodes.log_weight)
        grown = large - nodes.weight * (1.0 + scaled)
        missing = grown - nodes.weight * growth
        ratio += np.where(scaled > LARGE, missing, 0.0).sum(axis=1)
    finite_mass = 1.0 - nodes.mass_at_infinity
    log_ratio = np.log1p(ratio / finite_mass)
    return np.asarray(log_ratio + math.log1p(-nodes.mass_at_infinity))


DIRECT_WORK = 300_000  # below this many exponentials a plain sum beats the transform
_NEAR_PHASE = 32.0  # radians at the last y: nodes that turn by no more keep their relative accuracy
_PLACES = 48  # of a polynomial that e^{iyd} is to rounding while yd runs over half of that phase
_CHEBYSHEV = np.cos((np.arange(_PLACES) + 0.5) * (np.pi / _PLACES))  # places of the polynomial
# Its values there to its coefficients.
_TO_SERIES = np.cos(np.outer(np.arange(_PLACES), np.arccos(_CHEBYSHEV))) * (2.0 / _PLACES)
_TO_SERIES[0] *= 0.5


def log_characteristic_grid(tilted: Tilted, step: float, first: int, last: int) -> Complex:
    """Return log φ_t(kh) − ikhm for k = first, …, last − 1.

    Nodes near the mean, which carry nearly all weight when n is large, are summed directly so that
    they keep full relative accuracy; of the far ones a transform's error is relative to their small
    weight.
    """
    y: Array = step * np.arange(first, last, dtype=np.float64)
    if y.size * tilted.points <= DIRECT_WORK:
        return tilted.log_characteristic(y)
    is_near = np.abs(tilted.deviation) * (step * last) <= _NEAR_PHASE
    remainder = _near_sum(y, tilted.deviation[is_near], tilted.weight[is_near])
    far_weight = tilted.weight[~is_near]
    far_deviation = tilted.deviation[~is_near]
    if far_weight.size:
        turns = np.fmod(step * far_deviation, 2 * np.pi)
        far = uniform_sum(far_weight, turns, first, last)
        far_mean = float(weighted_sums(far_deviation, far_weight))
        remainder += far - far_weight.sum() - 1j * y * far_mean
    return log_one_plus(remainder)


def characteristic_grid(tilted: Tilted, step: float, first: int, last: int) -> Complex:
    """Return φ_t(kh)e^{−ikhm} for k = first, …, last − 1 by a transform, to its absolute error."""
    turns = np.fmod(step * tilted.deviation, 2 * np.pi)
    return uniform_sum(tilted.weight, turns, first, last)


def _near_sum(y: Array, deviation: Array, weight: Array) -> Complex:
    """Return `oscillation_sum` at rising y, on each octave as y times a polynomial."""
    sums = np.empty(y.size, dtype=np.complex128)
    start = 0
    while start < y.size:
        octave_end = int(np.searchsorted(y, 2.0 * y[start]))
        stop = max(octave_end, start + 2 * _PLACES)
        octave = y[start:stop]
        if octave.size <= 2 * _PLACES:
            sums[start:stop] = oscillation_sum(octave, deviation, weight)
            start = stop
            continue
        middle = 0.5 * (octave[0] + octave[-1])
        half = 0.5 * (octave[-1] - octave[0])
        places = middle + half * _CHEBYSHEV
        ratios = oscillation_sum(places, deviation, weight) / places
        coefficients = _TO_SERIES @ ratios
        for first in range(0, octave.size, CHUNK):
            block = octave[first : first + CHUNK]
            u = (block - middle) / half
            value = np.polynomial.chebyshev.chebval(u, coefficients)
            offset = start + first
            sums[offset : offset + block.size] = block * value
        start = stop
    return sums


_DERIVATIVES = 4  # the most integrations by parts
_ORDERS = (1, 2, _DERIVATIVES)  # of a variation; a higher one serves farther out
_ANGLES = np.asarray([0.5, 1.0, 2.0, 3.0])  # a, how far two losses may turn apart
ALL = 1.0 - 1e-15  # of |φ|², that a bound may leave


@dataclass(frozen=True)
class Expansion:
    """φ(y) as Σⱼ Σ_m b_{jm} e^{iyℓⱼ} y^{−m/2} and a remainder, for every y that is not small.

    `sizes` are |b_{jm}|, a row for each m = 0, 1, …, and `residual` are the coefficients of powers
    of y^−½ that bound the remainder.
    """

    loss: Array
    sizes: Array
    residual: Array

    def main(self, y: Array) -> Array:
        """Return Σⱼ Σ_m |b_{jm}| y^{−m/2}."""
        total = self.sizes.sum(axis=1)
        return _root_sum(total, y)

    def residual_size(self, y: Array) -> Array:
        """Return a bound on the remainder."""
        return _root_sum(self.residual, y)

    def terms(self, y: float) -> tuple[Array, Array]:
        """Return the losses, and the logs of their sizes at a y."""
        size = _root_sum(self.sizes, np.asarray([y]))[:, 0]
        is_positive = size > 0.0
        return self.loss[is_positive], np.log(size[is_positive])


@dataclass(frozen=True)
class Decay:
    """The tilted loss density on the panels of its quadrature, as far as it bounds |φ|.

    `left, right`: g, g′, … at the ends of each panel, one row for each derivative. Of many steps at
    once all arrays have an axis for the steps before that of the panels.
    """

    atomic_mass: Array  # of what has no density: single values, and panels cut short
    mass: Array  # the mass of each panel
    turned: Array  # √y times its share is at most that, where the loss turns on it, else ∞
    turning: Mapping[tuple[int, ...], Sequence[Branch]]  # of the panels on which the loss turns
    variation: tuple[Array, ...]  # V_k of each panel: an array for each of the orders
    left: Array
    right: Array
    joined: NDArray[np.bool_]  # whether a panel's right end is the next one's left end

    def log_bound(self, y: Array) -> Array:
        """Return an estimated bound on log |φ(y')| for every |y'| ≥ |y|, the y in rising order."""
        kind_count = np.shape(self.atomic_mass)
        best = np.ones((y.size, *kind_count))
        size = np.abs(y)
        with np.errstate(invalid="ignore"):
            differences = self.right[..., :-1] - self.left[..., 1:]
            jumps = np.abs(differences)
        turned = np.multiply.outer(1.0 / np.sqrt(size), self.turned)
        mass = np.minimum(self.mass, turned)
        for order, variation in zip(_ORDERS, self.variation, strict=False):
            exponents = np.arange(1.0, order + 1.0)
            powers = np.power.outer(1.0 / size, exponents)
            with np.errstate(over="ignore", invalid="ignore"):
                by_parts = np.multiply.outer(powers[:, -1], variation)
                left_sum = np.tensordot(powers, self.left[:order], 1)
                right_sum = np.tensordot(powers, self.right[:order], 1)
                jump_sum = np.tensordot(powers, jumps[:order], 1)
                left = np.abs(left_sum)
                right = np.abs(right_sum)
                jump = np.abs(jump_sum)
                # By parts or not, any choice bounds: what a panel's own mass is not worth, the
                # ends of its neighbours may be.
                is_worth_own = by_parts < mass
                is_worth_ends = by_parts < mass + left + right
                for is_by_parts in (is_worth_own, is_worth_ends):
                    own_terms = np.where(is_by_parts, by_parts, mass)
                    total = own_terms.sum(axis=-1) + self.atomic_mass
                    are_both = is_by_parts[..., :-1] & is_by_parts[..., 1:]
                    inner = self.joined & are_both
                    alone_right = is_by_parts.copy()
                    alone_left = is_by_parts.copy()
                    alone_right[..., :-1] &= ~inner
                    alone_left[..., 1:] &= ~inner
                    total += np.where(alone_right, right, 0.0).sum(axis=-1)
                    total += np.where(alone_left, left, 0.0).sum(axis=-1)
                    total += np.where(inner, jump, 0.0).sum(axis=-1)
                    best = np.fmin(best, total)
        from_last = np.maximum.accumulate(best[::-1])
        largest_beyond = from_last[::-1]
        return np.asarray(np.log(largest_beyond))

    def expansion(
        self,
        order: int,
        y: float,
        loss: Array,
        atoms: tuple[Array, Array],
    ) -> Expansion:
        """Return φ of one step with as many integrations by parts, on panels where they serve at y.

        `loss`: at the nodes of panels.
        """
        turning = {panel: sides for (panel,), sides in self.turning.items()}
        variation = self.variation[_ORDERS.index(order)]
        left = self.left[:order].copy()
        right = self.right[:order].copy()
        with np.errstate(over="ignore", invalid="ignore"):
            good = variation * y**-order < self.mass
        good &= np.isfinite(left).all(axis=0)
        good &= np.isfinite(right).all(axis=0)
        low, high = (loss @ ENDS).T
        atom_loss, atom_mass = atoms
        kinks = [atom_loss]
        rows = [_root_coefficients(atom_mass, 0, order)]
        residual: Array = np.zeros(2 * order + 3)
        frequency = np.asarray([y])
        for panel, sides in turning.items():
            left[:, panel] = 0.0
            right[:, panel] = 0.0
            terms = [side.terms(order) for side in sides]
            unmet = [side for side in sides if not self._is_met(panel, side, turning)]
            residual[0] += math.fsum(side.edge_mass for side in unmet)
            lacking = sum(_root_sum(missing, frequency)[0] for _, missing, _ in terms)
            good[panel] = bool(sides) and lacking < self.mass[panel]
            if not good[panel]:
                continue
            for side, (size, missing, values) in zip(sides, terms, strict=True):
                end_values = (left, right)[side.end]
                end_values[:, panel] = values
                residual += missing
                turn = np.asarray([side.value])
                kinks.append(interpolated_at(loss[panel], turn))
                rows.append(size[:, None])
        regular = good.copy()
        regular[list(turning)] = False
        both = self.joined & good[:-1] & good[1:]
        is_joined_left = np.append(False, self.joined)
        is_joined_right = np.append(self.joined, False)
        first = good & ~is_joined_left
        last = good & ~is_joined_right
        powers = slice(2, 2 * order + 1, 2)
        for values, end, is_end in ((left, low, first), (right, high, last)):
            kinks.append(end[is_end])
            sizes = np.abs(values[:, is_end])
            rows.append(_root_coefficients(sizes, powers, order))
        # Next to a panel whose mass alone is known an end is no kink, and no other one meets it.
        alone_left = good & ~first & ~np.append(False, both)
        alone_right = good & ~last & ~np.append(both, False)
        lone = np.abs(left[:, alone_left]).sum(axis=1)
        lone = lone + np.abs(right[:, alone_right]).sum(axis=1)
        with np.errstate(invalid="ignore"):  # of derivatives beyond the doubles
            changes = np.abs(right[:, :-1] - left[:, 1:])
            jumps = changes[:, both]
        lone += np.nan_to_num(jumps, nan=np.inf).sum(axis=1)
        residual[powers] += lone
        unlisted_mass = np.maximum(self.atomic_mass - atom_mass.sum(), 0.0)
        residual[0] += self.mass[~good].sum() + unlisted_mass
        residual[2 * order] += variation[regular].sum()
        all_kinks = np.concatenate(kinks)
        sizes_of_kinks = np.concatenate(rows, axis=1)
        return Expansion(all_kinks, sizes_of_kinks, residual)

    def _is_met(self, panel: int, side: Branch, turning: Mapping[int, Sequence[Branch]]) -> bool:
        """Return whether a side of the panel that adjoins begins where that of a panel does."""
        other = panel + 1 if side.end == 0 else panel - 1
        if not 0 <= other < self.mass.size:
            return False
        if not self.joined[min(panel, other)]:
            return False
        facing_sides = turning.get(other, ())
        return any(facing.end != side.end and facing.edge_mass for facing in facing_sides)


def _root_sum(coefficients: Array, y: Array) -> Array:
    """Return sums of powers of y^−½."""
    inverse_root = 1.0 / np.sqrt(y)
    return np.asarray(np.polynomial.polynomial.polyval(inverse_root, coefficients))


def _root_coefficients(size: Array, power: int | slice, order: int) -> Array:
    """Return sizes as the coefficients of a power of y^−½, or of several."""
    rows: Array = np.zeros((2 * order + 3, size.shape[-1]))
    rows[power] = size
    return rows


def decays(parts: Sequence[Tilted]) -> Decay:
    """Return the decay of several steps at once, each with panels of no mass at its end."""
    panels = [part.nodes.whole_panels for part in parts]
    lengths = [len(part_panels.index) for part_panels in panels]
    length = max(1, *lengths)
    weight = np.zeros((len(parts), length, ORDER))
    slope = np.ones_like(weight)
    joined = np.zeros((len(parts), length - 1), dtype=np.bool_)
    for row, (part, part_panels) in enumerate(zip(parts, panels, strict=True)):
        count = len(part_panels.index)
        weight[row, :count] = part.weight[part_panels.index]
        slope[row, :count] = part_panels.slope
        joined[row, : part_panels.joined.size] = part_panels.joined
    return panel_decay(weight, slope, joined)


def panel_decay(weight: Array, slope: Array, joined: NDArray[np.bool_]) -> Decay:
    """Return the decay from weights and ℓ′ per half a panel, the last axes panels and nodes."""
    ends = slope @ ENDS
    bends = (slope @ DERIVATIVE.T) @ ENDS
    least = np.minimum(slope.min(-1), ends.min(-1))
    largest = np.maximum(slope.max(-1), ends.max(-1))
    # ℓ′ has a zero on the panel, or near an end of it.
    has_turn = (least <= 0.0) & (largest >= 0.0)
    has_turn |= (np.abs(ends) <= NEAR_END * np.abs(bends)).any(axis=-1)
    has_turn &= weight.max(axis=-1) > 0.0
    turned = np.full(weight.shape[:-1], np.inf)
    turning = {}
    for index in map(tuple, np.argwhere(has_turn).tolist()):
        sides = branches(slope[index], weight[index])
        turning[index] = sides
        if sides:
            turned[index] = math.fsum(side.most for side in sides)
    with np.errstate(all="ignore"):
        # A node stands for its weight times |ℓ′|, both per half a panel's width.
        derivatives = [weight / (np.abs(slope) * WEIGHTS)]
        for _ in range(_DERIVATIVES - 1):
            change = derivatives[-1] @ DERIVATIVE.T
            derivatives.append(change / slope)
        at_ends = [derivative @ ENDS for derivative in derivatives]
        at_ends = [np.where(np.isnan(ends), np.inf, ends) for ends in at_ends]
        variation = []
        for order in _ORDERS:
            low = at_ends[order - 1][..., :1]
            high = at_ends[order - 1][..., 1:]
            path = np.concatenate([low, derivatives[order - 1], high], axis=-1)
            steps = path[..., 1:] - path[..., :-1]
            changes = np.abs(steps)
            total = changes.sum(axis=-1)
            # Where ℓ′ has a zero, the density has a pole that no polynomial follows.
            is_unknown = has_turn | np.isnan(total)
            variation.append(np.where(is_unknown, np.inf, total))
    mass = weight.sum(axis=-1)
    return Decay(
        atomic_mass=np.maximum(0.0, 1.0 - mass.sum(axis=-1)),
        mass=mass,
        turned=turned,
        turning=turning,
        variation=tuple(variation),
        left=np.stack([ends[..., 0] for ends in at_ends]),
        right=np.stack([ends[..., 1] for ends in at_ends]),
        joined=joined,
    )


def near_bound(weight: Array, deviation: Array, y: Array) -> Array:
    """Return a bound on log |φ(y')| between every two neighbours of rising y.

    With two independent losses L and L', as 1 − cos u ≥ c u² for |u| ≤ a,

        1 − |φ(y)|² = E(1 − cos y(L − L')) ≥ c y² E[(L − L')²; L, L' ∈ I],

    I of length a/y around the median of L. That shows how |φ|ⁿ of many steps falls.
    """
    first_moment = weight * deviation
    below = np.zeros((3, deviation.size + 1))
    below[0, 1:] = weight
    below[1, 1:] = first_moment
    below[2, 1:] = first_moment * deviation
    np.cumsum(below, axis=1, out=below)
    middle = int(below[0, 1:].searchsorted(0.5))
    median = deviation[min(middle, deviation.size - 1)]
    half = np.divide.outer(0.5 * _ANGLES, y[1:])
    low = deviation.searchsorted(median - half)
    high = deviation.searchsorted(median + half, side="right")
    mass, first, second = below[:, high] - below[:, low]
    spread = mass * second - first * first
    curved = (1.0 - np.cos(_ANGLES)) / _ANGLES**2
    most = (curved[:, None] * spread).max(axis=0)
    lost = 2.0 * y[:-1] ** 2 * most
    share = np.clip(lost, 0.0, ALL)
    return np.asarray(0.5 * np.log1p(-share))
