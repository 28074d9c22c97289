"""`--time-limit`: a question that is given up when its time is up, and what is proved by then."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from symdp.cli import job as words
from symdp.cli.supervise import must_end_in
from symdp.decimal_text import given, rounded, rounded_exponential
from symdp.errors import AccuracyError, InputError, SymdpError
from symdp.interrupt import limit

if TYPE_CHECKING:
    from symdp.questions.guarantee import Guarantee

S = TypeVar("S")
T = TypeVar("T")

_LONGEST = 1e6  # seconds
_FOR_BOUND = 2.0, 5.0  # least and most seconds for the bound, which takes milliseconds as a rule
_DIGITS = 6
_ROUNDING = 1e-12  # of ε by the moments accountant, beyond which its root may not be trusted


def seconds_of(text: str) -> float | None:
    """Return the seconds that `--time-limit` means, None for no limit.

    >>> seconds_of("2.5"), seconds_of("none"), seconds_of("0")
    (2.5, None, None)
    """
    if text == "none":
        return None
    value = words.real(text, "--time-limit")
    if not 0 <= value <= _LONGEST:
        raise InputError(f"--time-limit {text:.40}: it must be from 0 to {_LONGEST:g} seconds")
    return value or None


def in_time(
    text: str,
    build: Callable[[], S],
    ask: Callable[[S], T],
    instead: Callable[[S], Guarantee] | None = None,
) -> T:
    """Return the answer to a question, or raise an error with a bound when its time is up.

    Parameters
    ----------
    text : the value of `--time-limit`
    build : makes what is asked
    ask : the question
    instead : a question of which the answer is a proved bound, and known at once as a rule

    Raises
    ------
    AccuracyError
        When the time is up.
    """
    seconds = seconds_of(text)
    if seconds is None:
        return ask(build())
    built: list[S] = []
    must_end_in(seconds)
    with limit(seconds) as outcome:
        built.append(build())
        found = ask(built[0])
    if not outcome.late:
        must_end_in(math.inf)
        return found
    known = _bound(built[0], instead, seconds) if built and instead is not None else ""
    raise AccuracyError(
        f"no answer within {seconds:g} s{known}: raise --time-limit, or ask a simpler question"
        f"{'' if known else ' or another --method'}"
    )


def _bound(built: S, instead: Callable[[S], Guarantee], seconds: float) -> str:
    """Return in words what is proved, nothing where that takes long or says nothing."""
    answer = None
    least, most = _FOR_BOUND
    with limit(min(max(seconds, least), most)):
        try:
            answer = instead(built)
        except SymdpError:
            return ""
    if answer is None:
        return ""
    if answer.asked == "epsilon":
        upper = (answer.epsilon_upper or answer.epsilon) * (1 + _ROUNDING)
        return f"; proved by then is ε(δ = {given(answer.delta)}) ≤ {rounded(upper, _DIGITS, 'up')}"
    if answer.log_upper is None or not -math.inf < answer.log_upper < 0:
        return ""
    shown = rounded_exponential(answer.log_upper, _DIGITS, "up")
    return f"; proved by then is δ({given(answer.epsilon)}) ≤ {shown}"
