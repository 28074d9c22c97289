"""A budget ledger: steps are added as they happen, and ε or δ may be asked at any time."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from symdp.arguments import checked_count
from symdp.errors import InputError, at
from symdp.model.taken import a_mechanism
from symdp.questions.composition import Composition
from symdp.questions.ledger_file import Filed
from symdp.questions.ledger_steps import read_step, written
from symdp.questions.steps import listed_steps
from symdp.turns import in_turn

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.model.sampling import Number
    from symdp.questions.composition import Direction
    from symdp.questions.guarantee import Guarantee

# One: the formulas without parameters; two: no relation, fixed batches too cheap; three: no texts.
_VERSION = 4
_READ = (1, 2, 3, 4)
_KEYS = {"format", "version", "steps"}
_WHICH = (
    "say how the batches were drawn: scheme='poisson' (every record on its own; protects one "
    "record added or removed), 'truncated_poisson', or 'without_replacement' or 'with_replacement' "
    "(batches of one size; protect one record's value); of shuffled passes no pair is known"
)


class Ledger(Filed):
    """The steps taken so far: equal ones are counted together, so a million cost one entry.

    Threads may share a ledger. A copy, pickled or not, has its own count and no file.

    Parameters
    ----------
    steps
        Pairs (mechanism, count) to begin with.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> step = mechanisms.gaussian(sigma=2).subsample("poisson", "1/100")
    >>> ledger = Ledger()
    >>> for _ in range(1000):
    ...     ledger.add(step)
    >>> print(len(ledger), ledger.count, f"{ledger.delta(0.5).delta:.12f}")
    1 1000 0.000121178974
    """

    def __init__(self, steps: Iterable[tuple[Mechanism, int]] = ()) -> None:
        self._begin({})
        for mechanism, count in listed_steps(steps):
            self.add(mechanism, count)

    def _begin(self, counts: dict[Mechanism, int]) -> None:
        self._lock = threading.RLock()
        self._counts = counts
        self._composition: Composition | None = None

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {"counts": dict(self._counts)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._begin(dict(state["counts"]))

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        where = f", {self._path}" if self._path else ""
        kinds = "1 distinct step" if len(self) == 1 else f"{len(self)} distinct steps"
        return f"Ledger({kinds}, {self.count} in all{where})"

    def _repr_html_(self) -> str:
        from symdp.questions.notebook import steps_html

        steps = self.steps
        return steps_html(steps, sum(count for _, count in steps))

    @property
    def steps(self) -> tuple[tuple[Mechanism, int], ...]:
        """The distinct steps, each with its count, in the order in which they first came."""
        with self._lock:
            return tuple(self._counts.items())

    @property
    def count(self) -> int:
        """How many steps were taken in all."""
        return sum(count for _, count in self.steps)

    def add(self, mechanism: Mechanism, count: int = 1) -> None:
        """Add `count` steps of a mechanism.

        Raises
        ------
        InputError
            If a parameter has no value, or the count is not a positive integer.
        """
        if type(count) is not int or count != 1:
            count = checked_count(count)
        if a_mechanism(mechanism) not in self._counts:
            mechanism.require_concrete()
        with self._lock:
            self._counts[mechanism] = self._counts.get(mechanism, 0) + count
            self._composition = None

    def add_history(
        self,
        mechanism: Mechanism,
        history: Iterable[tuple[Number, Number, int]],
        scheme: str | None = None,
        batch: int | None = None,
        *,
        records: int | None = None,
        relation: str | None = None,
    ) -> None:
        """Add a history of (noise multiplier, sample rate, steps), as training libraries keep it.

        Parameters
        ----------
        mechanism
            Additive noise of sensitivity 1 with one free parameter, which takes the multiplier:
            noise over what adding or removing one record moves the sum by, the clip norm.
        history
            The entries; a rate of 1 means no sampling.
        scheme
            How batches were drawn, see `Mechanism.subsample`. It must be said where a rate is below
            1: libraries that record only a rate draw in different ways, which cost differently.
        batch, records
            What the scheme needs besides its rate.
        relation
            The neighbouring relation, see `Mechanism.under`; that of the scheme if left out.

        Raises
        ------
        InputError
            If the mechanism has not one free parameter, the scheme is not said, or an entry breaks
            a rule; then nothing of the history is added.

        Examples
        --------
        >>> from symdp import mechanisms
        >>> ledger = Ledger()
        >>> history = [(2.0, 0.01, 600), (2.0, 0.01, 400)]
        >>> ledger.add_history(mechanisms.gaussian, history, "poisson")
        >>> ledger.steps
        ((<Mechanism gaussian(sigma=2), poisson sampling at rate 1/100>, 1000),)
        """
        names = list(a_mechanism(mechanism).parameters)
        if len(names) != 1:
            raise InputError(
                f"{mechanism.name} has {len(names)} free parameters; a history needs exactly one, "
                "the noise multiplier"
            )
        from symdp.model.sampling import exact

        added: dict[Mechanism, int] = {}
        for place, entry in enumerate(history, start=1):
            if not isinstance(entry, tuple | list) or len(entry) != 3:
                raise InputError(
                    f"history entry {place}: (noise multiplier, sample rate, steps) is needed"
                )
            multiplier, rate, count = entry
            with at(f"history entry {place}"):
                step = mechanism(**{names[0]: multiplier})
                if exact(rate, "the sample rate") != 1:
                    step = step.subsample(_said(scheme), rate, batch, records=records)
                step = step if relation is None else step.under(relation)
                added[step] = added.get(step, 0) + checked_count(count)
        with self._lock:
            for step, count in added.items():
                self.add(step, count)

    @in_turn
    def composition(self) -> Composition:
        """Return the composition of all steps so far; raise InputError if there is none."""
        with self._lock:
            if self._composition is None:
                if not self._counts:
                    raise InputError("the ledger is empty: add a step first")
                self._composition = Composition(self._counts.items())
            return self._composition

    def epsilon(
        self, delta: float, method: str = "contour", direction: Direction = "both", **options: Any
    ) -> Guarantee:
        """Return ε(δ) of all steps so far, see `Composition.epsilon`."""
        return self.composition().epsilon(delta, method, direction, **options)

    def delta(
        self, epsilon: float, method: str = "contour", direction: Direction = "both", **options: Any
    ) -> Guarantee:
        """Return δ(ε) of all steps so far, see `Composition.delta`."""
        return self.composition().delta(epsilon, method, direction, **options)

    def state_dict(self) -> dict[str, Any]:
        """Return the ledger as JSON values, every number exact.

        Examples
        --------
        >>> import json
        >>> from symdp import mechanisms
        >>> ledger = Ledger([(mechanisms.laplace(b=2), 3)])
        >>> text = json.dumps(ledger.state_dict())
        >>> Ledger.from_state_dict(json.loads(text)).steps == ledger.steps
        True
        """
        return {
            "format": "symdp ledger",
            "version": _VERSION,
            "steps": [
                {"mechanism": written(mechanism), "count": count} for mechanism, count in self.steps
            ],
        }

    @classmethod
    def from_state_dict(cls, state: object) -> Self:
        """Return the ledger that `state_dict` wrote; nothing in it is trusted, no text is run.

        Raises
        ------
        InputError
            If it is not what `state_dict` writes.
        """
        if not isinstance(state, dict) or state.get("format") != "symdp ledger":
            raise InputError("this is no ledger: its 'format' must be 'symdp ledger'")
        version = state.get("version")
        if type(version) is not int or version not in _READ:
            raise InputError(f"a ledger of version {version!r:.20}; known: {_READ}")
        unknown = sorted(repr(key) for key in set(state) - _KEYS)
        if unknown:
            raise InputError(f"a ledger has no {unknown[0]:.60}: only {', '.join(sorted(_KEYS))}")
        steps = state.get("steps")
        if not isinstance(steps, list):
            raise InputError("a ledger's 'steps' must be a list")
        ledger = cls()
        for place, step in enumerate(steps, start=1):
            with at(f"step {place} of the ledger"):
                ledger.add(*read_step(step))
        return ledger


def _said(scheme: str | None) -> str:
    if scheme is None:
        raise InputError(_WHICH)
    return scheme
