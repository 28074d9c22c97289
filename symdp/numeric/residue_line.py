"""δ(ε) by residues, in balls: M of every step a short sum of rational functions times exponentials.

What was read of M is compared with the nodes of each law, at its own values of the parameters.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import acb, ctx

from symdp.errors import AccuracyError
from symdp.numeric.accuracy import SETTLED, TOLERABLE
from symdp.numeric.answer import BALL_BITS, Answer, answer_in_balls, is_narrow
from symdp.numeric.loss import LossLaw
from symdp.numeric.residues import Moment, ResidueSum, residue_sum
from symdp.numeric.total import SumLaw, kept_with_law

_MOST_PRODUCTS = 1e5  # terms above ε times orders of poles: a tenth of a second
_MOST_PARTS = 16  # distinct steps: of more that have two terms each, the terms are too many
_TILT, _TURNS = -0.375, (0.0, 1.0)  # with y over the deviation: where M is compared with nodes


def residue_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε), None where M of a step is no such sum, or the terms are too many."""
    total = residues(law)
    at = Fraction(epsilon)
    if total is None or total.products_above(at) > _MOST_PRODUCTS:
        return None
    log_infinite = law.log_mass_at_infinity
    try:
        with ctx.workprec(BALL_BITS):
            finite = total.excess(at, lambda ball: is_narrow(ball, log_infinite))
            return answer_in_balls(finite, log_infinite)
    except AccuracyError:
        return None


@kept_with_law
def residues(law: SumLaw) -> ResidueSum | None:
    """Return the finite sum that is δ, if there is one."""
    if not law.is_spread or len(law.terms) > _MOST_PARTS:
        return None
    moments = []
    for part, count in law.parts:
        moment = part.moment
        if moment is None or not _is_of(part, moment):
            return None
        moments.append((moment, count))
    return residue_sum(moments)


def _is_of(law: LossLaw, moment: Moment) -> bool:
    """Return whether M has the values of the nodes, and its mass is 1 less that at infinity."""
    base = law.base
    deviation = math.sqrt(float(base.weight @ (base.loss - base.mean) ** 2))
    with ctx.workprec(BALL_BITS):
        numbers = moment.numbers()
        for y in _TURNS:
            z = complex(_TILT, y / deviation if deviation > 0 else 0.0)
            value = numbers.at(acb(z.real, z.imag), moment.orders)
            seen = complex(np.exp(base.log_weight + z * base.loss).sum())
            size = float(np.exp(base.log_weight + _TILT * base.loss).sum())
            if not abs(value - acb(seen.real, seen.imag)) < TOLERABLE * size:
                return False
        mass = numbers.at(acb(0), moment.orders).real + law.mass_at_infinity
        return bool(abs(mass - 1) < SETTLED) or not mass.is_finite()
