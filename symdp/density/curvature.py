"""How an expression of one variable runs on an interval: its bounds, its slope, its bend.

Everything follows from the way in which the expression is built, as in disciplined convex
programming: a sum of convex terms is convex, a rising convex function of a convex one is convex, a
product of positive falling factors falls. `log_bend` asks the same of log f: a product of
log-concave factors is log-concave, a sum of log-convex ones is log-convex. What no rule shows is
open. Parameters keep their symbols; their signs are those of their domains.

Sources: Boyd and Vandenberghe, Convex Optimization, 3.2, 3.5; DLMF 10.32.9 (K_ν is a mixture of
exponentials, so log-convex), 10.29.4 (z^ν K_ν falls), 5.5 (log Γ is convex).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from symdp.density.signs import sign_of
from symdp.model import tidy
from symdp.model.assumption import released

_LONGEST_BOUND = 40  # operations of a bound that is kept as an expression


@dataclass(frozen=True)
class Run:
    """What is known of an expression on an interval."""

    low: sp.Expr  # its values lie between these, −∞ and ∞ where no bound is known
    high: sp.Expr
    slope: int | None  # 1: it does not fall, −1: it does not rise, 0: constant, None: open
    bend: int | None  # 1: convex, −1: concave, 0: affine, None: open

    @property
    def is_nonnegative(self) -> bool:
        """Whether no value is below 0."""
        return is_at_least_zero(self.low)

    @property
    def is_nonpositive(self) -> bool:
        """Whether no value is above 0."""
        return is_at_least_zero(-self.high)

    def negated(self) -> Run:
        """Return the same of −e."""
        return Run(-self.high, -self.low, _times(-1, self.slope), _times(-1, self.bend))


@dataclass(frozen=True)
class _Function:
    """A function of one argument: where it rises, how it bends left and right of 0, its values."""

    slope: int | None
    bend_left: int | None
    bend_right: int | None
    low: sp.Expr
    high: sp.Expr
    log_bend: int | None = None  # of the function itself on all arguments where it is positive
    log_bend_right: int | None = None  # on positive arguments
    slope_right: int | None = None  # on positive arguments, of an even function


_ALL = sp.oo
_FUNCTIONS: dict[type[sp.Basic], _Function] = {
    sp.exp: _Function(1, 1, 1, sp.S.Zero, _ALL, 0, 0),
    sp.log: _Function(1, -1, -1, -_ALL, _ALL, -1, -1),
    sp.erf: _Function(1, 1, -1, -sp.S.One, sp.S.One, None, -1),
    sp.erfc: _Function(-1, -1, 1, sp.S.Zero, sp.Integer(2), -1, -1),
    sp.tanh: _Function(1, 1, -1, -sp.S.One, sp.S.One, None, -1),
    sp.atan: _Function(1, 1, -1, -sp.pi / 2, sp.pi / 2, None, -1),
    sp.asinh: _Function(1, 1, -1, -_ALL, _ALL, None, -1),
    sp.sinh: _Function(1, -1, 1, -_ALL, _ALL, None, -1),
    sp.cosh: _Function(None, 1, 1, sp.S.One, _ALL, 1, 1, slope_right=1),
    sp.sech: _Function(None, None, None, sp.S.Zero, sp.S.One, -1, -1, slope_right=-1),
    sp.Abs: _Function(None, 1, 1, sp.S.Zero, _ALL, None, -1, slope_right=1),
    sp.gamma: _Function(None, None, 1, -_ALL, _ALL, None, 1),
    sp.factorial: _Function(None, None, 1, -_ALL, _ALL, None, 1),
    sp.loggamma: _Function(None, None, 1, -_ALL, _ALL),
    sp.sin: _Function(None, None, None, -sp.S.One, sp.S.One),
}
# Functions that are positive on one side alone and log-concave there: distribution functions.
_POSITIVE_ON_RIGHT = (sp.erf, sp.tanh, sp.sinh, sp.atan, sp.asinh, sp.Abs)


def sign_of_bound(bound: sp.Expr) -> int | None:
    """Return the sign of a bound where it is certain."""
    if bound.is_infinite:
        return int(sp.sign(bound))
    if bound.is_number:
        return sign_of(bound)
    if bound.is_positive:
        return 1
    if bound.is_negative:
        return -1
    if bound.count_ops() > _LONGEST_BOUND:
        return None
    return sign_of(bound)


def is_at_least_zero(bound: sp.Expr) -> bool:
    """Whether a bound is certainly not below 0."""
    if bound.is_infinite or sign_of_bound(bound) in (0, 1):
        return bound is not -sp.oo
    if bound.is_number or bound.count_ops() > _LONGEST_BOUND:
        return False
    return bool(bound.is_nonnegative or sp.expand(released(bound)).is_nonnegative)


_OPEN = Run(-sp.oo, sp.oo, None, None)


class _UnrealError(Exception):
    """A root, a logarithm or a function that is not in the table may be asked beyond its domain."""


class Curvature:
    """Expressions of x between two ends, each asked once."""

    def __init__(self, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> None:
        self.x = x
        self.lower = lower
        self.upper = upper
        self._runs: dict[sp.Expr, Run] = {}
        self._log_bends: dict[sp.Expr, int | None] = {}

    def run(self, e: sp.Expr) -> Run:
        """Return the bounds, the slope and the bend of an expression."""
        try:
            return self._real_run(e)
        except _UnrealError:
            return _OPEN

    def _real_run(self, e: sp.Expr) -> Run:
        if e not in self._runs:
            self._runs[e] = self._run_of(e)
        return self._runs[e]

    def log_bend(self, e: sp.Expr) -> int | None:
        """Return how the logarithm of a positive expression bends: 1 convex, −1 concave."""
        if e not in self._log_bends:
            self._log_bends[e] = self._log_bend(e)
        return self._log_bends[e]

    def _run_of(self, e: sp.Expr) -> Run:
        if self.x not in e.free_symbols:
            return Run(e, e, 0, 0)
        if e == self.x:
            return Run(self.lower, self.upper, 1, 0)
        polynomial = self._short_polynomial(e)
        if polynomial is not None:
            return polynomial
        if e.is_Add:
            return self._run_of_sum([self._real_run(term) for term in e.args])
        if e.is_Mul:
            return self._run_of_product(e)
        if e.is_Pow:
            return self._run_of_power(e)
        if isinstance(e, sp.Max | sp.Min):
            return self._extreme(e)
        if isinstance(e, sp.besselk):
            return self._bessel(e)
        if isinstance(e, sp.cos):
            return self._cosine(self._real_run(e.args[0]))
        if type(e) in _FUNCTIONS and len(e.args) == 1:
            return self._run_of_function(_FUNCTIONS[type(e)], type(e), e.args[0])
        raise _UnrealError

    def _short_polynomial(self, e: sp.Expr) -> Run | None:
        """Return the run of a line, or of a quadratic that is written as a sum."""
        if not e.is_polynomial(self.x):
            return None
        coefficients = sp.Poly(e, self.x).all_coeffs()
        if len(coefficients) == 2:
            return self._of_line(*coefficients)
        if len(coefficients) != 3 or not e.is_Add:
            return None
        lead, middle, constant = coefficients
        bend = sign_of_bound(lead)
        if not bend:
            return None
        derivative = self._real_run(2 * lead * self.x + middle)
        if not (derivative.is_nonnegative or derivative.is_nonpositive):
            vertex = constant - middle**2 / (4 * lead)
            if bend > 0:
                return Run(vertex, sp.oo, None, bend)
            return Run(-sp.oo, vertex, None, bend)
        ends = []
        for end in (self.lower, self.upper):
            ends.append(bend * sp.oo if end.is_infinite else e.subs(self.x, end))
        first, last = ends
        if derivative.is_nonnegative:
            return Run(first, last, 1, bend)
        return Run(last, first, -1, bend)

    def _of_line(self, rate: sp.Expr, constant: sp.Expr) -> Run:
        slope = sign_of_bound(rate)
        if slope is None:
            return Run(-sp.oo, sp.oo, None, 0)
        line = Run(self.lower, self.upper, 1, 0)
        scaled = _scaled_run(line, rate)
        low = _added([scaled.low, constant])
        high = _added([scaled.high, constant])
        return Run(low, high, slope, 0)

    def _run_of_sum(self, runs: list[Run]) -> Run:
        low = _added(run.low for run in runs)
        high = _added(run.high for run in runs)
        slope = _common_sign(run.slope for run in runs)
        bend = _common_sign(run.bend for run in runs)
        return Run(low, high, slope, bend)

    def _run_of_product(self, e: sp.Expr) -> Run:
        constant, moving = e.as_independent(self.x, as_Add=False)
        if constant != 1:
            return _scaled_run(self._real_run(moving), constant)
        together = self._power_times_bessel(e)
        runs = together or [self._real_run(factor) for factor in e.args]
        sign = 1
        for index, run in enumerate(runs):
            if run.is_nonnegative:
                continue
            if not run.is_nonpositive:
                return _OPEN
            runs[index] = run.negated()
            sign = -sign
        low = _multiplied(run.low for run in runs)
        high = _multiplied(run.high for run in runs)
        slope = _common_sign(run.slope for run in runs)
        bend = None
        if slope and all(run.bend in (0, 1) for run in runs):
            bend = 1
        product = Run(low, high, slope, bend)
        if sign > 0:
            return product
        return product.negated()

    def _power_times_bessel(self, e: sp.Expr) -> list[Run] | None:
        """Return the runs of z^p K_ν(z), p ≤ ν, which falls, and of the other factors."""
        for bessel in e.args:
            if not isinstance(bessel, sp.besselk):
                continue
            order, z = bessel.args
            for power in e.args:
                if power is bessel or self.x in order.free_symbols:
                    continue
                base, exponent = power.as_base_exp()
                ratio = tidy.bounded(sp.cancel, base / z)
                if self.x in ratio.free_symbols or sign_of(ratio) != 1:
                    continue
                if sign_of(sp.Abs(order) - exponent) not in (0, 1):
                    continue
                inner = self._real_run(z)
                others = [f for f in e.args if f is not bessel and f is not power]
                runs_of_others = [self._real_run(factor) for factor in others]
                if not inner.is_nonnegative:
                    return None
                falls = Run(sp.S.Zero, sp.oo, _times(-1, inner.slope), None)
                return [falls, *runs_of_others]
        return None

    def _run_of_power(self, e: sp.Expr) -> Run:
        base, exponent = e.args
        if self.x in exponent.free_symbols:
            if self.x in base.free_symbols or sign_of(base) != 1:
                raise _UnrealError
            return self._run_of_function(_FUNCTIONS[sp.exp], sp.exp, exponent * sp.log(base))
        inner = self._real_run(base)
        if exponent.is_integer and exponent.is_even and exponent.is_positive:
            size = _even_power(exponent)
            return _compose(size, inner)
        if not (exponent.is_integer or inner.is_nonnegative):
            raise _UnrealError
        sign = sign_of_bound(exponent)
        if sign is None:
            return _OPEN
        if inner.is_nonnegative:
            return self._raised(inner, exponent, sign)
        if inner.is_nonpositive:
            positive = self._raised(inner.negated(), exponent, sign)
            if exponent.is_odd:
                return positive.negated()
            return positive
        return _OPEN

    def _raised(self, inner: Run, exponent: sp.Expr, sign: int) -> Run:
        """Return the run of b^p, b ≥ 0."""
        beyond_one = sign_of_bound(exponent - 1)
        bend = 1 if sign < 0 else beyond_one
        function = _Function(sign, None, bend, sp.S.Zero, sp.oo)
        run = _compose(function, inner)
        bounds = [run.low, run.high]
        for index, bound in enumerate((inner.low, inner.high)):
            is_positive = sign_of_bound(bound) == 1
            if is_positive and not bound.is_infinite:
                side = index if sign > 0 else 1 - index
                bounds[side] = bound**exponent
        low, high = bounds
        return Run(low, high, run.slope, run.bend)

    def _extreme(self, e: sp.Expr) -> Run:
        runs = [self._real_run(part) for part in e.args]
        wanted = -1
        if isinstance(e, sp.Max):
            wanted = 1
        bend = None
        if all(run.bend in (0, wanted) for run in runs):
            bend = wanted
        extreme = type(e)
        low = extreme(*(run.low for run in runs))
        high = extreme(*(run.high for run in runs))
        slope = _common_sign(run.slope for run in runs)
        return Run(low, high, slope, bend)

    def _bessel(self, e: sp.Expr) -> Run:
        order, z = e.args
        inner = self._real_run(z)
        if not inner.is_nonnegative:
            raise _UnrealError
        if self.x in order.free_symbols:
            return _OPEN
        return _compose(_Function(-1, None, 1, sp.S.Zero, sp.oo), inner)

    def _cosine(self, inner: Run) -> Run:
        """Return the run of cos u, which falls on [0, π] and is concave on [−π/2, π/2]."""
        slope = None
        if _lies_within(inner, sp.pi):
            if inner.is_nonnegative:
                slope = _times(-1, inner.slope)
            elif inner.is_nonpositive:
                slope = _times(1, inner.slope)
        if not _lies_within(inner, sp.pi / 2):
            return Run(-sp.S.One, sp.S.One, slope, None)
        bend = None
        if inner.bend == 0:
            bend = -1
        return Run(sp.S.Zero, sp.S.One, slope, bend)

    def _run_of_function(self, function: _Function, name: type[sp.Basic], argument: sp.Expr) -> Run:
        inner = self._real_run(argument)
        if name is sp.log and not inner.is_nonnegative:
            raise _UnrealError
        if name in (sp.gamma, sp.factorial):
            least = sp.S.Zero
            if name is sp.factorial:
                least = sp.S.NegativeOne
            if sign_of_bound(inner.low - least) not in (0, 1):
                return _OPEN
            slope = _slope_at_integers(argument, inner.low - least - 1)
            counting = _Function(slope, None, 1, sp.S.Zero, sp.oo)
            return _compose(counting, inner)
        run = _compose(function, inner)
        if function.slope != 1:
            return run
        # closer bounds, where an end is a number
        low = _value_at_bound(name, inner.low, run.low)
        high = _value_at_bound(name, inner.high, run.high)
        return Run(low, high, run.slope, run.bend)

    def _log_bend(self, e: sp.Expr) -> int | None:
        if self.x not in e.free_symbols:
            return 0
        if e.is_Mul:
            return self._log_bend_of_product(e)
        if isinstance(e, sp.exp):
            return self.run(e.args[0]).bend
        if e.is_Pow:
            base, exponent = e.args
            if self.x not in base.free_symbols:
                is_real = sign_of(base) == 1
                if is_real:
                    return self.run(exponent * sp.log(base)).bend
                return None
            if self.x not in exponent.free_symbols:
                return _times(sign_of_bound(exponent), self._log_bend_of_size(base))
            return None
        if e.is_Add:
            return self._log_bend_of_sum(e)
        if isinstance(e, sp.binomial):
            return self.log_bend(e.rewrite(sp.gamma))
        return self._log_bend_of_function(e)

    def _log_bend_of_size(self, base: sp.Expr) -> int | None:
        """Return how log|b| bends; b may be negative throughout."""
        if base.is_Pow or base.is_Mul:
            return self.log_bend(base)
        run = self.run(base)
        if run.is_nonnegative:
            return self.log_bend(base)
        if base.is_Add and run.is_nonpositive:
            return self.log_bend(sp.Add(*(-term for term in base.args)))
        return None

    def _log_bend_of_product(self, e: sp.Expr) -> int | None:
        factors, bends = self._without_gamma_quotients(_with_gammas(e.args))
        for bessel in [factor for factor in factors if isinstance(factor, sp.besselk)]:
            order, z = bessel.args
            for power in factors:
                if power is bessel:
                    continue
                base, exponent = power.as_base_exp()
                ratio = tidy.bounded(sp.cancel, base / z)
                if self.x in ratio.free_symbols or sp.expand(exponent - order) != 0:
                    continue
                # z^ν K_ν(z), ν ≥ 1/2, is the density of a difference of Gamma variables.
                if sign_of(order - sp.S.Half) in (0, 1) and self.run(z).bend == 0:
                    factors = [f for f in factors if f is not bessel and f is not power]
                    bends.append(-1)
                    break
        moving = [factor for factor in factors if self.x in factor.free_symbols]
        bends += [self._log_bend_of_size(factor) for factor in moving]
        return _common_sign(bends)

    def _without_gamma_quotients(
        self, factors: list[sp.Expr]
    ) -> tuple[list[sp.Expr], list[int | None]]:
        """Return factors without Γ(u + a)/Γ(u + b), and the bends of these: ψ′ falls."""
        bends: list[int | None] = []
        for above in [factor for factor in factors if isinstance(factor, sp.gamma)]:
            (u,) = above.args
            for below in factors:
                base, exponent = below.as_base_exp()
                if exponent != -1 or not isinstance(base, sp.gamma | sp.factorial):
                    continue
                shift = sp.expand(u - base.args[0])
                if isinstance(base, sp.factorial):
                    shift -= 1
                inner = self.run(u)
                order = sign_of(shift)
                if shift.is_nonnegative:  # as r − 1 of a whole r
                    order = 1
                is_line = inner.is_nonnegative and inner.bend == 0
                if self.x not in shift.free_symbols and order is not None and is_line:
                    factors = [f for f in factors if f is not above and f is not below]
                    bends.append(-order)
                    break
        return factors, bends

    def _log_bend_of_sum(self, e: sp.Expr) -> int | None:
        run = self.run(e)
        if run.bend in (0, -1):
            return -1  # the logarithm rises and is concave
        if self._is_log_concave_sum(e):
            return -1
        bends = []
        for term in e.args:
            if not self.run(term).is_nonnegative:
                return None
            bends.append(self.log_bend(term))
        if all(bend in (0, 1) for bend in bends):
            return 1
        return None

    def _is_log_concave_sum(self, e: sp.Expr) -> bool:
        """Whether e is c(1 ± erf u), c(1 ± tanh u) or c(1 + cos u), |u| ≤ π, with u affine."""
        constant, moving = e.as_independent(self.x, as_Add=True)
        factor, function = moving.as_independent(self.x, as_Add=False)
        if not isinstance(function, sp.erf | sp.tanh | sp.cos):
            return False
        inner = self.run(function.args[0])
        if inner.bend != 0:
            return False
        is_difference = bool(sp.expand(constant - factor) == 0)
        if isinstance(function, sp.cos):  # 1 + cos u = 2 cos²(u/2)
            return is_difference and _lies_within(inner, sp.pi)
        return is_difference or bool(sp.expand(constant + factor) == 0)

    def _log_bend_of_function(self, e: sp.Expr) -> int | None:
        if e == self.x:
            return -1
        if isinstance(e, sp.besseli):
            return self._log_bend_in_order(e)
        if isinstance(e, sp.besselk) and self.x not in e.args[0].free_symbols:
            inner = self.run(e.args[1])
            if inner.bend in (0, -1) and inner.is_nonnegative:
                return 1
            return None
        if isinstance(e, sp.cos):
            inner = self.run(e.args[0])
            if inner.bend == 0 and _lies_within(inner, sp.pi / 2):
                return -1
            return None
        function = _FUNCTIONS.get(type(e))
        if function is None or len(e.args) != 1:
            return None
        (argument,) = e.args
        inner = self.run(argument)
        if isinstance(e, sp.gamma | sp.factorial):
            least = sp.S.Zero
            if isinstance(e, sp.factorial):
                least = sp.S.NegativeOne
            if sign_of_bound(inner.low - least) not in (0, 1):
                return None
            slope = _slope_at_integers(argument, inner.low - least - 1)
            return _of_composition(1, slope, inner.bend)
        if isinstance(e, sp.log):  # of a logarithm: where it is positive, concave of concave
            if inner.bend in (0, -1) and self.run(e).is_nonnegative:
                return -1
            return None
        if inner.is_nonnegative:
            slope = function.slope
            if slope is None:
                slope = function.slope_right
            return _of_composition(function.log_bend_right, slope, inner.bend)
        if type(e) in _POSITIVE_ON_RIGHT:
            return None
        return _of_composition(function.log_bend, function.slope, inner.bend)

    def _log_bend_in_order(self, e: sp.Expr) -> int | None:
        """Return the bend of log I_|k|(z) in whole k: Poisson differences are log-concave."""
        order, z = e.args
        is_size = isinstance(order, sp.Abs) and order.args[0] == self.x
        if is_size and self.x.is_integer and z.is_positive:
            return -1
        return None


def _with_gammas(factors: Iterable[sp.Expr]) -> list[sp.Expr]:
    """Return factors, binomials among them as quotients of Γ."""
    written: list[sp.Expr] = []
    for factor in factors:
        if isinstance(factor, sp.binomial):
            written.extend(sp.Mul.make_args(factor.rewrite(sp.gamma)))
        else:
            written.append(factor)
    return written


def _lies_within(run: Run, size: sp.Expr) -> bool:
    """Whether all values lie between −size and size."""
    margins = (run.low + size, size - run.high)
    return all(is_at_least_zero(margin) for margin in margins)


def _even_power(exponent: sp.Expr) -> _Function:
    return _Function(None, 1, 1, sp.S.Zero, sp.oo, slope_right=1)


def _slope_at_integers(argument: sp.Expr, low: sp.Expr) -> int | None:
    """Return 1 for Γ and factorials of whole numbers, which do not fall, as 0! = 1!."""
    if argument.is_integer and is_at_least_zero(low):
        return 1
    return None


def _compose(function: _Function, inner: Run) -> Run:
    """Return what is known of F(g)."""
    bend: int | None = None
    slope = function.slope
    if inner.is_nonnegative:
        bend = function.bend_right
        if slope is None:
            slope = function.slope_right
    elif inner.is_nonpositive:
        bend = function.bend_left
        if slope is None:
            slope = _times(-1, function.slope_right)
    elif function.bend_left == function.bend_right:
        bend = function.bend_left
    composed_bend = _of_composition(bend, slope, inner.bend)
    return Run(function.low, function.high, _times(slope, inner.slope), composed_bend)


def _of_composition(outer: int | None, slope: int | None, inner: int | None) -> int | None:
    """Return the bend of F(g): F″g′² + F′g″ has one sign where both terms have it."""
    if inner == 0:
        return outer
    if outer is None or slope is None or inner is None:
        return None
    return _common_sign([outer, slope * inner])


def _times(factor: int | None, value: int | None) -> int | None:
    if factor == 0 or value == 0:
        return 0
    if factor is None or value is None:
        return None
    return factor * value


def _common_sign(values: Iterable[int | None]) -> int | None:
    """Return the sign that all have which are not 0."""
    signs = set(values) - {0}
    if None in signs or len(signs) > 1:
        return None
    if signs:
        return signs.pop()
    return 0


def _added(bounds: Iterable[sp.Expr]) -> sp.Expr:
    total = sp.S.Zero
    for bound in bounds:
        if bound.is_infinite:
            return bound  # bounds of one kind are never of two signs
        total += bound
    return total


def _multiplied(bounds: Iterable[sp.Expr]) -> sp.Expr:
    """Return the product of bounds of factors that are not negative."""
    total = sp.S.One
    for bound in bounds:
        if bound == 0:
            return sp.S.Zero
        if bound.is_infinite or total.is_infinite:
            total = sp.oo
        else:
            total *= bound
    return total


def _scaled_run(run: Run, factor: sp.Expr) -> Run:
    sign = sign_of_bound(factor)
    slope = _times(sign, run.slope)
    bend = _times(sign, run.bend)
    if sign is None:
        return Run(-sp.oo, sp.oo, slope, bend)
    ends = []
    for end in (run.low, run.high):
        ends.append(sign * end if end.is_infinite else factor * end)
    if sign < 0:
        ends.reverse()
    low, high = ends
    return Run(low, high, slope, bend)


def _value_at_bound(name: type[sp.Basic], bound: sp.Expr, otherwise: sp.Expr) -> sp.Expr:
    """Return the value of a rising function at a finite bound."""
    if bound.is_infinite or not bound.is_real or bound.count_ops() > _LONGEST_BOUND:
        return otherwise
    if name is sp.log and sign_of_bound(bound) != 1:
        return otherwise
    return name(bound)
