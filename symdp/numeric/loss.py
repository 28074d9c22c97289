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
from symdp.numeric.outline import (
    NEGLIGIBLE,
    SEEN_BEYOND,
    Outline,
    log_row_sums,
    loss_range,
    widened,
)
from symdp.numeric.step import Array, SmoothPiece, Step

if TYPE_CHECKING:
    from symdp.numeric.step import Moment

_LEVELS = 60  # of windows of tilts, each twice as wide as the last
_FAR_LEVEL = 4  # beyond this a window of tilts no longer reaches back to 0
_SLOW = 0.25  # the frequency of band 0
_BEYOND = 4.0  # times the frequency asked for, at most
_MOST_TILTED = 8  # tilted laws that are kept: a line asks for the same one again and again
_LIKELY = 2.0  # standard deviations⁻¹ of a tilted loss, up to which few steps ask for frequencies
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
        self._read_moment = read_moment
        self._only_q = tuple(only_q)  # where P vanishes, with the density of Q
        self.step, self.is_reversible, self._other = step, is_reversible, other
        self._bounds = loss_bounds
        self._sets: dict[_Key, NodeSet] = {}
        self._parts: dict[tuple[int, int, bool], list[_Part]] = {}
        self._refused: dict[tuple[int, int, _Part], tuple[float, str]] = {}  # frequency, and why
        self._tilted: dict[float, Tilted] = {}

    def reversed(self) -> LossLaw:
        """Return the law with P and Q exchanged, whose K is K(−1 − z), with the same nodes."""
        low, high = self.loss_bounds
        only_p = [piece for piece in self.step.pieces if escapes(piece)]
        pieces = [piece.reversed() for piece in self.step.pieces if piece not in only_p]
        step = Step(self.step.name, (*pieces, *self._only_q))
        return LossLaw(step, (-high, -low), True, self, only_p)

    @cached_property
    def domain(self) -> tuple[float, float]:
        """The tilts between which the moment generating function is finite."""
        if self._other is None:
            return tilt_domain(self.step)
        return -1.0 - self._other.domain[1], -1.0 - self._other.domain[0]

    @cached_property
    def loss_bounds(self) -> tuple[float, float]:
        """The essential range of the finite loss."""
        if self._bounds is None:
            low, high = loss_range(self._outlines, self.step.point_loss)
            has_infinite = self.step.point_loss.size or any(map(escapes, self.step.pieces))
            if high == -math.inf and not has_infinite:
                raise AccuracyError(
                    f"no finite loss of {self.step.name} is seen in doubles, as where the "
                    "sensitivity is enormous beside the noise"
                )
            return low, high
        return self._bounds if self._other is not None else widened(self._bounds, self.outlines)

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
        is_certain = np.isposinf(self.step.point_loss).any() or any(map(escapes, self.step.pieces))
        return self.base.mass_at_infinity if is_certain else 0.0

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
        if self._read_moment is None or any(
            math.isinf(loss) and math.isinf(tilt)
            for loss, tilt in zip(self.loss_bounds, self.domain, strict=True)
        ):
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
        top, base = self.loss_bounds[1], self.base
        largest = base.atomic & (base.loss >= top - SEEN_BEYOND * (1.0 + abs(top)))
        close = (base.loss >= top - below) & ~largest
        first, second = (np.logaddexp.reduce(base.log_weight[nodes]) for nodes in (largest, close))
        width = top - float(base.loss[largest].min(initial=top))
        return float(first), float(second), width if width > _SAME * (1.0 + abs(top)) else 0.0

    @cached_property
    def is_spread(self) -> bool:
        """Whether the loss has a continuous part."""
        return any(not (p.flat or p.integer) for p in self.step.pieces)

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
        moments = [tuple(float(np.sum(masses * points**k)) for k in range(3))]
        moments += [outline.rough_moments() for outline in self._outlines]
        mass, first, second = (math.fsum(column) for column in zip(*moments, strict=True))
        mean = first / max(mass, 1e-300)
        return mean, max(second / max(mass, 1e-300) - mean**2, 0.0)

    @cached_property
    def has_atoms(self) -> bool:
        """Whether some single loss value has positive probability."""
        pieces = self.step.pieces
        return bool(self.step.point_loss.size) or any(p.flat or p.integer for p in pieces)

    @cached_property
    def atom_gap(self) -> float:
        """The smallest distance of two atoms, inf where there are none."""
        gaps = np.diff(self.base.loss[self.base.atomic])
        return float(gaps[gaps > 0].min(initial=math.inf))

    @cached_property
    def _common(self) -> tuple[int, float] | None:
        """The level and the frequency of the one node set that serves all usual tilts, or None."""
        if self._other is not None:
            return self._other._common
        outlines = [o for o in self.outlines if not escapes(o.piece)]
        if not self.is_spread or not outlines or self.step.point_loss.size:
            return None
        return common_window(outlines, min(self.domain[1], -1.0 - self.domain[0]), self._edge)

    def _edge(self, level: int, upper: bool) -> float:
        """Return the tilt at the end of window `level`, always inside the domain."""
        reach = 2.0**level - 1.0
        if upper:
            end = self.domain[1]
            return reach if math.isinf(end) else (reach / (1.0 + reach / end) if end > 0 else 0.0)
        end = -1.0 - self.domain[0]
        inner = reach if math.isinf(end) else (reach / (1.0 + reach / end) if end > 0 else 0.0)
        return -1.0 - inner

    def _level(self, tilt: float) -> tuple[int, int]:
        """Return the window (lower level, upper level) that contains a tilt."""
        low, high = self.domain
        if not (low < tilt < high or -1.0 <= tilt <= 0.0):
            raise AccuracyError(
                f"tilt {tilt:.6g} lies outside ({low:.6g}, {high:.6g}), where the moment "
                f"generating function of {self.step.name} is finite"
            )
        for level in range(_LEVELS):
            if tilt <= self._edge(level, upper=True) and (level > 0 or high <= 0 or tilt <= 0):
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
        lower, upper, highest = window = common or self._window(tilt, frequency)
        part = self._part(tilt, lower, upper, highest > 0) if window != common else None
        # At far tilts most of P has no weight, and would oscillate too fast to resolve.
        ends = [self._edge(lower, upper=False), -1.0, 0.0, self._edge(upper, upper=True)]
        return (*window, part), ends if part is None else list(part)

    def nodes(self, tilt: float, frequency: float) -> NodeSet:
        """Return a node set that serves every tilt of the window around `tilt`, |y| ≤ frequency."""
        key, ends = self.place(tilt, frequency)
        lower, upper, highest, part = key
        node_set = self._sets.get(key)
        is_common = (lower, upper, highest) == self._common_window(tilt, frequency)
        if node_set is None and is_common and self._other is not None:
            only_p = [flat_nodes(o).log_weight for o in self.outlines if escapes(o.piece)]
            mass = sum(float(np.exp(logs).sum()) for logs in only_p)
            node_set = self._sets[key] = self._other.nodes(-0.5, highest).reversed(mass)
        if node_set is None:
            reference = None if part is None else self.base
            refused = (lower, upper, part)
            if highest >= self._refused.get(refused, (math.inf, ""))[0]:
                raise AccuracyError(self._refused[refused][1])
            try:
                node_set = build_nodes(self.step, self.outlines, ends, highest, reference)
            except AccuracyError as error:
                self._refused[refused] = highest, str(error)
                raise
            self._sets[key] = node_set
        return node_set

    def _part(self, tilt: float, lower: int, upper: int, turns: bool) -> _Part:
        """Return the part of a far window that has a node set of its own, None where none has."""
        level = max(lower, upper)
        if level <= _FAR_LEVEL:
            is_heavy = self.domain[0] == -1.0 or self.domain[1] == 0.0
            return self._apart(tilt, upper) if turns and is_heavy else None
        parts = self._parts.setdefault((lower, upper, turns), [])
        for part in parts:
            if part is None or part[0] < tilt <= part[1]:
                return part
        left, right = sorted(self._edge(k, upper=upper > lower) for k in (level - 1, level))
        growth = self._log_masses([left, right]) - np.asarray([left, right]) * self.base.mean
        far = turns or float(growth.min()) > _WORTHWHILE
        parts.append(far_part(tilt, left, right, self._log_masses) if far else None)
        return parts[-1]

    def _apart(self, tilt: float, upper: int) -> _Part:
        """Return the tilts within an octave of an end at −1 or 0, where losses are enormous."""
        least, most = whole = -1.0, self._edge(upper, upper=True)
        if self.domain[1] == 0.0 and tilt < 0.0:
            near = math.floor(math.log2(-tilt))
            least, most = max(least, -(2.0 ** (near + 1))), -(2.0**near)
        if self.domain[0] == -1.0 and tilt > -1.0:
            near = min(math.floor(math.log2(1.0 + tilt)), 0)
            least = max(least, 2.0**near - 1.0)
            most = most if near == 0 else min(most, 2.0 ** (near + 1) - 1.0)
        return None if (least, most) == whole else (least, most)

    def _seen(self, tilt: float, frequency: float) -> NodeSet:
        """Return the same; AccuracyError if no loss can be seen so far out."""
        nodes = self.nodes(tilt, frequency)
        if not nodes.loss.size:
            raise AccuracyError(_UNSEEN_LOSS.format(self.step.name))
        return nodes

    def _window(self, tilt: float, frequency: float) -> tuple[int, int, float]:
        """Return the levels of the window around a tilt, and the frequency of a band."""
        levels = self._level(tilt)
        if self._common is not None and max(levels) <= _FAR_LEVEL:
            return *levels, self._band(frequency, self._common[1])
        # Bands are powers of four of a frequency; the lowest of all that hardly turns the loss.
        if frequency > _SLOW or (frequency > 0 and self._turns(tilt, frequency)):
            # What asks for a frequency soon asks for a few σ⁻¹ more: one set serves all of them.
            likely = _LIKELY / max(math.sqrt(self.tilted(tilt).variance), 1e-300)
            highest = max(frequency, min(likely, _BEYOND * frequency))
            return *levels, self._band(highest, _SLOW)
        return *levels, 0.0

    def _band(self, frequency: float, least: float) -> float:
        """Return the smallest power of four times the least frequency that is not below another."""
        return least * 4.0 ** max(0, math.ceil(math.log(max(frequency / least, 1e-300), 4.0)))

    def _common_window(self, tilt: float, frequency: float) -> tuple[int, int, float] | None:
        """Return the same for the window of usual tilts, or None for a tilt beyond."""
        if self._common is None:
            return None
        level, highest = self._common
        if not self._edge(level, upper=False) <= tilt <= self._edge(level, upper=True):
            return None
        return level, level, self._band(frequency, highest)

    def window(self, tilt: float) -> tuple[float, float]:
        """Return between which tilts the node set around a tilt serves at no further cost."""
        lower, upper, _ = self._common_window(tilt, 0.0) or self._window(tilt, 0.0)
        return self._edge(lower, upper=False), self._edge(upper, upper=True)

    def _turns(self, tilt: float, frequency: float) -> bool:
        """Return whether a frequency turns losses that count under a tilt by more than a little."""
        nodes = self.nodes(tilt, 0.0)
        exponent = nodes.log_weight + tilt * nodes.centred
        seen = nodes.centred[exponent > exponent.max(initial=-math.inf) - _UNSEEN]
        return seen.size > 0 and frequency * float(np.ptp(seen)) > _LITTLE_TURN

    def _log_masses(self, tilts: Sequence[float]) -> Array:
        """Return log E e^{tL} of the finite losses at several tilts, to within a few units."""
        outlines = [o for o in self.outlines if not escapes(o.piece)]
        logs = [o.log_masses(tilts) for o in outlines] or [np.full(len(tilts), -math.inf)]
        return np.asarray(np.max(logs, axis=0))

    def transform(self, tilts: Array) -> Array:
        """Return K(t) − t·E L for several tilts."""
        tilts = np.asarray(tilts, dtype=np.float64)
        result = np.full(tilts.size, np.nan)
        for t in tilts[np.argsort(-np.abs(tilts))]:
            waiting = np.isnan(result)
            if waiting[tilts == t].any():
                nodes = self._seen(float(t), 0.0)
                chosen = waiting & _served(nodes, float(t), tilts)
                result[chosen] = excess(nodes, tilts[chosen])
        return result

    def rough_cumulants(self, tilts: Array) -> tuple[Array, Array, Array]:
        """Return K(t) − t E L, K′(t) − E L and K″(t) for several tilts, sums that may cancel."""
        excess, mean, variance = (np.empty(tilts.size) for _ in range(3))
        waiting = np.ones(tilts.size, dtype=bool)
        while waiting.any():
            farthest = float(tilts[waiting][np.abs(tilts[waiting] + 0.5).argmax()])
            nodes = self._seen(farthest, 0.0)
            served = waiting & _served(nodes, farthest, tilts)
            waiting &= ~served
            exponent = nodes.log_weight + np.multiply.outer(tilts[served], nodes.centred)
            top = exponent.max(axis=1, keepdims=True)
            weight = np.exp(exponent - top)
            total = weight.sum(axis=1)
            excess[served] = top[:, 0] + np.log(total)
            # No product of matrices, whose rounding depends on how many tilts there are.
            first = (weight * nodes.centred).sum(axis=1) / total
            second = (weight * (nodes.centred * nodes.centred)).sum(axis=1) / total
            variance[served] = second - first * first
            mean[served] = first
        return excess, mean, variance

    def tilted(self, tilt: float, frequency: float = 0.0) -> Tilted:
        """Return the law tilted by `tilt`, from nodes that resolve |y| ≤ frequency."""
        nodes = self._seen(tilt, frequency)
        tilted = self._tilted.get(tilt)
        if tilted is None or tilted.nodes is not nodes:
            if len(self._tilted) >= _MOST_TILTED:
                self._tilted.clear()
            tilted = self._tilted[tilt] = self._tilted_by(nodes, tilt)
        return tilted

    def _tilted_by(self, nodes: NodeSet, tilt: float) -> Tilted:
        scaled = tilt * nodes.centred
        exponent = nodes.log_weight + scaled
        top = float(exponent.max())
        weight = np.exp(exponent - top)
        total = float(weight.sum())
        weight /= total
        shift = float(weight @ nodes.centred)
        deviation = nodes.centred - shift
        shift += (residue := float(weight @ deviation))
        deviation -= residue
        is_precise = not nodes.partial and top < OVERFLOW
        if is_precise:
            # As E L − μ = 0, the shift is what the growth e^{t(L−μ)} − 1 adds: of one sign, and so
            # accurate relative to itself, however small the tilt.
            growth = np.where(
                scaled > LARGE,
                np.exp(scaled + nodes.log_weight) - nodes.weight,
                nodes.weight * np.expm1(np.minimum(scaled, LARGE)),
            )
            total = 1.0 - nodes.mass_at_infinity + float(growth.sum())
            shift = float(nodes.centred @ growth) / total
        return Tilted(
            tilt,
            nodes,
            shift,
            float(weight @ (deviation * deviation)),
            weight,
            deviation,
            float(weight[nodes.atomic].sum()) if self.has_atoms else 0.0,
            is_precise,
        )


def _served(nodes: NodeSet, tilt: float, tilts: Array) -> NDArray[np.bool_]:
    """Return which tilts a node set of one of them serves: back to 0, what lies between."""
    between = (tilts >= min(tilt, -1.0)) & (tilts <= max(tilt, 0.0))
    return np.asarray(tilts == tilt if nodes.partial else between)


_USUAL, _WIDEST = 3, 12  # levels of usual tilts, and of the widest window
_HARDLY = 2.0  # e-folds by which E e^{t(L − E L)} may grow there
_FARTHER = 1.5  # times as far apart as under usual tilts: more would ask for many more nodes
_INNER = 0.25  # of the way to the end of the domain
_FREQUENT = 0.5  # its frequency, in standard deviations⁻¹ of the loss, for hundreds of steps
_MOST_BENT = 1000.0  # e-folds by which K bends in a part of far tilts: about 13 tilts cover it
_CHEAP_TURN = 30.0  # of all its losses, which some ten panels resolve


def common_window(
    outlines: Sequence[Outline], nearest: float, edge: Callable[[int, bool], float]
) -> tuple[int, float] | None:
    """Return level and frequency of the window of usual tilts, None where none is."""
    mass, first, second = np.sum([o.rough_moments() for o in outlines], axis=0).tolist()
    if not (0.5 < mass < 2.0 and 0.0 < second < math.inf):
        return None
    mean, size = first / mass, math.sqrt(second / mass)
    levels = [k for k in range(2, _WIDEST + 1) if edge(k, True) < _INNER * nearest]
    if not levels:
        return None
    tilts = np.asarray([edge(k, side) for k in levels for side in (False, True)])
    shells = [o.shells(tilts.tolist()) for o in outlines]  # of all levels at once
    masses = np.logaddexp.reduce([log_row_sums(rows) for rows in shells], axis=0)
    growth = (masses - tilts * mean).reshape(-1, 2).max(axis=1)
    window, usual = None, math.inf
    for k, grown, stretch in zip(
        levels, growth.tolist(), _stretches(outlines, shells), strict=True
    ):
        if not (grown < _HARDLY and stretch <= _FARTHER * usual):
            break
        window = k, max(_FREQUENT / size, _CHEAP_TURN / max(stretch, 1e-300))
        usual = stretch if k == _USUAL else usual
    return window


def far_part(
    tilt: float, left: float, right: float, log_masses: Callable[[Sequence[float]], Array]
) -> tuple[float, float]:
    """Return the part of a window of far tilts, by halving, that holds a tilt and bends little."""
    while True:
        middle = 0.5 * (left + right)
        first, centre, last = log_masses([left, middle, right]).tolist()
        if not 0.5 * (first + last) - centre > _MOST_BENT:
            return left, right
        left, right = (left, middle) if tilt <= middle else (middle, right)


def _stretches(outlines: Sequence[Outline], shells: Sequence[Array]) -> list[float]:
    """Return how far apart losses are that matter, as far as grids tell, at every two tilts."""
    low, high = math.inf, -math.inf
    for outline, rows in zip(outlines, shells, strict=True):
        if not rows.size:  # a piece with no mass that is a double
            continue
        seen = (rows > rows.max(axis=1, keepdims=True) - NEGLIGIBLE) & np.isfinite(outline.loss)
        seen = seen[::2] | seen[1::2]
        low = np.minimum(low, np.where(seen, outline.loss, np.inf).min(axis=1))
        high = np.maximum(high, np.where(seen, outline.loss, -np.inf).max(axis=1))
    lengths: list[float] = np.where(high < low, np.inf, high - low).tolist()
    return lengths


_FAR = np.exp2(np.arange(1.0, 500.0))  # places that show how a density falls towards infinity
_NEAR = np.exp2(-np.arange(1.0, 500.0))  # and towards a finite end

_SMALL, _FALLS = 0.1, 0.8  # of a critical tilt, and of it beside that of nearer shells


def _narrow_scale(piece: SmoothPiece, begin: float, side: float) -> float:
    """Return the distance at which most mass of a side lies, 1 where it is no less."""
    distance = np.append(_NEAR[::-1], 1.0)
    with np.errstate(all="ignore"):
        mass = piece.log_p(begin + side * distance) + np.log(distance)
    return float(distance[np.nan_to_num(mass, nan=-np.inf, posinf=-np.inf).argmax()])


def _end_slopes(piece: SmoothPiece, upper: bool) -> tuple[float, float]:
    """Return the (lower, upper) tilts at which the integral stops converging at one end.

    With u the logarithm of the distance, the mass of a shell at that end is e^{log P + tℓ ± u}; it
    dies out exactly while the slope of log P + tℓ ± u stays negative, so the critical tilt is a
    ratio of differences between two far shells, in which constants cancel.
    """
    end = piece.upper if upper else piece.lower
    side = 1.0 if upper else -1.0
    if np.isfinite(end):
        x = end - side * _NEAR * max(1.0, abs(end))
        x = x[(x > piece.lower) & (x < piece.upper)]
        distance = np.abs(end - x)
        shell = np.log(distance)
    else:
        start = piece.lower if upper else piece.upper
        begin = start if np.isfinite(start) else 0.0
        far = _FAR
        with np.errstate(all="ignore"):
            is_narrow = not np.isfinite(piece.log_p(begin + side * far[:2])).any()
        if is_narrow:
            far = far * _narrow_scale(piece, begin, side)
        x = begin + side * far
        shell = np.log(far)
    with np.errstate(all="ignore"):
        log_p, _, loss = piece.values(x)
        mass = log_p + shell[: x.size]
    usable = np.flatnonzero(np.isfinite(mass) & np.isfinite(loss) & (np.abs(loss) < 1e300))
    if usable.size < 2:
        return -np.inf, np.inf
    last = usable[-1]
    middle = usable[usable.size // 2] if usable.size > 4 else usable[0]
    rise = loss[last] - loss[middle]
    if abs(rise) <= 1e-9 * max(1.0, abs(loss[last])):
        return -np.inf, np.inf  # the loss has a limit here: every tilt converges
    with np.errstate(over="ignore"):
        critical = -(mass[last] - mass[middle]) / rise
    if not np.isfinite(critical):
        return -np.inf, np.inf
    # A loss that grows faster than the logarithm of the distance leaves no tilt at all: what shells
    # twice as far out (in logarithms) still allow falls towards 0, or −1.
    inner = usable[usable.size // 4]
    with np.errstate(all="ignore"):
        nearer = -(mass[middle] - mass[inner]) / (loss[middle] - loss[inner])
    edge = 0.0 if rise > 0 else -1.0
    if abs(critical - edge) < min(_SMALL, _FALLS * abs(nearer - edge)):
        critical = edge
    return (-np.inf, critical) if rise > 0 else (critical, np.inf)


def is_heavy(piece: SmoothPiece, upper: bool) -> bool:
    """Return whether one end of a piece leaves no tilt t > 0 with E e^{tL} < ∞."""
    return tilt_domain(Step("", (piece,)), (upper,))[1] == 0.0


def tilt_domain(step: Step, ends: tuple[bool, ...] = (False, True)) -> tuple[float, float]:
    """Return (t₋, t₊), the interior of {t : E e^{tL} < ∞}; it contains (−1, 0)."""
    low, high = -np.inf, np.inf
    for piece in step.pieces:
        if piece.flat:
            continue
        for upper in ends:
            below, above = _end_slopes(piece, upper)
            low, high = max(low, below), min(high, above)
    # A slope that stays finite but very large belongs to a density lighter than every e^{tℓ}, and
    # one next to −1 or 0 to a tail that ends there.
    low = -math.inf if low < -1e6 else (-1.0 if low > -1.0 - 1e-9 else float(low))
    high = math.inf if high > 1e6 else (0.0 if high < 1e-9 else float(high))
    return low, high


BITS = 140  # carried: n = 10¹² steps leave 100 of them
EXTENDED = 1e-21  # relative: of losses that are known to 22 digits
_KNOWN = 1e-22  # radius of a loss in balls that is known
_SAME_TOP = 1e-14  # relative: a largest loss in balls is the one in doubles
_BESIDE = 8  # integers on each side of the likeliest
_SPARSE = 32  # places of an outline that are looked at


def precise_losses(step: Step, outlines: Sequence[Outline]) -> tuple[Fraction, ...]:
    """Return the single values of a step's loss, rising; of integers the ends and some between."""
    with ctx.workprec(BITS):
        losses = [middle_of(loss) for _, loss in step.point_balls]
        for piece in (outline.piece for outline in outlines if not escapes(outline.piece)):
            places = _sampled(piece) if piece.integer else [inner_place(piece)]
            losses += [middle_of(piece.ball(arb(x))[1]) for x in places]
        return tuple(sorted(losses))


def precise_top(step: Step, outlines: Sequence[Outline], top: float) -> Fraction | None:
    """Return the largest loss beyond doubles, None where it is not seen at a place of a piece."""
    with ctx.workprec(BITS):
        losses = [loss for _, loss in step.point_balls]
        for piece in (outline.piece for outline in outlines if not escapes(outline.piece)):
            places = [arb(inner_place(piece))] if piece.flat else list(piece.ends)
            losses += [piece.ball(x)[1] for x in places]
        close = [loss for loss in losses if loss.is_finite() and loss.rad() < _KNOWN]
        largest = max((middle_of(loss) for loss in close), default=None)
    if largest is None or not math.isfinite(top):
        return None
    return largest if abs(float(largest) - top) <= _SAME_TOP * (1.0 + abs(top)) else None


def _sampled(piece: SmoothPiece) -> list[float]:
    """Return some integers of a piece: where its loss ends, and others far from even spacing."""
    x = sampled_integers(piece, [-1.0, 0.0])
    loss = np.asarray(piece.loss(x))
    middle = int(np.asarray(piece.log_p(x)).argmax())
    chosen = {int(loss.argmin()), int(loss.argmax())}
    chosen |= {index % x.size for index in range(middle - _BESIDE, middle + _BESIDE + 1)}
    chosen |= {index * index * (x.size - 1) // _SPARSE**2 for index in range(_SPARSE + 1)}
    return [float(index) for index in x[sorted(chosen)]]
