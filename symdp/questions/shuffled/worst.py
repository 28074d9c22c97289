r"""The worst pair of inputs: which two of all inputs the bound of shuffled answers is asked of.

The bound of the inputs a and b is E[(Σ X)₊]/n, a sum of n independent values, so that it rises with
the law of X in increasing convex order [Shaked and Shanthikumar 2007, 4.A]: it does where E(X − c)₊
does for every c. With the infimum ω of all laws, and R_a, R_b ≥ ω,

.. math:: \int (R_a - e^ε R_b - cω)_+ \le G_a(e^ε + c), \qquad G_x(λ) = \int (R_x - λω)_+,

for c ≥ 1 − e^ε; for smaller c the left is 1 − e^ε − cγ + ∫(e^ε R_b − R_a + cω)₊, and the integral
is at most e^ε G_b((1 − c) e^{−ε}). Of two inputs p and r with ω = min(R_p, R_r) all of these are
equalities: where ω = R_r the first integrand is that of G_p, and where ω = R_p it is 0. So, if G_p
and G_r are the largest G_x of all inputs at every λ ≥ 1, p and r are the worst pair, at every ε ≥ 0
and of any number of people. Outputs that ω has nothing of are part of all these integrals.

*f(y − x) with one mode and a centre of symmetry, x in an interval.* The ends are p and r. Move the
centre and the middle of the interval to 0, let h be half its length, ω(y) = f(|y| + h), and let x
be ≤ 0. On T = {f(y − x) > λω(y)}, a union of intervals (l, u),

.. math:: \frac{d}{dx} G_x(λ) = -\int_T f'(y - x)\,dy = λ \sum ω(l) - ω(u).

Let T₊ and T₋ be the parts of T at y > 0 and at y < 0, the latter mirrored. As ω falls on y > 0, the
sum is that of −dω over T₊ less that over T₋; ends at 0 cancel, as they lie in both or in none. And
T₊ lies in T₋, as f(−y − x) ≥ f(y − x) for y > 0: −y is nearer to x. So G_x falls in x ≤ 0, and is
largest at the ends. Densities with jumps are limits in mean of smooth ones with one mode.

*A density that is affine in x.* ω lies at an end, and E[(Σ X)₊] is a convex function of both laws.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from symdp.balls.modes import one_mode
from symdp.density.shapes import shape_of
from symdp.model.fact import OPEN, RULE, Fact
from symdp.model.local import Local, is_affine, location

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

_OPEN = Fact(None, OPEN, "that none between them is worse was not proved")


@lru_cache(maxsize=64)
def worst_ends(mechanism: Mechanism) -> Fact:
    """Return whether the least and the largest input are the worst pair of all, and why."""
    source = mechanism.source
    assert isinstance(source, Local)
    if is_affine(source):
        return Fact(True, RULE, "the density is affine in the input: the bound is convex in it")
    if is_even_with_one_mode(mechanism):
        reason = "the density has one mode and is even around it: the ends are farthest apart"
        return Fact(True, RULE, reason)
    return _OPEN


@lru_cache(maxsize=64)
def is_even_with_one_mode(mechanism: Mechanism) -> bool:
    """Whether the laws are f(y − x) on the line with an even f of one mode."""
    noise = as_noise(mechanism)
    if noise is None:
        return False
    density = noise.source.density  # type: ignore[union-attr]
    shape = shape_of(density, noise.variable, noise.support)
    return shape.centre is not None and bool(one_mode(noise))


def is_worst_known(mechanism: Mechanism) -> bool:
    """Whether the worst pair of all inputs is among those that are compared."""
    source = mechanism.source
    assert isinstance(source, Local)
    return not source.is_interval or bool(worst_ends(mechanism))


def as_noise(mechanism: Mechanism) -> Mechanism | None:
    """Return additive noise f on the input, None where the density is not f(y − x) on the line."""
    from symdp.model.mechanism import Mechanism

    source = mechanism.source
    assert isinstance(source, Local)
    support = mechanism.support
    if (support.lower, support.upper) != (-sp.oo, sp.oo) or support.kind != "interval":
        return None
    density = location(source, mechanism.variable)
    if density is None:
        return None
    width = sp.Max(*source.inputs) - sp.Min(*source.inputs)
    if source.is_interval:
        width = source.inputs[1] - source.inputs[0]
    symbols = density.free_symbols | width.free_symbols
    words = {p.name: p.domain for p in mechanism.declared if p.symbol in symbols}
    return Mechanism.additive(
        density,
        mechanism.variable,
        width,
        name=mechanism.name,
        parameters=words,
    )
