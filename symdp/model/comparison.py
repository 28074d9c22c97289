"""Reading assumptions: a text such as '> 1/s' for a parameter, or a comparison of two formulas.

Each becomes an end of one parameter, so that no two parameters wait for each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import sympy as sp

from symdp.errors import InputError, at, suggestion
from symdp.exact_number import shorten
from symdp.model.assumption import AssumedSymbol, End, check_values
from symdp.model.guarded import sign_of
from symdp.model.parser import parse
from symdp.model.record import MechanismRecord
from symdp.model.sampling import Parameter

M = TypeVar("M", bound=MechanismRecord)

_SHAPE = re.compile(r"(>=|<=|>|<)\s*([^<>=]+)")
_COMPARISON = re.compile(r"([^<>=]+)(>=|<=|>|<)([^<>=]+)")
_TURNED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}


def assumed(mechanism: M, assume: Mapping[str, str] | Sequence[str] | None) -> M:
    """Return a mechanism under assumptions; see `Mechanism.assuming`."""
    return _renamed(mechanism, _symbols(mechanism.declared, assume)) if assume else mechanism


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


def _symbols(
    declared: Sequence[Parameter], assume: Mapping[str, str] | Sequence[str]
) -> dict[sp.Symbol, AssumedSymbol]:
    """Return the new symbol of each assumed parameter, those that others hold first."""
    known = {p.name: p for p in declared}
    plain = {p.name: _plain(p.symbol) for p in declared}
    read = {
        p.name: [replace(e, value=e.value.xreplace(_plain_symbols(e.value))) for e in p.symbol.ends]
        for p in declared
        if isinstance(p.symbol, AssumedSymbol)
    }
    if isinstance(assume, Mapping):
        for name, text in assume.items():
            if name not in known:
                hint = suggestion(str(name), known) or f" (known are {', '.join(known) or 'none'})"
                raise InputError(f"there is no parameter {shorten(str(name))}{hint}")
            read[name] = _merged(name, read.get(name, []), _ends(known[name], text, plain))
    elif isinstance(assume, str) or not isinstance(assume, Sequence):
        raise InputError("assume must be a table such as {'w': '> 1/2'}, or a list of comparisons")
    else:
        for text in assume:
            _take_comparison(text, known, plain, read)
    rules: dict[sp.Symbol, AssumedSymbol] = {}
    waiting = list(read)
    while waiting:
        ready = [n for n in waiting if not _names(read[n]) & set(waiting)]
        if not ready:
            names = " and ".join(sorted(waiting))
            raise InputError(f"{names} are compared with each other in a circle; leave one out")
        for name in ready:
            symbol = known[name].symbol
            made = AssumedSymbol(name, tuple(read[name]), **symbol._assumptions_orig)
            rules[symbol] = made.moved({plain[str(s.name)]: s for s in rules.values()})
            waiting.remove(name)
    return rules


def _plain(symbol: sp.Symbol) -> sp.Symbol:
    """Return a symbol of the same name and sign without ends, to read formulas with."""
    if not isinstance(symbol, AssumedSymbol):
        return symbol
    return sp.Symbol(symbol.name, **symbol._assumptions_orig)


def _plain_symbols(expression: sp.Expr) -> dict[sp.Symbol, sp.Symbol]:
    return {symbol: _plain(symbol) for symbol in expression.free_symbols}


def _names(ends: Sequence[End]) -> set[str]:
    return {str(symbol.name) for end in ends for symbol in end.value.free_symbols}


def _merged(name: str, old: Sequence[End], new: Sequence[End]) -> list[End]:
    """Return the ends of both; of two on one side the narrower one, where that is certain."""
    ends = list(old)
    for end in new:
        other = next((e for e in ends if e.is_lower == end.is_lower), None)
        if other is None:
            ends.append(end)
            continue
        gap = end.value - other.value if end.is_lower else other.value - end.value
        if gap.is_positive or (gap.is_zero and end.is_open):
            ends[ends.index(other)] = end
        elif not gap.is_nonpositive:
            raise InputError(f"{name} {other} and {name} {end}: which is narrower is not certain")
    return ends


def _take_comparison(
    text: object,
    known: Mapping[str, Parameter],
    symbols: Mapping[str, sp.Symbol],
    read: dict[str, list[End]],
) -> None:
    """Put a comparison of two expressions among the ends of the parameter that it solves for."""
    found = _COMPARISON.fullmatch(text.strip()) if isinstance(text, str) else None
    rule = f"an assumption compares two formulas of parameters, such as 'a > c', not {text!r:.60}"
    if found is None:
        raise InputError(rule)
    with at(rule):
        gap = parse(found[1], symbols) - parse(found[3], symbols)
    refusal = f"{text!r:.60} cannot be solved for a parameter; write one that is linear in one"
    solved = {}
    for name in sorted({str(s.name) for s in gap.free_symbols}):
        factor, rest = _linear(gap, symbols[name])
        if factor is not None and rest is not None:
            operator = found[2] if factor.is_positive else _TURNED[found[2]]
            solved[name] = End(sp.cancel(-rest / factor), ">" in operator, "=" not in operator)
    # a < b as b > a where it can be, so that a < b, b < c and 1 < a make one chain.
    for name, end in sorted(solved.items(), key=lambda item: not item[1].is_lower):
        try:
            _check_end(known[name], end)
            ends = _merged(name, read.get(name, []), [end])
        except InputError as error:
            refusal = str(error)
            continue
        if not _in_circle(name, {**read, name: ends}):
            read[name] = ends
            return
    raise InputError(refusal)


def _linear(gap: sp.Expr, symbol: sp.Symbol) -> tuple[sp.Expr, sp.Expr] | tuple[None, None]:
    """Return a and b of gap = a·symbol + b, a of one sign; two None where it is not so."""
    expanded = sp.expand(gap)
    factor = sp.factor_terms(sp.diff(expanded, symbol))
    rest = sp.expand(expanded - factor * symbol)
    if symbol in factor.free_symbols | rest.free_symbols:
        return None, None
    return (factor, rest) if factor.is_positive or factor.is_negative else (None, None)


def _in_circle(name: str, read: Mapping[str, Sequence[End]]) -> bool:
    seen, waiting = set[str](), _names(read[name])
    while waiting:
        seen |= waiting
        waiting = set().union(*(_names(read.get(other, ())) for other in waiting)) - seen
    return name in seen


def _ends(parameter: Parameter, text: object, symbols: Mapping[str, sp.Symbol]) -> tuple[End, ...]:
    name = parameter.name
    if not isinstance(text, str):
        raise InputError(f"{name} must be a text such as '> 1/2', not {text!r:.40}")
    ends = tuple(_end(name, part, symbols) for part in _parts(text))
    if len({end.is_lower for end in ends}) < len(ends):
        raise InputError(f"{name} has two ends on one side in {shorten(text)!r}; keep one")
    for end in ends:
        _check_end(parameter, end)
    return ends


def _parts(text: str) -> list[str]:
    """Split at the commas before an operator: those of max(1, s) stay."""
    return re.split(r",(?=\s*[<>])", text)


def _end(name: str, text: str, symbols: Mapping[str, sp.Symbol]) -> End:
    found = _SHAPE.fullmatch(text.strip())
    rule = (
        f"{name} must be >, >=, < or <= and a number or a formula of other parameters, "
        f"such as '> 1/2', not {shorten(text.strip())!r}"
    )
    if found is None:
        raise InputError(rule)
    with at(rule):
        value = parse(found[2], {n: symbol for n, symbol in symbols.items() if n != name})
    return End(value, found[1].startswith(">"), "=" not in found[1])


def _check_end(parameter: Parameter, end: End) -> None:
    """Refuse an end that a whole number cannot have, or that leaves nothing of the domain."""
    if parameter.symbol.is_integer and not (end.value.is_integer or end.value.is_Rational):
        raise InputError(f"{parameter.name} is a whole number; compare it with whole numbers")
    _check_domain(parameter, end)


def _check_domain(parameter: Parameter, end: End) -> None:
    """Refuse an end that leaves nothing of the parameter's own domain."""
    low, high = parameter.bounds
    beyond = high - end.value if end.is_lower else end.value - low
    nothing = beyond.is_nonpositive if beyond.free_symbols else sign_of(beyond) <= 0
    if nothing:
        raise InputError(
            f"{parameter.name} {end} leaves nothing, for {parameter.name} must be {parameter.rule}"
        )
