"""The individual filter: every record has the budget B, and sits out the steps it cannot pay.

[IND Alg. 1, Thm 4.1]: with S_j the records whose Σ μ² stays within B² and step j run on S_j only,
the outputs are B-GDP for every record at once, under adding or removing one.
"""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symdp.decimal_text import rounded
from symdp.errors import InputError
from symdp.individual.filters import budget_of
from symdp.individual.result import WARNING
from symdp.individual.state import number, replace_state
from symdp.individual.subsampled_gaussian import Array

CONDITIONS = (
    "proved if a record's contribution depends on the record and on past outputs only, not on "
    "other records, on who is active or on how many are (sums, no averages over the active set, no "
    "batch statistics), noise and budget are fixed or known before each step, and neither the "
    "active set nor anything counted from it is released"
)
LAST = ("scale", "drop")


@dataclass(frozen=True)
class ActiveSet:
    """Who takes part in a step.

    Attributes
    ----------
    scale
        What each record's contribution is multiplied by: 1, less in its last step, 0 where it sits
        out.  Shape (records,).
    step
        The step's number, from 1.
    """

    scale: Array
    step: int

    @property
    def active(self) -> NDArray[np.bool_]:
        """The records that take part."""
        return np.asarray(self.scale > 0.0)


class IndividualFilter:
    """Each record's Σ μ² up to B², rounded up; the filter decides per step, not once and for all.

    A record that cannot pay a step may take part in a later, cheaper one.  With last="scale" its
    contribution is scaled instead, so that Σ μ² = B² exactly, and it is done (Remark C.3 there);
    the noise is common and is not scaled.

    Parameters
    ----------
    records
        Their number.
    budget
        B; or `epsilon` and `delta` for the largest B with G_B(ε) ≤ δ.
    last
        "scale" or "drop".
    path
        Where the state is kept: one JSON file, replaced before `commit` returns.

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> filter = IndividualFilter(2, budget=1.0)
    >>> for _ in range(3):
    ...     taken = filter.commit([0.6, 0.1])
    >>> taken.scale.round(6).tolist(), filter.spent.round(6).tolist()
    ([0.881917, 1.0], [1.0, 0.03])
    """

    def __init__(
        self,
        records: int,
        budget: float | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        last: str = "scale",
        path: str | Path | None = None,
    ) -> None:
        if isinstance(records, bool) or not isinstance(records, int) or records < 1:
            raise InputError(f"records = {records!r}: a whole number of at least 1 is needed")
        if last not in LAST:
            raise InputError(f"last = {last!r}: it is 'scale' or 'drop'")
        self.budget = budget_of(budget, epsilon, delta)
        self.last = last
        self.path = None if path is None else Path(path)
        self.spent: Array = np.zeros(records)  # Σ μ², never rounded down
        self.count = 0

    def __len__(self) -> int:
        return self.spent.size

    @property
    def _most(self) -> float:
        """B², rounded down."""
        return math.nextafter(self.budget * self.budget, 0.0)

    def ask(self, mu: ArrayLike) -> ActiveSet:
        """Return who would take part in a step of these μ; nothing changes.

        Parameters
        ----------
        mu
            μ_j^(i) of every record: its largest possible contribution over the noise, ‖f(x_i)‖/σ
            for a Gaussian sum; shape (records,).
        """
        return ActiveSet(self._decide(self._checked(mu))[0], self.count + 1)

    def commit(self, mu: ArrayLike, step: int | None = None) -> ActiveSet:
        """Charge a step to the records that take part, write the state, and return who they are.

        Run the step on these records, scaled, and release it only afterwards.

        Raises
        ------
        InputError
            If μ has a wrong shape or value, the step is out of order, or the state cannot be
            written; then nothing has changed.
        """
        values = self._checked(mu)
        if step is not None and step != self.count + 1:
            raise InputError(
                f"step {step}: the next step is {self.count + 1}; steps are committed once each, "
                "in order"
            )
        scale, spent = self._decide(values)
        if self.path is not None:
            replace_state(self.path, self.to_json(), self._state(spent, self.count + 1))
        self.spent, self.count = spent, self.count + 1
        return ActiveSet(scale, self.count)

    def _checked(self, mu: ArrayLike) -> Array:
        values = np.asarray(mu, dtype=np.float64)
        if values.shape != self.spent.shape:
            raise InputError(
                f"mu of shape {values.shape} for {len(self)} records: one each is needed"
            )
        wrong = ~(np.isfinite(values) & (values >= 0.0))
        if wrong.any():
            record = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"mu of record {record} is {float(values[record])!r}: finite numbers of 0 or more "
                "are needed"
            )
        return values

    def _decide(self, mu: Array) -> tuple[Array, Array]:
        with np.errstate(over="ignore"):
            square = np.where(mu > 0.0, np.nextafter(mu * mu, np.inf), 0.0)
            after = np.where(square > 0.0, np.nextafter(self.spent + square, np.inf), self.spent)
        fits = after <= self._most
        scale = fits.astype(np.float64)
        spent = np.where(fits, after, self.spent)
        if self.last == "scale":
            rest = np.nextafter(self._most - self.spent, 0.0)
            last = ~fits & (rest > 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.sqrt(rest) / mu * (1.0 - 1e-15)
            scale = np.where(last, np.minimum(share, 1.0), scale)
            spent = np.where(last, self._most, spent)
        return scale, spent

    def status(self) -> dict[str, Any]:
        """Return budget, how many records are used up, and what is proved."""
        budget = rounded(self.budget, 12, "up")
        done = int((self.spent >= self._most).sum())
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
            "steps": self.count,
            "warning": WARNING,
        }

    def _state(self, spent: Array, steps: int) -> dict[str, Any]:
        packed = zlib.compress(np.ascontiguousarray(spent, dtype="<f8").tobytes(), 1)
        return {
            "filter": "individual",
            "budget": self.budget.hex(),
            "records": len(self),
            "last": self.last,
            "steps": steps,
            "spent": base64.b64encode(packed).decode("ascii"),
            "warning": WARNING,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON values; Σ μ² as packed doubles."""
        return self._state(self.spent, self.count)

    def save(self, path: str | Path | None = None) -> None:
        """Write the state, complete or not at all; another filter's is never overwritten."""
        target = self.path if path is None else Path(path)
        if target is None:
            raise InputError("this filter has no file; give save a path")
        replace_state(target, self.to_json(), self.to_json())

    @classmethod
    def from_state(cls, state: dict[str, Any], path: Path) -> IndividualFilter:
        """Return the filter of a state that was read."""
        found = cls(
            int(state["records"]), float.fromhex(state["budget"]), last=state["last"], path=path
        )
        data = zlib.decompress(base64.b64decode(state["spent"]))
        found.spent = np.frombuffer(data, dtype="<f8").astype(np.float64)
        found.count = int(number(state["steps"], "steps"))
        if found.spent.size != int(state["records"]):
            raise InputError(f"{path}: the state does not have its {state['records']} records")
        return found
