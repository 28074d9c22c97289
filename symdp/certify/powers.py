"""The n-th power of a sum over values of the loss, term by term."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from flint import arb

Factor = TypeVar("Factor")


def nth_power(
    terms: Sequence[tuple[arb, Factor]],
    count: int,
    one: Factor,
    times: Callable[[Factor, Factor], Factor],
    scaled: Callable[[Factor, arb], Factor],
) -> list[tuple[arb, Factor]]:
    """Expand (Σ_σ e^{iyσ} F_σ)ⁿ = Σ_Λ e^{iyΛ} n! Π_σ F_σ^{k_σ}/k_σ! over all k with Σ k_σ = n.

    Parameters
    ----------
    terms : sequence of (arb, factor)
        The values σ with F_σ.
    count : int
        n ≥ 1.
    one : factor
        The unit.
    times, scaled : callable
        The product of two factors, and of a factor and a number.

    Returns
    -------
    list of (arb, factor)
        The sums Λ = Σ k_σ σ with their factors, one for each k.

    Examples
    --------
    >>> from operator import mul
    >>> square = nth_power([(arb(0), arb(3)), (arb(1), arb(5))], 2, arb(1), mul, mul)
    >>> [(float(total), float(factor)) for total, factor in square]
    [(2.0, 25.0), (1.0, 30.0), (0.0, 9.0)]
    """
    partial = [(count, arb(0), scaled(one, arb(math.factorial(count))))]
    for index, (place, factor) in enumerate(terms):
        shares = [one]
        for k in range(1, count + 1):
            shares.append(scaled(times(shares[-1], factor), arb(1) / k))
        partial = [
            (left - k, total + k * place, times(product, shares[k]))
            for left, total, product in partial
            for k in (range(left + 1) if index + 1 < len(terms) else (left,))
        ]
    return [(total, product) for _, total, product in partial]
