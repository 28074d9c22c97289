"""Turn a SymPy expression into a straight-line program that any numeric backend can run.

The walk happens once: equal subexpressions share a slot, and the largest parts that are free of
the variables become constants, which a backend evaluates once per precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp

from symdp.emit.log_sum_exp import (
    ExpMinusOne,
    LogBesselI,
    LogBesselK,
    LogErfc,
    LogErfDifference,
    LogGamma,
    LogOnePlus,
    LogRatio,
    LogSumExp,
    hyperu,
    recognise_log_sum_exp,
)
from symdp.emit.steps import Program, Step
from symdp.errors import InputError

# SymPy heads that are one operation with the same operands in every backend.
_DIRECT: dict[type[sp.Basic], str] = {
    sp.exp: "exp", sp.log: "log", LogOnePlus: "log1p", LogRatio: "log_ratio", ExpMinusOne: "expm1",
    sp.Abs: "abs", sp.sign: "sign", sp.floor: "floor", sp.ceiling: "ceiling",
    sp.sin: "sin", sp.cos: "cos", sp.tan: "tan",
    sp.sinh: "sinh", sp.cosh: "cosh", sp.tanh: "tanh",
    sp.asin: "asin", sp.acos: "acos", sp.atan: "atan",
    sp.asinh: "asinh", sp.acosh: "acosh", sp.atanh: "atanh",
    sp.erf: "erf", sp.erfc: "erfc", sp.erfi: "erfi",
    sp.gamma: "gamma", sp.loggamma: "loggamma", LogGamma: "loggamma", sp.polygamma: "polygamma",
    sp.uppergamma: "uppergamma", sp.lowergamma: "lowergamma",
    sp.besseli: "besseli", sp.besselk: "besselk", sp.besselj: "besselj", sp.bessely: "bessely",
    hyperu: "hyperu",
    LogErfDifference: "log_erf_difference", LogErfc: "log_erfc",
    LogBesselK: "log_besselk", LogBesselI: "log_besseli",
    sp.Max: "max", sp.Min: "min", sp.Heaviside: "heaviside",
    sp.StrictLessThan: "lt", sp.LessThan: "le", sp.StrictGreaterThan: "gt", sp.GreaterThan: "ge",
    sp.Equality: "eq", sp.Unequality: "ne", sp.And: "and", sp.Or: "or", sp.Not: "not",
}  # fmt: skip

# Heads that are written through others first.
_REWRITES: dict[type[sp.Basic], str] = {
    sp.sec: "cos", sp.csc: "sin", sp.sech: "cosh", sp.csch: "sinh", sp.coth: "tanh",
    sp.factorial: "gamma", sp.binomial: "gamma", sp.beta: "gamma", sp.RisingFactorial: "gamma",
    sp.erf2: "erf",
}  # fmt: skip

_NAMED_CONSTANTS: dict[sp.Basic, str] = {
    sp.pi: "pi", sp.E: "e", sp.EulerGamma: "euler", sp.Catalan: "catalan", sp.I: "imaginary",
    sp.oo: "infinity", -sp.oo: "minus_infinity", sp.true: "true", sp.false: "false",
}  # fmt: skip

LARGEST_FINITE_SUM = 100_000


def compile_program(expression: sp.Expr, symbols: Sequence[sp.Symbol]) -> Program:
    """Compile one expression into a Program over `symbols`."""
    return compile_programs([expression], symbols)


def compile_programs(expressions: Sequence[sp.Expr], symbols: Sequence[sp.Symbol]) -> Program:
    """Compile expressions into one Program over `symbols`, what they have in common once."""
    sympified = [sp.sympify(expression, strict=True) for expression in expressions]
    free = set().union(*(expression.free_symbols for expression in sympified))
    unbound = sorted(str(symbol) for symbol in free - set(symbols))
    if unbound:
        raise InputError(f"'{unbound[0]}' has no value; give every parameter a number first")
    recognised = [recognise_log_sum_exp(expression) for expression in sympified]
    return _build(recognised, tuple(symbols), hoist=True)


def compile_template(expressions: Sequence[sp.Expr], variables: Sequence[sp.Symbol]) -> Program:
    """Compile expressions over their variables; what only other symbols make up is a constant."""
    recognised = [recognise_log_sum_exp(expression) for expression in expressions]
    return _build(recognised, tuple(variables), hoist=True)


def compile_constant(expression: sp.Expr) -> Program:
    """Compile an expression without variables down to numbers, sums and integrals."""
    return _build([expression], (), hoist=False)


def _build(
    expressions: Sequence[sp.Expr], symbols: tuple[sp.Symbol, ...], *, hoist: bool
) -> Program:
    # Constants get their slots before the steps do, so the walk numbers both apart and
    # the operands are shifted at the end: negative numbers count constants from −1 downwards.
    builder = _Builder(symbols, hoist=hoist)
    results = [builder.visit(expression) for expression in expressions]
    variables = len(symbols)
    constants = len(builder.constants)

    def slot(reference: int) -> int:
        if reference < 0:
            return variables - 1 - reference
        if reference < variables:
            return reference
        return reference + constants

    steps = []
    for step in builder.steps:
        operands = tuple(map(slot, step.operands))
        steps.append(Step(step.operation, operands, step.detail))
    names = tuple(str(symbol.name) for symbol in symbols)
    return Program(names, tuple(builder.constants), tuple(steps), tuple(map(slot, results)))


class _Builder:
    def __init__(self, symbols: tuple[sp.Symbol, ...], *, hoist: bool) -> None:
        self._variables = frozenset(symbols)
        self._hoist = hoist
        self._slots: dict[sp.Basic, int] = {symbol: i for i, symbol in enumerate(symbols)}
        self.constants: list[sp.Expr] = []
        self.steps: list[Step] = []

    def visit(self, node: sp.Basic) -> int:
        if node not in self._slots:
            self._slots[node] = self._place(node)
        return self._slots[node]

    def _place(self, node: sp.Basic) -> int:
        if self._hoist and self._is_free(node):
            self.constants.append(node)
            return -len(self.constants)
        if isinstance(node, sp.Rational | sp.Float):
            exact = sp.Rational(node)
            ratio = (int(exact.p), int(exact.q))
            return self._append_step("rational", (), ratio)
        if node in _NAMED_CONSTANTS:
            return self._append_step(_NAMED_CONSTANTS[node])
        if isinstance(node, sp.NumberSymbol):
            return self.visit(node.rewrite(sp.sqrt))
        return self._operation(node)

    def _is_free(self, node: sp.Basic) -> bool:
        return not node.free_symbols & self._variables

    def _append_step(
        self, operation: str, operands: Sequence[int] = (), detail: object = None
    ) -> int:
        self.steps.append(Step(operation, tuple(operands), detail))
        return len(self._variables) + len(self.steps) - 1

    def _operation(self, node: sp.Basic) -> int:
        if isinstance(node, sp.Add | sp.Mul):
            return self._sum_or_product(node)
        if isinstance(node, sp.Pow):
            return self._power_step(node)
        if isinstance(node, LogSumExp):
            name = "unit_log_sum_exp" if node.is_unit else "log_sum_exp"
            return self._append_step(name, [self.visit(argument) for argument in node.args])
        if isinstance(node, sp.Piecewise):
            values_and_conditions: list[int] = []
            for branch in node.args:
                values_and_conditions += [self.visit(part) for part in branch.args]
            return self._append_step("piecewise", values_and_conditions)
        if hasattr(node, "limits"):  # a Sum, an Integral or a MassIntegral
            return self._sum_or_integral(node)
        if isinstance(node, sp.hyper):
            parts = [self.visit(part) for part in (*node.ap, *node.bq, node.argument)]
            return self._append_step("hyper", parts, len(node.ap))
        if isinstance(node, sp.legendre):
            degree, z = node.args
            return self.visit(sp.hyper((-degree, degree + 1), (1,), (1 - z) / 2))
        head = type(node)
        if head is sp.log and len(node.args) == 2:
            value, base = node.args
            return self.visit(sp.log(value) / sp.log(base))
        if head in _DIRECT:
            operation = _DIRECT[head]
            arguments = node.args
            if head is sp.Heaviside:
                arguments = node.args[:1]
            # A Bessel function's rational order travels exactly beside its rounded slot.
            exact = None
            if operation.endswith("besselk") and isinstance(node.args[0], sp.Rational):
                order = node.args[0]
                exact = (int(order.p), int(order.q))
            return self._append_step(operation, [self.visit(part) for part in arguments], exact)
        if isinstance(node, sp.cot):  # not 1/tan, whose ball has a pole where this is 0
            (argument,) = node.args
            return self.visit(sp.cos(argument) / sp.sin(argument))
        if head in _REWRITES:
            rewritten = node.rewrite(getattr(sp, _REWRITES[head]))
            if rewritten.func is not head:
                return self.visit(rewritten)
        raise InputError(
            f"the function '{head.__name__}' has no numeric form here; write it through "
            "exp, log, powers, trigonometric, error, gamma or Bessel functions"
        )

    def _sum_or_product(self, node: sp.Add | sp.Mul) -> int:
        """Fold all parts that are free of the variables into one constant."""
        name = "add" if isinstance(node, sp.Add) else "mul"
        parts = list(node.args)
        if self._hoist:
            free = [part for part in parts if self._is_free(part)]
            if len(free) > 1:
                constants = [part for part in parts if not self._is_free(part)]
                parts = [node.func(*free, evaluate=False), *constants]
        return self._append_step(name, [self.visit(part) for part in parts])

    def _power_step(self, node: sp.Pow) -> int:
        base = self.visit(node.base)
        exponent = node.exp
        if isinstance(exponent, sp.Integer):
            return self._append_step("integer_power", (base,), int(exponent))
        if exponent in (sp.S.Half, -sp.S.Half):
            root = self._append_step("sqrt", (base,))
            if exponent == sp.S.Half:
                return root
            return self._append_step("integer_power", (root,), -1)
        return self._append_step("power", (base, self.visit(exponent)))

    def _sum_or_integral(self, node: Any) -> int:
        """A constant one goes to the backend; a short sum over x-dependent terms is spelled out."""
        if self._is_free(node):
            if len(node.limits) != 1 or len(node.limits[0]) != 3:
                raise InputError(f"'{node}' must run over one variable with both limits given")
            name = "sum" if isinstance(node, sp.Sum) else "integral"
            return self._append_step(name, (), node)
        if isinstance(node, sp.Sum) and len(node.limits) == 1:
            index, lower, upper = node.limits[0]
            are_whole = lower.is_Integer and upper.is_Integer
            if are_whole and upper - lower < LARGEST_FINITE_SUM:
                integers = range(int(lower), int(upper) + 1)
                terms = [node.function.subs(index, k) for k in integers]
                return self.visit(recognise_log_sum_exp(sp.Add(*terms)))
        raise InputError(f"'{node}' depends on the variables; write it in closed form")
