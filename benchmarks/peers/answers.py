"""What a program answered: a number with its ends, what kind of claim it is, and what it said."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

Kind = Literal["exact", "upper", "lower", "estimate"]
Question = Literal["delta", "epsilon", "curve"]


class NotCoveredError(Exception):
    """The program has nothing for this mechanism; the text says what it would want."""


@dataclass(frozen=True)
class Answer:
    """A number, and the program's own bounds around it.

    Attributes
    ----------
    value
        δ, or ε where ε was asked for; of a curve the δ at its checked places.
    kind
        What the program claims about `value`: exact, an upper or a lower bound, or an estimate.
    lower, upper
        The program's interval, None where it has none.
    note
        Empty, or what the program said against its own number.
    """

    value: float | tuple[float, ...]
    kind: Kind
    lower: float | Fraction | None = None
    upper: float | Fraction | None = None
    note: str = ""


@dataclass(frozen=True)
class Contender:
    """A program with its setting.

    Attributes
    ----------
    program
        A key of `programs.PROGRAMS`.
    setting
        What the program is made with.
    label
        How people would call it.
    ladder
        Contenders of one ladder are listed from coarse to fine: where one takes too long, the
        finer ones are left out.
    """

    program: str
    setting: tuple[object, ...]
    label: str
    ladder: str


@dataclass
class Outcome:
    """What came of asking a contender: an answer or a failure, its times and its memory.

    Attributes
    ----------
    answer, failure
        One of them: a number, or words for why there is none.
    out_of_reach
        The failure is one of time or memory, which finer settings would share.
    seconds
        Situation -> median seconds of one call.
    megabytes
        What the first call added to the memory of the process at most, None if not known.
    """

    answer: Answer | None = None
    failure: str = ""
    out_of_reach: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    megabytes: float | None = None
