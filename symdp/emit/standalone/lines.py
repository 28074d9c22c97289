"""Straight-line programs as lines of C, JavaScript or Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symdp.emit.numpy import compile_numpy
from symdp.emit.steps import Program, Step
from symdp.errors import InputError

_Rule = Callable[[Sequence[str], Any], str]


class NoLinesError(InputError):
    """A program holds an operation that standalone code does not have."""


def _infix(sign: str) -> _Rule:
    return lambda a, _: f" {sign} ".join(f"({part})" for part in a)


def _call(name: str) -> _Rule:
    return lambda a, _: f"{name}({', '.join(a)})"


def _call_of_pairs(name: str) -> _Rule:
    """Return a call in JavaScript, where two pairs have a function that makes no list of them."""

    def rule(a: Sequence[str], _: Any) -> str:
        ending = "_of_two" if len(a) == 4 else ""
        return f"{name}{ending}({', '.join(a)})"

    return rule


def _nested(name: str) -> _Rule:
    def rule(a: Sequence[str], _: Any) -> str:
        first, *rest = a
        for other in rest:
            first = f"{name}({first}, {other})"
        return first

    return rule


def _whole_power(pow_: str) -> _Rule:
    def rule(a: Sequence[str], exponent: Any) -> str:
        if exponent == 2:
            return f"{a[0]} * {a[0]}"
        if exponent == -1:
            return f"1.0 / {a[0]}"
        return f"{pow_}({a[0]}, {exponent}.0)"

    return rule


def _comparison(sign: str) -> _Rule:
    return lambda a, _: f"{a[0]} {sign} {a[1]}"


def _branches(a: Sequence[str], _: Any) -> str:
    chosen = "(0.0 / 0.0)"
    branches = list(zip(a[::2], a[1::2], strict=True))
    for value, condition in reversed(branches):
        chosen = f"({condition} ? {value} : {chosen})"
    return chosen


def _branches_in_python(a: Sequence[str], _: Any) -> str:
    chosen = "np.nan"
    branches = list(zip(a[::2], a[1::2], strict=True))
    for value, condition in reversed(branches):
        chosen = f"np.where({condition}, {value}, {chosen})"
    return chosen


_SHARED: dict[str, _Rule] = {
    "add": _infix("+"),
    "mul": _infix("*"),
    **{
        name: _comparison(sign)
        for name, sign in {
            "lt": "<",
            "le": "<=",
            "gt": ">",
            "ge": ">=",
            "eq": "==",
            "ne": "!=",
        }.items()
    },
}
_SAME = (
    "exp",
    "sqrt",
    "log",
    "log1p",
    "expm1",
    "floor",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
)
# Functions that stand in a file of the runtime of their own, which programs that need none lack.
SPECIAL = (
    "log_besseli",
    "log_besselk",
    "besseli",
    "besselk",
    "erfi",
    "lowergamma",
    "uppergamma",
)
_JAVASCRIPT: dict[str, _Rule] = {
    **_SHARED,
    **{name: _call(name) for name in (*_SAME, "log_ratio", "asin", "acos", "atan")},
    **{name: _call(name) for name in ("asinh", "acosh", "atanh", "erf", "erfc")},
    **{name: _call(name) for name in ("log_erfc", "log_erf_difference", *SPECIAL)},
    "integer_power": _whole_power("pow"),
    "power": _call("pow"),
    "abs": _call("absolute"),
    "sign": lambda a, _: f"({a[0]} > 0.0) - ({a[0]} < 0.0)",
    "ceiling": _call("ceil"),
    "gamma": _call("gamma"),
    "loggamma": _call("lgamma"),
    "max": _nested("maximum"),
    "min": _nested("minimum"),
    "and": _infix("&&"),
    "or": _infix("||"),
    "not": lambda a, _: f"!{a[0]}",
    "piecewise": _branches,
    **{name: _call_of_pairs(name) for name in ("log_sum_exp", "unit_log_sum_exp")},
    "careful": _call("careful"),
}


def _array_call(name: str, each: int) -> _Rule:
    """Return a call in C that passes its numbers as an array."""
    return lambda a, _: f"{name}({len(a) // each}, (const double[]) {{{', '.join(a)}}})"


_C: dict[str, _Rule] = {
    **_JAVASCRIPT,
    "gamma": _call("tgamma"),
    "log_sum_exp": _array_call("log_sum_exp", 2),
    "unit_log_sum_exp": _array_call("unit_log_sum_exp", 2),
    "careful": _array_call("careful", 1),
}
_PYTHON: dict[str, _Rule] = {
    **_SHARED,
    **{name: _call(f"np.{name}") for name in (*_SAME, "sign")},
    **{name: _call(f"np.arc{name[1:]}") for name in ("asin", "acos", "atan")},
    **{name: _call(f"np.arc{name[1:]}") for name in ("asinh", "acosh", "atanh")},
    **{name: _call(name) for name in ("erf", "erfc", "gamma", "log_ratio")},
    **{name: _call(name) for name in ("log_erfc", "log_erf_difference", *SPECIAL)},
    **{name: _call(name) for name in ("log_sum_exp", "unit_log_sum_exp", "careful")},
    "integer_power": _whole_power("np.power"),
    "power": _call("np.power"),
    "abs": _call("np.abs"),
    "ceiling": _call("np.ceil"),
    "loggamma": _call("lgamma"),
    "max": _nested("np.maximum"),
    "min": _nested("np.minimum"),
    "and": _infix("&"),
    "or": _infix("|"),
    "not": _call("np.logical_not"),
    "piecewise": _branches_in_python,
}
RULES: Mapping[str, Mapping[str, _Rule]] = {
    "c": _C,
    "javascript": _JAVASCRIPT,
    "python": _PYTHON,
}
_WORDS = {
    "hyper": "hypergeometric functions",
    "hyperu": "Tricomi's hypergeometric function",
    "polygamma": "the derivatives of log gamma",
    "besselj": "Bessel functions that oscillate",
    "bessely": "Bessel functions that oscillate",
    "heaviside": "steps written as such functions",
}
_DECLARED = {"c": "double {} = {};", "javascript": "const {} = {};", "python": "{} = {}"}
INFINITY = {"c": "INFINITY", "javascript": "INFINITY", "python": "np.inf"}
_PLAIN = ("add", "mul", "integer_power")  # of inputs: rounded once or twice, whatever cancels


def lines(
    program: Program,
    language: str,
    arguments: Sequence[str],
    constants: Sequence[str],
    relative: Sequence[int] | None = None,
) -> tuple[list[str], list[str]]:
    """Return the assignments of a program, and what holds each of its results.

    `arguments, constants`: what stands for the program's symbols and constants. `relative`: numbers
    of the results whose relative accuracy counts; where rounded numbers cancel in one of these or
    under a logarithm, the code refuses.

    >>> import sympy as sp
    >>> from symdp.emit.program import compile_program
    >>> x = sp.Symbol("x", real=True)
    >>> lines(compile_program(sp.exp(x) * 2, [x]), "c", ["x"], ["2.0"])
    (['double v2 = exp(x);', 'double v3 = (2.0) * (v2);'], ['v3'])
    """
    named = [*arguments, *constants]
    plain = set(range(len(named)))
    guarded: set[int] = set()
    if relative is not None:
        guarded = {k for step in program.steps if step.operation == "log" for k in step.operands}
        guarded |= {program.results[i] for i in relative}
    written = []
    steps = _with_log_gamma(program.steps, len(named))
    used = {*program.results, *(k for step in steps for k in step.operands)}
    for step in steps:
        operation = step.operation
        slot = len(named)
        if operation in _PLAIN and plain.issuperset(step.operands):
            plain.add(slot)
        elif operation == "add" and slot in guarded:
            operation = "careful"
        rule = RULES[language].get(operation)
        if rule is None:
            word = _WORDS.get(operation, "a function of this density")
            raise NoLinesError(f"no program has {word}: symdp answers for it")
        name = f"v{slot}"
        text = rule([named[k] for k in step.operands], step.detail)
        if slot in used:
            written.append(_DECLARED[language].format(name, text))
        named.append(name)
    return written, [named[slot] for slot in program.results]


def _with_log_gamma(steps: Sequence[Step], first: int) -> list[Step]:
    """Write log(gamma(x)) as one operation, which serves where gamma itself is no double."""
    gammas = {first + i: step.operands for i, step in enumerate(steps) if step.operation == "gamma"}
    return [
        Step("loggamma", gammas[step.operands[0]])
        if step.operation == "log" and step.operands[0] in gammas
        else step
        for step in steps
    ]


def literal(constant: Any, language: str) -> str:
    """Return the double nearest to a constant as a word of a language."""
    value = float(compile_numpy(constant, [])())
    if math.isinf(value):
        return ("-" if value < 0 else "") + INFINITY[language]
    if value < 0:
        return f"({value!r})"
    return repr(value)
