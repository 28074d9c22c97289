"""A bound of the work that one enclosure may cost, so that no question hangs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from symdp.errors import AccuracyError

COARSE_BITS = 64  # of what only bounds
UNITS = 200_000.0  # a unit is about one value of a log-density in balls: ten seconds in all
_PER_DIGIT = 4_000.0  # units: more digits take more nodes
_PRODUCTS = 300.0  # products of balls that cost as much

_left: ContextVar[list[float] | None] = ContextVar("left", default=None)


class OutOfWorkError(Exception):
    """The work that a question may cost is done: no bound inside is given up and worked around."""


@contextmanager
def limited(digits: int, share: float = 1.0) -> Iterator[None]:
    """Limit the work inside to what so many digits should cost at most, or a share of it."""
    token = _left.set([share * (UNITS + _PER_DIGIT * digits)])
    try:
        yield
    except OutOfWorkError:
        reason = "the proof takes too much work; ask for fewer digits or more steps"
        raise AccuracyError(reason) from None
    finally:
        _left.reset(token)


def spend(units: float) -> None:
    """Take units off what is left; without a limit, do nothing."""
    left = _left.get()
    if left is not None:
        left[0] -= units
        if left[0] < 0:
            raise OutOfWorkError


def spend_products(count: float) -> None:
    """Take so many products of balls off what is left."""
    spend(count / _PRODUCTS)


def spare_products(count: float) -> None:
    """Stop at once where so many products of balls, which come next, are more than is left."""
    spend_products(count)
    spend_products(-count)
