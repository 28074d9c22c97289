"""A certificate of δ(ε) as JSON: a plan, and the two ends that the checker's own sum proves.

The checker (`check_certificate`) believes nothing that stands in a plan, so that a choice costs
width or time and never truth.  `find_plan` says where to look: tilts, period, scales, and where a
law has mass.  There panels are halved until the checker's bound of their integrals is small, and
cut into cells until its layers hold most of the tilted mass; terms are added until its bound of
the others is small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any

import sympy as sp
from flint import arb, ctx
from mpmath import workdps
from sympy.printing.str import StrPrinter

from symdp.decimal_text import scientific
from symdp.emit.exact import LN10, constant_value
from symdp.errors import AccuracyError
from symdp.model.allocation import AllocatedPair, OneStep
from symdp.model.pair import Pair
from symdp.prove import check_certificate
from symdp.prove.kind import Stretch, kind_of
from symdp.prove.lattice import lattice_of
from symdp.prove.plan import find_plan

Told = dict[str, Any]  # what JSON holds

_SPARE = 3  # digits of an integral beyond those of the sum
_CONSTANT_DIGITS = 50  # of a constant that the checker's grammar lacks
_MOST_BITS = 512  # of integrals: with more, panels take a minute to lay
_MOST_TRIES = 2_000  # at panels of a step
_MOST_CELLS = 400  # of a row
_MOST_TERMS = 20_000  # of the sum, half a minute of checking
_FINE = 0.1  # of the tilted mass of a row, that its cells need not hold
_DEEP = 10  # halvings, from which on a panel without mass may be left out
# What is said where the checker would sum too long.
_SLOW = "no certificate: |M| falls too slowly, as of few steps or where atoms weigh much"
_GAP_BITS = 24  # above the last bit, between a panel and a finite end

checker: Any = check_certificate


def make(
    steps: Sequence[tuple[OneStep, int]], sides: Sequence[str], epsilon: Fraction, digits: int
) -> Told:
    """Return a certificate of δ(ε) as JSON values, to about so many digits of δ."""
    certificate: Told = {"steps": tell(steps)}
    pairs = [(pair, n) for pair, n in steps if isinstance(pair, Pair)]
    plans = [_Side(pairs, side, epsilon, digits) for side in sides]
    bits = max(plan.bits for plan in plans)
    witness: Told = {"bits": str(bits), "rule": _rule(max(plan.nodes for plan in plans), bits)}
    lower = Fraction(0)
    upper = Fraction(0)
    try:
        for plan in plans:
            checker.set_units(bits)
            checker.LEFT = math.inf  # looking for panels is not checking
            witness[plan.name] = plan.hint(certificate["steps"], checker.rule_of(witness))
            checker.set_units(bits)
            unit, low, high = checker.enclose(
                certificate | {"witness": witness}, plan.name, epsilon
            )
            lower = max(lower, Fraction(low.lo, unit.hi))
            upper = max(upper, Fraction(high.hi, unit.lo))
    except checker.Refused as refusal:
        raise AccuracyError(f"no certificate: its checker says, {refusal}") from None
    if bits > _MOST_BITS and upper > 2 * lower:
        raise AccuracyError(
            "no certificate: its ends would lie far apart; where δ is this small, the "
            f"{_CONSTANT_DIGITS} digits of a law's constant factor are too few"
        )
    claim = {
        "direction": sides[0] if len(sides) == 1 else "both",
        "epsilon": str(epsilon),
        "lower": scientific(lower, digits + 2, up=False),
        "upper": scientific(min(upper, Fraction(1)), digits + 2, up=True),
    }
    return {"format": checker.FORMAT, "claim": claim, **certificate, "witness": witness}


def make_shuffled(
    laws: Sequence[Sequence[Fraction]],
    people: int,
    epsilon: Fraction,
    plans: Told,
    sizes: tuple[int, int],
) -> Told:
    """Return a certificate of an upper end of δ(ε) of shuffled answers, as JSON values.

    `sizes` are the bits of its numbers and the digits of the end.
    """
    bits, digits = sizes
    rows = [[str(mass) for mass in law] for law in laws]
    told: Told = {"people": str(people), "laws": rows}
    try:
        checker.set_units(bits)
        end = checker.shuffled(told | {"plans": plans}, epsilon)
    except checker.Refused as refusal:
        raise AccuracyError(f"no certificate: its checker says, {refusal}") from None
    upper = Fraction(end.hi + 1, checker.ONE)
    claim = {
        "direction": "both",
        "epsilon": str(epsilon),
        "lower": "0",
        "upper": scientific(min(upper, Fraction(1)), digits + 2, up=True),
    }
    witness: Told = {"bits": str(bits), "plans": plans}
    return {"format": checker.FORMAT, "claim": claim, "shuffled": told, "witness": witness}


def tell(steps: Sequence[tuple[OneStep, int]]) -> list[Told]:
    """Return the steps as a certificate tells them."""
    for pair, _ in steps:
        if (
            isinstance(pair, AllocatedPair)
            or pair.alternatives
            or pair.atoms
            or pair.support.kind == "naturals"
        ):
            raise AccuracyError(
                "no certificate file is known for this kind of step yet: use certify"
            )
    return [_told_step(pair, count) for pair, count in steps if isinstance(pair, Pair)]


def _told_step(pair: Pair, count: int) -> Told:
    """Return the laws of a step as text, exactly."""
    support = pair.support
    laws = [
        [_law_text(mass, pair.variable) for mass in law]
        if isinstance(law, tuple)
        else _law_text(law, pair.variable)
        for law in pair.components
    ]
    return {
        "laws": laws,
        "p": [str(w) for w in pair.p_weights],
        "q": [str(w) for w in pair.q_weights],
        "support": support.kind if pair.is_discrete else [str(support.lower), str(support.upper)],
        "count": str(count),
    }


def _law_text(law: Any, variable: sp.Symbol) -> str:
    """Return a density as text; a constant factor that the grammar lacks is rounded down.

    Then the density as told is no larger than the true one: the upper end holds for that as well.
    """
    x = sp.Symbol("x", real=True)
    written = _in_grammar(law.xreplace({variable: x}))
    text = _Printer().doprint(written)
    if _is_readable(text):
        return str(text)
    factor, shape = written.as_independent(x, as_Add=False)
    with workdps(_CONSTANT_DIGITS + 10):
        value = sp.Rational(str(constant_value(factor, 4 * _CONSTANT_DIGITS)))
    power = sp.Integer(10) ** (_CONSTANT_DIGITS - sp.floor(sp.log(value, 10)))
    text = f"{sp.floor(value * power) - 1}/{power}*({_Printer().doprint(shape)})"
    if not _is_readable(text):
        raise AccuracyError(
            "no certificate file for this density yet: its checker knows numbers, exp, log, powers,"
            " erf, Abs, Min and Max"
        )
    return str(text)


class _Printer(StrPrinter):  # type: ignore[misc]
    """SymPy's text with x**(1/2) for a root."""

    def _print_Pow(self, expr: sp.Pow, rational: bool = True) -> str:
        return str(super()._print_Pow(expr, rational=True))


def _in_grammar(law: sp.Expr) -> sp.Expr:
    """Return a density in terms of exp, log, erf and Abs where it has other functions."""
    law = law.replace(sp.erfc, lambda u: 1 - sp.erf(u))
    law = law.replace(sp.Max, lambda *u: reduce(lambda a, b: (a + b + sp.Abs(a - b)) / 2, u))
    law = law.replace(sp.Min, lambda *u: reduce(lambda a, b: (a + b - sp.Abs(a - b)) / 2, u))
    hyperbolic = (sp.sinh, sp.cosh, sp.tanh, sp.sech, sp.csch, sp.coth)
    return law.replace(lambda e: isinstance(e, hyperbolic), lambda e: e.rewrite(sp.exp))


def _is_readable(text: str) -> bool:
    checker.set_units(64)
    try:
        checker.log_value(checker.formula(text), checker.series(Fraction(1, 3)))
    except checker.Refused as refusal:
        return not str(refusal).startswith("a formula")
    return True


class _Side:
    """A plan of one direction, and how small the checker's errors have to be."""

    def __init__(
        self, pairs: Sequence[tuple[Pair, int]], name: str, epsilon: Fraction, digits: int
    ) -> None:
        self.name = name
        self.kinds = tuple((kind_of(p.reversed() if name == "add" else p), n) for p, n in pairs)
        self.lattice = lattice_of(self.kinds)
        if self.lattice is None and all(kind.is_discrete for kind, _ in self.kinds):
            raise AccuracyError("no certificate: the losses lie on no lattice")
        spacing = None if self.lattice is None else float(self.lattice.spacing)
        self.plan = find_plan(self.kinds, float(epsilon), digits + 2, spacing=spacing)
        self.tilts = [Fraction(t) for t in (self.plan.tilt, self.plan.below, self.plan.above)]
        self.scales = [Fraction(round(scale.tilt * 256), 256) for scale in self.plan.scales]
        self.count = sum(n for _, n in self.kinds)
        # An error of one integral counts n times; that of a mass beside δ.
        self.log_each = -(digits + _SPARE) * LN10 - math.log(self.count)
        self.log_mass = self.log_each + min(self.plan.log_size, 0.0)
        self.bits = 64 + 32 * math.ceil(-self.log_mass / math.log(2) / 32)
        self.nodes = 0
        # The sum is about its term at the real axis, over the width of the saddle.
        self.log_width = -(digits + 1) * LN10  # of the sum, relative
        self.log_rest = self.plan.log_size + math.log(self.plan.period) + self.log_width
        self.log_rest += float(self.tilts[0] * epsilon)
        self.log_rest -= float(
            sum(n * s for s, (_, n) in zip(self.scales, self.kinds, strict=True))
        )
        self.reach = math.sqrt(-2 * self.log_width / self.plan.curvature)  # of frequencies
        if self.lattice is None:
            self.nodes = math.ceil((6 - self.log_mass) / (2 * math.log(checker.REACH)))
            if self.bits > _MOST_BITS:
                raise AccuracyError(
                    "no certificate: δ is too small, so that its integrals take minutes"
                )

    def hint(self, steps: Sequence[Told], rule: Any) -> Told:
        """Return what a certificate says of this direction."""
        names = zip(("tilt", "below", "above"), self.tilts, strict=True)
        hint: Told = {name: str(tilt) for name, tilt in names}
        layouts = [_Layout(self, number, step, rule) for number, step in enumerate(steps)]
        if self.lattice is not None:
            return hint | self._on_lattice(layouts)
        first = 2 * math.pi / self.plan.period
        terms = self._terms(first, layouts)
        if first * terms > self.reach:
            self.reach = first * terms
            for layout in layouts:
                layout.refine()
        hint |= {"period": str(Fraction(self.plan.period)), "terms": str(terms)}
        return hint | {"steps": [layout.hint for layout in layouts]}

    def _terms(self, first: float, layouts: Sequence[_Layout]) -> int:
        """Return after how many terms the checker's bound of the others is small."""

        def is_enough(terms: int) -> bool:
            y = first * (terms + 1)
            log_modulus = sum(
                l.log_modulus(y) * n for l, (_, n) in zip(layouts, self.kinds, strict=True)
            )
            return log_modulus + math.log(2 / (first**2 * terms)) < self.log_rest

        low, high = 0, 8
        while not is_enough(high):
            low, high = high, 2 * high
            if low > _MOST_TERMS:
                raise AccuracyError(_SLOW)
        while high - low > 1 + low // 16:
            middle = (low + high) // 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return high

    def _on_lattice(self, layouts: Sequence[_Layout]) -> Told:
        """Return a lattice of the checker's losses, its spacing that of the two farthest apart."""
        assert self.lattice is not None
        digits, widths = math.floor(self.bits * math.log10(2)) - 4, []  # but for their roundings
        for layout in layouts:
            losses = [Fraction(loss.parts[0], checker.ONE) for _, _, loss in layout.step.nodes]
            layout.hint["offset"] = _decimal(min(losses), digits)
            widths.append(max(losses) - min(losses))
        points = round(max(widths) / self.lattice.spacing)
        spacing = _decimal(max(widths) / points if points else Fraction(1), digits)
        terms = math.ceil(Fraction(self.plan.period) / Fraction(spacing))
        steps = [layout.hint for layout in layouts]
        return {"spacing": spacing, "terms": str(terms), "steps": steps}


class _Layout:
    """What a certificate says of one step: rows of panels, and how they are cut into cells."""

    def __init__(self, side: _Side, number: int, told: Told, rule: Any) -> None:
        self._side = side
        self._told = told
        self._rule = rule
        self._tries = 0
        kind = side.kinds[number][0]
        panels = side.plan.panels[number]
        scale = side.plan.scales[number].tilt
        self._scale = side.scales[number]
        self._total = math.exp(scale - float(self._scale))  # of e^−scale M at the tilt
        self.hint: Told = {"scale": str(self._scale)}
        mass = _exp(side.log_mass - scale)
        few = Fraction(1, 10**6 * side.count)
        self._asked = [(Fraction(t), mass) for t in (0, -1)] + [(b, few) for b in side.tilts[1:]]
        self.hint |= {"range": ["0", "0"], "panels": [], "cells": []}
        self.step = self._step()
        stretches = [
            (kind.stretches[stretch_panels.stretch], stretch_panels.edges)
            for stretch_panels in panels
        ]
        ends = [self._ends(*both) for both in stretches if not both[0].is_infinite]
        if kind.is_discrete:
            self.hint = {"scale": str(self._scale)}
            if ends:
                self.hint["range"] = [str(min(x for x, _ in ends)), str(max(x for _, x in ends))]
            self.step = self._step()
            return
        self._lay([(row, 0) for pair in ends for row in self._halved(pair)])
        self._cut()

    def _step(self) -> Any:
        """Return the checker's step without nodes on panels, which laying them needs not."""
        step = checker.Step(self._told, self.hint, ([], 0), self._side.name == "add")
        step.rule, step.gap = self._rule
        return step

    def _lay(self, rows: Sequence[tuple[Sequence[Fraction], int]]) -> None:
        self.hint["panels"] = [[str(x) for x in row] for row, _ in rows]
        self.hint["cells"] = [str(cut) for _, cut in rows]
        self.step = self._step()

    def _rows(self) -> list[tuple[list[Fraction], int]]:
        rows = zip(self.hint["panels"], self.hint["cells"], strict=True)
        return [([Fraction(x) for x in row], int(cut)) for row, cut in rows]

    def refine(self) -> None:
        """Halve panels further, as a larger frequency asks."""
        if self.step.panels:
            self._lay([(part, 0) for row, _ in self._rows() for part in self._halved(row)])
            self._cut()

    def log_modulus(self, y: float) -> float:
        """Return the log of a bound of |e^−scale M(tilt + iy′)| for all y′ from y on."""
        tilt = self._side.tilts[0]
        gain = self.step.gain(tilt, checker.series(Fraction(y))).lo / checker.ONE
        return math.log(max(self._total - gain, 1e-300))

    def _log_p(self, x: Fraction) -> float:
        try:
            return float(self.step.logs(checker.series(x))[0].hi / checker.ONE)
        except checker.Refused:
            return -math.inf

    def _ends(self, stretch: Stretch, edges: Sequence[float]) -> list[Fraction]:
        """Return where the panels of a stretch begin and end, a little inside of finite ends."""
        gap = Fraction(0 if stretch.is_integer else 2**_GAP_BITS, checker.ONE)
        bounds: list[Fraction | None] = []
        edges_in_x = [] if stretch.is_moved else list(map(Fraction, edges))  # in x itself
        unit = Fraction(1)
        if edges_in_x and not stretch.is_integer:
            unit = _unit((edges_in_x[-1] - edges_in_x[0]) / 256)
        for end, sign, index in ((stretch.lower, 1, 0), (stretch.upper, -1, -1)):
            inside = None if end.is_infinite else sign * _fraction(end)
            if gap and inside is not None:
                inside = (inside // gap + 2) * gap
            if edges_in_x and (inside is None or edges_in_x[index] != Fraction(float(end))):
                outer = sign * edges_in_x[index] // unit * unit
                inside = outer if inside is None else max(inside, outer)
            bounds.append(None if inside is None else sign * inside)
        for index, sign in ((0, -1), (1, 1)):
            if bounds[index] is None:  # from the other end outwards
                bounds[index] = self._far(bounds[1 - index] or Fraction(0), sign, unit)
        return [end for end in bounds if end is not None]

    def _far(self, start: Fraction, sign: int, unit: Fraction) -> Fraction:
        """Return a place beyond which a law hardly has mass, by its density beside its distance."""
        distance = Fraction(1)
        while True:
            x = start + sign * distance
            if self._log_p(x) + math.log(distance) < self._side.log_mass - LN10:
                return x
            distance = -(-distance * 5 // (4 * unit)) * unit

    def _halved(self, row: Sequence[Fraction]) -> list[list[Fraction]]:
        """Return rows of panels whose errors are small, without what hardly has mass."""
        rows, waiting = [[row[0]]], [(x, 0) for x in row[:0:-1]]
        while waiting:
            left, (right, depth) = rows[-1][-1], waiting.pop()
            if self._fits(left, right):
                rows[-1].append(right)
            elif depth > _DEEP and self._is_negligible(left, right):
                rows.append([right])
            else:
                waiting += [(right, depth + 1), (_between(left, right), depth + 1)]
        return [part for part in rows if len(part) > 1]

    def _fits(self, left: Fraction, right: Fraction) -> bool:
        self._tries += 1
        if self._tries > _MOST_TRIES:
            raise AccuracyError("no certificate: its integrals need too many panels")
        side = self._side
        zero = Fraction(0)
        integrals = [(t, zero, most) for t, most in self._asked]
        integrals.append((side.tilts[0], Fraction(side.reach), _exp(side.log_each)))
        try:
            self.step.panels, self.step.nodes = [self.step.panel(left, right)], []
            return all(
                self.step.measure(t, checker.series(y))[1] <= most * checker.ONE + 2
                for t, y, most in integrals
            )
        except checker.Refused:
            return False

    def _is_negligible(self, left: Fraction, right: Fraction) -> bool:
        log_p = max(map(self._log_p, (left, (left + right) / 2, right)))
        return log_p + math.log(right - left) < self._side.log_mass - LN10

    def _cut(self) -> None:
        """Cut panels where the tilted mass is, until cells hold most of what they can."""
        tilt = self._side.tilts[0]
        rows = self._rows()
        before = 0.0
        pieces = []
        logs = [(r, p + tilt * x - self._scale) for _, r, p, x in self.step.panels]
        masses = [float(2 * r) * math.exp(min(u.parts[0] / checker.ONE, 700.0)) for r, u in logs]
        share = math.exp(self._side.log_width / self._side.count) / 2
        total, count = sum(masses), 0
        least = share / 16 * total
        for row, _ in rows:
            inside = []
            for k in range(len(row) - 1):
                mass, count = masses[count], count + 1
                if before + mass > least and total - before > least:
                    inside.append(k)
                before += mass
            i, j = (inside[0], inside[-1] + 1) if inside else (0, 0)
            middle = row[i : j + 1]
            parts = (
                (row[: i + 1], 0),
                (middle, self._cells(middle, min(share, _FINE))),
                (row[j:], 0),
            )
            pieces += [part for part in parts if len(part[0]) > 1]
        self._lay(pieces)

    def _cells(self, row: Sequence[Fraction], fine: float) -> int:
        """Return into how many cells a panel is cut so that more hold little more, or 0."""
        step = self.step
        tilt = self._side.tilts[0]
        cut = 1
        mass = 1.0
        before = 0.0
        while mass - before > fine * mass and cut * (len(row) - 1) < _MOST_CELLS:
            before = mass if cut > 1 else 0.0
            cut *= 2
            mass = 0.0
            parts = [x + (y - x) * Fraction(k, cut) for x, y in pairwise(row) for k in range(cut)]
            places = [*parts, row[-1]]
            losses = [step.logs(checker.series(x))[1].parts[0] / checker.ONE for x in places]
            for ends, (x, y) in zip(pairwise(places), pairwise(losses), strict=True):
                mass += step.density(step.panel(*ends), tilt) / checker.ONE * abs(y - x)
        return cut if mass > 0 and len(row) > 1 else 0


def _rule(nodes: int, bits: int) -> list[list[str]]:
    """Return nodes and weights of Gauss and Legendre as decimals, good to the last bit or so."""
    digits = math.ceil(bits * math.log10(2)) + 2
    with ctx.workprec(bits + 64):
        pairs = [arb.legendre_p_root(nodes, k, weight=True) for k in range(nodes)]
        return [
            [f"{(u * arb(10) ** digits).floor().unique_fmpz()}e-{digits}" for u in pair]
            for pair in pairs
        ]


def _decimal(x: Fraction, digits: int) -> str:
    """Return a number to so many decimals, as a ratio where that is short."""
    whole = round(x * 10**digits)
    ratio = str(Fraction(whole, 10**digits))
    return ratio if len(ratio) < digits else f"{whole}e-{digits}"


def _fraction(end: sp.Expr) -> Fraction:
    """Return a number, or one much nearer than panels go."""
    exact = end if end.is_Rational else sp.Rational(str(sp.N(end, checker.P // 3 + 10)))
    return Fraction(int(exact.p), int(exact.q))


def _unit(size: Fraction) -> Fraction:
    """Return the largest power of two below a number, about."""
    return Fraction(2) ** math.floor(math.log2(size))


def _between(left: Fraction, right: Fraction) -> Fraction:
    """Return a number of few bits near the middle."""
    unit = _unit((right - left) / 8)
    return round((left + right) / 2 / unit) * unit


def _exp(log_size: float) -> Fraction:
    """Return e^x, which may be below all doubles."""
    whole = math.floor(log_size)
    return Fraction(math.exp(log_size - whole)) * Fraction(math.e) ** whole
