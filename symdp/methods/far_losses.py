"""Laws whose largest losses count as infinite, so that they have every moment.

Where E e^{tL} = ∞ for every t > 0 no tilt makes a large ε typical, and no Chernoff bound holds. Let
J be the event that some step's loss lies beyond a place near an end of its range, and b the least
loss there. With the losses of J taken as infinite, δ′(ε) = E[(1 − e^{ε−L})⁺; not J] + P(J), and

    δ′(ε) − e^ε Q(J) ≤ δ(ε) ≤ δ′(ε),    e^ε Q(J) ≤ e^{ε−b} P(J).

So it does not matter where b lies, if it is far above ε or P(J) far below δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flint import arb

from symdp.decimal_text import SMALLEST_LOG
from symdp.errors import AccuracyError
from symdp.methods.prv import largest_loss, log_one_large
from symdp.numeric.answer import HALF, NEGLIGIBLE, SETTLED, Answer, with_uncertain_mass
from symdp.numeric.contour import contour_answer
from symdp.numeric.elementary import log_sum
from symdp.numeric.loss import LossLaw, is_heavy
from symdp.numeric.nodes import log_mass
from symdp.numeric.outline import Outline
from symdp.numeric.saddle_point import Strip, log_add_exp, saddle_point
from symdp.numeric.step import SmoothPiece
from symdp.numeric.total import SumLaw, kept_with_law


@dataclass(frozen=True)
class Cut:
    """A total loss whose largest losses count as infinite."""

    law: SumLaw  # it has moments to the right
    log_mass: float  # log P(J), or more
    least: float  # b, in nats

    def log_excess(self, epsilon: float) -> float:
        """Return the log of what δ′(ε) exceeds δ(ε) by at most."""
        return self.log_mass + min(epsilon - self.least, 0.0)


def without_far_losses(
    law: SumLaw, epsilon: float, answered: Callable[[SumLaw, float], Answer]
) -> Answer | None:
    """Return δ(ε) of steps without moments from a law that is cut where it does not matter.

    The farther out it is cut, the larger the integrand is beside δ. So the mass beyond falls until
    it is small beside δ, or its losses so large that it does not matter how large they are.
    """
    single, top = log_one_large(law, epsilon), largest_loss(law, epsilon)
    fall, best = 1.5 * NEGLIGIBLE, None
    for _ in range(8):
        cut = cut_law(law, fall, top)
        if cut is None:
            return best
        # A mass that is no double is not counted as infinite.
        excess = cut.log_excess(epsilon) if cut.log_mass > SMALLEST_LOG else cut.log_mass
        expected = max(_log_leading(cut.law, epsilon), single)
        if expected > 4.0 * HALF:  # 1 − δ, which needs no moment, tells it
            plain = contour_answer(law, epsilon)
            if plain is not None:
                return replace(plain, route="contour")
        lacking = excess - expected - math.log(SETTLED)
        if not lacking > 0.0:
            best = with_uncertain_mass(answered(cut.law, epsilon), excess)
            assert best.log_upper is not None
            if cut.log_mass <= SMALLEST_LOG:
                best = replace(best, log_upper=log_add_exp(best.log_upper, cut.log_mass))
            lacking = excess - best.log_delta - math.log(SETTLED)
        if not lacking > 0.0:
            break
        fall += 0.5 * NEGLIGIBLE * math.ceil(lacking / (0.5 * NEGLIGIBLE))
    return best


def _log_leading(law: SumLaw, epsilon: float) -> float:
    """Return about log δ(ε) by the saddle point, mass at infinity left out."""
    try:
        saddle = saddle_point(law, epsilon, Strip.RIGHT, settled=0.1)
    except AccuracyError:
        return -math.inf
    return -math.inf if saddle is None else saddle.log_leading


@kept_with_law
def cut_law(law: SumLaw, fall: float, top: float) -> Cut | None:
    """Return the total loss with heavy ends cut off, None where they cannot be.

    `law`: with steps that have no moments to the right. `fall, top`: A step is cut where the mass
    beyond is about e^-fall, or nearer, where losses exceed `top`.
    """
    parts: list[tuple[LossLaw, int]] = []
    log_mass, least = -math.inf, math.inf
    for part, count in law.parts:
        if part.domain[1] > 0:
            parts.append((part, count))
            continue
        found = _cut_step(part, fall, top) if type(part) is LossLaw else None
        if found is None:
            return None
        step, beyond, lowest = found
        parts.append((step, count))
        log_mass = float(np.logaddexp(log_mass, math.log(count) + beyond))
        least = min(least, lowest)
    return Cut(SumLaw(parts, law.direction), log_mass, least)


def _cut_step(law: LossLaw, fall: float, top: float) -> tuple[LossLaw, float, float] | None:
    """Return a step that is cut, the log of the mass beyond, and the least loss there."""
    pieces: list[SmoothPiece] = []
    beyond: list[tuple[float, float, float]] = []
    for outline in law.outlines:
        piece = outline.piece
        for upper in (False, True):
            if piece.flat or not is_heavy(outline.piece, upper):
                continue
            found = _place(outline, upper, fall, top)
            if found is None:
                return None
            piece, outer = _split(piece, found[0], upper)
            mass = log_mass(outer)
            if not mass > -math.inf:
                return None
            pieces.append(outer if outer.integer else replace(outer, log_mass=mass))
            beyond.append((mass, *found[1:]))
        pieces.append(piece)
    if not beyond:
        return None
    masses, least, most = zip(*beyond, strict=True)
    step = replace(law.step, pieces=tuple(sorted(pieces, key=lambda piece: piece.lower)))
    return LossLaw(step, (law.loss_bounds[0], max(most))), log_sum(masses), min(least)


def _place(
    outline: Outline, upper: bool, fall: float, top: float
) -> tuple[float, float, float] | None:
    """Return where a heavy end is cut, the least loss beyond, and the loss there."""
    piece, step = outline.piece, -1 if upper else 1  # from the end inwards
    x, loss = outline.x[::step], outline.loss[::step]
    mass = np.logaddexp.accumulate(outline.shells([0.0])[0][::step])
    least = np.minimum.accumulate(np.where(np.isnan(loss), np.inf, loss))
    inside = np.flatnonzero((mass > -fall) & (least < top))
    if not inside.size or inside[0] == 0:
        return None
    first = int(inside[0])
    far, near = float(x[first - 1]), float(x[first])
    beyond, lowest = float(mass[first - 1]), float(least[first - 1])

    def values(place: float) -> tuple[float, float]:
        with np.errstate(all="ignore"):
            log_p, _, here = (float(v[0]) for v in piece.values(np.asarray([place])))
        return log_p, here

    for _ in range(24):  # where exactly it is cut changes no answer
        middle = 0.5 * (near + far)
        if not min(near, far) < middle < max(near, far):
            break
        log_p, here = values(middle)
        between = log_p + math.log(abs(far - middle))
        if (np.logaddexp(beyond, between) > -fall) and min(lowest, here) < top:
            near = middle
        else:
            far, beyond = middle, float(np.logaddexp(beyond, between))
            lowest = min(lowest, here)
    far = math.floor(far) if piece.integer else far
    here = values(far)[1]
    return (far, min(lowest, here), here) if math.isfinite(here) else None


def _split(piece: SmoothPiece, place: float, upper: bool) -> tuple[SmoothPiece, SmoothPiece]:
    """Return what is kept of a piece, and what lies beyond a place, whose loss is infinite."""
    left, right = piece.parted(place)
    kept, outer = (left, right) if upper else (right, left)
    if piece.integer:
        outer = replace(right, lower=place + 1.0) if upper else replace(left, upper=place - 1.0)
    own = piece.ball
    infinite = replace(
        outer,
        log_q=_constant(-math.inf),
        loss=_constant(math.inf),
        ball=lambda x, **analytic: (own(x, **analytic)[0], arb.pos_inf()),
        flat=not piece.integer,
        joint=None,
    )
    return kept, infinite


def _constant(value: float) -> Any:
    return lambda x: np.full(np.shape(x), value)
