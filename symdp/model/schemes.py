"""Sampling schemes: how a step draws its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import sympy as sp

from symdp.arguments import instance
from symdp.errors import InputError, suggestion
from symdp.model.average import AVERAGE, RATE_AVERAGE, RELEASED, SUM
from symdp.model.reading.guarded import sign_of, substitute

SCHEMES = (
    "poisson",
    "without_replacement",
    "with_replacement",
    "truncated_poisson",
    "random_allocation",
)
ALLOCATION = "random_allocation"
_LOWER = (
    "no pair is known to dominate {}; a lower bound is all that is published. What is proved: "
    "random_allocation, where every record draws its step on its own, and poisson"
)
_WEIGHTED = (
    "the chance of a record depends on the weights of all others, so that one record changes all "
    "chances; let each record have a coin whose rate the others do not change, and ask poisson at "
    "the largest of these rates"
)
UNPROVED = {
    **dict.fromkeys(
        ("shuffle", "shuffled", "shuffled_batches", "shuffling"),
        _LOWER.format("batches cut from one shuffled pass over the records"),
    ),
    "correlated_noise": _LOWER.format("noise that is correlated over the steps, records in bins"),
    **dict.fromkeys(("weighted", "weighted_random", "weighted_sampling"), _WEIGHTED),
}
_OTHER_NAMES = {
    "balls_in_bins": ALLOCATION, "balls_and_bins": ALLOCATION, "k_out_of_t": ALLOCATION,
    "wor": "without_replacement", "fixed_size": "without_replacement",
    "wr": "with_replacement", "bernoulli": "poisson",
}  # fmt: skip
LARGEST_BATCH = 10**12
LARGEST_GROUP = 100_000
_BATCH = {
    "poisson": "",
    "without_replacement": "",
    "with_replacement": "the number of draws",
    "truncated_poisson": "the most records that are kept",
    "random_allocation": "",
}
LARGEST_ALLOCATION = 10**9
_WITH_BATCH = ("with_replacement", "truncated_poisson")
_ALLOCATED = {
    "steps": "the number of steps of an epoch",
    "participations": "in how many of them a record takes part",
}


@dataclass(frozen=True)
class Sampling:
    """How a step draws its records: a scheme, its rate q, and what else the scheme needs.

    - poisson: every record takes part with probability q, each on its own;
    - without_replacement: a batch of fixed size, a share q of all records;
    - with_replacement: `batch` draws, each of them a given record with probability q;
    - truncated_poisson: a Poisson batch of which `batch` records, drawn at random, are kept where
      there are more; `records` is the number of all records;
    - random_allocation: every record takes part in `participations` of `steps` steps, which are
      drawn at random for each record on its own; one such run over all steps, an epoch, counts as
      one step of a composition. The rate is `participations` / `steps`.

    `group` is the number of records that are protected together; groups without replacement need
    `records` too. `released` is what is seen of a batch: "sum", the noisy sum or that divided by a
    constant, or "average", divided by the number of records that were drawn, which needs `records`
    and Poisson sampling. The pairs that follow stand in `symdp.model.dominating`.
    """

    scheme: str
    rate: sp.Expr
    batch: int | None = None
    records: int | None = None
    group: int = 1
    steps: int | None = None
    participations: int | None = None
    released: str = SUM

    def checked(self) -> Sampling:
        """Return the sampling; InputError where its scheme and its numbers do not fit together."""
        instance(self.scheme, str, "a sampling scheme has a name such as 'poisson'")
        if self.scheme in UNPROVED:
            raise InputError(f"{self.scheme}: {UNPROVED[self.scheme]}")
        if self.scheme not in SCHEMES:
            raise InputError(f"unknown sampling scheme {self.scheme!r:.60}{hint(str(self.scheme))}")
        if type(self.group) is not int or not 1 <= self.group <= LARGEST_GROUP:
            raise InputError(
                f"the group must be a whole number from 1 to {LARGEST_GROUP}, not {self.group!r}"
            )
        if self.group > 1 and self.scheme in {"truncated_poisson", ALLOCATION}:
            raise InputError(f"no pair is proved for groups under {self.scheme}; use group 1")
        self._check_released()
        self._check_allocation()
        self._check_number("batch", self.scheme in _WITH_BATCH, _BATCH[self.scheme])
        self._check_number("records", self._needs_records, "how many there are in all")
        if self.records is not None and self.records < self.group:
            raise InputError(f"a group of {self.group} out of {self.records} records is too large")
        return self

    def at(self, rate: sp.Expr) -> Sampling:
        """Return the sampling at a rate; InputError for a number that is no probability."""
        if not rate.free_symbols and (sign_of(rate) < 0 or sign_of(rate - 1) > 0):
            raise InputError(f"the sampling rate must be a probability, 0 to 1, not {rate}")
        return replace(self, rate=rate)

    @property
    def _needs_records(self) -> bool:
        grouped = self.scheme == "without_replacement" and self.group > 1
        return grouped or self.scheme == "truncated_poisson" or self.released == AVERAGE

    def _check_released(self) -> None:
        if self.released == RATE_AVERAGE:
            raise InputError(
                "rate_average: where the sum is divided by the rate times len(data), a record more "
                "or less changes the noise of every coordinate, so that no bound holds without "
                "their number. Divide by a constant, or hold the number of records public and ask "
                "zero_out or substitution: then released is sum"
            )
        if self.released not in RELEASED:
            choices = (*RELEASED, RATE_AVERAGE)
            hint = suggestion(str(self.released), choices) or f"; there are {', '.join(choices)}"
            raise InputError(f"unknown value of released {self.released!r:.60}{hint}")
        if self.released == AVERAGE and (self.scheme != "poisson" or self.group > 1):
            what = self.scheme if self.group == 1 else f"a group of {self.group}"
            raise InputError(
                f"released = average: a pair is proved for poisson sampling of single records, not "
                f"for {what}; divide by a constant, then released is sum"
            )

    def _check_allocation(self) -> None:
        for name in ("steps", "participations"):
            value = getattr(self, name)
            if self.scheme != ALLOCATION and value is not None:
                raise InputError(f"{self.scheme} sampling takes no {name}; leave it out")
            if self.scheme == ALLOCATION and value is None:
                raise InputError(f"random_allocation needs {name}: {_ALLOCATED[name]}")
            if value is not None and (type(value) is not int or not value >= 1):
                raise InputError(f"{name} must be a whole number of 1 or more, not {value!r:.40}")
        if self.steps is None or self.participations is None:
            return
        if self.participations > self.steps:
            raise InputError(
                f"participations = {self.participations} is more than steps = {self.steps}: a "
                "record takes part in a step at most once"
            )
        if self.steps > LARGEST_ALLOCATION:
            raise InputError(
                f"steps = {self.steps}: at most {LARGEST_ALLOCATION} are accounted for"
            )

    def _check_number(self, name: str, needed: bool, what: str) -> None:
        value = getattr(self, name)
        if value is None and needed:
            raise InputError(f"{self.scheme} sampling needs {name}: {what}")
        if value is not None and not needed:
            raise InputError(f"{self.scheme} sampling takes no {name}; leave it out")
        if value is not None and (type(value) is not int or not 1 <= value <= LARGEST_BATCH):
            raise InputError(
                f"{name} must be a whole number from 1 to {LARGEST_BATCH}, not {value!r:.40}"
            )

    def substitute(self, values: Mapping[sp.Symbol, sp.Expr]) -> Sampling:
        """Return the sampling with values in place of symbols."""
        return self.at(substitute(self.rate, values))

    def describe(self) -> str:
        """Return scheme and numbers in words."""
        if self.scheme == ALLOCATION:
            return f"random allocation, {self.participations} of {self.steps} steps"
        text = f"{self.scheme} sampling at rate {self.rate}"
        text += f", batch {self.batch}" if self.batch else ""
        text += f", {self.records} records" if self.records else ""
        text += f", groups of {self.group}" if self.group > 1 else ""
        return text + (", averages released" if self.released == AVERAGE else "")


NAMES = (*SCHEMES, *UNPROVED, *_OTHER_NAMES)  # of schemes, also of those that are refused


def hint(scheme: str) -> str:
    """Return what an unknown scheme is called here, or which there are."""
    if scheme in _OTHER_NAMES:
        return f"; it is called '{_OTHER_NAMES[scheme]}' here"
    return suggestion(scheme, SCHEMES) or f"; there are {', '.join(SCHEMES)}"


def allocation(steps: int | None, participations: int | None = None) -> Sampling:
    """Return random allocation to a number of steps, one of them where no number is given."""
    part = 1 if participations is None else participations
    rate = sp.Integer(1)
    if type(part) is int and type(steps) is int and 1 <= part <= steps:
        rate = sp.Rational(part, steps)
    return Sampling(ALLOCATION, rate, steps=steps, participations=part)
