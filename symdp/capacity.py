"""What memory and doubles can carry: memory is asked for before it is allocated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from symdp.errors import AccuracyError

MOST_BYTES = 2_000_000_000
DOUBLE = 8  # bytes
BLOCK = 1 << 21  # numbers of one array where long work is done block by block


def afford(numbers: float, what: str, remedy: str) -> None:
    """Refuse work that would hold so many numbers at once in more than 2 GB."""
    size = DOUBLE * numbers
    if size > MOST_BYTES:
        raise AccuracyError(
            f"{what} would take about {size / 1e9:.2g} GB of memory, and at most "
            f"{MOST_BYTES / 1e9:g} GB are taken; {remedy}"
        )


@contextmanager
def within_capacity(what: str) -> Iterator[None]:
    """Turn numbers beyond the double range, and memory that is not there, into one sentence."""
    try:
        yield
    except MemoryError:
        raise AccuracyError(
            f"{what}: this takes more memory than there is; use the method moments, or less "
            "extreme values"
        ) from None
    except RecursionError:
        raise AccuracyError(
            f"{what}: an expression on the way is nested too deeply to be handled; write the "
            "density more simply, or with less extreme numbers"
        ) from None
    except AccuracyError:
        raise
    except ArithmeticError:  # overflow, division by what has underflowed, digits beyond all use
        raise AccuracyError(
            f"{what}: a number on the way is beyond the range of doubles, as where noise is far "
            "smaller or larger than the sensitivity, or steps are very many; use the method "
            "moments, or less extreme values"
        ) from None
