"""δ(ε) of a composition as a ball: one table says which proof answers which question.

| row | which compositions | relative width | work |
| --- | --- | --- | --- |
| largest loss | ε proved to be at least every finite loss | as asked | none |
| single step | n = 1 | as asked | one integral |
| lattice | all losses on one lattice | as asked | O(1) in n |
| residues | M a short sum of rational times exponential | as asked | one power series a term |
| line | a density, K finite at some t > 0, many steps or φⁿ falls soon | as asked | O(1) in n |
| nearly one | 1 − δ far below what is asked | as asked | one CGF a step |
| strip | many steps, K infinite at every t > 0 | as asked | O(1) in n |
| mesh | everything else: few steps, atoms off lattices, heavy atoms | 10^(−6) | seconds |

A row that refuses, as where a bound would take too much work, leaves the question to those below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import sympy as sp
from flint import arb, ctx

from symdp.arguments import counted_pairs, real
from symdp.balls.enclosure import cgf_ball
from symdp.certify.allocation import enclose_epochs, estimate_log_epoch
from symdp.certify.estimate import (
    find_saddle,
    largest_loss,
    log_modulus,
    nearby_saddle,
    right_saddle,
)
from symdp.certify.infinity import is_beyond, mass_at_infinity
from symdp.certify.line.alias import Height, cheapest_tilt, heights
from symdp.certify.line.lattice import Lattice, find_lattice, sum_lattice
from symdp.certify.line.line import Goal, sum_line
from symdp.certify.line.step import tilted_step
from symdp.certify.mesh.bracket import bracket_delta
from symdp.certify.parts import parts_of
from symdp.certify.single import enclose_single
from symdp.emit.exact import LN10, fraction_ball
from symdp.errors import AccuracyError, InputError
from symdp.law.residues import ResidueSum, residues_of
from symdp.law.tilts import Strip
from symdp.model.allocation import AllocatedPair, OneStep
from symdp.prove.work import limited

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_SPARE = 2.0  # digits beyond those asked, at first
_TRIES = 4  # with more digits carried, as many as were lost
MOST_DIGITS = 1000  # asked for
LEAST_DIGITS = 4  # that make a proof worth while where more were asked
_BITS = 128  # of numbers beyond the digits asked
_SMALLER = 5  # times that δ of one step may be smaller than what is cut off
_TILT_BITS = 3  # of a tilt: enough to be near the saddle, few so that close ε share nodes
_SMALLEST = 1e6  # −log δ, as so many bits are carried
_MANY = 12  # steps, of which a line serves nearly always: of fewer |φ|ⁿ may fall too late
_SOON = 300.0  # deviations of the tilted loss: by then |φ|ⁿ should have fallen
_FEW_PRODUCTS = 5e6  # of balls on the line of few steps: two seconds, as a mesh takes
_MESH_DIGITS = 6  # that take a mesh seconds; each further one three times as long
_MESH_BITS = 192  # carried beside a mesh, whose error is far larger
_NOT_LOW = -0.1  # log δ, from which on down 1 − δ is not small
_QUARTERS = (2, 1, 3, 0)  # of s in a bound of 1 − δ, most often the best first
_LITTLE, _LEAST_TILT = 1 / 16, 1e-9  # a tilt where none is known, and the least of use


def enclose_delta(
    pairs: Iterable[tuple[OneStep, int]],
    epsilon: float | Fraction,
    digits: int = 15,
    below: arb | None = None,
) -> arb:
    """Enclose δ(ε) of a composition, every error bounded.

    The first row of `WAYS` that serves and does not refuse answers.

    Parameters
    ----------
    pairs : iterable of (Pair, count)
        All parameters bound, and densities of mass 1, as those of a `Composition` are.
    epsilon : float or Fraction
        Any real number, taken exactly.
    digits : int
        1 to 1000: the relative width is 10^(−digits) where a row gets so far, and what the mesh
        gives elsewhere, 10^(−6) if it can and never more than 10^(−4).
    below : arb, optional
        What it is enough to be proved below: such a ball may be as wide as it is.

    Returns
    -------
    arb
        A ball that contains δ(ε), floating point included.

    Raises
    ------
    InputError
        For an ε or a number of digits out of range.
    AccuracyError
        If no proof of so many digits was found, nor of four.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> ball = enclose_delta([(mechanisms.gaussian(sigma=2).pair(), 3)], Fraction(3, 2), 6)
    >>> bool(0.0288822 < ball < 0.0288823)
    True
    """
    if not isinstance(digits, int) or not 1 <= digits <= MOST_DIGITS:
        raise InputError(f"digits must be a whole number from 1 to 1000, not {digits!r}")
    real(epsilon, "epsilon")
    steps = tuple(counted_pairs(pairs, "pair"))
    plain = tuple((pair, n) for pair, n in steps if not isinstance(pair, AllocatedPair))
    if len(plain) < len(steps):
        return enclose_epochs(steps, Fraction(epsilon), digits)
    question = _Question(plain, Fraction(epsilon), below)
    refusals: list[AccuracyError] = []
    for way in WAYS:
        try:
            with limited(digits):
                if not way.serves(question, digits):
                    continue
                ball = way.enclose(question, digits)
        except AccuracyError as refusal:
            refusals.append(refusal)
            continue
        if question.is_met(ball, digits if way.is_sharp else min(digits, LEAST_DIGITS)):
            return ball
    raise AccuracyError(
        "; ".join(dict.fromkeys(map(str, refusals)))
        or "the enclosure stays too wide; ask for fewer digits"
    )


@dataclass(frozen=True)
class _Question:
    """A composition, an ε, and what δ need only be proved below."""

    steps: tuple[tuple[Pair, int], ...]
    exact: Fraction
    below: arb | None = None

    @cached_property
    def count(self) -> int:
        """The number of steps."""
        return sum(n for _, n in self.steps)

    @cached_property
    def is_discrete(self) -> bool:
        """Whether the loss of every step has atoms only."""
        return all(parts_of(pair).is_discrete for pair, _ in self.steps)

    @cached_property
    def lattice(self) -> Lattice | None:
        """The lattice on which all sums of losses lie, if there is one."""
        return find_lattice(self.steps) if self.is_discrete else None

    @cached_property
    def residues(self) -> ResidueSum | None:
        """The finite sum of residues that is δ, if there is a short one."""
        return residues_of(self.steps)

    def ball(self) -> arb:
        """Return ε at the working precision."""
        return fraction_ball(self.exact)

    def is_met(self, ball: arb, digits: int) -> bool:
        """Whether a ball is one number, narrower than 10^(−digits) of itself, or below enough."""
        if ball.is_zero() or (self.below is not None and ball < self.below):
            return True
        return bool(ball > 0 and 2 * ball.rad() < ball.lower() * arb(10) ** -digits)


class _Way(NamedTuple):
    """A row: when it applies, its enclosure of δ, and whether it gets to any number of digits."""

    name: str
    serves: Callable[[_Question, int], bool]
    enclose: Callable[[_Question, int], arb]
    is_sharp: bool = True


def _sharpened(finite: Callable[[_Question, arb, float], arb]) -> Callable[[_Question, int], arb]:
    """Return the enclosure that adds the mass at infinity and carries more digits while too few."""

    def enclose(question: _Question, digits: int) -> arb:
        spare = _SPARE
        for _ in range(_TRIES):
            bits = int(3.33 * (digits + spare + math.log10(1 + question.count))) + _BITS
            with ctx.workprec(bits):
                infinite = mass_at_infinity(question.steps, arb(10) ** -int(digits + spare + 4))
                if 1 - infinite < arb(10) ** -(digits + 1):  # whatever the rest adds
                    return infinite.union(arb(1)).min(arb(1))
                ball = infinite + finite(question, question.ball(), digits + spare)
                ball = ball.max(arb(0)).min(arb(1))
                if question.is_met(ball, digits):
                    return ball
                width = 2 * ball.rad() / ball.lower() if ball.lower() > 0 else arb.pos_inf()
                lost = float(width.log()) / LN10 + digits if width.is_finite() else digits
            spare += max(lost, 0.0) + _SPARE
        raise AccuracyError("the enclosure stays too wide; ask for fewer digits")

    return enclose


def _is_beyond(question: _Question, digits: int) -> bool:
    """Whether ε is proved to be at least every finite loss; a look in numbers comes first."""
    top, at = largest_loss(question.steps), question.exact
    if top - float(at) > 1e-9 * abs(top):
        return False
    return is_beyond(question.steps, sp.Rational(at.numerator, at.denominator))


def _has_many_steps(question: _Question, digits: int) -> bool:
    return not question.is_discrete and question.count >= _MANY


def _has_line(question: _Question, digits: int) -> bool:
    """Whether |φ|ⁿ falls as far as asked, soon if the steps are few: a look in numbers."""
    if question.is_discrete or question.count >= _MANY:
        return not question.is_discrete
    saddle = right_saddle(question.steps, float(question.exact))
    if saddle is None:
        return False
    frequency = _SOON * math.sqrt(saddle.curvature)
    size = log_modulus(question.steps, saddle.tilt, frequency)
    # Beside a value at the real axis it is divided by z(1 + z) as well.
    size += math.log(saddle.tilt * (1 + saddle.tilt)) - 2 * math.log(frequency)
    return size < -digits * LN10


def _is_low(question: _Question, digits: int) -> bool:
    """Whether δ may be next to 1: a saddle point tells about how large it is."""
    log_size = estimate_log_delta(question.steps, question.exact)
    return log_size is None or log_size > _NOT_LOW


def _single(question: _Question, epsilon: arb, digits: float) -> arb:
    """Enclose δ(ε) of one step from its definition."""
    bits = 64 * math.ceil((3.33 * digits + 40) / 64)
    ball = arb(0)
    for _ in range(_SMALLER):
        with ctx.workprec(bits + _BITS):
            ball = enclose_single(question.steps[0][0], epsilon, bits)
        if question.is_met(ball, int(digits)):
            break
        bits *= 2  # what is cut off must be small beside δ
    return ball


def _by_residues(question: _Question, epsilon: arb, digits: float) -> arb:
    """Enclose δ(ε) by the finite formula that it has."""
    assert question.residues is not None
    return question.residues.excess(question.exact, lambda b: question.is_met(b, int(digits)))


def _on_lattice(question: _Question, epsilon: arb, digits: float) -> arb:
    """Enclose δ(ε) by the trapezoidal rule over one period."""
    assert question.lattice is not None
    return _by_rule(question, epsilon, digits, question.lattice)


def _on_line(question: _Question, epsilon: arb, digits: float) -> arb:
    """Enclose δ(ε) by the trapezoidal rule on a line."""
    return _by_rule(question, epsilon, digits, None)


def _by_rule(question: _Question, epsilon: arb, digits: float, lattice: Lattice | None) -> arb:
    steps = question.steps
    found = nearby_saddle(steps, largest_loss(steps), float(epsilon))
    if found is None:
        raise AccuracyError("no t > 0 was found at which the CGF of the loss is finite")
    about, saddle = found
    if -saddle.log_size > _SMALLEST:
        raise AccuracyError(f"log δ is about {saddle.log_size:.3g}: too small a δ to certify")
    # Tilt and width are rounded coarsely, so that close ε share nodes.
    step = 2.0 ** math.floor(-0.5 * math.log2(saddle.curvature) - 1.0)
    tilt = _rounded(saddle.tilt, step)
    if lattice is None:
        log_goal = saddle.log_size - LN10 * digits
        tilt = _rounded(cheapest_tilt(_profile(steps, about), saddle.tilt, log_goal), step)
    tilted = [(tilted_step(pair, tilt), n) for pair, n in steps]
    width = step * 2.0 ** round(2 + math.log2(LN10 * digits) / 2)
    most = _FEW_PRODUCTS if question.count < _MANY else math.inf
    goal = Goal(saddle.log_size, width, digits, most)
    with ctx.workprec(ctx.prec + int(max(0.0, -saddle.log_size) / math.log(2))):
        if lattice is not None:
            return sum_lattice(tilted, lattice, tilt, epsilon, goal)
        return sum_line(tilted, tilt, epsilon, goal)


def _nearly_one(question: _Question, digits: int) -> arb:
    """Enclose δ(ε) where 1 − δ is small beside it.

    1 − δ is what min(1, e^{ε−L}) ≤ e^{s(ε−L)} is on average over finite L, for any s from 0 to 1.
    """
    with ctx.workprec(_MESH_BITS + 4 * digits):
        at = question.ball()
        limit = arb(10) ** -(digits + 1)
        for quarters in _QUARTERS:
            exponent = at * quarters / 4
            try:
                for pair, count in question.steps:
                    exponent += count * cgf_ball(pair, -sp.Rational(quarters, 4)).real
            except AccuracyError:
                continue
            rest = exponent.exp().upper()
            if rest < limit:
                return 1 - arb(0).union(rest)
    raise AccuracyError("the enclosure stays too wide; ask for fewer digits")


def _in_strip(question: _Question, epsilon: arb, digits: float) -> arb:
    """Enclose δ(ε) by a line between the poles, where K is finite whatever the densities.

    With g(ε) = E min(1, e^{ε−L}) over finite losses δ(ε) = 1 − g(ε), and for −1 < t < 0 the line
    gives (1/2π) ∫ e^{K(z)−εz}/(z(1+z)) dy = −g(ε). What 1 − g cancels is digits of δ, not of e^ε.
    """
    saddle = find_saddle(question.steps, float(epsilon), Strip.MIDDLE)
    if saddle is None:
        raise AccuracyError("no saddle point was found between the poles")
    step = 2.0 ** math.floor(-0.5 * math.log2(saddle.curvature) - 1.0)
    near = math.floor(math.log2(min(-saddle.tilt, 1 + saddle.tilt)))
    unit = min(step, 2.0 ** (near - _TILT_BITS))
    tilt = round(saddle.tilt / unit) * sp.Rational(unit)
    tilted = [(tilted_step(pair, tilt), n) for pair, n in question.steps]
    width = step * 2.0 ** round(2 + math.log2(LN10 * digits) / 2)
    finite = 1 - mass_at_infinity(question.steps, arb(10) ** -int(digits + 4))
    return finite + sum_line(tilted, tilt, epsilon, Goal(0.0, width, digits))


def _on_mesh(question: _Question, digits: int) -> arb:
    """Enclose δ(ε) between laws on a mesh."""
    steps, few = question.steps, min(digits, _MESH_DIGITS)
    # Where K is infinite at every t > 0 a small tilt will do, for δ is not small there.
    tilt, log_size = _LITTLE, -LN10 * few
    saddle = right_saddle(steps, float(question.exact))
    if saddle is not None and saddle.tilt > _LEAST_TILT:
        tilt, log_size = saddle.tilt, saddle.log_size
    with ctx.workprec(_MESH_BITS):
        ball = mass_at_infinity(steps, arb(2) ** -_MESH_BITS)
        ball += bracket_delta(steps, question.ball(), tilt, log_size, few)
        return ball.max(arb(0)).min(arb(1))


WAYS = (  # the first row that serves answers
    _Way("largest loss", _is_beyond, _sharpened(lambda *_: arb(0))),
    _Way("single step", lambda question, _: question.count == 1, _sharpened(_single)),
    _Way("lattice", lambda question, _: question.lattice is not None, _sharpened(_on_lattice)),
    _Way("residues", lambda question, _: question.residues is not None, _sharpened(_by_residues)),
    _Way("line", _has_line, _sharpened(_on_line)),
    _Way("nearly one", _is_low, _nearly_one),
    _Way("strip", _has_many_steps, _sharpened(_in_strip)),
    _Way("mesh", lambda *_: True, _on_mesh, is_sharp=False),
)


def estimate_log_delta(
    pairs: Iterable[tuple[OneStep, int]], epsilon: float | Fraction
) -> float | None:
    """Return about log δ(ε) by the first term of its expansion, None where no saddle point serves.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> estimate = estimate_log_delta([(mechanisms.gaussian(sigma=2).pair(), 3)], 1.5)
    >>> bool(abs(estimate - math.log(0.02888)) < 0.05)
    True
    """
    steps = tuple(pairs)
    if isinstance(steps[0][0], AllocatedPair) and len(steps) == 1 and steps[0][1] == 1:
        return estimate_log_epoch(steps[0][0], float(epsilon))
    with suppress(AccuracyError):
        top = largest_loss(steps)
        found = nearby_saddle(steps, top, float(epsilon)) if top > epsilon else None
        return None if found is None else found[1].log_size
    return None


def _rounded(tilt: float, step: float) -> sp.Rational:
    """Return a multiple of a step, or of so few bits of a smaller tilt."""
    step = min(step, 2.0 ** (math.floor(math.log2(tilt)) - _TILT_BITS))
    return sp.Rational(max(math.floor(tilt / step), 1)) * sp.Rational(step)


@lru_cache(maxsize=128)
def _profile(steps: tuple[tuple[OneStep, int], ...], epsilon: float) -> tuple[Height, ...]:
    """Return K(s) − sε about the saddle point, which decides about costs alone."""
    saddle = right_saddle(steps, epsilon)
    return () if saddle is None else heights(steps, epsilon, saddle.tilt)
