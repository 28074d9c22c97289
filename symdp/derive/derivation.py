"""Derive a mechanism of one pair: the record that holds everything, and what makes it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from symdp.citation import bibtex
from symdp.density.pieces import points
from symdp.derive import series
from symdp.derive.cases import derived_cases
from symdp.derive.limits import monotone_pieces
from symdp.derive.masses import with_known_masses
from symdp.derive.printed import Derivation, citations, in_brief
from symdp.derive.privacy_loss import FOR_CGF, PrivacyLoss
from symdp.derive.tails import Tails, derive_tails
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import Clock
from symdp.model.mechanism import Mechanism
from symdp.tolerances import MORE_TIME
from symdp.turns import in_turn


@dataclass(frozen=True)
class PairDerivation(PrivacyLoss, Derivation):
    """What `derive` finds of a pair: the privacy loss, its expansions and tail constants."""

    cumulant = series.cumulant
    cumulant_at = series.cumulant_at
    closed_form = series.closed_form
    closed_derivative = series.closed_derivative
    msd = series.msd
    saddle_terms = series.saddle_terms
    edgeworth = series.edgeworth
    asymptotics = series.asymptotics
    epsilon_asymptotics = series.epsilon_asymptotics

    @cached_property
    def tails(self) -> Tails:
        """Tail constants: Chernoff, Hoeffding, sub-Gaussian, Berry-Esseen, van der Corput."""
        return derive_tails(self)

    def citation(self) -> str:
        """Return BibTeX entries of what the derivation rests on.

        Examples
        --------
        >>> import symdp
        >>> print(symdp.derive(symdp.mechanisms.logistic).citation().splitlines()[0])
        @misc{alghamdi2022saddlepoint,
        """
        return bibtex(citations(self.mechanism))

    def __repr__(self) -> str:
        return in_brief(self)


@in_turn
def derive_pair(
    mechanism: Mechanism, direction: str = "remove", time_limit: float = 20.0
) -> PairDerivation:
    """Derive a mechanism that has one pair, whose kinks have one order."""
    pair = with_known_masses(mechanism.pair(direction))
    clock = Clock((1 - FOR_CGF) * time_limit)
    parts = clock.attempt(lambda: (monotone_pieces(pair), points(pair)), None, least=MORE_TIME)
    if parts is None:
        seconds = max(time_limit, MORE_TIME)
        raise AccuracyError(
            f"the pieces of the loss of {mechanism.name} were not found within {seconds:g} s: give "
            "values to its parameters, write its density more simply, or raise the time limit"
        )
    return PairDerivation(mechanism, direction, pair, time_limit, *parts, clock)


@in_turn
def derive_cases(
    mechanism: Mechanism, direction: str = "remove", time_limit: float = 20.0
) -> tuple[PairDerivation, ...]:
    """Derive a mechanism for each order of its parameters; each of several has half the time."""
    try:
        return (derive_pair(mechanism, direction, time_limit),)
    except InputError as error:
        derivations = derived_cases(
            mechanism, error, lambda assumed: derive_pair(assumed, direction, time_limit / 2)
        )
        if not derivations:
            raise
        return derivations
