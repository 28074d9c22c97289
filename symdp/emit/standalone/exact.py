"""Emit the exact contour accountant of one mechanism as one file in C99 or in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp

from symdp.emit.program import compile_programs, compile_template
from symdp.emit.standalone.lines import lines, literal
from symdp.emit.standalone.model import CONDITIONS, MARKER, Argument, c_comment, resource
from symdp.errors import InputError


@dataclass(frozen=True)
class ExactPiece:
    """A stretch of the support, or one point of a list, where a law may vanish.

    Attributes
    ----------
    lower, upper
        The ends; of a point, its probabilities under P and Q.
    log_p, log_q
        Log densities, None where the density vanishes, and for points.
    loss
        log P − log Q, ±oo where one of them vanishes.
    is_flat
        Whether the loss is constant.
    """

    lower: sp.Expr
    upper: sp.Expr
    log_p: sp.Expr | None
    log_q: sp.Expr | None
    loss: sp.Expr
    is_flat: bool = False


@dataclass(frozen=True)
class ExactModel:
    """One mechanism, ready to be written out with its exact accountant.

    Attributes
    ----------
    heading, notes
        A line that says what the mechanism is, and lines for the file's header.
    arguments
        Parameters that stay arguments.
    variable
        Of the densities.
    kind
        "interval", "integers" or "points".
    pieces
        Of the support; all points of a list.
    loss_range
        The ends of what the loss can be, ±oo where they are not known.
    is_remove
        Whether P is the law with the record.
    """

    heading: str
    notes: tuple[str, ...]
    arguments: tuple[Argument, ...]
    variable: sp.Symbol
    kind: str
    pieces: tuple[ExactPiece, ...]
    loss_range: tuple[sp.Expr, sp.Expr]
    is_remove: bool


class _Constants:
    """Numbers that parameters alone decide, each with its place in one array."""

    def __init__(self) -> None:
        self.listed: list[sp.Expr] = []

    def place(self, expression: sp.Expr) -> int:
        if expression not in self.listed:
            self.listed.append(expression)
        return self.listed.index(expression)

    def assignments(self, model: ExactModel, language: str) -> list[str]:
        """Return the lines that compute them from the parameters."""
        end = ";" if language == "c" else ""
        free = [e for e in self.listed if e.free_symbols]
        result = [
            f"c[{self.place(e)}] = {literal(e, language)}{end}"
            for e in self.listed
            if not e.free_symbols
        ]
        if not free:
            return result
        names = [f"p[{i}]" for i in range(len(model.arguments))]
        try:
            program = compile_programs(free, [a.symbol for a in model.arguments])
            own = [literal(constant, language) for constant in program.constants]
            steps, found = lines(program, language, names, own)
        except InputError as error:
            values = ", ".join(a.name for a in model.arguments)
            raise InputError(f"{error}; give values to {values}") from None
        named = zip(free, found, strict=True)
        return [*result, *steps, *(f"c[{self.place(e)}] = {v}{end}" for e, v in named)]


def to_exact_c(model: ExactModel) -> str:
    """Return a C99 program that needs libm and complex.h alone.

    Raises
    ------
    InputError
        For a function that standalone code does not have, or a normalising sum or integral that
        depends on a parameter without value.
    """
    constants = _Constants()
    functions, tables = _body(model, constants, "c")
    names = ["epsilon", "n", *(a.name for a in model.arguments)]
    checks = [_check_in_c(i, a) for i, a in enumerate(model.arguments)]
    assignments = "".join(f"    {line}\n" for line in constants.assignments(model, "c"))
    size = len(model.pieces)
    lists = "\n".join(
        f"static const int {name}[COUNT] = {{ {', '.join(map(str, values))} }};"
        for name, values in tables.items()
    )
    points, integers = (int(model.kind == kind) for kind in ("points", "integers"))
    text = [
        _comment(model, names),
        "#include <complex.h>\n#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "#include <string.h>\n\n#ifdef __FAST_MATH__\n"
        '#error "infinities are used: compile without -ffast-math"\n#endif',
        f"#define PI 3.14159265358979323846\nenum {{ COUNT = {size}, ARGUMENTS = "
        f"{len(model.arguments)}, CONSTANTS = {len(constants.listed)}, POINTS = {points}, "
        f"INTEGERS = {integers},\n       REMOVE = {1 if model.is_remove else -1}, LEAST = "
        f"{constants.place(model.loss_range[0])}, LARGEST = "
        f"{constants.place(model.loss_range[1])} }};",
        f"static const char *const NAMES[] = {{ {', '.join(map(_quoted, names))} }};",
        resource("operations.c"),
        *functions,
        "typedef void (*piece_function)(double, const double *, double *);\n"
        f"static const piece_function PIECES[COUNT] = {{ "
        f"{', '.join(f'piece_{i}' for i in range(size))} }};",
        lists,
        f"static void constants(const double *p, double *c)\n{{\n    (void) p;\n{assignments}}}",
        "static const char *check(const double *p)\n{\n    (void) p;\n"
        f"{''.join(checks)}    return NULL;\n}}",
        resource("exact.c"),
    ]
    return "\n\n".join(part.strip("\n") for part in text) + "\n"


def to_exact_python(model: ExactModel) -> str:
    """Return a Python program that needs NumPy alone.

    Raises
    ------
    InputError
        As `to_exact_c` does.
    """
    constants = _Constants()
    functions, tables = _body(model, constants, "python")
    names = ["epsilon", "n", *(a.name for a in model.arguments)]
    checks = [_check_in_python(i, a) for i, a in enumerate(model.arguments)]
    assignments = "".join(f"    {line}\n" for line in constants.assignments(model, "python"))
    lists = "".join(f"{name} = {values!r}\n" for name, values in tables.items())
    text = [
        '"""' + "\n".join([*_header(model), "", *_usage("python FILE.py", names)]) + '\n"""',
        "from __future__ import annotations\n",
        "import math\nimport sys\nfrom decimal import Decimal, localcontext\n"
        "from fractions import Fraction\nfrom typing import Any\n\nimport numpy as np\n",
        f"KIND_OF_SUPPORT = {model.kind!r}\nREMOVE = {1 if model.is_remove else -1}\n"
        f"LEAST, LARGEST = {constants.place(model.loss_range[0])}, "
        f"{constants.place(model.loss_range[1])}\nNAMES = {names!r}\n{lists}",
        *functions,
        f"PIECES = [{', '.join(f'_piece_{i}' for i in range(len(model.pieces)))}]\n",
        f"def _constants(p):\n    c = np.zeros({len(constants.listed)})\n{assignments}    return c",
        f"def _check(p):\n{''.join(checks)}    return None\n",
        "def whole(value):\n    return value == math.floor(value)",
        *(resource(f"{name}.py").partition(MARKER)[2] for name in ("density", "contour")),
    ]
    return "\n\n\n".join(part.strip("\n") for part in text) + "\n"


def _body(
    model: ExactModel, constants: _Constants, language: str
) -> tuple[list[str], dict[str, list[int]]]:
    """Return a function for each piece, and what is known of each."""
    tables: dict[str, list[int]] = {"KIND": [], "FLAT": [], "LOWER": [], "UPPER": [], "LOSS": []}
    functions = []
    for end in model.loss_range:
        constants.place(end)
    for i, piece in enumerate(model.pieces):
        tables["KIND"].append((piece.loss == sp.oo) - (piece.loss == -sp.oo))
        tables["FLAT"].append(int(piece.is_flat or model.kind != "interval"))
        tables["LOWER"].append(constants.place(piece.lower))
        tables["UPPER"].append(constants.place(piece.upper))
        at_point = model.kind == "points"
        tables["LOSS"].append(constants.place(piece.loss) if at_point else 0)
        functions.append(_piece(i, piece, model, constants, language))
    return functions, tables


def _piece(
    number: int, piece: ExactPiece, model: ExactModel, constants: _Constants, language: str
) -> str:
    given = (piece.log_p, piece.log_q, None if piece.loss.is_infinite else piece.loss)
    present = [e for e in given if e is not None and model.kind != "points"]
    program = compile_template(present, [model.variable])
    if any(not isinstance(constant, sp.Expr) for constant in program.constants):
        raise InputError("which branch of the density holds depends on parameters; give values")
    own = [f"c[{constants.place(constant)}]" for constant in program.constants]
    steps, found = lines(program, language, ["x"], own)
    held = iter(found)
    infinity = "INFINITY" if language == "c" else "np.inf"
    sign = "-" if piece.loss == -sp.oo else ""
    absent = (f"-{infinity}", f"-{infinity}", f"{sign}{infinity}")
    results = [
        none if e is None or model.kind == "points" else next(held)
        for e, none in zip(given, absent, strict=True)
    ]
    if language == "c":
        body = "".join(f"    {line}\n" for line in steps)
        body += "".join(f"    out[{k}] = {value};\n" for k, value in enumerate(results))
        head = f"static void piece_{number}(double x, const double *c, double *out)"
        return f"{head}\n{{\n    (void) x;\n    (void) c;\n{body}}}"
    body = "".join(f"    {line}\n" for line in steps)
    return f"def _piece_{number}(x, c):\n{body}    return {', '.join(results)}\n"


def _header(model: ExactModel) -> list[str]:
    return [model.heading, "", *model.notes]


def _usage(command: str, names: Sequence[str]) -> list[str]:
    words = " ".join(f"{name}=VALUE" for name in names)
    return [f"Usage: {command} {words} [remove|add|both]"]


def _comment(model: ExactModel, names: Sequence[str]) -> str:
    compiled = "Compile with: cc -O2 FILE.c -o FILE -lm"
    return c_comment([*_header(model), "", compiled, *_usage("./FILE", names)])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _check_in_c(place: int, argument: Argument) -> str:
    condition = CONDITIONS[argument.domain].format(f"p[{place}]").replace(" and ", " && ")
    return (
        f"    if (!({condition})) return {_quoted(f'{argument.name} must be {argument.rule}')};\n"
    )


def _check_in_python(place: int, argument: Argument) -> str:
    condition = CONDITIONS[argument.domain].format(f"p[{place}]")
    rule = f"{argument.name} must be {argument.rule}"
    return f"    if not ({condition}):\n        return {rule!r}\n"
