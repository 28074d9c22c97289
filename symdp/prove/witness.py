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
from symdp.model import tidy
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
    plans = [_SidePlan(pairs, side, epsilon, digits) for side in sides]
    bits = max(plan.bits for plan in plans)
    rule = gauss_rule(max(plan.nodes for plan in plans), bits)
    witness: Told = {"bits": str(bits), "rule": rule}
    lower = Fraction(0)
    upper = Fraction(0)
    try:
        for plan in plans:
            checker.set_units(bits)
            checker.LEFT = math.inf  # looking for panels is not checking
            checked_rule = checker.rule_of(witness)
            witness[plan.name] = plan.hint(certificate["steps"], checked_rule)
            checker.set_units(bits)
            with_plan = certificate | {"witness": witness}
            unit, low, high = checker.enclose(with_plan, plan.name, epsilon)
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
    shuffle: Told = {"people": str(people), "laws": rows}
    witness: Told = {"bits": str(bits), "plans": plans}
    return certificate_of_shuffled(shuffle, witness, epsilon, digits)


def certificate_of_shuffled(shuffle: Told, witness: Told, epsilon: Fraction, digits: int) -> Told:
    """Return a certificate with the upper end that the checker proves."""
    try:
        checker.set_units(int(witness["bits"]))
        end = checker.shuffled(witness | shuffle, epsilon)
    except checker.Refused as refusal:
        raise AccuracyError(f"no certificate: its checker says, {refusal}") from None
    upper = Fraction(end.hi + 1, checker.ONE)
    claim = {
        "direction": "both",
        "epsilon": str(epsilon),
        "lower": "0",
        "upper": scientific(min(upper, Fraction(1)), digits + 2, up=True),
    }
    return {"format": checker.FORMAT, "claim": claim, "shuffled": shuffle, "witness": witness}


def tell(steps: Sequence[tuple[OneStep, int]]) -> list[Told]:
    """Return the steps as a certificate tells them."""
    texts = []
    for pair, count in steps:
        is_plain = isinstance(pair, Pair) and not (pair.alternatives or pair.atoms)
        if isinstance(pair, AllocatedPair) or not is_plain or pair.support.kind == "naturals":
            raise AccuracyError(
                "no certificate file is known for this kind of step yet: use certify"
            )
        texts.append(_step_as_text(pair, count))
    return texts


def _step_as_text(pair: Pair, count: int) -> Told:
    """Return the laws of a step as text, exactly."""
    laws: list[str | list[str]] = []
    for law in pair.components:
        if isinstance(law, tuple):
            laws.append([law_text(mass, pair.variable) for mass in law])
        else:
            laws.append(law_text(law, pair.variable))
    support = pair.support
    ends = [str(support.lower), str(support.upper)]
    return {
        "laws": laws,
        "p": [str(weight) for weight in pair.p_weights],
        "q": [str(weight) for weight in pair.q_weights],
        "support": support.kind if pair.is_discrete else ends,
        "count": str(count),
    }


def law_text(law: Any, variable: sp.Symbol) -> str:
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
    digits = _CONSTANT_DIGITS - sp.floor(sp.log(value, 10))
    power = sp.Integer(10) ** digits
    rounded = sp.floor(value * power) - 1
    text = f"{rounded}/{power}*({_Printer().doprint(shape)})"
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

    def larger(a: sp.Expr, b: sp.Expr) -> sp.Expr:
        return (a + b + sp.Abs(a - b)) / 2

    def smaller(a: sp.Expr, b: sp.Expr) -> sp.Expr:
        return (a + b - sp.Abs(a - b)) / 2

    law = law.replace(sp.erfc, lambda u: 1 - sp.erf(u))
    law = law.replace(sp.Max, lambda *u: reduce(larger, u))
    law = law.replace(sp.Min, lambda *u: reduce(smaller, u))
    return tidy.without_hyperbolics(law)


def _is_readable(text: str) -> bool:
    checker.set_units(64)
    try:
        shape = checker.formula(text)
        checker.log_value(shape, checker.series(Fraction(1, 3)))
    except checker.Refused as refusal:
        return not str(refusal).startswith("a formula")
    return True


class _SidePlan:
    """A plan of one direction, and how small the checker's errors have to be."""

    def __init__(
        self, pairs: Sequence[tuple[Pair, int]], name: str, epsilon: Fraction, digits: int
    ) -> None:
        self.name = name
        if name == "add":
            pairs = [(pair.reversed(), n) for pair, n in pairs]
        self.kinds = tuple((kind_of(pair), n) for pair, n in pairs)
        self.lattice = lattice_of(self.kinds)
        are_discrete = all(kind.is_discrete for kind, _ in self.kinds)
        if self.lattice is None and are_discrete:
            raise AccuracyError("no certificate: the losses lie on no lattice")
        spacing = None if self.lattice is None else float(self.lattice.spacing)
        self.plan = find_plan(self.kinds, float(epsilon), digits + 2, spacing=spacing)
        plan = self.plan
        self.tilts = [Fraction(tilt) for tilt in (plan.tilt, plan.below, plan.above)]
        self.scales = [Fraction(round(scale.tilt * 256), 256) for scale in plan.scales]
        self.count = sum(n for _, n in self.kinds)
        # An error of one integral counts n times; that of a mass beside δ.
        self.log_each = -(digits + _SPARE) * LN10 - math.log(self.count)
        self.log_mass = self.log_each + min(plan.log_size, 0.0)
        blocks = -self.log_mass / math.log(2) / 32
        self.bits = 64 + 32 * math.ceil(blocks)
        self.nodes = 0
        # The sum is about its term at the real axis, over the width of the saddle.
        self.log_width = -(digits + 1) * LN10  # of the sum, relative
        counts = [n for _, n in self.kinds]
        scales = sum(n * scale for scale, n in zip(self.scales, counts, strict=True))
        self.log_rest = plan.log_size + math.log(plan.period) + self.log_width
        self.log_rest += float(self.tilts[0] * epsilon)
        self.log_rest -= float(scales)
        self.reach = math.sqrt(-2 * self.log_width / plan.curvature)  # of frequencies
        if self.lattice is None:
            log_gain = 2 * math.log(checker.REACH)
            self.nodes = math.ceil((6 - self.log_mass) / log_gain)
            if self.bits > _MOST_BITS:
                raise AccuracyError(
                    "no certificate: δ is too small, so that its integrals take minutes"
                )

    def hint(self, steps: Sequence[Told], rule: Any) -> Told:
        """Return what a certificate says of this direction."""
        tilt, below, above = (str(tilt) for tilt in self.tilts)
        hint: Told = {"tilt": tilt, "below": below, "above": above}
        layouts = [_Layout(self, number, step, rule) for number, step in enumerate(steps)]
        if self.lattice is not None:
            return hint | self._on_lattice(layouts)
        first = 2 * math.pi / self.plan.period
        terms = self._number_of_terms(first, layouts)
        if first * terms > self.reach:
            self.reach = first * terms
            for layout in layouts:
                layout.refine()
        hint |= {"period": str(Fraction(self.plan.period)), "terms": str(terms)}
        return hint | {"steps": [layout.hint for layout in layouts]}

    def _number_of_terms(self, first: float, layouts: Sequence[_Layout]) -> int:
        """Return after how many terms the checker's bound of the others is small."""

        def is_enough(terms: int) -> bool:
            y = first * (terms + 1)
            log_modulus = 0.0
            for layout, (_, count) in zip(layouts, self.kinds, strict=True):
                log_modulus += layout.log_modulus(y) * count
            return log_modulus + math.log(2 / (first**2 * terms)) < self.log_rest

        low = 0
        high = 8
        while not is_enough(high):
            low = high
            high = 2 * high
            if low > _MOST_TERMS:
                raise AccuracyError(_SLOW)
        while high - low > 1 + low // 16:
            middle = (low + high) // 2
            if is_enough(middle):
                high = middle
            else:
                low = middle
        return high

    def _on_lattice(self, layouts: Sequence[_Layout]) -> Told:
        """Return a lattice of the checker's losses, its spacing that of the two farthest apart."""
        assert self.lattice is not None
        digits = math.floor(self.bits * math.log10(2)) - 4  # but for their roundings
        widest = Fraction(0)
        for layout in layouts:
            losses = [Fraction(loss.parts[0], checker.ONE) for _, _, loss in layout.step.nodes]
            least = min(losses)
            layout.hint["offset"] = _decimal_or_ratio(least, digits)
            widest = max(widest, max(losses) - least)
        points = round(widest / self.lattice.spacing)
        exact_spacing = widest / points if points else Fraction(1)
        spacing = _decimal_or_ratio(exact_spacing, digits)
        terms = math.ceil(Fraction(self.plan.period) / Fraction(spacing))
        steps = [layout.hint for layout in layouts]
        return {"spacing": spacing, "terms": str(terms), "steps": steps}


class _Layout:
    """What a certificate says of one step: rows of panels, and how they are cut into cells."""

    def __init__(self, side: _SidePlan, number: int, told: Told, rule: Any) -> None:
        self._side = side
        self._told = told
        self._rule = rule
        self._tries = 0
        kind, _ = side.kinds[number]
        log_moment = side.plan.scales[number].tilt
        self._scale = side.scales[number]
        self._total = math.exp(log_moment - float(self._scale))  # of e^−scale M at the tilt
        self.hint: Told = {"scale": str(self._scale)}
        mass = _exact_exp(side.log_mass - log_moment)
        few = Fraction(1, 10**6 * side.count)
        _, below, above = side.tilts
        at_0 = (Fraction(0), mass)
        at_minus_1 = (Fraction(-1), mass)
        self._asked = [at_0, at_minus_1, (below, few), (above, few)]
        self.hint |= {"range": ["0", "0"], "panels": [], "cells": []}
        self.step = self._step_without_nodes()
        ends = []
        for panels in side.plan.panels[number]:
            stretch = kind.stretches[panels.stretch]
            if not stretch.is_infinite:
                ends.append(self._ends_of_panels(stretch, panels.edges))
        if kind.is_discrete:
            self.hint = {"scale": str(self._scale)}
            if ends:
                first = min(low for low, _ in ends)
                last = max(high for _, high in ends)
                self.hint["range"] = [str(first), str(last)]
            self.step = self._step_without_nodes()
            return
        rows = []
        for pair in ends:
            rows += [(row, 0) for row in self._halved_rows(pair)]
        self._lay_rows(rows)
        self._cut_into_cells()

    def _step_without_nodes(self) -> Any:
        """Return the checker's step without nodes on panels, which laying them needs not."""
        is_add = self._side.name == "add"
        step = checker.Step(self._told, self.hint, ([], 0), is_add)
        step.rule, step.gap = self._rule
        return step

    def _lay_rows(self, rows: Sequence[tuple[Sequence[Fraction], int]]) -> None:
        self.hint["panels"] = [list(map(str, row)) for row, _ in rows]
        self.hint["cells"] = [str(cut) for _, cut in rows]
        self.step = self._step_without_nodes()

    def _rows_in_hint(self) -> list[tuple[list[Fraction], int]]:
        rows = zip(self.hint["panels"], self.hint["cells"], strict=True)
        return [(list(map(Fraction, row)), int(cut)) for row, cut in rows]

    def refine(self) -> None:
        """Halve panels further, as a larger frequency asks."""
        if not self.step.panels:
            return
        rows = []
        for row, _ in self._rows_in_hint():
            rows += [(part, 0) for part in self._halved_rows(row)]
        self._lay_rows(rows)
        self._cut_into_cells()

    def log_modulus(self, y: float) -> float:
        """Return the log of a bound of |e^−scale M(tilt + iy′)| for all y′ from y on."""
        tilt = self._side.tilts[0]
        gain = self.step.gain(tilt, checker.series(Fraction(y)))
        remaining = self._total - gain.lo / checker.ONE
        return math.log(max(remaining, 1e-300))

    def _log_p(self, x: Fraction) -> float:
        try:
            log_p, _ = self.step.logs(checker.series(x))
            return float(log_p.hi / checker.ONE)
        except checker.Refused:
            return -math.inf

    def _ends_of_panels(self, stretch: Stretch, edges: Sequence[float]) -> list[Fraction]:
        """Return where the panels of a stretch begin and end, a little inside of finite ends."""
        gap_in_units = 0 if stretch.is_integer else 2**_GAP_BITS
        gap = Fraction(gap_in_units, checker.ONE)
        edges_in_x = [] if stretch.is_moved else list(map(Fraction, edges))  # in x itself
        unit = Fraction(1)
        if edges_in_x and not stretch.is_integer:
            unit = _power_of_two_below((edges_in_x[-1] - edges_in_x[0]) / 256)
        bounds: list[Fraction | None] = []
        lower_end = (stretch.lower, 1, 0)
        upper_end = (stretch.upper, -1, -1)
        for end, sign, index in (lower_end, upper_end):
            inside: Fraction | None = None
            if not end.is_infinite:
                inside = sign * _fraction_of_end(end)
                if gap:
                    inside = (inside // gap + 2) * gap
            if edges_in_x and (inside is None or edges_in_x[index] != Fraction(float(end))):
                outer = sign * edges_in_x[index] // unit * unit
                inside = outer if inside is None else max(inside, outer)
            bound = None if inside is None else sign * inside
            bounds.append(bound)
        lower, upper = bounds
        # Where one is infinite, from the other end outwards.
        if lower is None:
            lower = self._place_without_mass(upper or Fraction(0), -1, unit)
        if upper is None:
            upper = self._place_without_mass(lower or Fraction(0), 1, unit)
        return [lower, upper]

    def _place_without_mass(self, start: Fraction, sign: int, unit: Fraction) -> Fraction:
        """Return a place beyond which a law hardly has mass, by its density beside its distance."""
        log_least = self._side.log_mass - LN10
        distance = Fraction(1)
        while True:
            x = start + sign * distance
            if self._log_p(x) + math.log(distance) < log_least:
                return x
            distance = -(-distance * 5 // (4 * unit)) * unit

    def _halved_rows(self, row: Sequence[Fraction]) -> list[list[Fraction]]:
        """Return rows of panels whose errors are small, without what hardly has mass."""
        rows = [[row[0]]]
        waiting = [(x, 0) for x in row[:0:-1]]
        while waiting:
            left = rows[-1][-1]
            right, depth = waiting.pop()
            if self._has_small_errors(left, right):
                rows[-1].append(right)
            elif depth > _DEEP and self._is_negligible(left, right):
                rows.append([right])
            else:
                middle = _middle_of_few_bits(left, right)
                waiting += [(right, depth + 1), (middle, depth + 1)]
        return [part for part in rows if len(part) > 1]

    def _has_small_errors(self, left: Fraction, right: Fraction) -> bool:
        self._tries += 1
        if self._tries > _MOST_TRIES:
            raise AccuracyError("no certificate: its integrals need too many panels")
        side = self._side
        integrals = [(tilt, Fraction(0), most) for tilt, most in self._asked]
        most_at_tilt = _exact_exp(side.log_each)
        integrals.append((side.tilts[0], Fraction(side.reach), most_at_tilt))
        try:
            self.step.panels = [self.step.panel(left, right)]
            self.step.nodes = []
            for tilt, y, most in integrals:
                _, error = self.step.measure(tilt, checker.series(y))
                if error > most * checker.ONE + 2:
                    return False
        except checker.Refused:
            return False
        return True

    def _is_negligible(self, left: Fraction, right: Fraction) -> bool:
        middle = (left + right) / 2
        log_p = max(map(self._log_p, (left, middle, right)))
        log_mass = log_p + math.log(right - left)
        return log_mass < self._side.log_mass - LN10

    def _cut_into_cells(self) -> None:
        """Cut panels where the tilted mass is, until cells hold most of what they can."""
        side = self._side
        masses = self._tilted_masses()
        share = math.exp(side.log_width / side.count) / 2
        total = sum(masses)
        least = share / 16 * total
        before = 0.0
        count = 0
        pieces = []
        for row, _ in self._rows_in_hint():
            inside = []
            for k in range(len(row) - 1):
                mass = masses[count]
                count += 1
                if before + mass > least and total - before > least:
                    inside.append(k)
                before += mass
            i = 0
            j = 0
            if inside:
                i = inside[0]
                j = inside[-1] + 1
            middle = row[i : j + 1]
            cells = self._number_of_cells(middle, min(share, _FINE))
            parts = ((row[: i + 1], 0), (middle, cells), (row[j:], 0))
            for part, cut in parts:
                if len(part) > 1:
                    pieces.append((part, cut))
        self._lay_rows(pieces)

    def _tilted_masses(self) -> list[float]:
        """Return about the tilted mass of each panel."""
        tilt = self._side.tilts[0]
        masses = []
        for _, radius, log_p, loss in self.step.panels:
            height = log_p + tilt * loss - self._scale
            log_density = height.parts[0] / checker.ONE
            density = math.exp(min(log_density, 700.0))
            masses.append(float(2 * radius) * density)
        return masses

    def _number_of_cells(self, row: Sequence[Fraction], fine: float) -> int:
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
            places: list[Fraction] = []
            for x, y in pairwise(row):
                places += [x + (y - x) * Fraction(k, cut) for k in range(cut)]
            places.append(row[-1])
            losses = []
            for x in places:
                _, loss = step.logs(checker.series(x))
                losses.append(loss.parts[0] / checker.ONE)
            for ends, (first, last) in zip(pairwise(places), pairwise(losses), strict=True):
                density = step.density(step.panel(*ends), tilt) / checker.ONE
                mass += density * abs(last - first)
        return cut if mass > 0 and len(row) > 1 else 0


def gauss_rule(nodes: int, bits: int) -> list[list[str]]:
    """Return nodes and weights of Gauss and Legendre as decimals, good to the last bit or so."""
    digits = math.ceil(bits * math.log10(2)) + 2
    rule = []
    with ctx.workprec(bits + 64):
        unit = arb(10) ** digits
        for k in range(nodes):
            pair = arb.legendre_p_root(nodes, k, weight=True)
            units = [(u * unit).floor().unique_fmpz() for u in pair]
            rule.append([f"{number}e-{digits}" for number in units])
    return rule


def _decimal_or_ratio(x: Fraction, digits: int) -> str:
    """Return a number to so many decimals, as a ratio where that is short."""
    units = round(x * 10**digits)
    ratio = str(Fraction(units, 10**digits))
    if len(ratio) < digits:
        return ratio
    return f"{units}e-{digits}"


def _fraction_of_end(end: sp.Expr) -> Fraction:
    """Return a number, or one much nearer than panels go."""
    exact = end
    if not end.is_Rational:
        decimals = sp.N(end, checker.P // 3 + 10)
        exact = sp.Rational(str(decimals))
    return Fraction(int(exact.p), int(exact.q))


def _power_of_two_below(size: Fraction) -> Fraction:
    """Return the largest power of two below a number, about."""
    return Fraction(2) ** math.floor(math.log2(size))


def _middle_of_few_bits(left: Fraction, right: Fraction) -> Fraction:
    """Return a number of few bits near the middle."""
    unit = _power_of_two_below((right - left) / 8)
    return round((left + right) / 2 / unit) * unit


def _exact_exp(log_size: float) -> Fraction:
    """Return e^x, which may be below all doubles."""
    whole = math.floor(log_size)
    share = Fraction(math.exp(log_size - whole))
    return share * Fraction(math.e) ** whole
