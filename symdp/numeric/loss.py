"""Loss laws in numbers: the CGF, its derivatives and the characteristic function at any tilt.

**The window of usual tilts.** Sums of many steps tilt each of them by a small part of 1/σ, and turn
it by little more than that: where tilts up to ±3 or more hardly change the moments, one set serves
them all. It reaches as far as that is so, and the losses that matter there are hardly farther apart
than near 0.

Farther out each window is cut in halves until K hardly bends in the part that is asked for: few of
its tilts have losses in common with the others, as of little noise.

**Beyond doubles.** Sums of many steps lie on a lattice whose spacing n multiplies, and ε next to
the largest loss is told from it by the last digits: both are read off balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from symdp.emit.exact import middle_of
from symdp.errors import AccuracyError
from symdp.numeric.elementary import weighted_sums
from symdp.numeric.integers import sampled_integers
from symdp.numeric.nodes import (
    LARGE,
    OVERFLOW,
    NodeSet,
    Tilted,
    build_nodes,
    escapes,
    excess,
    flat_nodes,
    inner_place,
)
from symdp.numeric.outline import NEGLIGIBLE, Outline, log_row_sums, loss_range, widened
from symdp.numeric.step import Array, SmoothPiece, Step
from symdp.tolerances import ABOVE_ROUNDING, LOSS_ROUNDED

if TYPE_CHECKING:
    from symdp.numeric.step import Moment

_LEVELS = 60  # of windows of tilts, each twice as wide as the last
_FAR_LEVEL = 4  # beyond this a window of tilts no longer reaches back to 0
_SLOW = 0.25  # the frequency of band 0
_BEYOND = 2.0  # times the frequency asked for, at most
_MOST_TILTED = 8  # tilted laws that are kept: a line asks for the same one again and again
_LIKELY = 1.0  # standard deviations⁻¹ of a tilted loss, up to which few steps ask for frequencies
_LITTLE_TURN, _UNSEEN = 5.0, 40.0  # of all losses but those e-folds below the likeliest
_WORTHWHILE = 8.0  # e-folds between tilts 0 and t, for what matters to one not to matter to both
_SAME = 2e-14  # relative: losses that lie as close are one value, but for rounding
# words of a refusal
_UNSEEN_LOSS = (
    "no loss of {} is seen so far out: doubles cannot tell so large ones apart; ask for another "
    "epsilon"
)
_Part = tuple[float, float] | None  # of a window of far tilts
_Key = tuple[int, int, float, _Part]  # window, band and part


class LossLaw:
    """The privacy loss of one step in one direction; its node sets are kept."""

    goes_on = False  # whether there are larger losses than those of `loss_bounds`
    uncertain_mass = 0.0  # probability whose losses are not known, the large ones taken as infinite

    def __init__(
        self,
        step: Step,
        loss_bounds: tuple[float, float] | None,
        is_reversible: bool = False,
        other: LossLaw | None = None,
        only_q: Sequence[SmoothPiece] = (),
        read_moment: Callable[[], Moment | None] | None = None,
    ) -> None:
        self.step = step
        self.is_reversible = is_reversible
        self._other = other
        self._only_q = tuple(only_q)  # where P vanishes, with the density of Q
        self._read_moment = read_moment
        self._bounds = loss_bounds
        self._sets: dict[_Key, NodeSet] = {}
        self._outlines_of: dict[tuple[float, ...], list[Outline]] = {}  # by the ends of tilts
        self._parts: dict[tuple[int, int, bool], list[_Part]] = {}
        self._refused: dict[tuple[int, int, _Part], tuple[float, str]] = {}  # frequency, and why
        self._tilted: dict[float, Tilted] = {}

    def reversed(self) -> LossLaw:
        """Return the law with P and Q exchanged, whose K is K(−1 − z), with the same nodes."""
        low, high = self.loss_bounds
        only_p = [piece for piece in self.step.pieces if escapes(piece)]
        pieces = [piece.reversed() for piece in self.step.pieces if piece not in only_p]
        step = Step(self.step.name, (*pieces, *self._only_q))
        return LossLaw(
            step,
            (-high, -low),
            is_reversible=True,
            other=self,
            only_q=only_p,
        )

    @cached_property
    def domain(self) -> tuple[float, float]:
        """The tilts between which the moment generating function is finite."""
        if self._other is None:
            return tilt_domain(self.step)
        low, high = self._other.domain
        return -1.0 - high, -1.0 - low

    @cached_property
    def loss_bounds(self) -> tuple[float, float]:
        """The essential range of the finite loss."""
        if self._bounds is not None:
            if self._other is not None:
                return self._bounds
            return widened(self._bounds, self.outlines)
        low, high = loss_range(self._outlines, self.step.point_loss)
        is_escaping = any(map(escapes, self.step.pieces))
        has_infinite = self.step.point_loss.size or is_escaping
        if high == -math.inf and not has_infinite:
            raise AccuracyError(
                f"no finite loss of {self.step.name} is seen in doubles, as where the "
                "sensitivity is enormous beside the noise"
            )
        return low, high

    @property
    def outlines(self) -> list[Outline]:
        """Where the mass of every piece lies; what is learned of them changes no other answer."""
        return [outline.copy() for outline in self._outlines]

    @cached_property
    def _outlines(self) -> list[Outline]:
        return [Outline(piece) for piece in self.step.pieces]

    @cached_property
    def base(self) -> NodeSet:
        """The node set around tilts −1 and 0."""
        return self.nodes(0.0, 0.0)

    @cached_property
    def mass_at_infinity(self) -> float:
        """P(Q = 0)."""
        has_infinite_point = np.isposinf(self.step.point_loss).any()
        if has_infinite_point or any(map(escapes, self.step.pieces)):
            return self.base.mass_at_infinity
        return 0.0

    def is_resolved_at(self, tilt: float) -> bool:
        """Whether K(t) is known, or known to be infinite: a table ends before its law does."""
        return not 0.0 < self.mass_at_infinity <= self.uncertain_mass

    def known_profile(self, epsilon: float) -> tuple[float, float, float, float] | None:
        """Return log δ, log(1 − δ), δ's error and log(e^ε Q(L > ε)), finite, if known."""
        return None

    @cached_property
    def moment(self) -> Moment | None:
        """M as a sum of rational functions times exponentials, None where it is none.

        Such an M is infinite from some tilt on, or grows like e^{bt}, b the end of the losses.
        """
        if self._other is not None:
            mirrored = self._other.moment
            return None if mirrored is None else mirrored.reversed()
        if self._read_moment is None:
            return None
        for loss, tilt in zip(self.loss_bounds, self.domain, strict=True):
            if math.isinf(loss) and math.isinf(tilt):
                return None
        return self._read_moment()

    @cached_property
    def precise_losses(self) -> tuple[Fraction, ...]:
        """Losses that are all single values beyond doubles, rising: all, or ends and samples."""
        return precise_losses(self.step, self.outlines)

    @cached_property
    def precise_top(self) -> Fraction | None:
        """The largest loss beyond doubles, None where that is not known."""
        return precise_top(self.step, self.outlines, self.loss_bounds[1])

    def near_top(self, below: float) -> tuple[float, float, float]:
        """Return the logs of the probability of the largest loss, and of losses up to `below` less.

        The third number is how far what counts as the largest lies apart, 0 but for rounding.
        """
        top = self.loss_bounds[1]
        base = self.base
        size = 1.0 + abs(top)
        is_largest = base.atomic & (base.loss >= top - ABOVE_ROUNDING * size)
        is_close = (base.loss >= top - below) & ~is_largest
        log_largest = float(np.logaddexp.reduce(base.log_weight[is_largest]))
        log_close = float(np.logaddexp.reduce(base.log_weight[is_close]))
        width = top - float(base.loss[is_largest].min(initial=top))
        if width <= _SAME * size:
            width = 0.0
        return log_largest, log_close, width

    @cached_property
    def is_spread(self) -> bool:
        """Whether the loss has a continuous part."""
        return not all(piece.flat or piece.integer for piece in self.step.pieces)

    @cached_property
    def is_closed(self) -> bool:
        """Whether formulas give the integrals of P and Q on every piece."""
        smooth = [piece for piece in self.step.pieces if not piece.flat]
        return bool(smooth) and all(piece.closed is not None for piece in smooth)

    @cached_property
    def rough_scale(self) -> tuple[float, float]:
        """About the mean and the variance of the finite loss."""
        is_finite = np.isfinite(self.step.point_loss)
        points = self.step.point_loss[is_finite]
        masses = np.exp(self.step.point_log_p[is_finite])
        moments_of_points = [masses * points**power for power in range(3)]
        of_points = [float(np.sum(terms)) for terms in moments_of_points]
        moments = [of_points, *(outline.rough_moments() for outline in self._outlines)]
        columns = zip(*moments, strict=True)
        mass, first, second = (math.fsum(column) for column in columns)
        mass = max(mass, 1e-300)
        mean = first / mass
        variance = second / mass - mean**2
        return mean, max(variance, 0.0)

    @cached_property
    def has_atoms(self) -> bool:
        """Whether some single loss value has positive probability."""
        if self.step.point_loss.size:
            return True
        return any(piece.flat or piece.integer for piece in self.step.pieces)

    @cached_property
    def atom_gap(self) -> float:
        """The smallest distance of two atoms, inf where there are none."""
        gaps = np.diff(self.base.loss[self.base.atomic])
        return float(gaps[gaps > 0].min(initial=math.inf))

    @cached_property
    def _usual_tilts(self) -> tuple[int, int, float] | None:
        """The levels and the frequency of the one node set that serves all usual tilts, or None."""
        if self._other is not None:
            mirrored = self._other._usual_tilts
            if mirrored is None:
                return None
            lower, upper, frequency = mirrored
            return upper, lower, frequency
        outlines = [outline for outline in self.outlines if not escapes(outline.piece)]
        if not self.is_spread or not outlines or self.step.point_loss.size:
            return None
        low, high = self.domain
        nearest = min(high, -1.0 - low)
        return common_window(outlines, nearest, self._edge)

    def _edge(self, level: int, upper: bool) -> float:
        """Return the tilt at the end of window `level`, always inside the domain."""
        low, high = self.domain
        end = high if upper else -1.0 - low
        reach = 2.0**level - 1.0
        if not math.isinf(end):
            reach = reach / (1.0 + reach / end) if end > 0 else 0.0
        return reach if upper else -1.0 - reach

    def _level(self, tilt: float) -> tuple[int, int]:
        """Return the window (lower level, upper level) that contains a tilt."""
        low, high = self.domain
        if not (low < tilt < high or -1.0 <= tilt <= 0.0):
            raise AccuracyError(
                f"tilt {tilt:.6g} lies outside ({low:.6g}, {high:.6g}), where the moment "
                f"generating function of {self.step.name} is finite"
            )
        for level in range(_LEVELS):
            is_usable = level > 0 or high <= 0 or tilt <= 0
            if is_usable and tilt <= self._edge(level, upper=True):
                break
        else:
            raise AccuracyError(f"tilt {tilt:.6g} is too close to the end of the domain {high:.6g}")
        if tilt >= -1.0:
            return 0, max(level, 1) if high > 0 else 0
        for level in range(_LEVELS):
            if tilt >= self._edge(level, upper=False):
                return level, 0
        raise AccuracyError(f"tilt {tilt:.6g} is too close to the end of the domain {low:.6g}")

    def place(self, tilt: float, frequency: float) -> tuple[_Key, list[float]]:
        """Return the window, band and part that a tilt and a frequency are in, and its ends."""
        common = self._common_window(tilt, frequency)
        window = common or self._window(tilt, frequency)
        lower, upper, highest = window
        part: _Part = None
        if window != common:
            part = self._part_of_window(tilt, lower, upper, highest > 0)
        if part is not None:
            # At far tilts most of P has no weight, and would oscillate too fast to resolve.
            return (*window, part), list(part)
        left = self._edge(lower, upper=False)
        right = self._edge(upper, upper=True)
        ends = [left, -1.0, 0.0, right]
        return (*window, part), ends

    def nodes(self, tilt: float, frequency: float) -> NodeSet:
        """Return a node set that serves every tilt of the window around `tilt`, |y| ≤ frequency."""
        key, ends = self.place(tilt, frequency)
        node_set = self._sets.get(key)
        if node_set is not None:
            return node_set
        lower, upper, highest, part = key
        is_common = (lower, upper, highest) == self._common_window(tilt, frequency)
        if is_common and self._other is not None:
            mass = 0.0
            if any(map(escapes, self.step.pieces)):
                only_p = [flat_nodes(o).log_weight for o in self.outlines if escapes(o.piece)]
                mass = sum(float(np.exp(logs).sum()) for logs in only_p)
            node_set = self._other.nodes(-0.5, highest).reversed(mass)
            self._sets[key] = node_set
            return node_set
        reference = None if part is None else self.base
        refused = (lower, upper, part)
        refused_frequency, reason = self._refused.get(refused, (math.inf, ""))
        if highest >= refused_frequency:
            raise AccuracyError(reason)
        try:
            outlines = self._outlines_of.setdefault(tuple(ends), self.outlines)
            node_set = build_nodes(self.step, outlines, ends, highest, reference)
        except AccuracyError as error:
            self._refused[refused] = (highest, str(error))
            raise
        self._sets[key] = node_set
        return node_set

    def _part_of_window(self, tilt: float, lower: int, upper: int, turns: bool) -> _Part:
        """Return the part of a far window that has a node set of its own, None where none has."""
        level = max(lower, upper)
        if level <= _FAR_LEVEL:
            is_heavy = self.domain[0] == -1.0 or self.domain[1] == 0.0
            if turns and is_heavy:
                return self._octave_of_end(tilt, upper)
            return None
        parts = self._parts.setdefault((lower, upper, turns), [])
        for part in parts:
            if part is None or part[0] < tilt <= part[1]:
                return part
        is_upper = upper > lower
        left, right = sorted(self._edge(k, upper=is_upper) for k in (level - 1, level))
        tilts = [left, right]
        all_tilts = np.asarray(tilts)
        growth = self._log_masses(tilts) - all_tilts * self.base.mean
        new_part: _Part = None
        if turns or float(growth.min()) > _WORTHWHILE:
            new_part = far_part(tilt, left, right, self._log_masses)
        parts.append(new_part)
        return new_part

    def _octave_of_end(self, tilt: float, upper: int) -> _Part:
        """Return the tilts within an octave of an end at −1 or 0, where losses are enormous."""
        least = -1.0
        most = self._edge(upper, upper=True)
        whole = (least, most)
        if self.domain[1] == 0.0 and tilt < 0.0:
            near = math.floor(math.log2(-tilt))
            least = max(least, -(2.0 ** (near + 1)))
            most = -(2.0**near)
        if self.domain[0] == -1.0 and tilt > -1.0:
            near = min(math.floor(math.log2(1.0 + tilt)), 0)
            least = max(least, 2.0**near - 1.0)
            if near != 0:
                most = min(most, 2.0 ** (near + 1) - 1.0)
        if (least, most) == whole:
            return None
        return least, most

    def _nodes_with_losses(self, tilt: float, frequency: float) -> NodeSet:
        """Return the node set at a tilt; AccuracyError if no loss can be seen so far out."""
        nodes = self.nodes(tilt, frequency)
        if not nodes.loss.size:
            raise AccuracyError(_UNSEEN_LOSS.format(self.step.name))
        return nodes

    def _window(self, tilt: float, frequency: float) -> tuple[int, int, float]:
        """Return the levels of the window around a tilt, and the frequency of a band."""
        lower, upper = self._level(tilt)
        if self._usual_tilts is not None and max(lower, upper) <= _FAR_LEVEL:
            return lower, upper, self._band(frequency, self._usual_tilts[2])
        # Bands are powers of four of a frequency; the lowest of all that hardly turns the loss.
        is_slow = frequency <= _SLOW
        if is_slow and not (frequency > 0 and self._turns_losses(tilt, frequency)):
            return lower, upper, 0.0
        # What asks for a frequency soon asks for twice as much, of few steps for a few σ⁻¹: one set
        # of a band serves both.
        deviation = math.sqrt(self.tilted(tilt).variance)
        likely = _LIKELY / max(deviation, 1e-300)
        highest = max(frequency, min(likely, _BEYOND * frequency))
        return lower, upper, self._band(highest, _SLOW)

    def _band(self, frequency: float, least: float) -> float:
        """Return the smallest power of four times the least frequency that is not below another."""
        ratio = max(frequency / least, 1e-300)
        power = max(0, math.ceil(math.log(ratio, 4.0)))
        return least * 4.0**power

    def _common_window(self, tilt: float, frequency: float) -> tuple[int, int, float] | None:
        """Return the window of usual tilts and the frequency of a band, None for a tilt beyond."""
        if self._usual_tilts is None:
            return None
        lower, upper, highest = self._usual_tilts
        if tilt < self._edge(lower, upper=False):
            return None
        if tilt > self._edge(upper, upper=True):
            return None
        return lower, upper, self._band(frequency, highest)

    def window(self, tilt: float) -> tuple[float, float]:
        """Return between which tilts the node set around a tilt serves at no further cost."""
        lower, upper, _ = self._common_window(tilt, 0.0) or self._window(tilt, 0.0)
        return self._edge(lower, upper=False), self._edge(upper, upper=True)

    def _turns_losses(self, tilt: float, frequency: float) -> bool:
        """Return whether a frequency turns losses that count under a tilt by more than a little."""
        nodes = self.nodes(tilt, 0.0)
        exponent = nodes.log_weight + tilt * nodes.centred
        top = exponent.max(initial=-math.inf)
        seen = nodes.centred[exponent > top - _UNSEEN]
        if not seen.size:
            return False
        return frequency * float(np.ptp(seen)) > _LITTLE_TURN

    def _log_masses(self, tilts: Sequence[float]) -> Array:
        """Return log E e^{tL} of the finite losses at several tilts, to within a few units."""
        outlines = [outline for outline in self.outlines if not escapes(outline.piece)]
        if not outlines:
            return np.full(len(tilts), -math.inf)
        logs = [outline.log_masses(tilts) for outline in outlines]
        return np.asarray(np.max(logs, axis=0))

    def transform(self, tilts: Array) -> Array:
        """Return K(t) − t·E L for several tilts."""
        tilts = np.asarray(tilts, dtype=np.float64)
        result = np.full(tilts.size, np.nan)
        from_farthest = tilts[np.argsort(-np.abs(tilts))]
        for tilt in from_farthest.tolist():
            is_waiting = np.isnan(result)
            if is_waiting[tilts == tilt].any():
                nodes = self._nodes_with_losses(tilt, 0.0)
                is_served = is_waiting & _served(nodes, tilt, tilts)
                result[is_served] = excess(nodes, tilts[is_served])
        return result

    def rough_cumulants(self, tilts: Array) -> tuple[Array, Array, Array]:
        """Return K(t) − t E L, K′(t) − E L and K″(t) for several tilts, sums that may cancel."""
        excess = np.empty(tilts.size)
        mean = np.empty(tilts.size)
        variance = np.empty(tilts.size)
        is_waiting = np.ones(tilts.size, dtype=bool)
        while is_waiting.any():
            waiting = tilts[is_waiting]
            farthest = float(waiting[np.abs(waiting + 0.5).argmax()])
            nodes = self._nodes_with_losses(farthest, 0.0)
            is_served = is_waiting & _served(nodes, farthest, tilts)
            is_waiting &= ~is_served
            exponent = nodes.log_weight + np.multiply.outer(tilts[is_served], nodes.centred)
            top = exponent.max(axis=1, keepdims=True)
            weight = np.exp(exponent - top)
            total = weight.sum(axis=1)
            excess[is_served] = top[:, 0] + np.log(total)
            # No product of matrices, whose rounding depends on how many tilts there are.
            first = (weight * nodes.centred).sum(axis=1) / total
            squares = nodes.centred * nodes.centred
            second = (weight * squares).sum(axis=1) / total
            variance[is_served] = second - first * first
            mean[is_served] = first
        return excess, mean, variance

    def tilted(self, tilt: float, frequency: float = 0.0) -> Tilted:
        """Return the law tilted by `tilt`, from nodes that resolve |y| ≤ frequency."""
        nodes = self._nodes_with_losses(tilt, frequency)
        tilted = self._tilted.get(tilt)
        if tilted is None or tilted.nodes is not nodes:
            if len(self._tilted) >= _MOST_TILTED:
                self._tilted.clear()
            tilted = self._tilted_by(nodes, tilt)
            self._tilted[tilt] = tilted
        return tilted

    def _tilted_by(self, nodes: NodeSet, tilt: float) -> Tilted:
        scaled = tilt * nodes.centred
        exponent = nodes.log_weight + scaled
        top = float(exponent.max())
        weight = np.exp(exponent - top)
        total = float(weight.sum())
        weight /= total
        shift = float(weighted_sums(nodes.centred, weight))
        deviation = nodes.centred - shift
        residue = float(weighted_sums(deviation, weight))
        shift += residue
        deviation -= residue
        is_precise = not nodes.partial and top < OVERFLOW
        if is_precise:
            # As E L − μ = 0, the shift is what the growth e^{t(L−μ)} − 1 adds: of one sign, and so
            # accurate relative to itself, however small the tilt.
            large_growth = np.exp(scaled + nodes.log_weight) - nodes.weight
            small_growth = nodes.weight * np.expm1(np.minimum(scaled, LARGE))
            growth = np.where(scaled > LARGE, large_growth, small_growth)
            total = 1.0 - nodes.mass_at_infinity + float(growth.sum())
            shift = float(weighted_sums(nodes.centred, growth)) / total
        atomic = 0.0
        if self.has_atoms:
            atomic = float(weight[nodes.atomic].sum())
        return Tilted(
            tilt=tilt,
            nodes=nodes,
            shift=shift,
            variance=float(weighted_sums(deviation * deviation, weight)),
            weight=weight,
            deviation=deviation,
            atomic=atomic,
            is_precise=is_precise,
        )


def _served(nodes: NodeSet, tilt: float, tilts: Array) -> NDArray[np.bool_]:
    """Return which tilts a node set of one of them serves: back to 0, what lies between."""
    if nodes.partial:
        return np.asarray(tilts == tilt)
    is_above_least = tilts >= min(tilt, -1.0)
    is_below_largest = tilts <= max(tilt, 0.0)
    return np.asarray(is_above_least & is_below_largest)


_USUAL, _WIDEST = 3, 12  # levels of usual tilts, and of the widest window
_HARDLY = 2.0  # e-folds by which E e^{t(L − E L)} may grow there
_FARTHER = 1.5  # times as far apart as under usual tilts: more would ask for many more nodes
_INNER = 0.25  # of the way to the end of the domain
_FREQUENT = 0.5  # its frequency, in standard deviations⁻¹ of the loss, for hundreds of steps
_MOST_BENT = 1000.0  # e-folds by which K bends in a part of far tilts: about 13 tilts cover it
_CHEAP_TURN = 30.0  # of all its losses, which some ten panels resolve


def common_window(
    outlines: Sequence[Outline],
    nearest: float,
    edge: Callable[[int, bool], float],
) -> tuple[int, int, float] | None:
    """Return levels and frequency of the window of usual tilts, None where none is."""
    moments = [outline.rough_moments() for outline in outlines]
    mass, first, second = np.sum(moments, axis=0).tolist()
    if not (0.5 < mass < 2.0 and 0.0 < second < math.inf):
        return None
    mean = first / mass
    deviation = math.sqrt(second / mass)
    end = _INNER * nearest
    levels = [level for level in range(2, _WIDEST + 1) if edge(level, True) < end]
    if not levels:
        return None
    edges = [(edge(level, False), edge(level, True)) for level in levels]
    tilts = np.asarray(edges).ravel()
    shells = [outline.shells(tilts.tolist()) for outline in outlines]  # of all levels at once
    logs_of_pieces = [log_row_sums(rows) for rows in shells]
    log_masses = np.logaddexp.reduce(logs_of_pieces, axis=0)
    growths = log_masses - tilts * mean
    growth = growths.reshape(-1, 2)
    least, largest = _loss_ranges(outlines, shells)
    lengths = np.max(largest, axis=1) - np.min(least, axis=1)
    window = None
    usual = math.inf
    for level, grown, length in zip(levels, growth.max(axis=1), lengths.tolist(), strict=True):
        if not (grown < _HARDLY and length <= _FARTHER * usual):
            break
        cheap = _CHEAP_TURN / max(length, 1e-300)
        window = (level, max(_FREQUENT / deviation, cheap))
        if level == _USUAL:
            usual = length
    if window is None:
        return None
    # To a side where the moments hardly grow it reaches farther: only rare losses end the other.
    symmetric, frequency = window
    both = levels.index(symmetric)
    farthest = _FARTHER * lengths[levels.index(min(symmetric, _USUAL))]
    sides = []
    for side in (0, 1):
        other = 1 - side
        lowest = np.minimum(least[:, side], least[both, other])
        highest = np.maximum(largest[:, side], largest[both, other])
        is_usual = (growth[:, side] < _HARDLY) & (highest - lowest <= farthest)
        farther = 0
        while both + farther + 1 < len(levels) and is_usual[both + farther + 1]:
            farther += 1
        sides.append(min(symmetric + farther, max(symmetric, 2 * _USUAL)))
    lower, upper = sides
    return lower, upper, frequency


def far_part(
    tilt: float, left: float, right: float, log_masses: Callable[[Sequence[float]], Array]
) -> tuple[float, float]:
    """Return the part of a window of far tilts, by halving, that holds a tilt and bends little."""
    while True:
        middle = 0.5 * (left + right)
        first, centre, last = log_masses([left, middle, right]).tolist()
        bend = 0.5 * (first + last) - centre
        if not bend > _MOST_BENT:
            return left, right
        if tilt <= middle:
            right = middle
        else:
            left = middle


def _loss_ranges(outlines: Sequence[Outline], shells: Sequence[Array]) -> tuple[Array, Array]:
    """Return the ends of losses that matter, as far as grids tell, in rows of two tilts."""
    least = np.asarray(math.inf)
    largest = np.asarray(-math.inf)
    for outline, rows in zip(outlines, shells, strict=True):
        if not rows.size:  # a piece with no mass that is a double
            continue
        top = rows.max(axis=1, keepdims=True)
        matters = (rows > top - NEGLIGIBLE) & np.isfinite(outline.loss)
        low = np.where(matters, outline.loss, np.inf).min(axis=1)
        high = np.where(matters, outline.loss, -np.inf).max(axis=1)
        least = np.minimum(least, low)
        largest = np.maximum(largest, high)
    return least.reshape(-1, 2), largest.reshape(-1, 2)


_FAR = np.exp2(np.arange(1.0, 500.0))  # places that show how a density falls towards infinity
_NEAR = np.exp2(-np.arange(1.0, 500.0))  # and towards a finite end

_SMALL, _FALLS = 0.1, 0.8  # of a critical tilt, and of it beside that of nearer shells


def _narrow_scale(piece: SmoothPiece, begin: float, side: float) -> float:
    """Return the distance at which most mass of a side lies, 1 where it is no less."""
    distance = np.append(_NEAR[::-1], 1.0)
    with np.errstate(all="ignore"):
        log_p = piece.log_p(begin + side * distance)
        log_mass = log_p + np.log(distance)
    log_mass = np.nan_to_num(log_mass, nan=-np.inf, posinf=-np.inf)
    return float(distance[log_mass.argmax()])


def _shells_at_end(piece: SmoothPiece, upper: bool) -> tuple[Array, Array]:
    """Return places ever closer to an end, or farther out, and logs of the length at each."""
    end = piece.upper if upper else piece.lower
    side = 1.0 if upper else -1.0
    if np.isfinite(end):
        x = end - side * _NEAR * max(1.0, abs(end))
        x = x[(x > piece.lower) & (x < piece.upper)]
        return x, np.log(np.abs(end - x))
    start = piece.lower if upper else piece.upper
    begin = start if np.isfinite(start) else 0.0
    far = _FAR
    with np.errstate(all="ignore"):
        log_p = piece.log_p(begin + side * far[:2])
        is_narrow = not np.isfinite(log_p).any()
    if is_narrow:
        far = far * _narrow_scale(piece, begin, side)
    return begin + side * far, np.log(far)


def _end_slopes(piece: SmoothPiece, upper: bool) -> tuple[float, float]:
    """Return the (lower, upper) tilts at which the integral stops converging at one end.

    With u the logarithm of the distance, the mass of a shell at that end is e^{log P + tℓ ± u}; it
    dies out exactly while the slope of log P + tℓ ± u stays negative, so the critical tilt is a
    ratio of differences between two far shells, in which constants cancel.
    """
    x, log_length = _shells_at_end(piece, upper)
    with np.errstate(all="ignore"):
        log_p, _, loss = piece.values(x)
        log_mass = log_p + log_length[: x.size]
    is_moderate = np.isfinite(loss) & (np.abs(loss) < 1e300)
    is_usable = np.isfinite(log_mass) & is_moderate
    usable = np.flatnonzero(is_usable)
    if usable.size < 2:
        return -np.inf, np.inf
    last = usable[-1]
    middle = usable[0]
    if usable.size > 4:
        middle = usable[usable.size // 2]
    rise = loss[last] - loss[middle]
    size = max(1.0, abs(loss[last]))
    if abs(rise) <= 1e-9 * size:
        return -np.inf, np.inf  # the loss has a limit here: every tilt converges
    with np.errstate(over="ignore"):
        critical = -(log_mass[last] - log_mass[middle]) / rise
    if not np.isfinite(critical):
        return -np.inf, np.inf
    # A loss that grows faster than the logarithm of the distance leaves no tilt at all: what shells
    # twice as far out (in logarithms) still allow falls towards 0, or −1.
    inner = usable[usable.size // 4]
    with np.errstate(all="ignore"):
        inner_rise = loss[middle] - loss[inner]
        nearer = -(log_mass[middle] - log_mass[inner]) / inner_rise
    edge = 0.0 if rise > 0 else -1.0
    allowed = min(_SMALL, _FALLS * abs(nearer - edge))
    if abs(critical - edge) < allowed:
        critical = edge
    if rise > 0:
        return -np.inf, critical
    return critical, np.inf


def is_heavy(piece: SmoothPiece, upper: bool) -> bool:
    """Return whether one end of a piece leaves no tilt t > 0 with E e^{tL} < ∞."""
    return tilt_domain(Step("", (piece,)), (upper,))[1] == 0.0


def tilt_domain(step: Step, ends: tuple[bool, ...] = (False, True)) -> tuple[float, float]:
    """Return (t₋, t₊), the interior of {t : E e^{tL} < ∞}; it contains (−1, 0)."""
    low = -math.inf
    high = math.inf
    for piece in step.pieces:
        if piece.flat:
            continue
        for upper in ends:
            below, above = _end_slopes(piece, upper)
            low = max(low, float(below))
            high = min(high, float(above))
    # A slope that stays finite but very large belongs to a density lighter than every e^{tℓ}, and
    # one next to −1 or 0 to a tail that ends there.
    if low < -1e6:
        low = -math.inf
    elif low > -1.0 - 1e-9:
        low = -1.0
    if high > 1e6:
        high = math.inf
    elif high < 1e-9:
        high = 0.0
    return low, high


BITS = 140  # carried: n = 10¹² steps leave 100 of them
EXTENDED = 1e-21  # relative: of losses that are known to 22 digits
_KNOWN = 1e-22  # radius of a loss in balls that is known
_BESIDE = 8  # integers on each side of the likeliest
_SPARSE = 32  # places of an outline that are looked at


def precise_losses(step: Step, outlines: Sequence[Outline]) -> tuple[Fraction, ...]:
    """Return the single values of a step's loss, rising; of integers the ends and some between."""
    with ctx.workprec(BITS):
        losses = [middle_of(loss) for _, loss in step.point_balls]
        for piece in (outline.piece for outline in outlines):
            if escapes(piece):
                continue
            places = _sampled_places(piece) if piece.integer else [inner_place(piece)]
            losses += [middle_of(piece.ball(arb(x))[1]) for x in places]
        return tuple(sorted(losses))


def precise_top(step: Step, outlines: Sequence[Outline], top: float) -> Fraction | None:
    """Return the largest loss beyond doubles, None where it is not seen at a place of a piece."""
    with ctx.workprec(BITS):
        losses = [loss for _, loss in step.point_balls]
        for piece in (outline.piece for outline in outlines):
            if escapes(piece):
                continue
            places = [arb(inner_place(piece))] if piece.flat else list(piece.ends)
            losses += [piece.ball(x)[1] for x in places]
        resolved = [loss for loss in losses if loss.is_finite() and loss.rad() < _KNOWN]
        largest = max((middle_of(loss) for loss in resolved), default=None)
    if largest is None or not math.isfinite(top):
        return None
    rounding = LOSS_ROUNDED * (1.0 + abs(top))
    if abs(float(largest) - top) > rounding:
        return None
    return largest


def _sampled_places(piece: SmoothPiece) -> list[float]:
    """Return some integers of a piece: where its loss ends, and others far from even spacing."""
    x = sampled_integers(piece, [-1.0, 0.0])
    loss = np.asarray(piece.loss(x))
    likeliest = int(np.asarray(piece.log_p(x)).argmax())
    beside = range(likeliest - _BESIDE, likeliest + _BESIDE + 1)
    chosen = {int(loss.argmin()), int(loss.argmax())}
    chosen |= {index % x.size for index in beside}
    evenly = range(_SPARSE + 1)
    chosen |= {index * index * (x.size - 1) // _SPARSE**2 for index in evenly}
    return [float(integer) for integer in x[sorted(chosen)]]
