"""The mass that a density is divided by, enclosed as the mass of a density is proved.

Emitted formulas hold it as a constant; `emit` integrates by Arb alone, which ends at an infinite
density and at tails that fall slowly. Loading this file hands `emit` the ways of this room.
"""

from __future__ import annotations

from contextlib import suppress

import sympy as sp
from flint import arb, ctx

from symdp.balls.enclosure import enclose_exponential
from symdp.balls.terms import SECONDS, Deadline, enclose_mass
from symdp.derive import pieces
from symdp.emit.arb import ENCLOSERS
from symdp.emit.mass import MassIntegral
from symdp.errors import AccuracyError, InputError
from symdp.model.pair import Pair, Support

_BITS = 130  # carried at least
_ENOUGH = arb(2) ** -90  # absolute accuracy, where no more can be had: 27 digits
_NARROW = arb(2) ** -60  # relative: far below the rounding of doubles


def enclose_normalizer(mass: MassIntegral) -> arb | None:
    """Return a ball around a mass, None where neither its terms nor its logarithm give one.

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
    bits = max(ctx.prec, _BITS)
    for tolerance in (arb(2) ** (20 - bits), _ENOUGH):
        for way in (_by_terms, _by_logarithm):
            # SymPy's TypeError: it asks in the middle of a question about a sign, and gets NaN.
            with suppress(AccuracyError, InputError, TypeError), ctx.workprec(bits):
                found = way(mass, tolerance)
                if found.is_finite() and found.rad() < _NARROW * abs(found):
                    return found
                if found.is_finite() and found.contains(0):  # its logarithm knows no sign
                    return None
    return None


def _by_terms(mass: MassIntegral, tolerance: arb) -> arb:
    density, (x, lower, upper) = mass.parts
    return enclose_mass(density, x, lower, upper, tolerance, Deadline(SECONDS))


def _by_logarithm(mass: MassIntegral, tolerance: arb) -> arb:
    density, (x, lower, upper) = mass.parts
    one = (sp.Integer(1),)
    single = Pair(x, Support("interval", lower, upper), (density,), one, one)
    parts = [piece for piece in pieces(single) if piece.log_q is not None]
    total, deadline = arb(0), Deadline(SECONDS)
    for part in parts:
        held = part.log_q, x, part.lower, part.upper
        total += enclose_exponential(*held, tolerance=tolerance, deadline=deadline)
    return total


ENCLOSERS[MassIntegral] = enclose_normalizer
