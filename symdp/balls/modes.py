"""Whether a density with values has one mode: the sign of its slope, proved on cells.

The slope of log f is enclosed on cells between exact doubles, the first and the last of which may
be infinite: an operation on an interval is told by its values at the two ends, which may be limits.
Where the slope itself may vanish it is enough that it falls on the whole cell (it rises, then it
falls) or rises (then its ends decide). A cell on which f′ rises through 0 is a valley.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import sympy as sp
from flint import acb, arb, ctx

from symdp.density.breakpoints import Stretch, smooth_stretches
from symdp.density.modes import UnknownError, has_one_mode_always, has_valley, is_unimodal, jumps
from symdp.density.roots import RootsUnknownError
from symdp.emit.arb import constant
from symdp.emit.ranges import Interval, Ranges, Seen
from symdp.errors import InputError
from symdp.interrupt import attempt
from symdp.model import tidy
from symdp.model.mechanism import Mechanism
from symdp.model.pair import Support

_Sign = int | None
_BITS = 100
_MOST_CELLS = 1_000
_MOST_HALVINGS = 48
_SHARE = 0.4877  # of a cell that is cut
_LONG = 150  # operations of an expression that is not put into factors
_SECONDS = 3.0  # for a density: what takes longer counts as not shown
_INFINITE = arb.pos_inf()


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
