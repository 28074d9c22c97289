"""Values of tail constants in ball arithmetic.

`derive` gives a tail constant its formula and says what kind of bound it is; here the bound is
evaluated, for concrete parameters and exact numbers.  A value is a ball around the constant, or,
where the constant is a supremum, a number that is proved to be an upper bound of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import arb, ctx

from symdp.arguments import instance
from symdp.balls import variation
from symdp.balls.tails import (
    Side,
    berry_esseen,
    chernoff,
    crossed_tail,
    quadratic_tail,
    sub_gaussian_within,
    tilted_law,
)
from symdp.derive.tails.records import TailConstant
from symdp.emit.arb import constant_ball
from symdp.emit.exact import BITS
from symdp.errors import AccuracyError, InputError, suggestion
from symdp.turns import in_turn

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_GRID_BITS = 12  # of an irrational end of an interval of tilts, rounded outwards


@in_turn
def tail_value(constant: TailConstant, **values: Any) -> arb:
    """Return a ball around a tail constant; of a bound, a number that is proved to be one.

    Parameters
    ----------
    constant : TailConstant
        One of `derivation.tails`.
    **values
        The names in `constant.arguments`, and parameters that are still free; numbers are exact.

    Returns
    -------
    arb

    Raises
    ------
    InputError
        For a missing or an unknown name, or a value outside its domain.
    AccuracyError
        Where the constant does not exist or could not be enclosed; the line says which.

    Examples
    --------
    >>> import symdp
    >>> tails = symdp.derive(symdp.mechanisms.gaussian).tails
    >>> symdp.tail_value(tails["third_moment"], t=1, sigma=2).str(6, radius=False)
    '0.199471'
    >>> tails = symdp.derive(symdp.mechanisms.laplace).tails
    >>> symdp.tail_value(tails["chernoff_p"], epsilon=2, count=5, b=2).str(5, radius=False)
    '-1.2911'
    """
    known = instance(constant, TailConstant, "it is no tail constant: give one of derivation.tails")
    return _KINDS[known.rule.kind](_Request.read(known, values))


@dataclass(frozen=True)
class _Request:
    """What one evaluation asks for: a concrete pair and exact numbers."""

    constant: TailConstant
    pair: Pair
    domain: tuple[sp.Expr, sp.Expr]
    numbers: Mapping[str, sp.Rational]
    substitution: Mapping[sp.Symbol, sp.Expr]

    @classmethod
    def read(cls, constant: TailConstant, values: Mapping[str, Any]) -> _Request:
        """Check names and numbers."""
        from symdp.model.mechanism import exact

        derivation = constant.derivation
        own = {name: value for name, value in values.items() if name in constant.arguments}
        rest = {name: value for name, value in values.items() if name not in constant.arguments}
        missing = [name for name in constant.arguments if name not in own]
        if missing:
            raise InputError(f"{constant.name} needs {' and '.join(missing)}; give a number")
        parameters = derivation.mechanism.parameters
        for name in rest:
            if name not in parameters:
                known = [*constant.arguments, *parameters]
                raise InputError(
                    f"'{name}' is neither an argument of {constant.name} nor a free parameter"
                    f"{suggestion(name, known) or (f'; known: {known}' if known else '')}"
                )
        mechanism = derivation.mechanism(**rest).require_concrete()
        numbers = {name: exact(value, name) for name, value in own.items()}
        for name, number in numbers.items():
            if not number.is_Rational:
                raise InputError(f"{name} must be a number or a ratio, not {values[name]!r}")
        count = numbers.get("count", sp.S.One)
        if not (count.is_Integer and count > 0):
            raise InputError(f"count must be a whole number, 1 or more, not {count}")
        bound = {
            symbol: mechanism.values[name] for name, symbol in parameters.items() if name in rest
        }
        low, high = derivation.cgf.domain or (-sp.oo, sp.oo)
        domain = low.subs(bound), high.subs(bound)
        tilt = numbers.get("t")
        if tilt is not None and not (domain[0] < tilt) & (tilt < domain[1]):
            raise InputError(
                f"the tilt {tilt} lies outside ({domain[0]}, {domain[1]}), where the CGF is finite"
            )
        return cls(constant, mechanism.pair(derivation.direction), domain, numbers, bound)

    @property
    def count(self) -> int:
        return int(self.numbers["count"])

    def side(self, under: str) -> Side:
        """The loss under P or under Q."""
        return Side.of(self.pair, under, self.domain)

    def of_all(self, log_finite: arb) -> arb:
        """Add the probability of an infinite loss under P to a bound on the tail of finite ones."""
        infinite = self.constant.derivation.mass_at_infinity
        if self.constant.rule.under == "Q" or infinite == 0:
            return log_finite
        with ctx.workprec(BITS):
            lost = -(self.count * (-self.number(infinite)).log1p()).expm1()
            return (lost + log_finite.exp()).min(arb(1)).log().upper()

    def number(self, expression: sp.Expr) -> arb:
        """Enclose an expression in the parameters."""
        return constant_ball(expression.subs(self.substitution), BITS).real

    def known(self, formula: sp.Expr | None) -> sp.Expr:
        """Return a formula, or say why the constant has none."""
        if formula is None:
            raise AccuracyError(f"{self.constant.name} is not known here: {self.constant.reason}")
        return formula


def _formula(request: _Request) -> arb:
    value = request.known(request.constant.expression).subs(request.substitution)
    if value.is_infinite:
        raise AccuracyError(f"{request.constant.name} is infinite: {request.constant.bounds}")
    return request.number(value)


def _drift(request: _Request) -> arb:
    return -request.side("Q").mean()


def _chernoff(request: _Request) -> arb:
    side = request.side(request.constant.rule.under)
    return request.of_all(chernoff(side, request.numbers["epsilon"], request.count))


def _quadratic(request: _Request) -> arb:
    rule = request.constant.rule
    request.known(request.constant.expression)
    square = request.number(request.known(rule.formula))
    bound = quadratic_tail if rule.known == rule.under else crossed_tail
    finite = bound(request.side(rule.known), square, request.numbers["epsilon"], request.count)
    return request.of_all(finite)


def _within(request: _Request) -> arb:
    low, high = request.numbers["low"], request.numbers["high"]
    return sub_gaussian_within(request.side(request.constant.rule.under), low, high)


def _exponential(request: _Request) -> arb:
    rule = request.constant.rule
    end = 1 / request.known(rule.formula).subs(request.substitution)
    # An irrational end is rounded outwards, so that the constant holds up to the very end.
    wide = sp.Rational(sp.floor(end.evalf(20) * 2**_GRID_BITS) + 1, 2**_GRID_BITS)
    short = end if end.is_Rational else wide
    return sub_gaussian_within(request.side(rule.under), -short, short)


def _third_moment(request: _Request) -> arb:
    if request.constant.expression == 0:
        return arb(0)
    return tilted_law(request.pair).third(request.numbers["t"])


def _berry_esseen(request: _Request) -> arb:
    if request.constant.expression == 0:
        return arb(0)
    return berry_esseen(request.pair, request.numbers["t"])


def _van_der_corput(request: _Request) -> arb:
    if request.constant.expression == 0:
        return arb(0)
    tilt, order = request.numbers["t"], request.constant.rule.order
    log_moment = tilted_law(request.pair).cgf(tilt)
    return variation.van_der_corput(request.pair, order, tilt, log_moment)


def _split(request: _Request) -> arb:
    tilt, frequency = request.numbers["t"], request.numbers["frequency"]
    if not frequency > 0:
        raise InputError(f"frequency must be positive, not {frequency}")
    log_moment = tilted_law(request.pair).cgf(tilt)
    return variation.split_bound(request.pair, tilt, request.number(frequency), log_moment)


_KINDS: dict[str, Callable[[_Request], arb]] = {
    "formula": _formula,
    "drift": _drift,
    "chernoff": _chernoff,
    "quadratic": _quadratic,
    "sub-gaussian within": _within,
    "sub-exponential": _exponential,
    "third moment": _third_moment,
    "berry-esseen": _berry_esseen,
    "van der corput": _van_der_corput,
    "split": _split,
}
