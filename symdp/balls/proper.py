"""Steps whose densities have mass 1: which of them are looked at, which formulas are known to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from symdp import shipped
from symdp.model.family import Family
from symdp.model.local import Local
from symdp.model.sampling import Radial, RenyiCurve

if TYPE_CHECKING:
    from symdp.balls.mass import MassCheck
    from symdp.model.mechanism import Mechanism

_MOST_CHECKED = 48  # densities of one formula
_ENOUGH = 3  # values at which a formula was seen to have mass 1, for a quadrature to check others
_PROPER: dict[str, set[tuple[tuple[str, object], ...]]] = {}  # those values, by the formula


def with_mass_one(steps: Mapping[Mechanism, int], for_proof: bool = False) -> dict[Mechanism, int]:
    """Return the steps, those whose densities carry a rounded constant divided by their masses.

    A mass off by 1e-12 makes δ wrong by n times as much; a proof leaves no mass to a quadrature.
    """
    return checked_steps(steps, for_proof)[0]


def checked_steps(
    steps: Mapping[Mechanism, int], for_proof: bool = False
) -> tuple[dict[Mechanism, int], Literal["proved", "seen"]]:
    """Return the same steps, and whether their masses were proved or found by two quadratures."""
    groups: dict[object, list[Mechanism]] = {}
    is_proved = True
    for mechanism in steps:
        if isinstance(mechanism.source, RenyiCurve | Family):  # no densities on a line
            continue
        if isinstance(mechanism.source, Local):  # the masses of all inputs are found later
            is_proved = False
            continue
        if isinstance(mechanism.source, Radial) and not for_proof:  # its mass is found later
            is_proved = False
            continue
        template = mechanism.template
        groups.setdefault(mechanism.key if template is None else template.key, []).append(mechanism)
    rounded: set[Mechanism] = set()
    for members in groups.values():
        for member in _spread(members):
            if not for_proof and _is_known(member.template):
                break
            check = _checked_law(replace(member, sampling=None, relation=None), for_proof)
            if not check.is_one:
                rounded.update(members)
            is_proved &= check.is_proved
    kept = {m.normalized() if m in rounded else m: count for m, count in steps.items()}
    return kept, "proved" if is_proved else "seen"


def _is_known(template: Mechanism | None) -> bool:
    """Return whether a formula has mass 1, as is shipped, or as was shown at some values."""
    if template is None:
        return False
    return len(_PROPER.get(template.key, ())) >= _ENOUGH or bool(
        shipped.fact(template.name, "proper", template.key)
    )


def _spread(members: list[Mechanism]) -> list[Mechanism]:
    """Return mechanisms of one formula, of many some spread over their values, the ends first.

    At other values the quadrature that every law is built with finds a mass that is not 1.
    """
    members = sorted(members, key=lambda m: [float(value) for _, value in m.bound])
    last = len(members) - 1
    most = min(len(members), _MOST_CHECKED)
    share = last / max(most - 1, 1)
    places = [round(k * share) for k in range(most)]
    middle = places[most // 2]
    in_order = dict.fromkeys([0, last, middle, *places])
    return [members[k] for k in in_order]


@lru_cache(maxsize=256)
def _checked_law(mechanism: Mechanism, for_proof: bool) -> MassCheck:
    from symdp.balls.density import checked_masses

    check = checked_masses(mechanism, for_proof)
    if check.is_one and check.is_proved and mechanism.template is not None:
        _PROPER.setdefault(mechanism.template.key, set()).add(mechanism.bound)
    return check
