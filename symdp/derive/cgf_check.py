"""A closed form of the CGF against integrals: when it is found, and when it is read from a file."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

import sympy as sp

from symdp.derive.check import agrees, logs_agree, off_the_axis, random_values, tilts_to_check
from symdp.derive.pieces import pieces, points
from symdp.derive.records import CGF
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import attempt

if TYPE_CHECKING:
    from symdp.model.pair import Pair

T = TypeVar("T")

_CHECK_ROUNDS = 2  # random values of parameters and tilts
# What SymPy raises about an expression of a file that is no function of the tilt.
_REFUSALS = (TypeError, ValueError, AttributeError, ArithmeticError)


class NoClosedForm(Exception):  # noqa: N818  (it carries a reason, not an error)
    """Why the closed form was given up; final where no form was found to be checked at all."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


def in_time(work: Callable[[], T], reason: str, seconds: float) -> T:
    """Return what the work returns; raise NoClosedForm with the reason where its time is up."""
    found = attempt(work, None, seconds)
    if found is None:
        raise NoClosedForm(reason)
    return found


def checked(
    expression: sp.Expr,
    pair: Pair,
    tilt: sp.Symbol,
    domain: tuple[sp.Expr, sp.Expr] | None,
    below_one: tuple[str, ...],
) -> tuple[tuple[sp.Expr, ...], tuple[tuple[tuple[str, sp.Expr], ...], ...]]:
    """Compare a closed form with integrals; return the tilts and the parameter values used."""
    symbols = (expression.free_symbols - {tilt}) | parameters_of(pair)
    done: list[sp.Expr] = []
    used: list[tuple[tuple[str, sp.Expr], ...]] = []
    for seed in range(_CHECK_ROUNDS if symbols else 1):
        values = random_values(symbols, seed, below_one)
        bound = expression.subs(values)
        tilts = _tilts(domain, values, seed)
        real = tilts[seed : seed + 1] if symbols else tilts
        places = [at for t in real for at in (t, off_the_axis(bound, tilt, t, seed))]
        _compare(bound, tilt, with_values(pair, dict(values)), places)
        done += places
        used += [tuple((str(s.name), v) for s, v in values.items())] * len(places)
    return tuple(done), tuple(used)


def _tilts(
    domain: tuple[sp.Expr, sp.Expr] | None, values: Mapping[sp.Symbol, sp.Expr], seed: int
) -> tuple[sp.Rational, ...]:
    low, high = domain or (sp.S.NegativeOne, sp.S.Zero)
    return tilts_to_check((low.subs(values), high.subs(values)), seed)


def _compare(bound: sp.Expr, tilt: sp.Symbol, concrete: Pair, places: Iterable[sp.Expr]) -> None:
    """Compare a form without parameters with integrals; raise NoClosedForm where it differs."""
    from symdp.derive.quadrature import CheckError

    try:
        found, listed = pieces(concrete), points(concrete)
        if not logs_agree(concrete, found):
            raise NoClosedForm("the log densities disagree with P and Q")
        for at in places:
            if not agrees(bound, tilt, at, (found, listed, concrete.variable)):
                raise NoClosedForm(
                    "the closed form that was found disagrees with a numerical integral "
                    f"at {tilt} = {at}"
                )
    except (CheckError, InputError, AccuracyError) as error:
        raise NoClosedForm(
            f"the closed form that was found could not be checked: {error}"
        ) from error


def still_agrees(found: CGF, pair: Pair, below_one: tuple[str, ...], seconds: float) -> bool:
    """Whether a form that was read from a file equals an integral at one tilt nobody could know."""
    if found.expression is None:
        return True
    expression, domain, chance = found.expression, found.domain, random.SystemRandom()
    symbols = (expression.free_symbols - {found.tilt}) | parameters_of(pair)

    def check() -> bool:
        seed = chance.randrange(2**32)
        values = random_values(symbols, seed, below_one)
        place = chance.choice(_tilts(domain, values, seed))
        concrete = with_values(pair, dict(values))
        _compare(expression.subs(values), found.tilt, concrete, [place])
        return True

    try:
        return in_time(check, "not checked in time", seconds)
    except (NoClosedForm, InputError, *_REFUSALS):
        return False


def parameters_of(pair: Pair) -> set[sp.Symbol]:
    """Return the symbols of a pair but its variable."""
    return {s for part in pair.expressions() for s in part.free_symbols} - {pair.variable}


def with_values(pair: Pair, values: dict[sp.Symbol, sp.Expr]) -> Pair:
    """Put values for the parameters of a pair."""
    from symdp.model.pair import Pair as PairRecord

    if not values:
        return pair

    def put(expression: sp.Expr) -> sp.Expr:
        return expression.subs(values)

    components = tuple(
        tuple(map(put, c)) if isinstance(c, tuple) else put(c) for c in pair.components
    )
    return PairRecord(
        pair.variable,
        pair.support.substitute(values),
        components,
        tuple(map(put, pair.p_weights)),
        tuple(map(put, pair.q_weights)),
    )
