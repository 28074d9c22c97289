"""The law of one step's privacy loss, by what is known of the mechanism: the first that it has."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp
from flint import ctx

from symdp.emit import compile_arb, compile_numpy
from symdp.errors import InputError, at
from symdp.interrupt import generation
from symdp.model.allocation import MOST_OUTCOMES, allocated_steps, outcomes
from symdp.model.family import Family
from symdp.model.relation import SUBSTITUTION
from symdp.model.sampling import Radial
from symdp.numeric.formula import law_of_formula
from symdp.numeric.loss import LossLaw
from symdp.tolerances import BITS, MANY_BITS

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.numeric.laws.family import FamilyLaw
    from symdp.numeric.step import RealFunction

# functions that are not smooth
_KINKS = (sp.Piecewise, sp.Heaviside, sp.Abs, sp.sign, sp.Min, sp.Max, sp.floor, sp.ceiling)


def loss_law(mechanism: Mechanism, direction: str) -> LossLaw:
    """Return the numeric law of one step's privacy loss in one direction, compiled once."""
    if mechanism.is_mirrored:  # both have one law then
        direction = "remove"
    return _loss_law(mechanism.require_concrete(), direction, generation())


@lru_cache(maxsize=256)
def _loss_law(mechanism: Mechanism, direction: str, _: int) -> LossLaw:
    allocated = _allocated_law(mechanism, direction)
    if allocated is not None:
        return allocated
    if isinstance(mechanism.source, Radial):
        return _of_vectors(mechanism, direction)
    if isinstance(mechanism.source, Family):
        return _of_family(mechanism, mechanism.source, direction)
    if direction == "add":
        other = _loss_law(mechanism, "remove", generation())
        if other.is_reversible:
            return other.reversed()
    law = law_of_formula(mechanism, direction)
    if law is not None:
        return law
    from symdp.numeric.compile import compiled_law

    return compiled_law(mechanism.pair(direction), mechanism.name)


@lru_cache(maxsize=64)
def _compiled_descent(density: sp.Expr, r: sp.Symbol) -> tuple[RealFunction, RealFunction]:
    """Return −log g and its slope at lengths above 0."""
    from symdp.density.normal_form import log_form

    if density.has(*_KINKS):
        raise InputError("its density has kinks or ends, which noise on vectors may not have")
    psi = -log_form(density, r, sp.S.One).to_expression()
    slope = sp.diff(psi, r)
    return compile_numpy(psi, [r]), compile_numpy(slope, [r])


def _of_vectors(mechanism: Mechanism, direction: str) -> LossLaw:
    """Return the law of noise on vectors, whose log density and its slope are compiled."""
    from symdp.numeric.laws.radial import radial_law

    source = mechanism.source
    assert isinstance(source, Radial)
    if source.dimension == 1:
        return loss_law(mechanism.on_a_line.normalized(), direction)
    r = sp.Symbol(mechanism.variable.name, positive=True)
    distance = source.sensitivity
    if mechanism.neighbours == SUBSTITUTION:
        distance = 2 * distance
    rate = 1.0
    if mechanism.sampling is not None:
        rate = float(mechanism.sampling.rate)
    with at(mechanism.summary):
        functions = _compiled_descent(source.density.xreplace({mechanism.variable: r}), r)
        shape = (int(source.dimension), float(distance))
        return radial_law(functions, shape, rate, direction, mechanism.name)


def known_law(mechanism: Mechanism, source: Family, direction: str) -> FamilyLaw:
    """Return the law of a family, K compiled as it holds at complex places."""
    from symdp.density.log_moment import continued
    from symdp.numeric.laws.family import FamilyLaw

    z = mechanism.variable
    formula = continued(source.log_moment, z)
    in_balls = compile_arb(formula, [z])
    in_doubles = compile_numpy(formula, [z])
    law = FamilyLaw(mechanism.name, in_balls, in_doubles, direction)
    if source.lattice:
        sign = 1 if direction == "remove" else -1
        with ctx.workprec(MANY_BITS):
            start, step = (sign * compile_arb(part, [])().real for part in source.lattice)
        law.lattice = (start, step)
    return law


def _of_family(mechanism: Mechanism, source: Family, direction: str) -> LossLaw:
    """Return the law of a family, its losses listed where they lie on a lattice."""
    from symdp.numeric.laws.family import listed

    with at(mechanism.summary):
        family_direction = "remove" if source.lattice else direction
        law = known_law(mechanism, source, family_direction)
        if law.lattice is None:
            return law
        return listed(law, law.lattice, direction)


def _allocated_law(mechanism: Mechanism, direction: str) -> LossLaw | None:
    """Return the law of random allocation, None for other schemes."""
    steps = allocated_steps(mechanism)
    if steps is None:
        return None
    unsampled = replace(mechanism, sampling=None)
    if steps == 1:
        return loss_law(unsampled, direction)
    from symdp.numeric.laws.allocation import allocated_law, listed_step

    if unsampled.support.kind != "points":
        return allocated_law(loss_law(unsampled, "remove"), steps, direction)
    pair = unsampled.pair()
    outcome_count = outcomes(pair, steps)
    if outcome_count > MOST_OUTCOMES:
        raise InputError(
            f"{mechanism.summary}: {outcome_count} numbers of outcomes; at most "
            f"{MOST_OUTCOMES} are listed: fewer steps or fewer points are needed"
        )
    with ctx.workprec(BITS):
        p = [compile_arb(mass, [])().real for mass in pair.P]
        q = [compile_arb(mass, [])().real for mass in pair.Q]
    step = listed_step(mechanism.name, p, q, steps, direction)
    return LossLaw(step, None)
