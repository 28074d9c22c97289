"""The steps of a composition as people hand them in, and what consists of steps."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from symdp.arguments import checked_count, instance, listed
from symdp.errors import InputError

if TYPE_CHECKING:
    from symdp.arguments import MethodName
    from symdp.model.mechanism import Mechanism

_DRAWN, _DRAWN_TO = 65, 1e-10  # points of a drawn profile, and the δ at its end
_MOST_ROWS = 40  # of a table; the rest is counted in its last row
_MOST_NAMED = 3  # distinct steps in a repr


def listed_steps(steps: object) -> list[tuple[Mechanism, Any]]:
    """Return a list of mechanisms, or of (mechanism, count), as pairs; InputError for others."""
    from symdp.model.mechanism import Mechanism

    wanted = "it is no mechanism, nor a list of (mechanism, count)"
    pairs = []
    for place, step in enumerate(listed(steps, wanted), start=1):
        pair = (step, 1) if isinstance(step, Mechanism) else step
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise InputError(f"step {place}: a mechanism or (mechanism, count) is needed")
        if not isinstance(pair[0], Mechanism):
            raise InputError(f"step {place}: {pair[0]!r:.60} is no mechanism")
        pairs.append((pair[0], pair[1]))
    return pairs


def a_composition(value: Any) -> Any:
    """Return the value if it is a composition; InputError that says how to make one."""
    return instance(value, Summed, "it is no composition: give symdp.compose(mechanism, n)")


def merged_steps(steps: Iterable[tuple[Mechanism, int]]) -> dict[Mechanism, int]:
    """Return distinct concrete mechanisms, each with its whole count."""
    merged: dict[Mechanism, int] = {}
    for mechanism, count in listed_steps(steps):
        concrete = mechanism.require_concrete()
        merged[concrete] = merged.get(concrete, 0) + checked_count(count)
    if not merged:
        raise InputError("a composition needs at least one step")
    return merged


class Summed:
    """What consists of steps, can be added to its like and taken several times.

    >>> from symdp import compose, mechanisms
    >>> noise, sample = mechanisms.gaussian(sigma=4), mechanisms.laplace(b=8)
    >>> both = compose(noise, 3) + 10 * compose(sample, 2)
    >>> both.count, both.steps == compose([(noise, 3), (sample, 20)]).steps
    (23, True)
    """

    steps: tuple[tuple[Mechanism, int], ...]

    @property
    def step_by_curve(self) -> Mechanism | None:
        """A step that is known by a Rényi curve alone, None where every loss has a law."""
        from symdp.model.renyi_curve import RenyiCurve

        return next((m for m, _ in self.steps if isinstance(m.source, RenyiCurve)), None)

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the laws, whose functions are no data: a copy makes its own."""
        return {name: {} if name == "_laws" else kept for name, kept in vars(self).items()}

    def given_steps(self) -> Iterable[tuple[Mechanism, int]]:
        """Return the steps as they were given, before a pair took the place of any."""
        raise NotImplementedError

    def __add__(self, other: object) -> Self:
        """Return all steps of both; InputError where they protect different neighbours."""
        if not isinstance(other, Summed):
            return NotImplemented
        return self._of([*self.given_steps(), *other.given_steps()])

    def __mul__(self, times: object) -> Self:
        """Return every step so many times; InputError for what is no positive whole number."""
        many = checked_count(times)
        return self._of([(mechanism, many * count) for mechanism, count in self.given_steps()])

    __rmul__ = __mul__

    def plot(
        self,
        ax: Any = None,
        *,
        method: MethodName | Sequence[MethodName] = "contour",
        epsilons: Any = None,
        **style: Any,
    ) -> Any:
        """Draw the privacy profile δ(ε) by one method or several into Matplotlib axes; return them.

        Parameters
        ----------
        ax
            The axes; those of a new figure if left out.
        method
            The name of an accountant, or several, each a line with its name.
        epsilons
            Where δ is asked; from 0 to ε(1e-10) if left out.
        style
            What `Axes.plot` takes.
        """
        asked: Any = self
        if epsilons is None:
            last = max(float(asked.epsilon(_DRAWN_TO).epsilon), 1.0)
            epsilons = [last * place / (_DRAWN - 1) for place in range(_DRAWN)]
        for name in [method] if isinstance(method, str) else method:
            ax = asked.delta(epsilons, name).plot(ax, **{"label": name, **style})
        if not isinstance(method, str):
            ax.legend()
        return ax

    def _of(self, steps: list[tuple[Mechanism, int]]) -> Self:
        return type(self)(steps)  # type: ignore[call-arg]


def steps_text(steps: Sequence[tuple[Mechanism, int]], count: int) -> str:
    """Return the first steps of a composition, and how many more there are."""
    shown = [f"{times} × {mechanism!r}" for mechanism, times in steps[:_MOST_NAMED]]
    more = len(steps) - len(shown)
    if more:
        shown.append(f"{more} more distinct step{'s' * (more != 1)}, {count} steps in all")
    return ", ".join(shown)


def steps_html(steps: Sequence[tuple[Mechanism, int]], count: int) -> str:
    """Return a table of distinct steps with their counts."""
    rows: list[tuple[str, ...]] = [(str(times), mechanism.summary) for mechanism, times in steps]
    return table_html(("steps", f"mechanism ({count} steps in all)"), rows)


def table_html(head: Iterable[str], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a small table, as a notebook shows it."""

    def line(cells: Iterable[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(c)}</{tag}>' for c in cells)}</tr>"

    body = [line(row, "td") for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        body.append(line([f"… and {len(rows) - _MOST_ROWS} more"], "td"))
    return f"<table>{line(head, 'th')}{''.join(body)}</table>"
