"""Random laws that nobody tuned for, against sums on a grid between which δ must lie.

The grid shares no code with the package: P and Q are evaluated in NumPy on a fine grid of outcomes.
Each loss is rounded up and down to a lattice, and the two laws are added up by FFT. As δ rises with
every loss, the true δ lies between the two sums; what lies beyond the grid counts as an infinite
loss above, and as none below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import sympy as sp

import symdp
from symdp.model.reading.parser import parse

_REACH = 60.0  # of the grid, far beyond where light tails count
_PLACES = 1 << 20  # of the grid
_LATTICE = 1 << 20  # values of a sum
_LARGEST = 60.0  # a loss beyond this counts as infinite, or as none
_QUICK = (1, 6)  # laws of the quick run


@dataclass(frozen=True)
class _Law:
    """A pair as text and as functions; weights need not add up to one."""

    p: str
    q: str
    functions: tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]
    ends: tuple[float, float]
    sensitivity: float = 0.0  # above 0: noise of density q


def _noise(
    density: str, function: Callable[[np.ndarray], np.ndarray], shift: float, low: float = -_REACH
) -> _Law:
    return _Law("", density, (lambda x: function(x - shift), function), (low, _REACH), shift)


def _bump(rng: np.random.Generator) -> tuple[str, Callable[[np.ndarray], np.ndarray]]:
    """Return one ordinary density with random centre and scale, not normalised."""
    c, s = round(float(rng.uniform(-2, 2)), 2), round(float(rng.uniform(0.6, 2.5)), 2)
    kind = rng.integers(4)
    if kind == 0:
        return f"exp(-(x-({c}))**2/(2*{s}**2))/{s}", lambda x: np.exp(-(((x - c) / s) ** 2) / 2) / s
    if kind == 1:
        return f"exp(-Abs(x-({c}))/{s})/{s}", lambda x: np.exp(-np.abs(x - c) / s) / s
    if kind == 2:
        return (
            f"1/({s}*cosh((x-({c}))/{s}))",
            lambda x: 1 / (s * np.cosh(np.minimum(np.abs(x - c) / s, 700))),
        )
    return (
        f"exp(-sqrt(1+((x-({c}))/{s})**2))/{s}",
        lambda x: np.exp(-np.sqrt(1 + ((x - c) / s) ** 2)) / s,
    )


def _sum_of_two(rng: np.random.Generator) -> _Law:
    (one, f), (two, g) = _bump(rng), _bump(rng)
    w = round(float(rng.uniform(0.1, 0.9)), 2)
    shift = round(float(rng.uniform(0.3, 1.5)), 2)
    return _noise(f"{w}*{one} + {1 - w:.2f}*{two}", lambda x: w * f(x) + (1 - w) * g(x), shift)


def _with_cosine(rng: np.random.Generator) -> _Law:
    s, a, b = (round(float(rng.uniform(*r)), 2) for r in ((0.8, 2.5), (1.1, 3.0), (1.0, 9.0)))
    shift = round(float(rng.uniform(0.3, 1.5)), 2)
    return _noise(
        f"exp(-x**2/(2*{s}**2))*({a}+cos({b}*x))",
        lambda x: np.exp(-((x / s) ** 2) / 2) * (a + np.cos(b * x)),
        shift,
    )


def _narrow_peak(rng: np.random.Generator) -> _Law:
    (one, f), c = _bump(rng), round(float(rng.uniform(-3, 3)), 2)
    s, w = round(float(rng.uniform(0.01, 0.05)), 3), round(float(rng.uniform(0.01, 0.1)), 3)
    return _noise(
        f"{one} + {w}*exp(-(x-({c}))**2/(2*{s}**2))/{s}",
        lambda x: f(x) + w * np.exp(-(((x - c) / s) ** 2) / 2) / s,
        round(float(rng.uniform(0.3, 1.5)), 2),
    )


def _cusp(rng: np.random.Generator) -> _Law:
    r, a = round(float(rng.uniform(1.0, 1.9)), 1), round(float(rng.uniform(0.5, 1.5)), 2)
    return _noise(
        f"exp(-{a}*Abs(x)**{r})",
        lambda x: np.exp(-a * np.abs(x) ** r),
        round(float(rng.uniform(0.3, 1.5)), 2),
    )


def _one_sided(rng: np.random.Generator) -> _Law:
    a, k = round(float(rng.uniform(0.4, 1.5)), 2), round(float(rng.uniform(1.0, 6.0)), 2)
    c = round(float(rng.uniform(1.2, 3.0)), 2)
    return _noise(
        f"exp(-{a}*x)*({c}+cos({k}*x))",
        lambda x: np.where(x >= 0, np.exp(-a * np.maximum(x, 0)) * (c + np.cos(k * x)), 0.0),
        round(float(rng.uniform(0.2, 0.8)), 2),
        low=0.0,
    )


def _two_laws(rng: np.random.Generator) -> _Law:
    k, m = (round(float(rng.uniform(2.0, 14.0)), 2) for _ in range(2))
    a, b = (round(float(rng.uniform(1.1, 3.0)), 2) for _ in range(2))
    return _Law(
        f"{a}+sin({k}*x)",
        f"{b}+cos({m}*x)",
        (lambda x: a + np.sin(k * x), lambda x: b + np.cos(m * x)),
        (0.0, 1.0),
    )


def _listed(rng: np.random.Generator) -> _Law:
    """Return two laws on a few points, some of them with losses that are equal, or infinite."""
    size = int(rng.integers(2, 9))
    p, q = rng.integers(1, 30, size), rng.integers(0 if size > 3 else 1, 30, size)
    texts = [";".join(f"{m}/{law.sum()}" for m in law) for law in (p, q)]
    return _Law(*texts, (lambda _: p / p.sum(), lambda _: q / q.sum()), (0.0, float(size)))


_KINDS = (_sum_of_two, _with_cosine, _narrow_peak, _cusp, _one_sided, _two_laws, _listed)


def _total(function: Callable[[np.ndarray], np.ndarray], ends: tuple[float, float]) -> float:
    """Return the integral of a density on panels of a hundredth, with kinks at their ends."""
    near = 0.01 * 2.0 ** -np.arange(60.0)  # a cusp at 0
    edges = [np.linspace(*ends, round((ends[1] - ends[0]) * 100) + 1), near, -near]
    edges = np.unique(np.clip(np.concatenate(edges), *ends))
    nodes, weights = np.polynomial.legendre.leggauss(24)
    half = 0.5 * np.diff(edges)[:, None]
    x = 0.5 * (edges[1:] + edges[:-1])[:, None] + half * nodes
    return float((function(x) * half * weights).sum())


def _mechanism(law: _Law) -> symdp.Mechanism:
    x = sp.Symbol("k" if ";" in law.p else "x", real=True)
    if ";" in law.p:
        masses = [[sp.Rational(mass) for mass in text.split(";")] for text in (law.p, law.q)]
        return symdp.Mechanism.from_pair(*masses, x, {"points": list(range(len(masses[0])))})
    infinite = {-_REACH: -sp.oo, _REACH: sp.oo}
    ends = tuple(infinite.get(end, sp.nsimplify(end)) for end in law.ends)
    laws = list(zip((law.p, law.q), law.functions, strict=True))
    texts = laws[1:] if law.sensitivity else laws
    found = [
        parse(text, {"x": x}) / sp.Rational(repr(_total(function, law.ends)))
        for text, function in texts
    ]
    if law.sensitivity:
        shift = sp.Rational(str(law.sensitivity))
        return symdp.Mechanism.additive(found[0], x, shift, ends, shift="exactly")
    return symdp.Mechanism.from_pair(*found, x, ends)


class _Grid:
    """The law of one step's loss between two lattice laws, and of sums of it."""

    def __init__(self, law: _Law, count: int) -> None:
        if ";" in law.p:
            p, q = (function(np.empty(0)) for function in law.functions)
            slack = 0.0
        else:
            low, high = law.ends
            high = high if high < _REACH else high + law.sensitivity
            width = (high - low) / _PLACES
            if law.sensitivity:  # whole cells, for P may jump at the shift
                width = law.sensitivity / math.ceil(law.sensitivity / width)
            edges = low + width * np.arange(math.ceil((high - low) / width) + 1)
            middle = 0.5 * (edges[1:] + edges[:-1])
            p, q = (function(middle) for function in law.functions)
            p, q = p / p.sum(), q / q.sum()
            with np.errstate(all="ignore"):
                steps = np.abs(np.diff(np.log(p) - np.log(q)))
            slack = np.append(steps, 0.0) + np.append(0.0, steps)  # of a loss within its cell
            slack = np.where(np.isfinite(slack), slack, 0.0)
        with np.errstate(all="ignore"):
            loss = np.log(p) - np.log(q)
        kept = p > 0
        self._p, self._loss = p[kept], loss[kept]
        self._slack = slack[kept] if np.ndim(slack) else slack
        self.count = count
        inside = self._loss[np.abs(self._loss) < _LARGEST]
        weight = self._p[np.abs(self._loss) < _LARGEST]
        mean = float(weight @ inside)
        spread = math.sqrt(float(weight @ (inside - mean) ** 2))
        # Sums are cyclic: what winds around is e^-30 by Chernoff's bound at the tilt 1.
        widest = count * float(np.abs(inside).max() + np.max(slack) + 1e-3)
        self._centre = count * mean
        self._width = min(widest + abs(self._centre), 14.0 * spread * math.sqrt(count) + 60.0)
        self._step = 2.0 * self._width / _LATTICE

    def delta(self, epsilon: float, upper: bool) -> float:
        """Return δ with all losses rounded up, or down."""
        sign = 1.0 if upper else -1.0
        loss = self._loss + sign * self._slack
        infinite = loss > _LARGEST
        counted = (loss > -_LARGEST) & ~infinite
        places = loss[counted] / self._step
        places = (np.ceil(places) if upper else np.floor(places)).astype(np.int64)
        mass = np.bincount(places % _LATTICE, self._p[counted], _LATTICE)
        total = np.fft.irfft(np.fft.rfft(mass) ** self.count, _LATTICE)
        first = round((self._centre - self._width) / self._step)
        values = (first + (np.arange(_LATTICE) - first) % _LATTICE) * self._step
        gain = -np.expm1(np.minimum(epsilon - values, 0.0))
        lost = float(self._p[infinite].sum()) if upper else 0.0
        escaped = -math.expm1(self.count * math.log1p(-lost))
        return float(np.maximum(total, 0.0) @ gain) + escaped


def _cases() -> list[object]:
    cases = []
    for seed in range(14):
        marks = () if seed in _QUICK else (pytest.mark.slow,)
        name = _KINDS[seed % len(_KINDS)].__name__[1:]
        cases.append(pytest.param(seed, id=f"{name} {seed}", marks=marks))
    return cases


@pytest.mark.slow_cases("with_cosine 1")
@pytest.mark.parametrize("seed", _cases())
def test_delta_lies_between_sums_on_a_grid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = _KINDS[seed % len(_KINDS)](rng)
    mechanism = _mechanism(law)
    for count in (1, 3, 300) if seed not in _QUICK else (1, 300):
        grid = _Grid(law, count)
        composition = symdp.compose(mechanism, count)
        for epsilon in (-0.3, 0.2, 1.0, 3.0):
            found = composition.delta(epsilon, direction="remove")
            low, high = (grid.delta(epsilon, upper) for upper in (False, True))
            room = 1e-9 + 1e-7 * high  # of the grid's own masses
            assert low - room <= found.upper, (law, count, epsilon)
            assert found.lower <= high + room, (law, count, epsilon)
