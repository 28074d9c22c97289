"""What commands print for people, and the one JSON object that they print for programs."""

from __future__ import annotations

import json
import math
import os
import sys
import unicodedata
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from symdp.decimal_text import rounded

if TYPE_CHECKING:
    from symdp.questions.guarantee import Guarantee

_STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}  # as terminals number them
_WIDE = 200  # characters of a table's line that no terminal wraps
_GAP = 2  # spaces between two columns
_EXACTLY = {
    "truth": "arbitrary precision, proved or computed in two ways",
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


def say(text: str = "", style: str = "") -> None:
    """Print a line; on a terminal that is too narrow, on several, broken between words."""
    text = "\n".join(_lines(text, columns(len(text))))
    print(styled(text, style) if style else text)


def print_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int] = ()
) -> None:
    """Print a table in which no word and no number is cut, however narrow the terminal.

    Columns that hold words wrap between them. Where even the longest words do not fit beside each
    other, every row becomes lines of its own, one for each cell.
    """
    for line in table_lines(head, rows, numbers, columns(_WIDE)):
        print(line)


def table_lines(
    head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int], width: int
) -> list[str]:
    """Return the lines of a table, the columns of `numbers` to the right.

    Examples
    --------
    >>> table_lines(("ε", "kind"), [("4.0260487", "exact")], (0,), 80)
    ['        ε  kind', '4.0260487  exact']
    >>> table_lines(("ε", "kind"), [("4.0260487", "exact")], (0,), 12)
    ['ε: 4.0260487', 'kind: exact']
    """
    cells = list(zip(head, *rows, strict=True))
    natural = [max(map(len, column)) for column in cells]
    least = [
        max(len(word) for cell in column for word in (cell.split() or [""])) for column in cells
    ]
    room = width - _GAP * (len(head) - 1)
    if sum(least) > room:
        told = [
            [
                line
                for name, cell in zip(head, row, strict=True)
                if cell
                for line in _lines(f"{name}: {cell}" if name else cell, width)
            ]
            for row in rows
        ]
        return [line for lines in told for line in (*lines, "")][:-1]
    most = max(natural, default=0)
    while sum(widths := [min(n, max(k, most)) for n, k in zip(natural, least, strict=True)]) > room:
        most -= 1
    shown = []
    for row in (head, *rows):
        pieces = [_lines(cell, wide) for cell, wide in zip(row, widths, strict=True)]
        for place in range(max(map(len, pieces))):
            texts = (lines[place] if place < len(lines) else "" for lines in pieces)
            line = (" " * _GAP).join(
                text.rjust(wide) if column in numbers else text.ljust(wide)
                for column, (text, wide) in enumerate(zip(texts, widths, strict=True))
            )
            shown.append(line.rstrip())
    return shown


def columns(otherwise: int) -> int:
    """Return the width of the terminal, or another one where nothing is printed to a terminal."""
    if not sys.stdout.isatty():
        return otherwise
    from shutil import get_terminal_size

    return get_terminal_size().columns


def _lines(text: str, width: int) -> list[str]:
    """Return text on as many lines as it needs, broken between words only, indented alike."""
    if len(text) <= width:
        return [text]
    from textwrap import wrap

    indent = text[: len(text) - len(text.lstrip())]
    return wrap(
        text.lstrip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


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
    say(f"  {meaning(answer)}")
    print_source(answer, answer.seconds)
    if answer.advice:
        say(f"  warning: {answer.advice}", "yellow")
    if explain:
        print_routes(answer.route)


def print_routes(taken: str) -> None:
    """Print the ways by which the default method answers, the one that was taken marked."""
    from symdp.methods.route import ROUTES

    rows = [
        ("→" if one.name == taken else "", one.name, one.laws, one.how, one.promise, one.cost)
        for one in ROUTES
    ]
    head = ("", "route", "applies to", "what it computes", "half width", "work grows")
    print_table(head, rows)


def print_source(answer: Guarantee, seconds: float) -> None:
    """Print how an answer was found, and whose privacy it speaks of."""
    told = f"direction {answer.direction}, {steps_of(answer.count)}, {seconds:.2g} s"
    say(f"  method {answer.method}, {told}", "dim")
    print_protection(answer)


def print_protection(answer: Guarantee) -> None:
    """Print whose privacy an answer speaks of."""
    if answer.protection is not None:
        say(f"  protects {answer.protection.sentence}", "dim")
    if answer.mass == "seen":
        say("  the mass 1 of the densities was seen by two quadratures, not proved", "dim")


def steps_of(count: int) -> str:
    """Return a number of steps in words.

    >>> steps_of(1), steps_of(14063)
    ('1 step', '14063 steps')
    """
    return "1 step" if count == 1 else f"{count} steps"


def meaning(answer: Guarantee) -> str:
    """Return in words what the number is: exact, a proved bound, or an estimate."""
    bounds = _bounds(answer)
    if answer.kind != answer.for_pair:
        exactly = _EXACTLY.get(answer.method, "exact formula in floating point")
        return f"upper bound: {exactly} for a pair that dominates{bounds}"
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
