"""The corrections of steepest descent as lines of code that Python and C read alike."""

from __future__ import annotations

from fractions import Fraction

from symdp.expansion.graded import graded_terms
from symdp.expansion.saddlepoint import gaussian_images


def correction_terms(order: int) -> list[str]:
    """Return the terms of the correction at n^−order, in f[j] = F_j/F₂^{j/2}.

    The same terms as in `symdp.expansion.saddlepoint_corrections` [SPA (59), sorted by order].

    Examples
    --------
    >>> correction_terms(1)
    ['-5.0 / 24.0 * f[3] * f[3]', '1.0 / 8.0 * f[4]']
    """
    images = gaussian_images(6 * order + 1)
    lines = []
    for term in graded_terms(2 * order):
        number = term.coefficient * images[term.degree]
        if number:
            factors = [f"f[{j}]" for j, power in term.factors for _ in range(power)]
            lines.append(" * ".join([_ratio(number), *factors]))
    return lines


def _ratio(number: Fraction) -> str:
    # Beyond 2^53 the parts would be rounded one by one.
    if max(abs(number.numerator), number.denominator) > 2**53:
        return repr(float(number))
    return f"{number.numerator}.0 / {number.denominator}.0"
