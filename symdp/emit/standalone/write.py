"""Write one mechanism's accountant as one file in Python, C99 or JavaScript."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import mpmath
import sympy as sp

from symdp.emit.log_sum_exp import ExpMinusOne
from symdp.emit.program import compile_programs, compile_template
from symdp.emit.standalone.files import Parts, c_file, javascript_file, python_file
from symdp.emit.standalone.lines import INFINITY, lines, literal
from symdp.emit.standalone.model import Model
from symdp.errors import InputError

LANGUAGES = ("python", "c", "javascript")
_GAUSS = 20  # nodes of a panel, as in the accountant
_FUNCTIONS = {"log_p": "log_p", "log_q": "log_q", "loss_at": "loss"}


@dataclass
class _Numbers:
    """What parameters alone decide, each in its place of one array, and normalising sums."""

    model: Model
    listed: list[sp.Expr] = field(default_factory=list)
    sums: list[sp.Sum] = field(default_factory=list)
    relative: set[int] = field(default_factory=set)

    def place(self, expression: sp.Expr, *, relative: bool = False) -> int:
        if expression not in self.listed:
            self.listed.append(expression)
        place = self.listed.index(expression)
        if relative:
            self.relative.add(place)
        return place

    def assignments(self, language: str) -> list[str]:
        """Return the lines that compute them from the parameters."""
        end, entry = ("", "{}[{}]") if language == "python" else (";", "{}[{}]")
        if language == "c":
            entry = "{}.at[{}]"
        result, free, wanted = [], [], []
        for place, expression in enumerate(self.listed):
            if expression.free_symbols:
                plain = self._without_sums(expression)
                free.append(plain.replace(lambda e: isinstance(e, sp.Add), _factored))
                wanted.append(place)
            else:
                value = literal(expression, language)
                result.append(f"{entry.format('c', place)} = {value}{end}")
        if not free:
            return result
        names = [entry.format("p", i) for i in range(len(self.model.arguments))]
        symbols = [a.symbol for a in self.model.arguments]
        names += [f"series({i}, p)" for i in range(len(self.sums))]
        symbols += [_stand_in(i) for i in range(len(self.sums))]
        try:
            program = compile_programs(free, symbols)
        except InputError as error:
            values = ", ".join(a.name for a in self.model.arguments)
            raise InputError(f"{error}; give values to {values}") from None
        own = [literal(constant, language) for constant in program.constants]
        relative = [i for i, place in enumerate(wanted) if place in self.relative]
        steps, found = lines(program, language, names, own, relative)
        pairs = zip(wanted, found, strict=True)
        return [*result, *steps, *(f"{entry.format('c', k)} = {v}{end}" for k, v in pairs)]

    def _without_sums(self, expression: sp.Expr) -> sp.Expr:
        for found in expression.atoms(sp.Sum):
            (_, low, high) = found.limits[0]
            if len(found.limits) == 1 and not (low.free_symbols | high.free_symbols):
                if found not in self.sums:
                    self.sums.append(found)
                expression = expression.xreplace({found: _stand_in(self.sums.index(found))})
        return expression


def _factored(total: sp.Add) -> sp.Expr:
    """Return c exp(a) − c exp(b) as c exp(b) (exp(a − b) − 1), which does not cancel."""
    if len(total.args) == 2:
        (c, a), (d, b) = (term.as_independent(sp.exp, as_Add=False) for term in total.args)
        if c == -d and isinstance(a, sp.exp) and isinstance(b, sp.exp):
            return c * b * ExpMinusOne(sp.expand(a.args[0] - b.args[0]))
    return total


def _stand_in(number: int) -> sp.Symbol:
    return sp.Symbol(f"_sum{number}", positive=True)


def to_code(model: Model, language: str) -> str:
    """Return a file with log_delta, delta, epsilon and curve of one mechanism.

    Python needs NumPy; C needs libm; JavaScript, an ES module, needs nothing. All three are the
    same accountant. InputError for a function that standalone code does not have, or a normalising
    integral that depends on a parameter without value.
    """
    numbers = _Numbers(model)
    tables = _tables(model, numbers)
    functions = [_function(name, model, numbers, language) for name in _FUNCTIONS]
    if model.kind != "points":
        numbers.listed += [e for e in _hoisted(model) if e not in numbers.listed]
    assignments = numbers.assignments(language)
    tables["SERIES_LOW"] = [float(s.limits[0][1]) for s in numbers.sums]
    tables["SERIES_HIGH"] = [float(s.limits[0][2]) for s in numbers.sums]
    functions.append(_term(model, numbers, language))
    enums = {
        "PIECES": len(model.pieces),
        "POINTS": int(model.kind == "points"),
        "INTEGERS": int(model.kind == "integers"),
        "LEAST": numbers.place(model.loss_range[0]),
        "LARGEST": numbers.place(model.loss_range[1]),
        "REMOVE": 1 if model.is_remove else -1,
    }
    own = Parts(model, enums, tables, functions, assignments, len(numbers.listed))
    written = {"python": python_file, "c": c_file, "javascript": javascript_file}[language](own)
    return "\n\n".join(part.strip("\n") for part in written) + "\n"


def _tables(model: Model, numbers: _Numbers) -> dict[str, list[float]]:
    """Return what is known of each piece, and the Gauss rule."""
    tables: dict[str, list[float]] = {"KIND": [], "FLAT": [], "LOWER": [], "UPPER": [], "LOSS": []}
    for end in model.loss_range:
        numbers.place(end)
    at_point = model.kind == "points"
    for piece in model.pieces:
        tables["KIND"].append((piece.loss == sp.oo) - (piece.loss == -sp.oo))
        tables["FLAT"].append(int(piece.is_flat or model.kind != "interval"))
        tables["LOWER"].append(numbers.place(piece.lower, relative=at_point))
        tables["UPPER"].append(numbers.place(piece.upper, relative=at_point))
        tables["LOSS"].append(numbers.place(piece.loss) if at_point else 0)
    places, weights = gauss_legendre(_GAUSS)
    tables["PLACES"] = [*(-x for x in places), *reversed(places)]
    tables["WEIGHTS"] = [*weights, *reversed(weights)]
    return tables


@cache
def gauss_legendre(count: int) -> tuple[list[float], list[float]]:
    """Return the positive places of an even Gauss-Legendre rule, rounded once, and their weights.

    >>> gauss_legendre(2)
    ([0.5773502691896257], [1.0])
    """
    places, weights = [], []
    with mpmath.workdps(30):
        for i in range(count // 2):
            near = mpmath.cos(mpmath.pi * (i + 0.75) / (count + 0.5))
            x = mpmath.findroot(lambda x: mpmath.legendre(count, x), near)
            places.append(float(x))
            slope = count * mpmath.legendre(count - 1, x)
            weights.append(float(2 * (1 - x * x) / slope**2))
    return places, weights


def _expressions(model: Model) -> list[sp.Expr]:
    found = [e for piece in model.pieces for e in (piece.log_p, piece.log_q, piece.loss)]
    return [e for e in found if e is not None and not e.is_infinite]


def _hoisted(model: Model) -> list[sp.Expr]:
    """Return the parts of the densities that parameters alone decide."""
    return [
        constant
        for expression in _expressions(model)
        for constant in compile_template([expression], [model.variable]).constants
    ]


def _function(name: str, model: Model, numbers: _Numbers, language: str) -> str:
    """Return a function of (piece, x, c) that is one of the three of every piece."""
    bodies: list[tuple[list[str], str]] = []
    for piece in model.pieces:
        value = getattr(piece, _FUNCTIONS[name])
        if model.kind == "points" or value is None or value.is_infinite:
            sign = "" if value == sp.oo else "-"
            bodies.append(([], f"{sign}{INFINITY[language]}"))
            continue
        program = compile_template([value], [model.variable])
        if any(not isinstance(constant, sp.Expr) for constant in program.constants):
            raise InputError("which branch of the density holds depends on parameters; give values")
        entry = "c.at[{}]" if language == "c" else "c[{}]"
        own = [entry.format(numbers.place(constant)) for constant in program.constants]
        steps, found = lines(program, language, ["x"], own)
        bodies.append((steps, found[0]))
    return _cases(name, "c", bodies, language)


def _term(model: Model, numbers: _Numbers, language: str) -> str:
    """Return a function of (which, x, p): the terms of the normalising sums."""
    bodies = []
    for found in numbers.sums:
        symbols = [found.limits[0][0], *(a.symbol for a in model.arguments)]
        program = compile_programs([found.function], symbols)
        own = [literal(constant, language) for constant in program.constants]
        entry = "p.at[{}]" if language == "c" else "p[{}]"
        names = ["x", *(entry.format(i) for i in range(len(model.arguments)))]
        steps, results = lines(program, language, names, own)
        bodies.append((steps, results[0]))
    return _cases("term", "p", bodies, language)


def _cases(name: str, last: str, bodies: Sequence[tuple[list[str], str]], language: str) -> str:
    if language == "python":
        text = f"def {name}(piece, x, {last}):\n"
        for i, (steps, result) in enumerate(bodies):
            inner = "".join(f"        {line}\n" for line in steps)
            text += f"    if piece == {i}:\n{inner}        return {result} + 0.0 * x\n"
        return text + "    return -np.inf + 0.0 * x\n"
    head = f"function {name}(piece, x, {last})"
    if language == "c":
        head = f"static double {name}(double piece, double x, vector {last})"
    text = f"{head}\n{{\n"
    if language == "c":
        text += f"    (void) piece;\n    (void) x;\n    (void) {last};\n"
    for i, (steps, result) in enumerate(bodies):
        inner = "".join(f"        {line}\n" for line in steps)
        text += f"    if (piece == {i}) {{\n{inner}        return {result};\n    }}\n"
    return text + "    return -INFINITY;\n}"
