"""Whether a density with values has one mode: the sign of its slope, proved on cells.

The slope of log f is enclosed on cells between exact doubles, the first and the last of which may
be infinite: an operation on an interval is told by its values at the two ends, which may be limits.
Where the slope itself may vanish it is enough that it falls on the whole cell (it rises, then it
falls) or rises (then its ends decide). A cell on which f′ rises through 0 is a valley.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import sympy as sp
from flint import acb, arb, ctx

from symdp.density.breakpoints import Stretch, smooth_stretches
from symdp.density.modes import UnknownError, has_one_mode_always, has_valley, is_unimodal, jumps
from symdp.density.roots import RootsUnknownError
from symdp.emit.arb import OPERATIONS, constant
from symdp.emit.program import compile_program
from symdp.errors import InputError
from symdp.interrupt import attempt
from symdp.model import tidy
from symdp.model.mechanism import Mechanism
from symdp.model.pair import Support

_Sign = int | None
Interval = tuple[arb, arb]  # of real numbers, its ends without radius, infinite or not

_BITS = 100
_MOST_CELLS = 1_000
_MOST_HALVINGS = 48
_SHARE = 0.4877  # of a cell that is cut
_LONG = 150  # operations of an expression that is not put into factors
_SECONDS = 3.0  # for a density: what takes longer counts as not shown
_INFINITE = arb.pos_inf()
_WHOLE: Interval = (-_INFINITE, _INFINITE)
_ZERO = arb(0)


def has_one_mode(mechanism: Mechanism) -> bool:
    """Return whether additive noise with values is proved to have one mode; False: not shown."""
    if mechanism.template is not None and has_one_mode_always(mechanism):
        return True
    density = mechanism.source.density  # type: ignore[union-attr]
    return _has_one_mode(density, mechanism.variable, mechanism.support)


@lru_cache(maxsize=512)
def _has_one_mode(density: sp.Expr, x: sp.Symbol, support: Support) -> bool:
    if not density.free_symbols - {x}:
        found = attempt(lambda: _is_decided(density, x, support), None, _SECONDS)
        if found is not None:
            return found
    return is_unimodal(density, x, support)


def _is_decided(density: sp.Expr, x: sp.Symbol, support: Support) -> bool | None:
    """Return whether f rises, then falls; None where that is not told."""
    if x.is_integer:
        return None
    signs: list[int] = []
    try:
        with ctx.workprec(_BITS):
            found = smooth_stretches((density,), x, support.lower, support.upper)
            stretches = [_elementary(stretch, x) for stretch in found]
            for place, stretch in enumerate(stretches):
                if place:
                    signs += jumps(density, x, x, stretches[place - 1], stretch)
                # A mass may be an integral that takes long.
                f = stretch.expressions[0].as_independent(x, as_Add=False)[1]
                if x in f.free_symbols:
                    signs += _Slope(f, x, stretch.lower, stretch.upper).signs()
    except _ValleyError:
        return False
    except (InputError, RootsUnknownError, UnknownError):
        signs = [-1, 1]
    moving = [sign for sign in signs if sign]
    if moving == sorted(moving, reverse=True):
        return True
    return False if has_valley(density, x, support) else None


def _elementary(stretch: Stretch, x: sp.Symbol) -> Stretch:
    """Write K of order n + 1/2 as √(π/2z) e^{−z} Σ_k (n + k)!/(k! (n − k)! (2z)^k)."""
    size, sign = sp.Dummy(positive=True), -1 if stretch.upper.is_nonpositive else 1
    f, found = stretch.expressions[0].xreplace({x: sign * size}), {}
    for node in f.atoms(sp.besselk):
        (order, z), n = node.args, abs(node.args[0]) - sp.S.Half
        if order.is_Rational and n.is_Integer and n < _LONG:
            terms = (sp.ff(n + k, 2 * k) / sp.factorial(k) / (2 * z) ** k for k in range(n + 1))
            found[node] = sp.sqrt(sp.pi / (2 * z)) * sp.exp(-z) * sp.Add(*terms)
    if not found or not (sign < 0 or stretch.lower.is_nonnegative):
        return stretch
    written = sp.factor_terms(sp.expand(f.xreplace(found)))
    return replace(stretch, expressions=(written.xreplace({size: sign * x}),))


def _told(f: sp.Expr) -> sp.Expr:
    """Write what has a limit far out so that ranges do: π/2 + atan w, 1 ± erf w, w/√(1 + w²)."""
    found = {node: sp.tanh(node.args[0]) * sp.cosh(node.args[0]) for node in f.atoms(sp.sinh)}
    for node in f.atoms(sp.Add):
        rest = node - sp.pi / 2
        if isinstance(rest, sp.atan):
            found[node] = 2 * sp.atan(sp.exp(sp.asinh(rest.args[0]), evaluate=False))
        for sign in (1, -1):
            if isinstance(rest := sign * (node - 1), sp.erf):
                found[node] = sp.erfc(-sign * rest.args[0], evaluate=False)
    for node in f.atoms(sp.Mul):
        for root in node.args:
            inside = root.base - 1 if root.is_Pow and root.exp == -sp.S.Half else sp.S.Zero
            factor, square = sp.factor(inside).as_coeff_Mul()
            if square.is_Pow and square.exp == 2 and factor.is_positive:
                w = sp.sqrt(factor) * square.base
                ratio = tidy.cancel(node / root / w)
                if not ratio.free_symbols:
                    found[node] = ratio * sp.tanh(sp.asinh(w), evaluate=False)
    return f.xreplace(found)


def _log(f: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return log|f| up to a constant, as a sum over factors."""
    if x not in f.free_symbols:
        return sp.S.Zero
    if f.is_Mul:
        return sp.Add(*(_log(factor, x) for factor in f.args))
    if isinstance(f, sp.exp):
        return f.args[0]
    base, power = f.as_base_exp()
    if power == 1:
        return sp.log(f)
    return power * (sp.log(base) if x in power.free_symbols else _log(base, x))


class _ValleyError(Exception):
    """A density falls and rises again."""


class _Slope:
    """The slope of f on a stretch up to a positive factor, and how heights of this slope bend."""

    def __init__(self, f: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> None:
        # Of a place next to an end that is no double it is the distance that is exact.
        end = next((e for e in (lower, upper) if e.is_finite and not _is_exact(e)), sp.S.Zero)
        own = f.subs(x, x + end)
        self._ends = [acb(_end(e - end)).real for e in (lower, upper)]
        slopes = [sp.diff(height, x) for height in (_log(own, x), own)]
        self._addends = [
            ([Ranges(form, x) for form in _written(sp.diff(_log(one, x), x))], Ranges(one, x))
            for one in (own.args if own.is_Add else ())
        ]
        self._flat = [place for place, e in zip(self._ends, (lower, upper), strict=True)
                      if e.is_finite and slopes[1].subs(x, e - end) == 0]  # fmt: skip
        self._forms = [[Ranges(form, x) for form in _written(slope)] for slope in slopes]
        self._bends = [[Ranges(form, x) for form in _written(sp.diff(slope, x))]
                       for slope in slopes]  # fmt: skip

    def signs(self) -> list[int]:
        """Return the signs of the slope from left to right."""
        low, high = self._ends[0].lower(), self._ends[1].upper()
        waiting, found = [(low, high, 0)], []
        for _ in range(_MOST_CELLS):
            low, high, depth = waiting.pop()
            known = self._on_cell(low, high)
            if known is None:
                if depth == _MOST_HALVINGS:
                    break
                middle = _middle(low, high)
                waiting += [(middle, high, depth + 1), (low, middle, depth + 1)]
            else:
                found += known
            if not waiting:
                return found
        raise UnknownError

    def _on_cell(self, low: arb, high: arb) -> list[int] | None:
        """Return the signs on a cell, None where they are not told."""
        at_end = bool(low <= self._ends[0] or high >= self._ends[1])
        for forms, bends in zip(self._forms, self._bends, strict=True):
            smooth = False
            for form in forms:
                seen = Seen()
                sign = _sign(form(low, high, seen))
                if seen.is_smooth(at_end=at_end):
                    smooth = True
                    if sign is not None:
                        return [sign]
            turns = [_sign(bend(low, high, Seen())) for bend in bends if smooth]
            bend = next(filter(None, turns), None)
            if bend == -1 and low == -_INFINITE and high == _INFINITE:
                return [1, -1]  # nothing lies beyond
            known = self._flat if forms is self._forms[1] else []
            ends = [
                0 if e in known else _first(forms, e, e) if e.is_finite() else None
                for e in (low, high)
            ]
            found = None if bend is None else _bent(bend, *ends)
            if found is not None:
                return found
        # Where all addends rise, or fall, and none is negative, so does their sum.
        each = {
            _first(forms, low, high, at_end=at_end) if _first([height], low, high) == 1 else None
            for forms, height in self._addends
        }
        return [1] if each == {1} else [-1] if each == {-1} else None


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
        return None if first is None and last is None else [1, -1]
    if first in (1, 0):
        return [1]
    if last in (-1, 0):
        return [-1]
    if first == -1 and last == 1:
        raise _ValleyError
    return None


def _written(slope: sp.Expr) -> list[sp.Expr]:
    """Return the forms in which an expression is enclosed: as it is, and in factors."""
    slope = _told(slope)
    if slope.count_ops() > _LONG:
        return [slope]
    factored = attempt(lambda: sp.factor(sp.together(slope)), slope, _SECONDS / 20)
    return [slope] if factored == slope else [slope, factored]


def _is_exact(end: sp.Expr) -> bool:
    return bool(end.is_Rational and int(end.q) & (int(end.q) - 1) == 0 and abs(end.p) < 2**50)


def _end(end: sp.Expr) -> Any:
    if end.is_infinite:
        return _INFINITE if end is sp.oo else -_INFINITE
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
    return 1 if low >= 0 else -1 if high <= 0 else None


@dataclass
class Seen:
    """What an interval met on its way through a program.

    `crossed` says that 0 may lie inside of what was divided by or had its logarithm taken,
    `touched` that 0 is an end of it, and `folded` that such an end may belong to a place inside, as
    that of an even power.
    """

    crossed: bool = False
    touched: bool = False
    folded: bool = False

    def is_smooth(self, *, at_end: bool) -> bool:
        """Return whether there is no pole, but perhaps at an end of the support."""
        return not self.crossed and (not self.touched or (at_end and not self.folded))


class Ranges:
    """An expression as a function from intervals to intervals that hold its values there."""

    def __init__(self, expression: sp.Expr, x: sp.Symbol) -> None:
        self._program = compile_program(expression, [x])
        self._constants = [_of_ball(constant(node)) for node in self._program.constants]

    def __call__(self, low: arb, high: arb, seen: Seen) -> Interval:
        """Return the ends of values between two places, which may be infinite."""
        values: list[Interval] = [(low, high), *self._constants]
        for step in self._program.steps:
            operands = [values[slot] for slot in step.operands]
            values.append(_range(step.operation, step.detail, operands, seen))
        return values[self._program.result]


def _range(name: str, detail: Any, operands: list[Interval], seen: Seen) -> Interval:
    own = _OWN.get(name)
    found: Interval | None = None
    if own is not None:
        found = own(seen, detail, *operands)
    elif name in _RISING or name in _FALLING:
        found = _monotone(name, detail, operands, seen)
    elif all(low.is_finite() and high.is_finite() for low, high in operands):
        balls = [acb(low.union(high)) for low, high in operands]
        seen.folded = True
        found = _of_ball(OPERATIONS[name](detail, False, *balls))
    seen.crossed |= found is None
    return _WHOLE if found is None or found[0].is_nan() or found[1].is_nan() else found


def _of_ball(ball: Any) -> Interval:
    value = acb(ball)
    return (value.real.lower(), value.real.upper()) if value.imag.contains(0) else _WHOLE


def _limit(name: str, detail: Any, end: arb) -> arb:
    """Return a function's value, or its limit, at one end."""
    if end.is_finite():
        return acb(OPERATIONS[name](detail, False, acb(end))).real
    limits = _RISING.get(name) or _FALLING[name]
    return arb(limits[int(end > 0)])


def _monotone(name: str, detail: Any, operands: list[Interval], seen: Seen) -> Interval | None:
    ((low, high),) = operands
    domain = _DOMAINS.get(name)
    if domain is not None:
        seen.crossed |= bool(low < domain)
        seen.touched |= bool(low == domain)
        low, high = max(low, arb(domain)), max(high, arb(domain))
        if low == domain:
            first = -_INFINITE if name in ("log", "log1p") else _ZERO
            return first, _limit(name, detail, high).upper() if high > domain else first
    if name in _FALLING:
        low, high = high, low
    return _limit(name, detail, low).lower(), _limit(name, detail, high).upper()


def _sum(_seen: Seen, _: Any, *terms: Interval) -> Interval:
    low, high = _ZERO, _ZERO
    for one in terms:
        low = -_INFINITE if -_INFINITE in (low, one[0]) else (low + one[0]).lower()
        high = _INFINITE if _INFINITE in (high, one[1]) else (high + one[1]).upper()
    return low, high


def _product(_seen: Seen, _: Any, *factors: Interval) -> Interval:
    low = high = arb(1)
    for one in factors:
        ends = [_ZERO if 0 in (a, b) else a * b for a in (low, high) for b in one]
        low, high = _least(e.lower() for e in ends), -_least((-e).lower() for e in ends)
    return low, high


def _least(values: Iterator[arb]) -> arb:
    found = list(values)
    if any(value.is_nan() for value in found):
        return -_INFINITE
    least = found[0]
    for value in found[1:]:
        least = value if value < least else least
    return least


def _reciprocal(seen: Seen, values: Interval) -> Interval:
    low, high = values
    seen.touched |= bool(low == 0 or high == 0)
    if low >= 0:
        return _inverse(high, _ZERO).lower(), _inverse(low, _INFINITE).upper()
    if high <= 0:
        return _inverse(high, -_INFINITE).lower(), _inverse(low, _ZERO).upper()
    seen.crossed = True
    return _WHOLE


def _inverse(end: arb, otherwise: arb) -> arb:
    """Return 1/end; of an infinite end 0, of 0 the infinity of its side."""
    if not end.is_finite():
        return _ZERO
    return otherwise if end == 0 else 1 / end


def _integer_power(seen: Seen, exponent: int, base: Interval) -> Interval:
    if exponent < 0:
        return _reciprocal(seen, _integer_power(seen, -exponent, base))
    low, high = base
    if exponent % 2 == 0:
        low, high = _absolute(seen, None, base)
    return (low**exponent).lower() if low.is_finite() else low, (
        (high**exponent).upper() if high.is_finite() else high
    )


def _power(seen: Seen, _: Any, base: Interval, exponent: Interval) -> Interval:
    low, high = exponent
    if base[0] < 0 or not (low.is_finite() and high.is_finite()):
        seen.crossed = True
        return _WHOLE
    logarithm = _range("log", None, [base], seen)
    return _range("exp", None, [_product(seen, None, exponent, logarithm)], seen)


def _absolute(seen: Seen, _: Any, values: Interval) -> Interval:
    low, high = values
    if low >= 0:
        return low, high
    if high <= 0:
        return -high, -low
    return _ZERO, high if high > -low else -low


def _even(name: str) -> Callable[..., Interval]:
    """Return the ranges of a function that is even and rises in |x|."""

    def function(seen: Seen, detail: Any, values: Interval) -> Interval:
        low, high = _absolute(seen, None, values)
        ends = [
            acb(OPERATIONS[name](detail, False, acb(end))).real if end.is_finite() else _INFINITE
            for end in (low, high)
        ]
        return ends[0].lower(), ends[1].upper()

    return function


def _wave(name: str) -> Callable[..., Interval]:
    def function(seen: Seen, detail: Any, values: Interval) -> Interval:
        low, high = values
        seen.folded = True
        if not (low.is_finite() and high.is_finite()) or high - low > 4:
            return arb(-1), arb(1)
        return _of_ball(OPERATIONS[name](detail, False, acb(low.union(high))))

    return function


def _log_sum(name: str) -> Callable[..., Interval | None]:
    """Log Σ c e^a rises with every a, and with every c, where no c is negative."""

    def function(_seen: Seen, detail: Any, *arguments: Interval) -> Interval | None:
        if any(low < 0 for low, _ in arguments[::2]):
            return None
        ends = []
        for which in (0, 1):
            chosen = [one[which] for one in arguments]
            if any(not end.is_finite() for end in chosen):
                ends.append(_INFINITE if _INFINITE in chosen else None)
                continue
            ends.append(acb(OPERATIONS[name](detail, False, *map(acb, chosen))).real)
        low = -_INFINITE if ends[0] is None else ends[0].lower()
        return None if ends[1] is None else (low, ends[1].upper())

    return function


# Functions that rise, and those that fall, with limits at −∞ and ∞ on the safe side.
_RISING = {
    "exp": (0.0, float("inf")),
    "expm1": (-1.0, float("inf")),
    "log": (float("-inf"), float("inf")),
    "log1p": (float("-inf"), float("inf")),
    "sqrt": (0.0, float("inf")),
    "erf": (-1.0, 1.0),
    "erfi": (float("-inf"), float("inf")),
    "tanh": (-1.0, 1.0),
    "atan": (-1.5707963267948968, 1.5707963267948968),
    "sinh": (float("-inf"), float("inf")),
    "asinh": (float("-inf"), float("inf")),
}
_FALLING = {"erfc": (2.0, 0.0), "log_erfc": (0.6931471805599454, float("-inf"))}
_DOMAINS = {"log": 0, "sqrt": 0, "log1p": -1}
_OWN: dict[str, Callable[..., Interval | None]] = {
    "add": _sum,
    "mul": _product,
    "integer_power": _integer_power,
    "power": _power,
    "abs": _absolute,
    "cosh": _even("cosh"),
    "sin": _wave("sin"),
    "cos": _wave("cos"),
    "log_sum_exp": _log_sum("log_sum_exp"),
    "unit_log_sum_exp": _log_sum("unit_log_sum_exp"),
}
