"""The law of a discrete loss: a step function where its values are few, else a rule in k."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import sympy as sp

from symdp.derive.check import random_values
from symdp.derive.masses import few_places, piece_mass
from symdp.derive.pld import LossLaw
from symdp.derive.records import Atom, Piece
from symdp.derive.signs import compare, sorted_points
from symdp.errors import InputError

_DIGITS = 25  # to which two forms are compared
_TOLERANCE = sp.Float(10) ** -18  # of two values of 25 digits that are to be equal
_FAR = 400  # steps from the last value that is looked at; a mass there is below the tolerance


@dataclass(frozen=True)
class MassRule:
    """What the loss does at every integer k of a piece, ends included.

    Attributes
    ----------
    lower, upper
        The ends of the piece.
    loss, mass
        ℓ(k) and P(k).
    at_most
        P(ℓ ≤ ℓ(k)) of the finite loss as a formula in k, None where the loss is not monotone.
    """

    lower: sp.Expr
    upper: sp.Expr
    loss: sp.Expr
    mass: sp.Expr
    at_most: sp.Expr | None


def step_function(atoms: Iterable[Atom], s: sp.Symbol, whole: sp.Expr) -> LossLaw:
    """Return P(ℓ ≤ s) of a loss that takes few values, all of them listed; `whole` is their sum.

    Examples
    --------
    >>> s = sp.Symbol("s", real=True)
    >>> third = sp.Rational(1, 3)
    >>> step_function([Atom(sp.log(2), 2 * third), Atom(-sp.log(2), third)], s, sp.S.One).expression
    Piecewise((0, s < -log(2)), (1/3, s < log(2)), (1, True))
    """
    masses = {atom.loss: atom.mass for atom in atoms}
    try:
        ordered = sorted_points(set(masses), "the losses")
    except InputError as error:
        return LossLaw(s, None, str(error))
    total, cases = sp.S.Zero, []
    for loss in ordered:
        cases.append((total, s < loss))
        total = sp.factor_terms(total + masses[loss])
    return LossLaw(s, sp.Piecewise(*cases, (whole, sp.true)))


def has_few_values(pieces: Sequence[Piece]) -> bool:
    """Whether the loss of a mechanism on integers takes few values, so that they are all atoms."""
    return all(
        piece.slope == "constant" or few_places(piece)[1]
        for piece in pieces
        if piece.log_p is not None and not piece.loss.is_infinite
    )


def mass_rules(pieces: Sequence[Piece], k: sp.Symbol) -> tuple[MassRule, ...]:
    """Return the masses of the loss of a mechanism on integers, piece by piece.

    Examples
    --------
    >>> k = sp.Symbol("k", integer=True)
    >>> r = sp.log(2)
    >>> (rule,) = mass_rules([Piece(sp.S.One, sp.oo, -k * r, -k, k, "increasing", (-k * r,))], k)
    >>> rule.mass, rule.at_most.subs(k, 3)
    (exp(-k*log(2)), 7/8)
    """
    finite = [p for p in pieces if p.log_p is not None and not p.loss.is_infinite]
    direction = _direction(finite, k)
    ordered = finite if direction > 0 else finite[::-1]
    rules, before = [], sp.S.Zero
    for piece in ordered:
        at_most = None
        if direction:
            at_most = before + _up_to(piece, k, direction)
            before += piece_mass(piece.log_p_terms, k, piece.lower, piece.upper)
        mass = sp.powsimp(sp.Add(*(sp.exp(term) for term in piece.log_p_terms)))
        rules.append(MassRule(piece.lower, piece.upper, piece.loss, mass, at_most))
    return tuple(rules if direction > 0 else rules[::-1])


def _direction(pieces: Sequence[Piece], k: sp.Symbol) -> int:
    """Return 1 or −1 where the loss moves one way on all pieces together, else 0."""
    ways = {piece.slope for piece in pieces} - {"constant"}
    if len(ways) > 1 or "unknown" in ways:
        return 0
    steps = {
        compare(after.loss.subs(k, after.lower), before.loss.subs(k, before.upper))
        for before, after in pairwise(pieces)
    }
    if None in steps or {1, -1} <= steps:
        return 0
    names = {"increasing": 1, "decreasing": -1}
    found = {names[way] for way in ways} | (steps - {0})
    return found.pop() or 0 if len(found) == 1 else 0 if found else 1


def _up_to(piece: Piece, k: sp.Symbol, direction: int) -> sp.Expr:
    """P of the places of a piece whose loss is at most that of k."""
    if piece.slope == "constant":
        return piece_mass(piece.log_p_terms, k, piece.lower, piece.upper)
    j = sp.Dummy("j", integer=True)
    terms = [term.subs(k, j) for term in piece.log_p_terms]
    ends = (piece.lower, k) if direction > 0 else (k, piece.upper)
    found = piece_mass(terms, j, *ends)
    named = sp.Symbol(next(n for n in ("j", "i", "m") if n not in _names(found)), integer=True)
    if not found.has(sp.Sum) and _telescopes(found, piece, k, direction):
        return found
    density = sp.Add(*(sp.exp(term) for term in terms))
    return sp.Sum(density, (j, *ends)).xreplace({j: named})


def _names(expression: sp.Expr) -> set[str]:
    return {str(symbol.name) for symbol in expression.free_symbols}


def _telescopes(total: sp.Expr, piece: Piece, k: sp.Symbol, direction: int) -> bool:
    """Whether a closed sum moves by the mass of one place, and starts from nothing."""
    mass = sp.Add(*(sp.exp(term) for term in piece.log_p_terms))
    symbols = total.free_symbols | mass.free_symbols | piece.lower.free_symbols
    values = random_values(symbols - {k}, 4, [str(symbol.name) for symbol in symbols])
    total, mass = total.subs(values), mass.subs(values)
    start = (piece.lower if direction > 0 else piece.upper).subs(values)
    if start.is_infinite:
        at = -direction * _FAR
        begins = total.subs(k, at)
    else:
        at = start
        begins = total.subs(k, at) - mass.subs(k, at)
    moved = at + 3 * direction
    step = total.subs(k, moved) - total.subs(k, moved - direction) - mass.subs(k, moved)
    near = [sp.N(value, _DIGITS) for value in (begins, step)]
    return all(bool(value.is_comparable and abs(value) < _TOLERANCE) for value in near)
