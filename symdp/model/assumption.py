"""What a file assumes of its parameters: w > 1/2 or c > 1/s, which orders the pieces of a loss.

An assumption lives in the parameter's symbol, so that whatever decides a sign can use it and no
state changes an answer.

It is read from a text such as '> 1/s' for a parameter, or from a comparison of two formulas: each
becomes an end of one parameter, so that no two parameters wait for each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import sympy as sp

from symdp.errors import InputError, at, suggestion
from symdp.exact_number import shorten
from symdp.model import tidy
from symdp.model.reading.guarded import sign_of
from symdp.model.reading.parser import parse
from symdp.model.sampling import MechanismRecord, Parameter

_MOST_ENDS = 2  # a lower and an upper one
M = TypeVar("M", bound=MechanismRecord)
_SHAPE = re.compile(r"(>=|<=|>|<)\s*([^<>=]+)")
_COMPARISON = re.compile(r"([^<>=]+)(>=|<=|>|<)([^<>=]+)")
_TURNED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}


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
        if side == 0:
            return not self.is_open
        return side == (1 if self.is_lower else -1)

    def __str__(self) -> str:
        return f"{self.operator} {self.value}"


class AssumedSymbol(sp.Symbol):  # type: ignore[misc]
    """The symbol of a parameter that is assumed to lie beyond an end, or between two."""

    __slots__ = ("ends",)
    ends: tuple[End, ...]

    def __new__(cls, name: str, ends: tuple[End, ...], **assumptions: bool) -> AssumedSymbol:
        """Return the symbol; that it is positive or negative follows where an end has a sign."""
        for end in ends:
            fact = "positive"
            beyond = end.value
            if not end.is_lower:
                fact = "negative"
                beyond = -end.value
            if beyond.free_symbols:
                has_sign = beyond.is_positive or (end.is_open and beyond.is_nonnegative)
            else:
                sign = sign_of(beyond)
                has_sign = sign > 0 or (sign == 0 and end.is_open)
            if has_sign:
                assumptions[fact] = True
        symbol: AssumedSymbol = sp.Symbol.__xnew__(cls, name, **assumptions)
        symbol.ends = ends
        return symbol

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
        lower = next((end for end in self.ends if end.is_lower), None)
        upper = next((end for end in self.ends if not end.is_lower), None)
        return lower, upper

    @property
    def compared_with(self) -> set[sp.Symbol]:
        """The parameters that its ends hold, and those that the ends of these hold."""
        symbols = {symbol for end in self.ends for symbol in end.value.free_symbols}
        further = (s.compared_with for s in symbols if isinstance(s, AssumedSymbol))
        return symbols.union(*further)

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
        # No parameter has such a name.  A whole number stays one only beyond a single end.
        name = f"{self.name}+"
        sign = "positive"
        if closed:
            sign = "nonnegative"
        free = sp.Symbol(name, **{sign: True})
        if low is None:
            assert high is not None
            return high.value - free
        if high is None or len(closed) == _MOST_ENDS or self.is_integer:
            facts = {"positive" if low.is_open else "nonnegative": True}
            if self.is_integer and low.value.is_integer:
                facts["integer"] = True
            return low.value + sp.Symbol(name, **facts)
        first = low.value
        last = high.value
        if closed == [high]:
            (first, last) = (last, first)
        return (first + free * last) / (1 + free)

    def moved(self, rules: Mapping[sp.Symbol, sp.Expr]) -> AssumedSymbol:
        """Return the symbol with other symbols or values in its ends."""
        ends = tuple(replace(end, value=end.value.xreplace(rules)) for end in self.ends)
        if ends == self.ends:
            return self
        return AssumedSymbol(self.name, ends, **self._assumptions_orig)


def released(expression: sp.Expr) -> sp.Expr:
    """Return an expression whose assumed parameters are written in free positive symbols."""
    assumed = expression.atoms(AssumedSymbol)
    while assumed:
        expression = expression.xreplace({symbol: symbol.released() for symbol in assumed})
        assumed = expression.atoms(AssumedSymbol)
    return expression


def comparisons(mechanism: MechanismRecord) -> tuple[str, ...]:
    """Return what is assumed of parameters without values; see `Mechanism.assumptions`."""
    return tuple(f"{left} {operator} {right}" for left, operator, right in compared(mechanism))


def compared(mechanism: MechanismRecord) -> tuple[tuple[sp.Expr, str, sp.Expr], ...]:
    """Return what is assumed of parameters without values: two formulas, and how they compare."""
    values = mechanism.values
    with_values = {p.symbol: values[p.name] for p in mechanism.declared if p.name in values}
    listed = []
    for p in mechanism.declared:
        if not isinstance(p.symbol, AssumedSymbol):
            continue
        left = values.get(p.name, p.symbol)
        for end in p.symbol.ends:
            right = end.value.xreplace(with_values)
            if left.free_symbols or right.free_symbols:
                listed.append((left, end.operator, right))
    return tuple(listed)


def moved(
    declared: Sequence[Parameter], values: Mapping[sp.Symbol, sp.Expr]
) -> dict[sp.Symbol, AssumedSymbol]:
    """Return new symbols of the assumed parameters whose ends hold a parameter that has a value."""
    assumed = {p.symbol for p in declared if isinstance(p.symbol, AssumedSymbol)} - set(values)
    symbols: dict[sp.Symbol, AssumedSymbol] = {}
    # One that is compared with another holds that one as well, and all that it is compared with.
    for symbol in sorted(assumed, key=lambda s: (len(s.compared_with), s.name)):
        other = symbol.moved({**values, **symbols})
        if other != symbol:
            symbols[symbol] = other
    return symbols


def check_values(declared: Sequence[Parameter], values: Mapping[str, sp.Expr]) -> None:
    """Check values against the assumptions that hold numbers alone once they are put in."""
    bound = {p.symbol: values[p.name] for p in declared if p.name in values}
    for p in declared:
        if not isinstance(p.symbol, AssumedSymbol):
            continue
        symbol = p.symbol.moved(bound)
        _check_order(symbol)
        if p.name not in values:
            continue
        value = values[p.name]
        for end, end_now in zip(p.symbol.ends, symbol.ends, strict=True):
            if end_now.value.free_symbols or end_now.holds(value):
                continue
            now = ""
            if end_now != end:
                now = f", which is {end_now.value} here"
            raise InputError(
                f"{p.name}={value!s:.60} breaks the assumption {p.name} {end}{now}:"
                " give another value, or change [assume]"
            )


def allows(mechanism: MechanismRecord, name: str, value: sp.Expr) -> bool:
    """Whether a free parameter may have a value, by its domain and what is assumed."""
    parameter = next(p for p in mechanism.declared if p.name == name)
    try:
        parameter.checked(value)
        check_values(mechanism.declared, {**mechanism.values, name: value})
    except InputError:
        return False
    return True


def numeric_ends(mechanism: MechanismRecord, name: str) -> tuple[sp.Expr, ...]:
    """Return the ends that are assumed of a parameter and are numbers, the lower one first."""
    symbol = next(p.symbol for p in mechanism.declared if p.name == name)
    if not isinstance(symbol, AssumedSymbol):
        return ()
    values = mechanism.values
    bound = {p.symbol: values[p.name] for p in mechanism.declared if p.name in values}
    ends = [end for end in symbol.moved(bound).both_ends if end is not None]
    return tuple(end.value for end in ends if not end.value.free_symbols)


def _check_order(symbol: AssumedSymbol) -> None:
    low, high = symbol.both_ends
    if low is None or high is None:
        return
    width = high.value - low.value
    if width.free_symbols:
        return
    if sign_of(width) <= 0:  # a single value is bound, not assumed
        raise InputError(f"no {symbol.name} is both {low} and {high}")


def assumed(mechanism: M, assume: Mapping[str, str] | Sequence[str] | None) -> M:
    """Return a mechanism under assumptions; see `Mechanism.assuming`."""
    if assume:
        return _renamed(mechanism, _assumed_symbols(mechanism.declared, assume))
    return mechanism


def _renamed(mechanism: M, rules: Mapping[sp.Symbol, sp.Symbol]) -> M:
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


def _assumed_symbols(
    declared: Sequence[Parameter], assume: Mapping[str, str] | Sequence[str]
) -> dict[sp.Symbol, AssumedSymbol]:
    """Return the new symbol of each assumed parameter, those that others hold first."""
    by_name = {p.name: p for p in declared}
    plain = {p.name: _without_ends(p.symbol) for p in declared}
    ends_by_name: dict[str, list[End]] = {}
    for p in declared:
        if isinstance(p.symbol, AssumedSymbol):
            ends_by_name[p.name] = [_plain_end(end) for end in p.symbol.ends]
    if isinstance(assume, Mapping):
        for name, text in assume.items():
            if name not in by_name:
                names = ", ".join(by_name) or "none"
                hint = suggestion(str(name), by_name) or f" (known are {names})"
                raise InputError(f"there is no parameter {shorten(str(name))}{hint}")
            old = ends_by_name.get(name, [])
            new = _read_ends(by_name[name], text, plain)
            ends_by_name[name] = _merged_ends(name, old, new, _assuming(by_name))
    elif isinstance(assume, str) or not isinstance(assume, Sequence):
        raise InputError("assume must be a table such as {'w': '> 1/2'}, or a list of comparisons")
    else:
        for text in assume:
            _take_comparison(text, by_name, plain, ends_by_name)
    rules: dict[sp.Symbol, AssumedSymbol] = {}
    waiting = list(ends_by_name)
    while waiting:
        ready = [n for n in waiting if not _names_in_ends(ends_by_name[n]) & set(waiting)]
        if not ready:
            names = " and ".join(sorted(waiting))
            raise InputError(f"{names} are compared with each other in a circle; leave one out")
        for name in ready:
            symbol = by_name[name].symbol
            restricted = AssumedSymbol(name, tuple(ends_by_name[name]), **symbol._assumptions_orig)
            restricted_before = {plain[str(other.name)]: other for other in rules.values()}
            rules[symbol] = restricted.moved(restricted_before)
            waiting.remove(name)
    return rules


def _without_ends(symbol: sp.Symbol) -> sp.Symbol:
    """Return a symbol of the same name and sign without ends, to read formulas with."""
    if not isinstance(symbol, AssumedSymbol):
        return symbol
    return sp.Symbol(symbol.name, **symbol._assumptions_orig)


def _plain_end(end: End) -> End:
    """Return an end whose formula holds plain symbols."""
    plain = {symbol: _without_ends(symbol) for symbol in end.value.free_symbols}
    return replace(end, value=end.value.xreplace(plain))


def _assuming(known: Mapping[str, Parameter]) -> dict[sp.Symbol, sp.Symbol]:
    """Return for the plain symbol of each parameter the one that carries what is assumed of it."""
    return {_without_ends(p.symbol): p.symbol for p in known.values()}


def _names_in_ends(ends: Sequence[End]) -> set[str]:
    return {str(symbol.name) for end in ends for symbol in end.value.free_symbols}


def _merged_ends(
    name: str, old: Sequence[End], new: Sequence[End], symbols: Mapping[sp.Symbol, sp.Symbol]
) -> list[End]:
    """Return the ends of both; of two on one side the narrower one, where that is certain.

    `symbols`: for the plain symbol of each parameter the one that carries what is assumed of it.
    """
    ends = list(old)
    for end in new:
        other = next((e for e in ends if e.is_lower == end.is_lower), None)
        if other is None:
            ends.append(end)
            continue
        narrowing = other.value - end.value
        if end.is_lower:
            narrowing = end.value - other.value
        gap = tidy.bounded(sp.cancel, released(narrowing.xreplace(symbols)))
        if gap.is_positive or (gap.is_zero and end.is_open):
            ends[ends.index(other)] = end
        elif not gap.is_nonpositive:
            raise InputError(f"{name} {other} and {name} {end}: which is narrower is not certain")
    return ends


def _take_comparison(
    text: object,
    by_name: Mapping[str, Parameter],
    symbols: Mapping[str, sp.Symbol],
    ends_by_name: dict[str, list[End]],
) -> None:
    """Put a comparison of two expressions among the ends of the parameter that it solves for."""
    match = None
    if isinstance(text, str):
        match = _COMPARISON.fullmatch(text.strip())
    rule = f"an assumption compares two formulas of parameters, such as 'a > c', not {text!r:.60}"
    if match is None:
        raise InputError(rule)
    left, operator, right = match[1], match[2], match[3]
    with at(rule):
        gap = parse(left, symbols) - parse(right, symbols)
    refusal = f"{text!r:.60} cannot be solved for a parameter; write one that is linear in one"
    solved = {}
    for name in sorted({str(s.name) for s in gap.free_symbols}):
        factor, constant = _linear(gap, symbols[name])
        if factor is None or constant is None:
            continue
        turned = operator if factor.is_positive else _TURNED[operator]
        value = tidy.bounded(sp.cancel, -constant / factor)
        solved[name] = End(value, ">" in turned, "=" not in turned)
    # a < b as b > a where it can be, so that a < b, b < c and 1 < a make one chain.
    for name, end in sorted(solved.items(), key=lambda item: not item[1].is_lower):
        try:
            _check_end(by_name[name], end)
            old = ends_by_name.get(name, [])
            ends = _merged_ends(name, old, [end], _assuming(by_name))
        except InputError as error:
            refusal = str(error)
            continue
        if not _in_circle(name, {**ends_by_name, name: ends}):
            ends_by_name[name] = ends
            return
    raise InputError(refusal)


def _linear(gap: sp.Expr, symbol: sp.Symbol) -> tuple[sp.Expr, sp.Expr] | tuple[None, None]:
    """Return a and b of gap = a·symbol + b, a of one sign; two None where it is not so."""
    expanded = sp.expand(gap)
    factor = sp.factor_terms(sp.diff(expanded, symbol))
    constant = sp.expand(expanded - factor * symbol)
    if symbol in factor.free_symbols | constant.free_symbols:
        return None, None
    if factor.is_positive or factor.is_negative:
        return (factor, constant)
    return (None, None)


def _in_circle(name: str, ends_by_name: Mapping[str, Sequence[End]]) -> bool:
    seen = set[str]()
    waiting = _names_in_ends(ends_by_name[name])
    while waiting:
        seen |= waiting
        following = set[str]()
        for other in waiting:
            following |= _names_in_ends(ends_by_name.get(other, ()))
        waiting = following - seen
    return name in seen


def _read_ends(
    parameter: Parameter, text: object, symbols: Mapping[str, sp.Symbol]
) -> tuple[End, ...]:
    name = parameter.name
    if not isinstance(text, str):
        raise InputError(f"{name} must be a text such as '> 1/2', not {text!r:.40}")
    # Split at the commas before an operator: those of max(1, s) stay.
    ends = tuple(_read_end(name, part, symbols) for part in re.split(r",(?=\s*[<>])", text))
    if len({end.is_lower for end in ends}) < len(ends):
        raise InputError(f"{name} has two ends on one side in {shorten(text)!r}; keep one")
    for end in ends:
        _check_end(parameter, end)
    return ends


def _read_end(name: str, text: str, symbols: Mapping[str, sp.Symbol]) -> End:
    match = _SHAPE.fullmatch(text.strip())
    rule = (
        f"{name} must be >, >=, < or <= and a number or a formula of other parameters, "
        f"such as '> 1/2', not {shorten(text.strip())!r}"
    )
    if match is None:
        raise InputError(rule)
    with at(rule):
        value = parse(match[2], {n: symbol for n, symbol in symbols.items() if n != name})
    return End(value, match[1].startswith(">"), "=" not in match[1])


def _check_end(parameter: Parameter, end: End) -> None:
    """Refuse an end that a whole number cannot have, or that leaves nothing of the domain."""
    name = parameter.name
    if parameter.symbol.is_integer and not (end.value.is_integer or end.value.is_Rational):
        raise InputError(f"{name} is a whole number; compare it with whole numbers")
    low, high = parameter.bounds
    room = end.value - low
    if end.is_lower:
        room = high - end.value
    if room.free_symbols:
        is_empty = room.is_nonpositive
    else:
        is_empty = sign_of(room) <= 0
    if is_empty:
        raise InputError(f"{name} {end} leaves nothing, for {name} must be {parameter.rule}")
