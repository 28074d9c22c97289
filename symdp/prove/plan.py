"""Where a proof looks: found in doubles, and none of it believed.

    (1/Λ) Σ_k M(z_k)ⁿ e^{−εz_k}/(z_k(z_k + 1)),    z_k = t + 2πik/Λ,

needs a tilt t, a period Λ, two tilts that bound aliases (see `line`), and panels that hold the law
but for a mass that is small beside δ.  F(t) = K(t) − εt − log|t(1 + t)| is smallest at the saddle
point, and e^F/√(2πF″) [SPA (60)] is the size of δ that digits are counted from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from symdp.emit.exact import LN10
from symdp.errors import AccuracyError
from symdp.numeric.elementary import log_payoff
from symdp.numeric.integers import integer_nodes
from symdp.numeric.nodes import NodeSet
from symdp.numeric.outline import NEGLIGIBLE
from symdp.numeric.saddle_point import Strip, saddle_point
from symdp.numeric.total import SumLaw
from symdp.prove.kind import Kind, Kinds, Stretch, sum_law
from symdp.prove.measure import Panels

_SETTLED = 0.02  # of the saddle point's own width: its place changes cost, not value
# Of the way to the end of K's domain, where K′ stays below ε up to that end.
_NEAR_END = (0.9995, 0.99, 0.9, 0.5)
_BITS = 6  # of a tilt: enough to be near the saddle point
_SIXTEENTHS = 16  # of the tilt, at which K is looked at on both sides
_FARTHEST = 5  # times the tilt, up to which
_SPARE = 1.0  # e-folds of a period
_NEAR = 1e-3  # of the stretch: up to there the panels of doubles go to a singular end
_LONGEST = 700  # panels marched on one side of a stretch
_BESIDE = np.asarray([0.0, 0.19, 0.53])  # widths further, so that a zero of a density is none
_INTEGERS_AGAIN = 4  # tries at integers with ever more mass


class Scales(NamedTuple):
    """About K of one step at the three tilts of a plan."""

    tilt: float
    below: float
    above: float


@dataclass(frozen=True)
class Plan:
    """A line, its step and how far it has to be summed, and panels of each kind of step."""

    tilt: float
    below: float  # < tilt < above, right of 0 or between −1 and 0
    above: float
    period: float  # Λ; of a lattice, a multiple of its spacing
    log_size: float  # about log δ, infinite losses included; 0 between the poles
    log_finite: float  # about the log of the sum itself
    curvature: float  # F″ at the saddle point
    scales: tuple[Scales, ...]  # of one step of each kind
    panels: tuple[tuple[Panels, ...], ...]

    @property
    def is_right(self) -> bool:
        """Whether the line lies right of 0."""
        return self.tilt > 0


@dataclass(frozen=True)
class Saddle:
    """A tilt, F″ there, and the log of e^F/√(2πF″)."""

    tilt: float
    curvature: float
    log_size: float


def find_saddle(law: SumLaw, epsilon: float, strip: Strip = Strip.RIGHT) -> Saddle | None:
    """Return about the saddle point of a strip, None where K is finite nowhere in it.

    Where F falls up to the end of K's domain, a tilt near that end serves.
    """
    saddle = saddle_point(law, epsilon, strip, _SETTLED)
    if saddle is not None:
        return Saddle(saddle.tilt, saddle.curvature, saddle.log_leading)
    end = strip.width(law)
    if not 0 < end < math.inf:
        return None
    for share in _NEAR_END:
        tilt, tilt_plus_one = strip.position(share * end)
        try:
            variance = float(law.cumulants(tilt, 2)[1])
            log_kernel = math.log(abs(tilt * tilt_plus_one))
            height = law.cgf(tilt) - epsilon * tilt - log_kernel
        except AccuracyError:  # too close to the end for doubles
            continue
        curvature = variance + tilt**-2 + tilt_plus_one**-2
        log_size = height - math.log(2 * math.pi * curvature) / 2
        return Saddle(tilt, curvature, log_size)
    return None


def find_plan(
    kinds: Kinds,
    epsilon: float,
    digits: float,
    strip: Strip = Strip.RIGHT,
    spacing: float | None = None,
) -> Plan:
    """Return a plan of δ(ε) to about so many digits."""
    law = sum_law(kinds)
    saddle = find_saddle(law, epsilon, strip)
    if saddle is None:
        raise AccuracyError("no t > 0 was found at which the CGF of the loss is finite")
    log_size = 0.0
    if strip is Strip.RIGHT:
        log_size = max(saddle.log_size, law.log_mass_at_infinity)
    tilt = _tilt_of_few_bits(saddle.tilt, saddle.curvature)
    log_goal = log_size - digits * LN10
    below, above, period = period_of(law, epsilon, tilt, log_goal)
    if spacing is not None:
        period = spacing * (math.ceil(period / spacing) + 1)
    frequency = math.sqrt(2 * digits * LN10 / saddle.curvature)
    log_mass = min(log_goal, 0.0) - math.log(law.count)
    scales = []
    panels = []
    for kind, _ in kinds:
        step_law = SumLaw([(kind.law, 1)])
        heights = [float(f"{step_law.cgf(s):.12g}") for s in (tilt, below, above)]
        scales.append(Scales(*heights))
        panels.append(panels_of(kind, tilt, frequency, log_mass))
    return Plan(
        tilt=tilt,
        below=below,
        above=above,
        period=period,
        log_size=log_size,
        log_finite=saddle.log_size,
        curvature=saddle.curvature,
        scales=tuple(scales),
        panels=tuple(panels),
    )


def _tilt_of_few_bits(tilt: float, curvature: float) -> float:
    """Return a tilt of few bits, near for its own size and for the saddle point's width."""
    near = abs(tilt)
    if tilt < 0:
        near = min(near, 1 + tilt)
    unit = 2.0 ** (math.floor(math.log2(near)) - _BITS)
    units = max(round(abs(tilt) / unit), 1)
    return math.copysign(units * unit, tilt)


def period_of(
    law: SumLaw, epsilon: float, tilt: float, log_goal: float
) -> tuple[float, float, float]:
    """Return tilts below and above, and the least period whose aliases these bound as asked."""

    def best(tilts: Iterable[float]) -> tuple[float, float]:
        periods = []
        for s in tilts:
            height = exponent(law, epsilon, s)
            # Beside the end of the domain there are few doubles.
            if height is None or s == tilt:
                continue
            if s > 0:
                height += float(log_payoff(s))
            excess = max(height - log_goal, 0.0) + _SPARE
            periods.append((excess / abs(tilt - s), s))
        if not periods:
            raise AccuracyError("K is infinite just beside its saddle point")
        return min(periods)

    if tilt > 0:
        left, below = best(tilt * j / _SIXTEENTHS for j in range(_SIXTEENTHS))
        far = min(_FARTHEST * tilt, law.domain[1])
        room = far - tilt
        right, above = best(tilt + room * (j / _SIXTEENTHS) ** 2 for j in range(1, _SIXTEENTHS))
    else:
        left, below = best(-1 + (1 + tilt) * j / _SIXTEENTHS for j in range(_SIXTEENTHS))
        right, above = best(tilt - tilt * j / _SIXTEENTHS for j in range(1, _SIXTEENTHS + 1))
    return below, above, float(f"{max(left, right):.4g}")


def exponent(law: SumLaw, epsilon: float, tilt: float) -> float | None:
    """Return about K(s) − sε at one tilt, None where K is infinite there, or nearly so."""
    try:
        value = float(law.log_transform(np.asarray([tilt]), epsilon)[0])
    except AccuracyError:  # outside the domain of K, or at its end
        return None
    return value if math.isfinite(value) else None


@lru_cache(maxsize=256)
def panels_of(kind: Kind, tilt: float, frequency: float, log_mass: float) -> tuple[Panels, ...]:
    """Return panels of all stretches that leave out about a mass of P at most."""
    numeric_panels = _known_panels(kind, tilt, frequency)
    panels = []
    for number, stretch in enumerate(kind.stretches):
        edges = _edges_of_stretch(stretch, numeric_panels, log_mass)
        panels.append(Panels(number, edges))
    return tuple(panels)


def _known_panels(kind: Kind, tilt: float, frequency: float) -> list[tuple[object, np.ndarray]]:
    """Return the edges of the panels that doubles integrate on."""
    panels: list[tuple[object, np.ndarray]] = []
    for nodes in (kind.law.base, _nodes_at(kind, tilt, frequency)):
        if nodes is None:
            continue
        for piece, lower, upper in nodes.panels:
            panels.append((piece, np.append(lower, upper[-1:])))
    return panels


def _nodes_at(kind: Kind, tilt: float, frequency: float) -> NodeSet | None:
    try:
        return kind.law.nodes(tilt, frequency)
    except AccuracyError:
        return None


def _edges_of_stretch(
    stretch: Stretch, numeric_panels: Sequence[tuple[object, np.ndarray]], log_mass: float
) -> tuple[float, ...]:
    """Return edges from where P has mass outwards, until the density beside its room is small."""
    piece = stretch.piece
    if piece is None or (stretch.is_flat and stretch.whole_mass() is not None):
        return ()
    if stretch.is_integer:
        return _ends_of_integers(stretch, log_mass)
    edges_of_piece = [edges for other, edges in numeric_panels if other is piece and edges.size]
    if not edges_of_piece:
        from symdp.numeric.panels import build_panels

        outline = stretch.outline
        assert outline is not None
        log_mass_of_all = float(outline.log_masses([0.0])[0])
        panels, _ = build_panels(outline, {0.0: log_mass_of_all}, 0.0)
        if panels is None:
            return ()
        edges_of_piece = [np.append(panels.lower, panels.upper[-1:])]
    modes = _likely_modes(stretch, log_mass)
    edges = np.unique(np.concatenate([*edges_of_piece, modes])).tolist()
    for _ in range(2):  # from both ends
        edges = _with_end(stretch, edges[::-1], log_mass)
    return tuple(edges)


def _likely_modes(stretch: Stretch, log_mass: float) -> np.ndarray:
    """Return the modes around which there may be so much mass, however far from the others."""
    piece = stretch.piece
    outline = stretch.outline
    assert piece is not None
    assert outline is not None
    places = np.asarray(outline.anchors)
    places = places[(places > piece.lower) & (places < piece.upper)]
    with np.errstate(all="ignore"):
        sizes = piece.log_p(places) + np.log1p(np.abs(places))
    return np.asarray(places[sizes > log_mass])


def _with_end(stretch: Stretch, edges: list[float], log_mass: float) -> list[float]:
    """Return edges with more behind the last one, or up to a singular end instead of it."""
    piece = stretch.piece
    assert piece is not None
    *others, inner, last = edges
    if last not in (piece.lower, piece.upper):
        return [*edges, *_outwards(stretch, last, last - inner, log_mass)]
    if stretch.is_regular(last, abs(last - inner)):
        return edges
    while len(others) > 1 and abs(inner - last) < _NEAR * abs(others[0] - last):
        *others, inner = others  # so near it is looked at anew, up to the mass
    return [*others, inner, *_outwards(stretch, inner, last - inner, log_mass, is_singular=True)]


def _outwards(
    stretch: Stretch, edge: float, width: float, log_mass: float, *, is_singular: bool = False
) -> list[float]:
    """Return further edges on one side until hardly any mass is left, ever nearer if singular."""
    piece = stretch.piece
    assert piece is not None
    end = piece.upper if width > 0 else piece.lower
    further_edges: list[float] = []
    while edge != end and len(further_edges) < _LONGEST:
        room = abs(end - edge)
        places = np.asarray([edge])
        if not is_singular:
            room = min(room, abs(width) + abs(edge))
            places = edge + width * _BESIDE
        with np.errstate(all="ignore"):
            places = places[(places >= piece.lower) & (places <= piece.upper)]
            log_p = float(piece.log_p(places).max())
        has_hardly_any = log_p + math.log(room) < log_mass - 2.0
        if has_hardly_any or math.isnan(log_p):
            break
        width *= 1.5
        following = end + (edge - end) / 4 if is_singular else edge + width
        if abs(following - edge) >= abs(end - edge):
            following = end
        if following == edge or (is_singular and following == end):
            break
        further_edges.append(following)
        edge = following
    return further_edges


def _ends_of_integers(stretch: Stretch, log_mass: float) -> tuple[float, ...]:
    """Return the first and the last integer with mass."""
    piece = stretch.piece
    assert piece is not None
    further = 0.0
    for _ in range(_INTEGERS_AGAIN):
        further = max(-log_mass - NEGLIGIBLE + 8.0 + further, 0.0)
        integers = integer_nodes(piece, [0.0], further)
        if not integers.size:
            return ()
        ends = integers[[0, -1]]
        is_end_of_piece = (ends == piece.lower) | (ends == piece.upper)
        with np.errstate(all="ignore"):
            log_beyond = piece.log_p(ends) + np.log1p(np.abs(ends))
        if (is_end_of_piece | (log_beyond < log_mass)).all():
            break
    return float(ends[0]), float(ends[1])
