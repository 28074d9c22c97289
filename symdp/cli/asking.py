"""How a question is asked and its answer printed: options of most commands, and their time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from symdp.cli import job as words
from symdp.cli.display import print_json, show
from symdp.cli.supervise import grace, must_end_in
from symdp.cli.working import working
from symdp.errors import AccuracyError, InputError, SymdpError
from symdp.interrupt import limit
from symdp.tolerances import SUMS_ROUNDED

if TYPE_CHECKING:
    from symdp.arguments import Direction, MethodName
    from symdp.page.document import Block
    from symdp.questions.guarantee import Guarantee

LONGEST = 1e6  # seconds
_FOR_BOUND = 0.75  # of the time after the limit; the bound takes milliseconds as a rule
_DIGITS = 6

S = TypeVar("S")
T = TypeVar("T")


@dataclass
class SoFar:
    """What is known of an answer that comes in parts: what tells it, marked, and what it lacks."""

    tell: Callable[[str], None] = lambda _: None
    lacks: str = ""


class _Told(Protocol):
    """What JSON can tell."""

    def to_json(self) -> dict[str, Any]: ...


A = TypeVar("A", bound=_Told)


@dataclass(frozen=True)
class How:
    """By which method, in which direction, in what time, and printed for whom."""

    method: str = "contour"
    direction: str = "both"
    time_limit: str = "60"
    as_json: bool = False

    def __post_init__(self) -> None:
        """What is wrong is known before work begins."""
        words.direction(self.direction)
        seconds_of(self.time_limit)

    @property
    def side(self) -> Direction:
        """The direction."""
        return words.direction(self.direction)

    @property
    def name(self) -> MethodName:
        """The method by its full name."""
        return words.method(self.method)

    def ask(
        self,
        what: str,
        build: Callable[[], S],
        ask: Callable[[S], T],
        instead: Callable[[S], Guarantee] | None = None,
        known: SoFar | None = None,
    ) -> T:
        """Return the answer to a question, saying meanwhile what is asked; see `in_time`."""
        return in_time(self.time_limit, build, ask, instead, known, what)

    def tell(self, answer: A, shown: Callable[[A], Iterable[Block]]) -> None:
        """Print an answer, as JSON or as blocks."""
        if self.as_json:
            print_json(answer.to_json())
        else:
            show(*shown(answer))


def seconds_of(text: str) -> float | None:
    """Return the seconds that `--time-limit` means, None for no limit."""
    if text == "none":
        return None
    value = words.real(text, "--time-limit")
    if not 0 <= value <= LONGEST:
        raise InputError(f"--time-limit {text:.40}: it must be from 0 to {LONGEST:g} seconds")
    return value or None


def in_time(
    text: str,
    build: Callable[[], S],
    ask: Callable[[S], T],
    instead: Callable[[S], Guarantee] | None = None,
    known: SoFar | None = None,
    what: str = "",
) -> T:
    """Return the answer to a question, or raise an error when its time is up.

    What is known by then of an answer in parts is told, marked as incomplete; else the error holds
    a bound, where `instead` gives one soon.
    """
    seconds = seconds_of(text)
    shown = working(what) if what else nullcontext()
    if seconds is None:
        with shown:
            return ask(build())
    built: list[S] = []
    must_end_in(seconds)
    with limit(seconds, of_work=True) as outcome, shown:
        built.append(build())
        answer = ask(built[0])
    if not outcome.late:
        must_end_in(math.inf)
        return answer
    if known is not None and known.lacks:
        mark = f"incomplete after {seconds:g} s: {known.lacks}"
        known.tell(mark)
        raise AccuracyError(f"{mark}; raise --time-limit")
    bound = ""
    if built and instead is not None:
        bound = _bound_in_words(built[0], instead, seconds)
    advice = "raise --time-limit, or ask a simpler question"
    if not bound:
        advice += " or another --method"
    raise AccuracyError(f"no answer within {seconds:g} s{bound}: {advice}")


def _bound_in_words(built: S, instead: Callable[[S], Guarantee], seconds: float) -> str:
    """Return in words what is proved, nothing where that takes long or says nothing."""
    from symdp.decimal_text import given, rounded, rounded_exponential

    answer = None
    with limit(_FOR_BOUND * grace(seconds), of_work=True):
        try:
            answer = instead(built)
        except SymdpError:
            return ""
    if answer is None:
        return ""
    if answer.quantity == "epsilon":
        upper = (answer.epsilon_upper or answer.epsilon) * (1 + SUMS_ROUNDED)
        return f"; proved by then is ε(δ = {given(answer.delta)}) ≤ {rounded(upper, _DIGITS, 'up')}"
    if answer.log_upper is None or not -math.inf < answer.log_upper < 0:
        return ""
    shown = rounded_exponential(answer.log_upper, _DIGITS, "up")
    return f"; proved by then is δ({given(answer.epsilon)}) ≤ {shown}"
