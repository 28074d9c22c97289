"""Probabilities under P: of pieces and points, and of every value of a discrete loss."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise

import sympy as sp

from symdp.density.check import moment
from symdp.density.integrate import definite
from symdp.density.normal_form import Integrand, log_form
from symdp.density.pieces import pieces
from symdp.density.records import Piece, Point, mapped
from symdp.density.signs import compare, interior_point, random_values, sorted_points
from symdp.derive.child import compute, or_reason
from symdp.derive.pld import LossLaw
from symdp.derive.records import Atom
from symdp.emit.mass import MassIntegral, MassSum
from symdp.errors import InputError
from symdp.interrupt import attempt
from symdp.model import tidy
from symdp.model.pair import Pair, Support
from symdp.tolerances import SOME_TIME

_DIGITS = 20  # to which two forms of a mass are compared
_LONGEST_MASS = 60  # operations of a formula that is shorter to read than its integral
_MANY = 64  # values of a loss on integers from which on they are not listed


def piece_mass(terms: Iterable[sp.Expr], x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    """Return ∫ Σ exp(term) over a piece: exact where the table knows it, else left as it is."""
    at = lower if lower == upper else interior_point(lower, upper)
    total = sp.S.Zero
    for term in terms:
        density = sp.exp(term)
        form = log_form(density, x, at)
        integrand = Integrand(form, lower, upper, bool(x.is_integer))
        value = attempt(partial(definite, integrand), None, SOME_TIME)
        if value is None:
            total += _by_search(density, x, lower, upper)
        else:
            total += sp.powsimp(value * sp.exp(form.constant), combine="exp")
    if total.free_symbols and total.is_rational_function(*total.free_symbols):
        return tidy.factor(tidy.together(total))
    return sp.factor_terms(total)


def _by_search(density: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    """An integral as SymPy finds it and numbers confirm it, else as it is; a sum of polynomials."""
    if x.is_integer:
        if lower == upper:
            return density.subs(x, lower)
        whole = sp.Sum(density, (x, lower, upper))
        if density.is_polynomial(x):
            return sp.factor(whole.doit())
        return whole
    whole = sp.Integral(density, (x, lower, upper))
    integral = compute("integrate", (density, x, lower, upper), SOME_TIME)
    if integral is None or integral.has(sp.I, sp.Piecewise, sp.hyper, sp.meijerg):
        return whole
    values = random_values(whole.free_symbols, 2, [str(s.name) for s in whole.free_symbols])

    def gap() -> sp.Expr:
        return abs(sp.N(whole.subs(values), _DIGITS) - sp.N(integral.subs(values), _DIGITS))

    size = attempt(gap, sp.oo, SOME_TIME)
    if size.is_comparable and size < sp.Float(10) ** (5 - _DIGITS):
        return integral
    return whole


def with_known_masses(pair: Pair) -> Pair:
    """Return a pair in which the masses that densities are divided by are formulas, where known."""
    masses = {m for e in pair.expressions() for m in e.atoms(MassIntegral, MassSum)}
    formulas = {mass: formula for mass in masses if (formula := _known_mass(mass)) is not None}

    if formulas:
        return mapped(pair, lambda part: part.xreplace(formulas))
    return pair


@lru_cache(maxsize=64)
def _known_mass(mass: MassIntegral | MassSum) -> sp.Expr | None:
    """A mass as a formula that numbers confirm; None where there is none."""
    x, lower, upper = mass.limits[0]
    unit = (sp.S.One,)
    support = Support("integers" if x.is_integer else "interval", lower, upper)
    pair = Pair(x, support, (mass.function,), unit, unit)

    def found() -> sp.Expr | None:
        total = sp.Add(*(piece_mass(p.log_p_terms, x, p.lower, p.upper) for p in pieces(pair)))
        if total.has(sp.Integral, sp.Sum) or sp.count_ops(total) > _LONGEST_MASS:
            return None
        total = tidy.simplify(total)
        values = random_values(mass.free_symbols, 3, [str(s.name) for s in mass.free_symbols])
        concrete = replace(
            pair,
            components=(mass.function.subs(values),),
            support=pair.support.substitute(dict(values)),
        )
        seen = sp.Float(moment(sp.S.Zero, pieces(concrete), [], x).real.str(_DIGITS, radius=False))
        gap = abs(total.subs(values).evalf(_DIGITS) / seen - 1)
        if gap.is_comparable and gap < _SUM_TOLERANCE:
            return total
        return None

    return or_reason(lambda: attempt(found, None, SOME_TIME), lambda _: None)


def atoms(pieces: Iterable[Piece], points: Iterable[Point], x: sp.Symbol) -> tuple[Atom, ...]:
    """Return the finite values that the loss takes on flat pieces or single points, with P-masses.

    Equal values are joined.  On integers every value is an atom: those of a strictly monotone loss
    are listed one by one where they are few, otherwise only as far as they meet a flat piece.
    """
    masses: dict[sp.Expr, sp.Expr] = {}
    for point in points:
        if not point.loss.is_infinite:
            masses[point.loss] = masses.get(point.loss, sp.S.Zero) + point.p
    finite = [piece for piece in pieces if not piece.loss.is_infinite and piece.log_p is not None]
    flat = [piece for piece in finite if piece.slope == "constant"]
    for piece in flat:
        mass = piece_mass(piece.log_p_terms, x, piece.lower, piece.upper)
        masses[piece.loss] = masses.get(piece.loss, sp.S.Zero) + mass
    for piece in finite:
        if x.is_integer and piece.slope != "constant":
            places, is_whole = few_places(piece)
            for x_value in places:
                value = _equal_value(piece.loss.subs(x, x_value), masses)
                if is_whole or value in masses:
                    mass = piece_mass(piece.log_p_terms, x, x_value, x_value)
                    masses[value] = masses.get(value, sp.S.Zero) + mass
    return tuple(Atom(loss, mass) for loss, mass in masses.items())


def few_places(piece: Piece) -> tuple[list[sp.Expr], bool]:
    """The integers of a piece, and whether they are all of them; otherwise those at its ends."""
    width = piece.upper - piece.lower
    if width.is_Integer and width < _MANY:
        return [piece.lower + k for k in range(int(width) + 1)], True
    ends = [end for end in (piece.lower, piece.upper) if not end.is_infinite]
    return ends, False


def _equal_value(loss: sp.Expr, values: Iterable[sp.Expr]) -> sp.Expr:
    """The loss, or the one of these values that it equals in another form."""
    same = (value for value in values if value == loss or compare(value, loss) == 0)
    return next(same, sp.expand(loss))


def mass_where(
    loss: sp.Expr, pieces: Sequence[Piece], points: Sequence[Point], x: sp.Symbol
) -> sp.Expr:
    """Return P(Q = 0) for the loss oo, or Q(P = 0) for −oo."""
    above = loss == sp.oo
    total = sp.S.Zero
    for point in points:
        if point.loss == loss:
            total += point.p if above else point.q
    for piece in pieces:
        if piece.loss == loss:
            terms = piece.log_p_terms if above else piece.log_q_terms
            total += piece_mass(terms, x, piece.lower, piece.upper)
    return sp.factor_terms(total)


_SUM_DIGITS = 25  # to which two forms are compared
_SUM_TOLERANCE = sp.Float(10) ** -18  # of two values of 25 digits that are to be equal
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
    """Return P(ℓ ≤ s) of a loss that takes few values, all of them listed; `whole` is their sum."""
    masses = {atom.loss: atom.mass for atom in atoms}
    try:
        ordered = sorted_points(set(masses), "the losses")
    except InputError as error:
        return LossLaw(s, None, str(error))
    total = sp.S.Zero
    cases = []
    for loss in ordered:
        cases.append((total, s < loss))
        total = sp.factor_terms(total + masses[loss])
    # Evaluated, SymPy would turn s < −ε₀ into ε₀ < −s.
    return LossLaw(s, sp.Piecewise(*cases, (whole, sp.true), evaluate=False))


def has_few_values(pieces: Sequence[Piece]) -> bool:
    """Whether the loss of a mechanism on integers takes few values, so that they are all atoms."""
    return all(
        piece.slope == "constant" or few_places(piece)[1]
        for piece in pieces
        if piece.log_p is not None and not piece.loss.is_infinite
    )


def mass_rules(pieces: Sequence[Piece], k: sp.Symbol) -> tuple[MassRule, ...]:
    """Return the masses of the loss of a mechanism on integers, piece by piece."""
    finite = [p for p in pieces if p.log_p is not None and not p.loss.is_infinite]
    direction = _direction(finite, k)
    ordered = finite if direction > 0 else finite[::-1]
    rules = []
    before = sp.S.Zero
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
    directions = {names[way] for way in ways} | (steps - {0})
    if len(directions) == 1:
        return directions.pop() or 0
    if directions:
        return 0
    return 1


def _up_to(piece: Piece, k: sp.Symbol, direction: int) -> sp.Expr:
    """P of the places of a piece whose loss is at most that of k."""
    if piece.slope == "constant":
        return piece_mass(piece.log_p_terms, k, piece.lower, piece.upper)
    j = sp.Dummy("j", integer=True)
    terms = [term.subs(k, j) for term in piece.log_p_terms]
    ends = (piece.lower, k) if direction > 0 else (k, piece.upper)
    mass = piece_mass(terms, j, *ends)
    named = sp.Symbol(
        next(n for n in ("j", "i", "m") if n not in _names_of_symbols(mass)), integer=True
    )
    if not mass.has(sp.Sum) and _telescopes(mass, piece, k, direction):
        return mass
    density = sp.Add(*(sp.exp(term) for term in terms))
    return sp.Sum(density, (j, *ends)).xreplace({j: named})


def _names_of_symbols(expression: sp.Expr) -> set[str]:
    return {str(symbol.name) for symbol in expression.free_symbols}


def _telescopes(total: sp.Expr, piece: Piece, k: sp.Symbol, direction: int) -> bool:
    """Whether a closed sum moves by the mass of one place, and starts from nothing."""
    mass = sp.Add(*(sp.exp(term) for term in piece.log_p_terms))
    symbols = total.free_symbols | mass.free_symbols | piece.lower.free_symbols
    values = random_values(symbols - {k}, 4, [str(symbol.name) for symbol in symbols])
    total = total.subs(values)
    mass = mass.subs(values)
    start = (piece.lower if direction > 0 else piece.upper).subs(values)
    if start.is_infinite:
        at = -direction * _FAR
        begins = total.subs(k, at)
    else:
        at = start
        begins = total.subs(k, at) - mass.subs(k, at)
    moved = at + 3 * direction
    step = total.subs(k, moved) - total.subs(k, moved - direction) - mass.subs(k, moved)
    near = [sp.N(value, _SUM_DIGITS) for value in (begins, step)]
    return all(bool(value.is_comparable and abs(value) < _SUM_TOLERANCE) for value in near)
