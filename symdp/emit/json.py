"""Expressions as JSON that reads back exactly: a list of nodes, each built from earlier ones.

A node is ["Symbol", name, assumptions], ["Integer", digits], ["Rational", digits, digits],
["Constant", name], ["Function", name, places] for an undefined function, or [head, places]; places
are those of the operands in the same list. The reader knows its heads by a whitelist, evaluates
nothing and runs no text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import sympy as sp
from sympy.core.assumptions import _assume_defined
from sympy.core.function import AppliedUndef
from sympy.functions.elementary.piecewise import ExprCondPair

from symdp.emit.log_sum_exp import hyperu
from symdp.emit.mass import MassIntegral, MassSum
from symdp.errors import InputError, suggestion

_MOST_NODES = 200_000
_MOST_DIGITS = 4_000  # decimal; Python refuses longer ones
_CONSTANTS: dict[str, sp.Basic] = {
    "pi": sp.pi, "E": sp.E, "I": sp.I, "oo": sp.oo, "-oo": -sp.oo, "zoo": sp.zoo, "nan": sp.nan,
    "EulerGamma": sp.EulerGamma, "Catalan": sp.Catalan, "GoldenRatio": sp.GoldenRatio,
    "true": sp.true, "false": sp.false,
}  # fmt: skip
_NAMES = {constant: name for name, constant in _CONSTANTS.items()}
_EXACT_ORDER = (sp.Add, sp.Mul)  # keep the order of their operands
_UNEVALUATED = (
    sp.Sum, sp.Integral, sp.Product, sp.Tuple, sp.hyper, sp.meijerg, ExprCondPair,
    MassIntegral, MassSum,
)  # fmt: skip
_RELATIONS = (
    sp.Eq, sp.Ne, sp.Lt, sp.Le, sp.Gt, sp.Ge, sp.And, sp.Or, sp.Not, sp.Pow, sp.Piecewise,
    sp.Max, sp.Min, hyperu,
)  # fmt: skip
# What SymPy's constructors raise about operands that they cannot take.
_REFUSALS = (TypeError, ValueError, AttributeError, IndexError, ArithmeticError)


@cache
def _heads() -> dict[str, type[sp.Basic]]:
    from sympy import functions

    listed = (getattr(functions, name) for name in functions.__all__)
    sympy_functions = {
        f.__name__: f for f in listed if isinstance(f, type) and issubclass(f, sp.Function)
    }
    return sympy_functions | {
        head.__name__: head for head in (*_EXACT_ORDER, *_UNEVALUATED, *_RELATIONS)
    }


def write_expressions(expressions: Mapping[str, sp.Basic]) -> dict[str, Any]:
    """Return {"nodes": [...], "roots": {name: place}}; what expressions share is written once.

    >>> x = sp.Symbol("x", positive=True)
    >>> written = write_expressions({"loss": sp.exp(x)})
    >>> written["nodes"]
    [['Symbol', 'x', {'positive': True}], ['exp', [0]]]
    >>> read_expressions(written)["loss"] == sp.exp(x)
    True
    """
    writer = _Writer()
    roots = {name: writer.place(expression) for name, expression in expressions.items()}
    return {"nodes": writer.nodes, "roots": roots}


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[list[Any]] = []
        self._places: dict[sp.Basic, int] = {}

    def place(self, expression: sp.Basic) -> int:
        # Without recursion: a long expression may be deep.
        waiting = [expression]
        while waiting:
            node = waiting[-1]
            if node in self._places:
                waiting.pop()
                continue
            missing = [part for part in _operands(node) if part not in self._places]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            self.nodes.append(self._fields_of(node))
            self._places[node] = len(self.nodes) - 1
        return self._places[expression]

    def _fields_of(self, node: sp.Basic) -> list[Any]:
        if node in _NAMES and not isinstance(node, sp.Symbol):
            return ["Constant", _NAMES[node]]
        if isinstance(node, sp.Integer):
            return ["Integer", _digits(int(node))]
        if isinstance(node, sp.Rational):
            return ["Rational", _digits(int(node.p)), _digits(int(node.q))]
        if isinstance(node, sp.Symbol) and not isinstance(node, sp.Dummy):
            return ["Symbol", node.name, _assumptions(node)]
        places = [self._places[part] for part in _operands(node)]
        if isinstance(node, AppliedUndef):
            return ["Function", node.func.__name__, places]
        name = type(node).__name__
        if isinstance(node, sp.Tuple):
            name = "Tuple"
        elif isinstance(node, sp.Integral):
            name = "Integral"
        if name not in _heads():
            raise InputError(f"a {name} has no form in JSON here")
        return [name, places]


def _assumptions(symbol: sp.Symbol) -> dict[str, bool]:
    """Return what the symbol was made with, or all that follows from it: both give it back."""
    original = dict(getattr(symbol, "_assumptions_orig", None) or {})
    if sp.Symbol(symbol.name, **original) == symbol:
        return original
    return dict(symbol.assumptions0)


def _operands(node: sp.Basic) -> tuple[sp.Basic, ...]:
    is_leaf = isinstance(node, sp.Number | sp.NumberSymbol | sp.Symbol) or node in _NAMES
    if is_leaf:
        return ()
    if isinstance(node, MassIntegral):
        return tuple(node.parts)
    return tuple(node.args)


def _digits(number: int) -> str:
    if number.bit_length() > 3 * _MOST_DIGITS:
        return hex(number)
    return str(number)


def read_expressions(written: object) -> dict[str, sp.Basic]:
    """Return the expressions that `write_expressions` wrote, symbols included; nothing is trusted.

    InputError for anything that `write_expressions` does not write.
    """
    if not isinstance(written, dict) or set(written) != {"nodes", "roots"}:
        raise InputError("expressions in JSON are an object of 'nodes' and 'roots'")
    nodes = written["nodes"]
    roots = written["roots"]
    if not isinstance(nodes, list) or not isinstance(roots, dict) or len(nodes) > _MOST_NODES:
        raise InputError(f"'nodes' is a list of at most {_MOST_NODES}, and 'roots' an object")
    built: list[sp.Basic] = []
    for index, node in enumerate(nodes):
        try:
            built.append(_node_of(node, built))
        except InputError as error:
            raise InputError(f"node {index}: {error}") from None
        except _REFUSALS:
            raise InputError(f"node {index}: the operands do not fit the head") from None
    return {str(name): _earlier_node(index, built) for name, index in roots.items()}


def _earlier_node(index: object, built: list[sp.Basic]) -> sp.Basic:
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(built):
        raise InputError(f"{index!r:.40} is no place of an earlier node")
    return built[index]


def _node_of(node: object, built: list[sp.Basic]) -> sp.Basic:
    if not isinstance(node, list) or not node or not isinstance(node[0], str):
        raise InputError("a node is a list that starts with its head")
    head, *fields = node
    if head == "Symbol":
        return _symbol(*fields)
    if head == "Integer":
        return sp.Integer(_integer(*fields))
    if head == "Rational":
        numerator, denominator = (_integer(part) for part in fields)
        return sp.Rational(numerator, denominator)
    if head == "Constant":
        if len(fields) != 1 or fields[0] not in _CONSTANTS:
            raise InputError(f"{fields!r:.40} names no constant")
        return _CONSTANTS[fields[0]]
    if head == "Function":
        name, places = fields
        function = sp.Function(_checked_name(name))
        arguments = [_earlier_node(index, built) for index in places]
        return function(*arguments)
    heads = _heads()
    if head not in heads:
        raise InputError(f"the head {head!r:.40} is unknown{suggestion(head, heads)}")
    if len(fields) != 1 or not isinstance(fields[0], list):
        raise InputError("a head is followed by the list of its operands' places")
    (places,) = fields
    operands = [_earlier_node(index, built) for index in places]
    return _with_operands(heads[head], operands)


def _with_operands(head: type[sp.Basic], operands: list[sp.Basic]) -> sp.Basic:
    if head in _EXACT_ORDER:
        if len(operands) < 2 or not all(isinstance(part, sp.Expr) for part in operands):
            raise InputError("a sum or product has two operands or more, all of them numbers")
        return head._from_args(operands)
    if head in _UNEVALUATED:
        return head(*operands)
    return head(*operands, evaluate=False)


def _integer(digits: object) -> int:
    if not isinstance(digits, str) or len(digits) > 100 * _MOST_DIGITS:
        raise InputError("a number is written as a string of digits")
    is_hex = digits.lstrip("-").startswith("0x")
    if is_hex:
        return int(digits, 16)
    return int(digits)


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= 100:
        raise InputError("a name is a string of 1 to 100 characters")
    return name


def _symbol(name: object, assumptions: object) -> sp.Symbol:
    is_valid = isinstance(assumptions, dict) and all(
        fact in _assume_defined and isinstance(truth, bool) for fact, truth in assumptions.items()
    )
    if not is_valid:
        raise InputError("a symbol's assumptions are SymPy's, each true or false")
    assert isinstance(assumptions, dict)
    return sp.Symbol(_checked_name(name), **assumptions)
