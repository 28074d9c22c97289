"""A table of answers over a grid of parameter values, numbers of steps and ε or δ."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symdp.arguments import checked_count, real
from symdp.durable import replace_text
from symdp.errors import InputError
from symdp.model.taken import a_mechanism
from symdp.questions.composition import Direction, compose
from symdp.questions.guarantee import Guarantee
from symdp.questions.profile_curve import Curve

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from symdp.model.mechanism import Mechanism

_ANSWERED = ("epsilon", "delta", "lower", "upper", "kind", "method", "direction")


@dataclass(frozen=True)
class Sweep:
    """Answers over a grid, one row for each; every column is an array.

    Attributes
    ----------
    parameters
        The values of each parameter, one for each row, as they were given.
    count
        The number of steps of each row.
    answers
        The guarantee of each row, with its bounds and where it comes from.
    """

    parameters: dict[str, tuple[Any, ...]]
    count: NDArray[np.int64]
    answers: Curve

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the column of a parameter, or of n, epsilon, delta, lower, upper, kind, ..."""
        columns = self.columns()
        if name not in columns:
            raise InputError(f"no column '{name}'; there are {', '.join(columns)}")
        return columns[name]

    @property
    def epsilon(self) -> NDArray[np.float64]:
        """Every ε."""
        return self.answers.epsilon

    @property
    def delta(self) -> NDArray[np.float64]:
        """Every δ."""
        return self.answers.delta

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return all columns by name: parameters, n, and what each answer says."""
        found: dict[str, NDArray[Any]] = {n: np.asarray(v) for n, v in self.parameters.items()}
        found["n"] = self.count
        for name in _ANSWERED:
            values = [getattr(answer, name) for answer in self.answers]
            found[name] = np.asarray([np.nan if value is None else value for value in values])
        return found

    def to_csv(self, file: str | Path | None = None) -> str:
        """Return the table as comma-separated values, and write them to a file where one is given.

        A bound is rounded outwards, and one that the method does not have is an empty cell.

        Raises
        ------
        InputError
            If the file cannot be written; what was there stays.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*self.parameters, "n", *_ANSWERED])
        given = zip(*self.parameters.values(), strict=True) if self.parameters else [()] * len(self)
        for values, count, answer in zip(given, self.count.tolist(), self.answers, strict=True):
            told = answer.to_json()
            cells = ("" if told[name] is None else told[name] for name in _ANSWERED)
            writer.writerow([*values, count, *cells])
        if file is not None:
            replace_text(file, text.getvalue())
        return text.getvalue()

    def to_dataframe(self) -> Any:
        """Return the table as a pandas DataFrame.

        Raises
        ------
        InputError
            If pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise InputError("a DataFrame needs pandas: pip install pandas") from None
        return pandas.DataFrame(self.columns())

    def _repr_html_(self) -> str:
        from symdp.questions.notebook import sweep_html

        return sweep_html(self.parameters, self.count.tolist(), self.answers)

    def __repr__(self) -> str:
        return f"Sweep({len(self)} rows: {', '.join([*self.parameters, 'n'])})"


def sweep(
    mechanism: Mechanism,
    grid: Mapping[str, ArrayLike],
    n: ArrayLike,
    *,
    epsilon: ArrayLike | None = None,
    delta: ArrayLike | None = None,
    method: str = "contour",
    direction: Direction = "both",
    progress: Callable[[int, int], object] | None = None,
) -> Sweep:
    """Return δ(ε) or ε(δ) for every combination of parameter values and numbers of steps.

    The formula of the mechanism is derived once and evaluated at every value.

    Parameters
    ----------
    mechanism
        A mechanism whose free parameters are all in the grid. A sampling rate is one of them where
        it was sampled at a symbolic rate, as in `.subsample("poisson", "q")`.
    grid
        Each parameter's name with its values, one or several.
    n
        The number of steps, 1 or more, or several of them.
    epsilon, delta
        One of the two: any real ε in nats, or 0 < δ < 1; a number or several.
    method, direction
        As for `Composition.delta`.
    progress
        Called after each composition with how many are done, and how many there are.

    Returns
    -------
    Sweep, its rows in the order of the parameters, then n, then ε or δ, the last one fastest.

    Raises
    ------
    InputError
        If an axis is empty, a parameter is missing, unknown or out of its domain, or not exactly
        one of ε and δ is given.
    AccuracyError
        If the method cannot reach its accuracy for some row.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> table = sweep(mechanisms.gaussian, {"sigma": [4, 5]}, [10, 20], delta=1e-5)
    >>> [f"{epsilon:.6f}" for epsilon in table.epsilon]
    ['3.341409', '4.983306', '2.594383', '3.848610']
    >>> table.to_csv().splitlines()[0]
    'sigma,n,epsilon,delta,lower,upper,kind,method,direction'
    """
    mechanism = a_mechanism(mechanism)
    if (epsilon is None) == (delta is None):
        raise InputError("a sweep needs either epsilon or delta")
    asked = "delta" if delta is None else "epsilon"
    given = epsilon if delta is None else delta
    places = [real(x, "epsilon" if delta is None else "delta") for x in _axis(given)]
    counts = [checked_count(count) for count in _axis(n)]
    axes = {name: _axis(values) for name, values in grid.items()}
    for name, values in {**axes, "n": counts, asked: places}.items():
        if not values:
            raise InputError(f"the grid of {name} has no values")
    mechanism(**{name: values[0] for name, values in axes.items()}).require_concrete()
    cells = list(product(*axes.values(), counts))
    rows: list[tuple[Any, ...]] = []
    answers: list[Guarantee] = []
    for done, (*values, count) in enumerate(cells, start=1):
        made = mechanism(**dict(zip(axes, values, strict=True)))
        answers += getattr(compose(made, count), asked)(places, method, direction)
        rows += [(*values, count)] * len(places)
        if progress is not None:
            progress(done, len(cells))
    *columns, steps = zip(*rows, strict=True)
    named = dict(zip(axes, columns, strict=True))
    return Sweep(named, np.asarray(steps, dtype=np.int64), Curve(answers))


def _axis(values: Any) -> list[Any]:
    """Return the values along an axis of the grid as Python numbers or text."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        return [values.item() if isinstance(values, np.generic) else values]
    if isinstance(values, np.ndarray):
        if values.ndim > 1:
            raise InputError(f"an array of {values.ndim} dimensions: one dimension is needed")
        return list(np.atleast_1d(values).tolist())
    return [value.item() if isinstance(value, np.generic) else value for value in values]
