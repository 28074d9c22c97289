"""The exact contour accountant in NumPy: the part that every emitted file shares."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np

from symdp.emit.standalone.runtime.density import (
    NEGLIGIBLE,
    NoAnswerError,
    _Law,
    _TooFarError,
)

# What each file puts in front.
REMOVE, LEAST, LARGEST = 1, 0, 0
NAMES: list[str] = []
_constants: Any = None
_check: Any = None

# ---- emitted from here on ----

AGREED = 1e-13  # relative: two sums with one step and with half of it
MOST_WORK = 2e8  # exponentials of all sums of one direction
BLOCK = 1 << 21  # of them at once
_OSCILLATES = "the characteristic function does not die out: too few steps for this file"
_SIDES = {"remove": [1], "add": [-1], "both": [1, -1]}


class _CoarseError(ArithmeticError):
    """The nodes must resolve higher frequencies."""


class _Line:
    """[M(t + iy) / M(t)]^n exp(-iy epsilon) on the line through t."""

    def __init__(self, law: _Law, t: float, count: int, epsilon: float, spent: list[int]) -> None:
        mean, self.variance, self.cgf, self._weight = law.tilted(t)
        self.t, self._count, self._spent = t, count, spent
        self._deviation = law.loss - mean
        self._drift = float(count * Fraction(mean) - Fraction(epsilon))
        self.scale = count * self.cgf - t * epsilon
        self.size = law.loss.size
        self.atoms = float(self._weight[law.atomic].sum())

    def __call__(self, y: Any) -> Any:
        self._spent[0] += y.size * self.size
        if self._spent[0] > MOST_WORK:
            raise NoAnswerError(_OSCILLATES)
        value = np.empty(y.size, dtype=complex)
        rows = max(1, BLOCK // self.size)
        for k in range(0, y.size, rows):
            angle = np.outer(y[k : k + rows], self._deviation)
            real = -2.0 * (np.sin(0.5 * angle) ** 2 @ self._weight)
            imaginary = np.sin(angle) @ self._weight
            square = real * (2.0 + real) + imaginary * imaginary
            far = np.log(np.maximum(np.hypot(1.0 + real, imaginary), 1e-300))
            near = 0.5 * np.log1p(np.maximum(square, -0.75))
            modulus = np.where(square > -0.75, near, far)
            phase = np.arctan2(imaginary, 1.0 + real)
            value[k : k + rows] = np.exp(
                self._count * modulus + 1j * (self._count * phase + y[k : k + rows] * self._drift)
            )
        return value


def _sum_line(line: _Line, highest: float) -> float:
    t, count = line.t, line._count
    h = 2.0 * math.pi * t / (40.0 - min(line.scale, 0.0))
    if line.variance > 0.0:
        h = min(h, 0.5 / math.sqrt(count * line.variance + 1.0 / (t * t)))
    recurring = line.atoms**count
    for _ in range(12):
        values: list[Any] = [np.array([1.0 / (t * (1.0 + t)) + 0j])]
        k, settled, first = 1, 0, abs(values[0][0])
        while True:
            y = 0.5 * h * np.arange(k, k + 128)
            if y[-1] > highest:
                raise _CoarseError
            z = t + 1j * y
            values.append(line(y) / (z * (1.0 + z)))
            large = (np.abs(values[-1]) > NEGLIGIBLE * first).any()
            k, settled = k + 128, 0 if large else settled or k
            if settled and k > 1.5 * settled:
                break
        terms = np.concatenate(values).real
        terms[0] *= 0.5
        even, odd = math.fsum(terms[::2].tolist()), math.fsum(terms[1::2].tolist())
        if recurring / (0.5 * h * k) > 1e-14 * h * abs(even):
            raise NoAnswerError("the atoms' characteristic function recurs: too few steps here")
        if abs(even - odd) <= AGREED * abs(even) and even + odd > 0.0:
            return 0.5 * h * (even + odd) / math.pi
        h *= 0.5
    raise NoAnswerError("the trapezoidal sums do not agree")


def _spacing(law: _Law) -> tuple[float, float]:
    """Return the spacing of the lattice on which all losses lie, 0 for none, and the least."""
    losses = np.unique(law.loss)
    first, last = float(losses[0]), float(losses[-1])
    gaps = np.diff(losses)
    gaps = gaps[gaps > 1e-12 * (abs(first) + abs(last))]
    if not gaps.size:
        return max(abs(first), 1.0), first
    s = (last - first) / round((last - first) / float(gaps.min()))
    places = (losses - first) / s
    return (s if np.abs(places - np.round(places)).max() < 1e-9 else 0.0), first


def _sum_period(line: _Line, epsilon: float, following: float, s: float) -> float:
    t, d, size, before = line.t, following - epsilon, 64, 0.0
    while True:
        y = 2.0 * math.pi / (s * size) * np.arange(size // 2 + 1)
        a = np.exp(-(t + 1j * y) * s)
        kernel = (-math.expm1(-d) - a * (math.exp(-d) * math.expm1(d - s))) / (
            (1.0 - a) * (1.0 - a * math.exp(-s))
        )
        terms = (line(y) * kernel).real
        terms[0], terms[-1] = 0.5 * terms[0], 0.5 * terms[-1]
        value = 2.0 * math.fsum(terms.tolist()) / size
        if abs(value - before) <= AGREED * abs(value) and value > 0.0:
            return value
        before, size = value, 2 * size


def log_delta(p: Any, side: int, epsilon: float, count: int) -> float:
    """Return log delta of n steps, in the direction of (P, Q) or, for side -1, of (Q, P)."""
    c = _constants(p)
    low, high, reach, frequency = 0.0, math.inf, 1.0, 0.0
    largest = c[LARGEST] if side > 0 else -c[LEAST]
    spent = [0]
    for _ in range(60):
        try:
            law = _Law(c, side, reach, frequency)
        except _TooFarError:
            high, reach = reach, 0.5 * (low + reach)
            if high - low < 1e-6 * high:
                break
            continue
        escaped = -math.expm1(count * math.log1p(-law.escaped)) if law.escaped < 1.0 else 1.0
        log_escaped = math.log(escaped) if escaped > 0.0 else -math.inf
        atoms = bool(law.atomic.all())
        if law.loss.size and atoms:
            largest = max(largest, float(law.loss.max()))
        if not law.loss.size or epsilon >= count * largest:
            return log_escaped
        s, following = 0.0, epsilon
        if atoms:
            s, least = _spacing(law)
            if not s > 0.0:
                raise NoAnswerError("the losses are single values off any lattice")
            following = count * least + s * (math.floor((epsilon - count * least) / s) + 1.0)
        a, b = 0.0, min(reach, 50.0 / s) if s else reach

        def rises(t: float, law: _Law = law) -> bool:
            return count * law.tilted(t)[0] - epsilon - 1.0 / t - 1.0 / (1.0 + t) > 0.0

        if not rises(b) and b == reach:
            low, reach = reach, 2.0 * reach if math.isinf(high) else 0.5 * (reach + high)
            if reach > 1e6 or high - low < 1e-6 * high:
                break
            continue
        for _ in range(40):
            t = 0.5 * (a + b)
            a, b = (a, t) if rises(t) else (t, b)
        line = _Line(law, b, count, following, spent)
        if not s and frequency == 0.0:
            frequency = 30.0 / math.sqrt(count * line.variance)
            continue
        try:
            value = _sum_period(line, epsilon, following, s) if s else _sum_line(line, frequency)
        except _CoarseError:
            frequency *= 3.0
            continue
        return float(np.logaddexp(line.scale + math.log(value), log_escaped))
    raise NoAnswerError("the moment generating function ends before the saddle point")


def _read(words: list[str]) -> tuple[dict[str, Fraction], str]:
    given: dict[str, Fraction] = {}
    asked = "both"
    for word in words:
        name, equals, text = word.partition("=")
        if word in _SIDES:
            asked = word
            continue
        if not equals or name not in NAMES:
            raise ValueError(f"unknown: {word}")
        try:
            given[name] = Fraction(text)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"no finite number: {word}") from None
    for name in NAMES:
        if name not in given:
            raise ValueError(f"a value is missing: {name}")
    if given["n"].denominator != 1 or not 1 <= given["n"] < 10**15:
        raise ValueError("n must be a whole number of 1 or more")
    if wrong := _check([float(given[name]) for name in NAMES[2:]]):
        raise ValueError(wrong)
    return given, asked


def main(words: list[str]) -> int:
    """Answer a command line."""
    try:
        given, asked = _read(words)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    p, epsilon, count = ([float(given[k]) for k in NAMES[2:]], float(given["epsilon"]), given["n"])
    try:
        found = max(log_delta(p, REMOVE * side, epsilon, int(count)) for side in _SIDES[asked])
    except NoAnswerError as error:
        print(f"no answer: {error}", file=sys.stderr)
        return 1
    plain = found > -700 or found == -math.inf
    print(f"delta = {math.exp(found):.15g}" if plain else f"delta = exp({found:.15g})")
    print("exact to about 1e-12, relative: the contour integral by the trapezoidal rule")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
