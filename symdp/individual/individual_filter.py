"""The individual filter: every record has the budget B, and sits out the steps it cannot pay.

[IND Alg. 1, Thm 4.1]: with S_j the records whose Σ μ² stays within B² and step j run on S_j only,
the outputs are B-GDP for every record at once, under adding or removing one.

μ is counted in whole units of about B/10¹⁴, so that decimals of seven places or more, by the size
of B, and ratios with a small denominator are exact; another number is rounded up to the next unit.
Sums of squares are whole numbers below 2¹⁰⁰ then, and a pair of doubles holds each exactly.
"""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symdp.decimal_text import rounded
from symdp.errors import InputError
from symdp.individual.filters import (
    Stateful,
    double_up,
    exact_budget,
    exactly,
    number,
    read,
    replace_state,
)
from symdp.individual.result import WARNING
from symdp.numeric.step import Array
from symdp.questions.guarantee import Alike

CONDITIONS = (
    "proved if a record's contribution depends on the record and on past outputs only, not on "
    "other records, on who is active or on how many are (sums, no averages over the active set, no "
    "batch statistics), noise and budget are fixed or known before each step, and neither the "
    "active set nor anything counted from it is released"
)
LAST = ("scale", "drop")
_PLACES = 13  # of B in units, at least: 2·B² and 64·B² in squared units stay below 2¹⁰⁰
_DENOMINATORS = 2520  # of numbers that are exact besides decimals: 1 to 10 divide it
_LARGEST_DENOMINATOR = 10**6  # of these and of B
_BEYOND = 8  # budgets: a larger μ is counted as that, since neither fits
_EXACT_POWER = 22  # of ten, in doubles
Pair: TypeAlias = tuple[Array, Array]  # whole numbers as unevaluated sums of two doubles


@dataclass(frozen=True, eq=False)
class ActiveSet(Alike):
    """Who takes part in a step."""

    # what each record's contribution is multiplied by: 1, less in its last step, 0 where it sits
    # out; shape (records,)
    scale: Array
    step: int  # its number, from 1

    @property
    def active(self) -> NDArray[np.bool_]:
        """The records that take part."""
        return np.asarray(self.scale > 0.0)


class IndividualFilter(Stateful):
    """Each record's Σ μ² up to B², exactly; the filter decides per step, not once and for all.

    A record that cannot pay a step may take part in a later, cheaper one.  With last="scale" its
    contribution is scaled instead, so that Σ μ² = B² exactly, and it is done (Remark C.3 there);
    the noise is common and is not scaled.

    Parameters
    ----------
    records
        Their number.
    budget
        B, a number or text such as "1/3"; or `epsilon` and `delta` for the largest B with
        G_B(ε) ≤ δ.
    last
        "scale" or "drop".
    path
        Where the state is kept: one JSON file, replaced before `commit` returns.

    Examples
    --------
    >>> filter = IndividualFilter(2, budget=1.0)
    >>> for _ in range(3):
    ...     taken = filter.commit([0.6, 0.1])
    >>> taken.scale.round(6).tolist(), filter.spent.round(6).tolist()
    ([0.881917, 1.0], [1.0, 0.03])
    >>> tenths = IndividualFilter(1, budget=1, last="drop")
    >>> [bool(tenths.commit([0.1]).active[0]) for _ in range(101)].count(True)
    100
    """

    def __init__(
        self,
        records: int,
        budget: float | str | Fraction | None = None,
        *,
        epsilon: float | str | None = None,
        delta: float | str | None = None,
        last: str = "scale",
        path: str | Path | None = None,
    ) -> None:
        super().__init__(path)
        if isinstance(records, bool) or not isinstance(records, int) or records < 1:
            raise InputError(f"records = {records!r}: a whole number of at least 1 is needed")
        if last not in LAST:
            raise InputError(f"last = {last!r}: it is 'scale' or 'drop'")
        self._exact = exact_budget(budget, epsilon, delta)
        self.budget = double_up(self._exact)
        both = math.lcm(self._exact.denominator, _DENOMINATORS)
        self._per_unit = both if both <= _LARGEST_DENOMINATOR else _DENOMINATORS
        places = math.floor(math.log10(self.budget * self._per_unit))
        self._decimals = _PLACES - places
        self._scale = self._per_unit * Fraction(10) ** self._decimals  # units in 1
        self._most = _split_whole(math.floor(self._exact**2 * self._scale**2))
        self.last = last
        self._sums: Pair = np.zeros(records), np.zeros(records)

    def __len__(self) -> int:
        return self._sums[0].size

    @property
    def spent(self) -> Array:
        """Σ μ² of every record, never rounded down."""
        units = float(self._scale**2)
        return _next_up(_next_up(self._sums[0] + self._sums[1]) / units)

    def ask(self, mu: ArrayLike) -> ActiveSet:
        """Return who would take part in a step of these μ; nothing changes.

        μ_j^(i) of every record is its largest possible contribution over the noise, ‖f(x_i)‖/σ for
        a Gaussian sum; shape (records,).
        """
        return ActiveSet(self._decide(*self._checked_mu(mu))[0], self.n + 1)

    def commit(self, mu: ArrayLike, step: int | None = None) -> ActiveSet:
        """Charge a step to the records that take part, write the state, and return who they are.

        Run the step on these records, scaled, and release it only afterwards. Where an InputError
        is raised, as the state cannot be written, nothing has changed.
        """
        values = self._checked_mu(mu)
        self._check_order(step)
        scale, sums = self._decide(*values)
        if self.path is not None:
            replace_state(self.path, self.to_json(), self._state(sums, self.n + 1))
        self._sums = sums
        self.n = self.n + 1
        return ActiveSet(scale, self.n)

    def _checked_mu(self, mu: ArrayLike) -> Pair:
        """Return the μ of every record, and in units; both rounded up."""
        mus = np.asarray(mu)
        if mus.shape != (len(self),):
            raise InputError(f"mu of shape {mus.shape} for {len(self)} records: one each is needed")
        if mus.dtype.kind not in "fiu":  # texts and fractions
            most = _BEYOND * self._exact
            doubles = []
            whole_units = []
            for record_mu in mus.tolist():
                exact_mu = exactly(record_mu, "mu")
                doubles.append(double_up(exact_mu))
                whole_units.append(float(math.ceil(min(exact_mu, most) * self._scale)))
            return np.asarray(doubles), np.asarray(whole_units)
        values = mus.astype(np.float64)
        wrong = ~(np.isfinite(values) & (values >= 0.0))
        if wrong.any():
            record = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"mu of record {record} is {float(values[record])!r}: finite numbers of 0 or more "
                "are needed"
            )
        power = float(Fraction(10) ** self._decimals)
        most_double = _BEYOND * self.budget
        nearest = np.rint(np.minimum(values, most_double) * power)
        # A double means the decimal that it prints; of up to 15 digits there is one for each.
        has_few_digits = 0 <= self._decimals <= _EXACT_POWER
        is_decimal = (nearest / power == values) & has_few_digits
        above = np.where(values > 0.0, nearest + 2.0, 0.0)
        rounded_up = np.where(is_decimal, nearest, above)
        return values, rounded_up * self._per_unit

    def _decide(self, mu: Array, units: Array) -> tuple[Array, Pair]:
        spent, spent_below = self._sums
        after, after_below = _added(self._sums, _squared(units))
        most, least = self._most
        fits = (after < most) | ((after == most) & (after_below <= least))
        scale = fits.astype(np.float64)
        total = np.where(fits, after, spent)
        total_below = np.where(fits, after_below, spent_below)
        if self.last == "scale":
            unspent = (most - spent) + (least - spent_below)
            is_last = ~fits & (unspent > 0.0)
            rounded_down = unspent * (1.0 - 4e-16)
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.sqrt(rounded_down) / float(self._scale) / mu * (1.0 - 1e-15)
            scale = np.where(is_last, np.minimum(share, 1.0), scale)
            total = np.where(is_last, most, total)
            total_below = np.where(is_last, least, total_below)
        return scale, (total, total_below)

    def status(self) -> dict[str, Any]:
        """Return budget, how many records are used up, and what is proved."""
        budget = rounded(self.budget, 12, "up")
        done = int((self._sums[0] + self._sums[1] >= sum(self._most)).sum())
        return {
            "filter": "individual",
            "proved": f"the released outputs are {budget}-GDP for every record",
            "kind": "bound",
            "conditions": CONDITIONS,
            "budget": self.budget,
            "records": len(self),
            "used_up": done,
            "largest_spent_so_far": math.sqrt(float(self.spent.max())),
            "spent_is": "no guarantee: √Σμ² so far, of the budget fixed at the start",
            "steps": self.n,
            "warning": WARNING,
        }

    def _state(self, sums: Pair, steps: int) -> dict[str, Any]:
        packed = zlib.compress(np.ascontiguousarray(sums, dtype="<f8").tobytes(), 1)
        return {
            "filter": "individual",
            "budget": str(self._exact),
            "records": len(self),
            "last": self.last,
            "steps": steps,
            "units_spent": base64.b64encode(packed).decode("ascii"),
            "warning": WARNING,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON values; Σ μ² in squared units, as packed doubles."""
        return self._state(self._sums, self.n)

    @classmethod
    def from_state(cls, state: dict[str, Any], path: Path) -> IndividualFilter:
        """Return the filter of a state that was read."""
        budget = read(state["budget"])
        restored = cls(int(state["records"]), budget, last=state["last"], path=path)
        data = zlib.decompress(base64.b64decode(state["units_spent"]))
        sums = np.frombuffer(data, dtype="<f8").astype(np.float64)
        restored.n = int(number(state["steps"], "steps"))
        records = len(restored)
        if sums.size != 2 * records:
            raise InputError(f"{path}: the state does not have its {state['records']} records")
        restored._sums = sums[:records], sums[records:]
        return restored


def _next_up(values: Array) -> Array:
    return np.where(values > 0.0, np.nextafter(values, np.inf), 0.0)


def _split_whole(value: int) -> tuple[float, float]:
    """Return a whole number below 2¹⁰⁶ as the double next to it and the rest."""
    near = float(value)
    return near, float(value - int(near))


def _added(a: Pair, b: Pair) -> Pair:
    """Return the sum of two pairs, exactly for whole numbers below 2¹⁰⁰."""
    high, low = _two_sum(a[0], b[0])
    return _two_sum(high, low + a[1] + b[1])


def _two_sum(a: Array, b: Array) -> Pair:
    """Return a + b rounded, and what rounding lost [Knuth]."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _squared(value: Array) -> Pair:
    """Return the square of whole numbers below 2⁵³, exactly [Dekker; Veltkamp]."""
    square = value * value
    high = value * 134217729.0
    high = high - (high - value)
    low = value - high
    return square, ((high * high - square) + 2.0 * high * low) + low * low
