"""Derive a mechanism: the record that holds everything, and what makes it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from symdp.citation import bibtex
from symdp.density.pieces import points
from symdp.derive import series
from symdp.derive.cases import derived_cases
from symdp.derive.limits import monotone_pieces
from symdp.derive.masses import with_known_masses
from symdp.derive.printed import Printed, citations, in_brief
from symdp.derive.privacy_loss import FOR_CGF, PrivacyLoss
from symdp.derive.tails import Tails, derive_tails
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import Clock
from symdp.model.mechanism import Mechanism, a_mechanism
from symdp.turns import in_turn

_LEAST_FOR_PIECES = 5.0  # seconds; without the pieces there is nothing to say at all


@dataclass(frozen=True)
class Derivation(PrivacyLoss, Printed):
    """What `derive` found: the privacy loss, its expansions and tail constants, and their texts."""

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
def derive(mechanism: Mechanism, direction: str = "remove", time_limit: float = 20.0) -> Derivation:
    """Derive the privacy loss of a mechanism, its pieces, range, atoms, CGF and expansions.

    Parameters
    ----------
    mechanism : Mechanism
        Parameters may be free, as far as they leave the order of kinks decidable.
    direction : {"remove", "add"}
        (P, Q) as given, or (Q, P).
    time_limit : float
        Seconds that may be worked for all parts together, three fifths of them for the CGF.  What
        is not found in time is left unsimplified, or absent with that reason.

    Raises
    ------
    InputError
        For an unknown direction, a time limit that is no positive number, or a density whose kinks
        cannot be located.
    AccuracyError
        If the pieces of the loss were not found in time.

    Examples
    --------
    >>> import symdp
    >>> d = derive(symdp.mechanisms.laplace)
    >>> d.loss_range
    (-1/b, 1/b)
    >>> derive(symdp.mechanisms.gaussian).cumulant(2)
    sigma**(-2)
    """
    mechanism = a_mechanism(mechanism)
    if not 0 <= time_limit < float("inf"):
        raise InputError(f"time_limit must be a number of seconds from 0 up, not {time_limit}")
    pair = with_known_masses(mechanism.pair(direction))
    clock = Clock((1 - FOR_CGF) * time_limit)
    parts = clock.attempt(
        lambda: (monotone_pieces(pair), points(pair)), None, least=_LEAST_FOR_PIECES
    )
    if parts is None:
        seconds = max(time_limit, _LEAST_FOR_PIECES)
        raise AccuracyError(
            f"the pieces of the loss of {mechanism.name} were not found within {seconds:g} s: give "
            "values to its parameters, write its density more simply, or raise the time limit"
        )
    return Derivation(mechanism, direction, pair, time_limit, *parts, clock)


@in_turn
def derive_cases(
    mechanism: Mechanism, direction: str = "remove", time_limit: float = 20.0
) -> tuple[Derivation, ...]:
    """Derive a mechanism for each order of its parameters, where its kinks have no certain order.

    Parameters
    ----------
    mechanism, direction, time_limit
        As for `derive`; each of several cases has half of the time.

    Returns
    -------
    tuple of Derivation: one where nothing is open, else one for each case, with what it assumes.

    Raises
    ------
    InputError, AccuracyError
        As `derive` does, where no comparison of parameters decides.

    Examples
    --------
    >>> import symdp
    >>> uniform = symdp.loads('''
    ... name = "uniform"
    ... variable = "x"
    ... support = ["-w", "w"]
    ... [parameters]
    ... w = "positive"
    ... [noise]
    ... density = "1/(2*w)"
    ... ''')
    >>> [(d.mechanism.assumptions, d.mass_at_infinity) for d in derive_cases(uniform)]
    [(('w > 1/2',), 1/(2*w)), (('w < 1/2',), 1)]
    """
    try:
        return (derive(mechanism, direction, time_limit),)
    except InputError as error:
        derivations = derived_cases(
            mechanism, error, lambda assumed: derive(assumed, direction, time_limit / 2)
        )
        if not derivations:
            raise
        return derivations
