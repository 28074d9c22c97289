r"""A list of outcomes that dominates a product of pairs, from a table of its privacy profile.

With y = e^ε the profile H_y(P ‖ Q) of the product is convex, so that it lies below the chords
between points of it, and chords are the profile of a finite list [Doroshenko, Ghazi, Kamath, Kumar,
Manurangsi 2022]. For y < 1 the reverse tells it, H_y(P ‖ Q) = 1 − y + y H_{1/y}(Q ‖ P), so that the
list dominates in both directions, at every order; and then its Poisson sample dominates that of
the product. The points are upper ends of exact answers, which count their rounding.

A cell of width h in ε adds at most (h/2)² y² to E_Q[y²] for its mass, of which sampling makes a
like share of K.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
import sympy as sp

from symdp.arguments import AT_MOST
from symdp.errors import InputError
from symdp.model.curve_tables import Point, exponential, profile_pair
from symdp.model.relation import PAIR
from symdp.model.sampling import Laws
from symdp.tolerances import NO_SHARE

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.questions.composition import Composition
    from symdp.questions.steps.accounted import Accounted

Direction = Literal["remove", "add"]
_CELLS = 400  # between 0 and the largest loss of the table
_ABOVE = 1.0 + 1e-6  # times that mass
_LEAST = 1e-9  # of a largest loss
_ROUNDED_UP = 1.0 + 1e-9  # times δ: far above what an exact answer says of its own rounding


@dataclass(frozen=True)
class ProductLaws(Laws):
    """The laws of several releases of the same records, made of their pairs under one relation."""

    made_for: str = PAIR  # that relation


def bounded(answers: Accounted) -> Mechanism:
    """Return the list that dominates the composition of steps, as one step."""
    from symdp.questions.composition import Composition

    product = Composition(answers.given)
    removed = _profile(product, "remove")
    added = removed if answers.has_one_law else _profile(product, "add")
    corners: list[Point] = []
    for epsilon, delta in removed:
        y = exponential(epsilon)
        corners.append((y, max(delta, 1 - y)))
    for epsilon, delta in added:
        least = 1 / exponential(epsilon)  # e^{−ε}, rounded down
        corners.append((exponential(-epsilon), 1 - least * (1 - delta)))
    mechanism = profile_pair(corners, "together")
    source = mechanism.source
    assert isinstance(source, Laws)
    made_for = answers.protection.relation
    table = ProductLaws(source.P, source.Q, is_bound=True, made_for=made_for)
    shift = answers.protection.shift
    return replace(mechanism, source=table, shift=shift or AT_MOST)


def _profile(product: Composition, direction: Direction) -> list[tuple[sp.Expr, Fraction]]:
    """Return ε from 0 to about the largest loss, each with an upper bound on δ."""
    infinite = max(product.law(side).mass_at_infinity for side in product.sides(direction))
    remaining = _ABOVE * infinite + NO_SHARE
    if remaining >= 1.0:
        raise InputError("what is released together tells the two data sets apart: no ε is finite")
    largest = product.epsilon(remaining, direction=direction).value
    epsilons = np.linspace(0.0, max(largest, _LEAST), _CELLS + 1)
    curve = product.delta(epsilons, direction=direction)
    deltas = [min(answer.at_most * _ROUNDED_UP, 1.0) for answer in curve]
    return [
        (sp.Rational(float(epsilon)), Fraction(delta))
        for epsilon, delta in zip(epsilons, deltas, strict=True)
    ]
