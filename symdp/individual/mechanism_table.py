"""CGF tables of steps that are given by their mechanisms: any density that a user writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError, InputError
from symdp.individual.subsampled_gaussian import Array, Complex

if TYPE_CHECKING:
    from symdp.law.total import SumLaw
    from symdp.model.mechanism import Mechanism


class MechanismTable:
    """CGFs K_b(z) of single steps, one for each mechanism, from the law of its privacy loss.

    Parameters
    ----------
    mechanisms
        One for each kind of step; None for a step without loss.
    direction
        "remove" or "add".

    Raises
    ------
    InputError
        If a mechanism's loss can be infinite: no contour line serves it.

    Examples
    --------
    >>> import symdp
    >>> table = MechanismTable([symdp.mechanisms.logistic(s=2), None], "add")
    >>> table.transform(np.array([1.0])).round(12).tolist()
    [[0.081657381974, 0.0]]
    """

    error = 2e-16  # of a step's K, absolute: the quadrature's

    def __init__(self, mechanisms: Sequence[Mechanism | None], direction: str) -> None:
        from symdp.questions.composition import compose

        self.laws: list[SumLaw | None] = []
        for mechanism in mechanisms:
            law = None if mechanism is None else compose(mechanism, 1).law(direction)
            if law is not None and law.mass_at_infinity > 0:
                raise InputError(
                    f"{law.parts[0][0].step.name}: its loss is infinite with positive probability; "
                    "account for its records one by one with symdp.compose"
                )
            self.laws.append(law)

    @property
    def count(self) -> int:
        """The number of kinds of steps."""
        return len(self.laws)

    @property
    def end(self) -> float:
        """The tilt at which the first of the CGFs ends."""
        return min((law.domain[1] for law in self.laws if law is not None), default=math.inf)

    def spread(self) -> Array:
        """Return K(1), which for small losses is the variance of P/Q."""
        tilt = min(1.0, 0.5 * self.end)
        values = self.transform(np.asarray([tilt]))[0] * 2.0 / (tilt * (1.0 + tilt))
        return np.asarray(np.expm1(np.minimum(values, 700.0)))

    def transform(self, tilts: Array) -> Array:
        """Return K_b(t), shape (tilts, kinds); inf where no loss is seen so far out."""
        result = np.zeros((tilts.size, self.count))
        for b, law in enumerate(self.laws):
            if law is None:
                continue
            for g, tilt in enumerate(tilts):
                try:
                    result[g, b] = law.cgf(float(tilt))
                except AccuracyError:
                    result[g:, b] = math.inf
                    break
        return result

    def line(self, tilt: float, step: float, nodes: int, used: NDArray[np.bool_]) -> Complex:
        """Return K_b(t + ihk), shape (kinds, nodes); 0 for kinds that are not used."""
        result = np.zeros((self.count, nodes), dtype=np.complex128)
        places = np.arange(nodes, dtype=np.float64) * step
        for b in np.flatnonzero(used):
            law = self.laws[b]
            if law is not None:
                along = cast("Complex", law.cgf_line(tilt, places))
                result[b] = law.cgf(tilt) + along
        return result
