r"""Bounds on the tails of a sum of likelihood ratios, for what a table of its density leaves out.

Y is the sum of t copies of W = P/Q under Q; under "P" one of them follows P instead. For every
u ≥ 0 and every b, Chernoff's bound and a union over the t components give

.. math::

   Pr(Y < y) \le e^{uy} E e^{-uY}, \qquad
   Pr(Y > y) \le Pr(\max W > b) + e^{-uy} E[e^{uY}; \max W \le b].

The second needs no exponential moment of W. Both are sums over the nodes of W.
"""

from __future__ import annotations

import math

import numpy as np

from symdp.law.likelihood_ratio import Ratios
from symdp.law.step import Array

_RATES = np.exp(np.arange(-9.0, 12.0, 0.125))  # u, in units of 1/y
_CUTS = np.exp(np.linspace(-5.0, 0.0, 41))  # b, in units of y
_UNSEEN = 1e-38  # nodes of W leave out what is less likely than e^−90 under P and under Q


def log_tail(ratios: Ratios, steps: int, y: float, side: int, *, with_record: bool) -> float:
    """Return a log bound on the probability that Y lies beyond y.

    Parameters
    ----------
    ratios
        nodes of W and their log weights under Q.
    steps
        t ≥ 1.
    y
        a place above 0.
    side
        1 for Pr(Y > y), −1 for Pr(Y < y).
    with_record
        whether one component follows P.
    """
    seen = ratios.ratio > 0
    ratio, log_q = ratios.ratio, ratios.log_weight
    log_p = np.where(seen, log_q + np.log(np.where(seen, ratio, 1.0)), -math.inf)
    own = log_p if with_record else log_q
    others = steps - 1
    order = np.argsort(ratio)
    ratio, own, log_q = ratio[order], own[order], log_q[order]
    if side < 0:
        exponent = np.multiply.outer(-_RATES / y, ratio)
        sums = [np.logaddexp.reduce(log + exponent, axis=1) for log in (own, log_q)]
        return _at_least_unseen(float((_RATES + sums[0] + others * sums[1]).min()))
    # Up to each cut, at all rates at once; beyond it, a union over the components.
    number = np.searchsorted(ratio, _CUTS * y, side="right")
    beyond = [np.logaddexp(_total(own[n:]), _log(others) + _total(log_q[n:])) for n in number]
    exponent = np.multiply.outer(_RATES / y, ratio)
    up_to = np.maximum(number, 1) - 1
    sums = [np.logaddexp.accumulate(log + exponent, axis=1)[:, up_to] for log in (own, log_q)]
    rest = (-_RATES[:, None] + sums[0] + others * sums[1]).min(axis=0)
    rest[number == 0] = 0.0
    return _at_least_unseen(float(np.logaddexp(beyond, rest).min()))


def _total(logs: Array) -> float:
    return float(np.logaddexp.reduce(logs)) if logs.size else -math.inf


def _log(count: int) -> float:
    return math.log(count) if count else -math.inf


def _at_least_unseen(bound: float) -> float:
    return min(float(np.logaddexp(bound, math.log(_UNSEEN))), 0.0)
