"""Losses on single values off any lattice: the sums of two halves of the steps, never of all.

With the sums b of one half sorted, M(x) = Σ_{b>x} p_b and N(x) = Σ_{b>x} p_b e^{−b}, each sum a of
the other adds p_a (M(ε − a) − e^{ε−a} N(ε − a)) to δ: a million of each stand for 10¹² of all.
"""

from __future__ import annotations

import math

import numpy as np

from symdp.accountant.atoms import FiniteSum
from symdp.numeric.step import Array
from symdp.numeric.total import SumLaw

_MOST = 2_000_000  # sums of one half
_MOST_AT_ONCE = 8_000_000
_WHOLE = 1e-12  # a share of the tilted law that may be missing from lists made at another tilt
_NEGLIGIBLE = 38.0  # −log of the largest sum's share below which a sum is left out
_SAME = 1e-13  # sums closer than this, relative to the largest loss, are one value
_ROUNDING = 2e-16
_BLOCK = 64  # of running sums
_SMALLEST = -600.0  # log δ below which plain running sums would underflow

_Atoms = tuple[Array, Array]  # losses, and logs of masses under P


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
    halves: tuple[_Atoms, _Atoms] | None = law.kept.get(_Halves)
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
    complement = max(-math.expm1(log_delta), _ROUNDING)
    return FiniteSum(log_delta, math.log(complement), math.log(error) + log_delta)


def _missing(halves: tuple[_Atoms, _Atoms], tilt: float, log_moment: float) -> float:
    """Return the share of the tilted law that is not listed."""
    return abs(math.expm1(sum(_log_mass(atoms, tilt) for atoms in halves) - log_moment))


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
            sizes[side] += math.lgamma(atoms + own) - math.lgamma(own + 1) - math.lgamma(atoms)
    return shares


def _listed(law: SumLaw, counts: list[int], tilt: float) -> _Atoms | None:
    """Return all sums of so many steps of each kind that are not negligible."""
    total: _Atoms = (np.zeros(1), np.zeros(1))
    for (part, _), count in zip(law.parts, counts, strict=True):
        nodes = part.nodes(tilt, 0.0)
        order = np.argsort(-nodes.log_weight, kind="stable")
        step = nodes.loss[order], nodes.log_weight[order]
        for _ in range(count):
            grown = _added(total, step, tilt)
            if grown is None:
                return None
            total = grown
    return total


def _added(sums: _Atoms, step: _Atoms, tilt: float) -> _Atoms | None:
    """Return the law of a sum of two losses, equal values merged, and the faint left out."""
    loss, log_weight = sums
    floors = [
        float((log_weight + t * loss).max() + (step[1] + t * step[0]).max()) - _NEGLIGIBLE
        for t in (0.0, tilt)
    ]
    losses, weights, size = [], [], 0
    for own, own_weight in zip(*step, strict=True):
        total, total_weight = loss + own, log_weight + own_weight
        kept = (total_weight > floors[0]) | (total_weight + tilt * total > floors[1])
        size += int(kept.sum())
        if size > _MOST_AT_ONCE:
            return None
        losses.append(total[kept])
        weights.append(total_weight[kept])
    return _merged(np.concatenate(losses), np.concatenate(weights))


def _merged(loss: Array, log_weight: Array) -> _Atoms | None:
    order = np.argsort(loss, kind="stable")
    loss, log_weight = loss[order], log_weight[order]
    scale = max(abs(loss[0]), abs(loss[-1]))
    starts = np.flatnonzero(np.diff(loss, prepend=-np.inf) > _SAME * scale)
    if starts.size > _MOST:
        return None
    tops = np.maximum.reduceat(log_weight, starts)
    shares = np.exp(log_weight - np.repeat(tops, np.diff(np.append(starts, loss.size))))
    return loss[starts], tops + np.log(np.add.reduceat(shares, starts))


def _gains(near: _Atoms, far: _Atoms, epsilon: float) -> tuple[Array, float]:
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
    return own * (masses[index] - price), float(unsure.sum())


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


def _log_mass(atoms: _Atoms, tilt: float) -> float:
    logs = atoms[1] + tilt * atoms[0]
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
