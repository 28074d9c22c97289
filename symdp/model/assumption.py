"""What a file assumes of its parameters: w > 1/2, say, which orders the pieces of a loss.

An assumption lives in the parameter's symbol, so that whatever decides a sign can use it and no
state changes an answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp.errors import InputError, suggestion
from symdp.exact_number import shorten
from symdp.model.guarded import sign_of
from symdp.model.parser import parse

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.model.sampling import Parameter

_SHAPE = re.compile(r"(>=|<=|>|<)\s*([^<>=]+)")
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
        """Return the symbol; that it is positive or negative follows where an end is a number."""
        for end in ends:
            if not end.value.free_symbols:
                side = 1 if end.is_lower else -1
                if (sign := side * sign_of(end.value)) > 0 or (sign == 0 and end.is_open):
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
        """The parameters that its ends hold."""
        return {symbol for end in self.ends for symbol in end.value.free_symbols}

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


def assumed(mechanism: Mechanism, assume: Mapping[str, str] | None) -> Mechanism:
    """Return a mechanism under assumptions; see `Mechanism.assuming`."""
    return _renamed(mechanism, _symbols(mechanism.declared, assume)) if assume else mechanism


def _renamed(mechanism: Mechanism, rules: Mapping[sp.Symbol, sp.Symbol]) -> Mechanism:
    """Return the mechanism with other symbols for its parameters, its values checked."""
    declared = tuple(p.renamed(rules) for p in mechanism.declared)
    check_values(declared, mechanism.values)
    return replace(
        mechanism,
        support=mechanism.support.substitute(rules),
        source=mechanism.source.substitute(rules),
        sampling=mechanism.sampling.substitute(rules) if mechanism.sampling else None,
        declared=declared,
        template=_renamed(mechanism.template, rules) if mechanism.template else None,
    )


def comparisons(mechanism: Mechanism) -> tuple[str, ...]:
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
    own = [p.symbol for p in declared if isinstance(p.symbol, AssumedSymbol)]
    found = {symbol: symbol.moved(values) for symbol in own if symbol not in values}
    return {symbol: other for symbol, other in found.items() if other != symbol}


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


def _symbols(
    declared: Sequence[Parameter], assume: Mapping[str, str]
) -> dict[sp.Symbol, AssumedSymbol]:
    """Return the new symbol of each assumed parameter; those whose ends are numbers come first."""
    known = {p.name: p for p in declared}
    if not isinstance(assume, Mapping):
        raise InputError("assume must be a table such as {'w': '> 1/2'}")
    read: dict[str, tuple[End, ...]] = {}
    for name, text in assume.items():
        if name not in known:
            hint = suggestion(str(name), known) or f" (known are {', '.join(known) or 'none'})"
            raise InputError(f"there is no parameter {shorten(str(name))}{hint}")
        read[name] = _ends(known[name], text, {p.name: p.symbol for p in declared})
    rules: dict[sp.Symbol, AssumedSymbol] = {}
    for name in sorted(read, key=lambda n: any(end.value.free_symbols for end in read[n])):
        for other in sorted({str(s.name) for end in read[name] for s in end.value.free_symbols}):
            if any(end.value.free_symbols for end in read.get(other, ())):
                raise InputError(
                    f"{name} is compared with {other}, which is itself compared with a "
                    "parameter; compare one of them with a number"
                )
        symbol = known[name].symbol
        made = AssumedSymbol(str(symbol.name), read[name], **symbol._assumptions_orig)
        rules[symbol] = made.moved(rules)
    return rules


def _ends(parameter: Parameter, text: object, symbols: Mapping[str, sp.Symbol]) -> tuple[End, ...]:
    name = parameter.name
    if not isinstance(text, str):
        raise InputError(f"{name} must be a text such as '> 1/2', not {text!r:.40}")
    ends = tuple(_end(name, part, symbols) for part in text.split(","))
    if len({end.is_lower for end in ends}) < len(ends):
        raise InputError(f"{name} has two ends on one side in {shorten(text)!r}; keep one")
    for end in ends:
        _check_domain(parameter, end)
    return ends


def _end(name: str, text: str, symbols: Mapping[str, sp.Symbol]) -> End:
    found = _SHAPE.fullmatch(text.strip())
    rule = (
        f"{name} must be >, >=, < or <= and a number, a ratio or a multiple of another "
        f"parameter, such as '> 1/2', not {shorten(text.strip())!r}"
    )
    if found is None:
        raise InputError(rule)
    others = {other: symbol for other, symbol in symbols.items() if other != name}
    try:
        value = parse(found[2], others)
    except InputError as error:
        raise InputError(f"{rule}: {error}") from None
    factor, rest = value.as_coeff_Mul()
    if not factor.is_Rational or not (rest == 1 or rest in others.values()):
        raise InputError(rule)
    if symbols[name].is_integer and not (value.is_integer or value.is_Rational):
        raise InputError(f"{name} is a whole number; compare it with whole numbers")
    return End(value, found[1].startswith(">"), "=" not in found[1])


def _check_domain(parameter: Parameter, end: End) -> None:
    """Refuse an end that leaves nothing of the parameter's own domain."""
    if end.value.free_symbols:
        return
    low, high = parameter.bounds
    beyond = high - end.value if end.is_lower else end.value - low
    if sign_of(beyond) <= 0:
        raise InputError(
            f"{parameter.name} {end} leaves nothing, for {parameter.name} must be {parameter.rule}"
        )
