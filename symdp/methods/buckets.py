"""Privacy Buckets: losses rounded up and down to a mesh, no error taken back: a baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from symdp.errors import AccuracyError
from symdp.method_options import POINTS
from symdp.methods.moments import Moments, proved_instead
from symdp.methods.prv import largest_loss, mesh_of
from symdp.numeric.answer import Answer, FloatAccountant

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

_POINTS = 1 << 20
_MISSED = -30.0  # log of the probability beyond the ends of the grid


@dataclass(frozen=True)
class Buckets(FloatAccountant):
    """δ of the losses rounded down ≤ δ ≤ δ of the losses rounded up, in buckets of one width h.

    n steps move by up to nh, where `prv`, which keeps the mean of each step, moves by about h√n.
    Its authors (Meiser and Mohammadi, CCS 2018) take a part of the rounding back by counting
    virtual errors; this is the plain form, which Google's library has too.

    Parameters
    ----------
    points
        The number of points of the grid; None takes 2^20.

    Raises
    ------
    InputError
        If the number of points is out of range.

    Examples
    --------
    >>> Buckets(points=65536).name
    'buckets'
    """

    points: int | None = None
    name: str = "buckets"
    citations: tuple[str, ...] = ("Meiser2018", "PRV")

    def __post_init__(self) -> None:
        """Check the number of points."""
        if self.points is not None:
            POINTS.read(self.name, self.points)

    @property
    def least_log_delta(self) -> float:
        """The log of what the ends of the grid may miss."""
        return _MISSED

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the interval at one ε, of kind "bound"; the value is its upper end."""
        top = largest_loss(law, epsilon)
        try:
            mesh = mesh_of(law, 0.0, _MISSED, top, points=self.points or _POINTS, distance=0.0)
        except AccuracyError as refused:
            return proved_instead(law, epsilon, str(refused))
        down = mesh.rounded_down
        # the ends of the sum, as a third of the probability that this mesh may miss
        error = math.exp(_MISSED) + mesh.total.floor
        kept = math.exp(mesh.log_kept)
        above = mesh.total.payoff(epsilon, 0.0, -down - mesh.all_up)
        below = mesh.total.payoff(epsilon, 0.0, -down)
        upper = kept * (max(above, 0.0) + error) + mesh.above + mesh.below
        lower = kept * max(below - error, 0.0)
        lower += mesh.jump(epsilon)
        escaped, mass = law.mass_at_infinity, math.exp(law.log_finite_mass)
        ends = (escaped + mass * end for end in (lower, upper))
        low, high = (math.log(end) if end > 0 else -math.inf for end in ends)
        most = Moments().log_delta(law, epsilon).log_delta
        high = min(high + 1e-12, most, 0.0)
        return Answer(high, min(low - 1e-12, high), high, "bound")
