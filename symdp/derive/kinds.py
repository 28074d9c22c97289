"""What `symdp.derive` gives for each kind of mechanism: of one pair, of cases, without any pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from symdp.derive.derivation import PairDerivation, derive_cases
from symdp.derive.printed import Derivation
from symdp.derive.without_pair.epoch import derive_epoch, has_no_single_pair
from symdp.derive.without_pair.local import derive_local
from symdp.derive.without_pair.vectors import derive_vectors
from symdp.errors import InputError, suggestion
from symdp.model.dominating import is_on_vectors
from symdp.model.mechanism import Mechanism, a_mechanism
from symdp.model.relation import is_local
from symdp.turns import in_turn

if TYPE_CHECKING:
    from typing import NoReturn

DIRECTIONS = ("remove", "add")


@dataclass(frozen=True)
class CasesDerivation(Derivation):
    """What `derive` finds where the order of parameters decides: one derivation for each order.

    Texts say once what all cases share. A formula is asked of one of `cases`.

    Attributes
    ----------
    mechanism, direction : what was derived
    derivations : each with what it assumes in `mechanism.assumptions`
    """

    mechanism: Mechanism
    direction: str
    derivations: tuple[PairDerivation, ...]

    @property
    def cases(self) -> tuple[PairDerivation, ...]:
        """One derivation for each order of the parameters."""
        return self.derivations

    @property
    def headline(self) -> str:
        """What was derived, in one line."""
        count = f"{len(self.derivations)} cases, by the order of the parameters"
        return f"{super().headline}; {count}"

    def __repr__(self) -> str:
        return f"<Derivation of {self.headline}>"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(self._without(name))

    def _without(self, name: str) -> str:
        if not hasattr(PairDerivation, name):
            return super()._without(name)
        return (
            f"the order of parameters decides {name}: ask each of d.cases, as d.cases[0].{name}, "
            "or derive the mechanism with values, or under an assumption"
        )


@in_turn
def derive(mechanism: Mechanism, direction: str = "remove", time_limit: float = 20.0) -> Derivation:
    """Derive the privacy loss of a mechanism, its pieces, range, atoms, CGF and expansions.

    Every mechanism has a derivation, whose `cases` are itself but where the order of parameters
    without value decides how the pieces of a density follow each other: there each order has one.

    Parameters
    ----------
    mechanism : Mechanism
        Parameters may be free.
    direction : {"remove", "add"}
        (P, Q) as given, or (Q, P).
    time_limit : float
        Seconds that may be worked for all parts together, three fifths of them for the CGF; each of
        several cases has half of them.  What is not found in time is left unsimplified, or absent
        with that reason.

    Returns
    -------
    Derivation
        `PairDerivation` of a pair on a line, on integers or on a list; `CasesDerivation` of several
        orders; `EpochDerivation` of random allocation; `VectorDerivation` of noise on vectors that
        has no pair on a line; `LocalDerivation` of a local randomizer (all in `symdp.derive`).

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
    >>> d = symdp.derive(symdp.mechanisms.laplace)
    >>> d.loss_range
    (-1/b, 1/b)
    >>> symdp.derive(symdp.mechanisms.gaussian).cumulant(2)
    sigma**(-2)
    >>> uniform = symdp.Mechanism.from_toml('''
    ... name = "uniform"
    ... variable = "x"
    ... support = ["-w", "w"]
    ... [parameters]
    ... w = "positive"
    ... [noise]
    ... density = "1/(2*w)"
    ... ''')
    >>> [(d.mechanism.assumptions, d.mass_at_infinity) for d in symdp.derive(uniform).cases]
    [(('w > 1/2',), 1/(2*w)), (('w < 1/2',), 1)]
    """
    mechanism = a_mechanism(mechanism)
    if direction not in DIRECTIONS:
        hint = suggestion(str(direction), DIRECTIONS)
        raise InputError(f"the direction must be remove or add, not {direction!r:.40}{hint}")
    if not 0 <= time_limit < float("inf"):
        raise InputError(f"time_limit must be a number of seconds from 0 up, not {time_limit}")
    if is_on_vectors(mechanism):
        return derive_vectors(mechanism, direction, time_limit)
    if is_local(mechanism):
        return derive_local(mechanism, time_limit)
    if has_no_single_pair(mechanism):
        return derive_epoch(mechanism, direction, time_limit)
    cases = derive_cases(mechanism, direction, time_limit)
    if len(cases) == 1:
        return cases[0]
    return CasesDerivation(mechanism, direction, cases)
