"""δ(ε) of a composition as a ball: one table says which proof answers which question.

| row | which compositions | relative width | work |
| --- | --- | --- | --- |
| largest loss | ε proved to be at least every finite loss | as asked | none |
| below | where it is enough to be below a number | a bound | one moment a step |
| single step | n = 1 | as asked | one integral |
| lattice | all losses on one lattice | as asked | O(1) in n |
| residues | M a short sum of rational times exponential | as asked | one power series a term |
| nearly one | 1 − δ far below what is asked | as asked | one moment a step |
| line | \\|M\\|ⁿ falls, right of 0 or between the poles | as asked | O(1) in n |
| mesh | everything else: few steps, atoms off lattices, heavy atoms | 10^(−6) | seconds |

Of few steps, where few digits are asked for, the line has a small share of its work before the mesh
is tried, and all of it where the mesh refuses.

One epoch of random allocation is a sum of its own (see `allocation`).

A row that refuses, as where a bound would take too much work, leaves the question to those below.

**A single step.** δ(ε) is ∫ (p − e^ε q)⁺ itself, the sign of ℓ − ε proved piece by piece. A panel
on which balls do not tell the sign is halved until what it can add is negligible; where ℓ > ε,
Gauss's rule serves P and e^{ε−ℓ}P at once.  What lies outside the panels counts as an infinite
loss above and as nothing below.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy as sp
from flint import arb, ctx

from symdp.arguments import counted_pairs, real
from symdp.density.signs import sign_of
from symdp.emit.arb import constant_ball
from symdp.emit.enclose import between
from symdp.emit.exact import LN10, fraction_ball
from symdp.errors import AccuracyError, InputError
from symdp.model.allocation import AllocatedPair, OneStep
from symdp.numeric.elementary import log_sum
from symdp.numeric.laws.family import FamilyLaw
from symdp.numeric.residues import ResidueSum, residues_of
from symdp.numeric.saddle_point import Strip
from symdp.numeric.total import SumLaw
from symdp.prove.allocation import enclose_epochs, estimate_log_epoch
from symdp.prove.family import enclose_known
from symdp.prove.kind import Kind, Kinds, Stretch, kind_of, sum_law
from symdp.prove.lattice import Lattice, LatticeLine, lattice_of
from symdp.prove.line import Line, Masses, log_payoff, masses
from symdp.prove.measure import TOO_MANY, Asked, Panels, measure
from symdp.prove.mesh import bracket_delta
from symdp.prove.plan import find_plan, find_saddle, panels_of
from symdp.prove.work import COARSE_BITS, limited
from symdp.tolerances import MASS_BITS

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_SPARE_DIGITS = 3.0  # of what is left out, beyond those asked
_SPARE_BITS = 40  # beyond those digits
_MOST_PIECES = 20_000  # of a panel
_HALVINGS = 6  # of a smaller error
_FIRST = 15.0  # digits of what is left out at first


def _enclose_single(kind: Kind, epsilon: arb, digits: float) -> arb:
    """Enclose δ(ε) of one step to about so many digits."""
    saddle = find_saddle(sum_law(((kind, 1),)), float(epsilon))
    log_size = 0.0
    if saddle is not None:
        log_size = min(saddle.log_size, 0.0)
    log_digits = (digits + _SPARE_DIGITS) * LN10
    log_error = log_size - max(_FIRST * LN10, log_digits)
    ball = arb(0)
    for _ in range(_HALVINGS):
        ball = _enclosed_single(kind, epsilon, log_error)
        widest = ball.lower() * arb(10) ** -digits
        if ball.lower() > 0 and 2 * ball.rad() < widest:
            break
        log_size = 2 * log_error
        if ball.lower() > 0:
            with ctx.workprec(64):
                log_size = float(ball.lower().log())
        log_error = min(log_size - log_digits, log_error - LN10)
    return ball


def _enclosed_single(kind: Kind, epsilon: arb, log_error: float) -> arb:
    panels = panels_of(kind, 0.0, 0.0, log_error)
    law_masses = masses(((kind, 1),), (panels,), log_error)
    log_share = log_error - math.log(64.0)
    with ctx.workprec(int(-log_error / math.log(2)) + _SPARE_BITS):
        above = list[Panels]()
        undecided = arb(0)
        for stretch_panels in panels:
            stretch = kind.stretches[stretch_panels.stretch]
            if not stretch.has_density:
                above.append(stretch_panels)
                continue
            places = map(stretch.place, stretch_panels.edges)
            for left, right in itertools.pairwise(places):
                rows, missed = _pieces_above(stretch, left, right, epsilon, log_share)
                above += [Panels(stretch_panels.stretch, tuple(row)) for row in rows]
                undecided += missed
        about = float(epsilon)
        of_p = Asked(arb(0), 0.0, log_share)
        of_q = Asked(arb(-1), -about, log_share)
        nodes = measure(kind, above, [of_p, of_q])
        error_of_p, error_of_q = nodes.errors
        error_of_both = error_of_p + error_of_q * (epsilon - about).exp()
        total = arb(0, error_of_both)
        for weight, loss in zip(nodes.weights, nodes.losses, strict=True):
            gain = -(epsilon - loss).expm1()
            payoff = gain.max(arb(0))
            total = total + weight * payoff
        finite_part = total + arb(0).union(undecided)
        finite_part = finite_part.max(arb(0))
        lower = finite_part + law_masses.infinity
        outside = arb(0).union(law_masses.outside)
        return arb((lower + outside).min(arb(1)))


def _pieces_above(
    stretch: Stretch, left: arb, right: arb, epsilon: arb, log_error: float
) -> tuple[list[Sequence[arb]], arb]:
    """Return the ends of pieces on which ℓ > ε, and what those may add whose sign is not told."""
    rows = list[list[arb]]()
    undecided = arb(0)
    waiting = [(left, right)]
    for _ in range(_MOST_PIECES):
        if not waiting:
            return list[Sequence[arb]](rows), undecided
        start, end = waiting.pop()
        with ctx.workprec(max(COARSE_BITS, ctx.prec // 2)):
            log_p, loss = stretch.values(between(start, end))
        if loss < epsilon:
            continue
        if loss > epsilon:
            if rows and rows[-1][1] is start:
                rows[-1][1] = end
            else:
                rows.append([start, end])
            continue
        mass = abs(end - start) * log_p.exp()
        gain = -(epsilon - loss).expm1()
        size = mass * gain.max(arb(0))
        middle = ((start + end) / 2).mid()
        is_least = False
        if size.is_finite():
            is_least = bool(arb(size.upper()).log() < log_error)
        if start < middle < end and not is_least:
            waiting += [(middle, end), (start, middle)]
            continue
        # A probability: where nothing is known the mass outside of what is integrated says it.
        if not size.is_finite():
            size = mass
        undecided += arb(size.upper()) if size.is_finite() else arb(1)
    raise AccuracyError(TOO_MANY)


_SPARE_OF_ONE = 6  # digits of 1 − δ beyond those of δ
_SPARE = 1.0  # digits beyond those asked, at first
_TRIES = 3  # with more digits carried, as many as were lost
MOST_DIGITS = 1000  # asked for
LEAST_DIGITS = 4  # that make a proof worth while where more were asked
_MOST_SIZE = 3000.0  # −log δ, as so many e-folds of mass are integrated
_MOST_OF_LISTS = 1e6  # the same of lists, of which nothing is left out
MANY = 12  # steps, of which a line serves nearly always: of fewer |φ|ⁿ may fall too late
_SOON = 300.0  # deviations of the tilted loss: by then |φ|ⁿ should have fallen
_PLACES = 16  # at which |φ| is looked at, so that it is not at a zero at all of them
_SHORT_LINE = 1 / 32  # of the work of a line, before a mesh that takes seconds
_MESH_DIGITS = 6  # that take a mesh seconds; each further one three times as long
_TILTS = (1.0, 2.0**-5, 2.0**-10)  # of the saddle point, tried on a mesh
_HALF = math.log(0.5)  # log δ, up to which a line right of 0 is the shorter one
_QUARTERS = (2, 1, 3)  # of s in a bound of 1 − δ
_LITTLE, _LEAST_TILT = 1 / 16, 1e-9  # a tilt where none is known, and the least of use
_ROUNDED = (4, 6, 8, 10)  # digits of an ε that close ones share
_CLOSE = 0.05  # what it may change log δ by


def enclose_delta(
    pairs: Iterable[tuple[OneStep, int]],
    epsilon: float | Fraction,
    digits: int = 15,
    below: arb | None = None,
) -> arb:
    """Enclose δ(ε) of a composition, floating point included, by the first row that does.

    The width is 10^(−digits) of it where a row gets so far, and what the mesh gives elsewhere,
    10^(−6) if it can and never more than 10^(−4); as it comes where the ball lies below `below`.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> ball = enclose_delta([(mechanisms.gaussian(sigma=2).pair(), 3)], Fraction(3, 2), 6)
    >>> bool(0.0288822 < ball < 0.0288823)
    True
    """
    return enclose_by(WAYS, pairs, epsilon, digits, below)[1]


def enclose_by(
    ways: Iterable[_Way],
    pairs: Iterable[tuple[OneStep, int]],
    epsilon: float | Fraction,
    digits: int,
    below: arb | None = None,
) -> tuple[str, arb]:
    """Return the row of the table that answers, and its ball."""
    if not isinstance(digits, int) or not 1 <= digits <= MOST_DIGITS:
        raise InputError(f"digits must be a whole number from 1 to 1000, not {digits!r}")
    real(epsilon, "epsilon")
    exact = Fraction(epsilon)
    steps = tuple(counted_pairs(pairs, "pair"))
    if any(isinstance(pair, FamilyLaw) for pair, _ in steps):
        return "known", enclose_known(steps, exact, digits)
    plain = tuple((pair, n) for pair, n in steps if not isinstance(pair, AllocatedPair))
    if len(plain) < len(steps):
        return "epochs", _of_epochs(steps, exact, digits)
    kinds = tuple((kind_of(pair), n) for pair, n in plain)
    question = _ProfileQuestion(kinds, exact, below, plain)
    return _first_that_serves(ways, question, digits)


def enclose_sum(kinds: Kinds, epsilon: Fraction, digits: int, work: float = 1.0) -> arb:
    """Enclose δ(ε) by the sum over a line or a period, for a share of the usual work."""
    _, ball = _first_that_serves(_SUMS, _ProfileQuestion(kinds, epsilon), digits, work)
    return ball


def _first_that_serves(
    ways: Iterable[_Way], question: _ProfileQuestion, digits: int, work: float = 1.0
) -> tuple[str, arb]:
    """Return the name of the first way that has the digits, and its ball.

    Where none has, the first refusal is raised.
    """
    refusals: list[AccuracyError] = []
    for way in ways:
        try:
            with limited(digits, work * way.share(question, digits)):
                if not way.serves(question, digits):
                    continue
                ball = way.enclose(question, digits).max(arb(0)).min(arb(1))
        except AccuracyError as refusal:
            refusals.append(refusal)
            continue
        least_digits = digits if way.is_sharp else min(digits, LEAST_DIGITS)
        if question.is_met(ball, least_digits):
            return way.name, ball
    # What the row says that suits the question best; those below it are tried for want of it.
    if refusals:
        raise refusals[0]
    raise AccuracyError("the enclosure stays too wide; ask for fewer digits")


@dataclass(frozen=True)
class _ProfileQuestion:
    """Steps in balls, an ε, what δ need only be proved below, and the pairs of the steps."""

    kinds: Kinds
    exact: Fraction
    below: arb | None = None
    steps: tuple[tuple[Pair, int], ...] = ()

    @cached_property
    def count(self) -> int:
        """The number of steps."""
        return sum(n for _, n in self.kinds)

    @cached_property
    def lattice(self) -> Lattice | None:
        """About the lattice on which all sums of losses lie, if there is one."""
        return lattice_of(self.kinds)

    @cached_property
    def residues(self) -> ResidueSum | None:
        """The finite sum of residues that is δ, if there is a short one."""
        return residues_of(self.steps)

    def ball(self) -> arb:
        """Return ε at the working precision."""
        return fraction_ball(self.exact)

    def is_met(self, ball: arb, digits: int) -> bool:
        """Whether a ball is one number, narrower than 10^(−digits) of itself, or below enough."""
        if ball.is_zero():
            return True
        if self.below is not None and ball < self.below:
            return True
        return bool(ball > 0 and 2 * ball.rad() < ball.lower() * arb(10) ** -digits)


def _whole_work(question: _ProfileQuestion, digits: int) -> float:
    """Return the share of the usual work that a row has, all of it."""
    return 1.0


class _Way(NamedTuple):
    """A row: when it applies, its enclosure of δ, and whether it gets to any number of digits."""

    name: str
    serves: Callable[[_ProfileQuestion, int], bool]
    enclose: Callable[[_ProfileQuestion, int], arb]
    is_sharp: bool = True
    share: Callable[[_ProfileQuestion, int], float] = _whole_work


def _sharpened(
    finite: Callable[[_ProfileQuestion, float], arb],
) -> Callable[[_ProfileQuestion, int], arb]:
    """Return the enclosure that carries more digits while the ball is too wide."""

    def enclose(question: _ProfileQuestion, digits: int) -> arb:
        spare = _SPARE
        for _ in range(_TRIES):
            with ctx.workprec(int(3.33 * (digits + spare)) + 128):
                ball = finite(question, digits + spare)
                if question.is_met(ball, digits):
                    return ball
                lost = float(digits)
                if ball.lower() > 0:
                    width = 2 * ball.rad() / ball.lower()
                    if width.is_finite():
                        lost = float(width.log()) / LN10 + digits
            spare += max(lost, 0.0) + _SPARE
        raise AccuracyError("the enclosure stays too wide; ask for fewer digits")

    return enclose


def _is_beyond(question: _ProfileQuestion, digits: int) -> bool:
    """Whether ε is proved to be at least every finite loss; a look in numbers comes first."""
    epsilon = question.exact
    top = min(sum_law(question.kinds).loss_bounds[1], 1e300)
    if top - float(epsilon) > 1e-9 * abs(top):
        return False
    return is_beyond(question.steps, sp.Rational(epsilon.numerator, epsilon.denominator))


def _kind_of_one(pair: Pair | AllocatedPair) -> Kind:
    """Return the kind of a step, of random allocation that of one of its steps."""
    if isinstance(pair, AllocatedPair):
        return kind_of(pair.own)
    return kind_of(pair)


def is_beyond(steps: Iterable[tuple[OneStep, int]], epsilon: sp.Rational) -> bool:
    """Whether ε is proved to be at least the largest finite loss.

    The largest loss of a monotone stretch is its limit at an end; the sign of the sum less ε is
    exact.  That of one of t steps is no larger than one step's: no mean exceeds all that it is of.
    """
    total = sp.S.Zero
    for pair, count in steps:
        if isinstance(pair, FamilyLaw):
            return False
        kind = _kind_of_one(pair)
        if kind.is_infinite:  # no sum of losses is finite
            return True
        tops = kind.largest_losses()
        if not all(top.is_finite for top in tops):
            return False
        largest = max(tops, key=lambda top: float(constant_ball(top, 128).real.mid()))
        if not all(sign_of(top - largest) in (-1, 0) for top in tops):
            return False
        total += count * largest
    return sign_of(total - epsilon) in (-1, 0)


def masses_of(kinds: Kinds, log_error: float) -> Masses:
    """Return the masses of all kinds on panels that miss little of them."""
    log_step_error = log_error - math.log(4 * sum(n for _, n in kinds))
    panels = [panels_of(kind, 0.0, 0.0, log_step_error) for kind, _ in kinds]
    return masses(kinds, panels, log_error)


def mass_at_infinity(steps: Iterable[tuple[OneStep, int]], log_error: float) -> arb:
    """Enclose 1 − Π(1 − δ∞ᵢ)^{nᵢ}, the probability of an infinite loss.

    One of t steps: Q is 0 in the step that has the record, or P is 0 in every step.
    """
    log_finite = arb(0)
    for pair, count in steps:
        if isinstance(pair, FamilyLaw):  # of one support
            continue
        kind = _kind_of_one(pair)
        if not kind.may_be_infinite:
            continue
        if kind.is_infinite:
            return arb(1)
        step_masses = masses_of(((kind, 1),), log_error - math.log(2.0 * count))
        mass = step_masses.infinity + arb(0).union(step_masses.outside)
        if isinstance(pair, AllocatedPair) and pair.direction != "remove":
            mass = mass**pair.steps
        log_finite += count * (-mass).log1p()
    return -log_finite.expm1()


def _of_epochs(steps: tuple[tuple[OneStep, int], ...], exact: Fraction, digits: int) -> arb:
    """Enclose δ(ε) where a step is an epoch of random allocation."""
    if not is_beyond(steps, sp.Rational(exact.numerator, exact.denominator)):
        return enclose_epochs(steps, exact, digits)
    with ctx.workprec(int(8 * digits) + 128):
        return mass_at_infinity(steps, -(2 * digits + 8) * LN10)


def _only_infinite(question: _ProfileQuestion, digits: float) -> arb:
    """Enclose δ where no finite loss exceeds ε."""
    with ctx.workprec(int(8 * digits) + 128):
        return mass_at_infinity(question.steps, -(2 * digits + 8) * LN10)


def _has_line(question: _ProfileQuestion, digits: int) -> bool:
    """Whether |φ|ⁿ falls as far as asked, soon if the steps are few: a look in numbers."""
    kinds = question.kinds
    if all(kind.is_discrete for kind, _ in kinds):
        return False
    if question.count >= MANY:
        return True
    law = sum_law(kinds)
    saddle = find_saddle(law, float(question.exact))
    if saddle is None:
        return False
    frequency = _SOON * math.sqrt(saddle.curvature)
    places = np.linspace(frequency, 2 * frequency, _PLACES)
    try:
        log_modulus = float(law.cgf_line(saddle.tilt, places).real.max())
    except AccuracyError:
        return True
    # Beside a value at the real axis it is divided by z(1 + z) as well.
    log_kernel = math.log(saddle.tilt * (1 + saddle.tilt)) - 2 * math.log(frequency)
    return log_modulus + log_kernel < -digits * LN10


def _may_be_on_mesh(question: _ProfileQuestion, digits: int) -> bool:
    """Whether the steps are so few, and so few digits asked for, that a mesh takes seconds."""
    return question.count < MANY and digits <= _MESH_DIGITS


def _share_before_mesh(question: _ProfileQuestion, digits: int) -> float:
    """Return the share of work that a line has before the mesh is tried."""
    return _SHORT_LINE if _may_be_on_mesh(question, digits) else 1.0


def _has_line_after_mesh(question: _ProfileQuestion, digits: int) -> bool:
    """Whether a line that had a share of the work is tried with all of it."""
    return _may_be_on_mesh(question, digits) and _has_line(question, digits)


def _strip_of(question: _ProfileQuestion) -> tuple[Strip, float]:
    """Return the strip whose integral is smaller, and an ε near by that close ones share."""
    law = sum_law(question.kinds)
    epsilon = float(question.exact)
    for digits in _ROUNDED:
        about = float(f"{epsilon:.{digits}g}")
        saddle = find_saddle(law, about)
        if saddle is None or saddle.log_size > _HALF:
            if digits != _ROUNDED[-1]:
                about = float(f"{epsilon:.6g}")
            return Strip.MIDDLE, about
        if saddle.tilt * abs(epsilon - about) < _CLOSE:
            break
    assert saddle is not None
    has_stretches = any(kind.stretches for kind, _ in question.kinds)
    most = _MOST_SIZE if has_stretches else _MOST_OF_LISTS
    log_size = max(saddle.log_size, law.log_mass_at_infinity)
    if -log_size > most:
        raise AccuracyError(f"log δ is about {log_size:.3g}: too small a δ to certify")
    return Strip.RIGHT, about


def _on_line(question: _ProfileQuestion, digits: float) -> arb:
    """Enclose δ(ε) by the sum on a line."""
    strip, about = _strip_of(question)
    return _line_at(question.kinds, about, digits, strip).delta(question.ball())


@lru_cache(maxsize=32)
def _line_at(kinds: Kinds, epsilon: float, digits: float, strip: Strip) -> Line:
    plan = find_plan(kinds, epsilon, digits, strip)
    return Line(kinds, plan, epsilon, digits)


def _on_lattice(question: _ProfileQuestion, digits: float) -> arb:
    """Enclose δ(ε) by the sum over one period."""
    assert question.lattice is not None
    _, about = _strip_of(question)
    line = _lattice_line(question.kinds, question.lattice, about, digits)
    return line.delta(question.ball())


@lru_cache(maxsize=32)
def _lattice_line(kinds: Kinds, lattice: Lattice, epsilon: float, digits: float) -> LatticeLine:
    plan = find_plan(kinds, epsilon, digits, spacing=float(lattice.spacing))
    return LatticeLine(kinds, plan, lattice, digits)


def _single_step(question: _ProfileQuestion, digits: float) -> arb:
    """Enclose δ(ε) of one step from its definition."""
    kind, _ = question.kinds[0]
    return _enclose_single(kind, question.ball(), digits)


def _by_residues(question: _ProfileQuestion, digits: float) -> arb:
    """Enclose δ(ε) by the finite formula that it has."""
    assert question.residues is not None
    finite = question.residues.excess(
        question.exact, lambda ball: question.is_met(ball, int(digits))
    )
    return finite + mass_at_infinity(question.steps, -(digits + 6) * LN10 * 2)


def _log_moment_bound(kinds: Kinds, tilt: arb, scales: Sequence[float], log_error: float) -> arb:
    """Bound log E e^{tL}, given about K of each kind."""
    log_step_error = log_error - math.log(4 * sum(n for _, n in kinds))
    total = arb(0)
    for (kind, count), scale in zip(kinds, scales, strict=True):
        moment = Asked(tilt, scale, -3 * LN10)
        panels = panels_of(kind, max(float(tilt), 0.0), 0.0, log_step_error)
        nodes = measure(kind, panels, [moment])
        log_moment = arb(nodes.total(moment, 0).upper()).log() + scale
        total += count * log_moment
    return total


def _has_moment(question: _ProfileQuestion, digits: int) -> bool:
    """Whether δ(ε) need only be below a number, and K is finite right of 0."""
    if question.below is None or not question.below > 0:
        return False
    return sum_law(question.kinds).domain[1] > _LITTLE


def _by_moment(question: _ProfileQuestion, digits: int) -> arb:
    """Bound δ(ε) ≤ e^{K(t)−tε} t^t/(1+t)^{1+t}, where it is enough to be below a number."""
    assert question.below is not None
    kinds = question.kinds
    saddle = find_saddle(sum_law(kinds), float(question.exact))
    t = _LITTLE
    if saddle is not None:
        t = max(saddle.tilt, _LEAST_TILT)
    with ctx.workprec(MASS_BITS):
        tilt = arb(t)
        log_error = float(question.below.lower().log()) - 3 * LN10
        law_masses = masses_of(kinds, log_error)
        scales = [sum_law(((kind, 1),)).cgf(t) for kind, _ in kinds]
        log_bound = _log_moment_bound(kinds, tilt, scales, log_error)
        log_bound += log_payoff(tilt) - tilt * question.ball()
        bound = log_bound.exp() + law_masses.outside + law_masses.infinity
        return arb(0).union(arb(bound.upper()))


def _is_nearly_one(question: _ProfileQuestion, digits: int) -> bool:
    saddle = find_saddle(sum_law(question.kinds), float(question.exact), Strip.MIDDLE)
    return saddle is not None and saddle.log_size < -(digits + 1) * LN10


def _nearly_one(question: _ProfileQuestion, digits: int) -> arb:
    """Enclose δ(ε) where 1 − δ is small beside it.

    1 − δ is what min(1, e^{ε−L}) ≤ e^{s(ε−L)} is on average over finite L, for any s from 0 to 1.
    """
    kinds = question.kinds
    scales = [0.0] * len(kinds)
    log_error = -(digits + _SPARE_OF_ONE) * LN10
    with ctx.workprec(MASS_BITS + 4 * digits):
        best = arb(1)
        law_masses = masses_of(kinds, log_error)
        for quarters in _QUARTERS:
            share = arb(quarters) / 4
            log_bound = share * question.ball()
            log_bound += _log_moment_bound(kinds, -share, scales, log_error)
            best = best.min(arb(log_bound.exp().upper()))
        most = arb((best + law_masses.outside).upper())
        return 1 - arb(0).union(most)


def _on_mesh(question: _ProfileQuestion, digits: int) -> arb:
    """Enclose δ(ε) between laws on a mesh."""
    few = min(digits, _MESH_DIGITS)
    enough = min(digits, LEAST_DIGITS)
    # Where K is infinite at every t > 0 a small tilt will do, for δ is not small there.
    tilt = _LITTLE
    log_size = -LN10 * few
    saddle = find_saddle(sum_law(question.kinds), float(question.exact))
    if saddle is not None and saddle.tilt > _LEAST_TILT:
        tilt = saddle.tilt
        log_size = saddle.log_size
    with ctx.workprec(MASS_BITS):
        ball = arb(0).union(arb(1))
        for share in _TILTS:  # next to the largest loss the saddle point asks for too fine a mesh
            if tilt * share > _LEAST_TILT and not question.is_met(ball, enough):
                other = bracket_delta(question.kinds, question.ball(), tilt * share, log_size, few)
                ball = ball.intersection(other)
        return ball


WAYS = (  # the first row that serves answers
    _Way("largest loss", _is_beyond, _sharpened(_only_infinite)),
    _Way("below", _has_moment, _by_moment),
    _Way("single step", lambda question, _: question.count == 1, _sharpened(_single_step)),
    _Way("lattice", lambda question, _: question.lattice is not None, _sharpened(_on_lattice)),
    _Way("residues", lambda question, _: question.residues is not None, _sharpened(_by_residues)),
    _Way("nearly one", _is_nearly_one, _nearly_one),
    _Way("line", _has_line, _sharpened(_on_line), share=_share_before_mesh),
    _Way("mesh", lambda *_: True, _on_mesh, is_sharp=False),
    _Way("line", _has_line_after_mesh, _sharpened(_on_line)),
)
_SUMS = tuple(  # those that any law in balls has
    way for way in WAYS if way.name in ("lattice", "line")
)


def _log_delta_at_saddle(law: SumLaw, epsilon: float | Fraction) -> float | None:
    """Return about log δ(ε) at the saddle point, None where there is none."""
    saddle = find_saddle(law, float(epsilon))
    return None if saddle is None else saddle.log_size


def estimate_log_delta(
    pairs: Iterable[tuple[OneStep, int]], epsilon: float | Fraction
) -> float | None:
    """Return about log δ(ε), the first term of its expansion; None where there is no saddle."""
    steps: tuple[Any, ...] = tuple(pairs)
    are_families = [isinstance(pair, FamilyLaw) for pair, _ in steps]
    if any(are_families):
        return _log_delta_at_saddle(SumLaw(steps), epsilon) if all(are_families) else None
    first, count = steps[0]
    if isinstance(first, AllocatedPair) and len(steps) == 1 and count == 1:
        return estimate_log_epoch(first, float(epsilon))
    with suppress(AccuracyError):
        if any(isinstance(pair, AllocatedPair) for pair, _ in steps):
            return None
        law = sum_law(tuple((kind_of(pair), n) for pair, n in steps))
        if law.loss_bounds[1] > epsilon:
            return _log_delta_at_saddle(law, epsilon)
    return None


def log_with_infinite_losses(
    pairs: Iterable[tuple[OneStep, int]], log_finite: float | None
) -> float | None:
    """Return about log δ, infinite losses included, given what finite ones add to it."""
    steps = tuple(pairs)
    if any(isinstance(pair, FamilyLaw | AllocatedPair) for pair, _ in steps):
        return log_finite
    log_infinite = -math.inf
    with suppress(AccuracyError):
        kinds = tuple((kind_of(pair), n) for pair, n in steps)
        log_infinite = sum_law(kinds).log_mass_at_infinity
    if log_infinite == -math.inf:
        return log_finite
    if log_finite is None:
        return log_infinite
    return min(log_sum([log_finite, log_infinite]), 0.0)
