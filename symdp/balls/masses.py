"""The masses of the densities of steps: each one is checked, and made one where it was rounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from symdp.model.renyi_curve import RenyiCurve

if TYPE_CHECKING:
    from symdp.balls.density import MassCheck
    from symdp.model.mechanism import Mechanism

_MOST_CHECKED = 48  # densities of one formula
_ENOUGH = 3  # values at which a formula was seen to have mass 1, for a quadrature to check others
_PROPER: dict[str, set[tuple[tuple[str, object], ...]]] = {}  # those values, by the formula


def with_mass_one(steps: Mapping[Mechanism, int], for_proof: bool = False) -> dict[Mechanism, int]:
    """Return the steps, those whose densities carry a rounded constant divided by their masses.

    A mass that is off by 1e-12 makes δ wrong by n times as much, or by more: what P and Q mean
    then depends on who reads them. What is for a proof leaves no mass to a quadrature.

    Raises
    ------
    InputError
        If a density is negative or its mass is further from one than rounding explains.
    """
    return checked_steps(steps, for_proof)[0]


def checked_steps(
    steps: Mapping[Mechanism, int], for_proof: bool = False
) -> tuple[dict[Mechanism, int], Literal["proved", "seen"]]:
    """Return the same steps, and whether their masses were proved or found by two quadratures."""
    groups: dict[object, list[Mechanism]] = {}
    for mechanism in steps:
        if isinstance(mechanism.source, RenyiCurve):
            continue  # it has no densities
        template = mechanism.template
        groups.setdefault(mechanism.key if template is None else template.key, []).append(mechanism)
    rounded: set[Mechanism] = set()
    is_proved = True
    for members in groups.values():
        for member in _spread(members):
            known = _PROPER.get("" if member.template is None else member.template.key, ())
            if not for_proof and len(known) >= _ENOUGH:
                break
            check = _checked(replace(member, sampling=None, relation=None), for_proof)
            if not check.is_one:
                rounded.update(members)
            is_proved &= check.is_proved
    kept = {m.normalized() if m in rounded else m: count for m, count in steps.items()}
    return kept, "proved" if is_proved else "seen"


def _spread(members: list[Mechanism]) -> list[Mechanism]:
    """Return mechanisms of one formula, of many those spread over their values.

    The ends and a middle one come first.

    The mass of a density depends smoothly on its parameters, and the quadrature that every law is
    built with finds one that is not 1: of a formula that was seen to have mass 1 at some values,
    that is the check at others.
    """
    members = sorted(members, key=lambda m: [float(value) for _, value in m.bound])
    most = min(len(members), _MOST_CHECKED)
    share = (len(members) - 1) / max(most - 1, 1)
    places = [round(k * share) for k in range(most)]
    return [members[k] for k in dict.fromkeys((0, len(members) - 1, places[most // 2], *places))]


@lru_cache(maxsize=256)
def _checked(mechanism: Mechanism, for_proof: bool) -> MassCheck:
    from symdp.balls.density import checked_masses

    check = checked_masses(mechanism, for_proof)
    if check.is_one and check.is_proved and mechanism.template is not None:
        _PROPER.setdefault(mechanism.template.key, set()).add(mechanism.bound)
    return check
