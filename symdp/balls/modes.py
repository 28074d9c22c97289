"""Whether a density has one mode: at given values by the sign of its slope, proved on cells.

It does not rise away from it then, on either side, and the largest shift is the worst of all
smaller ones, whatever the density's symmetry and tails: for A = {f(x − d) > αf(x)}, which lies
above the mode, and d′ ≥ d, the test A + (d′ − d) has at least the divergence of A.

The slope of log f is enclosed on cells between exact doubles, the first and the last of which may
be infinite: an operation on an interval is told by its values at the two ends, which may be limits.
Where the slope itself may vanish it is enough that it falls on the whole cell (it rises, then it
falls) or rises (then its ends decide). A cell on which f′ rises through 0 is a valley. Nothing is
told on a cell where something that f is divided by may vanish inside: atan(1/x) falls on both sides
of 0, where it jumps up, and of its slope −1/(1 + x²) nothing is seen there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import sympy as sp
from flint import acb, arb, ctx

from symdp.density.breakpoints import Stretch, smooth_stretches
from symdp.density.gammas import COUNTING, reduced, with_ends
from symdp.density.roots import RootsUnknownError
from symdp.density.shapes import shape_of
from symdp.density.signs import sign_of
from symdp.density.turning import trend
from symdp.emit.arb import compile_arb, constant
from symdp.emit.mass import names_of_masses
from symdp.emit.ranges import Interval, Ranges, Seen
from symdp.errors import InputError
from symdp.interrupt import attempt
from symdp.model import tidy
from symdp.model.fact import AUTHOR, BALLS, OPEN, VALUES, Fact
from symdp.model.mechanism import Mechanism
from symdp.model.pair import Support

_Sign = int | None
_BITS = 100
_MOST_CELLS = 1_000
_MOST_HALVINGS = 48
_SHARE = 0.4877  # of a cell that is cut
_MOST_MASSES = 4_000  # of a law on integers that is looked at value by value
_LONG = 150  # operations of an expression that is not put into factors
_SECONDS = 3.0  # for a density: what takes longer counts as not shown
_POLES = {
    (sp.tan, sp.sec): sp.cos,
    (sp.cot, sp.csc): sp.sin,
    (sp.coth, sp.csch): sp.sinh,
}
_INFINITE = arb.pos_inf()
_ZERO = arb(0)


def one_mode(mechanism: Mechanism) -> Fact:
    """Return whether additive noise has one mode: by a rule, by balls or by its author's word.

    InputError where values contradict the author.
    """
    fact = one_mode_always(mechanism)
    if fact:
        return fact
    density = mechanism.source.density  # type: ignore[union-attr]
    x = mechanism.variable
    support = mechanism.support
    if mechanism.template:
        fact = shape_of(density, x, support).one_mode
    fact = fact or _by_balls(density, x, support)
    if fact or mechanism.modes is None:
        return fact
    if fact.value is False:
        raise InputError(
            f"{mechanism.summary}: modes = 1 says that its noise has one mode, and {fact.reason}; "
            "leave modes out"
        )
    return Fact(True, AUTHOR, f"its author says so; {fact.reason}")


def one_mode_always(mechanism: Mechanism) -> Fact:
    """Return whether a rule shows one mode for all values of the parameters."""
    shape = mechanism.shipped_shape
    if shape is not None:
        return shape.one_mode
    form = mechanism.template or mechanism
    density = form.source.density  # type: ignore[union-attr]
    return shape_of(density, form.variable, form.support).one_mode


@lru_cache(maxsize=512)
def _by_balls(density: sp.Expr, x: sp.Symbol, support: Support) -> Fact:
    from symdp.density.second_look import SecondLook

    if density.free_symbols - {x}:
        return Fact(None, OPEN, "no rule shows it for all values of the parameters")
    valley = SecondLook(density, x, support).against_one_mode()
    if valley is not None:  # to look for a proof is in vain
        return Fact(False, VALUES, f"it falls and rises again at {valley}")
    verdict = attempt(lambda: _is_decided(density, x, support), None, _SECONDS)
    if verdict:
        return Fact(True, BALLS, "balls enclose the signs of its slope on cells")
    if verdict is False:
        return Fact(False, BALLS, "balls show that it falls and rises again")
    return Fact(None, OPEN, "no rule shows it, and the signs of its slope were not enclosed")


def _is_decided(density: sp.Expr, x: sp.Symbol, support: Support) -> bool | None:
    """Return whether f rises, then falls; None where that is not told."""
    powers = density.atoms(sp.Pow)
    if any(x in power.exp.free_symbols and not power.base.is_positive for power in powers):
        return None  # (−1)^k is real at whole numbers alone
    named = density.xreplace(names_of_masses([density]))
    y = x
    body = named
    if x.is_integer:  # what falls between whole numbers falls from one to the next
        y = sp.Symbol(x.name, real=True)
        body = with_ends(named, x, support.lower, support.upper).xreplace({x: y})
    signs: list[int] = []
    z = sp.Dummy("z", real=True)
    try:
        with ctx.workprec(_BITS):
            smooth = smooth_stretches((body,), y, support.lower, support.upper)
            stretches = [_elementary(stretch, y) for stretch in smooth]
            for index, stretch in enumerate(stretches):
                if index:
                    signs += _jumps(named, x, y, stretches[index - 1], stretch)
                f = _up_to_a_positive_factor(stretch.expressions[0], y)
                if isinstance(f, sp.besseli) and y not in f.args[1].free_symbols:
                    signs.append(_order_slope(f, stretch, y))
                elif y in f.free_symbols and stretch.upper.is_nonpositive:
                    turned = _Slope(f.xreplace({y: -z}), z, -stretch.upper, -stretch.lower).signs()
                    signs += [-sign for sign in reversed(turned)]
                elif y in f.free_symbols:
                    signs += _Slope(f, y, stretch.lower, stretch.upper).signs()
    except _ValleyError:
        return False
    except (InputError, RootsUnknownError, _UnknownError):
        signs = [-1, 1]
    moving = [sign for sign in signs if sign]
    if moving == sorted(moving, reverse=True):
        return True
    return _values_rise_once(density, x, support)


def _up_to_a_positive_factor(f: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return f without its constant factor, whose sign stays."""
    factor, shape = f.as_independent(x, as_Add=False)
    sign = sign_of(factor)
    if sign is None:
        raise _UnknownError
    return sign * shape


def _elementary(stretch: Stretch, x: sp.Symbol) -> Stretch:
    """Write K of order n + 1/2 as √(π/2z) e^{−z} Σ_k (n + k)!/(k! (n − k)! (2z)^k)."""
    size = sp.Dummy(positive=True)
    sign = 1
    if stretch.upper.is_nonpositive:
        sign = -1
    f = stretch.expressions[0].xreplace({x: sign * size})
    replacements = {}
    for node in f.atoms(sp.besselk):
        order, z = node.args
        n = abs(order) - sp.S.Half
        if order.is_Rational and n.is_Integer and n < _LONG:
            terms = []
            for k in range(n + 1):
                ways = sp.ff(n + k, 2 * k) / sp.factorial(k)
                terms.append(ways / (2 * z) ** k)
            decay = sp.sqrt(sp.pi / (2 * z)) * sp.exp(-z)
            replacements[node] = decay * sp.Add(*terms)
    is_one_sided = sign < 0 or stretch.lower.is_nonnegative
    if not replacements or not is_one_sided:
        return stretch
    expanded = sp.expand(f.xreplace(replacements))
    written = sp.factor_terms(expanded).xreplace({size: sign * x})
    return replace(stretch, expressions=(written,))


def _with_visible_limits(f: sp.Expr) -> sp.Expr:
    """Write what has a limit far out so that ranges do: π/2 + atan w, 1 ± erf w, w/√(1 + w²)."""
    replacements = {}
    for node in f.atoms(sp.sinh):
        (argument,) = node.args
        replacements[node] = sp.tanh(argument) * sp.cosh(argument)
    for node in f.atoms(sp.Add):
        for sign in (1, -1):
            arctangent = sign * (node - sp.pi / 2)
            if isinstance(arctangent, sp.atan):
                (argument,) = arctangent.args
                exponential = sp.exp(sp.asinh(sign * argument), evaluate=False)
                replacements[node] = 2 * sp.atan(exponential)
            error_function = sign * (node - 1)
            if isinstance(error_function, sp.erf):
                (argument,) = error_function.args
                replacements[node] = sp.erfc(-sign * argument, evaluate=False)
    for node in f.atoms(sp.Mul):
        for root in node.args:
            if not root.is_Pow or root.exp != -sp.S.Half:
                continue
            factored = tidy.bounded(sp.factor, root.base - 1)
            factor, square = factored.as_coeff_Mul()
            if square.is_Pow and square.exp == 2 and factor.is_positive:
                w = sp.sqrt(factor) * square.base
                ratio = tidy.cancel(node / root / w)
                if not ratio.free_symbols:
                    replacements[node] = ratio * sp.tanh(sp.asinh(w), evaluate=False)
    return f.xreplace(replacements)


def _log_over_factors(f: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return log|f| up to a constant, as a sum over factors."""
    if x not in f.free_symbols:
        return sp.S.Zero
    if f.is_Mul:
        return sp.Add(*(_log_over_factors(factor, x) for factor in f.args))
    if isinstance(f, sp.exp):
        return f.args[0]
    base, power = f.as_base_exp()
    if power == 1:
        return sp.log(f)
    return power * (sp.log(base) if x in power.free_symbols else _log_over_factors(base, x))


class _ValleyError(Exception):
    """A density falls and rises again."""


class _UnknownError(Exception):
    """A sign is open."""


class _Slope:
    """The slope of f on a stretch up to a positive factor, and how heights of this slope bend."""

    def __init__(self, f: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> None:
        # Of a place next to an end that is no double it is the distance that is exact.
        end = next((e for e in (lower, upper) if e.is_finite and not _is_exact(e)), sp.S.Zero)
        shifted = f.subs(x, x + end)
        is_counting = shifted.has(*COUNTING)
        self._ends = [acb(_ball_of_end(e - end)).real for e in (lower, upper)]
        if is_counting:  # f(k + 1)/f(k) − 1, which is rational
            following = shifted.subs(x, x + 1)
            slope = reduced(sp.powsimp(following / shifted), x) - 1
            slopes = [slope, slope]
            if slope.has(*COUNTING):
                raise _UnknownError
        else:
            log_slope = sp.diff(_log_over_factors(shifted, x), x)
            slopes = [log_slope, sp.diff(shifted, x)]
        self._divisors = [Ranges(divisor, x) for divisor in _divisors(shifted, x)]
        self._addends = []
        if shifted.is_Add and not is_counting:
            for addend in shifted.args:
                log_slope = sp.diff(_log_over_factors(addend, x), x)
                forms = [Ranges(form, x) for form in _forms_of(log_slope)]
                self._addends.append((forms, Ranges(addend, x)))
        self._flat = []
        for end_ball, e in zip(self._ends, (lower, upper), strict=True):
            if e.is_finite and slopes[1].subs(x, e - end) == 0:
                self._flat.append(end_ball)
        self._forms = []
        self._bends = []
        for slope in slopes:
            bend = sp.diff(slope, x)
            self._forms.append([Ranges(form, x) for form in _forms_of(slope)])
            self._bends.append([Ranges(form, x) for form in _forms_of(bend)])
        self._slopes = slopes
        self._x = x

    def signs(self) -> list[int]:
        """Return the signs of the slope from left to right."""
        low = self._ends[0].lower()
        high = self._ends[1].upper()
        waiting = [(low, high, 0)]
        signs: list[int] = []
        for _ in range(_MOST_CELLS):
            low, high, depth = waiting.pop()
            cell_signs = self._on_cell(low, high)
            if cell_signs is None:
                if depth == _MOST_HALVINGS:
                    break
                middle = _middle(low, high)
                waiting += [(middle, high, depth + 1), (low, middle, depth + 1)]
            else:
                signs += cell_signs
            if not waiting:
                return signs
        raise _UnknownError

    def _on_cell(self, low: arb, high: arb) -> list[int] | None:
        """Return the signs on a cell, None where they are not told."""
        inner = [edge for edge in (low, high) if self._ends[0] < edge < self._ends[1]]
        for divisor in self._divisors:
            if _may_vanish_inside(divisor, low, high):
                return None
            if any(_may_be_zero(divisor, edge, edge) for edge in inner):
                return None
        for forms, bends in zip(self._forms, self._bends, strict=True):
            smooth = False
            for form in forms:
                seen = Seen()
                sign = _sign(form(low, high, seen))
                if seen.is_smooth(at_end=True):
                    smooth = True
                    if sign is not None:
                        return [sign]
            turns = [_sign(bend(low, high, Seen())) for bend in bends if smooth]
            bend = next(filter(None, turns), None)
            if bend == -1 and low == -_INFINITE and high == _INFINITE:
                return [1, -1]  # nothing lies beyond
            flat_ends = self._flat if forms is self._forms[1] else []
            ends = [
                0 if e in flat_ends else _first(forms, e, e) if e.is_finite() else None
                for e in (low, high)
            ]
            bent_signs = None if bend is None else _bent(bend, *ends)
            if bent_signs is not None:
                return bent_signs
        # Where all addends rise, or fall, and none is negative, so does their sum.
        addend_signs = {
            _first(forms, low, high, at_end=True) if _first([height], low, high) == 1 else None
            for forms, height in self._addends
        }
        if addend_signs not in ({1}, {-1}):
            far = self._far_out(low, high)
            if far is None:
                return None
            return [far]
        if addend_signs == {1}:
            return [1]
        return [-1]

    def _far_out(self, low: arb, high: arb) -> _Sign:
        """Return the sign on a cell up to infinity, where terms that cancel are told in 1/x."""
        side = -1
        near = -high
        far = -low
        if high == _INFINITE:
            side = 1
            near = low
            far = high
        is_far_out = near > 0 and near.is_finite() and far == _INFINITE
        if not is_far_out:
            return None
        inverse = (1 / near).upper()
        return _first(self._inverted(side), _ZERO, inverse, at_end=True)

    @lru_cache(maxsize=2)  # noqa: B019 (of one decision)
    def _inverted(self, side: int) -> list[Ranges]:
        w = sp.Dummy("w", positive=True)
        return [
            Ranges(form, w)
            for slope in self._slopes
            for form in _forms_of(sp.powdenest(slope.subs(self._x, side / w)))
        ]


def _divisors(f: sp.Expr, x: sp.Symbol) -> set[sp.Expr]:
    """Return what f is divided by; where none of them vanishes f has no pole and no jump."""
    divisors = {power.base for power in f.atoms(sp.Pow) if not power.exp.is_nonnegative}
    for functions, divisor in _POLES.items():
        divisors |= {divisor(*node.args) for node in f.atoms(*functions)}
    return {divisor for divisor in divisors if x in divisor.free_symbols}


def _may_be_zero(divisor: Ranges, low: arb, high: arb) -> bool:
    """Whether a divisor may be 0 on a cell or at its ends."""
    least, largest = divisor(low, high, Seen())
    return not (least > 0 or largest < 0)


def _may_vanish_inside(divisor: Ranges, low: arb, high: arb) -> bool:
    """Whether a divisor may be 0 on a cell elsewhere than at its ends."""
    seen = Seen()
    least, largest = divisor(low, high, seen)
    has_one_sign = least >= 0 or largest <= 0
    return not has_one_sign or (seen.folded and _may_be_zero(divisor, low, high))


def _first(forms: list[Ranges], low: arb, high: arb, *, at_end: bool = False) -> _Sign:
    """Return the sign on a cell, or at a place, that a form tells; None where none does."""
    for form in forms:
        seen = Seen()
        sign = _sign(form(low, high, seen))
        if sign is not None and seen.is_smooth(at_end=at_end):
            return sign
    return None


def _bent(bend: int, first: _Sign, last: _Sign) -> list[int] | None:
    """Return the signs of a slope that falls or rises on a cell, None where they are open."""
    if bend < 0:
        if first in (-1, 0):
            return [-1]
        if last in (1, 0):
            return [1]
        if first is None and last is None:
            return None
        return [1, -1]
    if first in (1, 0):
        return [1]
    if last in (-1, 0):
        return [-1]
    if first == -1 and last == 1:
        raise _ValleyError
    return None


def _factored(slope: sp.Expr) -> sp.Expr:
    return tidy.bounded(sp.factor, tidy.bounded(sp.together, slope))


def _forms_of(slope: sp.Expr) -> list[sp.Expr]:
    """Return the forms in which an expression is enclosed: as it is, and in factors."""
    slope = _with_visible_limits(slope)
    if slope.count_ops() > _LONG:
        return [slope]
    factored = attempt(lambda: tidy.bounded(_factored, slope), slope, _SECONDS / 20)
    if factored == slope:
        return [slope]
    return [slope, factored]


def _is_exact(end: sp.Expr) -> bool:
    return bool(end.is_Rational and int(end.q) & (int(end.q) - 1) == 0 and abs(end.p) < 2**50)


def _ball_of_end(end: sp.Expr) -> Any:
    if end.is_infinite:
        if end is sp.oo:
            return _INFINITE
        return -_INFINITE
    return constant(end)


def _middle(low: arb, high: arb) -> arb:
    """Return a double inside, twice as far out where the other end is infinite.

    A mode is at round places, where the sign of the slope is not told: those are avoided.
    """
    if low.is_finite() and high.is_finite():
        return arb((low + (high - low) * _SHARE).mid())
    if not (low.is_finite() or high.is_finite()):
        return arb(_SHARE)
    side, near = (1, low) if low.is_finite() else (-1, -high)
    away = float(near)
    return arb(side * (2.0 * away if away >= 1.0 else max(1.0, -away)))


def _sign(values: Interval) -> int | None:
    """Return the sign that all values have, 0 included; 0 of 0 alone."""
    low, high = values
    if low == 0 and high == 0:
        return 0
    if low >= 0:
        return 1
    if high <= 0:
        return -1
    return None


def _values_rise_once(density: sp.Expr, x: sp.Symbol, support: Support) -> bool | None:
    """Whether balls around all masses of finitely many integers rise, then fall; ties are exact."""
    if not x.is_integer or density.free_symbols - {x}:
        return None
    masses: dict[int, sp.Expr] = {}
    try:
        for stretch in smooth_stretches((density,), x, support.lower, support.upper):
            (expression,) = stretch.expressions
            is_finite = stretch.lower.is_finite and stretch.upper.is_finite
            if expression != 0 and not is_finite:
                return None
            if stretch.is_point:
                masses[int(stretch.lower)] = expression
            elif expression != 0:
                first = int(sp.ceiling(stretch.lower))
                last = min(int(sp.floor(stretch.upper)), first + _MOST_MASSES)
                for k in range(first, last + 1):
                    if stretch.lower < k < stretch.upper or k not in masses:
                        masses[k] = expression
        if not 0 < len(masses) < _MOST_MASSES:
            return None
        expressions = set(masses.values())
        functions = {expression: compile_arb(expression, [x]) for expression in expressions}
    except (InputError, ValueError):
        return None
    places = range(min(masses), max(masses) + 1)
    with ctx.workprec(2 * _BITS):
        balls = [functions[masses[k]](arb(k)) if k in masses else arb(0) for k in places]
        gaps = [right - left for left, right in pairwise(balls)]
    turns = []
    for k, gap in zip(places, gaps, strict=False):
        if not (gap > 0 or gap < 0):
            low = masses.get(k, sp.S.Zero).subs(x, k)
            high = masses.get(k + 1, sp.S.Zero).subs(x, k + 1)
            if low != high:
                return None
        turns.append(int(gap > 0) - int(gap < 0))
    moving = [turn for turn in turns if turn]
    return moving == sorted(moving, reverse=True)


def _order_slope(bessel: sp.Expr, stretch: Stretch, x: sp.Symbol) -> int:
    """Return the sign of the slope of I_ν(z) in ν ≥ 0, z > 0: it falls [DLMF 10.37]."""
    order, argument = bessel.args
    direction = trend(order, x, stretch.lower, stretch.upper)
    least = order.subs(x, stretch.lower if direction == 1 else stretch.upper)
    if direction is None or not argument.is_positive or (sign_of(least) or 0) < 0:
        raise _UnknownError
    return -direction


def _jumps(
    density: sp.Expr, x: sp.Symbol, y: sp.Symbol, before: Stretch, after: Stretch
) -> list[int]:
    """Return the signs of the jumps at a kink; that of an integer has a value of its own."""
    kink = after.lower
    heights = [before.expressions[0].subs(y, kink), after.expressions[0].subs(y, kink)]
    if x.is_integer and kink.is_integer is not False:
        heights.insert(1, density.subs(x, kink))
    return [_sign_of_jump(low, high) for low, high in pairwise(heights)]


def _sign_of_jump(low: sp.Expr, high: sp.Expr) -> int:
    infinite = [bool(height.has(sp.oo, -sp.oo, sp.zoo)) for height in (low, high)]
    if any(infinite):
        return int(infinite[1]) - int(infinite[0])
    if 0 in (low, high):  # no density is below 0
        return int(high != 0) - int(low != 0)
    gap = high - low
    sign = 0 if gap == 0 else sign_of(gap)
    if sign is None and tidy.simplify(gap) != 0:
        raise _UnknownError
    return sign or 0
