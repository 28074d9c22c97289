"""The mass that a density is divided by, enclosed as the mass of a density is proved.

Emitted formulas hold it as a constant; `emit` integrates by Arb alone, which ends at an infinite
density and at tails that fall slowly. Loading this file hands `emit` the ways of this room.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

import sympy as sp
from flint import arb, ctx

from symdp.balls.enclosure import enclose_exponential
from symdp.balls.numeric_mass import AGREEMENT, two_masses
from symdp.balls.terms import SECONDS, enclose_mass
from symdp.derive import pieces
from symdp.emit.arb import ENCLOSERS
from symdp.emit.exact import BITS, real_ball
from symdp.emit.mass import MassIntegral
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import Deadline, worked
from symdp.model.pair import Pair, Support

_ENOUGH = arb(2) ** -90  # absolute accuracy, where no more can be had: 27 digits
_UNIT = sp.Symbol("u", real=True)  # between −1 and 1
_NARROW = arb(2) ** -60  # relative: far below the rounding of doubles


def enclose_normalizer(mass: MassIntegral) -> arb | None:
    """Return a ball around a mass, None where nothing gives one.

    Where neither its terms nor its logarithm prove one, two quadratures that agree are believed;
    `is_proved` tells that ball, which is wider, from a proof.

    Parameters
    ----------
    mass
        Without free parameters.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> enclose_normalizer(MassIntegral(sp.exp(-x) / sp.sqrt(x), (x, 0, sp.oo))).overlaps(
    ...     arb.pi().sqrt()
    ... )
    True
    """
    unit, scale = _on_unit(mass)
    bits = max(ctx.prec, BITS)
    found = _proved(unit, BITS)
    if found is not None and bits > BITS:
        found = _proved(unit, bits) or found
    if found is None:
        found = _seen(unit)
    if found is None or scale == 1:
        return found
    with ctx.workprec(bits):
        return found * real_ball(scale)


def _on_unit(mass: MassIntegral) -> tuple[MassIntegral, sp.Expr]:
    """Return the mass on [−1, 1], and what to multiply it by, where both ends are finite.

    Quadratures look for masses of about 1, and a density of any width is looked at once.
    """
    density, (x, lower, upper) = mass.parts
    if x.is_integer or lower.is_infinite or upper.is_infinite:
        return mass, sp.Integer(1)
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    if middle == 0 and half == 1:
        return mass, half
    limits = sp.Tuple(_UNIT, sp.Integer(-1), sp.Integer(1))
    return MassIntegral(density.subs(x, middle + half * _UNIT), limits), half


@lru_cache(maxsize=64)
def _proved(mass: MassIntegral, bits: int) -> arb | None:
    for tolerance in (arb(2) ** (20 - bits), _ENOUGH):
        for way in (_by_terms, _by_logarithm):
            # SymPy's TypeError: it asks in the middle of a question about a sign, and gets NaN.
            with suppress(AccuracyError, InputError, TypeError), ctx.workprec(bits):
                found = way(mass, tolerance)
                if found.is_finite() and is_proved(found):
                    return found
                if found.is_finite() and found.contains(0):  # its logarithm knows no sign
                    return None
    return None


@lru_cache(maxsize=64)
def _seen(mass: MassIntegral) -> arb | None:
    first, second = two_masses(mass.function, *mass.limits[0])
    apart = AGREEMENT * min(first, second)
    return arb(first, apart) if abs(first - second) <= apart else None


def is_proved(mass: arb) -> bool:
    """Return whether the ball around a mass was proved."""
    return bool(mass.rad() < _NARROW * abs(mass))


def _by_terms(mass: MassIntegral, tolerance: arb) -> arb:
    density, (x, lower, upper) = mass.parts
    return enclose_mass(density, x, lower, upper, tolerance, Deadline(SECONDS, worked))


def _by_logarithm(mass: MassIntegral, tolerance: arb) -> arb:
    density, (x, lower, upper) = mass.parts
    support = Support("interval", lower, upper)
    return mass_by_logarithm(density, x, support, tolerance, Deadline(SECONDS, worked))


def mass_by_logarithm(
    density: sp.Expr, x: sp.Symbol, support: Support, tolerance: arb, deadline: Deadline
) -> arb:
    """Enclose the mass of a density from its logarithm on each smooth piece of a support."""
    one, total = (sp.Integer(1),), arb(0)
    for part in pieces(Pair(x, support, (density,), one, one)):
        if part.log_q is not None:
            held = part.log_q, x, part.lower, part.upper
            total += enclose_exponential(*held, tolerance=tolerance, deadline=deadline)
    return total


def with_seen_masses(pair: Pair) -> Pair:
    """Return a pair in which masses that two quadratures found are the numbers they found."""
    components = tuple(c if isinstance(c, tuple) else with_numbers(c) for c in pair.components)
    others = tuple((weight, with_seen_masses(other)) for weight, other in pair.alternatives)
    atoms = tuple(
        (place, tuple(with_numbers(mass) for mass in masses)) for place, masses in pair.atoms
    )
    return replace(pair, components=components, alternatives=others, atoms=atoms)


def with_numbers(density: sp.Expr) -> sp.Expr:
    """Return a density in which masses that two quadratures found are the numbers they found."""
    balls = {mass: enclose_normalizer(mass) for mass in density.atoms(MassIntegral)}
    seen = {
        mass: sp.Rational(*float(ball.mid()).as_integer_ratio())
        for mass, ball in balls.items()
        if ball is not None and not is_proved(ball)
    }
    return density.xreplace(seen) if seen else density


ENCLOSERS[MassIntegral] = enclose_normalizer
