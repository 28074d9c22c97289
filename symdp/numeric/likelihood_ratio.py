r"""The law of a step's likelihood ratio W = P/Q under Q, as nodes that are as fine as is asked.

**Tails of a sum**, which a table of its density leaves out. Y is the sum of t copies of W = P/Q
under Q; under "P" one of them follows P instead. For every u ≥ 0 and every b, Chernoff's bound and
a union over the t components give

.. math::

   Pr(Y < y) \le e^{uy} E e^{-uY}, \qquad
   Pr(Y > y) \le Pr(\max W > b) + e^{-uy} E[e^{uY}; \max W \le b].

The second needs no exponential moment of W. Both are sums over the nodes of W.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import escapes, integer_nodes
from symdp.numeric.outline import covering_tilts
from symdp.numeric.panels import build_panels, gauss_legendre
from symdp.numeric.step import Array, SmoothPiece

_RATE = 90.0  # e-folds: what is less likely under P and under Q is left out
_LEVELS = 7  # of windows of tilts, the widest of −64 to 63
_FREQUENCY = 4.0  # of the loss, that the panels resolve without being cut
_LEAST_ATOM = 1e-14  # a mass of W = 0 below this is rounding
_LARGEST_LOSS = 300.0  # a larger W, whose square is near the end of doubles, counts as infinite
_TURN = 8.0  # with what W bends by _CHANGE: a rule of 16 nodes integrates e^{iz} over |z| ≤ 5
_CHANGE, _STEP_CHANGE = 0.5, 0.25  # of log W on a panel: five widths of a cut-off's step
_LOWEST = 36.0  # e-folds: 2e-16


@dataclass(frozen=True)
class Ratios:
    """Nodes of W with log weights under Q."""

    ratio: Array
    log_weight: Array


class RatioLaw:
    """W = P/Q of a step under Q.

    `atoms`: values of W of positive probability, W = 0 among them where P vanishes and Q does not.
    `mass_beyond`: P(log W > 300), which nodes leave out.
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
            panels, leftover = build_panels(outline, masses, _FREQUENCY)
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
        beyond = seen & (loss > _LARGEST_LOSS)
        self.mass_beyond = float(np.exp(log_p[beyond]).sum())
        for piece, low, high in self._pieces:
            x, weight = gauss_legendre(low, high)
            with np.errstate(all="ignore"):
                large = np.asarray(piece.loss(x)) > _LARGEST_LOSS
            self.mass_beyond += float((np.exp(piece.log_p(x[large])) * weight[large]).sum())
        seen &= ~beyond
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

    def refined(
        self,
        frequency: float,
        least: float,
        most: float,
        step: tuple[float, float] = (math.inf, -math.inf),
    ) -> Ratios:
        """Return nodes that resolve e^{−ivW} for |v| ≤ frequency where W is in a range.

        Between the two ends of a step they resolve a cut-off too.
        """
        ratios, weights = [self.atoms.ratio], [self.atoms.log_weight]
        for piece, low, high in self._pieces:
            x, weight = _cut(piece, low, high, frequency, (least, most), step)
            with np.errstate(all="ignore"):
                loss, log_q = np.asarray(piece.loss(x)), piece.log_q(x)
            kept = np.isfinite(loss) & np.isfinite(log_q) & (loss <= _LARGEST_LOSS)
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
    piece: SmoothPiece,
    low: Array,
    high: Array,
    frequency: float,
    within: tuple[float, float],
    step: tuple[float, float],
) -> tuple[Array, Array]:
    """Return nodes and weights of panels, cut where one rule would not do.

    On each, vW changes by few turns, and log W by little where e^{−ivW} turns or a cut-off steps.
    """
    least, most = within
    bottom, top = _losses(piece, low, high)
    inside = (np.exp(top) >= least) & (np.exp(bottom) <= most)
    turning = inside & (frequency * np.exp(top) > 1.0)
    stepping = inside & (np.exp(top) >= step[0]) & (np.exp(bottom) <= step[1])
    most_change = np.where(stepping, _STEP_CHANGE, np.where(turning, _CHANGE, np.inf))
    # Far below the top W is as good as 0.
    low, high = _divided(low, high, np.minimum(top - bottom, _LOWEST) / most_change)
    bottom, top = _losses(piece, low, high)
    inside = (np.exp(top) >= least) & (np.exp(bottom) <= most)
    change = np.minimum(np.exp(top), 4.0 * most) - np.exp(bottom)
    nodes, weights = gauss_legendre(
        *_divided(low, high, np.where(inside, frequency * change / _TURN, 1.0))
    )
    return nodes.ravel(), weights.ravel()


def _divided(low: Array, high: Array, number: Array) -> tuple[Array, Array]:
    """Return panels cut into at least so many equal parts."""
    parts = np.maximum(1, np.ceil(number)).astype(np.intp)
    first = np.repeat(np.concatenate([[0], np.cumsum(parts)[:-1]]), parts)
    share = np.arange(int(parts.sum())) - first
    width = np.repeat((high - low) / parts, parts)
    lower = np.repeat(low, parts) + share * width
    return lower, lower + width


def _losses(piece: SmoothPiece, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the least and the largest loss seen on each panel."""
    x, _ = gauss_legendre(low, high)
    x = np.concatenate([low[:, None], x, high[:, None]], axis=1)
    with np.errstate(all="ignore"):
        loss = np.asarray(piece.loss(x.ravel())).reshape(x.shape)
    loss = np.clip(loss, -_LARGEST_LOSS, _LARGEST_LOSS)
    return np.fmin.reduce(loss, axis=1), np.fmax.reduce(loss, axis=1)


_RATES = np.exp(np.arange(-9.0, 12.0, 0.125))  # u, in units of 1/y
_CUTS = np.exp(np.linspace(-5.0, 0.0, 41))  # b, in units of y
_UNSEEN = 1e-38  # nodes of W leave out what is less likely than e^−90 under P and under Q


def log_tail(ratios: Ratios, steps: int, y: float, side: int, *, with_record: bool) -> float:
    """Return a log bound on the probability that Y lies beyond y.

    `ratios`: nodes of W and their log weights under Q. `steps`: t ≥ 1. `y`: a place above 0.
    `side`: 1 for Pr(Y > y), −1 for Pr(Y < y). `with_record`: whether one component follows P.
    """
    seen = ratios.ratio > 0
    ratio, log_q = ratios.ratio, ratios.log_weight
    log_p = np.where(seen, log_q + np.log(np.where(seen, ratio, 1.0)), -math.inf)
    own = log_p if with_record else log_q
    others = steps - 1
    order = np.argsort(ratio)
    ratio, own, log_q = ratio[order], own[order], log_q[order]
    if side < 0:
        exponent = np.multiply.outer(-_RATES / y, ratio)
        sums = [np.logaddexp.reduce(log + exponent, axis=1) for log in (own, log_q)]
        return _at_least_unseen(float((_RATES + sums[0] + others * sums[1]).min()))
    # Up to each cut, at all rates at once; beyond it, a union over the components.
    number = np.searchsorted(ratio, _CUTS * y, side="right")
    beyond = [np.logaddexp(_total(own[n:]), _log(others) + _total(log_q[n:])) for n in number]
    exponent = np.multiply.outer(_RATES / y, ratio)
    up_to = np.maximum(number, 1) - 1
    sums = [np.logaddexp.accumulate(log + exponent, axis=1)[:, up_to] for log in (own, log_q)]
    rest = (-_RATES[:, None] + sums[0] + others * sums[1]).min(axis=0)
    rest[number == 0] = 0.0
    return _at_least_unseen(float(np.logaddexp(beyond, rest).min()))


def _total(logs: Array) -> float:
    return float(np.logaddexp.reduce(logs)) if logs.size else -math.inf


def _log(count: int) -> float:
    return math.log(count) if count else -math.inf


def _at_least_unseen(bound: float) -> float:
    return min(float(np.logaddexp(bound, math.log(_UNSEEN))), 0.0)
