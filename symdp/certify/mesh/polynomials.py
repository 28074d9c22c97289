"""Products of polynomials whose coefficients are masses in units of 2^(−bits), rounded down.

A factor of 2^bits is divided out after each product, so that every coefficient is a lower bound of
the mass that it stands for; ends that add up to less than 2^(−dropped) are cut off.  What is lost
shows in the sum of all coefficients, which was 2^bits or a known lower number before.
"""

from __future__ import annotations

from flint import arb, fmpz_poly

from symdp.errors import AccuracyError

MOST_POINTS = 1 << 22  # of a sum: a product of such polynomials takes ten seconds
_MOST_STORED = 1 << 31  # bits of two factors: a product takes a gigabyte
_MOST_SUMS = 20_000  # sums of atoms that lie on the mesh
# What is said where a product would be too large.
TOO_LARGE = "the sum of so many steps is too large for a proof on a mesh"


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
        raise AccuracyError(TOO_LARGE)
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


def sums_of_levels(known: dict[int, arb], own: dict[int, arb], count: int) -> dict[int, arb]:
    """Return lower bounds of the masses of sums of levels, none where there are too many."""
    powers: dict[int, arb] = {}
    if len(own) == 1:
        ((level, mass),) = own.items()
        powers = {count * level: mass**count}
    elif len(own) == 2 and count <= _MOST_SUMS:
        (one, p), (other, q) = own.items()
        ways = arb(1)
        for k in range(count + 1):
            powers[k * one + (count - k) * other] = ways * p**k * q ** (count - k)
            ways = ways * (count - k) / (k + 1)
    if len(powers) * len(known) > _MOST_SUMS:
        return {}
    found: dict[int, arb] = {}
    for first, mass in known.items():
        for level, other_mass in powers.items():
            found[first + level] = found.get(first + level, arb(0)) + mass * other_mass
    return found
