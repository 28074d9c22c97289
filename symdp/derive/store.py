"""Closed forms kept between sessions: plain text on disk, read back by a whitelist.

An entry holds SymPy `srepr` texts (`symdp.user_cache` keeps the files). Nothing of it is ever run:
its texts are parsed, and each node must be on a list. Nor is it believed: whoever recalls a closed
form compares it with an integral.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp import user_cache
from symdp.derive.records import CGF
from symdp.user_cache import file_for

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_LARGEST_ARGUMENT = 10_000  # of a power or a factorial that is read back
_FACTS = {"commutative", "real", "positive", "negative", "nonnegative", "nonpositive", "integer"}
_GROWING = {"Pow", "factorial", "gamma", "binomial", "beta", "legendre"}

_FUNCTIONS = (
    *(sp.Add, sp.Mul, sp.Pow, sp.Abs, sp.Min, sp.Max, sp.exp, sp.log, sp.erf, sp.erfc),
    *(sp.sinh, sp.cosh, sp.tanh, sp.coth, sp.sech, sp.csch, sp.sin, sp.cos, sp.tan, sp.atan),
    *(sp.gamma, sp.loggamma, sp.beta, sp.zeta, sp.besseli, sp.besselk, sp.legendre, sp.hyper),
    *(sp.factorial, sp.binomial, sp.Piecewise, sp.Gt, sp.Ge, sp.Lt, sp.Le, sp.Eq),
    *(sp.And, sp.Or, sp.Not, sp.Tuple),
)
_HEADS: dict[str, Callable[..., Any]] = {
    **{head.__name__: head for head in _FUNCTIONS},
    "ExprCondPair": sp.functions.elementary.piecewise.ExprCondPair,
}
_ATOMS: dict[str, sp.Basic] = {
    "oo": sp.oo,
    "pi": sp.pi,
    "E": sp.E,
    "I": sp.I,
    "true": sp.true,
    "false": sp.false,
}


class _UnreadableError(ValueError):
    """A text that is no expression of the whitelist."""


def read_expression(text: str) -> sp.Basic:
    """Build the expression of an `srepr` text without running it.

    Raises
    ------
    ValueError
        For anything but calls of listed functions with numbers, symbols and such calls.

    Examples
    --------
    >>> t = sp.Symbol("t", real=True)
    >>> read_expression(sp.srepr(sp.log(t**2 + sp.Rational(1, 3))))
    log(t**2 + 1/3)
    """
    try:
        return _build(ast.parse(text, mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError, TypeError, AttributeError) as error:
        raise _UnreadableError(str(error)) from error


def _build(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id in _ATOMS:
        return _ATOMS[node.id]
    if isinstance(node, ast.UnaryOp) and ast.unparse(node) == "-oo":
        return -sp.oo
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise _UnreadableError(ast.dump(node)[:80])
    name = node.func.id
    if name in {"Integer", "Rational"} and not node.keywords:
        return getattr(sp, name)(*(_whole(part) for part in node.args))
    if name == "Symbol":
        return sp.Symbol(_constant(node.args[0], str), **_assumptions(node))
    if name not in _HEADS or node.keywords:
        raise _UnreadableError(f"{name} is not on the list")
    parts = [_build(part) for part in node.args]
    if name in _GROWING and any(
        p.is_Integer and abs(p) > _LARGEST_ARGUMENT for p in parts[name == "Pow" :]
    ):
        raise _UnreadableError(f"{name} of a number that large")
    if name == "Mul" and len(parts) == 2 and parts[0].is_Rational and parts[1].is_Add:
        return sp.Mul(*parts, evaluate=False)  # SymPy would multiply (t + 1)/2 out
    return _HEADS[name](*parts)


def _whole(node: ast.expr) -> int:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -int(_constant(node.operand, int))
    return int(_constant(node, int))


def _constant(node: ast.expr, kind: type) -> Any:
    if not isinstance(node, ast.Constant) or type(node.value) is not kind:
        raise _UnreadableError(ast.dump(node)[:80])
    return node.value


def _assumptions(node: ast.Call) -> dict[str, bool]:
    facts = {str(word.arg): _constant(word.value, bool) for word in node.keywords}
    if len(node.args) != 1 or not set(facts) <= _FACTS:
        raise _UnreadableError("an unknown assumption")
    return facts


def entry(pair: Pair, below_one: tuple[str, ...]) -> Path | None:
    """Return the file of a pair's CGF, None where the cache is off."""
    expressions = (sp.srepr(part) for part in pair.expressions())
    return file_for("cgf", pair.support.kind, *below_one, "", *expressions)


def recall(path: Path) -> CGF | None:
    """Return a stored CGF; None where there is none, or none that can be read."""
    try:
        return _decoded(user_cache.recall(path))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def keep(path: Path, cgf: CGF) -> None:
    """Store a CGF; nothing happens where the disk or an expression refuses."""
    try:
        data = _encoded(cgf)
        if _decoded(data) != cgf:
            return
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return
    user_cache.keep(path, data)


def _encoded(cgf: CGF) -> dict[str, Any]:
    return {
        "tilt": sp.srepr(cgf.tilt),
        "expression": None if cgf.expression is None else sp.srepr(cgf.expression),
        "form": cgf.form,
        "domain": None if cgf.domain is None else [sp.srepr(end) for end in cgf.domain],
        "checked_at": [sp.srepr(at) for at in cgf.checked_at],
        "parameters_checked": [
            [[name, sp.srepr(value)] for name, value in row] for row in cgf.parameters_checked
        ],
        "reason": cgf.reason,
        "removable": [sp.srepr(at) for at in cgf.removable],
        "domain_is_numeric": cgf.domain_is_numeric,
    }


def _decoded(data: Any) -> CGF:
    def several(texts: Any) -> tuple[Any, ...]:
        return tuple(read_expression(text) for text in texts)

    tilt = read_expression(data["tilt"])
    expression = None if data["expression"] is None else read_expression(data["expression"])
    form, domain = data["form"], data["domain"]
    reason = data["reason"]
    ends = None if domain is None else several(domain)
    known = {"closed": expression is not None, "numeric": expression is None}
    parts = (expression, *(ends or ()))
    if not all(part is None or isinstance(part, sp.Expr) for part in parts):
        raise _UnreadableError("no function")
    if not isinstance(tilt, sp.Symbol) or not known.get(form) or not isinstance(reason, str):
        raise _UnreadableError("no CGF")
    if ends is not None and len(ends) != 2:
        raise _UnreadableError("no domain")
    return CGF(
        tilt,
        expression,
        form,
        ends,
        several(data["checked_at"]),
        tuple(
            tuple((str(name), read_expression(value)) for name, value in row)
            for row in data["parameters_checked"]
        ),
        reason,
        several(data["removable"]),
        data["domain_is_numeric"] is True,
    )
