"""The law of a step's likelihood ratio W = P/Q under Q, as nodes that are as fine as is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from symdp.law.loss import LossLaw
from symdp.law.nodes import escapes, integer_nodes
from symdp.law.outline import covering_tilts
from symdp.law.panels import build_panels, gauss_legendre
from symdp.law.step import Array, SmoothPiece

_RATE = 90.0  # e-folds: what is less likely under P and under Q is left out
_LEVELS = 7  # of windows of tilts, the widest of −64 to 63
_FREQUENCY = 4.0  # of the loss, that the panels resolve without being cut
_LEAST_ATOM = 1e-14  # a mass of W = 0 below this is rounding
_TURN = 10.0  # a rule of 16 nodes integrates e^{iz} over |z| ≤ 5 to 1e-22


@dataclass(frozen=True)
class Ratios:
    """Nodes of W with log weights under Q."""

    ratio: Array
    log_weight: Array


class RatioLaw:
    """W = P/Q of a step under Q.

    Attributes
    ----------
    atoms
        Values of W of positive probability, W = 0 among them where P vanishes and Q does not.
    """

    def __init__(self, law: LossLaw) -> None:
        self.law, self.name = law, law.step.name
        tilts = _window(law)
        self._pieces: list[tuple[SmoothPiece, Array, Array]] = []
        self.error = law.base.error
        finite = [o for o in law.outlines if not escapes(o.piece)]
        masses = covering_tilts(finite, tilts) if finite else {}
        loss, log_p = [law.step.point_loss], [law.step.point_log_p]
        for outline in finite:
            piece = outline.piece
            if piece.integer:
                x = integer_nodes(piece, tilts)
                loss.append(np.asarray(piece.loss(x)))
                log_p.append(piece.log_p(x))
                continue
            panels, leftover = build_panels([(outline, masses)], _FREQUENCY)
            if panels is None:
                continue
            self.error = max(self.error, float(leftover.max()))
            if piece.flat:
                x, weight = gauss_legendre(panels.lower, panels.upper)
                mass = float((np.exp(piece.log_p(x)) * weight).sum())
                loss.append(np.asarray(piece.loss(x.ravel()[:1])))
                log_p.append(np.log(np.asarray([mass])))
            else:
                self._pieces.append((piece, panels.lower, panels.upper))
        self.atoms = self._atoms(np.concatenate(loss), np.concatenate(log_p))

    def _atoms(self, loss: Array, log_p: Array) -> Ratios:
        seen = np.isfinite(loss) & np.isfinite(log_p)
        ratio, log_weight = np.exp(loss[seen]), log_p[seen] - loss[seen]
        if self.mass_at_zero > 0:
            ratio = np.append(ratio, 0.0)
            log_weight = np.append(log_weight, math.log(self.mass_at_zero))
        return Ratios(ratio, log_weight)

    @cached_property
    def mass_at_zero(self) -> float:
        """Q(P = 0)."""
        law = self.law
        log_rest = float(law.transform(np.asarray([-1.0]))[0]) - law.base.mean
        missing = -math.expm1(log_rest)
        return missing if missing > _LEAST_ATOM else 0.0

    @property
    def is_spread(self) -> bool:
        """Whether W has a continuous part."""
        return bool(self._pieces)

    @cached_property
    def coarse(self) -> Ratios:
        """Nodes that resolve W under any tilt, but no oscillation."""
        return self.refined(0.0, -math.inf, math.inf)

    def refined(self, frequency: float, least: float, most: float) -> Ratios:
        """Return nodes that resolve e^{−ivW} for |v| ≤ frequency where W is in a range."""
        ratios, weights = [self.atoms.ratio], [self.atoms.log_weight]
        for piece, low, high in self._pieces:
            x, weight = _cut(piece, low, high, frequency, least, most)
            with np.errstate(all="ignore"):
                loss, log_q = np.asarray(piece.loss(x)), piece.log_q(x)
            kept = np.isfinite(loss) & np.isfinite(log_q)
            ratios.append(np.exp(loss[kept]))
            weights.append(log_q[kept] + np.log(weight[kept]))
        return Ratios(np.concatenate(ratios), np.concatenate(weights))


def _window(law: LossLaw) -> list[float]:
    """Return tilts between which the law is seen down to a probability of e^−90, P's and Q's."""
    outlines = [o for o in law.outlines if not escapes(o.piece)]

    def log_moment(tilt: float) -> float:
        """Return K(t) to within a few units."""
        points = law.step.point_log_p + tilt * law.step.point_loss
        known = [o.log_masses([tilt])[0] for o in outlines]
        return float(np.logaddexp.reduce([*known, *points[np.isfinite(points)]]))

    ends = []
    for upper, centre in ((False, -1.0), (True, 0.0)):
        for level in range(1, _LEVELS):
            ends.append(law._edge(level, upper))
            # Half of what a large deviation costs where K is quadratic, and less elsewhere.
            rate = log_moment(ends[-1]) - 2.0 * log_moment(0.5 * (centre + ends[-1]))
            if rate > _RATE:
                break
    return sorted({*ends, -1.0, 0.0})


def _cut(
    piece: SmoothPiece, low: Array, high: Array, frequency: float, least: float, most: float
) -> tuple[Array, Array]:
    """Return nodes and weights of panels, cut where W turns a frequency too fast for one rule."""
    x, _ = gauss_legendre(low, high)
    with np.errstate(all="ignore"):
        ratio = np.clip(np.exp(piece.loss(x.ravel()).reshape(x.shape)), 0.0, 1e300)
    ends = np.exp([_end_loss(piece, low), _end_loss(piece, high)])
    top = np.fmax(ratio.max(axis=1), np.nan_to_num(ends.max(axis=0)))
    bottom = np.fmin(ratio.min(axis=1), np.nan_to_num(ends.min(axis=0)))
    inside = (top >= least) & (bottom <= most)
    parts = np.ones(low.size, dtype=np.intp)
    turns = frequency * (np.minimum(top, 4.0 * most) - bottom)[inside]
    parts[inside] = np.maximum(1, np.ceil(turns / _TURN)).astype(np.intp)
    first = np.repeat(np.concatenate([[0], np.cumsum(parts)[:-1]]), parts)
    share = np.arange(int(parts.sum())) - first
    width = np.repeat((high - low) / parts, parts)
    lower = np.repeat(low, parts) + share * width
    nodes, weights = gauss_legendre(lower, lower + width)
    return nodes.ravel(), weights.ravel()


def _end_loss(piece: SmoothPiece, ends: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.minimum(np.asarray(piece.loss(ends)), 690.0)
