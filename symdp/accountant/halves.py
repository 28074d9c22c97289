"""Losses on single values off any lattice: the sums of two halves of the steps, never of all.

With the sums b of one half sorted, M(x) = Σ_{b>x} p_b and N(x) = Σ_{b>x} p_b e^{−b}, each sum a of
the other adds p_a (M(ε − a) − e^{ε−a} N(ε − a)) to δ: a million of each stand for 10¹² of all.
"""

from __future__ import annotations

import math

import numpy as np

from symdp.accountant.atoms import CHAIN, SAME, Atoms, FiniteSum, added, log_multisets, log_total
from symdp.numeric.step import Array
from symdp.numeric.total import SumLaw

_WHOLE = 1e-12  # a share of the tilted law that may be missing from lists made at another tilt
_ROUNDING = 2e-16
_BLOCK = 64  # of running sums
_SMALLEST = -600.0  # log δ below which plain running sums would underflow


class _Halves:
    """The key under which a law keeps its lists."""


def halved_sum(law: SumLaw, epsilon: float, tilt: float) -> FiniteSum | None:
    """Return δ(ε) of the finite part, or None where there are too many terms.

    Parameters
    ----------
    law
        All of whose losses are atoms.
    epsilon
    tilt
        Where the law is looked at: sums that are negligible there and near 0 are left out.
    """
    log_moment = float(law.log_transform(np.asarray([tilt]), 0.0)[0])
    halves: tuple[Atoms, Atoms] | None = law.kept.get(_Halves)
    missing = math.inf if halves is None else _missing(halves, tilt, log_moment)
    if not missing < _WHOLE:
        listed = [_listed(law, counts, tilt) for counts in _dealt(law)]
        if listed[0] is None or listed[1] is None:
            return None
        halves = law.kept[_Halves] = listed[0], listed[1]
        missing = _missing(halves, tilt, log_moment)
    assert halves is not None
    gains, exposed = _gains(*halves, epsilon)
    gain = float(gains.sum())
    if not gain > math.exp(_SMALLEST):
        return None
    log_delta = math.log(gain)
    # δ ≤ e^{K(t) − tε}, and so for what is left out.
    log_most = min(log_moment - tilt * epsilon, 0.0)
    error = (missing + law.count * _ROUNDING) * math.exp(log_most - log_delta) + exposed / gain
    complement = max(math.exp(law.log_finite_mass) - gain, _ROUNDING)
    return FiniteSum(log_delta, math.log(complement), math.log(error) + log_delta)


def _missing(halves: tuple[Atoms, Atoms], tilt: float, log_moment: float) -> float:
    """Return the share of the tilted law that is not listed."""
    return abs(
        math.expm1(sum(log_total(weight + tilt * loss) for loss, weight in halves) - log_moment)
    )


def _dealt(law: SumLaw) -> tuple[list[int], list[int]]:
    """Deal the steps out to two halves, alike in how many sums they have."""
    shares: tuple[list[int], list[int]] = ([], [])
    sizes = [0.0, 0.0]
    for part, count in law.parts:
        smaller = 0 if sizes[0] <= sizes[1] else 1
        atoms = part.nodes(0.0, 0.0).loss.size
        for side in (0, 1):
            own = count // 2 + (count % 2 if side == smaller else 0)
            shares[side].append(own)
            sizes[side] += log_multisets(atoms, own)
    return shares


def _listed(law: SumLaw, counts: list[int], tilt: float) -> Atoms | None:
    """Return all sums of so many steps of each kind that are not negligible."""
    total: Atoms | None = (np.zeros(1), np.zeros(1))
    for (part, _), count in zip(law.parts, counts, strict=True):
        nodes = part.nodes(tilt, 0.0)
        for _ in range(count):
            total = added(total, (nodes.loss, nodes.log_weight), (0.0, tilt))
    return total


def _gains(near: Atoms, far: Atoms, epsilon: float) -> tuple[Array, float]:
    """Return what each sum of one half adds to δ, and what rounding may have changed of all."""
    loss, log_weight = far[0][::-1], far[1][::-1]
    origin = float(loss[0])  # the largest, from which running sums start
    mass = np.exp(log_weight)
    masses = _running(mass)
    weighted = _running(mass * np.exp(origin - loss))
    bar = epsilon - near[0]
    index = np.searchsorted(-loss, -bar, side="left") - 1
    beyond = index >= 0
    index, bar, own = index[beyond], bar[beyond], np.exp(near[1][beyond])
    price = np.exp(bar - origin) * weighted[index]
    # What chains of additions round off; and every loss is rounded.
    size = float(np.abs(loss).max() + np.abs(near[0]).max()) + abs(epsilon)
    levels = _BLOCK * math.ceil(math.log(loss.size + 1, _BLOCK) + 1)
    unsure = own * (levels * _ROUNDING * (masses[index] + price) + 4 * _ROUNDING * size * price)
    # What stands for several values next to ε may lie on the wrong side of it.
    span = 2.0 * CHAIN * SAME * size
    first, last = (
        np.searchsorted(-loss, side - (epsilon - near[0]), side="left") for side in (-span, span)
    )
    padded = np.concatenate([[0.0], masses])
    beside = float((np.exp(near[1]) * (padded[last] - padded[first])).sum())
    return own * (masses[index] - price), float(unsure.sum()) + span * beside


def _running(values: Array) -> Array:
    """Return running sums, in blocks of blocks, so that roundings add up over short chains."""
    if values.size <= _BLOCK:
        return np.cumsum(values)
    rows = -(-values.size // _BLOCK)
    padded = np.zeros(rows * _BLOCK)
    padded[: values.size] = values
    inner = np.cumsum(padded.reshape(rows, _BLOCK), axis=1)
    before = np.concatenate([[0.0], _running(inner[:-1, -1])])
    return np.asarray((inner + before[:, None]).ravel()[: values.size])
