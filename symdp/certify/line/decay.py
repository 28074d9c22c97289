"""Proved bounds of |φ_t(y)| far out: what is left out, the atoms, and a bound of the rest.

With ends of a piece cut off, whose tilted mass is η, k integrations by parts over the middle give

    |φ_t(y)| ≤ η + atoms + Σ_{j<k−1} Σ_ends |g_j|/y^{j+1} + V_k/y^k,

g_j the j-th derivative of the density of the loss and V_k the variation of g_{k−1} with its ends.
Each order k gives a bound, and the smallest one counts.  More than one integration serves where the
density is next to 0 at both ends.  The middle is free of whatever the ends hold: infinite range, a
singular density, or a place where the loss turns.  As n copies need only |φ| ≤ level^{1/n}, η may
be large.
"""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import sympy as sp
from flint import arb, ctx

from symdp.balls.variation import LossPart
from symdp.certify.nodes import nodes_between
from symdp.certify.piece_integrand import Cut, Part
from symdp.emit.arb import constant_ball
from symdp.emit.enclose import between
from symdp.emit.exact import BITS, real_ball
from symdp.errors import AccuracyError
from symdp.prove.work import metered

if TYPE_CHECKING:
    from symdp.certify.nodes import Nodes
    from symdp.certify.parts import Parts
    from symdp.derive.records import Piece

_ORDERS = (1, 2, 4, 8)  # of integration by parts; of higher ones V_k is seldom found in time
_LOW_EDGE = 2.0**-6  # of V_1, that ends may add: else a higher order gains less than that
_GOAL = arb(2) ** -110  # error of a mass, absolute: a share of a bound is far larger
_LEAST = 2.0**-100  # a share of the mass below which the ends are not cut off
_CLOSE = 0.9  # to 1
_SHARES = (0.75, 0.9375, 0.984375)  # of what may be left out of many steps
_DENSE, _SHARE_DIGITS = 0.9375, 3  # what of a share goes to dense ends, not to irregular ones
# Where the search of a density begins, and how fine it ends.
_MOST_LOG_DENSITY, _HALVINGS = 300.0, 20
_FLAT_SLOPE = arb(2) ** -40  # at an end, from which on down ℓ′ may be 0


def metered_part(piece: Piece, x: sp.Symbol, tilt: sp.Rational, log_moment: arb) -> LossPart:
    """Return the density of the loss on a piece, its values counted as work."""
    part = LossPart(piece, x, tilt, log_moment)
    for name in ("exponent", "steepness"):
        setattr(part, name, metered(getattr(part, name)))
    return part


class _Node(NamedTuple):
    """A node: its share of the mass, and about log of the density of the loss there."""

    place: arb
    mass: float
    log_density: float


class Decay:
    """Bounds of one step at one tilt, made as they are asked for and kept."""

    def __init__(self, parts: Parts, tilt: sp.Rational) -> None:
        log_moment = parts.cgf(tilt)
        self._pieces: list[LossPart] = []
        self._middles: dict[int, _Middle] = {}
        self._gentles: dict[float, _Middle] = {}
        self._moving: list[tuple[Part, Cut, Nodes]] = []
        with ctx.workprec(BITS):
            self._tilt, self._scale = constant_ball(tilt, BITS).real, log_moment.mid()
            self._total = (log_moment - self._scale).exp()
            self._flat = arb(0)
            for part in parts.stretches:
                cut = part.cut(parts.reach(tilt), BITS)
                found = nodes_between(part, cut, self._tilt, self._scale, tolerance=_GOAL)
                if part.is_flat:
                    beyond = cut.beyond * (-self._scale).exp()
                    self._flat += (found.total() + beyond) / self._total
                else:
                    self._moving.append((part, cut, found))
                    self._pieces.append(metered_part(part.piece, part.x, tilt, log_moment))

    def at(self, frequency: arb, each: float) -> arb:
        """Return a bound of |φ(y)| for all y ≥ frequency, best where it is about `each`.

        Raises
        ------
        AccuracyError
            If no such bound is proved.
        """
        flat = float(self._flat.upper())
        room = (each - flat) / 2 if each > flat else each
        with ctx.workprec(BITS):
            best = self._middle(room).at(frequency, each)
            # Of many steps nearly all of the mass may be left out: first what is dense.
            for share in _SHARES if each > max(flat, _CLOSE) else ():
                if best < each:
                    break
                best = best.min(self._gentle((each - flat) * share).at(frequency, each))
            return arb(best.min(arb(1)).upper())

    def _middle(self, room: float) -> _Middle:
        """Return the bound that leaves out about so large a share of the mass."""
        key = math.floor(math.log2(max(room, _LEAST)))
        if key not in self._middles:
            share = 2.0**key / (4 * max(len(self._moving), 1))
            self._middles[key] = self._cut_off(share, math.inf)
        return self._middles[key]

    def _gentle(self, room: float) -> _Middle:
        """Return the bound that leaves out the ends where the loss is densest, a share in all."""
        key = round(room, _SHARE_DIGITS)
        if key not in self._gentles:
            dense = _DENSE * key
            share = (key - dense) / (4 * max(len(self._moving), 1))
            self._gentles[key] = self._cut_off(share, self._threshold(dense))
        return self._gentles[key]

    def _threshold(self, room: float) -> float:
        """Return the least density of the loss such that denser ends have about a share at most."""
        low, high = -_MOST_LOG_DENSITY, _MOST_LOG_DENSITY
        sides = [side for profile in self._profiles for side in (profile, profile[::-1])]
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            mass = sum(node.mass for side in sides for node in _denser(side, middle))
            low, high = (middle, high) if mass > room else (low, middle)
        return high

    @cached_property
    def _profiles(self) -> list[list[_Node]]:
        """Return the nodes of each piece from left to right, with the density of the loss there."""
        profiles = []
        for (_, _, nodes), piece in zip(self._moving, self._pieces, strict=True):
            profile = []
            for place, weight in _sorted(nodes):
                density = piece.derivatives(place, 1)[0]
                log_density = float(density.log().mid()) if density > 0 else math.inf
                profile.append(_Node(place, float((weight / self._total).mid()), log_density))
            profiles.append(profile)
        return profiles

    def _cut_off(self, share: float, threshold: float) -> _Middle:
        removed = self._flat
        inside: list[tuple[LossPart, arb, arb]] = []
        for index, (part, cut, nodes) in enumerate(self._moving):
            piece = self._pieces[index]
            low, high = self._ends(index, share, threshold)
            removed += cut.beyond * (-self._scale).exp() / self._total
            if not low < high:
                removed += nodes.total() / self._total
                continue
            removed += self._mass(part, cut.lower, low) + self._mass(part, high, cut.upper)
            inside.append((piece, low, high))
        return _Middle(arb(removed.upper()), inside)

    def _mass(self, part: Part, left: arb, right: arb) -> arb:
        """Bound the tilted mass between two places, which may be one and the same."""
        if left < right:
            cut = Cut(left, right, arb(0))
            mass = nodes_between(part, cut, self._tilt, self._scale, tolerance=_GOAL).total()
        else:
            gap = abs(right - left).upper()
            mass = gap * part.height(between(left, right), self._tilt, self._scale) if gap else gap
        return arb((mass / self._total).upper())

    def _ends(self, index: int, share: float, threshold: float) -> tuple[arb, arb]:
        """Return the ends of a piece, or places inside: of what is irregular or dense there."""
        part, cut, nodes = self._moving[index]
        pairs = _sorted(nodes)
        profile = self._profiles[index] if threshold < math.inf else []
        ends: list[arb] = []
        for side, turn in ((0, 1), (1, -1)):
            ordered = pairs[::turn]
            first = len(_denser(profile[::turn], threshold))
            exact = (part.piece.lower, part.piece.upper)[side]
            if exact.is_finite and not first:
                end = real_ball(exact)
                if self._is_regular(index, end):
                    ends.append(end.mid())
                    continue
            passed = itertools.accumulate(float(weight.mid()) for _, weight in ordered)
            found = next((k for k, mass in enumerate(passed) if mass > share), len(ordered) - 1)
            if found < 0:  # no node counts: the whole piece is left out
                return arb(0), arb(0)
            found = max(found, min(first, len(ordered) - 1))
            place, weight = ordered[found]
            if found == 0:  # the mass up to a place is about proportional to the distance
                end = (cut.lower, cut.upper)[side].mid()
                place = (end + (place - end) * min(0.5, share / float(weight.mid()))).mid()
            ends.append(place)
        return ends[0], ends[1]

    def _is_regular(self, index: int, end: arb) -> bool:
        part, piece = self._moving[index][0], self._pieces[index]
        if not all(value.is_finite() for value in part.logarithms(end)):
            return False
        slope = piece.loss(end, 2)[1]
        return bool(slope.is_finite() and abs(slope) > _FLAT_SLOPE) and bool(
            piece.derivatives(end, 1)[0].is_finite()
        )


def _denser(profile: list[_Node], threshold: float) -> list[_Node]:
    """Return the nodes from one end on at which the loss is denser than a threshold."""
    return list(itertools.takewhile(lambda node: node.log_density > threshold, profile))


def _sorted(nodes: Nodes) -> list[tuple[arb, arb]]:
    """Return places and weights from left to right."""
    pairs = zip(nodes.places, nodes.weights, strict=True)
    return sorted(pairs, key=lambda pair: pair[0].fmpq())


class _Middle:
    """|φ(y)| ≤ removed + the integral over what is left, by parts as often as serves."""

    def __init__(self, removed: arb, inside: list[tuple[LossPart, arb, arb]]) -> None:
        self._removed, self._inside = removed, inside
        self._variations: dict[int, arb] = {}

    @cached_property
    def _edges(self) -> list[arb]:
        """Return Σ |g_j| at the ends of all parts, ∞ where a derivative of the density is not."""
        edges = [arb(0)] * _ORDERS[-1]
        for part, *ends in self._inside:
            for end in ends:
                try:
                    values = part.derivatives(end, len(edges))
                except AccuracyError:
                    values = [arb.pos_inf()] * len(edges)
                edges = [e + abs(v).upper() for e, v in zip(edges, values, strict=True)]
        return [edge if edge.is_finite() else arb.pos_inf() for edge in edges]

    def at(self, frequency: arb, each: float) -> arb:
        """Return the bound from a frequency on, of the first order that reaches a modulus."""
        best, ends, power = arb.pos_inf(), self._removed, arb(1)
        for before, order in itertools.pairwise((0, *_ORDERS)):
            for j in range(max(before - 1, 0), order - 1):
                power *= frequency
                ends += self._edges[j] / power
            if before and not (ends < each and self._edges[0] < _LOW_EDGE * self._variation(1)):
                break  # what the ends add is too large
            rest = self._variation(order) / frequency**order
            best = best.min(ends + rest)
            if best < each:
                break
        return arb(best.upper())

    def _variation(self, order: int) -> arb:
        """Return V_k, ∞ where none is proved."""
        if order not in self._variations:
            found = self._edges[order - 1]
            for part, low, high in self._inside:
                try:
                    found += part.variation(low, high, order)
                except AccuracyError:
                    found = arb.pos_inf()
                    break
            self._variations[order] = arb(found.upper()) if found.is_finite() else arb.pos_inf()
        return self._variations[order]
