"""Losses that take single values only: for few steps the exact answer is a finite sum."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from symdp.accountant.tilts import log_add_exp
from symdp.numeric.law import LossLaw
from symdp.numeric.step import Array
from symdp.numeric.total import SumLaw

MAX_SUMS = 2_000_000
_ERROR = 1e-15  # rounding of one convolution of positive numbers
_SAME = 1e-13  # sums closer than this, relative to the largest loss, are one value
_Atoms = tuple[Array, Array]


@dataclass(frozen=True)
class FiniteSum:
    """log δ and log(1 − δ) of the finite part, and the log of how far off δ is by rounding."""

    log_delta: float
    log_complement: float
    log_error: float


def finite_sum(
    law: SumLaw, epsilon: float, tilt: float, *, atomic: bool = False
) -> FiniteSum | None:
    """Return δ(ε) of the finite part as a finite sum, or None where there are too many terms.

    δ = Σ_{λ>ε} p_λ (1 − e^{ε−λ}) over all values λ of the total loss: sums of positive terms.

    Parameters
    ----------
    law, epsilon
        the total loss and ε.
    tilt
        where the law is looked at: values that are negligible there and near 0 are left out.
    atomic
        count only those sums in which every step's loss is an atom.
    """
    total: _Atoms | None = None
    for part, count in law.parts:
        power = _power(part, count, tilt, atomic)
        if power is None:
            return None
        total = power if total is None else _add(total, power)
        if total is None:
            return None
    assert total is not None
    loss, log_weight = total
    gap = epsilon - loss
    with np.errstate(divide="ignore"):
        gain = log_weight + np.log(-np.expm1(np.minimum(gap, 0.0)))
    log_delta, slope = _log_total(gain), _log_total((log_weight + gap)[gap < 0])
    # Every loss is rounded, which counts where ε lies just below one that makes up δ.
    size = float(np.abs(loss).max()) + abs(epsilon) + _ERROR
    exposed = math.log(size) + (slope if slope > -math.inf else 0.0)
    log_error = math.log(_ERROR) + log_add_exp(math.log(law.count) + log_delta, exposed)
    return FiniteSum(log_delta, _log_total(log_weight + np.minimum(gap, 0.0)), log_error)


def _log_total(values: Array) -> float:
    top = float(values.max(initial=-math.inf))
    if top == -math.inf:
        return top
    return top + math.log(float(np.exp(values - top).sum()))


def _power(law: LossLaw, count: int, tilt: float, atomic: bool) -> _Atoms | None:
    """Return the law of `count` copies by repeated doubling."""
    nodes = law.nodes(tilt, 0.0)
    kept = nodes.atomic if atomic else slice(None)
    square: _Atoms | None = (nodes.loss[kept], nodes.log_weight[kept])
    result: _Atoms | None = None
    while True:
        if count & 1:
            result = square if result is None else _add(result, square)
            if result is None:
                return None
        count >>= 1
        if not count:
            return result
        square = _add(square, square)
        if square is None:
            return None


def _add(first: _Atoms | None, second: _Atoms | None) -> _Atoms | None:
    """Return the law of a sum of two independent losses, equal values merged."""
    if first is None or second is None or first[0].size * second[0].size > 8 * MAX_SUMS:
        return None
    loss = np.add.outer(first[0], second[0]).ravel()
    log_weight = np.add.outer(first[1], second[1]).ravel()
    order = np.argsort(loss, kind="stable")
    loss, log_weight = loss[order], log_weight[order]
    scale = max(abs(loss[0]), abs(loss[-1]))
    starts = np.flatnonzero(np.diff(loss, prepend=-np.inf) > _SAME * scale)
    if starts.size > MAX_SUMS:
        return None
    tops = np.maximum.reduceat(log_weight, starts)
    lengths = np.diff(np.append(starts, loss.size))
    shares = np.exp(log_weight - np.repeat(tops, lengths))
    return loss[starts], tops + np.log(np.add.reduceat(shares, starts))
