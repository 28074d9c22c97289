"""The law of a continuous loss in closed form: inverse, density and distribution function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

import mpmath
import sympy as sp

from symdp.density.integrate import definite
from symdp.density.normal_form import Integrand, exponential_polynomial, exponential_terms, log_form
from symdp.density.records import Piece
from symdp.density.signs import compare, interior_point, random_values, sign_of, sorted_points
from symdp.derive.child import compute
from symdp.derive.limits import limit_at
from symdp.errors import InputError
from symdp.model import tidy

_INVERSE_DIGITS = 30  # to which an inverse is tried
_ROUNDS = 3  # random values of parameters
_DIGITS = 25  # to which a density is compared with an integral
_SECONDS = 1.0  # for a shorter form


def loss_symbol(taken: set[str]) -> sp.Symbol:
    """Return the symbol of a loss value: s, or another name where parameters have taken it."""
    name = next(n for n in ("s", "y", "loss", "loss_value") if n not in taken)
    return sp.Symbol(name, real=True)


def inverse_on(piece: Piece, x: sp.Symbol, s: sp.Symbol) -> sp.Expr | None:
    """Return ℓ⁻¹(s) on a monotone piece, None where there is none in closed form.

    Solved by undoing logs, exponentials, odd powers, Möbius maps and squares one by one; the
    branch is the one that lies in the piece, found at random parameter values and checked there
    at nine points.
    """
    if piece.slope not in {"increasing", "decreasing"} or piece.loss.is_infinite or x.is_integer:
        return None
    for candidate in _solutions(piece.loss, s, x, 0):
        if _inverts(candidate, piece, x, s):
            return candidate
    return None


def _solutions(node: sp.Expr, value: sp.Expr, x: sp.Symbol, depth: int) -> list[sp.Expr]:
    """All candidates for x with node(x) = value."""
    if node == x:
        return [value]
    if depth > 12:
        return []
    if isinstance(node, sp.log):
        return _solutions(node.args[0], sp.exp(value), x, depth + 1)
    if isinstance(node, sp.exp):
        return _solutions(node.args[0], sp.log(value), x, depth + 1)
    if isinstance(node, sp.Pow):
        base, power = node.as_base_exp()
        if x in power.free_symbols:
            exponent = sp.log(value) / sp.log(base)
            if x in base.free_symbols:
                return []
            return _solutions(power, exponent, x, depth + 1)
        root = value ** (1 / power)
        both = [root, -root] if power.is_even else [root]
        return [solution for r in both for solution in _solutions(base, r, x, depth + 1)]
    if isinstance(node, sp.Mul):
        constant, moving = node.as_independent(x, as_Add=False)
        if constant != 1:
            return _solutions(moving, value / constant, x, depth + 1)
    if isinstance(node, sp.Add):
        constant, moving = node.as_independent(x, as_Add=True)
        if constant != 0 and not isinstance(moving, sp.Add):
            return _solutions(moving, value - constant, x, depth + 1)
    return _rational(node, value, x, depth)


def _rational(node: sp.Expr, value: sp.Expr, x: sp.Symbol, depth: int) -> list[sp.Expr]:
    """Solve node = value where both are rational of degree 1 or 2 in x, or in one e^{kx}."""
    numerator, denominator = sp.fraction(tidy.together(node))
    gap = sp.expand(numerator - value * denominator)
    if gap.is_polynomial(x):
        return _quadratic(sp.Poly(gap, x))
    terms = exponential_terms(sp.powsimp(gap, combine="exp"), x)
    read = None if terms is None else exponential_polynomial(terms, x)
    if read is None:
        return []
    generator, coefficients = read
    u = sp.Dummy("u")
    polynomial = sp.Poly(sp.Add(*(c * u**n for n, c in coefficients.items())), u)
    return [
        solution
        for root in _quadratic(polynomial)
        for solution in _solutions(generator, sp.log(root), x, depth + 1)
    ]


def _quadratic(polynomial: sp.Poly) -> list[sp.Expr]:
    if polynomial.degree() == 1:
        a, b = polynomial.all_coeffs()
        return [tidy.cancel(-b / a)]
    if polynomial.degree() != 2:
        return []
    a, b, c = polynomial.all_coeffs()
    root = sp.sqrt(tidy.factor(sp.expand(b**2 - 4 * a * c)))
    if sign_of(a) is None and c != 0:  # the same without a pole where a vanishes
        return [_without_common(2 * c, -b - root), _without_common(2 * c, -b + root)]
    return [(-b + root) / (2 * a), (-b - root) / (2 * a)]


def _without_common(above: sp.Expr, below: sp.Expr) -> sp.Expr:
    """Return a quotient less its common factors, roots left as they are."""
    roots = {node: sp.Dummy() for node in below.atoms(sp.Pow) if node.exp == sp.S.Half}
    quotient = tidy.cancel(above / below.xreplace(roots))
    return tidy.factor(quotient).xreplace({name: node for node, name in roots.items()})


def _inverts(candidate: sp.Expr, piece: Piece, x: sp.Symbol, s: sp.Symbol) -> bool:
    """Whether ℓ⁻¹(ℓ(x)) = x at random points of the piece, for random parameters."""
    symbols = (piece.loss.free_symbols | piece.lower.free_symbols | piece.upper.free_symbols) - {x}
    for seed in range(_ROUNDS):
        values = dict(random_values(symbols, seed, [str(y.name) for y in symbols]))
        low, high = (end.subs(values) for end in (piece.lower, piece.upper))
        middle = interior_point(low, high)
        for share in (sp.Rational(1, 7), sp.Rational(5, 11), sp.Rational(9, 10)):
            at = middle if low.is_infinite or high.is_infinite else low + share * (high - low)
            if high.is_infinite:
                at = at + 3 * share
            elif low.is_infinite:
                at = at - 3 * share
            loss = piece.loss.subs(values).subs(x, at)
            back = candidate.subs(values).subs(s, loss).evalf(_INVERSE_DIGITS, maxn=400)
            gap = abs(sp.N(back - at, _INVERSE_DIGITS))
            if not gap.is_number or not gap.is_comparable or gap > mpmath.mpf(10) ** -18:
                return False
    return True


@dataclass(frozen=True)
class LossLaw:
    """The density ω(s) of a loss's continuous part under P [FA 5], or P(ℓ ≤ s) of the finite part.

    `expression` is None where there is no closed form, for a `reason`.
    """

    loss: sp.Symbol
    expression: sp.Expr | None
    reason: str = ""


def pld_density(
    pieces: Sequence[Piece], inverses: Sequence[sp.Expr | None], x: sp.Symbol, s: sp.Symbol
) -> LossLaw:
    """Return ω(s) = Σ P(ℓ⁻¹(s))·|dℓ⁻¹/ds| over the monotone pieces; atoms are apart."""
    if x.is_integer:
        return LossLaw(s, None, "a discrete loss has atoms alone")

    def part(piece: Piece, back: sp.Expr) -> sp.Expr:
        assert piece.log_p is not None
        return _shorter_in_time(sp.exp(piece.log_p.subs(x, back)) * _steepness(piece, back, x, s))

    return _summed(pieces, inverses, x, s, part, is_density=True)


def _steepness(piece: Piece, back: sp.Expr, x: sp.Symbol, s: sp.Symbol) -> sp.Expr:
    """Return |dx/ds|: where ℓ is ax² + bx + c it is 1/√(b² − 4a(c − s))."""
    if piece.loss.is_polynomial(x):
        polynomial = sp.Poly(piece.loss, x)
        if polynomial.degree() == 2:
            a, b, c = polynomial.all_coeffs()
            return tidy.factor(sp.expand(b**2 - 4 * a * (c - s))) ** -sp.S.Half
    sign = 1 if piece.slope == "increasing" else -1
    return sign * sp.diff(back, s)


def pld_cdf(
    pieces: Sequence[Piece], inverses: Sequence[sp.Expr | None], x: sp.Symbol, s: sp.Symbol
) -> LossLaw:
    """Return P(ℓ ≤ s) of the continuous part of the loss, atoms left out."""
    if x.is_integer:
        return LossLaw(s, None, "a discrete loss has atoms alone")
    missing = next((p for p in pieces if _moves(p) and _mass(p, x, p.lower, p.upper) is None), None)
    if missing is not None:
        return LossLaw(s, None, "no formula was found for the mass of P on a piece")

    def part(piece: Piece, back: sp.Expr) -> sp.Expr | None:
        ends = (piece.lower, back) if piece.slope == "increasing" else (back, piece.upper)
        end = sp.Dummy("end", real=True)
        mass = _mass(piece, x, *(end if at is back else at for at in ends))
        if mass is None:
            return None
        return _shorter_in_time(mass.subs(end, back))

    return _summed(pieces, inverses, x, s, part, is_density=False)


@lru_cache(maxsize=64)  # pieces of one symmetric loss ask for the same form
def _shorter_in_time(expression: sp.Expr) -> sp.Expr:
    """Return a shorter form where SymPy finds one in time."""
    shorter = compute("simplify", (expression,), _SECONDS) if expression.args else None
    if shorter is None or sp.count_ops(shorter) >= sp.count_ops(expression):
        return expression
    return shorter


def _moves(piece: Piece) -> bool:
    return piece.slope != "constant" and not piece.loss.is_infinite


def _mass(piece: Piece, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> sp.Expr | None:
    """P of a part of a piece, None where the table does not know it."""
    total = sp.S.Zero
    at = interior_point(piece.lower, piece.upper)
    for term in piece.log_p_terms:
        form = log_form(sp.exp(term), x, at)
        value = definite(Integrand(form, lower, upper, False))
        if value is None:
            return None
        total += value * sp.exp(form.constant)
    return total


def _summed(
    pieces: Sequence[Piece],
    inverses: Sequence[sp.Expr | None],
    x: sp.Symbol,
    s: sp.Symbol,
    part: Callable[[Piece, sp.Expr], sp.Expr | None],
    *,
    is_density: bool,
) -> LossLaw:
    """Add what the pieces contribute, each within the range of its loss."""
    parts: list[_Part] = []
    for piece, back in zip(pieces, inverses, strict=True):
        if not _moves(piece):
            continue
        if back is None:
            return LossLaw(s, None, f"the loss has no inverse in closed form on its piece from "
                           f"{piece.lower} to {piece.upper}")  # fmt: skip
        inside = part(piece, back)
        ends = [
            limit_at(piece.loss, x, piece.lower, from_left=False),
            limit_at(piece.loss, x, piece.upper, from_left=True),
        ]
        low, high = ends if piece.slope == "increasing" else ends[::-1]
        if inside is None or low is None or high is None:
            return LossLaw(
                s, None, "no formula was found for P or the range of the loss on a piece"
            )
        if not _agrees(inside, piece, back, x, s, is_density=is_density):
            return LossLaw(s, None, "the form that was found disagrees with numbers")
        after = sp.S.Zero
        if not is_density:
            whole = _mass(piece, x, piece.lower, piece.upper)
            after = sp.S.Zero if whole is None else _shorter_in_time(whole)
        # An infinite end may hold the sign of parameters that are not 0 where the loss moves.
        infinite = [end.has(sp.oo, -sp.oo) for end in (low, high)]
        low, high = -sp.oo if infinite[0] else low, sp.oo if infinite[1] else high
        parts.append(_Part(inside, low, high, after))
    if not parts:
        return LossLaw(s, None, "the loss has atoms alone")
    return LossLaw(s, _in_cases(parts, s))


class _Part(NamedTuple):
    """What a piece adds: `inside` between two losses, nothing below them, `after` above."""

    inside: sp.Expr
    low: sp.Expr
    high: sp.Expr
    after: sp.Expr


def _in_cases(parts: list[_Part], s: sp.Symbol) -> sp.Expr:
    """Return the sum of the parts as one set of cases, their conditions in order."""
    inner = _in_order(parts)
    if inner is None:  # values of parameters decide the order
        return sp.Add(*(_in_cases([part], s) for part in parts))
    ends = [-sp.oo, *inner, sp.oo]

    def place(end: sp.Expr) -> int:
        return next(i for i, other in enumerate(ends) if other == end or compare(other, end) == 0)

    spans = [(part, place(part.low), place(part.high)) for part in parts]
    cases: list[tuple[sp.Expr, sp.Basic]] = []
    for i, high in enumerate(ends[1:]):
        active = [part.inside for part, first, last in spans if first <= i < last]
        active += [part.after for part, _, last in spans if part.after != 0 and last <= i]
        total = sp.Add(*active) if len(active) < 2 else _shorter_in_time(sp.Add(*active))
        condition = sp.true if high is sp.oo else s <= high if total == 0 else s < high
        if cases and cases[-1][0] == total:
            cases[-1] = (total, condition)
        else:
            cases.append((total, condition))
    if len(cases) == 1:
        return cases[0][0]
    return sp.Piecewise(*cases, evaluate=False)


def _in_order(parts: list[_Part]) -> list[sp.Expr] | None:
    """Return the finite ends in order: by their signs, or as each part's own two ends tell it."""
    inner = {end for part in parts for end in (part.low, part.high) if not end.is_infinite}
    try:
        return sorted_points(inner, "the losses")
    except InputError:
        below = {end: {p.low for p in parts if p.high == end} & inner for end in inner}
        order = list(TopologicalSorter(below).static_order())
        if all(low in below[high] for low, high in pairwise(order)):
            return order
        return None


def _agrees(
    inside: sp.Expr, piece: Piece, back: sp.Expr, x: sp.Symbol, s: sp.Symbol, *, is_density: bool
) -> bool:
    """Compare with P(x)/|ℓ′(x)|, or with ∫ P by quadrature, at a point with random parameters."""
    from symdp.density.check import CheckError, moment

    assert piece.log_p is not None
    symbols = sp.Tuple(piece.log_p, piece.loss, piece.lower, piece.upper).free_symbols - {x}
    values = dict(random_values(symbols, 5, [str(y.name) for y in symbols]))
    low, high = (end.subs(values) for end in (piece.lower, piece.upper))
    at = interior_point(low, high)
    # Off the middle, where a form of a symmetric loss may read 0/0.
    at = at + sp.Rational(3, 7) if high is sp.oo else interior_point(at, high)
    claimed = (
        inside.subs(values).subs(s, piece.loss.subs(values).subs(x, at)).evalf(_DIGITS, maxn=300)
    )
    density = sp.exp(piece.log_p.subs(values))
    if is_density:
        slope = sp.diff(piece.loss.subs(values), x)
        direct = (density / sp.Abs(slope)).subs(x, at).evalf(_DIGITS)
    else:
        ends = (low, at) if piece.slope == "increasing" else (at, high)
        bound = replace(
            piece,
            lower=ends[0],
            upper=ends[1],
            log_p=piece.log_p.subs(values),
            loss=piece.loss.subs(values),
        )
        try:
            direct = sp.Float(moment(sp.S.Zero, [bound], [], x).real.str(_DIGITS, radius=False))
        except CheckError:
            return False
    gap = abs(claimed - direct)
    is_close = gap.is_comparable and gap < sp.Float(10) ** -15 * (1 + abs(direct))
    return bool(is_close and direct >= 0)  # a logarithm of what is negative has the wrong sign
