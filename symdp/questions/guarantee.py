"""What an accountant's answer becomes for people: numbers, what they are, and their sources.

One is a `Guarantee`, many a `Curve`. Of several, as of directions or parts of the data, the largest
answers. A chain is as strong as its weakest link: the largest of a bound and of an estimate is an
estimate, as the larger one may be the one that was estimated. Only what is proved to lie below
another one, end to end, has no part in the answer.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from symdp.arguments import instance, listed, real
from symdp.axes import axes_or_new
from symdp.decimal_text import (
    SMALLEST_LOG,
    Side,
    as_double,
    digits_of,
    exponential,
    formatted,
    given,
    rounded,
    rounded_exponential,
)
from symdp.durable import replace_text
from symdp.errors import AccuracyError, InputError, suggestion
from symdp.tolerances import MASS_ROUNDED, SUMS_ROUNDED

if TYPE_CHECKING:
    from decimal import Decimal
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from symdp.arguments import Direction, MethodName
    from symdp.model.relation import Protection
    from symdp.numeric.answer import Answer, Kind

    One = float | Fraction | Decimal | np.number[Any] | str  # a number that a question takes
    Many = Sequence[float] | NDArray[Any]

# A value and the ends of its interval are rounded apart; by more than this, relatively to their
# size and to one, they do not differ by rounding.
_NO_DIGIT = 0.5  # relative: ends that are so far apart leave no digit of a number
_FEWEST_DIGITS = 2  # that are shown, the last of them rounded up
KINDS: tuple[Kind, ...] = ("exact", "bound", "estimate")  # from the strongest to the weakest
_FEW_POINTS = 20  # of a drawn curve, from which on its points need no marks
_MOST_ROWS = 40  # of a table; the rest is counted in its last row
_COLUMNS = ("epsilon", "delta", "lower", "upper", "kind", "method", "direction", "n")  # of CSV
_FRAMES = ("pandas", "polars")
# Where an answer has what was asked for, and its ends.
_OWN = {
    "delta": ("log_delta", "log_lower", "log_upper"),
    "epsilon": ("epsilon", "epsilon_lower", "epsilon_upper"),
}


@dataclass(frozen=True, repr=False)
class Guarantee:
    """An (ε, δ) of a composition: one of them was asked for, the other given.

    Attributes
    ----------
    epsilon, log_delta
        ε in nats, and the natural logarithm of δ, which has no smallest value.
    log_lower, log_upper
        The method's bounds on log δ where δ was asked for; None where it has none.
    epsilon_lower, epsilon_upper
        The same on ε where ε was asked for.
    target_delta
        The δ that an ε was asked for, as it was given.
    protection
        The neighbouring relation and the sampling: whose privacy this is.
    route
        The row of `symdp.methods.route.ROUTES` by which the default method answered.
    mass
        Whether the densities were proved to have mass 1, or two quadratures found it.
    quantity
        What was asked for, "delta" or "epsilon".
    kind
        "exact": the exact formula in floating point, its error estimate in the bounds; "bound":
        proved to be no better than the truth; "estimate": neither. What is exact for a pair that
        only dominates is a bound, whatever computed it.
    method, direction, n, seconds, citations
        The accountant, the direction of the larger δ, the number of steps, the time taken, in
        which equal answers may differ, and the sources.
    advice
        Empty, or what is wrong with this number and what to use instead.
    kind_for_pair
        The kind that the number has for the pair of laws.
    """

    epsilon: float
    log_delta: float
    kind: Literal["exact", "bound", "estimate"]
    method: str
    direction: str
    n: int
    quantity: Literal["delta", "epsilon"] = "delta"
    log_lower: float | None = None
    log_upper: float | None = None
    epsilon_lower: float | None = None
    epsilon_upper: float | None = None
    advice: str = ""
    seconds: float = field(default=0.0, compare=False)
    citations: tuple[str, ...] = ()
    target_delta: float | None = None
    protection: Protection | None = None
    route: str = ""
    kind_for_pair: Literal["", "exact", "bound", "estimate"] = ""
    mass: Literal["", "proved", "seen"] = ""

    def __post_init__(self) -> None:
        """Put a value that rounding took out of its interval back; refuse any other outside it.

        What is exact for a pair that only dominates becomes a bound, the upper end of its interval.
        """
        if not self.kind_for_pair:
            object.__setattr__(self, "kind_for_pair", self.kind)
        dominates = self.protection is not None and not self.protection.is_attained
        name = _OWN[self.quantity][0]
        (value, lower, upper) = self._value_and_ends
        if self.kind == "exact" and dominates:
            object.__setattr__(self, "kind", "bound")
            value = value if upper is None else upper
        low, high = -math.inf if lower is None else lower, math.inf if upper is None else upper
        inside = value if low <= value <= high else min(max(value, low), high)
        # Other than by rounding none lies outside; NaN is nowhere.
        near = inside == value or abs(value - inside) <= MASS_ROUNDED * max(1.0, abs(value))
        if not (near and low <= high):
            what = f"{self.method}: {name} = {value!r} is not between {lower!r} and {upper!r}"
            raise AccuracyError(f"{what}; a bug in symdp, please report it")
        object.__setattr__(self, name, inside)

    @property
    def _value_and_ends(self) -> tuple[float, float | None, float | None]:
        """What was asked for, δ as its logarithm, and its ends."""
        value, lower, upper = _OWN[self.quantity]
        return getattr(self, value), getattr(self, lower), getattr(self, upper)

    @property
    def _rounding_side(self) -> Side:
        """Where the value is rounded to as a double: a proved bound is rounded up."""
        if self.kind == "bound":
            return "up"
        return "nearest"

    def _shown(self) -> tuple[float, Side]:
        """Return the number that is shown, δ as its logarithm, and where it is rounded to.

        Whoever reads it relies on it: where there is an interval, its upper end is shown, rounded
        up. An estimate promises nothing and is rounded to nearest.
        """
        value, _, upper = self._value_and_ends
        if self.kind == "estimate":
            return value, "nearest"
        return (value if upper is None else max(value, upper)), "up"

    @property
    def delta(self) -> float:
        """δ as a double, where `log_delta` has it below the double range too.

        Down there it is 0.0; a proved bound, which must not be too small, is rounded up.
        """
        if self.target_delta is not None:
            return self.target_delta
        return as_double(self.log_delta, self._rounding_side)

    @property
    def lower(self) -> float | None:
        """The lower bound on what was asked for."""
        end = self._value_and_ends[1]
        if end is None or self.quantity == "epsilon":
            return end
        return as_double(end, "down")

    @property
    def upper(self) -> float | None:
        """The upper bound on what was asked for."""
        end = self._value_and_ends[2]
        if end is None or self.quantity == "epsilon":
            return end
        return as_double(end, "up")

    @property
    def value(self) -> float:
        """What was asked for: δ, or ε."""
        if self.quantity == "epsilon":
            return self.epsilon
        return self.delta

    @property
    def at_most(self) -> float:
        """What the value is at most: its upper end where there is one, else itself."""
        if self.upper is None:
            return self.value
        return self.upper

    def __float__(self) -> float:
        return self.value

    def __lt__(self, other: object) -> bool:
        """Whether it is below a number, or another answer, by what both are at most."""
        return self.at_most < self._compared(other)

    def __le__(self, other: object) -> bool:
        return self.at_most <= self._compared(other)

    def __gt__(self, other: object) -> bool:
        return self.at_most > self._compared(other)

    def __ge__(self, other: object) -> bool:
        return self.at_most >= self._compared(other)

    def _compared(self, other: object) -> float:
        """Return the number that an answer is compared with."""
        if isinstance(other, Guarantee):
            if other.quantity != self.quantity:
                raise InputError("an ε and a δ are not compared: take .epsilon or .delta of both")
            return other.at_most
        return real(other, "a number to compare with")

    def __format__(self, specification: str) -> str:
        """Return the value by a format specification of floats, rounded up unless an estimate."""
        if not specification:
            return str(self)
        number, side = self._shown()
        value = _power_of_e(number, side) if self.quantity == "delta" else number
        return formatted(value, specification, side)

    def _repr_html_(self) -> str:
        """Return the number, its interval, where it comes from, and its advice."""
        epsilon = self.epsilon_text()
        delta = self.delta_text()
        head = f"δ({epsilon}) {self.sign} <b>{delta}</b>"
        if self.quantity == "epsilon":
            head = f"ε(δ = {delta}) {self.sign} <b>{epsilon}</b>"
        low, high = self.bound_texts(12)
        ends = "" if low is None or high is None else f", between {low} and {high}"
        kind = {"bound": "a proved bound", "estimate": "an estimate"}.get(self.kind, self.kind)
        what = f"{kind} by {self.method}{ends}; direction {self.direction}, {self.n} steps"
        note = f"<br><em>{escape(self.advice)}</em>" if self.advice else ""
        return f"<div>{head}<br><small>{escape(what)}</small>{note}</div>"

    @property
    def sign(self) -> Literal["=", "≤"]:
        """ "≤" where no digit of the number is known but an upper end, else "="."""
        if self._gap() >= _NO_DIGIT:
            return "≤"
        return "="

    def _gap(self) -> float:
        """Return how far the ends of what is exact lie apart, relative to the upper one."""
        _, lower, upper = self._value_and_ends
        if self.kind_for_pair != "exact" or lower is None or upper is None or not lower < upper:
            return 0.0
        if self.quantity == "delta":
            return -math.expm1(lower - upper)
        if upper:
            return (upper - lower) / abs(upper)
        return 1.0

    def _known_digits(self, most: int) -> int:
        """Return how many digits are known, of at most so many."""
        gap = self._gap()
        if not 0.0 < gap < math.inf:
            return most
        return max(_FEWEST_DIGITS, min(most, math.floor(-math.log10(gap)) + 1))

    def epsilon_text(self, digits: int = 12) -> str:
        """Return ε as text: as it was given, or to the digits known, no smaller than its upper end.

        `digits` is how many there are at most.
        """
        if self.quantity == "delta":
            return given(self.epsilon)
        number, side = self._shown()
        return rounded(number, self._known_digits(digits), side)

    def delta_text(self, digits: int = 12) -> str:
        """Return δ as text: as it was given, or to the digits known, no smaller than its upper end.

        `digits` is how many there are at most.
        """
        if self.target_delta is not None:
            return given(self.target_delta)
        if self.quantity == "epsilon":
            return rounded_exponential(self.log_delta, digits)
        number, side = self._shown()
        return rounded_exponential(number, self._known_digits(digits), side)

    def bound_texts(self, digits: int = 6) -> tuple[str | None, str | None]:
        """Return the bounds on what was asked for, rounded outwards; None where there is none."""
        shown = rounded_exponential if self.quantity == "delta" else rounded
        _, low, high = self._value_and_ends
        return (
            None if low is None else shown(low, digits, "down"),
            None if high is None else shown(high, digits, "up"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values; what lies below the double range is a decimal string.

        Examples
        --------
        >>> Guarantee(1.0, -1000.0, "exact", "contour", "add", 3).to_json()["delta"]
        '5.075958897549e-435'
        """
        delta: float | str = self.delta
        lower: float | str | None = self._value_and_ends[1]
        upper: float | str | None = self._value_and_ends[2]
        if self.quantity == "delta":
            # The ends have no more digits than the value, so that rounding keeps their order.
            delta = exponential(self.log_delta, self._rounding_side)
            digits = 0 if isinstance(delta, float) else digits_of(self.log_delta)
            _, low, high = self._value_and_ends
            lower = None if low is None else exponential(low, "down", digits)
            upper = None if high is None else exponential(high, "up", digits)
        answer = {
            "epsilon": self.epsilon,
            "delta": delta,
            "lower": lower,
            "upper": upper,
            "kind": self.kind,
            "method": self.method,
            "direction": self.direction,
            "count": self.n,
            "seconds": round(self.seconds, 6),
        }
        if self.protection is not None:
            answer |= self.protection.to_json()
        more = {"route": self.route, "mass": self.mass, "advice": self.advice}
        return answer | {name: text for name, text in more.items() if text}

    def citation(self) -> str:
        """Return BibTeX entries of exactly what this answer rests on.

        Examples
        --------
        >>> answer = Guarantee(1.0, -9.0, "estimate", "msd:1", "add", 3, citations=("SPA (61)",))
        >>> answer.citation().splitlines()[0]
        '@misc{alghamdi2022saddlepoint,'
        """
        from symdp.citation import bibtex

        return bibtex(self.citations)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __str__(self) -> str:
        note = f" [{self.advice}]" if self.advice else ""
        ways = "both directions" if self.direction == "both" else f"{self.direction} direction"
        return (
            f"(ε, δ) = ({self.epsilon_text()}, {self.delta_text()}), {self.kind} by "
            f"{self.method}, {ways}, {self.n} step{'s' * (self.n != 1)}{note}"
        )


@dataclass(frozen=True)
class GaussianPrivacy:
    """The μ of the Gaussian curve that touches a privacy profile from above, and where it does."""

    mu: float
    epsilon: float
    least_delta: float

    def __float__(self) -> float:
        return self.mu


@dataclass(frozen=True)
class Link:
    """One of several answers to a question: log δ or ε, its ends, and what it is."""

    value: float
    lower: float | None
    upper: float | None
    kind: Kind
    advice: str = ""
    route: str = ""

    @classmethod
    def of(cls, answer: Answer | Guarantee) -> Link:
        """Return what was asked for; an accountant's answer is one of log δ."""
        ends = answer.log_lower, answer.log_upper
        if isinstance(answer, Guarantee):
            values = answer._value_and_ends
        else:
            values = (answer.log_delta, *ends)
        return cls(*values, answer.kind, answer.advice, answer.route)

    def entries(self, quantity: str) -> dict[str, Any]:
        """Return the entries of a guarantee that hold the value and its ends."""
        return dict(zip(_OWN[quantity], (self.value, self.lower, self.upper), strict=True))


def _power_of_e(log_value: float, side: Side) -> float | Decimal:
    """Return e^x as a double, or as a decimal below the double range."""
    if -math.inf < log_value <= SMALLEST_LOG:
        from decimal import Decimal

        return Decimal(exponential(log_value, side))
    return as_double(log_value, side)


def weakest(kinds: Iterable[Kind]) -> Kind:
    """Return the kind of what rests on numbers of several kinds."""
    return max(kinds, key=KINDS.index)


def largest(links: Mapping[str, Link]) -> tuple[str, Link]:
    """Return the name of the largest answer, the first one where rounding decides, and the largest.

    Above the largest value lies the largest upper end, if all have one; below it, every lower end.
    What is proved to be less than another one does not weaken the kind.
    """
    values = {name: link.value for name, link in links.items()}
    name = _clearly_larger(values)
    value = values[name]
    counted = _that_count(links)
    kind = weakest(link.kind for link in counted.values())
    lowers = [link.lower for link in links.values() if link.lower is not None]
    uppers = [link.upper for link in links.values() if link.upper is not None]
    upper = None
    if len(uppers) == len(links):
        upper = max(uppers)
    if kind == "bound" and upper is not None:
        value = upper
    lower = None
    if lowers:
        lower = min(max(lowers), value)
    return name, Link(value, lower, upper, kind, _advice(name, counted))


def _that_count(links: Mapping[str, Link]) -> dict[str, Link]:
    """Return the answers of which none is proved to be less than another one."""
    proved = [link for link in links.values() if link.kind != "estimate"]
    least = max((x.lower for x in proved if x.lower is not None), default=-math.inf)
    return {
        name: link
        for name, link in links.items()
        if link.kind == "estimate" or link.upper is None or link.upper >= least
    }


def _clearly_larger(values: Mapping[str, float]) -> str:
    """Return the name of the largest value; the first one where they differ by rounding only.

    Symmetric noise gives the same in both directions, and the last bit must not decide which.
    """
    first = next(iter(values))
    name = max(values, key=values.__getitem__)
    if not math.isfinite(values[first]):
        return name
    close = values[name] - values[first] <= SUMS_ROUNDED * max(1.0, abs(values[first]))
    if close:
        return first
    return name


def _advice(name: str, counted: Mapping[str, Link]) -> str:
    """Return the advice of the largest answer, or of all by name where their kinds differ."""
    kinds = {link.kind for link in counted.values()}
    if name in counted and len(kinds) == 1:
        return counted[name].advice
    advices = [f"{other}: {link.advice}" for other, link in counted.items() if link.advice]
    return "; ".join(advices)


def data_frame(columns: Mapping[str, NDArray[Any]], library: str) -> Any:
    """Return columns as a data frame of a library."""
    if library not in _FRAMES:
        hint = suggestion(str(library), _FRAMES) or f": it is {' or '.join(_FRAMES)}"
        raise InputError(f"library {library!r:.40}{hint}")
    try:
        module = import_module(library)
    except ImportError:
        raise InputError(f"a DataFrame needs {library}: pip install {library}") from None
    return module.DataFrame(dict(columns))


class Curve(Sequence[Guarantee]):
    """Guarantees for an array of ε or δ; its attributes are arrays of the same length."""

    def __init__(self, guarantees: Sequence[Guarantee]) -> None:
        values = listed(guarantees, "give a list of guarantees")
        self._guarantees = tuple(
            instance(guarantee, Guarantee, "it is no guarantee") for guarantee in values
        )

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
        if any(g.lower is None for g in self):
            return None
        return self._array("lower")

    @property
    def upper(self) -> NDArray[np.float64] | None:
        """Every upper bound, or None if the method has none."""
        if any(g.upper is None for g in self):
            return None
        return self._array("upper")

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

    def __eq__(self, other: object) -> bool:
        """Whether both have equal guarantees; the time taken does not count."""
        if not isinstance(other, Curve):
            return NotImplemented
        return self._guarantees == other._guarantees

    def __hash__(self) -> int:
        return hash(self._guarantees)

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
        rows = []
        for answer in self:
            low, high = answer.bound_texts()
            rows.append(
                (answer.epsilon_text(), answer.delta_text(), low or "", high or "", answer.kind)
            )
        return table_html(("ε", "δ", "lower", "upper", "kind"), rows)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return arrays by name: epsilon, delta, their ends, kind, method, direction, n.

        An end that is not known is NaN.

        Examples
        --------
        >>> from symdp import compose, mechanisms
        >>> curve = compose(mechanisms.gaussian(sigma=2), 3).delta([0.5, 1.5])
        >>> curve.columns()["epsilon"].tolist()
        [0.5, 1.5]
        """
        return {name: self._array(name) for name in _COLUMNS}

    def to_dataframe(self, library: str = "pandas") -> Any:
        """Return the columns as a data frame of "pandas" or "polars", which must be installed.

        Raises
        ------
        InputError
            If the library is another one, or is not installed.
        """
        return data_frame(self.columns(), library)

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
            values["n"] = answer.n
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
        if lower is not None and upper is not None and self[0].quantity == "delta":
            ax.fill_between(self.epsilon, lower, upper, color=line.get_color(), alpha=0.2)
        ax.set_yscale("log")
        ax.set_xlabel("ε (nats)")
        ax.set_ylabel("δ(ε)")
        return ax

    def to_json(self) -> dict[str, Any]:
        """Return the points as JSON values."""
        return {"points": [g.to_json() for g in self]}


class Alike:
    """Records with arrays: equal are those whose fields are, but for the time they took."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        named = [f.name for f in fields(cast("Any", self)) if f.compare]
        return all(_are_equal(getattr(self, name), getattr(other, name)) for name in named)

    __hash__ = None  # type: ignore[assignment]


def _are_equal(mine: Any, theirs: Any) -> bool:
    import numpy as np

    if isinstance(mine, dict) and isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(_are_equal(mine[k], theirs[k]) for k in mine)
    if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
        return np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f")
    return bool(mine is theirs or mine == theirs)


class Asked(ABC):
    """What answers for δ and for ε as a composition does, by way of one or several."""

    @abstractmethod
    def _ask(self, quantity: str, value: Any, *how: Any, **options: Any) -> Any:
        """Return the answer to a question by its name, "delta" or "epsilon"."""

    @overload
    def delta(
        self, epsilon: One, method: MethodName = ..., direction: Direction = ..., **options: Any
    ) -> Guarantee: ...
    @overload
    def delta(
        self, epsilon: Many, method: MethodName = ..., direction: Direction = ..., **options: Any
    ) -> Curve: ...
    def delta(
        self,
        epsilon: Any,
        method: MethodName = "contour",
        direction: Direction = "both",
        **options: Any,
    ) -> Guarantee | Curve:
        """Return δ(ε), of the parts the largest, see `Composition.delta`."""
        return cast("Guarantee", self._ask("delta", epsilon, method, direction, **options))

    @overload
    def epsilon(
        self, delta: One, method: MethodName = ..., direction: Direction = ..., **options: Any
    ) -> Guarantee: ...
    @overload
    def epsilon(
        self, delta: Many, method: MethodName = ..., direction: Direction = ..., **options: Any
    ) -> Curve: ...
    def epsilon(
        self,
        delta: Any,
        method: MethodName = "contour",
        direction: Direction = "both",
        **options: Any,
    ) -> Guarantee | Curve:
        """Return ε(δ), of the parts the largest, see `Composition.epsilon`."""
        return cast("Guarantee", self._ask("epsilon", delta, method, direction, **options))


def table_html(head: Iterable[str], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a small table, as a notebook shows it."""

    def line(cells: Iterable[str], tag: str) -> str:
        columns = [f"<{tag}>{escape(cell)}</{tag}>" for cell in cells]
        return f"<tr>{''.join(columns)}</tr>"

    lines = [line(head, "th")]
    lines += [line(row, "td") for row in rows[:_MOST_ROWS]]
    further = len(rows) - _MOST_ROWS
    if further > 0:
        lines.append(line([f"… and {further} more"], "td"))
    return f"<table>{''.join(lines)}</table>"
