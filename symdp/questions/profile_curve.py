"""Guarantees at many ε or δ, as arrays, CSV and a picture."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from symdp.arguments import instance, listed
from symdp.axes import axes_or_new
from symdp.durable import replace_text
from symdp.questions.guarantee import Guarantee

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FEW_POINTS = 20  # of a drawn curve, from which on its points need no marks
_COLUMNS = ("epsilon", "delta", "lower", "upper", "kind", "method", "direction", "count")  # of CSV


class Curve(Sequence[Guarantee]):
    """Guarantees for an array of ε or δ; its attributes are arrays of the same length."""

    def __init__(self, guarantees: Sequence[Guarantee]) -> None:
        held = listed(guarantees, "give a list of guarantees")
        self._guarantees = tuple(instance(one, Guarantee, "it is no guarantee") for one in held)

    def _array(self, name: str) -> NDArray[np.float64]:
        import numpy as np

        values = [getattr(g, name) for g in self._guarantees]
        return np.asarray([math.nan if v is None else v for v in values])

    @property
    def epsilon(self) -> NDArray[np.float64]:
        """Every ε."""
        return self._array("epsilon")

    @property
    def delta(self) -> NDArray[np.float64]:
        """Every δ."""
        return self._array("delta")

    @property
    def log_delta(self) -> NDArray[np.float64]:
        """Every log δ."""
        return self._array("log_delta")

    @property
    def lower(self) -> NDArray[np.float64] | None:
        """Every lower bound, or None if the method has none."""
        return None if any(g.lower is None for g in self) else self._array("lower")

    @property
    def upper(self) -> NDArray[np.float64] | None:
        """Every upper bound, or None if the method has none."""
        return None if any(g.upper is None for g in self) else self._array("upper")

    @overload
    def __getitem__(self, index: int) -> Guarantee: ...
    @overload
    def __getitem__(self, index: slice) -> Curve: ...
    def __getitem__(self, index: int | slice) -> Guarantee | Curve:
        if isinstance(index, slice):
            return Curve(self._guarantees[index])
        return self._guarantees[index]

    def __len__(self) -> int:
        return len(self._guarantees)

    def __iter__(self) -> Iterator[Guarantee]:
        return iter(self._guarantees)

    def __repr__(self) -> str:
        if not self:
            return "Curve(no points)"
        first, last = self[0], self[-1]
        kinds = ", ".join(dict.fromkeys(f"{g.kind} by {g.method}" for g in self))
        return (
            f"Curve({len(self)} points from ε = {first.epsilon_text(6)}, δ = {first.delta_text(6)} "
            f"to ε = {last.epsilon_text(6)}, δ = {last.delta_text(6)}, {kinds})"
        )

    def _repr_html_(self) -> str:
        from symdp.questions.notebook import curve_html

        return curve_html(self)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the points as CSV with a header, written into a file too where one is named.

        Every number is a full double, or a decimal text below the double range; a bound that is
        not known is an empty field.

        Raises
        ------
        InputError
            If the file cannot be written.

        Examples
        --------
        >>> from symdp import compose, mechanisms
        >>> curve = compose(mechanisms.gaussian(sigma=2), 3).delta([0.5, 1.5])
        >>> [line[:12] for line in curve.to_csv().splitlines()]
        ['epsilon,delt', '0.5,0.185151', '1.5,0.028882']
        """
        lines = [",".join(_COLUMNS)]
        for answer in self:
            values = answer.to_json()
            cells = ("" if values[name] is None else str(values[name]) for name in _COLUMNS)
            lines.append(",".join(cells))
        text = "\n".join(lines) + "\n"
        if path is not None:
            replace_text(path, text)
        return text

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw δ over ε into Matplotlib axes, log δ upwards and bounds shaded; return the axes.

        Parameters
        ----------
        ax
            The axes, as `matplotlib.pyplot.subplots` returns them; of a new figure if left out.
        style
            What `Axes.plot` takes, such as a label or a colour.
        """
        ax = axes_or_new(ax)
        if len(self) <= _FEW_POINTS:
            style = {"marker": "o", "markersize": 4} | style
        (line,) = ax.plot(self.epsilon, self.delta, **style)
        lower, upper = self.lower, self.upper
        if lower is not None and upper is not None and self[0].asked == "delta":
            ax.fill_between(self.epsilon, lower, upper, color=line.get_color(), alpha=0.2)
        ax.set_yscale("log")
        ax.set_xlabel("ε (nats)")
        ax.set_ylabel("δ(ε)")
        return ax

    def to_json(self) -> dict[str, Any]:
        """Return the points as JSON values."""
        return {"points": [g.to_json() for g in self]}
