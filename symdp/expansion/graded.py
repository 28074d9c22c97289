"""The one series behind every expansion here: exp of the cumulants beyond the second, by grade.

Steepest descent and Edgeworth both expand

    exp(Σ_{i≥1} κ_{i+2} h^{i+2} s^i/(i+2)!) = Σ_g s^g T_g(κ₃, …, κ_{g+2}; h),

where κ_j is a cumulant (or a derivative of the exponent), h the increment of the transform's
argument, and s marks powers of n^{−1/2}: for a sum of n terms a standardised κ_j is of order
n^{−(j−2)/2}. They differ only in what a power h^d becomes: a Gaussian moment, a Hermite polynomial
or an integral of one. T_g is the complete Bell polynomial B_g(x₁, …, x_g)/g! at
x_i = κ_{i+2} h^{i+2}/((i+1)(i+2)); sorting by g rather than by the index of the Bell polynomials in
the usual printed series [SPA (59)] keeps terms of equal size together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb, factorial, prod

import sympy as sp

from symdp.arguments import whole

_Monomial = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GradedTerm:
    """One term of T_g: coefficient · Π κ_j^power · h^degree."""

    coefficient: Fraction
    factors: tuple[tuple[int, int], ...]  # pairs (j, power) of κ_j
    degree: int


@cache
def graded_terms(grade: int) -> tuple[GradedTerm, ...]:
    """Return the terms of T_grade, the part of order n^{−grade/2}."""
    whole(grade, "grade")
    terms = []
    for exponents, bell in _bell_coefficients(grade).items():
        factors = tuple((i + 2, power) for i, power in enumerate(exponents, start=1) if power)
        scale = prod((j * (j - 1)) ** power for j, power in factors)
        degree = sum(j * power for j, power in factors)
        terms.append(GradedTerm(Fraction(bell, scale * factorial(grade)), factors, degree))
    return tuple(terms)


def graded_expression(
    grade: int, cumulant: Callable[[int], sp.Expr], image: Callable[[int], sp.Expr]
) -> sp.Expr:
    """Return T_grade with κ_j written as `cumulant(j)` and h^d replaced by `image(d)`."""
    return sp.Add(
        *(
            sp.Rational(term.coefficient)
            * sp.Mul(*(cumulant(j) ** power for j, power in term.factors))
            * image(term.degree)
            for term in graded_terms(grade)
        )
    )


@cache
def _float_terms(grade: int) -> tuple[tuple[float, tuple[tuple[int, int], ...], int], ...]:
    return tuple((float(t.coefficient), t.factors, t.degree) for t in graded_terms(grade))


def graded_value(grade: int, cumulants: Sequence[float], images: Sequence[float]) -> float:
    """Return T_grade in floating point."""
    total = 0.0
    for coefficient, factors, degree in _float_terms(grade):
        product = coefficient * images[degree]
        for j, power in factors:
            for _ in range(power):  # a product overflows to inf, where a power would raise
                product *= cumulants[j]
        total += product
    return total


@cache
def _bell_coefficients(order: int) -> dict[_Monomial, int]:
    """Return B_order as a map from the exponents of x₁, …, x_order to integer coefficients.

    exp(Σ_{j≥1} x_j s^j/j!) = Σ_n B_n(x₁, …, x_n) s^n/n!; differentiating both sides by s gives
    B_n = Σ_{j=1}^{n} C(n−1, j−1) x_j B_{n−j}, which is faster than expanding the exponential.
    """
    if order == 0:
        return {(): 1}
    bell: dict[_Monomial, int] = {}
    for j in range(1, order + 1):
        factor = comb(order - 1, j - 1)
        for exponents, coefficient in _bell_coefficients(order - j).items():
            raised = [*exponents, *(0 for _ in range(j))]
            raised[j - 1] += 1
            key = tuple(raised)
            bell[key] = bell.get(key, 0) + factor * coefficient
    return bell


def complete_bell(order: int, arguments: tuple[sp.Expr, ...] | None = None) -> sp.Expr:
    """Return the complete Bell polynomial B_order.

    B_n(x₁, …, x_n) = n! [s^n] exp(Σ_j x_j s^j/j!), the polynomial by which moments follow from
    cumulants, as used in [SPA (55)].

    Parameters
    ----------
    order
        n, a non-negative integer.
    arguments
        x₁, …, x_n; the symbols x_1, …, x_n where left out.

    Examples
    --------
    >>> complete_bell(3)
    x_1**3 + 3*x_1*x_2 + x_3
    >>> complete_bell(4, (0, 0, sp.Symbol("F_3"), sp.Symbol("F_4")))
    F_4
    """
    whole(order, "order")
    if arguments is None:
        arguments = tuple(sp.Symbol(f"x_{j}") for j in range(1, order + 1))
    return sp.Add(
        *(
            coefficient * sp.Mul(*(x**power for x, power in zip(arguments, exponents, strict=True)))
            for exponents, coefficient in _bell_coefficients(order).items()
        )
    )
