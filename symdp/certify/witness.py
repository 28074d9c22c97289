"""A certificate of δ(ε) that a checker of its own proves: where its integrals and its sum look.

The checker (`check_certificate`) believes nothing that stands here, so that a choice costs width or
time and never truth.  A saddle point of the numeric law gives the tilt; panels are laid outwards
from where the mass is, each as wide as the checker's own bound allows; layers below the density of
the tilted loss show that |M| falls; and the checker's own sum gives the two ends that are claimed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import sympy as sp
from flint import arb, ctx
from mpmath import workdps
from sympy.printing.str import StrPrinter

from symdp.certify import check_certificate
from symdp.certify.estimate import AboutSaddle, exponent, log_modulus, right_saddle
from symdp.certify.layout import Layout, integers_with_mass
from symdp.certify.line.lattice import find_lattice
from symdp.decimal_text import scientific
from symdp.emit.constants import constant_value
from symdp.emit.exact import LN10
from symdp.errors import AccuracyError
from symdp.model.allocation import AllocatedPair, OneStep
from symdp.model.pair import Pair

FORMAT = "symdp certificate 1"  # of the files
REACH = 4  # half widths of a panel to which the series of its integrand converges
_SPARE = 3  # digits of an integral beyond those of the sum
_CONSTANT_DIGITS = 50  # of a constant that the checker's grammar lacks
_MOST_TERMS = 20_000  # of the sum, half a minute of checking
_TILTS = 16  # tried on the way to the tilt, to bound aliases
SLOW = "no certificate: |M| falls too slowly, as of few steps or where atoms weigh much"  # refusal
_MOST_BITS = 512  # with 416, panels take half a minute to lay
_SLOWEST = 1e4  # of deviations, a frequency by which |φ|ⁿ should have fallen

checker: Any = check_certificate


class Told(NamedTuple):
    """The steps of a composition, and how a certificate tells them."""

    pairs: tuple[tuple[Pair, int], ...]
    steps: list[dict[str, Any]]


def make(
    steps: Sequence[tuple[OneStep, int]], sides: Sequence[str], epsilon: Fraction, digits: int
) -> dict[str, Any]:
    """Return a certificate of δ(ε) as JSON values, its ends from the checker's own sum.

    Parameters
    ----------
    steps : pairs in the direction "remove", and how often each is used
    sides : the directions to prove, "remove", "add" or both
    epsilon : any exact number
    digits : about so many of δ

    Raises
    ------
    AccuracyError
        If the checker's mathematics does not reach the mechanism, or not so many digits.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> steps = [(mechanisms.gaussian(sigma=2).pair(), 30)]
    >>> made = make(steps, ["remove"], Fraction(3, 2), 6)
    >>> made["claim"]["upper"][:6], checker.check(made)[:6]
    ('6.7057', '6.7057')
    """
    try:
        return _made(tell(steps), sides, epsilon, digits)
    except checker.Refused as refusal:
        raise AccuracyError(f"no certificate: its checker says, {refusal}") from None


def _made(told: Told, sides: Sequence[str], epsilon: Fraction, digits: int) -> dict[str, Any]:
    witness: dict[str, Any] = {"reach": str(REACH)}
    plans = {side: _plan(told, side == "add", epsilon, digits) for side in sides}
    witness |= {side: _witness(told, side == "add", plan) for side, plan in plans.items()}
    bits = max(plan.bits for plan in plans.values())
    witness["bits"] = str(bits)
    checker.set_units(bits, REACH)
    lower, upper = Fraction(0), Fraction(0)
    for side in sides:
        unit, low, high = checker.enclose(
            {"steps": told.steps}, witness[side], side == "add", epsilon
        )
        lower = max(lower, Fraction(low.lo, unit.hi))
        upper = max(upper, Fraction(high.hi, unit.lo))
    if bits > _MOST_BITS and upper > 2 * lower:
        raise AccuracyError(
            "no certificate: its ends would lie far apart; where δ is this small, the "
            f"{_CONSTANT_DIGITS} digits of a law's constant factor are too few"
        )
    return {
        "format": FORMAT,
        "claim": {
            "direction": sides[0] if len(sides) == 1 else "both",
            "epsilon": str(epsilon),
            "lower": scientific(lower, digits + 2, up=False),
            "upper": scientific(min(upper, Fraction(1)), digits + 2, up=True),
        },
        "steps": told.steps,
        "witness": witness,
    }


def tell(steps: Sequence[tuple[OneStep, int]]) -> Told:
    """Return the steps as a certificate tells them.

    Raises
    ------
    AccuracyError
        If it has no words for one of them.
    """
    pairs: list[tuple[Pair, int]] = []
    for pair, count in steps:
        if (
            isinstance(pair, AllocatedPair)
            or pair.alternatives
            or pair.atoms
            or pair.support.kind == "naturals"
        ):
            raise AccuracyError(
                "no certificate file is known for this kind of step yet: use certify"
            )
        pairs.append((pair, count))
    return Told(tuple(pairs), [_told_step(pair, count) for pair, count in pairs])


def _told_step(pair: Pair, count: int) -> dict[str, Any]:
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
    factor, rest = written.as_independent(x, as_Add=False)
    with workdps(_CONSTANT_DIGITS + 10):
        value = sp.Rational(str(constant_value(factor, 4 * _CONSTANT_DIGITS)))
    power = sp.Integer(10) ** (_CONSTANT_DIGITS - sp.floor(sp.log(value, 10)))
    text = f"{sp.floor(value * power) - 1}/{power}*({_Printer().doprint(rest)})"
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
    checker.set_units(64, REACH)
    try:
        checker.log_value(checker.formula(text), x=checker.real(Fraction(1, 3)))
    except checker.Refused as refusal:
        return not str(refusal).startswith("a formula")
    return True


class _Plan(NamedTuple):
    """Where the sum looks in one direction, and how small errors have to be."""

    pairs: tuple[tuple[Pair, int], ...]
    epsilon: Fraction
    saddle: AboutSaddle
    tilt: Fraction
    below: Fraction
    above: Fraction
    period: Fraction
    log_width: float  # of the sum, relative
    log_each: float  # of one integral
    log_mass: float  # of what is left out of a law

    @property
    def bits(self) -> int:
        """The bits that numbers carry, a few words beyond the errors."""
        return 64 + 32 * math.ceil(-self.log_mass / math.log(2) / 32)

    def scale(self, pair: Pair) -> Fraction:
        """Return a number near K of one step."""
        return Fraction(round((exponent(((pair, 1),), 0.0, float(self.tilt)) or 0.0) * 256), 256)


def _plan(told: Told, swapped: bool, epsilon: Fraction, digits: int) -> _Plan:
    pairs = tuple((pair.reversed() if swapped else pair, n) for pair, n in told.pairs)
    saddle = right_saddle(pairs, float(epsilon))
    if saddle is None:
        raise AccuracyError("no certificate: K is finite at no t > 0 of use")
    tilt, log_width = _short(saddle.tilt), -(digits + 1) * LN10
    ends = _period(pairs, epsilon, tilt, saddle.log_size + log_width)
    # An error of one integral counts n times; that of a mass beside δ.
    log_each = -(digits + _SPARE) * LN10 - math.log(sum(n for _, n in pairs))
    log_mass = log_each + min(saddle.log_size, 0.0)
    return _Plan(pairs, epsilon, saddle, tilt, *ends, log_width, log_each, log_mass)


def _witness(told: Told, swapped: bool, plan: _Plan) -> dict[str, Any]:
    """Return the witness of one direction, each step's part made by its kind."""
    checker.set_units(plan.bits, REACH)
    checker.LEFT = math.inf  # looking for panels is not checking
    if all(pair.is_discrete for pair, _ in plan.pairs):
        return _on_lattice(told, swapped, plan)
    if any(pair.is_discrete for pair, _ in plan.pairs):
        raise AccuracyError("no certificate: some steps have a density and some have none")
    return _on_line(told, swapped, plan)


def _on_lattice(told: Told, swapped: bool, plan: _Plan) -> dict[str, Any]:
    lattice = find_lattice(plan.pairs)
    if lattice is None:
        raise AccuracyError("no certificate: the losses lie on no lattice")
    digits = math.ceil(plan.bits * math.log10(2))
    spacing = _decimal(lattice.spacing, digits)
    terms = math.ceil(plan.period / spacing)
    hints = []
    for (pair, _), one in zip(plan.pairs, told.steps, strict=True):
        hint: dict[str, Any] = {"scale": str(plan.scale(pair))}
        if pair.support.kind == "integers":
            hint["range"] = integers_with_mass(one, swapped, plan.log_mass - LN10)
        origin = find_lattice([(pair, 1)])
        assert origin is not None
        hints.append(hint | {"offset": str(_decimal(origin.origin, digits))})
    return _hint(plan, terms, hints) | {"spacing": str(spacing), "period": str(spacing * terms)}


def _hint(plan: _Plan, terms: int, steps: list[dict[str, Any]]) -> dict[str, Any]:
    names = ("tilt", "period", "below", "above")
    own = {name: str(getattr(plan, name)) for name in names}
    return own | {"terms": str(terms), "steps": steps}


def _on_line(told: Told, swapped: bool, plan: _Plan) -> dict[str, Any]:
    if plan.bits > _MOST_BITS:
        raise AccuracyError("no certificate: δ is too small, so that its integrals take minutes")
    pairs, saddle, tilt, log_width = plan.pairs, plan.saddle, plan.tilt, plan.log_width
    count = sum(n for _, n in pairs)
    y = 1 / math.sqrt(saddle.curvature)
    slowest = _SLOWEST * y
    while log_modulus(pairs, float(tilt), y) > log_width:
        y *= 1.25
        if y > slowest:
            raise AccuracyError(SLOW)
    rule = _rule(math.ceil((6 - plan.log_mass) / (2 * math.log(REACH))), plan.bits)
    layouts: list[Layout] = []
    for (pair, _), one in zip(pairs, told.steps, strict=True):
        scale = plan.scale(pair)
        each, mass = (_exp(size) for size in (plan.log_each, plan.log_mass - float(scale)))
        asked = [(tilt, y, each), (Fraction(0), 0.0, mass), (Fraction(-1), 0.0, mass)]
        asked += [(b, 0.0, Fraction(1, 10**6 * count)) for b in (plan.below, plan.above)]
        layout = Layout(one, swapped, _kinks(pair), {"scale": str(scale), "rule": rule}, asked)
        layout.lay_panels(plan.log_mass - LN10)
        layout.lay_layers(tilt, math.exp(log_width / count) / 2)
        layouts.append(layout)
    first = 2 * math.pi / float(plan.period)
    scales = sum(layout.step.count * layout.step.scale for layout in layouts)
    log_sum = saddle.log_size + math.log(float(plan.period))
    log_sum += float(tilt * plan.epsilon - scales) + log_width
    terms = 1
    while _log_beyond(layouts, tilt, first, terms) > log_sum:
        terms = math.ceil(terms * 1.1)
        if terms > _MOST_TERMS:
            raise AccuracyError(SLOW)
    if first * terms > y:
        for layout in layouts:
            layout.reach_to(tilt, first * terms)
            layout.lay_panels(plan.log_mass - LN10)
    return _hint(plan, terms, [layout.hint for layout in layouts])


def _decimal(constant: Any, digits: int) -> Fraction:
    with workdps(digits + 10):
        near = Fraction(str(constant_value(constant, 4 * digits)))
    return Fraction(round(near * 10**digits), 10**digits)


def _log_beyond(layouts: Sequence[Layout], tilt: Fraction, first: float, terms: float) -> float:
    """Return about the log of what the sum leaves out."""
    moduli = (l.step.count * math.log(l.modulus(tilt, first * (terms + 1))) for l in layouts)
    return float(math.log(2 / (first**2 * terms)) + sum(moduli))


def _period(
    pairs: tuple[tuple[Pair, int], ...], epsilon: Fraction, tilt: Fraction, log_goal: float
) -> tuple[Fraction, Fraction, Fraction]:
    """Return tilts below and above, and the least period whose aliases these bound as asked."""

    def best(tilts: Sequence[Fraction]) -> tuple[float, Fraction]:
        found = [(exponent(pairs, float(epsilon), float(s)), s) for s in tilts]
        kept = [(e, s) for e, s in found if e is not None]
        least = [(max(e - log_goal, 1.0) / abs(float(tilt - s)), s) for e, s in kept]
        if not least:
            raise AccuracyError("no certificate: K is infinite just above its saddle point")
        return min(least)

    left, below = best([tilt * j / _TILTS for j in range(_TILTS)])
    right, above = best([tilt * (1 + Fraction(j, _TILTS)) for j in range(1, 5 * _TILTS)])
    return below, above, _short(1.01 * max(left, right))


def _rule(nodes: int, bits: int) -> list[list[str]]:
    """Return nodes and weights of Gauss and Legendre as decimals, good to the last bit or so."""
    digits = math.ceil(bits * math.log10(2)) + 2
    with ctx.workprec(bits + 64):
        pairs = [arb.legendre_p_root(nodes, k, weight=True) for k in range(nodes)]
        return [
            [f"{(u * arb(10) ** digits).floor().unique_fmpz()}e-{digits}" for u in pair]
            for pair in pairs
        ]


def _kinks(pair: Pair) -> list[Fraction]:
    """Return about where an absolute value in the densities has its kinks."""
    found: set[Fraction] = set()
    for law in pair.components:
        for one in sp.sympify(law, strict=True).atoms(sp.Abs, sp.Max, sp.Min, sp.sign):
            args = [u - v for u, v in pairwise(one.args)] if len(one.args) > 1 else [one.args[0]]
            for arg in args:
                if arg.is_polynomial(pair.variable) and arg.has(pair.variable):
                    roots = sp.Poly(arg, pair.variable).real_roots()
                    found |= {Fraction(str(sp.Rational(str(sp.N(r, 80))))) for r in roots}
    return sorted(found)


def _short(x: float) -> Fraction:
    return Fraction(f"{x:.3g}")


def _exp(log_size: float) -> Fraction:
    """Return e^x, which may be below all doubles."""
    return Fraction(math.exp(log_size % 1.0)) * Fraction(
        int(math.e * 10**15), 10**15
    ) ** math.floor(log_size)
