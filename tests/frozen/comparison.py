"""Whether an answer agrees with what was frozen: with the earlier bounds, and with what is proved.

Both intervals claim to hold log δ, so that they must overlap; a certified enclosure holds δ, so
that the new interval must have a point in it.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import Any

# Bounds are doubles of log δ, and a proved bound is rounded to them after its proof: two units in
# their last place may lie between two intervals that hold one number.
ROUNDING = 2 * 2.0**-52
# Only an interval that says nothing is wider than this and than it was: a factor of 1.001 of δ.
_OF_A_LOG = 1e-10  # of log δ, where δ is e to minus many millions
WIDEST = 1e-3

Entry = dict[str, Any]


def number(written: float | str | None, otherwise: float) -> float:
    """Return a logarithm as it stands in the file: "-inf" is text, a missing bound null."""
    return otherwise if written is None else float(written)


def contradictions(
    entry: Entry, log_delta: float, log_lower: float | None, log_upper: float | None
) -> list[str]:
    """Return in words what an answer contradicts; nothing where it agrees.

    Parameters
    ----------
    entry : a frozen question with its answer and, where there is one, its certified enclosure
    log_delta, log_lower, log_upper : the new answer; None for a bound that is not given
    """
    low, high = number(log_lower, -math.inf), number(log_upper, math.inf)
    found = []
    if not low <= log_delta <= high:  # NaN too
        found.append(f"log δ = {log_delta!r} does not lie in its own [{low!r}, {high!r}]")
    frozen = entry["answer"]
    old_low = number(frozen["log_lower"], -math.inf)
    old_high = number(frozen["log_upper"], math.inf)
    if not (_below(low, old_high) and _below(old_low, high)):
        found.append(f"[{low!r}, {high!r}] misses the earlier [{old_low!r}, {old_high!r}]")
    proved = entry.get("certified")
    if proved is not None:
        least, most = log_of(proved["lower"]), log_of(proved["upper"])
        if not (_below(low, most) and _below(least, high)):
            found.append(f"[{low!r}, {high!r}] misses the proved [{least!r}, {most!r}]")
    if frozen["log_lower"] is not None and _width(low, high) > max(
        _width(old_low, old_high), WIDEST, _OF_A_LOG * abs(log_delta)
    ):
        found.append(f"[{low!r}, {high!r}] is wider than {WIDEST} and than it was")
    return found


def log_of(decimal: str) -> float:
    """Return log of a decimal, −inf of zero, rounded to nearest; far below every double too."""
    value = Decimal(decimal)
    return float(value.ln(Context(prec=40))) if value > 0 else -math.inf


def _below(lower: float, upper: float) -> bool:
    """Whether the first is no larger than the second, up to the rounding stated above."""
    return lower <= upper or lower <= upper + ROUNDING * max(1.0, abs(upper))


def _width(low: float, high: float) -> float:
    return 0.0 if low == high else high - low
