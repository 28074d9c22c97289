r"""Clones: shuffled answers by two numbers of the randomizer alone, its local ε₀ and a share.

Every other person's law is at least r (R₀ + R₁)/2 with r = min 2ω/(R₀ + R₁), so that with
probability r the answer is a clone of the protected one [Feldman2021]; r ≥ e^{−ε₀}. The blanket,
which keeps the laws themselves, is below it. ε₀ and r are read off the nodes of the laws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from symdp.errors import InputError
from symdp.methods.route import Contour
from symdp.model.shuffle import LARGEST_EPSILON, from_shuffled
from symdp.numeric.answer import Answer
from symdp.numeric.laws.of_mechanism import loss_law
from symdp.numeric.total import SumLaw
from symdp.questions.shuffled.blanket import BlanketLaw
from symdp.tolerances import ABOVE_ROUNDING

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

NAME = "clones"


@dataclass(frozen=True)
class Clones:
    """δ of the counts of clones of the protected answer, of one round of shuffled answers."""

    name: str = NAME
    citations: tuple[str, ...] = ("Feldman2021",)
    is_exact: bool = False
    least_log_delta: float = -np.inf

    def log_delta(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the bound at one ε, of kind "bound"."""
        assert isinstance(law, BlanketLaw)
        pair = clones_of(law.mechanism, law.people)
        answer = Contour().log_delta(SumLaw([(loss_law(pair, "remove"), 1)], "remove"), epsilon)
        upper = answer.log_delta if answer.log_upper is None else answer.log_upper
        return Answer(upper, None, upper, "bound")

    def log_deltas(self, law: SumLaw, epsilons: Sequence[float]) -> list[Answer]:
        """Return log δ at several ε."""
        return [self.log_delta(law, epsilon) for epsilon in epsilons]


@lru_cache(maxsize=32)
def clones_of(mechanism: Mechanism, people: int) -> Mechanism:
    """Return the pair of the counts of clones; InputError where no ε₀ is finite."""
    from symdp.questions.shuffled.outputs import randomizer

    laws = randomizer(mechanism)
    densities = laws.outputs.densities
    counts = densities.max(axis=0) > np.finfo(float).tiny / np.finfo(float).eps
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        largest = float(np.log((densities.max(axis=0) / laws.outputs.least)[counts]).max())
    if not largest * (1.0 + ABOVE_ROUNDING) <= LARGEST_EPSILON:
        raise InputError(
            f"{mechanism.summary}: clones are of randomizers of a local epsilon of at most "
            f"{LARGEST_EPSILON}, and the ratios of these laws reach beyond; leave the method out"
        )
    share = 1.0
    for first, second in laws.pairs:
        both = densities[first][counts] + densities[second][counts]
        share = min(share, float((2.0 * laws.outputs.least[counts] / both).min()))
    size = sp.Rational(largest * (1.0 + ABOVE_ROUNDING))
    most = 2.0 / (1.0 + np.exp(float(size)))
    share = min(share * (1.0 - ABOVE_ROUNDING), float(most) * (1.0 - ABOVE_ROUNDING))
    return from_shuffled(size, people, sp.Rational(share))
