"""Accountants that are families, one for each order of a series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from symdp.errors import InputError
from symdp.numeric.answer import FloatAccountant

HIGHEST_ORDER = 12  # of every series


@dataclass(frozen=True)
class SeriesAccountant(FloatAccountant):
    """A family of accountants, one for each order of a series.

    Parameters
    ----------
    order
        k, from 0 to 12.

    Raises
    ------
    InputError
        If the order is not an integer from 0 to 12.
    """

    family: ClassVar[str]
    order: int = 2

    def __post_init__(self) -> None:
        if type(self.order) is not int or not 0 <= self.order <= HIGHEST_ORDER:
            raise InputError(
                f"order {self.order!r} of {self.family}: an integer from 0 to {HIGHEST_ORDER} "
                "is needed"
            )

    @property
    def name(self) -> str:
        """The family, a colon and the order."""
        return f"{self.family}:{self.order}"
