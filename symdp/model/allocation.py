r"""The pair of random allocation: a record takes part in one of t steps, drawn uniformly.

Let (P, Q) dominate one step with the record and without it. Then

.. math::

   P_t = \frac{1}{t} \sum_{i=1}^{t} Q^{i-1} \times P \times Q^{t-i}, \qquad Q_t = Q^t

dominates the t steps, for adding or removing a record. Proof: whatever the outputs so far were, a
random map that looks at them takes P and Q of one step to its output laws with and without the
record [Blackwell]. Applied one after the other to outputs of P_t or Q_t these maps give the
outputs of the t steps, with the record or without it; no map knows which step the record drew.
Records draw their steps independently, so that what the others drew may be taken as known.

The loss of (P_t, Q_t) is log(Y/t), Y the sum of the t likelihood ratios P/Q. On a finite list Y
depends on how often each outcome came: those numbers are a finite list again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import sympy as sp

from symdp.errors import InputError
from symdp.model.pair import Pair, Support
from symdp.model.sampling import MechanismRecord
from symdp.model.schemes import Sampling, allocation

M = TypeVar("M", bound=MechanismRecord)
MOST_FORMULAS = 64  # of a pair on a finite list: each probability is a formula
MOST_OUTCOMES = 20_000  # of the same in numbers


@dataclass(frozen=True)
class AllocatedPair:
    """The pair of one epoch in one direction, by the pair of one step that it is made of."""

    base: Pair  # the pair of one step, P with the record
    steps: int  # t, 2 or more
    direction: str  # "remove" or "add"

    @property
    def own(self) -> Pair:
        """The pair of one step in this direction."""
        if self.direction == "remove":
            return self.base
        return self.base.reversed()


OneStep: TypeAlias = "Pair | AllocatedPair"


def allocated_pair(pair: Pair, sampling: Sampling) -> Pair:
    """Return the pair of one epoch of random allocation from the pair of one step."""
    steps = sampling.steps
    assert steps is not None
    if sampling.participations != 1:
        raise InputError(
            "several participations are a composition of pairs, not one pair; compose the "
            "mechanism, and ask that"
        )
    if steps == 1:
        return pair
    if pair.support.kind != "points" or outcomes(pair, steps) > MOST_FORMULAS:
        raise InputError(
            f"the pair lives on {steps} outputs at once, and its loss log(Y/t) has no density in "
            "closed form; `symdp.derive` shows what it is made of, and composed it has its "
            "numbers"
        )
    return _on_counts(pair, steps)


def outcomes(pair: Pair, steps: int) -> int:
    """Return how many numbers of outcomes of t steps there are on a finite list."""
    return math.comb(steps + len(pair.support.points) - 1, steps)


def _on_counts(pair: Pair, steps: int) -> Pair:
    """Return the pair on the numbers of outcomes: multinomial under Q, times Y/t under P."""
    p = pair.P
    q = pair.Q
    assert isinstance(p, tuple)
    assert isinstance(q, tuple)
    zero = sp.S.Zero
    certain = sp.S.One
    masses_of_p = []
    masses_of_q = []
    for counts in split_counts(len(q), steps):
        # One of the t outputs follows P: the one that is outcome j does in n_j/t of all cases.
        with_record = zero
        for j, number in enumerate(counts):
            if number:
                fewer = list(counts)
                fewer[j] -= 1
                with_record += p[j] * _multinomial(fewer, q)
        masses_of_p.append(with_record)
        masses_of_q.append(_multinomial(counts, q))
    places = tuple(sp.Integer(i) for i in range(len(masses_of_q)))
    support = Support("points", -sp.oo, sp.oo, places)
    components = (tuple(masses_of_q), tuple(masses_of_p))
    return Pair(pair.variable, support, components, (zero, certain), (certain, zero))


def _multinomial(counts: list[int], masses: tuple[sp.Expr, ...]) -> sp.Expr:
    total = sp.Integer(1)
    chances = 1
    left = sum(counts)
    for number, mass in zip(counts, masses, strict=True):
        chances *= math.comb(left, number)
        left -= number
        total *= mass**number
    return sp.Integer(chances) * total


def split_counts(outcomes: int, steps: int) -> Iterator[list[int]]:
    """Yield every way to split a number of steps over outcomes."""
    if outcomes == 1:
        yield [steps]
        return
    for first in range(steps, -1, -1):
        for others in split_counts(outcomes - 1, steps - first):
            yield [first, *others]


def allocated_steps(mechanism: MechanismRecord) -> int | None:
    """Return over how many steps random allocation draws one, None for any other sampling."""
    sampling = mechanism.sampling
    if sampling is not None and sampling.participations == 1:
        return sampling.steps
    return None


def independent_steps(mechanism: M) -> list[tuple[M, int]]:
    """Return the mechanisms, with counts, whose composition this one is; itself as a rule.

    k of t steps: split at random, without a look at the data, into k blocks, of t/k steps rounded
    down or up; one step of each makes every set of k equally likely. Blocks compose: a bound.
    """
    sampling = mechanism.sampling
    if sampling is None or sampling.steps is None or sampling.participations in {None, 1}:
        return [(mechanism, 1)]
    assert sampling.participations is not None
    least, longer = divmod(sampling.steps, sampling.participations)
    blocks = [(least, sampling.participations - longer), (least + 1, longer)]
    return [
        (replace(mechanism, sampling=allocation(size, 1)), count) for size, count in blocks if count
    ]
