"""Values of tail constants: names and numbers are checked here, balls come from the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp.errors import AccuracyError, InputError, suggestion

if TYPE_CHECKING:
    from flint import arb

    from symdp.balls.tails import Side
    from symdp.derive.derivation import Derivation
    from symdp.derive.tails.records import TailConstant
    from symdp.model.mechanism import Mechanism
    from symdp.model.pair import Pair

DIGITS = 30


@dataclass(frozen=True)
class Request:
    """What one evaluation asks for: a concrete pair and exact numbers."""

    constant: TailConstant
    mechanism: Mechanism
    pair: Pair
    domain: tuple[sp.Expr, sp.Expr]
    numbers: Mapping[str, sp.Rational]
    substitution: Mapping[sp.Symbol, sp.Expr]

    @classmethod
    def read(
        cls, derivation: Derivation, constant: TailConstant, values: Mapping[str, Any]
    ) -> Request:
        """Check the names and numbers of `evaluate`.

        Raises
        ------
        InputError
            For a missing or unknown name, or a number that is not rational.
        """
        from symdp.model.mechanism import exact

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
        ends = derivation.cgf.domain or (-sp.oo, sp.oo)
        domain = (ends[0].subs(bound), ends[1].subs(bound))
        request = cls(
            constant, mechanism, mechanism.pair(derivation.direction), domain, numbers, bound
        )
        request._check_tilt()
        return request

    def _check_tilt(self) -> None:
        tilt = self.numbers.get("t")
        if tilt is not None and not (self.domain[0] < tilt) & (tilt < self.domain[1]):
            raise InputError(
                f"the tilt {tilt} lies outside ({self.domain[0]}, {self.domain[1]}), where the CGF "
                "is finite"
            )

    def side(self, under: str) -> Side:
        """The loss under P or under Q."""
        from symdp.balls.tails import Side

        return Side.of(self.pair, under, self.domain)

    def number(self, expression: sp.Expr) -> arb:
        """Enclose an expression in the parameters."""
        from symdp.emit.arb import constant_ball

        return constant_ball(expression.subs(self.substitution), int(3.4 * DIGITS)).real


@dataclass(frozen=True)
class FromFormula:
    """The value of a formula in the parameters alone, or the reason why there is none."""

    derivation: Derivation

    def __call__(self, constant: TailConstant, values: Mapping[str, Any]) -> arb:
        """Return the value."""
        request = Request.read(self.derivation, constant, values)
        if constant.expression is None:
            raise AccuracyError(f"{constant.name} is not known here: {constant.reason}")
        value = constant.expression.subs(request.substitution)
        if value.is_infinite:
            raise AccuracyError(f"{constant.name} is infinite: {constant.bounds}")
        return request.number(value)


@dataclass(frozen=True)
class Drift:
    """η = −E_Q ℓ."""

    derivation: Derivation

    def __call__(self, constant: TailConstant, values: Mapping[str, Any]) -> arb:
        """Return the value."""
        return -Request.read(self.derivation, constant, values).side("Q").mean()


@dataclass(frozen=True)
class Chernoff:
    """The log of the Chernoff bound."""

    derivation: Derivation
    under: str

    def __call__(self, constant: TailConstant, values: Mapping[str, Any]) -> arb:
        """Return the value."""
        from symdp.balls.tails import chernoff

        request = Request.read(self.derivation, constant, values)
        count = int(request.numbers["count"])
        return chernoff(request.side(self.under), request.numbers["epsilon"], count)


@dataclass(frozen=True)
class QuadraticTail:
    """The log of a bound that is quadratic in ε, from a sub-Gaussian constant as a formula.

    Attributes
    ----------
    square
        s² under `known`, None where it is not known.
    known
        The law under which it holds; where it is Q and the bound is one under P,
        P(ΣL ≥ ε) ≤ E_Q e^{sΣL} e^{(1−s)ε} with s ≥ 1 is used.
    """

    derivation: Derivation
    under: str
    square: sp.Expr | None
    known: str

    def __call__(self, constant: TailConstant, values: Mapping[str, Any]) -> arb:
        """Return the value."""
        from symdp.balls.tails import crossed_tail, quadratic_tail

        request = Request.read(self.derivation, constant, values)
        if self.square is None or constant.expression is None:
            raise AccuracyError(f"{constant.name} is not known here: {constant.reason}")
        square = request.number(self.square)
        epsilon, count = request.numbers["epsilon"], int(request.numbers["count"])
        side = request.side(self.known)
        if self.known == self.under:
            return quadratic_tail(side, square, epsilon, count)
        return crossed_tail(side, square, epsilon, count)


@dataclass(frozen=True)
class Within:
    """The proved sub-Gaussian constant on an interval of tilts."""

    derivation: Derivation
    under: str

    def __call__(self, constant: TailConstant, values: Mapping[str, Any]) -> arb:
        """Return the value."""
        from symdp.balls.tails import sub_gaussian_within

        request = Request.read(self.derivation, constant, values)
        low, high = request.numbers["low"], request.numbers["high"]
        return sub_gaussian_within(request.side(self.under), low, high)


@dataclass(frozen=True)
class SubExponential:
    """ν² for tilts within ±1/α, α the derivation's own scale."""

    derivation: Derivation
    under: str
    scale: sp.Expr | None

    def __call__(self, constant: TailConstant, values: Mapping[str, Any]) -> arb:
        """Return the value."""
        from symdp.balls.tails import sub_gaussian_within

        request = Request.read(self.derivation, constant, values)
        if self.scale is None:
            raise AccuracyError(f"{constant.name} is not known here: {constant.reason}")
        end = 1 / self.scale.subs(request.substitution)
        # An irrational end is rounded outwards, so that the constant holds up to the very end.
        wide = sp.Rational(sp.floor(end.evalf(20) * 2**12) + 1, 2**12)
        short = end if end.is_Rational else wide
        return sub_gaussian_within(request.side(self.under), -short, short)


@dataclass(frozen=True)
class Tilted:
    """A number of one tilt: "third", "ratio", "split", or "variation" of an order."""

    derivation: Derivation
    what: str
    order: int = 1

    def __call__(self, constant: TailConstant, values: Mapping[str, Any]) -> arb:
        """Return the value."""
        from flint import arb

        from symdp.balls import tails, variation

        request = Request.read(self.derivation, constant, values)
        if constant.expression == 0:  # nothing moves: there is no integral to enclose
            return arb(0)
        tilt, pair = request.numbers["t"], request.pair
        law = tails.tilted_law(pair)
        if self.what == "third":
            return law.third(tilt)
        if self.what == "ratio":
            return tails.berry_esseen(pair, tilt)
        if self.what == "split":
            frequency = request.numbers["frequency"]
            if not frequency > 0:
                raise InputError(f"frequency must be positive, not {frequency}")
            return variation.split_bound(pair, tilt, request.number(frequency), law.cgf(tilt))
        return variation.van_der_corput(pair, self.order, tilt, law.cgf(tilt))
