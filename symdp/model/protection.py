"""Whose privacy a composition speaks of: the relation that all of its steps share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from symdp.arguments import AT_MOST, EXACTLY
from symdp.errors import InputError
from symdp.model.average import AVERAGE, SUM
from symdp.model.dominating import is_attained
from symdp.model.relation import (
    DOWNWARDS,
    ONE_SIGN,
    PAIR,
    SEVERAL_SIGNS,
    UPWARDS,
    Protection,
    protects,
)
from symdp.model.renyi_curve import RenyiCurve

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism


# What holds for every step: the first of these.
_NARROWEST = (EXACTLY, SEVERAL_SIGNS, UPWARDS, DOWNWARDS, ONE_SIGN, AT_MOST)


def protection_of(
    mechanisms: Sequence[Mechanism], shifts: Sequence[str] = (), is_of_all_shifts: bool = False
) -> Protection:
    """Return the relation and the group size that all steps of a composition share.

    A pair of laws that was given fits any relation of single records: its author says which.

    Parameters
    ----------
    mechanisms
        The steps.
    shifts
        How far a record may move the output of each, see `Protection`; of any order.
    is_of_all_shifts
        Whether a step's noise has several modes and its pair bounds every shift.

    Raises
    ------
    InputError
        If two steps speak of different neighbours: their losses do not add up to anything.
    """
    schemes = dict.fromkeys("none" if m.sampling is None else m.sampling.scheme for m in mechanisms)
    averages = any(m.sampling is not None and m.sampling.released == AVERAGE for m in mechanisms)
    released = AVERAGE if averages else SUM
    if {UPWARDS, DOWNWARDS} <= set(shifts):
        shifts = (*shifts, SEVERAL_SIGNS)
    shift = next((one for one in _NARROWEST if one in shifts), "")
    attained = all(map(is_attained, mechanisms)) and not is_of_all_shifts
    by_curve = any(isinstance(m.source, RenyiCurve) for m in mechanisms)
    told = (attained, released, shift, is_of_all_shifts, by_curve)
    sampling = ", ".join(schemes)
    found = {(m.neighbours, m.group): m for m in mechanisms if m.neighbours != PAIR}
    if not found:
        return Protection(PAIR, sampling, 1, *told)
    (first, one), *others = found.items()
    if others:
        second, other = others[0]
        raise InputError(
            f"{one.summary} protects {protects(*first)}, {other.summary} {protects(*second)}: "
            "one composition has one neighbouring relation; give every step the same"
        )
    if first[1] > 1 and any(m.neighbours == PAIR for m in mechanisms):
        raise InputError(
            f"a pair of laws speaks of one record, {one.summary} of {first[1]}: "
            "compose steps of one group size"
        )
    return Protection(first[0], sampling, first[1], *told)
