"""What a file assumes of its parameters: w > 1/2 or c > 1/s, which orders the pieces of a loss.

An assumption lives in the parameter's symbol, so that whatever decides a sign can use it and no
state changes an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp.errors import InputError
from symdp.model.guarded import sign_of

if TYPE_CHECKING:
    from symdp.model.record import MechanismRecord
    from symdp.model.sampling import Parameter

_MOST_ENDS = 2  # a lower and an upper one


@dataclass(frozen=True)
class End:
    """One end of where a parameter lies: its value, and whether the parameter may equal it."""

    value: sp.Expr
    is_lower: bool
    is_open: bool

    @property
    def operator(self) -> str:
        """How a parameter compares with the end."""
        return (">" if self.is_lower else "<") + ("" if self.is_open else "=")

    def holds(self, value: sp.Expr) -> bool:
        """Whether a number lies on the right side of a number."""
        side = sign_of(value - self.value)
        return not self.is_open if side == 0 else side == (1 if self.is_lower else -1)

    def __str__(self) -> str:
        return f"{self.operator} {self.value}"


class AssumedSymbol(sp.Symbol):  # type: ignore[misc]
    """The symbol of a parameter that is assumed to lie beyond an end, or between two.

    Examples
    --------
    >>> w = AssumedSymbol("w", (End(sp.Rational(1, 2), True, True),), real=True)
    >>> w.is_positive, w == sp.Symbol("w", positive=True), (2 * w - 1).xreplace({w: w.released()})
    (True, False, 2*w+)
    """

    __slots__ = ("ends",)
    ends: tuple[End, ...]

    def __new__(cls, name: str, ends: tuple[End, ...], **assumptions: bool) -> AssumedSymbol:
        """Return the symbol; that it is positive or negative follows where an end has a sign."""
        for end in ends:
            beyond = end.value if end.is_lower else -end.value
            if beyond.free_symbols:
                certain = beyond.is_positive or (end.is_open and beyond.is_nonnegative)
            else:
                certain = (sign := sign_of(beyond)) > 0 or (sign == 0 and end.is_open)
            if certain:
                assumptions["positive" if end.is_lower else "negative"] = True
        made: AssumedSymbol = sp.Symbol.__xnew__(cls, name, **assumptions)
        made.ends = ends
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, bool]]:
        return (self.name, self.ends), dict(self._assumptions_orig)

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.ends)

    def _sympyrepr(self, printer: Any) -> str:
        facts = ", ".join(f"{fact}={truth}" for fact, truth in sorted(self.assumptions0.items()))
        ends = ", ".join(f"{end.operator} {printer.doprint(end.value)}" for end in self.ends)
        return f"AssumedSymbol({self.name!r}, {ends!r}, {facts})"

    @property
    def both_ends(self) -> tuple[End | None, End | None]:
        """The lower and the upper end, None where there is none."""
        low, high = (next((e for e in self.ends if e.is_lower == it), None) for it in (True, False))
        return low, high

    @property
    def compared_with(self) -> set[sp.Symbol]:
        """The parameters that its ends hold, and those that the ends of these hold."""
        own = {symbol for end in self.ends for symbol in end.value.free_symbols}
        further = (s.compared_with for s in own if isinstance(s, AssumedSymbol))
        return own.union(*further)

    def allows(self, value: sp.Expr) -> bool:
        """Whether a number lies between its ends, which are numbers."""
        return all(end.holds(value) for end in self.ends)

    def released(self) -> sp.Expr:
        """Return the parameter as a formula of a free positive symbol, which covers its range.

        w = a + s above a; between 0 or a and b a Möbius map of s.  What the formula cannot say
        (that w ≤ b beside w ≥ a) is left out: the range is then wider.
        """
        low, high = self.both_ends
        if low is None and high is not None and self.is_positive:
            low = End(sp.S.Zero, True, True)
        closed = [end for end in (low, high) if end is not None and not end.is_open]
        sign = {"nonnegative": True} if closed else {"positive": True}
        # No parameter has such a name.  A whole number stays one only beyond a single end.
        free = sp.Symbol(f"{self.name}+", **sign)
        if low is None:
            assert high is not None
            return high.value - free
        if high is None or len(closed) == _MOST_ENDS or self.is_integer:
            sign = {"positive" if low.is_open else "nonnegative": True}
            if self.is_integer and low.value.is_integer:
                sign["integer"] = True
            return low.value + sp.Symbol(f"{self.name}+", **sign)
        first, last = (high, low) if closed == [high] else (low, high)
        return (first.value + free * last.value) / (1 + free)

    def moved(self, rules: Mapping[sp.Symbol, sp.Expr]) -> AssumedSymbol:
        """Return the symbol with other symbols or values in its ends."""
        ends = tuple(replace(end, value=end.value.xreplace(rules)) for end in self.ends)
        if ends == self.ends:
            return self
        return AssumedSymbol(self.name, ends, **self._assumptions_orig)


def released(expression: sp.Expr) -> sp.Expr:
    """Return an expression whose assumed parameters are written in free positive symbols.

    >>> w = AssumedSymbol("w", (End(sp.Integer(1), True, True),), positive=True)
    >>> released(1 - w)
    -w+
    """
    assumed = expression.atoms(AssumedSymbol)
    while assumed:
        expression = expression.xreplace({symbol: symbol.released() for symbol in assumed})
        assumed = expression.atoms(AssumedSymbol)
    return expression


def comparisons(mechanism: MechanismRecord) -> tuple[str, ...]:
    """Return what is assumed of parameters without values; see `Mechanism.assumptions`."""
    values = mechanism.values
    known = {p.symbol: values[p.name] for p in mechanism.declared if p.name in values}
    listed = (
        (values.get(p.name, p.symbol), end.operator, end.value.xreplace(known))
        for p in mechanism.declared
        if isinstance(p.symbol, AssumedSymbol)
        for end in p.symbol.ends
    )
    return tuple(
        f"{left} {operator} {right}"
        for left, operator, right in listed
        if left.free_symbols or right.free_symbols
    )


def moved(
    declared: Sequence[Parameter], values: Mapping[sp.Symbol, sp.Expr]
) -> dict[sp.Symbol, AssumedSymbol]:
    """Return new symbols of the assumed parameters whose ends hold a parameter that has a value."""
    own = {p.symbol for p in declared if isinstance(p.symbol, AssumedSymbol)} - set(values)
    found: dict[sp.Symbol, AssumedSymbol] = {}
    # One that is compared with another holds that one as well, and all that it is compared with.
    for symbol in sorted(own, key=lambda s: (len(s.compared_with), s.name)):
        other = symbol.moved({**values, **found})
        if other != symbol:
            found[symbol] = other
    return found


def check_values(declared: Sequence[Parameter], values: Mapping[str, sp.Expr]) -> None:
    """Check values against the assumptions that hold numbers alone once they are put in.

    Raises
    ------
    InputError : a value breaks an assumption, or two ends exclude every value.
    """
    known = {p.symbol: values[p.name] for p in declared if p.name in values}
    for p in declared:
        if not isinstance(p.symbol, AssumedSymbol):
            continue
        symbol = p.symbol.moved(known)
        _check_order(symbol)
        for end, at in zip(p.symbol.ends, symbol.ends, strict=True):
            if p.name in values and not at.value.free_symbols and not at.holds(values[p.name]):
                here = "" if at == end else f", which is {at.value} here"
                raise InputError(
                    f"{p.name}={values[p.name]!s:.60} breaks the assumption {p.name} {end}{here}:"
                    " give another value, or change [assume]"
                )


def _check_order(symbol: AssumedSymbol) -> None:
    low, high = symbol.both_ends
    if low is None or high is None or (high.value - low.value).free_symbols:
        return
    if sign_of(high.value - low.value) <= 0:  # a single value is bound, not assumed
        raise InputError(f"no {symbol.name} is both {low} and {high}")
