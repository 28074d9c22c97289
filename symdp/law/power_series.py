"""Whole powers of truncated power series, by squaring."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Series = NDArray[Any]  # real or complex


def power_of_series(series: Series, power: int) -> Series:
    """Return a truncated power series to a whole power; rows, or entries, are its coefficients.

    By repeated squaring: positive coefficients never cancel.

    >>> power_of_series(np.asarray([1.0, 1.0, 0.0]), 5).tolist()
    [1.0, 5.0, 10.0]
    """
    if series.shape[0] == 1:
        return np.asarray(np.power(series, power))
    result: Series | None = None
    while True:
        if power & 1:
            result = series if result is None else _product(result, series)
        power >>= 1
        if not power:
            assert result is not None
            return result
        series = _product(series, series)


def _product(first: Series, second: Series) -> Series:
    if first.ndim == 1:
        return np.convolve(first, second)[: first.size]
    total = np.zeros_like(first)
    for i in range(first.shape[0]):
        total[i:] += first[i] * second[: first.shape[0] - i]
    return total
