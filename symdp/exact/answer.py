"""What an accountant answers, and what it must offer to be one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from symdp.law.tilts import log_one_minus_exp

if TYPE_CHECKING:
    from symdp.law.total import SumLaw

Kind = Literal["exact", "bound", "estimate"]
OUTSIDE = "outside_range"  # the row that answers beyond all finite losses, for every method


@dataclass(frozen=True, slots=True)
class Answer:
    """δ at one ε in one direction, on the logarithmic scale.

    `log_delta` is log δ (−inf where δ = 0); `log_lower` and `log_upper` are the method's own
    bounds on it, None where it has none; `advice` says what to do where the method left its regime.
    `log_complement` is log(1 − δ) where the method computes it without cancellation, with the
    relative error `complement_error`, and `slope` is d log δ / dε where the method knows it.
    `route` names the row of `symdp.exact.route` that gave it, empty for a method asked for by name.
    """

    log_delta: float
    log_lower: float | None
    log_upper: float | None
    kind: Kind
    advice: str = ""
    log_complement: float | None = None
    slope: float | None = None
    route: str = ""
    complement_error: float = 0.0

    @property
    def complement_bounds(self) -> tuple[float, float]:
        """The logarithms of the ends between which 1 − δ lies.

        Where no integral of its own gives 1 − δ, its ends are those of δ.

        Examples
        --------
        >>> Answer(math.log(0.5), math.log(0.25), 0.0, "estimate").complement_bounds
        (-inf, -0.2876820724517809)
        """
        if self.log_complement is None:
            low = -math.inf if self.log_upper is None else log_one_minus_exp(self.log_upper)
            return low, 0.0 if self.log_lower is None else log_one_minus_exp(self.log_lower)
        error = self.complement_error
        low = self.log_complement + math.log1p(-error) if error < 1.0 else -math.inf
        return low, min(self.log_complement + math.log1p(error), 0.0)


class Accountant(Protocol):
    """A rule that turns the law of a composition's privacy loss into δ(ε)."""

    @property
    def name(self) -> str:
        """The name people ask for it by."""
        ...

    @property
    def citations(self) -> tuple[str, ...]:
        """What the method rests on."""
        ...

    @property
    def is_exact(self) -> bool:
        """Whether it gives the profile itself, no bound or estimate of it."""
        ...

    @property
    def least_log_delta(self) -> float:
        """The log of the smallest δ that it can give, −∞ where there is none."""
        ...

    def log_delta(self, law: SumLaw, epsilon: float) -> Answer:
        """Return log δ(ε) in the direction of the law."""
        ...

    def log_deltas(self, law: SumLaw, epsilons: Sequence[float]) -> list[Answer]:
        """Return log δ at several ε in the direction of the law."""
        ...
