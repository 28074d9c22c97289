"""Losses on single values off any lattice: the sums of two halves of the steps, never of all.

With the sums b of one half sorted, M(x) = Σ_{b>x} p_b and N(x) = Σ_{b>x} p_b e^{−b}, each sum a of
the other adds p_a (M(ε − a) − e^{ε−a} N(ε − a)) to δ: a million of each stand for 10¹² of all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.exact.finite_sum import (
    CHAIN,
    SAME,
    Atoms,
    FiniteSum,
    added,
    atoms_of,
    log_multisets,
    log_total,
)
from symdp.exact.multinomial import log_typical_sums, multiple
from symdp.law.step import Array
from symdp.law.total import SumLaw

_WANTED = 1e-13  # of δ, that lists made at another tilt may lack
_NEGLIGIBLE = (64.0, 44.0)  # e-folds below the largest sum's share, where there is room and if not
_UNLISTED = 1e-18  # a share of one step's law that its own nodes may lack
_ROUNDING = 2e-16
_LONG = float(np.finfo(np.longdouble).eps)
_BLOCK = 64  # of running sums
_RARE = 32.0  # e-folds below δ to which single sums matter
_ALIKE = 0.5  # a tilt may differ by this share from another that has as many sums
MOST_STEPS = 40  # whose single values are listed whatever there may be of them
_SHORT = math.log(2e6)
_FEW_VALUES = 8  # of a loss whose sums are listed by how often each occurs
_SMALLEST = -600.0  # log δ below which plain running sums would underflow


@dataclass(frozen=True)
class _Halves:
    """Sums of either half of the steps, and log E e^{tL} with the share of it that they lack."""

    near: Atoms
    far: Atoms
    tilt: float
    log_moment: float
    missing: float

    def log_missing(self, epsilon: float) -> float:
        """Bound log of what δ(ε) lacks: the share of a bound by Chernoff."""
        return math.log(self.missing) + min(self.log_moment - self.tilt * epsilon, 0.0)


@dataclass(frozen=True)
class _TooMany:
    """A tilt at which there were too many sums to list."""

    tilt: float


def halved_sum(law: SumLaw, epsilon: float, tilt: float) -> FiniteSum | None:
    """Return δ(ε) of the finite part, or None where there are too many terms.

    Parameters
    ----------
    law
        All of whose losses are atoms.
    epsilon
    tilt
        Where the law is looked at: sums that are negligible there are left out.
    """
    kept: _Halves | None = law.kept.get(_Halves)
    if kept is not None:
        found = _profile(law, kept, epsilon)
        if found is not None and kept.log_missing(epsilon) < found.log_delta + math.log(_WANTED):
            return found
    if law.count > MOST_STEPS and not _are_short(law, tilt):
        return None
    failed: _TooMany | None = law.kept.get(_TooMany)
    if failed is not None and abs(tilt - failed.tilt) <= _ALIKE * abs(failed.tilt):
        return None
    for negligible in _NEGLIGIBLE:
        halves = _listed(law, tilt, negligible)
        if halves is not None:
            law.kept[_Halves] = halves
            return _profile(law, halves, epsilon)
    law.kept[_TooMany] = _TooMany(tilt)
    return None


def _profile(law: SumLaw, halves: _Halves, epsilon: float) -> FiniteSum | None:
    """Return δ(ε) from lists, None where it is too small for them."""
    gains, exposed = _gains(halves.near, halves.far, epsilon)
    gain = float(gains.sum())
    if not gain > math.exp(_SMALLEST):
        return None
    log_delta = math.log(gain)
    error = math.exp(halves.log_missing(epsilon) - log_delta)
    # Logarithms of masses are rounded as they are added up.
    error += _ROUNDING * (law.count + abs(log_delta) + _RARE) + exposed / gain
    complement = max(math.exp(law.log_finite_mass) - gain, _ROUNDING)
    return FiniteSum(log_delta, math.log(complement), math.log(error) + log_delta)


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


def _listed(law: SumLaw, tilt: float, negligible: float) -> _Halves | None:
    """List all sums of either half that are not negligible, None where there are too many."""
    lost = [law.count * _UNLISTED]
    halves: list[Atoms] = []
    for counts in _dealt(law):
        total: Atoms | None = (np.zeros(1), np.zeros(1))
        for (part, _), count in zip(law.parts, counts, strict=True):
            step = atoms_of(part, tilt)
            if step[0].size <= _FEW_VALUES and _log_multiples(step, count, tilt) < _SHORT:
                own = multiple(step, count, tilt, negligible, lost)
                total = added(total, own, (tilt,), negligible, lost)
                continue
            for _ in range(count):
                total = added(total, step, (tilt,), negligible, lost)
        if total is None:
            return None
        halves.append(total)
    log_moment = float(law.log_transform(np.asarray([tilt]), 0.0)[0])
    return _Halves(halves[0], halves[1], tilt, log_moment, 1.1 * sum(lost))


def _are_short(law: SumLaw, tilt: float) -> bool:
    """Return whether not many sums of half the steps, of few values each, are not negligible."""
    halves = [(atoms_of(part, tilt), -(-count // 2)) for part, count in law.parts]
    if any(step[0].size > _FEW_VALUES for step, _ in halves):
        return False
    return sum(_log_multiples(step, count, tilt) for step, count in halves) < _SHORT


def _log_multiples(step: Atoms, count: int, tilt: float) -> float:
    tilted = step[1] + tilt * step[0]
    chances = np.exp(tilted - log_total(tilted))
    return log_typical_sums(chances, count, _NEGLIGIBLE[-1])


def _gains(near: Atoms, far: Atoms, epsilon: float) -> tuple[Array, float]:
    """Return what each sum of one half adds to δ, and what rounding may have changed of all."""
    loss = far[0][::-1]
    # The largest, from which running sums start; beside it doubles would round small losses.
    origin = np.longdouble(loss[0])
    mass = np.exp(far[1][::-1].astype(np.longdouble))
    masses = _running(mass)
    weighted = _running(mass * np.exp(origin - loss))
    bar = epsilon - near[0]
    index = np.searchsorted(-loss, -bar, side="left") - 1
    beyond = index >= 0
    index, bar, own = index[beyond], bar[beyond], np.exp(near[1][beyond])
    price = np.exp(bar - origin) * weighted[index]
    # Chains of additions are rounded, and so is every loss.
    levels = _BLOCK * math.ceil(math.log(loss.size + 1, _BLOCK) + 1)
    sums = np.asarray(masses[index], dtype=np.float64)
    sizes = np.asarray(_running(mass * np.abs(loss))[index], dtype=np.float64)
    sizes += (np.abs(near[0][beyond]) + abs(epsilon)) * sums
    levels += math.ceil(4.0 * float(loss[0] - loss[-1]))  # and so are exponents
    unsure = own * ((levels + 8) * _LONG * sums + 4 * _ROUNDING * sizes)
    # What stands for several values next to ε may lie on the wrong side of it.
    size = float(np.abs(loss).max() + np.abs(near[0]).max()) + abs(epsilon)
    span = 2.0 * CHAIN * SAME * size
    first, last = (
        np.searchsorted(-loss, side - (epsilon - near[0]), side="left") for side in (-span, span)
    )
    padded = np.concatenate([[0.0], masses.astype(np.float64)])
    beside = float((np.exp(near[1]) * (padded[last] - padded[first])).sum())
    gains = np.asarray(masses[index] - price, dtype=np.float64)
    return own * gains, float(unsure.sum()) + span * beside


def _running(values: NDArray[Any]) -> NDArray[Any]:
    """Return running sums, in blocks of blocks, so that roundings add up over short chains."""
    values = values.astype(np.longdouble)
    if values.size <= _BLOCK:
        return np.cumsum(values)
    rows = -(-values.size // _BLOCK)
    padded = np.zeros(rows * _BLOCK, dtype=np.longdouble)
    padded[: values.size] = values
    inner = np.cumsum(padded.reshape(rows, _BLOCK), axis=1)
    before = np.concatenate([[0.0], _running(inner[:-1, -1])])
    return np.asarray((inner + before[:, None]).ravel()[: values.size])
