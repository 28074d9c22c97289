"""One answer of a local randomizer, or several rounds of shuffled ones, as a pair of laws.

*An answer that is seen by itself*: two inputs are the pair (R_a, R_b). Densities f(y − x) are noise
f on the input, which a person changes by at most the distance of the ends. Of a list of laws whose
pairs are all alike one pair answers; of others the largest profile of all pairs, which is straight
in e^ε from corner to corner, so that it belongs to a list of outcomes.

*Shuffled answers of several rounds*: the bound of one round, tabulated, is a profile, whose pair
dominates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, permutations
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp.balls.modes import one_mode
from symdp.errors import InputError
from symdp.model.curve_tables import exponential, profile_pair
from symdp.model.local import Local, is_affine
from symdp.questions.shuffled.blanket import BlanketLaw
from symdp.questions.shuffled.worst import as_noise
from symdp.tolerances import SUM_BITS

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

_NODES = 48  # of a tabulated profile
_NOTHING = -700.0  # log δ at which it ends


def in_their_place(steps: Mapping[Mechanism, int]) -> dict[Mechanism, int]:
    """Return steps with a pair of laws for each local randomizer; one round of answers stays."""
    total = sum(steps.values())
    placed: dict[Mechanism, int] = {}
    for step, count in steps.items():
        stays = not isinstance(step.source, Local) or (step.source.is_shuffled and total == 1)
        other = step if stays else pair_of(step)
        placed[other] = placed.get(other, 0) + count
    return placed


def pair_of(mechanism: Mechanism) -> Mechanism:
    """Return a pair of laws that answers for a randomizer, or for a round of shuffled answers."""
    source = mechanism.source
    assert isinstance(source, Local)
    if source.is_shuffled:
        return _tabulated(mechanism)
    if mechanism.support.kind == "points":
        return _of_laws(mechanism, source)
    noise = as_noise(mechanism)
    if noise is not None and (source.is_interval or one_mode(noise)):
        return noise
    if len(source.inputs) == 2 and (not source.is_interval or is_affine(source)):
        laws = [source.law(index, mechanism.variable, mechanism.support) for index in (0, 1)]
        return _pair(mechanism, *laws)
    raise InputError(
        f"{mechanism.summary}: the worst pair of inputs is known of densities f(y - x) on all "
        "reals, of two inputs and of lists of outcomes; give two, as in "
        "inputs = { values = [0, 1] }"
    )


def _pair(mechanism: Mechanism, P: Any, Q: Any) -> Mechanism:
    """Return a pair of two laws with the outputs of a randomizer."""
    from symdp.model.mechanism import Mechanism

    return Mechanism.from_pair(
        P, Q, mechanism.variable, mechanism.support, mechanism.name, parameters={}
    )


def _of_laws(mechanism: Mechanism, source: Local) -> Mechanism:
    """Return the pair of a list of laws."""
    if source.is_interval and not is_affine(source):
        raise InputError(
            f"{mechanism.summary}: of inputs in an interval the worst pair of lists of outcomes is "
            "known where their masses are affine in the input; list the inputs, as in "
            "inputs = { values = [0, 1] }"
        )
    count = len(source.inputs)
    laws = [source.law(index, mechanism.variable, mechanism.support) for index in range(count)]
    kinds: dict[Any, tuple[int, int]] = {}
    for first, second in permutations(range(count), 2):
        pairs = sorted(zip(laws[first], laws[second], strict=True), key=sp.default_sort_key)
        kinds.setdefault(tuple(pairs), (first, second))
    mirrored = {tuple(sorted(((q, p) for p, q in kind), key=sp.default_sort_key)) for kind in kinds}
    if len(kinds) == 1 or (len(kinds) == 2 and mirrored == set(kinds)):
        first, second = next(iter(kinds.values()))
        return _pair(mechanism, laws[first], laws[second])
    corners = _largest_profile([_ratios(kind) for kind in kinds])
    return replace(profile_pair(corners, mechanism.name), name=mechanism.name)


def _ratios(kind: tuple[tuple[sp.Expr, sp.Expr], ...]) -> list[tuple[Fraction, Fraction]]:
    """Return masses as ratios, those that are none rounded to 160 bits."""
    return [(_fraction(first), _fraction(second)) for first, second in kind]


def _fraction(mass: sp.Expr) -> Fraction:
    if mass.is_Rational:
        return Fraction(int(mass.p), int(mass.q))
    number = sp.Rational(mass.evalf(60))
    return Fraction(int(number.p * 2**SUM_BITS // number.q), 2**SUM_BITS)


def _largest_profile(
    kinds: list[list[tuple[Fraction, Fraction]]],
) -> list[tuple[Fraction, Fraction]]:
    """Return (e^ε, δ) of the largest of several profiles, at the corners of all of them."""
    ratios = {first / second for kind in kinds for first, second in kind if second}
    places = sorted({*ratios, Fraction(1)})

    def value(kind: list[tuple[Fraction, Fraction]], y: Fraction) -> Fraction:
        return sum((max(p - y * q, Fraction(0)) for p, q in kind), Fraction(0))

    def corner(y: Fraction) -> tuple[Fraction, Fraction]:
        return y, max(value(kind, y) for kind in kinds)

    corners = [corner(places[0])]
    for low, high in pairwise(places):
        # between two places all are straight: where they cross the largest bends
        lines = {(value(kind, low), value(kind, high)) for kind in kinds}
        for (left, right), (other_left, other_right) in permutations(lines, 2):
            gap = left - other_left
            gap_after = right - other_right
            if gap * gap_after < 0:
                share = gap / (gap - gap_after)
                corners.append(corner(low + (high - low) * share))
        corners.append(corner(high))
    return corners


def _tabulated(mechanism: Mechanism) -> Mechanism:
    """Return the pair of the bound of one round, from ε = 0 to where nothing is left of it."""
    law = BlanketLaw(mechanism)
    width = math.sqrt(float(law.cumulants(0.0, 2)[1]))
    corners = []
    last = sp.Integer(0)
    for index in range(_NODES):
        epsilon = sp.Rational(f"{0.25 * width * index:.6g}")
        log_delta = law.bound(float(epsilon)).log_delta
        if log_delta < _NOTHING:
            last = epsilon
            break
        corners.append((exponential(epsilon), Fraction(math.exp(log_delta) * (1.0 + 1e-15))))
        last = epsilon
    else:
        log_delta = law.bound(float(last)).log_delta
    if log_delta < _NOTHING:
        corners.append((exponential(last), Fraction(math.exp(_NOTHING))))
    mirrored = [(1 / y, 1 - (1 - delta) / y) for y, delta in corners[1:]]
    return replace(profile_pair([*corners, *mirrored], mechanism.name), name=mechanism.name)
