"""Write a closed form as a sequence of operations on Taylor series, each one line of code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from symdp.errors import InputError

_FUNCTIONS: dict[type[sp.Basic], str] = {
    sp.exp: "exp", sp.log: "log", sp.sinh: "sinh", sp.cosh: "cosh", sp.tanh: "tanh", sp.Abs: "abs",
}  # fmt: skip
_RECIPROCALS: dict[type[sp.Basic], type[sp.Basic]] = {
    sp.coth: sp.tanh, sp.sech: sp.cosh, sp.csch: sp.sinh,
}  # fmt: skip
_LARGEST_POWER = 12  # written out as products


class NoTapeError(InputError):
    """The expression holds a function without a series of its own."""


@dataclass(frozen=True)
class Line:
    """One operation; operands are numbers of lines, `detail` an argument or a constant."""

    operation: str
    operands: tuple[int, ...] = ()
    detail: sp.Expr | int | None = None


def tape(
    expression: sp.Expr,
    tilt: sp.Symbol,
    arguments: Mapping[sp.Symbol, int],
    removable: bool = False,
) -> list[Line]:
    """Return the lines that compute an expression; the last one is its value.

    Operations: tilt, argument (detail: its place), constant (detail: an expression without
    symbols), add, mul, div, exp, log, sinh, cosh, tanh, abs, power.

    Parameters
    ----------
    expression : of the tilt and the arguments
    tilt : the symbol in which series are taken
    arguments : symbols of the parameters with their places
    removable : bring what stands under a logarithm over one denominator, so that a quotient whose
        parts vanish together is one division

    Raises
    ------
    NoTapeError
        For a function that has no series here, or a symbol that is neither.

    Examples
    --------
    >>> t, s = sp.symbols("t s", positive=True)
    >>> [line.operation for line in tape(sp.log(t / s), t, {s: 0})]
    ['tilt', 'argument', 'div', 'log']
    """
    if removable:
        expression = expression.replace(
            lambda node: isinstance(node, sp.log), lambda node: sp.log(sp.together(node.args[0]))
        )
    writer = _Writer(tilt, arguments)
    last = writer.visit(expression)
    if last != len(writer.lines) - 1:
        writer.lines.append(Line("add", (last,)))
    return writer.lines


class _Writer:
    def __init__(self, tilt: sp.Symbol, arguments: Mapping[sp.Symbol, int]) -> None:
        self._tilt, self._arguments = tilt, arguments
        self._seen: dict[sp.Basic, int] = {}
        self.lines: list[Line] = []

    def visit(self, node: sp.Expr) -> int:
        if node not in self._seen:
            self._seen[node] = self._write(node)
        return self._seen[node]

    def _line(self, operation: str, *operands: int, detail: sp.Expr | int | None = None) -> int:
        self.lines.append(Line(operation, operands, detail))
        return len(self.lines) - 1

    def _write(self, node: sp.Expr) -> int:
        if node == self._tilt:
            return self._line("tilt")
        if node in self._arguments:
            return self._line("argument", detail=self._arguments[node])
        if not node.free_symbols:
            if not node.is_finite and node not in (sp.oo, -sp.oo) and node.is_finite is not None:
                raise NoTapeError(f"the constant {node} is not finite")
            return self._line("constant", detail=node)
        if isinstance(node, sp.Add):
            return self._line("add", *(self.visit(part) for part in node.args))
        if isinstance(node, sp.Mul | sp.Pow):
            return self._quotient(node)
        head = type(node)
        if head in _RECIPROCALS:
            inner = self.visit(_RECIPROCALS[head](*node.args))
            return self._line("div", self.visit(sp.S.One), inner)
        if head in _FUNCTIONS and len(node.args) == 1:
            return self._line(_FUNCTIONS[head], self.visit(node.args[0]))
        raise NoTapeError(f"no series of the function {head.__name__} is known to standalone code")

    def _quotient(self, node: sp.Expr) -> int:
        above: list[int] = []
        below: list[int] = []
        constants: list[sp.Expr] = []
        for factor in sp.Mul.make_args(node):
            if not factor.free_symbols:
                constants.append(factor)
                continue
            if isinstance(factor, sp.Pow) and not isinstance(factor, sp.exp):
                base, exponent = factor.base, factor.exp
                if exponent.is_Rational and exponent < 0:
                    below += self._powers(base, -exponent)
                else:
                    above += self._powers(base, exponent)
            else:
                above.append(self.visit(factor))
        if constants:
            above.insert(0, self.visit(sp.Mul(*constants)))
        numerator = self._product(above)
        return self._line("div", numerator, self._product(below)) if below else numerator

    def _product(self, factors: list[int]) -> int:
        if not factors:
            return self.visit(sp.S.One)
        return factors[0] if len(factors) == 1 else self._line("mul", *factors)

    def _powers(self, base: sp.Expr, exponent: sp.Expr) -> list[int]:
        if exponent.is_Integer and 0 < exponent <= _LARGEST_POWER:
            return [self.visit(base)] * int(exponent)
        if not (base.is_nonnegative or (exponent.is_Rational and exponent.q % 2 == 0)):
            raise NoTapeError(f"the power {base**exponent} has a base of unknown sign")
        return [self._line("power", self.visit(base), self.visit(exponent))]
