"""How answers move with parameters: tables over grids of them, and derivatives of ε(δ).

The derivatives are those of `symdp.questions.design.gradient`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from symdp.arguments import checked_count, real
from symdp.durable import replace_text
from symdp.errors import InputError, answer_of, refusal
from symdp.model.mechanism import a_mechanism
from symdp.questions.composition import Composition, Direction, compose
from symdp.questions.design.gradient import COUNT, SENSITIVITY, gradient
from symdp.questions.guarantee import Alike, Curve, Guarantee, data_frame, table_html

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from numpy.typing import ArrayLike, NDArray

    from symdp.arguments import MethodName
    from symdp.model.mechanism import Mechanism

    _Outcomes = list[list[Guarantee] | str]

_ANSWERED = ("epsilon", "delta", "lower", "upper", "kind", "method", "direction")
_TASKS = 64  # parts of a sweep that an executor's workers share


@dataclass(frozen=True, eq=False)
class Sweep(Alike):
    """Answers over a grid, one row for each; every column is an array.

    Attributes
    ----------
    parameters
        The values of each parameter, one for each row, as they were given.
    n
        The number of steps of each row.
    answers
        The guarantee of each row, with its bounds and where it comes from.
    refused
        The combinations that have no rows, each as its parameters and n, and why: values that
        together break an assumption, or a composition that is refused.
    """

    parameters: dict[str, tuple[Any, ...]]
    n: NDArray[np.int64]
    answers: Curve
    refused: tuple[tuple[dict[str, Any], str], ...] = ()

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
        own = {name: np.asarray(values) for name, values in self.parameters.items()}
        told = self.answers.columns()
        return {**own, "n": self.n, **{name: told[name] for name in _ANSWERED}}

    def to_csv(self, file: str | Path | None = None) -> str:
        """Return the table as comma-separated values, and write them to a file where one is given.

        A bound is rounded outwards, and one that the method does not have is an empty cell.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*self.parameters, "n", *_ANSWERED])
        given = zip(*self.parameters.values(), strict=True) if self.parameters else [()] * len(self)
        for values, count, answer in zip(given, self.n.tolist(), self.answers, strict=True):
            told = answer.to_json()
            cells = ("" if told[name] is None else told[name] for name in _ANSWERED)
            writer.writerow([*values, count, *cells])
        if file is not None:
            replace_text(file, text.getvalue())
        return text.getvalue()

    def to_dataframe(self, library: str = "pandas") -> Any:
        """Return the table as a data frame of "pandas" or "polars", see `Curve.to_dataframe`."""
        return data_frame(self.columns(), library)

    def _repr_html_(self) -> str:
        rows = []
        for place, (count, answer) in enumerate(zip(self.n.tolist(), self.answers, strict=True)):
            own = [str(values[place]) for values in self.parameters.values()]
            said = (answer.epsilon_text(), answer.delta_text(), answer.kind)
            rows.append((*own, str(count), *said))
        return table_html((*self.parameters, "n", "ε", "δ", "kind"), rows)

    def __repr__(self) -> str:
        rows = f"{len(self)} rows"
        if self.refused:
            rows += f", {len(self.refused)} refused"
        return f"Sweep({rows}: {', '.join([*self.parameters, 'n'])})"


@dataclass(frozen=True)
class _Grid:
    """All that is asked: the mechanism, the values along each axis, and δ or ε."""

    mechanism: Mechanism
    axes: dict[str, list[Any]]
    counts: list[int]
    asked: str
    places: list[float]
    method: MethodName
    direction: Direction

    @property
    def size(self) -> int:
        """The number of compositions."""
        return math.prod([len(values) for values in self.axes.values()]) * len(self.counts)

    def cell(self, number: int) -> tuple[Any, ...]:
        """Return a composition's parameters and number of steps, the last of all fastest."""
        found = []
        for values in reversed([*self.axes.values(), self.counts]):
            number, place = divmod(number, len(values))
            found.append(values[place])
        return tuple(reversed(found))

    def answers(self, number: int) -> list[Guarantee]:
        """Return the answers of one composition."""
        *values, count = self.cell(number)
        made = self.mechanism(**dict(zip(self.axes, values, strict=True)))
        found: Iterable[Guarantee] = getattr(compose(made, count), self.asked)(
            self.places, self.method, self.direction
        )
        return list(found)

    def outcome(self, number: int) -> list[Guarantee] | str:
        """Return the answers of one composition, or why it is refused."""
        answers: list[Guarantee] = []
        reason = refusal(lambda: answers.extend(self.answers(number)))
        return reason or answers

    def outcomes(self, first: int, last: int) -> _Outcomes:
        """Return the outcomes of some compositions, as a worker does."""
        return [self.outcome(number) for number in range(first, last)]

    def table(self, numbers: Sequence[int], answers: Sequence[Guarantee]) -> Sweep:
        """Return the answers of some compositions as a table."""
        cells = []
        for number in numbers:
            cells += [self.cell(number)] * len(self.places)
        *columns, steps = zip(*cells, strict=True)
        named = dict(zip(self.axes, columns, strict=True))
        return Sweep(named, np.asarray(steps, dtype=np.int64), Curve(answers))


def sweep(
    mechanism: Mechanism,
    grid: Mapping[str, ArrayLike],
    n: ArrayLike,
    *,
    epsilon: ArrayLike | None = None,
    delta: ArrayLike | None = None,
    method: MethodName = "contour",
    direction: Direction = "both",
    progress: Callable[[int, int], object] | None = None,
    executor: Executor | None = None,
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
        Called with how many compositions are done, and how many there are.
    executor
        Anything with the `submit` of `concurrent.futures`: a process pool's, or a cluster's. The
        compositions are split among its workers.

    Returns
    -------
    Sweep, its rows in the order of the parameters, then n, then ε or δ, the last one fastest;
    combinations that are refused have no rows, and `refused` says why.

    Raises
    ------
    InputError
        If an axis is empty, a parameter is missing, unknown or out of its domain, or not exactly
        one of ε and δ is given; or what refuses the first combination, where all are refused.
    AccuracyError
        The same where no combination reaches its accuracy; or if a worker ended.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> table = sweep(mechanisms.gaussian, {"sigma": [4, 5]}, [10, 20], delta=1e-5)
    >>> [f"{epsilon:.6f}" for epsilon in table.epsilon]
    ['3.341409', '4.983306', '2.594383', '3.848610']
    >>> table.to_csv().splitlines()[0]
    'sigma,n,epsilon,delta,lower,upper,kind,method,direction'
    """
    asked = _asked(mechanism, grid, n, epsilon, delta, method, direction)
    for name, values in asked.axes.items():
        for value in values:
            asked.mechanism(**{name: value})  # one that is refused by itself is a slip
    if executor is None:
        parts = (asked.outcomes(k, k + 1) for k in range(asked.size))
    else:
        step = -(-asked.size // _TASKS)
        ends = [(k, min(k + step, asked.size)) for k in range(0, asked.size, step)]
        futures = [executor.submit(asked.outcomes, *pair) for pair in ends]
        parts = (answer_of(future) for future in futures)
    outcomes: _Outcomes = []
    for part in parts:
        outcomes += part
        if progress is not None:
            progress(len(outcomes), asked.size)
    answered = [k for k, outcome in enumerate(outcomes) if not isinstance(outcome, str)]
    if not answered:
        asked.answers(0)  # which raises what refuses it
    answers = [answer for k in answered for answer in outcomes[k]]
    refused = [
        (dict(zip([*asked.axes, "n"], asked.cell(k), strict=True)), outcome)
        for k, outcome in enumerate(outcomes)
        if isinstance(outcome, str)
    ]
    table = asked.table(answered, cast("list[Guarantee]", answers))
    return replace(table, refused=tuple(refused))


def _asked(
    mechanism: Mechanism,
    grid: Mapping[str, ArrayLike],
    n: ArrayLike,
    epsilon: ArrayLike | None,
    delta: ArrayLike | None,
    method: MethodName,
    direction: Direction,
) -> _Grid:
    """Return what is asked; InputError where it is no question."""
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
    return _Grid(mechanism, axes, counts, asked, places, method, direction)


def _axis(values: Any) -> list[Any]:
    """Return the values along an axis of the grid as Python numbers or text."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        return [values.item() if isinstance(values, np.generic) else values]
    if isinstance(values, np.ndarray):
        if values.ndim > 1:
            raise InputError(f"an array of {values.ndim} dimensions: one dimension is needed")
        return list(np.atleast_1d(values).tolist())
    return [value.item() if isinstance(value, np.generic) else value for value in values]


@dataclass(frozen=True)
class Sensitivity:
    """dε/dθ at fixed δ.

    Attributes
    ----------
    derivative
        dε/dθ; for the number of steps ε(n+1) − ε(n), what one more step adds.
    error
        An estimate of how far off it is.
    elasticity
        (θ/ε) dε/dθ: by how many per cent ε grows where the parameter grows by one; NaN at ε = 0.
    """

    derivative: float
    error: float
    elasticity: float


def sensitivities(
    mechanism: Mechanism, n: int, delta: float, direction: Direction = "both"
) -> dict[str, Sensitivity]:
    """Return how ε(δ) of a number of steps moves with each parameter, the rate and that number.

    Whole-number parameters are left out; the rate is "rate", that number "n".

    Parameters
    ----------
    mechanism, n
        A step with all its parameters bound by keyword, and how often it is taken.
    delta
        In (0, 1); ε must be positive there.
    direction
        "remove", "add", or "both": the larger of the two where the parameters are as given.

    Examples
    --------
    For the Gaussian mechanism ε depends on √n/σ alone, so that σ dε/dσ is about −2n times what one
    more step adds.

    >>> import symdp
    >>> step = symdp.mechanisms.gaussian(sigma=2)
    >>> found = sensitivities(step, 100, 1e-5)
    >>> print(f"{found['sigma'].derivative:.6f} {found['n'].derivative:.6f}")
    -23.069741 0.230438
    """
    steps = Composition([(a_mechanism(mechanism).require_concrete(), n)])
    slopes = gradient(steps, delta=delta, direction=direction)
    epsilon = slopes.answer.epsilon
    listed = {}
    for slope in slopes.slopes:
        if slope.parameter not in (COUNT, SENSITIVITY):
            elasticity = slope.derivative * slope.value / epsilon
            listed[slope.parameter] = Sensitivity(slope.derivative, slope.error, elasticity)
    side = cast("Direction", slopes.direction)
    longer = Composition([(mechanism, n + 1)]).epsilon(delta, direction=side)
    more = longer.epsilon - epsilon
    listed[COUNT] = Sensitivity(more, 4e-13 * epsilon, n * more / epsilon)
    return listed
