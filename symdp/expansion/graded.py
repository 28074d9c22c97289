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
from math import factorial, prod

import sympy as sp

from symdp.arguments import whole
from symdp.expansion.bell import bell_coefficients


@dataclass(frozen=True, slots=True)
class GradedTerm:
    """One term of T_g: coefficient · Π κ_j^power · h^degree."""

    coefficient: Fraction
    factors: tuple[tuple[int, int], ...]  # pairs (j, power) of κ_j
    degree: int


@cache
def graded_terms(grade: int) -> tuple[GradedTerm, ...]:
    """Return the terms of T_grade, the part of order n^{−grade/2}.

    Parameters
    ----------
    grade
        g, a non-negative integer.

    Examples
    --------
    >>> [(str(t.coefficient), t.factors, t.degree) for t in graded_terms(2)]
    [('1/72', ((3, 2),), 6), ('1/24', ((4, 1),), 4)]
    """
    whole(grade, "grade")
    terms = []
    for exponents, bell in bell_coefficients(grade).items():
        factors = tuple((i + 2, power) for i, power in enumerate(exponents, start=1) if power)
        scale = prod((j * (j - 1)) ** power for j, power in factors)
        degree = sum(j * power for j, power in factors)
        terms.append(GradedTerm(Fraction(bell, scale * factorial(grade)), factors, degree))
    return tuple(terms)


def graded_expression(
    grade: int, cumulant: Callable[[int], sp.Expr], image: Callable[[int], sp.Expr]
) -> sp.Expr:
    """Return T_grade with κ_j written as `cumulant(j)` and h^d replaced by `image(d)`.

    Parameters
    ----------
    grade
        a non-negative integer.
    cumulant
        the symbol of the j-th cumulant.
    image
        what the power h^d becomes.

    Examples
    --------
    >>> graded_expression(1, lambda j: sp.Symbol(f"k{j}"), lambda d: sp.Symbol(f"h{d}"))
    h3*k3/6
    """
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
    """Return T_grade in floating point.

    Parameters
    ----------
    grade
        a non-negative integer.
    cumulants
        κ_j at index j, for j up to grade + 2.
    images
        what h^d becomes, at index d, for d up to 3·grade.

    Examples
    --------
    >>> graded_value(2, [0, 0, 1, 0, 6.0], [1, 0, -1, 0, 3, 0, -15])
    0.75
    """
    total = 0.0
    for coefficient, factors, degree in _float_terms(grade):
        product = coefficient * images[degree]
        for j, power in factors:
            for _ in range(power):  # a product overflows to inf, where a power would raise
                product *= cumulants[j]
        total += product
    return total
