"""The kinds of steps of many compositions: a table of their K_b, on real tilts and on lines.

A composition is a row of counts, and what adds up over its steps is one product of that row with a
table: K_b(t) at real tilts, K_b(t + iy) on a line, bounds on log |φ_b| far out, and what rounding
and quadrature do to K_b.

**Normal noise under Poisson sampling** has its nodes from a formula, for thousands of noise levels.
With Q = N(0, 1), u the outcome in units of the noise, and r(u) = 1 − q + q e^{(u − 1/2σ)/σ}, both
directions are moments of r [IND D.3]:

    M_remove(z) = E_Q r^{1+z},        M_add(z) = E_Q r^{−z} = M_remove(−1−z)

On the line Im u = b the integrand is at most e^{b²/2} times larger, of add cos(b/2σ)^{−t} times
more, and log r has its nearest singularity at πσ: so short panels, or even steps, have to be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from flint import arb
from numpy.typing import NDArray

from symdp.emit.arb import UNKNOWN
from symdp.errors import AccuracyError
from symdp.numeric.elementary import Complex, exponential_remainder
from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import (
    LARGE,
    NodeSet,
    Tilted,
    decays,
    escapes,
    known_atom,
    log_characteristic_grid,
    near_bound,
    node_set,
)
from symdp.numeric.outline import covering_tilts, loss_range
from symdp.numeric.panels import (
    DERIVATIVE,
    ORDER,
    WEIGHTS,
    PieceNodes,
    build_panels,
    gauss_legendre,
    guided_rule,
    log_masses_on,
)
from symdp.numeric.step import Array, SmoothPiece, Step
from symdp.tolerances import MASS_ROUNDED, ROUNDED

_INSIDE = 0.95  # of the largest tilt with a moment, whose place is itself found in doubles
_UNSEEN = 1e-20  # of all weight: a node's, of which a few thousand are no more than rounding
_TOGETHER = 32  # kinds whose bounds are evaluated at once, some megabytes

Flags = NDArray[np.bool_]


class Table(Protocol):
    """What rows of counts ask about the kinds of their steps, all arrays with an axis of kinds.

    `has_loss` tells which kinds lose anything, and `log_finite` the log of the probability that the
    loss is finite.  What is not `used` need not be right.
    """

    has_loss: Flags
    log_finite: Array

    @property
    def count(self) -> int:
        """The number of kinds."""

    @property
    def variance(self) -> Array:
        """Of the untilted finite loss, or about that."""

    def transform(self, tilts: Array, used: Flags) -> Array:
        """Return K_b(t) at real tilts t > 0, shape (tilts, kinds); inf where it is not known."""

    def line(self, tilt: float, step: float, nodes: int, used: Flags) -> Complex:
        """Return K_b(t + ihk) for k < nodes, shape (kinds, nodes), for whole counts: logs of φ_b
        may be principal ones; AccuracyError where the line is too long."""

    def rounding(self, tilt: float, reach: float, used: Flags) -> Array:
        """Return the error of every K_b(t + iy), y ≪ reach, absolute."""

    def log_bounds(self, tilt: float, y: Array, used: Flags) -> Array:
        """Return bounds on log |φ_b| between neighbours of rising y, the last for all beyond."""


class LawTable:
    """K_b of the losses of any kinds of steps, each with its own nodes; None for no loss."""

    def __init__(self, laws: Sequence[LossLaw | None]) -> None:
        lossy = [law for law in laws if law is not None]
        alike = iter(together(lossy))
        all_laws = list(laws)
        for b, law in enumerate(laws):
            if law is not None:
                all_laws[b] = next(alike)
        self._laws = tuple(all_laws)
        self.count = len(self._laws)
        self.variance: Array = np.zeros(self.count)
        self.log_finite = np.zeros(self.count)
        self._mean = np.zeros(self.count)
        self.has_loss = np.zeros(self.count, dtype=bool)
        for b, law in enumerate(self._laws):
            if law is None:
                continue
            base = law.base
            self._mean[b] = base.mean
            self.variance[b] = float(base.weight @ base.centred**2)
            escaped = law.mass_at_infinity
            self.log_finite[b] = -math.inf
            if escaped < 1.0:
                self.log_finite[b] = math.log1p(-escaped)
            has_finite_loss = bool(np.any(base.loss))
            self.has_loss[b] = has_finite_loss or escaped > 0.0

    def _used_laws(self, used: Flags) -> list[tuple[int, LossLaw]]:
        """Return the kinds that are to be looked at, with their numbers."""
        laws = []
        for b in np.flatnonzero(used & self.has_loss).tolist():
            law = self._laws[b]
            if law is not None:
                laws.append((b, law))
        return laws

    def transform(self, tilts: Array, used: Flags) -> Array:
        """Return K_b(t) at real tilts t > 0, shape (tilts, kinds); inf where it is not known."""
        result = np.zeros((tilts.size, self.count))
        for b, law in self._used_laws(used):
            result[:, b] = np.inf
            inside = np.flatnonzero(tilts < _INSIDE * law.domain[1])
            while inside.size:
                try:
                    values = law.transform(tilts[inside])
                except AccuracyError:  # no quadrature so far out
                    inside = inside[: inside.size // 2]
                    continue
                shift = tilts[inside] * self._mean[b]
                result[inside, b] = values + shift
                break
        return result

    def line(self, tilt: float, step: float, nodes: int, used: Flags) -> Complex:
        """Return K_b(t + ihk) for k < nodes, shape (kinds, nodes)."""
        result = np.zeros((self.count, nodes), dtype=np.complex128)
        y = step * np.arange(nodes)
        for b, law in self._used_laws(used):
            finer = law.tilted(tilt, float(y[-1]))
            usual = law.tilted(tilt)
            mean = finer.shift + self._mean[b]
            counts = finer.weight > _UNSEEN
            part = replace(
                finer,
                weight=finer.weight[counts],
                deviation=finer.deviation[counts],
            )
            result[b] = log_characteristic_grid(part, step, 0, nodes)
            at_tilt = usual.excess + tilt * self._mean[b]
            result[b] += at_tilt + 1j * y * mean
        return result

    def rounding(self, tilt: float, reach: float, used: Flags) -> Array:
        """Return the error of every K_b(t + iy), y ≪ reach, absolute."""
        result = np.zeros(self.count)
        z = math.hypot(tilt, 0.25 * reach)
        for b, law in self._used_laws(used):
            part = law.tilted(tilt)
            size = 2.0 * abs(part.excess) + tilt * part.size
            # Cut tails lack in averages of e^{zL} − 1 − zL, about |zL|, or z²L²/2 if less.
            first, second = part.nodes.beyond
            lacking = z * min(first, 0.5 * z * second)
            rounded = (ROUNDED + part.error) * (size + 4.0 * part.imprecise)
            result[b] = rounded + lacking
        return result

    def log_bounds(self, tilt: float, y: Array, used: Flags) -> Array:
        """Return bounds on log |φ_b| between neighbours of rising y, the last for all beyond."""
        result = np.zeros((self.count, y.size))
        laws = self._used_laws(used)
        for start in range(0, len(laws), _TOGETHER):
            block = laws[start : start + _TOGETHER]
            kinds = [b for b, _ in block]
            parts = [law.tilted(tilt) for _, law in block]
            bound = np.minimum(decays(parts).log_bound(y).T, 0.0)
            near = [near_bound(part.weight, part.deviation, y) for part in parts]
            between = bound[:, :-1]
            np.minimum(between, np.asarray(near), out=between)
            result[kinds] = bound
        for b, law in laws:
            if isinstance(law, SampledNormal) and law.is_plain:
                result[b] = -0.5 * self.variance[b] * y * y
        return result


_ALIKE = 200  # laws that look for their mass together: fewer would take longer
_MISSED = 1e-6  # of all mass: more shows that panels do not serve
_FIRST_TILTS = 7.0  # to which a window of usual tilts reaches


def together(laws: Sequence[LossLaw]) -> list[LossLaw]:
    """Return the same laws, which begin to look for mass where a few of them have it, if alike.

    Panels that resolve the steps of one formula whose losses are the least and the largest hardly
    want for halves for any other. Each law checks them as it would its own.
    """
    kinds = set()
    for law in laws:
        is_flat = [piece.flat for piece in law.step.pieces]
        kinds.add((type(law), *is_flat))
    if len(laws) < _ALIKE or len(kinds) > 1:
        return list(laws)
    if type(laws[0]) is not LossLaw:
        return list(laws)
    step = laws[0].step
    if step.point_loss.size or all(piece.flat for piece in step.pieces):
        return list(laws)
    for piece in step.pieces:
        has_unknown_mass = piece.flat and piece.log_mass is None
        if piece.integer or escapes(piece) or has_unknown_mass:
            return list(laws)
    guides = _Guides(laws)
    if not guides.is_alike:
        return list(laws)
    return [_GuidedLaw(law, guides) for law in laws]


class _Guides:
    """A few of many laws of one formula, and panels that resolve all of these few."""

    def __init__(self, laws: Sequence[LossLaw]) -> None:
        first = laws[0]
        spread = [k for k, piece in enumerate(first.step.pieces) if not piece.flat]
        losses_of_pieces = []
        for k, (piece, low, high) in zip(spread, first.base.panels, strict=False):
            x = np.asarray([low.min(), np.median(low), high.max()])
            shares = _shares_of_frame(piece, x)
            pieces = [law.step.pieces[k] for law in laws]
            losses = [other.loss(_places_in_frame(other, shares)) for other in pieces]
            losses_of_pieces.append(np.asarray(losses))
        all_losses = np.concatenate(losses_of_pieces, axis=1)
        least = all_losses.argmin(axis=0)
        largest = all_losses.argmax(axis=0)
        extreme = np.unique(np.concatenate([least, largest]))
        self._guides = [laws[k] for k in extreme.tolist()]
        domains = {law.domain for law in self._guides}
        are_few = 2 * len(self._guides) <= len(laws)
        self.is_alike = len(domains) == 1 and are_few

        def second_moment(law: LossLaw) -> float:
            return float(law.base.weight @ law.base.loss**2)

        # Where losses are largest windows are narrowest.
        order = sorted(self._guides, key=second_moment, reverse=True)
        wide = (law for law in order if law.window(0.0)[1] >= _FIRST_TILTS)
        self.leader: LossLaw = next(wide, order[0])
        self._known: dict[tuple[tuple[float, ...], float], tuple[list[float], list[Array]]] = {}

    def resolved(self, tilt: float) -> float:
        """Return up to which frequency the node sets around a tilt serve."""
        return self.leader.place(tilt, 0.0)[0][2]

    def guided(self, ends: Sequence[float], frequency: float) -> tuple[list[float], list[Array]]:
        """Return tilts that cover those between the ends, and the edges of every piece's panels."""
        key = (tuple(ends), frequency)
        if key in self._known:
            return self._known[key]
        tilts: list[float] = []
        edges_of_pieces: list[list[Array]] = [[] for _ in self.leader.step.pieces]
        for guide in self._guides:
            outlines = guide.outlines
            masses = covering_tilts(outlines, ends)
            tilts = max(tilts, list(masses), key=len)
            for outline, piece_edges in zip(outlines, edges_of_pieces, strict=True):
                if outline.piece.flat:
                    continue
                panels, _ = build_panels(outline, masses, frequency)
                if panels is not None:
                    edges = np.stack([panels.lower, panels.upper])
                    piece_edges.append(_shares_of_frame(outline.piece, edges))
        finest = [_finest_edges(piece_edges) for piece_edges in edges_of_pieces]
        self._known[key] = (tilts, finest)
        return self._known[key]


class _GuidedLaw(LossLaw):
    """One of many laws of one formula, whose quadratures begin with what its kin needs."""

    def __init__(self, law: LossLaw, guides: _Guides) -> None:
        super().__init__(
            law.step,
            law._bounds,
            is_reversible=law.is_reversible,
            other=law._other,
            only_q=law._only_q,
            read_moment=law._read_moment,
        )
        self._guides_of_law: _Guides = guides
        self._turned: dict[tuple[float, float], Tilted] = {}

    @property
    def domain(self) -> tuple[float, float]:
        """The tilts between which the moment generating function is finite."""
        low, high = self._guides_of_law.leader.domain
        return low, high

    @cached_property
    def loss_bounds(self) -> tuple[float, float]:
        """The essential range of the finite loss."""
        pieces = self.step.pieces
        is_monotone = all(piece.monotone or piece.flat for piece in pieces)
        if self._bounds is not None or not is_monotone:
            return super().loss_bounds
        outlines = self._guides_of_law.leader.outlines  # they tell how far out an end is read
        for outline, piece in zip(outlines, pieces, strict=True):
            outline.piece = piece
        return loss_range(outlines, self.step.point_loss)

    def window(self, tilt: float) -> tuple[float, float]:
        """Return between which tilts the node set around a tilt serves at no further cost."""
        return self._guides_of_law.leader.window(tilt)

    def nodes(self, tilt: float, frequency: float) -> NodeSet:
        """Return a node set that serves every tilt of the window around `tilt`, |y| ≤ frequency."""
        if frequency > self._guides_of_law.resolved(tilt):
            return super().nodes(tilt, frequency)
        key, ends = self._guides_of_law.leader.place(tilt, 0.0)
        if key not in self._sets:
            _, _, highest, part = key
            piece_nodes = self._guided_nodes(ends, highest)
            if piece_nodes is None:
                return super().nodes(tilt, frequency)
            reference = None if part is None else self.base
            escaping = [False] * len(piece_nodes[1:])
            self._sets[key] = node_set(self.step, piece_nodes, escaping, reference)
        return self._sets[key]

    def tilted(self, tilt: float, frequency: float = 0.0) -> Tilted:
        """Return the law tilted by `tilt`; places for this tilt alone resolve |y| ≤ frequency."""
        usual = super().tilted(tilt)
        least = max(self._guides_of_law.resolved(tilt), 1.0)
        if frequency <= least:
            return usual
        octave = math.ceil(math.log2(frequency / least))
        key = (tilt, least * 2.0**octave)
        if key not in self._turned:
            parts = self._guided_nodes([tilt], key[1])
            if parts is None:
                return super().tilted(tilt, frequency)
            loss = np.concatenate([part.loss for part in parts])
            log_weight = np.concatenate([part.log_weight for part in parts])
            exponent = log_weight + tilt * loss
            weight = np.exp(exponent - exponent.max())
            error = max(usual.error, *(part.error for part in parts))
            finer = replace(
                usual,
                nodes=replace(usual.nodes, error=error),
                weight=weight / weight.sum(),
                deviation=loss - usual.nodes.mean - usual.shift,
            )
            self._turned = {key: finer}
        return self._turned[key]

    def _guided_nodes(self, ends: Sequence[float], frequency: float) -> list[PieceNodes] | None:
        """Return the nodes of no points and of every piece, None where its guides do not serve."""
        tilts, shares_of_pieces = self._guides_of_law.guided(ends, frequency)
        pieces = list(zip(self.step.pieces, shares_of_pieces, strict=True))
        edges = [_places_in_frame(piece, shares) for piece, shares in pieces]
        atoms = {}
        for k, piece in enumerate(self.step.pieces):
            if piece.flat:
                atoms[k] = known_atom(piece)
        all_tilts = np.asarray(tilts)
        logs = [atom.log_weight + all_tilts * atom.loss for atom in atoms.values()]
        for (piece, _), piece_edges in zip(pieces, edges, strict=True):
            if piece_edges.size:
                logs.append(log_masses_on(piece, piece_edges, tilts))
        log_masses = np.logaddexp.reduce(logs).tolist()
        masses = dict(zip(tilts, log_masses, strict=True))
        if abs(masses.get(0.0, 0.0)) > _MISSED:
            return None
        no_nodes = PieceNodes.atoms(np.empty(0), np.empty(0))
        piece_nodes = [no_nodes]
        for k, (piece, piece_edges) in enumerate(zip(self.step.pieces, edges, strict=True)):
            nodes: PieceNodes | None = no_nodes
            if piece_edges.size:
                nodes = guided_rule(piece, piece_edges, masses, frequency)
            nodes = atoms.get(k, nodes)
            if nodes is None:
                return None
            piece_nodes.append(nodes)
        return piece_nodes


def _frame(piece: SmoothPiece) -> tuple[float, float]:
    """Return a finite end, or 0, and a finite length, or 1: places are told in these."""
    low = piece.lower
    high = piece.upper
    if not math.isfinite(low):
        return (high, 1.0) if math.isfinite(high) else (0.0, 1.0)
    if not math.isfinite(high - low):
        return low, 1.0
    return low, high - low


def _shares_of_frame(piece: SmoothPiece, x: Array) -> Array:
    origin, length = _frame(piece)
    return np.asarray((x - origin) / length)


def _places_in_frame(piece: SmoothPiece, shares: Array) -> Array:
    origin, length = _frame(piece)
    return np.clip(origin + shares * length, piece.lower, piece.upper)


def _finest_edges(several: Sequence[Array]) -> Array:
    """Return edges of panels no wider than any of several sets of them has there, as (2, n)."""
    if not several:
        return np.empty(0)
    lower, upper = np.concatenate(several, axis=1)
    length = upper - lower
    end = float(upper.max())
    edges = [float(lower.min())]
    while edges[-1] < end:
        edge = edges[-1]
        is_around = (lower <= edge) & (upper > edge)
        width = length[is_around].min(initial=math.inf)
        next_end = float(upper[lower > edge].min(initial=end))
        edges.append(min(edge + width, next_end))
    return np.asarray(edges)


_EFOLDS = 41.0  # what even steps lack is below e^-41 = 1.6e-18
_REACH = 9.5  # standard deviations of a unit Gaussian that hold all but 2e-21
_STRIP, _WIDEST = 2.8, 8.8  # the farthest line: πσ is a branch point, and e^{b²/2} has grown enough
_SHIFTS = np.geomspace(0.01, 1.0, 16)  # of the way to it, to choose from
_USUAL = 5  # the first level of tilts, up to 2^k − 1, that nodes from the formula serve
_MOST_NODES = 1 << 16  # of a level: beyond, two modes lie so far apart that they are looked for
_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)  # of the normal density


class SampledNormal(LossLaw):
    """The loss of a step with normal noise of σ contributions under Poisson sampling at rate q.

    >>> law = SampledNormal(2.0, 1.0, "add")
    >>> [round(law.tilted(t).excess + t * law.base.mean, 12) for t in (1.0, 3.0)]
    [0.25, 1.5]
    """

    def __init__(self, sigma: float, rate: float, direction: str) -> None:
        self._sigma = sigma
        self._rate = rate
        self._removes = direction == "remove"
        self.is_plain = rate == 1.0
        self._levels: dict[int, tuple[NodeSet, Array] | None] = {}
        piece = SmoothPiece(
            lower=-math.inf,
            upper=math.inf,
            log_p=lambda u: self._values_at(u)[0],
            log_q=lambda u: self._values_at(u)[1],
            loss=lambda u: self._values_at(u)[2],
            ball=self._ball_at,
            log_terms=lambda u: [-0.5 * u * u, -0.5 * (u - 1.0 / sigma) ** 2],
            monotone=True,
            joint=self._values_at,
        )
        least = -math.inf
        if rate < 1.0:
            least = math.log1p(-rate)
        bounds = (-math.inf, -least)
        if self._removes:
            bounds = (least, math.inf)
        step = Step(f"noise {sigma:.6g} at rate {rate:.6g}", (piece,))
        super().__init__(step, bounds)

    def _values_at(self, u: Array) -> tuple[Array, ...]:
        log_q = -0.5 * u * u - _LOG_ROOT
        loss = log_ratio(u, self._sigma, self._rate)
        if self._removes:
            return log_q + loss, log_q, loss
        return log_q, log_q + loss, -loss

    def _ball_at(self, u: Any, **_analytic: bool) -> tuple[Any, Any]:
        exponent = (u - arb(0.5) / self._sigma) / self._sigma
        unsampled = 1 - arb(self._rate)
        ratio = unsampled + self._rate * exponent.exp()
        loss = ratio.log() if ratio.real > 0 else UNKNOWN
        log_of_two_pi = (2 * arb.pi()).log()
        log_q = -u * u / 2 - log_of_two_pi / 2
        if self._removes:
            return log_q + loss, loss
        return log_q, -loss

    def nodes(self, tilt: float, frequency: float) -> NodeSet:
        """Return a node set that serves every tilt of the window around `tilt`, |y| ≤ frequency."""
        if frequency == 0.0:
            of_level = self._nodes_of_level(tilt)
            if of_level is not None:
                return of_level[0]
        return super().nodes(tilt, frequency)

    def _nodes_of_level(self, tilt: float) -> tuple[NodeSet, Array] | None:
        """Return nodes for tilts between −1 and the end of a level, and u there; None far out."""
        log_end = math.log2(1.0 + max(tilt, 0.0))
        level = max(_USUAL, math.ceil(log_end))
        if tilt < -1.0:
            return None
        if level not in self._levels:
            self._levels[level] = self._level_nodes(2.0**level - 1.0)
        return self._levels[level]

    def _level_nodes(self, end: float) -> tuple[NodeSet, Array] | None:
        low = -_REACH
        high = 1.0 / self._sigma + _REACH
        if self._removes:
            high += end / self._sigma
        else:  # its mode is where x = −t s(x), s the probability that the record took part
            odds = self._rate * math.exp(-0.5 * self._sigma**-2)
            either = max(1.0 - self._rate + odds, 1e-300)
            low -= end / self._sigma * odds / either
        # A panel's rule of 2n digits lacks e^{−2n log ρ} of the growth on its ellipse.
        shift, growth = self._growth(end, 0.0)
        log_radius = np.minimum((_EFOLDS + growth) / 2 / ORDER, 700.0)
        half = float((shift / np.sinh(log_radius)).max())
        count = math.ceil((high - low) / (2.0 * half))
        if count * ORDER > _MOST_NODES:
            return None
        edges = np.linspace(low, high, count + 1)
        nodes, weights = gauss_legendre(edges[:-1], edges[1:])
        u = nodes.ravel()
        log_p, _, loss = self._values_at(u)
        number = np.arange(u.size)
        with np.errstate(divide="ignore"):
            slope = np.abs(loss.reshape(count, ORDER) @ DERIVATIVE.T)
            spread = np.log(slope * WEIGHTS).ravel()
        order = slice(None, None, -1)
        if self._removes:
            order = slice(None)
        loss = loss[order]
        log_weight = (log_p + np.log(weights.ravel()))[order]
        weight = np.exp(log_weight)
        # As E e^{−L} = 1, terms of one sign: E L as accurate relative to itself as its square.
        terms = weight * exponential_remainder(np.minimum(-loss, LARGE))
        is_far = -loss > LARGE
        far_growth = np.exp(log_weight[is_far] - loss[is_far])
        less = weight[is_far] * (loss[is_far] - 1.0)
        terms[is_far] = less + far_growth
        mean = float(terms.sum())
        error = abs(float(weight.sum()) - 1.0)
        node_set = NodeSet(
            loss=loss,
            log_weight=log_weight,
            weight=weight,
            mean=mean,
            centred=loss - mean,
            mass_at_infinity=0.0,
            atomic=np.zeros(u.size, dtype=bool),
            number=number[order],
            log_spread=spread[order],
            error=max(error - MASS_ROUNDED, 0.0),
        )
        return node_set, u[order]

    def _growth(self, tilt: float, frequency: float) -> tuple[Array, Array]:
        """Return distances of lines from the real axis, and the log of the growth on each."""
        shift = min(_STRIP * self._sigma, _WIDEST) * _SHIFTS
        growth = 0.5 * shift * shift + frequency * shift / self._sigma
        if not self._removes:
            angle = 0.5 * shift / self._sigma
            growth -= tilt * np.log(np.cos(angle))
        return shift, growth

    def tilted(self, tilt: float, frequency: float = 0.0) -> Tilted:
        """Return the law tilted by `tilt`; even steps resolve |y| ≤ frequency."""
        of_level = self._nodes_of_level(tilt)
        if of_level is None or frequency == 0.0:
            return super().tilted(tilt, frequency)
        _, places = of_level
        usual = super().tilted(tilt)
        likely = places[usual.weight > _UNSEEN]
        shift, growth = self._growth(tilt, frequency)
        steps = 2.0 * math.pi * shift / (growth + _EFOLDS)
        step = float(steps.max())
        margin = float(np.abs(np.diff(places)).max())
        low = float(likely.min()) - margin
        high = float(likely.max()) + margin
        if not high - low <= _MOST_NODES * step:
            raise AccuracyError(f"{self.step.name}: too many places tell of so high a frequency")
        u = np.arange(low, high + step, step)
        if not self._removes:
            u = u[::-1]
        log_p, _, loss = self._values_at(u)
        exponent = log_p + tilt * loss
        weight = np.exp(exponent - exponent.max())
        weight /= weight.sum()
        deviation = loss - usual.nodes.mean - usual.shift
        return replace(usual, weight=weight, deviation=deviation)


def log_ratio(u: Array, sigma: float, q: float) -> Array:
    """Return log r(u), accurate relative to itself near 0 and without overflow.

    >>> log_ratio(np.array([0.5, 5000.0]), 1.0, 0.5).round(9).tolist()
    [0.0, 4998.806852819]
    """
    y = u / sigma - 0.5 / (sigma * sigma)
    result = np.minimum(y, 1.0)
    if q < 1.0:
        result = np.log1p(q * np.expm1(result))
    is_large = y > 1.0
    if is_large.any():
        large = y[is_large]
        unsampled = (1.0 - q) / q * np.exp(-large)
        log_sampled = large + math.log(q)
        result[is_large] = log_sampled + np.log1p(unsampled)
    return np.asarray(result)


def sampled_normals(noise: Array, rate: Array, direction: str) -> LawTable:
    """Return the table of steps with normal noise, in contributions, inf for none, and rates."""
    laws: list[LossLaw | None] = []
    for sigma, q in zip(noise.tolist(), rate.tolist(), strict=True):
        if math.isfinite(sigma) and q > 0.0:
            laws.append(SampledNormal(sigma, q, direction))
        else:
            laws.append(None)
    return LawTable(laws)
