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

_RATES = np.exp(np.linspace(-9.0, 7.0, 129))  # u, in units of one over the cut-off or over y
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
    if side < 0:
        bounds = _chernoff(ratio, own, log_q, others, -_RATES / y, y)
        return _at_least_unseen(bounds)
    best = math.inf
    for share in _CUTS:
        cut = share * y
        large = ratio > cut
        beyond = np.logaddexp(_total(own[large]), _log(others) + _total(log_q[large]))
        small = ~large
        rest = _chernoff(ratio[small], own[small], log_q[small], others, _RATES / cut, y)
        best = min(best, float(np.logaddexp(beyond, rest)))
    return _at_least_unseen(best)


def _chernoff(ratio: Array, own: Array, log_q: Array, others: int, rates: Array, y: float) -> float:
    """Return the least over u of log e^{−uy} E e^{uW} (E_Q e^{uW})^{t−1}, over all rates."""
    if not ratio.size:
        return 0.0
    exponent = np.multiply.outer(rates, ratio)
    bounds = -rates * y + _sums(own + exponent) + others * _sums(log_q + exponent)
    return float(bounds.min())


def _sums(exponents: Array) -> Array:
    top = exponents.max(axis=1)
    return np.asarray(top + np.log(np.exp(exponents - top[:, None]).sum(axis=1)))


def _total(logs: Array) -> float:
    return float(np.logaddexp.reduce(logs)) if logs.size else -math.inf


def _log(count: int) -> float:
    return math.log(count) if count else -math.inf


def _at_least_unseen(bound: float) -> float:
    return min(float(np.logaddexp(bound, math.log(_UNSEEN))), 0.0)
