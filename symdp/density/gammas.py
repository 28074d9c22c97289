"""Quotients of gamma functions in masses on the integers, and where such masses end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import sympy as sp
from sympy.utilities.iterables import sift

from symdp.density.signs import sign_of

COUNTING = (sp.gamma, sp.binomial, sp.factorial, sp.RisingFactorial, sp.FallingFactorial)
_MOST_FACTORS = 32  # of a polynomial that a quotient is: each is worked on again and again


def with_fewer_gammas(component: sp.Expr, k: sp.Symbol) -> sp.Expr:
    """Return a mass function whose quotients of gamma functions are polynomials where they can be.

    Those of binomial(k + 4, k) or Γ(k + 1)/Γ(k + 4) are: no two large logarithms cancel then.
    Polynomials of a high degree stay quotients.
    """

    def is_quotient(node: sp.Basic) -> bool:
        return isinstance(node, sp.Mul | sp.binomial) and _gammas(node, k) > 0

    def simplified(node: sp.Expr) -> sp.Expr:
        shorter = reduced(node, k)
        if _gammas(shorter, k) < _gammas(node, k):
            return shorter
        return node

    return component.replace(is_quotient, simplified)


def reduced(product: sp.Expr, k: sp.Symbol) -> sp.Expr:
    """Return a product in which Γ(u)/Γ(v) is a rational function where u − v is a small integer.

    Arguments are compared, and nothing is expanded: sums of hundreds of factors never come up.
    """
    parts = sp.Mul.make_args(product)
    counted, factors = sift(parts, lambda part: _gammas(part, k) > 0, binary=True)
    powers: dict[sp.Expr, int] = {}
    for factor in counted:
        base, power = factor.as_base_exp()
        if not (isinstance(base, COUNTING) and power.is_Integer):
            factors.append(factor)
            continue
        for argument, sign in _arguments(base):
            expanded = sp.expand(argument)
            powers[expanded] = powers.get(expanded, 0) + sign * int(power)
    ordered = sorted(powers, key=sp.default_sort_key)
    numerators = [argument for argument in ordered if powers[argument] > 0]
    denominators = [argument for argument in ordered if powers[argument] < 0]
    for above, below in itertools.product(numerators, denominators):
        gap = above - below
        times = min(powers[above], -powers[below])
        if times > 0 and gap.is_Integer and abs(gap) <= _MOST_FACTORS:
            low = above
            sign = -1
            if gap > 0:
                low = below
                sign = 1
            factors += [(low + j) ** (sign * times) for j in range(abs(int(gap)))]
            powers[above] -= times
            powers[below] += times
    gammas = [sp.gamma(argument) ** power for argument, power in powers.items()]
    return sp.Mul(*factors, *gammas)


def _arguments(node: sp.Expr) -> Iterator[tuple[sp.Expr, int]]:
    """Yield the arguments of the gamma functions that a function is a quotient of, with signs."""
    if isinstance(node, sp.gamma):
        yield node.args[0], 1
        return
    if isinstance(node, sp.factorial):
        yield node.args[0] + 1, 1
        return
    first, second = node.args
    if isinstance(node, sp.RisingFactorial):
        yield first + second, 1
        yield first, -1
        return
    yield first + 1, 1
    yield first - second + 1, -1
    if isinstance(node, sp.binomial):
        yield second + 1, -1


def _gammas(expression: sp.Expr, k: sp.Symbol) -> int:
    return sum(node.has(k) for node in expression.atoms(*COUNTING))


def are_positive(node: sp.Expr, k: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> bool:
    """Return whether a function is a quotient of Γ of what is positive on all of a support."""
    arguments = (argument for argument, _ in _arguments(node))
    ends = (_least_at(argument, k, lower, upper) for argument in arguments)
    return all(end is not None and sign_of(end) == 1 for end in ends)


def in_log_gammas(log: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    """Return a logarithm in which those of Γ and its kin, positive on a support, are log Γ.

    Γ itself leaves the range of doubles at 171. Of whole arguments that is known without a support.
    """

    def is_positive(node: sp.Basic) -> bool:
        if not isinstance(node, sp.log):
            return False
        inside = node.args[0]
        if not isinstance(inside, COUNTING) or not inside.has(x):
            return False
        return are_positive(inside, x, lower, upper)

    def opened(node: sp.Expr) -> sp.Expr:
        parts = _arguments(node.args[0])
        return sp.Add(*(sign * sp.loggamma(argument) for argument, sign in parts))

    return log.replace(is_positive, opened)


def with_ends(masses: sp.Expr, k: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    """Return masses that say where a binomial coefficient or a 1/Γ begins to be 0."""

    def ended(node: sp.Expr) -> sp.Expr:
        if isinstance(node, sp.Add):
            return node.func(*map(ended, node.args))
        if isinstance(node, sp.Piecewise):
            branches = [(branch(mass, holds), holds) for mass, holds in node.args]
            return sp.Piecewise(*branches)
        factors = sp.Mul.make_args(node)
        lines: list[sp.Expr] = []
        for factor in factors:
            lines += _never_negative(factor, k, lower, upper)
        if any(isinstance(factor, sp.Piecewise | sp.Add) for factor in factors):
            node = sp.Mul(*(factor if factor is node else ended(factor) for factor in factors))
        if not lines:
            return node
        # Between two integers, so that the last of them is no place of its own.
        inside = sp.And(*(line + sp.S.Half > 0 for line in lines))
        return sp.Piecewise((node, inside), (sp.S.Zero, True))

    def branch(mass: sp.Expr, holds: sp.Basic) -> sp.Expr:
        ended_mass = ended(mass)
        if not isinstance(ended_mass, sp.Piecewise):
            return ended_mass
        implied = [holds]
        if isinstance(holds, sp.And):
            implied += holds.args
        if ended_mass.args[0].cond in implied:
            return mass
        return ended_mass

    if masses.has(*COUNTING):
        return ended(masses)
    return masses


def _never_negative(
    factor: sp.Expr, k: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> Iterator[sp.Expr]:
    """Yield whole linear functions of k, below 0 on a part of a support where a factor is 0."""
    base, power = factor.as_base_exp()
    is_inverse = power.is_Integer and power < 0
    candidates: list[sp.Expr] = []
    if isinstance(base, sp.binomial) and power.is_positive:
        n, m = base.args
        least = _least_at(n, k, lower, upper)
        candidates.append(m)
        if least is not None and sign_of(least) in (0, 1):
            candidates.append(n - m)
    elif isinstance(base, sp.gamma) and is_inverse:
        candidates.append(base.args[0] - 1)
    elif isinstance(base, sp.factorial) and is_inverse:
        candidates.append(base.args[0])
    for candidate in candidates:
        line = sp.expand(candidate)
        moves_by_integers = k in line.free_symbols and line.is_integer
        if moves_by_integers and _may_fall_below(line, k, lower, upper):
            yield line


def _may_fall_below(linear: sp.Expr, k: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> bool:
    """Whether a linear function of k is below 0 at an integer of a support."""
    end = _least_at(linear, k, lower, upper)
    return end is not None and sign_of(end) == -1


def _least_at(linear: sp.Expr, k: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> sp.Expr | None:
    """Return the least value of a linear function on a support, None of another function."""
    if k not in linear.free_symbols:
        return linear
    if not (linear.is_polynomial(k) and sp.degree(linear, k) == 1):
        return None
    is_rising = sign_of(sp.diff(linear, k)) == 1
    if is_rising and k.is_integer:
        end = sp.ceiling(lower)
    elif is_rising:
        end = lower
    elif k.is_integer:
        end = sp.floor(upper)
    else:
        end = upper
    if end.is_infinite:
        return -sp.oo
    return linear.subs(k, end)
