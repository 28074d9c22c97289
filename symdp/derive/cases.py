"""Cases: what is derived where the order of parameters decides, each under its own assumption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.check import with_values
from symdp.density.pieces import points
from symdp.density.records import Piece
from symdp.density.signs import OpenSignError, sign_of
from symdp.derive.limits import end_limits, monotone_pieces, range_or_reason
from symdp.derive.records import Case, Comparison
from symdp.errors import InputError
from symdp.interrupt import T
from symdp.model import tidy
from symdp.model.assumption import AssumedSymbol

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.model.pair import Pair


_DEPTH = 2  # comparisons one inside the other, so that there are at most four cases and their ties
_DEPTH_OF_KINKS = 4  # the same where a density is derived anew in each
_MOST_TRIED = 3  # comparisons that are tried for one question
_FEW = 8  # limits that are compared with one another


def range_cases(mechanism: Mechanism, direction: str) -> tuple[Case, ...]:
    """Return the range of the loss for each order of the parameters that decides it.

    Each case is derived anew under its comparison, as if it stood in [assume]; where two
    parameters are equal, one is put in for the other.  Nothing is returned where no comparison
    that is tried decides more than the reason says.
    """
    symbols = {str(s.name): s for s in mechanism.parameters.values()}
    probabilities = [p.name for p in mechanism.declared if p.domain == "open probability"]
    conditions = [f"{name} < 1" for name in probabilities if name in symbols]
    restricted = mechanism.assuming(conditions)
    cases = tuple(_derived_cases(restricted, direction, (), _DEPTH))
    is_undecided = all(case.ends is None and case.is_open for case in cases)
    if len(cases) < 2 or is_undecided:
        return ()
    return tuple(case.named(symbols) for case in cases)


@dataclass(frozen=True)
class _Answer:
    """A range, or why there is none and which expressions have no certain sign."""

    ends: tuple[sp.Expr, sp.Expr] | None
    reason: str
    gaps: tuple[sp.Expr, ...] = ()


def _derived_cases(
    mechanism: Mechanism, direction: str, conditions: tuple[Comparison, ...], depth: int
) -> Iterator[Case]:
    answer = _range_of_pair(mechanism.pair(direction))
    if answer.ends is None and depth:
        for comparison, above, below in orders(mechanism, answer.gaps):
            if above is None or below is None:
                continue
            left, right = comparison
            sides = [
                list(
                    _derived_cases(
                        assumed, direction, (*conditions, (left, operator, right)), depth - 1
                    )
                )
                for assumed, operator in ((above, ">"), (below, "<"))
            ]
            if all(case.is_open for side in sides for case in side):
                continue
            yield from sides[0]
            tie = _at_a_tie(mechanism.pair(direction), left, right)
            yield Case((*conditions, (left, "=", right)), tie.ends, tie.reason, bool(tie.gaps))
            yield from sides[1]
            return
    yield Case(conditions, answer.ends, answer.reason, bool(answer.gaps))


def _at_a_tie(pair: Pair, left: sp.Expr, right: sp.Expr) -> _Answer:
    """What holds where two parameters, or a parameter and a number, are equal."""
    if not left.is_Symbol:
        return _Answer(None, "not derived", (left - right,))
    return _range_of_pair(with_values(pair, {left: right}))


def _range_of_pair(pair: Pair) -> _Answer:
    x = pair.variable
    try:
        parts = monotone_pieces(pair) or tuple(
            Piece(p.value, p.value, p.p, p.q, p.loss, "constant")
            for p in points(pair)
            if not p.loss.is_infinite
        )
        ends, reason = range_or_reason(parts, x)
    except InputError as error:
        gap = open_gap(error)
        return _Answer(None, str(error), () if gap is None else (gap,))
    return _Answer(ends, reason, () if ends else tuple(dict.fromkeys(_gaps(parts, x))))


def open_gap(error: BaseException) -> sp.Expr | None:
    """Return the expression of no certain sign that an error is about, None where it is none."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OpenSignError) and cause.gap is not None:
            return cause.gap
        cause = cause.__cause__
    return None


def _gaps(parts: tuple[Piece, ...], x: sp.Symbol) -> Iterator[sp.Expr]:
    """Yield what has no certain sign in the slopes of a loss, and between its limits."""
    finite = [piece for piece in parts if not piece.loss.is_infinite]
    unknown = [piece for piece in finite if piece.slope == "unknown"]
    for piece in unknown:
        yield from _coefficients(sp.diff(piece.loss, x), x)
    if unknown:
        return
    ends = set(chain.from_iterable(end_limits(piece, x) for piece in finite))
    limits = [end for end in ends if end is not None and not end.is_infinite]
    limits.sort(key=sp.default_sort_key)
    for a, b in combinations(limits[:_FEW], 2):
        yield a - b


def _coefficients(slope: sp.Expr, x: sp.Symbol) -> Iterator[sp.Expr]:
    """Yield the factors of numerator and denominator that are free of x."""
    for part in sp.fraction(tidy.factor(tidy.together(slope))):
        fixed: dict[sp.Expr, sp.Expr] = {}
        for term in sp.Add.make_args(sp.expand(part)):
            constant, moving = term.as_independent(x, as_Add=False)
            fixed[moving] = fixed.get(moving, sp.S.Zero) + constant
        yield from sorted(fixed.values(), key=sp.count_ops)


def orders(
    mechanism: Mechanism, gaps: tuple[sp.Expr, ...]
) -> Iterator[tuple[tuple[sp.Expr, sp.Expr], Mechanism | None, Mechanism | None]]:
    """Yield comparisons (left, right) that decide a sign, with the mechanism above and below.

    None stands for a side on which there is no value.
    """
    tried: set[sp.Expr] = set()
    for gap in gaps:
        for factor in (*_ends_beside(gap), *_factors(gap)):
            if factor in tried or -factor in tried or len(tried) >= _MOST_TRIED:
                continue
            tried.add(factor)
            left, right = _solved(factor)
            sides: list[Mechanism | None] = []
            for sign in "><":
                sides.append(None)
                with suppress(InputError):
                    sides[-1] = mechanism.assuming([f"{left} {sign} {right}"])
            if sides != [None, None]:
                yield (left, right), sides[0], sides[1]


def _ends_beside(gap: sp.Expr) -> Iterator[sp.Expr]:
    """Yield how the ends that are assumed of a parameter lie to where it would be compared.

    Of u > s and u > 1 one is narrower where s compares with 1.
    """
    for factor in _factors(gap):
        left, right = _solved(factor)
        if isinstance(left, AssumedSymbol):
            for end in left.ends:
                difference = right - end.value
                if difference.free_symbols and sign_of(difference) is None:
                    yield difference


def _factors(gap: sp.Expr) -> Iterator[sp.Expr]:
    """Yield the factors of no certain sign; of a sum of logs those of the product less 1."""
    if gap.has(sp.log):
        product = sp.powsimp(sp.exp(sp.expand_log(sp.expand(gap), force=True)))
        gap = product - 1 if not product.has(sp.exp, sp.log) else gap
    above, below = sp.fraction(tidy.factor(tidy.together(gap)))
    for factor in (*sp.Mul.make_args(above), *sp.Mul.make_args(below)):
        base = factor.as_base_exp()[0]
        base = base.args[0] if isinstance(base, sp.log) else base
        base = base - 1 if isinstance(factor, sp.log) else base
        if base.free_symbols and sign_of(base) is None:
            yield base


def _solved(factor: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Return a and b where a − b has the factor's zeros, a a parameter where it can be."""
    for symbol in sorted(factor.free_symbols, key=lambda s: str(s.name)):
        slope = sp.diff(factor, symbol)
        if sign_of(slope) in {1, -1} and symbol not in slope.free_symbols:
            return symbol, sp.cancel(symbol - factor / slope)
    return factor, sp.S.Zero


def derived_cases(
    mechanism: Mechanism, error: InputError, derive: Callable[[Mechanism], T]
) -> tuple[T, ...]:
    """Return the derivations for both signs of what an error says is open; none where one fails."""
    return tuple(_derived(mechanism, error, derive, _DEPTH_OF_KINKS) or ())


def _derived(
    mechanism: Mechanism, error: InputError, derive: Callable[[Mechanism], T], depth: int
) -> list[T] | None:
    gap = open_gap(error)
    for (left, right), above, below in orders(mechanism, (gap,) if gap and depth else ()):
        derivations: list[T] = []
        tie = None
        if left.is_Symbol and left.is_integer and right.is_Integer:  # no case of measure 0
            with suppress(InputError):
                tie = mechanism(**{str(left.name): right})
        for assumed in (above, tie, below):
            if assumed is None:
                continue
            try:
                derivations.append(derive(assumed))
            except InputError as other:
                derivations += _derived(assumed, other, derive, depth - 1) or []
        if len(derivations) > 1:
            return derivations
    return None
