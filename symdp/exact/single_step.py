"""δ(ε) of one step from its definition, cut at the roots of ℓ(x) = ε.

    δ(ε) = ∫_{ℓ>ε} P (1 − e^{ε−ℓ}) dx,    1 − δ(ε) = ∫ min(P, e^ε Q) dx.

Both are integrals of positive functions by adaptive Gauss–Legendre panels, which say what they left
unresolved. Rounding of the loss counts next to the largest one, where δ is as small as the distance
from it; that distance itself is known beyond doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from symdp.errors import AccuracyError
from symdp.exact.accuracy import EQUAL, NEGLIGIBLE, ROUNDED, ROUNDING
from symdp.exact.answer import Answer
from symdp.exact.error_bars import exact_answer, unclosed
from symdp.law.elementary import distinct, log_sum
from symdp.law.loss import LossLaw
from symdp.law.monotone import MonotoneGrid, monotone_grid
from symdp.law.nodes import escapes, flat_nodes, integer_nodes
from symdp.law.outline import Outline, tilted_log_density
from symdp.law.panels import build_rule
from symdp.law.probe import gauss_legendre
from symdp.law.step import Accurate, Array, Extended, SmoothPiece
from symdp.law.tilts import log_add_exp
from symdp.law.total import SumLaw


class Profile(NamedTuple):
    """log δ(ε) and log(1 − δ(ε)) of the finite part of one step, and how far off δ may be.

    The error is relative: what the rules for δ left unresolved, as `complement_error` is what those
    for 1 − δ did. `log_rounded` is the part of δ that comes from losses in double precision, and
    not from the largest one, which is known beyond it.
    """

    log_delta: float
    log_complement: float
    error: float
    log_rounded: float
    complement_error: float


def single_step_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε) of a single step, None for several.

    Parameters
    ----------
    law
        The total loss.
    epsilon
        Between the least and the largest loss, in nats.
    """
    if law.count > 1:
        return None
    part = law.parts[0][0]
    known = part.known_profile(epsilon)
    profile = (
        log_profile(part, epsilon) if known is None else Profile(*known[:3], -math.inf, known[2])
    )
    finite, complement, missing, rounded, off = profile
    # Far in a tail the density is e to a large negative number, whose rounding counts.
    error = 4.0 * ROUNDED + missing + 2.0 * ROUNDING * min(abs(finite), 1e6)
    off += 4.0 * ROUNDED + 2.0 * ROUNDING * (abs(complement) + abs(epsilon))
    off += 0.0 if known is None else part.base.error
    # Next to the largest loss the rounding of others is not small beside their distance from ε.
    top = law.loss_bounds[1]
    if math.isfinite(top) and rounded > -math.inf:
        error += ROUNDED * abs(top) / law.below_top(epsilon) * math.exp(rounded - finite)
    log_delta = log_add_exp(finite, law.log_mass_at_infinity)
    explained = error * math.exp(log_delta) + off * math.exp(complement)
    missed = unclosed(log_delta, complement, explained)
    error += missed
    off += missed * math.exp(min(log_delta - complement, 700.0)) if missed > 0.0 else 0.0
    slope = math.nan if known is None else -math.exp(min(known[3] - log_delta, 700.0))
    return exact_answer(log_delta, complement, error, slope, epsilon, off)


def log_profile(law: LossLaw, epsilon: float) -> Profile:
    """Return the profile of the finite part of one step.

    δ = E[(1 − e^{ε−L})⁺] and 1 − δ = E[min(1, e^{ε−L})] are integrals of positive functions, cut
    where ℓ = ε.
    """
    step = law.step
    gains: list[float] = []
    topmost: list[float] = []
    errors: list[tuple[float, float]] = []  # with the size of what they are relative to
    losses: list[float] = []
    lost: list[tuple[float, float]] = []  # as `errors`, of 1 − δ
    top = law.precise_top
    beyond = None if top is None else float(top - Fraction(epsilon))

    def add_atoms(loss: Array, log_p: Array) -> None:
        """Add single values of the loss; the largest as far above ε as it is known to be."""
        if top is None or beyond is None:
            _add(gains, log_p + _log_gain(loss, epsilon))
            return
        is_top = np.abs(loss - float(top)) <= EQUAL * (1.0 + abs(float(top)))
        with np.errstate(divide="ignore"):
            gain = np.log(-np.expm1(np.minimum(np.full(loss.shape, -beyond), 0.0)))
        _add(topmost, (log_p + gain)[is_top])
        _add(gains, (log_p + _log_gain(loss, epsilon))[~is_top])

    add_atoms(step.point_loss, step.point_log_p)
    _add(losses, step.point_log_p + _log_cap(step.point_loss, epsilon))
    outlines = law.outlines
    masses = _tilted_masses(law, outlines, epsilon)
    for outline in outlines:
        piece = outline.piece
        if piece.integer:
            _add(gains, _at_integers(piece, lambda loss: _log_gain(loss, epsilon)))
            _add(losses, _at_integers(piece, lambda loss: _log_cap(loss, epsilon)))
            continue
        if escapes(piece):
            continue
        if piece.flat:
            atom = flat_nodes(outline)
            add_atoms(atom.loss, atom.log_weight)
            _add(losses, atom.log_weight + _log_cap(atom.loss, epsilon))
            if np.any(atom.loss > epsilon):
                errors.append((atom.error, log_sum([*gains, *topmost])))
            continue
        cuts = _cuts(outline, masses, epsilon)
        values, error = _weights(piece, lambda loss: _log_gain(loss, epsilon), cuts)
        _add(gains, values)
        errors.append((error, log_sum(values)))
        values, error = _weights(piece, lambda loss: _log_cap(loss, epsilon), cuts)
        _add(losses, values)
        lost.append((error, log_sum(values)))
    total, complement = log_sum([*gains, *topmost]), log_sum(losses)
    error = sum(e * math.exp(size - total) for e, size in errors if size > -math.inf)
    off = sum(e * math.exp(size - complement) for e, size in lost if size > -math.inf)
    return Profile(total, complement, error, log_sum(gains), off)


def _tilted_masses(law: LossLaw, outlines: Sequence[Outline], epsilon: float) -> dict[float, float]:
    """Return the tilts under which everything that δ and 1 − δ consist of is typical, with masses.

    Below 0, the laws under P and Q; above, the saddle point's tilt, whose law makes ε typical.
    """
    finite = [o for o in outlines if not (o.piece.integer or o.piece.flat or escapes(o.piece))]
    if not finite:
        return {}
    tilts = [-1.0, 0.0, *_typical_tilt(finite, epsilon, law.domain[1])]
    logs = np.logaddexp.reduce([o.log_masses(tilts) for o in finite], axis=0)
    known = zip(tilts, logs.tolist(), strict=True)
    return {tilt: log_mass for tilt, log_mass in known if math.isfinite(log_mass)}


def _typical_tilt(outlines: Sequence[Outline], epsilon: float, end: float) -> list[float]:
    """Return about where K′(t) = ε + 1/t + 1/(1+t), as grids tell; none far beyond doubles."""

    def too_far(tilt: float) -> bool:
        shells = np.concatenate([o.shells([tilt])[0] for o in outlines])
        loss = np.concatenate([o.loss for o in outlines])
        held = np.isfinite(shells) & np.isfinite(loss)
        if not held.any():
            return True
        weight = np.exp(shells[held] - shells[held].max())
        mean = float(weight @ loss[held] / weight.sum())
        return mean > epsilon + 1.0 / tilt + 1.0 / (1.0 + tilt)

    if not end > 0.0:
        return []
    farthest = 2.0**40  # from there on a loss is told within its rounding
    low, high = 0.0, min(1.0, 0.5 * end)
    while high < farthest and not too_far(high):
        low, high = high, min(2.0 * high, 0.5 * (high + end))
        if high == low:
            return [low]
    if high >= farthest:
        return []
    for _ in range(12):  # far closer than a standard deviation needs
        middle = 0.5 * (low + high)
        low, high = (low, middle) if too_far(middle) else (middle, high)
    return [0.5 * (low + high)]


def _cuts(outline: Outline, masses: Mapping[float, float], epsilon: float) -> Array:
    """Return where panels end: at the roots of ℓ(x) = ε, and at what resolves the densities.

    Between two places of the grid the loss is monotone, so that a root shows as a change of sign.
    """
    piece, x, edges = outline.piece, outline.x, np.empty(0)
    if not piece.monotone:
        grid = _resolved(outline, masses)
        if grid is not None:
            x, edges = distinct(np.concatenate([x, grid.x, grid.turns])), grid.edges
    with np.errstate(all="ignore"):
        loss = np.asarray(piece.loss(x))
    usable = ~np.isnan(loss)
    x, above = x[usable], loss[usable] > epsilon
    change = np.flatnonzero(above[:-1] != above[1:])
    low, high, left = x[change], x[change + 1], above[change]
    for _ in range(1100):
        middle = 0.5 * (low + high)
        if not ((middle > low) & (middle < high)).any():
            break
        same = (np.asarray(piece.loss(middle)) > epsilon) == left
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return distinct(np.concatenate([edges, low]))


def _resolved(outline: Outline, masses: Mapping[float, float]) -> MonotoneGrid | None:
    """Return the grid of all tilts, of P and Q alone where the others are too much, or None."""
    for tilts in (masses, {t: m for t, m in masses.items() if t <= 0.0}):
        with suppress(AccuracyError):
            return monotone_grid(outline, tilts)
    return None  # δ and 1 − δ tell whether a stretch was missed


def _log_gain(loss: Array, epsilon: float) -> Array:
    """Return log (1 − e^{ε−ℓ})⁺; zero mass where Q vanishes, which is counted elsewhere."""
    with np.errstate(divide="ignore", over="ignore"):
        gain = np.log(np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0))
    return np.where(np.isposinf(loss), -np.inf, gain)


def _log_cap(loss: Array, epsilon: float) -> Array:
    """Return log min(1, e^{ε−ℓ})."""
    return np.minimum(epsilon - loss, 0.0)


def _add(parts: list[float], values: Array) -> None:
    total = log_sum(values)
    if total > -math.inf:
        parts.append(total)


def _payoff(piece: SmoothPiece, log_factor: Callable[[Array], Array]) -> SmoothPiece:
    """Return the piece with P times the payoff in place of P."""

    def log_p(x: Array) -> Array:
        return np.asarray(piece.log_p(x) + log_factor(np.asarray(piece.loss(x))))

    return replace(piece, log_p=log_p, joint=None, accurate=_Paid(piece.accurate, log_factor))


class _Paid:
    """log of P times the payoff, and ℓ, beyond double precision."""

    def __init__(self, accurate: Accurate, log_factor: Callable[[Any], Any]) -> None:
        self._accurate, self._log_factor = accurate, log_factor
        self.ball = accurate.ball  # of P itself

    def __call__(self, x: Array, origin: float = 0.0) -> tuple[Array, Array]:
        log_p, loss = self._accurate(x, origin)
        return log_p + self._log_factor(loss + origin), loss

    def extended(self, x: Extended) -> tuple[Extended, Extended] | None:
        values = self._accurate.extended(x)
        return None if values is None else (values[0] + self._log_factor(values[1]), values[1])


def _at_integers(piece: SmoothPiece, log_factor: Callable[[Array], Array]) -> Array:
    """Return log contributions of the integers where P, Q or the payoff is not negligible."""
    x = integer_nodes(piece, [-1.0, 0.0])
    # Far in a tail, what makes up all of δ is negligible against P.
    x = np.union1d(x, integer_nodes(_payoff(piece, log_factor), [0.0]))
    log_p, loss = piece.accurate(x)
    return np.asarray(log_p + log_factor(loss))


def _weights(
    piece: SmoothPiece, log_factor: Callable[[Array], Array], cuts: Array
) -> tuple[Array, float]:
    """Return log contributions of a rule made for P times the payoff on this piece, and its error.

    The error is relative to the sum of the contributions. A rule that had to follow the rounding of
    the payoff has many nodes, and says how far off it is.
    """
    weighted = _payoff(piece, log_factor)
    outline = Outline(weighted, tilts=(0.0,))
    parts = [float(outline.log_masses([0.0])[0])]
    nodes, weights = gauss_legendre(cuts[:-1], cuts[1:])  # a stretch that the outline does not see
    _add(parts, tilted_log_density(weighted, nodes.ravel(), [0.0])[0] + np.log(weights.ravel()))
    log_mass = log_sum(parts)
    if not np.isfinite(log_mass):
        return np.empty(0), 0.0
    if log_mass < -250.0 * NEGLIGIBLE:  # where losses are rounded, only its size is told
        return np.asarray([log_mass]), 1.0
    try:
        rule = build_rule(outline, {0.0: log_mass}, 0.0, cuts)
        x, log_weight, error = rule.x, rule.log_weight, rule.error
    except AccuracyError:
        # Where the payoff hardly rises over its rounding, the densities are what is resolved.
        found = monotone_grid(Outline(piece), {-1.0: 0.0, 0.0: 0.0})
        edges = cuts if found is None else distinct(np.concatenate([found.edges, cuts]))
        nodes, weights = gauss_legendre(edges[:-1], edges[1:])
        whole: list[float] = []
        _add(whole, tilted_log_density(weighted, nodes.ravel(), [0.0])[0] + np.log(weights.ravel()))
        edges = distinct(np.concatenate([edges, 0.5 * (edges[:-1] + edges[1:])]))
        nodes, weights = gauss_legendre(edges[:-1], edges[1:])
        halves: list[float] = []
        x, log_weight = nodes.ravel(), np.log(weights.ravel())
        _add(halves, tilted_log_density(weighted, x, [0.0])[0] + log_weight)
        error = abs(math.expm1(min(log_sum(whole) - log_sum(halves), 1.0)))
    log_p, loss = piece.accurate(x)
    values = np.asarray(log_p + log_factor(loss) + log_weight)
    return values, error * math.exp(max(log_mass - log_sum(values), 0.0))
