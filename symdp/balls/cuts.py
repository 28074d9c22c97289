"""Where to cut an unbounded integral of e^g, with a proved bound of what lies beyond.

One bound of the slope is enough.  With y the distance from 0,

    g′(y) ≤ −s for y ≥ Y,  so  ∫_Y^∞ e^g dy ≤ e^{g(Y)}/s,

and the slope is enclosed on [Y, ∞) by the values of its parts at both ends, which may be limits.
What falls more slowly than an exponential is bounded on shells that reach the end of the double
range, each by what ball arithmetic finds on it (see `emit.enclose`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, reduce

import sympy as sp
from flint import arb

from symdp.density.normal_form import waves_are_plain
from symdp.density.records import DISTANCE
from symdp.density.signs import sign_of
from symdp.emit.arb import compile_arb
from symdp.emit.enclose import find_cut
from symdp.emit.ranges import Ranges, Seen
from symdp.errors import AccuracyError, InputError
from symdp.model import tidy

_FARTHEST = 64  # doublings of a place: a slope that is steep is so before
_MOST_PARTS = 16  # of an exponential taken apart
_FAR = 1000  # a place that orders terms by size


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
    other end is None where it is infinite.  Of a sum over the integers the first one is added.
    """
    begin = arb(1)
    if other is not None:
        begin = abs(other).upper() + 1
    begin = arb(begin.upper())
    with suppress(AccuracyError):
        parts: list[tuple[_Slope, int]] = []
        for exponent in exponents:
            parts += _far_out(exponent)
        cuts = [part.cut(begin.max(arb(least)), tolerance, whole) for part, least in parts]
        if cuts:
            distance = reduce(arb.max, (cut for cut, _ in cuts))
            total = sum((mass for _, mass in cuts), arb(0))
            return direction * distance.mid(), total
    distance, mass = find_cut(magnitude, begin, direction, tolerance, per_integer=whole)
    return direction * distance.mid(), mass


class _Slope:
    """e^g far out, and g′ as it is and as its fastest term times a sum."""

    def __init__(self, exponent: sp.Expr) -> None:
        self._height = compile_arb(exponent, [DISTANCE])
        self._forms = list[Ranges]()
        if not waves_are_plain(exponent, DISTANCE):  # tan, of an interval's end mapped to ∞
            return
        slope = sp.expand(sp.diff(tidy.without_hyperbolics(exponent), DISTANCE))
        terms = sp.Add.make_args(slope)
        lead = max(terms, key=_log_size)
        with suppress(InputError):  # of a function that has no intervals
            ratios = [sp.powsimp(term / lead, combine="exp") for term in terms]
            inner = (
                ratio.replace(sp.exp, lambda a: sp.exp(sp.collect(a.expand(), DISTANCE)))
                for ratio in ratios
            )
            for form in dict.fromkeys((slope, lead * sp.Add(*inner))):
                self._forms.append(Ranges(form, DISTANCE))

    def cut(self, begin: arb, tolerance: arb, whole: bool) -> tuple[arb, arb]:
        """Return Y and a bound of what e^g has beyond it below a tolerance."""
        for doublings in range(_FARTHEST):
            distance = (begin * 2**doublings).upper()
            for form in self._forms:
                seen = Seen()
                steepest = form(distance, arb.pos_inf(), seen)[1]
                if not steepest < 0 or not seen.is_smooth(at_end=False):
                    continue
                width = 1 / abs(steepest)
                if whole:
                    width += 1
                bound = self._height(distance).exp() * width
                if bound < tolerance:
                    return distance, arb(bound.upper())
        height = self._height
        return find_cut(lambda y: arb(height(y).exp()), begin, 1, tolerance, per_integer=whole)


@lru_cache(maxsize=512)
def _far_out(exponent: sp.Expr) -> tuple[tuple[_Slope, int], ...]:
    """Return gᵢ with e^g ≤ Σ e^{gᵢ}, and from where on that holds.

    Of N sums that are not negative, (Σ sᵢ)^c ≤ N^{max(c − 1, 0)} Σ sᵢ^c where c > 0, and
    (Σ sᵢ)^c ≤ sⱼ^c for any j where c < 0; erfc(z) ≤ e^{−z²} where z ≥ 0 [DLMF 7.8.3, at its end].
    """
    waiting = [_spread(exponent)]
    least = 1
    settled: list[sp.Expr] = []
    while waiting:
        whole = waiting.pop()
        for term in sp.Add.make_args(whole):
            constant, moving = term.as_independent(DISTANCE, as_Add=False)
            inside = sp.S.Zero
            if isinstance(moving, sp.log):
                inside = moving.args[0]
            if isinstance(inside, sp.Abs):
                inside = inside.args[0]
            summands = sp.Add.make_args(inside)
            bounds: list[sp.Expr] = []
            if len(summands) > 1 and all(s.is_nonnegative for s in summands):
                may_split = len(waiting) + len(settled) < _MOST_PARTS
                if constant.is_negative:
                    largest = max(summands, key=_log_size)
                    bounds = [constant * sp.log(largest)]
                elif constant.is_positive and may_split:
                    front = sp.Max(constant - 1, 0) * sp.log(len(summands))
                    bounds = [front + constant * sp.log(summand) for summand in summands]
            elif isinstance(inside, sp.erfc) and constant.is_positive:
                z = sp.expand(inside.args[0])
                rate = z.coeff(DISTANCE, 1)
                start = z.coeff(DISTANCE, 0)
                if rate.is_positive and z == rate * DISTANCE + start:
                    bounds = [-constant * z**2]
                    positive_from = int(sp.ceiling(-start / rate))
                    least = max(least, positive_from)
            if bounds:
                remaining = whole - term
                waiting += [_spread(remaining + bound) for bound in bounds]
                break
        else:
            settled.append(whole)
    return tuple((_Slope(far), least) for far in settled)


def _spread(exponent: sp.Expr) -> sp.Expr:
    """Return a sum of logarithms; `expand_log` raises long fractions to powers first.

    Constants such as cos 2 stay names meanwhile, as SymPy takes them for algebraic generators.
    """
    names = {node: _named(node) for node in _constants(exponent)}
    exponent = exponent.xreplace(names)
    hints = dict.fromkeys(("mul", "power_exp", "power_base", "multinomial", "basic"), False)
    expanded = exponent.expand(log=True, force=True, **hints)
    return expanded.xreplace({name: node for node, name in names.items()})


def _constants(expression: sp.Expr) -> list[sp.Expr]:
    return [node for node in expression.atoms(sp.Function) if not node.free_symbols]


def _named(constant: sp.Expr) -> sp.Dummy:
    """Return a symbol of the sign of a constant."""
    sign = sign_of(constant)
    return sp.Dummy(real=True, positive=sign == 1 or None, negative=sign == -1 or None)


def _log_size(term: sp.Expr) -> float:
    """Return about the logarithm of a term far out, which decides about sharpness alone."""
    term = term.xreplace({node: node.evalf(15) for node in _constants(term)})
    constant, moving = term.as_independent(DISTANCE, as_Add=False)
    value = _spread(sp.log(abs(constant)) + sp.log(moving))
    with suppress(OverflowError):  # mpmath's erfc has no value there
        value = value.subs(DISTANCE, sp.Float(_FAR)).evalf(15)  # SymPy sums Γ′ at integers
        if value.is_real and value.is_finite:
            return float(value)
    return -1e300
