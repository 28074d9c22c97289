"""Which method answers which question: one table, whose first row that applies answers.

A row's method returns δ(ε), or None where the row does not apply. No row is chosen for the width of
another one's bounds, and none for what was asked before.

**Without moments**, where E e^{tL} = ∞ for every t > 0, no tilt makes a large ε typical, and no
Chernoff bound holds. Let J be the event that some step's loss lies beyond a place near an end of
its range, and b the least loss there. With the losses of J taken as infinite, the law has every
moment, δ′(ε) = E[(1 − e^{ε−L})⁺; not J] + P(J), and

    δ′(ε) − e^ε Q(J) ≤ δ(ε) ≤ δ′(ε),    e^ε Q(J) ≤ e^{ε−b} P(J).

So it does not matter where b lies, if it is far above ε or P(J) far below δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from flint import arb

from symdp.decimal_text import SMALLEST_LOG
from symdp.errors import AccuracyError
from symdp.numeric.answer import (
    EXACT,
    HALF,
    OUTSIDE,
    SETTLED,
    TOLERABLE,
    Answer,
    FloatAccountant,
    is_rounded,
    margin,
    outside_range,
    with_uncertain_mass,
)
from symdp.numeric.contour import contour_answer, ends_soon, own_lines
from symdp.numeric.elementary import log_sum
from symdp.numeric.loss import LossLaw, is_heavy
from symdp.numeric.nodes import log_mass
from symdp.numeric.outline import Outline
from symdp.numeric.saddle_point import Strip, log_add_exp, log_moments_bound, saddle_point
from symdp.numeric.step import SmoothPiece
from symdp.numeric.total import SumLaw, kept_with_law
from symdp.tolerances import NEGLIGIBLE


@dataclass(frozen=True)
class Route:
    """One way to δ."""

    name: str  # as `Guarantee.route` has it
    laws: str  # for which sums of losses it applies
    how: str  # what it computes
    promise: str  # the relative half width of δ, where rounding of the losses allows it
    cost: str  # how the work grows
    answer: Callable[[SumLaw, float], Answer | None]  # None where the row does not apply
    concerns: Callable[[SumLaw], bool] = lambda law: True  # whether it may, known at once


# Where δ is bounded from below by nothing near it.
_ADVICE = (
    "too few values of the characteristic function tell what losses add up to; this is an "
    "upper bound, and the method tilted-prv may give a narrower interval"
)

_UNBOUNDED = (
    "the characteristic function was seen to die out, but what lies beyond the last of its "
    "values is not bounded"
)

# A row's files are loaded once a question gets there, as the one of a command does only one row.


def _listed_answer(law: SumLaw, epsilon: float) -> Answer | None:
    from symdp.numeric.sums import listed_answer

    return listed_answer(law, epsilon)


def _residue_answer(law: SumLaw, epsilon: float) -> Answer | None:
    from symdp.numeric.residues import residue_answer

    return residue_answer(law, epsilon)


def _single_answer(law: SumLaw, epsilon: float, by_rules: bool = False) -> Answer | None:
    from symdp.numeric.single import single_answer

    return single_answer(law, epsilon, by_rules)


def _two_steps_answer(law: SumLaw, epsilon: float) -> Answer | None:
    from symdp.numeric.contour import ends_soon
    from symdp.numeric.few.answer import two_steps_answer

    with suppress(AccuracyError):  # of a line that needs too many nodes
        if ends_soon(law, epsilon):  # a sum over so few nodes is quicker
            return None
    return two_steps_answer(law, epsilon)


def _rounded_lattice_answer(law: SumLaw, epsilon: float) -> Answer | None:
    from symdp.numeric.sums import lattice_answer

    return lattice_answer(law, epsilon)


def _lattice_answer(law: SumLaw, epsilon: float) -> Answer | None:
    answer = _rounded_lattice_answer(law, epsilon)
    if answer is None:
        return None
    return _sharpened(law, epsilon, answer)


def _sharpened(law: SumLaw, epsilon: float, answer: Answer) -> Answer:
    """Return an answer, or a narrower one where it is wide by rounding: in balls, or as a sum.

    Where rare large losses make δ, terms far above it cancel on one line. The sum over their number
    has none, and costs less than balls.
    """
    if not is_rounded(answer):
        return answer
    if law.is_spread and margin(answer) > TOLERABLE:
        by_large_losses = _given_large_losses(law, epsilon)
        if by_large_losses is not None and margin(by_large_losses) <= TOLERABLE:
            return replace(by_large_losses, route="mesh")
    from symdp.methods.in_balls import in_balls  # and with it SymPy

    return in_balls(law, epsilon, answer)


@kept_with_law
def _by_rules_of_small(law: SumLaw, epsilon: float) -> Answer | None:
    """Return that sum where the small losses beside large ones are a few nodes, else None."""
    from symdp.numeric.few.large import large_losses_answer

    return large_losses_answer(law, epsilon)


@kept_with_law
def _given_large_losses(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε) as a sum over the number of large losses, None where that is none."""
    from symdp.numeric.cut_off import given_large_losses

    by_rules = _by_rules_of_small(law, epsilon)
    if by_rules is not None:
        return by_rules
    with suppress(AccuracyError):  # a part of the losses need not have a line
        return given_large_losses(law.singly(), epsilon)
    return None


_BY_LARGE_LOSSES = (_by_rules_of_small, _given_large_losses)


def _line_answer(law: SumLaw, epsilon: float) -> Answer | None:
    return contour_answer(law, epsilon, _sharpened, large_losses=_BY_LARGE_LOSSES)


_rounded_line_answer = partial(contour_answer, most=1.0, large_losses=_BY_LARGE_LOSSES)


def _tiny_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return a line's wide interval where δ is below every double, or an upper bound; else None."""
    log_upper = log_moments_bound(law, epsilon)
    if not log_upper < SMALLEST_LOG:
        return None
    wide = _rounded_line_answer(law, epsilon)
    if wide is None:
        return _as_bound(log_upper)
    return replace(wide, route="contour")


def _as_bound(log_upper: float) -> Answer:
    return Answer(log_upper, -math.inf, log_upper, "bound", _ADVICE)


def _mesh_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return what the mesh gives, or lines that end where values were seen to be small.

    Few steps with an infinite density have many nodes, so that a mesh ends too early to bound much.
    What lies beyond a line is not bounded then: its answer is an estimate, and not believed where
    the mesh excludes it. None where nothing bounds δ from below.
    """
    from symdp.numeric.cut_off import mesh_answer

    law = law.singly()
    mesh = None
    by_large_losses = _given_large_losses(law, epsilon)
    if by_large_losses is not None and margin(by_large_losses) <= EXACT:
        return by_large_losses
    try:
        mesh = mesh_answer(law, epsilon)
    except AccuracyError:  # the nodes do not reach far beyond the tilt
        if not law.is_spread:
            return None
    if mesh is not None and (not law.is_spread or margin(mesh) <= EXACT):
        if _has_lower(mesh):
            return mesh
        return None
    lines = own_lines(law, epsilon)
    if lines is None or not (mesh is None or _holds(mesh, lines[0])):
        if mesh is not None and _has_lower(mesh):
            return mesh
        return None
    answer, assured = lines
    if assured:
        return replace(answer, route="contour")
    # Its ends are those that are proved, and none of its own.
    low, high = -math.inf, log_moments_bound(law, epsilon)
    if mesh is not None:
        low, high = _log_ends(mesh)[0], min(high, _log_ends(mesh)[1])
    log_delta = answer.log_delta
    advice = _UNBOUNDED
    low, high = min(low, log_delta), max(high, log_delta)
    return Answer(log_delta, low, high, "estimate", advice, None, answer.slope, "contour")


def _log_ends(answer: Answer) -> tuple[float, float]:
    """Return the ends of an answer, of which nothing is known where there are none."""
    low, high = answer.log_lower, answer.log_upper
    return -math.inf if low is None else low, math.inf if high is None else high


def _has_lower(answer: Answer) -> bool:
    return _log_ends(answer)[0] > -math.inf


def _rounded_answer(law: SumLaw, epsilon: float) -> Answer:
    """Return the interval from losses rounded to a mesh, no wider than Chernoff's bound."""
    from symdp.methods.prv import Prv

    lower, upper = _log_ends(Prv().inside_range(law, epsilon))
    upper = min(upper, log_moments_bound(law, epsilon))
    lower = min(lower, upper)
    is_useful = upper - lower <= math.log(2.0)
    return Answer(upper, lower, upper, "bound", "" if is_useful else _ADVICE)


def _holds(wide: Answer, narrow: Answer) -> bool:
    """Return whether an interval lies within another one."""
    (low, high) = _log_ends(wide)
    (least, most) = _log_ends(narrow)
    return low <= least and most <= high


# The first row that applies answers.
ROUTES = (
    Route(
        OUTSIDE,
        "ε beyond all finite losses",
        "δ = δ∞, or 1 − e^{ε+K(−1)}",
        "1e-14",
        "none",
        outside_range,
    ),
    Route(
        "finite_sum",
        "atoms with at most 2·10⁶ sums, or few above ε",
        "every sum",
        "1e-13",
        "the number of sums",
        _listed_answer,
        lambda law: not law.is_spread,
    ),
    Route(
        "residues",
        "densities with M a short sum of rational functions times exponentials, n ≤ 1000, "
        "but one step whose distribution functions are known",
        "the residues of each term, in balls",
        "1e-14",
        "the number of terms, on n²",
        _residue_answer,
        lambda law: law.is_spread and not law.is_closed,
    ),
    Route(
        "single",
        "n = 1",
        "∫ (P − e^ε Q)⁺ between the roots of ℓ = ε, in balls; distribution functions where known",
        "1e-14",
        "one quadrature",
        _single_answer,
        lambda law: law.count == 1,
    ),
    Route(
        "lattice",
        "atoms on a lattice",
        "the trapezoid over one period",
        "1e-13",
        "not on n",
        _lattice_answer,
        lambda law: not law.is_spread,
    ),
    Route(
        "two_steps",
        "n = 2, losses with a density",
        "the mean of δ(ε − L₁) of the second step over L₁, panel by panel",
        "1e-13",
        "the kinks of one loss times those of the other",
        _two_steps_answer,
        lambda law: law.count == 2 and law.is_spread,
    ),
    Route(
        "contour",
        "losses with a density whose characteristic function dies out",
        "the trapezoid on one line, in balls where rounding counts",
        "1e-12",
        "not on n",
        _line_answer,
        lambda law: law.is_spread,
    ),
    Route(
        "moments",
        "no such line, and δ below every double",
        "Chernoff's bound at the best tilt",
        "an upper bound",
        "a search in t",
        _tiny_answer,
        lambda law: law.is_spread,
    ),
    Route(
        "mesh",
        "atoms off any lattice, mixed losses, a rare large loss",
        "the trapezoid, cut off smoothly with a bound, or the sum over the number of large losses",
        "mostly 1e-8",
        "one FFT, not on n",
        _mesh_answer,
    ),
    Route(
        "prv",
        "losses without moments, anything left",
        "the convolution of losses rounded to a mesh",
        "mostly 1e-3; an upper bound at worst",
        "one FFT, on √n",
        _rounded_answer,
    ),
)


@dataclass(frozen=True)
class Contour(FloatAccountant):
    """The default method: the first row of `ROUTES` that applies answers.

    The answer is an exact formula evaluated in double precision; its bounds count quadrature,
    truncation and rounding, what is estimated of them widened by a factor of four.
    """

    name: str = "contour"
    citations: tuple[str, ...] = ("SPA",)

    @property
    def is_exact(self) -> bool:
        """True: it is the profile, but for rounding."""
        return True

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return log δ(ε), and log(1 − δ(ε)) where δ is not small."""
        parted = _parted(law)
        if parted is not None:
            moving, still = parted
            return _with_still_steps(self.log_delta(moving, epsilon - still.loss_bounds[0]), still)
        heavy = law.count > 1 and not law.domain[1] > 0
        if not heavy:
            return _first_answer(law, epsilon)
        of_two = _two_steps_answer(law, epsilon)
        if of_two is not None:
            return replace(of_two, route="two_steps")
        answer = _without_far_losses(law, epsilon, _first_answer)
        if answer is not None and answer.kind == "estimate":  # a bound tells more, where it is near
            rounded = _rounded_answer(law, epsilon)
            if _has_lower(rounded) and margin(rounded) < 0.1:
                return replace(rounded, route="prv")
        return answer or _first_answer(law, epsilon)

    def near(self, law: SumLaw, epsilon: float) -> Answer | None:
        """Return log δ(ε) without the balls that would narrow what doubles rounded."""
        parted = _parted(law)
        if parted is not None:
            moving, still = parted
            answer = self.near(moving, epsilon - still.loss_bounds[0])
            if answer is None:
                return None
            return _with_still_steps(answer, still)
        heavy = law.count > 1 and not law.domain[1] > 0
        if heavy or law.uncertain_mass > 0 or outside_range(law, epsilon) is not None:
            return None
        return _first_answer(law, epsilon, _IN_DOUBLES)


@kept_with_law
def _parted(law: SumLaw) -> tuple[SumLaw, SumLaw] | None:
    """Return the steps of several finite losses, and those of one; None where all are alike."""
    bounds = [part.loss_bounds for part in law.samples]
    if all(low < high for low, high in bounds):
        return None
    moving = list[tuple[LossLaw, int]]()
    still = list[tuple[LossLaw, int]]()
    for part, count in law.parts:
        low, high = part.loss_bounds
        (still if low == high else moving).append((part, count))
    if not (moving and still):
        return None
    return SumLaw(moving, law.direction), SumLaw(still)


def _with_still_steps(answer: Answer, still: SumLaw) -> Answer:
    """Return δ = η + (1 − η)δ′ of δ′ without the steps of one finite loss, η their mass at ∞."""
    log_finite = still.log_finite_mass
    log_escaped = still.log_mass_at_infinity

    def raised(log_delta: float | None) -> float | None:
        if log_delta is None:
            return None
        return log_add_exp(log_escaped, log_finite + log_delta)

    log_delta = log_add_exp(log_escaped, log_finite + answer.log_delta)
    share = 0.0
    if log_delta > -math.inf:
        share = math.exp(log_finite + answer.log_delta - log_delta)
    complement = answer.log_complement
    return replace(
        answer,
        log_delta=log_delta,
        log_lower=raised(answer.log_lower),
        log_upper=raised(answer.log_upper),
        log_complement=None if complement is None else complement + log_finite,
        slope=None if answer.slope is None else share * answer.slope,
    )


_Answers = Mapping[str, Callable[[SumLaw, float], Answer | None]]
_IN_DOUBLES: _Answers = {
    "single": partial(_single_answer, by_rules=True),
    "lattice": _rounded_lattice_answer,
    "contour": _rounded_line_answer,
}


def _first_answer(
    law: SumLaw,
    epsilon: float,
    instead: _Answers = MappingProxyType({}),
) -> Answer:
    """Return what the first row gives that applies, some rows by other functions."""
    for route in ROUTES:
        ask = instead.get(route.name, route.answer)
        answer = ask(law, epsilon) if route.concerns(law) else None
        if answer is not None:
            return replace(answer, route=answer.route or route.name)
    raise AssertionError("the last row of the table always answers")


@dataclass(frozen=True)
class _Cut:
    """A total loss whose largest losses count as infinite."""

    law: SumLaw  # it has moments to the right
    log_mass: float  # log P(J), or more
    least: float  # b, in nats

    def log_excess(self, epsilon: float) -> float:
        """Return the log of what δ′(ε) exceeds δ(ε) by at most."""
        return self.log_mass + min(epsilon - self.least, 0.0)


def _without_far_losses(
    law: SumLaw, epsilon: float, answered: Callable[[SumLaw, float], Answer]
) -> Answer | None:
    """Return δ(ε) of steps without moments from a law that is cut where it does not matter.

    The farther out it is cut, the larger the integrand is beside δ. So the mass beyond falls until
    it is small beside δ, or its losses so large that it does not matter how large they are.
    """
    from symdp.methods.prv import largest_loss, log_one_large

    single = log_one_large(law, epsilon)
    top = largest_loss(law, epsilon)
    fall = 1.5 * NEGLIGIBLE
    best = None
    for _ in range(8):
        cut = _cut_law(law, fall, top)
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
    if saddle is None:
        return -math.inf
    return saddle.log_leading


@kept_with_law
def _cut_law(law: SumLaw, fall: float, top: float) -> _Cut | None:
    """Return the total loss with heavy ends cut off, None where they cannot be.

    A step is cut where the mass beyond is about e^-fall, or nearer, where losses exceed `top`.
    """
    parts: list[tuple[LossLaw, int]] = []
    log_mass = -math.inf
    least = math.inf
    for part, count in law.parts:
        if part.domain[1] > 0:
            parts.append((part, count))
            continue
        cut_step = _cut_step(part, fall, top) if type(part) is LossLaw else None
        if cut_step is None:
            return None
        step, beyond, lowest = cut_step
        parts.append((step, count))
        log_mass = float(np.logaddexp(log_mass, math.log(count) + beyond))
        least = min(least, lowest)
    return _Cut(SumLaw(parts, law.direction), log_mass, least)


def _cut_step(law: LossLaw, fall: float, top: float) -> tuple[LossLaw, float, float] | None:
    """Return a step that is cut, the log of the mass beyond, and the least loss there."""
    pieces: list[SmoothPiece] = []
    beyond: list[tuple[float, float, float]] = []
    for outline in law.outlines:
        piece = outline.piece
        for upper in (False, True):
            if piece.flat or not is_heavy(outline.piece, upper):
                continue
            end = _place(outline, upper, fall, top)
            if end is None:
                return None
            piece, outer = _split_piece(piece, end[0], upper)
            mass = log_mass(outer)
            if not mass > -math.inf:
                return None
            pieces.append(outer if outer.integer else replace(outer, log_mass=mass))
            beyond.append((mass, *end[1:]))
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
    piece = outline.piece
    step = -1 if upper else 1  # from the end inwards
    x = outline.x[::step]
    loss = outline.loss[::step]
    mass = np.logaddexp.accumulate(outline.shells([0.0])[0][::step])
    least = np.minimum.accumulate(np.where(np.isnan(loss), np.inf, loss))
    inside = np.flatnonzero((mass > -fall) & (least < top))
    if not inside.size or inside[0] == 0:
        return None
    first = int(inside[0])
    far = float(x[first - 1])
    near = float(x[first])
    beyond = float(mass[first - 1])
    lowest = float(least[first - 1])

    def values(x: float) -> tuple[float, float]:
        with np.errstate(all="ignore"):
            log_p, _, loss = (float(v[0]) for v in piece.values(np.asarray([x])))
        if math.isnan(log_p):  # so far out that no double holds the density
            log_p = -math.inf
        return log_p, loss

    for _ in range(24):  # where exactly it is cut changes no answer
        middle = 0.5 * (near + far)
        if not min(near, far) < middle < max(near, far):
            break
        log_p, loss_there = values(middle)
        between = log_p + math.log(abs(far - middle))
        if (np.logaddexp(beyond, between) > -fall) and min(lowest, loss_there) < top:
            near = middle
        else:
            far = middle
            beyond = float(np.logaddexp(beyond, between))
            lowest = min(lowest, loss_there)
    far = math.floor(far) if piece.integer else far
    loss_there = values(far)[1]
    if math.isfinite(loss_there):
        return (far, min(lowest, loss_there), loss_there)
    return None


def _split_piece(piece: SmoothPiece, cut: float, upper: bool) -> tuple[SmoothPiece, SmoothPiece]:
    """Return what is kept of a piece, and what lies beyond a place, whose loss is infinite."""
    left, right = piece.parted(cut)
    kept, outer = (left, right) if upper else (right, left)
    if piece.integer:
        outer = replace(right, lower=cut + 1.0) if upper else replace(left, upper=cut - 1.0)
    ball = piece.ball
    infinite = replace(
        outer,
        log_q=_constant(-math.inf),
        loss=_constant(math.inf),
        ball=lambda x, **analytic: (ball(x, **analytic)[0], arb.pos_inf()),
        flat=not piece.integer,
        joint=None,
        closed=None,
    )
    return kept, infinite


def _constant(value: float) -> Any:
    return lambda x: np.full(np.shape(x), value)


def is_dear(law: SumLaw, epsilon: float) -> bool:
    """Return whether δ(ε) takes more than a sum over few nodes, or a formula."""
    from symdp.numeric.residues import residues

    if law.count == 1 or not law.is_spread or residues(law) is not None:
        return False
    with suppress(AccuracyError):
        return not ends_soon(law, epsilon)
    return True
