"""What a change of symdp did to a row: old and new intervals side by side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Row = dict[str, Any]
VERDICTS = (
    "moved outside",  # the new interval and the old one, or the truth, have no number in common
    "refused",
    "answered anew",
    "weaker kind",
    "value outside",  # of the old interval, which the new one meets: it is wider
    "widened",
    "narrowed",
    "slower than twice",
    "faster than half",
)
KINDS = ("estimate", "bound", "exact")
LISTED = 2.0  # wider by more than this is told row by row
SAME = 1.01  # how far two widths may differ
MORE_SECONDS = 0.05  # below it nothing is slower


@dataclass
class Finding:
    """What is to be told of one column of a row."""

    case: str
    place: str
    column: str
    verdicts: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def add(self, verdict: str, words: str = "") -> None:
        """Take a verdict down, and what is said of it where it is told row by row."""
        self.verdicts.append(verdict)
        if words:
            self.words.append(f"{verdict}: {words}")


def number(value: float | str | None, otherwise: float) -> float:
    """Return an end that the file holds.

    >>> number(None, math.inf), number("-inf", 0.0), number(0.5, 0.0)
    (inf, -inf, 0.5)
    """
    return otherwise if value is None else float(value)


def ends_of_log(row: Row) -> tuple[float, float]:
    """Return the ends of log δ of an answer."""
    return number(row["log_lower"], -math.inf), number(row["log_upper"], math.inf)


def width(ends: tuple[float, float]) -> float:
    """Return the width, 0 where both ends are −∞."""
    return 0.0 if ends[0] == ends[1] else ends[1] - ends[0]


def compare(old: Row, new: Row, column: str) -> Finding:
    """Compare what one column has now with what it had."""
    found = Finding(old["case"], old["place"], column)
    before, now = old[column], new
    if "refused" in before or "refused" in now:
        if "refused" not in before:
            found.add("refused", now["refused"])
        elif "refused" not in now:
            found.add("answered anew")
    elif column == "answer":
        _compare_answers(found, before, now)
    else:
        _compare_proofs(found, before, now)
    if "refused" not in now:
        _check_truth(found, old, now)
    _compare_seconds(found, before, now)
    return found


def _compare_answers(found: Finding, before: Row, now: Row) -> None:
    old, new = ends_of_log(before), ends_of_log(now)
    if new[0] > old[1] or new[1] < old[0]:
        found.add("moved outside", f"log δ in {list(new)}, was in {list(old)}")
    elif not old[0] <= number(now["log_delta"], math.nan) <= old[1]:
        found.add("value outside")
    if KINDS.index(now["kind"]) < KINDS.index(before["kind"]):
        found.add("weaker kind", f"{now['kind']}, was {before['kind']}")
    _compare_widths(found, width(old), width(new))


def _compare_proofs(found: Finding, before: Row, now: Row) -> None:
    old, new = _proved(before), _proved(now)
    if new[0] > old[1] or new[1] < old[0]:
        words = f"δ in [{now['lower']}, {now['upper']}], was in"
        found.add("moved outside", f"{words} [{before['lower']}, {before['upper']}]")
    _compare_widths(found, _relative(old), _relative(new))


def _proved(row: Row) -> tuple[Fraction, Fraction]:
    return Fraction(row["lower"]), Fraction(row["upper"])


def _relative(ends: tuple[Fraction, Fraction]) -> float:
    """Return the width beside the upper end; no float holds a δ of 1e-400."""
    return float((ends[1] - ends[0]) / ends[1]) if ends[1] else 0.0


def _compare_widths(found: Finding, old: float, new: float) -> None:
    if new > SAME * old:
        found.add("widened", f"{old:.1e} -> {new:.1e}" if new > LISTED * old else "")
    elif old > SAME * new:
        found.add("narrowed")


def _check_truth(found: Finding, old: Row, now: Row) -> None:
    truth = old.get("truth", {})
    if "lower" not in truth:
        return
    true = _proved(truth)
    if found.column == "answer":
        low, high = ends_of_log(now)
        # A truth is rounded to a double's logarithm outwards.
        missed = _log(true[1]) < low - _rounding(low) or _log(true[0]) > high + _rounding(high)
    else:
        new = _proved(now)
        missed = new[0] > true[1] or new[1] < true[0]
    if missed:
        words = f"δ is in [{truth['lower']}, {truth['upper']}] ({truth['by']})"
        if "moved outside" not in found.verdicts:
            found.add("moved outside", words)


def _rounding(log: float) -> float:
    return 4.0 * math.ulp(log) if math.isfinite(log) else 0.0


def _log(value: Fraction) -> float:
    """Return a logarithm, right to a few roundings however small the number is.

    >>> round(_log(Fraction(1, 10**400)) / math.log(10), 12), _log(Fraction(0))
    (-400.0, -inf)
    """
    if value <= 0:
        return -math.inf
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    if shift in (0, -1):
        return math.log1p(float(value - 1)) if value > Fraction(1, 2) else math.log(float(value))
    return math.log(float(value / Fraction(2) ** shift)) + shift * math.log(2.0)


def _compare_seconds(found: Finding, before: Row, now: Row) -> None:
    old, new = before["seconds"], now["seconds"]
    if new > 2.0 * old and new > old + MORE_SECONDS:
        found.add("slower than twice", f"{old:.2f} s -> {new:.2f} s")
    elif old > 2.0 * new and old > new + MORE_SECONDS:
        found.add("faster than half")


def table(findings: Iterable[Finding]) -> str:
    """Return the counts of each verdict by column, and a line for each row that is told."""
    all_of_them = list(findings)
    columns = list(dict.fromkeys(one.column for one in all_of_them))
    asked = Counter(one.column for one in all_of_them)
    counts = Counter((v, one.column) for one in all_of_them for v in one.verdicts)
    lines = [" ".join(["".ljust(18), *(_head(column).rjust(12) for column in columns)])]
    lines.append(" ".join(["rows".ljust(18), *(str(asked[c]).rjust(12) for c in columns)]))
    for verdict in VERDICTS:
        cells = (str(counts[verdict, column]).rjust(12) for column in columns)
        lines.append(" ".join([verdict.ljust(18), *cells]))
    for one in all_of_them:
        lines += [f"{one.case}, {one.place}, {_head(one.column)}: {words}" for words in one.words]
    return "\n".join(lines)


def _head(column: str) -> str:
    return f"{column} digits" if column.isdigit() else column
