"""M(z) = E e^{zL} of one step as a sum of rational functions times exponentials, where it is one.

    M(z) = Σᵢ Nᵢ(z) e^{bᵢ z} / Π_p (z − p)^{d_p}

Lists, Laplace noise of all kinds, logistic, uniform and exponential noise have such an M, and with
it a composed δ that is a finite sum of residues.  No mechanism is named: what the table of
integrals says of each stretch of the support is read term by term.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import sympy as sp

from symdp.arguments import instance
from symdp.density.check import NoClosedForm, checked
from symdp.density.integrate import tabulated_moment
from symdp.density.signs import sign_of
from symdp.errors import InputError
from symdp.interrupt import attempt
from symdp.model import tidy
from symdp.model.pair import Pair
from symdp.tolerances import SOME_TIME

_LARGEST_NUMBER = 2**16  # in a pair that is taken apart: a power of so much takes seconds
_FOR_CHECK = 10.0  # seconds of work
_MOST_TERMS = 40  # of one M: its powers have far more
_MOST_POWER = 12  # of a sum that is multiplied out
# What SymPy and the table raise about an integrand that they cannot read.
REFUSALS = (InputError, ArithmeticError, TypeError, ValueError, AttributeError)

Polynomial = tuple[sp.Expr, ...]  # coefficients from the constant one up
_Factors = tuple[tuple[sp.Expr, int], ...]  # poles and orders


class Term(NamedTuple):
    """N(z) e^{bz}: the coefficients of N from the constant one up, and b."""

    polynomial: Polynomial
    rate: sp.Expr


@dataclass(frozen=True)
class ExponentialSum:
    """M(z) = Σ N(z) e^{bz}/Π(z − p)^d over finite losses, all numbers exact."""

    terms: tuple[Term, ...]  # N and b of each, the b different
    poles: tuple[tuple[sp.Expr, int], ...]  # p and d, real and different; M may have none there


class _Part(NamedTuple):
    """c·N(z) e^{bz}/Π(z − p)^d on the way."""

    polynomial: Polynomial
    rate: sp.Expr
    poles: _Factors


class _NotOneError(Exception):
    """An expression is no such sum."""


@lru_cache(maxsize=128)
def exponential_sum(pair: Pair, below_one: tuple[str, ...] = ()) -> ExponentialSum | None:
    """Return M as a sum of rational functions times exponentials, None where it is none.

    What was read is compared with proved integrals at tilts off and on the real axis, at random
    values of parameters that are free.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> found = exponential_sum(mechanisms.laplace(b=1).pair())
    >>> found.poles, sorted(term.rate for term in found.terms)
    (((-1/2, 1),), [-1, 1])
    >>> exponential_sum(mechanisms.gaussian(sigma=1).pair()) is None
    True
    """
    instance(pair, Pair, "it is no pair: give mechanism.pair()")
    numbers: set[sp.Rational] = set()
    for component in pair.expressions():
        numbers |= component.atoms(sp.Rational)
    if any(abs(number) > _LARGEST_NUMBER for number in numbers):
        return None  # e^{−500000x} is a power of 500000 to polynomials
    with suppress(NoClosedForm, *REFUSALS):
        closed_form = attempt(lambda: tabulated_moment(pair), None, SOME_TIME)
        if closed_form is None:
            return None
        tilt, moment = closed_form
        if moment.has(sp.Float):
            return None
        total = attempt(lambda: read_exponential_sum(moment, tilt), None, SOME_TIME)
        if total is None:
            return None

        def compared() -> object:
            return checked(sp.log(moment), pair, tilt, None, below_one)

        if attempt(compared, None, _FOR_CHECK):
            return total
    return None


def read_exponential_sum(expression: sp.Expr, tilt: sp.Symbol) -> ExponentialSum | None:
    """Return an expression as such a sum, None where it has another form or grows along lines."""
    plain = expression.rewrite([sp.sinh, sp.cosh], sp.exp)
    try:
        parts = _parts_of(plain, tilt)
        poles = _common_poles(parts)
        exponentials = ExponentialSum(_collected(parts, poles), poles)
    except _NotOneError:
        return None
    degree = sum(order for _, order in poles)
    if any(len(term.polynomial) - 1 > degree for term in exponentials.terms):
        return None  # no arc closes a line along which M grows
    return exponentials


def _parts_of(e: sp.Expr, t: sp.Symbol) -> list[_Part]:
    """Return an expression as a sum of parts."""
    if t not in e.free_symbols:
        return [_Part((e,), sp.S.Zero, ())]
    if e == t:
        return [_Part((sp.S.Zero, sp.S.One), sp.S.Zero, ())]
    if e.is_Add:
        return [part for argument in e.args for part in _parts_of(argument, t)]
    if e.is_Mul:
        return _multiplied([_parts_of(argument, t) for argument in e.args])
    base, exponent = e.as_base_exp()
    if base == e:
        raise _NotOneError
    if exponent.is_Integer:
        if 0 < exponent <= _MOST_POWER:
            return _multiplied([_parts_of(base, t)] * int(exponent))
        if -_MOST_POWER <= exponent < 0:
            return _multiplied([[_inverse(_parts_of(base, t), t)]] * -int(exponent))
    if t in base.free_symbols or not base.is_positive or t not in exponent.free_symbols:
        raise _NotOneError
    line = sp.expand(exponent)
    rate = line.coeff(t)
    start = sp.expand(line - rate * t)
    if t in rate.free_symbols or t in start.free_symbols:
        raise _NotOneError
    height = sp.S.One if base is sp.E else sp.log(base)
    return [_Part((base**start,), rate * height, ())]


def _multiplied(factors: Iterable[Sequence[_Part]]) -> list[_Part]:
    product = [_Part((sp.S.One,), sp.S.Zero, ())]
    for factor in factors:
        if len(product) * len(factor) > _MOST_TERMS:
            raise _NotOneError
        terms = []
        for a, b in itertools.product(product, factor):
            polynomial = _times(a.polynomial, b.polynomial)
            terms.append(_Part(polynomial, a.rate + b.rate, a.poles + b.poles))
        product = terms
    return product


def _inverse(parts: Sequence[_Part], t: sp.Symbol) -> _Part:
    """Return 1 over a sum with one exponential and a numerator of real linear factors."""
    poles = _common_poles(parts)
    terms = _collected(parts, poles)
    if len(terms) != 1:
        raise _NotOneError
    (term,) = terms
    powers = [coefficient * t**k for k, coefficient in enumerate(term.polynomial)]
    numerator = tidy.bounded(sp.factor, sp.Add(*powers))
    leading = sp.S.One
    zeros = []
    for power in sp.Mul.make_args(numerator):
        factor, order = power.as_base_exp()
        line = sp.expand(factor)
        slope = line.coeff(t)
        start = sp.expand(line - slope * t)
        if t in start.free_symbols or t in slope.free_symbols or not order.is_Integer:
            raise _NotOneError
        if slope == 0:
            leading *= start**order
            continue
        leading *= slope**order
        zeros.append((-start / slope, int(order)))
    if any(order < 0 or not _may_be_real(zero) for zero, order in zeros):
        raise _NotOneError
    over: Polynomial = (1 / leading,)
    for pole, order in poles:
        over = _times(over, _linear_power(pole, order))
    return _Part(over, -term.rate, tuple(zeros))


def _may_be_real(pole: sp.Expr) -> bool:
    """Return whether a pole is real, or may be at values of its parameters, where these tell."""
    if pole.is_number:
        return bool(pole.is_real)
    return pole.is_real is not False


def _common_poles(parts: Iterable[_Part]) -> _Factors:
    """Return each pole with the highest order in which it stands in a part."""
    highest: dict[sp.Expr, int] = {}
    for part in parts:
        for pole, order in _orders(part.poles).items():
            listed_pole = _same(pole, highest)
            highest[listed_pole] = max(highest.get(listed_pole, 0), order)
    return tuple(sorted(highest.items(), key=lambda entry: sp.default_sort_key(entry[0])))


def _orders(poles: _Factors) -> dict[sp.Expr, int]:
    total: dict[sp.Expr, int] = {}
    for pole, order in poles:
        listed_pole = _same(pole, total)
        total[listed_pole] = total.get(listed_pole, 0) + order
    return total


def same_number(value: sp.Expr, among: Iterable[sp.Expr]) -> sp.Expr | None:
    """Return the one of several exact numbers that equals a value, or the value itself.

    None where that cannot be told.
    """
    try:
        return _same(value, among)
    except _NotOneError:
        return None


def _same(value: sp.Expr, among: Iterable[sp.Expr]) -> sp.Expr:
    """Return the one of several exact numbers that equals a value, or the value itself."""
    for candidate in among:
        if value == candidate or _is_zero(value - candidate):
            return candidate
    return value


def _is_zero(value: sp.Expr) -> bool:
    sign = sign_of(value)
    if sign is None:
        raise _NotOneError  # two numbers that cannot be told apart
    return sign == 0


def _collected(parts: Iterable[_Part], poles: _Factors) -> tuple[Term, ...]:
    """Return the numerators over common poles, one for each exponential, zeros left out."""
    total: dict[sp.Expr, Polynomial] = {}
    for part in parts:
        orders = _orders(part.poles)
        polynomial = part.polynomial
        for pole, order in poles:
            missing = order - orders.get(_same(pole, orders), 0)
            polynomial = _times(polynomial, _linear_power(pole, missing))
        rate = _same(part.rate, total)
        total[rate] = _plus(total.get(rate, ()), polynomial)
    terms = []
    for rate, polynomial in total.items():
        shortened = _without_zeros(polynomial)
        if shortened:
            terms.append(Term(shortened, rate))
    return tuple(sorted(terms, key=_by_rate))


def _by_rate(term: Term) -> tuple[float, object]:
    # Of rates in parameters the least number of signs decides: below zero first, where it is known.
    if term.rate.is_number:
        size = float(term.rate)
    else:
        size = float(not term.rate.is_negative)
    return size, sp.default_sort_key(term.rate)


def _without_zeros(polynomial: Polynomial) -> Polynomial:
    # One that cannot be told from zero counts as one that is not.
    exact = [sp.S.Zero if c == 0 or sign_of(c) == 0 else c for c in polynomial]
    while exact and exact[-1] == 0:
        exact.pop()
    return tuple(exact)


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    product = [sp.S.Zero] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] += x * y
    return tuple(product)


def _plus(a: Polynomial, b: Polynomial) -> Polynomial:
    return tuple(x + y for x, y in itertools.zip_longest(a, b, fillvalue=sp.S.Zero))


def _linear_power(pole: sp.Expr, order: int) -> Polynomial:
    """Return (z − p)^d."""
    product: Polynomial = (sp.S.One,)
    for _ in range(order):
        product = _times(product, (-pole, sp.S.One))
    return product
