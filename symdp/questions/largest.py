"""The largest of several answers, and what kind of number it is: directions, parts of the data.

A chain is as strong as its weakest link: the largest of a bound and of an estimate is an estimate,
as the larger one may be the one that was estimated. Only what is proved to lie below another one,
end to end, has no part in the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symdp.numeric.answer import Answer, Kind
    from symdp.questions.guarantee import Guarantee

KINDS: tuple[Kind, ...] = ("exact", "bound", "estimate")  # from the strongest to the weakest
_ROUNDED = 1e-12  # of the first value, or of one: by less, another one is not called larger


@dataclass(frozen=True)
class Link:
    """One of several answers to a question: log δ or ε, its ends, and what it is."""

    value: float
    lower: float | None
    upper: float | None
    kind: Kind
    advice: str = ""

    @classmethod
    def of_delta(cls, answer: Answer | Guarantee) -> Link:
        """Return what is said of log δ."""
        ends = answer.log_lower, answer.log_upper
        return cls(answer.log_delta, *ends, answer.kind, answer.advice)

    @classmethod
    def of_epsilon(cls, answer: Guarantee) -> Link:
        """Return what is said of ε."""
        ends = answer.epsilon_lower, answer.epsilon_upper
        return cls(answer.epsilon, *ends, answer.kind, answer.advice)


def weakest(kinds: Iterable[Kind]) -> Kind:
    """Return the kind of what rests on numbers of several kinds.

    >>> weakest(["exact", "estimate", "bound"])
    'estimate'
    """
    return max(kinds, key=KINDS.index)


def largest(links: Mapping[str, Link]) -> tuple[str, Link]:
    """Return the name of the largest answer, the first one where rounding decides, and the largest.

    Above the largest value lies the largest upper end, if all have one; below it, every lower end.
    What is proved to be less than another one does not weaken the kind.

    Examples
    --------
    >>> bound, guess = Link(-80.0, None, -80.0, "bound"), Link(-106.0, None, None, "estimate")
    >>> name, both = largest({"remove": bound, "add": guess})
    >>> name, both.kind, both.upper
    ('remove', 'estimate', None)
    >>> largest({"remove": bound, "add": Link(-70.0, -71.0, -69.0, "exact")})[1].kind
    'exact'
    """
    name = clearly_larger({name: link.value for name, link in links.items()})
    counted = _that_count(links)
    kind = weakest(link.kind for link in counted.values())
    lowers = [link.lower for link in links.values() if link.lower is not None]
    uppers = [link.upper for link in links.values() if link.upper is not None]
    upper = max(uppers) if len(uppers) == len(links) else None
    value = upper if kind == "bound" and upper is not None else links[name].value
    lower = min(max(lowers), value) if lowers else None
    return name, Link(value, lower, upper, kind, _advice(name, counted))


def _that_count(links: Mapping[str, Link]) -> dict[str, Link]:
    """Return the answers of which none is proved to be less than another one."""
    proved = [link for link in links.values() if link.kind != "estimate"]
    least = max((x.lower for x in proved if x.lower is not None), default=-math.inf)
    return {
        name: link
        for name, link in links.items()
        if link.kind == "estimate" or link.upper is None or link.upper >= least
    }


def clearly_larger(values: Mapping[str, float]) -> str:
    """Return the name of the largest value; the first one where they differ by rounding only.

    Symmetric noise gives the same in both directions, and the last bit must not decide which.
    """
    first = next(iter(values))
    name = max(values, key=values.__getitem__)
    if not math.isfinite(values[first]):
        return name
    close = values[name] - values[first] <= _ROUNDED * max(1.0, abs(values[first]))
    return first if close else name


def _advice(name: str, counted: Mapping[str, Link]) -> str:
    """Return the advice of the largest answer, or of all by name where their kinds differ."""
    if name in counted and len({link.kind for link in counted.values()}) == 1:
        return counted[name].advice
    told = ((one, link.advice) for one, link in counted.items() if link.advice)
    return "; ".join(f"{one}: {advice}" for one, advice in told)
