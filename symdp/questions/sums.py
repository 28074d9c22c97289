"""Sums and multiples of what consists of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from symdp.arguments import checked_count

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism


class Summed:
    """What consists of steps, can be added to its like and taken several times.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> noise, sample = mechanisms.gaussian(sigma=4), mechanisms.laplace(b=8)
    >>> both = compose(noise, 3) + 10 * compose(sample, 2)
    >>> both.count, both.steps == compose([(noise, 3), (sample, 20)]).steps
    (23, True)
    """

    steps: tuple[tuple[Mechanism, int], ...]

    def __add__(self, other: object) -> Self:
        """Return all steps of both; InputError where they protect different neighbours."""
        if not isinstance(other, Summed):
            return NotImplemented
        return self._of([*self.steps, *other.steps])

    def __mul__(self, times: object) -> Self:
        """Return every step so many times; InputError for what is no positive whole number."""
        many = checked_count(times)
        return self._of([(mechanism, many * count) for mechanism, count in self.steps])

    __rmul__ = __mul__

    def _of(self, steps: list[tuple[Mechanism, int]]) -> Self:
        return type(self)(steps)  # type: ignore[call-arg]
