"""Panels and layers of one step, laid by the checker's own bounds.

A panel is as wide as the bound of its integral's error allows, for every tilt that is asked.  Cells
lie where most of the tilted mass is.  A layer is a piece below the density of the tilted loss, as
high as that is everywhere above a row of cells: one below all of them, then one below those left
and right of the lowest cell, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from symdp.certify import check_certificate
from symdp.errors import AccuracyError

checker: Any = check_certificate
_CELLS = 48, 400  # fewest and most below the density of the tilted loss
_PER_SHARE = 24  # of cells: the inverse of the share of the mass that no layer need cover
_GAP_BITS = 24  # above the last bit, beside a kink
_SCAN = 12  # powers of two up and down, at which mass is looked for
_MOST_PANELS = 1000  # tried in all
_MOST_INTEGERS = 10_000  # with a mass

Asked = Sequence[tuple[Fraction, float, Fraction]]


class Layout:
    """The panels, cells and layers of one step.

    Parameters
    ----------
    told : the step as a certificate tells it
    swapped : whether Q is the law of the output
    kinks : about where the densities are not smooth
    hint : scale and rule of the witness
    asked : tilts, largest frequencies, and what the error of each panel may be
    """

    def __init__(
        self,
        told: dict[str, Any],
        swapped: bool,
        kinks: list[Fraction],
        hint: dict[str, Any],
        asked: Asked,
    ) -> None:
        self.told, self.swapped, self.kinks, self.asked = told, swapped, kinks, asked
        self.hint = hint | {"panels": [], "cells": [], "layers": []}
        self.step = checker.Step(told, self.hint, swapped)
        ends = zip(told["support"], ("-oo", "oo"), strict=True)
        self.ends = [None if e == infinite else Fraction(e) for e, infinite in ends]
        self.gap = Fraction(2**_GAP_BITS, checker.ONE)
        self._tried = 0
        self._mass: dict[Fraction, float] = {}

    def lay_panels(self, log_least: float) -> None:
        """Lay panels from the mode outwards, until the density beside its distance is small."""
        start = self._start()
        left = self._march(start, -1, log_least)
        right = self._march(start, 1, log_least)
        groups = [group[::-1] for group in left[::-1]]
        groups[-1] += right[0][1:]
        self.hint["panels"] = [[str(x) for x in g] for g in groups + right[1:] if len(g) > 1]
        self.step = checker.Step(self.told, self.hint, self.swapped)

    def reach_to(self, tilt: Fraction, y: float) -> None:
        """Ask for errors that hold up to a larger frequency."""
        self.asked = [(t, y if t == tilt else at, most) for t, at, most in self.asked]

    def lay_layers(self, tilt: Fraction, share: float) -> None:
        """Lay cells where the tilted mass is, and layers below its density, but for a share."""
        found: list[list[Fraction]] = []
        heights: list[list[Fraction]] = []
        last = None
        for x, y in self._cells(tilt, share):
            height = self._density(x, y, tilt)
            if height is None:
                continue
            if x != last:
                found.append([x])
                heights.append([])
            found[-1].append(y)
            heights[-1].append(height)
            last = y
        self.hint["cells"] = [[str(x) for x in group] for group in found]
        place, layers = 0, []
        for group in heights:
            stack = [(0, len(group), Fraction(0))]
            while stack:
                i, j, base = stack.pop()
                lowest = min(range(i, j), key=group.__getitem__)
                height = max(_rounded_down(group[lowest]), base)
                if height > base:
                    layers.append([str(place + i), str(place + j), str(height - base)])
                stack += [(a, b, height) for a, b in ((i, lowest), (lowest + 1, j)) if a < b]
            place += len(group)
        self.hint["layers"] = layers
        self.step = checker.Step(self.told, self.hint, self.swapped)
        self._widths = [self._width(*layer) for layer in layers]

    def modulus(self, tilt: Fraction, y: float) -> float:
        """Return about what |e^−scale M(tilt + iy)| is proved to be at most."""
        if tilt not in self._mass:
            self._mass[tilt] = self.step.total(tilt).hi / checker.ONE
        rest = self._mass[tilt]
        for height, width in self._widths:
            v = y * width / 2
            rest -= height * width * (1 - (1 - v**2 / 6 + v**4 / 120 if v <= 2 else 1 / v))
        return max(rest, 1e-300)

    def _width(self, i: str, j: str, height: str) -> tuple[float, float]:
        cells = self.step.cells
        ends = cells[int(i)][0] - cells[int(i)][1], cells[int(j) - 1][0] + cells[int(j) - 1][1]
        low, high = (self.step.logs(checker.real(x))[1].lo / checker.ONE for x in ends)
        return float(Fraction(height)), abs(high - low)

    def _log_p(self, x: Fraction) -> float:
        try:
            return float(self.step.logs(checker.real(x))[0].hi / checker.ONE)
        except checker.Refused:
            return -math.inf

    def _fits(self, low: Fraction, high: Fraction) -> bool:
        self._tried += 1
        if self._tried > _MOST_PANELS:
            raise AccuracyError("no certificate: its integrals need too many panels")
        try:
            self.step.panels = self._piece(low, high)
            return all(
                self.step.measure(tilt, checker.real(Fraction(y)))[1] <= most * checker.ONE + 2
                for tilt, y, most in self.asked
            )
        except checker.Refused:
            return False

    def _start(self) -> Fraction:
        """Return a place where the density is large."""
        low, high = self.ends
        near = [Fraction(0), *self.kinks, *(e for e in (low, high) if e is not None)]
        sizes = [s * Fraction(2) ** k for s in (-1, 1) for k in range(-_SCAN, _SCAN)]
        inside: list[Fraction] = [
            x + size
            for x in near
            for size in sizes
            if (low is None or low < x + size) and (high is None or x + size < high)
        ]
        return max((x for x in inside if x not in self.kinks), key=self._log_p)

    def _march(self, start: Fraction, sign: int, log_least: float) -> list[list[Fraction]]:
        """Return the ends of panels on one side, a list between any two kinks."""
        end = self.ends[1 if sign > 0 else 0]
        kinks = sorted((k for k in self.kinks if sign * (k - start) > 0), key=lambda k: sign * k)
        groups, width, x = [[start]], Fraction(1), start
        while True:
            left = abs(x) + 1 if end is None else abs(end - x)
            if left == 0 or self._log_p(x) + math.log(left) < log_least:
                return groups
            stop = kinks[0] - sign * self.gap if kinks else end
            grid = width / 4
            target = sign * math.ceil(sign * (x + sign * width) / grid) * grid
            if stop is not None and sign * (target - stop) > 0:
                target = stop
            if not self._fits(min(x, target), max(x, target)):
                width /= 2
                if width < self.gap:
                    raise AccuracyError("no certificate: no panel is narrow enough somewhere")
                continue
            groups[-1].append(target)
            width, x = 2 * width, target
            if kinks and target == stop:
                x = kinks.pop(0) + sign * self.gap
                groups.append([x])

    def _cells(self, tilt: Fraction, share: float) -> list[tuple[Fraction, Fraction]]:
        """Return cells of about one width where most of the tilted mass is, none across a kink."""
        weights, _ = self.step.measure(tilt, checker.point(0))
        places = [
            m + r * Fraction(t) for m, r, *_ in self.step.panels for t, _ in self.hint["rule"]
        ]
        masses = sorted(zip(places, (w.hi for w in weights), strict=True))
        count = min(max(_CELLS[0], math.ceil(_PER_SHARE / share)), _CELLS[1])
        total, done, inside = sum(w for _, w in masses), 0, []
        for x, w in masses:
            done += w
            if total <= 10 * count * done <= (10 * count - 1) * total:
                inside.append(x)
        if len(inside) < 2:
            return []
        low, high = inside[0], inside[-1]
        unit = Fraction(2) ** math.floor(math.log2((high - low) / (4 * count)))
        grid = (round((low + (high - low) * i / count) / unit) * unit for i in range(count + 1))
        edges = sorted({*grid, *(k for k in self.kinks if low < k < high)})
        return [
            (x + self.gap if x in self.kinks else x, y - self.gap if y in self.kinks else y)
            for x, y in pairwise(edges)
        ]

    def _density(self, x: Fraction, y: Fraction, tilt: Fraction) -> Fraction | None:
        try:
            return Fraction(self.step.density(self._piece(x, y)[0], tilt), checker.ONE)
        except checker.Refused:
            return None

    def _piece(self, x: Fraction, y: Fraction) -> Any:
        return self.step.pieces({"": [[str(x), str(y)]]}, "", [self.ends])[0]


def integers_with_mass(told: dict[str, Any], swapped: bool, log_least: float) -> list[str]:
    """Return the ends of the integers around 0 at which a law has masses above e^least."""
    hint = {"scale": "0", "range": ["0", "0"]}
    step, ends = checker.Step(told, hint, swapped), []
    for sign in (-1, 1):
        k = 0
        while step.logs(checker.real(Fraction(sign * k)))[0].hi > Fraction(log_least) * checker.ONE:
            k += 1
            if k > _MOST_INTEGERS:
                raise AccuracyError("no certificate: too many integers have a mass")
        ends.append(str(sign * k))
    return ends


def _rounded_down(x: Fraction) -> Fraction:
    return Fraction(math.floor(x * 4096), 4096)
