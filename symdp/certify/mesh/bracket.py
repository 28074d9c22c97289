"""δ(ε) from a law of the loss on a mesh that dominates the true one, and a bound of their distance.

**Above.**  Each outcome x of a step, with a loss between the levels A < B, is split between A and B
such that both its masses stay: p = p_A + p_B and q = e^{−A} p_A + e^{−B} p_B.  Let U be the sum of
the levels and S the sum of the losses.  Under P, given what happened, the factors e^{−ξ} with
ξ = (level) − ℓ(x) are independent and of mean 1, so that N = e^{−Ξ}, Ξ = U − S, has mean 1, and by
Jensen's inequality

    E(1 − e^{ε−U})⁺ = E E[(1 − e^{ε−S} N)⁺ | x] ≥ E(1 − e^{ε−S})⁺.

**Below.**  Given x let w(S) be what this inequality lacks.  With d = |S − ε| it is at most
E(Ξ − d)⁺ for S ≤ ε, as 1 − e^{−v} ≤ v.  For S > ε it is E(e^{−d}N − 1)⁺, which under dP′ = N dP is
at most E′(−Ξ − d)⁺, and −Ξ under P′ is what Ξ is under P.  Each ξ spans at most h, so that by
Hoeffding's lemma 0 ≤ EΞ ≤ nh²/8 = τ²/2, where τ = √n h/2, and Ξ − EΞ has a variance of at most τ²
and the exponential moments of a Gaussian of that variance.  Hence, with z = d/τ − b and b = τ/2,

    w ≤ τ min{(√(1 + z²) − z)/2, e^{−1−z²/2}/z}

by Cauchy's inequality, and by v⁺ ≤ e^{λv−1}/λ with λ = z/τ.  Let V(u) = C e^{−(u−ε)²/4τ²}.  By
Jensen's inequality E[V(U) | x] ≥ C e^{−((z + 2b)² + 1)/4}, which is at least w(S) at every z ≥ −b
if it is at z = −b: both bounds fall faster than it does, the first one up to 1, for b ≤ 1/5.  So

    C = τ (√(1 + b²) + b) e^{(1 + b²)/4}/2,    δ(ε) ≥ E(1 − e^{ε−U})⁺ − E V(U).

Outcomes that lie on the mesh are not split; sums of such alone need no V(U).  The distance is
about 0.6 n h² times the density of the loss at ε, so relative to δ about 0.6 n h² t(1 + t).

**Sums.**  The masses of U are lower bounds, tilted by e^{tU} (see `mesh`).  The tilted mass that
they lack counts with the largest weight that it can have, which is e^{−tε} t^t/(1 + t)^{1+t}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flint import arb, arb_poly, ctx

from symdp.certify.line.alias import log_largest_payoff
from symdp.certify.mesh.mesh import Aim, Composed, compose_on_mesh, finest_spacing
from symdp.certify.single import excess

if TYPE_CHECKING:
    from symdp.model.pair import Pair

Steps = Sequence[tuple["Pair", int]]

_BITS = 192  # of balls: cells lose what their width is relative to the loss
_DISTANCE = 0.6  # of both bounds, in n h² t(1 + t) δ
_TRIES = 5  # of a finer mesh or a smaller δ
_FIRST = 0.5  # of the width, that the first mesh is made for
_FINER, _FINEST_STEP = 0.8, 0.05  # of the mesh from one try to the next
_FINER_AGAIN = 1.2  # times the finest mesh: nearer to it is not worth another try
_WIDEST_SPREAD = 0.4  # τ, so that b ≤ 1/5
_REACH = 16.0  # of V in units of τ: e^{−64} beyond
_NEAR_POINTS = 4  # of a sum, next to ε, whose side may not be proved
_TILT_BITS, _SPACINGS = 5, 4  # shared by close ε; the last, of an octave


def bracket_delta(steps: Steps, epsilon: arb, tilt: float, log_size: float, digits: float) -> arb:
    """Enclose δ(ε) less the mass at infinity, to so many digits if a mesh so fine can be had.

    Parameters
    ----------
    steps : sequence of (Pair, count)
        All parameters bound.
    epsilon : arb
        ε, in nats.
    tilt, log_size : float
        t > 0 near the saddle point, and about log δ: they decide about width and cost alone.
    digits : float
        Relative to δ.  One more takes a mesh three times as fine.

    Returns
    -------
    arb
        The narrowest ball that was found.

    Raises
    ------
    AccuracyError
        If the loss is not known to be monotone on its pieces.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> steps = [(mechanisms.laplace(b=2).pair(), 3)]
    >>> ball = bracket_delta(steps, arb(0.5), tilt=3.0, log_size=-2.0, digits=5)
    >>> bool(0.147066 < ball < 0.147067)
    True
    """
    own, count, width = tuple(steps), sum(n for _, n in steps), 10.0**-digits
    mantissa, exponent = math.frexp(tilt)
    tilt = math.ldexp(math.floor(mantissa * 2**_TILT_BITS), exponent - _TILT_BITS)
    # n times as far from ε as leaves e^{t(n·centre − ε)} near 1: close ε share it.
    unit = 2.0 ** -math.ceil(math.log2(count * tilt))
    centre = unit * round(float(epsilon.mid()) / count / unit)
    aim = Aim(tilt, centre, math.floor(log_size), width, count)
    best: arb | None = None
    with ctx.workprec(_BITS + max(0, exponent)):
        spacing = math.sqrt(_FIRST * width / (_DISTANCE * count * tilt * (1.0 + tilt)))
        for _ in range(_TRIES):
            finest = finest_spacing(own, aim)
            spacing = max(2.0 ** (math.floor(_SPACINGS * math.log2(spacing)) / _SPACINGS), finest)
            ball, left_out = _bracket(compose_on_mesh(own, aim, spacing), epsilon, aim)
            best = ball if best is None else best.intersection(ball)
            have = float(2 * best.rad() / best.lower()) if best > 0 else math.inf
            if have <= width:
                break
            if left_out > width / 2:  # δ is smaller than it was said to be
                top = float(best.upper().log()) if best.upper() > 0 else aim.log_size
                size = min(aim.log_size, top) - math.log(left_out / width)
                aim = replace(aim, log_size=math.floor(size))
            elif spacing <= finest * _FINER_AGAIN:
                break
            else:
                spacing *= max(min(math.sqrt(width / have), 1.0) * _FINER, _FINEST_STEP)
    assert best is not None
    return best


def _bracket(found: Composed, epsilon: arb, aim: Aim) -> tuple[arb, float]:
    """Return the ball from the lower to the upper end, and what was left out relative to δ."""
    tilt, slack = arb(aim.tilt), found.slack
    law = _Sum(found, tilt, tilt * (aim.count * arb(aim.centre)))
    left_out = found.lacking * law.tilted(epsilon) * log_largest_payoff(tilt).exp() + found.missed
    above = law.excess(epsilon - slack) + left_out
    below = law.excess(epsilon + slack) - law.distance(epsilon)
    share = float((left_out / above).upper()) if above > 0 else 0.0
    return arb(below.lower()).max(arb(0)).union(arb(above.upper())), share


@dataclass(frozen=True)
class _Sum:
    """A composition on the mesh without its tilt, which was e^{t·level − back}."""

    found: Composed
    tilt: arb
    back: arb

    def tilted(self, epsilon: arb) -> arb:
        """Bound e^{back − tu}e^{t(u − ε)} for every sum u within the slack of its level."""
        return (self.back - self.tilt * (epsilon - self.found.slack)).exp()

    def mass(self, level: int) -> arb:
        """Bound the mass of P at a level from below."""
        own = self.found
        index = level - own.first
        if not 0 <= index < own.masses.length():
            return arb(0)
        place = own.origin + level * own.step
        return own.unit * (self.back - self.tilt * place).exp() * arb(own.masses[index])

    def excess(self, epsilon: arb) -> arb:
        """Enclose Σ (1 − e^{ε−u})⁺ over these masses."""
        own = self.found
        start = math.floor(float(((epsilon - own.origin) / own.step).mid())) - 1
        start = max(start, own.first)
        total = arb(0)
        for level in range(start, start + _NEAR_POINTS):
            total += self.mass(level) * excess(own.origin + level * own.step, epsilon)
        start += _NEAR_POINTS
        if start < own.first + own.masses.length():
            rest = arb_poly(own.masses.right_shift(start - own.first))
            place = own.origin + start * own.step
            first, second = (rest((-t * own.step).exp()) for t in (self.tilt, 1 + self.tilt))
            front = own.unit * (self.back - self.tilt * place).exp()
            total += front * (first - (epsilon - place).exp() * second)
        return total

    def distance(self, epsilon: arb) -> arb:
        """Bound E V(U) over sums of which an outcome was split, ∞ where the mesh is too wide."""
        own, spread = self.found, self.found.spread
        if spread.is_zero():
            return arb(0)
        reach = _REACH * spread
        if not (spread <= _WIDEST_SPREAD and reach >= 2 * self.tilt * spread**2):
            return arb.pos_inf()
        b = spread / 2
        front = spread * ((1 + b**2).sqrt() + b) / 2 * ((1 + b**2) / 4).exp()
        # Of V(u) e^{−tu} the largest value is for what the coefficients lack, and that beyond the
        # reach for all the rest.
        total = own.lacking * ((self.tilt * spread) ** 2).exp()
        whole = own.unit * arb(own.masses(1)) + own.lacking
        total += whole * (self.tilt * reach - (_REACH / 2) ** 2).exp()
        total *= front * self.tilted(epsilon)
        half = math.ceil(float(((reach + own.slack) / own.step).upper())) + 1
        centre = math.floor(float(((epsilon - own.origin) / own.step).mid()))
        for level in range(centre - half, centre + half + 2):
            mass = self.mass(level) - own.on_mesh.get(level, arb(0))
            away = (abs(own.origin + level * own.step - epsilon) - own.slack).max(arb(0))
            total += mass * front * (-((away / (2 * spread)) ** 2)).exp()
        return arb(total.upper())
