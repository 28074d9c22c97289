"""Where to cut an unbounded integral of e^g, with a proved bound of what lies beyond.

One bound of a slope is enough.  With y the distance from 0 and s > 1,

    y g′(y) ≤ −s for y ≥ Y,  so  ∫_Y^∞ e^g dy ≤ e^{g(Y)} ∫_Y^∞ (y/Y)^{−s} dy = e^{g(Y)} Y/(s − 1).

Where g is a sum of c e^{ky} y^p and of b log y, so is y g′.  Beside the term that grows fastest
every other one shrinks from some y on, so its positive part is at most what it is there: that shows
s as far as infinity.  What has another form is bounded on shells that reach the end of the double
range, each by what ball arithmetic finds on it (see `emit.enclose`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import sympy as sp
from flint import arb

from symdp.emit.arb import compile_arb
from symdp.emit.enclose import find_cut
from symdp.emit.exact import real_ball

DISTANCE = sp.Symbol("y", positive=True)  # of a place from 0
_FARTHEST = 1024  # doublings of a place, up to the largest double
_MOST_TERMS = 40  # of an exponent: longer ones are no sums that people write
_MOST_PARTS = 16  # of an exponential taken apart
_FAR = 1000  # a place that orders summands by size


class _Term(NamedTuple):
    """c e^{ky} y^p, and exactly what k and p are."""

    coefficient: arb
    rate: arb
    power: arb
    exact: tuple[sp.Expr, sp.Expr]


def cut_tails(
    exponent: sp.Expr,
    magnitude: Callable[[arb], arb],
    x: sp.Symbol,
    ends: list[arb | None],
    tolerance: arb,
    *,
    whole: bool = False,
) -> tuple[list[arb], arb]:
    """Return finite ends and an upper bound of the mass of e^g beyond them.

    `magnitude` is e^g on balls; an end that is None is infinite; each tail may have the tolerance
    at most.  Of a sum over the integers, finite ends must be integers.

    Raises
    ------
    AccuracyError
        If no bound is found.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> (low, high), tails = cut_tails(-x, lambda at: (-at).exp(), x, [arb(0), None], arb(2) ** -20)
    >>> float(low), float(high), bool(tails < 1e-6)
    (0.0, 16.0, True)
    """
    finite = [arb(0) if end is None else end for end in ends]
    total = arb(0)
    for side, direction in ((0, -1), (1, 1)):
        if ends[side] is None:
            finite[side], mass = cut_tail(
                [exponent.xreplace({x: direction * DISTANCE})],
                magnitude,
                direction,
                ends[1 - side],
                tolerance,
                whole=whole,
            )
            total += mass
    return finite, arb(total.upper())


def cut_tail(
    exponents: Sequence[sp.Expr],
    magnitude: Callable[[arb], arb],
    direction: int,
    other: arb | None,
    tolerance: arb,
    *,
    whole: bool = False,
) -> tuple[arb, arb]:
    """Return a place on one side, and a bound of what f has beyond it.

    |f| ≤ Σ e^{gᵢ} there, where any gᵢ of `DISTANCE` are given; `magnitude` is f on balls, and the
    other end is None where it is infinite.
    """
    begin = arb((arb(1) if other is None else abs(other).upper() + 1).upper())
    parts = [part for exponent in exponents for part in _far_out(exponent)]
    place, mass = arb(0), arb(0)
    for far, slope, least in parts:
        found = None if slope is None else slope.cut(far, begin.max(arb(least)), tolerance, whole)
        if found is None:
            break
        place, mass = place.max(found[0]), mass + found[1]
    else:
        if parts:
            return direction * place.mid(), mass
    place, mass = find_cut(magnitude, begin, direction, tolerance, per_integer=whole)
    return direction * place.mid(), mass


class Slope:
    """y g′(y), y the distance from 0, its fastest term first."""

    def __init__(self, terms: list[_Term]) -> None:
        self._lead, *self._others = terms

    def steepness(self, y: arb) -> arb | None:
        """Return s > 0 with zg′(z) ≤ −s for all z ≥ y, None where that is not shown."""
        lead = self._lead
        if not _rises(lead.rate, lead.power, lead.exact, y):
            return None
        total = lead.coefficient
        for term in self._others:
            if term.coefficient < 0:
                continue
            rate, power = lead.rate - term.rate, lead.power - term.power
            exact = lead.exact[0] - term.exact[0], lead.exact[1] - term.exact[1]
            if not _rises(rate, power, exact, y):
                return None
            total += term.coefficient * (-rate * y).exp() * y ** (-power)
        steepness = -total * (lead.rate * y).exp() * y**lead.power
        return steepness if steepness > 0 else None

    def cut(
        self, exponent: sp.Expr, begin: arb, tolerance: arb, whole: bool
    ) -> tuple[arb, arb] | None:
        """Return Y and a bound of what e^g has beyond it below a tolerance, None if none is found.

        Of a sum over the integers from Y on, which `begin` must be one of, the first is added.
        """
        height = compile_arb(exponent, [DISTANCE])
        for doublings in range(_FARTHEST):
            place = (begin * 2**doublings).upper()
            steepness = self.steepness(place)
            if steepness is None or not steepness > 1:
                continue
            length = place / (steepness - 1) + (1 if whole else 0)
            bound = arb((height(place).exp() * length).upper())
            if bound < tolerance:
                return place, bound
        return None


def _rises(rate: arb, power: arb, exact: tuple[sp.Expr, sp.Expr], y: arb) -> bool:
    """Whether e^{kz} z^p is known not to fall from z = y on."""
    if exact[0] == 0:
        return exact[1] == 0 or bool(power >= 0)
    return bool(rate > 0) and bool(rate * y + power >= 0)


@lru_cache(maxsize=512)
def _far_out(exponent: sp.Expr) -> tuple[tuple[sp.Expr, Slope | None, int], ...]:
    """Return gᵢ with e^g ≤ Σ e^{gᵢ}, their slopes, and from where on that holds.

    Of N sums that are not negative, (Σ sᵢ)^c ≤ N^{max(c − 1, 0)} Σ sᵢ^c where c > 0, and
    (Σ sᵢ)^c ≤ sⱼ^c for any j where c < 0; erfc(z) ≤ e^{−z²} where z ≥ 0 [DLMF 7.8.3, at its end].
    """
    waiting, least = [sp.expand_log(exponent, force=True)], 1
    found: list[sp.Expr] = []
    while waiting:
        whole = waiting.pop()
        for term in sp.Add.make_args(whole):
            constant, moving = term.as_independent(DISTANCE, as_Add=False)
            inside = moving.args[0] if isinstance(moving, sp.log) else sp.S.Zero
            inside = inside.args[0] if isinstance(inside, sp.Abs) else inside
            summands = sp.Add.make_args(inside)
            bounds: list[sp.Expr] = []
            if len(summands) > 1 and all(s.is_nonnegative for s in summands):
                if constant.is_negative:
                    bounds = [constant * sp.log(max(summands, key=_log_size))]
                elif constant.is_positive and len(waiting) + len(found) < _MOST_PARTS:
                    front = sp.Max(constant - 1, 0) * sp.log(len(summands))
                    bounds = [front + constant * sp.log(summand) for summand in summands]
            elif isinstance(inside, sp.erfc) and constant.is_positive:
                z = sp.expand(inside.args[0])
                rate, start = z.coeff(DISTANCE, 1), z.coeff(DISTANCE, 0)
                if rate.is_positive and z == rate * DISTANCE + start:
                    bounds = [-constant * z**2]
                    least = max(least, int(sp.ceiling(-start / rate)))
            if bounds:
                waiting += [sp.expand_log(whole - term + own, force=True) for own in bounds]
                break
        else:
            found.append(whole)
    return tuple((far, outward_slope(far), least) for far in found)


def _log_size(summand: sp.Expr) -> float:
    """Return about the logarithm of a summand far out, which decides about sharpness alone."""
    value = sp.expand_log(sp.log(summand), force=True).subs(DISTANCE, _FAR).evalf(15)
    return float(value) if value.is_real and value.is_finite else -1e300


def outward_slope(exponent: sp.Expr) -> Slope | None:
    """Return the slope of g towards infinity, None where g is no sum of such terms.

    >>> float(outward_slope(3 * DISTANCE - DISTANCE**2 / 2).steepness(arb(8)))
    40.0
    """
    y = DISTANCE
    if any(node.has(y) and not _is_simple(node, y) for node in exponent.atoms(sp.Function)):
        return None
    far = sp.expand(exponent.rewrite(sp.exp) if exponent.has(sp.cosh, sp.sinh) else exponent)
    found: defaultdict[tuple[sp.Expr, sp.Expr], sp.Expr] = defaultdict(lambda: sp.S.Zero)
    for term in sp.Add.make_args(sp.expand(y * sp.diff(far, y))):
        constant, moving = term.as_independent(y, as_Add=False)
        rate, power = sp.S.Zero, sp.S.Zero
        for factor in sp.Mul.make_args(moving):
            base, raised = factor.as_base_exp()
            if base == y and not raised.has(y):
                power += raised
            elif isinstance(factor, sp.exp) and not sp.expand(raised / y).has(y):
                rate += sp.expand(raised / y)
            elif factor != 1:
                return None
        found[rate, power] += constant
        if len(found) > _MOST_TERMS:
            return None
    terms = []
    for exact, coefficient in found.items():
        if coefficient != 0:
            size, rate, power = (real_ball(part) for part in (coefficient, *exact))
            terms.append(_Term(size, rate, power, exact))
            if terms[-1].coefficient.contains(0):
                return None  # whether it is there at all decides about the rest
    leads = [one for one in terms if all(o is one or _is_faster(one, o) for o in terms)]
    return Slope([*leads, *(one for one in terms if one is not leads[0])]) if leads else None


def _is_simple(node: sp.Expr, y: sp.Symbol) -> bool:
    """Whether a function of y may be part of such terms."""
    argument = node.args[0]
    if isinstance(node, sp.log):
        return not isinstance(argument, sp.Add)
    return isinstance(node, (sp.exp, sp.cosh, sp.sinh)) and bool(argument.is_polynomial(y))


def _is_faster(one: _Term, other: _Term) -> bool:
    if one.exact[0] == other.exact[0]:
        return bool(one.power > other.power)
    return bool(one.rate > other.rate)
