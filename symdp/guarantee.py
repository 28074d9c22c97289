"""What an accountant's answer becomes for people: numbers, what they are, and their sources."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from symdp.relation import Protection

_SMALLEST_LOG = math.log(2.3e-308)  # below this, doubles lose digits


def decimal_exponential(log_value: float) -> float | str:
    """Return e^x as a double, or as a decimal string where it lies below the double range.

    Examples
    --------
    >>> decimal_exponential(-1.0), decimal_exponential(-1000.0)
    (0.36787944117144233, '5.075958897549e-435')
    """
    if log_value == -math.inf or log_value > _SMALLEST_LOG:
        return math.exp(log_value)
    import mpmath

    with mpmath.workdps(30):
        # log δ is good to 16 digits altogether, of which its integer part takes some.
        digits = max(3, 17 - len(str(int(-log_value))))
        return str(mpmath.nstr(mpmath.exp(mpmath.mpf(log_value)), digits))


def outward_exponential(log_value: float, end: float) -> float:
    """Return e^x as a double that is rounded towards an end, 0 or 1, where doubles lose digits.

    Examples
    --------
    >>> outward_exponential(-1000.0, 1.0), outward_exponential(-1000.0, 0.0)
    (5e-324, 0.0)
    """
    nearest = math.exp(log_value)
    if log_value == -math.inf or log_value > _SMALLEST_LOG:
        return nearest
    return math.nextafter(nearest, end)


@dataclass(frozen=True)
class Guarantee:
    """An (ε, δ) of a composition: one of them was asked for, the other given.

    Attributes
    ----------
    epsilon, log_delta
        ε in nats, and the natural logarithm of δ, which has no smallest value.
    log_lower, log_upper
        The method's bounds on log δ where δ was asked for; None where it has none.
    epsilon_lower, epsilon_upper
        The same on ε where ε was asked for.
    given_delta
        The δ that an ε was asked for, as it was given.
    protection
        The neighbouring relation and the sampling: whose privacy this is.
    asked
        "delta" or "epsilon".
    kind
        "exact": the exact formula in floating point, its error estimate in the bounds; "bound":
        proved to be no better than the truth; "estimate": neither.
    method, direction, count, seconds, citations
        The accountant, the direction of the larger δ, the number of steps, the time taken, and
        the sources.
    advice
        Empty, or what is wrong with this number and what to use instead.
    """

    epsilon: float
    log_delta: float
    kind: Literal["exact", "bound", "estimate"]
    method: str
    direction: str
    count: int
    asked: Literal["delta", "epsilon"] = "delta"
    log_lower: float | None = None
    log_upper: float | None = None
    epsilon_lower: float | None = None
    epsilon_upper: float | None = None
    advice: str = ""
    seconds: float = 0.0
    citations: tuple[str, ...] = ()
    given_delta: float | None = None
    protection: Protection | None = None

    @property
    def delta(self) -> float:
        """δ as a double, where `log_delta` has it below the double range too.

        Down there it is 0.0; a proved bound, which must not be too small, is rounded up.
        """
        if self.given_delta is not None:
            return self.given_delta
        if self.kind == "bound":
            return outward_exponential(self.log_delta, 1.0)
        return math.exp(self.log_delta)

    @property
    def lower(self) -> float | None:
        """The lower bound on what was asked for."""
        if self.asked == "epsilon":
            return self.epsilon_lower
        return None if self.log_lower is None else outward_exponential(self.log_lower, 0.0)

    @property
    def upper(self) -> float | None:
        """The upper bound on what was asked for."""
        if self.asked == "epsilon":
            return self.epsilon_upper
        return None if self.log_upper is None else outward_exponential(self.log_upper, 1.0)

    @property
    def value(self) -> float:
        """What was asked for: δ, or ε."""
        return self.epsilon if self.asked == "epsilon" else self.delta

    def __float__(self) -> float:
        return self.value

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values; what lies below the double range is a decimal string.

        Examples
        --------
        >>> Guarantee(1.0, -1000.0, "exact", "contour", "add", 3).to_json()["delta"]
        '5.075958897549e-435'
        """
        lower: Any
        upper: Any
        if self.asked == "epsilon":
            lower, upper = self.epsilon_lower, self.epsilon_upper
        else:
            lower, upper = (
                None if bound is None else decimal_exponential(bound)
                for bound in (self.log_lower, self.log_upper)
            )
        answer = {
            "epsilon": self.epsilon,
            "delta": self._decimal_delta(),
            "lower": lower,
            "upper": upper,
            "kind": self.kind,
            "method": self.method,
            "direction": self.direction,
            "count": self.count,
            "seconds": round(self.seconds, 6),
        }
        if self.protection is not None:
            answer |= self.protection.to_json()
        return answer | ({"advice": self.advice} if self.advice else {})

    def citation(self) -> str:
        """Return BibTeX entries of exactly what this answer rests on.

        Examples
        --------
        >>> answer = Guarantee(1.0, -9.0, "estimate", "msd:1", "add", 3, citations=("SPA (61)",))
        >>> answer.citation().splitlines()[0]
        '@misc{alghamdi2022saddlepoint,'
        """
        from symdp.citation import bibtex

        return bibtex(self.citations)

    def _decimal_delta(self) -> float | str:
        if self.given_delta is not None:
            return self.given_delta
        return decimal_exponential(self.log_delta)

    def __str__(self) -> str:
        delta = self._decimal_delta()
        shown = delta if isinstance(delta, str) else f"{delta:.12g}"
        note = f" [{self.advice}]" if self.advice else ""
        return (
            f"(ε, δ) = ({self.epsilon:.12g}, {shown}), {self.kind} by {self.method}, "
            f"{self.direction} direction, {self.count} steps{note}"
        )


class Curve(Sequence[Guarantee]):
    """Guarantees for an array of ε or δ; its attributes are arrays of the same length."""

    def __init__(self, guarantees: Sequence[Guarantee]) -> None:
        self._guarantees = tuple(guarantees)

    def _array(self, name: str) -> NDArray[np.float64]:
        import numpy as np

        values = [getattr(g, name) for g in self._guarantees]
        return np.asarray([math.nan if v is None else v for v in values])

    @property
    def epsilon(self) -> NDArray[np.float64]:
        """Every ε."""
        return self._array("epsilon")

    @property
    def delta(self) -> NDArray[np.float64]:
        """Every δ."""
        return self._array("delta")

    @property
    def log_delta(self) -> NDArray[np.float64]:
        """Every log δ."""
        return self._array("log_delta")

    @property
    def lower(self) -> NDArray[np.float64] | None:
        """Every lower bound, or None if the method has none."""
        return None if any(g.lower is None for g in self) else self._array("lower")

    @property
    def upper(self) -> NDArray[np.float64] | None:
        """Every upper bound, or None if the method has none."""
        return None if any(g.upper is None for g in self) else self._array("upper")

    @overload
    def __getitem__(self, index: int) -> Guarantee: ...
    @overload
    def __getitem__(self, index: slice) -> Curve: ...
    def __getitem__(self, index: int | slice) -> Guarantee | Curve:
        if isinstance(index, slice):
            return Curve(self._guarantees[index])
        return self._guarantees[index]

    def __len__(self) -> int:
        return len(self._guarantees)

    def __iter__(self) -> Iterator[Guarantee]:
        return iter(self._guarantees)

    def to_json(self) -> dict[str, Any]:
        """Return the points as JSON values."""
        return {"points": [g.to_json() for g in self]}
