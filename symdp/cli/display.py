"""What commands print for people, and the one JSON object that they print for programs."""

from __future__ import annotations

import json
import math
import os
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

from symdp.decimal_text import rounded

if TYPE_CHECKING:
    from rich.console import Console

    from symdp.questions.guarantee import Guarantee

_STYLES = {"bold": 1, "dim": 2, "yellow": 33}  # as terminals number them
_WIDE = 200  # columns of a table that no terminal wraps
_EXACTLY = {
    "truth": "quadrature at arbitrary precision, done in two ways",
    "certified": "proved, every rounding included",
}
_HAIR = 1e-6  # bounds that are closer than this, relatively, are shown as an error


def one_line(text: str) -> str:
    """Return text without line breaks and control characters, so that no terminal obeys it.

    >>> one_line("two\\nlines\\x1b[31m")
    'two lines[31m'
    """
    joined = " ".join(text.split())
    return "".join(c for c in joined if unicodedata.category(c)[0] != "C")


def console() -> Console:
    """Return a console for standard output: colours on a terminal, plain wide text in a pipe."""
    from rich.console import Console

    class Pipe(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # Rich would end the process with code 1

    wide = None if sys.stdout.isatty() else _WIDE
    return Pipe(width=wide, highlight=False, markup=False, emoji=False)


def styled(text: str, style: str) -> str:
    """Return text in a style on a terminal that shows styles, and plain elsewhere."""
    shown = sys.stdout.isatty() and os.environ.get("TERM") not in {None, "dumb"}
    if not shown or "NO_COLOR" in os.environ:
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object; not-a-number and infinity are refused."""
    print(json.dumps(value, allow_nan=False, ensure_ascii=False))


def print_answer(answer: Guarantee, as_json: bool, *, explain: bool = False) -> None:
    """Print one (ε, δ)."""
    if as_json:
        print_json(answer.to_json())
        return
    epsilon, delta = answer.epsilon_text(), answer.delta_text()
    if answer.asked == "delta":
        head, value = f"δ({epsilon}) = ", delta
    else:
        head, value = f"ε(δ = {delta}) = ", epsilon
    print(head + styled(value, "bold"))
    print(f"  {meaning(answer)}")
    print_source(answer, answer.seconds)
    if answer.advice:
        print(styled(f"  warning: {answer.advice}", "yellow"))
    if explain:
        print_routes(answer.route)


def print_routes(taken: str) -> None:
    """Print the ways by which the default method answers, the one that was taken marked."""
    from rich.table import Table

    from symdp.exact.route import ROUTES

    table = Table(
        "", "route", "applies to", "what it computes", "half width", "work grows", box=None
    )
    for route in ROUTES:
        mark = "→" if route.name == taken else ""
        table.add_row(mark, route.name, route.laws, route.how, route.promise, route.cost)
    console().print(table)


def print_source(answer: Guarantee, seconds: float) -> None:
    """Print how an answer was found, and whose privacy it speaks of."""
    told = f"direction {answer.direction}, {steps_of(answer.count)}, {seconds:.2g} s"
    print(styled(f"  method {answer.method}, {told}", "dim"))
    print_protection(answer)


def print_protection(answer: Guarantee) -> None:
    """Print whose privacy an answer speaks of."""
    if answer.protection is not None:
        print(styled(f"  protects {answer.protection.sentence}", "dim"))
    if answer.mass == "seen":
        print(
            styled("  the mass 1 of the densities was seen by two quadratures, not proved", "dim")
        )


def steps_of(count: int) -> str:
    """Return a number of steps in words.

    >>> steps_of(1), steps_of(14063)
    ('1 step', '14063 steps')
    """
    return "1 step" if count == 1 else f"{count} steps"


def meaning(answer: Guarantee) -> str:
    """Return in words what the number is: exact, a proved bound, or an estimate."""
    bounds = _bounds(answer)
    if answer.kind == "exact":
        return f"{_EXACTLY.get(answer.method, 'exact formula in floating point')}{bounds}"
    if answer.kind == "bound":
        return f"proved upper bound: the true value is not larger{bounds}"
    return f"estimate, not a guarantee{bounds}"


def _bounds(answer: Guarantee) -> str:
    if answer.asked == "delta":
        lower, upper, value = answer.log_lower, answer.log_upper, answer.log_delta
        if lower is None or upper is None or value == -math.inf:
            return ""
        error = max(upper - value, value - lower)
    else:
        lower, upper, value = answer.epsilon_lower, answer.epsilon_upper, answer.epsilon
        if lower is None or upper is None:
            return ""
        error = max(upper - value, value - lower) / value if value else upper
    if error <= 0.0:
        return ""
    if error < _HAIR:
        proved = "" if answer.method == "certified" else " by its own estimate"
        return f", relative error at most {rounded(error, 1, 'up')}{proved}"
    low, high = answer.bound_texts()
    return f", between {low} and {high}"
