"""Products of polynomials whose coefficients are masses in units of 2^(−bits), rounded down.

A factor of 2^bits is divided out after each product, so that every coefficient is a lower bound of
the mass that it stands for; ends that add up to less than 2^(−dropped) are cut off.  What is lost
shows in the sum of all coefficients, which was 2^bits or a known lower number before.
"""

from __future__ import annotations

from flint import fmpz_poly

from symdp.errors import AccuracyError

MOST_POINTS = 1 << 22  # of a sum: a product of such polynomials takes ten seconds
_MOST_STORED = 1 << 31  # bits of two factors: a product takes a gigabyte


def power_of(base: fmpz_poly, count: int, bits: int, dropped: int) -> tuple[fmpz_poly, int]:
    """Return a power rounded down in units of 2^(−bits), and the index of its first coefficient."""
    result, first = fmpz_poly([1 << bits]), 0
    low = 0
    while True:
        if count & 1:
            result, shift = trimmed(product_of(result, base, bits) // (1 << bits), bits, dropped)
            first += low + shift
        count >>= 1
        if not count:
            return result, first
        base, shift = trimmed(product_of(base, base, bits) // (1 << bits), bits, dropped)
        low = 2 * low + shift


def product_of(one: fmpz_poly, other: fmpz_poly, bits: int) -> fmpz_poly:
    """Return a product; AccuracyError where it is larger than memory should hold."""
    length = len(one) + len(other)
    if length > 2 * MOST_POINTS or length * bits > _MOST_STORED:
        raise AccuracyError("the sum of so many steps is too large for a proof on a mesh")
    return one * other


def trimmed(product: fmpz_poly, bits: int, dropped: int) -> tuple[fmpz_poly, int]:
    """Cut ends off that add up to less than 2^(−dropped); return the first index that is left."""
    least = 1 << (bits - dropped)
    values = [int(value) for value in product.coeffs()]
    ends = []
    for side in (values, values[::-1]):
        total, index = 0, 0
        for value in side:
            total += value
            if total >= least:
                break
            index += 1
        ends.append(index)
    last = len(values) - ends[1]
    return fmpz_poly(values[ends[0] : last]), ends[0]
