"""Real roots of kinks, zeros and slopes: exact where formulas reach, else isolated with balls."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import sympy as sp
from flint import arb, ctx, fmpq

from symdp.density.normal_form import exponential_polynomial, exponential_terms, tidy_base
from symdp.density.signs import (
    OpenSignError,
    compare,
    exponential_part,
    names_of,
    sign_of,
    values_wanted,
)
from symdp.emit.ranges import Ranges, Seen
from symdp.errors import InputError
from symdp.model import tidy

_BITS = 64  # of intervals while roots are looked for
_FINE_BITS = 320  # while they are refined
_FINE = 2**200  # denominator of a root's bracket
_REACH = 40  # octaves of a ray looked at; beyond, the leading term decides
_MOST_ROOTS = 128  # of one expression
_MOST_WORK = 60_000  # steps times nodes of the expression: a second or two
_LEAST_STEPS = 200  # for an expression however long
_DEPTH = 60  # halvings of an interval


class IsolationError(ArithmeticError):
    """The roots could not all be isolated."""


def isolated_roots(
    expression: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> tuple[sp.Expr, ...]:
    """Return rationals within 2^−200 (relative) of every simple root of a concrete function.

    Each interval is bisected until its range, or that of the derivative, excludes 0.  Towards an
    infinite end stretches double in length until the rest of the line as a whole is seen to hold
    no root; where even |x| > 2^40 stays undecided, no root is assumed there.
    """
    balanced = _balanced(expression, x)
    with ctx.workprec(_BITS):
        search = _Search(balanced, x)
        search.cover(lower, upper)
    with ctx.workprec(_FINE_BITS):
        fine = _Search(balanced, x)
        return tuple(fine.refined(low, high) for low, high in search.brackets)


def _balanced(expression: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Divide Σ rᵢ(x) exp(aᵢ(x)) by one of its exponentials, and write it with few x.

    Otherwise all terms of a sum of Gaussians shrink together far out, and hide the sign.
    """
    terms: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(expression):
        coefficient, exponent = exponential_part(term)
        exponent = sp.expand(exponent)
        terms[exponent] = terms.get(exponent, sp.S.Zero) + coefficient
    exponents = iter(terms)
    leader = next(exponents)
    for exponent in exponents:
        gap = sp.expand(exponent - leader)
        is_polynomial = gap.is_polynomial(x) and sp.degree(gap, x) > 0
        if is_polynomial and sign_of(sp.LC(gap, x)) == 1:
            leader = exponent
    total = sp.S.Zero
    for exponent, coefficient in terms.items():
        below_leader = exponent - leader
        factor = sp.S.One
        if exponential_terms(sp.exp(sp.expand(below_leader)), x):
            factor = tidy_base(sp.exp(below_leader) + 1, x) - 1
        total += sp.factor_terms(coefficient) * factor
    return total


def _ball_of_rational(value: sp.Rational) -> arb:
    return arb(fmpq(int(value.p), int(value.q)))


def _rational(end: sp.Expr) -> sp.Rational:
    if end.is_Rational:
        return end
    return sp.Rational(sp.floor(end.evalf(90) * _FINE), _FINE)


class _Search:
    """Bisection that keeps a bracket around every simple root."""

    def __init__(self, expression: sp.Expr, x: sp.Symbol) -> None:
        self.function = Ranges(expression, x)
        self.slope = Ranges(sp.diff(expression, x), x)
        self.brackets: list[tuple[sp.Rational, sp.Rational]] = []
        self.steps = 0
        size = sum(1 for _ in sp.preorder_traversal(expression))
        self.most_steps = max(_MOST_WORK // size, _LEAST_STEPS)

    def sign(self, low: arb, high: arb, *, of_slope: bool = False) -> int:
        """Return 1 or −1 where the expression, or its slope, keeps that sign, else 0."""
        function = self.function
        if of_slope:
            function = self.slope
        least, most = function(low.lower(), high.upper(), Seen())
        if least > 0:
            return 1
        if most < 0:
            return -1
        return 0

    def cover(self, lower: sp.Expr, upper: sp.Expr) -> None:
        """Examine the whole of (lower, upper)."""
        is_endless_left = lower is -sp.oo
        is_endless_right = upper is sp.oo
        if not is_endless_left and not is_endless_right:
            self.examine(_rational(lower), _rational(upper), 0)
            return
        # An odd start keeps roots at 0 or at whole numbers off the ends of the stretches.
        start = sp.Rational(-377, 1024)
        if not is_endless_left:
            start = _rational(lower)
        elif not is_endless_right:
            start = _rational(upper)
        if is_endless_right:
            self.cover_ray(start, 1)
        if is_endless_left:
            self.cover_ray(start, -1)

    def cover_ray(self, start: sp.Rational, direction: int) -> None:
        """Examine start + direction·(0, ∞) in stretches that double."""
        infinite = direction * arb.pos_inf()
        near = sp.S.Zero
        for k in range(-2, _REACH):
            first = start + direction * near
            ray_ends = sorted((_ball_of_rational(first), infinite))
            if self.sign(*ray_ends):
                return
            far = sp.Rational(4099, 4096) * sp.Integer(2) ** k
            low, high = sorted((first, start + direction * far))
            self.examine(low, high, 0)
            near = far

    def examine(self, low: sp.Rational, high: sp.Rational, depth: int) -> None:
        """Find the roots in (low, high)."""
        self.steps += 1
        if self.steps > self.most_steps or len(self.brackets) > _MOST_ROOTS:
            raise IsolationError("there are too many, perhaps infinitely many")
        cell = _ball_of_rational(low), _ball_of_rational(high)
        if self.sign(*cell):
            return
        if self.sign(*cell, of_slope=True):
            ends = [self.sign(end, end) for end in cell]
            if ends[0] and ends[1]:
                if ends[0] != ends[1]:
                    self.brackets.append((low, high))
                return
        if depth > _DEPTH:
            raise IsolationError(f"near {sp.N(low, 6)} intervals cannot tell whether there is one")
        # An uneven cut keeps simple rationals, where symmetric functions vanish, off the ends.
        cut = low + (high - low) * sp.Rational(503, 1024)
        self.examine(low, cut, depth + 1)
        self.examine(cut, high, depth + 1)

    def refined(self, low: sp.Rational, high: sp.Rational) -> sp.Rational:
        """Shrink a bracket to 2^−200 of its size: Newton steps in balls, else halves."""
        left_end = _ball_of_rational(low)
        left = self.sign(left_end, left_end)
        scale = max(abs(low), abs(high))
        while high - low > scale / _FINE:
            middle = _dyadic((low + high) / 2)
            at = _ball_of_rational(middle)
            value = arb.union(*self.function(at.lower(), at.upper(), Seen()))
            if value.contains(0):
                return middle
            lowest = _ball_of_rational(low).lower()
            highest = _ball_of_rational(high).upper()
            slope = arb.union(*self.slope(lowest, highest, Seen()))
            step = at - value / slope
            if step.is_finite():
                first = _exact(step.lower())
                last = _exact(step.upper())
                if 4 * (last - first) < high - low:
                    low = max(low, first)
                    high = min(high, last)
                    continue
            if (value > 0) == (left > 0):
                low = middle
            else:
                high = middle
        return _dyadic((low + high) / 2)


def _dyadic(value: sp.Rational) -> sp.Rational:
    return sp.Rational(sp.floor(value * _FINE**2), _FINE**2)


def _exact(end: arb) -> sp.Rational:
    mantissa, exponent = map(int, end.man_exp())
    return sp.Rational(mantissa) * sp.Integer(2) ** exponent


_MOST_DEGREE = 40  # of a polynomial in a root: x^3.001 = ρ^3001 is left to values
_MOST_RADICALS = 3  # that a resultant removes in seconds
_LONG = 120  # operations: resultants of longer ones take minutes
_MOST_ZEROS = 100  # of a wave, listed one by one
# Roots without a short formula are stored as rationals this close to the true root.
ROOT_ACCURACY = sp.Rational(1, 2**200)


class RootsUnknownError(OpenSignError):
    """The real roots of an expression could be found neither exactly nor by isolation."""


def roots_between(
    expression: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> tuple[sp.Expr, ...]:
    """Return the real roots of `expression` strictly between two ends, in no special order.

    With radicals some returned points may be roots of another branch; every root is among them.
    Polynomials in x or in one exponential are solved exactly up to degree 2 and to 2^−200 beyond,
    sines of ax + b exactly; other concrete expressions by ball arithmetic, which proves that no
    root is missed where |x| ≤ 2^40 and assumes none further out.
    """
    roots = []
    for root in _candidates(expression, x, lower, upper):
        if root.is_real is False:  # as of 3 + (−1)^x
            continue
        above = compare(root, lower)
        below = compare(upper, root)
        if above is None or below is None:
            gap = upper - root
            if above is None:
                gap = root - lower
            raise RootsUnknownError(
                f"whether {root} lies between {lower} and {upper} depends on parameter values; "
                f"{values_wanted(names_of(root, lower, upper))}",
                gap,
            )
        if above == 1 and below == 1:
            roots.append(root)
    return tuple(roots)


def known_roots(
    expression: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> tuple[sp.Expr, ...] | None:
    """Return the roots that `roots_between` finds, None where they stay unknown."""
    try:
        return roots_between(expression, x, lower, upper)
    except RootsUnknownError:
        return None


def _candidates(
    expression: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> Iterable[sp.Expr]:
    """Return a superset of the roots in the interval."""
    if x not in expression.free_symbols:
        return ()
    if isinstance(expression, sp.Mul | sp.Pow):
        return _of_product(expression, x, lower, upper)
    # K_ν(z) = ∫ exp(−z cosh t) cosh(νt) dt > 0, for t from 0 on
    is_bessel = isinstance(expression, sp.besselk) and expression.order.is_real
    if is_bessel and expression.argument.is_positive:
        return ()
    exact = _exact_roots(expression, x)
    if exact is None:
        exact = _of_wave(expression, x, lower, upper)
    if exact is not None:
        return exact
    if expression.free_symbols - {x}:
        names = names_of(*(expression.free_symbols - {x}))
        raise RootsUnknownError(
            f"cannot solve {expression} = 0 for {x}; give values to {names} first"
        )
    try:
        return isolated_roots(expression, x, lower, upper)
    except (IsolationError, InputError) as error:  # of a function without ranges
        raise RootsUnknownError(f"cannot locate the zeros of {expression}: {error}") from error


def _of_product(
    expression: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> Iterable[sp.Expr]:
    roots: set[sp.Expr] = set()
    for factor in sp.Mul.make_args(expression):
        base, power = factor.as_base_exp()
        if isinstance(factor, sp.exp) or x not in factor.free_symbols:
            continue
        if x in power.free_symbols:
            if sign_of(base) != 1:
                raise RootsUnknownError(f"cannot locate the zeros of {factor}")
            continue
        # A negative power is a pole, which also ends a smooth piece.
        roots.update(_candidates(base, x, lower, upper))
    return tuple(roots)


def _of_wave(
    expression: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> tuple[sp.Expr, ...] | None:
    """Return the zeros of sin(ax + b) or cos(ax + b), None for anything else or too many.

    A sum c + Σ aᵢ sin uᵢ + Σ bᵢ cos uᵢ with |c| > Σ|aᵢ| + Σ|bᵢ| has none.
    """
    constant, moving = expression.as_independent(x, as_Add=True)
    amplitudes = []
    for term in sp.Add.make_args(moving):
        factor, wave = term.as_independent(x, as_Add=False)
        if not isinstance(wave, sp.sin | sp.cos):
            return None
        amplitudes.append(abs(factor))
    if sign_of(abs(constant) - sp.Add(*amplitudes)) == 1:
        return ()
    if not isinstance(expression, sp.sin | sp.cos):
        return None
    phase = expression.args[0]
    if phase.free_symbols != {x} or not phase.is_polynomial(x) or sp.degree(phase, x) != 1:
        return None
    if lower.is_infinite or upper.is_infinite:
        raise RootsUnknownError(f"{expression} has infinitely many zeros")
    start = sp.pi / 2
    if isinstance(expression, sp.sin):
        start = sp.S.Zero
    slope, shift = sp.Poly(phase, x).all_coeffs()
    turns = []
    for end in (lower, upper):
        from_start = phase.subs(x, end) - start
        turns.append((from_start / sp.pi).evalf(15))
    if not all(turn.is_real and turn.is_finite for turn in turns):
        return None
    first = int(sp.floor(min(turns)))
    last = int(sp.ceiling(max(turns)))
    if last - first > _MOST_ZEROS:
        return None
    return tuple((k * sp.pi + start - shift) / slope for k in range(first, last + 1))


@lru_cache(maxsize=1024)
def _exact_roots(expression: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, ...] | None:
    """Solve by formula; None where no formula applies."""
    if expression.is_polynomial(x):
        return _polynomial_roots(sp.Poly(expression, x))
    terms = exponential_terms(expression, x)
    if terms is not None:
        return _exponential_roots(terms, x)
    if expression.is_rational_function(x):
        roots: list[sp.Expr] = []
        for part in sp.fraction(tidy.together(expression)):
            if x not in part.free_symbols:
                continue
            roots_of_part = _exact_roots(sp.expand(part), x)
            if roots_of_part is None:
                return None
            roots.extend(roots_of_part)
        return tuple(roots)
    if expression.is_algebraic_expr(x):
        return _algebraic_roots(expression, x)
    return _of_isolated_function(expression, x)


def _algebraic_roots(expression: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, ...] | None:
    """Roots of a polynomial that vanishes wherever an expression with radicals does.

    Each radical ρ = r^{1/q} is eliminated by the resultant with ρ^q − r; roots that belong to
    another branch of a radical come along, so that the result is a superset.
    """
    if expression.atoms(sp.exp, sp.log, sp.NumberSymbol) or sp.count_ops(expression) > _LONG:
        return None  # resultants over such coefficients take minutes
    numerator, denominator = sp.fraction(tidy.together(expression))
    all_roots: list[sp.Expr] = []
    for part in (numerator, denominator):
        radicals = {
            node.base: max(node.exp.q, 1)
            for node in part.atoms(sp.Pow)
            if x in node.base.free_symbols and not node.exp.is_Integer
        }
        if len(radicals) > _MOST_RADICALS or any(not r.is_polynomial(x) for r in radicals):
            return None
        eliminated = part
        for inside, order in radicals.items():
            rho = sp.Dummy("rho")
            eliminated = eliminated.replace(
                lambda node, inside=inside: isinstance(node, sp.Pow) and node.base == inside,
                lambda node, rho=rho, order=order: rho ** (node.exp * order),
            )
            if not eliminated.is_polynomial(rho):
                return None
            if sp.degree(eliminated, rho) > _MOST_DEGREE or order > _MOST_DEGREE:
                return None
            if eliminated.count_ops() > tidy.MOST_OPERATIONS:
                return None
            eliminated = sp.resultant(sp.expand(eliminated), rho**order - inside, rho)
        if x in eliminated.free_symbols:
            roots = _exact_roots(sp.expand(eliminated), x)
            if roots is None:
                return None
            all_roots.extend(roots)
    return tuple(all_roots)


def _exponential_roots(
    terms: list[tuple[sp.Expr, sp.Expr]], x: sp.Symbol
) -> tuple[sp.Expr, ...] | None:
    """Roots of a polynomial in u = exp(g(x)): those of g(x) = log(root) for positive roots."""
    in_one_exponential = exponential_polynomial(terms, x)
    if in_one_exponential is None:
        return None
    generator, coefficients = in_one_exponential
    signs = {sign_of(coefficient) for coefficient in coefficients.values()}
    if len(signs) == 1:
        (sign,) = signs
        return () if sign else None
    u = sp.Dummy("u", positive=True)
    powers = [coefficient * u**n for n, coefficient in coefficients.items()]
    levels = _polynomial_roots(sp.Poly(sp.Add(*powers), u))
    if levels is None:
        return None
    roots: list[sp.Expr] = []
    for level in levels:
        sign = sign_of(level)
        if sign is None:
            return None
        if sign == 1:
            inner = _exact_roots(sp.expand(generator - sp.log(level)), x)
            if inner is None:
                return None
            roots.extend(inner)
    return tuple(roots)


def _of_isolated_function(expression: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, ...] | None:
    """Solve c + h(x) = 0 where h is an odd root, a log or an exponential of something solvable."""
    constant, moving = expression.as_independent(x, as_Add=True)
    coefficient, node = moving.as_independent(x, as_Add=False)
    level = -constant / coefficient
    if isinstance(node, sp.log):
        return _exact_roots(sp.expand(node.args[0] - sp.exp(level)), x)
    if isinstance(node, sp.Pow) and x not in node.exp.free_symbols and node.base.is_nonnegative:
        sign = sign_of(level)
        if sign is None:
            return None
        if sign < 0:
            return ()
        return _exact_roots(sp.expand(node.base - level ** (1 / node.exp)), x)
    return None


def _polynomial_roots(polynomial: sp.Poly) -> tuple[sp.Expr, ...] | None:
    """Real roots: by formula up to degree 2, as near rationals beyond; None where undecided."""
    degree = polynomial.degree()
    if degree <= 0:
        return ()
    if degree <= 2:
        return _small_roots(polynomial)
    if polynomial.domain.is_ZZ or polynomial.domain.is_QQ:
        roots: list[sp.Expr] = []
        _, factors = polynomial.factor_list()
        for factor, _ in factors:
            if factor.degree() <= 2:
                roots.extend(_small_roots(factor) or ())
            else:
                roots.extend(_near(factor))
        return tuple(roots)
    x = polynomial.gen
    (tail,) = polynomial.monoms()[-1]
    if tail:  # a factor x^tail, as symmetric densities give
        quotient = tidy.cancel(polynomial.as_expr() / x**tail)
        other_roots = _polynomial_roots(sp.Poly(quotient, x))
        if other_roots is None:
            return None
        return (sp.S.Zero, *other_roots)
    return None


def _small_roots(polynomial: sp.Poly) -> tuple[sp.Expr, ...] | None:
    coefficients = polynomial.all_coeffs()
    if len(coefficients) == 2:
        return (tidy.cancel(-coefficients[1] / coefficients[0]),)
    a, b, c = coefficients
    discriminant = sp.factor_terms(sp.expand(b**2 - 4 * a * c))
    sign = sign_of(discriminant)
    if sign is None:
        return None
    if sign < 0:
        return ()
    middle = -b / (2 * a)
    if sign == 0:
        return (tidy.cancel(middle),)
    offset = sp.sqrt(discriminant) / (2 * a)
    return tuple(sp.factor_terms(sp.expand(root)) for root in (middle - offset, middle + offset))


def _near(polynomial: sp.Poly) -> list[sp.Expr]:
    """Rationals within ROOT_ACCURACY of the real roots of an irreducible polynomial."""
    intervals = polynomial.intervals(eps=ROOT_ACCURACY)
    return [(low + high) / 2 for (low, high), _ in intervals]
