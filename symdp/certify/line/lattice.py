"""δ(ε) where every loss lies on one lattice: the rule over one period, every error bounded.

Over losses λ_k = origin + kD the integrand of the line has the period 2π/D once its kernel is
summed over the lattice, e^{−zs}/(1 − e^{−zD}) − e^{ε−(1+z)s}/(1 − e^{−(1+z)D}) with s the first
λ_k above ε.  The rule with N points adds the same positive terms as on the line, with a = ND.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp
from flint import acb, arb, ctx

from symdp.certify.line.alias import Steps, choose
from symdp.certify.line.line import Goal
from symdp.certify.line.node_selection import Run, Sieve, power, values_at, widest
from symdp.certify.parts import parts_of
from symdp.emit.arb import constant_ball
from symdp.emit.exact import LN10, real_ball
from symdp.errors import AccuracyError
from symdp.prove.work import COARSE_BITS

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_FEW_POINTS = 64  # that are all summed
_MOST_POINTS = 200_000  # of a period, all of which may be summed
_MOST_LOUD = 10_000  # of a longer one
# What is said where too many points would be needed.
_TOO_FINE = "the lattice of the losses is too fine to certify so many steps"


@dataclass(frozen=True)
class Lattice:
    """Every sum of losses is origin + k·spacing, exactly."""

    origin: sp.Expr
    spacing: sp.Expr


def find_lattice(steps: Sequence[tuple[Pair, int]]) -> Lattice | None:
    """Return a lattice that provably holds every sum of losses, or None.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> find_lattice([(mechanisms.randomized_response(epsilon_0=2).pair(), 3)])
    Lattice(origin=6, spacing=4)
    """
    origin = sp.S.Zero
    differences: set[sp.Expr] = set()
    for pair, count in steps:
        places = _places(pair)
        if places is None:
            return None
        reference, others = places
        origin += count * reference
        differences |= {other for other in others if other != 0}
    if not differences:
        return Lattice(origin, sp.S.One)
    unit = min(differences, key=sp.default_sort_key)
    ratios = []
    for difference in differences:
        ratio = sp.simplify(difference / unit)
        if not ratio.is_Rational:
            return None
        ratios.append(Fraction(int(ratio.p), int(ratio.q)))
    whole = math.lcm(*(ratio.denominator for ratio in ratios))
    common = math.gcd(*(abs(int(ratio * whole)) for ratio in ratios))
    spacing = unit * sp.Rational(common, whole)
    positive = constant_ball(spacing, 128).real > 0
    return Lattice(origin, spacing if positive else -spacing)


def _places(pair: Pair) -> tuple[sp.Expr, list[sp.Expr]] | None:
    """Return one loss of a step, and how far its others and their spacings lie from it."""
    parts = parts_of(pair)
    losses, spacings = [point.loss for point in parts.points], []
    for part in parts.stretches:
        if part.is_flat:
            losses.append(part.piece.loss)
            continue
        if not part.x.is_integer:
            return None
        loss = sp.expand(part.piece.loss)
        slope = sp.diff(loss, part.x)
        if slope.has(part.x):
            return None
        at = part.piece.lower if part.piece.lower.is_finite else part.piece.upper
        losses.append(loss.subs(part.x, at if at.is_finite else 0))
        spacings.append(sp.simplify(slope))
    reference = losses[0]
    return reference, [sp.simplify(loss - reference) for loss in losses[1:]] + spacings


def sum_lattice(steps: Steps, lattice: Lattice, tilt: sp.Rational, epsilon: arb, goal: Goal) -> arb:
    """Enclose δ(ε) less the mass at infinity.

    Raises
    ------
    AccuracyError
        If too many points would be needed.
    """
    t = real_ball(tilt)
    origin, spacing = (real_ball(e) for e in (lattice.origin, lattice.spacing))
    height = sum((n * step.scale for step, n in steps), arb(0)) - t * epsilon
    log_goal = goal.log_size - goal.digits * LN10 - math.log(8)
    period, anchors = choose(steps, tilt, epsilon, log_goal, goal.width)
    points = math.ceil(period / float(spacing)) + 1
    added = sum((s.added(tilt, epsilon, points * spacing) for s in anchors), arb(0)).upper()
    start, unsure = _first_above(origin, spacing, epsilon)
    counts = [n for _, n in steps]
    tolerance = ((arb(log_goal) - height).exp() * t.min(arb(1)) / (4 * sum(counts))).mid()
    turn = 2 * arb.pi() / (points * spacing)
    walks = [(step.walk(turn, tolerance, n, falls=False), n) for step, n in steps]

    def term(index: int, values: Sequence[acb]) -> arb:
        value = _kernel(acb(t, index * turn), start, spacing, epsilon)
        for own, n in zip(values, counts, strict=True):
            value *= own**n
        return value.real if index in (0, points - index) else 2 * value.real

    largest = _largest_kernel(t, start, spacing, epsilon)
    # In the units of the terms, for each point.
    negligible = (arb(log_goal) - height - t * epsilon).exp() / largest
    total, last, index, size = arb(0), points // 2, 0, largest
    most = _MOST_POINTS if points <= _MOST_POINTS else _MOST_LOUD
    while index <= last and not (index >= _FEW_POINTS and size < negligible):
        if index > most:
            raise AccuracyError(_TOO_FINE)
        values = [walk[index] for walk, _ in walks]
        total += term(index, values)
        size = power([abs(value).upper() for value in values], counts)
        index += 1
    if index <= last:
        fine = [walk.between(0, last, 1.0) for walk, _ in walks]
        alone = 0
        for before, end, moduli in _beyond(steps, turn, index - 1, last, negligible):
            if moduli is None:
                alone += 1
                if alone > most:
                    raise AccuracyError(_TOO_FINE)
                total += term(end, values_at(fine, end * turn))
            else:
                size = 2 * (end - before) * largest * power(moduli, counts)
                total += arb(0, size)
    # `height` holds e^{−tε}, which the kernel has too.
    return (
        total / points * (height + t * epsilon).exp() + unsure * height.exp() - arb(0).union(added)
    )


def _beyond(steps: Steps, turn: arb, first: int, last: int, negligible: arb) -> Iterator[Run]:
    """Return what covers the points after the first."""
    with ctx.workprec(COARSE_BITS):
        laws = [step.nodes(float(last * turn), COARSE_BITS) for step, _ in steps]
    sieve = Sieve(laws, [n for _, n in steps], turn, lambda size, _: bool(size < negligible))
    stride = widest(max(step.deviation() for step, _ in steps), turn)
    return sieve.runs(first, last, stride)


def _largest_kernel(t: arb, start: arb, spacing: arb, epsilon: arb) -> arb:
    first = (-t * start).exp() / -(-t * spacing).expm1()
    second = (epsilon - (1 + t) * start).exp() / -(-(1 + t) * spacing).expm1()
    return arb((first + second).upper())


def _kernel(z: acb, start: arb, spacing: arb, epsilon: arb) -> acb:
    first = (-z * start).exp() / -(-z * spacing).expm1()
    second = (epsilon - (1 + z) * start).exp() / -(-(1 + z) * spacing).expm1()
    return first - second


def _first_above(origin: arb, spacing: arb, epsilon: arb) -> tuple[arb, arb]:
    """Return the first point proved to lie above ε, and what one that may be ε can count for.

    A loss λ has probability at most e^{K(t) − tλ}, and counts for (1 − e^{ε−λ})⁺.
    """
    whole = ((epsilon - origin) / spacing).mid().floor().unique_fmpz()
    if whole is None:
        raise AccuracyError("ε lies too far out on the lattice of the losses")
    index = int(whole) - 1
    unsure = arb(0)
    while True:
        place = origin + index * spacing
        if place > epsilon:
            return place, arb(0).union(unsure)
        if not place <= epsilon:
            # e^{−t(λ−ε)} ≤ 1 but for the ball's radius, for which the factor 2 has room.
            unsure += 2 * abs((epsilon - place).expm1()).upper()
        index += 1
