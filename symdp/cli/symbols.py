"""Rates and sensitivities that are names, or ratios of names: they become parameters."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from symdp.errors import InputError, at

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

_NAMES = re.compile(r"(?<![\w.])[A-Za-z]\w*")
_RATIO = re.compile(r"\s*(\w+)\s*/\s*([A-Za-z]\w*)\s*")


def names_in(text: str | None) -> tuple[str, ...]:
    """Return the names that a rate or a sensitivity is written with, none of a number.

    >>> names_in("b/N"), names_in("1e-3"), names_in("256/60000")
    (('b', 'N'), (), ())
    """
    return tuple(dict.fromkeys(_NAMES.findall(text or "")))


def declared(mechanism: Mechanism, rate: str | None, sensitivity: str | None) -> Mechanism:
    """Return the mechanism with a parameter for each name of a rate or a sensitivity.

    A rate that is a name lies between 0 and 1; other names are positive numbers.

    Raises
    ------
    InputError : a name that no formula can hold.
    """
    from symdp.model.sampling import declare

    known = {parameter.name for parameter in mechanism.declared}
    new = [name for name in (*names_in(rate), *names_in(sensitivity)) if name not in known]
    alone = (rate or "").strip()
    with at("--rate or --sensitivity"):
        kinds = ("open probability" if name == alone else "positive" for name in new)
        more = tuple(map(declare, new, kinds))
    return replace(mechanism, declared=(*mechanism.declared, *more))


def below_one(mechanism: Mechanism, rate: str | None) -> Mechanism:
    """Return a mechanism of which a rate b/N, with names that have no value, is assumed below 1.

    Raises
    ------
    InputError : numbers that make it larger.
    """
    ratio = _RATIO.fullmatch(rate or "")
    if ratio is None or not set(names_in(rate)) <= set(mechanism.parameters):
        return mechanism
    return mechanism.assuming([f"{ratio.group(2)} > {ratio.group(1)}"])


def moved(mechanism: Mechanism, sensitivity: str) -> Mechanism:
    """Return the same noise on a query whose sensitivity is a formula of parameters.

    Raises
    ------
    InputError : a pair of laws, or a formula that cannot be read.
    """
    from symdp.model.parser import parse
    from symdp.model.sampling import Noise

    if not isinstance(mechanism.source, Noise):
        raise InputError(f"{mechanism.name} is a pair of laws and has no sensitivity to change")
    symbols = {parameter.name: parameter.symbol for parameter in mechanism.declared}
    size = parse(sensitivity, symbols).subs(
        {symbols[name]: value for name, value in mechanism.values.items()}
    )
    source = Noise(mechanism.source.density, size).checked(mechanism.support)
    return replace(mechanism, source=source, template=None)
