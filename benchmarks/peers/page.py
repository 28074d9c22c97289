"""Tables and numbers as the page prints them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown.

    Examples
    --------
    >>> print(table(("a", "b"), [("1", "2")]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    <BLANKLINE>
    """
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def duration(seconds: float | None) -> str:
    """Return a time with its unit.

    Examples
    --------
    >>> duration(0.00012), duration(0.25), duration(12.0), duration(None)
    ('0.12 ms', '250 ms', '12 s', '')
    """
    if seconds is None:
        return ""
    if seconds >= 1.0:
        return f"{seconds:.1f} s" if seconds < 10.0 else f"{seconds:.0f} s"
    milliseconds = seconds * 1e3
    return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.2g} ms"


def number(value: float, digits: int = 8) -> str:
    """Return a number with so many significant digits.

    Examples
    --------
    >>> number(0.0496014103), number(float("inf")), number(0.0)
    ('0.049601410', 'inf', '0')
    """
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-4 <= abs(value) < 1e5:
        return f"{value:#.{digits}g}"
    return f"{value:.{digits - 1}e}"


def ratio(value: float) -> str:
    """Return how many times longer, with two digits.

    Examples
    --------
    >>> ratio(1234.5), ratio(0.456), ratio(17.6)
    ('1,200', '0.46', '18')
    """
    if not math.isfinite(value) or value <= 0:
        return "–"
    digits = 1 - math.floor(math.log10(value))
    rounded = round(value, digits)
    return f"{rounded:,.0f}" if digits <= 0 else f"{rounded:.{digits}f}"


def megabytes(value: float | None) -> str:
    """Return memory in MB, empty where it is not known."""
    return "" if value is None else f"{value:.0f} MB"
