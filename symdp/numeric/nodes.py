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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symdp.capacity import BLOCK
from symdp.errors import AccuracyError
from symdp.numeric.beyond.stationary import ENDS, NEAR_END, Branch, branches, interpolated_at
from symdp.numeric.elementary import (
    Complex,
    exponential_remainder,
    log_one_plus,
    log_sum,
    oscillation_sum,
    uniform_sum,
)
from symdp.numeric.integers import integer_rule, log_mass_of_integers
from symdp.numeric.outline import Outline, covering_tilts
from symdp.numeric.panels import DERIVATIVE, ORDER, WEIGHTS, PieceNodes, build_rule
from symdp.numeric.step import Array, Index, SmoothPiece, Step

MASS_ROUNDED = 1e-13  # of a mass of 1: nodes of resolved densities miss it by 1e-15


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
    with a kink between them adds to the error.
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

    @cached_property
    def whole_panels(self) -> WholePanels:
        """The panels whose nodes were all kept."""
        order = np.argsort(self.number)
        order = order[np.searchsorted(self.number[order], 0) :]
        panel = self.number[order] // ORDER
        whole = np.flatnonzero(panel[ORDER - 1 :] == panel[: panel.size - ORDER + 1])
        index = order[whole[:, None] + np.arange(ORDER)]
        slope = self.loss[index] @ DERIVATIVE.T
        return WholePanels(index, slope, np.asarray(np.diff(panel[whole]) == 1))

    def reversed(self, escaped: float) -> NodeSet:
        """Return the node set of −ℓ under Q, given the probability that P vanishes under Q."""
        loss, log_weight = -self.loss[::-1], (self.log_weight - self.loss)[::-1]
        log_weight, weight, mean, total = _normalised(log_weight, loss, escaped, "Q")
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
            kinks=np.stack([-self.kinks[1], -self.kinks[0], self.kinks[2]]),
        )


def _normalised(
    log_weight: Array, loss: Array, escaped: float, name: str
) -> tuple[Array, Array, float, float]:
    """Return log weights and weights that add up to one, the mean, and what they added up to."""
    total = float(np.exp(log_weight).sum()) + escaped
    if not abs(total - 1.0) < 1e-9:
        raise AccuracyError(f"the density of {name} integrates numerically to {total!r}, not 1")
    log_weight = log_weight - np.log(total)
    weight = np.exp(log_weight)
    inside = weight.sum()
    mean = float(weight @ loss / inside) if inside > 0 else 0.0
    mean += float(weight @ (loss - mean) / inside) if inside > 0 else 0.0
    return log_weight, weight, mean, total


def flat_nodes(outline: Outline) -> PieceNodes:
    """Return the atom of a piece of constant loss, its mass integrated once for all tilts."""
    piece = outline.piece
    if piece.log_mass is not None:
        return known_atom(piece)
    if not outline.kept:
        rule = build_rule(outline, {0.0: float(outline.log_masses([0.0])[0])}, 0.0)
        log_weight = np.full(rule.x[:1].size, log_sum(rule.log_weight))
        atom = PieceNodes.atoms(piece.rounded(rule.x[:1])[1], log_weight)
        outline.kept.update(atom=replace(atom, error=rule.error, panels=rule.panels))
    kept: PieceNodes = outline.kept["atom"]
    return kept


def known_atom(piece: SmoothPiece) -> PieceNodes:
    """Return the atom of a piece of constant loss whose mass is known."""
    x = np.asarray([inner_place(piece)])
    return PieceNodes.atoms(piece.rounded(x)[1], np.asarray([piece.log_mass]))


def log_mass(piece: SmoothPiece) -> float:
    """Return log ∫ P over a piece."""
    if piece.integer:
        return log_mass_of_integers(piece)
    return log_sum(flat_nodes(Outline(piece, tilts=(0.0,))).log_weight)


def build_nodes(
    step: Step,
    outlines: Sequence[Outline],
    ends: Sequence[float],
    frequency: float,
    reference: NodeSet | None = None,
) -> NodeSet:
    """Return a step's node set for tilts between the ends and frequencies up to `frequency`.

    Where the ends leave tilt 0 out, mean and mass at infinity are those of a `reference` that does
    not.
    """
    escaping = [escapes(outline.piece) for outline in outlines]
    finite = [o for o, out in zip(outlines, escaping, strict=True) if not out]
    masses = covering_tilts(finite, ends) if finite else {}
    piece_nodes = [PieceNodes.atoms(step.point_loss, step.point_log_p)]
    for outline, out in zip(outlines, escaping, strict=True):
        under, piece = {0.0: 0.0} if out else masses, outline.piece
        if piece.integer:
            piece_nodes.append(integer_rule(piece, under, frequency))
        else:
            smooth_nodes = (
                flat_nodes(outline) if piece.flat else build_rule(outline, under, frequency)
            )
            piece_nodes.append(smooth_nodes)
    return node_set(step, piece_nodes, escaping, reference)


def node_set(
    step: Step,
    piece_nodes: Sequence[PieceNodes],
    escaping: Sequence[bool],
    reference: NodeSet | None = None,
) -> NodeSet:
    """Return the node set of points and of all pieces' nodes, some with an infinite loss."""
    loss, log_weight, log_spread = (
        np.concatenate([getattr(nodes, name) for nodes in piece_nodes])
        for name in ("loss", "log_weight", "log_spread")
    )
    number = _numbered([nodes.number for nodes in piece_nodes])
    error = max(nodes.error for nodes in piece_nodes)
    kinks = np.concatenate([nodes.kinks for nodes in piece_nodes], axis=1)
    error += float(kinks[2].sum())
    infinite = np.isposinf(loss)
    escaped = float(np.exp(log_weight[infinite]).sum())
    keep = np.flatnonzero(~infinite & np.isfinite(log_weight) & np.isfinite(loss))
    order = keep[np.argsort(loss[keep])]
    loss, log_weight = loss[order], log_weight[order]
    number, log_spread = number[order], log_spread[order]
    again = np.flatnonzero((np.diff(loss) == 0.0) & (number[:-1] < 0) & (number[1:] < 0)) + 1
    if again.size:  # atoms at one and the same loss
        first = np.delete(np.arange(loss.size), again)
        loss, number, log_spread = loss[first], number[first], log_spread[first]
        log_weight = np.logaddexp.reduceat(log_weight, first)
    atomic = number < 0
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
            partial=True,
            beyond=(0.0, 0.0),
            kinks=kinks,
        )
    log_weight, weight, mean, total = _normalised(log_weight, loss, escaped, step.name)
    # The mass of the density is 1: what the nodes miss of it was not seen, whatever it holds.
    error += max(abs(total - 1.0) - MASS_ROUNDED, 0.0)
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
        beyond=_added(n.beyond for n in piece_nodes),
        beyond_reversed=_added(n.beyond_reversed for n in piece_nodes),
        panels=tuple(
            (piece, *nodes.panels)
            for piece, out, nodes in zip(step.pieces, escaping, piece_nodes[1:], strict=True)
            if nodes.panels is not None and not out
        ),
        kinks=kinks,
    )


def _added(pairs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    first, second = zip(*pairs, strict=True)
    return sum(first), sum(second)


def _numbered(counts: Sequence[Index]) -> Index:
    """Return the pieces' node numbers one after the other, a panel left free between pieces."""
    numbers, first = [], 0
    for count in counts:
        numbers.append(np.where(count < 0, count, count + first))
        first += (int(count.max(initial=-1)) // ORDER + 2) * ORDER
    return np.concatenate(numbers)


def escapes(piece: SmoothPiece) -> bool:
    """Return whether Q vanishes on the piece, so that its loss is infinite."""
    return bool(np.isposinf(piece.loss(np.asarray([inner_place(piece)]))).all())


def inner_place(piece: SmoothPiece) -> float:
    """Return some point of the piece."""
    low, high = piece.lower, piece.upper
    if np.isfinite(low) and np.isfinite(high):
        return low if piece.integer else 0.5 * (low + high)
    if np.isfinite(low):
        return low + 1.0
    return high - 1.0 if np.isfinite(high) else 0.0


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
    def points(self) -> int:
        """The number of its points."""
        return self.weight.size

    def log_characteristic(self, y: Array) -> Complex:
        """Return log E_t e^{iy(L − m)} = log φ_t(y) − iym, relative to itself near y = 0."""
        flat = oscillation_sum(y.ravel(), self.deviation, self.weight)
        return log_one_plus(flat).reshape(y.shape)

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
            lower = math.fsum(
                math.comb(j - 1, i - 1) * cumulants[i] * moments[j - i] for i in range(2, j - 1)
            )
            cumulants.append(moments[j] - lower)
        return np.asarray(cumulants[1 : order + 1])

    def log_bound(self, y: Array) -> Array:
        """Return an estimated bound on log |φ_t| between neighbours of rising y, beyond the last.

        Before the last, of all that lies beyond as well, but for what shows near the median loss.
        """
        panels = self.nodes.whole_panels
        decay = panel_decay(self.weight[panels.index], panels.slope, panels.joined)
        far = decay.log_bound(y)
        far[:-1] = np.minimum(far[:-1], near_bound(self.weight, self.deviation, y))
        return far

    def expansion(self, y: float) -> Expansion:
        """Return φ as exponentials at atoms and ends of stretches, of the order best at a y."""
        panels, atomic = self.nodes.whole_panels, self.nodes.atomic
        weight, loss = self.weight[panels.index], self.nodes.loss[panels.index]
        decay = panel_decay(weight, panels.slope, panels.joined)
        turning = {
            k: branches(panels.slope[k], weight[k]) for k in np.flatnonzero(decay.turning).tolist()
        }
        atoms = self.nodes.loss[atomic], self.weight[atomic]
        expansions = [decay.expansion(order, y, loss, atoms, turning) for order in _ORDERS]
        return min(
            expansions, key=lambda expansion: float(expansion.residual_size(np.asarray([y]))[0])
        )

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
        return float(excess(self.nodes, np.asarray([self.tilt]))[0])


def excess(nodes: NodeSet, tilts: Array) -> Array:
    """Return K(t) − t·μ for several tilts: log E e^{t(L−μ)}, built from e^x − 1 − x near zero."""
    rows = max(1, BLOCK // max(nodes.centred.size, 1))
    if tilts.size > rows:
        return np.concatenate(
            [excess(nodes, tilts[i : i + rows]) for i in range(0, tilts.size, rows)]
        )
    scaled = np.multiply.outer(tilts, nodes.centred)
    exponent = nodes.log_weight + scaled
    top = exponent.max(axis=1, initial=-math.inf)
    near = np.zeros(tilts.size, dtype=bool) if nodes.partial else top < OVERFLOW
    values = np.empty(tilts.size)
    if near.any():
        values[near] = _from_growths(nodes, scaled[near])
    if not near.all():
        far = ~near
        total = np.exp(exponent[far] - top[far, None]).sum(axis=1)
        values[far] = top[far] + np.log(total)
    return values


def _from_growths(nodes: NodeSet, scaled: Array) -> Array:
    """Return log E e^x from e^x − 1 − x near zero, x being `scaled`, a row for each tilt."""
    near = np.minimum(scaled, LARGE)
    ratio = exponential_remainder(near) @ nodes.weight
    if scaled.max(initial=0.0) > LARGE:
        # Beside e^x there, 1 + x is all that counts; the weight may be tiny where e^x is huge.
        grown = np.exp(scaled + nodes.log_weight) - nodes.weight * (1.0 + scaled)
        ratio += np.where(
            scaled > LARGE, grown - nodes.weight * exponential_remainder(near), 0.0
        ).sum(axis=1)
    escaped = nodes.mass_at_infinity
    return np.asarray(np.log1p(ratio / (1.0 - escaped)) + math.log1p(-escaped))


DIRECT_WORK = 1_200_000  # below this many exponentials a plain sum beats the transform
_NEAR_PHASE = 32.0  # radians at the last y: nodes that turn by no more keep their relative accuracy
_PLACES = 48  # of a polynomial that e^{iyd} is to rounding while yd runs over half of that phase
_BLOCK = 1 << 14  # values that stay in a processor's cache
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
    near = np.abs(tilted.deviation) * (step * last) <= _NEAR_PHASE
    remainder = _near_sum(y, tilted.deviation[near], tilted.weight[near])
    weight, deviation = tilted.weight[~near], tilted.deviation[~near]
    if weight.size:
        far = uniform_sum(weight, np.fmod(step * deviation, 2 * np.pi), first, last)
        remainder += far - weight.sum() - 1j * y * float(weight @ deviation)
    return log_one_plus(remainder)


def _near_sum(y: Array, deviation: Array, weight: Array) -> Complex:
    """Return `oscillation_sum` at rising y, on each octave as y times a polynomial."""
    sums = np.empty(y.size, dtype=np.complex128)
    start = 0
    while start < y.size:
        stop = int(max(np.searchsorted(y, 2.0 * y[start]), start + 2 * _PLACES))
        octave = y[start:stop]
        if octave.size <= 2 * _PLACES:
            sums[start:stop] = oscillation_sum(octave, deviation, weight)
        else:
            middle, half = 0.5 * (octave[0] + octave[-1]), 0.5 * (octave[-1] - octave[0])
            places = middle + half * _CHEBYSHEV
            coefficients = _TO_SERIES @ (oscillation_sum(places, deviation, weight) / places)
            for first in range(0, octave.size, _BLOCK):
                block = octave[first : first + _BLOCK]
                value = np.polynomial.chebyshev.chebval((block - middle) / half, coefficients)
                sums[start + first : start + first + block.size] = block * value
        start = stop
    return sums


_DERIVATIVES = 4  # the most integrations by parts
_ORDERS = (1, 2, _DERIVATIVES)  # of a variation; a higher one serves farther out
_ANGLES = np.asarray([0.5, 1.0, 2.0, 3.0])  # a, how far two losses may turn apart
ALL = 1.0 - 1e-15  # of |φ|², that a bound may leave


@dataclass(frozen=True)
class Expansion:
    """φ(y) as Σⱼ Σ_m b_{jm} e^{iyℓⱼ} y^{−m/2} and a rest, for every y that is not small.

    `sizes` are |b_{jm}|, a row for each m = 0, 1, …, and `residual` are the coefficients of powers
    of y^−½ that bound the rest.
    """

    loss: Array
    sizes: Array
    residual: Array

    def main(self, y: Array) -> Array:
        """Return Σⱼ Σ_m |b_{jm}| y^{−m/2}."""
        total = self.sizes.sum(axis=1)
        return _at_root(total, y)

    def residual_size(self, y: Array) -> Array:
        """Return a bound on the rest."""
        return _at_root(self.residual, y)

    def terms(self, y: float) -> tuple[Array, Array]:
        """Return the losses, and the logs of their sizes at a y."""
        size = _at_root(self.sizes, np.asarray([y]))[:, 0]
        kept = size > 0.0
        return self.loss[kept], np.log(size[kept])


@dataclass(frozen=True)
class Decay:
    """The tilted loss density on the panels of its quadrature, as far as it bounds |φ|.

    `left, right`: g, g′, … at the ends of each panel, one row for each derivative. Of many steps at
    once all arrays have an axis for the steps before that of the panels.
    """

    rest: Array  # the mass of what has no density: single values, and panels cut short
    mass: Array  # the mass of each panel
    turned: Array  # √y times its share is at most that, where the loss turns on it, else ∞
    turning: NDArray[np.bool_]  # whether the loss turns on it
    variation: tuple[Array, ...]  # V_k of each panel: an array for each of the orders
    left: Array
    right: Array
    joined: NDArray[np.bool_]  # whether a panel's right end is the next one's left end

    def log_bound(self, y: Array) -> Array:
        """Return an estimated bound on log |φ(y')| for every |y'| ≥ |y|, the y in rising order."""
        best = np.ones((y.size, *np.shape(self.rest)))
        with np.errstate(invalid="ignore"):
            jumps = np.abs(self.right[..., :-1] - self.left[..., 1:])
        mass = np.minimum(self.mass, np.multiply.outer(1.0 / np.sqrt(np.abs(y)), self.turned))
        for order, variation in zip(_ORDERS, self.variation, strict=False):
            powers = np.power.outer(1.0 / np.abs(y), np.arange(1.0, order + 1.0))
            with np.errstate(over="ignore", invalid="ignore"):
                share = np.multiply.outer(powers[:, -1], variation)
                left, right, jump = (
                    np.abs(np.tensordot(powers, ends[:order], 1))
                    for ends in (self.left, self.right, jumps)
                )
                # By parts or not, any choice bounds: what a panel's own mass is not worth, the
                # ends of its neighbours may be.
                for good in (share < mass, share < mass + left + right):
                    total = np.where(good, share, mass).sum(axis=-1) + self.rest
                    inner = self.joined & good[..., :-1] & good[..., 1:]
                    alone_right, alone_left = good.copy(), good.copy()
                    alone_right[..., :-1] &= ~inner
                    alone_left[..., 1:] &= ~inner
                    total += np.where(alone_right, right, 0.0).sum(axis=-1)
                    total += np.where(alone_left, left, 0.0).sum(axis=-1)
                    total += np.where(inner, jump, 0.0).sum(axis=-1)
                    best = np.fmin(best, total)
        return np.asarray(np.log(np.maximum.accumulate(best[::-1])[::-1]))

    def expansion(
        self,
        order: int,
        y: float,
        loss: Array,
        atoms: tuple[Array, Array],
        turning: Mapping[int, Sequence[Branch]],
    ) -> Expansion:
        """Return φ with as many integrations by parts, on those panels where they serve at a y.

        `loss`: at the nodes of panels, and `turning`: the branches of panels that have some.
        """
        variation = self.variation[_ORDERS.index(order)]
        left, right = self.left[:order].copy(), self.right[:order].copy()
        with np.errstate(over="ignore", invalid="ignore"):
            good = variation * y**-order < self.mass
        good &= np.isfinite(left).all(axis=0) & np.isfinite(right).all(axis=0)
        ends = (loss @ ENDS).T
        kinks = [atoms[0]]
        rows = [_at_power(atoms[1], 0, order)]
        residual: Array = np.zeros(2 * order + 3)
        for panel, sides in turning.items():
            left[:, panel] = right[:, panel] = 0.0
            terms = [side.terms(order) for side in sides]
            residual[0] += math.fsum(
                side.edge_mass for side in sides if not self._is_met(panel, side, turning)
            )
            lacking = sum(_at_root(missing, np.asarray([y]))[0] for _, missing, _ in terms)
            good[panel] = bool(sides) and lacking < self.mass[panel]
            for side, (size, missing, values) in zip(sides, terms, strict=True):
                if not good[panel]:
                    break
                (left, right)[side.end][:, panel] = values
                residual += missing
                kinks.append(interpolated_at(loss[panel], np.asarray([side.value])))
                rows.append(size[:, None])
        regular = good.copy()
        regular[list(turning)] = False
        both = self.joined & good[:-1] & good[1:]
        first = good & ~np.append(False, self.joined)
        last = good & ~np.append(self.joined, False)
        for values, end, which in ((left, ends[0], first), (right, ends[1], last)):
            kinks.append(end[which])
            rows.append(_at_power(np.abs(values[:, which]), slice(2, 2 * order + 1, 2), order))
        # Next to a panel whose mass alone is known an end is no kink, and no other one meets it.
        alone_left = good & ~first & ~np.append(False, both)
        alone_right = good & ~last & ~np.append(both, False)
        lone = np.abs(left[:, alone_left]).sum(axis=1) + np.abs(right[:, alone_right]).sum(axis=1)
        with np.errstate(invalid="ignore"):  # of derivatives beyond the doubles
            kink = np.nan_to_num(np.abs(right[:, :-1] - left[:, 1:])[:, both], nan=np.inf)
        lone += kink.sum(axis=1)
        residual[2 : 2 * order + 1 : 2] += lone
        residual[0] += self.mass[~good].sum() + np.maximum(self.rest - atoms[1].sum(), 0.0)
        residual[2 * order] += variation[regular].sum()
        return Expansion(np.concatenate(kinks), np.concatenate(rows, axis=1), residual)

    def _is_met(self, panel: int, side: Branch, turning: Mapping[int, Sequence[Branch]]) -> bool:
        """Return whether a side of the panel that adjoins begins where that of a panel does."""
        other = panel + (1 if side.end == 0 else -1)
        if not 0 <= other < self.mass.size or not self.joined[min(panel, other)]:
            return False
        return any(facing.end != side.end and facing.edge_mass for facing in turning.get(other, ()))


def _at_root(coefficients: Array, y: Array) -> Array:
    """Return sums of powers of y^−½."""
    return np.asarray(np.polynomial.polynomial.polyval(1.0 / np.sqrt(y), coefficients))


def _at_power(size: Array, power: int | slice, order: int) -> Array:
    """Return sizes as the coefficients of a power of y^−½, or of several."""
    rows: Array = np.zeros((2 * order + 3, size.shape[-1]))
    rows[power] = size
    return rows


def decays(parts: Sequence[Tilted]) -> Decay:
    """Return the same of several steps at once, each with panels of no mass at its end."""
    panels = [part.nodes.whole_panels for part in parts]
    length = max(1, *(len(part_panels.index) for part_panels in panels))
    weight = np.zeros((len(parts), length, ORDER))
    slope, joined = np.ones_like(weight), np.zeros((len(parts), length - 1), dtype=np.bool_)
    for k, (part, part_panels) in enumerate(zip(parts, panels, strict=True)):
        weight[k, : len(part_panels.index)] = part.weight[part_panels.index]
        slope[k, : len(part_panels.index)] = part_panels.slope
        joined[k, : part_panels.joined.size] = part_panels.joined
    return panel_decay(weight, slope, joined)


def panel_decay(weight: Array, slope: Array, joined: NDArray[np.bool_]) -> Decay:
    """Return the decay from weights and ℓ′ per half a panel, the last axes panels and nodes."""
    turned = np.full(weight.shape[:-1], np.inf)
    # whether ℓ′ has a zero on a panel, or near an end
    ends = slope @ ENDS
    bends = (slope @ DERIVATIVE.T) @ ENDS
    least = np.minimum(slope.min(-1), ends.min(-1))
    largest = np.maximum(slope.max(-1), ends.max(-1))
    turning = (np.abs(ends) <= NEAR_END * np.abs(bends)).any(axis=-1)
    turning |= (least <= 0.0) & (largest >= 0.0)
    turning &= weight.max(axis=-1) > 0.0
    for index in zip(*np.nonzero(turning), strict=True):
        sides = branches(slope[index], weight[index])
        if sides:
            turned[index] = math.fsum(side.most for side in sides)
    with np.errstate(all="ignore"):
        # A node stands for its weight times |ℓ′|, both per half a panel's width.
        derivatives = [weight / (np.abs(slope) * WEIGHTS)]
        for _ in range(_DERIVATIVES - 1):
            derivatives.append((derivatives[-1] @ DERIVATIVE.T) / slope)
        at_ends = [_finite(d @ ENDS) for d in derivatives]
        variation = []
        for k in _ORDERS:
            low, high = at_ends[k - 1][..., :1], at_ends[k - 1][..., 1:]
            path = np.concatenate([low, derivatives[k - 1], high], axis=-1)
            total = _finite(np.abs(path[..., 1:] - path[..., :-1]).sum(axis=-1))
            # Where ℓ′ has a zero, the density has a pole that no polynomial follows.
            variation.append(np.where(turning, np.inf, total))
    mass = weight.sum(axis=-1)
    return Decay(
        np.maximum(0.0, 1.0 - mass.sum(axis=-1)),
        mass,
        turned,
        turning,
        tuple(variation),
        np.stack([e[..., 0] for e in at_ends]),
        np.stack([e[..., 1] for e in at_ends]),
        joined,
    )


def _finite(values: Array) -> Array:
    """Return the values with +inf where there are none."""
    return np.where(np.isnan(values), np.inf, values)


def near_bound(weight: Array, deviation: Array, y: Array) -> Array:
    """Return a bound on log |φ(y')| between every two neighbours of rising y.

    With two independent losses L and L', as 1 − cos u ≥ c u² for |u| ≤ a,

        1 − |φ(y)|² = E(1 − cos y(L − L')) ≥ c y² E[(L − L')²; L, L' ∈ I],

    I of length a/y around the median of L. That shows how |φ|ⁿ of many steps falls.
    """
    below = np.zeros((3, deviation.size + 1))
    below[0, 1:], below[1, 1:] = weight, weight * deviation
    below[2, 1:] = below[1, 1:] * deviation
    np.cumsum(below, axis=1, out=below)
    median = deviation[min(int(below[0, 1:].searchsorted(0.5)), deviation.size - 1)]
    half = np.divide.outer(0.5 * _ANGLES, y[1:])
    low = deviation.searchsorted(median - half)
    high = deviation.searchsorted(median + half, side="right")
    mass, first, second = below[:, high] - below[:, low]
    curved = (1.0 - np.cos(_ANGLES)) / _ANGLES**2
    lost = 2.0 * y[:-1] ** 2 * (curved[:, None] * (mass * second - first * first)).max(axis=0)
    return np.asarray(0.5 * np.log1p(-np.clip(lost, 0.0, ALL)))
