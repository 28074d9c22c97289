"""Long formulas over several lines, broken where as few brackets as possible are open."""

from __future__ import annotations

import re

WIDTH = 100  # columns of a text, which fit a terminal and a page
_INDENT = "      "  # of the lines that go on
_FIRST_BREAK = 0.4  # of the width: a line is not broken before, lest it be all indent
# Before a sum's next term or a factor, or after a comma.
_BREAKS = re.compile(r" (?=[+-] )|(?<!\*)(?=\*(?!\*))(?<=[\w)])|(?<=,) |(?= if )")


def wrapped(line: str, width: int = WIDTH) -> str:
    """Return a line on as many lines as it needs; joined again it is the same formula.

    Examples
    --------
    >>> print(wrapped("  f = a*(b + c) + d*(e + f)", 18))
      f = a*(b + c)
          + d*(e + f)
    """
    found: list[str] = []
    rest = line
    while len(rest) > width:
        place = _best_break(rest, width)
        if place is None:
            break
        found.append(rest[:place].rstrip())
        rest = _INDENT + rest[place:].lstrip()
    return "\n".join([*found, rest])


def _best_break(line: str, width: int) -> int | None:
    """Return the last place within the width at which the fewest brackets are open."""
    depths, depth = [], 0
    for sign in line:
        depth += (sign == "(") - (sign == ")")
        depths.append(depth)
    least = max(int(_FIRST_BREAK * width), len(_INDENT) + 1)
    places = [m.start() for m in _BREAKS.finditer(line) if least <= m.start() <= width]
    if not places:  # of a sentence, between words
        words = [k for k in range(least, width + 1) if line[k] == " "]
        if words:
            return words[-1]
        after = (m.start() for m in _BREAKS.finditer(line) if m.start() > len(_INDENT) + 1)
        return next((p for p in after), None)
    return min(places, key=lambda place: (depths[place - 1], -place))
