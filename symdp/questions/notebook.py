"""What a notebook shows of an answer, a curve, a composition and a ledger: small HTML tables."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.questions.guarantee import Guarantee

_MOST_ROWS = 40  # of a table; the rest is counted in its last row
_MOST_NAMED = 3  # distinct steps in a repr


def steps_text(steps: Sequence[tuple[Mechanism, int]], count: int) -> str:
    """Return the first steps of a composition, and how many more there are."""
    shown = [f"{times} × {mechanism!r}" for mechanism, times in steps[:_MOST_NAMED]]
    more = len(steps) - len(shown)
    if more:
        shown.append(f"{more} more distinct step{'s' * (more != 1)}, {count} steps in all")
    return ", ".join(shown)


def curve_html(curve: Sequence[Guarantee]) -> str:
    """Return a table of the points of a curve."""
    rows = []
    for answer in curve:
        low, high = answer.bound_texts()
        rows.append(
            (answer.epsilon_text(), answer.delta_text(), low or "", high or "", answer.kind)
        )
    return _table(("ε", "δ", "lower", "upper", "kind"), rows)


def sweep_html(
    parameters: Mapping[str, Sequence[object]], counts: Sequence[int], answers: Sequence[Guarantee]
) -> str:
    """Return a table of a sweep: parameters, steps and what was answered."""
    rows = []
    for place, (count, answer) in enumerate(zip(counts, answers, strict=True)):
        own = [str(values[place]) for values in parameters.values()]
        said = (answer.epsilon_text(), answer.delta_text(), answer.kind)
        rows.append((*own, str(count), *said))
    return _table((*parameters, "n", "ε", "δ", "kind"), rows)


def steps_html(steps: Sequence[tuple[Mechanism, int]], count: int) -> str:
    """Return a table of distinct steps with their counts."""
    rows: list[tuple[str, ...]] = [(str(times), mechanism.summary) for mechanism, times in steps]
    return _table(("steps", f"mechanism ({count} steps in all)"), rows)


def _table(head: Iterable[str], rows: Sequence[tuple[str, ...]]) -> str:
    def line(cells: Iterable[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(c)}</{tag}>' for c in cells)}</tr>"

    body = [line(row, "td") for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        body.append(line([f"… and {len(rows) - _MOST_ROWS} more"], "td"))
    return f"<table>{line(head, 'th')}{''.join(body)}</table>"
