r"""Noise on vectors: its loss at two distances, and K as an integral over them.

Let an output lie at the distance r₁ from where noise of density g(‖·‖)/C is centred without the
record, and at r₂ from where it is centred with it, D apart. At a distance ρ from the line through
both centres dz = S_{d−2} ρ^{d−2} (r₁r₂/(Dρ)) dr₁dr₂, S_k the area of the unit sphere of dimension
k and 4D²ρ² = ((r₁ + r₂)² − D²)(D² − (r₁ − r₂)²). So the law of (r₁, r₂) without the record has

.. math::

   q(r_1, r_2) = \frac{g(r_1)\, r_1 r_2}{N} \bigl(((r_1 + r_2)^2 - D^2)(D^2 - (r_1 - r_2)^2)
       \bigr)^{(d-3)/2}, \qquad |r_1 - r_2| \le D \le r_1 + r_2,

N = 2^{d−3} D^{d−2} √π Γ((d − 1)/2)/Γ(d/2) · ∫ g(r) r^{d−1} dr.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from symdp.derive import series
from symdp.derive.printed import Derivation
from symdp.derive.records import CGF
from symdp.interrupt import Clock
from symdp.model import tidy
from symdp.model.relation import SUBSTITUTION
from symdp.model.sampling import Radial

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

FIRST, SECOND = sp.symbols("r_1 r_2", positive=True)


def distance_loss(source: Radial, r: sp.Symbol) -> sp.Expr:
    """Return ℓ(r₁, r₂) = log g(r₂) − log g(r₁)."""
    logs = [sp.expand_log(sp.log(source.density.xreplace({r: at})), force=True)
            for at in (FIRST, SECOND)]  # fmt: skip
    return tidy.simplify(logs[1] - logs[0])


def derive_vectors(
    mechanism: Mechanism, direction: str = "remove", time_limit: float = 20.0
) -> VectorDerivation:
    """Derive the loss of noise on vectors as a function of two distances, and K as an integral."""
    return VectorDerivation(mechanism, direction, Clock(time_limit))


@dataclass(frozen=True)
class VectorDerivation(Derivation):
    """What `derive` finds of noise on vectors; further parts are computed when they are asked for.

    Attributes
    ----------
    mechanism, direction : what was derived
    clock : the time that is left

    Examples
    --------
    >>> import symdp, sympy
    >>> r = sympy.Symbol("r")
    >>> symdp.derive(symdp.Mechanism.radial((1 + r**2) ** -4, r, dimension=3)).loss
    4*log(r_1**2 + 1) - 4*log(r_2**2 + 1)
    """

    mechanism: Mechanism
    direction: str
    clock: Clock = field(repr=False, compare=False)

    cumulant = series.cumulant
    msd = series.msd
    saddle_terms = series.saddle_terms
    edgeworth = series.edgeworth
    mass_at_infinity = mass_at_minus_infinity = sp.S.Zero
    only_loss = None

    @cached_property
    def source(self) -> Radial:
        """The noise, moved by what a record moves it under the relation."""
        noise = self.mechanism.source
        assert isinstance(noise, Radial)
        return noise.on(noise.sensitivity * (2 if self.mechanism.neighbours == SUBSTITUTION else 1))

    @cached_property
    def loss(self) -> sp.Expr:
        """ℓ(r₁, r₂), of samples at a rate q log(1 − q + q g(r₂)/g(r₁)), and minus that to add."""
        loss = distance_loss(self.source, self.mechanism.variable)
        sampling = self.mechanism.sampling
        if sampling is not None:
            loss = sp.log(1 - sampling.rate + sampling.rate * sp.exp(loss))
        if self.direction == "remove":
            return loss
        return -loss

    @cached_property
    def normaliser(self) -> sp.Expr:
        """N, with an integral over g."""
        (g, d, size) = vars(self.source).values()
        r = self.mechanism.variable
        areas = sp.sqrt(sp.pi) * sp.gamma((d - 1) / 2) / sp.gamma(d / 2)
        mass = sp.Integral(g * r ** (d - 1), (r, 0, sp.oo))
        factor = 2 ** (d - 3) * size ** (d - 2)
        return factor * areas * mass

    @cached_property
    def density(self) -> sp.Expr:
        """N·q(r₁, r₂), of the law without the record."""
        d = self.source.dimension
        size = self.source.sensitivity
        around = ((FIRST + SECOND) ** 2 - size**2) * (size**2 - (FIRST - SECOND) ** 2)
        density = self.source.density.xreplace({self.mechanism.variable: FIRST})
        return density * FIRST * SECOND * around ** ((d - 3) / 2)

    @cached_property
    def cgf(self) -> CGF:
        """K(t), of which no closed form is known but that of `moment`."""
        names = {parameter.name for parameter in self.mechanism.declared}
        tilt = sp.Symbol(
            next(name for name in ("t", "tau", "theta") if name not in names), real=True
        )
        return CGF(tilt, None, "numeric", None, reason="it is an integral over two distances")

    def moment(self, density: sp.Expr, loss: sp.Expr) -> sp.Expr:
        """Return M(t) = E e^{tℓ} as an integral over both distances."""
        power = self.cgf.tilt + (1 if self.direction == "remove" else 0)
        inner = (FIRST, sp.Abs(SECOND - self.source.sensitivity), SECOND + self.source.sensitivity)
        return sp.Integral(density * sp.exp(power * loss), inner, (SECOND, 0, sp.oo))

    @property
    def moment_integral(self) -> sp.Expr:
        """M(t), written out."""
        return self.moment(self.density / self.normaliser, self.loss)
