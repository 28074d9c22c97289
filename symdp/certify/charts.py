"""Distances s ≥ 0 from a place of a piece, in which loss and tilted density may be holomorphic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import sympy as sp
from flint import acb, arb, arb_series

from symdp.certify.work import spend
from symdp.emit.arb import constant_ball
from symdp.truth.jets import at_length

if TYPE_CHECKING:
    from symdp.certify.changes import Change
    from symdp.certify.moments import Stretch
    from symdp.truth.variation import LossPart


class Chart(Protocol):
    """Loss and tilted density as functions of a distance s ≥ 0 from an end."""

    power: int  # κ, where ℓ − ℓ₀ is like s^κ
    room: arb  # how far inwards it serves
    level: arb  # ℓ₀
    value: sp.Expr | arb  # ℓ₀, exact where a formula gives it

    def loss(self, s: Any, *, analytic: bool = False) -> Any:
        """Return ℓ."""

    def slope(self, s: acb) -> arb:
        """Bound |dℓ/ds|."""

    def density(self, s: Any, *, analytic: bool = False) -> Any:
        """Return the tilted density of s."""

    def series(self, count: int) -> tuple[list[arb], list[arb]]:
        """Return so many coefficients of ℓ and of the density at s = 0."""

    def place(self, s: float) -> arb:
        """Return about the place of a distance, exact."""

    def lift(self, place: arb) -> arb:
        """Enclose |ℓ − ℓ₀| at a place."""


class PlaceChart:
    """The distance from a place at which the density is finite.

    Parameters
    ----------
    stretch : Stretch
    part : LossPart
        The same piece, tilted.
    tilt : arb
    end : arb
        The place, where the loss turns exactly if κ > 1.
    inwards : int
        1 where the distance grows to the right, −1 to the left.
    power : int
        κ.
    value : sympy.Expr or arb
        The loss there.
    room : arb
    """

    def __init__(
        self,
        stretch: Stretch,
        part: LossPart,
        tilt: arb,
        end: arb,
        inwards: int,
        power: int,
        value: sp.Expr | arb,
        room: arb,
    ) -> None:
        self._stretch, self._part, self._tilt = stretch, part, tilt
        self._end, self._inwards = end, inwards
        self.level, self.value = part.loss(end, 1)[0], value
        self.power, self.room = power, room

    def loss(self, s: Any, *, analytic: bool = False) -> Any:
        """Return ℓ."""
        return self._stretch.loss(self._end + self._inwards * s, analytic=analytic)

    def slope(self, s: acb) -> arb:
        """Bound |dℓ/ds|."""
        spend(1.0)
        return arb(self._stretch.log_slope(self._end + self._inwards * s).real.exp().upper())

    def density(self, s: Any, *, analytic: bool = False) -> Any:
        """Return the tilted density."""
        place = self._end + self._inwards * s
        if analytic and not self._stretch.base(place, analytic=True).is_finite():
            return place * arb.nan()
        return (self._stretch.exponent(place, self._tilt) - self._part.log_moment).exp()

    def series(self, count: int) -> tuple[list[arb], list[arb]]:
        """Return the coefficients at the end, those of s up to s^{κ−1} in ℓ exactly 0."""
        loss = [c * self._inwards**k for k, c in enumerate(self._part.loss(self._end, count))]
        loss[1 : self.power] = [arb(0)] * (self.power - 1)
        exponent = self._part.exponent(self._end, count)
        with at_length(count):
            turned = arb_series([c * self._inwards**k for k, c in enumerate(exponent)], count)
            height = (turned - self._part.log_moment).exp()
            return loss, [height[k] for k in range(count)]

    def place(self, s: float) -> arb:
        """Return about the place of a distance, exact."""
        return (self._end + self._inwards * arb(s)).mid()

    def lift(self, place: arb) -> arb:
        """Enclose |ℓ − ℓ₀| at a place."""
        return arb(abs(self._stretch.loss(place) - self.level))


class SubstitutedChart:
    """A chart by a change of the variable, for ends that are infinite or not regular."""

    def __init__(self, change: Change, stretch: Stretch, part: LossPart, tilt: arb) -> None:
        self._change, self._stretch, self._log_moment, self._tilt = (
            change,
            stretch,
            part.log_moment,
            tilt,
        )
        self.power, self.room, self.value = change.power, change.room, change.value
        self.level = constant_ball(change.value, 256).real

    def loss(self, s: Any, *, analytic: bool = False) -> Any:
        """Return ℓ."""
        return self._change.loss(s, analytic=analytic)

    def slope(self, s: acb) -> arb:
        """Bound |dℓ/ds|."""
        spend(1.0)
        return arb(abs(self._change.slope(s)).upper())

    def density(self, s: Any, *, analytic: bool = False) -> Any:
        """Return the tilted density of s."""
        spend(1.0)
        tilted = (self._tilt * self._change.loss(s) - self._log_moment).exp()
        return self._change.density(s, analytic=analytic) * tilted

    def series(self, count: int) -> tuple[list[arb], list[arb]]:
        """Return the coefficients at s = 0."""
        loss, density = (jet(arb(0), count) for jet in self._change.jets)
        loss[1 : self.power] = [arb(0)] * (self.power - 1)
        with at_length(count):
            tilted = self._tilt * arb_series(loss, count) - self._log_moment
            height = arb_series(density, count) * tilted.exp()
            return loss, [height[k] for k in range(count)]

    def place(self, s: float) -> arb:
        """Return about the place of a distance, exact."""
        return arb(self._change.place(arb(s))).mid()

    def lift(self, place: arb) -> arb:
        """Enclose |ℓ − ℓ₀| at a place."""
        return arb(abs(self._stretch.loss(place) - self.level))
