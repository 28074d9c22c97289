"""Asymptotic expansions in cumulant symbols: combinatorics, free of numbers and of privacy.

In come orders, out go polynomials in the cumulants. Read `graded.py` first.
"""

from __future__ import annotations

from symdp.expansion.edgeworth import (
    edgeworth_density_polynomials,
    edgeworth_polynomials,
    standardised_cumulant,
)
from symdp.expansion.graded import (
    GradedTerm,
    complete_bell,
    graded_expression,
    graded_terms,
    graded_value,
)
from symdp.expansion.hermite import hermite, hermite_integrals_from_moments, hermite_values
from symdp.expansion.saddlepoint import (
    F,
    gaussian_images,
    saddlepoint_corrections,
    saddlepoint_series,
)

__all__ = [
    "F",
    "GradedTerm",
    "complete_bell",
    "edgeworth_density_polynomials",
    "edgeworth_polynomials",
    "gaussian_images",
    "graded_expression",
    "graded_terms",
    "graded_value",
    "hermite",
    "hermite_integrals_from_moments",
    "hermite_values",
    "saddlepoint_corrections",
    "saddlepoint_series",
    "standardised_cumulant",
]
